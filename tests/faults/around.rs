//! Trouble around the program instead of in its server: a kernel without io_uring, ports that run
//! out, output that is no terminal, a server that goes away and comes back, a disk that stands
//! still. Where a system does not let a test make such trouble, it says so in a line.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;

use onbeat::clock::monotonic_ns;
use onbeat::conductor::Watch;
use onbeat::replayer::Stop;
use onbeat::replayer::counters::Snapshot;
use onbeat_shared::log::Class;
use onbeat_shared::run::Run;
use rustix::process::{Pid, Signal, kill_process};
use tests::hardship::{Noting, Product, disk};
use tests::scripted::{LAST_ANSWER, Scripted, answer, good_stream, request};
use tests::torture::Rack;
use tests::{Scenario, drivers, ends, mooncake};

/// The program under test.
fn product() -> Product {
    let program = env!("CARGO_BIN_EXE_hardship").into();
    Product { program, first: vec!["onbeat".to_owned()] }
}

#[expect(clippy::print_stderr, reason = "a test that is left out says so")]
fn left_out(why: &str) {
    eprintln!("left out: {why}");
}

/// A folder with a trace, and where a log of it goes.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new(trace: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("trace.jsonl"), trace).expect("the folder is writable");
        Self { folder }
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("run.beat")
    }

    /// The words of a replay of the trace.
    fn words(&self, url: &str, more: &[&str]) -> Vec<String> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let (trace, log) = (text(&self.folder.path().join("trace.jsonl")), text(&self.log()));
        let mut words =
            ["replay", &trace, "--url", url, "--output", &log].map(str::to_owned).to_vec();
        words.extend(more.iter().map(|&word| word.to_owned()));
        words
    }

    /// The program with these words, behind others.
    fn command(&self, first: &[&str], url: &str, more: &[&str]) -> Command {
        let words = self.words(url, more);
        let own = product().command(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let Some((program, rest)) = first.split_first() else { return own };
        let mut command = Command::new(program);
        command.args(rest).arg(own.get_program()).args(own.get_args());
        command.env_remove("ONBEAT_URL").env_remove("OPENAI_API_KEY").stdin(Stdio::null());
        command
    }

    /// The log as it is now; `None` when there is none.
    fn run(&self) -> Option<Run> {
        std::fs::read(self.log()).ok().map(|bytes| Run::read(&bytes).expect("it reads"))
    }
}

fn told(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

fn count(run: &Run, class: Class) -> usize {
    (0..run.plan.len()).filter(|&i| run.requests.class(i) == Some(class)).count()
}

/// Requests that a log knows to have left.
fn sent(run: &Run) -> usize {
    (0..run.plan.len()).filter(|&i| run.requests.was_sent(i)).count()
}

#[test]
fn without_io_uring_the_other_driver_is_taken_or_the_wish_refused() {
    if let Err(why) = Rack::new(Path::new(env!("CARGO_BIN_EXE_torture"))) {
        return left_out(&why);
    }
    let server = Noting::start();
    for (driver, error) in
        [("auto", "EPERM"), ("auto", "ENOSYS"), ("auto", "ENOMEM"), ("io_uring", "EPERM")]
    {
        let place = Place::new(&mooncake(3, 5, 10, 2));
        let inject = format!("inject=io_uring_setup:error={error}");
        let trace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=io_uring_setup", "-e"];
        let first = [&trace[..], &[&inject]].concat();
        let output = place.command(&first, &server.url(), &["--driver", driver]).output();
        let output = output.expect("it was there a moment ago");
        let (_, said) = told(&output);
        assert!(
            said.contains("io_uring") && !said.contains("panicked"),
            "{driver} {error}: {said}"
        );
        match (driver, place.run()) {
            ("auto", Some(run)) => {
                assert_eq!((run.manifest.driver.as_str(), count(&run, Class::Ok)), ("epoll", 3));
            }
            ("io_uring", None) => assert_eq!(output.status.code(), Some(1), "{said}"),
            (_, run) => panic!("{driver} {error}: a log {}: {said}", run.is_some()),
        }
    }
}

#[test]
fn ports_that_run_out_are_our_trouble_and_said_first() {
    const REQUESTS: usize = 160;
    let probe = Command::new("unshare").args(["-rn", "ip", "link", "set", "lo", "up"]).output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        return left_out("a network of its own is not allowed here");
    }
    let place = Place::new(&mooncake(REQUESTS, 1, 10, 2));
    // Sixty-four ports; the server keeps each for some seconds. It may not listen yet.
    let lines = "ip link set lo up
        echo '40000 40063' > /proc/sys/net/ipv4/ip_local_port_range || exit 99
        onbeat=$1; shift
        \"$onbeat\" onbeat mock --port 9000 --overhead-ms 4000 >/dev/null 2>&1 & mock=$!
        until \"$onbeat\" \"$@\"; code=$?; [ $code != 1 ]; do sleep 0.2; done
        kill $mock; exit $code";
    let first = ["unshare", "-rn", "sh", "-c", lines, "sh"];
    let mut command = place.command(&first, "http://127.0.0.1:9000", &["--warm-connections", "1"]);
    let output = command.output().expect("it was there a moment ago");
    if output.status.code() == Some(99) {
        return left_out("ports cannot be made few here");
    }
    let (summary, said) = told(&output);
    let run = place.run().unwrap_or_else(|| panic!("no log: {said}"));
    let (ours, ok) = (count(&run, Class::ClientNoPort), count(&run, Class::Ok));
    assert_eq!(ours + ok, REQUESTS, "{ours} without a port, {ok} served: {said}");
    assert!(ours > 0 && ok > 0, "{ours} without a port, {ok} served: {said}");
    assert_eq!(output.status.code(), Some(3), "{said}");
    let start: Vec<&str> = summary.lines().take(6).flat_map(str::split_whitespace).collect();
    let start = start.join(" ");
    assert!(start.contains("found no local port on this side"), "{summary}");
}

#[test]
fn what_goes_into_pipes_is_plain_lines() {
    let server = Noting::start();
    for (terminal, ui) in [("dumb", "auto"), ("xterm-256color", "auto"), ("xterm", "simple")] {
        let place = Place::new(&mooncake(3, 20, 10, 2));
        let mut command = place.command(&[], &server.url(), &["--ui", ui]);
        command.env("TERM", terminal).env("COLUMNS", "40").stdin(Stdio::null());
        let output = command.output().expect("it was compiled");
        let (summary, said) = told(&output);
        assert!(matches!(output.status.code(), Some(0 | 3)), "{said}");
        for (name, text) in [("stdout", &summary), ("stderr", &said)] {
            let control = text.chars().find(|it| it.is_control() && *it != '\n');
            assert_eq!(control, None, "{terminal} {ui} {name}: {text:?}");
        }
        assert!(!summary.trim().is_empty() && summary.ends_with('\n'), "{summary:?}");
    }
}

/// A server that is there, is gone, and is back, by what has been sent until then.
struct Going {
    server: Mutex<Option<Scripted>>,
    address: std::net::SocketAddr,
    /// Requests sent when it went away, and when it came back.
    gone: Option<u64>,
    back: Option<u64>,
}

/// Requests sent before it goes, and while it is away, at least.
const STAY: u64 = 20;

impl Going {
    fn start() -> Self {
        // It closes each connection after its answer, so that nothing holds its port.
        let server = Scripted::start(|_, mut stream| {
            if request(&mut stream).is_some() {
                answer(&mut stream, LAST_ANSWER);
            }
        });
        let address = server.address;
        Self { server: Mutex::new(Some(server)), address, gone: None, back: None }
    }
}

impl Watch for Going {
    fn say(&mut self, _words: &str) {}

    fn look(&mut self, elapsed_ns: i64, _planned: u64, counters: &Snapshot) {
        let own = self.server.get_mut().expect("nobody panics with it");
        match (self.gone, self.back) {
            (None, _) if elapsed_ns > 0 && counters.sent >= STAY => {
                drop(own.take());
                self.gone = Some(counters.ended);
            }
            (Some(gone), None) if counters.ended >= gone + STAY => {
                *own = Some(Scripted::start_at(self.address, |_, mut stream| {
                    while request(&mut stream).is_some() {
                        answer(&mut stream, &good_stream());
                    }
                }));
                self.back = Some(counters.ended);
            }
            _ => {}
        }
    }

    fn stop(&mut self) -> Stop {
        Stop::No
    }
}

#[test]
fn a_server_that_goes_away_and_comes_back_costs_the_requests_of_that_time() {
    const REQUESTS: usize = 300;
    for driver in drivers() {
        let (run, going) = ends(move || {
            let mut going = Going::start();
            let mut scenario = Scenario::new(&mooncake(REQUESTS, 10, 10, 2));
            scenario.config.driver = Some(driver);
            scenario.config.warm_connections = Some(1);
            let (ran, run) = scenario.run_watched(going.address, &mut going);
            ran.expect("the run goes on");
            (run.expect("a log"), going)
        });
        let classes: Vec<_> = (0..REQUESTS).map(|i| run.requests.class(i)).collect();
        assert!(classes.iter().all(Option::is_some) && run.is_whole(), "{classes:?}");
        let (ok, refused) = (count(&run, Class::Ok), count(&run, Class::ConnectRefused));
        // What was under way when it went.
        let broken = REQUESTS - ok - refused;
        assert!(broken < REQUESTS / 4, "{broken} ended otherwise: {classes:?}");
        if going.gone.is_some() && going.back.is_some() {
            assert!(refused > 0, "somebody was refused while it was away: {classes:?}");
        }
        // On a machine that was away itself, everything may have been sent meanwhile.
        if going.back.is_some_and(|back| back < REQUESTS as u64 / 2) {
            assert_eq!(classes[REQUESTS - 1], Some(Class::Ok), "{classes:?}");
        }
        for i in 0..REQUESTS {
            assert!(run.requests.sent(i).is_none_or(|sent| Some(sent) >= run.plan[i].due));
        }
    }
}

/// A process that ends with its test.
struct Running(Child);

impl Running {
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).expect("it is there");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Whoever is stopped is woken up to end; who has ended already is nobody's.
        if self.0.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.signal(Signal::CONT);
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

#[test]
fn requests_leave_while_the_log_s_writer_is_stopped_and_all_are_in_the_log() {
    const REQUESTS: usize = 400;
    if let Err(why) = Rack::new(Path::new(env!("CARGO_BIN_EXE_torture"))) {
        return left_out(&why);
    }
    for driver in drivers() {
        // A test that was away too long to stop the writer in time tries again.
        let mut tries = (0..5).map(|_| stopped_writer(driver.name(), REQUESTS));
        match tries.find(|tried| *tried != Ok(false)) {
            Some(Ok(_)) => {}
            Some(Err(why)) => return left_out(&why),
            None => panic!("{}: the writer was never stopped in time", driver.name()),
        }
    }
}

/// Whether the writer could be stopped before everything was sent; then all that is said of that
/// holds. An error is that it cannot be stopped here.
fn stopped_writer(driver: &str, requests: usize) -> Result<bool, String> {
    let server = Noting::start();
    let place = Place::new(&mooncake(requests, 5, 10, 2));
    let mut command = place.command(&[], &server.url(), &["--driver", driver, "--ui", "none"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut program = Running(command.spawn().expect("it was compiled"));
    patiently("requests", || (server.count() >= 20).then_some(()));
    let tasks = PathBuf::from(format!("/proc/{}/task", program.0.id()));
    let task = patiently("a thread that writes", || writer_of(&tasks));
    let thread = task.file_name().expect("a number").to_string_lossy().into_owned();
    // Of this thread alone every call waits for its tracer, and the tracer is stopped.
    let mut command = Command::new("strace");
    command.args(["-qq", "-o", "/dev/null", "-p", &thread]).stderr(Stdio::null());
    let mut tracer = Running(command.spawn().expect("it was there a moment ago"));
    let status = |line: &str| {
        let text = std::fs::read_to_string(task.join("status")).unwrap_or_default();
        let value = text.lines().find_map(|it| it.strip_prefix(line).map(str::trim_start));
        value.map(str::to_owned)
    };
    let traced = patiently("a tracer", || match status("TracerPid:").as_deref() {
        None => Some(Ok(false)),
        Some("0") if tracer.0.try_wait().is_ok_and(|ended| ended.is_some()) => {
            Some(Err("strace may not attach to a thread here".to_owned()))
        }
        Some("0") => None,
        Some(_) => Some(Ok(true)),
    })?;
    if !traced {
        return Ok(false);
    }
    tracer.signal(Signal::STOP);
    let is_stopped = |it: String| it.starts_with('t');
    patiently("a stop", || match status("State:") {
        None => Some(()),
        Some(state) => is_stopped(state).then_some(()),
    });
    let early = server.count();
    patiently("all requests", || (server.count() == requests).then_some(()));
    let written = sent(&place.run().expect("a log from zero on"));
    tracer.signal(Signal::CONT);
    let code = program.0.wait().expect("it ends").code();
    let run = place.run().expect("a log");
    // Three: it was late, which other programs can make it.
    assert!(matches!(code, Some(0 | 3)), "{code:?}");
    assert!(run.is_whole() && run.losses.is_empty(), "{:?}", run.warnings);
    assert_eq!((sent(&run), count(&run, Class::Ok)), (requests, requests));
    assert_eq!(disk::check_lateness(&run), Ok(()), "{driver}");
    #[expect(clippy::print_stderr, reason = "a figure that is no verdict on a machine")]
    {
        eprintln!("writer stopped, {driver}: {}", disk::lateness_in_words(&run));
    }
    if early < requests {
        assert!(written <= early, "{driver}: {written} were written of {early} while it stood");
    }
    Ok(early < requests)
}

/// The task of the thread that writes the log, if there is one.
fn writer_of(tasks: &Path) -> Option<PathBuf> {
    let tasks = std::fs::read_dir(tasks).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let is_writer = |task: &PathBuf| {
        std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name == "onbeat-writer\n")
    };
    tasks.into_iter().find(is_writer)
}

/// Looks until there is something to be seen, for a minute at most.
fn patiently<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = monotonic_ns();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(monotonic_ns() - begun < 60_000_000_000, "there are no {what}");
        std::thread::yield_now();
    }
}
