//! `test_metadata.json`, and the options of a run under the tool's names.
//!
//! Keys, their order and their units are those of the tool's `TestConfig`; what it has and a log
//! does not is null. Folders of the machine that replayed are in no log, so `trace_directory` is a
//! name and `output_dir` null. What the tool does not have is in an object of its own, `onbeat`.
//! `avg_cache_hit_rate` is the mean of what an infinite cache has of each conversation's tokens;
//! the tool counts blocks and, in each request, none after the first miss, which makes it larger.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::cells::seconds;
use crate::log::{Manifest, UserFacts};
use crate::run::Run;

/// The document.
pub(super) fn document(run: &Run) -> Value {
    let manifest = &run.manifest;
    let facts = manifest.users.clone().unwrap_or_default();
    let started = Timestamp::from_nanosecond(i128::from(run.started_unix_ns()));
    let ended = run.footer.as_ref().map(|footer| footer.closing.unix_ns);
    let time = |unix_ns: u64| Timestamp::from_nanosecond(i128::from(unix_ns)).ok();
    let written = ended.and_then(time).or(started.ok());
    let mut metadata = Map::new();
    metadata.insert("model".to_owned(), json!(manifest.model));
    metadata.insert("api_endpoint".to_owned(), json!(manifest.targets.first()));
    metadata.insert("mode".to_owned(), json!("trace_replay"));
    metadata.insert("timestamp".to_owned(), json!(written.map(|time| iso(&time))));
    metadata.insert("trace_stats".to_owned(), trace_stats(&facts));
    metadata.insert("config".to_owned(), Value::Object(parameters(manifest)));
    let whole = json!({
        "onbeat_version": manifest.onbeat_version,
        "run_id": manifest.run_id,
        "started_unix_ns": run.started_unix_ns(),
        "interrupted": run.footer.as_ref().map(|footer| footer.interrupted),
        "trace": manifest.trace.name,
        "trace_sha256": manifest.trace.sha256,
        "api_endpoints": manifest.targets,
        "users": facts,
        "options": manifest.config,
    });
    metadata.insert("onbeat".to_owned(), whole);
    Value::Object(metadata)
}

/// As Python's `isoformat` has it.
fn iso(time: &Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6f+00:00").to_string()
}

fn trace_stats(facts: &UserFacts) -> Value {
    let pool = &facts.pool;
    let mean = |sum: u64| {
        let of = crate::metrics::latency::count;
        (pool.usable > 0).then(|| of(sum) / of(pool.usable))
    };
    json!({
        "total_traces": pool.read,
        "filtered_traces": pool.usable,
        "total_requests": pool.requests,
        "avg_requests_per_trace": mean(pool.requests),
        "avg_cache_hit_rate": pool.cache_hit_rate,
        "min_input_tokens": pool.min_input_tokens,
        "max_input_tokens": pool.max_input_tokens,
        "total_input_tokens": pool.input_tokens,
        "traces_with_tool_use": pool.with_tool_use,
        "max_shared_prefix_tokens": pool.max_prefix_tokens,
    })
}

/// The options of a run under the tool's names, in its order.
pub(super) fn parameters(manifest: &Manifest) -> Map<String, Value> {
    let facts = manifest.users.clone().unwrap_or_default();
    let typed = |name: &str| find(&manifest.config, name).cloned().unwrap_or(Value::Null);
    let none_is_null = |value: Option<Value>| value.unwrap_or(Value::Null);
    let [limits, timing, prompts] = [
        limits(&facts),
        timing(&facts),
        json!({
            "temperature": typed("temperature"),
            "top_p": typed("top_p"),
            "top_k": typed("top_k"),
            "repetition_penalty": typed("repetition_penalty"),
        }),
    ];
    let pairs = [
        ("api_endpoint", json!(manifest.targets.first())),
        ("trace_directory", json!(manifest.trace.name)),
        ("output_dir", Value::Null),
        ("max_context", json!(facts.pool.max_context)),
        ("max_ttft", json!(seconds(facts.max_ttft_ns))),
        ("ttft_metric", json!(facts.ttft_metric)),
        ("min_output_tokens_per_req", json!(facts.min_output_rate)),
        ("start_users", json!(facts.start_users)),
        ("max_users", json!(facts.max_users)),
        ("max_delay", timing["max_delay"].clone()),
        ("time_scale", timing["time_scale"].clone()),
        ("timing_strategy", timing["timing_strategy"].clone()),
        ("api_time_scale", timing["api_time_scale"].clone()),
        ("assessment_period", whole_seconds(facts.period_ns)),
        ("test_duration", none_is_null(facts.duration_ns.map(whole_seconds))),
        ("recycle", json!(facts.recycle)),
        ("chunk_size", json!(facts.prompts.chunk_tokens)),
        ("verbose", typed("verbose")),
        ("tokenizer_id", json!(manifest.token_source)),
        ("min_requests", json!(facts.pool.min_requests)),
        ("max_new_tokens_per_period", json!(facts.limits.new_tokens_per_period)),
        ("max_working_set_tokens", json!(facts.limits.working_set_tokens)),
        ("trace_selection_seed", json!(facts.trace_seed)),
        ("prompt_generation_seed", json!(facts.prompts.seed)),
        ("temperature", prompts["temperature"].clone()),
        ("top_p", prompts["top_p"].clone()),
        ("top_k", prompts["top_k"].clone()),
        ("repetition_penalty", prompts["repetition_penalty"].clone()),
        ("ttft_window", json!(facts.ttft_window)),
        ("rate_limit_backoff", Value::Null),
        ("max_concurrent_requests", limits["max_concurrent_requests"].clone()),
        ("max_prefill_concurrent", limits["max_prefill_concurrent"].clone()),
        ("max_decode_concurrent", limits["max_decode_concurrent"].clone()),
        ("otpm_budget", limits["otpm_budget"].clone()),
        ("itpm_budget", limits["itpm_budget"].clone()),
        ("slo_ttft", json!(facts.goals.ttft_ns.map(seconds))),
        ("slo_decode_tps", json!(facts.goals.decode_tokens_per_s)),
        ("fairness_window", Value::Null),
        ("cache_max_age", json!(seconds(facts.limits.cache_max_age_ns))),
        ("warm_prefix_pct", json!(facts.prompts.warm_prefix_share)),
        ("advance_min", timing["advance_min"].clone()),
        ("advance_max", timing["advance_max"].clone()),
        ("advance_all_users", timing["advance_all_users"].clone()),
        ("max_consecutive_errors", limits["max_consecutive_errors"].clone()),
        ("circuit_breaker_window", limits["circuit_breaker_window"].clone()),
    ];
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn limits(facts: &UserFacts) -> Value {
    let limits = &facts.limits;
    json!({
        "max_concurrent_requests": limits.concurrent,
        "max_prefill_concurrent": limits.prefill,
        "max_decode_concurrent": limits.decode,
        "otpm_budget": limits.output_tokens_per_minute,
        "itpm_budget": limits.input_tokens_per_minute,
        "max_consecutive_errors": limits.consecutive_errors,
        "circuit_breaker_window": seconds(limits.circuit_breaker_ns),
    })
}

fn timing(facts: &UserFacts) -> Value {
    let timing = &facts.timing;
    json!({
        "max_delay": seconds(timing.max_delay_ns),
        "time_scale": timing.time_scale,
        "timing_strategy": timing.strategy,
        "api_time_scale": timing.api_time_scale,
        "advance_min": timing.advance_min,
        "advance_max": timing.advance_max,
        "advance_all_users": timing.advance_all_users,
    })
}

/// Whole seconds as an integer, as the tool has them; others as a fraction.
fn whole_seconds(ns: i64) -> Value {
    let second = crate::units::NANOS_PER_SECOND;
    if ns % second == 0 { json!(ns / second) } else { json!(seconds(ns)) }
}

/// An option in the resolved configuration, in whatever group it stands.
fn find<'a>(config: &'a Value, name: &str) -> Option<&'a Value> {
    let groups = config.as_object()?;
    groups.get(name).or_else(|| groups.values().find_map(|group| group.get(name)))
}
