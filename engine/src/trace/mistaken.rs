//! What is given as a trace by mistake, said by its name, with what to do instead.
//!
//! Only what its first bytes tell for sure, in the file or in what is packed in it. Files that a
//! reader of a format refuses with better words are left to it.

use std::path::Path;

use onbeat_shared::log::header::FILE_MARK;

use crate::trace::TraceError;
use crate::trace::lines::start_of;
use crate::trace::packed::{Packing, Unpacker};

/// Bytes that are looked at: a tar archive's mark stands in its first block.
const START_BYTES: u64 = 512;

/// Refuses a file that is surely no trace; what cannot be looked at is left to who reads it.
///
/// # Errors
/// When it is one, or cannot be read.
pub(crate) fn check(path: &Path) -> Result<(), TraceError> {
    let Some(start) = start_of(path, START_BYTES)? else { return Ok(()) };
    if let Some(words) = words_of(&start) {
        return Err(TraceError::file(path, format!("is {words}")));
    }
    let Some(packing) = Packing::of(&start) else { return Ok(()) };
    let (name, by_hand) = packing.words();
    let mut file = Unpacker::open(path, packing)?;
    let inside = file.next_window()?.unwrap_or_default();
    if let Some(again) = Packing::of(inside) {
        let words = format!(
            "is {name}-compressed, and what is in it is compressed once more, with {}; unpack it \
             once ({by_hand}) and give what comes out",
            again.words().0
        );
        return Err(TraceError::file(path, words));
    }
    match words_of(inside) {
        Some(words) => {
            Err(TraceError::file(path, format!("is {name}-compressed and holds {words}")))
        }
        None => Ok(()),
    }
}

fn words_of(start: &[u8]) -> Option<&'static str> {
    if start.starts_with(&FILE_MARK) {
        return Some(
            "an Onbeat run log, which is what comes of a replay; right would be the trace that was \
             replayed (`onbeat report` says what is in a log)",
        );
    }
    let tar = start.get(257..262) == Some(b"ustar");
    tar.then_some("a tar archive; unpack it (tar -xf) and give the file or folder of the trace")
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

    fn refused(bytes: &[u8]) -> String {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(bytes).expect("written");
        check(file.path()).map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn what_is_no_trace_is_called_by_its_name() {
        let mut tar = vec![0; 1_024];
        tar[..5].copy_from_slice(b"a.txt");
        tar[257..262].copy_from_slice(b"ustar");
        let log = onbeat_shared::log::sample::log(1, 2);
        let zstd = zstd::encode_all(&b"{}"[..], 1).expect("into memory");
        for (bytes, words) in [
            (tar.clone(), "is a tar archive; unpack it (tar -xf)"),
            (gzip(&tar), "is gzip-compressed and holds a tar archive"),
            (log.clone(), "is an Onbeat run log"),
            (gzip(&log), "is gzip-compressed and holds an Onbeat run log"),
            (gzip(&gzip(b"{}")), "compressed once more, with gzip; unpack it once (gzip -d)"),
            (gzip(&zstd), "compressed once more, with zstd"),
        ] {
            let found = refused(&bytes);
            assert!(found.contains(words), "{words}: {found}");
        }
        for good in [b"{}".to_vec(), gzip(b"{}"), gzip(b""), Vec::new(), b"PAR1".to_vec()] {
            assert_eq!(refused(&good), "");
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        assert!(check(folder.path()).is_ok(), "a folder is left to who lists it");
    }
}
