//! The plainest means of decoding chunks and splitting events, for tests to hold the quick ones
//! against.
//!
//! Nothing here streams or cares for speed; nothing is shared with what is tested but the rules.

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

/// All events by the plainest means: one kind of line end, then line by line.
pub(super) fn reference_events(stream: &[u8]) -> Vec<(Name, Vec<u8>)> {
    let mut text: Vec<u8> = Vec::new();
    for (at, &byte) in stream.iter().enumerate() {
        match byte {
            b'\r' => text.push(b'\n'),
            b'\n' if at > 0 && stream[at - 1] == b'\r' => {}
            _ => text.push(byte),
        }
    }
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&text);
    let mut found = Vec::new();
    let (mut name, mut data) = (Name::Message, None::<Vec<u8>>);
    // The end of the stream stands for a missing line end and a missing empty line.
    for line in text.split(|&byte| byte == b'\n').chain([&b""[..]]) {
        let colon = line.iter().position(|&byte| byte == b':');
        let (field, value) = colon.map_or((line, &b""[..]), |at| (&line[..at], &line[at + 1..]));
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            _ if line.is_empty() => {
                found.extend(data.take().map(|data| (name, data)));
                name = Name::Message;
            }
            b"data" => match &mut data {
                Some(data) => data.extend_from_slice(&[b"\n", value].concat()),
                None => data = Some(value.to_vec()),
            },
            b"event" => {
                name = match value {
                    b"" | b"message" => Name::Message,
                    b"error" => Name::Error,
                    _ => Name::Other,
                };
            }
            _ => {}
        }
    }
    found
}
