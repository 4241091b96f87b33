//! Tells a trace's format from its first row, by the members it has and never by magnitudes.

use std::path::Path;

use onbeat_shared::trace::Format;

use crate::trace::TraceError;
use crate::trace::columns::Kind;
use crate::trace::columns::shards::kind_of;
use crate::trace::error::Fault;
use crate::trace::lines::start_of;
use crate::trace::row::{DIALECT, HASH_IDS, Name};
use crate::trace::scan::{Members, shown};

/// First bytes of files that may hold traces, but are none.
const MAGIC: [(&[u8], &str); 5] = [
    (b"PAR1", "a Parquet file inside a compressed one; unpack it first (gzip -d or zstd -d)"),
    (b"ARROW1", "an Arrow file inside a compressed one; unpack it first (gzip -d or zstd -d)"),
    (b"PK\x03\x04", "a zip archive; unpack it first (unzip)"),
    (b"\xfd7zXZ\x00", "xz-compressed; unpack it first (xz -d), or use gzip or zstd"),
    (b"BZh", "bzip2-compressed; unpack it first (bzip2 -d), or use gzip or zstd"),
];

/// Members that a request body does not have, but a row about a request does.
const ABOUT: [&str; 8] = [
    "input_length",
    "output_length",
    "session_id",
    "delay",
    "text_input",
    "payload",
    "extra",
    "message_mode",
];

/// Members of a kv-cache-tester conversation.
const AGENTIC: [&str; 2] = ["requests", "block_size"];

/// Refuses a file of bytes that is to be read as text in a format that was named.
pub(crate) fn check_named(path: &Path, format: Format) -> Result<(), TraceError> {
    if format == Format::Baseten || !path.is_file() {
        return Ok(());
    }
    let found = match kind_of(path)? {
        Some(Kind::Parquet) => "a Parquet file",
        Some(Kind::Arrow) => "an Arrow file",
        None => return check_packing(path, &start_of(path, 8)?.unwrap_or_default()),
    };
    let right = match format {
        Format::AzureCsv | Format::BurstGpt => "a CSV table",
        Format::Agentic | Format::Otel => "JSON",
        _ => "JSON Lines",
    };
    Err(TraceError::file(
        path,
        format!(
            "is {found}, and {format} is {right}; leave out --custom-dataset-type, or say \
             baseten_trace"
        ),
    ))
}

/// Refuses a file that has to be unpacked first.
fn check_packing(path: &Path, start: &[u8]) -> Result<(), TraceError> {
    match MAGIC.iter().find(|(magic, _)| start.starts_with(magic)) {
        Some((_, words)) => Err(TraceError::file(path, format!("is {words}"))),
        None => Ok(()),
    }
}

/// The format of the file whose first row this is.
pub(crate) fn format_of(path: &Path, line: u64, bytes: &[u8]) -> Result<Format, TraceError> {
    check_packing(path, bytes)?;
    let has = |name: &str| Members::of(bytes).any(|member| member.is_called(name));
    if has(Name::ChatId.key()) {
        return Ok(Format::Bailian);
    }
    // What is asked, and of which model: a whole body, with nothing said about it.
    let body = has("model") && (has("messages") || has("prompt"));
    if body && !ABOUT.into_iter().any(has) {
        return Ok(Format::RawPayload);
    }
    let lengths = has(Name::InputLength.key());
    let mooncake = lengths && (has(Name::Timestamp.key()) || has(HASH_IDS));
    // A line that is no object, or stops early, is read as Mooncake for the sake of its message.
    let torn = bytes.first() != Some(&b'{') || Members::of(bytes).next().is_none();
    if mooncake || torn || lengths || DIALECT.into_iter().any(has) {
        return Ok(Format::Mooncake);
    }
    if AGENTIC.into_iter().all(has) {
        return Err(TraceError::file(
            path,
            "has a conversation of an agent among other rows; right would be files of nothing but \
             conversations (--custom-dataset-type agentic)",
        ));
    }
    let keys: Vec<String> = Members::of(bytes).map(|member| shown(member.key)).take(12).collect();
    let fault = Fault::line(
        format!("an object with the keys {}", keys.join(", ")),
        "a row of a Bailian trace (chat_id, timestamp, input_length, output_length) or of a \
         Mooncake trace (timestamp, input_length, output_length, hash_ids), or a request body \
         (model, and messages or prompt)",
    );
    Err(TraceError::Row { path: path.to_owned(), line, fault })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(line: &str) -> Result<Format, String> {
        format_of(Path::new("t"), 1, line.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn members_tell_the_format() {
        let bailian = r#"{"chat_id":159,"timestamp":61.114,"input_length":5,"output_length":1}"#;
        assert_eq!(told(bailian), Ok(Format::Bailian));
        let mooncake = r#"{"hash_ids":[],"timestamp":61114,"input_length":5}"#;
        assert_eq!(told(mooncake), Ok(Format::Mooncake));
        assert_eq!(told(r#"{"session_id":"a","text_input":"x"}"#), Ok(Format::Mooncake));
        assert_eq!(told("[{"), Ok(Format::Mooncake));
        let messages = r#""messages":[{"role":"user","content":"x"}]"#;
        assert_eq!(told(&format!(r#"{{"model":"m",{messages}}}"#)), Ok(Format::RawPayload));
        assert_eq!(told(r#"{"prompt":"x","model":"m","timestamp":1}"#), Ok(Format::RawPayload));
        let row = format!(r#"{{{messages},"output_length":3,"timestamp":1}}"#);
        assert_eq!(told(&row), Ok(Format::Mooncake));
        assert_eq!(
            told(&format!(r#"{{"payload":{{"model":"m",{messages}}}}}"#)),
            Ok(Format::Mooncake)
        );
    }

    #[test]
    fn other_files_are_named() {
        for (line, words) in [
            ("\u{1f}\u{fffd}", "t: "),
            (r#"{"id":"x","block_size":64,"requests":[]}"#, "agentic"),
            (r#"{"prompt":"x","arrival":1}"#, "line 1: found an object with the keys prompt, arr"),
        ] {
            match told(line) {
                Err(found) => assert!(found.contains(words), "{line}: {found}"),
                Ok(format) => assert_eq!((format, words), (Format::Mooncake, "t: ")),
            }
        }
        let zip = format_of(Path::new("t"), 1, b"PK\x03\x04\x14\x00").expect_err("packed");
        assert!(zip.to_string().contains("unzip"));
    }
}
