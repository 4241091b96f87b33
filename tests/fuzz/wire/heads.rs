//! Heads, with a few bytes of body behind them, against a reader that only looks for lines.
//!
//! What a head may look like is the library's business that reads it; what follows from one that is
//! accepted (status, framing, whether the connection stays) is ours, and is judged here.

use onbeat::wire::AnswerReader;
use onbeat_shared::dice::Dice;
use onbeat_shared::log::outcome::Class;

use super::super::Subject;
use super::answer::every_way;
use super::grammar::{self, one};
use super::told::Told;

/// Heads.
pub(super) struct Heads {
    reader: AnswerReader,
    whole: Told,
    cut: Told,
}

/// What a head says about the body behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length(u64),
    Chunked,
    Close,
    /// It contradicts itself.
    Wrong,
}

impl Heads {
    pub(super) fn new() -> Self {
        Self { reader: AnswerReader::new(), whole: Told::default(), cut: Told::default() }
    }
}

impl Subject for Heads {
    fn generate(&mut self, dice: &mut Dice, out: &mut Vec<u8>) {
        grammar::interim(dice, out);
        grammar::status_line(dice, out);
        grammar::fields(dice, out);
        let lines: &[&str] = &[
            "Content-Length: 3\r\n",
            "content-length: 3, 3\r\n",
            "Content-Length: 4\r\n",
            "Content-Length: +3\r\n",
            "Content-Length: 18446744073709551615\r\n",
            "Content-Length: 18446744073709551616\r\n",
            "Content-Length:\r\n",
            "Content-Length: 03\r\n",
            "Content-Length: 0\r\n",
            "Transfer-Encoding: chunked\r\n",
            "transfer-encoding: identity\r\n",
            "Transfer-Encoding: chunked, chunked\r\n",
            "Transfer-Encoding: gzip, chunked\r\n",
            "Transfer-Encoding: identity , Chunked\r\n",
            "Transfer-Encoding:\r\n",
            "Content-Length : 3\r\n",
            "Content-Length: 1\r\n 2\r\n",
            "Connection: close\r\n",
            "Connection: Keep-Alive\r\n",
            "X: y\n",
            "bad line\r\n",
            ": no name\r\n",
        ];
        for _ in 0..dice.below(3) {
            out.extend_from_slice(one(dice, lines).as_bytes());
        }
        out.extend_from_slice(one(dice, &["\r\n", "\r\n", "\r\n", "\n", ""]).as_bytes());
        let bodies =
            ["", "abc", "abcdef", "0\r\n\r\n", "3\r\nabc\r\n0\r\n\r\n", "data: [DONE]\n\n"];
        out.extend_from_slice(one(dice, &bodies).as_bytes());
    }

    fn judge(&mut self, input: &[u8]) -> Result<(), String> {
        every_way(&mut self.reader, &mut self.whole, &mut self.cut, input)?;
        let end = self.whole.end();
        let Some(status) = end.status else {
            // Refused, or cut before its end: no head was told.
            return Ok(());
        };
        let Some((said, framing, body)) = read(input) else {
            return Err(format!("no head is there, but {:?} was told", self.whole));
        };
        let given = body as u64;
        let used = end.response_bytes - (input.len() as u64 - given);
        let right = match framing {
            Framing::Wrong => false,
            Framing::Length(length) if length <= given => used == length && !self.whole.closed,
            Framing::Length(_) => self.whole.closed && !matches!(end.class, Class::NoFinish),
            // Its body is another target's.
            Framing::Chunked => true,
            Framing::Close => self.whole.closed && used == given,
        };
        if said == status && right {
            return Ok(());
        }
        Err(format!("{said} {framing:?} with {given} bytes, but told {:?}", self.whole))
    }
}

/// The status and framing of the final head, and how many bytes lie behind it.
fn read(input: &[u8]) -> Option<(u16, Framing, usize)> {
    let mut rest = input;
    loop {
        while let [b'\r' | b'\n', behind @ ..] = rest {
            rest = behind;
        }
        let lines = take_head(&mut rest)?;
        let words = str::from_utf8(lines.first()?.get(9..12)?).ok()?;
        let status: u16 = words.parse().ok()?;
        if !(100..=199).contains(&status) || status == 101 {
            return Some((status, framing(status, &lines[1..]), rest.len()));
        }
    }
}

/// The lines of a head, folded ones joined, without the empty one behind them.
fn take_head(rest: &mut &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut lines: Vec<Vec<u8>> = Vec::new();
    loop {
        let end = rest.iter().position(|&byte| byte == b'\n')?;
        let line = &rest[..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        *rest = &rest[end + 1..];
        match (line.first(), lines.last_mut()) {
            (None, _) => return Some(lines),
            (Some(b' ' | b'\t'), Some(before)) => before.extend_from_slice(line),
            _ => lines.push(line.to_vec()),
        }
    }
}

/// RFC 9112, section 6.3, for codings that nobody but us has to understand.
fn framing(status: u16, lines: &[Vec<u8>]) -> Framing {
    let (mut length, mut chunked, mut wrong) = (None, 0, false);
    for line in lines {
        let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
        let (name, value) = (line[..colon].to_ascii_lowercase(), &line[colon + 1..]);
        let parts = || value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
        match name.trim_ascii() {
            b"content-length" => {
                for part in parts() {
                    let digits = part.iter().all(u8::is_ascii_digit) && !part.is_empty();
                    let number = str::from_utf8(part).ok().and_then(|part| part.parse().ok());
                    wrong |= !digits || number.is_none() || length.is_some_and(|it| number != it);
                    length = Some(number);
                }
            }
            b"transfer-encoding" => {
                for part in parts().map(<[u8]>::to_ascii_lowercase) {
                    chunked += usize::from(part == b"chunked");
                    wrong |= part != b"chunked" && part != b"identity";
                }
            }
            _ => {}
        }
    }
    match (length.flatten(), chunked) {
        _ if wrong || chunked > 1 => Framing::Wrong,
        _ if matches!(status, 100..=199 | 204 | 304) => Framing::Length(0),
        (Some(_), 1) => Framing::Wrong,
        (Some(length), _) => Framing::Length(length),
        (None, 1) => Framing::Chunked,
        (None, _) => Framing::Close,
    }
}
