//! A trace that somebody cuts, writes to, deletes or replaces while it is read: the process goes
//! on, and what was read is the trace as it was at one moment, or the run is refused in words.
//!
//! A hundred moments between the beginning and the end of loading, drawn from a seed; what may come
//! of each does not depend on where it falls. Nothing is said here of a file that is changed before
//! it is opened: that is another file. One that is being written over just then cannot be told from
//! it, as a write's time is that of its beginning.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::Compression;
use flate2::write::GzEncoder;
use onbeat::clock::monotonic_ns;
use onbeat::trace::{self, TraceOptions};
use onbeat_shared::dice::Dice;
use tests::mooncake;

/// What is done to a file.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// Cut inside a row.
    Cut,
    /// Written over in place, with a trace of the same length.
    Write,
    Append,
    Delete,
    /// Another file is given its name.
    Replace,
}

const CHANGES: [Change; 5] =
    [Change::Cut, Change::Write, Change::Append, Change::Delete, Change::Replace];

/// How the file is written.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Lines,
    Packed,
    Conversation,
}

const KINDS: [Kind; 4] = [Kind::Lines, Kind::Lines, Kind::Packed, Kind::Conversation];
const MOMENTS: u64 = 100;

/// A trace of `rows` rows whose prompts have `input` tokens, which sets apart one state of a file
/// from another.
fn bytes(kind: Kind, rows: usize, input: usize) -> Vec<u8> {
    let packed = |text: &str| {
        let mut packer = GzEncoder::new(Vec::new(), Compression::none());
        packer.write_all(text.as_bytes()).expect("memory takes it");
        packer.finish().expect("memory takes it")
    };
    match kind {
        Kind::Lines => mooncake(rows, 1, input, 2).into_bytes(),
        Kind::Packed => packed(&mooncake(rows, 1, input, 2)),
        Kind::Conversation => {
            let request = |row: usize| {
                format!(
                    "{{\"t\":{row},\"type\":\"s\",\"model\":\"m\",\"in\":{input},\"out\":2,\
                     \"hash_ids\":[{row}]}}"
                )
            };
            let requests: Vec<String> = (0..rows).map(request).collect();
            format!(
                "{{\"id\":\"c\",\"models\":[\"m\"],\"block_size\":64,\"requests\":[{}]}}",
                requests.join(",")
            )
            .into_bytes()
        }
    }
}

/// How many rows there are, and the lengths of their prompts without repetition.
fn read(path: &Path) -> Result<(usize, Vec<u32>), String> {
    let read = trace::read(path, &TraceOptions::default());
    let records = read.map_err(|error| error.to_string())?.records;
    let mut lengths: Vec<u32> = records.iter().map(|record| record.input_tokens).collect();
    lengths.dedup();
    Ok((records.len(), lengths))
}

fn change(path: &Path, change: Change, before: &[u8], after: &[u8], dice: &mut Dice) {
    let writing = |append: bool| {
        let options = OpenOptions::new().write(!append).append(append).open(path);
        options.expect("the file is there")
    };
    match change {
        Change::Cut => {
            // Behind a comma there is more of every row.
            let commas: Vec<usize> =
                (0..before.len()).filter(|&place| before[place] == b',').collect();
            let place = commas[dice.place(commas.len())];
            writing(false).set_len(place as u64).expect("its owner may");
        }
        Change::Write => writing(false).write_all_at(after, 0).expect("its owner may"),
        Change::Append => writing(true).write_all(after).expect("its owner may"),
        Change::Delete => fs::remove_file(path).expect("its owner may"),
        Change::Replace => {
            let other: PathBuf = path.with_extension("new");
            fs::write(&other, after).expect("the folder is writable");
            fs::rename(&other, path).expect("its owner may");
        }
    }
}

#[test]
fn a_trace_that_changes_while_it_is_read_is_one_state_of_it_or_refused() {
    const ROWS: usize = 150;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("trace.json");
    let (mut whole, mut refused) = (0, 0);
    // How long the last reading took: later moments are drawn from it.
    let took_ns = AtomicU64::new(1_000_000);
    for seed in 0..MOMENTS {
        let mut dice = Dice(seed);
        let kind = KINDS[dice.place(KINDS.len())];
        let how = CHANGES[dice.place(CHANGES.len())];
        let (before, after) = (bytes(kind, ROWS, 100), bytes(kind, ROWS, 200));
        assert_eq!(before.len(), after.len());
        fs::write(&path, &before).expect("the folder is writable");
        let start = Barrier::new(2);
        let found = std::thread::scope(|scope| {
            let changing = std::thread::Builder::new().name("changing".to_owned());
            let changing = changing.spawn_scoped(scope, || {
                let wait = dice.below(took_ns.load(Ordering::Relaxed));
                start.wait();
                let begun = monotonic_ns();
                while monotonic_ns() - begun < i64::try_from(wait).expect("short") {
                    std::hint::spin_loop();
                }
                change(&path, how, &before, &after, &mut dice);
            });
            changing.expect("a thread");
            start.wait();
            let begun = monotonic_ns();
            let found = read(&path);
            took_ns.store((monotonic_ns() - begun).unsigned_abs().max(1), Ordering::Relaxed);
            found
        });
        match found {
            Ok((rows, lengths)) => {
                whole += 1;
                let states = [(ROWS, vec![100]), (ROWS, vec![200]), (2 * ROWS, vec![100, 200])];
                let place = states.iter().position(|state| *state == (rows, lengths.clone()));
                // It was opened in the middle of the write, which went on ahead of the reader.
                let is_under_way = (rows, &lengths[..]) == (ROWS, &[200, 100]);
                let fair = match how {
                    Change::Write if is_under_way => true,
                    Change::Cut | Change::Delete => place == Some(0),
                    Change::Write | Change::Replace => place == Some(0) || place == Some(1),
                    Change::Append => place == Some(0) || place == Some(2),
                };
                assert!(fair, "seed {seed}, {kind:?}, {how:?}: {rows} rows, {lengths:?}");
            }
            Err(words) => {
                refused += 1;
                assert!(words.contains("trace.json"), "seed {seed}, {kind:?}, {how:?}: {words}");
            }
        }
    }
    assert!(whole > 0 && refused > 0, "{whole} whole, {refused} refused");
}
