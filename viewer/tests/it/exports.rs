//! The sheet under Ctrl+E, and the files it writes, read back.

use std::{
    fs,
    path::{Path, PathBuf},
};

use eframe::egui::{Key, Modifiers, OutputCommand, accesskit::Role};
use egui_kittest::{SnapshotResults, kittest::Queryable as _};
use onbeat_shared::{
    export::{self, Beside, Table, TextFormat},
    log::sample,
    metrics::slo::Goals,
    run::Run,
};
use onbeat_viewer::{
    app::Start,
    output::{PATH_FIELD, order::Form},
};

use parquet::file::reader::{FileReader as _, SerializedFileReader};

use crate::pictures::{self, Software};
use crate::stage::{self, Play, beginning, reads, settle};

/// A run in a folder of its own.
struct Desk {
    folder: tempfile::TempDir,
    run: PathBuf,
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let run = folder.path().join("run.beat");
        fs::write(&run, sample::log(7, 400)).expect("written");
        Self { folder, run }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self) -> Run {
        Run::read(&fs::read(&self.run).expect("there")).expect("a log")
    }

    fn play(&self) -> Play {
        let start = Start { runs: vec![self.run.clone()], inline: true, ..Start::default() };
        let mut play = stage::start(start, Vec::new(), |builder| {
            builder.renderer(Software::default()).with_render_cursor(false)
        });
        settle(&mut play);
        play
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).expect("readable");
        let name = |entry: std::io::Result<fs::DirEntry>| {
            entry.expect("an entry").file_name().to_string_lossy().into_owned()
        };
        let mut names: Vec<_> = entries.map(name).collect();
        names.sort();
        names
    }
}

fn open_sheet(play: &mut Play) {
    play.key_press_modifiers(Modifiers::COMMAND, Key::E);
    play.step();
    play.get_by_label("Export, sheet");
}

/// Frames until the sheet's field says this.
fn proposed(play: &mut Play, path: &Path) {
    let wanted = path.display().to_string();
    wait(play, |play| play.get_by_label(PATH_FIELD).value() == Some(wanted.clone()));
}

fn wait(play: &mut Play, done: impl Fn(&Play) -> bool) {
    for _ in 0..5_000 {
        play.step();
        if done(play) {
            return;
        }
        std::thread::yield_now();
    }
    panic!("it never came to that");
}

fn choose(play: &mut Play, form: Form) {
    play.get_by_label(form.name()).click();
    play.step();
}

/// Presses the button and waits until a file is there.
fn save(play: &mut Play, button: &str, path: &Path) {
    play.get_by_label(button).click();
    let words = format!("Saved {}", path.display());
    wait(play, |play| reads(play, &words));
    assert!(play.query_by_label("Export, sheet").is_none(), "the sheet is gone");
}

fn csv(run: &Run, table: Table) -> Vec<u8> {
    let mut out = Vec::new();
    let goals = Goals::of_run(&run.manifest);
    export::write_text(run, table, TextFormat::Csv, &Beside::goals(&goals), &mut out)
        .expect("memory takes everything");
    out
}

/// Chooses a part of the run with the keyboard.
fn choose_range(play: &mut Play) {
    for _ in 0..4 {
        play.key_press_modifiers(Modifiers::SHIFT, Key::Comma);
    }
    play.key_press(Key::OpenBracket);
    for _ in 0..7 {
        play.key_press_modifiers(Modifiers::SHIFT, Key::Period);
    }
    play.key_press(Key::CloseBracket);
    play.run();
    assert!(play.state().choices().range().is_some());
}

#[test]
fn tables_of_the_whole_run_are_those_of_onbeat_export() {
    let desk = Desk::new();
    let mut play = desk.play();
    for (form, table, name) in [
        (Form::RequestsCsv, Table::Requests, "run-requests.csv"),
        (Form::ChunksCsv, Table::Chunks, "run-chunks.csv"),
    ] {
        open_sheet(&mut play);
        assert!(reads(&play, "Of the whole run"));
        choose(&mut play, form);
        proposed(&mut play, &desk.path(name));
        save(&mut play, "Save", &desk.path(name));
        let written = fs::read(desk.path(name)).expect("there");
        assert!(written == csv(&desk.read(), table), "{name}");
    }
    assert_eq!(desk.names(), ["run-chunks.csv", "run-requests.csv", "run.beat"]);
}

#[test]
fn tables_of_a_range_have_its_requests_and_no_others() {
    let desk = Desk::new();
    let mut play = desk.play();
    choose_range(&mut play);
    let range = play.state().choices().range().expect("chosen");
    let run = desk.read();
    let chosen: Vec<usize> = (0..run.requests.len())
        .filter(|&i| {
            run.requests.sent(i).or(run.requests.due(i)).is_some_and(|time| range.contains(time))
        })
        .collect();
    assert!(chosen.len() > 20 && chosen.len() < 380, "{}", chosen.len());
    for (form, name) in [
        (Form::RequestsCsv, "run-requests.csv"),
        (Form::RequestsParquet, "run-requests.parquet"),
        (Form::ChunksParquet, "run-chunks.parquet"),
    ] {
        open_sheet(&mut play);
        choose(&mut play, form);
        proposed(&mut play, &desk.path(name));
        save(&mut play, "Save", &desk.path(name));
    }
    let text = fs::read_to_string(desk.path("run-requests.csv")).expect("text");
    let numbers: Vec<usize> = text
        .lines()
        .skip(1)
        .map(|line| line.split(',').next().and_then(|n| n.parse().ok()).expect("a number"))
        .collect();
    assert_eq!(numbers, chosen);
    for (name, rows) in [
        ("run-requests.parquet", chosen.len()),
        ("run-chunks.parquet", chosen.iter().map(|&i| run.chunks.count(i)).sum::<usize>()),
    ] {
        assert_eq!(parquet_rows(&desk.path(name)), rows as i64, "{name}");
    }
}

/// How many rows a Parquet file says it has.
fn parquet_rows(path: &Path) -> i64 {
    let file = fs::File::open(path).expect("there");
    let reader = SerializedFileReader::new(file).expect("a Parquet file");
    reader.metadata().file_metadata().num_rows()
}

#[test]
fn a_file_that_is_there_is_replaced_only_after_a_second_word() {
    let desk = Desk::new();
    let mut play = desk.play();
    let mine = desk.path("mine.csv");
    fs::write(&mine, "mine").expect("room");
    open_sheet(&mut play);
    choose(&mut play, Form::RequestsCsv);
    type_path(&mut play, &mine.display().to_string());
    play.get_by_label("Save").click();
    wait(&mut play, |play| reads(play, "mine.csv exists already."));
    assert_eq!(fs::read(&mine).expect("kept"), b"mine");
    save(&mut play, "Replace it", &mine);
    assert!(fs::read(&mine).expect("replaced") == csv(&desk.read(), Table::Requests));
}

fn type_path(play: &mut Play, path: &str) {
    play.get_by_label(PATH_FIELD).focus();
    play.step();
    play.key_press_modifiers(Modifiers::COMMAND, Key::A);
    play.step();
    play.get_by_label(PATH_FIELD).type_text(path);
    play.step();
}

#[test]
fn refusals_are_told_in_the_sheet_and_nothing_is_written() {
    let desk = Desk::new();
    let mut play = desk.play();
    open_sheet(&mut play);
    choose(&mut play, Form::RequestsCsv);
    let before = fs::read(&desk.run).expect("there");
    for (path, words) in [
        (desk.run.clone(), "is a run that is open and is not replaced"),
        (desk.path("none").join("a.csv"), "There is no folder"),
        (desk.folder.path().to_owned(), "is a folder"),
    ] {
        type_path(&mut play, &path.display().to_string());
        play.key_press(Key::Enter);
        wait(&mut play, |play| reads(play, words));
        play.get_by_label("Export, sheet");
    }
    assert_eq!(desk.names(), ["run.beat"]);
    assert_eq!(fs::read(&desk.run).expect("still there"), before);
    play.key_press(Key::Escape);
    play.run_ok();
    assert!(play.query_by_label("Export, sheet").is_none());
}

#[test]
fn the_panel_and_the_window_are_pictured() {
    let desk = Desk::new();
    let mut play = desk.play();
    play.key_press(Key::Num2);
    play.run_ok();
    for (form, name) in [(Form::Panel, "run-latency.png"), (Form::Window, "run-window.png")] {
        open_sheet(&mut play);
        choose(&mut play, form);
        proposed(&mut play, &desk.path(name));
        save(&mut play, "Save", &desk.path(name));
    }
    let size = |name: &str| {
        let file = std::io::BufReader::new(fs::File::open(desk.path(name)).expect("there"));
        let info = png::Decoder::new(file).read_info().expect("a PNG");
        (info.info().width, info.info().height)
    };
    assert_eq!(size("run-window.png"), (1_280, 800));
    let (width, height) = size("run-latency.png");
    assert!(width > 1_800 && height > 1_200, "twice as fine: {width} x {height}");
}

#[test]
fn a_page_is_that_of_onbeat_report() {
    let desk = Desk::new();
    let mut play = desk.play();
    open_sheet(&mut play);
    choose(&mut play, Form::Page);
    proposed(&mut play, &desk.path("run-report.html"));
    save(&mut play, "Save", &desk.path("run-report.html"));
    let run = desk.read();
    let options = onbeat_shared::metrics::ReportOptions {
        slice_ns: export::html::slice_ns(&run),
        ..Default::default()
    };
    let report = onbeat_shared::metrics::report(&run, &options);
    let mut wanted = Vec::new();
    export::html::write(&run, &report, None, &mut wanted).expect("memory takes everything");
    assert!(fs::read(desk.path("run-report.html")).expect("there") == wanted);
}

/// Range and filter together.
#[test]
fn tables_of_a_filter_have_the_requests_that_pass() {
    let desk = Desk::new();
    let mut play = desk.play();
    choose_range(&mut play);
    play.state_mut().choices_mut().type_filter("turn == 0");
    play.run_ok();
    let selection = play.state().choices().selection();
    let run = desk.read();
    let chosen = (0..run.requests.len()).filter(|&i| selection.holds(&run, i)).count();
    assert!(chosen > 3 && chosen < 200, "{chosen}");
    open_sheet(&mut play);
    for (form, name) in
        [(Form::RequestsCsv, "run-requests.csv"), (Form::RequestsParquet, "run-requests.parquet")]
    {
        if play.query_by_label("Export, sheet").is_none() {
            open_sheet(&mut play);
        }
        choose(&mut play, form);
        proposed(&mut play, &desk.path(name));
        save(&mut play, "Save", &desk.path(name));
    }
    let text = fs::read_to_string(desk.path("run-requests.csv")).expect("text");
    assert_eq!(text.lines().count(), 1 + chosen);
    assert_eq!(parquet_rows(&desk.path("run-requests.parquet")), chosen as i64);
}

#[test]
fn a_table_is_copied_for_a_spreadsheet() {
    let desk = Desk::new();
    let mut play = desk.play();
    play.key_press(Key::T);
    play.run_ok();
    play.get_by_label("Requests in flight: copy the table").click();
    let mut copied = String::new();
    for _ in 0..3 {
        play.step();
        for command in &play.output().platform_output.commands {
            if let OutputCommand::CopyText(text) = command {
                copied.clone_from(text);
            }
        }
    }
    let lines: Vec<Vec<&str>> = copied.lines().map(|line| line.split('\t').collect()).collect();
    assert!(lines.len() > 10, "{copied}");
    assert!(lines.iter().all(|line| line.len() == lines[0].len()));
    assert!(lines[0][0].ends_with(" (s)"), "{copied}");
    assert!(lines[1..].iter().all(|line| line[0].parse::<f64>().is_ok()), "{copied}");
    play.get_by_label("Requests in flight: copied the table");
}

#[test]
fn the_keyboard_alone_writes_a_file() {
    let desk = Desk::new();
    let mut play = desk.play();
    open_sheet(&mut play);
    proposed(&mut play, &desk.path("run-overview.png"));
    play.key_press(Key::Enter);
    wait(&mut play, |play| reads(play, "Saved "));
    assert_eq!(desk.names(), ["run-overview.png", "run.beat"]);
    beginning(&play, Role::Alert, "Saved ");
}

#[test]
fn the_sheet_looks_as_it_did() {
    let mut results = SnapshotResults::new();
    for (theme, name) in pictures::THEMES {
        let mut play = pictures::play(theme, &sample::log(7, 300));
        choose_range(&mut play);
        open_sheet(&mut play);
        proposed(&mut play, Path::new("sample-overview.png"));
        results.add(pictures::compare(&mut play, &format!("export-{name}")));
        choose(&mut play, Form::Page);
        type_path(&mut play, "nowhere/a/page.html");
        play.key_press(Key::Enter);
        wait(&mut play, |play| reads(play, "There is no folder"));
        play.run_ok();
        results.add(pictures::compare(&mut play, &format!("export-refused-{name}")));
    }
}
