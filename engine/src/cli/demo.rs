//! `onbeat demo`: the main job in one command, without a server, a trace or an option.
//!
//! It starts the mock, replays the bundled trace against it, writes `demo.beat`, prints the summary
//! and says how to look at the run. Nothing leaves this machine, and only the log stays.

use std::io::Write;
use std::path::PathBuf;

use serde_json::json;

use crate::cli::flags::gate::GateFlags;
use crate::cli::flags::run::FAILED_SHARE_MAX;
use crate::cli::flags::target::DriverFlag;
use crate::cli::progress::{Terminal, Ui};
use crate::cli::replay::{Conclusion, conclude};
use crate::cli::report::{GoalFlags, SliceFlags};
use crate::cli::{inputs, printing};
use crate::clock::unix_ns;
use crate::clock_state::{MAX_ERROR_NS, Trust};
use crate::conductor::Watch;
use crate::error::{EngineError, output};
use crate::live::LiveOptions;
use crate::mock::{self, MockConfig};
use crate::net::target::Target;
use crate::net::way::WayOptions;
use crate::plan::PlanOptions;
use crate::policy::deadline::Limits;
use crate::policy::options::UserOptions;
use crate::policy::reuse::Strategy;
use crate::readiness::Readiness;
use crate::render::RenderOptions;
use crate::replayer::Pacing;
use crate::run::{RunConfig, Wishes, run as carry_out};
use crate::trace::{Given, TraceOptions};

/// The bundled trace: our own making, with sessions and shared prefixes, about ten seconds long.
const TRACE: &str = include_str!("../../assets/demo_trace.jsonl");
/// Its name in the log.
const TRACE_NAME: &str = "demo_trace.jsonl";

/// The arguments of `onbeat demo`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The run log; an older one is replaced.
    #[arg(long, short, default_value = "demo.beat", value_name = "FILE")]
    output: PathBuf,

    /// How progress is shown on stderr.
    #[arg(long, value_enum, default_value_t, value_name = "WAY")]
    ui: Ui,
}

/// Runs the demonstration.
///
/// # Errors
/// When the mock cannot listen on loopback or the log cannot be written.
pub fn run(args: &Args, out: &mut dyn Write) -> Result<u8, EngineError> {
    // Before a server is started and anything is said of a run.
    output::check(&args.output, true)?;
    inputs::check_is_log(&args.output)?;
    let folder = Folder::new()?;
    let trace = folder.path.join(TRACE_NAME);
    std::fs::write(&trace, TRACE)
        .map_err(|source| EngineError::io("write the bundled trace to", &trace, source))?;
    let server = mock::spawn(MockConfig::default()).map_err(|source| EngineError::Io {
        action: "start the mock server on loopback",
        path: None,
        source,
    })?;
    let url = format!("http://{}", server.address());
    let mut terminal = Terminal::new(args.ui);
    terminal.say(&format!(
        "demo: replaying {} bundled requests against a mock server at {url}, about 10 s",
        TRACE.lines().count()
    ));
    let ran = carry_out(config(args, trace, &url)?, &mut terminal);
    terminal.finish();
    server.stop();
    drop(folder);
    let ran = ran?;
    let conclusion = Conclusion {
        goals: &GoalFlags::default(),
        slices: SliceFlags::default(),
        gates: &GateFlags::default(),
        failed_share_max: FAILED_SHARE_MAX,
        verbose: false,
        results: None,
    };
    let code = conclude(&ran, &conclusion, out)?;
    let shown = ran.log.display();
    writeln!(
        out,
        "\nThe run is in {shown}. Look at it:\n  cargo run --release -p onbeat-viewer -- {shown}\n\
         or, installed:\n  onbeat-viewer {shown}\n\
         Replay a trace of your own:\n  onbeat replay TRACE.jsonl --url http://localhost:8000"
    )
    .map_err(printing)?;
    Ok(code)
}

fn config(args: &Args, trace: PathBuf, url: &str) -> Result<RunConfig, EngineError> {
    let target = Target::parse(url).map_err(|error| EngineError::Usage(error.to_string()))?;
    Ok(RunConfig {
        trace,
        trace_options: TraceOptions::default(),
        given: Given::default(),
        shard: None,
        start_unix_ns: None,
        trust: Trust::Within(MAX_ERROR_NS),
        users: UserOptions::default(),
        resumed: None,
        plan: PlanOptions::default(),
        render: RenderOptions { model: "onbeat-mock".to_owned(), ..RenderOptions::default() },
        target,
        more_targets: Vec::new(),
        readiness: Readiness::default(),
        reuse: Strategy::Pooled,
        way: WayOptions::default(),
        cores: crate::run::CoreChoice::Count(1),
        pacing: Pacing::Hybrid { margin_ns: 0 },
        wishes: Wishes::default(),
        driver: DriverFlag::default().kind(),
        limits: Limits::default(),
        warm_connections: None,
        max_connections: None,
        drain_ns: 10_000_000_000,
        stop_after_failures: None,
        live: LiveOptions::default(),
        memory: None,
        output: args.output.clone(),
        overwrite: true,
        max_lateness_us: 1_000,
        config: json!({ "demo": true }),
    })
}

/// A folder of this process's own that goes when it is done.
struct Folder {
    path: PathBuf,
}

impl Folder {
    fn new() -> Result<Self, EngineError> {
        // A killed demonstration leaves its folder behind, and in a container every process has the
        // same few numbers: the time keeps the names apart.
        let process = rustix::process::getpid().as_raw_nonzero();
        let path = std::env::temp_dir().join(format!("onbeat-demo-{process}-{:x}", unix_ns()));
        match std::fs::create_dir(&path) {
            Ok(()) => Ok(Self { path }),
            Err(source) => Err(EngineError::io("create the folder", path, source)),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left behind is one small file in the system's folder for such files.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
