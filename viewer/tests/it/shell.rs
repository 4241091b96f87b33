//! What is around the panels: the dialog that opens runs, the recent ones, several runs at once,
//! panels side by side, settings, the sheet of keys.

use std::{
    fs,
    path::{Path, PathBuf},
};

use eframe::egui::{Event, Key, Modifiers, PointerButton, Pos2, accesskit::Role};
use egui_kittest::kittest::{NodeT as _, Queryable as _};
use onbeat_shared::log::sample;
use onbeat_viewer::{
    app::Start,
    arguments::ThemeChoice,
    dialog, keys,
    panels::PANELS,
    settings::Settings,
    tiles::{MOST, Tiles},
};

use crate::stage::{self, Play, beginning, reads, settle};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn run_in(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, sample::log(3, 60)).expect("written");
    path
}

fn begin(start: Start) -> Play {
    let start = Start { inline: true, ..start };
    let mut play = stage::start(start, Vec::new(), |builder| builder);
    settle(&mut play);
    play
}

/// Presses a key and lets its effects come to rest.
fn press(play: &mut Play, modifiers: Modifiers, key: Key) {
    play.key_press_modifiers(modifiers, key);
    play.step();
    settle(play);
}

fn type_in_dialog(play: &mut Play, text: &str) {
    play.get_by_label(dialog::FIELD).type_text(text);
    play.step();
    settle(play);
}

fn names(play: &Play) -> Vec<String> {
    let tabs = play.state().app().tabs.all();
    tabs.iter().map(onbeat_viewer::tabs::Tab::name).collect()
}

#[test]
fn the_dialog_finds_by_name_walks_folders_and_opens_with_keys_alone() {
    let folder = folder();
    let inner = folder.path().join("march");
    fs::create_dir(&inner).expect("made");
    let shown = run_in(folder.path(), "shown.beat");
    run_in(&inner, "slow.beat");
    run_in(&inner, "fast.beat");
    fs::write(inner.join("notes.txt"), "x").expect("written");
    let mut play = begin(Start { runs: vec![shown], ..Start::default() });
    press(&mut play, Modifiers::COMMAND, Key::O);
    // It begins beside the shown run; the folder there comes first.
    assert!(play.get_by_label("Folder march").accesskit_node().is_selected() == Some(true));
    press(&mut play, Modifiers::NONE, Key::Enter);
    assert!(reads(&play, "slow.beat") && reads(&play, "fast.beat"));
    assert!(!reads(&play, "notes.txt"));
    assert!(reads(&play, "2 files; 1 of other kinds are not listed"));
    type_in_dialog(&mut play, "SLO");
    assert!(play.query_by_label("fast.beat").is_none());
    press(&mut play, Modifiers::NONE, Key::Enter);
    assert_eq!(names(&play), ["shown.beat", "slow.beat"]);
    assert!(play.query_by_label(dialog::FIELD).is_none(), "it is closed");
}

#[test]
fn several_files_are_marked_and_opened_at_once() {
    let folder = folder();
    for name in ["a.beat", "b.beat", "c.beat"] {
        run_in(folder.path(), name);
    }
    let shown = folder.path().join("a.beat");
    let mut play = begin(Start { runs: vec![shown], ..Start::default() });
    press(&mut play, Modifiers::COMMAND, Key::O);
    play.get_by_label("Order: By name").click();
    play.step();
    settle(&mut play);
    press(&mut play, Modifiers::NONE, Key::ArrowDown);
    press(&mut play, Modifiers::COMMAND, Key::Space);
    press(&mut play, Modifiers::NONE, Key::ArrowDown);
    press(&mut play, Modifiers::COMMAND, Key::Space);
    play.get_by_label("b.beat, marked");
    play.get_by_label("Open 2 runs");
    press(&mut play, Modifiers::NONE, Key::Enter);
    assert_eq!(names(&play), ["a.beat", "b.beat", "c.beat"]);
}

#[test]
fn the_dialog_goes_up_and_leaves_with_escape() {
    let folder = folder();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).expect("made");
    let shown = run_in(&inner, "shown.beat");
    let mut play = begin(Start { runs: vec![shown], ..Start::default() });
    press(&mut play, Modifiers::COMMAND, Key::O);
    press(&mut play, Modifiers::NONE, Key::Backspace);
    let up = play.get_by_label("Folder inner");
    assert_eq!(up.accesskit_node().is_selected(), Some(true), "one sees where one came from");
    type_in_dialog(&mut play, "/no/such/place");
    press(&mut play, Modifiers::NONE, Key::Enter);
    assert!(reads(&play, "/no/such/place: There is nothing at this path."));
    press(&mut play, Modifiers::NONE, Key::Escape);
    assert!(play.query_by_label(dialog::FIELD).is_none());
    assert_eq!(names(&play), ["shown.beat"]);
}

#[test]
fn runs_are_tabs_that_are_shown_and_closed() {
    let folder = folder();
    let other = folder.path().join("other");
    fs::create_dir(&other).expect("made");
    let runs = vec![
        run_in(folder.path(), "run.beat"),
        run_in(&other, "run.beat"),
        run_in(folder.path(), "b.beat"),
    ];
    let mut play = begin(Start { runs, ..Start::default() });
    play.get_by_label("Run other/run.beat").click();
    play.run_ok();
    assert_eq!(play.state().app().tabs.place(), 1);
    press(&mut play, Modifiers::CTRL, Key::Tab);
    assert_eq!(play.state().app().tabs.place(), 2);
    press(&mut play, Modifiers::CTRL.plus(Modifiers::SHIFT), Key::Tab);
    assert_eq!(play.state().app().tabs.place(), 1);
    play.get_by_label("Close b.beat").click();
    play.run_ok();
    assert_eq!(names(&play), ["run.beat", "run.beat"]);
    assert_eq!(play.state().app().tabs.place(), 1);
}

#[cfg(unix)]
#[test]
fn one_file_under_two_names_is_shown_once() {
    let folder = folder();
    let run = run_in(folder.path(), "run.beat");
    let link = folder.path().join("latest.beat");
    std::os::unix::fs::symlink(&run, &link).expect("linked");
    let mut play = begin(Start { runs: vec![run, link], ..Start::default() });
    for _ in 0..100_000 {
        if names(&play).len() == 1 {
            break;
        }
        std::thread::yield_now();
        play.step();
    }
    assert_eq!(names(&play), ["run.beat"]);
}

#[test]
fn recent_runs_are_offered_and_missing_ones_are_grey() {
    let folder = folder();
    let (there, gone) = (run_in(folder.path(), "there.beat"), folder.path().join("gone.beat"));
    let settings = folder.path().join("viewer.json");
    let mut remembered = Settings::default();
    remembered.recent = vec![there, gone];
    fs::write(&settings, remembered.text()).expect("written");
    let mut play = begin(Start { settings: Some(settings.clone()), ..Start::default() });
    let missing = play.get_by_label("gone.beat, no longer there");
    assert!(missing.accesskit_node().is_disabled());
    play.get_by_label("Open there.beat").click();
    play.step();
    settle(&mut play);
    assert_eq!(names(&play), ["there.beat"]);
    press(&mut play, Modifiers::COMMAND, Key::W);
    play.get_by_label("Forget these").click();
    play.run_ok();
    assert!(play.query_by_label("Open there.beat").is_none());
    drop(play);
    let text = fs::read(&settings).expect("there");
    assert_eq!(Settings::parse(&text).expect("sound").recent, Vec::<PathBuf>::new());
}

#[test]
fn what_was_chosen_is_there_in_the_next_window() {
    let folder = folder();
    let settings = folder.path().join("config/viewer.json");
    let run = run_in(folder.path(), "run.beat");
    let start = || Start { settings: Some(settings.clone()), ..Start::default() };
    let mut play = begin(Start { runs: vec![run.clone()], ..start() });
    press(&mut play, Modifiers::NONE, Key::D);
    press(&mut play, Modifiers::NONE, Key::S);
    let tiles = play.state().app().tiles.panels();
    assert_eq!(tiles.len(), 2);
    drop(play);
    let text = fs::read(&settings).expect("written");
    let saved = Settings::parse(&text).expect("sound");
    assert_eq!(saved.recent, [run]);
    // The stage asks for light colours, and the key goes on to dark ones.
    assert_eq!(saved.theme, ThemeChoice::Dark);
    let play = begin(start());
    assert_eq!(play.state().app().tiles.panels(), tiles);
    assert_eq!(play.state().app().recent.paths().len(), 1);
}

#[test]
fn columns_of_the_table_of_requests_are_kept() {
    let folder = folder();
    let settings = folder.path().join("viewer.json");
    let run = run_in(folder.path(), "run.beat");
    let start =
        || Start { settings: Some(settings.clone()), runs: vec![run.clone()], ..Start::default() };
    let mut play = begin(start());
    let columns = play.state().choices().requests.columns.clone();
    let taken = *columns.last().expect("columns");
    play.state_mut().choices_mut().requests.columns.remove(&taken);
    play.run_ok();
    drop(play);
    let play = begin(start());
    let kept = &play.state().choices().requests.columns;
    assert_eq!(kept.len() + 1, columns.len());
    assert!(!kept.contains(&taken));
}

#[test]
fn damaged_settings_are_told_and_nothing_breaks() {
    let folder = folder();
    let settings = folder.path().join("viewer.json");
    fs::write(&settings, "{\"theme\": [[[").expect("written");
    let mut play = begin(Start { settings: Some(settings), ..Start::default() });
    assert!(reads(&play, "viewer.json are damaged"));
    play.get_by_label("Close the notice").click();
    play.run_ok();
    assert!(!reads(&play, "viewer.json are damaged"));
}

#[test]
fn without_a_settings_file_nothing_is_written() {
    let folder = folder();
    let run = run_in(folder.path(), "run.beat");
    let mut play = begin(Start { runs: vec![run], ..Start::default() });
    press(&mut play, Modifiers::NONE, Key::D);
    drop(play);
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
}

#[test]
fn panels_stand_side_by_side_and_share_range_and_cursor() {
    let mut play = stage::with(vec![stage::usual()]);
    press(&mut play, Modifiers::NONE, Key::S);
    let tiles = |play: &Play| play.state().app().tiles.clone();
    assert_eq!(tiles(&play).panels(), [0, 1]);
    assert_eq!(tiles(&play).focus(), 1);
    beginning(&play, Role::Main, PANELS[0].name);
    beginning(&play, Role::Main, PANELS[1].name);
    // A cursor moved by keys stands in the plots of both.
    press(&mut play, Modifiers::NONE, Key::Period);
    let cursor = play.state().choices().cursor;
    assert!(cursor.is_some());
    // The first panel's key goes to its tile.
    press(&mut play, Modifiers::NONE, Key::Num1);
    assert_eq!(tiles(&play).focus(), 0);
    press(&mut play, Modifiers::NONE, Key::F6);
    assert_eq!(tiles(&play).focus(), 1);
    press(&mut play, Modifiers::SHIFT, Key::ArrowRight);
    assert_ne!(tiles(&play), {
        let mut fresh = Tiles::one(0);
        fresh.split(onbeat_viewer::tiles::Direction::Columns);
        fresh
    });
    press(&mut play, Modifiers::NONE, Key::X);
    assert_eq!(tiles(&play).panels(), [0]);
}

#[test]
fn tiles_take_the_focus_from_the_mouse_and_borders_move() {
    let mut play = stage::with(vec![stage::usual()]);
    press(&mut play, Modifiers::NONE, Key::S);
    let click = |play: &mut Play, pos: Pos2| {
        play.event(Event::PointerMoved(pos));
        for pressed in [true, false] {
            let (button, modifiers) = (PointerButton::Primary, Modifiers::NONE);
            play.event(Event::PointerButton { pos, button, pressed, modifiers });
            play.step();
        }
        settle(play);
    };
    let first = play.get_by_label("Panel of tile 1").rect();
    click(&mut play, Pos2::new(first.right() + 60.0, first.center().y));
    assert_eq!(play.state().app().tiles.focus(), 0);
    let border = beginning(&play, Role::Splitter, "Border between tiles").rect().center();
    let to = border + eframe::egui::vec2(-120.0, 0.0);
    play.event(Event::PointerMoved(border));
    play.step();
    let (button, modifiers) = (PointerButton::Primary, Modifiers::NONE);
    play.event(Event::PointerButton { pos: border, button, pressed: true, modifiers });
    play.step();
    play.event(Event::PointerMoved(to));
    play.step();
    play.event(Event::PointerButton { pos: to, button, pressed: false, modifiers });
    settle(&mut play);
    let moved = beginning(&play, Role::Splitter, "Border between tiles").rect().center();
    assert!((moved.x - to.x).abs() < 8.0, "{moved:?} instead of {to:?}");
}

#[test]
fn a_window_too_small_for_all_tiles_shows_the_one_with_the_focus() {
    let mut play = stage::with(vec![stage::usual()]);
    press(&mut play, Modifiers::NONE, Key::S);
    play.set_size(eframe::egui::vec2(640.0, 480.0));
    play.step();
    settle(&mut play);
    assert!(reads(&play, "2 of 2: the window is too small for all"));
    press(&mut play, Modifiers::NONE, Key::F6);
    assert!(reads(&play, "1 of 2: the window is too small for all"));
}

#[test]
fn there_are_four_tiles_at_most() {
    let mut play = stage::with(vec![stage::usual()]);
    for _ in 0..MOST + 1 {
        press(&mut play, Modifiers::SHIFT, Key::S);
    }
    assert!(play.state().app().tiles.len() <= MOST);
    assert!(reads(&play, "There is no room for one more tile."));
}

#[test]
fn the_sheet_lists_every_key() {
    let mut play = stage::with(vec![stage::usual()]);
    press(&mut play, Modifiers::NONE, Key::Questionmark);
    for binding in keys::BINDINGS {
        assert!(reads(&play, binding.shown) && reads(&play, binding.does), "{}", binding.does);
    }
    for local in keys::LOCAL {
        for (shown, does) in local.lines {
            assert!(reads(&play, shown) && reads(&play, does), "{does}");
        }
    }
    press(&mut play, Modifiers::NONE, Key::Escape);
    assert!(!reads(&play, "Keys and mouse, sheet"));
}

/// Tab walks through every control; nothing that can be focused is without a name.
#[test]
fn every_control_has_a_name_and_tab_reaches_it() {
    let folder = folder();
    let run = run_in(folder.path(), "run.beat");
    let mut play = begin(Start { runs: vec![run], ..Start::default() });
    for node in play.root().children_recursive() {
        let node = node.accesskit_node();
        let controls = [
            Role::Button,
            Role::CheckBox,
            Role::RadioButton,
            Role::Tab,
            Role::TextInput,
            Role::ComboBox,
            Role::Link,
            Role::Slider,
        ];
        if controls.contains(&node.role()) {
            let named = node.label().or(node.value()).is_some_and(|name| !name.trim().is_empty());
            assert!(named, "a {:?} at {:?} has no name", node.role(), node.raw_bounds());
        }
    }
    let mut reached = std::collections::HashSet::new();
    for _ in 0..80 {
        play.key_press(Key::Tab);
        play.step();
        let focused = play.root().children_recursive().find(|node| node.is_focused());
        if let Some(focused) = focused {
            reached.insert(label_or_value(&focused));
        }
    }
    for name in ["Run run.beat", "View menu", "Keys and mouse", "Overview panel"] {
        assert!(reached.contains(name), "Tab never reaches {name}: {reached:?}");
    }
}

fn label_or_value(node: &egui_kittest::Node<'_>) -> String {
    let node = node.accesskit_node();
    node.label().or(node.value()).unwrap_or_default()
}

#[test]
fn colours_and_arrangements_are_in_the_view_menu() {
    let mut play = stage::with(vec![stage::usual()]);
    play.get_by_label("View menu").click();
    play.run_ok();
    play.get_by_label("Two side by side").click();
    play.run_ok();
    assert_eq!(play.state().app().tiles.len(), 2);
    play.get_by_label("View menu").click();
    play.run_ok();
    play.get_by_label("Dark").click();
    play.run_ok();
    assert!(play.ctx.global_style().visuals.dark_mode);
}
