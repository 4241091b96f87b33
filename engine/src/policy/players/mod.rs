//! The users of one core and their sub-agents: who may ask next, and when.
//!
//! A *player* is one thread of control: a user's own, or one of its sub-agents. A user and all its
//! sub-agents are of one core. Sub-agents that stand together start together when they are reached,
//! and their parent goes on when all of them have ended and its own wait is over; detached ones it
//! does not wait for. Players are plain state and one heap by ready time: an idle one costs nothing
//! until its time has come. Nothing here reads a clock.
//!
//! Choices where the page is silent: an advanced user's first request waits its own wait from the
//! user's start; a conversation's first request waits nothing, nor does one with only sub-agents
//! before it once they have ended. A user stays until its last sub-agent has ended. A failed
//! request is followed by the next like any other.

mod backoff;
mod cast;

use onbeat_shared::units::{RequestIndex, RunNanos, SessionIndex};

use crate::plan::script::Turn;
use crate::policy::admission::{Cost, Why};
pub use crate::policy::players::cast::Players;

/// A user that a core is to play.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entrance {
    /// Its number in the run, from 1: `User-001`.
    pub user: u32,
    /// The session of its own requests.
    pub session: SessionIndex,
    /// The conversation it plays.
    pub conversation: u32,
    /// The first cue of its own part that it plays: above 0, it is advanced.
    pub cue: u32,
    /// When it starts.
    pub at: RunNanos,
    /// How often the conversation was used before in this run.
    pub copy: u32,
}

/// A player's place among those of its core, reused once it has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Player(pub u32);

/// When the next player has something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Next {
    /// From when on.
    pub at: RunNanos,
    /// Who.
    pub player: Player,
}

/// A request that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Act {
    /// Who asks.
    pub who: Who,
    /// What.
    pub turn: Turn,
    /// When it asks: when it is due, or at the end of its latest back-off.
    pub at: RunNanos,
    /// When its own rule let it go: its wait is over and its sub-agents have ended.
    pub due: RunNanos,
    /// When its wait was over: as much later as it was due, its sub-agents took.
    pub own_due: RunNanos,
    /// The request it follows: the one before it in its part; for a sub-agent's first one that
    /// before its start; where only sub-agents came before, the last one to end of theirs.
    pub after: Option<RequestIndex>,
    /// Which use of the conversation this is.
    pub copy: u32,
    /// Whether this user had a good answer to the base's record.
    pub base_played: bool,
    /// Tokens of its leading blocks that the user sent before or that all users share. The very
    /// first request of a run finds nothing of what all share: whoever numbers it knows.
    pub ideal_cached: u32,
    /// Tokens of blocks that the player's request before it had in any place.
    pub ideal_set: u32,
}

/// Whom an event or a request is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Who {
    /// Its place on the core.
    pub player: Player,
    /// The user's place among the core's users, the same for its sub-agents; reused once it left.
    pub seat: u32,
    /// The user's number in the run.
    pub user: u32,
    /// The session of its requests.
    pub session: SessionIndex,
    /// The conversation.
    pub conversation: u32,
    /// Its part of the conversation's script; 0 is the user's own.
    pub part: u16,
}

/// What happens to users and sub-agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A player starts.
    Started {
        /// Who.
        who: Who,
        /// When.
        at: RunNanos,
        /// The session of the player that started it; `None` for a user.
        parent: Option<SessionIndex>,
        /// The user's number, or the `k` of `-SAk`.
        number: u32,
        /// Its first cue: above 0, a user is advanced.
        cue: u32,
        /// Which use of the conversation this is.
        copy: u32,
    },
    /// A player has played everything, and the sub-agents it waited for have ended.
    Completed {
        /// Who.
        who: Who,
        /// When.
        at: RunNanos,
        /// Requests of its own that ended.
        done: u32,
        /// Requests of its own that it was to play.
        total: u32,
    },
    /// A player's next request is too long: it ends.
    Truncated {
        /// Who.
        who: Who,
        /// When.
        at: RunNanos,
        /// Requests of its own that ended.
        done: u32,
        /// Requests of its own that it was to play.
        total: u32,
    },
    /// The run ended before a player did.
    Stopped {
        /// Who.
        who: Who,
        /// When.
        at: RunNanos,
        /// Requests of its own that ended.
        done: u32,
        /// Requests of its own that it was to play.
        total: u32,
    },
    /// A ready request was blocked, and its player backs off.
    Limited {
        /// Who.
        who: Who,
        /// When.
        at: RunNanos,
        /// By what.
        why: Why,
        /// For how long.
        backoff_ns: i64,
    },
    /// A user and all its sub-agents have ended: its seat is free.
    Left {
        /// The user.
        who: Who,
        /// When.
        at: RunNanos,
        /// The cue of its own part where it ended: the number of cues when it played all.
        cue: u32,
        /// How its own part ended.
        how: How,
    },
}

/// How a user ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// It played everything.
    Completed,
    /// Its next request was too long.
    Truncated,
}

impl Act {
    /// What it takes of the limits.
    #[must_use]
    pub fn cost(&self) -> Cost {
        Cost {
            fresh_input: self.turn.input_tokens.saturating_sub(self.ideal_cached),
            output: self.turn.output_tokens,
            due: self.due,
        }
    }
}

impl Event {
    /// Whom it is of.
    #[must_use]
    pub const fn who(&self) -> Who {
        match *self {
            Self::Started { who, .. }
            | Self::Completed { who, .. }
            | Self::Truncated { who, .. }
            | Self::Stopped { who, .. }
            | Self::Limited { who, .. }
            | Self::Left { who, .. } => who,
        }
    }
}

#[cfg(test)]
mod random;
#[cfg(test)]
mod tests;
