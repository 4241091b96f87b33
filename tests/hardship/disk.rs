//! A disk that is full or stands still: requests leave on time, and the log says what it has.
//!
//! Both are real where the system lets us: a small file system in memory that fills up, and one in
//! a file that is frozen for two seconds, for which one must be root. Elsewhere a limit on the size
//! of files stands for the full disk, and nothing for the slow one.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use onbeat_shared::run::Run;

use super::{Noting, Product};
use crate::mooncake;

/// What came of a run.
#[derive(Debug)]
pub struct Told {
    /// Its exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// What it said.
    pub words: String,
    /// Requests that arrived.
    pub arrived: usize,
    /// The log as it was left; `None` when it does not open.
    pub run: Option<Run>,
}

/// Requests of a run, and the time between two (ms).
const REQUESTS: usize = 800;
const GAP_MS: usize = 5;

/// Runs on a disk that has no room for the records.
///
/// # Panics
/// When there is no shell, or no folder can be had.
#[must_use]
pub fn full(product: &Product, server: &Noting) -> Told {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let inside = folder.path().join("small");
    fs::create_dir(&inside).expect("the folder is writable");
    // The first word is the folder, the second where the log is put afterwards.
    let mounted = "mount -t tmpfs -o size=200k none \"$0\" 2>/dev/null || exit 99
        copy=$1; shift; \"$@\"; code=$?; cp \"$0/run.beat\" \"$copy\"; exit $code";
    let limited = "copy=$1; shift; ulimit -f 300; \"$@\"; code=$?
        cp \"$0/run.beat\" \"$copy\"; exit $code";
    let own_mounts = ["unshare", "--map-root-user", "--mount", "sh", "-c", mounted];
    let told = run(product, server, folder.path(), &inside, &own_mounts);
    if told.code == Some(99) || told.run.is_none() {
        return run(product, server, folder.path(), &inside, &["sh", "-c", limited]);
    }
    told
}

/// Runs on a disk that stands still for two seconds; `None` where that cannot be had.
///
/// # Panics
/// As [`full`].
#[must_use]
pub fn slow(product: &Product, server: &Noting) -> Option<Told> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let image = folder.path().join("image");
    let inside = folder.path().join("slow");
    fs::create_dir(&inside).expect("the folder is writable");
    fs::File::create(&image).and_then(|file| file.set_len(16 << 20)).expect("room");
    let by_root = |words: &[&str]| {
        let mut command = Command::new(words[0]);
        let told = command.args(&words[1..]).stdout(Stdio::null()).stderr(Stdio::null()).status();
        told.is_ok_and(|status| status.success())
    };
    let (image, mounted) = (image.to_string_lossy(), inside.to_string_lossy());
    if !by_root(&["mkfs.ext4", "-q", &image])
        || !by_root(&["mount", "-o", "loop", &image, &mounted])
    {
        return None;
    }
    let frozen = std::thread::scope(|scope| {
        let freezing = std::thread::Builder::new().name("freezing".to_owned());
        let freezing = freezing.spawn_scoped(scope, || {
            while server.count() == 0 {
                std::thread::yield_now();
            }
            pause(Duration::from_secs(1));
            let frozen = by_root(&["fsfreeze", "-f", &mounted]);
            pause(Duration::from_secs(2));
            by_root(&["fsfreeze", "-u", &mounted]) && frozen
        });
        let freezing = freezing.expect("a thread");
        server.forget();
        let copy = "copy=$1; shift; \"$@\"; code=$?; cp \"$0/run.beat\" \"$copy\"; exit $code";
        let told = run(product, server, folder.path(), &inside, &["sh", "-c", copy]);
        (told, freezing.join().expect("no panic"))
    });
    let _gone = by_root(&["umount", &mounted]);
    let (told, frozen) = frozen;
    frozen.then_some(told)
}

/// Whether a run on a full disk sent everything, said so, and left a log that opens.
///
/// # Errors
/// What is wrong.
pub fn check_full(told: &Told) -> Result<(), String> {
    let run = told.run.as_ref().ok_or_else(|| format!("no log: {}", told.words))?;
    let kept = (0..run.plan.len()).filter(|&i| run.requests.was_sent(i)).count();
    if told.code != Some(1) || !told.words.contains("is incomplete") {
        return Err(format!("exit code {:?}: {}", told.code, told.words));
    }
    // Said before a summary that is of a part only, with what was sent and what would help.
    let words = told.words.split_whitespace().collect::<Vec<_>>().join(" ");
    let sent = format!("{REQUESTS} requests had been sent and {REQUESTS} had ended");
    let helps = ["make room", "--fsize=unlimited"].iter().any(|help| words.contains(help));
    if !words.starts_with("INCOMPLETE: ") || !words.contains(&sent) || !helps {
        return Err(format!("what was lost is not said first: {words}"));
    }
    if told.arrived != REQUESTS || kept >= REQUESTS || run.damaged_bytes > 0 {
        return Err(format!("{} requests arrived, {kept} are in the log", told.arrived));
    }
    // A log without a footer claims no number of records.
    if run.footer.is_some() {
        return Err("it claims to be whole".to_owned());
    }
    check_lateness(run)
}

/// Whether a run on a slow disk sent everything and has all of it in its log.
///
/// # Errors
/// What is wrong.
pub fn check_slow(told: &Told) -> Result<(), String> {
    let run = told.run.as_ref().ok_or_else(|| format!("no log: {}", told.words))?;
    let kept = (0..run.plan.len()).filter(|&i| run.requests.was_sent(i)).count();
    // Three: it was late, which other programs can make it.
    if !matches!(told.code, Some(0 | 3)) || told.arrived != REQUESTS || kept != REQUESTS {
        let arrived = told.arrived;
        return Err(format!("exit code {:?}, {arrived} arrived, {kept} in the log", told.code));
    }
    if !run.losses.is_empty() || !run.warnings.is_empty() {
        return Err(format!("{} losses, {:?}", run.losses.len(), run.warnings));
    }
    check_lateness(run)
}

/// Half of the time that a slow disk stands still: no busy machine makes a request so late, and
/// whoever waits for the disk is later.
const LATE_NS_MAX: i64 = 1_000_000_000;

/// Whether every request that the log knows left without having waited for a disk. The time that
/// the host kept a core from running is not counted.
///
/// # Errors
/// Which did not.
pub fn check_lateness(run: &Run) -> Result<(), String> {
    for i in 0..run.plan.len() {
        let (Some(due), Some(sent)) = (run.plan[i].due, run.requests.sent(i)) else { continue };
        let stalled = run.requests.core(i).map_or(0, |core| run.stalls.stalled_ns(core, due, sent));
        let late = (sent.0 - due.0).saturating_sub_unsigned(stalled);
        if late > LATE_NS_MAX {
            return Err(format!("request {i} left {} ms late", late / 1_000_000));
        }
    }
    Ok(())
}

/// How late requests were, in words.
#[must_use]
pub fn lateness_in_words(run: &Run) -> String {
    let [half, most, worst] = lateness(run).map(|ns| ns as f64 / 1e3);
    format!("lateness p50 {half:.1} µs, p99 {most:.1} µs, worst {worst:.1} µs")
}

/// Lateness of requests that the log knows (ns): half of them, one in a hundred, the worst.
#[must_use]
pub fn lateness(run: &Run) -> [i64; 3] {
    let mut late: Vec<i64> = (0..run.plan.len())
        .filter_map(|i| Some(run.requests.sent(i)?.0 - run.plan[i].due?.0))
        .collect();
    late.sort_unstable();
    let at = |share: usize| late.get((late.len() * share / 1_000).min(late.len().max(1) - 1));
    [at(500), at(990), at(1_000)].map(|late| late.copied().unwrap_or(0))
}

/// Runs the program behind these words, its log in `inside`.
fn run(product: &Product, server: &Noting, folder: &Path, inside: &Path, first: &[&str]) -> Told {
    let (trace, copy) = (folder.join("trace.jsonl"), folder.join("copy.beat"));
    fs::write(&trace, mooncake(REQUESTS, GAP_MS, 20, 2)).expect("the folder is writable");
    server.forget();
    let log = inside.join("run.beat");
    let (url, log, trace) = (server.url(), log.to_string_lossy(), trace.to_string_lossy());
    let words = ["replay", &trace, "--url", &url, "--output", &log, "--ui", "simple"];
    let own = product.command(&words);
    let output = Command::new(first[0])
        .args(&first[1..])
        .arg(inside)
        .arg(&copy)
        .arg(own.get_program())
        .args(own.get_args())
        .env_remove("ONBEAT_URL")
        .env_remove("OPENAI_API_KEY")
        .stdin(Stdio::null())
        .output();
    let Ok(output) = output else {
        return Told { code: Some(99), words: String::new(), arrived: 0, run: None };
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Told {
        code: output.status.code(),
        words: text(&output.stdout) + &text(&output.stderr),
        arrived: server.arrivals().len(),
        run: fs::read(&copy).ok().and_then(|bytes| Run::read(&bytes).ok()),
    }
}

fn pause(time: Duration) {
    #[expect(clippy::disallowed_methods, reason = "the pause is what is tested")]
    std::thread::sleep(time);
}
