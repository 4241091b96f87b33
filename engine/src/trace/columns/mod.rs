//! Files of columns, Parquet and Arrow: a few named columns, batch by batch.
//!
//! Only the columns that are asked for are read and unpacked, and one batch of rows is in memory at
//! a time (in an Arrow file the batches are the writer's). Which of the many types a column may
//! have is settled in `cells`; what the columns mean is the format's business. A folder is read as
//! the files in it that are of either kind, in the order of their names.

pub(crate) mod cells;
mod digest;
pub(crate) mod shards;

use std::fs::File;
use std::io::{BufReader, Read};
use std::ops::Range;
use std::path::Path;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::reader::FileReader;
use arrow_schema::{ArrowError, Schema};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};

use crate::trace::TraceError;
pub(crate) use crate::trace::columns::digest::Digest;
pub(crate) use crate::trace::columns::shards::{Shard, shards};

/// How a file of columns is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Parquet,
    Arrow,
}

/// Rows of a Parquet file that are unpacked together. Small, because one of them may hold megabytes
/// of text and offsets into a batch's text have 31 bits.
const BATCH_ROWS: usize = 256;

/// An open file, and the columns that are read of it.
pub(crate) struct Table<'a> {
    path: &'a Path,
    batches: Batches,
    /// For each name that was asked for, its place in a batch.
    places: Vec<Option<usize>>,
}

enum Batches {
    Parquet(Box<ParquetRecordBatchReader>),
    Arrow(Box<FileReader<BufReader<File>>>),
}

/// The columns of some rows, in the order of the names that were asked for.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) rows: usize,
    pub(crate) columns: Vec<Option<ArrayRef>>,
}

impl Kind {
    /// What a file's first bytes say.
    pub(crate) fn of(start: &[u8]) -> Option<Self> {
        let is = |magic: &[u8]| start.starts_with(magic);
        is(b"PAR1").then_some(Self::Parquet).or_else(|| is(b"ARROW1").then_some(Self::Arrow))
    }

    /// What a file on disk begins like; `None` for any other kind, and for a folder.
    pub(crate) fn of_file(path: &Path) -> Result<Option<Self>, TraceError> {
        let meta = path.metadata().map_err(|error| TraceError::io("open", path, error))?;
        if !meta.is_file() {
            return Ok(None);
        }
        let file = File::open(path).map_err(|error| TraceError::io("open", path, error))?;
        let mut start = Vec::with_capacity(6);
        let read = file.take(6).read_to_end(&mut start);
        read.map_err(|error| TraceError::io("read", path, error))?;
        Ok(Self::of(&start))
    }
}

/// The names of all columns of a file.
pub(crate) fn names(path: &Path, kind: Kind) -> Result<Vec<String>, TraceError> {
    let schema = match kind {
        Kind::Parquet => parquet(path)?.schema().clone(),
        Kind::Arrow => arrow(path, None)?.schema(),
    };
    Ok(schema.fields().iter().map(|field| field.name().clone()).collect())
}

/// Rows of a file that can be read apart from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) rows: usize,
    /// Bytes of the column in them, unpacked.
    pub(crate) bytes: u64,
}

/// The groups of rows of a file, with the size of one column; `None` when it has none that could be
/// read apart.
pub(crate) fn groups(
    path: &Path,
    kind: Kind,
    column: &str,
) -> Result<Option<Vec<Group>>, TraceError> {
    if kind == Kind::Arrow {
        return Ok(None);
    }
    let builder = parquet(path)?;
    let group = |group: &RowGroupMetaData| {
        let column = group.columns().iter().find(|own| own.column_path().string() == column);
        let bytes = column.map_or(0, ColumnChunkMetaData::uncompressed_size);
        Some(Group {
            rows: usize::try_from(group.num_rows()).ok()?,
            bytes: u64::try_from(bytes).ok()?,
        })
    };
    Ok(builder.metadata().row_groups().iter().map(group).collect())
}

impl<'a> Table<'a> {
    /// Opens a file for reading the columns of these names, as far as it has them.
    pub(crate) fn open(path: &'a Path, kind: Kind, names: &[&str]) -> Result<Self, TraceError> {
        Self::open_groups(path, kind, names, None)
    }

    /// The same, for some of the [`groups`] of a file; an Arrow file is always read whole.
    pub(crate) fn open_groups(
        path: &'a Path,
        kind: Kind,
        names: &[&str],
        groups: Option<Range<usize>>,
    ) -> Result<Self, TraceError> {
        let (batches, places) = match kind {
            Kind::Parquet => {
                let mut builder = parquet(path)?;
                if let Some(groups) = groups {
                    builder = builder.with_row_groups(groups.collect());
                }
                let roots = roots(builder.schema(), names);
                let mask = ProjectionMask::roots(builder.parquet_schema(), roots.clone());
                let reader = builder.with_projection(mask).with_batch_size(BATCH_ROWS).build();
                let reader = reader.map_err(|error| unreadable(path, kind, &error))?;
                let places = places(&reader_schema(&reader), names);
                (Batches::Parquet(Box::new(reader)), places)
            }
            Kind::Arrow => {
                let roots = roots(&arrow(path, None)?.schema(), names);
                let reader = arrow(path, Some(roots))?;
                // With a projection the reader's own schema is the file's: batches have their own.
                let mut found: Vec<(usize, usize)> = Vec::new();
                let schema = reader.schema();
                for (asked, name) in names.iter().enumerate() {
                    if let Ok(root) = schema.index_of(name) {
                        found.push((root, asked));
                    }
                }
                found.sort_unstable();
                let mut places = vec![None; names.len()];
                for (place, &(_, asked)) in found.iter().enumerate() {
                    places[asked] = Some(place);
                }
                (Batches::Arrow(Box::new(reader)), places)
            }
        };
        Ok(Self { path, batches, places })
    }

    /// The next rows; `None` behind the last.
    pub(crate) fn next(&mut self) -> Result<Option<Batch>, TraceError> {
        let (batch, kind) = match &mut self.batches {
            Batches::Parquet(reader) => (reader.next(), Kind::Parquet),
            Batches::Arrow(reader) => (reader.next(), Kind::Arrow),
        };
        let Some(batch) = batch else { return Ok(None) };
        let batch: RecordBatch = batch.map_err(|error| unreadable(self.path, kind, &error))?;
        let column = |place: &Option<usize>| place.map(|place| batch.column(place).clone());
        Ok(Some(Batch {
            rows: batch.num_rows(),
            columns: self.places.iter().map(column).collect(),
        }))
    }
}

fn parquet(path: &Path) -> Result<ParquetRecordBatchReaderBuilder<File>, TraceError> {
    let file = File::open(path).map_err(|error| TraceError::io("open", path, error))?;
    // The types that Parquet itself names are fewer than those of the program that wrote the file.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    ParquetRecordBatchReaderBuilder::try_new_with_options(file, options)
        .map_err(|error| unreadable(path, Kind::Parquet, &error))
}

fn arrow(
    path: &Path,
    projection: Option<Vec<usize>>,
) -> Result<FileReader<BufReader<File>>, TraceError> {
    let file = File::open(path).map_err(|error| TraceError::io("open", path, error))?;
    let reader = FileReader::try_new_buffered(file, projection);
    reader.map_err(|error| unreadable(path, Kind::Arrow, &error))
}

fn reader_schema(reader: &ParquetRecordBatchReader) -> Schema {
    let schema = arrow_array::RecordBatchReader::schema(reader);
    schema.as_ref().clone()
}

/// Places of the named columns among all columns of a file, rising.
fn roots(schema: &Schema, names: &[&str]) -> Vec<usize> {
    let mut roots: Vec<usize> =
        names.iter().filter_map(|name| schema.index_of(name).ok()).collect();
    roots.sort_unstable();
    roots
}

fn places(schema: &Schema, names: &[&str]) -> Vec<Option<usize>> {
    names.iter().map(|name| schema.index_of(name).ok()).collect()
}

/// What a reader refused, in its words: it knows the page, and not the row.
fn unreadable(path: &Path, kind: Kind, error: &dyn std::error::Error) -> TraceError {
    let kind = match kind {
        Kind::Parquet => "Parquet",
        Kind::Arrow => "Arrow",
    };
    let words = error.to_string();
    let words = words.strip_prefix("Parquet error: ").unwrap_or(&words);
    TraceError::file(
        path,
        format!("cannot be read as {kind} ({words}); is it damaged, or not wholly there?"),
    )
}

const _: fn(&ArrowError) -> &dyn std::error::Error = |error| error;
