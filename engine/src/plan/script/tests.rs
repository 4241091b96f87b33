//! Scripts of small conversations, and their bases against a plain search.

use onbeat_shared::trace::Trace;
use onbeat_shared::units::NANOS_PER_SECOND;

use super::*;
use crate::plan::{PlanMode, templates};

/// A request that starts at `t` seconds, with blocks.
fn request(t: i64, tokens: u32, ids: &[u32], more: &str) -> String {
    format!("{{\"t\":{t},\"in\":{tokens},\"out\":3,\"hash_ids\":{ids:?}{more}}}")
}

fn agent(more: &str, requests: &[String]) -> String {
    format!("{{\"type\":\"subagent\",\"t\":1{more},\"requests\":[{}]}}", requests.join(","))
}

/// The trace of some conversations, each with members and requests.
fn trace(conversations: &[(&str, Vec<String>)]) -> Trace {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (number, (members, requests)) in conversations.iter().enumerate() {
        let text = format!("{{\"models\":[]{members},\"requests\":[{}]}}", requests.join(","));
        std::fs::write(folder.path().join(format!("c{number}.json")), text).expect("written");
    }
    crate::trace::read(folder.path(), &crate::trace::TraceOptions::default()).expect("reads")
}

fn turns(part: &Part) -> Vec<&Turn> {
    part.cues.iter().filter_map(Cue::turn).collect()
}

#[test]
fn a_conversation_becomes_parts_in_document_order() {
    let one = |t| request(t, 64, &[1], "");
    let inner = agent("", &[one(0)]);
    let first = agent(",\"status\":\"async_launched\"", &[one(0), inner, agent("", &[])]);
    let second = agent("", &[one(0), one(3)]);
    let requests = vec![one(0), first, agent("", &[]), second, one(9)];
    let trace = trace(&[("", requests)]);
    let options = ScriptOptions { detach_async: true, ..ScriptOptions::default() };
    let found = scripts(&trace, &options).expect("played");
    let script = &found.scripts[0];
    let parts: Vec<_> = script.parts.iter().map(|part| (part.parent, part.number)).collect();
    assert_eq!(parts, [(None, 0), (Some(0), 1), (Some(1), 1), (Some(0), 2)]);
    let names: Vec<_> = script.parts.iter().map(|part| trace.session_name(part.session)).collect();
    assert_eq!(names, ["c0", "c0-SA1", "c0-SA1-SA1", "c0-SA2"]);
    let cues = &script.parts[0].cues;
    assert_eq!(cues[1], Cue::Agent { part: 1, detached: true });
    assert_eq!(cues[2], Cue::Nothing, "an empty one has its place and no part");
    assert_eq!(cues[3], Cue::Agent { part: 3, detached: false });
    assert_eq!(script.parts[1].cues[2], Cue::Nothing);
    assert_eq!((script.requests, script.parts[0].requests, script.width), (6, 2, 4));
    assert_eq!(script.records, 0..6);
    let attached = scripts(&trace, &ScriptOptions::default()).expect("played");
    assert_eq!(attached.scripts[0].parts[0].cues[1], Cue::Agent { part: 1, detached: false });
}

#[test]
fn the_width_counts_detached_sub_agents_beside_all_that_comes_later() {
    let one = || request(0, 64, &[1], "");
    let beside = agent(",\"status\":\"async_launched\"", &[one()]);
    let starts = agent("", &[one(), beside]);
    let more = || agent("", &[one()]);
    let trace = trace(&[("", vec![one(), starts, one(), more(), agent("", &[]), more(), one()])]);
    let width = |detach_async: bool| {
        let options = ScriptOptions { detach_async, ..ScriptOptions::default() };
        scripts(&trace, &options).expect("played").scripts[0].width
    };
    assert_eq!((width(false), width(true)), (3, 4));
}

#[test]
fn the_pool_is_what_the_options_let_in() {
    let of = |tokens| request(0, tokens, &[], "");
    let conversations = [
        (",\"tool_tokens\":100,\"system_tokens\":31", vec![of(64), of(200)]),
        (",\"tool_tokens\":9000,\"system_tokens\":1", vec![of(101), of(64)]),
        (",\"tool_tokens\":7000,\"system_tokens\":1", vec![agent("", &[of(64)]), of(9)]),
        ("", vec![agent("", &[])]),
        ("", vec![agent("", &[of(200)]), of(50), of(60)]),
    ];
    let trace = trace(&conversations);
    let options = ScriptOptions { max_context: 100, min_requests: 2, ..ScriptOptions::default() };
    let found = scripts(&trace, &options).expect("some are played");
    let kept: Vec<_> = found.scripts.iter().map(|script| script.in_pool).collect();
    assert_eq!(kept, [true, false, false, false, true]);
    let facts =
        PoolFacts { conversations: 5, kept: 2, empty: 1, too_long: 1, too_few: 1, elsewhere: 0 };
    assert_eq!(found.pool, facts);
    assert_eq!(found.warm_tokens, 65, "half of 131, of what is played, cut off");
    let too_long: Vec<_> =
        turns(&found.scripts[0].parts[0]).iter().map(|turn| turn.too_long).collect();
    assert_eq!(too_long, [false, true], "a later one is too long only when it is reached");
    let none = ScriptOptions { max_context: 1, ..options };
    let words = scripts(&trace, &none).expect_err("none is left").to_string();
    assert!(words.contains("4 conversations start with more input tokens"), "{words}");
    let plan = templates(&trace, &found);
    assert!(plan.warnings[0].contains("1 conversation has no request"), "{:?}", plan.warnings);
    let words = ["has no", "starts with more", "has fewer"];
    assert!(words.iter().all(|words| plan.warnings[0].contains(words)), "{:?}", plan.warnings);
}

#[test]
fn the_warm_prefix_is_a_share_cut_to_whole_tokens() {
    let members = ",\"tool_tokens\":10000,\"system_tokens\":2001";
    let trace = trace(&[(members, vec![request(0, 64, &[1], "")])]);
    for (share, tokens) in [(0.5, 6_000), (0.0, 0), (1.0, 12_001), (0.3, 3_600)] {
        let options = ScriptOptions { warm_prefix_share: share, ..ScriptOptions::default() };
        assert_eq!(scripts(&trace, &options).expect("played").warm_tokens, tokens, "{share}");
    }
}

#[test]
fn only_a_request_with_one_before_it_in_its_part_waits() {
    let think = ",\"think_time\":4,\"api_time\":2";
    let ask = |t| request(t, 64, &[1], think);
    let requests = vec![agent("", &[ask(0), ask(5)]), ask(0), agent("", &[ask(0)]), ask(3)];
    let trace = trace(&[("", requests)]);
    let found = scripts(&trace, &ScriptOptions::default()).expect("played");
    let waits = |part: usize| -> Vec<(From, i64)> {
        let turns = turns(&found.scripts[0].parts[part]);
        turns.iter().map(|turn| (turn.wait.from, turn.wait.ns / NANOS_PER_SECOND)).collect()
    };
    assert_eq!(waits(0), [(From::End, 0), (From::End, 3)], "cut to the gap of three seconds");
    assert_eq!(waits(1), [(From::End, 0), (From::End, 4)]);
    assert_eq!(waits(2), [(From::End, 0)]);
    assert_eq!(found.clamped, 1);
    let kept = ScriptOptions { clamp_think: false, ..ScriptOptions::default() };
    assert_eq!(scripts(&trace, &kept).expect("played").clamped, 0);
}

#[test]
fn bases_are_the_longest_common_prefix_and_the_latest_of_several() {
    let ask = |tokens, ids: &[u32]| request(0, tokens, ids, "");
    let trace = trace(&[(
        "",
        vec![
            ask(150, &[1, 2]),       // 0
            ask(200, &[1, 2, 3]),    // 1 goes on from all of 0
            ask(140, &[1, 2]),       // 2 is shorter than 0: two blocks
            ask(192, &[1, 2, 4]),    // 3 goes on from all of 2, the latest
            ask(70, &[9]),           // 4 shares nothing
            ask(260, &[1, 2, 3, 8]), // 5 pulls back to all of 1
            ask(260, &[1, 2, 3, 8]), // 6 is the same as 5
            ask(128, &[1, 7]),       // 7 forks after one block
            ask(60, &[]),            // 8 has no blocks
        ],
    )]);
    let found = scripts(&trace, &ScriptOptions::default()).expect("played");
    let script = &found.scripts[0];
    let turns = turns(&script.parts[0]);
    let base = |at: usize| turns[at].base.map(|base| (base.record, base.keep, base.whole));
    assert_eq!(base(0), None);
    assert_eq!(base(1), Some((0, 150, true)));
    assert_eq!(base(2), Some((1, 128, false)));
    assert_eq!(base(3), Some((2, 140, true)));
    assert_eq!(base(4), None);
    assert_eq!(base(5), Some((1, 200, true)));
    assert_eq!(base(6), Some((5, 260, true)));
    assert_eq!(base(7), Some((6, 64, false)));
    assert_eq!(base(8), None);
    let shared = |at: usize| -> Vec<_> {
        script.shared_of(turns[at]).iter().map(|own| (own.record, own.tokens)).collect()
    };
    assert_eq!(shared(5), [(1, 192), (3, 128)]);
    assert_eq!(shared(7), [(6, 64)]);
    assert!(shared(8).is_empty() && !turns[8].has_blocks && turns[7].has_blocks);
    let with_previous: Vec<_> =
        turns.iter().map(|turn| (turn.with_previous, turn.overlap)).collect();
    let expected =
        [(0, 0), (128, 128), (128, 128), (128, 128), (0, 0), (0, 0), (256, 256), (64, 64), (0, 0)];
    assert_eq!(with_previous, expected);
}

#[test]
fn of_sub_agents_side_by_side_the_first_shares_too() {
    let ask = |ids: &[u32]| request(0, 300, ids, "");
    let chain = |from: u32| [ask(&[1, 2, from]), ask(&[1, 2, from, from + 1])];
    let side_by_side = [agent("", &chain(10)), agent("", &chain(20)), agent("", &chain(30))];
    let trace = trace(&[("", [vec![ask(&[9])], side_by_side.to_vec()].concat())]);
    let found = scripts(&trace, &ScriptOptions::default()).expect("played");
    let script = &found.scripts[0];
    let shared = |part: usize, at: usize| -> Vec<_> {
        let turn = turns(&script.parts[part])[at];
        script.shared_of(turn).iter().map(|own| (own.record, own.tokens)).collect()
    };
    assert!(shared(1, 0).is_empty());
    assert_eq!(shared(1, 1), [(1, 192)], "the one before it was sent");
    // Record 2 is sent when record 1 has its answer, and record 3 leaves with record 1.
    assert_eq!(shared(2, 0), [(2, 128), (1, 128)]);
    assert_eq!(shared(2, 1), [(3, 192)]);
    assert_eq!(shared(3, 0), [(4, 128), (3, 128)]);
}

#[test]
fn the_set_figure_counts_blocks_in_any_place() {
    let ask = |ids: &[u32]| request(0, 300, ids, "");
    let found = trace(&[("", vec![ask(&[1, 2, 3, 4]), ask(&[1, 9, 4, 2])])]);
    let found = scripts(&found, &ScriptOptions::default()).expect("played");
    let turns = turns(&found.scripts[0].parts[0]);
    assert_eq!((turns[1].with_previous, turns[1].overlap), (64, 192));
}

/// Every earlier record is looked at, one after the other.
fn plain(trace: &Trace, own: &Range<u32>, record: u32) -> Vec<(u32, u32)> {
    let blocks = |record: u32| trace.blocks_of(&trace.records[record as usize]);
    let mut found: Vec<(u32, u32)> = Vec::new();
    for other in (own.start..record).rev() {
        let common = blocks(other).common_prefix(blocks(record));
        let common = u32::try_from(common).expect("few");
        if common > found.last().map_or(0, |&(_, most)| most) {
            found.push((other, common));
        }
    }
    found.reverse();
    found
}

#[test]
fn the_tree_finds_what_a_plain_search_finds() {
    let mut seed = 7_u64;
    let mut draw = |below: u32| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from(seed >> 33).expect("31 bits") % below
    };
    let mut conversations = Vec::new();
    for _ in 0..40 {
        let mut ids: Vec<u32> = Vec::new();
        let requests = (0..60).map(|_| {
            ids.truncate(draw(12) as usize);
            ids.extend((0..draw(5)).map(|_| draw(4)));
            let blocks = u32::try_from(ids.len()).expect("few");
            request(0, 64 * blocks + draw(64), &ids, "")
        });
        conversations.push(("", requests.collect()));
    }
    let trace = trace(&conversations);
    let found = scripts(&trace, &ScriptOptions::default()).expect("played");
    for script in &found.scripts {
        for turn in turns(&script.parts[0]) {
            let expected = plain(&trace, &script.records, turn.record);
            let shared = script.shared_of(turn);
            let found: Vec<_> = shared.iter().map(|own| (own.record, own.tokens / 64)).collect();
            assert_eq!(found, expected, "of record {}", turn.record);
            let base = turn.base.map(|base| base.record);
            assert_eq!(base, expected.first().map(|&(record, _)| record));
            assert!(turn.base.is_none_or(|base| base.keep <= turn.input_tokens));
        }
    }
}

#[test]
fn templates_are_the_records_one_to_one() {
    let think = ",\"think_time\":4,\"api_time\":2,\"ttft\":1";
    let ask = |t, ids: &[u32]| request(t, 200, ids, think);
    let inner = agent("", &[ask(0, &[1, 2, 3])]);
    let zero = "{\"t\":99,\"in\":10,\"out\":0,\"hash_ids\":[]}".to_owned();
    let requests = vec![ask(0, &[1, 2]), inner, ask(30, &[1, 2, 3]), zero];
    let trace = trace(&[("", requests)]);
    let found = scripts(&trace, &ScriptOptions::default()).expect("played");
    let plan = templates(&trace, &found);
    assert_eq!(plan.mode, PlanMode::Users);
    assert_eq!(plan.record_of, [0, 1, 2, 3]);
    assert_eq!(plan.sessions, ["c0", "c0-SA1"]);
    let rows: Vec<_> = plan
        .rows
        .iter()
        .map(|row| {
            let after = row.after.map(|after| after.0);
            let think_s = row.think_ns.map(|ns| ns / NANOS_PER_SECOND);
            let cached = (row.ideal_cached_tokens, row.ideal_set_tokens);
            (row.session.0, after, think_s, cached, row.max_tokens)
        })
        .collect();
    let expected = [
        (0, None, None, (Some(0), Some(0)), Some(3)),
        (1, Some(0), Some(0), (Some(128), Some(0)), Some(3)),
        (0, Some(0), Some(4), (Some(192), Some(128)), Some(3)),
        (0, Some(2), Some(60), (Some(0), Some(0)), Some(1)),
    ];
    assert_eq!(rows, expected);
    assert!(plan.rows.iter().all(|row| row.due.is_none()));
    assert_eq!(plan.recorded[0].duration_ns, Some(2 * NANOS_PER_SECOND));
    let recorded = plan.recorded.iter().map(|row| (row.place, row.first_token_ns.is_some()));
    let expected = [(Some(0), true), (Some(0), true), (Some(2), true), (Some(3), false)];
    assert_eq!(recorded.collect::<Vec<_>>(), expected);
}
