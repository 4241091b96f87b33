//! What a run needs to go on where an earlier one was interrupted, as JSON in `progress.json`.
//!
//! A user goes on at the request it had come to: one that was cut off by the interruption is sent
//! again. Sub-agents start again with the cue that starts them. Requests that had ended are not
//! repeated. The options that both runs must have in common are kept by whoever knows options, as a
//! JSON object; [`DirectorState::difference`] names the first that differs.

use onbeat_shared::log::outcome::{Class, Outcome};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Direction;
use crate::policy::pool::PoolState;
use crate::policy::ramp::Memory;

/// The state of a run's director when it stopped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectorState {
    /// Options that a run which goes on must have as they were, by name.
    pub options: Map<String, Value>,
    /// Which conversations are left, and in which order they are taken.
    pub pool: PoolState,
    /// Users of all runs so far.
    pub users_created: u32,
    /// Users that had left and were not replaced yet.
    pub owed: u32,
    /// What the ramp remembers.
    pub ramp: Memory,
    /// Assessment periods of all runs so far.
    pub periods: u32,
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
    /// The first option that a run which goes on has otherwise, in words.
    #[must_use]
    pub fn difference(&self, options: &Map<String, Value>) -> Option<String> {
        let mut names: Vec<&String> = self.options.keys().chain(options.keys()).collect();
        names.sort_unstable();
        let words =
            |value: Option<&Value>| value.map_or_else(|| "not set".to_owned(), ToString::to_string);
        names.into_iter().find_map(|name| {
            let (was, is) = (self.options.get(name), options.get(name));
            (was != is).then(|| format!("{name} was {} and is {} now", words(was), words(is)))
        })
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
            options: Map::new(),
            pool: self.pool.state(),
            users_created: self.created,
            owed: self.owed,
            ramp: self.ramp.memory().clone(),
            periods: self.periods_before.saturating_add(self.number - 1),
            playing,
        }
    }
}

/// Whether a request that ended like this counts as played; otherwise its user asks it again.
pub(super) const fn is_played(class: Class) -> bool {
    !matches!(class, Class::Interrupted | Class::CutAtEnd)
        && !matches!(class.outcome(), Outcome::NeverSent)
}
