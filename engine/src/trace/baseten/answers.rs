//! The answers a Baseten trace recorded, read for an export that asks for them.
//!
//! A replay has no use for them, and its log holds no text, so they are read from the trace again,
//! once it is sure to be the one that was replayed.

use std::collections::HashMap;
use std::path::Path;

use onbeat_shared::log::header::TraceSource;
use onbeat_shared::log::plan_row::PlanRow;
use onbeat_shared::trace::Format;

use crate::trace::TraceError;
use crate::trace::columns::{Digest, Opened, cells, shards};

const ANSWER: &str = "output_text";
/// What stands for a digest that a log does not have.
const UNKNOWN: &str = "unknown";

/// For each planned request, the answer its row recorded; `None` where the row has none.
///
/// # Errors
/// When the trace cannot be read, is not the one that was replayed, or has no column of answers.
pub fn recorded_answers(
    path: &Path,
    replayed: &TraceSource,
    plan: &[PlanRow],
) -> Result<Vec<Option<String>>, TraceError> {
    if replayed.format != Format::Baseten.name() {
        let words = format!(
            "a {} was replayed, which records no answers; only a {} does",
            replayed.format,
            Format::Baseten.name()
        );
        return Err(TraceError::file(path, words));
    }
    if replayed.sha256 == UNKNOWN {
        let words = "may be the trace that was replayed, or may not: the log does not name its \
                     SHA-256, because the run was killed, or the trace changed, before it was known";
        return Err(TraceError::file(path, words));
    }
    let shards = shards(path)?;
    let digest = Digest::start(path, &shards)?;
    let mut wanted: HashMap<(u32, u64), Vec<usize>> = HashMap::new();
    for (i, row) in plan.iter().enumerate() {
        wanted.entry((row.source, row.row)).or_default().push(i);
    }
    let mut answers = vec![None; plan.len()];
    let mut found = false;
    for (source, shard) in (0_u32..).zip(&shards) {
        let opened = Opened::new(&shard.path, shard.kind)?;
        let mut table = opened.table(&[ANSWER], None)?;
        let mut row = 0_u64;
        while let Some(batch) = table.next()? {
            let Some(column) = batch.columns[0].as_deref() else { break };
            found = true;
            let texts = cells::Texts::of(column).map_err(|kind| {
                TraceError::file(&shard.path, format!("column {ANSWER:?} is {kind}, not text"))
            })?;
            for place in 0..batch.rows {
                row += 1;
                let Some(requests) = wanted.get(&(source, row)) else { continue };
                let Some(bytes) = texts.get(place) else { continue };
                let text = String::from_utf8_lossy(bytes).into_owned();
                for &request in requests {
                    answers[request] = Some(text.clone());
                }
            }
        }
    }
    let digest = digest.finish()?;
    if digest != replayed.sha256 {
        let words = format!(
            "is not the trace that was replayed: its SHA-256 is {digest}, the log names {}",
            replayed.sha256
        );
        return Err(TraceError::file(path, words));
    }
    if !found {
        return Err(TraceError::file(path, format!("has no column {ANSWER:?}")));
    }
    Ok(answers)
}
