//! What a trace is like, in numbers: rates, burstiness, lengths, sessions, ideal cache hits.
//!
//! Definitions. *Bins* of 1 s and 60 s start at the earliest timestamp and the last, partly filled
//! one counts. *Index of dispersion* is the population variance of the counts per bin over their
//! mean (1 for Poisson arrivals). *CV* is the population's standard deviation of the gaps between
//! arrivals over their mean. Percentiles interpolate linearly between order statistics. Cache
//! figures are those of [`crate::trace::cache`] and [`crate::trace::capacity`], asked in time order
//! and weighted by tokens. What has no data is `None`, never 0. This file prints nothing and judges
//! nothing but the oddities.

use serde::Serialize;

use crate::counted::{agreeing, counted};
use crate::trace::agentic::stats::Conversations;
use crate::trace::cache::ScopedCache;
use crate::trace::capacity::{SizedCache, SizedCaches, ladder};
use crate::trace::record::Record;
use crate::trace::{Format, Trace};
use crate::units::NANOS_PER_SECOND;

/// The summary of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stats {
    /// Requests.
    pub rows: u64,
    /// When they arrive; `None` when rows have no times.
    pub arrivals: Option<Arrivals>,
    /// Prompt lengths in tokens.
    pub input_tokens: Option<Lengths>,
    /// Answer lengths in tokens.
    pub output_tokens: Option<Lengths>,
    /// Who belongs together.
    pub sessions: Sessions,
    /// Shared blocks; `None` when no row has block ids.
    pub cache: Option<Cache>,
    /// Conversations with sub-agents; `None` when the trace's format has none.
    pub conversations: Option<Conversations>,
    /// What is unusual, in words.
    pub oddities: Vec<String>,
}

/// Arrival times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Arrivals {
    /// Seconds from the first to the last.
    pub span_s: f64,
    /// Requests over the span.
    pub mean_per_s: Option<f64>,
    /// Most requests in one bin of 1 s.
    pub peak_in_1_s: u64,
    /// Index of dispersion of the counts per second.
    pub dispersion_1_s: Option<f64>,
    /// Index of dispersion of the counts per minute.
    pub dispersion_60_s: Option<f64>,
    /// Coefficient of variation of the gaps.
    pub gap_cv: Option<f64>,
    /// The longest gap in seconds.
    pub gap_max_s: Option<f64>,
    /// Different instants at which something arrives.
    pub instants: u64,
    /// Most requests at one instant.
    pub most_at_one_instant: u64,
    /// Rows whose timestamp is smaller than that of the row before, in file order (of its session,
    /// where conversations have clocks of their own).
    pub steps_back: u64,
}

/// A distribution of lengths.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lengths {
    /// How many values there are.
    pub count: u64,
    /// Their sum.
    pub total: u64,
    /// Their mean.
    pub mean: f64,
    /// The smallest.
    pub min: u32,
    /// 10th percentile.
    pub p10: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// The largest.
    pub max: u32,
}

/// Sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Sessions {
    /// How many there are.
    pub count: u64,
    /// How many have more than one turn.
    pub with_follow_ups: u64,
    /// Turns of the longest.
    pub turns_max: u64,
}

/// Block ids and what a cache could make of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cache {
    /// Tokens of one block.
    pub block_tokens: u32,
    /// Rows with block ids.
    pub rows_with_ids: u64,
    /// Different ids.
    pub unique_blocks: u64,
    /// Ids of a row.
    pub ids_per_row: Lengths,
    /// Tokens of prefixes that were there already / all prompt tokens, infinite cache.
    pub ideal_hit_rate: Option<f64>,
    /// Tokens of blocks that were there already in any place / all prompt tokens.
    pub ideal_set_overlap_rate: Option<f64>,
    /// 10th percentile of the rows' own ideal hit rates.
    pub row_hit_rate_p10: Option<f64>,
    /// Their median.
    pub row_hit_rate_p50: Option<f64>,
    /// Their 90th percentile.
    pub row_hit_rate_p90: Option<f64>,
    /// Share of the rows that hit nothing.
    pub rows_without_hit: Option<f64>,
    /// What caches of certain sizes would find, by size.
    pub by_capacity: Vec<SizedCache>,
}

impl Stats {
    /// Summarises a trace; cache sizes that are wanted, in tokens, are looked at beside others.
    #[must_use]
    pub fn of(trace: &Trace, cache_tokens: &[u64]) -> Self {
        let mut order: Vec<usize> = (0..trace.records.len()).collect();
        order.sort_by_key(|&place| trace.records[place].at);
        let arrivals = (!trace.recorded.untimed).then(|| arrivals(trace, &order));
        let known = (0..).zip(&trace.records).filter(|(at, _)| trace.recorded.is_length_known(*at));
        let inputs = known.map(|(_, record)| record.input_tokens).collect();
        let outputs = trace.records.iter().filter_map(|record| record.output_tokens).collect();
        let mut stats = Self {
            rows: trace.records.len() as u64,
            arrivals,
            input_tokens: lengths(inputs),
            output_tokens: lengths(outputs),
            sessions: sessions(trace),
            cache: cache(trace, &order, cache_tokens),
            conversations: Conversations::of(trace),
            oddities: Vec::new(),
        };
        stats.oddities = oddities(trace, &stats);
        stats
    }
}

/// The value below which `share` of the sorted `values` lie, by linear interpolation.
pub(crate) fn quantile<T: Copy + Into<f64>>(sorted: &[T], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    #[expect(clippy::cast_possible_truncation, reason = "0 ≤ place < len")]
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    let (low, high): (f64, f64) = (sorted[below].into(), sorted[above].into());
    low + (high - low) * (place - below as f64)
}

fn lengths(mut values: Vec<u32>) -> Option<Lengths> {
    values.sort_unstable();
    let (&min, &max) = (values.first()?, values.last()?);
    let total = values.iter().map(|&value| u64::from(value)).sum::<u64>();
    Some(Lengths {
        count: values.len() as u64,
        total,
        mean: total as f64 / values.len() as f64,
        min,
        p10: quantile(&values, 0.10),
        p50: quantile(&values, 0.50),
        p90: quantile(&values, 0.90),
        p99: quantile(&values, 0.99),
        max,
    })
}

fn arrivals(trace: &Trace, order: &[usize]) -> Arrivals {
    let times: Vec<i64> = order.iter().map(|&place| trace.records[place].at.0).collect();
    let (first, last) = match (times.first(), times.last()) {
        (Some(&first), Some(&last)) => (first, last),
        _ => (0, 0),
    };
    let span_ns = i128::from(last) - i128::from(first);
    let span_s = span_ns as f64 / NANOS_PER_SECOND as f64;
    let (dispersion_1_s, peak_in_1_s) = dispersion(&times, NANOS_PER_SECOND);
    let (dispersion_60_s, _) = dispersion(&times, 60 * NANOS_PER_SECOND);
    let runs = runs(&times, i128::from);
    let gaps: Vec<f64> =
        times.windows(2).map(|pair| (i128::from(pair[1]) - i128::from(pair[0])) as f64).collect();
    Arrivals {
        span_s,
        mean_per_s: (span_ns > 0).then(|| times.len() as f64 / span_s),
        peak_in_1_s,
        dispersion_1_s,
        dispersion_60_s,
        gap_cv: variation(&gaps),
        gap_max_s: gaps.iter().copied().reduce(f64::max).map(|gap| gap / NANOS_PER_SECOND as f64),
        instants: runs.len() as u64,
        most_at_one_instant: runs.iter().copied().max().unwrap_or(0),
        steps_back: steps_back(trace),
    }
}

/// Rows before the row before them; where sessions have clocks of their own, before that of their
/// session.
fn steps_back(trace: &Trace) -> u64 {
    if trace.source.format != Format::Agentic {
        return trace.records.windows(2).filter(|pair| pair[1].at < pair[0].at).count() as u64;
    }
    let mut last = vec![None; trace.sessions.len()];
    let is_back = |record: &&Record| {
        last[record.session.as_usize()].replace(record.at).is_some_and(|last| record.at < last)
    };
    trace.records.iter().filter(is_back).count() as u64
}

/// How many neighbours share a key, for each run of equal keys.
fn runs(times: &[i64], key: impl Fn(i64) -> i128) -> Vec<u64> {
    times.chunk_by(|&a, &b| key(a) == key(b)).map(|run| run.len() as u64).collect()
}

/// Index of dispersion of the counts per bin, and the largest count.
fn dispersion(times: &[i64], width_ns: i64) -> (Option<f64>, u64) {
    let (Some(&first), Some(&last)) = (times.first(), times.last()) else { return (None, 0) };
    let bin = |time: i64| (i128::from(time) - i128::from(first)) / i128::from(width_ns);
    let counts = runs(times, bin);
    let peak = counts.iter().copied().max().unwrap_or(0);
    let bins = bin(last) + 1;
    if bins < 2 {
        return (None, peak);
    }
    let mean = times.len() as f64 / bins as f64;
    let squares = counts.iter().map(|&count| (count * count) as f64).sum::<f64>();
    (Some((squares / bins as f64 - mean * mean) / mean), peak)
}

fn variation(gaps: &[f64]) -> Option<f64> {
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let squares = gaps.iter().map(|gap| (gap - mean) * (gap - mean)).sum::<f64>();
    (mean > 0.0).then(|| (squares / gaps.len() as f64).sqrt() / mean)
}

fn sessions(trace: &Trace) -> Sessions {
    let mut turns = vec![0_u64; trace.sessions.len()];
    for record in &trace.records {
        turns[record.session.as_usize()] += 1;
    }
    Sessions {
        // (A conversation of nothing but sub-agents has a name and no turns.)
        count: turns.iter().filter(|&&turns| turns > 0).count() as u64,
        with_follow_ups: turns.iter().filter(|&&turns| turns > 1).count() as u64,
        turns_max: turns.iter().copied().max().unwrap_or(0),
    }
}

fn cache(trace: &Trace, order: &[usize], cache_tokens: &[u64]) -> Option<Cache> {
    let counts = trace.records.iter().map(|record| record.block_count);
    let with_ids: Vec<u32> = counts.filter(|&count| count > 0).collect();
    let ids_per_row = lengths(with_ids)?;
    let mut ideal = ScopedCache::new(trace);
    let most_tokens = trace.blocks.len() as u64 * u64::from(trace.block_tokens);
    let mut sizes = [ladder(most_tokens).as_slice(), cache_tokens].concat();
    sizes.sort_unstable();
    sizes.dedup();
    let mut sized = SizedCaches::new(trace, sizes);
    let mut path = Vec::new();
    let (mut input, mut prefix, mut set, mut without) = (0_u64, 0_u64, 0_u64, 0_u64);
    let mut rates = Vec::with_capacity(order.len());
    for &place in order {
        let record = &trace.records[place];
        let number = u32::try_from(place).expect("records are numbered in 32 bits");
        path.clear();
        let hits = ideal.cache_of(trace, number).ask_path(trace, record, &mut path);
        sized.ask(trace, number, &path, hits.prefix_blocks);
        input += u64::from(record.input_tokens);
        prefix += u64::from(hits.prefix_tokens);
        set += u64::from(hits.set_tokens);
        without += u64::from(hits.prefix_tokens == 0);
        if record.input_tokens > 0 {
            rates.push(f64::from(hits.prefix_tokens) / f64::from(record.input_tokens));
        }
    }
    rates.sort_unstable_by(f64::total_cmp);
    let of_rows = |share: f64| (!rates.is_empty()).then(|| quantile(&rates, share));
    let all_tokens = ideal.prefixes() * u64::from(trace.block_tokens);
    let share = |tokens: u64| (input > 0).then(|| tokens as f64 / input as f64);
    Some(Cache {
        block_tokens: trace.block_tokens,
        rows_with_ids: ids_per_row.count,
        unique_blocks: ideal.unique_blocks(),
        ids_per_row,
        ideal_hit_rate: share(prefix),
        ideal_set_overlap_rate: share(set),
        row_hit_rate_p10: of_rows(0.1),
        row_hit_rate_p50: of_rows(0.5),
        row_hit_rate_p90: of_rows(0.9),
        rows_without_hit: (!order.is_empty()).then(|| without as f64 / order.len() as f64),
        by_capacity: sized.rates(all_tokens, cache_tokens),
    })
}

/// From this share of equal neighbours on, arrivals are told to come in bursts.
const BURSTY: f64 = 0.10;
/// A pause is told when it is this many times the mean gap, and a minute at least.
const LONG_PAUSE: f64 = 20.0;

/// What is unusual about when requests arrive.
fn odd_arrivals(trace: &Trace, rows: u64, arrivals: &Arrivals) -> Vec<String> {
    let mut words = Vec::new();
    let &Arrivals { instants, steps_back, span_s, gap_max_s, .. } = arrivals;
    let gaps = rows.saturating_sub(1);
    let zero_gaps = rows - instants;
    if gaps > 0 && zero_gaps as f64 / gaps as f64 >= BURSTY {
        words.push(format!(
            "{:.0} % of the gaps between arrivals are zero: {} share {}",
            zero_gaps as f64 * 100.0 / gaps as f64,
            counted(rows, "row"),
            counted(instants, "instant")
        ));
    }
    if let Some(pause) = gap_max_s
        .filter(|&pause| pause >= 60.0 && gaps > 1 && pause > LONG_PAUSE * span_s / gaps as f64)
    {
        // (What is not replayed by its times has other ways of shortening them.)
        let is_scheduled = !matches!(trace.source.format, Format::Agentic | Format::Otel);
        let cap = if is_scheduled { "; --max-idle-gap-cap-seconds shortens pauses" } else { "" };
        words.push(format!("the longest pause is {pause:.0} s{cap}"));
    }
    if steps_back > 0 {
        words.push(format!(
            "{} {} smaller than the one before: rows are sent in time order",
            counted(steps_back, "timestamp"),
            agreeing(steps_back, "is", "are")
        ));
    }
    words
}

fn oddities(trace: &Trace, stats: &Stats) -> Vec<String> {
    let mut words: Vec<String> = trace.warnings.iter().map(ToString::to_string).collect();
    if let Some(arrivals) = &stats.arrivals {
        words.extend(odd_arrivals(trace, stats.rows, arrivals));
    }
    if stats.conversations.as_ref().is_some_and(|found| found.count > 1) {
        words.push(
            "each conversation has a clock of its own: rates, bursts and cache sizes are those of \
             all starting together"
                .to_owned(),
        );
    }
    let lacking = stats.cache.as_ref().filter(|cache| cache.rows_with_ids < stats.rows);
    if let Some(cache) = lacking.filter(|_| !trace.recorded.has_texts()) {
        let without = stats.rows - cache.rows_with_ids;
        words.push(format!(
            "{} {} no hash_ids: {} nothing with others",
            counted(without, "row"),
            agreeing(without, "has", "have"),
            agreeing(without, "its prompt shares", "their prompts share")
        ));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate_between_order_statistics() {
        let values = [10_u32, 20, 30, 40];
        assert!((quantile(&values, 0.5) - 25.0).abs() < 1e-12);
        assert!((quantile(&values, 0.9) - 37.0).abs() < 1e-12);
        assert!((quantile(&[7_u32], 0.99) - 7.0).abs() < 1e-12);
    }

    #[test]
    fn dispersion_counts_empty_bins_and_the_last_one() {
        let second = NANOS_PER_SECOND;
        // Counts 3, 0, 0, 1: mean 1, variance 1.5.
        let (index, peak) = dispersion(&[0, 1, 2, 3 * second], second);
        assert_eq!(peak, 3);
        assert!((index.expect("four bins") - 1.5).abs() < 1e-12);
        assert_eq!(dispersion(&[5, 6], second), (None, 2));
        // A clock that spans six centuries has too many bins to store, and not too many to count.
        assert!(dispersion(&[i64::MIN, i64::MAX], second).0.is_some());
    }

    #[test]
    fn variation_of_even_gaps_is_zero_and_of_no_time_unknown() {
        assert_eq!(variation(&[2.0, 2.0, 2.0]), Some(0.0));
        assert_eq!(variation(&[0.0, 0.0]), None);
        assert_eq!(variation(&[]), None);
    }
}
