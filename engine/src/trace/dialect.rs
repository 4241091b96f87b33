//! AIPerf's Mooncake dialect: rows that belong to sessions, wait, or hold what is sent themselves.
//!
//! Beside `input_length` a row may say what is asked in three other ways, and in exactly one of
//! them: `text_input` (a prompt), `messages` (with `tools`, if any), `payload` (a whole body). Rows
//! with one `session_id` are the turns of a session, in file order. A later turn needs no
//! `timestamp`: it waits `delay` milliseconds after the end of the one before it. `extra` is added
//! to the body. Texts are checked here and read by [`texts`] once it is known which are sent.
//!
//! Lines that are whole bodies themselves (`raw_payload`) are the plainest of such rows: what is
//! sent is the line, without its `timestamp` if it has one.

use std::path::Path;

use onbeat_shared::trace::recorded::{Content, Said, SaidLengths, Texts};
use onbeat_shared::trace::{Format, Trace};
use serde::de::IgnoredAny;
use serde_json::{Map, Value as Json};

use crate::trace::TraceError;
use crate::trace::error::Fault;
use crate::trace::keys::Keys;
use crate::trace::lines;
use crate::trace::row::{HASH_IDS, Name, Value};
use crate::trace::rows::RowText;
use crate::trace::scan::{Members, shown};
use crate::trace::spill::Keeper;
use crate::trace::stamp::changed;

const SESSION: &str = "session_id";
const DELAY: &str = "delay";
const TEXT: &str = "text_input";
const MESSAGES: &str = "messages";
const PAYLOAD: &str = "payload";
const TOOLS: &str = "tools";
const EXTRA: &str = "extra";
const PROMPT: &str = "prompt";
/// How later versions of AIPerf say that messages are only what is new.
const MESSAGE_MODE: &str = "message_mode";

/// What one row says beside its lengths and ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) content: Content,
    pub(crate) delay_ns: Option<i64>,
    pub(crate) untimed: bool,
    pub(crate) said: SaidLengths,
}

/// The dialect's columns; empty while no row has any of its members.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) sessions: Keys,
    pub(crate) facts: Vec<Facts>,
    /// Whether lines that are bodies are for the completions endpoint; `None` before the first.
    pub(crate) completions: Option<bool>,
    /// The first line whose body does not go where the first one goes.
    pub(crate) unsettled: Option<u32>,
}

impl Rows {
    /// Adds the next row, the `place`th, if it or one before it has members of the dialect.
    pub(crate) fn add(&mut self, place: usize, text: RowText<'_>) -> Result<Facts, Fault> {
        if text.row.dialect.is_none() && !untimed(text) {
            if !self.facts.is_empty() {
                self.facts.push(Facts::default());
                self.sessions.push(None);
            }
            return Ok(Facts::default());
        }
        while self.facts.len() < place {
            self.facts.push(Facts::default());
            self.sessions.push(None);
        }
        let facts = facts(text)?;
        self.sessions.push(session(text)?.as_deref().map(str::as_bytes));
        self.facts.push(facts);
        Ok(facts)
    }
}

impl Rows {
    /// Adds the next row, which is a whole body: what it asks is the server's affair. Only where it
    /// goes is ours, which messages or a prompt say.
    pub(crate) fn add_body(&mut self, text: RowText<'_>) -> Facts {
        let completions = match (raw(text, MESSAGES), raw(text, PROMPT)) {
            (Some(_), _) => Some(false),
            (None, Some(_)) => Some(true),
            (None, None) => None,
        };
        let is_settled =
            completions == Some(*self.completions.get_or_insert(completions == Some(true)));
        if !is_settled {
            self.unsettled = self.unsettled.or(u32::try_from(self.facts.len()).ok());
        }
        let said = said(text.bytes);
        let facts = Facts { content: Content::Body, delay_ns: None, untimed: untimed(text), said };
        self.sessions.push(None);
        self.facts.push(facts);
        facts
    }
}

/// Whether a row does not say when it was sent.
fn untimed(text: RowText<'_>) -> bool {
    matches!(text.row.value(Name::Timestamp), Value::Absent | Value::Null)
}

/// The raw value of a member that is there and not null.
fn raw<'a>(text: RowText<'a>, key: &str) -> Option<&'a [u8]> {
    Members::of(text.bytes).last_value(key).filter(|value| *value != b"null")
}

fn facts(text: RowText<'_>) -> Result<Facts, Fault> {
    let length = !matches!(text.row.value(Name::InputLength), Value::Absent | Value::Null);
    let contents =
        [(TEXT, Content::Prompt), (MESSAGES, Content::Messages), (PAYLOAD, Content::Body)];
    let mut found = contents.into_iter().filter(|(key, _)| raw(text, key).is_some());
    let (key, content) = found.next().unwrap_or((Name::InputLength.key(), Content::Words));
    if (content != Content::Words && length) || found.next().is_some() {
        let right = "exactly one of input_length, text_input, messages and payload";
        return Err(Fault::field(key, "another way to say what is asked beside it", right));
    }
    if raw(text, TOOLS).is_some() && content != Content::Messages {
        return Err(Fault::field(TOOLS, "tools without messages", "messages beside them"));
    }
    if content != Content::Words && has_ids(text) {
        let right = format!("either {HASH_IDS} with input_length, or {key} without them");
        return Err(Fault::field(HASH_IDS, format!("block ids beside {key}"), right));
    }
    if let Some(value) = raw(text, MESSAGE_MODE) {
        let right = "no such member: each row's messages are all that is sent, so those of the \
                     turns before it belong in them";
        return Err(Fault::field(MESSAGE_MODE, shown(value), right));
    }
    check(text, content)?;
    let delay_ns = match raw(text, DELAY) {
        Some(value) => {
            let nanos = crate::trace::rows::decimal(Some(value), 6).ok();
            let wrong = || Fault::field(DELAY, shown(value), "milliseconds, 0 or more");
            Some(nanos.filter(|&nanos| nanos >= 0).ok_or_else(wrong)?)
        }
        None => None,
    };
    let members = if content == Content::Body { PAYLOAD } else { EXTRA };
    let said = said(raw(text, members).unwrap_or_default());
    Ok(Facts { content, delay_ns, untimed: untimed(text), said })
}

/// Whether a row has block ids.
fn has_ids(text: RowText<'_>) -> bool {
    let listed =
        |ids: &[u8]| ids.iter().any(|byte| !byte.is_ascii_whitespace() && !b"[]".contains(byte));
    raw(text, HASH_IDS).is_some_and(listed)
}

/// The output lengths among an object's members.
fn said(object: &[u8]) -> SaidLengths {
    let mut said = SaidLengths::default();
    for member in Members::of(object) {
        let of_value = || Said::of(Some(std::str::from_utf8(member.value).unwrap_or_default()));
        for (key, length) in [
            ("max_completion_tokens", &mut said.max_completion_tokens),
            ("max_tokens", &mut said.max_tokens),
            ("min_tokens", &mut said.min_tokens),
        ] {
            if member.is_called(key) {
                *length = of_value();
            }
        }
    }
    said
}

/// What is wrong with a value that is not what it should be, or that the parser refused.
fn refusal(
    key: &'static str,
    value: &[u8],
    refused: Option<serde_json::Error>,
    right: &str,
) -> Fault {
    if refused.is_some_and(|error| error.to_string().starts_with("recursion limit")) {
        let right = "one that is nested less deep";
        return Fault::field(key, "a value nested deeper than 128 levels", right);
    }
    Fault::field(key, shown(value), right)
}

/// Refuses texts that no body can be made of.
fn check(text: RowText<'_>, content: Content) -> Result<(), Fault> {
    let object = |key: &'static str| match raw(text, key) {
        None => Ok(()),
        Some(value) => match serde_json::from_slice::<Map<String, Json>>(value) {
            Ok(map) if !map.is_empty() => Ok(()),
            unusable => Err(refusal(key, value, unusable.err(), "an object with members")),
        },
    };
    let list = |key: &'static str| match raw(text, key) {
        None => Ok(Vec::new()),
        Some(value) => match serde_json::from_slice::<Vec<Json>>(value) {
            Ok(list) if !list.is_empty() => Ok(list),
            unusable => Err(refusal(key, value, unusable.err(), "a list that is not empty")),
        },
    };
    match content {
        Content::Words => {}
        Content::Prompt => {
            let value = raw(text, TEXT).unwrap_or_default();
            if serde_json::from_slice::<String>(value).is_err() {
                return Err(Fault::field(TEXT, shown(value), "a text"));
            }
        }
        Content::Messages => {
            let roleless = list(MESSAGES)?.iter().any(|message| !message["role"].is_string());
            if roleless {
                return Err(Fault::field(MESSAGES, "a message without role", "a role in each"));
            }
            list(TOOLS)?;
        }
        Content::Body => object(PAYLOAD)?,
    }
    object(EXTRA)
}

fn session(text: RowText<'_>) -> Result<Option<String>, Fault> {
    let Some(value) = raw(text, SESSION) else { return Ok(None) };
    match serde_json::from_slice::<Json>(value) {
        Ok(Json::String(name)) => Ok(Some(name)),
        Ok(Json::Number(number)) if !number.is_f64() => Ok(Some(number.to_string())),
        _ => Err(Fault::field(SESSION, shown(value), "a text or a whole number")),
    }
}

/// Reads what the records that are `wanted` hold: their own texts, and the members that are added
/// to their bodies.
pub(crate) fn texts(
    path: &Path,
    trace: &Trace,
    wanted: &(dyn Fn(u32) -> bool + Sync),
    memory: u64,
) -> Result<(Texts, Texts), TraceError> {
    let mut keeper = Keeper::new(path, memory);
    let mut texts = Texts::for_records(trace.records.len());
    let mut members = Texts::for_records(trace.records.len());
    let changed = || changed(path);
    let whole = trace.source.format == Format::RawPayload;
    let mut record = 0_u32;
    let facts = lines::for_each_line(path, |_line, bytes| {
        let place = record;
        record += 1;
        let content = trace.recorded.content_of(place);
        if place as usize >= trace.records.len() || !wanted(place) {
            return Ok(());
        }
        let value =
            |key: &str| Members::of(bytes).last_value(key).filter(|value| *value != b"null");
        let verbatim = |key: &str| {
            let text = value(key).and_then(|value| std::str::from_utf8(value).ok());
            text.filter(|text| serde_json::from_str::<IgnoredAny>(text).is_ok()).ok_or_else(changed)
        };
        match content {
            Content::Words => {}
            Content::Prompt => {
                let text = value(TEXT).and_then(|text| serde_json::from_slice::<String>(text).ok());
                texts.put(place, &text.ok_or_else(changed)?);
            }
            Content::Messages => texts.put_json(place, verbatim(MESSAGES)?),
            Content::Body if whole => {
                let body = Members::of(bytes).without(Name::Timestamp.key());
                texts.put_json(place, std::str::from_utf8(&body).map_err(|_torn| changed())?);
            }
            Content::Body => texts.put_json(place, verbatim(PAYLOAD)?),
        }
        keeper.look(&mut texts)?;
        if whole {
            return Ok(());
        }
        let parsed = |key: &str| match value(key) {
            Some(value) => serde_json::from_slice::<Json>(value).map(Some),
            None => Ok(None),
        };
        let tools = parsed(TOOLS).map_err(|_torn| changed())?;
        let extra = parsed(EXTRA).map_err(|_torn| changed())?;
        if tools.is_some() || extra.is_some() {
            let tools = tools.unwrap_or(Json::Null);
            let extra = extra.unwrap_or_else(|| Json::Object(Map::new()));
            members.put_json(place, &format!("{tools} {extra}"));
        }
        Ok(())
    })?;
    if facts.sha256 != trace.source.sha256 {
        return Err(changed());
    }
    Ok((keeper.finish(texts)?, members))
}
