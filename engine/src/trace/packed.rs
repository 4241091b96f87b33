//! Compressed trace files, told by their first bytes and read as a stream.
//!
//! gzip (also several members, one after the other, and zeros behind them, which fill a tape's last
//! block) and Zstandard (also several frames). What comes out is handed over in windows like those
//! of a plain file, so lines have the same numbers as in the unpacked file; the digest and the
//! size are those of the file as given. How much may come out is bounded, and so is the memory that
//! unpacking takes: a file made to unpack without end is an error, not the end of the machine. Who
//! keeps more than a window asks how much may stand in memory together.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::GzDecoder;
use sha2::{Digest, Sha256};
use zstd::stream::read::Decoder as ZstdDecoder;

use crate::limits::{
    TRACE_LINE_BYTES_MAX, TRACE_UNPACK_BYTES_FREE, TRACE_UNPACK_RATIO_MAX,
    TRACE_UNPACKED_BYTES_MAX, TRACE_WINDOW_BYTES,
};
use crate::trace::TraceError;
use crate::trace::lines::{FileFacts, hexadecimal, start_of};
use crate::trace::stamp::{Stamp, changed};

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    Gzip,
    Zstd,
}

/// A compressed file, to be read once from start to end.
pub(crate) struct Unpacker<'a> {
    path: &'a Path,
    packing: Packing,
    decoder: Decoder,
    stamp: Stamp,
    window: Vec<u8>,
    unpacked: u64,
    most: u64,
}

enum Decoder {
    Gzip(Members),
    Zstd(ZstdDecoder<'static, BufReader<Digested>>),
}

/// The members of a gzip file, one after the other, as one stream.
struct Members {
    /// `None` only while one member makes way for the next.
    member: Option<GzDecoder<BufReader<Digested>>>,
}

/// What follows the last member is neither another one nor zeros.
#[derive(Debug)]
struct Foreign;

/// A file whose bytes are counted and digested as they are read.
struct Digested {
    file: File,
    digest: Sha256,
    bytes: u64,
}

/// Compressed bytes that are read at a time.
const READ_BYTES: usize = 256 * 1024;

impl Packing {
    /// How the file is compressed; `None` when it is not, or is no regular file.
    pub(crate) fn of_file(path: &Path) -> Result<Option<Self>, TraceError> {
        Ok(start_of(path, 4)?.and_then(|start| Self::of(&start)))
    }

    /// What a file that starts like this is compressed with.
    pub(crate) fn of(start: &[u8]) -> Option<Self> {
        match start {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            // A frame, or a skippable one, which parallel compressors put first.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstd),
            _ => None,
        }
    }

    /// Its name and how to unpack it by hand.
    pub(crate) const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Gzip => ("gzip", "gzip -d"),
            Self::Zstd => ("zstd", "zstd -d"),
        }
    }
}

impl<'a> Unpacker<'a> {
    /// Opens a file that is known to be packed so.
    pub(crate) fn open(path: &'a Path, packing: Packing) -> Result<Self, TraceError> {
        Self::with_limit(path, packing, TRACE_UNPACKED_BYTES_MAX)
    }

    fn with_limit(path: &'a Path, packing: Packing, most: u64) -> Result<Self, TraceError> {
        let file = File::open(path).map_err(|error| TraceError::io("open", path, error))?;
        let meta = file.metadata().map_err(|error| TraceError::io("look at", path, error))?;
        let stamp = Stamp::of(&meta);
        let file = Digested { file, digest: Sha256::new(), bytes: 0 };
        let file = BufReader::with_capacity(READ_BYTES, file);
        let decoder = match packing {
            Packing::Gzip => Decoder::Gzip(Members { member: Some(GzDecoder::new(file)) }),
            Packing::Zstd => {
                let decoder = ZstdDecoder::with_buffer(file);
                Decoder::Zstd(decoder.map_err(|error| TraceError::io("unpack", path, error))?)
            }
        };
        Ok(Self { path, packing, decoder, stamp, window: Vec::new(), unpacked: 0, most })
    }

    /// The next window of what comes out; `None` at its end.
    pub(crate) fn next_window(&mut self) -> Result<Option<&[u8]>, TraceError> {
        if self.window.is_empty() {
            // As the system gives it, so that what is not used is never touched.
            self.window = vec![0; TRACE_WINDOW_BYTES];
        }
        let mut filled = 0;
        while filled < self.window.len() {
            let rest = &mut self.window[filled..];
            let read = match &mut self.decoder {
                Decoder::Gzip(decoder) => decoder.read(rest),
                Decoder::Zstd(decoder) => decoder.read(rest),
            };
            match read {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.unpacked += filled as u64;
                    self.check()?;
                    return Err(self.damaged(&error));
                }
            }
        }
        self.unpacked += filled as u64;
        if self.unpacked > self.most {
            let (name, by_hand) = self.packing.words();
            return Err(TraceError::file(
                self.path,
                format!(
                    "is {name}-compressed and unpacks to more than {} bytes; if it is meant so, \
                     unpack it first ({by_hand})",
                    self.most
                ),
            ));
        }
        if filled == 0 {
            self.check()?;
        }
        Ok((filled > 0).then(|| &self.window[..filled]))
    }

    /// Most bytes that a line, or all that comes out, may have where it is kept in memory.
    pub(crate) fn together_max(&self) -> usize {
        let most = self.stamp.bytes().saturating_mul(TRACE_UNPACK_RATIO_MAX);
        let most = usize::try_from(most.max(TRACE_UNPACK_BYTES_FREE)).unwrap_or(usize::MAX);
        most.min(TRACE_LINE_BYTES_MAX)
    }

    /// Whether the file is still as it was opened.
    ///
    /// # Errors
    /// That it changed, when it did.
    pub(crate) fn check(&self) -> Result<(), TraceError> {
        let file = match &self.decoder {
            Decoder::Gzip(members) => members.file(),
            Decoder::Zstd(decoder) => Some(decoder.get_ref()),
        };
        let Some(file) = file else { return Ok(()) };
        let meta = file.get_ref().file.metadata();
        let meta = meta.map_err(|error| TraceError::io("look at", self.path, error))?;
        if Stamp::of(&meta) == self.stamp { Ok(()) } else { Err(changed(self.path)) }
    }

    /// What is known of the file once all of it was read.
    pub(crate) fn facts(self) -> Result<FileFacts, TraceError> {
        let mut file = match self.decoder {
            Decoder::Gzip(members) => members.into_inner(),
            Decoder::Zstd(decoder) => decoder.finish(),
        };
        io::copy(&mut file, &mut io::sink())
            .map_err(|error| TraceError::io("read", self.path, error))?;
        let Digested { digest, bytes, .. } = file.into_inner();
        Ok(FileFacts { sha256: hexadecimal(&digest.finalize()), bytes })
    }

    fn damaged(&self, error: &io::Error) -> TraceError {
        let (name, by_hand) = self.packing.words();
        if error.get_ref().is_some_and(|inner| inner.is::<Foreign>()) {
            return TraceError::file(
                self.path,
                format!(
                    "is {name}-compressed, and behind the {} bytes that were in it stands \
                     something else; right would be the end, zeros or more of {name}: pack again \
                     what {by_hand} makes of it",
                    self.unpacked
                ),
            );
        }
        let torn = error.kind() == io::ErrorKind::UnexpectedEof;
        let why = if torn { "it ends too early".to_owned() } else { error.to_string() };
        TraceError::file(
            self.path,
            format!(
                "is {name}-compressed and cannot be unpacked behind {} bytes of what was in it: \
                 {why}; {by_hand} would say the same of it",
                self.unpacked
            ),
        )
    }
}

impl Members {
    /// Goes on to the next member; `false` at the end.
    fn go_on(&mut self) -> io::Result<bool> {
        let Some(member) = &mut self.member else { return Ok(false) };
        let file = member.get_mut();
        let mut padded = false;
        loop {
            let bytes = file.fill_buf()?;
            let Some(first) = bytes.first() else { return Ok(false) };
            match *first {
                0 => {
                    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
                    file.consume(zeros);
                    padded = true;
                }
                // The rest of its mark is the decoder's business.
                0x1f if !padded => break,
                _ => return Err(io::Error::new(io::ErrorKind::InvalidData, Foreign)),
            }
        }
        self.member = self.member.take().map(|ended| GzDecoder::new(ended.into_inner()));
        Ok(true)
    }

    fn file(&self) -> Option<&BufReader<Digested>> {
        self.member.as_ref().map(GzDecoder::get_ref)
    }

    fn into_inner(self) -> BufReader<Digested> {
        self.member.expect("one makes way for the next at once").into_inner()
    }
}

impl Read for Members {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(member) = &mut self.member else { return Ok(0) };
            let read = member.read(out)?;
            if read > 0 || out.is_empty() || !self.go_on()? {
                return Ok(read);
            }
        }
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("something else follows")
    }
}

impl std::error::Error for Foreign {}

impl Read for Digested {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(out)?;
        self.digest.update(&out[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).expect("into memory");
        encoder.finish().expect("into memory")
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        zstd::encode_all(bytes, 1).expect("into memory")
    }

    fn file_of(bytes: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(bytes).expect("written");
        file
    }

    /// What comes out of a file, and what is known of it then.
    fn unpacked(bytes: &[u8], most: u64) -> Result<(Vec<u8>, FileFacts), String> {
        let file = file_of(bytes);
        let packing = Packing::of_file(file.path()).expect("readable").expect("packed");
        let words = |error: TraceError| error.to_string();
        let mut unpacker = Unpacker::with_limit(file.path(), packing, most).map_err(words)?;
        let mut out = Vec::new();
        while let Some(window) = unpacker.next_window().map_err(words)? {
            out.extend_from_slice(window);
        }
        Ok((out, unpacker.facts().map_err(words)?))
    }

    #[test]
    fn members_and_frames_follow_each_other() {
        let skippable = [0x51, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9];
        for packed in [
            [gzip(b"one\n"), gzip(b""), gzip(b"two")].concat(),
            [zstd(b"one\n"), zstd(b"two")].concat(),
            [skippable.to_vec(), zstd(b"one\ntwo")].concat(),
            [gzip(b"one\n"), gzip(b"two"), vec![0; 3]].concat(),
            [gzip(b"one\ntwo"), vec![0; 2 * READ_BYTES]].concat(),
        ] {
            let (out, facts) = unpacked(&packed, 100).expect("whole");
            assert_eq!(out, b"one\ntwo");
            assert_eq!(facts.bytes, packed.len() as u64);
            assert_eq!(facts.sha256, hexadecimal(&Sha256::digest(&packed)));
        }
    }

    #[test]
    fn what_is_longer_than_a_window_comes_whole() {
        let bytes: Vec<u8> = (0..=250).cycle().take(TRACE_WINDOW_BYTES + 5).collect();
        for packed in [gzip(&bytes), zstd(&bytes)] {
            let (out, _) = unpacked(&packed, u64::MAX).expect("whole");
            assert!(out == bytes, "every byte comes once, in order");
        }
    }

    #[test]
    fn a_bomb_ends_at_the_limit() {
        let bytes = vec![b' '; 1 << 20];
        for (packed, name) in [(gzip(&bytes), "gzip -d"), (zstd(&bytes), "zstd -d")] {
            assert!(packed.len() < 10_000 && unpacked(&packed, 1 << 20).is_ok());
            let words = unpacked(&packed, (1 << 20) - 1).expect_err("one byte too many");
            assert!(words.contains("more than 1048575 bytes") && words.contains(name), "{words}");
        }
    }

    #[test]
    fn a_cut_or_damaged_file_is_an_error() {
        let text: Vec<u8> = (0..9_000_u32).flat_map(|n| n.to_string().into_bytes()).collect();
        for packed in [gzip(&text), zstd(&text)] {
            let cut = unpacked(&packed[..packed.len() / 2], 1 << 20).expect_err("cut");
            assert!(cut.contains("ends too early"), "{cut}");
            let garbage = unpacked(&[&packed, b"garbage!".as_slice()].concat(), 1 << 20);
            assert!(garbage.is_err());
            let mut damaged = packed.clone();
            let middle = damaged.len() / 2;
            damaged[middle] ^= 0x55;
            let words = unpacked(&damaged, 1 << 20);
            assert!(words.map_or(true, |(out, _)| out != text), "the checksum or the text differs");
        }
    }

    #[test]
    fn what_follows_a_gzip_file_is_told_with_the_bytes_before_it() {
        for behind in [b"garbage!".as_slice(), b"\0\0x", b"\0\x1f\x8b"] {
            let packed = [gzip(b"one\n").as_slice(), &gzip(b"two"), behind].concat();
            let words = unpacked(&packed, 100).expect_err("something else");
            assert!(words.contains("behind the 7 bytes that were in it stands"), "{words}");
        }
        let packed = [gzip(b"one\ntwo").as_slice(), b"\x1fx"].concat();
        let words = unpacked(&packed, 100).expect_err("no member");
        assert!(words.contains("behind 7 bytes of what was in it"), "{words}");
    }

    #[test]
    fn plain_files_are_not_packed() {
        assert_eq!(Packing::of(b"{\"timestamp\":0}"), None);
        assert_eq!(Packing::of(b""), None);
        assert_eq!(Packing::of_file(Path::new("/dev/null")).expect("looked at"), None);
    }
}
