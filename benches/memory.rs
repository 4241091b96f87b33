//! The most memory that another process has had, as the kernel counts it.
//!
//! The high-water mark of resident memory goes when a process ends, so it is looked at while the
//! process runs: what it took in the last milliseconds may be missing. Unknown is `None`.

use std::io::{Error, Result};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// How often a watched process is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// The most memory a process has had so far, in bytes; `None` once it has ended.
#[must_use]
pub fn high_water(process: u32) -> Option<u64> {
    high_water_in(&std::fs::read_to_string(format!("/proc/{process}/status")).ok()?)
}

/// The same, from the words of the kernel.
fn high_water_in(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1_024)
}

/// A thread that looks at a process until it ends.
#[derive(Debug)]
pub struct Watched(JoinHandle<Option<u64>>);

impl Watched {
    /// Begins to look at a process.
    ///
    /// # Errors
    /// When no thread can be had.
    pub fn begin(process: u32) -> Result<Self> {
        let watching = Builder::new().name("watching".to_owned()).spawn(move || {
            let mut peak = None;
            while let Some(bytes) = high_water(process) {
                peak = Some(bytes);
                #[expect(clippy::disallowed_methods, reason = "waits for another process")]
                std::thread::sleep(LOOK);
            }
            peak
        })?;
        Ok(Self(watching))
    }

    /// The most memory it has had, in bytes, once it has ended.
    ///
    /// # Errors
    /// When the thread panicked.
    pub fn end(self) -> Result<Option<u64>> {
        self.0.join().map_err(|_panic| Error::other("who watched the memory panicked"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_read_in_bytes() {
        assert_eq!(high_water_in("VmPeak:\t 9 kB\nVmHWM:\t    7 kB\n"), Some(7 * 1_024));
        assert_eq!(high_water_in("Name:\tx\nState:\tZ (zombie)\n"), None);
    }

    #[test]
    fn a_process_is_watched_until_it_ends() {
        let child = std::process::Command::new("sleep").arg("0.2").spawn();
        let mut child = child.expect("a program of every system");
        let watched = Watched::begin(child.id()).expect("a thread");
        // Who has ended and is not waited for has no memory any more.
        let peak = watched.end().expect("no panic");
        assert!(child.wait().is_ok_and(|status| status.success()));
        assert!(peak.is_some_and(|bytes| bytes > 0), "{peak:?}");
    }
}
