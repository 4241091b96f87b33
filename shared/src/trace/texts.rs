//! Texts of records, once they were read: in memory, in a file of our own, or where they stand.
//!
//! A text is written as the inside of a JSON string, because that is what it is needed for. It lies
//! in a chunk of many texts, in memory or moved elsewhere; or it stays in the file it came from, of
//! which only the place is known, and is read and escaped when it is asked for. A file that is no
//! longer what it was gives no wrong text: see [`Texts::fault`].

use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::{fmt, io};

use crate::trace::escape::{escape, escaped_len};

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
    /// Whether chunks are moved elsewhere as soon as they are full.
    passing: bool,
    /// Where the chunks are instead of here.
    elsewhere: Option<Arc<dyn Elsewhere>>,
    /// Bytes of the texts that stay where they came from.
    standing_bytes: u64,
    /// Where those stand.
    origin: Option<Arc<dyn Origin>>,
    /// What was wrong when one of them was read.
    fault: Arc<OnceLock<String>>,
}

/// A place where chunks of texts are kept instead of in memory.
pub trait Elsewhere: fmt::Debug + Send + Sync {
    /// Fills `out` with the bytes of a chunk from `start` on.
    ///
    /// # Panics
    /// When it does not hold them, or cannot be read.
    fn read(&self, chunk: u32, start: u32, out: &mut [u8]);
}

/// Where texts came from, unescaped; read from any thread.
pub trait Origin: fmt::Debug + Send + Sync {
    /// Fills `out` with the bytes of a region from `start` on.
    ///
    /// # Errors
    /// When they cannot be read.
    fn read(&self, region: u32, start: u32, out: &mut [u8]) -> io::Result<()>;
}

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// Number of a chunk; from [`STANDING`] on, of a region of the origin.
    chunk: u32,
    start: u32,
    /// Bytes, escaped.
    len: u32,
    /// Bytes as they stand in the origin.
    unescaped: u32,
}

/// The first number that means a region.
const STANDING: u32 = 1 << 31;

/// A chunk is closed once it has this many bytes: few chunks, and none so large that its growth
/// copies much.
const CHUNK_BYTES: usize = 16 << 20;
/// A new chunk's room: a text that is longer gets its own.
const CHUNK_ROOM: usize = CHUNK_BYTES + (1 << 20);
/// The same of chunks that are moved elsewhere: that they are few does not count then, and all that
/// is in memory is two of them.
const PASSING_BYTES: usize = 1 << 20;

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
        self.add(record, text.len() + text.len() / 8, |out| escape(text, out));
    }

    /// Sets the text of a record, which is JSON already and stays as it is.
    ///
    /// # Panics
    /// When there is no such record, or the text has 4 GiB or more.
    pub fn put_json(&mut self, record: u32, text: &str) {
        self.add(record, text.len(), |out| out.extend_from_slice(text.as_bytes()));
    }

    /// Sets the text of a record, which stays where it stands: in a region of the
    /// [origin](Texts::stand_in), from `start` on.
    ///
    /// # Panics
    /// When there is no such record, or the text has 4 GiB or more, escaped.
    pub fn leave(&mut self, record: u32, region: u32, start: u32, text: &str) {
        let short = |len: usize| u32::try_from(len).expect("a text has less than 4 GiB");
        let (len, unescaped) = (short(escaped_len(text)), short(text.len()));
        self.bytes += u64::from(len);
        self.standing_bytes += u64::from(len);
        self.places[record as usize] = Place { chunk: STANDING + region, start, len, unescaped };
    }

    /// Says where texts stand that were left.
    pub fn stand_in(&mut self, origin: Arc<dyn Origin>) {
        self.origin = Some(origin);
    }

    /// Adds a text of about `room` bytes.
    fn add(&mut self, record: u32, room: usize, write: impl FnOnce(&mut Vec<u8>)) {
        let (most, most_room) = match self.passing {
            true => (PASSING_BYTES, PASSING_BYTES),
            false => (CHUNK_BYTES, CHUNK_ROOM),
        };
        let full = |chunk: &Vec<u8>| chunk.len() >= most || chunk.len() + room > most_room;
        if self.chunks.last().is_none_or(full) {
            self.chunks.push(Vec::with_capacity(most_room.max(room)));
        }
        let number = u32::try_from(self.chunks.len() - 1).expect("chunks are large");
        let chunk = self.chunks.last_mut().expect("one was added if there was none");
        let start = chunk.len();
        write(chunk);
        let short = |len: usize| u32::try_from(len).expect("a text has less than 4 GiB");
        self.bytes += (chunk.len() - start) as u64;
        let (start, len) = (short(start), short(chunk.len() - start));
        self.places[record as usize] = Place { chunk: number, start, len, unescaped: 0 };
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
        self.standing_bytes += other.standing_bytes;
        let places = &mut self.places[first_record as usize..][..other.places.len()];
        for (own, place) in places.iter_mut().zip(other.places) {
            *own = place;
            if place.chunk < STANDING {
                own.chunk += before;
            }
        }
    }

    /// The texts of some records that still [stand](Texts::leave) in their origin, in memory and
    /// numbered from the first of them; for [`Texts::settle`].
    ///
    /// # Panics
    /// When there are no such records.
    #[must_use]
    pub fn fetched(&self, records: Range<u32>) -> Self {
        let mut own = Self::for_records(records.len());
        for (number, record) in (0..).zip(records) {
            if self.places[record as usize].chunk >= STANDING {
                let room = self.places[record as usize].len as usize;
                own.add(number, room, |out| self.append(record, out));
            }
        }
        own
    }

    /// Takes over texts that were [fetched](Texts::fetched) from `first_record` on.
    ///
    /// # Panics
    /// When there are no such records, or either's texts are elsewhere.
    pub fn settle(&mut self, first_record: u32, mut fetched: Self) {
        assert!(self.elsewhere.is_none() && fetched.elsewhere.is_none(), "texts are in memory");
        let before = u32::try_from(self.chunks.len()).expect("chunks are large");
        self.chunks.append(&mut fetched.chunks);
        self.standing_bytes -= fetched.bytes;
        let places = &mut self.places[first_record as usize..][..fetched.places.len()];
        for (own, place) in places.iter_mut().zip(fetched.places) {
            if own.chunk >= STANDING {
                *own = Place { chunk: before + place.chunk, ..place };
            }
        }
    }

    /// The text of a record, escaped.
    ///
    /// # Panics
    /// When there is no such record, or its text is elsewhere or was left where it stands.
    #[must_use]
    pub fn get(&self, record: u32) -> &[u8] {
        assert!(self.elsewhere.is_none(), "read it from where it is: see `append`");
        let place = self.places[record as usize];
        assert!(place.chunk < STANDING, "read it from where it stands: see `append`");
        let start = place.start as usize;
        match self.chunks.get(place.chunk as usize) {
            Some(chunk) => &chunk[start..start + place.len as usize],
            None => &[],
        }
    }

    /// Adds the text of a record, escaped, to `out`, wherever it is. One that cannot be read where
    /// it stands is blank, and that is a [fault](Texts::fault).
    ///
    /// # Panics
    /// When there is no such record, or what is elsewhere cannot be read.
    pub fn append(&self, record: u32, out: &mut Vec<u8>) {
        let place = self.places[record as usize];
        let from = out.len();
        if place.chunk >= STANDING {
            if let Err(error) = self.append_standing(place, out) {
                // Only the first one is told.
                let _later = self.fault.set(error.to_string());
                out.truncate(from);
                out.resize(from + place.len as usize, b' ');
            }
            return;
        }
        let Some(elsewhere) = &self.elsewhere else {
            out.extend_from_slice(self.get(record));
            return;
        };
        out.resize(from + place.len as usize, 0);
        if place.len > 0 {
            elsewhere.read(place.chunk, place.start, &mut out[from..]);
        }
    }

    fn append_standing(&self, place: Place, out: &mut Vec<u8>) -> io::Result<()> {
        let changed = || io::Error::other("the file has changed since it was read");
        let origin = self.origin.as_ref().ok_or_else(|| io::Error::other("no file to read"))?;
        let mut bytes = vec![0; place.unescaped as usize];
        origin.read(place.chunk - STANDING, place.start, &mut bytes)?;
        let text = std::str::from_utf8(&bytes).map_err(|_no_text| changed())?;
        let from = out.len();
        escape(text, out);
        if out.len() - from == place.len as usize { Ok(()) } else { Err(changed()) }
    }

    /// What was wrong when a text was read where it stands; `None` when nothing was.
    #[must_use]
    pub fn fault(&self) -> Option<&str> {
        self.fault.get().map(String::as_str)
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

    /// Whether texts still stand where they came from.
    #[must_use]
    pub const fn is_standing(&self) -> bool {
        self.standing_bytes > 0
    }

    /// Bytes of texts that were copied out of where they came from.
    #[must_use]
    pub const fn copied_bytes(&self) -> u64 {
        self.bytes - self.standing_bytes
    }

    /// Chunks are moved elsewhere from now on: they are small.
    pub const fn pass(&mut self) {
        self.passing = true;
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
    ///
    /// # Panics
    /// When its text was left where it stands.
    #[must_use]
    pub fn place(&self, record: u32) -> Option<(u32, u32, u32)> {
        let place = self.places.get(record as usize)?;
        assert!(place.chunk < STANDING, "it has no place in a chunk: see `settle`");
        Some((place.chunk, place.start, place.len))
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

#[cfg(test)]
mod tests {
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

    /// Two regions of bytes.
    #[derive(Debug)]
    struct Regions([Vec<u8>; 2]);

    impl Origin for Regions {
        fn read(&self, region: u32, start: u32, out: &mut [u8]) -> io::Result<()> {
            let from = self.0[region as usize].get(start as usize..).unwrap_or_default();
            let from = from.get(..out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
            out.copy_from_slice(from);
            Ok(())
        }
    }

    /// Texts of four records: one copied, two left, one empty.
    fn left(first: &str) -> Texts {
        let mut half = Texts::for_records(2);
        half.leave(0, 1, 2, "b\"\n");
        half.put(1, "copied\t");
        let mut texts = Texts::for_records(4);
        texts.put(3, "");
        texts.leave(0, 0, 0, "a \u{e9}\u{1}");
        texts.take_over(1, half);
        texts.stand_in(Arc::new(Regions([first.into(), b"..b\"\n..".to_vec()])));
        texts
    }

    #[test]
    fn texts_that_were_left_are_read_as_if_they_had_been_copied() {
        let mut texts = left("a \u{e9}\u{1}, and more");
        let expected = ["a \u{e9}\\u0001", "b\\\"\\n", "copied\\t", ""];
        let read = |texts: &Texts| -> Vec<String> {
            let text = |record| {
                let mut out = Vec::new();
                texts.append(record, &mut out);
                assert_eq!(out.len(), texts.len_of(record));
                String::from_utf8(out).expect("UTF-8")
            };
            (0..4).map(text).collect()
        };
        assert_eq!(read(&texts), expected);
        assert!(texts.is_standing() && texts.copied_bytes() == 8 && texts.memory_bytes() == 8);
        let bytes = texts.bytes();
        for records in [0..1, 1..4] {
            let fetched = texts.fetched(records.clone());
            texts.settle(records.start, fetched);
        }
        assert!(!texts.is_standing() && texts.bytes() == bytes);
        assert_eq!(texts.memory_bytes(), bytes);
        assert_eq!((0..4).map(|record| texts.get(record)).collect::<Vec<_>>(), {
            expected.map(str::as_bytes)
        });
        assert_eq!(texts.fault(), None);
    }

    #[test]
    fn a_file_that_has_changed_gives_no_other_text() {
        for (now, words) in [
            ("a \u{e9}x and more", "has changed"),
            ("a", "unexpected end of file"),
            ("ab\u{20ac}", "has changed"),
        ] {
            let texts = left(now);
            let (mut out, copy) = (Vec::new(), texts.clone());
            texts.append(0, &mut out);
            assert_eq!(out, b"          ", "as long as it was");
            let fault = copy.fault().expect("every copy knows");
            assert!(fault.contains(words), "{fault}");
        }
    }
}
