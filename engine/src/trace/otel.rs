//! Sessions as OpenTelemetry spans of generative models: one JSON object a file, one span a call.
//!
//! What is read is enough to say what a trace is like: when each call started and ended, what its
//! session is called, tokens where the spans count them, and how long its messages are. Such a
//! trace is not replayed: what a call says depends on the answers to several calls before it, and
//! the spans do not say which.

use std::path::{Path, PathBuf};

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use onbeat_shared::counted::{agreeing, counted};
use onbeat_shared::trace::blocks::BlockIds;
use onbeat_shared::trace::record::Record;
use onbeat_shared::trace::recorded::{Content, File, Recorded};
use onbeat_shared::trace::{Format, Source, Trace, Warning};
use onbeat_shared::units::{SessionIndex, TraceNanos};
use serde_json::Value as Json;

use crate::limits::REQUESTS_MAX;
use crate::trace::TraceError;
use crate::trace::columns::Digest;
use crate::trace::error::Fault;
use crate::trace::keys::{self, Keys};
use crate::trace::scan::shown;
use crate::trace::whole::bytes_of;

/// Where spans have the tokens of a prompt, by age of the convention.
const INPUT: [&str; 2] = ["gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"];
/// Where spans have the tokens of an answer.
const OUTPUT: [&str; 2] = ["gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"];
const MESSAGES: &str = "gen_ai.input.messages";

#[derive(Debug, Default)]
struct Reader {
    records: Vec<Record>,
    contents: Vec<Content>,
    durations: Vec<Option<i64>>,
    sessions: Keys,
    files: Vec<File>,
    bytes: u64,
    /// Spans that are no calls of a model.
    others: u64,
    /// Characters of the messages and most tokens allowed, of each call that says.
    characters: Vec<u64>,
    limits: Vec<u64>,
    /// Calls that start before the end of the one before in their file.
    overlapping: u64,
}

/// Reads the sessions in these files, which lie in the folder `path` or are it.
pub(crate) fn load(path: &Path, files: &[PathBuf]) -> Result<Trace, TraceError> {
    let digest = Digest::of_files(path, files.to_vec())?;
    let mut reader = Reader::default();
    for file in files {
        reader.file(file)?;
    }
    if reader.records.is_empty() {
        return Err(TraceError::file(path, "has spans, but no call of a model among them"));
    }
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let source = Source {
        name,
        sha256: digest.finish()?,
        format: Format::Otel,
        rows: reader.records.len() as u64,
        bytes: reader.bytes,
    };
    Ok(reader.finish(source, path.is_dir()))
}

impl Reader {
    fn file(&mut self, path: &Path) -> Result<(), TraceError> {
        let (text, bytes) = bytes_of(path)?;
        let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
        let first_record = u32::try_from(self.records.len()).expect("bounded by REQUESTS_MAX");
        self.files.push(File { name: name.clone(), first_record });
        self.bytes += bytes;
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
        let whole: Json = serde_json::from_slice(text)
            .map_err(|error| TraceError::file(path, format!("is no JSON: {error}")))?;
        let Some(spans) = whole.get("spans").and_then(Json::as_array) else {
            return Err(TraceError::file(path, "has no list of spans"));
        };
        let mut last_end = i64::MIN;
        for (place, span) in spans.iter().enumerate() {
            let entry = |fault| TraceError::Entry {
                path: path.to_owned(),
                at: format!("spans[{place}]"),
                fault,
            };
            if self.records.len() == REQUESTS_MAX {
                let right = format!("at most {REQUESTS_MAX} calls");
                return Err(entry(Fault::line("one call too many", right)));
            }
            let end = self.span(span, &whole, &name, place).map_err(entry)?;
            if let Some((start, end)) = end {
                self.overlapping += u64::from(start < last_end);
                last_end = last_end.max(end);
            }
        }
        Ok(())
    }

    /// Adds a call; gives when it started and ended.
    fn span(
        &mut self,
        span: &Json,
        whole: &Json,
        file: &str,
        place: usize,
    ) -> Result<Option<(i64, i64)>, Fault> {
        if !span.is_object() {
            return Err(Fault::line(shown(span.to_string().as_bytes()), "a span, an object"));
        }
        let attribute = |name: &str| span.get("attributes").and_then(|own| own.get(name));
        let is_call = [MESSAGES, "gen_ai.request.model", "gen_ai.operation.name"];
        if !is_call.into_iter().any(|name| attribute(name).is_some()) {
            self.others += 1;
            return Ok(None);
        }
        let start = instant(span, "start_time")?;
        let end = instant(span, "end_time")?;
        let count = |names: &[&str]| {
            let number = names.iter().find_map(|name| attribute(name)).and_then(Json::as_u64);
            number.and_then(|number| u32::try_from(number).ok()).filter(|&own| own != u32::MAX)
        };
        let (input, output) = (count(&INPUT), count(&OUTPUT));
        if let Some(messages) = attribute(MESSAGES) {
            self.characters.push(characters(messages)?);
        }
        self.limits.extend(attribute("gen_ai.request.max_tokens").and_then(Json::as_u64));
        let session = ["exgentic.session.id", "session.id", "gen_ai.conversation.id"]
            .into_iter()
            .find_map(|name| attribute(name).and_then(Json::as_str))
            .or_else(|| whole.get("trace_id").and_then(Json::as_str))
            .unwrap_or(file);
        self.sessions.push(Some(session.as_bytes()));
        self.contents.push(if input.is_some() { Content::Words } else { Content::Messages });
        self.durations.push(end.checked_sub(start).filter(|&nanos| nanos >= 0));
        let number = u32::try_from(self.records.len()).expect("bounded by REQUESTS_MAX");
        self.records.push(Record {
            row: place as u64 + 1,
            at: TraceNanos(start),
            input_tokens: input.unwrap_or(0),
            output_tokens: output.map(|tokens| tokens.max(1)),
            session: SessionIndex(number),
            turn: 0,
            first_block: 0,
            block_count: 0,
        });
        Ok(Some((start, end)))
    }

    fn finish(mut self, source: Source, is_folder: bool) -> Trace {
        let (sessions, names) = self.sessions.sessions();
        keys::place(&mut self.records, &sessions);
        let calls = source.rows;
        let mut warnings = Vec::new();
        let mut warn = |rows: u64, words: String| {
            warnings.push(Warning { line: None, rows, words });
        };
        if let Some((least, median, most)) = three(&mut self.characters) {
            warn(
                self.characters.len() as u64,
                format!(
                    "prompts are messages as they were sent, of {least} to {most} characters \
                     (median {median}); their tokens are known where a span counts them"
                ),
            );
        }
        if let Some((least, median, most)) = three(&mut self.limits) {
            let words = format!("answers may have {least} to {most} tokens (median {median})");
            warn(self.limits.len() as u64, words);
        }
        if self.overlapping > 0 {
            let words = format!(
                "{} of {} {} before one of the session's has ended: they fan out",
                self.overlapping,
                counted(calls, "call"),
                agreeing(self.overlapping, "starts", "start")
            );
            warn(self.overlapping, words);
        }
        if self.others > 0 {
            let (spans, are) = (counted(self.others, "span"), agreeing(self.others, "is", "are"));
            warn(self.others, format!("{spans} {are} no call of a model: left out"));
        }
        Trace {
            block_tokens: source.format.block_tokens(),
            source,
            records: self.records,
            blocks: BlockIds::default(),
            sessions: names,
            recorded: Recorded {
                files: if is_folder { self.files } else { Vec::new() },
                duration_ns: self.durations,
                contents: self.contents,
                ..Recorded::default()
            },
            warnings,
        }
    }
}

/// A date and a time of day, in UTC unless it says otherwise.
fn instant(span: &Json, field: &'static str) -> Result<i64, Fault> {
    let wrong = || {
        let found = span.get(field).map_or_else(|| "nothing".to_owned(), Json::to_string);
        let right = "a date and a time, like 2026-02-25T12:00:00.5";
        Fault::field(field, shown(found.as_bytes()), right)
    };
    let text = span.get(field).and_then(Json::as_str).ok_or_else(wrong)?;
    let zoned = text.parse::<jiff::Timestamp>().or_else(|_no_zone| {
        let local: DateTime = text.parse()?;
        local.to_zoned(TimeZone::UTC).map(|zoned| zoned.timestamp())
    });
    let nanos = zoned.map_err(|_no_time| wrong())?.as_nanosecond();
    i64::try_from(nanos).map_err(|_beyond_64_bits| wrong())
}

/// Characters of the contents of messages, which are a list, or such a list inside a text.
fn characters(messages: &Json) -> Result<u64, Fault> {
    let wrong = || {
        let found = shown(messages.to_string().as_bytes());
        Fault::field(MESSAGES, found, "a list of messages, or one in a text")
    };
    let parsed: Json;
    let list = match messages {
        Json::String(text) => {
            parsed = serde_json::from_str(text).map_err(|_no_json| wrong())?;
            &parsed
        }
        list => list,
    };
    let list = list.as_array().ok_or_else(wrong)?;
    let of = |message: &Json| match message.get("content").or_else(|| message.get("parts")) {
        Some(Json::String(text)) => text.chars().count() as u64,
        Some(other) => other.to_string().chars().count() as u64,
        None => 0,
    };
    Ok(list.iter().map(of).sum())
}

/// The least, the middle and the most.
fn three(values: &mut [u64]) -> Option<(u64, u64, u64)> {
    values.sort_unstable();
    Some((*values.first()?, values[values.len() / 2], *values.last()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(text: &str) -> Result<Trace, String> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("s.json");
        std::fs::write(&file, text).expect("written");
        load(&file, std::slice::from_ref(&file)).map_err(|error| error.to_string())
    }

    const CALL: &str = r#"{"start_time":"2026-02-25T12:00:01.5","end_time":"2026-02-25T12:00:04",
        "attributes":{"session.id":"s","gen_ai.request.max_tokens":9,
        "gen_ai.input.messages":"[{\"role\":\"user\",\"content\":\"five!\"}]"}}"#;

    #[test]
    fn calls_are_rows_and_their_overlaps_are_told() {
        let counted = r#"{"start_time":"2026-02-25T12:00:00Z","end_time":"2026-02-25T12:00:02Z",
            "attributes":{"session.id":"s","gen_ai.request.model":"m",
            "gen_ai.usage.input_tokens":7,"gen_ai.usage.completion_tokens":3}}"#;
        let text = format!(r#"{{"spans":[{counted},{CALL},{{"attributes":{{}}}}]}}"#);
        let trace = loaded(&text).expect("reads");
        let first = trace.records[0];
        assert_eq!((first.input_tokens, first.output_tokens), (7, Some(3)));
        assert_eq!(trace.records[1].at.0 - first.at.0, 1_500_000_000);
        let known = [0, 1].map(|record| trace.recorded.is_length_known(record));
        assert_eq!(known, [true, false]);
        assert_eq!((trace.sessions.len(), trace.records[1].turn), (1, 1));
        let words: Vec<&str> = trace.warnings.iter().map(|own| own.words.as_str()).collect();
        assert!(words[0].contains("of 5 to 5 characters"), "{words:?}");
        assert!(words[2].starts_with("1 of 2 calls starts before"), "{words:?}");
        assert!(words[3].starts_with("1 span is no call"), "{words:?}");
    }

    #[test]
    fn faults_are_named() {
        for (from, to, words) in [
            ("2026-02-25T12:00:04", "noon", "s.json#spans[0]: field \"end_time\": found \"noon\""),
            ("[{", "[", "field \"gen_ai.input.messages\""),
            ("{\"start_time\"", "7,{\"start_time\"", "s.json#spans[0]: found 7"),
        ] {
            let text = format!(r#"{{"spans":[{}]}}"#, CALL.replacen(from, to, 1));
            let found = loaded(&text).expect_err(words);
            assert!(found.contains(words), "{found}");
        }
        assert!(loaded("{\"spans\":[]}").expect_err("empty").contains("no call of a model"));
        assert!(loaded("{").expect_err("cut").contains("is no JSON"));
    }
}
