//! What differs between two runs, by how much, and whether that is more than chance.

use onbeat_shared::metrics::{
    Ranked, ReportOptions,
    bootstrap::{Figure, difference},
    compare::{Good, Verdict},
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
    /// Figures, in the order of the table.
    pub rows: Vec<Delta>,
    /// What was run that differs: what, in the baseline, in the shown run.
    pub setup: Vec<(&'static str, String, String)>,
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
    /// What that means.
    pub verdict: Verdict,
}

/// Numbers of requests in the table, each with its figures.
const NUMBERS: &[(Field, &str, &[f64], Good)] = &[
    (Field::Ttft, "TTFT", &[0.5, 0.9, 0.99], Good::Less),
    (Field::Itl, "ITL", &[0.5, 0.9, 0.99], Good::Less),
    (Field::E2e, "end to end", &[0.5, 0.9, 0.99], Good::Less),
    (Field::Speed, "decode tokens/s", &[0.5], Good::More),
    (Field::CachedShare, "cached share", &[], Good::More),
    (Field::Input, "input tokens", &[], Good::Neither),
    (Field::Output, "output tokens", &[], Good::Neither),
    (Field::Lateness, "lateness", &[0.99], Good::Less),
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
        let mut rows = Vec::new();
        for &(field, name, shares, good) in NUMBERS {
            let number = Number::Of(field);
            let both = [baseline, shown].map(|run| values(run, number, selection));
            let written = Written::of(number);
            let mean = (shares.is_empty()).then_some((Figure::Mean, "mean".to_owned()));
            let quantiles = shares.iter().map(|&share| {
                (Figure::Quantile(share), format!("p{}", quantity::number(100.0 * share)))
            });
            for (figure, suffix) in mean.into_iter().chain(quantiles) {
                let name = format!("{name} {suffix}");
                rows.push(Delta::of(name, [&both[0], &both[1]], figure, good, written));
            }
        }
        let share = |which: fn(&Run, usize, &Goals) -> bool| {
            [baseline, shown].map(|run| shares(run, selection, goals, which))
        };
        let mut add_share = |name: &str, which| {
            let both = share(which);
            let both = [&both[0], &both[1]];
            let name = name.to_owned();
            rows.push(Delta::of(name, both, Figure::Mean, Good::More, Written::Share));
        };
        add_share("succeeded", |run, i, _| run.requests.is_ok(i));
        if !goals.list().is_empty() {
            add_share("met all goals", |run, i, goals| goals.is_good(run, i, false));
        }
        rows.extend(rates(baseline, shown, selection));
        Self { rows, setup: setup(baseline, shown) }
    }
}

/// One for each request of a selection that counts and is so, zero for each that is not.
fn shares(
    opened: &OpenedRun,
    selection: &Selection,
    goals: &Goals,
    which: fn(&Run, usize, &Goals) -> bool,
) -> Ranked {
    let run = &opened.run;
    let chosen = opened.chosen(selection);
    let counted = chosen.iter().map(|&i| i as usize).filter(|&i| slo::counts(run, i));
    counted.map(|i| f64::from(u8::from(which(run, i, goals)))).collect::<Vec<_>>().into()
}

impl Delta {
    fn of(
        name: String,
        [baseline, shown]: [&Ranked; 2],
        figure: Figure,
        good: Good,
        written: Written,
    ) -> Self {
        let Some(found) = difference(baseline, shown, figure) else {
            let of = |ranked: &Ranked| match figure {
                Figure::Mean => ranked.mean(),
                Figure::Quantile(share) => ranked.percentile(share),
            };
            return Self::plain(name, [of(baseline), of(shown)], written);
        };
        let (low, high) = found.absolute;
        Self {
            interval: Some(written.interval(low, high)),
            verdict: Verdict::of(&found, good),
            ..Self::plain(name, [Some(found.before), Some(found.after)], written)
        }
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
            verdict: Verdict::Unknown,
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

/// Figures of which a run has one each.
fn rates(baseline: &OpenedRun, shown: &OpenedRun, selection: &Selection) -> Vec<Delta> {
    let of = |opened: &OpenedRun| {
        let report = opened.report_of(selection, &ReportOptions::default());
        let throughput = &report.throughput;
        [
            throughput.requests_per_s,
            throughput.output_tokens_per_s,
            report.cache.ideal_hit_rate,
            report.cache.reported_hit_rate,
        ]
    };
    let (before, after) = (of(baseline), of(shown));
    let names = [
        ("requests", Written::Rate),
        ("output tokens", Written::Rate),
        ("ideal hit rate", Written::Share),
        ("reported hit rate", Written::Share),
    ];
    let both = before.into_iter().zip(after);
    let figures = names.into_iter().zip(both);
    figures
        .map(|((name, written), (before, after))| {
            Delta::plain(name.to_owned(), [before, after], written)
        })
        .collect()
}

/// What was run that is not the same in both.
fn setup(baseline: &OpenedRun, shown: &OpenedRun) -> Vec<(&'static str, String, String)> {
    let facts = |opened: &OpenedRun| {
        let manifest = &opened.run.manifest;
        [
            ("trace", manifest.trace.name.clone()),
            ("trace SHA-256", manifest.trace.sha256.chars().take(12).collect()),
            ("requests planned", quantity::count(opened.run.requests.len() as u64)),
            ("mode", manifest.mode.replace('_', " ")),
            ("model", manifest.model.clone()),
            ("target", manifest.targets.join(", ")),
            ("endpoint", manifest.endpoint.clone()),
            ("host", manifest.host.hostname.clone()),
            ("cores", quantity::count(manifest.cores.len() as u64)),
            ("pacing", manifest.pacing.kind.clone()),
            ("driver", manifest.driver.clone()),
            ("seed", manifest.seed.to_string()),
            ("Onbeat", manifest.onbeat_version.clone()),
        ]
    };
    let pairs = facts(baseline).into_iter().zip(facts(shown));
    pairs
        .filter(|(before, after)| before.1 != after.1)
        .map(|((name, before), (_, after))| (name, before, after))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

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
        assert!(deltas.setup.contains(&("requests planned", "300".into(), "200".into())));
        assert!(deltas.rows.iter().all(|row| row.name != "met all goals"));
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
