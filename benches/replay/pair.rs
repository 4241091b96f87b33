//! One case, run as interleaved pairs of processes, and the processes' own entry points.

use std::io::{BufRead, BufReader, Error, Read, Result, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use onbeat::replayer::affinity;
use onbeat_shared::metrics::quantile::percentile;
use onbeat_shared::run::Run;
use serde_json::{Value, json};

use super::schedule::{self, Shape};
use super::{floor, server};

/// Words of a prompt: with head and JSON a request of about 700 bytes.
const INPUT_TOKENS: usize = 20;
/// How long the server waits for a request before it gives up.
const PATIENCE_NS: i64 = 20_000_000_000;

/// What is measured.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) shape: Shape,
    pub(crate) rate: f64,
    pub(crate) count: usize,
    pub(crate) chunks: usize,
    pub(crate) connections: usize,
    pub(crate) pairs: usize,
    pub(crate) engine_options: Vec<String>,
}

impl Case {
    /// A lateness case; the caller says shape, rate and count.
    pub(crate) fn lateness(pairs: usize) -> Self {
        Self {
            shape: Shape::Constant,
            rate: 1_000.0,
            count: 1_000,
            chunks: 1,
            connections: 256,
            pairs,
            engine_options: vec!["--pacing".to_owned(), "spin".to_owned()],
        }
    }

    pub(crate) fn name(&self) -> String {
        format!("{}-{}", self.shape.name(), self.rate)
    }
}

/// Where cases run.
#[derive(Debug)]
pub(crate) struct Runner {
    engine: PathBuf,
    own: PathBuf,
    folder: tempfile::TempDir,
    server_cpu: u16,
    client_cpu: u16,
}

/// Lateness of arrivals, in nanoseconds, sorted.
struct Arrivals(Vec<f64>);

impl Runner {
    /// `None` where there are not two CPUs.
    pub(crate) fn new(engine: PathBuf) -> Result<Option<Self>> {
        let cpus = affinity::allowed_cpus()?;
        let (Some(&server_cpu), Some(&client_cpu)) = (cpus.first(), cpus.last()) else {
            return Ok(None);
        };
        if server_cpu == client_cpu {
            return Ok(None);
        }
        let own = std::env::current_exe()?;
        Ok(Some(Self { engine, own, folder: tempfile::tempdir()?, server_cpu, client_cpu }))
    }

    /// Runs a case and returns its line.
    pub(crate) fn run(&self, case: &Case) -> Result<Value> {
        let due = schedule::due_times(case.shape, case.rate, case.count, 1);
        let trace = self.folder.path().join("trace.jsonl");
        std::fs::write(&trace, schedule::mooncake(&due, INPUT_TOKENS, case.chunks))?;
        let times: String = due.iter().map(|ns| format!("{ns}\n")).collect();
        let schedule_path = self.folder.path().join("due.txt");
        std::fs::write(&schedule_path, times)?;
        let (mut floors, mut engines) = (Vec::new(), Vec::new());
        for _ in 0..case.pairs {
            floors.push(self.floor(case, &due, &schedule_path)?);
            engines.push(self.engine(case, &due, &trace)?);
        }
        let side = |runs: &[Arrivals], share: f64| -> Vec<f64> {
            runs.iter().filter_map(|run| percentile(&run.0, share)).collect()
        };
        let mut line = json!({
            "bench": "replay",
            "case": case.name(),
            "requests": case.count,
            "pairs": case.pairs,
            "engine_options": case.engine_options,
        });
        for (name, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)] {
            let (floor, engine) = (side(&floors, share), side(&engines, share));
            let ratios: Vec<f64> = engine.iter().zip(&floor).map(|(e, f)| e / f).collect();
            line[format!("floor_{name}_us")] = json!(median(&floor).map(micros));
            line[format!("onbeat_{name}_us")] = json!(median(&engine).map(micros));
            line[format!("ratio_{name}")] =
                json!(median(&ratios).map(|ratio| (ratio * 1e3).round() / 1e3));
        }
        Ok(line)
    }

    fn server(&self, case: &Case) -> Result<(Child, BufReader<std::process::ChildStdout>, String)> {
        let mut child = Command::new(&self.own)
            .arg("server")
            .args([self.server_cpu.to_string(), case.count.to_string(), case.chunks.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().ok_or_else(|| Error::other("no pipe"))?;
        let mut reader = BufReader::new(stdout);
        let mut address = String::new();
        reader.read_line(&mut address)?;
        Ok((child, reader, address.trim().to_owned()))
    }

    fn floor(&self, case: &Case, due: &[i64], schedule: &Path) -> Result<Arrivals> {
        let (server, reader, address) = self.server(case)?;
        let output = Command::new(&self.own)
            .arg("floor")
            .args([&self.client_cpu.to_string(), &address])
            .arg(schedule)
            .args([
                case.connections.to_string(),
                body_bytes(case).to_string(),
                server::answer(case.chunks).len().to_string(),
            ])
            .output()?;
        if !output.status.success() {
            return Err(Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        let own: Value = serde_json::from_slice(&output.stdout)?;
        let zero_ns = own["zero_ns"].as_i64().ok_or_else(|| Error::other("no zero"))?;
        arrivals(server, reader, due, zero_ns)
    }

    fn engine(&self, case: &Case, due: &[i64], trace: &Path) -> Result<Arrivals> {
        let (server, reader, address) = self.server(case)?;
        let log = self.folder.path().join("run.beat");
        let output = Command::new(&self.engine)
            .args(["replay", "--force", "--no-include-usage", "--url", &address, "--output"])
            .arg(&log)
            .args(["--cores", &format!("{},", self.client_cpu)])
            .args(["--warm-connections", &case.connections.to_string()])
            .args(&case.engine_options)
            .arg(trace)
            .stdin(Stdio::null())
            .output()?;
        // 3: the schedule did not hold, which is what is being measured.
        if !matches!(output.status.code(), Some(0 | 3)) {
            return Err(Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        let run = Run::read(&std::fs::read(&log)?).map_err(Error::other)?;
        let zero = run.anchors.iter().find(|anchor| anchor.time.0 == 0);
        let zero_ns =
            zero.and_then(|zero| zero.monotonic_ns).ok_or_else(|| Error::other("no zero"))?;
        arrivals(server, reader, due, zero_ns.cast_signed())
    }
}

/// Waits for the server and turns what it saw into lateness.
fn arrivals(
    mut server: Child,
    mut reader: BufReader<std::process::ChildStdout>,
    due: &[i64],
    zero_ns: i64,
) -> Result<Arrivals> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes)?;
    server.wait()?;
    let mut late = Vec::with_capacity(due.len());
    for record in bytes.chunks_exact(12) {
        let number = u32::from_le_bytes([record[0], record[1], record[2], record[3]]) as usize;
        let mut arrived = [0; 8];
        arrived.copy_from_slice(&record[4..]);
        let due_ns = due.get(number).ok_or_else(|| Error::other("an unknown request"))?;
        late.push((i64::from_le_bytes(arrived) - zero_ns - due_ns) as f64);
    }
    if late.len() != due.len() {
        return Err(Error::other(format!("{} of {} requests arrived", late.len(), due.len())));
    }
    late.sort_by(f64::total_cmp);
    Ok(Arrivals(late))
}

/// Bytes of the body Onbeat sends for this case, near enough.
fn body_bytes(case: &Case) -> usize {
    180 + INPUT_TOKENS * 5 + case.chunks.to_string().len()
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    percentile(&sorted, 0.5)
}

fn micros(ns: f64) -> f64 {
    (ns / 10.0).round() / 100.0
}

/// `server CPU EXPECT CHUNKS`: prints its address, serves, then writes what it saw.
pub(crate) fn server_process(arguments: &[String]) -> Result<()> {
    let number = |place: usize| -> Result<usize> {
        arguments.get(place).and_then(|text| text.parse().ok()).ok_or_else(|| Error::other("usage"))
    };
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    println!("{}", listener.local_addr()?);
    affinity::pin(u16::try_from(number(0)?).map_err(Error::other)?)?;
    let task = server::Task { expect: number(1)?, chunks: number(2)?, patience_ns: PATIENCE_NS };
    let seen = server::serve(&listener, &task)?;
    let mut out = std::io::stdout().lock();
    for (request, arrived_ns) in seen {
        out.write_all(&request.to_le_bytes())?;
        out.write_all(&arrived_ns.to_le_bytes())?;
    }
    out.flush()
}

/// `floor CPU ADDRESS SCHEDULE CONNECTIONS BODY ANSWER`: sends, then prints its zero.
pub(crate) fn floor_process(arguments: &[String]) -> Result<()> {
    let [cpu, address, schedule, connections, body, answer] = arguments else {
        return Err(Error::other("usage"));
    };
    let address: SocketAddr = address.parse().map_err(Error::other)?;
    let due: Vec<i64> = std::fs::read_to_string(schedule)?
        .lines()
        .map(|line| line.parse().map_err(Error::other))
        .collect::<Result<_>>()?;
    affinity::pin(cpu.parse().map_err(Error::other)?)?;
    let task = floor::Task {
        address,
        connections: connections.parse().map_err(Error::other)?,
        body_bytes: body.parse().map_err(Error::other)?,
        answer_bytes: answer.parse().map_err(Error::other)?,
    };
    let floor = floor::run(&task, &due)?;
    // Its own lateness beside what the server sees: the difference is the way there.
    let mut late: Vec<f64> =
        floor.sent_ns.iter().zip(&due).map(|(sent, due)| (sent - due) as f64).collect();
    late.sort_by(f64::total_cmp);
    let own = json!({
        "zero_ns": floor.zero_ns,
        "sent_p50_us": percentile(&late, 0.5).map(micros),
        "sent_p99_us": percentile(&late, 0.99).map(micros),
        "sent_end_ns": floor.sent_end_ns,
        "end_ns": floor.end_ns,
    });
    println!("{own}");
    Ok(())
}
