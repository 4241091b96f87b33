//! Which logs belong together: the same trace and configuration, one plan, one zero, each shard
//! once.

use serde_json::Value;

use super::MergeError;
use super::survey::Survey;
use crate::counted::counted;
use crate::foreign::shown;
use crate::log::Merged;
use crate::secret_names::is_secret;

/// Differences that are named.
const NAMED_MAX: usize = 4;

/// What may differ between shards: what is of the machine and not of the run. That is what another
/// machine needs otherwise (its ports, CPUs, files), and what changes nothing that is sent or when.
const OF_THE_MACHINE: &[&[&str]] = &[
    &["machines"],
    &["addresses"],
    &["trace", "trace"],
    &["users", "skip_graphs"],
    &["users", "no_color"],
    &["server", "wait_for_model_timeout"],
    &["server", "wait_for_model_interval"],
    &["server", "unix_socket"],
    &["server", "local_addresses"],
    &["server", "driver"],
    &["server", "cacert"],
    &["server", "cert"],
    &["server", "key"],
    &["requests", "api_key_file"],
    &["requests", "render_budget"],
    &["requests", "render_threads"],
    &["run", "cores"],
    &["run", "pacing"],
    &["run", "lock_memory"],
    &["run", "realtime"],
    &["run", "numa_local"],
    &["run", "drain_seconds"],
    &["run", "force"],
    &["run", "failed_request_threshold"],
    &["run", "verbose"],
    &["run", "ui"],
    &["live"],
];

/// Refuses what does not belong together; the shards that are missing.
pub(super) fn check(logs: &[Survey], allow_missing: bool) -> Result<Vec<u32>, MergeError> {
    let Some((first, others)) = logs.split_first() else {
        return Err(MergeError::Apart("no log to merge was named".to_owned()));
    };
    let judged = logs.iter().try_for_each(alone);
    let judged = judged.and_then(|()| others.iter().try_for_each(|other| pair(first, other)));
    judged.and_then(|()| shards(logs, allow_missing)).map_err(MergeError::Apart)
}

/// Whether a log can be merged at all.
fn alone(log: &Survey) -> Result<(), String> {
    let name = &log.name;
    let manifest = &log.manifest;
    if manifest.merged.is_some() {
        return Err(format!("{name} is a merged log; merge the logs that it was made from"));
    }
    let Some(shard) = &manifest.shard else {
        return Err(format!("{name} is the log of a whole run, not of a shard (--shard I/N)"));
    };
    if let Some(reason) = log.broken {
        return Err(format!(
            "{name}: its plan cannot be read whole ({reason}), so nobody knows which \
             requests it is about"
        ));
    }
    let is_numbered = match manifest.users {
        Some(_) => log.numbers.is_empty(),
        None => log.numbers.len() as u64 == log.rows,
    };
    let ascending = log.numbers.is_sorted_by(|a, b| a < b);
    let inside = log.numbers.last().is_none_or(|&last| last < shard.planned);
    if log.rows != u64::from(manifest.planned) || !is_numbered || !ascending || !inside {
        return Err(format!("{name}: its plan's rows and their numbers do not agree"));
    }
    if shard.index >= shard.count {
        return Err(format!("{name} says that it is shard {} of {}", shard.index, shard.count));
    }
    if manifest.start.is_none() {
        return Err(format!(
            "{name} has no zero in common with other logs: its run was not given --start-at"
        ));
    }
    Ok(())
}

/// Whether two logs are of one run.
fn pair(one: &Survey, other: &Survey) -> Result<(), String> {
    let names = || format!("{} and {}", one.name, other.name);
    let (a, b) = (&one.manifest, &other.manifest);
    if let (Some(first), Some(second)) = (one.sha256(), other.sha256())
        && first != second
    {
        return Err(format!(
            "{} replay different traces: {} ({}) and {} ({})",
            names(),
            a.trace.name,
            short(first),
            b.trace.name,
            short(second)
        ));
    }
    if a.onbeat_version != b.onbeat_version {
        return Err(format!(
            "{} were written by onbeat {} and {}: only one version divides a plan alike",
            names(),
            a.onbeat_version,
            b.onbeat_version
        ));
    }
    let found = differences(&a.config, &b.config);
    if !found.is_empty() {
        let more = found.len().saturating_sub(NAMED_MAX);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        let named = found[..found.len().min(NAMED_MAX)].join(", ");
        return Err(format!("{} ran with different options: {named}{more}", names()));
    }
    if a.model != b.model || a.endpoint != b.endpoint {
        return Err(format!(
            "{} asked for different models: {} at {} and {} at {}",
            names(),
            a.model,
            a.endpoint,
            b.model,
            b.endpoint
        ));
    }
    let facts = |log: &Survey| log.shard().cloned().unwrap_or_default();
    let (first, second) = (facts(one), facts(other));
    if first.count != second.count {
        let (first, second) = (first.count, second.count);
        return Err(format!("{} are shards of {first} and of {second}", names()));
    }
    let same_mode = a.mode == b.mode && a.users.is_some() == b.users.is_some();
    if (first.planned, &first.plan) != (second.planned, &second.plan) || !same_mode {
        return Err(format!(
            "{} are of different plans: {} requests ({}) and {} requests ({})",
            names(),
            first.planned,
            first.plan,
            second.planned,
            second.plan
        ));
    }
    let zero = |log: &Survey| log.manifest.start.as_ref().map_or(0, |start| start.at_unix_ns);
    if zero(one) != zero(other) {
        let apart = (i128::from(zero(one)) - i128::from(zero(other))).unsigned_abs();
        return Err(format!(
            "{} have no zero in common: their --start-at are {:.3} s apart; +LENGTH counts from when \
             each process began, so give all shards one time",
            names(),
            apart as f64 / 1e9
        ));
    }
    Ok(())
}

/// Whether each shard is there once.
fn shards(logs: &[Survey], allow_missing: bool) -> Result<Vec<u32>, String> {
    let count = logs[0].shard().map_or(0, |shard| shard.count);
    let index = |log: &&Survey| log.shard().map(|shard| shard.index);
    let mut missing = Vec::new();
    for shard in 0..count {
        let own: Vec<&Survey> = logs.iter().filter(|log| index(log) == Some(shard)).collect();
        match own.as_slice() {
            [] => missing.push(shard),
            [_] => {}
            [one, other, ..] => {
                return Err(format!(
                    "{} and {} are both shard {shard} of {count}; name one of them",
                    one.name, other.name
                ));
            }
        }
    }
    let mut numbers: Vec<u32> = logs.iter().flat_map(|log| log.numbers.iter().copied()).collect();
    numbers.sort_unstable();
    if numbers.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err("several of the logs have the same request: they are of one plan divided in \
                    different ways"
            .to_owned());
    }
    let whole = logs[0].shard().map_or(0, |shard| shard.planned) as usize;
    let is_planned = logs[0].manifest.users.is_none();
    if missing.is_empty() && is_planned && numbers.len() != whole {
        return Err(format!("the logs have {} of the plan's {whole} requests", numbers.len()));
    }
    if missing.is_empty() || allow_missing {
        return Ok(missing);
    }
    let words = Merged { shards: count, missing, ..Merged::default() }.missing_words();
    Err(format!("{words}; --allow-missing merges what there is"))
}

/// What whoever reads the merged log should know.
pub(super) fn warnings(logs: &[Survey]) -> Vec<String> {
    let mut words: Vec<String> = unseen(logs).into_iter().collect();
    for log in logs {
        if log.footer.is_none() {
            words.push(format!("{} was not closed, so the merged log is not either", log.name));
        }
        if log.header_damaged {
            words.push(format!(
                "{}: its file header is damaged; it was read as this version's",
                log.name
            ));
        }
        if log.damaged_bytes > 0 {
            let bytes = counted(log.damaged_bytes, "byte");
            words.push(format!("{}: {bytes} damaged or cut off, and left out", log.name));
        }
        if log.sha256().is_none() {
            words.push(format!(
                "{} does not say which trace it replays; its plan is the others'",
                log.name
            ));
        }
    }
    words
}

/// What a log has in place of a text that is shown nowhere, and of a secret.
const TEXT: &str = "[text]";
const SECRET: &str = "[secret]";

/// What nobody can compare of what was sent, in words. The names are the same in all logs, or they
/// would have been refused. What is called like a key or a password says who asks and not what is
/// asked: as with the key of requests, machines may have each its own.
fn unseen(logs: &[Survey]) -> Option<String> {
    let [first, _, ..] = logs else { return None };
    let requests = &first.manifest.config["requests"];
    let mut named = Vec::new();
    for header in requests["header"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let (name, value) = header.split_once(':').unwrap_or((header, ""));
        if value.trim() == SECRET && !is_secret(name) {
            named.push(format!("--header {}", shown(name)));
        }
    }
    for member in requests["extra_inputs"].as_array().into_iter().flatten() {
        let members = member.as_object().into_iter().flatten();
        let texts = members.filter(|(_, value)| has_text(value));
        named.extend(texts.map(|(name, _)| format!("--extra-inputs {}", shown(name))));
    }
    let endpoint = requests["endpoint"].as_str().unwrap_or_default();
    let query = endpoint.split(['?', '#', '&']).skip(1);
    let names = query.filter_map(|part| part.strip_suffix(SECRET));
    if names.map(|name| name.trim_end_matches('=')).any(|name| !is_secret(name)) {
        named.push("the query of --endpoint".to_owned());
    }
    let more = named.len().saturating_sub(NAMED_MAX);
    named.truncate(NAMED_MAX);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    (!named.is_empty()).then(|| {
        format!(
            "logs hide values of {}{more}: whether all shards sent the same ones cannot be seen \
             here",
            named.join(", ")
        )
    })
}

/// Whether a value has a text that is not shown.
fn has_text(value: &Value) -> bool {
    match value {
        Value::String(text) => text == TEXT,
        Value::Array(values) => values.iter().any(has_text),
        Value::Object(members) => members.values().any(has_text),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The options that two configurations have differently, with their values.
fn differences(one: &Value, other: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut path = Vec::new();
    compare(one, other, &mut path, &mut found);
    found
}

fn compare<'a>(one: &'a Value, other: &'a Value, path: &mut Vec<&'a str>, found: &mut Vec<String>) {
    if one == other || OF_THE_MACHINE.contains(&path.as_slice()) {
        return;
    }
    if let (Value::Object(first), Value::Object(second)) = (one, other) {
        let new = second.keys().filter(|key| !first.contains_key(*key));
        for key in first.keys().chain(new) {
            path.push(key);
            let missing = &Value::Null;
            compare(
                first.get(key).unwrap_or(missing),
                second.get(key).unwrap_or(missing),
                path,
                found,
            );
            path.pop();
        }
        return;
    }
    found.push(format!("{} is {one} and {other}", path.join(".")));
}

/// The begin of a digest.
fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The schema of all options that a log has, resolved.
    fn declared(path: &[&str]) -> bool {
        let schema = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/manifest.schema.json"));
        let schema: Value = serde_json::from_str(schema).expect("JSON");
        let mut at = &schema["$defs"]["Config"];
        for name in path {
            at = &at["properties"][name];
            if let Some(of) = at["$ref"].as_str() {
                at = &schema["$defs"][of.trim_start_matches("#/$defs/")];
            }
        }
        at.is_object()
    }

    #[test]
    fn what_is_of_the_machine_is_an_option_that_there_is() {
        for path in OF_THE_MACHINE {
            assert!(declared(path), "{path:?}");
        }
        assert!(!declared(&["run", "none"]));
    }

    #[test]
    fn what_is_of_the_machine_may_differ_and_nothing_else() {
        let with = |path: &[&str], value: &str| {
            let leaf = Value::from(value);
            path.iter().rev().fold(leaf, |inner, name| serde_json::json!({ *name: inner }))
        };
        for path in OF_THE_MACHINE {
            let (one, other) = (with(path, "a"), with(path, "b"));
            assert_eq!(differences(&one, &other), Vec::<String>::new(), "{path:?}");
        }
        for path in [["live", "prometheus_port"], ["live", "scrape"], ["live", "scrape_interval"]] {
            assert!(differences(&with(&path, "a"), &with(&path, "b")).is_empty(), "{path:?}");
        }
        for path in [["schedule", "tile"], ["server", "url"], ["requests", "model"]] {
            assert_eq!(differences(&with(&path, "a"), &with(&path, "b")).len(), 1, "{path:?}");
        }
    }
}
