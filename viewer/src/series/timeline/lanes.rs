//! Which lanes the timeline has, in which order, and which requests are in each.
//!
//! A lane is a session, or a user or sub-agent of a run that users drive; sub-agents follow the
//! user they work for. Sessions of which nothing left have no lane; users that sent nothing have
//! one, for they were there. Made once for each order, search and filter, in one pass and a few
//! sorts over all requests; afterwards the requests of a lane that touch a stretch of time are
//! found by bisection, however many there are.

use std::{
    cmp::Ordering,
    collections::{HashMap, HashSet},
    ops::Range,
    sync::Arc,
};

use onbeat_shared::{
    run::{Run, User, Users},
    units::{CoreIndex, RunNanos, SessionIndex},
};

use crate::filter::Filter;
use crate::opened::OpenedRun;
use crate::state::TimeRange;

/// The order of lanes. Sub-agents always stay with their user, who is placed by all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// By the first request's sending.
    #[default]
    First,
    /// Most requests first.
    Most,
    /// The longest from the first sending to the last end first.
    Longest,
    /// By name, numbers in it by their value.
    Name,
}

/// Which lanes are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Which {
    /// In which order.
    pub order: Order,
    /// Only those whose name (or conversation) contains this; empty: all.
    pub search: Arc<str>,
    /// Only requests that pass.
    pub filter: Option<Arc<Filter>>,
}

/// The most requests of a lane that are drawn one below the other.
pub const ROWS_MAX: u8 = 5;

/// A lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its session.
    pub session: SessionIndex,
    /// How many users stand above it.
    pub depth: u8,
    /// How many of its requests are in flight at once, up to one more than [`ROWS_MAX`].
    pub rows: u8,
    /// How many of its requests left.
    pub sent: usize,
    /// The core that sends them, if it is one.
    pub core: Option<CoreIndex>,
}

/// The lanes and their requests.
#[derive(Debug, Default)]
pub struct Lanes {
    heads: Vec<Head>,
    /// Where each lane's requests begin, and the end of the last.
    starts: Vec<usize>,
    /// Requests, by lane and then by time.
    requests: Vec<u32>,
    /// Which of its lane's rows each is in.
    rows: Vec<u8>,
    /// The latest end of a lane's requests up to each.
    latest: Vec<i64>,
    /// Sessions that the search leaves out.
    pub hidden: usize,
}

impl Lanes {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heads.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// One lane.
    #[must_use]
    pub fn head(&self, lane: usize) -> Head {
        self.heads[lane]
    }

    /// A lane's requests, by time.
    #[must_use]
    pub fn requests(&self, lane: usize) -> &[u32] {
        &self.requests[self.starts[lane]..self.starts[lane + 1]]
    }

    /// All requests, by lane and then by time.
    #[must_use]
    pub fn all(&self) -> &[u32] {
        &self.requests
    }

    /// Places in [`Self::all`] of a lane's requests that may touch a stretch of time: every one
    /// that does lies between these, and all of these were sent before its end.
    #[must_use]
    pub fn near(&self, run: &Run, lane: usize, stretch: TimeRange) -> Range<usize> {
        let (start, end) = (self.starts[lane], self.starts[lane + 1]);
        let from = self.latest[start..end].partition_point(|&latest| latest < stretch.start.0);
        let time = |&i: &u32| time_of(run, i as usize);
        let to = self.requests[start..end].partition_point(|i| time(i) < Some(stretch.end));
        start + from..start + to.max(from)
    }

    /// The row of a place in [`Self::all`].
    #[must_use]
    pub fn row(&self, place: usize) -> u8 {
        self.rows[place]
    }
}

/// When a request is in the picture first: when it left, or when it was to leave.
#[must_use]
pub fn time_of(run: &Run, i: usize) -> Option<RunNanos> {
    run.requests.sent(i).or_else(|| run.requests.intended(i))
}

/// When a request is in the picture last: at its end, or the log's if it has none.
#[must_use]
pub fn end_of(run: &Run, i: usize) -> RunNanos {
    match run.requests.sent(i) {
        Some(sent) => run.requests.done(i).map_or(RunNanos(i64::MAX), |done| done.max(sent)),
        None => time_of(run, i).unwrap_or(RunNanos(i64::MIN)),
    }
}

/// The requests of one session, before lanes are in order.
struct Group {
    session: SessionIndex,
    depth: u8,
    requests: Range<usize>,
    first: RunNanos,
    last: RunNanos,
}

/// What a user and its sub-agents are placed by.
#[derive(Clone, Copy)]
struct Weight {
    first: RunNanos,
    last: RunNanos,
    requests: usize,
}

/// Works the lanes out.
#[must_use]
pub fn lanes(opened: &OpenedRun, which: &Which) -> Lanes {
    let run = &opened.run;
    let requests = by_session(opened, which);
    let mut groups = groups(run, &requests);
    add_quiet_users(run, which.filter.is_some(), &mut groups);
    let all = groups.len();
    let search = which.search.trim().to_lowercase();
    if !search.is_empty() {
        groups.retain(|group| is_found(run, group.session, &search));
    }
    let hidden = all - groups.len();
    sort(run, &mut groups, which.order);
    let mut lanes = Lanes { hidden, starts: vec![0], ..Lanes::default() };
    for group in &groups {
        let own = &requests[group.requests.clone()];
        let rows = lanes.append(run, own);
        let core = |&i: &u32| run.requests.core(i as usize);
        let first = own.first().and_then(core);
        lanes.heads.push(Head {
            session: group.session,
            depth: group.depth,
            rows,
            sent: own.iter().filter(|&&i| run.requests.was_sent(i as usize)).count(),
            core: first.filter(|_| own.iter().all(|i| core(i) == first)),
        });
        lanes.starts.push(lanes.requests.len());
    }
    lanes
}

impl Lanes {
    /// Appends a lane's requests; says how many rows they need.
    fn append(&mut self, run: &Run, requests: &[u32]) -> u8 {
        let mut free: Vec<i64> = Vec::new();
        let mut latest = i64::MIN;
        for &request in requests {
            let i = request as usize;
            let begins = time_of(run, i).map_or(i64::MIN, |time| time.0);
            let end = end_of(run, i).0;
            latest = latest.max(end);
            let row = free.iter().position(|&free| free <= begins).unwrap_or(free.len());
            match free.get_mut(row) {
                Some(free) => *free = end,
                None if row <= usize::from(ROWS_MAX) => free.push(end),
                None => {}
            }
            self.requests.push(request);
            self.rows.push(u8::try_from(row).unwrap_or(u8::MAX).min(ROWS_MAX));
            self.latest.push(latest);
        }
        u8::try_from(free.len()).unwrap_or(u8::MAX)
    }
}

/// Requests with a time that pass the filter, by session and then by time.
fn by_session(opened: &OpenedRun, which: &Which) -> Vec<u32> {
    let run = &opened.run;
    let passing = opened.passing(which.filter.as_ref());
    let all = u32::try_from(run.requests.len()).unwrap_or(u32::MAX);
    let belongs = |&i: &u32| passing.has(i as usize) && time_of(run, i as usize).is_some();
    let mut requests: Vec<u32> = (0..all).filter(belongs).collect();
    requests.sort_by_key(|&i| (run.plan[i as usize].session, time_of(run, i as usize), i));
    requests
}

/// One group for each session of which something left.
fn groups(run: &Run, requests: &[u32]) -> Vec<Group> {
    let mut groups = Vec::new();
    let mut start = 0;
    let session_of = |i: u32| run.plan[i as usize].session;
    for own in requests.chunk_by(|&a, &b| session_of(a) == session_of(b)) {
        let place = start..start + own.len();
        start = place.end;
        let sent = || own.iter().map(|&i| i as usize).filter(|&i| run.requests.was_sent(i));
        let Some(first) = sent().filter_map(|i| run.requests.sent(i)).min() else { continue };
        let last = sent().filter_map(|i| run.requests.done(i)).max().unwrap_or(first);
        let session = session_of(own[0]);
        let depth = run.users.as_ref().map_or(0, |users| users.depth(session));
        let depth = u8::try_from(depth).unwrap_or(u8::MAX);
        groups.push(Group { session, depth, requests: place, first, last: last.max(first) });
    }
    groups
}

/// Adds the users of whom no request is shown: all that started, or, where a filter leaves out
/// requests, only those whose sub-agents have a lane.
fn add_quiet_users(run: &Run, is_filtered: bool, groups: &mut Vec<Group>) {
    let Some(users) = &run.users else { return };
    let has_lane: HashSet<SessionIndex> = groups.iter().map(|group| group.session).collect();
    let mut wanted: HashSet<SessionIndex> = HashSet::new();
    if is_filtered {
        let above = groups.iter().flat_map(|group| path(users, group.session));
        wanted.extend(above.map(|(_, session)| session));
    } else {
        wanted.extend(users.users.iter().map(|user| user.session));
    }
    for user in &users.users {
        let (session, depth) = (user.session, users.depth(user.session));
        if let Some(started) = user.started.filter(|_| wanted.contains(&session))
            && !has_lane.contains(&session)
        {
            groups.push(Group {
                session,
                depth: u8::try_from(depth).unwrap_or(u8::MAX),
                requests: 0..0,
                first: started,
                last: started,
            });
        }
    }
}

/// Whether a session's name, or that of the conversation it plays, contains a text in lower case.
fn is_found(run: &Run, session: SessionIndex, search: &str) -> bool {
    let contains = |text: &str| text.to_lowercase().contains(search);
    let user = run.users.as_ref().and_then(|users| users.users.get(session.as_usize()));
    let trace = user.and_then(|user| user.trace_id.as_deref());
    contains(name_of(run, session)) || trace.is_some_and(contains)
}

/// A session's name; empty where the log lost it or never had one.
#[must_use]
pub fn name_of(run: &Run, session: SessionIndex) -> &str {
    run.sessions.get(session.as_usize()).map_or("", String::as_str)
}

fn sort(run: &Run, groups: &mut [Group], order: Order) {
    let Some(users) = &run.users else {
        groups.sort_by(|a, b| {
            let by = compare(order, weight(a), weight(b), || {
                natural(name_of(run, a.session), name_of(run, b.session))
            });
            by.then(a.session.cmp(&b.session))
        });
        return;
    };
    let mut families: HashMap<SessionIndex, Weight> = HashMap::new();
    for group in &*groups {
        let own = weight(group);
        families
            .entry(root(users, group.session))
            .and_modify(|all| {
                all.first = all.first.min(own.first);
                all.last = all.last.max(own.last);
                all.requests += own.requests;
            })
            .or_insert(own);
    }
    groups.sort_by_cached_key(|group| {
        let root = root(users, group.session);
        let key = Key { order, weight: families[&root], name: name_of(run, root) };
        (key, root, path(users, group.session))
    });
}

fn weight(group: &Group) -> Weight {
    Weight { first: group.first, last: group.last, requests: group.requests.len() }
}

fn compare(order: Order, a: Weight, b: Weight, names: impl Fn() -> Ordering) -> Ordering {
    let length = |weight: Weight| weight.last.0.saturating_sub(weight.first.0);
    match order {
        Order::First => a.first.cmp(&b.first),
        Order::Most => b.requests.cmp(&a.requests),
        Order::Longest => length(b).cmp(&length(a)),
        Order::Name => names(),
    }
}

/// What a family of lanes is placed by.
struct Key<'a> {
    order: Order,
    weight: Weight,
    name: &'a str,
}

impl Ord for Key<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(self.order, self.weight, other.weight, || natural(self.name, other.name))
    }
}

impl PartialOrd for Key<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key<'_> {}

fn root(users: &Users, session: SessionIndex) -> SessionIndex {
    users.root(session).map_or(session, |user| user.session)
}

/// Numbers and sessions from the user down to a sub-agent: their order is that of a tree.
fn path(users: &Users, session: SessionIndex) -> Vec<(Option<u32>, SessionIndex)> {
    let parent = |user: &&User| {
        // Sessions are numbered as they begin, so a parent has a smaller number.
        let parent = user.parent.filter(|&parent| parent < user.session)?;
        users.users.get(parent.as_usize())
    };
    let line = std::iter::successors(users.users.get(session.as_usize()), parent);
    let mut path: Vec<_> = line.map(|user| (user.number, user.session)).collect();
    path.reverse();
    path
}

/// Compares names with the numbers in them by their value: `user 9` comes before `user 10`.
#[must_use]
pub fn natural(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    loop {
        let (Some(first), Some(second)) = (left.chars().next(), right.chars().next()) else {
            return left.len().cmp(&right.len()).then_with(|| a.cmp(b));
        };
        let by = if first.is_ascii_digit() && second.is_ascii_digit() {
            let (number, rest) = digits(left);
            let (other, other_rest) = digits(right);
            (left, right) = (rest, other_rest);
            number.len().cmp(&other.len()).then_with(|| number.cmp(other))
        } else {
            left = &left[first.len_utf8()..];
            right = &right[second.len_utf8()..];
            first.cmp(&second)
        };
        if by.is_ne() {
            return by;
        }
    }
}

/// The digits at a text's start without leading zeros, and what follows them.
fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    (number.trim_start_matches('0'), rest)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use onbeat_shared::log::{Class, sample, sample::Sample, sample_users};

    use super::*;

    fn opened(bytes: &[u8]) -> OpenedRun {
        let run = Run::read(bytes).expect("a readable log");
        OpenedRun::new(PathBuf::from("sample.beat"), bytes.len() as u64, run)
    }

    fn names(opened: &OpenedRun, lanes: &Lanes) -> Vec<String> {
        let name = |lane| name_of(&opened.run, lanes.head(lane).session).to_owned();
        (0..lanes.len()).map(name).collect()
    }

    fn which(order: Order, search: &str) -> Which {
        Which { order, search: search.into(), filter: None }
    }

    #[test]
    fn numbers_in_names_count_by_their_value() {
        let mut names = ["b2", "b10", "é", "b1", "a", "b", "b01", "b1x", "B3", "b2-SA1", ""];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(names, ["", "B3", "a", "b", "b01", "b1", "b1x", "b2", "b2-SA1", "b10", "é"]);
    }

    #[test]
    fn every_request_that_left_is_in_its_lane_by_time() {
        for bytes in [sample::log(3, 400), sample_users::log(3, 12)] {
            let opened = opened(&bytes);
            let run = &opened.run;
            for order in [Order::First, Order::Most, Order::Longest, Order::Name] {
                let lanes = lanes(&opened, &which(order, ""));
                let mut seen: Vec<u32> = lanes.all().to_vec();
                seen.sort_unstable();
                seen.retain(|&i| run.requests.was_sent(i as usize));
                let mut sent = opened.by_sent().to_vec();
                sent.sort_unstable();
                assert_eq!(seen, sent, "{order:?}");
                for lane in 0..lanes.len() {
                    let own = lanes.requests(lane);
                    let session = lanes.head(lane).session;
                    assert!(own.iter().all(|&i| run.plan[i as usize].session == session));
                    assert!(own.is_sorted_by_key(|&i| time_of(run, i as usize)));
                }
            }
        }
    }

    /// Against looking at every request of the lane.
    #[test]
    fn what_touches_a_stretch_is_found() {
        let opened = opened(&sample::log(5, 600));
        let run = &opened.run;
        let lanes = lanes(&opened, &Which::default());
        let span = opened.whole().span();
        for step in 0..40 {
            let start = RunNanos(opened.whole().start.0 + span / 40 * step);
            let stretch = TimeRange::between(start, RunNanos(start.0 + span / (1 + step * 3)));
            for lane in 0..lanes.len() {
                let near = lanes.near(run, lane, stretch);
                let touches = |i: u32| {
                    let i = i as usize;
                    time_of(run, i).is_some_and(|time| time < stretch.end)
                        && end_of(run, i) >= stretch.start
                };
                let found: Vec<u32> =
                    lanes.all()[near].iter().copied().filter(|&i| touches(i)).collect();
                let right: Vec<u32> =
                    lanes.requests(lane).iter().copied().filter(|&i| touches(i)).collect();
                assert_eq!(found, right, "lane {lane} in {stretch:?}");
            }
        }
    }

    #[test]
    fn requests_in_one_row_never_overlap() {
        for bytes in [sample::log(5, 600), sample_users::log(3, 12)] {
            let opened = opened(&bytes);
            let run = &opened.run;
            let lanes = lanes(&opened, &Which::default());
            for lane in 0..lanes.len() {
                if lanes.head(lane).rows > ROWS_MAX {
                    continue;
                }
                let mut ends = [RunNanos(i64::MIN); 16];
                for place in lanes.starts[lane]..lanes.starts[lane + 1] {
                    let (i, row) = (lanes.all()[place] as usize, usize::from(lanes.row(place)));
                    assert!(row < usize::from(lanes.head(lane).rows));
                    assert!(time_of(run, i) >= Some(ends[row]), "request {i} of lane {lane}");
                    ends[row] = end_of(run, i);
                }
            }
        }
    }

    #[test]
    fn sub_agents_follow_their_user_in_every_order() {
        let opened = opened(&sample_users::log(3, 12));
        for order in [Order::First, Order::Most, Order::Longest, Order::Name] {
            let lanes = lanes(&opened, &which(order, ""));
            let names = names(&opened, &lanes);
            assert!(names.iter().any(|name| name.contains("-SA")), "{names:?}");
            for (lane, pair) in names.windows(2).enumerate() {
                if let Some((user, _)) = pair[1].split_once("-SA") {
                    assert!(pair[0].starts_with(user), "{order:?}: {names:?}");
                    assert_eq!(lanes.head(lane + 1).depth, 1);
                }
            }
        }
        let by_name = lanes(&opened, &which(Order::Name, ""));
        let names = names(&opened, &by_name);
        assert!(names.is_sorted_by(|a, b| natural(a, b).is_le()), "{names:?}");
    }

    #[test]
    fn orders_put_first_what_they_say() {
        let opened = opened(&sample::log(5, 600));
        let run = &opened.run;
        let key = |order, key: &dyn Fn(&[u32]) -> i64| {
            let lanes = lanes(&opened, &which(order, ""));
            (0..lanes.len()).map(|lane| key(lanes.requests(lane))).collect::<Vec<_>>()
        };
        let sent = |i: &u32| run.requests.sent(*i as usize).map(|time| time.0);
        let first = |own: &[u32]| own.iter().filter_map(sent).min().unwrap_or(0);
        assert!(key(Order::First, &first).is_sorted());
        let most = key(Order::Most, &|own| i64::try_from(own.len()).expect("small"));
        assert!(most.is_sorted_by(|a, b| a >= b));
    }

    #[test]
    fn a_search_keeps_what_has_its_words() {
        let opened = opened(&sample_users::log(3, 12));
        let all = lanes(&opened, &Which::default());
        let found = lanes(&opened, &which(Order::First, "user-002"));
        let names = names(&opened, &found);
        assert_eq!(names, ["User-002", "User-002-SA1", "User-002-SA2"]);
        assert_eq!(found.hidden, all.len() - 3);
        let trace = lanes(&opened, &which(Order::First, "trace_0001:agent_002"));
        assert_eq!(trace.len(), 1);
        assert!(lanes(&opened, &which(Order::First, "nobody")).is_empty());
    }

    #[test]
    fn a_session_of_which_nothing_left_has_no_lane() {
        let mut sample = Sample::new();
        sample.sessions = vec!["a".to_owned(), "b".to_owned()];
        let request = sample.send(0);
        sample.done(request, 5, Class::Ok);
        let other = sample.plan(10);
        sample.plan[other.as_usize()].session = SessionIndex(1);
        let own = sample.plan(20);
        let opened = opened(&sample.bytes());
        let lanes = lanes(&opened, &Which::default());
        assert_eq!(lanes.len(), 1);
        assert_eq!(lanes.requests(0), [request.0, own.0], "what it was to send is there");
    }
}
