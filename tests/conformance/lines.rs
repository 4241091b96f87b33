//! Cases of group C: JSON Lines as people and programs really write them.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::case::{Case, MILLI, each_planned, refused};
use crate::found::Findings;
use crate::product::{Written, planned, replay, replay_weighed};
use crate::server::{NO_PYTHON, Recorder};

/// C02: line ends and blank lines are no rows, and lines are counted as an editor does.
pub(crate) fn line_ends(case: &Case, found: &mut Findings) {
    let plans = each_planned(case, &[], found);
    let rows: Vec<u64> = plans[0].rows.iter().map(|row| row.row).collect();
    found.same("lines", &vec![2, 4], &rows);
    let text = std::fs::read_to_string(case.file("crlf.jsonl")).expect("the case can be read");
    let broken = text.replace("\"input_length\": 200", "\"input_length\": -1");
    found.holds("a second record to break", broken != text, "another one");
    let broken = Written::new("broken.jsonl", broken);
    refused(&broken.path, &[], &["line 4: field \"input_length\": found -1"], found);
}

/// C07: of two values the last counts, and it is told.
pub(crate) fn duplicate_key(case: &Case, found: &mut Findings) {
    let plan = planned(&case.file("dup.jsonl"), &[], found);
    found.same("due times", &vec![Some(0), Some(9_000 * MILLI)], &plan.due_ns());
    let words = ["line 2: the key \"timestamp\" appears twice; the last counts"];
    found.says("the warning", &plan.told.err, &words);
}

/// C08: what a row has beside the format's fields is not sent.
pub(crate) fn extra_fields(case: &Case, found: &mut Findings) {
    const KEYS: [&str; 5] =
        ["messages", "model", "stream", "max_completion_tokens", "stream_options"];
    for row in each_planned(case, &[], found).iter().flat_map(|plan| &plan.rows) {
        let body = row.body().as_object().expect("a body is an object");
        let keys: Vec<&str> = body.keys().map(String::as_str).collect();
        found.same(format!("keys of row {}'s body", row.row), &KEYS.to_vec(), &keys);
    }
}

/// C09: texts arrive as they are; half a surrogate pair is no text.
pub(crate) fn literal_text(case: &Case, found: &mut Findings) {
    let file = case.file("text.jsonl");
    let line = format!("line {}: found an escape between", case.number("line"));
    refused(&file, &[], &[&line], found);
    let text = std::fs::read_to_string(&file).expect("the case can be read");
    let good: Vec<&str> = text.lines().take(2).collect();
    let trace = Written::new("good.jsonl", good.join("\n"));
    let server = Recorder::start();
    let replayed = replay(&trace.path, &server.url(), &[]);
    found.same("exit code", &Some(0), &replayed.told.code);
    let recorded = good.iter().map(|line| {
        let row: Value = serde_json::from_str(line).expect("a good row");
        row["text_input"].clone()
    });
    let mut recorded: Vec<String> = recorded.map(|text| text.to_string()).collect();
    let sent = server.seen().into_iter().map(|seen| seen.json()["messages"][0]["content"].clone());
    let mut sent: Vec<String> = sent.map(|text| text.to_string()).collect();
    recorded.sort_unstable();
    sent.sort_unstable();
    found.same("texts on the wire", &recorded, &sent);
}

/// C13: peak memory is bounded by the trace's own size and the stated budget, not by the text that
/// is made of it. The whole two million rows in a build for speed; a twentieth in one for tests.
pub(crate) fn memory(case: &Case, found: &mut Findings) {
    const ALL: u64 = 2_000_000;
    let (rows, options, cap_kib) = if cfg!(debug_assertions) {
        (ALL / 20, ["1", "192MiB"], 192 << 10)
    } else {
        (ALL, ["10", "1GiB"], 1 << 20)
    };
    let mut child = match Command::new("python3")
        .arg(case.file("gen.py"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
    {
        Ok(child) => child,
        Err(_) => return found.skip(NO_PYTHON),
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("huge.jsonl");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path).expect("writable"));
    let mut generated = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = Vec::new();
    for _ in 0..rows {
        line.clear();
        generated.read_until(b'\n', &mut line).expect("it writes");
        file.write_all(&line).expect("there is room");
    }
    file.flush().expect("there is room");
    let _ = child.kill();
    let _ = child.wait();
    let server = Recorder::start();
    let [duration, budget] = options;
    let options =
        ["--benchmark-duration", duration, "--render", "ahead", "--render-budget", budget];
    let (replayed, peak_kib) = replay_weighed(&path, &server.url(), &options);
    found.same("exit code", &Some(0), &replayed.told.code);
    found.says("what is said before the run", &replayed.told.err, &["MB of them ahead"]);
    let within = peak_kib.is_some_and(|peak| peak <= cap_kib);
    let words = format!("{peak_kib:?} KiB for {rows} rows");
    found.holds(format!("at most {cap_kib} KiB of peak memory"), within, words);
}
