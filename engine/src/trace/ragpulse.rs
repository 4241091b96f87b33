//! RAGPulse: rows whose prompts are lists of pieces, each piece with a length of its own.
//!
//! `hash_ids` names the pieces of the system prompt, the passages, the history, the web search and
//! the user's words; five tables beside the trace have the pieces' lengths. A block is one token of
//! a piece here, so that what two prompts share is shared exactly, whatever the lengths. The order
//! of the pieces in a prompt is ours: the file does not say. Without the tables a prompt shares
//! nothing.

use std::collections::HashMap;
use std::path::Path;

use onbeat_shared::counted::counted;
use onbeat_shared::trace::blocks::{BLOCK_IDS_MAX, BlockIds};
use onbeat_shared::trace::decimal::Decimal;
use onbeat_shared::trace::record::Record;
use onbeat_shared::trace::recorded::Recorded;
use onbeat_shared::trace::{Format, Source, Trace, Warning};
use onbeat_shared::units::{SessionIndex, TraceNanos};
use serde_json::{Map, Value as Json};

use crate::limits::REQUESTS_MAX;
use crate::trace::TraceError;
use crate::trace::error::Fault;
use crate::trace::keys::{self, Keys};
use crate::trace::lines;
use crate::trace::scan::shown;

/// The lists of `hash_ids` in the order of the prompt, and the table of each.
pub(crate) const PIECES: [(&str, &str); 5] = [
    ("sys_prompt", "1_sys_prompt.jsonl"),
    ("passages_ids", "2_passages.jsonl"),
    ("history", "3_history.jsonl"),
    ("web_search", "5_web_search.jsonl"),
    ("user_input", "4_user_input.jsonl"),
];

/// Where each piece's tokens are numbered from, and how many they are.
type Table = HashMap<u64, (u64, u32)>;

/// Reads a RAGPulse trace, with the tables that lie beside it.
pub(crate) fn load(path: &Path) -> Result<Trace, TraceError> {
    let mut reader = Reader { tables: tables(path)?, ..Reader::default() };
    let facts = lines::for_each_line(path, |line, bytes| {
        let added = reader.add(line, bytes);
        added.map_err(|fault| TraceError::Row { path: path.to_owned(), line, fault })
    })?;
    if reader.records.is_empty() {
        return Err(TraceError::file(path, "has no rows; right would be one request a line"));
    }
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let rows = reader.records.len() as u64;
    let format = Format::RagPulse;
    Ok(reader.finish(Source { name, sha256: facts.sha256, format, rows, bytes: facts.bytes }))
}

/// The lengths of all pieces, or the first table that is not there.
fn tables(path: &Path) -> Result<Result<Table, &'static str>, TraceError> {
    let mut table = Table::new();
    let mut tokens = 0_u64;
    for (_, name) in PIECES {
        let own = path.with_file_name(name);
        if !own.is_file() {
            return Ok(Err(name));
        }
        lines::for_each_line(&own, |line, bytes| {
            let (id, length) =
                piece(bytes).map_err(|fault| TraceError::Row { path: own.clone(), line, fault })?;
            table.insert(id, (tokens, length));
            tokens += u64::from(length);
            Ok(())
        })?;
    }
    Ok(Ok(table))
}

/// A row of a table: `{"passage_id": 7, "token_length": 84}`.
pub(crate) fn piece(bytes: &[u8]) -> Result<(u64, u32), Fault> {
    let row = object(bytes)?;
    let length = row.get("token_length").and_then(Json::as_u64);
    let length = length.and_then(|length| u32::try_from(length).ok());
    let length = length.ok_or_else(|| wrong(&row, "token_length", "a whole number of tokens"))?;
    let id = row.iter().find(|(key, _)| key.ends_with("_id")).and_then(|(_, id)| id.as_u64());
    let id =
        id.ok_or_else(|| Fault::line(shown(bytes), "an object with a member like passage_id"))?;
    Ok((id, length))
}

fn object(bytes: &[u8]) -> Result<Map<String, Json>, Fault> {
    serde_json::from_slice(bytes).map_err(|_other| {
        Fault::line(shown(bytes), "one JSON object a line, like {\"timestamp\": \"82\", …}")
    })
}

fn wrong(row: &Map<String, Json>, field: &'static str, right: impl Into<String>) -> Fault {
    let found = row.get(field).map_or_else(|| "nothing".to_owned(), Json::to_string);
    Fault::field(field, shown(found.as_bytes()), right)
}

#[derive(Debug)]
struct Reader {
    tables: Result<Table, &'static str>,
    records: Vec<Record>,
    blocks: BlockIds,
    sessions: Keys,
    /// First line and count of rows without output.
    no_output: (u64, u64),
    /// Which pieces some row had so far, and how many tokens of leading ones came again.
    seen: HashMap<u64, ()>,
    again_tokens: u64,
    piece_tokens: u64,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            tables: Ok(Table::new()),
            records: Vec::new(),
            blocks: BlockIds::default(),
            sessions: Keys::default(),
            no_output: (0, 0),
            seen: HashMap::new(),
            again_tokens: 0,
            piece_tokens: 0,
        }
    }
}

impl Reader {
    fn add(&mut self, line: u64, bytes: &[u8]) -> Result<(), Fault> {
        let row = object(bytes)?;
        let place = self.records.len();
        if place == REQUESTS_MAX {
            return Err(Fault::line("one row too many", format!("at most {REQUESTS_MAX} rows")));
        }
        let input_tokens = tokens(&row, "input_length")?;
        let output_tokens = tokens(&row, "output_length")?;
        if output_tokens == 0 {
            let (first, rows) = self.no_output;
            self.no_output = (if rows == 0 { line } else { first }, rows + 1);
        }
        let first_block = self.blocks.len();
        self.pieces(&row, input_tokens)?;
        let session = match row.get("session_id") {
            None | Some(Json::Null) => None,
            Some(Json::String(id)) => Some(id.clone()),
            Some(Json::Number(id)) => Some(id.to_string()),
            Some(_) => return Err(wrong(&row, "session_id", "a text")),
        };
        self.sessions.push(session.as_deref().map(str::as_bytes));
        self.records.push(Record {
            row: line,
            at: timestamp(&row)?,
            input_tokens,
            output_tokens: Some(output_tokens.max(1)),
            session: SessionIndex(u32::try_from(place).expect("bounded by REQUESTS_MAX")),
            turn: 0,
            first_block: first_block as u64,
            block_count: u32::try_from(self.blocks.len() - first_block)
                .expect("BLOCK_IDS_MAX fits"),
        });
        Ok(())
    }

    /// Adds the tokens of a row's pieces as blocks, at most as many as the prompt has.
    fn pieces(&mut self, row: &Map<String, Json>, input_tokens: u32) -> Result<(), Fault> {
        let Ok(table) = &self.tables else { return Ok(()) };
        let mut left = input_tokens;
        let mut leads = true;
        let mut own = Vec::new();
        for (list, name) in PIECES {
            let ids = row.get("hash_ids").and_then(|ids| ids.get(list)).and_then(Json::as_array);
            let ids = ids.ok_or_else(|| wrong(row, "hash_ids", format!("a list {list} in it")))?;
            for id in ids {
                let unknown = || {
                    let found = format!("{list} with {}", shown(id.to_string().as_bytes()));
                    Fault::field("hash_ids", found, format!("ids that are in {name}"))
                };
                let id = id.as_u64().ok_or_else(unknown)?;
                let &(first, length) = table.get(&id).ok_or_else(unknown)?;
                own.push(id);
                leads &= self.seen.contains_key(&id);
                self.piece_tokens += u64::from(length);
                self.again_tokens += if leads { u64::from(length) } else { 0 };
                let fitting = length.min(left);
                left -= fitting;
                if self.blocks.len() + fitting as usize > BLOCK_IDS_MAX {
                    let right = format!("prompts of at most {BLOCK_IDS_MAX} tokens in all");
                    return Err(Fault::field("hash_ids", "one piece too many", right));
                }
                (first..first + u64::from(fitting)).for_each(|token| self.blocks.push(token));
            }
        }
        self.seen.extend(own.into_iter().map(|id| (id, ())));
        Ok(())
    }

    fn finish(mut self, source: Source) -> Trace {
        let (sessions, names) = self.sessions.sessions();
        keys::place(&mut self.records, &sessions);
        let mut warnings = Vec::new();
        let mut warn = |line: Option<u64>, rows: u64, words: String| {
            warnings.push(Warning { line, rows, words });
        };
        let (line, rows) = self.no_output;
        if rows > 0 {
            let such = counted(rows, "such row");
            let words = format!("output_length is 0; one token is asked for ({such})");
            warn(Some(line), rows, words);
        }
        match &self.tables {
            Ok(table) => warn(
                None,
                source.rows,
                format!(
                    "prompts are made of {} pieces with lengths of their own, in the order {}: a \
                     block is one token of a piece; {:.1} % of their tokens are leading pieces that \
                     some row had before, whatever stood in front of them there; an ideal hit rate \
                     counts them only behind the same prefix",
                    table.len(),
                    PIECES.map(|(list, _)| list).join(", "),
                    self.again_tokens as f64 * 100.0 / (self.piece_tokens as f64).max(1.0)
                ),
            ),
            Err(name) => warn(
                None,
                source.rows,
                format!("{name} is not beside the trace: what prompts share is unknown"),
            ),
        }
        self.blocks.shrink_to_fit();
        Trace {
            source,
            records: self.records,
            blocks: self.blocks,
            block_tokens: Format::RagPulse.block_tokens(),
            sessions: names,
            recorded: Recorded::default(),
            warnings,
        }
    }
}

/// Seconds, as a text or a number.
fn timestamp(row: &Map<String, Json>) -> Result<TraceNanos, Fault> {
    let text = match row.get("timestamp") {
        Some(Json::String(text)) => text.trim().to_owned(),
        Some(Json::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let nanos = Decimal::parse(&text).and_then(|number| number.scaled(9));
    nanos.map(TraceNanos).map_err(|_other| {
        wrong(row, "timestamp", "a number of seconds within 292 years of zero, or such a text")
    })
}

fn tokens(row: &Map<String, Json>, field: &'static str) -> Result<u32, Fault> {
    let tokens =
        row.get(field).and_then(Json::as_u64).and_then(|tokens| u32::try_from(tokens).ok());
    // The top value means "none" in a log.
    tokens
        .filter(|&tokens| tokens != u32::MAX)
        .ok_or_else(|| wrong(row, field, "a whole number of tokens, 0 or more"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const ROWS: &str = "\
        {\"timestamp\":\"82\",\"input_length\":12,\"output_length\":3,\"hash_ids\":{\"sys_prompt\":[1],\
        \"passages_ids\":[2],\"history\":[],\"web_search\":[],\"user_input\":[3]},\"session_id\":\"a\"}\n\
        \n\
        {\"timestamp\":\"0\",\"input_length\":6,\"output_length\":0,\"hash_ids\":{\"sys_prompt\":[1],\
        \"passages_ids\":[],\"history\":[2],\"web_search\":[],\"user_input\":[]},\"session_id\":\"a\"}\n";

    fn folder(rows: &str, tables: bool) -> (tempfile::TempDir, Result<Trace, String>) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let write = |name: &str, text: &str| {
            fs::write(folder.path().join(name), text).expect("written");
        };
        write("0_trace.jsonl", rows);
        if tables {
            write("1_sys_prompt.jsonl", "{\"sys_prompt_id\":1,\"token_length\":4}\n\n");
            write("2_passages.jsonl", "{\"passage_id\":2,\"token_length\":5}\n");
            write("3_history.jsonl", "");
            write("4_user_input.jsonl", "{\"user_input_id\":3,\"token_length\":2}\n");
            write("5_web_search.jsonl", "");
        }
        let trace = load(&folder.path().join("0_trace.jsonl")).map_err(|error| error.to_string());
        (folder, trace)
    }

    #[test]
    fn a_block_is_one_token_of_a_piece() {
        let trace = folder(ROWS, true).1.expect("reads");
        let ids = |place: usize| trace.blocks_of(&trace.records[place]).iter().collect::<Vec<_>>();
        assert_eq!(ids(0), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        // Cut to the prompt's length.
        assert_eq!(ids(1), [0, 1, 2, 3, 4, 5]);
        assert_eq!((trace.block_tokens, trace.sessions.len()), (1, 1));
        let turns: Vec<u32> = trace.records.iter().map(|record| record.turn).collect();
        assert_eq!(turns, [1, 0], "the second row is the earlier one");
        let words: Vec<String> = trace.warnings.iter().map(ToString::to_string).collect();
        assert!(words[0].starts_with("line 3: output_length is 0"), "{words:?}");
        assert!(words[1].contains("3 pieces") && words[1].contains("45.0 %"), "{words:?}");
    }

    #[test]
    fn without_its_tables_nothing_is_shared() {
        let trace = folder(ROWS, false).1.expect("reads");
        assert!(trace.blocks.is_empty());
        assert!(trace.warnings[1].words.contains("1_sys_prompt.jsonl is not beside"));
    }

    #[test]
    fn faults_are_named() {
        for (from, to, words) in [
            ("\"82\"", "\"soon\"", "line 1: field \"timestamp\": found \"soon\""),
            ("[3]", "[7]", "found user_input with 7; right would be ids that are in 4_user"),
            ("\"history\":[2]", "\"history\":7", "line 3: field \"hash_ids\""),
            ("\"input_length\":6", "\"input_length\":-6", "field \"input_length\": found -6"),
        ] {
            let found = folder(&ROWS.replace(from, to), true).1.expect_err(words);
            assert!(found.contains(words), "{found}");
        }
    }
}
