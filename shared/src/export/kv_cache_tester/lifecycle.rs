//! `user_lifecycle.csv`: what became of every user and sub-agent, by time.
//!
//! The events are the tool's three: started, completed, truncated. Here sub-agents have a start
//! too, and a user that goes on in a later run a second one. A user that the run's end cut short
//! has no end, as there. Counts are of a user's own requests; the tool's, of its sub-agents as well
//! and of what an advanced user did not send. Hits are the tool's figure: blocks of the request
//! before.

use super::cells::{Cell, Epoch};
use crate::counted::grouped;
use crate::run::{Left, Run, User, Users};
use crate::units::{RunNanos, SessionIndex};

/// The heads of the columns.
pub(super) const HEADS: [&str; 5] = ["timestamp", "user_id", "event_type", "trace_id", "details"];

/// What a user's requests were.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    /// Prompt tokens of the first one.
    first_tokens: Option<u32>,
    /// Blocks that the request before it had, too, and all of them.
    hit_blocks: u64,
    blocks: u64,
}

/// Every row.
pub(super) fn rows(run: &Run, users: &Users) -> Vec<Vec<Cell>> {
    let asked = asked(run, users);
    let mut events: Vec<(RunNanos, SessionIndex, &str, String)> = Vec::new();
    for user in &users.users {
        let own = asked.get(user.session.as_usize()).copied().unwrap_or_default();
        if let Some(time) = user.started {
            events.push((time, user.session, "started", started(run, user, own)));
        }
        let ended = user.left.filter(|left| *left != Left::Stopped);
        if let (Some(time), Some(left)) = (user.ended, ended) {
            events.push((time, user.session, left.name(), over(user, own)));
        }
    }
    // A user's start comes before its end, also at one instant: they were pushed in that order.
    events.sort_by_key(|event| event.0);
    let epoch = Epoch(run.started_unix_ns());
    let row = |(time, session, event, details): (RunNanos, SessionIndex, &str, String)| {
        let user = &users.users[session.as_usize()];
        vec![
            epoch.seconds(time).into(),
            user.name.clone().into(),
            event.into(),
            user.trace_id.clone().into(),
            details.into(),
        ]
    };
    events.into_iter().map(row).collect()
}

fn asked(run: &Run, users: &Users) -> Vec<Asked> {
    let mut asked = vec![Asked::default(); users.users.len()];
    for row in run.plan.iter() {
        let Some(own) = asked.get_mut(row.session.as_usize()) else { continue };
        own.first_tokens = own.first_tokens.or(row.input_tokens);
        let hits = row.ideal_set_tokens.zip(run.manifest.trace.block_tokens);
        if let Some(hits) = hits.and_then(|(tokens, of_one)| tokens.checked_div(of_one)) {
            own.hit_blocks += u64::from(hits);
            own.blocks += u64::from(row.blocks);
        }
    }
    asked
}

/// `N requests, X initial tokens`; what is not known is left out.
fn started(run: &Run, user: &User, own: Asked) -> String {
    let tokens = own.first_tokens.map(|tokens| grouped(tokens.into()));
    let advanced = user.cue > 0;
    let goes_on = user.goes_on(run.manifest.users.as_deref());
    let mut parts = Vec::new();
    if let Some(total) = user.total {
        if goes_on {
            parts.push(format!("{total} requests remaining (resumed)"));
        } else if advanced {
            let share = f64::from(user.cue) / f64::from(user.cue.saturating_add(total).max(1));
            let share = share * 100.0;
            parts.push(format!("{total} requests remaining (advanced {share:.0}%)"));
        } else {
            parts.push(format!("{total} requests"));
        }
    }
    if let Some(tokens) = tokens {
        parts.push(match advanced {
            true => format!("{tokens} tokens at start"),
            false => format!("{tokens} initial tokens"),
        });
    }
    parts.join(", ")
}

/// `done/total requests, H% cache hit`; what is not known is left out.
fn over(user: &User, own: Asked) -> String {
    let mut parts = Vec::new();
    if let (Some(done), Some(total)) = (user.done, user.total) {
        parts.push(format!("{done}/{total} requests"));
    }
    if own.blocks > 0 {
        let (hit, of) = (own.hit_blocks, own.blocks);
        let share = crate::metrics::latency::count(hit) / crate::metrics::latency::count(of);
        parts.push(format!("{:.1}% cache hit", share * 100.0));
    }
    parts.join(", ")
}
