//! How long the viewer needs for a frame while a large log is open and somebody works with it.
//!
//! The app is driven without a display: its own code draws every frame, and egui tessellates it, as
//! before a graphics card gets it. In each panel the pointer moves over the page, the wheel zooms
//! and scrolls, a drag brushes, and keys pan, zoom and move the cursor, one thing a frame at 60
//! frames a second; what a frame asks for is worked out by the viewer's own threads meanwhile. A
//! frame's time is that of drawing and tessellating it. The log is that of `opening`
//! (`ONBEAT_BIG_LOG` names a file to keep it in). Peak memory is the kernel's high-water mark of a
//! process that has shown every panel.
//!
//! `cargo bench -p benches --bench frames -- [--json FILE]` measures; anything else runs small.

use std::io::{Error, Result};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use benches::big_log;
use benches::{Bencher, by_child, memory, share_of};
use eframe::egui::{
    Context, Event, Key, Modifiers, MouseWheelSource, MouseWheelUnit, PointerButton, Pos2,
    RawInput, Rect, TouchPhase, Vec2, pos2, vec2,
};
use onbeat::clock::monotonic_ns;
use onbeat_viewer::app::{Start, ViewerApp};
use onbeat_viewer::panels::PANELS;
use serde_json::json;

const NAME: &str = "frames";
/// What the process that shows the log is called with.
const CHILD: &str = "--show";
/// The window of a laptop.
const SCREEN: Vec2 = vec2(1_280.0, 800.0);
/// Time from frame to frame.
const FRAME: Duration = Duration::from_micros(16_667);
/// Frames of each panel that are measured, at real size.
const FRAMES: usize = 240;
/// The longest wait for a panel's first complete picture, in frames.
const PATIENCE: usize = 3_600;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.as_slice() {
        [child, path, frames] if child == CHILD => show(Path::new(path), frames),
        _ => bench(&Bencher::from_arguments(arguments)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("frames bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn bench(bencher: &Bencher) -> Result<()> {
    if !bencher.wants(NAME) {
        return Ok(());
    }
    let log = big_log::at_hand(bencher)?;
    let frames = bencher.pick(8, FRAMES).to_string();
    let shown = by_child(&[CHILD.as_ref(), log.path.as_os_str(), frames.as_ref()])?;
    let mut line = json!({
        "bench": NAME,
        "command": "cargo bench -p benches --bench frames",
        "size": bencher.pick("small", "real"),
        "file_bytes": log.bytes,
        "frames": shown["frames"],
        "panels": shown["panels"].as_array().map(Vec::len),
    });
    if bencher.pick(false, true) {
        for key in ["median_ms", "p99_ms", "worst_ms", "each_panel", "peak_bytes"] {
            line[key] = shown[key].clone();
        }
        line["peak_of_file"] = json!(share_of(shown["peak_bytes"].as_f64(), log.bytes));
    }
    bencher.say(&line);
    Ok(())
}

/// Shows a log panel by panel and prints what its frames took.
fn show(path: &Path, frames: &str) -> Result<()> {
    let frames: usize = frames.parse().map_err(Error::other)?;
    let mut window = Window::open(path);
    window.settle()?;
    let mut panels = Vec::new();
    let mut all = Vec::new();
    for (place, panel) in PANELS.iter().enumerate() {
        window.choose(place);
        window.settle()?;
        let mut times = window.work(frames);
        all.extend_from_slice(&times);
        let (median, p99, worst) = figures(&mut times);
        panels.push(json!({
            "panel": panel.name,
            "median_ms": median,
            "p99_ms": p99,
            "worst_ms": worst,
        }));
        window.calm();
    }
    let count = all.len();
    let (median, p99, worst) = figures(&mut all);
    let line = json!({
        "frames": count,
        "panels": PANELS.iter().map(|panel| panel.name).collect::<Vec<_>>(),
        "median_ms": median,
        "p99_ms": p99,
        "worst_ms": worst,
        "each_panel": panels,
        "peak_bytes": memory::high_water(std::process::id()),
    });
    println!("{line}");
    Ok(())
}

/// Waits for the next frame's time, as a screen makes a window do.
fn pause(time: Duration) {
    #[expect(clippy::disallowed_methods, reason = "stands in for the screen's own rhythm")]
    std::thread::sleep(time);
}

/// Median, 99th percentile and largest of times, in milliseconds to the microsecond.
fn figures(times: &mut [i64]) -> (f64, f64, f64) {
    times.sort_unstable();
    let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)];
    let millis = |nanos: i64| (nanos as f64 / 1e3).round() / 1e3;
    (millis(at(50)), millis(at(99)), millis(at(100)))
}

/// The app and the screen it is drawn on.
struct Window {
    ctx: Context,
    app: ViewerApp,
    events: Vec<Event>,
    frame: usize,
}

impl Window {
    fn open(path: &Path) -> Self {
        let ctx = Context::default();
        let start = Start { runs: vec![path.to_owned()], panel: Some(0), ..Start::default() };
        let app = ViewerApp::new(&ctx, start);
        Self { ctx, app, events: Vec::new(), frame: 0 }
    }

    /// Draws a frame and gives the time it took.
    fn draw(&mut self) -> i64 {
        let input = RawInput {
            screen_rect: Some(Rect::from_min_size(Pos2::ZERO, SCREEN)),
            time: Some(self.frame as f64 * FRAME.as_secs_f64()),
            events: std::mem::take(&mut self.events),
            focused: true,
            ..RawInput::default()
        };
        self.frame += 1;
        let begin = monotonic_ns();
        let mut output = self.ctx.run_ui(input, |ui| self.app.show(ui));
        let drawn = self.ctx.tessellate(output.shapes, output.pixels_per_point);
        let took = monotonic_ns() - begin;
        // Nobody has a graphics card to hand them to.
        output.textures_delta.clear();
        assert!(!drawn.is_empty(), "a frame shows something");
        took
    }

    /// Draws until the run is open and all that is shown has been worked out.
    fn settle(&mut self) -> Result<()> {
        let mut settled = 0;
        for _ in 0..PATIENCE {
            self.draw();
            settled = if self.app.tabs.is_settled() { settled + 1 } else { 0 };
            if settled == 3 {
                return Ok(());
            }
            pause(FRAME);
        }
        Err(Error::other("the panel was not complete after a minute"))
    }

    fn key(&mut self, key: Key) {
        for pressed in [true, false] {
            let (physical_key, repeat, modifiers) = (None, false, Modifiers::NONE);
            self.events.push(Event::Key { key, physical_key, pressed, repeat, modifiers });
        }
    }

    fn choose(&mut self, panel: usize) {
        let keys = [
            Key::Num1,
            Key::Num2,
            Key::Num3,
            Key::Num4,
            Key::Num5,
            Key::Num6,
            Key::Num7,
            Key::Num8,
            Key::Num9,
            Key::Num0,
            Key::Minus,
            Key::Equals,
        ];
        self.key(keys[panel]);
        self.draw();
    }

    /// Nothing chosen, nothing zoomed, for the next panel.
    fn calm(&mut self) {
        for _ in 0..4 {
            self.key(Key::Escape);
            self.draw();
        }
    }

    /// Works with the shown panel for so many frames and gives the time of each.
    fn work(&mut self, frames: usize) -> Vec<i64> {
        let mut times = Vec::with_capacity(frames);
        for step in 0..frames {
            self.act(step);
            let took = self.draw();
            times.push(took);
            let left = FRAME.saturating_sub(Duration::from_nanos(took.unsigned_abs()));
            pause(left);
        }
        times
    }

    /// One thing that somebody does, depending on the frame.
    fn act(&mut self, step: usize) {
        let part = (step % 60) as f32 / 60.0;
        let place = pos2(340.0 + 600.0 * part, 300.0 + 220.0 * (part * 6.0).sin().abs());
        match step / 20 % 6 {
            0 => self.events.push(Event::PointerMoved(place)),
            1 => self.wheel(place, 30.0),
            2 => self.brush(place, step % 20),
            3 => self.wheel(place, -30.0),
            4 => self.key(if step.is_multiple_of(2) { Key::ArrowRight } else { Key::Period }),
            _ => self.key(if step.is_multiple_of(2) { Key::Plus } else { Key::ArrowDown }),
        }
    }

    fn wheel(&mut self, place: Pos2, points: f32) {
        self.events.push(Event::PointerMoved(place));
        self.events.push(Event::MouseWheel {
            unit: MouseWheelUnit::Point,
            delta: vec2(0.0, points),
            phase: TouchPhase::Move,
            source: MouseWheelSource::Wheel,
            modifiers: Modifiers::NONE,
        });
    }

    fn brush(&mut self, place: Pos2, step: usize) {
        self.events.push(Event::PointerMoved(place));
        if step == 0 || step == 19 {
            self.events.push(Event::PointerButton {
                pos: place,
                button: PointerButton::Primary,
                pressed: step == 0,
                modifiers: Modifiers::NONE,
            });
        }
    }
}
