//! Trace files as their writers make them: a few rows of any format, members in any order.

use std::fmt::Write;

use onbeat_shared::dice::Dice;

/// A small file of a format that is drawn.
pub(super) fn file(dice: &mut Dice) -> String {
    match dice.below(12) {
        0..=2 => rows(dice, mooncake),
        3 | 4 => rows(dice, bailian),
        5 | 6 => rows(dice, dialect),
        7 => rows(dice, body),
        8 => table(dice),
        9 => agentic(dice),
        10 => otel(dice),
        _ => rows(dice, ragpulse),
    }
}

/// One to four rows, with the ends of lines that files have.
fn rows(dice: &mut Dice, row: fn(&mut Dice, u64) -> String) -> String {
    let count = 1 + dice.below(4);
    let end = ["\n", "\n", "\n", "\r\n", "\n\n"][dice.place(5)];
    let rows: Vec<String> = (0..count).map(|place| row(dice, place)).collect();
    let mark = if dice.below(32) == 0 { "\u{feff}" } else { "" };
    let last = if dice.below(4) == 0 { "" } else { end };
    format!("{mark}{}{last}", rows.join(end))
}

/// An object of members in any order, some of them left out, twice or unknown.
fn object(dice: &mut Dice, mut members: Vec<(&str, String)>) -> String {
    if dice.below(6) == 0 && !members.is_empty() {
        members.swap_remove(dice.place(members.len()));
    }
    if dice.below(6) == 0 {
        members.push(("unknown", value(dice, 2)));
    }
    if dice.below(24) == 0 && !members.is_empty() {
        let (key, _) = members[dice.place(members.len())];
        members.push((key, value(dice, 1)));
    }
    if dice.below(3) == 0 {
        for place in (1..members.len()).rev() {
            members.swap(place, dice.place(place + 1));
        }
    }
    let space = ["", "", " "][dice.place(3)];
    let members: Vec<String> =
        members.iter().map(|(key, value)| format!("\"{key}\":{space}{value}")).collect();
    format!("{{{}}}", members.join(&format!(",{space}")))
}

/// Any JSON.
fn value(dice: &mut Dice, depth: u64) -> String {
    match dice.below(if depth == 0 { 6 } else { 8 }) {
        0 => "null".to_owned(),
        1 => "true".to_owned(),
        2 => number(dice, 1 << 20),
        3 => odd_number(dice),
        4 | 5 => text(dice),
        6 => format!("[{}]", value(dice, depth - 1)),
        _ => format!("{{\"a\":{}}}", value(dice, depth - 1)),
    }
}

/// Usually a whole number below a bound.
fn number(dice: &mut Dice, bound: u64) -> String {
    if dice.below(12) == 0 { odd_number(dice) } else { dice.below(bound).to_string() }
}

fn odd_number(dice: &mut Dice) -> String {
    const ODD: &[&str] = &[
        "0",
        "-0",
        "-1",
        "1.0",
        "1.5",
        "1e3",
        "1E-2",
        "2.50",
        "4294967295",
        "4294967296",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "1e308",
        "1e-400",
        "0.1234567891",
        "123456789.123456789",
        "\"7\"",
        "[]",
        "340282366920938463463374607431768211456",
    ];
    ODD[dice.place(ODD.len())].to_owned()
}

fn text(dice: &mut Dice) -> String {
    const TEXTS: &[&str] = &[
        "\"\"",
        "\"a\"",
        "\"\\u00e9\\n\"",
        "\"\\ud83d\\ude00\"",
        "\"q\\\"b\\\\\"",
        "\"\u{e9}\"",
        "\"0\"",
        "\"\\u0000\"",
        "\"two words\"",
    ];
    TEXTS[dice.place(TEXTS.len())].to_owned()
}

fn ids(dice: &mut Dice, count: u64) -> String {
    let ids: Vec<String> = (0..count).map(|_| number(dice, 50)).collect();
    format!("[{}]", ids.join(", "))
}

/// As many ids as an input of so many tokens has, usually.
fn blocks(dice: &mut Dice, input: u64, tokens: u64) -> u64 {
    if dice.below(10) == 0 { dice.below(4) } else { input.div_ceil(tokens) }
}

fn mooncake(dice: &mut Dice, place: u64) -> String {
    let input = dice.below(2_000);
    let count = blocks(dice, input, 512);
    let members = vec![
        ("timestamp", if dice.below(3) == 0 { number(dice, 9_000) } else { place.to_string() }),
        ("input_length", if dice.below(16) == 0 { odd_number(dice) } else { input.to_string() }),
        ("output_length", number(dice, 500)),
        ("hash_ids", ids(dice, count)),
    ];
    object(dice, members)
}

fn bailian(dice: &mut Dice, place: u64) -> String {
    let input = dice.below(60);
    let count = blocks(dice, input, 16);
    let parent = if dice.below(2) == 0 { "-1".to_owned() } else { number(dice, place + 1) };
    let members = vec![
        ("chat_id", if dice.below(12) == 0 { number(dice, 4) } else { place.to_string() }),
        ("parent_chat_id", parent),
        ("timestamp", format!("{place}.{}", dice.below(1_000))),
        ("input_length", input.to_string()),
        ("output_length", number(dice, 500)),
        ("type", text(dice)),
        ("turn", number(dice, 3)),
        ("hash_ids", ids(dice, count)),
    ];
    object(dice, members)
}

fn messages(dice: &mut Dice) -> String {
    let content = text(dice);
    format!("[{{\"role\":\"user\",\"content\":{content}}}]")
}

fn dialect(dice: &mut Dice, place: u64) -> String {
    let mut members = Vec::new();
    if dice.below(3) > 0 {
        members.push(("session_id", ["\"s\"", "\"t\"", "7", "null"][dice.place(4)].to_owned()));
    }
    match dice.below(3) {
        0 => members.push(("delay", number(dice, 900))),
        _ => members.push(("timestamp", place.to_string())),
    }
    match dice.below(4) {
        0 => members.push(("text_input", text(dice))),
        1 => members.push(("messages", messages(dice))),
        2 => members.push(("payload", body(dice, place))),
        _ => members.push(("input_length", number(dice, 900))),
    }
    if dice.below(5) == 0 {
        let other = ["tools", "extra", "message_mode", "hash_ids"][dice.place(4)];
        members.push((other, value(dice, 2)));
    }
    members.push(("output_length", number(dice, 50)));
    object(dice, members)
}

fn body(dice: &mut Dice, place: u64) -> String {
    let mut members = vec![("model", text(dice))];
    match dice.below(3) {
        0 => members.push(("prompt", text(dice))),
        _ => members.push(("messages", messages(dice))),
    }
    if dice.below(3) == 0 {
        members.push(("timestamp", place.to_string()));
    }
    if dice.below(3) == 0 {
        members.push(("max_tokens", number(dice, 90)));
    }
    object(dice, members)
}

fn ragpulse(dice: &mut Dice, place: u64) -> String {
    let pieces = ["sys_prompt", "passages_ids", "history", "web_search", "user_input"];
    let pieces = pieces.map(|piece| {
        let count = dice.below(3);
        (piece, ids(dice, count))
    });
    let members = vec![
        ("timestamp", format!("\"{}\"", place * 9)),
        ("input_length", number(dice, 90)),
        ("output_length", number(dice, 9)),
        ("hash_ids", object(dice, pieces.to_vec())),
        ("session_id", text(dice)),
    ];
    object(dice, members)
}

fn table(dice: &mut Dice) -> String {
    let azure = dice.below(2) == 0;
    let mut text = String::new();
    text.push_str(if azure {
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    } else {
        "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Log Type\n"
    });
    for place in 0..1 + dice.below(4) {
        let (input, output) = (number(dice, 900), number(dice, 90));
        let line = if azure {
            format!("2023-11-16 18:15:{:02}.6805900,{input},{output}", 40 + place)
        } else {
            let session = ["s1", "", "\"s,2\""][dice.place(3)];
            let took = number(dice, 60);
            format!("{place}.5,{session},{took},GPT-4,{input},{output},API log")
        };
        writeln!(text, "{line}").expect("a String takes everything");
    }
    text
}

fn agentic(dice: &mut Dice) -> String {
    let mut requests = Vec::new();
    for place in 0..1 + dice.below(4) {
        requests.push(call(dice, place, true));
    }
    let members = vec![
        ("id", text(dice)),
        ("models", format!("[{}]", text(dice))),
        ("block_size", ["64", "16", "1", "null"][dice.place(4)].to_owned()),
        ("hash_id_scope", ["\"local\"", "\"global\"", "null"][dice.place(3)].to_owned()),
        ("tool_tokens", number(dice, 90)),
        ("system_tokens", number(dice, 90)),
        ("requests", format!("[{}]", requests.join(","))),
    ];
    object(dice, members)
}

fn call(dice: &mut Dice, place: u64, deeper: bool) -> String {
    if deeper && dice.below(5) == 0 {
        let inner = call(dice, place, false);
        let members = vec![
            ("t", place.to_string()),
            ("type", "\"subagent\"".to_owned()),
            ("agent_id", text(dice)),
            ("requests", format!("[{inner}]")),
        ];
        return object(dice, members);
    }
    let input = dice.below(200);
    let count = blocks(dice, input, 64);
    let members = vec![
        ("t", format!("{place}.25")),
        ("type", ["\"s\"", "\"n\"", "\"x\""][dice.place(3)].to_owned()),
        ("model", text(dice)),
        ("in", input.to_string()),
        ("out", number(dice, 90)),
        ("hash_ids", ids(dice, count)),
        ("stop", ["\"tool_use\"", "\"end_turn\"", "null"][dice.place(3)].to_owned()),
        ("think_time", number(dice, 9)),
        ("api_time", number(dice, 9)),
    ];
    object(dice, members)
}

fn otel(dice: &mut Dice) -> String {
    let mut spans = Vec::new();
    for place in 0..1 + dice.below(3) {
        let attributes = vec![
            ("session.id", text(dice)),
            ("gen_ai.request.model", text(dice)),
            ("gen_ai.usage.input_tokens", number(dice, 90)),
            ("gen_ai.usage.completion_tokens", number(dice, 9)),
            (
                "gen_ai.input.messages",
                "\"[{\\\"role\\\":\\\"user\\\",\\\"content\\\":\\\"a\\\"}]\"".to_owned(),
            ),
        ];
        let members = vec![
            ("start_time", format!("\"2026-02-25T12:00:0{place}.5\"")),
            ("end_time", "\"2026-02-25T12:00:09Z\"".to_owned()),
            ("attributes", object(dice, attributes)),
        ];
        spans.push(object(dice, members));
    }
    format!("{{\"spans\":[{}]}}", spans.join(","))
}
