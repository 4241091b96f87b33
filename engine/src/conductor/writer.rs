//! The one thread that writes the log: blocks in, bytes out, in order.
//!
//! It polls the cores' queues (a blocking queue would make a core pay for waking it up), seals each
//! block with its sequence number and checksum, and appends it with one write. When the disk fails
//! it keeps emptying the queues, so that the cores never notice, and the run ends with the error.
//! What the kernel has accepted survives a kill of the process.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use onbeat_shared::log::block::{number_blocks, plan_blocks, recorded_blocks, session_blocks};
use onbeat_shared::log::header::{
    Closing, CoreTotals, Footer, Manifest, file_header_of, footer_block, manifest_block,
};
use onbeat_shared::log::{PrefixRows, prefix_blocks};

use crate::live::Figures;
use crate::plan::Plan;
use crate::replayer::sink::Exchange;

/// How often the queues are looked at when they were empty. A core has room for seconds, and a
/// thread that wakes up more often takes its CPU from somebody else a thousand times a second: on a
/// machine of two CPUs, from the server.
const POLL: Duration = Duration::from_millis(10);

/// The log being written.
#[derive(Debug)]
pub struct Writer<W = File> {
    file: W,
    records: Vec<u64>,
    sequence: Vec<u32>,
    failed: Option<io::Error>,
    figures: Option<Arc<Figures>>,
}

/// What the conductor knows when the run is over.
#[derive(Debug)]
pub struct Written {
    /// The user stopped it.
    pub interrupted: bool,
    /// Every planned request has its end.
    pub complete: bool,
    /// Requests whose end was recorded.
    pub done: u64,
    /// Records that found no room.
    pub lost: u64,
    /// Both clocks.
    pub closing: Closing,
    /// What each core used.
    pub totals: Vec<CoreTotals>,
    /// The trace's digest, if the manifest lacks it and it is known by now.
    pub trace_sha256: Option<String>,
    /// Why the run was given up, if it was.
    pub given_up: Option<String>,
}

impl<W: Write> Writer<W> {
    /// Writes what comes before the first record: header, manifest, numbers, plan, sessions,
    /// recorded answers, which prompts begin alike.
    ///
    /// # Errors
    /// When the file refuses the bytes.
    pub fn begin(
        mut file: W,
        manifest: &Manifest,
        plan: &Plan,
        prefixes: &PrefixRows,
    ) -> io::Result<Self> {
        file.write_all(&file_header_of(manifest))?;
        file.write_all(&manifest_block(manifest))?;
        let part = plan.part.as_ref();
        for block in part.iter().flat_map(|part| number_blocks(&part.numbers)) {
            file.write_all(&block)?;
        }
        for block in plan_blocks(plan.rows.iter().copied()) {
            file.write_all(&block)?;
        }
        for block in session_blocks(&plan.sessions) {
            file.write_all(&block)?;
        }
        for block in recorded_blocks(plan.recorded.iter().copied()) {
            file.write_all(&block)?;
        }
        for block in prefix_blocks(prefixes) {
            file.write_all(&block)?;
        }
        file.flush()?;
        let (records, sequence) = (Vec::new(), Vec::new());
        Ok(Self { file, records, sequence, failed: None, figures: None })
    }

    /// From now on what it writes is added up there as well.
    pub fn also_to(&mut self, figures: Option<Arc<Figures>>) {
        self.figures = figures;
    }

    /// Empties the queues until `finished` is set and nothing is left in them. However it ends, the
    /// cores then know that nobody reads any more.
    pub fn serve(&mut self, exchanges: &[Arc<Exchange>], finished: &AtomicBool) {
        let _leaving = Leaving(exchanges);
        self.records = vec![0; exchanges.len()];
        self.sequence = vec![0; exchanges.len()];
        loop {
            // Read before the queues: what a core handed over before it finished is then seen.
            let last = finished.load(Ordering::Acquire);
            let mut idle = true;
            for (index, exchange) in exchanges.iter().enumerate() {
                while let Some(mut block) = exchange.full.pop() {
                    idle = false;
                    self.records[index] += block.len() as u64;
                    if let Some(figures) = &self.figures {
                        figures.take(&block);
                    }
                    let bytes = block.seal(exchange.core, self.sequence[index]);
                    self.sequence[index] = self.sequence[index].wrapping_add(1);
                    if self.failed.is_none()
                        && let Err(error) = self.file.write_all(bytes)
                    {
                        self.failed = Some(error);
                    }
                    exchange.give_back(block);
                }
            }
            if idle && last {
                return;
            }
            if idle {
                #[expect(clippy::disallowed_methods, reason = "nothing is timed on this thread")]
                std::thread::sleep(POLL);
            }
        }
    }

    fn footer(&self, written: &Written) -> Footer {
        let mut cores = written.totals.clone();
        for (core, &records) in cores.iter_mut().zip(&self.records) {
            core.records = records;
        }
        Footer {
            interrupted: written.interrupted,
            complete: written.complete && self.failed.is_none(),
            records: self.records.iter().sum(),
            requests_done: written.done,
            lost_records: written.lost,
            closing: written.closing,
            cores,
            trace_sha256: written.trace_sha256.clone(),
            given_up: written.given_up.clone(),
        }
    }
}

/// Says so when the writer goes, also by a panic.
struct Leaving<'a>(&'a [Arc<Exchange>]);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        for exchange in self.0 {
            exchange.abandoned.store(true, Ordering::Release);
        }
    }
}

impl<W> Writer<W> {
    /// What it wrote to, without a footer.
    #[must_use]
    pub fn into_inner(self) -> W {
        self.file
    }
}

impl Writer<File> {
    /// Writes the footer and makes the file durable.
    ///
    /// # Errors
    /// The first failure of the whole run; a log without a footer reads as unfinished.
    pub fn end(mut self, written: &Written) -> io::Result<()> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let footer = self.footer(written);
        self.file.write_all(&footer_block(&footer))?;
        // A pipe or a device has nothing to make durable.
        match self.file.sync_data() {
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => {
                Ok(())
            }
            result => result,
        }
    }
}
