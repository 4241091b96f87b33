//! The first look at a log: what it says of itself, how it is numbered, and what is wrong with it.

use super::cursor::Cursor;
use super::scraped::Heard;
use super::users::Lives;
use super::{MergeError, Source};
use crate::log::prefix_rows::STRETCH_ROW_BYTES;
use crate::log::start::ShardFacts;
use crate::log::{Footer, Item, LogError, Manifest, RecordBlock};
use crate::units::CoreIndex;

/// What a log holds.
#[derive(Debug)]
pub(super) struct Survey {
    pub(super) name: String,
    pub(super) manifest: Manifest,
    pub(super) footer: Option<Footer>,
    /// The number of each request in the whole plan.
    pub(super) numbers: Vec<u32>,
    /// Rows of the plan.
    pub(super) rows: u64,
    /// How many stretches, and their checksum.
    pub(super) stretches: (u64, u32),
    /// Cores, by the manifest and by the records.
    pub(super) cores: u16,
    pub(super) damaged_bytes: u64,
    /// The file header is damaged, and was not believed.
    pub(super) header_damaged: bool,
    /// What of the part before the records cannot be read.
    pub(super) broken: Option<&'static str>,
    pub(super) lives: Lives,
    /// What servers said of themselves.
    pub(super) heard: Heard,
}

impl Survey {
    pub(super) fn of(source: &Source<'_>) -> Result<Self, MergeError> {
        let mut cursor = Cursor::open(source)?;
        let mut looking = Looking::default();
        while cursor.next(|item| looking.take(item))?.is_some() {}
        let Some(manifest) = looking.manifest else {
            let reason = "its manifest is damaged or missing".to_owned();
            return Err(MergeError::Log(source.name.clone(), LogError::NoManifest { reason }));
        };
        let stated = u16::try_from(manifest.cores.len()).unwrap_or(u16::MAX);
        Ok(Self {
            name: source.name.clone(),
            footer: looking.footer,
            numbers: looking.numbers,
            rows: looking.rows,
            stretches: (looking.stretches, looking.checksum.finalize()),
            cores: looking.cores.max(stated),
            damaged_bytes: looking.damaged_bytes,
            header_damaged: looking.header_damaged,
            broken: looking.broken,
            lives: looking.lives,
            heard: looking.heard,
            manifest: *manifest,
        })
    }

    /// Which shard it is.
    pub(super) const fn shard(&self) -> Option<&ShardFacts> {
        self.manifest.shard.as_ref()
    }

    /// The trace's digest, if the log says it.
    pub(super) fn sha256(&self) -> Option<&str> {
        let late = self.footer.as_ref().and_then(|footer| footer.trace_sha256.as_deref());
        late.or(Some(&self.manifest.trace.sha256)).filter(|digest| !digest.is_empty())
    }
}

#[derive(Default)]
struct Looking {
    manifest: Option<Box<Manifest>>,
    footer: Option<Footer>,
    numbers: Vec<u32>,
    rows: u64,
    stretches: u64,
    checksum: crc32fast::Hasher,
    cores: u16,
    damaged_bytes: u64,
    header_damaged: bool,
    broken: Option<&'static str>,
    begun: bool,
    lives: Lives,
    heard: Heard,
}

impl Looking {
    fn take(&mut self, item: Item<'_>) {
        match item {
            Item::Manifest(manifest) if self.manifest.is_none() => self.manifest = Some(manifest),
            Item::Footer(footer) if self.footer.is_none() => self.footer = Some(*footer),
            Item::Numbers(numbers) if !self.begun => self.numbers.extend(numbers.iter()),
            Item::Plan(rows) if !self.begun => self.rows += rows.iter().count() as u64,
            Item::Stretches(rows) if !self.begun => {
                for row in rows.iter() {
                    self.stretches += 1;
                    let bytes: [u8; STRETCH_ROW_BYTES] = row.encode();
                    self.checksum.update(&bytes);
                }
            }
            Item::Records(block) => self.records(&block),
            Item::Damaged { bytes, reason, .. } => self.damage(bytes, reason),
            Item::DamagedHeader => self.header_damaged = true,
            Item::TornTail { bytes, .. } => self.damage(bytes, "it ends inside its plan"),
            Item::Manifest(_)
            | Item::Footer(_)
            | Item::Numbers(_)
            | Item::Plan(_)
            | Item::Stretches(_)
            | Item::Sessions(_)
            | Item::Recorded(_)
            | Item::Paths(_)
            | Item::Unknown { .. } => {}
        }
    }

    fn damage(&mut self, bytes: usize, reason: &'static str) {
        self.damaged_bytes += bytes as u64;
        if !self.begun {
            self.broken.get_or_insert(reason);
        }
    }

    fn records(&mut self, block: &RecordBlock<'_>) {
        self.begun = true;
        if block.core == CoreIndex::CONDUCTOR {
            self.heard.look(block);
        } else {
            self.cores = self.cores.max(block.core.0.saturating_add(1));
        }
        let is_of_users = self.manifest.as_ref().is_some_and(|manifest| manifest.users.is_some());
        if is_of_users {
            self.lives.look(block);
        }
    }
}
