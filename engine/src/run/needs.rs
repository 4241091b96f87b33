//! What this run is about to need, from its plan, and what this host has of it: read before zero
//! and held against each other in [`crate::doctor::needs`].
//!
//! How many connections a schedule needs depends on a server that nobody has measured, so that is a
//! guess and said to be one. Users may each have a request under way. Only what is sure to fail is
//! refused; everything else is said and goes on.

use std::fs;
use std::path::Path;

use onbeat_shared::foreign::shown_path;
use onbeat_shared::log::block::BLOCK_BYTES;
use onbeat_shared::log::plan_row::PlanRow;
use onbeat_shared::units::{CoreIndex, NANOS_PER_SECOND};
use rustix::process::{Resource, getrlimit};

use crate::conductor::{Watch, footprint, host, warm_connections};
use crate::doctor::needs::{Left, Needs, Room, judge, refusal, told};
use crate::doctor::{Finding, parse};
use crate::error::EngineError;
use crate::plan::Plan;
use crate::policy::reuse::Strategy;
use crate::run::RunConfig;

/// Memory of one connection, measured with 18,000 open streams and rounded up.
const CONNECTION_BYTES: u64 = 32 << 10;
/// Address space of one: its buffers whole, most of which is never touched.
const CONNECTION_SPACE: u64 = 112 << 10;
/// Bytes in the log of a request's row in the plan and its end, which every request has.
const REQUEST_LEAST: u64 = 80 + 32;
/// Bytes of all else that a request has there, and of its session's name and prefix.
const REQUEST_MORE: u64 = 6 * 32 + 64;
/// Bytes of one token, where it is read by itself.
const TOKEN_BYTES: u64 = 32;
/// Tokens of an answer where the plan does not say.
const TOKENS: u64 = 128;
/// How long a port is taken after its connection was closed by us.
const LINGER_NS: i64 = 60 * NANOS_PER_SECOND;

/// Holds what the run needs against what there is: what is too little is said.
///
/// # Errors
/// When the run is sure to fail for it.
pub(super) fn check(
    config: &RunConfig,
    plan: &Plan,
    cores: usize,
    by_users: bool,
    watch: &mut dyn Watch,
) -> Result<Vec<Finding>, EngineError> {
    let (needs, room) = (needs(config, plan, cores, by_users), room(&config.output));
    if let Some(words) = refusal(&needs, &room) {
        return Err(EngineError::Run(words));
    }
    let findings = judge(&needs, &room);
    findings.iter().filter_map(told).for_each(|words| watch.say(&words));
    Ok(findings)
}

fn needs(config: &RunConfig, plan: &Plan, cores: usize, by_users: bool) -> Needs {
    let servers = 1 + config.more_targets.len();
    let guessed = if by_users { vec![users(config)] } else { guess(config, plan, cores, servers) };
    let wanted = guessed.iter().sum::<u64>().max(usize_to_u64(config.warm_connections));
    let cap = config.max_connections.map_or(u64::MAX, |most| most as u64);
    let connections = wanted.min(cap);
    let is_local = config.way.unix_socket.is_some();
    let opened = match config.reuse {
        Strategy::Never if !by_users => lingering(config, plan, servers),
        _ => 0,
    };
    let ports = guessed.iter().copied().max().unwrap_or(0).min(cap).saturating_add(opened);
    let rows = plan.rows.len() as u64;
    let tokens = |row: &PlanRow| row.max_tokens.map_or(TOKENS, u64::from);
    let tokens: u64 = plan.rows.iter().map(tokens).sum();
    let tokens = if config.render.streaming { tokens } else { 0 };
    let expected = rows * (REQUEST_LEAST + REQUEST_MORE) + tokens.saturating_mul(TOKEN_BYTES);
    let log_blocks = blocks_bytes(config.memory, cores);
    Needs {
        connections,
        is_guess: !by_users && config.warm_connections.is_none_or(|warm| connections > warm as u64),
        other_files: host::other_files(cores),
        cores: cores as u64,
        ports: (!is_local).then_some(ports),
        addresses: config.way.local_addresses.len().max(1) as u64,
        log_least: if by_users { 0 } else { rows * REQUEST_LEAST },
        log_expected: (!by_users || !config.users.recycle).then_some(expected),
        memory: connections * CONNECTION_BYTES + log_blocks,
        address_space: connections * CONNECTION_SPACE + log_blocks,
    }
}

/// Memory of all cores' log blocks, which are there from the start.
fn blocks_bytes(budget: Option<u64>, cores: usize) -> u64 {
    (footprint::log_blocks(budget, cores) * BLOCK_BYTES * cores) as u64
}

fn usize_to_u64(count: Option<usize>) -> u64 {
    count.map_or(0, |count| count as u64)
}

/// Connections to each server, by the guess that the warm-up goes by, without its cap.
fn guess(config: &RunConfig, plan: &Plan, cores: usize, servers: usize) -> Vec<u64> {
    let mut sums = vec![0; servers];
    for core in 0..u16::try_from(cores).unwrap_or(u16::MAX) {
        let core = CoreIndex(core);
        let own = warm_connections::overlapping(&plan.rows, core, servers, config.reuse);
        sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += own as u64);
    }
    sums
}

/// Every user may have a request under way, as far as limits allow.
fn users(config: &RunConfig) -> u64 {
    let users = config.users.max_users.max(config.users.start_users);
    let limit = match config.users.limits.concurrent {
        0 => u32::MAX,
        limit => limit,
    };
    users.min(limit).into()
}

/// The most connections to one server that we closed a moment ago, whose ports are not free yet.
fn lingering(config: &RunConfig, plan: &Plan, servers: usize) -> u64 {
    let reuse = fs::read_to_string("/proc/sys/net/ipv4/tcp_tw_reuse").unwrap_or_default();
    let is_loopback = config.targets().all(|target| {
        ["localhost", "[::1]"].contains(&target.host()) || target.host().starts_with("127.")
    });
    let again = match reuse.trim() {
        "1" => true,
        "2" => is_loopback,
        _ => false,
    };
    let linger_ns = if again { NANOS_PER_SECOND } else { LINGER_NS };
    let of = |server: usize| most_within(&plan.rows, server, linger_ns);
    (0..servers).map(of).max().unwrap_or(0)
}

/// The most requests to one server that are due within `span_ns`.
fn most_within(rows: &[PlanRow], server: usize, span_ns: i64) -> u64 {
    let own = rows.iter().filter(|row| usize::from(row.target) == server);
    let mut due: Vec<i64> = own.filter_map(|row| Some(row.due?.0)).collect();
    due.sort_unstable();
    let (mut first, mut most) = (0, 0);
    for (last, &at) in due.iter().enumerate() {
        while at.saturating_sub(due[first]) >= span_ns {
            first += 1;
        }
        most = most.max(last - first + 1);
    }
    most as u64
}

fn room(output: &Path) -> Room {
    let setting = |name: &str| fs::read_to_string(format!("/proc/sys/{name}")).ok();
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    Room {
        files: Some(host::raise_files()),
        files_most: setting("fs/nr_open").and_then(|text| text.trim().parse().ok()),
        ports: setting("net/ipv4/ip_local_port_range").as_deref().and_then(|range| {
            let reserved = setting("net/ipv4/ip_local_reserved_ports").unwrap_or_default();
            ports_of(range, &reserved)
        }),
        disk: free_at(folder),
        file_size: getrlimit(Resource::Fsize).current,
        folder: shown_path(folder).to_string(),
        memory: memory_left(),
        address_space: [(Resource::As, "VmSize"), (Resource::Data, "VmData")]
            .into_iter()
            .filter_map(|(limit, used)| {
                Some(getrlimit(limit).current?.saturating_sub(status_bytes(&status, used)?))
            })
            .min(),
    }
}

/// Ports of a range that are not kept for others.
fn ports_of(range: &str, reserved: &str) -> Option<u64> {
    let (first, last) = parse::port_range(range)?;
    let kept = parse::cpu_list(reserved);
    let kept = kept.iter().filter(|port| (first..=last).contains(port)).count() as u64;
    Some((u64::from(last) - u64::from(first) + 1).saturating_sub(kept))
}

/// Bytes that are free for a file in `folder`; `None` where the system does not say, as where there
/// is no disk behind it.
fn free_at(folder: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(folder).ok().filter(|found| found.f_blocks > 0)?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

/// A size in `/proc/self/status`.
fn status_bytes(status: &str, name: &str) -> Option<u64> {
    let kibibytes = parse::field(status, name)?.strip_suffix("kB")?.trim().parse::<u64>().ok()?;
    kibibytes.checked_mul(1024)
}

/// What the host has left, or the tightest control group of this process.
fn memory_left() -> Option<Left> {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let host = status_bytes(&meminfo, "MemAvailable").map(|bytes| Left {
        bytes,
        group: None,
        limit: bytes,
    });
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let unified = parse::control_groups(&groups).0.map(|own| (&UNIFIED, own));
    let older = parse::control_group(&groups, "memory").map(|own| (&OLDER, own));
    let groups = [unified, older].into_iter().flatten().flat_map(|(files, own)| {
        let own = Path::new(own.trim_start_matches('/'));
        own.ancestors().filter_map(|group| files.left(&Path::new(files.root).join(group)))
    });
    host.into_iter().chain(groups).min_by_key(|left| left.bytes)
}

/// What control groups call their numbers.
struct GroupFiles {
    root: &'static str,
    limit: &'static str,
    used: &'static str,
    /// In `memory.stat`: what is used for nothing but to have read it.
    idle: &'static str,
}

const UNIFIED: GroupFiles = GroupFiles {
    root: "/sys/fs/cgroup",
    limit: "memory.max",
    used: "memory.current",
    idle: "inactive_file",
};
const OLDER: GroupFiles = GroupFiles {
    root: "/sys/fs/cgroup/memory",
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    idle: "total_inactive_file",
};

impl GroupFiles {
    /// What the group of this folder has left; `None` if it has no limit.
    fn left(&self, folder: &Path) -> Option<Left> {
        let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let (limit, used) = (number(&read(self.limit)?)?, number(&read(self.used)?)?);
        let stat = read("memory.stat").unwrap_or_default();
        let idle = stat.lines().find_map(|line| line.strip_prefix(self.idle)).and_then(number);
        let group = Some(folder.join(self.limit).display().to_string());
        let used = used.saturating_sub(idle.unwrap_or(0));
        Some(Left { bytes: limit.saturating_sub(used), group, limit })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::policy::session::tests::row as planned;
    use crate::replayer::sink::{Exchange, Sink};

    fn row(due_s: i64, target: u16) -> PlanRow {
        PlanRow { target, ..planned(0, Some(due_s * NANOS_PER_SECOND), None, 0) }
    }

    #[test]
    fn ports_linger_by_server_and_time() {
        let rows = [row(0, 0), row(59, 0), row(60, 0), row(61, 1), row(200, 0)];
        assert_eq!(most_within(&rows, 0, LINGER_NS), 2);
        assert_eq!(most_within(&rows, 1, LINGER_NS), 1);
        assert_eq!(most_within(&[], 0, LINGER_NS), 0);
    }

    #[test]
    fn ports_that_are_kept_for_others_do_not_count() {
        assert_eq!(ports_of("32768\t60999", ""), Some(28_232));
        assert_eq!(ports_of("100 199", "90,100,150-159"), Some(89));
        assert_eq!(ports_of("none", ""), None);
    }

    #[test]
    fn a_place_without_a_disk_is_not_a_full_one() {
        assert_eq!(free_at(Path::new("/proc")), None);
        assert!(free_at(&std::env::temp_dir()).is_some());
    }

    #[test]
    fn log_blocks_are_counted_with_all_the_memory_they_take() {
        let now = || crate::render::resident().expect("Linux says").now;
        let before = now();
        let exchange = Arc::new(Exchange::new(CoreIndex(0), footprint::log_blocks(None, 1)));
        let sink = Sink::new(exchange);
        // Other tests may take some meanwhile.
        let taken = now().saturating_sub(before).min(64 << 20);
        drop(sink);
        assert!(taken <= blocks_bytes(None, 1), "{taken} bytes of {}", blocks_bytes(None, 1));
        assert_eq!(blocks_bytes(None, 2), 2 * blocks_bytes(None, 1));
    }

    #[test]
    fn a_control_group_of_either_kind_leaves_what_its_files_do_not_hold() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            fs::write(folder.path().join(name), text).expect("room");
        };
        write("memory.stat", "anon 5\ninactive_file 300\ntotal_inactive_file 100\n");
        write("memory.max", "max\n");
        write("memory.current", "700\n");
        assert_eq!(UNIFIED.left(folder.path()), None, "no limit");
        write("memory.max", "1000\n");
        let left = UNIFIED.left(folder.path()).expect("a limit");
        assert_eq!((left.bytes, left.limit), (600, 1_000));
        assert!(left.group.is_some_and(|group| group.ends_with("/memory.max")));
        assert_eq!(OLDER.left(folder.path()), None, "the other kind's files");
        write("memory.limit_in_bytes", "1000\n");
        write("memory.usage_in_bytes", "950\n");
        assert_eq!(OLDER.left(folder.path()).map(|left| left.bytes), Some(150));
    }

    #[test]
    fn this_host_says_what_it_has() {
        let room = room(Path::new("run.beat"));
        assert!(room.files.is_some_and(|files| files > 0));
        assert!(room.disk.is_some() && room.memory.is_some(), "{room:?}");
        assert_eq!(room.folder, ".");
    }
}
