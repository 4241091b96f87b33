//! A long run at a steady rate: what the engine has of memory and descriptors, and how late it
//! sends, is at the end what it was at the beginning.
//!
//! The engine and its server are processes of their own. Memory and descriptors are looked at every
//! so often while requests are sent; what grows only a little each hour shows as the slope of a
//! line through all looks. A pause of the machine makes more requests stand open at once, and the
//! connections that those took stay, with their memory: that is told, too, by the descriptors.
//! Nothing here is a verdict on how fast the machine is: lateness is only compared with the same
//! run's.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Child;

use onbeat::clock::monotonic_ns;
use onbeat_shared::log::Class;
use onbeat_shared::run::Run;

use super::streams::{Mocking, Running, has_core, pause, replay, resident, serve};
use crate::hardship::Product;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Wish {
    /// How long requests are sent.
    pub seconds: usize,
    /// Requests a second.
    pub rate: usize,
    /// Tokens of each answer, [`STEP_MS`] apart.
    pub tokens: usize,
    /// Between two looks (ms).
    pub look_ms: u64,
    /// How the engine drives its sockets.
    pub driver: String,
}

/// The engine at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Since the first look.
    pub at_ns: i64,
    /// Resident memory.
    pub bytes: u64,
    /// Open descriptors.
    pub files: usize,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Told {
    /// The engine's exit code.
    pub code: Option<i32>,
    /// What it said.
    pub words: String,
    /// Requests that ended well, and all.
    pub ok: [usize; 2],
    /// Content tokens in the log.
    pub tokens: u64,
    /// Looks while requests were sent.
    pub looks: Vec<Look>,
    /// Median lateness (ns) in the first and in the last tenth of the requests.
    pub late_ns: Option<[i64; 2]>,
}

/// What changed between the beginning and the end of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// Resident memory an hour, by the line through all looks.
    pub bytes_an_hour: f64,
    /// Resident memory at the first and the last look.
    pub bytes: [u64; 2],
    /// Most descriptors in the first half of the looks and in the second.
    pub files: [usize; 2],
}

/// Between two tokens of an answer (ms).
pub const STEP_MS: usize = 10;
/// One look in so many from the first on, and as many requests, are of the time before a run is
/// steady: connections are opened then, and memory is used for the first time.
const UNSTEADY: usize = 10;
const HOUR_NS: f64 = 3_600e9;

/// Runs it.
///
/// # Errors
/// When the engine leaves no log that can be read.
///
/// # Panics
/// When a process cannot be started.
pub fn run(product: &Product, wish: &Wish) -> Result<Told, String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (_server, url) = serve(product, Mocking { step_ms: STEP_MS, running: wish.rate.max(64) });
    let (trace, log) = (folder.path().join("trace.jsonl"), folder.path().join("run.beat"));
    write_trace(&trace, wish).expect("it is writable");
    let errors = folder.path().join("errors");
    let command = replay(product, &url, &trace, &log, &wish.driver);
    let mut engine = Running::begin(command, &errors);
    let looks = watch(&mut engine.0, wish.look_ms);
    let code = engine.0.wait().expect("it is ours").code();
    let words = fs::read_to_string(&errors).unwrap_or_default();
    let bytes = fs::read(&log).map_err(|error| format!("no log ({error}): {words}"))?;
    let run = Run::read(&bytes).map_err(|error| format!("{error}: {words}"))?;
    let all = run.plan.len();
    let ok = (0..all).filter(|&i| run.requests.class(i) == Some(Class::Ok)).count();
    let tokens = (0..all).map(|i| run.requests.chunk_tokens(i)).sum();
    let late_ns = medians(&run);
    Ok(Told { code, words, ok: [ok, all], tokens, looks, late_ns })
}

/// A row every so many milliseconds, each with a prompt of its own.
fn write_trace(path: &Path, wish: &Wish) -> std::io::Result<()> {
    let mut file = BufWriter::new(fs::File::create(path)?);
    for row in 0..wish.seconds * wish.rate {
        let (at, tokens) = (row * 1_000 / wish.rate, wish.tokens);
        writeln!(
            file,
            "{{\"timestamp\":{at},\"input_length\":100,\"output_length\":{tokens},\
             \"hash_ids\":[{row}]}}"
        )?;
    }
    file.flush()
}

/// Looks at a process from when its cores are there until they are gone.
fn watch(child: &mut Child, look_ms: u64) -> Vec<Look> {
    let folder = format!("/proc/{}", child.id());
    let folder = Path::new(&folder);
    let mut looks = Vec::new();
    let mut first_ns = None;
    while child.try_wait().expect("it is ours").is_none() {
        let is_running = has_core(folder);
        if !is_running && first_ns.is_some() {
            // What it makes of its log is no part of sending.
            break;
        }
        let files = fs::read_dir(folder.join("fd")).map(Iterator::count);
        if is_running && let (Some(bytes), Ok(files)) = (resident(folder), files) {
            let now_ns = monotonic_ns();
            let at_ns = now_ns - *first_ns.get_or_insert(now_ns);
            looks.push(Look { at_ns, bytes, files });
        }
        pause(if first_ns.is_some() { look_ms } else { 5 });
    }
    looks
}

/// Median lateness in the first steady tenth of the requests and in the last.
fn medians(run: &Run) -> Option<[i64; 2]> {
    let tenth = run.plan.len() / UNSTEADY;
    let all = run.plan.len();
    let median = |from: usize| {
        let late = |i| {
            let sent = run.requests.sent(i)?;
            Some(sent.0 - run.requests.intended(i)?.0)
        };
        let mut late: Vec<i64> = (from..from + tenth).filter_map(late).collect();
        late.sort_unstable();
        late.get(late.len() / 2).copied()
    };
    Some([median(tenth.min(all - tenth))?, median(all - tenth)?])
}

impl Told {
    /// What changed since the run was steady; `None` when it was too short to say.
    #[must_use]
    pub fn growth(&self) -> Option<Growth> {
        growth(self.looks.get(self.looks.len() / UNSTEADY..)?)
    }
}

fn growth(looks: &[Look]) -> Option<Growth> {
    let (first, last) = (looks.first()?, looks.last()?);
    let count = looks.len() as f64;
    let mean = |of: &dyn Fn(&Look) -> f64| looks.iter().map(of).sum::<f64>() / count;
    let (at, bytes) = (mean(&|look| look.at_ns as f64), mean(&|look| look.bytes as f64));
    let products = |look: &Look| (look.at_ns as f64 - at) * (look.bytes as f64 - bytes);
    let squares = |look: &Look| (look.at_ns as f64 - at).powi(2);
    let spread = looks.iter().map(squares).sum::<f64>();
    let (before, after) = looks.split_at(looks.len() / 2);
    let most = |part: &[Look]| part.iter().map(|look| look.files).max();
    (spread > 0.0).then_some(Growth {
        bytes_an_hour: looks.iter().map(products).sum::<f64>() / spread * HOUR_NS,
        bytes: [first.bytes, last.bytes],
        files: [most(before)?, most(after)?],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slope_is_that_of_the_line_and_one_outlier_is_not_an_hour() {
        let look = |second: i64, bytes| Look { at_ns: second * 1_000_000_000, bytes, files: 9 };
        let steady: Vec<Look> = (0..100).map(|second| look(second, 5_000)).collect();
        let told = growth(&steady).expect("looks");
        assert_eq!((told.bytes_an_hour, told.files), (0.0, [9, 9]));
        let growing: Vec<Look> =
            (0..100).map(|second| look(second, 5_000 + second as u64)).collect();
        let told = growth(&growing).expect("looks");
        assert!((told.bytes_an_hour - 3_600.0).abs() < 1e-6, "{told:?}");
        assert_eq!(told.bytes, [5_000, 5_099]);
        assert_eq!(growth(&steady[..1]), None, "one look has no slope");
        assert_eq!(growth(&[]), None);
    }
}
