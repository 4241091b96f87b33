//! Loading a Baseten trace, against a bare scan of the same columns with the same crate.
//!
//! A million rows with prompts of 4 KB, packed in two ways and plain. A load is what a replay does
//! before it renders: every row is read, every prompt checked and unpacked, or found in the file
//! where it is not packed; the file's digest is begun and not waited for, because a replay goes on
//! with it beside the run. Each scan and each load is a process of its own, in turn, so that each
//! has memory of its own whose peak can be read; the file is in the page cache. The ratio is of the
//! medians of wall time; that of CPU time is told beside it, whole and of what the programs
//! themselves do. The rest is the kernel's: a load keeps its prompts in memory that a scan does
//! not need, and what a page of that costs is for the host of a virtual machine to say.

use std::io::{Error, Result};
use std::path::Path;
use std::process::Command;

use benches::Bencher;
use benches::cpu::outside_kernel_ns;
use benches::memory::high_water;
use onbeat::clock::monotonic_ns;
use onbeat::trace::{self, TraceOptions};
use parquet::basic::{Compression, ZstdLevel};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use crate::columns::{self, COLUMNS, Layout, PROMPT_BYTES};

const ROWS: u64 = 1_000_000;
const GROUP_ROWS: usize = 65_536;
/// Pairs of a scan and a load; odd, so that the median is one of them.
const ROUNDS: usize = 5;
/// How a child process is told to be one.
const CHILD: &str = "--child";

/// Compares in files of three layouts.
pub(crate) fn bench(bencher: &Bencher, folder: &Path) -> Result<()> {
    let layout = |codec| Layout { rows: bencher.pick(2_000, ROWS), group_rows: GROUP_ROWS, codec };
    let packed = Compression::ZSTD(ZstdLevel::default());
    compare(bencher, folder, "load_baseten_zstd", layout(packed))?;
    compare(bencher, folder, "load_baseten_snappy", layout(Compression::SNAPPY))?;
    compare(bencher, folder, "load_baseten_plain", layout(Compression::UNCOMPRESSED))
}

/// What a child process is asked to do: `--child scan|load FILE`.
pub(crate) fn child(arguments: &[String]) -> Option<Result<()>> {
    let [flag, what, path] = arguments else { return None };
    (flag == CHILD).then(|| {
        let path = Path::new(path);
        let begun_ns = monotonic_ns();
        let (rows, bytes) = match what.as_str() {
            "scan" => (columns::scan(path)?, None),
            _ => load(path).map(|(rows, bytes)| (rows, Some(bytes)))?,
        };
        let wall_ns = monotonic_ns() - begun_ns;
        #[expect(
            clippy::disallowed_methods,
            reason = "the whole process's time on CPUs, not a time"
        )]
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let peak = high_water(std::process::id());
        let line = json!({
            "rows": rows,
            "text_bytes": bytes,
            "wall_ns": wall_ns,
            "cpu_ns": cpu.tv_sec * 1_000_000_000 + cpu.tv_nsec,
            "user_ns": outside_kernel_ns(),
            "peak_bytes": peak,
        });
        println!("{line}");
        Ok(())
    })
}

/// Loads as a replay does; gives the rows and the bytes of text there are.
fn load(path: &Path) -> Result<(u64, u64)> {
    let options = TraceOptions { prompts_follow: true, ..TraceOptions::default() };
    let digesting = trace::Digesting::start(path, &options).map_err(Error::other)?;
    let mut trace = trace::load(path, &options).map_err(Error::other)?;
    trace::load_prompts(path, &mut trace, &|_| true, u64::MAX).map_err(Error::other)?;
    if !(digesting.is_open() && trace.source.sha256.is_empty()) {
        return Err(Error::other("the digest is computed beside"));
    }
    let (rows, bytes) = (trace.records.len() as u64, trace.recorded.texts.bytes());
    // Giving memory back is no part of it, and the process ends in a moment.
    std::mem::forget((trace, digesting));
    Ok((rows, bytes))
}

fn compare(bencher: &Bencher, folder: &Path, name: &str, layout: Layout) -> Result<()> {
    if !bencher.wants(name) {
        return Ok(());
    }
    let path = folder.join("trace.parquet");
    columns::write(&path, layout)?;
    let rounds = bencher.pick(1, ROUNDS);
    let (mut scans, mut loads) = (Vec::new(), Vec::new());
    // The first round reads the file into memory and is not counted.
    for round in 0..=rounds {
        let pair = (run("scan", &path)?, run("load", &path)?);
        if [&pair.0, &pair.1].iter().any(|done| done["rows"] != layout.rows) {
            return Err(Error::other(format!("{name}: not every row was read")));
        }
        if round > 0 {
            scans.push(pair.0);
            loads.push(pair.1);
        }
    }
    let mut line = json!({
        "bench": "startup",
        "case": name,
        "command": format!("cargo bench -p benches --bench startup -- --exact {name}"),
        "size": bencher.pick("small", "real"),
        "rows": layout.rows,
        "scanned": COLUMNS[..COLUMNS.len() - 1],
        "codec": layout.codec.to_string(),
        "group_rows": layout.group_rows,
        "file_bytes": path.metadata()?.len(),
        "prompt_bytes": layout.rows * PROMPT_BYTES as u64,
        "text_bytes": loads[0]["text_bytes"],
        "rounds": rounds,
    });
    if bencher.pick(false, true) {
        measured(&mut line, &scans, &loads);
    }
    bencher.say(&line);
    std::fs::remove_file(&path)
}

fn measured(line: &mut Value, scans: &[Value], loads: &[Value]) {
    for key in ["wall", "cpu", "user"] {
        let median = |found: &[Value]| {
            let times = found.iter().filter_map(|one| one[format!("{key}_ns")].as_i64());
            let mut times: Vec<i64> = times.collect();
            times.sort_unstable();
            times.get(times.len() / 2).copied()
        };
        let (Some(scan), Some(load)) = (median(scans), median(loads)) else { continue };
        line[format!("scan_{key}_ms")] = json!(crate::millis(scan));
        line[format!("load_{key}_ms")] = json!(crate::millis(load));
        line[format!("ratio_{key}")] = json!((load as f64 / scan as f64 * 1e3).round() / 1e3);
    }
    let peak = |found: &[Value]| found.iter().filter_map(|one| one["peak_bytes"].as_u64()).max();
    let mib = |bytes: u64| bytes / (1 << 20);
    line["scan_peak_mib"] = json!(peak(scans).map(mib));
    line["load_peak_mib"] = json!(peak(loads).map(mib));
    let prompts = line["prompt_bytes"].as_u64().unwrap_or(0);
    line["load_peak_over_prompts_mib"] =
        json!(peak(loads).map(|peak| mib(peak.saturating_sub(prompts))));
}

/// One scan or load in a process of its own.
fn run(what: &str, path: &Path) -> Result<Value> {
    let output = Command::new(std::env::current_exe()?).args([CHILD, what]).arg(path).output()?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(Error::other(format!("{what} ended with {}: {words}", output.status)));
    }
    serde_json::from_slice(&output.stdout).map_err(Error::other)
}
