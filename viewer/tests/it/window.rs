//! The real binary in a real window: an X server without a screen (Xvfb), software OpenGL, and the
//! picture it saves. Where there is no Xvfb the tests say so and pass.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, Command, Output, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use onbeat_shared::log::sample;

/// Far longer than the slowest machine needs; only a viewer that hangs takes it.
const PATIENCE: Duration = Duration::from_secs(180);

/// An X server of our own, ended with the test.
struct Display {
    server: Child,
    name: String,
}

impl Display {
    /// Starts Xvfb on a free display; `None`, with a line on stderr, where there is none.
    fn start() -> Option<Self> {
        let started = Command::new("Xvfb")
            .args(["-displayfd", "1", "-screen", "0", "1280x800x24", "-nolisten", "tcp"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut server) = started else {
            // The test harness captures `println!`, and a skipped test should be seen.
            let line = "skipped: no Xvfb here (Debian: xvfb), so no window was opened";
            writeln!(std::io::stderr(), "{line}").expect("stderr is open");
            return None;
        };
        let mut number = String::new();
        let stdout = server.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut number).expect("Xvfb names its display");
        Some(Self { server, name: format!(":{}", number.trim()) })
    }

    fn viewer(&self, home: &Path, arguments: &[&str]) -> Output {
        let child = Command::new(env!("CARGO_BIN_EXE_onbeat-viewer"))
            .args(arguments)
            .env("DISPLAY", &self.name)
            .env("HOME", home)
            .env("XDG_RUNTIME_DIR", home)
            .env("LIBGL_ALWAYS_SOFTWARE", "1")
            .env_remove("WAYLAND_DISPLAY")
            .stderr(Stdio::piped())
            .spawn()
            .expect("the viewer starts");
        let (sender, receiver) = mpsc::sync_channel(1);
        thread::Builder::new()
            .name("viewer-wait".to_owned())
            .spawn(move || sender.send(child.wait_with_output()))
            .expect("a thread");
        let ended = receiver.recv_timeout(PATIENCE).expect("the viewer ends by itself");
        ended.expect("the viewer was waited for")
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Size of a PNG and how many colours it has.
fn measured(path: &Path) -> ((u32, u32), usize) {
    let file = BufReader::new(fs::File::open(path).expect("a picture was saved"));
    let mut reader = png::Decoder::new(file).read_info().expect("a PNG");
    let mut bytes = vec![0; reader.output_buffer_size().expect("a small picture")];
    let info = reader.next_frame(&mut bytes).expect("its pixels");
    let colours: std::collections::HashSet<&[u8]> = bytes.chunks_exact(3).collect();
    ((info.width, info.height), colours.len())
}

#[test]
fn the_real_binary_draws_a_run_and_saves_its_picture() {
    let Some(display) = Display::start() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = folder.path().join("run.beat");
    fs::write(&run, sample::log(21, 200)).expect("written");
    let picture = folder.path().join("picture.png");
    for panel in ["overview", "latency"] {
        let arguments = [
            run.to_str().expect("a plain path"),
            "--panel",
            panel,
            "--theme",
            "light",
            "--size",
            "1000x700",
            "--screenshot",
            picture.to_str().expect("a plain path"),
        ];
        let ended = display.viewer(folder.path(), &arguments);
        let words = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(ended.status.success(), "{words}");
        let (size, colours) = measured(&picture);
        assert_eq!(size, (1_000, 700));
        assert!(colours > 50, "an empty window has a handful of colours: {colours}");
        fs::remove_file(&picture).expect("removed");
    }
}

#[test]
fn a_file_that_is_no_log_still_gets_its_window() {
    let Some(display) = Display::start() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = folder.path().join("empty.beat");
    fs::write(&run, []).expect("written");
    let picture = folder.path().join("picture.png");
    let arguments =
        [run.to_str().expect("plain"), "--screenshot", picture.to_str().expect("plain")];
    let ended = display.viewer(folder.path(), &arguments);
    assert!(ended.status.success());
    assert_eq!(measured(&picture).0, (1_280, 800));
}

#[test]
fn without_a_display_the_viewer_says_so() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let display = Command::new(env!("CARGO_BIN_EXE_onbeat-viewer"))
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .env_remove("WAYLAND_SOCKET")
        .env("HOME", folder.path())
        .output()
        .expect("the viewer starts");
    assert_eq!(display.status.code(), Some(1));
    let words = String::from_utf8_lossy(&display.stderr).into_owned();
    assert!(words.contains("no window could be opened"), "{words}");
    assert!(words.contains("onbeat report"), "{words}");
}
