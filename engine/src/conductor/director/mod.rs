//! The thread of a user-driven run's director: between its decisions and the cores.
//!
//! It wakes up every few milliseconds, hands what cores have said to the [`Direction`], and carries
//! out what that orders. It decides nothing, times nothing and never runs on a pacing core's CPU:
//! whoever starts it has moved away from those (see [`super`]). How cores, the log and the person
//! who watches are reached is the [`Stage`]'s business.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use onbeat_shared::log::users::Assessment;
use onbeat_shared::units::{CoreIndex, RunNanos};

use crate::error::EngineError;
use crate::policy::direction::state::DirectorState;
use crate::policy::direction::{Direction, End, Order};
use crate::policy::heard::Heard;
use crate::policy::players::Entrance;

/// How often the director looks.
const TICK: Duration = Duration::from_millis(5);

/// What a director can do and see.
pub trait Stage: Send {
    /// How many cores there are.
    fn cores(&self) -> u16;

    /// Nanoseconds since zero; `None` while zero is not chosen.
    fn now(&self) -> Option<RunNanos>;

    /// Tells a core of a user; `false` when there is no room now, and nothing was told.
    fn send(&mut self, core: CoreIndex, entrance: Entrance) -> bool;

    /// Takes what a core has said.
    fn drain(&mut self, core: CoreIndex, heard: &mut Vec<Heard>);

    /// Closes the TTFT gate for all cores, or opens it.
    fn close_gate(&mut self, closed: bool);

    /// Writes an assessment into the log; how full the token budgets are is added here.
    fn note(&mut self, assessment: Assessment);

    /// What a later run would go on from, should this one be killed: told at the start and after
    /// each assessment.
    fn keep(&mut self, state: DirectorState);

    /// Tells the person who watches.
    fn say(&mut self, words: String);

    /// Nobody enters any more, and why; what is in flight may end.
    fn end(&mut self, end: End);

    /// Whether somebody else has ended the run.
    fn is_stopped(&self) -> bool;
}

/// A director at work.
#[derive(Debug)]
pub struct Director {
    finished: Arc<AtomicBool>,
    thread: Option<JoinHandle<Directed>>,
}

/// How a director's run went.
#[derive(Clone, Debug, PartialEq)]
pub struct Directed {
    /// Why it ended.
    pub end: End,
    /// What a later run would go on from.
    pub state: DirectorState,
}

impl Director {
    /// Begins: the first users are sent to the cores at once, before zero.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn start(direction: Direction, stage: impl Stage + 'static) -> Result<Self, EngineError> {
        let finished = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&finished);
        let body = move || Work::new(direction, stage).run(&ended);
        let thread = Builder::new().name("onbeat-director".into()).spawn(body);
        let thread = thread.map_err(|source| EngineError::Io {
            action: "start a thread",
            path: None,
            source,
        })?;
        Ok(Self { finished, thread: Some(thread) })
    }

    /// All cores have ended: notes the last period and comes to an end.
    ///
    /// # Errors
    /// When the director failed.
    pub fn end(mut self) -> Result<Directed, EngineError> {
        let panicked = || EngineError::Run("the director panicked".into());
        self.join().and_then(Result::ok).ok_or_else(panicked)
    }

    fn join(&mut self) -> Option<std::thread::Result<Directed>> {
        self.finished.store(true, Ordering::Release);
        self.thread.take().map(JoinHandle::join)
    }
}

/// A run that does not begin leaves no director behind.
impl Drop for Director {
    fn drop(&mut self) {
        let _ = self.join();
    }
}

/// The thread's own things.
struct Work<S> {
    direction: Direction,
    stage: S,
    heard: Vec<Heard>,
    orders: Vec<Order>,
    /// Users that found no room on the way to their core, in order.
    waiting: VecDeque<(CoreIndex, Entrance)>,
}

impl<S: Stage> Work<S> {
    fn new(direction: Direction, stage: S) -> Self {
        let (heard, orders, waiting) = (Vec::new(), Vec::new(), VecDeque::new());
        Self { direction, stage, heard, orders, waiting }
    }

    fn run(mut self, finished: &AtomicBool) -> Directed {
        self.direction.open(&mut self.orders);
        self.carry_out();
        self.stage.keep(self.direction.state());
        loop {
            #[expect(clippy::disallowed_methods, reason = "nothing is timed on this thread")]
            std::thread::sleep(TICK);
            let is_last = finished.load(Ordering::Acquire);
            self.look();
            if is_last {
                break;
            }
        }
        self.close()
    }

    fn look(&mut self) {
        if self.stage.is_stopped() {
            self.direction.stop();
        }
        // Nothing is missed: what happened before `now` was said before.
        let now = self.stage.now().filter(|now| now.0 >= 0);
        self.listen();
        if let Some(now) = now {
            self.direction.step(now, self.heard.drain(..), &mut self.orders);
        }
        self.carry_out();
    }

    fn listen(&mut self) {
        for core in 0..self.stage.cores() {
            self.stage.drain(CoreIndex(core), &mut self.heard);
        }
    }

    fn close(mut self) -> Directed {
        self.listen();
        let at = self.stage.now().filter(|now| now.0 > 0);
        let end = if let Some(at) = at {
            self.direction.close(at, self.heard.drain(..), &mut self.orders);
            self.carry_out();
            self.direction.over()
        } else {
            self.direction.over()
        };
        Directed { end: end.unwrap_or(End::Stopped), state: self.direction.state() }
    }

    fn carry_out(&mut self) {
        let is_new = self.orders.iter().any(|order| matches!(order, Order::Note(_)));
        for order in self.orders.drain(..) {
            match order {
                Order::Enter(core, entrance) => self.waiting.push_back((core, entrance)),
                Order::Gate { closed } => self.stage.close_gate(closed),
                Order::Note(assessment) => self.stage.note(assessment),
                Order::Say(words) => self.stage.say(words),
                Order::Stop(end) => self.stage.end(end),
            }
        }
        if self.direction.over().is_some() {
            self.waiting.clear();
        }
        // Whoever is behind somebody for the same core stays behind; other cores' users pass.
        let mut is_full = vec![false; usize::from(self.stage.cores())];
        let stage = &mut self.stage;
        self.waiting.retain(|&(core, entrance)| {
            let full = &mut is_full[core.as_usize()];
            *full = *full || !stage.send(core, entrance);
            *full
        });
        if is_new {
            self.stage.keep(self.direction.state());
        }
    }
}

#[cfg(test)]
mod tests;
