//! Where a core puts its records: blocks that are always there, and a hand-over that never waits.
//!
//! Each core owns a fixed number of blocks. It fills one, hands it to the writer thread through a
//! bounded queue and takes an empty one back through another. When the writer is so far behind that
//! no empty block is left, records are counted as lost and a `Lost` record says so as soon as there
//! is room: a slow disk can make a run invalid, but never late. Only when a run is over does a core
//! wait for room, and only as long as there is a writer. Nothing here does IO.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crossbeam::queue::ArrayQueue;
use onbeat_shared::log::block::{BLOCK_RECORDS, BlockBuffer};
use onbeat_shared::log::record::Record;
use onbeat_shared::units::{CoreIndex, RunNanos};

/// Blocks a core owns: 64 MiB at 64 KiB a block, two seconds of a million records each second.
pub const BLOCKS_PER_CORE: usize = 1_024;

/// The two queues between a core and the writer thread.
#[derive(Debug)]
pub struct Exchange {
    /// Whose records travel here.
    pub core: CoreIndex,
    /// Blocks to be written, in order. It holds one more than there are: a core's `push` then never
    /// meets a `pop` that is not over, for which it would have to wait.
    pub full: ArrayQueue<BlockBuffer>,
    /// Written blocks on their way back.
    empty: ArrayQueue<BlockBuffer>,
    /// How many blocks have come back: a `push` that is not over is not counted yet, and a core
    /// takes only what is, because a `pop` would wait for the writer in the middle of its `push`.
    returned: AtomicU64,
    /// Nobody will empty a block any more.
    pub abandoned: AtomicBool,
}

impl Exchange {
    /// An exchange for `blocks` blocks, which the core's [`Sink`] makes.
    #[must_use]
    pub fn new(core: CoreIndex, blocks: usize) -> Self {
        Self {
            core,
            full: ArrayQueue::new(blocks + 1),
            empty: ArrayQueue::new(blocks),
            returned: AtomicU64::new(0),
            abandoned: AtomicBool::new(false),
        }
    }

    /// Gives a block back to its core, empty.
    ///
    /// # Panics
    /// When it is not one of the core's own.
    pub fn give_back(&self, mut block: BlockBuffer) {
        block.clear();
        assert!(self.empty.push(block).is_ok(), "the queue holds all blocks");
        self.returned.fetch_add(1, Ordering::Release);
    }
}

/// A core's end of the exchange.
#[derive(Debug)]
pub struct Sink {
    exchange: Arc<Exchange>,
    block: Option<BlockBuffer>,
    /// Blocks that have not been used yet. One that the writer gave back is taken before them, so
    /// that a core with a quick disk goes round in a few blocks and not in all its 64 MiB.
    unused: Vec<BlockBuffer>,
    /// Blocks taken back so far.
    taken: u64,
    lost: u64,
    lost_in_all: u64,
}

impl Sink {
    /// The producing end of `exchange`, with all its blocks. Made on the thread that fills them:
    /// memory lies close to whoever touches it first.
    #[must_use]
    pub fn new(exchange: Arc<Exchange>) -> Self {
        let mut unused: Vec<_> =
            (0..exchange.empty.capacity()).map(|_| BlockBuffer::new()).collect();
        let block = unused.pop();
        Self { exchange, block, unused, taken: 0, lost: 0, lost_in_all: 0 }
    }

    /// Adds a record; never waits, never allocates.
    #[inline]
    pub fn push(&mut self, record: &Record) {
        // Nearly always there is a block with room, and this is all: it is inlined into the reader
        // of a million content events a second.
        if self.lost == 0
            && let Some(block) = &mut self.block
            && block.push(record).is_ok()
        {
            return;
        }
        self.push_elsewhere(record);
    }

    /// [`Sink::push`] when the block is full or records have been lost.
    #[cold]
    #[inline(never)]
    fn push_elsewhere(&mut self, record: &Record) {
        if self.lost > 0 && self.have_room() {
            let lost = Record::Lost { time: RunNanos(0), count: self.lost };
            if self.try_push(&lost) {
                self.lost = 0;
            }
        }
        if !self.try_push(record) {
            self.lost += 1;
            self.lost_in_all += 1;
        }
    }

    /// Hands over what there is, so that a kill loses little.
    pub fn flush(&mut self) {
        if self.block.as_ref().is_some_and(|block| !block.is_empty()) {
            self.hand_over();
        }
    }

    /// Waits until two records find room, the second being the one that says how many were lost
    /// before; at once when nobody will make room. For the end of a run, where it delays nobody.
    pub fn wait_for_room(&mut self) {
        while !self.have_room() && !self.exchange.abandoned.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
    }

    /// Hands over the last records. Waits for a writer that is behind.
    pub fn finish(mut self) {
        if self.lost > 0 {
            let lost = Record::Lost { time: RunNanos(0), count: self.lost };
            self.wait_for_room();
            let _ = self.try_push(&lost);
        }
        self.flush();
    }

    /// How many records found no room so far.
    #[must_use]
    pub fn lost_records(&self) -> u64 {
        self.lost_in_all
    }

    fn try_push(&mut self, record: &Record) -> bool {
        if let Some(block) = &mut self.block
            && block.push(record).is_ok()
        {
            return true;
        }
        self.hand_over();
        self.block.as_mut().is_some_and(|block| block.push(record).is_ok())
    }

    /// Whether two more records find room.
    fn have_room(&mut self) -> bool {
        if self.block.as_ref().is_some_and(|block| block.len() + 2 > BLOCK_RECORDS) {
            self.hand_over();
        }
        if self.block.is_none() {
            self.block = self.empty_block();
        }
        self.block.is_some()
    }

    fn hand_over(&mut self) {
        if let Some(block) = self.block.take() {
            assert!(self.exchange.full.push(block).is_ok(), "the queue holds all blocks");
        }
        self.block = self.empty_block();
    }

    fn empty_block(&mut self) -> Option<BlockBuffer> {
        if self.taken == self.exchange.returned.load(Ordering::Acquire) {
            return self.unused.pop();
        }
        self.taken += 1;
        self.exchange.empty.pop()
    }
}

#[cfg(test)]
mod tests {
    use onbeat_shared::units::RequestIndex;

    use super::*;

    fn record(number: u32) -> Record {
        Record::FirstByte { request: RequestIndex(number), time: RunNanos(0) }
    }

    #[test]
    fn records_without_room_are_counted_and_said() {
        let exchange = Arc::new(Exchange::new(CoreIndex(0), 1));
        let mut sink = Sink::new(Arc::clone(&exchange));
        let mut pushed = 0;
        while sink.lost_records() < 3 {
            sink.push(&record(pushed));
            pushed += 1;
        }
        let block = exchange.full.pop().expect("the only block is full");
        assert_eq!(block.len(), pushed as usize - 3);
        exchange.give_back(block);
        sink.push(&record(pushed));
        sink.flush();
        let block = exchange.full.pop().expect("flushed");
        assert_eq!(block.len(), 2, "one record says how many were lost, one is new");
    }

    #[test]
    fn the_end_of_a_run_waits_for_room_but_not_for_a_writer_that_is_gone() {
        let exchange = Arc::new(Exchange::new(CoreIndex(0), 1));
        let mut sink = Sink::new(Arc::clone(&exchange));
        while sink.lost_records() == 0 {
            sink.push(&record(0));
        }
        exchange.abandoned.store(true, Ordering::Release);
        sink.wait_for_room();
        sink.finish();
        assert_eq!(exchange.full.len(), 1);
    }

    #[test]
    fn a_writer_that_is_behind_loses_nothing_at_the_end_of_a_run() {
        let exchange = Arc::new(Exchange::new(CoreIndex(0), 2));
        let writer = Arc::clone(&exchange);
        let scribe = std::thread::Builder::new()
            .name("slow".to_owned())
            .spawn(move || {
                let mut records = 0;
                while records < 20_000 {
                    let Some(block) = writer.full.pop() else {
                        std::thread::yield_now();
                        continue;
                    };
                    records += block.len();
                    writer.give_back(block);
                }
            })
            .expect("a thread");
        let mut sink = Sink::new(exchange);
        for number in 0..20_000 {
            sink.wait_for_room();
            sink.push(&record(number));
        }
        assert_eq!(sink.lost_records(), 0);
        sink.finish();
        scribe.join().expect("no panic");
    }

    #[test]
    fn an_empty_block_is_not_handed_over() {
        let exchange = Arc::new(Exchange::new(CoreIndex(0), 2));
        let mut sink = Sink::new(Arc::clone(&exchange));
        sink.flush();
        assert!(exchange.full.is_empty());
        sink.push(&record(1));
        sink.finish();
        assert_eq!(exchange.full.len(), 1);
    }
}
