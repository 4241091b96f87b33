//! Reads a log while its bytes arrive, and gives a picture of the run at any moment.
//!
//! Promises that the run does not depend on where the bytes were cut: fed in any pieces, the log
//! gives the run that [`Run::read`] gives. A picture shares with the reader those requests and
//! content events that cannot change, so of these it costs only what has changed since the last
//! one; what users did is put together anew. It does no IO and holds none of the bytes: the caller
//! gives those from [`Reader::offset`] on.

use std::sync::Arc;

use super::cast::{Cast, Played};
use super::chunks::Chunks;
use super::events::{Anchor, Stalls};
use super::faults::{Cut, Faults};
use super::join::{Join, request_of};
use super::preamble::{Preamble, Tables};
use super::scraped::Gathering;
use super::strangers::{Strangers, Told};
use super::{Run, State};
use crate::log::scan::{Scanner, find_mark};
use crate::log::{
    ContentEvent, Footer, Item, LogError, Manifest, Merged, RECORD_BYTES, Record, RecordBlock,
};
use crate::units::{CoreIndex, RunNanos};

/// What bytes at the end mean that are no whole block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// More is to come: they are the begin of a block.
    Growing,
    /// Nothing has come for long: the log is shown as one that was cut there.
    Torn,
}

/// Reads one log.
#[derive(Default)]
pub struct Reader {
    scanner: Option<Scanner>,
    manifest: Option<Box<Manifest>>,
    footer: Option<Box<Footer>>,
    preamble: Preamble,
    /// What came before the records, once a record has come.
    tables: Option<Tables>,
    faults: Faults,
    join: Join,
    cast: Option<Cast>,
    /// Whether it is known that users drove the run, or did not.
    decided: bool,
    /// More requests than this the log cannot tell of so far.
    most_requests: usize,
    strangers: Strangers,
    scraped: Gathering,
    cut: Cut,
}

impl Reader {
    /// Of a log of which nothing has been read.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The file's offset from which bytes are wanted.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.scanner.as_ref().map_or(0, Scanner::at)
    }

    /// Whether anything that happened has been read.
    #[must_use]
    pub const fn has_records(&self) -> bool {
        self.tables.is_some()
    }

    /// Whether the log was closed, as far as it has been read.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.footer.is_some()
    }

    /// Whether there is a run to be seen: a manifest or a plan has been read.
    #[must_use]
    pub const fn has_begun(&self) -> bool {
        self.manifest.is_some() || self.preamble.has_plan() || self.tables.is_some()
    }

    /// Whether bytes that [`Self::feed`] left over are no begin of a block, but a damaged one with
    /// others behind it: waiting for more of it is in vain.
    #[must_use]
    pub fn is_damaged(rest: &[u8]) -> bool {
        find_mark(rest, 1).is_some()
    }

    /// Takes whole blocks from the log's bytes from [`Self::offset`] on, and says how many bytes
    /// that were. The rest is wanted again, with more behind it; a block has at most 16 MiB and 32
    /// bytes.
    ///
    /// # Errors
    /// If the bytes are no log of ours, or need a newer reader.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<usize, LogError> {
        self.scan(bytes, false)
    }

    /// The run as far as it has been read.
    ///
    /// # Errors
    /// If there is no run yet: neither a manifest nor a plan.
    pub fn snapshot(&mut self, tail: Tail) -> Result<Run, LogError> {
        let cut = (tail == Tail::Torn).then_some(self.cut);
        let begun = self.tables.is_some();
        let tables = match &self.tables {
            Some(tables) => tables.clone(),
            None => self.start(None),
        };
        let chunks = self.join.snapshot();
        let run = self.picture(&tables, chunks, cut);
        if !begun {
            (self.join, self.cast, self.decided) = (Join::default(), None, false);
        }
        run
    }

    /// The run, if the log ends with these bytes (from [`Self::offset`] on).
    ///
    /// # Errors
    /// If the bytes are no log of ours, need a newer reader, or end before the manifest. Damage
    /// further on is a warning.
    pub fn finish(mut self, rest: &[u8]) -> Result<Run, LogError> {
        self.scan(rest, true)?;
        let tables = match self.tables.take() {
            Some(tables) => tables,
            None => self.start(None),
        };
        let chunks = self.join.finish();
        let cut = self.cut;
        self.picture(&tables, chunks, Some(cut))
    }

    fn scan(&mut self, bytes: &[u8], ended: bool) -> Result<usize, LogError> {
        let base = self.offset();
        let mut scanner = match self.scanner.take() {
            Some(scanner) => scanner,
            None => match Scanner::open(bytes, ended)? {
                Some((scanner, damaged)) => {
                    self.faults.header_damaged = damaged;
                    scanner
                }
                None => return Ok(0),
            },
        };
        while let Some(rest) = bytes.get(scanner.at() - base..)
            && let Some(item) = scanner.next(rest, ended)
        {
            if matches!(item, Item::TornTail { .. }) {
                break;
            }
            self.take(item, scanner.at());
        }
        let at = scanner.pending_from();
        self.cut = Cut { bytes: (base + bytes.len()).saturating_sub(at) as u64, at };
        let taken = scanner.at().saturating_sub(base);
        self.scanner = Some(scanner);
        Ok(taken)
    }

    /// Takes what a block holds; the block ends at an offset of the file.
    fn take(&mut self, item: Item<'_>, end: usize) {
        let begun = self.tables.is_some();
        match item {
            Item::Manifest(manifest) if self.manifest.is_none() && !begun => {
                self.manifest = Some(manifest);
            }
            Item::Footer(footer) if self.footer.is_none() => self.footer = Some(footer),
            Item::Manifest(_) | Item::Footer(_) => self.faults.repeated_documents += 1,
            Item::Plan(rows) if !begun => {
                let stated = self.manifest.as_ref().map_or(u32::MAX, |manifest| manifest.planned);
                self.preamble.plan(&rows, stated, end);
            }
            Item::Sessions(names) if !begun => self.preamble.names(&names),
            Item::Recorded(rows) if !begun => self.preamble.recorded(&rows),
            Item::Stretches(rows) if !begun => self.preamble.stretches(&rows),
            Item::Paths(rows) if !begun => self.preamble.paths(&rows),
            Item::Plan(_)
            | Item::Sessions(_)
            | Item::Recorded(_)
            | Item::Stretches(_)
            | Item::Paths(_) => self.faults.late_blocks += 1,
            // For who merges logs.
            Item::Numbers(_) => {}
            Item::Records(block) => self.records(&block, end),
            Item::Unknown { .. } => self.faults.unknown_blocks += 1,
            Item::Damaged { offset, bytes, reason } => self.faults.damage(offset, bytes, reason),
            // The one is told before the blocks, the other after them.
            Item::DamagedHeader | Item::TornTail { .. } => {}
        }
    }

    /// What came before the records is over; `records_at` is where they begin, if there are any.
    fn start(&mut self, records_at: Option<usize>) -> Tables {
        if let Some(offset) = records_at {
            self.preamble.fill(self.manifest.as_deref(), offset);
        }
        let tables = self.preamble.tables();
        let users = self.manifest.as_ref().map(|manifest| manifest.users.is_some());
        self.decided = users.is_some();
        if users == Some(true) {
            self.cast = Some(Cast::default());
        } else {
            self.join = Join::planned(&tables.plan);
        }
        tables
    }

    fn records(&mut self, block: &RecordBlock<'_>, end: usize) {
        self.faults.number(block);
        if self.tables.is_none() {
            let tables = self.start(Some(block.offset));
            self.preamble = Preamble::default();
            self.tables = Some(tables);
        }
        self.most_requests = end / RECORD_BYTES;
        if let Some(cast) = &mut self.cast {
            cast.of_bytes(end);
            if let Some(known) = self.strangers.claimed_below(self.most_requests) {
                self.know(known);
            }
        }
        for bytes in block.raw() {
            self.record(block.core, bytes);
        }
        self.join.tidy();
    }

    fn record(&mut self, core: CoreIndex, bytes: &[u8; RECORD_BYTES]) {
        if !self.decided {
            self.decide(bytes);
        }
        if let Some(event) = Record::decode_chunk(bytes) {
            self.event(core, bytes, &event);
            return;
        }
        let Some(record) = Record::decode(bytes) else {
            self.join.unknown();
            return;
        };
        if let Record::Scraped(fact) = &record {
            self.scraped.take(fact);
            return;
        }
        if let Some(request) = request_of(&record)
            && request.as_usize() >= self.join.known()
        {
            let claims = self.cast.is_some() && record.makes_request_known();
            if !claims || request.as_usize() >= self.most_requests {
                let facts = match record {
                    Record::Chunks { together, .. } => together.len() as u64,
                    _ => 1,
                };
                self.pass_over(request.0, Told { core, bytes: *bytes, facts }, claims);
                return;
            }
            self.know(request.as_usize() + 1);
        }
        if let Some(cast) = &mut self.cast {
            cast.take(core, &record);
            if let Record::Step { request, .. } = record {
                let plan = self.tables.as_ref().map(|tables| &tables.plan);
                let row = cast.template(request).and_then(|at| plan?.get(at));
                self.join.planned_for(request, core, row.map_or(u16::MAX, |row| row.target));
            }
        }
        self.join.take(core, &record);
    }

    #[inline]
    fn event(&mut self, core: CoreIndex, bytes: &[u8; RECORD_BYTES], event: &ContentEvent) {
        if event.request.as_usize() < self.join.known() {
            self.join.event(event);
        } else {
            let told = Told { core, bytes: *bytes, facts: 1 };
            self.pass_over(event.request.0, told, false);
        }
    }

    /// A log without its manifest says by its records whether users drove the run.
    fn decide(&mut self, bytes: &[u8; RECORD_BYTES]) {
        let Some(users) = Record::tells_of_users(bytes) else { return };
        self.decided = true;
        if users {
            let mut cast = Cast::default();
            cast.of_bytes(self.most_requests * RECORD_BYTES);
            self.cast = Some(cast);
            self.join.forget_requests();
        }
    }

    fn pass_over(&mut self, request: u32, told: Told, claims: bool) {
        if self.cast.is_some() {
            self.strangers.keep(request, told, claims);
        } else {
            self.strangers.count += told.facts;
        }
    }

    /// From now on that many requests are known; what was told of them before counts now.
    fn know(&mut self, requests: usize) {
        self.join.grow(requests);
        for told in self.strangers.take_below(requests) {
            self.record(told.core, &told.bytes);
        }
    }

    fn picture(
        &mut self,
        tables: &Tables,
        chunks: Chunks,
        cut: Option<Cut>,
    ) -> Result<Run, LogError> {
        if self.manifest.is_none() && !tables.has_plan {
            let reason = self.faults.instead_of_manifest(self.cut);
            return Err(LogError::NoManifest { reason });
        }
        let mut warnings = self.faults.warnings(self.manifest.as_deref(), tables, cut);
        let manifest = self.known_manifest(tables.plan.len());
        warnings.extend(manifest.merged.iter().flat_map(|merged| merged.warnings()));
        let footer = self.footer.as_deref().cloned();
        let mut requests = self.join.requests.clone();
        let facts = manifest.users.as_deref();
        let played = self
            .cast
            .as_ref()
            .map(|cast| cast.played(&requests, facts, &tables.plan, &tables.names));
        let (plan, sessions, users) = match played {
            Some(Played { plan, names, users, warnings: words }) => {
                warnings.extend(words);
                (Arc::new(plan), Arc::new(names), Some(users))
            }
            None => (Arc::clone(&tables.plan), Arc::clone(&tables.names), None),
        };
        // Nothing that a user did not come to was planned.
        requests.closed = footer.is_some() && users.is_none();
        let merged = manifest.merged.as_deref();
        requests.has_gaps = self.faults.has_gaps()
            || self.join.lost_records(footer.as_ref()) > 0
            || merged.is_some_and(Merged::lacks_records);
        let state = match &footer {
            Some(footer) if footer.interrupted => State::Interrupted,
            Some(_) => State::Finished,
            None => State::Unfinished { cut_bytes: cut.map_or(0, |cut| cut.bytes) },
        };
        let anchors = anchors(&self.join, footer.as_ref());
        let mut connects = self.join.connects.clone();
        connects.sort_by_key(|connect| connect.start);
        let mut losses = self.join.losses.clone();
        losses.sort_by_key(|loss| loss.time);
        let words = self.join.warnings(footer.as_ref(), &anchors, self.strangers.count);
        warnings.extend(words);
        Ok(Run {
            manifest,
            footer,
            plan,
            sessions,
            users,
            recorded: Arc::clone(&tables.recorded),
            prefixes: tables.prefixes.clone(),
            servers: self.scraped.servers(),
            requests,
            chunks,
            stalls: Stalls::new(self.join.stalls.clone()),
            connects,
            anchors,
            losses,
            state,
            damaged_bytes: self.faults.damaged_bytes,
            warnings,
            texts: self.join.error_texts(),
        })
    }

    /// The manifest, with what only the footer knows.
    fn known_manifest(&self, planned: usize) -> Manifest {
        let planned = u32::try_from(planned).unwrap_or(u32::MAX);
        let lost = || Manifest::lost(planned);
        let mut manifest = self.manifest.as_deref().cloned().unwrap_or_else(lost);
        let late = self.footer.as_ref().and_then(|footer| footer.trace_sha256.clone());
        let sha256 = &mut manifest.trace.sha256;
        if sha256.is_empty() || late.is_some() {
            *sha256 = late.unwrap_or_else(|| "unknown".to_owned());
        }
        manifest
    }
}

/// Readings of both clocks by time, the footer's included.
fn anchors(join: &Join, footer: Option<&Footer>) -> Vec<Anchor> {
    let mut anchors = join.anchors.clone();
    if let Some(closing) = footer.map(|footer| footer.closing) {
        let (core, time) = (CoreIndex::CONDUCTOR, RunNanos(closing.time_ns));
        anchors.push(Anchor { core, time, unix_ns: closing.unix_ns, monotonic_ns: None });
    }
    anchors.sort_by_key(|anchor| anchor.time);
    anchors
}
