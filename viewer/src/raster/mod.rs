//! Draws egui's triangles without a graphics card, the same on every machine.
//!
//! For pictures that no display is needed for: `--screenshot`, exported panels, the pictures that
//! tests compare. It does what egui's own renderers do (premultiplied colours blended in gamma
//! space, textures filtered linearly or not at all, no dithering) in plain floating point that no
//! compiler reorders, so two machines make the same bytes of the same triangles. It is no renderer
//! for a window: a picture takes tens of milliseconds. Paint callbacks, which need a graphics
//! card, are left out.

mod texture;
mod triangle;

use std::collections::HashMap;

use eframe::egui::{
    Color32, ColorImage, Rect, TextureId, TexturesDelta, Vec2,
    epaint::{ClippedPrimitive, Mesh, Primitive},
};

use texture::Texture;
use triangle::{Corner, Triangle, clipped};

/// A pixel: red, green, blue and alpha, the colours multiplied by alpha.
pub type Pixel = [u8; 4];

/// A finished picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bitmap {
    /// Pixels across.
    pub width: usize,
    /// Pixels down.
    pub height: usize,
    /// Row by row from the top.
    pub pixels: Vec<Pixel>,
}

impl Bitmap {
    /// A picture of one colour.
    #[must_use]
    pub fn filled(width: usize, height: usize, colour: Color32) -> Self {
        Self { width, height, pixels: vec![colour.to_array(); width * height] }
    }

    /// A picture of one colour for a screen of this many points.
    #[must_use]
    pub fn of_screen(size: Vec2, pixels_per_point: f32, colour: Color32) -> Self {
        let [width, height] =
            [size.x, size.y].map(|points| whole(points * pixels_per_point, usize::MAX));
        Self::filled(width, height, colour)
    }

    /// A picture that egui holds.
    #[must_use]
    pub fn of(image: &ColorImage) -> Self {
        let [width, height] = image.size;
        let pixels = image.pixels.iter().map(|pixel| pixel.to_array()).collect();
        Self { width, height, pixels }
    }

    /// The pixel at a place in the picture.
    #[must_use]
    pub fn pixel(&self, x: usize, y: usize) -> Option<Pixel> {
        if x < self.width { self.pixels.get(y * self.width + x).copied() } else { None }
    }

    fn row_mut(&mut self, y: usize, from: usize, to: usize) -> &mut [Pixel] {
        let start = y * self.width;
        &mut self.pixels[start + from..start + to]
    }
}

/// Holds textures and paints.
#[derive(Debug, Default)]
pub struct Painter {
    textures: HashMap<TextureId, Texture>,
}

/// The pixels that may be painted: `left..right` of the rows `top..bottom`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Area {
    left: usize,
    right: usize,
    top: usize,
    bottom: usize,
}

impl Painter {
    /// Takes in what a frame changed in its textures; to be done before that frame is painted.
    pub fn take(&mut self, delta: &mut TexturesDelta) {
        for (id, changes) in delta.set.drain() {
            for change in changes {
                match (change.pos, self.textures.get_mut(&id)) {
                    (None, _) => {
                        self.textures.insert(id, Texture::new(&change));
                    }
                    (Some(place), Some(texture)) => texture.patch(place, &change),
                    // A part of a texture that nobody made.
                    (Some(_), None) => {}
                }
            }
        }
    }

    /// Forgets what a frame no longer needs; to be done after that frame was painted, or was not.
    pub fn forget(&mut self, delta: &mut TexturesDelta) {
        for id in delta.free.drain() {
            self.textures.remove(&id);
        }
    }

    /// Paints a frame's triangles over what the picture holds.
    pub fn paint(&self, frame: &[ClippedPrimitive], pixels_per_point: f32, picture: &mut Bitmap) {
        for part in frame {
            let Primitive::Mesh(mesh) = &part.primitive else { continue };
            let Some(texture) = self.textures.get(&mesh.texture_id) else { continue };
            let area = Area::of(part.clip_rect, pixels_per_point, picture);
            if area.left < area.right && area.top < area.bottom {
                paint_mesh(mesh, texture, f64::from(pixels_per_point), area, picture);
            }
        }
    }
}

impl Area {
    /// A clip rectangle in whole pixels of the picture.
    fn of(clip: Rect, pixels_per_point: f32, picture: &Bitmap) -> Self {
        let side = |points: f32, most: usize| whole(points * pixels_per_point, most);
        Self {
            left: side(clip.min.x, picture.width),
            right: side(clip.max.x, picture.width),
            top: side(clip.min.y, picture.height),
            bottom: side(clip.max.y, picture.height),
        }
    }
}

/// The nearest whole number from 0 to `most`; what is no number is 0.
fn whole(value: f32, most: usize) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float-to-integer cast saturates, which is what is wanted"
    )]
    let whole = value.round() as usize;
    whole.min(most)
}

fn paint_mesh(mesh: &Mesh, texture: &Texture, scale: f64, area: Area, picture: &mut Bitmap) {
    let corner = |index: u32| {
        let vertex = mesh.vertices.get(index as usize)?;
        let [r, g, b, a] = vertex.color.to_array().map(f32::from);
        let at = [vertex.pos.x, vertex.pos.y].map(|points| f64::from(points) * scale);
        Some(Corner { at, values: [r, g, b, a, vertex.uv.x, vertex.uv.y] })
    };
    for indices in mesh.indices.chunks_exact(3) {
        let (Some(a), Some(b), Some(c)) =
            (corner(indices[0]), corner(indices[1]), corner(indices[2]))
        else {
            continue;
        };
        if misses([a.at, b.at, c.at], area) {
            continue;
        }
        for corners in clipped([a, b, c]) {
            if let Some(triangle) = Triangle::new(corners) {
                paint_triangle(&triangle, texture, area, picture);
            }
        }
    }
}

/// Whether a triangle lies beside the area as a whole.
fn misses(corners: [[f64; 2]; 3], area: Area) -> bool {
    let beside = |axis: usize, from: usize, to: usize| {
        corners.iter().all(|at| at[axis] < from as f64)
            || corners.iter().all(|at| at[axis] > to as f64)
    };
    beside(0, area.left, area.right) || beside(1, area.top, area.bottom)
}

fn paint_triangle(triangle: &Triangle, texture: &Texture, area: Area, picture: &mut Bitmap) {
    let steps = triangle.steps();
    let [.., du, dv] = steps;
    let sampler = texture.sampler(du, dv, triangle.steps_down());
    let one_texel = triangle.has_one_texel().then(|| sampler.at(triangle.first_texel()));
    let one_colour = triangle.one_colour();
    for y in triangle.rows(area.top, area.bottom) {
        let (from, to) = triangle.span(y, area.left, area.right);
        if from >= to {
            continue;
        }
        let row = picture.row_mut(y, from, to);
        if let (Some(texel), Some(colour)) = (one_texel, one_colour) {
            paint_even(row, tinted(colour, texel));
            continue;
        }
        let first = triangle.values(from, y);
        for (place, pixel) in row.iter_mut().enumerate() {
            let right = place as f32;
            let value = |which: usize| first[which] + right * steps[which];
            let texel = match one_texel {
                Some(texel) => texel,
                None => sampler.at([value(4), value(5)]),
            };
            blend(pixel, tinted([value(0), value(1), value(2), value(3)], texel));
        }
    }
}

/// Paints one colour over a row.
fn paint_even(row: &mut [Pixel], colour: [f32; 4]) {
    if colour[3] >= 254.5 {
        row.fill(colour.map(byte));
    } else if colour != [0.0; 4] {
        for pixel in row {
            blend(pixel, colour);
        }
    }
}

/// A corner's colour times a texture's, from 0 to 255.
fn tinted(colour: [f32; 4], texel: [f32; 4]) -> [f32; 4] {
    const SHARE: f32 = 1.0 / 255.0;
    [0, 1, 2, 3].map(|place| colour[place] * texel[place] * SHARE)
}

/// Lays a premultiplied colour (0 to 255) over a pixel.
fn blend(pixel: &mut Pixel, over: [f32; 4]) {
    let kept = 1.0 - (over[3] / 255.0).clamp(0.0, 1.0);
    for (channel, over) in pixel.iter_mut().zip(over) {
        *channel = byte(over + f32::from(*channel) * kept);
    }
}

/// The nearest byte.
fn byte(value: f32) -> u8 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float-to-integer cast saturates, which is what is wanted"
    )]
    let byte = (value + 0.5) as u8;
    byte
}

#[cfg(test)]
mod tests;
