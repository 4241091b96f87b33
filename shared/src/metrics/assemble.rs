//! Fills in a [`Report`] from a run: which number goes where, and nothing else.
//!
//! Formulas are in the modules that this one calls. One pass per statistic over the chosen
//! requests; nothing is kept between calls.

use std::collections::BTreeMap;

use super::adjusted::FailuresAsInfinite;
use super::attribution::{UserGoals, periods};
use super::cache::HitRates;
use super::concurrency::{Curves, concurrency};
use super::fidelity::Fidelity;
use super::hosts;
use super::latency::{Metric, chunk_gaps_ns, count, nanos, span};
use super::left_out::LeftOut;
use super::quantile::{Collector, Statistic, error_adjusted};
use super::report::{
    Cache, HostStalls, Latency, Met, Notes, Outcomes, Precision, Report, ReportOptions, RunFacts,
    SCHEMA_VERSION, Schedule, SliceReport, Slo, Throughput, Tokens, TraceFacts, Verdict,
    WarmUpFacts,
};
use super::schedule::{LatenessStatistics, Sending};
use super::selection::Selection;
use super::server;
use super::slices::{Slice, slices};
use super::slo::{self, Attainment, Goals};
use super::steps;
use super::throughput::{
    Totals, Window, in_flight_at_send, peak_in_flight, peak_output_tokens_per_s, per_second,
    per_user,
};
use super::tokens::Source;
use super::users;
use super::verdict::{Evidence, reasons};
use super::warmth;
use crate::import;
use crate::log::start::Merged;
use crate::log::{Class, DoneFlags, Outcome};
use crate::run::{End, Run, State};

/// The share of the cores' time in host stalls above which they are what to look at first.
const STALLED_MAX: f64 = 0.01;

/// The numbers of a run, or of a time range of it.
#[must_use]
pub fn report(run: &Run, options: &ReportOptions) -> Report {
    let selection = Selection::of_list(run, options.range, options.requests.as_deref());
    let max_lateness_us = options.max_lateness_us.unwrap_or(run.manifest.max_lateness_us);
    let seconds = Window::of(&selection).and_then(Window::seconds);
    let sending = Sending::of(&selection, max_lateness_us);
    let lateness = LatenessStatistics::of(&selection);
    let totals = Totals::of(&selection);
    let (latency, mut notes) = latency(&selection);
    let merged = run.manifest.merged.as_deref();
    let mut unmerged = merged.map_or_else(Vec::new, Merged::warnings);
    unmerged.extend(merged.and_then(Merged::stopped_words));
    let schedule = schedule(&selection, &sending, &lateness);
    let left_out = LeftOut::of(&lateness, max_lateness_us);
    let reasons = reasons(&Evidence {
        sending: &sending,
        host_was_busy: left_out.is_material || stalled_share(&selection, &schedule) > STALLED_MAX,
        outside_stalls: lateness.outside_stalls.as_ref(),
        lateness: lateness.all.as_ref(),
        max_lateness_us,
        state: run.state,
        damaged_bytes: run.damaged_bytes,
        unmerged: &unmerged,
        given_up: run.footer.as_ref().and_then(|footer| footer.given_up.as_deref()),
        measured_by: import::measured_by(run),
    });
    if lateness.binned {
        notes.binned.push("lateness_us");
    }
    notes.rate_window_s = seconds;
    notes.sending_window_s = sending.window_s();
    notes.requests_per_s_of_sending_window = per_second(Some(totals.requests), sending.window_s());
    notes.prompt_source = totals.prompt_source.map(|source| source_name(source, "recorded"));
    notes.max_lateness_us = max_lateness_us;
    notes.open = sending.open;
    notes.not_reached = sending.not_reached;
    notes.lost = sending.lost;
    notes.lone_lateness_us = lateness.lone;
    notes.lateness_in_stalls_us = lateness.in_stalls;
    notes.first_errors = first_errors(&selection);
    notes.warnings.clone_from(&run.warnings);
    notes.warnings.extend(cut_replies(&selection));
    notes.warnings.extend(warmth::found(&selection).map(|found| found.words()));
    let in_flight = in_flight_at_send(run);
    let goals = UserGoals::of(run).or(options.slo.as_ref());
    Report {
        schema_version: SCHEMA_VERSION,
        run: run_facts(run, seconds),
        verdict: Verdict { schedule_held: reasons.is_empty(), left_out, reasons },
        schedule,
        outcomes: outcomes(&selection),
        latency,
        failures_as_infinite: FailuresAsInfinite::of(&selection),
        tokens: tokens(&selection, &totals),
        throughput: throughput(&selection, &totals, seconds, &in_flight),
        concurrency: concurrency(&selection),
        cache: cache(&selection),
        slo: goodput(&selection, options.slo.as_ref(), seconds),
        fidelity: Fidelity::of(&selection),
        users: users::users(run, goals),
        periods: run.users.is_some().then(|| periods(run, goals)),
        slices: options.slice_ns.map(|length_ns| sliced(run, length_ns, options, &in_flight)),
        hosts: hosts::hosts(run, selection.requests(), options.range, max_lateness_us),
        servers: server::servers(&selection),
        notes,
        // Whoever asks for a report judges it.
        gates: Vec::new(),
    }
}

/// The share of the sending cores' time that they lay in host stalls; zero where none is known.
fn stalled_share(selection: &Selection<'_>, schedule: &Schedule) -> f64 {
    let cores = selection.run().manifest.cores.len().max(1) as u64;
    let seconds = Window::of(selection).and_then(Window::seconds).filter(|&length| length > 0.0);
    seconds.map_or(0.0, |length| schedule.host_stalls.total_ms / 1e3 / (length * count(cores)))
}

/// The slices of a run, each reported as the run is.
fn sliced(
    run: &Run,
    length_ns: i64,
    options: &ReportOptions,
    in_flight: &[Option<u32>],
) -> Vec<SliceReport> {
    let curves = Curves::of(&Selection::new(run, None));
    let report = |slice: &Slice| {
        let selection = slice.selection(run);
        let seconds = steps::seconds(slice.window());
        let totals = Totals::of(&selection);
        SliceReport {
            index: slice.index,
            start_ns: slice.start.0,
            end_ns: slice.end.0,
            complete: slice.complete,
            sent: slice.requests.len() as u64,
            outcomes: outcomes(&selection),
            latency: latency(&selection).0,
            failures_as_infinite: FailuresAsInfinite::of(&selection),
            tokens: tokens(&selection, &totals),
            throughput: throughput(&selection, &totals, seconds, in_flight),
            arrived_input_tokens_per_s: seconds.map(|length| slice.arrived.prompt / length),
            arrived_output_tokens_per_s: seconds.map(|length| slice.arrived.completion / length),
            concurrency: curves.figures(slice.window()),
            cache: cache(&selection),
            slo: goodput(&selection, options.slo.as_ref(), seconds),
        }
    };
    slices(run, length_ns).iter().map(report).collect()
}

/// How many replies found no room to be repeated whole, in words.
fn cut_replies(selection: &Selection<'_>) -> Option<String> {
    let requests = &selection.run().requests;
    let is_cut = |&i: &usize| requests.flags(i).has(DoneFlags::REPLY_CUT);
    match selection.requests().filter(is_cut).count() {
        0 => None,
        1 => Some(
            "later turns repeat 1 reply not whole: it was longer than its room, or has tool calls"
                .to_owned(),
        ),
        count => Some(format!(
            "later turns repeat {count} replies not whole: they were longer than their room, or \
             have tool calls"
        )),
    }
}

fn run_facts(run: &Run, duration_s: Option<f64>) -> RunFacts {
    let manifest = &run.manifest;
    RunFacts {
        id: manifest.run_id.clone(),
        started_unix_ns: run.started_unix_ns(),
        duration_s,
        interrupted: run.state == State::Interrupted,
        torn: !run.is_whole(),
        host: manifest.host.clone(),
        cores: manifest.cores.clone(),
        mode: manifest.mode.clone(),
        trace: TraceFacts {
            name: manifest.trace.name.clone(),
            sha256: manifest.trace.sha256.clone(),
            format: manifest.trace.format.clone(),
            rows: manifest.trace.rows,
        },
        precision: Precision {
            pacing: manifest.pacing.kind.clone(),
            driver: manifest.driver.clone(),
            wake_error_ns: Some(manifest.pacing.wake_error_ns).filter(|&error| error > 0),
            stall_threshold_ns: manifest.pacing.stall_threshold_ns,
            memory_lock: manifest.memory_lock.clone(),
            memory_node: manifest.memory_node.clone(),
            realtime: manifest.realtime.clone(),
            doctor: manifest.doctor.clone(),
        },
        config: manifest.config.clone(),
        warm_up: manifest.warm_up.as_ref().map(|warm_up| WarmUpFacts {
            requests: warm_up.requests.len() as u64,
            ok: warm_up.ok,
            duration_s: warm_up.length_ns().map(|length| nanos(length) / 1e9),
        }),
        tls: manifest.tls.clone(),
    }
}

fn schedule(
    selection: &Selection<'_>,
    sending: &Sending,
    lateness: &LatenessStatistics,
) -> Schedule {
    let mut stalls = HostStalls::default();
    for stall in selection.run().stalls.all().iter().filter(|stall| selection.holds(stall.start)) {
        let length_ms = count(stall.length_ns) / 1e6;
        stalls.count += 1;
        stalls.total_ms += length_ms;
        stalls.max_ms = Some(stalls.max_ms.map_or(length_ms, |max| max.max(length_ms)));
    }
    Schedule {
        planned: sending.planned,
        sent: sending.sent,
        never_sent: sending.never_sent,
        offered_rps: sending.offered_rps(),
        achieved_rps: sending.achieved_rps(),
        lateness_us: lateness.all,
        lateness_outside_stalls_us: lateness.outside_stalls,
        burst_lateness_us: lateness.burst,
        host_stalls: stalls,
        render_underruns: sending.underruns,
        session_waits: sending.session_waits(),
    }
}

fn outcomes(selection: &Selection<'_>) -> Outcomes {
    let requests = &selection.run().requests;
    let mut outcomes = Outcomes::default();
    let mut classes = BTreeMap::new();
    for i in selection.requests() {
        *classes.entry(requests.end(i).name()).or_insert(0) += 1;
        if let Some(outcome) = requests.outcome(i) {
            *outcomes.count_mut(outcome) += 1;
        }
    }
    outcomes.error_rate = outcomes.failed_share();
    outcomes.by_class = classes.into_iter().map(|(name, n)| (name.to_owned(), n)).collect();
    outcomes
}

/// The first request of each class in words: its status where that is no success, and what the
/// server or the system said.
fn first_errors(selection: &Selection<'_>) -> BTreeMap<&'static str, String> {
    let run = selection.run();
    let mut first = BTreeMap::new();
    for i in selection.requests() {
        let Some(class) = run.requests.class(i) else { continue };
        let status = run.requests.status(i).filter(|status| !(200..300).contains(status));
        let words = match (status, run.error_text(i)) {
            (Some(status), Some(words)) => format!("HTTP {status}: {words}"),
            (Some(status), None) => format!("HTTP {status}"),
            (None, Some(words)) => words.to_owned(),
            (None, None) => continue,
        };
        first.entry(class.name()).or_insert(words);
    }
    first
}

/// The statistics of durations, and the notes that fall out of them.
fn latency(selection: &Selection<'_>) -> (Latency, Notes) {
    let run = selection.run();
    let mut notes = Notes { percentiles: "linear", ..Notes::default() };
    let mut of = |metric: Metric| {
        let mut collector = Collector::new();
        collector.extend(selection.successful().filter_map(|i| metric.value_ns(run, i)));
        if collector.is_binned() {
            notes.binned.push(metric.name());
        }
        collector.statistic(1e6)
    };
    let mut latency = Latency {
        ttft_ms: of(Metric::Ttft),
        ttft_from_due_ms: of(Metric::TtftFromDue),
        time_to_first_output_token_ms: of(Metric::FirstOutputToken),
        ttst_ms: of(Metric::Ttst),
        itl_ms: of(Metric::Itl),
        icl_ms: None,
        ntpot_ms: of(Metric::Ntpot),
        decode_ms: of(Metric::Decode),
        e2e_ms: of(Metric::E2e),
        e2e_from_due_ms: of(Metric::E2eFromDue),
        connect_ms: connect(selection),
        send_ms: of(Metric::Send),
        first_byte_ms: of(Metric::FirstByte),
    };
    let mut gaps = Collector::new();
    for i in selection.successful() {
        gaps.extend(chunk_gaps_ns(run, i).map(nanos));
    }
    if gaps.is_binned() {
        notes.binned.push("icl_ms");
    }
    latency.icl_ms = gaps.statistic(1e6);
    let failures = failures(selection);
    notes.ttft_ms_p99_failures_as_infinite = adjusted(selection, Metric::Ttft, failures);
    notes.e2e_ms_p99_failures_as_infinite = adjusted(selection, Metric::E2e, failures);
    let mut answers = selection.successful().peekable();
    notes.answers_came_whole = answers.peek().is_some() && answers.all(|i| run.chunks.count(i) < 2);
    (latency, notes)
}

/// Requests that ended by themselves without success.
fn failures(selection: &Selection<'_>) -> u64 {
    let run = selection.run();
    selection.requests().filter(|&i| slo::failed(run, i)).count() as u64
}

/// The 99th percentile in ms if every failure had taken forever; `None` if that is infinite.
fn adjusted(selection: &Selection<'_>, metric: Metric, failures: u64) -> Option<f64> {
    let run = selection.run();
    let mut values: Vec<f64> =
        selection.successful().filter_map(|i| metric.value_ns(run, i)).collect();
    values.sort_unstable_by(f64::total_cmp);
    error_adjusted(&values, failures, 0.99).map(|value| value / 1e6)
}

fn connect(selection: &Selection<'_>) -> Option<Statistic> {
    let mut collector = Collector::new();
    let opened = selection.run().connects.iter().filter(|connect| connect.class == Class::Ok);
    for connect in opened.filter(|connect| selection.holds(connect.start)) {
        collector.extend(span(Some(connect.start), Some(connect.end)).map(nanos));
    }
    collector.statistic(1e6)
}

fn tokens(selection: &Selection<'_>, totals: &Totals) -> Tokens {
    let run = selection.run();
    let lengths = |of: fn(&Run, usize) -> Option<u64>| {
        let mut collector = Collector::new();
        collector.extend(selection.successful().filter_map(|i| of(run, i)).map(count));
        collector.statistic(1.0)
    };
    Tokens {
        prompt_tokens: lengths(super::tokens::prompt),
        completion_tokens: lengths(super::tokens::completion),
        prompt: totals.prompt,
        completion: totals.completion,
        reasoning: totals.reasoning,
        cached: totals.cached,
        source: totals.completion_source.map(|source| source_name(source, "chunks")),
        planned_output: totals.planned_output,
        output_mismatch_requests: totals.output_mismatches,
        output_mismatch_mean_shortfall: mean_shortfall(totals),
    }
}

/// What the answers of another length lacked on average; the others lack nothing.
fn mean_shortfall(totals: &Totals) -> Option<f64> {
    let differ = totals.output_mismatches.filter(|&differ| differ > 0)?;
    let lacked = count(totals.output_shortfall.unsigned_abs());
    let mean = lacked / count(differ);
    Some(if totals.output_shortfall < 0 { -mean } else { mean })
}

const fn source_name(source: Source, own: &'static str) -> &'static str {
    match source {
        Source::Usage => "usage",
        Source::Own => own,
        Source::Mixed => "mixed",
    }
}

fn throughput(
    selection: &Selection<'_>,
    totals: &Totals,
    seconds: Option<f64>,
    in_flight: &[Option<u32>],
) -> Throughput {
    let both = totals.prompt.zip(totals.completion).map(|(a, b)| a.saturating_add(b));
    Throughput {
        requests_per_s: per_second(Some(totals.requests), seconds),
        input_tokens_per_s: per_second(totals.prompt, seconds),
        output_tokens_per_s: per_second(totals.completion, seconds),
        total_tokens_per_s: per_second(both, seconds),
        output_tokens_per_s_per_user: per_user(selection),
        peak_output_tokens_per_s: peak_output_tokens_per_s(selection),
        peak_in_flight: peak_in_flight(selection, in_flight),
    }
}

fn cache(selection: &Selection<'_>) -> Cache {
    let rates = HitRates::of(selection);
    Cache {
        ideal_hit_rate: rates.ideal,
        ideal_set_overlap_rate: rates.ideal_set_overlap,
        ideal_hit_rate_by_capacity: Some(&selection.run().manifest.cache_curve)
            .filter(|curve| {
                let manifest = &selection.run().manifest;
                selection.is_whole() && !curve.is_empty() && !manifest.repeats_turns
            })
            .cloned(),
        reported_hit_rate: rates.reported,
        requests_reporting: rates.reporting,
    }
}

fn goodput(selection: &Selection<'_>, goals: Option<&Goals>, seconds: Option<f64>) -> Slo {
    let Some(goals) = goals.filter(|goals| !goals.is_empty()) else { return Slo::default() };
    let attainment = Attainment::of(selection, goals);
    let share = |n: u64| (attainment.of > 0).then(|| count(n) / count(attainment.of));
    let name = |place: usize| goals.list()[place].kind.name().to_owned();
    Slo {
        goals: goals.list().iter().map(|goal| (goal.kind.name().to_owned(), goal.limit)).collect(),
        met: (attainment.met.iter().enumerate())
            .map(|(place, &n)| (name(place), Met { count: n, share: share(n) }))
            .collect(),
        of_requests: Some(attainment.of),
        cut_off_requests: Some(attainment.cut_off),
        goodput_requests: (attainment.of > 0).then_some(attainment.good),
        goodput_share: share(attainment.good),
        goodput_rps: (attainment.of > 0)
            .then(|| per_second(Some(attainment.good), seconds))
            .flatten(),
        effective_goodput_share: share(attainment.effective),
    }
}

impl Outcomes {
    /// Requests that ended by themselves without success.
    #[must_use]
    pub fn failed(&self) -> u64 {
        let fine =
            |outcome| matches!(outcome, Outcome::Ok | Outcome::Cancelled | Outcome::NeverSent);
        Outcome::ALL.into_iter().filter(|&it| !fine(it)).map(|outcome| self.count(outcome)).sum()
    }

    /// Requests that ended by themselves, well or not.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.ok + self.failed()
    }

    /// The share of those that ended by themselves without success; `None` if none ended.
    #[must_use]
    pub fn failed_share(&self) -> Option<f64> {
        let ended = self.ended();
        (ended > 0).then(|| count(self.failed()) / count(ended))
    }

    /// Requests that were sent and are in flight when the log ends, or whose end was lost. With
    /// those that ended, were cancelled or never left, those not reached when the log ends and
    /// those lost with a part of it, they are all that were planned.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.by_class.get(End::Open.name()).copied().unwrap_or(0)
    }

    /// The count of an outcome.
    #[must_use]
    pub const fn count(&self, outcome: Outcome) -> u64 {
        match outcome {
            Outcome::Ok => self.ok,
            Outcome::Incomplete => self.incomplete,
            Outcome::HttpError => self.http_error,
            Outcome::ConnectError => self.connect_error,
            Outcome::Timeout => self.timeout,
            Outcome::Disconnected => self.disconnected,
            Outcome::ProtocolError => self.protocol_error,
            Outcome::StreamError => self.stream_error,
            Outcome::Cancelled => self.cancelled,
            Outcome::NeverSent => self.never_sent,
        }
    }

    const fn count_mut(&mut self, outcome: Outcome) -> &mut u64 {
        match outcome {
            Outcome::Ok => &mut self.ok,
            Outcome::Incomplete => &mut self.incomplete,
            Outcome::HttpError => &mut self.http_error,
            Outcome::ConnectError => &mut self.connect_error,
            Outcome::Timeout => &mut self.timeout,
            Outcome::Disconnected => &mut self.disconnected,
            Outcome::ProtocolError => &mut self.protocol_error,
            Outcome::StreamError => &mut self.stream_error,
            Outcome::Cancelled => &mut self.cancelled,
            Outcome::NeverSent => &mut self.never_sent,
        }
    }
}

impl Latency {
    /// The statistic of a metric.
    #[must_use]
    pub const fn of(&self, metric: Metric) -> Option<Statistic> {
        match metric {
            Metric::Ttft => self.ttft_ms,
            Metric::TtftFromDue => self.ttft_from_due_ms,
            Metric::FirstOutputToken => self.time_to_first_output_token_ms,
            Metric::Ttst => self.ttst_ms,
            Metric::Itl => self.itl_ms,
            Metric::Ntpot => self.ntpot_ms,
            Metric::Decode => self.decode_ms,
            Metric::E2e => self.e2e_ms,
            Metric::E2eFromDue => self.e2e_from_due_ms,
            Metric::Send => self.send_ms,
            Metric::FirstByte => self.first_byte_ms,
        }
    }
}
