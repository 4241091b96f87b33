//! The lanes' bars and strips against slow and obvious counts, for any view.

use std::path::PathBuf;
use std::sync::Arc;

use onbeat_shared::{
    log::{Class, sample, sample::Sample, sample_users},
    run::Run,
    units::RunNanos,
};

use super::bars::{Body, Kind, Shown, Strip, Window, shown};
use super::lanes::{self, Lanes, Which};
use crate::fate::Fate;
use crate::opened::OpenedRun;
use crate::state::TimeRange;

const MILLI: i64 = 1_000_000;

fn opened(bytes: &[u8]) -> OpenedRun {
    let run = Run::read(bytes).expect("a readable log");
    OpenedRun::new(PathBuf::from("sample.beat"), bytes.len() as u64, run)
}

fn all_lanes(opened: &OpenedRun) -> Arc<Lanes> {
    Arc::new(lanes::lanes(opened, &Which::default()))
}

fn of_view(opened: &OpenedRun, view: TimeRange, width: u16) -> Shown {
    let lanes = all_lanes(opened);
    let count = lanes.len();
    shown(opened, lanes, Window { view, width }, 0..count)
}

/// One session whose requests follow each other, 10 ms each.
fn busy(requests: i64) -> Sample {
    let mut sample = Sample::new();
    for place in 0..requests {
        let due = place * 10 * MILLI;
        let request = sample.send(due);
        sample.chunks(request, &[due + 2 * MILLI, due + 8 * MILLI]);
        let class = if place % 50 == 7 { Class::ErrorEvent } else { Class::Ok };
        sample.done(request, due + 9 * MILLI, class);
    }
    sample
}

fn strip_of(shown: &Shown) -> &Strip {
    match &shown.rows[0].body {
        Body::Strip(strip) => strip,
        Body::Bars { .. } => panic!("a crowded lane"),
    }
}

#[test]
fn every_request_in_view_has_its_bar() {
    for bytes in [sample::log(5, 300), sample_users::log(3, 12)] {
        let opened = opened(&bytes);
        let run = &opened.run;
        for part in 1..8 {
            let span = opened.whole().span() / part;
            let start = RunNanos(opened.whole().start.0 + span * (part - 1) / 2);
            let view = TimeRange::between(start, RunNanos(start.0 + span));
            let shown = of_view(&opened, view, 60_000);
            for lane in &shown.rows {
                let Body::Bars { bars, rows } = &lane.body else { panic!("there is room") };
                assert!(bars.iter().all(|bar| bar.row < *rows));
                let own = (0..run.requests.len()).filter(|&i| {
                    run.plan[i].session == lane.session
                        && run.requests.sent(i).is_some_and(|sent| sent < view.end)
                        && lanes::end_of(run, i) >= view.start
                });
                for i in own {
                    let bar = bars.iter().find(|bar| bar.request as usize == i);
                    let bar = bar.unwrap_or_else(|| panic!("request {i} has no bar"));
                    assert_eq!(bar.fate, Fate::of(run, i));
                    assert_eq!(Some(bar.phases.sent), run.requests.sent(i));
                }
            }
        }
    }
}

/// What a strip holds adds up to the time that requests were in flight.
#[test]
fn a_strip_holds_all_the_time_in_flight_and_every_failure() {
    let opened = opened(&busy(2_000).bytes());
    let run = &opened.run;
    for (from, to) in [(0, 20_000), (3_000, 15_000), (4_444, 12_345)] {
        let view = TimeRange::between(RunNanos(from * MILLI), RunNanos(to * MILLI));
        let shown = of_view(&opened, view, 900);
        let strip = strip_of(&shown);
        let start = strip.start.0 as f64;
        let end = start + strip.width * strip.steps.len() as f64;
        let total: f64 = strip.steps.iter().map(|step| f64::from(step.total())).sum();
        let inside = |from: RunNanos, to: RunNanos| {
            ((to.0 as f64).min(end) - (from.0 as f64).max(start)).max(0.0)
        };
        let requests = 0..run.requests.len();
        let right: f64 = requests
            .clone()
            .filter_map(|i| Some(inside(run.requests.sent(i)?, run.requests.done(i)?)))
            .sum();
        let found = total * strip.width;
        assert!((found - right).abs() < right * 1e-3, "{found} for {right}");
        let failed: u32 = strip.steps.iter().map(|step| step.failed).sum();
        let ended = |i: usize| {
            let done = run.requests.done(i).map_or(f64::NAN, |done| done.0 as f64);
            Fate::of(run, i) == Fate::Failed && (start..end).contains(&done)
        };
        assert_eq!(failed as usize, requests.filter(|&i| ended(i)).count());
        assert!(shown.kinds.contains(&Kind::Failed));
    }
}

#[test]
fn a_crowded_lane_becomes_bars_and_ticks_when_looked_at_closely() {
    let opened = opened(&busy(2_000).bytes());
    let whole = of_view(&opened, opened.whole(), 1_000);
    assert!(matches!(whole.rows[0].body, Body::Strip(_)));
    let view = TimeRange::between(RunNanos(5_000 * MILLI), RunNanos(5_200 * MILLI));
    let close = of_view(&opened, view, 1_000);
    let Body::Bars { bars, .. } = &close.rows[0].body else { panic!("few requests") };
    let ticks: usize = bars.iter().map(|bar| bar.ticks.len()).sum();
    assert_eq!(ticks, 40, "two for each of the requests in view");
    assert!(close.note.contains("tick"), "{}", close.note);
}

/// Thirty at once are too many for a lane, however close one looks.
#[test]
fn too_many_at_once_stay_a_strip_and_say_so() {
    let mut sample = Sample::new();
    for place in 0..30 {
        let request = sample.send(place * MILLI);
        sample.done(request, 1_000 * MILLI, Class::Ok);
    }
    let opened = opened(&sample.bytes());
    let view = TimeRange::between(RunNanos(500 * MILLI), RunNanos(501 * MILLI));
    let shown = of_view(&opened, view, 1_000);
    let strip = strip_of(&shown);
    assert!(strip.is_deep);
    assert!(strip.steps.iter().all(|step| (step.whole - 30.0).abs() < 1e-3), "{strip:?}");
}

#[test]
fn only_the_lanes_asked_for_are_there() {
    let opened = opened(&sample::log(5, 300));
    let lanes = all_lanes(&opened);
    let window = Window { view: opened.whole(), width: 1_000 };
    let some = shown(&opened, Arc::clone(&lanes), window, 5..12);
    assert_eq!((some.first, some.rows.len()), (5, 7));
    assert_eq!(some.rows[0].session, lanes.head(5).session);
    let beyond = shown(&opened, Arc::clone(&lanes), window, 100_000..100_050);
    assert!(beyond.rows.is_empty());
}

#[test]
fn requests_that_never_left_are_marks_and_no_failures() {
    let mut sample = Sample::new();
    let request = sample.send(0);
    sample.done(request, 500 * MILLI, Class::Ok);
    sample.plan(100 * MILLI);
    sample.plan(200 * MILLI);
    sample.interrupted = true;
    let opened = opened(&sample.bytes());
    let shown = of_view(&opened, opened.whole(), 1_000);
    assert_eq!(shown.rows[0].unsent.len(), 2);
    assert!(shown.kinds.contains(&Kind::Unsent) && !shown.kinds.contains(&Kind::Failed));
}
