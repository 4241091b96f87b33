//! What the log says of a user-driven run before it begins: its options as meant, and its pool.
//!
//! Nothing is decided here; every number is another module's.

use onbeat_shared::log::user_facts::{
    PoolFacts, UserFacts, UserGoals, UserLimits, UserPrompts, UserTiming,
};
use onbeat_shared::trace::Trace;
use onbeat_shared::trace::agentic::{Agentic, Entry, Stop};

use crate::plan::script::{Cue, Script, Scripts, Strategy};
use crate::policy::options::{RampWay, ReplyMode, TtftMetric, UserOptions};

/// The facts of a run of `scripts` with `options`, which may go on from runs of so many users.
pub(super) fn of(
    options: &UserOptions,
    users_before: u32,
    scripts: &Scripts,
    trace: &Trace,
) -> UserFacts {
    let agentic = trace.recorded.agentic.as_ref();
    UserFacts {
        period_ns: options.ramp.period_ns,
        duration_ns: options.duration_ns,
        users_before,
        start_users: options.start_users,
        max_users: options.max_users,
        recycle: options.recycle,
        max_ttft_ns: options.ramp.max_ttft_ns,
        ttft_metric: match options.ramp.metric {
            TtftMetric::Max => "max",
            TtftMetric::Avg => "avg",
            TtftMetric::P95 => "p95",
        }
        .to_owned(),
        min_output_rate: options.ramp.min_output_tokens_per_request,
        ramp: match options.ramp.way {
            RampWay::Documented => "documented",
            RampWay::Rolling => "rolling",
        }
        .to_owned(),
        ttft_window: (options.ramp.way == RampWay::Rolling).then_some(options.ramp.window),
        limits: limits(options),
        timing: timing(options, scripts),
        prompts: prompts(options, scripts),
        goals: UserGoals {
            ttft_ns: Some(options.slo.ttft_ns),
            decode_tokens_per_s: Some(options.slo.decode_tps),
        },
        pool: agentic.map_or_else(PoolFacts::default, |agentic| pool(options, scripts, agentic)),
        trace_seed: Some(options.trace_seed),
        trace_ids: agentic.map_or_else(Vec::new, |agentic| ids(agentic, trace.sessions.len())),
    }
}

fn limits(options: &UserOptions) -> UserLimits {
    UserLimits {
        concurrent: options.limits.concurrent,
        prefill: options.limits.prefill,
        decode: options.limits.decode,
        input_tokens_per_minute: options.limits.input_per_minute,
        output_tokens_per_minute: options.limits.output_per_minute,
        by_ttft: options.ttft_gate,
        new_tokens_per_period: options.new_tokens_per_period,
        working_set_tokens: options.working_set_tokens,
        cache_max_age_ns: options.cache_age_ns,
        consecutive_errors: options.breaker.errors,
        circuit_breaker_ns: options.breaker.window_ns,
    }
}

fn timing(options: &UserOptions, scripts: &Scripts) -> UserTiming {
    UserTiming {
        strategy: match options.script.strategy {
            Strategy::ThinkOnly => "think-only",
            Strategy::Original => "original",
            Strategy::ApiScaled => "api-scaled",
        }
        .to_owned(),
        max_delay_ns: options.script.max_delay_ns,
        time_scale: options.script.time_scale.as_f64(),
        api_time_scale: options.script.api_time_scale.as_f64(),
        clamped_think_times: scripts.clamped,
        clamp_think_times: options.script.clamp_think,
        async_subagents: if options.script.detach_async { "detach" } else { "wait" }.to_owned(),
        advance_min: options.advance.min,
        advance_max: options.advance.max,
        advance_all_users: options.advance.all_users,
    }
}

fn prompts(options: &UserOptions, scripts: &Scripts) -> UserPrompts {
    UserPrompts {
        warm_prefix_share: options.script.warm_prefix_share,
        warm_prefix_tokens: scripts.warm_tokens,
        reply_mode: match options.reply {
            ReplyMode::Live => "live",
            ReplyMode::Recorded => "recorded",
        }
        .to_owned(),
        chunk_tokens: options.chunk_tokens,
        stream_all: options.stream_all,
        tool_role: if options.tool_role { "tool" } else { "user" }.to_owned(),
        seed: options.prompt_seed,
    }
}

fn pool(options: &UserOptions, scripts: &Scripts, agentic: &Agentic) -> PoolFacts {
    let kept = || scripts.scripts.iter().filter(|script| script.in_pool);
    let inputs = || kept().map(|script| own_turns(script).map(|own| own.0).sum::<u64>());
    let rates: Vec<f64> = kept().filter_map(hit_rate).collect();
    let with_tools = |script: &&Script| {
        script.records.clone().any(|record| agentic.calls[record as usize].stop == Stop::ToolUse)
    };
    let prefixes = agentic.conversations.iter().zip(&scripts.scripts);
    let prefixes = prefixes.filter(|(_, script)| script.in_pool).filter_map(|(own, _)| {
        let known = own.prefix.tool_tokens.or(own.prefix.system_tokens).is_some();
        let tools = own.prefix.tool_tokens.unwrap_or(0);
        known.then(|| tools.saturating_add(own.prefix.system_tokens.unwrap_or(0)))
    });
    PoolFacts {
        min_requests: options.script.min_requests,
        max_context: options.script.max_context,
        read: u64::from(scripts.pool.conversations),
        usable: u64::from(scripts.pool.kept),
        requests: kept().map(|script| own_turns(script).count() as u64).sum(),
        input_tokens: inputs().sum(),
        min_input_tokens: inputs().min(),
        max_input_tokens: inputs().max(),
        // Counts stay far below 2^52, where f64 is exact.
        cache_hit_rate: (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64),
        with_tool_use: kept().filter(with_tools).count() as u64,
        max_prefix_tokens: prefixes.max(),
    }
}

/// Of each request of a conversation's own part, its input tokens and those of them that the
/// conversation sent before.
fn own_turns(script: &Script) -> impl Iterator<Item = (u64, u64)> {
    let cues = script.parts.first().into_iter().flat_map(|part| &part.cues);
    cues.filter_map(|cue| match cue {
        Cue::Request(turn) => {
            let shared = script.shared_of(turn).first().map_or(0, |shared| shared.tokens);
            Some((u64::from(turn.input_tokens), u64::from(shared)))
        }
        Cue::Agent { .. } | Cue::Nothing => None,
    })
}

/// What an infinite cache would have of a conversation that is played alone.
fn hit_rate(script: &Script) -> Option<f64> {
    let (tokens, shared) =
        own_turns(script).fold((0, 0), |(tokens, shared), own| (tokens + own.0, shared + own.1));
    (tokens > 0).then(|| shared as f64 / tokens as f64)
}

/// The trace's own id for each session: a conversation's, and behind a colon an agent's.
fn ids(agentic: &Agentic, sessions: usize) -> Vec<String> {
    let mut ids = vec![String::new(); sessions];
    for conversation in &agentic.conversations {
        if let Some(id) = ids.get_mut(conversation.session.as_usize()) {
            id.clone_from(&conversation.id);
        }
        agents(agentic, &conversation.entries, &conversation.id, &mut ids);
    }
    ids
}

fn agents(agentic: &Agentic, entries: &[Entry], parent: &str, ids: &mut [String]) {
    for entry in entries {
        let Entry::Group(group) = entry else { continue };
        let group = &agentic.groups[*group as usize];
        let id = format!("{parent}:{}", group.agent_id);
        agents(agentic, &group.entries, &id, ids);
        if let Some(own) = group.session.and_then(|session| ids.get_mut(session.as_usize())) {
            *own = id;
        }
    }
}
