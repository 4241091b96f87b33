//! A whole file in memory, unpacked when it is compressed: for JSON that is one tree.
//!
//! The fast parser unescapes texts in place, and what happens to the file afterwards does not
//! matter. How much may come out is bounded.

use std::path::Path;

use crate::limits::TRACE_LINE_BYTES_MAX;
use crate::trace::TraceError;
use crate::trace::packed::{Packing, Unpacker};
use crate::trace::windows::Windows;

/// The bytes of a file's text, and how many the file itself has.
pub(crate) fn bytes_of(path: &Path) -> Result<(Vec<u8>, u64), TraceError> {
    let packing = if path.is_file() { Packing::of_file(path)? } else { None };
    let mut file = Windows::open(path)?;
    let len = file.len();
    let mut bytes = Vec::new();
    if let Some(packing) = packing {
        let mut unpacker = Unpacker::open(path, packing)?;
        let most = unpacker.together_max();
        while let Some(window) = unpacker.next_window()? {
            check(path, bytes.len() + window.len(), most)?;
            bytes.extend_from_slice(window);
        }
        return Ok((bytes, len));
    }
    check(path, usize::try_from(len).unwrap_or(usize::MAX), TRACE_LINE_BYTES_MAX)?;
    bytes.reserve_exact(usize::try_from(len).unwrap_or(0));
    while let Some(window) = file.next_window()? {
        bytes.extend_from_slice(window);
    }
    Ok((bytes, len))
}

fn check(path: &Path, len: usize, most: usize) -> Result<(), TraceError> {
    if len <= most {
        return Ok(());
    }
    let right = format!("right would be at most {most} bytes in one file of JSON");
    let right = match most {
        TRACE_LINE_BYTES_MAX => right,
        _ => format!("{right} that is packed so small; if it is meant so, unpack it first"),
    };
    Err(TraceError::file(path, format!("has {len} bytes or more; {right}")))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;
    use crate::limits::TRACE_UNPACK_BYTES_FREE;

    #[test]
    fn a_tree_of_nothing_but_blanks_is_not_kept_in_memory() {
        let most = usize::try_from(TRACE_UNPACK_BYTES_FREE).expect("small");
        for (len, is_good) in [(most, true), (most + 1, false)] {
            let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
            let blanks = std::io::repeat(b' ').take(len as u64);
            zstd::stream::copy_encode(blanks, file.as_file_mut(), 1).expect("written");
            file.flush().expect("written");
            let read = bytes_of(file.path());
            assert_eq!(read.is_ok(), is_good);
            if let Err(error) = read {
                let words = error.to_string();
                assert!(words.contains("at most 134217728 bytes in one file of JSON"), "{words}");
            }
        }
    }
}
