//! The open connections that carry nothing: the last one used is the next one used.
//!
//! A list whose links lie in one array by slot, so that a connection that closes while it waits
//! leaves it at once, also when twenty thousand others do the same. Nothing here allocates unless a
//! slot is new.

/// "No slot".
const NONE: u32 = u32::MAX;

/// A stack of slots with removal from anywhere.
#[derive(Debug, Default)]
pub(super) struct Idle {
    links: Vec<Link>,
    top: Option<u32>,
    count: usize,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    above: u32,
    below: u32,
    listed: bool,
}

impl Idle {
    /// An empty stack with room for `slots` slots.
    pub(super) fn new(slots: usize) -> Self {
        Self { links: Vec::with_capacity(slots), top: None, count: 0 }
    }

    /// Puts `slot` on top.
    ///
    /// # Panics
    /// When it is there already: two requests would get one connection.
    pub(super) fn push(&mut self, slot: u32) {
        let place = slot as usize;
        if place >= self.links.len() {
            self.links.resize(place + 1, Link { above: NONE, below: NONE, listed: false });
        }
        assert!(!self.links[place].listed, "a connection waits once");
        let below = self.top.unwrap_or(NONE);
        self.links[place] = Link { above: NONE, below, listed: true };
        if let Some(top) = self.top {
            self.links[top as usize].above = slot;
        }
        self.top = Some(slot);
        self.count += 1;
    }

    /// Takes the slot on top.
    pub(super) fn pop(&mut self) -> Option<u32> {
        let top = self.top?;
        self.remove(top);
        Some(top)
    }

    /// The slot on top.
    pub(super) const fn top(&self) -> Option<u32> {
        self.top
    }

    /// Takes `slot` out, if it is there.
    pub(super) fn remove(&mut self, slot: u32) {
        let Some(link) = self.links.get_mut(slot as usize).filter(|link| link.listed) else {
            return;
        };
        link.listed = false;
        let Link { above, below, .. } = *link;
        match self.links.get_mut(above as usize) {
            Some(above) => above.below = below,
            None => self.top = (below != NONE).then_some(below),
        }
        if let Some(below) = self.links.get_mut(below as usize) {
            below.above = above;
        }
        self.count -= 1;
    }

    /// How many there are.
    pub(super) const fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    pub(super) const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_one_in_is_the_first_one_out_whoever_leaves_in_between() {
        let mut idle = Idle::new(1);
        for slot in [3, 0, 7, 1] {
            idle.push(slot);
        }
        idle.remove(0);
        idle.remove(0);
        idle.remove(5);
        idle.remove(99);
        assert_eq!(idle.len(), 3);
        assert_eq!(idle.pop(), Some(1));
        idle.remove(3);
        idle.push(0);
        assert_eq!([idle.pop(), idle.pop(), idle.pop()], [Some(0), Some(7), None]);
        assert!(idle.is_empty());
    }

    #[test]
    fn it_is_a_stack_in_every_order_of_events() {
        let mut idle = Idle::new(8);
        let mut model: Vec<u32> = Vec::new();
        let mut state = 1_u32;
        for _ in 0..10_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let slot = (state >> 16) % 8;
            match (state >> 24) % 3 {
                0 if !model.contains(&slot) => {
                    model.push(slot);
                    idle.push(slot);
                }
                1 => {
                    model.retain(|&other| other != slot);
                    idle.remove(slot);
                }
                _ => assert_eq!(idle.pop(), model.pop()),
            }
            assert_eq!((idle.len(), idle.is_empty()), (model.len(), model.is_empty()));
        }
    }
}
