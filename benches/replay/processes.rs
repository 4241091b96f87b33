//! The programs of this binary that run as processes of their own, and what they say to each other.
//!
//! `server` prints its address, serves, and writes what it saw; `floor` sends and prints what it
//! saw. Both take options as `--name value`, so that a line of a process list can be read.

use std::io::{Error, Result};
use std::net::{SocketAddr, TcpListener};
use std::str::FromStr;

use onbeat::replayer::affinity;
use onbeat::replayer::stall::Span;
use serde_json::{Value, json};

use super::{floor, server};

/// How long the server waits for a request before it gives up, in seconds.
const PATIENCE_S: i64 = 20;

/// Options of a process, as typed.
struct Options<'a>(&'a [String]);

impl Options<'_> {
    /// The value of `--name`, or `default`; without a default it must be there.
    fn get<T: FromStr>(&self, name: &str, default: Option<T>) -> Result<T> {
        let place = self.0.iter().position(|word| word.strip_prefix("--") == Some(name));
        let text = place.and_then(|place| self.0.get(place + 1));
        let wrong = || Error::other(format!("--{name} needs a value"));
        match text {
            Some(text) => text.parse().ok().ok_or_else(wrong),
            None => default.ok_or_else(wrong),
        }
    }
}

/// Prints its address, serves, then writes what it saw.
pub(crate) fn server(arguments: &[String]) -> Result<()> {
    let options = Options(arguments);
    let listener = TcpListener::bind(("127.0.0.1", options.get("port", Some(0))?))?;
    println!("{}", listener.local_addr()?);
    affinity::pin(options.get("cpu", None)?)?;
    let task = server::Task {
        expect: options.get("expect", None)?,
        chunks: options.get("chunks", Some(1))?,
        hold: options.get("hold", Some(0))?,
        events: options.get("events", Some(1))?,
        text: options.get("text", Some(true))?,
        pushes_per_s: options.get("pushes-per-s", Some(0.0))?,
        patience_ns: options.get("patience-s", Some(PATIENCE_S))? * 1_000_000_000,
    };
    server::write_seen(&server::serve(&listener, &task)?, &mut std::io::stdout().lock())
}

/// Sends, then prints what it saw.
pub(crate) fn floor(arguments: &[String]) -> Result<()> {
    let options = Options(arguments);
    let schedule: String = options.get("schedule", None)?;
    let due: Vec<i64> = std::fs::read_to_string(schedule)?
        .lines()
        .map(|line| line.parse().map_err(Error::other))
        .collect::<Result<_>>()?;
    affinity::pin(options.get("cpu", None)?)?;
    let task = floor::Task {
        address: options.get::<SocketAddr>("address", None)?,
        connections: options.get("connections", None)?,
        body_bytes: options.get("body-bytes", None)?,
        answer_bytes: options.get("answer-bytes", None)?,
    };
    println!("{}", floor_json(&floor::run(&task, &due)?));
    Ok(())
}

fn floor_json(floor: &floor::Floor) -> Value {
    let stalls: Vec<_> = floor.stalls.iter().map(|s| (s.start_ns, s.length_ns)).collect();
    json!({
        "zero_ns": floor.zero_ns,
        "sent_end_ns": floor.sent_end_ns,
        "end_ns": floor.end_ns,
        "sent_ns": floor.sent_ns,
        "stalls": stalls,
    })
}

/// The opposite of what [`floor`] prints.
pub(crate) fn read_floor(bytes: &[u8]) -> Result<floor::Floor> {
    let said: Value = serde_json::from_slice(bytes)?;
    let number = |key: &str| said[key].as_i64().ok_or_else(|| Error::other("no number"));
    let stalls: Vec<(i64, i64)> = serde_json::from_value(said["stalls"].clone())?;
    let span = |(start_ns, length_ns)| Span { start_ns, length_ns };
    Ok(floor::Floor {
        zero_ns: number("zero_ns")?,
        sent_end_ns: number("sent_end_ns")?,
        end_ns: number("end_ns")?,
        sent_ns: serde_json::from_value(said["sent_ns"].clone())?,
        stalls: stalls.into_iter().map(span).collect(),
    })
}
