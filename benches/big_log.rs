//! A made-up run log of any size, written as it goes, for benches of what opens logs.
//!
//! Requests leave evenly, a few hundred are in flight at a time, and each has a life of its own
//! length: a wait for the first token, then a content event every ten to thirty milliseconds, each
//! in a record of its own as behind a slow enough server. One in a hundred fails. Two cores write
//! their blocks in turn. The same size gives the same bytes; what is in memory does not grow with
//! the log, its plan aside.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufWriter, Result, Write};
use std::num::NonZero;
use std::path::PathBuf;

use onbeat_shared::dice::Dice;
use onbeat_shared::log::{
    BlockBuffer, ChunkKind, Class, Closing, DoneFlags, FinishReason, Footer, PlanRow, Record,
    UNKNOWN_TOKENS, Usage, file_header_of, footer_block, manifest_block, plan_blocks, sample,
    session_blocks,
};
use onbeat_shared::units::{CoreIndex, RequestIndex, RunNanos, SessionIndex};
use tempfile::TempDir;

use crate::Bencher;

/// How large a log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Requests.
    pub requests: u32,
    /// Content events of an answer on average; each has between one and twice as many.
    pub events: u32,
}

/// A million requests with thirty million content events: about 1.2 GB.
pub const LARGE: Size = Size { requests: 1_000_000, events: 30 };

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Bytes of the log.
    pub bytes: u64,
    /// Content events.
    pub events: u64,
    /// Records of every kind.
    pub records: u64,
}

/// A log in a file whose bytes are in the page cache.
#[derive(Debug)]
pub struct AtHand {
    /// The file.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Where it is, unless it was named; goes with this.
    _folder: TempDir,
}

/// The log that benches of the viewer open: made for them in a temporary folder or, at its real
/// size, the file named by `ONBEAT_BIG_LOG`, which is written if it does not exist.
///
/// # Errors
/// When it cannot be written or read.
pub fn at_hand(bencher: &Bencher) -> Result<AtHand> {
    let size = bencher.pick(Size { requests: 500, events: 10 }, LARGE);
    let folder = tempfile::tempdir()?;
    let named = std::env::var_os("ONBEAT_BIG_LOG").map(PathBuf::from);
    let path = named.filter(|_| bencher.pick(false, true));
    let path = path.unwrap_or_else(|| folder.path().join("large.beat"));
    if !path.exists() {
        write(size, BufWriter::new(File::create(&path)?))?;
    }
    // Read once, so that no bench waits for a disk.
    let bytes = std::io::copy(&mut File::open(&path)?, &mut std::io::sink())?;
    Ok(AtHand { path, bytes, _folder: folder })
}

const MICRO: i64 = 1_000;
const MILLI: i64 = 1_000_000;
/// Time between two requests.
const STEP: i64 = 3_600 * MICRO;
/// Requests that have one turn of their sessions before the next turn's begin.
const ROUND: u32 = 64;
const TURNS: u32 = 8;
const CORES: u16 = 2;

/// Writes a log.
///
/// # Errors
/// When it cannot be written.
pub fn write(size: Size, out: impl Write) -> Result<Written> {
    let mut log = Log::new(out);
    let mut manifest = sample::sample(1, 0).manifest;
    manifest.planned = size.requests;
    "made_up.jsonl".clone_into(&mut manifest.trace.name);
    log.put(&file_header_of(&manifest))?;
    log.put(&manifest_block(&manifest))?;
    for block in plan_blocks((0..size.requests).map(plan_row)) {
        log.put(&block)?;
    }
    let sessions = size.requests.div_ceil(TURNS * ROUND) * ROUND;
    let names: Vec<String> = (0..sessions).map(|i| format!("session_{i:06}")).collect();
    for block in session_blocks(&names) {
        log.put(&block)?;
    }
    let started = manifest.started_unix_ns;
    let mut lives = BinaryHeap::new();
    let mut next = 0;
    let mut end = RunNanos(0);
    while next < size.requests || !lives.is_empty() {
        let due = RunNanos(i64::from(next) * STEP);
        let is_before = |life: &Reverse<Life>| life.0.next > due;
        if next < size.requests && lives.peek().is_none_or(is_before) {
            lives.push(Reverse(log.send(next, size.events, started)?));
            next += 1;
        } else if let Some(Reverse(life)) = lives.pop() {
            end = life.next;
            if let Some(life) = log.go_on(life)? {
                lives.push(Reverse(life));
            }
        }
    }
    log.close(size.requests, end, started)
}

fn plan_row(i: u32) -> PlanRow {
    let turn = i / ROUND % TURNS;
    let session = i / (ROUND * TURNS) * ROUND + i % ROUND;
    let mut dice = Dice(u64::from(i) ^ 0x9_1AC);
    let prompt = 500 * (turn + 1) + dice.between(0, 849);
    PlanRow {
        request: RequestIndex(i),
        session: SessionIndex(session),
        turn,
        core: core_of(i),
        target: 0,
        row: u64::from(i) + 1,
        due: Some(RunNanos(i64::from(i) * STEP)),
        after: None,
        source: 0,
        think_ns: None,
        input_tokens: Some(prompt),
        max_tokens: None,
        min_tokens: None,
        ideal_cached_tokens: Some(if turn == 0 { 64 } else { prompt / 10 * 7 }),
        ideal_set_tokens: Some(if turn == 0 { 64 } else { prompt / 10 * 7 }),
        blocks: prompt.div_ceil(16),
        body_bytes: NonZero::new(u64::from(prompt) * 5 + 180),
    }
}

const fn core_of(i: u32) -> CoreIndex {
    CoreIndex(if i.is_multiple_of(2) { 0 } else { CORES - 1 })
}

/// An answer on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Life {
    /// When something happens next.
    next: RunNanos,
    request: u32,
    events_left: u32,
    events: u32,
    step_ns: i64,
    failed: bool,
}

/// A log that is being written.
struct Log<W> {
    out: W,
    blocks: Vec<(BlockBuffer, u32)>,
    second: i64,
    written: Written,
}

impl<W: Write> Log<W> {
    fn new(out: W) -> Self {
        let blocks = (0..CORES).map(|_| (BlockBuffer::new(), 0)).collect();
        Self { out, blocks, second: i64::MIN, written: Written::default() }
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.written.bytes += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    fn push(&mut self, core: CoreIndex, record: &Record) -> Result<()> {
        self.written.records += 1;
        if self.blocks[usize::from(core.0)].0.push(record).is_err() {
            self.hand_over(core)?;
            self.blocks[usize::from(core.0)].0.push(record).expect("an empty block has room");
        }
        Ok(())
    }

    /// Writes what a core holds.
    fn hand_over(&mut self, core: CoreIndex) -> Result<()> {
        let (block, sequence) = &mut self.blocks[usize::from(core.0)];
        if !block.is_empty() {
            let bytes = block.seal(core, *sequence);
            self.written.bytes += bytes.len() as u64;
            self.out.write_all(bytes)?;
            block.clear();
            *sequence += 1;
        }
        Ok(())
    }

    /// A request leaves.
    fn send(&mut self, i: u32, events: u32, started: u64) -> Result<Life> {
        let (request, core) = (RequestIndex(i), core_of(i));
        let due = i64::from(i) * STEP;
        if due.div_euclid(1_000 * MILLI) != self.second {
            self.second = due.div_euclid(1_000 * MILLI);
            // As a core does: hand over once a second.
            (0..CORES).try_for_each(|core| self.hand_over(CoreIndex(core)))?;
            let time = RunNanos(self.second * 1_000 * MILLI);
            let unix_ns = started.saturating_add_signed(time.0);
            self.push(core, &Record::Anchor { time, unix_ns, monotonic_ns: 1 })?;
        }
        let mut dice = Dice(u64::from(i));
        let sent = RunNanos(due + i64::from(dice.between(2, 27)) * MICRO);
        let due = RunNanos(due);
        let reused = i >= 512;
        self.push(
            core,
            &Record::Dispatch { request, sent, ready: due, due: Some(due), target: 0, reused },
        )?;
        let time = RunNanos(sent.0 + i64::from(dice.between(15, 59)) * MICRO);
        let (bytes, connection) = (u64::from(dice.between(2_000, 10_999)), i % 512);
        self.push(core, &Record::SentEnd { request, time, bytes, connection })?;
        // A wave of load, so that there is something to see, and a few that wait very long.
        let wave = i64::from((i / 20_000 % 8) * 40 + dice.between(0, 149)) * MILLI;
        let long = if dice.below(500) == 0 { 3_000 * MILLI } else { 0 };
        let events = dice.between(1, 2 * events.max(1));
        Ok(Life {
            next: RunNanos(time.0 + 30 * MILLI + wave + long),
            request: i,
            events_left: events,
            events,
            step_ns: i64::from(dice.between(10_000, 29_999)) * MICRO,
            failed: dice.below(100) == 0,
        })
    }

    /// What happens next to a request; `None` once it has ended.
    fn go_on(&mut self, mut life: Life) -> Result<Option<Life>> {
        let (request, core, time) = (RequestIndex(life.request), core_of(life.request), life.next);
        if life.events_left == life.events {
            self.push(core, &Record::FirstByte { request, time })?;
        }
        if life.failed {
            self.done(core, request, time, Class::Http5xx)?;
            return Ok(None);
        }
        if life.events_left == life.events {
            self.push(core, &Record::FirstEvent { request, time })?;
        }
        if life.events_left == 0 {
            let usage = Usage {
                prompt_tokens: 1_000,
                completion_tokens: life.events,
                cached_tokens: 700,
                reasoning_tokens: UNKNOWN_TOKENS,
            };
            self.push(core, &Record::Usage { request, time, usage })?;
            self.done(core, request, time, Class::Ok)?;
            return Ok(None);
        }
        let bytes = 3 + life.events_left % 5;
        let kind = ChunkKind::TEXT;
        self.push(core, &Record::Chunk { request, time, kind, tokens: 1, bytes })?;
        self.written.events += 1;
        life.events_left -= 1;
        let jitter = i64::from(life.events_left * 7_919 % 900) * MICRO;
        let pause = if life.events_left == 0 { 200 * MICRO } else { life.step_ns + jitter };
        life.next = RunNanos(time.0 + pause);
        Ok(Some(life))
    }

    fn done(
        &mut self,
        core: CoreIndex,
        request: RequestIndex,
        time: RunNanos,
        class: Class,
    ) -> Result<()> {
        let (status, finish) = match class {
            Class::Ok => (200, FinishReason::Stop),
            _ => (503, FinishReason::Unknown),
        };
        let (status, response_bytes, flags) = (Some(status), 9_000, DoneFlags(0));
        let done = Record::Done { request, time, class, status, response_bytes, finish, flags };
        self.push(core, &done)
    }

    fn close(mut self, requests: u32, end: RunNanos, started: u64) -> Result<Written> {
        (0..CORES).try_for_each(|core| self.hand_over(CoreIndex(core)))?;
        let unix_ns = started.saturating_add_signed(end.0);
        self.put(&footer_block(&Footer {
            interrupted: false,
            complete: true,
            records: self.written.records,
            requests_done: u64::from(requests),
            lost_records: 0,
            closing: Closing { time_ns: end.0, unix_ns },
            cores: Vec::new(),
            trace_sha256: None,
            given_up: None,
        }))?;
        self.out.flush()?;
        Ok(self.written)
    }
}

#[cfg(test)]
mod tests {
    use onbeat_shared::run::{Run, State};

    use super::*;

    #[test]
    fn the_log_is_whole_and_says_what_was_written() {
        let size = Size { requests: 3_000, events: 10 };
        let mut bytes = Vec::new();
        let written = write(size, &mut bytes).expect("memory takes everything");
        assert_eq!(written.bytes, bytes.len() as u64);
        let run = Run::read(&bytes).expect("a log");
        assert_eq!((run.state, run.requests.len()), (State::Finished, 3_000));
        assert_eq!(run.warnings, Vec::<String>::new());
        assert_eq!(run.chunks.len() as u64, written.events);
        assert_eq!(run.footer.map(|footer| footer.records), Some(written.records));
        let mut again = Vec::new();
        write(size, &mut again).expect("memory takes everything");
        assert!(again == bytes, "the same size gives the same bytes");
    }
}
