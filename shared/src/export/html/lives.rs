//! The users of a run as rows of the timeline, and their requests as its marks.
//!
//! Users stand in the order of their numbers, each followed by its sub-agents. A page that has more
//! than it can show shows every k-th request and the first users, and says so.

use std::collections::{BTreeMap, HashMap};

use super::timeline::{Event, Mark, MarkEnd, Row, Timeline};
use crate::counted::{counted, grouped};
use crate::foreign;
use crate::metrics::attribution::queue_ns;
use crate::metrics::latency::{nanos, ttft_ns};
use crate::metrics::{slo, tokens};
use crate::run::{End, Left, Run, User, Users};
use crate::units::SessionIndex;

/// Most requests that are shown.
pub(super) const MARKS_MAX: usize = 20_000;
/// Most users that are shown.
pub(super) const ROWS_MAX: usize = 2_000;
/// Most different messages that are shown.
const WORDS_MAX: usize = 1_000;

/// The timeline of a run's users, until `end_s`.
pub(super) fn timeline(run: &Run, users: &Users, end_s: f64) -> Timeline {
    let mut order = order(users);
    let all = order.len();
    order.truncate(ROWS_MAX);
    let place: HashMap<SessionIndex, usize> =
        order.iter().enumerate().map(|(row, user)| (user.session, row)).collect();
    let own = |i: &usize| run.requests.was_sent(*i) && place.contains_key(&run.plan[*i].session);
    let sent: Vec<usize> = (0..run.requests.len()).filter(own).collect();
    let step = sent.len().div_ceil(MARKS_MAX).max(1);
    let mut timeline = Timeline {
        rows: order.iter().map(|user| row(user, end_s)).collect(),
        note: note(all, sent.len(), step),
        ..Timeline::default()
    };
    let mut said = HashMap::new();
    for &i in sent.iter().step_by(step) {
        let words = words(run, i).and_then(|words| {
            let next = said.len();
            if let Some(known) = said.get(&words) {
                return Some(*known);
            }
            (next < WORDS_MAX).then(|| {
                timeline.words.push(words.clone());
                *said.entry(words).or_insert(next)
            })
        });
        let row = place[&run.plan[i].session];
        timeline.marks.extend(mark(run, i, row, end_s).map(|mark| Mark { words, ..mark }));
    }
    timeline
}

fn note(users: usize, requests: usize, step: usize) -> String {
    let mut parts = Vec::new();
    if users > ROWS_MAX {
        parts.push(format!(
            "the first {} of {}",
            grouped(ROWS_MAX as u64),
            counted(users as u64, "user")
        ));
    }
    if step > 1 {
        let requests = counted(requests as u64, "request");
        parts.push(format!("every {step}. request of {requests}"));
    }
    if parts.is_empty() { String::new() } else { format!("shows {}", parts.join(" and ")) }
}

/// Every user that started, each followed by its sub-agents.
fn order(users: &Users) -> Vec<&User> {
    let mut children: BTreeMap<Option<SessionIndex>, Vec<&User>> = BTreeMap::new();
    let known = |session: SessionIndex| {
        users.users.get(session.as_usize()).is_some_and(|user| user.started.is_some())
    };
    for user in users.users.iter().filter(|user| user.started.is_some()) {
        // A sub-agent whose parent the log lost stands for itself.
        let parent = user.parent.filter(|parent| known(*parent) && *parent != user.session);
        children.entry(parent).or_default().push(user);
    }
    let mut order = Vec::new();
    let mut open = children.remove(&None).unwrap_or_default();
    open.sort_by_key(|user| std::cmp::Reverse((user.number, user.session)));
    while let Some(user) = open.pop() {
        order.push(user);
        // Taken away, so that a log that makes users their own ancestors ends too.
        let mut own = children.remove(&Some(user.session)).unwrap_or_default();
        own.sort_by_key(|user| std::cmp::Reverse((user.number, user.session)));
        open.extend(own);
    }
    order
}

fn row(user: &User, end_s: f64) -> Row {
    let seconds = |time: crate::units::RunNanos| nanos(time.0) / 1e9;
    let start = user.started.map_or(0.0, seconds);
    let end = user.ended.map_or(end_s, seconds);
    let mut events = vec![(start, Event::Started, "started".to_owned())];
    let done = match (user.done, user.total) {
        (Some(done), Some(total)) => format!(", {done} of {total} requests"),
        _ => String::new(),
    };
    match user.left {
        Some(Left::Completed) => events.push((end, Event::Completed, format!("completed{done}"))),
        Some(Left::Truncated) => events.push((end, Event::Truncated, format!("truncated{done}"))),
        Some(Left::Stopped) | None => {}
    }
    Row {
        name: user.name.clone(),
        trace: user.trace_id.clone().unwrap_or_default(),
        life: (start, end.max(start)),
        events,
        is_sub_agent: user.parent.is_some(),
    }
}

fn mark(run: &Run, i: usize, row: usize, end_s: f64) -> Option<Mark> {
    let seconds = |ns: i64| nanos(ns) / 1e9;
    let sent = run.requests.sent(i)?.0;
    let queue = queue_ns(run, i).unwrap_or(0).max(0);
    let end = match run.requests.is_ok(i) {
        true => MarkEnd::Ok,
        false if slo::failed(run, i) => MarkEnd::Failed,
        false => MarkEnd::Cut,
    };
    Some(Mark {
        row,
        due_s: seconds(sent.saturating_sub(queue)),
        sent_s: seconds(sent),
        end_s: run.requests.done(i).map_or(end_s, |done| seconds(done.0)),
        end,
        ttft_s: ttft_ns(run, i).map(seconds),
        input: tokens::prompt(run, i),
        output: tokens::completion(run, i),
        words: None,
    })
}

/// What is said about a request that did not succeed.
fn words(run: &Run, i: usize) -> Option<String> {
    if run.requests.is_ok(i) {
        return None;
    }
    let class = match run.requests.end(i) {
        End::Known(class) => class.name(),
        End::Open => "in flight when the log ends",
        End::NeverSent | End::NotReached => return None,
    };
    Some(match run.error_text(i) {
        Some(text) => format!("{class}: {}", foreign::shown(text)),
        None => class.to_owned(),
    })
}
