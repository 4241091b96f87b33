//! The Trace Replay Tester's `detailed_results.csv`: one request a row, in order of their ends.
//!
//! Seconds since 1970. A reply without a token has its prefill end where it began, which is no
//! first token. A request is due when it began to queue. `cache_hit_blocks` is the tool's overlap
//! of sets of blocks; the size of a block is not in the file, and taken from the counts where only
//! one fits them all.

use csv::StringRecord;

use super::ImportError;
use super::facts::{Facts, Failure, Request, of_seconds, of_tokens};

/// Sizes of blocks that servers use.
const BLOCK_TOKENS: [u32; 6] = [16, 32, 64, 128, 256, 512];

/// Where the columns are.
struct Columns {
    user: usize,
    turn: usize,
    start: usize,
    first: Option<usize>,
    done: Option<usize>,
    queue: Option<usize>,
    input: Option<usize>,
    expected: Option<usize>,
    actual: Option<usize>,
    hit_blocks: Option<usize>,
    miss_blocks: Option<usize>,
    success: Option<usize>,
    error: Option<usize>,
    times: Option<usize>,
    tokens: Option<usize>,
}

pub(super) fn facts(bytes: &[u8], progress: &dyn Fn(f32) -> bool) -> Result<Facts, ImportError> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(bytes);
    let head = reader.headers().map_err(|error| ImportError::at(1, error.to_string()))?;
    let (columns, width) = (Columns::of(head)?, head.len());
    let mut facts = Facts { unix_of_zero: Some(0), ..Facts::default() };
    let mut fits = BLOCK_TOKENS.map(|_| true);
    let (mut requests, mut cut) = (Vec::new(), None);
    let mut row = StringRecord::new();
    loop {
        let line = reader.position().line();
        match reader.read_record(&mut row) {
            Ok(false) => break,
            Ok(true) => {}
            Err(error) => return Err(ImportError::at(line, error.to_string())),
        }
        let line = row.position().map_or(line, csv::Position::line);
        let read = reader.position().byte() as f32 / bytes.len() as f32;
        if requests.len() % 1_024 == 0 && !progress(0.9 * read) {
            return Err(ImportError::Cancelled);
        }
        // A row without all of its columns, at the end of a file without the end of its line: the
        // tool was killed, or writes on.
        let ends = reader.position().byte() >= bytes.len() as u64;
        if row.len() < width && ends && !bytes.ends_with(b"\n") && !requests.is_empty() {
            cut = Some(line);
            break;
        }
        let request = columns.request(&mut facts, &row, line)?;
        if let Some(input) = request.input.filter(|_| request.blocks > 0) {
            for (fits, size) in fits.iter_mut().zip(BLOCK_TOKENS) {
                *fits &= (input / size..=input.div_ceil(size)).contains(&request.blocks);
            }
        }
        requests.push((request, columns.number(&row, columns.hit_blocks)));
    }
    let fitting: Vec<u32> =
        fits.iter().zip(BLOCK_TOKENS).filter(|(fits, _)| **fits).map(|(_, size)| size).collect();
    for (mut request, hits) in requests {
        if let ([size], Some(hits), Some(input)) = (&fitting[..], hits, request.input) {
            request.ideal_set = of_tokens(hits * f64::from(*size)).map(|hit| hit.min(input));
        }
        facts.push(request)?;
    }
    facts.warnings = vec![
        "The Trace Replay Tester's file has no schedule: a request counts as due when it began to \
         queue. Host stalls, first bytes, connections and the server's cached tokens are not in it."
            .to_owned(),
    ];
    if let Some(line) = cut {
        facts.warnings.push(format!("the file ends within line {line}, which is left out"));
    }
    Ok(facts)
}

impl Columns {
    fn of(head: &StringRecord) -> Result<Self, ImportError> {
        let place = |name: &str| head.iter().position(|column| column.trim() == name);
        let needed = |name: &str| {
            place(name).ok_or_else(|| ImportError::at(1, format!("no column `{name}`")))
        };
        Ok(Self {
            user: needed("user_id")?,
            turn: needed("request_idx")?,
            start: needed("request_start_time")?,
            first: place("prefill_complete_time"),
            done: place("request_complete_time"),
            queue: place("queue_time"),
            input: place("input_tokens"),
            expected: place("output_tokens_expected"),
            actual: place("output_tokens_actual"),
            hit_blocks: place("cache_hit_blocks"),
            miss_blocks: place("cache_miss_blocks"),
            success: place("success"),
            error: place("error_message"),
            times: place("token_timestamps"),
            tokens: place("tokens_per_chunk"),
        })
    }

    fn number(&self, row: &StringRecord, column: Option<usize>) -> Option<f64> {
        row.get(column?)?.trim().parse().ok().filter(|number: &f64| number.is_finite())
    }

    fn request(
        &self,
        facts: &mut Facts,
        row: &StringRecord,
        line: u64,
    ) -> Result<Request, ImportError> {
        let found = row.get(self.start).unwrap_or_default();
        let sent = self.number(row, Some(self.start)).and_then(of_seconds).ok_or_else(|| {
            let words = format!("request_start_time is {found:?}, not seconds since 1970");
            ImportError::at(line, words)
        })?;
        let time = |column| self.number(row, column).and_then(of_seconds);
        let tokens = |column| self.number(row, column).and_then(of_tokens);
        let completion = tokens(self.actual);
        let mut chunks = self.chunks(row);
        if chunks.is_empty() && completion.is_some_and(|tokens| tokens > 0) {
            // Between the first token and the last nothing is told.
            chunks.extend(time(self.first).map(|first| (first, 1)));
            let last = time(self.done).filter(|_| completion.is_some_and(|tokens| tokens > 1));
            chunks.extend(last.map(|last| (last, 1)));
        }
        chunks.retain(|&(at, _)| at >= sent);
        chunks.sort_by_key(|&(at, _)| at);
        let text = |column: Option<usize>| column.and_then(|column| row.get(column));
        let failed =
            text(self.success).is_some_and(|word| word.trim().eq_ignore_ascii_case("false"));
        let words = text(self.error).unwrap_or_default();
        let blocks = |column| tokens(column).unwrap_or(0);
        Ok(Request {
            row: line,
            session: facts.session(row.get(self.user).unwrap_or_default()),
            turn: tokens(Some(self.turn)).unwrap_or(0),
            due: time(self.queue).map(|queued| sent.saturating_sub(queued)),
            sent,
            chunks,
            done: time(self.done).filter(|&done| done >= sent),
            input: tokens(self.input),
            max_tokens: tokens(self.expected),
            completion,
            blocks: blocks(self.hit_blocks).saturating_add(blocks(self.miss_blocks)),
            failure: failed.then(|| Failure::of(None, words)),
            ..Request::default()
        })
    }

    fn chunks(&self, row: &StringRecord) -> Vec<(i64, u32)> {
        let list = |column: Option<usize>| {
            let text = column.and_then(|column| row.get(column)).unwrap_or_default();
            let text = text.trim().trim_start_matches('[').trim_end_matches(']');
            text.split(',').map(|part| part.trim().parse::<f64>().ok()).collect::<Vec<_>>()
        };
        let times = list(self.times);
        let tokens = list(self.tokens);
        let tokens = tokens.into_iter().chain(std::iter::repeat(None));
        let pairs = times.into_iter().zip(tokens);
        pairs
            .filter_map(|(time, tokens)| {
                let tokens = tokens.and_then(of_tokens).unwrap_or(1);
                Some((time.and_then(of_seconds)?, tokens))
            })
            .collect()
    }
}
