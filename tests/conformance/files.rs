//! The files that kv-cache-tester left of its own runs, held against ours: their columns, and the
//! keys of its configuration, in its order.

use std::fs;
use std::path::Path;

use onbeat_shared::export::kv_cache_tester::{Export, Part};
use onbeat_shared::log::sample_users;
use onbeat_shared::run::Run;
use serde_json::Value;

use crate::Item;
use crate::found::{Findings, outcome};

/// Where the tool's runs are, a folder each.
const RUNS: &str = "oracle/kvct";

/// One check for each file of each run.
pub(crate) fn items(folder: &Path) -> Vec<Item> {
    let runs = fs::read_dir(folder.join(RUNS)).into_iter().flatten().flatten();
    let mut items = Vec::new();
    for run in runs {
        for part in Part::ALL {
            let place = run.path().join(part.file_name());
            if place.is_file() {
                let (run, file) = (run.file_name(), part.file_name());
                items.push(Item {
                    name: format!("kvct/files/{}/{file}", run.to_string_lossy()),
                    check: Box::new(move || outcome(|found| check(&place, part, found))),
                });
            }
        }
    }
    if items.is_empty() {
        crate::say(&format!("skipped: conformance: no run in {RUNS} has files"));
    }
    items
}

fn check(place: &Path, part: Part, found: &mut Findings) {
    let theirs = match fs::read_to_string(place) {
        Ok(text) => text,
        Err(error) => return found.wrong(error),
    };
    let head = theirs.lines().next().unwrap_or_default();
    match part.head() {
        Some(ours) => {
            let first: Vec<&str> = ours.split(',').take(head.split(',').count()).collect();
            found.same("columns", &head.to_owned(), &first.join(","));
        }
        None => check_keys(&theirs, found),
    }
}

/// The metadata of any run of ours has the keys of theirs.
fn check_keys(theirs: &str, found: &mut Findings) {
    let run = Run::read(&sample_users::log(1, 3)).expect("a log");
    let export = Export::new(&run, &[]).expect("a run with users");
    let mut ours = Vec::new();
    export.write(Part::Metadata, &mut ours).expect("memory takes everything");
    let ours: Value = serde_json::from_slice(&ours).expect("JSON");
    let theirs: Value = match serde_json::from_str(theirs) {
        Ok(theirs) => theirs,
        Err(error) => return found.wrong(error),
    };
    let keys = |value: &Value| -> Vec<String> {
        value.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect()
    };
    let mut own = keys(&ours);
    own.retain(|key| key != "onbeat");
    found.same("keys", &keys(&theirs), &own);
    for part in ["trace_stats", "config"] {
        found.same(part, &keys(&theirs[part]), &keys(&ours[part]));
    }
}
