//! Conversations of every odd shape in, prompts with exactly their words out.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use onbeat_shared::log::record::{UNKNOWN_TOKENS, Usage};
use onbeat_shared::trace::Trace;
use onbeat_shared::trace::agentic::{Entry, Scope};
use onbeat_shared::units::{RequestIndex, RunNanos, SessionIndex};
use proptest::prelude::{
    Just, ProptestConfig, Strategy, any, prop, prop_assert, prop_assert_eq, proptest,
};
use proptest::test_runner::TestCaseError;
use serde_json::Value;

use super::{Replaced, SceneOptions, Scenes, Stage};
use crate::plan::script::{Cue, ScriptOptions, Scripts, Turn, scripts};
use crate::policy::options::ReplyMode;
use crate::policy::players::{Act, Player, Who};
use crate::render::supply::{Source, Supply};
use crate::render::{Endpoint, RenderError, RenderOptions, When};

mod odd;
mod played;
mod shown;

/// Conversations of a property: each is read from a file, and all pairs of prompts are compared.
fn cases() -> ProptestConfig {
    ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() }
}

/// Tokens of a block in most of these conversations.
const BLOCK: u32 = 8;

/// Reads conversations, each in a file of its own.
fn read(texts: &[String]) -> Trace {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (number, text) in texts.iter().enumerate() {
        std::fs::write(folder.path().join(format!("{number:03}.json")), text).expect("written");
    }
    let options = crate::trace::TraceOptions::default();
    crate::trace::read(folder.path(), &options).expect("reads")
}

/// A conversation of entries, as files write it.
fn conversation(id: &str, scope: &str, prefix: u32, entries: &[String]) -> String {
    format!(
        "{{\"id\":\"{id}\",\"models\":[],\"block_size\":{BLOCK},\"hash_id_scope\":\"{scope}\",\
         \"tool_tokens\":{prefix},\"system_tokens\":0,\"requests\":[{}]}}",
        entries.join(",")
    )
}

fn request(input: u32, output: u32, ids: &[u64], more: &str) -> String {
    format!("{{\"t\":1,\"in\":{input},\"out\":{output},\"hash_ids\":{ids:?}{more}}}")
}

fn agent(id: &str, entries: &[String]) -> String {
    format!(
        "{{\"type\":\"subagent\",\"agent_id\":\"{id}\",\"t\":1,\"requests\":[{}]}}",
        entries.join(",")
    )
}

fn scripted(trace: &Trace, warm_prefix_share: f64) -> Scripts {
    let options =
        ScriptOptions { max_context: u32::MAX, warm_prefix_share, ..ScriptOptions::default() };
    scripts(trace, &options).expect("conversations to play")
}

fn options(reply: ReplyMode) -> SceneOptions {
    SceneOptions { reply, stream_all: false, tool_role: false, cores: 1, users: 4, players: 100 }
}

fn rendered() -> RenderOptions {
    RenderOptions { run_id: "r".to_owned(), ..RenderOptions::default() }
}

fn scenes(trace: &Trace, scripts: &Scripts, reply: ReplyMode) -> Arc<Scenes> {
    let scenes = Scenes::new(trace, scripts, &rendered(), options(reply));
    Arc::new(scenes.expect("it fits"))
}

/// A message: who says what.
type Message = (String, String);

/// What went over the wire: the head, and the messages of the body.
#[derive(Clone, Debug, PartialEq)]
struct Sent {
    head: String,
    body: Value,
    messages: Vec<Message>,
}

impl Sent {
    fn of(bytes: &[u8]) -> Self {
        let text = String::from_utf8(bytes.to_vec()).expect("UTF-8");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let length = head.split("Content-Length: ").nth(1).expect("a length");
        assert_eq!(length.parse(), Ok(body.len()), "{head}");
        Self { head: head.to_owned(), ..Self::of_body(body) }
    }

    fn of_body(body: &str) -> Self {
        let body: Value = serde_json::from_str(body).expect("JSON");
        let said = |message: &Value, key: &str| message[key].as_str().map(str::to_owned);
        let message = |message: &Value| {
            Some((said(message, "role")?, said(message, "content").unwrap_or_default()))
        };
        let messages = body["messages"].as_array().expect("messages").iter().map(message);
        let messages = messages.collect::<Option<_>>().expect("each has a role");
        Self { head: String::new(), body, messages }
    }

    /// All words, as a server counts them: a message's last word ends with it.
    fn words(&self) -> Vec<&str> {
        self.messages.iter().flat_map(|(_, text)| text.split_whitespace()).collect()
    }

    fn roles(&self) -> Vec<&str> {
        self.messages.iter().map(|(role, _)| role.as_str()).collect()
    }
}

fn common<T: PartialEq>(one: &[T], other: &[T]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

/// The request of a turn as a player's act.
fn act(scripts: &Scripts, conversation: u32, part: u16, turn: Turn, copy: u32) -> Act {
    let player = u32::from(part) + 50 * (conversation % 2);
    let own = &scripts.scripts[conversation as usize].parts[usize::from(part)];
    Act {
        who: Who {
            player: Player(player),
            seat: conversation % 2,
            user: conversation + 1,
            session: SessionIndex(1_000 * copy + own.session.0),
            conversation,
            part,
        },
        turn,
        at: RunNanos(0),
        due: RunNanos(0),
        own_due: RunNanos(0),
        after: None,
        copy,
        base_played: false,
        ideal_cached: 0,
        ideal_set: 0,
    }
}

/// The turns of all parts of a conversation, in document order, with the parts' numbers.
fn turns(scripts: &Scripts, conversation: usize) -> Vec<(u16, Turn)> {
    let mut turns: Vec<(u16, Turn)> = Vec::new();
    for (part, own) in (0..).zip(&scripts.scripts[conversation].parts) {
        turns.extend(own.cues.iter().filter_map(Cue::turn).map(|turn| (part, *turn)));
    }
    turns.sort_by_key(|(_, turn)| turn.record);
    turns
}

fn out(supply: &Supply, request: RequestIndex) -> Sent {
    let parts = supply.parts(request);
    assert_eq!(parts.len(), parts.clone().count());
    let bytes: Vec<u8> = parts.flatten().copied().collect();
    assert_eq!(supply.request_bytes(request), bytes.len() as u64);
    let parts: Vec<&[u8]> = supply.parts(request).collect();
    for step in [1, 47] {
        for (number, &part) in parts.iter().enumerate().step_by(step) {
            assert!(!part.is_empty());
            assert_eq!(supply.share(request, number).bytes(), part);
            assert_eq!(supply.parts(request).skip(number).len(), parts.len() - number);
        }
        assert_eq!(supply.parts(request).nth(parts.len() / 2), Some(parts[parts.len() / 2]));
        assert!(supply.share(request, parts.len()).bytes().is_empty());
    }
    Sent::of(&bytes)
}

fn usage(tokens: u32, reasoning: u32) -> Usage {
    Usage {
        prompt_tokens: UNKNOWN_TOKENS,
        completion_tokens: tokens,
        cached_tokens: UNKNOWN_TOKENS,
        reasoning_tokens: reasoning,
    }
}

/// So many words of an answer.
fn answer(tokens: u32) -> String {
    (0..tokens).fold(String::new(), |mut text, number| {
        let blank = if number == 0 { "" } else { " " };
        write!(text, "{blank}said{number}").expect("a String takes everything");
        text
    })
}

fn supply(scenes: &Arc<Scenes>) -> Supply {
    Supply::of(&Source::Users(Arc::clone(scenes)), onbeat_shared::units::CoreIndex(0))
}
