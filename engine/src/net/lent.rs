//! A slice of a request lent to the driver for one asynchronous write.
//!
//! monoio takes buffers by value and may keep them until the kernel is done. Rendered bytes are
//! shared, so what is handed over is a pointer to them together with the share that keeps them
//! where they are, whatever becomes of the request meanwhile. This is one of the engine's named
//! `unsafe` modules.

use monoio::buf::IoBuf;

use crate::render::supply::Share;

/// Bytes of a request, kept alive while the kernel reads them.
#[derive(Debug)]
pub struct Lent {
    start: *const u8,
    length: usize,
    _share: Share,
}

impl Lent {
    /// Lends a slice of a request, but for its first `offset` bytes.
    ///
    /// # Panics
    /// When the slice is shorter than `offset`.
    #[must_use]
    pub fn new(share: Share, offset: usize) -> Self {
        let slice = &share.bytes()[offset..];
        Self { start: slice.as_ptr(), length: slice.len(), _share: share }
    }
}

#[expect(unsafe_code, reason = "the driver reads the bytes through a raw pointer")]
// SAFETY: `start` and `length` describe a slice borrowed from the bytes that `_share` has a share
// of. Those sit behind an `Arc` in boxes of their own and have no interior mutability: bodies that
// were rendered whole never change; a request of a moving window, a page of a reply and the end of
// a head are written only by who holds their one share (`Arc::get_mut`). So the share held here
// keeps the bytes allocated, where they are and as they are until the driver gives the buffer back.
unsafe impl IoBuf for Lent {
    fn read_ptr(&self) -> *const u8 {
        self.start
    }

    fn bytes_init(&self) -> usize {
        self.length
    }
}
