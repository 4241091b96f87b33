//! The panels as pictures, compared with those kept in `viewer/tests/snapshots`.
//!
//! Painted by the viewer's own rasteriser, so that every machine draws the same and none needs a
//! graphics card. A pixel counts as different when its colour is off by more than [`THRESHOLD`]
//! (egui_kittest's measure, a squared distance in YIQ; it forgives the last bits in which machines
//! may differ), and at most [`FAILED_PIXELS`] of a picture's million may be: one glyph rasterised
//! otherwise passes, a moved line does not. To accept a change: `UPDATE_SNAPSHOTS=1 cargo test -p
//! onbeat-viewer`, and look at the pictures.

use eframe::egui::{Color32, Context, FullOutput, Key, Modifiers, TexturesDelta, ThemePreference};
use egui_kittest::{SnapshotOptions, SnapshotResult, SnapshotResults, TestRenderer};
use image::RgbaImage;
use onbeat_shared::log::sample;
use onbeat_viewer::{
    app::Start,
    problem::{Kind, Problem},
    raster::{Bitmap, Painter},
};

use crate::stage::{self, Play};

/// Requests of the run in the pictures.
const REQUESTS: u32 = 1_200;
/// How much a pixel's colour may differ.
const THRESHOLD: f32 = 1.0;
/// How many pixels may differ by more.
const FAILED_PIXELS: usize = 120;

/// The viewer's rasteriser, as the test harness wants one.
#[derive(Default)]
pub(crate) struct Software(Painter);

impl TestRenderer for Software {
    fn handle_delta(&mut self, delta: &mut TexturesDelta) {
        self.0.take(delta);
        self.0.forget(delta);
    }

    fn render(&mut self, ctx: &Context, output: &FullOutput) -> Result<RgbaImage, String> {
        let scale = output.pixels_per_point;
        let size = ctx.content_rect().size();
        let mut picture = Bitmap::of_screen(size, scale, Color32::TRANSPARENT);
        self.0.paint(&ctx.tessellate(output.shapes.clone(), scale), scale, &mut picture);
        let side = |side: usize| u32::try_from(side).map_err(|error| error.to_string());
        let (width, height) = (side(picture.width)?, side(picture.height)?);
        let image = RgbaImage::from_raw(width, height, picture.pixels.concat());
        image.ok_or_else(|| "too few bytes".to_owned())
    }
}

pub(crate) fn play(theme: ThemePreference, bytes: &[u8]) -> Play {
    let start = Start { theme: Some(theme), inline: true, ..Start::default() };
    let run = stage::of_bytes(bytes, "sample.beat");
    let mut play = stage::start(start, vec![run], |builder| {
        builder.renderer(Software::default()).with_render_cursor(false)
    });
    play.run();
    play
}

pub(crate) fn compare(play: &mut Play, name: &str) -> SnapshotResult {
    let options = SnapshotOptions::new().threshold(THRESHOLD).max_failed_pixels(FAILED_PIXELS);
    play.try_snapshot_options(name, &options)
}

pub(crate) const THEMES: [(ThemePreference, &str); 2] =
    [(ThemePreference::Light, "light"), (ThemePreference::Dark, "dark")];

#[test]
fn overview_and_latency_look_as_they_did() {
    let mut results = SnapshotResults::new();
    for (theme, name) in THEMES {
        let mut play = play(theme, &sample::log(7, REQUESTS));
        results.add(compare(&mut play, &format!("overview-{name}")));
        play.key_press(Key::Num2);
        play.run();
        results.add(compare(&mut play, &format!("latency-{name}")));
    }
}

#[test]
fn a_chosen_range_and_tables_look_as_they_did() {
    let mut play = play(ThemePreference::Light, &sample::log(7, REQUESTS));
    play.key_press(Key::Num2);
    play.run();
    for _ in 0..5 {
        play.key_press_modifiers(Modifiers::SHIFT, Key::Comma);
    }
    play.key_press(Key::OpenBracket);
    for _ in 0..7 {
        play.key_press_modifiers(Modifiers::SHIFT, Key::Period);
    }
    play.key_press(Key::CloseBracket);
    play.run();
    let mut results = SnapshotResults::new();
    results.add(compare(&mut play, "latency-range-light"));
    play.key_press(Key::T);
    play.run();
    results.add(compare(&mut play, "latency-tables-light"));
}

#[test]
fn torn_logs_problems_and_the_sheet_look_as_they_did() {
    let whole = sample::log(7, REQUESTS);
    let torn = &whole[..whole.len() * 6 / 10 + 1_234];
    let mut play = play(ThemePreference::Light, torn);
    let mut results = SnapshotResults::new();
    results.add(compare(&mut play, "overview-torn-light"));
    play.key_press(Key::Questionmark);
    play.run();
    results.add(compare(&mut play, "keys-light"));
    play.key_press(Key::Escape);
    play.run();
    let newer = Kind::Newer { version: 9, readable_from: 7 };
    let path = std::path::Path::new("/home/me/runs/tomorrow.beat");
    play.state_mut().app_mut().tabs.add_problem(Problem::new(path, newer));
    play.run();
    results.add(compare(&mut play, "problem-light"));
}
