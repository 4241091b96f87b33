//! The run log under fuzzing: blocks put together from sound logs, damaged, their checksums right.
//!
//! Most checksums are made right again after the damage, so that it reaches what reads the payload.
//! Whatever the bytes are: nothing panics, every byte is read, refused or torn, a run has no more
//! requests and events than its bytes can tell of, and reading it in pieces gives the same run.

use std::ops::Range;

use crc32fast::Hasher;
use onbeat_shared::dice::Dice;
use onbeat_shared::log::block::BLOCK_HEADER_BYTES;
use onbeat_shared::log::header::FILE_HEADER_BYTES;
use onbeat_shared::log::{
    Decoder, Item, LogError, PLAN_ROW_BYTES, RECORD_BYTES, RECORDED_ROW_BYTES, sample, sample_users,
};
use onbeat_shared::metrics::{ReportOptions, report};
use onbeat_shared::run::{Reader, Run};

use super::{Subject, Target, memory, mutation};

/// The log's decoder and the run made of it.
pub(super) const LOG: Target = Target {
    name: "log",
    about: "run logs, their checksums mended: every byte accounted for, the same run in pieces",
    short_runs: 3_000,
    make: || Box::new(Logs::new()),
};

const MANIFEST: u8 = 1;
const PLAN: u8 = 2;
const RECORDS: u8 = 4;
const RECORDED: u8 = 6;
/// Events that one record can tell of.
const EVENTS_MAX: usize = 32;

struct Logs {
    sound: Vec<Sound>,
}

/// A sound log and its blocks.
struct Sound {
    bytes: Vec<u8>,
    blocks: Vec<Range<usize>>,
}

impl Logs {
    fn new() -> Self {
        let logs = [
            sample::log(1, 1),
            sample::log(2, 3),
            sample::log(3, 8),
            sample::with_scrapes(sample::sample(4, 3)).bytes(),
            sample_users::log(4, 1),
            sample_users::log(5, 3),
        ];
        let sound = |bytes: Vec<u8>| Sound { blocks: blocks(&bytes), bytes };
        Self { sound: logs.into_iter().map(sound).collect() }
    }

    fn block(&self, dice: &mut Dice, sound: usize) -> (&[u8], u8) {
        let sound = &self.sound[sound];
        let place = sound.blocks[dice.place(sound.blocks.len())].clone();
        let block = &sound.bytes[place];
        (block, block[8])
    }
}

impl Subject for Logs {
    fn generate(&mut self, dice: &mut Dice, out: &mut Vec<u8>) {
        let one = dice.place(self.sound.len());
        let sound = &self.sound[one];
        if dice.below(24) == 0 {
            out.extend_from_slice(&sound.bytes);
            return;
        }
        out.extend_from_slice(&sound.bytes[..FILE_HEADER_BYTES]);
        if dice.below(12) == 0 {
            // What runs were asked to do: most of a small log's bytes, and slow to read.
            out.extend_from_slice(&sound.bytes[sound.blocks[0].clone()]);
        }
        for _ in 0..1 + dice.below(6) {
            let of = if dice.below(6) == 0 { dice.place(self.sound.len()) } else { one };
            let (block, kind) = self.block(dice, of);
            let is_json = kind == MANIFEST || kind == 5;
            if is_json && dice.below(8) > 0 {
                continue;
            }
            let start = out.len();
            out.extend_from_slice(&block[..BLOCK_HEADER_BYTES]);
            let rows = &block[BLOCK_HEADER_BYTES..];
            let row = row_bytes(kind);
            if row > 1 && rows.len() >= row {
                let count = rows.len() / row;
                let first = dice.place(count);
                let last = (first + 1 + dice.place(12)).min(count);
                out.extend_from_slice(&rows[first * row..last * row]);
            } else {
                out.extend_from_slice(rows);
            }
            resize(&mut out[start..]);
        }
    }

    fn mutate(&mut self, dice: &mut Dice, input: &mut Vec<u8>) {
        if dice.below(5) == 0 {
            mutation::damage(dice, input);
            if dice.below(2) == 0 {
                seal_all(input);
            }
            return;
        }
        for _ in 0..1 + dice.below(3) {
            let places = blocks(input);
            if places.is_empty() {
                return mutation::damage(dice, input);
            }
            let block = places[dice.place(places.len())].clone();
            match dice.below(8) {
                0 => header(dice, &mut input[block]),
                1 => drop(input.drain(block)),
                2 => {
                    let copy = input[block].to_vec();
                    let at = places[dice.place(places.len())].start;
                    input.splice(at..at, copy);
                }
                3 => {
                    let sound = dice.place(self.sound.len());
                    let other = self.block(dice, sound).0.to_vec();
                    input.splice(block, other);
                }
                _ => numbers(dice, &mut input[block]),
            }
        }
        if dice.below(8) > 0 {
            seal_all(input);
        }
    }

    fn judge(&mut self, input: &[u8]) -> Result<(), String> {
        memory::within(|| judge(input))
    }
}

fn judge(input: &[u8]) -> Result<(), String> {
    let records = match Decoder::new(input) {
        Ok(decoder) => accounted(input, decoder)?,
        Err(error) => return refused(input, &error),
    };
    let mut dice = mutation::dice_of(input);
    let run = Run::read(input);
    if dice.below(4) == 0 {
        same(&run, &in_pieces(&mut dice, input))?;
    }
    let Ok(run) = run else { return Ok(()) };
    let most = input.len() / PLAN_ROW_BYTES.min(RECORD_BYTES);
    if run.requests.len() > most || run.chunks.len() > records * EVENTS_MAX {
        return Err(format!("{} requests, {} events", run.requests.len(), run.chunks.len()));
    }
    let events: usize = (0..run.requests.len()).map(|i| run.chunks.row(i).iter().count()).sum();
    if events != run.chunks.len() {
        return Err(format!("{events} events of requests, {} in all", run.chunks.len()));
    }
    if dice.below(64) == 0 {
        let _report = report(&run, &ReportOptions::default());
    }
    Ok(())
}

/// Decodes all blocks; how many records there are, if every byte is in a block or refused.
fn accounted(input: &[u8], mut decoder: Decoder<'_>) -> Result<usize, String> {
    let (mut records, mut at) = (0, decoder.offset());
    while let Some(item) = decoder.next() {
        match item {
            Item::Records(block) => {
                records += block.len();
                if block.iter().count() != block.len() {
                    return Err("a record is skipped".to_owned());
                }
            }
            Item::Plan(rows) => drop(rows.iter().count()),
            Item::Sessions(names) => drop(names.iter().count()),
            Item::Recorded(rows) => drop(rows.iter().count()),
            Item::Stretches(rows) => drop(rows.iter().count()),
            Item::Paths(rows) => drop(rows.iter().count()),
            Item::Numbers(numbers) => drop(numbers.iter().count()),
            Item::Damaged { offset, bytes, .. } if offset != at || offset + bytes > input.len() => {
                return Err(format!("{bytes} damaged bytes at {offset} instead of {at}"));
            }
            Item::TornTail { offset, bytes } => {
                if offset != at || offset + bytes != input.len() {
                    return Err(format!("{bytes} torn bytes at {offset} instead of {at}"));
                }
                return Ok(records);
            }
            Item::DamagedHeader => continue,
            Item::Manifest(_) | Item::Footer(_) | Item::Unknown { .. } | Item::Damaged { .. } => {}
        }
        if decoder.offset() <= at {
            return Err(format!("it does not get on at {at}"));
        }
        at = decoder.offset();
    }
    if at == input.len() { Ok(records) } else { Err(format!("it stops at {at}")) }
}

/// A log that cannot be decoded cannot be read as a run either, for the same reason.
fn refused(input: &[u8], error: &LogError) -> Result<(), String> {
    match Run::read(input) {
        Err(other) if other == *error && !error.to_string().is_empty() => Ok(()),
        Err(other) => Err(format!("{error} when decoded, {other} when read")),
        Ok(_) => Err(format!("{error} when decoded, read all the same")),
    }
}

fn in_pieces(dice: &mut Dice, input: &[u8]) -> Result<Run, LogError> {
    let mut reader = Reader::new();
    for end in mutation::cuts(dice, input.len(), 6) {
        if let Some(piece) = input.get(reader.offset()..end) {
            reader.feed(piece)?;
        }
    }
    let rest = input.get(reader.offset()..).unwrap_or_default();
    reader.finish(rest)
}

/// Whether both say the same.
fn same(one: &Result<Run, LogError>, other: &Result<Run, LogError>) -> Result<(), String> {
    let (one, other) = match (one, other) {
        (Ok(one), Ok(other)) => (one, other),
        (one, other) => {
            let (one, other) = (one.as_ref().err(), other.as_ref().err());
            let words = || format!("whole {one:?}, in pieces {other:?}");
            return if one == other { Ok(()) } else { Err(words()) };
        }
    };
    let told = |run: &Run| {
        let ends: Vec<_> = (0..run.requests.len())
            .map(|i| (run.requests.done(i), run.requests.class(i), run.chunks.count(i)))
            .collect();
        (run.state, run.damaged_bytes, run.warnings.clone(), ends)
    };
    let (first, second) = (told(one), told(other));
    if first != second {
        return Err(format!("whole {first:?}, in pieces {second:?}"));
    }
    if one.plan == other.plan && one.sessions == other.sessions && one.users == other.users {
        Ok(())
    } else {
        Err("plan, sessions or users differ in pieces".to_owned())
    }
}

/// Where the blocks are, by their stated lengths.
fn blocks(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut places = Vec::new();
    let mut at = FILE_HEADER_BYTES;
    while let Some(length) = bytes.get(at + 20..at + 24).and_then(<[u8]>::first_chunk) {
        let length = u32::from_le_bytes(*length) as usize;
        let end = at + BLOCK_HEADER_BYTES + length;
        if end > bytes.len() {
            break;
        }
        places.push(at..end);
        at = end;
    }
    places
}

const fn row_bytes(kind: u8) -> usize {
    match kind {
        PLAN => PLAN_ROW_BYTES,
        RECORDS => RECORD_BYTES,
        RECORDED => RECORDED_ROW_BYTES,
        _ => 1,
    }
}

/// Writes a block's length and checksum.
fn resize(block: &mut [u8]) {
    let length = u32::try_from(block.len() - BLOCK_HEADER_BYTES).expect("small");
    block[20..24].copy_from_slice(&length.to_le_bytes());
    seal(block);
}

fn seal(block: &mut [u8]) {
    let mut hasher = Hasher::new();
    hasher.update(&block[..28]);
    hasher.update(&block[BLOCK_HEADER_BYTES..]);
    block[28..32].copy_from_slice(&hasher.finalize().to_le_bytes());
}

fn seal_all(bytes: &mut [u8]) {
    for place in blocks(bytes) {
        seal(&mut bytes[place]);
    }
}

/// What a block says of itself.
fn header(dice: &mut Dice, block: &mut [u8]) {
    let place = [8, 9, 10, 12, 16, 20, 24][dice.place(7)];
    let value: u32 = [0, 1, 3, 5, 8, 255, 2_047, u32::MAX][dice.place(8)];
    let width = [1, 2, 4][dice.place(3)];
    block[place..place + width].copy_from_slice(&value.to_le_bytes()[..width]);
}

/// Numbers of a payload, or letters of a text.
fn numbers(dice: &mut Dice, block: &mut [u8]) {
    const LETTERS: &[u8] = b"09-.e\"{}[],:\\ntf\x00\xff\xc3\x1b";
    let is_json = block[8] == MANIFEST || block[8] == 5;
    let payload = &mut block[BLOCK_HEADER_BYTES..];
    for _ in 0..1 + dice.below(5) {
        let width = if is_json { 1 } else { [1, 2, 4, 8][dice.place(4)] };
        if payload.len() < width {
            continue;
        }
        let at = dice.place(payload.len() / width) * width;
        let value: u64 = match dice.below(8) {
            _ if is_json => LETTERS[dice.place(LETTERS.len())].into(),
            0 => 0,
            1 => u64::MAX,
            2 => i64::MAX.unsigned_abs(),
            3 => i64::MIN.unsigned_abs(),
            4 => 1 << dice.below(64),
            5 | 6 => dice.below(20),
            _ => dice.roll(),
        };
        payload[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
    }
}
