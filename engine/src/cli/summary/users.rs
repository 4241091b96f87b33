//! What a user-driven run adds to the summary: its users, the goals that the tool prints at the end
//! of a test, and one entry for each assessment period.

use onbeat_shared::metrics::Statistic;
use onbeat_shared::metrics::periods::{Period, RampFacts};
use onbeat_shared::metrics::report::Report;
use onbeat_shared::metrics::users::UsersReport;

use super::page::{Page, group, number, percent, plural};

/// Periods that are shown unless all are asked for.
const PERIODS: usize = 20;
/// What is shown where no request completed its prefill.
const NO_DATA: &str = "No data";

/// Rows of the table of durations.
pub(super) fn rows(page: &mut Page, report: &Report) {
    let Some(users) = &report.users else { return };
    super::row(page, "queue time, ms", users.queue_ms.as_ref());
    super::row(page, "effective TTFT, ms", users.effective_ttft_ms.as_ref());
    if users.agents > 0 {
        super::row(page, "agent wait, ms", users.agent_wait_ms.as_ref());
    }
}

/// Users and their goals.
pub(super) fn users(page: &mut Page, report: &Report) {
    let Some(users) = &report.users else { return };
    page.entry("Users", &lives(users));
    let limited: Vec<String> =
        users.limited.iter().map(|(by, times)| format!("{by} {}", group(*times))).collect();
    let times: u64 = users.limited.values().sum();
    if times > 0 {
        let times = plural(times, "time");
        page.entry("", &format!("rate-limited {times}: {}", limited.join(", ")));
    }
    if let Some(words) = capacity(report) {
        page.entry("", &words);
    }
    if let Some(tokens) = users.peak_working_set_tokens {
        let warm = match users.warm_prefix_tokens {
            None | Some(0) => "no warm prefix".to_owned(),
            Some(tokens) => format!("warm prefix {} tokens", group(tokens)),
        };
        page.entry("", &format!("peak working set {} tokens, {warm}", group(tokens)));
    }
    let counts = [
        (users.over_budget_requests, "dearer than a whole token budget, sent when it was full"),
        (users.replaced_replies, "with recorded text in the place of a reply"),
    ];
    for (count, words) in counts.into_iter().filter(|(count, _)| *count > 0) {
        page.entry("", &format!("{} {words}", plural(count, "request")));
    }
    if let Some(clamped) = users.clamped_think_times.filter(|&clamped| clamped > 0) {
        let times = plural(clamped, "think time");
        page.entry("", &format!("{times} of the trace cut to the recorded gap"));
    }
    goals(page, users);
}

/// With how many users TTFT was below its limit, and with how many it was not: what a ramp looks
/// for. `None` where no period says.
fn capacity(report: &Report) -> Option<String> {
    let periods = || report.periods.iter().flatten();
    let told = || periods().filter_map(|period| Some((period.number, period.ramp.as_ref()?)));
    let good = told().filter(|(_, ramp)| ramp.headroom_share.is_some_and(|share| share > 0.0));
    let over = told().find(|(_, ramp)| ramp.headroom_share.is_some_and(|share| share <= 0.0));
    // Of several periods with as many, the first.
    let most = good.reduce(|best, next| if next.1.users > best.1.users { next } else { best });
    let place = |(number, ramp): (u32, &RampFacts)| {
        format!("{} (period {number})", group(u64::from(ramp.users)))
    };
    let most = most.map(|most| {
        format!("most users, as the ramp counts, with TTFT below --max-ttft: {}", place(most))
    });
    let over = over.map(|over| format!("first above it with {}", place(over)));
    match (most, over) {
        (Some(most), over) => {
            Some(format!("{most}; {}", over.unwrap_or_else(|| "never above".to_owned())))
        }
        (None, Some(over)) => Some(format!("TTFT never below --max-ttft; {over}")),
        (None, None) => None,
    }
}

fn lives(users: &UsersReport) -> String {
    let mut words = format!("{} started", plural(users.users, "user"));
    if users.agents > 0 {
        words += &format!(", with {}", plural(users.agents, "sub-agent"));
    }
    words += &format!("; at most {} at once", group(users.peak_users));
    let counts = [
        (users.completed, "completed"),
        (users.truncated, "truncated"),
        (users.stopped, "stopped by the end of the run"),
        (users.advanced, "advanced"),
        (users.recycled, "with a conversation used before"),
    ];
    let some = counts.into_iter().filter(|(count, _)| *count > 0);
    let counted: Vec<String> = some.map(|(n, what)| format!("{} {what}", group(n))).collect();
    if counted.is_empty() { words } else { format!("{words}; {}", counted.join(", ")) }
}

/// The end-of-test summary's block of goals.
fn goals(page: &mut Page, users: &UsersReport) {
    let slo = &users.slo;
    let ttft = slo.ttft_limit_ms.map(|limit| format!("TTFT <= {} s", plain(limit / 1e3)));
    let decode =
        slo.decode_limit_tokens_per_s.map(|limit| format!("decode >= {} tokens/s", plain(limit)));
    let limits: Vec<String> = ttft.into_iter().chain(decode).collect();
    if limits.is_empty() {
        return;
    }
    let counts = slo.counts;
    let of = counts.of_requests;
    let limits = limits.join(", ");
    if of == 0 {
        page.entry("SLO", &format!("{limits}: no data, no answer came in pieces"));
    } else {
        page.entry("SLO", &limits);
        let lines = [
            ("TTFT met:", counts.ttft, ""),
            ("Decode met:", counts.decode, ""),
            ("Goodput (both):", counts.both, ""),
            ("Effective TTFT met:", counts.effective_ttft, "  (includes queue time)"),
            ("Effective goodput:", counts.effective_both, ""),
        ];
        for (name, met, note) in lines {
            let (share, met, of) = (percent(met, of), group(met), group(of));
            page.line(&format!("             {name:<20} {met}/{of} ({share}){note}"));
        }
    }
    if counts.without_ttft > 0 {
        let answers = plural(counts.without_ttft, "answer");
        let words = format!("{answers} in one piece: no TTFT, not counted (--stream-all streams)");
        page.entry("", &words);
    }
}

/// The assessment periods, the last of them unless all are asked for.
pub(super) fn periods(page: &mut Page, report: &Report, all: bool) {
    let Some(periods) = &report.periods else { return };
    page.blank();
    if periods.is_empty() {
        page.paragraph("No assessment periods: nothing happened, or their length is not known.");
        return;
    }
    let hidden = if all { 0 } else { periods.len().saturating_sub(PERIODS) };
    if hidden > 0 {
        let earlier = plural(hidden as u64, "earlier period");
        page.paragraph(&format!("{earlier} not shown (--verbose shows all)."));
    }
    for period in &periods[hidden..] {
        entry(page, period);
    }
    let counts =
        |period: &Period| period.ramp.as_ref().is_some_and(|ramp| ramp.users != period.users.total);
    if periods[hidden..].iter().any(counts) {
        page.paragraph(
            "Users of a period are those that had begun and not left at its end; the ramp counts \
             those that it has let in and not heard of as gone.",
        );
    }
    page.paragraph(
        "Prompt tokens, TTFT and cache hits count in the period of the first token, output tokens \
         in that of their arrival, requests in those of their sending and end.",
    );
}

fn entry(page: &mut Page, period: &Period) {
    let requests = &period.requests;
    let (from, to) = (seconds(period.start_ns), seconds(period.end_ns));
    let part = if period.complete { "" } else { ", the last part" };
    let label = format!("Period {}", period.number);
    page.entry(&label, &format!("{from:.1} to {to:.1} s{part}. {}", period.users));
    page.entry(
        "",
        &format!(
            "Requests: {} sent, {} ok ({} new, {} prior), {} not ok, {} in flight",
            group(requests.sent),
            group(requests.ok),
            group(requests.ok_sent_in_period),
            group(requests.ok_sent_before),
            group(requests.ended.saturating_sub(requests.ok)),
            group(requests.in_flight)
        ),
    );
    let rate = |rate: Option<f64>| rate.map_or_else(|| NO_DATA.to_owned(), number);
    let share = |share: Option<f64>| {
        share.map_or_else(|| NO_DATA.to_owned(), |share| format!("{:.1} %", share * 100.0))
    };
    let tokens = &period.tokens;
    page.entry(
        "",
        &format!(
            "Tokens/s: input {}, output {}; cache hit rate: ideal {}, server {}",
            rate(tokens.input_per_s),
            rate(tokens.output_per_s),
            share(period.cache.ideal_hit_rate),
            share(period.cache.reported_hit_rate)
        ),
    );
    let three = |s: &Statistic| {
        format!("p50 {}, p95 {}, max {} ms", number(s.p50), number(s.p95), number(s.max))
    };
    let ttft = period.ttft_ms.as_ref().map_or_else(|| NO_DATA.to_owned(), three);
    let mut words = format!("TTFT: {ttft}");
    if let Some(ramp) = &period.ramp {
        let headroom = ramp.headroom_share;
        let headroom =
            headroom.map_or_else(String::new, |h| format!(", headroom {:.0} %", h * 1e2));
        let (then, why) = (ramp.reason.link(ramp.added.into()), ramp.reason.words());
        let users = match ramp.users == period.users.total {
            true => String::new(),
            false => format!(", which counts {}", plural(ramp.users.into(), "user")),
        };
        words += &format!("; ramp{users}: +{} ({then}{why}{headroom})", ramp.added);
    }
    page.entry("", &words);
}

/// A limit as it was typed.
fn plain(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0');
    if text.ends_with('.') { format!("{text}0") } else { text.to_owned() }
}

#[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
const fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use onbeat_shared::log::sample_users;
    use onbeat_shared::metrics::{ReportOptions, report};
    use onbeat_shared::run::Run;

    use super::super::page::WIDTH;
    use super::super::write;

    fn text(log: &[u8], verbose: bool) -> String {
        let run = Run::read(log).expect("a log");
        let mut out = Vec::new();
        write(&mut out, &report(&run, &ReportOptions::default()), verbose)
            .expect("memory takes everything");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn a_user_driven_run() {
        let text = text(&sample_users::log(3, 6), false);
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        for part in [
            "HELD: 27 of 27 requests sent; p99 lateness 39.7 us",
            "Sending      users decide when: no rate was offered; at most 3 in flight",
            "queue time, ms               27      111.1      0.000",
            "effective TTFT, ms           20      393.9",
            "agent wait, ms                1      4,024",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        let users = text.find("Users  ").map_or("", |at| &text[at..]);
        insta::assert_snapshot!(users, @r"
        Users        6 users started, with 4 sub-agents; at most 5 at once; 5 completed, 1 truncated, 4
                     stopped by the end of the run
                     rate-limited 12 times: concurrency 3, decode 1, input_budget 1, output_budget 1,
                     prefill 4, ttft 2
                     most users, as the ramp counts, with TTFT below --max-ttft: 4 (period 4); never above
                     peak working set 51,200 tokens, warm prefix 320 tokens
        SLO          TTFT <= 0.5 s, decode >= 30.0 tokens/s
                     TTFT met:            15/20 (75.0 %)
                     Decode met:          16/20 (80.0 %)
                     Goodput (both):      12/20 (60.0 %)
                     Effective TTFT met:  13/20 (65.0 %)  (includes queue time)
                     Effective goodput:   11/20 (55.0 %)
                     5 answers in one piece: no TTFT, not counted (--stream-all streams)

        Period 1     0.0 to 5.0 s. Users: 2 total (0 active, 0 idle, 2 rate-limited)
                     Requests: 10 sent, 7 ok (7 new, 0 prior), 2 not ok, 1 in flight
                     Tokens/s: input 2,364, output 29.20; cache hit rate: ideal 54.2 %, server 51.0 %
                     TTFT: p50 413.0, p95 484.8, max 502.0 ms; ramp: +1 (throttled, as the first two ramps
                     are, headroom 68 %)
        Period 2     5.0 to 10.0 s. Users: 2 total (1 active, 0 idle, 1 rate-limited)
                     Requests: 5 sent, 5 ok (4 new, 1 prior), 0 not ok, 1 in flight
                     Tokens/s: input 1,665, output 23.20; cache hit rate: ideal 68.9 %, server 66.0 %
                     TTFT: p50 163.0, p95 535.2, max 564.0 ms; ramp: +1 (throttled, as the first two ramps
                     are, headroom 68 %)
        Period 3     10.0 to 15.0 s. Users: 2 total (0 active, 0 idle, 2 rate-limited)
                     Requests: 6 sent, 7 ok (6 new, 1 prior), 0 not ok, 0 in flight
                     Tokens/s: input 2,900, output 33.60; cache hit rate: ideal 72.5 %, server 70.5 %
                     TTFT: p50 446.0, p95 510.1, max 513.0 ms; ramp: +1 (all gates passed, headroom 68 %)
        Period 4     15.0 to 18.7 s, the last part. Users: 4 total (4 active, 0 idle, 0 rate-limited)
                     Requests: 6 sent, 6 ok (6 new, 0 prior), 0 not ok, 0 in flight
                     Tokens/s: input 4,038, output 41.38; cache hit rate: ideal 62.0 %, server 60.1 %
                     TTFT: p50 207.0, p95 673.2, max 698.0 ms; ramp: +0 (the run ended, headroom 68 %)
        Prompt tokens, TTFT and cache hits count in the period of the first token, output tokens in that of
        their arrival, requests in those of their sending and end.
        ");
    }

    #[test]
    fn no_data_is_said_and_old_periods_are_left_out() {
        let mut sample = sample_users::sample(3, 6);
        if let Some(facts) = &mut sample.manifest.users {
            facts.period_ns = 100_000_000;
        }
        let short = text(&sample.bytes(), false);
        assert!(short.contains("earlier periods not shown (--verbose shows all)."), "{short}");
        assert!(
            short
                .contains("Tokens/s: input No data, output No data; cache hit rate: ideal No data"),
            "{short}"
        );
        let long = text(&sample.bytes(), true);
        assert!(long.contains("\nPeriod 1     0.0 to 0.1 s. Users: 3 total ("), "{long}");
        let empty = text(&sample_users::empty(1).bytes(), false);
        assert!(empty.starts_with("SCHEDULE     NOT HELD: 0 of 0 requests sent"), "{empty}");
        assert!(empty.contains("no request was sent"), "{empty}");
        assert!(empty.contains("No assessment periods"), "{empty}");
    }
}
