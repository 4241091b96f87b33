//! Answers as servers give them: heads, chunks, events and documents, well formed or nearly.
//!
//! The shapes are those of vLLM, SGLang, llama.cpp and the gateways before them. Each function adds
//! to a buffer and draws from dice. Nothing here damages bytes on purpose; oddities that are legal,
//! or common, are part of the grammar.

use onbeat_shared::dice::Dice;

/// One of these.
pub(super) fn one<'a, T: ?Sized>(dice: &mut Dice, of: &[&'a T]) -> &'a T {
    of[dice.place(of.len())]
}

/// A whole answer, sometimes with bytes behind it.
pub(super) fn answer(dice: &mut Dice, out: &mut Vec<u8>) {
    let mut body = Vec::new();
    match dice.below(8) {
        0 => document(dice, &mut body),
        1 => {
            add(&mut body, one(dice, &["", "<html>", "busy", " \n", "{\"detail\":\"no\"}", "dat"]))
        }
        _ => events(dice, &mut body),
    }
    framed(dice, &body, out);
}

/// A head that frames `body`, and the body.
pub(super) fn framed(dice: &mut Dice, body: &[u8], out: &mut Vec<u8>) {
    interim(dice, out);
    status_line(dice, out);
    fields(dice, out);
    match dice.below(6) {
        0 => {
            add(out, one(dice, &["Content-Length: ", "content-length:", "Content-Length:\t0"]));
            add(out, &body.len().to_string());
            add(out, "\r\n\r\n");
            out.extend_from_slice(body);
        }
        1 => {
            add(out, "\r\n");
            out.extend_from_slice(body);
        }
        _ => {
            add(out, one(dice, &["Transfer-Encoding: chunked", "transfer-encoding:Chunked "]));
            add(out, "\r\n\r\n");
            chunks(dice, body, out);
            last_chunk(dice, out);
        }
    }
    if dice.below(16) == 0 {
        add(out, one(dice, &["\r\n", "!!", "HTTP/1.1 200 OK\r\n\r\n", "0\r\n\r\n"]));
    }
}

/// Interim heads, usually none.
pub(super) fn interim(dice: &mut Dice, out: &mut Vec<u8>) {
    if dice.below(6) == 0 {
        for _ in 0..dice.below(3) {
            add(
                out,
                one(
                    dice,
                    &[
                        "HTTP/1.1 100 Continue\r\n\r\n",
                        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
                        "HTTP/1.1 102\r\n\r\n",
                        "\r\n",
                    ],
                ),
            );
        }
    }
}

/// A status line.
pub(super) fn status_line(dice: &mut Dice, out: &mut Vec<u8>) {
    let line = match dice.below(4) {
        0 => one(
            dice,
            &[
                "1.1 200",
                "1.0 200 OK",
                "1.1 201 Created",
                "1.1 204 No Content",
                "1.1 206 X",
                "1.1 304 Y",
                "1.1 307 Z\r\nLocation: http://u:p@h/v?key=s",
                "1.1 400 Bad",
                "1.1 429 Too Many\r\nRetry-After: 2",
                "1.1 500 Oops",
                "1.1 503 Busy",
                "1.1 101 Up",
                "1.1 999 \u{e9}",
                "1.1 200 ",
                "1.1 299 OK",
            ],
        ),
        _ => "1.1 200 OK",
    };
    add(out, "HTTP/");
    add(out, line);
    add(out, "\r\n");
}

/// Header lines that frame nothing.
pub(super) fn fields(dice: &mut Dice, out: &mut Vec<u8>) {
    add(
        out,
        match dice.below(8) {
            0 => one(
                dice,
                &[
                    "content-type: application/json\r\n",
                    "Content-Type: text/html\r\n",
                    "",
                    "Content-Type: application/problem+json; x=y\r\n",
                    "Content-Encoding: gzip\r\n",
                    "Content-Encoding: identity\r\nContent-Type: text/event-stream\r\n",
                ],
            ),
            _ => one(
                dice,
                &[
                    "Content-Type: text/event-stream\r\n",
                    "content-type:text/event-stream; charset=utf-8 \r\n",
                ],
            ),
        },
    );
    for _ in 0..dice.below(4) {
        add(
            out,
            one(
                dice,
                &[
                    "date: Mon, 30 Nov 2026 10:00:00 GMT\r\n",
                    "server: uvicorn\r\n",
                    "X-Empty:\r\n",
                    "Cache-Control: no-cache\r\n",
                    "Connection: keep-alive\r\n",
                    "connection: close\r\n",
                    "X-Request-Id: 5f0c\r\n",
                    "Connection: close , x\r\n",
                    "X-Odd: \u{e9}\u{80}\r\n",
                    "Transfer-Encoding: identity\r\n",
                    "X-Fold: a\r\n b\r\n",
                ],
            ),
        );
    }
}

/// `body` in chunks of any sizes.
pub(super) fn chunks(dice: &mut Dice, body: &[u8], out: &mut Vec<u8>) {
    let most = [body.len(), 7, 40, 200][dice.place(4)].max(1);
    let mut rest = body;
    while !rest.is_empty() {
        let (chunk, behind) = rest.split_at((1 + dice.place(most)).min(rest.len()));
        rest = behind;
        size_line(dice, chunk.len(), out);
        out.extend_from_slice(chunk);
        add(out, "\r\n");
    }
}

fn size_line(dice: &mut Dice, size: usize, out: &mut Vec<u8>) {
    if dice.below(4) > 0 {
        add(out, &format!("{size:x}\r\n"));
        return;
    }
    let zeros = one(dice, &["", "0", "000000000"]);
    let extension = one(dice, &["", ";a=b", " ;c", " ", "\t", ";d=\"e;\"", ";;", ";\u{e9}"]);
    add(out, zeros);
    add(out, &format!("{size:X}{extension}\r\n"));
}

/// The end of a chunked body, or what stands for it.
pub(super) fn last_chunk(dice: &mut Dice, out: &mut Vec<u8>) {
    add(
        out,
        match dice.below(4) {
            0 => one(
                dice,
                &[
                    "000;x\r\nDigest: y\r\n\r\n",
                    "0\r\nA: b\r\nC:\r\n\r\n",
                    "0\r\n",
                    "",
                    "00 \r\n\r\n",
                ],
            ),
            _ => "0\r\n\r\n",
        },
    );
}

/// A stream of events.
pub(super) fn events(dice: &mut Dice, out: &mut Vec<u8>) {
    let end = match dice.below(4) {
        0 => one(dice, &["\r\n", "\r"]),
        _ => "\n",
    };
    if dice.below(16) == 0 {
        add(out, one(dice, &["\u{feff}", "\n", "\r\n", ": hi\n"]));
    }
    // Most streams say the same again and again, which is what the reader is quick at.
    let alike = dice.below(2) == 0;
    let shape = SHAPES[dice.place(SHAPES.len())];
    // Small inputs find as much as large ones, and sooner.
    let most = 1 + dice.below(6);
    for _ in 0..=dice.below(most) {
        if dice.below(8) == 0 {
            let lines = one(
                dice,
                &[
                    ": ping|",
                    "event: error|",
                    "event: message|id: 7|",
                    "event: x|",
                    "zz|",
                    "data:|",
                    "|",
                    "retry: 10|",
                    ":|",
                    "data|",
                    "\u{feff}",
                ],
            );
            add(out, &lines.replace('|', end));
        }
        add(out, if dice.below(8) == 0 { one(dice, &["data:", "data:  "]) } else { "data: " });
        if alike && dice.below(8) > 0 {
            filled(dice, shape, out);
        } else {
            document(dice, out);
        }
        add(out, end);
        add(out, end);
    }
    if dice.below(2) == 0 {
        // Answers of one server end alike, and the reader knows by the second.
        add(out, "data: ");
        let shape = ENDS[dice.place(ENDS.len())];
        filled(dice, shape, out);
        add(out, end);
        add(out, end);
    }
    match dice.below(8) {
        0 => {}
        1 => out.truncate(out.trim_ascii_end().len()),
        _ => {
            add(out, "data: [DONE]");
            add(out, end);
            add(out, end);
        }
    }
}

/// Content events of several servers; `$` is text, `~` is a string that nobody counts.
const SHAPES: &[&str] = &[
    r#"{"id":"c-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"$"},"logprobs":null,"finish_reason":null}]}"#,
    r#"{"id":"~","choices":[{"index":0,"delta":{"content":"$"},"finish_reason":null,"matched_stop":null}],"usage":null}"#,
    r#"{"choices":[{"finish_reason":null,"index":0,"delta":{"content":"$"}}],"created":1,"id":"x","model":"~","system_fingerprint":"b1-x","object":"chat.completion.chunk"}"#,
    r#"{"id":"cmpl-1","choices":[{"index":0,"text":"$","logprobs":null,"finish_reason":null,"stop_reason":null}],"usage":{"prompt_tokens":9,"completion_tokens":3}}"#,
    r#"{"choices":[{"delta":{"role":"~","reasoning_content":"$","content":null}}],"noise":"~"}"#,
    r#"{"choices":[{"delta":{"content":"","tool_calls":[{"index":0,"function":{"arguments":"$"}}]}}]}"#,
    r#"{"choices":[{"delta":{"reasoning":"$","reasoning_content":"~"}}]}"#,
    r#"{"choices":[{"text":"$"},{"index":2,"delta":{"refusal":"~"}}]}"#,
    r#"{"choices":[{"delta":{"content":[{"type":"~","text":"$"}]}}],"d\u0065tail":"~"}"#,
    r#"{"choices":[{"index":1,"delta":{"content":"$","content":"~"},"text":null}],"error":null}"#,
];

/// Events that say why an answer ended.
const ENDS: &[&str] = &[
    r#"{"id":"c-1","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}"#,
    r#"{"id":"~","choices":[{"index":0,"delta":{"content":""},"finish_reason":"length"}]}"#,
    r#"{"choices":[{"finish_reason":"~","index":1,"delta":{}}],"usage":{"completion_tokens":2}}"#,
    r#"{"choices":[{"text":"","finish_reason":"stop","stop_reason":"~"}],"usage":null}"#,
    r#"{"choices":[{"index":0,"finish_reason":"stop"},{"index":1,"finish_reason":"length"}]}"#,
    r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":7,"total_tokens":16}}"#,
];

/// `shape` with strings in its gaps.
fn filled(dice: &mut Dice, shape: &str, out: &mut Vec<u8>) {
    let mut rest = shape;
    while let Some(at) = rest.find(['$', '~']) {
        add(out, &rest[..at]);
        string_inside(dice, out);
        rest = &rest[at + 1..];
    }
    add(out, rest);
}

/// The inside of a JSON string.
pub(super) fn string_inside(dice: &mut Dice, out: &mut Vec<u8>) {
    match dice.below(8) {
        0 => add(
            out,
            one(
                dice,
                &[
                    "",
                    "\\n",
                    "\\\"",
                    "\\\\",
                    "\\u00e9",
                    "\\ud83d\\ude00",
                    "\\ud83d",
                    "\\ude00\\u0041",
                    "\u{e9}",
                    "\u{1f600}",
                    "error",
                    "\\b\\f\\n\\r\\t\\/",
                    "\u{2028}",
                    "'",
                    "\\u0000",
                ],
            ),
        ),
        1 => {
            for _ in 0..dice.below(60) {
                out.push(b'a' + dice.below(26).to_le_bytes()[0]);
            }
        }
        _ => add(out, one(dice, &["a", " the", " word", "Hello", "tok", ".", " a longer piece"])),
    }
}

/// A document of any kind that an event or a whole body may hold, and some that it must not.
pub(super) fn document(dice: &mut Dice, out: &mut Vec<u8>) {
    match dice.below(10) {
        0 => add(
            out,
            one(
                dice,
                &[
                    "[DONE]",
                    " [DONE] ",
                    "",
                    "{",
                    "[]",
                    "7",
                    "{}",
                    "null",
                    "{\"error\":{\"message\":\"no\"}}",
                    "{\"object\":\"error\",\"message\":\"old\"}",
                    "{\"error\":\"busy\"}",
                    "{\"error\":{}}",
                    "{\"detail\":[{\"loc\":[\"body\"],\"msg\":\"x\"}]}",
                    "{\"error\":null,\"choices\":[]}",
                    "{\"message\":\"a \\u001b[2J\",\"code\":400}",
                    "{\"error\":{\"message\":\"\\ud800\"}}",
                ],
            ),
        ),
        1..=4 => {
            let shape = SHAPES[dice.place(SHAPES.len())];
            filled(dice, shape, out);
        }
        _ => composed(dice, out),
    }
}

/// A document put together member by member, in any order.
fn composed(dice: &mut Dice, out: &mut Vec<u8>) {
    let comma = one(dice, &[",", ",", " , ", ",\t"]);
    let usage_first = dice.below(2) == 0;
    add(out, one(dice, &["{", "{", "{ ", "{\"id\":\"x\","]));
    if usage_first {
        usage(dice, out);
        add(out, comma);
    }
    add(out, "\"choices\":[");
    for place in 0..dice.below(3) {
        add(out, if place > 0 { comma } else { "" });
        choice(dice, comma, out);
    }
    add(out, "]");
    if !usage_first && dice.below(2) == 0 {
        add(out, comma);
        usage(dice, out);
    }
    if dice.below(8) == 0 {
        add(out, comma);
        add(
            out,
            one(
                dice,
                &[
                    "\"x\":[[{\"a\":[]}],1.5e-3,true]",
                    "\"message\":\"m\"",
                    "\"error\":null",
                    "\"\":0",
                    "\"object\":\"chat.completion\"",
                    "\"choices\":null",
                    "\"error\":false",
                ],
            ),
        );
    }
    add(out, "}");
}

fn choice(dice: &mut Dice, comma: &str, out: &mut Vec<u8>) {
    add(out, "{");
    if dice.below(4) > 0 {
        add(out, one(dice, &["\"index\":0", "\"index\":1", "\"index\":2", "\"index\":70000"]));
        add(out, comma);
    }
    match dice.below(6) {
        0 => {
            add(out, "\"text\":\"");
            string_inside(dice, out);
            add(out, "\"");
        }
        1 => add(
            out,
            one(
                dice,
                &[
                    "\"delta\":{}",
                    "\"delta\":null",
                    "\"delta\":{\"role\":\"assistant\",\"content\":\"\"}",
                    "\"delta\":{\"role\":\"assistant\",\"content\":null}",
                    "\"text\":null",
                    "\"x\":1",
                    "\"message\":{\"role\":\"assistant\",\"content\":\"Hi\",\"tool_calls\":[]}",
                ],
            ),
        ),
        _ => {
            add(out, "\"delta\":{");
            for place in 0..=dice.below(2) {
                add(out, if place > 0 { comma } else { "" });
                member(dice, out);
            }
            add(out, "}");
        }
    }
    if dice.below(2) == 0 {
        add(out, comma);
        add(
            out,
            one(
                dice,
                &[
                    "\"finish_reason\":null",
                    "\"finish_reason\":\"stop\"",
                    "\"finish_reason\":\"length\"",
                    "\"finish_reason\":\"\"",
                    "\"finish_reason\":\"tool_calls\"",
                    "\"finish_reason\":7",
                    "\"finish_reason\":\"content_filter\"",
                    "\"finish_reason\":\"abort\"",
                ],
            ),
        );
    }
    add(out, "}");
}

/// A member of a delta.
fn member(dice: &mut Dice, out: &mut Vec<u8>) {
    let before = one(
        dice,
        &[
            "\"content\":\"$\"",
            "\"content\":\"$\"",
            "\"reasoning_content\":\"$\"",
            "\"reasoning\":\"$\"",
            "\"refusal\":\"$\"",
            "\"role\":\"$\"",
            "\"cont\\u0065nt\":\"$\"",
            "\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"$\",\"arguments\":\"$\"}}]",
            "\"function_call\":{\"arguments\":\"$\"}",
            "\"content\":[{\"type\":\"text\",\"text\":\"$\"}]",
            "\"content\":[{\"thinking\":[{\"text\":\"$\"}]},{\"text\":\"$\"}]",
            "\"content\":[{\"thinking\":\"$\"}, 1]",
            "\"tool_calls\":null",
            "\"content\":null",
            "\"content\":[\"$\"]",
        ],
    );
    filled(dice, before, out);
}

fn usage(dice: &mut Dice, out: &mut Vec<u8>) {
    add(out, "\"usage\":");
    add(
        out,
        one(
            dice,
            &[
                "null",
                "{}",
                "{\"prompt_tokens\":9,\"completion_tokens\":2,\"total_tokens\":11}",
                "{\"completion_tokens\":3}",
                "{\"completion_tokens\":4.0,\"prompt_tokens\":-1}",
                "{\"completion_tokens\":4,\"prompt_tokens_details\":{\"cached_tokens\":0}}",
                "{\"input_tokens\":5,\"output_tokens\":6,\"cache_read_input_tokens\":1}",
                "[]",
                "7",
                "{\"completion_tokens\":4294967295,\"completion_tokens_details\":{\"reasoning_tokens\":2}}",
                "{\"completion_tokens\":1e2,\"prompt_tokens_details\":null,\"cached_tokens\":\"3\"}",
            ],
        ),
    );
}

fn add(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}
