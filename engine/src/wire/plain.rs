//! The plainest means of decoding chunks and splitting events, for tests to hold the quick ones
//! against.
//!
//! Nothing here streams or cares for speed; nothing is shared with what is tested but the rules.

use super::plain_events::plain_events;
use super::sse::Name;

/// The body of `bytes` as far as it goes and whether it is complete; `None` if it is malformed.
/// Looks at whole lines of a whole input.
pub(super) fn reference_chunks(mut bytes: &[u8]) -> Option<(Vec<u8>, bool)> {
    let mut data = Vec::new();
    loop {
        let Some(line) = take_line(&mut bytes)? else { return Some((data, false)) };
        let mut size = line.split(|&byte| byte == b';').next()?;
        while let Some((b' ' | b'\t', digits)) = size.split_last() {
            size = digits;
        }
        if !size.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let size = usize::from_str_radix(str::from_utf8(size).ok()?, 16).ok()?;
        if size == 0 {
            break;
        }
        let chunk = &bytes[..size.min(bytes.len())];
        data.extend_from_slice(chunk);
        bytes = &bytes[chunk.len()..];
        if !b"\r\n".starts_with(&bytes[..bytes.len().min(2)]) {
            return None;
        }
        bytes = &bytes[bytes.len().min(2)..];
    }
    loop {
        match take_line(&mut bytes)? {
            None => return Some((data, false)),
            Some([]) => return Some((data, true)),
            Some(line) => {
                let colon = line.iter().position(|&byte| byte == b':')?;
                let (name, value) = (&line[..colon], &line[colon + 1..]);
                let token =
                    |byte: &u8| byte.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?={}".contains(byte);
                let clean = |byte: &u8| !byte.is_ascii_control() || *byte == b'\t';
                if name.is_empty() || !name.iter().all(token) || !value.iter().all(clean) {
                    return None;
                }
            }
        }
    }
}

/// A line up to CR LF: `Some(None)` if it only begins, `None` if it cannot be one.
#[expect(clippy::option_option, reason = "two ways to have no line")]
fn take_line<'a>(bytes: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    let Some(end) = bytes.iter().position(|byte| b"\r\n".contains(byte)) else {
        return Some(None);
    };
    let (line, rest) = bytes.split_at(end);
    let line_end = &rest[..rest.len().min(2)];
    *bytes = &rest[line_end.len()..];
    match line_end {
        b"\r\n" => Some(Some(line)),
        b"\r" => Some(None),
        _ => None,
    }
}

/// All events by the plainest means, by the kind of their names.
pub(super) fn reference_events(stream: &[u8]) -> Vec<(Name, Vec<u8>)> {
    let kind = |name: &[u8]| match name {
        b"" | b"message" => Name::Message,
        b"error" => Name::Error,
        _ => Name::Other,
    };
    plain_events(stream).into_iter().map(|(name, data)| (kind(&name), data)).collect()
}
