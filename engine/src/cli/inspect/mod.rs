//! `onbeat inspect`: what is in a trace, for a person in ten lines or for a program as JSON.
//!
//! Every format is taken, also those that are not replayed. A file that goes with a trace and is
//! none is no failure: what it is, and what to open instead, is the answer.

mod numbers;
mod page;

use std::io::Write;

use clap::ValueEnum;
use onbeat_shared::foreign::printable;
use onbeat_shared::trace::stats::Stats;
use onbeat_shared::trace::{Source, Trace};
use serde::Serialize;

use crate::cli::flags::number::whole;
use crate::cli::flags::trace::TraceFlags;
use crate::cli::printing;
use crate::error::EngineError;
use crate::trace::{self, material::Material};

/// The arguments of `onbeat inspect`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    trace: TraceFlags,

    /// How the answer is written.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Output,

    /// Tell the ideal hit rate of a cache that holds so many tokens (may be repeated; default: of
    /// some powers of ten).
    #[arg(long, value_name = "TOKENS", value_parser = whole::<u64>)]
    cache_tokens: Vec<u64>,
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

/// The JSON form for a file that goes with a trace.
#[derive(Serialize)]
struct MaterialReport<'a> {
    schema_version: u32,
    material: &'a Material,
}

/// Changes when a key changes its meaning or goes away.
const SCHEMA_VERSION: u32 = 1;

/// Prints what is in a trace.
///
/// # Errors
/// When the trace cannot be read or the output cannot be written.
pub fn run(args: &Args, out: &mut dyn Write) -> Result<u8, EngineError> {
    let (path, options) = (args.trace.path()?, args.trace.options());
    let text = match trace::material(path, &options)? {
        Some(material) => of_material(&material, args.format),
        None => of_trace(&trace::read(path, &options)?, args),
    };
    match out.write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(printing(error)),
        _ => Ok(0),
    }
}

fn of_material(material: &Material, format: Output) -> String {
    match format {
        Output::Text => printable(&page::of_material(material)).into_owned(),
        Output::Json => json(&MaterialReport { schema_version: SCHEMA_VERSION, material }),
    }
}

fn of_trace(trace: &Trace, args: &Args) -> String {
    let stats = Stats::of(trace, &args.cache_tokens);
    match args.format {
        // A file's name may be somebody else's.
        Output::Text => printable(&page::of_trace(trace, &stats, &args.cache_tokens)).into_owned(),
        Output::Json => {
            json(&Report { schema_version: SCHEMA_VERSION, trace: &trace.source, stats: &stats })
        }
    }
}

fn json(report: &impl Serialize) -> String {
    serde_json::to_string_pretty(report).expect("plain data serialises") + "\n"
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
        inspected_of(TRACE, options)
    }

    fn inspected_of(trace: &str, options: &[&str]) -> String {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(trace.as_bytes()).expect("written");
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
          blocks     512 tokens each, 6 different, ids a row p50 4, p99 4, max 4
          cache      ideal hit rate 32.7 % of tokens (whole prefixes, infinite cache); 34.6 % as a set of blocks
                     hit rate by row p10 0.0 %, p50 0.0 %, p90 60.0 %; 66.7 % of rows hit nothing
                     by tokens that a cache holds (oldest forgotten): 32.7 % with 10,000
          odd        line 3: output_length is 0; one token is asked for
                     50 % of the gaps between arrivals are zero: 3 rows share 2 instants
        "#);
    }

    #[test]
    fn a_name_that_a_terminal_would_obey_is_shown_and_not_obeyed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a\u{1b}[2J.jsonl");
        std::fs::write(&path, TRACE).expect("written");
        let words = ["onbeat", path.to_str().expect("text")];
        let only = Only::try_parse_from(words).expect("parses");
        let mut out = Vec::new();
        run(&only.args, &mut out).expect("inspects");
        assert!(out.starts_with(b"a\\u{1b}[2J.jsonl: mooncake_trace"));
    }

    #[test]
    fn rows_without_times_have_no_arrivals() {
        let rows = "{\"input_length\":1}\n{\"session_id\":\"a\",\"input_length\":2}\n";
        let page = inspected_of(rows, &[]);
        assert!(page.contains("arrivals   unknown: the rows have no times\n"), "{page}");
        assert!(!page.contains("bursts") && !page.contains("instant"), "{page}");
        let json: serde_json::Value =
            serde_json::from_str(&inspected_of(rows, &["--format", "json"])).expect("JSON");
        assert_eq!(json["arrivals"], serde_json::Value::Null);
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
        let of_rows = ["p10", "p50", "p90"].map(|at| &json["cache"][format!("row_hit_rate_{at}")]);
        let of_rows = of_rows.map(|rate| rate.as_f64().expect("known"));
        assert!((of_rows[2] - 0.6).abs() < 1e-12 && of_rows[..2] == [0.0, 0.0], "{of_rows:?}");
    }
}
