//! One request's bytes, head first, in pages of one size.
//!
//! Pages make memory countable: what a request takes is a whole number of them, they are given back
//! one like the other, and none is ever too small for the next request. The body is written first,
//! because the head says how long it is; the head then goes in front of it, up to the last byte of
//! the room that was left. Text is written straight into the pages, but for the few words that
//! cross from one into the next.

use crate::prompt::{TextKey, WORDS_PER_DRAW};

/// Bytes of a page: a request of Mooncake's length leaves a tenth unused, and the longest real body
/// is 225 pages, two calls' worth of slices.
pub(crate) const PAGE_BYTES: usize = 16 << 10;

/// A page.
pub(crate) type Page = Box<[u8; PAGE_BYTES]>;

/// A request, ready to be sent.
#[derive(Debug, Default)]
pub(crate) struct Rendered {
    pages: Vec<Page>,
    /// Where the request starts in the first page.
    start: usize,
    /// Where it ends, counted from the start of the first page.
    end: usize,
}

/// Pages that may be written.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    free: Vec<Page>,
    made: usize,
    /// How many may be made.
    most: usize,
}

/// A request being written.
pub(crate) struct Filling<'a> {
    into: &'a mut Rendered,
    pages: &'a mut Pages,
    at: usize,
    head_room: usize,
}

/// How many pages so many bytes take.
pub(crate) const fn pages_for(bytes: u64) -> u64 {
    bytes.div_ceil(PAGE_BYTES as u64)
}

impl Pages {
    /// So many pages; none is made before it is needed.
    pub(crate) const fn new(count: usize) -> Self {
        Self { free: Vec::new(), made: 0, most: count }
    }

    /// How many can be had.
    pub(crate) const fn available(&self) -> usize {
        self.free.len() + self.most - self.made
    }

    /// How many there may be.
    pub(crate) const fn most(&self) -> usize {
        self.most
    }

    /// How many there are by now, in use or free.
    pub(crate) const fn made(&self) -> usize {
        self.made
    }

    /// Takes back the pages of a request that needs them no more.
    pub(crate) fn take_back(&mut self, rendered: &mut Rendered) {
        self.free.append(&mut rendered.pages);
        // What is kept for later requests must not add up to what the longest one needed.
        rendered.pages = Vec::new();
        (rendered.start, rendered.end) = (0, 0);
    }

    fn one(&mut self) -> Page {
        self.free.pop().unwrap_or_else(|| {
            assert!(self.made < self.most, "asked before: see `available`");
            self.made += 1;
            let page = vec![0; PAGE_BYTES].into_boxed_slice();
            page.try_into().expect("of the length of a page")
        })
    }
}

impl<'a> Filling<'a> {
    /// Starts a request whose head has at most `head_room` bytes.
    pub(crate) fn new(into: &'a mut Rendered, pages: &'a mut Pages, head_room: usize) -> Self {
        debug_assert!(into.pages.is_empty(), "its pages were taken back");
        let mut filling = Self { into, pages, at: head_room, head_room };
        while filling.into.pages.len() * PAGE_BYTES < head_room {
            filling.grow();
        }
        filling
    }

    /// Bytes of the body so far.
    pub(crate) const fn body_bytes(&self) -> u64 {
        (self.at - self.head_room) as u64
    }

    /// Adds bytes.
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        while self.into.pages.len() * PAGE_BYTES < self.at + bytes.len() {
            self.grow();
        }
        self.write_at(self.at, bytes);
        self.at += bytes.len();
    }

    /// Adds the first `words` words of a text.
    pub(crate) fn text(&mut self, mut key: TextKey, mut words: usize) {
        while words > 0 {
            if self.at == self.into.pages.len() * PAGE_BYTES {
                self.grow();
            }
            let free = &mut self.into.pages[self.at / PAGE_BYTES][self.at % PAGE_BYTES..];
            let draws = TextKey::fitting(free.len()) / WORDS_PER_DRAW;
            let count = words.min(draws * WORDS_PER_DRAW);
            if count > 0 {
                self.at += key.write(count, free);
                key = key.beyond(draws);
                words -= count;
            } else {
                let mut few = [0; TextKey::room(WORDS_PER_DRAW)];
                let count = words.min(WORDS_PER_DRAW);
                let bytes = key.write(count, &mut few);
                self.put(&few[..bytes]);
                key = key.beyond(1);
                words -= count;
            }
        }
    }

    /// Puts the head, in its pieces, right in front of the body.
    pub(crate) fn end(mut self, head: [&[u8]; 2]) {
        let bytes = head[0].len() + head[1].len();
        let start = self.head_room.checked_sub(bytes).expect("the room was for the longest head");
        debug_assert!(start < PAGE_BYTES, "only the digits of the body's length can differ");
        self.write_at(start, head[0]);
        self.write_at(start + head[0].len(), head[1]);
        (self.into.start, self.into.end) = (start, self.at);
    }

    fn write_at(&mut self, mut at: usize, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let free = &mut self.into.pages[at / PAGE_BYTES][at % PAGE_BYTES..];
            let (here, rest) = bytes.split_at(bytes.len().min(free.len()));
            free[..here.len()].copy_from_slice(here);
            at += here.len();
            bytes = rest;
        }
    }

    fn grow(&mut self) {
        self.into.pages.push(self.pages.one());
    }
}

impl Rendered {
    /// Bytes of head and body.
    pub(crate) const fn bytes(&self) -> u64 {
        (self.end - self.start) as u64
    }

    /// How many slices it lies in.
    pub(crate) const fn part_count(&self) -> usize {
        self.end.div_ceil(PAGE_BYTES)
    }

    /// One of its slices, counted from its start.
    pub(crate) fn part(&self, place: usize) -> Option<&[u8]> {
        let first = place * PAGE_BYTES;
        if first >= self.end {
            return None;
        }
        let from = if place == 0 { self.start } else { 0 };
        Some(&self.pages[place][from..(self.end - first).min(PAGE_BYTES)])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

    use super::*;

    fn whole(rendered: &Rendered) -> Vec<u8> {
        (0..).map_while(|place| rendered.part(place)).flatten().copied().collect()
    }

    proptest! {
        #[test]
        fn bytes_are_the_same_wherever_pages_end(
            texts in prop::collection::vec((any::<u64>(), 0_usize..9_000), 0..6),
            common in head_lengths(),
            own in 0_usize..200,
            slack in 0_usize..20,
        ) {
            let (common, own) = (vec![b'c'; common], vec![b'o'; own]);
            let mut pages = Pages::new(100);
            let mut rendered = Rendered::default();
            let room = common.len() + own.len() + slack;
            let mut filling = Filling::new(&mut rendered, &mut pages, room);
            filling.put(b"{");
            let mut expected = [common.clone(), own.clone(), b"{".to_vec()].concat();
            let head_bytes = common.len() + own.len();
            for (id, words) in texts {
                let key = TextKey::block(0, 0, id);
                filling.text(key, words);
                key.append(words, &mut expected);
            }
            filling.put(b"}");
            expected.push(b'}');
            prop_assert_eq!(filling.body_bytes(), (expected.len() - head_bytes) as u64);
            filling.end([&common, &own]);
            prop_assert_eq!(rendered.bytes(), expected.len() as u64);
            prop_assert_eq!(rendered.part_count(), (0..).map_while(|i| rendered.part(i)).count());
            prop_assert!(whole(&rendered) == expected);
            let used = rendered.pages.len();
            prop_assert_eq!(used as u64, pages_for((expected.len() + slack) as u64));
            prop_assert_eq!(pages.available(), 100 - used);
            pages.take_back(&mut rendered);
            prop_assert_eq!((pages.available(), pages.made()), (100, used));
        }
    }

    /// Short heads, and ones that end around the end of a page.
    fn head_lengths() -> impl proptest::strategy::Strategy<Value = usize> {
        proptest::prop_oneof![0_usize..300, PAGE_BYTES - 300..PAGE_BYTES + 300]
    }
}
