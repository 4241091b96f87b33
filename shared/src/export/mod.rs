//! Tables of a run for other programs: one row per request or per content event.
//!
//! Which columns there are is in [`columns`]; how they are written is one file per format. Nothing
//! is computed here that [`crate::metrics`] does not define. Everything goes to a writer the caller
//! brings, row by row or in row groups of bounded size; [`hive`] cuts a table into files by the
//! values of columns, which [`queries`] ask. [`aiperf`], [`vllm_bench`] and [`kv_cache_tester`]
//! write a run as those tools write theirs, [`hdr`] as histograms and [`chrome_trace`] as a
//! timeline for any tool that reads such, [`html`] as a page for a browser, and [`markdown`] as
//! words for a pull request.

pub mod aiperf;
pub mod chrome_trace;
pub mod columns;
pub mod hdr;
pub mod hive;
pub mod html;
pub mod kv_cache_tester;
pub mod markdown;
mod parquet;
pub mod queries;
pub mod schema;
pub mod scraped;
mod text;
pub mod vllm_bench;

use std::io::{self, Write};

use columns::{
    ChunkRow, RequestColumn, RequestRow, answer_columns, chunk_columns, request_columns,
};
use scraped::{scraped_columns, scraped_rows};

use crate::log::Outcome;
use crate::metrics::selection::Selection;
use crate::metrics::slo::Goals;
use crate::metrics::throughput::in_flight_at_send;
use crate::run::{End, Run};

/// How a table is written as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    /// Comma-separated values with a header line; an absent value is empty.
    Csv,
    /// One JSON object per line; an absent value is null.
    JsonLines,
}

/// Which table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// One row per planned request, in send order.
    Requests,
    /// One row per content event, by request and then by time.
    Chunks,
    /// One row per value that a server said of itself, by time.
    Scraped,
}

/// What a table shows beside the run.
#[derive(Clone, Copy, Debug)]
pub struct Beside<'a> {
    /// Goals for the `slo_...` columns, which are absent without them.
    pub goals: &'a Goals,
    /// For each request, the answer that the trace recorded; it gets columns of its own.
    pub recorded_texts: Option<&'a [Option<String>]>,
}

impl<'a> Beside<'a> {
    /// Goals and nothing else.
    #[must_use]
    pub const fn goals(goals: &'a Goals) -> Self {
        Self { goals, recorded_texts: None }
    }

    fn request_columns<'b>(&self) -> Vec<RequestColumn<'b>> {
        let mut columns = request_columns();
        if self.recorded_texts.is_some() {
            columns.extend(answer_columns());
        }
        columns
    }
}

/// Writes a table of a run as text.
///
/// # Errors
/// If writing fails; a closed pipe keeps its kind.
pub fn write_text(
    run: &Run,
    table: Table,
    format: TextFormat,
    beside: &Beside<'_>,
    out: impl Write,
) -> io::Result<()> {
    write_text_of(run, 0..run.requests.len(), table, format, beside, out)
}

/// Writes a table of some requests as text: those at these places in the plan, in this order. Rows
/// and columns are those of the whole table; a request in flight beside these counts all the same.
///
/// # Errors
/// If writing fails; a closed pipe keeps its kind.
pub fn write_text_of(
    run: &Run,
    places: impl Iterator<Item = usize>,
    table: Table,
    format: TextFormat,
    beside: &Beside<'_>,
    out: impl Write,
) -> io::Result<()> {
    match (table, format) {
        (Table::Requests, TextFormat::Csv) => {
            text::write_csv(&beside.request_columns(), request_rows(run, places, beside), out)
        }
        (Table::Requests, TextFormat::JsonLines) => {
            let rows = request_rows(run, places, beside);
            text::write_json_lines(&beside.request_columns(), rows, out)
        }
        (Table::Chunks, TextFormat::Csv) => {
            text::write_csv(&chunk_columns(), chunk_rows(run, places), out)
        }
        (Table::Chunks, TextFormat::JsonLines) => {
            text::write_json_lines(&chunk_columns(), chunk_rows(run, places), out)
        }
        (Table::Scraped, TextFormat::Csv) => {
            text::write_csv(&scraped_columns(), scraped_rows(run), out)
        }
        (Table::Scraped, TextFormat::JsonLines) => {
            text::write_json_lines(&scraped_columns(), scraped_rows(run), out)
        }
    }
}

/// Writes a table of a run as Parquet: zstd-compressed, every column optional, 65,536 rows per row
/// group.
///
/// # Errors
/// If writing fails.
pub fn write_parquet(
    run: &Run,
    table: Table,
    beside: &Beside<'_>,
    out: impl Write + Send,
) -> io::Result<()> {
    write_parquet_of(run, 0..run.requests.len(), table, beside, out)
}

/// Writes a table of some requests as Parquet: those at these places in the plan, in this order.
///
/// # Errors
/// If writing fails.
pub fn write_parquet_of(
    run: &Run,
    places: impl Iterator<Item = usize>,
    table: Table,
    beside: &Beside<'_>,
    out: impl Write + Send,
) -> io::Result<()> {
    match table {
        Table::Requests => {
            parquet::write(&beside.request_columns(), request_rows(run, places, beside), out)
        }
        Table::Chunks => parquet::write(&chunk_columns(), chunk_rows(run, places), out),
        Table::Scraped => parquet::write(&scraped_columns(), scraped_rows(run), out),
    }
}

/// Whether the other tools would have a record of request `i`: it was sent or failed to be, and the
/// log says how it ended. Those tools know success and failure alone, and what was in flight when
/// the log ends is neither.
fn has_record(run: &Run, i: usize) -> bool {
    match run.requests.end(i) {
        End::Known(class) => class.outcome() != Outcome::NeverSent,
        End::Open | End::NeverSent | End::NotReached | End::Lost => false,
    }
}

/// How many of the chosen requests have no record in other tools' files because the log does not
/// say how they ended.
#[must_use]
pub fn without_end(chosen: &Selection<'_>) -> u64 {
    let requests = &chosen.run().requests;
    chosen.requests().filter(|&i| requests.end(i) == End::Open).count() as u64
}

fn request_rows<'a>(
    run: &'a Run,
    places: impl Iterator<Item = usize>,
    beside: &Beside<'a>,
) -> impl Iterator<Item = RequestRow<'a>> {
    rows_of(run, places, beside, in_flight_at_send(run))
}

/// Rows of a run whose requests in flight at each sending are known.
fn rows_of<'a>(
    run: &'a Run,
    places: impl Iterator<Item = usize>,
    beside: &Beside<'a>,
    in_flight: impl AsRef<[Option<u32>]>,
) -> impl Iterator<Item = RequestRow<'a>> {
    let Beside { goals, recorded_texts } = *beside;
    places.map(move |i| RequestRow {
        run,
        i,
        in_flight: in_flight.as_ref()[i],
        goals,
        recorded_text: recorded_texts.and_then(|texts| texts.get(i)?.as_deref()),
    })
}

fn chunk_rows(run: &Run, places: impl Iterator<Item = usize>) -> impl Iterator<Item = ChunkRow> {
    let numbered = places.filter_map(|i| Some((u32::try_from(i).ok()?, i)));
    numbered.flat_map(|(request, i)| {
        let events = (0_u32..).zip(run.chunks.row(i).iter());
        events.map(move |(index, chunk)| ChunkRow { request, index, chunk })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::sample::{self, Sample};
    use crate::log::{Class, RecordedRow};

    const MS: i64 = 1_000_000;

    fn table(run: &Run, table: Table, format: TextFormat) -> String {
        let mut out = Vec::new();
        let goals = Goals::parse("ttft:150").expect("a goal");
        write_text(run, table, format, &Beside::goals(&goals), &mut out)
            .expect("memory takes everything");
        String::from_utf8(out).expect("text")
    }

    fn two_requests() -> Run {
        let mut sample = Sample::new();
        let request = sample.plan(0);
        sample.dispatch(request, 0, 20_500);
        sample.chunks(request, &[100 * MS, 120 * MS]);
        sample.usage(request, 121 * MS, [Some(100), Some(2), None]);
        sample.done(request, 121 * MS, Class::Ok);
        let never = sample.plan(MS);
        sample.done(never, 130 * MS, Class::NotReached);
        sample.recorded.push(RecordedRow {
            cached_tokens: Some(64),
            duration_ns: Some(150 * MS),
            first_token_ns: Some(85_500_000),
            cancelled: Some(true),
            ..RecordedRow::of(request)
        });
        Run::read(&sample.bytes()).expect("a log")
    }

    #[test]
    fn requests_as_csv() {
        let csv = table(&two_requests(), Table::Requests, TextFormat::Csv);
        let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
        let shown =
            |line: usize, at: usize| Some(lines[line][at]).filter(|field| !field.is_empty());
        // One line per column: its name, the answered request, the one that never left.
        let turned: Vec<String> = (0..lines[0].len())
            .map(|at| {
                let [name, ok, never] = [0, 1, 2].map(|line| shown(line, at).unwrap_or("-"));
                format!("{name}: {ok} | {never}")
            })
            .collect();
        insta::assert_snapshot!(turned.join("\n"), @r#"
        request: 0 | 1
        row: 1 | 2
        session: session_000000 | session_000000
        turn: 0 | 1
        user: - | -
        core: 0 | 0
        target: http://127.0.0.1:8000 | http://127.0.0.1:8000
        due_ns: 0 | 1000000
        ready_ns: 0 | -
        sent_ns: 20500 | -
        sent_end_ns: - | -
        first_byte_ns: - | -
        first_token_ns: 100000000 | -
        second_token_ns: 120000000 | -
        last_token_ns: 120000000 | -
        done_ns: 121000000 | 130000000
        outcome: ok | never_sent
        http_status: 200 | -
        error: - | not_reached
        finish_reason: length | -
        input_tokens_recorded: 100 | 100
        output_tokens_planned: 10 | 10
        prompt_tokens: 100 | -
        completion_tokens: 2 | -
        reasoning_tokens: - | -
        cached_tokens: - | -
        ideal_cached_tokens: - | -
        chunks: 2 | -
        body_bytes: 700 | 700
        response_bytes: 0 | 0
        connection_reused: false | -
        lateness_us: 20.5 | -
        in_stall: false | -
        ttft_ms: 99.9795 | -
        ttft_from_due_ms: 100 | -
        itl_ms: 20 | -
        e2e_ms: 119.9795 | -
        e2e_from_due_ms: 120 | -
        slo_ttft: true | -
        slo_decode: - | -
        in_flight_at_send: 1 | -
        recorded_canceled: true | -
        recorded_ttft_ms: 85.5 | -
        recorded_e2e_ms: 150 | -
        recorded_cached_tokens: 64 | -
        trace_id: - | -
        queue_ms: - | -
        agent_wait_ms: - | -
        effective_ttft_ms: - | -
        ideal_set_tokens: - | -
        host: - | -
        shard: - | -
        cpu: 0 | 0
        "#);
    }

    #[test]
    fn requests_of_users_say_whose_they_are() {
        let run = Run::read(&crate::log::sample_users::log(7, 8)).expect("a log");
        let lines = table(&run, Table::Requests, TextFormat::JsonLines);
        let rows: Vec<serde_json::Value> =
            lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(rows.len(), run.requests.len());
        let agent = rows.iter().find(|row| row["session"] == "User-002-SA1").expect("one");
        assert_eq!(
            (&agent["user"], &agent["trace_id"]),
            (&"User-002".into(), &{ serde_json::Value::from("trace_0001:agent_001") })
        );
        for row in rows {
            let [due, ready] = ["due_ns", "ready_ns"].map(|key| row[key].as_f64().expect(key));
            assert_eq!(row["queue_ms"], (ready - due) / 1e6);
            assert!(
                row["ideal_set_tokens"].as_u64() > row["ideal_cached_tokens"].as_u64(),
                "{row}"
            );
        }
    }

    #[test]
    fn requests_of_a_merged_run_say_which_machine_sent_them() {
        let mut sample = sample::sample(3, 40);
        sample.merge(&[1, 0]);
        let run = Run::read(&sample.bytes()).expect("a log");
        let lines = table(&run, Table::Requests, TextFormat::JsonLines);
        for line in lines.lines() {
            let row: serde_json::Value = serde_json::from_str(line).expect("JSON");
            let shard = 1 - row["core"].as_u64().expect("a core");
            assert_eq!(row["shard"], shard);
            assert_eq!(row["host"], format!("node-{shard}"));
        }
    }

    #[test]
    fn requests_as_json_lines() {
        let lines = table(&two_requests(), Table::Requests, TextFormat::JsonLines);
        let rows: Vec<serde_json::Value> =
            lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0]["lateness_us"], 20.5);
        assert_eq!(rows[0]["slo_ttft"], true);
        assert!(rows[0]["cached_tokens"].is_null(), "unknown is null");
        assert_eq!(rows[1]["outcome"], "never_sent");
        assert!(rows[1]["sent_ns"].is_null());
        assert!(rows[1]["slo_ttft"].is_null(), "it was cut off, so it neither meets nor misses");
    }

    #[test]
    fn recorded_answers_are_columns_only_where_they_were_asked_for() {
        let run = two_requests();
        let goals = Goals::default();
        let texts = [Some("it said \"yes\"".to_owned()), None];
        let beside = Beside { recorded_texts: Some(&texts), ..Beside::goals(&goals) };
        let mut out = Vec::new();
        write_text(&run, Table::Requests, TextFormat::Csv, &beside, &mut out).expect("room");
        let csv = String::from_utf8(out).expect("text");
        let ends: Vec<&str> = csv.lines().collect();
        assert!(ends[0].ends_with(",recorded_output_bytes,recorded_output_text"), "{csv}");
        assert!(ends[1].ends_with(",13,\"it said \"\"yes\"\"\""), "{csv}");
        assert!(ends[2].ends_with(",,"), "{csv}");
        assert!(!table(&run, Table::Requests, TextFormat::Csv).contains("recorded_output"));
    }

    #[test]
    fn some_requests_have_the_rows_that_all_have() {
        let run = Run::read(&sample::log(5, 90)).expect("a log");
        let goals = Goals::parse("ttft:150").expect("a goal");
        let some = [3, 4, 40, 89];
        for table_of in [Table::Requests, Table::Chunks] {
            let mut out = Vec::new();
            let (places, beside) = (some.into_iter(), Beside::goals(&goals));
            write_text_of(&run, places, table_of, TextFormat::Csv, &beside, &mut out)
                .expect("memory takes everything");
            let found = String::from_utf8(out).expect("text");
            let all = table(&run, table_of, TextFormat::Csv);
            let number = |line: &str| line.split(',').next().and_then(|text| text.parse().ok());
            let wanted: Vec<&str> = all
                .lines()
                .filter(|line| number(line).is_none_or(|number: usize| some.contains(&number)))
                .collect();
            assert_eq!(found.lines().collect::<Vec<_>>(), wanted);
            assert!(wanted.len() > some.len(), "{table_of:?}");
        }
    }

    #[test]
    fn chunks_as_csv() {
        let csv = table(&two_requests(), Table::Chunks, TextFormat::Csv);
        assert_eq!(
            csv,
            "request,index,time_ns,tokens,bytes\n0,0,100000000,1,5\n0,1,120000000,1,5\n"
        );
    }
}
