//! `cargo x shards`: one run of several shards, each in a network namespace of its own, held
//! against the plan that was divided.
//!
//! A stand-in server runs outside; every shard has an address, routes and connections of its own,
//! as on machines of their own, but one clock and the same CPUs: what it shows is that the merged
//! log is the plan, not how late machines of their own would be. Needs root and `ip`; where
//! namespaces are not allowed it says so and does nothing. The program is the release build, which
//! is not made here.
//!
//! ```text
//! cargo x shards conversation_trace.jsonl --fixed-schedule-end-offset 60000 --tile 1460 \
//!     --benchmark-duration 8 --max-osl 2 \
//!     --synthesis-prefix-len-multiplier 0.05 --synthesis-prompt-len-multiplier 0.05
//! ```
//!
//! replays 4,000 requests a second of Mooncake's conversation trace. Prompts are a twentieth as
//! long and answers two tokens there, because two CPUs carried the server and all shards.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::process;

/// How many shards.
const SHARDS: u32 = 4;
/// Where the server listens, and the first half of the shards' addresses.
const NETWORK: &str = "10.231";
const PORT: u16 = 18_431;
/// The begin of the namespaces' names.
const NAME: &str = "onbeat-shard-";
/// From the start of the shards to their zero.
const LEAD_SECONDS: u64 = 45;

/// Entry point: `TRACE [OPTIONS of onbeat plan]…`.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    let Some((trace, options)) = arguments.split_first() else {
        return Err("name a trace, and options of `onbeat plan` if there are to be any".to_owned());
    };
    let program = root.join("target/release/onbeat");
    if !program.is_file() {
        return Err("there is no target/release/onbeat: cargo build --release -p onbeat".to_owned());
    }
    let mut networks = match Networks::new() {
        Ok(networks) => networks,
        Err(words) => {
            println!("skipped: no network namespaces here ({words})");
            return Ok(());
        }
    };
    let folder = std::env::temp_dir().join(format!("onbeat-shards-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let proof = Proof { program, trace: trace.clone(), options: options.to_vec(), folder };
    let proved = proof.run(&mut networks);
    if proved.is_ok() {
        let _ = fs::remove_dir_all(&proof.folder);
    }
    proved
}

/// What is run.
struct Proof {
    program: PathBuf,
    trace: String,
    options: Vec<String>,
    folder: PathBuf,
}

impl Proof {
    fn run(&self, networks: &mut Networks) -> Result<(), String> {
        let plan = process::output(self.onbeat("plan").arg(&self.trace).args(&self.options))?;
        println!("the whole plan: {} requests", plan.lines().count());
        let _server = Running(
            self.onbeat("mock")
                .args(["--host", &format!("{NETWORK}.0.1"), "--port", &PORT.to_string()])
                .args(["--overhead-ms", "0", "--step-ms", "1", "--sequence-ms", "0"])
                .args(["--prefill-rate", "1000000000", "--step-tokens", "1000000000"])
                .args(["--running", "100000", "--queue", "100000"])
                .stdout(Stdio::null())
                .spawn()
                .map_err(|error| format!("the server: {error}"))?,
        );
        let zero = in_seconds(LEAD_SECONDS)?;
        println!("{SHARDS} shards start at {zero}");
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let mut shards = Vec::new();
        for shard in 0..SHARDS {
            let mut command = networks.inside(shard);
            command.arg(&self.program).args(["replay", &self.trace]).args(&self.options);
            command.args(["--shard", &format!("{shard}/{SHARDS}"), "--start-at", &zero]);
            command.args(["--max-clock-error", "any", "--pacing", "sleep", "--ui", "none"]);
            command.args(["--cores", &format!("{},", shard as usize % cpus)]);
            command.args(["--url", &format!("http://{NETWORK}.0.1:{PORT}")]);
            command.arg("--output").arg(self.log(shard)).arg("--force").stdout(Stdio::null());
            let started = command.spawn().map_err(|error| format!("shard {shard}: {error}"))?;
            shards.push(Running(started));
        }
        for (shard, running) in shards.iter_mut().enumerate() {
            let status = running.0.wait().map_err(|error| format!("shard {shard}: {error}"))?;
            // A schedule that did not hold is what the CPUs that all share are good for.
            if !status.success() && status.code() != Some(3) {
                return Err(format!("shard {shard} ended with {status}"));
            }
        }
        let merged = self.folder.join("run.beat");
        let mut merge = self.onbeat("merge");
        merge.args((0..SHARDS).map(|shard| self.log(shard))).arg("--force");
        process::run(merge.arg("--output").arg(&merged))?;
        let sent = process::output(self.onbeat("export").args(["--format", "jsonl"]).arg(&merged))?;
        compare(&plan, &sent)?;
        process::run(self.onbeat("report").arg(&merged))
    }

    fn onbeat(&self, verb: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(verb);
        command
    }

    fn log(&self, shard: u32) -> PathBuf {
        self.folder.join(format!("shard-{shard}.beat"))
    }
}

/// Whether the merged log has every request of the plan once, at its instant, and sent.
fn compare(plan: &str, sent: &str) -> Result<(), String> {
    let lines = |text: &str| -> Result<BTreeMap<u64, Value>, String> {
        let mut found = BTreeMap::new();
        for line in text.lines() {
            let value: Value =
                serde_json::from_str(line).map_err(|error| format!("{error}: {line}"))?;
            let number = value["request"].as_u64().ok_or_else(|| format!("no number: {line}"))?;
            if found.insert(number, value).is_some() {
                return Err(format!("request {number} is there twice"));
            }
        }
        Ok(found)
    };
    let (plan, sent) = (lines(plan)?, lines(sent)?);
    if plan.len() != sent.len() {
        return Err(format!("{} requests were planned, {} are merged", plan.len(), sent.len()));
    }
    for (number, planned) in &plan {
        let found = sent.get(number).ok_or_else(|| format!("request {number} is missing"))?;
        for key in ["row", "session", "turn", "due_ns"] {
            if planned[key] != found[key] {
                let (planned, found) = (&planned[key], &found[key]);
                return Err(format!("request {number}: {key} is {found}, planned {planned}"));
            }
        }
        if found["sent_ns"].is_null() {
            return Err(format!("request {number} was never sent"));
        }
    }
    println!("the merged log is the plan: {} requests, each sent once", plan.len());
    Ok(())
}

/// The wall clock so many seconds from now, as RFC 3339.
fn in_seconds(seconds: u64) -> Result<String, String> {
    #[expect(clippy::disallowed_methods, reason = "it names an instant, and times nothing")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|error| error.to_string())?;
    let at = now + Duration::from_secs(seconds);
    let time = format!("@{}", at.as_secs());
    process::output(Command::new("date").args(["-u", "-d", &time, "+%FT%TZ"]))
        .map(|text| text.trim().to_owned())
}

/// A process that ends with us.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The namespaces, gone when dropped.
struct Networks {
    made: Vec<u32>,
}

impl Networks {
    fn new() -> Result<Self, String> {
        let mut networks = Self { made: Vec::new() };
        let address = format!("{NETWORK}.0.1/32");
        ip(&format!("addr replace {address} dev lo"))?;
        for shard in 0..SHARDS {
            networks.made.push(shard);
            let (outer, inner) = (format!("onbeat{shard}"), format!("onbeat{shard}i"));
            let (gateway, own) = (format!("{NETWORK}.{}.1", shard + 1), shard + 1);
            ip(&format!("netns add {NAME}{shard}"))?;
            ip(&format!("link add {outer} type veth peer name {inner}"))?;
            ip(&format!("link set {inner} netns {NAME}{shard}"))?;
            ip(&format!("addr add {gateway}/30 dev {outer}"))?;
            ip(&format!("link set {outer} up"))?;
            let inside = format!("-n {NAME}{shard}");
            ip(&format!("{inside} addr add {NETWORK}.{own}.2/30 dev {inner}"))?;
            ip(&format!("{inside} link set {inner} up"))?;
            ip(&format!("{inside} link set lo up"))?;
            ip(&format!("{inside} route add default via {gateway}"))?;
        }
        Ok(networks)
    }

    /// A command that runs in a shard's namespace.
    fn inside(&mut self, shard: u32) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &format!("{NAME}{shard}")]);
        command
    }
}

impl Drop for Networks {
    fn drop(&mut self) {
        // What was not made cannot be taken away, and nobody needs to know.
        for shard in &self.made {
            let _ = ip(&format!("link del onbeat{shard}"));
            let _ = ip(&format!("netns del {NAME}{shard}"));
        }
        let _ = ip(&format!("addr del {NETWORK}.0.1/32 dev lo"));
    }
}

fn ip(line: &str) -> Result<(), String> {
    let output = Command::new("ip")
        .args(line.split(' '))
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("ip: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("ip {line}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_twice_or_moved_is_noticed() {
        let line = |request: u32, due: i64, sent: &str| {
            format!(
                "{{\"request\":{request},\"row\":1,\"session\":\"s\",\"turn\":0,\"due_ns\":{due},\
                 \"sent_ns\":{sent}}}\n"
            )
        };
        let plan = [line(0, 5, "null"), line(1, 7, "null")].concat();
        let right = [line(1, 7, "8"), line(0, 5, "6")].concat();
        assert_eq!(compare(&plan, &right), Ok(()));
        for (wrong, words) in [
            (line(0, 5, "6"), "2 requests were planned, 1 are merged"),
            ([line(0, 5, "6"), line(0, 5, "6")].concat(), "twice"),
            ([line(0, 5, "6"), line(2, 7, "8")].concat(), "request 1 is missing"),
            ([line(0, 5, "6"), line(1, 8, "8")].concat(), "due_ns is 8, planned 7"),
            ([line(0, 5, "6"), line(1, 7, "null")].concat(), "never sent"),
        ] {
            assert!(compare(&plan, &wrong).expect_err("wrong").contains(words), "{words}");
        }
    }
}
