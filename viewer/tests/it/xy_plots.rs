//! What drags, wheels and keys do to plots that are not over time and to the lines across them.

use eframe::egui::{
    Event, Key, Modifiers, MouseWheelSource, MouseWheelUnit, PointerButton, Pos2, ThemePreference,
    TouchPhase, Vec2, accesskit::Role, pos2,
};
use egui_kittest::{
    Harness, Node,
    kittest::{NodeT as _, Queryable as _, by},
};
use egui_plot::PlotPoint;
use onbeat_shared::units::RunNanos;
use onbeat_viewer::{
    quantity::TimeUnit,
    series::{
        axes::{Across, Axis, Unit},
        picture::{Cell, Heading, HeightAxis, Line, Picture, Readout, Rows},
    },
    state::{Choices, TimeRange},
    theme,
    widgets::{rule::Rule, time_plot::TimePlot, xy_plot::XyPlot},
    xy_view::Bounds,
};

/// A curve on a stage of its own, with a goal that can be moved and a mark that cannot.
struct Stage {
    choices: Choices,
    picture: Picture,
    rules: [Rule; 2],
    over_time: bool,
    moves: usize,
}

type Play = Harness<'static, Stage>;

const MILLI: f64 = 1e6;

/// A line from 1 ms and nothing to 1 s and everything.
fn curve() -> Picture {
    let mut table = Rows::new(vec![
        Heading::new("threshold", Cell::Duration),
        Heading::new("goodput", Cell::Share),
    ]);
    for (nanos, share) in [(MILLI, 0.0), (1_000.0 * MILLI, 1.0)] {
        table.push(&[Some(nanos), Some(share)]);
    }
    Picture {
        lines: vec![Line {
            name: "goodput",
            colour: 0,
            dashed: false,
            filled: false,
            segments: vec![vec![PlotPoint::new(6.0, 0.0), PlotPoint::new(9.0, 100.0)]],
            readout: Readout::None,
        }],
        axis: HeightAxis::Of(Axis::linear("goodput", Unit::Share)),
        bounds: (0.0, 100.0),
        across: Across::Value(Axis::log("threshold", Unit::Time(TimeUnit::Millis))),
        reach: (6.0, 9.0),
        table,
        note: "a straight line".to_owned(),
        summary: "From nothing at 1 ms to everything at 1 s.".to_owned(),
        ..Picture::default()
    }
}

fn play(rules: [Rule; 2], over_time: bool) -> Play {
    let whole = TimeRange::between(RunNanos(0), RunNanos(10_000_000_000));
    let mut picture = curve();
    if over_time {
        picture.across = Across::Time;
        picture.lines.clear();
    }
    let stage = Stage { choices: Choices::new(whole), picture, rules, over_time, moves: 0 };
    let builder = Harness::builder()
        .with_size(Vec2::new(640.0, 400.0))
        .with_context_setup(|ctx| theme::install(ctx, ThemePreference::Light));
    let mut play = builder.build_ui_state(
        |ui, stage: &mut Stage| {
            let picture = Some(&stage.picture);
            let (title, height, fresh) = ("Curve", 250.0, true);
            let rules = &mut stage.rules;
            if stage.over_time {
                let plot = TimePlot {
                    id: "curve",
                    title,
                    height,
                    picture,
                    fresh,
                    describe: None,
                    controls: None,
                    rules,
                };
                plot.show(ui, &mut stage.choices);
            } else {
                let plot = XyPlot {
                    id: "curve",
                    title,
                    height,
                    picture,
                    fresh,
                    describe: None,
                    controls: None,
                    rules,
                };
                plot.show(ui, &mut stage.choices);
            }
            stage.moves += stage.rules.iter().filter(|rule| rule.moved).count();
        },
        stage,
    );
    play.run();
    play
}

fn goal_and_mark() -> [Rule; 2] {
    [
        Rule::vertical("goal", 100.0 * MILLI, 0).draggable(),
        Rule::horizontal("target", 0.5, 1).dashed(),
    ]
}

fn plot(play: &Play) -> Node<'_> {
    let is_plot = |node: &egui_kittest::kittest::AccessKitNode<'_>| {
        node.role() == Role::Image
            && node.label().is_some_and(|found| found.starts_with("Curve plot."))
    };
    play.get(by().predicate(is_plot))
}

fn slider<'a>(play: &'a Play, label: &'a str) -> Node<'a> {
    play.get_by_role_and_label(Role::Slider, label)
}

/// A place in the plot, as shares of its width from the left and of its height from the top.
fn at(play: &Play, across: f32, down: f32) -> Pos2 {
    let rect = plot(play).rect();
    pos2(rect.left() + across * rect.width(), rect.top() + down * rect.height())
}

fn drag(play: &mut Play, from: Pos2, to: Pos2) {
    let modifiers = Modifiers::NONE;
    let button = PointerButton::Primary;
    play.event(Event::PointerMoved(from));
    play.step();
    play.event(Event::PointerButton { pos: from, button, pressed: true, modifiers });
    play.step();
    for step in 1..=4_u8 {
        play.event(Event::PointerMoved(from + (to - from) * (f32::from(step) / 4.0)));
        play.step();
    }
    play.event(Event::PointerButton { pos: to, button, pressed: false, modifiers });
    play.run_ok();
}

fn shown(play: &mut Play) -> Option<Bounds> {
    play.state().choices.plots.get("curve").and_then(onbeat_viewer::xy_view::XyView::zoomed)
}

fn wheel(play: &mut Play, pointer: Pos2, points: f32) {
    play.event(Event::PointerMoved(pointer));
    play.step();
    play.event(Event::MouseWheel {
        unit: MouseWheelUnit::Point,
        delta: Vec2::new(0.0, points),
        phase: TouchPhase::Move,
        source: MouseWheelSource::Wheel,
        modifiers: Modifiers::NONE,
    });
    play.run_ok();
}

fn reads(play: &Play, text: &str) -> bool {
    play.root().children_recursive().any(|node| {
        let node = node.accesskit_node();
        let holds = |words: Option<String>| words.is_some_and(|words| words.contains(text));
        holds(node.value()) || holds(node.label())
    })
}

#[test]
fn a_goal_follows_the_pointer_and_comes_to_rest_at_a_round_value() {
    let mut play = play(goal_and_mark(), false);
    // 100 ms is two thirds of the way from 1 ms to 1 s.
    let (from, to) = (at(&play, 2.0 / 3.0, 0.5), at(&play, 1.0 / 3.0, 0.7));
    drag(&mut play, from, to);
    let value = play.state().rules[0].value / MILLI;
    assert!((value - 10.0).abs() < 0.5, "{value}");
    assert_eq!((value * 10.0).round() / 10.0, value, "three digits are too many");
    assert!(play.state().moves > 0);
    assert_eq!(shown(&mut play), None, "the plot did not move");
    // A drag beside the line moves the plot instead.
    let pointer = at(&play, 0.8, 0.5);
    wheel(&mut play, pointer, 240.0);
    let before = shown(&mut play).expect("zoomed");
    let (from, to) = (at(&play, 0.9, 0.2), at(&play, 0.8, 0.2));
    drag(&mut play, from, to);
    let after = shown(&mut play).expect("zoomed");
    assert!(after.xs.0 > before.xs.0, "to the right");
    assert!((play.state().rules[0].value / MILLI - value).abs() < 1e-9, "the goal stays");
}

#[test]
fn a_goal_obeys_the_arrow_keys_once_it_has_the_keyboard() {
    let mut play = play(goal_and_mark(), false);
    slider(&play, "Curve: goal").focus();
    play.run();
    for (key, direction) in [(Key::ArrowRight, 1.0), (Key::ArrowLeft, -1.0)] {
        let before = play.state().rules[0].value;
        play.key_press(key);
        play.run();
        let after = play.state().rules[0].value;
        assert!((after - before) * direction > 0.0, "{key:?}: {before} to {after}");
        let (one, before) = (after - before, after);
        play.key_press_modifiers(Modifiers::SHIFT, key);
        play.run();
        let ten = play.state().rules[0].value - before;
        assert!(ten / one > 3.0, "{key:?} with Shift: {ten}, without: {one}");
    }
    assert!(slider(&play, "Curve: goal").is_focused(), "arrows do not move the focus away");
    let words = slider(&play, "Curve: goal").accesskit_node().value();
    assert!(words.is_some_and(|words| words.ends_with(" ms")));
    assert_eq!(play.query_all_by_role(Role::Slider).count(), 1, "the other cannot be moved");
}

#[test]
fn goals_stand_in_time_plots_too() {
    let rules =
        [Rule::horizontal("goal", 0.5, 0).draggable(), Rule::vertical("change", 4e9, 1).dashed()];
    let mut play = play(rules, true);
    let (from, to) = (at(&play, 0.3, 0.5), at(&play, 0.6, 0.25));
    drag(&mut play, from, to);
    assert!((play.state().rules[0].value - 0.75).abs() < 0.01, "{}", play.state().rules[0].value);
    assert_eq!(play.state().choices.range(), None, "no range was chosen by that");
    let (from, to) = (at(&play, 0.3, 0.5), at(&play, 0.6, 0.5));
    drag(&mut play, from, to);
    assert!(play.state().choices.range().is_some(), "beside the line a drag chooses a range");
}

#[test]
fn wheel_keys_and_double_click_move_the_view_and_bring_it_back() {
    let mut play = play(goal_and_mark(), false);
    let pointer = at(&play, 0.2, 0.5);
    wheel(&mut play, pointer, 240.0);
    let zoomed = shown(&mut play).expect("zoomed");
    assert!((zoomed.xs.1 - zoomed.xs.0 - 1.5).abs() < 0.1, "{zoomed:?}");
    let pos = at(&play, 0.3, 0.3);
    for pressed in [true, false, true, false] {
        let (button, modifiers) = (PointerButton::Primary, Modifiers::NONE);
        play.input_mut().events.push(Event::PointerButton { pos, button, pressed, modifiers });
    }
    play.run_ok();
    assert_eq!(shown(&mut play), None);
    plot(&play).focus();
    play.run();
    play.key_press(Key::Plus);
    play.run();
    let zoomed = shown(&mut play).expect("zoomed by a key");
    play.key_press(Key::ArrowRight);
    play.run();
    let moved = shown(&mut play).expect("still zoomed");
    assert!(moved.xs.0 > zoomed.xs.0 && moved.ys == zoomed.ys);
    let time = play.state().choices.view();
    play.key_press(Key::Home);
    play.run();
    assert_eq!(shown(&mut play), None);
    assert_eq!(play.state().choices.view(), time, "the view over time is another matter");
}

#[test]
fn the_legend_reads_every_line_at_the_pointer() {
    let mut play = play(goal_and_mark(), false);
    let pointer = at(&play, 1.0 / 3.0, 0.3);
    play.event(Event::PointerMoved(pointer));
    play.run_ok();
    assert!(reads(&play, "at 10.0 ms") || reads(&play, "at 10.1 ms") || reads(&play, "at 9.9"));
    assert!(reads(&play, "goodput 33."));
    play.event(Event::PointerMoved(pos2(5.0, 395.0)));
    play.run_ok();
    assert!(!reads(&play, "goodput 33."));
}

#[test]
fn the_table_twin_says_the_same() {
    let mut play = play(goal_and_mark(), false);
    play.get_by_label("Curve: show as table").click();
    play.run();
    assert!(reads(&play, "1.00 ms") && reads(&play, "100 %"));
    play.get_by_label("Curve: show as table").click();
    play.run();
    plot(&play);
}
