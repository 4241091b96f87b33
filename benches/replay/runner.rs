//! Runs the processes of a case: a server for each turn, and whoever sends.
//!
//! Every turn is a fresh server, pinned to the first CPU, and a fresh client, pinned to the last.
//! What comes back is a [`Side`]; comparing is [`super::measure`]'s.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Error, Read, Result, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

use benches::memory::Watched;
use onbeat::clock::monotonic_ns;
use onbeat::replayer::affinity;
use onbeat_shared::run::Run;

use super::case::{Case, Kind, Party, Program, Traffic};
use super::side::Side;
use super::{processes, schedule, server};

/// What a script of a peer ends with when the peer is not installed.
const NOT_INSTALLED: i32 = 77;
/// How long a disk that hangs does so, in microseconds.
const HANG_US: u64 = 2_500_000;
/// Name of the thread that writes the log.
const WRITER: &str = "onbeat-writer";

/// Where cases run.
#[derive(Debug)]
pub(crate) struct Runner {
    pub(crate) engine: PathBuf,
    pub(crate) base: Option<PathBuf>,
    own: PathBuf,
    folder: tempfile::TempDir,
    server_cpu: u16,
    client_cpu: u16,
}

/// One party's schedule on disk.
struct Sheet {
    /// Due times of the schedule, without the openings of streams before it.
    due: Vec<i64>,
    trace: PathBuf,
    times: PathBuf,
}

/// The server of one turn.
struct Server {
    child: Child,
    /// What it writes: its address, and in the end what it saw.
    words: BufReader<ChildStdout>,
    address: String,
}

/// What a turn came to.
pub(crate) enum Turn {
    Ran(Box<Side>),
    /// It cannot run here, because.
    Skipped(String),
}

impl Runner {
    /// `None` where there are not two CPUs.
    pub(crate) fn new(engine: PathBuf, base: Option<PathBuf>) -> Result<Option<Self>> {
        let cpus = affinity::allowed_cpus()?;
        let (Some(&server_cpu), Some(&client_cpu)) = (cpus.first(), cpus.last()) else {
            return Ok(None);
        };
        if server_cpu == client_cpu {
            return Ok(None);
        }
        let (own, folder) = (std::env::current_exe()?, tempfile::tempdir()?);
        Ok(Some(Self { engine, base, own, folder, server_cpu, client_cpu }))
    }

    /// One party sends the case's schedule once.
    pub(crate) fn turn(&self, case: &Case, party: &Party) -> Result<Turn> {
        let sheet = self.sheet(case, party)?;
        let server = self.server(case, party)?;
        match &party.program {
            Program::Floor => self.floor(case, &sheet, server),
            Program::Engine | Program::Base => self.engine(case, party, &sheet, server),
            Program::Peer(name) => self.peer(name, case, &sheet, server),
        }
    }

    /// Writes a party's schedule for both kinds of readers.
    fn sheet(&self, case: &Case, party: &Party) -> Result<Sheet> {
        let mut due = schedule::due_times(case.shape, case.rate, case.count, 1);
        let mut all = Vec::new();
        if let Some(traffic) = &party.traffic {
            all = schedule::due_times(
                schedule::Shape::Constant,
                traffic.openings_per_s,
                traffic.streams,
                1,
            );
            due.iter_mut().for_each(|due| *due += traffic.lead_ns());
        }
        all.extend(&due);
        let (trace, times) =
            (self.folder.path().join("trace.jsonl"), self.folder.path().join("due.txt"));
        std::fs::write(
            &trace,
            schedule::mooncake(&all, case.input_tokens, case.chunks, case.own_prompts),
        )?;
        let mut text = String::new();
        for due in &due {
            let _ = writeln!(text, "{due}");
        }
        std::fs::write(&times, text)?;
        Ok(Sheet { due, trace, times })
    }

    fn server(&self, case: &Case, party: &Party) -> Result<Server> {
        let mut command = Command::new(&self.own);
        command
            .args(["server", "--cpu", &self.server_cpu.to_string()])
            .args(["--chunks", &case.chunks.to_string()]);
        if let Some(traffic) = &party.traffic {
            command
                .args(["--hold", &traffic.streams.to_string()])
                .args(["--events", &traffic.events.to_string()])
                .args(["--text", &traffic.text.to_string()])
                .args(["--pushes-per-s", &traffic.pushes_per_s.to_string()]);
        }
        if matches!(party.program, Program::Peer(_)) {
            // It takes long to start, and may send more than the schedule.
            command.args(["--expect", &u32::MAX.to_string(), "--patience-s", "600"]);
        } else {
            command.args(["--expect", &case.count.to_string()]);
        }
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().ok_or_else(|| Error::other("no pipe"))?;
        let mut words = BufReader::new(stdout);
        let mut address = String::new();
        words.read_line(&mut address)?;
        Ok(Server { child, words, address: address.trim().to_owned() })
    }

    fn floor(&self, case: &Case, sheet: &Sheet, server: Server) -> Result<Turn> {
        let output = Command::new(&self.own)
            .args(["floor", "--cpu", &self.client_cpu.to_string(), "--address", &server.address])
            .arg("--schedule")
            .arg(&sheet.times)
            .args(["--connections", &case.connections.to_string()])
            .args(["--body-bytes", &case.body_bytes().to_string()])
            .args(["--answer-bytes", &server::answer(case.chunks).len().to_string()])
            .output()?;
        let ended_well = output.status.success();
        let seen = server.finish(ended_well)?;
        refuse(&output, ended_well)?;
        let floor = processes::read_floor(&output.stdout)?;
        Ok(Turn::Ran(Box::new(Side::of_floor(&floor, &sheet.due, seen)?)))
    }

    fn engine(&self, case: &Case, party: &Party, sheet: &Sheet, server: Server) -> Result<Turn> {
        let log = self.folder.path().join("run.beat");
        let mut command = self.replay(case, party, sheet, &server.address, &log)?;
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = child.spawn()?;
        let stopped = match case.kind {
            Kind::Stall => Some(stop_for_a_while(child.id())?),
            _ => None,
        };
        let watched = match case.kind {
            Kind::RenderAhead => Some(Watched::begin(child.id())?),
            _ => None,
        };
        let mut tracer = None;
        if party.disk_hangs {
            let lead_ns = party.traffic.as_ref().map_or(0, Traffic::lead_ns);
            tracer = Some(hang_writer(child.id(), Duration::from_nanos(lead_ns.unsigned_abs()))?);
        }
        let output = child.wait_with_output()?;
        let peak_bytes = watched.map_or(Ok(None), Watched::end)?;
        if let Some(mut tracer) = tracer {
            // It ends with what it traces.
            tracer.wait()?;
        }
        // 3: the schedule did not hold, which is what is being measured.
        let ended_well = matches!(output.status.code(), Some(0 | 3));
        let seen = server.finish(ended_well)?;
        refuse(&output, ended_well)?;
        let run = Run::read(&std::fs::read(&log)?).map_err(Error::other)?;
        let zero = run.anchors.iter().find(|anchor| anchor.time.0 == 0);
        let zero_ns =
            zero.and_then(|zero| zero.monotonic_ns).ok_or_else(|| Error::other("no zero"))?;
        let zero_ns = zero_ns.cast_signed();
        let mut side = Side::of_run(&run, zero_ns, &sheet.due, seen)?;
        side.peak_bytes = peak_bytes;
        side.stopped = stopped.map(|(from, to)| (from - zero_ns, to - zero_ns));
        Ok(Turn::Ran(Box::new(side)))
    }

    /// The command of a replay.
    fn replay(
        &self,
        case: &Case,
        party: &Party,
        sheet: &Sheet,
        address: &str,
        log: &Path,
    ) -> Result<Command> {
        let binary = match party.program {
            Program::Base => self.base.as_ref().ok_or_else(|| Error::other("no base"))?,
            _ => &self.engine,
        };
        let connections = (case.connections + party.streams()).to_string();
        let mut command = Command::new(binary);
        command
            .args(["replay", "--force", "--no-include-usage", "--url", address, "--output"])
            .arg(log)
            .args(["--cores", &format!("{},", self.client_cpu)])
            .args(["--warm-connections", &connections, "--max-connections", &connections])
            .args(&party.options)
            .arg(&sheet.trace);
        Ok(if party.on_terminal { on_terminal(&command) } else { command })
    }

    fn peer(&self, name: &str, case: &Case, sheet: &Sheet, server: Server) -> Result<Turn> {
        let script = peers_folder().join(format!("{name}.sh"));
        let output = Command::new("bash")
            .arg(script)
            .arg(format!("http://{}", server.address))
            .arg(&sheet.trace)
            .args([case.rate.to_string(), case.count.to_string()])
            .args([case.input_tokens.to_string(), case.chunks.to_string()])
            .arg(self.folder.path().join(name))
            .stdin(Stdio::null())
            .output()?;
        let ended_well = output.status.success();
        if ended_well {
            server.end()?;
        }
        let seen = server.finish(ended_well)?;
        if output.status.code() == Some(NOT_INSTALLED) {
            let words = String::from_utf8_lossy(&output.stdout);
            let words = words.trim();
            return Ok(Turn::Skipped(words.strip_prefix("skipped: ").unwrap_or(words).to_owned()));
        }
        refuse(&output, ended_well)?;
        Ok(Turn::Ran(Box::new(Side::of_stamps(seen, &sheet.due)?)))
    }

    /// Name and version of a peer that ran, as its script noted them.
    pub(crate) fn peer_version(&self, name: &str) -> Result<String> {
        let text = std::fs::read_to_string(self.folder.path().join(name).join("version"))?;
        Ok(text.trim().to_owned())
    }
}

impl Server {
    /// Tells a server of which it is not known how much it will be sent that this was all.
    fn end(&self) -> Result<()> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.write_all(b"DELETE / HTTP/1.1\r\nHost: bench\r\n\r\n")
    }

    /// Waits for it and reads what it saw; ends it when its client failed.
    fn finish(mut self, client_ended_well: bool) -> Result<server::Seen> {
        if !client_ended_well {
            self.child.kill()?;
        }
        let mut bytes = Vec::new();
        self.words.read_to_end(&mut bytes)?;
        self.child.wait()?;
        if client_ended_well { server::read_seen(&bytes) } else { Ok(server::Seen::default()) }
    }
}

/// Where the scripts of peers are.
fn peers_folder() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR");
    package.map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from).join("peers")
}

fn refuse(output: &Output, ended_well: bool) -> Result<()> {
    if ended_well {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    Err(Error::other(format!("a client ended with {}: {}", output.status, words.trim())))
}

/// The same command with a terminal as its standard streams, made by util-linux's `script`.
fn on_terminal(command: &Command) -> Command {
    let quoted = |word: &std::ffi::OsStr| format!("'{}'", word.to_string_lossy());
    let words: Vec<String> =
        std::iter::once(command.get_program()).chain(command.get_args()).map(quoted).collect();
    let mut script = Command::new("script");
    script.args(["-qfec", &words.join(" "), "/dev/null"]).env("TERM", "xterm");
    script
}

/// Stops a process for 20 ms, some time into its run; gives from when and until when.
fn stop_for_a_while(process: u32) -> Result<(i64, i64)> {
    use rustix::process::{Pid, Signal, kill_process};
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| Error::other("no process"))?;
    wait(Duration::from_millis(900));
    kill_process(pid, Signal::STOP)?;
    let from_ns = monotonic_ns();
    wait(Duration::from_millis(20));
    let to_ns = monotonic_ns();
    kill_process(pid, Signal::CONT)?;
    Ok((from_ns, to_ns))
}

/// Makes the log's next write take as long as a disk that hangs, once the schedule has begun: a
/// tracer holds the writing thread, and no other, at the entrance of its system call.
fn hang_writer(process: u32, lead: Duration) -> Result<Child> {
    let mut writer = None;
    for _ in 0..2_000 {
        writer = thread_of(process, WRITER);
        if writer.is_some() {
            break;
        }
        wait(Duration::from_millis(2));
    }
    let writer = writer.ok_or_else(|| Error::other("no thread writes the log"))?;
    wait(lead + Duration::from_millis(200));
    let inject = format!("inject=write:delay_enter={HANG_US}:when=1");
    Command::new("strace")
        .args(["-qq", "-o", "/dev/null", "-e", "trace=write", "-e", &inject, "-p", &writer])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// The number of a process's thread of this name.
fn thread_of(process: u32, name: &str) -> Option<String> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).ok()?;
    tasks.flatten().find_map(|task| {
        let found = std::fs::read_to_string(task.path().join("comm")).ok()?;
        (found.trim() == name).then(|| task.file_name().to_string_lossy().into_owned())
    })
}

#[expect(clippy::disallowed_methods, reason = "nothing is timed in this process")]
fn wait(time: Duration) {
    std::thread::sleep(time);
}
