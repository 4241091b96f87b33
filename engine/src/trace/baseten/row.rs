//! The columns of a Baseten trace, and what one row of them says.

use std::borrow::Cow;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Int64Array, UInt64Array};
use arrow_schema::DataType;
use onbeat_shared::trace::blocks::{BLOCK_IDS_MAX, BlockIds};
use onbeat_shared::units::TraceNanos;

use crate::trace::columns::Batch;
use crate::trace::columns::cells::{Number, Texts, lists, numbers, truths};
use crate::trace::error::Fault;

pub(crate) const TIMESTAMP: &str = "timestamp_start_unix_ms";
pub(crate) const PROMPT: &str = "prompt";
pub(crate) const INPUT: &str = "input_tokens";
pub(crate) const OUTPUT: &str = "output_tokens";
pub(crate) const PROVIDED: &str = "provided_session_id";
pub(crate) const POOR_MAN: &str = "poor_man_session_id";
const HASHES: &str = "total_hashes";
const BLOCK_SIZE: &str = "block_size";
const DURATION: &str = "duration_e2e_ms";
const FIRST_TOKEN: &str = "duration_ttft_ms";
const CANCELLED: &str = "request_canceled";
const CACHED: &str = "cached_tokens_reference";

/// Every column that is read; `output_text` and what else a file has is not.
pub(crate) const ASKED: [&str; 12] = [
    TIMESTAMP,
    INPUT,
    OUTPUT,
    PROVIDED,
    POOR_MAN,
    HASHES,
    BLOCK_SIZE,
    DURATION,
    FIRST_TOKEN,
    CANCELLED,
    CACHED,
    PROMPT,
];

/// The types that a column may have.
pub(crate) fn types_of(column: &str) -> &'static str {
    match column {
        PROMPT => "texts, or bytes that are UTF-8",
        HASHES => "lists of 64-bit whole numbers, or of their hexadecimal texts",
        PROVIDED | POOR_MAN => "texts, or whole numbers",
        CANCELLED => "truth values, or 0 and 1",
        TIMESTAMP => {
            "a Timestamp, or milliseconds since 1970 as numbers: whole, float, decimal or their \
             texts"
        }
        _ => "numbers: whole, float, decimal or their texts",
    }
}

/// What one row says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowFacts<'a> {
    pub(crate) at: TraceNanos,
    pub(crate) input_tokens: u32,
    pub(crate) output_tokens: u32,
    pub(crate) provided: Option<&'a [u8]>,
    pub(crate) poor_man: Option<&'a [u8]>,
    pub(crate) block_count: u32,
    /// Whether one of its block ids is negative.
    pub(crate) signed_ids: bool,
    pub(crate) block_tokens: Option<u32>,
    pub(crate) duration_ns: Option<i64>,
    pub(crate) first_token_ns: Option<i64>,
    pub(crate) cancelled: bool,
    pub(crate) cached_tokens: Option<u32>,
}

/// The columns of a batch, typed.
pub(crate) struct Columns<'a> {
    at: Vec<Number<'a>>,
    input: Vec<Number<'a>>,
    output: Vec<Number<'a>>,
    provided: Vec<Option<Cow<'a, [u8]>>>,
    poor_man: Vec<Option<Cow<'a, [u8]>>>,
    ids: Option<(Vec<Range<usize>>, Ids)>,
    block_size: Vec<Number<'a>>,
    duration: Vec<Number<'a>>,
    first_token: Vec<Number<'a>>,
    cancelled: Vec<Option<bool>>,
    cached: Vec<Number<'a>>,
    prompt: Option<Texts<'a>>,
}

/// The elements of a column of lists: 64-bit names, or what they are instead.
enum Ids {
    /// What nearly all files have.
    Signed(Int64Array),
    Unsigned(UInt64Array),
    Any(Vec<Result<Id, String>>),
}

#[derive(Clone, Copy)]
struct Id {
    bits: u64,
    negative: bool,
}

impl<'a> Columns<'a> {
    /// The columns `asked` for in a batch.
    ///
    /// # Errors
    /// The name and the type of a column that cannot be what it is called.
    pub(crate) fn of(asked: &[&str], batch: &'a Batch) -> Result<Self, (&'static str, String)> {
        let column = |name: &str| -> Option<&'a dyn Array> {
            let place = asked.iter().position(|asked| *asked == name)?;
            batch.columns[place].as_deref()
        };
        let number = |name: &'static str| {
            let column = column(name);
            column.map_or(Ok(Vec::new()), numbers).map_err(|found| (name, found))
        };
        let session = |name: &'static str| {
            column(name).map_or(Ok(Vec::new()), session_ids).map_err(|found| (name, found))
        };
        let ids = match column(HASHES) {
            Some(column) => {
                let (ranges, elements) = lists(column).map_err(|found| (HASHES, found))?;
                let ids = Ids::of(elements.as_ref()).map_err(|found| (HASHES, found))?;
                Some((ranges, ids))
            }
            None => None,
        };
        let prompt = column(PROMPT).map(Texts::of).transpose();
        let cancelled = column(CANCELLED).map_or(Ok(Vec::new()), truths);
        Ok(Self {
            at: number(TIMESTAMP)?,
            input: number(INPUT)?,
            output: number(OUTPUT)?,
            provided: session(PROVIDED)?,
            poor_man: session(POOR_MAN)?,
            ids,
            block_size: number(BLOCK_SIZE)?,
            duration: number(DURATION)?,
            first_token: number(FIRST_TOKEN)?,
            cancelled: cancelled.map_err(|found| (CANCELLED, found))?,
            cached: number(CACHED)?,
            prompt: prompt.map_err(|found| (PROMPT, found))?,
        })
    }

    /// Whether rows say if their client gave up.
    pub(crate) const fn know_cancelled(&self) -> bool {
        !self.cancelled.is_empty()
    }

    /// One row; its block ids are added to `blocks`.
    pub(crate) fn row<'b>(
        &'b self,
        place: usize,
        blocks: &mut BlockIds,
    ) -> Result<RowFacts<'b>, Fault> {
        if let Some(prompt) = &self.prompt {
            check_prompt(prompt.text(place))?;
        }
        let (block_count, signed_ids) = match &self.ids {
            Some((ranges, ids)) => ids.append(ranges[place].clone(), blocks)?,
            None => (0, false),
        };
        let session = |column: &'b [Option<Cow<'a, [u8]>>]| -> Option<&'b [u8]> {
            column.get(place).and_then(|value| value.as_deref())
        };
        Ok(RowFacts {
            at: timestamp(self.at[place])?,
            input_tokens: tokens(INPUT, self.input[place])?,
            output_tokens: tokens(OUTPUT, self.output[place])?,
            provided: session(&self.provided),
            poor_man: session(&self.poor_man),
            block_count,
            signed_ids,
            block_tokens: block_size(self.block_size.get(place))?,
            duration_ns: duration(DURATION, self.duration.get(place))?,
            first_token_ns: duration(FIRST_TOKEN, self.first_token.get(place))?,
            cancelled: self.cancelled.get(place).copied().flatten().unwrap_or(false),
            cached_tokens: cached(self.cached.get(place)),
        })
    }
}

/// Refuses a prompt that is no text.
pub(crate) fn check_prompt(text: Option<Result<&str, std::str::Utf8Error>>) -> Result<&str, Fault> {
    match text {
        Some(Ok(text)) => Ok(text),
        Some(Err(error)) => {
            let found = format!("bytes that are not UTF-8 at byte {}", error.valid_up_to() + 1);
            Err(Fault::field(PROMPT, found, "UTF-8 text"))
        }
        None => Err(Fault::field(PROMPT, "null", "a text")),
    }
}

/// A column of session ids as texts; a whole number is the text of its digits.
fn session_ids(column: &dyn Array) -> Result<Vec<Option<Cow<'_, [u8]>>>, String> {
    if let Ok(texts) = Texts::of(column) {
        return Ok((0..column.len()).map(|row| texts.get(row).map(Cow::Borrowed)).collect());
    }
    let id = |number: Number<'_>| {
        if is_null(number) {
            return Ok(None);
        }
        let whole = number.whole().ok_or_else(|| column.data_type().to_string())?;
        Ok(Some(Cow::Owned(whole.to_string().into_bytes())))
    };
    numbers(column)?.into_iter().map(id).collect()
}

/// Whether a value of an optional column is none: null, or what some writers put for null.
fn is_null(number: Number<'_>) -> bool {
    matches!(number, Number::Null) || matches!(number, Number::Real(value) if value.is_nan())
}

fn timestamp(number: Number<'_>) -> Result<TraceNanos, Fault> {
    let nanos = match number {
        Number::Instant(nanos) => Some(nanos),
        number => number.scaled(6),
    };
    nanos.and_then(|nanos| i64::try_from(nanos).ok()).map(TraceNanos).ok_or_else(|| {
        let right = "milliseconds since 1970, or an instant, within 292 years of it";
        Fault::field(TIMESTAMP, number.shown(), right)
    })
}

fn tokens(column: &'static str, number: Number<'_>) -> Result<u32, Fault> {
    // The top value means "none" in a log.
    let tokens = number.whole().and_then(|whole| u32::try_from(whole).ok());
    tokens.filter(|&tokens| tokens != u32::MAX).ok_or_else(|| {
        let right = format!("a whole number of tokens from 0 to {}", u32::MAX - 1);
        Fault::field(column, number.shown(), right)
    })
}

fn block_size(number: Option<&Number<'_>>) -> Result<Option<u32>, Fault> {
    let Some(&number) = number.filter(|number| !is_null(**number)) else { return Ok(None) };
    let tokens = number.whole().and_then(|whole| u32::try_from(whole).ok());
    tokens.filter(|&tokens| tokens > 0).map(Some).ok_or_else(|| {
        Fault::field(BLOCK_SIZE, number.shown(), "a whole number of tokens above 0, or null")
    })
}

/// Cached tokens are for comparison only: a value that is none is not known, and refuses no trace.
fn cached(number: Option<&Number<'_>>) -> Option<u32> {
    let tokens = number?.whole().and_then(|whole| u32::try_from(whole).ok());
    tokens.filter(|&tokens| tokens != u32::MAX)
}

fn duration(column: &'static str, number: Option<&Number<'_>>) -> Result<Option<i64>, Fault> {
    let Some(&number) = number.filter(|number| !is_null(**number)) else { return Ok(None) };
    let nanos = number.scaled(6).and_then(|nanos| i64::try_from(nanos).ok());
    nanos
        .filter(|&nanos| nanos >= 0)
        .map(Some)
        .ok_or_else(|| Fault::field(column, number.shown(), "milliseconds, 0 or more, or null"))
}

impl Ids {
    fn of(elements: Option<&ArrayRef>) -> Result<Self, String> {
        let Some(elements) = elements else { return Ok(Self::Any(Vec::new())) };
        Ok(match elements.data_type() {
            DataType::Int64 if elements.null_count() == 0 => {
                Self::Signed(elements.as_primitive::<Int64Type>().clone())
            }
            DataType::UInt64 if elements.null_count() == 0 => {
                Self::Unsigned(elements.as_primitive::<UInt64Type>().clone())
            }
            _ => Self::Any(numbers(elements.as_ref())?.into_iter().map(id).collect()),
        })
    }

    /// Adds a row's ids; gives how many they are and whether one is negative.
    fn append(&self, range: Range<usize>, blocks: &mut BlockIds) -> Result<(u32, bool), Fault> {
        let count = u32::try_from(range.len()).expect("offsets of a batch have 31 bits");
        if blocks.len() + range.len() > BLOCK_IDS_MAX {
            let right = format!("at most {BLOCK_IDS_MAX} block ids in the whole trace");
            return Err(Fault::field(HASHES, format!("{count} more ids"), right));
        }
        let mut signed = false;
        match self {
            Self::Signed(ids) => {
                for &id in &ids.values()[range] {
                    blocks.push(id.cast_unsigned());
                    signed |= id < 0;
                }
            }
            Self::Unsigned(ids) => ids.values()[range].iter().for_each(|&id| blocks.push(id)),
            Self::Any(ids) => {
                for id in &ids[range] {
                    let id = id.as_ref().map_err(|found| {
                        let right = "whole 64-bit numbers, or their hexadecimal";
                        Fault::field(HASHES, found.clone(), right)
                    })?;
                    blocks.push(id.bits);
                    signed |= id.negative;
                }
            }
        }
        Ok((count, signed))
    }
}

/// A block id: a 64-bit number, or the text of one in hexadecimal.
fn id(number: Number<'_>) -> Result<Id, String> {
    let whole = match number {
        Number::Text(text) => {
            let text = std::str::from_utf8(text).unwrap_or_default().trim();
            let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
            u64::from_str_radix(digits.unwrap_or(text), 16).ok().map(i128::from)
        }
        number => number.whole(),
    };
    let id = whole.and_then(|whole| {
        let negative = i64::try_from(whole).ok().filter(|&whole| whole < 0);
        let positive = u64::try_from(whole).ok();
        negative
            .map(|whole| Id { bits: whole.cast_unsigned(), negative: true })
            .or_else(|| positive.map(|bits| Id { bits, negative: false }))
    });
    id.ok_or_else(|| number.shown())
}
