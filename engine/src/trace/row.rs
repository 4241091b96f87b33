//! One line of JSON, typed: simd-json finds the members, a visitor keeps the ones a trace can have.
//!
//! Block ids go straight into the trace's arena, so a row allocates nothing. Values are kept as
//! what they are (a number, a text, …), because whether that is right depends on the format;
//! numbers that are not whole keep no value here, since their text is read exactly by `scan`.
//! Members nobody knows are skipped at any depth. When a key appears twice the last value counts,
//! and the row says so.

use std::fmt;

use onbeat_shared::trace::blocks::{BLOCK_IDS_MAX, BlockIds};
use serde::Deserializer as _;
use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use simd_json::{Buffers, Deserializer};

/// Parses lines, keeping its buffers.
pub(crate) struct RowParser {
    copy: Vec<u8>,
    buffers: Buffers,
}

/// A value as it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Value {
    /// The member is not there.
    #[default]
    Absent,
    /// `null`.
    Null,
    /// A whole number.
    Whole(i128),
    /// A number with a fraction or an exponent.
    Fraction,
    /// A text.
    Text(String),
    /// A truth value, a list or an object.
    Other,
}

/// A member that a trace row can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Timestamp,
    InputLength,
    OutputLength,
    ChatId,
    ParentChatId,
    Turn,
}

/// The members of one row.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Row {
    values: [Value; Name::ALL.len()],
    /// Whether `hash_ids` is something else than a list of whole numbers (or `null`).
    pub(crate) bad_ids: bool,
    /// More ids than a trace may have.
    pub(crate) too_many_ids: bool,
    /// The first member that only AIPerf's Mooncake dialect has.
    pub(crate) dialect: Option<&'static str>,
    /// A key that appears twice.
    pub(crate) repeated: Option<&'static str>,
}

impl Name {
    pub(crate) const ALL: [Self; 6] = [
        Self::Timestamp,
        Self::InputLength,
        Self::OutputLength,
        Self::ChatId,
        Self::ParentChatId,
        Self::Turn,
    ];

    /// The key in the file.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Timestamp => "timestamp",
            Self::InputLength => "input_length",
            Self::OutputLength => "output_length",
            Self::ChatId => "chat_id",
            Self::ParentChatId => "parent_chat_id",
            Self::Turn => "turn",
        }
    }
}

/// The key of a row's block ids.
pub(crate) const HASH_IDS: &str = "hash_ids";

/// Members that change what a row means and that only a later reader understands.
pub(crate) const DIALECT: [&str; 8] =
    ["session_id", "delay", "text_input", "messages", "payload", "tools", "extra", "message_mode"];

impl Row {
    /// One member.
    pub(crate) const fn value(&self, name: Name) -> &Value {
        &self.values[name as usize]
    }
}

impl fmt::Debug for RowParser {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RowParser").finish_non_exhaustive()
    }
}

impl RowParser {
    pub(crate) fn new() -> Self {
        Self { copy: Vec::new(), buffers: Buffers::new(4096) }
    }

    /// Parses a line; its block ids are added to `ids`, also when the row is refused.
    ///
    /// # Errors
    /// When the line is not one JSON object; `diagnose` says why.
    pub(crate) fn parse(&mut self, line: &[u8], ids: &mut BlockIds) -> Result<Row, NotAnObject> {
        let first_id = ids.len();
        self.parse_fast(line, ids).or_else(|refused| {
            // Numbers beyond 64 bits are JSON too, in members that nobody asks for.
            ids.truncate(first_id);
            let Ok(text) = std::str::from_utf8(line) else { return Err(refused) };
            let mut parser = serde_json::Deserializer::from_str(text);
            let row = parser.deserialize_map(RowVisitor { ids });
            row.and_then(|row| parser.end().map(|()| row)).map_err(|_slower_words| refused)
        })
    }

    fn parse_fast(&mut self, line: &[u8], ids: &mut BlockIds) -> Result<Row, NotAnObject> {
        self.copy.clear();
        self.copy.extend_from_slice(line);
        let parsed = Deserializer::from_slice_with_buffers(&mut self.copy, &mut self.buffers);
        let mut parser = parsed.map_err(NotAnObject::because)?;
        parser.deserialize_map(RowVisitor { ids }).map_err(NotAnObject::because)
    }
}

/// The line is not one JSON object.
#[derive(Debug)]
pub(crate) struct NotAnObject(String);

impl NotAnObject {
    // The parser's own errors are not kept: their type names the parser, not the fault.
    #[expect(clippy::needless_pass_by_value, reason = "the shape map_err wants")]
    fn because(error: simd_json::Error) -> Self {
        Self(format!("{:?}", error.error()))
    }
}

impl fmt::Display for NotAnObject {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// What a key leads to.
enum Key {
    Known(Name),
    HashIds,
    Dialect(&'static str),
    Unknown,
}

struct KeyVisitor;

impl<'de> DeserializeSeed<'de> for KeyVisitor {
    type Value = Key;

    fn deserialize<D: de::Deserializer<'de>>(self, parser: D) -> Result<Key, D::Error> {
        parser.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyVisitor {
    type Value = Key;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a key")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<Key, E> {
        if key == HASH_IDS {
            return Ok(Key::HashIds);
        }
        if let Some(name) = Name::ALL.into_iter().find(|name| name.key() == key) {
            return Ok(Key::Known(name));
        }
        let dialect = DIALECT.into_iter().find(|&name| name == key);
        Ok(dialect.map_or(Key::Unknown, Key::Dialect))
    }
}

struct RowVisitor<'a> {
    ids: &'a mut BlockIds,
}

impl<'de> Visitor<'de> for RowVisitor<'_> {
    type Value = Row;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("one JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Row, A::Error> {
        let mut row = Row::default();
        let first_id = self.ids.len();
        let mut ids_seen = false;
        while let Some(key) = members.next_key_seed(KeyVisitor)? {
            match key {
                Key::Known(name) => {
                    let value = members.next_value_seed(ValueVisitor)?;
                    let slot = &mut row.values[name as usize];
                    if *slot != Value::Absent {
                        row.repeated = Some(name.key());
                    }
                    *slot = value;
                }
                Key::HashIds => {
                    if ids_seen {
                        row.repeated = Some(HASH_IDS);
                    }
                    ids_seen = true;
                    self.ids.truncate(first_id);
                    let read = members.next_value_seed(IdsVisitor { ids: &mut *self.ids })?;
                    row.bad_ids = read == IdsRead::Bad;
                    row.too_many_ids = read == IdsRead::TooMany;
                }
                Key::Dialect(name) => {
                    let value = members.next_value_seed(ValueVisitor)?;
                    if value != Value::Null && row.dialect.is_none() {
                        row.dialect = Some(name);
                    }
                }
                Key::Unknown => {
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(row)
    }
}

struct ValueVisitor;

impl<'de> DeserializeSeed<'de> for ValueVisitor {
    type Value = Value;

    fn deserialize<D: de::Deserializer<'de>>(self, parser: D) -> Result<Value, D::Error> {
        parser.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: de::Error>(self, _value: bool) -> Result<Value, E> {
        Ok(Value::Other)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Whole(i128::from(value)))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Whole(i128::from(value)))
    }

    fn visit_f64<E: de::Error>(self, _value: f64) -> Result<Value, E> {
        Ok(Value::Fraction)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Other)
    }
}

/// How the reading of `hash_ids` went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IdsRead {
    Good,
    Bad,
    TooMany,
}

struct IdsVisitor<'a> {
    ids: &'a mut BlockIds,
}

impl<'de> DeserializeSeed<'de> for IdsVisitor<'_> {
    type Value = IdsRead;

    fn deserialize<D: de::Deserializer<'de>>(self, parser: D) -> Result<IdsRead, D::Error> {
        parser.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for IdsVisitor<'_> {
    type Value = IdsRead;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of block ids")
    }

    fn visit_unit<E: de::Error>(self) -> Result<IdsRead, E> {
        Ok(IdsRead::Good)
    }

    fn visit_bool<E: de::Error>(self, _value: bool) -> Result<IdsRead, E> {
        Ok(IdsRead::Bad)
    }

    fn visit_i64<E: de::Error>(self, _value: i64) -> Result<IdsRead, E> {
        Ok(IdsRead::Bad)
    }

    fn visit_u64<E: de::Error>(self, _value: u64) -> Result<IdsRead, E> {
        Ok(IdsRead::Bad)
    }

    fn visit_f64<E: de::Error>(self, _value: f64) -> Result<IdsRead, E> {
        Ok(IdsRead::Bad)
    }

    fn visit_str<E: de::Error>(self, _text: &str) -> Result<IdsRead, E> {
        Ok(IdsRead::Bad)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<IdsRead, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(IdsRead::Bad)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<IdsRead, A::Error> {
        let mut read = IdsRead::Good;
        while let Some(item) = items.next_element_seed(ValueVisitor)? {
            match item {
                // Ids are names: a negative one is its own 64-bit pattern.
                Value::Whole(id) if self.ids.len() < BLOCK_IDS_MAX => {
                    let unsigned = u64::try_from(id).ok();
                    let id = unsigned.or_else(|| i64::try_from(id).ok().map(i64::cast_unsigned));
                    self.ids.push(id.expect("JSON integers of the parser fit 64 bits"));
                }
                Value::Whole(_) => read = IdsRead::TooMany,
                _ => read = IdsRead::Bad,
            }
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::*;

    fn parse(line: &str) -> (Row, Vec<u64>) {
        let mut ids = BlockIds::default();
        let row = RowParser::new().parse(line.as_bytes(), &mut ids).expect("an object");
        let count = u32::try_from(ids.len()).expect("few");
        let ids = ids.slice(0, count).iter().collect();
        (row, ids)
    }

    #[test]
    fn members_are_found_in_any_order_among_unknown_ones() {
        let (row, ids) = parse(
            r#"{"hash_ids":[1,2],"zz":{"a":[1,{"b":null}]},"output_length":5,"timestamp":1.5}"#,
        );
        assert_eq!(ids, [1, 2]);
        assert_eq!(row.value(Name::OutputLength), &Value::Whole(5));
        assert_eq!(row.value(Name::Timestamp), &Value::Fraction);
        assert_eq!(row.value(Name::InputLength), &Value::Absent);
        assert_eq!((row.repeated, row.dialect, row.bad_ids), (None, None, false));
    }

    #[test]
    fn the_last_of_a_repeated_key_counts_and_is_told() {
        let (row, ids) = parse(r#"{"turn":1,"turn":2,"hash_ids":[1,2],"hash_ids":[3]}"#);
        assert_eq!(row.value(Name::Turn), &Value::Whole(2));
        assert_eq!(ids, [3]);
        assert_eq!(row.repeated, Some("hash_ids"));
    }

    #[test]
    fn ids_are_64_bit_names() {
        let (row, ids) = parse(r#"{"hash_ids":[18446744073709551615,-1,0]}"#);
        assert_eq!(ids, [u64::MAX, u64::MAX, 0]);
        assert!(!row.bad_ids);
        for bad in ["[1.5]", "[\"a\"]", "7", "{}", "[[1]]", "\"x\"", "true"] {
            assert!(parse(&format!("{{\"hash_ids\":{bad}}}")).0.bad_ids, "{bad}");
        }
        assert!(!parse(r#"{"hash_ids":null}"#).0.bad_ids);
    }

    #[test]
    fn dialect_members_are_noticed_unless_null() {
        assert_eq!(parse(r#"{"session_id":"a","delay":1}"#).0.dialect, Some("session_id"));
        assert_eq!(parse(r#"{"session_id":null}"#).0.dialect, None);
    }

    #[test]
    fn numbers_beyond_64_bits_are_skipped_where_nobody_asks_for_them() {
        let (row, ids) = parse(r#"{"id":123456789012345678901234567890,"turn":1,"hash_ids":[4]}"#);
        assert_eq!((row.value(Name::Turn), ids), (&Value::Whole(1), vec![4]));
        assert!(parse(r#"{"hash_ids":[123456789012345678901234567890]}"#).0.bad_ids);
    }

    #[test]
    fn what_is_no_object_is_refused() {
        let mut ids = BlockIds::default();
        let deep = format!("{{\"a\":{}", "[".repeat(100_000));
        for line in ["[1]", "1", "", "{\"a\":1},", "{\"a\":1", "{\"a\":NaN}", &deep] {
            let parsed = RowParser::new().parse(line.as_bytes(), &mut ids);
            assert!(parsed.is_err(), "{}", &line[..line.len().min(20)]);
        }
    }

    proptest! {
        #[test]
        fn both_parsers_agree_on_damaged_rows(
            at in 0_usize..90, byte in any::<u8>(), cut in 0_usize..90,
        ) {
            let mut line = br#"{"hash_ids":[1,22],"zz":{"a":[1.5e3,"x\n"]},"turn":-5,"chat_id":1.5,"b":null}"#
                .to_vec();
            let len = line.len();
            line[at % len] = byte;
            line.truncate(len - (cut % len) * usize::from(byte > 250));
            let (mut fast_ids, mut slow_ids) = (BlockIds::default(), BlockIds::default());
            let fast = RowParser::new().parse_fast(&line, &mut fast_ids).ok();
            let mut parser = serde_json::Deserializer::from_slice(&line);
            let slow = parser.deserialize_map(RowVisitor { ids: &mut slow_ids });
            let slow = slow.and_then(|row| parser.end().map(|()| row)).ok();
            // They differ on `-0`: whole for one, a fraction for the other, and zero for both.
            if let Some(row) = fast.filter(|_| !line.windows(2).any(|pair| pair == b"-0")) {
                prop_assert_eq!(Some(row), slow);
                prop_assert_eq!(fast_ids, slow_ids);
            }
        }
    }
}
