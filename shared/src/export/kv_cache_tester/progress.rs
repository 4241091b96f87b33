//! `progress.json`: where a run stopped, so that another can go on from there.
//!
//! The tool's two keys come first: `parameters` (its `TestConfig`) and `completed`. The state of
//! users and pool is its owner's type; here it is a value that is written and given back. A run
//! that goes on must play the same conversations with the same prompts at the same pace, or the
//! tables of the two would not be one: [`Equal`] is what that depends on, and its `differences`
//! name each option that says otherwise. Limits and the ramp may change.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::metadata;
use crate::log::{Footer, Manifest, UserFacts};
use crate::run::Run;

/// Version of the part that is ours.
pub const PROGRESS_VERSION: u32 = 1;

/// The document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress<S> {
    /// The run's options under the tool's names.
    pub parameters: Map<String, Value>,
    /// Whether the run came to its own end: by its time or with its last user.
    pub completed: bool,
    /// What the tool does not have.
    pub onbeat: Rest<S>,
}

/// What the tool's document does not have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rest<S> {
    /// [`PROGRESS_VERSION`] of the writer.
    pub version: u32,
    /// Its program's version.
    pub onbeat_version: String,
    /// The runs whose rows the tables hold, in order.
    pub run_ids: Vec<String>,
    /// Assessment periods that the tables hold.
    pub periods: u32,
    /// What a run that goes on must have in common with this one.
    pub equal: Equal,
    /// Users and pool as they were at the end; `None`: not known, as in a log that is exported
    /// later, and then nothing can go on from here.
    pub state: Option<S>,
    /// Of a run under way. Its tables are written at its end, so one that was killed leaves this,
    /// and its rows are still to be made from its log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<Unfinished>,
}

/// A run whose rows are in no table yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unfinished {
    /// Its log.
    pub log: PathBuf,
    /// How many bytes each table of the folder has of the runs before it, by the table's name.
    /// Whatever is behind them was written while it was killed.
    pub earlier_bytes: BTreeMap<String, u64>,
}

/// What a run that goes on must have in common with the one before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Equal {
    /// Name of the trace.
    pub trace: String,
    /// Its SHA-256, in hexadecimal.
    pub trace_sha256: String,
    /// Options and their values.
    pub options: Map<String, Value>,
}

/// One thing that is not as it was.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The option, with its dashes, or "the trace".
    pub what: String,
    /// What it was.
    pub before: String,
    /// What it is.
    pub now: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} was {} and is {}", self.what, self.before, self.now)
    }
}

impl Equal {
    /// Of a run that has this manifest.
    #[must_use]
    pub fn of(manifest: &Manifest) -> Self {
        let facts = manifest.users.clone().unwrap_or_default();
        Self::new(&manifest.trace.name, &manifest.trace.sha256, &facts)
    }

    /// Of a run of this trace with these options.
    #[must_use]
    pub fn new(trace: &str, trace_sha256: &str, facts: &UserFacts) -> Self {
        let UserFacts { timing, prompts, pool, .. } = facts;
        let pairs = [
            ("--max-context", json!(pool.max_context)),
            ("--min-requests", json!(pool.min_requests)),
            ("--trace-seed", json!(facts.trace_seed)),
            ("--prompt-seed", json!(prompts.seed)),
            ("--warm-prefix-pct", json!(prompts.warm_prefix_share)),
            ("--chunk-size", json!(prompts.chunk_tokens)),
            ("--reply-mode", json!(prompts.reply_mode)),
            ("--tool-role", json!(prompts.tool_role)),
            ("--stream-all", json!(prompts.stream_all)),
            ("--timing-strategy", json!(timing.strategy)),
            ("--max-delay", json!(super::cells::seconds(timing.max_delay_ns))),
            ("--time-scale", json!(timing.time_scale)),
            ("--api-time-scale", json!(timing.api_time_scale)),
            ("--clamp-think-time", json!(timing.clamp_think_times)),
            ("--async-subagents", json!(timing.async_subagents)),
            ("--assessment-period", json!(super::cells::seconds(facts.period_ns))),
            ("--recycle", json!(facts.recycle)),
        ];
        Self {
            trace: trace.to_owned(),
            trace_sha256: trace_sha256.to_owned(),
            options: pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        }
    }

    /// Everything that is not in `now` as it is here, in the order of the options.
    #[must_use]
    pub fn differences(&self, now: &Self) -> Vec<Difference> {
        let mut found = Vec::new();
        if self.trace_sha256 != now.trace_sha256 {
            let named = |own: &Self| {
                let digest: String = own.trace_sha256.chars().take(12).collect();
                format!("{} (sha256 {digest}…)", own.trace)
            };
            let (before, now) = (named(self), named(now));
            found.push(Difference { what: "the trace".to_owned(), before, now });
        }
        let shown = |value: Option<&Value>| match value {
            None | Some(Value::Null) => "not given".to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        };
        // An option that one side does not know came with another version.
        let names = now.options.keys().chain(self.options.keys());
        let mut seen: Vec<&String> = Vec::new();
        for name in names {
            let (before, after) = (self.options.get(name), now.options.get(name));
            if before == after || seen.contains(&name) {
                continue;
            }
            seen.push(name);
            let (before, now) = (shown(before), shown(after));
            found.push(Difference { what: name.clone(), before, now });
        }
        found
    }
}

impl<S> Progress<S> {
    /// Of a run that has ended; `earlier` is that of the run it went on from.
    #[must_use]
    pub fn new(run: &Run, periods: usize, state: Option<S>, earlier: Option<&Self>) -> Self {
        let by_itself = |footer: &Footer| !footer.interrupted && footer.given_up.is_none();
        let ended = run.footer.as_ref().is_some_and(by_itself);
        Self { completed: ended, ..Self::of(&run.manifest, periods, state, earlier) }
    }

    /// Of a run under way, whose tables have so many periods until now.
    #[must_use]
    pub fn of(
        manifest: &Manifest,
        periods: usize,
        state: Option<S>,
        earlier: Option<&Self>,
    ) -> Self {
        let periods = u32::try_from(periods).unwrap_or(u32::MAX);
        let mut run_ids = earlier.map_or_else(Vec::new, |earlier| earlier.onbeat.run_ids.clone());
        run_ids.push(manifest.run_id.clone());
        let before = earlier.map_or(0, |earlier| earlier.onbeat.periods);
        Self {
            parameters: metadata::parameters(manifest),
            completed: false,
            onbeat: Rest {
                version: PROGRESS_VERSION,
                onbeat_version: manifest.onbeat_version.clone(),
                run_ids,
                periods: before.saturating_add(periods),
                equal: Equal::of(manifest),
                state,
                unfinished: None,
            },
        }
    }
}
