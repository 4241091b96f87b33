//! Records about requests that are not known when they come.
//!
//! The requests of a planned run are known before its first record, so such a record is only
//! counted. Those of a user-driven run become known as they are told of, by several cores: there it
//! is kept until its request is known. How many requests there can be follows from how long the log
//! is so far, never from a number that it claims.

use std::collections::{BTreeMap, BTreeSet};

use crate::log::RECORD_BYTES;
use crate::units::CoreIndex;

/// A record that is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    pub(super) core: CoreIndex,
    pub(super) bytes: [u8; RECORD_BYTES],
    /// How many facts it holds.
    pub(super) facts: u64,
}

/// The records about unknown requests.
#[derive(Debug, Default)]
pub(super) struct Strangers {
    kept: BTreeMap<u32, Vec<Told>>,
    /// Requests that would be known if there could be so many.
    claimed: BTreeSet<u32>,
    /// Facts that were passed over, or are kept.
    pub(super) count: u64,
}

impl Strangers {
    /// Keeps a record; `claims` if it makes its request known by itself.
    pub(super) fn keep(&mut self, request: u32, told: Told, claims: bool) {
        self.count += told.facts;
        self.kept.entry(request).or_default().push(told);
        if claims {
            self.claimed.insert(request);
        }
    }

    /// How many requests are known by what is kept, now that there can be so many.
    pub(super) fn claimed_below(&self, limit: usize) -> Option<usize> {
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        self.claimed.range(..limit).next_back().map(|&request| request as usize + 1)
    }

    /// Gives back what is kept of the requests that are known now, in the order it came.
    pub(super) fn take_below(&mut self, known: usize) -> Vec<Told> {
        let Ok(known) = u32::try_from(known) else { return Vec::new() };
        let later = self.kept.split_off(&known);
        self.claimed = self.claimed.split_off(&known);
        let told: Vec<Told> =
            std::mem::replace(&mut self.kept, later).into_values().flatten().collect();
        self.count -= told.iter().map(|told| told.facts).sum::<u64>();
        told
    }
}
