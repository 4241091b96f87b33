//! The real binary in a real window: an X server without a screen (Xvfb), software OpenGL, and what
//! then stands in the server's memory. Where there is no Xvfb the test says so and passes.

use std::{
    collections::HashSet,
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::Duration,
};

use onbeat_shared::log::sample;

/// Looks at the screen, a tenth of a second apart: far more than the slowest machine needs; only a
/// viewer that hangs takes them all.
const LOOKS: u32 = 1_800;
/// Colours of a window with a run in it; an empty one has a handful.
const COLOURS: usize = 50;

/// An X server of our own, ended with the test.
struct Display {
    server: Child,
    name: String,
}

/// The viewer, ended with the test.
struct Viewer(Child);

impl Display {
    /// Starts Xvfb on a free display, its screen in a file of this folder; `None`, with a line on
    /// stderr, where there is none.
    fn start(folder: &Path) -> Option<Self> {
        let started = Command::new("Xvfb")
            .args(["-displayfd", "1", "-screen", "0", "1280x800x24", "-nolisten", "tcp", "-fbdir"])
            .arg(folder)
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

    fn viewer(&self, home: &Path, arguments: &[&str]) -> Viewer {
        let child = Command::new(env!("CARGO_BIN_EXE_onbeat-viewer"))
            .args(arguments)
            .env("DISPLAY", &self.name)
            .env("HOME", home)
            .env("XDG_RUNTIME_DIR", home)
            .env("LIBGL_ALWAYS_SOFTWARE", "1")
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("WAYLAND_DISPLAY")
            .spawn();
        Viewer(child.expect("the viewer starts"))
    }
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

impl Drop for Display {
    fn drop(&mut self) {
        end(&mut self.server);
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        end(&mut self.0);
    }
}

/// How many colours are on the screen, in the server's own file: a header of big-endian words (xwd,
/// as `XWDFile.h` has it), a table of colours, and the pixels.
fn colours(screen: &Path) -> Option<usize> {
    let bytes = fs::read(screen).ok()?;
    let word = |place: usize| {
        let word = bytes.get(4 * place..4 * place + 4)?;
        Some(u32::from_be_bytes(word.try_into().ok()?) as usize)
    };
    let (header, table) = (word(0)?, word(19)?);
    let pixels = bytes.get(header + 12 * table..)?;
    Some(pixels.chunks_exact(4).map(|pixel| &pixel[..3]).collect::<HashSet<_>>().len())
}

#[test]
fn the_real_binary_draws_a_run_in_a_window() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some(display) = Display::start(folder.path()) else { return };
    let run = folder.path().join("run.beat");
    fs::write(&run, sample::log(21, 200)).expect("written");
    let run = run.to_str().expect("a plain path");
    let arguments = [run, "--panel", "latency", "--theme", "light", "--size", "1000x700"];
    let mut viewer = display.viewer(folder.path(), &arguments);
    let screen = folder.path().join("Xvfb_screen0");
    // Nothing is ever sent: receiving is how to wait.
    let (_sender, pause) = mpsc::sync_channel::<()>(0);
    for _ in 0..LOOKS {
        if colours(&screen).is_some_and(|colours| colours > COLOURS) {
            return;
        }
        let ended = viewer.0.try_wait().expect("the viewer can be asked");
        assert!(ended.is_none(), "the viewer ended by itself: {ended:?}");
        let _ = pause.recv_timeout(Duration::from_millis(100));
    }
    panic!("nothing was drawn: {:?} colours", colours(&screen));
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
    assert!(words.contains("--screenshot") && words.contains("onbeat report"), "{words}");
}
