//! What the events of a stream have in common, so that one like the last need not be parsed.
//!
//! The events of a stream differ from one another in the piece of text they carry and in little
//! else. A [`Pattern`] is an event that was parsed, with the strings in which others differ cut
//! out. Bytes that are equal to it everywhere but in those strings have the same facts, except for
//! the length of the text: the parser goes from left to right, so equal bytes with a well-formed
//! string in the same place bring it to the same place in the same state, and it was seen not to
//! look at those strings other than to count them. Whatever differs elsewhere, or is doubtful, is
//! left to the parser. That both agree is a matter of [`super::properties`].
//!
//! Nothing in a pattern belongs to one answer: the next one on the connection goes on with it, and
//! differs in its id, which becomes a gap. An answer's last event, which says why it ended, has a
//! pattern of its own kind.

use memchr::memchr2;
use onbeat_shared::log::outcome::FinishReason;
use onbeat_shared::log::record::{ChunkKind, Usage};

use super::delta::{Choice, Document};
use super::json::{Cursor, mark_stops};
use super::strings::Strings;

/// The field that a pattern's line is of. Data behind another spelling is compared without it.
const FIELD: &[u8] = b"data: ";
/// Longest event that becomes a pattern. Parsing a longer one is not what makes it costly.
const EVENT_BYTES_MAX: usize = 2 * 1024;
/// Longest string where a pattern has a gap: far below every limit of an event.
const STRING_BYTES_MAX: usize = 32 * 1024;
/// After so many misses in a row events seem to have little in common: only every so many is tried.
const MISSES_MAX: u32 = 4;
const MISSES_STEP: u32 = 16;
/// Most strings in which events may differ.
const GAPS_MAX: usize = 4;

/// An event and where others may differ from it.
#[derive(Debug)]
pub(super) struct Pattern {
    of: Of,
    /// The line that was parsed, with its field's name; empty while there is no pattern.
    line: Vec<u8>,
    /// The strings of `line`'s data that could be gaps.
    strings: Strings,
    /// Those that are gaps.
    gaps: [Gap; GAPS_MAX],
    gap_count: usize,
    common: Common,
    /// Events in a row that had to be parsed.
    misses: u32,
}

/// Which events a pattern is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// Those that carry a piece of text.
    Text,
    /// Those that carry nothing and say why the answer ended.
    End,
}

/// What all events of a pattern say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Common {
    /// What the only choice with content carries.
    pub(super) kind: ChunkKind,
    /// Its index.
    pub(super) choice: u16,
    pub(super) usage: Option<Usage>,
    /// Why the answer ended, in patterns of ends.
    pub(super) finish: Option<FinishReason>,
}

/// A string's place in a pattern's line, between its quotes.
#[derive(Clone, Copy, Debug, Default)]
struct Gap {
    start: usize,
    end: usize,
    /// It is the text that the event carries.
    is_text: bool,
}

/// Bytes that a pattern knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Match {
    /// How many bytes, up to the end of the data.
    pub(super) used: usize,
    /// Bytes of the text, after unescaping; 0 in patterns of ends and nowhere else.
    pub(super) text: u32,
}

impl Pattern {
    /// No pattern of events with text, and room for one.
    pub(super) fn new() -> Self {
        Self::of(Of::Text)
    }

    /// No pattern of events that end an answer, and room for one.
    pub(super) fn of_ends() -> Self {
        Self::of(Of::End)
    }

    fn of(of: Of) -> Self {
        Self {
            of,
            line: Vec::with_capacity(FIELD.len() + EVENT_BYTES_MAX),
            strings: Strings::new(),
            gaps: [Gap::default(); GAPS_MAX],
            gap_count: 0,
            common: Common { kind: ChunkKind(0), choice: 0, usage: None, finish: None },
            misses: 0,
        }
    }

    /// Another answer begins.
    pub(super) fn begin(&mut self) {
        self.misses = 0;
    }

    /// Takes a match as one more event; what it says beside its text.
    #[inline]
    pub(super) fn hit(&mut self) -> Common {
        self.misses = 0;
        self.common
    }

    /// What its events say beside their text.
    pub(super) const fn common(&self) -> Common {
        self.common
    }

    /// The event line that `bytes` start with, up to the end of its data, if it is known.
    #[inline]
    pub(super) fn match_line(&self, bytes: &[u8]) -> Option<Match> {
        self.match_from(0, bytes)
    }

    /// Whether exactly `data` is known.
    #[inline]
    pub(super) fn match_data(&self, data: &[u8]) -> Option<Match> {
        self.match_from(FIELD.len(), data).filter(|found| found.used == data.len())
    }

    /// The text of an event line, or of its data alone, that is known; with its escapes.
    pub(super) fn text_of<'b>(&self, bytes: &'b [u8], with_field: bool) -> &'b [u8] {
        let mut rest = bytes;
        let mut from = if with_field { 0 } else { FIELD.len() };
        for gap in &self.gaps[..self.gap_count] {
            rest = rest.get(gap.start - from..).unwrap_or_default();
            let length = match_string(rest).map_or(0, |(length, _)| length);
            if gap.is_text {
                return &rest[..length];
            }
            rest = &rest[length..];
            from = gap.end;
        }
        &[]
    }

    /// Takes `data` as the pattern if it can be one. It was read as `document` and `choices`, and
    /// its event is not an error.
    pub(super) fn learn(&mut self, data: &[u8], document: &Document<'_>, choices: &[Choice]) {
        self.misses = self.misses.saturating_add(1);
        if self.misses > MISSES_MAX && !self.misses.is_multiple_of(MISSES_STEP) {
            return;
        }
        let common = match self.of {
            Of::Text => common(document, choices),
            Of::End => common_end(document, choices),
        };
        let Some(common) = common else { return };
        // A line end stands for a second data line, and that is not how it would arrive.
        if data.len() > EVENT_BYTES_MAX || memchr2(b'\n', b'\r', data).is_some() {
            return;
        }
        let strings = document.strings;
        let Some(places) = strings.places() else { return };
        let texts = places.iter().filter(|place| place.is_counted && !place.is_empty()).count();
        if texts != usize::from(self.of == Of::Text) {
            return;
        }
        let old = self.strings.places().unwrap_or_default();
        let old_data = self.line.get(FIELD.len()..).filter(|_| old.len() == places.len());
        self.gap_count = 0;
        for (index, place) in places.iter().enumerate() {
            let is_text = place.is_counted && !place.is_empty();
            // A string that nobody reads becomes a gap once two events differed in it.
            let differs = || {
                old_data.is_some_and(|old_data| {
                    old_data.get(old[index].range()) != data.get(place.range())
                })
            };
            let is_gap = is_text || (!place.is_counted && differs());
            if is_gap && let Some(gap) = self.gaps.get_mut(self.gap_count) {
                let range = place.range();
                let (start, end) = (FIELD.len() + range.start, FIELD.len() + range.end);
                *gap = Gap { start, end, is_text };
                self.gap_count += 1;
            }
        }
        self.common = common;
        self.strings = strings;
        self.line.clear();
        self.line.extend_from_slice(FIELD);
        self.line.extend_from_slice(data);
        if self.gaps[..self.gap_count].iter().filter(|gap| gap.is_text).count() != texts {
            self.line.clear();
        }
    }

    /// Compares `bytes` with the pattern from its byte `from` on, which is before all gaps.
    #[inline]
    fn match_from(&self, from: usize, bytes: &[u8]) -> Option<Match> {
        if self.line.is_empty() {
            return None;
        }
        let mut rest = bytes;
        let mut from = from;
        let mut text = 0;
        for gap in &self.gaps[..self.gap_count] {
            rest = behind(rest, &self.line[from..gap.start])?;
            let (length, meaning) = match_string(rest)?;
            if gap.is_text {
                text = meaning;
            }
            rest = &rest[length..];
            from = gap.end;
        }
        rest = behind(rest, &self.line[from..])?;
        let is_known = text > 0 || self.of == Of::End;
        is_known.then(|| Match { used: bytes.len() - rest.len(), text })
    }
}

/// What all events say that differ from this one in strings that are not read, if an event of this
/// kind can be a pattern: one choice with content, nothing that ends, no failure.
fn common(document: &Document<'_>, choices: &[Choice]) -> Option<Common> {
    let mut carriers = choices.iter().filter(|choice| choice.bytes() > 0);
    let (carrier, other) = (carriers.next()?, carriers.next());
    let ends = choices.iter().any(|choice| choice.finish.is_some());
    if other.is_some() || ends || document.error.is_some() {
        return None;
    }
    let (kind, choice) = (carrier.kind(), carrier.index);
    Some(Common { kind, choice, usage: document.usage, finish: None })
}

/// The same for an event that ends an answer of one choice and carries nothing.
fn common_end(document: &Document<'_>, choices: &[Choice]) -> Option<Common> {
    let &[Choice { index, finish: finish @ Some(_), .. }] = choices else { return None };
    if choices[0].bytes() > 0 || choices[0].given_up.is_some() || document.error.is_some() {
        return None;
    }
    Some(Common { kind: ChunkKind(0), choice: index, usage: document.usage, finish })
}

/// What follows `head` in `bytes`, which must start with it. Compared here rather than by a call:
/// a head is some sixty bytes, and there are two for each of millions of events a second.
#[inline]
fn behind<'a>(bytes: &'a [u8], head: &[u8]) -> Option<&'a [u8]> {
    let (found, rest) = bytes.split_at_checked(head.len())?;
    let is_same = match (found.last_chunk(), head.last_chunk()) {
        (Some(found_end), Some(head_end)) => {
            // Differences are gathered rather than looked at one by one: a head seldom differs,
            // and the compiler makes vectors of it.
            let mut differences = Differences::default();
            for (found, head) in found.as_chunks().0.iter().zip(head.as_chunks().0) {
                differences.add(found, head);
            }
            differences.add(found_end, head_end);
            differences == Differences::default()
        }
        _ => found == head,
    };
    is_same.then_some(rest)
}

/// The bits in which equally long texts differ, laid over each other.
#[derive(Default, PartialEq, Eq)]
struct Differences([u64; 4]);

impl Differences {
    #[inline]
    fn add(&mut self, found: &[u8; 32], head: &[u8; 32]) {
        let words = found.as_chunks().0.iter().zip(head.as_chunks().0);
        for (all, (found, head)) in self.0.iter_mut().zip(words) {
            *all |= u64::from_ne_bytes(*found) ^ u64::from_ne_bytes(*head);
        }
    }
}

/// The rest of a string whose opening quote has been passed: how many bytes before the closing
/// quote, and how many they stand for. `None` for what needs a closer look: control characters,
/// which may be line ends, and the input's end.
#[inline]
fn match_string(bytes: &[u8]) -> Option<(usize, u32)> {
    const TOPS: u64 = u64::from_le_bytes([0x80; 8]);
    const BLANKS: u64 = u64::from_le_bytes([b' '; 8]);
    let mut at = 0;
    loop {
        let here = bytes.get(at..)?;
        let word = u64::from_le_bytes(here.first_chunk().copied().unwrap_or_else(|| padded(here)));
        let marks = mark_stops(word) | (word.wrapping_sub(BLANKS) & !word & TOPS);
        if marks == 0 {
            at += 8;
            if at > STRING_BYTES_MAX {
                return None;
            }
            continue;
        }
        at += (marks.trailing_zeros() / 8) as usize;
        return match bytes.get(at) {
            Some(b'"') => Some((at, u32::try_from(at).ok()?)),
            Some(b'\\') => match_escaped(bytes, at),
            _ => None,
        };
    }
}

/// The last few bytes of an input, with control characters behind them.
#[cold]
fn padded(last: &[u8]) -> [u8; 8] {
    let mut padded = [0; 8];
    padded[..last.len()].copy_from_slice(last);
    padded
}

/// [`match_string`] for a string whose first backslash is at `at`.
fn match_escaped(bytes: &[u8], at: usize) -> Option<(usize, u32)> {
    let near = &bytes[..bytes.len().min(STRING_BYTES_MAX)];
    let (length, meaning) = Cursor::new(near).string_rest(at).ok()?;
    if near[..length].iter().any(|&byte| byte < b' ') {
        return None;
    }
    Some((length, u32::try_from(meaning).ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::delta;
    use super::*;

    fn learn(pattern: &mut Pattern, data: &str) {
        let mut choices = Vec::new();
        let document = delta::read(data.as_bytes(), &mut choices).expect("JSON");
        pattern.learn(data.as_bytes(), &document, &choices);
    }

    fn text(pattern: &Pattern, data: &str) -> Option<u32> {
        pattern.match_data(data.as_bytes()).map(|found| found.text)
    }

    #[test]
    fn events_that_differ_in_their_text_are_known() {
        let mut pattern = Pattern::new();
        let data = |text: &str| format!(r#"{{"id":"a","choices":[{{"text":"{text}"}}]}}"#);
        assert_eq!(text(&pattern, &data("a")), None);
        learn(&mut pattern, &data("a"));
        for (said, bytes) in [("a", 1), ("a longer word", 13), ("é", 2), (r"\n\u00e9\\", 4)] {
            assert_eq!(text(&pattern, &data(said)), Some(bytes), "{said}");
        }
        for unknown in ["", "\n", "\t", r"\x", r"\", "a\" ", "\"", r"a\u00e"] {
            assert_eq!(text(&pattern, &data(unknown)), None, "{unknown}");
        }
        assert_eq!(text(&pattern, &data("a").replace("id", "ID")), None);
        assert_eq!(text(&pattern, &(data("a") + " ")), None);
        let line = format!("data: {}\n\nda", data("word"));
        let found = pattern.match_line(line.as_bytes()).expect("known");
        assert_eq!(pattern.text_of(line.as_bytes(), true), b"word");
        assert_eq!(pattern.text_of(&line.as_bytes()[6..], false), b"word");
        assert_eq!(&line[found.used..], "\n\nda");
        for length in 0..line.len() - 4 {
            assert_eq!(pattern.match_line(&line.as_bytes()[..length]), None);
        }
    }

    #[test]
    fn an_end_is_known_by_why_it_ended() {
        let mut pattern = Pattern::of_ends();
        let data = |id: &str, text: &str, reason: &str| {
            format!(r#"{{"id":"{id}","choices":[{{"text":"{text}","finish_reason":"{reason}"}}]}}"#)
        };
        learn(&mut pattern, &data("a", "more", "stop"));
        assert_eq!(text(&pattern, &data("a", "more", "stop")), None, "it carries something");
        learn(&mut pattern, &data("a", "", "stop"));
        assert_eq!(text(&pattern, &data("a", "", "stop")), Some(0));
        assert_eq!(pattern.hit().finish, Some(FinishReason::Stop));
        assert_eq!(text(&pattern, &data("b", "", "stop")), None);
        learn(&mut pattern, &data("b", "", "stop"));
        assert_eq!(text(&pattern, &data("another", "", "stop")), Some(0));
        for unknown in [data("b", "", "length"), data("b", "x", "stop"), data("b", "", "stop,")] {
            assert_eq!(text(&pattern, &unknown), None, "{unknown}");
        }
    }

    #[test]
    fn strings_that_nobody_reads_may_differ_once_they_did() {
        let mut pattern = Pattern::new();
        let data = |text: &str, noise: &str| {
            format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}}}}],"noise":"{noise}"}}"#)
        };
        learn(&mut pattern, &data("a", "x"));
        assert_eq!(text(&pattern, &data("b", "x")), Some(1));
        assert_eq!(text(&pattern, &data("b", "y")), None);
        learn(&mut pattern, &data("b", "y"));
        for noise in ["y", "", r"\n", "a long one"] {
            assert_eq!(text(&pattern, &data("bc", noise)), Some(2), "{noise}");
            assert_eq!(pattern.text_of(data("b\\n", noise).as_bytes(), false), b"b\\n");
        }
    }

    #[test]
    fn only_plain_content_becomes_a_pattern() {
        for data in [
            r#"{"choices":[{"text":"a","finish_reason":"stop"}]}"#,
            r#"{"choices":[{"text":""}]}"#,
            r#"{"choices":[{"text":"a"},{"text":"b"}]}"#,
            r#"{"choices":[{"delta":{"reasoning":"a","reasoning_content":"a"}}]}"#,
            r#"{"choices":[{"text":"a"}],"error":"b"}"#,
            "{\"choices\":[{\"text\":\"a\"}],\n\"model\":\"b\"}",
            r#"{"choices":[]}"#,
        ] {
            let mut pattern = Pattern::new();
            learn(&mut pattern, data);
            assert_eq!(text(&pattern, data), None, "{data}");
        }
    }
}
