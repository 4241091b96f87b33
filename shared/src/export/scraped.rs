//! The table of what servers said of themselves: one row per value, and one per asking that failed.
//!
//! By time; at one instant by source, name and labels. A failed asking has its words and no value,
//! so that a gap can be told from a level that stayed.

use super::columns::{Column, Kind, Value};
use crate::log::SeriesKind;
use crate::metrics::latency::nanos;
use crate::run::Run;
use crate::run::scraped::{Asking, Point, Series, Servers};
use crate::units::RunNanos;

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct ScrapedRow<'a> {
    source: &'a str,
    what: What<'a>,
}

#[derive(Clone, Copy, Debug)]
enum What<'a> {
    Value(&'a Series, Point),
    Failure(&'a Asking, &'a str),
}

impl<'a> ScrapedRow<'a> {
    const fn time(&self) -> RunNanos {
        match self.what {
            What::Value(_, point) => point.time,
            What::Failure(asking, _) => asking.time(),
        }
    }

    const fn series(&self) -> Option<&'a Series> {
        match self.what {
            What::Value(series, _) => Some(series),
            What::Failure(..) => None,
        }
    }
}

/// The columns of the table, in order.
#[must_use]
pub fn scraped_columns<'a>() -> Vec<Column<'a, ScrapedRow<'a>>> {
    let column = |name, kind, doc, value: fn(&ScrapedRow<'a>) -> Option<Value<'a>>| Column {
        name,
        kind,
        doc,
        value,
    };
    vec![
        column("time_ns", Kind::Int, "The middle between asking and the whole answer", |row| {
            Some(Value::Int(row.time().0))
        }),
        column("within_ms", Kind::Float, "Read so long before or after that, at most", |row| {
            match row.what {
                What::Value(_, point) => {
                    let ns = i64::try_from(point.within_ns).unwrap_or(i64::MAX);
                    Some(Value::Float(nanos(ns) / 1e6))
                }
                What::Failure(..) => None,
            }
        }),
        column("source", Kind::Text, "The URL that was asked", |row| {
            Some(Value::Text(row.source.into()))
        }),
        column("name", Kind::Text, "The metric; null where the asking failed", |row| {
            row.series().map(|series| Value::Text(series.name.as_str().into()))
        }),
        column("labels", Kind::Text, "Its labels in braces, as the server wrote them", |row| {
            let labels = row.series()?.labels.as_str();
            Some(Value::Text(labels.into())).filter(|_| !labels.is_empty())
        }),
        column("kind", Kind::Text, "gauge or counter", |row| {
            row.series().map(|series: &Series| Value::Text(SeriesKind::name(series.kind).into()))
        }),
        column("value", Kind::Float, "Its value; null where the asking failed", |row| {
            match row.what {
                What::Value(_, point) => Some(Value::Float(point.value)),
                What::Failure(..) => None,
            }
        }),
        column("http_status", Kind::Int, "Status of an answer that was none", |row| {
            match row.what {
                What::Value(..) => None,
                What::Failure(asking, _) => {
                    asking.status.map(|status| Value::Int(i64::from(status)))
                }
            }
        }),
        column("failure", Kind::Text, "Why the asking failed; null if it did not", |row| match row
            .what
        {
            What::Value(..) => None,
            What::Failure(_, words) => Some(Value::Text(words.into())),
        }),
    ]
}

/// The rows, by time.
pub(super) fn scraped_rows(run: &Run) -> impl Iterator<Item = ScrapedRow<'_>> {
    let mut rows: Vec<_> = run.servers.iter().flat_map(|servers| rows_of(servers)).collect();
    // Stable, so that rows of one instant keep the order of the series.
    rows.sort_by_key(ScrapedRow::time);
    rows.into_iter()
}

fn rows_of(servers: &Servers) -> impl Iterator<Item = ScrapedRow<'_>> {
    let source = |place: usize| servers.sources.get(place).map_or("", String::as_str);
    let failures = servers.askings.iter().filter_map(move |asking| {
        let what = What::Failure(asking, asking.failure.as_deref()?);
        Some(ScrapedRow { source: source(asking.source), what })
    });
    let values = servers.series.iter().flat_map(move |series| {
        let source = source(series.source);
        series.points.iter().map(move |&point| {
            let what = What::Value(series, point);
            ScrapedRow { source, what }
        })
    });
    failures.chain(values)
}

#[cfg(test)]
mod tests {
    use super::super::{Beside, Table, TextFormat, write_text};
    use super::*;
    use crate::log::sample;
    use crate::metrics::slo::Goals;

    fn table(run: &Run) -> String {
        let (mut out, goals) = (Vec::new(), Goals::default());
        let beside = Beside::goals(&goals);
        write_text(run, Table::Scraped, TextFormat::Csv, &beside, &mut out).expect("memory");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn values_and_failures_as_csv() {
        let run = Run::read(&sample::scraped(3).bytes()).expect("a log");
        let csv = table(&run);
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines.len(), 1 + 6 * 8 + 1, "six series of eight answers, and a failure");
        assert_eq!(lines[0], "time_ns,within_ms,source,name,labels,kind,value,http_status,failure");
        assert_eq!(
            lines[1],
            "2000000,2,http://127.0.0.1:8000/metrics,vllm:generation_tokens_total,\
             \"{model_name=\"\"sample-model\"\"}\",counter,0,,"
        );
        let failure = "4500000000,,http://127.0.0.1:8000/metrics,,,,,,no answer within 1.0 s";
        assert!(lines.contains(&failure), "{csv}");
    }

    #[test]
    fn a_run_that_was_not_scraped_has_columns_and_no_row() {
        let run = Run::read(&sample::log(3, 4)).expect("a log");
        assert_eq!(table(&run).lines().count(), 1);
    }
}
