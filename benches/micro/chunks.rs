//! What one streamed chunk costs a pacing core: from a read's bytes to a record in its block.
//!
//! A case is a kind of event in a kind of framing. Counting instructions is steadier than a clock:
//!
//! ```text
//! valgrind --tool=callgrind --toggle-collect='*Case*read*' <the bench> chunk_sglang_chat
//! ```
//!
//! divided by the events of all rounds (at small size two rounds of ten answers). The sink does
//! what the engine's does, but for a counter: records go into one block that is emptied when full.

use benches::{Bencher, mix};
use onbeat::wire::{Answer, AnswerReader};
use onbeat_shared::log::block::BlockBuffer;
use onbeat_shared::log::record::Record;
use onbeat_shared::log::together::Together;
use onbeat_shared::units::{RequestIndex, RunNanos};

/// Content events in one answer.
const EVENTS: usize = 128;
/// Bytes a busy read returns.
const READ_BYTES: usize = 32 * 1024;
/// What models say, as JSON has it: mostly plain words, some line ends and quotes.
const WORDS: [&str; 16] = [
    " the",
    " quick",
    ",",
    " model",
    " of",
    "\\n\\n",
    " a",
    " \\\"",
    "Hel",
    " answers",
    " to",
    "é",
    " measurement",
    ".",
    " in",
    " 7",
];

/// How events open. `$` is their word, `#` their number.
const CHAT: &str = concat!(
    r#"{"id":"chatcmpl-0f3c9a7d5b1e4c6f8a2b","object":"chat.completion.chunk","#,
    r#""created":1760000000,"model":"meta-llama/Llama-3.1-8B-Instruct","choices":[{"index":0,"#,
);
const VLLM: &str = r#""delta":{"content":"$"},"logprobs":null,"finish_reason":null}]}"#;
const REASONING: &str =
    r#""delta":{"reasoning_content":"$"},"logprobs":null,"finish_reason":null}]}"#;
const COMPLETION: &str = concat!(
    r#"{"id":"cmpl-0f3c9a7d5b1e4c6f8a2b","object":"text_completion","created":1760000000,"#,
    r#""model":"meta-llama/Llama-3.1-8B-Instruct","choices":[{"index":0,"#,
);
const TEXT: &str = r#""text":"$","logprobs":null,"finish_reason":null,"stop_reason":null}]}"#;
const OPENAI: &str = concat!(
    r#"{"id":"chatcmpl-CQx1Yz2Ab3Cd4Ef5","object":"chat.completion.chunk","created":1760000000,"#,
    r#""model":"gpt-4o-mini-2024-07-18","service_tier":"default","#,
    r#""system_fingerprint":"fp_560af6e559","choices":[{"index":0,"#,
);
const NULLS: &str =
    r#""delta":{"content":"$"},"logprobs":null,"finish_reason":null}],"usage":null}"#;
const OBFUSCATED: &str = concat!(
    r#""delta":{"content":"$"},"logprobs":null,"finish_reason":null}],"#,
    r#""usage":null,"obfuscation":"a#b"}"#,
);
const SGLANG: &str = concat!(
    r#""delta":{"role":null,"content":"$","reasoning_content":null,"tool_calls":null},"#,
    r#""logprobs":null,"finish_reason":null,"matched_stop":null}],"usage":null}"#,
);
const USAGE: &str = concat!(
    r#""delta":{"content":"$"},"logprobs":null,"finish_reason":null}],"#,
    r##""usage":{"prompt_tokens":40,"total_tokens":4#,"completion_tokens":#}}"##,
);
const LOGPROBS: &str = concat!(
    r#""delta":{"content":"$"},"logprobs":{"content":[{"token":"$","logprob":-0.0#,"#,
    r#""bytes":[3#,4],"top_logprobs":[]}]},"finish_reason":null}]}"#,
);

/// One kind of event in one kind of framing.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// Content events in the answer.
    pub(crate) events: usize,
    answer: Vec<u8>,
    /// Bytes of each read; the last one may have fewer.
    reads: Vec<usize>,
}

/// How much arrives together.
#[derive(Clone, Copy, Debug)]
enum Arrival {
    /// So many bytes in each read.
    Reads(usize),
    /// One event in each read.
    Events,
}

pub(crate) fn bench(bencher: &Bencher) {
    let answers = bencher.pick(10, 500);
    for case in cases() {
        let mut reader = AnswerReader::new();
        let mut sink = Sink::new();
        bencher.measure(case.name, "event", answers * case.events, || {
            (0..answers).fold(0, |hash, _| mix(hash, case.read(&mut reader, &mut sink)))
        });
    }
}

pub(crate) fn cases() -> Vec<Case> {
    use Arrival::{Events, Reads};
    let busy = Reads(READ_BYTES);
    vec![
        Case::new("chunk_vllm_chat", CHAT, VLLM, 1, busy),
        Case::new("chunk_vllm_chat_64_together", CHAT, VLLM, 64, busy),
        Case::new("chunk_vllm_chat_each_read", CHAT, VLLM, 1, Events),
        Case::new("chunk_vllm_chat_4096_byte_reads", CHAT, VLLM, 1, Reads(4_096)),
        Case::new("chunk_vllm_chat_64_byte_reads", CHAT, VLLM, 1, Reads(64)),
        Case::new("chunk_vllm_completions", COMPLETION, TEXT, 1, busy),
        Case::new("chunk_vllm_reasoning", CHAT, REASONING, 1, busy),
        Case::new("chunk_sglang_chat", CHAT, SGLANG, 1, busy),
        Case::new("chunk_openai_chat", OPENAI, NULLS, 1, busy),
        Case::new("chunk_openai_obfuscated", OPENAI, OBFUSCATED, 1, busy),
        Case::new("chunk_continuous_usage", CHAT, USAGE, 1, busy),
        Case::new("chunk_logprobs", CHAT, LOGPROBS, 1, busy),
    ]
}

impl Case {
    /// An answer of events that are `start` and `end` together, `together` of them in one chunk of
    /// the transfer coding.
    fn new(name: &'static str, start: &str, end: &str, together: usize, arrival: Arrival) -> Self {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\
                    Transfer-Encoding: chunked\r\n\r\n";
        let mut parts = vec![head.to_owned()];
        let pattern = format!("data: {start}{end}\n\n");
        let events: Vec<String> = (0..EVENTS)
            .map(|number| {
                let word = WORDS[number % WORDS.len()];
                pattern.replace('$', word).replace('#', &number.to_string())
            })
            .collect();
        let chunk = |body: &str| format!("{:x}\r\n{body}\r\n", body.len());
        parts.extend(events.chunks(together).map(|events| chunk(&events.concat())));
        let stop = pattern.replace('$', "").replace('#', "9");
        parts.push(chunk(&stop.replacen(
            r#""finish_reason":null"#,
            r#""finish_reason":"stop""#,
            1,
        )));
        parts.push(chunk("data: [DONE]\n\n") + "0\r\n\r\n");
        let answer = parts.concat().into_bytes();
        let reads = match arrival {
            Arrival::Reads(bytes) => vec![bytes; answer.len().div_ceil(bytes)],
            Arrival::Events => parts.iter().map(String::len).collect(),
        };
        Self { name, events: EVENTS, answer, reads }
    }

    /// Reads the whole answer; a checksum of what it said.
    #[inline(never)]
    pub(crate) fn read(&self, reader: &mut AnswerReader, sink: &mut Sink) -> u64 {
        reader.begin(true);
        let mut rest = self.answer.as_slice();
        let mut end = None;
        for (number, &bytes) in (0..).zip(&self.reads) {
            let (read, behind) = rest.split_at(bytes.min(rest.len()));
            rest = behind;
            let time = RunNanos(number);
            end = reader.push(read, &mut |answer| sink.write(time, &answer));
            sink.write_together(time);
        }
        let end = end.expect("the answer is whole");
        mix(mix(sink.tokens, sink.bytes), end.response_bytes)
    }
}

/// Where the records go.
#[derive(Debug)]
pub(crate) struct Sink {
    block: BlockBuffer,
    event_seen: bool,
    tokens: u64,
    bytes: u64,
    together: Together,
}

impl Sink {
    pub(crate) fn new() -> Self {
        Self {
            block: BlockBuffer::new(),
            event_seen: false,
            tokens: 0,
            bytes: 0,
            together: Together::default(),
        }
    }

    fn write(&mut self, time: RunNanos, answer: &Answer<'_>) {
        let request = RequestIndex(7);
        match *answer {
            Answer::Head { .. } => (self.event_seen, self.tokens, self.bytes) = (false, 0, 0),
            Answer::Event if !self.event_seen => {
                self.event_seen = true;
                self.push(&Record::FirstEvent { request, time });
            }
            Answer::Chunk { kind, tokens, bytes, .. } => {
                self.tokens += u64::from(tokens);
                self.bytes += u64::from(bytes);
                if self.together.add(kind, tokens, bytes) {
                    return;
                }
                self.write_together(time);
                assert!(self.together.add(kind, tokens, bytes), "these events are short");
            }
            Answer::Event
            | Answer::Text { .. }
            | Answer::ToolCall
            | Answer::Usage(_)
            | Answer::Finish(_)
            | Answer::ErrorText(_) => {}
        }
    }

    fn write_together(&mut self, time: RunNanos) {
        let together = std::mem::take(&mut self.together);
        let request = RequestIndex(7);
        if !together.is_empty() {
            self.push(&Record::Chunks { request, time, together });
        }
    }

    fn push(&mut self, record: &Record) {
        if self.block.push(record).is_err() {
            self.block.clear();
            self.block.push(record).expect("an empty block has room");
        }
    }
}
