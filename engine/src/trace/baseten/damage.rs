//! Damaged files of columns: whatever their bytes say, the reader answers with a trace or with
//! words.

use std::fs;
use std::panic::catch_unwind;
use std::path::Path;

use arrow_array::RecordBatch;

use crate::trace::baseten::tests::{plain, properties, write};
use crate::trace::{TraceOptions, load, load_prompts};

/// Files that are damaged, for each kind.
const FILES: u64 = 400;
/// Bytes at a file's end that say what is in it, about.
const ENDING: usize = 2_500;

/// Numbers that look random and are the same each time.
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).expect("below a usize")
    }

    /// Changes a few bytes, mostly in what the file says of itself.
    fn damage(&mut self, bytes: &mut [u8]) {
        for _ in 0..[1, 1, 2, 4][self.below(4)] {
            let ending = ENDING.min(bytes.len());
            let place = match self.below(3) {
                0 => self.below(bytes.len()),
                _ => bytes.len() - 1 - self.below(ending),
            };
            bytes[place] = match self.below(4) {
                0 => [0, 255, 127, 128][self.below(4)],
                1 => u8::try_from(self.below(256)).expect("a byte"),
                _ => bytes[place] ^ (1 << self.below(8)),
            };
        }
    }
}

/// What became of damaged copies of a file: how many were read, and the words about the others.
fn outcomes(path: &Path) -> (u64, Vec<String>) {
    let whole = fs::read(path).expect("written before");
    let mut read = 0;
    let mut words = Vec::new();
    for seed in 1..=FILES {
        let mut bytes = whole.clone();
        Draws(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)).damage(&mut bytes);
        fs::write(path, &bytes).expect("room");
        let loaded = catch_unwind(|| {
            let mut trace = load(path, &TraceOptions::default())?;
            load_prompts(path, &mut trace, &|_| true, u64::MAX)
        });
        match loaded.unwrap_or_else(|_panic| panic!("seed {seed} made the reader panic")) {
            Ok(()) => read += 1,
            Err(error) => words.push(error.to_string()),
        }
    }
    (read, words)
}

#[test]
fn no_damage_of_a_parquet_file_makes_the_reader_panic() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("t.parquet");
    write(&path, &plain(), properties());
    let (read, words) = outcomes(&path);
    assert!(read > 0 && words.iter().all(|words| words.contains("t.parquet")), "{words:#?}");
    let panicked = words.iter().filter(|words| words.contains("its reader gave up")).count();
    assert!(panicked > 0, "none of the damage is of the kind this test is about: draw more");
}

#[test]
fn no_damage_of_an_arrow_file_makes_the_reader_panic() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("t.arrow");
    let batch = RecordBatch::try_from_iter(plain()).expect("equal lengths");
    let file = fs::File::create(&path).expect("a file");
    let mut writer =
        arrow_ipc::writer::FileWriter::try_new(file, &batch.schema()).expect("a schema");
    writer.write(&batch).expect("written");
    writer.finish().expect("closed");
    let (read, words) = outcomes(&path);
    assert!(read > 0 && words.iter().all(|words| words.contains("t.arrow")), "{words:#?}");
}
