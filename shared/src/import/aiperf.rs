//! AIPerf's `profile_export.jsonl`: one request a line, `metadata` and `metrics` with units.
//!
//! First and last tokens come from `time_to_first_token` and `inter_chunk_latency`; where the gaps
//! are not told, from `request_latency`. A request is due when its credit was issued. Warm-up
//! requests are left out.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use super::ImportError;
use super::facts::{Facts, Failure, Request, of_millis, of_tokens};
use crate::counted::{agreeing, counted};

#[derive(Deserialize)]
struct Line {
    metadata: Metadata,
    #[serde(default)]
    metrics: HashMap<String, Metric>,
    #[serde(default)]
    error: Option<Error>,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    session_num: Option<u64>,
    #[serde(default)]
    x_correlation_id: Option<String>,
    #[serde(default)]
    conversation_id: Option<String>,
    #[serde(default)]
    turn_index: Option<u32>,
    #[serde(default)]
    credit_issued_ns: Option<i64>,
    request_start_ns: i64,
    #[serde(default)]
    request_end_ns: Option<i64>,
    #[serde(default)]
    benchmark_phase: Option<String>,
    #[serde(default)]
    was_cancelled: bool,
}

#[derive(Deserialize)]
struct Metric {
    value: Value,
    #[serde(default)]
    unit: String,
}

#[derive(Deserialize)]
struct Error {
    #[serde(default)]
    code: Option<i64>,
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    message: Option<String>,
}

pub(super) fn facts(bytes: &[u8], progress: &dyn Fn(f32) -> bool) -> Result<Facts, ImportError> {
    // AIPerf's stamps are of the wall clock.
    let mut facts = Facts { unix_of_zero: Some(0), ..Facts::default() };
    let (mut warm_up, mut read, mut without_gaps, mut cut) = (0_u64, 0, false, None);
    for (row, line) in (1_u64..).zip(bytes.split(|&byte| byte == b'\n')) {
        read += line.len() + 1;
        if row.is_multiple_of(1_024) && !progress(0.9 * read as f32 / bytes.len() as f32) {
            return Err(ImportError::Cancelled);
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let line: Line = match serde_json::from_slice(line) {
            Ok(line) => line,
            // The last line of a tool that was killed, or has not ended.
            Err(error) if error.is_eof() && read > bytes.len() && row > 1 => {
                cut = Some(row);
                break;
            }
            Err(error) => {
                return Err(ImportError::at(row, format!("not a record of AIPerf: {error}")));
            }
        };
        if line.metadata.benchmark_phase.as_deref() == Some("warmup") {
            warm_up += 1;
            continue;
        }
        let (request, has_gaps) = request(&mut facts, row, &line);
        without_gaps |= !has_gaps;
        facts.push(request)?;
    }
    facts.warnings = vec![
        "AIPerf's file does not say when a request was scheduled: it counts as due when its credit \
         was issued. Host stalls, first bytes and connections are not in it."
            .to_owned(),
    ];
    if warm_up > 0 {
        let (requests, are) = (counted(warm_up, "request"), agreeing(warm_up, "is", "are"));
        facts.warnings.push(format!("{requests} of the warm-up {are} left out"));
    }
    if let Some(row) = cut {
        facts.warnings.push(format!("the file ends within line {row}, which is left out"));
    }
    if without_gaps {
        let words = "some requests have no gaps between chunks: between their first and last \
                     token nothing is known";
        facts.warnings.push(words.to_owned());
    }
    Ok(facts)
}

/// The request of a line, and whether the gaps between its chunks are known.
fn request(facts: &mut Facts, row: u64, line: &Line) -> (Request, bool) {
    let metadata = &line.metadata;
    let name = metadata.conversation_id.as_ref().or(metadata.x_correlation_id.as_ref());
    let session = match (name, metadata.session_num) {
        (Some(name), _) => facts.session(name),
        (None, Some(number)) => facts.session(&format!("session_{number}")),
        (None, None) => facts.session(&format!("request_{row}")),
    };
    let tokens = |name: &str| line.number(name).and_then(of_tokens);
    let sent = metadata.request_start_ns;
    let (chunks, has_gaps) = chunks(line, sent);
    let status = |code: i64| u16::try_from(code).ok();
    let mut failure = line.error.as_ref().map(|error| {
        let parts = [error.kind.as_deref(), error.message.as_deref()];
        let words = parts.into_iter().flatten().collect::<Vec<_>>().join(": ");
        Failure::of(error.code.and_then(status), &words)
    });
    if metadata.was_cancelled && failure.is_none() {
        failure = Some(Failure::of(Some(499), "cancelled"));
    }
    let request = Request {
        row,
        session,
        turn: metadata.turn_index.unwrap_or(0),
        due: metadata.credit_issued_ns.filter(|&due| due <= sent),
        sent,
        chunks,
        done: metadata.request_end_ns.filter(|&done| done >= sent),
        input: tokens("input_sequence_length").or_else(|| tokens("error_isl")),
        prompt: tokens("usage_prompt_tokens"),
        completion: tokens("usage_completion_tokens").or_else(|| tokens("output_sequence_length")),
        cached: tokens("usage_prompt_cache_read_tokens"),
        failure,
        ..Request::default()
    };
    (request, has_gaps)
}

fn chunks(line: &Line, sent: i64) -> (Vec<(i64, u32)>, bool) {
    let Some(first) = line.time("time_to_first_token") else { return (Vec::new(), true) };
    let mut at = sent.saturating_add(first);
    let mut chunks = vec![(at, 1)];
    let gaps = line.metrics.get("inter_chunk_latency").and_then(|gaps| {
        let millis = gaps.millis();
        let gap = |gap: &Value| of_millis(gap.as_f64()? * millis);
        // Where one is not told, nobody knows when what comes after it came.
        gaps.value.as_array()?.iter().map(gap).collect::<Option<Vec<_>>>()
    });
    if let Some(gaps) = gaps {
        for gap in gaps {
            at = at.saturating_add(gap);
            chunks.push((at, 1));
        }
        return (chunks, true);
    }
    match line.time("request_latency").map(|whole| sent.saturating_add(whole)) {
        Some(last) if last > at => {
            chunks.push((last, 1));
            (chunks, false)
        }
        _ => (chunks, true),
    }
}

impl Line {
    fn number(&self, name: &str) -> Option<f64> {
        self.metrics.get(name)?.value.as_f64()
    }

    /// A length of time in nanoseconds.
    fn time(&self, name: &str) -> Option<i64> {
        let metric = self.metrics.get(name)?;
        of_millis(metric.value.as_f64()? * metric.millis())
    }
}

impl Metric {
    /// Milliseconds in one of its unit.
    fn millis(&self) -> f64 {
        match self.unit.as_str() {
            "ns" => 1e-6,
            "us" => 1e-3,
            "s" | "sec" => 1e3,
            _ => 1.0,
        }
    }
}
