//! From a trace to the plan that this machine sends, and the CPUs that send it.
//!
//! The whole plan is made first, with everything that is worked out of all of it; then the shard's
//! part is taken, if there is one, and dealt to cores. Nothing is sent here.

mod claims;

use onbeat_shared::log::PrefixRows;
use onbeat_shared::log::header::CacheSize;
use onbeat_shared::log::plan_row::PlanRow;
use onbeat_shared::trace::Trace;
use onbeat_shared::units::NANOS_PER_SECOND;

use self::claims::Claimed;
use super::{CoreChoice, RunConfig};
use crate::error::EngineError;
use crate::limits::CORES_MAX;
use crate::plan::{self, Plan, PlanOptions, Scripts};
use crate::replayer::affinity;

/// Requests a second that one core is asked to send when the user does not say how many cores.
const RATE_PER_CORE: usize = 10_000;

/// What is sent, by which CPUs, and what the log says of the whole plan.
pub(super) struct Planned {
    pub(super) plan: Plan,
    /// Nobody else's where that can be had, for as long as this is kept.
    pub(super) cpus: Claimed,
    /// Of the whole plan.
    pub(super) cache_curve: Vec<CacheSize>,
    /// Stretches of the whole plan, and paths of this machine's requests.
    pub(super) prefixes: PrefixRows,
}

/// The plan for the cores that were asked for, and the CPUs they run on.
pub(super) fn plan(
    trace: &Trace,
    config: &RunConfig,
    scripts: Option<&Scripts>,
) -> Result<Planned, EngineError> {
    let targets = u16::try_from(1 + config.more_targets.len()).map_err(|_too_many| {
        EngineError::Usage("--url: at most 65,535 servers can share a run".to_owned())
    })?;
    let whole = match scripts {
        Some(scripts) => plan::templates(trace, scripts),
        None => plan::build(trace, &PlanOptions { targets, ..config.plan.clone() })?,
    };
    let cache_curve = plan::cache_curve(trace, &whole);
    let prefixes = plan::prefixes(trace, &whole, config.memory);
    let mut plan = match (config.shard, scripts) {
        (None, _) => whole,
        (Some(shard), Some(_)) => whole.shard_of_users(shard),
        (Some(shard), None) => whole.shard(trace, shard)?,
    };
    let cpus = cpus(config, &plan.rows)?;
    plan.warnings.extend(cpus.warning());
    // Who sends a template is decided during the run.
    if scripts.is_none() {
        plan.deal(trace, u16::try_from(cpus.len()).expect("a CPU set is far smaller"));
    }
    let prefixes = plan.own_prefixes(prefixes);
    Ok(Planned { plan, cpus, cache_curve, prefixes })
}

/// The CPUs that send.
fn cpus(config: &RunConfig, rows: &[PlanRow]) -> Result<Claimed, EngineError> {
    let allowed = affinity::allowed_cpus().map_err(|source| EngineError::Io {
        action: "ask which CPUs may be used",
        path: None,
        source,
    })?;
    match &config.cores {
        CoreChoice::Auto => {
            let wanted = peak_rate(rows).div_ceil(RATE_PER_CORE);
            let most = config.max_connections.unwrap_or(CORES_MAX).clamp(1, CORES_MAX);
            let count = wanted.clamp(1, allowed.len().saturating_sub(1).clamp(1, most));
            Ok(Claimed::free_first(&from_the_highest(allowed), count))
        }
        CoreChoice::Count(count) if usize::from(*count) <= allowed.len() && *count > 0 => {
            Ok(Claimed::free_first(&from_the_highest(allowed), usize::from(*count)))
        }
        CoreChoice::Count(count) => Err(CoreChoice::refused(usize::from(*count), allowed.len())),
        CoreChoice::List(cpus) => match cpus.iter().find(|cpu| !allowed.contains(cpu)) {
            Some(cpu) => Err(EngineError::Usage(format!(
                "--cores: this process may not use CPU {cpu}; it may use {allowed:?}"
            ))),
            None if cpus.is_empty() => Err(EngineError::Usage("--cores: name a CPU".into())),
            None => Ok(Claimed::all(cpus)),
        },
    }
}

/// Interrupts prefer the low ones.
fn from_the_highest(mut allowed: Vec<u16>) -> Vec<u16> {
    allowed.reverse();
    allowed
}

/// The most requests due within any one second, counted in steps of a second.
fn peak_rate(rows: &[PlanRow]) -> usize {
    let mut peak = 0;
    let mut first = 0;
    for (index, row) in rows.iter().enumerate() {
        let Some(due) = row.due else { continue };
        while rows[first].due.is_none_or(|first| due.0 - first.0 >= NANOS_PER_SECOND) {
            first += 1;
        }
        peak = peak.max(index - first + 1);
    }
    peak
}
