//! The simulated world: a random plan, a server that answers whenever it likes, and virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use onbeat::clock::{Clock, SimClock};
use onbeat::policy::cancel::Cancellations;
use onbeat::policy::queue::ReadyQueue;
use onbeat::policy::session::Sessions;
use onbeat_shared::log::plan_row::PlanRow;
use onbeat_shared::units::{CoreIndex, RequestIndex, RunNanos, SessionIndex};

use super::checks::{self, History};
use super::random::Random;

/// One run from its seed.
pub(super) struct World {
    rows: Vec<PlanRow>,
    /// How long after they left some requests are cancelled.
    cancel_after: Vec<Option<i64>>,
    random: Random,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let rows = plan(&mut random);
        let after = |random: &mut Random| {
            let ns = i64::try_from(random.below(6_000_000)).expect("milliseconds");
            random.one_in(4).then_some(ns)
        };
        let cancel_after = rows.iter().map(|_| after(&mut random)).collect();
        Self { rows, cancel_after, random }
    }

    /// Runs until nothing is left to do; returns every request's history.
    pub(super) fn run(mut self) -> Vec<History> {
        let clock = SimClock::default();
        let mut sessions = Sessions::new(&self.rows);
        let mut queue = ReadyQueue::new(&self.rows, CoreIndex(0));
        let mut history = vec![History::default(); self.rows.len()];
        let mut answers: BinaryHeap<Reverse<(i64, u32)>> = BinaryHeap::new();
        let cancelled = self.cancel_after.iter().flatten().count();
        let mut timers = Cancellations::new(cancelled);
        let mut left = Vec::new();
        loop {
            let now = RunNanos(clock.now_ns());
            while let Some(ready) = queue.pop(now) {
                let index = ready.request.as_usize();
                checks::sent_on_time(&self.rows, &history, index, now);
                history[index].sent = Some(now);
                left.push((now, ready.request.0));
                if let Some(after_ns) = self.cancel_after[index] {
                    timers.start(ready.request, 0, now, after_ns);
                }
                answers.push(Reverse((now.0 + self.service_ns(), ready.request.0)));
            }
            // At one instant the server's news comes before the next look at the schedule.
            let answer = answers.peek().map(|&Reverse((at, _))| at);
            let due = queue.peek().map(|ready| ready.at.0);
            let timer = timers.next().map(|at| at.0);
            let Some(next) = answer.into_iter().chain(due).chain(timer).min() else { break };
            clock.advance_to(next);
            while let Some(&Reverse((at, request))) = answers.peek()
                && at <= next
            {
                answers.pop();
                let history = &mut history[request as usize];
                // Nobody hears the answer to a cancelled request.
                if history.ended.is_none() {
                    history.ended = Some(RunNanos(at));
                    sessions.end(RequestIndex(request), RunNanos(at), |ready| queue.push(ready));
                }
            }
            while let Some((request, _)) = timers.pop(RunNanos(next)) {
                let history = &mut history[request.as_usize()];
                if history.ended.is_none() {
                    history.ended = Some(RunNanos(next));
                    history.cancelled = true;
                    sessions.end(request, RunNanos(next), |ready| queue.push(ready));
                }
            }
        }
        checks::in_order(&left);
        checks::whole(&self.rows, &history);
        checks::cancelled_on_time(&self.cancel_after, &history);
        history
    }

    /// Mostly milliseconds, sometimes nothing at all (refused at once), sometimes an age.
    fn service_ns(&mut self) -> i64 {
        let ns = match self.random.below(10) {
            0 => 0,
            1 => self.random.below(60_000_000_000),
            _ => self.random.below(5_000_000),
        };
        i64::try_from(ns).expect("a minute at most")
    }
}

/// A random schedule: lone requests, bursts at one instant, sessions with and without due times,
/// think times, forks.
fn plan(random: &mut Random) -> Vec<PlanRow> {
    let count = 1 + random.below(60);
    let mut rows: Vec<PlanRow> = Vec::new();
    let mut due_ns = 0;
    for index in 0..count {
        let request = u32::try_from(index).expect("sixty at most");
        due_ns += if random.one_in(3) { 0 } else { random.below(20_000_000) };
        let after = (index > 0 && random.one_in(2))
            .then(|| RequestIndex(u32::try_from(random.below(index)).expect("sixty at most")));
        let due = i64::try_from(due_ns).expect("a second or two");
        let think = i64::try_from(random.below(3_000_000)).expect("milliseconds");
        rows.push(PlanRow {
            request: RequestIndex(request),
            session: SessionIndex(request),
            turn: 0,
            core: CoreIndex(0),
            target: 0,
            row: index + 1,
            due: (after.is_none() || !random.one_in(4)).then_some(RunNanos(due)),
            after,
            source: 0,
            think_ns: after.is_some().then_some(think),
            input_tokens: None,
            max_tokens: None,
            min_tokens: None,
            ideal_cached_tokens: None,
            ideal_set_tokens: None,
            blocks: 0,
            body_bytes: None,
        });
    }
    rows
}
