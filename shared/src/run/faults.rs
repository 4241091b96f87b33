//! What is wrong with a log as a file: damage, a torn end, blocks that are missing or repeated.
//!
//! Counts while the log is read, words when a picture of it is made. What records contradict is
//! [`super::join`]'s.

use std::collections::BTreeMap;

use super::preamble::Tables;
use crate::counted::{agreeing, counted, grouped};
use crate::log::{Manifest, RecordBlock};
use crate::units::CoreIndex;

/// Damaged places that are named; the sum of bytes says how much there is in all.
const NAMED_MAX: usize = 4;

/// What was found wrong so far.
#[derive(Debug, Default)]
pub(super) struct Faults {
    pub(super) header_damaged: bool,
    pub(super) damaged_bytes: u64,
    damages: Vec<String>,
    pub(super) unknown_blocks: u64,
    pub(super) repeated_documents: u64,
    /// Blocks that belong before the records and came after them.
    pub(super) late_blocks: u64,
    sequences: BTreeMap<CoreIndex, Sequence>,
}

/// One core's numbers of blocks.
#[derive(Clone, Copy, Debug, Default)]
struct Sequence {
    next: u64,
    missing: u64,
}

/// Bytes at the file's end that are no whole block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cut {
    pub(super) bytes: u64,
    pub(super) at: usize,
}

impl Faults {
    /// Notes damaged bytes.
    pub(super) fn damage(&mut self, offset: usize, bytes: usize, reason: &str) {
        self.damaged_bytes += bytes as u64;
        if self.damages.len() < NAMED_MAX {
            self.damages.push(format!("{bytes} bytes at offset {offset}: {reason}"));
        }
    }

    /// Notes a block's number.
    pub(super) fn number(&mut self, block: &RecordBlock<'_>) {
        let sequence = self.sequences.entry(block.core).or_default();
        let found = u64::from(block.sequence);
        sequence.missing += found.saturating_sub(sequence.next);
        sequence.next = found + 1;
    }

    /// What stands where the manifest should.
    pub(super) fn instead_of_manifest(&self, cut: Cut) -> String {
        if cut.bytes > 0 {
            format!("the file ends {} bytes into it; nothing was recorded", cut.bytes)
        } else if let Some(damage) = self.damages.first() {
            format!("it is damaged and no plan follows it ({damage})")
        } else {
            "the file ends after its header; nothing was recorded".into()
        }
    }

    /// All of it in words; `cut` is `None` for a log that may go on.
    pub(super) fn warnings(
        &self,
        manifest: Option<&Manifest>,
        tables: &Tables,
        cut: Option<Cut>,
    ) -> Vec<String> {
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
        if let Some(Cut { bytes: bytes @ 1.., at }) = cut {
            words.push(format!(
                "the log ends inside a block: {bytes} bytes from offset {at} were cut off and not \
                 read"
            ));
        }
        match manifest {
            None => words.push(
                "the manifest is damaged: what ran, where and with which options is not known"
                    .into(),
            ),
            Some(manifest) if cut.is_some() && tables.plan.len() < manifest.planned as usize => {
                words.push(format!(
                    "the log ends inside its plan: {} of {} rows",
                    tables.plan.len(),
                    manifest.planned
                ));
            }
            Some(_) => {}
        }
        words.extend(self.counts(tables));
        words.extend(self.missing_blocks());
        words
    }

    fn counts(&self, tables: &Tables) -> Vec<String> {
        counted_words(&[
            (
                tables.lost_rows,
                [
                    "row of the plan is lost; its request has no plan",
                    "rows of the plan are lost; their requests have no plan",
                ],
                "",
            ),
            (
                tables.plan_conflicts,
                ["row of the plan repeats or exceeds", "rows of the plan repeat or exceed"],
                " it; ignored",
            ),
            (
                tables.lost_names,
                ["session name belongs", "session names belong"],
                " to no session; ignored",
            ),
            (
                self.late_blocks,
                ["block of the plan comes", "blocks of the plan come"],
                " after the first record; ignored",
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
        ])
    }

    /// Whether records may have been in what cannot be read.
    pub(super) fn has_gaps(&self) -> bool {
        self.damaged_bytes > 0 || self.sequences.values().any(|sequence| sequence.missing > 0)
    }

    /// Gaps in the blocks' numbers.
    fn missing_blocks(&self) -> impl Iterator<Item = String> {
        let missing = self.sequences.iter().filter(|(_, sequence)| sequence.missing > 0);
        missing.map(|(&core, sequence)| {
            let blocks = counted(sequence.missing, "block");
            let are = agreeing(sequence.missing, "is", "are");
            let who = match core {
                CoreIndex::CONDUCTOR => "the conductor".to_owned(),
                core => format!("core {}", core.0),
            };
            format!("{blocks} of {who} {are} missing")
        })
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
