//! The pictures against slow and obvious counts over whole runs, for any view.

use std::{path::PathBuf, sync::Arc};

use onbeat_shared::{
    log::{Class, sample, sample_users},
    metrics::tokens,
    run::Run,
    units::{NANOS_PER_SECOND, RunNanos},
};

use super::picture::{Marks, Picture, Readout, seconds};
use super::{flight, flow, latency, lateness, rates, throughput};
use crate::filter::Filter;
use crate::opened::OpenedRun;
use crate::selection::Selection;
use crate::state::{Choices, Flow, Metric, Origin, Scale, TimeRange};

fn opened(seed: u64, requests: u32) -> OpenedRun {
    let bytes = sample::log(seed, requests);
    let run = Run::read(&bytes).expect("a readable log");
    OpenedRun::new(PathBuf::from("sample.beat"), bytes.len() as u64, run)
}

/// The whole run and some parts of it.
fn views(opened: &OpenedRun) -> Vec<TimeRange> {
    let mut choices = Choices::new(opened.whole());
    let mut views = vec![choices.view()];
    for (factor, share) in [(2.0, 0.3), (3.0, 0.8), (10.0, -0.5)] {
        choices.zoom_here(factor);
        choices.pan(share);
        views.push(choices.view());
    }
    views
}

/// The sum over a line's steps, each times its length.
fn amount(picture: &Picture, line: usize, view: TimeRange) -> f64 {
    let Readout::Bins { start, width, values } = &picture.lines[line].readout else {
        panic!("a line of steps");
    };
    let inside = |place: i64| {
        let from = start.0 + place * width;
        from < view.end.0 && from + width > view.start.0
    };
    let rates = (0_i64..).zip(values.iter()).filter(|&(place, _)| inside(place));
    let sum: f64 = rates.filter_map(|(_, value)| *value).sum();
    sum * *width as f64 / NANOS_PER_SECOND as f64
}

#[test]
fn every_request_of_the_run_is_in_the_rates() {
    for seed in 0..5 {
        let opened = opened(seed, 400);
        let view = views(&opened)[0];
        let picture = rates::picture(&opened, view, &opened.passing(None));
        assert_eq!(amount(&picture, 0, view).round(), 400.0, "offered");
        assert_eq!(amount(&picture, 1, view).round(), 400.0, "achieved");
    }
}

/// Users decide when: there is nothing that was offered, and every session has its user's name.
#[test]
fn a_run_that_users_drive_has_no_offered_rate() {
    let bytes = sample_users::log(3, 8);
    let run = Run::read(&bytes).expect("a readable log");
    let opened = OpenedRun::new(PathBuf::from("users.beat"), bytes.len() as u64, run);
    let view = views(&opened)[0];
    let picture = rates::picture(&opened, view, &opened.passing(None));
    assert_eq!(picture.lines.len(), 1, "achieved only");
    let sent = u32::try_from(opened.run.requests.len()).expect("a small sample");
    assert_eq!(amount(&picture, 0, view).round(), f64::from(sent));
    assert!(picture.summary.contains("offers none"), "{}", picture.summary);
    for i in 0..opened.run.requests.len() {
        let name = opened.run.session_name(i).expect("a name");
        assert!(name.starts_with("User-00"), "{name}");
    }
}

#[test]
fn rates_do_not_change_when_the_view_moves() {
    let opened = opened(9, 600);
    let view = views(&opened)[2];
    let picture = rates::picture(&opened, view, &opened.passing(None));
    let shift = picture_step(&picture);
    let moved =
        TimeRange { start: RunNanos(view.start.0 + shift), end: RunNanos(view.end.0 + shift) };
    let other = rates::picture(&opened, moved, &opened.passing(None));
    for place in 2..100 {
        let time = RunNanos(view.start.0 + place * shift);
        let values = |picture: &Picture| picture.lines[1].readout.at(time);
        assert_eq!(values(&picture), values(&other), "{place}");
    }
}

fn picture_step(picture: &Picture) -> i64 {
    match &picture.lines[0].readout {
        Readout::Bins { width, .. } => *width,
        _ => panic!("a line of steps"),
    }
}

#[test]
fn the_flight_is_what_a_walk_over_all_requests_finds() {
    for seed in 0..5 {
        let opened = opened(seed, 300);
        let requests = &opened.run.requests;
        for view in views(&opened) {
            let picture = flight::picture(&opened, view, 700, &opened.passing(None));
            for step in 0..50 {
                let time = RunNanos(view.start.0 + view.span() / 50 * step);
                let count = (0..requests.len())
                    .filter(|&i| requests.sent(i).is_some_and(|sent| sent <= time))
                    .filter(|&i| requests.done(i).is_none_or(|done| done > time))
                    .count();
                let found = picture.lines[0].readout.at(time).unwrap_or(0.0);
                assert_eq!(found, count as f64, "seed {seed} at {time:?}");
            }
        }
        let whole = flight::picture(&opened, views(&opened)[0], 700, &opened.passing(None));
        let peak = opened.report().throughput.peak_in_flight.expect("data") as f64;
        let drawn = whole.lines[0].segments.iter().flatten().map(|point| point.y);
        assert_eq!(drawn.fold(0.0, f64::max), peak, "the peak survives thinning");
    }
}

/// What a picture of some requests holds is what a walk over these finds.
#[test]
fn pictures_are_of_the_requests_that_pass_the_filter() {
    let opened = opened(5, 500);
    let run = &opened.run;
    let view = views(&opened)[0];
    for text in ["turn == 0", "failed", "ttft > 40ms && core == 1", "turn == 99"] {
        let filter = Arc::new(Filter::parse(text).expect("a filter"));
        let passing = opened.passing(Some(&filter));
        let passes = |i: &usize| filter.matches(run, *i);
        let count = (0..500).filter(passes).count();
        assert_eq!(passing.count(), count, "{text}");
        let picture = rates::picture(&opened, view, &passing);
        for line in 0..2 {
            assert_eq!(amount(&picture, line, view).round(), count as f64, "{text}");
        }
        let ok = (0..500).filter(passes).filter(|&i| run.requests.is_ok(i)).count();
        let picture = flow::picture(&opened, view, Flow::Requests, &passing);
        assert_eq!(amount(&picture, 0, view).round(), ok as f64, "{text}");
        let choice = choice(Metric::Ttft, Scale::Linear);
        let picture = latency::picture(&opened, view, choice, &passing);
        let marks = match &picture.marks {
            Marks::Points { requests, .. } => requests.clone(),
            _ => Vec::new(),
        };
        assert!(marks.iter().all(|&i| filter.matches(run, i as usize)), "{text}");
        let known = |i: &usize| {
            let value = latency::value(&opened, *i, Metric::Ttft, Origin::Sent);
            run.requests.was_sent(*i) && value.is_some()
        };
        assert_eq!(marks.len(), (0..500).filter(passes).filter(known).count(), "{text}");
        let says_so = |picture: &Picture| picture.empty.is_some() == (count == 0);
        let flight = flight::picture(&opened, view, 700, &passing);
        assert!(says_so(&flight) && flight.note.contains("filtered"), "{text}");
    }
}

fn choice(metric: Metric, scale: Scale) -> latency::Choice {
    latency::Choice { metric, origin: Origin::Sent, scale }
}

#[test]
fn every_latency_in_view_is_a_mark_and_lies_within_the_bounds() {
    for seed in 0..5 {
        let opened = opened(seed, 300);
        for view in views(&opened) {
            for scale in [Scale::Linear, Scale::Log] {
                let picture = latency::picture(
                    &opened,
                    view,
                    choice(Metric::Ttft, scale),
                    &opened.passing(None),
                );
                let Marks::Points { points, requests } = &picture.marks else {
                    panic!("few enough for points");
                };
                let expected: Vec<u32> = opened
                    .sent_in(view)
                    .iter()
                    .copied()
                    .filter(|&i| {
                        latency::value(&opened, i as usize, Metric::Ttft, Origin::Sent).is_some()
                    })
                    .collect();
                let shown = |point: &egui_plot::PlotPoint| {
                    (seconds(view.start)..seconds(view.end)).contains(&point.x)
                };
                let drawn: Vec<u32> = points
                    .iter()
                    .zip(requests)
                    .filter(|(point, _)| shown(point))
                    .map(|(_, &request)| request)
                    .collect();
                assert_eq!(drawn, expected, "seed {seed}");
                for point in points.iter().filter(|point| shown(point)) {
                    assert!(picture.bounds.0 <= point.y && point.y <= picture.bounds.1);
                }
            }
        }
    }
}

#[test]
fn percentiles_over_the_run_agree_with_the_report() {
    let opened = opened(3, 500);
    let view = views(&opened)[0];
    let picture = latency::picture(
        &opened,
        view,
        choice(Metric::EndToEnd, Scale::Linear),
        &opened.passing(None),
    );
    let rows = &picture.table;
    let column = |place: usize| rows.cells[place].iter().flatten().copied();
    let ok = opened.report().outcomes.ok as f64;
    assert_eq!(column(1).sum::<f64>(), ok, "every success is in one row");
    assert_eq!(column(2).sum::<f64>(), 500.0 - ok, "every failure too");
    let longest = opened.report().latency.e2e_ms.as_ref().expect("data").max * 1e6;
    assert!((column(6).fold(0.0, f64::max) - longest).abs() < 1.0);
    for row in 0..rows.len() {
        let value = |place: usize| rows.cells[place][row];
        assert!(value(3) <= value(4) && value(4) <= value(5) && value(5) <= value(6));
        assert_eq!(value(3).is_none(), value(1) == Some(0.0), "no data is no zero");
    }
}

#[test]
fn a_density_picture_loses_no_request() {
    let requests = u32::try_from(latency::POINTS_MAX).expect("small") + 5_000;
    let mut sample = sample::Sample::new();
    for i in 0..i64::from(requests) {
        let sent = i * 100_000;
        let request = sample.send(sent);
        // One request in ten thousand takes a thousand times as long.
        let ttft = if i % 10_000 == 5_000 { 4_000_000_000 } else { 4_000_000 + i % 1_000 };
        sample.chunks(request, &[sent + ttft]);
        sample.done(request, sent + ttft, Class::Ok);
    }
    let run = Run::read(&sample.bytes()).expect("a readable log");
    let opened = OpenedRun::new(PathBuf::from("dense.beat"), 0, run);
    let view = views(&opened)[0];
    for scale in [Scale::Linear, Scale::Log] {
        let picture =
            latency::picture(&opened, view, choice(Metric::Ttft, scale), &opened.passing(None));
        let Marks::Density(density) = &picture.marks else {
            panic!("too many for points");
        };
        assert_eq!(density.counts.iter().sum::<u32>(), requests);
        let top: u32 = density.counts[..density.columns * density.rows / 2].iter().sum();
        assert_eq!(top, 2, "each of the extremes has its own cell");
    }
}

#[test]
fn the_flows_add_up_to_the_runs_totals() {
    for seed in 0..5 {
        let opened = opened(seed, 300);
        let view = views(&opened)[0];
        let run = &opened.run;
        let sum = |of: &dyn Fn(usize) -> Option<u64>| -> f64 {
            (0..run.requests.len()).filter_map(of).map(|tokens| tokens as f64).sum()
        };
        let answered = |i: usize| run.requests.first_token(i).is_some();
        let output = flow::picture(&opened, view, Flow::OutputTokens, &opened.passing(None));
        let expected = sum(&|i| tokens::completion(run, i).filter(|_| answered(i)));
        assert!((amount(&output, 0, view) - expected).abs() < 1e-6 * expected, "output");
        let input = flow::picture(&opened, view, Flow::InputTokens, &opened.passing(None));
        let expected = sum(&|i| tokens::prompt(run, i).filter(|_| answered(i)));
        assert!((amount(&input, 0, view) - expected).abs() < 1e-6 * expected, "input");
        let requests = flow::picture(&opened, view, Flow::Requests, &opened.passing(None));
        let ok = opened.report().outcomes.ok as f64;
        assert_eq!(amount(&requests, 0, view).round(), ok);
        assert_eq!(amount(&requests, 1, view).round(), 300.0 - ok);
    }
}

#[test]
fn what_was_cancelled_is_not_called_a_failure() {
    for (class, called) in [(Class::CancelledByPlan, "cancelled"), (Class::Http429, "failed")] {
        let mut sample = sample::sample(2, 100);
        let request = sample.send(4_000_000);
        sample.done(request, 9_000_000, class);
        let run = Run::read(&sample.bytes()).expect("a readable log");
        let opened = OpenedRun::new(PathBuf::from("sample.beat"), 0, run);
        let view = views(&opened)[0];
        let all = opened.passing(None);
        let picture = latency::picture(&opened, view, choice(Metric::Ttft, Scale::Linear), &all);
        let names: Vec<_> = picture.table.columns.iter().map(|column| &*column.name).collect();
        let cancelled = class == Class::CancelledByPlan;
        assert_eq!(names[2], "failed");
        assert_eq!(names.contains(&"cancelled"), cancelled, "{names:?}");
        assert_eq!(picture.note.contains("1 cancelled"), cancelled, "{}", picture.note);
        let flow = flow::picture(&opened, view, Flow::Requests, &all);
        assert_eq!(flow.lines.last().map(|line| line.name), Some(called));
    }
}

#[test]
fn answers_that_took_no_time_have_an_axis() {
    let mut sample = sample::Sample::new();
    for sent in [0, 1_000_000, 2_000_000] {
        let request = sample.send(sent);
        sample.chunks(request, &[sent]);
        sample.done(request, sent, Class::Ok);
    }
    let run = Run::read(&sample.bytes()).expect("a readable log");
    let opened = OpenedRun::new(PathBuf::from("instant.beat"), 0, run);
    let choice = choice(Metric::Ttft, Scale::Linear);
    let picture = latency::picture(&opened, opened.whole(), choice, &opened.passing(None));
    assert!(picture.empty.is_none());
    assert!(picture.bounds.1 - picture.bounds.0 >= 1.0, "{:?}", picture.bounds);
}

/// A damaged log may have any instants.
#[test]
fn instants_at_the_ends_of_time_have_pictures_of_few_steps() {
    let ends = [i64::MIN + 1, -1, i64::MAX];
    for (sent, end) in ends.into_iter().flat_map(|sent| ends.map(|end| (sent, end))) {
        let mut sample = sample::Sample::new();
        let request = sample.plan(0);
        sample.dispatch(request, 0, sent);
        sample.chunks(request, &[sent, end]);
        sample.done(request, end, Class::Ok);
        let run = Run::read(&sample.bytes()).expect("a readable log");
        let opened = OpenedRun::new(PathBuf::from("damaged.beat"), 0, run);
        let all = opened.passing(None);
        for view in views(&opened).into_iter().step_by(3) {
            let mut pictures = vec![
                rates::picture(&opened, view, &all),
                flight::picture(&opened, view, 500, &all),
                throughput::concurrency::picture(&opened, view, 500, &all),
            ];
            for flow in [Flow::OutputTokens, Flow::InputTokens, Flow::Requests] {
                pictures.push(flow::picture(&opened, view, flow, &all));
            }
            for scale in [Scale::Linear, Scale::Log] {
                let choice = choice(Metric::EndToEnd, scale);
                pictures.push(latency::picture(&opened, view, choice, &all));
                pictures.push(lateness::over_time::picture(&opened, view, None, scale));
            }
            for picture in pictures {
                assert!(picture.table.len() <= 2_000, "{} rows", picture.table.len());
                assert!(picture.bounds.0 < picture.bounds.1, "{:?}", picture.bounds);
            }
            let selection = Selection { range: Some(view), filter: None };
            let figures = throughput::figures(&opened, &selection);
            assert_eq!(figures.rates.len(), 5);
        }
    }
}
