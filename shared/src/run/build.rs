//! Joins a log's blocks into a [`Run`].
//!
//! Two passes over the records: the first fills the request columns and counts content events, the
//! second puts the events in their places. Contradictions are counted and become warnings. Sizes
//! come from what the file holds, never from what it claims.

use std::collections::BTreeMap;

use super::cast::Cast;
use super::chunks::Chunks;
use super::events::{Anchor, Stalls};
use super::join::{Join, mark_bursts};
use super::users::Users;
use super::{Run, State};
use crate::counted::{agreeing, counted, grouped};
use crate::log::{
    Decoder, Footer, Item, LogError, Manifest, PLAN_ROW_BYTES, PlanRow, PlanRows, RecordBlock,
    RecordedRow, RecordedRows, SessionNames,
};
use crate::units::{CoreIndex, RequestIndex, RunNanos, SessionIndex};

/// Blocks between two calls of the progress function: about 4 MiB.
const BLOCKS_PER_PROGRESS: usize = 64;

/// Reads the whole log.
pub(super) fn build(bytes: &[u8], progress: &dyn Fn(f32) -> bool) -> Result<Run, LogError> {
    let mut blocks = Blocks::read(bytes, progress)?;
    let rows = blocks.plan_table(bytes.len());
    let names = blocks.session_names(rows.len());
    let recorded = blocks.recorded_rows(rows.len());
    let mut warnings = blocks.warnings(&rows);
    let manifest = blocks.manifest(rows.len());
    let Played { mut plan, sessions, users, words } =
        blocks.played(&manifest, rows, names, bytes.len());
    warnings.extend(words);
    // Nothing that a user did not come to was planned.
    let mut join = Join::new(&plan, blocks.footer.is_some() && users.is_none());
    for (at, block) in blocks.records.iter().enumerate() {
        if at % BLOCKS_PER_PROGRESS == 0 {
            report(progress, 0.4 + 0.3 * share(at, blocks.records.len()))?;
        }
        join.facts(block);
    }
    let mut chunks = Chunks::with_counts(&join.counts);
    join.counts.fill(0);
    for (at, block) in blocks.records.iter().enumerate() {
        if at % BLOCKS_PER_PROGRESS == 0 {
            report(progress, 0.7 + 0.3 * share(at, blocks.records.len()))?;
        }
        join.events(block, &mut chunks);
    }
    join.first_and_last(&mut chunks);
    mark_bursts(&mut join.requests);
    let texts = join.error_texts();
    let state = match &blocks.footer {
        Some(footer) if footer.interrupted => State::Interrupted,
        Some(_) => State::Finished,
        None => State::Unfinished { cut_bytes: blocks.cut_bytes },
    };
    if let Some(closing) = blocks.footer.as_ref().map(|footer| footer.closing) {
        let time = RunNanos(closing.time_ns);
        let unix_ns = closing.unix_ns;
        let core = CoreIndex::CONDUCTOR;
        join.anchors.push(Anchor { core, time, unix_ns, monotonic_ns: None });
    }
    join.connects.sort_by_key(|connect| connect.start);
    join.anchors.sort_by_key(|anchor| anchor.time);
    join.losses.sort_by_key(|loss| loss.time);
    warnings.extend(join.warnings(blocks.footer.as_deref()));
    if users.is_some() {
        for (i, row) in plan.iter_mut().enumerate() {
            row.due = join.requests.due(i);
        }
    }
    Ok(Run {
        manifest,
        footer: blocks.footer.map(|footer| *footer),
        plan,
        sessions,
        users,
        recorded,
        requests: join.requests,
        chunks,
        stalls: Stalls::new(join.stalls),
        connects: join.connects,
        anchors: join.anchors,
        losses: join.losses,
        state,
        damaged_bytes: blocks.damaged_bytes,
        warnings,
        texts,
    })
}

/// What there is to know of requests before their records are joined to them.
struct Played {
    plan: Vec<PlanRow>,
    sessions: Vec<String>,
    users: Option<Users>,
    words: Vec<String>,
}

/// The log's blocks, sorted by kind.
struct Blocks<'a> {
    manifest: Option<Box<Manifest>>,
    plan: Vec<PlanRows<'a>>,
    sessions: Vec<SessionNames<'a>>,
    recorded: Vec<RecordedRows<'a>>,
    records: Vec<RecordBlock<'a>>,
    footer: Option<Box<Footer>>,
    cut_bytes: u64,
    cut_at: usize,
    damaged_bytes: u64,
    damages: Vec<String>,
    header_damaged: bool,
    found_manifest: bool,
    unknown_blocks: u64,
    repeated_documents: u64,
    plan_conflicts: u64,
    lost_rows: u64,
    lost_names: u64,
}

impl<'a> Blocks<'a> {
    fn read(bytes: &'a [u8], progress: &dyn Fn(f32) -> bool) -> Result<Self, LogError> {
        let mut decoder = Decoder::new(bytes)?;
        let mut blocks = Self {
            manifest: None,
            plan: Vec::new(),
            sessions: Vec::new(),
            recorded: Vec::new(),
            records: Vec::new(),
            footer: None,
            cut_bytes: 0,
            cut_at: 0,
            damaged_bytes: 0,
            damages: Vec::new(),
            header_damaged: false,
            found_manifest: false,
            unknown_blocks: 0,
            repeated_documents: 0,
            plan_conflicts: 0,
            lost_rows: 0,
            lost_names: 0,
        };
        let mut seen = 0_usize;
        while let Some(item) = decoder.next() {
            if seen.is_multiple_of(BLOCKS_PER_PROGRESS) {
                report(progress, 0.4 * share(decoder.offset(), bytes.len()))?;
            }
            seen += 1;
            blocks.take(item);
        }
        blocks.found_manifest = blocks.manifest.is_some();
        if blocks.manifest.is_none() && blocks.plan.is_empty() {
            return Err(LogError::NoManifest { reason: blocks.instead_of_manifest() });
        }
        Ok(blocks)
    }

    /// The manifest, with what only the footer knows.
    fn manifest(&mut self, planned: usize) -> Manifest {
        let planned = u32::try_from(planned).unwrap_or(u32::MAX);
        let lost = || Manifest::lost(planned);
        let mut manifest = self.manifest.take().map_or_else(lost, |manifest| *manifest);
        let late = self.footer.as_ref().and_then(|footer| footer.trace_sha256.clone());
        let sha256 = &mut manifest.trace.sha256;
        if sha256.is_empty() || late.is_some() {
            *sha256 = late.unwrap_or_else(|| "unknown".to_owned());
        }
        manifest
    }

    /// The requests: those of the plan, or those that users sent.
    fn played(
        &self,
        manifest: &Manifest,
        rows: Vec<PlanRow>,
        names: Vec<String>,
        file_bytes: usize,
    ) -> Played {
        let facts = manifest.users.as_deref();
        if facts.is_none() && (self.found_manifest || !Cast::is_there(&self.records)) {
            return Played { plan: rows, sessions: names, users: None, words: Vec::new() };
        }
        let mut cast = Cast::read(&self.records, file_bytes);
        let plan = cast.plan(&rows);
        let (users, sessions) = cast.users(facts, names);
        Played { plan, sessions, users: Some(users), words: cast.warnings() }
    }

    fn instead_of_manifest(&self) -> String {
        if self.cut_bytes > 0 {
            format!("the file ends {} bytes into it; nothing was recorded", self.cut_bytes)
        } else if let Some(damage) = self.damages.first() {
            format!("it is damaged and no plan follows it ({damage})")
        } else {
            "the file ends after its header; nothing was recorded".into()
        }
    }

    fn take(&mut self, item: Item<'a>) {
        match item {
            Item::Manifest(manifest) if self.manifest.is_none() => self.manifest = Some(manifest),
            Item::Plan(rows) => self.plan.push(rows),
            Item::Sessions(names) => self.sessions.push(names),
            Item::Recorded(rows) => self.recorded.push(rows),
            Item::Records(block) => self.records.push(block),
            Item::Footer(footer) if self.footer.is_none() => self.footer = Some(footer),
            Item::Footer(_) | Item::Manifest(_) => self.repeated_documents += 1,
            Item::Unknown { .. } => self.unknown_blocks += 1,
            Item::DamagedHeader => self.header_damaged = true,
            Item::Damaged { offset, bytes, reason } => {
                self.damaged_bytes += bytes as u64;
                // A few are enough to find the place; the sum of bytes says how much.
                if self.damages.len() < 4 {
                    self.damages.push(format!("{bytes} bytes at offset {offset}: {reason}"));
                }
            }
            Item::TornTail { offset, bytes } => {
                self.cut_bytes = bytes as u64;
                self.cut_at = offset;
            }
        }
    }

    /// The plan, one row per request. The file's length bounds it, not the count it states.
    fn plan_table(&mut self, file_bytes: usize) -> Vec<PlanRow> {
        let stated = self.manifest.as_ref().map_or(u32::MAX, |manifest| manifest.planned);
        let limit = (stated as usize).min(file_bytes / PLAN_ROW_BYTES);
        let mut plan: Vec<PlanRow> = Vec::new();
        let mut known: Vec<bool> = Vec::new();
        for row in self.plan.iter().flat_map(PlanRows::iter) {
            let i = row.request.as_usize();
            if i >= limit || known.get(i) == Some(&true) {
                self.plan_conflicts += 1;
                continue;
            }
            while plan.len() <= i {
                plan.push(lost_row(plan.len()));
                known.push(false);
            }
            plan[i] = row;
            known[i] = true;
        }
        // Records come after the whole plan, so with any of them a missing row is a damaged one.
        if !self.records.is_empty() && self.manifest.is_some() {
            while plan.len() < limit {
                plan.push(lost_row(plan.len()));
                known.push(false);
            }
        }
        self.lost_rows = known.iter().filter(|&&known| !known).count() as u64;
        plan
    }

    /// The sessions' names. There are never more sessions than requests.
    fn session_names(&mut self, requests: usize) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for block in &self.sessions {
            for (at, name) in (block.first as usize..).zip(block.iter()) {
                if at >= requests {
                    self.lost_names += 1;
                    continue;
                }
                while names.len() <= at {
                    names.push(String::new());
                }
                names[at] = String::from_utf8_lossy(name).into_owned();
            }
        }
        names
    }

    /// What the trace recorded of answers, by request; the first row about a request counts.
    fn recorded_rows(&self, requests: usize) -> Vec<RecordedRow> {
        let rows = self.recorded.iter().flat_map(RecordedRows::iter);
        let mut rows: Vec<_> = rows.filter(|row| row.request.as_usize() < requests).collect();
        rows.sort_by_key(|row| row.request);
        rows.dedup_by_key(|row| row.request);
        rows
    }

    /// What is wrong with the file itself.
    fn warnings(&self, plan: &[PlanRow]) -> Vec<String> {
        let mut words = Vec::new();
        if self.header_damaged {
            words.push("the file header is damaged; the log was read as this version's".into());
        }
        if self.damaged_bytes > 0 {
            words.push(format!(
                "{} bytes of the log are damaged and were refused ({}); requests they were about \
                 may look unfinished",
                self.damaged_bytes,
                self.damages.join("; ")
            ));
        }
        if self.cut_bytes > 0 {
            words.push(format!(
                "the log ends inside a block: {} bytes from offset {} were cut off and not read",
                self.cut_bytes, self.cut_at
            ));
        }
        match &self.manifest {
            None => words.push(
                "the manifest is damaged: what ran, where and with which options is not known"
                    .into(),
            ),
            Some(manifest) if plan.len() < manifest.planned as usize => words.push(format!(
                "the log ends inside its plan: {} of {} rows",
                plan.len(),
                manifest.planned
            )),
            Some(_) => {}
        }
        let counts = [
            (
                self.lost_rows,
                [
                    "row of the plan is lost; its request has no plan",
                    "rows of the plan are lost; their requests have no plan",
                ],
                "",
            ),
            (
                self.plan_conflicts,
                ["row of the plan repeats or exceeds", "rows of the plan repeat or exceed"],
                " it; ignored",
            ),
            (
                self.lost_names,
                ["session name belongs", "session names belong"],
                " to no session; ignored",
            ),
            (
                self.unknown_blocks,
                ["block is", "blocks are"],
                " of a kind that this version does not know",
            ),
            (
                self.repeated_documents,
                ["manifest or footer", "manifests or footers"],
                " beyond the first; ignored",
            ),
        ];
        words.extend(counted_words(&counts));
        words.extend(self.missing_blocks());
        words
    }

    /// Gaps in the blocks' numbers.
    fn missing_blocks(&self) -> Vec<String> {
        let mut next: BTreeMap<CoreIndex, u64> = BTreeMap::new();
        let mut missing: BTreeMap<CoreIndex, u64> = BTreeMap::new();
        for block in &self.records {
            let expected = next.entry(block.core).or_insert(0);
            let found = u64::from(block.sequence);
            if found > *expected {
                *missing.entry(block.core).or_insert(0) += found - *expected;
            }
            *expected = found + 1;
        }
        let who = |core: CoreIndex| {
            if core == CoreIndex::CONDUCTOR {
                "the conductor".to_owned()
            } else {
                format!("core {}", core.0)
            }
        };
        missing
            .iter()
            .map(|(&core, &blocks)| {
                let (blocks, are) = (counted(blocks, "block"), agreeing(blocks, "is", "are"));
                format!("{blocks} of {} {are} missing", who(core))
            })
            .collect()
    }
}

/// The place of a row that the log lost.
pub(super) fn lost_row(i: usize) -> PlanRow {
    PlanRow {
        request: RequestIndex(u32::try_from(i).unwrap_or(u32::MAX)),
        session: SessionIndex(u32::MAX),
        turn: 0,
        core: CoreIndex::CONDUCTOR,
        target: u16::MAX,
        row: 0,
        due: None,
        after: None,
        source: 0,
        think_ns: None,
        input_tokens: None,
        max_tokens: None,
        min_tokens: None,
        ideal_cached_tokens: None,
        ideal_set_tokens: None,
        blocks: 0,
        body_bytes: None,
    }
}

/// Words for the counts that are not zero: what is counted, with its verb, in the form for one and
/// in that for more, and what is said of it.
pub(super) fn counted_words(counts: &[(u64, [&str; 2], &str)]) -> Vec<String> {
    let some = counts.iter().filter(|(count, _, _)| *count > 0);
    some.map(|&(count, [one, more], said)| {
        format!("{} {}{said}", grouped(count), agreeing(count, one, more))
    })
    .collect()
}

fn report(progress: &dyn Fn(f32) -> bool, share: f32) -> Result<(), LogError> {
    if progress(share.min(1.0)) { Ok(()) } else { Err(LogError::Cancelled) }
}

/// How far `at` is on the way to `of`; progress needs no more than a few digits.
#[expect(clippy::cast_precision_loss, reason = "progress needs no more than a few digits")]
fn share(at: usize, of: usize) -> f32 {
    at as f32 / of.max(1) as f32
}
