//! `onbeat-viewer`: arguments in, a window or a picture out.
//!
//! Everything it does is in the library; this file opens the window and turns its end into an exit
//! code. Words about what went wrong go to stderr.

use std::{io::Write as _, process::ExitCode, sync::Arc};

use clap::Parser;
use eframe::egui::{ViewportBuilder, vec2};
use onbeat_shared::foreign::printable;
use onbeat_viewer::{
    app::{Start, ViewerApp},
    arguments::{Arguments, Size},
    icon, platform, reference, screenshot,
};

fn main() -> ExitCode {
    platform::take_limits_as_errors();
    let arguments = Arguments::parse();
    if let Some(text) = printed(&arguments) {
        let mut out = std::io::stdout().lock();
        return match out.write_all(&text).and_then(|()| out.flush()) {
            // Who reads the other end may stop early; that is no failure of ours.
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                say(&format!("could not print: {error}"));
                ExitCode::FAILURE
            }
            _ => ExitCode::SUCCESS,
        };
    }
    if let Err(words) = arguments.check() {
        say(&words);
        return ExitCode::from(2);
    }
    if let Some(picture) = arguments.screenshot.clone() {
        return match screenshot::run(arguments, &picture) {
            Ok(()) => ExitCode::SUCCESS,
            Err(words) => {
                say(&words);
                ExitCode::FAILURE
            }
        };
    }
    let options =
        eframe::NativeOptions { viewport: viewport(arguments.size), ..Default::default() };
    let start = Start::from_arguments(arguments);
    let ran = eframe::run_native(
        "onbeat-viewer",
        options,
        Box::new(|creation| Ok(Box::new(ViewerApp::new(&creation.egui_ctx, start)))),
    );
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!(
                "no window could be opened: {}\nThe viewer needs a display with OpenGL 2.1 or \
                 later; without one, use `onbeat-viewer RUN.beat --screenshot OUT.png` or \
                 `onbeat report RUN.beat`.",
                reason(&error.to_string())
            ));
            ExitCode::FAILURE
        }
    }
}

/// What is printed instead of a window being opened.
fn printed(arguments: &Arguments) -> Option<Vec<u8>> {
    if arguments.man {
        return Some(reference::man());
    }
    arguments.completions.map(reference::completions)
}

fn viewport(size: Size) -> ViewportBuilder {
    let builder = icon::of_window().map_or_else(ViewportBuilder::default, |icon| {
        ViewportBuilder::default().with_icon(Arc::new(icon))
    });
    builder
        .with_title("Onbeat")
        .with_app_id("onbeat-viewer")
        .with_inner_size(vec2(f32::from(size.width), f32::from(size.height)))
        .with_min_inner_size(vec2(480.0, 360.0))
        .with_drag_and_drop(true)
}

/// The window library's words without the place in its source that it puts before them.
fn reason(words: &str) -> &str {
    match words.split_once("os error at ").and_then(|(_, rest)| rest.split_once(": ")) {
        Some((_place, reason)) => reason.trim_end_matches('.'),
        None => words,
    }
}

fn say(words: &str) {
    // Whoever closed stderr does not want to know.
    let _unread = writeln!(std::io::stderr(), "onbeat-viewer: {}", printable(words));
}
