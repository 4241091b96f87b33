//! What a server said of itself during the run: how much ran and waited, how full its cache was.
//!
//! The names are those of vLLM and SGLang, old and new. Levels of several series of one source
//! (engines, ranks) are added up, shares of a cache averaged. A hit rate is what the counters of
//! hits grew by, over what those of looked-up tokens grew by; a counter that fell began again, and
//! what it counted meanwhile is not known. Where an asking failed there is no value, and a curve
//! has a gap; no value is carried on.

use serde::Serialize;

use super::gate::percent;
use super::latency::{count, nanos};
use super::selection::Selection;
use crate::counted::grouped;
use crate::quantity::{number, whole};
use crate::run::Run;
use crate::run::scraped::{Series, Servers};
use crate::units::RunNanos;

/// Names of requests that run, a server's own first.
const RUNNING: [&str; 2] = ["vllm:num_requests_running", "sglang:num_running_reqs"];
/// Of requests that wait.
const WAITING: [&str; 2] = ["vllm:num_requests_waiting", "sglang:num_queue_reqs"];
/// Of the share of the cache that is used.
const CACHE_USAGE: [&str; 3] =
    ["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage"];
/// Of tokens looked up in the prefix cache, and of those found.
const LOOKED_UP: [[&str; 2]; 4] = [
    ["vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total"],
    ["vllm:prefix_cache_queries", "vllm:prefix_cache_hits"],
    ["vllm:gpu_prefix_cache_queries_total", "vllm:gpu_prefix_cache_hits_total"],
    ["vllm:gpu_prefix_cache_queries", "vllm:gpu_prefix_cache_hits"],
];
/// Of the hit rate as the server computes it, where it has no counters.
const HIT_RATE: [&str; 2] = ["sglang:cache_hit_rate", "vllm:gpu_prefix_cache_hit_rate"];
/// Of generated tokens.
const GENERATED: [&str; 3] =
    ["vllm:generation_tokens_total", "vllm:generation_tokens", "sglang:generation_tokens_total"];

/// What can be drawn of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Requests that run.
    Running,
    /// Requests that wait in its queue.
    Waiting,
    /// The share of its cache that is used.
    CacheUsage,
    /// The share of prompt tokens that its prefix cache had, since the answer before.
    HitRate,
}

impl Quantity {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Running, Self::Waiting, Self::CacheUsage, Self::HitRate];

    /// Its name for people.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::CacheUsage => "cache usage",
            Self::HitRate => "prefix hit rate",
        }
    }

    /// Its value at each asking of a source; `None` where the asking failed or did not say.
    #[must_use]
    pub fn curve(self, servers: &Servers, source: usize) -> Vec<(RunNanos, Option<f64>)> {
        let known = match self {
            Self::Running => levels(servers, source, &RUNNING),
            Self::Waiting => levels(servers, source, &WAITING),
            Self::CacheUsage => shares(servers, source, &CACHE_USAGE),
            Self::HitRate => hit_rates(servers, source),
        };
        if known.is_empty() {
            return Vec::new();
        }
        let mut curve: Vec<_> =
            known.into_iter().map(|(time, value)| (time, Some(value))).collect();
        let gaps = servers.asked(source).map(|asking| (asking.time(), None));
        let gaps: Vec<_> = gaps
            .filter(|(time, _)| curve.binary_search_by_key(time, |point| point.0).is_err())
            .collect();
        curve.extend(gaps);
        curve.sort_by_key(|&(time, _)| time);
        curve
    }

    /// Its mean in each stretch of time, from, until; each value holds until the next asking.
    /// `None` where nothing is known all the while: the asking before failed, or there was none.
    #[must_use]
    pub fn means(
        self,
        servers: &Servers,
        source: usize,
        stretches: &[(RunNanos, RunNanos)],
    ) -> Vec<Option<f64>> {
        let curve = self.curve(servers, source);
        stretches.iter().map(|&stretch| mean_of_held(&curve, stretch)).collect()
    }
}

fn mean_of_held(
    curve: &[(RunNanos, Option<f64>)],
    (start, end): (RunNanos, RunNanos),
) -> Option<f64> {
    let before = curve.partition_point(|&(time, _)| time <= start);
    let (mut length, mut area, mut at_once) = (0.0, 0.0, None);
    for place in before.saturating_sub(1)..curve.len() {
        let (from, value) = curve[place];
        if from >= end {
            break;
        }
        let Some(value) = value else { continue };
        // The last one is known of its own instant only.
        let until = curve.get(place + 1).map_or(from, |&(next, _)| next);
        let held = nanos(until.min(end).0.saturating_sub(from.max(start).0)).max(0.0);
        length += held;
        area += value * held;
        at_once = if from >= start { Some(value) } else { at_once };
    }
    if length > 0.0 { Some(area / length) } else { at_once }
}

/// What a source said over the run.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ServerReport {
    /// The URL that was asked.
    pub source: String,
    /// Askings.
    pub asked: u64,
    /// Askings that failed: gaps in everything below.
    pub failed: u64,
    /// What the first failure says, if one failed.
    pub first_failure: Option<String>,
    /// Series that were left out of the fullest answer, because there were too many.
    pub left_out_series: u64,
    /// Values that are missing because they could not be (not a number, a queue or counter below
    /// zero, a share above one), over all askings; of one asking 127 are counted at most.
    pub impossible_values: u64,
    /// Requests that ran.
    pub running: Option<Level>,
    /// Requests that waited in the server's queue.
    pub waiting: Option<Level>,
    /// The share of the cache that was used.
    pub cache_usage: Option<Level>,
    /// Prompt tokens found in the prefix cache / those looked up, over all that was asked; null
    /// where the server has no counters of them.
    pub prefix_hit_rate: Option<f64>,
    /// Tokens that the server generated between the first asking and the last.
    pub generated_tokens: Option<f64>,
}

/// A level over the askings between first sending and last end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Level {
    /// Askings that said it.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// The largest.
    pub max: f64,
}

impl Level {
    fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let (mut known, mut sum, mut max) = (0_u64, 0.0, f64::NEG_INFINITY);
        for value in values {
            known += 1;
            sum += value;
            max = f64::max(max, value);
        }
        (known > 0).then(|| Self { count: known, mean: sum / count(known), max })
    }
}

/// The heads of [`rows`].
pub const HEADS: [&str; 11] = [
    "server",
    "asked",
    "failed",
    "running: mean, most",
    "waiting: mean, most",
    "cache used: mean, most",
    "prefix hits",
    "generated tokens",
    "impossible values",
    "series left out",
    "first failure",
];

/// A server in words, for pages: its source and its first failure are foreign. What it did not say
/// is no zero.
#[must_use]
pub fn rows(servers: &[ServerReport]) -> Vec<[String; 11]> {
    let none = || "no data".to_owned();
    let level = |level: Option<Level>, shown: fn(f64) -> String| {
        level.map_or_else(none, |level| format!("{}, {}", shown(level.mean), shown(level.max)))
    };
    let row = |server: &ServerReport| {
        [
            server.source.clone(),
            grouped(server.asked),
            grouped(server.failed),
            level(server.running, number),
            level(server.waiting, number),
            level(server.cache_usage, percent),
            server.prefix_hit_rate.map_or_else(none, percent),
            server.generated_tokens.map_or_else(none, |tokens| grouped(whole(tokens.round()))),
            grouped(server.impossible_values),
            grouped(server.left_out_series),
            server.first_failure.clone().unwrap_or_default(),
        ]
    };
    servers.iter().map(row).collect()
}

/// Each source over the chosen part of the run; `None` if nobody was asked.
#[must_use]
pub fn servers(selection: &Selection<'_>) -> Option<Vec<ServerReport>> {
    let servers = selection.run().servers.as_deref()?;
    let window = window(selection.run());
    let places = 0..servers.sources.len();
    Some(places.map(|source| report(servers, source, selection, window)).collect())
}

/// From the first sending to the last end.
fn window(run: &Run) -> Option<(RunNanos, RunNanos)> {
    let requests = 0..run.requests.len();
    let start = requests.clone().filter_map(|i| run.requests.sent(i)).min()?;
    let end = requests.filter_map(|i| run.requests.done(i)).max()?;
    Some((start, end))
}

fn report(
    servers: &Servers,
    source: usize,
    selection: &Selection<'_>,
    window: Option<(RunNanos, RunNanos)>,
) -> ServerReport {
    let level = |quantity: Quantity| {
        let curve = quantity.curve(servers, source);
        Level::of(curve.into_iter().filter_map(|(time, value)| {
            let inside = window.is_some_and(|(start, end)| start <= time && time <= end);
            value.filter(|_| inside && selection.holds(time))
        }))
    };
    let asked = || servers.asked(source).filter(|asking| selection.holds(asking.time()));
    let failures = || asked().filter_map(|asking| asking.failure.as_deref());
    ServerReport {
        source: servers.sources[source].clone(),
        asked: asked().count() as u64,
        failed: failures().count() as u64,
        first_failure: failures().next().map(str::to_owned),
        left_out_series: asked().map(|asking| u64::from(asking.left_out)).max().unwrap_or(0),
        impossible_values: asked().map(|asking| u64::from(asking.impossible)).sum(),
        running: level(Quantity::Running),
        waiting: level(Quantity::Waiting),
        cache_usage: level(Quantity::CacheUsage),
        prefix_hit_rate: hits_over_all(servers, source, selection),
        generated_tokens: grown(servers, source, &GENERATED, selection),
    }
}

/// The first of `names` that the source has.
fn first_named<'a>(servers: &'a Servers, source: usize, names: &[&str]) -> Vec<&'a Series> {
    let found = names.iter().map(|name| servers.named(source, name).collect::<Vec<_>>());
    found.into_iter().find(|series| !series.is_empty()).unwrap_or_default()
}

/// Values of one instant together: their number and sum.
fn together(series: &[&Series]) -> Vec<(RunNanos, f64, f64)> {
    let points = series.iter().flat_map(|series| series.points.iter());
    let mut points: Vec<_> = points.map(|point| (point.time, point.value)).collect();
    points.sort_by_key(|&(time, _)| time);
    let at_once = points.chunk_by(|a, b| a.0 == b.0);
    at_once
        .map(|at_once| {
            let sum = at_once.iter().map(|&(_, value)| value).sum();
            (at_once[0].0, count(at_once.len() as u64), sum)
        })
        .collect()
}

fn levels(servers: &Servers, source: usize, names: &[&str]) -> Vec<(RunNanos, f64)> {
    let all = together(&first_named(servers, source, names));
    all.into_iter().map(|(time, _, sum)| (time, sum)).collect()
}

fn shares(servers: &Servers, source: usize, names: &[&str]) -> Vec<(RunNanos, f64)> {
    let all = together(&first_named(servers, source, names));
    all.into_iter().map(|(time, count, sum)| (time, sum / count)).collect()
}

/// What counters grew by between neighbouring askings; the later one's time. `None`: one of them
/// began again meanwhile.
fn growth(series: &[&Series]) -> Vec<(RunNanos, Option<f64>)> {
    let mut steps: Vec<(RunNanos, Option<f64>)> = Vec::new();
    for series in series {
        steps.extend(series.points.windows(2).map(|pair| {
            let by = pair[1].value - pair[0].value;
            (pair[1].time, Some(by).filter(|&by| by >= 0.0))
        }));
    }
    steps.sort_by_key(|&(time, _)| time);
    let at_once = steps.chunk_by(|a, b| a.0 == b.0);
    at_once
        .map(|at_once| {
            let by = at_once.iter().try_fold(0.0, |sum, &(_, by)| Some(sum + by?));
            (at_once[0].0, by)
        })
        .collect()
}

/// Tokens looked up and found between neighbouring askings.
fn lookups(servers: &Servers, source: usize) -> Vec<(RunNanos, f64, f64)> {
    let pairs = LOOKED_UP
        .iter()
        .map(|names| names.map(|name| growth(&servers.named(source, name).collect::<Vec<_>>())));
    for [looked_up, found] in pairs {
        if looked_up.is_empty() || found.is_empty() {
            continue;
        }
        let both = looked_up.into_iter().filter_map(|(time, looked_up)| {
            let at = found.binary_search_by_key(&time, |step| step.0).ok()?;
            Some((time, looked_up?, found[at].1?))
        });
        return both.collect();
    }
    Vec::new()
}

/// The hit rate between neighbouring askings, where anything was looked up.
fn hit_rates(servers: &Servers, source: usize) -> Vec<(RunNanos, f64)> {
    let lookups = lookups(servers, source);
    if lookups.is_empty() {
        return shares(servers, source, &HIT_RATE);
    }
    let rates = lookups.into_iter().filter(|&(_, looked_up, _)| looked_up > 0.0);
    rates.map(|(time, looked_up, found)| (time, found / looked_up)).collect()
}

fn hits_over_all(servers: &Servers, source: usize, selection: &Selection<'_>) -> Option<f64> {
    let lookups = lookups(servers, source);
    let chosen = lookups.iter().filter(|(time, _, _)| selection.holds(*time));
    let (looked_up, found) =
        chosen.fold((0.0, 0.0), |sums, (_, looked_up, found)| (sums.0 + looked_up, sums.1 + found));
    (looked_up > 0.0).then(|| found / looked_up)
}

/// What a counter grew by; `None` where it is not known or began again meanwhile.
fn grown(
    servers: &Servers,
    source: usize,
    names: &[&str],
    selection: &Selection<'_>,
) -> Option<f64> {
    let steps = growth(&first_named(servers, source, names));
    let mut chosen = steps.iter().filter(|(time, _)| selection.holds(*time)).peekable();
    chosen.peek()?;
    chosen.try_fold(0.0, |sum, &(_, by)| Some(sum + by?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::sample::{self, Sample};
    use crate::log::scraped::{Scraped, SeriesKind, number_of, text_records};
    use crate::log::{Class, Record};
    use crate::units::CoreIndex;

    const S: i64 = 1_000_000_000;

    /// A run from 0 to 3 s whose server says these values of a metric, one each second.
    fn says(metrics: &[(&str, SeriesKind, &[f64])]) -> Run {
        let mut sample = Sample::new();
        let request = sample.send(0);
        sample.done(request, 3 * S, Class::Ok);
        for (name, kind, values) in metrics {
            let (series, kind) = (number_of(name), *kind);
            let records = text_records(series, name).collect::<Vec<_>>();
            records.into_iter().for_each(|record| sample.push(CoreIndex::CONDUCTOR, record));
            for (&value, second) in values.iter().zip(0..) {
                let (time, within_ns) = (RunNanos(second * S), 0);
                let fact = Scraped::Value { series, time, within_ns, kind, value };
                sample.push(CoreIndex::CONDUCTOR, Record::Scraped(fact));
            }
        }
        Run::read(&sample.bytes()).expect("a log")
    }

    fn only(run: &Run) -> ServerReport {
        let found = servers(&Selection::new(run, None)).expect("it was scraped");
        let [report] = &found[..] else { panic!("{found:?}") };
        report.clone()
    }

    #[test]
    fn a_run_s_servers_are_summed_up_and_gaps_stay_gaps() {
        let run = Run::read(&sample::scraped(3).bytes()).expect("a log");
        let report = only(&run);
        assert_eq!((report.asked, report.failed), (9, 1));
        assert_eq!(report.first_failure.as_deref(), Some("no answer within 1.0 s"));
        assert_eq!(report.prefix_hit_rate, Some(0.75));
        assert_eq!(report.generated_tokens, Some(4_000.0));
        let servers = run.servers.as_deref().expect("it was scraped");
        let waiting = Quantity::Waiting.curve(servers, 0);
        let gaps: Vec<_> = waiting.iter().filter(|(_, value)| value.is_none()).collect();
        assert_eq!(gaps, [&(RunNanos(4 * S + S / 2), None)]);
        assert_eq!(waiting.len(), 9);
        assert_eq!(servers_of_unscraped(), None);
    }

    fn servers_of_unscraped() -> Option<Vec<ServerReport>> {
        let run = Run::read(&sample::log(3, 4)).expect("a log");
        servers(&Selection::new(&run, None))
    }

    #[test]
    fn a_value_holds_until_the_next_asking_and_a_failed_one_is_a_gap() {
        let at = |second: i64, value| (RunNanos(second * S), value);
        let curve = [at(1, Some(2.0)), at(3, Some(6.0)), at(5, None), at(7, Some(1.0))];
        let mean = |from: i64, until: i64| {
            mean_of_held(&curve, (RunNanos(from * S / 2), RunNanos(until * S / 2)))
        };
        assert_eq!(mean(0, 2), None, "nobody had been asked");
        assert_eq!([mean(1, 3), mean(3, 5), mean(6, 7)], [Some(2.0), Some(2.0), Some(6.0)]);
        assert_eq!(mean(4, 8), Some(4.0), "a second of each");
        assert_eq!(mean(9, 12), Some(6.0), "what is known of it");
        assert_eq!([mean(10, 12), mean(12, 14)], [None, None], "the asking failed");
        assert_eq!([mean(14, 15), mean(15, 16)], [Some(1.0), None], "of its own instant");
        assert_eq!(mean_of_held(&[], (RunNanos(0), RunNanos(S))), None);
        let run = Run::read(&sample::scraped(3).bytes()).expect("a log");
        let servers = run.servers.as_deref().expect("it was scraped");
        let seconds: Vec<_> = (0..12).map(|k| (RunNanos(k * S), RunNanos((k + 1) * S))).collect();
        let known = Quantity::Waiting.means(servers, 0, &seconds);
        let known: Vec<_> = known.iter().map(Option::is_some).collect();
        assert_eq!(known, [[true; 9].as_slice(), &[false; 3]].concat());
    }

    #[test]
    fn rows_say_what_is_missing() {
        let run = says(&[("u vllm:num_requests_waiting", SeriesKind::Gauge, &[1.0, 3.0])]);
        let lacking = ServerReport { impossible_values: 2, left_out_series: 3, ..only(&run) };
        let [row] = &rows(&[lacking])[..] else { panic!("one server") };
        assert_eq!((&*row[0], &*row[3], &*row[6]), ("u", "no data", "no data"));
        assert_eq!(row[4], "2, 3");
        let of = |head: &str| &*row[HEADS.iter().position(|&own| own == head).expect("a column")];
        assert_eq!((of("impossible values"), of("series left out")), ("2", "3"));
    }

    #[test]
    fn engines_are_added_and_their_caches_averaged() {
        let run = says(&[
            ("u sglang:num_queue_reqs{rank=\"0\"}", SeriesKind::Gauge, &[1.0, 3.0]),
            ("u sglang:num_queue_reqs{rank=\"1\"}", SeriesKind::Gauge, &[2.0, 4.0]),
            ("u sglang:token_usage{rank=\"0\"}", SeriesKind::Gauge, &[0.2, 0.4]),
            ("u sglang:token_usage{rank=\"1\"}", SeriesKind::Gauge, &[0.4, 0.8]),
            ("u sglang:cache_hit_rate", SeriesKind::Gauge, &[0.5, 0.25]),
        ]);
        let report = only(&run);
        assert_eq!(report.waiting, Some(Level { count: 2, mean: 5.0, max: 7.0 }));
        let usage = report.cache_usage.expect("it is said");
        assert!((usage.mean - 0.45).abs() < 1e-12 && (usage.max - 0.6).abs() < 1e-12);
        assert_eq!((report.running, report.prefix_hit_rate), (None, None), "not said, not zero");
        let servers = run.servers.as_deref().expect("it was scraped");
        let rates = Quantity::HitRate.curve(servers, 0);
        assert_eq!(rates, [(RunNanos(0), Some(0.5)), (RunNanos(S), Some(0.25))]);
    }

    #[test]
    fn a_counter_that_began_again_is_no_negative_growth() {
        let counter = SeriesKind::Counter;
        let run = says(&[
            ("u vllm:prefix_cache_queries_total", counter, &[100.0, 200.0, 10.0, 30.0]),
            ("u vllm:prefix_cache_hits_total", counter, &[0.0, 80.0, 0.0, 10.0]),
            ("u vllm:generation_tokens_total", counter, &[0.0, 5.0, 1.0, 2.0]),
        ]);
        let servers = run.servers.as_deref().expect("it was scraped");
        let rates = Quantity::HitRate.curve(servers, 0);
        assert_eq!(rates, [(RunNanos(S), Some(0.8)), (RunNanos(3 * S), Some(0.5))]);
        let report = only(&run);
        assert_eq!(report.prefix_hit_rate, Some(90.0 / 120.0));
        assert_eq!(report.generated_tokens, None, "what came before the restart is not known");
    }
}
