//! `cargo x icon`: writes the viewer's icon, as a drawing and as pictures of every size.
//!
//! The icon is declared here once: three even beats on a rounded square. Both the SVG and the PNGs
//! come from that, so they cannot differ. `--check` compares pixels, not bytes, since another
//! version of the compressor may write other bytes of the same picture.

use std::fs;
use std::io::{BufWriter, Cursor};
use std::path::Path;

/// Where the icon is kept; `NAME.svg` and `NAME-SIZE.png`.
const NAME: &str = "viewer/assets/desktop/onbeat-viewer";
/// Sizes of the pictures, in pixels: those of the hicolor theme.
pub(crate) const SIZES: [u32; 6] = [16, 32, 48, 64, 128, 256];
/// Samples of a pixel along each side: 16 shades of an edge.
const SAMPLES: u32 = 4;

/// A rounded rectangle in hundredths of the icon's side.
struct Shape {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
    radius: f64,
    colour: [u8; 3],
}

const GROUND: [u8; 3] = [0x0B, 0x5C, 0xAD];
const BEAT: [u8; 3] = [0xFF, 0xFF, 0xFF];

/// From back to front.
const SHAPES: [Shape; 4] = [
    Shape { left: 3.0, top: 3.0, width: 94.0, height: 94.0, radius: 21.0, colour: GROUND },
    beat(26.0, 36.0),
    beat(50.0, 60.0),
    beat(74.0, 36.0),
];

/// A beat around `middle`, so many hundredths high.
const fn beat(middle: f64, height: f64) -> Shape {
    let (left, top) = (middle - 6.25, 50.0 - height / 2.0);
    Shape { left, top, width: 12.5, height, radius: 6.25, colour: BEAT }
}

/// Entry point: writes the icon, or with `--check` compares it.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    let check = match arguments {
        [] => false,
        [one] if one == "--check" => true,
        _ => return Err("takes only --check".to_owned()),
    };
    let drawing = format!("{NAME}.svg");
    if check {
        let found = fs::read_to_string(root.join(&drawing)).unwrap_or_default();
        if found != svg() {
            return Err(format!("{drawing} is not what `cargo x icon` writes"));
        }
    } else {
        fs::write(root.join(&drawing), svg()).map_err(|error| format!("{drawing}: {error}"))?;
    }
    for size in SIZES {
        let path = format!("{NAME}-{size}.png");
        let wrong = |error: &dyn std::fmt::Display| format!("{path}: {error}");
        if check {
            let bytes = fs::read(root.join(&path)).map_err(|error| wrong(&error))?;
            if pixels_of(&bytes).as_ref() != Some(&(size, pixels(size))) {
                return Err(format!("{path} is not what `cargo x icon` writes"));
            }
        } else {
            let bytes = png(size).map_err(|error| wrong(&error))?;
            fs::write(root.join(&path), bytes).map_err(|error| wrong(&error))?;
        }
    }
    println!("icon: 1 drawing and {} pictures", SIZES.len());
    Ok(())
}

fn svg() -> String {
    let mut text =
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 100 100\">\n".to_owned();
    text.push_str("  <title>Onbeat</title>\n");
    for Shape { left, top, width, height, radius, colour: [r, g, b] } in SHAPES {
        text.push_str(&format!(
            "  <rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" rx=\"{radius}\" \
             fill=\"#{r:02x}{g:02x}{b:02x}\"/>\n"
        ));
    }
    text.push_str("</svg>\n");
    text
}

/// The picture's pixels: red, green, blue, opacity.
fn pixels(size: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(4 * (size * size) as usize);
    for y in 0..size {
        for x in 0..size {
            bytes.extend(pixel(x, y, size));
        }
    }
    bytes
}

/// The mean of what a pixel's samples show.
fn pixel(x: u32, y: u32, size: u32) -> [u8; 4] {
    let (mut sum, mut covered) = ([0_u32; 3], 0_u32);
    for sample in 0..SAMPLES * SAMPLES {
        let place = |pixel: u32, sample: u32| {
            let middle = f64::from(pixel) + (f64::from(sample) + 0.5) / f64::from(SAMPLES);
            middle * 100.0 / f64::from(size)
        };
        let (x, y) = (place(x, sample % SAMPLES), place(y, sample / SAMPLES));
        if let Some(shape) = SHAPES.iter().rev().find(|shape| shape.holds(x, y)) {
            covered += 1;
            for (sum, part) in sum.iter_mut().zip(shape.colour) {
                *sum += u32::from(part);
            }
        }
    }
    if covered == 0 {
        return [0; 4];
    }
    // Both are means of bytes, so they fit one.
    let byte = |value: u32| u8::try_from(value).unwrap_or(u8::MAX);
    let [r, g, b] = sum.map(|sum| byte((sum + covered / 2) / covered));
    [r, g, b, byte(covered * 255 / (SAMPLES * SAMPLES))]
}

impl Shape {
    fn holds(&self, x: f64, y: f64) -> bool {
        let (x, y) = (x - self.left, y - self.top);
        if !(0.0..=self.width).contains(&x) || !(0.0..=self.height).contains(&y) {
            return false;
        }
        // From the nearest point that is no corner's: zero along the sides.
        let over = |place: f64, length: f64| {
            place - place.clamp(self.radius, (length - self.radius).max(self.radius))
        };
        over(x, self.width).hypot(over(y, self.height)) <= self.radius
    }
}

fn png(size: u32) -> Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(BufWriter::new(&mut bytes), size, size);
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::High);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels(size))?;
    writer.finish()?;
    Ok(bytes)
}

/// Side and pixels of a square picture.
fn pixels_of(bytes: &[u8]) -> Option<(u32, Vec<u8>)> {
    let mut reader = png::Decoder::new(Cursor::new(bytes)).read_info().ok()?;
    let mut pixels = vec![0; reader.output_buffer_size()?];
    let info = reader.next_frame(&mut pixels).ok()?;
    (info.width == info.height && info.color_type == png::ColorType::Rgba)
        .then_some((info.width, pixels))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_read_as_it_was_written() {
        let bytes = png(32).expect("written");
        assert_eq!(pixels_of(&bytes), Some((32, pixels(32))));
    }

    #[test]
    fn corners_are_clear_the_ground_is_blue_and_beats_are_white() {
        let picture = pixels(128);
        let at = |x: usize, y: usize| &picture[4 * (y * 128 + x)..][..4];
        assert_eq!(at(0, 0)[3], 0);
        assert_eq!(at(20, 100), [0x0B, 0x5C, 0xAD, 255]);
        for x in [33, 64, 94] {
            assert_eq!(at(x, 64), [255; 4]);
        }
    }

    #[test]
    fn the_drawing_has_every_shape() {
        assert_eq!(svg().matches("<rect").count(), SHAPES.len());
        assert!(svg().ends_with("</svg>\n"));
    }
}
