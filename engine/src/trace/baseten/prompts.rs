//! The prompts of a Baseten trace, read once it is known which of them are sent.
//!
//! A second pass over the files, of one column: a plan needs none of them, a window few, and what
//! is read lies in memory once, as it goes over the wire; what memory has no room for lies in a file
//! (see `spill`).

use std::path::Path;

use onbeat_shared::trace::Trace;
use onbeat_shared::trace::recorded::Texts;

use crate::trace::TraceError;
use crate::trace::baseten::row::{PROMPT, check_prompt};
use crate::trace::columns::{Table, cells, shards};
use crate::trace::spill::Keeper;

/// Reads the prompts of the records that are `wanted`; the others stay empty.
pub(crate) fn load(
    path: &Path,
    trace: &Trace,
    wanted: &dyn Fn(u32) -> bool,
    memory: u64,
) -> Result<Texts, TraceError> {
    let mut keeper = Keeper::new(path, memory);
    let mut texts = Texts::for_records(trace.records.len());
    let mut record = 0_u32;
    for shard in shards(path)? {
        let mut table = Table::open(&shard.path, shard.kind, &[PROMPT])?;
        while let Some(batch) = table.next()? {
            let changed = || {
                TraceError::file(&shard.path, "changed while it was read; leave it alone meanwhile")
            };
            let column = batch.columns[0].as_deref().ok_or_else(changed)?;
            let column = cells::Texts::of(column).map_err(|_other_type| changed())?;
            for place in 0..batch.rows {
                if record as usize >= trace.records.len() {
                    return Err(changed());
                }
                if wanted(record) {
                    let text = column.get(place).map(std::str::from_utf8);
                    let row = trace.records[record as usize].row;
                    let text = check_prompt(text).map_err(|fault| TraceError::Cell {
                        path: shard.path.clone(),
                        row,
                        fault,
                    })?;
                    texts.put(record, text);
                    keeper.look(&mut texts)?;
                }
                record += 1;
            }
        }
    }
    if record as usize == trace.records.len() {
        return keeper.finish(texts);
    }
    Err(TraceError::file(path, "lost rows while it was read; leave it alone meanwhile"))
}
