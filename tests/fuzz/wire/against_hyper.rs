//! Whole answers, against hyper's client: status, body bytes, and whether the body is complete.
//!
//! What hyper decoded is read once more, as a body that only the connection ends, and must be told
//! as the answer was. Where the two clients differ on purpose, [`Difference`] has the reason.

use hyper::HeaderMap;
use hyper::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use onbeat::wire::AnswerReader;
use onbeat_shared::dice::Dice;
use onbeat_shared::log::outcome::Class;

use super::super::{Subject, mutation};
use super::grammar;
use super::hyper_client::{self, Seen};
use super::told::{Behind, Told};

/// Whole answers.
pub(super) struct AgainstHyper {
    reader: AnswerReader,
    ours: Told,
    theirs: Told,
    answer: Vec<u8>,
}

/// Why hyper's reading of an answer is not ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Difference {
    /// A coding that is not `chunked` alone: `identity` is none for us and an unknown one for
    /// hyper, which then reads to the connection's end; we refuse all others.
    Coding,
    /// Chunks in HTTP/1.0: hyper refuses them, we read them and do not trust the connection then
    /// (RFC 9112, section 6.1).
    ChunksOfOneZero,
    /// A length beside `chunked`: hyper ignores the length, we refuse the answer.
    BothFramings,
    /// Framing that is none, of an interim head or where the status allows no body: hyper does not
    /// look at it, we refuse the answer.
    Bodiless,
    /// A status below 100: hyper refuses it, for us it is a failure of no known kind.
    Status,
    /// A trailer that ends with a bare line feed: hyper takes it, we take no such line in a body.
    BareLineFeed,
    /// hyper refuses trailers and extensions of more than 16 KiB, long before we do.
    Slack,
    /// Status 101: another protocol begins, and hyper hands its bytes to whoever asked for it.
    Upgrade,
}

impl AgainstHyper {
    pub(super) fn new() -> Self {
        let (ours, theirs) = (Told::default(), Told::default());
        Self { reader: AnswerReader::new(), ours, theirs, answer: Vec::new() }
    }

    /// Reads the answer as hyper decoded it.
    fn read_decoded(&mut self, status: u16, headers: &HeaderMap, body: &[u8], complete: bool) {
        self.answer.clear();
        self.answer.extend_from_slice(format!("HTTP/1.1 {status} x\r\n").as_bytes());
        for (name, value) in headers {
            if ![CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING].contains(name) {
                self.answer.extend_from_slice(name.as_str().as_bytes());
                self.answer.extend_from_slice(b": ");
                self.answer.extend_from_slice(value.as_bytes());
                self.answer.extend_from_slice(b"\r\n");
            }
        }
        let bodiless = matches!(status, 204 | 304);
        self.answer.extend_from_slice(b"\r\n");
        if !bodiless {
            self.answer.extend_from_slice(body);
        }
        let behind = if complete { Behind::Close } else { Behind::Reset };
        self.theirs.read(&mut self.reader, true, &self.answer, [], behind);
    }
}

impl Subject for AgainstHyper {
    fn generate(&mut self, dice: &mut Dice, out: &mut Vec<u8>) {
        grammar::answer(dice, out);
    }

    fn judge(&mut self, input: &[u8]) -> Result<(), String> {
        let mut dice = mutation::dice_of(input);
        let cuts = mutation::cuts(&mut dice, input.len(), 4);
        let behind = if dice.below(4) == 0 { Behind::Reset } else { Behind::Close };
        self.reader = AnswerReader::new();
        self.ours.silent = dice.below(2) == 0;
        self.ours.read(&mut self.reader, true, input, cuts.iter().copied(), behind);
        self.ours.check()?;
        let seen = hyper_client::read(input, &cuts, behind);
        match &seen {
            Seen::Nothing(wrong) => {
                let status = self.ours.end().status;
                if status.is_none() || why_refused(wrong, input, status).is_some() {
                    return Ok(());
                }
            }
            Seen::Answer { status, headers, body, wrong } => {
                let number = status.as_u16();
                let wrong = wrong.as_deref();
                if why_read_otherwise(number, headers, input, &self.ours, wrong).is_some() {
                    return Ok(());
                }
                self.read_decoded(number, headers, body, wrong.is_none());
                if same(&self.ours, &self.theirs, wrong.is_none()) {
                    return Ok(());
                }
            }
        }
        Err(format!("hyper: {seen:?}; told {:?}, decoded {:?}", self.ours, self.theirs))
    }
}

/// Whether the answer was told as its body, decoded by hyper, is.
fn same(ours: &Told, theirs: &Told, complete: bool) -> bool {
    let (class, decoded) = (ours.class(), theirs.class());
    if complete || decoded != Class::ResetMidAnswer {
        let sound = complete || !ours.end().reusable;
        return sound && class == decoded && ours.same_content(theirs);
    }
    let broken = [Class::TruncatedBody, Class::ResetMidAnswer, Class::BadFraming, Class::OverLimit];
    broken.contains(&class) && !ours.end().reusable && ours.same_content(theirs)
}

/// Why hyper has no head where we have one.
fn why_refused(wrong: &str, input: &[u8], status: Option<u16>) -> Option<Difference> {
    if wrong.contains("transfer-encoding") && has_word(input, b"HTTP/1.0") {
        return Some(Difference::ChunksOfOneZero);
    }
    if status.is_some_and(|status| status < 100) && wrong.contains("status-code") {
        return Some(Difference::Status);
    }
    None
}

/// Why hyper may read an answer otherwise than we do.
fn why_read_otherwise(
    status: u16,
    headers: &HeaderMap,
    input: &[u8],
    ours: &Told,
    wrong: Option<&str>,
) -> Option<Difference> {
    let codings = || headers.get_all(TRANSFER_ENCODING).iter();
    let is_chunked = |coding: &[u8]| coding.trim_ascii().eq_ignore_ascii_case(b"chunked");
    if codings().count() > 1 || codings().any(|coding| !is_chunked(coding.as_bytes())) {
        return Some(Difference::Coding);
    }
    let chunked = codings().count() == 1;
    let end = ours.end();
    let refused = end.class == Class::BadFraming && end.status.is_none();
    if chunked && headers.contains_key(CONTENT_LENGTH) && refused {
        return Some(Difference::BothFramings);
    }
    let is_interim = input.trim_ascii_start().get(9) == Some(&b'1');
    if refused && (is_interim || matches!(status, 101 | 204 | 304)) {
        return Some(Difference::Bodiless);
    }
    if end.status == Some(101) {
        return Some(Difference::Upgrade);
    }
    let at = usize::try_from(end.response_bytes).unwrap_or(usize::MAX);
    // Where we stopped is the line feed, or the byte before.
    let is_bare = |at: usize| input.get(at) == Some(&b'\n') && input.get(at - 1) != Some(&b'\r');
    let is_bare = at >= 2 && (is_bare(at) || is_bare(at - 1));
    if chunked && !ours.closed && !end.reusable && is_bare {
        return Some(Difference::BareLineFeed);
    }
    let says = |word: &str| wrong.is_some_and(|wrong| wrong.contains(word));
    if chunked && (says("trailer") || says("extension") || says("too many headers")) {
        return Some(Difference::Slack);
    }
    None
}

fn has_word(input: &[u8], word: &[u8]) -> bool {
    input.windows(word.len()).any(|window| window == word)
}
