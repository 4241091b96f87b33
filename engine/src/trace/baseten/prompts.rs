//! The prompts of a Baseten trace, read once it is known which of them are sent.
//!
//! A second pass over the files, of one column: a plan needs none of them, a window few, and what
//! is read lies in memory once, as it goes over the wire. Several threads read, each its own groups
//! of rows, unless there is more than memory has room for: then one does, and what is too much lies
//! in a file (see `spill`). The texts do not depend on which it was.

use std::num::NonZero;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Builder};

use onbeat_shared::trace::Trace;
use onbeat_shared::trace::recorded::Texts;

use crate::trace::TraceError;
use crate::trace::baseten::row::{PROMPT, check_prompt};
use crate::trace::columns::{Shard, Table, cells, groups, shards};
use crate::trace::spill::Keeper;

/// Rows that are read in one go.
#[derive(Clone, Debug)]
struct Piece {
    shard: usize,
    /// Groups of the file; `None`: all of it.
    groups: Option<Range<usize>>,
    first_record: u32,
    records: u32,
    bytes: u64,
}

/// Bytes of text from which on a piece is large enough.
const PIECE_BYTES: u64 = 16 << 20;

/// Reads the prompts of the records that are `wanted`; the others stay empty.
pub(crate) fn load(
    path: &Path,
    trace: &Trace,
    wanted: &(dyn Fn(u32) -> bool + Sync),
    memory: u64,
) -> Result<Texts, TraceError> {
    let shards = shards(path)?;
    let pieces = pieces(path, trace, &shards)?;
    let reader = Reader { trace, shards: &shards, wanted };
    let bytes: u64 = pieces.iter().map(|piece| piece.bytes).sum();
    let mut texts = Texts::for_records(trace.records.len());
    let mut keeper = Keeper::new(path, memory);
    if bytes > memory || pieces.len() < 2 {
        for piece in &pieces {
            reader.read(piece, 0, &mut texts, Some(&mut keeper))?;
        }
        return keeper.finish(texts);
    }
    for (piece, own) in pieces.iter().zip(reader.read_all(path, &pieces)?) {
        texts.take_over(piece.first_record, own);
    }
    keeper.look(&mut texts)?;
    keeper.finish(texts)
}

/// Cuts the trace's rows into pieces.
fn pieces(path: &Path, trace: &Trace, shards: &[Shard]) -> Result<Vec<Piece>, TraceError> {
    let changed = || TraceError::file(path, "changed while it was read; leave it alone meanwhile");
    let total = u32::try_from(trace.records.len()).expect("bounded by REQUESTS_MAX");
    let files = &trace.recorded.files;
    if files.len() != shards.len() && !(files.is_empty() && shards.len() == 1) {
        return Err(changed());
    }
    let mut pieces = Vec::new();
    for (number, shard) in shards.iter().enumerate() {
        let first = files.get(number).map_or(0, |file| file.first_record);
        let end = files.get(number + 1).map_or(total, |file| file.first_record);
        let whole = Piece {
            shard: number,
            groups: None,
            first_record: first,
            records: end - first,
            bytes: shard.bytes,
        };
        let Some(groups) = groups(&shard.path, shard.kind, PROMPT)? else {
            pieces.push(whole);
            continue;
        };
        let mut next = Piece { groups: Some(0..0), records: 0, bytes: 0, ..whole };
        for (place, group) in (1..).zip(&groups) {
            next.groups = next.groups.map(|groups| groups.start..place);
            next.records += u32::try_from(group.rows).map_err(|_other_file| changed())?;
            next.bytes += group.bytes;
            if next.bytes >= PIECE_BYTES || place == groups.len() {
                let first_record = next.first_record + next.records;
                pieces.push(next.clone());
                let groups = Some(place..place);
                next = Piece { groups, first_record, records: 0, bytes: 0, ..next };
            }
        }
        if next.first_record != end {
            return Err(changed());
        }
    }
    Ok(pieces)
}

/// What all threads that read share.
struct Reader<'a> {
    trace: &'a Trace,
    shards: &'a [Shard],
    wanted: &'a (dyn Fn(u32) -> bool + Sync),
}

impl Reader<'_> {
    /// The texts of every piece, each numbered from its own first record.
    fn read_all(&self, path: &Path, pieces: &[Piece]) -> Result<Vec<Texts>, TraceError> {
        let next = AtomicUsize::new(0);
        let work = || -> Result<Vec<(usize, Texts)>, TraceError> {
            let mut done = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(piece) = pieces.get(number) else { return Ok(done) };
                let mut texts = Texts::for_records(piece.records as usize);
                self.read(piece, piece.first_record, &mut texts, None)?;
                done.push((number, texts));
            }
        };
        let cpus = thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN).get();
        let helpers = cpus.min(pieces.len()).saturating_sub(1);
        let mut done = thread::scope(|scope| {
            let mut started = Vec::with_capacity(helpers);
            for number in 0..helpers {
                let thread = Builder::new().name(format!("prompts-{number}"));
                let thread = thread.spawn_scoped(scope, work);
                started.push(thread.map_err(|error| {
                    TraceError::io("start a thread to read the prompts of", path, error)
                })?);
            }
            let mut done = work()?;
            for thread in started {
                match thread.join() {
                    Ok(more) => done.extend(more?),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            Ok::<_, TraceError>(done)
        })?;
        done.sort_unstable_by_key(|(number, _)| *number);
        Ok(done.into_iter().map(|(_, texts)| texts).collect())
    }

    /// Reads one piece into `texts`, whose records count from `origin`.
    fn read(
        &self,
        piece: &Piece,
        origin: u32,
        texts: &mut Texts,
        mut keeper: Option<&mut Keeper<'_>>,
    ) -> Result<(), TraceError> {
        let end = piece.first_record + piece.records;
        if !(piece.first_record..end).any(|record| (self.wanted)(record)) {
            return Ok(());
        }
        let shard = &self.shards[piece.shard];
        let changed =
            || TraceError::file(&shard.path, "changed while it was read; leave it alone meanwhile");
        let mut record = piece.first_record;
        let groups = piece.groups.clone();
        let mut table = Table::open_groups(&shard.path, shard.kind, &[PROMPT], groups)?;
        while let Some(batch) = table.next()? {
            let column = batch.columns[0].as_deref().ok_or_else(changed)?;
            let column = cells::Texts::of(column).map_err(|_other_type| changed())?;
            for place in 0..batch.rows {
                if record == end {
                    return Err(changed());
                }
                if (self.wanted)(record) {
                    let text = column.get(place).map(std::str::from_utf8);
                    let row = self.trace.records[record as usize].row;
                    let text = check_prompt(text).map_err(|fault| TraceError::Cell {
                        path: shard.path.clone(),
                        row,
                        fault,
                    })?;
                    texts.put(record - origin, text);
                    if let Some(keeper) = &mut keeper {
                        keeper.look(texts)?;
                    }
                }
                record += 1;
            }
        }
        if record == end { Ok(()) } else { Err(changed()) }
    }
}
