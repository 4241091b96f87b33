//! Heads, texts and tails → the parts of every request.
//!
//! Parts of one request that lie side by side become one. A request that would still have more
//! parts than one write takes gets its text copied behind its head, and is counted. Everything that
//! many requests have in common (the head's first half, the JSON behind the text) is kept once.

use std::collections::HashMap;

use onbeat_shared::log::plan_row::PlanRow;
use onbeat_shared::trace::Trace;
use onbeat_shared::trace::record::Record;
use onbeat_shared::trace::recorded;

use crate::limits::WRITE_PARTS_MAX;
use crate::plan::Plan;
use crate::render::arena::Texts;
use crate::render::around::{Around, Closings};
use crate::render::body::{Limits, opening, spans};
use crate::render::history::Histories;
use crate::render::layout::{Layout, requests};
use crate::render::{Bodies, Part, RenderError, RenderOptions, head};

/// Heads are kept in chunks of about this size.
const HEAD_CHUNK_BYTES: usize = 1 << 20;

/// Puts the requests together.
struct Assembler<'a> {
    options: &'a RenderOptions,
    layout: &'a Layout,
    places: Vec<Part>,
    /// Where recorded prompts lie, in chunks from `first_recorded` on.
    recorded: recorded::Texts,
    first_recorded: u32,
    chunks: Vec<Box<[u8]>>,
    /// The chunk of heads being filled; it will be the next of `chunks`.
    heads: Vec<u8>,
    /// For each server, what all heads start with.
    commons: Vec<Part>,
    /// For each pair of output lengths, what stands behind the text.
    closings: HashMap<Limits, Part>,
    /// What stands before the text.
    opening: Part,
    histories: Option<Histories>,
    /// Bytes of each request's own text.
    text_bytes: Vec<u64>,
    parts: Vec<Part>,
    first_part: Vec<u64>,
    body_bytes: Vec<u64>,
    text: Vec<Part>,
    copied: u64,
    /// The request's number in the whole plan.
    number: u32,
}

/// Puts together all requests of a plan.
pub(crate) fn assemble(
    plan: &Plan,
    trace: &Trace,
    options: &RenderOptions,
    layout: &Layout,
    texts: Texts,
    recorded: recorded::Texts,
    histories: Option<Histories>,
) -> Result<Bodies, RenderError> {
    let closings = Closings::of(plan, trace, options);
    let mut assembler = Assembler::new(options, layout, &closings, texts, recorded)?;
    assembler.histories = histories;
    assembler.first_part.reserve_exact(plan.rows.len() + 1);
    assembler.body_bytes.reserve_exact(plan.rows.len());
    let mut around = Around::default();
    for (row, record) in requests(plan, trace) {
        let session = &plan.sessions[row.session.as_usize()];
        assembler.gather_text(trace, plan.copy(row.request), row, record);
        assembler.gather_recorded(plan.record_of[row.request.as_usize()]);
        around.fill(plan, trace, options, &closings, row.request);
        assembler.number = plan.number(row.request).0;
        if assembler.histories.as_ref().is_some_and(|all| all.is_turn(row.request)) {
            assembler.turn(row, session, &around);
        } else {
            assembler.request(row, session, &around);
        }
    }
    assembler.seal_heads();
    if let Some(histories) = &mut assembler.histories {
        histories.measure(&assembler.text_bytes, &assembler.body_bytes);
    }
    assembler.first_part.push(assembler.parts.len() as u64);
    Ok(Bodies {
        chunks: assembler.chunks,
        parts: assembler.parts,
        first_part: assembler.first_part,
        body_bytes: assembler.body_bytes,
        histories: assembler.histories,
        copied: assembler.copied,
    })
}

impl<'a> Assembler<'a> {
    fn new(
        options: &'a RenderOptions,
        layout: &'a Layout,
        closings: &Closings,
        texts: Texts,
        mut recorded: recorded::Texts,
    ) -> Result<Self, RenderError> {
        head::check_session_header(options)?;
        let Texts { mut chunks, places } = texts;
        let first_recorded = u32::try_from(chunks.len()).expect("a chunk has many words");
        chunks.append(&mut recorded.take_chunks());
        let mut shared = Vec::new();
        let chunk = u32::try_from(chunks.len()).expect("a chunk has many words");
        let mut share = |bytes: &[u8]| {
            let start = u32::try_from(shared.len()).expect("few and short");
            shared.extend_from_slice(bytes);
            Part { chunk, start, len: u32::try_from(bytes.len()).expect("short") }
        };
        let mut commons = Vec::with_capacity(options.destinations.len());
        for destination in &options.destinations {
            commons.push(share(&head::common(destination, options)?));
        }
        let opening = share(opening(options.endpoint));
        let closings = closings.iter().map(|(limits, bytes)| (limits, share(&bytes))).collect();
        chunks.push(shared.into_boxed_slice());
        Ok(Self {
            options,
            layout,
            places,
            recorded,
            first_recorded,
            chunks,
            heads: Vec::with_capacity(HEAD_CHUNK_BYTES + HEAD_CHUNK_BYTES / 8),
            commons,
            closings,
            opening,
            histories: None,
            text_bytes: Vec::new(),
            parts: Vec::new(),
            first_part: Vec::new(),
            body_bytes: Vec::new(),
            text: Vec::new(),
            copied: 0,
            number: 0,
        })
    }

    /// Puts a request together from the text that was gathered and what stands around it.
    fn request(&mut self, row: &PlanRow, session: &str, around: &Around) {
        let text_bytes: u64 = self.text.iter().map(|part| u64::from(part.len)).sum();
        self.text_bytes.push(text_bytes);
        let body_bytes = around.bytes() as u64 + text_bytes;
        self.first_part.push(self.parts.len() as u64);
        self.body_bytes.push(body_bytes);
        let start = self.heads.len();
        head::append_own(&mut self.heads, self.options, self.number, session, body_bytes);
        self.heads.extend_from_slice(&around.before);
        // Besides the text there are the head's two halves and the closing.
        if self.text.len() + 3 > WRITE_PARTS_MAX {
            self.copy_text();
        }
        let own = self.head_part(start);
        self.parts.push(self.commons[usize::from(row.target)]);
        self.parts.push(own);
        self.parts.append(&mut self.text);
        self.close(around);
    }

    /// [`Assembler::request`] for a turn that repeats others or is repeated: its text stands apart,
    /// and the head of one that repeats others ends where the length of its body belongs.
    fn turn(&mut self, row: &PlanRow, session: &str, around: &Around) {
        let histories = self.histories.as_ref().expect("it knows the turns");
        let is_first = histories.before(row.request).is_empty();
        let mark = &around.before[self.opening.len as usize..];
        let words: u64 = self.text.iter().map(|part| u64::from(part.len)).sum();
        let text_bytes = mark.len() as u64 + words;
        let body_bytes = around.bytes() as u64 + words;
        self.first_part.push(self.parts.len() as u64);
        self.text_bytes.push(text_bytes);
        self.body_bytes.push(body_bytes);
        let start = self.heads.len();
        if is_first {
            head::append_own(&mut self.heads, self.options, self.number, session, body_bytes);
        } else {
            head::append_open(&mut self.heads, self.options, self.number, session);
        }
        let own = self.head_part(start);
        self.parts.extend([self.commons[usize::from(row.target)], own, self.opening]);
        let start = self.heads.len();
        self.heads.extend_from_slice(mark);
        if self.text.len() + 3 > WRITE_PARTS_MAX {
            self.copy_text();
        }
        if self.heads.len() > start {
            let text = self.head_part(start);
            self.parts.push(text);
        }
        self.parts.append(&mut self.text);
        self.close(around);
    }

    /// What stands behind the text.
    fn close(&mut self, around: &Around) {
        if around.shared {
            self.parts.push(self.closings[&around.limits]);
        } else if !around.after.is_empty() {
            let start = self.heads.len();
            self.heads.extend_from_slice(&around.after);
            let part = self.head_part(start);
            self.parts.push(part);
        }
        if self.heads.len() >= HEAD_CHUNK_BYTES {
            self.seal_heads();
        }
    }

    /// Copies the text behind what was written last.
    fn copy_text(&mut self) {
        for part in self.text.drain(..) {
            let from = part.start as usize;
            let chunk = &self.chunks[part.chunk as usize];
            self.heads.extend_from_slice(&chunk[from..from + part.len as usize]);
            self.copied += u64::from(part.len);
        }
    }

    /// The part from `start` in the chunk of heads up to its present end.
    fn head_part(&self, start: usize) -> Part {
        let short = |len: usize| u32::try_from(len).expect("bounded: see PROMPT_TOKENS_MAX");
        let chunk = u32::try_from(self.chunks.len()).expect("chunks are large");
        Part { chunk, start: short(start), len: short(self.heads.len() - start) }
    }

    /// The slices of a request's text, neighbours joined, into `self.text`.
    fn gather_text(&mut self, trace: &Trace, copy: u32, row: &PlanRow, record: &Record) {
        self.text.clear();
        for span in spans(trace, record) {
            let item = self.layout.item(copy, row, span);
            let mut part = self.places[item];
            if span.words() < self.layout.items[item].words {
                let start = part.start as usize;
                let text = &self.chunks[part.chunk as usize][start..start + part.len as usize];
                part.len = prefix_bytes(text, span.words());
            }
            match self.text.last_mut() {
                Some(last) if last.chunk == part.chunk && last.start + last.len == part.start => {
                    last.len += part.len;
                }
                _ => self.text.push(part),
            }
        }
    }

    /// The slice of a recorded prompt, into `self.text`.
    fn gather_recorded(&mut self, place: u32) {
        if let Some((chunk, start, len)) = self.recorded.place(place).filter(|place| place.2 > 0) {
            self.text.push(Part { chunk: self.first_recorded + chunk, start, len });
        }
    }

    fn seal_heads(&mut self) {
        let heads = self.heads.as_slice().into();
        self.chunks.push(heads);
        self.heads.clear();
    }
}

/// Bytes of the first `words` words of a text of more.
fn prefix_bytes(text: &[u8], words: u32) -> u32 {
    let end = memchr::memchr_iter(b' ', text).nth(words as usize);
    u32::try_from(end.unwrap_or(text.len())).expect("a part's length fits")
}
