//! What kv-cache-tester's pure functions gave, held against ours: seeds of texts, shuffled orders,
//! and where in its conversation a user begins.
//!
//! What makes up the tool's own texts has no counterpart here: our texts are made of block ids.
//! Those answers are known by name and passed over; an answer with another name is a failure.

use std::path::Path;

use onbeat::plan::{ScriptOptions, Scripts, scripts, stable_seed};
use onbeat::policy::advance::first_cue;
use onbeat::policy::options::Advance;
use onbeat::policy::pool::Pool;
use onbeat::trace::{TraceOptions, read};
use onbeat_shared::trace::Trace;
use serde_json::{Map, Value, json};

use crate::Item;
use crate::found::{Findings, outcome};
use crate::product::Written;

/// What the tool's functions answered, by function.
const ORACLE: &str = "oracle/kvct/unit_oracle.json";
/// Answers about the tool's own texts.
const OF_TEXTS: [&str; 5] =
    ["question_index", "question_bank_len", "question_bank_sha256", "pool_offset", "choice_checks"];

/// What holds a function's answers against ours.
type Check = fn(&Map<String, Value>, &mut Findings);

/// One check for each function that both have, and a failure for one that is not known.
pub(crate) fn items(folder: &Path) -> Vec<Item> {
    let Ok(text) = std::fs::read_to_string(folder.join(ORACLE)) else {
        crate::say(&format!("skipped: conformance: there is no {ORACLE}"));
        return Vec::new();
    };
    let oracle: Map<String, Value> = serde_json::from_str(&text).expect("the oracle is JSON");
    let is_ours = |name: &str| !OF_TEXTS.contains(&name);
    let item = |(name, answers): (String, Value)| {
        let check: Option<Check> = match name.as_str() {
            "stable_seed" => Some(seeds),
            "shuffle" => Some(shuffles),
            "advance" => Some(beginnings),
            _ => None,
        };
        Item {
            name: format!("kvct/unit/{name}"),
            check: Box::new(move || {
                outcome(|found| match (check, answers.as_object()) {
                    (Some(check), Some(answers)) if !answers.is_empty() => check(answers, found),
                    _ => found.wrong("answers that no check knows"),
                })
            }),
        }
    };
    oracle.into_iter().filter(|(name, _)| is_ours(name)).map(item).collect()
}

fn seeds(answers: &Map<String, Value>, found: &mut Findings) {
    for (text, seed) in answers {
        found.same(text, seed, &Value::from(stable_seed(text)));
    }
}

/// Orders of as many conversations as the lists were long, whose ids are in the lists' order. (Of
/// long lists the answer has the beginning.)
fn shuffles(answers: &Map<String, Value>, found: &mut Findings) {
    for (name, order) in answers {
        let numbers: Vec<u64> = name.split('/').filter_map(|part| part.parse().ok()).collect();
        let &[seed, length] = &numbers[..] else {
            found.wrong(format!("{name:?} is no seed and length"));
            continue;
        };
        let order: Vec<u64> =
            order.as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
        found.holds(format!("numbers for {name}"), !order.is_empty(), "none");
        let request = json!({"t": 0, "in": 64, "out": 1, "hash_ids": [1]});
        let folder = tempfile::tempdir().expect("a temporary folder");
        for number in 0..length {
            let one = json!({"id": format!("{number:06}"), "models": [], "requests": [request]});
            let file = folder.path().join(format!("{number}.json"));
            std::fs::write(file, one.to_string()).expect("the folder is writable");
        }
        let (trace, scripts) = match played(folder.path(), u32::MAX) {
            Ok(played) => played,
            Err(words) => return found.wrong(words),
        };
        let mut pool = Pool::new(&scripts, &trace, seed, false);
        let agentic = trace.recorded.agentic.as_ref().expect("conversations");
        let ours: Vec<u64> = std::iter::from_fn(|| pool.take())
            .take(order.len())
            .filter_map(|pick| agentic.conversations[pick.conversation as usize].id.parse().ok())
            .collect();
        found.same(format!("the order of {name}"), &order, &ours);
    }
}

/// Forty entries that grow by a thousand tokens, with two sub-agents at 15, as the oracle has them.
fn beginnings(answers: &Map<String, Value>, found: &mut Findings) {
    let request =
        |place: u32| json!({"t": place, "in": 1_000 * (place + 1), "out": 1, "hash_ids": [place]});
    let agent = json!({"t": 15, "type": "subagent", "agent_id": "a", "requests": [request(0)]});
    let entry = |place: u32| if matches!(place, 15 | 16) { agent.clone() } else { request(place) };
    let entries: Vec<Value> = (0..40).map(entry).collect();
    let list = json!({"id": "list", "models": [], "block_size": 64, "requests": entries});
    let file = Written::new("list.json", list.to_string());
    for (name, places) in answers {
        let parts: Vec<&str> = name.split('/').collect();
        let numbers = |at: usize| parts.get(at).and_then(|part| part.parse::<f64>().ok());
        let (Some(seed), Some(user), Some(min), Some(max), Some(context)) = (
            parts.first().and_then(|part| part.parse().ok()),
            parts.get(1).and_then(|part| part.strip_prefix("User-")?.parse().ok()),
            numbers(2),
            numbers(3),
            parts.get(4).and_then(|part| part.parse::<u32>().ok()),
        ) else {
            found.wrong(format!("{name:?} is no seed, user, shares and context"));
            continue;
        };
        let max_context = if context == 0 { u32::MAX } else { context };
        let scripts = match played(&file.path, max_context) {
            Ok((_, scripts)) => scripts,
            Err(words) => return found.wrong(words),
        };
        let advance = Advance { min, max, all_users: false };
        let ours = first_cue(&scripts.scripts[0], &advance, seed, user);
        // The first of both is the place that was drawn, the second where the user begins.
        found.same(format!("where {name} begins"), &places[1], &Value::from(ours));
    }
}

fn played(path: &Path, max_context: u32) -> Result<(Trace, Scripts), String> {
    let trace = read(path, &TraceOptions::default()).map_err(|error| error.to_string())?;
    let options = ScriptOptions { max_context, ..ScriptOptions::default() };
    let scripts = scripts(&trace, &options).map_err(|error| error.to_string())?;
    Ok((trace, scripts))
}
