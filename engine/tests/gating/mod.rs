//! Gates of the real binary: exit codes of a replay, a report and a comparison.
//!
//! Nothing depends on the machine's speed: a schedule that a busy machine does not hold is accepted
//! here, and conditions are such that they hold, or do not, at any speed.

use std::path::Path;

use super::{MockProcess, onbeat, text, write_trace};

fn replay(folder: &Path, url: &str, log: &str, gates: &[&str]) -> (Option<i32>, String) {
    let trace = write_trace(folder, 12, 5);
    let log = folder.join(log).display().to_string();
    let mut words = vec!["replay", &trace, "--url", url, "--ui", "none", "-o", &log];
    words.extend(["--max-lateness-us", "60000000"]);
    for gate in gates {
        words.extend(["--fail-on", gate]);
    }
    if !gates.is_empty() {
        words.push("--accept-not-held");
    }
    let output = onbeat(&words);
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

#[test]
fn a_replay_a_report_and_a_comparison_end_with_three_where_a_gate_fails() {
    let mock = MockProcess::start();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (code, words) = replay(folder.path(), &mock.url, "a.beat", &["error_rate > 0%"]);
    assert_eq!(code, Some(0), "{words}");
    assert!(words.contains("PASSED") && words.contains("error_rate > 0%"), "{words}");
    let gates = ["error_rate > 0%", "e2e_ms.max >= 0"];
    let (code, words) = replay(folder.path(), &mock.url, "b.beat", &gates);
    assert_eq!(code, Some(3), "{words}");
    assert!(words.contains("FAILED: 1 of"), "{words}");
    let [a, b] = ["a.beat", "b.beat"].map(|name| folder.path().join(name).display().to_string());
    for (line, expected) in [
        (vec!["report", &a, "--fail-on", "by_class.http_429 > 0"], 0),
        (vec!["report", &a, "--fail-on", "e2e_ms.max >= 0", "--format", "json"], 3),
        (vec!["report", &a, "--fail-on", "met.itl_ms.share < 50%"], 3),
        (vec!["compare", &a, &b], 0),
        (vec!["compare", &a, &b, "--fail-on", "error_rate > +1%"], 0),
        (vec!["compare", &a, &b, "--fail-on", "completion_tokens.mean > 1"], 3),
        (vec!["compare", &a, &b, "--fail-on", "prompt_tokens.p50 > +5%"], 0),
        (vec!["report", &a, "--fail-on", "cached_tokens.mean > 1"], 2),
        (vec!["compare", &a, &b, "--fail-on", "ok < +0", "--fail-on", "e2e_ms.p50 > -100%"], 3),
    ] {
        let accepted = line.contains(&"--fail-on").then_some("--accept-not-held");
        let words: Vec<&str> = line.into_iter().chain(accepted).collect();
        let output = onbeat(&words);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(expected), "{words:?}: {said}");
    }
    let compared = text(&onbeat(&["compare", &a, &b]).stdout);
    assert!(compared.contains("paired by request: same trace and same plan"), "{compared}");
}

#[test]
fn a_gate_that_means_nothing_is_refused_before_anything_is_sent() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // Nobody listens there.
    let url = "http://127.0.0.1:9";
    for (gate, right) in [
        ("ttft.p99 > 1", "near it are ttft_ms.p99"),
        ("ttft_ms.p99 > 5%", "+5%"),
        ("ttft_ms.p99 > +5%", "onbeat compare BASE.beat NEW.beat"),
        ("ttft_ms.p99", "it has no > or <"),
    ] {
        let (code, words) = replay(folder.path(), url, "none.beat", &[gate]);
        assert_eq!(code, Some(2), "{gate}: {words}");
        assert!(words.contains(right), "{gate}: {words}");
    }
    assert!(!folder.path().join("none.beat").exists());
    let alone = onbeat(&["report", "x.beat", "--accept-not-held"]);
    assert_eq!(alone.status.code(), Some(2), "without a gate there is nothing to accept");
}
