//! A run as AIPerf's result files, for the tools that read those.
//!
//! The files are those of `aiperf profile`, version 0.13: `profile_export.jsonl` (a line per
//! request), `profile_export_aiperf.json` and `.csv` (the summary) and, where slices are asked for,
//! the two `profile_export_aiperf_timeslices` files. Tags, units and shapes are AIPerf's; which of
//! our numbers is behind a tag is in `values`. As there, a request that succeeded is valid and
//! any other an error, cancelled ones (499) included; one that never had a connection is in no
//! slice, and one whose end is not in the log has no record. What we do not know is left out, never
//! 0, and so is what would mean something else:
//!
//! * `usage_…_tokens_diff_pct` and `usage_discrepancy_count` hold the server's counts against those
//!   of AIPerf's own tokenizer over the same texts. Nothing here counts texts: recorded lengths are
//!   what was wanted, and content events are no tokens.
//! * `http_req_blocked`, `…_dns_lookup`, `…_connecting`, `…_connection_overhead` and `…_total` are
//!   or hold parts of a request's latency, which readers take off it. Here names are looked up
//!   before the run and latency begins on an open connection; what a request waits for one is in
//!   `credit_to_start_latency`.
//! * `http_req_data_received`, `…_chunks_sent` and `…_chunks_received` count bytes and pieces of
//!   bodies. A log has an answer's bytes with its head, and no reads.
//! * `usage_prompt_cache_write_tokens`, `…_miss_tokens` and counts of audio, predictions and tools
//!   are in no log; power, images, audio, video, speculative decoding and times without the network
//!   are not measured.
//! * What AIPerf calls internal or experimental it does not write unasked either.

mod curves;
mod documents;
mod figures;
mod records;
mod summary;
mod tables;
mod values;

#[cfg(test)]
mod tests;

use std::io::{self, Write};

use curves::Curves;
use documents::Document;
use figures::Entry;
use summary::Records;

use crate::metrics::selection::Selection;
use crate::metrics::slices::slices;
use crate::metrics::slo::Goals;
use crate::run::Run;
use crate::units::RunNanos;

/// A run, ready to be written as AIPerf's files.
#[derive(Debug)]
pub struct Export<'a> {
    run: &'a Run,
    goals: &'a Goals,
    records: Records<'a>,
    summary: Vec<Entry>,
    slices: Vec<SliceEntries>,
    slice_ns: Option<i64>,
}

/// One of AIPerf's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A line per request.
    Records,
    /// The summary as JSON.
    SummaryJson,
    /// The summary as two tables.
    SummaryCsv,
    /// The slices as JSON.
    SlicesJson,
    /// The slices as one long table.
    SlicesCsv,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Records, Self::SummaryJson, Self::SummaryCsv, Self::SlicesJson, Self::SlicesCsv];

    /// Its file's name.
    #[must_use]
    pub const fn file_name(self) -> &'static str {
        match self {
            Self::Records => "profile_export.jsonl",
            Self::SummaryJson => "profile_export_aiperf.json",
            Self::SummaryCsv => "profile_export_aiperf.csv",
            Self::SlicesJson => "profile_export_aiperf_timeslices.json",
            Self::SlicesCsv => "profile_export_aiperf_timeslices.csv",
        }
    }
}

/// A slice of time with its entries.
#[derive(Debug)]
struct SliceEntries {
    start: RunNanos,
    end: RunNanos,
    complete: bool,
    entries: Vec<Entry>,
}

impl<'a> Export<'a> {
    /// Computes everything the files show; `slice_ns` asks for slices of that length.
    #[must_use]
    pub fn new(run: &'a Run, goals: &'a Goals, slice_ns: Option<i64>) -> Self {
        Self::of(&Selection::new(run, None), goals, slice_ns)
    }

    /// The same of some requests: the others are in no file. Slices are those of the whole run.
    #[must_use]
    pub fn of(chosen: &Selection<'a>, goals: &'a Goals, slice_ns: Option<i64>) -> Self {
        let run = chosen.run();
        let all = chosen.requests().filter_map(|i| u32::try_from(i).ok());
        let records = Records::among(run, goals, all);
        let curves = Curves::of(run, &records.valid, &records.errors);
        let summary = records.summary(&curves);
        let mut cut = Vec::new();
        for slice in slice_ns.map(|length| slices(run, length)).unwrap_or_default() {
            // AIPerf leaves out slices in which no request begins.
            if slice.requests.is_empty() {
                continue;
            }
            let own = slice.requests.iter().copied().filter(|&i| chosen.has(i as usize));
            let records = Records::among(run, goals, own);
            if records.valid.is_empty() && records.errors.is_empty() && !chosen.is_whole() {
                continue;
            }
            let entries = records.slice(&curves, slice.window());
            let (start, end, complete) = (slice.start, slice.end, slice.complete);
            cut.push(SliceEntries { start, end, complete, entries });
        }
        Self { run, goals, records, summary, slices: cut, slice_ns }
    }

    /// The files there are to write.
    #[must_use]
    pub fn parts(&self) -> Vec<Part> {
        let mut parts = vec![Part::Records, Part::SummaryJson, Part::SummaryCsv];
        if self.slice_ns.is_some() {
            parts.extend([Part::SlicesJson, Part::SlicesCsv]);
        }
        parts
    }

    /// Writes one of them.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write(&self, part: Part, out: &mut dyn Write) -> io::Result<()> {
        match part {
            Part::Records => {
                let mut all = [&self.records.valid[..], &self.records.errors[..]].concat();
                all.sort_unstable();
                records::write(self.run, self.goals, all.into_iter(), out)
            }
            Part::SummaryJson => Document::new(self).write_summary(out),
            Part::SummaryCsv => tables::write_summary(&self.summary, out),
            Part::SlicesJson => Document::new(self).write_slices(out),
            Part::SlicesCsv => tables::write_slices(self.run, &self.slices, out),
        }
    }
}
