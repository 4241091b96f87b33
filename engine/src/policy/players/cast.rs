//! The players of one core, as state.
//!
//! Users have seats, players have slots; both are reused. What is ready at a known time is in one
//! heap; whoever waits for an answer or for sub-agents is not. Slots are made for the users that
//! were announced, with the sub-agents that their conversations have on average, and more are made
//! where a user enters whose sub-agents might find none: nothing else allocates.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use onbeat_shared::units::{RequestIndex, RunNanos, SessionIndex};

use crate::plan::script::{Cue, From, Part, Script, Scripts, Turn};
use crate::policy::admission::Blocked;
use crate::policy::players::backoff::{backoff_ns, drawn};
use crate::policy::players::{Act, Entrance, Event, How, Next, Player, Who};

/// One core's users and their sub-agents.
#[derive(Debug)]
pub struct Players {
    scripts: Arc<Scripts>,
    sessions: Arc<AtomicU32>,
    seed: u64,
    slots: Vec<Slot>,
    free_slots: Vec<u32>,
    seats: Vec<Seat>,
    free_seats: Vec<u32>,
    /// For each seat, which of its conversation's records were sent, then which had a good answer:
    /// bits of [`Self::words`] words each.
    marks: Vec<u64>,
    words: usize,
    ready: BinaryHeap<Reverse<Next>>,
    /// Slots that the users who are here may come to need.
    promised: usize,
}

/// A user.
#[derive(Clone, Copy, Debug)]
struct Seat {
    who: Who,
    copy: u32,
    /// Its first cue.
    cue: u32,
    /// Its own part and sub-agents that have not ended.
    playing: u32,
    /// Where and how its own part ended.
    end: (u32, How),
}

/// A player.
#[derive(Clone, Copy, Debug)]
struct Slot {
    who: Who,
    state: State,
    /// The next cue; while a request is under way, that request's.
    cue: u32,
    /// The player that waits for its end.
    waiting: Option<Player>,
    /// Sub-agents that it waits for.
    agents: u32,
    /// When the last of them ended, since its request before.
    agents_end: Option<RunNanos>,
    /// Since when it plays.
    start: RunNanos,
    /// Its request before: when it began and ended.
    last: Option<(RunNanos, RunNanos)>,
    /// The request that the next one follows.
    after: Option<RequestIndex>,
    own_due: RunNanos,
    due: RunNanos,
    /// How often in a row it was blocked, and how often in all.
    blocked: u32,
    blocked_in_all: u32,
    done: u32,
    total: u32,
}

/// What a player does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The slot is free.
    Free,
    /// It starts at a known time.
    Entering,
    /// It looks for what it does next.
    Going,
    /// Its next request is ready at a known time.
    Ready,
    /// That request is in somebody's hands.
    Popped,
    /// That request is under way.
    Asking(RequestIndex),
    /// It waits for its sub-agents.
    Waiting,
}

const NOBODY: Who = Who {
    player: Player(u32::MAX),
    seat: u32::MAX,
    user: 0,
    session: SessionIndex(u32::MAX),
    conversation: 0,
    part: 0,
};

impl Slot {
    const FREE: Self = Self {
        who: NOBODY,
        state: State::Free,
        cue: 0,
        waiting: None,
        agents: 0,
        agents_end: None,
        start: RunNanos(0),
        last: None,
        after: None,
        own_due: RunNanos(0),
        due: RunNanos(0),
        blocked: 0,
        blocked_in_all: 0,
        done: 0,
        total: 0,
    };
}

impl Players {
    /// Nobody yet, with memory for so many users at a time. Sub-agents number their sessions with
    /// `sessions`; `seed` is what back-offs are drawn from.
    #[must_use]
    pub fn new(scripts: Arc<Scripts>, users: usize, seed: u64, sessions: Arc<AtomicU32>) -> Self {
        let pool = || scripts.scripts.iter().filter(|script| script.in_pool);
        let widths: usize = pool().map(|script| script.width as usize).sum();
        let widest = pool().map(|script| script.width as usize).max().unwrap_or(1);
        // A quarter more than the average, and a few of the widest.
        let slots = (users * widths).div_ceil(pool().count().max(1));
        let slots = (slots + slots / 4 + 8 * widest).min(users * widest);
        let records = scripts.scripts.iter().map(|script| script.records.len()).max();
        let words = records.unwrap_or(0).div_ceil(u64::BITS as usize);
        let mut players = Self {
            scripts,
            sessions,
            seed,
            slots: Vec::new(),
            free_slots: Vec::new(),
            seats: Vec::new(),
            free_seats: Vec::new(),
            marks: Vec::new(),
            words,
            ready: BinaryHeap::new(),
            promised: 0,
        };
        players.make_seats(users);
        players.make_slots(slots);
        players
    }

    /// How many players there is memory for.
    #[must_use]
    pub fn room(&self) -> usize {
        self.slots.len()
    }

    /// Whether nobody plays or is about to.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.players() == 0
    }

    /// Users that have not left.
    #[must_use]
    pub fn users(&self) -> usize {
        self.seats.len() - self.free_seats.len()
    }

    /// Users and sub-agents that have not ended.
    #[must_use]
    pub fn players(&self) -> usize {
        self.slots.len() - self.free_slots.len()
    }

    /// The number of the user that a player is or works for.
    #[must_use]
    pub fn user_of(&self, player: Player) -> u32 {
        self.slot(player).who.user
    }

    /// When the next player has something to do, if that is known.
    #[must_use]
    pub fn peek(&self) -> Option<Next> {
        self.ready.peek().map(|&Reverse(next)| next)
    }

    /// Lets a user in, who starts at once or at its time. Allocates when more users are here than
    /// were announced, or have more sub-agents than most.
    pub fn enter(&mut self, entrance: Entrance, now: RunNanos, emit: &mut impl FnMut(Event)) {
        let Entrance { user, session, conversation, cue, at, copy } = entrance;
        self.promised += self.scripts.scripts[conversation as usize].width.max(1) as usize;
        if self.promised > self.slots.len() {
            self.make_slots(self.promised + self.promised / 4 - self.slots.len());
        }
        if self.free_seats.is_empty() {
            self.make_seats(1 + self.seats.len() / 4);
        }
        let seat = self.free_seats.pop().expect("just made");
        let who = Who { seat, user, session, conversation, ..NOBODY };
        let who = self.take_slot(who, at.max(now));
        let end = (cue, How::Completed);
        self.seats[seat as usize] = Seat { who, copy, cue, playing: 1, end };
        self.clear_marks(seat);
        let slot = self.slot_mut(who.player);
        slot.cue = cue;
        if at > now {
            slot.state = State::Entering;
            self.ready.push(Reverse(Next { at, player: who.player }));
        } else {
            self.start(who.player, emit);
        }
    }

    /// Takes the next request that is ready at `now`; its player is blocked or begun next. Starts
    /// users whose time has come, and ends players whose next request is too long.
    pub fn pop(&mut self, now: RunNanos, emit: &mut impl FnMut(Event)) -> Option<Act> {
        while let Some(next) = self.peek().filter(|next| next.at <= now) {
            self.ready.pop();
            let player = next.player;
            if self.slot(player).state == State::Entering {
                self.start(player, emit);
                continue;
            }
            let turn = self.turn(player);
            if turn.too_long {
                self.leave(player, How::Truncated, now, emit);
                continue;
            }
            self.slot_mut(player).state = State::Popped;
            return Some(self.act(player, turn, next.at));
        }
        None
    }

    /// The request that was taken may not leave: its player comes back later, which is returned.
    ///
    /// # Panics
    /// When it was not taken.
    pub fn block(
        &mut self,
        player: Player,
        now: RunNanos,
        blocked: Blocked,
        emit: &mut impl FnMut(Event),
    ) -> RunNanos {
        let seed = self.seed;
        let slot = self.slot_mut(player);
        assert_eq!(slot.state, State::Popped, "only a request that was taken is blocked");
        slot.blocked = slot.blocked.saturating_add(1);
        slot.blocked_in_all = slot.blocked_in_all.saturating_add(1);
        let who = slot.who;
        let keys = [who.user.into(), who.part.into(), slot.blocked_in_all.into()];
        let backoff_ns = match blocked.turn_at {
            Some(at) => at.0.saturating_sub(now.0).max(1),
            None => backoff_ns(slot.blocked, drawn(seed, keys)),
        };
        slot.state = State::Ready;
        let at = after(now, backoff_ns);
        self.ready.push(Reverse(Next { at, player }));
        emit(Event::Limited { who, at: now, why: blocked.why, backoff_ns });
        at
    }

    /// The request that was taken leaves now, as `request` of the run.
    ///
    /// # Panics
    /// When it was not taken.
    pub fn begun(&mut self, player: Player, request: RequestIndex, now: RunNanos) {
        let record = self.turn(player).record;
        let slot = self.slot_mut(player);
        assert_eq!(slot.state, State::Popped, "only a request that was taken begins");
        slot.state = State::Asking(request);
        slot.last = Some((now, now));
        slot.after = Some(request);
        slot.agents_end = None;
        self.mark(player, record, false);
    }

    /// A player's request has ended, and `well` or not: the player goes on.
    ///
    /// # Panics
    /// When it is not under way.
    pub fn end(
        &mut self,
        player: Player,
        request: RequestIndex,
        now: RunNanos,
        well: bool,
        emit: &mut impl FnMut(Event),
    ) {
        let record = self.turn(player).record;
        let slot = self.slot_mut(player);
        assert_eq!(slot.state, State::Asking(request), "only a request under way ends");
        slot.last = slot.last.map(|(begin, _)| (begin, now));
        slot.done += 1;
        slot.cue += 1;
        if well {
            slot.blocked = 0;
            self.mark(player, record, true);
        }
        self.go_on(player, now, emit);
    }

    /// Starts a user, at its time.
    fn start(&mut self, player: Player, emit: &mut impl FnMut(Event)) {
        let Slot { who, cue, start: at, .. } = *self.slot(player);
        let copy = self.seats[who.seat as usize].copy;
        let total = requests(self.script(who).parts.get(usize::from(who.part)), cue);
        self.slot_mut(player).total = total;
        let number = who.user;
        emit(Event::Started { who, at, parent: None, number, cue, copy });
        self.go_on(player, at, emit);
    }

    /// Goes to a player's next request; on the way it starts the sub-agents that it comes to.
    fn go_on(&mut self, player: Player, now: RunNanos, emit: &mut impl FnMut(Event)) {
        // A sub-agent that only starts others ends at once: its parent is not waiting yet.
        self.slot_mut(player).state = State::Going;
        loop {
            let Slot { who, cue: at, agents, .. } = *self.slot(player);
            let cue = self.script(who).parts.get(usize::from(who.part));
            match cue.and_then(|part| part.cues.get(at as usize)).copied() {
                Some(Cue::Nothing) => self.slot_mut(player).cue += 1,
                Some(Cue::Agent { part, detached }) => {
                    self.slot_mut(player).cue += 1;
                    self.spawn(player, part, detached, now, emit);
                }
                _ if agents > 0 => return self.slot_mut(player).state = State::Waiting,
                Some(Cue::Request(turn)) => return self.schedule(player, turn),
                None => return self.leave(player, How::Completed, now, emit),
            }
        }
    }

    fn spawn(
        &mut self,
        parent: Player,
        part: u16,
        detached: bool,
        now: RunNanos,
        emit: &mut impl FnMut(Event),
    ) {
        let session = SessionIndex(self.sessions.fetch_add(1, Ordering::Relaxed));
        let Slot { who: by, after, .. } = *self.slot(parent);
        let who = self.take_slot(Who { session, part, ..by }, now);
        let own = &self.script(who).parts[usize::from(part)];
        let (number, total) = (own.number, requests(Some(own), 0));
        let slot = self.slot_mut(who.player);
        (slot.after, slot.total) = (after, total);
        slot.waiting = (!detached).then_some(parent);
        self.slot_mut(parent).agents += u32::from(!detached);
        let seat = &mut self.seats[who.seat as usize];
        seat.playing += 1;
        let copy = seat.copy;
        let parent = Some(by.session);
        emit(Event::Started { who, at: now, parent, number, cue: 0, copy });
        self.go_on(who.player, now, emit);
    }

    /// Puts a player's next request where it is found when it is due.
    fn schedule(&mut self, player: Player, turn: Turn) {
        let advanced = self.seats[self.slot(player).who.seat as usize].cue > 0;
        let slot = self.slot_mut(player);
        slot.own_due = match (slot.last, turn.wait.from) {
            (Some((_, end)), From::End) => after(end, turn.wait.ns),
            (Some((begin, end)), From::Start) => after(begin, turn.wait.ns).max(end),
            // The first request of a user that is advanced waits as if it were not the first.
            (None, _) if advanced && slot.who.part == 0 => after(slot.start, turn.wait.ns),
            (None, _) => slot.start,
        };
        slot.due = slot.agents_end.map_or(slot.own_due, |end| end.max(slot.own_due));
        slot.state = State::Ready;
        let at = slot.due;
        self.ready.push(Reverse(Next { at, player }));
    }

    /// The run ends: tells of all who play and were not done, in order of place. It does not let
    /// them go.
    pub fn stop(&self, now: RunNanos, emit: &mut impl FnMut(Event)) {
        let playing =
            self.slots.iter().filter(|slot| !matches!(slot.state, State::Free | State::Entering));
        for &Slot { who, done, total, .. } in playing {
            emit(Event::Stopped { who, at: now, done, total });
        }
    }

    /// Ends a player, and lets the one that waits for it go on.
    fn leave(&mut self, player: Player, how: How, now: RunNanos, emit: &mut impl FnMut(Event)) {
        let Slot { who, cue, waiting, after, done, total, .. } = *self.slot(player);
        *self.slot_mut(player) = Slot::FREE;
        self.free_slots.push(player.0);
        emit(match how {
            How::Completed => Event::Completed { who, at: now, done, total },
            How::Truncated => Event::Truncated { who, at: now, done, total },
        });
        let seat = &mut self.seats[who.seat as usize];
        if who.part == 0 {
            seat.end = (cue, how);
        }
        seat.playing -= 1;
        if seat.playing == 0 {
            let Seat { who, end: (cue, how), .. } = *seat;
            self.promised -= self.script(who).width.max(1) as usize;
            self.free_seats.push(who.seat);
            return emit(Event::Left { who, at: now, cue, how });
        }
        let Some(parent) = waiting else { return };
        let slot = self.slot_mut(parent);
        slot.agents -= 1;
        slot.agents_end = Some(now);
        if slot.last.is_none() && slot.after.is_none() {
            // Only sub-agents came before what follows.
            slot.after = after;
        }
        if slot.agents == 0 && slot.state == State::Waiting {
            self.go_on(parent, now, emit);
        }
    }

    fn act(&self, player: Player, turn: Turn, at: RunNanos) -> Act {
        let slot = self.slot(player);
        let who = slot.who;
        let script = self.script(who);
        let is_marked = |record: u32, well: bool| {
            let (word, bit) = self.mark_of(who, record, well);
            self.marks[word] & bit != 0
        };
        let mut shared = script.shared_of(&turn).iter();
        let sent = shared.find(|shared| is_marked(shared.record, false));
        let block = self.scripts.block_tokens.max(1);
        // What all share is cached in whole blocks, too.
        let warm = self.scripts.warm_tokens.min(turn.input_tokens) / block * block;
        let warm = if turn.has_blocks { warm } else { 0 };
        Act {
            who,
            turn,
            at,
            due: slot.due,
            own_due: slot.own_due,
            after: slot.after,
            copy: self.seats[who.seat as usize].copy,
            base_played: turn.base.is_some_and(|base| is_marked(base.record, true)),
            ideal_cached: sent.map_or(0, |shared| shared.tokens).max(warm),
            ideal_set: if slot.last.is_some() { turn.overlap } else { 0 },
        }
    }

    fn turn(&self, player: Player) -> Turn {
        let slot = self.slot(player);
        let part = &self.script(slot.who).parts[usize::from(slot.who.part)];
        *part.cues[slot.cue as usize].turn().expect("whoever is ready or asks is at a request")
    }

    fn script(&self, who: Who) -> &Script {
        &self.scripts.scripts[who.conversation as usize]
    }

    fn slot(&self, player: Player) -> &Slot {
        &self.slots[player.0 as usize]
    }

    fn slot_mut(&mut self, player: Player) -> &mut Slot {
        &mut self.slots[player.0 as usize]
    }

    /// A slot for a player that starts.
    fn take_slot(&mut self, who: Who, start: RunNanos) -> Who {
        debug_assert!(!self.free_slots.is_empty(), "slots are made for every user that enters");
        if self.free_slots.is_empty() {
            self.make_slots(1 + self.slots.len() / 4);
        }
        let place = self.free_slots.pop().expect("just made");
        let who = Who { player: Player(place), ..who };
        self.slots[place as usize] = Slot { who, start, state: State::Going, ..Slot::FREE };
        who
    }

    fn make_slots(&mut self, more: usize) {
        let old = u32::try_from(self.slots.len()).expect("players are numbered in 32 bits");
        self.slots.resize(self.slots.len() + more, Slot::FREE);
        let new = u32::try_from(self.slots.len()).expect("players are numbered in 32 bits");
        // Low places first.
        self.free_slots.extend((old..new).rev());
        self.free_slots.reserve(self.slots.len() - self.free_slots.len());
        self.ready.reserve(self.slots.len() - self.ready.len());
    }

    fn make_seats(&mut self, more: usize) {
        let old = u32::try_from(self.seats.len()).expect("seats are numbered in 32 bits");
        let empty = Seat { who: NOBODY, copy: 0, cue: 0, playing: 0, end: (0, How::Completed) };
        self.seats.resize(self.seats.len() + more, empty);
        let new = u32::try_from(self.seats.len()).expect("seats are numbered in 32 bits");
        self.free_seats.extend((old..new).rev());
        self.free_seats.reserve(self.seats.len() - self.free_seats.len());
        self.marks.resize(self.seats.len() * 2 * self.words, 0);
    }

    /// The word and bit that say whether a user sent a record, or had a good answer to it.
    fn mark_of(&self, who: Who, record: u32, well: bool) -> (usize, u64) {
        let place = (record - self.script(who).records.start) as usize;
        let first = (who.seat as usize * 2 + usize::from(well)) * self.words;
        (first + place / u64::BITS as usize, 1 << (place % u64::BITS as usize))
    }

    fn mark(&mut self, player: Player, record: u32, well: bool) {
        let (word, bit) = self.mark_of(self.slot(player).who, record, well);
        self.marks[word] |= bit;
    }

    fn clear_marks(&mut self, seat: u32) {
        let first = seat as usize * 2 * self.words;
        self.marks[first..first + 2 * self.words].fill(0);
    }
}

/// How many requests a part has from a cue on.
fn requests(part: Option<&Part>, cue: u32) -> u32 {
    let Some(part) = part else { return 0 };
    if cue == 0 {
        return part.requests;
    }
    let cues = part.cues.iter().skip(cue as usize);
    u32::try_from(cues.filter(|cue| cue.turn().is_some()).count()).unwrap_or(u32::MAX)
}

fn after(at: RunNanos, ns: i64) -> RunNanos {
    RunNanos(at.0.saturating_add(ns))
}
