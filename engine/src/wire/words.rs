//! Words about a failure, made safe for a terminal and short enough for the log.
//!
//! What a server says may hold escape sequences, broken UTF-8, or two hundred kilobytes of HTML. It
//! comes out as at most [`ERROR_TEXT_BYTES_MAX`] bytes of UTF-8 in which line ends and tabs are
//! spaces and every other control or direction-changing character is written as an escape. Secrets
//! are not known here; whoever knows them cuts them out.

use std::io::Write as _;

use super::delta::Complaint;
use crate::limits::ERROR_TEXT_BYTES_MAX;

/// A short text that never allocates after [`Words::new`].
#[derive(Debug)]
pub(super) struct Words {
    text: Vec<u8>,
    full: bool,
}

impl Words {
    pub(super) fn new() -> Self {
        Self { text: Vec::with_capacity(ERROR_TEXT_BYTES_MAX), full: false }
    }

    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.full = false;
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.text
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Appends words of our own, which are clean.
    pub(super) fn say(&mut self, words: std::fmt::Arguments<'_>) {
        // The writer never fails: it stops taking bytes when full.
        let _ = Taker(self).write_fmt(words);
    }

    /// Appends somebody else's words.
    pub(super) fn quote(&mut self, bytes: &[u8]) {
        for part in bytes.utf8_chunks() {
            for character in part.valid().chars() {
                match character {
                    '\n' | '\r' | '\t' => self.put(b" "),
                    _ if is_unsafe(character) => {
                        self.say(format_args!("{}", character.escape_unicode()))
                    }
                    _ => self.put(character.encode_utf8(&mut [0; 4]).as_bytes()),
                }
                if self.full {
                    return;
                }
            }
            for byte in part.invalid() {
                self.say(format_args!("\\x{byte:02x}"));
            }
        }
    }

    /// Appends a server's complaint.
    pub(super) fn complain(&mut self, complaint: Complaint<'_>) {
        match complaint {
            Complaint::Message(text) => text.pieces(&mut |piece| self.quote(piece)),
            Complaint::Raw(raw) => self.quote(raw),
        }
    }

    /// Appends bytes in hexadecimal.
    pub(super) fn hex(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.say(format_args!(" {byte:02x}"));
        }
    }

    /// All of `bytes` or nothing, so that no character is cut in two.
    fn put(&mut self, bytes: &[u8]) {
        if self.full || self.text.len() + bytes.len() > ERROR_TEXT_BYTES_MAX {
            self.full = true;
            return;
        }
        self.text.extend_from_slice(bytes);
    }
}

struct Taker<'a>(&'a mut Words);

impl std::io::Write for Taker<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.put(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Control characters, ends of lines, and the ones that reorder what a reader sees.
fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(character, '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(bytes: &[u8]) -> String {
        let mut words = Words::new();
        words.quote(bytes);
        String::from_utf8(words.as_bytes().to_vec()).expect("always UTF-8")
    }

    #[test]
    fn control_characters_become_visible() {
        assert_eq!(quoted(b"a\x1b[2Jb\r\n\0"), "a\\u{1b}[2Jb  \\u{0}");
        assert_eq!(quoted("é\u{9b}\u{202e}x".as_bytes()), "é\\u{9b}\\u{202e}x");
        assert_eq!(quoted(b"a\xff\xc3"), "a\\xff\\xc3");
        assert_eq!(quoted("\u{61c}\u{2028}\u{2029}x".as_bytes()), "\\u{61c}\\u{2028}\\u{2029}x");
    }

    #[test]
    fn long_words_are_cut_between_characters() {
        let long = "é".repeat(2_000);
        let cut = quoted(long.as_bytes());
        assert_eq!(cut.len(), ERROR_TEXT_BYTES_MAX);
        assert!(long.starts_with(&cut));
        assert!(quoted(&b"x\x1b".repeat(1_000)).len() <= ERROR_TEXT_BYTES_MAX);
    }
}
