//! One run, from a trace on disk to a log on disk: the stages called in their one order.
//!
//! trace → plan → render → replay → log. Everything that can be refused is refused before the first
//! connection is opened; a run that could not start leaves no log behind. Reading the log back and
//! showing numbers is the caller's business.

mod granted;
mod needs;
mod planned;
mod shares;
mod user_facts;
pub mod users;

use std::path::PathBuf;
use std::sync::Arc;

use onbeat_shared::counted::counted;
use onbeat_shared::foreign::shown_path;
use onbeat_shared::log::PrefixRows;
use onbeat_shared::log::header::{CacheSize, Manifest, Pacing as PacingFacts, Tls, TraceSource};
use onbeat_shared::log::start::{ShardFacts, Start};
use onbeat_shared::trace::Trace;
use onbeat_shared::units::CoreIndex;

use crate::clock::{monotonic_step_ns, unix_ns};
use crate::clock_state::{self, Trust};
use crate::conductor::footprint;
use crate::conductor::log_file::LogFile;
use crate::conductor::{Conducted, Job, Watch, conduct, host, warm_connections, warm_requests};
use crate::doctor::{self, Finding};
use crate::error::EngineError;
use crate::live::{self, Listener, LiveOptions, Onlookers, ScrapeUrl, Serving};
use crate::net::reach::{Reached, reach, resolved};
use crate::net::target::Target;
use crate::net::way::{Way, WayOptions};
use crate::plan::{self, Plan, PlanOptions, Scripts, Shard};
use crate::policy::deadline::Limits;
use crate::policy::options::UserOptions;
use crate::policy::reuse::Strategy;
use crate::readiness::{self, Readiness};
use crate::render::secret::scrubbed;
use crate::render::supply::Source;
use crate::render::{self, Context, Destination, Prepared, RenderOptions, Secret};
use crate::replayer::driver::DriverKind;
use crate::replayer::{Assignment, Pacing, Stop, stall};
pub use crate::run::users::Resumed;
use crate::trace::{self, Given, TraceOptions};

/// A run as meant.
#[derive(Clone, Debug)]
pub struct RunConfig {
    /// The trace file.
    pub trace: PathBuf,
    /// How to read it.
    pub trace_options: TraceOptions,
    /// Options that were given and mean nothing for some traces: see [`trace::without_meaning`].
    pub given: Given,
    /// How to schedule it; `cores` is filled in from [`RunConfig::cores`].
    pub plan: PlanOptions,
    /// Which part of it this machine sends; `None`: all.
    pub shard: Option<Shard>,
    /// The schedule's zero in nanoseconds since 1970; `None`: as soon as everything is ready.
    pub start_unix_ns: Option<u64>,
    /// How far the wall clock is trusted for that.
    pub trust: Trust,
    /// How users replay it, if it is agentic.
    pub users: UserOptions,
    /// Where an earlier run of users ended, if this one goes on from there.
    pub resumed: Option<Resumed>,
    /// How to write requests; destinations are filled in from [`RunConfig::target`].
    pub render: RenderOptions,
    /// The server.
    pub target: Target,
    /// Further servers; sessions take them in turn, the first one first.
    pub more_targets: Vec<Target>,
    /// What is asked of the servers before zero.
    pub readiness: Readiness,
    /// Which connection is used again, and for whom.
    pub reuse: Strategy,
    /// How connections are made.
    pub way: WayOptions,
    /// Which CPUs send.
    pub cores: CoreChoice,
    /// How cores wait.
    pub pacing: Pacing,
    /// What to ask of the system before zero.
    pub wishes: Wishes,
    /// How sockets are driven; `None`: io_uring where it is allowed.
    pub driver: Option<DriverKind>,
    /// Time limits of an exchange.
    pub limits: Limits,
    /// Connections to open before zero, over all cores; `None`: as many as requests may overlap.
    pub warm_connections: Option<usize>,
    /// Most connections over all cores.
    pub max_connections: Option<usize>,
    /// How long requests in flight may finish after a stop.
    pub drain_ns: i64,
    /// Failures in a row after which the run is given up; not in a run of users.
    pub stop_after_failures: Option<u64>,
    /// What of it is to be seen meanwhile, and which servers are asked for their own numbers.
    pub live: LiveOptions,
    /// Most memory of the whole process, in bytes; `None`: what requests may take is all that
    /// counts, see [`RenderOptions::budget_bytes`].
    pub memory: Option<u64>,
    /// The log.
    pub output: PathBuf,
    /// Replace a log that is already there.
    pub overwrite: bool,
    /// The p99 lateness outside host stalls above which the schedule did not hold.
    pub max_lateness_us: u64,
    /// The resolved configuration for the manifest, secrets cut out.
    pub config: serde_json::Value,
}

/// What a run may ask of the system; each is granted as far as it is allowed, and what is not is
/// said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// Keep the process's memory from being swapped out.
    pub lock_memory: bool,
    /// Let pacing threads run before every ordinary one.
    pub realtime: bool,
    /// Keep the requests' bytes on the memory node of the pacing cores.
    pub numa_local: bool,
}

/// Which CPUs send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CoreChoice {
    /// As many as the plan's peak rate asks for, leaving one CPU to everything else.
    Auto,
    /// So many, from the highest-numbered CPU down: interrupts prefer the low ones.
    Count(u16),
    /// These.
    List(Vec<u16>),
}

impl CoreChoice {
    /// What is said of a number of cores that a process with so many CPUs cannot have.
    #[must_use]
    pub fn refused(count: usize, allowed: usize) -> EngineError {
        let right = match allowed {
            1 => "ask for 1, or let it use more (taskset, a container's cpuset)".to_owned(),
            _ => format!("ask for 1 to {allowed}"),
        };
        let cpus = counted(allowed as u64, "CPU");
        EngineError::Usage(format!("--cores {count}: this process may use {cpus}; {right}"))
    }
}

/// A run that took place.
#[derive(Debug)]
pub struct Ran {
    /// The log.
    pub log: PathBuf,
    /// What the conductor saw.
    pub conducted: Conducted,
    /// How sockets were driven.
    pub driver: DriverKind,
}

/// Replays a trace.
///
/// # Errors
/// When an input is wrong, the log cannot be written, or no core or connection can be had. Nothing
/// has been sent then.
pub fn run(mut config: RunConfig, watch: &mut dyn Watch) -> Result<Ran, EngineError> {
    if config.start_unix_ns.is_some() {
        clock_state::check(clock_state::read(), config.trust)?;
    }
    // A server may repeat the URL of its metrics wherever it is asked.
    let scraped = config.live.scrape.iter().flat_map(ScrapeUrl::secrets);
    config.render.more_secrets.extend(scraped);
    let serving = serve(&config.live, watch)?;
    shares::settle(&mut config)?;
    // Before anything is opened that a low limit would have no room for.
    host::raise_files();
    let options = TraceOptions { prompts_follow: true, ..config.trace_options };
    let mut digesting = trace::Digesting::start(&config.trace, &options)?;
    let mut trace = trace::load(&config.trace, &options)?;
    go_on(watch)?;
    for warning in &trace.warnings {
        watch.say(&warning.to_string());
    }
    for warning in trace::without_meaning(&config.given, &trace) {
        watch.say(&warning);
    }
    for warning in plan::synthesise(&mut trace, &config.plan)? {
        watch.say(&warning);
    }
    let scripts = match trace.recorded.agentic {
        Some(_) => {
            users::settle(&mut config)?;
            Some(Arc::new(users::scripts(&trace, &config)?))
        }
        None => None,
    };
    let planned::Planned { mut plan, cpus, cache_curve, prefixes } =
        planned::plan(&trace, &config, scripts.as_deref())?;
    for warning in &plan.warnings {
        watch.say(warning);
    }
    if plan.rows.is_empty() {
        return Err(EngineError::Input(format!(
            "{}: no request is left to send; widen the window or raise --request-count",
            shown_path(&config.trace)
        )));
    }
    keep_within(&mut config, &trace, &plan, cpus.len())?;
    load_prompts(&config, &mut trace, &plan)?;
    // What reading them took is not given back to the system at once.
    keep_within(&mut config, &trace, &plan, cpus.len())?;
    digesting.hold(false);
    go_on(watch)?;
    if !config.targets().any(Target::is_secure)
        && let Some(option) = config.way.tls.first_given()
    {
        watch.say(&format!("{option} changes nothing: --url does not begin with https://"));
    }
    let shape = config.render.clone().for_trace(&trace, config.plan.force_min_tokens)?;
    render::settle_lengths(&mut plan, &trace, &shape);
    render::check_turns(&plan, &trace, &shape)?;
    // What is sure to be too little is said before any server is asked for anything.
    let needs = needs::check(&config, &plan, cpus.len(), scripts.is_some(), watch)?;
    let driver = granted::driver(config.driver, cpus.len(), watch)?;
    readiness::wait(&config.readiness, config.targets(), &config.way, &shape, watch)?;
    let reached = reach_all(&config)?;
    go_on(watch)?;
    let way = &reached[0].way;
    let model = readiness::model(&config.readiness, &config.target, way, &shape, watch)?;
    config.render.model = model.unwrap_or(config.render.model);
    if scripts.is_some() {
        users::settle_generation(&mut config, watch);
    }
    digesting.note(&config.trace, &mut trace)?;
    let log = LogFile::create(&config.output, config.overwrite)?;
    let (plan, log) = ((plan, scripts, needs), (log, digesting, cache_curve, prefixes, serving));
    let ran = replay(&config, trace, plan, &cpus, driver, reached, log, watch);
    ran.map(|conducted| Ran { log: config.output, conducted, driver })
}

/// Sees to it that the process stays within its memory, if that is limited.
fn keep_within(
    config: &mut RunConfig,
    trace: &Trace,
    plan: &Plan,
    cores: usize,
) -> Result<(), EngineError> {
    if let (Some(budget), Some(resident)) = (config.memory, render::resident()) {
        config.render.budget_bytes = Some(budget);
        config.render.held_bytes = footprint::held(budget, resident, trace, plan, cores)?;
    }
    Ok(())
}

/// Reads what the trace holds of planned requests, where it holds any.
fn load_prompts(config: &RunConfig, trace: &mut Trace, plan: &Plan) -> Result<(), EngineError> {
    let mut wanted = vec![false; trace.records.len()];
    for &record in &plan.record_of {
        wanted[record as usize] = true;
    }
    let memory = render::texts_budget(plan, trace, &config.render);
    Ok(trace::load_prompts(&config.trace, trace, &|record| wanted[record as usize], memory)?)
}

impl RunConfig {
    /// The servers, in the order that sessions take them.
    pub fn targets(&self) -> impl Iterator<Item = &Target> {
        std::iter::once(&self.target).chain(&self.more_targets)
    }
}

/// The way to each server, tried.
fn reach_all(config: &RunConfig) -> Result<Vec<Reached>, EngineError> {
    if config.way.unix_socket.is_some() && !config.more_targets.is_empty() {
        return Err(EngineError::Usage(
            "--unix-socket leads to one server; give one --url".to_owned(),
        ));
    }
    let secrets = config.render.secrets();
    // The names in a certificate are the server's words, too.
    let clean = |error| match error {
        EngineError::Run(words) => EngineError::Run(scrubbed(words, &secrets)),
        other => other,
    };
    config.targets().map(|target| reach(target, &config.way).map_err(clean)).collect()
}

/// Between two stages that take long: does the user still want the run?
fn go_on(watch: &mut dyn Watch) -> Result<(), EngineError> {
    match watch.stop() {
        Stop::No => Ok(()),
        Stop::Drain | Stop::Now => Err(EngineError::Stopped),
    }
}

/// The log, and what goes into it before the first request leaves.
type Logged = (LogFile, trace::Digesting, Vec<CacheSize>, PrefixRows, Option<Serving>);

#[expect(clippy::too_many_arguments, reason = "the stages' outputs meet here and nowhere else")]
fn replay(
    config: &RunConfig,
    trace: Trace,
    (plan, scripts, needs): (Plan, Option<Arc<Scripts>>, Vec<Finding>),
    cpus: &[u16],
    driver: DriverKind,
    reached: Vec<Reached>,
    (log, digesting, cache_curve, prefixes, serving): Logged,
    watch: &mut dyn Watch,
) -> Result<Conducted, EngineError> {
    let options = RenderOptions {
        destinations: config
            .targets()
            .map(|target| Destination::new(&target.authority(), target.base_path()))
            .collect(),
        run_id: format!("{:x}-{:x}", unix_ns(), rustix::process::getpid().as_raw_nonzero()),
        ..config.render.clone()
    };
    let options = options.for_trace(&trace, config.plan.force_min_tokens)?;
    let mut manifest = manifest(config, &trace, &plan, &options, (cpus, driver), &reached);
    manifest.doctor = Some(doctor::glance(cpus).and(needs).json());
    manifest.cache_curve = cache_curve;
    manifest.memory_node = granted::memory_node(config.wishes, cpus, watch);
    let cores = u16::try_from(cpus.len()).expect("a CPU set is far smaller");
    let warm_up = match scripts {
        Some(_) => None,
        None => first_requests(config, &plan, &trace, &options)?,
    };
    let (prepared, users) = match scripts {
        Some(scripts) => {
            let before = config.resumed.as_ref().map_or(0, |resumed| resumed.state.users_created);
            let facts = user_facts::of(&config.users, before, &scripts, &trace);
            users::check_resumed(config, &manifest.trace, &scripts, &facts)?;
            users::hints(config, &trace).iter().for_each(|words| watch.say(words));
            manifest.users = Some(Box::new(facts));
            users::prepare(config, &trace, plan, scripts, &options, cores)?
        }
        None => (render::prepare(plan, trace, options.clone(), cores)?, None),
    };
    let Prepared { plan, source, mut renderer } = prepared;
    if let Source::Whole(bodies) = &source
        && let Some(words) = bodies.describe_replies()
    {
        watch.say(&words);
    }
    if let Some(renderer) = &mut renderer {
        watch.say(&renderer.describe());
        renderer.fill(&mut || watch.stop() == Stop::No);
        renderer.check()?;
    }
    go_on(watch)?;
    manifest.memory_lock = granted::memory_lock(config.wishes, watch);
    let onlookers = onlookers(config, &options, &reached, serving, watch)?;
    let ways: Vec<_> = reached.into_iter().map(|reached| Arc::new(reached.way)).collect();
    let assignments = assign(config, &options, &plan, cpus, driver, &ways)?;
    let opened = assignments.iter().flat_map(|assignment| &assignment.warm_connections).sum();
    warm_shortfall(config, opened, cpus.len()).iter().for_each(|words| watch.say(words));
    if let Some((first, bytes)) = warm_up {
        let asked = first.own_first(config.plan.warm_up);
        let sent = warm_requests::send(first, bytes, asked, &assignments[0], &manifest, watch)?;
        manifest.warm_up = Some(sent);
    }
    let job = Job {
        plan,
        source,
        users,
        renderer,
        assignments,
        manifest,
        prefixes,
        log,
        digesting,
        onlookers,
    };
    conduct(job, config.stop_after_failures, watch)
}

/// Begins to answer who asks for the run's numbers, if somebody may.
fn serve(live: &LiveOptions, watch: &mut dyn Watch) -> Result<Option<Serving>, EngineError> {
    let Some(address) = live.serve_at else { return Ok(None) };
    let serving = Listener::bind(address)?.serve(Arc::default())?;
    watch.say(&format!("the run's numbers are at http://{}/metrics", serving.address()));
    Ok(Some(serving))
}

/// Who watches the run, and which servers are asked for their own numbers.
fn onlookers(
    config: &RunConfig,
    requests: &RenderOptions,
    reached: &[Reached],
    serving: Option<Serving>,
    watch: &mut dyn Watch,
) -> Result<Onlookers, EngineError> {
    let targets: Vec<&Target> = config.targets().collect();
    let LiveOptions { scrape, scrape_interval_ns, .. } = &config.live;
    let mut say = |words: &str| watch.say(words);
    let sources = live::sources(scrape, &targets, reached, &config.way, requests, &mut say)?;
    Ok(Onlookers { serving, sources, interval_ns: *scrape_interval_ns })
}

/// What the log says of the run before it begins; what is found out on the way there is added.
fn manifest(
    config: &RunConfig,
    trace: &Trace,
    plan: &Plan,
    options: &RenderOptions,
    (cpus, driver): (&[u16], DriverKind),
    reached: &[Reached],
) -> Manifest {
    Manifest {
        run_id: options.run_id.clone(),
        onbeat_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_ns: unix_ns(),
        mode: plan.mode.to_string(),
        trace: source_of(trace),
        config: resolved(config.config.clone(), reached),
        targets: config.targets().map(Target::to_string).collect(),
        host: host::describe(),
        driver: driver.name().to_owned(),
        cores: cpus.to_vec(),
        pacing: PacingFacts {
            kind: config.pacing.name().to_owned(),
            wake_error_ns: 0,
            stall_threshold_ns: stall::THRESHOLD_NS.cast_unsigned(),
            clock_step_ns: Some(monotonic_step_ns()),
        },
        max_lateness_us: config.max_lateness_us,
        seed: options.seed,
        token_source: "words-4096".to_owned(),
        planned: u32::try_from(plan.rows.len()).expect("a plan is bounded by its index type"),
        endpoint: options
            .path
            .as_ref()
            .map_or_else(|| options.endpoint.path().to_owned(), ToString::to_string),
        model: options.model.clone(),
        doctor: None,
        memory_lock: None,
        memory_node: None,
        realtime: None,
        repeats_turns: matches!(options.context, Some(Context::Turns | Context::LiveAnswers)),
        cache_curve: Vec::new(),
        warm_up: None,
        tls: reached.iter().find_map(|reached| reached.tls.clone()).map(|facts| Tls {
            version: facts.version,
            cipher: facts.cipher,
            verified: !config.way.tls.insecure,
            ..Tls::default()
        }),
        users: None,
        shard: plan.part.as_ref().map(|part| ShardFacts {
            index: part.shard.index(),
            count: part.shard.count(),
            planned: part.planned,
            plan: format!("{:016x}", part.digest),
        }),
        start: config.start_unix_ns.map(|at_unix_ns| Start {
            at_unix_ns,
            allowed_error_ns: match config.trust {
                Trust::Within(ns) => Some(ns),
                Trust::Any => None,
            },
            clock: None,
        }),
        merged: None,
    }
}

/// What is sent once before the run, if anything is.
fn first_requests(
    config: &RunConfig,
    plan: &Plan,
    trace: &Trace,
    options: &RenderOptions,
) -> Result<Option<(Plan, Source)>, EngineError> {
    let count = plan.own_first(config.plan.warm_up);
    if count == 0 {
        return Ok(None);
    }
    let run_id = format!("{}-warm-up", options.run_id);
    let bodies = render::few(plan, trace, &RenderOptions { run_id, ..options.clone() }, count)?;
    Ok(Some((plan.warm_up(count), Source::Whole(Arc::new(bodies)))))
}

/// The trace as the log names it.
fn source_of(trace: &Trace) -> TraceSource {
    TraceSource {
        name: trace.source.name.clone(),
        sha256: trace.source.sha256.clone(),
        format: trace.source.format.name().to_owned(),
        rows: trace.source.rows,
        block_tokens: Some(trace.block_tokens),
        files: trace.recorded.files.iter().map(|file| file.name.clone()).collect(),
    }
}

fn assign(
    config: &RunConfig,
    options: &RenderOptions,
    plan: &Plan,
    cpus: &[u16],
    driver: DriverKind,
    ways: &[Arc<Way>],
) -> Result<Vec<Assignment>, EngineError> {
    let room = usize::try_from(host::connection_room(cpus.len())).unwrap_or(usize::MAX);
    // There was room for one at least before anything was opened.
    let room_per_core = (room / cpus.len()).max(1);
    if let Some(most) = config.max_connections.filter(|&most| most < cpus.len()) {
        return Err(EngineError::Usage(format!(
            "--max-connections {most}: each of the {} cores needs one; allow as many, or send from \
             fewer with --cores",
            cpus.len()
        )));
    }
    let secrets: Arc<[Secret]> = options.secrets().into();
    let assignment = |(core, &cpu): (u16, &u16)| {
        let core = CoreIndex(core);
        let cap = config.max_connections.map(|all| share(all, core, cpus.len()));
        let most = room_per_core.min(cap.unwrap_or(usize::MAX));
        let warm = config.warm_connections.map(|all| share(all, core, cpus.len()));
        let warm =
            warm_connections::for_each_server(&plan.rows, core, ways.len(), config.reuse, warm);
        Assignment {
            core,
            log_blocks: footprint::log_blocks(config.memory, cpus.len()),
            cpu: Some(cpu),
            driver,
            ways: ways.to_vec(),
            reuse: config.reuse,
            streaming: options.streaming,
            pacing: config.pacing,
            realtime: config.wishes.realtime,
            limits: config.limits,
            warm_connections: warm_connections::within(warm, most),
            max_connections: cap,
            drain_ns: config.drain_ns,
            secrets: Arc::clone(&secrets),
            recorded_prompts: options.recorded_prompts,
        }
    };
    Ok((0..).zip(cpus).map(assignment).collect())
}

/// What is said where fewer connections are opened before zero than were asked for.
fn warm_shortfall(config: &RunConfig, opened: usize, cores: usize) -> Option<String> {
    let asked = config.warm_connections.filter(|&asked| asked > opened)?;
    let why = match config.max_connections.filter(|&most| most <= opened) {
        Some(most) => format!("--max-connections {most} allows no more; raise it to {asked}"),
        None => host::more_connections(asked.div_ceil(cores) * cores, cores),
    };
    let opened = counted(opened as u64, "connection");
    Some(format!("--warm-connections {asked}: {opened} before the start, because {why}"))
}

/// What one of `cores` cores gets of `all`: together they get no more and no less.
fn share(all: usize, core: CoreIndex, cores: usize) -> usize {
    all / cores + usize::from(usize::from(core.0) < all % cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_more_cores_than_there_are_is_told_how_many_would_do() {
        let said = |allowed| CoreChoice::refused(5, allowed).to_string();
        assert_eq!(said(4), "--cores 5: this process may use 4 CPUs; ask for 1 to 4");
        assert!(said(1).starts_with("--cores 5: this process may use 1 CPU; ask for 1, or let"));
    }

    #[test]
    fn cores_share_a_cap_without_exceeding_it() {
        for (all, cores) in [(1, 1), (3, 2), (7, 3), (64, 5), (4, 4)] {
            let shares: Vec<_> =
                (0..cores).map(|core| share(all, CoreIndex(core), usize::from(cores))).collect();
            assert_eq!(shares.iter().sum::<usize>(), all, "{shares:?}");
            assert!(shares.iter().all(|&share| share > 0), "{shares:?}");
        }
    }
}
