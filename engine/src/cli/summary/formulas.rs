//! How every number of the summary is computed, one line each, for `--verbose`.

use onbeat_shared::metrics::Metric;

use super::page::Page;

/// Shows them; those about users where a run has any.
pub(super) fn formulas(page: &mut Page, has_users: bool) {
    page.blank();
    page.line("Formulas (sent: right before the write of the first byte; times are monotonic)");
    let mut formula = |name: &str, words: &str| page.line(&format!("  {name:<20} {words}"));
    formula("lateness", "sent - max(due, ready)");
    formula(
        "outside stalls",
        "the same without requests of which host stalls explain half or more",
    );
    formula("", "(a stall: the core's clock jumped; one that ended up to 50 us before counts)");
    formula("lone requests", "the same of requests that are alone at their instant on their core");
    formula("in bursts", "the same of the others: the k-th of a burst waits for k - 1 sendings");
    for metric in Metric::ALL {
        formula(metric.label(), metric.formula());
    }
    formula("ICL", "gaps between successive content events, pooled (what vllm bench calls ITL)");
    formula("connect", "connection open - connect started");
    formula("tokens/s per user", "1 / ITL");
    formula(
        "sending window",
        "from the first to the last max(due, ready) of requests that could leave",
    );
    formula("offered", "requests that could leave / length of the sending window");
    formula("session wait", "ready - due: the session's earlier answer ended after due");
    formula(
        "achieved",
        "those that left / (window's start to its end or, if later, the last sending",
    );
    formula("", "but one, less the lateness limit and the host stalls that it waited for)");
    formula("ideal hit rate", "longest prefix of blocks already sent / input tokens");
    formula("reported hit rate", "cached tokens / prompt tokens, answers that report both");
    formula("goodput", "successful requests that meet every goal / duration");
    formula(
        "arrival error",
        "mean distance of gaps of the same rank, recorded / achieved, / mean gap",
    );
    formula("variation", "standard deviation of the gaps / their mean; 1 if arrivals are random");
    formula("length error", "sum of |tokens - recorded| / sum of recorded");
    formula("", "(not of prompts that repeat earlier turns, which no recorded length counts)");
    formula("cache error", "sum of |cached - ideal| / sum of input tokens");
    if has_users {
        formula("queue time", "ready - due: held back by limits, budgets or TTFT");
        formula("effective TTFT", "queue time + TTFT");
        formula("agent wait", "due - when the think time alone was over");
        formula("decode met", "decode <= 0.1 s, or completion tokens / decode >= goal");
    }
}
