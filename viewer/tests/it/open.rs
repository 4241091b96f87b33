//! Opening: good logs, torn ones, and everything that is no log.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use eframe::egui::{DroppedFile, Key, Modifiers, accesskit::Role};
use egui_kittest::kittest::Queryable as _;
use onbeat_shared::log::sample;
use onbeat_viewer::{app::Start, dialog, load, problem::Kind, tabs::Tab};

use crate::stage::{self, Play, beginning, reads, settle};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn written(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, bytes).expect("written");
    path
}

fn opening(paths: Vec<PathBuf>) -> Play {
    let mut play = stage::start(
        Start { runs: paths, inline: true, ..Start::default() },
        Vec::new(),
        |builder| builder,
    );
    settle(&mut play);
    play
}

/// A log whose header says that a later version must read it.
fn newer() -> Vec<u8> {
    let mut bytes = sample::log(1, 20);
    bytes[8] = 99;
    bytes[10] = 98;
    let checksum = crc(&bytes[..60]);
    bytes[60..64].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// CRC-32 as the format's page describes it.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, &byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| {
            if sum & 1 == 1 { (sum >> 1) ^ 0xEDB8_8320 } else { sum >> 1 }
        })
    })
}

#[test]
fn nothing_open_says_how_to_open_something() {
    let play = opening(Vec::new());
    play.get_by_label("Open a run");
    play.get_by_label("Choose a file…").click();
    let mut play = play;
    settle(&mut play);
    assert!(play.get_by_label(dialog::FIELD).is_focused());
}

#[test]
fn a_file_given_as_argument_opens_in_the_background() {
    let folder = folder();
    let path = written(folder.path(), "run.beat", &sample::log(3, 300));
    let play = opening(vec![path]);
    beginning(&play, Role::Group, "Verdict: The schedule held");
    assert_eq!(play.state().run().run.requests.len(), 300);
    assert!(play.query_by_label("This log is unfinished").is_none());
}

/// Numbers of the whole run must not pass for those of the range that was asked for.
#[test]
fn a_range_outside_the_run_is_said_and_one_inside_is_chosen() {
    let folder = folder();
    let path = written(folder.path(), "run.beat", &sample::log(3, 300));
    let opened = |range| {
        let start = Start { runs: vec![path.clone()], range, inline: true, ..Start::default() };
        let mut play = stage::start(start, Vec::new(), |builder| builder);
        settle(&mut play);
        play
    };
    let mut play = opened(Some((9_000.0, f64::INFINITY)));
    let words = "run.beat: nothing is in --range 9000..: the run goes from";
    assert!(reads(&play, words));
    play.get_by_label("Close the notice").click();
    play.run_ok();
    assert!(!reads(&play, "nothing is in --range"), "once is enough");
    assert!(reads(&opened(Some((f64::NEG_INFINITY, -7.0))), "nothing is in --range ..-7: the run"));
    for range in [None, Some((0.5, 9_000.0))] {
        let play = opened(range);
        assert!(!reads(&play, "nothing is in --range"));
        assert_eq!(play.state().choices().range().is_some(), range.is_some());
    }
}

#[test]
fn several_files_can_be_open_and_one_is_shown() {
    let folder = folder();
    let paths = (1..=3)
        .map(|i| written(folder.path(), &format!("{i}.beat"), &sample::log(i, 30)))
        .collect();
    let mut play = opening(paths);
    assert_eq!(play.state().app().tabs.all().len(), 3);
    assert_eq!(play.state().run().name(), "1.beat");
    play.key_press_modifiers(Modifiers::CTRL, Key::Tab);
    play.run();
    assert_eq!(play.state().run().name(), "2.beat");
    play.key_press_modifiers(Modifiers::COMMAND, Key::W);
    play.run();
    assert_eq!(play.state().app().tabs.all().len(), 2);
}

#[test]
fn a_typed_path_opens() {
    let folder = folder();
    let path = written(folder.path(), "typed.beat", &sample::log(4, 40));
    let mut play = opening(Vec::new());
    play.key_press_modifiers(Modifiers::COMMAND, Key::O);
    settle(&mut play);
    play.get_by_label(dialog::FIELD).type_text(&path.display().to_string());
    play.run_ok();
    play.key_press(Key::Enter);
    play.step();
    settle(&mut play);
    assert_eq!(play.state().run().name(), "typed.beat");
}

#[derive(Debug)]
struct Dropped(PathBuf);

impl DroppedFile for Dropped {
    fn path(&self) -> &Path {
        &self.0
    }

    fn bytes(&self) -> Result<Vec<u8>, String> {
        fs::read(&self.0).map_err(|error| error.to_string())
    }
}

#[test]
fn a_dropped_file_opens_and_a_second_drop_shows_it_again() {
    let folder = folder();
    let path = written(folder.path(), "dropped.beat", &sample::log(5, 50));
    let mut play = opening(Vec::new());
    for _ in 0..2 {
        play.input_mut().dropped_files.push(Arc::new(Dropped(path.clone())));
        settle(&mut play);
        assert_eq!(play.state().run().name(), "dropped.beat");
    }
    assert_eq!(play.state().app().tabs.all().len(), 1);
}

#[test]
fn what_is_no_log_gets_a_screen_and_the_window_stays_of_use() {
    let folder = folder();
    let inside = folder.path().join("inside");
    fs::create_dir(&inside).expect("made");
    let good = written(&inside, "good.beat", &sample::log(6, 60));
    let cases = [
        (written(folder.path(), "empty.beat", b""), "This file is empty"),
        (written(folder.path(), "short.beat", b"\x89BEAT\r\n"), "This log ends before"),
        (written(folder.path(), "trace.beat", b"{\"t\": 1}"), "This is not an Onbeat run log"),
        (written(folder.path(), "newer.beat", &newer()), "A newer Onbeat wrote this log"),
        (folder.path().join("missing.beat"), "There is no such file"),
        (inside.clone(), "This is a folder, not a run log"),
    ];
    for (path, headline) in cases {
        let mut play = opening(vec![path.clone()]);
        assert!(reads(&play, headline), "{headline}");
        assert!(reads(&play, &path.display().to_string()), "the path is named");
        play.get_by_label("Try again").click();
        settle(&mut play);
        assert!(reads(&play, headline), "still the same");
        if path == inside {
            play.get_by_label("Open good.beat").click();
            settle(&mut play);
            assert_eq!(play.state().run().path, good);
        } else {
            play.get_by_label("Close").click();
            play.run();
            play.get_by_label("Open a run");
        }
    }
}

#[test]
fn a_newer_log_says_which_version_it_needs() {
    let folder = folder();
    let play = opening(vec![written(folder.path(), "newer.beat", &newer())]);
    assert!(reads(&play, "Its format is version 99 and needs a reader of version 98 or later."));
}

#[test]
fn a_log_torn_anywhere_shows_what_can_be_read_or_says_why_not() {
    let folder = folder();
    let whole = sample::log(11, 120);
    let mut opened = 0;
    for step in 0..150 {
        let bytes = &whole[..whole.len() * step / 150];
        let path = written(folder.path(), "torn.beat", bytes);
        match load::open(&path, &|_share| true) {
            Ok(run) => {
                opened += 1;
                assert!(run.incomplete.is_some(), "{step}");
            }
            Err(problem) => assert!(
                matches!(problem.kind, Kind::Empty | Kind::Short { .. } | Kind::Unreadable(_)),
                "{step}: {problem:?}"
            ),
        }
    }
    assert!(opened > 100, "most of the file is readable: {opened}");
}

#[test]
fn a_torn_log_is_drawn_under_a_banner_in_every_panel() {
    let whole = sample::log(12, 200);
    for share in [12, 25, 40, 70, 99] {
        let bytes = &whole[..whole.len() * share / 100];
        let mut play = stage::with(vec![stage::of_bytes(bytes, "torn.beat")]);
        for key in [Key::Num1, Key::Num2] {
            play.key_press(key);
            play.run();
            beginning(&play, Role::Group, "This log is unfinished");
        }
    }
}

#[test]
fn opening_can_be_stopped() {
    let folder = folder();
    let path = written(folder.path(), "run.beat", &sample::log(13, 100));
    let problem = load::open(&path, &|_share| false).expect_err("it was stopped");
    assert_eq!(problem.kind, Kind::Cancelled);
    let start = Start { runs: vec![path], inline: true, ..Start::default() };
    let mut play = stage::start(start, Vec::new(), |builder| builder);
    // The thread may have finished by now; the wish to stop counts all the same.
    match play.state().app().tabs.shown() {
        Some(Tab::Loading(loading)) => loading.cancel(),
        _ => return,
    }
    settle(&mut play);
    play.get_by_label("Open a run");
}

#[test]
fn flipped_bytes_never_crash() {
    let folder = folder();
    let whole = sample::log(14, 60);
    for step in 0..200_usize {
        let mut bytes = whole.clone();
        let place = (step * 7_919) % bytes.len();
        bytes[place] ^= 1 << (step % 8);
        let path = written(folder.path(), "flipped.beat", &bytes);
        if let Ok(run) = load::open(&path, &|_share| true) {
            assert!(run.whole().span() > 0);
        }
    }
}
