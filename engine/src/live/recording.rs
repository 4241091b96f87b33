//! What was scraped as records of the log, within bounds.
//!
//! Names are told when they are first met, values after them. Of a source so many series are kept
//! as [`SERIES_MAX`], those that came first, for the whole run: labels that change with every
//! answer cannot fill a log. What is left out is counted in the asking's own record.

use std::collections::{HashMap, HashSet};

use onbeat_shared::log::record::Record;
use onbeat_shared::log::scraped::{number_of, text_records};
use onbeat_shared::log::{IMPOSSIBLE_MAX, SCRAPED_TEXT_BYTES_MAX, Scraped};
use onbeat_shared::units::RunNanos;

use super::exposition::Found;

/// Series of one source in one log.
pub(super) const SERIES_MAX: usize = 256;
/// Different words about failures in one log; what comes then is one of these.
const FAILURES_MAX: usize = 64;
/// What stands for the others.
const OTHER_FAILURE: &str = "another failure than those before";

/// What one asking came to.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// Place of the source.
    pub(super) source: usize,
    /// The clock's reading when it began.
    pub(super) start_ns: i64,
    /// And when it was over.
    pub(super) end_ns: i64,
    /// The answer's status, if there was one.
    pub(super) status: Option<u16>,
    /// What is to be recorded, or why there is nothing.
    pub(super) found: Result<Found, String>,
}

/// The texts that a log knows, by number.
#[derive(Debug)]
pub struct Recording {
    sources: Vec<Source>,
    numbers: HashMap<String, u32>,
    taken: HashSet<u32>,
    failures: usize,
}

#[derive(Debug)]
struct Source {
    name: String,
    series: usize,
}

impl Recording {
    /// Of sources by these names.
    #[must_use]
    pub fn new(names: Vec<String>) -> Self {
        let sources = names.into_iter().map(|name| Source { name, series: 0 }).collect();
        Self { sources, numbers: HashMap::new(), taken: HashSet::new(), failures: 0 }
    }

    /// Hands on what an answer is in the log; the schedule's zero was at `zero_ns` of the clock.
    pub(super) fn take(&mut self, answer: &Answer, zero_ns: i64, push: &mut dyn FnMut(&Record)) {
        let run = |ns: i64| RunNanos(ns.saturating_sub(zero_ns));
        let (start, end) = (run(answer.start_ns), run(answer.end_ns));
        let name = self.sources[answer.source].name.clone();
        let source = self.told(&name, push);
        let (mut values, mut left_out) = (0_u16, 0_u16);
        for wanted in answer.found.iter().flat_map(|found| &found.wanted) {
            let text = format!("{name} {}", wanted.series);
            let Some(series) = self.series(answer.source, &text, push) else {
                left_out = left_out.saturating_add(1);
                continue;
            };
            let time = RunNanos(start.0.midpoint(end.0));
            let within_ns = (end.0.saturating_sub(start.0)).unsigned_abs().div_ceil(2);
            let (kind, value) = (wanted.kind, wanted.value);
            push(&Record::Scraped(Scraped::Value { series, time, within_ns, kind, value }));
            values = values.saturating_add(1);
        }
        let failure = answer.found.as_ref().err().map(|words| self.failure(words, push));
        let status = answer.status;
        let impossible = answer.found.as_ref().map_or(0, |found| found.impossible);
        let impossible = u8::try_from(impossible).unwrap_or(u8::MAX).min(IMPOSSIBLE_MAX);
        let asked =
            Scraped::Asked { source, start, end, status, values, left_out, impossible, failure };
        push(&Record::Scraped(asked));
    }

    /// The number of a series, if it is or can be one of those that are kept.
    fn series(&mut self, source: usize, text: &str, push: &mut dyn FnMut(&Record)) -> Option<u32> {
        if let Some(&known) = self.numbers.get(text) {
            return Some(known);
        }
        let kept = &mut self.sources[source].series;
        if *kept == SERIES_MAX || text.len() > SCRAPED_TEXT_BYTES_MAX {
            return None;
        }
        *kept += 1;
        Some(self.told(text, push))
    }

    fn failure(&mut self, words: &str, push: &mut dyn FnMut(&Record)) -> u32 {
        if !self.numbers.contains_key(words) {
            self.failures += 1;
        }
        let words = if self.failures > FAILURES_MAX { OTHER_FAILURE } else { words };
        self.told(words, push)
    }

    /// The number of a text, which the log knows from then on.
    fn told(&mut self, text: &str, push: &mut dyn FnMut(&Record)) -> u32 {
        if let Some(&known) = self.numbers.get(text) {
            return known;
        }
        let mut number = number_of(text);
        while !self.taken.insert(number) {
            number = number.wrapping_add(1);
        }
        self.numbers.insert(text.to_owned(), number);
        text_records(number, text).for_each(|record| push(&record));
        number
    }
}

#[cfg(test)]
mod tests {
    use onbeat_shared::log::SeriesKind;
    use onbeat_shared::log::sample::Sample;
    use onbeat_shared::run::Run;
    use onbeat_shared::units::CoreIndex;

    use super::super::exposition::Wanted;
    use super::*;

    fn answer(at: i64, found: Result<Vec<Wanted>, String>) -> Answer {
        let found = found.map(|wanted| Found { wanted, impossible: 0 });
        Answer { source: 0, start_ns: at - 4, end_ns: at + 4, status: None, found }
    }

    fn wanted(series: &str, value: f64) -> Wanted {
        Wanted { series: series.to_owned(), kind: SeriesKind::Gauge, value }
    }

    fn recorded(answers: &[Answer]) -> Run {
        let mut sample = Sample::new();
        sample.send(0);
        let mut recording = Recording::new(vec!["http://h:1/metrics".to_owned()]);
        for answer in answers {
            let mut push = |record: &Record| sample.push(CoreIndex::CONDUCTOR, *record);
            recording.take(answer, 1_000, &mut push);
        }
        Run::read(&sample.bytes()).expect("a log")
    }

    #[test]
    fn what_was_scraped_is_what_the_log_says() {
        let answers = [
            answer(900, Ok(vec![wanted("vllm:x{a=\"b c\"}", 2.5)])),
            answer(2_000, Err("answered 503".to_owned())),
            answer(3_000, Ok(vec![wanted("vllm:x{a=\"b c\"}", 3.5)])),
        ];
        let run = recorded(&answers);
        let servers = run.servers.as_deref().expect("it was scraped");
        let [series] = &servers.series[..] else { panic!("{servers:?}") };
        assert_eq!((series.name.as_str(), series.labels.as_str()), ("vllm:x", "{a=\"b c\"}"));
        let points: Vec<_> = series.points.iter().map(|it| (it.time.0, it.value)).collect();
        assert_eq!(points, [(-100, 2.5), (2_000, 3.5)], "before zero too, and no value in a gap");
        assert!(series.points.iter().all(|point| point.within_ns == 4));
        assert_eq!(servers.askings[1].failure.as_deref(), Some("answered 503"));
    }

    #[test]
    fn values_that_could_not_be_are_counted_as_far_as_there_is_room() {
        let found = |impossible| Ok(Found { wanted: vec![wanted("vllm:x", 1.0)], impossible });
        let with = |at, impossible| Answer { found: found(impossible), ..answer(at, Ok(vec![])) };
        let failed = answer(4_000, Err("answered 503".to_owned()));
        let run = recorded(&[with(2_000, 3), with(3_000, 5_000), failed]);
        let servers = run.servers.as_deref().expect("it was scraped");
        let told: Vec<_> = servers.askings.iter().map(|asking| asking.impossible).collect();
        assert_eq!(told, [3, IMPOSSIBLE_MAX, 0]);
        assert!(servers.askings[1].failure.is_none() && servers.askings[2].failure.is_some());
    }

    #[test]
    fn labels_that_always_change_do_not_fill_a_log() {
        let many = |from: usize| {
            let one = |n: usize| wanted(&format!("vllm:x{{n=\"{n}\"}}"), 1.0);
            Ok((from..from + SERIES_MAX).map(one).collect())
        };
        let long = Ok(vec![wanted(&format!("vllm:{}", "y".repeat(2_000)), 1.0)]);
        let run =
            recorded(&[answer(2_000, many(0)), answer(3_000, many(100)), answer(4_000, long)]);
        let servers = run.servers.as_deref().expect("it was scraped");
        assert_eq!(servers.series.len(), SERIES_MAX);
        let left_out: Vec<_> = servers.askings.iter().map(|asking| asking.left_out).collect();
        assert_eq!(left_out, [0, 100, 1]);
    }

    #[test]
    fn words_that_always_change_do_not_fill_a_log() {
        let failing = |n: i64| answer(2_000 + n, Err(format!("failure {n}")));
        let run = recorded(&(0..200).map(failing).collect::<Vec<_>>());
        let servers = run.servers.as_deref().expect("it was scraped");
        let words = servers.askings.iter().map(|asking| asking.failure.as_deref());
        let words: HashSet<_> = words.flatten().collect();
        assert_eq!(words.len(), FAILURES_MAX + 1);
    }
}
