//! The targets of the wire: answers of inference servers, whole and layer by layer.
//!
//! All of them read through [`onbeat::wire::AnswerReader`], as the engine does, so that what is
//! fuzzed is what runs; a target differs from the next in its grammar and in what judges it.

mod against_eventsource;
mod against_hyper;
mod answer;
mod caps;
mod chunked;
mod delta;
mod document;
mod events;
mod expected;
mod grammar;
mod heads;
mod hyper_client;
#[path = "../../../engine/src/wire/plain_events.rs"]
mod plain_events;
mod told;
mod tree;

use super::Target;

/// Whole answers: what must hold for all of them.
pub(super) const ANSWER: Target = Target {
    name: "answer",
    about: "whole answers: facts do not depend on the split, one end, no byte too many",
    short_runs: 3_000,
    make: || Box::new(answer::Answers::new()),
};

/// Heads, against a reader of lines.
pub(super) const HEAD: Target = Target {
    name: "head",
    about: "heads: status, framing and where the body begins, against a reader of lines",
    short_runs: 5_000,
    make: || Box::new(heads::Heads::new()),
};

/// Chunked bodies, against the plainest decoder.
pub(super) const CHUNKED: Target = Target {
    name: "chunked",
    about: "chunked bodies: the same facts as the body decoded by the plainest means",
    short_runs: 3_000,
    make: || Box::new(chunked::Chunks::new()),
};

/// Event streams, against the plainest splitter and serde_json.
pub(super) const SSE: Target = Target {
    name: "sse",
    about: "event streams: events as split by the plainest means, each as serde_json reads it",
    short_runs: 2_000,
    make: || Box::new(events::Events::new()),
};

/// Documents, against serde_json.
pub(super) const DELTA: Target = Target {
    name: "delta",
    about: "documents, whole and as events: content, usage and errors as serde_json reads them",
    short_runs: 3_000,
    make: || Box::new(delta::Documents::new()),
};

/// Whole answers, against hyper.
pub(super) const HYPER: Target = Target {
    name: "hyper",
    about: "whole answers: status, body and its end as hyper's client reads them",
    short_runs: 1_500,
    make: || Box::new(against_hyper::AgainstHyper::new()),
};

/// Event streams, against eventsource-stream.
pub(super) const EVENTSOURCE: Target = Target {
    name: "eventsource",
    about: "event streams: events as the crate eventsource-stream splits them",
    short_runs: 1_500,
    make: || Box::new(against_eventsource::AgainstEventsource::new()),
};

/// Sizes around the caps.
pub(super) const CAPS: Target = Target {
    name: "caps",
    about: "sizes around every cap: refused above, read below, whatever the pieces",
    short_runs: 60,
    make: || Box::new(caps::Caps::new()),
};
