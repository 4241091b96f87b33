//! Fidelity as a table: one row for each number, with what it rests on and what it means.
//!
//! The same words for every output. A number that is missing says what it lacks.

use super::super::gate::{number, percent};
use super::super::quantile::Statistic;
use super::changed::words;
use super::{Fidelity, Lengths};
use crate::counted::{counted, grouped};

/// One number of fidelity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What it is about.
    pub name: &'static str,
    /// The number, or that there is none.
    pub error: String,
    /// What was recorded.
    pub recorded: String,
    /// What the replay did.
    pub replayed: String,
    /// What the number means, or why there is none.
    pub meaning: String,
}

/// The rows, always all of them.
#[must_use]
pub fn rows(fidelity: &Fidelity) -> [Row; 4] {
    [arrivals(fidelity), inputs(fidelity), outputs(fidelity), cache(fidelity)]
}

fn row(name: &'static str, error: Option<f64>) -> Row {
    let error = error.map_or_else(|| "no data".to_owned(), percent);
    Row { name, error, recorded: String::new(), replayed: String::new(), meaning: String::new() }
}

fn arrivals(fidelity: &Fidelity) -> Row {
    let row = row("arrival", fidelity.arrival_error);
    let Some(arrival) = &fidelity.arrival else {
        let meaning = "no recorded schedule: arrivals were drawn, or users decide, or fewer than \
                       two requests left"
            .to_owned();
        return Row { meaning, ..row };
    };
    let gaps = |of: &Statistic, variation: Option<f64>| {
        let variation = variation.map_or_else(|| "unknown".to_owned(), number);
        let [mean, p50, p99] = [of.mean, of.p50, of.p99].map(number);
        format!("gaps of {mean} ms, p50 {p50}, p99 {p99}, variation {variation}")
    };
    let meaning = match fidelity.arrival_error {
        Some(_) => format!(
            "a gap is off by {} ms on average, as a share of the mean gap",
            number(arrival.wasserstein_ms)
        ),
        None => "all were recorded at one instant: no gap to hold anything against".to_owned(),
    };
    Row {
        recorded: gaps(&arrival.recorded_gap_ms, arrival.recorded_variation)
            + &words(&fidelity.changed.gaps),
        replayed: gaps(&arrival.achieved_gap_ms, arrival.achieved_variation),
        meaning,
        ..row
    }
}

/// The lengths of prompts, and of how many that cannot be said.
fn inputs(fidelity: &Fidelity) -> Row {
    let repeating = fidelity.repeated_turns;
    let lacks = match repeating {
        0 => "no server's count of prompt tokens beside a recorded length".to_owned(),
        n => format!(
            "the prompts of {} repeat earlier turns, which a recorded length does not count, and no \
             other has a server's count beside a recorded length",
            counted(n, "request")
        ),
    };
    let of = fidelity.input_length.as_ref();
    let mut row = lengths("input length", fidelity.input_length_error, of, &lacks);
    if of.is_some() {
        row.recorded += &words(&fidelity.changed.inputs);
    }
    if repeating > 0 && of.is_some() {
        row.meaning += &format!(
            "; {} more repeat earlier turns, which a recorded length does not count",
            grouped(repeating)
        );
    }
    row
}

/// The lengths of answers.
fn outputs(fidelity: &Fidelity) -> Row {
    let (error, of) = (fidelity.output_length_error, fidelity.output_length.as_ref());
    let mut row = lengths("output length", error, of, "no answer with a recorded length");
    if of.is_some() {
        row.recorded += &words(&fidelity.changed.outputs);
    }
    row
}

fn lengths(name: &'static str, error: Option<f64>, of: Option<&Lengths>, lacks: &str) -> Row {
    let row = row(name, error);
    let Some(of) = of else { return Row { meaning: lacks.to_owned(), ..row } };
    let [exact, shorter, longer] = [of.exact, of.shorter, of.longer].map(grouped);
    Row {
        recorded: format!("{} tokens", grouped(of.recorded_tokens)),
        replayed: format!("{} tokens", grouped(of.replayed_tokens)),
        meaning: format!(
            "tokens that differ, as a share of those recorded: {exact} of {} exact, {shorter} \
             shorter, {longer} longer",
            grouped(of.requests)
        ),
        ..row
    }
}

fn cache(fidelity: &Fidelity) -> Row {
    let row = row("cache", fidelity.cache_error);
    let Some(cache) = &fidelity.cache else {
        let meaning = "the server reports no cached tokens, or the trace has no block ids";
        return Row { meaning: meaning.to_owned(), ..row };
    };
    let then = cache.recorded_hit_rate.map(|rate| format!(", {} when recorded", percent(rate)));
    let [below, above] = [cache.below_ideal, cache.above_ideal].map(grouped);
    Row {
        recorded: format!(
            "{} could hit{}",
            percent(cache.ideal_hit_rate),
            then.unwrap_or_default()
        ),
        replayed: format!("{} hit", percent(cache.reported_hit_rate)),
        meaning: format!(
            "input tokens cached otherwise than an endless prefix cache would: {below} of {} \
             requests below it, {above} above",
            grouped(cache.requests)
        ),
        ..row
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::selection::Selection;
    use super::*;
    use crate::log::sample;
    use crate::run::Run;

    #[test]
    fn every_number_has_its_meaning_or_says_what_it_lacks() {
        let run = Run::read(&sample::log(2, 200)).expect("a log");
        let known = rows(&Fidelity::of(&Selection::new(&run, None)));
        for row in &known {
            assert!(row.error.ends_with('%') && !row.recorded.is_empty(), "{row:?}");
            assert!(!row.replayed.is_empty() && !row.meaning.is_empty(), "{row:?}");
        }
        for row in rows(&Fidelity::default()) {
            assert_eq!((&*row.error, &*row.recorded), ("no data", ""));
            assert!(!row.meaning.is_empty());
        }
    }
}
