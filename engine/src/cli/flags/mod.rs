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
pub(crate) mod number;
pub mod peers;
pub mod run;
pub mod target;
pub mod timing;
pub mod trace;
pub mod users;

use serde::{Serialize, Serializer};

use self::body::BodyFlags;
use self::cancel::CancelFlags;
use self::timing::TimingFlags;
use self::trace::{SessionKeyFlag, TraceFlags};

/// Which of the options that mean nothing for some traces were typed, by their names; see
/// [`crate::trace::without_meaning`].
#[must_use]
pub fn given(
    trace: &TraceFlags,
    timing: &TimingFlags,
    cancel: &CancelFlags,
    body: &BodyFlags,
) -> Vec<&'static str> {
    [
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
    ]
    .into_iter()
    .filter_map(|(given, name)| given.then_some(name))
    .collect()
}

/// A value kept with the text it was typed as, which is what a log shows of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typed<T> {
    /// As typed.
    pub text: String,
    /// As meant.
    pub value: T,
}

impl<T> Serialize for Typed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}
