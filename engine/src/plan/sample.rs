//! `--trace-session-sample-ratio`: some of the sessions, the very ones that AIPerf keeps.
//!
//! Whole sessions are kept or left out, each by a draw of its own. The draws are those of AIPerf
//! 0.13 for the same seed, and so of CPython's `random`: sessions that the file names are drawn in
//! order of their first time and then their name; if none of them is kept, one is chosen; rows
//! without a session are drawn after them, in file order.

use std::cmp::Ordering;

use onbeat_shared::trace::Trace;
use onbeat_shared::units::SessionIndex;

use crate::plan::twister::Twister;

/// What AIPerf derives this stream's seed from, beside the run's own.
const STREAM: &str = "dataset.loader.baseten_trace.session_sampling";

/// A share above 0 and below 1, in draws of 53 bits: those below it are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share(u64);

impl Share {
    /// The share that is nearest to `ratio` as a double; `None` when it is all of them.
    ///
    /// # Errors
    /// When it is not above 0, or above 1.
    pub fn of(ratio: f64) -> Result<Option<Self>, &'static str> {
        if !(ratio > 0.0 && ratio <= 1.0) {
            return Err("not above 0 and at most 1");
        }
        // A draw is a whole number of 53 bits over 2^53: scaling by a power of two is exact.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 2^53")]
        let below = (ratio * (1_u64 << 53) as f64).ceil() as u64;
        Ok((ratio < 1.0).then_some(Self(below)))
    }

    /// Whether the next draw is inside the share.
    pub(crate) fn takes(self, draws: &mut Twister) -> bool {
        draws.draw() < self.0
    }
}

/// For each session of the trace, whether it is kept.
pub(crate) fn kept(trace: &Trace, share: Share, seed: u64) -> Vec<bool> {
    let mut draws = Twister::of_stream(seed, STREAM);
    let mut kept = vec![false; trace.sessions.len()];
    let named = named_in_order(trace);
    for &session in &named {
        kept[session as usize] = share.takes(&mut draws);
    }
    if !named.is_empty() && !named.iter().any(|&session| kept[session as usize]) {
        kept[named[draws.below(named.len())] as usize] = true;
    }
    for record in &trace.records {
        if !trace.sessions.is_given(record.session) {
            kept[record.session.as_usize()] = share.takes(&mut draws);
        }
    }
    kept
}

/// The sessions that the file names, by their first time and then by their name.
fn named_in_order(trace: &Trace) -> Vec<u32> {
    let mut first = vec![i64::MAX; trace.sessions.len()];
    for record in &trace.records {
        let first = &mut first[record.session.as_usize()];
        *first = record.at.0.min(*first);
    }
    let sessions = 0..u32::try_from(first.len()).expect("no more sessions than rows");
    let mut named: Vec<u32> =
        sessions.filter(|&session| trace.sessions.is_given(SessionIndex(session))).collect();
    let name = |session: u32| trace.session_name(SessionIndex(session));
    named.sort_by(|&a, &b| match first[a as usize].cmp(&first[b as usize]) {
        Ordering::Equal => name(a).cmp(&name(b)),
        order => order,
    });
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_above_nothing_and_at_most_all() {
        assert_eq!(Share::of(0.5), Ok(Some(Share(1 << 52))));
        assert_eq!(Share::of(1.0), Ok(None));
        for ratio in [0.0, -0.5, 1.000_000_1, f64::NAN, f64::INFINITY] {
            assert!(Share::of(ratio).is_err(), "{ratio}");
        }
    }
}
