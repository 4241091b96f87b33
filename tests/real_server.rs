//! A bundled trace against a server of one's own, which is held to what is true of any server.
//!
//! `ONBEAT_TEST_URL=http://localhost:8000 cargo test -p tests real_server` replays it against that
//! server, in every way of asking: each request must have one end, and a good one; none may fail by
//! our doing; what the log counts must be what the answers' usage says and, where the server keeps
//! vLLM's counts at `/metrics`, what it counted itself, so nobody else may use it meanwhile.
//! `OPENAI_API_KEY` is its key. The mock is held to the same in every test run. How fast a server
//! is does not matter, nor what it says.

use std::io::Write as _;
use std::path::Path;

use onbeat::mock::{self, MockConfig};
use onbeat::net::ask::ask;
use onbeat::net::reach::reach;
use onbeat::net::target::Target;
use onbeat::net::way::{Way, WayOptions};
use onbeat::plan::script::ScriptOptions;
use onbeat::plan::{Cancelling, Share};
use onbeat::policy::options::UserOptions;
use onbeat::render::{Context, Endpoint, Secret};
use onbeat_shared::log::{Class, FinishReason};
use onbeat_shared::metrics::{ReportOptions, report};
use onbeat_shared::run::Run;
use onbeat_shared::trace::decimal::Ratio;
use tests::Scenario;

/// Names the server.
const URL: &str = "ONBEAT_TEST_URL";
/// Names its key.
const KEY: &str = "OPENAI_API_KEY";
/// The trace of `onbeat demo`.
const TRACE: &str = include_str!("../engine/assets/demo_trace.jsonl");
/// How many of its requests are sent.
const REQUESTS: usize = 40;
/// No answer is longer.
const OUTPUT_TOKENS: u32 = 24;
/// How long a server may take for one answer.
const PATIENCE_NS: i64 = 120_000_000_000;
/// How often it is asked whether it has counted what has ended, a tenth of a second apart.
const LOOKS: u32 = 300;

/// Which token counts are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Usage {
    /// None.
    No,
    /// At the end.
    AtEnd,
    /// With every event.
    Running,
}

/// A way of asking.
#[derive(Clone, Copy, Debug)]
struct Asking {
    endpoint: Endpoint,
    streaming: bool,
    usage: Usage,
}

/// All of them.
const ASKINGS: [Asking; 8] = {
    const fn asking(endpoint: Endpoint, streaming: bool, usage: Usage) -> Asking {
        Asking { endpoint, streaming, usage }
    }
    [
        asking(Endpoint::Chat, true, Usage::AtEnd),
        asking(Endpoint::Chat, true, Usage::Running),
        asking(Endpoint::Chat, true, Usage::No),
        asking(Endpoint::Chat, false, Usage::AtEnd),
        asking(Endpoint::Completions, true, Usage::AtEnd),
        asking(Endpoint::Completions, true, Usage::Running),
        asking(Endpoint::Completions, true, Usage::No),
        asking(Endpoint::Completions, false, Usage::AtEnd),
    ]
};

/// What was answered, as one side counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    requests: u64,
    /// Of prompts and of answers; `None` where nobody asked.
    tokens: Option<[u64; 2]>,
}

/// The server under test.
struct Server {
    target: Target,
    way: Way,
}

impl Server {
    /// The server at a base URL.
    fn at(url: &str) -> Self {
        let target = Target::parse(url).expect("a base URL");
        let reached = reach(&target, &WayOptions::default());
        let reached = reached.unwrap_or_else(|error| panic!("{error}"));
        Self { target, way: reached.way }
    }

    /// A scenario of the bundled trace against it.
    fn scenario(&self) -> Scenario {
        let mut scenario = Scenario::new(TRACE);
        let config = &mut scenario.config;
        config.target = self.target.clone();
        config.readiness.ask_model = true;
        config.limits.total_ns = Some(PATIENCE_NS);
        config.plan.request_count = Some(REQUESTS as u64);
        config.plan.max_output_tokens = Some(OUTPUT_TOKENS);
        config.plan.speedup = Ratio { numerator: 5, denominator: 1 };
        config.render.endpoint_named = true;
        config.render.api_key =
            std::env::var_os(KEY).map(|key| Secret::new(key.into_encoded_bytes()));
        scenario
    }

    /// Its page of metrics, if it has one.
    fn metrics(&self) -> Option<String> {
        let request = format!(
            "GET /metrics HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.target.authority()
        );
        let reply = ask(&self.way, request.as_bytes(), PATIENCE_NS, &mut || true).ok()?;
        (reply.status == 200).then(|| String::from_utf8_lossy(&reply.body).into_owned())
    }

    /// What it has counted so far, if it counts under these names.
    fn counts(&self) -> Option<Counts> {
        let page = self.metrics()?;
        let prompt = sum(&page, "vllm:prompt_tokens_total", "-")?;
        let generated = sum(&page, "vllm:generation_tokens_total", "-")?;
        let requests = sum(&page, "vllm:request_success_total", "abort")?;
        Some(Counts { requests, tokens: Some([prompt, generated]) })
    }

    /// Looks until its page says what is wanted: it counts an answer after it has sent it.
    fn until(&self, wanted: impl Fn(&Self) -> bool) -> bool {
        (0..LOOKS).any(|look| {
            if look > 0 {
                std::thread::park_timeout(std::time::Duration::from_millis(100));
            }
            wanted(self)
        })
    }

    /// Waits until it has counted `more` since `before` and nothing else, where it counts.
    fn agrees(&self, what: &str, before: Option<Counts>, more: Counts) {
        let Some(before) = before else { return };
        let grown = |now: Option<Counts>| {
            let now = now?;
            let tokens = now.tokens?.into_iter().zip(before.tokens?).map(|(now, then)| now - then);
            let tokens = more.tokens.is_none_or(|more| tokens.eq(more));
            Some(tokens && now.requests - before.requests == more.requests)
        };
        let agreed = self.until(|server| grown(server.counts()) == Some(true));
        assert!(agreed, "{what}: {before:?}, then {more:?}, and now {:?}", self.counts());
    }
}

/// The sum of a metric over its labels, but for a reason that a request finished for; `None` when
/// the page does not have it.
fn sum(page: &str, name: &str, but: &str) -> Option<u64> {
    let but = format!("finished_reason=\"{but}\"");
    let lines = page.lines().filter_map(|line| line.strip_prefix(name));
    let own = lines.filter(|rest| rest.starts_with(['{', ' ']) && !rest.contains(&but));
    let values = own.filter_map(|rest| rest.rsplit(' ').next()?.parse::<f64>().ok());
    // Counts are written as floating point.
    values.map(|value| format!("{value:.0}").parse::<u64>().expect("a count")).reduce(|a, b| a + b)
}

/// What must hold for each request of a run, whatever became of it.
fn every_request_ended_once(what: &str, run: &Run) {
    assert!(run.is_whole() && run.warnings.is_empty(), "{what}: {:?}", run.warnings);
    for (i, row) in run.plan.iter().enumerate() {
        let class = run.requests.class(i).unwrap_or_else(|| panic!("{what}: {i} has no end"));
        let words = run.error_text(i);
        assert!(!class.is_client_side(), "{what}: {i} ended as {}: {words:?}", class.name());
        let sent = run.requests.sent(i).unwrap_or_else(|| panic!("{what}: {i} was not sent"));
        assert!(row.due.is_none_or(|due| sent >= due), "{what}: {i} left before its time");
        if let Some(before) = row.after {
            let done = run.requests.done(before.as_usize()).expect("it has an end");
            assert!(sent >= done, "{what}: {i} overtook the turn before it");
        }
    }
}

/// What must hold for a run of which all was answered; returns what the answers say of tokens.
fn all_was_answered(what: &str, run: &Run, asking: Asking) -> Counts {
    every_request_ended_once(what, run);
    let requests = &run.requests;
    let mut sums = [0, 0];
    for (i, row) in run.plan.iter().enumerate() {
        let what = format!("{what}: request {i}");
        assert_eq!(requests.class(i), Some(Class::Ok), "{what}: {:?}", run.error_text(i));
        assert_ne!(requests.finish(i), FinishReason::Unknown, "{what} says why it ended");
        // Tokens without text, such as the first half of a letter, have no event of their own.
        let seen = requests.chunk_tokens(i);
        assert_eq!(seen > 0, requests.first_token(i).is_some(), "{what}");
        assert!(asking.streaming || seen == 0, "{what} has no token times");
        let counted = requests.prompt_tokens(i).zip(requests.completion_tokens(i));
        assert_eq!(counted.is_some(), asking.usage != Usage::No, "{what}: {counted:?}");
        let Some((prompt, generated)) = counted else { continue };
        assert!(seen <= u64::from(generated), "{what}: {seen} of {generated} tokens");
        assert!(row.max_tokens.is_none_or(|most| generated <= most), "{what}: {generated}");
        sums = [sums[0] + u64::from(prompt), sums[1] + u64::from(generated)];
    }
    let report = report(run, &ReportOptions::default());
    let tokens = (asking.usage != Usage::No).then_some(sums);
    if let Some([prompt, generated]) = tokens {
        let told = (report.tokens.prompt, report.tokens.completion, report.tokens.source);
        assert_eq!(told, (Some(prompt), Some(generated), Some("usage")), "{what}");
    }
    assert_eq!(report.outcomes.ok, run.plan.len() as u64, "{what}");
    Counts { requests: report.outcomes.ok, tokens }
}

/// The trace in one way of asking.
fn asked(server: &Server, asking: Asking) {
    let mut scenario = server.scenario();
    let render = &mut scenario.config.render;
    render.endpoint = asking.endpoint;
    render.streaming = asking.streaming;
    render.include_usage = asking.usage != Usage::No;
    if asking.usage == Usage::Running {
        let options = serde_json::json!({"include_usage": true, "continuous_usage_stats": true});
        render.extra.push(("stream_options".to_owned(), options));
    }
    let before = server.counts();
    let run = scenario.run_as_meant();
    let what = format!("{asking:?}");
    assert_eq!(run.plan.len(), REQUESTS, "{what}");
    server.agrees(&what, before, all_was_answered(&what, &run, asking));
}

/// Sessions whose turns repeat the server's own answers.
fn repeated(server: &Server) {
    let mut scenario = server.scenario();
    scenario.config.render.context = Some(Context::LiveAnswers);
    let before = server.counts();
    let run = scenario.run_as_meant();
    assert!(run.plan.iter().any(|row| row.after.is_some()), "some turns have one before them");
    server.agrees("repeated", before, all_was_answered("repeated", &run, ASKINGS[0]));
}

/// Half of the requests are given up at once: they have their own end, and the server stops.
fn cancelled(server: &Server) {
    let mut scenario = server.scenario();
    let share = Share::of(0.5).expect("a share");
    scenario.config.plan.cancelling = Some(Cancelling { share, delay_ns: 0 });
    let before = server.counts();
    let run = scenario.run_as_meant();
    every_request_ended_once("cancelled", &run);
    let of = |class| (0..REQUESTS).filter(|&i| run.requests.class(i) == Some(class)).count();
    let (ok, given_up) = (of(Class::Ok), of(Class::CancelledByPlan));
    assert_eq!(ok + given_up, REQUESTS, "{:?}", report(&run, &ReportOptions::default()).outcomes);
    assert!(ok > 0 && given_up > 0, "{ok} and {given_up}");
    // What it counts it counts a little after it has sent it.
    let least = u64::try_from(ok).expect("few");
    let is_over = |server: &Server| {
        let page = server.metrics().unwrap_or_default();
        let running = sum(&page, "vllm:num_requests_running", "-");
        let counted = server.counts().zip(before).map(|(now, then)| now.requests - then.requests);
        running.is_none_or(|running| running == 0) && counted.is_none_or(|counted| counted >= least)
    };
    let now = || server.metrics().unwrap_or_default();
    assert!(server.until(is_over), "{ok} were answered, it goes on or lost some: {}", now());
}

/// Users who replay conversations, with sub-agents.
fn users(server: &Server) {
    let mut scenario = server.scenario();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/tests/conversations");
    scenario.config.trace = folder;
    scenario.config.plan.request_count = None;
    let script = ScriptOptions {
        time_scale: Ratio { numerator: 1, denominator: 50 },
        ..ScriptOptions::default()
    };
    scenario.config.users =
        UserOptions { script, start_users: 6, stream_all: true, ..UserOptions::default() };
    let before = server.counts();
    let run = scenario.run_as_meant();
    assert!(run.plan.len() > 6, "users asked {} times", run.plan.len());
    server.agrees("users", before, all_was_answered("users", &run, ASKINGS[0]));
}

/// Everything that a server is held to.
fn hold(url: &str) {
    let server = Server::at(url);
    for asking in ASKINGS {
        asked(&server, asking);
    }
    repeated(&server);
    users(&server);
    cancelled(&server);
}

#[test]
fn the_mock_is_held_to_what_a_real_server_is() {
    let mock = mock::spawn(MockConfig {
        overhead_ns: 0,
        step_ns: 200_000,
        step_ns_per_sequence: 0,
        ..MockConfig::default()
    });
    let mock = mock.expect("a mock on loopback");
    let url = format!("http://{}", mock.address());
    assert!(Server::at(&url).counts().is_some(), "it counts");
    hold(&url);
    mock.stop();
}

#[test]
fn a_real_server_is_held_to_it_if_one_is_named() {
    match std::env::var(URL) {
        Ok(url) if !url.is_empty() => hold(&url),
        _ => {
            // The test harness captures `println!`, and a skipped test should be seen.
            let line = "skipped: no real server was replayed against: ONBEAT_TEST_URL names none";
            writeln!(std::io::stderr(), "{line}").expect("stderr is open");
        }
    }
}

#[test]
fn a_metric_is_summed_over_its_labels() {
    let page = "# TYPE a_total counter\na_total{finished_reason=\"stop\"} 1.0\n\
                a_total{finished_reason=\"abort\"} 2.0\na_total{finished_reason=\"length\"} 1e+06\n\
                a_total_created{} 5\nb 3\n";
    assert_eq!(sum(page, "a_total", "abort"), Some(1_000_001));
    assert_eq!((sum(page, "b", "-"), sum(page, "c", "-")), (Some(3), None));
}
