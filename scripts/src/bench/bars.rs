//! The bars: every figure the project promises of itself, and where its measurement is found.
//!
//! A row is one promise; it has one or more checks, each a key of a line of results and a bound. A
//! row without bounds is a figure that is only stated. Nothing is measured here.

/// What a measured value must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bound {
    /// No more than this.
    Most(f64),
    /// No less than this.
    Least(f64),
    /// From, to.
    Within(f64, f64),
    /// It is only told.
    Told,
}

/// How a stored number is shown and compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    Plain,
    /// Nanoseconds a byte are stored, gigabytes a second are meant.
    Inverse,
}

/// One number of a line of results.
#[derive(Clone, Debug)]
pub(super) struct Check {
    pub(super) key: String,
    pub(super) bound: Bound,
    pub(super) scale: Scale,
}

/// One promise.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) what: String,
    /// The line of results: its `case`, or its `bench` where it has none.
    pub(super) case: String,
    pub(super) unit: &'static str,
    pub(super) checks: Vec<Check>,
    /// Numbers of the same line that are told behind the checked ones: key and words around it.
    pub(super) beside: Vec<(String, &'static str)>,
}

impl Row {
    fn new(what: &str, case: &str, unit: &'static str) -> Self {
        let (what, case) = (what.to_owned(), case.to_owned());
        Self { what, case, unit, checks: Vec::new(), beside: Vec::new() }
    }

    fn check(mut self, key: &str, bound: Bound) -> Self {
        self.checks.push(Check { key: key.to_owned(), bound, scale: Scale::Plain });
        self
    }

    fn beside(mut self, key: &str, words: &'static str) -> Self {
        self.beside.push((key.to_owned(), words));
        self
    }
}

/// Every row of the table, in order.
pub(super) fn rows() -> Vec<Row> {
    let mut rows = pacing();
    rows.extend(rate());
    rows.extend(streams());
    rows.extend(interference());
    rows.extend(before_zero());
    rows.extend(viewer());
    rows.extend(drivers());
    rows
}

fn pacing() -> Vec<Row> {
    let mut rows = Vec::new();
    for shape in ["constant", "poisson", "burst"] {
        for rate in ["1000", "10000", "50000"] {
            rows.push(arrivals(shape, rate, None));
            if shape != "burst" && rate != "50000" {
                rows.push(arrivals(shape, rate, Some("hybrid")));
            }
        }
    }
    let row =
        Row::new("a process stopped for 20 ms: the stall in the log over it", "stall-20ms", "x")
            .check("ratio_reported", Bound::Within(0.95, 1.15))
            .beside("onbeat_reported_ms", " ms")
            .beside("onbeat_max_lateness_outside_stalls_ms", " ms at most outside");
    rows.push(row);
    rows
}

/// Of a schedule and of a way to wait, if it is not the floor's own.
fn arrivals(shape: &str, rate: &str, pacing: Option<&str>) -> Row {
    let (words, case) = match pacing {
        Some(pacing) => (format!(", --pacing {pacing}"), format!("-{pacing}")),
        None => (String::new(), String::new()),
    };
    let what = format!(
        "arrivals, {shape}, {rate}/s{words}: p50, p90, p99 outside host stalls, p99 over the floor's"
    );
    Row::new(&what, &format!("lateness-{shape}-{rate}{case}"), "x")
        .check("ratio_arrival_p50_us", Bound::Most(1.5))
        .check("ratio_arrival_p90_us", Bound::Most(1.5))
        .check("ratio_arrival_outside_p99_us", Bound::Most(1.25))
        // About one in a hundred requests is hit by the host: whether this is the host's doing or
        // not is a toss of a coin, which the one before is not.
        .check("ratio_arrival_p99_us", Bound::Told)
        // Near its limit a sender needs several times a stall's length to catch up: at fifty
        // thousand a second that, and not pacing, is where the hundredth request lies.
        .beside("ratio_arrival_steady_p99_us", " x at p99 when also not catching up")
        .beside("onbeat_arrival_p50_us", " us at p50")
        .beside("onbeat_arrival_p99_us", " us at p99")
}

fn rate() -> Vec<Row> {
    let highest = |what: &str, case: &str, least: f64| {
        Row::new(&format!("highest rate, {what}, over the floor's"), case, "x")
            .check("ratio_highest", Bound::Least(least))
            .beside("onbeat_highest_per_s", "/s")
            .beside("floor_highest_per_s", "/s for the floor")
            .beside("onbeat_server_busy_percent", " % of the server's core")
    };
    vec![
        highest("bodies of 100 bytes", "rate-139", 0.8),
        highest("bodies of 32 KiB", "rate-32629", 0.9),
        highest("bodies of 1 MiB", "rate-1045129", 0.9),
        Row::new("1,000 due at once: the last byte over the floor's", "burst-1000", "x")
            .check("ratio_last_byte_left_us", Bound::Most(1.25))
            .beside("onbeat_last_byte_left_us", " us"),
    ]
}

fn streams() -> Vec<Row> {
    vec![
        Row::new("128-chunk answers: chunks a second over the floor's", "streams-128", "x")
            .check("ratio_chunks_per_s", Bound::Least(0.8))
            .beside("onbeat_chunks_per_s", " chunks/s"),
        Row::new(
            "10,000 streams open: p50, p90, p99 of lateness outside stalls over those without",
            "open-streams-10000",
            "x",
        )
        .check("ratio_outside_stalls_p50_us", Bound::Most(1.25))
        .check("ratio_outside_stalls_p90_us", Bound::Most(1.25))
        .check("ratio_outside_stalls_p99_us", Bound::Most(1.25))
        .beside("with_outside_stalls_p50_us", " us at p50")
        .beside("with_outside_stalls_p99_us", " us at p99"),
        Row::new("one chunk of an answer", "chunk_vllm_chat/instructions", " instructions")
            .check("instructions_per_event", Bound::Told),
    ]
}

/// The bar is for lateness that no host stall explains: what the host does to one request in a
/// hundred decides the rest, and it is told. A thread of ours that takes the core away would look
/// like the host, so how much lay in stalls and how often the core was taken away are told as well.
fn interference() -> Vec<Row> {
    let row = |what: &str, case: &str, bound| {
        let what = format!("{what}: p99 of lateness over that without, all and outside stalls");
        Row::new(&what, case, "x")
            .check("ratio_own_p99_us", Bound::Told)
            .check("ratio_outside_stalls_p99_us", bound)
            .beside("with_outside_stalls_p99_us", " us outside")
            .beside("without_percent_in_stalls", " % in stalls without")
            .beside("with_percent_in_stalls", " % with")
            .beside("without_involuntary_switches", " times taken away without")
            .beside("with_involuntary_switches", " with")
    };
    let most = Bound::Most(1.1);
    vec![
        row("logging a million chunks a second", "interference-log", most)
            .beside("with_records_per_s", " records/s"),
        row("reading them and logging them", "interference-streams", Bound::Told),
        row("progress on a terminal", "interference-progress", most),
        row("rendering ahead, 60 MB/s", "interference-ahead", most),
        row("a disk that hangs for 2.5 s", "interference-disk", most)
            .beside("with_lost_records", " records lost"),
    ]
}

fn before_zero() -> Vec<Row> {
    let ahead = |what: &str, case: &str| {
        let underruns = Row::new(&format!("rendering ahead, {what}: underruns"), case, "")
            .check("onbeat_underruns", Bound::Most(0.0))
            .beside("onbeat_megabytes_per_s", " MB/s");
        let memory =
            Row::new(&format!("rendering ahead, {what}: peak memory over its budget"), case, "x")
                .check("ratio_peak_memory", Bound::Most(1.0))
                .beside("onbeat_peak_memory_mib", " MiB")
                .beside("onbeat_budget_mib", " MiB allowed");
        [underruns, memory]
    };
    let speed = Check {
        key: "ns_per_item_median".to_owned(),
        bound: Bound::Least(2.0),
        scale: Scale::Inverse,
    };
    let baseten = |what: &str, case: &str| {
        let what = format!("a million Baseten rows of 4 KB, {what}: loading over a bare scan");
        Row::new(&what, case, "x")
            .check("ratio_wall", Bound::Most(1.5))
            .beside("ratio_cpu", "x the CPU time")
            .beside("ratio_user", "x that outside the kernel")
            .beside("load_wall_ms", " ms")
            .beside("scan_wall_ms", " ms for the scan")
    };
    let mut text = Row::new("prompt text, one core", "text", " GB/s");
    text.checks.push(speed);
    let mut rows = Vec::new();
    rows.extend(ahead("Mooncake's prompts at 1,000/s", "render-ahead-mooncake"));
    rows.extend(ahead("bodies of 3.6 MB at 20/s", "render-ahead-agentic"));
    rows.extend([
        text,
        Row::new("loading JSON Lines over simd-json's parser alone", "load_conversation", "x")
            .check("ratio_speed", Bound::Least(0.7)),
        baseten("packed", "load_baseten_zstd"),
        baseten("packed with snappy", "load_baseten_snappy"),
        baseten("plain", "load_baseten_plain"),
        Row::new("the packed ones, peak memory beyond the prompts", "load_baseten_zstd", " MiB")
            .check("load_peak_over_prompts_mib", Bound::Most(512.0)),
        Row::new("12,031 rows, from start to a printed plan", "plan_conversation", " ms")
            .check("wall_ms_median", Bound::Most(100.0)),
        Row::new("2,000,000 rows, the same", "plan_large", " ms")
            .check("wall_ms_median", Bound::Most(10_000.0)),
        Row::new("2,000,000 rows, peak memory", "plan_large", " MiB")
            .check("peak_memory_mib", Bound::Most(1_024.0)),
    ]);
    rows
}

/// A log of a million requests and thirty million content events.
fn viewer() -> [Row; 4] {
    [
        Row::new("30 million chunks in the viewer: until the first picture", "opening-app", " ms")
            .check("first_picture_ms_median", Bound::Most(1_000.0))
            .beside("complete_ms_median", " ms until all of it"),
        Row::new("the same: peak memory over the log's size, opened", "opening-app", "x")
            .check("peak_of_file", Bound::Most(1.5)),
        Row::new("the same: median and p99 of a frame, in every panel", "frames", " ms")
            .check("median_ms", Bound::Most(8.0))
            .check("p99_ms", Bound::Most(16.0)),
        Row::new("the same: peak memory over the log's size, every panel shown", "frames", "x")
            .check("peak_of_file", Bound::Most(1.5)),
    ]
}

fn drivers() -> Vec<Row> {
    let lateness = |rate: &str| {
        Row::new(
            &format!("io_uring over epoll, {rate}/s: p50, p99 of arrivals"),
            &format!("driver-lateness-{rate}"),
            "x",
        )
        .check("ratio_arrival_p50_us", Bound::Told)
        .check("ratio_arrival_p99_us", Bound::Told)
    };
    vec![
        lateness("1000"),
        lateness("10000"),
        Row::new("io_uring over epoll, 1,000 due at once: the last byte", "driver-burst-1000", "x")
            .check("ratio_last_byte_left_us", Bound::Told),
        Row::new("io_uring over epoll, chunks a second", "driver-streams-128", "x")
            .check("ratio_chunks_per_s", Bound::Told),
        Row::new("io_uring over epoll, highest rate", "driver-rate", "x")
            .check("ratio_highest", Bound::Told)
            .beside("epoll_highest_per_s", "/s with epoll"),
    ]
}
