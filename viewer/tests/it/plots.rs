//! What drags, wheels and keys do to the range, the view and the cursor that all plots share.

use eframe::egui::{
    Event, Key, Modifiers, MouseWheelSource, MouseWheelUnit, PointerButton, Pos2, TouchPhase, Vec2,
    pos2,
};
use onbeat_viewer::state::Choices;

use crate::stage::{self, Play, plot};

pub(crate) const TITLE: &str = "Requests in flight";

fn play() -> Play {
    let mut play = stage::with(vec![stage::usual()]);
    play.run();
    play
}

fn choices(play: &Play) -> &Choices {
    play.state().choices()
}

/// A place in a plot, as a share of its width.
pub(crate) fn at(play: &Play, title: &str, share: f32) -> Pos2 {
    let rect = plot(play, title).rect();
    pos2(rect.left() + share * rect.width(), rect.center().y)
}

pub(crate) fn press(
    play: &mut Play,
    pos: Pos2,
    button: PointerButton,
    modifiers: Modifiers,
    pressed: bool,
) {
    play.event_modifiers(Event::PointerButton { pos, button, pressed, modifiers }, modifiers);
    play.step();
}

fn drag(play: &mut Play, from: Pos2, to: Pos2, button: PointerButton, modifiers: Modifiers) {
    play.event(Event::PointerMoved(from));
    play.step();
    press(play, from, button, modifiers, true);
    for step in 1..=4_u8 {
        let along = from + (to - from) * (f32::from(step) / 4.0);
        play.event_modifiers(Event::PointerMoved(along), modifiers);
        play.step();
    }
    press(play, to, button, modifiers, false);
    play.run_ok();
}

#[test]
fn a_drag_chooses_a_range_and_escape_clears_it() {
    let mut play = play();
    let (from, to) = (at(&play, TITLE, 0.25), at(&play, TITLE, 0.5));
    drag(&mut play, from, to, PointerButton::Primary, Modifiers::NONE);
    let range = choices(&play).range().expect("a range");
    let view = choices(&play).view();
    let share = |time: i64| (time - view.start.0) as f64 / view.span() as f64;
    assert!((share(range.start.0) - 0.25).abs() < 0.01, "{}", share(range.start.0));
    assert!((share(range.end.0) - 0.5).abs() < 0.01, "{}", share(range.end.0));
    assert!(!choices(&play).is_zoomed());
    play.key_press(Key::Escape);
    play.run();
    assert_eq!(choices(&play).range(), None);
}

#[test]
fn escape_during_a_drag_drops_the_stroke() {
    let mut play = play();
    let (from, to) = (at(&play, TITLE, 0.25), at(&play, TITLE, 0.5));
    play.event(Event::PointerMoved(from));
    play.step();
    press(&mut play, from, PointerButton::Primary, Modifiers::NONE, true);
    play.event(Event::PointerMoved(to));
    play.step();
    assert!(choices(&play).stroke.is_some());
    play.key_press(Key::Escape);
    play.step();
    play.event(Event::PointerMoved(to + Vec2::new(30.0, 0.0)));
    play.step();
    assert!(choices(&play).stroke.is_none(), "it stays dropped while the drag goes on");
    press(&mut play, to, PointerButton::Primary, Modifiers::NONE, false);
    play.run_ok();
    assert_eq!(choices(&play).range(), None);
    assert_eq!(choices(&play).stroke, None);
}

#[test]
fn the_wheel_zooms_around_the_pointer_and_shift_drag_pans() {
    let mut play = play();
    let pointer = at(&play, TITLE, 0.5);
    play.event(Event::PointerMoved(pointer));
    play.step();
    for _ in 0..4 {
        play.event(Event::MouseWheel {
            unit: MouseWheelUnit::Point,
            delta: Vec2::new(0.0, 200.0),
            phase: TouchPhase::Move,
            source: MouseWheelSource::Wheel,
            modifiers: Modifiers::NONE,
        });
        play.step();
    }
    play.run_ok();
    let zoomed = choices(&play).view();
    assert!(choices(&play).is_zoomed());
    assert!(zoomed.span() < choices(&play).whole().span() / 2);
    let (from, to) = (at(&play, TITLE, 0.75), at(&play, TITLE, 0.25));
    for (button, modifiers) in
        [(PointerButton::Primary, Modifiers::SHIFT), (PointerButton::Middle, Modifiers::NONE)]
    {
        let before = choices(&play).view();
        drag(&mut play, from, to, button, modifiers);
        let after = choices(&play).view();
        let moved = (after.start.0 - before.start.0) as f64 / before.span() as f64;
        assert!((moved - 0.5).abs() < 0.05, "{button:?}: moved by {moved}");
        assert_eq!(choices(&play).range(), None, "a pan is no brush");
        drag(&mut play, to, from, button, modifiers);
    }
    play.key_press(Key::Home);
    play.run();
    assert!(!choices(&play).is_zoomed());
}

#[test]
fn a_double_click_fits_the_range_and_then_the_run() {
    let mut play = play();
    let (from, to) = (at(&play, TITLE, 0.4), at(&play, TITLE, 0.6));
    drag(&mut play, from, to, PointerButton::Primary, Modifiers::NONE);
    for zoomed in [true, false] {
        for pressed in [true, false, true, false] {
            let pos = at(&play, TITLE, 0.5);
            let (button, modifiers) = (PointerButton::Primary, Modifiers::NONE);
            // All four within one frame, as a quick hand does it.
            let event = Event::PointerButton { pos, button, pressed, modifiers };
            play.input_mut().events.push(event);
        }
        play.run_ok();
        assert_eq!(choices(&play).is_zoomed(), zoomed);
        // Long enough that the next click is not a third one.
        play.run_steps(6);
    }
}

#[test]
fn the_cursor_is_shared_and_leaves_with_the_pointer() {
    let mut play = play();
    let pointer = at(&play, TITLE, 0.5);
    play.event(Event::PointerMoved(pointer));
    play.run_ok();
    let cursor = choices(&play).cursor.expect("a cursor");
    let view = choices(&play).view();
    assert!((cursor.0 - view.start.0 - view.span() / 2).abs() < view.span() / 100);
    // Both plots read their values at it.
    assert!(stage::reads(&play, "in flight "));
    assert!(stage::reads(&play, "achieved "));
    play.event(Event::PointerMoved(pos2(20.0, 790.0)));
    play.run_ok();
    assert_eq!(choices(&play).cursor, None);
}

#[test]
fn a_range_can_be_made_by_keys_alone() {
    let mut play = play();
    for key in [Key::Plus, Key::ArrowRight, Key::Comma, Key::OpenBracket] {
        play.key_press(key);
    }
    for _ in 0..10 {
        play.key_press_modifiers(Modifiers::SHIFT, Key::Period);
    }
    play.key_press(Key::CloseBracket);
    play.run();
    let range = choices(&play).range().expect("a range");
    let share = range.span() as f64 / choices(&play).view().span() as f64;
    assert!((share - 0.5).abs() < 0.02, "{share}");
    play.key_press(Key::F);
    play.run();
    assert!(choices(&play).view().span() < range.span() * 11 / 10);
}

#[test]
fn a_brush_in_one_panel_holds_in_the_other() {
    let mut play = play();
    let (from, to) = (at(&play, TITLE, 0.3), at(&play, TITLE, 0.7));
    drag(&mut play, from, to, PointerButton::Primary, Modifiers::NONE);
    let range = choices(&play).range();
    play.key_press(Key::Num2);
    play.run();
    assert_eq!(choices(&play).range(), range);
    let (from, to) = (at(&play, "Time to first token", 0.1), at(&play, "Time to first token", 0.2));
    drag(&mut play, from, to, PointerButton::Primary, Modifiers::NONE);
    assert_ne!(choices(&play).range(), range);
}
