//! When a run that goes by a schedule is given up: after too many failures in a row, if the user
//! set a limit, and when nobody at the other end speaks HTTP/1, which no waiting mends.
//!
//! It looks at counters, so it is as quick as the conductor, and counts a row of failures from the
//! look that first saw it on: a request that ended well in the same moment begins a new row. A run
//! of users has a limit of its own, which its director keeps.

use onbeat_shared::counted::counted;

use crate::replayer::counters::Snapshot;

/// So many first answers of another protocol, and none of ours, are no accident.
const FOREIGN_MIN: u64 = 20;

/// How much failure is put up with.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Patience {
    limit: Option<u64>,
    well: u64,
    /// How many had failed when something last ended well.
    failed_before: u64,
}

impl Patience {
    /// Patience for so many failures in a row; `None`: for all.
    pub(super) fn new(limit: Option<u64>) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Why the run is to be given up, as of now, if it is.
    pub(super) fn look(&mut self, counters: &Snapshot) -> Option<String> {
        // Counters are read one after the other while they change.
        let well = counters.ended.saturating_sub(counters.failed);
        if well > self.well {
            (self.well, self.failed_before) = (well, counters.failed);
        }
        if counters.foreign >= FOREIGN_MIN && counters.foreign == counters.ended {
            return Some(format!(
                "each of the first {} was no HTTP/1: whoever listens there speaks another \
                 protocol; see that --url names the right port and the right scheme",
                counted(counters.foreign, "answer")
            ));
        }
        let row = counters.failed.saturating_sub(self.failed_before);
        let limit = self.limit.filter(|&limit| row >= limit)?;
        Some(format!(
            "{} failed in a row and none succeeded meanwhile (--stop-after-failures {limit})",
            counted(row, "request")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(ended: u64, failed: u64, foreign: u64) -> Snapshot {
        Snapshot { ended, failed, foreign, ..Snapshot::default() }
    }

    #[test]
    fn a_row_of_failures_is_broken_by_a_success() {
        let mut patience = Patience::new(Some(10));
        assert_eq!(patience.look(&seen(9, 9, 0)), None);
        assert_eq!(patience.look(&seen(19, 18, 0)), None, "one ended well in between");
        assert_eq!(patience.look(&seen(28, 27, 0)), None);
        let words = patience.look(&seen(29, 28, 0)).expect("ten in a row");
        assert!(words.starts_with("10 requests failed in a row"), "{words}");
        assert_eq!(Patience::new(None).look(&seen(9_000, 9_000, 0)), None, "no limit");
    }

    #[test]
    fn a_port_of_another_protocol_is_given_up_at_once_and_a_mixed_one_is_not() {
        let mut patience = Patience::new(None);
        assert_eq!(patience.look(&seen(19, 19, 19)), None);
        assert!(patience.look(&seen(20, 20, 20)).is_some());
        assert_eq!(patience.look(&seen(41, 40, 40)), None, "one was an answer");
        assert_eq!(patience.look(&seen(60, 60, 59)), None, "one failed otherwise");
    }
}
