//! How faithful a replay was to what was recorded: arrivals, lengths, cache, each as one number.
//!
//! | number | definition | needs |
//! |---|---|---|
//! | arrival error | W / mean recorded gap | a schedule from the trace |
//! | input length error | Σ \|prompt tokens − recorded\| / Σ recorded | the server's own count |
//! | output length error | Σ \|completion tokens − recorded\| / Σ recorded | recorded lengths |
//! | cache error | Σ \|cached − ideal\| / Σ input tokens | block ids, and a server that reports |
//!
//! A server counts cached tokens of prompts as it counts these, with a chat template's tokens and
//! by its own tokenizer. The template is what it counts more in every prompt (up to 128 tokens):
//! those may be cached or not, wherever they stand. What it had of the rest counts as that share of
//! the recorded input.
//!
//! W is the mean distance between recorded and achieved gaps, each of the same rank: Wasserstein's
//! distance of their distributions. Zero is as recorded: the same rhythm, the same lengths, and a
//! server's cache that held what an endless one would (*ideal*).
//!
//! *Recorded* is what was planned: the trace after speed-up, tiles, caps and synthesis; which
//! options changed it is said beside the number. Gaps are
//! those between successive requests with a due time, in order of time: due against sent, up to the
//! last sending, so that one which never left counts as a gap too long, and one that a stop kept
//! back does not. Distances of ranks, not of distribution functions: a burst of equal instants
//! leaves back to back, some microseconds apart, which every function of "less or equal" takes for
//! a difference of all. Kolmogorov's distance is given beside it all the same. Arrivals that were
//! drawn (`--request-rate`), that users decide or that another tool made are no recording: their
//! error is missing, not zero. Lengths are of successful requests, the cache of all that report.

mod changed;
mod rows;

use serde::Serialize;

pub use self::changed::Changed;
pub use self::rows::{Row, rows};
use super::cache::{ideal as ideal_of, repeats_turns};
use super::latency::{count, nanos};
use super::quantile::{Collector, Statistic};
use super::selection::Selection;
use super::tokens;
use crate::import;
use crate::run::Run;

/// A server that counts more than this beyond every prompt has another tokenizer, or a prompt of
/// its own, and no template alone.
const TEMPLATE_TOKENS_MAX: u32 = 128;

/// How faithful a replay was; zero is as recorded, and null not known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Fidelity {
    /// Mean distance between recorded and achieved gaps of the same rank / mean recorded gap.
    pub arrival_error: Option<f64>,
    /// Σ |prompt tokens − recorded| / Σ recorded.
    pub input_length_error: Option<f64>,
    /// Σ |completion tokens − recorded| / Σ recorded.
    pub output_length_error: Option<f64>,
    /// Σ |cached tokens − ideal| / Σ input tokens.
    pub cache_error: Option<f64>,
    /// What the first rests on; null if the schedule was not recorded.
    pub arrival: Option<Arrival>,
    /// What the second rests on; null if nobody counted.
    pub input_length: Option<Lengths>,
    /// Requests that are not in it: their prompts repeat the earlier turns of their session, which
    /// a recorded length does not count.
    pub repeated_turns: u64,
    /// What the third rests on.
    pub output_length: Option<Lengths>,
    /// What the fourth rests on; null if the server reports nothing, or the trace has no blocks.
    pub cache: Option<CacheFidelity>,
    /// By which options the plan is another than what the trace recorded.
    #[serde(skip)]
    pub changed: Changed,
}

/// Gaps between requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Arrival {
    /// As recorded.
    pub recorded_gap_ms: Statistic,
    /// As sent.
    pub achieved_gap_ms: Statistic,
    /// Mean distance of gaps of the same rank: Wasserstein's, of the first kind.
    pub wasserstein_ms: f64,
    /// Largest difference of the distribution functions: Kolmogorov's.
    pub kolmogorov: f64,
    /// Deviation / mean of the recorded gaps: 1 is a Poisson stream, more is bursts. Null if all
    /// came at one instant.
    pub recorded_variation: Option<f64>,
    /// The same of the achieved gaps.
    pub achieved_variation: Option<f64>,
}

/// Lengths of prompts or answers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Lengths {
    /// Requests of which both lengths are known.
    pub requests: u64,
    /// Tokens, as recorded.
    pub recorded_tokens: u64,
    /// Tokens of the replay.
    pub replayed_tokens: u64,
    /// Requests with exactly the recorded length.
    pub exact: u64,
    /// Requests with less.
    pub shorter: u64,
    /// Requests with more.
    pub longer: u64,
}

/// What was cached.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CacheFidelity {
    /// Requests of which both are known.
    pub requests: u64,
    /// Their share of input tokens that an endless prefix cache would have had.
    pub ideal_hit_rate: f64,
    /// The share that the server reports.
    pub reported_hit_rate: f64,
    /// Requests of which less was cached than could be.
    pub below_ideal: u64,
    /// Requests of which more was cached: the server was not cold, or blocks are not what it
    /// shares.
    pub above_ideal: u64,
    /// The share that was cached when the trace was recorded; null where it does not say.
    pub recorded_hit_rate: Option<f64>,
}

impl Fidelity {
    /// The fidelity of the chosen requests.
    #[must_use]
    pub fn of(selection: &Selection<'_>) -> Self {
        let run = selection.run();
        let (arrival_error, arrival) = arrival(selection).unzip();
        let (repeating, alone): (Vec<_>, Vec<_>) =
            selection.successful().partition(|&i| repeats_turns(run, i));
        let prompts = alone
            .into_iter()
            .map(|i| (run.plan[i].input_tokens, run.requests.prompt_tokens(i).map(u64::from)));
        let (input_length_error, input_length) = lengths(prompts).unzip();
        let answers =
            selection.successful().map(|i| (run.plan[i].max_tokens, tokens::completion(run, i)));
        let (output_length_error, output_length) = lengths(answers).unzip();
        let (cache_error, cache) = cache(selection).unzip();
        Self {
            arrival_error: arrival_error.flatten(),
            input_length_error,
            output_length_error,
            cache_error,
            arrival,
            input_length,
            repeated_turns: repeating.len() as u64,
            output_length,
            cache,
            changed: Changed::of(run),
        }
    }
}

/// Whether due times are the trace's own.
fn is_scheduled_by_trace(run: &Run) -> bool {
    let drawn = &run.manifest.config["schedule"]["request_rate"];
    run.users.is_none() && drawn.is_null() && import::measured_by(run).is_none()
}

fn arrival(selection: &Selection<'_>) -> Option<(Option<f64>, Arrival)> {
    let run = selection.run();
    if !is_scheduled_by_trace(run) {
        return None;
    }
    let requests = &run.requests;
    let timed: Vec<usize> = selection.requests().filter(|&i| requests.due(i).is_some()).collect();
    let mut sent: Vec<i64> =
        timed.iter().filter_map(|&i| requests.sent(i)).map(|time| time.0).collect();
    sent.sort_unstable();
    let last = *sent.last()?;
    let due = timed.iter().filter_map(|&i| requests.due(i)).map(|time| time.0);
    let mut due: Vec<i64> = due.filter(|&due| due <= last).collect();
    due.sort_unstable();
    let (recorded, achieved) = (gaps(&due), gaps(&sent));
    let distance = Distance::of(&recorded, &achieved);
    let statistic = |gaps: &[f64]| {
        let mut collector = Collector::new();
        collector.extend(gaps.iter().copied());
        collector.statistic(1e6)
    };
    let (before, after) = (statistic(&recorded)?, statistic(&achieved)?);
    let variation = |of: &Statistic| (of.mean > 0.0).then(|| of.std / of.mean);
    let arrival = Arrival {
        recorded_gap_ms: before,
        achieved_gap_ms: after,
        wasserstein_ms: distance.wasserstein / 1e6,
        kolmogorov: distance.kolmogorov,
        recorded_variation: variation(&before),
        achieved_variation: variation(&after),
    };
    Some(((before.mean > 0.0).then(|| arrival.wasserstein_ms / before.mean), arrival))
}

/// From one to the next, in order of length.
fn gaps(times: &[i64]) -> Vec<f64> {
    let mut gaps: Vec<f64> =
        times.windows(2).map(|pair| nanos(pair[1].saturating_sub(pair[0]))).collect();
    gaps.sort_unstable_by(f64::total_cmp);
    gaps
}

/// How far two distributions are from each other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Distance {
    /// The area between their functions.
    wasserstein: f64,
    /// The largest distance between them.
    kolmogorov: f64,
}

impl Distance {
    /// Of two sorted lists.
    fn of(one: &[f64], other: &[f64]) -> Self {
        let mut found = Self::default();
        let (mut at, mut before) = ([0, 0], None);
        loop {
            let next = [one.get(at[0]), other.get(at[1])].into_iter().flatten().copied();
            let Some(value) = next.reduce(f64::min) else { return found };
            let share = |at: usize, of: &[f64]| count(at as u64) / count((of.len() as u64).max(1));
            let apart = |at: [usize; 2]| (share(at[0], one) - share(at[1], other)).abs();
            found.wasserstein += before.map_or(0.0, |before| value - before) * apart(at);
            at[0] += one[at[0]..].partition_point(|&own| own <= value);
            at[1] += other[at[1]..].partition_point(|&own| own <= value);
            found.kolmogorov = found.kolmogorov.max(apart(at));
            before = Some(value);
        }
    }
}

/// Recorded and replayed lengths of requests that have both.
fn lengths(requests: impl Iterator<Item = (Option<u32>, Option<u64>)>) -> Option<(f64, Lengths)> {
    let mut found = Lengths {
        requests: 0,
        recorded_tokens: 0,
        replayed_tokens: 0,
        exact: 0,
        shorter: 0,
        longer: 0,
    };
    let mut apart = 0;
    for (recorded, replayed) in requests {
        let (Some(recorded), Some(replayed)) = (recorded.map(u64::from), replayed) else {
            continue;
        };
        found.requests += 1;
        found.recorded_tokens = found.recorded_tokens.saturating_add(recorded);
        found.replayed_tokens = found.replayed_tokens.saturating_add(replayed);
        found.exact += u64::from(replayed == recorded);
        found.shorter += u64::from(replayed < recorded);
        found.longer += u64::from(replayed > recorded);
        apart = recorded.abs_diff(replayed).saturating_add(apart);
    }
    (found.recorded_tokens > 0).then(|| (count(apart) / count(found.recorded_tokens), found))
}

/// Tokens that the server counts more than were recorded in every prompt: a chat template's. 0
/// where it counts less in some, or so many more in all that no template is so long.
fn template(selection: &Selection<'_>) -> u32 {
    let run = selection.run();
    let more = selection.requests().filter(|&i| run.requests.was_sent(i)).filter_map(|i| {
        let (_, of) = ideal_of(run, i)?;
        run.requests.cached_tokens(i)?;
        let prompt = run.requests.prompt_tokens(i).filter(|&prompt| prompt > 0)?;
        Some(prompt.saturating_sub(of))
    });
    more.min().filter(|&more| more <= TEMPLATE_TOKENS_MAX).unwrap_or(0)
}

fn cache(selection: &Selection<'_>) -> Option<(f64, CacheFidelity)> {
    let run = selection.run();
    let (mut requests, mut below, mut above) = (0, 0, 0);
    let (mut input, mut ideal, mut cached, mut prompts, mut apart) = (0, 0, 0, 0, 0.0);
    let mut recorded = None;
    let template = template(selection);
    for i in selection.requests().filter(|&i| run.requests.was_sent(i)) {
        let row = &run.plan[i];
        if let (Some(then), Some(of)) =
            (run.recorded(i).and_then(|row| row.cached_tokens), row.input_tokens)
        {
            let (part, whole) = recorded.get_or_insert((0, 0));
            *part += u64::from(then);
            *whole += u64::from(of);
        }
        let known = (ideal_of(run, i), run.requests.cached_tokens(i));
        let (Some((could, of)), Some(was)) = known else { continue };
        let prompt = run.requests.prompt_tokens(i).filter(|&prompt| prompt > 0).unwrap_or(of);
        let ideal_tokens = f64::from(could);
        let text = prompt.saturating_sub(template).max(1);
        let share = |was: u32| f64::from(was) * f64::from(of) / f64::from(text);
        // Whether the template's tokens are among those that were cached is not known.
        let (least, most) = (share(was.saturating_sub(template)), share(was.min(text)));
        let of_input = ideal_tokens.clamp(least.min(most), most);
        requests += 1;
        // A token of difference is what a share is rounded by.
        below += u64::from(of_input < ideal_tokens - 1.0);
        above += u64::from(of_input > ideal_tokens + 1.0);
        input += u64::from(of);
        ideal += u64::from(could);
        cached += u64::from(was);
        prompts += u64::from(prompt);
        apart += (of_input - ideal_tokens).abs();
    }
    let recorded = recorded.filter(|&(_, of)| of > 0).map(|(part, of)| count(part) / count(of));
    (input > 0).then(|| {
        let found = CacheFidelity {
            requests,
            ideal_hit_rate: count(ideal) / count(input),
            reported_hit_rate: count(cached) / count(prompts),
            below_ideal: below,
            above_ideal: above,
            recorded_hit_rate: recorded,
        };
        (apart / count(input), found)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::Dice;
    use crate::log::sample::{self, Sample};
    use crate::log::{Class, RecordedRow, sample_users};

    const MS: i64 = 1_000_000;

    fn of(sample: &Sample) -> Fidelity {
        let run = Run::read(&sample.bytes()).expect("a log");
        Fidelity::of(&Selection::new(&run, None))
    }

    fn close(found: Option<f64>, expected: f64) {
        let found = found.expect("known");
        assert!((found - expected).abs() < 1e-9, "{found} for {expected}");
    }

    #[test]
    fn distances_are_those_of_their_definitions() {
        let distance = |one: &[f64], other: &[f64]| Distance::of(one, other);
        let found = distance(&[0.0, 1.0, 3.0], &[5.0, 6.0, 8.0]);
        // SciPy's own example: 5.0.
        assert!((found.wasserstein - 5.0).abs() < 1e-12 && found.kolmogorov == 1.0);
        let found = distance(&[0.0, 1.0], &[0.0, 0.0, 1.0, 1.0]);
        assert_eq!((found.wasserstein, found.kolmogorov), (0.0, 0.0), "sizes do not matter");
        // Of lists of one size it is the mean distance of the same ranks.
        let mut dice = Dice(4);
        let mut drawn = || {
            let mut list: Vec<f64> = (0..50).map(|_| dice.unit() * 9.0).collect();
            list.sort_unstable_by(f64::total_cmp);
            list
        };
        let (one, other) = (drawn(), drawn());
        let mean = one.iter().zip(&other).map(|(a, b)| (a - b).abs()).sum::<f64>() / 50.0;
        assert!((Distance::of(&one, &other).wasserstein - mean).abs() < 1e-12);
        assert!((Distance::of(&other, &one).wasserstein - mean).abs() < 1e-12);
    }

    #[test]
    fn arrivals_as_recorded_have_no_error_and_a_shift_of_all_is_none() {
        let run = |late: &dyn Fn(i64) -> i64| {
            let mut sample = Sample::new();
            for k in 0..101 {
                let due = k * 10 * MS;
                let request = sample.plan(due);
                sample.dispatch(request, due, due + late(k));
                sample.done(request, due + late(k) + MS, Class::Ok);
            }
            of(&sample)
        };
        close(run(&|_| 0).arrival_error, 0.0);
        close(run(&|_| 3 * MS).arrival_error, 0.0);
        // Every other one is 2 ms late: gaps of 12 and 8 ms for 10 and 10.
        let uneven = run(&|k| k % 2 * 2 * MS);
        close(uneven.arrival_error, 0.2);
        let arrival = uneven.arrival.expect("recorded");
        close(Some(arrival.wasserstein_ms), 2.0);
        assert_eq!((arrival.recorded_gap_ms.mean, arrival.recorded_variation), (10.0, Some(0.0)));
        close(arrival.achieved_variation, 0.2);
    }

    #[test]
    fn a_burst_that_leaves_back_to_back_is_hardly_an_error() {
        let mut sample = Sample::new();
        for k in 0..200 {
            let due = k / 10 * 100 * MS;
            let request = sample.plan(due);
            sample.dispatch(request, due, due + k % 10 * 5_000);
        }
        let found = of(&sample);
        assert!(found.arrival_error.expect("recorded") < 0.001, "{found:?}");
        assert!(found.arrival.expect("recorded").kolmogorov > 0.8);
    }

    #[test]
    fn what_never_left_is_a_gap_too_long_unless_a_stop_kept_it_back() {
        let mut sample = Sample::new();
        for k in 0..11 {
            let request = sample.plan(k * 10 * MS);
            if k != 5 {
                sample.dispatch(request, k * 10 * MS, k * 10 * MS);
            }
        }
        let dropped = of(&sample);
        assert!(dropped.arrival_error.expect("recorded") > 0.1, "{dropped:?}");
        let mut stopped = Sample::new();
        for k in 0..10 {
            stopped.send(k * 10 * MS);
        }
        stopped.plan(100 * MS);
        stopped.interrupted = true;
        close(of(&stopped).arrival_error, 0.0);
    }

    #[test]
    fn what_was_not_recorded_is_missing() {
        let mut drawn = sample::sample(2, 50);
        assert!(of(&drawn).arrival_error.is_some());
        drawn.manifest.config = serde_json::json!({"schedule": {"request_rate": "5"}});
        assert_eq!(of(&drawn).arrival_error, None);
        let users = Run::read(&sample_users::log(1, 5)).expect("a log");
        assert_eq!(Fidelity::of(&Selection::new(&users, None)).arrival, None);
        assert_eq!(of(&Sample::new()), Fidelity::default());
        let mut alone = Sample::new();
        alone.send(0);
        assert_eq!(of(&alone), Fidelity::default(), "one request has no gap and no answer");
        // All at one instant: no mean gap to hold anything against.
        let mut burst = Sample::new();
        (0..3).for_each(|_| {
            burst.send(0);
        });
        let found = of(&burst);
        assert!(found.arrival_error.is_none() && found.arrival.is_some());
    }

    #[test]
    fn a_chat_templates_tokens_are_no_error_of_the_cache() {
        let mut sample = Sample::new();
        for k in 0..4 {
            let request = sample.send(k * MS);
            sample.plan[usize::try_from(k).expect("small")].ideal_cached_tokens = Some(60);
            // 100 tokens were recorded; the server counts 400 more and has had 60 % of it all.
            sample.usage(request, k * MS + 10, [Some(500), Some(10), Some(300)]);
            sample.done(request, k * MS + 10, Class::Ok);
        }
        let found = of(&sample);
        close(found.cache_error, 0.0);
        let cache = found.cache.expect("reported");
        close(Some(cache.reported_hit_rate), 0.6);
        assert_eq!((cache.below_ideal, cache.above_ideal), (0, 0));
    }

    #[test]
    fn a_templates_tokens_may_be_cached_or_not() {
        let cached = |was: [u32; 3]| {
            let mut sample = Sample::new();
            for (k, was) in was.into_iter().enumerate() {
                let at = i64::try_from(k).expect("small") * MS;
                let request = sample.send(at);
                let row = &mut sample.plan[k];
                let of = 2_000 + 100 * u32::try_from(k).expect("small");
                (row.input_tokens, row.ideal_cached_tokens) = (Some(of), Some(512));
                sample.usage(request, at + 10, [Some(of + 7), Some(10), Some(was)]);
                sample.done(request, at + 10, Class::Ok);
            }
            let found = of(&sample);
            let cache = found.cache.expect("reported");
            (found.cache_error.expect("known"), cache.below_ideal, cache.above_ideal)
        };
        assert_eq!(cached([512; 3]), (0.0, 0, 0), "blocks that the template begins or follows");
        assert_eq!(cached([519; 3]), (0.0, 0, 0));
        let (error, below, above) = cached([500, 512, 530]);
        assert_eq!((below, above), (1, 1));
        close(Some(error), 23.0 / 6_300.0);
    }

    #[test]
    fn a_prompt_that_repeats_its_session_is_not_held_against_the_length_of_its_last_turn() {
        let mut sample = Sample::new();
        for (k, prompt) in [100, 260, 420].into_iter().enumerate() {
            let request = sample.send(i64::try_from(k).expect("small") * MS);
            sample.plan[k].turn = u32::try_from(k).expect("small");
            sample.usage(request, 9 * MS, [Some(prompt), Some(10), None]);
            sample.done(request, 9 * MS, Class::Ok);
        }
        close(of(&sample).input_length_error, 480.0 / 300.0);
        sample.manifest.repeats_turns = true;
        let found = of(&sample);
        close(found.input_length_error, 0.0);
        assert_eq!((found.repeated_turns, found.input_length.expect("one").requests), (2, 1));
        let [_, input, ..] = rows(&found);
        assert!(input.meaning.contains("2 more repeat earlier turns"), "{input:?}");
    }

    #[test]
    fn lengths_and_cache_are_sums_of_what_differs() {
        let mut sample = Sample::new();
        // Prompt, answer, cached, what could be cached; 100 and 10 tokens were recorded.
        for (k, (usage, ideal)) in [
            ([Some(100), Some(10), Some(64)], Some(64)),
            ([Some(110), Some(4), Some(0)], Some(32)),
            ([Some(100), Some(13), Some(48)], Some(32)),
            ([None, Some(10), None], Some(96)),
        ]
        .into_iter()
        .enumerate()
        {
            let at = i64::try_from(k).expect("small") * MS;
            let request = sample.send(at);
            sample.plan[k].ideal_cached_tokens = ideal;
            sample.chunks(request, &[at + 5, at + 9]);
            sample.usage(request, at + 10, usage);
            sample.done(request, at + 10, Class::Ok);
        }
        let failed = sample.send(9 * MS);
        sample.done(failed, 10 * MS, Class::Http429);
        let row = RecordedRow { cached_tokens: Some(25), ..RecordedRow::of(failed) };
        sample.recorded.push(row);
        let found = of(&sample);
        close(found.output_length_error, 9.0 / 40.0);
        let output = found.output_length.expect("known");
        assert_eq!((output.requests, output.exact, output.shorter, output.longer), (4, 2, 1, 1));
        close(found.input_length_error, 10.0 / 300.0);
        assert_eq!(found.input_length.expect("counted").requests, 3, "the server's own count");
        close(found.cache_error, 48.0 / 300.0);
        let cache = found.cache.expect("reported");
        assert_eq!((cache.below_ideal, cache.above_ideal, cache.requests), (1, 1, 3));
        close(cache.recorded_hit_rate, 0.25);
        close(Some(cache.reported_hit_rate), 112.0 / 310.0);
    }
}
