//! Whether two runs sent the same requests at the same times, so that each has its counterpart.
//!
//! They did if they replayed the same bytes (the trace's digest) by the same plan: every row of it
//! alike in what it replays, when it is due, what it waits for and how long it is. Which core or
//! server took it does not matter, nor how its body is worded. What users send is decided while
//! they play, so their requests have no counterparts. Nothing is assumed of a digest that is not
//! known.

use serde::Serialize;

use super::matched::lacking;
use crate::counted::{agreeing, counted, grouped};
use crate::log::PlanRow;
use crate::run::Run;

/// Whether requests are paired, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Pairing {
    /// Each request has its counterpart.
    pub paired: bool,
    /// Why, or why not.
    pub why: String,
    /// Of paired requests, those whose end only one of the runs came to because the other one ended
    /// first: figures and rank tests of both leave them out.
    pub unmatched: u64,
}

/// Digests of traces that nobody knows.
const UNKNOWN: [&str; 2] = ["", "unknown"];

/// Whether the requests of two runs are the same ones.
#[must_use]
pub fn pairing(base: &Run, new: &Run) -> Pairing {
    match difference(base, new) {
        None => Pairing {
            paired: true,
            why: "same trace and same plan".to_owned(),
            unmatched: lacking(base, new).iter().sum(),
        },
        Some(why) => Pairing { paired: false, why, unmatched: 0 },
    }
}

/// What must be known of figures if runs did not come to the same requests; `None` if they did.
#[must_use]
pub fn unmatched_words(base: &Run, new: &Run, pairing: &Pairing) -> Option<String> {
    if pairing.unmatched == 0 {
        return None;
    }
    let all = base.requests.len() as u64;
    let [one, other] = lacking(base, new).map(grouped);
    Some(format!(
        "{} of {} {} left out of figures and ranks, because one of the runs ended before they did \
         (in the base {one}, in the new run {other}): only the other {} can be compared; rates per \
         second are of each whole run",
        grouped(pairing.unmatched),
        counted(all, "request"),
        agreeing(pairing.unmatched, "is", "are"),
        grouped(all.saturating_sub(pairing.unmatched))
    ))
}

fn difference(base: &Run, new: &Run) -> Option<String> {
    if base.users.is_some() || new.users.is_some() {
        return Some("users decide what is sent, so requests have no counterparts".to_owned());
    }
    let digests = [base, new].map(|run| run.manifest.trace.sha256.as_str());
    if digests.iter().any(|digest| UNKNOWN.contains(digest)) {
        return Some("a log does not say which trace was replayed".to_owned());
    }
    if digests[0] != digests[1] {
        return Some("the traces differ".to_owned());
    }
    let (one, other) = (&base.plan, &new.plan);
    if one.len() != other.len() {
        let (one, other) = (one.len(), other.len());
        return Some(format!("{one} requests are planned in one and {other} in the other"));
    }
    let differs = |(one, other): &(&PlanRow, &PlanRow)| asked(one) != asked(other);
    let place = one.iter().zip(other.iter()).position(|rows| differs(&rows))?;
    let what = what_differs(&one[place], &other[place]);
    Some(format!("the plans differ from request {place} on, in {what}"))
}

/// What a row asks for, wherever it is sent from and to.
fn asked(row: &PlanRow) -> PlanRow {
    PlanRow {
        core: crate::units::CoreIndex(0),
        target: 0,
        ideal_cached_tokens: None,
        ideal_set_tokens: None,
        body_bytes: None,
        ..*row
    }
}

fn what_differs(one: &PlanRow, other: &PlanRow) -> &'static str {
    let place = |row: &PlanRow| (row.request, row.row, row.source, row.session, row.turn);
    let times = |row: &PlanRow| (row.due, row.after, row.think_ns);
    let lengths = |row: &PlanRow| (row.input_tokens, row.max_tokens, row.min_tokens);
    match () {
        () if place(one) != place(other) => "the row of the trace",
        () if times(one) != times(other) => "when it is due",
        () if lengths(one) != lengths(other) => "its lengths",
        () => "its blocks",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::sample::{self, Sample};
    use crate::log::sample_users;
    use crate::units::{CoreIndex, RunNanos};

    fn read(sample: &Sample) -> Run {
        Run::read(&sample.bytes()).expect("a log")
    }

    #[test]
    fn the_same_plan_is_paired_whoever_sends_it_and_anything_else_is_not() {
        let known = |seed| {
            let mut sample = sample::sample(seed, 40);
            sample.manifest.trace.sha256 = "ab".repeat(32);
            sample
        };
        let base = read(&known(3));
        let mut other = known(3);
        other.plan[7].core = CoreIndex(0);
        other.plan[7].target = 4;
        other.plan[7].body_bytes = None;
        assert!(pairing(&base, &read(&other)).paired);
        let why = |change: &dyn Fn(&mut Sample)| {
            let mut changed = known(3);
            change(&mut changed);
            let found = pairing(&base, &read(&changed));
            assert!(!found.paired, "{}", found.why);
            found.why
        };
        let later = why(&|sample| sample.plan[9].due = Some(RunNanos(77)));
        assert_eq!(later, "the plans differ from request 9 on, in when it is due");
        let longer = why(&|sample| sample.plan[0].max_tokens = Some(7_777));
        assert_eq!(longer, "the plans differ from request 0 on, in its lengths");
        let fewer = why(&|changed| {
            changed.plan = sample::sample(3, 39).plan;
            changed.records.clear();
        });
        assert!(fewer.starts_with("40 requests are planned in one and 39"), "{fewer}");
        assert_eq!(why(&|s| s.manifest.trace.sha256 = "cd".repeat(32)), "the traces differ");
        let silent = why(&|sample| sample.manifest.trace.sha256 = String::new());
        assert!(silent.contains("does not say which trace"), "{silent}");
        let users = Run::read(&sample_users::log(1, 4)).expect("a log");
        assert!(!pairing(&users, &users).paired);
    }
}
