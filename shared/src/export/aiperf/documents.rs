//! AIPerf's JSON files: the summary with what was run, and the slices.

use std::collections::BTreeMap;
use std::io::{self, Write};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::{Value, json};

use super::figures::Entry;
use super::records::{Error, error};
use super::values::{end, start};
use super::{Export, SliceEntries};
use crate::run::{Run, State};
use crate::units::RunNanos;

/// The version of AIPerf's summary that is written.
const SCHEMA_VERSION: &str = "1.4";
/// The version of AIPerf whose files these are like, and who wrote them.
const WRITER: &str = concat!("0.13.0 (format; written by onbeat ", env!("CARGO_PKG_VERSION"), ")");

/// What the JSON files say.
pub(super) struct Document<'a> {
    export: &'a Export<'a>,
    input_config: Value,
}

impl<'a> Document<'a> {
    pub(super) fn new(export: &'a Export<'a>) -> Self {
        Self { export, input_config: input_config(export) }
    }

    pub(super) fn write_summary(&self, out: &mut dyn Write) -> io::Result<()> {
        write_pretty(&Summary(self), out)
    }

    pub(super) fn write_slices(&self, out: &mut dyn Write) -> io::Result<()> {
        write_pretty(&Slices(self), out)
    }
}

struct Summary<'a>(&'a Document<'a>);
struct Slices<'a>(&'a Document<'a>);
struct OneSlice<'a>(&'a Run, &'a SliceEntries);

impl Serialize for Summary<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Document { export, input_config } = self.0;
        let run = export.run;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("schema_version", SCHEMA_VERSION)?;
        map.serialize_entry("aiperf_version", WRITER)?;
        map.serialize_entry("benchmark_id", &run.manifest.run_id)?;
        entries(&mut map, &export.summary)?;
        map.serialize_entry("input_config", input_config)?;
        let run_info = json!({
            "benchmark_id": run.manifest.run_id,
            "random_seed": run.manifest.seed,
            "trial": 0,
        });
        map.serialize_entry("run_info", &run_info)?;
        map.serialize_entry("was_cancelled", &(run.state == State::Interrupted))?;
        let torn = (!run.is_whole()).then_some("the run log has no footer or is damaged");
        map.serialize_entry("is_complete", &torn.is_none())?;
        if let Some(reason) = torn {
            map.serialize_entry("incomplete_reason", reason)?;
        }
        map.serialize_entry("error_summary", &error_summary(export))?;
        let all = || export.records.valid.iter().chain(&export.records.errors);
        let first = all().filter_map(|&i| start(run, i as usize)).min();
        let last = all().filter_map(|&i| end(run, i as usize)).max();
        for (key, time) in [("start_time", first), ("end_time", last)] {
            if let Some(time) = time.and_then(|time| date(run, time)) {
                map.serialize_entry(key, &time)?;
            }
        }
        map.end()
    }
}

impl Serialize for Slices<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Document { export, input_config } = self.0;
        let slices: Vec<_> =
            export.slices.iter().map(|slice| OneSlice(export.run, slice)).collect();
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("timeslices", &slices)?;
        map.serialize_entry("input_config", input_config)?;
        map.end()
    }
}

impl Serialize for OneSlice<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(run, slice) = self;
        let zero = run.started_unix_ns();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("start_ns", &zero.saturating_add_signed(slice.start.0))?;
        map.serialize_entry("end_ns", &zero.saturating_add_signed(slice.end.0))?;
        if !slice.complete {
            map.serialize_entry("is_complete", &false)?;
        }
        entries(&mut map, &slice.entries)?;
        map.end()
    }
}

fn entries<M: SerializeMap>(map: &mut M, entries: &[Entry]) -> Result<(), M::Error> {
    entries.iter().try_for_each(|entry| map.serialize_entry(entry.tag, &entry.figures))
}

fn write_pretty(document: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    let mut out = io::BufWriter::with_capacity(1 << 16, out);
    serde_json::to_writer_pretty(&mut out, document)?;
    out.flush()
}

/// What was asked for, in the shape of AIPerf's configuration: what both tools have.
fn input_config(export: &Export<'_>) -> Value {
    let manifest = &export.run.manifest;
    let chat = manifest.endpoint.ends_with("/chat/completions");
    let streaming = export.records.valid.iter().any(|&i| export.run.chunks.count(i as usize) > 0);
    let mut config = json!({
        "models": {"items": [{"name": manifest.model}]},
        "endpoint": {
            "urls": manifest.targets,
            "type": if chat { "chat" } else { "completions" },
            "streaming": streaming,
        },
        "datasets": [{
            "name": "main",
            "type": "file",
            "path": manifest.trace.name,
            "format": manifest.trace.format,
            "random_seed": manifest.seed,
        }],
        "phases": [{
            "name": "profiling",
            "kind": "profiling",
            "type": "fixed_schedule",
            "requests": export.run.plan.len(),
        }],
        "artifacts": {"dir": "."},
    });
    if let Some(length_ns) = export.slice_ns {
        let seconds = crate::metrics::steps::seconds((0, length_ns));
        config["artifacts"]["slice_duration"] = json!(seconds);
    }
    let slos: BTreeMap<&str, f64> = (export.goals.list().iter())
        .filter_map(|goal| Some((goal.kind.aiperf_tag()?, goal.limit)))
        .collect();
    if !slos.is_empty() {
        config["slos"] = json!(slos);
    }
    config
}

fn error_summary(export: &Export<'_>) -> Value {
    let mut counts: BTreeMap<Error, u64> = BTreeMap::new();
    for error in export.records.errors.iter().filter_map(|&i| error(export.run, i as usize)) {
        *counts.entry(error).or_insert(0) += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let rows = counts.into_iter();
    rows.map(|(error, count)| json!({"error_details": error, "count": count})).collect()
}

/// An instant as AIPerf writes it: a date without a zone, here in UTC, to the microsecond.
fn date(run: &Run, time: RunNanos) -> Option<String> {
    let unix = i128::from(run.started_unix_ns()) + i128::from(time.0);
    let zoned = Timestamp::from_nanosecond(unix).ok()?.to_zoned(TimeZone::UTC);
    Some(zoned.strftime("%Y-%m-%dT%H:%M:%S.%6f").to_string())
}
