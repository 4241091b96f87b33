//! A picture of the window as a PNG file, taken once everything in it is complete.
//!
//! The window asks [`Screenshot::step`] after each frame; the picture comes some frames later, is
//! written at once, and the window is asked to close.

use std::{
    fs::File,
    io::BufWriter,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use eframe::egui::{ColorImage, Context, ViewportCommand};

/// Complete frames before the picture is taken: layouts that need a second pass have had it then.
const SETTLED_FRAMES: u32 = 4;

/// A picture to be taken.
#[derive(Debug)]
pub struct Screenshot {
    path: PathBuf,
    settled: u32,
    outcome: Outcome,
}

/// How the saving went, once it did.
#[derive(Clone, Debug, Default)]
pub struct Outcome(Arc<Mutex<Option<Result<(), String>>>>);

impl Outcome {
    /// The outcome, once; `None` if no picture was taken.
    #[must_use]
    pub fn take(&self) -> Option<Result<(), String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put(&self, outcome: Result<(), String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
    }
}

impl Screenshot {
    /// A picture to be saved at a path.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path, settled: 0, outcome: Outcome::default() }
    }

    /// Where to find how it went.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        self.outcome.clone()
    }

    /// After a frame that was complete, or was not.
    pub fn step(&mut self, ctx: &Context, complete: bool) {
        self.settled = if complete { self.settled.saturating_add(1) } else { 0 };
        if self.settled < SETTLED_FRAMES {
            ctx.request_repaint();
        } else if self.settled == SETTLED_FRAMES {
            let (path, outcome, repaint) = (self.path.clone(), self.outcome.clone(), ctx.clone());
            ctx.request_screenshot(move |image| {
                outcome.put(save(&image, &path));
                repaint.send_viewport_cmd(ViewportCommand::Close);
                repaint.request_repaint();
            });
            ctx.request_repaint();
        }
    }
}

/// Writes an image as PNG.
///
/// # Errors
/// What could not be written, and why.
pub fn save(image: &ColorImage, path: &Path) -> Result<(), String> {
    let wrong =
        |error: &dyn std::fmt::Display| format!("{} was not saved: {error}", path.display());
    let [width, height] = image.size;
    let side = |side: usize| u32::try_from(side).map_err(|error| wrong(&error));
    let file = File::create(path).map_err(|error| wrong(&error))?;
    let mut encoder = png::Encoder::new(BufWriter::new(file), side(width)?, side(height)?);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::High);
    let mut writer = encoder.write_header().map_err(|error| wrong(&error))?;
    // The window is opaque, so its alpha says nothing.
    let bytes: Vec<u8> =
        image.pixels.iter().flat_map(|pixel| [pixel.r(), pixel.g(), pixel.b()]).collect();
    writer.write_image_data(&bytes).map_err(|error| wrong(&error))?;
    writer.finish().map_err(|error| wrong(&error))
}
