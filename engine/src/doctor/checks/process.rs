//! What this process may do: its scheduling class, and its limits on memory, files and ports.

use crate::doctor::machine::Facts;
use crate::doctor::parse::{self, Limit};
use crate::doctor::{Finding, Level};

/// The capability to lock memory without limit.
const CAP_IPC_LOCK: u32 = 14;
/// Open files below which a large run finds no room; each connection is one.
const FILES_GOOD: u64 = 32_768;
/// Open files below which most runs do.
const FILES_FEW: u64 = 1_024;
/// Local ports from which no run here has run out.
const PORTS_GOOD: u32 = 20_000;
/// Local ports below which most runs do.
const PORTS_FEW: u32 = 1_024;

/// Whether pacing under a real-time class would be stopped by its throttle.
#[must_use]
pub fn scheduler(facts: &Facts) -> Finding {
    const CHECK: &str = "scheduler";
    let Some(found) = facts.process_stat.as_deref().and_then(parse::scheduling) else {
        return Finding::unknown(CHECK, "/proc/self/stat cannot be read");
    };
    let parse::Scheduling { policy, priority, nice } = found;
    let runtime = facts.rt_runtime_us.as_deref().and_then(|text| text.parse::<i64>().ok());
    let name = match policy {
        0 => "SCHED_OTHER",
        1 => "SCHED_FIFO",
        2 => "SCHED_RR",
        3 => "SCHED_BATCH",
        5 => "SCHED_IDLE",
        6 => "SCHED_DEADLINE",
        _ => "another class",
    };
    let finding = |level, words: String| {
        Finding::new(CHECK, level, words)
            .fact("policy", name)
            .fact("nice", nice)
            .fact("rt_runtime_us", runtime.map_or(serde_json::Value::Null, Into::into))
    };
    match (policy, runtime) {
        (1 | 2, Some(-1)) => finding(Level::Ok, format!("{name} {priority}, not throttled")),
        (1 | 2, _) => {
            let words =
                format!("{name} {priority}: a core that polls is throttled, 50 ms a second");
            finding(Level::Problem, words).command("sudo sysctl -w kernel.sched_rt_runtime_us=-1")
        }
        (3 | 5, _) => finding(Level::Problem, format!("{name}: everything else goes first"))
            .command("chrt --other 0 onbeat replay ..."),
        (0, _) if nice > 0 => {
            finding(Level::Problem, format!("{name}, nice {nice}: everything else goes first"))
                .command("sudo renice --priority 0 --pid $$")
        }
        _ => finding(Level::Ok, name.to_owned()),
    }
}

/// How much memory may be locked.
#[must_use]
pub fn locked_memory(facts: &Facts) -> Finding {
    const CHECK: &str = "locked_memory";
    let Some(limit) = limit(facts, "Max locked memory") else {
        return Finding::unknown(CHECK, "/proc/self/limits cannot be read");
    };
    let capable = facts.status.as_deref().and_then(|text| parse::capability(text, CAP_IPC_LOCK));
    let finding = |level, words: String| {
        Finding::new(CHECK, level, words)
            .fact("soft_bytes", limit.soft.map_or(serde_json::Value::Null, Into::into))
            .fact("hard_bytes", limit.hard.map_or(serde_json::Value::Null, Into::into))
            .fact("capable", capable.map_or(serde_json::Value::Null, Into::into))
    };
    // A replay raises the soft limit itself.
    match limit.hard {
        None => finding(Level::Ok, "unlimited".to_owned()),
        Some(_) if capable == Some(true) => {
            finding(Level::Ok, "unlimited for this process (CAP_IPC_LOCK)".to_owned())
        }
        Some(bytes) => {
            let words = format!("{} KiB: too little for replay --lock-memory", bytes >> 10);
            finding(Level::Better, words).command("sudo prlimit --memlock=unlimited --pid $$")
        }
    }
}

/// How many connections may be open.
#[must_use]
pub fn open_files(facts: &Facts) -> Finding {
    const CHECK: &str = "open_files";
    let Some(limit) = limit(facts, "Max open files") else {
        return Finding::unknown(CHECK, "/proc/self/limits cannot be read");
    };
    let text = |value: Option<u64>| value.map_or("unlimited".to_owned(), |files| files.to_string());
    // A replay raises the soft limit itself.
    let level = match limit.hard {
        Some(files) if files < FILES_FEW => Level::Problem,
        Some(files) if files < FILES_GOOD => Level::Better,
        _ => Level::Ok,
    };
    let words = if limit.soft == limit.hard {
        format!("{}, which is also the most a replay may ask for", text(limit.soft))
    } else {
        format!("{}, raised by a replay to {}", text(limit.soft), text(limit.hard))
    };
    let finding = Finding::new(CHECK, level, words)
        .fact("soft", limit.soft.map_or(serde_json::Value::Null, Into::into))
        .fact("hard", limit.hard.map_or(serde_json::Value::Null, Into::into));
    if level == Level::Ok {
        return finding;
    }
    finding.command("sudo prlimit --nofile=1048576 --pid $$")
}

/// How many connections one address may have.
#[must_use]
pub fn local_ports(facts: &Facts) -> Finding {
    const CHECK: &str = "local_ports";
    let Some((first, last)) = facts.ports.as_deref().and_then(parse::port_range) else {
        return Finding::unknown(CHECK, "the kernel does not say");
    };
    let count = u32::from(last) - u32::from(first) + 1;
    let level = match count {
        0..PORTS_FEW => Level::Problem,
        PORTS_FEW..PORTS_GOOD => Level::Better,
        _ => Level::Ok,
    };
    let words = format!(
        "{first} to {last}: {count} connections to one server from each address of this host \
         (--local-address)"
    );
    let finding = Finding::new(CHECK, level, words).fact("connections", count);
    if level == Level::Ok {
        return finding;
    }
    finding.command("sudo sysctl -w net.ipv4.ip_local_port_range=\"10000 65535\"")
}

fn limit(facts: &Facts, title: &str) -> Option<Limit> {
    parse::limit(facts.limits.as_deref()?, title)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(policy: u32, priority: u32, nice: i32) -> Option<String> {
        let fields = (3..=41).map(|field| match field {
            19 => nice.to_string(),
            40 => priority.to_string(),
            41 => policy.to_string(),
            _ => "0".to_owned(),
        });
        Some(format!("1 (onbeat) {}", fields.collect::<Vec<_>>().join(" ")))
    }

    #[test]
    fn the_real_time_throttle_is_a_trap() {
        let with = |policy, runtime: &str| Facts {
            process_stat: stat(policy, 50, 0),
            rt_runtime_us: Some(runtime.into()),
            ..Facts::default()
        };
        assert_eq!(scheduler(&with(0, "950000")).level, Level::Ok);
        assert_eq!(scheduler(&with(1, "-1")).level, Level::Ok);
        let trapped = scheduler(&with(1, "950000"));
        assert_eq!(trapped.level, Level::Problem);
        assert_eq!(
            trapped.command.as_deref(),
            Some("sudo sysctl -w kernel.sched_rt_runtime_us=-1")
        );
        assert_eq!(scheduler(&with(5, "950000")).level, Level::Problem);
        assert_eq!(scheduler(&Facts::default()).level, Level::Unknown);
    }

    #[test]
    fn a_process_that_lets_others_go_first_is_told() {
        let with = |nice| Facts { process_stat: stat(0, 0, nice), ..Facts::default() };
        assert_eq!(scheduler(&with(-5)).level, Level::Ok);
        let nice = scheduler(&with(5));
        assert_eq!(nice.level, Level::Problem);
        assert_eq!(nice.found, "SCHED_OTHER, nice 5: everything else goes first");
        assert!(nice.command.is_some_and(|command| command.contains("renice")));
    }

    fn limits(title: &str, soft: &str, hard: &str, capabilities: &str) -> Facts {
        Facts {
            limits: Some(format!("{title}         {soft}       {hard}    units")),
            status: Some(format!("CapEff:\t{capabilities}")),
            ..Facts::default()
        }
    }

    #[test]
    fn memory_may_be_locked_without_limit_or_with_a_capability() {
        let title = "Max locked memory";
        let judge = |soft, hard, caps| locked_memory(&limits(title, soft, hard, caps));
        assert_eq!(judge("unlimited", "unlimited", "0").level, Level::Ok);
        assert_eq!(judge("8388608", "8388608", "4000").level, Level::Ok);
        let small = judge("8388608", "8388608", "0");
        assert_eq!(small.found, "8192 KiB: too little for replay --lock-memory");
        assert!(small.command.expect("a command").starts_with("sudo prlimit"));
        assert_eq!(judge("8388608", "unlimited", "0").level, Level::Ok);
    }

    #[test]
    fn files_and_ports() {
        let files = |hard| open_files(&limits("Max open files", "100", hard, "0")).level;
        assert_eq!(files("1048576"), Level::Ok);
        assert_eq!(files("20000"), Level::Better);
        assert_eq!(files("512"), Level::Problem);
        let ports =
            |range: &str| local_ports(&Facts { ports: Some(range.into()), ..Facts::default() });
        assert_eq!(ports("32768\t60999").facts["connections"], 28_232);
        assert_eq!(ports("32768\t60999").level, Level::Ok);
        assert_eq!(ports("32768 40000").level, Level::Better);
        assert_eq!(ports("1 1").level, Level::Problem);
        assert_eq!(ports("").level, Level::Unknown);
    }
}
