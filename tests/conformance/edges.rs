//! Traces at the edges of AIPerf's loaders: where it gives up, where its rules show.
//!
//! A table of what we make of each. Where that differs from AIPerf 0.13 the row says how and why;
//! the rules are those of the formats' own pages.

use std::path::Path;

use crate::Item;
use crate::case::refused;
use crate::found::{Findings, outcome};
use crate::oracle::traces;
use crate::product::{name, planned};

/// A planned request: row, session, turn, due in microseconds.
type Request = (u64, &'static str, u64, i64);

/// What must come of a trace.
enum Right {
    /// It is refused with these words, as AIPerf refuses it.
    Refused(&'static [&'static str]),
    /// These requests, and these words.
    Planned(&'static [Request], &'static [&'static str]),
}
use Right::{Planned, Refused};

#[rustfmt::skip]
const EDGES: &[(&str, &[&str], Right)] = &[
    // AIPerf takes the file, later gives up on the second size of id 2. An id seen at two sizes
    // shares its prefix, so nothing is in the way: real traces have such rows.
    ("bailian_conflict.jsonl", &[], Planned(&[(1, "1", 0, 0), (2, "2", 0, 100_000)], &[])),
    // As AIPerf: the walk from the first row ends where it began, and a row may be its own parent.
    ("bailian_cycle.jsonl", &[], Planned(
        &[(1, "1", 0, 0), (2, "1", 1, 100_000), (3, "3", 0, 200_000)],
        &["cycles: 3 (lines 1, 2, 3)"])),
    ("bailian_overshoot.jsonl", &[],
        Refused(&["line 1: field \"hash_ids\": found 2 ids of 16 tokens each, but input_length is 16"])),
    // AIPerf gives up on an answer of no token. It is a recorded row; one token is asked for.
    ("bailian_zero.jsonl", &[], Planned(&[(1, "1", 0, 0)],
        &["line 1: output_length is 0; one token is asked for", "input_length is 0"])),
    // AIPerf wants whole milliseconds. No time is cut to them here.
    ("edge_floatts.parquet", &[], Planned(
        &[(1, "session_000000", 0, 0), (2, "session_000001", 0, 10_500)], &[])),
    ("edge_negout.parquet", &[], Refused(&["row 2: field \"output_tokens\": found -1"])),
    // Names count rows in file order, sending is by time.
    ("edge_nosess.parquet", &[], Planned(
        &[(2, "session_000001", 0, 0), (3, "session_000002", 0, 100_000),
            (1, "session_000000", 0, 200_000)], &[])),
    ("edge_nullout.parquet", &[], Refused(&["row 2: field \"output_tokens\": found null"])),
    ("edge_nullprompt.parquet", &[], Refused(&["row 2: field \"prompt\": found null"])),
    ("edge_nullts.parquet", &[], Refused(&["row 2: field \"timestamp_start_unix_ms\": found null"])),
    // The page's rule: the column whose values repeat. 0.13 takes the first column there is.
    ("edge_poorman.parquet", &[], Planned(
        &[(1, "7", 0, 0), (2, "8", 0, 50_000), (3, "7", 1, 400_000), (4, "8", 1, 450_000)], &[])),
    ("edge_poorman.parquet", &["--session-key", "provided"], Planned(
        &[(1, "u1", 0, 0), (2, "u2", 0, 50_000), (3, "u3", 0, 400_000), (4, "u4", 0, 450_000)],
        &[])),
];

/// A check for every such trace there is, and a failure for one that is not known.
pub(crate) fn items(folder: &Path) -> Vec<Item> {
    let is_edge = |name: &str| name.starts_with("edge_") || name.starts_with("bailian_");
    let files = traces(folder).into_iter().filter(|file| is_edge(&name(file)));
    files
        .map(|file| Item {
            name: format!("aiperf:{}", name(&file)),
            check: Box::new(move || outcome(|found| check(&file, found))),
        })
        .collect()
}

fn check(file: &Path, found: &mut Findings) {
    let mut known = EDGES.iter().filter(|(known, ..)| *known == name(file)).peekable();
    if known.peek().is_none() {
        found.wrong("a trace that no check knows");
    }
    for (_, options, right) in known {
        match right {
            Refused(words) => refused(file, options, words, found),
            Planned(requests, words) => {
                let plan = planned(file, options, found);
                let ours: Vec<(u64, &str, u64, i64)> = plan
                    .rows
                    .iter()
                    .map(|row| {
                        let due_us = row.due_ns.unwrap_or(-1_000) / 1_000;
                        (row.row, row.session.as_str(), row.turn, due_us)
                    })
                    .collect();
                found.same(format!("requests with {options:?}"), &requests.to_vec(), &ours);
                found.says("what is told", &plan.told.err, words);
                if name(file) == "bailian_conflict.jsonl" && plan.rows.len() == 2 {
                    let (short, long) = (plan.rows[0].chat_text(), plan.rows[1].chat_text());
                    found.holds("a shared prefix", long.starts_with(short), "another text");
                }
            }
        }
    }
}
