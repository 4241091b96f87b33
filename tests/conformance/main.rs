//! The conformance test: walks the cases and the captures of other tools that may lie in a folder
//! `shared` beside the checkout (or where `ONBEAT_CONFORMANCE_DIR` says), and holds the program
//! against each of them.
//!
//! What is run and what must come out is one table (`table`); what a case's own `expect.json` says
//! is held against the outcome as well. A case that the table does not know is a failure, so that a
//! new one cannot be missed. Without the folder everything is skipped, with a line that says so.
//!
//! It has its own `main`, because this program is also the one it tests: called with `onbeat` as
//! its first word it *is* `onbeat`, never an older one. And a skip would be captured otherwise.

mod agents;
mod agree;
mod blocks;
mod case;
mod columns;
mod control;
mod differ;
mod draws;
mod edges;
mod figures;
mod files;
mod found;
mod lines;
mod network;
mod open_loop;
mod oracle;
mod played;
mod plays;
mod product;
mod prompts;
mod recorded;
mod server;
mod streams;
mod table;
mod thinking;
mod times;
mod tool_runs;
mod users;
mod wanted;
mod wire;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use found::Outcome;
use wanted::Wanted;

/// Names the folder, instead of `shared` beside the checkout.
const FOLDER: &str = "ONBEAT_CONFORMANCE_DIR";
/// Checks that run at once: the slow ones wait for a clock, not for a processor.
const WORKERS: usize = 4;
/// A check that takes longer than this hangs.
const PATIENCE: Duration = Duration::from_secs(300);

/// One check: its name and what it does.
struct Item {
    name: String,
    check: Box<dyn Fn() -> Outcome + Send + Sync>,
}

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    if words.nth(1).is_some_and(|word| word == product::NAME) {
        return product::be(words);
    }
    let wanted = Wanted::of(std::env::args().skip(1));
    let items = match folder() {
        Ok(Some(folder)) => items(&folder),
        Ok(None) => {
            say(&format!(
                "skipped: conformance: there is no folder `shared` with cases beside the checkout \
                 ({FOLDER} names another)"
            ));
            say(&totals(0, 0, 0, 0));
            return ExitCode::SUCCESS;
        }
        Err(words) => {
            say(&format!("conformance: {words}"));
            say(&totals(0, 1, 0, 0));
            return ExitCode::FAILURE;
        }
    };
    let all = items.len();
    let items: Vec<Item> = items.into_iter().filter(|item| wanted.wants(&item.name)).collect();
    if wanted.list {
        items.iter().for_each(|item| say(&format!("{}: test", item.name)));
        return ExitCode::SUCCESS;
    }
    run(items, all)
}

/// Where the material is; `None` when there is none.
fn folder() -> Result<Option<PathBuf>, String> {
    let has_material = |folder: &Path| folder.join(table::MANIFEST).is_file();
    if let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) {
        return match has_material(&folder) {
            true => Ok(Some(folder)),
            false => Err(format!("{FOLDER}: {} has no {}", folder.display(), table::MANIFEST)),
        };
    }
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    Ok(has_material(&beside).then_some(beside))
}

/// Everything there is to check in the folder, what takes longest first.
fn items(folder: &Path) -> Vec<Item> {
    let mut items = table::items(&folder.join("cases"), &folder.join(table::MANIFEST));
    if !folder.join("oracle/aiperf/out").is_dir() {
        say("skipped: conformance: there are no captures in oracle/aiperf/out");
    }
    items.extend(oracle::items(&folder.join("oracle/aiperf")));
    items.extend(edges::items(&folder.join("oracle/aiperf/traces")));
    items.extend(users::items(folder));
    items.extend(tool_runs::items(folder));
    items.extend(files::items(folder));
    items.extend(draws::items(folder));
    items.extend(plays::items(folder));
    items.extend(thinking::items(folder));
    items.sort_by_key(|item| !table::SLOW.iter().any(|slow| item.name == *slow));
    items
}

/// Runs the checks on a few threads and tells each outcome as it comes.
fn run(items: Vec<Item>, all: usize) -> ExitCode {
    say(&format!("\nrunning {} conformance checks", items.len()));
    let (count, items) = (items.len(), Arc::new(items));
    let (sender, outcomes) = mpsc::sync_channel(count);
    let next = Arc::new(AtomicUsize::new(0));
    for number in 0..WORKERS {
        let (sender, items, next) = (sender.clone(), Arc::clone(&items), Arc::clone(&next));
        std::thread::Builder::new()
            .name(format!("check-{number}"))
            .spawn(move || {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = found::caught(&item.check);
                    if sender.send((item.name.clone(), outcome)).is_err() {
                        return;
                    }
                }
            })
            .expect("a thread");
    }
    let (mut passed, mut failed, mut ignored, mut failures) = (0, 0, 0, Vec::new());
    for _ in 0..count {
        let Ok((name, outcome)) = outcomes.recv_timeout(PATIENCE) else {
            say(&format!("conformance: a check hangs for {PATIENCE:?}"));
            failed += 1;
            break;
        };
        let end = match outcome {
            Outcome::Passed => {
                passed += 1;
                "ok".to_owned()
            }
            Outcome::Ignored(why) => {
                ignored += 1;
                format!("ignored, {why}")
            }
            Outcome::Failed(lines) => {
                failed += 1;
                failures.extend(lines.into_iter().map(|line| format!("    {name}: {line}")));
                "FAILED".to_owned()
            }
        };
        say(&format!("test conformance {name} ... {end}"));
    }
    if !failures.is_empty() {
        say("\nfailures, one a line:");
        failures.iter().for_each(|line| say(line));
    }
    say(&totals(passed, failed, ignored, all - count));
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The line that test programs end with.
fn totals(passed: usize, failed: usize, ignored: usize, filtered: usize) -> String {
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    format!(
        "\ntest result: {verdict}. {passed} passed; {failed} failed; {ignored} ignored; \
         0 measured; {filtered} filtered out\n"
    )
}

fn say(words: &str) {
    // A closed terminal is no failed check.
    let _ = writeln!(std::io::stdout(), "{words}");
}
