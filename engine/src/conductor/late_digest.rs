//! The digest of a trace that is still being computed when its run begins.
//!
//! It never runs on a CPU that sends: it keeps to the others, or waits for the run's end where
//! there are none. Then it is waited for, because the log is closed with it, unless the user wants
//! to go at once.

use super::Watch;
use crate::clock::monotonic_ns;
use crate::replayer::{Stop, affinity};
use crate::trace::Digesting;

/// Who waits longer than this is told what for.
const PATIENCE_NS: i64 = 500_000_000;

/// Keeps it off the CPUs that send.
pub(super) fn keep_off(digesting: &Digesting, cpus: &[u16]) {
    let Some(thread) = digesting.thread() else { return };
    digesting.hold(!affinity::keep_off(Some(thread), cpus).unwrap_or(false));
}

/// Waits for it; `None` where there is none to wait for, or none that is right, which is said.
pub(super) fn wait(digesting: Digesting, watch: &mut dyn Watch) -> Option<String> {
    if !digesting.is_open() {
        return None;
    }
    let begun_ns = monotonic_ns();
    let (mut told, mut left) = (false, false);
    let digest = digesting.wait(&mut || {
        if !told && monotonic_ns() - begun_ns > PATIENCE_NS {
            told = true;
            watch.say("the run is over; its trace is still read for the SHA-256 that names it");
        }
        left = watch.stop() == Stop::Now;
        !left
    });
    let why = match digest {
        Ok(Some(digest)) => return Some(digest),
        Ok(None) if left => "was not waited for".to_owned(),
        Ok(None) => "is unknown, because it was changed meanwhile".to_owned(),
        Err(error) => format!("is unknown ({error})"),
    };
    watch.say(&format!("the trace's SHA-256 {why}; the log does not name the file by it"));
    None
}
