//! Plan + trace → the bytes of every request: all before the first one leaves, or ahead of it.
//!
//! A request is head + slices + tail. The text of a block is kept once however many requests share
//! it, neighbouring slices are joined, and no request has more than
//! [`WRITE_PARTS_MAX`](crate::limits::WRITE_PARTS_MAX) parts. The bytes depend on the trace, the
//! plan and the options only, never on when or by how many threads they were rendered. What does
//! not fit the budget all at once is rendered during the run, by a thread that sends nothing
//! ([`Renderer`]); a core finds its requests in its [`supply`] either way.

mod ahead;
mod arena;
mod around;
mod asked;
mod assemble;
mod body;
pub mod echo;
pub mod error;
mod fetch;
mod few;
mod generation;
mod head;
mod history;
mod layout;
mod live;
mod memory;
pub mod options;
mod page;
mod replies;
pub mod secret;
mod spelling;
pub mod supply;
pub mod users;

use std::mem;
use std::num::NonZero;
use std::sync::Arc;

use onbeat_shared::log::plan_row::PlanRow;
use onbeat_shared::trace::Trace;
use onbeat_shared::trace::recorded::Texts;
use onbeat_shared::units::RequestIndex;

use crate::limits::{PROMPT_TOKENS_MAX, RENDER_AHEAD_BYTES, REPLIES_BYTES};
use crate::plan::Plan;
use crate::prompt::vocabulary::Vocabulary;
pub use crate::render::ahead::{Renderer, Step};
use crate::render::around::{Around, Closings};
pub use crate::render::asked::settle_lengths;
pub use crate::render::error::RenderError;
pub use crate::render::few::few;
pub use crate::render::generation::Generation;
pub use crate::render::head::{head_of_question, request_path};
use crate::render::history::{ASSISTANT, Histories, USER};
use crate::render::layout::Layout;
pub use crate::render::memory::{Resident, resident};
pub use crate::render::options::{Context, Destination, Endpoint, RenderOptions, When};
pub use crate::render::secret::{Secret, UrlText};
use crate::render::supply::{Parts, Source};

/// Where one slice of a request lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    chunk: u32,
    start: u32,
    len: u32,
}

/// The bytes of all requests of a plan.
#[derive(Debug)]
pub struct Bodies {
    chunks: Vec<Box<[u8]>>,
    parts: Vec<Part>,
    /// Where each request's parts start, and one past the last request's.
    first_part: Vec<u64>,
    body_bytes: Vec<u64>,
    /// Which requests repeat others, if any do.
    histories: Option<Histories>,
    copied: u64,
}

/// What a run sends, and where its bytes come from.
#[derive(Debug)]
pub struct Prepared {
    /// The plan; its rows say how long bodies are, as far as that is known.
    pub plan: Arc<Plan>,
    /// Where the cores find the bytes.
    pub source: Source,
    /// Who goes on rendering during the run, if not all is rendered.
    pub renderer: Option<Renderer>,
}

/// How much memory rendered requests may take.
#[derive(Clone, Copy, Debug)]
struct Budget {
    /// For rendered requests.
    bytes: u64,
    /// What is held beside them and was counted already.
    held: u64,
    /// Whether the user named it.
    named: bool,
}

/// Bytes of a request beside its text, about: its own half of the head, its parts, its numbers.
const REQUEST_BYTES: u64 = 256;
/// What a request with hints has more, beside its ids: all that stands behind its text.
const HINTED_BYTES: u64 = 128;

/// Renders every request of a plan, or prepares to render it during the run on `cores` cores. The
/// trace is kept only as long as something is to be rendered.
///
/// # Errors
/// When the budget is too small for what `options.when` says, a header cannot be sent, a prompt is
/// too long to be one or cannot be read any more, or a thread cannot be started.
pub fn prepare(
    mut plan: Plan,
    mut trace: Trace,
    options: RenderOptions,
    cores: u16,
) -> Result<Prepared, RenderError> {
    let mut histories = turns(&plan, &trace, &options)?;
    if let Some(histories) = &mut histories {
        histories.reserve(cores, replies_budget(&options));
    }
    if options.when != When::Ahead {
        let is_alone = histories.is_none();
        let layout = measured(&plan, &trace, &options);
        // Recorded prompts are not copied, so they are only taken once they are sure to fit.
        let texts =
            if layout.is_ok() { mem::take(&mut trace.recorded.texts) } else { Texts::default() };
        match layout.and_then(|layout| whole(&plan, &trace, &options, layout, texts, histories)) {
            Ok(bodies) => {
                for row in &mut plan.rows {
                    row.body_bytes = bodies.known_body_bytes(row.request);
                    // What a cache could hold of a prompt that repeats others was not recorded.
                    if bodies.repeats_others(row.request) {
                        (row.ideal_cached_tokens, row.ideal_set_tokens) = (None, None);
                    }
                }
                let source = Source::Whole(Arc::new(bodies));
                return Ok(Prepared { plan: Arc::new(plan), source, renderer: None });
            }
            Err(RenderError::OverBudget { needed, budget, named }) if !is_alone => {
                return Err(RenderError::TurnsOverBudget { needed, budget, named });
            }
            Err(RenderError::OverBudget { .. }) if options.when == When::Auto => {}
            Err(error) => return Err(error),
        }
    }
    check_prompts(&plan, &trace)?;
    let plan = Arc::new(plan);
    let mut budget = Budget::of(&options);
    if budget.named {
        budget = budget.beside(&trace.recorded.texts);
    } else {
        budget.bytes = budget.bytes.min(RENDER_AHEAD_BYTES);
    }
    let renderer = Renderer::new(Arc::clone(&plan), trace, options, cores, budget)?;
    Ok(Prepared { plan, source: renderer.source(), renderer: Some(renderer) })
}

/// Most memory, in bytes, that rendered requests may take.
#[must_use]
pub fn budget_bytes(options: &RenderOptions) -> u64 {
    Budget::of(options).bytes
}

/// Most memory, in bytes, that recorded texts may take before they are rendered: where all requests
/// are rendered at once they are a part of them, else requests need room beside them.
#[must_use]
pub fn texts_budget(plan: &Plan, trace: &Trace, options: &RenderOptions) -> u64 {
    let budget = Budget::of(options).bytes;
    match options.when {
        When::Ahead => budget / 2,
        When::All | When::Auto => budget.saturating_sub(around_at_most(plan, trace, options)),
    }
}

/// Bytes that all requests have beside their texts, at most about.
fn around_at_most(plan: &Plan, trace: &Trace, options: &RenderOptions) -> u64 {
    /// Digits of an id, and what parts it from the next.
    const ID_BYTES: u64 = 21;
    let mut bytes = REQUEST_BYTES * plan.rows.len() as u64;
    if trace.recorded.prompts && !options.omit_kv_hints {
        let ids: u64 = plan.rows.iter().map(|row| u64::from(row.blocks)).sum();
        bytes = bytes.saturating_add(HINTED_BYTES * plan.rows.len() as u64 + ID_BYTES * ids);
    }
    bytes
}

/// Most memory, in bytes, that replies may take beside rendered requests.
fn replies_budget(options: &RenderOptions) -> u64 {
    let budget = Budget::of(options);
    if budget.named { budget.bytes / 4 } else { REPLIES_BYTES.min(budget.bytes / 4) }
}

/// Renders every request of a plan at once. Where turns repeat others, there is no room for
/// replies: see [`prepare`].
///
/// # Errors
/// When the bytes do not fit the budget, a header cannot be sent, a prompt is too long to be one,
/// or a thread cannot be started.
pub fn render(plan: &Plan, trace: &Trace, options: &RenderOptions) -> Result<Bodies, RenderError> {
    let histories = Histories::of(plan, trace, options)?;
    let layout = measured(plan, trace, options)?;
    whole(plan, trace, options, layout, trace.recorded.texts.clone(), histories)
}

/// What there is to render, once it is known to fit the budget.
fn measured(plan: &Plan, trace: &Trace, options: &RenderOptions) -> Result<Layout, RenderError> {
    check_prompts(plan, trace)?;
    let layout = Layout::measure(plan, trace);
    let expected = Vocabulary::shared().expected_bytes(layout.words());
    let expected = expected.saturating_add(around_at_most(plan, trace, options));
    let texts = &trace.recorded.texts;
    let budget = Budget::of(options);
    budget.check(expected.saturating_add(texts.bytes()))?;
    if texts.is_elsewhere() {
        return Err(budget.exceeded(expected + texts.bytes()));
    }
    Ok(layout)
}

fn whole(
    plan: &Plan,
    trace: &Trace,
    options: &RenderOptions,
    mut layout: Layout,
    mut recorded: Texts,
    histories: Option<Histories>,
) -> Result<Bodies, RenderError> {
    fetch::settle(&mut recorded, trace.records.len(), options.threads, &trace.source.name)?;
    layout.place(plan, trace, options.seed);
    let texts = arena::render(&layout, options.threads)?;
    let bodies = assemble::assemble(plan, trace, options, &layout, texts, recorded, histories)?;
    // Texts of too many pieces are copied, which nobody could foresee.
    if bodies.copied > 0 {
        Budget::of(options).check(bodies.memory_bytes())?;
    }
    Ok(bodies)
}

/// Refuses a plan with a prompt that is too long to be one, as [`render`] does.
///
/// # Errors
/// For the first such prompt in send order.
pub fn check_prompts(plan: &Plan, trace: &Trace) -> Result<(), RenderError> {
    if trace.recorded.prompts {
        return Ok(());
    }
    let mut requests = layout::requests(plan, trace);
    let long = requests.find(|(_, record)| record.input_tokens > PROMPT_TOKENS_MAX);
    long.map_or(Ok(()), |(row, record)| {
        let file = trace.source.name.clone();
        Err(RenderError::Prompt { file, row: row.row, tokens: record.input_tokens })
    })
}

/// Refuses turns that repeat others where that is not possible, as [`prepare`] does.
///
/// # Errors
/// When they do not wait for each other, or are to be rendered ahead.
pub fn check_turns(plan: &Plan, trace: &Trace, options: &RenderOptions) -> Result<(), RenderError> {
    turns(plan, trace, options).map(|_| ())
}

fn turns(
    plan: &Plan,
    trace: &Trace,
    options: &RenderOptions,
) -> Result<Option<Histories>, RenderError> {
    let histories = Histories::of(plan, trace, options)?;
    if histories.is_some() && options.when == When::Ahead {
        return Err(RenderError::LiveAhead);
    }
    Ok(histories)
}

/// Bodies as a plan shows them before anything was sent: what only the server can say is `null`.
#[derive(Debug)]
pub struct Preview<'a> {
    plan: &'a Plan,
    trace: &'a Trace,
    options: &'a RenderOptions,
    histories: Option<Histories>,
}

impl<'a> Preview<'a> {
    /// The bodies of a plan.
    ///
    /// # Errors
    /// When a turn cannot repeat those before it.
    pub fn new(
        plan: &'a Plan,
        trace: &'a Trace,
        options: &'a RenderOptions,
    ) -> Result<Self, RenderError> {
        let histories = turns(plan, trace, options)?;
        Ok(Self { plan, trace, options, histories })
    }

    /// Whether one of the first `limit` bodies has something in it that only the server can say.
    #[must_use]
    pub fn is_open(&self, limit: usize) -> bool {
        let Some(histories) = &self.histories else { return false };
        let mut rows = self.plan.rows.iter().take(limit);
        rows.any(|row| !histories.is_length_known(row.request))
    }

    /// Adds the JSON body of one request to `out`: the very bytes that are sent, but for `null`
    /// where a reply of the server belongs.
    ///
    /// # Panics
    /// When the plan has no such request, or is not of this trace.
    pub fn append(&self, request: RequestIndex, out: &mut Vec<u8>) {
        let (plan, trace, options) = (self.plan, self.trace, self.options);
        let before = self.histories.as_ref().map_or(&[][..], |all| all.before(request));
        let mut around = Around::default();
        let text = |request: RequestIndex, around: &mut Around, out: &mut Vec<u8>| {
            let row = &plan.rows[request.as_usize()];
            let record = &trace.records[plan.record_of[request.as_usize()] as usize];
            around.fill(plan, trace, options, &Closings::of_row(row, record, options), request);
            let opening = body::opening(options.endpoint);
            let opening = if before.is_empty() { 0 } else { opening.len() };
            out.extend_from_slice(&around.before[opening..]);
            trace.recorded.append_text(plan.record_of[request.as_usize()], out);
            for (key, words) in body::texts(plan, trace, options, request) {
                key.append(words, out);
            }
        };
        if !before.is_empty() {
            out.extend_from_slice(body::opening(options.endpoint));
        }
        let is_live = self.histories.as_ref().is_some_and(Histories::is_live);
        for &turn in before {
            text(turn, &mut around, out);
            if is_live {
                out.extend_from_slice(ASSISTANT);
                out.pop();
                out.extend_from_slice(b"null");
            }
            out.extend_from_slice(if is_live { &USER[1..] } else { USER });
        }
        text(request, &mut around, out);
        out.extend_from_slice(&around.after);
    }
}

impl Budget {
    fn of(options: &RenderOptions) -> Self {
        let Some(named) = options.budget_bytes else {
            return Self { bytes: memory::default_budget(), held: 0, named: false };
        };
        let held = options.held_bytes.min(named);
        Self { bytes: named - held, held: options.held_bytes, named: true }
    }

    /// What is left for rendered requests beside texts that are in memory.
    fn beside(self, texts: &Texts) -> Self {
        let texts = texts.memory_bytes();
        Self { bytes: self.bytes.saturating_sub(texts), held: self.held + texts, ..self }
    }

    /// Of how many bytes a message speaks: what a user named is for all of it.
    const fn told(self) -> u64 {
        self.bytes.saturating_add(self.held)
    }

    fn check(self, needed: u64) -> Result<(), RenderError> {
        if needed <= self.bytes { Ok(()) } else { Err(self.exceeded(needed)) }
    }

    const fn exceeded(self, needed: u64) -> RenderError {
        let needed = needed.saturating_add(self.held);
        RenderError::OverBudget { needed, budget: self.told(), named: self.named }
    }
}

impl Bodies {
    /// The whole HTTP request, head first, in the slices a vectored write takes.
    ///
    /// # Panics
    /// When the plan has no such request.
    #[must_use]
    pub fn parts(&self, request: RequestIndex) -> Parts<'_> {
        Parts::whole(&self.chunks, self.parts_of(request))
    }

    /// How many slices [`Bodies::parts`] yields: from 1 to
    /// [`WRITE_PARTS_MAX`](crate::limits::WRITE_PARTS_MAX).
    #[must_use]
    pub fn part_count(&self, request: RequestIndex) -> usize {
        self.parts_of(request).len()
    }

    /// Bytes of head and body together.
    #[must_use]
    pub fn request_bytes(&self, request: RequestIndex) -> u64 {
        self.parts_of(request).iter().map(|part| u64::from(part.len)).sum()
    }

    /// Bytes of the body of a request; `None` where only the server's replies will tell.
    #[must_use]
    pub fn known_body_bytes(&self, request: RequestIndex) -> Option<NonZero<u64>> {
        match &self.histories {
            Some(histories) if !histories.is_length_known(request) => None,
            Some(histories) => NonZero::new(histories.bytes(request)),
            None => NonZero::new(self.body_bytes(request)),
        }
    }

    fn repeats_others(&self, request: RequestIndex) -> bool {
        self.histories.as_ref().is_some_and(|all| !all.before(request).is_empty())
    }

    /// How memory for the server's replies is reserved, in words; `None` where none is.
    #[must_use]
    pub fn describe_replies(&self) -> Option<String> {
        let histories = self.histories.as_ref().filter(|histories| histories.is_live())?;
        let bytes = histories.reserved_bytes().div_ceil(1_000_000);
        Some(format!(
            "turns repeat the server's replies to those before them; {bytes} MB are reserved for \
             replies"
        ))
    }

    /// Bytes of the body alone: the request's `Content-Length`.
    #[must_use]
    pub fn body_bytes(&self, request: RequestIndex) -> u64 {
        self.body_bytes[request.as_usize()]
    }

    /// Bytes of text that were kept a second time, because their request had too many pieces.
    #[must_use]
    pub const fn copied_bytes(&self) -> u64 {
        self.copied
    }

    /// Bytes all of it takes in memory.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let chunks: usize = self.chunks.iter().map(|chunk| chunk.len()).sum();
        let parts = size_of_val(self.parts.as_slice());
        let numbers = size_of_val(self.first_part.as_slice()) * 2;
        (chunks + parts + numbers) as u64
    }

    /// The plan's rows with the size of their bodies, as a log keeps them.
    pub fn plan_rows<'a>(&'a self, plan: &'a Plan) -> impl ExactSizeIterator<Item = PlanRow> + 'a {
        let known = |row: &PlanRow| self.known_body_bytes(row.request);
        plan.rows.iter().map(move |row| PlanRow { body_bytes: known(row), ..*row })
    }

    fn bytes_of(&self, part: Part) -> &[u8] {
        let start = part.start as usize;
        &self.chunks[part.chunk as usize][start..start + part.len as usize]
    }

    fn parts_of(&self, request: RequestIndex) -> &[Part] {
        let at = |place: usize| {
            usize::try_from(self.first_part[place]).expect("parts in memory are addressed by usize")
        };
        &self.parts[at(request.as_usize())..at(request.as_usize() + 1)]
    }
}

#[cfg(test)]
mod tests;
