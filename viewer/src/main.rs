//! `onbeat-viewer`: arguments in, a window out.
//!
//! Everything it does is in the library; this file opens the window and turns its end into an exit
//! code. Words about what went wrong go to stderr.

use std::process::ExitCode;

use clap::Parser;
use eframe::egui::{ViewportBuilder, vec2};
use onbeat_shared::foreign::printable;
use onbeat_viewer::{
    app::{Start, ViewerApp},
    arguments::{Arguments, Size},
    screenshot::Screenshot,
};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Err(words) = arguments.check_apart() {
        say(&words);
        return ExitCode::from(2);
    }
    let screenshot = arguments.screenshot.clone().map(Screenshot::new);
    let saved = screenshot.as_ref().map(Screenshot::outcome);
    let options = eframe::NativeOptions {
        viewport: viewport(arguments.size),
        // A screenshot must not depend on the pattern of a dither.
        dithering: screenshot.is_none(),
        ..Default::default()
    };
    let start = Start::from_arguments(arguments, screenshot);
    let ran = eframe::run_native(
        "onbeat-viewer",
        options,
        Box::new(|creation| Ok(Box::new(ViewerApp::new(&creation.egui_ctx, start)))),
    );
    if let Err(error) = ran {
        say(&format!(
            "no window could be opened: {}\nThe viewer needs a display with OpenGL 2.1 or \
             later; without one, use `onbeat report RUN.beat`.",
            reason(&error.to_string())
        ));
        return ExitCode::FAILURE;
    }
    match saved.map(|saved| saved.take()) {
        None | Some(Some(Ok(()))) => ExitCode::SUCCESS,
        Some(Some(Err(error))) => {
            say(&error);
            ExitCode::FAILURE
        }
        Some(None) => {
            say("the window was closed before the picture was taken");
            ExitCode::FAILURE
        }
    }
}

fn viewport(size: Size) -> ViewportBuilder {
    ViewportBuilder::default()
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
    eprintln!("onbeat-viewer: {}", printable(words));
}
