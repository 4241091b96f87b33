//! Reads the records about users: who they are, what each request replays, what the ramp decided.
//!
//! In a user-driven log the plan table holds templates, and requests have numbers in the order of
//! their sending; [`Cast::plan`] makes the table of requests that every reader expects. It holds
//! the rules for contradictory and missing records: the first of several counts, a request without
//! its step has a row that is lost, and nothing is sized by a number that the file merely claims.

use std::collections::BTreeMap;

use super::build::{counted_words, lost_row};
use super::users::{Left, Limit, NO_TEMPLATE, User, Users};
use crate::log::users::{ASSESSMENT_PART_BYTES, ASSESSMENT_PARTS};
use crate::log::{
    Assessment, PlanRow, RECORD_BYTES, Record, RecordBlock, StepFlags, UserEvent, UserFacts,
};
use crate::units::{CoreIndex, RequestIndex, SessionIndex};

/// What a request replays.
#[derive(Clone, Copy)]
struct Step {
    core: CoreIndex,
    template: u32,
    session: SessionIndex,
    after: Option<RequestIndex>,
    body_bytes: u32,
    ideal_cached: Option<u32>,
    ideal_set: Option<u32>,
    flags: StepFlags,
}

/// The parts of one assessment that were found.
type Parts = [Option<[u8; ASSESSMENT_PART_BYTES]>; ASSESSMENT_PARTS];

/// The records about users, sorted.
pub(super) struct Cast {
    steps: Vec<Option<Step>>,
    users: Vec<User>,
    limits: Vec<Limit>,
    assessments: BTreeMap<u32, Parts>,
    /// More requests or users than this the file cannot tell of.
    most: usize,
    repeated_steps: u64,
    strangers: u64,
    lost_steps: u64,
    lost_templates: u64,
    lost_users: u64,
    lost_assessments: u64,
}

impl Cast {
    /// Whether any record is about users: tells what a log is whose manifest is damaged.
    pub(super) fn is_there(blocks: &[RecordBlock<'_>]) -> bool {
        blocks.iter().flat_map(RecordBlock::raw).any(Record::is_step)
    }

    /// Sorts the records of a file of so many bytes.
    pub(super) fn read(blocks: &[RecordBlock<'_>], file_bytes: usize) -> Self {
        let mut cast = Self {
            steps: Vec::new(),
            users: Vec::new(),
            limits: Vec::new(),
            assessments: BTreeMap::new(),
            most: file_bytes / RECORD_BYTES,
            repeated_steps: 0,
            strangers: 0,
            lost_steps: 0,
            lost_templates: 0,
            lost_users: 0,
            lost_assessments: 0,
        };
        for block in blocks {
            for bytes in block.raw().filter(|bytes| Record::is_of_cast(bytes)) {
                if let Some(record) = Record::decode(bytes) {
                    cast.take(block.core, &record);
                }
            }
        }
        cast.limits.sort_by_key(|limit| limit.time);
        cast
    }

    fn take(&mut self, core: CoreIndex, record: &Record) {
        match *record {
            Record::Step {
                request,
                template,
                session,
                after,
                body_bytes,
                ideal_cached,
                ideal_set,
                flags,
            } => {
                let step = Step {
                    core,
                    template,
                    session,
                    after,
                    body_bytes,
                    ideal_cached,
                    ideal_set,
                    flags,
                };
                if !self.has_request(request) {
                    self.strangers += 1;
                } else if self.steps[request.as_usize()].is_some() {
                    self.repeated_steps += 1;
                } else {
                    self.steps[request.as_usize()] = Some(step);
                }
            }
            // Its step may be lost; it is a request of this run all the same.
            Record::Dispatch { request, .. } | Record::Done { request, .. } => {
                self.has_request(request);
            }
            Record::User { .. } => self.user_event(record),
            Record::Assessment { period, part, bytes } => self.assessment(period, part, bytes),
            _ => {}
        }
    }

    /// Makes room for a request; `false` if there cannot be so many.
    fn has_request(&mut self, request: RequestIndex) -> bool {
        let i = request.as_usize();
        if i >= self.most {
            return false;
        }
        if self.steps.len() <= i {
            self.steps.resize(i + 1, None);
        }
        true
    }

    /// The user of a session; `None` if there cannot be so many.
    fn user(&mut self, session: SessionIndex) -> Option<&mut User> {
        let at = session.as_usize();
        if at >= self.most {
            return None;
        }
        while self.users.len() <= at {
            let place = u32::try_from(self.users.len()).unwrap_or(u32::MAX);
            self.users.push(unknown_user(SessionIndex(place)));
        }
        Some(&mut self.users[at])
    }

    fn user_event(&mut self, record: &Record) {
        let Record::User { session, time, event, parent, number } = *record else { return };
        if let UserEvent::Limited { by, backoff_ns } = event {
            self.limits.push(Limit { session, time, by, backoff_ns });
        }
        let Some(user) = self.user(session) else {
            self.strangers += 1;
            return;
        };
        user.parent = user.parent.or(parent);
        user.number = user.number.or(Some(number).filter(|&number| number > 0));
        match event {
            UserEvent::Started { template, cue, copy } => {
                if user.started.is_none() {
                    user.started = Some(time);
                    user.template = Some(template);
                    user.cue = cue;
                    user.copy = copy;
                }
            }
            UserEvent::Completed { done, total } => end(user, time, Left::Completed, done, total),
            UserEvent::Truncated { done, total } => end(user, time, Left::Truncated, done, total),
            UserEvent::Stopped { done, total } => end(user, time, Left::Stopped, done, total),
            UserEvent::Limited { .. } => user.limited += 1,
        }
    }

    fn assessment(&mut self, period: u32, part: u8, bytes: [u8; ASSESSMENT_PART_BYTES]) {
        let parts = self.assessments.entry(period).or_default();
        if let Some(place) = parts.get_mut(usize::from(part)) {
            place.get_or_insert(bytes);
        }
    }

    /// The requests' table: templates joined with steps.
    pub(super) fn plan(&mut self, templates: &[PlanRow]) -> Vec<PlanRow> {
        let mut turns: Vec<u32> = Vec::new();
        let mut plan = Vec::with_capacity(self.steps.len());
        for (i, step) in self.steps.iter().enumerate() {
            let mut row = lost_row(i);
            let Some(step) = step else {
                self.lost_steps += 1;
                plan.push(row);
                continue;
            };
            match templates.get(step.template as usize).filter(|template| template.row > 0) {
                Some(template) => row = PlanRow { request: row.request, ..*template },
                None => self.lost_templates += 1,
            }
            row.session = step.session;
            row.core = step.core;
            row.due = None;
            row.after = step.after;
            row.ideal_cached_tokens = step.ideal_cached;
            row.ideal_set_tokens = step.ideal_set;
            row.body_bytes = std::num::NonZero::new(u64::from(step.body_bytes));
            let session = step.session.as_usize();
            if session < self.most {
                if turns.len() <= session {
                    turns.resize(session + 1, 0);
                }
                row.turn = turns[session];
                turns[session] += 1;
            }
            plan.push(row);
        }
        plan
    }

    /// What a run tells of its users, and their names by session.
    pub(super) fn users(
        &mut self,
        facts: Option<&UserFacts>,
        templates: Vec<String>,
    ) -> (Users, Vec<String>) {
        let steps = std::mem::take(&mut self.steps);
        for session in steps.iter().flatten().map(|step| step.session) {
            if let Some(user) = self.user(session) {
                user.requests += 1;
            }
        }
        let mut users = std::mem::take(&mut self.users);
        for at in 0..users.len() {
            users[at].name = name(&users, at);
            let template = users[at].template.map(SessionIndex::as_usize);
            let id = template.and_then(|at| facts?.trace_ids.get(at));
            let session = template.and_then(|at| templates.get(at)).filter(|name| !name.is_empty());
            users[at].trace_id = id.or(session).cloned();
        }
        self.lost_users = users.iter().filter(|user| user.started.is_none()).count() as u64;
        let names = users.iter().map(|user| user.name.clone()).collect();
        let mut assessments = Vec::new();
        for (period, parts) in std::mem::take(&mut self.assessments) {
            match parts {
                [Some(first), Some(second), Some(third)] => {
                    assessments.push(Assessment::from_parts(period, &[first, second, third]));
                }
                _ => self.lost_assessments += 1,
            }
        }
        let template = |step: &Option<Step>| step.map_or(NO_TEMPLATE, |step| step.template);
        let flags = |step: &Option<Step>| step.map_or(StepFlags::default(), |step| step.flags);
        let told = Users {
            users,
            limits: std::mem::take(&mut self.limits),
            assessments,
            templates,
            template_of: steps.iter().map(template).collect(),
            flags: steps.iter().map(flags).collect(),
        };
        (told, names)
    }

    /// What the records contradict, and what is missing.
    pub(super) fn warnings(&self) -> Vec<String> {
        let counts = [
            (
                self.lost_steps,
                ["request has", "requests have"],
                " no record of what it replays; it was lost",
            ),
            (self.lost_templates, ["request replays", "requests replay"], " a row that is lost"),
            (
                self.lost_users,
                ["user has", "users have"],
                " no record of the beginning; it was lost",
            ),
            (
                self.lost_assessments,
                ["decision of the ramp is", "decisions of the ramp are"],
                " not whole in the log; left out",
            ),
            (
                self.repeated_steps,
                ["request says", "requests say"],
                " twice what it replays; the first counts",
            ),
            (
                self.strangers,
                ["record is", "records are"],
                " about users or requests that the log cannot hold; ignored",
            ),
        ];
        counted_words(&counts)
    }
}

fn end(user: &mut User, time: crate::units::RunNanos, left: Left, done: u32, total: u32) {
    if user.left.is_none() {
        user.ended = Some(time);
        user.left = Some(left);
        user.done = Some(done);
        user.total = Some(total);
    }
}

/// `User-001`, or `User-001-SA1`; empty where the log does not say. A parent has a smaller session.
fn name(users: &[User], at: usize) -> String {
    let Some(number) = users[at].number else { return String::new() };
    match users[at].parent {
        None => format!("User-{number:03}"),
        Some(parent) => match users[..at].get(parent.as_usize()) {
            Some(parent) if !parent.name.is_empty() => format!("{}-SA{number}", parent.name),
            _ => String::new(),
        },
    }
}

fn unknown_user(session: SessionIndex) -> User {
    User {
        session,
        name: String::new(),
        parent: None,
        number: None,
        template: None,
        trace_id: None,
        cue: 0,
        copy: 0,
        started: None,
        ended: None,
        left: None,
        done: None,
        total: None,
        requests: 0,
        limited: 0,
    }
}
