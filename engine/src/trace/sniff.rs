//! Tells from a file's first kilobytes, or from what lies in a folder, which reader it is for.
//!
//! Only members and their order of nesting count, never magnitudes. What is neither a conversation,
//! nor a session of spans, nor RAGPulse's, nor a file that goes with a trace, is left to the
//! readers of rows, tables and columns, which have their own ways of telling. Of a compressed file
//! only the first line is looked at.

use std::fs;
use std::path::{Path, PathBuf};

use memchr::memchr;
use onbeat_shared::trace::Format;

use crate::trace::columns::shards::has_ending;
use crate::trace::lines::{first_line, start_of};
use crate::trace::material::Kind;
use crate::trace::packed::Packing;
use crate::trace::scan::Members;
use crate::trace::{TraceError, TraceOptions};

/// Which reader a file or folder is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Conversations, in these files.
    Agentic(Vec<PathBuf>),
    /// Sessions of spans, in these files.
    Otel(Vec<PathBuf>),
    /// RAGPulse's rows.
    RagPulse,
    /// Something that goes with a trace.
    Material(Kind),
    /// Rows, a table or columns.
    Other,
}

/// Bytes that are looked at: conversations have short members before their requests.
const START_BYTES: u64 = 64 << 10;

/// Looks at a file or folder, unless the user says what it is.
pub(crate) fn look(path: &Path, options: &TraceOptions) -> Result<Look, TraceError> {
    match options.format {
        Some(Format::Agentic) => Ok(Look::Agentic(json_files(path)?)),
        Some(Format::Otel) => Ok(Look::Otel(json_files(path)?)),
        Some(Format::RagPulse) => Ok(Look::RagPulse),
        Some(_) => Ok(Look::Other),
        None if path.is_dir() => folder(path),
        None => file(path),
    }
}

fn file(path: &Path) -> Result<Look, TraceError> {
    let packed = path.is_file() && Packing::of_file(path)?.is_some();
    let start = if packed { first_line(path)? } else { start_of(path, START_BYTES)? };
    let Some(start) = start else { return Ok(Look::Other) };
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&start).trim_ascii_start();
    Ok(match of_text(text) {
        Some(Found::Agentic) => Look::Agentic(vec![path.to_owned()]),
        Some(Found::Otel) => Look::Otel(vec![path.to_owned()]),
        Some(Found::RagPulse) => Look::RagPulse,
        Some(Found::Material(kind)) => Look::Material(kind),
        None => Look::Other,
    })
}

fn folder(path: &Path) -> Result<Look, TraceError> {
    let names = list(path)?;
    if names.iter().any(|path| has_ending(path)) {
        return Ok(Look::Other);
    }
    let files: Vec<PathBuf> = names.iter().filter(|path| is_json(path)).cloned().collect();
    let rows = names.iter().find(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    let Some(first) = files.first() else {
        let next = match rows {
            Some(rows) => format!("; {} looks like a trace of its own", rows.display()),
            None => String::new(),
        };
        return Err(TraceError::file(
            path,
            format!(
                "is a folder without a trace's files; right would be one with the .parquet, .arrow \
                 or .ipc files of a Baseten trace, or with the .json files of kv-cache-tester's \
                 conversations{next}"
            ),
        ));
    };
    match file(first)? {
        Look::Agentic(_) => Ok(Look::Agentic(files)),
        Look::Otel(_) => Ok(Look::Otel(files)),
        Look::Material(kind) => Err(TraceError::file(path, format!("holds {}", kind.words()))),
        Look::RagPulse | Look::Other => Err(TraceError::file(
            path,
            format!(
                "is a folder whose first .json file, {}, is no conversation; right would be \
                 kv-cache-tester's conversations, one a file",
                first.display()
            ),
        )),
    }
}

/// The `.json` files of a folder, in order of their names; a file is its own list.
fn json_files(path: &Path) -> Result<Vec<PathBuf>, TraceError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let files: Vec<PathBuf> = list(path)?.into_iter().filter(|path| is_json(path)).collect();
    if files.is_empty() {
        return Err(TraceError::file(path, "has no .json file; right would be one a conversation"));
    }
    Ok(files)
}

/// The files of a folder that are not hidden, in order of their names.
fn list(path: &Path) -> Result<Vec<PathBuf>, TraceError> {
    let failed = |error| TraceError::io("list", path, error);
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        let hidden = file.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
        if !hidden && file.is_file() {
            files.push(file);
        }
    }
    files.sort_unstable();
    Ok(files)
}

fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Agentic,
    Otel,
    RagPulse,
    Material(Kind),
}

/// Members that a conversation has beside its requests.
const CONVERSATION: [&str; 4] = ["block_size", "hash_id_scope", "tool_tokens", "models"];

fn of_text(text: &[u8]) -> Option<Found> {
    let line = text[..memchr(b'\n', text).unwrap_or(text.len())].trim_ascii_end();
    if text.first() != Some(&b'{') {
        return Kind::of_table_row(line).map(Found::Material);
    }
    // The start may end inside a text, or behind a backslash in one; then it is closed.
    let closed = [b"".as_slice(), b"\"", b"\"\""].map(|end| [text, end].concat());
    let first_of = |name: &str| {
        let named = |text: &Vec<u8>| {
            let member = Members::of(text).find(|member| member.is_called(name))?;
            Some(member.value.first().copied().unwrap_or(0))
        };
        closed.iter().find_map(named)
    };
    let starts = |name: &str, with: u8| first_of(name) == Some(with);
    if starts("requests", b'[') && CONVERSATION.into_iter().any(|name| first_of(name).is_some()) {
        return Some(Found::Agentic);
    }
    if starts("spans", b'[') {
        return Some(Found::Otel);
    }
    let row = |name: &str| Members::of(line).find(|member| member.is_called(name));
    if row("hash_ids").is_some_and(|ids| ids.value.first() == Some(&b'{')) {
        return Some(Found::RagPulse);
    }
    Kind::of_object(text, line).map(Found::Material)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_tell_the_reader() {
        for (text, found) in [
            ("{\"id\":\"x\",\n\"block_size\":64,\"requests\":[{\"t\":0", Some(Found::Agentic)),
            ("{\"requests\":[],\"models\":[]}", Some(Found::Agentic)),
            ("{\"block_size\":64,\"requests\":[{\"type\":\"n", Some(Found::Agentic)),
            ("{\"block_size\":64,\"requests\":[{\"type\":\"n\\", Some(Found::Agentic)),
            ("{\"requests\":7,\"models\":[]}", None),
            ("{\"trace_id\":\"a\",\"spans\":[]}", Some(Found::Otel)),
            ("{\"timestamp\":\"8\",\"hash_ids\":{\"history\":[]}}\n{}", Some(Found::RagPulse)),
            ("{\"timestamp\":8,\"hash_ids\":[1]}\n", None),
            ("{\"timestamp\":8,\"input_length\":1}\n{\"spans\":[]}", None),
            ("TIMESTAMP,ContextTokens,GeneratedTokens\n", None),
            ("", None),
        ] {
            assert_eq!(of_text(text.as_bytes()), found, "{text}");
        }
    }

    #[test]
    fn a_folder_is_told_by_its_first_json_file() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).expect("written");
            path
        };
        let told = || look(folder.path(), &TraceOptions::default()).map_err(|e| e.to_string());
        assert!(told().expect_err("empty").contains("without a trace's files"));
        write("rows.jsonl", "{}");
        assert!(told().expect_err("rows").contains("rows.jsonl looks like a trace"));
        let second = write("b.json", "{\"requests\":[],\"models\":[]}");
        let first = write("a.json", "{\"requests\":[],\"models\":[]}");
        write(".hidden.json", "x");
        assert_eq!(told(), Ok(Look::Agentic(vec![first, second])));
        write("0.json", "{\"a\":1}");
        assert!(told().expect_err("other").contains("0.json, is no conversation"));
        write("x.parquet", "PAR1");
        assert_eq!(told(), Ok(Look::Other));
    }
}
