//! How many texts a page of Parquet has, and how long they are, where they are written as what
//! changes from one to the next.
//!
//! Two of Parquet's encodings begin with lists of lengths that are themselves written as
//! differences, and one of the two repeats the beginning of the text before. A page of a few bytes
//! can so say that it has a billion texts, or a thousand of a hundred megabytes each, and its
//! reader makes room for all of them. Before such a column is read, its pages are gone through one
//! by one, and only the lengths are looked at. This is no reader of texts: what else is wrong with
//! a page is for the reader to say.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::serialized_reader::SerializedPageReader;

use crate::limits::{TRACE_PAGE_TEXTS_MAX, TRACE_UNPACK_BYTES_FREE};
use crate::trace::columns::pages::Pages;
use crate::trace::columns::unpacking::{Claims, Page as Claim};
use crate::trace::scan::shown;

/// What is known of the columns of a file that are written so, by group of rows and place: the
/// bytes of the longest text. Each is gone through once, however often it is read.
#[derive(Clone, Debug, Default)]
pub(super) struct Longest(Arc<Mutex<Known>>);

type Known = BTreeMap<(usize, usize), u64>;

/// Whether texts are written as differences in one of these encodings.
pub(super) const fn is_delta(encoding: Encoding) -> bool {
    matches!(encoding, Encoding::DELTA_BYTE_ARRAY | Encoding::DELTA_LENGTH_BYTE_ARRAY)
}

/// Whether a column says that some of its pages may be.
pub(super) fn has_deltas(column: &ColumnChunkMetaData) -> bool {
    column.encodings().any(is_delta)
}

impl Longest {
    /// How many rows of this group may be read together, of these columns.
    ///
    /// # Errors
    /// What a page claims that nobody makes room for.
    pub(super) fn rows_together(
        &self,
        file: &ParquetMetaData,
        group: usize,
        columns: &[usize],
        pages: impl Fn() -> Result<Pages, ParquetError>,
    ) -> Result<u64, String> {
        let mut longest = 0_u64;
        for &place in columns {
            let column = file.row_group(group).column(place);
            if !has_deltas(column) {
                continue;
            }
            let known = self.known().get(&(group, place)).copied();
            let own = match known {
                Some(own) => own,
                None => {
                    let rows = file.row_group(group).num_rows();
                    let own = longest_of(column, rows, &pages).map_err(|words| {
                        let name = column.column_path().string();
                        format!("column {}: {words}", shown(name.as_bytes()))
                    })?;
                    self.known().insert((group, place), own);
                    own
                }
            };
            longest = longest.saturating_add(own);
        }
        Ok((TRACE_UNPACK_BYTES_FREE / longest.max(1)).max(1))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // What is locked is whole at every moment.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bytes of the longest text of a column; nothing where texts are not repeated.
fn longest_of(
    column: &ColumnChunkMetaData,
    rows: i64,
    pages: &impl Fn() -> Result<Pages, ParquetError>,
) -> Result<u64, String> {
    let words = |error: ParquetError| error.to_string();
    let pages = pages().map_err(words)?;
    let buffers = pages.buffers();
    let rows = usize::try_from(rows).map_err(|error| error.to_string())?;
    let reader = SerializedPageReader::new(Arc::new(pages), column, rows, None);
    let mut reader = reader.map_err(words)?;
    let descriptor = column.column_descr();
    let (repeats, nulls) = (descriptor.max_rep_level() > 0, descriptor.max_def_level() > 0);
    let (mut longest, mut all) = (0_u64, 0_u64);
    loop {
        // Of one page at a time.
        buffers.forget_claims();
        let Some(page) = reader.get_next_page().map_err(words)? else { break };
        let (encoding, values) = (page.encoding(), u64::from(page.num_values()));
        if !is_delta(encoding) {
            continue;
        }
        let Some(bytes) = texts_of(&page, repeats, nulls) else {
            return Err("a page ends before its texts begin".to_owned());
        };
        if bytes.is_empty() {
            continue;
        }
        let found = match encoding {
            Encoding::DELTA_BYTE_ARRAY => repeated(bytes, values)?,
            _ => lengths(bytes, values, |_length| {}).map(|_behind| Texts::default())?,
        };
        longest = longest.max(found.longest);
        all = all.saturating_add(found.all);
    }
    if repeats {
        // How many texts a row has is not known, so all count that could be of one.
        let packed = u64::try_from(column.compressed_size()).unwrap_or(0);
        Claims::default().add(Claim { unpacked: all, packed, ..Claim::default() })?;
    }
    Ok(longest)
}

/// The part of a page's bytes that holds its texts, behind what says which values are there.
fn texts_of(page: &Page, repeats: bool, nulls: bool) -> Option<&[u8]> {
    match page {
        Page::DataPage { buf, def_level_encoding, rep_level_encoding, .. } => {
            let mut bytes = &buf[..];
            for (is_there, encoding) in [(repeats, rep_level_encoding), (nulls, def_level_encoding)]
            {
                if is_there {
                    // The other encoding of levels was given up before there were these of texts.
                    let (length, rest) = bytes.split_first_chunk::<4>()?;
                    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
                    bytes = rest.get(length..).filter(|_| *encoding == Encoding::RLE)?;
                }
            }
            Some(bytes)
        }
        Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, .. } => {
            let levels = def_levels_byte_len.checked_add(*rep_levels_byte_len)?;
            buf.get(usize::try_from(levels).ok()?..)
        }
        Page::DictionaryPage { .. } => None,
    }
}

/// What the texts of a page come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Texts {
    longest: u64,
    all: u64,
}

/// Adds up texts of which each begins like the one before it.
fn repeated(bytes: &[u8], values: u64) -> Result<Texts, String> {
    let mut beginnings = Vec::new();
    let behind = lengths(bytes, values, |length| beginnings.push(length))?;
    let (mut texts, mut before) = (Texts::default(), 0);
    let mut beginnings = beginnings.into_iter();
    lengths(behind, values, |length| {
        before = u64::from(beginnings.next().unwrap_or(0)).min(before) + u64::from(length);
        texts.longest = texts.longest.max(before);
        texts.all = texts.all.saturating_add(before);
    })?;
    Ok(texts)
}

const ENDS: &str = "a page's list of lengths is none, or ends too early";

/// Tells each length of the list at the start of `bytes`, of a page of so many values: differences,
/// in blocks of parts that have so many bits for each. Returns what is behind it.
fn lengths(mut bytes: &[u8], values: u64, mut tell: impl FnMut(u32)) -> Result<&[u8], String> {
    let ends = || ENDS.to_owned();
    let block = number(&mut bytes).ok_or_else(ends)?;
    let parts = number(&mut bytes).ok_or_else(ends)?;
    let mut left = number(&mut bytes).ok_or_else(ends)?;
    if left > values || left > TRACE_PAGE_TEXTS_MAX {
        return Err(format!(
            "a page of {values} values says that it has {left} texts; right would be at most as \
             many, and {TRACE_PAGE_TEXTS_MAX}: write fewer rows to a page"
        ));
    }
    let mut last = signed(&mut bytes).ok_or_else(ends)?;
    if parts == 0
        || !block.is_multiple_of(128)
        || !block.is_multiple_of(parts)
        || !(block / parts).is_multiple_of(32)
    {
        return Err(ends());
    }
    let in_part = block / parts;
    let parts = usize::try_from(parts).ok().ok_or_else(ends)?;
    if left > 0 {
        tell(u32::try_from(last).ok().ok_or_else(ends)?);
        left -= 1;
    }
    while left > 0 {
        let least = signed(&mut bytes).ok_or_else(ends)?;
        let widths;
        (widths, bytes) = bytes.split_at_checked(parts).ok_or_else(ends)?;
        for &width in widths {
            if left == 0 {
                // Parts without a value have no bytes, whatever their width is said to be.
                break;
            }
            let width = u64::from(width);
            let own = (width <= 32).then(|| in_part.checked_mul(width)).flatten();
            let own = own.and_then(|bits| usize::try_from(bits / 8).ok()).ok_or_else(ends)?;
            let part;
            (part, bytes) = bytes.split_at_checked(own).ok_or_else(ends)?;
            let here = left.min(in_part);
            let mut bits = Bits { bytes: part, held: 0, count: 0 };
            for _ in 0..here {
                let more = bits.take(width).ok_or_else(ends)?;
                last = last.wrapping_add(least).wrapping_add(more.cast_signed());
                tell(u32::try_from(last).ok().ok_or_else(ends)?);
            }
            left -= here;
        }
        if in_part == 0 {
            return Err(ends());
        }
    }
    Ok(bytes)
}

/// Numbers of so many bits, the lowest first.
struct Bits<'a> {
    bytes: &'a [u8],
    held: u64,
    count: u64,
}

impl Bits<'_> {
    /// The next number of `width` bits, 32 at the most.
    fn take(&mut self, width: u64) -> Option<u32> {
        while self.count < width {
            let (first, rest) = self.bytes.split_first()?;
            self.held |= u64::from(*first) << self.count;
            self.bytes = rest;
            self.count += 8;
        }
        let number = self.held & ((1 << width) - 1);
        self.held >>= width;
        self.count -= width;
        u32::try_from(number).ok()
    }
}

/// A number in groups of seven bits, the lowest first.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..63).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// A number that can be negative: twice its value, or less one than twice a negative one.
fn signed(bytes: &mut &[u8]) -> Option<i32> {
    let doubled = number(bytes)?;
    let half = (doubled >> 1).cast_signed();
    i32::try_from(if doubled & 1 == 0 { half } else { -half - 1 }).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use arrow_array::{ArrayRef, RecordBatch, StringArray};
    use parquet::arrow::ArrowWriter;
    use parquet::basic::Compression;
    use parquet::file::properties::{WriterProperties, WriterVersion};

    use super::*;
    use crate::trace::TraceError;
    use crate::trace::columns::{Kind, Opened};

    const BOTH: [Encoding; 2] = [Encoding::DELTA_BYTE_ARRAY, Encoding::DELTA_LENGTH_BYTE_ARRAY];

    /// Writes a column of these texts, all of them to one page.
    fn write(path: &Path, texts: &[Option<&str>], encoding: Encoding, version: WriterVersion) {
        let column: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
        let batch = RecordBatch::try_from_iter([("prompt", column)]).expect("one column");
        let properties = WriterProperties::builder()
            .set_writer_version(version)
            .set_dictionary_enabled(false)
            .set_encoding(encoding)
            .set_compression(Compression::UNCOMPRESSED)
            .set_data_page_size_limit(1 << 30)
            .build();
        let file = fs::File::create(path).expect("a file");
        let writer = ArrowWriter::try_new(file, batch.schema(), Some(properties));
        let mut writer = writer.expect("a known type");
        writer.write(&batch).expect("written");
        writer.close().expect("closed");
    }

    /// The rows of each batch of the column.
    fn batches(path: &Path) -> Result<Vec<usize>, TraceError> {
        let opened = Opened::new(path, Kind::Parquet)?;
        let mut table = opened.table(&["prompt"], None)?;
        let mut rows = Vec::new();
        while let Some(batch) = table.next()? {
            rows.push(batch.rows);
        }
        Ok(rows)
    }

    fn refused(path: &Path) -> String {
        batches(path).expect_err("it is damaged").to_string()
    }

    /// Changes the one place where a file has these bytes.
    fn change(path: &Path, from: &[u8], to: &[u8]) {
        let mut bytes = fs::read(path).expect("written before");
        let places: Vec<usize> =
            (0..bytes.len()).filter(|&at| bytes[at..].starts_with(from)).collect();
        assert_eq!(places.len(), 1, "{from:?}");
        bytes[places[0]..places[0] + to.len()].copy_from_slice(to);
        fs::write(path, bytes).expect("room");
    }

    #[test]
    fn texts_that_begin_alike_are_read_in_batches_that_there_is_room_for() {
        const LONG: usize = 1 << 20;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("t.parquet");
        let long = "a".repeat(LONG);
        write(&path, &[Some(long.as_str()); 300], BOTH[0], WriterVersion::PARQUET_2_0);
        let bytes = fs::metadata(&path).expect("it is there").len();
        assert!(bytes < 2 * LONG as u64, "three hundred are in {bytes} bytes");
        let rows = batches(&path).expect("nothing is wrong with it");
        assert_eq!(rows.iter().sum::<usize>(), 300);
        let most = usize::try_from(TRACE_UNPACK_BYTES_FREE).expect("small");
        assert!(rows.iter().all(|rows| rows * LONG <= most), "{rows:?}");
    }

    #[test]
    fn lengths_are_those_that_a_writer_wrote() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("t.parquet");
        let mut dice = onbeat_shared::dice::Dice(5);
        for round in 0..40 {
            let count = [0, 1, 2, 32, 33, 128, 129, 700][round % 8];
            let texts: Vec<Option<String>> = (0..count)
                .map(|_| {
                    let most = round << dice.below(6);
                    let text = "ab".repeat(dice.place(1 + most));
                    (dice.below(5) > 0).then(|| text + &dice.below(9).to_string())
                })
                .collect();
            let texts: Vec<Option<&str>> = texts.iter().map(Option::as_deref).collect();
            let longest = texts.iter().flatten().map(|text| text.len()).max().unwrap_or(0);
            for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
                for encoding in BOTH {
                    write(&path, &texts, encoding, version);
                    let opened = Opened::new(&path, Kind::Parquet).expect("it is one");
                    let file = Arc::clone(opened.parquet.as_ref().expect("Parquet").metadata());
                    for group in file.row_groups() {
                        let pages = || Ok(Pages::of(opened.file(), Arc::clone(&file))?);
                        let own = longest_of(group.column(0), group.num_rows(), &pages);
                        let right = if encoding == BOTH[0] { longest as u64 } else { 0 };
                        assert_eq!(own, Ok(right), "{encoding} {texts:?}");
                    }
                    assert_eq!(batches(&path).expect("sound").iter().sum::<usize>(), count);
                }
            }
        }
    }

    #[test]
    fn a_page_that_claims_more_texts_than_values_is_refused_by_its_column() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("t.parquet");
        for encoding in BOTH {
            // Texts of one length each: the list has no bits, whatever it is long.
            write(&path, &[Some("a"); 300], encoding, WriterVersion::PARQUET_1_0);
            let mut bytes = fs::read(&path).expect("written before");
            // 128 to a block, 4 parts, 300 texts, and the first length.
            let lists = [0x80, 1, 4, 0xac, 2];
            let list = bytes.windows(5).position(|five| five == lists).expect("a list");
            bytes[list + 4] = 0x7f;
            fs::write(&path, bytes).expect("room");
            let words = refused(&path);
            let right = "t.parquet: cannot be read as Parquet (column prompt: a page of 300 values \
                         says that it has 16300 texts; right would be at most as many";
            assert!(words.contains(right), "{words}");
        }
        // As many as there are values in a header that lies too.
        let many = [0x80, 1, 4, 0x80, 0x80, 0x80, 0x80, 0x10, 0];
        let words = lengths(&many, u64::MAX, |_length| {}).expect_err("too many");
        assert!(
            words.contains("has 4294967296 texts; right would be") && words.contains("16777216")
        );
    }

    #[test]
    fn a_page_that_is_written_in_another_way_than_its_column_says_is_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("t.parquet");
        write(&path, &[Some("a"); 3], Encoding::PLAIN, WriterVersion::PARQUET_1_0);
        assert_eq!(batches(&path).expect("sound"), [3]);
        // Three values; plain.
        change(&path, &[0x2c, 0x15, 6, 0x15, 0], &[0x2c, 0x15, 6, 0x15, 14]);
        let words = refused(&path);
        assert!(words.contains("column prompt: a page is written in another way"), "{words}");
    }

    #[test]
    fn lists_that_are_none_are_refused_and_end() {
        for list in [
            // No parts; parts of no whole number; of no values; less than no length; too few bytes.
            &[0x80, 1, 0, 2, 0][..],
            &[0x80, 1, 3, 2, 0],
            &[0, 1, 2, 0, 0, 0, 0],
            &[0x80, 1, 4, 2, 1],
            &[0x80, 1, 4, 2, 0, 0, 8, 0, 0, 0],
            &[0x80, 1, 4, 2, 0, 0, 33, 0, 0, 0],
            &[0x80; 12],
            &[],
        ] {
            assert_eq!(lengths(list, 9, |_length| {}), Err(ENDS.to_owned()), "{list:?}");
        }
        // None at all, and what is behind them.
        assert_eq!(lengths(&[0x80, 1, 4, 0, 0, 7, 7], 9, |_length| {}), Ok(&[7, 7][..]));
    }
}
