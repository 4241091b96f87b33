//! `detailed_results.csv`: a row for every request that was sent, in order of their ends.
//!
//! The tool's columns come first, under its names, with its meanings; ours follow. Differences are
//! the module's: see [`super`].

use super::cells::{Cell, Epoch, float, list, seconds};
use crate::log::{Outcome, StepFlags};
use crate::metrics::attribution::{agent_wait_ns, queue_ns};
use crate::metrics::latency::{e2e_ns, effective_ttft_ns, itl_ns, ttft_ns};
use crate::metrics::lateness::lateness_ns;
use crate::metrics::tokens;
use crate::run::{End, Run, Users};
use crate::units::RunNanos;

/// A row's request, and what it needs beside it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'a> {
    run: &'a Run,
    users: &'a Users,
    i: usize,
    epoch: Epoch,
    block_tokens: u32,
}

type Column = (&'static str, fn(&Row<'_>) -> Cell);

/// The tool's columns, in its order.
const COLUMNS: [Column; 24] = [
    ("user_id", |row| row.user_name().into()),
    ("request_idx", |row| row.run.recorded(row.i).and_then(|recorded| recorded.place).into()),
    ("trace_id", |row| row.trace_id().into()),
    ("timestamp", |row| row.epoch_of(row.end())),
    ("request_type", |row| row.kind().into()),
    ("input_tokens", |row| row.run.plan[row.i].input_tokens.into()),
    ("output_tokens_expected", |row| row.run.plan[row.i].max_tokens.into()),
    ("output_tokens_actual", |row| tokens::completion(row.run, row.i).into()),
    ("cache_hit_blocks", |row| row.hit_blocks().into()),
    ("cache_miss_blocks", |row| row.miss_blocks().into()),
    ("ttft", |row| ttft_ns(row.run, row.i).map(seconds).into()),
    ("ttlt", |row| e2e_ns(row.run, row.i).map(seconds).into()),
    ("itl", |row| itl_ns(row.run, row.i).map(|itl| itl / 1e9).into()),
    ("delay_expected", |row| row.delay_ns().map(seconds).into()),
    ("delay_actual", |row| queue_ns(row.run, row.i).map(seconds).into()),
    ("success", |row| row.run.requests.is_ok(row.i).into()),
    ("error_message", |row| row.error().into()),
    ("queue_time", |row| queue_ns(row.run, row.i).map(seconds).into()),
    ("effective_ttft", |row| effective_ttft_ns(row.run, row.i).map(seconds).into()),
    ("request_start_time", |row| row.epoch_of(row.run.requests.sent(row.i))),
    ("prefill_complete_time", |row| row.epoch_of(row.run.requests.first_token(row.i))),
    ("request_complete_time", |row| row.epoch_of(row.end())),
    ("token_timestamps", |row| row.token_times().into()),
    ("tokens_per_chunk", |row| row.token_counts().into()),
];

/// Ours, behind them.
const MORE: [Column; 10] = [
    ("outcome", |row| row.outcome().into()),
    ("http_status", |row| row.run.requests.status(row.i).map(u32::from).into()),
    ("prompt_tokens", |row| row.run.requests.prompt_tokens(row.i).into()),
    ("cached_tokens", |row| row.run.requests.cached_tokens(row.i).into()),
    ("ideal_cached_tokens", |row| row.run.plan[row.i].ideal_cached_tokens.into()),
    ("reasoning_tokens", |row| row.run.requests.reasoning_tokens(row.i).into()),
    ("subagent_wait_s", |row| agent_wait_ns(row.run, row.i).map(seconds).into()),
    ("lateness_s", |row| lateness_ns(row.run, row.i).map(seconds).into()),
    ("over_budget", |row| row.users.flags(row.i).has(StepFlags::OVER_BUDGET).into()),
    ("reply_replaced", |row| row.users.flags(row.i).has(StepFlags::REPLY_REPLACED).into()),
];

/// The heads of all columns.
pub(super) fn heads() -> impl Iterator<Item = &'static str> {
    COLUMNS.iter().chain(&MORE).map(|(name, _value)| *name)
}

/// Every row.
pub(super) fn rows<'a>(run: &'a Run, users: &'a Users) -> impl Iterator<Item = Vec<Cell>> + 'a {
    let requests = &run.requests;
    let mut order: Vec<usize> = (0..requests.len()).filter(|&i| requests.was_sent(i)).collect();
    // What has no end in the log comes last.
    order.sort_by_key(|&i| (requests.done(i).is_none(), requests.done(i), requests.sent(i), i));
    let block_tokens = run.manifest.trace.block_tokens.unwrap_or(0);
    let epoch = Epoch(run.started_unix_ns());
    order.into_iter().map(move |i| {
        let row = Row { run, users, i, epoch, block_tokens };
        COLUMNS.iter().chain(&MORE).map(|(_name, value)| value(&row)).collect()
    })
}

impl Row<'_> {
    fn user(&self) -> Option<&crate::run::User> {
        self.users.users.get(self.run.plan[self.i].session.as_usize())
    }

    fn user_name(&self) -> Option<&str> {
        self.user().map(|user| user.name.as_str()).filter(|name| !name.is_empty())
    }

    fn trace_id(&self) -> Option<&str> {
        self.user()?.trace_id.as_deref()
    }

    /// What it was to wait after the request before it; nothing at a conversation's beginning.
    fn delay_ns(&self) -> Option<i64> {
        let row = &self.run.plan[self.i];
        row.think_ns.or((row.turn == 0).then_some(0))
    }

    fn kind(&self) -> &'static str {
        let streamed = self.users.flags(self.i).has(StepFlags::STREAMED);
        if streamed { "streaming" } else { "non_streaming" }
    }

    fn epoch_of(&self, time: Option<RunNanos>) -> Cell {
        time.map(|time| self.epoch.seconds(time)).into()
    }

    fn end(&self) -> Option<RunNanos> {
        self.run.requests.done(self.i)
    }

    fn hit_blocks(&self) -> Option<u64> {
        let tokens = self.run.plan[self.i].ideal_set_tokens?;
        tokens.checked_div(self.block_tokens).map(u64::from)
    }

    fn miss_blocks(&self) -> Option<u64> {
        Some(u64::from(self.run.plan[self.i].blocks).saturating_sub(self.hit_blocks()?))
    }

    fn outcome(&self) -> &'static str {
        match self.run.requests.end(self.i) {
            End::Known(class) => class.name(),
            end @ (End::Open | End::Lost) => end.name(),
            End::NeverSent | End::NotReached => Outcome::NeverSent.name(),
        }
    }

    fn error(&self) -> String {
        if self.run.requests.is_ok(self.i) {
            return String::new();
        }
        match self.run.error_text(self.i) {
            Some(words) => format!("{}: {words}", self.outcome()),
            None => self.outcome().to_owned(),
        }
    }

    fn token_times(&self) -> String {
        let times = self.run.chunks.row(self.i);
        list(times.times().iter().map(|&time| float(self.epoch.seconds(RunNanos(time)))))
    }

    fn token_counts(&self) -> String {
        list(self.run.chunks.row(self.i).iter().map(|chunk| chunk.tokens.to_string()))
    }
}
