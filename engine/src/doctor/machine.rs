//! The texts that `/proc` and `/sys` hold about this machine, read once.
//!
//! Everything is read below a root folder, so that a test can put up a machine of its own. A file
//! that is missing, too long or not text is `None`. Nothing is judged here.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::limits::MACHINE_FILE_BYTES_MAX;

use super::parse;

/// What is known about one CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// Its number.
    pub number: u16,
    /// `scaling_governor`.
    pub governor: Option<String>,
    /// CPUs on the same physical core, itself among them.
    pub siblings: Option<Vec<u16>>,
}

/// Where an interrupt may be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The interrupt's number.
    pub number: u32,
    /// The CPUs it may go to.
    pub cpus: Vec<u16>,
}

/// A limit on CPU time.
#[derive(Clone, Debug, PartialEq)]
pub struct Quota {
    /// CPUs' worth of time.
    pub cpus: f64,
    /// The file that lifts it, and what to write there.
    pub file: PathBuf,
    /// What to write.
    pub lifted: &'static str,
}

/// Counters that move.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// `/proc/interrupts`.
    pub interrupts: Option<String>,
    /// `/proc/stat`.
    pub stat: Option<String>,
}

/// Everything that was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// The CPUs that pace.
    pub cpus: Vec<Cpu>,
    /// `/proc/cmdline`.
    pub command_line: Option<String>,
    /// `/sys/devices/system/cpu/isolated`.
    pub isolated: Option<String>,
    /// `/sys/devices/system/cpu/nohz_full`.
    pub nohz_full: Option<String>,
    /// `/sys/devices/system/cpu/online`.
    pub online: Option<String>,
    /// CPUs of each memory node, by its number.
    pub nodes: Vec<(u32, Vec<u16>)>,
    /// By interrupt number.
    pub placements: Vec<Placement>,
    /// When the rest was read.
    pub counts: Counts,
    /// `current_clocksource`.
    pub clock_source: Option<String>,
    /// `available_clocksource`.
    pub clock_sources: Option<String>,
    /// `/proc/cpuinfo`.
    pub cpuinfo: Option<String>,
    /// Vendor and product that the firmware names.
    pub product: Option<String>,
    /// `/proc/sys/kernel/osrelease`.
    pub release: Option<String>,
    /// `/proc/self/status`.
    pub status: Option<String>,
    /// `/proc/self/stat`.
    pub process_stat: Option<String>,
    /// `/proc/self/limits`.
    pub limits: Option<String>,
    /// `/proc/sys/net/ipv4/ip_local_port_range`.
    pub ports: Option<String>,
    /// `/proc/sys/kernel/io_uring_disabled`.
    pub io_uring_disabled: Option<String>,
    /// `/proc/sys/kernel/sched_rt_runtime_us`.
    pub rt_runtime_us: Option<String>,
    /// `/proc/swaps`.
    pub swaps: Option<String>,
    /// The tightest limit on CPU time among this process's control groups; `None` inside: none.
    pub quota: Option<Option<Quota>>,
}

impl Facts {
    /// Reads the machine below `root`, which is `/` outside tests.
    #[must_use]
    pub fn read(root: &Path, cpus: &[u16]) -> Self {
        let text = |path: &str| text(&root.join(path));
        let cpu_folder = "sys/devices/system/cpu";
        let clock_folder = "sys/devices/system/clocksource/clocksource0";
        let vendor = [text("sys/class/dmi/id/sys_vendor"), text("sys/class/dmi/id/product_name")];
        let product: Vec<String> = vendor.into_iter().flatten().collect();
        Self {
            cpus: cpus.iter().map(|&cpu| read_cpu(&root.join(cpu_folder), cpu)).collect(),
            command_line: text("proc/cmdline"),
            isolated: text(&format!("{cpu_folder}/isolated")),
            nohz_full: text(&format!("{cpu_folder}/nohz_full")),
            online: text(&format!("{cpu_folder}/online")),
            nodes: nodes(&root.join("sys/devices/system/node")),
            placements: placements(&root.join("proc/irq")),
            counts: Counts::read(root),
            clock_source: text(&format!("{clock_folder}/current_clocksource")),
            clock_sources: text(&format!("{clock_folder}/available_clocksource")),
            cpuinfo: text("proc/cpuinfo"),
            product: (!product.is_empty()).then(|| product.join(" ")),
            release: text("proc/sys/kernel/osrelease"),
            status: text("proc/self/status"),
            process_stat: text("proc/self/stat"),
            limits: text("proc/self/limits"),
            ports: text("proc/sys/net/ipv4/ip_local_port_range"),
            io_uring_disabled: text("proc/sys/kernel/io_uring_disabled"),
            rt_runtime_us: text("proc/sys/kernel/sched_rt_runtime_us"),
            swaps: text("proc/swaps"),
            quota: text("proc/self/cgroup").map(|groups| quota(root, &groups)),
        }
    }
}

impl Counts {
    /// Reads the counters below `root`.
    #[must_use]
    pub fn read(root: &Path) -> Self {
        Self {
            interrupts: text(&root.join("proc/interrupts")),
            stat: text(&root.join("proc/stat")),
        }
    }
}

fn text(path: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(path).ok()?.take(MACHINE_FILE_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text.trim_end().to_owned())
}

fn read_cpu(folder: &Path, number: u16) -> Cpu {
    let folder = folder.join(format!("cpu{number}"));
    Cpu {
        number,
        governor: text(&folder.join("cpufreq/scaling_governor")),
        siblings: text(&folder.join("topology/thread_siblings_list"))
            .map(|list| parse::cpu_list(&list))
            .filter(|siblings| !siblings.is_empty()),
    }
}

/// The numbered entries of a folder in ascending order: `PREFIXn` gives n.
fn numbered(folder: &Path, prefix: &str) -> Vec<u32> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> = entries
        .filter_map(|entry| entry.file_name().to_str()?.strip_prefix(prefix)?.parse().ok())
        .collect();
    numbers.sort_unstable();
    numbers
}

fn nodes(folder: &Path) -> Vec<(u32, Vec<u16>)> {
    let cpus = |node| text(&folder.join(format!("node{node}/cpulist")));
    numbered(folder, "node")
        .into_iter()
        .filter_map(|node| Some((node, parse::cpu_list(&cpus(node)?))))
        .collect()
}

fn placements(folder: &Path) -> Vec<Placement> {
    let cpus = |number| {
        let folder = folder.join(format!("{number}"));
        // Where it really goes, on kernels that say; what is allowed, on the others.
        let effective = text(&folder.join("effective_affinity_list"));
        let list = effective.filter(|list| !list.is_empty());
        list.or_else(|| text(&folder.join("smp_affinity_list")))
    };
    numbered(folder, "")
        .into_iter()
        .filter_map(|number| Some(Placement { number, cpus: parse::cpu_list(&cpus(number)?) }))
        .collect()
}

/// The tightest limit on the way from the process's own group to the root.
fn quota(root: &Path, groups: &str) -> Option<Quota> {
    let (unified, older) = parse::control_groups(groups);
    let mut found: Vec<Quota> = Vec::new();
    for mount in ["sys/fs/cgroup", "sys/fs/cgroup/unified"] {
        for group in ancestors(unified) {
            let file = root.join(mount).join(group).join("cpu.max");
            if let Some(cpus) = text(&file).and_then(|text| parse::quota(&text)) {
                found.push(Quota { cpus, file, lifted: "max" });
            }
        }
    }
    for mount in ["sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct"] {
        for group in ancestors(older) {
            let folder = root.join(mount).join(group);
            let file = folder.join("cpu.cfs_quota_us");
            let cpus = text(&file)
                .zip(text(&folder.join("cpu.cfs_period_us")))
                .and_then(|(quota, period)| parse::quota_of(&quota, &period));
            if let Some(cpus) = cpus {
                found.push(Quota { cpus, file, lifted: "-1" });
            }
        }
    }
    found.into_iter().min_by(|a, b| a.cpus.total_cmp(&b.cpus))
}

/// A group's folder and all above it, relative to where the hierarchy is mounted. A process in a
/// container may see its own group as the root, or one that is not mounted: then the root counts.
fn ancestors(group: Option<&str>) -> impl Iterator<Item = &Path> {
    group.into_iter().flat_map(|group| Path::new(group.trim_start_matches('/')).ancestors())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine made of files.
    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().expect("inside the root")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        root
    }

    #[test]
    fn an_empty_machine_is_unknown_throughout() {
        let root = machine(&[]);
        let facts = Facts::read(root.path(), &[3]);
        let cpu = Cpu { number: 3, ..Cpu::default() };
        assert_eq!(facts, Facts { cpus: vec![cpu], ..Facts::default() });
    }

    #[test]
    fn a_machine_is_read_from_its_files() {
        let root = machine(&[
            ("proc/irq/24/smp_affinity_list", "0-3\n"),
            ("proc/irq/24/effective_affinity_list", "2\n"),
            ("proc/irq/7/smp_affinity_list", "0-1\n"),
            ("proc/irq/default_smp_affinity", "f\n"),
            ("sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "powersave\n"),
            ("sys/devices/system/cpu/cpu2/topology/thread_siblings_list", "0,2\n"),
            ("sys/devices/system/node/node0/cpulist", "0-1\n"),
            ("sys/devices/system/node/node1/cpulist", "2-3\n"),
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/a/cpu.max", "50000 100000\n"),
        ]);
        let facts = Facts::read(root.path(), &[2]);
        assert_eq!(facts.placements[0], Placement { number: 7, cpus: vec![0, 1] });
        assert_eq!(facts.placements[1], Placement { number: 24, cpus: vec![2] });
        assert_eq!(facts.cpus[0].governor.as_deref(), Some("powersave"));
        assert_eq!(facts.cpus[0].siblings, Some(vec![0, 2]));
        assert_eq!(facts.nodes, [(0, vec![0, 1]), (1, vec![2, 3])]);
        let quota = facts.quota.flatten().expect("a limit");
        assert!((quota.cpus - 0.5).abs() < 1e-9);
        assert!(quota.file.ends_with("sys/fs/cgroup/a/cpu.max"));
    }

    #[test]
    fn the_older_control_groups_are_read_too() {
        let root = machine(&[
            ("proc/self/cgroup", "1:cpu,cpuacct:/job\n0::/\n"),
            ("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "200000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n"),
        ]);
        let quota = Facts::read(root.path(), &[]).quota.flatten().expect("a limit");
        assert!((quota.cpus - 2.0).abs() < 1e-9);
        assert_eq!(quota.lifted, "-1");
        let free = machine(&[("proc/self/cgroup", "0::/\n")]);
        assert_eq!(Facts::read(free.path(), &[]).quota, Some(None));
    }
}
