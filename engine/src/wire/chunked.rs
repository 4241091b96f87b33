//! Chunked transfer coding, decoded in place.
//!
//! Strict where a doubtful byte could move the border between two answers: line ends are CR LF, a
//! size is one or more hexadecimal digits, blanks are allowed only between the size and `;` or the
//! line's end, and a trailer line is a header line. Leading zeros, extensions and trailers are
//! legal and dropped, each up to a cap. The data is handed out as slices of the input, so nothing
//! is copied here.

use memchr::memchr2;

use crate::limits::{CHUNK_EXTENSION_BYTES_MAX, TRAILER_BYTES_MAX};

/// Where the decoder is in one body.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkDecoder {
    state: State,
    /// Data bytes of this chunk still to come, or its size so far while the size is read.
    left: u64,
    /// Bytes of size lines other than the digits that count and CR LF.
    slack: u32,
    trailer: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the first digit of a size.
    SizeStart,
    Size,
    /// Blanks behind a size.
    SizeBlank,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    /// At the first byte of a trailer line, or of the empty line that ends the body.
    TrailerStart,
    TrailerName,
    /// Behind a trailer's colon.
    TrailerValue,
    TrailerLf,
    EndLf,
    Ended,
}

/// What the input gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// Body bytes.
    Data(&'a [u8]),
    /// The input is used up.
    More,
    /// The body is complete; the rest of the input is not part of it.
    End,
}

/// Why a body cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChunkError {
    /// A malformed chunk.
    Malformed,
    /// Extensions or trailers beyond their cap.
    OverLimit,
}

/// What a byte is as a hexadecimal digit; 16 for other bytes.
const DIGITS: [u8; 256] = {
    let mut digits = [16; 256];
    let (mut digit, values) = (0, *b"0123456789abcdef");
    while digit < values.len() {
        digits[values[digit] as usize] = digit.to_le_bytes()[0];
        digits[values[digit].to_ascii_uppercase() as usize] = digit.to_le_bytes()[0];
        digit += 1;
    }
    digits
};

impl ChunkDecoder {
    pub(super) const fn new() -> Self {
        Self { state: State::SizeStart, left: 0, slack: 0, trailer: 0 }
    }

    /// The next piece; `input` is moved behind what was used.
    pub(super) fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Piece<'a>, ChunkError> {
        loop {
            if self.state == State::Data {
                if input.is_empty() {
                    return Ok(Piece::More);
                }
                let here = usize::try_from(self.left).unwrap_or(usize::MAX).min(input.len());
                let (data, rest) = input.split_at(here);
                *input = rest;
                self.left -= here as u64;
                if self.left == 0 {
                    self.state = State::DataCr;
                    if let Some(behind) = input.strip_prefix(b"\r\n") {
                        *input = behind;
                        self.state = State::SizeStart;
                    }
                }
                return Ok(Piece::Data(data));
            }
            if self.state == State::SizeStart {
                if self.plain_size(input) {
                    continue;
                }
                if let Some(behind) = input.strip_prefix(b"0\r\n\r\n") {
                    // How nearly all bodies end.
                    self.slack(1)?;
                    *input = behind;
                    self.state = State::Ended;
                }
            }
            if self.state == State::Ended {
                return Ok(Piece::End);
            }
            let Some((&byte, rest)) = input.split_first() else { return Ok(Piece::More) };
            match self.state {
                State::Extension => self.extension(input)?,
                State::TrailerValue => self.trailer_value(input)?,
                _ => {
                    *input = rest;
                    self.state = self.step(byte)?;
                }
            }
        }
    }

    /// Passes a size line that lies whole in `input` and has nothing but digits, as nearly all do;
    /// leaves every other one to [`ChunkDecoder::step`].
    #[inline]
    fn plain_size(&mut self, input: &mut &[u8]) -> bool {
        let mut size = 0;
        for (at, &byte) in input.iter().take(9).enumerate() {
            let digit = DIGITS[usize::from(byte)];
            if digit < 16 {
                size = size << 4 | u64::from(digit);
            } else if size > 0 && input[at..].starts_with(b"\r\n") && input[0] != b'0' {
                *input = &input[at + 2..];
                self.left = size;
                self.state = State::Data;
                return true;
            } else {
                return false;
            }
        }
        false
    }

    fn step(&mut self, byte: u8) -> Result<State, ChunkError> {
        match (self.state, byte) {
            (State::SizeStart | State::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                self.digit(byte)
            }
            (State::Size | State::SizeBlank, b'\r') => Ok(State::SizeLf),
            (State::Size | State::SizeBlank, b';') => self.slack(1).map(|()| State::Extension),
            (State::Size | State::SizeBlank, b' ' | b'\t') => {
                self.slack(1).map(|()| State::SizeBlank)
            }
            (State::SizeLf, b'\n') if self.left == 0 => Ok(State::TrailerStart),
            (State::SizeLf, b'\n') => Ok(State::Data),
            (State::DataCr, b'\r') => Ok(State::DataLf),
            (State::DataLf, b'\n') => Ok(State::SizeStart),
            (State::TrailerStart, b'\r') => Ok(State::EndLf),
            (State::TrailerName, b':') => self.trailer(1).map(|()| State::TrailerValue),
            (State::TrailerStart | State::TrailerName, byte) if is_name(byte) => {
                self.trailer(1).map(|()| State::TrailerName)
            }
            (State::TrailerLf, b'\n') => Ok(State::TrailerStart),
            (State::EndLf, b'\n') => Ok(State::Ended),
            _ => Err(ChunkError::Malformed),
        }
    }

    fn digit(&mut self, byte: u8) -> Result<State, ChunkError> {
        if self.left == 0 {
            // Leading zeros say nothing; too many of them are padding.
            self.slack(u32::from(byte == b'0'))?;
        }
        if self.left >> 60 != 0 {
            return Err(ChunkError::Malformed);
        }
        let value = char::from(byte).to_digit(16).ok_or(ChunkError::Malformed)?;
        self.left = self.left << 4 | u64::from(value);
        Ok(State::Size)
    }

    /// Passes extension bytes up to the line's end.
    fn extension(&mut self, input: &mut &[u8]) -> Result<(), ChunkError> {
        self.slack(pass_line(input))?;
        if pass_line_end(input)? {
            self.state = State::SizeLf;
        }
        Ok(())
    }

    fn trailer_value(&mut self, input: &mut &[u8]) -> Result<(), ChunkError> {
        let clean = |byte: &&u8| !byte.is_ascii_control() || **byte == b'\t';
        let here = input.iter().take_while(clean).count();
        *input = &input[here..];
        self.trailer(u32::try_from(here).unwrap_or(u32::MAX))?;
        if pass_line_end(input)? {
            self.state = State::TrailerLf;
        }
        Ok(())
    }

    fn slack(&mut self, bytes: u32) -> Result<(), ChunkError> {
        self.slack = self.slack.saturating_add(bytes);
        if self.slack > CHUNK_EXTENSION_BYTES_MAX {
            return Err(ChunkError::OverLimit);
        }
        Ok(())
    }

    fn trailer(&mut self, bytes: u32) -> Result<(), ChunkError> {
        self.trailer = self.trailer.saturating_add(bytes);
        if self.trailer > TRAILER_BYTES_MAX {
            return Err(ChunkError::OverLimit);
        }
        Ok(())
    }
}

/// Whether a header's name may have this byte.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Passes bytes up to a CR, an LF or the input's end; how many.
fn pass_line(input: &mut &[u8]) -> u32 {
    let here = memchr2(b'\r', b'\n', input).unwrap_or(input.len());
    *input = &input[here..];
    u32::try_from(here).unwrap_or(u32::MAX)
}

/// Passes the CR that ends a line, if the input still has it.
fn pass_line_end(input: &mut &[u8]) -> Result<bool, ChunkError> {
    match input.split_first() {
        Some((b'\r', rest)) => {
            *input = rest;
            Ok(true)
        }
        Some(_) => Err(ChunkError::Malformed),
        None => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All data, and what is left behind the end (`None`: not ended).
    fn decode(input: &[u8], step: usize) -> Result<(Vec<u8>, Option<usize>), ChunkError> {
        let mut decoder = ChunkDecoder::new();
        let mut data = Vec::new();
        let mut used = 0;
        for part in input.chunks(step) {
            let mut rest = part;
            loop {
                match decoder.next(&mut rest)? {
                    Piece::Data(piece) => data.extend_from_slice(piece),
                    Piece::More => break,
                    Piece::End => {
                        return Ok((data, Some(input.len() - used - (part.len() - rest.len()))));
                    }
                }
            }
            used += part.len();
        }
        Ok((data, None))
    }

    #[test]
    fn legal_bodies_are_decoded() {
        for (body, data, left) in [
            (&b"0\r\n\r\n"[..], &b""[..], Some(0)),
            (b"5\r\nhello\r\n0\r\n\r\n", b"hello", Some(0)),
            (b"0005;a=b;c=\"d\"\r\nhello\r\n1 ; x\r\n!\r\n000\r\n\r\nHTTP", b"hello!", Some(4)),
            (
                b"A\r\n0123456789\r\na\t\r\n0123456789\r\n0\r\nDigest: y\r\nX: z\r\n\r\n",
                b"01234567890123456789",
                Some(0),
            ),
            (b"2\r\n\r\n\r\n0\r\n\r\n", b"\r\n", Some(0)),
            (b"5\r\nhel", b"hel", None),
            (b"0\r\n", b"", None),
        ] {
            for step in 1..=body.len() {
                assert_eq!(decode(body, step), Ok((data.to_vec(), left)), "step {step}");
            }
        }
    }

    #[test]
    fn doubtful_bodies_are_refused() {
        for body in [
            &b"\r\n"[..],
            b"g\r\n",
            b" 5\r\n",
            b"5\nhello",
            b"5 5\r\n",
            b"-1\r\n",
            b"0x5\r\n",
            b"5\r\nhelloX",
            b"5\r\nhello\n",
            b"5\r\nhello\rX",
            b"5\rX",
            b"5;a\nb\r\n",
            b";a\r\n",
            b"11111111111111111\r\n",
            b"0\r\nA: b\nC: d\r\n\r\n",
            b"0\r\n\n",
            b"0\r\n\rX",
            b"5\r\nhello\r\n\r\n",
            b"0\r\n0\r\n\r\n",
            b"0\r\nA : b\r\n\r\n",
            b"0\r\n: b\r\n\r\n",
            b"0\r\nA: b\r\n c\r\n\r\n",
            b"0\r\nA: \0\r\n\r\n",
        ] {
            for step in 1..=body.len() {
                assert_eq!(decode(body, step), Err(ChunkError::Malformed), "{body:?} by {step}");
            }
        }
    }

    #[test]
    fn floods_stop_at_their_caps() {
        let flood = |before: &[u8], byte: u8, count: usize| {
            let mut body = before.to_vec();
            body.resize(body.len() + count, byte);
            body.extend_from_slice(b"\r\n");
            [1_000, 65_536, body.len()].map(|step| decode(&body, step).map(drop))
        };
        let extensions = CHUNK_EXTENSION_BYTES_MAX as usize;
        assert_eq!(flood(b"2;", b'a', extensions - 1), [Ok(()); 3]);
        assert_eq!(flood(b"2;", b'a', extensions), [Err(ChunkError::OverLimit); 3]);
        assert_eq!(flood(b"", b'0', extensions + 1), [Err(ChunkError::OverLimit); 3]);
        assert_eq!(flood(b"1", b' ', extensions + 1), [Err(ChunkError::OverLimit); 3]);
        let padded = b"01\r\na\r\n".repeat(extensions);
        assert!(decode(&padded, 65_536).is_ok());
        let padded = [padded.as_slice(), b"01\r\na\r\n"].concat();
        assert_eq!(decode(&padded, 65_536), Err(ChunkError::OverLimit));
        let trailers = TRAILER_BYTES_MAX as usize;
        for start in [&b"0\r\nA:"[..], b"0\r\nA:\tb:"] {
            let room = trailers + 3 - start.len();
            assert_eq!(flood(start, b'a', room), [Ok(()); 3]);
            assert_eq!(flood(start, b'a', room + 1), [Err(ChunkError::OverLimit); 3]);
        }
        assert_eq!(flood(b"0\r\n", b'a', trailers + 1), [Err(ChunkError::OverLimit); 3]);
    }
}
