//! Whether a run's user stopped it before its end, and where, in words that every output shares.
//!
//! What was stopped has the numbers of a part: the schedule held as far as it went, and nothing is
//! known of what was to come. So a gate does not pass it in silence, and a comparison says it. Of
//! a run that several machines sent, those that were stopped are named. Whether the schedule held
//! is [`super::verdict`]'s, which counts a part of the machines as no whole run.

use super::report::Report;
use crate::counted::{counted, grouped};

/// Machines that are named one by one; the others are counted.
const NAMED_MAX: usize = 4;

/// By whom a run was stopped, and on which machines; `None` if it was not.
#[must_use]
pub fn by_whom(report: &Report) -> Option<String> {
    if !report.run.interrupted {
        return None;
    }
    let hosts = report.hosts.iter().filter(|host| host.interrupted);
    let mut names: Vec<String> =
        hosts.map(|host| format!("{} (shard {})", host.host, host.shard)).collect();
    if names.is_empty() {
        return Some("stopped by the user".to_owned());
    }
    let more = names.len().saturating_sub(NAMED_MAX);
    names.truncate(NAMED_MAX);
    let more = if more > 0 { format!(" and {} more", grouped(more as u64)) } else { String::new() };
    Some(format!("stopped by the user on {}{more}", names.join(", ")))
}

/// What a reader must know of the numbers of such a run; `None` if it was not stopped.
#[must_use]
pub fn warning(report: &Report) -> Option<String> {
    let how = by_whom(report)?;
    let sent = counted(report.schedule.sent, "request");
    Some(match report.users {
        Some(_) => format!("the run was {how} after {sent}: its numbers are of that part only"),
        None => format!(
            "the run was {how} when {} of {} had been sent: its numbers are of that part only",
            grouped(report.schedule.sent),
            counted(report.schedule.planned, "request")
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::sample::Sample;
    use crate::log::{Class, Host, HostPart, Merged};
    use crate::metrics::{ReportOptions, report};
    use crate::run::Run;

    /// A run of 9 requests, stopped after 3, of so many machines.
    fn stopped(hosts: &[bool]) -> Report {
        let mut sample = Sample::new();
        for k in 0..9 {
            let due = k * 1_000_000;
            if k < 3 {
                let request = sample.send(due);
                sample.done(request, due + 500_000, Class::Ok);
            } else {
                let request = sample.plan(due);
                sample.done(request, 3_000_000, Class::NotReached);
            }
        }
        sample.interrupted = true;
        let part = |(shard, &interrupted): (u32, &bool)| HostPart {
            shard,
            interrupted,
            closed: true,
            host: Host { hostname: format!("h{shard}"), ..Host::default() },
            ..HostPart::default()
        };
        let hosts: Vec<HostPart> = (0..).zip(hosts).map(part).collect();
        let shards = u32::try_from(hosts.len()).expect("few");
        let merged = Merged { shards, hosts, ..Merged::default() };
        sample.manifest.merged = (shards > 0).then(|| Box::new(merged));
        report(&Run::read(&sample.bytes()).expect("a log"), &ReportOptions::default())
    }

    #[test]
    fn it_is_said_how_far_it_came_and_on_which_machines() {
        let alone = stopped(&[]);
        assert_eq!(by_whom(&alone).as_deref(), Some("stopped by the user"));
        let words = warning(&alone).expect("it was");
        assert!(
            words.contains("stopped by the user when 3 of 9 requests had been sent"),
            "{words}"
        );
        assert!(alone.verdict.schedule_held, "as far as it went: {:?}", alone.verdict);
        let many = by_whom(&stopped(&[true; 6])).expect("they were");
        assert!(many.ends_with("h2 (shard 2), h3 (shard 3) and 2 more"), "{many}");
        let mut whole = alone;
        whole.run.interrupted = false;
        assert_eq!((by_whom(&whole), warning(&whole)), (None, None));
    }

    #[test]
    fn a_run_of_which_some_machines_were_stopped_did_not_hold_its_schedule() {
        let part = stopped(&[false, true, false]);
        assert_eq!(by_whom(&part).as_deref(), Some("stopped by the user on h1 (shard 1)"));
        let reasons = &part.verdict.reasons;
        assert!(!part.run.torn, "the logs are whole");
        assert!(!part.verdict.schedule_held && reasons.len() == 1, "{reasons:?}");
        assert!(reasons[0].contains("h1 (shard 1) was stopped by its user"), "{reasons:?}");
        assert!(stopped(&[true, true]).verdict.schedule_held, "all of them, as of one machine");
    }
}
