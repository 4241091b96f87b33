//! What a real engine answered, byte for byte, is read as the engine meant it.
//!
//! `corpus/vllm-0.32.0` holds answers of vLLM 0.32.0 (its build for CPUs) to requests like ours,
//! with a model of two layers and random weights that was made for this: heads and bodies as they
//! came over the wire. Cut are only the middle of the streams in which the engine died, and the
//! place of the model. What is expected of each was read off its text by hand. How fast a server
//! is, or what it says, plays no part.

use std::collections::HashMap;

use onbeat::wire::{Answer, AnswerEnd, AnswerReader};
use onbeat_shared::log::outcome::{Class, FinishReason};
use onbeat_shared::log::record::{ChunkKind, UNKNOWN_TOKENS};
use onbeat_shared::metrics::{ReportOptions, report};
use onbeat_shared::run::Run;
use tests::scripted::{Scripted, answer, request};
use tests::{Scenario, drivers};

/// An answer, and what it says.
struct Recording {
    name: &'static str,
    bytes: &'static [u8],
    class: Class,
    status: u16,
    /// Tokens of the prompt, of the answer, of the cache and of reasoning, as the server counts.
    usage: [u32; 4],
    /// Events with content, and the tokens that they stand for.
    contents: [usize; 2],
    finish: FinishReason,
    /// A part of what is told of a failure.
    words: &'static str,
}

/// Not said.
const NO: u32 = UNKNOWN_TOKENS;
/// Nothing said of tokens.
const NONE: [u32; 4] = [NO; 4];
/// What is said when the engine dies.
const DIED: &str = "EngineCore encountered an issue.";

macro_rules! recordings {
    ($($name:literal $class:ident $status:literal $usage:expr, $contents:expr,
       $finish:ident $words:expr;)*) => {
        &[$(Recording {
            name: $name,
            bytes: include_bytes!(concat!("corpus/vllm-0.32.0/", $name)),
            class: Class::$class,
            status: $status,
            usage: $usage,
            contents: $contents,
            finish: FinishReason::$finish,
            words: $words,
        }),*]
    };
}

const RECORDINGS: &[Recording] = recordings! {
    "chat" Ok 200 [131, 6, 0, NO], [6, 6], Length "";
    "chat-cached-running" Ok 200 [131, 6, 128, NO], [6, 6], Length "";
    "chat-no-usage" Ok 200 NONE, [6, 6], Length "";
    "chat-whole" Ok 200 [131, 6, 128, NO], [0, 0], Length "";
    // One of its twelve tokens has no text.
    "chat-two-choices" Ok 200 [131, 12, 128, NO], [11, 11], Length "";
    "chat-no-text" Ok 200 [131, 3, 128, NO], [0, 0], Length "";
    "chat-ends-at-once" Ok 200 [131, 1, 128, NO], [0, 0], Stop "";
    "chat-reasoning" Ok 200 [130, 6, 0, 0], [6, 6], Length "";
    // The token between reasoning and text has no event; the running usage tells of it.
    "chat-reasoning-then-text" Ok 200 [130, 16, 128, 0], [15, 16], Length "";
    "chat-reasoning-whole" Ok 200 [130, 16, 128, 0], [0, 0], Length "";
    "chat-stop" Ok 200 [130, 1, 128, 0], [1, 1], Stop "";
    "chat-logprobs" Ok 200 [130, 6, 128, 0], [6, 6], Length "";
    "chat-engine-died" ErrorEvent 200 NONE, [3, 3], Unknown DIED;
    // The server was started without --enable-prompt-tokens-details.
    "chat-no-details" Ok 200 [130, 6, NO, NO], [6, 6], Length "";
    "chat-whole-no-details" Ok 200 [130, 6, NO, NO], [0, 0], Length "";
    "completions" Ok 200 [121, 6, 0, NO], [6, 6], Length "";
    "completions-cached" Ok 200 [121, 6, 96, NO], [6, 6], Length "";
    "completions-running" Ok 200 [121, 6, 96, NO], [6, 6], Length "";
    "completions-no-usage" Ok 200 NONE, [6, 6], Length "";
    "completions-whole" Ok 200 [121, 6, 96, NO], [0, 0], Length "";
    "completions-two-prompts" Ok 200 [4, 12, 0, NO], [12, 12], Length "";
    // Two tokens came in one event, and nobody asked for running usage.
    "completions-merged" Ok 200 [121, 6, 96, NO], [5, 5], Length "";
    "completions-no-text" Ok 200 [121, 4, 96, NO], [0, 0], Length "";
    "completions-one-token" Ok 200 [121, 1, 96, NO], [1, 1], Length "";
    "completions-close" Ok 200 [121, 6, 96, NO], [6, 6], Length "";
    "whole-engine-died" Http5xx 500 NONE, [0, 0], Unknown DIED;
    "unknown-model" Http4xx 404 NONE, [0, 0], Unknown "The model `nope` does not exist.";
    "too-long" Http4xx 400 NONE, [0, 0], Unknown "maximum context length is 16384 tokens";
    "too-many-tokens" Http4xx 400 NONE, [0, 0], Unknown "cannot be greater than max_model_len";
    "bad-json" Http4xx 400 NONE, [0, 0], Unknown "JSON decode error";
    "no-tokens" Http4xx 400 NONE, [0, 0], Unknown "max_tokens must be at least 1, got 0.";
    "bad-temperature" Http4xx 400 NONE, [0, 0], Unknown "temperature must be non-negative";
    "unauthorized" Http4xx 401 NONE, [0, 0], Unknown "Unauthorized";
    "no-such-path" Http4xx 404 NONE, [0, 0], Unknown "Not Found";
    "wrong-method" Http4xx 405 NONE, [0, 0], Unknown "Method Not Allowed";
};

/// What `/v1/models` answered.
const MODELS: &[u8] = include_bytes!("corpus/vllm-0.32.0/whole-models");

impl Recording {
    /// Whether a stream was asked for.
    fn streaming(&self) -> bool {
        !self.name.contains("whole")
    }
}

/// What a reader told of an answer.
#[derive(Debug, PartialEq)]
struct Told {
    usage: [u32; 4],
    contents: [usize; 2],
    reasoning: usize,
    words: String,
    end: AnswerEnd,
}

/// Reads an answer in pieces; the connection stays open behind it.
fn read(reader: &mut AnswerReader, recording: &Recording, pieces: &[&[u8]]) -> Told {
    let (mut usage, mut contents, mut reasoning) = (NONE, [0, 0], 0);
    let mut words = String::new();
    let mut sink = |fact: Answer<'_>| match fact {
        Answer::Chunk { kind, tokens, .. } => {
            contents = [contents[0] + 1, contents[1] + tokens as usize];
            reasoning += usize::from(kind == ChunkKind::REASONING);
        }
        Answer::Usage(said) => {
            usage = [
                said.prompt_tokens,
                said.completion_tokens,
                said.cached_tokens,
                said.reasoning_tokens,
            ];
        }
        Answer::ErrorText(text) => words = String::from_utf8_lossy(text).into_owned(),
        _ => {}
    };
    reader.begin(recording.streaming());
    let mut end = None;
    for piece in pieces {
        assert_eq!(end, None, "{}: the end is the last byte", recording.name);
        end = reader.push(piece, &mut sink);
    }
    let end = end.unwrap_or_else(|| panic!("{}: it is whole", recording.name));
    Told { usage, contents, reasoning, words, end }
}

fn is_as_expected(recording: &Recording, told: &Told) {
    let name = recording.name;
    let end = told.end;
    assert_eq!((end.class, end.status), (recording.class, Some(recording.status)), "{name}");
    assert_eq!((told.usage, told.contents), (recording.usage, recording.contents), "{name}");
    assert_eq!(end.finish, recording.finish, "{name}");
    assert!(told.words.contains(recording.words), "{name}: {}", told.words);
    assert_eq!(told.words.is_empty(), recording.class == Class::Ok, "{name}: {}", told.words);
    assert_eq!(end.response_bytes, recording.bytes.len() as u64, "{name}");
    assert_eq!(end.reusable, name != "completions-close", "{name}");
}

#[test]
fn recorded_answers_are_read_as_they_were_meant_in_any_pieces_and_order() {
    let mut reader = AnswerReader::new();
    for before in RECORDINGS {
        for recording in RECORDINGS {
            // What a connection carried before makes no difference.
            read(&mut reader, before, &[before.bytes]);
            is_as_expected(recording, &read(&mut reader, recording, &[recording.bytes]));
        }
    }
    for recording in RECORDINGS {
        let bytes = recording.bytes;
        let whole = read(&mut reader, recording, &[bytes]);
        let single: Vec<_> = bytes.chunks(1).collect();
        assert_eq!(read(&mut reader, recording, &single), whole, "{}", recording.name);
        for cut in (1..bytes.len()).step_by(37) {
            let (first, second) = bytes.split_at(cut);
            let told = read(&mut reader, recording, &[first, second]);
            assert_eq!(told, whole, "{} cut at {cut}", recording.name);
        }
    }
}

#[test]
fn recorded_reasoning_is_told_from_text() {
    let mut reader = AnswerReader::new();
    let mut reasoning = HashMap::new();
    for recording in RECORDINGS {
        let told = read(&mut reader, recording, &[recording.bytes]);
        reasoning.insert(recording.name, told.reasoning);
    }
    reasoning.retain(|_, events| *events > 0);
    let expected = [
        ("chat-reasoning", 6),
        ("chat-reasoning-then-text", 10),
        ("chat-stop", 1),
        ("chat-logprobs", 6),
        ("chat-engine-died", 3),
    ];
    assert_eq!(reasoning, HashMap::from(expected));
}

/// A server that answers as was recorded: each request has its recording's name as its `user`.
fn serve() -> Scripted {
    Scripted::start(|_, mut stream| {
        while let Some(bytes) = request(&mut stream) {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            if text.starts_with("GET /v1/models ") {
                answer(&mut stream, MODELS);
                continue;
            }
            let (_, name) = text.split_once("\"user\":\"").expect("a name");
            let name = name.split('"').next().unwrap_or_default();
            let found = RECORDINGS.iter().find(|recording| recording.name == name);
            let recording = found.unwrap_or_else(|| panic!("no recording {name}"));
            answer(&mut stream, recording.bytes);
            if name == "completions-close" {
                return;
            }
        }
    })
}

/// A count as a run has it.
fn known(tokens: u32) -> Option<u32> {
    (tokens != NO).then_some(tokens)
}

fn is_in_the_log(run: &Run, i: usize, recording: &Recording) {
    let (name, requests) = (recording.name, &run.requests);
    assert_eq!(requests.class(i), Some(recording.class), "{name}: {:?}", run.error_text(i));
    assert_eq!(requests.status(i), Some(recording.status), "{name}");
    let usage = [
        requests.prompt_tokens(i),
        requests.completion_tokens(i),
        requests.cached_tokens(i),
        requests.reasoning_tokens(i),
    ];
    assert_eq!(usage, recording.usage.map(known), "{name}");
    let [events, tokens] = recording.contents;
    assert_eq!((run.chunks.count(i), requests.chunk_tokens(i)), (events, tokens as u64), "{name}");
    assert_eq!(requests.first_token(i).is_some(), events > 0, "{name}: a first token has text");
    assert_eq!(requests.finish(i), recording.finish, "{name}");
    let words = run.error_text(i).unwrap_or_default();
    assert!(words.contains(recording.words), "{name}: {words}");
    assert_eq!(requests.response_bytes(i), Some(recording.bytes.len() as u64), "{name}");
}

#[test]
fn recorded_answers_are_in_the_log_and_the_report_as_they_were_meant() {
    let line = |(at, recording): (usize, &Recording)| {
        let (name, stream) = (recording.name, recording.streaming());
        format!(
            "{{\"timestamp\":{at},\"model\":\"m\",\"prompt\":\"able\",\"user\":\"{name}\",\
             \"stream\":{stream}}}\n"
        )
    };
    let trace: String = RECORDINGS.iter().enumerate().map(line).collect();
    for driver in drivers() {
        let server = serve();
        let mut scenario = Scenario::new(&trace);
        scenario.config.driver = Some(driver);
        scenario.config.max_connections = Some(1);
        scenario.config.readiness.ask_model = true;
        let run = scenario.run_against(server.address);
        assert!(run.is_whole() && run.warnings.is_empty(), "{:?}", run.warnings);
        assert_eq!(run.manifest.model, "tiny");
        for (i, recording) in RECORDINGS.iter().enumerate() {
            is_in_the_log(&run, i, recording);
        }
        let report = report(&run, &ReportOptions::default());
        let ok = RECORDINGS.iter().filter(|recording| recording.class == Class::Ok);
        assert_eq!(report.outcomes.ok, ok.clone().count() as u64);
        // Where there is no usage, events are counted.
        let tokens = |recording: &Recording| match recording.usage[1] {
            NO => recording.contents[1] as u64,
            said => u64::from(said),
        };
        assert_eq!(report.tokens.completion, Some(ok.clone().map(tokens).sum()));
        let first = ok.filter(|recording| recording.contents[0] > 0).count() as u64;
        assert_eq!(report.latency.ttft_ms.map(|ttft| ttft.count), Some(first));
    }
}
