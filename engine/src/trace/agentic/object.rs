//! The JSON of a conversation, visited: its objects' members, its lists of requests, its ids.
//!
//! Conversations, requests and sub-agents are objects of one shape, told apart once all their
//! members are known, since keys come in any order. Block ids go straight into the arena. A value
//! that cannot be meant ends the parsing and leaves its [`Fault`] with the place it was found at.

use std::fmt;

use onbeat_shared::trace::agentic::{Entry, Parts};
use onbeat_shared::trace::blocks::BLOCK_IDS_MAX;
use serde::de::{self, DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::trace::agentic::file::Reading;
use crate::trace::agentic::given::{Given, GivenSeed, TextsSeed};
use crate::trace::error::Fault;

/// A member whose value is one number or text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Id,
    BlockSize,
    Scope,
    ToolTokens,
    SystemTokens,
    T,
    Type,
    Model,
    In,
    Out,
    Stop,
    ApiTime,
    ThinkTime,
    Ttft,
    AgentId,
    SubagentType,
    Status,
    DurationMs,
    TotalTokens,
    ToolUseCount,
}

impl Name {
    const ALL: [(Self, &'static str); 20] = [
        (Self::Id, "id"),
        (Self::BlockSize, "block_size"),
        (Self::Scope, "hash_id_scope"),
        (Self::ToolTokens, "tool_tokens"),
        (Self::SystemTokens, "system_tokens"),
        (Self::T, "t"),
        (Self::Type, "type"),
        (Self::Model, "model"),
        (Self::In, "in"),
        (Self::Out, "out"),
        (Self::Stop, "stop"),
        (Self::ApiTime, "api_time"),
        (Self::ThinkTime, "think_time"),
        (Self::Ttft, "ttft"),
        (Self::AgentId, "agent_id"),
        (Self::SubagentType, "subagent_type"),
        (Self::Status, "status"),
        (Self::DurationMs, "duration_ms"),
        (Self::TotalTokens, "total_tokens"),
        (Self::ToolUseCount, "tool_use_count"),
    ];

    /// The key in the file.
    pub(super) const fn key(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// The key of a list of requests.
pub(super) const REQUESTS: &str = "requests";
/// The key of a list of block ids.
pub(super) const HASH_IDS: &str = "hash_ids";
/// Deepest nesting of sub-agents: a recursion, and more than anybody's agents do.
const DEPTH_MAX: usize = 32;

/// The members of one object.
#[derive(Debug, Default)]
pub(super) struct Object {
    members: [Given; Name::ALL.len()],
    pub(super) models: Vec<String>,
    pub(super) input: Parts,
    pub(super) output: Parts,
    /// Where its block ids start in the arena, and how many there are.
    pub(super) ids: (usize, usize),
    /// Its list of requests, when it has one.
    pub(super) entries: Option<Vec<Entry>>,
}

impl Object {
    /// One member.
    pub(super) const fn get(&self, name: Name) -> &Given {
        &self.members[name as usize]
    }
}

enum Key {
    Known(Name),
    HashIds,
    Requests,
    Models,
    InputTypes,
    OutputTypes,
    Unknown,
}

struct KeySeed;

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = Key;

    fn deserialize<D: de::Deserializer<'de>>(self, parser: D) -> Result<Key, D::Error> {
        parser.deserialize_str(self)
    }
}

impl Visitor<'_> for KeySeed {
    type Value = Key;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a key")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<Key, E> {
        Ok(match key {
            HASH_IDS => Key::HashIds,
            REQUESTS => Key::Requests,
            "models" => Key::Models,
            "input_types" => Key::InputTypes,
            "output_types" => Key::OutputTypes,
            _ => {
                let known = Name::ALL.into_iter().find(|(_, name)| *name == key);
                known.map_or(Key::Unknown, |(name, _)| Key::Known(name))
            }
        })
    }
}

/// Reads one object.
pub(super) struct ObjectSeed<'r, 'a>(pub(super) &'r mut Reading<'a>);

impl ObjectSeed<'_, '_> {
    fn no_object<E: de::Error>(self, found: &str) -> Result<Object, E> {
        Err(self.0.refuse(Fault::line(found, "an object")))
    }
}

impl<'de> DeserializeSeed<'de> for ObjectSeed<'_, '_> {
    type Value = Object;

    fn deserialize<D: de::Deserializer<'de>>(self, parser: D) -> Result<Object, D::Error> {
        parser.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ObjectSeed<'_, '_> {
    type Value = Object;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Object, E> {
        self.no_object("null")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Object, E> {
        self.no_object(&value.to_string())
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Object, E> {
        self.no_object(&value.to_string())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Object, E> {
        self.no_object(&value.to_string())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Object, E> {
        self.no_object(&value.to_string())
    }

    fn visit_str<E: de::Error>(self, _text: &str) -> Result<Object, E> {
        self.no_object("a text")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _items: A) -> Result<Object, A::Error> {
        self.no_object("a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Object, A::Error> {
        let reading = self.0;
        let mut object = Object::default();
        while let Some(key) = members.next_key_seed(KeySeed)? {
            match key {
                Key::Known(name) => {
                    object.members[name as usize] = members.next_value_seed(GivenSeed)?;
                }
                Key::HashIds => {
                    let first = reading.found.blocks.len();
                    members.next_value_seed(IdsSeed(reading))?;
                    object.ids = (first, reading.found.blocks.len() - first);
                }
                Key::Requests if object.entries.is_some() => {
                    let fault = Fault::field(REQUESTS, "the key twice", "the key once");
                    return Err(reading.refuse(fault));
                }
                Key::Requests => {
                    if reading.path.len() > DEPTH_MAX {
                        let found = format!("sub-agents inside sub-agents, {DEPTH_MAX} deep");
                        return Err(reading.refuse(Fault::field(REQUESTS, found, "fewer")));
                    }
                    object.entries = Some(members.next_value_seed(EntriesSeed(reading))?);
                }
                Key::Models => {
                    let models = &mut object.models;
                    models.clear();
                    members
                        .next_value_seed(TextsSeed(|text: &str| models.push(text.to_owned())))?;
                }
                Key::InputTypes => object.input = parts(&mut members)?,
                Key::OutputTypes => object.output = parts(&mut members)?,
                Key::Unknown => {
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(object)
    }
}

fn parts<'de, A: MapAccess<'de>>(members: &mut A) -> Result<Parts, A::Error> {
    let mut parts = Parts::default();
    members.next_value_seed(TextsSeed(|text: &str| parts = parts.and(Parts::named(text))))?;
    Ok(parts)
}

/// Reads a list of requests and sub-agents.
struct EntriesSeed<'r, 'a>(&'r mut Reading<'a>);

impl EntriesSeed<'_, '_> {
    fn no_list<E: de::Error>(self, found: &str) -> Result<Vec<Entry>, E> {
        Err(self.0.refuse(Fault::field(REQUESTS, found, "a list of requests")))
    }
}

impl<'de> DeserializeSeed<'de> for EntriesSeed<'_, '_> {
    type Value = Vec<Entry>;

    fn deserialize<D: de::Deserializer<'de>>(self, parser: D) -> Result<Vec<Entry>, D::Error> {
        parser.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for EntriesSeed<'_, '_> {
    type Value = Vec<Entry>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of requests")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Vec<Entry>, E> {
        Ok(Vec::new())
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Vec<Entry>, E> {
        self.no_list(&value.to_string())
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Vec<Entry>, E> {
        self.no_list(&value.to_string())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Vec<Entry>, E> {
        self.no_list(&value.to_string())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Vec<Entry>, E> {
        self.no_list(&value.to_string())
    }

    fn visit_str<E: de::Error>(self, _text: &str) -> Result<Vec<Entry>, E> {
        self.no_list("a text")
    }

    fn visit_map<A: MapAccess<'de>>(self, _members: A) -> Result<Vec<Entry>, A::Error> {
        self.no_list("an object")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<Entry>, A::Error> {
        let reading = self.0;
        let mut entries = Vec::new();
        reading.path.push(0);
        while let Some(object) = items.next_element_seed(ObjectSeed(reading))? {
            let entry = match reading.entry(object) {
                Ok(entry) => entry,
                Err(fault) => return Err(reading.refuse(fault)),
            };
            entries.push(entry);
            if let Some(place) = reading.path.last_mut() {
                *place += 1;
            }
        }
        reading.path.pop();
        Ok(entries)
    }
}

/// Reads a list of block ids into the arena.
struct IdsSeed<'r, 'a>(&'r mut Reading<'a>);

impl IdsSeed<'_, '_> {
    fn no_ids<E: de::Error>(self, found: &str) -> Result<(), E> {
        Err(self.0.refuse(Fault::field(HASH_IDS, found, IDS)))
    }
}

const IDS: &str = "a list of whole 64-bit numbers";

impl<'de> DeserializeSeed<'de> for IdsSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: de::Deserializer<'de>>(self, parser: D) -> Result<(), D::Error> {
        parser.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for IdsSeed<'_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(IDS)
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<(), E> {
        self.no_ids(&value.to_string())
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<(), E> {
        self.no_ids(&value.to_string())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<(), E> {
        self.no_ids(&value.to_string())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<(), E> {
        self.no_ids(&value.to_string())
    }

    fn visit_str<E: de::Error>(self, _text: &str) -> Result<(), E> {
        self.no_ids("a text")
    }

    fn visit_map<A: MapAccess<'de>>(self, _members: A) -> Result<(), A::Error> {
        self.no_ids("an object")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let blocks = &mut self.0.found.blocks;
        loop {
            match items.next_element_seed(IdSeed)? {
                None => return Ok(()),
                Some(Some(id)) if blocks.len() < BLOCK_IDS_MAX => blocks.push(id),
                Some(Some(_)) => {
                    let right = format!("at most {BLOCK_IDS_MAX} block ids in the whole trace");
                    return Err(self.0.refuse(Fault::field(HASH_IDS, "more ids", right)));
                }
                Some(None) => {
                    let fault = Fault::field(HASH_IDS, "a list with something else", IDS);
                    return Err(self.0.refuse(fault));
                }
            }
        }
    }
}

/// Reads one id; `None` when it is something else. A negative id is its own 64-bit pattern.
struct IdSeed;

impl<'de> DeserializeSeed<'de> for IdSeed {
    type Value = Option<u64>;

    fn deserialize<D: de::Deserializer<'de>>(self, parser: D) -> Result<Option<u64>, D::Error> {
        parser.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for IdSeed {
    type Value = Option<u64>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a block id")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Option<u64>, E> {
        Ok(None)
    }

    fn visit_bool<E: de::Error>(self, _value: bool) -> Result<Option<u64>, E> {
        Ok(None)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Option<u64>, E> {
        Ok(Some(value.cast_unsigned()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Option<u64>, E> {
        Ok(Some(value))
    }

    fn visit_f64<E: de::Error>(self, _value: f64) -> Result<Option<u64>, E> {
        Ok(None)
    }

    fn visit_str<E: de::Error>(self, _text: &str) -> Result<Option<u64>, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _items: A) -> Result<Option<u64>, A::Error> {
        Err(A::Error::custom("a list inside a list of block ids"))
    }

    fn visit_map<A: MapAccess<'de>>(self, _members: A) -> Result<Option<u64>, A::Error> {
        Err(A::Error::custom("an object inside a list of block ids"))
    }
}
