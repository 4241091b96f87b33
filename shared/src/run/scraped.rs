//! What servers said of themselves during the run, by source and series.
//!
//! Values stand as the log has them: nothing is filled in where an asking failed, and the askings
//! themselves are kept, so that who looks can tell a gap from a level that did not change. A series
//! whose name is lost has none; what cannot belong to a source is passed over.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::log::scraped_texts::{KNOWN_MAX, Texts};
use crate::log::{Scraped, SeriesKind};
use crate::units::RunNanos;

/// A value of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The middle between asking and the whole answer.
    pub time: RunNanos,
    /// The server read it so many nanoseconds before or after, at most.
    pub within_ns: u64,
    /// The value; finite.
    pub value: f64,
}

/// A metric with its labels, from one source.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Place of its source in [`Servers::sources`].
    pub source: usize,
    /// The metric's name.
    pub name: String,
    /// Its labels in braces, as the page has them; empty where there are none.
    pub labels: String,
    /// What the server says that it is.
    pub kind: SeriesKind,
    /// Its values by time.
    pub points: Arc<Vec<Point>>,
}

/// One asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asking {
    /// Place of its source in [`Servers::sources`].
    pub source: usize,
    /// When it began.
    pub start: RunNanos,
    /// When the answer was whole, or was given up.
    pub end: RunNanos,
    /// The answer's status, if a head arrived.
    pub status: Option<u16>,
    /// Values that were recorded of it.
    pub values: u16,
    /// Series of its that were left out.
    pub left_out: u16,
    /// Values that are missing because they could not be; at most [`crate::log::IMPOSSIBLE_MAX`].
    pub impossible: u8,
    /// Why it failed, in words; `None`: it did not.
    pub failure: Option<Arc<str>>,
}

impl Asking {
    /// The instant that its values have, or would have.
    #[must_use]
    pub const fn time(&self) -> RunNanos {
        RunNanos(self.start.0.midpoint(self.end.0))
    }
}

/// What servers said of themselves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Servers {
    /// URLs that were asked, without secrets.
    pub sources: Vec<String>,
    /// By source, name and labels.
    pub series: Vec<Series>,
    /// By start.
    pub askings: Vec<Asking>,
}

impl Servers {
    /// The series of a metric from one source, whatever their labels.
    pub fn named(&self, source: usize, name: &str) -> impl Iterator<Item = &Series> {
        self.series.iter().filter(move |series| series.source == source && series.name == name)
    }

    /// The askings of a source, by start.
    pub fn asked(&self, source: usize) -> impl Iterator<Item = &Asking> {
        self.askings.iter().filter(move |asking| asking.source == source)
    }
}

/// What of it has been read.
#[derive(Clone, Debug, Default)]
pub(super) struct Gathering {
    texts: Texts,
    series: BTreeMap<u32, (SeriesKind, Arc<Vec<Point>>)>,
    askings: Vec<Asked>,
}

/// An asking as the log has it.
#[derive(Clone, Copy, Debug)]
struct Asked {
    source: u32,
    start: RunNanos,
    end: RunNanos,
    status: Option<u16>,
    values: u16,
    left_out: u16,
    impossible: u8,
    failure: Option<u32>,
}

impl Gathering {
    /// Takes a fact.
    pub(super) fn take(&mut self, fact: &Scraped) {
        match *fact {
            Scraped::Text { number, part, parts, used, bytes } => {
                self.texts.take(number, (part, parts), &bytes[..usize::from(used)]);
            }
            Scraped::Value { series, time, within_ns, kind, value } => {
                if self.series.len() == KNOWN_MAX && !self.series.contains_key(&series) {
                    return;
                }
                let (_, points) = self.series.entry(series).or_insert((kind, Arc::default()));
                Arc::make_mut(points).push(Point { time, within_ns, value });
            }
            Scraped::Asked {
                source,
                start,
                end,
                status,
                values,
                left_out,
                impossible,
                failure,
            } => {
                self.askings.push(Asked {
                    source,
                    start,
                    end,
                    status,
                    values,
                    left_out,
                    impossible,
                    failure,
                });
            }
        }
    }

    /// What the log says so far; `None` if nobody was asked.
    pub(super) fn servers(&self) -> Option<Arc<Servers>> {
        if self.askings.is_empty() && self.series.is_empty() {
            return None;
        }
        let mut sources: Vec<String> = Vec::new();
        let mut place = |text: String| {
            sources.iter().position(|known| *known == text).unwrap_or_else(|| {
                sources.push(text);
                sources.len() - 1
            })
        };
        let text = |number: u32| self.texts.whole(number);
        let unknown = || "unknown".to_owned();
        let mut askings: Vec<Asking> = Vec::with_capacity(self.askings.len());
        let mut known: BTreeMap<u32, usize> = BTreeMap::new();
        let mut words: BTreeMap<u32, Arc<str>> = BTreeMap::new();
        for asked in &self.askings {
            let Asked { source, start, end, status, values, left_out, impossible, failure } =
                *asked;
            let source =
                *known.entry(source).or_insert_with(|| place(text(source).unwrap_or_else(unknown)));
            let failure = failure.map(|number| {
                let words = words.entry(number);
                Arc::clone(words.or_insert_with(|| text(number).unwrap_or_else(unknown).into()))
            });
            askings.push(Asking {
                source,
                start,
                end,
                status,
                values,
                left_out,
                impossible,
                failure,
            });
        }
        askings.sort_by_key(|asking| (asking.start, asking.source));
        let mut series: Vec<Series> = Vec::with_capacity(self.series.len());
        for (&number, (kind, points)) in &self.series {
            let text = text(number).unwrap_or_else(|| format!("unknown unknown_{number:08x}"));
            let (source, name) = text.split_once(' ').unwrap_or(("unknown", &text));
            let (name, labels) = name.split_at(name.find('{').unwrap_or(name.len()));
            let mut points = Arc::clone(points);
            if !points.is_sorted_by_key(|point| point.time) {
                Arc::make_mut(&mut points).sort_by_key(|point| point.time);
            }
            let source = place(source.to_owned());
            let (name, labels) = (name.to_owned(), labels.to_owned());
            series.push(Series { source, name, labels, kind: *kind, points });
        }
        series.sort_by(|a, b| (a.source, &a.name, &a.labels).cmp(&(b.source, &b.name, &b.labels)));
        Some(Arc::new(Servers { sources, series, askings }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::sample::Sample;
    use crate::log::{Record, sample};
    use crate::run::Run;
    use crate::units::CoreIndex;

    const MS: i64 = 1_000_000;

    #[test]
    fn values_find_their_names_and_failures_their_words() {
        let run = Run::read(&sample::scraped(3).bytes()).expect("a log");
        let servers = run.servers.as_deref().expect("it was scraped");
        assert_eq!(servers.sources, ["http://127.0.0.1:8000/metrics"]);
        let waiting: Vec<_> = servers.named(0, "vllm:num_requests_waiting").collect();
        assert_eq!(waiting.len(), 1);
        assert_eq!(waiting[0].labels, "{model_name=\"sample-model\"}");
        assert_eq!(waiting[0].kind, SeriesKind::Gauge);
        let failed: Vec<_> = servers.asked(0).filter(|asking| asking.failure.is_some()).collect();
        assert_eq!(failed.len(), 1);
        assert_eq!(failed[0].failure.as_deref(), Some("no answer within 1.0 s"));
        assert_eq!(waiting[0].points.len() + 1, servers.asked(0).count(), "a gap is no value");
        assert!(!waiting[0].points.iter().any(|point| point.time == failed[0].time()));
        assert_eq!(run.warnings, Vec::<String>::new());
    }

    #[test]
    fn a_name_that_is_lost_in_part_is_no_name() {
        let mut sample = Sample::new();
        sample.send(0);
        let parts: Vec<Record> = crate::log::scraped::text_records(9, &"u".repeat(60)).collect();
        let [first, _lost, last] = parts[..] else { panic!("three parts") };
        let (time, within_ns, value, kind) = (RunNanos(MS), 5, 1.5, SeriesKind::Counter);
        let value = Scraped::Value { series: 9, time, within_ns, kind, value };
        for record in [first, last, Record::Scraped(value)] {
            sample.push(CoreIndex::CONDUCTOR, record);
        }
        let run = Run::read(&sample.bytes()).expect("a log");
        let servers = run.servers.as_deref().expect("it has a value");
        assert_eq!(servers.series[0].name, "unknown_00000009");
        assert_eq!(servers.series[0].points[..], [Point { time, within_ns, value: 1.5 }]);
        let none = Run::read(&sample::log(1, 5)).expect("a log");
        assert_eq!(none.servers, None);
    }
}
