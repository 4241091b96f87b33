//! The schedules a replay bench runs: due times in nanoseconds from zero, made from a seed.
//!
//! Constant, Poisson, and bursts as Mooncake's conversation trace has them (every burst is due at
//! one instant). The same schedule goes to the floor program and to Onbeat, so it is written to a
//! file both read: one decimal number of nanoseconds a line for the floor, a Mooncake trace for
//! Onbeat.

use std::fmt::Write as _;

use onbeat_shared::dice::Dice;

/// How requests are spread in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Equal gaps.
    Constant,
    /// Exponential gaps.
    Poisson,
    /// Bursts of 1 to 28 requests due at one instant.
    Burst,
}

impl Shape {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Poisson => "poisson",
            Self::Burst => "burst",
        }
    }
}

/// `count` due times at a mean of `rate` a second.
pub(crate) fn due_times(shape: Shape, rate: f64, count: usize, seed: u64) -> Vec<i64> {
    let mut random = Dice(seed);
    let gap_ns = 1e9 / rate;
    let mut due = Vec::with_capacity(count);
    let mut now = 0.0;
    while due.len() < count {
        match shape {
            Shape::Constant => {
                due.push(nanos(now));
                now += gap_ns;
            }
            Shape::Poisson => {
                due.push(nanos(now));
                // 1 - u is never zero.
                now += -gap_ns * (1.0 - random.unit()).ln();
            }
            Shape::Burst => {
                let size = 1 + (random.roll() % 28) as usize;
                for _ in 0..size.min(count - due.len()) {
                    due.push(nanos(now));
                }
                now += gap_ns * size as f64;
            }
        }
    }
    due
}

/// The schedule as a Mooncake trace: decimal milliseconds, `input_tokens` words a prompt. All
/// prompts are the same blocks, so that large ones take memory once, unless each is its `own`.
pub(crate) fn mooncake(
    due: &[i64],
    input_tokens: usize,
    output_tokens: usize,
    own: bool,
) -> String {
    let blocks = input_tokens.div_ceil(512);
    let ids = |first: usize| {
        let ids: Vec<String> = (first..first + blocks).map(|id| id.to_string()).collect();
        ids.join(",")
    };
    let same = ids(0);
    let mut text = String::with_capacity(due.len() * (80 + same.len()));
    for (row, due_ns) in due.iter().enumerate() {
        let ids = if own { ids(row * blocks) } else { same.clone() };
        let _ = writeln!(
            text,
            "{{\"timestamp\":{}.{:06},\"input_length\":{input_tokens},\"output_length\":{output_tokens},\
             \"hash_ids\":[{ids}]}}",
            due_ns / 1_000_000,
            due_ns % 1_000_000
        );
    }
    text
}

#[expect(clippy::cast_possible_truncation, reason = "a bench lasts minutes, far below 2^63 ns")]
fn nanos(value: f64) -> i64 {
    value.round() as i64
}
