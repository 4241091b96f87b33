//! The users of a user-driven run: who played what, when each was kept back, what the ramp decided.
//!
//! Users and their sub-agents are the sessions of the run, by [`crate::units::SessionIndex`]. All
//! of it is what the log says, nothing is derived: states, periods and shares are
//! [`crate::metrics`]'s. What a damaged log lacks is `None`.

use crate::log::{Assessment, LimitedBy, StepFlags, UserFacts};
use crate::units::{RunNanos, SessionIndex};

/// "The log does not say which", for a template.
pub(super) const NO_TEMPLATE: u32 = u32::MAX;

/// How a user ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Left {
    /// It played its list to the end.
    Completed,
    /// Its next request was longer than the context limit.
    Truncated,
    /// The run ended before its conversation did.
    Stopped,
}

impl Left {
    /// Its name in outputs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Truncated => "truncated",
            Self::Stopped => "stopped",
        }
    }
}

/// One user or sub-agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Its session of the run; also its place in [`Users::users`].
    pub session: SessionIndex,
    /// `User-001`, or `User-001-SA1` for a sub-agent; empty where the log lost its beginning.
    pub name: String,
    /// The user that started it, if it is a sub-agent.
    pub parent: Option<SessionIndex>,
    /// Its number among the run's users, or among its parent's sub-agents; from 1.
    pub number: Option<u32>,
    /// The session of the templates that it plays; an index into [`Users::templates`].
    pub template: Option<SessionIndex>,
    /// The trace's own id of what it plays: `trace_0001` or `trace_0001:agent_001`.
    pub trace_id: Option<String>,
    /// Its first place in its list, sub-agents counted; more than 0: it was advanced.
    pub cue: u32,
    /// How often the run had used this conversation before.
    pub copy: u16,
    /// When it began.
    pub started: Option<RunNanos>,
    /// When it ended.
    pub ended: Option<RunNanos>,
    /// How it ended.
    pub left: Option<Left>,
    /// Requests of its own that ended; known at its end.
    pub done: Option<u32>,
    /// Requests of its own that it was to play; known at its end.
    pub total: Option<u32>,
    /// Requests it sent.
    pub requests: u32,
    /// How often it was kept back.
    pub limited: u32,
}

impl User {
    /// Whether it went on with what it played in an earlier run.
    #[must_use]
    pub fn goes_on(&self, facts: Option<&UserFacts>) -> bool {
        let before = facts.map_or(0, |facts| facts.users_before);
        self.parent.is_none() && self.number.is_some_and(|number| number <= before)
    }

    /// Whether it began further on in its conversation, and had not come there by itself.
    #[must_use]
    pub fn is_advanced(&self, facts: Option<&UserFacts>) -> bool {
        self.cue > 0 && !self.goes_on(facts)
    }
}

/// One time that a user was kept back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The user.
    pub session: SessionIndex,
    /// When.
    pub time: RunNanos,
    /// What stood in its way.
    pub by: LimitedBy,
    /// How long it was to wait before it asks again, in nanoseconds.
    pub backoff_ns: u64,
}

/// What a user-driven run has beside requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Users {
    /// Users and sub-agents, by session.
    pub users: Vec<User>,
    /// Every time that one was kept back, by time.
    pub limits: Vec<Limit>,
    /// The ramp's decisions, by period.
    pub assessments: Vec<Assessment>,
    /// Names of the templates' sessions, by their session index.
    pub templates: Vec<String>,
    pub(super) template_of: Vec<u32>,
    pub(super) flags: Vec<StepFlags>,
}

impl Users {
    /// The row of the trace that request `i` was made from: its 0-based place among the trace's
    /// records. `None` where the log lost it.
    #[must_use]
    pub fn template(&self, i: usize) -> Option<u32> {
        self.template_of.get(i).copied().filter(|&template| template != NO_TEMPLATE)
    }

    /// The user of a session: of a sub-agent's, the user that it works for in the end. `None` for a
    /// session that the log does not know.
    #[must_use]
    pub fn root(&self, session: SessionIndex) -> Option<&User> {
        self.line(session).last()
    }

    /// How many users stand above a session's: 0 for a user, 1 for its sub-agents.
    #[must_use]
    pub fn depth(&self, session: SessionIndex) -> u32 {
        u32::try_from(self.line(session).skip(1).count()).unwrap_or(u32::MAX)
    }

    /// The user of a session, who started it, and so on.
    fn line(&self, session: SessionIndex) -> impl Iterator<Item = &User> {
        // Sessions are numbered as they begin, so a parent has a smaller number.
        std::iter::successors(self.users.get(session.as_usize()), |user| {
            let parent = user.parent.filter(|&parent| parent < user.session)?;
            self.users.get(parent.as_usize())
        })
    }

    /// Rare facts about request `i`.
    #[must_use]
    pub fn flags(&self, i: usize) -> StepFlags {
        self.flags.get(i).copied().unwrap_or_default()
    }
}
