//! `cargo x demo-trace`: writes the trace that `onbeat demo` replays, the same bytes every time.
//!
//! The trace is of our own making, in Bailian's format, small and short but shaped like real
//! traffic: conversations that grow turn by turn, system prompts that many of them share, requests
//! that come alone and some that come at one instant. Only whole numbers are computed with, so
//! every machine writes the same file; `--check` says whether the one in the repository is that
//! file.

use std::collections::HashMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Where the trace is.
const ASSET: &str = "engine/assets/demo_trace.jsonl";
/// The whole trace depends on this number.
const SEED: u64 = 20_251_129;
/// Nothing arrives after this many milliseconds.
const SPAN_MS: u64 = 10_000;
/// Conversations begin so many milliseconds apart on average, when they begin alone.
const LONE_GAP_MS: u64 = 90;
/// Instants at which several conversations begin together, and how many do.
const BURSTS: [(u64, u64); 5] = [(1_500, 6), (3_200, 10), (5_000, 8), (6_900, 12), (8_400, 6)];
/// Tokens of one block.
const BLOCK: u64 = 16;
/// Tokens of the system prompts; how often each is used, in sixteenths.
const SYSTEM_PROMPTS: [(u64, u64); 3] = [(320, 8), (128, 5), (48, 3)];
/// No prompt is longer, in tokens.
const PROMPT_MAX: u64 = 1_400;
/// No conversation has more turns.
const TURNS_MAX: u64 = 6;

/// Entry point: writes the trace, or with `--check` compares it.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    let path = root.join(ASSET);
    match arguments {
        [] => fs::write(&path, text()).map_err(|error| format!("{ASSET}: {error}")),
        [check] if check == "--check" => {
            let found = fs::read_to_string(&path).map_err(|error| format!("{ASSET}: {error}"))?;
            if found == text() {
                return Ok(());
            }
            Err(format!("{ASSET} is not what `cargo x demo-trace` writes"))
        }
        _ => Err("usage: cargo x demo-trace [--check]".to_owned()),
    }
}

/// A request before chats are numbered.
struct Request {
    at_ms: u64,
    conversation: u64,
    turn: u64,
    input: u64,
    output: u64,
    kind: &'static str,
    /// Block ids by name: what fills a block decides whether two are the same.
    blocks: Vec<BlockName>,
}

/// What makes a block itself: the system prompt or conversation it belongs to, its place, and for a
/// last block that is not full the turn that left it so.
type BlockName = (u64, u64, Option<u64>);

/// The trace's text.
fn text() -> String {
    let mut dice = Dice(SEED);
    let mut starts: Vec<u64> =
        BURSTS.iter().flat_map(|&(at, many)| (0..many).map(move |_| at)).collect();
    let mut at_ms = 0;
    while at_ms < SPAN_MS {
        starts.push(at_ms);
        at_ms += dice.gap(LONE_GAP_MS);
    }
    starts.sort_unstable();
    let mut requests = Vec::new();
    for (&start, conversation) in starts.iter().zip(0..) {
        converse(&mut dice, conversation, start, &mut requests);
    }
    requests.sort_by_key(|request| request.at_ms);
    written(&requests)
}

/// Adds the turns of one conversation.
fn converse(dice: &mut Dice, conversation: u64, start_ms: u64, requests: &mut Vec<Request>) {
    let (system, system_tokens) = dice.system_prompt();
    let kind = ["text", "text", "text", "search", "file"][dice.below(5)];
    let mut at_ms = start_ms;
    let mut history = system_tokens;
    for turn in 1..=TURNS_MAX {
        let input = history + dice.between(16, 64) * dice.between(1, 6);
        if at_ms >= SPAN_MS || input > PROMPT_MAX {
            return;
        }
        let output = dice.between(8, 40) * dice.between(1, 3);
        let full = input / BLOCK;
        let name = |place: u64| match place {
            place if (place + 1) * BLOCK <= system_tokens => (system, place, None),
            place if place < full => (1_000 + conversation, place, None),
            place => (1_000 + conversation, place, Some(turn)),
        };
        let blocks = (0..input.div_ceil(BLOCK)).map(name).collect();
        requests.push(Request { at_ms, conversation, turn, input, output, kind, blocks });
        if dice.below(100) < 40 {
            return;
        }
        history = input + output;
        at_ms += 400 + dice.gap(900);
    }
}

/// The requests as lines, chats and blocks numbered in order of appearance.
fn written(requests: &[Request]) -> String {
    let mut numbers: HashMap<BlockName, usize> = HashMap::new();
    let mut last_chat: HashMap<u64, usize> = HashMap::new();
    let mut text = String::new();
    for (chat, request) in requests.iter().enumerate() {
        let parent = last_chat.insert(request.conversation, chat);
        let parent = parent.map_or_else(|| "-1".to_owned(), |parent| parent.to_string());
        let ids: Vec<String> = request
            .blocks
            .iter()
            .map(|name| {
                let next = numbers.len();
                numbers.entry(*name).or_insert(next).to_string()
            })
            .collect();
        let Request { at_ms, turn, input, output, kind, .. } = request;
        writeln!(
            text,
            "{{\"chat_id\": {chat}, \"parent_chat_id\": {parent}, \"timestamp\": {}.{:03}, \
             \"input_length\": {input}, \"output_length\": {output}, \"type\": \"{kind}\", \
             \"turn\": {turn}, \"hash_ids\": [{}]}}",
            at_ms / 1000,
            at_ms % 1000,
            ids.join(", ")
        )
        .expect("a String takes everything");
    }
    text
}

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From zero to one below `end`; the bias of the remainder does not matter here.
    fn below(&mut self, end: usize) -> usize {
        let drawn = self.draw() % end as u64;
        usize::try_from(drawn).expect("below a usize")
    }

    /// From `first` to `last`.
    fn between(&mut self, first: u64, last: u64) -> u64 {
        first + self.draw() % (last - first + 1)
    }

    /// A gap of about `mean`, spread as between independent arrivals: each of up to ten halvings as
    /// likely as not, and anything within one.
    fn gap(&mut self, mean: u64) -> u64 {
        let halvings = u64::from((self.draw() | 1 << 10).trailing_zeros());
        (halvings * 1_000 + self.draw() % 1_000) * mean / 1_500
    }

    /// Which system prompt, and its tokens.
    fn system_prompt(&mut self) -> (u64, u64) {
        let mut left = self.draw() % SYSTEM_PROMPTS.iter().map(|(_, share)| share).sum::<u64>();
        for (&(tokens, share), number) in SYSTEM_PROMPTS.iter().zip(0..) {
            if left < share {
                return (number, tokens);
            }
            left -= share;
        }
        unreachable!("the shares cover every draw")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundled_trace_is_what_this_writes() {
        assert!(
            include_str!("../../engine/assets/demo_trace.jsonl") == text(),
            "run `cargo x demo-trace`"
        );
    }

    #[test]
    fn it_is_small_and_has_what_a_demo_shows() {
        let text = text();
        let rows: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert!((250..400).contains(&rows.len()), "{} rows", rows.len());
        assert!(text.len() < 400_000, "{} bytes", text.len());
        let number = |row: &serde_json::Value, key: &str| row[key].as_u64().expect("whole");
        for row in &rows {
            let input = number(row, "input_length");
            assert!((64..=PROMPT_MAX).contains(&input), "{row}");
            assert!((8..=120).contains(&number(row, "output_length")), "{row}");
            let ids = row["hash_ids"].as_array().expect("a list").len() as u64;
            assert_eq!(ids, input.div_ceil(BLOCK));
        }
        assert!(rows.iter().filter(|row| row["parent_chat_id"] != -1).count() > 60);
        let last = rows.last().expect("rows")["timestamp"].as_f64().expect("seconds");
        assert!((9.0..10.0).contains(&last), "{last}");
    }
}
