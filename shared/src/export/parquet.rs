//! Tables as Parquet, through the format's own column writers (no Arrow in between).
//!
//! Every column is optional, so null stays null. Rows are gathered into groups of 65,536, which
//! bounds the memory and lets readers skip; each column's meaning is in the file's key-value
//! metadata under its name.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};

use super::columns::{Column, Kind, Value};

/// Rows in one row group.
const GROUP_ROWS: usize = 65_536;

/// Writes a table as one Parquet file.
pub(super) fn write<'a, R>(
    columns: &[Column<'a, R>],
    rows: impl Iterator<Item = R>,
    out: impl Write + Send,
) -> io::Result<()> {
    write_file(columns, rows, out).map_err(|error| match error {
        ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(cause) => *cause,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    })
}

fn write_file<'a, R>(
    columns: &[Column<'a, R>],
    mut rows: impl Iterator<Item = R>,
    out: impl Write + Send,
) -> Result<(), ParquetError> {
    let docs = columns
        .iter()
        .map(|column| KeyValue::new(column.name.to_owned(), column.doc.to_owned()))
        .collect();
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(concat!("onbeat ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(docs))
        .build();
    let mut file = SerializedFileWriter::new(out, schema(columns)?, Arc::new(properties))?;
    let mut group = Vec::with_capacity(GROUP_ROWS.min(rows.size_hint().0.max(1)));
    loop {
        group.clear();
        group.extend(rows.by_ref().take(GROUP_ROWS));
        if group.is_empty() {
            break;
        }
        let mut writer = file.next_row_group()?;
        for column in columns {
            write_column(&mut writer, column, &group)?;
        }
        writer.close()?;
    }
    file.close()?;
    Ok(())
}

fn schema<R>(columns: &[Column<'_, R>]) -> Result<TypePtr, ParquetError> {
    let field = |column: &Column<'_, R>| {
        let (physical, logical) = match column.kind {
            Kind::Int => (PhysicalType::INT64, None),
            Kind::Float => (PhysicalType::DOUBLE, None),
            Kind::Bool => (PhysicalType::BOOLEAN, None),
            Kind::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        };
        Type::primitive_type_builder(column.name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build()
            .map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
    Ok(Arc::new(Type::group_type_builder("onbeat").with_fields(fields).build()?))
}

fn write_column<W: Write + Send, R>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column: &Column<'_, R>,
    rows: &[R],
) -> Result<(), ParquetError> {
    match column.kind {
        Kind::Int => write_values::<Int64Type, _, _>(group, column, rows, |value| match value {
            Value::Int(value) => Some(value),
            _ => None,
        }),
        Kind::Float => write_values::<DoubleType, _, _>(group, column, rows, |value| match value {
            Value::Float(value) => Some(value),
            _ => None,
        }),
        Kind::Bool => write_values::<BoolType, _, _>(group, column, rows, |value| match value {
            Value::Bool(value) => Some(value),
            _ => None,
        }),
        Kind::Text => {
            write_values::<ByteArrayType, _, _>(group, column, rows, |value| match value {
                Value::Text(text) => Some(ByteArray::from(text.into_owned().into_bytes())),
                _ => None,
            })
        }
    }
}

/// Writes one column of one row group: the values that exist, and for each row whether one does.
fn write_values<T: DataType, W: Write + Send, R>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column: &Column<'_, R>,
    rows: &[R],
    unwrap: fn(Value<'_>) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let mut values = Vec::with_capacity(rows.len());
    let mut present = Vec::with_capacity(rows.len());
    for row in rows {
        let value = (column.value)(row).and_then(unwrap);
        present.push(i16::from(value.is_some()));
        values.extend(value);
    }
    let mut writer = group
        .next_column()?
        .ok_or_else(|| ParquetError::General(format!("no place for column {}", column.name)))?;
    writer.typed::<T>().write_batch(&values, Some(&present), None)?;
    writer.close()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    use crate::export::{Beside, Table, write_parquet};
    use crate::log::sample;
    use crate::metrics::slo::Goals;
    use crate::run::Run;

    fn read_back(run: &Run, table: Table) -> (Vec<BTreeMap<String, Field>>, usize) {
        let file = tempfile::tempfile().expect("a temporary file");
        write_parquet(run, table, &Beside::goals(&Goals::default()), &file)
            .expect("room on the disk");
        let reader = SerializedFileReader::new(file).expect("our own file");
        let rows = reader
            .get_row_iter(None)
            .expect("rows")
            .map(|row| {
                let row = row.expect("a row");
                row.get_column_iter().map(|(name, field)| (name.clone(), field.clone())).collect()
            })
            .collect();
        (rows, reader.num_row_groups())
    }

    #[test]
    fn requests_read_back_and_null_stays_null() {
        let run = Run::read(&sample::log(9, 250)).expect("a log");
        let (rows, _) = read_back(&run, Table::Requests);
        assert_eq!(rows.len(), 250);
        let mut unknown = 0;
        for (i, row) in rows.iter().enumerate() {
            assert_eq!(row.len(), 53);
            assert_eq!(row["request"], Field::Long(i64::try_from(i).expect("small")));
            let sent = run.requests.sent(i).map_or(Field::Null, |sent| Field::Long(sent.0));
            assert_eq!(row["sent_ns"], sent);
            let cached = run.requests.cached_tokens(i);
            unknown += usize::from(cached.is_none());
            let cached = cached.map_or(Field::Null, |tokens| Field::Long(i64::from(tokens)));
            assert_eq!(row["cached_tokens"], cached);
            assert_eq!(row["user"], Field::Null);
            let name = run.session_name(i).expect("a name").to_owned();
            assert_eq!(row["session"], Field::Str(name));
            assert_eq!(row["connection_reused"], Field::Bool(i > 0));
        }
        assert!(unknown > 10, "the sample must have unknown values");
    }

    #[test]
    fn chunks_read_back_over_several_row_groups() {
        let run = Run::read(&sample::log(9, 2_500)).expect("a log");
        let (rows, groups) = read_back(&run, Table::Chunks);
        assert_eq!(rows.len(), run.chunks.len());
        assert_eq!(groups, run.chunks.len().div_ceil(super::GROUP_ROWS));
        assert!(groups > 1, "{} events", run.chunks.len());
        let last = (0..run.requests.len()).rfind(|&i| run.chunks.count(i) > 0).expect("events");
        let event = run.chunks.row(last).chunk(run.chunks.count(last) - 1);
        assert_eq!(rows.last().expect("rows")["time_ns"], Field::Long(event.time.0));
    }

    #[test]
    fn an_empty_run_is_a_file_with_a_schema() {
        let run = Run::read(&sample::log(1, 0)).expect("a log");
        assert_eq!(read_back(&run, Table::Requests), (Vec::new(), 0));
    }
}
