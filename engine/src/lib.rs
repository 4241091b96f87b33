//! Onbeat's engine: replays a recorded trace against an inference server, on time, and logs it.
//!
//! ```text
//! trace ─▶ plan ─▶ render ─▶ replayer ─▶ run log ─▶ (onbeat-shared: run ─▶ metrics ─▶ report)
//! ```
//!
//! Nothing to the right is imported by anything to the left, and each stage's output is a plain,
//! immutable value. Mechanism lives in few modules ([`clock`], [`pacer`], [`net`]); decisions
//! ([`policy`], [`wire`], [`plan`]) are pure functions of state, event and time.
//!
//! # Invariants
//!
//! 1. Decisions never read a clock, spawn, or do IO.
//! 2. A plan never changes after it is built; everything random was drawn from one recorded seed.
//! 3. Between the start barrier and the end a pacing core does not allocate, lock, format or parse
//!    JSON trees; opening a connection that the warm-up did not foresee is the one exception.
//! 4. On a core the pacer is the only waiter.
//! 5. Every planned request has exactly one end in the log, "never sent" included.
//! 6. Any prefix of a log is readable.
//! 7. One definition per number: summary, exports and viewer read the same metrics.

pub mod cli;
pub mod clock;
pub mod clock_state;
pub mod conductor;
pub mod doctor;
pub mod error;
pub mod last_words;
pub mod limits;
pub mod live;
pub mod mock;
pub mod net;
pub mod pacer;
pub mod plan;
pub mod policy;
pub mod prompt;
pub mod readiness;
pub mod render;
pub mod replayer;
pub mod run;
pub mod trace;
pub mod wire;
