//! Values of a conversation's JSON as they were written, and what they mean where they stand.
//!
//! Whether a value is right depends on its member, so the parser keeps what it found and the reader
//! asks here for what it needs. Times pass through `f64`: seconds with up to nine fraction digits
//! are exact to the nanosecond for a hundred days, and the longest public conversation is of five.

use std::fmt;

use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::trace::error::Fault;
use crate::trace::scan::shown;

/// A value as it was written.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Given {
    /// The member is not there.
    #[default]
    Absent,
    Null,
    Bool(bool),
    Whole(i128),
    Real(f64),
    Text(String),
    List,
    Object,
}

impl Given {
    /// Whether there is nothing to read.
    pub(super) const fn is_nothing(&self) -> bool {
        matches!(self, Self::Absent | Self::Null)
    }

    /// A number of tokens; `None` when there is none.
    pub(super) fn tokens(&self, field: &'static str) -> Result<Option<u32>, Fault> {
        let right = || format!("a whole number of tokens from 0 to {}", u32::MAX - 1);
        if self.is_nothing() {
            return Ok(None);
        }
        // The top value means "none" in a log.
        let tokens = self.whole().and_then(|number| u32::try_from(number).ok());
        let tokens = tokens.filter(|&tokens| tokens != u32::MAX);
        tokens.map(Some).ok_or_else(|| self.wrong(field, right()))
    }

    /// A count of something; `None` when there is none.
    pub(super) fn count(&self, field: &'static str) -> Result<Option<u64>, Fault> {
        if self.is_nothing() {
            return Ok(None);
        }
        let count = self.whole().and_then(|number| u64::try_from(number).ok());
        count.map(Some).ok_or_else(|| self.wrong(field, "a whole number, 0 or more, or null"))
    }

    /// An instant in seconds, as nanoseconds; `None` when there is none.
    pub(super) fn instant(&self, field: &'static str) -> Result<Option<i64>, Fault> {
        let nanos = match self {
            Self::Absent | Self::Null => return Ok(None),
            Self::Whole(number) => {
                number.checked_mul(1_000_000_000).and_then(|nanos| i64::try_from(nanos).ok())
            }
            Self::Real(number) => nanos(*number),
            _ => None,
        };
        let right = "a number of seconds within 292 years of zero";
        nanos.map(Some).ok_or_else(|| self.wrong(field, right))
    }

    /// A duration in seconds, as nanoseconds; `None` when there is none.
    pub(super) fn duration(&self, field: &'static str) -> Result<Option<i64>, Fault> {
        match self.instant(field) {
            Ok(Some(nanos)) if nanos < 0 => Err(self.wrong(field, "seconds, 0 or more")),
            Err(_) => Err(self.wrong(field, "a number of seconds, 0 or more")),
            other => other,
        }
    }

    /// A name; `None` when there is none. A number is its own name.
    pub(super) fn name(&self, field: &'static str) -> Result<Option<String>, Fault> {
        match self {
            Self::Absent | Self::Null => Ok(None),
            Self::Text(text) => Ok(Some(text.clone())),
            Self::Whole(number) => Ok(Some(number.to_string())),
            _ => Err(self.wrong(field, "a text")),
        }
    }

    /// The fault of a value that is missing or cannot be meant.
    pub(super) fn wrong(&self, field: &'static str, right: impl Into<String>) -> Fault {
        Fault::field(field, self.found(), right)
    }

    fn found(&self) -> String {
        match self {
            Self::Absent => "nothing".to_owned(),
            Self::Null => "null".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Whole(number) => number.to_string(),
            Self::Real(number) => number.to_string(),
            Self::Text(text) => format!("{:?}", shown(text.as_bytes())),
            Self::List => "a list".to_owned(),
            Self::Object => "an object".to_owned(),
        }
    }

    /// A whole number: `512.0` is one, `512.5` is not.
    fn whole(&self) -> Option<i128> {
        match self {
            Self::Whole(number) => Some(*number),
            #[expect(clippy::cast_possible_truncation, reason = "whole and far below 2^127")]
            Self::Real(number) if number.trunc() == *number && number.abs() < 9e15 => {
                Some(*number as i128)
            }
            _ => None,
        }
    }
}

fn nanos(seconds: f64) -> Option<i64> {
    let nanos = (seconds * 1e9).round();
    // Both ends are exact in `f64`.
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&nanos);
    #[expect(clippy::cast_possible_truncation, reason = "its range was just checked")]
    fits.then_some(nanos as i64)
}

/// Reads any value.
pub(super) struct GivenSeed;

impl<'de> DeserializeSeed<'de> for GivenSeed {
    type Value = Given;

    fn deserialize<D: de::Deserializer<'de>>(self, parser: D) -> Result<Given, D::Error> {
        parser.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for GivenSeed {
    type Value = Given;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Given, E> {
        Ok(Given::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Given, E> {
        Ok(Given::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Given, E> {
        Ok(Given::Whole(i128::from(value)))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Given, E> {
        Ok(Given::Whole(i128::from(value)))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Given, E> {
        Ok(Given::Real(value))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Given, E> {
        Ok(Given::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Given, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Given::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Given, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Given::Object)
    }
}

/// Reads a list of texts, each handed to a function; a lone text counts as a list of one, and
/// anything else as the text "?".
pub(super) struct TextsSeed<F>(pub(super) F);

impl<'de, F: FnMut(&str)> DeserializeSeed<'de> for TextsSeed<F> {
    type Value = ();

    fn deserialize<D: de::Deserializer<'de>>(self, parser: D) -> Result<(), D::Error> {
        parser.deserialize_any(self)
    }
}

impl<'de, F: FnMut(&str)> Visitor<'de> for TextsSeed<F> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of texts")
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: de::Error>(mut self, _value: bool) -> Result<(), E> {
        self.0("?");
        Ok(())
    }

    fn visit_i64<E: de::Error>(mut self, _value: i64) -> Result<(), E> {
        self.0("?");
        Ok(())
    }

    fn visit_u64<E: de::Error>(mut self, _value: u64) -> Result<(), E> {
        self.0("?");
        Ok(())
    }

    fn visit_f64<E: de::Error>(mut self, _value: f64) -> Result<(), E> {
        self.0("?");
        Ok(())
    }

    fn visit_str<E: de::Error>(mut self, text: &str) -> Result<(), E> {
        self.0(text);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element_seed(GivenSeed)? {
            match item {
                Given::Text(text) => self.0(&text),
                _ => self.0("?"),
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        self.0("?");
        Ok(())
    }
}
