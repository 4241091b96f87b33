//! The answer reader: a streamed chat answer, chunked, in pieces as a socket delivers them.

use std::fmt::Write as _;

use benches::{Bencher, mix};
use onbeat::wire::{Answer, AnswerReader};

/// Bytes a read returns at most.
const READ_BYTES: usize = 4_096;

pub(crate) fn bench(bencher: &Bencher) {
    let (answers, events) = (bencher.pick(10, 500), 128);
    let answer = answer(events);
    let mut reader = AnswerReader::new();
    bencher.measure("wire_sse", "event", answers * events, || {
        let mut hash = 0;
        for _ in 0..answers {
            reader.begin(true);
            let mut end = None;
            for bytes in answer.chunks(READ_BYTES) {
                end = end.or(reader.push(bytes, &mut |answer| {
                    if let Answer::Chunk { tokens, bytes, .. } = answer {
                        hash = mix(hash, u64::from(tokens) << 32 | u64::from(bytes));
                    }
                }));
            }
            let end = end.expect("the answer is whole");
            hash = mix(hash, end.response_bytes);
        }
        hash
    });
}

/// A whole HTTP answer of `events` events of one word each, then usage, then the end.
fn answer(events: usize) -> Vec<u8> {
    let mut answer = String::from(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    let mut chunk = |event: &str| {
        let _ = write!(answer, "{:x}\r\n{event}\r\n", event.len());
    };
    let head = r#"data: {"id":"a-1","object":"chat.completion.chunk","created":1,"model":"m","#;
    for _ in 0..events {
        let delta = r#""choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}]}"#;
        chunk(&format!("{head}{delta}\n\n"));
    }
    let finish = r#""choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    chunk(&format!("{head}{finish}\n\n"));
    let usage = r#""choices":[],"usage":{"prompt_tokens":9,"completion_tokens":128}}"#;
    chunk(&format!("{head}{usage}\n\n"));
    chunk("data: [DONE]\n\n");
    answer.push_str("0\r\n\r\n");
    answer.into_bytes()
}
