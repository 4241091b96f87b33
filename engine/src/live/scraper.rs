//! Asks servers for their own numbers, each on a thread of its own, in equal steps of time.
//!
//! The first asking is before zero and the last one after the run, so that what a counter grew by
//! is known for all of it. A server that is slow is asked again at the next step that is not over;
//! nothing is asked twice at once. The threads only hand over what came, and never wait for who
//! takes it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crossbeam::channel::{Receiver, Sender, bounded};
use onbeat_shared::foreign::{printable, shown};
use onbeat_shared::log::record::Record;

use super::exposition::{Found, found, is_page};
use super::recording::{Answer, Recording};
use super::source::Source;
use crate::clock::monotonic_ns;
use crate::error::EngineError;
use crate::net::ask::ask;
use crate::render::secret::{Secret, scrubbed};

/// How long an answer may take.
const PATIENCE_NS: i64 = 5_000_000_000;
/// How long the run's end is put off for an answer, and for the last asking.
const LAST_NS: i64 = 2_000_000_000;
/// Answers that may wait to be taken.
const WAITING_MAX: usize = 256;
/// Most bytes of words about a failure.
const WORDS_BYTES_MAX: usize = 240;
/// What is said of a page that has nothing for the log.
const NONE_KNOWN: &str = "answered 200 without a gauge or counter of vLLM or SGLang (their names \
                          begin with vllm: or sglang:); is this the URL of the server's metrics?";
/// The run goes on.
const GOES_ON: i64 = i64::MAX;

/// The threads that ask.
#[derive(Debug)]
pub struct Scraper {
    recording: Recording,
    answers: Receiver<Answer>,
    /// Dropped when they are to end.
    stop: Option<Sender<()>>,
    /// When they must have ended, once the run is over.
    until_ns: Arc<AtomicI64>,
    threads: Vec<JoinHandle<()>>,
}

impl Scraper {
    /// Begins to ask, at once and then in steps of `interval_ns`; `None` if there is nobody.
    ///
    /// # Errors
    /// When a thread cannot be had.
    pub fn start(sources: Vec<Source>, interval_ns: i64) -> Result<Option<Self>, EngineError> {
        if sources.is_empty() {
            return Ok(None);
        }
        let (sender, answers) = bounded(WAITING_MAX);
        let (stop, stopped) = bounded(0);
        let until_ns = Arc::new(AtomicI64::new(GOES_ON));
        let names = sources.iter().map(|source| source.name.clone()).collect();
        let mut scraper = Self {
            recording: Recording::new(names),
            answers,
            stop: Some(stop),
            until_ns: Arc::clone(&until_ns),
            threads: Vec::new(),
        };
        for (number, source) in sources.into_iter().enumerate() {
            let asking = Asking {
                number,
                source,
                interval_ns: interval_ns.max(1),
                answers: sender.clone(),
                stopped: stopped.clone(),
                until_ns: Arc::clone(&until_ns),
            };
            let thread = Builder::new()
                .name(format!("onbeat-scrape-{number}"))
                .spawn(move || asking.go())
                .map_err(|source| EngineError::Io {
                    action: "start a thread",
                    path: None,
                    source,
                })?;
            scraper.threads.push(thread);
        }
        Ok(Some(scraper))
    }

    /// Hands on what has come since the last time, as records.
    pub fn take(&mut self, zero_ns: i64, push: &mut dyn FnMut(&Record)) {
        while let Ok(answer) = self.answers.try_recv() {
            self.recording.take(&answer, zero_ns, push);
        }
    }

    /// The run is over: everybody is asked once more, and what came is handed on.
    pub fn end(mut self, zero_ns: i64, push: &mut dyn FnMut(&Record)) {
        self.stop();
        self.take(zero_ns, push);
    }

    fn stop(&mut self) {
        self.until_ns.store(monotonic_ns().saturating_add(LAST_NS), Ordering::Release);
        self.stop = None;
        for thread in self.threads.drain(..) {
            // One that panics has said all that it will say.
            let _ = thread.join();
        }
    }
}

impl Drop for Scraper {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            // Nobody wants an answer any more.
            self.until_ns.store(0, Ordering::Release);
            self.stop = None;
            self.threads.drain(..).for_each(|thread| drop(thread.join()));
        }
    }
}

/// One server being asked.
struct Asking {
    number: usize,
    source: Source,
    interval_ns: i64,
    answers: Sender<Answer>,
    stopped: Receiver<()>,
    until_ns: Arc<AtomicI64>,
}

impl Asking {
    fn go(self) {
        let mut next_ns = monotonic_ns();
        loop {
            self.ask();
            let now_ns = monotonic_ns();
            // Steps that are over are left out.
            let steps = now_ns.saturating_sub(next_ns).div_euclid(self.interval_ns) + 1;
            next_ns = next_ns.saturating_add(steps.saturating_mul(self.interval_ns));
            let pause = Duration::from_nanos(next_ns.saturating_sub(now_ns).unsigned_abs());
            if self.stopped.recv_timeout(pause).is_err_and(|error| error.is_disconnected()) {
                self.ask();
                return;
            }
        }
    }

    fn ask(&self) {
        let goes_on = || monotonic_ns() < self.until_ns.load(Ordering::Acquire);
        if !goes_on() {
            return;
        }
        let Source { question, way, secrets, parts, .. } = &self.source;
        let start_ns = monotonic_ns();
        let reply = ask(way, question, PATIENCE_NS, &mut || goes_on());
        let end_ns = monotonic_ns();
        let status = reply.as_ref().ok().map(|reply| reply.status);
        let found = reply.map_err(|none| none.words).and_then(|reply| match reply.status {
            200 => read(&String::from_utf8_lossy(&reply.body), secrets, parts),
            status => Err(format!("answered {status}")),
        });
        let found = found.map_err(|words| {
            let mut words = scrubbed(scrubbed(words, secrets), parts);
            words.truncate(words.floor_char_boundary(WORDS_BYTES_MAX));
            words
        });
        // Who is that far behind gets a gap.
        let source = self.number;
        let _ = self.answers.try_send(Answer { source, start_ns, end_ns, status, found });
    }
}

/// What a page says, without secrets; `parts` are those of its URL's path.
fn read(page: &str, secrets: &[Secret], parts: &[Secret]) -> Result<Found, String> {
    if page.trim().is_empty() {
        return Err("answered 200 and nothing else".to_owned());
    }
    if !is_page(page) {
        return Err(format!("answered no metrics: {}", shown(page.trim())));
    }
    let mut found = found(page);
    if found == Found::default() {
        return Err(NONE_KNOWN.to_owned());
    }
    for wanted in &mut found.wanted {
        let series = scrubbed(std::mem::take(&mut wanted.series), secrets);
        let (name, labels) = series.split_at(series.find('{').unwrap_or(series.len()));
        let whole = format!("{name}{}", scrubbed(labels.to_owned(), parts));
        wanted.series = printable(&whole).into_owned();
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_a_metric_that_is_known_is_none() {
        let words = |page: &str| read(page, &[], &[]).expect_err(page);
        assert_eq!(words(" \n"), "answered 200 and nothing else");
        assert!(words("<html>").contains("no metrics: <html>"));
        let other = "# TYPE go_threads gauge\ngo_threads 7\n";
        assert!(words(other).contains("vllm:") && words(other).len() <= WORDS_BYTES_MAX);
        let names = "# TYPE vllm:num_requests_running histogram\nvllm:num_requests_running 7\n";
        assert_eq!(words(names), NONE_KNOWN);
        let impossible = "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running -7\n";
        assert_eq!(read(impossible, &[], &[]).map(|found| found.impossible), Ok(1));
    }

    #[test]
    fn a_part_of_the_path_is_cut_from_labels_and_not_from_names() {
        let page = "# TYPE vllm:num_requests_running gauge\n\
                    vllm:num_requests_running{pod=\"num_requests-9\",key=\"hunter2\"} 7\n";
        let [secret, part] = ["hunter2", "num_requests"].map(|text| [Secret::new(text)]);
        let found = read(page, &secret, &part).expect("a metric");
        let series = "vllm:num_requests_running{pod=\"************-9\",key=\"*******\"}";
        assert_eq!(found.wanted[0].series, series);
    }
}
