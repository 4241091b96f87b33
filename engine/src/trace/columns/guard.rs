//! The one way into the readers of Parquet and Arrow, which a damaged file can make panic.
//!
//! A panic in one of them means that the file says something its reader had not thought possible,
//! so it becomes a refusal of that file, and nothing is printed for it but that. Panics anywhere
//! else stay what they are. A reader that has panicked is not used again: whoever gets the refusal
//! drops it. What cannot be caught is a file that makes a reader ask for more memory than there is.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::Once;

use crate::trace::TraceError;
use crate::trace::columns::Kind;

thread_local! {
    /// Whether this thread is in a reader: then its panics are told by who called it.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Calls into a reader on behalf of the file at `path`.
///
/// # Errors
/// The call's own, or that the file is damaged when the reader panicked.
pub(crate) fn guarded<T>(
    path: &Path,
    kind: Kind,
    call: impl FnOnce() -> Result<T, TraceError>,
) -> Result<T, TraceError> {
    keep_quiet();
    let before = INSIDE.replace(true);
    let called = panic::catch_unwind(AssertUnwindSafe(call));
    INSIDE.set(before);
    called.unwrap_or_else(|panic| Err(damaged(path, kind, panic.as_ref())))
}

/// Puts a hook before the one there is, once, that says nothing of panics in a reader.
fn keep_quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            // A thread that is going away has no flag any more, and is in no reader.
            if !INSIDE.try_with(Cell::get).unwrap_or(false) {
                before(info);
            }
        }));
    });
}

fn damaged(path: &Path, kind: Kind, panic: &(dyn Any + Send)) -> TraceError {
    const CHARACTERS_MAX: usize = 200;
    let words = panic.downcast_ref::<&str>().copied();
    let words = words.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    // An assertion's words have several lines.
    let words = words.unwrap_or("no reason given").chars().take(CHARACTERS_MAX);
    let words: String = words.map(|it| if it.is_control() { ' ' } else { it }).collect();
    let name = kind.name();
    TraceError::file(
        path,
        format!(
            "cannot be read as {name} (its reader gave up: {words}): it is damaged; write it \
             again, or fetch it again and compare its size"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_unwind_in_every_profile() {
        let profiles = include_str!("../../../../Cargo.toml");
        assert!(profiles.contains("[profile.release]") && !profiles.contains("panic = "));
    }

    #[test]
    fn a_panic_in_a_reader_is_a_refusal_of_the_file() {
        let path = Path::new("x.parquet");
        for _ in 0..2 {
            let panicked = guarded(path, Kind::Parquet, || -> Result<(), _> {
                let nothing: &[u8] = std::hint::black_box(&[]);
                Err(TraceError::file(path, format!("{}", nothing[1])))
            });
            let words = panicked.expect_err("a panic").to_string();
            assert!(words.contains("x.parquet: cannot be read as Parquet ("), "{words}");
            assert!(words.contains("index out of bounds") && words.contains("is damaged"));
            assert!(!INSIDE.get(), "panics elsewhere are told as ever");
        }
        assert_eq!(guarded(path, Kind::Arrow, || Ok(5)).expect("no panic"), 5);
        let own = guarded(path, Kind::Arrow, || -> Result<(), _> {
            Err(TraceError::file(path, "is something else"))
        });
        assert_eq!(own.expect_err("its own").to_string(), "x.parquet: is something else");
    }
}
