//! Values over time from the rows of a report: one for each period or slice.
//!
//! What is drawn is chosen where a page's dashboards are; how is [`super::chart`]'s.

use super::chart::{Series, Shape};

/// The shortest time that a page can be about.
pub(super) const LEAST_S: f64 = 1e-3;
pub(super) const PER_SECOND: &str = " tok/s";
pub(super) const PERCENT: &str = " %";

/// The rows that series are made of.
#[derive(Debug)]
pub(super) struct Of<'a, T> {
    pub(super) rows: &'a [T],
}

impl<T> Clone for Of<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Of<'_, T> {}

impl<T> Of<'_, T> {
    /// One value of each row.
    pub(super) fn series(
        self,
        name: &'static str,
        unit: &'static str,
        shape: Shape,
        colour: u8,
        value: impl Fn(&T) -> Option<f64>,
    ) -> Series {
        let values = self.rows.iter().map(value).collect();
        Series { name, unit, shape, is_right: false, colour, values }
    }
}

/// The same on the right axis.
pub(super) fn right(series: Series) -> Series {
    Series { is_right: true, ..series }
}

pub(super) fn in_percent(share: Option<f64>) -> Option<f64> {
    share.map(|share| share * 100.0)
}
