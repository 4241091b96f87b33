//! Tells from a file's first kilobytes, or from what lies in a folder, which reader it is for.
//!
//! Only members and their order of nesting count, never magnitudes. What is neither a conversation,
//! nor a session of spans, nor RAGPulse's, nor a file that goes with a trace, is left to the
//! readers of rows, tables and columns, which have their own ways of telling. Of a compressed file
//! only the first line is looked at.

use std::fs;
use std::path::{Path, PathBuf};

use memchr::memchr;
use onbeat_shared::counted::{agreeing, counted};
use onbeat_shared::foreign::shown_path;
use onbeat_shared::trace::{Format, Warning};

use crate::trace::columns::shards::has_ending;
use crate::trace::lines::{first_line, start_of};
use crate::trace::material::Kind;
use crate::trace::packed::Packing;
use crate::trace::scan::Members;
use crate::trace::{TraceError, TraceOptions, mistaken};

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
    mistaken::check(path)?;
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
    let Some(first) = files.first() else {
        let next = match (rows_of(&names), folders(path)?) {
            (Some(rows), _) => format!(
                "; the trace in this one is the file {}: give that instead",
                shown_path(rows)
            ),
            (None, 0) => String::new(),
            (None, below) => {
                let (folders, is) = (counted(below, "subfolder"), agreeing(below, "is", "are"));
                format!("; its {folders} {is} not read: give one that has such files")
            }
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
                shown_path(first)
            ),
        )),
    }
}

/// The first file of rows among these that is a trace and does not only go with one.
fn rows_of(names: &[PathBuf]) -> Option<&PathBuf> {
    let is_rows =
        |path: &PathBuf| path.extension().is_some_and(|end| end == "jsonl" || end == "csv");
    let is_trace = |path: &PathBuf| file(path).is_ok_and(|it| !matches!(it, Look::Material(_)));
    names.iter().find(|path| is_rows(path) && is_trace(path))
}

/// What a folder holds beside the files that are read: its own folders, which are not.
pub(crate) fn unread(path: &Path) -> Result<Option<Warning>, TraceError> {
    let below = if path.is_dir() { folders(path)? } else { 0 };
    let (folders, was) = (counted(below, "subfolder"), agreeing(below, "was", "were"));
    Ok((below > 0).then(|| Warning {
        line: None,
        rows: 0,
        words: format!("{folders} of the folder {was} not read: only its own files are"),
    }))
}

/// How many folders that are not hidden a folder has.
fn folders(path: &Path) -> Result<u64, TraceError> {
    Ok(entries(path)?.iter().filter(|path| path.is_dir()).count() as u64)
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
    let mut files = entries(path)?;
    files.retain(|path| path.is_file());
    files.sort_unstable();
    Ok(files)
}

/// What a folder holds that is not hidden.
fn entries(path: &Path) -> Result<Vec<PathBuf>, TraceError> {
    let failed = |error| TraceError::io("list", path, error);
    let mut found = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
        if !hidden {
            found.push(path);
        }
    }
    Ok(found)
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
        fs::create_dir(folder.path().join("below")).expect("made");
        assert!(told().expect_err("empty").contains("its 1 subfolder is not read: give one"));
        write("0_pieces.jsonl", "{\"passage_id\":0,\"token_length\":84}");
        write("rows.jsonl", "{\"timestamp\":\"8\",\"hash_ids\":{}}");
        assert!(told().expect_err("rows").contains("rows.jsonl: give that instead"));
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
