//! Runs of kv-cache-tester itself, held against our account of the same requests: the blocks of the
//! working set at the end of its periods.
//!
//! Only runs without sub-agents are compared: the tool counts a sub-agent's blocks as its own,
//! while ours are the conversation's, as the ids say. Only periods in which no request was still
//! being made are: the tool touches a request's blocks before it makes its prompt, which took it up
//! to 14 s, and writes down when it sent it.

use std::path::Path;

use onbeat::policy::working_set::WorkingSet;
use onbeat::trace::{TraceOptions, read};
use onbeat_shared::trace::Trace;
use onbeat_shared::trace::agentic::Entry;
use onbeat_shared::trace::decimal::Decimal;
use onbeat_shared::units::RunNanos;

use crate::Item;
use crate::found::{Findings, outcome};

/// The tool's runs, and from which of their periods on they are compared.
const RUNS: [(&str, usize); 4] =
    [("A_basic", 4), ("A2_basic_again", 4), ("B_limits", 2), ("D_advance", 2)];
const FOLDER: &str = "oracle/kvct";
const TRACE: &str = "tr_small";
/// `--cache-max-age` of these runs: longer than any of them.
const MAX_AGE_NS: i64 = 600_000_000_000;

/// One check for each run that is there.
pub(crate) fn items(folder: &Path) -> Vec<Item> {
    let folder = folder.join(FOLDER);
    let there = |(run, _): &(&str, usize)| folder.join(run).is_dir() || skipped(run);
    let item = |(run, from): (&'static str, usize)| {
        let folder = folder.clone();
        Item {
            name: format!("kvct/run/{run}"),
            check: Box::new(move || outcome(|found| check(&folder, run, from, found))),
        }
    };
    RUNS.into_iter().filter(there).map(item).collect()
}

fn skipped(run: &str) -> bool {
    crate::say(&format!("skipped: conformance: there is no {FOLDER}/{run}"));
    false
}

fn check(folder: &Path, run: &str, from: usize, found: &mut Findings) {
    let trace = match read(&folder.join(TRACE), &TraceOptions::default()) {
        Ok(trace) => trace,
        Err(error) => return found.wrong(error),
    };
    let rows = |file: &str, names: &[&str]| table(&folder.join(run).join(file), names);
    let requests = rows("detailed_results.csv", &["trace_id", "request_idx", "request_start_time"]);
    let periods = rows("summary_trace_replay.csv", &["end_time", "working_set_blocks"]);
    let mut sent: Vec<(RunNanos, u32)> = requests
        .iter()
        .filter_map(|row| Some((time(&row[2])?, record(&trace, &row[0], row[1].parse().ok()?)?)))
        .collect();
    found.same("requests of the trace", &requests.len(), &sent.len());
    found.holds("periods to compare", periods.len() >= from, periods.len());
    sent.sort_unstable();
    let mut set = WorkingSet::new(&trace, 1, MAX_AGE_NS);
    let mut sent = sent.into_iter().peekable();
    for (period, row) in (1..).zip(&periods) {
        let Some(end) = time(&row[0]) else { return found.wrong("a period without an end") };
        while let Some((at, record)) = sent.next_if(|(at, _)| *at <= end) {
            set.touch(at, record, 0);
        }
        if period >= from {
            let blocks = set.tokens(end).to_string();
            found.same(format!("blocks at the end of period {period}"), &row[1], &blocks);
        }
    }
}

/// The record of the request in this place of a conversation.
fn record(trace: &Trace, id: &str, place: usize) -> Option<u32> {
    let agentic = trace.recorded.agentic.as_ref()?;
    let own = agentic.conversations.iter().find(|conversation| conversation.id == id)?;
    match own.entries.get(place)? {
        Entry::Request(record) => Some(*record),
        Entry::Group(_) => None,
    }
}

fn time(seconds: &str) -> Option<RunNanos> {
    Decimal::parse(seconds).and_then(|seconds| seconds.scaled(9)).ok().map(RunNanos)
}

/// These columns of a table of the tool; none of them, nor any before them, is ever quoted.
pub(crate) fn table(path: &Path, names: &[&str]) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let places: Vec<usize> =
        names.iter().filter_map(|name| head.iter().position(|own| own == name)).collect();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        places.iter().filter_map(|&place| cells.get(place).map(|&cell| cell.to_owned())).collect()
    };
    lines.map(row).filter(|row: &Vec<String>| row.len() == names.len()).collect()
}
