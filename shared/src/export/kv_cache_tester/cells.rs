//! Values as kv-cache-tester's files have them: as Python prints them.
//!
//! Floats are shortest-exact and always have a point or an exponent, truth is `True` or `False`,
//! lists are Python's. An absent value is an empty field, which pandas reads as NaN and leaves out
//! of means and percentiles; the tool writes 0 there.

use std::io::{self, Write};

use crate::units::RunNanos;

/// One field.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Text(String),
    Int(u64),
    Float(f64),
    Bool(bool),
    /// No data.
    None,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<u64> for Cell {
    fn from(value: u64) -> Self {
        Self::Int(value)
    }
}

impl From<u32> for Cell {
    fn from(value: u32) -> Self {
        Self::Int(value.into())
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<bool> for Cell {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::None, Into::into)
    }
}

impl Cell {
    /// The field's text.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Int(value) => value.to_string(),
            Self::Float(value) if value.is_finite() => float(*value),
            Self::Bool(true) => "True".to_owned(),
            Self::Bool(false) => "False".to_owned(),
            Self::Float(_) | Self::None => String::new(),
        }
    }
}

/// A float as Python's `repr` has it.
pub(super) fn float(value: f64) -> String {
    let text = format!("{value:?}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let (sign, size) = match exponent.strip_prefix('-') {
        Some(size) => ('-', size),
        None => ('+', exponent),
    };
    format!("{}e{sign}{size:0>2}", digits.trim_end_matches(".0"))
}

/// A list as Python prints one.
pub(super) fn list(values: impl Iterator<Item = String>) -> String {
    let mut out = "[".to_owned();
    for (place, value) in values.enumerate() {
        if place > 0 {
            out.push_str(", ");
        }
        out.push_str(&value);
    }
    out.push(']');
    out
}

/// A run's instants as seconds since 1970: the wall clock at zero and the run's own clock from
/// there, so that a step of the wall clock moves none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Epoch(pub(super) u64);

impl Epoch {
    /// An instant.
    pub(super) fn seconds(self, time: RunNanos) -> f64 {
        // Divided apart: whole seconds are exact, and so are nanoseconds below one.
        let unix_ns = i128::from(self.0) + i128::from(time.0);
        let (whole, rest) = (unix_ns.div_euclid(NANOS), unix_ns.rem_euclid(NANOS));
        small(whole) + small(rest) / 1e9
    }
}

const NANOS: i128 = 1_000_000_000;

#[expect(clippy::cast_precision_loss, reason = "seconds since 1970, and nanoseconds below one")]
const fn small(value: i128) -> f64 {
    value as f64
}

/// Nanoseconds as seconds.
pub(super) fn seconds(ns: i64) -> f64 {
    crate::metrics::latency::nanos(ns) / 1e9
}

/// Writes a table: its heads, unless it goes on from an earlier one, and its rows.
pub(super) fn write_table(
    heads: Option<&[&str]>,
    rows: &mut dyn Iterator<Item = Vec<Cell>>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let wrong = |error: csv::Error| match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    };
    let mut csv = csv::Writer::from_writer(io::BufWriter::with_capacity(1 << 16, out));
    if let Some(heads) = heads {
        csv.write_record(heads).map_err(wrong)?;
    }
    for row in rows {
        csv.write_record(row.iter().map(Cell::text)).map_err(wrong)?;
    }
    csv.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_python_s() {
        let cells = [
            (Cell::from(0.0), "0.0"),
            (Cell::from(100.0), "100.0"),
            (Cell::from(0.148_338_317_871_093_75), "0.14833831787109375"),
            (Cell::from(1e-7), "1e-07"),
            (Cell::from(1.5e17), "1.5e+17"),
            (Cell::from(f64::NAN), ""),
            (Cell::from(true), "True"),
            (Cell::from(false), "False"),
            (Cell::from(7_u32), "7"),
            (Cell::from(None::<f64>), ""),
            (Cell::from(Some(2_u64)), "2"),
            (Cell::from("a"), "a"),
        ];
        for (cell, text) in cells {
            assert_eq!(cell.text(), text);
        }
        assert_eq!(list([1.5, 2.0].into_iter().map(float)), "[1.5, 2.0]");
        assert_eq!(list(std::iter::empty()), "[]");
    }

    #[test]
    fn instants_are_seconds_since_1970() {
        let epoch = Epoch(1_795_962_009_000_000_000);
        assert_eq!(float(epoch.seconds(RunNanos(381_685_700))), "1795962009.3816857");
        assert_eq!(float(epoch.seconds(RunNanos(-1_000_000_000))), "1795962008.0");
    }
}
