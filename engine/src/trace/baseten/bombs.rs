//! Files of columns that claim to unpack to more than there is room for: refused by file and
//! column, before anybody makes room.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, RecordBatch, StringArray, StringViewArray};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use crate::limits::TRACE_UNPACK_BYTES_FREE;
use crate::trace::baseten::tests::{Columns, with, write};
use crate::trace::{TraceOptions, load, load_prompts};

/// A prompt that packs well.
const LONG: usize = 2 << 20;

fn said(path: &Path) -> Option<String> {
    let read = load(path, &TraceOptions::default())
        .and_then(|mut trace| load_prompts(path, &mut trace, &|_| true, u64::MAX));
    read.err().map(|error| error.to_string())
}

fn write_arrow(path: &Path, columns: &Columns, compression: CompressionType) {
    let batch = RecordBatch::try_from_iter(columns.iter().cloned()).expect("equal lengths");
    let options = IpcWriteOptions::default().try_with_compression(Some(compression));
    let file = fs::File::create(path).expect("a file");
    let writer = FileWriter::try_new_with_options(file, &batch.schema(), options.expect("known"));
    let mut writer = writer.expect("a schema");
    writer.write(&batch).expect("written");
    writer.finish().expect("closed");
}

/// Lets the buffer of the long prompt claim another length.
fn let_claim(path: &Path, more: i64) {
    let mut bytes = fs::read(path).expect("written before");
    let claim = i64::try_from(LONG).expect("small").to_le_bytes();
    let starts = |at: &usize| {
        bytes[*at..].strip_prefix(&claim).is_some_and(|packed| {
            packed.starts_with(b"\x04\x22\x4d\x18") || packed.starts_with(b"\x28\xb5\x2f\xfd")
        })
    };
    let places: Vec<usize> = (0..bytes.len()).filter(starts).collect();
    assert_eq!(places.len(), 1, "one buffer is that long");
    bytes[places[0]..places[0] + 8].copy_from_slice(&more.to_le_bytes());
    fs::write(path, bytes).expect("room");
}

#[test]
fn an_arrow_buffer_that_claims_all_memory_is_refused_by_its_column() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("t.arrow");
    let long = "a".repeat(LONG);
    let texts = [long.as_str(), "", "", ""];
    let views: ArrayRef = Arc::new(StringViewArray::from(texts.to_vec()));
    let plain: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
    for (kind, column) in [("utf8", plain), ("views", views)] {
        for compression in [CompressionType::LZ4_FRAME, CompressionType::ZSTD] {
            write_arrow(&path, &with("prompt", Arc::clone(&column)), compression);
            assert_eq!(said(&path), None, "{kind}");
            for more in [1 << 40, i64::MAX] {
                write_arrow(&path, &with("prompt", Arc::clone(&column)), compression);
                let_claim(&path, more);
                let words = said(&path).expect("a claim beyond all measure");
                let named = words.contains("t.arrow") && words.contains("column prompt: ");
                assert!(named && words.contains(&format!("unpack to {more} ")), "{kind} {words}");
            }
        }
    }
}

#[test]
fn a_column_that_nobody_reads_is_looked_at_by_itself() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("t.arrow");
    let long = "a".repeat(LONG);
    let column: ArrayRef = Arc::new(StringArray::from(vec![long.as_str(), "", "", ""]));
    let most = i64::try_from(TRACE_UNPACK_BYTES_FREE).expect("small");
    for (claim, is_good) in [(most, true), (most + 1, false)] {
        let columns = with("something_else", Arc::clone(&column));
        write_arrow(&path, &columns, CompressionType::LZ4_FRAME);
        let_claim(&path, claim);
        let words = said(&path);
        assert_eq!(words.is_none(), is_good, "{words:?}");
        assert!(words.is_none_or(|words| words.contains("column something_else: ")));
    }
}

#[test]
fn an_arrow_dictionary_that_claims_all_memory_is_refused_by_its_column() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("t.arrow");
    let long = "a".repeat(LONG);
    let texts: DictionaryArray<Int32Type> =
        [long.as_str(), "", long.as_str(), ""].into_iter().collect();
    write_arrow(&path, &with("prompt", Arc::new(texts)), CompressionType::LZ4_FRAME);
    let_claim(&path, 1 << 40);
    let words = said(&path).expect("a claim beyond all measure");
    assert!(words.contains("t.arrow") && words.contains("column prompt: "), "{words}");
}

#[test]
fn a_parquet_page_that_unpacks_to_much_more_than_it_has_is_refused_by_its_column() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("t.parquet");
    let packed = |compression| {
        let most = usize::try_from(TRACE_UNPACK_BYTES_FREE).expect("small");
        let long = "a".repeat(most);
        let column: ArrayRef = Arc::new(StringArray::from(vec![long.as_str(), "", "", ""]));
        let properties = WriterProperties::builder().set_compression(compression);
        write(&path, &with("prompt", column), properties.set_dictionary_enabled(false).build());
        said(&path)
    };
    // A few bytes too many: each text has its length before it.
    let words = packed(Compression::ZSTD(ZstdLevel::default())).expect("a bomb");
    let named = words.contains("t.parquet") && words.contains("column prompt: ");
    assert!(named && words.contains("right would be at most 134217728 "), "{words}");
}
