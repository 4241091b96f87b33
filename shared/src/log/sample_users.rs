//! Makes logs of user-driven runs in memory, for tests of everything that reads them.
//!
//! [`log`] gives a small plausible run: users that start together and are added by a ramp, with
//! sub-agents, back-off, failures, answers in one piece, a truncated conversation, and users that
//! the run's end stopped. It is deterministic and uses the real encoder. Not part of the public
//! interface, and no statement about how servers or the ramp behave.

use super::sample::{PERIOD_NS, Sample};
use super::{
    Assessment, Class, LimitedBy, PlanRow, PoolFacts, RampReason, Record, RecordedRow, StepFlags,
    UserEvent, UserFacts, UserGoals, UserPrompts, UserTiming,
};
use crate::dice::Dice;
use crate::units::{CoreIndex, RequestIndex, RunNanos, SessionIndex};

const MILLI: i64 = 1_000_000;
const MICRO: i64 = 1_000;
/// When the run ends: in its fourth period.
const END_NS: i64 = 17_500 * MILLI;
/// Tokens of a block.
const BLOCK: u32 = 64;

/// One request as tests of single facts write it.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The row of the plan table.
    pub template: u32,
    /// The session of its user.
    pub session: u32,
    /// The request before it.
    pub after: Option<u32>,
    /// When it was due, ready and sent, in nanoseconds.
    pub times: [i64; 3],
    /// When its content events of one token each came.
    pub tokens: Vec<i64>,
    /// When it ended.
    pub done: i64,
    /// How.
    pub class: Class,
    /// Ideal cached tokens.
    pub ideal: Option<u32>,
    /// More facts.
    pub flags: StepFlags,
}

impl Sent {
    /// A request of template 0 that left when it was due and succeeded without a token.
    #[must_use]
    pub fn of(session: u32, sent: i64, done: i64) -> Self {
        Self {
            template: 0,
            session,
            after: None,
            times: [sent; 3],
            tokens: Vec::new(),
            done,
            class: Class::Ok,
            ideal: None,
            flags: StepFlags::default(),
        }
    }
}

/// An empty user-driven run whose periods have this length, with one template of 100 tokens.
#[must_use]
pub fn empty(period_ns: i64) -> Sample {
    let mut sample = Sample::new();
    sample.plan(0);
    sample.plan[0].due = None;
    let facts = UserFacts { period_ns, ..UserFacts::default() };
    sample.manifest.users = Some(Box::new(facts));
    sample
}

/// Something that happens to a user whose number is its session's plus one.
pub fn happens(sample: &mut Sample, session: u32, at: i64, event: UserEvent) {
    let time = RunNanos(at);
    let (number, session) = (session + 1, SessionIndex(session));
    sample.push(CoreIndex(0), Record::User { session, time, event, parent: None, number });
}

/// The records of a request with this number.
pub fn sends(sample: &mut Sample, number: u32, sent: &Sent) {
    let (request, core) = (RequestIndex(number), CoreIndex(0));
    let step = Record::Step {
        request,
        template: sent.template,
        session: SessionIndex(sent.session),
        after: sent.after.map(RequestIndex),
        body_bytes: 700,
        ideal_cached: sent.ideal,
        ideal_set: sent.ideal,
        flags: sent.flags,
    };
    sample.push(core, step);
    let [due, ready, left] = sent.times.map(RunNanos);
    let (due, target, reused) = (Some(due), 0, false);
    sample.push(core, Record::Dispatch { request, sent: left, ready, due, target, reused });
    for &time in &sent.tokens {
        let (time, kind) = (RunNanos(time), super::ChunkKind::TEXT);
        sample.push(core, Record::Chunk { request, time, kind, tokens: 1, bytes: 5 });
    }
    let (time, class) = (RunNanos(sent.done), sent.class);
    let (status, response_bytes) = (Some(200), 1);
    let (finish, flags) = (super::FinishReason::Stop, super::DoneFlags::default());
    let done = Record::Done { request, time, class, status, response_bytes, finish, flags };
    sample.push(core, done);
}

/// A user-driven run of `users` users; the same seed gives the same bytes.
#[must_use]
pub fn log(seed: u64, users: u32) -> Vec<u8> {
    sample(seed, users).bytes()
}

/// The run behind [`log`], to be changed before it is encoded.
///
/// Its fourth period is not a whole one. The first three users start at zero, each of the others
/// with the end of a period; user 2 has sub-agents, user 3 is truncated.
#[must_use]
pub fn sample(seed: u64, users: u32) -> Sample {
    let mut sample = Sample::new();
    let mut stage = Stage { dice: Dice(seed), drafts: Vec::new(), events: Vec::new(), sessions: 0 };
    sample.sessions.clear();
    sample.plan.clear();
    let mut trace_ids = Vec::new();
    let mut scripts = Vec::new();
    for conversation in 0..users {
        scripts.push(write_script(&mut sample, &mut stage.dice, conversation, &mut trace_ids));
    }
    for (number, script) in (1..).zip(&scripts) {
        let start = i64::from(number - 1_u32).saturating_sub(2).clamp(0, 3) * PERIOD_NS;
        let start = if start == 0 { 0 } else { start + 20 * MILLI };
        stage.play(number, script, start);
    }
    sample.manifest.mode = "users".to_owned();
    sample.manifest.trace.format = "agentic".to_owned();
    sample.manifest.trace.name = "traces".to_owned();
    sample.manifest.trace.block_tokens = Some(BLOCK);
    sample.manifest.trace.rows = sample.plan.len() as u64;
    sample.manifest.trace.files = (0..users).map(|at| format!("trace_{at:04}.json")).collect();
    sample.manifest.users = Some(Box::new(facts(users, trace_ids)));
    stage.write(&mut sample);
    for period in 1..=4 {
        assess(&mut sample, &stage, period, users);
    }
    sample
}

/// The templates of one conversation: its own requests, and those of its sub-agents, which start
/// behind the first of them.
struct Script {
    own: Vec<PlanRow>,
    agents: Vec<Vec<PlanRow>>,
    is_truncated: bool,
}

fn write_script(
    sample: &mut Sample,
    dice: &mut Dice,
    conversation: u32,
    trace_ids: &mut Vec<String>,
) -> Script {
    let mut list = |session: String, trace_id: String, length: u32, place: u32| {
        let index = SessionIndex(u32::try_from(sample.sessions.len()).expect("a small sample"));
        sample.sessions.push(session);
        trace_ids.push(trace_id);
        let mut input = dice.between(900, 2_000);
        let mut at = 0;
        let mut rows = Vec::new();
        for turn in 0..length {
            let request = sample.plan(at);
            let row = &mut sample.plan[request.as_usize()];
            row.session = index;
            row.turn = turn;
            row.source = conversation;
            row.think_ns = (turn > 0).then(|| i64::from(dice.between(100, 2_500)) * MILLI);
            row.input_tokens = Some(input);
            row.max_tokens = Some(dice.between(3, 40));
            row.blocks = input / BLOCK;
            row.body_bytes = None;
            rows.push(*row);
            let recorded = RecordedRow {
                duration_ns: Some(i64::from(dice.between(1_000, 4_000)) * MILLI),
                streamed: Some(dice.below(4) > 0),
                place: Some(turn + if turn > 0 { place } else { 0 }),
                ..RecordedRow::of(request)
            };
            sample.recorded.push(recorded);
            input += dice.between(70, 700);
            at += i64::from(dice.between(2_000, 9_000)) * MILLI;
        }
        rows
    };
    let id = format!("trace_{conversation:04}");
    let agents = if conversation % 4 == 1 { 2 } else { 0 };
    let own = list(id.clone(), id.clone(), 3 + conversation % 5, agents);
    let agents = (1..=agents)
        .map(|k| list(format!("{id}-SA{k}"), format!("{id}:agent_{k:03}"), 2, 0))
        .collect();
    Script { own, agents, is_truncated: conversation % 4 == 2 }
}

/// One request before it has a number.
struct Draft {
    core: CoreIndex,
    session: SessionIndex,
    template: PlanRow,
    after: Option<usize>,
    due: i64,
    ready: i64,
    sent: i64,
    first: i64,
    tokens: Vec<i64>,
    done: i64,
    class: Class,
    cached: u32,
}

/// What the users do.
struct Stage {
    dice: Dice,
    drafts: Vec<Draft>,
    events: Vec<(CoreIndex, Record)>,
    sessions: u32,
}

/// One user or sub-agent at work.
struct Part<'a> {
    session: SessionIndex,
    parent: Option<SessionIndex>,
    number: u32,
    core: CoreIndex,
    rows: &'a [PlanRow],
}

impl Stage {
    fn enter(&mut self, part: &Part<'_>, time: i64) {
        let template = part.rows[0].session;
        self.event(part, time, UserEvent::Started { template, cue: 0, copy: 0 });
    }

    fn event(&mut self, part: &Part<'_>, time: i64, event: UserEvent) {
        let Part { session, parent, number, .. } = *part;
        let time = RunNanos(time);
        self.events.push((part.core, Record::User { session, time, event, parent, number }));
    }

    fn session(&mut self) -> SessionIndex {
        self.sessions += 1;
        SessionIndex(self.sessions - 1)
    }

    fn play(&mut self, number: u32, script: &Script, start: i64) {
        let core = CoreIndex(u16::from(number.is_multiple_of(2)));
        let session = self.session();
        let part = Part { session, parent: None, number, core, rows: &script.own };
        self.enter(&part, start);
        let total = u32::try_from(script.own.len()).expect("a small sample");
        let (mut free, mut after) = (start, None);
        for (at, row) in script.own.iter().enumerate() {
            let done = u32::try_from(at).expect("a small sample");
            if script.is_truncated && at == 2 {
                return self.event(&part, free, UserEvent::Truncated { done, total });
            }
            let Some((draft, end)) = self.ask(&part, row, free, after) else {
                return self.event(&part, END_NS, UserEvent::Stopped { done, total });
            };
            (after, free) = (Some(draft), end);
            if at == 0 {
                for (k, rows) in (1..).zip(&script.agents) {
                    free = free.max(self.play_agent(&part, k, rows, end, draft));
                }
            }
        }
        self.event(&part, free, UserEvent::Completed { done: total, total });
    }

    /// Gives the instant of the sub-agent's end.
    fn play_agent(
        &mut self,
        parent: &Part<'_>,
        number: u32,
        rows: &[PlanRow],
        start: i64,
        after: usize,
    ) -> i64 {
        let (session, core) = (self.session(), parent.core);
        let part = Part { session, parent: Some(parent.session), number, core, rows };
        self.enter(&part, start);
        let total = u32::try_from(rows.len()).expect("a small sample");
        let (mut free, mut after) = (start, Some(after));
        for (done, row) in (0..).zip(rows) {
            let Some((draft, end)) = self.ask(&part, row, free, after) else {
                self.event(&part, END_NS, UserEvent::Stopped { done, total });
                return END_NS;
            };
            (after, free) = (Some(draft), end);
        }
        self.event(&part, free, UserEvent::Completed { done: total, total });
        free
    }

    /// One request of a player that is free; gives its draft and end, or nothing after the run's
    /// end.
    fn ask(
        &mut self,
        part: &Part<'_>,
        row: &PlanRow,
        free: i64,
        after: Option<usize>,
    ) -> Option<(usize, i64)> {
        let due = free + row.think_ns.unwrap_or(0);
        let mut ready = due;
        let mut back_off = 200 * MILLI;
        while self.dice.below(5) == 0 && ready < END_NS {
            let by = LimitedBy::ALL[usize::try_from(self.dice.below(6)).expect("below six")];
            let backoff_ns = back_off.cast_unsigned();
            self.event(part, ready, UserEvent::Limited { by, backoff_ns });
            ready += back_off;
            back_off *= 2;
        }
        if ready >= END_NS {
            return None;
        }
        let sent = ready + i64::from(self.dice.between(2, 40)) * MICRO;
        let input = row.input_tokens.unwrap_or(0);
        let cached = if row.turn == 0 { 320.min(input) } else { input / 5 * 4 };
        let first = sent + i64::from(self.dice.between(40, 700)) * MILLI;
        let class = match self.dice.below(25) {
            0 => Class::Http429,
            1 => Class::ResetMidAnswer,
            _ => Class::Ok,
        };
        let step = i64::from(self.dice.between(8, 60)) * MILLI;
        let answer = i64::from(row.max_tokens.unwrap_or(1));
        let is_whole = row.request.0 % 4 == 3;
        let tokens: Vec<i64> = match class {
            Class::Ok if !is_whole => (0..answer).map(|at| first + at * step).collect(),
            Class::ResetMidAnswer => vec![first, first + step],
            _ => Vec::new(),
        };
        let done = tokens.last().map_or(first, |last| last + MILLI);
        let (core, session, template) = (part.core, part.session, *row);
        self.drafts.push(Draft {
            core,
            session,
            template,
            after,
            due,
            ready,
            sent,
            first,
            tokens,
            done,
            class,
            cached,
        });
        Some((self.drafts.len() - 1, done))
    }

    /// Numbers the requests in the order of their sending and writes all records.
    fn write(&self, sample: &mut Sample) {
        let mut order: Vec<usize> = (0..self.drafts.len()).collect();
        order.sort_by_key(|&draft| self.drafts[draft].sent);
        let mut numbers = vec![RequestIndex(0); self.drafts.len()];
        for (number, &draft) in (0..).zip(&order) {
            numbers[draft] = RequestIndex(number);
        }
        for &at in &order {
            let draft = &self.drafts[at];
            write_request(sample, draft, numbers[at], draft.after.map(|after| numbers[after]));
        }
        for &(core, record) in &self.events {
            sample.push(core, record);
        }
    }
}

fn write_request(
    sample: &mut Sample,
    draft: &Draft,
    request: RequestIndex,
    after: Option<RequestIndex>,
) {
    let core = draft.core;
    let row = &draft.template;
    let input = row.input_tokens.unwrap_or(0);
    sample.push(
        core,
        Record::Step {
            request,
            template: row.request.0,
            session: draft.session,
            after,
            body_bytes: input * 5 + 200,
            ideal_cached: Some(draft.cached),
            ideal_set: Some(draft.cached + 16),
            flags: StepFlags::STREAMED,
        },
    );
    sample.push(
        core,
        Record::Dispatch {
            request,
            sent: RunNanos(draft.sent),
            ready: RunNanos(draft.ready),
            due: Some(RunNanos(draft.due)),
            target: 0,
            reused: request.0 > 3,
        },
    );
    let time = RunNanos(draft.first);
    sample.push(core, Record::FirstByte { request, time });
    for &time in &draft.tokens {
        let (time, kind) = (RunNanos(time), super::ChunkKind::TEXT);
        sample.push(core, Record::Chunk { request, time, kind, tokens: 1, bytes: 5 });
    }
    let is_ok = draft.class == Class::Ok;
    if is_ok {
        let usage = super::Usage {
            prompt_tokens: input,
            completion_tokens: row.max_tokens.unwrap_or(1),
            cached_tokens: draft.cached.saturating_sub(48),
            reasoning_tokens: super::UNKNOWN_TOKENS,
        };
        sample.push(core, Record::Usage { request, time: RunNanos(draft.done), usage });
    }
    sample.push(
        core,
        Record::Done {
            request,
            time: RunNanos(draft.done),
            class: draft.class,
            status: if draft.class == Class::Http429 { Some(429) } else { Some(200) },
            response_bytes: 4_000,
            finish: super::FinishReason::from_number(u8::from(is_ok)),
            flags: super::DoneFlags::default(),
        },
    );
}

/// The decision at the end of a period.
fn assess(sample: &mut Sample, stage: &Stage, period: u32, users: u32) {
    let time = (i64::from(period) * PERIOD_NS).min(END_NS);
    let in_flight = stage.drafts.iter().filter(|draft| draft.sent < time && draft.done >= time);
    let present = stage.events.iter().fold(0_u32, |present, (_, record)| match record {
        Record::User { time: at, event, .. } if at.0 < time => match event {
            UserEvent::Started { .. } => present + 1,
            UserEvent::Limited { .. } => present,
            _ => present - 1,
        },
        _ => present,
    });
    let left = users.saturating_sub(3 + (period - 1));
    let (added, reason) = match (period, left) {
        (4, _) => (0, RampReason::Ended),
        (_, 0) => (0, RampReason::PoolEmpty),
        (3, _) => (u16::try_from(left).unwrap_or(u16::MAX), RampReason::Ramped),
        _ => (1, RampReason::Throttled),
    };
    let assessment = Assessment {
        period,
        time: RunNanos(time),
        ttft_ns: Some(650 * MILLI),
        users: present,
        in_flight: u32::try_from(in_flight.count()).expect("a small sample"),
        added,
        reason,
        headroom: Some(0.675),
        good: u16::try_from(period).expect("four"),
        ramps: u16::try_from(period).expect("four"),
        working_set_tokens: u64::from(period) * 64 * 200,
        new_tokens: u64::from(period) * 1_000,
        input_budget: Some(0.5),
        ..Assessment::default()
    };
    for record in assessment.records() {
        sample.push(CoreIndex::CONDUCTOR, record);
    }
}

fn facts(users: u32, trace_ids: Vec<String>) -> UserFacts {
    UserFacts {
        period_ns: PERIOD_NS,
        duration_ns: Some(END_NS),
        start_users: 3,
        max_users: users.max(3),
        max_ttft_ns: 2_000 * MILLI,
        ttft_metric: "p95".to_owned(),
        ramp: "documented".to_owned(),
        timing: UserTiming {
            strategy: "think-only".to_owned(),
            max_delay_ns: 60_000 * MILLI,
            time_scale: 1.0,
            api_time_scale: 1.0,
            clamp_think_times: true,
            ..UserTiming::default()
        },
        prompts: UserPrompts {
            warm_prefix_share: 0.5,
            warm_prefix_tokens: 320,
            reply_mode: "live".to_owned(),
            chunk_tokens: BLOCK,
            ..UserPrompts::default()
        },
        goals: UserGoals { ttft_ns: Some(500 * MILLI), decode_tokens_per_s: Some(30.0) },
        pool: PoolFacts {
            read: u64::from(users),
            usable: u64::from(users),
            ..PoolFacts::default()
        },
        trace_seed: Some(42),
        trace_ids,
        ..UserFacts::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Left, Run, State};

    #[test]
    fn the_same_seed_gives_the_same_run_and_it_reads_without_a_warning() {
        let bytes = log(7, 8);
        assert_eq!(bytes, log(7, 8));
        assert_ne!(bytes, log(8, 8));
        let run = Run::read(&bytes).expect("a whole log");
        assert_eq!(run.state, State::Finished);
        assert_eq!(run.warnings, Vec::<String>::new());
        let users = run.users.as_ref().expect("users");
        assert_eq!(users.assessments.len(), 4);
        assert!(!users.limits.is_empty());
        let names: Vec<&str> = users.users.iter().map(|user| user.name.as_str()).collect();
        assert_eq!(names[..4], ["User-001", "User-002", "User-002-SA1", "User-002-SA2"]);
        assert_eq!(users.users[3].trace_id.as_deref(), Some("trace_0001:agent_002"));
        for left in [Left::Completed, Left::Truncated, Left::Stopped] {
            assert!(users.users.iter().any(|user| user.left == Some(left)), "{left:?}");
        }
    }
}
