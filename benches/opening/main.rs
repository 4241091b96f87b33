//! Opening a large log in the viewer: how long until there is something to see, how long until all
//! of it is there, and how much memory that takes.
//!
//! A log of a million requests and thirty million content events is written to a temporary file (or
//! is the file named by `ONBEAT_BIG_LOG`, which is written if it does not exist), and opened by a
//! process of its own: once by the viewer's loading thread alone, once by the whole app, which
//! draws its frames without a display. A picture of the app counts as drawn once nothing on the
//! Overview panel is empty; the first one is of the part that was read until then. It is complete
//! when all of the log has been read and everything on the panel has been worked out from all of
//! it. The file is in the page cache: it was just written, or is read once before. Peak memory is
//! the kernel's high-water mark of the process.
//!
//! `cargo bench -p benches --bench opening -- [--json FILE]` measures; anything else runs small.

use std::io::{Error, Result};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use benches::big_log;
use benches::{Bencher, by_child, memory, share_of};
use eframe::egui::{Context, Pos2, RawInput, Rect, Vec2, vec2};
use onbeat::clock::monotonic_ns;
use onbeat_viewer::app::{Start, ViewerApp};
use onbeat_viewer::load::{Loading, Phase};
use onbeat_viewer::tabs::Tab;
use serde_json::{Value, json};

const NAME: &str = "opening";
/// What the process that opens the log is called with.
const OPEN: &str = "--open";
/// What the process that opens and draws it is called with.
const DRAW: &str = "--draw";
/// The window of a laptop.
const SCREEN: Vec2 = vec2(1_280.0, 800.0);
/// Time from frame to frame.
const FRAME: Duration = Duration::from_micros(16_667);
const ROUNDS: usize = 5;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.as_slice() {
        [child, path] if child == OPEN => open(Path::new(path)),
        [child, path] if child == DRAW => draw(Path::new(path)),
        _ => bench(&Bencher::from_arguments(arguments)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("opening bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn bench(bencher: &Bencher) -> Result<()> {
    if !bencher.wants(NAME) {
        return Ok(());
    }
    let log = big_log::at_hand(bencher)?;
    let rounds = bencher.pick(1, ROUNDS);
    for (way, child) in [("loading", OPEN), ("app", DRAW)] {
        let rounds: Result<Vec<Value>> =
            (0..rounds).map(|_| by_child(&[child.as_ref(), log.path.as_os_str()])).collect();
        bencher.say(&result(bencher, way, &rounds?, log.bytes));
    }
    Ok(())
}

/// One way's rounds as a line of JSON.
fn result(bencher: &Bencher, way: &str, rounds: &[Value], file_bytes: u64) -> Value {
    let numbers = |key: &str| {
        let mut values: Vec<f64> = rounds.iter().filter_map(|round| round[key].as_f64()).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let mut line = json!({
        "bench": NAME,
        "case": format!("{NAME}-{way}"),
        "command": "cargo bench -p benches --bench opening",
        "size": bencher.pick("small", "real"),
        "requests": rounds[0]["requests"],
        "events": rounds[0]["events"],
        "file_bytes": file_bytes,
        "rounds": rounds.len(),
    });
    if bencher.pick(false, true) {
        let peak = numbers("peak_bytes").last().copied();
        for (name, key) in [("first_picture_ms", "first_ms"), ("complete_ms", "complete_ms")] {
            let all = numbers(key);
            line[format!("{name}_median")] = json!(all.get(all.len() / 2));
            line[name] = json!(all);
        }
        if let Some(pictures) = rounds[0].get("pictures") {
            line["pictures"] = pictures.clone();
        }
        line["peak_bytes"] = json!(peak);
        line["peak_of_file"] = json!(share_of(peak, file_bytes));
    }
    line
}

/// Opens a log as the window's loading thread does and says how that went.
fn open(path: &Path) -> Result<()> {
    let (wake, woken) = sync_channel(1);
    let begin = monotonic_ns();
    let since = || (monotonic_ns() - begin) as f64 / 1e6;
    let loading = Loading::start(path.to_owned(), move || {
        let _ = wake.try_send(());
    });
    let (mut first, mut complete, mut pictures) = (None, 0.0, 0);
    let mut last = None;
    loop {
        let ended = loading.phase() == Phase::Ended;
        match loading.poll() {
            Some(Ok(opened)) => {
                complete = since();
                first.get_or_insert(complete);
                pictures += 1;
                last = Some(opened);
            }
            Some(Err(problem)) => return Err(Error::other(problem.found())),
            None if ended => break,
            None => {
                let _ = woken.recv();
            }
        }
    }
    let last = last.ok_or_else(|| Error::other("it ended without a picture"))?;
    let peak = memory::high_water(std::process::id());
    let line = json!({
        "first_ms": first,
        "complete_ms": complete,
        "pictures": pictures,
        "requests": last.run.requests.len(),
        "events": last.run.chunks.len(),
        "peak_bytes": peak,
    });
    println!("{line}");
    Ok(())
}

/// Opens a log in the app, draws frames until all of it is drawn, and says how that went.
fn draw(path: &Path) -> Result<()> {
    let begin = monotonic_ns();
    let since = || (monotonic_ns() - begin) as f64 / 1e6;
    let ctx = Context::default();
    let (wake, woken) = sync_channel(1);
    ctx.set_request_repaint_callback(move |_request| {
        let _ = wake.try_send(());
    });
    let start = Start { runs: vec![path.to_owned()], panel: Some(0), ..Start::default() };
    let mut app = ViewerApp::new(&ctx, start);
    let mut first = None;
    let mut number: u64 = 0;
    let opened = loop {
        let input = RawInput {
            screen_rect: Some(Rect::from_min_size(Pos2::ZERO, SCREEN)),
            time: Some(since() / 1e3),
            ..RawInput::default()
        };
        let mut output = ctx.run_ui(input, |ui| app.show(ui));
        // Nobody has a graphics card to hand them to.
        output.textures_delta.clear();
        let _meshes = ctx.tessellate(output.shapes, output.pixels_per_point);
        number += 1;
        match app.tabs.shown() {
            Some(Tab::Open(open)) if open.derived.is_filled() && number > 1 => {
                first.get_or_insert_with(since);
                if open.phase() == Phase::Ended && open.is_settled() {
                    break Arc::clone(open.derived.subject());
                }
            }
            Some(Tab::Failed(problem)) => return Err(Error::other(problem.found())),
            _ => {}
        }
        let _ = woken.recv_timeout(FRAME);
    };
    let line = json!({
        "first_ms": first,
        "complete_ms": since(),
        "requests": opened.run.requests.len(),
        "events": opened.run.chunks.len(),
        "peak_bytes": memory::high_water(std::process::id()),
    });
    println!("{line}");
    Ok(())
}
