//! User-driven runs: users of all shards as users of one run, and the ramps' decisions as one row.
//!
//! Requests are numbered anew in the order in which they left, users one shard after the other. A
//! period's decisions are put together: counts are added, and of what cannot be added the worst
//! shard's stands (the longest time to first token, the least headroom); the reason is the one that
//! most shards had, of several the first shard's.

use std::collections::{BTreeMap, HashMap};
use std::io;

use super::packing::Packing;
use super::survey::Survey;
use crate::log::record::Record;
use crate::log::users::{
    ASSESSMENT_PART_BYTES, ASSESSMENT_PARTS, Assessment, RampReason, UserEvent,
};
use crate::log::{RecordBlock, UserFacts};
use crate::units::SessionIndex;

type Parts = [Option<[u8; ASSESSMENT_PART_BYTES]>; ASSESSMENT_PARTS];

/// What the first look at a user-driven log finds.
#[derive(Debug, Default)]
pub(super) struct Lives {
    /// When each request left, or ended if it never did.
    requests: HashMap<u32, i64>,
    /// More than the largest session.
    sessions: u64,
    /// The largest number of a user.
    users: u32,
    assessments: BTreeMap<u32, Parts>,
}

impl Lives {
    pub(super) fn look(&mut self, block: &RecordBlock<'_>) {
        for record in block.iter().flatten() {
            match record {
                Record::Step { request, .. } => {
                    self.requests.entry(request.0).or_insert(i64::MAX);
                }
                Record::Dispatch { request, sent, .. } => self.at(request.0, sent.0),
                Record::Done { request, time, .. } => self.at(request.0, time.0),
                Record::User { session, event, parent, number, .. } => {
                    self.sessions = self.sessions.max(u64::from(session.0) + 1);
                    if parent.is_none() && matches!(event, UserEvent::Started { .. }) {
                        self.users = self.users.max(number);
                    }
                }
                Record::Assessment { period, part, bytes } => {
                    let parts = self.assessments.entry(period).or_default();
                    if let Some(part) = parts.get_mut(usize::from(part)) {
                        part.get_or_insert(bytes);
                    }
                }
                _ => {}
            }
        }
    }

    fn at(&mut self, request: u32, time_ns: i64) {
        let at = self.requests.entry(request).or_insert(time_ns);
        *at = time_ns.min(*at);
    }

    /// How many requests the log tells of.
    pub(super) fn requests(&self) -> usize {
        self.requests.len()
    }
}

/// What the numbers of one log become.
#[derive(Debug)]
pub(super) struct Renumbering {
    pub(super) requests: HashMap<u32, u32>,
    first_session: u32,
    sessions: u32,
    first_user: u32,
}

impl Renumbering {
    /// Of all logs.
    pub(super) fn of(logs: &mut [Survey]) -> Result<Vec<Self>, String> {
        let mut order: Vec<(i64, usize, u32)> = Vec::new();
        let (mut first_session, mut first_user) = (0_u64, 0_u64);
        let mut found = Vec::new();
        for (at, log) in logs.iter_mut().enumerate() {
            let lives = &mut log.lives;
            let requests = std::mem::take(&mut lives.requests);
            order.extend(requests.into_iter().map(|(request, time)| (time, at, request)));
            let fits = |number: u64| {
                u32::try_from(number).map_err(|_beyond| {
                    format!(
                        "{}: with this log there are more users than a log can number",
                        log.name
                    )
                })
            };
            found.push(Self {
                requests: HashMap::new(),
                first_session: fits(first_session)?,
                sessions: fits(lives.sessions)?,
                first_user: fits(first_user)?,
            });
            first_session += lives.sessions;
            first_user += u64::from(lives.users);
            fits(first_session.max(first_user))?;
        }
        order.sort_unstable();
        for (new, (_, log, own)) in (0_u32..).zip(order) {
            found[log].requests.insert(own, new);
        }
        Ok(found)
    }

    /// The new number of a session; `None`: no user had it.
    pub(super) fn session(&self, own: SessionIndex) -> Option<SessionIndex> {
        let is_known = own.0 < self.sessions;
        is_known.then(|| SessionIndex(self.first_session + own.0))
    }

    /// The new number of a user; 0 stays "not said".
    pub(super) const fn user(&self, own: u32) -> u32 {
        if own == 0 { 0 } else { self.first_user.saturating_add(own) }
    }
}

/// Writes the decisions of all ramps, a period at a time.
pub(super) fn assessments(logs: &[Survey], out: &mut Packing<'_>) -> io::Result<()> {
    let mut periods: BTreeMap<u32, Vec<Assessment>> = BTreeMap::new();
    for log in logs {
        for (&period, parts) in &log.lives.assessments {
            let [Some(first), Some(second), Some(third)] = *parts else { continue };
            let assessment = Assessment::from_parts(period, &[first, second, third]);
            periods.entry(period).or_default().push(assessment);
        }
    }
    for all in periods.into_values() {
        for record in together(&all).records() {
            out.push(&record.encode())?;
        }
    }
    Ok(())
}

/// One decision in place of several.
fn together(all: &[Assessment]) -> Assessment {
    let sum = |of: fn(&Assessment) -> u64| all.iter().map(of).fold(0, u64::saturating_add);
    let word = |of: fn(&Assessment) -> u64| u32::try_from(sum(of)).unwrap_or(u32::MAX);
    let half = |of: fn(&Assessment) -> u64| u16::try_from(sum(of)).unwrap_or(u16::MAX);
    let least = |of: fn(&Assessment) -> Option<f32>| all.iter().filter_map(of).reduce(f32::min);
    Assessment {
        period: all.first().map_or(0, |one| one.period),
        time: all.iter().map(|one| one.time).max().unwrap_or_default(),
        ttft_ns: all.iter().filter_map(|one| one.ttft_ns).max(),
        users: word(|one| u64::from(one.users)),
        in_flight: word(|one| u64::from(one.in_flight)),
        added: half(|one| u64::from(one.added)),
        reason: reason(all),
        headroom: least(|one| one.headroom),
        good: all.iter().map(|one| one.good).min().unwrap_or(0),
        exceeded: all.iter().map(|one| one.exceeded).max().unwrap_or(0),
        required: all.iter().map(|one| one.required).max().unwrap_or(0),
        ramps: half(|one| u64::from(one.ramps)),
        working_set_tokens: sum(|one| one.working_set_tokens),
        new_tokens: sum(|one| one.new_tokens),
        limited: word(|one| u64::from(one.limited)),
        input_budget: least(|one| one.input_budget),
        output_budget: least(|one| one.output_budget),
        output_rate: least(|one| one.output_rate),
    }
}

fn reason(all: &[Assessment]) -> RampReason {
    let votes = |reason: RampReason| all.iter().filter(|one| one.reason == reason).count();
    let most = all.iter().map(|one| votes(one.reason)).max().unwrap_or(0);
    all.iter().map(|one| one.reason).find(|&reason| votes(reason) == most).unwrap_or_default()
}

/// What the run was asked to do, from what its shards were: limits are added up again.
pub(super) fn facts(logs: &[Survey]) -> Option<Box<UserFacts>> {
    let all: Vec<&UserFacts> =
        logs.iter().filter_map(|log| log.manifest.users.as_deref()).collect();
    let mut facts = (*all.first()?).clone();
    let words =
        |of: fn(&UserFacts) -> u32| all.iter().map(|own| of(own)).fold(0, u32::saturating_add);
    let longs =
        |of: fn(&UserFacts) -> u64| all.iter().map(|own| of(own)).fold(0, u64::saturating_add);
    facts.users_before = words(|own| own.users_before);
    facts.start_users = words(|own| own.start_users);
    facts.max_users = words(|own| own.max_users);
    let limits = &mut facts.limits;
    limits.concurrent = words(|own| own.limits.concurrent);
    limits.prefill = words(|own| own.limits.prefill);
    limits.decode = words(|own| own.limits.decode);
    limits.input_tokens_per_minute = longs(|own| own.limits.input_tokens_per_minute);
    limits.output_tokens_per_minute = longs(|own| own.limits.output_tokens_per_minute);
    limits.new_tokens_per_period = longs(|own| own.limits.new_tokens_per_period);
    limits.working_set_tokens = longs(|own| own.limits.working_set_tokens);
    let pool = &mut facts.pool;
    pool.usable = longs(|own| own.pool.usable);
    pool.requests = longs(|own| own.pool.requests);
    pool.input_tokens = longs(|own| own.pool.input_tokens);
    pool.with_tool_use = longs(|own| own.pool.with_tool_use);
    pool.min_input_tokens = all.iter().filter_map(|own| own.pool.min_input_tokens).min();
    pool.max_input_tokens = all.iter().filter_map(|own| own.pool.max_input_tokens).max();
    pool.max_prefix_tokens = all.iter().filter_map(|own| own.pool.max_prefix_tokens).max();
    // A mean of means that are over unequal and unknown numbers of conversations is none.
    pool.cache_hit_rate = None;
    Some(Box::new(facts))
}
