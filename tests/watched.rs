//! A run as others watch it: our numbers while it goes, and a server's own beside it in the log.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use onbeat::conductor::Watch;
use onbeat::live::LiveOptions;
use onbeat::render::Secret;
use onbeat::replayer::Stop;
use onbeat::replayer::counters::Snapshot;
use onbeat_shared::log::Class;
use onbeat_shared::metrics::server::{Quantity, servers};
use onbeat_shared::metrics::{self, ReportOptions, Selection};
use tests::{Outcome, Scenario, ends, mooncake};

/// The page that is served at an address.
fn page(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).expect("it is served");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("an option");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("it is read");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    body.to_owned()
}

/// The value of a series on a page.
fn value(page: &str, series: &str) -> f64 {
    let of = |line: &str| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok();
    page.lines().find_map(of).unwrap_or_else(|| panic!("{series} is not on the page:\n{page}"))
}

fn near(found: f64, wanted: f64, what: &str) {
    assert!((found - wanted).abs() <= 1e-6 * wanted.abs().max(1e-9), "{what}: {found}, {wanted}");
}

/// Asks for the page while the run goes, as soon as something was sent.
struct Asker {
    found: mpsc::SyncSender<String>,
    address: Option<SocketAddr>,
}

impl Watch for Asker {
    fn say(&mut self, words: &str) {
        let url = words.strip_prefix("the run's numbers are at http://");
        let address = url.and_then(|url| url.strip_suffix("/metrics"));
        self.address = self.address.or_else(|| address.and_then(|it| it.parse().ok()));
    }

    fn look(&mut self, _elapsed_ns: i64, _planned: u64, counters: &Snapshot) {
        if counters.sent > 0
            && let Some(address) = self.address
        {
            // Some hundred pages are enough.
            let _ = self.found.try_send(page(address));
        }
    }

    fn stop(&mut self) -> Stop {
        Stop::No
    }
}

#[test]
fn what_is_served_at_the_end_is_what_the_report_says() {
    let mut scenario = Scenario::new(&mooncake(40, 15, 300, 6));
    scenario.config.live.serve_at = Some(([127, 0, 0, 1], 0).into());
    let server = onbeat::mock::spawn(scenario.mock.clone()).expect("a mock on loopback");
    let (sender, pages) = mpsc::sync_channel(1_024);
    let mut asker = Asker { found: sender, address: None };
    let address = server.address();
    let (ran, run, asker) = ends(move || {
        let (ran, run) = scenario.run_watched(address, &mut asker);
        (ran, run, asker)
    });
    server.stop();
    let (ran, run) = (ran.expect("it ran"), run.expect("a log"));
    let last = page(asker.address.expect("it was said"));
    let report = metrics::report(&run, &ReportOptions::default());
    let count = |name: &str| value(&last, name);
    let whole = |value: Option<u64>| value.expect("known") as f64;
    near(count("onbeat_requests_planned"), 40.0, "planned");
    near(count("onbeat_requests_due_total"), report.schedule.planned as f64, "due");
    near(count("onbeat_requests_sent_total"), report.schedule.sent as f64, "sent");
    near(count("onbeat_requests_in_flight"), 0.0, "in flight");
    near(count("onbeat_run_finished"), 1.0, "finished");
    for &class in Class::ALL {
        let (outcome, class) = (class.outcome().name(), class.name());
        let series =
            format!("onbeat_requests_done_total{{outcome=\"{outcome}\",class=\"{class}\"}}");
        let ok = (class == "ok").then_some(report.outcomes.ok);
        let wanted = ok.or(report.outcomes.by_class.get(class).copied()).unwrap_or(0);
        near(count(&series), wanted as f64, &series);
    }
    near(count("onbeat_prompt_tokens_total"), whole(report.tokens.prompt), "prompt");
    near(count("onbeat_completion_tokens_total"), whole(report.tokens.completion), "completion");
    let bytes: u64 = (0..40).filter_map(|i| run.requests.response_bytes(i)).sum();
    near(count("onbeat_received_bytes_total"), bytes as f64, "received");
    let bytes: u64 = (0..40).filter_map(|i| run.requests.sent_bytes(i)).sum();
    near(count("onbeat_sent_bytes_total"), bytes as f64, "sent bytes");
    for (name, statistic, units) in [
        ("onbeat_time_to_first_token_seconds", report.latency.ttft_ms, 1e3),
        ("onbeat_inter_token_latency_seconds", report.latency.itl_ms, 1e3),
        ("onbeat_request_latency_seconds", report.latency.e2e_ms, 1e3),
        ("onbeat_send_lateness_seconds", report.schedule.lateness_us, 1e6),
    ] {
        let statistic = statistic.expect("all of them succeeded");
        near(count(&format!("{name}_count")), statistic.count as f64, name);
        let sum = statistic.mean * statistic.count as f64 / units;
        near(count(&format!("{name}_sum")), sum, name);
        near(count(&format!("{name}_bucket{{le=\"+Inf\"}}")), statistic.count as f64, name);
    }
    // Pages of the run itself: what they say only grows, up to what is said at the end.
    drop(asker);
    let pages: Vec<String> = pages.iter().collect();
    assert!(!pages.is_empty());
    for name in ["onbeat_requests_due_total", "onbeat_requests_sent_total"] {
        let values = pages.iter().map(|page| value(page, name));
        let values: Vec<f64> = values.chain([count(name)]).collect();
        assert!(values.is_sorted(), "{name}: {values:?}");
    }
    let address = ran.conducted.serving.as_ref().expect("it is still served").address();
    drop(ran);
    assert!(TcpStream::connect(address).is_err(), "it is over");
}

#[test]
fn a_port_that_is_taken_ends_the_run_before_it_begins() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut scenario = Scenario::new(&mooncake(1, 1, 10, 1));
    scenario.config.live.serve_at = Some(taken.local_addr().expect("bound"));
    let log = scenario.log_path();
    assert!(scenario.fail().to_string().contains("--prometheus-port"));
    assert!(!log.exists());
}

fn scraped(mut scenario: Scenario) -> Outcome {
    let server = onbeat::mock::spawn(scenario.mock.clone()).expect("a mock on loopback");
    let url = format!("http://{}/metrics", server.address());
    scenario.config.live = LiveOptions {
        serve_at: None,
        scrape: vec![url.parse().expect("a URL")],
        scrape_interval_ns: 60_000_000,
    };
    // The run's own mock is another one: the scraped one answers nobody else.
    let outcome = scenario.run();
    server.stop();
    outcome
}

#[test]
fn a_server_s_own_numbers_are_in_the_log_on_the_run_s_clock() {
    let outcome = scraped(Scenario::new(&mooncake(20, 20, 200, 4)));
    let run = &outcome.run;
    assert_eq!(run.warnings, Vec::<String>::new());
    let found = run.servers.as_deref().expect("it was scraped");
    assert_eq!(found.sources.len(), 1);
    let askings: Vec<_> = found.asked(0).collect();
    assert!(askings.iter().all(|asking| asking.failure.is_none() && asking.left_out == 0));
    // The first is before the first request and the last one after the last answer.
    let first = (0..20).filter_map(|i| run.requests.sent(i)).min().expect("they left");
    let last = (0..20).filter_map(|i| run.requests.done(i)).max().expect("they ended");
    assert!(askings.len() >= 2);
    assert!(askings[0].start < first, "{:?}", askings[0]);
    assert!(askings.last().is_some_and(|asking| asking.end > last));
    for name in [
        "vllm:num_requests_running",
        "vllm:num_requests_waiting",
        "vllm:kv_cache_usage_perc",
        "vllm:prefix_cache_hits_total",
        "vllm:prefix_cache_queries_total",
        "vllm:generation_tokens_total",
    ] {
        let series: Vec<_> = found.named(0, name).collect();
        assert_eq!(series.len(), 1, "{name}");
        assert_eq!(series[0].points.len(), askings.len(), "{name}");
    }
    assert!(found.series.iter().all(|series| series.name.starts_with("vllm:")));
}

#[test]
fn what_a_server_counts_is_what_it_was_sent() {
    let mut scenario = Scenario::new(&mooncake(25, 10, 600, 5));
    let server = onbeat::mock::spawn(scenario.mock.clone()).expect("a mock on loopback");
    let url = format!("http://{}", server.address());
    scenario.config.live.scrape = vec![url.parse().expect("a URL")];
    scenario.config.live.scrape_interval_ns = 1_000_000_000;
    let address = server.address();
    let run = ends(move || scenario.run_against(address));
    server.stop();
    let report = metrics::report(&run, &ReportOptions::default());
    let [server] = &report.servers.expect("it was scraped")[..] else { panic!("one") };
    let completion = report.tokens.completion.expect("known") as f64;
    assert_eq!(server.generated_tokens, Some(completion), "one mock, and nobody else asked it");
    let reported = report.cache.reported_hit_rate.expect("the mock reports");
    let own = server.prefix_hit_rate.expect("the mock counts");
    assert!((own - reported).abs() < 1e-9, "{own}, {reported}");
}

/// A server of metrics that answers what `answer` says to its n-th caller.
fn oracle(
    answer: fn(usize) -> Option<String>,
) -> (SocketAddr, Arc<AtomicBool>, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let (sender, heads) = mpsc::sync_channel(1_024);
    let over = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&over);
    let asked = AtomicUsize::new(0);
    let body = move || {
        for stream in listener.incoming() {
            if ended.load(Ordering::Relaxed) {
                return;
            }
            let Ok(mut stream) = stream else { continue };
            let mut head = [0; 4_096];
            let count = stream.read(&mut head).unwrap_or(0);
            // A probe connects and says nothing.
            if count == 0 {
                continue;
            }
            let _ = sender.try_send(String::from_utf8_lossy(&head[..count]).into_owned());
            if let Some(page) = answer(asked.fetch_add(1, Ordering::Relaxed)) {
                let _ = stream.write_all(page.as_bytes());
            }
        }
    };
    std::thread::Builder::new().name("oracle".into()).spawn(body).expect("a thread");
    (address, over, heads)
}

fn with_page(status: &str, page: &str) -> Option<String> {
    Some(format!("HTTP/1.1 {status}\r\nConnection: close\r\n\r\n{page}"))
}

#[test]
fn a_server_that_fails_leaves_gaps_and_no_secret() {
    const LEVEL: &str = "# TYPE vllm:num_requests_waiting gauge\n\
                         vllm:num_requests_waiting{key=\"hunter2-hunter2\"} 4\n";
    let (address, over, heads) = oracle(|turn| match turn % 4 {
        0 => with_page("200 OK", LEVEL),
        1 => with_page("503 hunter2-hunter2", "busy"),
        2 => None,
        _ => with_page("200 OK", "<html>hunter2-hunter2"),
    });
    let mut scenario = Scenario::new(&mooncake(30, 20, 20, 2));
    scenario.config.render.api_key = Some(Secret::new("hunter2-hunter2"));
    let url = format!("http://{address}/metrics?token=quite-secret-too");
    scenario.config.live.scrape = vec![url.parse().expect("a URL")];
    scenario.config.live.scrape_interval_ns = 60_000_000;
    let outcome = ends(move || scenario.run());
    over.store(true, Ordering::Relaxed);
    let _ = TcpStream::connect(address);
    for head in heads.try_iter() {
        assert!(head.starts_with("GET /metrics?token=quite-secret-too HTTP/1.1\r\n"), "{head}");
        assert!(!head.contains("hunter2"), "another port is another origin: {head}");
    }
    let run = &outcome.run;
    let text = String::from_utf8_lossy(&outcome.bytes);
    for secret in ["hunter2", "quite-secret"] {
        assert!(!text.contains(secret), "{secret} is in the log");
    }
    let report = servers(&Selection::new(run, None)).expect("it was scraped");
    assert!(report[0].source.ends_with("/metrics?token=[secret]"), "{}", report[0].source);
    assert!(report[0].failed > 0 && report[0].failed < report[0].asked, "{report:?}");
    let found = run.servers.as_deref().expect("it was scraped");
    let words: Vec<_> = found.askings.iter().filter_map(|it| it.failure.as_deref()).collect();
    assert!(words.contains(&"answered 503"), "{words:?}");
    let curve = Quantity::Waiting.curve(found, 0);
    assert_eq!(curve.len(), found.askings.len(), "a point or a gap for each asking");
    let gaps = curve.iter().filter(|(_, value)| value.is_none()).count();
    assert_eq!(gaps as u64, report[0].failed, "a gap, and not zero");
    assert!(curve.iter().all(|(_, value)| value.is_none_or(|value| value == 4.0)));
    // The key is shorter in parts of 24 bytes: look at what is put together, too.
    for series in &found.series {
        assert!(!series.labels.contains("hunter2"), "{}", series.labels);
    }
    assert_eq!(outcome.counts.served, 30, "and the run went on as if nothing had been");
}

#[test]
fn an_answer_that_says_nothing_known_is_a_gap_and_what_cannot_be_is_missing() {
    const NOBODY_S: &str = "# TYPE go_threads gauge\ngo_threads 7\n";
    const IMPOSSIBLE: &str = "# TYPE vllm:num_requests_waiting gauge\n\
                              vllm:num_requests_waiting -4\n\
                              # TYPE vllm:num_requests_running gauge\n\
                              vllm:num_requests_running 3\n\
                              # TYPE vllm:kv_cache_usage_perc gauge\n\
                              vllm:kv_cache_usage_perc NaN\n";
    let (address, over, _heads) = oracle(|turn| match turn % 3 {
        0 => with_page("200 OK", ""),
        1 => with_page("200 OK", NOBODY_S),
        _ => with_page("200 OK", IMPOSSIBLE),
    });
    let mut scenario = Scenario::new(&mooncake(30, 20, 20, 2));
    let url = format!("http://{address}/quite-secret-too/metrics");
    scenario.config.live.scrape = vec![url.parse().expect("a URL")];
    scenario.config.live.scrape_interval_ns = 60_000_000;
    let outcome = ends(move || scenario.run());
    over.store(true, Ordering::Relaxed);
    let _ = TcpStream::connect(address);
    assert!(!String::from_utf8_lossy(&outcome.bytes).contains("quite-secret"));
    let found = outcome.run.servers.as_deref().expect("it was scraped");
    assert_eq!(found.sources, [format!("http://{address}/[path]/metrics")]);
    let askings: Vec<_> = found.asked(0).collect();
    assert!(askings.len() >= 3, "{askings:?}");
    for (turn, asking) in askings.iter().enumerate() {
        let (impossible, words) = match turn % 3 {
            0 => (0, Some("answered 200 and nothing else")),
            1 => (0, Some("without a gauge or counter of vLLM or SGLang")),
            _ => (2, None),
        };
        assert_eq!((asking.status, asking.impossible), (Some(200), impossible), "{asking:?}");
        let failure = asking.failure.as_deref();
        assert_eq!(failure.is_some(), words.is_some(), "{asking:?}");
        assert!(failure.zip(words).is_none_or(|(told, words)| told.contains(words)), "{failure:?}");
    }
    let known = |quantity: Quantity| {
        quantity.curve(found, 0).into_iter().filter_map(|(_, value)| value).collect::<Vec<_>>()
    };
    assert!(known(Quantity::Waiting).is_empty() && known(Quantity::CacheUsage).is_empty());
    let impossible = askings.len() / 3;
    assert_eq!(known(Quantity::Running), vec![3.0; impossible]);
    let report = servers(&Selection::new(&outcome.run, None)).expect("it was scraped");
    assert_eq!(report[0].impossible_values, 2 * impossible as u64);
    assert_eq!((report[0].waiting, report[0].cache_usage), (None, None));
}
