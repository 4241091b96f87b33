//! The merged log's manifest and footer, from those of the shards' logs.

use std::collections::BTreeMap;

use super::MergeError;
use super::survey::Survey;
use super::users;
use crate::log::{
    CoreTotals, Footer, Host, HostPart, Manifest, Merged, Pacing, Start, Tls, TraceSource, WarmUp,
};
use crate::units::CoreIndex;

/// Hosts whose names are in the run's own; the others are counted.
const NAMED_MAX: usize = 4;

/// What the run was asked to do, and where. The logs are in order of their shards.
pub(super) fn manifest(logs: &[Survey], missing: Vec<u32>) -> Result<Manifest, MergeError> {
    let first = &logs[0].manifest;
    let shard = first.shard.clone().unwrap_or_default();
    let start = first.start.clone().unwrap_or_default();
    let hosts = hosts(logs)?;
    let sha256 = logs.iter().find_map(Survey::sha256).unwrap_or_default().to_owned();
    let planned = match &first.users {
        Some(_) => first.planned,
        None => logs.iter().map(|log| log.manifest.planned).sum(),
    };
    Ok(Manifest {
        run_id: format!("{}-merged-{}", first.run_id, logs.len()),
        started_unix_ns: start.at_unix_ns,
        trace: TraceSource { sha256, ..first.trace.clone() },
        host: host(logs),
        driver: joined(logs.iter().map(|log| log.manifest.driver.as_str())),
        cores: hosts.iter().flat_map(|host| host.cores.iter().copied()).collect(),
        pacing: pacing(logs),
        planned,
        doctor: None,
        memory_lock: None,
        memory_node: None,
        realtime: None,
        warm_up: warm_up(logs),
        tls: tls(logs),
        users: users::facts(logs),
        shard: None,
        start: Some(Start { clock: None, ..start }),
        merged: Some(Box::new(Merged {
            shards: shard.count,
            missing,
            planned: shard.planned,
            hosts,
        })),
        ..first.clone()
    })
}

fn hosts(logs: &[Survey]) -> Result<Vec<HostPart>, MergeError> {
    let mut first_core = 0_u16;
    let mut hosts = Vec::with_capacity(logs.len());
    for log in logs {
        let manifest = &log.manifest;
        let mut cores = manifest.cores.clone();
        // Cores that only the records tell of have no CPU that is known.
        cores.resize(usize::from(log.cores), u16::MAX);
        let planned = match &manifest.users {
            Some(_) => u32::try_from(log.lives.requests()).unwrap_or(u32::MAX),
            None => manifest.planned,
        };
        let footer = log.footer.as_ref();
        hosts.push(HostPart {
            shard: log.shard().map_or(0, |shard| shard.index),
            run_id: manifest.run_id.clone(),
            host: manifest.host.clone(),
            first_core,
            cores,
            driver: manifest.driver.clone(),
            pacing: manifest.pacing.clone(),
            requests: planned,
            start: manifest.start.clone().unwrap_or_default(),
            doctor: manifest.doctor.clone(),
            closed: footer.is_some(),
            interrupted: footer.is_some_and(|footer| footer.interrupted),
            lost_records: footer.map_or(0, |footer| footer.lost_records),
            damaged_bytes: log.damaged_bytes,
        });
        let next = first_core.checked_add(log.cores).filter(|&core| core < CoreIndex::CONDUCTOR.0);
        first_core = next.ok_or_else(|| {
            MergeError::Apart(format!(
                "{}: with this log there are more cores than a log can number",
                log.name
            ))
        })?;
    }
    Ok(hosts)
}

/// Different words, once each.
fn joined<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut different: Vec<&str> = Vec::new();
    for word in words {
        if !different.contains(&word) {
            different.push(word);
        }
    }
    let more = different.len().saturating_sub(NAMED_MAX);
    different.truncate(NAMED_MAX);
    let named = different.join(", ");
    if more > 0 { format!("{named} and {more} more") } else { named }
}

/// All machines as one.
fn host(logs: &[Survey]) -> Host {
    let all = || logs.iter().map(|log| &log.manifest.host);
    let machines: BTreeMap<&str, u32> =
        all().map(|host| (host.hostname.as_str(), host.cpus)).collect();
    Host {
        hostname: joined(all().map(|host| host.hostname.as_str())),
        kernel: joined(all().map(|host| host.kernel.as_str())),
        cpu: joined(all().map(|host| host.cpu.as_str())),
        cpus: machines.values().copied().fold(0, u32::saturating_add),
    }
}

/// Of what differs, the coarsest.
fn pacing(logs: &[Survey]) -> Pacing {
    let all = || logs.iter().map(|log| &log.manifest.pacing);
    Pacing {
        kind: joined(all().map(|pacing| pacing.kind.as_str())),
        wake_error_ns: all().map(|pacing| pacing.wake_error_ns).max().unwrap_or(0),
        stall_threshold_ns: all().map(|pacing| pacing.stall_threshold_ns).max().unwrap_or(0),
        clock_step_ns: all().filter_map(|pacing| pacing.clock_step_ns).max(),
    }
}

/// What was sent before zero by all; times count from the first of them.
fn warm_up(logs: &[Survey]) -> Option<WarmUp> {
    let all = || logs.iter().filter_map(|log| log.manifest.warm_up.as_ref());
    let started_unix_ns = all().map(|own| own.started_unix_ns).min()?;
    let mut together = WarmUp { started_unix_ns, ..WarmUp::default() };
    for own in all() {
        let later_ns = (own.started_unix_ns - started_unix_ns).cast_signed();
        let later = |time: Option<i64>| time.map(|time| time.saturating_add(later_ns));
        together.ok += own.ok;
        together.requests.extend(own.requests.iter().cloned().map(|mut request| {
            request.sent_ns = later(request.sent_ns);
            request.first_token_ns = later(request.first_token_ns);
            request.done_ns = later(request.done_ns);
            request
        }));
    }
    Some(together)
}

fn tls(logs: &[Survey]) -> Option<Tls> {
    let all = || logs.iter().filter_map(|log| log.manifest.tls.as_ref());
    all().next()?;
    Some(Tls {
        version: joined(all().map(|tls| tls.version.as_str())),
        cipher: joined(all().map(|tls| tls.cipher.as_str())),
        verified: all().all(|tls| tls.verified),
        connections: all().map(|tls| tls.connections).fold(0, u32::saturating_add),
        resumed: all().map(|tls| tls.resumed).fold(0, u32::saturating_add),
    })
}

/// How it ended; `None` where one of the logs does not say.
pub(super) fn footer(logs: &[Survey], manifest: &Manifest) -> Option<Footer> {
    let all: Vec<&Footer> = logs.iter().filter_map(|log| log.footer.as_ref()).collect();
    if all.len() < logs.len() {
        return None;
    }
    let merged = manifest.merged.as_ref()?;
    let sum = |of: fn(&Footer) -> u64| all.iter().map(|own| of(own)).fold(0, u64::saturating_add);
    let mut cores = Vec::new();
    for (host, footer) in merged.hosts.iter().zip(&all) {
        let mut own = footer.cores.clone();
        own.resize(host.cores.len(), CoreTotals::default());
        cores.extend(own);
    }
    let given_up: Vec<String> = merged
        .hosts
        .iter()
        .zip(&all)
        .filter_map(|(host, own)| Some(format!("{}: {}", host.name(), own.given_up.as_ref()?)))
        .collect();
    Some(Footer {
        interrupted: all.iter().any(|own| own.interrupted),
        complete: all.iter().all(|own| own.complete) && merged.missing.is_empty(),
        records: sum(|own| own.records),
        requests_done: sum(|own| own.requests_done),
        lost_records: sum(|own| own.lost_records),
        closing: all.iter().map(|own| own.closing).max_by_key(|closing| closing.time_ns)?,
        cores,
        trace_sha256: None,
        given_up: (!given_up.is_empty()).then(|| given_up.join("; ")),
    })
}
