//! What pacing cores tell the director: facts about requests and users, each with its time.
//!
//! A core puts these into its bounded queue as they happen and never waits for anybody to read
//! them. Every fact carries all that the director needs to know, so that none has to be looked up
//! on a core. The run's log and the report do not come from here: cores write their own records.

use onbeat_shared::log::outcome::Class;
use onbeat_shared::units::RunNanos;

use super::players::How;

/// One fact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Heard {
    /// A request left: its first byte was handed to the kernel.
    Sent {
        /// When.
        at: RunNanos,
        /// Whose: the user's number, for a sub-agent that of the user it works for.
        user: u32,
        /// The trace's record it replays.
        record: u32,
    },
    /// The first token of its answer came. An answer in one piece tells nothing of its first token
    /// and has no such fact.
    FirstToken {
        /// When.
        at: RunNanos,
        /// From `Sent` to here.
        ttft_ns: i64,
    },
    /// A request ended, however.
    Ended {
        /// When.
        at: RunNanos,
        /// Whose, as in `Sent`.
        user: u32,
        /// The trace's record it replayed.
        record: u32,
        /// How.
        class: Class,
        /// Tokens of the answer.
        tokens: u32,
        /// From the first token to the last; 0 where there was none, or all came at once.
        decode_ns: i64,
        /// Whether any token came.
        had_first_token: bool,
    },
    /// A sub-agent of this user began.
    AgentEntered {
        /// When.
        at: RunNanos,
        /// The user it works for.
        user: u32,
    },
    /// A sub-agent of this user is done.
    AgentLeft {
        /// When.
        at: RunNanos,
        /// The user it works for.
        user: u32,
    },
    /// A user and all its sub-agents are done.
    Left {
        /// When.
        at: RunNanos,
        /// Which user.
        user: u32,
        /// Its conversation.
        conversation: u32,
        /// The cue of its own part where it ended: the number of cues when it played all.
        cue: u32,
        /// How.
        how: How,
    },
    /// A user or sub-agent was not admitted and backs off.
    Limited {
        /// When.
        at: RunNanos,
        /// When it will try again.
        until: RunNanos,
    },
}

impl Heard {
    /// When it happened.
    #[must_use]
    pub const fn at(&self) -> RunNanos {
        match *self {
            Self::Sent { at, .. }
            | Self::FirstToken { at, .. }
            | Self::Ended { at, .. }
            | Self::AgentEntered { at, .. }
            | Self::AgentLeft { at, .. }
            | Self::Left { at, .. }
            | Self::Limited { at, .. } => at,
        }
    }
}
