//! What only some trace formats record: files of a folder, durations, cancellations, prompts.
//!
//! Columns beside [`Trace::records`](crate::trace::Trace::records), each either empty or with one
//! entry for each record, so that a trace without them pays nothing. A value that a row does not
//! have is `None`. Prompts are kept as JSON writes them (see [`Texts`]), because that is what they
//! are needed for.

use std::fmt;
use std::sync::Arc;

use crate::trace::agentic::Agentic;

/// What a trace records beside its records.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// The files of a trace that is a folder, in order; empty when it is one file.
    pub files: Vec<File>,
    /// From the request to the end of its answer, in nanoseconds.
    pub duration_ns: Vec<Option<i64>>,
    /// From the request to the first token, in nanoseconds.
    pub first_token_ns: Vec<Option<i64>>,
    /// Whether the client gave up; empty when none did.
    pub cancelled: Vec<bool>,
    /// Whether the trace says of each request if its client gave up.
    pub knows_cancelled: bool,
    /// Prompt tokens that were cached.
    pub cached_tokens: Vec<Option<u32>>,
    /// Tokens of a block, where the row says.
    pub block_tokens: Vec<Option<u32>>,
    /// Whether block ids were written as signed numbers, so that the upper half is negative.
    pub signed_ids: bool,
    /// Whether all rows hold their prompts, which are then sent as they stand.
    pub prompts: bool,
    /// What each row holds of its request, where rows differ.
    pub contents: Vec<Content>,
    /// For rows without a time of their own, how long they wait after the turn before them, in
    /// nanoseconds.
    pub delay_ns: Vec<Option<i64>>,
    /// Whether rows hold whole bodies that are for the completions endpoint.
    pub completions: bool,
    /// Whether no session's first row has a time of its own, so that they need a rate to start at.
    pub untimed: bool,
    /// Whether rows are in AIPerf's dialect of Mooncake's format, and may add members to bodies.
    pub dialect: bool,
    /// Conversations and their sub-agents.
    pub agentic: Option<Agentic>,
    /// Output lengths that rows say in members of their own; empty when none does.
    pub said: Vec<SaidLengths>,
    /// What rows hold, once it was read.
    pub texts: Texts,
    /// What rows add to their bodies, once it was read: each its tools or null, a blank and an
    /// object of other members (two values, so that none is nested deeper than in its row), or
    /// empty.
    pub members: Texts,
}

/// Output lengths in members that a row adds to its body, or that stand in the body it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SaidLengths {
    /// `max_completion_tokens`.
    pub max_completion_tokens: Said,
    /// `max_tokens`.
    pub max_tokens: Said,
    /// `min_tokens`.
    pub min_tokens: Said,
}

/// A length as a member of a body says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Said {
    /// There is no such member.
    #[default]
    Nothing,
    /// There is one that is no whole number of tokens, like null.
    NoNumber,
    /// So many tokens.
    Tokens(u32),
}

/// What a row holds of its request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// Lengths and block ids: the prompt is made of words.
    #[default]
    Words,
    /// The prompt.
    Prompt,
    /// The list of messages.
    Messages,
    /// The whole body.
    Body,
}

/// One file of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name, without its folder.
    pub name: String,
    /// How many records of the trace come before its own.
    pub first_record: u32,
}

/// Texts of records, written as the inside of a JSON string: quotes, backslashes and control
/// characters are escaped, everything else stands as it is.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    chunks: Vec<Vec<u8>>,
    places: Vec<Place>,
    /// Bytes of all texts.
    bytes: u64,
    /// How many chunks, from the first on, were taken out.
    taken: usize,
    /// Where the chunks are instead of here.
    elsewhere: Option<Arc<dyn Elsewhere>>,
}

/// A place where chunks of texts are kept instead of in memory.
pub trait Elsewhere: fmt::Debug + Send + Sync {
    /// Fills `out` with the bytes of a chunk from `start` on.
    ///
    /// # Panics
    /// When it does not hold them, or cannot be read.
    fn read(&self, chunk: u32, start: u32, out: &mut [u8]);
}

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    chunk: u32,
    start: u32,
    len: u32,
}

/// A chunk is closed once it has this many bytes: few chunks, and none so large that its growth
/// copies much.
const CHUNK_BYTES: usize = 16 << 20;
/// A new chunk's room: a text that is longer gets its own.
const CHUNK_ROOM: usize = CHUNK_BYTES + (1 << 20);

impl Recorded {
    /// Number of the file that a record is from; 0 when there is only one.
    #[must_use]
    pub fn file_of(&self, record: u32) -> u32 {
        let after = self.files.partition_point(|file| file.first_record <= record);
        u32::try_from(after.saturating_sub(1)).unwrap_or(0)
    }

    /// What a record holds of its request.
    #[must_use]
    pub fn content_of(&self, record: u32) -> Content {
        let all = if self.prompts { Content::Prompt } else { Content::Words };
        self.contents.get(record as usize).copied().unwrap_or(all)
    }

    /// Whether some record's text or members have to be read before it can be sent.
    #[must_use]
    pub const fn has_texts(&self) -> bool {
        self.prompts || self.dialect
    }

    /// Adds what a record holds, as it stands in JSON, to `out`: nothing when its prompt is made of
    /// words, or was not read.
    ///
    /// # Panics
    /// When texts are elsewhere and cannot be read.
    pub fn append_text(&self, record: u32, out: &mut Vec<u8>) {
        if !self.texts.is_empty() {
            self.texts.append(record, out);
        }
    }

    /// Bytes of what a record holds.
    #[must_use]
    pub fn text_len(&self, record: u32) -> usize {
        if self.texts.is_empty() { 0 } else { self.texts.len_of(record) }
    }

    /// What a record adds to its body, as [`Recorded::members`] has it; empty when that is nothing,
    /// or was not read.
    #[must_use]
    pub fn members_of(&self, record: u32) -> &[u8] {
        if self.members.is_empty() { &[] } else { self.members.get(record) }
    }

    /// Output lengths that a record says in members of its own.
    #[must_use]
    pub fn said_by(&self, record: u32) -> SaidLengths {
        self.said.get(record as usize).copied().unwrap_or_default()
    }

    /// Whether the length of a record's prompt in tokens is known.
    #[must_use]
    pub fn is_length_known(&self, record: u32) -> bool {
        self.contents.get(record as usize).is_none_or(|&content| content == Content::Words)
    }

    /// Whether a record's client gave up; `None` when the trace does not say.
    #[must_use]
    pub fn is_cancelled(&self, record: u32) -> Option<bool> {
        let none = self.knows_cancelled.then_some(false);
        self.cancelled.get(record as usize).copied().or(none)
    }
}

impl Said {
    /// The member whose value is written so; `None`: there is none.
    #[must_use]
    pub fn of(value: Option<&str>) -> Self {
        // The top value means "none" in a log.
        let tokens = |text: &str| text.parse().ok().filter(|&tokens: &u32| tokens != u32::MAX);
        value.map_or(Self::Nothing, |text| tokens(text).map_or(Self::NoNumber, Self::Tokens))
    }

    /// Itself, or `other` where there is no such member.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        match self {
            Self::Nothing => other,
            said => said,
        }
    }

    /// The number; `None` when none is said.
    #[must_use]
    pub const fn tokens(self) -> Option<u32> {
        match self {
            Self::Tokens(tokens) => Some(tokens),
            Self::Nothing | Self::NoNumber => None,
        }
    }
}

impl Texts {
    /// Room for the texts of so many records; each is empty until [`Texts::put`].
    #[must_use]
    pub fn for_records(records: usize) -> Self {
        Self { places: vec![Place::default(); records], ..Self::default() }
    }

    /// Whether no text was read.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Sets the text of a record, escaping what JSON wants escaped.
    ///
    /// # Panics
    /// When there is no such record, or the text has 4 GiB or more.
    pub fn put(&mut self, record: u32, text: &str) {
        self.add(record, text, escape);
    }

    /// Sets the text of a record, which is JSON already and stays as it is.
    ///
    /// # Panics
    /// When there is no such record, or the text has 4 GiB or more.
    pub fn put_json(&mut self, record: u32, text: &str) {
        self.add(record, text, |text, out| out.extend_from_slice(text.as_bytes()));
    }

    fn add(&mut self, record: u32, text: &str, write: impl FnOnce(&str, &mut Vec<u8>)) {
        let full = self.chunks.last().is_none_or(|chunk| {
            chunk.len() >= CHUNK_BYTES || chunk.len() + text.len() + text.len() / 8 > CHUNK_ROOM
        });
        if full {
            self.chunks.push(Vec::with_capacity(CHUNK_ROOM.max(text.len() + text.len() / 8)));
        }
        let number = u32::try_from(self.chunks.len() - 1).expect("chunks are large");
        let chunk = self.chunks.last_mut().expect("one was added if there was none");
        let start = chunk.len();
        write(text, chunk);
        let short = |len: usize| u32::try_from(len).expect("a text has less than 4 GiB");
        self.bytes += (chunk.len() - start) as u64;
        self.places[record as usize] =
            Place { chunk: number, start: short(start), len: short(chunk.len() - start) };
    }

    /// Takes over the texts of another, whose records are those from `first_record` on here.
    ///
    /// # Panics
    /// When there are no such records, or either's texts are elsewhere.
    pub fn take_over(&mut self, first_record: u32, mut other: Self) {
        assert!(self.elsewhere.is_none() && other.elsewhere.is_none(), "texts are in memory");
        let before = u32::try_from(self.chunks.len()).expect("chunks are large");
        self.chunks.append(&mut other.chunks);
        self.bytes += other.bytes;
        let places = &mut self.places[first_record as usize..][..other.places.len()];
        for (own, place) in places.iter_mut().zip(other.places) {
            *own = Place { chunk: before + place.chunk, ..place };
        }
    }

    /// The text of a record, escaped.
    ///
    /// # Panics
    /// When there is no such record, or texts are elsewhere.
    #[must_use]
    pub fn get(&self, record: u32) -> &[u8] {
        assert!(self.elsewhere.is_none(), "read it from where it is: see `append`");
        let place = self.places[record as usize];
        let start = place.start as usize;
        match self.chunks.get(place.chunk as usize) {
            Some(chunk) => &chunk[start..start + place.len as usize],
            None => &[],
        }
    }

    /// Adds the text of a record, escaped, to `out`, wherever it is.
    ///
    /// # Panics
    /// When there is no such record, or what is elsewhere cannot be read.
    pub fn append(&self, record: u32, out: &mut Vec<u8>) {
        let Some(elsewhere) = &self.elsewhere else {
            out.extend_from_slice(self.get(record));
            return;
        };
        let place = self.places[record as usize];
        let from = out.len();
        out.resize(from + place.len as usize, 0);
        if place.len > 0 {
            elsewhere.read(place.chunk, place.start, &mut out[from..]);
        }
    }

    /// Bytes of the text of a record, escaped.
    ///
    /// # Panics
    /// When there is no such record.
    #[must_use]
    pub fn len_of(&self, record: u32) -> usize {
        self.places[record as usize].len as usize
    }

    /// Whether texts are elsewhere than in memory.
    #[must_use]
    pub const fn is_elsewhere(&self) -> bool {
        self.elsewhere.is_some()
    }

    /// Takes out the chunks that nothing is added to any more, with their numbers.
    pub fn take_full_chunks(&mut self) -> Vec<(u32, Vec<u8>)> {
        let full = self.chunks.len().saturating_sub(1);
        self.take_first(full)
    }

    /// Takes out all chunks, with their numbers; they have to be kept [elsewhere](Texts::are_at).
    pub fn take_all_chunks(&mut self) -> Vec<(u32, Vec<u8>)> {
        self.take_first(self.chunks.len())
    }

    fn take_first(&mut self, count: usize) -> Vec<(u32, Vec<u8>)> {
        let from = std::mem::replace(&mut self.taken, count);
        // After every text: what was taken before is not looked at again.
        let first = u32::try_from(from).expect("chunks are large");
        let chunks = (first..).zip(&mut self.chunks[from..count]);
        chunks.map(|(number, chunk)| (number, std::mem::take(chunk))).collect()
    }

    /// Says where all chunks are now.
    pub fn are_at(&mut self, elsewhere: Arc<dyn Elsewhere>) {
        self.chunks = Vec::new();
        self.elsewhere = Some(elsewhere);
    }

    /// Where the text of a record lies: its chunk, its start and its length; `None` when no text
    /// was read.
    #[must_use]
    pub fn place(&self, record: u32) -> Option<(u32, u32, u32)> {
        self.places.get(record as usize).map(|place| (place.chunk, place.start, place.len))
    }

    /// Takes the chunks out; places stay what they are.
    pub fn take_chunks(&mut self) -> Vec<Box<[u8]>> {
        std::mem::take(&mut self.chunks).into_iter().map(Vec::into_boxed_slice).collect()
    }

    /// Bytes of all texts, wherever they are.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of the texts that are in memory.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.len() as u64).sum()
    }
}

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
    fn texts_are_found_by_record_in_any_order() {
        let mut texts = Texts::for_records(3);
        texts.put(2, "two \"quoted\"");
        texts.put(0, "");
        assert_eq!(texts.get(2), b"two \\\"quoted\\\"");
        assert_eq!((texts.get(0), texts.get(1)), (&b""[..], &b""[..]));
        let long = "x".repeat(CHUNK_ROOM + 5);
        texts.put(1, &long);
        assert_eq!(texts.get(1), long.as_bytes());
        assert_eq!(texts.bytes(), 14 + long.len() as u64);
        assert_eq!(texts.place(2), Some((0, 0, 14)));
        let mut both = Texts::for_records(5);
        both.put(0, "first");
        both.take_over(2, texts.clone());
        assert_eq!((both.get(0), both.get(4)), (&b"first"[..], texts.get(2)));
        assert_eq!((both.get(1), both.get(3)), (&b""[..], long.as_bytes()));
        assert_eq!(both.bytes(), texts.bytes() + 5);
        assert_eq!(texts.take_chunks().len(), 2);
    }

    #[test]
    fn a_record_knows_its_file() {
        let file = |name: &str, first_record| File { name: name.to_owned(), first_record };
        let recorded = Recorded {
            files: vec![file("a", 0), file("empty", 5), file("c", 5)],
            ..Recorded::default()
        };
        assert_eq!([0, 4, 5, 9].map(|record| recorded.file_of(record)), [0, 0, 2, 2]);
        assert_eq!(Recorded::default().file_of(7), 0);
    }

    proptest! {
        #[test]
        fn what_is_escaped_means_the_same(text in any::<String>()) {
            let mut json = b"\"".to_vec();
            escape(&text, &mut json);
            json.push(b'"');
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
