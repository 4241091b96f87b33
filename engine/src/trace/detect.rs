//! Tells a trace's format from its first row, by the members it has and never by magnitudes.

use std::path::Path;

use onbeat_shared::trace::Format;

use crate::trace::TraceError;
use crate::trace::error::Fault;
use crate::trace::row::{DIALECT, HASH_IDS, Name};
use crate::trace::scan::{Members, shown};

/// First bytes of files that may hold traces, but are none.
const MAGIC: [(&[u8], &str); 3] = [
    (b"PK\x03\x04", "a zip archive; unpack it first (unzip)"),
    (b"\xfd7zXZ\x00", "xz-compressed; unpack it first (xz -d), or use gzip or zstd"),
    (b"BZh", "bzip2-compressed; unpack it first (bzip2 -d), or use gzip or zstd"),
];

/// Members that a request body does not have, but a row about a request does.
const ABOUT: [&str; 7] =
    ["input_length", "output_length", "session_id", "delay", "text_input", "payload", "extra"];

/// Members of a kv-cache-tester conversation.
const AGENTIC: [&str; 2] = ["requests", "block_size"];

/// The format of the file whose first row this is.
pub(crate) fn format_of(path: &Path, line: u64, bytes: &[u8]) -> Result<Format, TraceError> {
    if let Some((_, words)) = MAGIC.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return Err(TraceError::file(path, format!("is {words}")));
    }
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
