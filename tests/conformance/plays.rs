//! kv-cache-tester's recorded runs, replayed with the same command on the same traces: what it sent
//! and wrote against what we send and write, where both must agree; and what we do where
//! `decisions` says that we differ, with the decision's name in the words of the failure.
//!
//! Order and facts are compared, never times. The tool's runs ended by the clock, so of each play
//! of a conversation the tool's requests are the first of ours.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use onbeat_shared::log::Class;
use onbeat_shared::run::Run;

use crate::Item;
use crate::agree::{self, Both};
use crate::differ;
use crate::found::{Findings, outcome};
use crate::open_loop::rest;
use crate::played::{Command, Played, answer, play, to_its_end};
use crate::recorded::{Tables, arrivals_of_tool, session_of};
use crate::server::{Recorder, Seen, Then};

/// Where the tool's runs are, a folder each.
const RUNS: &str = "oracle/kvct";
/// The command that the tool was interrupted in; its folder has none.
const INTERRUPTED: &str = "--tokenizer tok --trace-directory tr_synth --seed 42 --start-users 3 \
                           --assessment-period 2 --max-delay 5 --skip-graphs --test-duration 60";
/// The commands of runs of which nothing is kept but what the tool's notes say of them.
const TRUNCATED: &str = "--tokenizer tok --trace-directory tr_small --seed 42 --max-context 11200 \
                         --start-users 4 --max-users 4 --test-duration 8 --assessment-period 3 \
                         --max-delay 0.5 --verbose --skip-graphs";
const ERRORS: &str = "--tokenizer tok --trace-directory tr_small --seed 42 --start-users 4 \
                      --max-users 4 --test-duration 12 --assessment-period 4 --max-delay 0.5 \
                      --verbose --skip-graphs --temperature 0.1";
const API_SCALED: &str = "--tokenizer tok --trace-directory tr_synth --seed 42 --start-users 3 \
                          --max-users 3 --test-duration 12 --assessment-period 4 --max-delay 1 \
                          --verbose --skip-graphs --timing-strategy api-scaled \
                          --api-time-scale 0.2";

/// How a run comes to its end.
#[derive(Clone, Copy, PartialEq)]
enum End {
    /// Nobody is left.
    Itself,
    /// It is interrupted when all has arrived that arrived from the tool, and these requests, which
    /// are never answered: a session and the tokens they ask for.
    AllArrived(&'static [(&'static str, u64)]),
    /// It is interrupted when more tokens were asked for than this.
    Asked(u64),
}

/// What one run shows beside what all show.
type Shows = fn(&Both<'_>, &mut Findings);

/// A run of the tool: its folder, its command where the folder has none, `--time-scale` for ours,
/// words of ours, the most tokens its server gave, how ours ends, what it shows.
struct Known {
    name: &'static str,
    words: Option<&'static str>,
    scale: &'static str,
    more: &'static [&'static str],
    most: u64,
    end: End,
    shows: Shows,
}

const NOTHING_MORE: Shows = |_, _| ();
const ALL: u64 = u64::MAX;

#[rustfmt::skip]
const KNOWN: &[Known] = &[
    Known { name: "A_basic", words: None, scale: "0.05", more: &[], most: ALL,
        end: End::AllArrived(&[]), shows: differ::recycled },
    // The code at its head streams all; with that word of ours every body is alike.
    Known { name: "A2_basic_again", words: None, scale: "0.05", more: &["--stream-all"], most: ALL,
        end: End::AllArrived(&[]), shows: differ::all_streamed },
    // One core asks for all of the first requests before it hears of an answer.
    Known { name: "B_limits", words: None, scale: "0.05", more: &["--cores", "1"], most: 60,
        end: End::Asked(1_500), shows: differ::within_limits },
    Known { name: "C_synth", words: None, scale: "0.05", more: &[], most: ALL,
        end: End::Itself, shows: NOTHING_MORE },
    Known { name: "C2_original", words: None, scale: "0.02", more: &[], most: ALL,
        end: End::Itself, shows: NOTHING_MORE },
    Known { name: "C3_apiscaled", words: Some(API_SCALED), scale: "0.05", more: &[], most: ALL,
        end: End::Itself, shows: NOTHING_MORE },
    // Slow enough for two periods, after which the users come that begin at the beginning.
    Known { name: "D_advance", words: None, scale: "0.5", more: &[], most: ALL,
        end: End::Itself, shows: differ::advanced },
    Known { name: "E_subfirst", words: None, scale: "0.05", more: &[], most: ALL,
        end: End::Itself, shows: differ::agent_first },
    Known { name: "G_truncated", words: Some(TRUNCATED), scale: "0.05", more: &[], most: ALL,
        end: End::Itself, shows: differ::truncated },
    Known { name: "H_errors", words: Some(ERRORS), scale: "0.05", more: &[], most: ALL,
        end: End::Itself, shows: differ::failed },
    // Its last request of a user is never answered, so that something is under way.
    Known { name: "S_sigint", words: Some(INTERRUPTED), scale: "0.02", more: &["--drain-seconds", "0"],
        most: ALL, end: End::AllArrived(&[("synA", 40)]), shows: differ::interrupted },
    Known { name: "Z_zero_output", words: None, scale: "0.05", more: &[], most: 0,
        end: End::Itself, shows: differ::without_output },
];

/// One check for each run that we know, and a failure for each that is there and not known.
pub(crate) fn items(folder: &Path) -> Vec<Item> {
    let folder = folder.join(RUNS);
    if !folder.is_dir() {
        crate::say(&format!("skipped: conformance: there is no {RUNS}"));
        return Vec::new();
    }
    let mut items = Vec::new();
    for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_run = entry.path().join("requests.jsonl.gz").is_file();
        if is_run && !KNOWN.iter().any(|known| known.name == name) {
            items.push(Item {
                name: format!("kvct/replay/{name}"),
                check: Box::new(|| outcome(|found| found.wrong("a run that no check knows"))),
            });
        }
    }
    items.push(Item {
        name: "kvct/replay/twice".to_owned(),
        check: Box::new({
            let folder = folder.clone();
            move || outcome(|found| twice(&folder, found))
        }),
    });
    for known in KNOWN {
        let (at, is_there) = (folder.clone(), folder.join(known.name).is_dir());
        if !is_there && known.words.is_none() {
            crate::say(&format!("skipped: conformance: there is no {RUNS}/{}", known.name));
            continue;
        }
        items.push(Item {
            name: format!("kvct/replay/{}", known.name),
            check: Box::new(move || outcome(|found| check(known, &at, found))),
        });
    }
    items
}

fn check(known: &'static Known, folder: &Path, found: &mut Findings) {
    let own: PathBuf = folder.join(known.name);
    let words = known.words.map_or_else(
        || std::fs::read_to_string(own.join("cmdline.txt")).unwrap_or_default(),
        str::to_owned,
    );
    let command = Command { folder, words: &words, scale: known.scale, more: known.more };
    let lists = command.lists();
    found.holds("conversations to play", !lists.is_empty(), "none");
    let arrivals = match own.is_dir().then(|| arrivals_of_tool(&own)).transpose() {
        Ok(arrivals) => arrivals.unwrap_or_default(),
        Err(words) => return found.wrong(words),
    };
    let tables = Tables::of(&own);
    let mut both = Both { command: &command, lists: &lists, tables, arrivals, ours: None };
    let wanted = both.wanted();
    let server = server(known);
    let ours = match known.end {
        End::Itself => play(&command, &server, to_its_end),
        End::AllArrived(_) => play(&command, &server, |seen| has_arrived(seen, &wanted)),
        End::Asked(tokens) => play(&command, &server, |seen| asked_for(seen) > tokens),
    };
    ended(known, &ours, found);
    both.ours = Some(ours);
    agree::all(&both, found);
    (known.shows)(&both, found);
}

/// The server that the tool's run had, as far as it shows something.
fn server(known: &'static Known) -> Recorder {
    let number = AtomicUsize::new(0);
    Recorder::answering(move |seen| {
        let whole = answer(seen, |tokens| tokens.min(known.most));
        if session_of(seen).is_none() {
            return (whole, Then::GoesOn);
        }
        if known.name == "B_limits" {
            rest(Duration::from_millis(50));
        }
        if known.name == "H_errors" {
            return match differ::fate(number.fetch_add(1, Ordering::Relaxed)) {
                Class::Http5xx => (differ::HTTP_500.to_vec(), Then::GoesOn),
                Class::Ok => (whole, Then::GoesOn),
                _ => (whole, Then::Drops),
            };
        }
        match known.end {
            End::AllArrived(held) if is_held(held, seen) => (whole, Then::Holds),
            _ => (whole, Then::GoesOn),
        }
    })
}

/// Whether a request is one of these: a session and the tokens that it asks for. (The first one of
/// a session that asks for so many is answered.)
fn is_held(held: &[(&str, u64)], seen: &Seen) -> bool {
    let Some((session, _)) = session_of(seen) else { return false };
    let Some((_, tokens)) = held.iter().find(|(own, _)| *own == session) else { return false };
    let body = seen.json();
    let is_later = body["messages"].as_array().is_some_and(|list| list.len() > 3);
    body["max_tokens"] == *tokens && is_later
}

/// The same seed and the same answers give the same messages, play by play, whatever came between:
/// the tool's own two runs of this command show as much of it.
fn twice(folder: &Path, found: &mut Findings) {
    let command = Command { folder, words: INTERRUPTED, scale: "0.01", more: &[] };
    let messages = || {
        let server = Recorder::answering(|seen| (answer(seen, |tokens| tokens), Then::GoesOn));
        let played = play(&command, &server, to_its_end);
        let mut messages: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for own in played.arrivals {
            messages.entry(own.session).or_default().push(own.body["messages"].to_string());
        }
        messages
    };
    let (first, second) = (messages(), messages());
    found.same("sessions", &6, &first.len());
    for (session, list) in &first {
        let same = second.get(session) == Some(list);
        found.holds(format!("the same messages of {session} again"), same, "others");
    }
}

/// Whether of each play so many requests have arrived.
fn has_arrived(seen: &[Seen], wanted: &BTreeMap<(String, usize), usize>) -> bool {
    let mut arrived: BTreeMap<(String, usize), usize> = BTreeMap::new();
    for play in seen.iter().filter_map(session_of) {
        *arrived.entry(play).or_default() += 1;
    }
    wanted.iter().all(|(play, count)| arrived.get(play).is_some_and(|own| own >= count))
}

/// The tokens of all that has arrived.
fn asked_for(seen: &[Seen]) -> u64 {
    let asked = |seen: &Seen| seen.json()["max_tokens"].as_u64().unwrap_or(0);
    seen.iter().filter(|seen| session_of(seen).is_some()).map(asked).sum()
}

/// It ended as it was to, with a whole log.
fn ended(known: &Known, ours: &Played, found: &mut Findings) {
    let code = if known.end == End::Itself { 0 } else { 130 };
    found.holds("an end in time", !ours.hung, "none");
    found.holds(format!("exit code {code}"), ours.told.code == Some(code), {
        format!("{:?}: {}", ours.told.code, ours.told.err)
    });
    let whole = ours.run.as_ref().is_some_and(Run::is_whole);
    found.holds("a whole log", whole, "none");
}
