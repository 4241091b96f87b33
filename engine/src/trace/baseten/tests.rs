//! Baseten traces as their callers see them: files of every type in, records or a refusal out.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{FixedSizeListBuilder, Int64Builder, LargeListBuilder, ListBuilder};
use arrow_array::types::{Int32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray,
    Float64Array, Int8Array, Int32Array, Int64Array, LargeStringArray, ListArray, RecordBatch,
    StringArray, StringViewArray, TimestampMicrosecondArray, TimestampMillisecondArray,
    TimestampNanosecondArray, UInt32Array, UInt64Array,
};
use onbeat_shared::log::header::TraceSource;
use onbeat_shared::trace::Trace;
use onbeat_shared::units::SessionIndex;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::{WriterProperties, WriterVersion};

use crate::plan::{PlanOptions, build};
use crate::trace::{Digesting, SessionKey, TraceOptions, load, load_prompts, recorded_answers};

pub(super) type Columns = Vec<(&'static str, ArrayRef)>;

const PROMPTS: [&str; 4] = ["Say \"hi\"\n", "", "caf\u{e9} \u{1f600}\u{1}", "d"];

/// Four rows with every column, in their plain types.
pub(super) fn plain() -> Columns {
    let hashes: ArrayRef = Arc::new(ListArray::from_iter_primitive::<UInt64Type, _, _>([
        Some(vec![Some(1), Some(u64::MAX)]),
        None,
        Some(vec![]),
        Some(vec![Some(1)]),
    ]));
    vec![
        ("timestamp_start_unix_ms", Arc::new(Int64Array::from(vec![1_900, 1_000, 1_400, 1_400]))),
        ("prompt", Arc::new(StringArray::from(PROMPTS.to_vec()))),
        ("input_tokens", Arc::new(Int64Array::from(vec![130, 0, 7, 1]))),
        ("output_tokens", Arc::new(Int64Array::from(vec![5, 40, 0, 2]))),
        (
            "provided_session_id",
            Arc::new(StringArray::from(vec![Some("a"), None, Some("a"), Some("")])),
        ),
        ("poor_man_session_id", Arc::new(Int64Array::from(vec![Some(1), Some(2), None, Some(3)]))),
        ("total_hashes", hashes),
        ("block_size", Arc::new(Int64Array::from(vec![Some(64), None, Some(16), Some(64)]))),
        ("request_canceled", Arc::new(BooleanArray::from(vec![false, false, true, false]))),
        ("duration_e2e_ms", Arc::new(Float64Array::from(vec![1.5, f64::NAN, 0.0, 100.0]))),
        ("output_text", Arc::new(StringArray::from(vec!["w", "x", "y", "z"]))),
    ]
}

pub(super) fn with(name: &'static str, column: ArrayRef) -> Columns {
    let mut columns = plain();
    columns.retain(|(known, _)| *known != name);
    columns.push((name, column));
    columns
}

pub(super) fn properties() -> WriterProperties {
    WriterProperties::builder().set_compression(Compression::SNAPPY).build()
}

pub(super) fn write(path: &Path, columns: &Columns, properties: WriterProperties) {
    let batch = RecordBatch::try_from_iter(columns.iter().cloned()).expect("equal lengths");
    let file = File::create(path).expect("a file");
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).expect("types");
    writer.write(&batch).expect("written");
    writer.close().expect("closed");
}

fn loaded_with(columns: &Columns, options: &TraceOptions) -> Result<Trace, String> {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    write(file.path(), columns, properties());
    let mut trace = load(file.path(), options).map_err(|error| error.to_string())?;
    load_prompts(file.path(), &mut trace, &|_| true, u64::MAX)
        .map_err(|error| error.to_string())?;
    Ok(trace)
}

fn loaded(columns: &Columns) -> Result<Trace, String> {
    loaded_with(columns, &TraceOptions::default())
}

/// What a replay depends on: time, lengths, session and turn, ids and prompt.
type Essence = (i64, u32, Option<u32>, String, u32, Vec<u64>, String);

/// What a record says of its prompt, wherever that lies.
fn text_of(trace: &Trace, record: u32) -> String {
    let mut text = Vec::new();
    trace.recorded.append_text(record, &mut text);
    assert_eq!(text.len(), trace.recorded.text_len(record));
    String::from_utf8(text).expect("UTF-8")
}

/// What a replay depends on of each row, for comparing types.
fn essence(trace: &Trace) -> Vec<Essence> {
    let row = |(place, record): (u32, &onbeat_shared::trace::record::Record)| {
        (
            record.at.0,
            record.input_tokens,
            record.output_tokens,
            trace.session_name(record.session),
            record.turn,
            trace.blocks_of(record).iter().collect(),
            text_of(trace, place),
        )
    };
    (0..).zip(&trace.records).map(row).collect()
}

#[test]
fn every_column_is_kept() {
    let trace = loaded(&plain()).expect("reads");
    let found = essence(&trace);
    let escaped = ["Say \\\"hi\\\"\\n", "", "caf\u{e9} \u{1f600}\\u0001", "d"];
    let row = |at: usize, ms: i64, input, output, session: &str, turn, ids: &[u64]| {
        let text = escaped[at].to_owned();
        let session = session.to_owned();
        assert_eq!(
            found[at],
            (ms * 1_000_000, input, Some(output), session, turn, ids.to_vec(), text)
        );
    };
    row(0, 1_900, 130, 5, "a", 1, &[1, u64::MAX]);
    row(1, 1_000, 0, 40, "session_000000", 0, &[]);
    row(2, 1_400, 7, 1, "a", 0, &[]);
    row(3, 1_400, 1, 2, "", 0, &[1]);
    let recorded = &trace.recorded;
    assert_eq!(recorded.cancelled, [false, false, true, false]);
    assert_eq!(recorded.duration_ns, [Some(1_500_000), None, Some(0), Some(100_000_000)]);
    assert_eq!(recorded.block_tokens, [Some(64), None, Some(16), Some(64)]);
    assert!(recorded.first_token_ns.is_empty() && !recorded.signed_ids && recorded.prompts);
    assert_eq!(trace.block_tokens, 64);
    let words: Vec<String> = trace.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(words.len(), 2, "{words:?}");
    assert!(words[0].starts_with("row 3: output_tokens is 0"), "{words:?}");
    assert_eq!(trace.records[2].row, 3);
}

#[test]
fn times_of_every_type_are_the_same_instants() {
    let ms = [1_900_i64, 1_000, 1_400, 1_400];
    let expected = essence(&loaded(&plain()).expect("reads"));
    let times: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from_iter_values(ms.map(|ms| i32::try_from(ms).expect("small")))),
        Arc::new(UInt64Array::from_iter_values(ms.map(i64::cast_unsigned))),
        Arc::new(Float64Array::from_iter_values(ms.map(|ms| ms as f64))),
        Arc::new(StringArray::from_iter_values(ms.map(|ms| format!("{ms}.0")))),
        Arc::new(TimestampMillisecondArray::from(ms.to_vec()).with_timezone("America/New_York")),
        Arc::new(TimestampMicrosecondArray::from_iter_values(ms.map(|ms| ms * 1_000))),
        Arc::new(TimestampNanosecondArray::from_iter_values(ms.map(|ms| ms * 1_000_000))),
        Arc::new(
            Decimal128Array::from_iter_values(ms.map(|ms| i128::from(ms) * 100))
                .with_precision_and_scale(20, 2)
                .expect("fits"),
        ),
    ];
    for column in times {
        let kind = column.data_type().to_string();
        let trace = loaded(&with("timestamp_start_unix_ms", column)).expect("reads");
        assert_eq!(essence(&trace), expected, "{kind}");
    }
    let fractions = Arc::new(Float64Array::from(vec![0.25, -1.5, 1_759_276_800_000.5, 1e-6]));
    let trace = loaded(&with("timestamp_start_unix_ms", fractions)).expect("reads");
    let nanos: Vec<i64> = trace.records.iter().map(|record| record.at.0).collect();
    assert_eq!(nanos, [250_000, -1_500_000, 1_759_276_800_000_500_000, 1]);
}

#[test]
fn texts_and_lengths_of_every_type_are_the_same() {
    let expected = essence(&loaded(&plain()).expect("reads"));
    let prompts: Vec<ArrayRef> = vec![
        Arc::new(LargeStringArray::from(PROMPTS.to_vec())),
        Arc::new(StringViewArray::from(PROMPTS.to_vec())),
        Arc::new(BinaryArray::from_iter_values(PROMPTS)),
        Arc::new(PROMPTS.into_iter().collect::<DictionaryArray<Int32Type>>()),
    ];
    for column in prompts {
        let kind = column.data_type().to_string();
        assert_eq!(essence(&loaded(&with("prompt", column)).expect("reads")), expected, "{kind}");
    }
    let lengths: Vec<ArrayRef> = vec![
        Arc::new(Int8Array::from(vec![5, 40, 0, 2])),
        Arc::new(UInt32Array::from(vec![5, 40, 0, 2])),
        Arc::new(Float64Array::from(vec![5.0, 40.0, 0.0, 2.0])),
    ];
    for column in lengths {
        let kind = column.data_type().to_string();
        let trace = loaded(&with("output_tokens", column)).expect("reads");
        assert_eq!(essence(&trace), expected, "{kind}");
    }
}

#[test]
fn ids_come_in_lists_of_three_kinds_and_numbers_of_three() {
    let rows: [&[i64]; 4] = [&[1, 2], &[3, 4], &[5, 6], &[7, -8]];
    let mut list = ListBuilder::new(Int64Builder::new());
    let mut large = LargeListBuilder::new(Int64Builder::new());
    let mut fixed = FixedSizeListBuilder::new(Int64Builder::new(), 2);
    for row in rows {
        list.append_value(row.iter().copied().map(Some));
        large.append_value(row.iter().copied().map(Some));
        fixed.values().append_slice(row);
        fixed.append(true);
    }
    let ids = |column: ArrayRef| {
        let trace = loaded(&with("total_hashes", column)).expect("reads");
        let ids: Vec<Vec<u64>> =
            trace.records.iter().map(|record| trace.blocks_of(record).iter().collect()).collect();
        (ids, trace.recorded.signed_ids)
    };
    let expected: Vec<Vec<u64>> =
        rows.map(|row| row.iter().map(|id| id.cast_unsigned()).collect()).to_vec();
    let columns: [ArrayRef; 3] =
        [Arc::new(list.finish()), Arc::new(large.finish()), Arc::new(fixed.finish())];
    for column in columns {
        let kind = column.data_type().to_string();
        assert_eq!(ids(column), (expected.clone(), true), "{kind}");
    }
    let mut texts = ListBuilder::new(arrow_array::builder::StringBuilder::new());
    for row in ["00ff", "0xFFFFFFFFFFFFFFFF", "1", "0"] {
        texts.append_value([Some(row)]);
    }
    let expected = vec![vec![255], vec![u64::MAX], vec![1], vec![0]];
    assert_eq!(ids(Arc::new(texts.finish())), (expected, false));
}

#[test]
fn the_session_column_can_be_chosen() {
    let named = |session_key| {
        let options = TraceOptions { session_key, ..TraceOptions::default() };
        let trace = loaded_with(&plain(), &options).expect("reads");
        let names = trace.records.iter().map(|record| trace.session_name(record.session));
        names.collect::<Vec<_>>()
    };
    assert_eq!(named(SessionKey::Provided), ["a", "session_000000", "a", ""]);
    assert_eq!(named(SessionKey::PoorMan), ["1", "2", "session_000000", "3"]);
    let fresh: Vec<String> = (0..4).map(|row| format!("session_00000{row}")).collect();
    assert_eq!(named(SessionKey::None), fresh);
    // Numbers and the texts of their digits name the same sessions.
    let numbers = with("provided_session_id", Arc::new(Int64Array::from(vec![7, 8, 7, -9])));
    let trace = loaded(&numbers).expect("reads");
    assert_eq!(trace.session_name(SessionIndex(0)), "7");
    assert_eq!(trace.sessions.len(), 3);
}

#[test]
fn bad_rows_and_columns_are_refused_with_their_place() {
    let mut missing = plain();
    missing.retain(|(name, _)| *name != "output_tokens" && *name != "prompt");
    missing.push(("Prompt", Arc::new(StringArray::from(PROMPTS.to_vec()))));
    let cases: Vec<(Columns, &str)> = vec![
        (missing, "lacks prompt, output_tokens (found Prompt: names are in lower case)"),
        (
            with("prompt", Arc::new(StringArray::from(vec![Some(""), Some(""), None, None]))),
            "row 3: field \"prompt\": found null; right would be a text",
        ),
        (
            with("prompt", Arc::new(BinaryArray::from_vec(vec![b"a", b"", b"", b"a\xff"]))),
            "row 4: field \"prompt\": found bytes that are not UTF-8 at byte 2",
        ),
        (
            with("output_tokens", Arc::new(Int64Array::from(vec![1, 2, -1, 4]))),
            "row 3: field \"output_tokens\": found -1; right would be a whole number",
        ),
        (
            with("input_tokens", Arc::new(Float64Array::from(vec![1.0, 2.5, 1.0, 4.0]))),
            "row 2: field \"input_tokens\": found 2.5",
        ),
        (
            with("timestamp_start_unix_ms", Arc::new(Float64Array::from(vec![f64::INFINITY; 4]))),
            "row 1: field \"timestamp_start_unix_ms\": found inf",
        ),
        (
            with("timestamp_start_unix_ms", Arc::new(StringArray::from(vec!["2025-11-02"; 4]))),
            "row 1: field \"timestamp_start_unix_ms\": found the text \"2025-11-02\"",
        ),
        (
            with("block_size", Arc::new(Int64Array::from(vec![1, 0, 1, 1]))),
            "row 2: field \"block_size\": found 0",
        ),
        (
            with("input_tokens", Arc::new(BooleanArray::from(vec![true; 4]))),
            "column \"input_tokens\" has the type Boolean; right would be numbers: whole, float",
        ),
        (
            with("timestamp_start_unix_ms", Arc::new(Date32Array::from(vec![20_000; 4]))),
            "column \"timestamp_start_unix_ms\" has the type Date32; right would be a Timestamp, or",
        ),
        (
            with("total_hashes", Arc::new(Int64Array::from(vec![1; 4]))),
            "column \"total_hashes\" has the type Int64; right would be lists of 64-bit",
        ),
    ];
    for (columns, words) in cases {
        let found = loaded(&columns).expect_err(words);
        assert!(found.contains(words), "{found}\nlacks: {words}");
    }
}

#[test]
fn tokens_are_whole_to_the_last_digit() {
    let real = |last| -> ArrayRef { Arc::new(Float64Array::from(vec![130.0, 0.0, 7.0, last])) };
    let tenths = |last: i128| -> ArrayRef {
        let tenths = Decimal128Array::from(vec![1_300_000, 0, 70_000, last]);
        Arc::new(tenths.with_precision_and_scale(20, 4).expect("room"))
    };
    let text = |last| -> ArrayRef { Arc::new(StringArray::from(vec!["130", "0", "7.0", last])) };
    for good in [real(1.0), tenths(10_000), text("1e0")] {
        let trace = loaded(&with("input_tokens", good)).expect("whole");
        assert_eq!(essence(&trace), essence(&loaded(&plain()).expect("reads")));
    }
    for bad in [real(1.0001), real(1e-30), tenths(10_001), text("1.0001"), text("1e-30")] {
        let words = loaded(&with("input_tokens", bad)).expect_err("it is not");
        assert!(words.contains("input_tokens"), "{words}");
    }
}

#[test]
fn every_codec_and_page_layout_reads_alike() {
    let expected = essence(&loaded(&plain()).expect("reads"));
    let builder = WriterProperties::builder;
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(parquet::basic::GzipLevel::default()),
        Compression::BROTLI(parquet::basic::BrotliLevel::default()),
        Compression::LZ4_RAW,
        Compression::ZSTD(parquet::basic::ZstdLevel::default()),
    ];
    let mut layouts: Vec<WriterProperties> =
        codecs.map(|codec| builder().set_compression(codec).build()).to_vec();
    layouts.push(builder().set_writer_version(WriterVersion::PARQUET_2_0).build());
    layouts.push(builder().set_max_row_group_row_count(Some(1)).build());
    layouts.push(builder().set_dictionary_enabled(false).build());
    for properties in layouts {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        write(file.path(), &plain(), properties);
        let mut trace = load(file.path(), &TraceOptions::default()).expect("reads");
        load_prompts(file.path(), &mut trace, &|_| true, u64::MAX).expect("reads");
        assert_eq!(essence(&trace), expected);
    }
}

#[test]
fn arrow_files_and_folders_of_both_read_alike() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut reversed = plain();
    reversed.reverse();
    let batch = RecordBatch::try_from_iter(reversed.iter().cloned()).expect("equal lengths");
    let path = folder.path().join("b.arrow");
    let file = File::create(&path).expect("a file");
    let mut writer =
        arrow_ipc::writer::FileWriter::try_new(file, &batch.schema()).expect("a schema");
    writer.write(&batch.slice(0, 3)).expect("written");
    writer.write(&batch.slice(3, 1)).expect("written");
    writer.finish().expect("closed");
    let expected = essence(&loaded(&plain()).expect("reads"));
    let mut trace = load(&path, &TraceOptions::default()).expect("reads");
    load_prompts(&path, &mut trace, &|record| record != 0, u64::MAX).expect("reads");
    assert!(text_of(&trace, 0).is_empty(), "not wanted");
    load_prompts(&path, &mut trace, &|_| true, u64::MAX).expect("reads");
    assert_eq!(essence(&trace), expected);

    write(&folder.path().join("a.parquet"), &plain(), properties());
    let mut both = load(folder.path(), &TraceOptions::default()).expect("reads");
    load_prompts(folder.path(), &mut both, &|_| true, u64::MAX).expect("reads");
    assert_eq!(both.records.len(), 8);
    assert_eq!(both.records[5].row, 2);
    assert_eq!((both.recorded.file_of(3), both.recorded.file_of(4)), (0, 1));
    assert_eq!(both.recorded.files[1].name, "b.arrow");
    // Six rows repeat a value in either column, but three values of the second do.
    assert_eq!(both.sessions.len(), 5, "1, 2, 3 and two rows without a value");
    assert_eq!(essence(&both)[4].6, essence(&both)[0].6);
}

#[test]
fn prompts_of_many_row_groups_are_read_by_several_threads_and_land_in_their_rows() {
    // Each group holds more than a piece's worth of text, so that there are several pieces.
    let rows = 6_i64;
    let long = |row: i64| format!("{row} ").repeat(5 << 20);
    let columns: Columns = vec![
        ("timestamp_start_unix_ms", Arc::new(Int64Array::from_iter_values(0..rows))),
        ("prompt", Arc::new(StringArray::from_iter_values((0..rows).map(long)))),
        ("input_tokens", Arc::new(Int64Array::from_iter_values(0..rows))),
        ("output_tokens", Arc::new(Int64Array::from_iter_values(0..rows))),
    ];
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let layout = WriterProperties::builder()
        .set_max_row_group_row_count(Some(2))
        .set_dictionary_enabled(false)
        .set_compression(Compression::ZSTD(parquet::basic::ZstdLevel::default()))
        .build();
    write(file.path(), &columns, layout);
    let options = TraceOptions { prompts_follow: true, ..TraceOptions::default() };
    let digesting = Digesting::start(file.path(), &options).expect("starts");
    let mut trace = load(file.path(), &options).expect("reads");
    assert!(trace.source.sha256.is_empty(), "it is computed beside");
    let digest = digesting.wait(&mut || true).expect("reads");
    let whole = load(file.path(), &TraceOptions::default()).expect("reads");
    assert_eq!(digest, Some(whole.source.sha256));
    for memory in [u64::MAX, 1 << 20] {
        load_prompts(file.path(), &mut trace, &|record| record != 3, memory).expect("reads");
        assert_eq!(trace.recorded.texts.is_elsewhere(), memory < u64::MAX);
        for record in 0..6 {
            let mut text = Vec::new();
            trace.recorded.append_text(record, &mut text);
            let expected = if record == 3 { String::new() } else { long(record.into()) };
            assert!(text == expected.as_bytes(), "record {record}, {memory} bytes of memory");
        }
    }
}

#[test]
fn texts_that_are_longer_than_the_files_let_expect_go_to_a_file_in_time() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let long = "\"quoted\" ".repeat(100_000);
    let columns: Columns = vec![
        ("timestamp_start_unix_ms", Arc::new(Int64Array::from_iter_values(0..8))),
        ("prompt", Arc::new(StringArray::from_iter_values((0..8).map(|_| &long)))),
        ("input_tokens", Arc::new(Int64Array::from_iter_values(0..8))),
        ("output_tokens", Arc::new(Int64Array::from_iter_values(0..8))),
    ];
    for name in ["a.parquet", "b.parquet"] {
        // Each has the text once, in a dictionary.
        write(&folder.path().join(name), &columns, properties());
    }
    let mut trace = load(folder.path(), &TraceOptions::default()).expect("reads");
    load_prompts(folder.path(), &mut trace, &|_| true, 10 << 20).expect("reads");
    let texts = &trace.recorded.texts;
    assert!(texts.is_elsewhere() && texts.bytes() > 16 << 20, "{}", texts.bytes());
    let expected = long.replace('"', "\\\"");
    for record in 0..16 {
        let mut text = Vec::new();
        trace.recorded.append_text(record, &mut text);
        assert!(text == expected.as_bytes(), "record {record}");
    }
}

#[test]
fn a_late_prompt_that_is_no_text_is_refused_with_its_row_by_every_way_of_reading() {
    let long = "x".repeat(9 << 20).into_bytes();
    let mut prompts = vec![long; 4];
    prompts[3][7] = 0xff;
    let columns: Columns = vec![
        ("timestamp_start_unix_ms", Arc::new(Int64Array::from_iter_values(0..4))),
        ("prompt", Arc::new(BinaryArray::from_iter_values(prompts))),
        ("input_tokens", Arc::new(Int64Array::from_iter_values(0..4))),
        ("output_tokens", Arc::new(Int64Array::from_iter_values(0..4))),
    ];
    for group_rows in [1, 2, 4] {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let layout = WriterProperties::builder().set_dictionary_enabled(false);
        let layout = layout.set_max_row_group_row_count(Some(group_rows)).build();
        write(file.path(), &columns, layout);
        let options = TraceOptions { prompts_follow: true, ..TraceOptions::default() };
        let mut trace = load(file.path(), &options).expect("prompts are not looked at");
        for memory in [u64::MAX, 1] {
            let refused = load_prompts(file.path(), &mut trace, &|_| true, memory);
            let words = refused.expect_err("no text").to_string();
            let expected = "row 4: field \"prompt\": found bytes that are not UTF-8 at byte 8";
            assert!(words.contains(expected), "{words}");
            load_prompts(file.path(), &mut trace, &|record| record < 3, memory).expect("reads");
        }
    }
}

#[test]
fn damaged_files_are_told_apart_from_empty_ones() {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let refused = || load(file.path(), &TraceOptions::default()).expect_err("bad").to_string();
    write(file.path(), &plain(), properties());
    let bytes = std::fs::read(file.path()).expect("read back");
    std::fs::write(file.path(), &bytes[..bytes.len() / 2]).expect("cut");
    assert!(refused().contains("is it damaged, or not wholly there?"), "{}", refused());
    let empty: Columns =
        plain().into_iter().map(|(name, column)| (name, column.slice(0, 0))).collect();
    write(file.path(), &empty, properties());
    assert!(refused().contains("has no rows"), "{}", refused());
}

#[test]
fn what_the_answers_were_reaches_the_plan_and_their_texts_are_read_when_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.parquet");
    let cached = Arc::new(Float64Array::from(vec![Some(64.0), None, Some(-1.0), Some(0.0)]));
    write(&path, &with("cached_tokens_reference", cached), properties());
    let trace = load(&path, &TraceOptions::default()).expect("reads");
    let plan = build(&trace, &PlanOptions::default()).expect("a plan");
    let told: Vec<_> = (plan.recorded.iter())
        .map(|row| (row.request.0, row.cached_tokens, row.duration_ns, row.cancelled))
        .collect();
    // In send order: rows 2, 3, 4 and 1 of the file.
    let us = |us: i64| Some(us * 1_000);
    assert_eq!(
        told,
        [
            (0, None, None, Some(false)),
            (1, None, us(0), Some(true)),
            (2, Some(0), us(100_000), Some(false)),
            (3, Some(64), us(1_500), Some(false)),
        ]
    );
    let mut source = TraceSource {
        sha256: trace.source.sha256.clone(),
        format: "baseten_trace".to_owned(),
        ..TraceSource::default()
    };
    let texts = recorded_answers(&path, &source, &plan.rows).expect("they are there");
    let texts: Vec<_> = texts.iter().map(|text| text.as_deref().expect("a text")).collect();
    assert_eq!(texts, ["x", "y", "z", "w"]);
    source.sha256 = "0".repeat(64);
    let error = recorded_answers(&path, &source, &plan.rows).expect_err("another trace");
    assert!(error.to_string().contains("is not the trace that was replayed"), "{error}");
    source.format = "mooncake_trace".to_owned();
    let error = recorded_answers(&path, &source, &plan.rows).expect_err("another format");
    assert!(error.to_string().contains("records no answers"), "{error}");
    // Rows that say nothing of their answers have no row in the log.
    let mut silent = plain();
    silent.retain(|(name, _)| !["request_canceled", "duration_e2e_ms"].contains(name));
    let plan = build(&loaded(&silent).expect("reads"), &PlanOptions::default()).expect("a plan");
    assert_eq!(plan.recorded, []);
}
