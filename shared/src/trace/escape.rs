//! Text as it stands inside a JSON string: quotes, backslashes and control characters escaped.
//!
//! Text is copied in long pieces and looked at in wide windows, because a trace's prompts are
//! gigabytes. How long the escaped text would be is counted without writing it.

/// Bytes that are looked at together, so that the compiler can use wide registers.
const WINDOW: usize = 64;

/// Adds the inside of the JSON string that means `text` to `out`.
pub fn escape(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    out.reserve(bytes.len());
    // What lies between two bytes that are escaped is copied in one go.
    let mut copied = 0;
    let (windows, rest) = bytes.as_chunks::<WINDOW>();
    for (number, window) in windows.iter().enumerate() {
        let mut odd = escaped_in(window);
        while odd != 0 {
            let place = number * WINDOW + odd.trailing_zeros() as usize;
            out.extend_from_slice(&bytes[copied..place]);
            escape_byte(bytes[place], out);
            copied = place + 1;
            odd &= odd - 1;
        }
    }
    let start = bytes.len() - rest.len();
    for place in (start..bytes.len()).filter(|&place| is_escaped(bytes[place])) {
        out.extend_from_slice(&bytes[copied..place]);
        escape_byte(bytes[place], out);
        copied = place + 1;
    }
    out.extend_from_slice(&bytes[copied..]);
}

/// Bytes that [`escape`] would add for `text`.
#[must_use]
pub(crate) fn escaped_len(text: &str) -> usize {
    let (windows, rest) = text.as_bytes().as_chunks::<COUNTED>();
    let more = |bytes: &[u8]| bytes.iter().fold(0_u8, |all, &byte| all + more_bytes(byte));
    let windows: usize = windows.iter().map(|window| usize::from(more(window))).sum();
    text.len() + windows + usize::from(more(rest))
}

/// Bytes that are counted together: five more for each still fit a byte.
const COUNTED: usize = 32;

/// How many bytes more a byte has when it is escaped.
const fn more_bytes(byte: u8) -> u8 {
    let control = byte < 0x20;
    let short = byte.wrapping_sub(8) < 6 && byte != 11;
    let named = byte == b'"' || byte == b'\\';
    control as u8 * 5 + named as u8 - short as u8 * 4
}

const fn is_escaped(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Which bytes of a window are escaped: the lowest bit stands for the first byte.
fn escaped_in(window: &[u8; WINDOW]) -> u64 {
    let mut flags = [0_u8; WINDOW];
    for (flag, &byte) in flags.iter_mut().zip(window) {
        *flag = u8::from(is_escaped(byte));
    }
    let (words, _none) = flags.as_chunks::<8>();
    let any = words.iter().fold(0, |any, word| any | u64::from_le_bytes(*word));
    if any == 0 {
        return 0;
    }
    // The product moves the lowest bit of each byte to its own place in the highest byte.
    let bits = |word: &[u8; 8]| u64::from_le_bytes(*word).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    words.iter().rev().fold(0, |mask, word| mask << 8 | bits(word))
}

fn escape_byte(byte: u8, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    match byte {
        b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        0x08 => out.extend_from_slice(b"\\b"),
        0x0c => out.extend_from_slice(b"\\f"),
        byte => {
            out.extend_from_slice(b"\\u00");
            out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::*;

    #[test]
    fn every_byte_is_as_long_as_it_is_counted() {
        for byte in 0..0x80_u8 {
            let text = char::from(byte).to_string().repeat(COUNTED + 3);
            let mut written = Vec::new();
            escape(&text, &mut written);
            assert_eq!(escaped_len(&text), written.len(), "{byte}");
        }
    }

    proptest! {
        #[test]
        fn what_is_escaped_means_the_same(text in any::<String>()) {
            let mut json = b"\"".to_vec();
            escape(&text, &mut json);
            json.push(b'"');
            prop_assert_eq!(escaped_len(&text), json.len() - 2);
            prop_assert_eq!(serde_json::from_slice::<String>(&json).expect("JSON"), text);
        }

        #[test]
        fn every_byte_that_is_escaped_is_found_wherever_it_is(
            odd in proptest::collection::vec((0..200_usize, 0..0x80_u8), 0..20),
        ) {
            let mut text = vec![b'x'; 200];
            for (place, byte) in odd {
                text[place] = byte;
            }
            let mut found = Vec::new();
            escape(std::str::from_utf8(&text).expect("ASCII"), &mut found);
            let json = serde_json::to_string(std::str::from_utf8(&text).expect("ASCII"));
            let json = json.expect("a text").into_bytes();
            prop_assert_eq!(&found[..], &json[1..json.len() - 1]);
        }
    }
}
