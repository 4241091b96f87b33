//! A table cut into Parquet files by the values of some columns, in folders named `COLUMN=VALUE`.
//!
//! The layout of Hive, which DuckDB, Polars and Spark read as one table:
//! `run=01J…/outcome=ok/part-0.parquet`. Besides the columns of the table of requests there is
//! `run`, the run's id, so that runs lie beside each other in one folder; the content events of a
//! request are where the request is. A column that is in the path is not in the file. Values are
//! escaped as Hive escapes them, in UTF-8; an absent value and an empty text are both
//! [`ABSENT`], which readers take for null. This file knows paths and no disk.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use super::columns::{Kind, RequestColumn, RequestRow, Value, chunk_columns, request_columns};
use super::scraped::{scraped_columns, scraped_rows};
use super::{Beside, Table, parquet, rows_of};
use crate::counted::{counted, grouped};
use crate::metrics::selection::Selection;
use crate::metrics::throughput::in_flight_at_send;
use crate::run::Run;

/// The column that is in no table: the run's id.
pub const RUN: &str = "run";
/// What stands for no value.
pub const ABSENT: &str = "__HIVE_DEFAULT_PARTITION__";
/// The name of each file; a folder of a partition has one.
pub const FILE_NAME: &str = "part-0.parquet";
/// Most bytes of a file's or folder's name: what Linux and nearly every file system allow.
pub const NAME_BYTES_MAX: usize = 255;
/// Letters of a value that are shown where it is too long.
const SHOWN_CHARS: usize = 24;
/// Most partitions of one table: each is a file, and more of them are slower to read than the
/// table.
pub const PARTITIONS_MAX: usize = 10_000;

/// A run's table in parts.
pub struct Partitioned<'a> {
    run: &'a Run,
    beside: Beside<'a>,
    table: Table,
    by: Vec<&'static str>,
    in_flight: Vec<Option<u32>>,
    /// Folders and the requests in them, ascending.
    parts: BTreeMap<String, Vec<u32>>,
}

impl<'a> Partitioned<'a> {
    /// Cuts a table of the chosen requests by these columns, the first one outermost.
    ///
    /// # Errors
    /// In words, if there is no such column, it is named twice, its values are fractions or too
    /// long for a name, or there would be more than [`PARTITIONS_MAX`] parts.
    pub fn new(
        chosen: &Selection<'a>,
        table: Table,
        beside: Beside<'a>,
        names: &[String],
    ) -> Result<Self, String> {
        let run = chosen.run();
        let columns = beside.request_columns();
        let by: Vec<By<'a>> =
            names.iter().map(|name| by(name, &columns)).collect::<Result<_, _>>()?;
        if let Some(other) = names.iter().find(|name| table == Table::Scraped && *name != RUN) {
            return Err(format!("{other} is a request's; what servers say is cut by {RUN} alone"));
        }
        for (place, name) in names.iter().enumerate() {
            if names[..place].contains(name) {
                return Err(format!("{name} is named twice; name each column once"));
            }
        }
        let in_flight = in_flight_at_send(run);
        let mut parts: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        if table == Table::Scraped {
            parts.insert(step(RUN, Some(&run.manifest.run_id))?, Vec::new());
        }
        let cut = chosen.requests().filter(|_| table != Table::Scraped);
        for row in rows_of(run, cut, &beside, &in_flight) {
            let Ok(number) = u32::try_from(row.i) else { continue };
            parts.entry(folder(&by, &row)?).or_default().push(number);
            if parts.len() > PARTITIONS_MAX {
                let most = grouped(PARTITIONS_MAX as u64);
                return Err(format!(
                    "{} has more than {most} values in this run, and each would be a file; name \
                     columns with fewer",
                    names.join(" with ")
                ));
            }
        }
        let by = by.iter().map(By::name).collect();
        Ok(Self { run, beside, table, by, in_flight, parts })
    }

    /// The files, as paths below the folder of all.
    pub fn paths(&self) -> impl Iterator<Item = String> {
        self.parts.keys().map(|folder| format!("{folder}/{FILE_NAME}"))
    }

    /// The columns by which it is cut, the first one outermost.
    #[must_use]
    pub fn columns(&self) -> &[&'static str] {
        &self.by
    }

    /// The run's id as a path has it.
    #[must_use]
    pub fn run_id(&self) -> String {
        escaped(&self.run.manifest.run_id)
    }

    /// Writes one of them.
    ///
    /// # Errors
    /// If writing fails, or there is no such part.
    pub fn write(&self, path: &str, out: impl Write + Send) -> io::Result<()> {
        let folder = path.strip_suffix(FILE_NAME).map(|folder| folder.trim_end_matches('/'));
        let places = folder.and_then(|folder| self.parts.get(folder));
        let places = places.ok_or(io::ErrorKind::NotFound)?.iter().map(|&i| i as usize);
        match self.table {
            Table::Requests => {
                let mut columns = self.beside.request_columns();
                columns.retain(|column| !self.by.contains(&column.name));
                parquet::write(
                    &columns,
                    rows_of(self.run, places, &self.beside, &self.in_flight),
                    out,
                )
            }
            Table::Chunks => {
                let mut columns = chunk_columns();
                columns.retain(|column| !self.by.contains(&column.name));
                parquet::write(&columns, super::chunk_rows(self.run, places), out)
            }
            Table::Scraped => parquet::write(&scraped_columns(), scraped_rows(self.run), out),
        }
    }
}

/// What a table is cut by.
enum By<'a> {
    Run,
    Column(RequestColumn<'a>),
}

impl By<'_> {
    fn name(&self) -> &'static str {
        match self {
            Self::Run => RUN,
            Self::Column(column) => column.name,
        }
    }
}

fn by<'a>(name: &str, columns: &[RequestColumn<'a>]) -> Result<By<'a>, String> {
    if name == RUN {
        return Ok(By::Run);
    }
    let whole = |column: &&RequestColumn<'_>| column.kind != Kind::Float;
    match columns.iter().find(|column| column.name == name) {
        Some(column) if whole(&column) => Ok(By::Column(*column)),
        Some(_) => Err(format!(
            "{name} has fractions, of which nearly every one would be a file of its own; name a \
             column with few values"
        )),
        None => {
            let names: Vec<&str> = columns.iter().filter(whole).map(|column| column.name).collect();
            Err(format!("{name:?} is no column; right would be {RUN}, {}", names.join(", ")))
        }
    }
}

/// The folder of a row.
fn folder<'a>(by: &[By<'a>], row: &RequestRow<'a>) -> Result<String, String> {
    let mut path = String::new();
    for by in by {
        if !path.is_empty() {
            path.push('/');
        }
        let value = match by {
            By::Run => Some(row.run.manifest.run_id.clone()),
            By::Column(column) => (column.value)(row).and_then(|value| match value {
                Value::Int(value) => Some(value.to_string()),
                Value::Bool(value) => Some(value.to_string()),
                Value::Text(text) => Some(text.into_owned()),
                Value::Float(_) => None,
            }),
        };
        path.push_str(&step(by.name(), value.as_deref())?);
    }
    Ok(path)
}

/// The folder's name of one column and value; `Err`, in words, if no folder can have it.
fn step(name: &str, value: Option<&str>) -> Result<String, String> {
    let value = value.filter(|value| !value.is_empty());
    let step = match value {
        Some(value) => format!("{name}={}", escaped(value)),
        None => format!("{name}={ABSENT}"),
    };
    if step.len() <= NAME_BYTES_MAX {
        return Ok(step);
    }
    let value = value.unwrap_or_default();
    let begin: String = value.chars().take(SHOWN_CHARS).collect();
    Err(format!(
        "{name} has a value of {} that begins with {begin:?}; as a folder's name, {name}=VALUE, it \
         would have {} bytes, and a name has at most {NAME_BYTES_MAX}; name a column with shorter \
         values",
        counted(value.chars().count() as u64, "letter"),
        grouped(step.len() as u64)
    ))
}

/// The columns by which an earlier export cut its table, from one of its files' paths below the
/// folder of all, and the run's id if it is among them; `None` for a file that is no export's.
#[must_use]
pub fn cut_by(path: &str) -> Option<(Vec<&str>, Option<&str>)> {
    let (folders, file) = path.rsplit_once('/')?;
    let mut columns = Vec::new();
    let mut run = None;
    for (name, value) in folders.split('/').map(|step| step.split_once('=').unwrap_or((step, ""))) {
        if value.is_empty() || !is_column(name) {
            return None;
        }
        if name == RUN {
            run = Some(value);
        }
        columns.push(name);
    }
    (file == FILE_NAME).then_some((columns, run))
}

/// Whether a folder's name is one that an export gives.
#[must_use]
pub fn is_step(name: &str) -> bool {
    name.split_once('=').is_some_and(|(column, value)| is_column(column) && !value.is_empty())
}

fn is_column(name: &str) -> bool {
    name == RUN || request_columns().iter().any(|column| column.name == name)
}

/// A value with what a path may not say by itself as `%` and two hexadecimal digits.
fn escaped(value: &str) -> String {
    let mut path = String::with_capacity(value.len());
    for letter in value.chars() {
        if letter.is_ascii_control() || "\"#%'*/:=?\\{}[]^".contains(letter) {
            // Writing to a `String` cannot fail.
            let _ = write!(path, "%{:02X}", u32::from(letter));
        } else {
            path.push(letter);
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use ::parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;
    use crate::log::sample::{self, Sample};
    use crate::metrics::slo::Goals;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    /// The file's columns and its rows.
    fn read(parts: &Partitioned<'_>, path: &str) -> (Vec<String>, Vec<i64>) {
        let file = tempfile::tempfile().expect("a temporary file");
        parts.write(path, &file).expect("room on the disk");
        let reader = SerializedFileReader::new(file).expect("our own file");
        let schema = reader.metadata().file_metadata().schema().get_fields().to_vec();
        let columns = schema.iter().map(|field| field.name().to_owned()).collect();
        let rows = reader.get_row_iter(None).expect("rows").map(|row| {
            use ::parquet::record::RowAccessor;
            row.expect("a row").get_long(0).expect("the request's number")
        });
        (columns, rows.collect())
    }

    #[test]
    fn each_request_is_in_the_folder_of_its_values() {
        let run = Run::read(&sample::log(4, 200)).expect("a log");
        let goals = Goals::default();
        let beside = Beside::goals(&goals);
        let by = names(&["run", "outcome", "http_status"]);
        for table in [Table::Requests, Table::Chunks] {
            let parts =
                Partitioned::new(&Selection::new(&run, None), table, beside, &by).expect("columns");
            let mut seen = Vec::new();
            let id = &run.manifest.run_id;
            for path in parts.paths() {
                let (columns, rows) = read(&parts, &path);
                assert!(!columns.iter().any(|column| by.contains(column)), "{columns:?}");
                for &i in &rows {
                    let i = usize::try_from(i).expect("a place");
                    let outcome = run.requests.outcome(i).map_or(ABSENT, |outcome| outcome.name());
                    let status = run
                        .requests
                        .status(i)
                        .map_or(ABSENT.to_owned(), |status| status.to_string());
                    let place = format!("run={id}/outcome={outcome}/http_status={status}");
                    assert_eq!(path, format!("{place}/part-0.parquet"));
                    seen.push(i);
                }
            }
            assert!(parts.paths().count() >= 3);
            seen.sort_unstable();
            let all: Vec<usize> = match table {
                Table::Requests => (0..200).collect(),
                _ => (0..200).flat_map(|i| vec![i; run.chunks.count(i)]).collect(),
            };
            assert_eq!(seen, all, "every row once");
        }
    }

    #[test]
    fn hostile_values_stay_one_folder_name() {
        let mut sample = Sample::new();
        sample.send(0);
        sample.sessions = vec!["../a=b/%41\n?*é x".to_owned()];
        let run = Run::read(&sample.bytes()).expect("a log");
        let goals = Goals::default();
        let cut = |by: &[&str]| {
            let parts = Partitioned::new(
                &Selection::new(&run, None),
                Table::Requests,
                Beside::goals(&goals),
                &names(by),
            )?;
            Ok::<Vec<String>, String>(parts.paths().collect())
        };
        assert_eq!(
            cut(&["session", "user"]).expect("columns"),
            [format!("session=..%2Fa%3Db%2F%2541%0A%3F%2Aé x/user={ABSENT}/part-0.parquet")]
        );
        let told = cut(&["sesion"]).expect_err("no such column");
        assert!(
            told.contains("\"sesion\" is no column; right would be run, request, row"),
            "{told}"
        );
        let told = cut(&["ttft_ms"]).expect_err("fractions");
        assert!(told.contains("ttft_ms has fractions"), "{told}");
        let told = cut(&["core", "core"]).expect_err("twice");
        assert!(told.contains("named twice"), "{told}");
    }

    /// A folder's name has 255 bytes at most, with the column and with what is escaped.
    #[test]
    fn a_value_too_long_for_a_name_is_refused_in_words() {
        let cut = |session: &str| {
            let mut sample = Sample::new();
            sample.send(0);
            sample.sessions = vec![session.to_owned()];
            let run = Run::read(&sample.bytes()).expect("a log");
            let goals = Goals::default();
            let by = names(&["session"]);
            let parts = Partitioned::new(
                &Selection::new(&run, None),
                Table::Requests,
                Beside::goals(&goals),
                &by,
            )?;
            Ok::<Vec<String>, String>(parts.paths().collect())
        };
        let longest = NAME_BYTES_MAX - "session=".len();
        assert_eq!(cut(&"a".repeat(longest)).expect("it fits").len(), 1);
        let told = cut(&"a".repeat(longest + 1)).expect_err("a byte too many");
        assert_eq!(
            told,
            "session has a value of 248 letters that begins with \"aaaaaaaaaaaaaaaaaaaaaaaa\"; as \
             a folder's name, session=VALUE, it would have 256 bytes, and a name has at most 255; \
             name a column with shorter values"
        );
        let told = cut(&"/".repeat(100)).expect_err("three bytes each");
        assert!(told.contains("of 100 letters") && told.contains("308 bytes"), "{told}");
        let told = cut(&"é".repeat(124)).expect_err("two bytes each");
        assert!(told.contains("of 124 letters") && told.contains("256 bytes"), "{told}");
    }

    #[test]
    fn an_exports_files_are_told_from_others() {
        assert_eq!(
            cut_by("run=7/outcome=ok/part-0.parquet"),
            Some((vec!["run", "outcome"], Some("7")))
        );
        assert_eq!(cut_by("core=3/part-0.parquet"), Some((vec!["core"], None)));
        for other in [
            "part-0.parquet",
            "colour=red/part-0.parquet",
            "outcome=ok/data_0.parquet",
            "outcome=/part-0.parquet",
            "outcome/part-0.parquet",
            "mine/outcome=ok/part-0.parquet",
        ] {
            assert_eq!(cut_by(other), None, "{other}");
        }
        assert!(is_step("run=x") && is_step("ttft_ms=1") && !is_step("mine") && !is_step("a=b"));
    }

    #[test]
    fn too_many_parts_are_refused() {
        let mut sample = Sample::new();
        for k in 0..=10_000 {
            sample.send(k);
        }
        let run = Run::read(&sample.bytes()).expect("a log");
        let goals = Goals::default();
        let by = names(&["request"]);
        let told = Partitioned::new(
            &Selection::new(&run, None),
            Table::Requests,
            Beside::goals(&goals),
            &by,
        )
        .err();
        assert!(told.expect("too many").contains("more than 10,000 values"));
    }
}
