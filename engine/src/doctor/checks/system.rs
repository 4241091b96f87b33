//! The machine as a whole: kernel, hypervisor, clock, limits on CPU time, swap.

use crate::doctor::machine::{Counts, Facts};
use crate::doctor::parse::{self, Ticks};
use crate::doctor::{Finding, Level};
use crate::replayer::driver::DriverKind;

/// The first kernel whose io_uring has every operation that is needed.
const KERNEL_MIN: (u32, u32) = (5, 6);
/// The share of stolen time from which it shows in the median.
const STEAL_MAX: f64 = 0.01;
/// What helps against a hypervisor.
const OWN_MACHINE: &str = "measure on a machine, or on virtual CPUs, that nobody else is given";

/// The kernel's release.
#[must_use]
pub fn kernel(facts: &Facts) -> Finding {
    const CHECK: &str = "kernel";
    let Some(release) = facts.release.as_deref() else {
        return Finding::unknown(CHECK, "the kernel does not say its release");
    };
    match parse::kernel_version(release) {
        Some(version) if version < KERNEL_MIN => {
            Finding::new(CHECK, Level::Better, format!("{release}: too old for io_uring"))
                .help("use a kernel of 5.6 or newer; until then sockets are driven by epoll")
        }
        Some(_) => Finding::new(CHECK, Level::Ok, release),
        None => Finding::unknown(CHECK, release),
    }
    .fact("release", release)
}

/// Whether a hypervisor is underneath.
#[must_use]
pub fn virtual_machine(facts: &Facts) -> Finding {
    const CHECK: &str = "virtual_machine";
    let flags = facts.cpuinfo.as_deref().and_then(|info| {
        info.lines().find_map(|line| line.strip_prefix("flags")?.trim_start().strip_prefix(':'))
    });
    let Some(flags) = flags else {
        return Finding::unknown(CHECK, "the processor does not say");
    };
    if !flags.split_whitespace().any(|flag| flag == "hypervisor") {
        return Finding::new(CHECK, Level::Ok, "no").fact("virtual", false);
    }
    let product = facts.product.as_deref().map_or(String::new(), |name| format!(" ({name})"));
    let words = format!("yes{product}: the host may take a core away at any time");
    Finding::new(CHECK, Level::Better, words).help(OWN_MACHINE).fact("virtual", true)
}

/// How much time the hypervisor gave to others.
#[must_use]
pub fn steal(facts: &Facts, cpus: &[u16], after: Option<&Counts>) -> Finding {
    const CHECK: &str = "steal";
    let sum = |counts: &Counts| -> Option<Ticks> {
        let ticks = parse::ticks(counts.stat.as_deref()?);
        cpus.iter().filter_map(|cpu| ticks.get(cpu)).copied().reduce(|a, b| Ticks {
            total: a.total.saturating_add(b.total),
            steal: a.steal.saturating_add(b.steal),
        })
    };
    let (base, latest, span) = match after {
        Some(after) => (sum(&facts.counts), sum(after), "while measuring"),
        None => (Some(Ticks::default()), sum(&facts.counts), "since boot"),
    };
    let (Some(base), Some(latest)) = (base, latest) else {
        return Finding::unknown(CHECK, "/proc/stat does not say");
    };
    let total = latest.total.saturating_sub(base.total);
    let stolen = latest.steal.saturating_sub(base.steal);
    if total == 0 {
        return Finding::unknown(CHECK, "too short to tell");
    }
    #[expect(clippy::cast_precision_loss, reason = "a share of ticks, shown with two digits")]
    let share = stolen as f64 / total as f64;
    let level = match share {
        _ if stolen == 0 => Level::Ok,
        share if share < STEAL_MAX => Level::Better,
        _ => Level::Problem,
    };
    let words = format!("{:.2} % of the time {span}", share * 100.0);
    let finding = Finding::new(CHECK, level, words).fact("share", share).fact("counted", span);
    if level == Level::Ok { finding } else { finding.help(OWN_MACHINE) }
}

/// Whether a control group stops the process when it has used up its time.
#[must_use]
pub fn quota(facts: &Facts, cpus: &[u16]) -> Finding {
    const CHECK: &str = "cpu_quota";
    match &facts.quota {
        None => Finding::unknown(CHECK, "/proc/self/cgroup cannot be read"),
        Some(None) => Finding::new(CHECK, Level::Ok, "none"),
        Some(Some(quota)) => {
            // A pacing core polls all the time, and the log's writer needs some, too.
            let enough = usize_to_f64(cpus.len()) + 1.0 <= quota.cpus;
            let level = if enough { Level::Better } else { Level::Problem };
            let words = format!("{:.2} CPUs; every core stops when they are used up", quota.cpus);
            let file = quoted(&quota.file.to_string_lossy());
            Finding::new(CHECK, level, words)
                .command(format!("echo {} | sudo tee {file}", quota.lifted))
                .fact("cpus", quota.cpus)
        }
    }
}

/// What the kernel's clock is read from.
#[must_use]
pub fn clock_source(facts: &Facts) -> Finding {
    const CHECK: &str = "clock_source";
    let Some(source) = facts.clock_source.as_deref() else {
        return Finding::unknown(CHECK, "the kernel does not say");
    };
    let finding =
        |level, words: String| Finding::new(CHECK, level, words).fact("clock_source", source);
    if ["tsc", "arch_sys_counter"].contains(&source) {
        return finding(Level::Ok, source.to_owned());
    }
    // These are read without a system call, through a page of the hypervisor.
    let paged = ["kvm-clock", "hyperv_clocksource_tsc_page"].contains(&source);
    let level = if paged { Level::Better } else { Level::Problem };
    let words = format!("{source}: slower to read than the processor's own counter");
    let available = facts.clock_sources.as_deref().unwrap_or_default();
    if available.split_whitespace().any(|name| name == "tsc") {
        let folder = "/sys/devices/system/clocksource/clocksource0";
        return finding(level, words)
            .command(format!("echo tsc | sudo tee {folder}/current_clocksource"));
    }
    finding(level, words).help("none: this kernel does not trust the processor's counter")
}

/// Whether memory has been swapped out.
#[must_use]
pub fn swap(facts: &Facts) -> Finding {
    const CHECK: &str = "swap";
    match facts.swaps.as_deref().and_then(parse::swap_used_bytes) {
        None => Finding::unknown(CHECK, "/proc/swaps cannot be read"),
        Some(0) => Finding::new(CHECK, Level::Ok, "not in use").fact("used_bytes", 0),
        Some(bytes) => {
            let words = format!("{} MiB in use: a page may have to come from disk", bytes >> 20);
            Finding::new(CHECK, Level::Better, words)
                .command("sudo swapoff -a")
                .help("or keep Onbeat's own memory with replay --lock-memory")
                .fact("used_bytes", bytes)
        }
    }
}

/// How sockets would be driven, from the probe that a replay makes as well.
#[must_use]
pub fn io_uring(driver: DriverKind, refusal: Option<&str>, facts: &Facts) -> Finding {
    const CHECK: &str = "io_uring";
    if driver == DriverKind::IoUring {
        return Finding::new(CHECK, Level::Ok, "can be used").fact("driver", driver.name());
    }
    let words = refusal.unwrap_or("cannot be used").to_owned();
    let switched_off = facts.io_uring_disabled.as_deref().is_some_and(|value| value != "0");
    let finding = Finding::new(CHECK, Level::Better, words).fact("driver", driver.name());
    if switched_off {
        return finding.command("sudo sysctl -w kernel.io_uring_disabled=0");
    }
    finding.help("in a container: docker run --security-opt seccomp=unconfined ...")
}

#[expect(clippy::cast_precision_loss, reason = "a number of CPUs")]
fn usize_to_f64(count: usize) -> f64 {
    count as f64
}

/// A path as a shell takes it.
fn quoted(path: &str) -> String {
    let plain = |sign: char| sign.is_ascii_alphanumeric() || "/._-:@,".contains(sign);
    if path.chars().all(plain) {
        return path.to_owned();
    }
    format!("'{}'", path.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::machine::Quota;

    #[test]
    fn kernels_and_hypervisors() {
        let with = |release: &str| Facts { release: Some(release.into()), ..Facts::default() };
        assert_eq!(kernel(&with("6.18.5")).level, Level::Ok);
        assert_eq!(kernel(&with("5.4.0-generic")).level, Level::Better);
        assert_eq!(kernel(&with("strange")).level, Level::Unknown);
        let cpu = |flags: &str| Facts {
            cpuinfo: Some(format!("processor\t: 0\nflags\t\t: fpu {flags}\n")),
            product: Some("QEMU Standard PC".into()),
            ..Facts::default()
        };
        assert_eq!(virtual_machine(&cpu("sse2")).level, Level::Ok);
        let found = virtual_machine(&cpu("hypervisor sse2")).found;
        assert!(found.starts_with("yes (QEMU Standard PC)"), "{found}");
        assert_eq!(virtual_machine(&Facts::default()).level, Level::Unknown);
    }

    #[test]
    fn stolen_time_is_a_share_of_the_time_measured() {
        let counts = |idle, steal| Counts {
            interrupts: None,
            stat: Some(format!("cpu1 0 0 0 {idle} 0 0 0 {steal} 0 0")),
        };
        let facts = Facts { counts: counts(900, 100), ..Facts::default() };
        let level = |after: Option<&Counts>| steal(&facts, &[1], after).level;
        assert_eq!(level(None), Level::Problem);
        assert_eq!(level(Some(&counts(1_000, 100))), Level::Ok);
        assert_eq!(level(Some(&counts(1_999, 101))), Level::Better);
        assert_eq!(level(Some(&counts(900, 100))), Level::Unknown);
        assert_eq!(steal(&facts, &[7], None).level, Level::Unknown);
    }

    #[test]
    fn a_quota_is_lifted_where_it_was_set() {
        let with = |cpus| Facts {
            quota: Some(Some(Quota { cpus, file: "/sys/a b/cpu.max".into(), lifted: "max" })),
            ..Facts::default()
        };
        assert_eq!(quota(&with(4.0), &[3]).level, Level::Better);
        let tight = quota(&with(1.5), &[3]);
        assert_eq!(tight.level, Level::Problem);
        assert_eq!(tight.command.as_deref(), Some("echo max | sudo tee '/sys/a b/cpu.max'"));
        let free = Facts { quota: Some(None), ..Facts::default() };
        assert_eq!(quota(&free, &[3]).level, Level::Ok);
    }

    #[test]
    fn a_slow_clock_is_replaced_where_it_can_be() {
        let with = |current: &str, available: &str| Facts {
            clock_source: Some(current.into()),
            clock_sources: Some(available.into()),
            ..Facts::default()
        };
        assert_eq!(clock_source(&with("tsc", "tsc hpet")).level, Level::Ok);
        let slow = clock_source(&with("hpet", "tsc hpet acpi_pm"));
        assert_eq!(slow.level, Level::Problem);
        assert!(slow.command.expect("a command").starts_with("echo tsc"));
        assert_eq!(clock_source(&with("kvm-clock", "kvm-clock")).level, Level::Better);
    }

    #[test]
    fn swap_and_rings() {
        let swaps = |used: &str| Facts {
            swaps: Some(format!("Filename Type Size Used Priority\n/a file 9000 {used} -2")),
            io_uring_disabled: Some("2".into()),
            ..Facts::default()
        };
        assert_eq!(swap(&swaps("0")).level, Level::Ok);
        assert_eq!(swap(&swaps("4096")).found, "4 MiB in use: a page may have to come from disk");
        assert_eq!(io_uring(DriverKind::IoUring, None, &swaps("0")).level, Level::Ok);
        let refused = io_uring(DriverKind::Epoll, Some("forbidden"), &swaps("0"));
        assert_eq!(refused.command.as_deref(), Some("sudo sysctl -w kernel.io_uring_disabled=0"));
        let container = io_uring(DriverKind::Epoll, Some("forbidden"), &Facts::default());
        assert!(container.help.expect("words").contains("seccomp"));
    }
}
