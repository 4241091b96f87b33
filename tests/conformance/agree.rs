//! What every replay of a run of kv-cache-tester must have in common with it.

use std::collections::BTreeMap;

use onbeat_shared::units::SessionIndex;
use serde_json::{Value, json};

use crate::found::Findings;
use crate::played::{Command, MODEL, Played, is_agent};
use crate::prompts;
use crate::recorded::{Arrival, Event, Facts, Tables};

/// A play of a conversation, or of a sub-agent's: trace id, and how often it was played before.
type Play = (String, usize);

/// The tool's run and ours of the same command.
pub(crate) struct Both<'a> {
    /// The command.
    pub(crate) command: &'a Command<'a>,
    /// The conversations, by trace id.
    pub(crate) lists: &'a BTreeMap<String, Vec<Value>>,
    /// The tool's tables; empty where there are none.
    pub(crate) tables: Tables,
    /// What arrived of the tool's.
    pub(crate) arrivals: Vec<Arrival>,
    /// Ours, once it has ended.
    pub(crate) ours: Option<Played>,
}

impl Both<'_> {
    /// Our replay.
    pub(crate) fn ours(&self) -> &Played {
        self.ours.as_ref().expect("it has been played")
    }

    /// Requests of a list.
    pub(crate) fn length(&self, session: &str) -> usize {
        let list = self.lists.get(session).map_or(&[][..], Vec::as_slice);
        list.iter().filter(|entry| !is_agent(entry)).count()
    }

    /// The tool's requests by play: nobody plays a conversation that another is playing.
    fn theirs(&self) -> BTreeMap<Play, Vec<&Arrival>> {
        let mut plays: BTreeMap<Play, Vec<&Arrival>> = BTreeMap::new();
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for arrival in &self.arrivals {
            let count = counts.entry(&arrival.session).or_default();
            let copy = *count / self.length(&arrival.session).max(1);
            *count += 1;
            plays.entry((arrival.session.clone(), copy)).or_default().push(arrival);
        }
        plays
    }

    /// How many requests of each play arrived from the tool.
    pub(crate) fn wanted(&self) -> BTreeMap<Play, usize> {
        self.theirs().into_iter().map(|(play, list)| (play, list.len())).collect()
    }

    /// Our requests by play.
    pub(crate) fn own(&self) -> BTreeMap<Play, Vec<&Arrival>> {
        let mut plays: BTreeMap<Play, Vec<&Arrival>> = BTreeMap::new();
        for arrival in &self.ours().arrivals {
            plays.entry((arrival.session.clone(), arrival.copy)).or_default().push(arrival);
        }
        plays
    }

    /// Whether the run ended before its users did.
    fn was_cut(&self) -> bool {
        self.ours().told.code != Some(0)
    }
}

/// All of it.
pub(crate) fn all(both: &Both<'_>, found: &mut Findings) {
    users(both, found);
    facts(both, found);
    sent(both, found);
    bodies(both, found);
    waits(both, found);
    agents(both, found);
    prompts::share(both, found);
    lives(both, found);
    if both.tables.metadata.is_object() {
        metadata(both, found);
    }
}

/// Users play the same conversations: the first round of the pool is the tool's, with the same
/// words about their beginnings and their ends.
fn users(both: &Both<'_>, found: &mut Findings) {
    let ours = &both.ours().tables;
    let round = both.lists.keys().filter(|id| !id.contains(':')).count();
    let (theirs, own) = (both.tables.traces(), ours.traces());
    for (user, trace) in theirs.iter().take(round) {
        let plays = own.get(user);
        // A run that is interrupted may not have come so far.
        if plays.is_some() || !both.was_cut() {
            found.same(format!("what {user} plays"), &Some(trace), &plays);
        }
    }
    let has_agents = |trace: &str| both.lists[trace].iter().any(is_agent);
    for event in &both.tables.events {
        let user = event.user.as_str();
        if own.get(user) != Some(&event.trace.as_str()) {
            // A later round: which conversation it plays is our decision.
            continue;
        }
        let what = format!("{user} {}", event.what);
        let same = |own: &&Event| own.user == user && own.what == event.what;
        let Some(mine) = ours.events.iter().find(same) else {
            found.holds(what, both.was_cut(), "no such event");
            continue;
        };
        // Of an advanced one the tool counts what was not sent; `differ` has what we say.
        let ended = event.what != "started";
        if ended && is_advanced(both, user) {
            continue;
        }
        if has_agents(&event.trace) {
            // The tool counts sub-agents' places, we requests of its own; the rest is the same.
            let rest = event.details.split_once(' ').map_or("", |(_, rest)| rest);
            let length = both.length(&event.trace);
            let count = if ended { format!("{length}/{length}") } else { length.to_string() };
            found.same(what, &format!("{count} {rest}"), &mine.details);
            continue;
        }
        // How long the first prompt is, is known of one that was sent.
        match ours.requests.iter().any(|row| row.user == user) {
            true => found.same(what, &event.details, &mine.details),
            false => found.holds(what, event.details.starts_with(&mine.details), &mine.details),
        }
    }
}

/// Whether the tool began a user within its conversation.
fn is_advanced(both: &Both<'_>, user: &str) -> bool {
    let events = both.tables.events.iter();
    events.filter(|event| event.user == user).any(|event| event.details.contains("advanced"))
}

/// Everybody begins once, before its only end; all that began has ended, unless the run was cut.
fn lives(both: &Both<'_>, found: &mut Findings) {
    let events = &both.ours().tables.events;
    let places = |user: &str, starts: bool| -> Vec<usize> {
        let own = |event: &Event| event.user == user && (event.what == "started") == starts;
        (0..events.len()).filter(|&at| own(&events[at])).collect()
    };
    for event in events.iter().filter(|event| event.what == "started") {
        let (starts, ends) = (places(&event.user, true), places(&event.user, false));
        let told = (starts.len(), ends.len());
        let right = told == (1, 1) || (both.was_cut() && told == (1, 0));
        found.holds(format!("one start and one end of {}", event.user), right, {
            format!("{told:?}")
        });
        let sorted = ends.first().is_none_or(|end| starts[0] < *end);
        found.holds(format!("the start of {} before its end", event.user), sorted, "after");
    }
}

/// Every play has the tool's rows of requests first: place, kind, tokens and blocks.
fn facts(both: &Both<'_>, found: &mut Findings) {
    let (theirs, ours) = (both.tables.plays(), both.ours().tables.plays());
    for (play, theirs) in &theirs {
        let own = ours.get(play).map_or(&[][..], Vec::as_slice);
        let enough = own.len() >= theirs.len() || both.was_cut();
        found.holds(format!("{} rows of {play:?}", theirs.len()), enough, own.len());
        for (theirs, own) in theirs.iter().zip(own) {
            let what = format!("the row of request {} of {play:?}", theirs.place);
            let advanced = own.hits == 0 && theirs.hits > 0 && own.place == first_of(&ours, play);
            let (hits, misses) = match advanced {
                // An advanced user has sent nothing before its first request, so nothing of it can
                // be in a cache; the tool counts what it did not send.
                true => (0, theirs.hits + theirs.misses),
                false => (theirs.hits, theirs.misses),
            };
            let kind = if all_streamed(both) { "streaming" } else { theirs.kind.as_str() };
            let right = Facts {
                user: own.user.clone(),
                kind: kind.to_owned(),
                // Nobody can be asked for no token at all.
                output: theirs.output.max(1),
                hits,
                misses,
                ..(*theirs).clone()
            };
            found.same(what, &right, own);
        }
    }
}

/// `--stream-all` is ours alone, and says in our table how a request was sent.
fn all_streamed(both: &Both<'_>) -> bool {
    both.command.more.contains(&"--stream-all")
}

fn first_of(ours: &BTreeMap<(&str, usize), Vec<&Facts>>, play: &(&str, usize)) -> String {
    ours.get(play).and_then(|list| list.first()).map_or_else(String::new, |own| own.place.clone())
}

/// What arrives of every play begins with what arrived of the tool's: path, model, tokens asked
/// for; and sub-agents begin and end between the same requests of their parents.
fn sent(both: &Both<'_>, found: &mut Findings) {
    let (theirs, ours) = (both.theirs(), both.own());
    let asked = |arrivals: &[&Arrival]| -> Vec<Option<u64>> {
        arrivals.iter().map(|arrival| arrival.max_tokens()).collect()
    };
    for (play, list) in &theirs {
        // Zero-output replies are not sent for again: the tool sent each up to four times.
        if both.command.words.contains("--warm-prefix-pct 0") {
            break;
        }
        let own = ours.get(play).map_or(&[][..], Vec::as_slice);
        let enough = own.len() >= list.len() || both.command.value("--otpm-budget").is_some();
        found.holds(format!("{} requests of {play:?}", list.len()), enough, own.len());
        let count = own.len().min(list.len());
        let what = format!("tokens that {play:?} asks for, in order");
        found.same(what, &asked(&list[..count]), &asked(&own[..count]));
        for (theirs, own) in list.iter().zip(own) {
            found.same(format!("path of {play:?}"), &theirs.path, &own.path);
        }
        if let (Some(theirs), Some(own)) =
            (among(&both.arrivals, &play.0), among(&both.ours().arrivals, &play.0))
        {
            let what = format!("requests of its parent before {}'s first and last", play.0);
            found.same(what, &theirs, &own);
        }
    }
}

/// How many requests of its parent arrived before a sub-agent's first, and before its last.
fn among(arrivals: &[Arrival], agent: &str) -> Option<(usize, usize)> {
    let (parent, _) = agent.rsplit_once(':')?;
    let is_agents = |arrival: &Arrival| arrival.session == agent;
    let before = |at: usize| arrivals[..at].iter().filter(|own| own.session == parent).count();
    let first = arrivals.iter().position(is_agents)?;
    let last = arrivals.iter().rposition(is_agents)?;
    Some((before(first), before(last)))
}

/// Every body of ours has the tool's keys in its order, with its values; its prompt has exactly the
/// tokens that the trace says.
fn bodies(both: &Both<'_>, found: &mut Findings) {
    const KEYS: [&str; 9] = [
        "messages",
        "model",
        "max_tokens",
        "stream",
        "stream_options",
        "temperature",
        "top_p",
        "top_k",
        "repetition_penalty",
    ];
    for theirs in both.arrivals.iter().take(1) {
        found.same("the tool's keys", &KEYS.to_vec(), &theirs.keys());
    }
    let temperature = both
        .command
        .value("--temperature")
        .map_or(json!(0.7), |own| serde_json::from_str(own).expect("a number"));
    let usual = both.arrivals.first().map_or_else(
        || {
            json!({"model": MODEL, "temperature": temperature, "top_p": 0.8, "top_k": 20,
                "repetition_penalty": 1.05})
        },
        |theirs| theirs.body.clone(),
    );
    let plays = both.own();
    let rows = both.ours().tables.plays();
    for (play, arrivals) in &plays {
        let rows = rows.get(&(play.0.as_str(), play.1)).map_or(&[][..], Vec::as_slice);
        found.same(format!("rows of {play:?}, one for each request"), &arrivals.len(), &rows.len());
        for (arrival, row) in arrivals.iter().zip(rows) {
            let what = format!("request {} of {play:?}", row.place);
            let streamed = row.kind == "streaming";
            let keys: Vec<&str> =
                KEYS.into_iter().filter(|key| streamed || *key != "stream_options").collect();
            let own = (arrival.body["stream"] == true, arrival.keys());
            let which = format!("stream and keys of {what} (type \"n\": non-streaming)");
            found.same(which, &(streamed, keys), &own);
            for key in ["model", "temperature", "top_p", "top_k", "repetition_penalty"] {
                found.same(format!("{key} of {what}"), &usual[key], &arrival.body[key]);
            }
            if streamed {
                let right = json!({"include_usage": true});
                found.same(format!("options of {what}"), &right, &arrival.body["stream_options"]);
            }
            let words = u64::try_from(arrival.words()).unwrap_or(u64::MAX);
            found.same(
                format!("prompt of {what} (prompts without a tokenizer: exactly its tokens)"),
                &row.input,
                &words,
            );
            let roles = arrival.roles();
            let right = roles.ends_with('u') && !roles.contains("aa") && roles.starts_with('u');
            found.holds(format!("{what} to end with what a user says"), right, roles);
        }
    }
}

/// What each request waited for by the timing options: by the strategy, never longer than the gap
/// it fills, cut, and only then scaled.
fn waits(both: &Both<'_>, found: &mut Findings) {
    let ours = both.ours();
    let number = |option: &str, usual: f64| {
        both.command.value(option).and_then(|own| own.parse().ok()).unwrap_or(usual)
    };
    let (most, api_scale) = (number("--max-delay", 60.0), number("--api-time-scale", 1.0));
    let scale: f64 = both.command.scale.parse().expect("a number");
    let strategy = both.command.value("--timing-strategy").unwrap_or("think-only");
    found.same("waits, one for each row", &ours.tables.requests.len(), &ours.waits.len());
    for (row, (_, wait)) in ours.tables.requests.iter().zip(&ours.waits) {
        let list = &both.lists[&row.trace];
        let place: usize = row.place.parse().expect("a place");
        let at = |place: usize, key: &str| list[place][key].as_f64();
        // The request before it; the tool takes a sub-agent for one, which has no server's time.
        let before = list[..place].iter().rposition(|entry| !is_agent(entry));
        let gap = before.and_then(|before| Some(at(place, "t")? - at(before, "t")?));
        let gap = gap.map_or(0.0, |gap| gap.max(0.0));
        let think = at(place, "think_time").map(|think| think.min(gap));
        let api = before.and_then(|before| at(before, "api_time"));
        let wait_for = match (strategy, think, api) {
            ("think-only", Some(think), _) => think,
            ("api-scaled", Some(think), Some(api)) => api * api_scale + think,
            _ => gap,
        };
        // A conversation's first request waits for nothing; an advanced user's is not that one.
        let right = if before.is_none() { 0.0 } else { wait_for.min(most) * scale };
        let near = wait.is_some_and(|wait| (wait - right).abs() < 1e-6);
        found.holds(
            format!("request {place} of {} to wait {right} s ({strategy}, cut, scaled)", row.user),
            near,
            format!("{wait:?}"),
        );
    }
}

/// Sub-agents begin together when the request before them has ended, and their parent goes on after
/// the last of them; one that ends with sub-agents ends with them (the tool's ends before).
fn agents(both: &Both<'_>, found: &mut Findings) {
    let Some(run) = both.ours().run.as_ref() else { return };
    let Some(users) = run.users.as_ref() else { return };
    let requests = &run.requests;
    let of = |session: SessionIndex| {
        (0..run.plan.len()).filter(move |&i| run.plan[i].session == session)
    };
    for agent in &users.users {
        let Some(parent) = agent.parent else { continue };
        let name = &agent.name;
        let (Some(first), Some(last)) = (of(agent.session).next(), of(agent.session).next_back())
        else {
            found.wrong(format!("{name} has no request"));
            continue;
        };
        let begun = requests.sent(first);
        let before = of(parent).rfind(|&i| requests.sent(i) < begun);
        let next = of(parent).find(|&i| requests.sent(i) > begun);
        let due = run.plan[first].due;
        found.holds(format!("a time that {name} may begin at"), due.is_some(), "none");
        let siblings = users.users.iter().filter(|own| own.parent == Some(parent));
        for sibling in siblings.filter(|own| own.started == agent.started) {
            let own = of(sibling.session).next().and_then(|i| run.plan[i].due);
            found.same(format!("when {} may begin, as {name}", sibling.name), &due, &own);
        }
        if let Some(before) = before {
            let holds = requests.done(before).is_some_and(|end| Some(end) <= begun);
            found.holds(
                format!("{name} to begin after its parent's request ends"),
                holds,
                "before",
            );
        }
        if let Some(next) = next {
            let holds = requests.done(last).is_some_and(|end| Some(end) <= requests.sent(next));
            found.holds(format!("its parent to go on after {name} (pauses)"), holds, "before");
        }
        let ended = users.users[parent.as_usize()].ended;
        let holds = !both.was_cut() && ended < agent.ended;
        found.holds(format!("its parent to end after {name} (D8)"), !holds, "before");
        let starts = both.ours().tables.events.iter();
        let starts = starts.filter(|own| own.user == *name && own.what == "started").count();
        found.same(format!("starts of {name} that are told"), &1, &starts);
    }
}

/// The configuration and the trace's numbers are the tool's, but for paths, durations, and what the
/// page says otherwise than the code.
fn metadata(both: &Both<'_>, found: &mut Findings) {
    let (theirs, ours) = (&both.tables.metadata, &both.ours().tables.metadata);
    found.same("model", &theirs["model"], &ours["model"]);
    found.same("mode", &theirs["mode"], &ours["mode"]);
    for (key, value) in theirs["trace_stats"].as_object().into_iter().flatten() {
        // (The tool counts one miss a request at most.)
        if key != "avg_cache_hit_rate" {
            found.same(key, value, &ours["trace_stats"][key]);
        }
    }
    for (key, value) in theirs["config"].as_object().into_iter().flatten() {
        let right = match key.as_str() {
            // Paths and durations.
            "api_endpoint" | "trace_directory" | "output_dir" | "tokenizer_id" | "time_scale"
            | "test_duration" | "assessment_period" => continue,
            // Nothing is decided by these.
            "ttft_window" | "rate_limit_backoff" | "fairness_window" => &Value::Null,
            "ttft_metric" => &json!("p95"),
            "max_concurrent_requests" if *value == 0 => &json!(50),
            "max_delay" if *value == 600.0 => &json!(60.0),
            _ => value,
        };
        found.same(format!("config {key} (defaults: the page's)"), right, &ours["config"][key]);
    }
}
