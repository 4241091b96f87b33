//! Many requests as a grid of counts, so that a picture of a million of them costs what one of a
//! few thousand costs and no lone extreme is lost: a cell that holds anything is drawn.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use egui_plot::PlotPoint;

use super::picture::Density;

/// Cells of a density picture: about one per 3 × 3 points of a plot on a laptop, and as much again
/// for its margins.
const DENSITY_COLUMNS: usize = 640;
const DENSITY_ROWS: usize = 96;

impl Density {
    /// Counts points in a grid over a stretch and heights. Those beyond count at the edge.
    #[must_use]
    pub fn of(points: impl Iterator<Item = PlotPoint>, xs: (f64, f64), ys: (f64, f64)) -> Self {
        Self::in_cells(points, xs, ys, (DENSITY_COLUMNS, DENSITY_ROWS))
    }

    /// The same in so many cells across and up.
    #[must_use]
    pub fn in_cells(
        points: impl Iterator<Item = PlotPoint>,
        xs: (f64, f64),
        ys: (f64, f64),
        (columns, rows): (usize, usize),
    ) -> Self {
        let mut counts = vec![0; columns * rows];
        for point in points {
            let column = cell((point.x - xs.0) / (xs.1 - xs.0), columns);
            let row = cell((ys.1 - point.y) / (ys.1 - ys.0), rows);
            counts[row * columns + column] += 1;
        }
        let mut hasher = DefaultHasher::new();
        (xs.0.to_bits(), xs.1.to_bits(), ys.0.to_bits(), ys.1.to_bits()).hash(&mut hasher);
        counts.hash(&mut hasher);
        Self { columns, rows, xs, ys, counts, fingerprint: hasher.finish() }
    }
}

/// The cell at a share of the whole, the ends' for what lies beyond them.
fn cell(share: f64, cells: usize) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float-to-integer cast saturates, which is what is wanted"
    )]
    let cell = (share * cells as f64).floor() as usize;
    cell.min(cells - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_counts_in_one_cell_and_those_beyond_at_the_edge() {
        let points = [(0.0, 0.0), (9.99, 5.0), (5.0, 2.5), (-1.0, 99.0), (10.0, -99.0)];
        let points = points.map(|(x, y)| PlotPoint::new(x, y));
        let density = Density::of(points.into_iter(), (0.0, 10.0), (0.0, 5.0));
        assert_eq!(density.counts.iter().sum::<u32>(), 5);
        let at = |column: usize, row: usize| density.counts[row * density.columns + column];
        let (last, bottom) = (density.columns - 1, density.rows - 1);
        assert_eq!((at(0, 0), at(0, bottom)), (1, 1));
        assert_eq!((at(last, 0), at(last, bottom)), (1, 1));
        let moved = Density::of([PlotPoint::new(1.0, 1.0)].into_iter(), (0.0, 10.0), (0.0, 5.0));
        assert_ne!(moved.fingerprint, density.fingerprint);
    }
}
