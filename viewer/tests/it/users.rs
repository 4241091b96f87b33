//! The panel of users: its plots, its tables, and what it says of runs without users.

use eframe::egui::{self, Key, ThemePreference, accesskit::Role};
use egui_kittest::{
    Harness, SnapshotResults,
    kittest::{NodeT as _, Queryable as _},
};
use onbeat_shared::log::{sample, sample_users};
use onbeat_viewer::{series::users::listing, theme};

use crate::pictures::{THEMES, compare, play};
use crate::stage::{self, Play, beginning, label, plot, reads};

fn shown(bytes: &[u8]) -> Play {
    let mut play = stage::with(vec![stage::of_bytes(bytes, "sample.beat")]);
    play.get_by_label("Users panel").click();
    play.run();
    play
}

const STATES: &str = "Users and the ramp's decisions";

#[test]
fn a_run_without_users_says_which_have_some() {
    let mut play = stage::with(vec![stage::usual()]);
    play.get_by_label("Users panel").click();
    play.run();
    assert!(reads(&play, "This run has no users"));
    assert!(reads(&play, "agentic trace"));
    play.get_by_label("See its sessions in the timeline").click();
    play.run();
    plot(&play, "Timeline");
}

/// On every screen; twice as fine a screen has letters of another width.
#[test]
fn no_heading_is_cut() {
    let all = || [&listing::PERIODS[..], &listing::WAITS, &listing::PEOPLE].into_iter().flatten();
    let mut cut = std::collections::BTreeSet::new();
    for pixels_per_point in [1.0, 2.0] {
        let play = Harness::builder()
            .with_pixels_per_point(pixels_per_point)
            .with_context_setup(|ctx| theme::install(ctx, ThemePreference::Light))
            .build_ui(|_ui| {});
        for column in all() {
            let (text, font) = (column.heading.to_owned(), theme::Type::Small.font());
            let words =
                play.ctx.fonts_mut(|fonts| fonts.layout_no_wrap(text, font, egui::Color32::WHITE));
            let (width, room) = (words.size().x, column.width - 3.0 * theme::GRID);
            if width > room {
                cut.insert(format!("{}: {width} in {room}", column.heading));
            }
        }
    }
    assert!(cut.is_empty(), "{cut:?}");
}

#[test]
fn both_plots_say_what_they_show() {
    let mut play = shown(&sample_users::log(3, 8));
    let summary = label(&plot(&play, STATES));
    assert!(summary.contains("rate-limited") && summary.contains("decisions"), "{summary}");
    assert!(label(&plot(&play, "Time to first token")).contains("periods"));
    play.get_by_label("Lower plot: Held back").click();
    play.run();
    assert!(label(&plot(&play, "Users held back")).contains("at most"));
    play.get_by_label("Lower plot: Limits").click();
    play.run();
    plot(&play, "Use of limits");
    play.key_press(Key::T);
    play.run();
    play.get_by_role_and_label(Role::Table, STATES);
    play.get_by_role_and_label(Role::Table, "Use of limits");
}

fn rows(play: &Play, table: &str) -> usize {
    let table = play.get_by_role_and_label(Role::Table, table);
    table.accesskit_node().data().row_count().expect("a count")
}

#[test]
fn the_tables_have_every_period_wait_and_user() {
    let mut play = shown(&sample_users::log(3, 8));
    assert_eq!(rows(&play, "Assessment periods"), 4);
    play.get_by_label("Table: Held back").click();
    play.run();
    assert!(rows(&play, "Times held back") > 0);
    play.get_by_label("Table: Users").click();
    play.run();
    let users = play.state().run().run.users.as_ref().map_or(0, |users| users.users.len());
    assert_eq!(rows(&play, "Users and sub-agents"), users);
}

#[test]
fn choosing_a_user_filters_by_it() {
    let mut play = shown(&sample_users::log(3, 8));
    play.get_by_label("Table: Users").click();
    play.run();
    beginning(&play, Role::Row, "User User-002,").click();
    play.run();
    let filter = play.state().choices().filter.as_ref().expect("a filter").text().to_owned();
    assert!(filter.contains("user") && filter.contains("User-002"), "{filter}");
    play.get_by_label("Timeline panel").click();
    play.run();
    assert!(play.query_by_label_contains("Lane User-001:").is_none());
    assert!(play.query_by_label_contains("Lane User-002:").is_some());
}

#[test]
fn a_user_is_chosen_with_the_keyboard_as_well() {
    let mut play = shown(&sample_users::log(3, 8));
    play.get_by_label("Table: Users").click();
    play.run();
    play.get_by_role_and_label(Role::Grid, "Users and sub-agents: rows, by arrow keys").focus();
    play.run();
    for key in [Key::ArrowDown, Key::ArrowDown, Key::Enter] {
        play.key_press(key);
        play.run();
    }
    assert!(play.state().choices().filter.is_some(), "the second user's requests alone");
}

#[test]
fn headings_sort_the_users() {
    let mut play = shown(&sample_users::log(3, 8));
    play.get_by_label("Table: Users").click();
    play.run();
    beginning(&play, Role::ColumnHeader, "Sort by Requests").click();
    play.run();
    beginning(&play, Role::ColumnHeader, "Sort by Requests, sorted from the largest");
}

/// The panel in a picture.
fn painted(theme: ThemePreference, bytes: &[u8]) -> Play {
    let mut play = play(theme, bytes);
    play.get_by_label("Users panel").click();
    play.run();
    play
}

#[test]
fn the_panel_looks_as_it_did() {
    let mut results = SnapshotResults::new();
    for (theme, name) in THEMES {
        let mut play = painted(theme, &sample_users::log(3, 12));
        results.add(compare(&mut play, &format!("users-{name}")));
        if theme == ThemePreference::Dark {
            continue;
        }
        for (plot, table, name) in [
            ("Held back", "Held back", "users-held-light"),
            ("Limits", "Users", "users-people-light"),
        ] {
            play.get_by_label(&format!("Lower plot: {plot}")).click();
            play.get_by_label(&format!("Table: {table}")).click();
            play.run();
            results.add(compare(&mut play, name));
        }
        play.key_press(Key::T);
        play.run();
        results.add(compare(&mut play, "users-tables-light"));
    }
    let mut play = painted(ThemePreference::Light, &sample::log(7, 200));
    results.add(compare(&mut play, "users-none-light"));
}
