//! The prompts of a Baseten trace, read once it is known which of them are sent.
//!
//! A second pass over the files, of one column: a plan needs none of them, and a window few. A
//! prompt that is not packed stays where it is in its file: it is checked, its place is noted, and
//! whoever renders it reads it. One that had to be unpacked lies in memory, once, as it goes over
//! the wire. Several threads read, each its own groups of rows. Where all rows are one group, or
//! memory has not room for all texts, one thread unpacks and another keeps; what is too much lies
//! in a file (see `spill`). The texts do not depend on which it was.

use std::num::NonZero;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, Builder};

use onbeat_shared::trace::Trace;
use onbeat_shared::trace::recorded::Texts;

use crate::trace::TraceError;
use crate::trace::baseten::row::{PROMPT, check_prompt};
use crate::trace::columns::{Batch, Opened, Shard, Standing, cells, shards};
use crate::trace::spill::Keeper;
use crate::trace::stamp::changed;

/// Rows that are read in one go.
#[derive(Clone, Debug)]
struct Piece {
    shard: usize,
    /// Groups of the file; `None`: all of it.
    groups: Option<Range<usize>>,
    first_record: u32,
    records: u32,
    /// Bytes of text that are read.
    bytes: u64,
    /// Bytes of those that are packed, and so will lie in memory.
    packed: u64,
}

/// Bytes of text from which on a piece is large enough.
const PIECE_BYTES: u64 = 16 << 20;
/// Batches that are unpacked and wait for being kept.
const BATCHES_AHEAD: usize = 2;

/// Reads the prompts of the records that are `wanted`; the others stay empty.
pub(crate) fn load(
    path: &Path,
    trace: &Trace,
    wanted: &(dyn Fn(u32) -> bool + Sync),
    memory: u64,
) -> Result<Texts, TraceError> {
    let shards = shards(path)?;
    let files = shards.iter().map(|shard| Opened::new(&shard.path, shard.kind));
    let files = files.collect::<Result<Vec<_>, _>>()?;
    let mut standing = Standing::default();
    for (shard, file) in shards.iter().zip(&files) {
        standing.add(file.file(), shard.bytes);
    }
    let reader =
        Reader { path, trace, shards: &shards, files: &files, standing: &standing, wanted, memory };
    let pieces = reader.wanted_of(reader.pieces()?);
    let bytes = pieces.iter().fold(0_u64, |all, piece| all.saturating_add(piece.packed));
    let mut texts = Texts::for_records(trace.records.len());
    texts.stand_in(Arc::new(standing.clone()));
    if bytes <= memory
        && pieces.len() > 1
        && let Some(read) = reader.read_all(&pieces)?
    {
        for (piece, own) in pieces.iter().zip(read) {
            texts.take_over(piece.first_record, own);
        }
        return Ok(texts);
    }
    // Even when files said otherwise: texts that are repeated, or escaped, are longer than there.
    let mut keeper = Keeper::new(path, if bytes <= memory { memory } else { 0 });
    reader.read_in_turn(&pieces, &mut texts, &mut keeper)?;
    keeper.finish(texts)
}

/// What all threads that read share.
struct Reader<'a> {
    path: &'a Path,
    trace: &'a Trace,
    shards: &'a [Shard],
    files: &'a [Opened<'a>],
    standing: &'a Standing,
    wanted: &'a (dyn Fn(u32) -> bool + Sync),
    /// Bytes of text that may stay in memory.
    memory: u64,
}

/// Rows that were unpacked: of which file, and which record the first of them is.
struct Unpacked {
    shard: usize,
    first_record: u32,
    batch: Batch,
}

impl Reader<'_> {
    /// Cuts the trace's rows into pieces.
    fn pieces(&self) -> Result<Vec<Piece>, TraceError> {
        let total = u32::try_from(self.trace.records.len()).expect("bounded by REQUESTS_MAX");
        let files = &self.trace.recorded.files;
        let shards = self.shards.len();
        if files.len() != shards && !(files.is_empty() && shards == 1) {
            return Err(changed(self.path));
        }
        let mut pieces = Vec::new();
        for (number, shard) in self.shards.iter().enumerate() {
            let first = files.get(number).map_or(0, |file| file.first_record);
            let end = files.get(number + 1).map_or(total, |file| file.first_record);
            let whole = Piece {
                shard: number,
                groups: None,
                first_record: first,
                records: end - first,
                bytes: shard.bytes,
                packed: shard.bytes,
            };
            let Some(groups) = self.files[number].groups(PROMPT) else {
                pieces.push(whole);
                continue;
            };
            let mut next = Piece { groups: Some(0..0), records: 0, bytes: 0, packed: 0, ..whole };
            for (place, group) in (1..).zip(&groups) {
                next.groups = next.groups.map(|groups| groups.start..place);
                // What a file says of itself may be anything.
                let rows = u32::try_from(group.rows).ok();
                let records = rows.and_then(|rows| next.records.checked_add(rows));
                next.records = records.ok_or_else(|| changed(self.path))?;
                next.bytes = next.bytes.saturating_add(group.bytes);
                if group.is_packed {
                    next.packed = next.packed.saturating_add(group.bytes);
                }
                if next.bytes >= PIECE_BYTES || place == groups.len() {
                    let end = next.first_record.checked_add(next.records);
                    let first_record = end.ok_or_else(|| changed(self.path))?;
                    pieces.push(next.clone());
                    let groups = Some(place..place);
                    next = Piece { groups, first_record, records: 0, bytes: 0, packed: 0, ..next };
                }
            }
            if next.first_record != end {
                return Err(changed(self.path));
            }
        }
        Ok(pieces)
    }

    /// The pieces of which some record is wanted, with about as many bytes as those records have.
    fn wanted_of(&self, mut pieces: Vec<Piece>) -> Vec<Piece> {
        pieces.retain_mut(|piece| {
            let records = piece.first_record..piece.first_record + piece.records;
            let wanted = records.filter(|&record| (self.wanted)(record)).count() as u64;
            let of_wanted = |bytes: u64| bytes / u64::from(piece.records.max(1)) * wanted;
            (piece.bytes, piece.packed) = (of_wanted(piece.bytes), of_wanted(piece.packed));
            wanted > 0
        });
        pieces
    }

    /// The texts of every piece, each numbered from its own first record; `None` when there are
    /// more than memory has room for.
    fn read_all(&self, pieces: &[Piece]) -> Result<Option<Vec<Texts>>, TraceError> {
        let (next, kept) = (AtomicUsize::new(0), AtomicU64::new(0));
        let read = |piece: &Piece| -> Result<Option<Texts>, TraceError> {
            let mut texts = Texts::for_records(piece.records as usize);
            let end = self.each_batch(piece, &mut |unpacked| {
                let before = texts.copied_bytes();
                self.put(&unpacked, piece.first_record, &mut texts, None)?;
                let more = texts.copied_bytes() - before;
                let all = kept.fetch_add(more, Ordering::Relaxed) + more;
                let room = all <= self.memory;
                Ok(if room { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
            })?;
            Ok(end.is_continue().then_some(texts))
        };
        let work = || -> Result<Vec<(usize, Option<Texts>)>, TraceError> {
            let mut done = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(piece) = pieces.get(number) else { return Ok(done) };
                let texts = read(piece);
                if !matches!(texts, Ok(Some(_))) {
                    // Nobody needs begin another piece.
                    next.store(pieces.len(), Ordering::Relaxed);
                }
                done.push((number, texts?));
            }
        };
        let cpus = thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN).get();
        let helpers = cpus.min(pieces.len()).saturating_sub(1);
        let mut done = thread::scope(|scope| {
            let mut started = Vec::with_capacity(helpers);
            for number in 0..helpers {
                let thread = Builder::new().name(format!("prompts-{number}"));
                let thread = thread.spawn_scoped(scope, work);
                started.push(thread.map_err(|error| self.no_thread(error))?);
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

    /// Reads the pieces one after the other: unpacks on a thread of its own, and keeps on this one.
    fn read_in_turn(
        &self,
        pieces: &[Piece],
        texts: &mut Texts,
        keeper: &mut Keeper<'_>,
    ) -> Result<(), TraceError> {
        // Batches of an Arrow file are the writer's, and may be too large for two of them.
        if pieces.iter().any(|piece| piece.groups.is_none()) {
            for piece in pieces {
                let _all = self.each_batch(piece, &mut |unpacked| {
                    self.put(&unpacked, 0, texts, Some(keeper))?;
                    Ok(ControlFlow::Continue(()))
                })?;
            }
            return Ok(());
        }
        let (sender, receiver) = sync_channel(BATCHES_AHEAD);
        thread::scope(|scope| {
            let thread = Builder::new().name("prompts-unpack".to_owned());
            let thread = thread.spawn_scoped(scope, move || self.unpack(pieces, &sender));
            thread.map_err(|error| self.no_thread(error))?;
            for unpacked in receiver {
                self.put(&unpacked?, 0, texts, Some(keeper))?;
            }
            Ok(())
        })
    }

    /// Sends all batches of the pieces, then what is wrong, if something is.
    fn unpack(&self, pieces: &[Piece], sender: &SyncSender<Result<Unpacked, TraceError>>) {
        for piece in pieces {
            let unpacked = self.each_batch(piece, &mut |unpacked| {
                let gone = sender.send(Ok(unpacked)).is_err();
                Ok(if gone { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            });
            match unpacked {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => return,
                Err(error) => {
                    // Who no longer listens has an error already.
                    let _gone = sender.send(Err(error));
                    return;
                }
            }
        }
    }

    /// Hands on the rows of a piece, batch by batch, until told to stop.
    fn each_batch(
        &self,
        piece: &Piece,
        then: &mut dyn FnMut(Unpacked) -> Result<ControlFlow<()>, TraceError>,
    ) -> Result<ControlFlow<()>, TraceError> {
        let path = &self.shards[piece.shard].path;
        let mut left = piece.records as usize;
        let mut first_record = piece.first_record;
        let mut table = self.files[piece.shard].table(&[PROMPT], piece.groups.clone())?;
        while let Some(batch) = table.next()? {
            let rows = batch.rows;
            left = left.checked_sub(rows).ok_or_else(|| changed(path))?;
            if then(Unpacked { shard: piece.shard, first_record, batch })?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            first_record += u32::try_from(rows).expect("not more than the piece has");
        }
        if left == 0 { Ok(ControlFlow::Continue(())) } else { Err(changed(path)) }
    }

    /// Keeps the texts of some rows in `texts`, whose records count from `origin`.
    fn put(
        &self,
        unpacked: &Unpacked,
        origin: u32,
        texts: &mut Texts,
        mut keeper: Option<&mut Keeper<'_>>,
    ) -> Result<(), TraceError> {
        let path = &self.shards[unpacked.shard].path;
        let column = unpacked.batch.columns[0].as_deref().ok_or_else(|| changed(path))?;
        let column = cells::Texts::of(column).map_err(|_other_type| changed(path))?;
        for (record, place) in (unpacked.first_record..).zip(0..unpacked.batch.rows) {
            if !(self.wanted)(record) {
                continue;
            }
            let text = check_prompt(column.text(place)).map_err(|fault| {
                let row = self.trace.records[record as usize].row;
                TraceError::Cell { path: path.clone(), row, fault }
            })?;
            let place = unpacked.batch.place_of(text.as_bytes());
            match place.and_then(|offset| self.standing.place(unpacked.shard, offset)) {
                Some((region, start)) => texts.leave(record - origin, region, start, text),
                None => texts.put(record - origin, text),
            }
            if let Some(keeper) = &mut keeper {
                keeper.look(texts)?;
            }
        }
        Ok(())
    }

    fn no_thread(&self, error: std::io::Error) -> TraceError {
        TraceError::io("start a thread to read the prompts of", self.path, error)
    }
}
