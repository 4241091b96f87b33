//! The prompts of users that replay agentic conversations: texts before zero, prompts as they
//! leave.
//!
//! Nobody knows before a run which requests are sent. What every prompt of the pool adds to the one
//! it goes on from is written once, before zero ([`Scenes`]); a core puts a request together when
//! its player is ready, from slices of those texts and the replies its player has heard
//! ([`Stage`]). A prompt has as many words as its record has input tokens, whatever the server
//! answered, and prompts share words exactly as far as their block ids do. Who asks when is not
//! decided here.

mod pieces;
mod stage;
mod strip;
mod text;
mod tree;
mod walk;

use std::collections::HashMap;

use onbeat_shared::trace::Trace;
use onbeat_shared::trace::agentic::{Agentic, Group};
use onbeat_shared::units::SessionIndex;

use crate::limits::PROMPT_TOKENS_MAX;
use crate::plan::script::{Part, Script, Scripts};
use crate::policy::options::ReplyMode;
use crate::prompt::vocabulary::Vocabulary;
use crate::render::body::{closing_of_user, opening};
use crate::render::replies::PAGE_BYTES;
use crate::render::users::strip::HeadTexts;
use crate::render::users::text::{Separators, Style, Written};
use crate::render::users::tree::{Line, Rules};
use crate::render::users::walk::{Bit, Said, Walk};
use crate::render::{Budget, Endpoint, RenderError, RenderOptions, When, head, replies_budget};

pub(in crate::render) use crate::render::users::pieces::{Piece, Pieces};
pub use crate::render::users::stage::{Composed, Replaced, Stage};
pub(in crate::render) use crate::render::users::strip::Strip;

/// Bytes of a reply that are reserved for each of its tokens: a word of seven letters and a blank.
const REPLY_BYTES_EXPECTED: u32 = 8;
/// More users of one core than this reserve nothing more: the budget ends before.
const USERS_MAX: usize = 1 << 20;
/// Words that keep a later use of a conversation apart from those before it.
const MARK_WORDS: u32 = 8;

/// What the prompts of users depend on beside [`RenderOptions`], and for how many they are.
#[derive(Clone, Copy, Debug)]
pub struct SceneOptions {
    /// What stands for the server's replies.
    pub reply: ReplyMode,
    /// Whether answers are streamed that the trace has in one piece.
    pub stream_all: bool,
    /// Whether what tools answered is said by a tool instead of the user.
    pub tool_role: bool,
    /// The cores that send.
    pub cores: u16,
    /// Most users of one core at a time.
    pub users: usize,
    /// Most players of one core at a time: users and their sub-agents.
    pub players: usize,
}

/// The texts of a pool of conversations.
#[derive(Debug)]
pub struct Scenes {
    /// By record.
    lines: Vec<Line>,
    /// Records in tree order.
    order: Vec<u32>,
    checks: Vec<u32>,
    /// One for each conversation that is played, and one with what many requests have.
    chunks: Vec<Box<[u8]>>,
    /// By target: the start of a head for an answer in one piece, and for a streamed one.
    commons: Vec<[Place; 2]>,
    /// What stands behind prompts.
    closings: Vec<Place>,
    heads: HeadTexts,
    separators: &'static Separators,
    opening: &'static [u8],
    seed: u64,
    warm_tokens: u32,
    /// By conversation: whether its ids are its own.
    local: Vec<bool>,
    options: SceneOptions,
    /// Pages for replies, of each core.
    pages: usize,
    /// Most replies of one core that are kept at a time.
    kept: usize,
}

/// Where some bytes lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::render) struct Place {
    chunk: u32,
    start: u64,
    len: u64,
}

impl Scenes {
    /// Writes the texts of all conversations that may be played.
    ///
    /// # Errors
    /// When the texts do not fit the budget, a header cannot be sent, a prompt is too long to be
    /// one, the endpoint takes no replies, requests were to be rendered ahead, or a thread cannot
    /// be started.
    ///
    /// # Panics
    /// When the trace is not agentic, or the scripts are not of it.
    pub fn new(
        trace: &Trace,
        scripts: &Scripts,
        render: &RenderOptions,
        options: SceneOptions,
    ) -> Result<Self, RenderError> {
        let agentic = trace.recorded.agentic.as_ref().expect("users replay agentic traces");
        let live = options.reply == ReplyMode::Live;
        if live && render.endpoint == Endpoint::Completions {
            return Err(RenderError::RepliesToCompletions);
        }
        if render.when == When::Ahead {
            return Err(RenderError::ScenesAhead);
        }
        let rules = Rules {
            warm_tokens: scripts.warm_tokens,
            live,
            tool_role: options.tool_role,
            streaming: render.streaming,
            stream_all: options.stream_all,
        };
        let chat = render.endpoint == Endpoint::Chat;
        let mut scenes = Self {
            lines: vec![Line::NONE; trace.records.len()],
            order: Vec::with_capacity(trace.records.len()),
            checks: Vec::new(),
            chunks: Vec::new(),
            commons: Vec::new(),
            closings: Vec::new(),
            heads: HeadTexts::new(render),
            separators: if chat { Separators::CHAT } else { Separators::NONE },
            opening: opening(render.endpoint),
            seed: render.seed,
            warm_tokens: scripts.warm_tokens,
            local: (0..).zip(&scripts.scripts).map(|(at, _)| is_local(agentic, at)).collect(),
            options,
            pages: 0,
            kept: 0,
        };
        let played = scenes.grow(trace, agentic, scripts, &rules);
        scenes.check(trace, render, &played)?;
        let orders: Vec<&[u32]> = played.iter().map(|range| &scenes.order[range.clone()]).collect();
        let style = Style {
            trace,
            seed: render.seed,
            warm_tokens: scripts.warm_tokens,
            separators: scenes.separators,
        };
        let written = text::write(style, &scenes.lines, &orders, render.threads)?;
        scenes.take_in(written, &played);
        scenes.share(render)?;
        scenes.name(agentic, scripts);
        scenes.reserve(scripts, replies_budget(render));
        Ok(scenes)
    }

    /// Makes the lines of all conversations that are played; their places in the order.
    fn grow(
        &mut self,
        trace: &Trace,
        agentic: &Agentic,
        scripts: &Scripts,
        rules: &Rules,
    ) -> Vec<std::ops::Range<usize>> {
        let mut played = Vec::new();
        for script in scripts.scripts.iter().filter(|script| script.in_pool) {
            let start = self.order.len();
            tree::grow(trace, agentic, script, rules, &mut self.lines, &mut self.order);
            played.push(start..self.order.len());
        }
        played
    }

    /// Refuses what is too large.
    fn check(
        &self,
        trace: &Trace,
        render: &RenderOptions,
        played: &[std::ops::Range<usize>],
    ) -> Result<(), RenderError> {
        let mut words = 0;
        let mut checks = 0;
        for &record in &self.order {
            let line = &self.lines[record as usize];
            if line.until > PROMPT_TOKENS_MAX {
                let row = &trace.records[record as usize];
                let file = trace.source.name.clone();
                return Err(RenderError::Prompt { file, row: row.row, tokens: line.input });
            }
            words += u64::from(line.words());
            checks += u64::from(text::checks(line));
        }
        let texts = Vocabulary::shared().expected_bytes(words);
        let table = self.lines.len() * size_of::<Line>() + self.order.len() * size_of::<u32>();
        // What separates messages, and a closing.
        let around = self.order.len() as u64 * 256;
        let needed = texts + texts / 64 + 4 * checks + table as u64 + around;
        let budget = Budget::of(render);
        if needed > budget.bytes {
            let conversations = played.len();
            let (named, needed, budget) = (budget.named, needed + budget.held, budget.told());
            return Err(RenderError::ScenesOverBudget { conversations, needed, budget, named });
        }
        Ok(())
    }

    fn take_in(&mut self, written: Vec<Written>, played: &[std::ops::Range<usize>]) {
        let short = |len: usize| u32::try_from(len).expect("fewer than words of the pool");
        self.checks.reserve_exact(written.iter().map(|written| written.checks.len()).sum());
        for (written, range) in written.into_iter().zip(played) {
            let (chunk, first_check) = (short(self.chunks.len()), short(self.checks.len()));
            for (place, (start, len, user_at, check)) in range.clone().zip(written.places) {
                let line = &mut self.lines[self.order[place] as usize];
                (line.chunk, line.start, line.len, line.user_at) = (chunk, start, len, user_at);
                line.first_check = first_check + check;
            }
            self.checks.extend_from_slice(&written.checks);
            self.chunks.push(written.bytes);
        }
    }

    /// Writes what many requests have in common.
    fn share(&mut self, render: &RenderOptions) -> Result<(), RenderError> {
        head::check_session_header(render)?;
        let chunk = u32::try_from(self.chunks.len()).expect("fewer than conversations");
        let mut bytes = Vec::new();
        let mut put = |text: &[u8]| {
            let start = bytes.len() as u64;
            bytes.extend_from_slice(text);
            Place { chunk, start, len: text.len() as u64 }
        };
        let ways = [false, true].map(|streaming| RenderOptions { streaming, ..render.clone() });
        for destination in &render.destinations {
            let [whole, streamed] = &ways;
            let whole = put(&head::common(destination, whole)?);
            self.commons.push([whole, put(&head::common(destination, streamed)?)]);
        }
        let mut known = HashMap::new();
        for &record in &self.order {
            let line = &mut self.lines[record as usize];
            let closings = &mut self.closings;
            line.closing = *known.entry((line.output, line.streamed)).or_insert_with(|| {
                let way = &ways[usize::from(line.streamed)];
                closings.push(put(&closing_of_user(way, line.output.max(1))));
                u32::try_from(closings.len() - 1).expect("fewer than records")
            });
        }
        self.chunks.push(bytes.into_boxed_slice());
        Ok(())
    }

    /// Writes what players are called.
    fn name(&mut self, agentic: &Agentic, scripts: &Scripts) {
        let of_session = |group: &'_ Group| group.session;
        let groups: HashMap<SessionIndex, &Group> =
            agentic.groups.iter().filter_map(|own| Some((of_session(own)?, own))).collect();
        for (script, own) in scripts.scripts.iter().zip(&agentic.conversations) {
            let id = |part: &Part| groups.get(&part.session).map_or("", |group| &group.agent_id);
            self.heads.add(&own.id, &script.parts, id);
        }
    }

    /// Decides how much memory each core has for replies: what its users take who play the
    /// conversations with the longest ones, within the budget.
    fn reserve(&mut self, scripts: &Scripts, budget: u64) {
        let played = scripts.scripts.iter().filter(|script| script.in_pool);
        let mut wanted: Vec<(u64, u64)> = played.map(|script| self.wanted(script)).collect();
        wanted.sort_unstable_by(|one, other| other.cmp(one));
        let of_users = wanted.iter().cycle().take(self.options.users.min(USERS_MAX));
        let sum = |(pages, kept): (u64, u64), one: &(u64, u64)| (pages + one.0, kept + one.1);
        let (pages, kept) = of_users.fold((0, 0), sum);
        let share = budget / PAGE_BYTES as u64 / u64::from(self.options.cores.max(1));
        let pages = pages.min(share);
        // One that is out has no page yet.
        let out = if pages > 0 { self.options.players as u64 } else { 0 };
        self.pages = usize::try_from(pages).expect("it fits memory");
        self.kept = usize::try_from(kept.min(pages) + out).expect("it fits memory");
    }

    /// The pages that a conversation's replies take, about, and how many replies those are.
    fn wanted(&self, script: &Script) -> (u64, u64) {
        let lines = &self.lines[script.records.start as usize..script.records.end as usize];
        lines.iter().filter(|line| line.room > 0).fold((0, 0), |(pages, kept), line| {
            let bytes = line.output.saturating_mul(REPLY_BYTES_EXPECTED).min(line.room);
            (pages + (bytes as usize).div_ceil(PAGE_BYTES) as u64, kept + 1)
        })
    }

    /// Bytes of the texts, and of what finds them.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let chunks: usize = self.chunks.iter().map(|chunk| chunk.len()).sum();
        let tables = size_of_val(self.lines.as_slice()) + size_of_val(self.order.as_slice());
        (chunks + tables + size_of_val(self.checks.as_slice())) as u64
    }

    /// Bytes that are reserved for replies, of all cores together.
    #[must_use]
    pub fn reserved_bytes(&self) -> u64 {
        self.pages as u64 * PAGE_BYTES as u64 * u64::from(self.options.cores)
    }

    /// Adds the JSON body of a record's request to `out`, as a user sends it who plays the
    /// conversation from its start and hears replies of the recorded length: the very bytes, but
    /// for `null` where a reply of the server belongs.
    ///
    /// # Panics
    /// When the record is not of a conversation that is played.
    pub fn append_body(&self, record: u32, out: &mut Vec<u8>) {
        let line = &self.lines[record as usize];
        let said = match self.options.reply {
            ReplyMode::Live => Said::Open,
            ReplyMode::Recorded => Said::Recorded,
        };
        out.extend_from_slice(self.opening);
        let mut open = false;
        for bit in Walk::new(self, &[], record, said, false) {
            match bit {
                Bit::Text { start, len } => {
                    out.extend_from_slice(self.bytes(line.text(start, len)))
                }
                // Nothing stands between quotes around null.
                Bit::Fixed(separator) => {
                    let separator = self.separators.text(separator);
                    out.extend_from_slice(&separator[usize::from(open)..]);
                }
                Bit::Open => {
                    out.pop();
                    out.extend_from_slice(b"null");
                }
                Bit::Reply(_) | Bit::Mark(_) => unreachable!("nobody has heard or marked it"),
            }
            open = bit == Bit::Open;
        }
        out.extend_from_slice(self.bytes(self.closings[line.closing as usize]));
    }

    /// Whether a record's [body](Scenes::append_body) has something that only the server can say.
    #[must_use]
    pub fn is_open(&self, record: u32) -> bool {
        self.options.reply == ReplyMode::Live
            && Walk::new(self, &[], record, Said::Open, false).any(|bit| bit == Bit::Open)
    }

    /// Whether a record's request can be sent: its conversation is played, and it is not too long.
    ///
    /// # Panics
    /// When there is no such record.
    #[must_use]
    pub fn is_sent(&self, record: u32) -> bool {
        self.lines[record as usize].sent
    }

    fn line_at(&self, place: u32) -> &Line {
        &self.lines[self.order[place as usize] as usize]
    }

    /// The line that the run of a line hangs on.
    fn above(&self, line: &Line) -> Option<&Line> {
        let parent = self.line_at(line.run).parent;
        (parent != tree::NONE).then(|| &self.lines[parent as usize])
    }

    fn text_of(&self, line: &Line) -> &[u8] {
        self.bytes(line.text(line.start, u64::from(line.len)))
    }

    pub(in crate::render) fn bytes(&self, place: Place) -> &[u8] {
        let at = |place: u64| usize::try_from(place).expect("it is in memory");
        &self.chunks[place.chunk as usize][at(place.start)..at(place.start + place.len)]
    }
}

impl Line {
    /// A piece of its conversation's text.
    const fn text(&self, start: u64, len: u64) -> Place {
        Place { chunk: self.chunk, start, len }
    }
}

/// Whether the ids of a conversation are its own.
fn is_local(agentic: &Agentic, conversation: usize) -> bool {
    use onbeat_shared::trace::agentic::Scope;
    agentic.conversations[conversation].scope == Scope::Local
}

#[cfg(test)]
mod tests;
