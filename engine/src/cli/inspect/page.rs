//! What `onbeat inspect` prints for a person: a line for each side of a trace.

use std::fmt::Write as _;

use onbeat_shared::trace::agentic::stats::{Conversations, Seconds};
use onbeat_shared::trace::stats::{Arrivals, Cache, Lengths, Stats};
use onbeat_shared::trace::{Source, Trace};

use crate::cli::inspect::numbers::{agreeing, counted, decimal, grouped, known};
use crate::trace::material::Material;

/// What a file is that goes with a trace.
pub(super) fn of_material(material: &Material) -> String {
    let mut text = format!("{}: {}\n", material.name, material.what);
    let instead = ("instead".to_owned(), material.instead.clone());
    for (name, words) in material.facts.iter().chain([&instead]) {
        writeln!(text, "  {name:<13} {words}").expect("a String takes everything");
    }
    text
}

/// What a trace is like; `wanted` are the cache sizes that were asked for.
pub(super) fn of_trace(trace: &Trace, stats: &Stats, wanted: &[u64]) -> String {
    let Source { name, sha256, format, rows, bytes } = &trace.source;
    let mut text = format!(
        "{name}: {format}, {}, {}, sha256 {sha256}\n",
        counted(*rows, "row"),
        counted(*bytes, "byte")
    );
    let mut line = |name: &str, words: String| {
        writeln!(text, "  {name:<10} {words}").expect("a String takes everything");
    };
    match &stats.arrivals {
        Some(found) => {
            line("arrivals", arrivals(found));
            line("bursts", bursts(found));
        }
        None => line("arrivals", "unknown: the rows have no times".to_owned()),
    }
    for (name, found) in [("input", &stats.input_tokens), ("output", &stats.output_tokens)] {
        line(name, found.as_ref().map_or_else(|| "unknown".to_owned(), |own| lengths(own, *rows)));
    }
    let sessions = stats.sessions;
    line(
        "sessions",
        format!(
            "{}, {} with follow-ups, longest {}",
            grouped(sessions.count),
            grouped(sessions.with_follow_ups),
            counted(sessions.turns_max, "turn")
        ),
    );
    if let Some(found) = &stats.conversations {
        for (name, words) in conversations(found) {
            line(name, words);
        }
    }
    match &stats.cache {
        Some(cache) => {
            line("blocks", blocks(cache));
            line("cache", hits(cache));
            line("", hits_of_rows(cache));
            line("", sizes(cache, wanted));
        }
        None => line("cache", "unknown: no row has block ids".to_owned()),
    }
    for (place, oddity) in stats.oddities.iter().enumerate() {
        line(if place == 0 { "odd" } else { "" }, oddity.clone());
    }
    text
}

fn arrivals(arrivals: &Arrivals) -> String {
    // A slow trace's rate has two digits that count, too.
    let places = match arrivals.mean_per_s {
        Some(rate) if rate < 0.001 => 6,
        Some(rate) if rate < 0.1 => 3,
        _ => 2,
    };
    let rate = known(arrivals.mean_per_s, places);
    let pause = arrivals.gap_max_s.map(|gap| format!(", longest pause {} s", decimal(gap, 1)));
    format!(
        "over {} s, {rate} a second on average, at most {} in one second{}",
        decimal(arrivals.span_s, 1),
        grouped(arrivals.peak_in_1_s),
        pause.unwrap_or_default()
    )
}

fn bursts(arrivals: &Arrivals) -> String {
    format!(
        "index of dispersion {} (1 s) and {} (60 s), CV of gaps {}, at most {} at one instant",
        known(arrivals.dispersion_1_s, 1),
        known(arrivals.dispersion_60_s, 1),
        known(arrivals.gap_cv, 1),
        grouped(arrivals.most_at_one_instant)
    )
}

fn lengths(lengths: &Lengths, rows: u64) -> String {
    let known = match lengths.count {
        count if count < rows => format!(" (known of {})", counted(count, "row")),
        _ => String::new(),
    };
    format!(
        "tokens{known} p10 {}, p50 {}, p90 {}, p99 {}, max {}, mean {}, {} in all",
        decimal(lengths.p10, 0),
        decimal(lengths.p50, 0),
        decimal(lengths.p90, 0),
        decimal(lengths.p99, 0),
        grouped(lengths.max.into()),
        decimal(lengths.mean, 0),
        grouped(lengths.total)
    )
}

fn blocks(cache: &Cache) -> String {
    format!(
        "{} each, {} different, ids a row p50 {}, p99 {}, max {}",
        counted(cache.block_tokens.into(), "token"),
        grouped(cache.unique_blocks),
        decimal(cache.ids_per_row.p50, 0),
        decimal(cache.ids_per_row.p99, 0),
        grouped(cache.ids_per_row.max.into())
    )
}

fn hits(cache: &Cache) -> String {
    let percent = |share: Option<f64>| known(share.map(|share| share * 100.0), 1);
    format!(
        "ideal hit rate {} % of tokens (whole prefixes, infinite cache); {} % as a set of blocks",
        percent(cache.ideal_hit_rate),
        percent(cache.ideal_set_overlap_rate)
    )
}

fn hits_of_rows(cache: &Cache) -> String {
    let percent = |share: Option<f64>| known(share.map(|share| share * 100.0), 1);
    format!(
        "hit rate by row p10 {} %, p50 {} %, p90 {} %; {} % of rows hit nothing",
        percent(cache.row_hit_rate_p10),
        percent(cache.row_hit_rate_p50),
        percent(cache.row_hit_rate_p90),
        percent(cache.rows_without_hit)
    )
}

/// The hit rates of caches of the sizes that were asked for, or else of powers of ten.
fn sizes(cache: &Cache, wanted: &[u64]) -> String {
    let is_shown = |tokens: u64| match wanted {
        [] => tokens.ilog10() > 0 && 10_u64.pow(tokens.ilog10()) == tokens,
        wanted => wanted.contains(&tokens),
    };
    let last = cache.by_capacity.last().map(|sized| sized.cache_tokens);
    let shown = cache.by_capacity.iter().filter(|sized| {
        is_shown(sized.cache_tokens) || (wanted.is_empty() && Some(sized.cache_tokens) == last)
    });
    let words: Vec<String> = shown
        .map(|sized| {
            let rate = known(sized.ideal_hit_rate.map(|rate| rate * 100.0), 1);
            format!("{rate} % with {}", grouped(sized.cache_tokens))
        })
        .collect();
    format!("by tokens that a cache holds (oldest forgotten): {}", words.join(", "))
}

/// How many steps do what the verb says, in its two forms, to what.
fn steps(count: u64, [one, more]: [&str; 2], what: &str) -> String {
    format!("{} {} {what}", grouped(count), agreeing(count, one, more))
}

/// The lines about conversations.
fn conversations(found: &Conversations) -> Vec<(&'static str, String)> {
    let seconds = |own: &Option<Seconds>| {
        own.as_ref().map_or_else(
            || "unknown".to_owned(),
            |own| {
                format!(
                    "p10 {}, p50 {}, p90 {}, p99 {}, max {}",
                    decimal(own.p10, 1),
                    decimal(own.p50, 1),
                    decimal(own.p90, 1),
                    decimal(own.p99, 1),
                    decimal(own.max, 1)
                )
            },
        )
    };
    let mean = found.mean_hit_rate.map(|rate| rate * 100.0);
    vec![
        (
            "agents",
            format!(
                "{}, {} ({} empty) with {}, nested {} deep; mean of conversations' own ideal hit \
                 rates {} %",
                counted(found.count, "conversation"),
                counted(found.sub_agents, "sub-agent"),
                grouped(found.empty_sub_agents),
                counted(found.sub_agent_requests, "request"),
                found.depth,
                known(mean, 1)
            ),
        ),
        (
            "kinds",
            format!(
                "{} streamed, {} in one piece, {} of unknown type; {} without api_time, {} without \
                 think_time, {} without output",
                grouped(found.streamed),
                grouped(found.whole),
                grouped(found.unknown_type),
                grouped(found.without_api_time),
                grouped(found.without_think_time),
                grouped(found.without_output)
            ),
        ),
        (
            "steps",
            format!(
                "{}, {}, {}; {}",
                steps(found.extending_steps, ["extends", "extend"], "the request before"),
                steps(found.rewriting_steps, ["rewrites", "rewrite"], "it"),
                steps(found.shrinking_steps, ["shortens", "shorten"], "it"),
                steps(found.overlapping, ["starts", "start"], "before its end")
            ),
        ),
        ("gaps", format!("seconds from start to start {}", seconds(&found.gap_s))),
        ("api time", format!("seconds {}", seconds(&found.api_time_s))),
        (
            "think time",
            format!(
                "seconds {}; {} longer than the gap to fill",
                seconds(&found.think_time_s),
                grouped(found.think_longer_than_gap)
            ),
        ),
        ("ttft", format!("seconds {}", seconds(&found.first_token_s))),
    ]
}
