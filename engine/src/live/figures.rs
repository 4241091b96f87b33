//! A run's numbers while it goes, from the records that its log is made of.
//!
//! The thread that writes the log adds up each block before it seals it, so the numbers are those
//! that a report has later: the same facts, by the same formulas ([`onbeat_shared::metrics`]). What
//! is kept of a request is forgotten with its end. The threads that take and that show share a
//! lock, and no pacing core knows of it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onbeat_shared::log::record::{Record, UNKNOWN_TOKENS, Usage};
use onbeat_shared::log::{BlockBuffer, Class};
use onbeat_shared::units::{RequestIndex, RunNanos};

use super::histogram::{Histogram, LATENCY, LATENESS, TOKEN_GAP};
use crate::clock::monotonic_ns;
use crate::plan::Plan;

/// Not known yet.
const NEVER: i64 = i64::MAX;

/// The numbers of one run, shared between who adds them up and who shows them.
#[derive(Debug)]
pub struct Figures {
    tally: Mutex<Tally>,
    /// The clock's reading at the schedule's zero.
    zero_ns: AtomicI64,
    /// The run's time at its end.
    end_ns: AtomicI64,
}

/// What is known of a run before it begins.
#[derive(Clone, Debug, Default)]
pub(super) struct About {
    pub(super) run_id: String,
    pub(super) trace: String,
    pub(super) mode: String,
    pub(super) model: String,
    /// Requests planned, where that is known.
    pub(super) planned: Option<u64>,
    plan: Option<Arc<Plan>>,
    /// When requests are due, ascending.
    dues: Vec<i64>,
    /// The plan's rows are templates of what users send.
    users: bool,
}

/// Sums so far.
#[derive(Clone, Debug)]
pub(super) struct Sums {
    /// Requests that left without a due instant in the plan.
    pub(super) undue_sent: u64,
    pub(super) sent: u64,
    /// By class.
    pub(super) done: Vec<(Class, u64)>,
    pub(super) prompt_tokens: u64,
    pub(super) completion_tokens: u64,
    pub(super) cached_tokens: u64,
    pub(super) reasoning_tokens: u64,
    pub(super) content_events: u64,
    pub(super) sent_bytes: u64,
    pub(super) received_bytes: u64,
    pub(super) connections: u64,
    pub(super) stalls: u64,
    pub(super) stalled_ns: u64,
    pub(super) lost_records: u64,
    pub(super) ttft: Histogram,
    pub(super) token_gap: Histogram,
    pub(super) latency: Histogram,
    pub(super) lateness: Histogram,
}

#[derive(Debug)]
struct Tally {
    about: Arc<About>,
    sums: Sums,
    open: HashMap<RequestIndex, Open>,
}

/// A request that has not ended.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    /// The plan's row that it is made from.
    row: Option<u32>,
    sent: Option<i64>,
    first_token: Option<i64>,
    last_token: Option<i64>,
    events: u64,
    event_tokens: u64,
    prompt: Option<u32>,
    completion: Option<u32>,
    cached: Option<u32>,
    reasoning: Option<u32>,
}

/// A moment's numbers.
#[derive(Clone, Debug)]
pub(super) struct Moment {
    pub(super) about: Arc<About>,
    pub(super) sums: Sums,
    pub(super) due: u64,
    pub(super) in_flight: u64,
    /// Seconds since zero; `None` before it.
    pub(super) elapsed_s: Option<f64>,
    pub(super) finished: bool,
}

impl Default for Figures {
    fn default() -> Self {
        Self::new()
    }
}

impl Figures {
    /// Of a run that has not begun.
    #[must_use]
    pub fn new() -> Self {
        let about = Arc::new(About::default());
        Self {
            tally: Mutex::new(Tally { about, sums: Sums::new(), open: HashMap::new() }),
            zero_ns: AtomicI64::new(NEVER),
            end_ns: AtomicI64::new(NEVER),
        }
    }

    /// Of a run of which only the names are known.
    #[cfg(test)]
    pub(super) fn named(names: [&str; 4]) -> Self {
        let figures = Self::new();
        let [run_id, trace, mode, model] = names.map(str::to_owned);
        let about = About { run_id, trace, mode, model, ..About::default() };
        figures.lock().about = Arc::new(about);
        figures
    }

    /// Says what is going to run; `users`: the plan's rows are templates of what users send.
    pub fn announce(&self, plan: &Arc<Plan>, users: bool, names: [&str; 4]) {
        let [run_id, trace, mode, model] = names.map(str::to_owned);
        let rows = &plan.rows;
        let mut dues: Vec<i64> = match users {
            true => Vec::new(),
            false => rows.iter().filter_map(|row| row.due).map(|due| due.0).collect(),
        };
        dues.sort_unstable();
        let planned = (!users).then_some(rows.len() as u64);
        let plan = Some(Arc::clone(plan));
        let about = About { run_id, trace, mode, model, planned, plan, dues, users };
        self.lock().about = Arc::new(about);
    }

    /// The clock's reading at zero is known.
    pub fn begin(&self, zero_ns: i64) {
        self.zero_ns.store(zero_ns, Ordering::Release);
    }

    /// The run is over, at so many nanoseconds of its own clock; its last records have been taken.
    pub fn end(&self, time_ns: i64) {
        self.end_ns.store(time_ns, Ordering::Release);
    }

    /// Adds up a block's records.
    pub fn take(&self, block: &BlockBuffer) {
        let mut tally = self.lock();
        block.records().flatten().for_each(|record| tally.take(&record));
    }

    /// The numbers as of now.
    pub(super) fn moment(&self) -> Moment {
        let zero_ns = self.zero_ns.load(Ordering::Acquire);
        let end_ns = self.end_ns.load(Ordering::Acquire);
        let finished = end_ns != NEVER;
        let running = || monotonic_ns().saturating_sub(zero_ns);
        let elapsed_ns = (zero_ns != NEVER).then(|| if finished { end_ns } else { running() });
        let (about, sums, in_flight) = {
            let tally = self.lock();
            let in_flight = tally.open.values().filter(|open| open.sent.is_some()).count();
            (Arc::clone(&tally.about), tally.sums.clone(), in_flight as u64)
        };
        let come = elapsed_ns.map_or(0, |now| about.dues.partition_point(|&due| due <= now));
        Moment {
            due: come as u64 + sums.undue_sent,
            in_flight,
            elapsed_s: elapsed_ns.filter(|&ns| ns >= 0).map(|ns| ns as f64 / 1e9),
            finished,
            about,
            sums,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Tally> {
        // Numbers that a panic left half added are numbers all the same.
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sums {
    fn new() -> Self {
        Self {
            undue_sent: 0,
            sent: 0,
            done: Class::ALL.iter().map(|&class| (class, 0)).collect(),
            prompt_tokens: 0,
            completion_tokens: 0,
            cached_tokens: 0,
            reasoning_tokens: 0,
            content_events: 0,
            sent_bytes: 0,
            received_bytes: 0,
            connections: 0,
            stalls: 0,
            stalled_ns: 0,
            lost_records: 0,
            ttft: Histogram::new(LATENCY),
            token_gap: Histogram::new(TOKEN_GAP),
            latency: Histogram::new(LATENCY),
            lateness: Histogram::new(LATENESS),
        }
    }
}

impl Tally {
    fn take(&mut self, record: &Record) {
        match *record {
            Record::Step { request, template, .. } => {
                self.open.entry(request).or_default().row = Some(template);
            }
            Record::Dispatch { request, sent, ready, due, .. } => {
                self.dispatch(request, sent, due.map_or(ready, |due| due.max(ready)));
            }
            Record::SentEnd { bytes, .. } => self.sums.sent_bytes += bytes,
            Record::Chunk { request, time, tokens, .. } => {
                self.events(request, time, 1, u64::from(tokens));
            }
            Record::Chunks { request, time, together } => {
                let events = together.len() as u64;
                self.events(request, time, events, events);
            }
            Record::Usage { request, usage, .. } => {
                if let Some(open) = self.open.get_mut(&request) {
                    open.report(usage);
                }
            }
            Record::Done { request, time, class, response_bytes, .. } => {
                self.done(request, time, class, response_bytes);
            }
            Record::Connect { class: Class::Ok, .. } => self.sums.connections += 1,
            Record::Stall { length_ns, .. } => {
                self.sums.stalls += 1;
                self.sums.stalled_ns = self.sums.stalled_ns.saturating_add(length_ns);
            }
            Record::Lost { count, .. } => self.sums.lost_records += count,
            Record::Connect { .. }
            | Record::FirstByte { .. }
            | Record::FirstEvent { .. }
            | Record::Text { .. }
            | Record::Anchor { .. }
            | Record::User { .. }
            | Record::Assessment { .. }
            | Record::Scraped(_) => {}
        }
    }

    fn dispatch(&mut self, request: RequestIndex, sent: RunNanos, intended: RunNanos) {
        let planned_due = !self.about.users && self.about.has_due(request);
        let open = self.open.entry(request).or_default();
        // Of two sendings the first counts.
        if open.sent.is_some() {
            return;
        }
        open.sent = Some(sent.0);
        self.sums.sent += 1;
        self.sums.lateness.add(sent.0.saturating_sub(intended.0) as f64);
        self.sums.undue_sent += u64::from(!planned_due);
    }

    fn events(&mut self, request: RequestIndex, time: RunNanos, events: u64, tokens: u64) {
        self.sums.content_events += events;
        let open = self.open.entry(request).or_default();
        open.first_token.get_or_insert(time.0);
        open.last_token = Some(time.0);
        open.events += events;
        open.event_tokens += tokens;
    }

    fn done(&mut self, request: RequestIndex, time: RunNanos, class: Class, bytes: u64) {
        let open = self.open.remove(&request).unwrap_or_default();
        if let Some((_, count)) = self.sums.done.iter_mut().find(|(known, _)| *known == class) {
            *count += 1;
        }
        self.sums.received_bytes = self.sums.received_bytes.saturating_add(bytes);
        if class == Class::Ok {
            self.succeeded(request, &open, time.0);
        }
    }

    fn succeeded(&mut self, request: RequestIndex, open: &Open, done: i64) {
        let sums = &mut self.sums;
        let completion = open.completion();
        sums.prompt_tokens += open.prompt.or(self.about.prompt(request, open)).map_or(0, u64::from);
        sums.completion_tokens += completion.unwrap_or(0);
        sums.cached_tokens += open.cached.map_or(0, u64::from);
        sums.reasoning_tokens += open.reasoning.map_or(0, u64::from);
        let Some(sent) = open.sent else { return };
        sums.latency.add(open.last_token.unwrap_or(done).saturating_sub(sent) as f64);
        let Some((first, last)) = open.first_token.zip(open.last_token) else { return };
        sums.ttft.add(first.saturating_sub(sent) as f64);
        if let Some(tokens) = completion.filter(|&tokens| tokens >= 2 && open.events >= 2) {
            // Counts stay far below 2^53, where doubles are exact.
            sums.token_gap.add(last.saturating_sub(first) as f64 / (tokens - 1) as f64);
        }
    }
}

impl About {
    /// Whether the plan itself says when a request is due: then the clock counts it.
    fn has_due(&self, request: RequestIndex) -> bool {
        let row = self.plan.as_ref().and_then(|plan| plan.rows.get(request.as_usize()));
        row.is_some_and(|row| row.due.is_some())
    }

    /// The recorded length of a request's prompt.
    fn prompt(&self, request: RequestIndex, open: &Open) -> Option<u32> {
        let row = if self.users { open.row? as usize } else { request.as_usize() };
        self.plan.as_ref()?.rows.get(row)?.input_tokens
    }
}

impl Open {
    /// The last count that says something wins, field by field.
    fn report(&mut self, usage: Usage) {
        for (own, told) in [
            (&mut self.prompt, usage.prompt_tokens),
            (&mut self.completion, usage.completion_tokens),
            (&mut self.cached, usage.cached_tokens),
            (&mut self.reasoning, usage.reasoning_tokens),
        ] {
            if told != UNKNOWN_TOKENS {
                *own = Some(told);
            }
        }
    }

    /// Completion tokens: reported, else counted; `None` if neither.
    fn completion(&self) -> Option<u64> {
        let counted = Some(self.event_tokens).filter(|_| self.events > 0);
        self.completion.map(u64::from).or(counted)
    }
}

#[cfg(test)]
mod tests {
    use onbeat_shared::log::block::BLOCK_RECORDS;
    use onbeat_shared::log::{Decoder, Item, PlanRow, sample, sample_users};
    use onbeat_shared::metrics::{self, ReportOptions};
    use onbeat_shared::run::{End, Run};

    use super::*;
    use crate::plan::{LeftOut, PlanMode};

    /// A plan of the rows that a log has.
    fn plan_of(rows: Vec<PlanRow>) -> Arc<Plan> {
        Arc::new(Plan {
            rows,
            record_of: Vec::new(),
            copy_of: Vec::new(),
            copies: 1,
            cancel_after: Vec::new(),
            recorded: Vec::new(),
            sessions: Vec::new(),
            mode: PlanMode::OpenLoop,
            left_out: LeftOut::default(),
            warnings: Vec::new(),
            part: None,
        })
    }

    /// What the writer's thread would have been given of a log.
    fn taken(log: &[u8], users: bool) -> Figures {
        let figures = Figures::new();
        let rows = Decoder::new(log).expect("a log").filter_map(|item| match item {
            Item::Plan(rows) => Some(rows.iter().collect::<Vec<_>>()),
            _ => None,
        });
        figures.announce(&plan_of(rows.flatten().collect()), users, ["", "", "", ""]);
        for item in Decoder::new(log).expect("a log") {
            let Item::Records(records) = item else { continue };
            let mut block = BlockBuffer::new();
            assert!(records.len() <= BLOCK_RECORDS);
            for record in records.iter().flatten() {
                block.push(&record).expect("a block's records fit a block");
            }
            figures.take(&block);
        }
        figures
    }

    fn near(found: f64, wanted: f64) {
        assert!((found - wanted).abs() <= 1e-9 * wanted.abs().max(1.0), "{found}, not {wanted}");
    }

    /// Everything that both the figures and a report say of a log.
    fn says_what_its_report_says(log: &[u8], users: bool) {
        let run = Run::read(log).expect("a log");
        let report = metrics::report(&run, &ReportOptions::default());
        let moment = taken(log, users).moment();
        let sums = &moment.sums;
        assert_eq!(sums.sent, report.schedule.sent);
        for &(class, count) in &sums.done {
            let reported = report.outcomes.by_class.get(class.name()).copied().unwrap_or(0);
            let wanted = if class == Class::Ok { report.outcomes.ok } else { reported };
            assert_eq!(count, wanted, "{}", class.name());
        }
        assert_eq!(Some(sums.prompt_tokens), report.tokens.prompt);
        assert_eq!(Some(sums.completion_tokens), report.tokens.completion);
        assert_eq!(sums.cached_tokens, report.tokens.cached.unwrap_or(0));
        for (histogram, statistic, unit) in [
            (&sums.ttft, report.latency.ttft_ms, 1e3),
            (&sums.token_gap, report.latency.itl_ms, 1e3),
            (&sums.latency, report.latency.e2e_ms, 1e3),
            (&sums.lateness, report.schedule.lateness_us, 1e6),
        ] {
            let statistic = statistic.expect("there are some");
            assert_eq!(histogram.count(), statistic.count);
            near(histogram.sum_s() * unit, statistic.mean * statistic.count as f64);
        }
        let open = (0..run.requests.len()).filter(|&i| run.requests.end(i) == End::Open).count();
        assert_eq!(moment.in_flight, open as u64);
        assert_eq!((moment.finished, moment.elapsed_s), (false, None));
        let due = if users { report.schedule.sent } else { 0 };
        assert_eq!(moment.due, due, "before zero nothing is due but what has left without a due");
    }

    #[test]
    fn sums_are_the_report_s() {
        says_what_its_report_says(&sample::log(6, 400), false);
        says_what_its_report_says(&sample_users::log(6, 8), true);
    }

    #[test]
    fn what_is_due_is_told_by_the_clock_and_stands_still_at_the_end() {
        let run = Run::read(&sample::log(6, 40)).expect("a log");
        let plan = plan_of(run.plan.to_vec());
        let figures = Figures::new();
        figures.announce(&plan, false, ["", "", "", ""]);
        assert_eq!(figures.moment().due, 0, "nothing is due before zero");
        figures.begin(monotonic_ns() - 3_600_000_000_000);
        assert_eq!(figures.moment().due, 40);
        let fifth = run.plan[4].due.expect("it has one").0;
        figures.end(fifth);
        let moment = figures.moment();
        let wanted = run.plan.iter().filter(|row| row.due.is_some_and(|due| due.0 <= fifth));
        assert_eq!((moment.due, moment.finished), (wanted.count() as u64, true));
    }
}
