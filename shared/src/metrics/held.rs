//! When admission held users back, by which limit, and for how long.
//!
//! A user that is refused asks again after a back-off. Back-offs that follow each other are one
//! *wait*: from the first refusal to the end of the last back-off, or to the run's end, if that
//! comes first. How long each *request* was held back is [`super::attribution::queue_ns`].

use super::attribution;
use crate::log::LimitedBy;
use crate::run::Run;
use crate::units::{RunNanos, SessionIndex};

/// How long after a back-off a user asks again at the latest.
const AGAIN_NS: i64 = 50_000_000;

/// One wait of one user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The user.
    pub session: SessionIndex,
    /// When it was refused first.
    pub from: RunNanos,
    /// When its last back-off ended. Not before `from`.
    pub to: RunNanos,
    /// What stood in its way first.
    pub by: LimitedBy,
    /// How often it was refused.
    pub times: u32,
}

impl Wait {
    /// Its length.
    #[must_use]
    pub const fn ns(&self) -> i64 {
        self.to.0.saturating_sub(self.from.0)
    }
}

/// Every wait of a run, by user and then by time. None if it is not driven by users.
#[must_use]
pub fn waits(run: &Run) -> Vec<Wait> {
    let Some(users) = &run.users else { return Vec::new() };
    let end = attribution::end(run, users);
    let mut limits = users.limits.clone();
    limits.sort_by_key(|limit| (limit.session, limit.time));
    let mut waits: Vec<Wait> = Vec::new();
    for limit in limits {
        let from = limit.time;
        let backoff = i64::try_from(limit.backoff_ns).unwrap_or(i64::MAX);
        let to = RunNanos(from.0.saturating_add(backoff)).min(end).max(from);
        let goes_on = |wait: &&mut Wait| {
            wait.session == limit.session && from.0 <= wait.to.0.saturating_add(AGAIN_NS)
        };
        match waits.last_mut().filter(goes_on) {
            Some(wait) => {
                wait.to = wait.to.max(to);
                wait.times += 1;
            }
            None => {
                waits.push(Wait { session: limit.session, from, to, by: limit.by, times: 1 });
            }
        }
    }
    waits
}

/// What one limit did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Held {
    /// The limit.
    pub by: LimitedBy,
    /// How often it refused.
    pub times: u64,
    /// Waits that began with it.
    pub waits: u64,
    /// Users that it was the first to hold back.
    pub users: u64,
    /// The length of those waits, summed.
    pub total_ns: i64,
    /// The longest of them.
    pub longest_ns: i64,
}

/// What each limit did, of waits that begin within a stretch; limits that held nobody are left out.
/// `waits` are those of [`waits`].
#[must_use]
pub fn by_limit(waits: &[Wait], range: (RunNanos, RunNanos)) -> Vec<Held> {
    let inside = |wait: &&Wait| range.0 <= wait.from && wait.from < range.1;
    let of = |by: LimitedBy| {
        let mut held = Held { by, times: 0, waits: 0, users: 0, total_ns: 0, longest_ns: 0 };
        let mut last = None;
        for wait in waits.iter().filter(inside).filter(|wait| wait.by == by) {
            held.times += u64::from(wait.times);
            held.waits += 1;
            held.users += u64::from(last.replace(wait.session) != Some(wait.session));
            held.total_ns = held.total_ns.saturating_add(wait.ns());
            held.longest_ns = held.longest_ns.max(wait.ns());
        }
        held
    };
    LimitedBy::ALL.into_iter().map(of).filter(|held| held.waits > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::UserEvent;
    use crate::log::sample_users::{Sent, empty, happens, sends};

    const MS: i64 = 1_000_000;

    fn run() -> Run {
        let mut sample = empty(10_000 * MS);
        let started = UserEvent::Started { template: SessionIndex(0), cue: 0, copy: 0 };
        for session in 0..2 {
            happens(&mut sample, session, 0, started);
        }
        let mut held = |session, at: i64, by, backoff: u64| {
            let event = UserEvent::Limited { by, backoff_ns: backoff * 1_000_000 };
            happens(&mut sample, session, at * MS, event);
        };
        held(0, 100, LimitedBy::Concurrency, 200);
        held(1, 150, LimitedBy::InputBudget, 50);
        held(0, 301, LimitedBy::Ttft, 400);
        held(0, 2_000, LimitedBy::Concurrency, 100_000);
        sends(&mut sample, 0, &Sent::of(0, 710 * MS, 3_000 * MS));
        Run::read(&sample.bytes()).expect("a log")
    }

    #[test]
    fn back_offs_that_follow_each_other_are_one_wait() {
        let found = waits(&run());
        let shown: Vec<_> = found
            .iter()
            .map(|wait| (wait.session.0, wait.from.0 / MS, wait.ns() / MS, wait.by, wait.times))
            .collect();
        assert_eq!(
            shown,
            [
                (0, 100, 601, LimitedBy::Concurrency, 2),
                (0, 2_000, 1_000, LimitedBy::Concurrency, 1),
                (1, 150, 50, LimitedBy::InputBudget, 1),
            ],
            "the last one ends with the run"
        );
    }

    #[test]
    fn limits_are_summed_over_the_waits_that_begin_with_them() {
        let found = waits(&run());
        let all = by_limit(&found, (RunNanos(0), RunNanos(10_000 * MS)));
        let shown: Vec<_> = all
            .iter()
            .map(|held| (held.by, held.times, held.waits, held.users, held.total_ns / MS))
            .collect();
        assert_eq!(
            shown,
            [(LimitedBy::Concurrency, 3, 2, 1, 1_601), (LimitedBy::InputBudget, 1, 1, 1, 50)]
        );
        assert_eq!(all[0].longest_ns, 1_000 * MS);
        let none = by_limit(&found, (RunNanos(200 * MS), RunNanos(300 * MS)));
        assert!(none.is_empty());
    }
}
