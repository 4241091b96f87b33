//! The one table of cases: what is run, what must come out, and the check that holds them together.
//!
//! The words are our reading of the manifest's, precise enough to be judged by a program. Checks
//! that a case shares with others are in `case` and `wire`, those of its own in the file of its
//! group.

use std::path::Path;

use onbeat_shared::log::Class;
use serde_json::Value;

use crate::case::{Case, each_alike, each_planned, each_refused};
use crate::found::{Findings, Outcome, outcome};
use crate::wire::{Said, scripts};
use crate::{
    Item, agents, blocks, columns, control, figures, lines, network, open_loop, streams, times,
};

/// The list of all cases.
pub(crate) const MANIFEST: &str = "cases/manifest-open.json";
/// The groups that are walked, by the first letter of their cases.
const GROUPS: [char; 8] = ['A', 'C', 'D', 'E', 'F', 'G', 'H', 'I'];
/// Checks that take seconds: they are started first.
pub(crate) const SLOW: &[&str] = &[
    "I03",
    "G27",
    "F15",
    "F06",
    "F17",
    "A20",
    "A09",
    "kvct/replay/D_advance",
    "kvct/replay/B_limits",
    "A25",
    "C13",
    "A24",
    "A18",
];

/// How a case is checked.
enum Check {
    /// Each file is planned with these options and the plan is as expected.
    Plan(&'static [&'static str]),
    /// And so that every file gives the same requests.
    Alike(&'static [&'static str]),
    /// Each file is refused with these words, and nothing is sent.
    Refused(&'static [(&'static str, &'static [&'static str])]),
    /// Each script is played to both drivers and ends in this class, with these words.
    Scripts(&'static [Said]),
    /// By a function of its own.
    Own(fn(&Case, &mut Findings)),
}
use Check::{Alike, Own, Plan, Refused, Scripts};

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
    Known("F01", "play", "both tokens; the first when its last byte came", Own(streams::byte_by_byte)),
    Known("F03", "play", "every event is read", Scripts(&[("f03", Class::Ok, "")])),
    Known("F05", "play", "every event is read, and the end", Scripts(&[("f05", Class::Ok, "")])),
    Known("F06", "play", "comments are no tokens", Scripts(&[("f06", Class::Ok, "")])),
    Known("F08", "play both", "fields that mean nothing here are passed over; an error is quoted",
        Scripts(&[("f08", Class::Ok, ""), ("f08err", Class::ErrorEvent, "overloaded")])),
    Known("F09", "play", "complete by its finish reason", Own(streams::without_done)),
    Known("F11", "play", "failed with the server's words, no token", Own(streams::error_first)),
    Known("F14", "play", "complete, not streamed, no time to first token", Own(streams::not_streamed)),
    Known("F15", "play", "the role is no token", Scripts(&[("f15", Class::Ok, "")])),
    Known("F16", "play", "empty events are no tokens", Scripts(&[("f16", Class::Ok, "")])),
    Known("F17", "play both", "a first token of any kind, and a first one of text",
        Scripts(&[("f17a", Class::Ok, ""), ("f17b", Class::Ok, "")])),
    Known("F19", "play", "usage without a choice counts", Scripts(&[("f19", Class::Ok, "")])),
    Known("F21", "play", "gaps of events and of tokens are two", Own(streams::several_tokens)),
    Known("F24", "play", "one event, its text whole", Scripts(&[("f24", Class::Ok, "")])),
    Known("F27", "play three on one connection", "each whole, what is behind is flagged",
        Own(streams::behind_done)),
    Known("F28", "play", "the text of the first choice alone", Own(streams::two_choices)),
    Known("F29", "play", "complete, and counted with what it lacks", Own(streams::too_short)),
    Known("F31", "play for both endpoints", "both tokens", Own(streams::completions)),
    Known("G01", "play three", "one connection", Scripts(&[("g01", Class::Ok, "")])),
    Known("G02", "play both", "read; the flood ends at its limit",
        Scripts(&[("g02", Class::Ok, ""), ("g02flood", Class::OverLimit, "chunk extensions")])),
    Known("G04", "play five each", "a connection each",
        Scripts(&[("g04a", Class::Ok, ""), ("g04b", Class::Ok, "")])),
    Known("G05", "play two", "both complete, over two connections", Own(network::stale)),
    Known("G07", "play", "interim answers are passed", Scripts(&[("g07", Class::Ok, "")])),
    Known("G09", "play one", "one attempt, the server's wish is quoted",
        Scripts(&[("g09", Class::Http429, "retry-after 2: slow down")])),
    Known("G10", "play each", "quoted, in part and without control characters",
        Own(network::odd_errors)),
    Known("G11", "play", "not followed", Own(network::redirect)),
    Known("G13", "play to localhost on either family", "complete, the address is recorded",
        Own(network::localhost)),
    Known("G14", "play to five URLs", "path and Host as they should be", Own(network::urls)),
    Known("G15", "play each; 2,000 requests to one", "named with first bytes; given up early",
        Own(network::other_protocols)),
    Known("G16", "200 held requests and 100 ports", "ours, counted, first in the summary",
        Own(network::no_ports)),
    Known("G18", "io_uring_setup made to fail", "one line, and epoll or a refusal",
        Own(network::no_uring)),
    Known("G20", "play", "truncated, with how much", Scripts(&[("g20", Class::TruncatedBody,
        "truncated: 60 of 200")])),
    Known("G22", "play", "read", Scripts(&[("g22", Class::Ok, "")])),
    Known("G24", "play", "two tokens kept, with their times", Own(network::reset)),
    Known("G26", "play with a limit", "a timeout by name, as old as its schedule says",
        Own(network::silent)),
    Known("G27", "play slow servers and one that never accepts", "each limit by its name",
        Own(network::slow)),
    Known("G28", "replay over TLS that is not said goodbye to", "complete, no connection used again",
        Own(network::no_goodbye)),
    Known("G31", "play three", "each complete and flagged, a connection each", Own(network::stray)),
    Known("H01", "play F15 with a pause", "one gap of 20 ms", Own(streams::first_gap)),
    Known("H02", "play F21", "every figure has its formula", Own(streams::several_tokens)),
    Known("H04", "percentiles of a list", "by linear interpolation", Own(figures::percentiles)),
    Known("H05", "percentiles at the edges", "by linear interpolation", Own(figures::percentiles)),
    Known("H06", "80 good, 10 short, 6 refused, 4 held", "80 of 96", Own(figures::goodput)),
    Known("H08", "50 good, 50 refused", "latency of 50", Own(figures::failures_apart)),
    Known("H10", "7 done, 3 held", "3 with ages and tokens", Own(figures::unfinished)),
    Known("H11", "one of 100 lags", "both rates", Own(figures::straggler)),
    Known("H12", "play each", "unknown, unknown, 0, 66.7 %", Own(figures::cached)),
    Known("H15", "10 of 10 and 0 of 990", "1 %", Own(figures::weighted)),
    Known("H16", "play F21", "who counted is told", Own(streams::several_tokens)),
    Known("H19", "replay, its last anchor moved by an hour", "told, and no time changes",
        Own(figures::wall_clock)),
    Known("H22", "replay with a hole, in slices", "no data, not zero", Own(figures::hole)),
    Known("I01", "SIGINT with requests in flight", "130, a whole log that says so",
        Own(control::interrupted)),
    Known("I03", "SIGKILL at 20 moments", "every log opens and lacks a second at most",
        Own(control::killed)),
    Known("I06", "a log on a full disk, and on /dev/full", "not zero, told, the rest reads",
        Own(control::disk_full)),
    Known("I08", "a key, verbose, a server that repeats it", "nowhere", Own(control::secret)),
    Known("I10", "every length of a log's start made huge", "refused or passed over at once",
        Own(control::lying_lengths)),
    Known("I12", "other versions, other files, nothing, a folder", "told by name",
        Own(control::no_logs)),
    Known("I14", "output into files, a terminal of 40 columns", "plain lines",
        Own(control::progress)),
    Known("I16", "a log that is there, a link, a folder that may not be written",
        "refused before anything is sent", Own(control::outputs)),
    Known("I17", "runs of every kind", "their documented codes", Own(control::codes)),
    Known("I18", "a server that goes, and one that comes back", "each end counted; given up if told so",
        Own(control::storm)),
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
        Scripts(said) => scripts(case, said, found),
        Own(own) => own(case, found),
    });
    match found {
        Outcome::Failed(lines) => {
            Outcome::Failed(lines.iter().map(|line| format!("({run}: {out}) {line}")).collect())
        }
        other => other,
    }
}
