//! Where a core finds the bytes of its requests: all of them from the start, or a window that moves
//! along with the run.
//!
//! The window is two bounded queues. Through one the rendering thread hands over requests in plan
//! order; through the other the core gives back what it needs no more, and only the rendering
//! thread makes or frees memory. Nothing here waits, and a core's side allocates when it is made
//! and never again. What is not rendered yet is said ([`Supply::ready`]), never waited for.

use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam::queue::ArrayQueue;
use onbeat_shared::log::plan_row::PlanRow;
use onbeat_shared::log::record::Usage;
use onbeat_shared::units::{CoreIndex, RequestIndex};

use crate::policy::players::{Act, Player};
use crate::render::live::{Length, Live, Piece, Pieces};
use crate::render::page::Rendered;
use crate::render::replies::Page;
use crate::render::users::{self, Composed, Replaced, Scenes, Stage, Strip};
use crate::render::{Bodies, Part};

/// Requests a core takes out of its window in one go when it has nothing better to do.
const STOCK_MAX: usize = 64;

/// The bytes of a run, before the cores take their share.
#[derive(Clone, Debug)]
pub enum Source {
    /// Everything was rendered.
    Whole(Arc<Bodies>),
    /// A window for each core.
    Ahead(Arc<[Arc<Window>]>),
    /// Texts that users' requests are put together from.
    Users(Arc<Scenes>),
}

/// What passes between the rendering thread and one core.
#[derive(Debug)]
pub struct Window {
    /// Rendered, in plan order.
    ready: ArrayQueue<(RequestIndex, Arc<Rendered>)>,
    /// How many have been put into `ready`, whole. A queue's `pop` waits for a `push` that has
    /// begun, and the rendering thread may lose its CPU in the middle of one: the core takes only
    /// what is known to be there.
    handed_over: AtomicU64,
    /// Needed no more by the core; the kernel may still read some of it.
    pub(super) back: ArrayQueue<Arc<Rendered>>,
    /// For each request of the plan, its place among those of its core.
    places: Arc<[u32]>,
    /// How many requests the core has.
    requests: usize,
}

/// The bytes of one core's requests.
#[derive(Debug)]
pub enum Supply {
    /// Everything is there.
    Whole(Arc<Bodies>),
    /// What is there of a moving window.
    Ahead(Store),
    /// Everything but what the server has to say first.
    Live(Box<Live>),
    /// Whatever users ask for.
    Users(Box<Stage>),
}

/// A core's end of its window.
#[derive(Debug)]
pub struct Store {
    window: Arc<Window>,
    /// How many it has taken out of the window.
    taken: u64,
    /// By place among the core's requests: those that are there.
    table: Vec<Option<Arc<Rendered>>>,
}

/// What keeps a slice of a request where it is.
#[derive(Debug)]
pub struct Share(Shared);

#[derive(Debug)]
enum Shared {
    Nothing,
    Whole(Arc<Bodies>, Part),
    Ahead(Arc<Rendered>, usize),
    Fixed(&'static [u8]),
    Reply(Arc<Page>, usize),
    Length(Arc<Length>),
    Scene(Arc<Scenes>, users::Place),
    Head(Arc<Strip>),
    Mark(Arc<Strip>, usize),
}

/// The slices of a request.
#[derive(Clone, Debug)]
pub struct Parts<'a>(Slices<'a>);

#[derive(Clone, Debug)]
enum Slices<'a> {
    Whole {
        chunks: &'a [Box<[u8]>],
        parts: slice::Iter<'a, Part>,
    },
    Ahead {
        rendered: &'a Rendered,
        next: usize,
    },
    Live(Pieces<'a>),
    /// `None`: the request is not out.
    Users(Option<users::Pieces<'a>>),
}

impl Window {
    /// For each request, its place among those of its core; and for each core, how many it has.
    pub(super) fn places(rows: &[PlanRow], cores: usize) -> (Arc<[u32]>, Vec<usize>) {
        let mut requests = vec![0_usize; cores];
        let place = |row: &PlanRow| {
            let own = &mut requests[usize::from(row.core.0)];
            *own += 1;
            u32::try_from(*own - 1).expect("a plan is bounded by its index type")
        };
        (rows.iter().map(place).collect(), requests)
    }

    /// A window of at most `room` rendered requests at a time.
    pub(super) fn new(places: &Arc<[u32]>, requests: usize, room: usize) -> Self {
        let room = room.clamp(1, requests.max(1));
        Self {
            ready: ArrayQueue::new(room),
            handed_over: AtomicU64::new(0),
            // One more than can be out: a `push` then never meets a `pop` that is not over.
            back: ArrayQueue::new(room + 1),
            places: Arc::clone(places),
            requests,
        }
    }

    /// Hands a request over to the core.
    ///
    /// # Panics
    /// When more are out than the window was made for.
    pub(super) fn hand_over(&self, request: RequestIndex, rendered: Arc<Rendered>) {
        let pushed = self.ready.push((request, rendered));
        assert!(pushed.is_ok(), "there is room for as many requests as there are pages");
        self.handed_over.fetch_add(1, Ordering::Release);
    }
}

impl Supply {
    /// The share of `core`.
    ///
    /// # Panics
    /// When the source was made for fewer cores.
    #[must_use]
    pub fn of(source: &Source, core: CoreIndex) -> Self {
        match source {
            Source::Whole(bodies) => match &bodies.histories {
                Some(histories) => Self::Live(Box::new(Live::new(bodies, histories, core))),
                None => Self::Whole(Arc::clone(bodies)),
            },
            Source::Ahead(windows) => {
                let window = Arc::clone(&windows[usize::from(core.0)]);
                let table = (0..window.requests).map(|_| None).collect();
                let mut store = Store { window, taken: 0, table };
                while store.take_one().is_some() {}
                Self::Ahead(store)
            }
            Source::Users(scenes) => Self::Users(Box::new(Stage::new(scenes))),
        }
    }

    /// Whether a request may have to be waited for.
    #[must_use]
    pub const fn is_ahead(&self) -> bool {
        matches!(self, Self::Ahead(_))
    }

    /// Whether `request` can be sent.
    #[must_use]
    pub fn ready(&mut self, request: RequestIndex) -> bool {
        let Self::Ahead(store) = self else { return true };
        let place = store.place(request);
        while store.table[place].is_none() {
            if store.take_one().is_none() {
                return false;
            }
        }
        true
    }

    /// Takes in what was rendered, at most so much that a due request is not kept waiting.
    pub fn stock(&mut self) {
        if let Self::Ahead(store) = self {
            for _ in 0..STOCK_MAX {
                if store.take_one().is_none() {
                    return;
                }
            }
        }
    }

    /// A player's next request leaves for the server `target`: it is put together, under a number
    /// that no request before it had. Only where [users](Supply::Users) decide what is sent.
    ///
    /// # Panics
    /// Where a plan decides.
    pub fn compose(&mut self, request: RequestIndex, act: &Act, target: u16) -> Composed {
        match self {
            Self::Users(stage) => stage.compose(request, act, target),
            Self::Whole(_) | Self::Ahead(_) | Self::Live(_) => {
                unreachable!("who plans a request does not put it together")
            }
        }
    }

    /// A player has ended: what it has heard is needed no more.
    pub fn leave(&mut self, player: Player) {
        if let Self::Users(stage) = self {
            stage.leave(player);
        }
    }

    /// Which replies recorded words stand for, so far; `None` where that cannot be.
    #[must_use]
    pub const fn replaced(&self) -> Option<Replaced> {
        match self {
            Self::Users(stage) => Some(stage.replaced()),
            Self::Whole(_) | Self::Ahead(_) | Self::Live(_) => None,
        }
    }

    /// `request` is about to leave: what it repeats is put together. Returns whether its reply is
    /// [heard](Supply::hear).
    pub fn begin(&mut self, request: RequestIndex) -> bool {
        match self {
            Self::Whole(_) | Self::Ahead(_) => false,
            Self::Live(live) => live.begin(request),
            Self::Users(stage) => stage.begin(request),
        }
    }

    /// A piece of the reply to `request`, as it stands in the JSON, and whether it is reasoning.
    pub fn hear(&mut self, request: RequestIndex, piece: &[u8], reasoning: bool) {
        match self {
            Self::Whole(_) | Self::Ahead(_) => {}
            Self::Live(live) => live.hear(request, piece),
            Self::Users(stage) => stage.hear(request, piece, reasoning),
        }
    }

    /// The reply to `request` has something that is not repeated.
    pub fn leave_out(&mut self, request: RequestIndex) {
        match self {
            Self::Whole(_) | Self::Ahead(_) => {}
            Self::Live(live) => live.leave_out(request),
            Self::Users(stage) => stage.leave_out(request),
        }
    }

    /// What the server said of the tokens of `request`; to be told before it has
    /// [ended](Supply::ended).
    pub fn reply_tokens(&mut self, request: RequestIndex, usage: Usage) {
        if let Self::Users(stage) = self {
            stage.reply_tokens(request, usage);
        }
    }

    /// Whether something of the reply to `request` is not repeated.
    #[must_use]
    pub fn is_cut(&self, request: RequestIndex) -> bool {
        match self {
            Self::Whole(_) | Self::Ahead(_) => false,
            Self::Live(live) => live.is_cut(request),
            Self::Users(stage) => stage.is_cut(request),
        }
    }

    /// `request` has ended, and its reply is repeated if it ended `well`.
    pub fn ended(&mut self, request: RequestIndex, well: bool) {
        match self {
            Self::Whole(_) | Self::Ahead(_) => {}
            Self::Live(live) => live.end(request, well),
            Self::Users(stage) => stage.ended(request, well),
        }
        self.done(request);
    }

    /// The whole HTTP request, head first, in the slices a vectored write takes.
    ///
    /// # Panics
    /// When the request is not [ready](Supply::ready), or done.
    #[must_use]
    pub fn parts(&self, request: RequestIndex) -> Parts<'_> {
        match self {
            Self::Whole(bodies) => bodies.parts(request),
            Self::Ahead(store) => {
                Parts(Slices::Ahead { rendered: store.rendered(request), next: 0 })
            }
            Self::Live(live) => Parts(Slices::Live(live.pieces(request))),
            Self::Users(stage) => Parts(Slices::Users(stage.pieces(request))),
        }
    }

    /// Bytes of head and body together.
    ///
    /// # Panics
    /// When the request is not [ready](Supply::ready), or done.
    #[must_use]
    pub fn request_bytes(&self, request: RequestIndex) -> u64 {
        match self {
            Self::Whole(bodies) => bodies.request_bytes(request),
            Self::Ahead(store) => store.rendered(request).bytes(),
            Self::Live(live) => live.request_bytes(request),
            Self::Users(stage) => stage.request_bytes(request),
        }
    }

    /// The bytes of `request` are needed no more, sent or not; saying so twice does no harm.
    ///
    /// # Panics
    /// Never: there is room for every request that is out.
    pub fn done(&mut self, request: RequestIndex) {
        let Self::Ahead(store) = self else { return };
        let place = store.place(request);
        if let Some(rendered) = store.table[place].take() {
            let kept = store.window.back.push(rendered);
            assert!(kept.is_ok(), "there is room for every request that is out");
        }
    }

    /// Keeps slice number `part` of `request` where it is for as long as the share lives, also when
    /// the request is [done](Supply::done); nothing if there is no such slice.
    ///
    /// # Panics
    /// When the request is not [ready](Supply::ready), or done.
    #[must_use]
    pub fn share(&self, request: RequestIndex, part: usize) -> Share {
        Share(match self {
            Self::Whole(bodies) => match bodies.parts_of(request).get(part) {
                Some(&part) => Shared::Whole(Arc::clone(bodies), part),
                None => Shared::Nothing,
            },
            Self::Ahead(store) => Shared::Ahead(Arc::clone(store.present(request)), part),
            Self::Live(live) => match live.pieces(request).nth(part) {
                Some(Piece::Rendered(bodies, part)) => Shared::Whole(Arc::clone(bodies), part),
                Some(Piece::Fixed(bytes)) => Shared::Fixed(bytes),
                Some(Piece::Reply(page, used)) => Shared::Reply(Arc::clone(page), used),
                Some(Piece::Length(length)) => Shared::Length(Arc::clone(length)),
                None => Shared::Nothing,
            },
            Self::Users(stage) => stage
                .pieces(request)
                .and_then(|mut all| all.nth(part))
                .map_or(Shared::Nothing, Shared::of_users),
        })
    }
}

impl Shared {
    fn of_users(piece: users::Piece<'_>) -> Self {
        match piece {
            users::Piece::Scene(scenes, place) => Self::Scene(Arc::clone(scenes), place),
            users::Piece::Fixed(bytes) => Self::Fixed(bytes),
            users::Piece::Reply(page, used) => Self::Reply(Arc::clone(page), used),
            users::Piece::Head(strip) => Self::Head(Arc::clone(strip)),
            users::Piece::Mark(strip, bytes) => Self::Mark(Arc::clone(strip), bytes),
        }
    }
}

impl Share {
    /// The slice.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            Shared::Nothing => &[],
            Shared::Whole(bodies, part) => bodies.bytes_of(*part),
            Shared::Ahead(rendered, part) => rendered.part(*part).unwrap_or_default(),
            Shared::Fixed(bytes) => bytes,
            Shared::Reply(page, used) => &page[..*used],
            Shared::Length(length) => length.bytes(),
            Shared::Scene(scenes, place) => scenes.bytes(*place),
            Shared::Head(strip) => strip.head(),
            Shared::Mark(strip, bytes) => strip.mark_bytes(*bytes),
        }
    }
}

impl Store {
    fn place(&self, request: RequestIndex) -> usize {
        self.window.places[request.as_usize()] as usize
    }

    fn present(&self, request: RequestIndex) -> &Arc<Rendered> {
        self.table[self.place(request)].as_ref().expect("asked before: see `ready`")
    }

    fn rendered(&self, request: RequestIndex) -> &Rendered {
        self.present(request)
    }

    fn take_one(&mut self) -> Option<()> {
        if self.taken == self.window.handed_over.load(Ordering::Acquire) {
            return None;
        }
        let (request, rendered) = self.window.ready.pop()?;
        self.taken += 1;
        let place = self.place(request);
        self.table[place] = Some(rendered);
        Some(())
    }
}

impl<'a> Parts<'a> {
    pub(super) fn whole(chunks: &'a [Box<[u8]>], parts: &'a [Part]) -> Self {
        Self(Slices::Whole { chunks, parts: parts.iter() })
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        self.nth(0)
    }

    #[inline]
    fn nth(&mut self, skipped: usize) -> Option<&'a [u8]> {
        match &mut self.0 {
            Slices::Whole { chunks, parts } => {
                let part = parts.nth(skipped)?;
                let start = part.start as usize;
                Some(&chunks[part.chunk as usize][start..start + part.len as usize])
            }
            Slices::Ahead { rendered, next } => {
                let part = rendered.part(next.saturating_add(skipped))?;
                *next += skipped + 1;
                Some(part)
            }
            Slices::Live(pieces) => pieces.nth(skipped).map(Piece::bytes),
            Slices::Users(pieces) => pieces.as_mut()?.nth(skipped).map(users::Piece::bytes),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = match &self.0 {
            Slices::Whole { parts, .. } => parts.len(),
            Slices::Ahead { rendered, next } => rendered.part_count().saturating_sub(*next),
            Slices::Live(pieces) => pieces.len(),
            Slices::Users(pieces) => pieces.as_ref().map_or(0, ExactSizeIterator::len),
        };
        (left, Some(left))
    }
}

impl ExactSizeIterator for Parts<'_> {}
