//! What differs between two runs, by how much, and whether that is more than chance.
//!
//! Requests are paired where both runs sent the same plan, else each run's stand for themselves:
//! what decides that, the intervals and the rank tests are `onbeat_shared::metrics::compare`'s, as
//! for `onbeat compare`. Of a selection, requests that are not chosen have no values; here figures
//! only get their words.

use std::sync::Arc;

use onbeat_shared::metrics::{
    ReportOptions,
    bootstrap::{Difference, Figure},
    compare::{
        self, Differs, Good, Parts, RankTest, Ratio, Values, Verdict, pairing, ratio_difference,
    },
    lateness,
    slo::{self, Goals},
};
use onbeat_shared::run::Run;

use super::values;
use crate::fields::{Field, Measure};
use crate::opened::OpenedRun;
use crate::quantity::{self, TimeUnit};
use crate::selection::Selection;
use crate::series::number::Number;

/// Differences of the shown run from the one that it is held against.
#[derive(Clone, Debug, PartialEq)]
pub struct Deltas {
    /// Whether requests are paired, how many, and why not.
    pub pairing: String,
    /// Figures, in the order of the table.
    pub rows: Vec<Delta>,
    /// Whether values moved at all.
    pub moved: Vec<Moved>,
    /// What was run that differs.
    pub setup: Vec<Differs>,
}

/// Whether the values of a number moved, by their ranks alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Its name.
    pub name: &'static str,
    /// Of how many pairs the shown run has the larger value.
    pub larger: String,
    /// How often chance alone would give as much.
    pub chance: String,
    /// Whose test that is.
    pub test: &'static str,
}

impl Moved {
    fn of(name: &'static str, found: RankTest) -> Self {
        let chance = match found.p_value {
            p if p < 1e-4 => "p < 0.0001".to_owned(),
            p => format!("p = {p:.4}"),
        };
        let test = match found.test {
            "wilcoxon_signed_rank" => "Wilcoxon, by request",
            _ => "Mann and Whitney",
        };
        Self { name, larger: quantity::percent(found.larger_share), chance, test }
    }
}

/// A figure of two runs. What cannot be told is `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct Delta {
    /// Its name.
    pub name: String,
    /// Of the run that the shown one is held against.
    pub baseline: Option<String>,
    /// Of the shown run.
    pub shown: Option<String>,
    /// Shown less baseline.
    pub change: Option<String>,
    /// The same as a share of the baseline.
    pub relative: Option<String>,
    /// The 95 % interval of the change.
    pub interval: Option<String>,
    /// Why there is none although requests have values: they are too few.
    pub too_few: Option<String>,
    /// What that means.
    pub verdict: Verdict,
    /// The same in a word.
    pub word: &'static str,
}

/// Lateness of requests that no host stall explains.
const OUTSIDE_STALLS: &str = "late outside stalls";

/// Numbers of requests in the table, each with its figures.
const NUMBERS: &[(Field, &str, &[f64], Good)] = &[
    (Field::Ttft, "TTFT", &[0.5, 0.9, 0.99], Good::Less),
    (Field::Itl, "ITL", &[0.5, 0.9, 0.99], Good::Less),
    (Field::E2e, "end to end", &[0.5, 0.9, 0.99], Good::Less),
    (Field::Speed, "decode tokens/s", &[0.5], Good::More),
    (Field::CachedShare, "cached share", &[], Good::More),
    (Field::Input, "input tokens", &[], Good::Neither),
    (Field::Output, "output tokens", &[], Good::Neither),
];

impl Deltas {
    /// What differs of the selected requests.
    #[must_use]
    pub fn of(
        baseline: &OpenedRun,
        shown: &OpenedRun,
        selection: &Selection,
        goals: &Goals,
    ) -> Self {
        let pairing = pairing(&baseline.run, &shown.run);
        let both = Both {
            runs: [baseline, shown],
            chosen: [baseline, shown].map(|run| run.chosen(selection)),
            selection,
            paired: pairing.paired,
            matched: (pairing.unmatched > 0).then(|| compare::matched(&baseline.run, &shown.run)),
        };
        let (mut rows, mut moved) = (Vec::new(), Vec::new());
        for &(field, name, shares, good) in NUMBERS {
            let number = Number::Of(field);
            let values = both.values(number);
            let written = Written::of(number);
            moved.extend(values.moved().map(|found| Moved::of(name, found)));
            let mean = (shares.is_empty()).then_some((Figure::Mean, "mean".to_owned()));
            let quantiles = shares.iter().map(|&share| {
                (Figure::Quantile(share), format!("p{}", quantity::number(100.0 * share)))
            });
            for (figure, suffix) in mean.into_iter().chain(quantiles) {
                rows.push(Delta::of(format!("{name} {suffix}"), &values, figure, good, written));
            }
        }
        // As verdicts judge it: of a host's stalls, runs differ by chance.
        let late = both.values_of(&|opened, i| {
            let outside = lateness::in_stall(&opened.run, i) != Some(true);
            Number::Of(Field::Lateness).value(opened, i).filter(|_| outside)
        });
        moved.extend(late.moved().map(|found| Moved::of(OUTSIDE_STALLS, found)));
        let (name, figure) = (format!("{OUTSIDE_STALLS} p99"), Figure::Quantile(0.99));
        rows.push(Delta::of(name, &late, figure, Good::Less, Written::Time));
        let mut add_share = |name: &str, which: &dyn Fn(&Run, usize) -> bool| {
            let values = both.flags(which);
            let name = name.to_owned();
            rows.push(Delta::of(name, &values, Figure::Mean, Good::More, Written::Share));
        };
        add_share("succeeded", &|run, i| run.requests.is_ok(i));
        if !goals.list().is_empty() {
            add_share("met all goals", &|run, i| goals.is_good(run, i, false));
        }
        rows.extend(rates(&both, goals));
        let pairing = both.words(&pairing);
        Self { pairing, rows, moved, setup: compare::setup(&baseline.run, &shown.run) }
    }

    /// Which figures have no interval, and why.
    #[must_use]
    pub fn without_interval(&self) -> String {
        let mut few: Vec<(String, &str)> = Vec::new();
        for (row, why) in self.rows.iter().filter_map(|row| Some((row, row.too_few.as_deref()?))) {
            match few.iter_mut().find(|(_, known)| *known == why) {
                Some((names, _)) => *names += &format!(", {}", row.name),
                None => few.push((row.name.clone(), why)),
            }
        }
        let few = few.iter().map(|(names, why)| format!(" None of {names}: {why}."));
        format!("None of rates: a run has one of each.{}", few.collect::<String>())
    }
}

/// Two runs, the baseline first, and the requests of each that are looked at.
struct Both<'a> {
    runs: [&'a OpenedRun; 2],
    chosen: [Arc<[u32]>; 2],
    selection: &'a Selection,
    paired: bool,
    /// Of runs that did not come to the same requests, those that they did.
    matched: Option<Vec<bool>>,
}

impl Both<'_> {
    /// Whether requests are paired, for people.
    fn words(&self, pairing: &compare::Pairing) -> String {
        if !self.paired {
            let why = &pairing.why;
            return format!("Not paired, so each run's requests are drawn by themselves: {why}.");
        }
        let left = |opened: &OpenedRun, i: usize| opened.run.requests.was_sent(i).then_some(1.0);
        let [before, after] = [0, 1].map(|place| self.by_request(place, &left));
        let pairs = before.iter().zip(&after).filter(|(a, b)| a.is_some() && b.is_some()).count();
        let pairs = quantity::counted(pairs as u64, "pair");
        let [base, new] = self.runs.map(|opened| &opened.run);
        let unmatched = compare::unmatched_words(base, new, pairing);
        let unmatched = unmatched.map_or_else(String::new, |words| format!(" Mind: {words}."));
        format!("Paired by request, {pairs}: {}.{unmatched}", pairing.why)
    }

    /// A value of each request of a run that is looked at.
    fn by_request(
        &self,
        place: usize,
        value: &dyn Fn(&OpenedRun, usize) -> Option<f64>,
    ) -> Vec<Option<f64>> {
        let opened = self.runs[place];
        let mut values = vec![None; opened.run.requests.len()];
        for i in self.looked_at(place) {
            values[i] = value(opened, i);
        }
        values
    }

    /// The requests of a run that are chosen, and that both runs came to.
    fn looked_at(&self, place: usize) -> impl Iterator<Item = usize> + '_ {
        let is_matched =
            |i: &usize| self.matched.as_ref().is_none_or(|matched| matched.get(*i) == Some(&true));
        self.chosen[place].iter().map(|&i| i as usize).filter(is_matched)
    }

    fn values(&self, number: Number) -> Values {
        if !self.paired {
            return Values::Apart(self.runs.map(|run| values(run, number, self.selection)));
        }
        self.values_of(&|opened, i| number.value(opened, i))
    }

    fn values_of(&self, value: &dyn Fn(&OpenedRun, usize) -> Option<f64>) -> Values {
        Values::new(self.by_request(0, value), self.by_request(1, value), self.paired)
    }

    /// One for each request that counts and is so, zero for each that is not.
    fn flags(&self, which: &dyn Fn(&Run, usize) -> bool) -> Values {
        self.values_of(&|opened, i| {
            let run = &opened.run;
            slo::counts(run, i).then(|| f64::from(u8::from(which(run, i))))
        })
    }

    /// How a share of tokens differs.
    fn ratio(&self, ratio: Ratio, goals: &Goals) -> Option<Difference> {
        let parts = |place: usize| -> Parts {
            let run = &self.runs[place].run;
            let mut parts = vec![[0.0; 2]; run.requests.len()];
            for i in self.looked_at(place) {
                parts[i] = ratio.part(run, i, goals).unwrap_or_default();
            }
            parts
        };
        ratio_difference(&parts(0), &parts(1), self.paired)
    }
}

impl Delta {
    fn of(name: String, values: &Values, figure: Figure, good: Good, written: Written) -> Self {
        let (each, found) = (values.each(figure), values.difference(figure));
        Self { too_few: values.too_few(figure), ..Self::sure(name, each, found, good, written) }
    }

    /// A figure of each run, and what is known of their difference.
    fn sure(
        name: String,
        both: [Option<f64>; 2],
        found: Option<Difference>,
        good: Good,
        written: Written,
    ) -> Self {
        let plain = Self::plain(name, both, written);
        let Some(found) = found.filter(|_| both.iter().all(Option::is_some)) else {
            return plain;
        };
        let (low, high) = found.absolute;
        let interval = Some(written.interval(low, high));
        let verdict = Verdict::of(&found, good);
        Self { interval, verdict, word: verdict.word(Some(found.absolute)), ..plain }
    }

    /// A figure of which nobody can tell how sure it is.
    fn plain(name: String, [baseline, shown]: [Option<f64>; 2], written: Written) -> Self {
        let both = baseline.zip(shown);
        let relative = both.filter(|(before, _)| *before != 0.0);
        Self {
            name,
            baseline: baseline.map(|value| written.value(value)),
            shown: shown.map(|value| written.value(value)),
            change: both.map(|(before, after)| written.change(after - before)),
            relative: relative.map(|(before, after)| Written::Share.change(after / before - 1.0)),
            interval: None,
            too_few: None,
            verdict: Verdict::Unknown,
            word: Verdict::Unknown.word(None),
        }
    }
}

/// How the values of a figure are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    /// Nanoseconds.
    Time,
    /// A share of one.
    Share,
    /// A number whose unit the name says.
    Number,
    /// So many a second.
    Rate,
}

impl Written {
    fn of(number: Number) -> Self {
        match number.measure() {
            Measure::Duration | Measure::Instant => Self::Time,
            Measure::Share => Self::Share,
            _ => Self::Number,
        }
    }

    fn value(self, value: f64) -> String {
        match self {
            Self::Time => quantity::measured(value),
            Self::Share => quantity::percent(value),
            Self::Number => quantity::number(value),
            Self::Rate => format!("{}/s", quantity::number(value)),
        }
    }

    fn change(self, value: f64) -> String {
        signed(value, &self.value(value.abs()))
    }

    /// Both ends in one unit, which is written once.
    fn interval(self, low: f64, high: f64) -> String {
        let (scale, unit) = match self {
            Self::Time => {
                let unit = TimeUnit::fitting(low.abs().max(high.abs()));
                (1.0 / unit.nanos(), unit.sign())
            }
            Self::Share => (100.0, "%"),
            Self::Number => (1.0, ""),
            Self::Rate => (1.0, "/s"),
        };
        let end = |value: f64| {
            let scaled = value * scale;
            // Two decimals of a per cent are more than a bootstrap knows.
            let scaled = if self == Self::Share { (scaled * 10.0).round() / 10.0 } else { scaled };
            signed(scaled, &quantity::number(scaled.abs()))
        };
        format!("{} to {} {unit}", end(low), end(high)).trim_end().to_owned()
    }
}

/// An amount with the sign of a value; a minus is as wide as a plus. What is shown as nothing, or
/// as less than can be shown, has none.
fn signed(value: f64, amount: &str) -> String {
    let is_nothing = !amount.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
    match amount {
        _ if is_nothing || amount.starts_with('<') => amount.to_owned(),
        _ if value > 0.0 => format!("+{amount}"),
        _ => format!("\u{2212}{amount}"),
    }
}

/// Figures of the whole of what is looked at, of which a run has one each. What was cached is known
/// request by request, so it has an interval all the same.
fn rates(both: &Both<'_>, goals: &Goals) -> Vec<Delta> {
    let [before, after] =
        both.runs.map(|opened| opened.report_of(both.selection, &ReportOptions::default()));
    let (one, other) = (&before.throughput, &after.throughput);
    let plain = [
        ("requests", [one.requests_per_s, other.requests_per_s]),
        ("output tokens", [one.output_tokens_per_s, other.output_tokens_per_s]),
    ];
    let hits = [
        (Ratio::Ideal, [before.cache.ideal_hit_rate, after.cache.ideal_hit_rate]),
        (Ratio::Reported, [before.cache.reported_hit_rate, after.cache.reported_hit_rate]),
    ];
    let plain = plain.map(|(name, of)| Delta::plain(name.to_owned(), of, Written::Rate));
    let hits = hits.map(|(ratio, of)| {
        let (name, found) = (ratio.label().to_owned(), both.ratio(ratio, goals));
        // Of a part of the requests there is no report.
        let of = match (&both.matched, found) {
            (Some(_), found) => [found.map(|of| of.before), found.map(|of| of.after)],
            (None, _) => of,
        };
        Delta::sure(name, of, found, ratio.good(), Written::Share)
    });
    plain.into_iter().chain(hits).collect()
}

#[cfg(test)]
mod tests {
    use onbeat_shared::log::{Class, sample::Sample};

    use super::super::tests::opened;
    use super::*;

    fn row<'a>(deltas: &'a Deltas, name: &str) -> &'a Delta {
        deltas.rows.iter().find(|row| row.name == name).expect("a row of this name")
    }

    #[test]
    fn a_run_does_not_differ_from_itself() {
        let run = opened(1, 300);
        let goals = Goals::parse("ttft:100").expect("a goal");
        let deltas = Deltas::of(&run, &run, &Selection::default(), &goals);
        assert!(deltas.setup.is_empty());
        for row in &deltas.rows {
            let settled = matches!(row.verdict, Verdict::Unclear | Verdict::Unknown);
            assert!(settled, "{row:?}");
            assert_eq!(row.baseline, row.shown);
            assert!(["same", ""].contains(&row.word), "{row:?}");
        }
        let goodput = row(&deltas, "met all goals");
        assert!(goodput.shown.is_some() && goodput.interval.is_some());
        assert_eq!(row(&deltas, "requests").interval, None, "a run has one rate");
    }

    #[test]
    fn the_figures_are_the_reports() {
        let (baseline, shown) = (opened(1, 300), opened(2, 200));
        let deltas = Deltas::of(&baseline, &shown, &Selection::default(), &Goals::default());
        let ttft = |run: &OpenedRun| {
            let found = run.report().latency.ttft_ms.as_ref().expect("some").p99;
            quantity::measured(found * 1e6)
        };
        let found = row(&deltas, "TTFT p99");
        assert_eq!(found.baseline, Some(ttft(&baseline)));
        assert_eq!(found.shown, Some(ttft(&shown)));
        let late = row(&deltas, "late outside stalls p99");
        let outside = shown.report().schedule.lateness_outside_stalls_us.expect("some");
        assert_eq!(late.shown, Some(quantity::measured(outside.p99 * 1e3)));
        let planned = deltas.setup.iter().find(|one| one.what == "requests planned");
        let planned = planned.map(|one| (&*one.base, &*one.new));
        assert_eq!(planned, Some(("300", "200")));
        assert!(deltas.pairing.starts_with("Not paired, "), "{}", deltas.pairing);
        assert!(deltas.moved.iter().all(|one| one.test == "Mann and Whitney"));
        assert!(deltas.rows.iter().all(|row| row.name != "met all goals"));
    }

    /// A run of 80 requests of one plan, whose answers come so much later.
    fn late(by: i64) -> Arc<OpenedRun> {
        stopped(by, 80)
    }

    /// The same, stopped after so many.
    fn stopped(by: i64, after: i64) -> Arc<OpenedRun> {
        let mut sample = Sample::new();
        sample.interrupted = after < 80;
        for k in 0..80 {
            if k >= after {
                let never = sample.plan(k * 1_000_000);
                sample.done(never, after * 1_000_000, Class::NotReached);
                continue;
            }
            let sent = sample.send(k * 1_000_000);
            let first = (k + 20 + k * k % 61) * 1_000_000 + by;
            sample.chunks(sent, &[first, first + 9_000_000]);
            sample.done(sent, first + 9_000_000, Class::Ok);
        }
        let run = Run::read(&sample.bytes()).expect("a log");
        Arc::new(OpenedRun::new("late.beat".into(), 0, run))
    }

    #[test]
    fn runs_of_one_plan_are_paired_with_the_figures_of_onbeat_compare() {
        let (baseline, shown) = (late(0), late(1_000_000));
        let deltas = Deltas::of(&baseline, &shown, &Selection::default(), &Goals::default());
        assert_eq!(deltas.pairing, "Paired by request, 80 pairs: same trace and same plan.");
        let [base, new] = [&baseline, &shown].map(|opened| compare::Subject {
            name: "late.beat",
            run: &opened.run,
            report: opened.report(),
        });
        let against = compare::against(base, new, &Goals::default());
        for (name, key) in [("TTFT p50", "ttft_ms.p50"), ("end to end p90", "e2e_ms.p90")] {
            let figure = against.figures.iter().find(|one| one.name == key).expect("a figure");
            let (low, high) = figure.difference_interval.expect("enough requests");
            let found = row(&deltas, name);
            assert_eq!(found.interval, Some(Written::Time.interval(low * 1e6, high * 1e6)));
            assert_eq!(found.verdict, Verdict::Worse, "{found:?}");
        }
        let moved = &deltas.moved[0];
        assert_eq!((moved.name, &*moved.larger, moved.test), {
            ("TTFT", "100 %", "Wilcoxon, by request")
        });
        assert_eq!(moved.chance, "p < 0.0001");
    }

    #[test]
    fn an_interval_that_too_few_values_give_is_missed_in_words() {
        let found = Deltas::of(&late(0), &late(9), &Selection::default(), &Goals::default());
        let (p50, p99) = (row(&found, "TTFT p50"), row(&found, "TTFT p99"));
        assert_eq!((p50.interval.is_some(), &p50.too_few), (true, &None));
        assert_eq!((p99.interval.is_some(), p99.too_few.is_some()), (false, true));
        assert_eq!(
            row(&found, "requests").too_few,
            None,
            "a run has one rate, however many it has"
        );
        let words = found.without_interval();
        assert!(words.starts_with("None of rates: a run has one of each. None of TTFT p99, "));
        assert!(words.contains(": p99 takes 500 values of each run, so that 5 lie"), "{words}");
        let none = Deltas { rows: Vec::new(), ..found }.without_interval();
        assert!(none.ends_with("one of each."), "{none}");
    }

    #[test]
    fn what_one_run_did_not_come_to_makes_it_neither_better_nor_worse() {
        let (whole, part) = (late(0), stopped(0, 24));
        for (baseline, shown) in [(&whole, &part), (&part, &whole)] {
            let found = Deltas::of(baseline, shown, &Selection::default(), &Goals::default());
            assert!(found.pairing.starts_with("Paired by request, 24 pairs: "), "{found:?}");
            assert!(found.pairing.contains("56 of 80 requests are left out"), "{found:?}");
            for row in &found.rows {
                let settled = matches!(row.verdict, Verdict::Unclear | Verdict::Unknown);
                assert!(settled, "{row:?}");
                assert!(row.baseline == row.shown || row.interval.is_none(), "{row:?}");
            }
        }
    }

    #[test]
    fn pairs_are_those_that_are_chosen_in_both() {
        let (baseline, shown) = (late(0), late(1_000_000));
        let filter = crate::filter::Filter::parse("ttft > 50ms").expect("a filter");
        let selection = Selection { range: None, filter: Some(Arc::new(filter)) };
        let both = |i: &u32| baseline.chosen(&selection).contains(i);
        let pairs = shown.chosen(&selection).iter().filter(|i| both(i)).count();
        assert!((10..70).contains(&pairs), "{pairs}");
        let deltas = Deltas::of(&baseline, &shown, &selection, &Goals::default());
        assert!(deltas.pairing.starts_with(&format!("Paired by request, {pairs} pairs: ")));
        let ttft = |run: &OpenedRun| {
            let report = run.report_of(&selection, &ReportOptions::default());
            Some(quantity::measured(report.latency.ttft_ms.expect("some").p50 * 1e6))
        };
        let found = row(&deltas, "TTFT p50");
        assert_eq!((&found.baseline, &found.shown), (&ttft(&baseline), &ttft(&shown)));
    }

    #[test]
    fn what_was_cached_has_an_interval() {
        let deltas =
            Deltas::of(&opened(1, 300), &opened(2, 200), &Selection::default(), &Goals::default());
        for name in ["ideal hit rate", "reported hit rate"] {
            assert!(row(&deltas, name).interval.is_some(), "{name}");
        }
    }

    #[test]
    fn a_selection_without_requests_has_no_figures() {
        let run = opened(1, 100);
        let filter = crate::filter::Filter::parse("turn == 99").expect("a filter");
        let selection = Selection { range: None, filter: Some(Arc::new(filter)) };
        let deltas = Deltas::of(&run, &run, &selection, &Goals::default());
        let found = row(&deltas, "TTFT p50");
        assert_eq!((&found.shown, &found.change, &found.interval), (&None, &None, &None));
    }

    #[test]
    fn differences_have_signs_and_intervals_one_unit() {
        assert_eq!(Written::Time.change(2e6), "+2.00 ms");
        assert_eq!(Written::Time.change(-2e6), "\u{2212}2.00 ms");
        assert_eq!(Written::Number.change(0.0), "0");
        assert_eq!(Written::Share.change(-0.0001), "< 0.1 %");
        assert_eq!(Written::Time.interval(-3_030_000.0, 968_000.0), "\u{2212}3.03 to +0.968 ms");
        assert_eq!(Written::Share.interval(-0.042_12, -0.0), "\u{2212}4.2 to 0 %");
        assert_eq!(Written::Number.interval(-1.0, 2.0), "\u{2212}1 to +2");
    }
}
