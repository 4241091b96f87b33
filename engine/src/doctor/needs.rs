//! What a planned run needs of this host, held against what there is: open files, local ports,
//! memory, and room for its log.
//!
//! Pure: both sides arrive as numbers. What is too little is a problem, with the number that is
//! needed and the command that raises it; what nobody knows before a run is unknown.

use onbeat_shared::counted::{counted, grouped};

use super::{Finding, Level};

/// What a plan is about to need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Connections at a time; of a schedule by a guess of how long answers take, of users what all
    /// of them may have.
    pub connections: u64,
    /// Whether that is a guess.
    pub is_guess: bool,
    /// Descriptors beside connections.
    pub other_files: u64,
    /// Pacing cores, each of which needs a connection at least.
    pub cores: u64,
    /// Local ports towards the server that takes the most of them; `None`: none takes any.
    pub ports: Option<u64>,
    /// Addresses of ours that connections leave from.
    pub addresses: u64,
    /// Bytes of the log that are written whatever becomes of the requests.
    pub log_least: u64,
    /// Bytes of the log if every answer has its tokens; `None`: nobody knows what users will send.
    pub log_expected: Option<u64>,
    /// Bytes of memory that the run is yet to take.
    pub memory: u64,
    /// Bytes of address space that it is yet to take.
    pub address_space: u64,
}

/// What there is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Files that this process may have open, its soft limit raised.
    pub files: Option<u64>,
    /// What the kernel lets any process ask for (`fs.nr_open`).
    pub files_most: Option<u64>,
    /// Local ports of one address.
    pub ports: Option<u64>,
    /// Bytes that are free where the log goes.
    pub disk: Option<u64>,
    /// Bytes that a file may have at most; `None`: no such limit.
    pub file_size: Option<u64>,
    /// That place.
    pub folder: String,
    /// Bytes of memory that are left.
    pub memory: Option<Left>,
    /// Bytes of address space that are left.
    pub address_space: Option<u64>,
}

/// Memory that is left, and what bounds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Bytes.
    pub bytes: u64,
    /// The file of the control group that bounds it; `None`: the host has no more.
    pub group: Option<String>,
    /// What that file says now.
    pub limit: u64,
}

/// One finding for each thing that a run needs.
#[must_use]
pub fn judge(needs: &Needs, room: &Room) -> Vec<Finding> {
    vec![files(needs, room), ports(needs, room), memory(needs, room), disk(needs, room)]
}

/// What a finding that is a problem says to the user before zero, in one line.
#[must_use]
pub fn told(finding: &Finding) -> Option<String> {
    if finding.level != Level::Problem {
        return None;
    }
    let command = finding.command.as_ref();
    let command = command.map_or_else(String::new, |command| format!("; to raise it: {command}"));
    let help = finding.help.as_ref().map_or_else(String::new, |help| format!("; {help}"));
    Some(format!("{}{command}{help}", finding.found))
}

/// What a run is sure to fail for, in words: files without which a core has no connection, and
/// bytes of the log that are written in any case.
#[must_use]
pub fn refusal(needs: &Needs, room: &Room) -> Option<String> {
    if let Some(limit) = room.files.filter(|&limit| limit < needs.other_files + needs.cores) {
        let connections = needs.connections.max(needs.cores);
        let needed = needs.other_files.saturating_add(connections);
        return Some(format!(
            "the limit on open files is {}, which leaves room for less than a connection on each \
             of {}; this run needs {} with {}{}; nothing was sent; to raise it: {}",
            grouped(limit),
            counted(needs.cores, "core"),
            grouped(needed),
            if needs.is_guess { "about " } else { "up to " },
            counted(connections, "connection"),
            raise_files(needed, room.files_most)
        ));
    }
    if let Some(limit) = room.file_size.filter(|&limit| limit < needs.log_least) {
        return Some(format!(
            "the run log needs {} for its plan and its requests' ends alone, and a file of this \
             process may have {}; nothing was sent; to raise it: {RAISE_FILE_SIZE}",
            bytes(needs.log_least),
            bytes(limit)
        ));
    }
    let free = room.disk.filter(|&free| free < needs.log_least)?;
    Some(format!(
        "the run log needs {} for its plan and its requests' ends alone, and {} has {} left; \
         nothing was sent: name a file with more room (--output), or plan fewer requests",
        bytes(needs.log_least),
        room.folder,
        bytes(free)
    ))
}

/// The command that lets a process write files of any size.
const RAISE_FILE_SIZE: &str = "sudo prlimit --fsize=unlimited --pid $$";

/// The command that lets a process open so many files.
#[must_use]
pub fn raise_files(files: u64, most: Option<u64>) -> String {
    let prlimit = format!("sudo prlimit --nofile={files}:{files} --pid $$");
    match most.filter(|&most| most < files) {
        Some(_) => format!("sudo sysctl -w fs.nr_open={files} && {prlimit}"),
        None => prlimit,
    }
}

fn files(needs: &Needs, room: &Room) -> Finding {
    const CHECK: &str = "plan_open_files";
    let Some(limit) = room.files else {
        return Finding::unknown(CHECK, "the limit on open files cannot be read");
    };
    let needed = needs.connections.saturating_add(needs.other_files);
    let how = if needs.is_guess { "about " } else { "up to " };
    let connections = counted(needs.connections, "connection");
    let fact = |finding: Finding| finding.fact("needed", needed).fact("limit", limit);
    if needed <= limit {
        let words = format!("{how}{connections} at a time: {} files", grouped(needed));
        return fact(Finding::new(CHECK, Level::Ok, words));
    }
    let cap = limit.saturating_sub(needs.other_files);
    let guess = if needs.is_guess { " (by a guess of how long answers take)" } else { "" };
    let words = format!(
        "this run may have {how}{connections} open at a time{guess} and needs {} open files for \
         that; the limit is {}, and requests beyond it would find no descriptor",
        grouped(needed),
        grouped(limit)
    );
    let finding = fact(Finding::new(CHECK, Level::Problem, words))
        .command(raise_files(needed, room.files_most));
    if cap == 0 {
        return finding;
    }
    finding.help(format!("or let requests wait for a connection: --max-connections {cap}"))
}

fn ports(needs: &Needs, room: &Room) -> Finding {
    /// Ports that one address can have at most: those from 1,024 on.
    const PORTS_MOST: u64 = 64_512;
    const CHECK: &str = "plan_local_ports";
    let Some(needed) = needs.ports else {
        return Finding::new(CHECK, Level::Ok, "none: no connection has a port");
    };
    let Some(each) = room.ports else {
        return Finding::unknown(CHECK, "the kernel does not say");
    };
    let addresses = needs.addresses.max(1);
    let there = each.saturating_mul(addresses);
    let fact = |finding: Finding| finding.fact("needed", needed).fact("ports", there);
    if needed <= there {
        let words = format!("{} of {}", grouped(needed), grouped(there));
        return fact(Finding::new(CHECK, Level::Ok, words));
    }
    let words = format!(
        "this run needs {}{} to one server, and {} of this host {} {}; requests beyond them would \
         find none",
        if needs.is_guess { "about " } else { "" },
        counted(needed, "local port"),
        if addresses == 1 { "1 address".to_owned() } else { format!("{addresses} addresses") },
        if addresses == 1 { "has" } else { "have" },
        grouped(there)
    );
    let finding = fact(Finding::new(CHECK, Level::Problem, words));
    let widened = needed.div_ceil(addresses);
    let from = needed.div_ceil(each.max(1));
    let more = format!("leave from {from} addresses of this host (--local-address)");
    if widened <= PORTS_MOST {
        return finding
            .command("sudo sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\"")
            .help(format!("or {more}"));
    }
    finding.help(more)
}

fn memory(needs: &Needs, room: &Room) -> Finding {
    const CHECK: &str = "plan_memory";
    if let Some(left) = room.address_space.filter(|&left| left < needs.address_space) {
        let words = format!(
            "this run is yet to take about {} of address space, and the limit leaves {}",
            bytes(needs.address_space),
            bytes(left)
        );
        return Finding::new(CHECK, Level::Problem, words)
            .command("sudo prlimit --as=unlimited --data=unlimited --pid $$")
            .fact("needed_bytes", needs.address_space)
            .fact("left_bytes", left);
    }
    let Some(left) = &room.memory else {
        return Finding::unknown(CHECK, "the system does not say what is left");
    };
    let fact = |finding: Finding| {
        finding.fact("needed_bytes", needs.memory).fact("left_bytes", left.bytes)
    };
    if needs.memory <= left.bytes {
        let words = format!("about {} of {} left", bytes(needs.memory), bytes(left.bytes));
        return fact(Finding::new(CHECK, Level::Ok, words));
    }
    let words = format!(
        "this run is yet to take about {} of memory beside its requests, and {} are left",
        bytes(needs.memory),
        bytes(left.bytes)
    );
    let finding = fact(Finding::new(CHECK, Level::Problem, words))
        .help("a smaller --render-budget or fewer connections (--max-connections) take less");
    match &left.group {
        Some(file) => {
            let limit = left.limit.saturating_add(needs.memory - left.bytes);
            finding.command(format!("echo {limit} | sudo tee {file}"))
        }
        None => finding,
    }
}

fn disk(needs: &Needs, room: &Room) -> Finding {
    const CHECK: &str = "plan_disk";
    let (Some(expected), Some(free)) = (needs.log_expected, room.disk) else {
        return Finding::unknown(CHECK, "nobody knows what users will send, or what is free");
    };
    let fact = |finding: Finding| finding.fact("needed_bytes", expected).fact("free_bytes", free);
    if let Some(limit) = room.file_size.filter(|&limit| limit < expected.min(free)) {
        let words = format!(
            "the run log may take {}, and a file of this process may have {}: records beyond that \
             would be lost",
            bytes(expected),
            bytes(limit)
        );
        let finding = Finding::new(CHECK, Level::Problem, words).command(RAISE_FILE_SIZE);
        return fact(finding).fact("limit_bytes", limit);
    }
    if expected <= free {
        let words = format!("{} at most, of {} free", bytes(expected), bytes(free));
        return fact(Finding::new(CHECK, Level::Ok, words));
    }
    let words = format!(
        "the run log may take {}, and {} has {} left: records beyond that would be lost",
        bytes(expected),
        room.folder,
        bytes(free)
    );
    fact(Finding::new(CHECK, Level::Problem, words))
        .help("name a file with more room (--output), or plan fewer requests")
}

/// A number of bytes for a person.
fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_048_576 => format!("{} KiB", grouped(bytes.div_ceil(1 << 10))),
        _ => format!("{} MiB", grouped(bytes.div_ceil(1 << 20))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room() -> Room {
        Room {
            files: Some(20_000),
            files_most: Some(1 << 20),
            ports: Some(28_232),
            disk: Some(1 << 30),
            file_size: None,
            folder: "/runs".to_owned(),
            memory: Some(Left { bytes: 1 << 30, group: None, limit: 0 }),
            address_space: None,
        }
    }

    fn needs() -> Needs {
        Needs {
            connections: 50_000,
            other_files: 64,
            ports: Some(50_000),
            addresses: 1,
            log_least: 1 << 20,
            log_expected: Some(1 << 40),
            memory: 1 << 31,
            ..Needs::default()
        }
    }

    #[test]
    fn what_is_too_little_is_said_with_the_number_and_the_command() {
        let findings = judge(&needs(), &room());
        let said: Vec<String> = findings.iter().map(|it| told(it).expect("a problem")).collect();
        for (said, words) in said.iter().zip([
            &[
                "up to 50,000 connections",
                "50,064 open files",
                "the limit is 20,000",
                "sudo prlimit --nofile=50064:50064 --pid $$",
                "--max-connections 19936",
            ][..],
            &[
                "50,000 local ports",
                "1 address of this host has 28,232",
                "1024 65535",
                "leave from 2 addresses",
            ],
            &["2,048 MiB of memory", "1,024 MiB are left", "--render-budget"],
            &["may take 1,048,576 MiB", "/runs has 1,024 MiB left", "--output"],
        ]) {
            for part in words {
                assert!(said.contains(part), "{part} is not in: {said}");
            }
        }
        assert_eq!(refusal(&needs(), &room()), None, "it begins, and may end well");
    }

    #[test]
    fn what_is_enough_is_said_to_nobody() {
        let small =
            Needs { connections: 19_936, ports: None, log_expected: Some(9), memory: 5, ..needs() };
        let findings = judge(&small, &room());
        assert!(findings.iter().all(|finding| finding.level == Level::Ok), "{findings:?}");
        assert!(findings.iter().all(|finding| told(finding).is_none()));
        let one_more = Needs { connections: 19_937, ..small.clone() };
        assert_eq!(judge(&one_more, &room())[0].level, Level::Problem);
        let none = Room { files: Some(64), ..room() };
        assert_eq!(judge(&small, &none)[0].help, None, "no connection at all is no way out");
    }

    #[test]
    fn what_nobody_knows_is_unknown() {
        let findings = judge(&Needs { log_expected: None, ..needs() }, &Room::default());
        assert!(findings.iter().all(|finding| finding.level == Level::Unknown), "{findings:?}");
    }

    #[test]
    fn a_log_that_is_sure_to_find_no_room_is_refused() {
        let full = Room { disk: Some(4_096), ..room() };
        let words = refusal(&needs(), &full).expect("it cannot end well");
        assert!(words.contains("1 MiB") && words.contains("has 4 KiB left"), "{words}");
    }

    #[test]
    fn a_core_without_a_connection_is_refused_with_all_that_the_run_needs() {
        let needs = Needs { cores: 3, connections: 40, other_files: 80, ..Needs::default() };
        let tight = Room { files: Some(82), ..Room::default() };
        let words = refusal(&needs, &tight).expect("two connections for three cores");
        for part in ["is 82,", "3 cores", "needs 120", "--nofile=120:120", "nothing was sent"] {
            assert!(words.contains(part), "{part} is not in: {words}");
        }
        let enough = Room { files: Some(83), ..Room::default() };
        assert_eq!(refusal(&needs, &enough), None);
    }

    #[test]
    fn a_limit_on_the_size_of_files_is_raised_and_no_other_disk_helps() {
        let limited = Room { file_size: Some(4_096), ..room() };
        let refused = refusal(&needs(), &limited).expect("it cannot end well");
        let low = Needs { log_least: 0, ..needs() };
        let told = told(&judge(&low, &limited)[3]).expect("a problem");
        for words in [refused, told] {
            assert!(words.contains("may have 4 KiB"), "{words}");
            assert!(words.contains("sudo prlimit --fsize=unlimited"), "{words}");
            assert!(!words.contains("--output"), "{words}");
        }
        assert_eq!(refusal(&low, &limited), None);
    }

    #[test]
    fn commands_name_what_bounds() {
        let tight = Room {
            address_space: Some(10),
            memory: Some(Left { bytes: 0, group: Some("/g/memory.max".into()), limit: 7 }),
            ..room()
        };
        let bounded = Needs { address_space: 11, memory: 3, ..needs() };
        let command = |needs: &Needs| judge(needs, &tight)[2].command.clone().expect("one");
        assert!(command(&bounded).contains("prlimit --as=unlimited"));
        let in_group = command(&Needs { address_space: 1, ..bounded });
        assert_eq!(in_group, "echo 10 | sudo tee /g/memory.max");
        assert_eq!(
            raise_files(2_000_000, Some(1 << 20)),
            "sudo sysctl -w fs.nr_open=2000000 && sudo prlimit --nofile=2000000:2000000 --pid $$"
        );
    }

    #[test]
    fn ports_that_no_range_has_are_found_on_more_addresses() {
        let many = Needs { ports: Some(200_000), ..needs() };
        let finding = &judge(&many, &room())[1];
        assert_eq!(finding.command, None);
        assert_eq!(
            finding.help.as_deref(),
            Some("leave from 8 addresses of this host (--local-address)")
        );
    }
}
