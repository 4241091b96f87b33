//! The pages of a Parquet file, read into buffers that are used again, and where each came from.
//!
//! A text of a page that is not packed lies in the file as it is. Its bytes in memory are then a
//! part of a buffer that was read from a known place, which gives its place in the file without
//! knowing how a page is laid out: see [`Lent::place_of`]. A buffer is only read into again when
//! nothing points into it any more. What a page claims to unpack to is looked at when its header is
//! read, before room is made for it (see `unpacking`).

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::reader::{ChunkReader, Length};

use crate::trace::columns::deltas::has_deltas;
use crate::trace::columns::unpacking::{Claims, Page};
use crate::trace::scan::shown;

/// Longest buffer that is kept: writers' pages have a megabyte, and one that has a long text more.
const KEPT_BYTES_MAX: usize = 8 << 20;
/// Most buffers that are kept: one for each column at a time, and those of a batch.
const KEPT_MAX: usize = 16;
/// Bytes that are read to find a page's header.
const HEADER_BYTES: usize = 4 << 10;

/// A file as its reader wants it.
#[derive(Debug)]
pub(crate) struct Pages {
    file: Arc<File>,
    len: u64,
    /// What the file says of itself, for the names of its columns.
    metadata: Arc<ParquetMetaData>,
    buffers: Arc<Buffers>,
}

/// The buffers of one reader.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    /// What the pages of this batch claim to unpack to.
    claims: Mutex<Claims>,
    lent: Mutex<Vec<Region>>,
    free: Mutex<Vec<Vec<u8>>>,
}

/// Where the bytes of the buffers in use came from, as of one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lent(Vec<Region>);

/// A buffer in use.
#[derive(Clone, Copy, Debug)]
struct Region {
    address: usize,
    len: usize,
    offset: u64,
}

/// Whoever drops it gives its buffer back.
struct Buffer {
    bytes: Vec<u8>,
    buffers: Arc<Buffers>,
}

/// Reads on from a place, whatever others read.
#[derive(Debug)]
pub(crate) struct Reading {
    file: Arc<File>,
    at: u64,
    /// What is needed to look at the header that stands here; `None` once that is done.
    unseen: Option<(Arc<Buffers>, Arc<ParquetMetaData>)>,
}

impl Pages {
    /// The pages of a file.
    ///
    /// # Errors
    /// When the system does not say how long it is.
    pub(crate) fn of(file: Arc<File>, metadata: Arc<ParquetMetaData>) -> io::Result<Self> {
        let len = file.metadata()?.len();
        Ok(Self { file, len, metadata, buffers: Arc::default() })
    }

    /// Its buffers, for asking where bytes came from.
    pub(crate) fn buffers(&self) -> Arc<Buffers> {
        Arc::clone(&self.buffers)
    }
}

impl Length for Pages {
    fn len(&self) -> u64 {
        self.len
    }
}

impl ChunkReader for Pages {
    type T = BufReader<Reading>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        let unseen = Some((Arc::clone(&self.buffers), Arc::clone(&self.metadata)));
        let from = Reading { file: Arc::clone(&self.file), at: start, unseen };
        Ok(BufReader::with_capacity(HEADER_BYTES, from))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // A file may say anything of itself, and memory is not made for what it does not have.
        if start.checked_add(length as u64).is_none_or(|end| end > self.len) {
            let words = format!("{length} bytes at {start} of a file of {}", self.len);
            return Err(ParquetError::EOF(words));
        }
        let mut bytes = locked(&self.buffers.free).pop().unwrap_or_default();
        bytes.resize(length, 0);
        self.file.read_exact_at(&mut bytes, start)?;
        let region = Region { address: bytes.as_ptr().addr(), len: length, offset: start };
        let buffer = Buffer { bytes, buffers: Arc::clone(&self.buffers) };
        locked(&self.buffers.lent).push(region);
        Ok(Bytes::from_owner(buffer))
    }
}

impl Buffers {
    /// Other rows are read from here on.
    pub(crate) fn forget_claims(&self) {
        *locked(&self.claims) = Claims::default();
    }

    /// Where the bytes of the buffers in use came from.
    pub(crate) fn lent(&self) -> Lent {
        Lent(locked(&self.lent).clone())
    }
}

impl Lent {
    /// Where in the file these bytes lie; `None` when they were unpacked or put together. They must
    /// belong to something that was read before, and is still there.
    pub(crate) fn place_of(&self, bytes: &[u8]) -> Option<u64> {
        let address = bytes.as_ptr().addr();
        // The last page read is where most of a batch lies.
        self.0.iter().rev().find_map(|region| {
            let start = address.checked_sub(region.address)?;
            (start + bytes.len() <= region.len).then(|| region.offset + start as u64)
        })
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        let address = bytes.as_ptr().addr();
        // An empty buffer has no address of its own, and nothing lies in it.
        locked(&self.buffers.lent)
            .retain(|region| region.address != address || (region.len == 0) != bytes.is_empty());
        let mut free = locked(&self.buffers.free);
        if bytes.capacity() <= KEPT_BYTES_MAX && free.len() < KEPT_MAX {
            free.push(bytes);
        }
    }
}

impl Read for Reading {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(out, self.at)?;
        // Where a page's header is known, nobody reads here.
        if let Some((buffers, metadata)) = self.unseen.take() {
            let claimed = match Page::of_header(&out[..read]) {
                // Whoever went through the pages of such columns has not seen this one.
                Some(page) if page.is_delta() && !may_be_delta(&metadata, self.at) => {
                    Err("a page is written in another way than its column says".to_owned())
                }
                Some(page) => locked(&buffers.claims).add(page),
                None => Err("the header of a page is none".to_owned()),
            };
            claimed.map_err(|words| io::Error::other(named(&metadata, self.at, &words)))?;
        }
        self.at += read as u64;
        Ok(read)
    }
}

/// The columns that have what lies at a place of a file: one, unless the file is damaged.
fn columns_at(metadata: &ParquetMetaData, at: u64) -> impl Iterator<Item = &ColumnChunkMetaData> {
    let columns = metadata.row_groups().iter().flat_map(|group| group.columns());
    columns.filter(move |column| {
        let (start, bytes) = column.byte_range();
        at.checked_sub(start).is_some_and(|behind| behind < bytes)
    })
}

/// Whether texts at a place of a file may be written as differences, by all that it says.
fn may_be_delta(metadata: &ParquetMetaData, at: u64) -> bool {
    let mut columns = columns_at(metadata, at).peekable();
    columns.peek().is_some() && columns.all(has_deltas)
}

/// What is wrong with what lies at a place of a file, with the name of its column.
fn named(metadata: &ParquetMetaData, at: u64, words: &str) -> String {
    match columns_at(metadata, at).next() {
        Some(column) => {
            format!("column {}: {words}", shown(column.column_path().string().as_bytes()))
        }
        None => words.to_owned(),
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is locked is whole at every moment, also when a reader has panicked.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use parquet::file::metadata::FileMetaData;
    use parquet::schema::types::{SchemaDescriptor, Type};

    use super::*;

    #[test]
    fn bytes_are_found_in_the_file_as_long_as_they_are_there() {
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(b"0123456789").expect("written");
        let root = Type::group_type_builder("x").build().expect("a type without members");
        let schema = Arc::new(SchemaDescriptor::new(Arc::new(root)));
        let metadata = FileMetaData::new(1, 0, None, None, schema, None);
        let metadata = Arc::new(ParquetMetaData::new(metadata, Vec::new()));
        let pages = Pages::of(Arc::new(file), metadata).expect("a file");
        let buffers = pages.buffers();
        let (one, two) = (pages.get_bytes(2, 4), pages.get_bytes(5, 5));
        let (one, two) = (one.expect("there"), two.expect("there"));
        let none = pages.get_bytes(3, 0).expect("nothing is always there");
        assert_eq!((&one[..], &two[..], &none[..]), (&b"2345"[..], &b"56789"[..], &b""[..]));
        let lent = buffers.lent();
        assert_eq!(lent.place_of(&one[1..3]), Some(3));
        assert_eq!(lent.place_of(&two), Some(5));
        assert_eq!(lent.place_of(b"2345"), None, "the same bytes elsewhere");
        let address = two.as_ptr();
        drop((none, two));
        assert_eq!(buffers.lent().0.len(), 1);
        // Its memory is used again, and another place is known for it.
        let read: Vec<Bytes> =
            (0..2).map(|start| pages.get_bytes(start, 5).expect("there")).collect();
        let again = (0..).zip(&read).find(|(_, bytes)| bytes.as_ptr() == address);
        let (start, again) = again.expect("it is used again");
        assert_eq!(buffers.lent().place_of(&again[1..]), Some(start + 1));
        assert!(pages.get_bytes(6, 5).is_err() && pages.get_bytes(u64::MAX, 1).is_err());
        let mut rest = String::new();
        let read = pages.get_read(7).expect("a reader").read_to_string(&mut rest);
        let words = read.expect_err("no header of a page").to_string();
        assert!(words.contains("header of a page"), "{words}");
    }
}
