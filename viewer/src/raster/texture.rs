//! Textures as plain bytes, and the colour at a place in them.
//!
//! Places are shares of the texture's size, as egui gives them. Between texels the colour is mixed
//! from the four around (or is the nearest one's), beyond the edge the texture goes on as its wrap
//! mode says. There are no smaller copies for far views.

use eframe::egui::{ImageData, TextureFilter, TextureOptions, TextureWrapMode, epaint::ImageDelta};

use super::Pixel;

/// A texture.
#[derive(Clone, Debug)]
pub(super) struct Texture {
    width: usize,
    height: usize,
    texels: Vec<Pixel>,
    options: TextureOptions,
}

/// Looks up colours of a texture for one triangle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sampler<'a> {
    texture: &'a Texture,
    filter: TextureFilter,
}

/// A place this close to a texel's centre (in texels) is its centre: texts stand on whole pixels,
/// and only the last bits of a product say otherwise.
const CLOSE: f32 = 1e-3;

impl Texture {
    /// The whole texture that a change brings.
    pub(super) fn new(change: &ImageDelta) -> Self {
        let ImageData::Color(image) = &change.image;
        let [width, height] = image.size;
        let texels = image.pixels.iter().map(|pixel| pixel.to_array()).collect();
        Self { width, height, texels, options: change.options }
    }

    /// Puts a part in its place; what sticks out is cut off.
    pub(super) fn patch(&mut self, [left, top]: [usize; 2], change: &ImageDelta) {
        let ImageData::Color(image) = &change.image;
        let [width, height] = image.size;
        let wide = width.min(self.width.saturating_sub(left));
        let high = height.min(self.height.saturating_sub(top));
        for y in 0..high {
            let to = (top + y) * self.width + left;
            let from = y * width;
            let row = self.texels[to..to + wide].iter_mut();
            for (texel, pixel) in row.zip(&image.pixels[from..from + wide]) {
                *texel = pixel.to_array();
            }
        }
        self.options = change.options;
    }

    /// A sampler for a triangle in which the place changes by `(du, dv)` from pixel to pixel and by
    /// `down` from row to row: small steps magnify, large ones minify.
    pub(super) fn sampler(&self, du: f32, dv: f32, down: [f32; 2]) -> Sampler<'_> {
        let across = du.abs().max(down[0].abs()) * self.width as f32;
        let filter = if across.max(dv.abs().max(down[1].abs()) * self.height as f32) <= 1.0 {
            self.options.magnification
        } else {
            self.options.minification
        };
        Sampler { texture: self, filter }
    }

    fn texel(&self, x: i64, y: i64) -> [f32; 4] {
        let mode = self.options.wrap_mode;
        let (x, y) = (wrapped(x, self.width, mode), wrapped(y, self.height, mode));
        let texel = self.texels.get(y * self.width + x).copied().unwrap_or_default();
        texel.map(f32::from)
    }
}

impl Sampler<'_> {
    /// The colour at a place, from 0 to 255.
    pub(super) fn at(&self, [u, v]: [f32; 2]) -> [f32; 4] {
        let texture = self.texture;
        let (x, y) = (u * texture.width as f32, v * texture.height as f32);
        if self.filter == TextureFilter::Nearest {
            return texture.texel(below(x).0, below(y).0);
        }
        let ((left, right), (top, bottom)) = (below(x - 0.5), below(y - 0.5));
        if right == 0.0 && bottom == 0.0 {
            return texture.texel(left, top);
        }
        let across = |y: i64| mixed(texture.texel(left, y), texture.texel(left + 1, y), right);
        mixed(across(top), across(top + 1), bottom)
    }
}

/// The whole number below a value, and how far above it the value lies.
fn below(value: f32) -> (i64, f32) {
    let near = value.round();
    let (floor, above) =
        if (value - near).abs() < CLOSE { (near, 0.0) } else { (value.floor(), value.fract()) };
    let above = if above < 0.0 { above + 1.0 } else { above };
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a float-to-integer cast saturates, and what lies that far out is the edge"
    )]
    let whole = floor as i64;
    (whole, above)
}

fn mixed(a: [f32; 4], b: [f32; 4], share: f32) -> [f32; 4] {
    [0, 1, 2, 3].map(|place| a[place] + (b[place] - a[place]) * share)
}

/// Where a texel beyond the edges is found instead.
fn wrapped(place: i64, size: usize, mode: TextureWrapMode) -> usize {
    let Ok(size) = i64::try_from(size.max(1)) else { return 0 };
    let inside = match mode {
        TextureWrapMode::ClampToEdge => place.clamp(0, size - 1),
        TextureWrapMode::Repeat => place.rem_euclid(size),
        TextureWrapMode::MirroredRepeat => {
            let phase = place.rem_euclid(2 * size);
            phase.min(2 * size - 1 - phase)
        }
    };
    usize::try_from(inside).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_beyond_the_edge_is_where_the_wrap_mode_says() {
        let places = |mode| [-3, -1, 0, 3, 4, 6].map(|place| wrapped(place, 4, mode));
        assert_eq!(places(TextureWrapMode::ClampToEdge), [0, 0, 0, 3, 3, 3]);
        assert_eq!(places(TextureWrapMode::Repeat), [1, 3, 0, 3, 0, 2]);
        assert_eq!(places(TextureWrapMode::MirroredRepeat), [2, 0, 0, 3, 3, 1]);
    }

    #[test]
    fn a_hair_beside_a_centre_is_the_centre() {
        assert_eq!(below(2.000_01), (2, 0.0));
        assert_eq!(below(1.999_99), (2, 0.0));
        assert_eq!(below(-0.25), (-1, 0.75));
        assert_eq!(below(2.5), (2, 0.5));
    }
}
