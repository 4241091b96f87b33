//! The table of a million rows, on its own: every row can be reached and only those in sight cost.

use std::cell::Cell;

use eframe::egui::{
    Event, Key, MouseWheelSource, MouseWheelUnit, PointerButton, Pos2, TouchPhase, Vec2,
    accesskit::Role,
};
use egui_kittest::{Harness, kittest::Queryable as _};
use onbeat_viewer::widgets::grid::{Grid, GridColumn, GridKeys};

use crate::stage::SIZE;

const ROWS: usize = 1_000_000;

#[derive(Default)]
struct Shown {
    reveal: Option<usize>,
    clicked: Option<usize>,
    /// Cells that were asked for in the last frame.
    asked: usize,
}

type Play = Harness<'static, Shown>;

fn play() -> Play {
    let column = |heading, width| GridColumn { heading, about: "", width, is_text: false };
    let columns = [column("No.", 90.0), column("Square", 160.0)];
    Harness::builder().with_size(SIZE).build_ui_state(
        move |ui, shown: &mut Shown| {
            let asked = Cell::new(0);
            let act = Grid {
                name: "Squares",
                columns: &columns,
                rows: ROWS,
                height: 500.0,
                cell: &|row, column| {
                    asked.set(asked.get() + 1);
                    Some(if column == 0 { row.to_string() } else { (row * row).to_string() })
                },
                colour: &|_row, _column| None,
                is_chosen: &|_row| false,
                sorted: None,
                reveal: shown.reveal.take(),
                keys: GridKeys::Cursor,
            }
            .show(ui);
            shown.clicked = act.row.or(shown.clicked);
            shown.asked = asked.get();
        },
        Shown::default(),
    )
}

/// The numbers of the rows in sight.
fn in_sight(play: &Play) -> Vec<usize> {
    let rows = play.get_all_by_role(Role::Row).map(|row| crate::stage::label(&row));
    let number = |row: String| {
        let number = row.trim_start_matches("No. ").split(',').next().map(str::to_owned);
        number.expect("a number").parse().expect("a number")
    };
    rows.map(number).collect()
}

#[test]
fn any_row_of_a_million_comes_into_sight_evenly() {
    let mut play = play();
    for row in [0, 999_999, 500_000, 777_777, 777_778, 1] {
        play.state_mut().reveal = Some(row);
        play.run();
        let rows = in_sight(&play);
        assert!(rows.contains(&row), "{row}: {rows:?}");
        assert!(rows.windows(2).all(|pair| pair[1] == pair[0] + 1));
        assert!(play.state().asked <= 2 * 24, "{} cells", play.state().asked);
        let tops: Vec<f32> =
            play.get_all_by_role(Role::Row).map(|row| row.rect().bottom()).collect();
        // The first and the last may be cut.
        for pair in tops[1..tops.len() - 1].windows(2) {
            assert!((pair[1] - pair[0] - 22.0).abs() < 0.01, "{row}: uneven, {pair:?}");
        }
    }
}

#[test]
fn the_wheel_moves_by_rows_and_a_click_gives_the_row() {
    let mut play = play();
    play.state_mut().reveal = Some(600_000);
    play.run();
    let before = in_sight(&play)[1];
    play.event(Event::PointerMoved(Pos2::new(200.0, 200.0)));
    play.step();
    for _ in 0..10 {
        play.event(Event::MouseWheel {
            source: MouseWheelSource::Unknown,
            unit: MouseWheelUnit::Point,
            delta: Vec2::new(0.0, -22.0),
            phase: TouchPhase::Move,
            modifiers: Default::default(),
        });
        play.step();
    }
    play.run_ok();
    let moved = in_sight(&play)[1] - before;
    assert!((8..=12).contains(&moved), "{moved} rows");
    let row = in_sight(&play)[5];
    play.get_by_label(&format!("No. {row}, Square {}", row * row)).click();
    play.run();
    assert_eq!(play.state().clicked, Some(row));
}

/// Without a mouse: the tabulator gives the table the focus, its cursor goes to any row, and Enter
/// is a click there.
#[test]
fn keys_go_over_the_rows_and_enter_is_a_click() {
    let mut play = play();
    let table = |play: &Play| {
        play.get_by_role_and_label(Role::Grid, "Squares: rows, by arrow keys").is_focused()
    };
    for _ in 0..10 {
        if table(&play) {
            break;
        }
        play.key_press(Key::Tab);
        play.run();
    }
    assert!(table(&play), "the tabulator finds it");
    let mut after = |keys: &[Key]| {
        for &key in keys {
            play.key_press(key);
            play.run();
        }
        play.key_press(Key::Enter);
        play.run();
        let row = play.state().clicked.expect("a row");
        assert!(in_sight(&play).contains(&row), "{row}");
        row
    };
    assert_eq!(after(&[Key::ArrowDown]), 0, "the first key finds the cursor");
    assert_eq!(after(&[Key::ArrowDown, Key::ArrowDown]), 2);
    assert_eq!(after(&[Key::End]), ROWS - 1);
    assert_eq!(after(&[Key::ArrowDown, Key::ArrowUp]), ROWS - 2);
    assert!((10..40).contains(&(ROWS - 2 - after(&[Key::PageUp]))));
    assert_eq!(after(&[Key::Home, Key::ArrowUp]), 0);
}

#[test]
fn the_bar_leads_to_both_ends() {
    let mut play = play();
    for (share, row) in [(0.999, 999_999), (0.5, 500_000), (0.0, 0)] {
        let bar = play.get_by_label("Squares: scroll").rect();
        let at = Pos2::new(bar.center().x, bar.top() + 1.0 + share * (bar.height() - 2.0));
        play.event(Event::PointerMoved(at));
        play.step();
        for pressed in [true, false] {
            let (button, modifiers) = (PointerButton::Primary, Default::default());
            play.event(Event::PointerButton { pos: at, button, pressed, modifiers });
            play.step();
        }
        play.run_ok();
        let near = in_sight(&play)[0].abs_diff(row);
        assert!(near < 2_000, "{share}: {:?}", in_sight(&play));
    }
}
