//! Server-sent events out of bytes that arrive in any pieces.
//!
//! Follows the WHATWG rules (LF, CR and CR LF; a byte-order mark; comments; `data`, `event`, others
//! ignored; one blank behind the colon dropped), with one leniency: an event whose closing blank
//! line is missing at the clean end of a stream counts. An event that lies whole in one piece is
//! handed out in place; only what a piece's border cuts is copied into the caller's buffer.

use memchr::memchr2;

use crate::limits::EVENT_BYTES_MAX;

/// Splits one stream into events. The buffer that holds cut events belongs to the caller.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventSplitter {
    /// Bytes of the buffer that are data lines of the open event; the rest is a cut line.
    data: usize,
    /// The open event has a data line (whose data may be empty) in the buffer.
    has_data: bool,
    name: Name,
    /// The last piece ended with a CR: an LF at the start of the next belongs to it.
    after_cr: bool,
    /// No line has been read yet.
    at_start: bool,
}

/// What an event calls itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// Nothing, or `message`.
    Message,
    /// `error`.
    Error,
    /// Anything else.
    Other,
}

/// A whole event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event<'a> {
    pub(super) name: Name,
    pub(super) data: &'a [u8],
}

/// Who is told of events.
pub(super) trait Listener {
    /// A whole event.
    fn event(&mut self, event: Event<'_>);

    /// `rest` begins where an event begins. Returns how many bytes of it were whole events, closed
    /// by an empty line that ends with a line feed, that the listener knew and has dealt with.
    fn known(&mut self, rest: &[u8]) -> usize;
}

impl<F: FnMut(Event<'_>)> Listener for F {
    fn event(&mut self, event: Event<'_>) {
        self(event);
    }

    fn known(&mut self, _rest: &[u8]) -> usize {
        0
    }
}

/// An event is longer than [`EVENT_BYTES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLong;

impl EventSplitter {
    pub(super) const fn new() -> Self {
        Self { data: 0, has_data: false, name: Name::Message, after_cr: false, at_start: true }
    }

    /// Takes a piece of the stream and hands out the events it completes. `buffer` must come back
    /// unchanged with the next piece, and be empty with the first.
    pub(super) fn feed(
        &mut self,
        piece: &[u8],
        buffer: &mut Vec<u8>,
        listener: &mut impl Listener,
    ) -> Result<(), TooLong> {
        let mut rest = piece;
        // Data of the open event that lies in this piece and has not been copied.
        let mut whole: Option<&[u8]> = None;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        if self.is_between() && buffer.is_empty() {
            let known = listener.known(rest);
            rest = &rest[known..];
            // What is known does not begin with a byte-order mark.
            self.at_start &= known == 0;
            if rest.is_empty() {
                return Ok(());
            }
        }
        while let Some(stop) = memchr2(b'\n', b'\r', rest) {
            let line = &rest[..stop];
            let ended_by_cr = rest[stop] == b'\r';
            rest = &rest[stop + 1..];
            if ended_by_cr {
                match rest.first() {
                    Some(b'\n') => rest = &rest[1..],
                    Some(_) => {}
                    None => self.after_cr = true,
                }
            }
            if buffer.len() > self.data {
                check(buffer.len() + line.len())?;
                buffer.extend_from_slice(line);
                self.cut_line(buffer, listener);
            } else {
                check(self.data + whole.map_or(0, <[u8]>::len) + line.len())?;
                self.line(line, &mut whole, buffer, listener);
            }
            if line.is_empty() && self.is_between() {
                rest = &rest[listener.known(rest)..];
            }
        }
        self.keep(whole, buffer);
        check(buffer.len() + rest.len())?;
        buffer.extend_from_slice(rest);
        Ok(())
    }

    /// The stream has ended cleanly: hands out the event that its last bytes completed, if any.
    pub(super) fn finish(&mut self, buffer: &mut Vec<u8>, listener: &mut impl Listener) {
        if buffer.len() > self.data {
            self.cut_line(buffer, listener);
        }
        self.dispatch(None, buffer, listener);
    }

    /// No line of an event has been read.
    fn is_between(&self) -> bool {
        !self.has_data && self.name == Name::Message && !self.after_cr
    }

    /// A line that lies whole in the piece.
    fn line<'p>(
        &mut self,
        line: &'p [u8],
        whole: &mut Option<&'p [u8]>,
        buffer: &mut Vec<u8>,
        listener: &mut impl Listener,
    ) {
        let line = self.without_mark(line);
        if line.is_empty() {
            self.dispatch(whole.take(), buffer, listener);
            return;
        }
        match field(line) {
            Field::Data(at) if self.has_data || whole.is_some() => {
                self.keep(whole.take(), buffer);
                buffer.push(b'\n');
                buffer.extend_from_slice(&line[at..]);
                self.data = buffer.len();
            }
            Field::Data(at) => *whole = Some(&line[at..]),
            Field::Event(name) => self.name = name,
            Field::Ignored => {}
        }
    }

    /// A line that stands in the buffer behind the data because a border cut it.
    fn cut_line(&mut self, buffer: &mut Vec<u8>, listener: &mut impl Listener) {
        let cut = &buffer[self.data..];
        let mark = cut.len() - self.without_mark(cut).len();
        let line = &cut[mark..];
        if line.is_empty() {
            buffer.truncate(self.data);
            self.dispatch(None, buffer, listener);
            return;
        }
        match field(line) {
            Field::Data(at) => {
                let value = self.data + mark + at;
                // The field's name was at least as long as the line feed that joins the data.
                if self.has_data {
                    buffer[self.data] = b'\n';
                    self.data += 1;
                }
                buffer.copy_within(value.., self.data);
                self.data += buffer.len() - value;
                self.has_data = true;
            }
            Field::Event(name) => self.name = name,
            Field::Ignored => {}
        }
        buffer.truncate(self.data);
    }

    /// Copies data that lies in the piece, because the event goes on elsewhere.
    fn keep(&mut self, whole: Option<&[u8]>, buffer: &mut Vec<u8>) {
        if let Some(data) = whole {
            buffer.extend_from_slice(data);
            self.data = buffer.len();
            self.has_data = true;
        }
    }

    /// An empty line: the open event is complete.
    fn dispatch(
        &mut self,
        whole: Option<&[u8]>,
        buffer: &mut Vec<u8>,
        listener: &mut impl Listener,
    ) {
        let name = std::mem::replace(&mut self.name, Name::Message);
        if let Some(data) = whole {
            listener.event(Event { name, data });
        } else if self.has_data {
            listener.event(Event { name, data: &buffer[..self.data] });
            buffer.clear();
            self.data = 0;
            self.has_data = false;
        }
    }

    /// The line without the byte-order mark that may open the stream.
    fn without_mark<'l>(&mut self, line: &'l [u8]) -> &'l [u8] {
        if std::mem::take(&mut self.at_start) {
            line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
        } else {
            line
        }
    }
}

enum Field {
    /// `data`; the value starts here.
    Data(usize),
    Event(Name),
    Ignored,
}

fn field(line: &[u8]) -> Field {
    if let Some(at) = value_of(line, b"data") {
        return Field::Data(at);
    }
    match value_of(line, b"event") {
        Some(at) => Field::Event(match &line[at..] {
            b"error" => Name::Error,
            b"message" | b"" => Name::Message,
            _ => Name::Other,
        }),
        None => Field::Ignored,
    }
}

/// Where the value of the field `name` starts, if the line is that field.
#[inline]
fn value_of(line: &[u8], name: &[u8]) -> Option<usize> {
    match *line.strip_prefix(name)? {
        [] => Some(name.len()),
        [b':', b' ', ..] => Some(name.len() + 2),
        [b':', ..] => Some(name.len() + 1),
        _ => None,
    }
}

fn check(bytes: usize) -> Result<(), TooLong> {
    if bytes > EVENT_BYTES_MAX { Err(TooLong) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(stream: &[u8], step: usize) -> Vec<(Name, Vec<u8>)> {
        let mut splitter = EventSplitter::new();
        let mut buffer = Vec::new();
        let mut found = Vec::new();
        let mut emit = |event: Event<'_>| found.push((event.name, event.data.to_vec()));
        for piece in stream.chunks(step) {
            splitter.feed(piece, &mut buffer, &mut emit).expect("short events");
        }
        splitter.finish(&mut buffer, &mut emit);
        found
    }

    fn check_all(stream: &[u8], expected: &[(Name, &[u8])]) {
        let expected: Vec<_> = expected.iter().map(|&(name, data)| (name, data.to_vec())).collect();
        for step in 1..=stream.len() {
            let text = String::from_utf8_lossy(stream);
            assert_eq!(events(stream, step), expected, "{text:?} by {step}");
        }
    }

    #[test]
    fn every_line_end_is_one() {
        for end in ["\n", "\r", "\r\n"] {
            let stream = "data: a|event: error|data:b||: note|||data: c|data:  d|data||";
            let stream = stream.replace('|', end);
            let expected: [(Name, &[u8]); 2] =
                [(Name::Error, b"a\nb"), (Name::Message, b"c\n d\n")];
            check_all(stream.as_bytes(), &expected);
        }
        check_all(b"data: a\r\n\rdata: b\n\r\n", &[(Name::Message, b"a"), (Name::Message, b"b")]);
    }

    #[test]
    fn marks_comments_and_unknown_fields_are_passed() {
        check_all(
            b"\xef\xbb\xbfevent: message\nid: 7\nretry: 10\nzz: 1\ndatabase: no\ndata: x\n\n",
            &[(Name::Message, b"x")],
        );
        check_all(b"\xef\xbb\xbf\ndata: x\n\n", &[(Name::Message, b"x")]);
        check_all(b": \xef\xbb\xbf\n\n:\n\n", &[]);
        check_all(b"event: ping\n\ndata: x\n\n", &[(Name::Message, b"x")]);
        check_all(b"event:ping\ndata\n\n", &[(Name::Other, b"")]);
        check_all(b"data: x\n\xef\xbb\xbfdata: y\n\n", &[(Name::Message, b"x")]);
    }

    #[test]
    fn a_clean_end_completes_the_last_event() {
        check_all(
            b"data: x\n\ndata: [DONE]\n",
            &[(Name::Message, b"x"), (Name::Message, b"[DONE]")],
        );
        check_all(b"data: [DONE]", &[(Name::Message, b"[DONE]")]);
        check_all(b"data: x\n\nevent: z", &[(Name::Message, b"x")]);
    }

    #[test]
    fn an_event_is_handed_out_where_it_lies() {
        let piece = b"data: abc\n\ndata: def\n\ndata: gh";
        let mut splitter = EventSplitter::new();
        let mut buffer = Vec::new();
        let inside = piece.as_ptr_range();
        let mut emit = |event: Event<'_>| assert!(inside.contains(&event.data.as_ptr()));
        splitter.feed(piece, &mut buffer, &mut emit).expect("short");
        assert_eq!(buffer, b"data: gh");
    }

    #[test]
    fn endless_events_stop_at_the_cap() {
        for (line, count) in
            [(&b"aaaaaaaa"[..], EVENT_BYTES_MAX / 8 + 1), (b"data:123\n", EVENT_BYTES_MAX / 4 + 1)]
        {
            let mut splitter = EventSplitter::new();
            let mut buffer = Vec::new();
            let long = line.repeat(count);
            let mut result = Ok(());
            for piece in long.chunks(65_536) {
                result = splitter.feed(piece, &mut buffer, &mut |_: Event<'_>| ());
                if result.is_err() {
                    break;
                }
            }
            assert_eq!(result, Err(TooLong));
            assert!(buffer.len() <= EVENT_BYTES_MAX);
            let mut whole = EventSplitter::new();
            assert_eq!(whole.feed(&long, &mut Vec::new(), &mut |_: Event<'_>| ()), Err(TooLong));
        }
    }
}
