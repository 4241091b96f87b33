//! Loading JSON Lines, against what simd-json's parser alone takes for the same bytes.
//!
//! Loading maps the file, hashes it, parses and checks every row and keeps columns. The other way
//! is only simd-json: each line copied (it parses in place) and read into a typed row that is
//! thrown away, or into its own tape. The file of 12,031 rows is made up, or named by
//! `ONBEAT_MOONCAKE_TRACE`; the larger one is made up.

use std::io::Write as _;
use std::path::Path;

use benches::{Bencher, checksum, mix, traces};
use onbeat::trace::{self, TraceOptions};
use serde::Deserialize;

#[derive(Deserialize)]
struct Row {
    timestamp: f64,
    input_length: u32,
    output_length: u32,
    hash_ids: Vec<u64>,
}

pub(crate) fn bench(bencher: &Bencher) {
    let rows = bencher.pick(50, traces::CONVERSATION_ROWS);
    match std::env::var_os("ONBEAT_MOONCAKE_TRACE") {
        Some(path) => compare(bencher, "load_conversation", Path::new(&path)),
        None => made_up(bencher, "load_conversation", rows),
    }
    made_up(bencher, "load_large", bencher.pick(100, 10 * traces::CONVERSATION_ROWS));
}

fn made_up(bencher: &Bencher, name: &str, rows: u64) {
    if !["", "_tape"].iter().any(|way| bencher.wants(&format!("{name}{way}"))) {
        return;
    }
    let mut file = tempfile::NamedTempFile::new().expect("a file for the trace");
    file.write_all(&traces::mooncake(rows)).expect("room for the trace");
    compare(bencher, name, file.path());
}

fn compare(bencher: &Bencher, name: &str, path: &Path) {
    let bytes = std::fs::read(path).expect("the trace can be read");
    let options = TraceOptions::default();
    let load = || {
        let trace = trace::load(path, &options).expect("the rows are right");
        trace.records.iter().fold(0, |hash, record| mix(hash, u64::from(record.input_tokens)))
    };
    let mut line = Vec::new();
    let mut buffers = simd_json::Buffers::default();
    let typed = || {
        lines(&bytes).fold(0, |hash, text| {
            line.clear();
            line.extend_from_slice(text);
            let row: Row = simd_json::serde::from_slice_with_buffers(&mut line, &mut buffers)
                .expect("the rows are right");
            let ids = row.hash_ids.last().copied().unwrap_or(0);
            let hash = mix(mix(hash, row.timestamp.to_bits()), ids);
            mix(hash, u64::from(row.input_length) << 32 | u64::from(row.output_length))
        })
    };
    bencher.measure_pair(name, "byte", bytes.len(), ("onbeat", load), ("simd_json_typed", typed));
    let mut line = Vec::new();
    let tape = || {
        lines(&bytes).fold(0, |hash, text| {
            line.clear();
            line.extend_from_slice(text);
            let tape = simd_json::to_tape(&mut line).expect("the rows are right");
            mix(hash, checksum(&tape.0.len().to_le_bytes()))
        })
    };
    let name = format!("{name}_tape");
    bencher.measure_pair(&name, "byte", bytes.len(), ("onbeat", load), ("simd_json_tape", tape));
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty())
}
