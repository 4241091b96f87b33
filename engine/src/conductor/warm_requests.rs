//! Requests before zero: a few of the plan's first ones, so that the server is warm when it counts.
//!
//! They are sent as the run's are, by a core and over connections of their own that are gone before
//! the run's are opened, and what became of them is told in the log's manifest. They are no part of
//! the plan and of no statistic. Their prompts are the run's, so a server that caches prefixes has
//! seen these.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8};

use onbeat_shared::counted::{counted, grouped};
use onbeat_shared::log::PrefixRows;
use onbeat_shared::log::header::{Manifest, WarmUp, WarmUpRequest};
use onbeat_shared::run::Run;
use onbeat_shared::units::CoreIndex;

use super::patience::Patience;
use super::writer::Writer;
use super::{Cores, Live, Watch, affinity, perform, write_beside};
use crate::clock::unix_ns;
use crate::error::EngineError;
use crate::plan::Plan;
use crate::render::supply::Source;
use crate::replayer::{Assignment, Shared, Stop};

/// Sends `plan`'s requests as `assignment` says, which is that of a run's first core, and waits for
/// their ends. `asked` is how many the user wanted: a plan may have fewer.
///
/// # Errors
/// When no connection can be opened, a thread cannot be started, or the user stops it.
pub fn send(
    plan: Plan,
    source: Source,
    asked: u32,
    assignment: &Assignment,
    manifest: &Manifest,
    watch: &mut dyn Watch,
) -> Result<WarmUp, EngineError> {
    let plan = Arc::new(plan);
    let planned = plan.rows.len() as u64;
    watch.say(&announced(planned, asked));
    let shared = Arc::new(Shared {
        plan: Arc::clone(&plan),
        source,
        users: None,
        zero_ns: AtomicI64::new(Shared::NO_ZERO),
        stop: AtomicU8::new(Stop::No as u8),
    });
    let only = Assignment {
        core: CoreIndex(0),
        // One request is in flight at a time.
        warm_connections: assignment.warm_connections.iter().map(|&n| n.min(1)).collect(),
        max_connections: None,
        ..assignment.clone()
    };
    let _apart = affinity::Apart::from(only.cpu.as_slice());
    let mut cores = Cores::start(&[only], &shared)?;
    cores.wait_ready(watch)?;
    let started_unix_ns = unix_ns();
    let manifest = Manifest {
        planned: u32::try_from(planned).expect("a part of a plan"),
        started_unix_ns,
        warm_up: None,
        start: None,
        ..manifest.clone()
    };
    // A log in memory, which says of these requests what a run's log says of its own.
    let begun = Writer::begin(Vec::new(), &manifest, &plan, &PrefixRows::default());
    let writer = begun.expect("memory takes everything");
    let live = Live::default();
    let (scribe, own) = write_beside(writer, &cores, &live)?;
    let watched = (None, &manifest, Patience::default(), live);
    let performed = perform(&mut cores, &shared, &own, watched, watch);
    let writer = scribe.end()?;
    if let Some(failure) = performed.failure {
        return Err(failure);
    }
    if performed.interrupted {
        return Err(EngineError::Stopped);
    }
    let run = Run::read(&writer.into_inner())
        .map_err(|error| EngineError::Run(format!("the warm-up's log: {error}")))?;
    let told = told(&run, started_unix_ns);
    watch.say(&told.to_string());
    Ok(told)
}

/// What is said before they are sent.
fn announced(planned: u64, asked: u32) -> String {
    let fewer = if planned < u64::from(asked) {
        format!("; {} were asked for, and the plan has no more", grouped(asked.into()))
    } else {
        String::new()
    };
    let requests = counted(planned, "request");
    format!("warm-up: {requests} before the run, one after the other{fewer}")
}

fn told(run: &Run, started_unix_ns: u64) -> WarmUp {
    let requests = &run.requests;
    let request = |i: usize| WarmUpRequest {
        row: run.plan[i].row,
        sent_ns: requests.sent(i).map(|time| time.0),
        first_token_ns: requests.first_token(i).map(|time| time.0),
        done_ns: requests.done(i).map(|time| time.0),
        class: requests.class(i).map_or("no_record", |class| class.name()).to_owned(),
        status: requests.status(i),
    };
    let ok = (0..requests.len()).filter(|&i| requests.is_ok(i)).count() as u64;
    WarmUp { started_unix_ns, ok, requests: (0..requests.len()).map(request).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warm_up_that_is_shorter_than_asked_for_says_so() {
        assert!(announced(60, 1_000).contains("60 requests before the run"));
        assert!(announced(60, 1_000).contains("; 1,000 were asked for, and the plan has no more"));
        assert!(!announced(60, 60).contains("asked"));
    }
}
