//! Rows of JSON Lines, checked one by one, as records of a trace.
//!
//! What Bailian and Mooncake share is here: times to exact nanoseconds, lengths, block ids that
//! must fit the prompt's length, and counters of what is odd. What they do not share (units,
//! required members, sessions) is asked of the format's own module.

use onbeat_shared::counted::counted;
use onbeat_shared::trace::blocks::{BLOCK_IDS_MAX, BlockIds};
use onbeat_shared::trace::decimal::{Decimal, DecimalError};
use onbeat_shared::trace::record::Record;
use onbeat_shared::trace::recorded::Content;
use onbeat_shared::trace::{Format, Warning};
use onbeat_shared::units::{SessionIndex, TraceNanos};

use crate::limits::REQUESTS_MAX;
use crate::trace::dialect::Facts;
use crate::trace::error::Fault;
use crate::trace::row::{HASH_IDS, Name, Row, RowParser, Value};
use crate::trace::scan::{Members, shown};
use crate::trace::{TraceOptions, bailian, diagnose, dialect};

/// Reads rows and keeps what they say.
#[derive(Debug)]
pub(crate) struct RowReader {
    format: Format,
    block_tokens: u32,
    lenient: bool,
    parser: RowParser,
    /// Whether the first row's timestamp was a text; all rows must agree.
    text_times: Option<bool>,
    records: Vec<Record>,
    blocks: BlockIds,
    links: Vec<bailian::Link>,
    dialect: dialect::Rows,
    oddities: Oddities,
}

/// What was read.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(crate) records: Vec<Record>,
    pub(crate) blocks: BlockIds,
    pub(crate) block_tokens: u32,
    /// One for each row of a Bailian trace.
    pub(crate) links: Vec<bailian::Link>,
    pub(crate) dialect: dialect::Rows,
    pub(crate) warnings: Vec<Warning>,
}

/// Odd rows, counted: the first line of each kind and how many there are.
#[derive(Debug, Default)]
struct Oddities {
    kinds: Vec<(Oddity, u64, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Oddity {
    Repeated(&'static str),
    EmptyPrompt,
    NoOutput,
    Trimmed,
}

impl RowReader {
    pub(crate) fn new(format: Format, options: &TraceOptions) -> Self {
        Self {
            format,
            block_tokens: options.block_tokens.unwrap_or(format.block_tokens()),
            lenient: options.lenient,
            parser: RowParser::new(),
            text_times: None,
            records: Vec::new(),
            blocks: BlockIds::default(),
            links: Vec::new(),
            dialect: dialect::Rows::default(),
            oddities: Oddities::default(),
        }
    }

    pub(crate) const fn format(&self) -> Format {
        self.format
    }

    pub(crate) const fn rows(&self) -> u64 {
        self.records.len() as u64
    }

    /// Reads one line as a row.
    pub(crate) fn read(&mut self, line: u64, bytes: &[u8]) -> Result<(), Fault> {
        let first_block = self.blocks.len();
        let parsed = self.parser.parse(bytes, &mut self.blocks);
        let row = parsed.map_err(|refused| diagnose::fault_of(bytes, &refused))?;
        let text = RowText { row: &row, bytes };
        let mut facts = Facts::default();
        match self.format {
            Format::Mooncake => facts = self.dialect.add(self.records.len(), text)?,
            Format::RawPayload => return self.body(line, first_block, &row, bytes),
            _ => {}
        }
        let at = if facts.untimed { TraceNanos(0) } else { self.timestamp(text)? };
        let written = facts.content != Content::Words;
        let input_tokens = match text.length(Name::InputLength)? {
            Some(tokens) => tokens,
            // Nobody counted what is written out.
            None if written => 0,
            None => {
                return Err(text.wrong(Name::InputLength, "a whole number of tokens, 0 or more"));
            }
        };
        let output_tokens = self.output(line, text)?;
        let block_count = self.check_ids(line, text, first_block, input_tokens)?;
        if self.format == Format::Bailian {
            self.links.push(bailian::link(text)?);
        }
        if input_tokens == 0 && !written {
            self.oddities.count(Oddity::EmptyPrompt, line);
        }
        if let Some(key) = row.repeated {
            self.oddities.count(Oddity::Repeated(key), line);
        }
        self.keep(Record {
            row: line,
            at,
            input_tokens,
            output_tokens,
            session: SessionIndex(0),
            turn: 0,
            first_block: first_block as u64,
            block_count,
        })
    }

    /// Keeps one line as a whole body: what is in it is its sender's business.
    fn body(
        &mut self,
        line: u64,
        first_block: usize,
        row: &Row,
        bytes: &[u8],
    ) -> Result<(), Fault> {
        self.blocks.truncate(first_block);
        let text = RowText { row, bytes };
        let facts = self.dialect.add_body(text);
        let at = if facts.untimed { TraceNanos(0) } else { self.timestamp(text)? };
        self.keep(Record {
            row: line,
            at,
            input_tokens: 0,
            output_tokens: None,
            session: SessionIndex(0),
            turn: 0,
            first_block: 0,
            block_count: 0,
        })
    }

    /// Keeps a record as a session of its own, until the format says otherwise.
    fn keep(&mut self, record: Record) -> Result<(), Fault> {
        let place = self.records.len();
        if place == REQUESTS_MAX {
            return Err(Fault::line("one row too many", format!("at most {REQUESTS_MAX} rows")));
        }
        let session = SessionIndex(u32::try_from(place).expect("bounded by REQUESTS_MAX"));
        self.records.push(Record { session, ..record });
        Ok(())
    }

    /// Everything read so far.
    pub(crate) fn into_rows(mut self) -> Rows {
        self.records.shrink_to_fit();
        self.blocks.shrink_to_fit();
        Rows {
            records: self.records,
            blocks: self.blocks,
            block_tokens: self.block_tokens,
            links: self.links,
            dialect: self.dialect,
            warnings: self.oddities.warnings(),
        }
    }

    fn timestamp(&mut self, text: RowText<'_>) -> Result<TraceNanos, Fault> {
        let (power, unit) = match self.format {
            Format::Bailian => (9, "seconds"),
            _ => (6, "milliseconds"),
        };
        let right = format!("a number of {unit} within 292 years of zero");
        let value = text.row.value(Name::Timestamp);
        let is_text = matches!(value, Value::Text(_));
        if *self.text_times.get_or_insert(is_text) != is_text {
            let right = if is_text { "a number" } else { "a text" };
            return Err(text.wrong(Name::Timestamp, format!("{right}, as in the first row")));
        }
        let nanos = match value {
            Value::Whole(number) => {
                let nanos = number.checked_mul(10_i128.pow(power));
                nanos.and_then(|nanos| i64::try_from(nanos).ok()).ok_or(DecimalError::OutOfRange)
            }
            Value::Fraction => decimal(text.raw(Name::Timestamp), power),
            Value::Text(number) => decimal(Some(number.trim().as_bytes()), power),
            _ => Err(DecimalError::NotANumber),
        };
        nanos.map(TraceNanos).map_err(|_refused| text.wrong(Name::Timestamp, right))
    }

    fn output(&mut self, line: u64, text: RowText<'_>) -> Result<Option<u32>, Fault> {
        let tokens = text.length(Name::OutputLength)?;
        match tokens {
            None if self.format == Format::Bailian => {
                Err(text.wrong(Name::OutputLength, "a whole number of tokens, 0 or more"))
            }
            Some(0) => {
                self.oddities.count(Oddity::NoOutput, line);
                Ok(Some(1))
            }
            tokens => Ok(tokens),
        }
    }

    /// How many ids the row has, once they are known to fit its length.
    fn check_ids(
        &mut self,
        line: u64,
        text: RowText<'_>,
        first_block: usize,
        input_tokens: u32,
    ) -> Result<u32, Fault> {
        let found = || text.found(HASH_IDS);
        if text.row.bad_ids {
            return Err(Fault::field(HASH_IDS, found(), "a list of whole 64-bit numbers"));
        }
        if text.row.too_many_ids {
            let right = format!("at most {BLOCK_IDS_MAX} block ids in the whole file");
            return Err(Fault::field(HASH_IDS, found(), right));
        }
        let count = u32::try_from(self.blocks.len() - first_block).expect("BLOCK_IDS_MAX fits");
        let fitting = input_tokens.div_ceil(self.block_tokens);
        if count <= fitting {
            return Ok(count);
        }
        if !self.lenient {
            let found = format!(
                "{} of {} tokens each, but input_length is {input_tokens}",
                counted(count.into(), "id"),
                self.block_tokens
            );
            let right = format!(
                "at most {} (--lenient cuts the others off; --isl-block-size names another block \
                 size)",
                counted(fitting.into(), "id")
            );
            return Err(Fault::field(HASH_IDS, found, right));
        }
        self.oddities.count(Oddity::Trimmed, line);
        self.blocks.truncate(first_block + fitting as usize);
        Ok(fitting)
    }
}

/// A parsed row beside the text it came from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowText<'a> {
    pub(crate) row: &'a Row,
    pub(crate) bytes: &'a [u8],
}

impl<'a> RowText<'a> {
    fn raw(self, name: Name) -> Option<&'a [u8]> {
        Members::of(self.bytes).last_value(name.key())
    }

    fn found(self, key: &str) -> String {
        Members::of(self.bytes).last_value(key).map_or_else(|| "nothing".to_owned(), shown)
    }

    /// The fault of a member that is missing or of the wrong kind.
    pub(crate) fn wrong(self, name: Name, right: impl Into<String>) -> Fault {
        Fault::field(name.key(), self.found(name.key()), right)
    }

    /// A whole number; `None` when it is absent or `null`.
    pub(crate) fn whole(self, name: Name) -> Result<Option<i128>, Fault> {
        match self.row.value(name) {
            Value::Absent | Value::Null => Ok(None),
            Value::Whole(number) => Ok(Some(*number)),
            // `512.0` and `5.12e2` are whole, and written so by some converters.
            Value::Fraction => {
                let text = self.raw(name).and_then(|raw| std::str::from_utf8(raw).ok());
                let number = text.and_then(|text| Decimal::parse(text).ok()?.whole());
                number
                    .map(|number| Some(number.into()))
                    .ok_or_else(|| self.wrong(name, "a whole number"))
            }
            Value::Text(_) | Value::Other => Err(self.wrong(name, "a whole number")),
        }
    }

    /// A length in tokens; `None` when it is absent or `null`.
    fn length(self, name: Name) -> Result<Option<u32>, Fault> {
        let Some(number) = self.whole(name)? else { return Ok(None) };
        // The top value means "none" in a log.
        let tokens = u32::try_from(number).ok().filter(|&tokens| tokens != u32::MAX);
        let right = || format!("a whole number of tokens from 0 to {}", u32::MAX - 1);
        tokens.map(Some).ok_or_else(|| self.wrong(name, right()))
    }
}

/// A number's text times ten to the power of `power`.
pub(crate) fn decimal(raw: Option<&[u8]>, power: u32) -> Result<i64, DecimalError> {
    let text = raw.and_then(|raw| std::str::from_utf8(raw).ok()).ok_or(DecimalError::NotANumber)?;
    Decimal::parse(text)?.scaled(power)
}

impl Oddities {
    fn count(&mut self, oddity: Oddity, line: u64) {
        match self.kinds.iter_mut().find(|(kind, _, _)| *kind == oddity) {
            Some((_, _, rows)) => *rows += 1,
            None => self.kinds.push((oddity, line, 1)),
        }
    }

    fn warnings(self) -> Vec<Warning> {
        let warning = |(oddity, line, rows)| {
            let what = match oddity {
                Oddity::Repeated(key) => format!("the key {key:?} appears twice; the last counts"),
                Oddity::EmptyPrompt => {
                    "input_length is 0: the prompt is empty, which many servers refuse".to_owned()
                }
                Oddity::NoOutput => "output_length is 0; one token is asked for".to_owned(),
                Oddity::Trimmed => {
                    "more hash_ids than input_length has blocks; the others are cut off".to_owned()
                }
            };
            let words = if rows == 1 { what } else { format!("{what} ({rows} such rows)") };
            Warning { line: Some(line), rows, words }
        };
        self.kinds.into_iter().map(warning).collect()
    }
}
