//! Reading answers must not allocate: the reader runs on a pacing core between two sends.
//!
//! A binary of its own, because it replaces the global allocator with one that counts.

mod counting;

use onbeat::wire::{Answer, AnswerReader};

use self::counting::allocations;

/// A chunked stream with `events` content events of `bytes` bytes each.
fn stream(events: usize, bytes: usize) -> String {
    let mut answer = String::from(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    let mut add = |data: &str| {
        let event = format!("data: {data}\n\n");
        answer.push_str(&format!("{:x}\r\n{event}\r\n", event.len()));
    };
    let text = "a".repeat(bytes);
    for _ in 0..events {
        add(&format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}"#));
    }
    add(r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#);
    add(r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2}}"#);
    add("[DONE]");
    answer + "0\r\n\r\n"
}

#[test]
fn reading_answers_does_not_allocate() {
    let answers = [
        stream(128, 5),
        stream(3, 60_000),
        "HTTP/1.1 429 X\r\nRetry-After: 2\r\nContent-Length: 4\r\n\r\nbusy".to_owned(),
        "HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n{\"choices\":[]}".to_owned(),
    ];
    let mut reader = AnswerReader::new();
    let mut facts = 0;
    let mut sink = |_: Answer<'_>| facts += 1;
    let before = allocations();
    for answer in &answers {
        for step in [1 << 20, 32_768, 1_000, 61, 1] {
            reader.begin(true);
            let mut end = None;
            for part in answer.as_bytes().chunks(step) {
                end = reader.push(part, &mut sink);
            }
            if end.is_none() {
                reader.close(false, &mut sink);
            }
        }
    }
    assert_eq!(allocations() - before, 0);
    assert!(facts > 1_000);
}
