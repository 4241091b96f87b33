//! Prompts that stay in their file, against the same prompts as they were written.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, Int64Array, LargeStringArray, StringArray, StringViewArray,
};
use onbeat_shared::trace::Trace;
use onbeat_shared::trace::recorded::escape;
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::schema::types::ColumnPath;
use proptest::prelude::{Just, Strategy, any, prop, prop_assert, prop_assert_eq, proptest};
use proptest::sample::select;

use super::tests::{Columns, write};
use crate::trace::{TraceOptions, load, load_prompts};

/// How a file is laid out.
#[derive(Clone, Copy, Debug)]
struct Layout {
    version: WriterVersion,
    /// `None`: a dictionary, which is left when it is full.
    encoding: Option<Encoding>,
    codec: Compression,
    group_rows: usize,
    page_rows: usize,
    /// Which of the types of a text.
    kind: usize,
}

impl Layout {
    fn properties(self) -> WriterProperties {
        let builder = WriterProperties::builder()
            .set_writer_version(self.version)
            .set_compression(self.codec)
            .set_max_row_group_row_count(Some(self.group_rows))
            .set_data_page_row_count_limit(self.page_rows)
            .set_write_batch_size(self.page_rows)
            .set_dictionary_page_size_limit(200);
        match self.encoding {
            Some(encoding) => {
                let prompt = ColumnPath::from("prompt");
                builder.set_dictionary_enabled(false).set_column_encoding(prompt, encoding).build()
            }
            None => builder.build(),
        }
    }
}

fn layouts() -> impl Strategy<Value = Layout> {
    let encodings = [
        None,
        Some(Encoding::PLAIN),
        Some(Encoding::DELTA_LENGTH_BYTE_ARRAY),
        Some(Encoding::DELTA_BYTE_ARRAY),
    ];
    let codecs = vec![Compression::UNCOMPRESSED, Compression::UNCOMPRESSED, Compression::SNAPPY];
    (any::<bool>(), select(encodings.to_vec()), select(codecs), 1_usize..20, 1_usize..9, 0_usize..4)
        .prop_map(|(first, encoding, codec, group_rows, page_rows, kind)| Layout {
            version: if first { WriterVersion::PARQUET_1_0 } else { WriterVersion::PARQUET_2_0 },
            encoding,
            codec,
            group_rows,
            page_rows,
            kind,
        })
}

/// Prompts of all lengths, some of them alike, and nulls.
fn prompts() -> impl Strategy<Value = Vec<Option<String>>> {
    let own = prop::collection::vec(any::<char>(), 0..60).prop_map(String::from_iter);
    let text = proptest::prop_oneof![own, Just("the same \"one\" again\n".to_owned())];
    prop::collection::vec(prop::option::weighted(0.9, text), 1..50)
}

fn columns(prompts: &[Option<String>], kind: usize) -> Columns {
    let rows = i64::try_from(prompts.len()).expect("few");
    let texts = || prompts.iter().map(Option::as_deref);
    let prompt: ArrayRef = match kind {
        0 => Arc::new(StringArray::from_iter(texts())),
        1 => Arc::new(LargeStringArray::from_iter(texts())),
        2 => Arc::new(StringViewArray::from_iter(texts())),
        _ => Arc::new(BinaryArray::from_iter(texts())),
    };
    vec![
        ("timestamp_start_unix_ms", Arc::new(Int64Array::from_iter_values(0..rows))),
        ("prompt", prompt),
        ("input_tokens", Arc::new(Int64Array::from_iter_values(0..rows))),
        ("output_tokens", Arc::new(Int64Array::from_iter_values(0..rows))),
    ]
}

fn text(trace: &Trace, record: u32) -> Vec<u8> {
    let mut text = Vec::new();
    trace.recorded.append_text(record, &mut text);
    text
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
    #[test]
    fn prompts_that_stay_in_their_file_are_those_that_were_written(
        prompts in prompts(),
        layout in layouts(),
        memory in select(vec![0, u64::MAX]),
    ) {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        write(file.path(), &columns(&prompts, layout.kind), layout.properties());
        let options = TraceOptions { prompts_follow: true, ..TraceOptions::default() };
        let mut trace = load(file.path(), &options).expect("reads");
        let wanted = |record: u32| prompts[record as usize].is_some();
        load_prompts(file.path(), &mut trace, &wanted, memory).expect("reads");
        let texts = &trace.recorded.texts;
        let (mut longest, mut bytes) = (0, 0);
        for (record, prompt) in (0..).zip(&prompts) {
            let prompt = prompt.as_deref().unwrap_or_default();
            let mut expected = Vec::new();
            escape(prompt, &mut expected);
            prop_assert_eq!(text(&trace, record), &expected[..], "record {}", record);
            longest = longest.max(prompt.len());
            bytes += expected.len() as u64;
        }
        prop_assert_eq!(texts.bytes(), bytes);
        prop_assert_eq!(texts.fault(), None);
        let is_plain = layout.codec == Compression::UNCOMPRESSED
            && matches!(layout.encoding, None | Some(Encoding::PLAIN));
        // The reader copies texts of up to twelve bytes.
        if is_plain && longest > 12 {
            prop_assert!(texts.is_standing());
        }
        let is_first = layout.version == WriterVersion::PARQUET_1_0;
        if layout.codec != Compression::UNCOMPRESSED && is_first {
            prop_assert!(!texts.is_standing());
        }
    }
}

#[test]
fn a_prompt_that_was_written_over_is_not_sent() {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let prompts = ["a prompt of some length", "another prompt of that sort"];
    let columns = columns(&prompts.map(|prompt| Some(prompt.to_owned())), 0);
    let layout = WriterProperties::builder().set_dictionary_enabled(false).build();
    write(file.path(), &columns, layout);
    let mut trace = load(file.path(), &TraceOptions::default()).expect("reads");
    load_prompts(file.path(), &mut trace, &|_| true, u64::MAX).expect("reads");
    assert!(trace.recorded.texts.is_standing());
    assert_eq!(text(&trace, 0), prompts[0].as_bytes());
    let bytes = std::fs::read(file.path()).expect("readable");
    let place = bytes.windows(9).position(|window| window == b"another p").expect("it is there");
    let writing = OpenOptions::new().write(true).open(file.path()).expect("writable");
    writing.write_all_at(b"\xff", place as u64).expect("written");
    assert_eq!(text(&trace, 1), " ".repeat(prompts[1].len()).as_bytes());
    let fault = trace.recorded.texts.fault().expect("it is no text any more");
    assert!(fault.contains("has changed"), "{fault}");
}
