//! The timeline's lanes: their order, search, scrolling, drags and clicks, through the
//! accessibility tree.

use eframe::egui::{
    Event, Key, Modifiers, MouseWheelSource, MouseWheelUnit, PointerButton, Pos2, ThemePreference,
    TouchPhase, Vec2, accesskit::Role, pos2,
};
use egui_kittest::{
    SnapshotResults,
    kittest::{NodeT as _, Queryable as _},
};
use onbeat_shared::{
    log::{Class, sample, sample::Sample, sample_users},
    units::SessionIndex,
};

use crate::pictures::{THEMES, compare, play};
use crate::stage::{self, Play, label, plot, reads};

const MILLI: i64 = 1_000_000;

fn shown(bytes: &[u8]) -> Play {
    let mut play = stage::with(vec![stage::of_bytes(bytes, "sample.beat")]);
    play.get_by_label("Timeline panel").click();
    play.run();
    play
}

/// `sessions` sessions with one request each, 10 ms apart, each 100 ms long.
fn many(sessions: u32) -> Sample {
    let mut sample = Sample::new();
    sample.sessions = (0..sessions).map(|session| format!("s{session}")).collect();
    for session in 0..sessions {
        let due = i64::from(session) * 10 * MILLI;
        let request = sample.send(due);
        sample.plan[request.as_usize()].session = SessionIndex(session);
        sample.chunks(request, &[due + 40 * MILLI, due + 80 * MILLI]);
        sample.done(request, due + 100 * MILLI, Class::Ok);
    }
    sample
}

/// The names of the lanes on screen, from the top.
fn lanes(play: &Play) -> Vec<String> {
    let nodes = play.root().children_recursive();
    let mut lanes: Vec<(f32, String)> = nodes
        .filter(|node| node.accesskit_node().role() == Role::Button)
        .filter_map(|node| {
            let label = node.accesskit_node().label()?;
            let name = label.strip_prefix("Lane ")?.split(':').next()?.to_owned();
            Some((node.rect().top(), name))
        })
        .collect();
    lanes.sort_by(|a, b| a.0.total_cmp(&b.0));
    lanes.into_iter().map(|(_, name)| name).collect()
}

#[test]
fn sub_agents_stand_under_their_user() {
    let play = shown(&sample_users::log(3, 8));
    let lanes = lanes(&play);
    let place = lanes.iter().position(|name| name == "User-002").expect("a lane");
    assert_eq!(lanes[place + 1..place + 3], ["User-002-SA1", "User-002-SA2"]);
    assert!(label(&plot(&play, "Timeline")).contains("lanes"));
}

#[test]
fn lanes_are_ordered_and_searched() {
    let mut play = shown(&sample_users::log(3, 8));
    play.get_by_label("Order of lanes: By name").click();
    play.run();
    assert_eq!(lanes(&play)[0], "User-001");
    play.get_by_label("Order of lanes: Most requests").click();
    play.run();
    assert_eq!(lanes(&play)[0], "User-002", "it has sub-agents");
    play.get_by_label("User to look for").focus();
    play.run();
    play.get_by_label("User to look for").type_text("sa2");
    play.run();
    let found = lanes(&play);
    assert!(!found.is_empty() && found.iter().all(|name| name.ends_with("SA2")), "{found:?}");
    play.get_by_label("All lanes again").click();
    play.run();
    assert!(lanes(&play).len() > found.len());
    play.get_by_label("User to look for").focus();
    play.run();
    play.get_by_label("User to look for").type_text("nobody");
    play.run();
    assert!(reads(&play, "No lane has a name like that") && lanes(&play).is_empty());
}

#[test]
fn thousands_of_lanes_scroll_and_only_those_in_sight_are_there() {
    let mut play = shown(&many(2_000).bytes());
    let first = lanes(&play);
    assert_eq!(first[0], "s0");
    assert!((10..60).contains(&first.len()), "{} lanes on screen", first.len());
    play.key_press(Key::PageDown);
    play.run();
    let next = lanes(&play);
    assert!(!next.contains(&"s0".to_owned()));
    assert!(next.iter().any(|name| first.contains(name)), "a page overlaps the last");
    for _ in 0..120 {
        play.key_press(Key::PageDown);
    }
    play.run();
    assert_eq!(lanes(&play).last().map(String::as_str), Some("s1999"));
    for _ in 0..120 {
        play.key_press(Key::PageUp);
    }
    play.run();
    assert_eq!(lanes(&play)[0], "s0");
    let names = play.get_by_label("Lane s3: 1 request").rect().center();
    wheel(&mut play, names, Vec2::new(0.0, -200.0), Modifiers::NONE);
    assert!(!lanes(&play).contains(&"s0".to_owned()), "the wheel over names scrolls");
    assert!(!play.state().choices().is_zoomed());
}

fn wheel(play: &mut Play, at: Pos2, delta: Vec2, modifiers: Modifiers) {
    play.event(Event::PointerMoved(at));
    play.step();
    play.event_modifiers(
        Event::MouseWheel {
            unit: MouseWheelUnit::Point,
            delta,
            phase: TouchPhase::Move,
            source: MouseWheelSource::Wheel,
            modifiers,
        },
        modifiers,
    );
    play.run_ok();
}

/// A place in the plot: a share of its width, and a height in points from its top.
fn at(play: &Play, share: f32, down: f32) -> Pos2 {
    let rect = plot(play, "Timeline").rect();
    pos2(rect.left() + share * rect.width(), rect.top() + down)
}

fn press(play: &mut Play, pos: Pos2, pressed: bool) {
    let (button, modifiers) = (PointerButton::Primary, Modifiers::NONE);
    play.event(Event::PointerButton { pos, button, pressed, modifiers });
    play.step();
}

#[test]
fn wheels_and_drags_do_what_they_do_in_every_time_plot() {
    let mut play = shown(&many(200).bytes());
    let (from, to) = (at(&play, 0.25, 200.0), at(&play, 0.5, 200.0));
    play.event(Event::PointerMoved(from));
    play.step();
    press(&mut play, from, true);
    for step in 1..=4_u8 {
        play.event(Event::PointerMoved(from + (to - from) * (f32::from(step) / 4.0)));
        play.step();
    }
    press(&mut play, to, false);
    play.run_ok();
    let choices = play.state().choices();
    let range = choices.range().expect("a range");
    let share = range.span() as f64 / choices.view().span() as f64;
    assert!((share - 0.25).abs() < 0.01, "{share}");
    let middle = at(&play, 0.5, 100.0);
    wheel(&mut play, middle, Vec2::new(0.0, 300.0), Modifiers::NONE);
    assert!(play.state().choices().is_zoomed());
    assert!(play.state().choices().cursor.is_some());
}

/// The request behind the first lane's name, and the one under the pointer.
#[test]
fn a_click_asks_for_the_details_of_a_request() {
    let mut play = shown(&many(40).bytes());
    play.get_by_label("Lane s7: 1 request").click();
    play.run();
    assert!(play.query_by_label("Lane s7: 1 request").is_none(), "another panel is shown");
    assert_eq!(play.state().choices().requests.chosen, Some(7));
}

#[test]
fn the_table_has_every_request_that_left() {
    let mut play = shown(&sample_users::log(3, 8));
    let sent = play.state().run().by_sent().len();
    play.get_by_label("Timeline: show as table").click();
    play.run();
    let table = play.get_by_role_and_label(Role::Table, "Timeline");
    assert_eq!(table.accesskit_node().data().row_count(), Some(sent));
    play.key_press(Key::T);
    play.run();
    plot(&play, "Timeline");
}

#[test]
fn a_run_of_nothing_says_so() {
    let play = shown(&Sample::new().bytes());
    assert!(label(&plot(&play, "Timeline")).contains("No request left"));
}

#[test]
fn any_zoom_and_any_times_can_be_drawn() {
    let mut sample = many(50);
    for (due, sent, end) in
        [(i64::MIN + 1, i64::MIN + 2, i64::MAX), (0, -5, i64::MAX - 1), (7, i64::MAX, 0)]
    {
        let request = sample.plan(due);
        sample.dispatch(request, due, sent);
        sample.chunks(request, &[sent, end, 0]);
        sample.done(request, end, Class::ResetMidAnswer);
    }
    let mut play = shown(&sample.bytes());
    for _ in 0..60 {
        play.key_press(Key::Plus);
        play.run();
    }
    for key in [Key::ArrowRight, Key::Home, Key::Minus, Key::F, Key::T] {
        play.key_press(key);
        play.run();
    }
}

/// The panel in a picture.
fn painted(theme: ThemePreference, bytes: &[u8]) -> Play {
    let mut play = play(theme, bytes);
    play.get_by_label("Timeline panel").click();
    play.run();
    play
}

#[test]
fn lanes_look_as_they_did() {
    let mut results = SnapshotResults::new();
    for (theme, name) in THEMES {
        let mut play = painted(theme, &sample_users::log(3, 12));
        results.add(compare(&mut play, &format!("timeline-users-{name}")));
    }
    let mut play = painted(ThemePreference::Light, &sample::log(7, 1_200));
    results.add(compare(&mut play, "timeline-light"));
    for _ in 0..7 {
        play.key_press(Key::Plus);
    }
    play.run();
    assert!(reads(&play, "None of these lanes has a request in view"));
    play.get_by_label_contains("Go to session_").click();
    play.run();
    results.add(compare(&mut play, "timeline-close-light"));
    play.key_press(Key::T);
    play.run();
    results.add(compare(&mut play, "timeline-table-light"));
}

/// One session with more requests than a lane has pixels, and one with too many at once.
fn crowded() -> Sample {
    let mut sample = Sample::new();
    sample.sessions = ["patient", "hurried"].map(str::to_owned).to_vec();
    for place in 0..3_000_i64 {
        let due = place * 10 * MILLI;
        let request = sample.send(due);
        let length = 4 + place * 7 % 5 + (place / 300) % 4 * 20;
        sample.plan[request.as_usize()].session = SessionIndex(u32::from(length >= 20));
        sample.chunks(request, &[due + 2 * MILLI, due + length * MILLI]);
        let class = if place % 211 == 7 { Class::ErrorEvent } else { Class::Ok };
        sample.done(request, due + (length + 1) * MILLI, class);
    }
    sample
}

#[test]
fn crowded_lanes_look_as_they_did() {
    let bytes = crowded().bytes();
    let mut play = painted(ThemePreference::Light, &bytes);
    let mut results = SnapshotResults::new();
    results.add(compare(&mut play, "timeline-crowded-light"));
}
