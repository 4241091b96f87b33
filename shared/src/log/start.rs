//! What a log says of runs on several machines: which part of the plan, when all start, who sent.
//!
//! All of it stands in the manifest, so older readers pass over it. A log of one shard has
//! [`ShardFacts`] and usually a [`Start`]; a merged log has [`Merged`] instead of the former, with
//! one [`HostPart`] for each log it was made from.

use serde::{Deserialize, Serialize};

use super::header::{Host, Pacing};
use crate::counted::{agreeing, counted};

/// Which part of a plan a log is about. The log's `Numbers` blocks say which number each of its
/// requests has in the whole plan; a user-driven run has none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ShardFacts {
    /// Its number, from 0.
    pub index: u32,
    /// How many shards share the plan.
    pub count: u32,
    /// Requests (or templates) of the whole plan.
    pub planned: u32,
    /// A digest of the whole plan, in hexadecimal: equal for shards of one plan.
    pub plan: String,
}

/// The instant that is the schedule's zero, if the user named one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Start {
    /// The zero, in nanoseconds since 1970: what this machine's wall clock showed then.
    pub at_unix_ns: u64,
    /// The error of the clock that was allowed; `None`: any.
    pub allowed_error_ns: Option<u64>,
    /// The clock right before zero; `None`: the kernel did not say.
    pub clock: Option<ClockState>,
}

/// How wrong a wall clock may be, as its kernel says.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct ClockState {
    /// Whether something steers it and says that it is right.
    pub synchronised: bool,
    /// The largest error there can be, by whoever steers it.
    pub max_error_ns: u64,
    /// The error that is likely.
    pub estimated_error_ns: u64,
}

/// What a merged log was made from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Merged {
    /// How many shards share the plan.
    pub shards: u32,
    /// Shards whose logs were not there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<u32>,
    /// Requests (or templates) of the whole plan.
    pub planned: u32,
    /// Those that sent, by shard.
    pub hosts: Vec<HostPart>,
}

/// One machine's part of a merged log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HostPart {
    /// The shard it sent.
    pub shard: u32,
    /// The name of its own run.
    pub run_id: String,
    /// The machine.
    pub host: Host,
    /// Its cores have this number and the following ones in the merged log.
    pub first_core: u16,
    /// The CPU number each of them was pinned to.
    pub cores: Vec<u16>,
    /// How sockets were driven.
    pub driver: String,
    /// How the cores waited.
    pub pacing: Pacing,
    /// Requests it was to send; of users, those that its log tells of.
    pub requests: u32,
    /// The zero, and its clock right before.
    pub start: Start,
    /// What the machine does to precision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doctor: Option<serde_json::Value>,
    /// Whether its log was closed.
    pub closed: bool,
    /// Whether the user stopped it.
    pub interrupted: bool,
    /// Records that found no room and are missing.
    pub lost_records: u64,
    /// Bytes of its log that were damaged or cut off.
    pub damaged_bytes: u64,
}

impl Merged {
    /// What a reader of the run must know: shards whose logs were missing or damaged.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let missing = (!self.missing.is_empty()).then(|| self.missing_words());
        let damaged = self.hosts.iter().filter(|host| host.damaged_bytes > 0).map(|host| {
            let bytes = counted(host.damaged_bytes, "byte");
            format!("{bytes} of the log of {} were damaged or cut off, and left out", host.name())
        });
        missing.into_iter().chain(damaged).collect()
    }

    /// Which machines their user stopped while others went on: from then on the servers had a part
    /// of the load. `None` if none was, or all were, which is a run that was stopped.
    #[must_use]
    pub fn stopped_words(&self) -> Option<String> {
        let stopped: Vec<String> =
            self.hosts.iter().filter(|host| host.interrupted).map(HostPart::name).collect();
        let many = stopped.len();
        if many == 0 || many == self.hosts.len() {
            return None;
        }
        let was = agreeing(many as u64, "was stopped by its user", "were stopped by their user");
        Some(format!("{} {was} and sent no more, while others went on", stopped.join(", ")))
    }

    /// Whether records of a machine that is there are missing.
    #[must_use]
    pub fn lacks_records(&self) -> bool {
        self.hosts.iter().any(|host| host.damaged_bytes > 0 || host.lost_records > 0)
    }

    /// Which shards are missing, in words.
    #[must_use]
    pub fn missing_words(&self) -> String {
        let mut named: Vec<String> = self.missing.iter().take(10).map(u32::to_string).collect();
        if self.missing.len() > named.len() {
            named.push(format!("and {} more", self.missing.len() - named.len()));
        }
        let many = self.missing.len() as u64;
        format!(
            "{} {} of {} {} missing",
            agreeing(many, "shard", "shards"),
            named.join(", "),
            self.shards,
            agreeing(many, "is", "are")
        )
    }

    /// The place among [`Self::hosts`] of the one that a core belongs to.
    #[must_use]
    pub fn host_of(&self, core: u16) -> Option<usize> {
        self.hosts.iter().position(|host| host.has_core(core))
    }
}

impl HostPart {
    /// Whether a core of the merged log is one of its own.
    #[must_use]
    pub fn has_core(&self, core: u16) -> bool {
        core.checked_sub(self.first_core).is_some_and(|own| usize::from(own) < self.cores.len())
    }

    /// What it is called where hosts are listed: shards of one machine have its name in common.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} (shard {})", self.host.hostname, self.shard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_belongs_to_one_host() {
        let host = |shard, first_core, cores: &[u16]| HostPart {
            shard,
            first_core,
            cores: cores.to_vec(),
            ..HostPart::default()
        };
        let hosts = vec![host(0, 0, &[3, 2]), host(1, 2, &[3])];
        let merged = Merged { shards: 2, hosts, ..Merged::default() };
        assert_eq!(
            [0, 1, 2, 3].map(|core| merged.host_of(core)),
            [Some(0), Some(0), Some(1), None]
        );
        let text = serde_json::to_string(&merged).expect("JSON's own types");
        assert_eq!(serde_json::from_str::<Merged>(&text).expect("reads"), merged);
    }
}
