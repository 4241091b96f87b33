//! One case, run as interleaved pairs of processes, and the processes' own entry points.

use std::io::{BufRead, BufReader, Error, Read, Result, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use onbeat::replayer::affinity;
use onbeat_shared::metrics::lateness::lateness_ns;
use onbeat_shared::metrics::quantile::percentile;
use onbeat_shared::run::Run;
use serde_json::{Value, json};

use super::case::{Case, Kind};
use super::schedule;
use super::{floor, server};

/// How long the server waits for a request before it gives up.
const PATIENCE_NS: i64 = 20_000_000_000;

/// Where cases run.
#[derive(Debug)]
pub(crate) struct Runner {
    engine: PathBuf,
    own: PathBuf,
    folder: tempfile::TempDir,
    server_cpu: u16,
    client_cpu: u16,
}

/// What one side of a pair showed. Times in nanoseconds from zero.
#[derive(Debug)]
struct Side {
    /// Lateness of arrivals as the server saw them, sorted.
    arrivals: Vec<f64>,
    /// Its own lateness, sorted.
    lateness: Vec<f64>,
    /// When the kernel had taken the last byte of the last request.
    sent_end_ns: f64,
    /// When the last byte of the last answer was read.
    end_ns: f64,
}

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
        let mut line = json!({
            "bench": "replay",
            "case": case.name(),
            "requests": case.count,
            "body_bytes": case.body_bytes(),
            "pairs": case.pairs,
            "engine_options": case.engine_options,
        });
        match case.kind {
            Kind::Lateness => self.lateness(case, &mut line)?,
            Kind::Burst | Kind::Streams => self.spans(case, &mut line)?,
            Kind::Rate => self.rate(case, &mut line)?,
        }
        Ok(line)
    }

    fn lateness(&self, case: &Case, line: &mut Value) -> Result<()> {
        let (floors, engines) = self.pairs(case)?;
        for (name, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)] {
            let of = |sides: &[Side]| -> Vec<f64> {
                sides.iter().filter_map(|side| percentile(&side.arrivals, share)).collect()
            };
            compare(line, &format!("arrival_{name}_us"), 1e3, &of(&floors), &of(&engines));
        }
        Ok(())
    }

    /// How long the whole thing took: until the last byte had left, or until the last had come.
    fn spans(&self, case: &Case, line: &mut Value) -> Result<()> {
        let (floors, engines) = self.pairs(case)?;
        let of = |sides: &[Side]| -> Vec<f64> {
            let span = |side: &Side| match case.kind {
                Kind::Burst => side.sent_end_ns,
                _ => side.end_ns,
            };
            sides.iter().map(span).collect()
        };
        let name = if case.kind == Kind::Burst { "last_byte_left_us" } else { "all_read_us" };
        compare(line, name, 1e3, &of(&floors), &of(&engines));
        if case.kind == Kind::Streams {
            let chunks = (case.count * case.chunks) as f64;
            let rate = |sides: &[Side]| median(&of(sides)).map(|ns| (chunks / ns * 1e9).round());
            line["floor_chunks_per_s"] = json!(rate(&floors));
            line["onbeat_chunks_per_s"] = json!(rate(&engines));
        }
        Ok(())
    }

    /// The highest rate that each side holds: its own p90 lateness under a millisecond and the last
    /// request out within a hundredth of the schedule. Rates grow by a tenth; both sides run at
    /// each rate in turn until neither holds twice in a row.
    fn rate(&self, case: &Case, line: &mut Value) -> Result<()> {
        let mut rate = case.rate;
        let mut held = [0.0_f64; 2];
        let mut misses = [0; 2];
        while misses.iter().any(|&misses| misses < 2) {
            #[expect(clippy::cast_possible_truncation, reason = "a few hundred thousand at most")]
            #[expect(clippy::cast_sign_loss, reason = "a rate is positive")]
            let count = ((rate * case.seconds) as usize).max(50);
            let step = Case { rate, count, pairs: 1, ..case.clone() };
            let (floors, engines) = self.pairs(&step)?;
            let last_due_ns = (count - 1) as f64 / rate * 1e9;
            for (side, found) in [&floors[0], &engines[0]].into_iter().enumerate() {
                let p90 = percentile(&found.lateness, 0.9).unwrap_or(f64::INFINITY);
                if p90 < 1e6 && found.sent_end_ns < last_due_ns * 1.01 + 1e6 {
                    held[side] = rate;
                    misses[side] = 0;
                } else {
                    misses[side] += 1;
                }
            }
            rate *= 1.1;
        }
        line["floor_highest_per_s"] = json!(held[0].round());
        line["onbeat_highest_per_s"] = json!(held[1].round());
        line["ratio_highest"] = json!(thousandths(held[1] / held[0]));
        Ok(())
    }

    /// Floor and Onbeat in turn, on one schedule.
    fn pairs(&self, case: &Case) -> Result<(Vec<Side>, Vec<Side>)> {
        let due = schedule::due_times(case.shape, case.rate, case.count, 1);
        let trace = self.folder.path().join("trace.jsonl");
        std::fs::write(&trace, schedule::mooncake(&due, case.input_tokens, case.chunks))?;
        let times: String = due.iter().map(|ns| format!("{ns}\n")).collect();
        let schedule_path = self.folder.path().join("due.txt");
        std::fs::write(&schedule_path, times)?;
        let (mut floors, mut engines) = (Vec::new(), Vec::new());
        for _ in 0..case.pairs {
            floors.push(self.floor(case, &due, &schedule_path)?);
            engines.push(self.engine(case, &due, &trace)?);
        }
        Ok((floors, engines))
    }

    fn server(&self, case: &Case) -> Result<(Child, BufReader<ChildStdout>, String)> {
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

    fn floor(&self, case: &Case, due: &[i64], schedule: &Path) -> Result<Side> {
        let (server, reader, address) = self.server(case)?;
        let output = Command::new(&self.own)
            .arg("floor")
            .args([&self.client_cpu.to_string(), &address])
            .arg(schedule)
            .args([
                case.connections.to_string(),
                case.body_bytes().to_string(),
                server::answer(case.chunks).len().to_string(),
            ])
            .output()?;
        if !output.status.success() {
            return Err(Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        let own: Value = serde_json::from_slice(&output.stdout)?;
        let number = |key: &str| own[key].as_i64().ok_or_else(|| Error::other("no number"));
        let lateness: Vec<f64> = serde_json::from_value(own["lateness_ns"].clone())?;
        Ok(Side {
            arrivals: arrivals(server, reader, due, number("zero_ns")?)?,
            lateness,
            sent_end_ns: number("sent_end_ns")? as f64,
            end_ns: number("end_ns")? as f64,
        })
    }

    fn engine(&self, case: &Case, due: &[i64], trace: &Path) -> Result<Side> {
        let (server, reader, address) = self.server(case)?;
        let log = self.folder.path().join("run.beat");
        let output = Command::new(&self.engine)
            .args(["replay", "--force", "--no-include-usage", "--url", &address, "--output"])
            .arg(&log)
            .args(["--cores", &format!("{},", self.client_cpu)])
            .args(["--warm-connections", &case.connections.to_string()])
            .args(["--max-connections", &case.connections.to_string()])
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
        let all = 0..run.plan.len();
        let mut lateness: Vec<f64> =
            all.clone().filter_map(|i| lateness_ns(&run, i)).map(|ns| ns as f64).collect();
        lateness.sort_by(f64::total_cmp);
        let last = |times: &mut dyn Iterator<Item = i64>| times.max().unwrap_or(0) as f64;
        let requests = &run.requests;
        Ok(Side {
            arrivals: arrivals(server, reader, due, zero_ns.cast_signed())?,
            lateness,
            sent_end_ns: last(&mut all.clone().filter_map(|i| Some(requests.sent_end(i)?.0))),
            end_ns: last(&mut all.filter_map(|i| Some(requests.done(i)?.0))),
        })
    }
}

/// Writes both medians and the median of the pairs' ratios.
fn compare(line: &mut Value, name: &str, unit: f64, floor: &[f64], engine: &[f64]) {
    let shown = |values: &[f64]| median(values).map(|value| (value / unit * 100.0).round() / 100.0);
    let ratios: Vec<f64> = engine.iter().zip(floor).map(|(engine, floor)| engine / floor).collect();
    line[format!("floor_{name}")] = json!(shown(floor));
    line[format!("onbeat_{name}")] = json!(shown(engine));
    line[format!("ratio_{name}")] = json!(median(&ratios).map(thousandths));
}

/// Waits for the server and turns what it saw into lateness.
fn arrivals(
    mut server: Child,
    mut reader: BufReader<ChildStdout>,
    due: &[i64],
    zero_ns: i64,
) -> Result<Vec<f64>> {
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
    Ok(late)
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    percentile(&sorted, 0.5)
}

fn thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
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

/// `floor CPU ADDRESS SCHEDULE CONNECTIONS BODY ANSWER`: sends, then prints what it saw.
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
    let mut lateness: Vec<f64> =
        floor.sent_ns.iter().zip(&due).map(|(sent, due)| (sent - due) as f64).collect();
    lateness.sort_by(f64::total_cmp);
    let own = json!({
        "zero_ns": floor.zero_ns,
        "sent_end_ns": floor.sent_end_ns,
        "end_ns": floor.end_ns,
        "lateness_ns": lateness,
    });
    println!("{own}");
    Ok(())
}
