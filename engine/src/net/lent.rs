//! A slice of the bodies lent to the driver for one asynchronous write.
//!
//! monoio takes buffers by value and may keep them until the kernel is done. The bodies live in one
//! shared arena, so what is handed over is a pointer into it together with the share that keeps the
//! arena alive. This is one of the engine's named `unsafe` modules.

use std::sync::Arc;

use monoio::buf::IoBuf;

use crate::render::Bodies;

/// Bytes of a request, kept alive while the kernel reads them.
#[derive(Debug)]
pub struct Lent {
    start: *const u8,
    length: usize,
    _owner: Arc<Bodies>,
}

impl Lent {
    /// Lends the slice that `pick` chooses from `owner`'s bytes.
    pub fn new(owner: &Arc<Bodies>, pick: impl FnOnce(&Bodies) -> &[u8]) -> Self {
        let slice = pick(owner);
        Self { start: slice.as_ptr(), length: slice.len(), _owner: Arc::clone(owner) }
    }
}

#[expect(unsafe_code, reason = "the driver reads the arena through a raw pointer")]
// SAFETY: `start` and `length` describe a slice borrowed from the bodies behind `_owner`. The
// bodies are never changed or moved after rendering (they sit behind an `Arc` and have no interior
// mutability), and the share held here keeps them allocated until the driver gives the buffer back.
unsafe impl IoBuf for Lent {
    fn read_ptr(&self) -> *const u8 {
        self.start
    }

    fn bytes_init(&self) -> usize {
        self.length
    }
}
