//! What a verdict on lateness leaves out, and the words that say so beside it.
//!
//! A request whose lateness a host stall explains says nothing about the sender, so the verdict is
//! one on the others. Of a busy machine these can be few, and then "held" alone would promise what
//! was not looked at. It does not decide whether a schedule held: [`super::verdict`] does.

use serde::Serialize;

use super::latency::count;
use super::schedule::LatenessStatistics;
use crate::counted::{counted, grouped};
use crate::quantity::duration;

/// The share above which outputs name them beside the verdict: what is judged is a 99th
/// percentile, which one request in a hundred cannot move.
const SHARE_MAX: f64 = 0.01;

/// Requests whose lateness a host stall explains: the verdict on lateness leaves them out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LeftOut {
    /// How many.
    pub requests: u64,
    /// Of how many: those that left.
    pub of_requests: u64,
    /// Their share of these; null if none left.
    pub share: Option<f64>,
    /// The largest lateness among them, in microseconds; null if there is none.
    pub max_lateness_us: Option<f64>,
    /// Whether the verdict says less than it seems to: they are more than 1 %, and the latest of
    /// them left later than the limit. Outputs then name them beside it.
    pub is_material: bool,
}

impl LeftOut {
    /// Of requests of that lateness; the limit is in microseconds.
    #[must_use]
    pub fn of(lateness: &LatenessStatistics, max_lateness_us: u64) -> Self {
        let requests = lateness.in_stalls.map_or(0, |late| late.count);
        let of_requests = lateness.all.map_or(0, |late| late.count);
        let share = (of_requests > 0).then(|| count(requests) / count(of_requests));
        let latest = lateness.in_stalls.map(|late| late.max);
        let is_many = share.is_some_and(|share| share > SHARE_MAX);
        let is_late = latest.is_some_and(|latest| latest > count(max_lateness_us));
        Self {
            requests,
            of_requests,
            share,
            max_lateness_us: latest,
            is_material: is_many && is_late,
        }
    }

    /// What follows the word "held" or "not held", with what separates it from that; nothing where
    /// the verdict is as good as one on all requests.
    #[must_use]
    pub fn words(&self, held: bool) -> String {
        let (true, Some(share), Some(latest)) =
            (self.is_material, self.share, self.max_lateness_us)
        else {
            return String::new();
        };
        let latest = duration(latest * 1e3);
        let how = format!("({:.1} %, up to {latest} late)", share * 100.0);
        let (out, all) = (grouped(self.requests), counted(self.of_requests, "request"));
        if held {
            let judged = grouped(self.of_requests.saturating_sub(self.requests));
            format!(" for {judged} of {all}; the host kept the core from the other {out} {how}")
        } else {
            format!("; not judged are {out} of {all} from which the host kept the core {how}")
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::log::sample::Sample;
    use crate::log::{Class, Record};
    use crate::metrics::report::Report;
    use crate::metrics::{ReportOptions, report};
    use crate::run::Run;
    use crate::units::{CoreIndex, RunNanos};

    const MS: i64 = 1_000_000;

    /// Requests 100 ms apart, of which the first so many leave so late, in a stall of their core.
    fn stalled(requests: i64, hit: i64, late_ns: i64) -> Report {
        let mut sample = Sample::new();
        for k in 0..requests {
            let due = k * 100 * MS;
            let request = sample.plan(due);
            let late = if k < hit { late_ns } else { 20_000 };
            sample.dispatch(request, due, due + late);
            sample.done(request, due + 90 * MS, Class::Ok);
            if k < hit {
                let length_ns = late_ns.cast_unsigned();
                sample.push(CoreIndex(0), Record::Stall { start: RunNanos(due), length_ns });
            }
        }
        report(&Run::read(&sample.bytes()).expect("a log"), &ReportOptions::default())
    }

    #[test]
    fn a_schedule_that_held_for_half_of_its_requests_says_so() {
        let half = stalled(200, 98, 50 * MS).verdict;
        assert!(half.schedule_held, "{half:?}");
        assert_eq!(
            half.left_out.words(true),
            " for 102 of 200 requests; the host kept the core from the other 98 (49.0 %, up to 50 \
             ms late)"
        );
        let out = half.left_out;
        assert_eq!((out.requests, out.of_requests, out.share), (98, 200, Some(0.49)));
        assert_eq!(
            out.words(false),
            "; not judged are 98 of 200 requests from which the host kept the core (49.0 %, up to \
             50 ms late)"
        );
    }

    #[test]
    fn few_of_them_or_none_that_is_late_is_no_reservation() {
        for (hit, late_ns) in [(0, MS), (2, 50 * MS), (98, MS)] {
            let found = stalled(200, hit, late_ns).verdict;
            let count = hit.cast_unsigned();
            assert!(found.schedule_held && found.left_out.requests == count, "{found:?}");
            assert_eq!(found.left_out.words(true), "", "{hit} of 200, {late_ns} ns");
        }
        assert_ne!(stalled(200, 3, 50 * MS).verdict.left_out.words(true), "");
        let none = stalled(0, 0, 0).verdict.left_out;
        assert_eq!((none.share, none.max_lateness_us), (None, None), "nothing left");
    }
}
