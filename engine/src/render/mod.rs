//! Plan + trace → the bytes of every request, before the first one leaves.
//!
//! A request is head + slices + tail. The text of a block is kept once however many requests share
//! it, neighbouring slices are joined, and no request has more than
//! [`WRITE_PARTS_MAX`](crate::limits::WRITE_PARTS_MAX) parts. The bytes depend on the trace, the plan and the options only, never on
//! the number of threads that rendered them. What does not fit the budget is refused here, with the
//! number of bytes it needs; nothing is rendered after zero.

pub mod error;
pub mod options;
pub mod secret;

use onbeat_shared::units::RequestIndex;

pub use crate::render::error::RenderError;
pub use crate::render::options::{Destination, Endpoint, RenderOptions};
pub use crate::render::secret::Secret;

/// Where one slice of a request lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    chunk: u32,
    start: u32,
    len: u32,
}

/// The bytes of all requests of a plan.
#[derive(Debug)]
pub struct Bodies {
    chunks: Vec<Box<[u8]>>,
    parts: Vec<Part>,
    /// Where each request's parts start, and one past the last request's.
    first_part: Vec<u64>,
    body_bytes: Vec<u64>,
}

impl Bodies {
    /// The whole HTTP request, head first, in the slices a vectored write takes.
    ///
    /// # Panics
    /// When the plan has no such request.
    pub fn parts(&self, request: RequestIndex) -> impl ExactSizeIterator<Item = &[u8]> {
        self.parts_of(request).iter().map(|part| {
            let start = part.start as usize;
            &self.chunks[part.chunk as usize][start..start + part.len as usize]
        })
    }

    /// How many slices [`Bodies::parts`] yields: from 1 to
    /// [`WRITE_PARTS_MAX`](crate::limits::WRITE_PARTS_MAX).
    #[must_use]
    pub fn part_count(&self, request: RequestIndex) -> usize {
        self.parts_of(request).len()
    }

    /// Bytes of head and body together.
    #[must_use]
    pub fn request_bytes(&self, request: RequestIndex) -> u64 {
        self.parts_of(request).iter().map(|part| u64::from(part.len)).sum()
    }

    /// Bytes of the body alone: the request's `Content-Length`.
    #[must_use]
    pub fn body_bytes(&self, request: RequestIndex) -> u64 {
        self.body_bytes[request.as_usize()]
    }

    fn parts_of(&self, request: RequestIndex) -> &[Part] {
        let at = |place: usize| {
            usize::try_from(self.first_part[place]).expect("parts in memory are addressed by usize")
        };
        &self.parts[at(request.as_usize())..at(request.as_usize() + 1)]
    }
}
