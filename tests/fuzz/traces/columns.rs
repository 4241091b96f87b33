//! Parquet and Arrow files under fuzzing: a few rows in every layout, damaged mostly in what the
//! file says of itself.
//!
//! Their readers belong to others and were not made for hostile files: what counts is that a panic
//! in them is a refusal, and that no file makes them take more than the cap of memory.

use std::io::Cursor;
use std::sync::Arc;

use arrow_array::types::UInt64Type;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, ListArray, RecordBatch, StringArray,
};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use onbeat::trace::TraceOptions;
use onbeat_shared::dice::Dice;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion,
};
use parquet::schema::types::ColumnPath;

use super::place::{Place, fair, read};
use crate::fuzz::{Subject, memory, mutation};

/// Traces of columns.
pub(super) struct Columns {
    place: Place,
    sound: Vec<Vec<u8>>,
}

/// Bytes at a file's end that say what is in it, about.
const ENDING: usize = 2_500;

impl Columns {
    pub(super) fn new() -> Self {
        let packings = [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)];
        let mut sound = packings.map(arrow).to_vec();
        for codec in [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::LZ4_RAW] {
            for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
                for dictionary in [false, true] {
                    sound.push(parquet(codec, version, dictionary));
                }
            }
        }
        sound.extend([Encoding::DELTA_BYTE_ARRAY, Encoding::DELTA_LENGTH_BYTE_ARRAY].map(delta));
        Self { place: Place::new(), sound }
    }
}

impl Subject for Columns {
    fn generate(&mut self, dice: &mut Dice, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.sound[dice.place(self.sound.len())]);
    }

    fn mutate(&mut self, dice: &mut Dice, input: &mut Vec<u8>) {
        if input.is_empty() || dice.below(4) == 0 {
            return mutation::damage(dice, input);
        }
        for _ in 0..[1, 1, 2, 4][dice.place(4)] {
            let back = match dice.below(3) {
                0 => dice.place(input.len()),
                _ => dice.place(ENDING.min(input.len())),
            };
            let place = input.len() - 1 - back;
            input[place] = match dice.below(4) {
                0 => [0, 255, 127, 128][dice.place(4)],
                1 => dice.roll().to_le_bytes()[0],
                _ => input[place] ^ (1 << dice.below(8)),
            };
        }
    }

    fn judge(&mut self, input: &[u8]) -> Result<(), String> {
        let path = self.place.write("t.parquet", input);
        // As a run reads it, mostly: without the thread of its own that the file's digest takes.
        let prompts_follow = mutation::dice_of(input).below(16) > 0;
        let options = TraceOptions { prompts_follow, ..TraceOptions::default() };
        memory::within(|| fair(&path, input, &read(&path, &options)))
    }
}

fn rows() -> RecordBatch {
    let ids = ListArray::from_iter_primitive::<UInt64Type, _, _>([
        Some(vec![Some(1), Some(2)]),
        None,
        Some(vec![]),
        Some(vec![Some(1)]),
    ]);
    let sessions = StringArray::from(vec![Some("a"), None, Some("a"), Some("")]);
    let prompts =
        StringArray::from(vec!["Say \"hi\"\n", "", "caf\u{e9}", "a longer prompt, as is"]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("timestamp_start_unix_ms", Arc::new(Int64Array::from(vec![1_900, 1_000, 1_400, 1_400]))),
        ("prompt", Arc::new(prompts)),
        ("input_tokens", Arc::new(Int64Array::from(vec![130, 0, 7, 1]))),
        ("output_tokens", Arc::new(Int64Array::from(vec![5, 40, 0, 2]))),
        ("provided_session_id", Arc::new(sessions)),
        ("total_hashes", Arc::new(ids)),
        ("block_size", Arc::new(Int64Array::from(vec![Some(64), None, Some(16), Some(64)]))),
        ("request_canceled", Arc::new(BooleanArray::from(vec![false, false, true, false]))),
        ("duration_e2e_ms", Arc::new(Float64Array::from(vec![1.5, f64::NAN, 0.0, 100.0]))),
    ];
    RecordBatch::try_from_iter(columns).expect("equal lengths")
}

fn parquet(codec: Compression, version: WriterVersion, dictionary: bool) -> Vec<u8> {
    written(properties(codec).set_writer_version(version).set_dictionary_enabled(dictionary))
}

/// A file of which the texts are written as differences.
fn delta(encoding: Encoding) -> Vec<u8> {
    let properties = properties(Compression::UNCOMPRESSED).set_dictionary_enabled(false);
    let texts = ["prompt", "provided_session_id"].map(ColumnPath::from);
    let own =
        texts.into_iter().fold(properties, |own, text| own.set_column_encoding(text, encoding));
    written(own)
}

/// Nothing in a file but what is read: damage elsewhere finds nothing.
fn properties(codec: Compression) -> WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_compression(codec)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_created_by("x".to_owned())
        .set_max_row_group_row_count(Some(3))
}

fn written(properties: WriterPropertiesBuilder) -> Vec<u8> {
    let (rows, mut bytes) = (rows(), Vec::new());
    // The types that Arrow has for the columns would be most of the file, and nobody reads them.
    let options = ArrowWriterOptions::new()
        .with_properties(properties.build())
        .with_skip_arrow_metadata(true);
    let mut writer =
        ArrowWriter::try_new_with_options(&mut bytes, rows.schema(), options).expect("known types");
    writer.write(&rows).expect("memory takes it");
    writer.close().expect("memory takes it");
    bytes
}

fn arrow(packing: Option<CompressionType>) -> Vec<u8> {
    let rows = rows();
    let options = IpcWriteOptions::default().try_with_compression(packing).expect("a known one");
    let file = Cursor::new(Vec::new());
    let writer = FileWriter::try_new_with_options(file, &rows.schema(), options);
    let mut writer = writer.expect("known types");
    writer.write(&rows).expect("memory takes it");
    writer.into_inner().expect("memory takes it").into_inner()
}
