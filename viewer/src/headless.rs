//! Draws the viewer without a window, a display or a graphics card.
//!
//! It plays the part of the window system: hands egui a screen and the time, runs frame after frame
//! until everything shown is complete, and lets [`crate::raster`] paint the last one. Time goes on
//! by a sixtieth of a second per frame whatever the clock says, nothing blinks and nothing glides,
//! so the same run and choices make the same picture everywhere. What a picture is of, and where it
//! goes, is not decided here.

use std::time::Duration;

use crossbeam::channel::{Receiver, bounded};
use eframe::egui::{
    self, Color32, Context, FullOutput, Pos2, RawInput, Rect, Ui, Vec2, ViewportId,
    style::ScrollAnimation,
};

use crate::raster::{Bitmap, Painter};

/// Complete frames before the picture is taken: layouts that need a second pass have had it then.
const COMPLETE_FRAMES: u32 = 4;
/// Complete frames after which the picture is taken although something asks for another frame.
const PATIENCE_FRAMES: u32 = 60;
/// The longest pause between two looks at work that goes on in the background.
const PAUSE: Duration = Duration::from_millis(20);
/// Time from frame to frame (s).
const FRAME: f32 = 1.0 / 60.0;
/// The most pixels a picture may have.
pub const MOST_PIXELS: f64 = 67_108_864.0;

/// A screen that nobody sees.
pub struct Headless {
    ctx: Context,
    painter: Painter,
    size: Vec2,
    scale: f32,
    frames: u32,
    woken: Receiver<()>,
}

impl Headless {
    /// A screen of `size` points with `scale` pixels to a point.
    #[must_use]
    pub fn new(size: Vec2, scale: f32) -> Self {
        let ctx = Context::default();
        let (wake, woken) = bounded(1);
        ctx.set_request_repaint_callback(move |_request| {
            // Full means that it will look anyway.
            let _ = wake.try_send(());
        });
        Self { ctx, painter: Painter::default(), size, scale, frames: 0, woken }
    }

    /// The context that everything on the screen is drawn in.
    #[must_use]
    pub const fn context(&self) -> &Context {
        &self.ctx
    }

    /// Makes the screen this high (points).
    pub const fn set_height(&mut self, height: f32) {
        self.size.y = height;
    }

    /// The screen's size (points).
    #[must_use]
    pub const fn size(&self) -> Vec2 {
        self.size
    }

    /// Draws frames until `draw` has said a few times that all it shows is complete, and paints the
    /// last one on `ground`. `None` once `go_on` says no.
    pub fn picture(
        &mut self,
        ground: impl FnOnce(&Context) -> Color32,
        go_on: &dyn Fn() -> bool,
        mut draw: impl FnMut(&mut Ui) -> bool,
    ) -> Option<Bitmap> {
        let mut complete_frames = 0;
        loop {
            if !go_on() {
                return None;
            }
            let (output, complete) = self.frame(&mut draw);
            complete_frames = if complete { complete_frames + 1 } else { 0 };
            let wants_another = wants_another(&output);
            if complete_frames >= PATIENCE_FRAMES
                || (complete_frames >= COMPLETE_FRAMES && !wants_another)
            {
                let ground = ground(&self.ctx);
                return Some(self.paint(output, ground));
            }
            self.skip(output);
            if !complete {
                self.pause();
            }
        }
    }

    fn frame(&mut self, draw: &mut impl FnMut(&mut Ui) -> bool) -> (FullOutput, bool) {
        self.calm();
        let screen = Rect::from_min_size(Pos2::ZERO, self.size);
        let mut input = RawInput {
            screen_rect: Some(screen),
            time: Some(f64::from(self.frames) * f64::from(FRAME)),
            predicted_dt: FRAME,
            system_theme: Some(egui::Theme::Light),
            ..RawInput::default()
        };
        self.frames = self.frames.saturating_add(1);
        if let Some(viewport) = input.viewports.get_mut(&ViewportId::ROOT) {
            viewport.native_pixels_per_point = Some(self.scale);
        }
        let mut complete = false;
        let mut output = self.ctx.run_ui(input, |ui| complete = draw(ui));
        self.painter.take(&mut output.textures_delta);
        (output, complete)
    }

    /// A picture shows no state between two others. Themes are installed by whoever draws, so this
    /// is said before every frame.
    fn calm(&self) {
        self.ctx.all_styles_mut(|style| {
            style.visuals.text_cursor.blink = false;
            style.scroll_animation = ScrollAnimation::none();
            style.animation_time = 0.0;
        });
    }

    fn paint(&mut self, mut output: FullOutput, ground: Color32) -> Bitmap {
        let mut picture = Bitmap::of_screen(self.size, self.scale, ground);
        let shapes = std::mem::take(&mut output.shapes);
        let frame = self.ctx.tessellate(shapes, output.pixels_per_point);
        self.painter.paint(&frame, output.pixels_per_point, &mut picture);
        self.skip(output);
        picture
    }

    /// Lets go of a frame that is not painted, or no longer needed.
    fn skip(&mut self, mut output: FullOutput) {
        self.painter.forget(&mut output.textures_delta);
    }

    /// Waits until a background thread has news, or a little while. What the frame itself asked for
    /// is no news.
    fn pause(&self) {
        while self.woken.try_recv().is_ok() {}
        let _ = self.woken.recv_timeout(PAUSE);
    }
}

/// Whether a frame was drawn in the expectation that another follows at once.
fn wants_another(output: &FullOutput) -> bool {
    let root = output.viewport_output.get(&ViewportId::ROOT);
    root.is_some_and(|root| root.repaint_delay.is_zero())
}

/// Refuses sizes that no picture should have.
///
/// # Errors
/// What would be right.
pub fn check_size(size: Vec2, scale: f32) -> Result<(), String> {
    let [width, height] = [size.x, size.y].map(|side| f64::from(side * scale).round());
    if width * height <= MOST_PIXELS {
        return Ok(());
    }
    Err(format!(
        "a picture of {width} x {height} pixels is too large; choose a smaller size or scale, \
         together at most 8192 x 8192"
    ))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use eframe::egui::vec2;

    use super::*;
    use crate::theme::{self, Palette};

    fn screen() -> Headless {
        let screen = Headless::new(vec2(60.0, 40.0), 2.0);
        theme::install(screen.context(), egui::ThemePreference::Light);
        screen
    }

    fn ground(_: &Context) -> Color32 {
        Palette::for_mode(false).page
    }

    #[test]
    fn a_picture_waits_until_all_is_complete() {
        let mut screen = screen();
        let frames = Cell::new(0);
        let picture = screen.picture(ground, &|| true, |ui| {
            frames.set(frames.get() + 1);
            let colour = if frames.get() < 9 { Color32::RED } else { Color32::BLACK };
            ui.painter().rect_filled(ui.max_rect(), 0.0, colour);
            frames.get() >= 9
        });
        let picture = picture.expect("it was complete in the end");
        assert_eq!((picture.width, picture.height), (120, 80));
        assert_eq!(picture.pixel(60, 40), Some([0, 0, 0, 255]));
        assert_eq!(frames.get(), 8 + COMPLETE_FRAMES);
    }

    #[test]
    fn what_never_rests_is_painted_and_what_is_stopped_is_not() {
        let mut screen = screen();
        let frames = Cell::new(0);
        let restless = screen.picture(ground, &|| true, |ui| {
            frames.set(frames.get() + 1);
            ui.ctx().request_repaint();
            true
        });
        assert!(restless.is_some());
        assert_eq!(frames.get(), PATIENCE_FRAMES);
        let stopped = screen.picture(ground, &|| frames.get() < 70, |_| {
            frames.set(frames.get() + 1);
            false
        });
        assert!(stopped.is_none());
    }

    #[test]
    fn sizes_have_a_limit() {
        assert_eq!(check_size(vec2(1280.0, 800.0), 4.0), Ok(()));
        assert_eq!(check_size(vec2(8192.0, 8192.0), 1.0), Ok(()));
        let words = check_size(vec2(8192.0, 8192.0), 2.0).expect_err("1 GiB");
        assert!(words.contains("16384 x 16384"), "{words}");
    }
}
