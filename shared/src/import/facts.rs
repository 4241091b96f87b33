//! What another tool's file says about each request, and the log that says the same.
//!
//! Times are nanoseconds of any one clock; the run's zero is the first sending. Requests are
//! numbered by their sending, as a plan is. This file knows no format.

use std::collections::HashMap;

use super::{ImportError, Kind, MEASURED_BY};
use crate::counted::{agreeing, counted};
use crate::foreign::printable;
use crate::log::{
    BlockBuffer, ChunkKind, Class, Closing, DoneFlags, FinishReason, Footer, Host, Manifest,
    Pacing, PlanRow, Record, TEXT_PART_BYTES, TraceSource, UNKNOWN_TOKENS, Usage, file_header_of,
    footer_block, manifest_block, plan_blocks, session_blocks,
};
use crate::run::Run;
use crate::units::{CoreIndex, RequestIndex, RunNanos, SessionIndex};

/// Most requests a file may have; a log can number a few more, but no such file was ever seen.
const REQUESTS_MAX: usize = 1 << 26;
/// Longest error text that is kept, in parts of a record.
const TEXT_PARTS_MAX: usize = 20;

/// All that a file says.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) requests: Vec<Request>,
    pub(super) sessions: Vec<String>,
    pub(super) numbers: HashMap<String, u32>,
    /// Wall clock of the clock's zero (ns since 1970), if the file tells.
    pub(super) unix_of_zero: Option<i128>,
    /// What was run, as far as it is told.
    pub(super) model: String,
    pub(super) endpoint: String,
    /// What the file lacks, for people.
    pub(super) warnings: Vec<String>,
}

/// What a file says about one request.
#[derive(Debug, Default)]
pub(super) struct Request {
    /// 1-based line or place in the file.
    pub(super) row: u64,
    pub(super) session: u32,
    pub(super) turn: u32,
    pub(super) due: Option<i64>,
    pub(super) sent: i64,
    /// Content events: when, and how many tokens each stands for.
    pub(super) chunks: Vec<(i64, u32)>,
    pub(super) done: Option<i64>,
    pub(super) input: Option<u32>,
    pub(super) max_tokens: Option<u32>,
    /// As the server or the tool counted.
    pub(super) prompt: Option<u32>,
    pub(super) completion: Option<u32>,
    pub(super) cached: Option<u32>,
    pub(super) ideal_set: Option<u32>,
    pub(super) blocks: u32,
    /// How it ended; `None`: well.
    pub(super) failure: Option<Failure>,
}

/// How a request failed.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) class: Class,
    pub(super) status: Option<u16>,
    pub(super) words: String,
}

impl Failure {
    /// The failure that a status, if any, and the tool's words speak of.
    pub(super) fn of(status: Option<u16>, words: &str) -> Self {
        let known = status.filter(|status| (300..600).contains(status) && *status != 499);
        let low = words.to_ascii_lowercase();
        let has = |parts: &[&str]| parts.iter().any(|part| low.contains(part));
        let class = match known {
            Some(status) => Class::of_status(status),
            None if status == Some(499) || has(&["cancel"]) => Class::CancelledByPlan,
            None if has(&["refused"]) => Class::ConnectRefused,
            None if has(&["cannot connect", "connect call failed", "name or service"]) => {
                Class::ConnectFailed
            }
            None if has(&["timeout", "timed out"]) => Class::TotalTimeout,
            None if has(&["payload is not completed", "incomplete read"]) => Class::TruncatedBody,
            None if has(&["disconnected", "reset by peer", "broken pipe"]) => {
                Class::ResetBeforeAnswer
            }
            None => Class::FailedElsewhere,
        };
        Self { class, status: known, words: words.to_owned() }
    }
}

impl Facts {
    /// The number of a session.
    pub(super) fn session(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = u32::try_from(self.sessions.len()).expect("fewer than REQUESTS_MAX");
        self.sessions.push(printable(name).to_string());
        self.numbers.insert(name.to_owned(), number);
        number
    }

    pub(super) fn push(&mut self, request: Request) -> Result<(), ImportError> {
        if self.requests.len() >= REQUESTS_MAX {
            return Err(ImportError::new(format!("more than {REQUESTS_MAX} requests")));
        }
        self.requests.push(request);
        Ok(())
    }

    /// The run that these facts describe.
    pub(super) fn into_run(
        mut self,
        kind: Kind,
        name: &str,
        bytes: u64,
    ) -> Result<Run, ImportError> {
        if self.requests.is_empty() {
            return Err(ImportError::new(format!(
                "no request of a measurement is in it ({bytes} bytes)"
            )));
        }
        self.requests.sort_by_key(|request| (request.sent, request.row));
        let zero = self.requests[0].sent;
        let started = self.unix_of_zero.map_or(0, |unix| unix + i128::from(zero));
        let started = u64::try_from(started).unwrap_or_default();
        let manifest = self.manifest(kind, name, started);
        let mut out = file_header_of(&manifest).to_vec();
        out.extend(manifest_block(&manifest));
        let numbered = || (0_u32..).map(RequestIndex).zip(&self.requests);
        out.extend(plan_blocks(numbered().map(|(i, of)| of.plan_row(i, zero))).flatten());
        out.extend(session_blocks(&self.sessions).flatten());
        let mut log = Log { out, block: BlockBuffer::new(), sequence: 0, records: 0, last: 0 };
        for (i, request) in numbered() {
            request.write(i, zero, &mut log);
        }
        let planned = self.requests.len() as u64;
        let mut run = Run::read(&log.finish(planned, started))
            .map_err(|error| ImportError::new(error.to_string()))?;
        self.warnings.extend(self.without_ends());
        run.warnings.splice(0..0, self.warnings);
        Ok(run)
    }

    /// Words about failures whose end the file does not tell.
    fn without_ends(&self) -> Option<String> {
        let failed = self.requests.iter().filter(|request| request.failure.is_some());
        let count = failed.filter(|request| request.done.is_none()).count() as u64;
        let does = agreeing(count, "does not say when it", "do not say when they");
        let counts =
            agreeing(count, "it counts as ended when it was", "they count as ended when they were");
        let requests = counted(count, "failed request");
        (count > 0).then(|| format!("{requests} {does} ended: {counts} last heard of"))
    }

    fn manifest(&self, kind: Kind, name: &str, started_unix_ns: u64) -> Manifest {
        Manifest {
            run_id: String::new(),
            onbeat_version: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix_ns,
            mode: format!("{MEASURED_BY}{}", kind.tool()),
            trace: TraceSource {
                name: printable(name).to_string(),
                rows: self.requests.len() as u64,
                ..TraceSource::default()
            },
            config: serde_json::Value::Null,
            targets: Vec::new(),
            host: Host::default(),
            driver: String::new(),
            cores: vec![0],
            pacing: Pacing::default(),
            max_lateness_us: 1_000,
            seed: 0,
            token_source: String::new(),
            planned: u32::try_from(self.requests.len()).expect("below REQUESTS_MAX"),
            endpoint: self.endpoint.clone(),
            model: printable(&self.model).to_string(),
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
}

impl Request {
    fn plan_row(&self, request: RequestIndex, zero: i64) -> PlanRow {
        PlanRow {
            request,
            session: SessionIndex(self.session),
            turn: self.turn,
            core: CoreIndex(0),
            target: 0,
            row: self.row,
            due: self.due.map(|due| RunNanos(due.saturating_sub(zero))),
            after: None,
            source: 0,
            think_ns: None,
            input_tokens: self.input,
            max_tokens: self.max_tokens,
            min_tokens: None,
            ideal_cached_tokens: None,
            ideal_set_tokens: self.ideal_set,
            blocks: self.blocks,
            body_bytes: None,
        }
    }

    fn write(&self, request: RequestIndex, zero: i64, log: &mut Log) {
        let at = |time: i64| RunNanos(time.saturating_sub(zero));
        let sent = at(self.sent);
        let due = self.due.map(at);
        // Where no schedule is told there is no readiness either, and so no lateness.
        let ready = due.unwrap_or(RunNanos(i64::MIN));
        log.push(&Record::Dispatch { request, sent, ready, due, target: 0, reused: false });
        for &(time, tokens) in &self.chunks {
            let (time, kind, bytes) = (at(time), ChunkKind::TEXT, 0);
            log.push(&Record::Chunk { request, time, kind, tokens, bytes });
        }
        let known = |tokens: Option<u32>| tokens.unwrap_or(UNKNOWN_TOKENS);
        let last = self.chunks.last().map_or(self.sent, |&(time, _)| time);
        let end = at(self.done.unwrap_or(last).max(last));
        if self.prompt.is_some() || self.completion.is_some() || self.cached.is_some() {
            let usage = Usage {
                prompt_tokens: known(self.prompt),
                completion_tokens: known(self.completion),
                cached_tokens: known(self.cached),
                reasoning_tokens: UNKNOWN_TOKENS,
            };
            log.push(&Record::Usage { request, time: end, usage });
        }
        if self.failure.is_none() && self.done.is_none() && self.chunks.is_empty() {
            // It neither failed nor has anything of an answer: nobody knows when it ended.
            return;
        }
        let (class, status, finish) = match &self.failure {
            None => (Class::Ok, Some(200), FinishReason::Unknown),
            Some(failure) => (failure.class, failure.status, FinishReason::Unknown),
        };
        if let Some(failure) = &self.failure {
            write_text(request, &failure.words, log);
        }
        let (flags, response_bytes) = (DoneFlags::default(), 0);
        log.push(&Record::Done {
            request,
            time: end,
            class,
            status,
            response_bytes,
            finish,
            flags,
        });
    }
}

fn write_text(request: RequestIndex, words: &str, log: &mut Log) {
    let parts = words.as_bytes().chunks(TEXT_PART_BYTES).take(TEXT_PARTS_MAX);
    for (part, text) in (0_u16..).zip(parts) {
        let mut bytes = [0; TEXT_PART_BYTES];
        bytes[..text.len()].copy_from_slice(text);
        let used = u8::try_from(text.len()).expect("at most TEXT_PART_BYTES");
        log.push(&Record::Text { request, part, used, bytes });
    }
}

/// A log in memory.
struct Log {
    out: Vec<u8>,
    block: BlockBuffer,
    sequence: u32,
    records: u64,
    /// Latest instant (ns).
    last: i64,
}

impl Log {
    fn push(&mut self, record: &Record) {
        self.records += 1;
        if let Record::Done { time, .. } = record {
            self.last = self.last.max(time.0);
        }
        if self.block.push(record).is_err() {
            self.seal();
            self.block.push(record).expect("an empty block has room");
        }
    }

    fn seal(&mut self) {
        self.out.extend_from_slice(self.block.seal(CoreIndex(0), self.sequence));
        self.sequence += 1;
        self.block.clear();
    }

    /// The log, closed by a footer.
    fn finish(mut self, requests: u64, started_unix_ns: u64) -> Vec<u8> {
        let monotonic_ns = 0;
        let time = RunNanos(0);
        self.push(&Record::Anchor { time, unix_ns: started_unix_ns, monotonic_ns });
        self.seal();
        let footer = Footer {
            complete: true,
            records: self.records,
            requests_done: requests,
            closing: Closing {
                time_ns: self.last,
                unix_ns: started_unix_ns.saturating_add_signed(self.last),
            },
            ..Footer::default()
        };
        self.out.extend(footer_block(&footer));
        self.out
    }
}

/// Milliseconds of a file as nanoseconds; `None` unless they are a finite length of time.
pub(super) fn of_millis(millis: f64) -> Option<i64> {
    of_seconds(millis / 1e3)
}

/// The same of seconds. A century is more than any file has a reason to say.
pub(super) fn of_seconds(seconds: f64) -> Option<i64> {
    const CENTURY_S: f64 = 3.2e9;
    #[expect(clippy::cast_possible_truncation, reason = "the range was just checked")]
    (0.0..CENTURY_S).contains(&seconds).then(|| (seconds * 1e9).round() as i64)
}

/// A count of tokens; `None` unless it is a plain one.
pub(super) fn of_tokens(tokens: f64) -> Option<u32> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range was just checked"
    )]
    (0.0..f64::from(UNKNOWN_TOKENS)).contains(&tokens).then(|| tokens.round() as u32)
}
