//! JSON as serde_json reads it, with every member kept: who reads it member by member has to find
//! the same as who reads the bytes.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A JSON value.
#[derive(Debug)]
pub(super) enum Tree {
    Null,
    Bool(bool),
    /// A whole number that is not negative.
    Count(u64),
    /// A negative one.
    Negative,
    /// One with a point, an exponent, or too large. Which, nobody can tell any more.
    Float,
    Text(String),
    List(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

/// Why there is no tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoTree {
    /// The bytes are not JSON.
    Malformed,
    /// They may be, for a reader that does not judge text, size or depth: bytes that are not UTF-8,
    /// control characters in strings, lone surrogates, huge numbers, many brackets.
    Strict,
}

/// Reads a whole document.
pub(super) fn read(json: &[u8]) -> Result<Tree, NoTree> {
    serde_json::from_slice(json).map_err(|error| {
        let words = error.to_string();
        let is_strict = str::from_utf8(json).is_err()
            || [
                "control character",
                "lone leading surrogate",
                "unexpected end of hex escape",
                "invalid unicode code point",
                "number out of range",
                "recursion limit",
            ]
            .iter()
            .any(|start| words.starts_with(start));
        if is_strict { NoTree::Strict } else { NoTree::Malformed }
    })
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Grower)
    }
}

struct Grower;

impl<'de> Visitor<'de> for Grower {
    type Value = Tree;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Count(value))
    }

    fn visit_i64<E>(self, _value: i64) -> Result<Tree, E> {
        Ok(Tree::Negative)
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        Ok(if value.is_sign_negative() { Tree::Negative } else { Tree::Float })
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tree, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = list.next_element()? {
            elements.push(element);
        }
        Ok(Tree::List(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Tree::Object(members))
    }
}

impl Tree {
    /// The members; none of anything that is no object.
    pub(super) fn members(&self) -> &[(String, Tree)] {
        match self {
            Self::Object(members) => members,
            _ => &[],
        }
    }

    /// The elements; none of anything that is no list.
    pub(super) fn elements(&self) -> &[Tree] {
        match self {
            Self::List(elements) => elements,
            _ => &[],
        }
    }

    /// The string; empty for anything else.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            _ => "",
        }
    }

    /// Whether it is one.
    pub(super) fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }
}
