//! What servers said of themselves: of each source what one log has, under numbers of the merged
//! log.
//!
//! Shards ask each on its own, at instants and by a clock of their own. Two logs' answers of one
//! source are not put between each other: a counter would step back where clocks differ, and a
//! level would count twice. So each source is taken from the log in which it answered for the
//! longest time. Whoever merges is told where others heard it while that one did not: as a rule all
//! ask at the same time, and nothing is lost. Values are not looked at.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::survey::Survey;
use crate::counted::counted;
use crate::log::scraped::{Scraped, number_of};
use crate::log::scraped_texts::Texts;
use crate::log::{Record, RecordBlock};
use crate::units::RunNanos;

/// Sources that are named.
const NAMED_MAX: usize = 4;
/// Shards begin and end their askings at instants of their own. So many of the usual times between
/// two askings, beyond what the kept log has, are no loss.
const STEPS_ASIDE: u64 = 2;

/// What a log has of sources.
#[derive(Debug, Default)]
pub(super) struct Heard {
    texts: Texts,
    /// By the number of the source's text.
    sources: BTreeMap<u32, Answers>,
}

/// How much of a source a log has.
#[derive(Debug, Default)]
struct Answers {
    asked: u64,
    answered: u64,
    /// From when to when it went from an answer to the next one, failures not counted: in order of
    /// time, and apart.
    covered: Vec<(i64, i64)>,
    last: Option<RunNanos>,
    /// Numbers of failures' texts.
    failures: BTreeSet<u32>,
}

/// The merged log's number of each text that a log's kept records refer to.
pub(super) type Numbers = HashMap<u32, u32>;

impl Heard {
    /// Looks at a block of the conductor.
    pub(super) fn look(&mut self, block: &RecordBlock<'_>) {
        for record in block.iter().flatten() {
            match record {
                Record::Scraped(Scraped::Text { number, part, parts, used, bytes }) => {
                    self.texts.take(number, (part, parts), &bytes[..usize::from(used)]);
                }
                Record::Scraped(Scraped::Asked { source, start, failure, .. }) => {
                    self.sources.entry(source).or_default().take(start, failure);
                }
                _ => {}
            }
        }
    }

    /// The sources whose names are known.
    fn sources(&self) -> impl Iterator<Item = (String, u32, &Answers)> {
        let named = |(&number, answers)| Some((self.texts.whole(number)?, number, answers));
        self.sources.iter().filter_map(named)
    }
}

impl Answers {
    fn take(&mut self, start: RunNanos, failure: Option<u32>) {
        self.asked += 1;
        if failure.is_none() {
            self.answered += 1;
            match (self.last, self.covered.last_mut()) {
                // A clock that steps back covers nothing twice.
                (Some(_), Some(stretch)) => stretch.1 = stretch.1.max(start.0),
                (_, Some(stretch)) if start.0 <= stretch.1 => {}
                _ => self.covered.push((start.0, start.0)),
            }
        }
        self.failures.extend(failure);
        self.last = failure.is_none().then_some(start);
    }

    fn covered_ns(&self) -> u64 {
        self.covered.iter().map(|stretch| length_ns(*stretch)).fold(0, u64::saturating_add)
    }

    /// What decides which log is taken.
    fn worth(&self) -> (u64, u64, u64) {
        (self.covered_ns(), self.answered, self.asked)
    }

    /// How long others heard the source while this log did not, a few askings at an end aside.
    fn missed_ns(&self, others: &[&Self]) -> u64 {
        let steps = self.answered.saturating_sub(self.covered.len() as u64).max(1);
        let aside = (self.covered_ns() / steps).saturating_mul(STEPS_ASIDE);
        let mut heard: Vec<(i64, i64)> =
            others.iter().flat_map(|other| other.covered.iter().copied()).collect();
        heard.sort_unstable();
        let mut missed = 0_u64;
        // Up to here is known of others or of this log.
        let mut until = i64::MIN;
        for (start, end) in heard {
            let mut from = start.max(until);
            until = until.max(end);
            for &(own_start, own_end) in &self.covered {
                if own_end >= from && own_start <= end {
                    missed = missed.saturating_add(beyond(length_ns((from, own_start)), aside));
                    from = own_end;
                }
            }
            missed = missed.saturating_add(beyond(length_ns((from, end)), aside));
        }
        missed
    }
}

/// A length, unless it is no longer than what is no loss.
const fn beyond(length_ns: u64, aside_ns: u64) -> u64 {
    if length_ns > aside_ns { length_ns } else { 0 }
}

/// From the first instant to the second; nothing where that is before.
fn length_ns((start, end): (i64, i64)) -> u64 {
    end.saturating_sub(start).max(0).cast_unsigned()
}

/// Of each log the texts that its kept records refer to, with their numbers in the merged log, and
/// what whoever merges should know.
pub(super) fn choose(logs: &[Survey]) -> (Vec<Numbers>, Vec<String>) {
    let mut asked_by: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, log) in logs.iter().enumerate() {
        log.heard.sources().for_each(|(name, ..)| asked_by.entry(name).or_default().push(at));
    }
    let of = |at: usize, source: &str| {
        let own = logs[at].heard.sources().find(|(name, ..)| name == source);
        own.map(|(_, _, answers)| answers)
    };
    let worth = |at: usize, source: &str| of(at, source).map(Answers::worth).unwrap_or_default();
    let mut taken: BTreeMap<u32, String> = BTreeMap::new();
    let mut numbers = vec![Numbers::new(); logs.len()];
    let mut words = Vec::new();
    for (source, by) in &asked_by {
        // The last of equals is the first shard.
        let best = by.iter().rev().copied().max_by_key(|&at| worth(at, source));
        let Some(best) = best else { continue };
        let heard = &logs[best].heard;
        let own = &mut numbers[best];
        let mut kept: BTreeSet<u32> = BTreeSet::new();
        for (_, number, answers) in heard.sources().filter(|(name, ..)| name == source) {
            kept.insert(number);
            kept.extend(&answers.failures);
        }
        for (number, text) in heard.texts.all() {
            let of = text.split_once(' ').map(|(of, _series)| of);
            if kept.contains(&number) || of == Some(source) {
                own.insert(number, numbered(&mut taken, text));
            }
        }
        let others = by.iter().filter(|&&at| at != best).filter_map(|&at| of(at, source));
        let missed_ns = of(best, source).map(|own| own.missed_ns(&others.collect::<Vec<_>>()));
        if let Some(missed_ns) = missed_ns.filter(|&missed_ns| missed_ns > 0) {
            words.push(told(source, &logs[best].name, worth(best, source), missed_ns));
        }
    }
    (numbers, together(words).into_iter().collect())
}

/// All that is to be known, at once.
fn together(mut sources: Vec<String>) -> Option<String> {
    let more = sources.len().saturating_sub(NAMED_MAX);
    sources.truncate(NAMED_MAX);
    if more > 0 {
        sources.push(format!("so of {}", counted(more as u64, "more server")));
    }
    (!sources.is_empty()).then(|| {
        format!(
            "of what a server said of itself one shard's answers are kept, those over the longest \
             time, and others heard it while that shard did not: {}",
            sources.join("; ")
        )
    })
}

/// Of which log, and what is lost.
fn told(
    source: &str,
    best: &str,
    (covered_ns, answered, _): (u64, u64, u64),
    missed_ns: u64,
) -> String {
    let answers = counted(answered, "answer");
    let [covered_s, missed_s] = [covered_ns, missed_ns].map(|ns| ns as f64 / 1e9);
    format!("{source} of {best} ({answers} over {covered_s:.1} s; {missed_s:.1} s left out)")
}

/// A number for a text, by the rule of [`crate::log::scraped`].
fn numbered(taken: &mut BTreeMap<u32, String>, text: String) -> u32 {
    let mut number = number_of(&text);
    while taken.get(&number).is_some_and(|other| *other != text) {
        number = number.wrapping_add(1);
    }
    taken.insert(number, text);
    number
}

/// The fact with its numbers in the merged log; `None` for one that is taken from another log.
pub(super) fn renumbered(fact: Scraped, numbers: &Numbers) -> Option<Scraped> {
    let new = |number: u32| numbers.get(&number).copied();
    Some(match fact {
        Scraped::Text { number, part, parts, used, bytes } => {
            Scraped::Text { number: new(number)?, part, parts, used, bytes }
        }
        Scraped::Value { series, time, within_ns, kind, value } => {
            Scraped::Value { series: new(series)?, time, within_ns, kind, value }
        }
        Scraped::Asked { source, start, end, status, values, left_out, impossible, failure } => {
            // Words that are lost stay lost; that it failed does not.
            let failure = failure.map(|number| new(number).unwrap_or(number));
            let source = new(source)?;
            Scraped::Asked { source, start, end, status, values, left_out, impossible, failure }
        }
    })
}
