//! Goals in words: what a kind of goal is called, in which unit its limit is, and what it means.
//!
//! Keys for programs are [`GoalKind::name`]'s; these are for people, and a limit that people type
//! or read goes through the unit here.

use super::goal::{Figure, GoalKind};
use super::latency::Metric;

/// The unit of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GoalUnit {
    /// Milliseconds.
    Millis,
    /// Tokens per second.
    TokensPerSecond,
    /// Tokens.
    Tokens,
    /// KiB.
    Kib,
    /// Per cent.
    Percent,
    /// A plain number.
    One,
}

impl GoalUnit {
    /// Its sign; empty for a plain number.
    #[must_use]
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Millis => "ms",
            Self::TokensPerSecond => "tokens/s",
            Self::Tokens => "tokens",
            Self::Kib => "KiB",
            Self::Percent => "%",
            Self::One => "",
        }
    }
}

impl GoalKind {
    /// Its name for people.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::AtMost(metric) => metric.label(),
            Self::DecodeSpeed => "decode speed",
            Self::Of(figure) => figure.label(),
        }
    }

    /// The unit of its limit.
    #[must_use]
    pub const fn unit(self) -> GoalUnit {
        match self {
            Self::AtMost(_) => GoalUnit::Millis,
            Self::DecodeSpeed => GoalUnit::TokensPerSecond,
            Self::Of(figure) => figure.unit(),
        }
    }

    /// What is compared, in one line.
    #[must_use]
    pub const fn formula(self) -> &'static str {
        match self {
            Self::AtMost(metric) => metric.formula(),
            Self::DecodeSpeed => "completion tokens / decode time, or a decode of at most 0.1 s",
            Self::Of(figure) => figure.formula(),
        }
    }
}

impl Figure {
    const fn label(self) -> &'static str {
        match self {
            Self::PerUserSpeed => "speed per user",
            Self::E2eSpeed => "e2e speed",
            Self::PrefillSpeed => "prefill speed",
            Self::LongestGap => "longest gap",
            Self::Waiting => "HTTP waiting",
            Self::Receiving => "HTTP receiving",
            Self::Exchange => "HTTP duration",
            Self::Reused => "connection reused",
            Self::Body => "body size",
            Self::Completion => "completion tokens",
            Self::Output => "output tokens",
            Self::Reasoning => "reasoning tokens",
            Self::Prompt => "prompt tokens",
            Self::ReportedPrompt => "reported prompt",
            Self::ReportedCompletion => "reported completion",
            Self::ReportedTotal => "reported total",
            Self::Cached => "cached tokens",
            Self::LengthMiss => "output mismatch",
        }
    }

    const fn unit(self) -> GoalUnit {
        match self {
            Self::PerUserSpeed | Self::E2eSpeed | Self::PrefillSpeed => GoalUnit::TokensPerSecond,
            Self::LongestGap | Self::Waiting | Self::Receiving | Self::Exchange => GoalUnit::Millis,
            Self::Reused => GoalUnit::One,
            Self::Body => GoalUnit::Kib,
            Self::Completion
            | Self::Output
            | Self::Reasoning
            | Self::Prompt
            | Self::ReportedPrompt
            | Self::ReportedCompletion
            | Self::ReportedTotal
            | Self::Cached => GoalUnit::Tokens,
            Self::LengthMiss => GoalUnit::Percent,
        }
    }

    const fn formula(self) -> &'static str {
        match self {
            Self::PerUserSpeed => "1 / ITL",
            Self::E2eSpeed => "completion tokens / e2e",
            Self::PrefillSpeed => "prompt tokens / TTFT",
            Self::LongestGap => "the longest gap between successive content events",
            Self::Waiting => "first byte of the answer - kernel accepted the last byte",
            Self::Receiving => "end of the exchange - first byte of the answer",
            Self::Exchange => "end of the exchange - sent",
            Self::Reused => "1 if its connection had carried an earlier request, else 0",
            Self::Body => "bytes of its body / 1,024",
            Self::Completion => "completion tokens, whoever counted",
            Self::Output => "completion tokens that are no reasoning",
            Self::Reasoning => "reasoning tokens, as reported",
            Self::Prompt => "prompt tokens, whoever counted",
            Self::ReportedPrompt => "prompt tokens, as reported",
            Self::ReportedCompletion => "completion tokens, as reported",
            Self::ReportedTotal => "prompt and completion tokens, as reported",
            Self::Cached => "cached prompt tokens, as reported",
            Self::LengthMiss => "(completion tokens - planned output) / planned output",
        }
    }
}

impl Metric {
    /// The kind of goal that limits it.
    #[must_use]
    pub const fn goal(self) -> GoalKind {
        GoalKind::AtMost(self)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_kind_has_words_of_its_own_and_the_unit_of_its_key() {
        let kinds: Vec<_> = GoalKind::all().collect();
        assert!(kinds.len() > 25, "{}", kinds.len());
        let labels: BTreeSet<_> = kinds.iter().map(|kind| kind.label()).collect();
        assert_eq!(labels.len(), kinds.len(), "two kinds share a name");
        for kind in kinds {
            let key = kind.name();
            let of_key = match key.rsplit_once('_').map_or(key, |(_, end)| end) {
                "ms" => GoalUnit::Millis,
                "kib" => GoalUnit::Kib,
                "pct" => GoalUnit::Percent,
                "reused" => GoalUnit::One,
                _ if key.contains("_per_s") => GoalUnit::TokensPerSecond,
                "tokens" => GoalUnit::Tokens,
                other => panic!("{key} ends in {other}, which is no unit"),
            };
            assert_eq!(kind.unit(), of_key, "{key}");
            assert!(!kind.formula().is_empty());
            assert_eq!(GoalKind::from_name(key), Some(kind));
        }
    }
}
