//! Makes logs in memory, for tests of everything that reads them.
//!
//! [`log`] gives a small plausible run: sessions, bursts, host stalls, failures, answers without
//! usage. [`Sample`] builds a run fact by fact, for tests that know the right answer. Both are
//! deterministic and use the real encoder, so they also show how a writer is to use it. Not part of
//! the public interface, and no statement about how servers behave.

use std::collections::BTreeMap;

pub use super::sample_prefixes::prefix_rows;
pub use super::sample_scraped::{scraped, with_scrapes};
use super::{
    BlockBuffer, ChunkKind, Class, Closing, DoneFlags, FinishReason, Footer, Host, HostPart,
    Manifest, Merged, Pacing, PlanRow, PrefixRows, Record, RecordedRow, TraceSource, Usage,
    file_header_of, footer_block, manifest_block, number_blocks, plan_blocks, prefix_blocks,
    recorded_blocks, session_blocks,
};
use crate::dice::Dice;
use crate::units::{CoreIndex, RequestIndex, RunNanos, SessionIndex};

const MILLI: i64 = 1_000_000;
const MICRO: i64 = 1_000;
/// Length of the assessment periods of samples.
pub(super) const PERIOD_NS: i64 = 5_000 * MILLI;
/// 2026-01-02 03:04:05 UTC.
const STARTED_UNIX_NS: u64 = 1_767_323_045_000_000_000;

/// A run as facts, before it is encoded.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The manifest; `planned` is set when encoding.
    pub manifest: Manifest,
    /// The plan.
    pub plan: Vec<PlanRow>,
    /// Session names.
    pub sessions: Vec<String>,
    /// Records with their core, in any order.
    pub records: Vec<(CoreIndex, Record)>,
    /// What the trace recorded of answers.
    pub recorded: Vec<RecordedRow>,
    /// Which prompts begin alike.
    pub prefixes: PrefixRows,
    /// Of a shard's log, the numbers of its requests in the whole plan.
    pub numbers: Vec<u32>,
    /// Whether the log is closed.
    pub closed: bool,
    /// Why it was given up.
    pub given_up: Option<String>,
    /// Whether the user stopped the run.
    pub interrupted: bool,
}

impl Default for Sample {
    fn default() -> Self {
        Self::new()
    }
}

impl Sample {
    /// A run of which nothing is planned.
    #[must_use]
    pub fn new() -> Self {
        Self {
            manifest: manifest(),
            plan: Vec::new(),
            sessions: vec!["session_000000".to_owned()],
            records: Vec::new(),
            recorded: Vec::new(),
            prefixes: PrefixRows::default(),
            numbers: Vec::new(),
            closed: true,
            given_up: None,
            interrupted: false,
        }
    }

    /// Plans a request on core 0, due at an instant in ns.
    ///
    /// # Panics
    /// If there are more requests than a log can number.
    pub fn plan(&mut self, due: i64) -> RequestIndex {
        let request = RequestIndex(u32::try_from(self.plan.len()).expect("a small sample"));
        self.plan.push(PlanRow {
            request,
            session: SessionIndex(0),
            turn: request.0,
            core: CoreIndex(0),
            target: 0,
            row: u64::from(request.0) + 1,
            due: Some(RunNanos(due)),
            after: None,
            source: 0,
            think_ns: None,
            input_tokens: Some(100),
            max_tokens: Some(10),
            min_tokens: None,
            ideal_cached_tokens: None,
            ideal_set_tokens: None,
            blocks: 0,
            body_bytes: std::num::NonZero::new(700),
        });
        request
    }

    /// Plans a request and sends it, both at `sent`.
    pub fn send(&mut self, sent: i64) -> RequestIndex {
        let request = self.plan(sent);
        self.dispatch(request, sent, sent);
        request
    }

    /// Sends a planned request that was ready at an instant.
    pub fn dispatch(&mut self, request: RequestIndex, ready: i64, sent: i64) {
        let row = self.plan[request.as_usize()];
        let (sent, ready) = (RunNanos(sent), RunNanos(ready));
        let (due, target) = (row.due, row.target);
        let reused = request.0 > 0;
        self.push(row.core, Record::Dispatch { request, sent, ready, due, target, reused });
    }

    /// Content events of one token each, at these instants.
    pub fn chunks(&mut self, request: RequestIndex, times: &[i64]) {
        let core = self.plan[request.as_usize()].core;
        for &time in times {
            let (time, kind) = (RunNanos(time), ChunkKind::TEXT);
            self.push(core, Record::Chunk { request, time, kind, tokens: 1, bytes: 5 });
        }
    }

    /// The server's counts; `None` where it does not say.
    pub fn usage(&mut self, request: RequestIndex, time: i64, counts: [Option<u32>; 3]) {
        let core = self.plan[request.as_usize()].core;
        let [prompt, completion, cached] =
            counts.map(|count| count.unwrap_or(super::UNKNOWN_TOKENS));
        let usage = Usage {
            prompt_tokens: prompt,
            completion_tokens: completion,
            cached_tokens: cached,
            reasoning_tokens: super::UNKNOWN_TOKENS,
        };
        self.push(core, Record::Usage { request, time: RunNanos(time), usage });
    }

    /// The request's end.
    pub fn done(&mut self, request: RequestIndex, time: i64, class: Class) {
        let core = self.plan[request.as_usize()].core;
        let (status, finish) = match class {
            Class::Ok => (Some(200), FinishReason::Length),
            Class::Http429 => (Some(429), FinishReason::Unknown),
            _ => (None, FinishReason::Unknown),
        };
        let (time, flags) = (RunNanos(time), DoneFlags::default());
        let response_bytes = 0;
        self.push(
            core,
            Record::Done { request, time, class, status, response_bytes, finish, flags },
        );
    }

    /// Makes it a run that was merged of machines with one core each, `node-0` and so on; machine
    /// `k` sent on the core `cores[k]`.
    pub fn merge(&mut self, cores: &[u16]) {
        let host = |(shard, &first_core): (u32, &u16)| HostPart {
            shard,
            first_core,
            cores: vec![0],
            host: Host { hostname: format!("node-{shard}"), ..Host::default() },
            ..HostPart::default()
        };
        let hosts: Vec<HostPart> = (0..).zip(cores).map(host).collect();
        let shards = u32::try_from(hosts.len()).expect("a few");
        self.manifest.merged = Some(Box::new(Merged { shards, hosts, ..Merged::default() }));
    }

    /// Any record.
    pub fn push(&mut self, core: CoreIndex, record: Record) {
        self.records.push((core, record));
    }

    /// The log's bytes.
    ///
    /// # Panics
    /// If there are more requests than a log can number.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut manifest = self.manifest.clone();
        manifest.planned = u32::try_from(self.plan.len()).expect("a small sample");
        let mut out = file_header_of(&manifest).to_vec();
        out.extend(manifest_block(&manifest));
        out.extend(number_blocks(&self.numbers).flatten());
        out.extend(plan_blocks(self.plan.iter().copied()).flatten());
        out.extend(session_blocks(&self.sessions).flatten());
        out.extend(recorded_blocks(self.recorded.iter().copied()).flatten());
        out.extend(prefix_blocks(&self.prefixes).flatten());
        let mut records = self.records.clone();
        records.push((
            CoreIndex::CONDUCTOR,
            Record::Anchor {
                time: RunNanos(0),
                unix_ns: manifest.started_unix_ns,
                monotonic_ns: 86_400_000_000_000,
            },
        ));
        let sendings = sendings(&records);
        records.sort_by_key(|(core, record)| (*core, pushed_at(record, &sendings)));
        for core in records.chunk_by(|a, b| a.0 == b.0) {
            write_core(&mut out, core);
        }
        if self.closed {
            out.extend(footer_block(&self.footer(&records, manifest.started_unix_ns)));
        }
        out
    }

    fn footer(&self, records: &[(CoreIndex, Record)], started_unix_ns: u64) -> Footer {
        let ends = records.iter().filter(|(_, record)| matches!(record, Record::Done { .. }));
        let ends = ends.count();
        let last = records.iter().map(|(_, record)| written_at(record).0).max().unwrap_or(0);
        Footer {
            interrupted: self.interrupted,
            complete: ends == self.plan.len(),
            records: records.len() as u64,
            requests_done: ends as u64,
            lost_records: 0,
            closing: Closing {
                time_ns: last,
                unix_ns: started_unix_ns.saturating_add_signed(last),
            },
            cores: Vec::new(),
            trace_sha256: None,
            given_up: self.given_up.clone(),
        }
    }
}

/// A plausible run of `requests` requests; the same seed gives the same bytes.
///
/// Two cores, sessions of one to six turns, about 50 requests a second, some of them in bursts; two
/// per cent of the answers fail, four per cent report no usage, ten per cent no cached tokens; each
/// core has a host stall about every two seconds.
#[must_use]
pub fn log(seed: u64, requests: u32) -> Vec<u8> {
    sample(seed, requests).bytes()
}

/// The run behind [`log`], to be changed before it is encoded.
#[must_use]
pub fn sample(seed: u64, requests: u32) -> Sample {
    let mut dice = Dice(seed);
    let mut sample = Sample::new();
    sample.manifest.seed = seed;
    sample.manifest.trace.rows = u64::from(requests);
    plan_sessions(&mut sample, &mut dice, requests);
    sample.prefixes = super::sample_prefixes::of_sessions(&sample.plan);
    connects_and_stalls(&mut sample, &mut dice);
    let stalls = StallEnds::of(&sample.records);
    let mut ends = vec![i64::MIN; sample.plan.len()];
    for i in 0..sample.plan.len() {
        let row = sample.plan[i];
        let ready = row.after.map_or(i64::MIN, |after| ends[after.as_usize()]);
        ends[i] = exchange(&mut sample, &mut dice, &stalls, row, ready);
    }
    sample
}

fn plan_sessions(sample: &mut Sample, dice: &mut Dice, requests: u32) {
    sample.sessions.clear();
    // Per open session: index, turns so far, turns in all, last request.
    let mut open: Vec<(u32, u32, u32, RequestIndex)> = Vec::new();
    let mut due = 0;
    for i in 0..requests {
        let continues = !open.is_empty() && dice.below(3) > 0;
        let request = sample.plan(due);
        let row = &mut sample.plan[request.as_usize()];
        let session = if continues {
            let place = usize::try_from(dice.below(open.len() as u64)).expect("a place");
            let (session, turn, turns, last) = &mut open[place];
            *turn += 1;
            row.turn = *turn;
            row.after = Some(*last);
            *last = request;
            let (session, over) = (*session, *turn + 1 >= *turns);
            if over {
                open.swap_remove(place);
            }
            session
        } else {
            let session = u32::try_from(sample.sessions.len()).expect("a small sample");
            sample.sessions.push(format!("session_{session:06}"));
            row.turn = 0;
            open.push((session, 0, dice.between(1, 6), request));
            session
        };
        row.session = SessionIndex(session);
        row.core = CoreIndex(u16::from(session % 2 == 1));
        let prompt = 500 * (row.turn + 1) + dice.between(50, 900);
        row.input_tokens = Some(prompt);
        row.max_tokens = Some(dice.between(4, 60));
        row.ideal_cached_tokens = Some(if row.turn == 0 { 64 } else { prompt / 10 * 7 });
        row.ideal_set_tokens = row.ideal_cached_tokens.map(|tokens| tokens + 16);
        row.blocks = prompt.div_ceil(16);
        row.body_bytes = std::num::NonZero::new(u64::from(prompt) * 5 + 180);
        // One request in eight shares its instant with the next.
        if i % 8 != 3 {
            due += i64::from(dice.between(1, 39)) * MILLI;
        }
    }
}

fn connects_and_stalls(sample: &mut Sample, dice: &mut Dice) {
    let span = sample.plan.last().and_then(|row| row.due).map_or(0, |due| due.0);
    for core in [CoreIndex(0), CoreIndex(1)] {
        for connection in 0..8 {
            let start = -500 * MILLI + i64::from(connection) * MILLI;
            let end = start + i64::from(dice.between(80, 400)) * MICRO;
            let (start, end) = (RunNanos(start), RunNanos(end));
            let (target, class, errno) = (0, Class::Ok, 0);
            sample.push(core, Record::Connect { connection, start, end, target, class, errno });
        }
        let mut at = i64::from(dice.between(200, 900)) * MILLI;
        while at < span {
            let length_ns = u64::from(dice.between(60, 3_000)) * 1_000;
            sample.push(core, Record::Stall { start: RunNanos(at), length_ns });
            at += i64::from(dice.between(1_000, 3_000)) * MILLI;
        }
    }
}

/// From when to when each core lay in a host stall, by time.
struct StallEnds(BTreeMap<CoreIndex, Vec<(i64, i64)>>);

impl StallEnds {
    /// Each core's must be in the order of time, none of them beginning in another.
    fn of(records: &[(CoreIndex, Record)]) -> Self {
        let mut stalls: BTreeMap<CoreIndex, Vec<(i64, i64)>> = BTreeMap::new();
        for &(core, ref record) in records {
            if let Record::Stall { start, length_ns } = *record {
                let end = start.0.saturating_add_unsigned(length_ns);
                stalls.entry(core).or_default().push((start.0, end));
            }
        }
        Self(stalls)
    }

    /// The end of the one that a core lies in at an instant.
    fn end(&self, core: CoreIndex, at: i64) -> Option<i64> {
        let own = self.0.get(&core)?;
        let begun = own.partition_point(|&(start, _)| start <= at);
        own[..begun].last().map(|&(_, end)| end).filter(|&end| at < end)
    }
}

/// One request's life; gives the instant of its end.
fn exchange(
    sample: &mut Sample,
    dice: &mut Dice,
    stalls: &StallEnds,
    row: PlanRow,
    ready: i64,
) -> i64 {
    let request = row.request;
    let due = row.due.map_or(ready, |due| due.0);
    let intended = due.max(ready);
    let stalled = stalls.end(row.core, intended);
    let sent = stalled.unwrap_or(intended) + i64::from(dice.between(2, 28)) * MICRO;
    sample.dispatch(request, ready.max(due), sent);
    let sent_end = RunNanos(sent + i64::from(dice.between(15, 60)) * MICRO);
    let body_bytes = row.body_bytes.map_or(0, std::num::NonZero::get);
    let (bytes, connection) = (body_bytes + 300, request.0 % 8);
    sample.push(row.core, Record::SentEnd { request, time: sent_end, bytes, connection });
    let prompt = row.input_tokens.unwrap_or(0);
    let cached = row.ideal_cached_tokens.unwrap_or(0);
    let first = sent_end.0
        + i64::from(prompt - cached) * 40 * MICRO
        + i64::from(dice.between(8, 30)) * MILLI;
    if dice.below(50) == 0 {
        return failure(sample, dice, request, row.core, first);
    }
    let time = RunNanos(first - i64::from(dice.between(20, 90)) * MICRO);
    sample.push(row.core, Record::FirstByte { request, time });
    sample.push(row.core, Record::FirstEvent { request, time });
    let tokens = row.max_tokens.unwrap_or(1);
    let step = i64::from(dice.between(7, 14)) * MILLI;
    let mut times = Vec::new();
    let mut at = first;
    for _ in 0..tokens {
        times.push(at);
        at += step + i64::from(dice.between(0, 900)) * MICRO;
    }
    sample.chunks(request, &times);
    let end = at - step + MILLI;
    if dice.below(25) > 0 {
        let cached = (dice.below(10) > 0).then_some(cached.saturating_sub(dice.between(0, 32)));
        sample.usage(request, end, [Some(prompt), Some(tokens), cached]);
    }
    sample.done(request, end, Class::Ok);
    end
}

fn failure(
    sample: &mut Sample,
    dice: &mut Dice,
    request: RequestIndex,
    core: CoreIndex,
    time: i64,
) -> i64 {
    let class = [Class::Http429, Class::ResetMidAnswer, Class::FirstByteTimeout]
        [usize::try_from(dice.below(3)).expect("below three")];
    match class {
        Class::Http429 => {
            let mut bytes = [0; 24];
            let words = b"slow down";
            bytes[..words.len()].copy_from_slice(words);
            sample.push(core, Record::Text { request, part: 0, used: 9, bytes });
        }
        Class::ResetMidAnswer => sample.chunks(request, &[time - MILLI, time]),
        _ => {}
    }
    sample.done(request, time, class);
    time
}

fn write_core(out: &mut Vec<u8>, records: &[(CoreIndex, Record)]) {
    let Some(&(core, _)) = records.first() else { return };
    let mut block = BlockBuffer::new();
    let mut sequence = 0;
    let mut second = i64::MIN;
    for (_, record) in records {
        // As a core does: hand over once a second and when full.
        let now = written_at(record).0.div_euclid(1_000 * MILLI);
        let due = now != second && !block.is_empty();
        second = now;
        if due || block.push(record).is_err() {
            out.extend_from_slice(block.seal(core, sequence));
            sequence += 1;
            block.clear();
            block.push(record).expect("an empty block has room");
        }
    }
    if !block.is_empty() {
        out.extend_from_slice(block.seal(core, sequence));
    }
}

/// When each request was sent or, if it never was, ended.
fn sendings(records: &[(CoreIndex, Record)]) -> BTreeMap<RequestIndex, RunNanos> {
    let mut sendings = BTreeMap::new();
    for (_, record) in records {
        if let Record::Dispatch { request, sent: time, .. } | Record::Done { request, time, .. } =
            *record
        {
            let known = sendings.entry(request).or_insert(time);
            *known = time.min(*known);
        }
    }
    sendings
}

/// When a core would have written the record, of any kind.
fn pushed_at(record: &Record, sendings: &BTreeMap<RequestIndex, RunNanos>) -> (RunNanos, bool) {
    match record {
        Record::Step { request, .. } => {
            (sendings.get(request).copied().unwrap_or(RunNanos(0)), false)
        }
        Record::Assessment { period, .. } => {
            (RunNanos(i64::from(*period).saturating_mul(PERIOD_NS)), true)
        }
        _ => (written_at(record), true),
    }
}

/// When a core would have written the record.
fn written_at(record: &Record) -> RunNanos {
    match *record {
        Record::Dispatch { sent, .. } => sent,
        Record::SentEnd { time, .. }
        | Record::FirstByte { time, .. }
        | Record::FirstEvent { time, .. }
        | Record::Chunk { time, .. }
        | Record::Chunks { time, .. }
        | Record::Usage { time, .. }
        | Record::Done { time, .. }
        | Record::Lost { time, .. }
        | Record::Anchor { time, .. } => time,
        Record::Stall { start, length_ns } => RunNanos(start.0.saturating_add_unsigned(length_ns)),
        Record::Connect { end, .. } => end,
        Record::User { time, .. } => time,
        Record::Text { .. } | Record::Step { .. } | Record::Assessment { .. } => RunNanos(0),
        Record::Scraped(fact) => fact.written_at(),
    }
}

fn manifest() -> Manifest {
    Manifest {
        run_id: "sample".to_owned(),
        onbeat_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_ns: STARTED_UNIX_NS,
        mode: "open_loop".to_owned(),
        trace: TraceSource {
            name: "sample.jsonl".to_owned(),
            sha256: "0".repeat(64),
            format: "bailian_trace".to_owned(),
            rows: 0,
            block_tokens: Some(16),
            files: Vec::new(),
        },
        config: serde_json::json!({"url": "http://127.0.0.1:8000"}),
        targets: vec!["http://127.0.0.1:8000".to_owned()],
        host: Host {
            hostname: "sample-host".to_owned(),
            kernel: "6.1.0".to_owned(),
            cpu: "sample".to_owned(),
            cpus: 2,
        },
        driver: "io_uring".to_owned(),
        cores: vec![0, 1],
        pacing: Pacing {
            kind: "spin".to_owned(),
            wake_error_ns: 4_000,
            stall_threshold_ns: 50_000,
            clock_step_ns: Some(20),
        },
        max_lateness_us: 1_000,
        seed: 0,
        token_source: "words-4096".to_owned(),
        planned: 0,
        endpoint: "/v1/chat/completions".to_owned(),
        model: "sample-model".to_owned(),
        doctor: None,
        memory_lock: None,
        memory_node: None,
        realtime: None,
        repeats_turns: false,
        cache_curve: Vec::new(),
        warm_up: None,
        tls: None,
        users: None,
        shard: None,
        start: None,
        merged: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Run, State};

    #[test]
    fn the_same_seed_gives_the_same_run_and_it_reads_without_a_warning() {
        let bytes = log(7, 200);
        assert_eq!(bytes, log(7, 200));
        assert_ne!(bytes, log(8, 200));
        let run = Run::read(&bytes).expect("a whole log");
        assert_eq!(run.state, State::Finished);
        assert_eq!(run.requests.len(), 200);
        assert_eq!(run.warnings, Vec::<String>::new());
    }

    /// Many a test's figures are those of these bytes.
    #[test]
    fn the_bytes_of_a_seed_stay_what_they_are() {
        let samples = [(1, 50), (7, 200), (3, 3_000)];
        let found = samples.map(|(seed, requests)| crc32fast::hash(&log(seed, requests)));
        assert_eq!(found, [0xf3ac_ee63, 0x47b2_c2c9, 0x65af_00f0], "{found:#010x?}");
    }
}
