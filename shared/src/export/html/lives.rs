//! The users of a run as rows of the timeline, and their requests as its marks.
//!
//! Users stand in the order of their numbers, each followed by its sub-agents. A page that has more
//! than it can show shows every k-th request and the first users, and says so.

use std::collections::{BTreeMap, HashMap};

use super::timeline::{Event, Mark, MarkEnd, Row, Timeline};
use crate::counted::{counted, grouped};
use crate::metrics::attribution::queue_ns;
use crate::metrics::latency::{nanos, ttft_ns};
use crate::metrics::{held, slo, tokens};
use crate::run::{End, Left, Run, User, Users};
use crate::units::SessionIndex;

/// Most requests that are shown.
const MARKS_MAX: usize = 20_000;
/// Most users that are shown.
const ROWS_MAX: usize = 2_000;
/// Most different messages that are shown.
const WORDS_MAX: usize = 1_000;

/// The timeline of a run's users, until `end_s`.
pub(super) fn timeline(run: &Run, users: &Users, end_s: f64) -> Timeline {
    bounded(run, users, end_s, (MARKS_MAX, ROWS_MAX))
}

/// The same with at most so many requests and users.
fn bounded(run: &Run, users: &Users, end_s: f64, most: (usize, usize)) -> Timeline {
    let (marks_max, rows_max) = most;
    let mut order = order(users);
    let all = order.len();
    order.truncate(rows_max);
    let place: HashMap<SessionIndex, usize> =
        order.iter().enumerate().map(|(row, user)| (user.session, row)).collect();
    let own = |i: &usize| run.requests.was_sent(*i) && place.contains_key(&run.plan[*i].session);
    let sent: Vec<usize> = (0..run.requests.len()).filter(own).collect();
    let step = sent.len().div_ceil(marks_max).max(1);
    let mut timeline = Timeline {
        rows: order.iter().map(|user| row(user, end_s)).collect(),
        note: note((order.len(), all), sent.len(), step),
        ..Timeline::default()
    };
    waits(run, &place, end_s, &mut timeline.rows);
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

/// When each user was kept back.
fn waits(run: &Run, place: &HashMap<SessionIndex, usize>, end_s: f64, rows: &mut [Row]) {
    for wait in held::waits(run) {
        let Some(row) = place.get(&wait.session).and_then(|row| rows.get_mut(*row)) else {
            continue;
        };
        let (from, to) = (nanos(wait.from.0) / 1e9, (nanos(wait.to.0) / 1e9).min(end_s));
        if from < to {
            row.waits.push((from, to));
        }
    }
}

fn note(users: (usize, usize), requests: usize, step: usize) -> String {
    let (shown, users) = users;
    let mut parts = Vec::new();
    if shown < users {
        parts.push(format!(
            "the first {} of {}",
            grouped(shown as u64),
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
        waits: Vec::new(),
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
        End::NeverSent | End::NotReached | End::Lost => return None,
    };
    Some(match run.error_text(i) {
        Some(text) => format!("{class}: {text}"),
        None => class.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::sample_users;

    fn run() -> Run {
        Run::read(&sample_users::log(3, 12)).expect("a log")
    }

    #[test]
    fn every_request_is_a_mark_in_its_user_s_row() {
        let run = run();
        let users = run.users.as_ref().expect("users");
        let timeline = timeline(&run, users, 20.0);
        assert_eq!(timeline.marks.len(), run.requests.len());
        assert_eq!(timeline.rows.len(), users.users.len());
        let mut mine = vec![0; timeline.rows.len()];
        timeline.marks.iter().for_each(|mark| mine[mark.row] += 1);
        for (row, requests) in timeline.rows.iter().zip(mine) {
            let user = users.users.iter().find(|user| user.name == row.name).expect("a user");
            assert_eq!(requests, user.requests, "{}", row.name);
            assert!(row.life.0 <= row.life.1);
        }
        let failed = timeline.marks.iter().filter(|mark| mark.end == MarkEnd::Failed).count();
        let expected = (0..run.requests.len()).filter(|&i| slo::failed(&run, i)).count();
        assert_eq!(failed, expected);
        assert!(timeline.note.is_empty());
        let kept: Vec<_> = timeline.rows.iter().flat_map(|row| &row.waits).collect();
        assert!(!kept.is_empty() && kept.len() <= users.limits.len());
        assert!(kept.iter().all(|(from, to)| from < to && *to <= 20.0));
    }

    #[test]
    fn a_user_s_sub_agents_follow_it() {
        let run = run();
        let timeline = timeline(&run, run.users.as_ref().expect("users"), 20.0);
        let names: Vec<&str> = timeline.rows.iter().map(|row| row.name.as_str()).collect();
        let sorted = |name: &str| name.replace("-SA", "~");
        assert!(names.iter().any(|name| name.contains("-SA")));
        assert!(names.is_sorted_by_key(|name| sorted(name)), "{names:?}");
    }

    #[test]
    fn what_is_left_out_is_said() {
        let run = run();
        let users = run.users.as_ref().expect("users");
        let (all, requests) = (users.users.len(), run.requests.len());
        let timeline = bounded(&run, users, 20.0, (10, 5));
        assert_eq!(timeline.rows.len(), 5);
        assert!(timeline.marks.len() <= 10 && timeline.marks.len() >= 5);
        let first = format!("shows the first 5 of {all} users and every ");
        assert!(timeline.note.starts_with(&first), "{} ({requests})", timeline.note);
    }

    #[test]
    fn a_log_that_makes_users_their_own_ancestors_ends() {
        let run = run();
        let mut users = run.users.clone().expect("users");
        let (first, second) = (users.users[0].session, users.users[1].session);
        users.users[0].parent = Some(second);
        users.users[1].parent = Some(first);
        let shown = timeline(&run, &users, 20.0).rows.len();
        assert!(shown < users.users.len(), "a circle hangs on nobody");
    }
}
