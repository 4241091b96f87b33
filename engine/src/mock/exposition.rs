//! The mock's counts in Prometheus' text format, under the names a vLLM server uses.

use std::fmt::Write as _;

use super::MockCounts;

/// The page of `/metrics`: running and waiting requests, and the share of the cache that is used,
/// as of now; without a cache there is no share.
pub(super) fn page(
    counts: &MockCounts,
    (running, waiting): (usize, usize),
    cache_usage: Option<f64>,
    model: &str,
) -> String {
    // Label values escape backslash, quote and line feed.
    let model = model.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n");
    let mut page = String::new();
    let mut metric = |name: &str, kind: &str, help: &str, value: u64| {
        let _ = write!(
            page,
            "# HELP {name} {help}\n# TYPE {name} {kind}\n{name}{{model_name=\"{model}\"}} {value}\n"
        );
    };
    metric("vllm:num_requests_running", "gauge", "Sequences that run.", running as u64);
    metric("vllm:num_requests_waiting", "gauge", "Requests that wait.", waiting as u64);
    for (name, help, value) in [
        ("vllm:request_success_total", "Requests answered to their end.", counts.served),
        ("vllm:prompt_tokens_total", "Prompt tokens of answered requests.", counts.prompt_tokens),
        ("vllm:generation_tokens_total", "Tokens generated.", counts.completion_tokens),
        (
            "vllm:prefix_cache_queries_total",
            "Prompt tokens looked up in the prefix cache.",
            counts.cache_query_tokens,
        ),
        (
            "vllm:prefix_cache_hits_total",
            "Prompt tokens found in the prefix cache.",
            counts.cache_hit_tokens,
        ),
        ("onbeat_mock_requests_total", "Requests of any kind.", counts.requests),
        ("onbeat_mock_refused_total", "Requests answered with an error.", counts.refused),
        ("onbeat_mock_abandoned_total", "Requests whose client went away.", counts.abandoned),
        ("onbeat_mock_late_steps_total", "Steps the mock was too slow for.", counts.late_steps),
    ] {
        metric(name, "counter", help, value);
    }
    if let Some(share) = cache_usage {
        let name = "vllm:kv_cache_usage_perc";
        let help = "Blocks that running sequences have, of all; 1 is all of them.";
        let _ = write!(
            page,
            "# HELP {name} {help}\n# TYPE {name} gauge\n{name}{{model_name=\"{model}\"}} {share}\n"
        );
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_its_type_and_label() {
        let counts = MockCounts { cache_hit_tokens: 832, ..MockCounts::default() };
        let page = page(&counts, (3, 0), Some(0.25), "a\"b");
        assert!(page.contains("# TYPE vllm:num_requests_running gauge\n"));
        assert!(page.contains("vllm:num_requests_running{model_name=\"a\\\"b\"} 3\n"));
        assert!(page.contains("vllm:prefix_cache_hits_total{model_name=\"a\\\"b\"} 832\n"));
        assert!(page.contains("vllm:kv_cache_usage_perc{model_name=\"a\\\"b\"} 0.25\n"));
    }
}
