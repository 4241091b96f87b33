//! What is around the panels as pictures: the welcome with recent runs, the dialog, tabs, panels
//! side by side, notices, menus, the sheet of keys in a large window.

use std::{path::PathBuf, time::SystemTime};

use eframe::egui::{Key, Modifiers, ThemePreference, accesskit::Role, vec2};
use egui_kittest::{SnapshotResults, kittest::Queryable as _};
use onbeat_shared::{log::sample, units::RunNanos};
use onbeat_viewer::{
    app::Start,
    browse::{Entry, Listing},
    dialog::Dialog,
    recent::Recent,
    state::TimeRange,
};

use crate::pictures::{Software, THEMES, compare};
use crate::stage::{self, Play, beginning};

fn begin(theme: ThemePreference, runs: &[&str]) -> Play {
    let start = Start { theme: Some(theme), inline: true, ..Start::default() };
    let run = |(place, name): (usize, &&str)| {
        let seed = 7 + place as u64;
        stage::opened(&sample::sample(seed, 600), name)
    };
    let runs = runs.iter().enumerate().map(run).collect();
    let mut play = stage::start(start, runs, |builder| {
        builder.renderer(Software::default()).with_render_cursor(false)
    });
    play.run_ok();
    play
}

fn recent() -> Recent {
    let runs = [
        ("/home/me/runs/2026-11-30/prefill-heavy-c64.beat", false),
        ("/home/me/runs/2026-11-30/baseline.beat", false),
        ("/home/me/runs/2026-11-29/baseline.beat", true),
        ("/mnt/cluster/results/llama-70b/agentic/users-300-with-a-long-name.beat", false),
    ];
    Recent::known(runs.map(|(path, gone)| (PathBuf::from(path), gone)).to_vec())
}

fn entry(name: &str, bytes: Option<u64>, age: &str) -> Entry {
    Entry {
        path: PathBuf::from("/home/me/runs").join(name),
        name: name.to_owned(),
        folded: name.to_lowercase(),
        is_folder: bytes.is_none(),
        bytes,
        modified: None::<SystemTime>,
        age: age.to_owned(),
    }
}

fn listing() -> Listing {
    let entries = vec![
        entry("2026-11-29", None, "1 day ago"),
        entry("2026-11-30", None, "3 min ago"),
        entry("baseline.beat", Some(48_213_004), "12 min ago"),
        entry("prefill-heavy-c64.beat", Some(1_912_004_113), "3 h ago"),
        entry("profile_export.jsonl", Some(7_340_032), "2 days ago"),
        entry("detailed_results.csv", Some(912), "2026-10-02"),
    ];
    Listing { folder: PathBuf::from("/home/me/runs"), entries, others: 14, cut: false }
}

#[test]
fn the_welcome_and_the_dialog_look_as_they_did() {
    let mut results = SnapshotResults::new();
    for (theme, name) in THEMES {
        let mut play = begin(theme, &[]);
        play.state_mut().app_mut().recent = recent();
        play.run_ok();
        results.add(compare(&mut play, &format!("welcome-{name}")));
        let dialog = Dialog::showing(listing(), Some(PathBuf::from("/home/me")), false);
        play.state_mut().app_mut().show_dialog(dialog);
        play.run_ok();
        for _ in 0..2 {
            play.key_press(Key::ArrowDown);
        }
        play.key_press_modifiers(Modifiers::COMMAND, Key::Space);
        play.key_press(Key::ArrowDown);
        play.run_ok();
        results.add(compare(&mut play, &format!("open-{name}")));
    }
}

#[test]
fn panels_side_by_side_look_as_they_did() {
    let mut results = SnapshotResults::new();
    let mut play =
        begin(ThemePreference::Light, &["runs/a/run.beat", "runs/b/run.beat", "baseline.beat"]);
    play.key_press(Key::S);
    play.run_ok();
    results.add(compare(&mut play, "columns-light"));
    play.key_press_modifiers(Modifiers::SHIFT, Key::S);
    play.run_ok();
    play.set_size(vec2(1600.0, 1000.0));
    play.run_ok();
    results.add(compare(&mut play, "three-tiles-light"));
}

#[test]
fn menus_and_notices_look_as_they_did() {
    let mut results = SnapshotResults::new();
    let mut play = begin(ThemePreference::Light, &["baseline.beat"]);
    play.state_mut().app_mut().recent = recent();
    play.run_ok();
    play.get_by_label("View menu").click();
    play.run_ok();
    results.add(compare(&mut play, "view-menu-light"));
    play.key_press(Key::Escape);
    play.run_ok();
    play.get_by_label("Recent runs menu").click();
    play.step();
    // These are nobody's files, and that is found out.
    stage::settle(&mut play);
    results.add(compare(&mut play, "recent-menu-light"));
}

#[test]
fn the_sheet_fits_a_small_laptop_and_uses_a_large_window() {
    let mut results = SnapshotResults::new();
    for (size, name) in [(vec2(1280.0, 720.0), "keys-small"), (vec2(1700.0, 1000.0), "keys-large")]
    {
        let mut play = begin(ThemePreference::Light, &["baseline.beat"]);
        play.set_size(size);
        play.key_press(Key::Questionmark);
        play.run_ok();
        results.add(compare(&mut play, name));
    }
}

/// The smallest window there is: nothing overlaps, and all can be reached.
#[test]
fn the_smallest_window_looks_as_it_did() {
    let mut results = SnapshotResults::new();
    let mut play = begin(ThemePreference::Light, &["baseline.beat", "prefill-heavy-c64.beat"]);
    play.set_size(vec2(480.0, 360.0));
    play.run_ok();
    results.add(compare(&mut play, "small-light"));
    play.state_mut().choices_mut().zoom(3.0, RunNanos(4_000_000_000));
    let range = TimeRange::between(RunNanos(3_000_000_000), RunNanos(5_000_000_000));
    play.state_mut().choices_mut().choose(range);
    play.key_press(Key::Num2);
    play.run_ok();
    results.add(compare(&mut play, "small-range-light"));
    beginning(&play, Role::Button, "Panels menu, Latency is shown").click();
    play.run_ok();
    results.add(compare(&mut play, "small-panels-light"));
    beginning(&play, Role::Button, "Requests").click();
    play.run_ok();
    play.get_by_label("Menu").click();
    play.run_ok();
    results.add(compare(&mut play, "small-menu-light"));
}
