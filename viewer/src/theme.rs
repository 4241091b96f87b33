//! The only colours, type sizes and spacings of the viewer, in light and dark.
//!
//! Everything drawn takes its colour from a [`Palette`]; no other file names one. The data colours
//! are Okabe and Ito's, which people with any of the common colour deficiencies tell apart, moved
//! in lightness so that each keeps a contrast of about 3:1 or more against its card. Colour is
//! never the only carrier of a meaning: verdicts have a word and a shape, lines have a name and an
//! order.
//! This module decides no layout beyond the constants here.

#![expect(clippy::disallowed_methods, reason = "the one module that makes colours")]

use std::sync::Arc;

use eframe::egui::{
    Color32, Context, CornerRadius, FontData, FontDefinitions, FontFamily, FontId, Frame, Margin,
    Shadow, Stroke, Style, TextStyle, Theme, ThemePreference, Ui, Vec2, Visuals,
    style::{Selection, WidgetVisuals, Widgets},
};

/// The grid everything stands on (points): gaps are 1, 2, 3 or 4 of these.
pub const GRID: f32 = 4.0;
/// Between cards, and around the page.
pub const GUTTER: f32 = 12.0;
/// Inside a card.
pub const CARD_MARGIN: Margin = Margin { left: 12, right: 12, top: 10, bottom: 10 };
/// What a card needs above and below its content: margins and edges.
pub const CARD_CHROME: f32 = 10.0 + 10.0 + 2.0;
/// Height of one table row.
pub const ROW_HEIGHT: f32 = 22.0;
/// Height of a lane of the timeline.
pub const LANE_HEIGHT: f32 = 20.0;
/// Width kept for the labels of a vertical axis, the same in every plot so that times line up.
pub const AXIS_WIDTH: f32 = 52.0;
/// Width of a data line.
pub const LINE_WIDTH: f32 = 1.6;
/// Radius of a request's mark.
pub const POINT_RADIUS: f32 = 2.0;

const CARD_RADIUS: CornerRadius = CornerRadius::same(6);
const CONTROL_RADIUS: CornerRadius = CornerRadius::same(4);

/// The heavier cut, for headings and values.
const MEDIUM: &str = "medium";

/// Colours by meaning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Palette {
    /// Behind the cards.
    pub page: Color32,
    /// The cards, bars and tables.
    pub card: Color32,
    /// Every second row of a table.
    pub stripe: Color32,
    /// Card edges and separators.
    pub edge: Color32,
    /// Lines of a plot's grid.
    pub grid: Color32,
    /// Text.
    pub text: Color32,
    /// Labels, units, explanations.
    pub weak: Color32,
    /// Links, focus, the chosen panel.
    pub accent: Color32,
    /// Behind the chosen control.
    pub accent_soft: Color32,
    /// Good.
    pub good: Color32,
    /// Behind a good verdict.
    pub good_soft: Color32,
    /// Worth a look.
    pub warn: Color32,
    /// Behind a warning.
    pub warn_soft: Color32,
    /// Bad.
    pub bad: Color32,
    /// Behind a bad verdict.
    pub bad_soft: Color32,
    /// Laid over a plot outside the chosen range.
    pub veil: Color32,
    /// The edge of the chosen range, and the cursor.
    pub cursor: Color32,
    /// Data lines, in the order they are used.
    pub data: [Color32; 6],
    /// Steps from little to much: ordered by lightness as well as by hue.
    pub steps: [Color32; 4],
}

/// Names for [`Palette::data`].
pub mod data_colour {
    /// The main line of a plot; the median.
    pub const BLUE: usize = 0;
    /// The second line; the 95th percentile.
    pub const ORANGE: usize = 1;
    /// The third line; the 99th percentile.
    pub const VERMILLION: usize = 2;
    /// The fourth.
    pub const GREEN: usize = 3;
    /// The fifth.
    pub const PURPLE: usize = 4;
    /// What is planned or merely for comparison.
    pub const GREY: usize = 5;
}

const LIGHT: Palette = Palette {
    page: Color32::from_rgb(0xF3, 0xF5, 0xF8),
    card: Color32::from_rgb(0xFF, 0xFF, 0xFF),
    stripe: Color32::from_rgb(0xF7, 0xF9, 0xFB),
    edge: Color32::from_rgb(0xD9, 0xDE, 0xE5),
    grid: Color32::from_rgb(0xE9, 0xED, 0xF2),
    text: Color32::from_rgb(0x1A, 0x1F, 0x26),
    weak: Color32::from_rgb(0x57, 0x61, 0x6D),
    accent: Color32::from_rgb(0x0B, 0x5C, 0xAD),
    accent_soft: Color32::from_rgb(0xE1, 0xEE, 0xFB),
    good: Color32::from_rgb(0x00, 0x7A, 0x5A),
    good_soft: Color32::from_rgb(0xE5, 0xF5, 0xF0),
    warn: Color32::from_rgb(0x96, 0x5A, 0x00),
    warn_soft: Color32::from_rgb(0xFD, 0xF3, 0xDF),
    bad: Color32::from_rgb(0xB8, 0x3A, 0x00),
    bad_soft: Color32::from_rgb(0xFD, 0xEC, 0xE4),
    veil: Color32::from_rgba_premultiplied(0xB7, 0xBA, 0xBE, 0xC0),
    cursor: Color32::from_rgb(0x57, 0x61, 0x6D),
    data: [
        Color32::from_rgb(0x00, 0x72, 0xB2),
        Color32::from_rgb(0xD9, 0x84, 0x00),
        Color32::from_rgb(0xC9, 0x4A, 0x00),
        Color32::from_rgb(0x00, 0x8F, 0x6B),
        Color32::from_rgb(0xA8, 0x4F, 0x86),
        Color32::from_rgb(0x86, 0x8F, 0x9A),
    ],
    steps: [
        Color32::from_rgb(0x3B, 0x1F, 0x6E),
        Color32::from_rgb(0x2A, 0x6B, 0x96),
        Color32::from_rgb(0x14, 0x80, 0x5E),
        Color32::from_rgb(0xB8, 0x86, 0x00),
    ],
};

const DARK: Palette = Palette {
    page: Color32::from_rgb(0x11, 0x14, 0x18),
    card: Color32::from_rgb(0x1A, 0x1E, 0x24),
    stripe: Color32::from_rgb(0x1F, 0x24, 0x2B),
    edge: Color32::from_rgb(0x30, 0x37, 0x40),
    grid: Color32::from_rgb(0x28, 0x2E, 0x36),
    text: Color32::from_rgb(0xE7, 0xEB, 0xF0),
    weak: Color32::from_rgb(0x9D, 0xA7, 0xB3),
    accent: Color32::from_rgb(0x74, 0xB8, 0xF5),
    accent_soft: Color32::from_rgb(0x1E, 0x33, 0x49),
    good: Color32::from_rgb(0x3D, 0xCB, 0xA3),
    good_soft: Color32::from_rgb(0x14, 0x2E, 0x29),
    warn: Color32::from_rgb(0xF0, 0xB4, 0x3C),
    warn_soft: Color32::from_rgb(0x33, 0x2A, 0x16),
    bad: Color32::from_rgb(0xFF, 0x8A, 0x5C),
    bad_soft: Color32::from_rgb(0x3A, 0x22, 0x19),
    veil: Color32::from_rgba_premultiplied(0x11, 0x14, 0x18, 0xB8),
    cursor: Color32::from_rgb(0x9D, 0xA7, 0xB3),
    data: [
        Color32::from_rgb(0x56, 0xB4, 0xE9),
        Color32::from_rgb(0xF0, 0xB0, 0x2C),
        Color32::from_rgb(0xFF, 0x7B, 0x45),
        Color32::from_rgb(0x2F, 0xC2, 0x9A),
        Color32::from_rgb(0xDD, 0x95, 0xC0),
        Color32::from_rgb(0x8C, 0x96, 0xA2),
    ],
    steps: [
        Color32::from_rgb(0x8E, 0x78, 0xD8),
        Color32::from_rgb(0x56, 0xA5, 0xD4),
        Color32::from_rgb(0x4F, 0xCB, 0x9E),
        Color32::from_rgb(0xF4, 0xDC, 0x5A),
    ],
};

impl Palette {
    /// The colours of the theme this `Ui` is drawn in.
    #[must_use]
    pub fn of(ui: &Ui) -> &'static Self {
        Self::for_mode(ui.visuals().dark_mode)
    }

    /// The colours of the dark or the light theme.
    #[must_use]
    pub const fn for_mode(dark: bool) -> &'static Self {
        if dark { &DARK } else { &LIGHT }
    }

    /// How a cell of a density picture with `share` (0 to 1) of the fullest cell's weight looks. A
    /// cell that holds anything is never invisible, so that no lone extreme is lost.
    #[must_use]
    pub fn density(&self, share: f32) -> Color32 {
        let alpha = if share <= 0.0 { 0.0 } else { 0.35 + 0.65 * share.min(1.0) };
        self.data[data_colour::GREY].gamma_multiply(alpha)
    }
}

/// A colour made weaker, for bands under lines.
#[must_use]
pub fn faded(colour: Color32, strength: f32) -> Color32 {
    colour.gamma_multiply(strength)
}

/// Type sizes by purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Full-screen messages.
    Display,
    /// The verdict and panel headings.
    Heading,
    /// Titles of cards and plots.
    Title,
    /// Headline numbers.
    Value,
    /// Ordinary text.
    Body,
    /// Ordinary text that must stand out.
    Strong,
    /// Axis labels, units, footnotes.
    Small,
}

impl Type {
    /// The font of this purpose.
    #[must_use]
    pub fn font(self) -> FontId {
        let medium = || FontFamily::Name(MEDIUM.into());
        match self {
            Self::Display => FontId::new(22.0, medium()),
            Self::Heading => FontId::new(17.0, medium()),
            Self::Title => FontId::new(13.5, medium()),
            Self::Value => FontId::new(21.0, medium()),
            Self::Body => FontId::new(13.5, FontFamily::Proportional),
            Self::Strong => FontId::new(13.5, medium()),
            Self::Small => FontId::new(12.0, FontFamily::Proportional),
        }
    }
}

/// Installs fonts, both themes and the wish for one of them.
pub fn install(ctx: &Context, preference: ThemePreference) {
    ctx.set_fonts(fonts());
    ctx.set_style_of(Theme::Light, style(&LIGHT, Visuals::light()));
    ctx.set_style_of(Theme::Dark, style(&DARK, Visuals::dark()));
    ctx.set_theme(preference);
}

/// The frame of a card.
pub fn card(palette: &Palette) -> Frame {
    Frame::new()
        .fill(palette.card)
        .stroke(Stroke::new(1.0, palette.edge))
        .corner_radius(CARD_RADIUS)
        .inner_margin(CARD_MARGIN)
}

/// The frame of a coloured banner.
pub fn banner(fill: Color32, edge: Color32) -> Frame {
    Frame::new()
        .fill(fill)
        .stroke(Stroke::new(1.0, faded(edge, 0.45)))
        .corner_radius(CARD_RADIUS)
        .inner_margin(CARD_MARGIN)
}

fn fonts() -> FontDefinitions {
    let mut fonts = FontDefinitions::default();
    let regular = FontData::from_static(include_bytes!("../assets/fonts/Roboto-Regular.ttf"));
    let medium = FontData::from_static(include_bytes!("../assets/fonts/Roboto-Medium.ttf"));
    fonts.font_data.insert("Roboto".to_owned(), Arc::new(regular));
    fonts.font_data.insert("Roboto Medium".to_owned(), Arc::new(medium));
    // egui's own fonts stay behind ours for every sign we do not carry.
    let mut fallback = fonts.families.get(&FontFamily::Proportional).cloned().unwrap_or_default();
    // Arrows are in the monospaced font only.
    fallback.extend(fonts.families.get(&FontFamily::Monospace).cloned().unwrap_or_default());
    let behind = |first: &str| {
        std::iter::once(first.to_owned()).chain(fallback.iter().cloned()).collect::<Vec<_>>()
    };
    fonts.families.insert(FontFamily::Proportional, behind("Roboto"));
    fonts.families.insert(FontFamily::Name(MEDIUM.into()), behind("Roboto Medium"));
    fonts
}

fn style(palette: &Palette, visuals: Visuals) -> Style {
    let text_styles = [
        (TextStyle::Small, Type::Small.font()),
        (TextStyle::Body, Type::Body.font()),
        (TextStyle::Button, Type::Body.font()),
        (TextStyle::Heading, Type::Heading.font()),
        (TextStyle::Monospace, FontId::new(12.5, FontFamily::Monospace)),
    ];
    let visuals = visuals_of(palette, visuals);
    let mut style = Style { text_styles: text_styles.into(), visuals, ..Style::default() };
    let spacing = &mut style.spacing;
    spacing.item_spacing = Vec2::new(2.0 * GRID, GRID);
    spacing.button_padding = Vec2::new(10.0, 4.0);
    spacing.interact_size = Vec2::new(32.0, 26.0);
    spacing.window_margin = Margin::same(18);
    spacing.menu_margin = Margin::same(8);
    style.interaction.tooltip_delay = 0.3;
    style.interaction.selectable_labels = true;
    style
}

fn visuals_of(palette: &Palette, base: Visuals) -> Visuals {
    let widget = |fill: Color32, edge: Color32, text: Color32| WidgetVisuals {
        bg_fill: fill,
        weak_bg_fill: fill,
        bg_stroke: Stroke::new(1.0, edge),
        corner_radius: CONTROL_RADIUS,
        fg_stroke: Stroke::new(1.0, text),
        expansion: 0.0,
    };
    let shadow = Shadow {
        offset: [0, 6],
        blur: 24,
        spread: 0,
        color: Color32::from_black_alpha(if base.dark_mode { 140 } else { 40 }),
    };
    Visuals {
        widgets: Widgets {
            noninteractive: widget(palette.card, palette.edge, palette.text),
            inactive: widget(palette.card, palette.edge, palette.text),
            hovered: widget(palette.accent_soft, palette.accent, palette.text),
            active: widget(palette.accent_soft, palette.accent, palette.accent),
            open: widget(palette.accent_soft, palette.accent, palette.text),
        },
        selection: Selection {
            bg_fill: palette.accent_soft,
            stroke: Stroke::new(1.0, palette.accent),
        },
        weak_text_color: Some(palette.weak),
        hyperlink_color: palette.accent,
        faint_bg_color: palette.stripe,
        extreme_bg_color: palette.card,
        text_edit_bg_color: Some(palette.page),
        code_bg_color: palette.page,
        warn_fg_color: palette.warn,
        error_fg_color: palette.bad,
        window_corner_radius: CornerRadius::same(8),
        window_shadow: shadow,
        window_fill: palette.card,
        window_stroke: Stroke::new(1.0, palette.edge),
        menu_corner_radius: CONTROL_RADIUS,
        panel_fill: palette.page,
        popup_shadow: shadow,
        indent_has_left_vline: false,
        ..base
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// WCAG's relative luminance.
    fn luminance(colour: Color32) -> f64 {
        let channel = |value: u8| {
            let value = f64::from(value) / 255.0;
            if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(colour.r()) + 0.7152 * channel(colour.g()) + 0.0722 * channel(colour.b())
    }

    fn contrast(a: Color32, b: Color32) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn text_reads_on_everything_it_stands_on() {
        for palette in [&LIGHT, &DARK] {
            for ground in [palette.page, palette.card, palette.stripe] {
                assert!(contrast(palette.text, ground) >= 7.0);
                assert!(contrast(palette.weak, ground) >= 4.5);
                assert!(contrast(palette.accent, ground) >= 4.5);
            }
            for (text, ground) in [
                (palette.good, palette.good_soft),
                (palette.warn, palette.warn_soft),
                (palette.bad, palette.bad_soft),
                (palette.accent, palette.accent_soft),
            ] {
                assert!(contrast(text, ground) >= 4.5, "{text:?} on {ground:?}");
                assert!(contrast(palette.text, ground) >= 7.0, "{ground:?}");
            }
        }
    }

    #[test]
    fn data_colours_stand_out_from_their_card() {
        for palette in [&LIGHT, &DARK] {
            for (place, &colour) in palette.data.iter().chain(&palette.steps).enumerate() {
                let found = contrast(colour, palette.card);
                assert!(found >= 2.8, "data colour {place}: {found:.2}");
            }
        }
    }

    #[test]
    fn a_cell_with_one_request_is_visible() {
        assert!(LIGHT.density(0.000_1).a() > 80);
        assert_eq!(LIGHT.density(0.0).a(), 0);
    }
}
