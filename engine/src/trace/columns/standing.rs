//! Texts that stay in the files they came from: which region is which part of which file.
//!
//! Regions have 4 GiB, so that a place in one takes 32 bits. The files stay open, so they are those
//! that were read, whatever has their names by now. Somebody may still write into them: who reads a
//! text checks that it is one and as long as it was.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use onbeat_shared::trace::recorded::Origin;

/// Bits of a place in a region.
const PLACE_BITS: u32 = 32;

/// The regions of some files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standing {
    files: Vec<Arc<File>>,
    /// For each file, its first region.
    first: Vec<u32>,
    /// For each region, its file.
    file_of: Vec<u32>,
}

impl Standing {
    /// Adds a file of so many bytes; files are numbered in order.
    pub(crate) fn add(&mut self, file: Arc<File>, bytes: u64) {
        let count = |len: usize| u32::try_from(len).expect("files are not that many, nor so large");
        let regions = usize::try_from((bytes >> PLACE_BITS) + 1).expect("files fit addresses");
        self.first.push(count(self.file_of.len()));
        self.file_of.resize(self.file_of.len() + regions, count(self.files.len()));
        self.files.push(file);
    }

    /// The region and the place in it of the byte at `offset` of a file; `None` behind its end as
    /// it was when it was added.
    pub(crate) fn place(&self, file: usize, offset: u64) -> Option<(u32, u32)> {
        let region = self.first[file].checked_add(u32::try_from(offset >> PLACE_BITS).ok()?)?;
        let is_own = self.file_of.get(region as usize).is_some_and(|&own| own as usize == file);
        let start = u32::try_from(offset & u64::from(u32::MAX)).expect("masked");
        is_own.then_some((region, start))
    }
}

impl Origin for Standing {
    fn read(&self, region: u32, start: u32, out: &mut [u8]) -> io::Result<()> {
        let file = self.file_of[region as usize] as usize;
        let base = u64::from(region - self.first[file]) << PLACE_BITS;
        self.files[file].read_exact_at(out, base + u64::from(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_beyond_four_gibibytes_is_read_back_from_its_own_file() {
        let file = |words: &[u8], at: u64| {
            let file = tempfile::tempfile().expect("a temporary file");
            // A hole takes no room.
            file.write_all_at(words, at).expect("written");
            Arc::new(file)
        };
        let far = (1 << PLACE_BITS) + 7;
        let mut standing = Standing::default();
        standing.add(file(b"near", 3), 7);
        standing.add(file(b"far away", far), far + 8);
        standing.add(file(b"last", 0), 4);
        let read = |file: usize, offset: u64| {
            let (region, start) = standing.place(file, offset).expect("in the file");
            let mut out = [0; 4];
            standing.read(region, start, &mut out).map(|()| out)
        };
        assert_eq!(&read(0, 3).expect("there"), b"near");
        assert_eq!(&read(1, far + 4).expect("there"), b"away");
        assert_eq!(&read(2, 0).expect("there"), b"last");
        assert!(read(2, 1).is_err(), "behind the end");
        assert_eq!((standing.place(0, 1 << 32), standing.place(1, 1 << 33)), (None, None));
    }
}
