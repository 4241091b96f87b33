//! What a program left of a run of users: kv-cache-tester of its own runs, in the oracle's folders,
//! and we of the same ones, in `--output-dir`. Both are read by the same code.
//!
//! Only what is not a measurement is read: no clock time of a file is compared with another's.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::Value;

use crate::server::Seen;
use crate::tool_runs::table;

/// The columns of a request that have nothing to do with time.
const FACTS: [&str; 8] = [
    "user_id",
    "request_idx",
    "trace_id",
    "request_type",
    "input_tokens",
    "output_tokens_expected",
    "cache_hit_blocks",
    "cache_miss_blocks",
];

/// A row of `detailed_results.csv`, as far as it is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// `User-001`.
    pub(crate) user: String,
    /// The trace's id, and the agent's.
    pub(crate) trace: String,
    /// Its place in its list, sub-agents counted.
    pub(crate) place: String,
    /// Streamed or not.
    pub(crate) kind: String,
    /// Prompt tokens.
    pub(crate) input: u64,
    /// Tokens that were asked for.
    pub(crate) output: u64,
    /// Blocks that the request before it of its session had, too.
    pub(crate) hits: u64,
    /// The others.
    pub(crate) misses: u64,
}

/// A row of `user_lifecycle.csv`, without its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// `User-001`.
    pub(crate) user: String,
    /// `started`, `completed` or `truncated`.
    pub(crate) what: String,
    /// The trace's id, and the agent's.
    pub(crate) trace: String,
    /// The words behind it.
    pub(crate) details: String,
}

/// The tables of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables {
    /// Requests, in the order of their ends.
    pub(crate) requests: Vec<Facts>,
    /// Events, by time.
    pub(crate) events: Vec<Event>,
    /// `test_metadata.json`; null when there is none.
    pub(crate) metadata: Value,
}

impl Tables {
    /// Those that are in a folder.
    pub(crate) fn of(folder: &Path) -> Self {
        let number = |cell: &String| cell.parse().unwrap_or(u64::MAX);
        let requests = table(&folder.join("detailed_results.csv"), &FACTS);
        let facts = |row: &Vec<String>| Facts {
            user: row[0].clone(),
            place: row[1].clone(),
            trace: row[2].clone(),
            kind: row[3].clone(),
            input: number(&row[4]),
            output: number(&row[5]),
            hits: number(&row[6]),
            misses: number(&row[7]),
        };
        let lives = std::fs::read_to_string(folder.join("user_lifecycle.csv")).unwrap_or_default();
        let metadata = std::fs::read_to_string(folder.join("test_metadata.json"));
        Self {
            requests: requests.iter().map(facts).collect(),
            events: lives.lines().skip(1).filter_map(event).collect(),
            metadata: serde_json::from_str(&metadata.unwrap_or_default()).unwrap_or_default(),
        }
    }

    /// The trace of each user, by name.
    pub(crate) fn traces(&self) -> BTreeMap<&str, &str> {
        let started = self.events.iter().filter(|event| event.what == "started");
        started.map(|event| (event.user.as_str(), event.trace.as_str())).collect()
    }

    /// Each play of a conversation or of a sub-agent's: by trace id and how often it was played
    /// before, its requests in order.
    pub(crate) fn plays(&self) -> BTreeMap<(&str, usize), Vec<&Facts>> {
        let mut users: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let mut plays: BTreeMap<(&str, usize), Vec<&Facts>> = BTreeMap::new();
        let numbered = |user: &str| user.split('-').nth(1).map(str::to_owned);
        let mut names: Vec<&Facts> = self.requests.iter().collect();
        // Users are numbered as they start.
        names.sort_by_key(|facts| numbered(&facts.user));
        for facts in names {
            let known = users.entry(&facts.trace).or_default();
            if !known.contains(&facts.user.as_str()) {
                known.push(&facts.user);
            }
        }
        for facts in &self.requests {
            let known = &users[facts.trace.as_str()];
            let copy = known.iter().position(|user| *user == facts.user).unwrap_or(usize::MAX);
            plays.entry((&facts.trace, copy)).or_default().push(facts);
        }
        plays
    }
}

/// An event of a line whose last cell may be quoted.
fn event(line: &str) -> Option<Event> {
    let mut cells = line.splitn(5, ',').skip(1).map(|cell| cell.trim_matches('"').to_owned());
    Some(Event {
        user: cells.next()?,
        what: cells.next()?,
        trace: cells.next()?,
        details: cells.next()?,
    })
}

/// A request as it arrived at a server.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    /// Path of the endpoint.
    pub(crate) path: String,
    /// The trace's id, and the agent's.
    pub(crate) session: String,
    /// How often the run had played that before: what is behind a `#` of ours, less one.
    pub(crate) copy: usize,
    /// The body as JSON whose keys have their order.
    pub(crate) body: Value,
}

impl Arrival {
    fn new(path: &str, session: &str, body: Value) -> Self {
        let (session, copy) = match session.rsplit_once('#') {
            Some((session, number)) => (session, number.parse::<usize>().unwrap_or(usize::MAX) - 1),
            None => (session, 0),
        };
        Self { path: path.to_owned(), session: session.to_owned(), copy, body }
    }

    /// The tokens it asks for.
    pub(crate) fn max_tokens(&self) -> Option<u64> {
        self.body["max_tokens"].as_u64()
    }

    /// Who says each message, by first letters.
    pub(crate) fn roles(&self) -> String {
        let messages = self.body["messages"].as_array().into_iter().flatten();
        messages.filter_map(|message| message["role"].as_str()?.chars().next()).collect()
    }

    /// Words of all messages: of our texts one is a token.
    pub(crate) fn words(&self) -> usize {
        let messages = self.body["messages"].as_array().into_iter().flatten();
        let texts = messages.filter_map(|message| message["content"].as_str());
        texts.map(|text| text.split_whitespace().count()).sum()
    }

    /// The keys of the body.
    pub(crate) fn keys(&self) -> Vec<&str> {
        self.body.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect()
    }
}

/// What arrived of the tool, in order. An empty file is a run that sent nothing.
pub(crate) fn arrivals_of_tool(folder: &Path) -> Result<Vec<Arrival>, String> {
    let file = folder.join("requests.jsonl.gz");
    let bytes = std::fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut text = String::new();
    GzDecoder::new(&bytes[..])
        .read_to_string(&mut text)
        .map_err(|error| format!("{}: {error}", file.display()))?;
    let arrival = |line: &str| {
        let value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let session = value["headers"]["x-session-id"].as_str().unwrap_or_default();
        Ok(Arrival::new(value["path"].as_str().unwrap_or_default(), session, value["body"].clone()))
    };
    text.lines().map(arrival).collect()
}

/// What arrived of ours, in order; questions for models are none.
pub(crate) fn arrivals_of(seen: &[Seen]) -> Vec<Arrival> {
    let arrival = |seen: &Seen| {
        let path = seen.line.split(' ').nth(1)?;
        let session = seen.header("x-session-id")?;
        Some(Arrival::new(path, session, seen.json()))
    };
    seen.iter().filter_map(arrival).collect()
}

/// What a request asks for in its headers, cheaply: session and how often it was played before.
pub(crate) fn session_of(seen: &Seen) -> Option<(String, usize)> {
    let arrival = Arrival::new("", seen.header("x-session-id")?, Value::Null);
    Some((arrival.session, arrival.copy))
}
