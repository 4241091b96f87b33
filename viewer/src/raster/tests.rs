//! Known triangles, seams, clipping, blending and textures, pixel by pixel.

use eframe::egui::{
    Context, FontId, Pos2, RawInput, TextureOptions, epaint::ImageDelta, epaint::Vertex, pos2, vec2,
};

use super::*;
use crate::theme::Palette;

const WHITE: TextureId = TextureId::Managed(0);
/// Adds 1 to every channel but alpha: a counter of how often a pixel was painted.
const COUNTER: [u8; 4] = [1, 1, 1, 0];

fn colour(channels: [u8; 4]) -> Color32 {
    let [r, g, b, a] = channels;
    #[expect(clippy::disallowed_methods, reason = "numbers of a test, not looks")]
    Color32::from_rgba_premultiplied(r, g, b, a)
}

/// A painter with one white texel.
fn painter() -> Painter {
    with_texture([1, 1], &[[255; 4]], TextureOptions::LINEAR)
}

fn image(size: [usize; 2], texels: &[Pixel]) -> ColorImage {
    ColorImage::new(size, texels.iter().map(|&texel| colour(texel)).collect())
}

fn with_texture(size: [usize; 2], texels: &[Pixel], options: TextureOptions) -> Painter {
    let mut painter = Painter::default();
    let mut delta = TexturesDelta::default();
    delta.push(WHITE, ImageDelta::full(image(size, texels), options));
    painter.take(&mut delta);
    painter
}

fn triangle(corners: [[f32; 2]; 3], colours: [[u8; 4]; 3]) -> Mesh {
    let vertices = corners.into_iter().zip(colours);
    let vertices = vertices.map(|([x, y], channels)| Vertex {
        pos: pos2(x, y),
        uv: Pos2::ZERO,
        color: colour(channels),
    });
    Mesh { indices: vec![0, 1, 2], vertices: vertices.collect(), texture_id: WHITE }
}

/// A rectangle over the whole texture.
fn textured(rect: Rect) -> Mesh {
    let mut mesh = Mesh::with_texture(WHITE);
    let all = Rect::from_min_max(Pos2::ZERO, pos2(1.0, 1.0));
    mesh.add_rect_with_uv(rect, all, Color32::WHITE);
    mesh
}

fn painted(painter: &Painter, meshes: Vec<Mesh>, clip: Rect, scale: f32, side: usize) -> Bitmap {
    let mut picture = Bitmap::filled(side, side, Color32::TRANSPARENT);
    let frame: Vec<_> = meshes
        .into_iter()
        .map(|mesh| ClippedPrimitive { clip_rect: clip, primitive: Primitive::Mesh(mesh) })
        .collect();
    painter.paint(&frame, scale, &mut picture);
    picture
}

fn reds(picture: &Bitmap) -> Vec<Vec<u8>> {
    picture.pixels.chunks(picture.width).map(|row| row.iter().map(|p| p[0]).collect()).collect()
}

const EVERYWHERE: Rect = Rect::EVERYTHING;

#[test]
fn a_triangle_has_the_pixels_whose_centres_it_holds() {
    let mesh = triangle([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]], [[9, 0, 0, 255]; 3]);
    let picture = painted(&painter(), vec![mesh], EVERYWHERE, 1.0, 4);
    let wanted = [[9, 9, 9, 0], [9, 9, 0, 0], [9, 0, 0, 0], [0, 0, 0, 0]];
    assert_eq!(reds(&picture), wanted, "centres on the lower right edge are its neighbour's");
}

/// A small generator of numbers, the same on every machine.
struct Dice(u64);

impl Dice {
    fn next(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888);
        (self.0 >> 33) % sides
    }

    /// A place on a grid of eighths, so that many centres lie on edges.
    fn place(&mut self) -> [f32; 2] {
        [0, 1].map(|_| u16::try_from(self.next(200)).map_or(0.0, f32::from) / 8.0 - 2.0)
    }
}

/// On which side of a line a point lies.
fn side(a: [f32; 2], b: [f32; 2], point: [f32; 2]) -> f32 {
    (b[0] - a[0]) * (point[1] - a[1]) - (point[0] - a[0]) * (b[1] - a[1])
}

#[test]
fn neighbours_neither_overlap_nor_leave_a_gap() {
    let mut dice = Dice(1);
    let mut seams = 0;
    for _ in 0..600 {
        let [a, b, c, d] = [(); 4].map(|()| dice.place());
        // Two triangles on both sides of the edge between `a` and `b`.
        if side(a, b, c) * side(a, b, d) >= 0.0 {
            continue;
        }
        seams += 1;
        let meshes = [[a, b, c], [b, a, d]].map(|corners| triangle(corners, [COUNTER; 3]));
        let counts = painted(&painter(), meshes.to_vec(), EVERYWHERE, 1.0, 21);
        for (place, pixel) in counts.pixels.iter().enumerate() {
            assert!(pixel[0] <= 1, "{a:?} {b:?} {c:?} {d:?}: pixel {place} twice");
        }
        for (corners, y, x) in [[a, b, c], [b, a, d]]
            .into_iter()
            .flat_map(|corners| (0..21).flat_map(move |y| (0..21).map(move |x| (corners, y, x))))
        {
            let centre = [x as f32 + 0.5, y as f32 + 0.5];
            let [p, q, r] = corners;
            let sides = [side(p, q, centre), side(q, r, centre), side(r, p, centre)];
            let inside =
                sides.iter().all(|&side| side > 0.0) || sides.iter().all(|&side| side < 0.0);
            let on_seam = side(a, b, centre) == 0.0;
            if inside && !on_seam {
                assert_eq!(counts.pixel(x, y).map(|pixel| pixel[0]), Some(1), "{corners:?}");
            }
        }
    }
    assert!(seams > 200, "{seams}");
}

#[test]
fn a_fan_around_a_pixels_centre_paints_it_once() {
    let centre = [4.5, 4.5];
    let corners = [[0.0, 0.0], [9.0, 0.0], [9.0, 9.0], [0.0, 9.0]];
    let fan = (0..4)
        .map(|place| triangle([centre, corners[place], corners[(place + 1) % 4]], [COUNTER; 3]));
    let picture = painted(&painter(), fan.collect(), EVERYWHERE, 1.0, 9);
    assert!(picture.pixels.iter().all(|&pixel| pixel == COUNTER));
}

#[test]
fn nothing_is_painted_outside_the_clip_rectangle() {
    let all = triangle([[-9.0, -9.0], [60.0, -9.0], [-9.0, 60.0]], [COUNTER; 3]);
    // In points; at two pixels a point, and rounded to whole pixels.
    let clip = Rect::from_min_max(pos2(1.0, 2.2), pos2(3.0, 2.8));
    let picture = painted(&painter(), vec![all], clip, 2.0, 8);
    for (y, row) in reds(&picture).into_iter().enumerate() {
        for (x, red) in row.into_iter().enumerate() {
            assert_eq!(red == 1, (2..6).contains(&x) && (4..6).contains(&y), "{x}, {y}");
        }
    }
    for clip in [Rect::NOTHING, Rect::NAN, Rect::from_min_max(pos2(90.0, 0.0), pos2(99.0, 9.0))] {
        let all = triangle([[-9.0, -9.0], [60.0, -9.0], [-9.0, 60.0]], [COUNTER; 3]);
        let picture = painted(&painter(), vec![all], clip, 1.0, 8);
        assert!(picture.pixels.iter().all(|pixel| *pixel == [0; 4]), "{clip:?}");
    }
}

#[test]
fn colours_are_blended_premultiplied_in_gamma_space() {
    let painter = painter();
    let cover = |channels| triangle([[-1.0, -1.0], [9.0, -1.0], [-1.0, 9.0]], [channels; 3]);
    let mut picture = Bitmap::filled(1, 1, colour([200, 100, 0, 255]));
    let paint = |picture: &mut Bitmap, channels| {
        let primitive = Primitive::Mesh(cover(channels));
        painter.paint(&[ClippedPrimitive { clip_rect: EVERYWHERE, primitive }], 1.0, picture);
        picture.pixels[0]
    };
    assert_eq!(paint(&mut picture, [0, 0, 0, 0]), [200, 100, 0, 255], "nothing");
    assert_eq!(paint(&mut picture, [128, 0, 64, 128]), [228, 50, 64, 255], "half");
    assert_eq!(paint(&mut picture, [50, 50, 50, 0]), [255, 100, 114, 255], "added, up to the top");
    assert_eq!(paint(&mut picture, [1, 2, 3, 255]), [1, 2, 3, 255], "all");
}

#[test]
fn colours_run_evenly_between_corners() {
    let mesh = triangle(
        [[0.0, 0.0], [256.0, 0.0], [0.0, 256.0]],
        [[0, 0, 0, 255], [255, 0, 0, 255], [0, 255, 0, 255]],
    );
    let picture = painted(&painter(), vec![mesh], EVERYWHERE, 1.0, 64);
    for (x, y) in [(0, 0), (10, 3), (50, 13), (0, 63)] {
        let [red, green, blue, alpha] = picture.pixel(x, y).expect("inside");
        assert!(usize::from(red).abs_diff(x) <= 1 && usize::from(green).abs_diff(y) <= 1);
        assert_eq!((blue, alpha), (0, 255));
    }
}

#[test]
fn textures_are_mixed_or_not_and_patched() {
    let texels = [[0, 0, 0, 255], [200, 0, 0, 255], [100, 0, 0, 255], [40, 0, 0, 255]];
    let four = Rect::from_min_size(Pos2::ZERO, vec2(4.0, 4.0));
    let nearest = with_texture([2, 2], &texels, TextureOptions::NEAREST);
    let picture = painted(&nearest, vec![textured(four)], EVERYWHERE, 1.0, 4);
    let wanted = [[0, 0, 200, 200], [0, 0, 200, 200], [100, 100, 40, 40], [100, 100, 40, 40]];
    assert_eq!(reds(&picture), wanted);
    let mut linear = with_texture([2, 2], &texels, TextureOptions::LINEAR);
    let picture = painted(&linear, vec![textured(four)], EVERYWHERE, 1.0, 4);
    assert_eq!(reds(&picture)[0], [0, 50, 150, 200]);
    assert_eq!(reds(&picture)[1][0], 25);
    let mut delta = TexturesDelta::default();
    let part = image([1, 1], &[[80, 0, 0, 255]]);
    delta.push(WHITE, ImageDelta::partial([1, 0], part.clone(), TextureOptions::NEAREST));
    delta.push(WHITE, ImageDelta::partial([5, 5], part, TextureOptions::NEAREST));
    linear.take(&mut delta);
    let picture = painted(&linear, vec![textured(four)], EVERYWHERE, 1.0, 4);
    assert_eq!(reds(&picture)[0], [0, 0, 80, 80]);
    delta.free(WHITE);
    linear.forget(&mut delta);
    let picture = painted(&linear, vec![textured(four)], EVERYWHERE, 1.0, 4);
    assert!(picture.pixels.iter().all(|pixel| *pixel == [0; 4]), "a texture that is gone");
}

#[test]
fn far_places_are_cut_off_and_impossible_ones_left_out() {
    // A band of two rows that reaches far beyond the picture on both sides, rising by a row over
    // the whole of it.
    let (far, high) = (3.0e9_f32, 3.0e9_f32 / 16.0);
    let mesh = triangle([[-far, 4.0], [far, 4.0], [0.0, 4.0 + high]], [COUNTER; 3]);
    let picture = painted(&painter(), vec![mesh], EVERYWHERE, 1.0, 16);
    for (y, row) in reds(&picture).into_iter().enumerate() {
        assert!(row.iter().all(|&red| (red == 1) == (y >= 4)), "row {y}");
    }
    for wrong in [f32::NAN, f32::INFINITY] {
        let mesh = triangle([[wrong, 0.0], [9.0, 0.0], [0.0, 9.0]], [COUNTER; 3]);
        let picture = painted(&painter(), vec![mesh], EVERYWHERE, 1.0, 4);
        assert!(picture.pixels.iter().all(|pixel| *pixel == [0; 4]));
    }
    let mut torn = triangle([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]], [COUNTER; 3]);
    torn.indices = vec![0, 1, 7, 0, 1];
    let picture = painted(&painter(), vec![torn], EVERYWHERE, 1.0, 4);
    assert!(picture.pixels.iter().all(|pixel| *pixel == [0; 4]));
}

/// What egui itself makes of a text and a rounded card, twice.
#[test]
fn a_frame_of_egui_is_painted_the_same_every_time() {
    let draw = || {
        let ctx = Context::default();
        let mut painter = Painter::default();
        let screen = Rect::from_min_size(Pos2::ZERO, vec2(120.0, 40.0));
        let input = RawInput { screen_rect: Some(screen), ..RawInput::default() };
        let palette = Palette::for_mode(false);
        let mut output = ctx.run_ui(input, |ui| {
            let card = screen.shrink(4.0);
            ui.painter().rect_filled(card, 6.0, palette.accent);
            let font = FontId::proportional(14.0);
            let align = eframe::egui::Align2::CENTER_CENTER;
            ui.painter().text(card.center(), align, "Onbeat", font, palette.card);
        });
        painter.take(&mut output.textures_delta);
        let frame = ctx.tessellate(std::mem::take(&mut output.shapes), 2.0);
        let mut picture = Bitmap::filled(240, 80, palette.page);
        painter.paint(&frame, 2.0, &mut picture);
        painter.forget(&mut output.textures_delta);
        picture
    };
    let picture = draw();
    assert_eq!(picture, draw());
    let palette = Palette::for_mode(false);
    let count = |colour: Color32| {
        picture.pixels.iter().filter(|&&pixel| pixel == colour.to_array()).count()
    };
    assert_eq!(picture.pixel(0, 0), Some(palette.page.to_array()));
    assert_eq!(picture.pixel(20, 20), Some(palette.accent.to_array()));
    assert!(count(palette.accent) > 10_000, "the card");
    let middle = (20..60).flat_map(|y| (20..220).map(move |x| (x, y)));
    let light = middle.filter(|&(x, y)| picture.pixel(x, y).is_some_and(|[red, ..]| red > 128));
    assert!((50..2_000).contains(&light.count()), "the text");
    assert!(picture.pixels.iter().all(|pixel| pixel[3] == 255), "nothing shines through");
}
