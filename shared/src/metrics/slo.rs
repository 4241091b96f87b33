//! Goals, and how many requests meet them.
//!
//! A goal is met at its limit. A request counts into goodput if it succeeded and meets every goal;
//! a goal on a number that the request lacks is missed. Shares are of all requests that ended by
//! themselves, failures included, and of those that the plan cancelled: the client that gave up was
//! not served, and AIPerf counts it as an error too. Requests that the user or the run's end cut
//! off, and those in flight when the log ends, are in neither part and counted beside them; those
//! that never left are in nothing. *Effective* goodput counts the wait for the sending into TTFT:
//! first token − max(due, ready).

use std::fmt;

use super::goal::{self, Goal, GoalKind};
use super::latency::{Metric, nanos};
use super::selection::Selection;
use crate::log::{Class, Manifest, Outcome};
use crate::run::{End, Run};

/// Goals that a request must meet, all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Goals {
    /// The goals; no two of the same kind.
    list: Vec<Goal>,
}

/// Why a text is no goal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoalError {
    found: String,
    problem: Problem,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Problem {
    UnknownName,
    Other(&'static str),
}

impl fmt::Display for GoalError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = match self.problem {
            Problem::UnknownName => "unknown name",
            Problem::Other(words) => words,
        };
        let right = "write name:limit, for example \"ttft:500 itl:50\" (milliseconds)";
        write!(out, "goal {:?}: {problem}; {right}", self.found)?;
        if self.problem == Problem::UnknownName {
            write!(out, "; names: {}", goal::names())?;
        }
        Ok(())
    }
}

impl std::error::Error for GoalError {}

impl Goals {
    /// Reads goals as AIPerf's `--goodput` writes them: `name:limit` pairs separated by spaces.
    ///
    /// # Errors
    /// If a pair has no colon, an unknown name, a limit that is no positive number, or a name
    /// twice.
    pub fn parse(text: &str) -> Result<Self, GoalError> {
        let mut goals = Self::default();
        for pair in text.split_whitespace() {
            let refused = |problem| GoalError { found: pair.to_owned(), problem };
            let wrong = |words| refused(Problem::Other(words));
            let (name, limit) = pair.split_once(':').ok_or_else(|| wrong("it has no colon"))?;
            let kind = GoalKind::from_name(name).ok_or_else(|| refused(Problem::UnknownName))?;
            let limit: f64 = limit.parse().map_err(|_error| wrong("the limit is no number"))?;
            if !(limit.is_finite() && limit > 0.0) {
                return Err(wrong("the limit is not above zero"));
            }
            if !goals.add(Goal { kind, limit }) {
                return Err(wrong("a second limit for the same name"));
            }
        }
        Ok(goals)
    }

    /// The goals that a run was started with: those typed for its summary and those of its users.
    /// None where the log does not say.
    #[must_use]
    pub fn of_run(manifest: &Manifest) -> Self {
        let mut goals = Self::typed(manifest);
        if let Some(users) = &manifest.users {
            let ttft_ms = users.goals.ttft_ns.map(|ttft_ns| nanos(ttft_ns) / 1e6);
            goals.add_limits(ttft_ms, users.goals.decode_tokens_per_s);
        }
        goals
    }

    /// The goals that were typed for a run's summary; none where the log does not say.
    #[must_use]
    pub fn typed(manifest: &Manifest) -> Self {
        let typed = &manifest.config["goals"];
        let text = typed["goodput"].as_str().unwrap_or_default();
        // What another version writes differently is no reason to refuse the run.
        let mut goals = Self::parse(text).unwrap_or_default();
        let ttft_ms = typed["slo_ttft"].as_f64().map(|seconds| seconds * 1e3);
        goals.add_limits(ttft_ms, typed["slo_decode_tps"].as_f64());
        goals
    }

    fn add_limits(&mut self, ttft_ms: Option<f64>, decode_tps: Option<f64>) {
        let more = [(GoalKind::AtMost(Metric::Ttft), ttft_ms), (GoalKind::DecodeSpeed, decode_tps)];
        for (kind, limit) in more {
            if let Some(limit) = limit.filter(|limit| limit.is_finite() && *limit > 0.0) {
                self.add(Goal { kind, limit });
            }
        }
    }

    /// The limit on a number, if there is one.
    #[must_use]
    pub fn limit(&self, kind: GoalKind) -> Option<f64> {
        self.list.iter().find(|goal| goal.kind == kind).map(|goal| goal.limit)
    }

    /// Moves the goal of a kind, or adds it.
    pub fn set(&mut self, goal: Goal) {
        match self.list.iter_mut().find(|other| other.kind == goal.kind) {
            Some(there) => *there = goal,
            None => self.list.push(goal),
        }
    }

    /// Drops the goal of a kind.
    pub fn remove(&mut self, kind: GoalKind) {
        self.list.retain(|goal| goal.kind != kind);
    }

    /// The goals but the one of a kind.
    #[must_use]
    pub fn without(&self, kind: GoalKind) -> Self {
        let mut others = self.clone();
        others.remove(kind);
        others
    }

    /// Adds a goal; `false` if there is one of its kind.
    pub fn add(&mut self, goal: Goal) -> bool {
        let is_new = self.list.iter().all(|other| other.kind != goal.kind);
        if is_new {
            self.list.push(goal);
        }
        is_new
    }

    /// The goals, in the order they were given.
    #[must_use]
    pub fn list(&self) -> &[Goal] {
        &self.list
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether request `i` succeeded and meets every goal.
    #[must_use]
    pub fn is_good(&self, run: &Run, i: usize, effective: bool) -> bool {
        run.requests.is_ok(i) && self.list.iter().all(|goal| goal.is_met(run, i, effective))
    }
}

/// Whether request `i` ended by itself without success.
#[must_use]
pub fn failed(run: &Run, i: usize) -> bool {
    match run.requests.outcome(i) {
        Some(Outcome::Ok | Outcome::Cancelled | Outcome::NeverSent) | None => false,
        Some(_) => true,
    }
}

/// Whether request `i` counts in shares: it ended by itself, or the plan cancelled it.
#[must_use]
pub fn counts(run: &Run, i: usize) -> bool {
    let by_plan = run.requests.class(i) == Some(Class::CancelledByPlan);
    run.requests.is_ok(i) || failed(run, i) || by_plan
}

/// Whether request `i` was cut off: by the user, by the run's end, or by that of the log.
#[must_use]
pub fn was_cut_off(run: &Run, i: usize) -> bool {
    let cancelled = run.requests.outcome(i) == Some(Outcome::Cancelled);
    run.requests.end(i) == End::Open || (cancelled && !counts(run, i))
}

/// How many of the chosen requests meet the goals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attainment {
    /// Requests that count in shares.
    pub of: u64,
    /// Requests that were cut off, which do not.
    pub cut_off: u64,
    /// Successful requests that meet each goal, in the goals' order.
    pub met: Vec<u64>,
    /// Successful requests that meet all.
    pub good: u64,
    /// The same with the wait for the sending counted into TTFT.
    pub effective: u64,
}

impl Attainment {
    /// Counts over the chosen requests.
    #[must_use]
    pub fn of(selection: &Selection<'_>, goals: &Goals) -> Self {
        let run = selection.run();
        let mut attainment = Self { met: vec![0; goals.list.len()], ..Self::default() };
        for i in selection.requests() {
            attainment.of += u64::from(counts(run, i));
            attainment.cut_off += u64::from(was_cut_off(run, i));
            if !run.requests.is_ok(i) {
                continue;
            }
            for (met, goal) in attainment.met.iter_mut().zip(&goals.list) {
                *met += u64::from(goal.is_met(run, i, false));
            }
            attainment.good += u64::from(goals.is_good(run, i, false));
            attainment.effective += u64::from(goals.is_good(run, i, true));
        }
        attainment
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::sample::Sample;
    use crate::log::sample_users;

    const MS: i64 = 1_000_000;

    #[test]
    fn goals_read_and_refuse() {
        let goals = Goals::parse("time_to_first_token:370 itl:50.5").expect("two goals");
        assert_eq!(
            goals.list(),
            [
                Goal { kind: GoalKind::AtMost(Metric::Ttft), limit: 370.0 },
                Goal { kind: GoalKind::AtMost(Metric::Itl), limit: 50.5 }
            ]
        );
        for wrong in ["ttft", "ttft:", "ttft:-1", "ttft:nan", "speed:3", "itl:1 tpot:2"] {
            let error = Goals::parse(wrong).expect_err(wrong).to_string();
            assert!(error.contains("name:limit"), "{error}");
            let names = ["ttft/time_to_first_token", "e2e_output_token_throughput"];
            let listed = names.iter().all(|name| error.contains(name));
            assert_eq!(listed, wrong == "speed:3", "an unknown name gets the list: {error}");
        }
    }

    #[test]
    fn a_run_knows_what_it_was_started_with() {
        let mut manifest = Sample::new().manifest;
        assert!(Goals::of_run(&manifest).is_empty());
        manifest.config["goals"] = serde_json::json!({
            "goodput": "ttft:500 itl:20", "slo_ttft": null, "slo_decode_tps": 30.0
        });
        let both = Goals::parse("ttft:500 itl:20 decode_tps:30").expect("goals");
        assert_eq!(Goals::of_run(&manifest), both);
        for odd in [serde_json::json!(7), serde_json::json!({"goodput": "x:y", "slo_ttft": -1})] {
            manifest.config["goals"] = odd;
            assert!(Goals::of_run(&manifest).is_empty());
        }
        let users = Run::read(&sample_users::log(3, 2)).expect("a log");
        let theirs = Goals::parse("ttft:500 decode_tps:30").expect("goals");
        assert_eq!(Goals::of_run(&users.manifest), theirs);
    }

    #[test]
    fn goals_move_come_and_go() {
        let mut goals = Goals::parse("ttft:500 itl:20").expect("goals");
        let [ttft, itl] = [GoalKind::AtMost(Metric::Ttft), GoalKind::AtMost(Metric::Itl)];
        goals.set(Goal { kind: ttft, limit: 300.0 });
        assert_eq!((goals.limit(ttft), goals.list()[0].kind), (Some(300.0), ttft));
        goals.set(Goal { kind: GoalKind::DecodeSpeed, limit: 9.0 });
        assert_eq!(goals.without(itl).list().len(), 2);
        goals.remove(ttft);
        assert_eq!(goals, Goals::parse("itl:20 decode_tps:9").expect("goals"));
        assert_eq!(goals.limit(ttft), None);
    }

    #[test]
    fn failures_are_misses_and_cut_off_requests_are_apart() {
        // Case H06: 80 meet, 10 miss, 6 fail, 4 are cut off by the end of the run.
        let mut sample = Sample::new();
        for k in 0..100 {
            let request = sample.send(k * MS);
            let first = k * MS + if k < 80 { 100 * MS } else { 900 * MS };
            if k < 90 {
                sample.chunks(request, &[first, first + MS]);
            }
            let class = match k {
                0..90 => Class::Ok,
                90..96 => Class::ConnectRefused,
                _ => Class::CutAtEnd,
            };
            sample.done(request, first + 2 * MS, class);
        }
        let run = Run::read(&sample.bytes()).expect("a log");
        let goals = Goals::parse("ttft:500").expect("a goal");
        let attainment = Attainment::of(&Selection::new(&run, None), &goals);
        let met = vec![80];
        assert_eq!(attainment, Attainment { of: 96, cut_off: 4, met, good: 80, effective: 80 });
    }

    #[test]
    fn a_client_that_gives_up_was_not_served() {
        // 45 succeed, the plan cancels 3, one is in flight when the log ends, one never leaves.
        let mut sample = Sample::new();
        sample.closed = false;
        for k in 0..49 {
            let request = sample.send(k * MS);
            sample.chunks(request, &[(k + 1) * MS, (k + 2) * MS]);
            match k {
                0..45 => sample.done(request, (k + 2) * MS, Class::Ok),
                45..48 => sample.done(request, (k + 2) * MS, Class::CancelledByPlan),
                _ => {}
            }
        }
        sample.plan(50 * MS);
        let run = Run::read(&sample.bytes()).expect("a log");
        let goals = Goals::parse("ttft:500").expect("a goal");
        let attainment = Attainment::of(&Selection::new(&run, None), &goals);
        let met = vec![45];
        assert_eq!(attainment, Attainment { of: 48, cut_off: 1, met, good: 45, effective: 45 });
        assert!((0..50).all(|i| !failed(&run, i)), "none of them failed");
    }

    #[test]
    fn waiting_for_the_sending_counts_into_effective_goodput() {
        let mut sample = Sample::new();
        let request = sample.plan(0);
        sample.dispatch(request, 0, 450 * MS);
        sample.chunks(request, &[550 * MS, 560 * MS]);
        sample.done(request, 560 * MS, Class::Ok);
        let run = Run::read(&sample.bytes()).expect("a log");
        let goals = Goals::parse("ttft:500 decode_tps:30").expect("goals");
        let attainment = Attainment::of(&Selection::new(&run, None), &goals);
        assert_eq!((attainment.good, attainment.effective), (1, 0));
        assert_eq!(attainment.met, [1, 1], "a decode of 10 ms is too short to be slow");
    }
}
