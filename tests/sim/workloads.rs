//! What simulated runs replay: small traces, made once, and the options drawn for each run.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use onbeat::plan::{self, Cancelling, Plan, PlanMode, PlanOptions, ScriptOptions, Scripts, Share};
use onbeat::policy::admission;
use onbeat::policy::deadline::Limits;
use onbeat::policy::options::{Breaker, RampChoice, RampWay, TtftMetric, UserOptions};
use onbeat::trace::{self, TraceOptions};
use onbeat_shared::trace::Trace;
use serde_json::{Value, json};

use super::random::Random;

const MS: i64 = 1_000_000;

/// Sessions of one to five turns, lone requests and bursts.
static SESSIONS: LazyLock<Vec<Trace>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = |seed| sessions(folder.path(), &mut Random::new(seed));
    (0..16).map(trace).collect()
});

/// Conversations with and without sub-agents.
static CONVERSATIONS: LazyLock<Vec<(Trace, Arc<Scripts>)>> = LazyLock::new(|| {
    let workload = |seed| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let trace = conversations(folder.path(), &mut Random::new(seed));
        let options = ScriptOptions { max_delay_ns: 40 * MS, ..ScriptOptions::default() };
        let scripts = Arc::new(plan::scripts(&trace, &options).expect("scripts"));
        (trace, scripts)
    };
    (0..6).map(workload).collect()
});

fn sessions(folder: &Path, random: &mut Random) -> Trace {
    let mut text = String::new();
    let mut at = 0;
    for session in 0..2 + random.below(8) {
        at += if random.one_in(3) { 0 } else { random.below(30) };
        let turns = if random.one_in(2) { 1 } else { 1 + random.below(5) };
        for turn in 0..turns {
            let (input, output) = (1 + random.below(900), 1 + random.below(9));
            let when = match (turn, random.below(3)) {
                (0, _) | (_, 0) => format!("\"timestamp\": {}", at + turn * 10),
                _ => format!("\"delay\": {}", random.below(20)),
            };
            let ids: Vec<String> =
                (0..input.div_ceil(512)).map(|id| (session * 10 + id).to_string()).collect();
            let ids = ids.join(", ");
            let line = format!(
                "{{\"session_id\": \"s{session}\", {when}, \"input_length\": {input}, \
                 \"output_length\": {output}, \"hash_ids\": [{ids}]}}"
            );
            writeln!(text, "{line}").expect("a string takes everything");
        }
    }
    let path = folder.join("trace.jsonl");
    std::fs::write(&path, text).expect("the folder is writable");
    trace::load(&path, &TraceOptions::default()).expect("a trace")
}

fn conversations(folder: &Path, random: &mut Random) -> Trace {
    let request = |first: u64, blocks: u64| {
        let ids: Vec<u64> = (first..first + blocks).collect();
        json!({
            "t": 1.0, "type": "s", "model": "m", "in": blocks * 64, "out": 5, "hash_ids": ids,
            "input_types": ["text"], "output_types": ["text"], "stop": "", "api_time": 0.0,
            "think_time": 0.02,
        })
    };
    let agent = |requests: &[Value]| {
        json!({
            "t": 1.0, "type": "subagent", "agent_id": "a", "subagent_type": "Explore",
            "duration_ms": 1, "total_tokens": 1, "tool_use_count": 1, "status": "completed",
            "models": ["m"], "tool_tokens": 0, "system_tokens": 0, "requests": requests,
        })
    };
    for place in 0..12 {
        let mut entries: Vec<Value> =
            (0..=random.below(4)).map(|turn| request(1, place + 2 * turn + 1)).collect();
        if place % 3 == 0 {
            let nested = agent(&[request(700, 2)]);
            entries.insert(1, agent(&[request(500, 3), nested]));
            entries.push(agent(&[request(600, 3)]));
        }
        let conversation = json!({
            "id": format!("trace_{place:04}"), "models": ["m"], "block_size": 64,
            "hash_id_scope": "local", "tool_tokens": 0, "system_tokens": 0, "requests": entries,
        });
        let path = folder.join(format!("trace_{place:04}.json"));
        std::fs::write(path, conversation.to_string()).expect("the folder is writable");
    }
    trace::read(folder, &TraceOptions::default()).expect("conversations")
}

/// A plan of one of the traces.
pub(super) fn plan(random: &mut Random, cores: u16) -> Plan {
    let place = usize::try_from(random.below(SESSIONS.len() as u64)).expect("few");
    let cancelling = random.one_in(3).then(|| Cancelling {
        share: Share::of(0.4).expect("a share"),
        delay_ns: random.ns(20_000_000),
    });
    let options = PlanOptions {
        mode: match random.below(4) {
            0 => PlanMode::ClosedLoop,
            1 => PlanMode::OpenLoopStrict,
            _ => PlanMode::OpenLoop,
        },
        copies: if random.one_in(5) { 2 } else { 1 },
        think_cap_ns: random.one_in(3).then_some(5 * MS),
        cancelling,
        seed: random.next(),
        cores,
        targets: if random.one_in(4) { 2 } else { 1 },
        ..PlanOptions::default()
    };
    plan::build(&SESSIONS[place], &options).expect("a plan")
}

/// Time limits under which every exchange ends some time.
pub(super) fn limits(random: &mut Random) -> Limits {
    let mut some = |most: u64| Some(1 + random.ns(most));
    let (connect_ns, first_byte_ns) = (some(30_000_000), some(60_000_000));
    let (idle_ns, total_ns) = (some(40_000_000), some(200_000_000));
    match random.below(3) {
        0 => Limits { connect_ns, first_byte_ns, idle_ns, total_ns: None },
        1 => Limits { total_ns, ..Limits::default() },
        _ => Limits { connect_ns, first_byte_ns, idle_ns, total_ns },
    }
}

/// A trace of conversations.
pub(super) fn pool(random: &mut Random) -> &'static (Trace, Arc<Scripts>) {
    &CONVERSATIONS[usize::try_from(random.below(CONVERSATIONS.len() as u64)).expect("few")]
}

/// What users are asked to do in so long.
pub(super) fn users(random: &mut Random, duration_ns: i64) -> UserOptions {
    let most = u32::try_from(2 + random.below(7)).expect("few");
    let some = |random: &mut Random, most: u64| {
        if random.one_in(3) { u32::try_from(1 + random.below(most)).expect("few") } else { 0 }
    };
    let limits = admission::Limits {
        concurrent: some(random, 6),
        prefill: some(random, 4),
        decode: some(random, 4),
        input_per_minute: u64::from(some(random, 200_000)),
        output_per_minute: 0,
    };
    UserOptions {
        start_users: u32::try_from(1 + random.below(3)).expect("few"),
        max_users: most,
        recycle: !random.one_in(4),
        trace_seed: random.next(),
        duration_ns: Some(duration_ns),
        ttft_gate: random.one_in(3),
        new_tokens_per_period: if random.one_in(4) { 1_500 } else { 0 },
        working_set_tokens: if random.one_in(4) { 30_000 } else { 0 },
        breaker: Breaker { errors: if random.one_in(4) { 3 } else { 0 }, window_ns: 50 * MS },
        limits,
        ramp: RampChoice {
            way: if random.one_in(3) { RampWay::Rolling } else { RampWay::Documented },
            metric: TtftMetric::P95,
            max_ttft_ns: 1 + random.ns(20_000_000),
            period_ns: duration_ns / 6,
            ..RampChoice::default()
        },
        ..UserOptions::default()
    }
}
