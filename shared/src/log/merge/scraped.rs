//! What servers said of themselves: of each source what one log has, under numbers of the merged
//! log.
//!
//! Shards ask each on its own, at instants and by a clock of their own. Two logs' answers of one
//! source are not put between each other: a counter would step back where clocks differ, and a
//! level would count twice. So each source is taken from the log in which it answered for the
//! longest time, and whoever merges is told which that is. Values are not looked at.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::survey::Survey;
use crate::counted::counted;
use crate::log::scraped::{Scraped, number_of};
use crate::log::scraped_texts::Texts;
use crate::log::{Record, RecordBlock};
use crate::units::RunNanos;

/// Sources that are named.
const NAMED_MAX: usize = 4;

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
    /// How long it went from an answer to the next one, failures not counted.
    covered_ns: u64,
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
            let since = self.last.map_or(0, |last| start.0.saturating_sub(last.0));
            self.covered_ns = self.covered_ns.saturating_add(since.max(0).cast_unsigned());
        }
        self.failures.extend(failure);
        self.last = failure.is_none().then_some(start);
    }

    /// What decides which log is taken.
    const fn worth(&self) -> (u64, u64, u64) {
        (self.covered_ns, self.answered, self.asked)
    }
}

/// Of each log the texts that its kept records refer to, with their numbers in the merged log, and
/// what whoever merges should know.
pub(super) fn choose(logs: &[Survey]) -> (Vec<Numbers>, Vec<String>) {
    let mut asked_by: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, log) in logs.iter().enumerate() {
        log.heard.sources().for_each(|(name, ..)| asked_by.entry(name).or_default().push(at));
    }
    let worth = |at: usize, source: &str| {
        let own = logs[at].heard.sources().find(|(name, ..)| name == source);
        own.map(|(_, _, answers)| answers.worth()).unwrap_or_default()
    };
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
        if by.len() > 1 {
            words.push(told(source, by.len(), &logs[best], worth(best, source)));
        }
    }
    if let more @ 1.. = words.len().saturating_sub(NAMED_MAX) {
        words.truncate(NAMED_MAX);
        let more = counted(more as u64, "more server");
        words.push(format!("{more} asked by several shards: of each the longest is kept"));
    }
    (numbers, words)
}

/// Why it is that log.
fn told(
    source: &str,
    by: usize,
    best: &Survey,
    (covered_ns, answered, _): (u64, u64, u64),
) -> String {
    let answers = counted(answered, "answer");
    let covered_s = covered_ns as f64 / 1e9;
    format!(
        "{source} was asked by {by} shards: what it said of itself is kept of {} alone, which has \
         most of it ({answers} over {covered_s:.1} s)",
        best.name
    )
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
