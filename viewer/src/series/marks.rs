//! Single requests in a plot: one mark for each, or how many there are where.

use egui_plot::PlotPoint;

/// Single requests in a plot.
#[derive(Clone, Debug, Default)]
pub enum Marks {
    /// None.
    #[default]
    None,
    /// One mark for each.
    Points {
        /// Where, sorted by time.
        points: Vec<PlotPoint>,
        /// Which request each is.
        requests: Vec<u32>,
    },
    /// One mark for each, by group.
    Groups(Vec<MarkGroup>),
    /// Too many for that: how many there are in each cell of a grid.
    Density(Density),
}

/// Single requests of one kind.
#[derive(Clone, Debug)]
pub struct MarkGroup {
    /// Its name in the legend.
    pub name: &'static str,
    /// How its marks look.
    pub look: Look,
    /// Where, sorted by `x`.
    pub points: Vec<PlotPoint>,
    /// Which request each is.
    pub requests: Vec<u32>,
}

/// How marks look; shape and colour say the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// One step of a scale from little to much: place in [`crate::theme::Palette::steps`].
    Step(usize),
    /// One of a few kinds without an order: place in [`crate::theme::Palette::data`].
    Kind(usize),
    /// It is not known where on the scale they belong.
    Unknown,
}

/// Requests counted in the cells of a grid.
#[derive(Clone, Debug, PartialEq)]
pub struct Density {
    /// Cells across.
    pub columns: usize,
    /// Cells up.
    pub rows: usize,
    /// First and last time.
    pub xs: (f64, f64),
    /// Lowest and highest place.
    pub ys: (f64, f64),
    /// Counts, row by row from the top.
    pub counts: Vec<u32>,
    /// A number that differs between different grids, so that a texture made of one is not taken
    /// for another's.
    pub fingerprint: u64,
}
