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
        while let Some(window) = unpacker.next_window()? {
            bytes.extend_from_slice(window);
            check(path, bytes.len())?;
        }
        return Ok((bytes, len));
    }
    check(path, usize::try_from(len).unwrap_or(usize::MAX))?;
    bytes.reserve_exact(usize::try_from(len).unwrap_or(0));
    while let Some(window) = file.next_window()? {
        bytes.extend_from_slice(window);
    }
    Ok((bytes, len))
}

fn check(path: &Path, len: usize) -> Result<(), TraceError> {
    if len <= TRACE_LINE_BYTES_MAX {
        return Ok(());
    }
    let right = format!("right would be at most {TRACE_LINE_BYTES_MAX} bytes in one file of JSON");
    Err(TraceError::file(path, format!("has {len} bytes or more; {right}")))
}
