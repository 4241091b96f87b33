//! What goes to stdout when that is a terminal: text that it shows and nothing that it obeys.
//!
//! Tables and JSON hold the names of sessions, models and files as they are, and those come from
//! traces, logs and servers. In a file or a pipe they stay so; on a screen what is no plain
//! character is written as an escape. Only what is printed passes here.

use std::io::{self, Write};

use onbeat_shared::foreign::printable;

/// Writes text on, without what a terminal obeys.
#[derive(Debug)]
pub(super) struct Screen<W> {
    out: W,
    /// The beginning of a character whose rest has not come.
    begun: Vec<u8>,
}

impl<W: Write> Screen<W> {
    pub(super) const fn new(out: W) -> Self {
        Self { out, begun: Vec::new() }
    }

    fn show(&mut self, bytes: &[u8]) -> io::Result<()> {
        for part in bytes.utf8_chunks() {
            for (place, between) in part.valid().split('\t').enumerate() {
                self.out.write_all(if place > 0 { b"\t" } else { b"" })?;
                self.out.write_all(printable(between).as_bytes())?;
            }
            for byte in part.invalid() {
                write!(self.out, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

impl<W: Write> Write for Screen<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = std::mem::take(&mut self.begun);
        all.extend_from_slice(bytes);
        let whole = whole(&all);
        self.begun = all.split_off(whole);
        self.show(&all)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let rest = std::mem::take(&mut self.begun);
        self.show(&rest)?;
        self.out.flush()
    }
}

/// How many bytes there are before a character that is not whole yet.
fn whole(bytes: &[u8]) -> usize {
    let rest = bytes.utf8_chunks().last().map_or(0, |last| last.invalid().len());
    match std::str::from_utf8(&bytes[bytes.len() - rest..]) {
        Err(error) if error.error_len().is_none() => bytes.len() - rest,
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pieces: &[&[u8]]) -> String {
        let mut screen = Screen::new(Vec::new());
        for piece in pieces {
            screen.write_all(piece).expect("memory takes everything");
        }
        screen.flush().expect("memory takes everything");
        String::from_utf8(screen.out).expect("plain text")
    }

    #[test]
    fn a_screen_is_given_nothing_that_it_obeys() {
        let text = "a,\u{1b}[2J\u{9b}31m\tb\r\né\u{202e}✓\n";
        let plain = "a,\\u{1b}[2J\\u{9b}31m\tb\\r\né\\u{202e}✓\n";
        assert_eq!(shown(&[text.as_bytes()]), plain);
        for cut in 0..text.len() {
            let (one, other) = text.as_bytes().split_at(cut);
            assert_eq!(shown(&[one, other]), plain, "cut at {cut}");
        }
        assert_eq!(shown(&[b"\xff", b"x\xc3", b"(\xe2\x9c"]), "\\xffx\\xc3(\\xe2\\x9c");
    }
}
