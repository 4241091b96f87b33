//! The kernel's texts to values: what a line of `/proc` or `/sys` says, and nothing about whether
//! that is good.
//!
//! Every function takes text and returns `None` (or an empty list) for what it does not understand,
//! because these files differ between kernels. None of them reads a file.

use std::collections::BTreeMap;

/// The CPUs of a list like `0-2,5`; parts that are none are left out, and so is what lies beyond
/// the 65,536th CPU.
#[must_use]
pub fn cpu_list(text: &str) -> Vec<u16> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.trim().parse::<u16>(), last.trim().parse::<u16>()) {
            cpus.extend(first..=last);
        }
    }
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

/// A list like `0-2,5` of CPUs in ascending order; empty for none.
#[must_use]
pub fn list_text(cpus: &[u16]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut rest = cpus;
    while let Some(&first) = rest.first() {
        let run = (first..=u16::MAX).zip(rest).take_while(|(next, cpu)| next == *cpu).count();
        let last = rest[run - 1];
        parts.push(if run == 1 { first.to_string() } else { format!("{first}-{last}") });
        rest = &rest[run..];
    }
    parts.join(",")
}

/// The CPUs that a kernel parameter such as `isolcpus=` names; flags like `managed_irq,domain,` may
/// come first. `None`: the parameter was not given.
#[must_use]
pub fn kernel_parameter(command_line: &str, name: &str) -> Option<Vec<u16>> {
    let value = command_line
        .split_whitespace()
        .take_while(|word| *word != "--")
        .find_map(|word| word.strip_prefix(name)?.strip_prefix('='))?;
    Some(cpu_list(value))
}

/// The value after `name:` in a file of such lines, such as `/proc/self/status`.
#[must_use]
pub fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// Whether the effective capabilities of `/proc/self/status` have bit `bit`.
#[must_use]
pub fn capability(status: &str, bit: u32) -> Option<bool> {
    let effective = u64::from_str_radix(field(status, "CapEff")?, 16).ok()?;
    Some(effective >> bit & 1 == 1)
}

/// A limit of a process; `None` inside means unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// What holds now.
    pub soft: Option<u64>,
    /// How far the process may raise it itself.
    pub hard: Option<u64>,
}

/// One row of `/proc/self/limits`, by its title.
#[must_use]
pub fn limit(text: &str, title: &str) -> Option<Limit> {
    let row = text.lines().find_map(|line| line.strip_prefix(title))?;
    let mut values = row.split_whitespace().map(|word| match word {
        "unlimited" => Some(None),
        number => number.parse().ok().map(Some),
    });
    Some(Limit { soft: values.next()??, hard: values.next()?? })
}

/// First and last local port.
#[must_use]
pub fn port_range(text: &str) -> Option<(u16, u16)> {
    let mut words = text.split_whitespace().map(str::parse);
    let (first, last) = (words.next()?.ok()?, words.next()?.ok()?);
    (first <= last).then_some((first, last))
}

/// Major and minor number of a kernel release.
#[must_use]
pub fn kernel_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.trim().split(|sign: char| !sign.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Scheduling policy and real-time priority of `/proc/self/stat`, as the kernel numbers them.
#[must_use]
pub fn scheduling(stat: &str) -> Option<Scheduling> {
    // The second field is the program's name in brackets and may hold anything.
    let mut after_name = stat.get(stat.rfind(')')? + 1..)?.split_whitespace();
    let nice = after_name.nth(16)?.parse().ok()?;
    let priority = after_name.nth(20)?.parse().ok()?;
    let policy = after_name.next()?.parse().ok()?;
    Some(Scheduling { policy, priority, nice })
}

/// How a thread is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduling {
    /// The class, by the kernel's number.
    pub policy: u32,
    /// The priority within a real-time class; 0 outside of one.
    pub priority: u32,
    /// How far others go first outside of one: -20 to 19.
    pub nice: i32,
}

/// Ticks of one CPU, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticks {
    /// In all states.
    pub total: u64,
    /// In which the hypervisor ran something else.
    pub steal: u64,
}

/// The ticks of every `cpuN` line of `/proc/stat`, by number.
#[must_use]
pub fn ticks(stat: &str) -> BTreeMap<u16, Ticks> {
    let mut found = BTreeMap::new();
    for line in stat.lines() {
        let mut words = line.split_whitespace();
        let Some(cpu) = words.next().and_then(|name| name.strip_prefix("cpu")?.parse().ok()) else {
            continue;
        };
        // User, nice, system, idle, iowait, irq, softirq, steal; guest time is in user already.
        let states: Vec<u64> = words.take(8).map_while(|word| word.parse().ok()).collect();
        if let Some(&steal) = states.get(7) {
            let total = states.iter().fold(0_u64, |sum, ticks| sum.saturating_add(*ticks));
            found.insert(cpu, Ticks { total, steal });
        }
    }
    found
}

/// One row of `/proc/interrupts`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// A number for a device's, a word such as `LOC` for the processor's own.
    pub id: String,
    /// Who it is for, as far as the kernel says.
    pub name: String,
    /// Since boot, by CPU.
    pub counts: BTreeMap<u16, u64>,
}

/// The rows of `/proc/interrupts`.
#[must_use]
pub fn interrupts(text: &str) -> Vec<Interrupt> {
    let mut lines = text.lines();
    let columns: Vec<u16> = lines
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|title| title.strip_prefix("CPU")?.parse().ok())
        .collect();
    let row = |line: &str| {
        let (id, rest) = line.split_once(':')?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        let counts: BTreeMap<u16, u64> = columns
            .iter()
            .zip(&words)
            .map_while(|(&cpu, word)| Some((cpu, word.parse().ok()?)))
            .collect();
        let name = words.get(counts.len()..).and_then(<[&str]>::last).unwrap_or(&"");
        Some(Interrupt { id: id.trim().to_owned(), name: (*name).to_owned(), counts })
    };
    lines.filter_map(row).collect()
}

/// Bytes of swap in use, from `/proc/swaps`.
#[must_use]
pub fn swap_used_bytes(text: &str) -> Option<u64> {
    let mut lines = text.lines();
    let place = lines.next()?.split_whitespace().position(|title| title == "Used")?;
    let kibibytes = lines
        .filter_map(|line| line.split_whitespace().nth(place)?.parse::<u64>().ok())
        .fold(0_u64, u64::saturating_add);
    Some(kibibytes.saturating_mul(1024))
}

/// CPUs' worth of time that a control group may use, from its `cpu.max`; `None`: no limit.
#[must_use]
pub fn quota(cpu_max: &str) -> Option<f64> {
    let mut words = cpu_max.split_whitespace();
    quota_of(words.next()?, words.next()?)
}

/// The same from the two files of the older interface, where −1 is no limit.
#[must_use]
pub fn quota_of(quota_us: &str, period_us: &str) -> Option<f64> {
    let quota: u32 = quota_us.trim().parse().ok()?;
    let period: u32 = period_us.trim().parse().ok()?;
    (period > 0).then(|| f64::from(quota) / f64::from(period))
}

/// Folders of control groups in `/proc/self/cgroup`: of the unified hierarchy and of the older
/// `cpu` one.
#[must_use]
pub fn control_groups(text: &str) -> (Option<&str>, Option<&str>) {
    (control_group(text, ""), control_group(text, "cpu"))
}

/// The group of one controller in the older hierarchies; of no name in the unified one.
#[must_use]
pub fn control_group<'a>(text: &'a str, controller: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (_number, rest) = line.split_once(':')?;
        let (names, path) = rest.split_once(':')?;
        names.split(',').any(|name| name == controller).then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_read_and_write() {
        assert_eq!(cpu_list("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(cpu_list("managed_irq,domain,3-4"), [3, 4]);
        assert!(cpu_list("").is_empty());
        assert!(cpu_list("(null)\n").is_empty());
        assert_eq!(list_text(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!(list_text(&[u16::MAX]), "65535");
        assert_eq!(list_text(&[]), "");
    }

    #[test]
    fn kernel_parameters_end_where_those_of_init_begin() {
        let line = "quiet isolcpus=managed_irq,2-3 nohz_full=3 -- nohz_full=9";
        assert_eq!(kernel_parameter(line, "isolcpus"), Some(vec![2, 3]));
        assert_eq!(kernel_parameter(line, "nohz_full"), Some(vec![3]));
        assert_eq!(kernel_parameter("quiet -- nohz_full=9", "nohz_full"), None);
    }

    #[test]
    fn status_and_limits() {
        let status = "Name:\tx\nCapEff:\t0000000000004000\nCpus_allowed_list:\t0-1\n";
        assert_eq!(capability(status, 14), Some(true));
        assert_eq!(capability(status, 23), Some(false));
        assert_eq!(capability("Name:\tx\n", 14), None);
        assert_eq!(field(status, "Cpus_allowed_list"), Some("0-1"));
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
             Max open files            1024                 524288               files\n\
             Max locked memory         8388608              unlimited            bytes\n";
        let files = Limit { soft: Some(1024), hard: Some(524_288) };
        assert_eq!(limit(limits, "Max open files"), Some(files));
        let locked = Limit { soft: Some(8_388_608), hard: None };
        assert_eq!(limit(limits, "Max locked memory"), Some(locked));
        assert_eq!(limit(limits, "Max nothing"), None);
    }

    #[test]
    fn small_files() {
        assert_eq!(port_range("32768\t60999\n"), Some((32_768, 60_999)));
        assert_eq!(port_range("9 1"), None);
        assert_eq!(kernel_version("6.18.5-rt+\n"), Some((6, 18)));
        assert_eq!(kernel_version("Darwin"), None);
        assert_eq!(quota("150000 100000\n"), Some(1.5));
        assert_eq!(quota("max 100000\n"), None);
        assert_eq!(quota_of("-1\n", "100000\n"), None);
        assert_eq!(quota_of("1\n", "0\n"), None);
        assert_eq!(swap_used_bytes("Filename Type Size Used Priority\n"), Some(0));
        let swaps = "Filename Type Size Used Priority\n/a partition 90 4 -2\n/b file 90 6 -3\n";
        assert_eq!(swap_used_bytes(swaps), Some(10_240));
        let text = "4:cpu,cpuacct:/a:b\n9:memory:/m\n0::/c\n";
        assert_eq!(control_groups(text), (Some("/c"), Some("/a:b")));
        assert_eq!(control_group(text, "memory"), Some("/m"));
        assert_eq!(control_group(text, "pids"), None);
    }

    #[test]
    fn the_policy_stands_after_a_name_that_may_hold_anything() {
        let fields = (3..=52).map(|field| match field {
            19 => "-3".to_owned(),
            40 => "50".to_owned(),
            41 => "1".to_owned(),
            _ => "7".to_owned(),
        });
        let stat = format!("42 (a) b 1) {}", fields.collect::<Vec<_>>().join(" "));
        assert_eq!(scheduling(&stat), Some(Scheduling { policy: 1, priority: 50, nice: -3 }));
        assert_eq!(scheduling("42 (a"), None);
    }

    #[test]
    fn ticks_and_interrupts_by_cpu() {
        let stat =
            "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 1 1 1 1 1 1 1 5 5\ncpu1 2 0 0 0 0 0 0 0\nintr 7\n";
        let found = ticks(stat);
        assert_eq!(found[&0], Ticks { total: 8, steal: 1 });
        assert_eq!(found[&1], Ticks { total: 2, steal: 0 });
        assert_eq!(found.len(), 2);
        let text = "           CPU0       CPU2\n 24:  1  20  IO-APIC 5-edge  eth0-rx\nLOC:  3  4  \
             Local timer interrupts\nERR:  5\n";
        let rows = interrupts(text);
        assert_eq!(rows[0].counts, BTreeMap::from([(0, 1), (2, 20)]));
        assert_eq!((rows[0].id.as_str(), rows[0].name.as_str()), ("24", "eth0-rx"));
        assert_eq!(rows[1].id, "LOC");
        assert_eq!(rows[2].counts, BTreeMap::from([(0, 5)]));
    }
}
