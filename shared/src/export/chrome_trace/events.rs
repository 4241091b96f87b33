//! Trace events as text: one JSON array, an event a line, written as they come.
//!
//! Knows the format and nothing of runs: times become microseconds with three digits, names are
//! escaped as JSON, tracks get their numbers here. Slices are written as begin and end, never as
//! one event with a length: readers round times, and a begin rounds as an end does, so that slices
//! that touch still touch.

use std::fmt;
use std::io::{self, Write};

use serde::Serialize;

/// A track: a thread of a process, as the format has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Track {
    process: u32,
    thread: u32,
}

/// Writes events.
pub(super) struct Events<W: Write> {
    out: io::BufWriter<W>,
    /// Subtracted from every time, so that none is below zero.
    origin: i64,
    processes: u32,
    threads: u32,
    /// Whether an event was written.
    any: bool,
}

impl<W: Write> Events<W> {
    /// Begins the array. The earliest time of the events is `origin`.
    pub(super) fn begin(out: W, origin: i64) -> io::Result<Self> {
        let mut out = io::BufWriter::with_capacity(1 << 16, out);
        out.write_all(b"[")?;
        // Some readers take threads of one number for one, whatever their process.
        Ok(Self { out, origin, processes: 0, threads: 1_000_000, any: false })
    }

    /// A group of tracks, below those before it.
    pub(super) fn process(&mut self, name: &str) -> io::Result<u32> {
        self.processes += 1;
        let (pid, name) = (self.processes, Json(&name));
        self.event(format_args!(
            r#""ph":"M","pid":{pid},"name":"process_name","args":{{"name":{name}}}"#
        ))?;
        self.event(format_args!(
            r#""ph":"M","pid":{pid},"name":"process_sort_index","args":{{"sort_index":{pid}}}"#
        ))?;
        Ok(pid)
    }

    /// A track of a process, below those before it.
    pub(super) fn track(&mut self, process: u32, name: &str) -> io::Result<Track> {
        self.threads += 1;
        let (track, name) = (Track { process, thread: self.threads }, Json(&name));
        self.event(format_args!(
            r#""ph":"M",{track},"name":"thread_name","args":{{"name":{name}}}"#
        ))?;
        let place = track.thread;
        self.event(format_args!(
            r#""ph":"M",{track},"name":"thread_sort_index","args":{{"sort_index":{place}}}"#
        ))?;
        Ok(track)
    }

    /// A slice begins; it ends with the next [`Self::end`] that is not another slice's.
    pub(super) fn start(
        &mut self,
        track: Track,
        time: i64,
        (category, name): (&str, &str),
        facts: &impl Serialize,
    ) -> io::Result<()> {
        let (at, name, facts) = (self.at(time), Json(&name), Json(facts));
        self.event(format_args!(
            r#""ph":"B","ts":{at},{track},"cat":"{category}","name":{name},"args":{facts}"#
        ))
    }

    /// The innermost slice of a track that has begun ends.
    pub(super) fn end(&mut self, track: Track, time: i64) -> io::Result<()> {
        let at = self.at(time);
        self.event(format_args!(r#""ph":"E","ts":{at},{track}"#))
    }

    /// Something without length.
    pub(super) fn instant(
        &mut self,
        track: Track,
        time: i64,
        (category, name): (&str, &str),
        facts: &impl Serialize,
    ) -> io::Result<()> {
        let (at, name, facts) = (self.at(time), Json(&name), Json(facts));
        self.event(format_args!(
            r#""ph":"i","s":"t","ts":{at},{track},"cat":"{category}","name":{name},"args":{facts}"#
        ))
    }

    /// A process's counter has a value from now on.
    pub(super) fn counter(
        &mut self,
        process: u32,
        time: i64,
        name: &str,
        value: f64,
    ) -> io::Result<()> {
        let (at, name) = (self.at(time), Json(&name));
        self.event(format_args!(
            r#""ph":"C","ts":{at},"pid":{process},"name":{name},"args":{{"value":{value}}}"#
        ))
    }

    /// Ends the array.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.out.write_all(b"\n]\n")?;
        self.out.flush()
    }

    fn event(&mut self, fields: fmt::Arguments<'_>) -> io::Result<()> {
        let before: &[u8] = if self.any { b",\n{" } else { b"\n{" };
        self.any = true;
        self.out.write_all(before)?;
        self.out.write_fmt(fields)?;
        self.out.write_all(b"}")
    }

    fn at(&self, time: i64) -> Micros {
        Micros(time.saturating_sub(self.origin).max(0))
    }
}

/// Where an event is, as its fields.
impl fmt::Display for Track {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, r#""pid":{},"tid":{}"#, self.process, self.thread)
    }
}

/// Nanoseconds as microseconds, exactly.
struct Micros(i64);

impl fmt::Display for Micros {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{:03}", self.0 / 1_000, self.0 % 1_000)
    }
}

/// A value as JSON, within a text.
struct Json<'a, T>(&'a T);

impl<T: Serialize> fmt::Display for Json<'_, T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = serde_json::to_string(self.0).map_err(|_unwritable| fmt::Error)?;
        out.write_str(&text)
    }
}
