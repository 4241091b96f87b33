//! `cargo x deploy`: whether the files in `scripts/deploy` still fit the program.
//!
//! Flags that they give to `onbeat` must be in the generated reference, settings that the Job names
//! must be set and those that are set be named, the number of shards must be the same in all
//! places where Kubernetes wants it, and the seccomp profile must allow io_uring and nothing that
//! leads out of a container. Whether a cluster takes them is not looked at: that needs `kubectl
//! kustomize` and the published schemas, as `scripts/deploy/README.md` says.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const FOLDER: &str = "scripts/deploy";
const JOB: &str = "kubernetes/base/job.yaml";
const EXAMPLE: &str = "kubernetes/example/kustomization.yaml";
/// Where the Job's settings are set.
const SETTINGS: [&str; 3] = [
    "kubernetes/base/kustomization.yaml",
    "kubernetes/example/settings.env",
    "kubernetes/example/start.env",
];
/// What Kubernetes itself sets.
const GIVEN: &str = "JOB_COMPLETION_INDEX";
const PROFILE: &str = "kubernetes/io-uring/onbeat.json";
/// Files that call the program.
const CALLERS: [&str; 4] = [JOB, "kubernetes/collect/job.yaml", "slurm/replay.sbatch", "README.md"];
/// What io_uring needs.
const RINGS: [&str; 3] = ["io_uring_enter", "io_uring_register", "io_uring_setup"];
/// Calls that lead out of a container, or into its kernel.
const FORBIDDEN: [&str; 16] = [
    "bpf",
    "clone3",
    "delete_module",
    "finit_module",
    "init_module",
    "kexec_load",
    "keyctl",
    "mount",
    "perf_event_open",
    "pivot_root",
    "process_vm_writev",
    "ptrace",
    "setns",
    "umount2",
    "unshare",
    "userfaultfd",
];

/// Entry point; takes no arguments.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    if !arguments.is_empty() {
        return Err("takes no arguments".to_owned());
    }
    let read = |path: &str| {
        fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"))
    };
    let reference = read("engine/FLAGS.md")?;
    let mut problems = Vec::new();
    for name in CALLERS {
        let text = read(&format!("{FOLDER}/{name}"))?;
        let calls = calls(&text);
        if calls.is_empty() {
            problems.push(format!("{name} does not call onbeat"));
        }
        for (verb, flags) in calls {
            let unknown = unknown(&reference, &verb, &flags);
            problems.extend(unknown.map(|flag| format!("{name}: `onbeat {verb}` has no {flag}")));
        }
    }
    for name in [JOB, EXAMPLE] {
        let counts = shard_counts(&read(&format!("{FOLDER}/{name}"))?);
        if counts.len() != 3 || counts.windows(2).any(|pair| pair[0] != pair[1]) {
            problems.push(format!("{name}: the number of shards is {}", counts.join(", ")));
        }
    }
    let settings = SETTINGS.map(|name| read(&format!("{FOLDER}/{name}")));
    let settings = settings.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
    problems.extend(setting_problems(&read(&format!("{FOLDER}/{JOB}"))?, &settings));
    problems.extend(profile_problems(&read(&format!("{FOLDER}/{PROFILE}"))?));
    for problem in &problems {
        println!("deploy: {problem}");
    }
    if problems.is_empty() {
        println!("deploy: flags, settings, numbers of shards and the seccomp profile are sound");
        return Ok(());
    }
    Err(format!("{} problems", problems.len()))
}

/// The program's calls in a script or a manifest: the verb, and the flags given to it.
///
/// A call begins at a line's `onbeat VERB`, at `"$ONBEAT" VERB`, or at a list's item that is a
/// verb, and goes on over continued lines, or over the list's further items.
fn calls(text: &str) -> Vec<(String, Vec<String>)> {
    let mut calls: Vec<(String, Vec<String>)> = Vec::new();
    let mut open = false;
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        let line = line.trim();
        let item = line.strip_prefix("- ").unwrap_or(line);
        let start = item
            .strip_prefix("onbeat ")
            .or_else(|| item.split_once("\"$ONBEAT\" ").map(|(_, rest)| rest))
            .or_else(|| (line == "- replay").then_some(item));
        let rest = match start {
            Some(rest) => {
                let verb = rest.split_whitespace().next().unwrap_or_default();
                if !verb.starts_with(|letter: char| letter.is_ascii_lowercase()) {
                    continue;
                }
                calls.push((verb.to_owned(), Vec::new()));
                rest
            }
            None if open => item,
            None => continue,
        };
        // A shell's `${NAME:+--flag …}` gives the flag if the name has a value.
        let words = rest.split_whitespace().map(|word| word.split(":+").last().unwrap_or(word));
        let flags = words.filter(|word| word.starts_with("--"));
        let names = flags.map(|flag| flag.split('=').next().unwrap_or(flag).to_owned());
        if let Some(call) = calls.last_mut() {
            call.1.extend(names);
        }
        open = line.ends_with('\\') || line.starts_with("- --") || line == "- replay";
    }
    calls
}

/// The flags that the reference's section of a verb does not have.
fn unknown<'a>(
    reference: &'a str,
    verb: &str,
    flags: &'a [String],
) -> impl Iterator<Item = &'a String> {
    let title = format!("## `onbeat {verb}`\n");
    let section = reference.split_once(&title).map_or("", |(_, rest)| rest);
    let section = section.split("\n## ").next().unwrap_or_default();
    let is_end = |rest: &str| !rest.starts_with(|c: char| c == '-' || c.is_ascii_alphanumeric());
    flags.iter().filter(move |flag| {
        let mut places = section.match_indices(flag.as_str());
        !places.any(|(at, _)| is_end(&section[at + flag.len()..]))
    })
}

/// The number of shards, as often as it stands in a manifest.
fn shard_counts(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let digits = |line: &str| line.chars().filter(char::is_ascii_digit).collect::<String>();
    let mut counts = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let next = lines.get(at + 1).copied().unwrap_or_default();
        match *line {
            "path: /spec/completions" | "path: /spec/parallelism" | "- name: JOB_COMPLETIONS" => {
                counts.push(digits(next));
            }
            _ if line.starts_with("completions:") || line.starts_with("parallelism:") => {
                counts.push(digits(line));
            }
            _ if line.contains("{ name: JOB_COMPLETIONS,") => counts.push(digits(line)),
            _ => {}
        }
    }
    counts
}

/// Settings that the Job names and nobody sets, and such that are set and that it does not name.
fn setting_problems(job: &str, settings: &str) -> Vec<String> {
    let names = job.split("$(").skip(1).filter_map(|rest| rest.split_once(')'));
    let named: BTreeSet<&str> = names.map(|(name, _)| name).filter(|name| *name != GIVEN).collect();
    let is_name = |name: &&str| name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let pairs = settings.lines().filter_map(|line| line.split_once('='));
    let set: BTreeSet<&str> =
        pairs.map(|(name, _)| name.trim_start_matches([' ', '-'])).filter(is_name).collect();
    let unset = named.difference(&set).map(|name| format!("{JOB}: nobody sets {name}"));
    let unread = set.difference(&named).map(|name| format!("{JOB} does not name {name}"));
    unset.chain(unread).collect()
}

/// What is wrong with the seccomp profile.
fn profile_problems(text: &str) -> Vec<String> {
    let profile: serde_json::Value = match serde_json::from_str(text) {
        Ok(profile) => profile,
        Err(error) => return vec![format!("{PROFILE}: {error}")],
    };
    let mut problems = Vec::new();
    if profile["defaultAction"] != "SCMP_ACT_ERRNO" {
        problems.push(format!("{PROFILE}: what it does not name is not refused"));
    }
    let rules = profile["syscalls"].as_array().map_or(&[][..], Vec::as_slice);
    let allowed = rules.iter().filter(|rule| rule["action"] == "SCMP_ACT_ALLOW");
    let names = allowed.filter_map(|rule| rule["names"].as_array()).flatten();
    let names: Vec<&str> = names.filter_map(serde_json::Value::as_str).collect();
    for name in RINGS.iter().filter(|name| !names.contains(name)) {
        problems.push(format!("{PROFILE}: it does not allow {name}"));
    }
    for name in FORBIDDEN.iter().filter(|name| names.contains(name)) {
        problems.push(format!("{PROFILE}: it allows {name}"));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_found_in_scripts_and_in_lists() {
        let script = "# onbeat nothing --at-all\n\
                      onbeat merge --force ${A:+--allow-missing \"$A\"} \\\n  --output b\n--else\n\
                      exec \"$ONBEAT\" report run.beat --format=json\n";
        let strings = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let expected: Vec<(String, Vec<String>)> = vec![
            ("merge".to_owned(), strings(&["--force", "--allow-missing", "--output"])),
            ("report".to_owned(), strings(&["--format"])),
        ];
        assert_eq!(calls(script), expected);
        let list = "args:\n  - replay\n  - --shard=auto\n  - --url=$(URL)\nenv:\n  - --not-one\n";
        assert_eq!(calls(list), [("replay".to_owned(), strings(&["--shard", "--url"]))]);
    }

    #[test]
    fn a_flag_is_looked_for_in_its_own_verbs_section_and_whole() {
        let reference = "## `onbeat merge`\n- `--output FILE`\n## `onbeat plan`\n- `--shard I/N`\n";
        let flags = ["--output".to_owned(), "--shard".to_owned(), "--out".to_owned()];
        let found: Vec<&String> = unknown(reference, "merge", &flags).collect();
        assert_eq!(found, ["--shard", "--out"]);
    }

    #[test]
    fn every_place_of_the_number_of_shards_is_seen() {
        let job = "completions: 4\nparallelism: 3\n- name: JOB_COMPLETIONS\n  value: \"2\"\n";
        assert_eq!(shard_counts(job), ["4", "3", "2"]);
        let patch = "path: /spec/completions\nvalue: 5\npath: /spec/parallelism\nvalue: 6\n\
                     value: { name: JOB_COMPLETIONS, value: \"7\" }\n";
        assert_eq!(shard_counts(patch), ["5", "6", "7"]);
    }

    #[test]
    fn settings_are_set_where_they_are_named_and_named_where_they_are_set() {
        let job = "- --url=$(URL)\n- --output=/runs/$(RUN)/$(JOB_COMPLETION_INDEX).beat\n";
        let settings = "# a=b\nRUN=first\nkind: a\n      - URL=http://a?b=c\n";
        assert_eq!(setting_problems(job, settings), [""; 0]);
        let unset = setting_problems(job, &settings.replace("URL", "SERVER_URL"));
        assert_eq!(unset.len(), 2, "{unset:?}");
        assert!(unset[0].ends_with("nobody sets URL"), "{unset:?}");
        assert!(unset[1].ends_with("does not name SERVER_URL"), "{unset:?}");
    }

    #[test]
    fn a_profile_that_forbids_rings_or_allows_too_much_is_refused() {
        let sound = r#"{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"action":"SCMP_ACT_ALLOW",
            "names":["io_uring_enter","io_uring_register","io_uring_setup"]},
            {"action":"SCMP_ACT_ERRNO","names":["clone3"]}]}"#;
        assert_eq!(profile_problems(sound), [""; 0]);
        assert_eq!(profile_problems(&sound.replace("_setup", "_set")).len(), 1);
        assert_eq!(profile_problems(&sound.replace("enter\"", "enter\",\"mount\"")).len(), 1);
        assert_eq!(profile_problems(&sound.replace("_ERRNO\",\"sys", "_LOG\",\"sys")).len(), 1);
        assert_eq!(profile_problems("{").len(), 1);
    }
}
