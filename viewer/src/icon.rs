//! The window's icon, carried in the program.
//!
//! Some systems show it in the list of windows where no desktop entry is installed. It is the
//! picture that packages carry too (`cargo x icon` makes both).

use eframe::egui::IconData;

const PICTURE: &[u8] = include_bytes!("../assets/desktop/onbeat-viewer-128.png");

/// The icon; `None` if the picture cannot be read, which a test rules out.
#[must_use]
pub fn of_window() -> Option<IconData> {
    let mut reader = png::Decoder::new(std::io::Cursor::new(PICTURE)).read_info().ok()?;
    let mut rgba = vec![0; reader.output_buffer_size()?];
    let info = reader.next_frame(&mut rgba).ok()?;
    (info.color_type == png::ColorType::Rgba).then_some(IconData {
        rgba,
        width: info.width,
        height: info.height,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_can_be_read() {
        let icon = of_window().expect("a picture");
        assert_eq!((icon.width, icon.height), (128, 128));
        assert_eq!(icon.rgba.len(), 4 * 128 * 128);
    }
}
