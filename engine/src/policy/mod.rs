//! Decisions: pure state machines of (state, event, now) → what may happen next.
//!
//! Nothing here reads a clock, holds a socket or draws a random number; every function can be
//! called from a test with any time. Each pacing core owns its own instances, for the sessions it
//! replays.

pub mod admission;
pub mod cancel;
pub mod deadline;
pub mod heard;
pub mod options;
pub mod periods;
pub mod players;
pub mod queue;
pub mod ramp;
pub mod reuse;
pub mod session;
pub mod working_set;
