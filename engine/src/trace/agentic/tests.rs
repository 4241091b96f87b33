//! Conversations of every odd shape that was ever seen, damaged ones, and what is said of them.

use std::fs;
use std::path::Path;

use onbeat_shared::trace::agentic::{Entry, Kind, Parts, Scope, Stop};
use onbeat_shared::trace::{Format, Trace};
use proptest::prelude::{any, prop, proptest};

use super::*;
use crate::trace::{TraceOptions, read};

/// A request with three ids, as files write it.
fn request(t: &str, input: u32, ids: &str) -> String {
    format!(
        r#"{{"t":{t},"type":"s","model":"m","in":{input},"out":5,"hash_ids":[{ids}],"input_types":["text"],"output_types":["text"],"stop":""}}"#
    )
}

fn conversation(id: &str, requests: &[String]) -> String {
    format!(
        r#"{{"id":"{id}","models":["m"],"block_size":64,"tool_tokens":64,"system_tokens":0,"requests":[{}]}}"#,
        requests.join(",")
    )
}

fn sub_agent(t: &str, requests: &[String]) -> String {
    format!(
        r#"{{"t":{t},"type":"subagent","agent_id":"x","subagent_type":"Explore","duration_ms":null,"total_tokens":null,"tool_use_count":null,"status":"async_launched","models":["m"],"tool_tokens":7,"system_tokens":8,"requests":[{}]}}"#,
        requests.join(",")
    )
}

fn loaded(files: &[(&str, &str)]) -> Result<Trace, String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("written");
    }
    let path = match files {
        [(name, _)] => folder.path().join(name),
        _ => folder.path().to_owned(),
    };
    let shown =
        |error: TraceError| error.to_string().replace(&format!("{}/", folder.path().display()), "");
    read(&path, &TraceOptions::default()).map_err(shown)
}

fn sessions(trace: &Trace) -> Vec<(String, u32, i64)> {
    let of = |record: &Record| {
        (trace.session_name(record.session), record.turn, record.at.0 / 1_000_000)
    };
    trace.records.iter().map(of).collect()
}

fn nested() -> String {
    let inner = sub_agent("0.5", &[request("0.0", 130, "20,21")]);
    let agent = sub_agent("1.0", &[request("0.0", 200, "9,10,11"), inner, request("1", 260, "9")]);
    let empty = sub_agent("2.0", &[]);
    let last = sub_agent("3.0", &[request("0.25", 64, "7")]);
    conversation(
        "t",
        &[request("0.0", 200, "1,2,3"), agent, empty, last, request("5.5", 300, "1,2")],
    )
}

#[test]
fn sub_agents_are_sessions_with_times_on_the_conversations_clock() {
    let trace = loaded(&[("a.json", &nested())]).expect("reads");
    assert_eq!((trace.source.format, trace.source.rows), (Format::Agentic, 6));
    let named = |name: &str, turn: u32, ms: i64| (name.to_owned(), turn, ms);
    let expected = [
        named("t", 0, 0),
        named("t-SA1", 0, 1_000),
        named("t-SA1-SA1", 0, 1_500),
        named("t-SA1", 1, 2_000),
        named("t-SA2", 0, 3_250),
        named("t", 1, 5_500),
    ];
    assert_eq!(sessions(&trace), expected);
    let agentic = trace.recorded.agentic.as_ref().expect("conversations");
    let positions: Vec<String> = (0..6).map(|record| agentic.position(record)).collect();
    assert_eq!(positions[2], "requests[1].requests[1].requests[0]");
    assert_eq!(positions[4..], ["requests[3].requests[0]", "requests[4]"]);
    assert_eq!(trace.records[5].row, 6);
    let own = &agentic.conversations[0];
    assert_eq!(
        (own.scope, own.prefix.tool_tokens, own.records.clone()),
        (Scope::Local, Some(64), 0..6)
    );
    assert!(matches!(
        own.entries[..],
        [Entry::Request(0), Entry::Group(_), Entry::Group(_), Entry::Group(_), Entry::Request(5)]
    ));
    let agent = &agentic.groups[1];
    assert_eq!((agent.agent_id.as_str(), agent.duration_ms, agent.parent), ("x", None, None));
    assert_eq!(agentic.groups[0].parent, Some(1));
    assert_eq!(agentic.word(agent.status.expect("said")), "async_launched");
    assert_eq!(agentic.groups[2].session, None, "an empty one asks for nothing");
}

#[test]
fn a_conversation_may_start_in_a_sub_agent_before_its_zero() {
    let first = sub_agent("-279058.651", &[request("0.0", 64, "1")]);
    let text = conversation("t", &[first, request("0.0", 64, "2")]);
    let trace = loaded(&[("a.json", &text)]).expect("reads");
    assert_eq!(trace.records[0].at.0, -279_058_651_000_000);
    assert_eq!(sessions(&trace)[1].0, "t");
}

#[test]
fn members_may_be_missing_null_or_unknown() {
    let text = r#"{"requests":[
        {"hash_ids":[3,1],"zz":{"a":[1,{"b":123456789012345678901234567890}]},"out":null,"in":128.0,"t":1,
         "api_time":1.5,"ttft":null,"type":"?","input_types":[],"output_types":null},
        {"t":2.25,"in":1,"out":0,"hash_ids":null,"type":"n","stop":"max_tokens","input_types":["text","tool_result","new"]}
        ],"_analysis":{"total":3},"models":[]}"#;
    let trace = loaded(&[("trace_7.json", text)]).expect("reads");
    let agentic = trace.recorded.agentic.as_ref().expect("conversations");
    let [first, second] = agentic.calls[..] else { panic!("two") };
    assert_eq!(
        (first.kind, first.api_ns, first.think_ns),
        (Kind::Unknown, Some(1_500_000_000), None)
    );
    assert_eq!((trace.records[0].output_tokens, trace.records[1].output_tokens), (None, Some(1)));
    assert_eq!((second.kind, second.stop, second.output_tokens), (Kind::Whole, Stop::MaxTokens, 0));
    assert!(second.input.has(Parts::TOOL_RESULT) && second.input.has(Parts::OTHER));
    assert_eq!(trace.session_name(trace.records[0].session), "trace_7", "the file is its name");
    assert_eq!(trace.records[1].at.0, 2_250_000_000);
    assert_eq!(trace.warnings[0].words, "1 request has out 0; one token is asked for");
}

#[test]
fn ids_beyond_the_prompt_are_left_out_and_64_bits_are_kept() {
    let text = conversation(
        "t",
        &[request("0", 8, "7445915,7445916,7445917"), request("1", 128, "18446744073709551615,-1")],
    );
    let trace = loaded(&[("a.json", &text)]).expect("reads");
    let ids = |place: usize| trace.blocks_of(&trace.records[place]).iter().collect::<Vec<_>>();
    assert_eq!(ids(0), [7_445_915]);
    assert_eq!(ids(1), [u64::MAX, u64::MAX]);
    assert!(trace.warnings[0].words.starts_with("1 request has more hash_ids"));
}

#[test]
fn sub_agents_may_count_from_the_conversations_start() {
    let agent = sub_agent("10", &[request("11", 64, "1"), request("12", 64, "2")]);
    let trace = loaded(&[("a.json", &conversation("t", &[request("0", 64, "1"), agent]))]);
    let trace = trace.expect("reads");
    assert_eq!(trace.records[2].at.0, 12_000_000_000);
    assert!(trace.warnings[0].words.contains("counts from the conversation's start"));
}

#[test]
fn the_files_of_a_folder_are_one_trace() {
    let second = conversation("b", &[request("0", 64, "1"), request("1", 128, "1,2")]);
    let repeat = conversation("c", &[request("0", 64, "1"), request("1", 128, "1,2")]);
    let global = conversation("b", &[request("0", 64, "1")])
        .replace("\"models\"", "\"hash_id_scope\":\"global\",\"models\"");
    let files = [("a.json", nested()), ("b.json", second), ("c.json", repeat), ("d.json", global)];
    let files: Vec<(&str, &str)> =
        files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let trace = loaded(&files).expect("reads");
    let agentic = trace.recorded.agentic.as_ref().expect("conversations");
    assert_eq!(
        trace.recorded.files.iter().map(|file| file.first_record).collect::<Vec<_>>(),
        [0, 6, 8, 10]
    );
    assert_eq!(agentic.conversations[2].records, 8..10);
    assert_eq!((agentic.calls[9].place, agentic.position(9)), (1, "requests[1]".to_owned()));
    let scopes: Vec<u32> = (0..11).map(|record| trace.scope_of(record)).collect();
    assert_eq!(scopes, [1, 1, 1, 1, 1, 1, 2, 2, 3, 3, 0]);
    assert_eq!(trace.blocks_of(&trace.records[9]).iter().collect::<Vec<_>>(), [1, 2]);
    assert_eq!(trace.session_name(trace.records[10].session), "b#2");
    let words: Vec<&str> = trace.warnings.iter().map(|own| own.words.as_str()).collect();
    assert_eq!(
        words.last(),
        Some(&"1 of 4 conversations asks for the same as another one (c is b again)")
    );
}

#[test]
fn a_note_obeys_no_name() {
    let one = conversation(r"a\n\u001b[31m", &[request("0", 64, "1")]);
    let files = [("a.json", one.as_str()), ("b.json", one.as_str())];
    let trace = loaded(&files).expect("reads");
    let note = trace.warnings.iter().find(|own| own.words.contains("same as another"));
    let words = note.map(|own| own.words.as_str()).expect("they are the same");
    assert!(words.contains(r"\n\u{1b}[31m"), "{words}");
    assert!(!words.contains(char::is_control), "{words:?}");
}

#[test]
fn a_file_may_have_a_conversation_a_line() {
    let one = conversation("a", &[request("0", 64, "1")]);
    let text = format!("{one}\n{}\n", one.replace("\"in\":64", "\"in\":65"));
    let trace = loaded(&[("a.jsonl", &text)]).expect("reads");
    assert_eq!(trace.recorded.agentic.as_ref().expect("two").conversations.len(), 2);
    let words =
        loaded(&[("a.jsonl", &text.replace("\"in\":65", "\"in\":-65"))]).expect_err("negative");
    assert!(words.starts_with("a.jsonl#line 2: requests[0]: field \"in\": found -65"), "{words}");
}

#[test]
fn faults_name_file_place_field_found_and_right() {
    let text = nested();
    for (from, to, words) in [
        (
            "\"in\":130",
            "\"in\":-1",
            "a.json#requests[1].requests[1].requests[0]: field \"in\": found -1; right would be a whole number of tokens from 0",
        ),
        ("\"in\":300", "\"in\":null", "a.json#requests[4]: field \"in\": found null"),
        (
            "[20,21]",
            "[20,2.5]",
            "requests[1].requests[0]: field \"hash_ids\": found a list with something else",
        ),
        (
            "[20,21]",
            "7",
            "field \"hash_ids\": found 7; right would be a list of whole 64-bit numbers",
        ),
        (
            "\"t\":5.5",
            "\"t\":\"soon\"",
            "a.json#requests[4]: field \"t\": found \"soon\"; right would be a number of seconds",
        ),
        ("\"t\":5.5", "\"t\":1e300", "a.json#requests[4]: field \"t\": found 1000"),
        ("\"t\":5.5", "\"u\":5.5", "a.json#requests[4]: field \"t\": found nothing"),
        ("\"duration_ms\":null", "\"duration_ms\":-3", "field \"duration_ms\": found -3"),
        ("\"block_size\":64", "\"block_size\":0", "a.json: field \"block_size\": found 0"),
        (
            "\"id\"",
            "\"hash_id_scope\":\"galaxy\",\"id\"",
            "a.json: field \"hash_id_scope\": found \"galaxy\"; right would be local or global",
        ),
        ("[{\"t\":0.0", "[7,{\"t\":0.0", "a.json#requests[0]: found 7; right would be an object"),
        ("\"stop\":\"\"}]}", "\"stop\":\"\"}", "a.json#requests[2]"),
    ] {
        let found = loaded(&[("a.json", &text.replacen(from, to, 1))]).expect_err(words);
        assert!(found.contains(words), "{from} → {to}: {found}");
    }
    let cut = &text[..text.len() - 40];
    let found = loaded(&[("a.json", cut)]).expect_err("cut");
    assert!(
        found.contains("is the file cut?") && found.starts_with("a.json#requests[4]"),
        "{found}"
    );
    let sizes = [
        ("a.json", text.clone()),
        ("b.json", text.replace("\"block_size\":64", "\"block_size\":32")),
    ];
    let sizes: Vec<(&str, &str)> =
        sizes.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let found = loaded(&sizes).expect_err("two sizes");
    assert!(found.contains("b.json: field \"block_size\": found 32; right would be 64"), "{found}");
    let found = loaded(&[("a.json", &conversation("t", &[]))]).expect_err("empty");
    assert!(found.contains("no request in any of them"), "{found}");
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth: usize| {
        let mut agent = request("0", 64, "1");
        for _ in 0..depth {
            agent = sub_agent("0", &[agent]);
        }
        loaded(&[("a.json", &conversation("t", &[agent]))])
    };
    assert_eq!(nested(30).expect("deep enough").records.len(), 1);
    let words = nested(60).expect_err("too deep");
    assert!(words.contains("sub-agents inside sub-agents"), "{words}");
    let junk = format!("{{\"requests\":[],\"models\":[],\"x\":{}", "[".repeat(100_000));
    assert!(loaded(&[("a.json", &junk)]).is_err());
}

proptest! {
    #[test]
    fn no_damage_makes_the_reader_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
        cuts in any::<bool>(),
    ) {
        let mut text = nested().into_bytes();
        for (place, byte) in changes {
            let place = place.index(text.len());
            // Bytes that JSON is made of do more harm than others.
            const JSON: &[u8] = b"{}[],:\"0-9.eE+ tnu\\";
            text[place] = JSON[usize::from(byte) % JSON.len()];
        }
        if cuts {
            text.truncate(cut.index(text.len()));
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.json");
        fs::write(&path, &text).expect("written");
        let options = TraceOptions { format: Some(Format::Agentic), ..TraceOptions::default() };
        if let Ok(trace) = load(&path, std::slice::from_ref(&path), &options) {
            assert_is_whole(&trace);
        }
    }
}

/// Every request is in one list, has a session, and its ids fit its prompt.
fn assert_is_whole(trace: &Trace) {
    let agentic = trace.recorded.agentic.as_ref().expect("conversations");
    assert_eq!(agentic.calls.len(), trace.records.len());
    let lists = agentic.conversations.iter().map(|own| &own.entries);
    let lists = lists.chain(agentic.groups.iter().map(|own| &own.entries));
    let mut listed: Vec<u32> = lists
        .flatten()
        .filter_map(|entry| match *entry {
            Entry::Request(record) => Some(record),
            Entry::Group(_) => None,
        })
        .collect();
    listed.sort_unstable();
    assert!(listed.into_iter().eq(0..u32::try_from(trace.records.len()).expect("few")));
    for (record, number) in trace.records.iter().zip(0..) {
        assert!(record.session.as_usize() < trace.sessions.len());
        assert!(
            trace.blocks_of(record).len()
                <= record.input_tokens.div_ceil(trace.block_tokens) as usize
        );
        assert!(agentic.position(number).starts_with("requests["));
    }
    let _named = Path::new(&trace.source.name);
}
