//! Runs that are still being written: followed, held still, ended, cut short, replaced.

use std::{
    fs::{self, File},
    io::Write as _,
    ops::Range,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use eframe::egui::{Event, Modifiers, PointerButton, accesskit::Role};
use egui_kittest::{SnapshotResults, kittest::Queryable as _};
use onbeat_shared::{log::sample, run::State};
use onbeat_viewer::{app::Start, bars, following, load::Phase, panels, problem::Kind, tabs::Tab};

use crate::pictures::{Software, compare};
use crate::plots;
use crate::stage::{self, Play, beginning, reads, settle};

/// A log and a file that has the first part of it.
struct Written {
    _folder: tempfile::TempDir,
    path: PathBuf,
    log: Vec<u8>,
    bytes: usize,
}

impl Written {
    fn new(share: usize) -> Self {
        let log = sample::log(21, 600);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("run.beat");
        let mut written = Self { _folder: folder, path, log, bytes: 0 };
        written.go_on(share);
        written
    }

    /// Writes on until so many hundredths of the log are there.
    fn go_on(&mut self, share: usize) {
        let end = self.log.len() * share / 100;
        let mut file = File::options().create(true).append(true).open(&self.path).expect("a file");
        file.write_all(&self.log[self.bytes..end]).expect("written");
        self.bytes = end;
    }

    fn open(&self) -> Play {
        let start = Start { runs: vec![self.path.clone()], inline: true, ..Start::default() };
        let mut play = stage::start(start, Vec::new(), |builder| {
            builder.renderer(Software::default()).with_render_cursor(false)
        });
        settle(&mut play);
        play
    }
}

/// Draws frames until it is so.
fn until(play: &mut Play, what: &str, so: impl Fn(&Play) -> bool) {
    for _ in 0..4_000 {
        play.step();
        if so(play) {
            return;
        }
        thread::park_timeout(Duration::from_millis(5));
    }
    panic!("never: {what}");
}

fn phase(play: &Play) -> Phase {
    match play.state().app().tabs.shown() {
        Some(Tab::Open(open)) => open.phase(),
        _ => panic!("no run is open"),
    }
}

fn sent(play: &Play) -> usize {
    let requests = &play.state().run().run.requests;
    (0..requests.len()).filter(|&i| requests.was_sent(i)).count()
}

#[test]
fn a_run_is_followed_until_its_log_is_closed() {
    let mut written = Written::new(50);
    let mut play = written.open();
    assert_eq!(phase(&play), Phase::Waiting);
    beginning(&play, Role::Group, "This log is unfinished");
    let before = sent(&play);
    written.go_on(70);
    until(&mut play, "more requests", |play| sent(play) > before);
    assert_eq!(phase(&play), Phase::Live);
    play.run_ok();
    assert!(reads(&play, "the run so far"));
    assert!(!reads(&play, "This log is unfinished"), "it grows, so that is no news");
    for panel in ["Lateness", "Overview"] {
        play.state_mut().app_mut().show_panel(panels::named(panel).expect("a panel"));
        play.run_ok();
        beginning(&play, Role::Group, "Verdict: The schedule has held so far");
    }
    assert!(!play.state().choices().is_zoomed(), "a view of all goes along");
    assert_eq!(play.state().choices().whole(), play.state().run().whole());
    let before = sent(&play);
    written.go_on(100);
    until(&mut play, "the end", |play| play.state().run().run.state == State::Finished);
    play.step();
    assert!(reads(&play, "run.beat: the run has finished."), "and it says so");
    assert!(sent(&play) > before);
    until(&mut play, "no more to come", |play| phase(play) == Phase::Ended);
    play.run_ok();
    assert!(play.query_by_label(following::FOLLOW).is_none());
    assert!(reads(&play, "the whole run"));
}

#[test]
fn what_is_held_still_does_not_move_and_catches_up() {
    let mut written = Written::new(40);
    let mut play = written.open();
    written.go_on(50);
    until(&mut play, "it is live", |play| {
        phase(play) == Phase::Live && play.query_by_label(following::FOLLOW).is_some()
    });
    play.get_by_label(following::FOLLOW).click();
    play.run_ok();
    let (held, bytes) = (sent(&play), play.state().run().file_bytes);
    written.go_on(100);
    until(&mut play, "the log has ended", |play| phase(play) == Phase::Ended);
    assert_eq!((sent(&play), play.state().run().file_bytes), (held, bytes));
    play.get_by_label(following::FOLLOW).click();
    until(&mut play, "it has caught up", |play| play.state().run().run.state == State::Finished);
    assert!(sent(&play) > held);
}

/// What is brushed while more is written speaks of that stretch of time and stays there: a stroke
/// that is not finished as well as a range.
#[test]
fn what_is_brushed_stays_while_the_run_grows() {
    let mut written = Written::new(40);
    let mut play = written.open();
    written.go_on(50);
    until(&mut play, "it is live", |play| phase(play) == Phase::Live);
    play.run_ok();
    let button = |play: &mut Play, at, pressed| {
        plots::press(play, at, PointerButton::Primary, Modifiers::NONE, pressed);
    };
    let (from, to) = (plots::at(&play, plots::TITLE, 0.3), plots::at(&play, plots::TITLE, 0.6));
    play.event(Event::PointerMoved(from));
    play.step();
    button(&mut play, from, true);
    play.event(Event::PointerMoved(to));
    play.step();
    let stroke = play.state().choices().stroke.expect("a stroke has begun");
    let shown = |play: &Play| play.state().choices().whole().end;
    let before = shown(&play);
    written.go_on(70);
    until(&mut play, "it has grown", |play| shown(play) > before);
    play.step();
    let grown = play.state().choices().stroke.expect("it goes on");
    assert_eq!(grown.from, stroke.from, "where it began");
    assert!(grown.to > stroke.to, "under the pointer is a later time now");
    button(&mut play, to, false);
    let range = play.state().choices().range().expect("a range");
    assert_eq!((range.start, range.end), (grown.from, grown.to));
    for share in [80, 90, 100] {
        let bytes = play.state().run().file_bytes;
        written.go_on(share);
        until(&mut play, "it has grown", |play| play.state().run().file_bytes > bytes);
        play.step();
        assert_eq!(play.state().choices().range(), Some(range), "at {share} %");
    }
    until(&mut play, "no more to come", |play| phase(play) == Phase::Ended);
    play.run_ok();
    assert_eq!(play.state().choices().range(), Some(range));
    let (run, choices) = (play.state().run(), play.state().choices());
    assert!(run.sent_in(range).len() < run.by_sent().len());
    assert!(reads(&play, &bars::range_words(choices, run)), "what numbers speak of");
}

#[test]
fn a_log_that_is_cut_short_or_replaced_while_it_is_followed_gets_a_screen() {
    let cut = |path: &Path| {
        File::options().write(true).open(path).and_then(|file| file.set_len(500)).expect("cut");
    };
    let replace = |path: &Path| {
        let other = path.with_extension("other");
        fs::write(&other, sample::log(22, 30)).expect("written");
        fs::rename(other, path).expect("renamed");
    };
    let changes: [&dyn Fn(&Path); 2] = [&cut, &replace];
    let found = [
        (Kind::Shrank, "This file became shorter while it was read"),
        (Kind::Replaced, "Another file took this one's place"),
    ];
    for (change, (kind, headline)) in changes.into_iter().zip(found) {
        let written = Written::new(60);
        let mut play = written.open();
        change(&written.path);
        let failed = |play: &Play| match play.state().app().tabs.shown() {
            Some(Tab::Failed(found)) => found.kind == kind,
            _ => false,
        };
        until(&mut play, headline, failed);
        play.run_ok();
        assert!(reads(&play, headline));
        play.get_by_label("Try again").click();
        settle(&mut play);
        if kind == Kind::Replaced {
            assert_eq!(play.state().run().run.requests.len(), 30);
        }
    }
}

#[test]
fn a_run_that_is_followed_looks_as_it_did() {
    let mut written = Written::new(60);
    let mut play = written.open();
    let before = play.state().run().file_bytes;
    written.go_on(80);
    until(&mut play, "it has grown", |play| play.state().run().file_bytes > before);
    play.run_ok();
    let mut results = SnapshotResults::new();
    results.add(compare(&mut play, "live-light"));
    play.get_by_label(following::FOLLOW).click();
    play.run_ok();
    results.add(compare(&mut play, "live-held-light"));
}

/// What stands behind a block that says it is longer than it is will not come.
#[test]
fn a_log_whose_last_block_is_damaged_is_not_waited_for() {
    let mut written = Written::new(100);
    let blocks = records_blocks(&written.log);
    let longest = blocks.iter().max_by_key(|block| block.len()).expect("blocks");
    let shortest = blocks.iter().min_by_key(|block| block.len()).expect("blocks");
    let mut log = written.log[..longest.start + 64].to_vec();
    log.extend_from_slice(&written.log[shortest.clone()]);
    assert!(log.len() < longest.end, "the claimed end is not there");
    fs::write(&written.path, &log).expect("written");
    written.bytes = log.len();
    let play = written.open();
    assert_eq!(phase(&play), Phase::Ended);
    assert_eq!(play.state().run().run.damaged_bytes, 64);
    beginning(&play, Role::Group, "This log is unfinished");
}

/// Where the whole blocks of records are.
fn records_blocks(log: &[u8]) -> Vec<Range<usize>> {
    let mut blocks = Vec::new();
    let mut at = 64;
    while let Some(header) = log.get(at..at + 32) {
        let length = u32::from_le_bytes([header[20], header[21], header[22], header[23]]);
        let end = at + 32 + length as usize;
        if header[8] == 4 && end <= log.len() {
            blocks.push(at..end);
        }
        at = end;
    }
    blocks
}
