//! Which users were active, idle or rate-limited in a period, and at its end.
//!
//! A user (or sub-agent) is present from its start to its end, or that of its last request; one
//! that the run's end stopped is present to the end of that period. Of a period, a user was
//! *limited* if it was kept back in it or is in back-off at its end, else *active* if a request of
//! it ended in it or is in flight at its end, else *idle*: the page's rule and priority, so the
//! three sum to the users present. The states at the end alone are a second set, and [`over_time`]
//! gives those of every instant. One pass over all events in the order of time; its cost does not
//! grow with how long users stay as they are.

use super::attribution::Grid;
use super::periods::UserStates;
use crate::run::{Left, Run, User, Users};
use crate::units::{RunNanos, SessionIndex};

/// What can happen to a user, in the order in which it does at one instant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Starts,
    IsLimited,
    Sends,
    Ends,
    Leaves,
    /// It leaves, and counts in this period still.
    IsStopped,
}

/// One user as far as the events have come.
#[derive(Clone, Copy, Default)]
struct Now {
    is_present: bool,
    in_flight: u32,
    is_waiting: bool,
    /// Numbers of the last periods in which it was kept back, and in which a request of it ended.
    limited_in: usize,
    ended_in: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Active,
    Idle,
    Limited,
}

impl Now {
    fn state(&self) -> State {
        if self.is_waiting {
            State::Limited
        } else if self.in_flight > 0 {
            State::Active
        } else {
            State::Idle
        }
    }

    /// In the period of this number, from 1.
    fn state_in(&self, number: usize) -> State {
        if self.limited_in == number {
            State::Limited
        } else if self.ended_in == number && self.state() == State::Idle {
            State::Active
        } else {
            self.state()
        }
    }
}

/// The users of a run from one instant on, until the next change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatesAt {
    /// Since when.
    pub time: RunNanos,
    /// Those present: in back-off, with a request in flight, or neither.
    pub states: UserStates,
    /// Users and sub-agents that have completed or were truncated since the run began.
    pub left: u32,
}

/// The users' states at every instant at which one changes, by time. None if the run is not driven
/// by users.
#[must_use]
pub fn over_time(run: &Run) -> Vec<StatesAt> {
    let Some(users) = &run.users else { return Vec::new() };
    let mut events = events(run, users);
    events.sort_unstable();
    let mut stage = Stage::of(users);
    let mut left = 0;
    let mut changes: Vec<StatesAt> = Vec::new();
    for (time, happening, user) in events {
        // The run's end stops whoever is there at its own instant.
        let happening =
            if happening == Happening::IsStopped { Happening::Leaves } else { happening };
        let leaves =
            happening == Happening::Leaves && users.users[user].left != Some(Left::Stopped);
        left += u32::from(leaves);
        stage.happens(happening, user, 0);
        stage.touched.clear();
        let now = StatesAt { time, states: stage.counts, left };
        match changes.last_mut().filter(|last| last.time == time) {
            Some(last) => *last = now,
            None => changes.push(now),
        }
    }
    changes
}

/// Fills in the users' states of every period.
pub(super) fn fill(run: &Run, users: &Users, grid: &mut Grid) {
    let mut events = events(run, users);
    events.sort_unstable();
    let mut stage = Stage::of(users);
    let mut next = events.into_iter().peekable();
    for at in 0..grid.tallies.len() {
        for user in std::mem::take(&mut stage.stopped) {
            stage.set_present(user, false);
        }
        let mut present = stage.counts.total;
        let number = at + 1;
        while let Some((_, happening, user)) = next.next_if(|&(time, ..)| grid.of(time) <= at) {
            present += u32::from(happening == Happening::Starts);
            stage.happens(happening, user, number);
        }
        let period = &mut grid.tallies[at].period;
        period.users_present = present;
        period.users_at_end = stage.counts;
        period.users = stage.states_in(number);
    }
}

fn events(run: &Run, users: &Users) -> Vec<(RunNanos, Happening, usize)> {
    let known = users.users.len();
    let mut events = Vec::new();
    // A user whose beginning the log lost was there at the latest when it was heard of first.
    let mut heard = vec![None::<(RunNanos, RunNanos)>; known];
    let mut tell = |time: RunNanos, happening, session: SessionIndex| {
        if let Some(heard) = heard.get_mut(session.as_usize()) {
            let (first, last) = heard.unwrap_or((time, time));
            *heard = Some((first.min(time), last.max(time)));
            events.push((time, happening, session.as_usize()));
        }
    };
    for limit in &users.limits {
        tell(limit.time, Happening::IsLimited, limit.session);
    }
    for i in 0..run.requests.len() {
        let Some(sent) = run.requests.sent(i) else { continue };
        let session = run.plan[i].session;
        tell(sent, Happening::Sends, session);
        if let Some(done) = run.requests.done(i) {
            tell(done.max(sent), Happening::Ends, session);
        }
    }
    for (at, user) in users.users.iter().enumerate() {
        let Some(start) = start(user, heard[at].map(|(first, _)| first)) else { continue };
        events.push((start, Happening::Starts, at));
        let Some(ended) = user.ended else { continue };
        // The requests of one that is stopped may end after it.
        let ended = heard[at].map_or(ended, |(_, last)| last.max(ended));
        let is_stopped = user.left == Some(Left::Stopped);
        let happening = if is_stopped { Happening::IsStopped } else { Happening::Leaves };
        events.push((ended.max(start), happening, at));
    }
    events
}

fn start(user: &User, first: Option<RunNanos>) -> Option<RunNanos> {
    match (user.started, first) {
        (Some(started), Some(first)) => Some(started.min(first)),
        (started, first) => started.or(first),
    }
}

struct Stage {
    now: Vec<Now>,
    /// Of those present.
    counts: UserStates,
    /// Users with an event of this period that its end does not show.
    touched: Vec<usize>,
    /// Users to leave with the period.
    stopped: Vec<usize>,
}

impl Stage {
    /// Before anything has happened.
    fn of(users: &Users) -> Self {
        Self {
            now: vec![Now::default(); users.users.len()],
            counts: UserStates::default(),
            touched: Vec::new(),
            stopped: Vec::new(),
        }
    }

    fn happens(&mut self, happening: Happening, user: usize, number: usize) {
        let before = self.now[user];
        match happening {
            Happening::Starts => return self.set_present(user, true),
            Happening::Leaves => return self.set_present(user, false),
            Happening::IsStopped => return self.stopped.push(user),
            Happening::IsLimited => {
                self.now[user].is_waiting = true;
                self.now[user].limited_in = number;
            }
            Happening::Sends => {
                self.now[user].is_waiting = false;
                self.now[user].in_flight += 1;
            }
            Happening::Ends => {
                self.now[user].in_flight = before.in_flight.saturating_sub(1);
                self.now[user].ended_in = number;
            }
        }
        self.touched.push(user);
        if before.is_present {
            self.change(before.state(), false);
            self.change(self.now[user].state(), true);
        }
    }

    fn set_present(&mut self, user: usize, is_present: bool) {
        if self.now[user].is_present != is_present {
            self.now[user].is_present = is_present;
            self.change(self.now[user].state(), is_present);
        }
    }

    fn change(&mut self, state: State, more: bool) {
        change(&mut self.counts, state, more);
    }

    /// The states in the period that ends now.
    fn states_in(&mut self, number: usize) -> UserStates {
        let mut states = self.counts;
        self.touched.sort_unstable();
        self.touched.dedup();
        for user in self.touched.drain(..) {
            let now = &self.now[user];
            if now.is_present {
                change(&mut states, now.state(), false);
                change(&mut states, now.state_in(number), true);
            }
        }
        states
    }
}

fn change(counts: &mut UserStates, state: State, more: bool) {
    let of = match state {
        State::Active => &mut counts.active,
        State::Idle => &mut counts.idle,
        State::Limited => &mut counts.limited,
    };
    for count in [of, &mut counts.total] {
        *count = if more { *count + 1 } else { count.saturating_sub(1) };
    }
}

#[cfg(test)]
mod tests {
    use crate::log::sample_users::{Sent, empty, happens, sends};
    use crate::log::{LimitedBy, UserEvent};
    use crate::metrics::attribution::{UserGoals, periods};
    use crate::metrics::periods::UserStates;
    use crate::metrics::states::over_time;
    use crate::run::Run;
    use crate::units::{RunNanos, SessionIndex};

    const SECOND: i64 = 1_000_000_000;

    fn states(total: u32, active: u32, idle: u32, limited: u32) -> UserStates {
        UserStates { total, active, idle, limited }
    }

    /// Periods of ten seconds, line by line of the page's rule.
    #[test]
    fn limited_comes_before_active_and_that_before_idle() {
        let mut sample = empty(10 * SECOND);
        let started = UserEvent::Started { template: SessionIndex(0), cue: 0, copy: 0 };
        for session in 0..5 {
            happens(&mut sample, session, 0, started);
        }
        let mut request = |number, session, sent: i64, done: i64| {
            sends(&mut sample, number, &Sent::of(session, sent * SECOND, done * SECOND));
        };
        // 0: a request ended in the first period, and below it is limited in it, too.
        request(0, 0, 1, 2);
        request(1, 0, 4, 5);
        // 1: in flight from the first into the third.
        request(2, 1, 2, 25);
        // 2: below in back-off from the first to the third.
        request(3, 2, 24, 26);
        let limited = UserEvent::Limited { by: LimitedBy::Concurrency, backoff_ns: 30_000_000_000 };
        happens(&mut sample, 0, 3 * SECOND, limited);
        happens(&mut sample, 2, 4 * SECOND, limited);
        // 3: nothing at all, and the end of the run stops it.
        happens(&mut sample, 3, 28 * SECOND, UserEvent::Stopped { done: 0, total: 1 });
        // 4: leaves in the second.
        happens(&mut sample, 4, 15 * SECOND, UserEvent::Completed { done: 1, total: 1 });
        let run = Run::read(&sample.bytes()).expect("a log");
        let found = periods(&run, UserGoals::default());
        let shown: Vec<_> = found.iter().map(|p| (p.users, p.users_at_end)).collect();
        assert_eq!(
            shown,
            [
                (states(5, 1, 2, 2), states(5, 1, 3, 1)),
                (states(4, 1, 2, 1), states(4, 1, 2, 1)),
                (states(4, 2, 2, 0), states(4, 0, 4, 0)),
            ]
        );
        let present: Vec<u32> = found.iter().map(|period| period.users_present).collect();
        assert_eq!(present, [5, 5, 4]);
        let changes = over_time(&run);
        assert!(changes.is_sorted_by_key(|change| change.time));
        // At the end of a period both say the same, but for who is stopped there.
        for (period, end) in found.iter().zip([9, 19, 27]) {
            let until = RunNanos(end * SECOND);
            let at = changes.partition_point(|change| change.time <= until);
            let now = changes[at - 1];
            assert_eq!(now.states, period.users_at_end, "at {end} s");
            assert_eq!(now.left, u32::from(end > 15));
        }
        assert_eq!(changes.last().map(|last| last.states.total), Some(3), "one was stopped");
    }
}
