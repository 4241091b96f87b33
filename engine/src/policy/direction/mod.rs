//! Who starts when: the decisions of a user-driven run that concern all cores at once.
//!
//! A pure state machine. It is told what the time is and what cores have said since, and answers
//! with [`Order`]s: who enters where, what the ramp decided and why, whether the TTFT gate is
//! closed, and that the run is over. It opens with the users that start at zero, replaces those
//! that leave, assesses every period at its exact end, and adds users as the ramp says and budgets
//! allow. When a request leaves is not decided here: cores do that themselves.
//!
//! Where the page and the tool are silent or starve somebody: a user whose replacement finds no
//! room is replaced as soon as there is some; users are charged to the period in which they start;
//! a user dearer than a whole budget enters alone, when nothing is spent and nobody plays; a
//! sub-agent that ends is not replaced. A fact that belongs before a period's end counts there even
//! when it is heard a little later: the assessment waits [`GRACE_NS`] for it.

mod breaker;
mod entering;
#[cfg(test)]
mod simulation;
pub mod state;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use onbeat_shared::counted::counted;
use onbeat_shared::log::users::{Assessment, RampReason};
use onbeat_shared::trace::Trace;
use onbeat_shared::units::{CoreIndex, RunNanos};

use self::breaker::Breaker;
use self::state::{DirectorState, Returning};
use super::heard::Heard;
use super::options::{RampWay, UserOptions};
use super::periods::{Budgets, Period};
use super::players::Entrance;
use super::pool::Pool;
use super::ramp::{Controller, Inputs, Memory, Ramp, Settings};
use super::working_set::WorkingSet;
use crate::plan::script::{Cue, Scripts};

/// How long after a period's end it is assessed, so that everything before it has been heard. Cores
/// tell at once and the director asks every 5 ms.
pub const GRACE_NS: i64 = 10_000_000;
/// From a decision to the start of the user it lets in: cores look for new users every 10 ms.
pub const LEAD_NS: i64 = 20_000_000;
/// Between the users that one assessment adds.
pub const APART_NS: i64 = 50_000_000;

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// A user enters on this core.
    Enter(CoreIndex, Entrance),
    /// An assessment, for the log.
    Note(Assessment),
    /// The TTFT gate closes or opens.
    Gate {
        /// Whether it closes.
        closed: bool,
    },
    /// Something to tell the person who watches, once.
    Say(String),
    /// The run is over: nobody enters any more.
    Stop(End),
}

/// Why a run is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nobody plays any more.
    AllPlayed,
    /// Its time has passed.
    Duration,
    /// So many connections in a row failed before a token came, and none succeeded lately.
    ConnectionErrors {
        /// How many.
        errors: u32,
    },
    /// Somebody outside ended it.
    Stopped,
}

impl End {
    /// Why the run was given up, in words, if that was it.
    #[must_use]
    pub fn given_up(self) -> Option<String> {
        match self {
            Self::ConnectionErrors { errors } => Some(format!(
                "{} in a row failed before a token came, and none succeeded meanwhile \
                 (--max-consecutive-errors, --circuit-breaker-window); see to the server, or to \
                 this host where it is told what was lacking here, and go on with --resume",
                counted(u64::from(errors), "connection")
            )),
            Self::AllPlayed | Self::Duration | Self::Stopped => None,
        }
    }
}

/// The state of it all.
#[derive(Debug)]
pub struct Direction {
    options: UserOptions,
    scripts: Arc<Scripts>,
    pool: Pool,
    sessions: Arc<AtomicU32>,
    ramp: Ramp,
    period: Period,
    /// The number of the period under way, from 1, and its end.
    number: u32,
    end: RunNanos,
    budgets: Budgets,
    working_set: WorkingSet,
    breaker: Breaker,
    gate_closed: bool,
    over: Option<End>,
    /// Facts whose period is not under way yet, in order of time.
    held: Vec<Heard>,
    playing: HashMap<u32, Playing>,
    /// Users on each core.
    on_core: Vec<u32>,
    agents: u32,
    in_flight: u32,
    /// Users of this run and of those it goes on from.
    created: u32,
    /// Users that have left and are to be replaced.
    owed: u32,
    /// A budget refused everybody who was tried in this period.
    refused: bool,
    /// Users of an interrupted run who are to go on.
    returning: Option<Vec<Returning>>,
    /// What was said already: that conversations are used again, that somebody was dearer than a
    /// whole budget.
    said_again: bool,
    said_dear: bool,
}

/// A user that plays, or is about to.
#[derive(Clone, Copy, Debug)]
struct Playing {
    conversation: u32,
    copy: u32,
    core: CoreIndex,
    /// The cue of its own part that it has come to.
    cue: u32,
}

impl Direction {
    /// Nobody plays yet. `sessions` gives every user its session.
    #[must_use]
    pub fn new(
        options: &UserOptions,
        trace: &Trace,
        scripts: Arc<Scripts>,
        pool: Pool,
        sessions: Arc<AtomicU32>,
        cores: u16,
    ) -> Self {
        let working_set = WorkingSet::new(trace, options.chunk_tokens, options.cache_age_ns);
        Self {
            ramp: Ramp::new(settings(options), Memory::default()),
            period: Period::new(options.ramp.metric),
            number: 1,
            end: RunNanos(options.ramp.period_ns),
            budgets: Budgets::new(options.new_tokens_per_period, options.working_set_tokens),
            working_set,
            breaker: Breaker::new(options.breaker),
            gate_closed: false,
            over: None,
            held: Vec::new(),
            playing: HashMap::new(),
            on_core: vec![0; usize::from(cores.max(1))],
            agents: 0,
            in_flight: 0,
            created: 0,
            owed: 0,
            refused: false,
            returning: None,
            said_again: false,
            said_dear: false,
            options: options.clone(),
            scripts,
            pool,
            sessions,
        }
    }

    /// The same, where an interrupted run stopped: its users go on, at their cues. Users that
    /// [`DirectorState::check`] would refuse do not.
    #[must_use]
    pub fn resumed(mut self, state: DirectorState) -> Self {
        self.ramp = Ramp::new(settings(&self.options), state.ramp);
        self.pool.go_on(&state.pool);
        self.created = state.users_created;
        self.owed = state.owed;
        let scripts = &self.scripts.scripts;
        let can_go_on = |user: &Returning| scripts.get(user.conversation as usize).is_some();
        self.returning = Some(state.playing.into_iter().filter(can_go_on).collect());
        self
    }

    /// What happened up to `now`, and what follows from it.
    pub fn step(
        &mut self,
        now: RunNanos,
        heard: impl IntoIterator<Item = Heard>,
        out: &mut Vec<Order>,
    ) {
        self.held.extend(heard);
        self.held.sort_by_key(Heard::at);
        loop {
            self.hear_until(self.end);
            if now.0 < self.end.0.saturating_add(GRACE_NS) {
                break;
            }
            self.assess(now, out);
        }
        self.replace(now, out);
        if self.over.is_none()
            && let Some(end) = self.why_over(now)
        {
            self.over = Some(end);
            out.push(Order::Stop(end));
        }
    }

    /// Somebody outside has ended the run.
    pub fn stop(&mut self) {
        self.over.get_or_insert(End::Stopped);
    }

    /// Why the run is over, if it is.
    #[must_use]
    pub const fn over(&self) -> Option<End> {
        self.over
    }

    /// Everything has ended, at `at`: the last period, which may be a shorter one, is noted.
    pub fn close(
        &mut self,
        at: RunNanos,
        heard: impl IntoIterator<Item = Heard>,
        out: &mut Vec<Order>,
    ) {
        self.stop();
        self.held.extend(heard);
        self.held.sort_by_key(Heard::at);
        while self.end < at {
            self.hear_until(self.end);
            self.assess(at, out);
        }
        self.hear_until(RunNanos(i64::MAX));
        if self.end.0.saturating_sub(self.options.ramp.period_ns) < at.0 {
            self.end = at;
            self.assess(at, out);
        }
    }

    /// Users and running sub-agents.
    #[must_use]
    pub fn present(&self) -> u32 {
        let users = u32::try_from(self.playing.len()).unwrap_or(u32::MAX);
        users.saturating_add(self.agents)
    }

    fn hear_until(&mut self, end: RunNanos) {
        let count = self.held.partition_point(|heard| heard.at() <= end);
        let due: Vec<Heard> = self.held.drain(..count).collect();
        due.into_iter().for_each(|heard| self.hear(heard));
    }

    fn hear(&mut self, heard: Heard) {
        match heard {
            Heard::Sent { at, user, record } => {
                self.in_flight += 1;
                self.budgets.begun(user);
                let copy = self.playing.get(&user).map_or(0, |playing| playing.copy);
                self.working_set.touch(at, record, copy);
            }
            Heard::FirstToken { ttft_ns, .. } => self.period.first_token(ttft_ns),
            Heard::Ended { at, user, record, class, tokens, decode_ns, had_first_token } => {
                self.in_flight = self.in_flight.saturating_sub(1);
                self.period.ended(class, tokens, decode_ns);
                self.breaker.ended(at, class, had_first_token);
                if state::is_played(class) {
                    self.come_past(user, record);
                }
            }
            Heard::AgentEntered { .. } => self.agents += 1,
            Heard::AgentLeft { .. } => self.agents = self.agents.saturating_sub(1),
            Heard::Left { user, .. } => {
                self.budgets.begun(user);
                let Some(left) = self.playing.remove(&user) else { return };
                self.on_core[left.core.as_usize()] -= 1;
                self.pool.played(left.conversation);
                self.owed += u32::from(self.options.recycle);
            }
            Heard::Limited { until, .. } => self.period.limited(until),
        }
    }

    /// A user has played this record, if it is one of its own part.
    fn come_past(&mut self, user: u32, record: u32) {
        let Some(playing) = self.playing.get_mut(&user) else { return };
        let script = &self.scripts.scripts[playing.conversation as usize];
        // Records are in document order: those of sub-agents lie between.
        for (cue, entry) in (0..).zip(&script.parts[0].cues).skip(playing.cue as usize) {
            match entry {
                Cue::Request(turn) if turn.record == record => {
                    playing.cue = cue + 1;
                    return;
                }
                Cue::Request(turn) if turn.record > record => return,
                Cue::Request(_) | Cue::Agent { .. } | Cue::Nothing => {}
            }
        }
    }

    /// The period is over: decides who is added, and the next one begins.
    fn assess(&mut self, now: RunNanos, out: &mut Vec<Order>) {
        let figures = self.period.close(self.end);
        let inputs = Inputs {
            ttft_ns: figures.ttft_ns,
            output_rate: figures.output_rate,
            users: self.present().saturating_add(self.owed),
            in_flight: self.in_flight,
            limited: figures.limited,
            working_set_tokens: self.working_set.tokens(self.end),
        };
        let mut noted = Assessment {
            period: self.number,
            time: self.end,
            users: self.present(),
            in_flight: inputs.in_flight,
            working_set_tokens: inputs.working_set_tokens,
            new_tokens: self.budgets.new_tokens(),
            limited: inputs.limited,
            output_rate: inputs.output_rate.map(narrow),
            ..Assessment::default()
        };
        self.number += 1;
        self.end = RunNanos(self.end.0.saturating_add(self.options.ramp.period_ns));
        self.budgets.renew();
        self.refused = false;
        if self.over.is_some() {
            (noted.ttft_ns, noted.reason) = (inputs.ttft_ns, RampReason::Ended);
            self.count(&mut noted);
            out.push(Order::Note(noted));
            return;
        }
        let decision = self.ramp.assess(&inputs);
        self.replace(now, out);
        let (added, reason) = self.add(&decision, now, out);
        (noted.added, noted.reason) = (u16::try_from(added).unwrap_or(u16::MAX), reason);
        (noted.ttft_ns, noted.headroom) = (decision.ttft_ns, decision.headroom.map(narrow));
        self.count(&mut noted);
        out.push(Order::Note(noted));
        self.set_gate(figures.ttft_ns, out);
    }

    /// The ramp's counts, as the log has them.
    fn count(&self, noted: &mut Assessment) {
        let counts = self.ramp.memory().counts;
        let short = |count: u32| u16::try_from(count).unwrap_or(u16::MAX);
        (noted.good, noted.exceeded) = (short(counts.good), short(counts.exceeded));
        (noted.required, noted.ramps) = (short(counts.required), short(counts.ramps));
    }

    /// Closed after a period whose TTFT was not below its limit. One without data opens it, so that
    /// somebody is always let through in the end.
    fn set_gate(&mut self, ttft_ns: Option<i64>, out: &mut Vec<Order>) {
        let late = ttft_ns.is_some_and(|ttft_ns| ttft_ns >= self.options.ramp.max_ttft_ns);
        let closed = self.options.ttft_gate && late;
        if closed != self.gate_closed {
            self.gate_closed = closed;
            out.push(Order::Gate { closed });
        }
    }

    fn why_over(&self, now: RunNanos) -> Option<End> {
        if let Some(errors) = self.breaker.tripped() {
            return Some(End::ConnectionErrors { errors });
        }
        if self.options.duration_ns.is_some_and(|duration_ns| now.0 >= duration_ns) {
            return Some(End::Duration);
        }
        // A user leaves after its last request and its last sub-agent have ended.
        let nobody = self.playing.is_empty() && self.held.is_empty();
        let nobody_will = self.owed == 0 || self.pool.is_empty();
        (nobody && nobody_will).then_some(End::AllPlayed)
    }
}

fn settings(options: &UserOptions) -> Settings {
    Settings {
        controller: match options.ramp.way {
            RampWay::Documented => Controller::Cooldown,
            RampWay::Rolling => Controller::Rolling { window: options.ramp.window },
        },
        max_ttft_ns: options.ramp.max_ttft_ns,
        min_output_rate: options.ramp.min_output_tokens_per_request,
        max_concurrent: options.limits.concurrent,
        max_users: options.max_users,
        max_working_set_tokens: options.working_set_tokens,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the log keeps seven digits of these")]
fn narrow(number: f64) -> f32 {
    number as f32
}
