//! One file of conversations: bytes to typed requests and sub-agents, numbered from zero.
//!
//! A file is one conversation, or has one a line. simd-json parses the bytes
//! in place; what it refuses is read again by the slower parser, which takes numbers beyond 64 bits
//! where nobody asks for them and otherwise says where the text goes wrong. Numbers of records,
//! sub-agents, sessions and words are this file's own until `merge` adds what came before.

use std::collections::HashMap;
use std::path::Path;

use onbeat_shared::trace::agentic::{
    Agentic, Call, Conversation, Entry, Group, Kind, Prefix, Scope, Stop, Word, position,
};
use onbeat_shared::trace::blocks::BlockIds;
use onbeat_shared::trace::record::Record;
use onbeat_shared::units::{SessionIndex, TraceNanos};
use serde::de::{self, DeserializeSeed};
use simd_json::{Buffers, Deserializer};

use crate::limits::REQUESTS_MAX;
use crate::trace::TraceError;
use crate::trace::agentic::object::{Name, Object, ObjectSeed, REQUESTS};
use crate::trace::agentic::place;
use crate::trace::error::Fault;
use crate::trace::scan::shown;
use crate::trace::whole::bytes_of;

/// What one file holds.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) agentic: Agentic,
    pub(super) records: Vec<Record>,
    pub(super) blocks: BlockIds,
    /// What the sessions are called.
    pub(super) names: Vec<String>,
    /// Tokens of a block, as the file has it.
    pub(super) block_tokens: Option<u32>,
    pub(super) odd: Odd,
    pub(super) bytes: u64,
}

/// Odd things, each with how often it was met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Odd {
    pub(super) no_output: u64,
    pub(super) empty_prompts: u64,
    pub(super) surplus_ids: u64,
    pub(super) empty_conversations: u64,
    /// Sub-agents whose requests count from the conversation's start instead of their own.
    pub(super) absolute_groups: u64,
}

/// A file while it is read.
#[derive(Debug)]
pub(super) struct Reading<'a> {
    /// Tokens of a block, where the user says.
    block_tokens: Option<u32>,
    /// What a conversation without a name is called.
    stem: &'a str,
    pub(super) found: Found,
    words: HashMap<String, Word>,
    /// Places in lists inside lists, where the parser is.
    pub(super) path: Vec<u32>,
    /// Why parsing ended, and where.
    fault: Option<(String, Fault)>,
}

/// Tokens of a block where neither file nor user says.
const BLOCK_TOKENS: u32 = 64;

/// Reads a file.
pub(super) fn read(path: &Path, block_tokens: Option<u32>) -> Result<Found, TraceError> {
    let (bytes, size) = bytes_of(path)?;
    let stem = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into());
    let mut reading = Reading::new(block_tokens, &stem);
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes).trim_ascii();
    let placed = |at: String, fault| TraceError::Entry { path: path.to_owned(), at, fault };
    if is_lines(text) {
        for (line, number) in text.split(|&byte| byte == b'\n').zip(1_u64..) {
            let line = line.trim_ascii();
            if !line.is_empty() {
                let added = reading.add(line);
                added
                    .map_err(|(at, fault)| placed(joined(&format!("line {number}"), &at), fault))?;
            }
        }
    } else {
        reading.add(text).map_err(|(at, fault)| placed(at, fault))?;
    }
    reading.found.bytes = size;
    Ok(reading.found)
}

/// Two halves of a place in a file.
fn joined(first: &str, second: &str) -> String {
    if second.is_empty() { first.to_owned() } else { format!("{first}: {second}") }
}

/// Whether a text is one object a line: its first line ends one, and another one begins one.
fn is_lines(text: &[u8]) -> bool {
    let mut lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let ends = lines.next().is_some_and(|line| line.len() > 1 && line.ends_with(b"}"));
    ends && lines.find(|line| !line.is_empty()).is_some_and(|line| line.starts_with(b"{"))
}

/// What the slower parser says about a text that is no JSON.
fn broken(error: &serde_json::Error, text: &[u8]) -> Fault {
    if let Err(error) = std::str::from_utf8(text) {
        let byte = error.valid_up_to() + 1;
        return Fault::line(format!("bytes that are not UTF-8 at byte {byte}"), "UTF-8 text");
    }
    let words = error.to_string();
    let words = words.split(" at line ").next().unwrap_or_default();
    let line = text.split(|&byte| byte == b'\n').nth(error.line().saturating_sub(1));
    let rest = line.and_then(|line| line.get(error.column().saturating_sub(1)..));
    let cut = if error.is_eof() { " (is the file cut?)" } else { "" };
    let found = format!(
        "{words}{cut} at line {}, column {}: {}",
        error.line(),
        error.column(),
        shown(rest.unwrap_or_default())
    );
    Fault::line(found, "a JSON object with a conversation's requests")
}

impl<'a> Reading<'a> {
    fn new(block_tokens: Option<u32>, stem: &'a str) -> Self {
        Self {
            block_tokens,
            stem,
            found: Found::default(),
            words: HashMap::new(),
            path: Vec::new(),
            fault: None,
        }
    }

    /// Ends the parsing for a reason that is kept.
    pub(super) fn refuse<E: de::Error>(&mut self, fault: Fault) -> E {
        self.fault = Some((position(self.path.iter().copied()), fault));
        E::custom("refused")
    }

    /// Adds the conversation that a text is.
    fn add(&mut self, text: &[u8]) -> Result<(), (String, Fault)> {
        let object = match self.parse_fast(text) {
            Ok(object) => object,
            Err(()) => self.parse_again(text)?,
        };
        self.conversation(object).map_err(|fault| (String::new(), fault))
    }

    /// Gives up without a word: the other parser has better ones.
    fn parse_fast(&mut self, text: &[u8]) -> Result<Object, ()> {
        let kept = self.kept();
        let mut copy = text.to_vec();
        let mut buffers = Buffers::new(copy.len());
        let parsed = Deserializer::from_slice_with_buffers(&mut copy, &mut buffers);
        let read = parsed.and_then(|mut parser| ObjectSeed(self).deserialize(&mut parser));
        read.map_err(|_refused| self.forget(kept))
    }

    fn parse_again(&mut self, text: &[u8]) -> Result<Object, (String, Fault)> {
        let mut parser = serde_json::Deserializer::from_slice(text);
        let read = ObjectSeed(self).deserialize(&mut parser);
        let read = read.and_then(|object| parser.end().map(|()| object));
        read.map_err(|error| {
            let at = position(self.path.iter().copied());
            self.fault.take().unwrap_or_else(|| (at, broken(&error, text)))
        })
    }

    const fn kept(&self) -> (usize, usize, usize, usize) {
        let Found { agentic, records, blocks, .. } = &self.found;
        (records.len(), blocks.len(), agentic.groups.len(), agentic.calls.len())
    }

    fn forget(&mut self, (records, blocks, groups, calls): (usize, usize, usize, usize)) {
        self.found.records.truncate(records);
        self.found.blocks.truncate(blocks);
        self.found.agentic.groups.truncate(groups);
        self.found.agentic.calls.truncate(calls);
        self.path.clear();
        self.fault = None;
    }

    /// What the object of a list of requests is.
    pub(super) fn entry(&mut self, object: Object) -> Result<Entry, Fault> {
        let is_group = match object.get(Name::Type) {
            given if given.name(Name::Type.key()) == Ok(Some("subagent".to_owned())) => true,
            _ => object.entries.is_some() && object.get(Name::In).is_nothing(),
        };
        if is_group { self.group(object) } else { self.request(&object) }
    }

    fn request(&mut self, object: &Object) -> Result<Entry, Fault> {
        let at = object.get(Name::T).instant(Name::T.key())?;
        let at = at.ok_or_else(|| object.get(Name::T).wrong("t", "a number of seconds"))?;
        let input_tokens = object.get(Name::In).tokens(Name::In.key())?.ok_or_else(|| {
            object.get(Name::In).wrong("in", "a whole number of tokens, 0 or more")
        })?;
        let output_tokens = object.get(Name::Out).tokens(Name::Out.key())?;
        let place = self.found.records.len();
        if place == REQUESTS_MAX {
            let right = format!("at most {REQUESTS_MAX} requests");
            return Err(Fault::line("one request too many", right));
        }
        self.found.odd.no_output += u64::from(output_tokens == Some(0));
        self.found.odd.empty_prompts += u64::from(input_tokens == 0);
        let time = |name: Name| object.get(name).duration(name.key());
        let call = Call {
            model: self.word(object, Name::Model)?,
            kind: kind(object.get(Name::Type).name(Name::Type.key())?.as_deref()),
            input: object.input,
            output: object.output,
            stop: stop(object.get(Name::Stop).name(Name::Stop.key())?.as_deref()),
            output_tokens: output_tokens.unwrap_or(0),
            api_ns: time(Name::ApiTime)?,
            think_ns: time(Name::ThinkTime)?,
            first_token_ns: time(Name::Ttft)?,
            group: None,
            place: self.path.last().copied().unwrap_or(0),
        };
        self.found.agentic.calls.push(call);
        let (first, count) = object.ids;
        self.found.records.push(Record {
            row: 0,
            at: TraceNanos(at),
            input_tokens,
            output_tokens: output_tokens.map(|tokens| tokens.max(1)),
            session: SessionIndex(0),
            turn: 0,
            first_block: first as u64,
            block_count: u32::try_from(count).expect("BLOCK_IDS_MAX fits"),
        });
        Ok(Entry::Request(u32::try_from(place).expect("bounded by REQUESTS_MAX")))
    }

    fn group(&mut self, object: Object) -> Result<Entry, Fault> {
        let count = |name: Name| object.get(name).count(name.key());
        let number = u32::try_from(self.found.agentic.groups.len()).expect("fewer than requests");
        let at = object.get(Name::T).instant(Name::T.key())?;
        let group = Group {
            agent_id: object.get(Name::AgentId).name(Name::AgentId.key())?.unwrap_or_default(),
            kind: self.word(&object, Name::SubagentType)?,
            status: self.word(&object, Name::Status)?,
            // One without a time starts with what it stands behind: see `place`.
            at: TraceNanos(at.unwrap_or(place::NO_TIME)),
            duration_ms: count(Name::DurationMs)?,
            total_tokens: count(Name::TotalTokens)?,
            tool_use_count: count(Name::ToolUseCount)?,
            prefix: prefix(&object)?,
            models: self.words(&object.models)?,
            entries: object.entries.unwrap_or_default(),
            parent: None,
            place: self.path.last().copied().unwrap_or(0),
            session: None,
        };
        let Agentic { groups, calls, .. } = &mut self.found.agentic;
        for entry in &group.entries {
            match *entry {
                Entry::Request(record) => calls[record as usize].group = Some(number),
                Entry::Group(inner) => groups[inner as usize].parent = Some(number),
            }
        }
        groups.push(group);
        Ok(Entry::Group(number))
    }

    fn conversation(&mut self, object: Object) -> Result<(), Fault> {
        let prefix = prefix(&object)?;
        let given = object.get(Name::BlockSize).tokens(Name::BlockSize.key())?;
        if given == Some(0) {
            return Err(object.get(Name::BlockSize).wrong("block_size", "1 token or more"));
        }
        let block_tokens = self.block_tokens.or(given).unwrap_or(BLOCK_TOKENS);
        let before = *self.found.block_tokens.get_or_insert(block_tokens);
        if before != block_tokens {
            let right = format!("{before}, as in the conversation before");
            return Err(object.get(Name::BlockSize).wrong("block_size", right));
        }
        let scope = match object.get(Name::Scope).name(Name::Scope.key())?.as_deref() {
            None | Some("local") => Scope::Local,
            Some("global") => Scope::Global,
            Some(_) => {
                return Err(object.get(Name::Scope).wrong("hash_id_scope", "local or global"));
            }
        };
        let id = object.get(Name::Id).name(Name::Id.key())?.filter(|id| !id.is_empty());
        let models = self.words(&object.models)?;
        let Some(entries) = object.entries else {
            return Err(Fault::field(REQUESTS, "nothing", "a list of requests"));
        };
        let end = |conversation: &Conversation| conversation.records.end;
        let first = self.found.agentic.conversations.last().map_or(0, end);
        let last = u32::try_from(self.found.records.len()).expect("bounded by REQUESTS_MAX");
        let conversation = Conversation {
            id: id.unwrap_or_else(|| self.stem.to_owned()),
            file: 0,
            scope,
            prefix,
            models,
            entries,
            records: first..last,
            session: SessionIndex(0),
        };
        self.found.odd.empty_conversations += u64::from(first == last);
        place::place(&mut self.found, conversation, block_tokens);
        Ok(())
    }

    fn word(&mut self, object: &Object, name: Name) -> Result<Option<Word>, Fault> {
        let text = object.get(name).name(name.key())?.filter(|text| !text.is_empty());
        text.map(|text| self.number(text, name.key())).transpose()
    }

    fn words(&mut self, texts: &[String]) -> Result<Vec<Word>, Fault> {
        texts.iter().map(|text| self.number(text.clone(), "models")).collect()
    }

    fn number(&mut self, text: String, field: &'static str) -> Result<Word, Fault> {
        if let Some(&word) = self.words.get(&text) {
            return Ok(word);
        }
        let words = &mut self.found.agentic.words;
        let word = u16::try_from(words.len()).map(Word).map_err(|_too_many| {
            Fault::field(field, "one name too many", "at most 65,536 different names")
        })?;
        words.push(text.clone());
        self.words.insert(text, word);
        Ok(word)
    }
}

fn prefix(object: &Object) -> Result<Prefix, Fault> {
    let tokens = |name: Name| object.get(name).tokens(name.key());
    Ok(Prefix {
        tool_tokens: tokens(Name::ToolTokens)?,
        system_tokens: tokens(Name::SystemTokens)?,
    })
}

fn kind(name: Option<&str>) -> Kind {
    match name {
        None | Some("s" | "streaming") => Kind::Streamed,
        Some("n" | "non_streaming") => Kind::Whole,
        Some(_) => Kind::Unknown,
    }
}

fn stop(name: Option<&str>) -> Stop {
    match name {
        None | Some("") => Stop::Unsaid,
        Some("tool_use") => Stop::ToolUse,
        Some("end_turn") => Stop::EndTurn,
        Some("max_tokens") => Stop::MaxTokens,
        Some(_) => Stop::Other,
    }
}
