//! The numbers that goals compare, side by side for a whole run, so that a goal can be moved and
//! every count follows within milliseconds.
//!
//! A [`Column`] is made once for each kind of goal, a [`Group`] once for each choice of requests.
//! A [`Tally`] then counts what [`super::slo::Attainment`] counts request by request, with the same
//! result, and what it does not: successful requests that lack the number, and those that miss one
//! goal and meet all others. It reads nothing but columns.

use super::goal::GoalKind;
use super::latency::count;
use super::slo::{counts, failed, was_cut_off};
use super::throughput::{Window, per_second};
use crate::run::Run;

/// The number that goals of one kind compare, for every request of a run.
#[derive(Clone, Debug)]
pub struct Column {
    kind: GoalKind,
    is_lower: bool,
    /// `NaN`, which meets nothing, for a request that did not succeed or lacks the number.
    values: Box<[f64]>,
}

impl Column {
    /// Of every request; `effective` counts the wait for the sending into TTFT.
    #[must_use]
    pub fn of(run: &Run, kind: GoalKind, effective: bool) -> Self {
        let value = |i: usize| {
            let found = run.requests.is_ok(i).then(|| kind.value(run, i, effective));
            found.flatten().unwrap_or(f64::NAN)
        };
        let values = (0..run.requests.len()).map(value).collect();
        Self { kind, is_lower: kind.has_lower_limit(), values }
    }

    /// On what.
    #[must_use]
    pub const fn kind(&self) -> GoalKind {
        self.kind
    }

    /// The number of request `i`, in the kind's unit; `None` if it has none or did not succeed. A
    /// decode that is too short to be slow counts as infinitely fast.
    #[must_use]
    pub fn value(&self, i: usize) -> Option<f64> {
        Some(self.values[i]).filter(|value| !value.is_nan())
    }

    /// Whether request `i` succeeded and meets this limit.
    #[must_use]
    #[inline]
    pub fn is_met(&self, i: usize, limit: f64) -> bool {
        let value = self.values[i];
        if self.is_lower { value >= limit } else { value <= limit }
    }

    /// Sets a bit in the mask of each request that misses the limit.
    fn mark_missed(&self, requests: &[u32], limit: f64, bit: u32, masks: &mut [u32]) {
        let values = &self.values;
        let pairs = requests.iter().zip(masks);
        // The direction is asked once, not for each request.
        if self.is_lower {
            for (&i, mask) in pairs {
                let is_met = values[i as usize] >= limit;
                *mask |= u32::from(!is_met) * bit;
            }
        } else {
            for (&i, mask) in pairs {
                let is_met = values[i as usize] <= limit;
                *mask |= u32::from(!is_met) * bit;
            }
        }
    }
}

/// Chosen requests, as far as goals are concerned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// Requests that count in shares.
    pub of: u64,
    /// Of these, requests that ended by themselves without success.
    pub failed: u64,
    /// Of these, requests that the plan cancelled.
    pub cancelled: u64,
    /// Requests that were cut off, which do not count.
    pub cut_off: u64,
    /// First sending to last end, over all outcomes: what rates divide by.
    pub seconds: Option<f64>,
    /// The successful ones' places in the plan, ascending.
    pub successful: Box<[u32]>,
}

impl Group {
    /// These requests of a run, ascending. A place beyond `u32` is in no run.
    #[must_use]
    pub fn of(run: &Run, requests: impl IntoIterator<Item = usize>) -> Self {
        let mut group = Self::default();
        let mut successful = Vec::new();
        let mut window = None;
        for i in requests {
            let (counted, failed) = (counts(run, i), failed(run, i));
            let succeeded = run.requests.is_ok(i);
            group.of += u64::from(counted);
            group.failed += u64::from(failed);
            group.cancelled += u64::from(counted && !failed && !succeeded);
            group.cut_off += u64::from(was_cut_off(run, i));
            if succeeded {
                successful.extend(u32::try_from(i));
            }
            window = Window::with(window, run, i);
        }
        group.successful = successful.into();
        group.seconds = window.and_then(Window::seconds);
        group
    }

    /// So many of the requests that count, as a share; `None` if none counts.
    #[must_use]
    pub fn share(&self, requests: u64) -> Option<f64> {
        (self.of > 0).then(|| count(requests) / count(self.of))
    }

    /// So many requests per second of the group's time; `None` where that has no length, or none
    /// of the requests counts.
    #[must_use]
    pub fn rate(&self, requests: u64) -> Option<f64> {
        if self.of == 0 {
            return None;
        }
        per_second(Some(requests), self.seconds)
    }
}

/// A goal to be counted: its numbers and its limit.
pub type Limited<'a> = (&'a Column, f64);

/// How many successful requests of a group meet goals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Those that meet each goal, in the goals' order.
    pub met: Vec<u64>,
    /// Those that lack the number and so miss it.
    pub unknown: Vec<u64>,
    /// Those that miss this goal and meet all others.
    pub alone: Vec<u64>,
    /// Those that meet all.
    pub good: u64,
}

/// Requests that are looked at together, so that what each misses stays close at hand.
const BATCH: usize = 1024;

impl Tally {
    /// Counts over a group, goal by goal and without a branch on what a request meets, which no
    /// processor could foresee.
    ///
    /// # Panics
    /// If there are more than 32 goals; there are fewer kinds of them.
    #[must_use]
    pub fn of(group: &Group, goals: &[Limited<'_>]) -> Self {
        assert!(goals.len() <= 32, "there are fewer kinds of goals");
        let none = || vec![0; goals.len()];
        let mut tally = Self { met: none(), unknown: none(), alone: none(), good: 0 };
        let mut masks = [0_u32; BATCH];
        for batch in group.successful.chunks(BATCH) {
            // One bit for each goal that a request misses.
            let masks = &mut masks[..batch.len()];
            masks.fill(0);
            for (place, &(column, limit)) in goals.iter().enumerate() {
                column.mark_missed(batch, limit, 1 << place, masks);
                let lacks = |&&i: &&u32| column.values[i as usize].is_nan();
                tally.unknown[place] += batch.iter().filter(lacks).count() as u64;
            }
            tally.good += masks.iter().filter(|&&mask| mask == 0).count() as u64;
            for place in 0..goals.len() {
                let bit = 1 << place;
                tally.met[place] += masks.iter().filter(|&&mask| mask & bit == 0).count() as u64;
                tally.alone[place] += masks.iter().filter(|&&mask| mask == bit).count() as u64;
            }
        }
        tally
    }
}

/// Whether a successful request meets all goals.
#[must_use]
#[inline]
pub fn meets_all(goals: &[Limited<'_>], i: usize) -> bool {
    // All of them are looked at, as no processor could foresee which is the first to be missed.
    goals.iter().fold(true, |good, &(column, limit)| good & column.is_met(i, limit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::sample::{self, Sample};
    use crate::log::{Class, sample_users};
    use crate::metrics::slo::{Attainment, Goals};
    use crate::metrics::{ReportOptions, Selection, report};
    use crate::units::RunNanos;

    const MS: i64 = 1_000_000;

    /// What a tally says against what looking at each request says.
    fn agrees(run: &Run, selection: &Selection<'_>, text: &str) {
        let goals = Goals::parse(text).expect("goals");
        let columns = |effective| -> Vec<Column> {
            goals.list().iter().map(|goal| Column::of(run, goal.kind, effective)).collect()
        };
        let limited = |columns: &[Column], tally: &dyn Fn(&[Limited<'_>]) -> u64| {
            let limits = goals.list().iter().map(|goal| goal.limit);
            tally(&columns.iter().zip(limits).collect::<Vec<_>>())
        };
        let group = Group::of(run, selection.requests());
        let expected = Attainment::of(selection, &goals);
        assert_eq!((group.of, group.cut_off), (expected.of, expected.cut_off), "{text}");
        let plain = columns(false);
        let limits: Vec<_> = plain.iter().zip(goals.list().iter().map(|goal| goal.limit)).collect();
        let tally = Tally::of(&group, &limits);
        assert_eq!((&tally.met, tally.good), (&expected.met, expected.good), "{text}");
        let effective = limited(&columns(true), &|goals| Tally::of(&group, goals).good);
        assert_eq!(effective, expected.effective, "{text}");
        let all = group.successful.iter().filter(|&&i| meets_all(&limits, i as usize)).count();
        assert_eq!(all as u64, tally.good, "{text}");
        for (place, goal) in goals.list().iter().enumerate() {
            let lacks = |&&i: &&u32| goal.kind.value(run, i as usize, false).is_none();
            let lacking = group.successful.iter().filter(lacks).count();
            assert_eq!(tally.unknown[place], lacking as u64, "{text}");
            let mut others = limits.clone();
            others.remove(place);
            let without = Tally::of(&group, &others).good;
            assert_eq!(without, tally.good + tally.alone[place], "{text}: what it alone costs");
        }
    }

    #[test]
    fn tallies_agree_with_looking_at_each_request() {
        let plain = Run::read(&sample::log(11, 1_500)).expect("a log");
        let users = Run::read(&sample_users::log(3, 8)).expect("a log");
        for run in [&plain, &users] {
            for range in [None, Some((RunNanos(2_000 * MS), RunNanos(5_000 * MS)))] {
                let selection = Selection::new(run, range);
                for text in [
                    "",
                    "ttft:20",
                    "ttft:45 itl:10.5 e2e:300",
                    "decode_tps:95 ttft:30",
                    "cached_tokens:500 longest_icl:12 output_mismatch_pct:1",
                    "output_token_throughput_per_user:90 itl:1000 first_byte:50 ntpot:14",
                ] {
                    agrees(run, &selection, text);
                }
            }
        }
    }

    #[test]
    fn a_group_divides_as_the_report_does() {
        let run = Run::read(&sample::log(5, 300)).expect("a log");
        let slo = Goals::parse("ttft:30 e2e:400").expect("goals");
        let columns: Vec<_> =
            slo.list().iter().map(|goal| Column::of(&run, goal.kind, false)).collect();
        let limited: Vec<_> =
            columns.iter().zip(slo.list().iter().map(|goal| goal.limit)).collect();
        let range = Some((RunNanos(0), RunNanos(3_000 * MS)));
        let group = Group::of(&run, Selection::new(&run, range).requests());
        let tally = Tally::of(&group, &limited);
        let slo = Some(slo);
        let report = report(&run, &ReportOptions { range, slo, ..ReportOptions::default() }).slo;
        assert_eq!(group.share(tally.good), report.goodput_share);
        assert_eq!(group.rate(tally.good), report.goodput_rps);
        assert!(group.rate(tally.good).is_some_and(|rate| rate > 0.0));
        assert_eq!(Some(group.of), report.of_requests);
    }

    #[test]
    fn who_counts_and_who_does_not() {
        let mut sample = Sample::new();
        for (k, class) in [Class::Ok, Class::Http5xx, Class::CancelledByPlan, Class::CutAtEnd]
            .into_iter()
            .enumerate()
        {
            let sent = i64::try_from(k).expect("small") * MS;
            let request = sample.send(sent);
            sample.chunks(request, &[sent + MS, sent + 2 * MS]);
            sample.done(request, sent + 3 * MS, class);
        }
        let run = Run::read(&sample.bytes()).expect("a log");
        let group = Group::of(&run, 0..run.requests.len());
        assert_eq!((group.of, group.failed, group.cancelled, group.cut_off), (3, 1, 1, 1));
        assert_eq!(*group.successful, [0]);
        assert_eq!(group.seconds, Some(0.006));
        let nobody = Group::of(&run, []);
        assert_eq!((nobody.share(0), nobody.rate(0)), (None, None), "no requests have no share");
    }

    #[test]
    fn what_lacks_the_number_misses_and_is_told_apart() {
        let mut sample = Sample::new();
        // One token only: it has a TTFT and no time between tokens.
        let request = sample.send(0);
        sample.chunks(request, &[MS]);
        sample.done(request, MS, Class::Ok);
        let run = Run::read(&sample.bytes()).expect("a log");
        let kinds = ["ttft", "itl"].map(|name| GoalKind::from_name(name).expect("a name"));
        let columns = kinds.map(|kind| Column::of(&run, kind, false));
        let group = Group::of(&run, 0..run.requests.len());
        let tally = Tally::of(&group, &[(&columns[0], 5.0), (&columns[1], 5.0)]);
        assert_eq!((tally.met, tally.unknown), (vec![1, 0], vec![0, 1]));
        assert_eq!((tally.alone, tally.good), (vec![0, 1], 0));
    }
}
