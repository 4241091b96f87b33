//! All there is to know of one request: its waterfall, its facts, its session, its neighbours.

use onbeat_shared::{
    metrics::{
        life::{self, Phase, PhaseKind},
        throughput,
    },
    run::Run,
    units::RunNanos,
};

use crate::fields::{Field, escaped};
use crate::opened::OpenedRun;
use crate::quantity;
use crate::series::number::Number;
use crate::state::TimeRange;

/// Content events that are told apart in a waterfall: more than it has pixels.
const TICKS: i64 = 1_500;
/// Neighbours on each side.
const NEIGHBOURS: usize = 4;
/// How far along the run neighbours are looked for.
const FARTHEST: usize = 100_000;

/// The details of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Details {
    /// Which.
    pub request: u32,
    /// How many requests the run had then.
    pub planned: usize,
    /// Its waterfall.
    pub waterfall: Waterfall,
    /// Its facts in groups; a value is `None` where the log has none.
    pub facts: Vec<Group>,
    /// What the server or the system said when it failed, control characters escaped.
    pub error: Option<String>,
    /// The requests of its session, by turn; itself among them.
    pub turns: Vec<u32>,
    /// When those of them that left were on their way, by time, thinned.
    pub turn_spans: Vec<(u32, TimeRange)>,
    /// Requests near it, by when they were sent; itself among them.
    pub neighbours: Vec<Neighbour>,
}

/// A request's life as stretches of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Waterfall {
    /// What it covers.
    pub span: TimeRange,
    /// The stretches, by their start.
    pub phases: Vec<Phase>,
    /// When content events came, thinned: neighbours closer than a pixel are one.
    pub ticks: Vec<RunNanos>,
    /// How many there were.
    pub chunks: usize,
    /// Host stalls of its core meanwhile.
    pub stalls: Vec<TimeRange>,
}

/// Facts that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// What they are about.
    pub name: &'static str,
    /// Names and values.
    pub facts: Vec<(&'static str, Option<String>)>,
}

/// A request near another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Which.
    pub request: u32,
    /// How it is near.
    pub how: Near,
}

/// How a request is near another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Near {
    /// It is that one.
    Itself,
    /// Sent by the same core right before or after.
    Core,
    /// The one before or after it on the same connection.
    Connection,
}

impl Near {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Itself => "this one",
            Self::Core => "core",
            Self::Connection => "connection",
        }
    }
}

/// The details of a request.
///
/// # Panics
/// If the run has no such request.
#[must_use]
pub fn details(opened: &OpenedRun, request: u32) -> Details {
    let run = &opened.run;
    let i = request as usize;
    let turns = turns(run, i);
    Details {
        request,
        planned: run.requests.len(),
        waterfall: waterfall(run, i),
        facts: facts(opened, i),
        error: run.error_text(i).map(escaped),
        turn_spans: turn_spans(run, i, &turns),
        turns,
        neighbours: neighbours(opened, request),
    }
}

fn waterfall(run: &Run, i: usize) -> Waterfall {
    let requests = &run.requests;
    let phases = life::phases(run, i);
    let known = [requests.due(i), requests.ready(i), requests.sent(i), requests.done(i)];
    let times = || {
        let ends = phases.iter().flat_map(|phase| [phase.start, phase.end]);
        known.into_iter().flatten().chain(ends)
    };
    let (first, last) = (times().min(), times().max());
    let span = TimeRange::between(first.unwrap_or_default(), last.or(first).unwrap_or_default());
    let row = run.chunks.row(i);
    let stalls = life::stalls(run, i).iter();
    let stalls = stalls.map(|stall| TimeRange::between(stall.start, stall.end()));
    Waterfall {
        ticks: thinned(row.times(), span),
        chunks: row.len(),
        stalls: stalls.filter_map(|stall| stall.clipped(span)).collect(),
        span,
        phases,
    }
}

/// At most one instant in each of [`TICKS`] steps of a span; first and last stay.
fn thinned(times: &[i64], span: TimeRange) -> Vec<RunNanos> {
    let step = (span.span() / TICKS).max(1);
    let place = |time: i64| time.saturating_sub(span.start.0) / step;
    let mut ticks: Vec<RunNanos> = times
        .chunk_by(|&a, &b| place(a) == place(b))
        .filter_map(|near| near.first().copied().map(RunNanos))
        .collect();
    if let Some(&last) = times.last()
        && ticks.last() != Some(&RunNanos(last))
    {
        ticks.push(RunNanos(last));
    }
    ticks
}

const WHO: &[Field] = &[
    Field::Number,
    Field::TraceRow,
    Field::Session,
    Field::Turn,
    Field::User,
    Field::Trace,
    Field::Target,
    Field::Core,
    Field::Connection,
    Field::Reused,
];
const WHEN: &[Field] =
    &[Field::Due, Field::Ready, Field::Sent, Field::Done, Field::Lateness, Field::Queue];
const HOW_LONG: &[Field] = &[
    Field::Ttft,
    Field::TtftDue,
    Field::EffectiveTtft,
    Field::FirstOutput,
    Field::Ttst,
    Field::Itl,
    Field::LongestGap,
    Field::Speed,
    Field::Decode,
    Field::Ntpot,
    Field::E2e,
    Field::E2eDue,
    Field::Send,
    Field::FirstByte,
    Field::AgentWait,
];
const HOW_MUCH: &[Field] = &[
    Field::Input,
    Field::Cached,
    Field::CachedShare,
    Field::IdealCached,
    Field::Output,
    Field::Reasoning,
    Field::Planned,
    Field::Chunks,
    Field::Body,
    Field::Answer,
];
const HOW: &[Field] = &[
    Field::Outcome,
    Field::Class,
    Field::Status,
    Field::Finish,
    Field::Stalled,
    Field::Burst,
    Field::Resent,
    Field::Underrun,
];

fn facts(opened: &OpenedRun, i: usize) -> Vec<Group> {
    let run = &opened.run;
    let group = |name, fields: &[Field]| {
        let fields = fields.iter().filter(|field| field.belongs_to(run));
        let facts = fields.map(|field| (field.row().heading, field.words(run, i)));
        Group { name, facts: facts.collect() }
    };
    let mut groups = vec![
        group("End", HOW),
        group("Latency", HOW_LONG),
        group("Size", HOW_MUCH),
        group("Times", WHEN),
        group("Identity", WHO),
    ];
    let in_flight = Number::InFlight.value(opened, i);
    groups[3].facts.push(("In flight then", in_flight.map(quantity::number)));
    groups.extend(recorded(run, i));
    groups
}

/// What the trace recorded of the original answer.
fn recorded(run: &Run, i: usize) -> Option<Group> {
    let row = run.recorded(i)?;
    let time = |nanos: Option<i64>| nanos.map(|nanos| quantity::measured(nanos as f64));
    let word = |yes: Option<bool>| yes.map(|yes| if yes { "yes" } else { "no" }.to_owned());
    let facts = vec![
        ("First token", time(row.first_token_ns)),
        ("End", time(row.duration_ns)),
        ("Cached", row.cached_tokens.map(|tokens| quantity::count(tokens.into()))),
        ("Given up", word(row.cancelled)),
        ("Streamed", word(row.streamed)),
    ];
    Some(Group { name: "In the trace", facts })
}

fn turns(run: &Run, i: usize) -> Vec<u32> {
    let session = run.plan[i].session;
    let places = (0_u32..).zip(run.plan.iter()).filter(|(_, row)| row.session == session);
    let mut turns: Vec<u32> = places.map(|(place, _)| place).collect();
    turns.sort_by_key(|&place| run.plan[place as usize].turn);
    turns
}

/// From sending to end of each turn. Of those that are closer than a pixel, the longest stays, and
/// request `i` always does.
fn turn_spans(run: &Run, i: usize, turns: &[u32]) -> Vec<(u32, TimeRange)> {
    let span = |&turn: &u32| {
        let sent = run.requests.sent(turn as usize)?;
        let end = throughput::last_stamp(run, turn as usize)?;
        Some((turn, TimeRange::between(sent, end)))
    };
    let mut spans: Vec<(u32, TimeRange)> = turns.iter().filter_map(span).collect();
    spans.sort_by_key(|(turn, span)| (span.start, *turn));
    let start = spans.first().map_or(0, |(_, span)| span.start.0);
    let end = spans.iter().map(|(_, span)| span.end.0).max().unwrap_or(0);
    let step = (end.saturating_sub(start) / TICKS).max(1);
    let place = |span: &TimeRange| span.start.0.saturating_sub(start) / step;
    let near = spans.chunk_by(|a, b| place(&a.1) == place(&b.1));
    let kept = near.filter_map(|near| {
        let own = near.iter().find(|(turn, _)| *turn as usize == i);
        own.or_else(|| near.iter().max_by_key(|(_, span)| span.span())).copied()
    });
    kept.collect()
}

fn neighbours(opened: &OpenedRun, request: u32) -> Vec<Neighbour> {
    let i = request as usize;
    let requests = &opened.run.requests;
    let by_sent = opened.by_sent();
    let sent = |&place: &u32| (requests.sent(place as usize), place);
    let Ok(at) = by_sent.binary_search_by_key(&sent(&request), sent) else {
        return Vec::new();
    };
    let (before, after) = (&by_sent[..at], &by_sent[at + 1..]);
    let core = requests.core(i);
    let is_core = |place: &u32| requests.core(*place as usize) == core;
    let near = |place: u32| Neighbour { request: place, how: Near::Core };
    let earlier = before.iter().rev().take(FARTHEST).copied().filter(is_core).take(NEIGHBOURS);
    let later = after.iter().take(FARTHEST).copied().filter(is_core).take(NEIGHBOURS);
    let mut found: Vec<Neighbour> = earlier.map(near).chain(later.map(near)).collect();
    if let Some(connection) = requests.connection(i) {
        let same = |place: &u32| {
            is_core(place) && requests.connection(*place as usize) == Some(connection)
        };
        let previous = before.iter().rev().copied().find(same);
        let next = after.iter().copied().find(same);
        for place in [previous, next].into_iter().flatten() {
            match found.iter_mut().find(|neighbour| neighbour.request == place) {
                Some(neighbour) => neighbour.how = Near::Connection,
                None => found.push(Neighbour { request: place, how: Near::Connection }),
            }
        }
    }
    found.push(Neighbour { request, how: Near::Itself });
    found.sort_by_key(|neighbour| sent(&neighbour.request));
    found
}

/// The colour of a stretch: a place in [`crate::theme::Palette::data`].
#[must_use]
pub const fn colour(kind: PhaseKind) -> usize {
    use crate::theme::data_colour::{BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILLION};
    match kind {
        PhaseKind::HeldBack => GREY,
        PhaseKind::Late => VERMILLION,
        PhaseKind::Connect | PhaseKind::Send => PURPLE,
        PhaseKind::Wait | PhaseKind::Head => ORANGE,
        PhaseKind::Decode => BLUE,
        PhaseKind::Tail | PhaseKind::Answer => GREEN,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use onbeat_shared::log::{Class, Record, TEXT_PART_BYTES, sample, sample::Sample};
    use onbeat_shared::units::CoreIndex;

    use super::*;

    const MS: i64 = 1_000_000;

    fn opened(sample: &Sample) -> OpenedRun {
        let run = Run::read(&sample.bytes()).expect("a readable log");
        OpenedRun::new(PathBuf::from("sample.beat"), 0, run)
    }

    #[test]
    fn sessions_and_neighbours_are_what_a_walk_finds() {
        let opened = opened(&sample::sample(6, 300));
        let run = &opened.run;
        for request in 0..300_u32 {
            let i = request as usize;
            let details = details(&opened, request);
            let session = (0..300_u32)
                .filter(|&other| run.plan[other as usize].session == run.plan[i].session);
            let mut turns = details.turns.clone();
            assert!(turns.is_sorted_by_key(|&turn| run.plan[turn as usize].turn));
            turns.sort_unstable();
            assert_eq!(turns, session.collect::<Vec<_>>());
            if !run.requests.was_sent(i) {
                assert!(details.neighbours.is_empty());
                continue;
            }
            let columns = &run.requests;
            let then = columns.sent(i);
            let under_way = |&other: &usize| {
                let left = (columns.sent(other), other);
                let still = columns.done(other).is_none_or(|done| Some(done) > then);
                left.0.is_some() && left <= (then, i) && (still || other == i)
            };
            let count = quantity::count((0..300).filter(under_way).count() as u64);
            assert_eq!(details.facts[3].facts.last(), Some(&("In flight then", Some(count))));
            let near = &details.neighbours;
            assert!(near.is_sorted_by_key(|near| run.requests.sent(near.request as usize)));
            assert_eq!(near.iter().filter(|near| near.how == Near::Itself).count(), 1);
            assert!(near.len() <= 2 * NEIGHBOURS + 3);
            let core = run.requests.core(i);
            assert!(near.iter().all(|near| run.requests.core(near.request as usize) == core));
        }
    }

    #[test]
    fn many_chunks_are_thinned_to_what_a_screen_shows() {
        let mut sample = Sample::new();
        let request = sample.send(0);
        let times: Vec<i64> = (1..=60_000).map(|place| 100 * MS + place * MS / 10).collect();
        sample.chunks(request, &times);
        sample.done(request, 6_101 * MS, Class::Ok);
        let waterfall = details(&opened(&sample), 0).waterfall;
        assert_eq!(waterfall.chunks, 60_000);
        assert!(waterfall.ticks.len() <= 1_503, "{}", waterfall.ticks.len());
        assert_eq!(waterfall.ticks.first(), Some(&RunNanos(times[0])));
        assert_eq!(waterfall.ticks.last(), Some(&RunNanos(times[59_999])));
        assert!(waterfall.ticks.is_sorted());
    }

    #[test]
    fn a_request_that_never_left_has_details_too() {
        let mut sample = Sample::new();
        sample.plan(7 * MS);
        let opened = opened(&sample);
        let details = details(&opened, 0);
        assert!(details.waterfall.phases.is_empty() && details.neighbours.is_empty());
        assert_eq!(details.turns, [0]);
        let latency = &details.facts[1];
        assert!(latency.facts.iter().all(|(_, value)| value.is_none()), "{latency:?}");
    }

    #[test]
    fn times_at_the_ends_of_what_a_log_can_hold_have_details() {
        let mut sample = Sample::new();
        for (due, sent, end) in [(i64::MIN + 1, 5, i64::MAX), (i64::MAX, i64::MIN + 9, -3)] {
            let request = sample.plan(due);
            sample.dispatch(request, due, sent);
            sample.chunks(request, &[sent, end, 0]);
            sample.done(request, end, Class::Ok);
        }
        let opened = opened(&sample);
        for request in 0..2 {
            assert!(!details(&opened, request).waterfall.phases.is_empty());
        }
    }

    #[test]
    fn what_the_server_said_is_escaped() {
        let mut sample = sample::sample(2, 60);
        let request = sample.send(4 * MS);
        let words = b"no\x1b[31m\nroom";
        let mut bytes = [0; TEXT_PART_BYTES];
        bytes[..words.len()].copy_from_slice(words);
        let used = u8::try_from(words.len()).expect("short");
        sample.push(CoreIndex(0), Record::Text { request, part: 0, used, bytes });
        sample.done(request, 9 * MS, Class::Http5xx);
        let opened = opened(&sample);
        let details = details(&opened, request.0);
        assert_eq!(details.error.as_deref(), Some("no\\u{1b}[31m\\nroom"));
    }
}
