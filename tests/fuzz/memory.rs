//! Counts what is allocated, so that an input that asks for too much memory is a finding.
//!
//! The `fuzz` program installs [`Counting`]; where it is not installed, nothing is counted and
//! [`within`] only calls. The count is of the whole process, so several threads share the bound.
//! This is a named `unsafe` module.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Most memory that judging one input may take, above what there was.
pub const BYTES_MAX: usize = 256 << 20;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, with a count of bytes.
pub struct Counting;

#[expect(unsafe_code, reason = "an allocator's interface is unsafe")]
// SAFETY: every call is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size);
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Calls, and says so when more than [`BYTES_MAX`] was taken meanwhile.
///
/// # Errors
/// The call's own, or that it took too much.
pub fn within<T>(call: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let result = call();
    let taken = PEAK.load(Ordering::Relaxed).saturating_sub(before);
    if taken > BYTES_MAX { Err(format!("it takes {} MiB", taken >> 20)) } else { result }
}

fn add(bytes: usize) {
    let now = NOW.fetch_add(bytes, Ordering::Relaxed) + bytes;
    if now > PEAK.load(Ordering::Relaxed) {
        PEAK.fetch_max(now, Ordering::Relaxed);
    }
}
