//! An allocator that remembers when the pacing cores called it.
//!
//! One test binary installs it. It counts nothing but calls from threads that named themselves
//! pacing cores, and keeps the instants of the first few, so that a test can tell those between the
//! start barrier and the last end from those before and after. This is a named `unsafe` module.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use onbeat::clock::monotonic_ns;

/// Calls that are kept with their instant; more are only counted.
const KEPT: usize = 1 << 20;

static CALLS: AtomicUsize = AtomicUsize::new(0);
static INSTANTS: [AtomicI64; KEPT] = [const { AtomicI64::new(0) }; KEPT];

thread_local! {
    /// Whether this thread is a pacing core: unknown, no, yes.
    static CORE: Cell<u8> = const { Cell::new(UNKNOWN) };
}

const UNKNOWN: u8 = 0;
const NO: u8 = 1;
const YES: u8 = 2;
const ASKING: u8 = 3;

/// The system's allocator with a memory for the cores' calls.
pub struct Watching;

#[expect(unsafe_code, reason = "an allocator's interface is unsafe")]
// SAFETY: every call is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        note();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

fn note() {
    let core = CORE.try_with(|core| {
        if core.get() == UNKNOWN {
            // Asking for the name may allocate: that call must not ask again.
            core.set(ASKING);
            let named =
                std::thread::current().name().is_some_and(|name| name.starts_with("onbeat-core-"));
            core.set(if named { YES } else { NO });
        }
        core.get() == YES
    });
    if core == Ok(true) {
        let place = CALLS.fetch_add(1, Ordering::Relaxed);
        if let Some(instant) = INSTANTS.get(place) {
            instant.store(monotonic_ns(), Ordering::Relaxed);
        }
    }
}

/// Calls the cores made between two instants of the monotonic clock.
///
/// # Panics
/// When there were more calls than are kept: the count would be wrong.
#[must_use]
pub fn calls_between(from_ns: i64, to_ns: i64) -> usize {
    let calls = CALLS.load(Ordering::Relaxed);
    assert!(calls <= KEPT, "{calls} calls do not fit; keep more");
    INSTANTS[..calls]
        .iter()
        .map(|instant| instant.load(Ordering::Relaxed))
        .filter(|instant| (from_ns..=to_ns).contains(instant))
        .count()
}

/// Calls the cores made so far: proof that the watching works.
#[must_use]
pub fn calls() -> usize {
    CALLS.load(Ordering::Relaxed)
}
