//! Reads the records about users: who they are, what each request replays, what the ramp decided.
//!
//! In a user-driven log the plan table holds templates, and requests have numbers in the order of
//! their sending; [`Cast::plan`] makes the table of requests that every reader expects. It holds
//! the rules for contradictory and missing records: the first of several counts, a request without
//! its step has a row that is lost, and nothing is sized by a number that the file merely claims.

use std::collections::BTreeMap;

use super::faults::counted_words;
use super::preamble::lost_row;
use super::requests::Requests;
use super::users::{Left, Limit, NO_TEMPLATE, User, Users};
use crate::log::users::{ASSESSMENT_PART_BYTES, ASSESSMENT_PARTS};
use crate::log::{Assessment, PlanRow, RECORD_BYTES, Record, StepFlags, UserEvent, UserFacts};
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

/// Users of whom later blocks may tell first.
const SESSIONS_AHEAD: usize = 1 << 16;

/// The records about users, sorted.
#[derive(Clone, Default)]
pub(super) struct Cast {
    steps: Vec<Option<Step>>,
    users: Vec<User>,
    limits: Vec<Limit>,
    assessments: BTreeMap<u32, Parts>,
    /// More users than this the log cannot tell of so far.
    most_sessions: usize,
    repeated_steps: u64,
    strangers: u64,
}

/// A run's requests, as its users made them.
pub(super) struct Played {
    pub(super) plan: Vec<PlanRow>,
    /// The users' names, by session.
    pub(super) names: Vec<String>,
    pub(super) users: Users,
    /// What the records contradict, and what is missing.
    pub(super) warnings: Vec<String>,
}

/// What was found missing when the parts were put together.
#[derive(Default)]
struct Missing {
    steps: u64,
    templates: u64,
    users: u64,
    assessments: u64,
}

impl Cast {
    /// Notes how long the log is so far.
    pub(super) const fn of_bytes(&mut self, bytes: usize) {
        self.most_sessions = bytes / RECORD_BYTES + SESSIONS_AHEAD;
    }

    /// Takes what a record says of users; the request that it is about is a known one.
    pub(super) fn take(&mut self, core: CoreIndex, record: &Record) {
        match *record {
            Record::Step { request, .. } => {
                let at = request.as_usize();
                self.steps.resize(self.steps.len().max(at + 1), None);
                if self.steps[at].is_some() {
                    self.repeated_steps += 1;
                } else {
                    self.steps[at] = Step::of(core, record);
                }
            }
            Record::User { .. } => self.user_event(record),
            Record::Assessment { period, part, bytes } => self.assessment(period, part, bytes),
            _ => {}
        }
    }

    /// The template of a request, if its step is known.
    pub(super) fn template(&self, request: RequestIndex) -> Option<usize> {
        let step = self.steps.get(request.as_usize())?.as_ref()?;
        Some(step.template as usize)
    }

    /// The user of a session; `None` if there cannot be so many.
    fn user(&mut self, session: SessionIndex) -> Option<&mut User> {
        let at = session.as_usize();
        if at >= self.most_sessions {
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

    /// Puts the parts together, for the requests that are known.
    pub(super) fn played(
        &self,
        requests: &Requests,
        facts: Option<&UserFacts>,
        templates: &[PlanRow],
        template_names: &[String],
    ) -> Played {
        let mut cast = self.clone();
        cast.steps.resize(requests.len(), None);
        cast.limits.sort_by_key(|limit| limit.time);
        let mut missing = Missing::default();
        let mut plan = cast.plan(templates, &mut missing);
        for (i, row) in plan.iter_mut().enumerate() {
            row.due = requests.due(i);
        }
        let (users, names) = cast.users(facts, template_names, &mut missing);
        let warnings = self.warnings(&missing);
        Played { plan, names, users, warnings }
    }

    /// The requests' table: templates joined with steps.
    fn plan(&self, templates: &[PlanRow], missing: &mut Missing) -> Vec<PlanRow> {
        let mut turns: Vec<u32> = Vec::new();
        let mut plan = Vec::with_capacity(self.steps.len());
        for (i, step) in self.steps.iter().enumerate() {
            let mut row = lost_row(i);
            let Some(step) = step else {
                missing.steps += 1;
                plan.push(row);
                continue;
            };
            match templates.get(step.template as usize).filter(|template| template.row > 0) {
                Some(template) => row = PlanRow { request: row.request, ..*template },
                None => missing.templates += 1,
            }
            row.session = step.session;
            row.core = step.core;
            row.due = None;
            row.after = step.after;
            row.ideal_cached_tokens = step.ideal_cached;
            row.ideal_set_tokens = step.ideal_set;
            row.body_bytes = std::num::NonZero::new(u64::from(step.body_bytes));
            let session = step.session.as_usize();
            if session < self.most_sessions {
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
    fn users(
        mut self,
        facts: Option<&UserFacts>,
        templates: &[String],
        missing: &mut Missing,
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
        // A number without any record is that of somebody who had not begun when the log ends.
        let known = |user: &&User| user.requests > 0 || user.limited > 0 || user.left.is_some();
        let lost = users.iter().filter(known).filter(|user| user.started.is_none());
        missing.users = lost.count() as u64;
        let names = users.iter().map(|user| user.name.clone()).collect();
        let mut assessments = Vec::new();
        for (period, parts) in self.assessments {
            match parts {
                [Some(first), Some(second), Some(third)] => {
                    assessments.push(Assessment::from_parts(period, &[first, second, third]));
                }
                _ => missing.assessments += 1,
            }
        }
        let template = |step: &Option<Step>| step.map_or(NO_TEMPLATE, |step| step.template);
        let flags = |step: &Option<Step>| step.map_or(StepFlags::default(), |step| step.flags);
        let told = Users {
            users,
            limits: self.limits,
            assessments,
            templates: templates.to_vec(),
            template_of: steps.iter().map(template).collect(),
            flags: steps.iter().map(flags).collect(),
        };
        (told, names)
    }

    /// What the records contradict, and what is missing.
    fn warnings(&self, missing: &Missing) -> Vec<String> {
        let counts = [
            (
                missing.steps,
                ["request has", "requests have"],
                " no record of what it replays; it was lost",
            ),
            (missing.templates, ["request replays", "requests replay"], " a row that is lost"),
            (missing.users, ["user has", "users have"], " no record of the beginning; it was lost"),
            (
                missing.assessments,
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

impl Step {
    fn of(core: CoreIndex, record: &Record) -> Option<Self> {
        let Record::Step {
            template,
            session,
            after,
            body_bytes,
            ideal_cached,
            ideal_set,
            flags,
            ..
        } = *record
        else {
            return None;
        };
        Some(Self { core, template, session, after, body_bytes, ideal_cached, ideal_set, flags })
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
