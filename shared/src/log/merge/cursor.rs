//! Reads a log's blocks one after the other from a reader, holding no more than the next ones.

use std::collections::VecDeque;
use std::io::Read;

use super::{MergeError, Source};
use crate::log::Item;
use crate::log::scan::Scanner;

/// Bytes that are read at once.
const PIECE_BYTES: usize = if cfg!(test) { 3_000 } else { 1 << 20 };

/// Where the reading of a log stands.
pub(super) struct Cursor {
    name: String,
    input: Box<dyn Read>,
    bytes: Vec<u8>,
    /// The file's offset of the first of them.
    base: usize,
    scanner: Option<Scanner>,
    ended: bool,
    /// The last item was given.
    over: bool,
}

impl Cursor {
    pub(super) fn open(source: &Source<'_>) -> Result<Self, MergeError> {
        let failed = |error| MergeError::Read(source.name.clone(), error);
        Ok(Self {
            name: source.name.clone(),
            input: (source.open)().map_err(failed)?,
            bytes: Vec::new(),
            base: 0,
            scanner: None,
            ended: false,
            over: false,
        })
    }

    /// Gives the next item to `take`; `None` at the end.
    pub(super) fn next<T>(
        &mut self,
        take: impl FnOnce(Item<'_>) -> T,
    ) -> Result<Option<T>, MergeError> {
        loop {
            if self.over {
                return Ok(None);
            }
            if self.scanner.is_none() {
                let opened = Scanner::open(&self.bytes, self.ended)
                    .map_err(|error| MergeError::Log(self.name.clone(), error))?;
                if let Some((scanner, damaged)) = opened {
                    self.scanner = Some(scanner);
                    if damaged {
                        return Ok(Some(take(Item::DamagedHeader)));
                    }
                }
            }
            if let Some(scanner) = &mut self.scanner {
                let rest = self.bytes.get(scanner.at() - self.base..).unwrap_or_default();
                if let Some(item) = scanner.next(rest, self.ended) {
                    self.over = matches!(item, Item::TornTail { .. });
                    return Ok(Some(take(item)));
                }
                if self.ended {
                    self.over = true;
                    continue;
                }
            }
            self.read_on()?;
        }
    }

    /// Drops what has been read and appends more.
    fn read_on(&mut self) -> Result<(), MergeError> {
        let at = self.scanner.as_ref().map_or(self.base, Scanner::at);
        let read = (at - self.base).min(self.bytes.len());
        self.bytes.drain(..read);
        self.base += read;
        let mut piece = (&mut self.input).take(PIECE_BYTES as u64);
        let found = piece.read_to_end(&mut self.bytes);
        let found = found.map_err(|error| MergeError::Read(self.name.clone(), error))?;
        self.ended = found == 0;
        Ok(())
    }
}

/// The entries of all blocks of one kind before the records, one after the other.
pub(super) struct Entries<T> {
    cursor: Cursor,
    pick: fn(&Item<'_>) -> Option<Vec<T>>,
    ahead: VecDeque<T>,
    over: bool,
}

impl<T> Entries<T> {
    /// Those that `pick` finds in blocks of the log.
    pub(super) fn of(
        source: &Source<'_>,
        pick: fn(&Item<'_>) -> Option<Vec<T>>,
    ) -> Result<Self, MergeError> {
        Ok(Self { cursor: Cursor::open(source)?, pick, ahead: VecDeque::new(), over: false })
    }

    pub(super) fn next(&mut self) -> Result<Option<T>, MergeError> {
        while self.ahead.is_empty() && !self.over {
            let pick = self.pick;
            let found = self.cursor.next(|item| match item {
                Item::Records(_) | Item::Footer(_) => None,
                other => Some(pick(&other)),
            })?;
            match found {
                Some(Some(entries)) => self.ahead.extend(entries.unwrap_or_default()),
                Some(None) | None => self.over = true,
            }
        }
        Ok(self.ahead.pop_front())
    }
}
