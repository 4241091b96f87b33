//! A case of the manifest: its files, and what its author says must come out.
//!
//! The checks that many cases share are here: a plan, held against every key of the expectation;
//! files that must give the same requests; files that must be refused before anything is sent.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::found::Findings;
use crate::product::{self, Planned, name, plan, planned, replay, text};
use crate::server::Recorder;

/// Nanoseconds of a microsecond.
const MICRO: i64 = 1_000;
/// Nanoseconds of a millisecond.
pub(crate) const MILLI: i64 = 1_000_000;

/// A case.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// Its name, like `A01`.
    pub(crate) id: String,
    /// The folder that all cases are in.
    pub(crate) cases: PathBuf,
    /// Its files, by name.
    pub(crate) files: Vec<PathBuf>,
    /// What must come out, for a program; null where only the words say it.
    pub(crate) expect: Value,
}

impl Case {
    /// Reads an entry of the manifest.
    pub(crate) fn of(entry: &Value, cases: &Path) -> Self {
        let folder = entry["dir"].as_str().map(|folder| cases.join(folder));
        let names = entry["files"].as_array().cloned().unwrap_or_default();
        let files = names.iter().filter_map(Value::as_str);
        Self {
            id: entry["id"].as_str().expect("a case has an id").to_owned(),
            cases: cases.to_owned(),
            files: folder.iter().flat_map(|folder| files.clone().map(|f| folder.join(f))).collect(),
            expect: entry["expect"].clone(),
        }
    }

    /// A file of this case.
    pub(crate) fn file(&self, wanted: &str) -> PathBuf {
        let mut files = self.files.iter();
        let words = || panic!("the case has no file {wanted}");
        files.find(|file| name(file) == wanted).unwrap_or_else(words).clone()
    }

    /// The numbers under a key of the expectation.
    pub(crate) fn numbers(&self, key: &str) -> Vec<i64> {
        numbers(&self.expect[key])
    }

    /// The number under a key of the expectation.
    pub(crate) fn number(&self, key: &str) -> i64 {
        let words = || panic!("the expectation has no number {key:?}");
        self.expect[key].as_i64().unwrap_or_else(words)
    }
}

/// A list of whole numbers; empty when it is none.
fn numbers(value: &Value) -> Vec<i64> {
    value.as_array().into_iter().flatten().filter_map(Value::as_i64).collect()
}

/// Every file of the case is planned, and each plan is what the expectation says.
pub(crate) fn each_planned(case: &Case, options: &[&str], found: &mut Findings) -> Vec<Planned> {
    let plans: Vec<_> = case.files.iter().map(|file| planned(file, options, found)).collect();
    for (plan, file) in plans.iter().zip(&case.files) {
        holds_expected(&case.expect, plan, &name(file), found);
    }
    plans
}

/// A plan is what the expectation says, key by key; a key that is not known here is wrong, so that
/// none is passed over.
pub(crate) fn holds_expected(expect: &Value, plan: &Planned, file: &str, found: &mut Findings) {
    let rows = &plan.rows;
    let times = |value: &Value, unit: i64| -> Vec<Option<i64>> {
        numbers(value).into_iter().map(|time| Some(time * unit)).collect()
    };
    for (key, value) in expect.as_object().into_iter().flatten() {
        let what = format!("{file}: {key}");
        match key.as_str() {
            "n" => found.same(what, value, &Value::from(rows.len())),
            "sessions" => found.same(what, value, &Value::from(plan.sessions().len())),
            "offsets_ms" => found.same(what, &times(value, MILLI), &plan.due_ns()),
            "offsets_us" => found.same(what, &times(value, MICRO), &plan.due_ns()),
            "send_order_rows" => {
                let order: Vec<_> = rows.iter().map(|row| Value::from(row.row - 1)).collect();
                found.same(what, value, &Value::from(order));
            }
            "max_tokens" | "min_tokens" => {
                let planned = |row: &product::Row| match key.as_str() {
                    "max_tokens" => Value::from(row.max_tokens),
                    _ => Value::from(row.min_tokens),
                };
                let asked: Vec<_> = rows.iter().map(planned).collect();
                let sent: Vec<_> = rows.iter().map(|row| row.body()[key].clone()).collect();
                found.same(&what, value, &Value::from(asked));
                found.same(format!("{what} in bodies"), value, &Value::from(sent));
            }
            "hash_ids" => {
                let sent: Vec<_> = rows.iter().map(|row| row.body()[key].clone()).collect();
                found.same(what, value, &Value::from(sent));
            }
            "delays_ms" => {
                let waits = rows.iter().filter(|row| !row.value["after"].is_null());
                let waits: Vec<_> = waits.map(|row| row.think_ns).collect();
                found.same(what, &times(value, MILLI), &waits);
            }
            other => found.wrong(format!("the case expects {other:?}, which no check knows")),
        }
    }
}

/// Every file of the case gives the same requests.
pub(crate) fn each_alike(case: &Case, options: &[&str], found: &mut Findings) {
    let plans = each_planned(case, options, found);
    let requests = |plan: &Planned| -> Vec<String> {
        let line = |row: &product::Row| format!("{:?} {}", row.due_ns, row.body());
        plan.rows.iter().map(line).collect()
    };
    let first = requests(&plans[0]);
    found.holds("requests", !first.is_empty(), "none");
    for (plan, file) in plans.iter().zip(&case.files).skip(1) {
        let what = format!("{}, as in {}", name(file), name(&case.files[0]));
        found.same(what, &first, &requests(plan));
    }
}

/// Every file of the case is refused with these words and its line, and nothing is sent of it.
pub(crate) fn each_refused(case: &Case, words: &[(&str, &[&str])], found: &mut Findings) {
    for (key, value) in case.expect.as_object().into_iter().flatten() {
        let known = match key.as_str() {
            "outcome" => value == "refuse",
            "line" => value.is_u64(),
            _ => false,
        };
        found.holds("an expectation that is known", known, format!("{key}: {value}"));
    }
    for file in &case.files {
        let Some((_, words)) = words.iter().find(|(known, _)| *known == name(file)) else {
            found.wrong(format!("{} is a file that the table does not know", name(file)));
            continue;
        };
        let line = case.expect["line"].as_u64().map(|line| format!("line {line}:"));
        let words: Vec<&str> = words.iter().copied().chain(line.as_deref()).collect();
        refused(file, &[], &words, found);
    }
}

/// A trace is refused with these words, and nothing is sent of it.
pub(crate) fn refused(file: &Path, options: &[&str], words: &[&str], found: &mut Findings) {
    let told = plan(file, options).told;
    let what = format!("{}: the refusal", name(file));
    found.same(format!("{what}'s exit code"), &Some(1), &told.code);
    found.same(format!("{what}'s output"), &"", &told.out.as_str());
    found.says(&what, &told.err, words);
    found.says(&what, &told.err, &[text(file)]);
    let server = Recorder::start();
    let replayed = replay(file, &server.url(), options);
    found.same(format!("{what}'s exit code in a replay"), &Some(1), &replayed.told.code);
    found.same(format!("{what}: requests sent"), &0, &server.seen().len());
    found.holds("no log", replayed.run.is_none(), "one");
}
