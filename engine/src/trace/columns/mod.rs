//! Files of columns, Parquet and Arrow: a few named columns, batch by batch.
//!
//! Only the columns that are asked for are read and unpacked, page by page, and one batch of rows
//! is in memory at a time (in an Arrow file the batches are the writer's). Texts of a Parquet file
//! are views into its unpacked pages, so that nobody copies them before who needs them; of a text
//! that is not packed it is known where in the file it lies (see `pages`). Which of the many types
//! a column may have is settled in `cells`; what the columns mean is the format's business. A
//! folder is read as the files in it that are of either kind, in the order of their names. Damage
//! that makes a reader panic is a refusal of the file as well (see `guard`), and so is what claims
//! to unpack to more than there should be room for (see `unpacking`). Texts that are written as
//! differences are gone through once before, for how long they become (see `deltas`).

pub(crate) mod cells;
mod deltas;
mod digest;
mod guard;
mod ipc;
mod pages;
pub(crate) mod shards;
mod standing;
mod unpacking;

use std::fs::File;
use std::io::{BufReader, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader};
use arrow_ipc::reader::FileReader;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::basic::Compression;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};

use crate::trace::TraceError;
use crate::trace::columns::deltas::Longest;
pub(crate) use crate::trace::columns::digest::Digest;
use crate::trace::columns::guard::guarded;
use crate::trace::columns::pages::{Buffers, Lent, Pages};
pub(crate) use crate::trace::columns::shards::{Shard, shards};
pub(crate) use crate::trace::columns::standing::Standing;

/// How a file of columns is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Parquet,
    Arrow,
}

/// Bytes of a Parquet file that are unpacked together, about, and the most rows. Few, because the
/// pages they lie in stay in memory meanwhile.
const BATCH_BYTES: u64 = 4 << 20;
const BATCH_ROWS: u64 = 1_024;

/// A file of which is known what it holds.
#[derive(Clone, Debug)]
pub(crate) struct Opened<'a> {
    path: &'a Path,
    file: Arc<File>,
    /// `None`: it is an Arrow file.
    parquet: Option<ArrowReaderMetadata>,
    schema: Arc<Schema>,
    /// How long its texts are that are written as differences.
    longest: Longest,
}

/// Columns of a file that are being read.
pub(crate) struct Table<'a> {
    path: &'a Path,
    batches: Batches,
    /// What a Parquet file's pages are read into.
    buffers: Option<Arc<Buffers>>,
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
    lent: Lent,
}

impl Batch {
    /// Where in the file a value of this batch lies; `None` when it does not lie there as it is.
    pub(crate) fn place_of(&self, value: &[u8]) -> Option<u64> {
        self.lent.place_of(value)
    }
}

impl Kind {
    /// Its name, for messages.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Parquet => "Parquet",
            Self::Arrow => "Arrow",
        }
    }

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

/// Rows of a file that can be read apart from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) rows: usize,
    /// Bytes of the column in them, unpacked.
    pub(crate) bytes: u64,
    /// Whether they are packed.
    pub(crate) is_packed: bool,
}

impl<'a> Opened<'a> {
    /// Opens a file and reads what it says of itself.
    pub(crate) fn new(path: &'a Path, kind: Kind) -> Result<Self, TraceError> {
        guarded(path, kind, || {
            let file = File::open(path).map_err(|error| TraceError::io("open", path, error))?;
            let parquet = match kind {
                Kind::Parquet => Some(metadata(path, &file)?),
                Kind::Arrow => None,
            };
            let schema = match &parquet {
                Some(parquet) => Arc::clone(parquet.schema()),
                None => arrow(path, &[], None)?.schema(),
            };
            let longest = Longest::default();
            Ok(Self { path, file: Arc::new(file), parquet, schema, longest })
        })
    }

    /// The file itself, to be read by place.
    pub(crate) fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// The names of all columns.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.schema.fields().iter().map(|field| field.name().as_str()).collect()
    }

    /// The groups of rows, with the size of one column; `None` when there are none that could be
    /// read apart.
    pub(crate) fn groups(&self, column: &str) -> Option<Vec<Group>> {
        let group = |group: &RowGroupMetaData| {
            let column = group.columns().iter().find(|own| own.column_path().string() == column);
            let bytes = column.map_or(0, ColumnChunkMetaData::uncompressed_size);
            let codec = column.map(ColumnChunkMetaData::compression);
            Some(Group {
                rows: usize::try_from(group.num_rows()).ok()?,
                bytes: u64::try_from(bytes).ok()?,
                is_packed: codec != Some(Compression::UNCOMPRESSED),
            })
        };
        let metadata = self.parquet.as_ref()?.metadata();
        metadata.row_groups().iter().map(group).collect()
    }

    /// Starts to read the columns of these names, as far as there are such, in all groups of rows
    /// or in some; an Arrow file is always read whole.
    pub(crate) fn table(
        &self,
        names: &[&str],
        groups: Option<Range<usize>>,
    ) -> Result<Table<'a>, TraceError> {
        match &self.parquet {
            Some(metadata) => {
                guarded(self.path, Kind::Parquet, || self.parquet_table(metadata, names, groups))
            }
            None => guarded(self.path, Kind::Arrow, || self.arrow_table(names)),
        }
    }

    fn parquet_table(
        &self,
        metadata: &ArrowReaderMetadata,
        names: &[&str],
        groups: Option<Range<usize>>,
    ) -> Result<Table<'a>, TraceError> {
        let unreadable = |error| unreadable(self.path, Kind::Parquet, &error);
        let pages = Pages::of(self.file(), Arc::clone(metadata.metadata()))
            .map_err(|error| TraceError::io("look at", self.path, error))?;
        let buffers = Some(pages.buffers());
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(pages, metadata.clone());
        let all = metadata.metadata().row_groups();
        let groups = groups.unwrap_or(0..all.len());
        let roots = roots(&self.schema, names);
        let mut batch_rows = batch_rows(&all[groups.clone()], &roots);
        for group in groups.clone() {
            let most = self.rows_together(metadata, group, &roots)?;
            batch_rows = batch_rows.min(most);
        }
        let mask = ProjectionMask::roots(builder.parquet_schema(), roots);
        let builder = builder.with_row_groups(groups.collect()).with_batch_size(batch_rows);
        let reader = builder.with_projection(mask).build();
        let reader = reader.map_err(unreadable)?;
        let schema = RecordBatchReader::schema(&reader);
        let places = names.iter().map(|name| schema.index_of(name).ok()).collect();
        let batches = Batches::Parquet(Box::new(reader));
        Ok(Table { path: self.path, batches, buffers, places })
    }

    /// How many rows of a group may be read together, by the texts that are written as differences.
    fn rows_together(
        &self,
        metadata: &ArrowReaderMetadata,
        group: usize,
        roots: &[usize],
    ) -> Result<usize, TraceError> {
        let file = metadata.metadata();
        let schema = file.row_group(group).schema_descr();
        let columns: Vec<usize> = (0..schema.num_columns())
            .filter(|&leaf| roots.contains(&schema.get_column_root_idx(leaf)))
            .collect();
        let pages = || Ok(Pages::of(self.file(), Arc::clone(file))?);
        let rows = self.longest.rows_together(file, group, &columns, pages);
        let rows = rows.map_err(|words| unreadable(self.path, Kind::Parquet, &words))?;
        Ok(usize::try_from(rows).unwrap_or(usize::MAX))
    }

    fn arrow_table(&self, names: &[&str]) -> Result<Table<'a>, TraceError> {
        let roots = roots(&self.schema, names);
        // With a projection the reader's own schema is the file's: batches have their own.
        let place = |name: &&str| {
            let root = self.schema.index_of(name).ok()?;
            roots.iter().position(|own| *own == root)
        };
        let places = names.iter().map(place).collect();
        let reader = arrow(self.path, names, Some(roots))?;
        let batches = Batches::Arrow(Box::new(reader));
        Ok(Table { path: self.path, batches, buffers: None, places })
    }
}

impl Table<'_> {
    /// The next rows; `None` behind the last.
    pub(crate) fn next(&mut self) -> Result<Option<Batch>, TraceError> {
        let path = self.path;
        if let Some(buffers) = &self.buffers {
            buffers.forget_claims();
        }
        let refused = |kind| move |error: ArrowError| unreadable(path, kind, &error);
        let batch: Option<RecordBatch> = match &mut self.batches {
            Batches::Parquet(reader) => guarded(path, Kind::Parquet, || {
                reader.next().transpose().map_err(refused(Kind::Parquet))
            }),
            Batches::Arrow(reader) => guarded(path, Kind::Arrow, || {
                reader.next().transpose().map_err(refused(Kind::Arrow))
            }),
        }?;
        let Some(batch) = batch else { return Ok(None) };
        let column = |place: &Option<usize>| place.map(|place| batch.column(place).clone());
        Ok(Some(Batch {
            rows: batch.num_rows(),
            columns: self.places.iter().map(column).collect(),
            lent: self.buffers.as_ref().map(|buffers| buffers.lent()).unwrap_or_default(),
        }))
    }
}

/// What a Parquet file says of itself; its texts are to be read as views.
fn metadata(path: &Path, file: &File) -> Result<ArrowReaderMetadata, TraceError> {
    let unreadable = |error| unreadable(path, Kind::Parquet, &error);
    // The types that Parquet itself names are fewer than those of the program that wrote the file.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let metadata = ArrowReaderMetadata::load(file, options).map_err(unreadable)?;
    let view = |field: &Arc<Field>| match field.data_type() {
        DataType::Utf8 => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8View)),
        DataType::Binary => Arc::new(field.as_ref().clone().with_data_type(DataType::BinaryView)),
        _ => Arc::clone(field),
    };
    let fields: Vec<Arc<Field>> = metadata.schema().fields().iter().map(view).collect();
    let options = ArrowReaderOptions::new().with_schema(Arc::new(Schema::new(fields)));
    ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options).map_err(unreadable)
}

/// A reader of an Arrow file whose lengths can be believed, as far as it will read them.
fn arrow(
    path: &Path,
    names: &[&str],
    projection: Option<Vec<usize>>,
) -> Result<FileReader<BufReader<File>>, TraceError> {
    let file = File::open(path).map_err(|error| TraceError::io("open", path, error))?;
    ipc::check_lengths(&file, names).map_err(|words| unreadable(path, Kind::Arrow, &words))?;
    let reader = FileReader::try_new_buffered(file, projection);
    reader.map_err(|error| unreadable(path, Kind::Arrow, &error))
}

/// How many rows of these groups are to be unpacked together.
fn batch_rows(groups: &[RowGroupMetaData], roots: &[usize]) -> usize {
    let (mut bytes, mut rows) = (0_u64, 0_u64);
    for group in groups {
        let schema = group.schema_descr();
        for (leaf, column) in group.columns().iter().enumerate() {
            if roots.contains(&schema.get_column_root_idx(leaf)) {
                let more = u64::try_from(column.uncompressed_size()).unwrap_or(0);
                bytes = bytes.saturating_add(more);
            }
        }
        rows = rows.saturating_add(u64::try_from(group.num_rows()).unwrap_or(0));
    }
    let of_row = (bytes / rows.max(1)).max(1);
    usize::try_from((BATCH_BYTES / of_row).clamp(1, BATCH_ROWS)).expect("few")
}

/// Places of the named columns among all columns of a file, rising.
fn roots(schema: &Schema, names: &[&str]) -> Vec<usize> {
    let mut roots: Vec<usize> =
        names.iter().filter_map(|name| schema.index_of(name).ok()).collect();
    roots.sort_unstable();
    roots
}

/// What a reader refused, in its words: it knows the page, and not the row.
fn unreadable(path: &Path, kind: Kind, error: &dyn std::fmt::Display) -> TraceError {
    let kind = kind.name();
    let words = error.to_string();
    let words = words.strip_prefix("Parquet error: ").unwrap_or(&words);
    TraceError::file(
        path,
        format!("cannot be read as {kind} ({words}); is it damaged, or not wholly there?"),
    )
}

const _: fn(&ArrowError) -> &dyn std::error::Error = |error| error;
