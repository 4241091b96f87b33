//! The one table of cases: what is run, what must come out, and the check that holds them together.
//!
//! The words are our reading of the manifest's, precise enough to be judged by a program. Checks
//! that a case shares with others are in `case`, those of its own in the file of its group. Groups
//! F to H are the wire's and the metrics' and are not walked here.

use std::path::Path;

use serde_json::Value;

use crate::case::{Case, each_alike, each_planned, each_refused};
use crate::found::{Findings, Outcome, outcome};
use crate::{Item, agents, blocks, columns, lines, open_loop, times};

/// The list of all cases.
pub(crate) const MANIFEST: &str = "cases/manifest-open.json";
/// The groups that are walked, by the first letter of their cases.
const GROUPS: [char; 4] = ['A', 'C', 'D', 'E'];
/// Checks that take seconds: they are started first.
pub(crate) const SLOW: &[&str] =
    &["A20", "A09", "kvct/replay/D_advance", "kvct/replay/B_limits", "A25", "C13", "A24", "A18"];

/// How a case is checked.
enum Check {
    /// Each file is planned with these options and the plan is as expected.
    Plan(&'static [&'static str]),
    /// And so that every file gives the same requests.
    Alike(&'static [&'static str]),
    /// Each file is refused with these words, and nothing is sent.
    Refused(&'static [(&'static str, &'static [&'static str])]),
    /// By a function of its own.
    Own(fn(&Case, &mut Findings)),
}
use Check::{Alike, Own, Plan, Refused};

/// A case that is known: its id, what is run, what must come out, how it is checked.
struct Known(&'static str, &'static str, &'static str, Check);

#[rustfmt::skip]
const KNOWN: &[Known] = &[
    Known("A01", "plan each file, format told and named", "0 and 1,386 ms", Own(times::units)),
    Known("A03", "plan", "the earliest row is zero; rows in time order", Plan(&[])),
    Known("A05", "plan and replay", "all at 0, sent in file order", Own(times::ties)),
    Known("A07", "plan, speed-up 10, gaps capped at 5 s", "the cap is of wall-clock time",
        Plan(&["--replay-speedup", "10", "--max-idle-gap-cap-seconds", "5"])),
    Known("A09", "replay, SIGINT in the hole", "the wait is told; 130; the first result is kept",
        Own(times::hole)),
    Known("A12", "plan and replay", "refused with line 1, nothing sent",
        Refused(&[
            ("nan.jsonl", &["line 1: field \"timestamp\": found NaN"]),
            ("inf.jsonl", &["line 1: field \"timestamp\": found Infinity"]),
            ("big.jsonl", &["line 1: field \"timestamp\": found 1e999"]),
        ])),
    Known("A13", "plan", "instants, whatever the zone's clock did", Plan(&[])),
    Known("A14", "plan each file", "both units exactly, and alike", Alike(&[])),
    Known("A15", "plan", "usable, with a warning that it looks like seconds", Own(times::unit_warning)),
    Known("A17", "plan, start 1000, end 2000", "both ends are in; the first is due at 0",
        Own(times::window)),
    Known("A18", "plan and replay, closed loop, server takes 100 ms",
        "a turn waits the recorded gap less the recorded duration, after the end before it",
        Own(times::think_time)),
    Known("A19", "plan, closed loop, speed-up 4, delays capped at 0.3 s",
        "gap and duration are divided, then the cap",
        Plan(&["--no-open-loop-replay", "--replay-speedup", "4",
            "--inter-turn-delay-cap-seconds", "0.3"])),
    Known("A20", "replay 100 requests/s, 200 answers withheld for 2 s",
        "sends go on; latency from due has the whole wait", Own(open_loop::stall)),
    Known("A22", "replay 100 requests/s for a second", "the first ten are no later than the rest",
        Own(open_loop::start)),
    Known("A24", "replay 1,000 requests in a second, no answer", "1,000 open requests at once",
        Own(open_loop::no_cap)),
    Known("A25", "replay 2,000 requests in 2 ms from one core",
        "exit 3; the first lines say client, rates and late share", Own(open_loop::saturated)),
    Known("A27", "replay small requests on a warm connection",
        "each arrives in one read; no 40 ms wait", Own(open_loop::one_packet)),
    Known("C01", "plan", "as without the mark", Plan(&[])),
    Known("C02", "plan, and with a broken second record", "2 requests; the error says line 4",
        Own(lines::line_ends)),
    Known("C04", "plan and replay", "refused with line 1 and what was found, nothing sent",
        Refused(&[
            ("comma.jsonl", &["found a comma after the object"]),
            ("array.json", &["found an array", "whole file"]),
        ])),
    Known("C05", "plan and replay", "refused with line 2, nothing sent",
        Refused(&[("cut.jsonl", &["an unexpected end"])])),
    Known("C07", "plan", "the last one counts and line 2 is told", Own(lines::duplicate_key)),
    Known("C08", "plan with bodies", "no key of the row's own in a body", Own(lines::extra_fields)),
    Known("C09", "plan and replay; replay the good rows",
        "refused with line 3; the good texts arrive as they are", Own(lines::literal_text)),
    Known("C13", "replay the start of a huge trace", "peak memory within the cap",
        Own(lines::memory)),
    Known("D01", "plan each file", "the same requests", Alike(&[])),
    Known("D02", "plan each file", "the same requests", Alike(&[])),
    Known("D03", "plan each file", "the same requests, times exact", Alike(&[])),
    Known("D04", "plan each file", "the same requests, ids as they are", Alike(&[])),
    Known("D06", "plan each file", "the same requests", Alike(&[])),
    Known("D07", "plan each file", "the same rows, the origin without statistics", Own(columns::pages)),
    Known("D08", "plan and replay", "refused with the column and its near name, nothing sent",
        Refused(&[
            ("missing.parquet", &["lacks output_tokens;", "timestamp_start_unix_ms, prompt, \
                input_tokens, output_tokens"]),
            ("cased.parquet", &["lacks prompt", "found Prompt"]),
        ])),
    Known("D11", "plan, outputs capped at 20", "floor 1, cap 20, minimum alike, in order",
        Plan(&["--max-osl", "20"])),
    Known("D13", "plan each file", "'7', '07' and '' differ; numbers group alike",
        Own(columns::session_ids)),
    Known("E01", "plan both, the bad one leniently too",
        "512 + 512 + 1 words; line 1 and the three numbers; cut and counted",
        Own(blocks::lengths_agree)),
    Known("E03", "plan with blocks of 64", "a warning with the factor and the share of rows",
        Own(blocks::wrong_block_size)),
    Known("E04", "plan twice, replay with 1 and 8 threads",
        "the same bytes; equal ids, equal text; others differ", Own(blocks::same_text)),
    Known("E05", "inspect", "no hit by prefix; the set figure is labelled", Own(blocks::prefix_hits)),
    Known("E08", "plan", "both orphans are roots at their own times, and counted",
        Own(blocks::orphans)),
    Known("E11", "inspect, plan and replay", "the agent starts after the request before its marker, \
        the parent goes on after the agent; the empty one is passed over", Own(agents::sub_agents)),
    Known("E12", "inspect, plan and replay", "no crash; counts match; nested agents wait for the \
        request before them", Own(agents::nested_agents)),
    Known("E13", "replay against the script, and with --omit-kv-hints",
        "all 400, the option is named; with it no such key", Own(blocks::refused_hints)),
];

/// A check for every case of the walked groups, and one for the table itself.
pub(crate) fn items(cases: &Path, manifest: &Path) -> Vec<Item> {
    let bytes = std::fs::read(manifest).expect("the manifest can be read");
    let entries: Vec<Value> = serde_json::from_slice(&bytes).expect("the manifest is a JSON list");
    let walked = |case: &Case| case.id.starts_with(GROUPS);
    let cases: Vec<Case> =
        entries.iter().map(|entry| Case::of(entry, cases)).filter(walked).collect();
    let ids: Vec<String> = cases.iter().map(|case| case.id.clone()).collect();
    let mut items = vec![Item {
        name: "table".to_owned(),
        check: Box::new(move || outcome(|found| is_complete(&ids, found))),
    }];
    items.extend(
        cases
            .into_iter()
            .map(|case| Item { name: case.id.clone(), check: Box::new(move || check(&case)) }),
    );
    items
}

/// The manifest and the table have the same cases, each once.
fn is_complete(ids: &[String], found: &mut Findings) {
    let mut known: Vec<&str> = KNOWN.iter().map(|known| known.0).collect();
    let mut ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    known.sort_unstable();
    ids.sort_unstable();
    found.same("the cases of the table and of the manifest", &ids, &known);
}

fn check(case: &Case) -> Outcome {
    let Some(Known(_, run, out, check)) = KNOWN.iter().find(|known| known.0 == case.id) else {
        return Outcome::Failed(vec!["a case that the table does not know".to_owned()]);
    };
    let found = outcome(|found| match check {
        Plan(options) => drop(each_planned(case, options, found)),
        Alike(options) => each_alike(case, options, found),
        Refused(words) => each_refused(case, words, found),
        Own(own) => own(case, found),
    });
    match found {
        Outcome::Failed(lines) => {
            Outcome::Failed(lines.iter().map(|line| format!("({run}: {out}) {line}")).collect())
        }
        other => other,
    }
}
