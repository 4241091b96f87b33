//! Runs at the edge of what a log can say, drawn in every panel: nothing panics, sticks out of the
//! window or lies over something else's place.

use eframe::egui::{Key, Modifiers, accesskit::Role, vec2};
use egui_kittest::kittest::{NodeT as _, Queryable as _};
use onbeat_shared::log::{
    Class,
    sample::{self, Sample},
    sample_users,
};
use onbeat_viewer::{app::Start, opened::OpenedRun, panels::PANELS};

use crate::stage::{self, Play};

const SECOND: i64 = 1_000_000_000;

fn answered(sample: &mut Sample, at: i64) {
    let request = sample.send(at);
    sample.chunks(request, &[at + 20_000_000, at + 30_000_000]);
    sample.done(request, at + 40_000_000, Class::Ok);
}

fn of_times(times: &[i64]) -> Sample {
    let mut sample = Sample::new();
    for &time in times {
        answered(&mut sample, time);
    }
    sample
}

/// Draws every panel, whole and closely, as plots and as tables.
fn shown_everywhere(sample: &Sample) {
    for (place, panel) in PANELS.iter().enumerate() {
        let mut play = stage::with(vec![stage::opened(sample, "edge.beat")]);
        play.state_mut().app_mut().show_panel(place);
        play.run();
        nothing_sticks_out(&play, panel.name);
        for key in [Key::ArrowUp, Key::Comma, Key::OpenBracket, Key::T, Key::F] {
            play.key_press(key);
            play.run();
        }
        nothing_sticks_out(&play, panel.name);
    }
}

fn nothing_sticks_out(play: &Play, panel: &str) {
    let width = play.ctx.content_rect().width();
    let mut beyond = Vec::new();
    for node in play.root().children_recursive() {
        let node = node.accesskit_node();
        // Tables and what is in them may be wider than their place, and then scroll.
        let scrolls = matches!(node.role(), Role::Row | Role::ColumnHeader | Role::Table);
        let Some(rect) = node.raw_bounds().filter(|_| !scrolls) else { continue };
        if rect.x1 > f64::from(width) + 0.5 {
            let name = node.label().or(node.value()).unwrap_or_default();
            let name: String = name.chars().take(80).collect();
            beyond.push(format!("{:?} {name:?} from {} to {}", node.role(), rect.x0, rect.x1));
        }
    }
    assert!(beyond.is_empty(), "{panel}: {beyond:#?}");
}

#[test]
fn a_run_of_nothing_and_of_one_request() {
    shown_everywhere(&Sample::new());
    shown_everywhere(&of_times(&[0]));
    let mut unanswered = Sample::new();
    unanswered.plan(0);
    shown_everywhere(&unanswered);
}

/// What is beyond the edge of the smallest window, no scrolling brings.
#[test]
fn the_smallest_window_has_everything_inside() {
    let scheduled = || stage::opened(&sample::with_scrapes(sample::sample(7, 300)), "sample.beat");
    let users = || stage::of_bytes(&sample_users::log(3, 8), "users.beat");
    for (place, panel) in PANELS.iter().enumerate() {
        for shown in [scheduled as fn() -> OpenedRun, users] {
            let start = Start { inline: true, ..Start::default() };
            let mut play = stage::start(start, vec![scheduled(), shown()], |builder| {
                builder.with_size(vec2(480.0, 360.0))
            });
            play.state_mut().app_mut().show_panel(place);
            play.run();
            nothing_sticks_out(&play, panel.name);
            play.key_press(Key::T);
            play.run();
            nothing_sticks_out(&play, panel.name);
        }
    }
}

#[test]
fn gaps_of_decades_and_times_before_zero() {
    shown_everywhere(&of_times(&[0, SECOND, 1_000_000_000 * SECOND]));
    shown_everywhere(&of_times(&[-3_600 * SECOND, -5 * SECOND, -1]));
    shown_everywhere(&of_times(&[0, 1, 2, 3]));
}

#[test]
fn names_of_any_length_and_kind() {
    let mut sample = of_times(&[0, SECOND, 2 * SECOND]);
    let long = "a very long name \u{202e}\n\t\0 of a model/".repeat(300);
    sample.manifest.model.clone_from(&long);
    sample.manifest.trace.name.clone_from(&long);
    sample.manifest.run_id.clone_from(&long);
    sample.manifest.host.hostname.clone_from(&long);
    sample.manifest.targets = vec![long.clone(); 3];
    for session in &mut sample.sessions {
        session.clone_from(&long);
    }
    shown_everywhere(&sample);
    let mut play = stage::with(vec![
        stage::opened(&sample, "a.beat"),
        stage::opened(&of_times(&[0]), &format!("{}.beat", "b".repeat(240))),
    ]);
    let compare = PANELS.iter().position(|panel| panel.name == "Compare").expect("a panel");
    play.state_mut().app_mut().show_panel(compare);
    play.run();
    nothing_sticks_out(&play, "Compare");
}

/// A goal that is no number is none, whether the log or the user says it.
#[test]
fn goals_that_are_no_numbers() {
    for wrong in ["NaN", "inf", "-1", "0", "1e400", "five"] {
        let mut sample = of_times(&[0, SECOND]);
        let goodput = format!("time_to_first_token:{wrong}");
        sample.manifest.config = serde_json::json!({ "goals": { "goodput": goodput } });
        let mut play = stage::with(vec![stage::opened(&sample, "edge.beat")]);
        assert!(play.state().choices().goals.is_empty(), "{wrong}");
        let slo = PANELS.iter().position(|panel| panel.name == "SLO").expect("a panel");
        play.state_mut().app_mut().show_panel(slo);
        play.run();
        play.get_by_label("Add a goal on TTFT").click();
        play.run();
        let before = play.state().choices().goals.clone();
        assert!(!before.is_empty());
        let field = "Goal: TTFT at most";
        play.get_by_role_and_label(Role::TextInput, field).focus();
        play.run();
        play.key_press_modifiers(Modifiers::COMMAND, Key::A);
        play.run();
        play.get_by_role_and_label(Role::TextInput, field).type_text(wrong);
        play.run();
        play.key_press(Key::Enter);
        play.run();
        assert_eq!(play.state().choices().goals, before, "{wrong}");
    }
}
