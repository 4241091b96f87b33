//! What the lanes in sight show: a bar for each request, or a strip where there are too many.
//!
//! A bar has the instants of its phases, so that it can be drawn at any zoom; a strip has, for each
//! of its equal steps of time, how many requests were waiting for a token, receiving tokens, or
//! answering in one piece, averaged over the step. Chunk ticks are there when they stand far enough
//! apart to be told from each other.

use std::{collections::BTreeSet, ops::Range, sync::Arc};

use onbeat_shared::{
    metrics::{
        held::Wait,
        phases::{Phases, phases},
    },
    run::Left,
    units::{CoreIndex, RunNanos, SessionIndex},
};

use super::lanes::{self, Lanes, ROWS_MAX};
use super::shades::{self, Shade};
use crate::fate::Fate;
use crate::opened::OpenedRun;
use crate::quantity;
use crate::series::with_margin;
use crate::state::TimeRange;

/// Fewest points of a lane's width for each bar in it; with more bars it becomes a strip.
const POINTS_PER_BAR: usize = 6;
/// Points of a strip's step.
const POINTS_PER_STEP: f64 = 4.0;
/// Fewest points between chunk ticks on average.
const POINTS_PER_TICK: f64 = 5.0;
/// Most chunk ticks of all lanes together.
const TICKS_MAX: usize = 8_000;

/// The stretch of time in sight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Which.
    pub view: TimeRange,
    /// How wide it is, in points.
    pub width: u16,
}

impl Window {
    /// The time that one point stands for (ns).
    fn per_point(self) -> f64 {
        self.view.span() as f64 / f64::from(self.width.max(1))
    }
}

/// Some lanes, ready to draw.
#[derive(Clone, Debug)]
pub struct Shown {
    /// All of them.
    pub lanes: Arc<Lanes>,
    /// The first that is here.
    pub first: usize,
    /// What they show.
    pub rows: Vec<Lane>,
    /// When each core was stalled, by core.
    pub stalls: Vec<(CoreIndex, Vec<Shade>)>,
    /// What occurs in it, for the legend.
    pub kinds: BTreeSet<Kind>,
    /// How this was made, in words.
    pub note: String,
    /// What it shows, for people who do not see it.
    pub summary: String,
    /// Why there is nothing to see, if there is not.
    pub empty: Option<String>,
}

/// What can occur in lanes, in the order of the legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A connection that a request waited for, and its sending.
    Send,
    /// Sent, and no token yet.
    Prefill,
    /// First to last token.
    Decode,
    /// Last token to end.
    Tail,
    /// An answer in one piece.
    Whole,
    /// When a request was due.
    Due,
    /// A user that was held back.
    Held,
    /// A request that failed.
    Failed,
    /// One that was cancelled.
    Cut,
    /// One in flight when the log ends.
    Open,
    /// One that never left.
    Unsent,
    /// A user that played its list to the end.
    Completed,
    /// A user that ended at the context limit.
    Truncated,
    /// A stall of the host.
    Stall,
}

/// One lane.
#[derive(Clone, Debug)]
pub struct Lane {
    /// Its session.
    pub session: SessionIndex,
    /// Its name.
    pub name: String,
    /// How far it is indented.
    pub depth: u8,
    /// Its requests.
    pub requests: usize,
    /// The core that sends them, if it is one.
    pub core: Option<CoreIndex>,
    /// From when to when its user was there.
    pub life: Option<Life>,
    /// When its user was held back.
    pub waits: Vec<Wait>,
    /// When requests were due that never left.
    pub unsent: Vec<(RunNanos, u32)>,
    /// Its requests in sight.
    pub body: Body,
}

/// A user's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// When it began.
    pub started: RunNanos,
    /// When it ended and how, if the log says so.
    pub ended: Option<(RunNanos, Left)>,
}

/// A lane's requests.
#[derive(Clone, Debug)]
pub enum Body {
    /// One by one.
    Bars {
        /// The bars, by time.
        bars: Vec<Bar>,
        /// How many stand one below the other.
        rows: u8,
    },
    /// Too many for that.
    Strip(Strip),
}

/// One request.
#[derive(Clone, Debug)]
pub struct Bar {
    /// Which.
    pub request: u32,
    /// Its row within the lane.
    pub row: u8,
    /// What became of it.
    pub fate: Fate,
    /// When it was due.
    pub due: Option<RunNanos>,
    /// Its phases.
    pub phases: Phases,
    /// When its chunks came, if they can be told apart.
    pub ticks: Box<[i64]>,
}

impl Bar {
    /// Whether its answer came in one piece: it succeeded without a token of its own.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.phases.first_token.is_none() && matches!(self.fate, Fate::Ok)
    }
}

/// Many requests, step by step.
#[derive(Clone, Debug, PartialEq)]
pub struct Strip {
    /// Start of the first step.
    pub start: RunNanos,
    /// Length of a step (ns).
    pub width: f64,
    /// The steps.
    pub steps: Vec<Step>,
    /// Most requests at once in any step.
    pub peak: f32,
    /// Not too many requests for the lane's width, but too many at once for its height.
    pub is_deep: bool,
}

/// One step of a strip: how many requests were in each phase, on average.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Step {
    /// Sent, and no token yet.
    pub waiting: f32,
    /// Receiving tokens.
    pub decoding: f32,
    /// In flight for an answer that came in one piece.
    pub whole: f32,
    /// Requests that failed in it.
    pub failed: u32,
}

impl Step {
    /// All in flight.
    #[must_use]
    pub fn total(&self) -> f32 {
        self.waiting + self.decoding + self.whole
    }
}

/// What a range of lanes shows.
#[must_use]
pub fn shown(opened: &OpenedRun, lanes: Arc<Lanes>, window: Window, wanted: Range<usize>) -> Shown {
    let first = wanted.start.min(lanes.len());
    let end = wanted.end.min(lanes.len());
    let wide = with_margin(opened, window.view);
    let mut ticks = 0;
    let rows: Vec<Lane> = (first..end)
        .map(|lane| {
            let own = lane_of(opened, &lanes, lane, window, wide);
            with_ticks(opened, own, window, &mut ticks)
        })
        .collect();
    let empty = empty(opened, &lanes);
    let stalls = shades::stalls(opened, wide, window.per_point());
    let mut kinds: BTreeSet<Kind> = rows.iter().flat_map(|lane| kinds(lane, window)).collect();
    if !stalls.is_empty() {
        kinds.insert(Kind::Stall);
    }
    Shown {
        first,
        stalls,
        kinds,
        note: note(&lanes, &rows, ticks),
        summary: empty.clone().unwrap_or_else(|| summary(opened, &lanes, &rows, window.view)),
        empty,
        rows,
        lanes,
    }
}

fn lane_of(
    opened: &OpenedRun,
    lanes: &Lanes,
    lane: usize,
    window: Window,
    wide: TimeRange,
) -> Lane {
    let run = &opened.run;
    let head = lanes.head(lane);
    let in_view = lanes.near(run, lane, window.view).len();
    let room = usize::from(window.width) / POINTS_PER_BAR;
    let near = lanes.near(run, lane, wide);
    let mut bars: Vec<Bar> = Vec::new();
    let is_crowded = in_view > room.max(1);
    if !is_crowded {
        bars = near.clone().filter_map(|place| bar(opened, lanes, place)).collect();
    }
    // Where more requests are in flight at once than a lane has rows, fewer may be here.
    let rows = if head.rows > ROWS_MAX { packed(&mut bars) } else { Some(head.rows.max(1)) };
    let body = match rows.filter(|_| !is_crowded) {
        Some(rows) => Body::Bars { bars, rows },
        None => {
            let mut strip = strip(opened, &lanes.all()[near.clone()], window, wide);
            strip.is_deep = !is_crowded;
            Body::Strip(strip)
        }
    };
    let due = |&i: &u32| {
        let is_unsent = !run.requests.was_sent(i as usize);
        run.requests.intended(i as usize).filter(|_| is_unsent).map(|due| (due, i))
    };
    let name = lanes::name_of(run, head.session);
    let nameless = || format!("session {}, without a name", head.session.0);
    let near_waits = |wait: &&Wait| wait.from < wide.end && wait.to >= wide.start;
    let waits = opened.timeline.waits_of(opened, head.session);
    Lane {
        session: head.session,
        name: if name.is_empty() { nameless() } else { name.to_owned() },
        depth: head.depth,
        requests: head.sent,
        core: head.core,
        life: life(opened, head.session),
        waits: waits.iter().filter(near_waits).copied().collect(),
        unsent: match body {
            Body::Bars { .. } => lanes.all()[near].iter().filter_map(due).collect(),
            Body::Strip(_) => Vec::new(),
        },
        body,
    }
}

/// Puts bars into as few rows as they need; `None` if those are more than a lane has.
fn packed(bars: &mut [Bar]) -> Option<u8> {
    let mut free: Vec<RunNanos> = Vec::new();
    for bar in bars {
        let own = &bar.phases;
        let row = free.iter().position(|&free| free <= own.sent).unwrap_or(free.len());
        if row >= usize::from(ROWS_MAX) {
            return None;
        }
        let end = own.end.unwrap_or(RunNanos(i64::MAX));
        match free.get_mut(row) {
            Some(free) => *free = end,
            None => free.push(end),
        }
        bar.row = u8::try_from(row).unwrap_or(ROWS_MAX);
    }
    Some(u8::try_from(free.len()).unwrap_or(ROWS_MAX).max(1))
}

fn life(opened: &OpenedRun, session: SessionIndex) -> Option<Life> {
    let users = opened.run.users.as_ref()?;
    let user = users.users.get(session.as_usize())?;
    let ended = user.ended.zip(user.left);
    Some(Life { started: user.started?, ended })
}

fn bar(opened: &OpenedRun, lanes: &Lanes, place: usize) -> Option<Bar> {
    let run = &opened.run;
    let request = lanes.all()[place];
    let i = request as usize;
    let phases = phases(run, opened.timeline.openings(opened), i)?;
    Some(Bar {
        request,
        row: lanes.row(place),
        fate: Fate::of(run, i),
        due: run.requests.due(i),
        phases,
        ticks: Box::default(),
    })
}

/// Adds the chunk ticks to bars in which they stand far enough apart.
fn with_ticks(opened: &OpenedRun, mut lane: Lane, window: Window, ticks: &mut usize) -> Lane {
    let Body::Bars { bars, .. } = &mut lane.body else { return lane };
    for bar in bars {
        let (Some(first), Some(last)) = (bar.phases.first_token, bar.phases.last_token) else {
            continue;
        };
        let all = opened.run.chunks.row(bar.request as usize).times();
        let points = last.0.saturating_sub(first.0) as f64 / window.per_point();
        if all.len() < 2 || points / (all.len() as f64) < POINTS_PER_TICK {
            continue;
        }
        let from = all.partition_point(|&time| time < window.view.start.0);
        let to = all.partition_point(|&time| time < window.view.end.0).max(from);
        if *ticks + (to - from) <= TICKS_MAX {
            *ticks += to - from;
            bar.ticks = all[from..to].into();
        }
    }
    lane
}

/// Counts kept as what is added in each step and from each step on, so that a request costs the
/// same however long it is.
struct Sums {
    start: f64,
    width: f64,
    parts: Vec<f64>,
    steps: Vec<f64>,
}

impl Sums {
    fn new(start: f64, width: f64, count: usize) -> Self {
        Self { start, width, parts: vec![0.0; count], steps: vec![0.0; count + 1] }
    }

    /// A request that is there between two instants.
    fn add(&mut self, from: RunNanos, to: RunNanos) {
        let count = self.parts.len() as f64;
        let place = |time: RunNanos| ((time.0 as f64 - self.start) / self.width).clamp(0.0, count);
        let (from, to) = (place(from), place(to));
        if to <= from {
            return;
        }
        let (first, last) = (step_at(from), step_at(to));
        if first == last {
            self.parts[first] += to - from;
            return;
        }
        self.parts[first] += (first + 1) as f64 - from;
        if let Some(part) = self.parts.get_mut(last) {
            *part += to - last as f64;
        }
        self.steps[first + 1] += 1.0;
        self.steps[last] -= 1.0;
    }

    /// The mean of each step.
    fn means(&self) -> impl Iterator<Item = f32> {
        let through = self.steps.iter().scan(0.0, |now, step| {
            *now += step;
            Some(*now)
        });
        self.parts.iter().zip(through).map(|(part, through)| {
            #[expect(clippy::cast_possible_truncation, reason = "a height on screen")]
            let mean = (part + through).max(0.0) as f32;
            mean
        })
    }
}

/// The step that holds a place of at least zero.
fn step_at(place: f64) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rounds down; places are at least zero and at most the number of steps"
    )]
    let step = place as usize;
    step
}

fn strip(opened: &OpenedRun, requests: &[u32], window: Window, wide: TimeRange) -> Strip {
    let run = &opened.run;
    let width = (window.per_point() * POINTS_PER_STEP).max(1.0);
    let start = wide.start.0 as f64;
    let count = step_at(wide.span() as f64 / width).clamp(1, 20_000);
    let [mut waiting, mut decoding, mut whole] =
        std::array::from_fn(|_| Sums::new(start, width, count));
    let mut failed = vec![0_u32; count];
    for i in requests.iter().map(|&i| i as usize) {
        let Some(own) = phases(run, opened.timeline.openings(opened), i) else { continue };
        let end = own.end.unwrap_or_else(|| opened.whole().end.max(own.sent));
        match (own.first_token, run.requests.is_ok(i)) {
            (Some(first), _) => {
                waiting.add(own.sent, first);
                decoding.add(first, end);
            }
            (None, true) => whole.add(own.sent, end),
            (None, false) => waiting.add(own.sent, end),
        }
        if Fate::of(run, i) == Fate::Failed {
            let place = (end.0 as f64 - start) / width;
            if (0.0..count as f64).contains(&place) {
                failed[step_at(place)] += 1;
            }
        }
    }
    let phases = waiting.means().zip(decoding.means()).zip(whole.means());
    let steps: Vec<Step> = phases
        .zip(failed)
        .map(|(((waiting, decoding), whole), failed)| Step { waiting, decoding, whole, failed })
        .collect();
    let peak = steps.iter().map(Step::total).fold(0.0, f32::max);
    Strip { start: wide.start, width, steps, peak, is_deep: false }
}

/// What occurs in a lane; phases that are too short to be seen do not.
fn kinds(lane: &Lane, window: Window) -> BTreeSet<Kind> {
    let mut kinds = BTreeSet::new();
    let mut add = |kind: Kind, is_there: bool| {
        if is_there {
            kinds.insert(kind);
        }
    };
    add(Kind::Held, !lane.waits.is_empty());
    add(Kind::Unsent, !lane.unsent.is_empty());
    let left = lane.life.and_then(|life| life.ended);
    let left = left.filter(|(end, _)| window.view.contains(*end)).map(|(_, left)| left);
    add(Kind::Completed, left == Some(Left::Completed));
    add(Kind::Truncated, left == Some(Left::Truncated));
    match &lane.body {
        Body::Strip(strip) => {
            for step in &strip.steps {
                add(Kind::Prefill, step.waiting > 0.0);
                add(Kind::Decode, step.decoding > 0.0);
                add(Kind::Whole, step.whole > 0.0);
                add(Kind::Failed, step.failed > 0);
            }
        }
        Body::Bars { bars, .. } => {
            let seen = |from: RunNanos, to: Option<RunNanos>| {
                to.is_some_and(|to| to.0.saturating_sub(from.0) as f64 >= 0.5 * window.per_point())
            };
            for bar in bars {
                let own = &bar.phases;
                let last = own.last_token;
                add(Kind::Send, seen(own.connect.unwrap_or(own.sent), Some(own.accepted)));
                add(Kind::Prefill, own.first_token.is_some() || bar.fate != Fate::Ok);
                add(Kind::Decode, own.first_token.is_some_and(|first| seen(first, last)));
                add(Kind::Tail, last.is_some_and(|last| seen(last, own.end)));
                add(Kind::Whole, bar.is_whole());
                add(Kind::Due, bar.due.is_some_and(|due| seen(due, Some(own.sent))));
                add(Kind::Failed, bar.fate == Fate::Failed);
                add(Kind::Cut, bar.fate == Fate::Cut);
                add(Kind::Open, bar.fate == Fate::Open);
            }
        }
    }
    kinds
}

fn note(lanes: &Lanes, rows: &[Lane], ticks: usize) -> String {
    let strips = rows.iter().filter(|lane| matches!(lane.body, Body::Strip(_))).count();
    let mut parts = vec![quantity::counted(lanes.len() as u64, "lane")];
    if lanes.hidden > 0 {
        parts.push(format!("{} left out", quantity::count(lanes.hidden as u64)));
    }
    if strips > 0 && strips == rows.len() {
        parts.push("more requests than pixels: how many were in which phase".to_owned());
    } else if strips > 0 {
        parts.push("crowded lanes: how many were in which phase".to_owned());
    } else if ticks > 0 {
        parts.push("a tick for each chunk".to_owned());
    }
    parts.join(", ")
}

fn summary(opened: &OpenedRun, lanes: &Lanes, rows: &[Lane], view: TimeRange) -> String {
    let span = view.span() as f64;
    let words = |time: RunNanos| quantity::instant(time.0 as f64, span);
    let requests: usize = rows.iter().map(|lane| lane.requests).sum();
    let stalls = opened.run.stalls.all().len() as u64;
    format!(
        "From {} to {}: {}; the {} from {} on have {}. {} of the host in the whole run.",
        words(view.start),
        words(view.end),
        quantity::counted(lanes.len() as u64, "lane"),
        quantity::count(rows.len() as u64),
        rows.first().map_or("none", |lane| lane.name.as_str()),
        quantity::counted(requests as u64, "request"),
        quantity::counted(stalls, "stall"),
    )
}

fn empty(opened: &OpenedRun, lanes: &Lanes) -> Option<String> {
    if !lanes.is_empty() {
        return None;
    }
    let words = if opened.by_sent().is_empty() {
        "No request left, so there is no lane"
    } else if lanes.hidden > 0 {
        "No lane has a name like that"
    } else {
        "No request passes the filter"
    };
    Some(words.to_owned())
}
