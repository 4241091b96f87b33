//! Heads, roles, streams and refusals.

use super::{
    Arc, Endpoint, RenderError, RenderOptions, ReplyMode, RequestIndex, SceneOptions, Scenes, Sent,
    When, act, agent, conversation, options, out, read, rendered, request, scripted, supply, turns,
};
use crate::plan::script::{ScriptOptions, scripts};
use crate::render::{Destination, Generation, Secret};

const TOOL: &str = ",\"input_types\":[\"tool_result\"]";
const WHOLE: &str = ",\"type\":\"n\"";

fn small() -> String {
    let first = request(8, 2, &[1], WHOLE);
    let inner = agent("", &[request(9, 1, &[9], "")]);
    let outer = agent("agent 001", &[request(8, 1, &[8], ""), inner]);
    conversation("t 1", "local", 0, &[first, outer, request(20, 0, &[1, 2], TOOL)])
}

fn sent(render: &RenderOptions, own: SceneOptions, copy: u32) -> Vec<Sent> {
    let trace = read(&[small()]);
    let scripts = scripted(&trace, 0.0);
    let scenes = Arc::new(Scenes::new(&trace, &scripts, render, own).expect("it fits"));
    let mut supply = supply(&scenes);
    let mut all = Vec::new();
    for (number, (part, turn)) in (0..).zip(turns(&scripts, 0)) {
        supply.compose(RequestIndex(number), &act(&scripts, 0, part, turn, copy), 0);
        all.push(out(&supply, RequestIndex(number)));
    }
    all
}

#[test]
fn heads_name_the_user_the_conversation_and_the_request() {
    let all = sent(&rendered(), options(ReplyMode::Live), 0);
    let tails: Vec<&str> = all
        .iter()
        .map(|sent| {
            let tail = sent.head.split_once("X-Request-ID").expect("named").1;
            tail.split_once("\r\nContent-Length").expect("framed").0
        })
        .collect();
    assert_eq!(
        tails,
        [
            ": r-0\r\nX-Correlation-ID: User-001\r\nX-Session-ID: t%201",
            ": r-1\r\nX-Correlation-ID: User-001-SA1\r\nX-Session-ID: t%201:agent%20001",
            ": r-2\r\nX-Correlation-ID: User-001-SA1-SA1\r\nX-Session-ID: t%201:agent%20001:SA1",
            ": r-3\r\nX-Correlation-ID: User-001\r\nX-Session-ID: t%201",
        ]
    );
    let all = sent(&rendered(), options(ReplyMode::Live), 2);
    assert!(all[1].head.contains("X-Session-ID: t%201:agent%20001#3\r\n"), "{}", all[1].head);
    let session_header = "x-session-id".to_owned();
    let all = sent(&RenderOptions { session_header, ..rendered() }, options(ReplyMode::Live), 0);
    assert!(!all[0].head.contains("User-001"), "{}", all[0].head);
    let headers = vec![("x-session-id".to_owned(), Secret::new("mine"))];
    let all = sent(&RenderOptions { headers, ..rendered() }, options(ReplyMode::Live), 0);
    assert!(!all[0].head.contains("t%201") && all[0].head.contains("mine"));
}

#[test]
fn answers_are_streamed_as_recorded_unless_told_otherwise() {
    let streams = |render: &RenderOptions, own: SceneOptions| {
        let all = sent(render, own, 0);
        let kind = |sent: &Sent| {
            let accept = sent.head.contains("Accept: text/event-stream");
            assert_eq!(sent.body["stream"], accept);
            assert_eq!(sent.body.get("stream_options").is_some(), accept);
            accept
        };
        all.iter().map(kind).collect::<Vec<_>>()
    };
    let live = options(ReplyMode::Live);
    assert_eq!(streams(&rendered(), live), [false, true, true, true]);
    let all = SceneOptions { stream_all: true, ..live };
    assert_eq!(streams(&rendered(), all), [true; 4]);
    let none = RenderOptions { streaming: false, ..rendered() };
    assert_eq!(streams(&none, all), [false; 4]);
}

#[test]
fn bodies_have_their_members_in_order() {
    let extra = vec![("temperature".to_owned(), 0.5.into()), ("n".to_owned(), 1.into())];
    let generation = Generation::default().for_model("Qwen3-Coder-mock");
    let render = RenderOptions { extra, generation, ..rendered() };
    let all = sent(&render, options(ReplyMode::Recorded), 0);
    let keys: Vec<&String> = all[3].body.as_object().expect("an object").keys().collect();
    assert_eq!(
        keys,
        [
            "messages",
            "model",
            "max_tokens",
            "stream",
            "stream_options",
            "temperature",
            "top_p",
            "top_k",
            "repetition_penalty",
            "n"
        ]
    );
    assert_eq!(all[3].body["temperature"], 0.5, "the user's own counts");
    assert_eq!(all[3].body["top_k"], 20);
    assert_eq!(all[3].body["max_tokens"], 1, "none recorded is one");
    assert_eq!(all[3].roles(), ["user", "assistant", "user"]);
}

#[test]
fn what_tools_answered_is_said_by_a_tool_where_that_is_wanted() {
    let tool = SceneOptions { tool_role: true, ..options(ReplyMode::Recorded) };
    let all = sent(&rendered(), tool, 0);
    assert_eq!(all[3].roles(), ["user", "assistant", "tool"]);
    assert_eq!(all[3].body["messages"][2]["tool_call_id"], "call_0");
    assert_eq!(all[3].words().len(), 20);
}

#[test]
fn a_plan_shows_null_where_the_server_speaks() {
    let trace = read(&[small()]);
    let scripts = scripted(&trace, 0.0);
    let shown = |reply: ReplyMode, record: u32| {
        let scenes = Scenes::new(&trace, &scripts, &rendered(), options(reply)).expect("it fits");
        let mut body = Vec::new();
        scenes.append_body(record, &mut body);
        (scenes.is_open(record), String::from_utf8(body).expect("UTF-8"))
    };
    let (open, live) = shown(ReplyMode::Live, 3);
    assert!(open && live.contains("{\"role\":\"assistant\",\"content\":null},{\"role\""), "{live}");
    assert!(serde_json::from_str::<serde_json::Value>(&live).is_ok());
    let (open, recorded) = shown(ReplyMode::Recorded, 3);
    let start = live.find("null").expect("null");
    assert!(!open && recorded.starts_with(&live[..start]), "{recorded}");
    assert!(recorded.ends_with(&live[start + 4 + 1..]), "{recorded}");
    assert_eq!(shown(ReplyMode::Live, 0), shown(ReplyMode::Recorded, 0));
}

#[test]
fn each_server_is_named_in_its_heads() {
    let trace = read(&[small()]);
    let scripts = scripted(&trace, 0.0);
    let destinations = vec![Destination::new("a:1", ""), Destination::new("b:2", "/x")];
    let render = RenderOptions { destinations, ..rendered() };
    let scenes = Scenes::new(&trace, &scripts, &render, options(ReplyMode::Live));
    let mut supply = supply(&Arc::new(scenes.expect("it fits")));
    let (part, turn) = turns(&scripts, 0)[0];
    supply.compose(RequestIndex(1), &act(&scripts, 0, part, turn, 0), 1);
    let sent = out(&supply, RequestIndex(1));
    assert!(sent.head.starts_with("POST /x/v1/chat/completions HTTP/1.1\r\nHost: b:2\r\n"));
}

#[test]
fn what_cannot_be_sent_is_refused() {
    let trace = read(&[small()]);
    let found = scripted(&trace, 0.0);
    let refused = |render: RenderOptions, reply: ReplyMode| {
        Scenes::new(&trace, &found, &render, options(reply)).err()
    };
    let completions = RenderOptions { endpoint: Endpoint::Completions, ..rendered() };
    let error = refused(completions.clone(), ReplyMode::Live);
    assert_eq!(error, Some(RenderError::RepliesToCompletions));
    assert_eq!(refused(completions, ReplyMode::Recorded), None);
    let ahead = RenderOptions { when: When::Ahead, ..rendered() };
    assert_eq!(refused(ahead, ReplyMode::Recorded), Some(RenderError::ScenesAhead));
    let tight = RenderOptions { budget_bytes: Some(100), ..rendered() };
    let error = refused(tight, ReplyMode::Recorded).expect("refused");
    let RenderError::ScenesOverBudget { needed, conversations: 1, .. } = error else {
        panic!("{error}");
    };
    let words = error.to_string();
    assert!(words.contains(&format!("right would be --render-budget {needed},")), "{words}");
    let enough = RenderOptions { budget_bytes: Some(needed), ..rendered() };
    assert_eq!(refused(enough, ReplyMode::Recorded), None, "the number is right");
}

#[test]
fn prompts_too_long_to_be_sent_have_no_text_but_what_others_need() {
    let entries = [
        request(80, 1, &(1..=10).collect::<Vec<_>>(), ""),
        request(800, 1, &(1..=100).collect::<Vec<_>>(), ""),
        request(168, 1, &(1..=21).collect::<Vec<_>>(), ""),
    ];
    let trace = read(&[conversation("one", "local", 0, &entries)]);
    let own =
        ScriptOptions { max_context: 400, warm_prefix_share: 0.0, ..ScriptOptions::default() };
    let scripts = scripts(&trace, &own).expect("one");
    let scenes = Scenes::new(&trace, &scripts, &rendered(), options(ReplyMode::Recorded));
    let scenes = scenes.expect("it fits");
    assert!(scenes.chunks[0].len() < 168 * 7 + 200, "{}", scenes.chunks[0].len());
    let mut body = Vec::new();
    scenes.append_body(2, &mut body);
    let sent = Sent::of_body(std::str::from_utf8(&body).expect("UTF-8"));
    assert_eq!(sent.words().len(), 168);
}

#[test]
fn the_memory_that_is_asked_for_is_about_what_is_taken() {
    let inputs: Vec<(u32, u32)> = (1..=300).map(|turn| (turn * 70, 9)).collect();
    let trace = read(&[conversation("one", "local", 300, &super::odd::line(&inputs))]);
    let found = scripted(&trace, 0.5);
    let with = |budget_bytes| {
        let render = RenderOptions { budget_bytes: Some(budget_bytes), ..rendered() };
        Scenes::new(&trace, &found, &render, options(ReplyMode::Live))
    };
    let Err(RenderError::ScenesOverBudget { needed, .. }) = with(1) else { panic!("refused") };
    let taken = with(needed).expect("enough").memory_bytes();
    assert!(taken <= needed && needed < 2 * taken, "{taken} of {needed}");
    assert!(with(needed - 1).is_err());
}
