//! Cases of group F that ask for more than the shared checks: flags, figures and words about a
//! stream that was odd.

use onbeat_shared::log::{Class, DoneFlags};
use onbeat_shared::metrics::{Report, ReportOptions, report};
use onbeat_shared::run::Run;

use crate::case::{Case, MILLI};
use crate::found::{Findings, flat};
use crate::server::NO_PYTHON;
use crate::wire::{Play, lone, play, said_to_the_first, script, scripts};

/// Plays the only script of a case to a trace.
fn played(case: &Case, trace: &str, options: &[&str], found: &mut Findings) -> Option<Play> {
    let played = play(&case.cases, &script(&case.files[0]), trace, options);
    if played.is_none() {
        found.skip(NO_PYTHON);
    }
    played
}

fn figures(run: &Run) -> Report {
    report(run, &ReportOptions::default())
}

/// Two turns of a session, which ask for so many tokens.
fn two_turns(output: u64) -> String {
    lone(2, 1, output).replace("\"session_id\":\"1\"", "\"session_id\":\"0\"")
}

/// F01: the first token's time is that of the byte that completes its event, not of the first one.
pub(crate) fn byte_by_byte(case: &Case, found: &mut Findings) {
    scripts(case, &[("f01", Class::Ok, "")], found);
    // With a pause inside the event, so that not everything can come in one read.
    let paused = script(&case.files[0]).replacen("chunk b'H'\n", "sleep 300\nchunk b'H'\n", 1);
    let Some(played) = play(&case.cases, &paused, &lone(1, 0, 2), &[]) else {
        return found.skip(NO_PYTHON);
    };
    let requests = &played.replayed.log().requests;
    let (first, token) = (requests.first_byte(0), requests.first_token(0));
    found.holds("a first token after the first byte", token > first, format!("{token:?}"));
}

/// F09: an answer without `[DONE]` is complete by its finish reason, and its flags say so.
pub(crate) fn without_done(case: &Case, found: &mut Findings) {
    scripts(case, &[("f09", Class::Ok, "")], found);
    let Some(played) = played(case, &lone(1, 0, 2), &[], found) else { return };
    let marked = played.replayed.log().requests.flags(0).has(DoneFlags::DONE_MARK);
    found.holds("no mark of [DONE]", !marked, "one");
}

/// F11: an error object behind a success status is quoted, and there is no first token.
pub(crate) fn error_first(case: &Case, found: &mut Findings) {
    scripts(case, &[("f11", Class::ErrorEvent, "engine stopped")], found);
    let Some(played) = played(case, &lone(1, 0, 2), &[], found) else { return };
    let figures = figures(played.replayed.log());
    found.same("times to first token", &None, &figures.latency.ttft_ms);
    found.same("tokens", &None, &figures.tokens.completion);
    found.same("successes", &0, &figures.outcomes.ok);
}

/// F14: an answer in one piece has a latency and usage, and no time to first token.
pub(crate) fn not_streamed(case: &Case, found: &mut Findings) {
    scripts(case, &[("f14", Class::Ok, "")], found);
    let Some(played) = played(case, &two_turns(2), &[], found) else { return };
    let figures = figures(played.replayed.log());
    found.same("times to first token", &None, &figures.latency.ttft_ms);
    found.same("gaps between tokens", &None, &figures.latency.itl_ms);
    found.same("latencies", &Some(2), &figures.latency.e2e_ms.map(|it| it.count));
    found.same("tokens", &Some(4), &figures.tokens.completion);
    found.same("text", "Hello", said_to_the_first(&played).as_str());
    let words = ["Every answer came whole, not streamed"];
    found.says("the summary", &played.replayed.told.out, &words);
}

/// F15 and H01: the gap before the first token is none between tokens.
pub(crate) fn first_gap(case: &Case, found: &mut Findings) {
    let cases = std::fs::read_dir(&case.cases).expect("the cases can be listed");
    let files = cases.filter_map(|entry| Some(entry.ok()?.path().join("f15.srv")));
    let file = files.into_iter().find(|file| file.is_file()).expect("case F15 has a script");
    let text = script(&file);
    // Its text at 200 and 220 ms.
    let first = text.find("\"content\": \"Hel\"").expect("the script says so");
    let place = first + text[first..].find('\n').expect("a line has an end") + 1;
    let paused = format!("{}sleep 20\n{}", &text[..place], &text[place..]);
    let Some(played) = play(&case.cases, &paused, &lone(1, 0, 2), &[]) else {
        return found.skip(NO_PYTHON);
    };
    let run = played.replayed.log();
    let figures = figures(run);
    for (name, gaps) in [("ITL", figures.latency.itl_ms), ("ICL", figures.latency.icl_ms)] {
        let Some(gaps) = gaps else {
            found.wrong(format!("expected a sample of {name}, found none"));
            continue;
        };
        let times = run.chunks.row(0).times();
        let gap = (times[1] - times[0]) as f64 / MILLI as f64;
        found.same(format!("samples of {name}"), &1, &gaps.count);
        let same = (gaps.max - gap).abs() < 1e-6 && gap >= 10.0;
        found.holds(format!("{name} of about 20 ms, the gap that there was"), same, gaps.max);
    }
}

/// F21, H02, H16: gaps between events and between tokens are two things, and each is named, with
/// its formula and with who counted.
pub(crate) fn several_tokens(case: &Case, found: &mut Findings) {
    if !case.files.is_empty() {
        scripts(case, &[("f21", Class::Ok, "")], found);
    }
    let cases = std::fs::read_dir(&case.cases).expect("the cases can be listed");
    let files = cases.filter_map(|entry| Some(entry.ok()?.path().join("f21.srv")));
    let file = files.into_iter().find(|file| file.is_file()).expect("case F21 has a script");
    let Some(played) = play(&case.cases, &script(&file), &lone(1, 0, 9), &["--verbose"]) else {
        return found.skip(NO_PYTHON);
    };
    let run = played.replayed.log();
    let figures = figures(run);
    let times = run.chunks.row(0).times();
    found.same("content events", &3, &times.len());
    let decode = (times[times.len() - 1] - times[0]) as f64 / MILLI as f64;
    let near = |value: Option<f64>, wanted: f64| value.is_some_and(|it| (it - wanted).abs() < 1e-6);
    let (icl, itl) = (figures.latency.icl_ms, figures.latency.itl_ms);
    found.same("gaps between events", &Some(2), &icl.map(|it| it.count));
    found.holds("gaps of about 100 ms", icl.is_some_and(|it| it.min >= 50.0), format!("{icl:?}"));
    found.holds("their mean", near(icl.map(|it| it.mean), decode / 2.0), format!("{icl:?}"));
    let spread = near(itl.map(|it| it.mean), decode / 11.0);
    found.holds("the time spread over 11 tokens", spread, format!("{itl:?}"));
    found.same("tokens", &Some(12), &figures.tokens.completion);
    found.same("who counted", &Some("usage"), &figures.tokens.source);
    found.same("answers of another length", &Some(1), &figures.tokens.output_mismatch_requests);
    let words = [
        "ITL (last token - first token) / (completion tokens - 1)",
        "ICL gaps between successive content events, pooled",
        "TTFT first token - sent",
        "NTPOT e2e / completion tokens",
        "completion 12 (server usage)",
        "planned output 9: 1 answer of another length",
    ];
    found.says("the summary", &flat(&played.replayed.told.out), &words);
}

/// F27: events behind `[DONE]` are nobody's: flagged, and the connection serves the next request.
pub(crate) fn behind_done(case: &Case, found: &mut Findings) {
    scripts(case, &[("f27", Class::Ok, "")], found);
    let Some(played) = played(case, &lone(3, 60, 2), &[], found) else { return };
    let run = played.replayed.log();
    found.same("connections", &1, &played.connections());
    for i in 0..3 {
        found.same(format!("content events of request {i}"), &2, &run.chunks.count(i));
        let flagged = run.requests.flags(i).has(DoneFlags::STRAY_BYTES);
        found.holds(format!("request {i} flagged"), flagged, "no flag");
    }
}

/// F28: choices are told apart: the text of the first is the reply, tokens are those of both.
pub(crate) fn two_choices(case: &Case, found: &mut Findings) {
    scripts(case, &[("f28", Class::Ok, "")], found);
    let Some(played) = played(case, &two_turns(2), &[], found) else { return };
    found.same("the first choice's text", "Aa", said_to_the_first(&played).as_str());
    let run = played.replayed.log();
    let first = run.chunks.row(0).times().first().copied();
    let token = run.requests.first_token(0).map(|at| at.0);
    found.same("the first token, of either", &first, &token);
}

/// F29: an answer shorter than what was asked for is a success, and counted with what it lacks.
pub(crate) fn too_short(case: &Case, found: &mut Findings) {
    scripts(case, &[("f29", Class::Ok, "")], found);
    let Some(played) = played(case, &lone(2, 5, 100), &[], found) else { return };
    let figures = figures(played.replayed.log());
    found.same("answers of another length", &Some(2), &figures.tokens.output_mismatch_requests);
    let words =
        ["planned output 200: 2 answers of another length, 98.00 tokens too short on average"];
    found.says("the summary", &flat(&played.replayed.told.out), &words);
}

/// F31: the shape of plain completions is read, by whatever name it was asked for.
pub(crate) fn completions(case: &Case, found: &mut Findings) {
    scripts(case, &[("f31", Class::Ok, "")], found);
    let options =
        ["--endpoint-type", "completions", "--context-mode", "message_array_with_responses"];
    let trace = "{\"timestamp\":0,\"input_length\":9,\"output_length\":2,\"hash_ids\":[1]}\n";
    let Some(played) = played(case, trace, &options[..2], found) else { return };
    found.same(
        "path",
        &Some("POST /v1/completions HTTP/1.1"),
        &played.seen.first().map(|(_, seen)| seen.line.as_str()),
    );
    let run = played.replayed.log();
    found.same("class", &Some(Class::Ok), &run.requests.class(0));
    found.same("content events", &2, &run.chunks.count(0));
}
