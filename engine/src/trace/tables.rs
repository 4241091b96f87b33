//! Traces that are CSV tables: Azure's LLM inference traces and BurstGPT.
//!
//! Columns are found by their names, whatever their order; others are ignored. Every row is one
//! request without text and without block ids. BurstGPT's newer tables name sessions and measure
//! durations, and both are kept; a row without a session is its own. A row of BurstGPT with no
//! tokens at all is a request that failed: it is sent as an empty prompt for one token, and told,
//! because leaving it out would thin the load.

use std::path::Path;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use onbeat_shared::trace::blocks::BlockIds;
use onbeat_shared::trace::decimal::Decimal;
use onbeat_shared::trace::record::Record;
use onbeat_shared::trace::recorded::Recorded;
use onbeat_shared::trace::session::SessionNames;
use onbeat_shared::trace::{Format, Source, Trace, Warning};
use onbeat_shared::units::{SessionIndex, TraceNanos};

use crate::limits::REQUESTS_MAX;
use crate::trace::TraceError;
use crate::trace::error::Fault;
use crate::trace::keys::{self, Keys};
use crate::trace::lines;
use crate::trace::scan::shown;

/// The columns of a kind of table.
#[derive(Debug)]
struct Kind {
    format: Format,
    time: &'static str,
    input: &'static str,
    output: &'static str,
    session: Option<&'static str>,
    duration: Option<&'static str>,
}

const KINDS: [Kind; 2] = [
    Kind {
        format: Format::AzureCsv,
        time: "TIMESTAMP",
        input: "ContextTokens",
        output: "GeneratedTokens",
        session: None,
        duration: None,
    },
    Kind {
        format: Format::BurstGpt,
        time: "Timestamp",
        input: "Request tokens",
        output: "Response tokens",
        session: Some("Session ID"),
        duration: Some("Elapsed time"),
    },
];

/// What may stand between the fields of a table; the first is what we read.
const SEPARATORS: [(u8, &str); 4] =
    [(b',', "commas"), (b';', "semicolons"), (b'\t', "tabs"), (b'|', "bars")];

/// Columns of a header that a message shows.
const SHOWN_MAX: usize = 12;

/// Where the columns of a kind stand in a table.
#[derive(Clone, Copy, Debug)]
struct Columns {
    kind: &'static Kind,
    time: usize,
    input: usize,
    output: usize,
    session: Option<usize>,
    duration: Option<usize>,
}

/// The format of the table whose first line this is, if it is one of ours.
pub(crate) fn format_of(header: &[u8]) -> Option<Format> {
    let mut names = Vec::new();
    split(unmarked(header), b',', &mut names);
    let has = |column: &str| names.contains(&column.as_bytes());
    KINDS.iter().find(|kind| has(kind.input) && has(kind.output)).map(|kind| kind.format)
}

/// The first line of a file without its mark, its end and the blanks around it.
pub(crate) fn unmarked(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii()
}

/// Whether a file's name ends like that of a table, perhaps a compressed one.
pub(crate) fn is_called_so(path: &Path) -> bool {
    let ends = |path: &Path, endings: [&str; 2]| {
        let own = path.extension().unwrap_or_default();
        endings.into_iter().any(|ending| own.eq_ignore_ascii_case(ending))
    };
    let table = |path: &Path| ends(path, ["csv", "tsv"]);
    table(path) || ends(path, ["gz", "zst"]) && path.file_stem().map(Path::new).is_some_and(table)
}

/// Why a first line that is a table's is none of ours; `None` when it does not look like a table's.
/// `sure` is whether it is one anyway.
pub(crate) fn why_not(header: &[u8], sure: bool) -> Option<String> {
    let header = unmarked(header);
    let text = std::str::from_utf8(header).ok()?;
    let json = matches!(header.first()?, b'{' | b'[');
    if json || text.chars().any(|c| c.is_control() && c != '\t') {
        return None;
    }
    let (_, names) = names_of(header);
    let known = names.len() > 1 && KINDS.iter().any(|kind| kind.nearly(&names) > 0);
    (sure || known).then(|| complaint(None, 1, header))
}

/// The names in a header, and what stands between them: what cuts it into most pieces.
fn names_of(header: &[u8]) -> ((u8, &'static str), Vec<&[u8]>) {
    let mut found = (SEPARATORS[0], Vec::new());
    for separator in SEPARATORS {
        let mut names = Vec::new();
        split(header, separator.0, &mut names);
        if names.len() > found.1.len() {
            found = (separator, names);
        }
    }
    found
}

/// What is wrong with a header, of a table of a `kind` if that is known.
fn complaint(kind: Option<&'static Kind>, line: u64, header: &[u8]) -> String {
    let ((separator, between), names) = names_of(header);
    let mut counts = KINDS.iter().map(|kind| (kind.nearly(&names), kind)).collect::<Vec<_>>();
    counts.sort_by_key(|(count, _)| *count);
    let nearest = match counts[..] {
        [.., (second, _), (first, kind)] if first > second => Some(kind),
        _ => None,
    };
    let shown: Vec<String> = names.iter().take(SHOWN_MAX).map(|name| shown(name)).collect();
    let mut words = format!("line {line}: found the columns {}", shown.join(", "));
    if names.len() > SHOWN_MAX {
        words += ", …";
    }
    if separator != SEPARATORS[0].0 {
        words += &format!(" between {between}");
    }
    let Some(kind) = kind.or(nearest) else {
        let [azure, burst] = [&KINDS[0], &KINDS[1]].map(|kind| kind.needed().join(", "));
        return format!(
            "{words}; right would be {azure} (Azure's table) or {burst} (BurstGPT's), separated by \
             commas; rows of other formats are JSON"
        );
    };
    let lacks = |column: &&str| !names.contains(&column.as_bytes());
    let missing: Vec<&str> = kind.needed().into_iter().filter(lacks).collect();
    if !missing.is_empty() {
        words += &format!("; missing is {}", missing.join(", "));
    }
    format!("{words}; right would be {}, separated by commas", kind.needed().join(", "))
}

impl Kind {
    /// The columns that must be there.
    const fn needed(&self) -> [&'static str; 3] {
        [self.time, self.input, self.output]
    }

    /// How many of them are among these names, whatever their case.
    fn nearly(&self, names: &[&[u8]]) -> usize {
        let has =
            |column: &&str| names.iter().any(|name| name.eq_ignore_ascii_case(column.as_bytes()));
        self.needed().iter().filter(|column| has(column)).count()
    }
}

/// Reads a table of this format.
pub(crate) fn load(path: &Path, format: Format) -> Result<Trace, TraceError> {
    let mut table: Option<Table> = None;
    let facts = lines::for_each_line(path, |line, bytes| {
        let mut fields = Vec::new();
        split(bytes, b',', &mut fields);
        match &mut table {
            None => {
                let columns = Columns::of(format, &fields)
                    .map_err(|kind| TraceError::file(path, complaint(Some(kind), line, bytes)))?;
                table = Some(Table::new(columns));
                Ok(())
            }
            Some(table) => table.add(line, &fields).map_err(|fault| TraceError::Row {
                path: path.to_owned(),
                line,
                fault,
            }),
        }
    })?;
    let Some(table) = table.filter(|table| !table.records.is_empty()) else {
        return Err(TraceError::file(path, "has no rows; right would be a header and rows"));
    };
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let rows = table.records.len() as u64;
    Ok(table.finish(Source { name, sha256: facts.sha256, format, rows, bytes: facts.bytes }))
}

/// The fields of a line, without blanks and quotes around them. A quoted field may hold commas, and
/// keeps the quotes inside it as they stand; no field goes on over several lines.
fn split<'a>(line: &'a [u8], separator: u8, fields: &mut Vec<&'a [u8]>) {
    let mut quoted = false;
    let pieces = line.split(|&byte| {
        quoted ^= byte == b'"';
        byte == separator && !quoted
    });
    fields.extend(pieces.map(|field| {
        let field = field.trim_ascii();
        field.strip_prefix(b"\"").and_then(|field| field.strip_suffix(b"\"")).unwrap_or(field)
    }));
}

impl Columns {
    /// Where a header has the columns of a format; else the kind whose columns it has not.
    fn of(format: Format, header: &[&[u8]]) -> Result<Self, &'static Kind> {
        let kind = KINDS.iter().find(|kind| kind.format == format).unwrap_or(&KINDS[0]);
        let place = |column: &str| header.iter().position(|name| *name == column.as_bytes());
        let needed = |column: &str| place(column).ok_or(kind);
        Ok(Self {
            kind,
            time: needed(kind.time)?,
            input: needed(kind.input)?,
            output: needed(kind.output)?,
            session: kind.session.and_then(place),
            duration: kind.duration.and_then(place),
        })
    }
}

/// The rows read so far.
#[derive(Debug)]
struct Table {
    columns: Columns,
    records: Vec<Record>,
    sessions: Keys,
    durations: Vec<Option<i64>>,
    empty: (u64, u64),
    no_output: (u64, u64),
}

impl Table {
    fn new(columns: Columns) -> Self {
        Self {
            columns,
            records: Vec::new(),
            sessions: Keys::default(),
            durations: Vec::new(),
            empty: (0, 0),
            no_output: (0, 0),
        }
    }

    fn add(&mut self, line: u64, row: &[&[u8]]) -> Result<(), Fault> {
        let Columns { kind, time, input, output, session, duration } = self.columns;
        let field = |place: usize| row.get(place).copied().unwrap_or_default();
        let place = self.records.len();
        if place == REQUESTS_MAX {
            return Err(Fault::line("one row too many", format!("at most {REQUESTS_MAX} rows")));
        }
        let at = instant(kind, field(time))?;
        let input_tokens = tokens(kind.input, field(input))?;
        let output_tokens = tokens(kind.output, field(output))?;
        for (count, tokens) in
            [(&mut self.empty, input_tokens), (&mut self.no_output, output_tokens)]
        {
            if tokens == 0 {
                *count = (if count.1 == 0 { line } else { count.0 }, count.1 + 1);
            }
        }
        self.sessions.push(session.map(field).filter(|id| !id.is_empty()));
        self.durations.push(match (duration.map(field), kind.duration) {
            (Some(text), Some(column)) if !text.is_empty() => Some(seconds(column, text)?),
            _ => None,
        });
        self.records.push(Record {
            row: line,
            at,
            input_tokens,
            output_tokens: Some(output_tokens.max(1)),
            session: SessionIndex(u32::try_from(place).expect("bounded by REQUESTS_MAX")),
            turn: 0,
            first_block: 0,
            block_count: 0,
        });
        Ok(())
    }

    fn finish(mut self, source: Source) -> Trace {
        let kind = self.columns.kind;
        let warnings = [
            (self.empty, kind.input, "the prompt is empty, which many servers refuse"),
            (self.no_output, kind.output, "one token is asked for"),
        ]
        .into_iter()
        .filter(|((_, rows), _, _)| *rows > 0)
        .map(|((line, rows), column, what)| {
            let more = if rows > 1 { format!(" ({rows} such rows)") } else { String::new() };
            Warning { line: Some(line), rows, words: format!("{column} is 0; {what}{more}") }
        })
        .collect();
        let sessions = if self.columns.session.is_some() {
            let (sessions, names) = self.sessions.sessions();
            keys::place(&mut self.records, &sessions);
            names
        } else {
            SessionNames::Fresh(u32::try_from(self.records.len()).expect("bounded"))
        };
        let known = self.durations.iter().any(Option::is_some);
        let duration_ns = if known { self.durations } else { Vec::new() };
        Trace {
            block_tokens: source.format.block_tokens(),
            source,
            records: self.records,
            blocks: BlockIds::default(),
            sessions,
            recorded: Recorded { duration_ns, ..Recorded::default() },
            warnings,
        }
    }
}

/// A time of either kind: a number of seconds, or a date and a time of day, in UTC unless it says
/// otherwise.
fn instant(kind: &Kind, text: &[u8]) -> Result<TraceNanos, Fault> {
    if kind.format == Format::BurstGpt {
        return seconds(kind.time, text).map(TraceNanos);
    }
    let wrong = || {
        let right = "a date and a time, like 2023-11-16 18:15:46.6805900";
        Fault::field(kind.time, shown(text), right)
    };
    let text = std::str::from_utf8(text).map_err(|_no_text| wrong())?;
    let zoned = text.parse::<jiff::Timestamp>().or_else(|_no_zone| {
        let local: DateTime = text.parse()?;
        local.to_zoned(TimeZone::UTC).map(|zoned| zoned.timestamp())
    });
    let nanos = zoned.map_err(|_no_time| wrong())?.as_nanosecond();
    i64::try_from(nanos).map(TraceNanos).map_err(|_beyond_64_bits| wrong())
}

fn seconds(column: &'static str, text: &[u8]) -> Result<i64, Fault> {
    let number = std::str::from_utf8(text).ok().and_then(|text| Decimal::parse(text).ok());
    number.and_then(|number| number.scaled(9).ok()).ok_or_else(|| {
        Fault::field(column, shown(text), "a number of seconds within 292 years of zero")
    })
}

fn tokens(column: &'static str, text: &[u8]) -> Result<u32, Fault> {
    let number = std::str::from_utf8(text).ok().and_then(|text| Decimal::parse(text).ok());
    // The top value means "none" in a log.
    number
        .and_then(Decimal::whole)
        .and_then(|whole| u32::try_from(whole).ok())
        .filter(|&tokens| tokens != u32::MAX)
        .ok_or_else(|| {
            let right = format!("a whole number of tokens from 0 to {}", u32::MAX - 1);
            Fault::field(column, shown(text), right)
        })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::trace::{TraceOptions, load};

    fn loaded(text: &str) -> Result<Trace, String> {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(text.as_bytes()).expect("written");
        load(file.path(), &TraceOptions::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn azure_times_keep_all_their_digits() {
        let trace = loaded(
            "\u{feff}TIMESTAMP,ContextTokens,GeneratedTokens\r\n\
             2023-11-16 18:15:46.6805900,374,44\r\n\
             2023-11-16 18:15:46.6805901,396,0\r\n\
             \r\n\
             2023-11-16T19:15:47+01:00,7.0,9",
        )
        .expect("reads");
        assert_eq!(trace.source.format, Format::AzureCsv);
        let first = trace.records[0].at.0;
        let after: Vec<i64> = trace.records.iter().map(|record| record.at.0 - first).collect();
        assert_eq!(after, [0, 100, 319_410_000]);
        assert_eq!(trace.records[1].output_tokens, Some(1));
        assert_eq!((trace.records[2].row, trace.records[2].input_tokens), (5, 7));
        assert_eq!(
            trace.warnings[0].to_string(),
            "line 3: GeneratedTokens is 0; one token is asked for"
        );
        assert_eq!(trace.sessions.len(), 3);
    }

    #[test]
    fn burstgpt_columns_are_found_by_name() {
        let trace = loaded(
            "\"Timestamp\",Session ID,Elapsed time,Model,Request tokens,Response tokens,Log Type\n\
             19440110.0,s1,43,GPT-4,906,446,Conversation log\n\
             19440161.5,,2,\"Chat,GPT\",0,0,API log\n\
             19440171.0,s1,,ChatGPT,36,29,Conversation log\n",
        )
        .expect("reads");
        assert_eq!(trace.source.format, Format::BurstGpt);
        let row = |at: usize| {
            let record = &trace.records[at];
            (trace.session_name(record.session), record.turn, record.at.0)
        };
        assert_eq!(row(0), ("s1".to_owned(), 0, 19_440_110_000_000_000));
        assert_eq!(row(1), ("session_000000".to_owned(), 0, 19_440_161_500_000_000));
        assert_eq!(row(2), ("s1".to_owned(), 1, 19_440_171_000_000_000));
        let seconds = |seconds: i64| Some(seconds * 1_000_000_000);
        assert_eq!(trace.recorded.duration_ns, [seconds(43), seconds(2), None]);
        assert_eq!(trace.warnings.len(), 2);
    }

    #[test]
    fn bad_fields_are_named_with_their_line() {
        let azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
        let burst = "Timestamp,Model,Request tokens,Response tokens\n";
        for (text, words) in [
            (format!("{azure}2023-13-16 18:15:46,1,1\n"), "line 2: field \"TIMESTAMP\""),
            (
                format!("{azure}2023-11-16 18:15:46,1\n"),
                "line 2: field \"GeneratedTokens\": found ;",
            ),
            (format!("{burst}5,ChatGPT,-1,18\n"), "line 2: field \"Request tokens\": found -1"),
            (
                format!("{burst}5,ChatGPT,1,18.0001\n"),
                "line 2: field \"Response tokens\": found 18.0001",
            ),
            (
                format!("{burst}5,ChatGPT,1,18\nNaN,x,1,1\n"),
                "line 3: field \"Timestamp\": found NaN",
            ),
            (azure.to_owned(), "has no rows"),
            (
                "TIMESTAMP,ContextTokens,Generated\n1,2,3\n".to_owned(),
                "line 1: found the columns TIMESTAMP, ContextTokens, Generated; missing is \
                 GeneratedTokens; right would be TIMESTAMP, ContextTokens, GeneratedTokens, separated",
            ),
            (
                azure.replace(',', ";") + "2023-11-16 18:15:46;1;1\n",
                "found the columns TIMESTAMP, ContextTokens, GeneratedTokens between semicolons; right \
                 would be TIMESTAMP, ContextTokens, GeneratedTokens, separated by commas",
            ),
            (
                "Timestamp\tModel\trequest tokens\n".to_owned(),
                "between tabs; missing is Request tokens, Response tokens; right would be Timestamp",
            ),
            (
                "timestamp,input_length,output_length\n0,1,1\n".to_owned(),
                "found the columns timestamp, input_length, output_length; right would be TIMESTAMP",
            ),
        ] {
            let found = loaded(&text).expect_err(words);
            assert!(found.contains(words), "{found}");
        }
    }
}
