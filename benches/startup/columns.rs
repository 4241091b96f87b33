//! A made-up Baseten trace in Parquet, and the scan of it that a load is compared with.
//!
//! Prompts are words drawn from a list, a few line ends and quotes among them: text that a codec
//! packs to about half, and that JSON has to escape. The same rows every time. The scan is the
//! parquet crate's reader of record batches with its own defaults, told the columns that a load
//! reads, and nothing is done with a batch but to count its rows.

use std::fs::File;
use std::io::{Error, Result};
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

/// What is written, and so what is scanned: every column but the last is read by a load.
pub(crate) const COLUMNS: [&str; 7] = [
    "timestamp_start_unix_ms",
    "prompt",
    "input_tokens",
    "output_tokens",
    "provided_session_id",
    "total_hashes",
    "output_text",
];
/// Bytes of a prompt.
pub(crate) const PROMPT_BYTES: usize = 4_096;
/// Rows that are handed to the writer together.
const BATCH_ROWS: u64 = 1_024;
const WORDS: u64 = 4_096;
const IDS: u64 = 16;
/// Rows of one session.
const TURNS: u64 = 8;

/// How a file is laid out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) rows: u64,
    pub(crate) group_rows: usize,
    pub(crate) codec: Compression,
}

/// Writes a trace.
pub(crate) fn write(path: &Path, layout: Layout) -> Result<()> {
    let properties = WriterProperties::builder()
        .set_compression(layout.codec)
        .set_max_row_group_row_count(Some(layout.group_rows))
        .build();
    let words: Vec<String> = (0..WORDS).map(word).collect();
    let mut writer = None;
    for first in (0..layout.rows).step_by(usize::try_from(BATCH_ROWS).expect("small")) {
        let batch = batch(first..layout.rows.min(first + BATCH_ROWS), &words);
        if writer.is_none() {
            let properties = Some(properties.clone());
            let new = ArrowWriter::try_new(File::create(path)?, batch.schema(), properties);
            writer = Some(new.map_err(Error::other)?);
        }
        let writer = writer.as_mut().expect("made above");
        writer.write(&batch).map_err(Error::other)?;
    }
    let writer = writer.ok_or_else(|| Error::other("a trace has rows"))?;
    writer.close().map_err(Error::other)?;
    Ok(())
}

/// Reads the columns that a load reads; gives how many rows there were.
pub(crate) fn scan(path: &Path) -> Result<u64> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?);
    let builder = builder.map_err(Error::other)?;
    let read = &COLUMNS[..COLUMNS.len() - 1];
    let mask = ProjectionMask::columns(builder.parquet_schema(), read.iter().copied());
    let reader = builder.with_projection(mask).build().map_err(Error::other)?;
    let mut rows = 0;
    for batch in reader {
        rows += batch.map_err(Error::other)?.num_rows() as u64;
    }
    Ok(rows)
}

fn batch(rows: std::ops::Range<u64>, words: &[String]) -> RecordBatch {
    let [mut at, mut input, mut output] = [(); 3].map(|()| Int64Builder::new());
    let [mut prompts, mut sessions, mut answers] = [(); 3].map(|()| StringBuilder::new());
    let mut ids = ListBuilder::new(Int64Builder::new());
    let mut text = String::new();
    for row in rows {
        let draw = mixed(row);
        prompt(row, words, &mut text);
        let number = |value: u64| i64::try_from(value).expect("small");
        at.append_value(1_760_000_000_000 + number(row / 2));
        prompts.append_value(&text);
        input.append_value(number(PROMPT_BYTES as u64 / 4));
        output.append_value(number(1 + draw % 700));
        sessions.append_value(format!("session-{:08}", row / TURNS));
        let family = row / TURNS % 500;
        ids.append_value(
            (0..IDS).map(|id| Some(number(if id < 8 { family * 8 + id } else { draw >> 2 ^ id }))),
        );
        answers.append_value(&text[..256]);
    }
    let columns: [ArrayRef; 7] = [
        Arc::new(at.finish()),
        Arc::new(prompts.finish()),
        Arc::new(input.finish()),
        Arc::new(output.finish()),
        Arc::new(sessions.finish()),
        Arc::new(ids.finish()),
        Arc::new(answers.finish()),
    ];
    RecordBatch::try_from_iter(COLUMNS.into_iter().zip(columns)).expect("equal lengths")
}

/// A prompt of exactly [`PROMPT_BYTES`].
fn prompt(row: u64, words: &[String], text: &mut String) {
    text.clear();
    let mut draw = mixed(row);
    while text.len() < PROMPT_BYTES {
        draw = mixed(draw);
        let odd = draw >> 32 & 63;
        // One word in four comes from a short list, as in a language.
        let among = if draw >> 40 & 3 == 0 { 64 } else { WORDS };
        text.push_str(&words[usize::try_from(draw % among).expect("small")]);
        text.push(match odd {
            0 | 1 => '\n',
            2 => '"',
            _ => ' ',
        });
    }
    text.truncate(PROMPT_BYTES);
}

/// A word of two to ten letters, all of them ASCII.
fn word(number: u64) -> String {
    let mut draw = mixed(number);
    let letters = 2 + draw % 9;
    let letter = |_| {
        draw = mixed(draw);
        char::from(b"etaoinshrdlucmfw"[usize::try_from(draw >> 20 & 15).expect("small")])
    };
    (0..letters).map(letter).collect()
}

/// SplitMix64: digits that look drawn and are the same everywhere.
fn mixed(number: u64) -> u64 {
    let mut draw = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    draw = (draw ^ (draw >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    draw = (draw ^ (draw >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    draw ^ (draw >> 31)
}
