//! What a goal may be about: the numbers of one request, by every name that people type.
//!
//! Durations and whatever else should be small have an upper limit; speeds and token counts have a
//! lower one, as AIPerf compares them. Names are ours, AIPerf's tags of a request's numbers, and
//! those of `vllm bench`. Unknown here are AIPerf's tags of whole runs, which no request can meet,
//! and of what a run log cannot tell. Limits are in the unit of the number's key: milliseconds,
//! tokens, tokens per second.

use std::hash::{Hash, Hasher};

use super::latency::{self, Metric, chunk_gaps_ns, count, nanos, span};
use super::tokens;
use crate::run::Run;
use crate::units::RunNanos;

/// A decode this short meets any decode-speed goal: too short to measure a speed.
pub const SHORT_DECODE_NS: i64 = 100_000_000;

/// One limit on one number of a request. Two goals are the same if their limits are, bit by bit, so
/// that goals can be keys.
#[derive(Clone, Copy, Debug)]
pub struct Goal {
    /// On what.
    pub kind: GoalKind,
    /// The limit, in the kind's unit.
    pub limit: f64,
}

impl PartialEq for Goal {
    fn eq(&self, other: &Self) -> bool {
        (self.kind, self.limit.to_bits()) == (other.kind, other.limit.to_bits())
    }
}

impl Eq for Goal {}

impl Hash for Goal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.kind, self.limit.to_bits()).hash(state);
    }
}

/// What a goal is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GoalKind {
    /// At most this many milliseconds.
    AtMost(Metric),
    /// At least this many tokens per second while decoding: completion tokens / decode time, or a
    /// decode of at most 0.1 s.
    DecodeSpeed,
    /// A number beside those, with its own direction.
    Of(Figure),
}

/// A number of one request that is none of the durations reports list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Figure {
    /// 1 / ITL, in tokens per second.
    PerUserSpeed,
    /// Completion tokens / end to end, in tokens per second.
    E2eSpeed,
    /// Prompt tokens / TTFT, in tokens per second.
    PrefillSpeed,
    /// The longest gap between successive content events, in milliseconds: a goal on it is one on
    /// every gap.
    LongestGap,
    /// First byte of the answer − kernel accepted the last byte, in milliseconds.
    Waiting,
    /// End of the exchange − first byte of the answer, in milliseconds.
    Receiving,
    /// End of the exchange − sent, in milliseconds.
    Exchange,
    /// One if its connection had carried an earlier request, else zero.
    Reused,
    /// Bytes of its body / 1,024, if it was rendered before the start.
    Body,
    /// Completion tokens, whoever counted.
    Completion,
    /// Completion tokens that are no reasoning.
    Output,
    /// Reasoning tokens, as reported.
    Reasoning,
    /// Prompt tokens, whoever counted.
    Prompt,
    /// Prompt tokens, as reported.
    ReportedPrompt,
    /// Completion tokens, as reported.
    ReportedCompletion,
    /// Both, as reported.
    ReportedTotal,
    /// Cached prompt tokens, as reported.
    Cached,
    /// (Completion tokens − planned output) / planned output, in per cent.
    LengthMiss,
}

/// Which way a limit goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    Upper,
    Lower,
}

/// What there is to know of a [`Figure`].
struct Row {
    figure: Figure,
    limit: Limit,
    /// Its key in the report.
    name: &'static str,
    /// Its other names, AIPerf's first.
    others: &'static [&'static str],
    value: fn(&Run, usize) -> Option<f64>,
}

/// The other names of durations, AIPerf's first where it has one.
const DURATIONS: &[(Metric, &[&str])] = &[
    (Metric::Ttft, &["time_to_first_token"]),
    (Metric::TtftFromDue, &[]),
    (Metric::FirstOutputToken, &["time_to_first_output_token", "ttfo"]),
    (Metric::Ttst, &["time_to_second_token"]),
    (Metric::Itl, &["inter_token_latency", "tpot"]),
    (Metric::Ntpot, &[]),
    (Metric::Decode, &["decode_duration"]),
    (Metric::E2e, &["request_latency", "e2el"]),
    (Metric::E2eFromDue, &[]),
    (Metric::Send, &["http_req_sending"]),
    (Metric::FirstByte, &[]),
];

/// Keys of the decode speed: the report's, and the short one.
const DECODE_SPEED: [&str; 2] = ["decode_tokens_per_s", "decode_tps"];

/// Every figure, in the order of its number.
const FIGURES: &[Row] = &[
    Row {
        figure: Figure::PerUserSpeed,
        limit: Limit::Lower,
        name: "output_tokens_per_s_per_user",
        others: &["output_token_throughput_per_user"],
        value: latency::tokens_per_s_per_user,
    },
    Row {
        figure: Figure::E2eSpeed,
        limit: Limit::Lower,
        name: "e2e_output_tokens_per_s",
        others: &["e2e_output_token_throughput"],
        value: |run, i| per_second(tokens::completion(run, i)?, latency::e2e_ns(run, i)?),
    },
    Row {
        figure: Figure::PrefillSpeed,
        limit: Limit::Lower,
        name: "prefill_tokens_per_s",
        others: &["prefill_throughput_per_user"],
        value: |run, i| per_second(tokens::prompt(run, i)?, latency::ttft_ns(run, i)?),
    },
    Row {
        figure: Figure::LongestGap,
        limit: Limit::Upper,
        name: "longest_icl_ms",
        others: &["inter_chunk_latency", "icl"],
        value: |run, i| chunk_gaps_ns(run, i).max().map(|gap| nanos(gap) / 1e6),
    },
    Row {
        figure: Figure::Waiting,
        limit: Limit::Upper,
        name: "http_waiting_ms",
        others: &["http_req_waiting"],
        value: |run, i| between(run.requests.sent_end(i), run.requests.first_byte(i)),
    },
    Row {
        figure: Figure::Receiving,
        limit: Limit::Upper,
        name: "http_receiving_ms",
        others: &["http_req_receiving"],
        value: |run, i| between(run.requests.first_byte(i), run.requests.done(i)),
    },
    Row {
        figure: Figure::Exchange,
        limit: Limit::Upper,
        name: "http_duration_ms",
        others: &["http_req_duration"],
        value: |run, i| between(run.requests.sent(i), run.requests.done(i)),
    },
    Row {
        figure: Figure::Reused,
        limit: Limit::Upper,
        name: "connection_reused",
        others: &["http_req_connection_reused"],
        value: |run, i| run.requests.connection_reused(i).map(|reused| f64::from(u8::from(reused))),
    },
    Row {
        figure: Figure::Body,
        limit: Limit::Upper,
        name: "body_kib",
        others: &["http_req_data_sent"],
        value: |run, i| Some(count(run.plan[i].body_bytes?.get()) / 1024.0),
    },
    Row {
        figure: Figure::Completion,
        limit: Limit::Lower,
        name: "completion_tokens",
        others: &["output_sequence_length"],
        value: |run, i| tokens::completion(run, i).map(count),
    },
    Row {
        figure: Figure::Output,
        limit: Limit::Lower,
        name: "output_tokens",
        others: &["output_token_count"],
        value: |run, i| {
            let reasoning = run.requests.reasoning_tokens(i).map_or(0, u64::from);
            tokens::completion(run, i).map(|all| count(all.saturating_sub(reasoning)))
        },
    },
    Row {
        figure: Figure::Reasoning,
        limit: Limit::Lower,
        name: "reasoning_tokens",
        others: &["reasoning_token_count", "usage_reasoning_tokens"],
        value: |run, i| run.requests.reasoning_tokens(i).map(f64::from),
    },
    Row {
        figure: Figure::Prompt,
        limit: Limit::Lower,
        name: "prompt_tokens",
        others: &["input_sequence_length"],
        value: |run, i| tokens::prompt(run, i).map(count),
    },
    Row {
        figure: Figure::ReportedPrompt,
        limit: Limit::Lower,
        name: "reported_prompt_tokens",
        others: &["usage_prompt_tokens"],
        value: |run, i| run.requests.prompt_tokens(i).map(f64::from),
    },
    Row {
        figure: Figure::ReportedCompletion,
        limit: Limit::Lower,
        name: "reported_completion_tokens",
        others: &["usage_completion_tokens"],
        value: |run, i| run.requests.completion_tokens(i).map(f64::from),
    },
    Row {
        figure: Figure::ReportedTotal,
        limit: Limit::Lower,
        name: "reported_total_tokens",
        others: &["usage_total_tokens"],
        value: |run, i| {
            let completion = f64::from(run.requests.completion_tokens(i)?);
            Some(f64::from(run.requests.prompt_tokens(i)?) + completion)
        },
    },
    Row {
        figure: Figure::Cached,
        limit: Limit::Lower,
        name: "cached_tokens",
        others: &["usage_prompt_cache_read_tokens"],
        value: |run, i| run.requests.cached_tokens(i).map(f64::from),
    },
    Row {
        figure: Figure::LengthMiss,
        limit: Limit::Upper,
        name: "output_mismatch_pct",
        others: &["osl_mismatch_diff_pct"],
        value: |run, i| {
            let planned = f64::from(run.plan[i].max_tokens.filter(|&planned| planned > 0)?);
            Some((count(tokens::completion(run, i)?) - planned) / planned * 100.0)
        },
    },
];

impl Figure {
    /// Its value for request `i`, in the unit of its key.
    #[must_use]
    pub fn value(self, run: &Run, i: usize) -> Option<f64> {
        (self.row().value)(run, i)
    }

    const fn row(self) -> &'static Row {
        &FIGURES[self as usize]
    }
}

impl GoalKind {
    /// Its key in the report, unit included.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AtMost(metric) => metric.name(),
            Self::DecodeSpeed => DECODE_SPEED[0],
            Self::Of(figure) => figure.row().name,
        }
    }

    /// The kind people mean by a name: ours, AIPerf's or vLLM's.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let name = bare(name);
        if DECODE_SPEED.contains(&name) {
            return Some(Self::DecodeSpeed);
        }
        let is_duration = |(metric, others): &&(Metric, &[&str])| {
            bare(metric.name()) == name || others.contains(&name)
        };
        let is_figure = |row: &&Row| bare(row.name) == name || row.others.contains(&name);
        let duration = DURATIONS.iter().find(is_duration).map(|(metric, _)| Self::AtMost(*metric));
        duration.or_else(|| FIGURES.iter().find(is_figure).map(|row| Self::Of(row.figure)))
    }

    /// What AIPerf calls it, where it has it.
    #[must_use]
    pub fn aiperf_tag(self) -> Option<&'static str> {
        let others = match self {
            Self::AtMost(metric) => DURATIONS.iter().find(|row| row.0 == metric)?.1,
            Self::DecodeSpeed => return None,
            Self::Of(figure) => figure.row().others,
        };
        others.first().copied()
    }

    /// Whether its limit is a lower one: more is better.
    #[must_use]
    pub fn has_lower_limit(self) -> bool {
        match self {
            Self::AtMost(_) => false,
            Self::DecodeSpeed => true,
            Self::Of(figure) => figure.row().limit == Limit::Lower,
        }
    }

    /// The number of request `i` that a goal compares with its limit, in the limit's unit, whatever
    /// the outcome. A decode that is too short to be slow is infinitely fast. `effective` counts
    /// the wait for the sending into TTFT.
    #[must_use]
    pub fn value(self, run: &Run, i: usize, effective: bool) -> Option<f64> {
        match self {
            Self::DecodeSpeed => decode_speed(run, i),
            Self::AtMost(Metric::Ttft) if effective => ms(latency::effective_ttft_ns(run, i)),
            Self::AtMost(metric) => metric.value_ns(run, i).map(|value| value / 1e6),
            Self::Of(figure) => figure.value(run, i),
        }
    }

    /// Every kind: durations as reports list them, the decode speed, then the other figures.
    pub fn all() -> impl Iterator<Item = Self> {
        let durations = DURATIONS.iter().map(|row| Self::AtMost(row.0));
        let figures = FIGURES.iter().map(|row| Self::Of(row.figure));
        durations.chain([Self::DecodeSpeed]).chain(figures)
    }
}

impl Goal {
    /// Whether request `i`'s numbers meet the goal, whatever its outcome. `effective` counts the
    /// wait for the sending into TTFT.
    #[must_use]
    pub fn is_met(&self, run: &Run, i: usize, effective: bool) -> bool {
        let lower = self.kind.has_lower_limit();
        let value = self.kind.value(run, i, effective);
        value.is_some_and(|value| if lower { value >= self.limit } else { value <= self.limit })
    }
}

/// Every name a goal may have, in words.
#[must_use]
pub fn names() -> String {
    let both = |name: &'static str, others: &[&'static str]| {
        let name = bare(name);
        let others = others.iter().filter(|&&other| other != name);
        [name].into_iter().chain(others.copied()).collect::<Vec<_>>().join("/")
    };
    let figures = |limit: Limit| {
        let rows = FIGURES.iter().filter(move |row| row.limit == limit);
        rows.map(move |row| both(row.name, row.others))
    };
    let durations = DURATIONS.iter().map(|(metric, others)| both(metric.name(), others));
    let upper: Vec<_> = durations.chain(figures(Limit::Upper)).collect();
    let decode = both(DECODE_SPEED[0], &DECODE_SPEED[1..]);
    let lower: Vec<_> = [decode].into_iter().chain(figures(Limit::Lower)).collect();
    format!(
        "at most (durations in milliseconds) {}; at least (tokens, or tokens per second) {}",
        upper.join(", "),
        lower.join(", ")
    )
}

/// A name without the unit that goes without saying.
fn bare(name: &str) -> &str {
    name.strip_suffix("_ms").unwrap_or(name)
}

fn decode_speed(run: &Run, i: usize) -> Option<f64> {
    let decode = latency::decode_ns(run, i)?;
    if decode <= SHORT_DECODE_NS {
        return Some(f64::INFINITY);
    }
    per_second(tokens::completion(run, i)?, decode)
}

fn ms(length: Option<i64>) -> Option<f64> {
    length.map(|length| nanos(length) / 1e6)
}

/// The kernel may say that it accepted the last byte after the answer has begun.
fn between(from: Option<RunNanos>, to: Option<RunNanos>) -> Option<f64> {
    ms(span(from, to).map(|length| length.max(0)))
}

fn per_second(tokens: u64, length_ns: i64) -> Option<f64> {
    (length_ns > 0).then(|| count(tokens) / (nanos(length_ns) / 1e9))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Class;
    use crate::log::sample::Sample;

    const MS: i64 = 1_000_000;

    #[test]
    fn every_name_leads_to_one_kind_and_is_listed() {
        let list = names();
        let mut kinds = vec![(GoalKind::DecodeSpeed, DECODE_SPEED.to_vec())];
        for (at, metric) in Metric::ALL.into_iter().enumerate() {
            assert_eq!(DURATIONS[at].0, metric);
            let names = [&[metric.name()][..], DURATIONS[at].1].concat();
            kinds.push((GoalKind::AtMost(metric), names));
        }
        for (at, row) in FIGURES.iter().enumerate() {
            assert_eq!(row.figure as usize, at, "{}", row.name);
            kinds.push((GoalKind::Of(row.figure), [&[row.name][..], row.others].concat()));
        }
        for (kind, names) in kinds {
            assert_eq!(names[0], kind.name());
            for name in names {
                assert_eq!(GoalKind::from_name(name), Some(kind), "{name}");
                let listed = list.split([' ', ',', '/', ';']).any(|word| word == bare(name));
                assert!(listed, "{name} is not in {list}");
            }
        }
        for unknown in ["speed", "request_throughput", "good_request_count", "_ms", ""] {
            assert_eq!(GoalKind::from_name(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn goals_of_aiperfs_names_go_as_aiperf_compares_them() {
        let mut sample = Sample::new();
        let request = sample.send(0);
        sample.chunks(request, &[100 * MS, 104 * MS, 110 * MS, 200 * MS]);
        sample.usage(request, 200 * MS, [Some(50), Some(8), None]);
        sample.done(request, 250 * MS, Class::Ok);
        let run = Run::read(&sample.bytes()).expect("a log");
        // Value, and whether less is better.
        for (tag, value, upper) in [
            ("time_to_first_token", 100.0, true),
            ("inter_chunk_latency", 90.0, true),
            ("http_req_duration", 250.0, true),
            ("e2e_output_token_throughput", 40.0, false),
            ("prefill_throughput_per_user", 500.0, false),
            ("output_token_throughput_per_user", 70.0, false),
            ("output_sequence_length", 8.0, false),
            ("usage_prompt_tokens", 50.0, false),
            ("usage_total_tokens", 58.0, false),
        ] {
            let kind = GoalKind::from_name(tag).expect(tag);
            assert_eq!(kind.aiperf_tag(), Some(tag));
            assert_eq!(kind.has_lower_limit(), !upper, "{tag}");
            let is_met = |limit: f64| Goal { kind, limit }.is_met(&run, 0, false);
            assert_eq!((is_met(value * 0.999), is_met(value * 1.001)), (!upper, upper), "{tag}");
            let at_limit = kind.name() != "output_tokens_per_s_per_user";
            assert!(!at_limit || is_met(value), "{tag} is met at its limit");
        }
        let unknown = GoalKind::from_name("usage_prompt_cache_read_tokens").expect("a name");
        let goal = Goal { kind: unknown, limit: 1.0 };
        assert!(!goal.is_met(&run, 0, false), "what the request lacks is missed");
    }
}
