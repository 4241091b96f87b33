//! What serde_json finds in a line, against what the reader of rows took from it.
//!
//! Only rows whose members are plain are compared: of Mooncake's, AIPerf's and Bailian's formats
//! and of bodies. Differences that are meant: half of a surrogate pair is JSON, and only refused in
//! a text that somebody asks for; nor does a number that no 64 bits hold matter elsewhere.

use onbeat::trace::TraceError;
use onbeat_shared::trace::record::Record;
use onbeat_shared::trace::{Format, Trace};
use serde::de::IgnoredAny;
use serde_json::Value;

use super::place::is_packed;

/// Whether the records have the values of their lines.
pub(super) fn check(input: &[u8], trace: &Trace) -> Result<(), String> {
    let rows = [Format::Mooncake, Format::Bailian, Format::RawPayload];
    if !rows.contains(&trace.source.format) || is_packed(input) {
        return Ok(());
    }
    let lines: Vec<(u64, &[u8])> = lines(input).collect();
    if lines.len() != trace.records.len() {
        return Err(format!("{} records of {} lines", trace.records.len(), lines.len()));
    }
    for ((line, bytes), record) in lines.into_iter().zip(&trace.records) {
        let value = match serde_json::from_slice::<Value>(bytes) {
            Ok(value) => value,
            Err(error) => match serde_json::from_slice::<IgnoredAny>(bytes) {
                Ok(IgnoredAny) => continue,
                Err(_) => return Err(format!("line {line} is no JSON: {error}")),
            },
        };
        if !value.is_object() {
            return Err(format!("line {line} is no object"));
        }
        if record.row != line {
            return Err(format!("line {line} is said to be {}", record.row));
        }
        if trace.source.format != Format::RawPayload {
            same(trace, record, &value).map_err(|words| format!("line {line}: {words}"))?;
        }
    }
    Ok(())
}

/// A line that is refused as no JSON is none for serde_json either.
pub(super) fn check_refusal(input: &[u8], error: &TraceError) -> Result<(), String> {
    let TraceError::Row { line, fault, .. } = error else { return Ok(()) };
    let is_syntax = fault.field.is_none() && fault.right.starts_with("one JSON object a line");
    if !is_syntax || is_packed(input) {
        return Ok(());
    }
    let Some((_, bytes)) = lines(input).find(|(number, _)| number == line) else {
        return Err(format!("line {line} is blank, and refused"));
    };
    match serde_json::from_slice::<Value>(bytes) {
        Ok(Value::Object(_)) => Err(format!("an object is refused: {fault}")),
        _ => Ok(()),
    }
}

/// The lines that are not blank, without the blanks around them and the file's mark.
fn lines(input: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let input = input.strip_prefix(b"\xef\xbb\xbf").unwrap_or(input);
    let lines = (1..).zip(input.split(|&byte| byte == b'\n'));
    lines.map(|(line, bytes)| (line, bytes.trim_ascii())).filter(|(_, bytes)| !bytes.is_empty())
}

fn same(trace: &Trace, record: &Record, value: &Value) -> Result<(), String> {
    let length = |key: &str| match &value[key] {
        Value::Null => Ok(None),
        number => match number.as_f64() {
            Some(found) if found >= 0.0 && found.fract() == 0.0 => Ok(Some(found)),
            _ => Err(format!("{key} is {number}, and accepted")),
        },
    };
    if let Some(input) = length("input_length")?
        && f64::from(record.input_tokens) != input
    {
        return Err(format!("input_length {input} is read as {}", record.input_tokens));
    }
    // No tokens at all are asked for as one.
    let output = length("output_length")?.map(|output| output.max(1.0));
    if output != record.output_tokens.map(f64::from) {
        return Err(format!("output_length {output:?} is read as {:?}", record.output_tokens));
    }
    let ids: Vec<u64> = trace.blocks_of(record).iter().collect();
    let found = match &value["hash_ids"] {
        Value::Array(found) => found.as_slice(),
        _ => &[],
    };
    // Ids beyond the prompt are cut off where the user allows them.
    if ids.len() > found.len() {
        return Err(format!("{} ids are read as {}", found.len(), ids.len()));
    }
    for (id, found) in ids.iter().zip(found) {
        let same = found.as_u64() == Some(*id)
            || found.as_i64().is_some_and(|found| found.cast_unsigned() == *id)
            || found.as_f64() == Some(*id as f64);
        if !same {
            return Err(format!("the id {found} is read as {id}"));
        }
    }
    Ok(())
}
