//! Rounds of streams under time limits close to the gap between two of their tokens.
//!
//! A limit that strikes hangs up in the middle of a stream, with a read pending. No byte that was
//! read before may be lost or counted twice by that, and no stream may be given up whose server
//! kept to its limit: the server says whether it did.

use std::sync::Arc;
use std::time::Duration;

use onbeat::replayer::driver::DriverKind;
use onbeat_shared::log::Class;
use onbeat_shared::run::Run;

use super::metronome::{Answer, Metronome, Sent};
use crate::{Scenario, mooncake};

/// A round as it is to be.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    /// How sockets are driven.
    pub driver: DriverKind,
    /// Streams, all under way at once.
    pub streams: usize,
    /// Tokens of each.
    pub tokens: usize,
    /// Between two tokens of a stream.
    pub gap: Duration,
    /// What is limited.
    pub limit: Limit,
}

/// A time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Between two reads of an answer.
    Idle(Duration),
    /// On all of it.
    Total(Duration),
}

/// What came of a round in which every byte was accounted for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Tokens that were counted.
    pub tokens: u64,
    /// Streams that ended well.
    pub ok: usize,
    /// Streams that were given up.
    pub given_up: usize,
    /// Streams whose server itself paused for longer than the limit.
    pub paused: usize,
}

/// Plays one.
///
/// # Errors
/// What was not accounted for.
///
/// # Panics
/// When the server cannot be started, or the run fails.
pub fn play(wish: &Wish) -> Result<Round, String> {
    let answer = Arc::new(Answer::new(wish.tokens));
    let server = Metronome::start(Arc::clone(&answer), wish.gap);
    let mut scenario = Scenario::new(&mooncake(wish.streams, 1, 10, wish.tokens));
    scenario.config.driver = Some(wish.driver);
    scenario.config.warm_connections = Some(wish.streams);
    let nanos = |time: Duration| i64::try_from(time.as_nanos()).expect("a short time");
    let limits = &mut scenario.config.limits;
    match wish.limit {
        Limit::Idle(limit) => limits.idle_ns = Some(nanos(limit)),
        Limit::Total(limit) => limits.total_ns = Some(nanos(limit)),
    }
    let run = scenario.run_against(server.address());
    let sent = server.end();
    let mut round = Round::default();
    for i in 0..wish.streams {
        let sent = sent.get(&i).ok_or_else(|| format!("request {i} never came"))?;
        account(&run, i, sent, &answer, wish, &mut round)
            .map_err(|words| format!("request {i} on {}: {words}", wish.driver.name()))?;
    }
    if !run.is_whole() || !run.warnings.is_empty() {
        return Err(format!("the log: {:?}", run.warnings));
    }
    Ok(round)
}

/// Holds what the log says of a request against what its server sent.
fn account(
    run: &Run,
    i: usize,
    sent: &Sent,
    answer: &Answer,
    wish: &Wish,
    round: &mut Round,
) -> Result<(), String> {
    let class = run.requests.class(i).ok_or("no end")?;
    let read = run.requests.response_bytes(i).unwrap_or(0);
    let tokens = run.chunks.count(i);
    if tokens != answer.tokens_in(read) || read > sent.bytes {
        return Err(format!("{class:?}: {tokens} tokens in {read} bytes of {sent:?}"));
    }
    let done = run.requests.done(i).ok_or("no instant of its end")?.0;
    let nanos = |time: Duration| i64::try_from(time.as_nanos()).expect("a short time");
    // Nothing strikes before its time, and nothing whose server was in time.
    let (waited, limit, paused) = match wish.limit {
        Limit::Idle(limit) => {
            let latest = run.requests.last_token(i).or(run.requests.first_byte(i));
            (latest.map_or(i64::MAX, |at| done - at.0), nanos(limit), sent.pause_ns > nanos(limit))
        }
        Limit::Total(limit) => {
            let begun = run.requests.sent(i).ok_or("it never left")?;
            (done - begun.0, nanos(limit), true)
        }
    };
    match class {
        Class::Ok if read == answer.bytes() && tokens == wish.tokens => round.ok += 1,
        Class::IdleTimeout | Class::TotalTimeout if waited >= limit && paused => {
            round.given_up += 1;
        }
        _ => return Err(format!("{class:?} after {waited} ns, {read} bytes, {sent:?}")),
    }
    round.paused += usize::from(paused);
    round.tokens += tokens as u64;
    Ok(())
}
