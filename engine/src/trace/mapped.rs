//! A window of a file in memory that outlives what others do to the file.
//!
//! Reading a mapped page that is no longer there (the file was cut short, or its disk failed) is a
//! bus error, which would end the process. For windows made here it does not: the first such page,
//! and all behind it, become zeros at that instant, and the window says so afterwards
//! ([`Mapped::is_torn`]), so that whoever read zeros can throw them away. Every other bus error
//! goes where it went before. What was written into the file meanwhile shows in the window; that is
//! for its reader to find out ([`super::stamp`]). This is the only place that maps traces.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use memmap2::{Advice, Mmap, MmapOptions};

/// Windows at a time: one for each thread that reads a trace. Who finds no place reads instead.
const SLOTS_MAX: usize = 64;

/// Where a window lies, for the handler of bus errors, which may only read and write atomics.
struct Slot {
    taken: AtomicBool,
    /// Its first byte's address; 0 while there is no window.
    start: AtomicUsize,
    /// The address behind its last page.
    end: AtomicUsize,
    torn: AtomicBool,
}

static SLOTS: [Slot; SLOTS_MAX] = [const {
    Slot {
        taken: AtomicBool::new(false),
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        torn: AtomicBool::new(false),
    }
}; SLOTS_MAX];

/// What bus errors went to before; null before the handler is there.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

/// A mapped window of a file.
#[derive(Debug)]
pub(crate) struct Mapped {
    slot: usize,
    bytes: Mmap,
}

impl Mapped {
    /// Maps `len` bytes from `offset` on, which is a multiple of the page size; `None` if that
    /// cannot be done here, and the bytes have to be read instead.
    pub(crate) fn of(file: &File, offset: u64, len: usize) -> Option<Self> {
        if len == 0 || !handles_bus_errors() {
            return None;
        }
        let is_free = |slot: &Slot| !slot.taken.swap(true, Ordering::AcqRel);
        let slot = SLOTS.iter().position(is_free)?;
        let Ok(bytes) = map(file, offset, len) else {
            SLOTS[slot].taken.store(false, Ordering::Release);
            return None;
        };
        // Reading ahead is a hint: a system that refuses it reads all the same.
        let _refused = bytes.advise(Advice::Sequential);
        let start = bytes.as_ptr().addr();
        let page = rustix::param::page_size();
        let place = &SLOTS[slot];
        place.torn.store(false, Ordering::Relaxed);
        place.end.store((start + len).next_multiple_of(page), Ordering::Release);
        place.start.store(start, Ordering::Release);
        Some(Self { slot, bytes })
    }

    /// Whether some of its bytes were not there when they were read: zeros stand for them.
    pub(crate) fn is_torn(&self) -> bool {
        SLOTS[self.slot].torn.load(Ordering::Acquire)
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // Nobody reads it any more, so no fault can be on its way here.
        SLOTS[self.slot].start.store(0, Ordering::Release);
        SLOTS[self.slot].taken.store(false, Ordering::Release);
    }
}

#[expect(unsafe_code, reason = "a file can only be mapped through an unsafe call")]
fn map(file: &File, offset: u64, len: usize) -> io::Result<Mmap> {
    // SAFETY: the mapping is read-only and lives only while its window is parsed. The bytes may
    // change under us when someone writes to the file: who reads them looks for line ends, digests
    // them, or copies them out, a line at a time (`lines`) or whole (`whole`), and everything else
    // is assumed of the copy (UTF-8 above all), so a change gives a parse error or another number,
    // and no text that is none. Bytes that a cut has taken away are zeros by `on_bus_error`.
    unsafe { MmapOptions::new().offset(offset).len(len).map(file) }
}

/// Puts the handler in place, once; whether it is there.
#[expect(unsafe_code, reason = "a signal's handler can only be set through an unsafe call")]
fn handles_bus_errors() -> bool {
    static PUT: OnceLock<bool> = OnceLock::new();
    *PUT.get_or_init(|| {
        let mut before = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: a zeroed sigaction is a valid one. The handler only touches atomics and calls
        // mmap and sigaction, which it may do at any instant, and runs on the alternative stack
        // where the thread has one. `before` is written by the call if it succeeds, and is valid
        // as it is otherwise.
        unsafe {
            let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
            action.sa_sigaction = on_bus_error as *const () as libc::sighandler_t;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            if libc::sigaction(libc::SIGBUS, ptr::null(), before.as_mut_ptr()) != 0 {
                return false;
            }
            // Known before the handler can run; it lives as long as the process.
            BEFORE.store(Box::into_raw(Box::new(before.assume_init())), Ordering::Release);
            libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) == 0
        }
    })
}

/// Replaces what is missing of a window by zeros. A bus error elsewhere happens again, and goes
/// where it went before.
#[expect(unsafe_code, reason = "mapping over an address and reading a signal's cause are unsafe")]
extern "C" fn on_bus_error(
    _signal: libc::c_int,
    info: *mut libc::siginfo_t,
    _context: *mut libc::c_void,
) {
    // SAFETY: the kernel passes a valid description of the signal to a handler set with SA_SIGINFO.
    let at = unsafe { (*info).si_addr() }.addr();
    let page = rustix::param::page_size();
    for slot in &SLOTS {
        let start = slot.start.load(Ordering::Acquire);
        let end = slot.end.load(Ordering::Acquire);
        if start == 0 || !(start..end).contains(&at) {
            continue;
        }
        // Another thread's window came or went between the two: they are not of one window.
        if slot.start.load(Ordering::Acquire) != start {
            continue;
        }
        slot.torn.store(true, Ordering::Release);
        let first = at / page * page;
        // SAFETY: `first..end` is the rest of a mapping that its owner holds while it is read, so
        // nothing else lies there: start and end are of one window, since who takes a slot sets its
        // start to 0 before its end changes. Private pages of zeros take its place until
        // it is unmapped.
        let zeros = unsafe {
            libc::mmap(
                ptr::with_exposed_provenance_mut(first),
                end - first,
                libc::PROT_READ,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            )
        };
        if zeros != libc::MAP_FAILED {
            return;
        }
    }
    // SAFETY: `BEFORE` was set before this handler was, and is never freed.
    unsafe { libc::sigaction(libc::SIGBUS, BEFORE.load(Ordering::Acquire), ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(bytes).expect("written");
        file
    }

    #[test]
    fn a_window_has_the_bytes_of_its_place() {
        let page = rustix::param::page_size();
        let bytes: Vec<u8> = (0..=255).cycle().take(3 * page + 7).collect();
        let file = file(&bytes);
        let window = Mapped::of(file.as_file(), page as u64, 2 * page + 7).expect("maps");
        assert_eq!(&window[..], &bytes[page..]);
        assert!(!window.is_torn());
    }

    #[test]
    fn what_a_cut_takes_away_is_zeros_and_is_said() {
        let page = rustix::param::page_size();
        let file = file(&vec![7; 8 * page]);
        let window = Mapped::of(file.as_file(), 0, 8 * page).expect("maps");
        assert_eq!(window[8 * page - 1], 7);
        file.as_file().set_len(2 * page as u64).expect("shrinks");
        assert!(window[..2 * page].iter().all(|&byte| byte == 7) && !window.is_torn());
        assert!(window[2 * page..].iter().all(|&byte| byte == 0) && window.is_torn());
        // The place is free for others afterwards, and says nothing of those before.
        drop(window);
        let again = Mapped::of(file.as_file(), 0, 2 * page).expect("maps");
        assert!(again.iter().all(|&byte| byte == 7) && !again.is_torn());
    }

    #[test]
    fn many_windows_on_many_threads_are_torn_each_by_itself() {
        std::thread::scope(|scope| {
            for number in 0..8_u8 {
                scope.spawn(move || {
                    let page = rustix::param::page_size();
                    let file = file(&vec![number + 1; 4 * page]);
                    let window = Mapped::of(file.as_file(), 0, 4 * page).expect("maps");
                    let is_cut = number % 2 == 0;
                    if is_cut {
                        file.as_file().set_len(0).expect("shrinks");
                    }
                    let sum: usize = window.iter().map(|&byte| usize::from(byte)).sum();
                    let whole = usize::from(number + 1) * 4 * page;
                    assert_eq!((sum, window.is_torn()), (if is_cut { 0 } else { whole }, is_cut));
                });
            }
        });
    }
}
