//! What a user-driven run needs beside what every run needs: scripts, texts, gates, a director.
//!
//! Made before zero and handed to the conductor; nothing here decides who starts when.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32};

use onbeat_shared::counted::{agreeing, counted};
use onbeat_shared::export::kv_cache_tester::Equal;
use onbeat_shared::foreign::{shown, shown_path};
use onbeat_shared::log::header::TraceSource;
use onbeat_shared::log::user_facts::UserFacts;
use onbeat_shared::trace::Trace;
use onbeat_shared::trace::agentic::{Agentic, Kind, Scope};

use crate::conductor::Watch;
use crate::conductor::directing::UserJob;
use crate::error::EngineError;
use crate::plan::{self, Plan, Scripts};
use crate::policy::admission::Gates;
use crate::policy::direction::Direction;
use crate::policy::direction::state::DirectorState;
use crate::policy::options::UserOptions;
use crate::policy::players::Players;
use crate::policy::pool::Pool;
use crate::policy::reuse::Strategy;
use crate::render::supply::Source;
use crate::render::users::{SceneOptions, Scenes};
use crate::render::{Prepared, RenderOptions};
use crate::replayer::cues::Cues;
use crate::replayer::troupe::UserRun;
use crate::run::{RunConfig, shares};

/// Where an earlier run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Resumed {
    /// The folder that says so.
    pub folder: PathBuf,
    /// Who was playing what.
    pub state: DirectorState,
    /// What both runs must have in common.
    pub equal: Equal,
}

/// Connections beyond this help nobody before the server has shown that it needs them.
const WARM_MAX: usize = 1_024;

/// Refuses what users cannot do, and fills in what nobody said.
pub(super) fn settle(config: &mut RunConfig) -> Result<(), EngineError> {
    if config.reuse == Strategy::StickyUserSessions {
        return Err(EngineError::Usage(
            "--connection-reuse-strategy sticky-user-sessions: nobody knows how many requests a \
             user of an agentic trace will send; use pooled or never"
                .to_owned(),
        ));
    }
    if let Some(shard) = config.shard.filter(|shard| shard.count() > 1) {
        shares::of_users(&mut config.users, shard)?;
    }
    config.render.seed = config.users.prompt_seed;
    // As kv-cache-tester asks: there is no option for the other name.
    config.render.legacy_max_tokens = true;
    config.warm_connections.get_or_insert_with(|| warm_connections(&config.users));
    Ok(())
}

/// What this machine's users play: of a shard, its own conversations.
pub(super) fn scripts(trace: &Trace, config: &RunConfig) -> Result<Scripts, EngineError> {
    let mut scripts = plan::scripts(trace, &config.users.script)?;
    if let Some(shard) = config.shard {
        scripts.shard(trace, shard)?;
    }
    Ok(scripts)
}

/// Asks the model as it wants to be asked, where the user does not say how.
pub(super) fn settle_generation(config: &mut RunConfig, watch: &mut dyn Watch) {
    let render = &mut config.render;
    let generation = render.generation.for_model(&render.model);
    if generation != render.generation {
        render.generation = generation;
        let members = generation.members().map(|(key, value)| format!("{key} {value}"));
        let members: Vec<String> = members.collect();
        watch.say(&format!(
            "requests ask for {}, as such a model is asked; --temperature and its like say otherwise",
            members.join(", ")
        ));
    }
}

/// Refuses to go on with other prompts, other conversations or at another pace.
pub(super) fn check_resumed(
    config: &RunConfig,
    trace: &TraceSource,
    scripts: &Scripts,
    facts: &UserFacts,
) -> Result<(), EngineError> {
    let Some(resumed) = &config.resumed else { return Ok(()) };
    let now = Equal::new(&trace.name, &trace.sha256, facts);
    let folder = shown_path(&resumed.folder);
    let found = resumed.equal.differences(&now);
    if !found.is_empty() {
        let words: Vec<String> = found.iter().map(|one| shown(&one.to_string())).collect();
        return Err(EngineError::Usage(format!(
            "--resume {folder}: a run goes on with the same trace and options: {}",
            words.join("; ")
        )));
    }
    let checked = resumed.state.check(scripts);
    checked.map_err(|words| EngineError::Usage(format!("--resume {folder}: {words}")))
}

/// Says what nobody may expect of the report.
pub(super) fn hints(config: &RunConfig, trace: &Trace) -> Vec<String> {
    let Some(agentic) = &trace.recorded.agentic else { return Vec::new() };
    let global = agentic.conversations.iter().filter(|own| own.scope == Scope::Global).count();
    let shared = (global > 0).then(|| {
        format!(
            "{global} of {} {} block ids in common with others: the ideal hit rate is of each user \
             alone, and a server may do better",
            counted(agentic.conversations.len() as u64, "conversation"),
            agreeing(global as u64, "has", "have")
        )
    });
    shared.into_iter().chain(without_ttft(config, agentic)).collect()
}

/// Most answers have no time to first token.
fn without_ttft(config: &RunConfig, agentic: &Agentic) -> Option<String> {
    let calls = &agentic.calls;
    let whole = calls.iter().filter(|call| call.kind == Kind::Whole).count();
    let asks = config.render.streaming && !config.users.stream_all && whole * 2 > calls.len();
    asks.then(|| {
        format!(
            "{whole} of {} were recorded in one piece, are asked for so, and have no time to first \
             token for the ramp and the goals to see; --stream-all streams them",
            counted(calls.len() as u64, "answer")
        )
    })
}

/// How many connections to open before zero where nobody says: as many as requests may be under
/// way.
fn warm_connections(options: &UserOptions) -> usize {
    let most = |limit: u32| if limit == 0 { u32::MAX } else { limit };
    let users = options.max_users.max(options.start_users);
    let wanted = users.min(most(options.limits.concurrent));
    usize::try_from(wanted).unwrap_or(usize::MAX).min(WARM_MAX)
}

/// Writes the texts that prompts are made of, for `cores` cores, and finds a director.
pub(super) fn prepare(
    config: &RunConfig,
    trace: &Trace,
    plan: Plan,
    scripts: Arc<Scripts>,
    render: &RenderOptions,
    cores: u16,
) -> Result<(Prepared, Option<UserJob>), EngineError> {
    let options = &config.users;
    let sessions = Arc::new(AtomicU32::new(0));
    let users = users_per_core(options, cores);
    let players = Players::new(Arc::clone(&scripts), users, 0, sessions).room();
    let scene = SceneOptions {
        reply: options.reply,
        stream_all: options.stream_all,
        tool_role: options.tool_role,
        cores,
        users,
        players,
    };
    let scenes = Scenes::new(trace, &scripts, render, scene)?;
    let source = Source::Users(Arc::new(scenes));
    let prepared = Prepared { plan: Arc::new(plan), source, renderer: None };
    let state = config.resumed.as_ref().map(|resumed| resumed.state.clone());
    let job = job(trace, scripts, options, cores, state);
    Ok((prepared, Some(job)))
}

/// The director and what it shares with the cores.
fn job(
    trace: &Trace,
    scripts: Arc<Scripts>,
    options: &UserOptions,
    cores: u16,
    resumed: Option<DirectorState>,
) -> UserJob {
    let gates = Arc::new(Gates::new(options.limits, 0));
    let pool = Pool::new(&scripts, trace, options.trace_seed, options.recycle);
    let sessions = gates.sessions();
    let direction = Direction::new(options, trace, Arc::clone(&scripts), pool, sessions, cores);
    let direction = match resumed {
        Some(state) => direction.resumed(state),
        None => direction,
    };
    let run = UserRun {
        scripts,
        gates,
        cues: (0..cores).map(|_| Arc::new(Cues::default())).collect(),
        users_per_core: users_per_core(options, cores),
        seed: options.trace_seed,
        over: AtomicBool::new(false),
        expired: AtomicBool::new(false),
    };
    UserJob { run: Arc::new(run), direction }
}

/// Users are dealt to the core with the fewest, so none has many more than its share.
fn users_per_core(options: &UserOptions, cores: u16) -> usize {
    let users = options.max_users.max(options.start_users);
    usize::try_from(users.div_ceil(u32::from(cores.max(1)))).unwrap_or(usize::MAX)
}
