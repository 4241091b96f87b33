//! Cases of group E whose subject is sub-agents: what is planned of them, and what is played.

use onbeat_shared::run::Left;
use serde_json::Value;

use crate::case::{Case, holds_expected};
use crate::found::Findings;
use crate::product::{name, onbeat, plan_without_bodies, replay, text};
use crate::server::Recorder;

/// What a request of a conversation waits for: session, the request before it, and others.
type Step = (&'static str, Option<u64>, &'static [u64]);

/// E11: a sub-agent starts when its marker is reached, after the request before it; the parent goes
/// on after the last request of each; an empty one is passed over. (The two inner requests are one
/// agent's conversation, so they follow each other: beside each other are agents.)
pub(crate) fn sub_agents(case: &Case, found: &mut Findings) {
    let steps: [Step; 4] =
        [("t", None, &[]), ("t-SA1", Some(0), &[]), ("t-SA1", Some(1), &[]), ("t", Some(0), &[2])];
    let agents = "2 sub-agents (1 empty) with 2 requests, nested 1 deep";
    conversation(case, "sub.json", agents, &steps, found);
    let sent: [Sent; 4] = [
        ("User-001", 0, &[]),
        ("User-001-SA1", 1, &[0]),
        ("User-001-SA1", 2, &[1]),
        ("User-001", 3, &[0, 2]),
    ];
    played(case, "sub.json", &[], &sent, found);
    // An advance onto a marker goes on to the next request.
    let advance = ["--advance-min", "0.25", "--advance-max", "0.25"];
    played(case, "sub.json", &advance, &[("User-001", 3, &[])], found);
}

/// E12: a conversation may begin with a sub-agent, and one may have its own; an advance onto the
/// first marker begins behind it.
pub(crate) fn nested_agents(case: &Case, found: &mut Findings) {
    let steps: [Step; 3] =
        [("t2-SA1", None, &[]), ("t2-SA1-SA1", Some(0), &[]), ("t2", Some(1), &[])];
    let agents = "2 sub-agents (0 empty) with 2 requests, nested 2 deep";
    conversation(case, "sub2.json", agents, &steps, found);
    let sent: [Sent; 3] =
        [("User-001-SA1", 0, &[]), ("User-001-SA1-SA1", 1, &[0]), ("User-001", 2, &[0, 1])];
    played(case, "sub2.json", &[], &sent, found);
    played(case, "sub2.json", &["--advance-max", "0.1"], &[("User-001", 2, &[])], found);
}

fn conversation(case: &Case, file: &str, agents: &str, steps: &[Step], found: &mut Findings) {
    let file = case.file(file);
    let told = onbeat(&["inspect", text(&file), "--format", "json"]);
    found.same("exit code of inspect", &Some(0), &told.code);
    let json: Value = serde_json::from_str(&told.out).unwrap_or_default();
    found.same("requests inspected", &case.expect["n"], &json["rows"]);
    found.says("the agents", &onbeat(&["inspect", text(&file)]).out, &[agents]);
    let plan = plan_without_bodies(&file, &[]);
    found.same("exit code of plan", &Some(0), &plan.told.code);
    holds_expected(&case.expect, &plan, &name(&file), found);
    let ours: Vec<(&str, Option<u64>, Vec<u64>)> = plan
        .rows
        .iter()
        .map(|row| {
            let also = row.value["also_after"].as_array().into_iter().flatten();
            let also = also.filter_map(Value::as_u64).collect();
            (row.session.as_str(), row.value["after"].as_u64(), also)
        })
        .collect();
    let right: Vec<_> =
        steps.iter().map(|(session, after, also)| (*session, *after, also.to_vec())).collect();
    found.same("sessions and whom they wait for", &right, &ours);
}

/// A request as it is played: its user, its row of the trace from zero, and the requests of the run
/// that have ended before it leaves.
type Sent = (&'static str, u32, &'static [usize]);

/// A user plays the case's conversation: these requests leave, in this order, and everybody plays
/// to the end.
fn played(case: &Case, file: &str, options: &[&str], right: &[Sent], found: &mut Findings) {
    let server = Recorder::start();
    let what = format!("{file} {options:?}");
    let short = ["--max-delay", "0.02"];
    let replayed = replay(&case.file(file), &server.url(), &[options, &short].concat());
    found.same(format!("exit code of {what}"), &Some(0), &replayed.told.code);
    let run = replayed.log();
    let Some(users) = run.users.as_ref() else { return found.wrong("a run without users") };
    let name = |i: usize| users.users[run.plan[i].session.as_usize()].name.as_str();
    let ours: Vec<(&str, Option<u32>)> =
        (0..run.plan.len()).map(|i| (name(i), users.template(i))).collect();
    let order: Vec<_> = right.iter().map(|&(user, row, _)| (user, Some(row))).collect();
    found.same(format!("requests of {what}"), &order, &ours);
    found.same(format!("arrivals of {what}"), &right.len(), &server.seen().len());
    for (i, (user, _, before)) in right.iter().enumerate().take(run.plan.len()) {
        for &ended in *before {
            let holds = run.requests.done(ended) <= run.requests.sent(i);
            found.holds(format!("{what}: request {i} of {user} after {ended}"), holds, "before");
        }
        found.holds(format!("{what}: an answer to {i}"), run.requests.is_ok(i), "none");
    }
    let mut names: Vec<&str> = right.iter().map(|sent| sent.0).collect();
    names.sort_unstable();
    names.dedup();
    let mut ends: Vec<_> = users.users.iter().map(|user| (user.name.as_str(), user.left)).collect();
    ends.sort_unstable_by_key(|end| end.0);
    let all: Vec<_> = names.into_iter().map(|name| (name, Some(Left::Completed))).collect();
    found.same(format!("users of {what}, and their ends"), &all, &ends);
}
