//! One core's side of the scenes: requests put together as they leave, and what was heard.
//!
//! A player has at most one request out. Its reply is kept in pages that were made before zero, as
//! long as a later prompt of the player may repeat it; where that is not possible, recorded words
//! stand for it, and that is counted. Nothing here allocates once it is made.

use std::collections::HashMap;
use std::sync::Arc;

use onbeat_shared::log::record::{UNKNOWN_TOKENS, Usage};
use onbeat_shared::trace::blocks::Mixing;
use onbeat_shared::units::{RequestIndex, SessionIndex};

use crate::policy::players::{Act, Player};
use crate::prompt::{TextKey, scope};
use crate::render::replies::{PAGE_BYTES, Replies};
use crate::render::users::pieces::{Memo, Pieces};
use crate::render::users::strip::{Addressee, Strips};
use crate::render::users::tree::{Line, NONE};
use crate::render::users::walk::{Bit, Said, Walk};
use crate::render::users::{Place, Scenes};

/// A reply that later prompts of its player may repeat.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    /// Whose reply it is.
    pub(super) record: u32,
    /// How long it is.
    pub(super) tokens: u32,
    /// The player's next one, of a later record.
    pub(super) next: u32,
}

/// The requests of one core's players.
#[derive(Debug)]
pub struct Stage {
    pub(super) scenes: Arc<Scenes>,
    seats: Vec<Seat>,
    /// For each request that is out, its player.
    players: HashMap<RequestIndex, u32, Mixing>,
    pub(super) strips: Strips,
    /// By place, as [`Stage::kept`] is.
    pub(super) replies: Replies,
    kept: Vec<Kept>,
    /// Places for replies that are free.
    free: Vec<u32>,
    replaced: Replaced,
    /// How far into which request somebody was.
    pub(super) memo: Memo,
}

/// Replies that recorded words stand for, where their own were to be repeated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replaced {
    /// The request failed, or was not answered in full.
    pub failed: u64,
    /// They had no text.
    pub empty: u64,
    /// They had something that is no text, like a tool's call.
    pub partial: u64,
    /// There was no room for them.
    pub cut: u64,
    /// Nobody said how many tokens they have.
    pub uncounted: u64,
    /// They had as many tokens as the next prompt has more than this one's, or more: none would be
    /// left for the user.
    pub too_long: u64,
    /// Replies that could be repeated.
    pub kept: u64,
}

/// What is known of a request once it is put together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Composed {
    /// Bytes of its body.
    pub body_bytes: u32,
    /// Whether its answer is to be a stream.
    pub streams: bool,
    /// Whether recorded words stand for a reply of the server.
    pub reply_replaced: bool,
}

/// What a player has out, and what it has heard.
#[derive(Debug)]
struct Seat {
    session: Option<SessionIndex>,
    /// The oldest and the newest of its kept replies.
    first: u32,
    last: u32,
    out: Option<Flight>,
}

impl Seat {
    const EMPTY: Self = Self { session: None, first: NONE, last: NONE, out: None };
}

/// A request that is out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    pub(super) request: RequestIndex,
    pub(super) record: u32,
    pub(super) marked: bool,
    pub(super) common: Place,
    pub(super) strip: u32,
    /// Bytes of head and body.
    bytes: u64,
    pub(super) parts: u32,
    /// The place of its reply, if that is wanted.
    reply: u32,
    /// Pieces of its answer's text.
    pieces: u32,
    /// It thought first.
    thought: bool,
    /// It has something that is no text.
    partial: bool,
    usage: Option<Usage>,
}

impl Stage {
    /// One core's side.
    #[must_use]
    pub fn new(scenes: &Arc<Scenes>) -> Self {
        let players = scenes.options.players;
        let none = Kept { record: NONE, tokens: 0, next: NONE };
        Self {
            scenes: Arc::clone(scenes),
            seats: (0..players).map(|_| Seat::EMPTY).collect(),
            players: HashMap::with_capacity_and_hasher(2 * players, Mixing::default()),
            strips: Strips::new(&scenes.heads, scenes.opening, players),
            replies: Replies::new(scenes.kept, scenes.pages),
            kept: vec![none; scenes.kept],
            free: (0..u32::MAX).take(scenes.kept).collect(),
            replaced: Replaced::default(),
            memo: Memo::default(),
        }
    }

    /// Puts the request of an act together, which leaves now, for the server `target`.
    ///
    /// # Panics
    /// When there are more players than the scenes were made for.
    pub fn compose(&mut self, request: RequestIndex, act: &Act, target: u16) -> Composed {
        let place = act.who.player.0 as usize;
        self.make_room(place);
        if self.seats[place].session != Some(act.who.session) {
            self.leave(act.who.player);
            self.seats[place].session = Some(act.who.session);
        }
        if let Some(out) = self.seats[place].out {
            self.ended(out.request, false);
        }
        let scenes = Arc::clone(&self.scenes);
        let line = &scenes.lines[act.turn.record as usize];
        let reply_replaced = self.is_replaced(place, line);
        let marked = act.copy > 0 && scenes.local[act.who.conversation as usize];
        let strip = self.strips.take();
        if marked {
            let scope = scope(act.copy, act.who.conversation);
            self.strips.get_mut(strip).mark(TextKey::tail(scenes.seed, scope, 0));
        }
        let streamed = usize::from(line.streamed);
        let common = scenes.commons[usize::from(target)][streamed];
        let mut flight = Flight {
            request,
            record: act.turn.record,
            marked,
            common,
            strip,
            bytes: 0,
            parts: 0,
            reply: NONE,
            pieces: 0,
            thought: false,
            partial: false,
            usage: None,
        };
        let (parts, text) = self.measure(place, &flight);
        let closing = scenes.closings[line.closing as usize];
        let body = scenes.opening.len() as u64 + text + closing.len;
        let addressee = Addressee {
            request: request.0,
            user: act.who.user,
            conversation: act.who.conversation,
            part: act.who.part,
            copy: act.copy,
        };
        let own = self.strips.get_mut(strip);
        own.fill(&scenes.heads, &addressee, scenes.opening, body);
        flight.bytes = common.len + own.head().len() as u64 + text + closing.len;
        flight.parts = parts + 3;
        self.seats[place].out = Some(flight);
        self.players.insert(request, act.who.player.0);
        self.memo.forget();
        let body_bytes = u32::try_from(body).unwrap_or(u32::MAX);
        Composed { body_bytes, streams: line.streamed, reply_replaced }
    }

    /// Makes seats for more players than were announced, which allocates.
    fn make_room(&mut self, place: usize) {
        while self.seats.len() <= place {
            self.seats.push(Seat::EMPTY);
        }
    }

    /// Parts of a prompt, and its bytes.
    fn measure(&self, place: usize, flight: &Flight) -> (u32, u64) {
        let (mut parts, mut bytes) = (0, 0);
        for bit in self.walk(place, flight) {
            let (more, len) = match bit {
                Bit::Text { len, .. } => (1, len),
                Bit::Fixed(separator) => (1, self.scenes.separators.len(separator).into()),
                Bit::Reply(slot) => {
                    let len = self.reply_bytes(slot);
                    (len.div_ceil(PAGE_BYTES), len as u64)
                }
                Bit::Mark(words) => (1, self.strips.get(flight.strip).marked(words) as u64),
                Bit::Open => (0, 0),
            };
            parts += u32::try_from(more).expect("a reply has few pages");
            bytes += len;
        }
        (parts, bytes)
    }

    fn walk(&self, place: usize, flight: &Flight) -> Walk<'_> {
        let first = self.seats[place].first;
        let said = if first == NONE { Said::Recorded } else { Said::Kept(first) };
        Walk::new(&self.scenes, &self.kept, flight.record, said, flight.marked)
    }

    /// Bytes of a kept reply.
    pub(super) fn reply_bytes(&self, slot: u32) -> usize {
        self.replies.len(RequestIndex(slot)).unwrap_or(0) as usize
    }

    /// Whether recorded words stand for the reply that a prompt ends with, but for the user's own;
    /// counts one that leaves no word for the user.
    fn is_replaced(&mut self, place: usize, line: &Line) -> bool {
        let mut slot = self.seats[place].first;
        while slot != NONE && line.asked != NONE {
            let kept = self.kept[slot as usize];
            if kept.record == line.asked {
                self.replaced.too_long += u64::from(!kept.fits(line));
                return !kept.fits(line);
            }
            slot = kept.next;
        }
        line.asked != NONE
    }

    /// A request leaves; whether its reply is [heard](Stage::hear). It may leave twice.
    pub fn begin(&mut self, request: RequestIndex) -> bool {
        let scenes = Arc::clone(&self.scenes);
        let Some(free) = self.players.get(&request).map(|_| self.free.last().copied()) else {
            return false;
        };
        let Some(out) = self.out(request) else { return false };
        let room = scenes.lines[out.record as usize].room;
        if room == 0 {
            return false;
        }
        if out.reply == NONE {
            let Some(slot) = free else { return false };
            out.reply = slot;
            self.free.pop();
        }
        let Some(out) = self.out(request) else { return false };
        (out.pieces, out.thought, out.partial, out.usage) = (0, false, false, None);
        let slot = RequestIndex(out.reply);
        self.replies.begin(slot, room);
        true
    }

    fn out(&mut self, request: RequestIndex) -> Option<&mut Flight> {
        let &player = self.players.get(&request)?;
        self.seats[player as usize].out.as_mut()
    }

    /// A piece of the reply to a request, as it stands in the JSON. Reasoning is not kept.
    pub fn hear(&mut self, request: RequestIndex, piece: &[u8], reasoning: bool) {
        let Some(out) = self.out(request) else { return };
        if reasoning {
            out.thought = true;
            return;
        }
        out.pieces += 1;
        let slot = out.reply;
        if slot != NONE {
            self.replies.add(RequestIndex(slot), piece);
        }
    }

    /// The reply to a request has something that is not repeated.
    pub fn leave_out(&mut self, request: RequestIndex) {
        if let Some(out) = self.out(request) {
            out.partial = true;
        }
    }

    /// Whether a request's reply cannot be repeated because something of it was left out.
    #[must_use]
    pub fn is_cut(&self, request: RequestIndex) -> bool {
        let out = self.players.get(&request).and_then(|&at| self.seats[at as usize].out);
        out.is_some_and(|out| {
            out.reply != NONE && (out.partial || self.replies.is_cut(RequestIndex(out.reply)))
        })
    }

    /// What the server said of a request's tokens; to be told before it has ended.
    pub fn reply_tokens(&mut self, request: RequestIndex, usage: Usage) {
        if let Some(out) = self.out(request) {
            out.usage = Some(usage);
        }
    }

    /// A request has ended, well or not, and is sent no more.
    pub fn ended(&mut self, request: RequestIndex, well: bool) {
        let Some(player) = self.players.remove(&request) else { return };
        let Some(out) = self.seats[player as usize].out.take() else { return };
        self.strips.give_back(out.strip);
        let line = self.scenes.lines[out.record as usize];
        if line.room > 0 {
            self.keep(player as usize, &out, &line, well);
        }
        if line.frees {
            self.free_until(player as usize, out.record);
        }
    }

    /// Keeps the reply to a request, if it can be repeated.
    fn keep(&mut self, place: usize, out: &Flight, line: &Line, well: bool) {
        let count = &mut self.replaced;
        if out.reply == NONE {
            *(if well { &mut count.cut } else { &mut count.failed }) += 1;
            return;
        }
        let slot = RequestIndex(out.reply);
        let cut = self.replies.is_cut(slot);
        self.replies.end(slot, well && !cut && !out.partial);
        let tokens = out.tokens(line);
        let count = match (well, tokens) {
            (false, _) => &mut count.failed,
            _ if out.partial => &mut count.partial,
            _ if cut => &mut count.cut,
            _ if self.replies.len(slot).is_none() => &mut count.empty,
            (true, None) => &mut count.uncounted,
            (true, Some(tokens)) => {
                count.kept += 1;
                self.kept[out.reply as usize] = Kept { record: out.record, tokens, next: NONE };
                let seat = &mut self.seats[place];
                match std::mem::replace(&mut seat.last, out.reply) {
                    NONE => seat.first = out.reply,
                    last => self.kept[last as usize].next = out.reply,
                }
                return;
            }
        };
        *count += 1;
        self.replies.forget(slot);
        self.free.push(out.reply);
    }

    /// Forgets the replies that nobody repeats behind a record.
    fn free_until(&mut self, place: usize, record: u32) {
        let (mut slot, mut before) = (self.seats[place].first, NONE);
        while slot != NONE {
            let Kept { record: own, next, .. } = self.kept[slot as usize];
            if self.scenes.lines[own as usize].last_use > record {
                before = slot;
            } else {
                match before {
                    NONE => self.seats[place].first = next,
                    before => self.kept[before as usize].next = next,
                }
                self.replies.forget(RequestIndex(slot));
                self.free.push(slot);
            }
            slot = next;
        }
        self.seats[place].last = before;
    }

    /// A player has ended: what it has heard is needed no more.
    ///
    /// # Panics
    /// When there are more players than the scenes were made for.
    pub fn leave(&mut self, player: Player) {
        let place = player.0 as usize;
        // One that has not asked for anything may be beyond those who have.
        self.make_room(place);
        if let Some(out) = self.seats[place].out {
            self.ended(out.request, false);
        }
        let mut slot = std::mem::replace(&mut self.seats[place].first, NONE);
        self.seats[place].last = NONE;
        self.seats[place].session = None;
        while slot != NONE {
            self.replies.forget(RequestIndex(slot));
            self.free.push(slot);
            slot = self.kept[slot as usize].next;
        }
    }

    /// Which replies recorded words stand for, so far.
    #[must_use]
    pub const fn replaced(&self) -> Replaced {
        self.replaced
    }

    /// Bytes of head and body together; 0 for a request that is not out.
    #[must_use]
    pub fn request_bytes(&self, request: RequestIndex) -> u64 {
        let out = self.players.get(&request).and_then(|&at| self.seats[at as usize].out);
        out.map_or(0, |out| out.bytes)
    }

    /// How many replies are kept, and how many requests are out.
    #[cfg(test)]
    pub(super) fn held(&self) -> (usize, usize) {
        let out = self.seats.iter().filter(|seat| seat.out.is_some()).count();
        assert_eq!(out, self.players.len());
        (self.kept.len() - self.free.len(), out)
    }

    /// A request's pieces; none for one that is not out.
    pub(in crate::render) fn pieces(&self, request: RequestIndex) -> Option<Pieces<'_>> {
        let &place = self.players.get(&request)?;
        let flight = self.seats[place as usize].out.as_ref()?;
        Some(Pieces::new(self, flight, self.walk(place as usize, flight)))
    }
}

impl Flight {
    /// How many tokens its reply has, without reasoning; `None` when nobody knows. Where the server
    /// does not say, each piece of a stream is taken for one.
    fn tokens(&self, line: &Line) -> Option<u32> {
        let known = |tokens: u32| Some(tokens).filter(|&tokens| tokens != UNKNOWN_TOKENS);
        let said = self.usage.and_then(|usage| {
            let all = known(usage.completion_tokens)?;
            let thought = known(usage.reasoning_tokens).or((!self.thought).then_some(0))?;
            all.checked_sub(thought)
        });
        let pieces = Some(self.pieces).filter(|_| line.streamed);
        said.filter(|&tokens| tokens > 0).or(pieces).filter(|&tokens| tokens > 0)
    }
}

impl Kept {
    /// Whether it leaves words for the user in a line that starts with it.
    pub(super) const fn fits(&self, line: &Line) -> bool {
        self.tokens < line.input - line.keep
    }
}

impl Replaced {
    /// How many there are.
    #[must_use]
    pub const fn all(&self) -> u64 {
        self.failed + self.empty + self.partial + self.cut + self.uncounted + self.too_long
    }

    /// These and those of another core.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            failed: self.failed + other.failed,
            empty: self.empty + other.empty,
            partial: self.partial + other.partial,
            cut: self.cut + other.cut,
            uncounted: self.uncounted + other.uncounted,
            too_long: self.too_long + other.too_long,
            kept: self.kept + other.kept,
        }
    }
}
