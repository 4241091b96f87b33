//! What a run needs to go on where an earlier one was interrupted, as JSON in `progress.json`.
//!
//! A user goes on at the request it had come to: one that was cut off by the interruption is sent
//! again. Sub-agents start again with the cue that starts them. Requests that had ended are not
//! repeated. Which options both runs must have in common is not known here.

use std::collections::HashSet;

use onbeat_shared::log::outcome::{Class, Outcome};
use serde::{Deserialize, Serialize};

use super::Direction;
use crate::plan::script::Scripts;
use crate::policy::pool::PoolState;
use crate::policy::ramp::Memory;

/// The state of a run's director when it stopped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectorState {
    /// Which conversations are left, and in which order they are taken.
    pub pool: PoolState,
    /// Users of all runs so far.
    pub users_created: u32,
    /// Users that had left and were not replaced yet.
    pub owed: u32,
    /// What the ramp remembers.
    pub ramp: Memory,
    /// Who was playing, by number.
    pub playing: Vec<Returning>,
}

/// A user that goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Returning {
    /// Its number.
    pub user: u32,
    /// Its conversation, by place in the trace.
    pub conversation: u32,
    /// Which use of the conversation it is.
    pub copy: u32,
    /// The cue of its own part that it goes on with.
    pub cue: u32,
}

impl DirectorState {
    /// Whether users could go on with these scripts.
    ///
    /// # Errors
    /// The first user that could not, and why, in words.
    pub fn check(&self, scripts: &Scripts) -> Result<(), String> {
        if self.owed > self.users_created {
            return Err(format!(
                "owed: {} users are to be replaced, and there were {}",
                self.owed, self.users_created
            ));
        }
        let mut seen = HashSet::new();
        for Returning { user, conversation, cue, .. } in &self.playing {
            if *user == 0 || *user > self.users_created || !seen.insert(user) {
                return Err(format!(
                    "playing: user {user} is there twice or is none of users 1 to {}",
                    self.users_created
                ));
            }
            let script = scripts.scripts.get(*conversation as usize);
            let Some(own) = script.and_then(|script| script.parts.first()) else {
                return Err(format!(
                    "playing: user {user} plays conversation {conversation}, and the trace has {}",
                    scripts.scripts.len()
                ));
            };
            if *cue as usize >= own.cues.len() {
                return Err(format!(
                    "playing: user {user} is at cue {cue} of conversation {conversation}, which \
                     has {}",
                    own.cues.len()
                ));
            }
        }
        Ok(())
    }
}

impl Direction {
    /// What a later run needs to go on from here.
    #[must_use]
    pub fn state(&self) -> DirectorState {
        let mut playing: Vec<Returning> = self
            .playing
            .iter()
            .map(|(&user, playing)| Returning {
                user,
                conversation: playing.conversation,
                copy: playing.copy,
                cue: playing.cue,
            })
            .collect();
        playing.sort_unstable_by_key(|returning| returning.user);
        DirectorState {
            pool: self.pool.state(),
            users_created: self.created,
            owed: self.owed,
            ramp: self.ramp.memory().clone(),
            playing,
        }
    }
}

/// Whether a request that ended like this counts as played; otherwise its user asks it again.
pub(super) const fn is_played(class: Class) -> bool {
    !matches!(class, Class::Interrupted | Class::CutAtEnd)
        && !matches!(class.outcome(), Outcome::NeverSent)
}
