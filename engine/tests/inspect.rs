//! `onbeat inspect` and `onbeat plan` of the real binary on a small file of every format.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn onbeat(words: &[&str], path: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onbeat"))
        .args(words)
        .arg(path)
        .stdin(Stdio::null())
        .output()
        .expect("the binary was built")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn write(folder: &Path, name: &str, words: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, words).expect("the folder is writable");
    path
}

fn inspected(path: &Path) -> Value {
    let told = onbeat(&["inspect", "--format", "json"], path);
    assert!(told.status.success(), "{}: {}", path.display(), text(&told.stderr));
    let page = onbeat(&["inspect"], path);
    assert!(page.status.success() && page.stdout.len() > 100, "{}", path.display());
    serde_json::from_slice(&told.stdout).expect("JSON")
}

const CONVERSATION: &str = r#"{"id":"t","models":["m"],"block_size":64,"tool_tokens":64,
    "system_tokens":0,"requests":[
    {"t":0.0,"type":"s","model":"m","in":128,"out":4,"hash_ids":[1,2],"stop":""},
    {"type":"subagent","t":2.0,"agent_id":"x","requests":[
        {"t":0.0,"type":"n","in":64,"out":2,"hash_ids":[9]},
        {"t":0.5,"type":"n","in":128,"out":2,"hash_ids":[9,10],"think_time":0.25}]},
    {"type":"subagent","t":2.5,"agent_id":"empty","requests":[]},
    {"t":4.0,"type":"s","in":192,"out":4,"hash_ids":[1,2,3],"think_time":1}]}"#;

#[test]
fn rows_and_tables_of_every_format_are_inspected() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n";
    let burst = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
                 5,ChatGPT,472,18,490,Conversation log\n";
    let mooncake =
        "{\"timestamp\":0,\"input_length\":600,\"output_length\":1,\"hash_ids\":[0,1]}\n";
    let bailian = "{\"chat_id\":1,\"parent_chat_id\":-1,\"timestamp\":0.5,\"input_length\":20,\
                   \"output_length\":4,\"turn\":1,\"hash_ids\":[3,4]}\n";
    let dialect = "{\"session_id\":\"s\",\"timestamp\":0,\"input_length\":9,\"output_length\":1}\n\
                   {\"session_id\":\"s\",\"delay\":5,\"input_length\":9,\"output_length\":1}\n";
    let pulse = "{\"timestamp\":\"8\",\"input_length\":12,\"output_length\":3,\"hash_ids\":{},\
                 \"session_id\":\"a\"}\n";
    let spans = r#"{"trace_id":"a","spans":[{"start_time":"2026-02-25T12:00:00",
        "end_time":"2026-02-25T12:00:01","attributes":{"gen_ai.input.messages":"[]"}}]}"#;
    for (name, words, format, rows) in [
        ("azure.csv", azure, "azure_csv", 1),
        ("burst.csv", burst, "burst_gpt_trace", 1),
        ("mooncake.jsonl", mooncake, "mooncake_trace", 1),
        ("bailian.jsonl", bailian, "bailian_trace", 1),
        ("dialect.jsonl", dialect, "mooncake_trace", 2),
        ("0_trace.jsonl", pulse, "ragpulse", 1),
        ("spans.json", spans, "otel", 1),
        ("conversation.json", CONVERSATION, "agentic", 4),
    ] {
        let json = inspected(&write(folder.path(), name, words));
        assert_eq!(json["trace"]["format"], format, "{name}");
        assert_eq!(json["rows"], rows, "{name}");
        assert!(json["arrivals"]["span_s"].is_number(), "{name}");
    }
}

#[test]
fn a_compressed_conversation_is_inspected_as_the_file_in_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let one_line = CONVERSATION.replace('\n', " ");
    let plain = inspected(&write(folder.path(), "c.json", &one_line));
    // A stored block of gzip: a header, the bytes as they are, their checksum and length.
    let bytes = one_line.as_bytes();
    let len = u16::try_from(bytes.len()).expect("short");
    let mut packed = b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x01".to_vec();
    packed.extend_from_slice(&len.to_le_bytes());
    packed.extend_from_slice(&(!len).to_le_bytes());
    packed.extend_from_slice(bytes);
    packed.extend_from_slice(&checksum(bytes).to_le_bytes());
    packed.extend_from_slice(&u32::from(len).to_le_bytes());
    let path = folder.path().join("c.json.gz");
    std::fs::write(&path, packed).expect("the folder is writable");
    let unpacked = inspected(&path);
    assert_eq!(plain["conversations"], unpacked["conversations"]);
    assert_eq!(plain["cache"], unpacked["cache"]);
}

/// gzip's CRC-32.
fn checksum(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(u32::MAX, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
}

#[test]
fn files_that_go_with_a_trace_say_what_to_open_instead() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, words, what, instead) in [
        ("2.jsonl", "{\"passage_id\":0,\"token_length\":84}\n", "RAGPulse", "0_trace.jsonl"),
        ("t.csv", "0,0,0,,0,0\n600,1,1,Gamma,1,1\n", "ServeGen", "generate requests"),
        ("d.json", "{\"0\": {\"input_tokens\": \"{9: 1.0}\"}}", "ServeGen", "generate requests"),
    ] {
        let path = write(folder.path(), name, words);
        let json = inspected(&path);
        let has = |key: &str, words: &str| {
            json["material"][key].as_str().is_some_and(|own| own.contains(words))
        };
        assert!(has("what", what) && has("instead", instead), "{json}");
        let plan = onbeat(&["plan"], &path);
        assert_eq!(plan.status.code(), Some(1), "{name}");
        assert!(text(&plan.stderr).contains(instead), "{}", text(&plan.stderr));
    }
}

#[test]
fn a_folder_of_conversations_is_one_trace() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write(folder.path(), "a.json", CONVERSATION);
    write(folder.path(), "b.json", &CONVERSATION.replace("\"t\",", "\"u\","));
    let json = inspected(folder.path());
    assert_eq!((&json["rows"], &json["conversations"]["count"]), (&8.into(), &2.into()));
    assert_eq!(json["conversations"]["empty_sub_agents"], 2);
    // Ids hold in their conversation only: the second one finds nothing of the first.
    assert_eq!(json["cache"]["ideal_hit_rate"], 192.0 / 512.0);
    let told = onbeat(&["inspect", "--cache-tokens", "64"], folder.path());
    let page = text(&told.stdout);
    assert!(page.contains("2 conversations, 4 sub-agents (2 empty) with 4 requests"), "{page}");
    assert!(page.contains("asks for the same as another one (u is t again)"), "{page}");
    assert!(!page.contains("subfolder"), "{page}");
    assert!(page.contains(" % with 64\n"), "{page}");
    for name in ["more", "older"] {
        std::fs::create_dir(folder.path().join(name)).expect("the folder is writable");
    }
    let page = text(&onbeat(&["inspect"], folder.path()).stdout);
    assert!(page.contains("2 subfolders of the folder were not read"), "{page}");
}

#[test]
fn a_folder_that_is_no_trace_names_the_file_in_it_that_is_one() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let row = "{\"timestamp\":\"8\",\"input_length\":12,\"output_length\":3,\"hash_ids\":{}}\n";
    write(folder.path(), "0_trace.jsonl", row);
    write(folder.path(), "2_passages.jsonl", "{\"passage_id\":0,\"token_length\":84}\n");
    let told = onbeat(&["inspect"], folder.path());
    assert_eq!(told.status.code(), Some(1));
    let words = text(&told.stderr);
    assert!(words.contains("0_trace.jsonl: give that instead"), "{words}");
}

#[test]
fn words_agree_with_a_count_of_one() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let rows = "{\"timestamp\":5,\"input_length\":600,\"output_length\":1}\n\
                {\"timestamp\":0,\"input_length\":600,\"output_length\":1,\"hash_ids\":[0,1]}\n";
    let page = text(&onbeat(&["inspect"], &write(folder.path(), "two.jsonl", rows)).stdout);
    for words in ["1 timestamp is smaller", "1 row has no hash_ids: its prompt shares nothing"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let one = write(folder.path(), "one.jsonl", rows.lines().next().expect("a row"));
    let page = text(&onbeat(&["inspect"], &one).stdout);
    assert!(page.contains("mooncake_trace, 1 row, "), "{page}");
    let plan = onbeat(&["plan", "--request-count", "1"], &folder.path().join("two.jsonl"));
    let words = text(&plan.stderr);
    assert!(words.contains("1 of 2 rows is planned: 1 is beyond --request-count"), "{words}");
}

#[test]
fn a_plan_of_conversations_says_who_waits_for_whom() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write(folder.path(), "c.json", CONVERSATION);
    let plan = onbeat(&["plan"], &path);
    assert!(plan.status.success(), "{}", text(&plan.stderr));
    let lines: Vec<Value> =
        text(&plan.stdout).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let column = |key: &str| lines.iter().map(|line| line[key].clone()).collect::<Vec<_>>();
    assert_eq!(column("session"), ["t", "t-SA1", "t-SA1", "t"]);
    assert_eq!(column("source")[2], "c.json#requests[1].requests[1]");
    assert_eq!(column("after"), [Value::Null, 0.into(), 1.into(), 0.into()]);
    let second = 1_000_000_000;
    assert_eq!(column("think_ns"), [Value::Null, 0.into(), (second / 4).into(), second.into()]);
    assert_eq!(lines[3]["also_after"], serde_json::json!([2]));
    let replay = onbeat(&["replay", "--url", "http://127.0.0.1:9"], &path);
    assert_eq!(replay.status.code(), Some(1));
    let words = text(&replay.stderr);
    assert!(words.contains("does not accept connections"), "only a server is missing: {words}");
}

/// What a plan prints of requests, by their numbers, and what it says.
fn planned(options: &[&str], path: &Path) -> (Vec<u64>, String) {
    let plan = onbeat(&[&["plan"], options].concat(), path);
    assert!(plan.status.success(), "{options:?}: {}", text(&plan.stderr));
    let number = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        line["request"].as_u64().expect("a number")
    };
    (text(&plan.stdout).lines().map(number).collect(), text(&plan.stderr))
}

#[test]
fn a_plan_of_conversations_is_what_a_run_plays_and_all_its_shards_together() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conversations");
    for filter in [&[][..], &["--min-requests", "4"], &["--max-context", "1000"]] {
        let (whole, told) = planned(filter, &folder);
        let of_one = [&["--shard", "0/1"][..], filter].concat();
        assert_eq!(planned(&of_one, &folder).0, whole, "{filter:?}");
        let of_shard = |shard: &str| planned(&[&["--shard", shard][..], filter].concat(), &folder);
        let (first, said) = of_shard("0/2");
        let mut both = [first, of_shard("1/2").0].concat();
        both.sort_unstable();
        assert_eq!(both, whole, "{filter:?}");
        assert!(said.contains("left to other shards"), "{said}");
        let option = filter.first().unwrap_or(&"--max-context");
        assert!(told.contains(&format!("{} of 39 requests are planned: ", whole.len())), "{told}");
        assert!(told.contains(option) && whole.len() < 39, "{told}");
    }
    // As a run does, it says what means nothing here; nobody counts requests for users.
    let options = ["--request-count", "5", "--max-users", "3", "--max-context", "4000000"];
    let (whole, told) = planned(&options, &folder);
    assert_eq!(whole.len(), 39);
    assert!(!told.contains("are planned: "), "{told}");
    assert!(told.contains("--request-count changes nothing: users replay"), "{told}");
    assert!(told.contains("a plan does not depend on --max-users"), "{told}");
    let none = onbeat(&["plan", "--min-requests", "99"], &folder);
    assert_eq!(none.status.code(), Some(1), "{}", text(&none.stderr));
    assert!(text(&none.stderr).contains("no conversation may be played: "));
}
