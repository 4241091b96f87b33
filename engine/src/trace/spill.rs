//! Recorded texts that memory has no room for: a file of our own that has no name any more.
//!
//! Texts stay in memory until there are more than may be; from then on every chunk that is full
//! goes to the file, and at the end the last one too. The file lies in the folder for temporary
//! files (`TMPDIR`), is removed from it at once, and so goes away with the process whatever
//! happens. Reading is by place and may be done from any thread.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use onbeat_shared::trace::recorded::{Elsewhere, Texts};

use crate::trace::TraceError;

/// Keeps the memory of texts within a limit while they are read.
#[derive(Debug)]
pub(crate) struct Keeper<'a> {
    /// What is read, for messages.
    path: &'a Path,
    /// Bytes that may stay in memory.
    limit: u64,
    spill: Option<Spill>,
}

/// A file of chunks.
#[derive(Debug)]
struct Spill {
    file: File,
    /// Where each chunk starts.
    offsets: Vec<u64>,
    end: u64,
}

impl<'a> Keeper<'a> {
    /// Nothing is kept yet.
    pub(crate) const fn new(path: &'a Path, limit: u64) -> Self {
        Self { path, limit, spill: None }
    }

    /// Looks at the texts after one was added.
    pub(crate) fn look(&mut self, texts: &mut Texts) -> Result<(), TraceError> {
        if self.spill.is_none() && texts.copied_bytes() <= self.limit {
            return Ok(());
        }
        texts.pass();
        self.move_out(texts.take_full_chunks())
    }

    /// Texts as they are to be kept.
    pub(crate) fn finish(mut self, mut texts: Texts) -> Result<Texts, TraceError> {
        if self.spill.is_some() {
            self.move_out(texts.take_all_chunks())?;
        }
        if let Some(spill) = self.spill {
            texts.are_at(Arc::new(spill));
        }
        Ok(texts)
    }

    fn move_out(&mut self, chunks: Vec<(u32, Vec<u8>)>) -> Result<(), TraceError> {
        let failed =
            |error| TraceError::io("put into a temporary file the texts of", self.path, error);
        if self.spill.is_none() {
            self.spill = Some(Spill::create().map_err(failed)?);
        }
        let spill = self.spill.as_mut().expect("made above");
        for (number, bytes) in chunks {
            spill.add(number, &bytes).map_err(failed)?;
        }
        Ok(())
    }
}

impl Spill {
    fn create() -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let process = rustix::process::getpid().as_raw_nonzero();
        let path = std::env::temp_dir().join(format!("onbeat-{process}-{number}.texts"));
        let file =
            OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        fs::remove_file(&path)?;
        Ok(Self { file, offsets: Vec::new(), end: 0 })
    }

    /// Adds a chunk; chunks come in the order of their numbers.
    fn add(&mut self, number: u32, bytes: &[u8]) -> io::Result<()> {
        assert_eq!(self.offsets.len(), number as usize, "every chunk comes once, in order");
        self.file.write_all(bytes)?;
        self.offsets.push(self.end);
        self.end += bytes.len() as u64;
        Ok(())
    }
}

impl Elsewhere for Spill {
    fn read(&self, chunk: u32, start: u32, out: &mut [u8]) {
        let at = self.offsets[chunk as usize] + u64::from(start);
        let read = self.file.read_exact_at(out, at);
        read.expect("nobody else can reach the file, and its device was there a moment ago");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_limit_is_read_back_from_the_file() {
        let text = |record: u32| format!("text \"{record}\" ").repeat(100_000 + record as usize);
        let kept = |limit: u64| {
            let mut texts = Texts::for_records(40);
            let mut keeper = Keeper::new(Path::new("t"), limit);
            for record in 0..40 {
                texts.put(record, &text(record));
                keeper.look(&mut texts).expect("there is room");
            }
            keeper.finish(texts).expect("there is room")
        };
        let (inside, outside) = (kept(u64::MAX), kept(30 << 20));
        assert!(!inside.is_elsewhere() && outside.is_elsewhere());
        assert!(outside.bytes() == inside.bytes() && outside.memory_bytes() == 0);
        for record in 0..40 {
            let mut read = Vec::new();
            outside.append(record, &mut read);
            assert!(read == inside.get(record), "record {record}");
            assert_eq!(outside.len_of(record), read.len());
        }
    }
}
