//! The tables of the panel: which rows they have, in which order, and what stands in a cell.

use std::cmp::Ordering;
use std::ops::Range;

use onbeat_shared::{
    metrics::{
        held::{self, Held, Wait},
        periods::Period,
    },
    run::{Left, User},
    units::RunNanos,
};

use super::{Sort, held::limit_words};
use crate::filter;
use crate::opened::OpenedRun;
use crate::quantity;
use crate::series::timeline::lanes::natural;
use crate::state::TimeRange;
use crate::widgets::grid::GridColumn;

const fn number(heading: &'static str, width: f32, about: &'static str) -> GridColumn {
    GridColumn { heading, about, width, is_text: false }
}

const fn text(heading: &'static str, width: f32, about: &'static str) -> GridColumn {
    GridColumn { heading, about, width, is_text: true }
}

/// The columns of the table of periods.
pub const PERIODS: [GridColumn; 16] = [
    number("No.", 32.0, "Number of the period, from 1"),
    number("Until", 52.0, "When it ended, from the schedule's zero"),
    number("Users", 44.0, "Users and sub-agents present at its end"),
    number("Active", 46.0, "Of those: a request ended in it or is in flight at its end"),
    number("Idle", 38.0, "Of those: neither active nor rate-limited"),
    number("Limited", 52.0, "Of those: held back by a limit at any time in it"),
    number("TTFT p50", 68.0, "Time to first token, median"),
    number("TTFT p95", 76.0, "Time to first token, 95th percentile"),
    number("Req./s", 50.0, "Successful requests per second"),
    number("Input/s", 56.0, "Input tokens per second, at the first token"),
    number("Output/s", 64.0, "Output tokens per second, when their chunk arrived"),
    number("In flight", 54.0, "Requests in flight at its end"),
    number("New tokens", 80.0, "Tokens that no cache can have had: what the budget counts"),
    number("Work. set", 65.0, "Tokens of all blocks that were used lately"),
    number("Added", 48.0, "Users that the ramp added at its end"),
    text("Because", 226.0, "Why the ramp added users, or did not"),
];

/// The column of [`WAITS`] with the time.
pub(super) const WAIT_FROM: usize = 1;

/// The columns of the table of waits.
pub const WAITS: [GridColumn; 5] = [
    text("User", 160.0, "Who was held back"),
    number("From", 90.0, "When it was refused first"),
    number("For", 90.0, "Until its last back-off ended"),
    number("Refused", 80.0, "How often it was refused in this wait"),
    text("By", 240.0, "The limit that stood in its way first"),
];

/// The columns of the table of users.
pub const PEOPLE: [GridColumn; 9] = [
    text("User", 140.0, "Its name; sub-agents stand after the user they work for"),
    text("Plays", 190.0, "The conversation it plays, by the trace's own name"),
    number("Started", 80.0, "When it began"),
    number("Ended", 80.0, "When it left"),
    text("How", 130.0, "How it left"),
    number("Requests", 74.0, "Requests that it sent"),
    number("Done", 80.0, "Its own requests that ended, of those it was to play"),
    number("Held back", 74.0, "How often a limit refused it"),
    number("For", 84.0, "How long it was held back in all"),
];

fn instant(nanos: i64) -> String {
    quantity::instant(nanos as f64, 1e10)
}

/// The places of periods that touch a stretch; periods follow each other.
pub(super) fn periods_in(periods: &[Period], stretch: TimeRange) -> Range<usize> {
    let from = periods.partition_point(|period| period.end_ns <= stretch.start.0);
    let to = periods.partition_point(|period| period.start_ns < stretch.end.0);
    from..to.max(from)
}

/// A cell of the table of periods; `limit` is the ramp's, in milliseconds.
#[must_use]
pub fn period_cell(period: &Period, limit_ms: Option<f64>, column: usize) -> Option<String> {
    let count = |count: u32| quantity::count(count.into());
    let ttft = |ttft: Option<f64>| {
        ttft.map(|ms| {
            let above = limit_ms.is_some_and(|limit| ms >= limit);
            // A sign besides, so that what is above the limit does not hang on a colour.
            format!("{}{}", quantity::measured(ms * 1e6), if above { " ↑" } else { "" })
        })
    };
    let rate = |rate: Option<f64>| rate.map(quantity::number);
    let ramp = period.ramp;
    match column {
        0 => Some(count(period.number)),
        1 => Some(instant(period.end_ns)),
        2 => Some(count(period.users.total)),
        3 => Some(count(period.users.active)),
        4 => Some(count(period.users.idle)),
        5 => Some(count(period.users.limited)),
        6 => ttft(period.ttft_ms.as_ref().map(|ttft| ttft.p50)),
        7 => ttft(period.ttft_ms.as_ref().map(|ttft| ttft.p95)),
        8 => rate(period.requests.per_s),
        9 => period.tokens.input_per_s.map(tokens),
        10 => period.tokens.output_per_s.map(tokens),
        11 => Some(quantity::count(period.requests.in_flight)),
        12 => ramp.map(|ramp| tokens(ramp.new_tokens as f64)),
        13 => ramp.map(|ramp| tokens(ramp.working_set_tokens as f64)),
        14 => ramp.map(|ramp| count(ramp.added)),
        _ => ramp.map(|ramp| {
            let reason = ramp.reason;
            format!("{}{}", reason.link(ramp.added.into()), reason.words())
        }),
    }
}

/// A large number of tokens: `11.6 M`.
fn tokens(count: f64) -> String {
    if count < 99_999.5 {
        quantity::number(count)
    } else if count < 999_500.0 {
        format!("{} k", quantity::number(count / 1e3))
    } else {
        format!("{} M", quantity::number(count / 1e6))
    }
}

/// Waits that begin in a stretch, and what each limit did there.
pub(super) fn waits(opened: &OpenedRun, range: TimeRange, sort: Sort) -> (Vec<Wait>, Vec<Held>) {
    let all = opened.timeline.waits(opened);
    let inside = |wait: &&Wait| range.contains(wait.from);
    let mut waits: Vec<Wait> = all.iter().filter(inside).copied().collect();
    let name = |wait: &Wait| user(opened, wait.session.0).map_or("", |user| user.name.as_str());
    let by = |a: &Wait, b: &Wait| match sort.column {
        0 => natural(name(a), name(b)),
        2 => a.ns().cmp(&b.ns()),
        3 => a.times.cmp(&b.times),
        4 => a.by.cmp(&b.by),
        _ => a.from.cmp(&b.from),
    };
    waits.sort_by(|a, b| sort.directed(by(a, b)).then(a.from.cmp(&b.from)));
    (waits, held::by_limit(all, (range.start, range.end)))
}

/// A cell of the table of waits.
#[must_use]
pub fn wait_cell(opened: &OpenedRun, wait: &Wait, column: usize) -> Option<String> {
    match column {
        0 => user(opened, wait.session.0).map(|user| user.name.clone()),
        1 => Some(instant(wait.from.0)),
        2 => Some(quantity::measured(wait.ns() as f64)),
        3 => Some(quantity::count(wait.times.into())),
        _ => Some(limit_words(wait.by).to_owned()),
    }
}

/// What the limits did, in words: whom they held back first, how often, and how long in all.
#[must_use]
pub fn held_words(held: &[Held]) -> String {
    let part = |held: &Held| {
        format!(
            "{}: {}, {}, {}",
            limit_words(held.by),
            quantity::counted(held.users, "user"),
            quantity::counted(held.waits, "wait"),
            quantity::duration(held.total_ns as f64),
        )
    };
    let parts: Vec<String> = held.iter().map(part).collect();
    if parts.is_empty() { "No user was held back here".to_owned() } else { parts.join("; ") }
}

fn user(opened: &OpenedRun, place: u32) -> Option<&User> {
    opened.run.users.as_ref()?.users.get(place as usize)
}

/// How long a user was held back in all.
fn held_ns(opened: &OpenedRun, user: &User) -> i64 {
    let waits = opened.timeline.waits_of(opened, user.session);
    waits.iter().fold(0, |sum, wait| wait.ns().saturating_add(sum))
}

/// The users that were there in a stretch, in order.
pub(super) fn people(opened: &OpenedRun, range: TimeRange, sort: Sort) -> Vec<u32> {
    let Some(users) = &opened.run.users else { return Vec::new() };
    // Frames look them up for the cells.
    let _ = opened.timeline.waits(opened);
    let was_there = |user: &User| {
        let started = user.started.is_some_and(|started| started < range.end);
        started && user.ended.is_none_or(|ended| ended >= range.start)
    };
    let mut found: Vec<(u32, &User)> =
        (0..).zip(&users.users).filter(|(_, user)| was_there(user)).collect();
    let by_time = |time: Option<RunNanos>| time.unwrap_or(RunNanos(i64::MAX));
    let by = |a: &User, b: &User| -> Ordering {
        match sort.column {
            1 => natural(a.trace_id.as_deref().unwrap_or(""), b.trace_id.as_deref().unwrap_or("")),
            2 => by_time(a.started).cmp(&by_time(b.started)),
            3 => by_time(a.ended).cmp(&by_time(b.ended)),
            4 => left_words(a.left).cmp(left_words(b.left)),
            5 => a.requests.cmp(&b.requests),
            6 => a.done.cmp(&b.done),
            7 => a.limited.cmp(&b.limited),
            8 => held_ns(opened, a).cmp(&held_ns(opened, b)),
            _ => natural(&a.name, &b.name),
        }
    };
    found.sort_by(|a, b| sort.directed(by(a.1, b.1)).then_with(|| natural(&a.1.name, &b.1.name)));
    found.into_iter().map(|(place, _)| place).collect()
}

const fn left_words(left: Option<Left>) -> &'static str {
    match left {
        Some(Left::Completed) => "completed",
        Some(Left::Truncated) => "truncated",
        Some(Left::Stopped) => "stopped",
        None => "was there to the end",
    }
}

/// A cell of the table of users.
#[must_use]
pub fn person_cell(opened: &OpenedRun, place: u32, column: usize) -> Option<String> {
    let user = user(opened, place)?;
    let count = |count: u32| quantity::count(count.into());
    let indent = if user.parent.is_some() { "   " } else { "" };
    match column {
        0 => Some(format!("{indent}{}", user.name)),
        1 => user.trace_id.clone(),
        2 => user.started.map(|time| instant(time.0)),
        3 => user.ended.map(|time| instant(time.0)),
        4 => Some(left_words(user.left).to_owned()),
        5 => Some(count(user.requests)),
        6 => user
            .done
            .zip(user.total)
            .map(|(done, total)| format!("{} of {}", count(done), count(total))),
        7 => Some(count(user.limited)),
        _ => Some(held_ns(opened, user))
            .filter(|&held| held > 0)
            .map(|held| quantity::measured(held as f64)),
    }
}

/// A filter that keeps the requests of one user and its sub-agents, or of one sub-agent.
#[must_use]
pub fn filter_of(opened: &OpenedRun, place: u32) -> Option<String> {
    let user = user(opened, place)?;
    let field = if user.parent.is_some() { "session" } else { "user" };
    (!user.name.is_empty()).then(|| format!("{field} == {}", filter::value(&user.name)))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use onbeat_shared::{
        log::{RampReason, sample_users},
        run::Run,
    };

    use super::*;
    use crate::filter::Filter;

    fn opened() -> OpenedRun {
        let bytes = sample_users::log(3, 12);
        let run = Run::read(&bytes).expect("a readable log");
        OpenedRun::new(PathBuf::from("a.beat"), bytes.len() as u64, run)
    }

    fn sort(column: usize, descending: bool) -> Sort {
        Sort { column, descending }
    }

    /// Where users were added, a reason that ends a ramp is why there were not more.
    #[test]
    fn a_period_says_why_there_were_not_more() {
        let opened = opened();
        let periods = opened.people.periods(&opened);
        let mut period = periods.first().expect("a period").clone();
        let mut ramp = period.ramp.expect("a decision");
        ramp.reason = RampReason::MaxUsers;
        for (added, words) in [(0, "as many users as may be"), (3, "then as many users as may be")]
        {
            ramp.added = added;
            period.ramp = Some(ramp);
            assert_eq!(period_cell(&period, None, PERIODS.len() - 1).as_deref(), Some(words));
        }
    }

    #[test]
    fn users_are_sorted_by_any_column_both_ways() {
        let opened = opened();
        let whole = opened.whole();
        let count = opened.run.users.as_ref().map_or(0, |users| users.users.len());
        for column in 0..PEOPLE.len() {
            for descending in [false, true] {
                let found = people(&opened, whole, sort(column, descending));
                let mut places = found.clone();
                places.sort_unstable();
                places.dedup();
                assert_eq!(places.len(), count, "column {column}");
                for &place in &found {
                    assert_ne!(person_cell(&opened, place, column), Some(String::new()));
                }
            }
        }
        let requests = |place: &u32| user(&opened, *place).map(|user| user.requests);
        let found = people(&opened, whole, sort(5, true));
        assert!(found.iter().map(requests).is_sorted_by(|a, b| a >= b));
    }

    #[test]
    fn a_user_s_filter_keeps_its_requests_alone() {
        let opened = opened();
        let run = &opened.run;
        for place in people(&opened, opened.whole(), sort(0, false)) {
            let text = filter_of(&opened, place).expect("a name");
            let filter = Filter::parse(&text).expect("a filter");
            let found = (0..run.requests.len()).filter(|&i| filter.matches(run, i)).count();
            let user = user(&opened, place).expect("it is there");
            let all = &run.users.as_ref().expect("users").users;
            let agents = all.iter().filter(|other| other.parent == Some(user.session));
            let agents: u32 = agents.map(|agent| agent.requests).sum();
            assert_eq!(found, (user.requests + agents) as usize, "{text}");
        }
    }

    #[test]
    fn a_filter_finds_a_user_whatever_its_name_holds() {
        let mut run = Run::read(&sample_users::log(3, 12)).expect("a readable log");
        let name = "a\t\u{200b} \"b\" \\ c";
        let user = run.users.as_mut().and_then(|users| users.users.first_mut());
        user.expect("a user").name = name.to_owned();
        let opened = OpenedRun::new(PathBuf::from("a.beat"), 0, run);
        let filter = Filter::parse(&filter_of(&opened, 0).expect("a name")).expect("a filter");
        let found = (0..opened.run.requests.len()).filter(|&i| filter.matches(&opened.run, i));
        assert!(found.count() > 0);
    }

    #[test]
    fn waits_and_periods_of_a_stretch_are_those_that_touch_it() {
        let opened = opened();
        let whole = opened.whole();
        let (all, held) = waits(&opened, whole, sort(1, false));
        assert_eq!(all.len(), opened.timeline.waits(&opened).len());
        assert!(all.is_sorted_by_key(|wait| wait.from));
        assert_eq!(held.iter().map(|held| held.waits).sum::<u64>(), all.len() as u64);
        assert!(held_words(&held).contains(" user"));
        let longest = waits(&opened, whole, sort(2, true)).0;
        assert!(longest.is_sorted_by(|a, b| a.ns() >= b.ns()));
        let periods = opened.people.periods(&opened);
        assert_eq!(periods_in(periods, whole), 0..periods.len());
        let second = TimeRange::between(RunNanos(6_000_000_000), RunNanos(9_000_000_000));
        assert_eq!(periods_in(periods, second), 1..2);
        for period in periods.iter() {
            for column in 0..PERIODS.len() {
                assert_ne!(period_cell(period, Some(1.0), column), Some(String::new()));
            }
        }
    }
}
