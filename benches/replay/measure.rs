//! Runs a case pair by pair and says what came out, as one line of results.
//!
//! Parties send in turn, so that the machine's moods hit both. Every number is the median over the
//! pairs, and every ratio the median of the pairs' ratios, the second party's over the first's. A
//! case that cannot run here says why instead. There are no thresholds: judging is the reader's.

use std::io::{Error, Result};
use std::process::{Command, Stdio};

use benches::search::Search;
use onbeat_shared::metrics::quantile::percentile;
use serde_json::{Value, json};

use super::case::{Case, Kind, Party, Program};
use super::runner::{Runner, Turn};
use super::side::Side;

/// Lateness below which a rate holds.
const HELD_NS: f64 = 1e6;
/// Share of requests in host stalls above which a pair is run again.
const NOISY: f64 = 0.1;
/// Descriptors of a process beyond its connections.
const OTHER_DESCRIPTORS: u64 = 200;

/// Both parties' turns.
type Pairs = [Vec<Side>; 2];

/// Runs a case and returns its line.
pub(crate) fn run(runner: &Runner, case: &Case) -> Result<Value> {
    let mut line = json!({
        "bench": "replay",
        "case": case.name,
        "command": command(case),
        "requests": case.count,
        "body_bytes": case.body_bytes(),
        "pairs": case.pairs,
    });
    for party in &case.parties {
        if !party.options.is_empty() {
            line[format!("{}_options", party.label)] = json!(party.options.join(" "));
        }
    }
    let skipped = match cannot_run(runner, case)? {
        Some(why) => Some(why),
        None => match case.kind {
            Kind::Lateness => lateness(runner, case, &mut line)?,
            Kind::Burst | Kind::Streams => spans(runner, case, &mut line)?,
            Kind::Rate => rate(runner, case, &mut line)?,
            Kind::Stall => stall(runner, case, &mut line)?,
            Kind::RenderAhead => render_ahead(runner, case, &mut line)?,
        },
    };
    if let Some(why) = skipped {
        line["skipped"] = json!(why);
    } else if let Program::Peer(peer) = &case.parties[0].program {
        line["peer_version"] = json!(runner.peer_version(peer)?);
    }
    Ok(line)
}

/// What makes this line.
fn command(case: &Case) -> String {
    let words = match (&case.parties[0].program, case.name.as_str()) {
        (Program::Base, name) => format!("--base ENGINE {name}"),
        (Program::Peer(peer), _) => {
            format!("--peer {peer} --rate {} --count {}", case.rate, case.count)
        }
        (_, name) => name.to_owned(),
    };
    format!("cargo bench -p benches --bench replay -- {words}")
}

/// Why a case cannot run on this machine.
fn cannot_run(runner: &Runner, case: &Case) -> Result<Option<String>> {
    let parties = &case.parties;
    let most = parties.iter().map(Party::streams).max().unwrap_or(0) + case.connections;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    if limit.current.is_some_and(|limit| limit < most as u64 + OTHER_DESCRIPTORS) {
        return Ok(Some(format!("{most} connections need a higher limit of open files")));
    }
    let ahead = ["--render".to_owned(), "ahead".to_owned()];
    let is_ahead = |party: &Party| party.options.windows(2).any(|pair| pair == ahead);
    if parties.iter().any(is_ahead) && !knows(runner, "--render ")? {
        return Ok(Some("this engine cannot render ahead".to_owned()));
    }
    if parties.iter().any(|party| party.disk_hangs) && !exists("strace") {
        return Ok(Some("strace is not installed (apt install strace)".to_owned()));
    }
    if parties.iter().any(|party| party.on_terminal) && !exists("script") {
        return Ok(Some("script is not installed (apt install bsdutils)".to_owned()));
    }
    Ok(None)
}

/// Whether the engine has an option.
fn knows(runner: &Runner, option: &str) -> Result<bool> {
    let help = Command::new(&runner.engine).args(["replay", "--help"]).output()?;
    Ok(String::from_utf8_lossy(&help.stdout).contains(option))
}

fn exists(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Both parties in turn; `Err` of the inner result says why one could not run. A pair in which the
/// host took the core away from more than a tenth of the requests says little, and is run again, at
/// most half as often as there are pairs; `noisy_pairs` says how often that was.
fn pairs(
    runner: &Runner,
    case: &Case,
    line: &mut Value,
) -> Result<std::result::Result<Pairs, String>> {
    let mut sides: Pairs = [Vec::new(), Vec::new()];
    let mut noisy = 0;
    while sides[1].len() < case.pairs {
        let mut pair = Vec::new();
        for party in &case.parties {
            match runner.turn(case, party)? {
                Turn::Ran(side) => pair.push(*side),
                Turn::Skipped(why) => return Ok(Err(why)),
            }
        }
        if noisy < case.pairs / 2 && pair.iter().any(|side| side.share_in_stalls() > NOISY) {
            noisy += 1;
            continue;
        }
        for (sides, side) in sides.iter_mut().zip(pair) {
            sides.push(side);
        }
    }
    line["noisy_pairs"] = json!(noisy);
    Ok(Ok(sides))
}

fn lateness(runner: &Runner, case: &Case, line: &mut Value) -> Result<Option<String>> {
    let sides = match pairs(runner, case, line)? {
        Ok(sides) => sides,
        Err(why) => return Ok(Some(why)),
    };
    let labels = case.parties.each_ref().map(|party| party.label);
    let mut say = |name: &str, unit: f64, of: &dyn Fn(&Side) -> Option<f64>| {
        compare(line, labels, name, unit, &sides, of);
    };
    for (name, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)] {
        say(&format!("arrival_{name}_us"), 1e3, &|side| side.arrival(share));
    }
    // A peer's own lateness is not known.
    if sides[0].iter().all(|side| !side.own.is_empty()) {
        for (name, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
            let own = |side: &Side| percentile(&side.own, share);
            say(&format!("own_{name}_us"), 1e3, &own);
            let outside = |side: &Side| percentile(&side.outside, share);
            say(&format!("outside_stalls_{name}_us"), 1e3, &outside);
        }
        say("arrival_outside_p99_us", 1e3, &|side| percentile(&side.arrivals_outside, 0.99));
        say("arrival_steady_p99_us", 1e3, &|side| percentile(&side.arrivals_steady, 0.99));
        say("percent_waiting_outside", 0.01, &|side| Some(side.share_waiting()));
        say("percent_in_stalls", 0.01, &|side| Some(side.share_in_stalls()));
    }
    // The floor does not count its own, and a peer's are not known.
    let counted = |party: &Party| !matches!(party.program, Program::Floor | Program::Peer(_));
    if case.parties.iter().all(counted) {
        say("involuntary_switches", 1.0, &|side| Some(side.switches as f64));
    }
    if case.parties.iter().any(|party| party.traffic.is_some()) {
        say("records_per_s", 1.0, &|side| Some(side.records_per_s));
        say("lost_records", 1.0, &|side| Some(side.lost_records as f64));
        say("skipped_pushes", 1.0, &|side| Some(side.server.skipped_pushes as f64));
    }
    let failed: usize = sides.iter().flatten().map(|side| side.failed).sum();
    line["failed_requests"] = json!(failed);
    Ok(None)
}

/// How long the whole thing took: until the last byte had left, or until the last had come.
fn spans(runner: &Runner, case: &Case, line: &mut Value) -> Result<Option<String>> {
    let sides = match pairs(runner, case, line)? {
        Ok(sides) => sides,
        Err(why) => return Ok(Some(why)),
    };
    let labels = case.parties.each_ref().map(|party| party.label);
    if case.kind == Kind::Burst {
        let left = |side: &Side| Some(side.sent_end_ns);
        compare(line, labels, "last_byte_left_us", 1e3, &sides, &left);
        return Ok(None);
    }
    let chunks = (case.count * case.chunks) as f64;
    let rate = |side: &Side| (side.end_ns > 0.0).then(|| chunks / side.end_ns * 1e9);
    compare(line, labels, "chunks_per_s", 1.0, &sides, &rate);
    // Near a hundred: what was measured is the server.
    let busy = |side: &Side| Some(side.server.busy_share);
    compare(line, labels, "server_busy_percent", 0.01, &sides, &busy);
    Ok(None)
}

/// The highest rate that each side holds: every request sent, and the p99 of lateness that neither
/// a host stall nor catching up after one explains under a millisecond. Both search at once, try by
/// try in turn, and as many times as there are pairs, since a host has better and worse minutes.
fn rate(runner: &Runner, case: &Case, line: &mut Value) -> Result<Option<String>> {
    let mut highest = [Vec::new(), Vec::new()];
    let (mut ratios, mut tries, mut open_ended) = (Vec::new(), 0, 0);
    let mut busy = [None, None];
    for _ in 0..case.pairs {
        let starts = highest.each_ref().map(|rates| rates.last().copied().unwrap_or(case.rate));
        let searches = match search(runner, case, starts, &mut busy)? {
            Ok(searches) => searches,
            Err(why) => return Ok(Some(why)),
        };
        tries += searches.iter().map(Search::tries).sum::<u32>();
        open_ended += searches.iter().filter(|search| !search.converged()).count();
        let found = searches.each_ref().map(Search::highest);
        ratios.extend(found[0].zip(found[1]).map(|(first, second)| second / first));
        for (rates, found) in highest.iter_mut().zip(found) {
            rates.extend(found);
        }
    }
    for ((rates, party), busy) in highest.iter().zip(&case.parties).zip(busy) {
        let label = party.label;
        line[format!("{label}_highest_per_s")] = json!(median(rates).map(f64::round));
        line[format!("{label}_server_busy_percent")] = json!(busy);
    }
    line["tries"] = json!(tries);
    line["open_ended_searches"] = json!(open_ended);
    line["ratio_highest"] = json!(median(&ratios).map(thousandths));
    Ok(None)
}

/// One search of each side; `Err` of the inner result says why one could not run.
fn search(
    runner: &Runner,
    case: &Case,
    starts: [f64; 2],
    busy: &mut [Option<f64>; 2],
) -> Result<std::result::Result<[Search; 2], String>> {
    let mut searches = starts.map(|start| Search::bounded(start, case.tries));
    while searches.iter().any(|search| search.next().is_some()) {
        for (side, party) in case.parties.iter().enumerate() {
            let Some(rate) = searches[side].next() else { continue };
            #[expect(clippy::cast_possible_truncation, reason = "a few hundred thousand at most")]
            #[expect(clippy::cast_sign_loss, reason = "a rate is positive")]
            let count = ((rate * case.seconds) as usize).max(50);
            match runner.turn(&Case { rate, count, ..case.clone() }, party)? {
                Turn::Ran(found) => {
                    let held = holds(&found);
                    if held {
                        busy[side] = Some((found.server.busy_share * 100.0).round());
                    }
                    searches[side].tell(held);
                }
                Turn::Skipped(why) => return Ok(Err(why)),
            }
        }
    }
    Ok(Ok(searches))
}

fn holds(side: &Side) -> bool {
    let p99 = percentile(&side.steady, 0.99);
    // When the host explains most of it, nothing was seen.
    let seen = side.steady.len() * 2 > side.own.len();
    seen && side.failed == 0 && p99.is_some_and(|p99| p99 < HELD_NS)
}

/// What the log says of the 20 ms in which its process was stopped.
fn stall(runner: &Runner, case: &Case, line: &mut Value) -> Result<Option<String>> {
    let millis = |ns: f64| (ns / 1e6 * 100.0).round() / 100.0;
    let (mut ratios, mut reported, mut outside) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..case.pairs {
        let side = match runner.turn(case, &case.parties[1])? {
            Turn::Ran(side) => side,
            Turn::Skipped(why) => return Ok(Some(why)),
        };
        if let Some((stopped_ns, reported_ns)) = side.stopped_and_reported() {
            ratios.push(reported_ns / stopped_ns);
            reported.push(reported_ns);
        }
        outside.extend(side.outside.last());
    }
    line["stopped_ms"] = json!(20);
    line["onbeat_reported_ms"] = json!(median(&reported).map(millis));
    line["ratio_reported"] = json!(median(&ratios).map(thousandths));
    // What was overdue must be explained by the stall.
    line["onbeat_max_lateness_outside_stalls_ms"] = json!(median(&outside).map(millis));
    Ok(None)
}

/// Whether requests written while others are sent are there in time, and what memory that took.
fn render_ahead(runner: &Runner, case: &Case, line: &mut Value) -> Result<Option<String>> {
    let side = match runner.turn(case, &case.parties[1])? {
        Turn::Ran(side) => side,
        Turn::Skipped(why) => return Ok(Some(why)),
    };
    let span_s = side.sent_end_ns / 1e9;
    let bytes = (case.count * case.body_bytes()) as f64;
    line["onbeat_megabytes_per_s"] = json!((bytes / 1e6 / span_s).round());
    line["onbeat_underruns"] = json!(side.underruns);
    for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
        let late = percentile(&side.outside, share).map(|ns| (ns / 1e3 * 100.0).round() / 100.0);
        line[format!("onbeat_outside_stalls_{name}_us")] = json!(late);
    }
    let mib = side.peak_bytes.map(|bytes| bytes as f64 / f64::from(1 << 20));
    let budget_mib = case.parties[1].budget_mib.map(|budget| budget as f64);
    line["onbeat_peak_memory_mib"] = json!(mib.map(f64::round));
    line["onbeat_budget_mib"] = json!(budget_mib);
    let ratio = mib.zip(budget_mib).map(|(mib, budget)| thousandths(mib / budget));
    line["ratio_peak_memory"] = json!(ratio);
    line["failed_requests"] = json!(side.failed);
    Ok(None)
}

/// Writes both medians and the median of the pairs' ratios.
fn compare(
    line: &mut Value,
    labels: [&str; 2],
    name: &str,
    unit: f64,
    sides: &Pairs,
    of: &dyn Fn(&Side) -> Option<f64>,
) {
    let values = sides.each_ref().map(|sides| sides.iter().map(of).collect::<Vec<_>>());
    for (label, values) in labels.iter().zip(&values) {
        let known: Vec<f64> = values.iter().copied().flatten().collect();
        let shown = median(&known).map(|value| (value / unit * 100.0).round() / 100.0);
        line[format!("{label}_{name}")] = json!(shown);
    }
    let ratio = |(first, second): (&Option<f64>, &Option<f64>)| {
        let (first, second) = ((*first)?, (*second)?);
        (first > 0.0).then_some(second / first)
    };
    let ratios: Vec<f64> = values[0].iter().zip(&values[1]).filter_map(ratio).collect();
    line[format!("ratio_{name}")] = json!(median(&ratios).map(thousandths));
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    percentile(&sorted, 0.5)
}

fn thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// Raises the soft limit of open files to the hard one, for this process and its children.
pub(crate) fn raise_file_limit() -> Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).map_err(Error::from)
}
