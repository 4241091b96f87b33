//! What one JSON document of an answer says: content, finish reasons, usage, errors.
//!
//! Understands the chat and completions dialects, streamed (`delta`, `text`) and whole (`message`,
//! `text`), by visiting the members it knows and skipping the rest; nothing is built or allocated.
//! It reports only after the whole document proved to be JSON, so a malformed one leaves no trace.
//! What a document means for the request is decided by [`super::facts`].

use onbeat_shared::log::outcome::FinishReason;
use onbeat_shared::log::record::{ChunkKind, Usage};

use super::json::{Cursor, Malformed, Text};
use super::strings::Strings;
use super::usage;
use crate::limits::CHOICES_MAX;

/// What one choice of a document carried.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Choice {
    pub(super) index: u16,
    /// Bytes of answer text.
    pub(super) text: u32,
    /// Bytes of reasoning text.
    pub(super) reasoning: u32,
    /// Bytes of tool calls' names and arguments.
    pub(super) tool: u32,
    pub(super) finish: Option<FinishReason>,
    /// The server's word for why it gave the choice up, if that is how it ended.
    pub(super) given_up: Option<&'static str>,
}

/// A server's words about an error.
#[derive(Clone, Copy, Debug)]
pub(super) enum Complaint<'a> {
    /// A message.
    Message(Text<'a>),
    /// Whatever stood where a message was expected.
    Raw(&'a [u8]),
}

/// A document without its choices.
#[derive(Clone, Copy, Debug)]
pub(super) struct Document<'a> {
    pub(super) usage: Option<Usage>,
    /// It has a member for choices, if only an empty one.
    pub(super) has_choices: bool,
    /// The document is an error object.
    pub(super) error: Option<Complaint<'a>>,
    /// A `message` or `detail` beside no `error`: words, where an error is known from elsewhere.
    pub(super) message: Option<Complaint<'a>>,
    /// Strings of which no fact depends, except that the counted ones are content.
    pub(super) strings: Strings,
}

impl Choice {
    /// The kinds of content it has.
    pub(super) fn kind(&self) -> ChunkKind {
        let mut kind = ChunkKind(0);
        for (bytes, bit) in [
            (self.text, ChunkKind::TEXT),
            (self.reasoning, ChunkKind::REASONING),
            (self.tool, ChunkKind::TOOL),
        ] {
            if bytes > 0 {
                kind = kind.with(bit);
            }
        }
        kind
    }

    /// Bytes of all its content.
    pub(super) fn bytes(&self) -> u32 {
        self.text.saturating_add(self.reasoning).saturating_add(self.tool)
    }
}

/// Reads a document; `choices` is cleared and filled. Anything but a JSON object is malformed.
pub(super) fn read<'a>(
    json: &'a [u8],
    choices: &mut Vec<Choice>,
) -> Result<Document<'a>, Malformed> {
    choices.clear();
    let mut document = Document {
        usage: None,
        has_choices: false,
        error: None,
        message: None,
        strings: Strings::new(),
    };
    let mut is_error = false;
    let mut cursor = Cursor::new(json);
    cursor.peek()?;
    cursor.object(|cursor, key| {
        match key.name(&mut [0; 40]) {
            b"choices" => {
                document.has_choices = true;
                read_choices(cursor, choices, &mut document.usage)?;
            }
            b"usage" => document.usage = usage::read(cursor)?.or(document.usage),
            b"error" => document.error = read_error(cursor)?,
            b"object" => {
                let object = cursor.string_or_skip()?;
                is_error = object.is_some_and(|text| text.name(&mut [0; 40]) == b"error");
            }
            b"message" | b"detail" => document.message = read_message(cursor)?,
            _ => cursor.skip()?,
        }
        Ok(())
    })?;
    cursor.end()?;
    document.strings = cursor.strings();
    if is_error && document.error.is_none() {
        document.error = document.message.or(Some(Complaint::Raw(json)));
    }
    Ok(document)
}

fn read_choices(
    cursor: &mut Cursor<'_>,
    choices: &mut Vec<Choice>,
    found_usage: &mut Option<Usage>,
) -> Result<(), Malformed> {
    choices.clear();
    if cursor.peek()? != b'[' {
        return cursor.skip();
    }
    cursor.array(|cursor| {
        if cursor.peek()? != b'{' {
            return cursor.skip();
        }
        if choices.len() == CHOICES_MAX {
            return Err(Malformed);
        }
        choices.push(read_choice(cursor, found_usage)?);
        Ok(())
    })
}

fn read_choice(
    cursor: &mut Cursor<'_>,
    found_usage: &mut Option<Usage>,
) -> Result<Choice, Malformed> {
    let mut choice = Choice::default();
    cursor.object(|cursor, key| {
        match key.name(&mut [0; 40]) {
            b"index" => {
                let index = cursor.count_or_skip()?.unwrap_or(0);
                choice.index = u16::try_from(index).unwrap_or(u16::MAX);
            }
            b"delta" | b"message" => read_delta(cursor, &mut choice)?,
            b"text" => choice.text = string_bytes(cursor)?,
            b"finish_reason" => {
                let reason = cursor.string_or_skip()?.filter(|reason| !reason.is_empty());
                choice.finish = reason.map(finish);
                choice.given_up = reason.and_then(given_up);
            }
            // One provider puts the usage here.
            b"usage" => *found_usage = usage::read(cursor)?.or(*found_usage),
            _ => cursor.skip()?,
        }
        Ok(())
    })?;
    Ok(choice)
}

fn finish(text: Text<'_>) -> FinishReason {
    match text.name(&mut [0; 40]) {
        b"stop" => FinishReason::Stop,
        b"length" => FinishReason::Length,
        b"tool_calls" | b"function_call" => FinishReason::ToolCalls,
        b"content_filter" => FinishReason::ContentFilter,
        _ => FinishReason::Other,
    }
}

/// What servers call it when a generation did not come to its end.
const GIVEN_UP: [&str; 6] = ["abort", "aborted", "error", "cancelled", "canceled", "timeout"];

fn given_up(text: Text<'_>) -> Option<&'static str> {
    let mut space = [0; 40];
    let name = text.name(&mut space);
    GIVEN_UP.into_iter().find(|word| word.as_bytes() == name)
}

fn read_delta(cursor: &mut Cursor<'_>, choice: &mut Choice) -> Result<(), Malformed> {
    if cursor.peek()? != b'{' {
        return cursor.skip();
    }
    let mut content = Content { text: choice.text, thinking: 0 };
    let (mut refusal, mut reasoning) = (0, choice.reasoning);
    cursor.object(|cursor, key| {
        match key.name(&mut [0; 40]) {
            b"content" => content = read_content(cursor)?,
            // Some servers send the same reasoning under both names: it counts once.
            b"reasoning_content" | b"reasoning" => {
                reasoning = reasoning.max(string_bytes(cursor)?);
            }
            b"refusal" => refusal = string_bytes(cursor)?,
            b"tool_calls" => read_tool_calls(cursor, choice)?,
            b"function_call" => read_function(cursor, choice)?,
            _ => cursor.skip()?,
        }
        Ok(())
    })?;
    choice.text = content.text.saturating_add(refusal);
    choice.reasoning = if content.thinking > 0 { content.thinking } else { reasoning };
    Ok(())
}

/// Bytes of a content.
#[derive(Clone, Copy, Default)]
struct Content {
    text: u32,
    thinking: u32,
}

/// Content is a string, nothing, or a list of typed parts (text, or thinking with its own parts).
fn read_content(cursor: &mut Cursor<'_>) -> Result<Content, Malformed> {
    let mut content = Content::default();
    if cursor.peek()? != b'[' {
        content.text = string_bytes(cursor)?;
        return Ok(content);
    }
    let Content { text, thinking } = &mut content;
    parts(cursor, &mut |cursor, name| {
        match name {
            b"text" => *text = text.saturating_add(string_bytes(cursor)?),
            b"thinking" if cursor.peek()? == b'[' => parts(cursor, &mut |cursor, name| {
                if name != b"text" {
                    return cursor.skip();
                }
                *thinking = thinking.saturating_add(string_bytes(cursor)?);
                Ok(())
            })?,
            b"thinking" => *thinking = thinking.saturating_add(string_bytes(cursor)?),
            _ => cursor.skip()?,
        }
        Ok(())
    })?;
    Ok(content)
}

/// Visits the members of every object in the array here.
fn parts<'a>(
    cursor: &mut Cursor<'a>,
    member: &mut impl FnMut(&mut Cursor<'a>, &[u8]) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    cursor.array(|cursor| {
        if cursor.peek()? != b'{' {
            return cursor.skip();
        }
        cursor.object(|cursor, key| member(cursor, key.name(&mut [0; 40])))
    })
}

fn read_tool_calls(cursor: &mut Cursor<'_>, choice: &mut Choice) -> Result<(), Malformed> {
    if cursor.peek()? != b'[' {
        return cursor.skip();
    }
    parts(cursor, &mut |cursor, name| {
        if name == b"function" { read_function(cursor, choice) } else { cursor.skip() }
    })
}

fn read_function(cursor: &mut Cursor<'_>, choice: &mut Choice) -> Result<(), Malformed> {
    if cursor.peek()? != b'{' {
        return cursor.skip();
    }
    cursor.object(|cursor, key| match key.name(&mut [0; 40]) {
        b"name" | b"arguments" => {
            choice.tool = choice.tool.saturating_add(string_bytes(cursor)?);
            Ok(())
        }
        _ => cursor.skip(),
    })
}

/// An error is a message, an object with a message, or any other value that is not empty.
fn read_error<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Complaint<'a>>, Malformed> {
    match cursor.peek()? {
        b'"' => {
            let text = cursor.string()?;
            Ok(Some(Complaint::Message(text)).filter(|_| !text.is_empty()))
        }
        b'{' => read_message_object(cursor).map(Some),
        _ => {
            let raw = cursor.raw_value()?;
            let nothing = raw == b"null" || raw == b"false" || raw == b"[]";
            Ok(Some(Complaint::Raw(raw)).filter(|_| !nothing))
        }
    }
}

fn read_message_object<'a>(cursor: &mut Cursor<'a>) -> Result<Complaint<'a>, Malformed> {
    let mut message = None;
    // Twice over the same bytes: an error is rare, and its whole text is wanted if no message is.
    let raw = cursor.raw_value()?;
    Cursor::new(raw).object(|cursor, key| {
        match key.name(&mut [0; 40]) {
            b"message" => message = cursor.string_or_skip()?.filter(|text| !text.is_empty()),
            _ => cursor.skip()?,
        }
        Ok(())
    })?;
    Ok(message.map_or(Complaint::Raw(raw), Complaint::Message))
}

fn read_message<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Complaint<'a>>, Malformed> {
    if cursor.peek()? == b'"' {
        return Ok(Some(Complaint::Message(cursor.string()?)));
    }
    let raw = cursor.raw_value()?;
    Ok(Some(Complaint::Raw(raw)).filter(|_| raw != b"null"))
}

/// Bytes of the string here; 0 for any other value.
#[inline]
fn string_bytes(cursor: &mut Cursor<'_>) -> Result<u32, Malformed> {
    Ok(u32::try_from(cursor.string_length()?).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices(json: &str) -> Vec<(u16, u32, u32, u32, Option<FinishReason>)> {
        let mut found = Vec::new();
        read(json.as_bytes(), &mut found).expect("JSON");
        found.iter().map(|c| (c.index, c.text, c.reasoning, c.tool, c.finish)).collect()
    }

    fn one(choice: &str) -> (u32, u32, u32) {
        let found = choices(&format!(r#"{{"id":"x","choices":[{choice}],"model":"m"}}"#));
        assert_eq!(found.len(), 1);
        (found[0].1, found[0].2, found[0].3)
    }

    #[test]
    fn content_is_found_in_every_shape() {
        for (choice, expected) in [
            (r#"{"index":0,"delta":{"content":"Hel"},"finish_reason":null}"#, (3, 0, 0)),
            (r#"{"delta":{"role":"assistant","content":""}}"#, (0, 0, 0)),
            (r#"{"delta":{"role":"assistant","content":null}}"#, (0, 0, 0)),
            (r#"{"delta":{}}"#, (0, 0, 0)),
            (r#"{"delta":null}"#, (0, 0, 0)),
            (r#"{}"#, (0, 0, 0)),
            (r#"{"text":"a\u00e9\n"}"#, (4, 0, 0)),
            (r#"{"message":{"role":"assistant","content":"Hello"}}"#, (5, 0, 0)),
            (r#"{"delta":{"reasoning_content":"hm"}}"#, (0, 2, 0)),
            (r#"{"delta":{"reasoning":"hm","content":"x"}}"#, (1, 2, 0)),
            (r#"{"delta":{"reasoning":"hm","reasoning_content":"hm"}}"#, (0, 2, 0)),
            (r#"{"delta":{"refusal":"no"}}"#, (2, 0, 0)),
            (
                r#"{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":""}}]}}"#,
                (0, 0, 1),
            ),
            (r#"{"delta":{"tool_calls":[{"function":{"arguments":"{\"a\""}}]}}"#, (0, 0, 4)),
            (r#"{"delta":{"function_call":{"name":"fn"}}}"#, (0, 0, 2)),
            (r#"{"delta":{"content":[{"type":"text","text":"ab"},{"text":"c"}]}}"#, (3, 0, 0)),
            (
                r#"{"delta":{"content":[{"type":"thinking","thinking":[{"text":"hm"}]}]}}"#,
                (0, 2, 0),
            ),
            (r#"{"delta":{"content":[{"thinking":"hm"}],"content":null}}"#, (0, 0, 0)),
            (r#"{"delta":{"content":[{"thinking":"hm"}],"reasoning":"long"}}"#, (0, 2, 0)),
            (r#"{"delta":{"content":"a","content":"bc"}}"#, (2, 0, 0)),
            (r#"{"logprobs":{"content":[{"token":"x"}]},"delta":{"content":"y"}}"#, (1, 0, 0)),
            (r#"{"d\u0065lta":{"cont\u0065nt":"y"}}"#, (1, 0, 0)),
            (r#"{"x":{"delta":{"content":"no"}},"text":null}"#, (0, 0, 0)),
        ] {
            assert_eq!(one(choice), expected, "{choice}");
        }
    }

    #[test]
    fn several_choices_keep_their_index() {
        let json = r#"{"choices":[{"index":1,"text":"B"},{"finish_reason":"stop","index":0}]}"#;
        let expected = vec![(1, 1, 0, 0, None), (0, 0, 0, 0, Some(FinishReason::Stop))];
        assert_eq!(choices(json), expected);
        assert_eq!(choices(r#"{"choices":[]}"#), vec![]);
        assert_eq!(choices(r#"{"choices":null}"#), vec![]);
    }

    #[test]
    fn a_generation_that_was_given_up_is_told_from_one_that_stopped() {
        let given_up = |reason: &str| {
            let mut found = Vec::new();
            let json = format!(r#"{{"choices":[{{"text":"x","finish_reason":{reason}}}]}}"#);
            read(json.as_bytes(), &mut found).expect("JSON");
            (found[0].finish, found[0].given_up)
        };
        for word in GIVEN_UP {
            let other = Some(FinishReason::Other);
            assert_eq!(given_up(&format!("\"{word}\"")), (other, Some(word)));
        }
        assert_eq!(given_up("\"stop\""), (Some(FinishReason::Stop), None));
        assert_eq!(given_up("\"eos\""), (Some(FinishReason::Other), None));
        assert_eq!(given_up("null"), (None, None));
        assert_eq!(given_up("\"\""), (None, None));
        assert_eq!(given_up("\"abort\",\"finish_reason\":\"stop\"").1, None, "the last one counts");
    }

    #[test]
    fn errors_are_told_from_their_absence() {
        let error = |json: &str| {
            let document = read(json.as_bytes(), &mut Vec::new()).expect("JSON");
            document.error.map(|complaint| match complaint {
                Complaint::Raw(raw) => String::from_utf8_lossy(raw).into_owned(),
                Complaint::Message(text) => {
                    let mut out = Vec::new();
                    text.pieces(&mut |piece| out.extend_from_slice(piece));
                    String::from_utf8(out).expect("UTF-8")
                }
            })
        };
        let says = |text: &str| Some(text.to_owned());
        assert_eq!(
            error(r#"{"error":{"message":"engine \"x\"","code":500}}"#),
            says("engine \"x\"")
        );
        assert_eq!(error(r#"{"error":"busy"}"#), says("busy"));
        assert_eq!(error(r#"{"error":{"code":7}}"#), says(r#"{"code":7}"#));
        assert_eq!(error(r#"{"object":"error","message":"old"}"#), says("old"));
        assert_eq!(error(r#"{"error":null,"choices":[]}"#), None);
        assert_eq!(error(r#"{"error":false}"#), None);
        assert_eq!(error(r#"{"object":"chat.completion.chunk","message":"x"}"#), None);
    }

    #[test]
    fn a_document_that_breaks_off_says_nothing() {
        for json in ["", "{", r#"{"choices":[{"text":"x"}]"#, "[]", "7", r#"{"choices":[}]}"#] {
            assert!(read(json.as_bytes(), &mut Vec::new()).is_err(), "{json}");
        }
    }
}
