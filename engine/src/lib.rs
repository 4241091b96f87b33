//! Onbeat's engine: replays a recorded trace against an inference server, on time, and logs it.

pub mod cli;
pub mod clock;
pub mod conductor;
pub mod error;
pub mod limits;
pub mod mock;
pub mod net;
pub mod pacer;
pub mod plan;
pub mod policy;
pub mod prompt;
pub mod render;
pub mod replayer;
pub mod trace;
pub mod wire;
