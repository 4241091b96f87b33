//! A run as HdrHistogram's interval log (V2, compressed): a histogram per metric and stretch of
//! time.
//!
//! What HistogramLogAnalyzer, the HdrHistogram plotter and every port of the library read. Each
//! line is tagged with its metric's name without the unit: values are nanoseconds to three
//! significant digits, as the readers expect, and only the line's maximum is in milliseconds.
//! Stretches are the slices of [`crate::metrics::slices`]: a value belongs to the one in which its
//! request was sent. Latencies are those of successful requests, `lateness` that of all that left.
//! A metric without a value in a stretch has no line there. One stretch is held at a time.

use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogWriter, IntervalLogWriterBuilder, IntervalLogWriterError, Tag,
};

use crate::counted::counted;
use crate::metrics::Metric;
use crate::metrics::latency::{chunk_gaps_ns, nanos};
use crate::metrics::lateness::lateness_ns;
use crate::metrics::slices::{Slice, slices};
use crate::run::Run;
use crate::units::NANOS_PER_SECOND;

/// Length of a stretch where none is asked for.
pub const INTERVAL_NS: i64 = NANOS_PER_SECOND;

/// Significant decimal digits of a value.
const DIGITS: u8 = 3;

/// What the readers are told about the file, in comments.
const COMMENTS: [&str; 4] = [
    "[Histogram log format version 1.3]",
    "Values are nanoseconds, Interval_Max is milliseconds; a tag is a metric.",
    "A value belongs to the interval in which its request was sent; latencies are those of",
    "successful requests, lateness is that of all that were sent.",
];

/// The tag of the gaps between content events, pooled.
const GAPS_TAG: &str = "icl";
/// The tag of lateness.
const LATENESS_TAG: &str = "lateness";

type Log<'a, 'b, W> = IntervalLogWriter<'a, 'b, W, V2DeflateSerializer>;

/// Writes the log, in stretches of `interval_ns`; a length that is not above zero gives none.
///
/// # Errors
/// If writing fails; a closed pipe keeps its kind.
pub fn write(run: &Run, interval_ns: i64, out: impl Write) -> io::Result<()> {
    let mut out = io::BufWriter::with_capacity(1 << 16, out);
    let mut serializer = V2DeflateSerializer::new();
    let zero = SystemTime::UNIX_EPOCH + Duration::from_nanos(run.started_unix_ns());
    let mut builder = IntervalLogWriterBuilder::new();
    for words in COMMENTS {
        builder.add_comment(words);
    }
    builder.with_start_time(zero).with_base_time(zero).with_max_value_divisor(1e6);
    let mut log = builder.begin_log_with(&mut out, &mut serializer)?;
    let mut gathered = Gathered::new()?;
    for slice in slices(run, interval_ns) {
        gathered.take(run, &slice)?;
        gathered.write(&slice, &mut log)?;
    }
    if gathered.below_zero > 0 {
        let values = counted(gathered.below_zero, "value");
        log.write_comment(&format!("{values} below zero left out: the log is damaged"))?;
    }
    out.flush()
}

/// The histograms of one stretch.
struct Gathered {
    rows: Vec<(&'static str, Histogram<u64>)>,
    below_zero: u64,
}

impl Gathered {
    fn new() -> io::Result<Self> {
        let names = Metric::ALL.iter().map(|metric| tag(*metric)).chain([GAPS_TAG, LATENESS_TAG]);
        let row = |name| Ok((name, Histogram::new(DIGITS).map_err(io::Error::other)?));
        Ok(Self { rows: names.map(row).collect::<io::Result<_>>()?, below_zero: 0 })
    }

    /// Takes the values of a stretch in the place of the last one's.
    fn take(&mut self, run: &Run, slice: &Slice) -> io::Result<()> {
        for (_, histogram) in &mut self.rows {
            if !histogram.is_empty() {
                histogram.reset();
            }
        }
        let [gaps, lateness] = [Metric::ALL.len(), Metric::ALL.len() + 1];
        for i in slice.requests.iter().map(|&i| i as usize) {
            self.record(lateness, lateness_ns(run, i).map(nanos))?;
            if run.requests.is_ok(i) {
                for (at, metric) in Metric::ALL.into_iter().enumerate() {
                    self.record(at, metric.value_ns(run, i))?;
                }
                for gap in chunk_gaps_ns(run, i) {
                    self.record(gaps, Some(nanos(gap)))?;
                }
            }
        }
        Ok(())
    }

    /// Records a value, for which the histogram grows if it must.
    fn record(&mut self, at: usize, value_ns: Option<f64>) -> io::Result<()> {
        let Some(value_ns) = value_ns else { return Ok(()) };
        if value_ns < 0.0 {
            self.below_zero += 1;
            return Ok(());
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is not below zero, and a cast of a float saturates"
        )]
        let whole = value_ns.round() as u64;
        self.rows[at].1.record(whole).map_err(io::Error::other)
    }

    fn write(&self, slice: &Slice, log: &mut Log<'_, '_, impl Write>) -> io::Result<()> {
        // Nothing leaves before zero; the log has no place for it in any case.
        let start = slice.start.0.max(0);
        let length = slice.end.0.saturating_sub(start).max(0).cast_unsigned();
        for (name, histogram) in self.rows.iter().filter(|row| !row.1.is_empty()) {
            let times = (Duration::from_nanos(start.cast_unsigned()), Duration::from_nanos(length));
            log.write_histogram(histogram, times.0, times.1, Tag::new(name)).map_err(|error| {
                match error {
                    IntervalLogWriterError::IoError(error) => error,
                    IntervalLogWriterError::SerializeError(error) => io::Error::other(error),
                }
            })?;
        }
        Ok(())
    }
}

/// A metric's name without its unit.
fn tag(metric: Metric) -> &'static str {
    metric.name().trim_end_matches("_ms")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;
    use crate::log::sample::{self, Sample};
    use crate::metrics::{ReportOptions, report};

    const MS: i64 = 1_000_000;

    fn written(run: &Run, interval_ns: i64) -> Vec<u8> {
        let mut out = Vec::new();
        write(run, interval_ns, &mut out).expect("memory takes everything");
        out
    }

    /// Each tag's intervals: start, length, histogram.
    type Read = BTreeMap<String, Vec<(Duration, Duration, Histogram<u64>)>>;

    fn read_back(log: &[u8]) -> (Read, Vec<String>) {
        let (mut read, mut other) = (Read::new(), Vec::new());
        for entry in IntervalLogIterator::new(log) {
            match entry.expect("our own line") {
                LogEntry::Interval(line) => {
                    let coded = line.encoded_histogram();
                    let bytes = data(coded);
                    let histogram =
                        Deserializer::new().deserialize(&mut &bytes[..]).expect("a histogram");
                    let tag = line.tag().expect("a tag").as_str().to_owned();
                    let row = (line.start_timestamp(), line.duration(), histogram);
                    read.entry(tag).or_default().push(row);
                }
                LogEntry::StartTime(time) => other.push(format!("start {}", time.as_secs())),
                LogEntry::BaseTime(time) => other.push(format!("base {}", time.as_secs())),
            }
        }
        (read, other)
    }

    /// Bytes from base 64, by its definition.
    fn data(coded: &str) -> Vec<u8> {
        let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut out = Vec::new();
        for four in coded.trim_end_matches('=').as_bytes().chunks(4) {
            let value = four.iter().fold(0_u32, |value, byte| {
                let digit = digits.iter().position(|digit| digit == byte).expect("a digit");
                value << 6 | u32::try_from(digit).expect("below 64")
            });
            let value = value << (6 * (4 - four.len()));
            out.extend_from_slice(&value.to_be_bytes()[1..four.len()]);
        }
        out
    }

    #[test]
    fn the_log_reads_back_as_the_reports_numbers() {
        let run = Run::read(&sample::log(7, 400)).expect("a log");
        let (read, times) = read_back(&written(&run, 500 * MS));
        let started = run.started_unix_ns() / 1_000_000_000;
        assert_eq!(times, [format!("start {started}"), format!("base {started}")]);
        let report = report(&run, &ReportOptions::default());
        let latency = &report.latency;
        let lateness = report.schedule.lateness_us.expect("some left");
        for (tag, found, unit) in [
            ("ttft", latency.ttft_ms.expect("answers"), 1e6),
            ("itl", latency.itl_ms.expect("answers"), 1e6),
            ("icl", latency.icl_ms.expect("answers"), 1e6),
            ("e2e_from_due", latency.e2e_from_due_ms.expect("answers"), 1e6),
            ("lateness", lateness, 1e3),
        ] {
            let mut whole = Histogram::<u64>::new(DIGITS).expect("three digits");
            assert!(read[tag].len() > 3, "{tag}");
            for (_, _, part) in &read[tag] {
                whole.add(part).expect("room");
            }
            assert_eq!(whole.len(), found.count, "{tag}");
            for (value, wanted) in [(whole.max(), found.max), (whole.min(), found.min)] {
                #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
                let value = value as f64 / unit;
                assert!((value - wanted).abs() <= wanted * 2e-3 + 1e-3, "{tag}: {value} {wanted}");
            }
        }
    }

    #[test]
    fn intervals_are_the_slices_in_which_requests_were_sent() {
        let mut sample = Sample::new();
        for (sent, first) in [(100, 900), (300, 1_900), (2_100, 2_200)] {
            let request = sample.send(sent * MS);
            sample.chunks(request, &[first * MS, (first + 10) * MS]);
            sample.done(request, (first + 10) * MS, crate::log::Class::Ok);
        }
        let run = Run::read(&sample.bytes()).expect("a log");
        let (read, _) = read_back(&written(&run, 1_000 * MS));
        let ttft: Vec<_> = read["ttft"]
            .iter()
            .map(|(start, length, values)| (start.as_millis(), length.as_millis(), values.len()))
            .collect();
        // The grid begins with the first sending, and the last interval ends with the run.
        assert_eq!(ttft, [(100, 1_000, 2), (2_100, 110, 1)]);
        assert_eq!(read["ttft"][1].2.max() / 100_000, 1_000, "nanoseconds");
        assert!(!read.contains_key("first_byte"), "what is not known has no line");
        let text = String::from_utf8(written(&run, 1_000 * MS)).expect("text");
        assert!(text.starts_with("#[Histogram log format version 1.3]\n"), "{text}");
        assert!(text.contains("\nTag=ttft,2.100,0.110,100."), "{text}");
    }

    #[test]
    fn a_run_without_answers_has_only_a_head() {
        for sample in [Sample::new(), {
            let mut never = Sample::new();
            never.plan(0);
            never
        }] {
            let run = Run::read(&sample.bytes()).expect("a log");
            let (read, times) = read_back(&written(&run, INTERVAL_NS));
            assert_eq!((read.len(), times.len()), (0, 2));
        }
    }
}
