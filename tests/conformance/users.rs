//! What kv-cache-tester's own loader makes of known folders, held against our scripts and pool:
//! which conversations are played, in which order they are taken, and how long the longest shared
//! prefix is.

use std::path::{Path, PathBuf};

use onbeat::plan::{ScriptOptions, scripts};
use onbeat::policy::pool::Pool;
use onbeat::trace::{TraceOptions, read};
use onbeat_shared::trace::Trace;
use serde_json::Value;

use crate::Item;
use crate::found::{Findings, outcome};

/// What the tool's loader answered, by folder and options.
const ORACLE: &str = "oracle/kvct/loader_oracle.json";
/// Where the folders are that the oracle calls by short names.
const FOLDERS: [(&str, &str); 6] = [
    ("tr_small", "oracle/kvct/tr_small"),
    ("tr_synth", "oracle/kvct/tr_synth"),
    ("data", "data/kv-cache-tester"),
    ("v1", "data/kv-cache-tester/v1_83eca8e"),
    ("v6", "data/kv-cache-tester/v6_7647c82"),
    ("synthetic", "data/kv-cache-tester/synthetic"),
];

/// One check for each folder and set of options of the oracle.
pub(crate) fn items(folder: &Path) -> Vec<Item> {
    let Ok(text) = std::fs::read_to_string(folder.join(ORACLE)) else {
        crate::say(&format!("skipped: conformance: there is no {ORACLE}"));
        return Vec::new();
    };
    let oracle: Value = serde_json::from_str(&text).expect("the oracle is JSON");
    let answers = oracle.as_object().expect("answers by name").clone();
    let item = |(name, answer): (String, Value)| {
        let folder = folder.to_owned();
        Item {
            name: format!("kvct/loader/{name}"),
            check: Box::new(move || outcome(|found| check(&folder, &name, &answer, found))),
        }
    };
    answers.into_iter().map(item).collect()
}

fn check(folder: &Path, name: &str, answer: &Value, found: &mut Findings) {
    let mut parts = name.split('/');
    let place = parts.next().and_then(|own| FOLDERS.iter().find(|(name, _)| *name == own));
    let mut number = |key: &str| {
        let digits = parts.next().and_then(|part| part.strip_prefix(key)).unwrap_or_default();
        digits.parse::<u32>().expect("a number behind its name")
    };
    let (seed, max_context, min_requests) = (number("seed"), number("ctx"), number("minreq"));
    let Some((_, place)) = place else { return found.wrong("a folder we do not know") };
    let trace = match read_files(&folder.join(place)) {
        Ok(trace) => trace,
        Err(words) => return found.wrong(words),
    };
    let options = ScriptOptions {
        max_context,
        min_requests,
        warm_prefix_share: 1.0,
        ..ScriptOptions::default()
    };
    let scripts = match scripts(&trace, &options) {
        Ok(scripts) => scripts,
        Err(error) => return found.wrong(error),
    };
    let counted = |key: &str| answer["stats"][key].as_u64();
    found.same("filtered_traces", &counted("filtered_traces"), &Some(scripts.pool.kept.into()));
    found.same("total_traces", &counted("total_traces"), &Some(scripts.pool.conversations.into()));
    let warm = Some(scripts.warm_tokens.into());
    found.same("max_shared_prefix_tokens", &counted("max_shared_prefix_tokens"), &warm);
    let played = || scripts.scripts.iter().filter(|script| script.in_pool);
    let requests: u32 = played().map(|script| script.parts[0].requests).sum();
    found.same("total_requests", &counted("total_requests"), &Some(requests.into()));
    let mut pool = Pool::new(&scripts, &trace, seed.into(), false);
    let picks: Vec<_> = (0..5).map_while(|_| pool.take()).collect();
    let id = |conversation: u32| {
        let agentic = trace.recorded.agentic.as_ref().expect("conversations");
        agentic.conversations[conversation as usize].id.clone()
    };
    let names: Vec<String> = picks.iter().map(|pick| id(pick.conversation)).collect();
    found.same("take5", &texts(&answer["take5"]), &names);
    if let Some(&second) = picks.get(1) {
        pool.give_back(second);
    }
    let rest: Vec<String> =
        std::iter::from_fn(|| pool.take()).map(|pick| id(pick.conversation)).collect();
    found.same("after_returning_2nd", &texts(&answer["after_returning_2nd"]), &rest);
}

/// The trace of a folder's own files, which are all that the tool looks at.
fn read_files(folder: &Path) -> Result<Trace, String> {
    let own = tempfile::tempdir().map_err(|error| error.to_string())?;
    let entries = std::fs::read_dir(folder).map_err(|error| error.to_string())?;
    let files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    for file in files.iter().filter(|file| file.extension().is_some_and(|end| end == "json")) {
        let name = file.file_name().ok_or("a file without a name")?;
        std::os::unix::fs::symlink(file, own.path().join(name))
            .map_err(|error| error.to_string())?;
    }
    read(own.path(), &TraceOptions::default()).map_err(|error| error.to_string())
}

fn texts(list: &Value) -> Vec<String> {
    let texts = list.as_array().into_iter().flatten();
    texts.filter_map(|text| text.as_str().map(str::to_owned)).collect()
}
