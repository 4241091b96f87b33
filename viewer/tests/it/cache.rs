//! The Cache panel, read through the accessibility tree and compared with its pictures.

use eframe::egui::{ThemePreference, accesskit::Role};
use egui_kittest::SnapshotResults;
use onbeat_shared::{
    log::{
        Record, UNKNOWN_TOKENS,
        sample::{self, Sample},
    },
    units::RunNanos,
};
use onbeat_viewer::{
    panels, quantity,
    series::cache::{SessionColumn, SessionSort},
    state::TimeRange,
};

use crate::pictures::{THEMES, compare, play};
use crate::stage::{self, Play, beginning, label, plot, reads};

const SECOND: i64 = 1_000_000_000;

fn open(play: &mut Play) {
    let panel = panels::named("Cache").expect("a panel");
    play.state_mut().app_mut().show_panel(panel);
    play.run();
}

/// Chooses from the fourth second to the ninth.
fn choose(play: &mut Play) {
    let range = TimeRange::between(RunNanos(4 * SECOND), RunNanos(9 * SECOND));
    play.state_mut().choices_mut().choose(range);
    play.run();
}

#[test]
fn the_panel_says_what_was_possible_what_was_had_and_how_large_the_cache_seems() {
    let mut play = stage::with(vec![stage::usual()]);
    open(&mut play);
    let cache = play.state().run().report().cache.clone();
    let reported = quantity::percent(cache.reported_hit_rate.expect("reported"));
    let ideal = quantity::percent(cache.ideal_hit_rate.expect("block ids"));
    let words = label(&plot(&play, "Hit rate"));
    assert!(words.contains(&format!("ideal hit rate {ideal}, reported {reported}")), "{words}");
    let words = label(&plot(&play, "Hit rate by cache size"));
    assert!(
        words.contains(&format!("The reported {reported} is what a cache of about")),
        "{words}"
    );
    assert!(reads(&play, &format!("The reported {reported} is what a cache of about")));
    beginning(&play, Role::Table, "Sessions");
    beginning(&play, Role::Table, "Hit rates by outcome");
    let sessions = play.state().run().run.sessions.len() as u64;
    assert!(reads(&play, &quantity::counted(sessions, "session")));
    choose(&mut play);
    assert!(!reads(&play, &quantity::counted(sessions, "session")), "fewer sessions");
}

#[test]
fn sessions_are_sorted_by_a_click_on_a_heading() {
    let mut play = stage::with(vec![stage::usual()]);
    open(&mut play);
    assert_eq!(play.state().choices().cache.sort, SessionSort::default());
    for descending in [false, true] {
        beginning(&play, Role::ColumnHeader, "Sort by difference").click();
        play.run();
        let sort = SessionSort { column: SessionColumn::Difference, descending };
        assert_eq!(play.state().choices().cache.sort, sort);
    }
}

#[test]
fn what_nobody_reports_is_a_word() {
    let mut sample = sample::sample(7, 300);
    for (_, record) in &mut sample.records {
        if let Record::Usage { usage, .. } = record {
            usage.cached_tokens = UNKNOWN_TOKENS;
        }
    }
    let mut play = stage::with(vec![stage::opened(&sample, "silent.beat")]);
    open(&mut play);
    assert!(label(&plot(&play, "Hit rate")).contains("the server reports no cached tokens"));
    assert!(reads(&play, "The server reports no cached tokens to compare with."));
    let mut play = stage::with(vec![stage::opened(&Sample::new(), "nothing.beat")]);
    open(&mut play);
    assert!(label(&plot(&play, "Hit rate by cache size")).contains("No data"));
}

#[test]
fn the_cache_looks_as_it_did() {
    let mut results = SnapshotResults::new();
    for (theme, name) in THEMES {
        let mut play = play(theme, &sample::log(7, 1_200));
        open(&mut play);
        results.add(compare(&mut play, &format!("cache-{name}")));
    }
    let mut play = play(ThemePreference::Light, &Sample::new().bytes());
    open(&mut play);
    results.add(compare(&mut play, "cache-empty-light"));
}

#[test]
fn what_the_server_said_of_itself_stands_above_and_a_gap_is_a_gap() {
    let mut results = SnapshotResults::new();
    for (theme, name) in THEMES {
        let mut play = play(theme, &sample::scraped(7).bytes());
        open(&mut play);
        let words = label(&plot(&play, "Server: requests"));
        assert!(words.contains("running at most 8 requests"), "{words}");
        assert!(words.contains("waiting at most 4 requests"), "{words}");
        let words = label(&plot(&play, "Server: cache"));
        assert!(words.contains("hit rate at most 75 %"), "{words}");
        results.add(compare(&mut play, &format!("cache-scraped-{name}")));
    }
}
