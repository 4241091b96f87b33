//! Servers that break one stream in ten in its middle, or answer before they have read.
//!
//! Every broken stream has to be counted once, by its right name, with exactly the tokens that came
//! before, and costs no other stream anything; every early answer keeps its status, whether its
//! server then says nothing more, or is gone with bytes of ours unread.

use std::io::Read;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use onbeat::replayer::driver::DriverKind;
use onbeat_shared::log::Class;
use onbeat_shared::run::Run;
use rustix::net::sockopt::set_socket_linger;

use super::metronome::Answer;
use super::number;
use crate::scripted::{Scripted, answer, request};
use crate::{Scenario, mooncake};

/// Tokens of each stream.
const TOKENS: usize = 20;
/// One stream in so many is broken.
pub const ONE_IN: usize = 10;
/// Tokens of an early answer's prompt, some megabytes: no socket takes it at once.
const LONG_PROMPT: usize = 1_000_000;
/// How long a server that said it will say no more still listens.
const PATIENCE: Duration = Duration::from_secs(20);

/// Tokens that stream `i` has before it is broken.
const fn kept(i: usize) -> usize {
    1 + i / ONE_IN % (TOKENS - 1)
}

/// Plays `requests` of them, `gap_ms` between two, one in [`ONE_IN`] broken; returns how many were.
///
/// # Errors
/// The first that is not as it must be.
///
/// # Panics
/// When the server cannot be started, or the run fails.
pub fn mid_stream(requests: usize, gap_ms: usize, driver: DriverKind) -> Result<usize, String> {
    let whole = Arc::new(Answer::new(TOKENS));
    let said = Arc::clone(&whole);
    let server = Scripted::start(move |_, mut stream| {
        while let Some(bytes) = request(&mut stream) {
            let Some(i) = number(&bytes) else { return };
            if i.is_multiple_of(ONE_IN) {
                answer(&mut stream, &said.first(kept(i)));
                // Closing then resets.
                let _ = set_socket_linger(&stream, Some(Duration::ZERO));
                return;
            }
            answer(&mut stream, &said.first(TOKENS));
        }
    });
    let mut scenario = Scenario::new(&mooncake(requests, gap_ms, 10, TOKENS));
    scenario.config.driver = Some(driver);
    let run = scenario.run_against(server.address);
    let mut broken = 0;
    for i in 0..requests {
        let (class, tokens, bytes) = if i.is_multiple_of(ONE_IN) {
            broken += 1;
            (Class::ResetMidAnswer, kept(i), whole.first(kept(i)).len() as u64)
        } else {
            (Class::Ok, TOKENS, whole.bytes())
        };
        let found = (run.requests.class(i), run.chunks.count(i), run.requests.response_bytes(i));
        if found != (Some(class), tokens, Some(bytes)) {
            return Err(format!("request {i}: {found:?}, not {class:?} {tokens} {bytes}"));
        }
    }
    whole_log(&run).map(|()| broken)
}

/// How a server ends that answers a request before it has read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Early {
    /// It closes, which resets: there are bytes that it has not read.
    Closed,
    /// It closes its own direction, and listens on.
    HalfClosed,
}

/// Plays `requests` that are answered with 413 while most of their body is still to come.
///
/// # Errors
/// The first that is not as it must be.
///
/// # Panics
/// When the server cannot be started, or the run fails.
pub fn early(requests: usize, how: Early, driver: DriverKind) -> Result<(), String> {
    let server = Scripted::start(move |_, mut stream| refuse(&mut stream, how));
    // All of the same block, so that their text is rendered once.
    let row = |row: usize| {
        format!(
            "{{\"timestamp\":{},\"input_length\":{LONG_PROMPT},\"output_length\":1,\
             \"hash_ids\":[1]}}\n",
            row * 2
        )
    };
    let mut scenario = Scenario::new(&(0..requests).map(row).collect::<String>());
    scenario.config.driver = Some(driver);
    scenario.config.trace_options.block_tokens = u32::try_from(LONG_PROMPT).ok();
    scenario.config.limits.total_ns = i64::try_from(PATIENCE.as_nanos()).ok();
    let run = scenario.run_against(server.address);
    for i in 0..requests {
        let found = (run.requests.class(i), run.requests.status(i));
        if found != (Some(Class::Http4xx), Some(413)) {
            return Err(format!("request {i}: {found:?} ({how:?})"));
        }
    }
    whole_log(&run)
}

fn refuse(stream: &mut TcpStream, how: Early) {
    let _ = stream.set_read_timeout(Some(PATIENCE));
    if !matches!(stream.read(&mut [0; 1_000]), Ok(1..)) {
        return;
    }
    answer(stream, b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\n\r\nmuch");
    if how == Early::HalfClosed {
        let _ = stream.shutdown(Shutdown::Write);
        let mut rest = [0; 65_536];
        while matches!(stream.read(&mut rest), Ok(1..)) {}
    }
}

fn whole_log(run: &Run) -> Result<(), String> {
    match run.is_whole() && run.warnings.is_empty() {
        true => Ok(()),
        false => Err(format!("the log: {:?}", run.warnings)),
    }
}
