//! Rendering as its callers see it: plans in, bytes out.

use std::num::NonZero;

use onbeat_shared::trace::blocks::BlockIds;
use onbeat_shared::trace::record::Record;
use onbeat_shared::trace::recorded::{Content, Recorded, Texts};
use onbeat_shared::trace::session::SessionNames;
use onbeat_shared::trace::{Format, Source, Trace};
use onbeat_shared::units::{RequestIndex, SessionIndex, TraceNanos};
use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, proptest};
use serde_json::Value;

use super::{
    Bodies, Context, Endpoint, Preview, RenderError, RenderOptions, render, settle_lengths,
};
use crate::limits::WRITE_PARTS_MAX;
use crate::plan::{Plan, PlanOptions, build};

/// Rows of (input tokens, block ids), one a millisecond.
pub(super) fn trace(rows: &[(u32, Vec<u64>)], block_tokens: u32) -> Trace {
    let mut blocks = BlockIds::default();
    let mut records = Vec::new();
    for (place, (input_tokens, ids)) in (0_u32..).zip(rows) {
        let first_block = blocks.len() as u64;
        ids.iter().for_each(|&id| blocks.push(id));
        records.push(Record {
            row: u64::from(place) + 1,
            at: TraceNanos(i64::from(place) * 1_000_000),
            input_tokens: *input_tokens,
            output_tokens: (place != 3).then_some(5 + place % 2),
            session: SessionIndex(place),
            turn: 0,
            first_block,
            block_count: u32::try_from(ids.len()).expect("few"),
        });
    }
    Trace {
        source: Source {
            name: "t.jsonl".to_owned(),
            sha256: String::new(),
            format: Format::Mooncake,
            rows: rows.len() as u64,
            bytes: 0,
        },
        sessions: SessionNames::Fresh(u32::try_from(records.len()).expect("few")),
        records,
        blocks,
        block_tokens,
        recorded: Recorded::default(),
        warnings: Vec::new(),
    }
}

pub(super) fn planned(trace: &Trace) -> Plan {
    build(trace, &PlanOptions::default()).expect("a plan")
}

pub(super) fn request(bodies: &Bodies, request: u32) -> Vec<u8> {
    bodies.parts(RequestIndex(request)).flatten().copied().collect()
}

/// The body as a plan shows it.
fn append_body(
    plan: &Plan,
    trace: &Trace,
    options: &RenderOptions,
    request: RequestIndex,
    out: &mut Vec<u8>,
) {
    Preview::new(plan, trace, options).expect("turns in order").append(request, out);
}

/// Head and body of a request.
fn split(bodies: &Bodies, number: u32) -> (String, String) {
    let text = String::from_utf8(request(bodies, number)).expect("ASCII");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head ends with an empty line");
    (head.to_owned(), body.to_owned())
}

fn prompt(bodies: &Bodies, number: u32) -> String {
    let body: Value = serde_json::from_str(&split(bodies, number).1).expect("JSON");
    let text = body["messages"][0]["content"].as_str().or(body["prompt"].as_str());
    text.expect("a prompt").to_owned()
}

#[test]
fn bodies_have_aiperfs_keys_in_aiperfs_order() {
    let trace = trace(&[(2, vec![]), (1, vec![]), (0, vec![]), (1, vec![])], 16);
    let plan = planned(&trace);
    let body = |options: &RenderOptions, number: u32| {
        let bodies = render(&plan, &trace, options).expect("rendered");
        let prompt = prompt(&bodies, number);
        split(&bodies, number).1.replace(&prompt, "…")
    };
    let chat = RenderOptions { model: "a\"b".to_owned(), ..RenderOptions::default() };
    assert_eq!(
        body(&chat, 0),
        r#"{"messages":[{"role":"user","content":"…"}],"model":"a\"b","stream":true,"max_completion_tokens":5,"stream_options":{"include_usage":true}}"#
    );
    assert_eq!(
        body(&chat, 3),
        r#"{"messages":[{"role":"user","content":"…"}],"model":"a\"b","stream":true,"stream_options":{"include_usage":true}}"#
    );
    let legacy = RenderOptions { legacy_max_tokens: true, include_usage: false, ..chat.clone() };
    assert_eq!(
        body(&legacy, 1),
        r#"{"messages":[{"role":"user","content":"…"}],"model":"a\"b","stream":true,"max_tokens":6}"#
    );
    let whole = RenderOptions { endpoint: Endpoint::Completions, streaming: false, ..chat };
    assert_eq!(body(&whole, 1), r#"{"prompt":"…","model":"a\"b","stream":false,"max_tokens":6}"#);
}

#[test]
fn equal_ids_have_equal_text_and_tails_are_their_own() {
    let rows = [
        (1024, vec![7, 8]),
        (1024, vec![7, 9]),
        (512, vec![7]),
        (600, vec![7]),
        (600, vec![7]),
        (520, vec![7, 8]),
    ];
    let trace = trace(&rows, 512);
    let bodies = render(&planned(&trace), &trace, &RenderOptions::default()).expect("rendered");
    let prompts: Vec<String> = (0..6).map(|number| prompt(&bodies, number)).collect();
    let shared = |a: &str, b: &str| {
        let common = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
        a[..common].matches(' ').count()
    };
    let block = &prompts[2];
    assert_eq!(block.matches(' ').count(), 512);
    assert!(prompts.iter().all(|prompt| prompt.starts_with(block.as_str())));
    // The words after the block may agree by chance, but not eight of them.
    for (a, b) in [(0, 1), (3, 4), (0, 3), (1, 3)] {
        assert!((512..520).contains(&shared(&prompts[a], &prompts[b])), "{a} {b}");
    }
    // A cut block is a prefix of the whole one.
    assert!(prompts[0].starts_with(&prompts[5]));
    assert_eq!(prompts[5].matches(' ').count(), 520);
}

#[test]
fn heads_count_the_body_and_name_the_request() {
    let trace = trace(&[(3, vec![1]), (5, vec![1])], 16);
    let plan = planned(&trace);
    let options = RenderOptions { run_id: "run".to_owned(), ..RenderOptions::default() };
    let bodies = render(&plan, &trace, &options).expect("rendered");
    for number in 0..2 {
        let (head, body) = split(&bodies, number);
        assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost:8000\r\n"));
        assert!(head.contains(&format!("X-Request-ID: run-{number}\r\n")));
        assert!(head.contains(&format!("X-Correlation-ID: session_{number:06}\r\n")));
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())));
        let index = RequestIndex(number);
        assert_eq!(bodies.body_bytes(index), body.len() as u64);
        assert_eq!(bodies.request_bytes(index), (head.len() + 4 + body.len()) as u64);
    }
    let rows: Vec<_> = bodies.plan_rows(&plan).collect();
    assert_eq!(rows[1].body_bytes, NonZero::new(bodies.body_bytes(RequestIndex(1))));
    assert_eq!(rows[1].row, plan.rows[1].row);
}

#[test]
fn neighbours_are_joined_and_shared_prefixes_stay_in_one_piece() {
    let rows = [(64, vec![1, 2, 3, 4]), (80, vec![1, 2, 3, 4, 5]), (16, vec![3])];
    let trace = trace(&rows, 16);
    let bodies = render(&planned(&trace), &trace, &RenderOptions::default()).expect("rendered");
    // Common head, own head, one text, closing.
    let counts: Vec<usize> = (0..3).map(|r| bodies.part_count(RequestIndex(r))).collect();
    assert_eq!(counts, [4, 4, 4]);
    assert!(bodies.memory_bytes() < 4_000);
}

#[test]
fn a_text_of_too_many_pieces_is_copied() {
    let forward: Vec<u64> = (0..3_000).collect();
    let backward: Vec<u64> = (0..3_000).rev().collect();
    let rows = [(48_000, forward), (48_000, backward)];
    let trace = trace(&rows, 16);
    let plan = planned(&trace);
    let bodies = render(&plan, &trace, &RenderOptions::default()).expect("rendered");
    assert_eq!(bodies.part_count(RequestIndex(0)), 4);
    assert_eq!(bodies.part_count(RequestIndex(1)), 3);
    assert!(bodies.copied_bytes() > 48_000 * 4);
    let mut direct = Vec::new();
    append_body(&plan, &trace, &RenderOptions::default(), RequestIndex(1), &mut direct);
    assert!(request(&bodies, 1).ends_with(&direct));
    let budget = bodies.memory_bytes() - 1;
    let options = RenderOptions { budget_bytes: Some(budget), ..RenderOptions::default() };
    let error = render(&plan, &trace, &options).expect_err("the copy does not fit");
    assert!(matches!(error, RenderError::OverBudget { needed, .. } if needed == budget + 1));
}

#[test]
fn what_does_not_fit_the_budget_is_refused_with_its_size() {
    let trace = trace(&[(100_000, vec![]), (100_000, vec![])], 16);
    let options = RenderOptions { budget_bytes: Some(10_000), ..RenderOptions::default() };
    let error = render(&planned(&trace), &trace, &options).expect_err("too large");
    let RenderError::OverBudget { needed, budget: 10_000, named: true } = error else {
        panic!("{error}")
    };
    assert!((990_000..1_020_000).contains(&needed), "{needed}");
}

/// Traces whose ids fit their lengths: some cut, some with tails, some repeated inside a row.
pub(super) fn traces() -> impl Strategy<Value = Trace> {
    let row = (0_u32..90, prop::collection::vec(0_u64..40, 0..6), 0_u32..4);
    (1_u32..24, prop::collection::vec(row, 1..40)).prop_map(|(block_tokens, rows)| {
        let rows: Vec<(u32, Vec<u64>)> = rows
            .into_iter()
            .map(|(tokens, mut ids, wide)| {
                ids.truncate(tokens.div_ceil(block_tokens) as usize);
                let widened = |id: &mut u64| *id |= u64::from(wide == 3) << 40;
                ids.iter_mut().for_each(widened);
                (tokens, ids)
            })
            .collect();
        trace(&rows, block_tokens)
    })
}

#[test]
fn copies_share_text_inside_themselves_and_none_with_each_other() {
    let trace = trace(&[(1_024, vec![7, 8]), (1_024, vec![7, 9]), (20, vec![])], 512);
    let options = PlanOptions { copies: 3, ..PlanOptions::default() };
    let plan = build(&trace, &options).expect("a plan");
    let bodies = render(&plan, &trace, &RenderOptions::default()).expect("rendered");
    let whole = render(&planned(&trace), &trace, &RenderOptions::default()).expect("rendered");
    let mut starts = Vec::new();
    for copy in 0..3 {
        let own: Vec<u32> = (0..9).filter(|&r| plan.copy(RequestIndex(r)) == copy).collect();
        let prompts: Vec<String> = own.iter().map(|&r| prompt(&bodies, r)).collect();
        let long: Vec<&String> = prompts.iter().filter(|prompt| prompt.len() > 1_000).collect();
        assert!(long.len() == 2 && long[0] != long[1] && long[0][..2_000] == long[1][..2_000]);
        starts.extend(prompts.iter().map(|prompt| prompt[..50].to_owned()));
        for (&request, prompt) in own.iter().zip(&prompts) {
            assert_eq!(prompt.matches(' ').count(), if prompt.len() > 1_000 { 1_024 } else { 20 });
            let mut direct = Vec::new();
            let request = RequestIndex(request);
            append_body(&plan, &trace, &RenderOptions::default(), request, &mut direct);
            assert!(self::request(&bodies, request.0).ends_with(&direct));
        }
        if copy == 0 {
            assert_eq!(prompts, [0, 1, 2].map(|r| prompt(&whole, r)), "the trace itself");
        }
    }
    starts.sort_unstable();
    starts.dedup();
    assert_eq!(starts.len(), 6, "two texts a copy begin differently, and no other copy's alike");
}

/// A trace that recorded its prompts, the way Baseten's do.
pub(super) fn with_prompts(mut trace: Trace, prompts: &[&str]) -> Trace {
    let mut texts = Texts::for_records(trace.records.len());
    for (record, prompt) in (0..).zip(prompts) {
        texts.put(record, prompt);
    }
    trace.recorded = Recorded {
        prompts: true,
        texts,
        block_tokens: trace.records.iter().map(|record| (record.row != 2).then_some(64)).collect(),
        ..Recorded::default()
    };
    trace
}

#[test]
fn recorded_prompts_stand_in_bodies_with_their_hints() {
    let rows = [(9, vec![1, u64::MAX]), (0, vec![]), (5, vec![]), (7, vec![3])];
    let prompts = ["A \"quoted\"\tword\n\u{1}\u{e9}\u{1f600}", "", "plain", "x"];
    let mut trace = with_prompts(trace(&rows, 64), &prompts);
    let plan = planned(&trace);
    let options = RenderOptions {
        extra: vec![("temperature".to_owned(), 0.5.into()), ("max_tokens".to_owned(), 99.into())],
        ..RenderOptions::default()
    };
    let options = options.for_trace(&trace, true).expect("nothing collides");
    let bodies = render(&plan, &trace, &options).expect("rendered");
    let body = |number: u32| split(&bodies, number).1;
    let escaped = "A \\\"quoted\\\"\\tword\\n\\u0001\u{e9}\u{1f600}";
    let head =
        |prompt: &str| format!("{{\"prompt\":\"{prompt}\",\"model\":\"default\",\"stream\":true");
    let usage = "\"stream_options\":{\"include_usage\":true}}";
    let expected = [
        format!(
            "{},\"max_tokens\":99,\"temperature\":0.5,\"min_tokens\":5,\
             \"hash_ids\":[1,18446744073709551615],\"block_size\":64,{usage}",
            head(escaped)
        ),
        format!("{},\"max_tokens\":99,\"temperature\":0.5,\"min_tokens\":6,{usage}", head("")),
    ];
    assert_eq!([body(0), body(1)], expected);
    assert_eq!(prompt(&bodies, 0), prompts[0], "what is meant is what was recorded");
    for row in &plan.rows {
        let mut direct = Vec::new();
        append_body(&plan, &trace, &options, row.request, &mut direct);
        assert!(request(&bodies, row.request.0).ends_with(&direct));
    }
    let bare = RenderOptions { omit_kv_hints: true, extra: Vec::new(), ..options.clone() };
    let without = render(&plan, &trace, &bare).expect("rendered");
    let expected = format!("{},\"max_tokens\":5,\"min_tokens\":5,{usage}", head(escaped));
    assert_eq!(split(&without, 0).1, expected);
    trace.recorded.signed_ids = true;
    let signed = render(&plan, &trace, &options).expect("rendered");
    assert!(split(&signed, 0).1.contains("\"hash_ids\":[1,-1],"));
}

#[test]
fn rows_that_hold_messages_or_bodies_are_sent_as_they_stand() {
    let mut trace = trace(&[(2, vec![]), (0, vec![]), (0, vec![]), (0, vec![])], 16);
    let contents = [Content::Words, Content::Prompt, Content::Messages, Content::Body];
    let mut texts = Texts::for_records(4);
    texts.put(1, "Hello \"there\"");
    texts.put_json(2, "[ {\"role\":\"user\",\"content\":\"x\"} ]");
    texts.put_json(3, "{\"model\": \"own\",\"n\":[1]}");
    let mut members = Texts::for_records(4);
    members.put_json(1, "null {\"top_k\":7,\"max_completion_tokens\":1}");
    members.put_json(2, "[{\"type\":\"function\"}] {\"temperature\":2,\"n\":1}");
    let contents = contents.to_vec();
    trace.recorded = Recorded { contents, texts, members, dialect: true, ..Recorded::default() };
    let plan = planned(&trace);
    let extra = vec![("temperature".to_owned(), 1.into())];
    let options = RenderOptions { extra, ..RenderOptions::default() };
    let options = options.for_trace(&trace, true).expect("chat");
    let bodies = render(&plan, &trace, &options).expect("rendered");
    let body = |number: u32| split(&bodies, number).1;
    let usage = "\"stream_options\":{\"include_usage\":true}}";
    assert_eq!(prompt(&bodies, 0).matches(' ').count(), 2);
    assert_eq!(
        body(1),
        format!(
            "{{\"messages\":[{{\"role\":\"user\",\"content\":\"Hello \\\"there\\\"\"}}],\"model\":\
             \"default\",\"stream\":true,\"max_completion_tokens\":1,\"temperature\":1,\"top_k\":7,{usage}"
        )
    );
    assert_eq!(
        body(2),
        format!(
            "{{\"messages\":[ {{\"role\":\"user\",\"content\":\"x\"}} ],\"model\":\"default\",\"stream\":\
             true,\"tools\":[{{\"type\":\"function\"}}],\"max_completion_tokens\":5,\"temperature\":2,\
             \"n\":1,{usage}"
        )
    );
    assert_eq!(body(3), "{\"model\": \"own\",\"n\":[1]}");
    for row in &plan.rows {
        let mut direct = Vec::new();
        append_body(&plan, &trace, &options, row.request, &mut direct);
        assert!(request(&bodies, row.request.0).ends_with(&direct));
        assert_eq!(bodies.body_bytes(row.request), direct.len() as u64);
    }
    let completions = RenderOptions { endpoint: Endpoint::Completions, ..RenderOptions::default() };
    let refused = completions.for_trace(&trace, true).expect_err("messages");
    assert_eq!(refused, RenderError::MessagesToCompletions);
    (trace.records[2].session, trace.records[2].turn) = (trace.records[1].session, 1);
    let refused = RenderOptions::default().for_trace(&trace, true).expect_err("two kinds");
    let words = "line 3: field \"session_id\": one session has turns";
    assert!(refused.to_string().contains(words), "{refused}");
    let alone = RenderOptions { context: Some(Context::Alone), ..RenderOptions::default() };
    assert!(alone.for_trace(&trace, true).is_ok());
}

#[test]
fn members_are_merged_in_aiperfs_order_whatever_replaces_them() {
    let mut trace = trace(&[(0, vec![]), (0, vec![]), (0, vec![]), (0, vec![])], 16);
    let mut texts = Texts::for_records(4);
    let mut members = Texts::for_records(4);
    for record in 0..4 {
        texts.put_json(record, "[1]");
        members.put_json(record, "[2] {}");
    }
    members.put_json(2, "null {\"tools\":[4]}");
    let contents = vec![Content::Messages; 4];
    trace.recorded = Recorded { contents, texts, members, dialect: true, ..Recorded::default() };
    let bodies = |extra: &[(&str, Value)]| {
        let extra = extra.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        let options = RenderOptions { extra, include_usage: false, ..RenderOptions::default() };
        let mut plan = planned(&trace);
        settle_lengths(&mut plan, &trace, &options);
        let bodies = render(&plan, &trace, &options).expect("rendered");
        let start = "{\"messages\":[1],\"model\":\"default\",\"stream\":true,";
        let rest = |number| split(&bodies, number).1.strip_prefix(start).expect("same").to_owned();
        [rest(0), rest(2), rest(3)]
    };
    let key = "max_completion_tokens";
    assert_eq!(
        bodies(&[("tools", 3.into()), ("n", 1.into()), (key, 9.into())]),
        [
            r#""tools":3,"max_completion_tokens":9,"n":1}"#,
            r#""max_completion_tokens":9,"tools":[4],"n":1}"#,
            // A row without a length has none of ours that could be replaced.
            r#""tools":3,"n":1,"max_completion_tokens":9}"#,
        ]
    );
    assert_eq!(
        bodies(&[("min_tokens", 2.into()), (key, Value::Null)])[0],
        r#""tools":[2],"max_completion_tokens":null,"min_tokens":2}"#
    );
}

#[test]
fn copies_of_recorded_prompts_share_no_prefix() {
    let trace = with_prompts(trace(&[(9, vec![5]), (9, vec![5])], 64), &["Once upon", "Once more"]);
    let options = PlanOptions { copies: 2, ..PlanOptions::default() };
    let plan = build(&trace, &options).expect("a plan");
    let bodies = render(&plan, &trace, &RenderOptions::default()).expect("rendered");
    let of_copy = |copy: u32| {
        let own = (0..4).filter(|&number| plan.copy(RequestIndex(number)) == copy);
        own.map(|number| {
            let body: Value = serde_json::from_str(&split(&bodies, number).1).expect("JSON");
            (prompt(&bodies, number), body["hash_ids"][0].as_u64().expect("an id"))
        })
        .collect::<Vec<_>>()
    };
    let (first, second) = (of_copy(0), of_copy(1));
    assert!(first.iter().all(|(prompt, id)| prompt.starts_with("Once") && *id == 5), "{first:?}");
    let mark = second[0].0.split_once('\n').expect("a line of its own").0.to_owned();
    for (prompt, id) in &second {
        assert!(prompt.starts_with(&format!("{mark}\nOnce")) && *id == second[0].1, "{second:?}");
    }
    assert!(mark.matches(' ').count() == 4 && second[0].1 != 5);
}

#[test]
fn members_that_rows_decide_are_refused() {
    let recorded = with_prompts(trace(&[(1, vec![])], 64), &["x"]);
    let refused = |key: &str, trace: &Trace, omit_kv_hints: bool, min_tokens: bool| {
        let extra = vec![(key.to_owned(), 1.into())];
        let options = RenderOptions { extra, omit_kv_hints, ..RenderOptions::default() };
        options.for_trace(trace, min_tokens).err().map(|error| error.to_string())
    };
    let words = refused("min_tokens", &recorded, false, true).expect("refused");
    assert!(words.contains("pass --no-force-min-tokens"), "{words}");
    assert_eq!(refused("min_tokens", &recorded, false, false), None);
    assert!(refused("hash_ids", &recorded, false, true).is_some());
    assert_eq!(refused("block_size", &recorded, true, true), None);
    assert_eq!(refused("min_tokens", &trace(&[(1, vec![])], 64), false, true), None);
    assert!(refused("messages", &recorded, true, false).is_some());
    let extra = ["block_size", "temperature", "hash_ids"].map(|key| (key.to_owned(), 1.into()));
    let options = RenderOptions { extra: extra.to_vec(), ..RenderOptions::default() };
    let words = options.for_trace(&recorded, false).expect_err("two of them").to_string();
    assert!(
        words.contains("hash_ids: ") && words.contains("; --extra-inputs block_size: "),
        "{words}"
    );
}

proptest! {
    #[test]
    fn every_prompt_has_exactly_its_words(trace in traces(), seed in any::<u64>()) {
        let plan = planned(&trace);
        for endpoint in [Endpoint::Chat, Endpoint::Completions] {
            let options = RenderOptions { endpoint, seed, ..RenderOptions::default() };
            let bodies = render(&plan, &trace, &options).expect("rendered");
            for row in &plan.rows {
                let prompt = prompt(&bodies, row.request.0);
                let words = prompt.split(' ').skip(1).filter(|word| !word.is_empty()).count();
                prop_assert_eq!(Some(u32::try_from(words).expect("few")), row.input_tokens);
                prop_assert_eq!(prompt.matches(' ').count(), words);
                prop_assert!(bodies.part_count(row.request) <= WRITE_PARTS_MAX);
                let mut direct = Vec::new();
                append_body(&plan, &trace, &options, row.request, &mut direct);
                prop_assert!(request(&bodies, row.request.0).ends_with(&direct));
            }
        }
    }

    #[test]
    fn the_number_of_threads_leaves_no_trace(trace in traces(), seed in any::<u64>()) {
        let plan = planned(&trace);
        let rendered = |threads| {
            let threads = NonZero::new(threads).expect("some");
            let options = RenderOptions { seed, threads, ..RenderOptions::default() };
            let bodies = render(&plan, &trace, &options).expect("rendered");
            let all = 0..u32::try_from(plan.rows.len()).expect("few");
            all.map(|number| request(&bodies, number)).collect::<Vec<_>>()
        };
        prop_assert_eq!(rendered(1), rendered(8));
    }
}

#[test]
fn many_chunks_come_out_the_same_on_any_number_of_threads() {
    // Two million words: eight chunks, of which neighbours share blocks.
    let rows: Vec<(u32, Vec<u64>)> =
        (0..500).map(|row| (4_096, (row * 4..row * 4 + 8).collect())).collect();
    let trace = trace(&rows, 512);
    let plan = planned(&trace);
    let rendered = |threads| {
        let threads = NonZero::new(threads).expect("some");
        render(&plan, &trace, &RenderOptions { threads, ..RenderOptions::default() })
            .expect("rendered")
    };
    let (one, many) = (rendered(1), rendered(8));
    assert!(one.chunks.len() > 4, "{}", one.chunks.len());
    assert!(one.chunks == many.chunks && one.parts == many.parts);
}
