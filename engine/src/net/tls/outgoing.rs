//! Ciphertext on its way to the kernel: written at the end, taken from the front, lent as a whole.
//!
//! One buffer that grows to what it needs once and is then used again. While the driver has it,
//! what is written meanwhile waits in another and comes behind it.

use monoio::buf::{IoBuf, Slice};

/// Bytes in the order they must leave.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    /// All of it may be written to; what counts lies between `start` and `end`.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    lent: bool,
}

impl Outgoing {
    /// A buffer with room for `room` bytes.
    pub(super) fn with_room(room: usize) -> Self {
        Self { bytes: vec![0; room], ..Self::default() }
    }

    /// What can leave now: nothing while the driver has what comes first.
    pub(super) fn ready(&self) -> &[u8] {
        if self.lent { &[] } else { &self.bytes[self.start..self.end] }
    }

    /// Whether nothing waits, and the driver has nothing.
    pub(super) fn is_empty(&self) -> bool {
        !self.lent && self.start == self.end
    }

    /// Whether the driver has the front.
    pub(super) const fn is_lent(&self) -> bool {
        self.lent
    }

    /// So many bytes have left.
    pub(super) fn left(&mut self, count: usize) {
        self.start += count;
        assert!(self.start <= self.end, "the kernel took what it was given");
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Room for `room` bytes behind what waits; [`Outgoing::written`] says how many were used.
    pub(super) fn room(&mut self, room: usize) -> &mut [u8] {
        if self.bytes.len() < self.end + room {
            if self.start > 0 {
                self.bytes.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            }
            if self.bytes.len() < self.end + room {
                self.bytes.resize(self.end + room, 0);
            }
        }
        &mut self.bytes[self.end..]
    }

    /// So many bytes were written into the room.
    pub(super) fn written(&mut self, count: usize) {
        self.end += count;
        assert!(self.end <= self.bytes.len(), "no more was written than there was room for");
    }

    /// Lends all that waits, until [`Outgoing::give_back`].
    pub(super) fn lend(&mut self) -> Slice<Vec<u8>> {
        assert!(!self.lent, "it is lent once");
        let lent = std::mem::take(self);
        self.lent = true;
        lent.bytes.slice(lent.start..lent.end)
    }

    /// Takes back what was lent; `count` bytes of it have left.
    pub(super) fn give_back(&mut self, lent: Slice<Vec<u8>>, count: usize) {
        assert!(self.lent, "it was lent");
        let meanwhile = std::mem::take(self);
        (self.start, self.end) = (lent.begin(), lent.end());
        self.bytes = lent.into_inner();
        self.left(count);
        let behind = &meanwhile.bytes[meanwhile.start..meanwhile.end];
        self.room(behind.len())[..behind.len()].copy_from_slice(behind);
        self.written(behind.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(outgoing: &mut Outgoing, bytes: &[u8]) {
        outgoing.room(bytes.len())[..bytes.len()].copy_from_slice(bytes);
        outgoing.written(bytes.len());
    }

    #[test]
    fn bytes_leave_in_the_order_they_were_written() {
        let mut outgoing = Outgoing::with_room(4);
        write(&mut outgoing, b"abc");
        outgoing.left(2);
        write(&mut outgoing, b"defgh");
        assert_eq!(outgoing.ready(), b"cdefgh");
        let lent = outgoing.lend();
        assert!(outgoing.ready().is_empty() && !outgoing.is_empty() && outgoing.is_lent());
        write(&mut outgoing, b"ij");
        assert!(outgoing.ready().is_empty(), "not before what is lent");
        outgoing.give_back(lent, 4);
        assert_eq!(outgoing.ready(), b"ghij");
        outgoing.left(4);
        assert!(outgoing.is_empty());
    }
}
