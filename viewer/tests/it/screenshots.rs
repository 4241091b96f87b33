//! `--screenshot` of the real binary, with no display to be had.

use std::{
    collections::HashSet,
    fs,
    io::BufReader,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use onbeat_shared::log::sample;
use onbeat_viewer::panels::PANELS;

struct Desk {
    folder: tempfile::TempDir,
    run: PathBuf,
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let run = folder.path().join("run.beat");
        fs::write(&run, sample::log(21, 200)).expect("written");
        Self { folder, run }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs the viewer with a run, a picture and more.
    fn shoot(&self, run: &Path, picture: &Path, more: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_onbeat-viewer"))
            .arg(run)
            .arg("--screenshot")
            .arg(picture)
            .args(more)
            .env_remove("DISPLAY")
            .env_remove("WAYLAND_DISPLAY")
            .env_remove("WAYLAND_SOCKET")
            .env_remove("XDG_CONFIG_HOME")
            .env("HOME", self.path("home"))
            .output()
            .expect("the viewer starts")
    }

    /// As above, and the picture's bytes.
    fn shot(&self, name: &str, more: &[&str]) -> Vec<u8> {
        let picture = self.path(name);
        let ended = self.shoot(&self.run, &picture, more);
        assert!(ended.status.success(), "{}", words(&ended));
        assert_eq!(words(&ended), "");
        fs::read(picture).expect("a picture was saved")
    }
}

fn words(ended: &Output) -> String {
    String::from_utf8_lossy(&ended.stderr).into_owned()
}

/// Size of a PNG and how many colours it has.
fn measured(path: &Path) -> ((u32, u32), usize) {
    let file = BufReader::new(fs::File::open(path).expect("a picture was saved"));
    let mut reader = png::Decoder::new(file).read_info().expect("a PNG");
    let mut bytes = vec![0; reader.output_buffer_size().expect("a small picture")];
    let info = reader.next_frame(&mut bytes).expect("its pixels");
    let colours: HashSet<&[u8]> = bytes.chunks_exact(3).collect();
    ((info.width, info.height), colours.len())
}

/// A picture of the whole run must not pass for one of the range that was asked for.
#[test]
fn a_range_outside_the_run_is_no_success() {
    let desk = Desk::new();
    let ended = desk.shoot(&desk.run, &desk.path("a.png"), &["--range", "9000..9001"]);
    assert!(!ended.status.success());
    let words = words(&ended);
    assert!(words.contains("nothing is in --range 9000..9001: the run goes from"), "{words}");
}

#[test]
fn a_picture_needs_no_display_and_is_the_same_every_time() {
    let desk = Desk::new();
    let first = desk.shot("a.png", &["--panel", "latency"]);
    let (size, colours) = measured(&desk.path("a.png"));
    assert_eq!(size, (1_280, 800));
    assert!(colours > 50, "an empty window has a handful of colours: {colours}");
    assert_eq!(first, desk.shot("b.png", &["--panel", "Latency", "--theme", "light"]));
    assert_ne!(first, desk.shot("b.png", &["--panel", "overview"]), "replaced by another panel");
    assert_ne!(first, desk.shot("c.png", &["--panel", "latency", "--theme", "dark"]));
    assert_ne!(first, desk.shot("c.png", &["--panel", "latency", "--range", "1..2"]));
    let filtered = desk.shot("c.png", &["--panel", "latency", "--filter", "turn == 0"]);
    assert_ne!(first, filtered);
    let names: HashSet<_> = fs::read_dir(desk.folder.path())
        .expect("readable")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    let wanted = ["run.beat", "a.png", "b.png", "c.png"].map(Into::into);
    assert_eq!(names, HashSet::from(wanted), "and nothing else was written, no settings either");
}

#[test]
fn a_picture_may_be_finer_and_larger() {
    let desk = Desk::new();
    desk.shot("a.png", &["--size", "900x600", "--scale", "2"]);
    assert_eq!(measured(&desk.path("a.png")).0, (1_800, 1_200));
    let ended =
        desk.shoot(&desk.run, &desk.path("large.png"), &["--size", "8192x8192", "--scale", "4"]);
    assert_eq!(ended.status.code(), Some(1));
    assert!(words(&ended).contains("too large"), "{}", words(&ended));
    assert!(!desk.path("large.png").exists());
}

#[test]
fn every_panel_gets_a_file_of_its_own() {
    let desk = Desk::new();
    let ended = desk.shoot(&desk.run, &desk.path("out.png"), &["--panel", "all"]);
    assert!(ended.status.success(), "{}", words(&ended));
    let mut pictures = HashSet::new();
    for panel in PANELS {
        let path = desk.path(&format!("out-{}.png", panel.name.to_lowercase()));
        assert_eq!(measured(&path).0, (1_280, 800), "{}", panel.name);
        pictures.insert(fs::read(path).expect("there"));
    }
    assert_eq!(pictures.len(), PANELS.len(), "each shows something else");
    assert!(!desk.path("out.png").exists());
}

#[test]
fn a_file_that_is_no_log_is_pictured_and_told() {
    let desk = Desk::new();
    let empty = desk.path("empty.beat");
    fs::write(&empty, []).expect("written");
    let ended = desk.shoot(&empty, &desk.path("a.png"), &[]);
    assert_eq!(ended.status.code(), Some(1));
    let told = words(&ended);
    assert!(told.contains("empty.beat: This file is empty."), "{told}");
    assert_eq!(measured(&desk.path("a.png")).0, (1_280, 800));
}

#[test]
fn what_cannot_be_written_is_said_and_a_run_is_never_replaced() {
    let desk = Desk::new();
    let before = fs::read(&desk.run).expect("there");
    let over = desk.shoot(&desk.run, &desk.run, &[]);
    assert_eq!(over.status.code(), Some(2));
    let filter = desk.shoot(&desk.run, &desk.path("a.png"), &["--filter", "ttft >"]);
    assert_eq!(filter.status.code(), Some(2));
    assert!(!desk.path("a.png").exists());
    assert!(words(&over).contains("is a run that is to be shown"), "{}", words(&over));
    assert_eq!(fs::read(&desk.run).expect("still there"), before);
    let nowhere = desk.shoot(&desk.run, &desk.path("none/a.png"), &[]);
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(words(&nowhere).contains("There is no folder"), "{}", words(&nowhere));
    let folder = desk.shoot(&desk.run, desk.folder.path(), &[]);
    assert_eq!(folder.status.code(), Some(1));
    assert!(words(&folder).contains("is a folder"), "{}", words(&folder));
}

#[cfg(unix)]
#[test]
fn a_limit_on_the_size_of_files_is_told_and_leaves_nothing() {
    let desk = Desk::new();
    let viewer = env!("CARGO_BIN_EXE_onbeat-viewer");
    let line = "ulimit -f 1; exec \"$0\" \"$1\" --screenshot \"$2\"";
    let picture = desk.path("limited.png");
    let ended = Command::new("sh").args(["-c", line, viewer]).arg(&desk.run).arg(&picture).output();
    let ended = ended.expect("there is a shell");
    assert_eq!(ended.status.code(), Some(1), "{}", words(&ended));
    assert!(words(&ended).contains("limited.png was not written"), "{}", words(&ended));
    let left = fs::read_dir(desk.folder.path()).expect("a folder");
    let left: Vec<_> = left.map(|entry| entry.expect("an entry").file_name()).collect();
    assert_eq!(left, ["run.beat"]);
}

#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_printed_is_a_failure_and_no_panic() {
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").expect("a full device");
    let viewer = || Command::new(env!("CARGO_BIN_EXE_onbeat-viewer"));
    let ended = viewer().arg("--man").stdout(full()).output().expect("it starts");
    assert_eq!(ended.status.code(), Some(1));
    assert!(words(&ended).contains("could not print"), "{}", words(&ended));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let nothing = ["nothing.beat", "--screenshot", "nothing.png"];
    let ended = viewer().args(nothing).current_dir(&folder).stderr(full()).status();
    let ended = ended.expect("it starts");
    assert_eq!(ended.code(), Some(1));
}
