//! Tables as CSV and as JSON Lines.
//!
//! Numbers are written shortest-exact: reading them back gives the same 64 bits. Quoting follows
//! RFC 4180. An absent value is an empty field in CSV and null in JSON, so a text that is empty and
//! one that is absent look alike in CSV only.

use std::io::{self, Write};

use serde_json::{Map, Number};

use super::columns::{Column, Value};

/// Writes a header line and one line per row.
pub(super) fn write_csv<'a, R>(
    columns: &[Column<'a, R>],
    rows: impl Iterator<Item = R>,
    out: impl Write,
) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(columns.iter().map(|column| column.name)).map_err(io_error)?;
    let mut field = String::new();
    for row in rows {
        for column in columns {
            field.clear();
            match (column.value)(&row) {
                None => {}
                Some(Value::Text(text)) => field.push_str(&text),
                Some(Value::Int(value)) => field.push_str(&value.to_string()),
                Some(Value::Float(value)) => field.push_str(&value.to_string()),
                Some(Value::Bool(value)) => field.push_str(if value { "true" } else { "false" }),
            }
            csv.write_field(&field).map_err(io_error)?;
        }
        csv.write_record(None::<&[u8]>).map_err(io_error)?;
    }
    csv.flush()
}

/// Writes one object per line, with every column in it.
pub(super) fn write_json_lines<'a, R>(
    columns: &[Column<'a, R>],
    rows: impl Iterator<Item = R>,
    out: impl Write,
) -> io::Result<()> {
    let mut out = io::BufWriter::with_capacity(1 << 16, out);
    for row in rows {
        let object: Map<String, serde_json::Value> = columns
            .iter()
            .map(|column| (column.name.to_owned(), json((column.value)(&row))))
            .collect();
        serde_json::to_writer(&mut out, &object)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// The writer's own error, so that a closed pipe can be told from a full disk.
fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

fn json(value: Option<Value<'_>>) -> serde_json::Value {
    match value {
        None => serde_json::Value::Null,
        Some(Value::Int(value)) => value.into(),
        Some(Value::Float(value)) => {
            Number::from_f64(value).map_or(serde_json::Value::Null, serde_json::Value::Number)
        }
        Some(Value::Bool(value)) => value.into(),
        Some(Value::Text(text)) => text.into_owned().into(),
    }
}
