//! What an Arrow file says of its own lengths, against the bytes that it has.
//!
//! Its reader makes room for a footer and for blocks before it looks whether they are there, so
//! that twelve bytes can ask for two gigabytes. What is longer than the file is refused before. How
//! much a block's compressed columns claim to unpack to is not looked at here.

use std::fs::File;
use std::os::unix::fs::FileExt;

use arrow_ipc::reader::read_footer_length;
use arrow_ipc::{Block, root_as_footer};

/// Bytes at the end: the footer's length, and the mark.
const TRAILER_BYTES: u64 = 10;

/// Whether the footer and all blocks that it names lie inside the file. What else is wrong with
/// them is for the reader to say.
///
/// # Errors
/// What does not, in words.
pub(super) fn check_lengths(file: &File) -> Result<(), String> {
    let len = file.metadata().map_err(|error| error.to_string())?.len();
    let Some(before) = len.checked_sub(TRAILER_BYTES) else {
        return Err(format!("it has only {len} bytes"));
    };
    let read = |bytes: &mut [u8], at: u64| {
        file.read_exact_at(bytes, at).map_err(|error| error.to_string())
    };
    let mut trailer = [0; 10];
    read(&mut trailer, before)?;
    let Ok(footer_len) = read_footer_length(trailer) else { return Ok(()) };
    let Some(start) = before.checked_sub(footer_len as u64) else {
        return Err(format!("its footer would have {footer_len} bytes, the file has {len}"));
    };
    let mut footer = vec![0; footer_len];
    read(&mut footer, start)?;
    let Ok(footer) = root_as_footer(&footer) else { return Ok(()) };
    let blocks = [footer.dictionaries(), footer.recordBatches()];
    for block in blocks.into_iter().flatten().flatten() {
        if end_of(block).is_none_or(|end| end > len) {
            return Err(format!("it names a block of bytes that it has not: {block:?}"));
        }
    }
    Ok(())
}

/// Where a block ends; `None` when one of its numbers is none that a length can be.
fn end_of(block: &Block) -> Option<u64> {
    let start = u64::try_from(block.offset()).ok()?;
    let head = u64::try_from(block.metaDataLength()).ok()?;
    let body = u64::try_from(block.bodyLength()).ok()?;
    start.checked_add(head)?.checked_add(body)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_footer_that_is_longer_than_its_file_is_not_made_room_for() {
        for bytes in [b"ARROW1ARROW1".as_slice(), b"ARROW1"] {
            let mut file = tempfile::tempfile().expect("a temporary file");
            file.write_all(bytes).expect("written");
            let words = check_lengths(&file).expect_err("too long");
            assert!(words.contains("would have") || words.contains("only 6 bytes"), "{words}");
        }
    }
}
