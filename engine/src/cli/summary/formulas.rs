//! How every number of the summary is computed, one line each, for `--verbose`.

use onbeat_shared::metrics::Metric;

use super::page::Page;

/// Shows them; those about users where a run has any.
pub(super) fn formulas(page: &mut Page, has_users: bool) {
    page.blank();
    page.line("Formulas (sent: right before the write of the first byte; times are monotonic)");
    let mut formula = |name: &str, words: &str| page.line(&format!("  {name:<20} {words}"));
    formula("lateness", "sent - max(due, ready)");
    for metric in Metric::ALL {
        formula(metric.label(), metric.formula());
    }
    formula("ICL", "gaps between successive content events, pooled");
    formula("connect", "connection open - connect started");
    formula("tokens/s per user", "1 / ITL");
    formula("offered", "requests that could leave / (last - first max(due, ready))");
    formula("session wait", "ready - due: the session's earlier answer ended after due");
    formula("achieved", "those that left / (last sending but one - limit, stalls, first instant)");
    formula("ideal hit rate", "longest prefix of blocks already sent / input tokens");
    formula("reported hit rate", "cached tokens / prompt tokens, answers that report both");
    formula("goodput", "successful requests that meet every goal / duration");
    formula(
        "arrival error",
        "mean distance of gaps of the same rank, recorded / achieved, / mean gap",
    );
    formula("length error", "sum of |tokens - recorded| / sum of recorded");
    formula("cache error", "sum of |cached - ideal| / sum of input tokens");
    if has_users {
        formula("queue time", "ready - due: held back by limits, budgets or TTFT");
        formula("effective TTFT", "queue time + TTFT");
        formula("agent wait", "due - when the think time alone was over");
        formula("decode met", "decode <= 0.1 s, or completion tokens / decode >= goal");
    }
}
