//! Goals: typed, moved by keys and by dragging, added, removed and reset, and what follows.

use eframe::egui::{
    Event, Key, Modifiers, PointerButton, Pos2, ThemePreference, accesskit::Role, pos2,
};
use egui_kittest::{SnapshotResults, kittest::Queryable as _};
use onbeat_shared::{
    log::sample,
    metrics::{
        self, ReportOptions,
        goal::GoalKind,
        slo::{Attainment, Goals},
    },
};
use onbeat_viewer::{panels, quantity};

use crate::pictures;
use crate::stage::{self, Play, beginning, label, plot, reads};

/// A run that was started with goals.
fn with_goals(text: &str) -> Play {
    let mut sample = sample::sample(7, 1_000);
    sample.manifest.config["goals"] = serde_json::json!({ "goodput": text });
    show(stage::opened(&sample, "sample.beat"))
}

fn show(run: onbeat_viewer::opened::OpenedRun) -> Play {
    let mut play = stage::with(vec![run]);
    let panel = panels::named("SLO").expect("a panel");
    play.state_mut().app_mut().show_panel(panel);
    play.run();
    play
}

fn kind(name: &str) -> GoalKind {
    GoalKind::from_name(name).expect("a name")
}

fn limit(play: &Play, name: &str) -> Option<f64> {
    play.state().choices().goals.limit(kind(name))
}

/// What the card says of goodput against what looking at each request says.
fn agrees(play: &Play) {
    let run = &play.state().run().run;
    let goals = &play.state().choices().goals;
    let found = Attainment::of(&metrics::Selection::new(run, None), goals);
    let share = quantity::percent(found.good as f64 / found.of as f64);
    let card = label(&beginning(play, Role::Group, "Goodput: "));
    assert!(card.contains(&share), "{card} is not {share}");
    let counts = format!("{} of {}", quantity::count(found.good), quantity::count(found.of));
    assert!(card.contains(&counts), "{card} is not {counts}");
}

#[test]
fn goals_begin_as_the_runs_own_and_figures_are_the_reports() {
    let play = with_goals("ttft:40 itl:11 e2e:500");
    assert_eq!(limit(&play, "ttft"), Some(40.0));
    agrees(&play);
    let run = &play.state().run().run;
    let slo = Some(Goals::parse("ttft:40 itl:11 e2e:500").expect("goals"));
    let report = metrics::report(run, &ReportOptions { slo, ..ReportOptions::default() });
    for (name, met) in &report.slo.met {
        let share = quantity::percent(met.share.expect("some count"));
        assert!(reads(&play, &format!("{share} meet it")), "{name}: {share}");
    }
    let rate = quantity::number(report.slo.goodput_rps.expect("a rate"));
    let card = label(&beginning(&play, Role::Group, "Good requests: "));
    assert!(card.contains(&format!("{rate}/s")), "{card} is not {rate}");
}

fn type_into(play: &mut Play, field: &str, text: &str) {
    play.get_by_role_and_label(Role::TextInput, field).focus();
    play.run();
    play.key_press_modifiers(Modifiers::COMMAND, Key::A);
    play.get_by_role_and_label(Role::TextInput, field).type_text(text);
    play.run();
    play.key_press(Key::Enter);
    play.run();
}

#[test]
fn a_goal_is_typed_with_its_unit_and_refused_with_words() {
    let mut play = with_goals("ttft:40 itl:11");
    type_into(&mut play, "Goal: TTFT at most", "0.06 s");
    assert_eq!(limit(&play, "ttft"), Some(60.0));
    agrees(&play);
    type_into(&mut play, "Goal: TTFT at most", "soon");
    assert_eq!(limit(&play, "ttft"), Some(60.0), "what is refused changes nothing");
    assert!(reads(&play, "“soon” has no number; write for example 500 ms"));
    type_into(&mut play, "Goal: TTFT at most", "80");
    assert_eq!(limit(&play, "ttft"), Some(80.0));
    assert!(!reads(&play, "has no number"));
}

#[test]
fn arrow_keys_move_a_goal_and_not_the_view() {
    let mut play = with_goals("ttft:40 itl:11");
    play.get_by_role_and_label(Role::TextInput, "Goal: TTFT at most").focus();
    play.run();
    play.key_press(Key::ArrowUp);
    play.run();
    assert_eq!(limit(&play, "ttft"), Some(41.0));
    play.key_press_modifiers(Modifiers::SHIFT, Key::ArrowDown);
    play.run();
    assert_eq!(limit(&play, "ttft"), Some(31.0));
    assert!(!play.state().choices().is_zoomed());
    agrees(&play);
}

#[test]
fn goals_are_added_where_most_meet_them_removed_and_reset() {
    let mut play = show(stage::usual());
    assert!(play.state().choices().goals.is_empty());
    play.get_by_role_and_label(Role::Button, "Add a goal on TTFT").click();
    play.run();
    let first = limit(&play, "ttft").expect("added");
    let run = &play.state().run().run;
    let all = metrics::report(run, &ReportOptions::default());
    let p95 = all.latency.ttft_ms.expect("data").p95;
    assert!((first - p95).abs() < 0.06 * p95, "{first} is not about {p95}");
    agrees(&play);
    play.get_by_role_and_label(Role::Button, "Remove the goal on TTFT").click();
    play.run();
    assert!(play.state().choices().goals.is_empty());
    assert!(reads(&play, "This run has no goals"));

    let mut play = with_goals("ttft:40 itl:11");
    play.get_by_role_and_label(Role::Button, "Remove the goal on ITL").click();
    play.run();
    assert_eq!(limit(&play, "itl"), None);
    play.get_by_role_and_label(Role::Button, "Reset").click();
    play.run();
    assert_eq!(limit(&play, "itl"), Some(11.0));
}

fn drag(play: &mut Play, from: Pos2, to: Pos2) {
    play.event(Event::PointerMoved(from));
    play.step();
    for (pressed, steps) in [(true, 4), (false, 0)] {
        let pos = if pressed { from } else { to };
        let modifiers = Modifiers::NONE;
        let button = PointerButton::Primary;
        play.event(Event::PointerButton { pos, button, pressed, modifiers });
        play.step();
        for step in 1..=steps {
            play.event(Event::PointerMoved(from + (to - from) * (step as f32 / steps as f32)));
            play.step();
        }
    }
    play.run_ok();
}

fn slider<'a>(play: &'a Play, label: &'a str) -> egui_kittest::Node<'a> {
    play.get_by_role_and_label(Role::Slider, label)
}

#[test]
fn a_goals_line_is_dragged_in_the_curve_and_everything_follows() {
    let mut play = with_goals("ttft:40 itl:11");
    let line = slider(&play, "Goodput by threshold: TTFT ≤").rect();
    let from = line.center();
    let frame = plot(&play, "Goodput by threshold").rect();
    let to = pos2(frame.left() + 0.55 * frame.width(), from.y);
    drag(&mut play, from, to);
    let moved = limit(&play, "ttft").expect("still there");
    assert!((moved - 40.0).abs() > 1.0, "it stayed at {moved}");
    let after = slider(&play, "Goodput by threshold: TTFT ≤").rect().center();
    assert!((after.x - to.x).abs() < 3.0, "the line is at {} and not {}", after.x, to.x);
    agrees(&play);
    assert_eq!(play.state().choices().range(), None, "a drag of a line is no brush");
}

#[test]
fn a_goals_line_stands_in_the_latency_panel_and_is_dragged_there() {
    let mut play = with_goals("ttft:40 itl:11");
    let latency = panels::named("Latency").expect("a panel");
    play.state_mut().app_mut().show_panel(latency);
    play.run();
    let from = slider(&play, "Time to first token: TTFT ≤").rect().center();
    let to = pos2(from.x, from.y + 25.0);
    drag(&mut play, from, to);
    let moved = limit(&play, "ttft").expect("still there");
    assert!(moved < 40.0, "lower on the screen is less: {moved}");
    assert_eq!(limit(&play, "itl"), Some(11.0));
    play.get_by_label("Latency: End to end").click();
    play.run();
    assert!(play.query_by_role(Role::Slider).is_none(), "no goal on the whole answer");
}

#[test]
fn another_goal_can_vary_and_the_curve_is_of_that() {
    let mut play = with_goals("ttft:40 e2e:500");
    assert!(label(&plot(&play, "Goodput by threshold")).contains("With TTFT ≤"));
    play.get_by_label("Goal that varies").click();
    play.run();
    play.get_by_role_and_label(Role::Button, "e2e").click();
    play.run();
    assert!(label(&plot(&play, "Goodput by threshold")).contains("With e2e ≤"));
}

#[test]
fn figures_speak_of_the_range_and_the_filter() {
    let mut play = with_goals("ttft:40");
    let before = label(&beginning(&play, Role::Group, "Goodput: "));
    for key in [Key::Comma, Key::OpenBracket] {
        play.key_press(key);
    }
    play.run();
    let after = label(&beginning(&play, Role::Group, "Goodput: "));
    assert_ne!(before, after);
    let range = play.state().choices().range().expect("chosen");
    let run = &play.state().run().run;
    let selection = metrics::Selection::new(run, Some((range.start, range.end)));
    let found = Attainment::of(&selection, &play.state().choices().goals);
    let share = quantity::percent(found.good as f64 / found.of as f64);
    assert!(after.contains(&share), "{after} is not {share}");
}

#[test]
fn plots_have_tables_and_a_run_without_requests_has_words() {
    let mut play = with_goals("ttft:40 itl:11");
    play.key_press(Key::T);
    play.run();
    assert!(reads(&play, "sent from") && reads(&play, "this goal alone"));
    let mut play = show(stage::opened(&sample::Sample::new(), "nothing.beat"));
    assert!(label(&beginning(&play, Role::Group, "Goodput: ")).contains("no data"));
    play.get_by_role_and_label(Role::Button, "Add a goal on TTFT").click();
    play.run();
    assert!(label(&plot(&play, "Goodput by threshold")).contains("No data"));
}

/// The run of the pictures, started with goals.
fn pictured() -> Vec<u8> {
    let mut sample = sample::sample(7, 1_200);
    let goals = "ttft:70 itl:14 e2e:700 decode_tps:80";
    sample.manifest.config["goals"] = serde_json::json!({ "goodput": goals });
    sample.bytes()
}

#[test]
fn it_looks_as_it_did() {
    let mut results = SnapshotResults::new();
    for (theme, name) in pictures::THEMES {
        let mut play = pictures::play(theme, &pictured());
        let panel = panels::named("SLO").expect("a panel");
        play.state_mut().app_mut().show_panel(panel);
        play.run();
        results.add(pictures::compare(&mut play, &format!("slo-{name}")));
    }
}

#[test]
fn its_tables_and_rates_look_as_they_did() {
    let mut play = pictures::play(ThemePreference::Light, &pictured());
    let panel = panels::named("SLO").expect("a panel");
    play.state_mut().app_mut().show_panel(panel);
    play.run();
    play.get_by_label("Goodput: Per second").click();
    play.run();
    let mut results = SnapshotResults::new();
    results.add(pictures::compare(&mut play, "slo-rates-light"));
    play.key_press(Key::T);
    play.run();
    results.add(pictures::compare(&mut play, "slo-tables-light"));
}

#[test]
fn without_goals_it_looks_as_it_did() {
    let bytes = sample::log(7, 1_200);
    let mut play = pictures::play(ThemePreference::Light, &bytes);
    let panel = panels::named("SLO").expect("a panel");
    play.state_mut().app_mut().show_panel(panel);
    play.run();
    let mut results = SnapshotResults::new();
    results.add(pictures::compare(&mut play, "slo-no-goals-light"));
}
