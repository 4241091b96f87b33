//! Every option, as typed: one clap struct per group, flattened into the subcommands that take it.
//!
//! Each option is documented here once, in one sentence with its unit and default; help, manual
//! page, completions and the flag reference come from that. A group's own functions turn what was
//! typed into the options a stage takes (`TraceOptions`, `PlanOptions`, `RenderOptions`), where
//! nothing can contradict anything else. Names are those of AIPerf and kv-cache-tester where they
//! have one.

pub mod body;
pub mod cancel;
mod extra;
pub mod gate;
pub mod generation;
pub mod live;
pub(crate) mod number;
pub mod peers;
pub mod run;
pub mod shard;
pub mod target;
pub mod timing;
pub mod trace;
pub mod users;

use serde::{Serialize, Serializer};

use self::body::BodyFlags;
use self::cancel::CancelFlags;
use self::timing::TimingFlags;
use self::trace::{SessionKeyFlag, TraceFlags};
use crate::trace::Given;

/// Which of the options that mean nothing for some traces were typed, by their names; see
/// [`crate::trace::without_meaning`]. Those of users are not looked at: not all commands have them.
#[must_use]
pub fn given(
    trace: &TraceFlags,
    timing: &TimingFlags,
    cancel: &CancelFlags,
    body: &BodyFlags,
) -> Given {
    let generation = &body.generation;
    let options = [
        (generation.temperature.is_some(), "--temperature"),
        (generation.top_p.is_some(), "--top-p"),
        (generation.top_k.is_some(), "--top-k"),
        (generation.repetition_penalty.is_some(), "--repetition-penalty"),
        (body.model.is_some(), "--model"),
        (!body.extra_inputs.is_empty(), "--extra-inputs"),
        (body.no_streaming, "--no-streaming"),
        (body.no_include_usage, "--no-include-usage"),
        (body.per_chunk_usage, "--per-chunk-usage"),
        (body.use_legacy_max_tokens, "--use-legacy-max-tokens"),
        (body.context_mode.is_some(), "--context-mode"),
        (body.omit_kv_hints, "--omit-kv-hints"),
        (timing.max_isl.is_some(), "--max-isl"),
        (timing.max_osl.is_some(), "--max-osl"),
        (timing.synthesis_output_len_multiplier.is_some(), "--synthesis-output-len-multiplier"),
        (timing.no_force_min_tokens, "--no-force-min-tokens"),
        (cancel.replay_cancellations, "--replay-cancellations"),
        (trace.lenient, "--lenient"),
        (trace.isl_block_size.is_some(), "--isl-block-size"),
        (trace.session_key != SessionKeyFlag::Auto, "--session-key"),
    ];
    let named = |(given, name): (bool, &'static str)| given.then_some(name);
    Given {
        options: options.into_iter().filter_map(named).collect(),
        of_schedule: of_schedule(timing, cancel).into_iter().filter_map(named).collect(),
        ..Given::default()
    }
}

/// Which options of a schedule were typed, but for those that may mean nothing for other reasons.
fn of_schedule(timing: &TimingFlags, cancel: &CancelFlags) -> [(bool, &'static str); 20] {
    [
        (timing.replay_speedup.is_some(), "--replay-speedup"),
        (timing.fixed_schedule_start_offset.is_some(), "--fixed-schedule-start-offset"),
        (timing.fixed_schedule_end_offset.is_some(), "--fixed-schedule-end-offset"),
        (timing.fixed_schedule_auto_offset, "--fixed-schedule-auto-offset"),
        (timing.fixed_schedule, "--fixed-schedule"),
        (timing.request_rate.is_some(), "--request-rate"),
        (timing.max_idle_gap_cap_seconds.is_some(), "--max-idle-gap-cap-seconds"),
        (timing.trace_session_sample_ratio.is_some(), "--trace-session-sample-ratio"),
        (timing.synthesis_speedup_ratio.is_some(), "--synthesis-speedup-ratio"),
        (timing.synthesis_prefix_len_multiplier.is_some(), "--synthesis-prefix-len-multiplier"),
        (timing.synthesis_prefix_root_multiplier.is_some(), "--synthesis-prefix-root-multiplier"),
        (timing.synthesis_prompt_len_multiplier.is_some(), "--synthesis-prompt-len-multiplier"),
        (timing.benchmark_duration.is_some(), "--benchmark-duration"),
        (timing.request_count.is_some(), "--request-count"),
        (timing.tile.is_some(), "--tile"),
        (timing.open_loop_replay, "--open-loop-replay"),
        (timing.no_open_loop_replay, "--no-open-loop-replay"),
        (timing.inter_turn_delay_cap_seconds.is_some(), "--inter-turn-delay-cap-seconds"),
        (timing.open_loop_strict, "--open-loop-strict"),
        (cancel.request_cancellation_rate.is_some(), "--request-cancellation-rate"),
    ]
}

/// A value kept with the text it was typed as, which is what a log shows of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typed<T> {
    /// As typed.
    pub text: String,
    /// As meant.
    pub value: T,
}

impl<T> schemars::JsonSchema for Typed<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Typed".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

impl<T> Serialize for Typed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}
