//! Cases of group E: blocks, the text behind them, and sessions.

use std::path::Path;

use serde_json::Value;

use crate::case::{Case, MILLI, each_planned, refused};
use crate::found::Findings;
use crate::product::{Written, onbeat, plan, planned, replay, text};
use crate::server::{NO_PYTHON, Odd, Recorder};

/// Tokens of a block of Mooncake's.
const BLOCK: usize = 512;

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// E01: ids cover the length, the last one in part; ids that cannot fit are refused, or cut off.
pub(crate) fn lengths_agree(case: &Case, found: &mut Findings) {
    let good = planned(&case.file("good.jsonl"), &[], found);
    // The same ids with three whole blocks: 512 + 512 + 1 words are the start of them.
    let whole = "{\"timestamp\":0,\"input_length\":1536,\"output_length\":5,\"hash_ids\":[1,2,3]}";
    let whole = planned(&Written::new("whole.jsonl", whole).path, &[], found);
    let (part, whole) = (words(good.rows[0].chat_text()), words(whole.rows[0].chat_text()));
    found.same("words", &(2 * BLOCK + 1), &part.len());
    found.holds("the start of the blocks' texts", whole.starts_with(&part), "another text");
    let bad = case.file("bad.jsonl");
    let line = format!("line {}: field \"hash_ids\"", case.number("line"));
    let numbers = "found 2 ids of 512 tokens each, but input_length is 20";
    refused(&bad, &[], &[&line, numbers], found);
    let lenient = planned(&bad, &["--lenient"], found);
    found.same("words of the lenient reading", &20, &words(lenient.rows[0].chat_text()).len());
    found.says("the lenient reading", &lenient.told.err, &["line 1", "cut off"]);
}

/// E03: a block size that is not the file's is noticed.
pub(crate) fn wrong_block_size(case: &Case, found: &mut Findings) {
    let plan = planned(&case.file("mooncake.jsonl"), &["--isl-block-size", "64"], found);
    let words = ["ids cover 7x fewer tokens than input_length in 100% of rows"];
    found.says("the warning", &plan.told.err, &words);
}

/// E04: the same id is the same text: in every row, run, process and number of threads.
pub(crate) fn same_text(case: &Case, found: &mut Findings) {
    let trace = case.file("same.jsonl");
    let (first, again) = (planned(&trace, &[], found), planned(&trace, &[], found));
    found.same("a second plan", &first.told.out, &again.told.out);
    let mut planned: Vec<String> = first.rows.iter().map(|row| row.body().to_string()).collect();
    planned.sort_unstable();
    for threads in ["1", "8"] {
        let server = Recorder::start();
        let options = ["--render", "all", "--render-threads", threads];
        let replayed = replay(&trace, &server.url(), &options);
        found.same("exit code", &Some(0), &replayed.told.code);
        let mut sent: Vec<String> = server.seen().into_iter().map(|seen| seen.body).collect();
        sent.sort_unstable();
        found.same(format!("bodies on the wire with {threads} threads"), &planned, &sent);
    }
    let texts: Vec<_> = first.rows.iter().map(|row| words(row.chat_text())).collect();
    let shared = usize::try_from(case.number("shared_prefix_tokens")).expect("a count");
    found.same("the block of the third row", &texts[2], &texts[0][..shared].to_vec());
    found.same("the shared prefix", &texts[0][..shared], &texts[1][..shared]);
    let differ = texts[0][shared..] != texts[1][shared..];
    found.holds("different texts of ids 8 and 9", differ, "the same");
    found.holds("different texts of ids 7 and 8", texts[0][..shared] != texts[0][shared..], "none");
}

/// E05: what a cache can reuse is a common prefix; the overlap of sets has another name.
pub(crate) fn prefix_hits(case: &Case, found: &mut Findings) {
    let trace = case.file("prefix.jsonl");
    let told = onbeat(&["inspect", text(&trace), "--format", "json"]);
    let json: Value = serde_json::from_str(&told.out).expect("an inspection is JSON");
    for (expected, key) in
        [("prefix_hit_blocks", "ideal_hit_rate"), ("set_hit_blocks", "ideal_set_overlap_rate")]
    {
        // Both rows have four blocks.
        let share = case.number(expected) as f64 / 8.0;
        found.same(key, &Some(share), &json["cache"][key].as_f64());
    }
    let told = onbeat(&["inspect", text(&trace)]);
    let words = ["ideal hit rate 0.0 % of tokens (whole prefixes", "37.5 % as a set of blocks"];
    found.says("for a person", &told.out, &words);
}

/// E08: rows whose parent is not in the file are roots at their own times, and counted. (With the
/// file's one true root that is three sessions, as the expectation says; its words say two.)
pub(crate) fn orphans(case: &Case, found: &mut Findings) {
    for plan in each_planned(case, &[], found) {
        let due: Vec<_> = [0, 500, 1_500].into_iter().map(|ms| Some(ms * MILLI)).collect();
        found.same("due times", &due, &plan.due_ns());
        let alone = plan.rows.iter().all(|row| row.turn == 0 && row.value["after"].is_null());
        found.holds("every row to wait for none", alone, "one that waits");
        found.says("the count", &plan.told.err, &["orphans: 2 (lines 1, 2)"]);
    }
}

/// E13: a server that refuses the hints is quoted with the option that keeps them out.
pub(crate) fn refused_hints(case: &Case, found: &mut Findings) {
    let script = std::fs::read_to_string(case.file("strict.srv")).expect("the script can be read");
    let Some(server) = Odd::play(&case.cases, &script) else { return found.skip(NO_PYTHON) };
    let hinted = hinted_trace(&case.cases);
    let replayed = replay(&hinted, &server.url(), &[]);
    let run = replayed.log();
    let statuses: Vec<_> = (0..run.plan.len()).map(|i| run.requests.status(i)).collect();
    let status = case.expect["outcome"].as_str().and_then(|outcome| outcome.strip_prefix("http_"));
    let status = status.and_then(|status| status.parse().ok());
    found.same("statuses", &vec![Some(status.expect("an outcome is a status")); 3], &statuses);
    found.same("exit code", &Some(3), &replayed.told.code);
    let words = ["100.0 %", "HTTP 400", "hash_ids", "--omit-kv-hints"];
    found.says("the summary", &replayed.told.out, &words);
    let has_ids = |options: &[&str]| {
        let plan = plan(&hinted, options);
        plan.rows.iter().filter(|row| row.body().get("hash_ids").is_some()).count()
    };
    found.same("bodies with ids", &3, &has_ids(&[]));
    found.same("bodies with ids when they are left out", &0, &has_ids(&["--omit-kv-hints"]));
}

/// A trace of three rows with ids: case D04's.
fn hinted_trace(cases: &Path) -> std::path::PathBuf {
    let folders = std::fs::read_dir(cases).expect("the cases can be listed");
    folders
        .filter_map(|entry| Some(entry.ok()?.path().join("list.parquet")))
        .find(|file| file.is_file())
        .expect("case D04 has a list.parquet")
}
