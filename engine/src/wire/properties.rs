//! What must hold for every answer: the split of its bytes does not matter, independent decoders
//! agree, and no bytes make the reader panic.
//!
//! Answers are generated from the grammar of real ones and then damaged, because bytes that are
//! random from the start rarely get past a head.

use onbeat_shared::log::outcome::Class;
use proptest::collection::vec;
use proptest::prelude::{
    Just, ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, prop_oneof,
};
use proptest::proptest;
use proptest::sample::{Index, select};

use super::AnswerReader;
use super::chunked::{ChunkDecoder, Piece};
use super::delta;
use super::json::Cursor;
use super::pattern::Pattern;
use super::plain::{reference_chunks, reference_events};
use super::sse::{Event, EventSplitter, Name};
use super::transcript::{Behind, read};

/// JSON of every kind an event may hold, and some that it must not.
fn document() -> impl Strategy<Value = String> {
    let content = select(vec![
        "null",
        "\"\"",
        "\"Hel\"",
        "\"a\\n\\u00e9\\ud83d\\ude00\"",
        "[{\"text\":\"x\"}]",
        "\"lo\"",
    ]);
    let finish = select(vec!["null", "\"stop\"", "\"length\"", "\"\"", "\"tool_calls\"", "7"]);
    let usage = select(vec![
        "null",
        "{}",
        "{\"prompt_tokens\":9,\"completion_tokens\":2}",
        "{\"completion_tokens\":3}",
        "{\"completion_tokens\":4,\"prompt_tokens_details\":{\"cached_tokens\":0}}",
    ]);
    let choice = (0..3_u32, content, finish).prop_map(|(index, content, finish)| {
        format!(r#"{{"index":{index},"delta":{{"content":{content}}},"finish_reason":{finish}}}"#)
    });
    let event = (vec(choice, 0..3), usage, any::<bool>()).prop_map(|(choices, usage, late)| {
        let choices = choices.join(",");
        if late {
            format!(r#"{{"usage":{usage},"choices":[{choices}]}}"#)
        } else {
            format!(r#"{{"choices":[{choices}] , "usage" : {usage}}}"#)
        }
    });
    prop_oneof![
        8 => event,
        1 => select(vec![
            "[DONE]", " [DONE] ", "", "{", "[]", "7", "{\"error\":{\"message\":\"no\"}}",
            "{\"object\":\"error\"}", "{\"choices\":[{\"text\":\"x\"}]}",
            "{\"choices\":[{\"delta\":{\"reasoning\":\"hm\",\"tool_calls\":[{\"function\":{}}]}}]}",
        ]).prop_map(str::to_owned),
    ]
}

/// A body of events, comments and other fields, with line ends of every kind.
fn event_stream() -> impl Strategy<Value = Vec<u8>> {
    let end = select(vec!["\n", "\r\n", "\r"]);
    let before = select(vec![
        "",
        "",
        "",
        ": ping|",
        "event: error|",
        "event: message|id: 7|",
        "event: x|",
        "zz|",
        "data:|",
        "||",
    ]);
    let colon = select(vec![": ", ":", ":  "]);
    let event = (before, colon, document())
        .prop_map(|(before, colon, document)| format!("{before}data{colon}{document}||"));
    let mark = select(vec!["", "", "\u{feff}", "\n"]);
    (mark, vec(event, 0..6), end, any::<bool>()).prop_map(|(mark, events, end, unfinished)| {
        let mut body = mark.to_owned() + &events.concat().replace('|', end);
        if unfinished {
            body.truncate(body.trim_end().len());
        }
        body.into_bytes()
    })
}

/// Events that differ mostly in their text (`$`) and in strings that nobody reads (`~`).
fn alike_events() -> impl Strategy<Value = Vec<String>> {
    let shape = select(vec![
        r#"{"id":"~","choices":[{"index":0,"delta":{"content":"$"},"finish_reason":null}]}"#,
        r#"{"choices":[{"delta":{"role":"~","reasoning":"$","content":null}}],"noise":"~"}"#,
        r#"{"choices":[{"index":1,"text":"$"}],"usage":{"completion_tokens":3},"model":"~"}"#,
        r#"{"choices":[{"delta":{"content":"","tool_calls":[{"function":{"name":"$"}}]}}]}"#,
        r#"{"choices":[{"delta":{"reasoning":"$","reasoning_content":"~"}}]}"#,
        r#"{"choices":[{"delta":{"content":"$","content":"~"},"text":null}]}"#,
        r#"{"choices":[{"text":"$"},{"index":2,"delta":{"refusal":"~"}}]}"#,
        r#"{"choices":[{"text":"$","finish_reason":"~"}],"a~":1}"#,
        r#"{"choices":[{"text":"$"}],"error":"~","object":"~"}"#,
        r#"{"choices":[{"text":"$"}],"usage":"~","detail":"~"} "#,
        r#"{"a":["~"],"choices":[{"delta":{"content":[{"type":"~","text":"$"}]}}]}"#,
        r#"{"id":"~","choices":[{"delta":{},"finish_reason":"stop"}],"usage":null,"a":"$"}"#,
        r#"{"choices":[{"text":"","finish_reason":"$"}],"usage":{"completion_tokens":3},"a":"~"}"#,
        r#"{"choices":[{"delta":{"content":"~"},"finish_reason":"length"}],"error":null}"#,
    ]);
    let fill = || {
        let odd = ["\n", "\\n\n", "\\x", "\t", "\u{1}", "a\\", "\" ", "error", "\\u00", "\\ud83d"];
        let plain = ["a", " word", "\\n", "é", " a longer piece of text", "\\u00e9\\ud83d\\ude00"];
        prop_oneof![
            6 => select(plain.map(str::to_owned).to_vec()),
            1 => select(odd.map(str::to_owned).to_vec()),
            1 => select(vec![String::new(), "x".repeat(33)]),
        ]
    };
    let filled = vec((0..8_u8, fill(), prop_oneof![3 => Just("x".to_owned()), 2 => fill()]), 1..9);
    ([shape.clone(), shape], filled).prop_map(|([usual, rare], filled)| {
        let fill = |(pick, text, noise): &(u8, String, String)| {
            let shape = if *pick == 0 { rare } else { usual };
            shape.replace('$', text).replace('~', noise)
        };
        filled.iter().map(fill).collect()
    })
}

/// `body` cut into chunks after the given numbers of bytes, the rest in one more.
fn chunked(body: &[u8], sizes: &[usize]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = body;
    for (index, &size) in sizes.iter().chain([&body.len()]).enumerate() {
        let (chunk, behind) = rest.split_at(size.min(rest.len()));
        rest = behind;
        if !chunk.is_empty() {
            let extension = ["", ";a=b", " ;c", ""][index % 4];
            out.extend_from_slice(format!("{:0>2X}{extension}\r\n", chunk.len()).as_bytes());
            out.extend_from_slice(chunk);
            out.extend_from_slice(b"\r\n");
        }
    }
    out
}

/// A whole answer, well formed or not far from it.
fn answer() -> impl Strategy<Value = Vec<u8>> {
    let interim = select(vec!["", "", "HTTP/1.1 100 Continue\r\n\r\n", "\r\n"]);
    let status = select(vec!["1.1 200 OK", "1.1 200", "1.0 200 OK", "1.1 429 X", "1.1 204 X"]);
    let kind = select(vec![
        "Content-Type: text/event-stream\r\n",
        "content-type: application/json\r\n",
        "",
        "Content-Type: text/html\r\nX-Fold: a\r\n b\r\n",
        "Connection: close\r\n",
    ]);
    let body = prop_oneof![
        5 => event_stream(),
        1 => document().prop_map(String::into_bytes),
        1 => select(vec!["", "<html>", "busy", " \n"]).prop_map(|text| text.as_bytes().to_vec()),
    ];
    let framing = (0..4_u8, vec(1..40_usize, 0..8));
    let last = select(vec!["0\r\n\r\n", "000;x\r\nDigest: y\r\n\r\n", "0\r\n\r\n!!", "0\r\n", ""]);
    (interim, status, kind, body, framing, last).prop_map(
        |(interim, status, kind, body, (framing, sizes), last)| {
            let mut out = format!("{interim}HTTP/{status}\r\n{kind}").into_bytes();
            match framing {
                0 => {
                    out.extend_from_slice(
                        format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes(),
                    );
                    out.extend_from_slice(&body);
                }
                1 => {
                    out.extend_from_slice(b"\r\n");
                    out.extend_from_slice(&body);
                }
                _ => {
                    out.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
                    out.extend_from_slice(&chunked(&body, &sizes));
                    out.extend_from_slice(last.as_bytes());
                }
            }
            out
        },
    )
}

#[derive(Clone, Debug)]
enum Damage {
    Replace(Index, u8),
    Insert(Index, u8),
    Remove(Index),
    Cut(Index),
    Repeat(Index, Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let byte = prop_oneof![select(b"\r\n\0 :;,{}[]\"\\0aF".to_vec()), any::<u8>(),];
    let at = any::<Index>;
    prop_oneof![
        (at(), byte.clone()).prop_map(|(at, byte)| Damage::Replace(at, byte)),
        (at(), byte).prop_map(|(at, byte)| Damage::Insert(at, byte)),
        at().prop_map(Damage::Remove),
        at().prop_map(Damage::Cut),
        (at(), at()).prop_map(|(from, to)| Damage::Repeat(from, to)),
    ]
}

fn damaged(mut bytes: Vec<u8>, damages: &[Damage]) -> Vec<u8> {
    for damage in damages {
        if bytes.is_empty() {
            break;
        }
        match damage {
            Damage::Replace(at, byte) => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            Damage::Insert(at, byte) => bytes.insert(at.index(bytes.len()), *byte),
            Damage::Remove(at) => drop(bytes.remove(at.index(bytes.len()))),
            Damage::Cut(at) => bytes.truncate(at.index(bytes.len())),
            Damage::Repeat(from, to) => {
                let (from, to) = (from.index(bytes.len()), to.index(bytes.len()));
                let again = bytes[from.min(to)..from.max(to)].to_vec();
                bytes.extend_from_slice(&again);
            }
        }
    }
    bytes
}

/// `bytes` cut at the given places.
fn parts<'a>(bytes: &'a [u8], cuts: &[Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_split_does_not_matter(
        (answer, damages) in (answer(), vec(damage(), 0..4)),
        cuts in vec(any::<Index>(), 0..12),
        reset in any::<bool>(),
    ) {
        let bytes = damaged(answer, &damages);
        let behind = if reset { Behind::Reset } else { Behind::Close };
        let mut reader = AnswerReader::new();
        let whole = read(&mut reader, [bytes.as_slice()], behind).comparable();
        let cut = read(&mut reader, parts(&bytes, &cuts), behind).comparable();
        prop_assert_eq!(&cut, &whole);
        let single = read(&mut reader, bytes.chunks(1), behind).comparable();
        prop_assert_eq!(&single, &whole);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in vec(any::<u8>(), 0..300), http in any::<bool>()) {
        let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n";
        let start: &[u8] = if http { head } else { b"" };
        let bytes = [start, &bytes].concat();
        read(&mut AnswerReader::new(), bytes.chunks(7), Behind::Close);
    }

    #[test]
    fn chunks_are_decoded_as_by_the_reference(
        body in vec(any::<u8>(), 0..60),
        sizes in vec(1..30_usize, 0..6),
        last in select(vec![
            "0\r\n\r\n", "00;x=y\r\nA: b\r\n\r\nrest", "0\r\n", "0 \r\nA\r\n\r\n", "",
        ]),
        damages in vec(damage(), 0..3),
        step in 1..80_usize,
    ) {
        let bytes = damaged([chunked(&body, &sizes), last.into()].concat(), &damages);
        match (decode(&bytes, step), reference_chunks(&bytes)) {
            // The reference looks at whole lines, so it sees a bad one later.
            (None, Some((_, false))) => {}
            (ours, reference) => prop_assert_eq!(ours, reference),
        }
    }

    #[test]
    fn events_are_split_as_by_the_reference(
        stream in event_stream(),
        damages in vec(damage(), 0..4),
        cuts in vec(any::<Index>(), 0..12),
    ) {
        let bytes = damaged(stream, &damages);
        let mut splitter = EventSplitter::new();
        let mut buffer = Vec::new();
        let mut found = Vec::new();
        let mut emit = |event: Event<'_>| found.push((event.name, event.data.to_vec()));
        for part in parts(&bytes, &cuts) {
            splitter.feed(part, &mut buffer, &mut emit).expect("far below the cap");
        }
        splitter.finish(&mut buffer, &mut emit);
        prop_assert_eq!(found, reference_events(&bytes));
    }

    #[test]
    fn ends_that_are_known_say_what_the_parser_says(
        events in alike_events(),
        damages in vec(damage(), 0..3),
        damaged_one in any::<Index>(),
    ) {
        let damaged_one = damaged_one.index(events.len());
        let mut pattern = Pattern::of_ends();
        for (place, event) in events.into_iter().enumerate() {
            let damages = if place == damaged_one { damages.as_slice() } else { &[] };
            let event = damaged(event.into_bytes(), damages);
            let data = event.trim_ascii();
            let mut choices = Vec::new();
            let document = delta::read(data, &mut choices);
            if pattern.match_data(data).is_some() {
                let document = document.expect("only JSON is known");
                let common = pattern.hit();
                let ends: Vec<_> = choices.iter().map(|it| (it.bytes(), it.finish)).collect();
                prop_assert_eq!(ends, vec![(0, common.finish)]);
                prop_assert!(common.finish.is_some() && document.error.is_none());
                prop_assert_eq!(document.usage, common.usage);
                super::said::said(data, &mut |said| panic!("{said:?}"));
            } else if let Ok(document) = document {
                pattern.learn(data, &document, &choices);
            }
        }
    }

    #[test]
    fn events_that_are_known_say_what_the_parser_says(
        events in alike_events(),
        damages in vec(damage(), 0..3),
        damaged_one in any::<Index>(),
    ) {
        let damaged_one = damaged_one.index(events.len());
        let mut pattern = Pattern::new();
        for (place, event) in events.into_iter().enumerate() {
            let damages = if place == damaged_one { damages.as_slice() } else { &[] };
            let event = damaged(event.into_bytes(), damages);
            let data = event.trim_ascii();
            let mut choices = Vec::new();
            let document = delta::read(data, &mut choices);
            if let Some(found) = pattern.match_data(data) {
                let document = document.expect("only JSON is known");
                let common = pattern.hit();
                let contents = choices.iter().filter(|choice| choice.bytes() > 0);
                let said: Vec<_> =
                    contents.map(|it| (it.index, it.kind(), it.bytes(), document.usage)).collect();
                let known = (common.choice, common.kind, found.text, common.usage);
                prop_assert_eq!(said, vec![known]);
                prop_assert!(document.error.is_none());
                prop_assert!(choices.iter().all(|choice| choice.finish.is_none()));
                prop_assert!(!data.contains(&b'\n') && !data.contains(&b'\r'));
                pattern.learn(data, &document, &choices);
                prop_assert_eq!(pattern.match_data(data), Some(found));
            } else if let Ok(document) = document {
                pattern.learn(data, &document, &choices);
            }
        }
    }

    #[test]
    fn streams_of_alike_events_say_what_their_events_say(
        events in alike_events(),
        ends in select(vec!["\n\n", "\n\n", "\r\n\r\n", "\r\r", "\n: x\n\n", " \n\n"]),
        name in select(vec!["", "", "", "event: x\n", "event: error\n"]),
        damages in vec(damage(), 0..2),
        cuts in vec(any::<Index>(), 0..6),
    ) {
        let events = events.iter().map(|event| format!("data: {event}{ends}"));
        let stream = events.collect::<Vec<_>>().join(name);
        let (start, rest) = stream.as_bytes().split_at("data: {".len());
        let stream = [start, &damaged(rest.to_vec(), &damages)].concat();
        let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
        let answer = [head.as_slice(), &stream].concat();
        let said = read(&mut AnswerReader::new(), parts(&answer, &cuts), Behind::Close);
        let (contents, trouble) = reference_contents(&stream);
        prop_assert_eq!(&said.chunks, &contents);
        if let Some(trouble) = trouble {
            prop_assert_eq!(said.class(), trouble);
        } else {
            prop_assert!(matches!(said.class(), Class::Ok | Class::NoFinish));
        }
    }

    #[test]
    fn an_answer_says_the_same_whatever_was_said_before(
        answers in vec((alike_events(), vec(damage(), 0..2), vec(any::<Index>(), 0..3)), 2..5),
        end in select(vec!["data: [DONE]\n\n", "data: [DONE]\r\n\r\n", "data: [DONE]", ""]),
    ) {
        let mut used = AnswerReader::new();
        for (events, damages, cuts) in answers {
            let events: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
            let body = damaged([events.as_str(), end].concat().into_bytes(), &damages);
            let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
            let answer = damaged([head.as_slice(), &body].concat(), &damages);
            let fresh = read(&mut AnswerReader::new(), parts(&answer, &cuts), Behind::Close);
            let again = read(&mut used, parts(&answer, &cuts), Behind::Close);
            prop_assert_eq!(fresh, again);
        }
    }

    #[test]
    fn json_is_accepted_as_by_another_parser(
        document in document(),
        damages in vec(damage(), 0..3),
    ) {
        let bytes = damaged(document.into_bytes(), &damages);
        let mut cursor = Cursor::new(&bytes);
        let accepted = cursor.skip().and_then(|()| cursor.end()).is_ok();
        let other = serde_json::from_slice::<serde_json::Value>(&bytes).is_ok();
        // We do not judge text; every other difference is one of grammar.
        let lenient = str::from_utf8(&bytes).is_err()
            || bytes.iter().any(|&byte| byte < b' ')
            || bytes.windows(2).any(|pair| pair == b"\\u");
        prop_assert!(accepted == other || lenient && accepted, "{accepted} {other}");
    }
}

/// All data if the body is complete or could go on; `None` if it is malformed.
fn decode(bytes: &[u8], step: usize) -> Option<(Vec<u8>, bool)> {
    let mut decoder = ChunkDecoder::new();
    let mut data = Vec::new();
    for mut part in bytes.chunks(step) {
        loop {
            match decoder.next(&mut part).ok()? {
                Piece::Data(piece) => data.extend_from_slice(piece),
                Piece::More => break,
                Piece::End => return Some((data, true)),
            }
        }
    }
    Some((data, false))
}

#[test]
fn events_are_known_only_where_events_begin() {
    let event = "data: {\"choices\":[{\"text\":\"a\"}]}\n\n";
    for before in [":", ": x\n", "event: error\n", "event: x\n", "data: x\n", "data:\n", "\r", "x"]
    {
        let stream = format!("{event}{event}{before}{event}{event}");
        let answer = format!("HTTP/1.1 200\r\nContent-Type: text/event-stream\r\n\r\n{stream}");
        let expected = reference_contents(stream.as_bytes());
        let mut reader = AnswerReader::new();
        for cut in 0..=answer.len() {
            let (first, second) = answer.as_bytes().split_at(cut);
            let said = read(&mut reader, [first, second], Behind::Close);
            assert_eq!(said.chunks, expected.0, "{before:?} {cut}");
            assert_eq!(said.class(), expected.1.unwrap_or(Class::NoFinish), "{before:?} {cut}");
        }
    }
}

/// Choice, kind, tokens and bytes of content events.
type Contents = Vec<(u16, u8, u32, u32)>;

/// All content events and the first trouble, by parsing every event.
fn reference_contents(stream: &[u8]) -> (Contents, Option<Class>) {
    let (mut found, mut trouble) = (Vec::new(), None);
    let mut tokens = 0;
    for (name, data) in reference_events(stream) {
        let mut choices = Vec::new();
        let data = data.trim_ascii();
        match delta::read(data, &mut choices) {
            _ if data == b"[DONE]" => break,
            Err(_) if name == Name::Message && !data.is_empty() => {
                trouble = trouble.or(Some(Class::BadEvent));
            }
            Err(_) if name != Name::Error => {}
            Ok(document) => {
                let given_up = choices.iter().any(|choice| choice.given_up.is_some());
                if name == Name::Error || document.error.is_some() || given_up {
                    trouble = trouble.or(Some(Class::ErrorEvent));
                }
                choices.retain(|choice| choice.bytes() > 0);
                let contents = u32::try_from(choices.len()).expect("few choices");
                let generated = document.usage.map_or(u32::MAX, |usage| usage.completion_tokens);
                let mut more = if generated == u32::MAX { 0 } else { generated };
                more = more.saturating_sub(tokens + contents);
                tokens += contents + if contents > 0 { more } else { 0 };
                for choice in choices {
                    let (kind, bytes) = (choice.kind().0, choice.bytes());
                    found.push((choice.index, kind, 1 + std::mem::take(&mut more), bytes));
                }
            }
            Err(_) => trouble = trouble.or(Some(Class::ErrorEvent)),
        }
    }
    (found, trouble)
}

#[test]
fn every_split_of_a_small_answer_says_the_same() {
    let body = "data: {\"choices\":[{\"text\":\"a\"}]}\r\n\r\nevent: error\ndata: x\n\n";
    let answer = format!(
        "HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    let bytes = answer.as_bytes();
    let mut reader = AnswerReader::new();
    let whole = read(&mut reader, [bytes], Behind::Close);
    assert_eq!((whole.class(), whole.chunks.len()), (Class::ErrorEvent, 1));
    for first in 0..=bytes.len() {
        for second in first..=bytes.len() {
            let parts = [&bytes[..first], &bytes[first..second], &bytes[second..]];
            assert_eq!(read(&mut reader, parts, Behind::Close), whole, "{first} {second}");
        }
    }
}
