//! Decisions: pure state machines of (state, event, now) → what may happen next.
//!
//! Nothing here reads a clock or holds a socket, and what is random is drawn from a recorded seed;
//! every function can be called from a test with any time. Each pacing core owns its own instances,
//! for the sessions it replays; what all cores share is [`admission`]'s atomics.

pub mod admission;
pub mod advance;
pub mod cancel;
pub mod deadline;
pub mod direction;
pub mod heard;
pub mod options;
pub mod periods;
pub mod players;
pub mod pool;
pub mod queue;
pub mod ramp;
pub mod reuse;
pub mod session;
pub mod working_set;
