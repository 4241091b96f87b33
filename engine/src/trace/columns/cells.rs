//! Whatever type a column has → numbers, texts, truth values and lists of numbers.
//!
//! A trace's columns come in every type a writer may have chosen: eight widths of whole numbers,
//! floats, decimals, instants of four units, texts of three layouts, dictionaries. Numbers keep
//! their exact value, with the type's own unit undone only by who asks. A type that cannot mean
//! what is asked for is refused by its name; a single value that cannot be is judged by the caller,
//! who knows its row.

use std::ops::Range;
use std::str::Utf8Error;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float16Type,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use onbeat_shared::trace::decimal::Decimal;

/// One number, exactly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number<'a> {
    Null,
    Whole(i128),
    /// This many times ten to the power of minus `scale`.
    Scaled {
        digits: i128,
        scale: i32,
    },
    Real(f64),
    /// Nanoseconds since 1970, from a column whose type is an instant.
    Instant(i128),
    /// A text that is to be read as a number.
    Text(&'a [u8]),
    /// A value beyond what any trace holds.
    Beyond,
}

/// A column of numbers.
pub(crate) fn numbers(column: &dyn Array) -> Result<Vec<Number<'_>>, String> {
    let nanos = |unit: &TimeUnit| match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    };
    let scaled = |digits: i128, scale: i8| Number::Scaled { digits, scale: i32::from(scale) };
    Ok(match column.data_type() {
        DataType::Null => vec![Number::Null; column.len()],
        DataType::Int8 => each::<Int8Type>(column, |value| Number::Whole(value.into())),
        DataType::Int16 => each::<Int16Type>(column, |value| Number::Whole(value.into())),
        DataType::Int32 => each::<Int32Type>(column, |value| Number::Whole(value.into())),
        DataType::Int64 => each::<Int64Type>(column, |value| Number::Whole(value.into())),
        DataType::UInt8 => each::<UInt8Type>(column, |value| Number::Whole(value.into())),
        DataType::UInt16 => each::<UInt16Type>(column, |value| Number::Whole(value.into())),
        DataType::UInt32 => each::<UInt32Type>(column, |value| Number::Whole(value.into())),
        DataType::UInt64 => each::<UInt64Type>(column, |value| Number::Whole(value.into())),
        DataType::Float16 => each::<Float16Type>(column, |value| Number::Real(value.to_f64())),
        DataType::Float32 => each::<Float32Type>(column, |value| Number::Real(value.into())),
        DataType::Float64 => each::<Float64Type>(column, Number::Real),
        &DataType::Decimal32(_, scale) => {
            each::<Decimal32Type>(column, |value| scaled(value.into(), scale))
        }
        &DataType::Decimal64(_, scale) => {
            each::<Decimal64Type>(column, |value| scaled(value.into(), scale))
        }
        &DataType::Decimal128(_, scale) => {
            each::<Decimal128Type>(column, |value| scaled(value, scale))
        }
        &DataType::Decimal256(_, scale) => each::<Decimal256Type>(column, |value| {
            value.to_i128().map_or(Number::Beyond, |value| scaled(value, scale))
        }),
        DataType::Timestamp(unit, _zone) => {
            let factor = nanos(unit);
            let instant = |value: i64| Number::Instant(i128::from(value) * factor);
            match unit {
                TimeUnit::Second => each::<TimestampSecondType>(column, instant),
                TimeUnit::Millisecond => each::<TimestampMillisecondType>(column, instant),
                TimeUnit::Microsecond => each::<TimestampMicrosecondType>(column, instant),
                TimeUnit::Nanosecond => each::<TimestampNanosecondType>(column, instant),
            }
        }
        DataType::Dictionary(_, values) if !matches!(**values, DataType::Dictionary(..)) => {
            let dictionary = column.as_any_dictionary();
            let values = numbers(dictionary.values().as_ref())?;
            let keys = keys(column);
            keys.into_iter().map(|key| key.map_or(Number::Null, |key| values[key])).collect()
        }
        _ => {
            let texts = Texts::of(column)?;
            (0..column.len()).map(|row| texts.get(row).map_or(Number::Null, Number::Text)).collect()
        }
    })
}

fn each<'a, T: ArrowPrimitiveType>(
    column: &'a dyn Array,
    number: impl Fn(T::Native) -> Number<'a>,
) -> Vec<Number<'a>> {
    column.as_primitive::<T>().iter().map(|value| value.map_or(Number::Null, &number)).collect()
}

/// For each row of a dictionary's column, the place of its value.
fn keys(column: &dyn Array) -> Vec<Option<usize>> {
    let dictionary = column.as_any_dictionary();
    if dictionary.values().is_empty() {
        return vec![None; column.len()];
    }
    let keys = dictionary.normalized_keys().into_iter().enumerate();
    keys.map(|(row, key)| (!dictionary.keys().is_null(row)).then_some(key)).collect()
}

impl Number<'_> {
    /// As a whole number; `None` when it is not one, or is no number.
    pub(crate) fn whole(self) -> Option<i128> {
        match self {
            Self::Whole(value) => Some(value),
            Self::Scaled { digits, scale } => {
                let factor = 10_i128.checked_pow(scale.unsigned_abs())?;
                match scale {
                    ..=0 => digits.checked_mul(factor),
                    _ => (digits % factor == 0).then_some(digits / factor),
                }
            }
            Self::Real(value) if value.fract() == 0.0 => self.scaled(0),
            Self::Real(_) => None,
            Self::Text(text) => {
                let text = std::str::from_utf8(text).ok()?.trim();
                Decimal::parse(text).ok()?.whole().map(i128::from)
            }
            Self::Null | Self::Instant(_) | Self::Beyond => None,
        }
    }

    /// Times ten to the power of `power`, rounded to a whole number; `None` when it is no number or
    /// too large. An instant has a unit of its own and is none.
    pub(crate) fn scaled(self, power: u32) -> Option<i128> {
        let factor = 10_i128.checked_pow(power)?;
        match self {
            Self::Whole(value) => value.checked_mul(factor),
            Self::Scaled { digits, scale } => {
                let shift = i32::try_from(power).ok()?.checked_sub(scale)?;
                let factor = 10_i128.checked_pow(shift.unsigned_abs())?;
                if shift >= 0 { digits.checked_mul(factor) } else { Some(rounded(digits, factor)) }
            }
            Self::Real(value) if value.is_finite() && value.abs() < 1e18 => {
                // Both parts are exact, so only what is below the last place is rounded.
                let whole = value.trunc();
                #[expect(clippy::cast_possible_truncation, reason = "below 1e18, and rounded")]
                let (whole, rest) = {
                    let rest = (value - whole) * factor as f64;
                    (whole as i128, rest.round_ties_even() as i128)
                };
                whole.checked_mul(factor)?.checked_add(rest)
            }
            Self::Text(text) => {
                let text = std::str::from_utf8(text).ok()?.trim();
                Decimal::parse(text).and_then(|number| number.scaled(power)).ok().map(i128::from)
            }
            Self::Null | Self::Real(_) | Self::Instant(_) | Self::Beyond => None,
        }
    }

    /// As a message shows it.
    pub(crate) fn shown(self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Whole(value) => value.to_string(),
            Self::Scaled { digits, scale } => format!("{digits}e{}", -scale),
            Self::Real(value) => value.to_string(),
            Self::Instant(nanos) => format!("an instant ({nanos} ns)"),
            Self::Text(text) => format!("the text {:?}", crate::trace::scan::shown(text)),
            Self::Beyond => "a number of more than 38 digits".to_owned(),
        }
    }
}

/// `value / divisor`, half to even.
fn rounded(value: i128, divisor: i128) -> i128 {
    let (quotient, rest) = (value.div_euclid(divisor), value.rem_euclid(divisor));
    let up = rest * 2 > divisor || (rest * 2 == divisor && quotient % 2 != 0);
    quotient + i128::from(up)
}

/// A column of texts; bytes that claim to be text are not yet known to be UTF-8.
pub(crate) enum Texts<'a> {
    Null,
    Small(&'a arrow_array::StringArray),
    Large(&'a arrow_array::LargeStringArray),
    View(&'a arrow_array::StringViewArray),
    SmallBytes(&'a arrow_array::BinaryArray),
    LargeBytes(&'a arrow_array::LargeBinaryArray),
    ViewBytes(&'a arrow_array::BinaryViewArray),
    Dictionary(Box<Texts<'a>>, Vec<Option<usize>>),
}

impl<'a> Texts<'a> {
    pub(crate) fn of(column: &'a dyn Array) -> Result<Self, String> {
        Ok(match column.data_type() {
            DataType::Null => Self::Null,
            DataType::Utf8 => Self::Small(column.as_string()),
            DataType::LargeUtf8 => Self::Large(column.as_string()),
            DataType::Utf8View => Self::View(column.as_string_view()),
            DataType::Binary => Self::SmallBytes(column.as_binary()),
            DataType::LargeBinary => Self::LargeBytes(column.as_binary()),
            DataType::BinaryView => Self::ViewBytes(column.as_binary_view()),
            DataType::Dictionary(_, values) if !matches!(**values, DataType::Dictionary(..)) => {
                let values = column.as_any_dictionary().values();
                Self::Dictionary(Box::new(Self::of(values.as_ref())?), keys(column))
            }
            other => return Err(other.to_string()),
        })
    }

    /// The text of a row, or where its bytes stop being one; `None` when it is null.
    pub(crate) fn text(&self, row: usize) -> Option<Result<&'a str, Utf8Error>> {
        match self {
            // The reader knows already that these are texts.
            Self::Small(texts) => (!texts.is_null(row)).then(|| Ok(texts.value(row))),
            Self::Large(texts) => (!texts.is_null(row)).then(|| Ok(texts.value(row))),
            Self::View(texts) => (!texts.is_null(row)).then(|| Ok(texts.value(row))),
            Self::Dictionary(values, keys) => keys[row].and_then(|key| values.text(key)),
            _ => self.get(row).map(std::str::from_utf8),
        }
    }

    /// The bytes of a row; `None` when it is null.
    pub(crate) fn get(&self, row: usize) -> Option<&'a [u8]> {
        match self {
            Self::Null => None,
            Self::Small(texts) => (!texts.is_null(row)).then(|| texts.value(row).as_bytes()),
            Self::Large(texts) => (!texts.is_null(row)).then(|| texts.value(row).as_bytes()),
            Self::View(texts) => (!texts.is_null(row)).then(|| texts.value(row).as_bytes()),
            Self::SmallBytes(texts) => (!texts.is_null(row)).then(|| texts.value(row)),
            Self::LargeBytes(texts) => (!texts.is_null(row)).then(|| texts.value(row)),
            Self::ViewBytes(texts) => (!texts.is_null(row)).then(|| texts.value(row)),
            Self::Dictionary(values, keys) => keys[row].and_then(|key| values.get(key)),
        }
    }
}

/// A column of truth values; 0 and 1 are such too.
pub(crate) fn truths(column: &dyn Array) -> Result<Vec<Option<bool>>, String> {
    if column.data_type() == &DataType::Boolean {
        return Ok(column.as_boolean().iter().collect());
    }
    let truth = |number: Number<'_>| number.whole().map(|value| value != 0);
    Ok(numbers(column)?.into_iter().map(truth).collect())
}

/// A column of lists: each row's range of places among the elements, which come in one column.
pub(crate) fn lists(column: &dyn Array) -> Result<(Vec<Range<usize>>, Option<ArrayRef>), String> {
    let place = |offset: i64| usize::try_from(offset).expect("offsets are checked by the reader");
    let ranges = |range: &dyn Fn(usize) -> Range<usize>| -> Vec<Range<usize>> {
        let of = |row| if column.is_null(row) { 0..0 } else { range(row) };
        (0..column.len()).map(of).collect()
    };
    Ok(match column.data_type() {
        DataType::Null => (vec![0..0; column.len()], None),
        DataType::List(_) => {
            let list = column.as_list::<i32>();
            let at = list.value_offsets();
            let range = |row: usize| place(at[row].into())..place(at[row + 1].into());
            (ranges(&range), Some(list.values().clone()))
        }
        DataType::LargeList(_) => {
            let list = column.as_list::<i64>();
            let at = list.value_offsets();
            (ranges(&|row| place(at[row])..place(at[row + 1])), Some(list.values().clone()))
        }
        DataType::FixedSizeList(_, len) => {
            let len = place((*len).into());
            let list = column.as_fixed_size_list();
            (ranges(&|row| row * len..(row + 1) * len), Some(list.values().clone()))
        }
        DataType::ListView(_) => {
            let list = column.as_list_view::<i32>();
            let (at, len) = (list.value_offsets(), list.value_sizes());
            let range =
                |row: usize| place(at[row].into())..place(i64::from(at[row]) + i64::from(len[row]));
            (ranges(&range), Some(list.values().clone()))
        }
        other => return Err(other.to_string()),
    })
}
