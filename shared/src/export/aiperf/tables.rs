//! AIPerf's tables: distributions, then single numbers; and the long table of slices.
//!
//! Numbers have two decimals and lines end with CR LF, as AIPerf writes them; metrics are in order
//! of their tags.

use std::io::{self, Write};

use csv::{Terminator, Writer, WriterBuilder};

use super::SliceEntries;
use super::figures::{COLUMNS, Entry};
use crate::run::Run;

/// Writes the summary.
pub(super) fn write_summary(entries: &[Entry], out: &mut dyn Write) -> io::Result<()> {
    let sorted = sorted(entries);
    let (tables, singles): (Vec<&Entry>, Vec<&Entry>) =
        sorted.into_iter().partition(|entry| entry.figures.has_percentiles());
    if !tables.is_empty() {
        let mut csv = writer(&mut *out);
        csv.write_record(std::iter::once("Metric").chain(COLUMNS))?;
        for entry in &tables {
            let cells = entry.figures.columns().map(cell);
            csv.write_record(std::iter::once(name(entry)).chain(cells))?;
        }
        csv.flush()?;
    }
    if !tables.is_empty() && !singles.is_empty() {
        out.write_all(b"\r\n")?;
    }
    if !singles.is_empty() {
        let mut csv = writer(&mut *out);
        csv.write_record(["Metric", "Value"])?;
        for entry in singles {
            csv.write_record([name(entry), cell(entry.figures.avg)])?;
        }
        csv.flush()?;
    }
    Ok(())
}

/// Writes the slices.
pub(super) fn write_slices(
    run: &Run,
    slices: &[SliceEntries],
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut csv = writer(out);
    csv.write_record(["Timeslice", "Start_NS", "End_NS", "Metric", "Unit", "Stat", "Value"])?;
    let zero = run.started_unix_ns();
    for (index, slice) in slices.iter().enumerate() {
        let [start, end] =
            [slice.start, slice.end].map(|time| zero.saturating_add_signed(time.0).to_string());
        for entry in sorted(&slice.entries) {
            for (stat, value) in COLUMNS.into_iter().zip(entry.figures.columns()) {
                if value.is_some() {
                    let unit = entry.figures.unit;
                    let (index, value) = (index.to_string(), cell(value));
                    csv.write_record([
                        index.as_str(),
                        &start,
                        &end,
                        entry.header,
                        unit,
                        stat,
                        &value,
                    ])?;
                }
            }
        }
    }
    csv.flush()
}

fn sorted(entries: &[Entry]) -> Vec<&Entry> {
    let mut sorted: Vec<&Entry> = entries.iter().collect();
    sorted.sort_by_key(|entry| entry.tag);
    sorted
}

/// A metric's name with its unit, which AIPerf leaves out where it counts things.
fn name(entry: &Entry) -> String {
    match entry.figures.unit {
        "count" | "requests" => entry.header.to_owned(),
        unit => format!("{} ({unit})", entry.header),
    }
}

fn cell(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{value:.2}"))
}

fn writer<W: Write>(out: W) -> Writer<W> {
    WriterBuilder::new().terminator(Terminator::CRLF).from_writer(out)
}
