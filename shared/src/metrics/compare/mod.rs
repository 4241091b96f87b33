//! What differs between runs, by how much, and how surely.
//!
//! Every figure is the report's. Its difference and ratio come with the interval of a bootstrap:
//! requests are drawn in pairs where both runs sent the same plan ([`pairing()`]), else each run's
//! by themselves. A figure of which a run has only one (a rate over the whole of it) has no
//! interval, and a figure that a run lacks has no difference: neither is guessed. Rank tests say
//! whether values moved at all, whatever the tails do. Requests of one run share queues, so the
//! truth is somewhat wider than an interval, one run says nothing about another day, and of many
//! figures a few are clear by chance: the words of every output say so.

mod figures;
mod matched;
mod paired;
mod pairing;
mod ranks;
mod setup;
mod values;

use serde::Serialize;

use self::figures::Number;
pub use self::figures::{Good, Ratio};
use self::matched::kept;
pub use self::matched::matched;
use self::paired::ratio;
pub use self::paired::{Pairs, Parts, ratio_difference};
pub use self::pairing::{Pairing, pairing, unmatched_words};
pub use self::ranks::{RankTest, mann_whitney, signed_rank};
pub use self::setup::{Differs, setup};
pub use self::values::Values;
use super::bootstrap::{CONFIDENCE, Difference, RESAMPLES};
use super::gate::{Judged, number, percent, points, signed};
use super::left_out::LeftOut;
use super::report::Report;
use super::selection::Selection;
use super::slo::Goals;
use super::{stopped, warmth};
use crate::run::Run;

/// Version of the comparison's JSON; raised when a key changes its meaning or disappears.
pub const SCHEMA_VERSION: u32 = 1;

/// The unit of shares of one.
const SHARE: &str = "share";

/// What every output says under a comparison.
pub const CAUTION: &str = "Intervals are 95 % bootstrap intervals with requests taken as \
                           independent. They share queues, so the truth is somewhat wider; one run \
                           says nothing about another day; and of many figures one in twenty is \
                           clear by chance.";

/// Runs held against one of them.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Comparison {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Share of the resamples within an interval.
    pub confidence: f64,
    /// How many resamples there were.
    pub resamples: usize,
    /// The run that the others are held against.
    pub base: Side,
    /// The others.
    pub runs: Vec<Against>,
    /// What was asked to fail, and whether it did.
    pub gates: Vec<Judged>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Side {
    /// What it is called where it was given, as a rule its file.
    pub name: String,
    /// Its unique name.
    pub id: String,
    /// Wall clock at the schedule's zero.
    pub started_unix_ns: u64,
    /// Its trace's name.
    pub trace: String,
    /// Requests that left.
    pub sent: u64,
    /// Requests that succeeded.
    pub ok: u64,
    /// Whether the measurement is valid.
    pub schedule_held: bool,
    /// Whether its user stopped it before its end.
    pub interrupted: bool,
    /// Requests that are not judged by their lateness.
    pub left_out: LeftOut,
    /// Why not.
    pub reasons: Vec<String>,
    /// What a reader must know of its figures.
    pub warnings: Vec<String>,
}

/// One run against the base.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Against {
    /// The run.
    pub run: Side,
    /// Whether its requests are those of the base.
    pub pairing: Pairing,
    /// What may explain a difference beside what was run differently.
    pub warnings: Vec<String>,
    /// What was run differently.
    pub setup: Vec<Differs>,
    /// Whether values moved.
    pub moved: Vec<Moved>,
    /// The figures.
    pub figures: Vec<Compared>,
}

/// Whether the values of a number moved.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Moved {
    /// Its key in the report.
    pub name: &'static str,
    /// Its name for people.
    #[serde(skip)]
    pub label: String,
    /// What its ranks say.
    #[serde(flatten)]
    pub test: RankTest,
}

/// One figure of two runs.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Compared {
    /// Its key in the report, as a gate names it: a number and its statistic, or the number.
    pub name: String,
    /// Its name for people, with its unit.
    #[serde(skip)]
    pub label: String,
    /// Whether people see it without asking for all.
    #[serde(skip)]
    pub is_main: bool,
    /// The unit of its values and differences: `ms`, `us`, `tokens`, `tokens/s`, `requests/s`, or
    /// `share`, of one, a difference of 0.01 being one percentage point.
    pub unit: &'static str,
    /// Which direction is good.
    pub good: Good,
    /// Of the base; null where it has none.
    pub base: Option<f64>,
    /// Of the new run.
    pub new: Option<f64>,
    /// New less base.
    pub difference: Option<f64>,
    /// New divided by base; null where that is zero.
    pub ratio: Option<f64>,
    /// Lowest and highest plausible difference; null where one run says nothing about chance.
    pub difference_interval: Option<(f64, f64)>,
    /// The same of the ratio.
    pub ratio_interval: Option<(f64, f64)>,
    /// Why there is no interval although requests have values: they are too few; else null.
    pub no_interval: Option<String>,
    /// What that means.
    pub verdict: Verdict,
}

/// What a difference means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The new run is better, and not by chance.
    Better,
    /// It is worse, and not by chance.
    Worse,
    /// They differ, not by chance, and neither is better for it.
    Differs,
    /// Chance explains it.
    Unclear,
    /// It cannot be told: there is no interval.
    Unknown,
}

impl Verdict {
    /// It in a word, beside the interval of the difference; none where nothing is known. That there
    /// is no difference, whatever is drawn, is no matter of chance.
    #[must_use]
    pub fn word(self, interval: Option<(f64, f64)>) -> &'static str {
        match self {
            Self::Unclear if interval == Some((0.0, 0.0)) => "same",
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Differs => "differs",
            Self::Unclear => "unclear",
            Self::Unknown => "",
        }
    }

    /// What a difference of a number means of which so much is good.
    #[must_use]
    pub fn of(found: &Difference, good: Good) -> Self {
        match good {
            _ if !found.is_clear() => Self::Unclear,
            Good::Neither => Self::Differs,
            Good::Less if found.change() < 0.0 => Self::Better,
            Good::More if found.change() > 0.0 => Self::Better,
            Good::Less | Good::More => Self::Worse,
        }
    }
}

/// A run that is compared: its name, its columns and its numbers.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// What it is called, as a rule its file.
    pub name: &'a str,
    /// The run.
    pub run: &'a Run,
    /// Its report, of the whole run.
    pub report: &'a Report,
}

/// Holds runs against a base; `goals` are those of all of them. Gates are judged by others.
#[must_use]
pub fn compare(base: Subject<'_>, others: &[Subject<'_>], goals: &Goals) -> Comparison {
    Comparison {
        schema_version: SCHEMA_VERSION,
        confidence: CONFIDENCE,
        resamples: RESAMPLES,
        base: side(base),
        runs: others.iter().map(|&other| against(base, other, goals)).collect(),
        gates: Vec::new(),
    }
}

fn side(subject: Subject<'_>) -> Side {
    let Subject { name, report, run } = subject;
    Side {
        name: name.to_owned(),
        id: report.run.id.clone(),
        started_unix_ns: report.run.started_unix_ns,
        trace: report.run.trace.name.clone(),
        sent: report.schedule.sent,
        ok: report.outcomes.ok,
        schedule_held: report.verdict.schedule_held,
        interrupted: report.run.interrupted,
        left_out: report.verdict.left_out,
        reasons: report.verdict.reasons.clone(),
        warnings: warmth::found(&Selection::new(run, None))
            .map(|found| found.words())
            .into_iter()
            .chain(stopped::warning(report))
            .collect(),
    }
}

/// One run against the base.
#[must_use]
pub fn against(base: Subject<'_>, new: Subject<'_>, goals: &Goals) -> Against {
    let pairing = pairing(base.run, new.run);
    let matched = (pairing.unmatched > 0).then(|| matched(base.run, new.run));
    let matched = matched.as_deref();
    let (mut moved, mut figures) = (Vec::new(), Vec::new());
    for number in Number::all() {
        let [one, other] = [base.run, new.run].map(|run| kept(number.values(run), matched));
        let values = Values::new(one, other, pairing.paired);
        moved.extend(values.moved().map(|test| Moved {
            name: number.name(),
            label: number.label(),
            test,
        }));
        figures.extend(number.figures().iter().map(|&(figure, suffix)| Compared {
            label: format!("{} {suffix}", number.label()),
            is_main: number.is_main() && matches!(suffix, "p50" | "p90" | "p99"),
            no_interval: values.too_few(figure),
            ..Compared::of(
                format!("{}.{suffix}", number.name()),
                (number.unit(), number.good()),
                values.difference(figure),
                values.each(figure),
            )
        }));
    }
    for which in Ratio::ALL {
        let both = [base.run, new.run].map(|run| kept(which.parts(run, goals), matched));
        let found = ratio_difference(&both[0], &both[1], pairing.paired);
        let each = match matched {
            None => [base.report, new.report].map(|report| share(report, which)),
            Some(_) => both.each_ref().map(|parts| ratio(parts.iter().copied())),
        };
        figures.push(Compared {
            label: which.label().to_owned(),
            is_main: each.iter().any(Option::is_some),
            ..Compared::of(which.name().to_owned(), (SHARE, which.good()), found, each)
        });
    }
    figures.extend(rates(base.report, new.report));
    let setup = setup(base.run, new.run);
    let apart = apart(base, new, &pairing);
    if apart.is_some() {
        figures.iter_mut().for_each(|row| row.verdict = Verdict::Unknown);
    }
    let unmatched = unmatched_words(base.run, new.run, &pairing);
    let warmth = warmth::between(base.run, new.run, pairing.paired);
    let warnings = unmatched.into_iter().chain(apart).chain(warmth).collect();
    Against { run: side(new), pairing, warnings, setup, moved, figures }
}

/// Why nothing is called better or worse: one of the runs is a part, and nobody can tell which
/// requests of the other one are that part.
fn apart(base: Subject<'_>, new: Subject<'_>, pairing: &Pairing) -> Option<String> {
    let is_part = |one: &Subject<'_>| one.report.run.interrupted || one.report.run.torn;
    let parts: Vec<Subject<'_>> = [base, new].into_iter().filter(is_part).collect();
    if pairing.paired || parts.is_empty() {
        return None;
    }
    let names: Vec<&str> = parts.iter().map(|one| one.name).collect();
    Some(format!(
        "nothing is called better or worse: {} ended before all was sent, and without pairs nobody \
         can tell which requests of the other run to hold against that",
        names.join(" and ")
    ))
}

fn share(report: &Report, ratio: Ratio) -> Option<f64> {
    match ratio {
        Ratio::Errors => report.outcomes.error_rate,
        Ratio::Goodput => report.slo.goodput_share,
        Ratio::Reported => report.cache.reported_hit_rate,
        Ratio::Ideal => report.cache.ideal_hit_rate,
    }
}

/// Figures of which a run has one each.
fn rates(base: &Report, new: &Report) -> Vec<Compared> {
    let of = |report: &Report| {
        let rates = &report.throughput;
        [
            rates.requests_per_s,
            rates.input_tokens_per_s,
            rates.output_tokens_per_s,
            report.slo.goodput_rps,
        ]
    };
    let (requests, tokens) = ("requests/s", "tokens/s");
    let names = [
        ("requests_per_s", "requests/s", requests),
        ("input_tokens_per_s", "input tokens/s", tokens),
        ("output_tokens_per_s", "output tokens/s", tokens),
        ("goodput_rps", "good requests/s", requests),
    ];
    let (base, new) = (of(base), of(new));
    let row = |(place, (name, label, unit)): (usize, (&str, &str, &'static str))| {
        let both = [base[place], new[place]];
        Compared {
            label: label.to_owned(),
            is_main: both.iter().any(Option::is_some),
            ..Compared::of(name.to_owned(), (unit, Good::More), None, both)
        }
    };
    names.into_iter().enumerate().map(row).collect()
}

/// Figures that have no interval because values are few: the labels of those with a reason in
/// common, and the reason.
#[must_use]
pub fn without_interval<'a>(rows: impl Iterator<Item = &'a Compared>) -> Vec<(String, &'a str)> {
    let mut found: Vec<(String, &str)> = Vec::new();
    for (row, why) in rows.filter_map(|row| Some((row, row.no_interval.as_deref()?))) {
        match found.iter_mut().find(|(_, known)| *known == why) {
            Some((labels, _)) => *labels += &format!("; {}", row.label),
            None => found.push((row.label.clone(), why)),
        }
    }
    found
}

impl Compared {
    fn of(
        name: String,
        (unit, good): (&'static str, Good),
        found: Option<Difference>,
        [base, new]: [Option<f64>; 2],
    ) -> Self {
        let both = base.zip(new);
        let found = found.filter(|_| both.is_some());
        Self {
            label: name.clone(),
            name,
            is_main: false,
            unit,
            good,
            base,
            new,
            difference: both.map(|(base, new)| new - base),
            ratio: both.filter(|(base, _)| *base != 0.0).map(|(base, new)| new / base),
            difference_interval: found.map(|found| found.absolute),
            no_interval: None,
            ratio_interval: found
                .and_then(|found| found.relative)
                .map(|(low, high)| (low + 1.0, high + 1.0)),
            verdict: found.map_or(Verdict::Unknown, |found| Verdict::of(&found, good)),
        }
    }

    /// One of its values for people, without its unit unless it is a share.
    #[must_use]
    pub fn shown(&self, value: f64) -> String {
        if self.unit == SHARE { percent(value) } else { number(value) }
    }

    /// A difference for people, with its sign. One of shares is in percentage points: per cent of
    /// what would be open.
    #[must_use]
    pub fn change(&self, by: f64) -> String {
        signed(&if self.unit == SHARE { points(by) } else { number(by) }, by)
    }

    /// The lowest and highest plausible difference for people, if there is an interval.
    #[must_use]
    pub fn interval(&self) -> Option<String> {
        let (low, high) = self.difference_interval?;
        Some(format!("{} to {}", self.change(low), self.change(high)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ReportOptions, report};
    use super::*;
    use crate::export::schema::faults::faults;
    use crate::export::schema::of_comparison;
    use crate::log::sample::{self, Sample};

    fn read(sample: &Sample) -> (Run, Report) {
        let run = Run::read(&sample.bytes()).expect("a log");
        let slo = Some(Goals::parse("ttft:120").expect("a goal"));
        let report = report(&run, &ReportOptions { slo, ..ReportOptions::default() });
        (run, report)
    }

    fn compared(base: &Sample, new: &Sample) -> Against {
        let (base, new) = (read(base), read(new));
        let goals = Goals::parse("ttft:120").expect("a goal");
        against(
            Subject { name: "base", run: &base.0, report: &base.1 },
            Subject { name: "new", run: &new.0, report: &new.1 },
            &goals,
        )
    }

    #[test]
    fn comparisons_fit_their_schema() {
        let (base, new) = (read(&sample::sample(1, 60)), read(&sample::sample(2, 50)));
        let empty = read(&Sample::new());
        let subject = |run, report| Subject { name: "x", run, report };
        let others = [subject(&new.0, &new.1), subject(&empty.0, &empty.1)];
        let goals = Goals::parse("ttft:120").expect("a goal");
        let mut found = compare(subject(&base.0, &base.1), &others, &goals);
        let gates = [super::super::gate::Gate::parse("ttft_ms.p99 > 8").expect("a gate")];
        let judging = super::super::gate::Judging { name: "x", report: &empty.1 };
        found.gates = super::super::gate::judge(&gates, judging, None, false);
        let json = serde_json::to_value(&found).expect("JSON");
        assert_eq!(json["gates"].as_array().map(Vec::len), Some(2));
        assert_eq!(faults(of_comparison(), &json), Vec::<String>::new());
        let mut wrong = json.clone();
        wrong["runs"][0]["figures"][0]["unit"] = serde_json::Value::Null;
        assert!(!faults(of_comparison(), &wrong).is_empty(), "and another is not what it says");
    }

    #[test]
    fn every_row_can_be_gated_by_the_name_that_it_has() {
        let found = compared(&sample::sample(1, 60), &sample::sample(2, 60));
        let report = read(&sample::sample(1, 60)).1;
        for row in &found.figures {
            let gate = super::super::gate::Gate::parse(&format!("{} > 0.5", row.name));
            let gate = gate.unwrap_or_else(|error| panic!("{error}"));
            let judging = super::super::gate::Judging { name: "base", report: &report };
            let judged = super::super::gate::judge(&[gate], judging, None, true);
            let own = judged.last().and_then(|judged| judged.value);
            let near = |(a, b): (f64, f64)| (a - b).abs() <= 1e-9 * b.abs();
            assert!(own.zip(row.base).map_or(own == row.base, near), "{}: {own:?}", row.name);
        }
    }

    #[test]
    fn shares_differ_by_percentage_points() {
        let found = compared(&sample::sample(1, 60), &sample::sample(2, 60));
        let rate = Compared {
            difference_interval: Some((-0.004, 0.11)),
            ..row(&found, "error_rate").clone()
        };
        assert_eq!((rate.unit, rate.shown(0.25), rate.change(0.05)), {
            ("share", "25.0 %".to_owned(), "+5.00 pp".to_owned())
        });
        assert_eq!(rate.interval().as_deref(), Some("-0.40 pp to +11.0 pp"));
        let ttft = row(&found, "ttft_ms.p99");
        assert_eq!((ttft.unit, ttft.change(-2.0)), ("ms", signed(&number(-2.0), -2.0)));
        assert_eq!(row(&found, "goodput_rps").unit, "requests/s");
    }

    fn row<'a>(found: &'a Against, name: &str) -> &'a Compared {
        found.figures.iter().find(|row| row.name == name).expect("a row of this name")
    }

    #[test]
    fn every_figure_is_the_reports() {
        let (one, other) = (sample::sample(1, 300), sample::sample(2, 200));
        let found = compared(&one, &other);
        assert!(!found.pairing.paired);
        for (name, sample) in [("base", &one), ("new", &other)] {
            let json = serde_json::to_value(read(sample).1).expect("JSON");
            let sections =
                ["latency", "throughput", "outcomes", "cache", "slo", "schedule", "tokens"];
            for section in sections {
                for row in &found.figures {
                    let pointer = format!("/{section}/{}", row.name.replace('.', "/"));
                    let Some(value) = json.pointer(&pointer) else { continue };
                    let own = if name == "base" { row.base } else { row.new };
                    match (value.as_f64(), own) {
                        (Some(theirs), Some(own)) => {
                            assert!((theirs - own).abs() <= 1e-9 * theirs.abs(), "{pointer}");
                        }
                        (theirs, own) => assert_eq!(theirs, own, "{pointer}"),
                    }
                }
            }
        }
        assert!(row(&found, "ttft_ms.p90").difference_interval.is_some());
        assert_eq!(row(&found, "requests_per_s").difference_interval, None, "one of each");
        assert!(found.moved.iter().all(|moved| moved.test.test == "mann_whitney_u"));
    }

    #[test]
    fn a_run_does_not_differ_from_itself() {
        let one = sample::sample(1, 300);
        let found = compared(&one, &one);
        assert!(found.pairing.paired && found.setup.is_empty());
        for row in &found.figures {
            assert!(matches!(row.verdict, Verdict::Unclear | Verdict::Unknown), "{row:?}");
            assert_eq!(row.base, row.new, "{}", row.name);
            assert!(["same", ""].contains(&row.verdict.word(row.difference_interval)), "{row:?}");
            let wide = |(low, high): (f64, f64)| high - low > 1e-9;
            assert!(!row.difference_interval.is_some_and(wide), "paired: {row:?}");
        }
        for moved in &found.moved {
            assert_eq!(moved.test.p_value, 1.0, "{moved:?}");
        }
    }

    #[test]
    fn a_few_requests_are_no_verdict() {
        let few = |count: i64, late: i64| {
            let mut sample = Sample::new();
            for k in 0..count {
                let sent = sample.send(k * 1_000_000);
                let first = (k + 20) * 1_000_000 + late;
                sample.chunks(sent, &[first, first + 9_000_000]);
                sample.done(sent, first + 9_000_000, crate::log::Class::Ok);
            }
            sample
        };
        for (count, clear) in [(1, false), (9, false), (10, true)] {
            let (base, new) = (few(count, 0), few(count, 4_000_000));
            let found = compared(&base, &new);
            let ttft = row(&found, "ttft_ms.p50");
            assert_eq!(ttft.difference_interval.is_some(), clear, "{count}: {ttft:?}");
            assert_eq!(ttft.no_interval.is_none(), clear, "{count}: {ttft:?}");
            assert_eq!(ttft.verdict == Verdict::Worse, clear, "{count}: {ttft:?}");
            assert_eq!(ttft.difference, Some(4.0), "what was measured is said");
        }
    }

    #[test]
    fn a_slower_server_is_found_out_and_a_missing_number_is_not_zero() {
        let slower = |by: i64| {
            let mut sample = Sample::new();
            for k in 0..80 {
                let sent = sample.send(k * 1_000_000);
                let first = (k + 20 + k % 17) * 1_000_000 + by;
                sample.chunks(sent, &[first, first + 9_000_000]);
                sample.done(sent, first + 9_000_000, crate::log::Class::Ok);
            }
            sample
        };
        let found = compared(&slower(0), &slower(2_000_000));
        let ttft = row(&found, "ttft_ms.p50");
        assert_eq!((ttft.verdict, ttft.difference), (Verdict::Worse, Some(2.0)), "{ttft:?}");
        assert_eq!(row(&found, "itl_ms.p50").verdict, Verdict::Unclear);
        let cached = row(&found, "reported_hit_rate");
        assert_eq!((cached.base, cached.difference, cached.ratio), (None, None, None));
        assert_eq!(cached.verdict, Verdict::Unknown);
        let errors = row(&found, "error_rate");
        assert_eq!((errors.base, errors.difference, errors.ratio), (Some(0.0), Some(0.0), None));
        let moved = found.moved.iter().find(|moved| moved.name == "ttft_ms").expect("values");
        assert_eq!(moved.test.larger_share, 1.0);
        assert!(moved.test.p_value < 1e-6);
    }
}
