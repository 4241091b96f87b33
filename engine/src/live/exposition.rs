//! Prometheus' text format and OpenMetrics', as far as servers of models speak them.
//!
//! A page is read line by line; a line that is none is passed over, as Prometheus' own parsers
//! would refuse the whole page for it and we want what can be had. Labels are kept as they are
//! written, once it is clear where they end. Timestamps and exemplars are ignored. A value that
//! cannot be is none, and is counted: nobody's queue is shorter than empty.

use std::collections::BTreeMap;

use onbeat_shared::log::SeriesKind;

/// Names that are recorded begin with one of these.
const PREFIXES: [&str; 2] = ["vllm:", "sglang:"];
/// Names that are not, by their ends: facts about the configuration and times of creation.
const LEFT_OUT: [&str; 2] = ["_info", "_created"];
/// Parts of names that come first where there are more series than are kept.
const FIRST: [&str; 9] = [
    "num_requests_",
    "num_running_reqs",
    "num_queue_reqs",
    "cache_usage_perc",
    "token_usage",
    "prefix_cache_",
    "cache_hit_rate",
    "generation_tokens",
    "prompt_tokens",
];

/// Parts of names of levels that are shares of one. (Older versions of vLLM say -1 for a hit rate
/// where there is no cache.)
const SHARES: [&str; 3] = ["cache_usage_perc", "token_usage", "cache_hit_rate"];
/// By how much a share may be above one: what comes of adding up doubles.
const SHARE_ROUNDING: f64 = 1e-9;

/// One line of a page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample<'a> {
    /// The metric's name.
    pub(super) name: &'a str,
    /// Its labels in braces, or nothing.
    pub(super) labels: &'a str,
    /// Its value, which may be none.
    pub(super) value: f64,
}

/// A sample that is to be recorded.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wanted {
    /// Name and labels.
    pub(super) series: String,
    /// What the page says that it is.
    pub(super) kind: SeriesKind,
    /// Its value; finite.
    pub(super) value: f64,
}

/// What of a page is for the log.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Found {
    /// What is recorded, the samples first that are drawn.
    pub(super) wanted: Vec<Wanted>,
    /// Samples that would be, if their values could be.
    pub(super) impossible: usize,
}

/// The samples of a page.
pub(super) fn samples(page: &str) -> impl Iterator<Item = Sample<'_>> {
    page.lines().filter_map(sample)
}

/// What of a page is recorded: levels and counters under known names, those that are drawn first.
pub(super) fn found(page: &str) -> Found {
    let kinds = kinds(page);
    let mut found = Found::default();
    for Sample { name, labels, value } in samples(page) {
        let known = PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        if !known || LEFT_OUT.iter().any(|end| name.ends_with(end)) {
            continue;
        }
        let family = || name.strip_suffix("_total").and_then(|family| kinds.get(family));
        let Some(&kind) = kinds.get(name).or_else(family) else { continue };
        if can_be(name, kind, value) {
            found.wanted.push(Wanted { series: format!("{name}{labels}"), kind, value });
        } else {
            found.impossible += 1;
        }
    }
    found.wanted.sort_by_key(|it| !is_first(&it.series));
    found
}

fn is_first(name: &str) -> bool {
    FIRST.iter().any(|part| name.contains(part))
}

/// Whether a value can be one of this name. What the name of a level says nothing about may be
/// anything finite: SGLang has some that are -1 where they mean nothing.
fn can_be(name: &str, kind: SeriesKind, value: f64) -> bool {
    if SHARES.iter().any(|part| name.contains(part)) {
        return (0.0..=1.0 + SHARE_ROUNDING).contains(&value);
    }
    let is_at_least_zero = kind == SeriesKind::Counter || is_first(name);
    value.is_finite() && (value >= 0.0 || !is_at_least_zero)
}

/// Whether it is a page of metrics at all.
pub(super) fn is_page(page: &str) -> bool {
    let mut lines = page.lines().filter(|line| !line.trim().is_empty());
    lines.next().is_none_or(|line| line.starts_with('#') || sample(line).is_some())
}

/// The families that are levels or counters.
fn kinds(page: &str) -> BTreeMap<&str, SeriesKind> {
    page.lines().filter_map(family).collect()
}

fn family(line: &str) -> Option<(&str, SeriesKind)> {
    let mut words = line.strip_prefix("# TYPE ")?.split_ascii_whitespace();
    let name = words.next()?;
    match words.next()? {
        "gauge" => Some((name, SeriesKind::Gauge)),
        "counter" => Some((name, SeriesKind::Counter)),
        _ => None,
    }
}

fn sample(line: &str) -> Option<Sample<'_>> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let end = line.find(|letter: char| !is_of_name(letter)).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    let is_name = name.starts_with(|letter: char| !letter.is_ascii_digit());
    let rest = Some(rest.trim_start()).filter(|_| is_name)?;
    let length = if rest.starts_with('{') { labels_length(rest)? } else { 0 };
    let (labels, rest) = rest.split_at(length);
    if labels.chars().any(char::is_control) {
        return None;
    }
    let value = number(rest.split_whitespace().next()?)?;
    let labels = if labels == "{}" { "" } else { labels };
    Some(Sample { name, labels, value })
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_' || letter == ':'
}

/// How long the labels are that a text begins with, braces included.
fn labels_length(text: &str) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'}' if !quoted => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// A value as Go writes it.
fn number(text: &str) -> Option<f64> {
    match text {
        "+Inf" | "Inf" => Some(f64::INFINITY),
        "-Inf" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        // Rust would take "inf" and "infinity" too, in any case.
        _ if text.bytes().any(|byte| matches!(byte, b'i' | b'I' | b'n' | b'N')) => None,
        _ => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, proptest};

    use super::*;

    /// As vLLM 0.32 writes it, cut short.
    const VLLM: &str = r#"# HELP python_gc_objects_collected_total Objects collected during gc
# TYPE python_gc_objects_collected_total counter
python_gc_objects_collected_total{generation="0"} 15243.0
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="tiny"} 2.0
# HELP vllm:kv_cache_usage_perc KV-cache usage. 1 means 100 percent usage.
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="tiny"} 0.0625
# HELP vllm:prefix_cache_hits_total Prefix cache hits, in terms of number of cached tokens.
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{engine="0",model_name="tiny"} 1664.0
# HELP vllm:prefix_cache_hits_created Prefix cache hits, in terms of number of cached tokens.
# TYPE vllm:prefix_cache_hits_created gauge
vllm:prefix_cache_hits_created{engine="0",model_name="tiny"} 1.7642524911e+09
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="32"} 1.0
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{le="0.001",model_name="tiny"} 0.0
vllm:time_to_first_token_seconds_sum{model_name="tiny"} 0.4
"#;

    fn series(page: &str) -> Vec<(String, f64)> {
        found(page).wanted.into_iter().map(|it| (it.series, it.value)).collect()
    }

    #[test]
    fn levels_and_counters_of_known_servers_are_wanted() {
        let labels = "{engine=\"0\",model_name=\"tiny\"}";
        let named = |name: &str, value| (format!("vllm:{name}{labels}"), value);
        assert_eq!(
            series(VLLM),
            [
                named("num_requests_running", 2.0),
                named("kv_cache_usage_perc", 0.0625),
                named("prefix_cache_hits_total", 1_664.0),
            ]
        );
        assert_eq!(found(VLLM).wanted[2].kind, SeriesKind::Counter);
        assert_eq!(found(VLLM).impossible, 0);
        let open = "# TYPE sglang:generation_tokens counter\n\
                    sglang:generation_tokens_total 7 1700000000 # {id=\"1\"} 2\n# EOF\n";
        assert_eq!(series(open), [("sglang:generation_tokens_total".to_owned(), 7.0)]);
    }

    #[test]
    fn what_is_drawn_comes_first() {
        let page = "# TYPE vllm:aaa gauge\nvllm:aaa 1\n\
                    # TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting 2\n";
        assert_eq!(series(page)[0].1, 2.0);
    }

    #[test]
    fn braces_and_quotes_inside_labels_end_nothing() {
        let line = r#"vllm:x{a="}\"{",b="c d"} 1.5"#;
        let found = sample(line).expect("a sample");
        assert_eq!((found.labels, found.value), (r#"{a="}\"{",b="c d"}"#, 1.5));
        assert_eq!(sample("x{} 3").map(|it| it.labels), Some(""));
        for wrong in ["x{a=\"1} 3", "9x 3", "x", "x inf", "x 1,5", "{} 1", "x{a=\"\u{7}\"} 1", ""] {
            assert_eq!(sample(wrong), None, "{wrong}");
        }
        assert_eq!(sample("x +Inf").map(|it| it.value), Some(f64::INFINITY));
    }

    #[test]
    fn what_is_no_number_is_no_value_and_a_page_of_html_no_page() {
        let page = "# TYPE vllm:x gauge\nvllm:x NaN\nvllm:x{a=\"1\"} +Inf\nvllm:x{a=\"2\"} 4\n";
        assert_eq!(series(page), [("vllm:x{a=\"2\"}".to_owned(), 4.0)]);
        assert_eq!(found(page).impossible, 2);
        assert!(is_page(VLLM) && is_page("") && is_page("x 1\n"));
        assert!(!is_page("<!DOCTYPE html>\n<p>x 1"));
        assert!(!is_page("{\"detail\":\"Not Found\"}"));
    }

    #[test]
    fn values_that_cannot_be_are_missing_and_counted() {
        let page = "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running -3\n\
                    # TYPE vllm:kv_cache_usage_perc gauge\nvllm:kv_cache_usage_perc 55\n\
                    # TYPE vllm:gpu_prefix_cache_hit_rate gauge\nvllm:gpu_prefix_cache_hit_rate -1\n\
                    # TYPE sglang:token_usage gauge\nsglang:token_usage NaN\n\
                    # TYPE vllm:prompt_tokens counter\nvllm:prompt_tokens_total -1\n\
                    # TYPE vllm:gpu_cache_usage_perc gauge\nvllm:gpu_cache_usage_perc 1.0\n\
                    # TYPE sglang:utilization gauge\nsglang:utilization -1\n\
                    # TYPE other:queue gauge\nother:queue NaN\n";
        let left = [("vllm:gpu_cache_usage_perc", 1.0), ("sglang:utilization", -1.0)];
        assert_eq!(series(page), left.map(|(name, value)| (name.to_owned(), value)));
        assert_eq!(found(page).impossible, 5);
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 256,
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn any_text_reads_without_a_panic(text in "[ -~é\n\"\\\\{}#:_,=]{0,200}") {
            for found in samples(&text) {
                assert!(text.contains(found.name) && text.contains(found.labels));
            }
            let _ = (found(&text), is_page(&text));
        }
    }
}
