//! Gates: what makes a run fail, as a person types it.
//!
//! `ttft_ms.p99 > 800` and `error_rate > 1%` hold a run against a limit; `ttft_ms.p99 > +5%` and
//! `error_rate > +0.01` hold its change against one, where there is a base. A sign makes it a
//! change; per cent of a change are of the base's value. What is unknown is not zero: a number that
//! a run lacks fails its gate, and says so. A run whose schedule did not hold has the numbers of
//! another schedule, and one that its user stopped those of a part: both fail, unless they are
//! accepted as they are, which is said too. Pure: nothing is printed here.

mod limit;
mod names;

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use self::limit::{Limit, Order, RIGHT};
use self::names::Place;
use super::compare::{Against, Compared};
use super::report::Report;
use super::stopped;

/// What makes a run fail.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    typed: String,
    place: Place,
    order: Order,
    limit: Limit,
}

/// Why a text is no gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateError {
    typed: String,
    problem: String,
}

impl fmt::Display for GateError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}: {}", self.typed, self.problem)
    }
}

impl std::error::Error for GateError {}

/// What became of a gate.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Judged {
    /// As it was typed, or `schedule held`, or `run finished`.
    pub gate: String,
    /// The run it is about.
    pub run: String,
    /// Whether it makes the run fail.
    pub failed: bool,
    /// The number in this run; null where it has none.
    pub value: Option<f64>,
    /// Why, in words.
    pub words: String,
}

/// A run as a gate sees it.
#[derive(Clone, Copy, Debug)]
pub struct Judging<'a> {
    /// What it is called.
    pub name: &'a str,
    /// Its numbers.
    pub report: &'a Report,
}

impl Gate {
    /// Reads a gate.
    ///
    /// # Errors
    /// If it has no sign, no number of a report, or no limit; the words say what would be right.
    pub fn parse(text: &str) -> Result<Self, GateError> {
        let typed = text.trim().to_owned();
        let refused = |problem| GateError { typed: typed.clone(), problem };
        let found = Order::SIGNS.iter().find_map(|&(sign, order)| {
            let (name, limit) = typed.split_once(sign)?;
            Some((name.trim(), order, limit.trim()))
        });
        let Some((name, order, limit)) = found else {
            return Err(refused(format!("it has no > or <; {RIGHT}")));
        };
        let place = Place::of(name).map_err(&refused)?;
        let limit = Limit::parse(limit, order, &place).map_err(refused)?;
        Ok(Self { typed, place, order, limit })
    }

    /// Whether it is about a change, so that there must be a base.
    #[must_use]
    pub const fn needs_base(&self) -> bool {
        !matches!(self.limit, Limit::Value(_))
    }

    /// As it was typed.
    #[must_use]
    pub fn typed(&self) -> &str {
        &self.typed
    }

    /// Judges a run: against a base and what differs from it, where there is one.
    fn judge(&self, run: Case<'_>, base: Option<Base<'_>>) -> Judged {
        let value = self.place.value(run.json);
        let (failed, words) = match self.verdict(run, base) {
            Ok(found) => found,
            // Unknown is not zero.
            Err(words) => (true, words),
        };
        Judged { gate: self.typed.clone(), run: run.name.to_owned(), failed, value, words }
    }

    fn verdict(&self, run: Case<'_>, base: Option<Base<'_>>) -> Result<(bool, String), String> {
        let of = |case: Case<'_>| {
            let name = self.place.short();
            self.place.value(case.json).ok_or_else(|| {
                format!("{} has no data for {name}, and what is unknown cannot pass", case.name)
            })
        };
        let value = of(run)?;
        let shown = |value: f64| self.shown(value);
        if let Limit::Value(limit) = self.limit {
            return Ok((self.order.holds(value, limit), format!("it is {}", shown(value))));
        }
        let Some(base) = base else {
            return Err("there is no base to have changed from".to_owned());
        };
        let Base { case, against } = base;
        let short = self.place.short();
        let is_row = |row: &&Compared| self.place.is_main() && row.name == short;
        let row = against.figures.iter().find(is_row);
        let (before, value, among) = if against.pairing.unmatched > 0 {
            let (before, value) = self.of_both(row)?;
            // A rate has no requests that could be left out of it.
            let among = if short.ends_with("_per_s") {
                ", each of its whole run"
            } else {
                " over requests that both came to"
            };
            (before, value, among)
        } else {
            (of(case)?, value, "")
        };
        let (value_shown, before_shown) = (shown(value), shown(before));
        let both = format!("{value_shown} against {before_shown} in {}{among}", case.name);
        let unsure = || {
            let why = row.and_then(|row| row.no_interval.as_ref());
            why.map_or_else(String::new, |why| format!(" (no interval: {why})"))
        };
        match self.limit {
            Limit::Relative(limit) => {
                let change = match before {
                    _ if value.total_cmp(&before).is_eq() => 0.0,
                    0.0 => {
                        return Err(format!(
                            "{both}: there is no per cent of 0; give the change \
                                            itself, like +0.01"
                        ));
                    }
                    _ => value / before - 1.0,
                };
                let sure = row.and_then(|row| row.ratio_interval).map(|(low, high)| {
                    let ends = [low - 1.0, high - 1.0];
                    let words = ends.map(|end| signed(&percent(end), end)).join(" to ");
                    self.sureness(ends, change, limit, &words)
                });
                let change_shown = signed(&percent(change), change);
                let words = format!("{both}: {change_shown}{}", sure.unwrap_or_else(unsure));
                Ok((self.order.holds(change, limit), words))
            }
            Limit::Change(limit) | Limit::Value(limit) => {
                let change = value - before;
                let moved = |by: f64| {
                    signed(&if self.place.is_share() { points(by) } else { shown(by) }, by)
                };
                let sure = row.and_then(|row| row.difference_interval).map(|(low, high)| {
                    let words = [low, high].map(moved).join(" to ");
                    self.sureness([low, high], change, limit, &words)
                });
                let change_shown = moved(change);
                let words = format!("{both}: {change_shown}{}", sure.unwrap_or_else(unsure));
                Ok((self.order.holds(change, limit), words))
            }
        }
    }

    /// The values of requests that both runs came to. Whole runs have those of others.
    fn of_both(&self, row: Option<&Compared>) -> Result<(f64, f64), String> {
        let short = self.place.short();
        let row = row.ok_or_else(|| {
            format!(
                "the runs did not come to the same requests, and how {short} changed over those that \
                 both came to is not known"
            )
        })?;
        row.base.zip(row.new).ok_or_else(|| {
            format!("there is no data for {short} of requests that both runs came to")
        })
    }

    /// The interval of a change, and whether chance could turn the verdict: whether one of its ends
    /// has another. Where no draw gives another change, none turns anything.
    fn sureness(&self, ends: [f64; 2], change: f64, limit: f64, words: &str) -> String {
        let verdict = |change: f64| self.order.holds(change, limit);
        let is_turned =
            ends[0] < ends[1] && ends.iter().any(|&end| verdict(end) != verdict(change));
        let turned = if is_turned { "; chance could turn it" } else { "" };
        format!(" (95 % interval {words}{turned})")
    }

    fn shown(&self, value: f64) -> String {
        if self.place.is_share() {
            return percent(value);
        }
        // An end of an interval may lie between two counts.
        let is_whole = self.place.is_whole() && value.fract() == 0.0;
        let shown = if is_whole { whole(value) } else { number(value) };
        format!("{shown}{}", self.place.unit())
    }
}

/// A run's name and its numbers as JSON.
#[derive(Clone, Copy)]
struct Case<'a> {
    name: &'a str,
    json: &'a Value,
}

/// The base, and what differs from it.
#[derive(Clone, Copy)]
struct Base<'a> {
    case: Case<'a>,
    against: &'a Against,
}

/// Judges one run, against a base where there is one. Without gates nothing is judged. With
/// `accepted`, a schedule that did not hold, or a stop, is said and fails nothing.
#[must_use]
pub fn judge(
    gates: &[Gate],
    run: Judging<'_>,
    base: Option<(Judging<'_>, &Against)>,
    accepted: bool,
) -> Vec<Judged> {
    if gates.is_empty() {
        return Vec::new();
    }
    let json = |of: Judging<'_>| serde_json::to_value(of.report).unwrap_or_default();
    let own = json(run);
    let before = base.map(|(base, against)| (base, json(base), against));
    let case = Case { name: run.name, json: &own };
    let base = before
        .as_ref()
        .map(|(base, json, against)| Base { case: Case { name: base.name, json }, against });
    let judged = gates.iter().map(|gate| gate.judge(case, base));
    held(run, accepted).into_iter().chain(judged).collect()
}

/// What is said of a run whose schedule did not hold, or that was stopped; nothing of another.
#[must_use]
pub fn held(run: Judging<'_>, accepted: bool) -> Vec<Judged> {
    let judged = |gate: &str, words: String, numbers: &str| Judged {
        gate: gate.to_owned(),
        run: run.name.to_owned(),
        failed: !accepted,
        value: None,
        words: match accepted {
            true => format!("{words}: accepted all the same"),
            false => format!("{words}{numbers}; --accept-not-held judges them anyway"),
        },
    };
    let verdict = &run.report.verdict;
    let why = verdict.reasons.first().map_or("", String::as_str);
    let not_held = (!verdict.schedule_held).then(|| {
        let words = format!("the schedule did not hold ({why})");
        judged("schedule held", words, ": the numbers are not those of the schedule")
    });
    let stopped = stopped::warning(run.report).map(|words| judged("run finished", words, ""));
    not_held.into_iter().chain(stopped).collect()
}

impl fmt::Display for Judged {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.failed { "FAIL" } else { "pass" };
        write!(out, "{word}  {}  {}: {}", self.gate, self.run, self.words)
    }
}

/// A number with at least three significant digits, and whole from a thousand on.
#[must_use]
pub fn number(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 1_000.0 || size == 0.0 => return whole(value),
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        size if size >= 0.1 => 3,
        _ => 5,
    };
    format!("{value:.decimals$}")
}

/// A number without what follows its point.
fn whole(value: f64) -> String {
    let text = format!("{value:.0}");
    match text.trim_start_matches('-').parse::<u64>() {
        Ok(whole) => {
            let sign = if text.starts_with('-') && whole > 0 { "-" } else { "" };
            format!("{sign}{}", crate::counted::grouped(whole))
        }
        Err(_) => text,
    }
}

/// A share in per cent, with two digits after the point where it is small.
#[must_use]
pub fn percent(share: f64) -> String {
    let decimals = if share.abs() < 0.1 { 2 } else { 1 };
    format!("{:.decimals$} %", share * 100.0)
}

/// A difference of shares: in percentage points, because per cent of the share would be another
/// number.
#[must_use]
pub fn points(by: f64) -> String {
    let decimals = if by.abs() < 0.1 { 2 } else { 1 };
    format!("{:.decimals$} pp", by * 100.0)
}

/// A value that already has a minus where it needs one, with a plus where it does not.
#[must_use]
pub fn signed(shown: &str, value: f64) -> String {
    if value > 0.0 { format!("+{shown}") } else { shown.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::super::compare::{Subject, against};
    use super::super::slo::Goals;
    use super::super::{ReportOptions, report};
    use super::*;
    use crate::log::Class;
    use crate::log::sample::Sample;
    use crate::run::Run;

    const MS: i64 = 1_000_000;

    /// A hundred requests whose first token takes so many ms; the last ones fail.
    fn run(ttft_ms: i64, failed: i64, late_ms: i64) -> Run {
        let mut sample = Sample::new();
        for k in 0..100 {
            let request = sample.plan(k * MS);
            let sent = (k + late_ms) * MS;
            sample.dispatch(request, k * MS, sent);
            if k < 100 - failed {
                sample.chunks(request, &[sent + ttft_ms * MS, sent + (ttft_ms + 9) * MS]);
                sample.done(request, sent + (ttft_ms + 9) * MS, Class::Ok);
            } else {
                sample.done(request, sent + MS, Class::Http429);
            }
        }
        Run::read(&sample.bytes()).expect("a log")
    }

    fn judged(gates: &[&str], run: &Run, base: Option<&Run>, accepted: bool) -> Vec<Judged> {
        let gates: Vec<Gate> = gates.iter().map(|text| Gate::parse(text).expect(text)).collect();
        let numbers = report(run, &ReportOptions::default());
        let new = Judging { name: "new.beat", report: &numbers };
        let Some(base) = base else { return judge(&gates, new, None, accepted) };
        let before = report(base, &ReportOptions::default());
        let subject = |name, run, report| Subject { name, run, report };
        let differs = against(
            subject("base.beat", base, &before),
            subject("new.beat", run, &numbers),
            &Goals::default(),
        );
        let base = Judging { name: "base.beat", report: &before };
        judge(&gates, new, Some((base, &differs)), accepted)
    }

    #[test]
    fn limits_are_values_and_changes() {
        let (base, new) = (run(100, 1, 0), run(104, 3, 0));
        let cases = [
            ("ttft_ms.p99 > 800", false),
            ("ttft_ms.p99 > 103.9", true),
            ("ttft_ms.p99 >= 104", true),
            ("ttft_ms.p99 < 104", false),
            ("ttft_ms.p99 <= 104", true),
            ("error_rate > 1%", true),
            ("error_rate > 3%", false),
            ("error_rate > 0.02", true),
            ("by_class.http_429 > 2", true),
            ("by_class.http_5xx > 0", false),
            ("ttft_ms.p99 > +5%", false),
            ("ttft_ms.p50 > +5%", false),
            ("ttft_ms.p99 > +3%", true),
            ("ttft_ms.p99>+3.9", true),
            ("ttft_ms.p99 > +4.1", false),
            ("ttft_ms.p99 < -1%", false),
            ("error_rate > +100%", true),
            ("error_rate > +0.019", true),
            ("requests_per_s < −1%", true),
        ];
        let found = judged(&cases.map(|(gate, _)| gate), &new, Some(&base), false);
        assert_eq!(found.len(), cases.len(), "{found:?}");
        for (found, (gate, failed)) in found.iter().zip(cases) {
            assert_eq!((found.failed, &*found.gate), (failed, gate), "{found}");
        }
        let of = |gate: &str| found.iter().find(|one| one.gate == gate).expect("judged");
        let words = of("ttft_ms.p99 > +5%").to_string();
        assert!(
            words.starts_with("pass  ttft_ms.p99 > +5%  new.beat: 104.0 ms against"),
            "{words}"
        );
        assert!(words.contains("+4.00 % (no interval: p99 takes 500 values"), "{words}");
        let words = of("ttft_ms.p50 > +5%").to_string();
        assert!(words.contains("+4.00 % (95 % interval +4.00 % to +4.00 %)"), "{words}");
    }

    #[test]
    fn counts_are_whole_numbers_and_measures_have_decimals() {
        let (base, new) = (run(291, 1, 0), run(291, 12, 0));
        for (gate, words) in [
            ("ok < 5", "it is 88"),
            ("sent < 5", "it is 100"),
            ("ttft_ms.count < 5", "it is 88"),
            ("by_class.http_429 > 20", "it is 12"),
            ("by_class.http_5xx > 0", "it is 0"),
            ("ok < -20", "88 against 99 in base.beat: -11"),
            ("ttft_ms.p50 > 800", "it is 291.0 ms"),
        ] {
            assert_eq!(judged(&[gate], &new, Some(&base), true)[0].words, words, "{gate}");
        }
    }

    #[test]
    fn chance_turns_only_what_would_be_otherwise_at_an_end_of_the_interval() {
        let base = run(100, 3, 0);
        for (gate, turns) in [
            // Runs that are alike differ by nothing, whatever is drawn.
            ("error_rate > +0", false),
            ("error_rate >= +0", false),
            ("ttft_ms.p50 > +0%", false),
            ("ttft_ms.p50 >= +0", false),
        ] {
            let words = &judged(&[gate], &base, Some(&base), false)[0].words;
            assert!(words.contains("95 % interval"), "{gate}: {words}");
            assert_eq!(words.contains("chance could turn it"), turns, "{gate}: {words}");
        }
        for (gate, turns) in [("error_rate > +0.04", true), ("error_rate > +0.9", false)] {
            let words = &judged(&[gate], &run(100, 6, 0), Some(&base), false)[0].words;
            assert_eq!(words.contains("chance could turn it"), turns, "{gate}: {words}");
        }
    }

    #[test]
    fn what_is_unknown_fails_in_words() {
        let (base, new) = (run(100, 0, 0), run(104, 0, 0));
        let cases = [
            ("reported_hit_rate < 50%", "no data for reported_hit_rate"),
            ("reported_hit_rate < -5%", "no data for reported_hit_rate"),
            ("met.itl_ms.share < 90%", "no data for met.itl_ms.share"),
            ("error_rate > +5%", ""),
        ];
        let found = judged(&cases.map(|(gate, _)| gate), &new, Some(&base), true);
        for (found, (_, words)) in found.iter().zip(cases).take(3) {
            assert!(found.failed && found.value.is_none(), "{found}");
            assert!(found.words.contains(words), "{found}");
        }
        assert!(!found[3].failed, "nothing has changed from nothing: {}", found[3]);
        // Of nothing there is no per cent, and no change of nothing is none.
        let failing = run(100, 5, 0);
        let found = &judged(&["error_rate > +5%"], &failing, Some(&base), false)[0];
        assert!(found.failed && found.words.contains("no per cent of 0"), "{found}");
        let found = &judged(&["ttft_ms.p50 > +5%"], &new, None, false)[0];
        assert!(found.failed && found.words.contains("no base"), "{found}");
        let nobody = run(100, 100, 0);
        let found = &judged(&["ttft_ms.p50 > 900"], &nobody, None, false)[0];
        assert!(found.failed, "no success is no fast success: {found}");
    }

    #[test]
    fn a_schedule_that_did_not_hold_never_passes_in_silence() {
        let late = run(100, 0, 30);
        let found = judged(&["ttft_ms.p99 > 800"], &late, None, false);
        assert_eq!(found.iter().map(|one| one.failed).collect::<Vec<_>>(), [true, false]);
        assert!(found[0].words.contains("the schedule did not hold"), "{}", found[0]);
        let found = judged(&["ttft_ms.p99 > 800"], &late, None, true);
        assert!(found.iter().all(|one| !one.failed) && found.len() == 2, "{found:?}");
        assert!(found[0].words.contains("accepted all the same"), "{}", found[0]);
        assert!(judged(&[], &late, None, false).is_empty(), "nothing was asked");
    }

    #[test]
    fn a_run_that_was_stopped_never_passes_in_silence() {
        let mut sample = Sample::new();
        for k in 0..100 {
            let request = if k < 32 { sample.send(k * MS) } else { sample.plan(k * MS) };
            let class = if k < 32 { Class::Ok } else { Class::NotReached };
            sample.done(request, (k + 1) * MS, class);
        }
        sample.interrupted = true;
        let stopped = Run::read(&sample.bytes()).expect("a log");
        for base in [None, Some(&run(100, 0, 0))] {
            let found = judged(&["error_rate > 50%"], &stopped, base, false);
            assert_eq!(found.iter().map(|one| one.failed).collect::<Vec<_>>(), [true, false]);
            let words = found[0].to_string();
            assert!(
                words.starts_with("FAIL  run finished  new.beat: the run was stopped"),
                "{words}"
            );
            assert!(words.contains("32 of 100 requests") && words.contains("--accept-not-held"));
            let found = judged(&["error_rate > 50%"], &stopped, base, true);
            assert!(found.iter().all(|one| !one.failed) && found.len() == 2, "{found:?}");
            assert!(found[0].words.contains("accepted all the same"), "{}", found[0]);
        }
        assert!(judged(&[], &stopped, None, false).is_empty(), "nothing was asked");
    }

    #[test]
    fn what_is_no_gate_is_refused_with_what_would_be_right() {
        for (text, words) in [
            ("ttft_ms.p99", "it has no > or <; right would be like 'ttft_ms.p99 > 800'"),
            ("ttft_ms.p99 = 5", "it has no > or <"),
            ("ttft_ms.p99 > 800ms", "\"800ms\" is no limit (its unit is in its name: ms)"),
            ("ttft_ms.p99 >", "\"\" is no limit"),
            ("ttft_ms.p99 > +", "\"+\" is no limit"),
            ("ttft_ms.p99 > nan", "\"nan\" is no limit"),
            ("ttft_ms.p99 > inf%", "\"inf%\" is no limit"),
            ("ttft_ms.p99 > 5%", "ttft_ms.p99 is no share, so 5% says nothing"),
            ("ttft.p99 > 5", "near it are ttft_ms.p99"),
            ("> 5", "no number of a report is called \"\""),
        ] {
            let error = Gate::parse(text).expect_err(text).to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
