//! Recorded texts that stand in their files, read into memory by several threads.
//!
//! For a run whose requests are all rendered before zero. A thread takes the next records nobody
//! has; which thread read a text leaves no trace in it. A text that cannot be read any more, or is
//! another by now, is an error, and nothing has been sent then.

use std::num::NonZero;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use onbeat_shared::trace::recorded::Texts;

use crate::render::RenderError;

/// Bytes of text that a thread reads in one go: a chunk's worth.
const PIECE_BYTES: usize = 16 << 20;

/// Brings all texts into memory; `file` is where they stand, for messages.
pub(super) fn settle(
    texts: &mut Texts,
    records: usize,
    threads: NonZero<usize>,
    file: &str,
) -> Result<(), RenderError> {
    if !texts.is_standing() {
        return Ok(());
    }
    let pieces = pieces(texts, records);
    let next = AtomicUsize::new(0);
    let from = &*texts;
    let work = || {
        let mut done = Vec::new();
        while let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push((piece.start, from.fetched(piece.clone())));
            if from.fault().is_some() {
                break;
            }
        }
        done
    };
    let helpers = threads.get().min(pieces.len()).saturating_sub(1);
    let fetched = thread::scope(|scope| {
        let mut started = Vec::with_capacity(helpers);
        for number in 0..helpers {
            let builder = thread::Builder::new().name(format!("fetch-{number}"));
            let handle = builder.spawn_scoped(scope, work);
            started.push(handle.map_err(|error| RenderError::Thread(error.to_string()))?);
        }
        let mut fetched = work();
        for handle in started {
            match handle.join() {
                Ok(more) => fetched.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(fetched)
    })?;
    check(texts, file)?;
    for (first, own) in fetched {
        texts.settle(first, own);
    }
    Ok(())
}

/// Refuses texts of which one could not be read where it stands.
pub(super) fn check(texts: &Texts, file: &str) -> Result<(), RenderError> {
    texts.fault().map_or(Ok(()), |fault| {
        Err(RenderError::Unreadable { file: file.to_owned(), words: fault.to_owned() })
    })
}

/// Cuts the records into pieces of about as much text.
fn pieces(texts: &Texts, records: usize) -> Vec<Range<u32>> {
    let records = u32::try_from(records).expect("bounded by REQUESTS_MAX");
    let mut pieces = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for record in 0..records {
        bytes += texts.len_of(record);
        if bytes >= PIECE_BYTES || record + 1 == records {
            pieces.push(start..record + 1);
            (start, bytes) = (record + 1, 0);
        }
    }
    pieces
}
