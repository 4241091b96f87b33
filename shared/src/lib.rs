//! What a recorded workload and a finished run *are*: plain data, one file format, one set of
//! numbers.
//!
//! Data flows one way: trace → plan → render → replay → **log → run → metrics → report / export /
//! viewer**. This crate holds the bold half and the words (`units`, `trace`) both halves share. It
//! takes `&[u8]` in and `impl Write` out: it never reads a clock, spawns a thread, opens a socket,
//! maps a file or draws a window, so that the engine, the viewer and the tests read the same facts
//! through the same code.

pub mod counted;
pub mod dice;
pub mod export;
pub mod foreign;
pub mod import;
pub mod log;
pub mod metrics;
pub mod quantity;
pub mod run;
pub mod secret_names;
pub mod trace;
pub mod units;
