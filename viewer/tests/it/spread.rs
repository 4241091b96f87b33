//! What the panels about spreads say and do: Distribution and Shape.

use eframe::egui::{Event, Key, Modifiers, PointerButton, ThemePreference, Vec2, accesskit::Role};
use egui_kittest::{
    SnapshotResults,
    kittest::{NodeT as _, Queryable as _},
};
use onbeat_shared::{
    log::{Class, sample, sample::Sample},
    metrics::{Metric, goal::GoalKind, slo::Goals},
    units::RunNanos,
};
use onbeat_viewer::{app::Start, quantity, state::TimeRange};

use crate::pictures::{self, compare};
use crate::stage::{self, Play, label, plot, reads};

const MILLI: i64 = 1_000_000;

/// The app with a run of which the panel of this key is shown.
fn shown(key: Key) -> Play {
    let mut play = stage::with(vec![stage::usual()]);
    play.key_press(key);
    play.run();
    play
}

const DISTRIBUTION: Key = Key::Num3;
const SHAPE: Key = Key::Num4;

#[test]
fn the_distribution_says_what_the_report_says() {
    let play = shown(DISTRIBUTION);
    let ttft = play.state().run().report().latency.ttft_ms.expect("data");
    let words = |millis: f64| quantity::measured(millis * 1e6);
    for title in ["Percentiles", "Cumulative share", "Histogram"] {
        let found = label(&plot(&play, title));
        let expected = format!(
            "Time to first token of {} requests: median {}, p95 {}, p99 {}, at most {}.",
            quantity::count(ttft.count),
            words(ttft.p50),
            words(ttft.p95),
            words(ttft.p99),
            words(ttft.max)
        );
        assert!(found.contains(&expected), "{found}");
    }
    assert!(reads(&play, &words(ttft.p90)), "in the table of figures");
    let chosen = quantity::counted(1_000, "request");
    assert!(reads(&play, &format!("{} of {chosen} have it", quantity::count(ttft.count))));
    assert!(reads(&play, "did not succeed"));
}

#[test]
fn another_number_is_chosen_from_the_list() {
    let mut play = shown(DISTRIBUTION);
    play.get_by_label("Number").click();
    play.run();
    play.get_by_label("Gap between chunks").click();
    play.run();
    let found = label(&plot(&play, "Percentiles"));
    assert!(found.contains("Gap between chunks of ") && found.contains(" gaps: "), "{found}");
    assert!(reads(&play, " gaps in "));
    play.get_by_label("Scale: Linear").click();
    play.run();
    assert!(!label(&plot(&play, "Histogram")).contains("no data"));
}

#[test]
fn a_selection_stands_against_the_whole_run_until_told_otherwise() {
    let mut play = shown(DISTRIBUTION);
    assert!(!reads(&play, "With whole run"), "a whole run is not compared with itself");
    let whole = play.state().choices().whole();
    let middle = RunNanos(whole.start.0 + whole.span() / 2);
    play.state_mut().choices_mut().choose(TimeRange::between(whole.start, middle));
    play.run();
    let has_whole = |play: &Play| play.query_all_by_label("whole run").next().is_some();
    assert!(reads(&play, "selection") && has_whole(&play));
    play.get_by_label("Compared with: Selection only").click();
    play.run();
    assert!(!has_whole(&play));
}

#[test]
fn a_goal_on_the_number_is_a_line_that_can_be_moved() {
    let mut play = shown(DISTRIBUTION);
    play.state_mut().choices_mut().goals = Goals::parse("ttft:50").expect("a goal");
    play.run();
    let kind = GoalKind::AtMost(Metric::Ttft);
    for plot in ["Cumulative share", "Histogram"] {
        let name = format!("{plot}: TTFT ≤");
        play.get_by_role_and_label(Role::Slider, &name).focus();
        play.run();
        let before = play.state().choices().goals.limit(kind).expect("a goal");
        play.key_press(Key::ArrowRight);
        play.run();
        let after = play.state().choices().goals.limit(kind).expect("still a goal");
        assert!(before < after, "{plot}: {before}, then {after}");
    }
}

#[test]
fn all_plots_of_both_panels_have_a_table() {
    for (key, titles) in [
        (DISTRIBUTION, &["Percentiles", "Cumulative share", "Histogram"][..]),
        (SHAPE, &FIRST_AND_SECOND[..]),
    ] {
        let mut play = shown(key);
        for title in titles {
            plot(&play, title);
        }
        play.key_press(Key::T);
        play.run();
        for title in titles {
            play.get_by_role_and_label(Role::Table, title);
        }
    }
}

const FIRST_AND_SECOND: [&str; 2] =
    ["Time to first token against input length", "Time between tokens against requests in flight"];

#[test]
fn the_shape_tells_its_trend_and_takes_other_numbers() {
    let mut play = shown(SHAPE);
    let found = label(&plot(&play, FIRST_AND_SECOND[0]));
    assert!(found.contains("Median of Time to first token "), "{found}");
    assert!(reads(&play, "not reported") || reads(&play, "cached "), "a legend of the shares");
    play.get_by_label("Number across, first plot").click();
    play.run();
    play.get_by_label("End to end").click();
    play.run();
    plot(&play, "Time to first token against end to end");
    plot(&play, FIRST_AND_SECOND[1]);
}

#[test]
fn nothing_to_spread_is_said() {
    let mut sample = Sample::new();
    let request = sample.send(0);
    sample.done(request, 100 * MILLI, Class::Http5xx);
    let mut play = stage::with(vec![stage::opened(&sample, "failed.beat")]);
    play.key_press(DISTRIBUTION);
    play.run();
    assert!(reads(&play, "1 did not succeed"));
    assert!(label(&plot(&play, "Histogram")).contains("no data"));
    play.key_press(SHAPE);
    play.run();
    assert!(label(&plot(&play, FIRST_AND_SECOND[0])).contains("No data"));
    let mut play = stage::with(vec![stage::opened(&Sample::new(), "nothing.beat")]);
    for key in [DISTRIBUTION, Key::T, SHAPE, Key::T] {
        play.key_press(key);
        play.run();
    }
}

#[test]
fn a_click_on_a_mark_shows_its_request() {
    let mut sample = Sample::new();
    let request = sample.send(0);
    sample.chunks(request, &[50 * MILLI, 60 * MILLI]);
    sample.usage(request, 60 * MILLI, [Some(900), Some(2), None]);
    sample.done(request, 61 * MILLI, Class::Ok);
    let mut play = stage::with(vec![stage::opened(&sample, "one.beat")]);
    play.key_press(SHAPE);
    play.run();
    // A single request stands in the middle of two logarithmic axes.
    let pos = plot(&play, FIRST_AND_SECOND[0]).rect().center();
    play.event(Event::PointerMoved(pos));
    play.run_ok();
    for pressed in [true, false] {
        let (button, modifiers) = (PointerButton::Primary, Modifiers::NONE);
        play.event(Event::PointerButton { pos, button, pressed, modifiers });
        play.run_ok();
    }
    let main = play.get_by_role(Role::Main);
    assert_eq!(main.accesskit_node().label().as_deref(), Some("Requests"));
}

#[test]
fn distribution_and_shape_look_as_they_did() {
    let mut results = SnapshotResults::new();
    for (theme, name) in [(ThemePreference::Light, "light"), (ThemePreference::Dark, "dark")] {
        let mut play = pictures::play(theme, &sample::log(7, 1_200));
        play.key_press(DISTRIBUTION);
        play.run();
        results.add(compare(&mut play, &format!("distribution-{name}")));
        play.key_press(SHAPE);
        play.run();
        results.add(compare(&mut play, &format!("shape-{name}")));
    }
    // More requests than are drawn one by one.
    let mut play = pictures::play(ThemePreference::Light, &sample::log(7, 6_500));
    play.key_press(SHAPE);
    play.run();
    results.add(compare(&mut play, "shape-density-light"));
    play.key_press(DISTRIBUTION);
    let whole = play.state().choices().whole();
    let later = RunNanos(whole.start.0 + whole.span() / 4);
    let range = TimeRange::between(later, RunNanos(later.0 + whole.span() / 10));
    play.state_mut().choices_mut().choose(range);
    play.run();
    results.add(compare(&mut play, "distribution-range-light"));
    play.key_press(Key::T);
    play.run();
    results.add(compare(&mut play, "distribution-tables-light"));
}

#[test]
fn both_panels_fit_a_window_of_1280_by_720() {
    let start = Start { inline: true, ..Start::default() };
    let mut play = stage::start(start, vec![stage::usual()], |builder| {
        builder.with_size(Vec2::new(1_280.0, 720.0))
    });
    for (key, lowest) in [(DISTRIBUTION, "Histogram"), (SHAPE, FIRST_AND_SECOND[1])] {
        play.key_press(key);
        play.run();
        let bottom = plot(&play, lowest).rect().bottom();
        assert!((600.0..700.0).contains(&bottom), "{lowest} ends at {bottom}");
        for node in play.root().children_recursive() {
            let node = node.accesskit_node();
            if let Some(rect) = node.raw_bounds() {
                assert!(rect.x1 <= 1_280.5, "{:?} sticks out", node.label());
            }
        }
    }
}
