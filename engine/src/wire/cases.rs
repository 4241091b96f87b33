//! Answers of honest, odd and broken servers, each with what the reader must say about it.
//!
//! Every case is read whole, byte by byte, and cut in two at every place.

use onbeat_shared::log::outcome::{Class, FinishReason};
use onbeat_shared::log::record::{ChunkKind, DoneFlags, UNKNOWN_TOKENS};

use super::AnswerReader;
use super::transcript::{Behind, Transcript, read};

const STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\
                      Transfer-Encoding: chunked\r\n\r\n";
const ROLE: &str = r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#;
const HEL: &str =
    r#"{"id":"c1","choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}]}"#;
const LO: &str = r#"{"id":"c1","choices":[{"index":0,"delta":{"content":"lo"}}],"usage":null}"#;
const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const USAGE: &str = r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,
    "prompt_tokens_details":{"cached_tokens":6},"total_tokens":11}}"#;
const WHOLE: &str = r#"{"choices":[{"index":0,"text":"Hi","finish_reason":"stop"}]}"#;

/// One chunk.
fn chunk(data: &str) -> String {
    format!("{:x}\r\n{data}\r\n", data.len())
}

/// A chunked event stream of these documents, each an event in its own chunk.
fn stream(documents: &[&str]) -> String {
    let chunks = documents.iter().map(|document| {
        let lines = document.replace('\n', "\ndata: ");
        chunk(&format!("data: {lines}\n\n"))
    });
    STREAM.to_owned() + &chunks.collect::<String>()
}

fn json(status: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Reads `answer` in every split into two, and byte by byte, with one reader; all must agree.
fn check(answer: &str, behind: Behind) -> Transcript {
    let bytes = answer.as_bytes();
    let mut reader = AnswerReader::new();
    let whole = read(&mut reader, [bytes], behind);
    let expected = whole.clone().comparable();
    assert_eq!(read(&mut reader, bytes.chunks(1), behind).comparable(), expected);
    for cut in 0..bytes.len().min(4_000) {
        let (first, second) = bytes.split_at(cut);
        assert_eq!(read(&mut reader, [first, second], behind).comparable(), expected, "at {cut}");
    }
    whole
}

fn closed(answer: &str) -> Transcript {
    check(answer, Behind::Close)
}

#[test]
fn a_chat_stream_is_read() {
    let said = closed(&(stream(&[ROLE, HEL, LO, STOP, USAGE, "[DONE]"]) + "0\r\n\r\n"));
    assert_eq!(said.class(), Class::Ok);
    assert_eq!((said.heads.as_slice(), said.events), (&[200][..], 6));
    let text = ChunkKind::TEXT.0;
    assert_eq!(said.chunks, [(0, text, 1, 3), (0, text, 1, 2)]);
    assert_eq!(said.finishes, [FinishReason::Stop]);
    let usage = said.usage.expect("usage");
    assert_eq!((usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens), (9, 2, 6));
    assert_eq!(usage.reasoning_tokens, UNKNOWN_TOKENS);
    assert_eq!(said.end.flags, DoneFlags::DONE_MARK);
    assert!(said.end.reusable);
    assert_eq!(said.words, None);
}

#[test]
fn lines_may_end_in_any_way_and_events_may_share_chunks() {
    let events = format!("data:{ROLE}|: note||data:{HEL}||data:{LO}||data:{STOP}||data:  [DONE]|");
    for end in ["\n", "\r", "\r\n"] {
        for start in ["", "\u{feff}", "\n", "event: message\nid: 7\nretry: 1\nzz: 1\n"] {
            let body = start.to_owned() + &events.replacen('|', "||", 1).replace('|', end);
            let said = closed(&(STREAM.to_owned() + &chunk(&body) + "0\r\n\r\n"));
            assert_eq!((said.class(), said.content_bytes()), (Class::Ok, 5), "{body:?}");
            assert_eq!(said.events, 5);
        }
    }
}

#[test]
fn the_answer_needs_a_finish_reason_or_done() {
    let without_done = closed(&(stream(&[HEL, LO, STOP]) + "0\r\n\r\n"));
    assert_eq!(without_done.class(), Class::Ok);
    assert_eq!(without_done.end.flags, DoneFlags(0));
    let without_reason = closed(&(stream(&[HEL, LO, "[DONE]"]) + "0\r\n\r\n"));
    assert_eq!(without_reason.class(), Class::Ok);
    assert_eq!(without_reason.end.finish, FinishReason::Unknown);
    let neither = closed(&(stream(&[HEL, LO]) + "0\r\n\r\n"));
    assert_eq!((neither.class(), neither.chunks.len()), (Class::NoFinish, 2));
    assert!(neither.end.reusable);
    let nothing = closed(&(STREAM.to_owned() + &chunk(": ping\n\n") + "0\r\n\r\n"));
    assert_eq!(nothing.class(), Class::NoFinish);
}

#[test]
fn a_cut_is_forgiven_only_behind_done() {
    let done = closed(&stream(&[HEL, LO, STOP, "[DONE]"]));
    assert_eq!((done.class(), done.end.reusable), (Class::Ok, false));
    let reset = check(&stream(&[HEL, LO, STOP, "[DONE]"]), Behind::Reset);
    assert_eq!((reset.class(), reset.end.reusable), (Class::Ok, false));
    let finished = closed(&stream(&[HEL, LO, STOP]));
    assert_eq!(finished.class(), Class::TruncatedBody);
    assert_eq!(finished.chunks.len(), 2);
    let reset = check(&stream(&[ROLE, HEL, LO]), Behind::Reset);
    assert_eq!(reset.class(), Class::ResetMidAnswer);
    assert_eq!(reset.words(), "reset after 2 content events");
    let broken = closed(&(stream(&[HEL, "[DONE]"]) + "zz"));
    assert_eq!((broken.class(), broken.end.reusable), (Class::Ok, false));
    assert!(broken.end.flags.has(DoneFlags::STRAY_BYTES));
}

#[test]
fn events_behind_done_are_ignored_and_flagged() {
    let said = closed(&(stream(&[HEL, LO, STOP, "[DONE]", HEL]) + "0\r\n\r\n"));
    assert_eq!((said.class(), said.content_bytes(), said.events), (Class::Ok, 5, 4));
    assert!(said.end.flags.has(DoneFlags::STRAY_BYTES) && said.end.reusable);
}

#[test]
fn errors_inside_a_success_are_failures() {
    for (documents, words) in [
        (vec![r#"{"error":{"message":"engine stopped","code":500}}"#, "[DONE]"], "engine stopped"),
        (vec![HEL, r#"{"object":"error","message":"old\u001b[2J style"}"#], "old\\u{1b}[2J style"),
        (vec![HEL, r#"{"error":"busy"}"#, LO, STOP], "busy"),
    ] {
        let said = closed(&(stream(&documents) + "0\r\n\r\n"));
        assert_eq!((said.class(), said.words()), (Class::ErrorEvent, words));
        assert!(said.end.reusable);
        let contents = documents.iter().filter(|&&one| one == HEL || one == LO).count();
        assert_eq!(said.chunks.len(), contents);
    }
    for (data, words) in [
        (r#"{"message":"overloaded"}"#, "overloaded"),
        (r#"{"error":{"message":"x"}}"#, "x"),
        ("plain words", "plain words"),
    ] {
        let body = format!("data: {HEL}\n\nevent: error\ndata: {data}\n\n");
        let said = closed(&(STREAM.to_owned() + &chunk(&body) + "0\r\n\r\n"));
        assert_eq!((said.class(), said.words(), said.chunks.len()), (Class::ErrorEvent, words, 1));
    }
    let whole = closed(&json("200 OK", r#"{"error":{"message":"no"}}"#));
    assert_eq!((whole.class(), whole.words()), (Class::ErrorEvent, "no"));
}

#[test]
fn what_stands_beside_an_error_is_kept() {
    // As a gateway says that the provider behind it has gone.
    let last = r#"{"choices":[{"index":0,"delta":{"content":" more"},"finish_reason":"error"}],
        "error":{"code":502,"message":"gone"},"usage":{"completion_tokens":2}}"#;
    let said = closed(&(stream(&[HEL, last, "[DONE]"]) + "0\r\n\r\n"));
    assert_eq!((said.class(), said.words()), (Class::ErrorEvent, "gone"));
    assert_eq!((said.content_bytes(), said.end.finish), (8, FinishReason::Other));
    assert_eq!(said.usage.expect("usage").completion_tokens, 2);
    let body = r#"{"error":"busy","usage":{"prompt_tokens":9}}"#;
    let said = closed(&json("200 OK", body));
    assert_eq!((said.class(), said.words()), (Class::ErrorEvent, "busy"));
    assert_eq!(said.usage.expect("usage").prompt_tokens, 9);
}

#[test]
fn an_answer_that_the_server_gave_up_is_a_failure() {
    let end = |reason: &str| {
        format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{reason}"}}]}}"#)
    };
    for reason in ["abort", "error", "cancelled", "timeout"] {
        let said = closed(&(stream(&[HEL, LO, &end(reason), USAGE, "[DONE]"]) + "0\r\n\r\n"));
        assert_eq!((said.class(), said.content_bytes()), (Class::ErrorEvent, 5), "{reason}");
        let words = format!("the server gave it up: finish_reason \"{reason}\"");
        assert_eq!((said.words(), said.end.finish), (words.as_str(), FinishReason::Other));
        assert!(said.end.reusable && said.usage.is_some());
        let whole = closed(&json("200 OK", &WHOLE.replace("stop", reason)));
        assert_eq!((whole.class(), whole.words()), (Class::ErrorEvent, words.as_str()));
        let one_of_two = r#"{"choices":[{"index":1,"text":"x","finish_reason":"stop"}]}"#;
        let said = closed(&(stream(&[HEL, &end(reason), one_of_two, "[DONE]"]) + "0\r\n\r\n"));
        assert_eq!(said.class(), Class::ErrorEvent, "one of two choices: {reason}");
    }
    for reason in ["content_filter", "eos", "stop_sequence"] {
        let said = closed(&(stream(&[HEL, LO, &end(reason), "[DONE]"]) + "0\r\n\r\n"));
        assert_eq!(said.class(), Class::Ok, "{reason}");
    }
}

#[test]
fn a_reason_that_gives_up_is_seen_on_a_connection_that_knows_better_ones() {
    let mut reader = AnswerReader::new();
    for (reason, class) in [
        ("stop", Class::Ok),
        ("abort", Class::ErrorEvent),
        ("stop", Class::Ok),
        ("abort", Class::ErrorEvent),
        ("abort", Class::ErrorEvent),
    ] {
        let answer = stream(&[HEL, LO, &STOP.replace("stop", reason), "[DONE]"]) + "0\r\n\r\n";
        assert_eq!(read(&mut reader, [answer.as_bytes()], Behind::Close).class(), class);
    }
}

#[test]
fn done_behind_nothing_is_an_empty_answer() {
    let nothing = r#"{"choices":[]}"#;
    for documents in [&["[DONE]"][..], &[ROLE, "[DONE]"], &[nothing, "[DONE]"], &[USAGE, "[DONE]"]]
    {
        let said = closed(&(stream(documents) + "0\r\n\r\n"));
        assert_eq!(said.class(), Class::EmptyAnswer, "{documents:?}");
        assert_eq!(said.words(), "[DONE] behind no content and no finish reason");
        assert!(said.end.reusable);
        // Its own word for its end is enough, whatever its framing does.
        assert_eq!(closed(&stream(documents)).class(), Class::EmptyAnswer, "{documents:?}");
    }
    // An answer that ends before its first token is whole, and another dialect is not judged.
    let foreign = r#"{"text":"Hi","meta_info":{}}"#;
    for documents in [&[STOP, "[DONE]"], &[foreign, "[DONE]"]] {
        assert_eq!(closed(&(stream(documents) + "0\r\n\r\n")).class(), Class::Ok, "{documents:?}");
    }
}

#[test]
fn failures_have_words_also_where_the_server_has_none() {
    let ended = |documents: &[&str]| closed(&(stream(documents) + "0\r\n\r\n"));
    let clean = "a clean end after 2 content events, without [DONE] or a finish reason";
    assert_eq!(ended(&[HEL, LO]).words(), clean);
    let pings = closed(&(STREAM.to_owned() + &chunk(": ping\n\n") + "0\r\n\r\n"));
    assert_eq!(pings.words(), "an event stream without an event");
    for (body, class, words) in [
        ("{}", Class::NoFinish, "JSON without a finish reason"),
        (r#"{"detail":"Loading"}"#, Class::NoFinish, "Loading"),
        (r#"{"message":"Loading","code":1}"#, Class::NoFinish, "Loading"),
        ("", Class::EmptyAnswer, "no body"),
        ("null", Class::BadEvent, "the body is not one JSON object: null"),
        ("[]", Class::BadEvent, "the body is not one JSON object: []"),
        ("{}\n{}\n", Class::BadEvent, "the body is not one JSON object: {} {} "),
    ] {
        let said = closed(&json("200 OK", body));
        assert_eq!((said.class(), said.words()), (class, words), "{body}");
    }
    let other = r#"{"type":"response.output_text.delta","delta":"Hel"}"#;
    let dialect = "a clean end after 2 events, none with choices: is it another dialect than \
                   OpenAI's chat or completions?";
    assert_eq!(ended(&[other, other]).words(), dialect);
    let named = STREAM.to_owned() + &chunk("event: error\ndata:\n\n") + "0\r\n\r\n";
    assert_eq!(closed(&named).words(), "an error without words");
    let interim = closed("HTTP/1.1 100 Continue\r\n\r\n");
    assert_eq!(interim.class(), Class::TruncatedBody);
    assert_eq!(interim.words(), "closed behind an interim answer, before the answer");
    let cut = closed("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 20");
    assert_eq!(cut.words(), "truncated: 11 bytes of a head");
}

#[test]
fn compressed_bodies_are_named_whatever_their_head_says() {
    let mut reader = AnswerReader::new();
    let mut said = |status: &str, head: &str, body: &[u8]| {
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\n{head}Content-Length: {length}\r\n\r\n");
        let answer = [head.as_bytes(), body].concat();
        let whole = read(&mut reader, [&answer[..]], Behind::Close);
        let cut = read(&mut reader, answer.chunks(1), Behind::Close);
        assert_eq!(cut, whole);
        (whole.class(), whole.words().to_owned())
    };
    let gzip = b"\x1f\x8b\x08\0\0\0\0\0\0\x03{}";
    let zstd = b"\x28\xb5\x2f\xfd\x04\0\0\0\0\0\0\0";
    let packed = "a compressed answer, although none was asked for".to_owned();
    for head in [
        "Content-Type: text/event-stream\r\n",
        "Content-Type: application/json\r\n",
        "",
        "Content-Encoding: gzip\r\n",
    ] {
        for body in [&gzip[..], zstd] {
            let expected = (Class::WrongContentType, packed.clone());
            assert_eq!(said("200 OK", head, body), expected, "{head:?} {body:?}");
        }
    }
    let refusal = "a compressed body, although none was asked for".to_owned();
    assert_eq!(said("500 Oops", "", gzip), (Class::Http5xx, refusal.clone()));
    let brotli = "Content-Encoding: br\r\n";
    assert_eq!(said("502 Oops", brotli, b"\x1b\x0f"), (Class::Http5xx, refusal));
}

#[test]
fn a_coding_that_packs_nothing_is_no_matter() {
    let events = format!("data: {HEL}\n\ndata: {STOP}\n\n");
    for coding in ["none", "identity", "utf-8", "UTF-8", "", "none, identity"] {
        for body in [events.as_str(), WHOLE] {
            let said = closed(&format!(
                "HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Type: \
                 text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            ));
            assert_eq!(said.class(), Class::Ok, "{coding:?}");
        }
    }
}

#[test]
fn an_event_that_is_not_json_is_a_failure() {
    let said = closed(&(stream(&[HEL, r#"{"choices":[{"#, LO, STOP, "[DONE]"]) + "0\r\n\r\n"));
    assert_eq!((said.class(), said.content_bytes()), (Class::BadEvent, 5));
    assert_eq!(said.words(), r#"event 2 is not one JSON object: {"choices":[{"#);
    let heartbeat = format!("data:\n\nevent: ping\ndata: now\n\ndata: {STOP}\n\n");
    let said = closed(&(STREAM.to_owned() + &chunk(&heartbeat) + "0\r\n\r\n"));
    assert_eq!((said.class(), said.events), (Class::Ok, 3));
}

#[test]
fn running_usage_counts_the_tokens_of_a_chunk() {
    let event = |content: &str, tokens: u32| {
        format!(
            r#"{{"choices":[{{"index":0,"text":"{content}"}}],"usage":{{"completion_tokens":{tokens}}}}}"#
        )
    };
    let events = [event("a", 1), event("bbb", 4), event("", 6), event("c", 7), event("d", 7)];
    let documents: Vec<&str> = events.iter().map(String::as_str).chain([STOP]).collect();
    let said = closed(&(stream(&documents) + "0\r\n\r\n"));
    assert_eq!(said.tokens(), [1, 3, 3, 1]);
    let two = r#"{"choices":[{"index":1,"text":"B"},{"index":0,"text":"A"}],"usage":{"completion_tokens":5}}"#;
    let said = closed(&(stream(&[two, STOP]) + "0\r\n\r\n"));
    let text = ChunkKind::TEXT.0;
    assert_eq!(said.chunks, [(1, text, 4, 1), (0, text, 1, 1)]);
}

#[test]
fn a_plain_answer_has_no_token_times() {
    let body = r#"{"choices":[{"message":{"content":"Hello"},"finish_reason":"length"}],
        "usage":{"prompt_tokens":9,"completion_tokens":2}}"#;
    let said = closed(&json("200 X", body));
    assert_eq!((said.class(), said.events, said.chunks.len()), (Class::Ok, 1, 0));
    assert_eq!(said.end.finish, FinishReason::Length);
    assert_eq!(said.usage.expect("usage").completion_tokens, 2);
    let untyped = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{WHOLE}", WHOLE.len());
    assert_eq!(closed(&untyped).class(), Class::Ok);
    assert_eq!(closed(&json("200 OK", "{\"choices\":[")).class(), Class::BadEvent);
    assert_eq!(closed(&json("200 OK", "oops")).class(), Class::BadEvent);
    assert_eq!(closed(&json("200 OK", "{}")).class(), Class::NoFinish);
}

#[test]
fn a_success_without_a_body_is_incomplete() {
    let chunked = STREAM.to_owned() + "0\r\n\r\n";
    for answer in [json("200 X", "").as_str(), &json("200 X", " \r\n"), &chunked] {
        assert_eq!(closed(answer).class(), Class::EmptyAnswer, "{answer:?}");
    }
    assert_eq!(closed("HTTP/1.1 204 No Content\r\n\r\n").class(), Class::EmptyAnswer);
}

#[test]
fn what_a_body_is_its_first_bytes_decide() {
    let typed = |content_type: &str, body: &str| {
        let head = if content_type.is_empty() {
            String::new()
        } else {
            format!("Content-Type: {content_type}\r\n")
        };
        closed(&format!("HTTP/1.1 200 OK\r\n{head}Content-Length: {}\r\n\r\n{body}", body.len()))
    };
    let events = format!("data: {HEL}\n\ndata: {STOP}\n\n");
    for content_type in ["", "text/event-stream", "application/json", "text/plain", "text/html"] {
        assert_eq!(typed(content_type, &events).chunks.len(), 1, "{content_type}");
        assert_eq!(typed(content_type, WHOLE).class(), Class::Ok, "{content_type}");
        let marked = format!("\u{feff}{WHOLE}");
        assert_eq!(typed(content_type, &marked).class(), Class::Ok, "{content_type}");
        let page = typed(content_type, "<html>\x1b[2J");
        assert_eq!(page.class(), Class::WrongContentType, "{content_type}");
        assert_eq!(page.words(), "neither an event stream nor JSON: <html>\\u{1b}[2J");
    }
    assert_eq!(typed("text/plain", "hello").class(), Class::WrongContentType);
    assert_eq!(typed("text/plain", "dat").class(), Class::WrongContentType);
    assert_eq!(typed("", &format!("zz: 1\n{events}")).class(), Class::Ok);
    let packed = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\x1f{}";
    assert_eq!(closed(packed).class(), Class::WrongContentType);
}

#[test]
fn an_error_status_decides_whatever_its_body_does() {
    let said = |status: &str, body: &str| closed(&json(status, body));
    let slow = "429 X\r\nRetry-After: 2";
    let refused = said(slow, r#"{"error":{"message":"slow down"}}"#);
    assert_eq!((refused.class(), refused.words()), (Class::Http429, "retry-after 2: slow down"));
    assert!(refused.end.reusable);
    assert_eq!(refused.end.status, Some(429));
    assert_eq!(said("404 X", r#"{"detail":"Not Found"}"#).words(), "Not Found");
    assert_eq!(said("400 X", r#"{"object":"error","message":"long"}"#).words(), "long");
    assert_eq!(said("500 X", "data: {}").class(), Class::Http5xx);
    let moved = said("307 X\r\nLocation: /v2?key=secret", "");
    assert_eq!((moved.class(), moved.words()), (Class::HttpRedirect, "redirect 307 to /v2"));
    assert_eq!(said("304 Same", "").words(), "redirect 304 without a Location");
    assert_eq!(said("101 Switching", "").class(), Class::HttpOther);
    assert_eq!(said("999 X", "").class(), Class::HttpOther);
    let page = format!("<html>\x1b{}", "x".repeat(20_000));
    let gateway = said("502 X", &page);
    assert_eq!((gateway.class(), gateway.words().len()), (Class::Http5xx, 1024));
    let cut = closed("HTTP/1.1 503 X\r\nContent-Length: 9\r\n\r\nbusy");
    assert_eq!((cut.class(), cut.words(), cut.end.reusable), (Class::Http5xx, "busy", false));
}

#[test]
fn interim_answers_are_passed() {
    let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n\
                   HTTP/1.1 102 Processing\r\n\r\n";
    let said = closed(&(interim.to_owned() + &json("200 OK", WHOLE)));
    assert_eq!((said.class(), said.heads.as_slice()), (Class::Ok, &[200][..]));
    let many = |count: usize| "HTTP/1.1 102 X\r\n\r\n".repeat(count) + &json("200 OK", WHOLE);
    assert_eq!(closed(&many(16)).class(), Class::Ok);
    assert_eq!(closed(&many(17)).class(), Class::OverLimit);
}

#[test]
fn bodies_may_be_framed_in_every_legal_way() {
    let one_zero = format!("HTTP/1.0 200 OK\r\n\r\n{WHOLE}");
    let said = closed(&one_zero);
    assert_eq!((said.class(), said.end.reusable), (Class::Ok, false));
    assert_eq!(check(&one_zero, Behind::Reset).class(), Class::ResetMidAnswer);
    let close =
        format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 60\r\n\r\n{WHOLE}");
    let said = closed(&close);
    assert_eq!((said.class(), said.end.reusable), (Class::Ok, false));
    let trailers = STREAM.to_owned() + &chunk(WHOLE) + "000;x=y\r\nDigest: y\r\n\r\n";
    let said = closed(&trailers);
    assert_eq!((said.class(), said.end.reusable, said.left), (Class::Ok, true, 0));
}

#[test]
fn broken_framing_is_named() {
    let cut = closed("HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n{\"choices\":[]}");
    assert_eq!((cut.class(), cut.words()), (Class::TruncatedBody, "truncated: 14 of 200 bytes"));
    let cut = closed(&stream(&[HEL]));
    assert_eq!(cut.class(), Class::TruncatedBody);
    let both =
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    assert_eq!(closed(both).class(), Class::BadFraming);
    let bad_size = STREAM.to_owned() + "+5\r\nhello\r\n";
    assert_eq!(closed(&bad_size).class(), Class::BadFraming);
    assert_eq!(closed("HTTP/1.1 200 OK\r\nbad header\r\n\r\n").class(), Class::BadHead);
    assert_eq!(closed("HTTP/1.1 20").class(), Class::TruncatedBody);
    assert_eq!(check("HTTP/1.1 20", Behind::Reset).class(), Class::ResetMidAnswer);
    assert_eq!(closed("").class(), Class::ResetBeforeAnswer);
    assert_eq!(check("", Behind::Reset).class(), Class::ResetBeforeAnswer);
}

#[test]
fn stray_bytes_cost_the_connection() {
    let said = closed(&(json("200 OK", WHOLE) + "!!!!!"));
    assert_eq!((said.class(), said.left, said.end.reusable), (Class::Ok, 5, false));
    assert!(said.end.flags.has(DoneFlags::STRAY_BYTES));
}

#[test]
fn other_protocols_are_named() {
    let mut reader = AnswerReader::new();
    for (bytes, words) in [
        (&b"\0\0\x12\x04\0\0"[..], "the server speaks HTTP/2; its first bytes: 00 00 12 04 00 00"),
        (b"\x15\x03\x01\0", "the server speaks TLS; its first bytes: 15 03 01 00"),
        (b"SSH-2", "not HTTP; its first bytes: 53 53 48 2d 32"),
        (b"HTTP/2 4", "the server speaks HTTP/2; its first bytes: 48 54 54 50 2f 32 20 34"),
    ] {
        let said = read(&mut reader, [bytes], Behind::Close);
        assert_eq!((said.class(), said.words()), (Class::NotHttp, words));
    }
}

#[test]
fn what_is_no_head_is_none_in_every_split() {
    for answer in ["\r\r\n\r\nx", "\r\r\n\nHTTP/1.1 200 OK\r\n\r\n", "\n\rHTTP/1.1 200 OK\r\n\r\n"]
    {
        assert_eq!(closed(answer).class(), Class::NotHttp, "{answer:?}");
    }
}

#[test]
fn hostile_sizes_stop_at_their_caps() {
    let mut reader = AnswerReader::new();
    let mut flood = |start: &str, unit: &str, count: usize| {
        let unit = unit.repeat(64);
        let parts = std::iter::once(start.as_bytes())
            .chain(std::iter::repeat_n(unit.as_bytes(), count.div_ceil(64)));
        let said = read(&mut reader, parts, Behind::Close);
        assert!(!said.end.reusable);
        said.class()
    };
    let close = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: ";
    assert_eq!(flood(close, "aaaaaaaaaaaaaaaa", 1 << 20 | 1), Class::OverLimit);
    let whole = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[";
    assert_eq!(flood(whole, "1111111111111111", 1 << 20 | 1), Class::OverLimit);
    assert_eq!(flood("HTTP/1.1 500 X\r\n\r\n", &"x".repeat(64), 1 << 19), Class::Http5xx);
    assert_eq!(flood("HTTP/1.1 200 OK\r\nx: ", "aaaaaaaaaaaaaaaa", 1 << 14 | 1), Class::OverLimit);
    assert_eq!(flood("HTTP/1.1 200 OK\r\n", "x: y\r\n", 1 << 17), Class::OverLimit);
    let extensions = STREAM.to_owned() + "2;x=";
    assert_eq!(flood(&extensions, "aaaaaaaaaaaaaaaa", 1 << 13), Class::OverLimit);
    assert_eq!(flood("", "HTTP/1.1 102 X\r\n\r\n", 64), Class::OverLimit);
}

#[test]
fn a_token_of_two_megabytes_is_one_event() {
    let text = "a".repeat(2 << 20);
    let event = format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}"#);
    let answer = stream(&[&event, STOP, "[DONE]"]) + "0\r\n\r\n";
    let mut reader = AnswerReader::new();
    for part in [1 << 16, 1 << 30] {
        let said = read(&mut reader, answer.as_bytes().chunks(part), Behind::Close);
        assert_eq!((said.class(), said.chunks.len()), (Class::Ok, 1));
        assert_eq!(said.content_bytes(), 2 << 20);
    }
}
