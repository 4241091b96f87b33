//! Shards that start at one instant against one server: merged, they are the run that was divided.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use onbeat::cli::merge;
use onbeat::cli::progress::Quiet;
use onbeat::clock_state::Trust;
use onbeat::error::EngineError;
use onbeat::mock::{self, MockConfig, Served};
use onbeat::net::target::Target;
use onbeat::plan::{PlanOptions, Shard, build};
use onbeat::run::{Ran, RunConfig};
use onbeat::trace::{TraceOptions, load};
use onbeat_shared::log::{Class, PlanRow};
use onbeat_shared::metrics::{ReportOptions, report};
use onbeat_shared::run::{End, Run};
use onbeat_shared::units::CoreIndex;
use tests::{Scenario, mooncake};

const SHARDS: u32 = 3;

fn now_unix_ns() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "a test names an instant, and times nothing")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    u64::try_from(now.as_nanos()).expect("before 2554")
}

/// Runs all shards at once, with a zero so far ahead.
fn shards(config: &RunConfig, folder: &Path, lead: Duration) -> Vec<Result<Ran, EngineError>> {
    let zero = now_unix_ns() + u64::try_from(lead.as_nanos()).expect("short");
    std::thread::scope(|scope| {
        let start = |index: u32| {
            let own = RunConfig {
                shard: Shard::new(index, SHARDS).ok(),
                start_unix_ns: Some(zero),
                trust: Trust::Any,
                output: folder.join(format!("shard-{index}.beat")),
                overwrite: true,
                ..config.clone()
            };
            let run = move || onbeat::run::run(own, &mut Quiet::default());
            std::thread::Builder::new().name("shard".to_owned()).spawn_scoped(scope, run)
        };
        let started: Vec<_> = (0..SHARDS).map(|index| start(index).expect("a thread")).collect();
        started.into_iter().map(|shard| shard.join().expect("no panic")).collect()
    })
}

/// All shards of a run against a mock, and what the mock served. A machine that is too busy to be
/// ready in time is given more of it.
fn run_all(config: &RunConfig, folder: &Path, mock: &MockConfig) -> (Vec<PathBuf>, Vec<Served>) {
    for seconds in [2, 8, 40] {
        let server = mock::spawn(mock.clone()).expect("a mock on loopback");
        let url = format!("http://{}", server.address());
        let config =
            RunConfig { target: Target::parse(&url).expect("an address"), ..config.clone() };
        let ran = shards(&config, folder, Duration::from_secs(seconds));
        let served = server.served();
        server.stop();
        let late = |ran: &Result<Ran, EngineError>| {
            ran.as_ref().is_err_and(|error| error.to_string().contains("nothing was sent"))
        };
        if !ran.iter().any(late) {
            let logs = ran.into_iter().map(|ran| ran.expect("a run").log);
            return (logs.collect(), served);
        }
    }
    panic!("three shards are not ready within 40 s");
}

/// Bodies by the request's number in the plan, which is the last part of its name.
fn bodies(served: &[Served]) -> BTreeMap<u32, [u8; 32]> {
    let number = |served: &Served| {
        let id = served.request_id.as_ref().expect("every request has a name");
        id.rsplit('-').next().and_then(|last| last.parse().ok()).expect("it ends in a number")
    };
    let bodies: BTreeMap<u32, [u8; 32]> =
        served.iter().map(|served| (number(served), served.body_digest)).collect();
    assert_eq!(bodies.len(), served.len(), "every request once");
    bodies
}

#[test]
fn shards_with_one_zero_are_merged_into_the_run_that_was_divided() {
    const ROWS: usize = 60;
    let scenario = Scenario::new(&mooncake(ROWS, 8, 600, 2));
    let mut config = scenario.config.clone();
    config.plan.copies = 2;
    config.render.seed = 4;
    let folder = tempfile::tempdir().expect("a folder");
    let (logs, served) = run_all(&config, folder.path(), &scenario.mock);
    let output = folder.path().join("run.beat");
    let args = merge::Args { logs, output: output.clone(), allow_missing: false, force: false };
    let mut told = Vec::new();
    assert_eq!(merge::run(&args, &mut told).expect("they belong together"), 0);
    let told = String::from_utf8(told).expect("text");
    assert!(told.contains("120 requests of 3 shards"), "{told}");
    let run = Run::read(&std::fs::read(&output).expect("a file")).expect("a log");
    assert_eq!(run.warnings, Vec::<String>::new());

    // The plan is the whole one, instant by instant.
    let trace = load(&config.trace, &TraceOptions::default()).expect("a trace");
    let options = PlanOptions { copies: 2, ..config.plan.clone() };
    let plan = build(&trace, &options).expect("a plan");
    assert_eq!(run.plan.len(), plan.rows.len());
    for (found, planned) in run.plan.iter().zip(&plan.rows) {
        let bare = |row: &PlanRow| PlanRow { core: CoreIndex(0), body_bytes: None, ..*row };
        assert_eq!(bare(found), bare(planned));
    }
    assert_eq!(*run.sessions, plan.sessions);
    for i in 0..run.requests.len() {
        assert_eq!(run.requests.end(i), End::Known(Class::Ok), "request {i}");
        assert!(run.requests.sent(i) >= run.requests.due(i), "request {i} left early");
    }

    // What the server got is what one machine would have sent.
    let mut whole = Scenario::new(&mooncake(ROWS, 8, 600, 2));
    whole.config.plan.copies = 2;
    whole.config.render.seed = 4;
    assert_eq!(bodies(&served), bodies(&whole.run().served));

    let numbers = report(&run, &ReportOptions::default());
    assert_eq!(numbers.hosts.len(), 3);
    assert_eq!(numbers.hosts.iter().map(|host| host.sent).sum::<u64>(), 120);
    assert!(numbers.hosts.iter().all(|host| host.lateness_us.is_some()));
}

#[test]
fn a_zero_that_nobody_can_be_ready_for_sends_nothing_and_leaves_no_log() {
    let scenario = Scenario::new(&mooncake(3, 1, 600, 2));
    let server = mock::spawn(scenario.mock.clone()).expect("a mock on loopback");
    let url = format!("http://{}", server.address());
    let config = RunConfig {
        start_unix_ns: Some(now_unix_ns() + 1),
        trust: Trust::Any,
        target: Target::parse(&url).expect("an address"),
        ..scenario.config.clone()
    };
    let error = onbeat::run::run(config, &mut Quiet::default()).expect_err("too late");
    assert!(error.to_string().contains("nothing was sent; give a later time"), "{error}");
    assert!(!scenario.log_path().exists());
    assert!(server.served().is_empty());
    server.stop();
}

/// A folder of conversations of two requests each.
fn pool(folder: &Path, conversations: u32) {
    for number in 0..conversations {
        let request = |at: u32| {
            let ids: Vec<u32> = (0..=at).map(|block| number * 100 + block).collect();
            format!(
                "{{\"t\": {at}.0, \"type\": \"s\", \"in\": {}, \"out\": 2, \"hash_ids\": {ids:?}, \
                 \"input_types\": [\"text\"], \"output_types\": [\"text\"], \"stop\": \"\", \
                 \"api_time\": 0.01, \"think_time\": 0.001}}",
                64 * (at + 1)
            )
        };
        let requests = [0, 1].map(request).join(", ");
        let text = format!(
            "{{\"id\": \"trace_{number:04}\", \"models\": [], \"block_size\": 64, \
             \"hash_id_scope\": \"local\", \"tool_tokens\": 0, \"system_tokens\": 0, \"requests\": [{requests}]}}"
        );
        let path = folder.join(format!("trace_{number:04}.json"));
        std::fs::write(path, text).expect("the folder is writable");
    }
}

#[test]
fn users_of_all_shards_play_every_conversation_once() {
    const CONVERSATIONS: u32 = 8;
    let scenario = Scenario::new("");
    let (traces, folder) =
        (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    pool(traces.path(), CONVERSATIONS);
    let mut config = scenario.config.clone();
    config.trace = traces.path().to_owned();
    config.users.start_users = CONVERSATIONS;
    config.users.max_users = CONVERSATIONS;
    config.users.limits.concurrent = 5;
    let (logs, served) = run_all(&config, folder.path(), &scenario.mock);
    assert_eq!(served.len(), 16);
    let limits = logs.iter().map(|log| {
        let run = Run::read(&std::fs::read(log).expect("a file")).expect("a log");
        run.manifest.users.expect("of users").limits.concurrent
    });
    assert_eq!(limits.collect::<Vec<_>>(), [2, 2, 1]);
    let output = folder.path().join("run.beat");
    let args = merge::Args { logs, output: output.clone(), allow_missing: false, force: false };
    merge::run(&args, &mut Vec::new()).expect("they belong together");
    let run = Run::read(&std::fs::read(&output).expect("a file")).expect("a log");
    assert_eq!(run.warnings, Vec::<String>::new());
    let users = run.users.as_ref().expect("of users");
    let mut played: Vec<_> = (0..run.requests.len()).map(|i| users.template(i)).collect();
    played.sort_unstable();
    assert_eq!(played, (0..2 * CONVERSATIONS).map(Some).collect::<Vec<_>>());
    let mut names: Vec<&str> = run.sessions.iter().map(String::as_str).collect();
    names.sort_unstable();
    let expected: Vec<String> = (1..=CONVERSATIONS).map(|user| format!("User-{user:03}")).collect();
    assert_eq!(names, expected);
    let limits = &run.manifest.users.as_ref().expect("of users").limits;
    assert_eq!(limits.concurrent, 5, "no more together than was given for all");
}
