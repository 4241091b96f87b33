//! What only the whole file shows: a block size that is not the file's, a unit that is not its own.
//!
//! Both would distort a replay silently, so they are said; neither changes anything, because the
//! user may know better.

use onbeat_shared::counted::counted;
use onbeat_shared::trace::{Format, Trace, Warning};
use onbeat_shared::units::{NANOS_PER_MILLI, NANOS_PER_SECOND};

/// Adds the warnings of the whole file.
pub(crate) fn whole(trace: &mut Trace) {
    // Ids of recorded prompts are hints that are passed on: no text is made of them.
    let block_size = if trace.recorded.prompts { None } else { block_size(trace) };
    let found = [block_size, unit(trace)];
    trace.warnings.extend(found.into_iter().flatten());
}

/// Ids of a row are short when they leave room for this many times their tokens.
const SHORT: u64 = 2;

fn block_size(trace: &Trace) -> Option<Warning> {
    let block_tokens = u64::from(trace.block_tokens);
    let (mut rows, mut short, mut line) = (0_u64, 0_u64, None);
    let (mut covered, mut input, mut ids) = (0_u64, 0_u64, 0_u64);
    for record in trace.records.iter().filter(|record| record.block_count > 0) {
        let covers = u64::from(record.block_count) * block_tokens;
        rows += 1;
        if u64::from(record.input_tokens) >= SHORT * covers {
            short += 1;
            line = line.or(Some(record.row));
            covered += covers;
            input += u64::from(record.input_tokens);
            ids += u64::from(record.block_count);
        }
    }
    // Some formats leave a tail unhashed; most rows being short is another matter.
    if short == 0 || short * 2 < rows {
        return None;
    }
    let guess = (input / ids).next_power_of_two();
    Some(Warning {
        line,
        rows: short,
        words: format!(
            "ids cover {}x fewer tokens than input_length in {}% of rows: {block_tokens} is hardly \
             the file's block size, or cache hits will be too few (--isl-block-size {guess} would \
             fit)",
            input / covered,
            short * 100 / rows
        ),
    })
}

/// Fewer rows say nothing about a rate.
const ROWS_THAT_TELL: usize = 20;

fn unit(trace: &Trace) -> Option<Warning> {
    let rows = trace.records.len();
    let first = trace.origin()?.0;
    let last = trace.records.iter().map(|record| record.at.0).max()?;
    let span_s = (i128::from(last) - i128::from(first)) as f64 / NANOS_PER_SECOND as f64;
    let warn = |looks: &str| {
        Some(Warning {
            line: None,
            rows: rows as u64,
            words: format!(
                "timestamps are read as {}: span {span_s:.3} s for {}; looks like {looks}",
                match trace.source.format {
                    Format::Bailian | Format::BurstGpt | Format::Agentic | Format::RagPulse => {
                        "seconds"
                    }
                    Format::Mooncake | Format::RawPayload | Format::Baseten => "milliseconds",
                    Format::AzureCsv | Format::Otel => "dates",
                },
                counted(rows as u64, "row")
            ),
        })
    };
    let per_second = rows as f64 / span_s;
    match trace.source.format {
        // Unix seconds of 2001 to 2033 in a column of milliseconds.
        Format::Mooncake if (1e9..2e9).contains(&(first as f64 / NANOS_PER_MILLI as f64)) => {
            warn("Unix seconds")
        }
        Format::Mooncake if rows >= ROWS_THAT_TELL && span_s > 0.0 && per_second >= 500.0 => {
            warn("seconds")
        }
        Format::Baseten if (1e9..2e9).contains(&(first as f64 / NANOS_PER_MILLI as f64)) => {
            warn("seconds")
        }
        // (Unix milliseconds in a column of seconds are beyond 292 years, and refused.)
        Format::Bailian
            if rows >= ROWS_THAT_TELL
                && per_second < 0.01
                && trace.records.iter().all(|record| record.at.0 % NANOS_PER_SECOND == 0) =>
        {
            warn("milliseconds")
        }
        _ => None,
    }
}
