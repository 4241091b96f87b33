//! The texts of a layout, written by several threads into chunks.
//!
//! A thread takes the next chunk nobody has, writes it into its own scratch space and keeps a copy
//! of just the right size. Which thread wrote a chunk leaves no trace in it.

use std::num::NonZero;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::prompt::TextKey;
use crate::render::layout::{Item, Layout};
use crate::render::{Part, RenderError};

/// Rendered texts: the chunks, and where each item lies.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    pub(crate) chunks: Vec<Box<[u8]>>,
    pub(crate) places: Vec<Part>,
}

/// A chunk and where each of its items ends.
struct Rendered {
    chunk: usize,
    bytes: Box<[u8]>,
    ends: Vec<u32>,
}

/// Renders every text of a layout.
pub(crate) fn render(layout: &Layout, threads: NonZero<usize>) -> Result<Texts, RenderError> {
    let ranges: Vec<Range<usize>> = [0]
        .iter()
        .chain(&layout.chunk_ends)
        .zip(&layout.chunk_ends)
        .map(|(&start, &end)| start..end)
        .collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut scratch = Vec::new();
        let mut done = Vec::new();
        loop {
            let chunk = next.fetch_add(1, Ordering::Relaxed);
            let Some(range) = ranges.get(chunk) else { return done };
            done.push(chunk_of(chunk, &layout.items[range.clone()], &mut scratch));
        }
    };
    let helpers = threads.get().min(ranges.len()).saturating_sub(1);
    let mut rendered = thread::scope(|scope| {
        let mut started = Vec::with_capacity(helpers);
        for number in 0..helpers {
            let builder = thread::Builder::new().name(format!("render-{number}"));
            let handle = builder.spawn_scoped(scope, work);
            started.push(handle.map_err(|error| RenderError::Thread(error.to_string()))?);
        }
        let mut rendered = work();
        for handle in started {
            match handle.join() {
                Ok(chunks) => rendered.extend(chunks),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(rendered)
    })?;
    rendered.sort_unstable_by_key(|rendered| rendered.chunk);
    let mut texts = Texts::default();
    texts.places.reserve_exact(layout.items.len());
    for Rendered { bytes, ends, .. } in rendered {
        let chunk = u32::try_from(texts.chunks.len()).expect("a chunk has many words");
        let mut start = 0;
        for end in ends {
            texts.places.push(Part { chunk, start, len: end - start });
            start = end;
        }
        texts.chunks.push(bytes);
    }
    Ok(texts)
}

fn chunk_of(chunk: usize, items: &[Item], scratch: &mut Vec<u8>) -> Rendered {
    let words: usize = items.iter().map(|item| item.words as usize).sum();
    let room = TextKey::room(words);
    if scratch.len() < room {
        scratch.resize(room, 0);
    }
    let mut at = 0;
    let mut ends = Vec::with_capacity(items.len());
    for item in items {
        at += item.key.write(item.words as usize, &mut scratch[at..]);
        ends.push(u32::try_from(at).expect("a chunk's size is bounded: see CHUNK_WORDS_MAX"));
    }
    Rendered { chunk, bytes: scratch[..at].into(), ends }
}
