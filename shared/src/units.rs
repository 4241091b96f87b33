//! Numbers with meaning: indices and times that must not be mixed up.
//!
//! Times are `i64` nanoseconds everywhere: ±292 years, exact, and a negative value is legal (a
//! trace may run backwards, a schedule may start before its zero). Two clocks exist, so two types
//! do: [`TraceNanos`] is the trace's own clock, [`RunNanos`] counts from the schedule's zero. This
//! module does not read any clock and does not format for people.

use serde::{Deserialize, Serialize};

/// Nanoseconds in one second.
pub const NANOS_PER_SECOND: i64 = 1_000_000_000;
/// Nanoseconds in one millisecond.
pub const NANOS_PER_MILLI: i64 = 1_000_000;
/// Nanoseconds in one microsecond.
pub const NANOS_PER_MICRO: i64 = 1_000;

/// An instant on the trace's own clock.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
pub struct TraceNanos(pub i64);

/// An instant of a run, counted from the schedule's zero (the start barrier's agreed instant).
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
pub struct RunNanos(pub i64);

/// A request's place in the plan, in send order, from zero.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
pub struct RequestIndex(pub u32);

/// A session's place in the plan's list of sessions.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
pub struct SessionIndex(pub u32);

/// A replaying core, from zero; [`CoreIndex::CONDUCTOR`] is the control plane's own stream.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
pub struct CoreIndex(pub u16);

impl RequestIndex {
    /// The index as a subscript.
    #[must_use]
    pub const fn as_usize(self) -> usize {
        self.0 as usize
    }
}

impl SessionIndex {
    /// The index as a subscript.
    #[must_use]
    pub const fn as_usize(self) -> usize {
        self.0 as usize
    }
}

impl CoreIndex {
    /// The control plane's stream of records in a log: no core ever has this number.
    pub const CONDUCTOR: Self = Self(u16::MAX);

    /// The index as a subscript.
    #[must_use]
    pub const fn as_usize(self) -> usize {
        self.0 as usize
    }
}
