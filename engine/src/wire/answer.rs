//! One answer from its first byte to its end.
//!
//! Being filled in: the signatures are final.

use onbeat_shared::log::outcome::{Class, FinishReason};
use onbeat_shared::log::record::DoneFlags;

use super::{Answer, AnswerEnd};

/// Reads one answer after another on one connection; its buffers are kept between answers.
#[derive(Debug, Default)]
pub struct AnswerReader {
    bytes: u64,
}

impl AnswerReader {
    /// A reader with its buffers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes ready for the answer to the next request; `streaming` is what the request asked for.
    pub fn begin(&mut self, _streaming: bool) {
        self.bytes = 0;
    }

    /// Takes the bytes of one read. Returns the end as soon as it is known; the reader must not be
    /// pushed to again before [`AnswerReader::begin`].
    pub fn push(&mut self, bytes: &[u8], _sink: &mut impl FnMut(Answer<'_>)) -> Option<AnswerEnd> {
        self.bytes += bytes.len() as u64;
        None
    }

    /// The peer closed the connection, or reset it.
    pub fn close(&mut self, _reset: bool, _sink: &mut impl FnMut(Answer<'_>)) -> AnswerEnd {
        AnswerEnd {
            class: Class::ResetBeforeAnswer,
            status: None,
            finish: FinishReason::Unknown,
            flags: DoneFlags(0),
            response_bytes: self.bytes,
            reusable: false,
        }
    }

    /// Whether any byte of the answer has arrived.
    #[must_use]
    pub fn started(&self) -> bool {
        self.bytes > 0
    }

    /// Whether the answer's outcome can no longer change although its bytes have not ended: `[DONE]`
    /// or an error was read. A caller whose time limit passes then should [`AnswerReader::close`]
    /// instead of recording a timeout.
    #[must_use]
    pub fn settled(&self) -> bool {
        false
    }
}
