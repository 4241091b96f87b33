//! `onbeat inspect`: what is in a trace, for a person in ten lines or for a program as JSON.

use std::fmt::Write as _;
use std::io::Write;

use clap::ValueEnum;
use onbeat_shared::trace::stats::{Arrivals, Cache, Lengths, Stats};
use onbeat_shared::trace::{Source, Trace};
use serde::Serialize;

use crate::cli::flags::trace::TraceFlags;
use crate::cli::printing;
use crate::error::EngineError;
use crate::trace;

/// The arguments of `onbeat inspect`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    trace: TraceFlags,

    /// How the answer is written.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Output,
}

/// `--format` as typed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For a person.
    #[default]
    Text,
    /// For a program: every number has its unit in its name, and null is unknown.
    Json,
}

/// The JSON form.
#[derive(Serialize)]
struct Report<'a> {
    schema_version: u32,
    trace: &'a Source,
    #[serde(flatten)]
    stats: &'a Stats,
}

/// Changes when a key changes its meaning or goes away.
const SCHEMA_VERSION: u32 = 1;

/// Prints what is in a trace.
///
/// # Errors
/// When the trace cannot be read or the output cannot be written.
pub fn run(args: &Args, out: &mut dyn Write) -> Result<u8, EngineError> {
    let trace = trace::load(args.trace.path()?, &args.trace.options())?;
    let stats = Stats::of(&trace);
    let text = match args.format {
        Output::Text => text(&trace, &stats),
        Output::Json => {
            let report =
                Report { schema_version: SCHEMA_VERSION, trace: &trace.source, stats: &stats };
            let json = serde_json::to_string_pretty(&report).expect("plain data serialises");
            json + "\n"
        }
    };
    match out.write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(printing(error)),
        _ => Ok(0),
    }
}

fn text(trace: &Trace, stats: &Stats) -> String {
    let Source { name, sha256, format, rows, bytes } = &trace.source;
    let mut text = format!(
        "{name}: {format}, {} rows, {} bytes, sha256 {sha256}\n",
        grouped(*rows),
        grouped(*bytes)
    );
    let mut line = |name: &str, words: String| {
        writeln!(text, "  {name:<10} {words}").expect("a String takes everything");
    };
    line("arrivals", arrivals(&stats.arrivals));
    line("bursts", bursts(&stats.arrivals));
    for (name, found) in [("input", &stats.input_tokens), ("output", &stats.output_tokens)] {
        line(name, found.as_ref().map_or_else(|| "unknown".to_owned(), lengths));
    }
    let sessions = stats.sessions;
    line(
        "sessions",
        format!(
            "{}, {} with follow-ups, longest {} {}",
            grouped(sessions.count),
            grouped(sessions.with_follow_ups),
            grouped(sessions.turns_max),
            if sessions.turns_max == 1 { "turn" } else { "turns" }
        ),
    );
    match &stats.cache {
        Some(cache) => {
            line("blocks", blocks(cache));
            line("cache", hits(cache));
        }
        None => line("cache", "unknown: no row has block ids".to_owned()),
    }
    for (place, oddity) in stats.oddities.iter().enumerate() {
        line(if place == 0 { "odd" } else { "" }, oddity.clone());
    }
    text
}

fn arrivals(arrivals: &Arrivals) -> String {
    // A slow trace's rate has two digits that count, too.
    let places = if arrivals.mean_per_s.is_some_and(|rate| rate < 0.1) { 3 } else { 2 };
    let rate = known(arrivals.mean_per_s, places);
    let pause = arrivals.gap_max_s.map(|gap| format!(", longest pause {} s", decimal(gap, 1)));
    format!(
        "over {} s, {rate} a second on average, at most {} in one second{}",
        decimal(arrivals.span_s, 1),
        grouped(arrivals.peak_in_1_s),
        pause.unwrap_or_default()
    )
}

fn bursts(arrivals: &Arrivals) -> String {
    format!(
        "index of dispersion {} (1 s) and {} (60 s), CV of gaps {}, at most {} at one instant",
        known(arrivals.dispersion_1_s, 1),
        known(arrivals.dispersion_60_s, 1),
        known(arrivals.gap_cv, 1),
        grouped(arrivals.most_at_one_instant)
    )
}

fn lengths(lengths: &Lengths) -> String {
    format!(
        "tokens p10 {}, p50 {}, p90 {}, p99 {}, max {}, mean {}, {} in all",
        decimal(lengths.p10, 0),
        decimal(lengths.p50, 0),
        decimal(lengths.p90, 0),
        decimal(lengths.p99, 0),
        grouped(lengths.max.into()),
        decimal(lengths.mean, 0),
        grouped(lengths.total)
    )
}

fn blocks(cache: &Cache) -> String {
    format!(
        "{} tokens each, {} different ones, ids a row p50 {}, p99 {}, max {}",
        grouped(cache.block_tokens.into()),
        grouped(cache.unique_blocks),
        decimal(cache.ids_per_row.p50, 0),
        decimal(cache.ids_per_row.p99, 0),
        grouped(cache.ids_per_row.max.into())
    )
}

fn hits(cache: &Cache) -> String {
    let percent = |share: Option<f64>| known(share.map(|share| share * 100.0), 1);
    format!(
        "ideal hit rate {} % of tokens (prefixes, infinite cache); {} % as a set of blocks; median \
         row {} %; {} % of rows hit nothing",
        percent(cache.ideal_hit_rate),
        percent(cache.ideal_set_overlap_rate),
        percent(cache.row_hit_rate_p50),
        percent(cache.rows_without_hit)
    )
}

fn known(value: Option<f64>, places: usize) -> String {
    value.map_or_else(|| "unknown".to_owned(), |value| decimal(value, places))
}

/// A number with so many places and commas between thousands.
fn decimal(value: f64, places: usize) -> String {
    // Halves go up, as people round; formatting alone would take them to the even digit.
    let factor = 10_f64.powi(i32::try_from(places).unwrap_or(0));
    let value = (value * factor).round() / factor;
    let plain = format!("{value:.places$}");
    match plain.split_once('.') {
        Some((whole, fraction)) => format!("{}.{fraction}", commas(whole)),
        None => commas(&plain),
    }
}

fn grouped(value: u64) -> String {
    commas(&value.to_string())
}

fn commas(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    let mut out = sign.to_owned();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Only {
        #[command(flatten)]
        args: Args,
    }

    const TRACE: &str = "\
        {\"timestamp\":0,\"input_length\":2048,\"output_length\":10,\"hash_ids\":[1,2,3,4]}\n\
        {\"timestamp\":0,\"input_length\":2048,\"output_length\":20,\"hash_ids\":[1,2,3,5]}\n\
        {\"timestamp\":120000,\"input_length\":600,\"output_length\":0,\"hash_ids\":[9,2]}\n";

    fn inspected(options: &[&str]) -> String {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(TRACE.as_bytes()).expect("written");
        let path = file.path().to_str().expect("a plain path");
        let words = ["onbeat", path].into_iter().chain(options.iter().copied());
        let only = Only::try_parse_from(words).expect("parses");
        let mut out = Vec::new();
        run(&only.args, &mut out).expect("inspects");
        let name = file.path().file_name().expect("a name").to_str().expect("plain");
        String::from_utf8(out).expect("UTF-8").replace(name, "t.jsonl")
    }

    #[test]
    fn a_person_reads_ten_lines() {
        insta::assert_snapshot!(inspected(&[]), @r#"
        t.jsonl: mooncake_trace, 3 rows, 227 bytes, sha256 25b8d33e0ab5caeb4df1e3acad39710bb0b92d48067b6c9375af2d9a328edc0f
          arrivals   over 120.0 s, 0.025 a second on average, at most 2 in one second, longest pause 120.0 s
          bursts     index of dispersion 1.6 (1 s) and 0.7 (60 s), CV of gaps 1.0, at most 2 at one instant
          input      tokens p10 890, p50 2,048, p90 2,048, p99 2,048, max 2,048, mean 1,565, 4,696 in all
          output     tokens p10 3, p50 10, p90 18, p99 20, max 20, mean 10, 31 in all
          sessions   3, 0 with follow-ups, longest 1 turn
          blocks     512 tokens each, 6 different ones, ids a row p50 4, p99 4, max 4
          cache      ideal hit rate 32.7 % of tokens (prefixes, infinite cache); 34.6 % as a set of blocks; median row 0.0 %; 66.7 % of rows hit nothing
          odd        line 3: output_length is 0; one token is asked for
                     50 % of the gaps between arrivals are zero: 3 rows share 2 instants
        "#);
    }

    #[test]
    fn a_program_reads_json() {
        let json: serde_json::Value =
            serde_json::from_str(&inspected(&["--format", "json"])).expect("JSON");
        assert_eq!(json["trace"]["format"], "mooncake_trace");
        assert_eq!(json["rows"], 3);
        assert_eq!(json["arrivals"]["most_at_one_instant"], 2);
        assert_eq!(json["cache"]["unique_blocks"], 6);
        let rate = json["cache"]["ideal_hit_rate"].as_f64().expect("known");
        assert!((rate - 1536.0 / 4696.0).abs() < 1e-12, "{rate}");
    }

    #[test]
    fn numbers_have_commas_between_thousands() {
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(decimal(-1234.56, 1), "-1,234.6");
        assert_eq!(decimal(999.0, 0), "999");
    }
}
