//! Which requests of one plan came to their end in one run only, because the other run ended first.
//!
//! A run that was stopped, killed, or whose time was up has no values of what was still to come,
//! and percentiles of what it did reach are of other requests than those of a whole run: better or
//! worse by what is missing. So such requests are left out of both runs. One that neither run came
//! to, and one that failed by itself, are not: these are alike, or what a server did.

use crate::log::Class;
use crate::run::{End, Run};

/// For each request, whether both runs of one plan came to its end, or neither.
#[must_use]
pub fn matched(base: &Run, new: &Run) -> Vec<bool> {
    let count = base.requests.len().min(new.requests.len());
    (0..count).map(|i| was_cut(base, i) == was_cut(new, i)).collect()
}

/// How many requests are left out, and how many of these each run lacks.
pub(super) fn lacking(base: &Run, new: &Run) -> [u64; 2] {
    let matched = matched(base, new);
    let lacks = |run: &Run| {
        let apart = matched.iter().enumerate().filter(|(_, matched)| !**matched);
        apart.filter(|(i, _)| was_cut(run, *i)).count() as u64
    };
    [lacks(base), lacks(new)]
}

/// The values of requests that are matched, or nothing in their places; all of them without a list.
pub(super) fn kept<T: Default>(mut values: Vec<T>, matched: Option<&[bool]>) -> Vec<T> {
    for (value, _) in values.iter_mut().zip(matched.unwrap_or_default()).filter(|(_, is)| !**is) {
        *value = T::default();
    }
    values
}

/// Whether the end of the run, and not the server or the request itself, decided what became of it.
fn was_cut(run: &Run, i: usize) -> bool {
    match run.requests.end(i) {
        End::Known(class) => matches!(
            class,
            Class::Interrupted | Class::CutAtEnd | Class::NotReached | Class::PredecessorPending
        ),
        End::Open | End::NeverSent | End::NotReached | End::Lost => true,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Against, Subject, Verdict, against};
    use super::*;
    use crate::log::sample::Sample;
    use crate::metrics::gate::{Gate, Judged, Judging, judge};
    use crate::metrics::report::Report;
    use crate::metrics::slo::Goals;
    use crate::metrics::{ReportOptions, report};

    const MS: i64 = 1_000_000;

    /// A run of 200 requests whose later ones take longer, stopped after so many; the one before
    /// was in flight.
    fn stopped(after: i64, sha256: &str) -> (Run, Report) {
        let mut sample = Sample::new();
        sample.manifest.trace.sha256 = sha256.to_owned();
        for k in 0..200 {
            let request = sample.plan(k * MS);
            if k < after {
                sample.dispatch(request, k * MS, k * MS);
                sample.chunks(request, &[(2 * k + 20) * MS, (3 * k + 30) * MS]);
            }
            let class = match k {
                _ if k >= after => Class::NotReached,
                _ if k == after - 1 && after < 200 => Class::Interrupted,
                _ => Class::Ok,
            };
            sample.done(request, (3 * k + 31) * MS, class);
        }
        sample.interrupted = after < 200;
        let run = Run::read(&sample.bytes()).expect("a log");
        let numbers = report(&run, &ReportOptions::default());
        (run, numbers)
    }

    fn compared(
        base: &(Run, Report),
        new: &(Run, Report),
        gates: &[&str],
    ) -> (Against, Vec<Judged>) {
        fn subject<'a>(name: &'a str, of: &'a (Run, Report)) -> Subject<'a> {
            Subject { name, run: &of.0, report: &of.1 }
        }
        let found =
            against(subject("base.beat", base), subject("new.beat", new), &Goals::default());
        let gates: Vec<Gate> = gates.iter().map(|text| Gate::parse(text).expect(text)).collect();
        let judging = |name, of: &(Run, Report)| (name, of.1.clone());
        let (own, before) = (judging("new.beat", new), judging("base.beat", base));
        let own = Judging { name: own.0, report: &own.1 };
        let before = Judging { name: before.0, report: &before.1 };
        let judged = judge(&gates, own, Some((before, &found)), true);
        (found, judged)
    }

    #[test]
    fn what_one_run_did_not_come_to_makes_it_neither_better_nor_worse() {
        let (whole, part) = (stopped(200, "ab"), stopped(33, "ab"));
        for (base, new, lacks) in [(&whole, &part, [0, 168]), (&part, &whole, [168, 0])] {
            assert_eq!(lacking(&base.0, &new.0), lacks);
            let gates = ["ttft_ms.p90 > +1", "e2e_ms.p90 < -1", "error_rate > +0.01"];
            let (found, judged) = compared(base, new, &gates);
            assert_eq!((found.pairing.paired, found.pairing.unmatched), (true, 168));
            let words = &found.warnings[0];
            assert!(words.starts_with("168 of 200 requests are left out"), "{words}");
            assert!(words.contains("only the other 32 can be compared"), "{words}");
            for row in found.figures.iter().filter(|row| !row.unit.ends_with("/s")) {
                assert_eq!(row.base, row.new, "{row:?}");
                assert!(matches!(row.verdict, Verdict::Unclear | Verdict::Unknown), "{row:?}");
            }
            assert!(found.moved.iter().all(|moved| moved.test.p_value == 1.0), "{found:?}");
            for one in judged.iter().filter(|one| one.gate != "run finished") {
                assert!(!one.failed && one.words.contains("that both came to"), "{one}");
            }
        }
        // A rate is of all that a run sent, and says so.
        let (_, judged) = compared(&whole, &part, &["requests_per_s < -99%"]);
        let words = &judged.last().expect("a gate").words;
        assert!(words.contains("in base.beat, each of its whole run: "), "{words}");
        // What has no row is not known of these requests, and what is unknown does not pass.
        let (_, judged) = compared(&whole, &part, &["failures_as_infinite.ttft_ms.p90 > +900%"]);
        assert!(judged.last().is_some_and(|one| one.failed), "{judged:?}");
    }

    #[test]
    fn runs_that_came_to_the_same_end_lose_nothing() {
        for after in [33, 200] {
            let one = stopped(after, "ab");
            let (found, _) = compared(&one, &one, &[]);
            assert_eq!(found.pairing.unmatched, 0);
            let out = |words: &String| words.contains("left out of figures");
            assert!(!found.warnings.iter().any(out), "{:?}", found.warnings);
        }
    }

    #[test]
    fn a_part_of_a_run_without_pairs_is_called_neither_better_nor_worse() {
        let (whole, part) = (stopped(200, "ab"), stopped(33, "cd"));
        let (found, _) = compared(&whole, &part, &[]);
        assert!(!found.pairing.paired);
        assert!(found.figures.iter().all(|row| row.verdict == Verdict::Unknown));
        assert!(found.warnings[0].contains("new.beat ended before all was sent"), "{found:?}");
        let (found, _) = compared(&whole, &stopped(200, "cd"), &[]);
        assert!(found.figures.iter().any(|row| row.verdict == Verdict::Unclear));
    }
}
