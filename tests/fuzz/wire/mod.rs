//! The targets of the wire: answers of inference servers, whole and layer by layer.
//!
//! All of them read through [`onbeat::wire::AnswerReader`], as the engine does, so that what is
//! fuzzed is what runs; a target differs from the next in its grammar and in what judges it.

mod answer;
mod grammar;
mod told;

use super::Subject;

/// Whole answers, judged by what must hold for all of them.
pub(super) fn answer() -> Box<dyn Subject> {
    Box::new(answer::Answers::new())
}
