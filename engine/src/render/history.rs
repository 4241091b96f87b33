//! What stands before the own text of a turn that continues its session.
//!
//! Decided before zero, for a whole plan: which turns a request repeats, how long its body is
//! without the server's replies, how much room each reply has, and how many requests will repeat
//! it. How the replies get there is in [`super::replies`], and how a request is put together from
//! them in [`super::live`].

use std::ops::Range;

use onbeat_shared::trace::Trace;
use onbeat_shared::trace::recorded::Content;
use onbeat_shared::units::{CoreIndex, RequestIndex};

use crate::limits::{REPLY_BYTES_MAX, REPLY_BYTES_PER_TOKEN, REPLY_BYTES_SPARE, REPLY_TOKENS};
use crate::plan::Plan;
use crate::render::options::place;
use crate::render::replies::PAGE_BYTES;
use crate::render::{Context, RenderError, RenderOptions};

/// Between a text and the server's reply to it.
pub(crate) const ASSISTANT: &[u8] = b"\"},{\"role\":\"assistant\",\"content\":\"";
/// Between what was said and the next text of the user.
pub(crate) const USER: &[u8] = b"\"},{\"role\":\"user\",\"content\":\"";

/// The turns before each request of a plan.
#[derive(Debug)]
pub(crate) struct Histories {
    /// The turns of sessions of more than one, session by session.
    turns: Vec<RequestIndex>,
    /// For each request, the turns before it, as a range of `turns`.
    before: Vec<(u32, u32)>,
    /// For each request, how many others repeat it.
    repeats: Vec<u32>,
    /// For each request, most bytes of its reply that are kept; 0 when nobody repeats it.
    rooms: Vec<u32>,
    /// For each request, bytes of its body without any reply.
    bytes: Vec<u64>,
    cores: Vec<CoreIndex>,
    /// Whether the server's replies are repeated.
    live: bool,
    /// For each core, pages for replies.
    pages: Vec<usize>,
}

impl Histories {
    /// The histories of a plan; `None` when every request is alone.
    ///
    /// # Errors
    /// When replies are to be repeated and a turn does not wait for the one before it.
    pub(crate) fn of(
        plan: &Plan,
        trace: &Trace,
        options: &RenderOptions,
    ) -> Result<Option<Self>, RenderError> {
        let live = match options.context {
            None | Some(Context::Alone) => return Ok(None),
            Some(Context::Turns) => false,
            Some(Context::LiveAnswers) => true,
        };
        let rows = &plan.rows;
        let is_delta = |request: &RequestIndex| {
            let content = trace.recorded.content_of(plan.record_of[request.as_usize()]);
            matches!(content, Content::Words | Content::Prompt)
        };
        let row = |request: RequestIndex| &rows[request.as_usize()];
        let mut by_turn: Vec<_> = rows.iter().map(|row| row.request).filter(is_delta).collect();
        by_turn.sort_by_key(|&request| (row(request).session, row(request).turn));
        let mut histories = Self {
            turns: Vec::new(),
            before: vec![(0, 0); rows.len()],
            repeats: vec![0; rows.len()],
            rooms: vec![0; rows.len()],
            bytes: vec![0; rows.len()],
            cores: rows.iter().map(|row| row.core).collect(),
            live,
            pages: Vec::new(),
        };
        for session in by_turn.chunk_by(|&one, &other| row(one).session == row(other).session) {
            let waits = |pair: &[RequestIndex]| row(pair[1]).after == Some(pair[0]);
            if live && let Some(pair) = session.windows(2).find(|pair| !waits(pair)) {
                let record = plan.record_of[pair[1].as_usize()];
                return Err(RenderError::LiveUnordered(place(trace, record, "session_id")));
            }
            histories.add(session, |request| row(request).max_tokens);
        }
        Ok((!histories.turns.is_empty()).then_some(histories))
    }

    fn add(&mut self, session: &[RequestIndex], max_tokens: impl Fn(RequestIndex) -> Option<u32>) {
        if session.len() < 2 {
            return;
        }
        let short = |count: usize| u32::try_from(count).expect("no more than requests");
        let start = short(self.turns.len());
        self.turns.extend_from_slice(session);
        for (turn, &request) in session.iter().enumerate() {
            let place = request.as_usize();
            self.before[place] = (start, start + short(turn));
            self.repeats[place] = short(session.len() - 1 - turn);
            if self.live && self.repeats[place] > 0 {
                self.rooms[place] = room(max_tokens(request));
            }
        }
    }

    /// Notes how long bodies are: `texts` is for each request the bytes of its own text, `alone`
    /// those of its body if that were all.
    pub(crate) fn measure(&mut self, texts: &[u64], alone: &[u64]) {
        let earlier = |&turn: &RequestIndex| texts[turn.as_usize()] + USER.len() as u64;
        let whole = (0..)
            .map(RequestIndex)
            .zip(alone)
            .map(|(request, &alone)| alone + self.before(request).iter().map(earlier).sum::<u64>());
        self.bytes = whole.collect();
    }

    /// Reserves pages for the cores: enough for every reply's room, within `budget` bytes.
    pub(crate) fn reserve(&mut self, cores: u16, budget: u64) {
        let mut wanted = vec![0_u64; usize::from(cores)];
        for (&room, core) in self.rooms.iter().zip(&self.cores) {
            wanted[usize::from(core.0)] += (room as usize).div_ceil(PAGE_BYTES) as u64;
        }
        let all: u64 = wanted.iter().sum();
        let most = (budget / PAGE_BYTES as u64).min(all);
        let share = |wanted: u64| u128::from(wanted) * u128::from(most) / u128::from(all.max(1));
        let share = |wanted| usize::try_from(share(wanted)).expect("it fits memory");
        self.pages = wanted.into_iter().map(share).collect();
    }

    /// Bytes that are reserved for replies.
    pub(crate) fn reserved_bytes(&self) -> u64 {
        self.pages.iter().map(|&pages| (pages * PAGE_BYTES) as u64).sum()
    }

    /// Pages for the replies of a core.
    pub(crate) fn pages(&self, core: CoreIndex) -> usize {
        self.pages.get(usize::from(core.0)).copied().unwrap_or(0)
    }

    /// How many requests there are, of all cores.
    pub(crate) fn requests(&self) -> usize {
        self.before.len()
    }

    /// The turns before a request.
    pub(crate) fn before(&self, request: RequestIndex) -> &[RequestIndex] {
        let (start, end) = self.before[request.as_usize()];
        let range: Range<usize> = start as usize..end as usize;
        &self.turns[range]
    }

    /// Whether a request repeats others or is repeated, so that its text stands by itself.
    pub(crate) fn is_turn(&self, request: RequestIndex) -> bool {
        self.repeats(request) > 0 || !self.before(request).is_empty()
    }

    /// How many requests repeat a request.
    pub(crate) fn repeats(&self, request: RequestIndex) -> u32 {
        self.repeats[request.as_usize()]
    }

    /// Most bytes of a reply that are kept; 0 when it is not.
    pub(crate) fn room(&self, request: RequestIndex) -> u32 {
        self.rooms[request.as_usize()]
    }

    /// Bytes of a request's body without any reply.
    pub(crate) fn bytes(&self, request: RequestIndex) -> u64 {
        self.bytes[request.as_usize()]
    }

    /// Whether the length of a request's body is known before the run.
    pub(crate) fn is_length_known(&self, request: RequestIndex) -> bool {
        !self.live || self.before(request).is_empty()
    }

    /// The requests of a core that repeat others.
    pub(crate) fn continued(&self, core: CoreIndex) -> impl Iterator<Item = RequestIndex> {
        let all = (0..).map(RequestIndex).take(self.requests());
        all.filter(move |request| {
            self.cores[request.as_usize()] == core && !self.before(*request).is_empty()
        })
    }

    /// Whether the server's replies are repeated.
    pub(crate) const fn is_live(&self) -> bool {
        self.live
    }
}

/// Room for a reply of so many tokens.
pub(super) fn room(max_tokens: Option<u32>) -> u32 {
    let tokens = max_tokens.unwrap_or(REPLY_TOKENS);
    tokens
        .saturating_mul(REPLY_BYTES_PER_TOKEN)
        .saturating_add(REPLY_BYTES_SPARE)
        .min(REPLY_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_has_room_for_its_tokens() {
        assert_eq!(room(Some(100)), 100 * REPLY_BYTES_PER_TOKEN + REPLY_BYTES_SPARE);
        assert_eq!(room(None), REPLY_TOKENS * REPLY_BYTES_PER_TOKEN + REPLY_BYTES_SPARE);
        assert_eq!(room(Some(u32::MAX)), REPLY_BYTES_MAX);
    }
}
