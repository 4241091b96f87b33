//! Cases of group H: figures over runs whose ends were chosen, so that every figure is known.
//!
//! Nothing is timed against a wall clock: what is compared is counts, and times of one log with
//! each other.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use onbeat::replayer::Stop;
use onbeat_shared::log::{Class, Record};
use onbeat_shared::metrics::quantile::{Collector, percentile};
use onbeat_shared::metrics::slo::Goals;
use onbeat_shared::metrics::{Report, ReportOptions, report};
use onbeat_shared::run::Run;
use tests::scripted::{Scripted, answer, request};
use tests::{Scenario, mooncake};

use crate::case::Case;
use crate::found::{Findings, flat};
use crate::open_loop::rest;
use crate::product::{Written, replay};
use crate::server::reply_of;
use crate::wire::{lone, scripts};

const BUSY: &[u8] = b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy";

fn figures(run: &Run) -> Report {
    report(run, &ReportOptions::default())
}

/// What a server does with the request of a number.
#[derive(Clone, Copy, Debug)]
enum Does {
    /// It answers with so many tokens.
    Tokens(u64),
    /// It refuses.
    Refuses,
    /// It says the first half of an answer of two tokens, and no more.
    Holds,
    /// It answers, but later.
    Lags(Duration),
}

/// A server that does with each request, in the order of arrival, what it is told.
fn server(does: impl Fn(usize) -> Does + Send + Sync + 'static) -> Scripted {
    let count = AtomicUsize::new(0);
    Scripted::start(move |_, mut stream| {
        while request(&mut stream).is_some() {
            let body = serde_json::json!({"messages": [], "stream": true});
            match does(count.fetch_add(1, Ordering::SeqCst)) {
                Does::Tokens(tokens) => answer(&mut stream, &reply_of(&body, tokens)),
                Does::Refuses => answer(&mut stream, BUSY),
                Does::Holds => {
                    let whole = reply_of(&body, 2);
                    let events = whole.windows(6).position(|six| six == b"data: ");
                    let first = events.expect("a stream has events");
                    let end = whole[first..].windows(2).position(|two| two == b"\n\n");
                    answer(&mut stream, &whole[..first + end.expect("an event has an end") + 2]);
                    let _ = std::io::Read::read(&mut stream, &mut [0]);
                    return;
                }
                Does::Lags(time) => {
                    rest(time);
                    answer(&mut stream, &reply_of(&body, 2));
                }
            }
        }
    })
}

/// A user who stops the run when so many requests have ended and the first token of the others has
/// been counted.
struct Impatient {
    ended: u64,
    tokens: u64,
    over: bool,
}

impl onbeat::conductor::Watch for Impatient {
    fn say(&mut self, _words: &str) {}

    fn look(
        &mut self,
        _elapsed_ns: i64,
        _planned: u64,
        counters: &onbeat::replayer::counters::Snapshot,
    ) {
        self.over = counters.ended >= self.ended && counters.tokens >= self.tokens;
    }

    fn stop(&mut self) -> Stop {
        if self.over { Stop::Now } else { Stop::No }
    }
}

/// A run that is stopped when only those that the server holds are left.
fn run_until(trace: &str, server: &Scripted, ended: u64, tokens: u64) -> Run {
    let mut scenario = Scenario::new(trace);
    scenario.config.drain_ns = 0;
    let mut user = Impatient { ended, tokens, over: false };
    let (_, run) = scenario.run_watched(server.address, &mut user);
    run.expect("a run that began leaves a log")
}

/// H04 and H05: percentiles interpolate linearly between the two nearest values.
pub(crate) fn percentiles(case: &Case, found: &mut Findings) {
    let near = |value: Option<f64>, wanted: f64| value.is_some_and(|it| (it - wanted).abs() < 1e-9);
    for (key, wanted) in case.expect.as_object().into_iter().flatten() {
        let wanted = wanted.as_f64().expect("a number");
        let (share, values): (f64, Vec<f64>) = match key.as_str() {
            "p99_of_1_to_100" => (0.99, (1..=100).map(f64::from).collect()),
            "p999_of_1_to_1000" => (0.999, (1..=1_000).map(f64::from).collect()),
            percent => {
                let text = std::fs::read_to_string(case.file("values.csv")).expect("it is there");
                let values = text.lines().filter_map(|line| line.trim().parse().ok()).collect();
                let percent: f64 = percent.trim_start_matches('p').parse().expect("a percentile");
                (percent / 100.0, values)
            }
        };
        let value = percentile(&values, share);
        found.holds(format!("{key} = {wanted}"), near(value, wanted), format!("{value:?}"));
    }
    let of = |values: &[f64]| {
        let mut collector = Collector::new();
        collector.extend(values.iter().copied());
        collector.statistic(1.0).expect("there are values")
    };
    let one = of(&[7.0]);
    found.holds(
        "one value everywhere",
        [one.p1, one.p50, one.p9999, one.max] == [7.0; 4],
        "others",
    );
    let equal = of(&[3.0; 50]);
    found.holds("equal values alike", [equal.p1, equal.p99, equal.max] == [3.0; 3], "others");
    let mixed = of(&[5.0, 1.0, 4.0, 2.0, 3.0]);
    found.holds(
        "order not to matter",
        [mixed.min, mixed.p50, mixed.max] == [1.0, 3.0, 5.0],
        "it does",
    );
    let hundred = of(&(1..=100).rev().map(f64::from).collect::<Vec<_>>());
    found.holds("p99 of 100 not the largest", near(Some(hundred.p99), 99.01), hundred.p99);
    found.holds("n to be known", hundred.count == 100, hundred.count);
}

/// H06: failures are misses, what the end of the run cut off is apart, and all counts are shown.
pub(crate) fn goodput(_case: &Case, found: &mut Findings) {
    let server = server(|number| match number {
        0..80 => Does::Tokens(2),
        80..90 => Does::Tokens(1),
        90..96 => Does::Refuses,
        _ => Does::Holds,
    });
    let run = run_until(&mooncake(100, 2, 10, 2), &server, 96, 174);
    let goals = Goals::parse("output_sequence_length:2").expect("a goal");
    let options = ReportOptions { slo: Some(goals), ..ReportOptions::default() };
    let slo = report(&run, &options).slo;
    found.same("requests that meet the goal", &Some(80), &slo.goodput_requests);
    found.same("of", &Some(96), &slo.of_requests);
    found.same("cut off", &Some(4), &slo.cut_off_requests);
    let share = slo.goodput_share.is_some_and(|share| (share - 80.0 / 96.0).abs() < 1e-9);
    found.holds("80/96", share, format!("{:?}", slo.goodput_share));
}

/// H08: refusals neither thin nor fatten the latency, and their share is at the top.
pub(crate) fn failures_apart(_case: &Case, found: &mut Findings) {
    let lag = Duration::from_millis(100);
    let server = server(move |number| if number < 50 { Does::Lags(lag) } else { Does::Refuses });
    let trace = Written::new("trace.jsonl", lone(100, 2, 2));
    let replayed = replay(&trace.path, &format!("http://{}", server.address), &[]);
    let figures = figures(replayed.log());
    let latency = figures.latency.e2e_ms;
    found.same("latencies", &Some(50), &latency.map(|it| it.count));
    found.holds(
        "all of 100 ms or more",
        latency.is_some_and(|it| it.min >= 100.0),
        format!("{latency:?}"),
    );
    found.same("failures", &50, &figures.outcomes.http_error);
    let top = flat(&replayed.told.out.lines().take(8).collect::<Vec<_>>().join("\n"));
    found.says("the first lines", &top, &["50 ok, 50 failed (50.0 % of the 100", "http_5xx 50"]);
}

/// H10: what still runs at the end is listed, has an age, and its tokens are counted apart.
pub(crate) fn unfinished(_case: &Case, found: &mut Findings) {
    let server = server(|number| if number < 7 { Does::Tokens(2) } else { Does::Holds });
    let run = run_until(&mooncake(10, 2, 10, 2), &server, 7, 17);
    let figures = figures(&run);
    found.same("sent", &10, &figures.schedule.sent);
    found.same("done", &7, &figures.outcomes.ok);
    found.same("unfinished", &3, &figures.outcomes.cancelled);
    found.same("by class", &Some(&3), &figures.outcomes.by_class.get("interrupted"));
    for i in (0..10).filter(|&i| run.requests.class(i) == Some(Class::Interrupted)) {
        let age = run.requests.done(i).zip(run.requests.sent(i)).map(|(end, at)| end.0 - at.0);
        found.holds(format!("an age of request {i}"), age > Some(0), format!("{age:?}"));
        found.same(format!("tokens of request {i} that came"), &1, &run.chunks.count(i));
    }
    found.same("tokens of answers", &Some(14), &figures.tokens.completion);
}

/// H11: one straggler changes the rate over the whole run, and not that of the sending window; both
/// are told.
pub(crate) fn straggler(_case: &Case, found: &mut Findings) {
    let lag = Duration::from_secs(3);
    let server = server(move |number| if number == 0 { Does::Lags(lag) } else { Does::Tokens(2) });
    let trace = Written::new("trace.jsonl", lone(100, 5, 2));
    let replayed = replay(&trace.path, &format!("http://{}", server.address), &[]);
    let run = replayed.log();
    let figures = figures(run);
    let whole = figures.throughput.requests_per_s.unwrap_or_default();
    let window = figures.notes.requests_per_s_of_sending_window.unwrap_or_default();
    let (long, short) = (figures.notes.rate_window_s, figures.notes.sending_window_s);
    let near =
        |rate: f64, span: Option<f64>| span.is_some_and(|span| (rate * span - 100.0).abs() < 1e-6);
    found.holds("100 over the whole run", near(whole, long), format!("{whole} {long:?}"));
    found.holds("100 over the sending window", near(window, short), format!("{window} {short:?}"));
    found.holds("the whole run to be longer", whole < window, format!("{whole} {window}"));
    let words = ["first sending to last end", "requests/s of the sending window"];
    found.says("the summary", &flat(&replayed.told.out), &words);
}

/// H12: a count that is not reported is unknown, with what would report it; zero is zero.
pub(crate) fn cached(case: &Case, found: &mut Findings) {
    let said = ["h12a", "h12b", "h12c", "h12d"].map(|stem| (stem, Class::Ok, ""));
    scripts(case, &said, found);
    let hint = "not reported (vLLM: --enable-prompt-tokens-details, SGLang: --enable-cache-report)";
    for (file, words) in [
        ("h12a.srv", hint),
        ("h12b.srv", hint),
        ("h12c.srv", "server reports 0.0 % in 1 answer"),
        ("h12d.srv", "server reports 66.7 % in 1 answer"),
    ] {
        let text = crate::wire::script(&case.file(file));
        let Some(played) = crate::wire::play(&case.cases, &text, &lone(1, 0, 2), &[]) else {
            return found.skip(crate::server::NO_PYTHON);
        };
        found.says(file, &flat(&played.replayed.told.out), &[words]);
    }
}

/// H15: the overall rate is of tokens, not a mean of rates.
pub(crate) fn weighted(_case: &Case, found: &mut Findings) {
    let count = AtomicUsize::new(0);
    let server = Scripted::start(move |_, mut stream| {
        while request(&mut stream).is_some() {
            let first = count.fetch_add(1, Ordering::SeqCst) == 0;
            let (cached, prompt) = if first { (10, 10) } else { (0, 990) };
            let body = format!(
                "{{\"choices\":[{{\"index\":0,\"message\":{{\"content\":\"Hi\"}},\
                 \"finish_reason\":\"stop\"}}],\"usage\":{{\"prompt_tokens\":{prompt},\
                 \"completion_tokens\":1,\"prompt_tokens_details\":{{\"cached_tokens\":{cached}}}}}}}"
            );
            answer(&mut stream, &crate::server::whole("application/json", &body));
        }
    });
    let trace = Written::new("trace.jsonl", lone(2, 50, 1));
    let replayed = replay(&trace.path, &format!("http://{}", server.address), &[]);
    let rate = figures(replayed.log()).cache.reported_hit_rate;
    found.holds(
        "10 of 1,000",
        rate.is_some_and(|rate| (rate - 0.01).abs() < 1e-9),
        format!("{rate:?}"),
    );
    found.says("the summary", &flat(&replayed.told.out), &["server reports 1.0 % in 2 answers"]);
}

/// H19: two anchors hold the wall clock to the run's own, and a step of it is told and changes no
/// time. (The machine's clock is not touched: the later anchor of a real log is moved.)
pub(crate) fn wall_clock(_case: &Case, found: &mut Findings) {
    let server = server(|_| Does::Tokens(2));
    let mut scenario = Scenario::new(&mooncake(20, 60, 10, 2));
    let folder = tempfile::tempdir().expect("a temporary folder");
    scenario.config.output = folder.path().join("run.beat");
    let log = scenario.config.output.clone();
    let run = scenario.run_against(server.address);
    let bytes = std::fs::read(&log).expect("it left a log");
    found.holds("no step told", figures(&run).notes.warnings.is_empty(), "one");
    let (moved, anchors) = with_last_anchor_moved(bytes, 3_600_000_000_000);
    found.holds("two anchors or more", anchors >= 2, anchors);
    let after = figures(&Run::read(&moved).expect("its checksums are right"));
    found.same("latency", &figures(&run).latency, &after.latency);
    found.same("schedule", &figures(&run).schedule, &after.schedule);
    found.says("the warning", &after.notes.warnings.join(" "), &["stepped by"]);
}

/// A log whose last anchor of the wall clock is moved, and how many anchors it has.
fn with_last_anchor_moved(mut bytes: Vec<u8>, by_ns: u64) -> (Vec<u8>, usize) {
    let number = |bytes: &[u8], at: usize| {
        u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize
    };
    let (mut at, mut anchors) = (64, Vec::new());
    while at + 32 <= bytes.len() {
        let payload = number(&bytes, at + 20);
        let is_conductors = bytes[at + 8] == 4 && bytes[at + 10..at + 12] == [0xFF; 2];
        for record in (0..payload / 32).map(|it| at + 32 + it * 32).filter(|_| is_conductors) {
            let raw = bytes[record..record + 32].try_into().expect("a record");
            if matches!(Record::decode(&raw), Some(Record::Anchor { .. })) {
                anchors.push((at, record, payload));
            }
        }
        at += 32 + payload;
    }
    let Some(&(block, record, payload)) = anchors.last() else { return (bytes, 0) };
    let raw = bytes[record..record + 32].try_into().expect("a record");
    if let Some(Record::Anchor { time, unix_ns, monotonic_ns }) = Record::decode(&raw) {
        let moved = Record::Anchor { time, unix_ns: unix_ns + by_ns, monotonic_ns };
        bytes[record..record + 32].copy_from_slice(&moved.encode());
    }
    let mut crc = flate2::Crc::new();
    crc.update(&bytes[block..block + 28]);
    crc.update(&bytes[block + 32..block + 32 + payload]);
    bytes[block + 28..block + 32].copy_from_slice(&crc.sum().to_le_bytes());
    (bytes, anchors.len())
}

/// H22: where nothing was measured there is nothing, and not zero.
pub(crate) fn hole(_case: &Case, found: &mut Findings) {
    let server = server(|_| Does::Tokens(2));
    let row = |id: usize, at: u32| {
        format!(
            "{{\"timestamp\":{at},\"input_length\":5,\"output_length\":2,\"hash_ids\":[{id}]}}\n"
        )
    };
    let trace = Written::new("trace.jsonl", [row(1, 0), row(2, 50), row(3, 2_000)].concat());
    let options = ["--slice-duration", "0.5"];
    let replayed = replay(&trace.path, &format!("http://{}", server.address), &options);
    let options = ReportOptions { slice_ns: Some(500_000_000), ..ReportOptions::default() };
    let slices = report(replayed.log(), &options).slices.unwrap_or_default();
    // What has nothing is left out, by its number, and not there as zeros.
    let numbers: Vec<u64> = slices.iter().map(|slice| slice.index).collect();
    found.holds(
        "slices before and after the hole alone",
        numbers.len() < 4,
        format!("{numbers:?}"),
    );
    let gap = numbers.windows(2).any(|pair| pair[1] > pair[0] + 1);
    found.holds("the hole between their numbers", gap, format!("{numbers:?}"));
    let nothing = slices.iter().filter(|slice| slice.sent == 0 && slice.outcomes.ok > 0).count();
    found.same("slices of nothing", &0, &nothing);
}
