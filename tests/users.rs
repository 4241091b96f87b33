//! Users who replay a pool of conversations against the mock: each keeps its order, limits hold
//! over all of them, and prompts have the tokens that were recorded.
//!
//! The pool is made here, from one seed: conversations that grow, pull back and repeat themselves,
//! with sub-agents that start together or within each other. What is asserted is what the log and
//! the mock say happened, not when.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use onbeat::cli::progress::Quiet;
use onbeat::net::target::Target;
use onbeat::plan::script::ScriptOptions;
use onbeat::policy::admission::Limits;
use onbeat::policy::options::{Breaker, RampChoice, ReplyMode, UserOptions};
use onbeat::run::CoreChoice;
use onbeat::trace::{TraceOptions, read};
use onbeat_shared::log::Class;
use onbeat_shared::metrics::capacity::Curve;
use onbeat_shared::metrics::{ReportOptions, report};
use onbeat_shared::run::{Left, Run, User};
use onbeat_shared::trace::Trace;
use onbeat_shared::units::NANOS_PER_SECOND;
use tests::scripted::{Scripted, answer, good_stream, request};
use tests::{Outcome, Scenario};

/// Numbers that are the same every time.
struct Draw(u64);

impl Draw {
    /// A number below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A conversation as it is written down.
struct Conversation<'a> {
    draw: &'a mut Draw,
    /// The next block id that nobody has.
    fresh: u64,
    agents: u64,
}

impl Conversation<'_> {
    fn blocks(&mut self, count: u64) -> Vec<u64> {
        let first = self.fresh;
        self.fresh += count;
        (first..self.fresh).collect()
    }

    /// A list of requests, with sub-agents among them down to a depth.
    fn list(&mut self, start: Vec<u64>, requests: u64, depth: u64) -> String {
        let mut ids = start;
        let mut entries = Vec::new();
        for at in 0..requests {
            match self.draw.below(6) {
                _ if at == 0 => {}
                // Back to an earlier state, or the same once more.
                0 => ids.truncate(ids.len() / 2),
                1 => {}
                grown => {
                    let more = self.blocks(grown);
                    ids.extend(more);
                }
            }
            entries.push(self.request(&ids, at));
            let agents =
                if depth > 0 && self.draw.below(4) == 0 { 1 + self.draw.below(3) } else { 0 };
            let shared = self.blocks(4);
            for _ in 0..agents {
                let entry = self.agent(&shared, at, depth - 1);
                entries.push(entry);
            }
        }
        entries.join(", ")
    }

    fn request(&mut self, ids: &[u64], at: u64) -> String {
        let tokens = ids.len() as u64 * 64 + self.draw.below(64);
        let (output, think_ms) = (1 + self.draw.below(6), self.draw.below(30));
        let kind = if self.draw.below(4) == 0 { "s" } else { "n" };
        let input = if at == 0 { "text" } else { "tool_result" };
        format!(
            "{{\"t\": {at}.0, \"type\": \"{kind}\", \"in\": {tokens}, \"out\": {output}, \
             \"hash_ids\": {ids:?}, \"input_types\": [\"{input}\"], \
             \"output_types\": [\"text\"], \"stop\": \"\", \"api_time\": 0.01, \
             \"think_time\": 0.{think_ms:03}}}"
        )
    }

    fn agent(&mut self, shared: &[u64], at: u64, depth: u64) -> String {
        self.agents += 1;
        let agent = self.agents;
        let mut ids = shared.to_vec();
        let more = self.blocks(2);
        ids.extend(more);
        let requests = 1 + self.draw.below(3);
        let list = self.list(ids, requests, depth);
        format!(
            "{{\"t\": {at}.5, \"type\": \"subagent\", \"agent_id\": \"agent_{agent:03}\", \
             \"subagent_type\": \"Explore\", \"duration_ms\": null, \"total_tokens\": null, \
             \"tool_use_count\": null, \"status\": \"completed\", \"requests\": [{list}], \
             \"models\": [], \"tool_tokens\": 100, \"system_tokens\": 28}}"
        )
    }
}

/// Writes a pool of conversations into a folder.
fn write_pool(folder: &Path, files: u64) -> PathBuf {
    let folder = folder.join("pool");
    std::fs::create_dir(&folder).expect("the folder is writable");
    let mut draw = Draw(7);
    for file in 0..files {
        let (requests, first) = (3 + draw.below(5), 4 + draw.below(12));
        let mut conversation = Conversation { draw: &mut draw, fresh: 1, agents: 0 };
        let start = conversation.blocks(first);
        let list = conversation.list(start, requests, 2);
        let mut text =
            format!("{{\"id\": \"trace_{file:04}\", \"models\": [], \"block_size\": 64, ");
        write!(
            text,
            "\"hash_id_scope\": \"local\", \"tool_tokens\": 300, \"system_tokens\": 84, \
             \"requests\": [{list}]}}"
        )
        .expect("a String takes all");
        std::fs::write(folder.join(format!("trace_{file:04}.json")), text).expect("written");
    }
    folder
}

/// A run and the trace that it replayed.
struct Played {
    outcome: Outcome,
    trace: Trace,
}

fn play(files: u64, cores: u16, users: UserOptions) -> Played {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let pool = write_pool(folder.path(), files);
    let mut scenario = Scenario::new("");
    scenario.config.trace.clone_from(&pool);
    scenario.config.users = users;
    scenario.config.cores = CoreChoice::Count(cores);
    scenario.mock.cache_tokens = 20_000;
    scenario.mock.prefill_tokens_per_s = 500_000.0;
    let outcome = scenario.run();
    let trace = read(&pool, &TraceOptions::default()).expect("it was read before");
    Played { outcome, trace }
}

/// Thirty users, with narrow limits and more users to come, over two cores.
fn crowded() -> &'static Played {
    static PLAYED: OnceLock<Played> = OnceLock::new();
    PLAYED.get_or_init(|| {
        let default = UserOptions::default();
        play(
            54,
            2,
            UserOptions {
                start_users: 30,
                max_users: 40,
                recycle: true,
                duration_ns: Some(3 * NANOS_PER_SECOND),
                limits: Limits { concurrent: 8, prefill: 5, ..Limits::default() },
                ramp: RampChoice { period_ns: NANOS_PER_SECOND, ..default.ramp },
                reply: ReplyMode::Recorded,
                stream_all: true,
                ..default
            },
        )
    })
}

/// The requests of each session of the run, in the order they were sent.
fn by_session(run: &Run) -> HashMap<u32, Vec<usize>> {
    let mut requests: HashMap<u32, Vec<usize>> = HashMap::new();
    for (request, row) in run.plan.iter().enumerate() {
        requests.entry(row.session.0).or_default().push(request);
    }
    requests
}

fn users(run: &Run) -> &[User] {
    &run.users.as_ref().expect("users replayed it").users
}

/// What was sent is what the conversations say, each player's own part in its own order, and never
/// before the request before it had ended. Returns how many requests that were.
fn check_order(played: &Played) -> usize {
    let (run, trace) = (&played.outcome.run, &played.trace);
    let templates = run.users.as_ref().expect("users replayed it");
    let requests = by_session(run);
    let mut checked = 0;
    for user in users(run) {
        let Some(sent) = requests.get(&user.session.0) else { continue };
        let part = user.template.expect("the log is whole");
        let records = trace.records.iter().zip(0_u32..);
        let own: Vec<u32> =
            records.filter(|(record, _)| record.session == part).map(|(_, at)| at).collect();
        let played: Vec<u32> =
            sent.iter().map(|&i| templates.template(i).expect("the log is whole")).collect();
        assert_eq!(played, own[..played.len()], "{}", user.name);
        for pair in sent.windows(2) {
            let (before, after) = (pair[0], pair[1]);
            let end = run.requests.done(before).expect("it ended before the next one");
            assert!(run.requests.sent(after) >= Some(end), "{}: request {after}", user.name);
        }
        checked += sent.len();
    }
    checked
}

#[test]
fn every_player_keeps_its_order() {
    let played = crowded();
    let checked = check_order(played);
    assert_eq!(checked, played.outcome.run.plan.len(), "each request is somebody's");
    assert!(checked > 200, "{checked} requests");
}

#[test]
fn a_user_waits_for_all_of_its_sub_agents() {
    let run = &crowded().outcome.run;
    let requests = by_session(run);
    let none = Vec::new();
    let mut waits = 0;
    for agent in users(run) {
        let Some(parent) = agent.parent else { continue };
        let (started, ended) = (agent.started.expect("known"), agent.ended);
        for &request in requests.get(&parent.0).unwrap_or(&none) {
            let Some(sent) = run.requests.sent(request) else { continue };
            let beside = sent >= started && ended.is_none_or(|ended| sent < ended);
            assert!(!beside, "request {request} left while {} was under way", agent.name);
        }
        waits += 1;
    }
    assert!(waits > 20, "{waits} sub-agents");
}

/// The most things at a time, of beginnings and ends.
fn peak(spans: impl Iterator<Item = (i64, i64)>) -> i64 {
    let mut changes: Vec<(i64, i64)> =
        spans.flat_map(|(begin, end)| [(begin, 1), (end, -1)]).collect();
    // An end makes room for a beginning at the same instant.
    changes.sort_unstable();
    let mut now = 0;
    changes
        .iter()
        .map(|&(_, change)| {
            now += change;
            now
        })
        .max()
        .unwrap_or(0)
}

#[test]
fn limits_hold_over_all_cores() {
    let Outcome { run, counts, .. } = &crowded().outcome;
    let requests = &run.requests;
    let span = |request: usize, end: Option<i64>| {
        let sent = requests.sent(request)?;
        Some((sent.0, end.unwrap_or(i64::MAX)))
    };
    let done = |request: usize| requests.done(request).map(|time| time.0);
    let first = |request: usize| requests.first_token(request).map(|time| time.0);
    let in_flight = peak((0..requests.len()).filter_map(|i| span(i, done(i))));
    let prefill = peak((0..requests.len()).filter_map(|i| span(i, first(i).or(done(i)))));
    assert!(in_flight <= 8 && prefill <= 5, "{in_flight} in flight, {prefill} in prefill");
    assert!(counts.running_peak <= 8, "the server ran {} at once", counts.running_peak);
    let limited: u32 = users(run).iter().map(|user| user.limited).sum();
    assert!(limited > 0, "limits were met");
    let cores: Vec<_> = (0..requests.len()).filter_map(|i| requests.core(i)).collect();
    assert!(cores.iter().any(|&core| core != cores[0]), "both cores sent");
}

#[test]
fn there_are_never_more_users_than_allowed_and_each_use_of_a_conversation_is_its_own() {
    let run = &crowded().outcome.run;
    let own = users(run).iter().filter(|user| user.parent.is_none());
    let spans = own
        .clone()
        .filter_map(|user| Some((user.started?.0, user.ended.map_or(i64::MAX, |time| time.0))));
    assert!(peak(spans) <= 40);
    assert!(own.clone().count() > 30, "users that were done were replaced");
    let mut uses: HashMap<u32, Vec<u16>> = HashMap::new();
    // One whom the end of the run kept from beginning has a number and nothing else.
    for user in own.filter(|user| user.started.is_some()) {
        uses.entry(user.template.expect("known").0).or_default().push(user.copy);
    }
    for (conversation, copies) in &mut uses {
        copies.sort_unstable();
        let expected: Vec<u16> = (0..).take(copies.len()).collect();
        assert_eq!(*copies, expected, "conversation {conversation}");
    }
}

/// The server counted as many tokens in each prompt as the trace says; returns in how many.
fn check_tokens(played: &Played) -> usize {
    let Outcome { run, served, .. } = &played.outcome;
    let users = run.users.as_ref().expect("users replayed it");
    let mut counted = 0;
    for request in 0..run.plan.len() {
        let template = users.template(request).expect("the log is whole") as usize;
        let recorded = played.trace.records[template].input_tokens;
        if run.requests.class(request) == Some(Class::Ok) {
            assert_eq!(run.requests.prompt_tokens(request), Some(recorded), "request {request}");
            counted += 1;
        }
    }
    // And as the server itself wrote down, in the order in which each player's requests came.
    let mut arrived: Vec<_> = served.iter().filter(|served| served.complete).collect();
    arrived.sort_by_key(|served| served.arrived_mono_ns);
    let requests = by_session(run);
    for user in &users.users {
        let own = arrived.iter().filter(|served| served.session.as_deref() == Some(&*user.name));
        let own: Vec<u32> = own.map(|served| served.prompt_tokens).collect();
        let sent = requests.get(&user.session.0).map_or(&[][..], Vec::as_slice);
        let planned: Vec<_> = sent.iter().filter_map(|&i| run.plan[i].input_tokens).collect();
        assert_eq!(own, planned[..own.len()], "{}", user.name);
    }
    counted
}

#[test]
fn prompts_have_the_tokens_that_were_recorded() {
    let counted = check_tokens(crowded());
    assert!(counted > 200, "{counted} answers");
}

/// What the log says that prompts have in common is what users' ideal hits were made of.
#[test]
fn a_log_of_users_tells_what_an_endless_cache_would_have_had() {
    let run = &crowded().outcome.run;
    let mut order: Vec<u32> = (0..).take(run.plan.len()).collect();
    order.retain(|&i| run.requests.was_sent(i as usize));
    order.sort_by_key(|&i| run.requests.sent(i as usize));
    let rate = |counts: &dyn Fn(usize) -> bool| {
        let curve = Curve::of(run, &order, counts).expect("the log has paths");
        curve.sizes.last().expect("a size").ideal_hit_rate
    };
    let mut equal = 0;
    for &i in &order {
        let row = &run.plan[i as usize];
        let input = f64::from(row.input_tokens.expect("the trace says"));
        let ideal = f64::from(row.ideal_cached_tokens.expect("it has block ids"));
        let found = (rate(&|other| other == i as usize) * input).round();
        // What users share is in nobody's cache before the first request, and a sub-agent that was
        // decided beside another one did not know of it yet.
        assert!(found >= ideal || row.after.is_none(), "request {i}: {found} and {ideal}");
        equal += usize::from((found - ideal).abs() < 0.5);
    }
    assert!(equal * 10 > order.len() * 8, "{equal} of {}", order.len());
}

#[test]
fn conversations_are_played_to_their_ends_with_the_servers_own_replies() {
    let users_of = UserOptions {
        start_users: 6,
        max_users: 6,
        script: ScriptOptions { warm_prefix_share: 0.25, ..ScriptOptions::default() },
        ..UserOptions::default()
    };
    let played = play(6, 1, users_of);
    let run = &played.outcome.run;
    assert_eq!(check_order(&played), played.trace.records.len(), "all of it was sent");
    assert_eq!(check_tokens(&played), played.trace.records.len());
    for user in users(run) {
        assert_eq!(user.left, Some(Left::Completed), "{}", user.name);
    }
    assert_eq!(users(run).iter().filter(|user| user.parent.is_none()).count(), 6);
    assert!(played.outcome.counts.cache_hit_tokens > 0, "later prompts begin like earlier ones");
}

/// Two requests, the second of them streamed.
const TWO: &str = r#"{"id": "trace one", "models": ["m"], "block_size": 64, "requests": [
    {"t": 0.0, "type": "n", "in": 70, "out": 2, "hash_ids": [1], "input_types": ["text"]},
    {"t": 0.1, "type": "s", "in": 140, "out": 3, "hash_ids": [1, 2], "input_types": ["tool_result"],
     "api_time": 0.05, "think_time": 0.01}]}"#;

/// What a server of this model sees of [`TWO`], each request whole, and what the user is told. The
/// URL ends in `/v1`.
fn seen_by(model: Option<&str>) -> (Vec<String>, Vec<String>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (writing, list) = (Arc::clone(&seen), model.map(|name| format!("{{\"id\":\"{name}\"}}")));
    let server = Scripted::start(move |_, mut stream| {
        while let Some(bytes) = request(&mut stream) {
            let text = String::from_utf8(bytes).expect("UTF-8");
            let whole = "{\"choices\":[{\"message\":{\"content\":\" one two\"},\"finish_reason\":\
                         \"length\"}],\"usage\":{\"prompt_tokens\":70,\"completion_tokens\":2}}";
            let (status, json) = match &list {
                Some(list) if text.starts_with("GET ") => (200, format!("{{\"data\":[{list}]}}")),
                None if text.starts_with("GET ") => (404, "{}".to_owned()),
                _ => (200, whole.to_owned()),
            };
            let reply = if text.contains("\"stream\":true") {
                good_stream()
            } else {
                let head = "Content-Type: application/json\r\nContent-Length";
                let length = json.len();
                format!("HTTP/1.1 {status} X\r\n{head}: {length}\r\n\r\n{json}").into_bytes()
            };
            writing.lock().expect("nobody panics with it").push(text);
            answer(&mut stream, &reply);
        }
    });
    let mut scenario = Scenario::new("");
    let path = scenario.config.trace.with_extension("json");
    std::fs::write(&path, TWO).expect("the folder is writable");
    scenario.config.trace = path;
    scenario.config.readiness.ask_model = true;
    let url = format!("http://{}/v1", server.address);
    scenario.config.target = Target::parse(&url).expect("a loopback address");
    let mut watch = Quiet::default();
    onbeat::run::run(scenario.config.clone(), &mut watch).expect("it runs");
    let seen = seen.lock().expect("nobody panics with it").clone();
    (seen, watch.said)
}

#[test]
fn requests_are_those_of_the_tool_and_a_known_model_is_asked_as_it_wants() {
    let (seen, said) = seen_by(Some("Qwen3-Coder-mock"));
    assert_eq!(seen.len(), 3, "{seen:?}");
    assert!(seen[0].starts_with("GET /v1/models HTTP/1.1\r\n"), "{}", seen[0]);
    let generation = "\"temperature\":0.7,\"top_p\":0.8,\"top_k\":20,\"repetition_penalty\":1.05}";
    for (sent, keys) in seen[1..].iter().zip([
        "\"max_tokens\":2,\"stream\":false,",
        "\"max_tokens\":3,\"stream\":true,\"stream_options\":{\"include_usage\":true},",
    ]) {
        assert!(sent.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{sent}");
        assert!(sent.contains("\r\nX-Session-ID: trace%20one\r\n"), "{sent}");
        assert!(sent.contains("\r\nX-Correlation-ID: User-001\r\n"), "{sent}");
        let end = format!("],\"model\":\"Qwen3-Coder-mock\",{keys}{generation}");
        assert!(
            sent.contains("\r\n\r\n{\"messages\":[{\"role\":") && sent.ends_with(&end),
            "{sent}"
        );
    }
    let reply = "{\"role\":\"assistant\",\"content\":\" one two\"}";
    assert!(seen[2].contains(reply), "{}", seen[2]);
    assert!(said.iter().any(|words| words.contains("temperature 0.7, top_p 0.8")), "{said:?}");
}

#[test]
fn a_server_that_does_not_say_its_model_is_asked_all_the_same() {
    let (seen, said) = seen_by(None);
    assert_eq!(seen.len(), 3, "{seen:?}");
    assert!(said.iter().any(|words| words.contains("does not say which models")), "{said:?}");
    let end = ",\"model\":\"default\",\"max_tokens\":2,\"stream\":false}";
    assert!(seen[1].ends_with(end), "{}", seen[1]);
}

#[test]
fn what_outlasts_the_run_and_its_grace_is_cut_off_by_neither_user_nor_server() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut scenario = Scenario::new("");
    scenario.config.trace = write_pool(folder.path(), 3);
    scenario.config.users = UserOptions {
        start_users: 3,
        duration_ns: Some(NANOS_PER_SECOND / 5),
        ..UserOptions::default()
    };
    scenario.config.drain_ns = NANOS_PER_SECOND / 10;
    scenario.mock.overhead_ns = 60 * NANOS_PER_SECOND;
    let Outcome { run, ran, .. } = scenario.run();
    assert!(!ran.conducted.interrupted);
    assert_eq!(run.plan.len(), 3);
    for request in 0..3 {
        assert_eq!(run.requests.class(request), Some(Class::CutAtEnd));
    }
    for user in users(&run) {
        assert!(matches!(user.left, None | Some(Left::Stopped)), "{}: {:?}", user.name, user.left);
    }
}

#[test]
fn a_run_without_a_server_is_given_up_and_its_log_says_why() {
    // It lets everybody in and hangs up on whoever asks.
    let server = Scripted::start(|_, mut stream| {
        let _asked = request(&mut stream);
    });
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut scenario = Scenario::new("");
    scenario.config.trace = write_pool(folder.path(), 9);
    scenario.config.users = UserOptions {
        start_users: 9,
        recycle: true,
        script: ScriptOptions { max_delay_ns: 0, ..ScriptOptions::default() },
        breaker: Breaker { errors: 5, window_ns: 0 },
        ..UserOptions::default()
    };
    let url = format!("http://{}", server.address);
    scenario.config.target = Target::parse(&url).expect("a loopback address");
    let mut watch = Quiet::default();
    let ran = onbeat::run::run(scenario.config.clone(), &mut watch).expect("it runs");
    let directed = ran.conducted.directed.expect("users have a director");
    assert!(directed.end.given_up().is_some(), "{:?}", directed.end);
    let run = Run::read(&std::fs::read(&ran.log).expect("a log")).expect("a log");
    let verdict = report(&run, &ReportOptions::default()).verdict;
    let why = "the run was given up: ";
    assert!(verdict.reasons.iter().any(|words| words.starts_with(why)), "{:?}", verdict.reasons);
    assert!(!verdict.schedule_held);
}
