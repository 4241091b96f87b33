//! What an Arrow file says of its own lengths, against the bytes that it has.
//!
//! Its reader makes room for a footer, for blocks and for what a compressed buffer claims to unpack
//! to before it looks whether they are there, so that a few bytes can ask for all memory. What is
//! longer than the file is refused before, and so are columns of a batch that claim too much
//! together (see `unpacking`). What else is wrong is for the reader to say.

use std::fs::File;
use std::os::unix::fs::FileExt;

use arrow_ipc::reader::read_footer_length;
use arrow_ipc::{
    Block, Field, Footer, MetadataVersion, RecordBatch, Type, UnionMode, root_as_footer,
    root_as_message,
};

use crate::trace::columns::unpacking::{Claims, Page};
use crate::trace::scan::shown;

/// Bytes at the end: the footer's length, and the mark.
const TRAILER_BYTES: u64 = 10;
/// What stands before the length of a message, in all but old files.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// Bytes of a compressed buffer before what is compressed: how long it was.
const CLAIM_BYTES: u64 = 8;

/// Whether the footer and all blocks that it names lie inside the file, and whether its
/// dictionaries, the columns of these names together and each of the others may unpack to what they
/// claim.
///
/// # Errors
/// What does not, in words.
pub(super) fn check_lengths(file: &File, names: &[&str]) -> Result<(), String> {
    let len = file.metadata().map_err(|error| error.to_string())?.len();
    let Some(before) = len.checked_sub(TRAILER_BYTES) else {
        return Err(format!("it has only {len} bytes"));
    };
    let mut trailer = [0; 10];
    read(file, &mut trailer, before)?;
    let Ok(footer_len) = read_footer_length(trailer) else { return Ok(()) };
    let Some(start) = before.checked_sub(footer_len as u64) else {
        return Err(format!("its footer would have {footer_len} bytes, the file has {len}"));
    };
    let mut footer = vec![0; footer_len];
    read(file, &mut footer, start)?;
    let Ok(footer) = root_as_footer(&footer) else { return Ok(()) };
    let blocks = [footer.dictionaries(), footer.recordBatches()];
    for block in blocks.into_iter().flatten().flatten() {
        if end_of(block).is_none_or(|end| end > len) {
            return Err(format!("it names a block of bytes that it has not: {block:?}"));
        }
    }
    let mut dictionaries = Claims::default();
    for block in footer.dictionaries().into_iter().flatten() {
        check_block(file, block, &footer, names, &mut dictionaries)?;
    }
    for block in footer.recordBatches().into_iter().flatten() {
        check_block(file, block, &footer, names, &mut Claims::default())?;
    }
    Ok(())
}

fn read(file: &File, bytes: &mut [u8], at: u64) -> Result<(), String> {
    file.read_exact_at(bytes, at).map_err(|error| error.to_string())
}

/// Whether what a block holds may unpack to what it claims.
fn check_block(
    file: &File,
    block: &Block,
    footer: &Footer<'_>,
    names: &[&str],
    claims: &mut Claims,
) -> Result<(), String> {
    let Ok(start) = u64::try_from(block.offset()) else { return Ok(()) };
    let Ok(head_len) = u32::try_from(block.metaDataLength()) else { return Ok(()) };
    let mut head = vec![0; head_len as usize];
    read(file, &mut head, start)?;
    let behind = if head.starts_with(&CONTINUATION) { 8 } else { 4 };
    // Its reader looks for the message in all of the block, and may find what is not here.
    let Some(Ok(message)) = head.get(behind..).map(root_as_message) else {
        return Err(format!("its block has no message of {head_len} bytes: {block:?}"));
    };
    let fields = footer.schema().and_then(|schema| schema.fields());
    let body = Body { file, start: start + u64::from(head_len), version: message.version() };
    if let Some(dictionary) = message.header_as_dictionary_batch() {
        let Some(batch) = dictionary.data() else { return Ok(()) };
        let is_own =
            |field: &Field<'_>| field.dictionary().is_some_and(|it| it.id() == dictionary.id());
        let own = fields.into_iter().flatten().find(is_own).and_then(|field| field.name());
        let owner = Owner { end: usize::MAX, name: own.unwrap_or(INSIDE), is_read: true };
        return body.check(&batch, &[owner], claims);
    }
    let Some(batch) = message.header_as_record_batch() else { return Ok(()) };
    let mut texts = batch.variadicBufferCounts().into_iter().flatten();
    let mut owners: Vec<Owner<'_>> = Vec::new();
    for field in fields.into_iter().flatten() {
        let first = owners.last().map_or(0, |owner| owner.end);
        let end = body.buffers_of(&field, &mut texts).and_then(|own| first.checked_add(own));
        let name = field.name().unwrap_or_default();
        // Of what is not known it is not known either where it ends.
        let Some(end) = end else { break };
        owners.push(Owner { end, name, is_read: names.contains(&name) });
    }
    body.check(&batch, &owners, claims)
}

/// What a column is called that is inside another.
const INSIDE: &str = "inside of another";

/// A column with its buffers among those of a batch, up to the one at `end`.
struct Owner<'a> {
    end: usize,
    name: &'a str,
    is_read: bool,
}

/// Where the buffers of a message lie.
struct Body<'a> {
    file: &'a File,
    start: u64,
    version: MetadataVersion,
}

impl Body<'_> {
    /// Adds what the buffers of columns that are read claim, and looks at each of the others: what
    /// a damaged file says of its columns need not be what its reader makes of it.
    fn check(
        &self,
        batch: &RecordBatch<'_>,
        owners: &[Owner<'_>],
        claims: &mut Claims,
    ) -> Result<(), String> {
        if batch.compression().is_none() {
            return Ok(());
        }
        for (number, buffer) in batch.buffers().into_iter().flatten().enumerate() {
            let packed = u64::try_from(buffer.length()).ok();
            let packed = packed.and_then(|packed| packed.checked_sub(CLAIM_BYTES));
            let place = u64::try_from(buffer.offset()).ok();
            let place = place.and_then(|place| self.start.checked_add(place));
            let (Some(packed), Some(place)) = (packed, place) else { continue };
            let mut claim = [0; 8];
            read(self.file, &mut claim, place)?;
            // Less than nothing: it is not compressed, or wrong.
            let unpacked = u64::try_from(i64::from_le_bytes(claim)).unwrap_or(0);
            let part = Page { unpacked, packed, ..Page::default() };
            let owner = owners.iter().find(|owner| number < owner.end);
            let added = match owner {
                Some(Owner { is_read: false, .. }) => Claims::default().add(part),
                _ => claims.add(part),
            };
            let name = owner.map_or("nobody knows which", |owner| owner.name);
            added.map_err(|words| format!("column {}: {words}", shown(name.as_bytes())))?;
        }
        Ok(())
    }

    /// How many buffers a batch has for a field, as its reader counts them; `None` where the file
    /// does not say, or of a type that is not known.
    fn buffers_of(
        &self,
        field: &Field<'_>,
        texts: &mut impl Iterator<Item = i64>,
    ) -> Option<usize> {
        if field.dictionary().is_some() {
            return Some(2);
        }
        let (own, nested) = match field.type_type() {
            Type::Null => (0, false),
            Type::RunEndEncoded => (0, true),
            Type::Utf8 | Type::Binary | Type::LargeUtf8 | Type::LargeBinary => (3, false),
            Type::Utf8View | Type::BinaryView => {
                (usize::try_from(texts.next()?).ok()?.checked_add(2)?, false)
            }
            Type::List | Type::LargeList | Type::Map => (2, true),
            Type::ListView | Type::LargeListView => (3, true),
            Type::FixedSizeList | Type::Struct_ => (1, true),
            Type::Union => {
                let is_dense = field.type_as_union()?.mode() == UnionMode::Dense;
                let is_old = self.version < MetadataVersion::V5;
                (1 + usize::from(is_dense) + usize::from(is_old), true)
            }
            Type::NONE => return None,
            _ => (2, false),
        };
        let mut all = own;
        if nested {
            for child in field.children().into_iter().flatten() {
                all = all.checked_add(self.buffers_of(&child, texts)?)?;
            }
        }
        Some(all)
    }
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
            let words = check_lengths(&file, &[]).expect_err("too long");
            assert!(words.contains("would have") || words.contains("only 6 bytes"), "{words}");
        }
    }
}
