//! The control plane of a run: start barrier, zero, progress, stop, and the end of the log.
//!
//! One thread (the caller's) conducts: it starts the cores and the writer, waits until every core
//! reports ready, chooses one absolute zero, and from then on only looks: at the counters for the
//! progress line, at the signals for a stop. It never touches a socket and never decides when a
//! request leaves; that was decided by the plan.

mod cores;
pub mod directing;
pub mod director;
pub mod footprint;
pub mod host;
mod late_digest;
pub mod log_file;
pub mod memory_node;
mod patience;
mod period_line;
mod rendering;
mod scribe;
pub mod warm_connections;
pub mod warm_requests;
mod warmed;
pub mod writer;
mod zero;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use onbeat_shared::log::PrefixRows;
use onbeat_shared::log::header::{Closing, CoreTotals, Manifest};
use onbeat_shared::log::record::Record;
use onbeat_shared::units::{CoreIndex, RunNanos};

use self::cores::{Cores, Warmed};
use self::directing::{Directing, News, UserJob};
use self::director::Directed;
use self::log_file::LogFile;
use self::patience::Patience;
use self::rendering::Rendering;
use self::scribe::Scribe;
use self::writer::{Writer, Written};
use crate::clock::{monotonic_ns, unix_ns};
use crate::clock_state;
use crate::error::EngineError;
use crate::live::{Figures, Onlookers, Scraper, Serving};
use crate::plan::Plan;
use crate::policy::direction::state::DirectorState;
use crate::render::Renderer;
use crate::render::supply::Source;
use crate::replayer::counters::Snapshot;
use crate::replayer::realtime::Realtime;
use crate::replayer::sink::{Exchange, Sink};
use crate::replayer::{Assignment, Shared, Stop, affinity};
use crate::trace::Digesting;

/// How often the conductor looks.
const TICK: Duration = Duration::from_millis(50);
/// How often both clocks are read together during a run.
const ANCHOR_NS: i64 = 1_000_000_000;
/// Blocks of the conductor's own stream: anchors only, one record a second.
const CONDUCTOR_BLOCKS: usize = 4;
/// The same where servers are asked for their numbers: the first answers tell all names at once.
const SCRAPING_BLOCKS: usize = 64;

/// Everything a run needs once it is planned and rendered, or begun to be.
#[derive(Debug)]
pub struct Job {
    /// What to send.
    pub plan: Arc<Plan>,
    /// The bytes of it.
    pub source: Source,
    /// In a user-driven run, what it has beside templates.
    pub users: Option<UserJob>,
    /// Who goes on rendering it, if not all of it is.
    pub renderer: Option<Renderer>,
    /// One for each core.
    pub assignments: Vec<Assignment>,
    /// Complete but for what the start barrier finds out.
    pub manifest: Manifest,
    /// Which prompts begin alike.
    pub prefixes: PrefixRows,
    /// The log; it goes when the run does not begin.
    pub log: LogFile,
    /// The trace's digest, where the manifest lacks it.
    pub digesting: Digesting,
    /// Who watches it, and which servers are asked for their own numbers meanwhile.
    pub onlookers: Onlookers,
}

/// How a run went, as far as its conductor saw it. The numbers are in the log.
#[derive(Debug)]
pub struct Conducted {
    /// The user stopped it.
    pub interrupted: bool,
    /// The counters at the end.
    pub counters: Snapshot,
    /// In a user-driven run, why it ended and what a later one would go on from.
    pub directed: Option<Directed>,
    /// Why the log is incomplete, if it is.
    pub log_error: Option<io::Error>,
    /// What of ours failed in the middle of the run and ended it, if something did.
    pub failure: Option<EngineError>,
    /// The run's numbers, final, to be read until this is dropped.
    pub serving: Option<Serving>,
}

/// Who wants to know how a run is going. Called from the conductor's thread, never from a core's.
pub trait Watch {
    /// Something the user should know, in words.
    fn say(&mut self, words: &str);

    /// A look at the run; `elapsed_ns` counts from zero and is negative before it.
    fn look(&mut self, elapsed_ns: i64, planned: u64, counters: &Snapshot);

    /// What another run would go on from if this one were killed now.
    fn keep(&mut self, _manifest: &Manifest, _state: &DirectorState) {}

    /// The run begins: from now on its log stays. `false` if it must not, because the user has
    /// ended the program.
    fn begin(&mut self) -> bool {
        true
    }

    /// How the user wants the run to end, as of now.
    fn stop(&mut self) -> Stop;
}

/// Runs `job` to its end, or until so many requests in a row have failed.
///
/// # Errors
/// When a thread or runtime cannot be started or no connection can be opened; nothing has been sent
/// then.
pub fn conduct(
    job: Job,
    stop_after_failures: Option<u64>,
    watch: &mut dyn Watch,
) -> Result<Conducted, EngineError> {
    let Job { plan, source, users, renderer, assignments, mut manifest, .. } = job;
    let Job { prefixes, log, digesting, onlookers, .. } = job;
    let Onlookers { serving, sources, interval_ns } = onlookers;
    let user_run = users.as_ref().map(|job| Arc::clone(&job.run));
    let shared = Arc::new(Shared {
        plan: Arc::clone(&plan),
        source,
        users: user_run,
        zero_ns: AtomicI64::new(Shared::NO_ZERO),
        stop: AtomicU8::new(Stop::No as u8),
    });
    let cpus: Vec<u16> = assignments.iter().filter_map(|assignment| assignment.cpu).collect();
    // This thread and those it starts wake up all the time, and each time on a pacing core would
    // cost it its place. The cores' own threads pin themselves.
    let _apart = affinity::Apart::from(&cpus);
    late_digest::keep_off(&digesting, &cpus);
    if let Some(serving) = &serving {
        serving.keep_off(&cpus);
    }
    zero::wait_apart(manifest.start.as_ref(), watch)?;
    let rendering = renderer.map(|renderer| Rendering::start(renderer, &shared)).transpose()?;
    let mut cores = Cores::start(&assignments, &shared)?;
    let warmed = cores.wait_ready(watch)?;
    settle(&mut manifest, &warmed, watch);
    let begun = log.writer().and_then(|file| Writer::begin(file, &manifest, &plan, &prefixes));
    drop(prefixes);
    let mut writer = begun.map_err(|source| EngineError::Io {
        action: "write the run log",
        path: None,
        source,
    })?;
    let figures = serving.as_ref().map(|serving| Arc::clone(serving.figures()));
    if let Some(figures) = &figures {
        let Manifest { run_id, trace, mode, model, .. } = &manifest;
        figures.announce(&plan, manifest.users.is_some(), [run_id, &trace.name, mode, model]);
    }
    writer.also_to(figures.clone());
    zero::wait_ready(manifest.start.as_ref(), watch)?;
    // Whatever needs a thread has it before the log is there for good.
    let patience = Patience::new(stop_after_failures);
    let scraper = Scraper::start(sources, interval_ns)?;
    let directing = users.map(|job| Directing::start(job, &shared)).transpose()?;
    let live = Live { scraper, figures: figures.clone() };
    let (scribe, own) = write_beside(writer, &cores, &live)?;
    if !watch.begin() {
        return Err(EngineError::Stopped);
    }
    log.keep()?;
    let watched = (directing, &manifest, patience, live);
    let performed = perform(&mut cores, &shared, &own, watched, watch);
    let writer = scribe.end()?;
    let Performed { interrupted, counters, closing, totals, directed, given_up, failure } =
        performed;
    // What could not be rendered was not sent, and the log says so.
    let rendered = rendering.map_or(Ok(()), Rendering::end);
    let failure = failure.or(rendered.err());
    if let Some(figures) = figures {
        figures.end(closing.time_ns);
    }
    let planned = shared.planned();
    let done = counters.ended + counters.never_sent;
    let lost = counters.lost_records;
    let complete = done == planned && lost == 0;
    let trace_sha256 = late_digest::wait(digesting, watch);
    let by_director = directed.as_ref().and_then(|directed| directed.end.given_up());
    let by_failure = failure.as_ref().map(ToString::to_string);
    let given_up = by_failure.or(by_director).or(given_up);
    let facts =
        Written { interrupted, complete, done, lost, closing, totals, trace_sha256, given_up };
    let log_error = writer.end(&facts).err();
    Ok(Conducted { interrupted, counters, directed, log_error, failure, serving })
}

/// Adds to the manifest what the start barrier found out, and says what of it a user wants to know.
fn settle(manifest: &mut Manifest, warmed: &Warmed, watch: &mut dyn Watch) {
    manifest.pacing.wake_error_ns = warmed.wake_error_ns.max(0).cast_unsigned();
    manifest.realtime = warmed.realtime.as_ref().map(|realtime| realtime.name().to_owned());
    if let Some(words) = warmed.realtime.as_ref().and_then(Realtime::shortfall) {
        watch.say(&words);
    }
    if let Some(tls) = &mut manifest.tls {
        (tls.connections, tls.resumed) = (warmed.secured, warmed.resumed);
        watch.say(&tls.to_string());
    }
    manifest.started_unix_ns = unix_ns();
    if let Some(start) = &mut manifest.start {
        manifest.started_unix_ns = start.at_unix_ns;
        start.clock = clock_state::read().ok();
    }
}

/// How the time from zero to the last core's end went.
struct Performed {
    interrupted: bool,
    counters: Snapshot,
    closing: Closing,
    totals: Vec<CoreTotals>,
    directed: Option<Directed>,
    given_up: Option<String>,
    failure: Option<EngineError>,
}

/// What is watched during a run: a director's news, with the manifest that its state belongs to,
/// how much failure is put up with, and what others look at.
type Watched<'a> = (Option<Directing>, &'a Manifest, Patience, Live);

/// Who asks servers for their numbers, and who is shown ours.
#[derive(Debug, Default)]
struct Live {
    scraper: Option<Scraper>,
    figures: Option<Arc<Figures>>,
}

impl Live {
    fn begin(&self, zero_ns: i64) {
        if let Some(figures) = &self.figures {
            figures.begin(zero_ns);
        }
    }

    /// Writes down what servers have said.
    fn take_down(&mut self, zero_ns: i64, sink: &mut Sink) {
        if let Some(scraper) = &mut self.scraper {
            scraper.take(zero_ns, &mut |record| sink.push(record));
            sink.flush();
        }
    }

    /// The same for the last time, once they have been asked again.
    fn end(self, zero_ns: i64, sink: &mut Sink) {
        if let Some(scraper) = self.scraper {
            scraper.end(zero_ns, &mut |record| {
                sink.wait_for_room();
                sink.push(record);
            });
        }
    }
}

/// A thread that writes down what the cores and the conductor record, and the conductor's way to
/// it.
fn write_beside<W: io::Write + Send + 'static>(
    writer: Writer<W>,
    cores: &Cores,
    live: &Live,
) -> Result<(Scribe<W>, Arc<Exchange>), EngineError> {
    let blocks = if live.scraper.is_some() { SCRAPING_BLOCKS } else { CONDUCTOR_BLOCKS };
    let own = Arc::new(Exchange::new(CoreIndex::CONDUCTOR, blocks));
    let mut exchanges = cores.exchanges.clone();
    exchanges.push(Arc::clone(&own));
    Ok((Scribe::start(writer, exchanges)?, own))
}

/// From zero to the last core's end.
fn perform(
    cores: &mut Cores,
    shared: &Shared,
    own: &Arc<Exchange>,
    (directing, manifest, mut patience, mut live): Watched<'_>,
    watch: &mut dyn Watch,
) -> Performed {
    let mut sink = Sink::new(Arc::clone(own));
    let zero_ns = zero::choose(manifest.start.as_ref());
    shared.zero_ns.store(zero_ns, Ordering::Release);
    live.begin(zero_ns);
    let mut stop = Stop::No;
    let mut given_up = None;
    // The first anchor says what the wall clock shows at zero.
    let anchor = |sink: &mut Sink, at_zero: bool| {
        let time_ns = monotonic_ns() - zero_ns;
        let wall_ns = unix_ns();
        let (time_ns, wall_ns) = match &manifest.start {
            _ if !at_zero => (time_ns, wall_ns),
            Some(start) => (0, start.at_unix_ns),
            None => (0, wall_ns.saturating_add_signed(-time_ns)),
        };
        sink.push(&Record::Anchor {
            time: RunNanos(time_ns),
            unix_ns: wall_ns,
            monotonic_ns: (zero_ns + time_ns).cast_unsigned(),
        });
        sink.flush();
        Closing { time_ns, unix_ns: wall_ns }
    };
    anchor(&mut sink, true);
    let mut next_anchor_ns = ANCHOR_NS;
    while !cores.all_finished() {
        #[expect(clippy::disallowed_methods, reason = "nothing is timed on this thread")]
        std::thread::sleep(TICK);
        let elapsed_ns = monotonic_ns() - zero_ns;
        if elapsed_ns >= next_anchor_ns {
            next_anchor_ns = elapsed_ns + ANCHOR_NS;
            anchor(&mut sink, false);
        }
        let wanted = watch.stop();
        if wanted > stop {
            stop = wanted;
            shared.stop.store(stop as u8, Ordering::Relaxed);
        }
        let news = directing.as_ref().map(Directing::news).unwrap_or_default();
        take_down(news, manifest, &mut sink, watch);
        live.take_down(zero_ns, &mut sink);
        let counters = cores.snapshot();
        watch.look(elapsed_ns, shared.planned(), &counters);
        if given_up.is_none() && directing.is_none() && shared.stop() == Stop::No {
            given_up = patience.look(&counters);
            give_up(given_up.as_deref(), shared, watch);
        }
    }
    let (totals, failure) = cores.join();
    let directed = directing.map(Directing::end).transpose();
    let (directed, failure) = match directed {
        Ok(directed) => (directed, failure),
        Err(error) => (None, failure.or(Some(error))),
    };
    let directed = directed.map(|(directed, news)| {
        take_down(news, manifest, &mut sink, watch);
        directed
    });
    let closing = anchor(&mut sink, false);
    live.end(zero_ns, &mut sink);
    sink.finish();
    let counters = cores.snapshot();
    watch.look(closing.time_ns, shared.planned(), &counters);
    let interrupted = stop != Stop::No;
    Performed { interrupted, counters, closing, totals, directed, given_up, failure }
}

/// Lets a run drain that is given up, if it is, and says why.
fn give_up(why: Option<&str>, shared: &Shared, watch: &mut dyn Watch) {
    if let Some(why) = why {
        watch.say(&format!("the run is given up: {why}"));
        shared.stop.fetch_max(Stop::Drain as u8, Ordering::Relaxed);
    }
}

/// Writes down and says what a director wants to be.
fn take_down(news: Vec<News>, manifest: &Manifest, sink: &mut Sink, watch: &mut dyn Watch) {
    for news in news {
        match news {
            News::Note(assessment) => {
                for record in assessment.records() {
                    sink.push(&record);
                }
                sink.flush();
                if let Some(words) = period_line::period_line(&assessment) {
                    watch.say(&words);
                }
            }
            News::Keep(state) => watch.keep(manifest, &state),
            News::Say(words) => watch.say(&words),
        }
    }
}

fn spawn<T: Send + 'static>(
    name: String,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, EngineError> {
    Builder::new().name(name).spawn(body).map_err(|source| EngineError::Io {
        action: "start a thread",
        path: None,
        source,
    })
}
