//! Users enter: those of the beginning, those that replace others, and those the ramp adds.

use std::sync::atomic::Ordering;

use onbeat_shared::log::users::RampReason;
use onbeat_shared::units::{CoreIndex, RunNanos, SessionIndex};

use super::state::Returning;
use super::{APART_NS, Direction, LEAD_NS, Order, Playing};
use crate::plan::script::{Cue, Turn};
use crate::policy::advance;
use crate::policy::periods::First;
use crate::policy::players::Entrance;
use crate::policy::pool::Pick;
use crate::policy::ramp::Decision;

/// How many conversations are tried for one user before a budget has refused it.
const TRIES: u32 = 5;

const DEAR: &str = "a conversation begins with more tokens than a whole budget has: it is played \
                    all the same, while nobody else plays";
const AGAIN: &str = "every conversation has been played: from now on they are played again, as if \
                     they were others";

/// A conversation that somebody could play.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    pick: Pick,
    cue: u32,
    first: First,
}

impl Direction {
    /// The users that start at zero: no budget holds them back.
    pub fn open(&mut self, out: &mut Vec<Order>) {
        if let Some(returning) = self.returning.take() {
            returning.iter().for_each(|user| self.bring_back(user, out));
            return;
        }
        let mut tokens: u64 = 0;
        for _ in 0..self.options.start_users.min(self.options.max_users) {
            let Some(pick) = self.pool.take() else { break };
            let candidate = self.candidate(pick, true);
            tokens = tokens.saturating_add(candidate.first.input_tokens);
            let user = self.enter(&candidate, RunNanos(0), out);
            self.budgets.expect(user, candidate.first);
        }
        let limit = self.options.new_tokens_per_period;
        if limit > 0 && tokens > limit {
            out.push(Order::Say(format!(
                "the prompts that users begin with at zero have {tokens} tokens in all, more than \
                 --max-new-tokens-per-period ({limit}) lets in later"
            )));
        }
    }

    /// A user of an interrupted run goes on.
    fn bring_back(&mut self, user: &Returning, out: &mut Vec<Order>) {
        let pick = Pick { conversation: user.conversation, copy: user.copy };
        let first = self.first(pick, user.cue);
        self.place(user.user, pick, user.cue, RunNanos(0), out);
        self.budgets.expect(user.user, first);
    }

    /// Replaces users that have left, while there is room.
    pub(super) fn replace(&mut self, now: RunNanos, out: &mut Vec<Order>) {
        while self.owed > 0
            && !self.refused
            && self.over.is_none()
            && self.present() < self.options.max_users
        {
            match self.let_in(RunNanos(now.0.saturating_add(LEAD_NS)), now, out) {
                Ok(()) => self.owed -= 1,
                Err(_) => self.refused = true,
            }
        }
    }

    /// Adds the users that the ramp wants, as far as budgets allow: how many, and why not more.
    pub(super) fn add(
        &mut self,
        decision: &Decision,
        now: RunNanos,
        out: &mut Vec<Order>,
    ) -> (u32, RampReason) {
        for added in 0..decision.add {
            let after = LEAD_NS + i64::from(added) * APART_NS;
            if let Err(refusal) = self.let_in(RunNanos(now.0.saturating_add(after)), now, out) {
                return (added, refusal);
            }
        }
        (decision.add, decision.reason)
    }

    /// One more user enters, if budgets allow one of the next conversations.
    fn let_in(
        &mut self,
        at: RunNanos,
        now: RunNanos,
        out: &mut Vec<Order>,
    ) -> Result<(), RampReason> {
        let working_set = self.working_set.tokens(now);
        // Then waiting changes nothing, and whoever is dearer than a whole budget has to start.
        let is_alone = self.playing.is_empty() && self.budgets.is_whole(working_set);
        let mut closed = RampReason::PoolEmpty;
        for nth in 1..=TRIES {
            let Some(pick) = self.pool.take() else { break };
            let candidate = self.candidate(pick, self.options.advance.all_users);
            match self.budgets.check(candidate.first, working_set) {
                Err(refusal) if !is_alone || nth < TRIES => {
                    self.pool.give_back(pick);
                    closed = refusal;
                }
                answer => {
                    if answer.is_err() && !std::mem::replace(&mut self.said_dear, true) {
                        out.push(Order::Say(DEAR.to_owned()));
                    }
                    let user = self.enter(&candidate, at, out);
                    self.budgets.charge(user, candidate.first);
                    return Ok(());
                }
            }
        }
        Err(closed)
    }

    /// What a new user would begin with.
    fn candidate(&self, pick: Pick, advanced: bool) -> Candidate {
        let cue = if advanced { self.advanced(pick, self.created + 1) } else { 0 };
        Candidate { pick, cue, first: self.first(pick, cue) }
    }

    fn advanced(&self, pick: Pick, user: u32) -> u32 {
        let script = &self.scripts.scripts[pick.conversation as usize];
        advance::first_cue(script, &self.options.advance, self.options.trace_seed, user)
    }

    fn first(&self, pick: Pick, cue: u32) -> First {
        let script = &self.scripts.scripts[pick.conversation as usize];
        let request = |entry: &Cue| match entry {
            Cue::Request(turn) => Some(*turn),
            Cue::Agent { .. } | Cue::Nothing => None,
        };
        let turn: Option<Turn> = script.parts[0].cues.iter().skip(cue as usize).find_map(request);
        turn.map_or_else(First::default, |turn| First {
            input_tokens: u64::from(turn.input_tokens),
            block_tokens: self.working_set.tokens_of(turn.record),
        })
    }

    /// A new user; its number.
    fn enter(&mut self, candidate: &Candidate, at: RunNanos, out: &mut Vec<Order>) -> u32 {
        self.created += 1;
        if candidate.pick.copy > 0 && !std::mem::replace(&mut self.said_again, true) {
            out.push(Order::Say(AGAIN.to_owned()));
        }
        self.place(self.created, candidate.pick, candidate.cue, at, out);
        self.created
    }

    /// Gives a user to the core with the fewest.
    fn place(&mut self, user: u32, pick: Pick, cue: u32, at: RunNanos, out: &mut Vec<Order>) {
        let place = (0..self.on_core.len()).min_by_key(|&core| self.on_core[core]).unwrap_or(0);
        self.on_core[place] += 1;
        let core = CoreIndex(u16::try_from(place).expect("cores have u16 numbers"));
        let Pick { conversation, copy } = pick;
        self.playing.insert(user, Playing { conversation, copy, core, cue });
        let session = SessionIndex(self.sessions.fetch_add(1, Ordering::Relaxed));
        out.push(Order::Enter(core, Entrance { user, session, conversation, cue, at, copy }));
    }
}
