//! Puts entries into blocks of at most 64 KiB and writes them.

use std::io::{self, Write};

use crate::log::block::{BLOCK_BYTES, BLOCK_HEADER_BYTES, BlockKind, sealed};
use crate::units::CoreIndex;

/// Blocks of one kind as they fill.
pub(super) struct Packing<'a> {
    pub(super) out: &'a mut dyn Write,
    kind: BlockKind,
    /// The number of the next entry, where blocks begin with that.
    next: Option<u32>,
    sequence: u32,
    payload: Vec<u8>,
    count: u32,
}

impl<'a> Packing<'a> {
    pub(super) fn new(out: &'a mut dyn Write, kind: BlockKind) -> Self {
        let is_numbered = matches!(kind, BlockKind::Sessions | BlockKind::Stretches);
        let next = is_numbered.then_some(0);
        Self { out, kind, next, sequence: 0, payload: Vec::new(), count: 0 }
    }

    /// The conductor's records.
    pub(super) fn records(out: &'a mut dyn Write) -> Self {
        Self::new(out, BlockKind::Records)
    }

    pub(super) fn push(&mut self, entry: &[u8]) -> io::Result<()> {
        if self.payload.len() + entry.len() > BLOCK_BYTES - BLOCK_HEADER_BYTES {
            self.flush()?;
        }
        if self.payload.is_empty()
            && let Some(next) = self.next
        {
            self.payload.extend_from_slice(&next.to_le_bytes());
        }
        self.payload.extend_from_slice(entry);
        self.count += 1;
        self.next = self.next.map(|next| next.wrapping_add(1));
        Ok(())
    }

    /// So many blocks are lost before the next one.
    pub(super) fn skip(&mut self, blocks: u32) -> io::Result<()> {
        self.flush()?;
        self.sequence = self.sequence.wrapping_add(blocks);
        Ok(())
    }

    /// A whole block of records of a core.
    pub(super) fn block(
        &mut self,
        core: CoreIndex,
        sequence: u32,
        payload: &[u8],
    ) -> io::Result<()> {
        let count = payload.len() / crate::log::RECORD_BYTES;
        let count = u32::try_from(count).expect("a block has 64 KiB");
        self.out.write_all(&sealed(BlockKind::Records, core, sequence, count, payload))
    }

    /// Writes what there is.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.count > 0 {
            let core = CoreIndex::CONDUCTOR;
            let block = sealed(self.kind, core, self.sequence, self.count, &self.payload);
            self.out.write_all(&block)?;
            self.sequence = self.sequence.wrapping_add(1);
            self.payload.clear();
            self.count = 0;
        }
        Ok(())
    }

    /// Writes the rest.
    pub(super) fn end(mut self) -> io::Result<()> {
        self.flush()
    }
}
