//! The CPUs that pace: which, how fast, whom they share with, and who interrupts them.

use crate::doctor::machine::{Counts, Facts};
use crate::doctor::parse::{self, cpu_list, list_text};
use crate::doctor::{Finding, Level};

use super::named;

/// Device interrupts on the pacing cores during the measurement above which they are a problem.
const INTERRUPTS_MAX: u64 = 1_000;
/// Most interrupts that one command names.
const INTERRUPTS_NAMED: usize = 8;

/// Which CPUs pace, and whether one is left for everything else.
#[must_use]
pub fn choice(facts: &Facts, cpus: &[u16]) -> Finding {
    const CHECK: &str = "cpus";
    let Some(allowed) = allowed(facts) else {
        return Finding::unknown(CHECK, format!("{} would pace", named(cpus)));
    };
    let fact = |finding: Finding| finding.fact("allowed", list_text(&allowed));
    let may = format!("{} would pace, of {} that may be used", named(cpus), list_text(&allowed));
    let beyond: Vec<u16> = cpus.iter().copied().filter(|cpu| !allowed.contains(cpu)).collect();
    if !beyond.is_empty() {
        return fact(not_allowed(facts, cpus, &allowed, &beyond));
    }
    if allowed.iter().any(|cpu| !cpus.contains(cpu)) {
        return fact(Finding::new(CHECK, Level::Ok, may));
    }
    let words = format!("{may}: none is left for the log, the system and the server");
    let help = "allow one more CPU (taskset, the cpuset, docker --cpuset-cpus), or pace on fewer";
    fact(Finding::new(CHECK, Level::Problem, words).help(help))
}

/// CPUs that a replay would refuse: they do not exist, or this process has to ask for them first.
fn not_allowed(facts: &Facts, cpus: &[u16], allowed: &[u16], beyond: &[u16]) -> Finding {
    let online = facts.online.as_deref().map(cpu_list).unwrap_or_default();
    let words =
        format!("{} may not be used, only {}: a replay is refused", named(beyond), named(allowed));
    let finding = Finding::new("cpus", Level::Problem, words);
    if !beyond.iter().all(|cpu| online.contains(cpu)) {
        return finding.help("name CPUs that there are (--cores)");
    }
    let mut both = [allowed, beyond].concat();
    both.sort_unstable();
    let (both, list) = (list_text(&both), list_text(cpus));
    finding.command(format!("taskset -c {both} onbeat replay --cores {list} ..."))
}

/// Whether the pacing cores run at full speed.
#[must_use]
pub fn governor(facts: &Facts) -> Finding {
    const CHECK: &str = "governor";
    let known: Vec<(u16, &str)> =
        facts.cpus.iter().filter_map(|cpu| Some((cpu.number, cpu.governor.as_deref()?))).collect();
    if known.is_empty() {
        return Finding::unknown(CHECK, "frequency scaling is not visible here");
    }
    let slow: Vec<u16> =
        known.iter().filter(|(_, name)| *name != "performance").map(|(cpu, _)| *cpu).collect();
    let Some((_, name)) = known.iter().find(|(_, name)| *name != "performance") else {
        return Finding::new(CHECK, Level::Ok, "performance").fact("governor", "performance");
    };
    let places = braces(&slow.iter().map(u16::to_string).collect::<Vec<_>>());
    Finding::new(CHECK, Level::Better, format!("{name} on {}: its frequency changes", named(&slow)))
        .command(format!(
            "echo performance | sudo tee /sys/devices/system/cpu/cpu{places}/cpufreq/scaling_governor"
        ))
        .fact("governor", *name)
}

/// Whether the scheduler and its tick leave the pacing cores alone.
#[must_use]
pub fn isolation(facts: &Facts, cpus: &[u16]) -> Finding {
    const CHECK: &str = "isolation";
    let line = facts.command_line.as_deref();
    let set = |file: &Option<String>, parameter: &str| {
        let from_file = file.as_deref().map(cpu_list);
        let given = |line| parse::kernel_parameter(line, parameter).unwrap_or_default();
        from_file.or_else(|| line.map(given))
    };
    let Some(isolated) = set(&facts.isolated, "isolcpus") else {
        return Finding::unknown(CHECK, "the kernel does not say which CPUs are isolated");
    };
    let tickless = set(&facts.nohz_full, "nohz_full").unwrap_or_default();
    let finding = |level, words: String| {
        Finding::new(CHECK, level, words)
            .fact("isolated", list_text(&isolated))
            .fact("nohz_full", list_text(&tickless))
    };
    let all = |set: &[u16]| cpus.iter().all(|cpu| set.contains(cpu));
    if all(&isolated) && all(&tickless) {
        return finding(Level::Ok, format!("{}: isolated, without a tick", named(cpus)));
    }
    if !isolated.is_empty() && !all(&isolated) {
        let words = format!("{} isolated, {} not among them", named(&isolated), named(cpus));
        return finding(Level::Better, words).command(use_isolated(facts, &isolated));
    }
    let list = list_text(cpus);
    let online = facts.online.as_deref().map(cpu_list).unwrap_or_default();
    if online.iter().all(|cpu| cpus.contains(cpu)) {
        let words = format!("{}: all there are, so none can be isolated", named(cpus));
        return finding(Level::Better, words).help("pace on fewer CPUs (--cores)");
    }
    if all(&isolated) {
        let words = format!("{}: isolated, but the timer ticks on", named(cpus));
        return finding(Level::Better, words)
            .help(format!("kernel command line: nohz_full={list} rcu_nocbs={list}"));
    }
    let words = format!("{}: not isolated, the kernel may run anything there", named(cpus));
    finding(Level::Better, words).help(format!(
        "kernel command line: isolcpus=managed_irq,domain,{list} nohz_full={list} rcu_nocbs={list}"
    ))
}

/// How to pace on CPUs that are isolated but were not chosen: an isolated CPU is not among those a
/// process may use until it is asked for.
fn use_isolated(facts: &Facts, isolated: &[u16]) -> String {
    let allowed = allowed(facts).unwrap_or_default();
    let list = list_text(isolated);
    if isolated.iter().all(|cpu| allowed.contains(cpu)) {
        return format!("onbeat replay --cores {list} ...");
    }
    let mut both = [allowed.as_slice(), isolated].concat();
    both.sort_unstable();
    both.dedup();
    format!("taskset -c {} onbeat replay --cores {list} ...", list_text(&both))
}

/// Whether a pacing core shares its execution units.
#[must_use]
pub fn siblings(facts: &Facts, cpus: &[u16]) -> Finding {
    const CHECK: &str = "hyper_threads";
    let known: Vec<&[u16]> = facts.cpus.iter().filter_map(|cpu| cpu.siblings.as_deref()).collect();
    if known.len() < facts.cpus.len() || known.is_empty() {
        return Finding::unknown(CHECK, "which CPUs share a core is not visible here");
    }
    let both = known.iter().find(|group| group.iter().filter(|cpu| cpus.contains(cpu)).count() > 1);
    if let Some(group) = both {
        let words = format!("{} are one core, and more than one of them would pace", named(group));
        return Finding::new(CHECK, Level::Problem, words)
            .help("pace on one CPU of each core (--cores)");
    }
    let mut others: Vec<u16> =
        known.concat().into_iter().filter(|cpu| !cpus.contains(cpu)).collect();
    others.sort_unstable();
    others.dedup();
    if others.is_empty() {
        return Finding::new(CHECK, Level::Ok, format!("{}: a core of its own", named(cpus)));
    }
    let places = braces(&others.iter().map(u16::to_string).collect::<Vec<_>>());
    let words = format!("{} share a core with {}", named(cpus), named(&others));
    Finding::new(CHECK, Level::Better, words)
        .command(format!("echo 0 | sudo tee /sys/devices/system/cpu/cpu{places}/online"))
        .fact("siblings", list_text(&others))
}

/// Which device interrupts come to the pacing cores.
#[must_use]
pub fn interrupts(facts: &Facts, cpus: &[u16], after: Option<&Counts>) -> Finding {
    const CHECK: &str = "interrupts";
    let Some(before) = facts.counts.interrupts.as_deref() else {
        return Finding::unknown(CHECK, "/proc/interrupts cannot be read");
    };
    let latest = match after.map(|after| after.interrupts.as_deref()) {
        Some(None) => return Finding::unknown(CHECK, "/proc/interrupts cannot be read"),
        Some(Some(text)) => text,
        None => before,
    };
    let base = if after.is_some() { parse::interrupts(before) } else { Vec::new() };
    let on_cpus =
        |row: &parse::Interrupt| -> u64 { cpus.iter().filter_map(|cpu| row.counts.get(cpu)).sum() };
    let (mut fired, mut device, mut ticks) = (Vec::new(), 0_u64, 0);
    for row in parse::interrupts(latest) {
        let earlier = base.iter().find(|earlier| earlier.id == row.id).map_or(0, on_cpus);
        let count = on_cpus(&row).saturating_sub(earlier);
        match row.id.parse::<u32>() {
            Ok(number) if count > 0 => {
                device = device.saturating_add(count);
                fired.push((count, number, row.name));
            }
            Ok(_) => {}
            Err(_) if row.id == "LOC" => ticks = count,
            Err(_) => {}
        }
    }
    fired.sort_unstable_by(|a, b| b.cmp(a));
    let placed: Vec<u32> = facts
        .placements
        .iter()
        .filter(|placement| placement.cpus.iter().any(|cpu| cpus.contains(cpu)))
        .map(|placement| placement.number)
        .collect();
    let span = if after.is_some() { "while measuring" } else { "since boot" };
    let finding = judge(cpus, &fired, device, span, after.is_some(), placed.len());
    let finding = finding
        .fact("placed", placed.len())
        .fact("device_interrupts", device)
        .fact("timer_interrupts", ticks)
        .fact("counted", span);
    // Only those that go there now can be moved away.
    let numbers: Vec<String> = fired
        .iter()
        .filter(|(_, number, _)| placed.contains(number))
        .take(INTERRUPTS_NAMED)
        .map(|(_, number, _)| number.to_string())
        .collect();
    let online = facts.online.as_deref().map(cpu_list).unwrap_or_default();
    let others: Vec<u16> = online.into_iter().filter(|cpu| !cpus.contains(cpu)).collect();
    if finding.level == Level::Ok || numbers.is_empty() || others.is_empty() {
        return finding;
    }
    let list = list_text(&others);
    let places = braces(&numbers);
    finding.command(format!("echo {list} | sudo tee /proc/irq/{places}/smp_affinity_list"))
}

fn judge(
    cpus: &[u16],
    fired: &[(u64, u32, String)],
    device: u64,
    span: &str,
    measured: bool,
    placed: usize,
) -> Finding {
    const CHECK: &str = "interrupts";
    let Some((count, _, name)) = fired.first() else {
        let words = format!("none from a device on {} {span}", named(cpus));
        return Finding::new(CHECK, Level::Ok, words);
    };
    let level = match (measured, placed) {
        (true, _) if device > INTERRUPTS_MAX => Level::Problem,
        // What came in the past and goes elsewhere now does not matter.
        (false, 0) => Level::Ok,
        _ => Level::Better,
    };
    let words = format!("{device} from devices on {} {span}, {name} {count}", named(cpus));
    Finding::new(CHECK, level, words)
}

/// Whether memory can be far from the pacing cores.
#[must_use]
pub fn nodes(facts: &Facts, cpus: &[u16]) -> Finding {
    const CHECK: &str = "memory_nodes";
    let near: Vec<u32> = facts
        .nodes
        .iter()
        .filter(|(_, members)| members.iter().any(|cpu| cpus.contains(cpu)))
        .map(|(node, _)| *node)
        .collect();
    let finding =
        |level, words: String| Finding::new(CHECK, level, words).fact("nodes", facts.nodes.len());
    match (facts.nodes.len(), near.as_slice()) {
        (0, _) | (_, []) => Finding::unknown(CHECK, "memory nodes are not visible here"),
        (1, _) => finding(Level::Ok, "one".to_owned()),
        (count, [node]) => {
            let words = format!("{} on node {node} of {count}", named(cpus));
            let members = facts.nodes.iter().find(|(number, _)| number == node);
            let allowed = allowed(facts).unwrap_or_default();
            let inside = members.is_some_and(|(_, members)| {
                !allowed.is_empty() && allowed.iter().all(|cpu| members.contains(cpu))
            });
            if inside {
                return finding(Level::Ok, words + ", and so is the rest of Onbeat");
            }
            finding(Level::Better, words + "; request bodies may lie on another")
                .command(format!("numactl --cpunodebind={node} --membind={node} onbeat replay ..."))
        }
        (count, several) => {
            let words = format!("{} spread over {} of {count} nodes", named(cpus), several.len());
            finding(Level::Better, words).help("pace on CPUs of one node (--cores)")
        }
    }
}

fn allowed(facts: &Facts) -> Option<Vec<u16>> {
    Some(cpu_list(parse::field(facts.status.as_deref()?, "Cpus_allowed_list")?))
}

/// `3` or `{3,5}`, as a shell takes them.
fn braces(words: &[String]) -> String {
    match words {
        [one] => one.clone(),
        several => format!("{{{}}}", several.join(",")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::machine::{Cpu, Placement};

    fn facts() -> Facts {
        Facts {
            online: Some("0-3".into()),
            status: Some("Cpus_allowed_list:\t0-3".into()),
            ..Facts::default()
        }
    }

    #[test]
    fn a_cpu_is_left_for_everything_else_or_it_is_a_problem() {
        assert_eq!(choice(&facts(), &[3]).level, Level::Ok);
        assert_eq!(choice(&facts(), &[0, 1, 2, 3]).level, Level::Problem);
        assert_eq!(choice(&Facts::default(), &[3]).level, Level::Unknown);
    }

    #[test]
    fn a_cpu_that_a_replay_would_refuse_is_a_problem() {
        let absent = choice(&facts(), &[3, 9]);
        assert_eq!(absent.level, Level::Problem);
        assert_eq!(absent.found, "CPU 9 may not be used, only CPUs 0-3: a replay is refused");
        assert!(absent.command.is_none() && absent.help.is_some(), "{absent:?}");
        let isolated = Facts { status: Some("Cpus_allowed_list:\t0-1".into()), ..facts() };
        let asked = choice(&isolated, &[3]).command.expect("a command");
        assert_eq!(asked, "taskset -c 0-1,3 onbeat replay --cores 3 ...");
    }

    #[test]
    fn a_governor_that_saves_power_is_named_with_the_command() {
        let cpu = |number, governor: &str| Cpu {
            number,
            governor: Some(governor.into()),
            ..Cpu::default()
        };
        let slow = Facts { cpus: vec![cpu(2, "powersave"), cpu(3, "powersave")], ..facts() };
        let finding = governor(&slow);
        assert_eq!(finding.level, Level::Better);
        let command = finding.command.expect("a command");
        assert!(command.contains("cpu{2,3}/cpufreq/scaling_governor"), "{command}");
        let fast = Facts { cpus: vec![cpu(2, "performance")], ..facts() };
        assert_eq!(governor(&fast).level, Level::Ok);
        assert_eq!(governor(&facts()).level, Level::Unknown);
    }

    #[test]
    fn isolation_says_what_to_boot_with_or_whom_to_use() {
        let with = |isolated: &str, nohz: &str| Facts {
            isolated: Some(isolated.into()),
            nohz_full: Some(nohz.into()),
            ..facts()
        };
        assert_eq!(isolation(&with("2-3", "2-3"), &[3]).level, Level::Ok);
        let help = |facts: &Facts| isolation(facts, &[3]).help.expect("help");
        assert!(help(&with("", "(null)")).contains("isolcpus=managed_irq,domain,3 nohz_full=3"));
        assert!(help(&with("3", "")).ends_with("nohz_full=3 rcu_nocbs=3"));
        let command = |facts: &Facts| isolation(facts, &[3]).command.expect("a command");
        assert_eq!(command(&with("2", "2")), "onbeat replay --cores 2 ...");
        let hidden = Facts { status: Some("Cpus_allowed_list:\t0-1,3".into()), ..with("2", "2") };
        assert_eq!(command(&hidden), "taskset -c 0-3 onbeat replay --cores 2 ...");
        let old = Facts { command_line: Some("isolcpus=3 nohz_full=3".into()), ..facts() };
        assert_eq!(isolation(&old, &[3]).level, Level::Ok);
        let silent = Facts { command_line: Some("quiet".into()), ..facts() };
        assert_eq!(isolation(&silent, &[3]).level, Level::Better);
        assert_eq!(isolation(&facts(), &[3]).level, Level::Unknown);
        assert!(isolation(&with("", ""), &[0, 1, 2, 3]).found.contains("none can be isolated"));
    }

    #[test]
    fn hyper_threads_are_seen() {
        let cpu = |number, siblings: &[u16]| Cpu {
            number,
            siblings: Some(siblings.to_vec()),
            ..Cpu::default()
        };
        let alone = Facts { cpus: vec![cpu(3, &[3])], ..facts() };
        assert_eq!(siblings(&alone, &[3]).level, Level::Ok);
        let shared = Facts { cpus: vec![cpu(3, &[1, 3])], ..facts() };
        let finding = siblings(&shared, &[3]);
        assert_eq!(finding.level, Level::Better);
        assert!(finding.command.expect("a command").ends_with("cpu1/online"));
        let both = Facts { cpus: vec![cpu(1, &[1, 3]), cpu(3, &[1, 3])], ..facts() };
        assert_eq!(siblings(&both, &[1, 3]).level, Level::Problem);
        assert_eq!(siblings(&facts(), &[3]).level, Level::Unknown);
    }

    #[test]
    fn interrupts_on_the_pacing_cores_are_counted_and_moved() {
        const BEFORE: &str = "     CPU0 CPU3\n 24: 5 10 PCI eth0-rx\n 25: 5 0 PCI nvme0q1\n\
             LOC: 7 7 Local timer\n";
        const LATER: &str = "     CPU0 CPU3\n 24: 6 40 PCI eth0-rx\n 25: 9 0 PCI nvme0q1\n\
             LOC: 9 257 Local timer\n";
        let counts = |text: &str| Counts { interrupts: Some(text.into()), stat: None };
        let facts = Facts {
            counts: counts(BEFORE),
            placements: vec![Placement { number: 24, cpus: vec![3] }],
            ..facts()
        };
        let finding = interrupts(&facts, &[3], Some(&counts(LATER)));
        assert_eq!(finding.level, Level::Better);
        assert_eq!(finding.found, "30 from devices on CPU 3 while measuring, eth0-rx 30");
        assert_eq!(finding.facts["timer_interrupts"], 250);
        let command = "echo 0-2 | sudo tee /proc/irq/24/smp_affinity_list";
        assert_eq!(finding.command.as_deref(), Some(command));
        assert_eq!(interrupts(&facts, &[3], Some(&counts(BEFORE))).level, Level::Ok);
        assert!(interrupts(&facts, &[3], None).found.contains("since boot"));
        let unread = interrupts(&Facts::default(), &[3], None);
        assert_eq!(unread.level, Level::Unknown);
    }

    #[test]
    fn far_memory_is_seen() {
        let two = Facts { nodes: vec![(0, vec![0, 1]), (1, vec![2, 3])], ..facts() };
        let finding = nodes(&two, &[3]);
        assert_eq!(finding.level, Level::Better);
        assert!(finding.command.expect("a command").starts_with("numactl --cpunodebind=1"));
        assert!(nodes(&two, &[1, 3]).found.contains("spread over 2 of 2 nodes"));
        let bound = Facts { status: Some("Cpus_allowed_list:\t2-3".into()), ..two };
        assert_eq!(nodes(&bound, &[3]).level, Level::Ok);
        let one = Facts { nodes: vec![(0, vec![0, 1, 2, 3])], ..facts() };
        assert_eq!(nodes(&one, &[3]).level, Level::Ok);
        assert_eq!(nodes(&facts(), &[3]).level, Level::Unknown);
    }
}
