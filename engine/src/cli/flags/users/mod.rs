//! Users that replay the conversations of an agentic trace: options as typed.
//!
//! Names and defaults are those of kv-cache-tester's page. Options that a trace of another format
//! leaves without meaning are told by their names, see [`UserFlags::given`].

mod admission;
mod conversation;
mod files;
mod given;
mod population;
mod ramp;

use clap::Args;
use onbeat_shared::trace::decimal::{Decimal, Ratio};
use serde::Serialize;

pub use self::admission::AdmissionFlags;
pub use self::conversation::{AsyncFlag, ConversationFlags, ReplyFlag, TimingFlag};
pub use self::files::FilesFlags;
use self::given::Given;
pub use self::population::PopulationFlags;
pub use self::ramp::{MetricFlag, RampFlags, WayFlag};
use crate::cli::flags::Typed;
use crate::cli::flags::number::real;
use crate::cli::report::GoalFlags;
use crate::error::EngineError;
use crate::plan::ScriptOptions;
use crate::plan::script::Strategy;
use crate::policy::admission::Limits;
use crate::policy::options::{
    Advance, Breaker, RampChoice, RampWay, ReplyMode, TtftMetric, UserOptions,
};

/// Everything about users.
#[derive(Clone, Debug, Args, Serialize, schemars::JsonSchema)]
pub struct UserFlags {
    #[command(flatten)]
    #[serde(skip)]
    given: Given,
    /// Who there is.
    #[command(flatten)]
    #[serde(flatten)]
    pub population: PopulationFlags,
    /// What each does.
    #[command(flatten)]
    #[serde(flatten)]
    pub conversation: ConversationFlags,
    /// What holds them back.
    #[command(flatten)]
    #[serde(flatten)]
    pub admission: AdmissionFlags,
    /// How many there are.
    #[command(flatten)]
    #[serde(flatten)]
    pub ramp: RampFlags,
    /// What is left of it.
    #[command(flatten)]
    #[serde(flatten)]
    pub files: FilesFlags,
}

impl UserFlags {
    /// The long names of those that were typed, with their dashes.
    #[must_use]
    pub fn given(&self) -> &[String] {
        &self.given.0
    }

    /// Everything about users as meant, but for the folder that files go to; `seed` is that of the
    /// run, `goals` those of its requests.
    ///
    /// # Errors
    /// When two options contradict each other, or a goal is no limit.
    pub fn options(&self, seed: u64, goals: &GoalFlags) -> Result<UserOptions, EngineError> {
        self.check()?;
        let Self { population, conversation, admission, ramp, files, .. } = self;
        Ok(UserOptions {
            script: self.script(),
            start_users: population.start_users.get(),
            max_users: population.max_users.get(),
            recycle: population.recycle,
            advance: Advance {
                min: population.advance_min,
                max: population.advance_max,
                all_users: population.advance_all_users,
            },
            trace_seed: population.trace_seed.unwrap_or(seed),
            prompt_seed: population.prompt_seed.unwrap_or(seed),
            duration_ns: conversation.test_duration.as_ref().map(|typed| typed.value),
            limits: Limits {
                concurrent: admission.max_concurrent_requests,
                prefill: admission.max_prefill_concurrent,
                decode: admission.max_decode_concurrent,
                input_per_minute: admission.itpm_budget,
                output_per_minute: admission.otpm_budget,
            },
            ttft_gate: admission.enable_request_rate_limiting,
            ramp: ramp.choice(),
            new_tokens_per_period: ramp.max_new_tokens_per_period,
            working_set_tokens: ramp.max_working_set_tokens,
            cache_age_ns: ramp.cache_max_age.value,
            chunk_tokens: conversation.chunk_size.get(),
            breaker: Breaker {
                errors: admission.max_consecutive_errors,
                window_ns: admission.circuit_breaker_window.value,
            },
            reply: match conversation.reply_mode {
                ReplyFlag::Live => ReplyMode::Live,
                ReplyFlag::Recorded => ReplyMode::Recorded,
            },
            stream_all: conversation.stream_all,
            tool_role: conversation.tool_role,
            slo: goals.for_users()?,
            resume: files.resume.clone(),
            files: None,
            graphs: !files.skip_graphs,
        })
    }

    /// Refuses what each option alone may say, but not beside another.
    fn check(&self) -> Result<(), EngineError> {
        let PopulationFlags { start_users, max_users, advance_min, advance_max, .. } =
            self.population;
        if start_users > max_users {
            return Err(EngineError::Usage(format!(
                "--start-users {start_users} is above --max-users {max_users}; start fewer, or \
                 raise --max-users"
            )));
        }
        if advance_min > advance_max {
            return Err(EngineError::Usage(format!(
                "--advance-min {advance_min} is above --advance-max {advance_max}; give a range \
                 within 0 to 1, like --advance-min 0.3 --advance-max 0.6"
            )));
        }
        Ok(())
    }

    fn script(&self) -> ScriptOptions {
        let Self { population, conversation, .. } = self;
        ScriptOptions {
            strategy: match conversation.timing_strategy {
                TimingFlag::ThinkOnly => Strategy::ThinkOnly,
                TimingFlag::Original => Strategy::Original,
                TimingFlag::ApiScaled => Strategy::ApiScaled,
            },
            max_delay_ns: conversation.max_delay.value,
            time_scale: conversation.time_scale.value,
            api_time_scale: conversation.api_time_scale.value,
            clamp_think: !conversation.no_clamp_think_time,
            detach_async: conversation.async_subagents == AsyncFlag::Detach,
            max_context: population.max_context.get(),
            min_requests: population.min_requests,
            warm_prefix_share: conversation.warm_prefix_pct,
        }
    }

    /// What the user should know about what was typed.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let scaled = self.conversation.timing_strategy == TimingFlag::ApiScaled;
        let vain = !scaled && self.given.has("--api-time-scale");
        let words = "--api-time-scale changes nothing: it is for --timing-strategy api-scaled";
        let rolling = self.ramp.ramp == WayFlag::Rolling;
        let window = !rolling && self.given.has("--ttft-window");
        let words_of_window = "--ttft-window changes nothing: it is for --ramp rolling";
        let mut told = self.admission.warnings();
        let vain = [(vain, words), (window, words_of_window)];
        told.extend(vain.iter().filter(|(vain, _)| *vain).map(|(_, words)| (*words).to_owned()));
        told
    }
}

impl RampFlags {
    fn choice(&self) -> RampChoice {
        RampChoice {
            way: match self.ramp {
                WayFlag::Documented => RampWay::Documented,
                WayFlag::Rolling => RampWay::Rolling,
            },
            max_ttft_ns: self.max_ttft.value,
            metric: match self.ttft_metric {
                MetricFlag::Max => TtftMetric::Max,
                MetricFlag::Avg => TtftMetric::Avg,
                MetricFlag::P95 => TtftMetric::P95,
            },
            window: self.ttft_window.get(),
            min_output_tokens_per_request: self.min_output_tokens_per_req,
            period_ns: self.assessment_period.value,
        }
    }
}

/// A share of something, none and all included.
fn share(text: &str) -> Result<f64, String> {
    let right = "give a share from 0 to 1, like 0.5";
    real(text).ok().filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| right.to_owned())
}

/// A factor, 0 included.
fn scale(text: &str) -> Result<Typed<Ratio>, String> {
    let right = "give a factor, 0 or more, with at most 19 digits, like 0.5";
    let number = Decimal::parse(text).map_err(|error| format!("{error}; {right}"))?;
    let nothing = number.scaled(0) == Ok(0) && real(text) == Ok(0.0);
    let nothing = nothing.then_some(Ratio { numerator: 0, denominator: 1 });
    let value = nothing.map_or_else(|| number.ratio(), Ok);
    let value = value.map_err(|error| format!("{error}; {right}"))?;
    Ok(Typed { text: text.to_owned(), value })
}

#[cfg(test)]
mod tests;
