//! What the program says when the system has no memory left for it, instead of being aborted.
//!
//! An allocator that passes every call on to the system's and, when one is refused, ends the
//! process in order: words on stderr, exit code 1, and no log of a run that has not begun, which
//! other sudden ends take away, too. A run that has begun keeps what was written of its log. The
//! program installs it; a library's user need not. This is one of the engine's named `unsafe`
//! modules.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Mutex;

/// The log of a run that has not begun, which must not be left behind.
static UNBEGUN: Mutex<Option<CString>> = Mutex::new(None);

const FIRST: &[u8] = b"onbeat: out of memory: the system refused ";
const LAST: &[u8] = b" bytes more. The limit may be this process's own (to lift it: sudo prlimit \
      --as=unlimited --data=unlimited --pid $$), its control group's (memory.max), or the host's; a \
      smaller --render-budget or part of the trace takes less\n";

/// The system's allocator, with words for when it has nothing left.
#[derive(Debug)]
pub struct LastWords;

/// Takes the file at `path` away if the process ends all at once; `None`: takes nothing.
pub fn take_along(path: Option<&Path>) {
    let path = path.and_then(|path| CString::new(path.as_os_str().as_bytes()).ok());
    // Whoever holds it ends the process.
    let Ok(mut unbegun) = UNBEGUN.lock() else { return };
    let earlier = std::mem::replace(&mut *unbegun, path);
    drop(unbegun);
    drop(earlier);
}

/// Takes away what is to be taken along, for whoever ends the process now.
pub fn take_away() {
    let Ok(unbegun) = UNBEGUN.lock() else { return };
    if let Some(path) = &*unbegun {
        // It may be gone already.
        let _ = rustix::fs::unlink(path.as_c_str());
    }
}

#[expect(unsafe_code, reason = "an allocator's interface is unsafe")]
// SAFETY: every call is passed on unchanged to the system's allocator, and its answer to the
// caller, but for a refusal, after which nothing is returned.
unsafe impl GlobalAlloc for LastWords {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise is passed on.
        given(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise is passed on.
        given(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise is passed on.
        given(unsafe { System.realloc(pointer, layout, size) }, size)
    }
}

fn given(pointer: *mut u8, size: usize) -> *mut u8 {
    if pointer.is_null() {
        end(size);
    }
    pointer
}

/// Ends the process without taking memory.
#[cold]
#[expect(unsafe_code, reason = "nothing else ends a process without taking memory")]
fn end(size: usize) -> ! {
    if let Ok(unbegun) = UNBEGUN.try_lock()
        && let Some(path) = &*unbegun
    {
        // It may be gone already.
        let _ = rustix::fs::unlink(path.as_c_str());
    }
    let mut digits = [0; 20];
    for words in [FIRST, decimal(size, &mut digits), LAST] {
        // SAFETY: the words are read during the call, as many as they are.
        unsafe { libc::write(libc::STDERR_FILENO, words.as_ptr().cast(), words.len()) };
    }
    // SAFETY: it takes no argument that could be wrong, and runs nothing of ours.
    unsafe { libc::_exit(1) }
}

/// A number's digits, written at the end of `digits`.
fn decimal(mut number: usize, digits: &mut [u8; 20]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(number % 10).expect("a digit");
        number /= 10;
        if number == 0 {
            return &digits[at..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_without_memory() {
        for number in [0, 7, 10, 65_536, usize::MAX] {
            assert_eq!(decimal(number, &mut [0; 20]), number.to_string().as_bytes());
        }
    }

    #[test]
    fn what_there_is_is_given() {
        let layout = Layout::from_size_align(64, 8).expect("a layout");
        #[expect(unsafe_code, reason = "an allocator's interface is unsafe")]
        // SAFETY: the layout is not empty, and each pointer goes back once with its own layout.
        unsafe {
            let zeroed = LastWords.alloc_zeroed(layout);
            assert!(std::slice::from_raw_parts(zeroed, 64).iter().all(|&byte| byte == 0));
            let grown = LastWords.realloc(zeroed, layout, 4_096);
            LastWords.dealloc(grown, Layout::from_size_align(4_096, 8).expect("a layout"));
            LastWords.dealloc(LastWords.alloc(layout), layout);
        }
    }
}
