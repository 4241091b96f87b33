//! Where a replay of a run of kv-cache-tester differs from it on purpose: what we do instead, with
//! the decision's name in the words of each failure.

use std::collections::{BTreeMap, BTreeSet};

use onbeat_shared::log::{Class, LimitedBy};
use onbeat_shared::run::{Left, Run};
use onbeat_shared::units::NANOS_PER_SECOND;

use crate::agree::Both;
use crate::found::Findings;
use crate::recorded::Facts;

/// What a server says that cannot.
pub(crate) const HTTP_500: &[u8] =
    b"HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\n\
      Content-Length: 21\r\n\r\n{\"error\":{\"code\":1}} ";

/// The log of a run that left one; the absence of one is told elsewhere.
fn log<'a>(both: &'a Both<'_>) -> Option<&'a Run> {
    both.ours().run.as_ref()
}

/// A: a user plays a conversation that nobody plays, as the tool does, while there is one; where
/// the tool has none left, ours begins another round. Each use has a number of its own.
pub(crate) fn recycled(both: &Both<'_>, found: &mut Findings) {
    let Some(users) = log(both).and_then(|run| run.users.as_ref()) else { return };
    let users: Vec<_> = users.users.iter().filter(|user| user.parent.is_none()).collect();
    let round = both.lists.len();
    found.holds("a second round", users.len() > round, users.len());
    for (at, user) in users.iter().enumerate() {
        let earlier = || users[..at].iter().filter(|other| other.trace_id == user.trace_id);
        let copy = u16::try_from(earlier().count()).ok();
        found.same(format!("the copy of {}", user.name), &copy, &Some(user.copy));
        let Some(start) = user.started else { continue };
        let plays = |other: &&&onbeat_shared::run::User| other.ended.is_none_or(|end| end > start);
        let taken: BTreeSet<_> =
            users[..at].iter().filter(plays).map(|other| &other.trace_id).collect();
        let what = format!("{} to play what nobody plays (recycling)", user.name);
        found.holds(
            what,
            !earlier().any(|other| plays(&other)) || taken.len() == round,
            taken.len(),
        );
    }
    for arrival in &both.ours().arrivals {
        if arrival.copy > 0 {
            let known = both.lists.contains_key(&arrival.session);
            found.holds("X-Session-ID of a copy to be ID#NUMBER", known, &arrival.session);
        }
    }
}

/// A2: with `--stream-all` everything is streamed, as the present code does.
pub(crate) fn all_streamed(both: &Both<'_>, found: &mut Findings) {
    let mut whole = both.ours().arrivals.iter().filter(|own| own.body["stream"] != true);
    found.holds("(type \"n\": --stream-all streams everything)", whole.next().is_none(), "one");
    let keys: BTreeSet<Vec<&str>> = both.arrivals.iter().map(|own| own.keys()).collect();
    let ours: BTreeSet<Vec<&str>> = both.ours().arrivals.iter().map(|own| own.keys()).collect();
    found.same("keys of all bodies", &keys, &ours);
}

/// B: the limits hold at every instant of the log, and budgets from its zero on; users that are
/// kept back are told of, with what kept them back.
pub(crate) fn within_limits(both: &Both<'_>, found: &mut Findings) {
    let Some(run) = log(both) else { return };
    let requests = &run.requests;
    let sent = (0..run.plan.len()).filter_map(|i| Some((requests.sent(i)?.0, i)));
    let mut sent: Vec<(i64, usize)> = sent.collect();
    sent.sort_unstable();
    let (mut output, mut input) = (0.0, 0.0);
    for (order, &(now, i)) in sent.iter().enumerate() {
        let open = |at: Option<i64>| at.is_none_or(|at| at > now);
        let before = sent[..order].iter().map(|&(_, i)| i);
        let under_way: Vec<usize> =
            before.filter(|&i| open(requests.done(i).map(|at| at.0))).collect();
        let waiting = under_way.iter().filter(|&&i| open(requests.first_token(i).map(|at| at.0)));
        let waiting = waiting.count();
        let decoding = under_way.len() - waiting;
        found.holds(
            format!("at most 3 in flight at {now} ns"),
            under_way.len() < 3,
            1 + under_way.len(),
        );
        found.holds(format!("at most 2 in prefill at {now} ns"), waiting < 2, 1 + waiting);
        found.holds(format!("at most 2 decoding at {now} ns"), decoding < 3, decoding);
        let row = &run.plan[i];
        output += f64::from(row.max_tokens.unwrap_or(0));
        let set = row.ideal_set_tokens.unwrap_or(0);
        input += f64::from((row.blocks * 64).saturating_sub(set));
        let minutes = now as f64 / (60 * NANOS_PER_SECOND) as f64;
        let what = format!("of {i} requests within 1500 (100000) tokens a minute");
        found.holds(&what, output <= 1_500.0 * (1.0 + minutes) + 1.0, output);
        found.holds(&what, input <= 100_000.0 * (1.0 + minutes) + 1.0, input);
    }
    let limits = run.users.as_ref().map_or(&[][..], |users| &users.limits);
    let by: BTreeSet<String> = limits.iter().map(|limit| format!("{:?}", limit.by)).collect();
    let layer_1 = [LimitedBy::Prefill, LimitedBy::Concurrency, LimitedBy::Decode];
    let is_first = limits.iter().any(|limit| layer_1.contains(&limit.by));
    found.holds("users that wait for a place", is_first, format!("{by:?}"));
    let base = 200_000_000.0;
    let near = |backoff: u64| (0.75 * base..=1.25 * 30.0 * 1e9).contains(&(backoff as f64));
    let backs = limits.iter().all(|limit| near(limit.backoff_ns));
    found.holds("back-off from 0.2 s up to 30 s, give or take a quarter", backs, "another");
    // Of six that ask at once two may, and the others wait their first 0.2 s.
    let first: Vec<_> = limits.iter().filter(|limit| limit.time.0 < 100_000_000).collect();
    let are_first =
        first.iter().all(|limit| (0.75 * base..=1.25 * base).contains(&(limit.backoff_ns as f64)));
    found.holds("the first back-off to be 0.2 s", are_first, format!("{first:?}"));
}

/// D: the users that begin at zero begin within their conversations, and say so; a user's counts
/// are of what it sent.
pub(crate) fn advanced(both: &Both<'_>, found: &mut Findings) {
    let ours = both.ours();
    let mut advanced = 0;
    for event in both.tables.events.iter().filter(|event| event.details.contains("advanced")) {
        advanced += 1;
        let own: Vec<&Facts> =
            ours.tables.requests.iter().filter(|row| row.user == event.user).collect();
        let ends = ours.tables.events.iter();
        let end = ends.clone().find(|own| own.user == event.user && own.what == "completed");
        let words = format!("{}/{} requests", own.len(), own.len());
        let details = end.map_or("", |end| end.details.as_str());
        let what = format!("{} to count its own requests, {words}", event.user);
        found.holds(what, details.starts_with(&words), details);
    }
    found.same("advanced users", &6, &advanced);
    let users = both.tables.traces();
    found.same("what is played by users that came later", &8, &users.len());
}

/// E: a conversation that begins with a sub-agent is played (the tool ends with a KeyError): the
/// agent's requests, then the parent's.
pub(crate) fn agent_first(both: &Both<'_>, found: &mut Findings) {
    found.same("requests of the tool (D5: KeyError)", &0, &both.arrivals.len());
    let arrivals = &both.ours().arrivals;
    let order: Vec<&str> = arrivals.iter().map(|own| own.session.as_str()).collect();
    let right = vec!["synD:agent_001", "synD:agent_001", "synD"];
    found.same("requests (a sub-agent may be first)", &right, &order);
    let users = both.ours().tables.traces();
    let right = BTreeMap::from([("User-001", "synD"), ("User-001-SA1", "synD:agent_001")]);
    found.same("users (a sub-agent may be first)", &right, &users);
}

/// G: a conversation that grows beyond the context ends there, truncated; what begins beyond it is
/// not played.
pub(crate) fn truncated(both: &Both<'_>, found: &mut Findings) {
    let ours = both.ours();
    let limit = both.command.value("--max-context").and_then(|own| own.parse().ok());
    let limit: u64 = limit.expect("the command has the option");
    let mut seen = BTreeSet::new();
    for (user, trace) in ours.tables.traces() {
        let inputs: Vec<u64> =
            both.lists[trace].iter().filter_map(|entry| entry["in"].as_u64()).collect();
        let fitting: Vec<u64> = inputs.iter().copied().take_while(|&own| own <= limit).collect();
        let rows = ours.tables.requests.iter().filter(|row| row.user == user);
        let sent: Vec<u64> = rows.map(|row| row.input).collect();
        found.same(format!("prompts of {trace} within {limit} tokens"), &fitting, &sent);
        found.holds(format!("{trace} to begin within {limit} tokens"), !sent.is_empty(), "none");
        let end = if fitting.len() < inputs.len() { "truncated" } else { "completed" };
        let ends = ours.tables.events.iter().filter(|event| event.user == user);
        let ends: Vec<&str> = ends.skip(1).map(|event| event.what.as_str()).collect();
        found.same(format!("the end of {trace}"), &vec![end], &ends);
        seen.insert(end);
    }
    found.same("ends that are seen", &BTreeSet::from(["completed", "truncated"]), &seen);
}

/// What becomes of request number `number` to arrive at the server of H, from zero: as the tool's
/// server had it, every fourth is refused, and every fifth cut off in its middle.
pub(crate) const fn fate(number: usize) -> Class {
    match (number + 1) % 20 {
        4 | 8 | 12 | 16 | 0 => Class::Http5xx,
        5 | 10 | 15 => Class::TruncatedBody,
        _ => Class::Ok,
    }
}

/// H: what fails is told and the conversation goes on; nothing is sent again in secret.
pub(crate) fn failed(both: &Both<'_>, found: &mut Findings) {
    let ours = both.ours();
    let (arrived, rows) = (ours.arrivals.len(), ours.tables.requests.len());
    found.same("arrivals (retries: none), one for each row", &rows, &arrived);
    let Some(run) = log(both) else { return };
    let classes = (0..run.plan.len()).filter_map(|i| run.requests.class(i));
    let mut classes: Vec<Class> = classes.collect();
    let mut right: Vec<Class> = (0..arrived).map(fate).collect();
    // (In which order answers of several conversations were given is not told.)
    classes.sort_unstable_by_key(|class| class.name());
    right.sort_unstable_by_key(|class| class.name());
    found.same("ends", &right, &classes);
    for (user, trace) in ours.tables.traces() {
        let sent = ours.tables.requests.iter().filter(|row| row.user == user).count();
        let what = format!("requests of {trace} (a failed turn does not stop its session)");
        found.same(what, &both.length(trace), &sent);
    }
}

/// S: Ctrl-C keeps everything so far; of the tool's run there is no file.
pub(crate) fn interrupted(both: &Both<'_>, found: &mut Findings) {
    found.holds("no table of the tool (D10)", both.tables.requests.is_empty(), "one");
    let ours = both.ours();
    let files = [
        "summary_trace_replay.csv",
        "detailed_results.csv",
        "user_lifecycle.csv",
        "test_metadata.json",
        "progress.json",
    ];
    for file in files {
        let kept = ours.files.iter().any(|own| own == file);
        found.holds(format!("{file} (interrupts: everything so far)"), kept, "none");
    }
    found.same("rows, one for each arrival", &ours.arrivals.len(), &ours.tables.requests.len());
    let metadata = &ours.tables.metadata["onbeat"]["interrupted"];
    found.same("interrupted", &serde_json::Value::from(true), metadata);
    let Some(run) = log(both) else { return };
    let users = run.users.as_ref().map_or(&[][..], |users| &users.users);
    let stopped = users.iter().filter(|user| user.left == Some(Left::Stopped));
    let stopped: Vec<&str> = stopped.map(|user| user.name.as_str()).collect();
    found.same("users that were stopped", &vec!["User-002"], &stopped);
}

/// Z: an answer without a token is an answer: it is not asked for again (the tool sent each request
/// four times), and recorded text stands in for it.
pub(crate) fn without_output(both: &Both<'_>, found: &mut Findings) {
    let ours = both.ours();
    let rows = both.tables.requests.len();
    found.same("requests of the tool (D4)", &(4 * rows), &both.arrivals.len());
    found.same("requests (retries: none)", &rows, &ours.arrivals.len());
    found.same("rows (retries: none)", &rows, &ours.tables.requests.len());
}
