//! A picture as a PNG file: every exported panel and every screenshot ends here.
//!
//! The file holds what was painted, pixel by pixel; how it is put in its place is
//! [`super::file`]'s business.

use std::{
    fs::File,
    io::{self, BufWriter},
};

use crate::raster::Bitmap;

/// Writes a picture as PNG, without its alpha: what is painted on an opaque ground is opaque.
///
/// # Errors
/// If it is too large for a PNG, or writing fails.
pub fn write(picture: &Bitmap, file: &File) -> io::Result<()> {
    let side = |side: usize| u32::try_from(side).map_err(io::Error::other);
    let (width, height) = (side(picture.width)?, side(picture.height)?);
    let mut encoder = png::Encoder::new(BufWriter::new(file), width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::High);
    let mut writer = encoder.write_header().map_err(io_error)?;
    let bytes: Vec<u8> = picture.pixels.iter().flat_map(|&[r, g, b, _]| [r, g, b]).collect();
    writer.write_image_data(&bytes).map_err(io_error)?;
    writer.finish().map_err(io_error)
}

/// The writer's own error, so that a full disk can be told from a wrong picture.
fn io_error(error: png::EncodingError) -> io::Error {
    match error {
        png::EncodingError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::Palette;

    #[test]
    fn a_picture_reads_back() {
        let palette = Palette::for_mode(true);
        let mut picture = Bitmap::filled(3, 2, palette.page);
        picture.pixels[4] = palette.accent.to_array();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.png");
        write(&picture, &File::create(&path).expect("room")).expect("written");
        let file = io::BufReader::new(File::open(&path).expect("there"));
        let mut reader = png::Decoder::new(file).read_info().expect("a PNG");
        let mut bytes = vec![0; reader.output_buffer_size().expect("small")];
        let info = reader.next_frame(&mut bytes).expect("its pixels");
        assert_eq!((info.width, info.height), (3, 2));
        let wanted: Vec<u8> = picture.pixels.iter().flat_map(|&[r, g, b, _]| [r, g, b]).collect();
        assert_eq!(bytes, wanted);
    }
}
