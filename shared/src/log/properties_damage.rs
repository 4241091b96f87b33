//! A log of 64 KiB, cut at every byte and flipped at every byte: what is left reads as it was.
//!
//! Each cut and each flip has one right answer, which is computed from the whole log's blocks and
//! compared byte by byte: whole blocks before a cut, all blocks but the one that was hit. What
//! [`Run`] makes of it is a part of what it makes of the whole. The whole takes minutes by command,
//!
//! ```text
//! cargo test --release -p onbeat-shared -- --ignored 64_kib
//! ```
//!
//! and every change tests the bytes that decide something and a sample of the others.

use super::header::FILE_HEADER_BYTES;
use super::properties::nothing_invented;
use super::{Decoder, Footer, Item, LogError, Manifest, PathRow, StretchRow, sample, sample_users};
use crate::run::{Run, State};

/// The row's log.
const LOG_BYTES: usize = 64 << 10;

/// A block as it must be read: what it is, and its bytes.
#[derive(Debug, PartialEq)]
enum Read<'a> {
    Manifest(Box<Manifest>),
    Footer(Box<Footer>),
    Rows(&'static str, &'a [u8]),
    Stretches(Vec<StretchRow>),
    Paths(Vec<PathRow>),
    DamagedHeader,
    Damaged,
    Torn,
}

/// Where a block begins and ends in the file, and what it reads as.
#[derive(Debug)]
struct Block<'a> {
    from: usize,
    to: usize,
    read: Read<'a>,
}

/// All that a decoder yields.
fn blocks(bytes: &[u8]) -> Result<Vec<Block<'_>>, LogError> {
    let mut decoder = Decoder::new(bytes)?;
    let mut blocks = Vec::new();
    let mut from = decoder.offset();
    while let Some(item) = decoder.next() {
        let read = match item {
            Item::Manifest(manifest) => Read::Manifest(manifest),
            Item::Footer(footer) => Read::Footer(footer),
            Item::Plan(rows) => Read::Rows("plan", rows.payload),
            Item::Sessions(names) => Read::Rows("sessions", names.names),
            Item::Recorded(rows) => Read::Rows("recorded", rows.payload),
            Item::Numbers(numbers) => Read::Rows("numbers", numbers.payload),
            Item::Stretches(rows) => Read::Stretches(rows.iter().collect()),
            Item::Paths(rows) => Read::Paths(rows.iter().collect()),
            Item::Records(block) => Read::Rows("records", block.payload),
            Item::Unknown { .. } => panic!("no such block was written"),
            Item::DamagedHeader => Read::DamagedHeader,
            Item::Damaged { .. } => Read::Damaged,
            Item::TornTail { .. } => Read::Torn,
        };
        let torn = read == Read::Torn;
        let to = if torn { bytes.len() } else { decoder.offset() };
        blocks.push(Block { from, to, read });
        from = to;
    }
    Ok(blocks)
}

/// A log of at least the row's size, and of users' records besides.
fn logs() -> Vec<Vec<u8>> {
    let mut requests = 50;
    let mut log = sample::log(11, requests);
    while log.len() < LOG_BYTES {
        requests += 1;
        log = sample::log(11, requests);
    }
    let mut users = 2;
    let mut played = sample_users::log(7, users);
    while played.len() < LOG_BYTES {
        users += 1;
        played = sample_users::log(7, users);
    }
    vec![log, played]
}

/// Checks the log cut at `cut`; `run`: also what it says of each request.
fn cut_reads(log: &[u8], whole: &[Block<'_>], run: Option<&Run>, cut: usize) {
    let part = &log[..cut];
    let Ok(found) = blocks(part) else {
        assert!(cut < FILE_HEADER_BYTES, "only the file header is needed, cut at {cut}");
        return;
    };
    let kept = whole.iter().take_while(|block| block.to <= cut).count();
    let end = whole[..kept].last().map_or(FILE_HEADER_BYTES, |block| block.to);
    let torn = usize::from(end < cut);
    assert_eq!(found.len(), kept + torn, "cut at {cut}");
    for (one, other) in found.iter().zip(&whole[..kept]) {
        assert_eq!((one.from, one.to), (other.from, other.to), "cut at {cut}");
        assert!(one.read == other.read, "cut at {cut}: the block at {}", one.from);
    }
    if torn > 0 {
        let last = found.last().expect("a torn tail");
        assert_eq!((&last.read, last.from, last.to), (&Read::Torn, end, cut), "cut at {cut}");
    }
    let Some(run) = run.filter(|_| kept > 0) else { return };
    let read = Run::read(part).expect("the manifest is there");
    let cut_bytes = (cut - end) as u64;
    if cut < log.len() {
        assert_eq!(read.state, State::Unfinished { cut_bytes }, "cut at {cut}");
    }
    nothing_invented(&read, run, cut);
}

/// Checks the log with one bit of the byte at `at` turned.
fn flip_reads(log: &mut [u8], whole: &[Block<'_>], run: Option<&Run>, at: usize) {
    log[at] ^= 1 << (at % 8);
    let found = blocks(log).expect("blocks follow the header");
    let in_header = at < FILE_HEADER_BYTES;
    let hit = whole.iter().position(|block| (block.from..block.to).contains(&at));
    assert!(in_header == hit.is_none());
    let noted = found.iter().filter(|block| matches!(block.read, Read::DamagedHeader)).count();
    assert_eq!(noted, usize::from(in_header), "flipped at {at}");
    let found = &found[noted..];
    assert_eq!(found.len(), whole.len(), "flipped at {at}");
    for (place, (one, other)) in found.iter().zip(whole).enumerate() {
        assert_eq!((one.from, one.to), (other.from, other.to), "flipped at {at}");
        if Some(place) == hit {
            let refused = matches!(one.read, Read::Damaged | Read::Torn);
            assert!(refused, "the flip at {at} went unnoticed");
        } else {
            assert!(one.read == other.read, "flipped at {at}: the block at {}", one.from);
        }
    }
    if let Some(run) = run
        && let Ok(read) = Run::read(log)
    {
        assert!(!read.warnings.is_empty() || !read.is_whole(), "the flip at {at} went unsaid");
        nothing_invented(&read, run, at);
    }
    log[at] ^= 1 << (at % 8);
}

/// Tests all places for which `reads` holds, and their runs for which `runs` does.
fn every(reads: impl Fn(usize, &[Block<'_>]) -> bool, runs: impl Fn(usize) -> bool) {
    for log in logs() {
        assert!(log.len() >= LOG_BYTES);
        let run = Run::read(&log).expect("a log");
        let whole = blocks(&log).expect("a log");
        let records = |block: &&Block<'_>| matches!(block.read, Read::Rows("records", _));
        assert!(whole.iter().filter(records).count() >= 4, "the sample must have blocks to lose");
        let mut flipped = log.clone();
        for at in (0..log.len()).filter(|&at| reads(at, &whole)) {
            let run = runs(at).then_some(&run);
            cut_reads(&log, &whole, run, at);
            flip_reads(&mut flipped, &whole, run, at);
        }
        cut_reads(&log, &whole, Some(&run), log.len());
        assert!(flipped == log);
    }
}

/// With `ONBEAT_EVERY_BYTE` in the environment at every byte, which takes minutes; else, so that it
/// runs with every other test, at a sample of them.
#[test]
fn a_log_of_64_kib_cut_or_flipped_reads_as_what_is_left() {
    let everywhere = std::env::var_os("ONBEAT_EVERY_BYTE").is_some();
    // In each block, one byte of its header, another one in each, and one in its payload.
    let sampled = |at: usize, whole: &[Block<'_>]| {
        let place = whole.iter().position(|block| (block.from..block.to).contains(&at));
        place.is_some_and(|place| at - whole[place].from == place % 32) || at.is_multiple_of(509)
    };
    every(|at, whole| everywhere || sampled(at, whole), |at| everywhere || at.is_multiple_of(5));
}
