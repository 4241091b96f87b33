//! The plainest means of splitting events, for tests to hold the quick one against, here and under
//! fuzzing, which has this very file.
//!
//! Nothing here streams or cares for speed; nothing is shared with what is tested but the rules.

/// All events by the plainest means, each with its name as it is written, or none: one kind of line
/// end, then line by line.
pub(super) fn plain_events(stream: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut text: Vec<u8> = Vec::with_capacity(stream.len());
    for (at, &byte) in stream.iter().enumerate() {
        match byte {
            b'\r' => text.push(b'\n'),
            b'\n' if at > 0 && stream[at - 1] == b'\r' => {}
            _ => text.push(byte),
        }
    }
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&text);
    let mut found = Vec::new();
    let (mut name, mut data) = (Vec::new(), None::<Vec<u8>>);
    // The end of the stream stands for a missing line end and a missing empty line.
    for line in text.split(|&byte| byte == b'\n').chain([&b""[..]]) {
        let colon = line.iter().position(|&byte| byte == b':');
        let (field, value) = colon.map_or((line, &b""[..]), |at| (&line[..at], &line[at + 1..]));
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            _ if line.is_empty() => {
                let name = std::mem::take(&mut name);
                found.extend(data.take().map(|data| (name, data)));
            }
            b"data" => match &mut data {
                Some(data) => data.extend_from_slice(&[b"\n", value].concat()),
                None => data = Some(value.to_vec()),
            },
            b"event" => name = value.to_vec(),
            _ => {}
        }
    }
    found
}
