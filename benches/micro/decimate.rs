//! Thinning for plots: what a frame pays when a line of many points goes to a screen.

use benches::{Bencher, mix};
use egui_plot::PlotPoint;
use onbeat_viewer::decimate::min_max;

/// Width of a large plot, in pixels.
const COLUMNS: usize = 2_000;

pub(crate) fn bench(bencher: &Bencher) {
    if !bencher.wants("viewer_decimate") {
        return;
    }
    let count = bencher.pick(10_000_u32, 3_000_000);
    // Heights that jump about without a random generator: Weyl's sequence.
    let height = |i: u32| f64::from(i.wrapping_mul(2_654_435_769)) / f64::from(u32::MAX);
    let points: Vec<PlotPoint> =
        (0..count).map(|i| PlotPoint::new(f64::from(i), height(i))).collect();
    bencher.measure("viewer_decimate", "point", points.len(), || {
        let kept = min_max(&points, 0.0, f64::from(count), COLUMNS);
        kept.iter().fold(kept.len() as u64, |hash, point| mix(hash, point.y.to_bits()))
    });
}
