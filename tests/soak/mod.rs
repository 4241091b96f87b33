//! Soaks: long runs in which every byte that a server sent is accounted for.
//!
//! [`rounds`] holds time limits close to the gap between two tokens, [`resets`] breaks streams in
//! their middle or answers early, [`streams`] keeps as many open as a process may, [`long`] sends
//! for hours and looks for what grows. The servers say what they sent and how late they were with
//! it themselves, so that nothing here depends on how fast the machine is. The tests play a few of
//! each, the `soak` program as many as it is told.

pub mod long;
pub mod metronome;
pub mod resets;
pub mod rounds;
pub mod streams;

/// The number in the last part of a request's `X-Request-ID`, which is the request's in the plan.
#[must_use]
pub fn number(request: &[u8]) -> Option<usize> {
    let text = String::from_utf8_lossy(request);
    let mut heads = text.lines().take_while(|line| !line.is_empty());
    let id = heads.find_map(|line| line.strip_prefix("X-Request-ID: "))?;
    id.rsplit('-').next()?.parse().ok()
}
