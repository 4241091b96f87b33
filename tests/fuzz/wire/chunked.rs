//! Bodies in chunks, against the same bodies decoded by the plainest means and sent without.

use onbeat::wire::AnswerReader;
use onbeat_shared::dice::Dice;
use onbeat_shared::log::outcome::Class;

use super::super::Subject;
use super::answer::every_way;
use super::events;
use super::grammar;
use super::told::{Behind, Told};

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                      Transfer-Encoding: chunked\r\n\r\n";

/// Bodies of event streams in chunks.
pub(super) struct Chunks {
    reader: AnswerReader,
    whole: Told,
    cut: Told,
    plain: Told,
    answer: Vec<u8>,
    body: Vec<u8>,
}

/// How a chunked body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// With its last chunk; so many bytes are left behind it.
    Complete(usize),
    /// It could go on.
    Open,
    /// It could go on or be malformed already: its last line has no end.
    OpenLine,
    Malformed,
}

impl Chunks {
    pub(super) fn new() -> Self {
        Self {
            reader: AnswerReader::new(),
            whole: Told::default(),
            cut: Told::default(),
            plain: Told::default(),
            answer: Vec::new(),
            body: Vec::new(),
        }
    }
}

impl Subject for Chunks {
    fn generate(&mut self, dice: &mut Dice, out: &mut Vec<u8>) {
        let mut body = Vec::new();
        grammar::events(dice, &mut body);
        grammar::chunks(dice, &body, out);
        grammar::last_chunk(dice, out);
    }

    fn judge(&mut self, input: &[u8]) -> Result<(), String> {
        self.answer.clear();
        self.answer.extend_from_slice(HEAD);
        self.answer.extend_from_slice(input);
        every_way(&mut self.reader, &mut self.whole, &mut self.cut, &self.answer)?;
        self.body.clear();
        self.body.extend_from_slice(events::HEAD);
        let end = decode(input, &mut self.body);
        let complete = matches!(end, End::Complete(_));
        let behind = if complete { Behind::Close } else { Behind::Reset };
        self.plain.read(&mut self.reader, true, &self.body, [], behind);
        // Kept events of a failure's words say how the body ended, which differs.
        if !self.whole.same_content(&self.plain) {
            return Err(format!("{end:?}: {:?}, but plain {:?}", self.whole, self.plain));
        }
        let (class, plain) = (self.whole.class(), self.plain.class());
        // What the events decided, the framing does not change.
        let decided = plain != Class::ResetMidAnswer;
        let right = match end {
            _ if decided => class == plain,
            End::Complete(_) => class == plain,
            End::Open => matches!(class, Class::TruncatedBody | Class::ResetMidAnswer),
            End::Malformed => class == Class::BadFraming,
            End::OpenLine => {
                let open = [Class::TruncatedBody, Class::ResetMidAnswer, Class::BadFraming];
                open.contains(&class)
            }
        };
        let left = match end {
            End::Complete(left) => self.whole.left == left && !self.whole.closed,
            End::Open => self.whole.closed,
            End::OpenLine => true,
            End::Malformed => !self.whole.closed && !self.whole.end().reusable,
        };
        if right && left {
            return Ok(());
        }
        Err(format!("{end:?}, but told {:?}; plain {plain:?}", self.whole))
    }
}

/// Adds the body of `bytes` to `out`.
fn decode(mut bytes: &[u8], out: &mut Vec<u8>) -> End {
    loop {
        let line = match take_line(&mut bytes) {
            Ok(line) => line,
            Err(end) => return end,
        };
        let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let behind = &line[digits..];
        let blanks = behind.iter().take_while(|&&byte| byte == b' ' || byte == b'\t').count();
        if digits == 0 || !matches!(behind.get(blanks), None | Some(b';')) {
            return End::Malformed;
        }
        let digits = str::from_utf8(&line[..digits]).expect("digits");
        let Ok(size) = u64::from_str_radix(digits, 16) else { return End::Malformed };
        if size == 0 {
            break;
        }
        let here = usize::try_from(size).unwrap_or(usize::MAX).min(bytes.len());
        out.extend_from_slice(&bytes[..here]);
        bytes = &bytes[here..];
        match bytes {
            [] | [b'\r'] => return End::Open,
            [b'\r', b'\n', rest @ ..] => bytes = rest,
            _ => return End::Malformed,
        }
    }
    loop {
        match take_line(&mut bytes) {
            Err(end) => return end,
            Ok([]) => return End::Complete(bytes.len()),
            Ok(line) if is_field(line) => {}
            Ok(_) => return End::Malformed,
        }
    }
}

/// Whether a line is a header's.
fn is_field(line: &[u8]) -> bool {
    let Some(colon) = line.iter().position(|&byte| byte == b':') else { return false };
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    let token = |byte: &u8| byte.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?={}".contains(byte);
    let clean = |byte: &u8| !byte.is_ascii_control() || *byte == b'\t';
    !name.is_empty() && name.iter().all(token) && value.iter().all(clean)
}

/// A line up to CR LF, or how a body ends that has none.
fn take_line<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], End> {
    let Some(at) = bytes.iter().position(|byte| b"\r\n".contains(byte)) else {
        return Err(End::OpenLine);
    };
    let (line, rest) = bytes.split_at(at);
    match rest {
        [b'\r', b'\n', rest @ ..] => {
            *bytes = rest;
            Ok(line)
        }
        [b'\r'] => Err(End::OpenLine),
        _ => Err(End::Malformed),
    }
}
