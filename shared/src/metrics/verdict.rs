//! Whether the schedule held, and if not, why and what to do about it.
//!
//! It held if every planned request left (those aside that a user's stop kept back or the server
//! gave no connection), at no less than 99 % of the offered rate, with a p99 lateness outside host
//! stalls within the limit, and every body was ready when due. A log without a footer, with damage,
//! merged of a part of the machines or of some that were stopped, a run without a request, and one
//! whose every request was late in a host stall cannot show that and do not count as held. Where
//! users decide what is sent there is no offered rate, and nothing is planned that could stay
//! behind. The measurement's validity is all this says; how the server did is elsewhere.

use super::latency::count;
use super::quantile::Statistic;
use super::schedule::Sending;
use crate::counted::{agreeing, counted};
use crate::quantity::{duration, duration_us};
use crate::run::State;

/// Least share of the offered rate that counts as held.
pub const ACHIEVED_SHARE_MIN: f64 = 0.99;

/// How the reason begins that a log without a footer is; of a log that is still being read or
/// written it is none.
pub const NO_FOOTER: &str = "the log has no footer";

/// What the verdict is about.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// Counts and rates.
    pub sending: &'a Sending,
    /// Lateness in microseconds, without requests hit by a host stall.
    pub outside_stalls: Option<&'a Statistic>,
    /// Whether the host took the cores away so much that it is what to look at first.
    pub host_was_busy: bool,
    /// Lateness in microseconds, of all requests.
    pub lateness: Option<&'a Statistic>,
    /// The limit on its p99, in microseconds.
    pub max_lateness_us: u64,
    /// How far the log goes.
    pub state: State,
    /// Bytes of the log that were refused as damaged.
    pub damaged_bytes: u64,
    /// What logs of several machines lacked when they were merged, and which of them were stopped.
    pub unmerged: &'a [String],
    /// Why the run was given up, if it was.
    pub given_up: Option<&'a str>,
    /// The other tool that measured it, if one did.
    pub measured_by: Option<&'a str>,
}

/// The reasons why the schedule did not hold, each with its numbers and the next step; none if it
/// held.
#[must_use]
pub fn reasons(evidence: &Evidence<'_>) -> Vec<String> {
    let (sending, limit) = (evidence.sending, evidence.max_lateness_us);
    if let Some(tool) = evidence.measured_by {
        return vec![format!(
            "{tool} measured this run, and its file does not say when requests were scheduled: \
             nobody can tell how late they left"
        )];
    }
    let mut reasons = Vec::new();
    // What was lacking here comes first: no number below is about the server alone.
    reasons.extend(lacking(sending));
    if sending.planned == 0 {
        reasons.push(match sending.by_users {
            true => "no request was sent: its users only waited; give them more --test-duration, \
                     or less --max-delay"
                .to_owned(),
            false => "no request was planned; check the trace and its filters".to_owned(),
        });
    }
    reasons.extend(unfinished(evidence));
    if evidence.damaged_bytes > 0 {
        reasons.push(format!(
            "{} of the log {} damaged and left out: requests, answers and whole ends may be missing \
             from every number; copy the file again from where it was made, or repeat the run",
            counted(evidence.damaged_bytes, "byte"),
            agreeing(evidence.damaged_bytes, "is", "are")
        ));
    }
    let lacks = evidence.unmerged.iter();
    reasons.extend(lacks.map(|words| format!("{words}: this is a part of the run only")));
    reasons.extend(evidence.given_up.map(|why| format!("the run was given up: {why}")));
    reasons.extend(never_sent(evidence));
    reasons.extend(below_rate(evidence));
    let over = |late: &&Statistic| late.p99 > count(limit);
    if let Some(late) = evidence.outside_stalls.filter(over) {
        reasons.push(format!(
            "p99 lateness outside host stalls is {} (--max-lateness-us); {}use more --cores, \
             isolate them, or raise the limit knowingly",
            beyond(late.p99, limit),
            host_first(evidence)
        ));
    }
    if let Some(late) = evidence.lateness.filter(over).filter(|_| evidence.outside_stalls.is_none())
    {
        reasons.push(format!(
            "host stalls explain the lateness of every request, p99 {} (--max-lateness-us): none is \
             left that could show that the schedule held; `onbeat doctor` says what this host does",
            beyond(late.p99, limit)
        ));
    }
    if sending.underruns > 0 {
        reasons.push(format!(
            "{} {} not rendered when due; raise --render-budget, or leave a CPU to rendering \
             (fewer --cores)",
            counted(sending.underruns, "request body"),
            agreeing(sending.underruns, "was", "were")
        ));
    }
    reasons
}

/// Requests that our own side kept back or broke off, each kind with what would help.
fn lacking(sending: &Sending) -> Vec<String> {
    let kept = sending.kept;
    let planned =
        counted(sending.planned, if sending.by_users { "request" } else { "planned request" });
    let of_planned = [
        (
            kept.without_descriptor,
            "found no descriptor on this side: raise the limit on open files (ulimit -n; sudo \
             prlimit --nofile=1048576:1048576 --pid $$), or cap the connections \
             (--max-connections)",
        ),
        (
            kept.without_port,
            "found no local port on this side: widen their range (sudo sysctl -w \
             net.ipv4.ip_local_port_range=\"1024 65535\"), leave from several addresses \
             (--local-address), or cap the connections (--max-connections)",
        ),
        (
            kept.otherwise,
            "were kept back on this side, by too little memory, a firewall's rule or a core that \
             failed: see `dmesg` and `sudo nft list ruleset`, or cap the connections \
             (--max-connections)",
        ),
    ];
    let of_planned = of_planned.into_iter().filter(|(count, _)| *count > 0);
    let mut words: Vec<String> =
        of_planned.map(|(count, what)| format!("{count} of {planned} {what}")).collect();
    if sending.broken_here > 0 {
        words.push(format!(
            "{} of {} that left broke off on this side, by too little memory, a firewall's rule or \
             a core that failed, and not by the server: see `dmesg`",
            sending.broken_here,
            counted(sending.sent, "request")
        ));
    }
    words
}

/// What is over a limit (both in microseconds) and how far, also where three digits do not tell.
fn beyond(late: f64, limit: u64) -> String {
    match (duration(late * 1e3), duration_us(limit)) {
        (late, limit) if late == limit => format!("just above the limit of {limit}"),
        (late, limit) => format!("{late}, above the limit of {limit}"),
    }
}

/// What comes before advice about the sender where the host took much of its time: more cores that
/// the host takes away as well do not help.
const fn host_first(evidence: &Evidence<'_>) -> &'static str {
    if evidence.host_was_busy {
        "the host took the cores away at times: see what `onbeat doctor` says first, then "
    } else {
        ""
    }
}

/// A rate that was not achieved. Time in host stalls is taken off it, so that what is short is the
/// sender's doing where requests were late; those that never left have reasons of their own.
fn below_rate(evidence: &Evidence<'_>) -> Option<String> {
    let (sending, limit) = (evidence.sending, evidence.max_lateness_us);
    let (offered, achieved) = sending.offered_rps().zip(sending.achieved_rps())?;
    if achieved >= offered * ACHIEVED_SHARE_MIN {
        return None;
    }
    let late = 100.0 * count(sending.late) / count(sending.achieved.max(1));
    let saturated = if late >= 1.0 { "CLIENT SATURATED: " } else { "" };
    let next = match sending.late {
        0 => String::new(),
        _ => format!("; {}use more --cores or a lower --replay-speedup", host_first(evidence)),
    };
    Some(format!(
        "{saturated}{achieved:.1} of the {offered:.1} requests per second that were offered were \
         sent ({:.1} %, at least 99 % are needed; time in host stalls is taken off), {late:.1} % of \
         them more than {} late{next}",
        100.0 * achieved / offered,
        duration_us(limit)
    ))
}

fn unfinished(evidence: &Evidence<'_>) -> Option<String> {
    let State::Unfinished { .. } = evidence.state else { return None };
    let Sending { open, not_reached, .. } = *evidence.sending;
    Some(format!(
        "{NO_FOOTER} (the run was killed, the file was cut, or it is still being written): \
         {} {} in flight and {not_reached} not reached when it ends; repeat the run for a whole \
         result",
        counted(open, "request"),
        agreeing(open, "is", "are")
    ))
}

fn never_sent(evidence: &Evidence<'_>) -> Option<String> {
    let Sending { planned, never_sent, .. } = *evidence.sending;
    // The user's stop explains what was not sent after it, and every output says it, gates too
    // (`stopped`); users plan nothing that they do not come to.
    if never_sent == 0 || evidence.sending.by_users || evidence.state == State::Interrupted {
        return None;
    }
    let why = match evidence.given_up {
        Some(_) => "because of that",
        None => "the run ended first: let it drain longer (--drain-seconds) or plan fewer requests",
    };
    let were = agreeing(never_sent, "was", "were");
    let planned = counted(planned, "planned request");
    let sign = if evidence.given_up.is_some() { "," } else { ";" };
    Some(format!("{never_sent} of {planned} {were} never sent{sign} {why}"))
}

#[cfg(test)]
mod tests {
    use super::beyond;

    #[test]
    fn a_lateness_has_the_unit_that_fits_and_is_told_from_its_limit() {
        assert_eq!(beyond(18_175.4, 1_000), "18.2 ms, above the limit of 1 ms");
        assert_eq!(beyond(812.0, 500), "812 µs, above the limit of 500 µs");
        assert_eq!(beyond(2_400_000.0, 1_000_000), "2.4 s, above the limit of 1 s");
        assert_eq!(beyond(1_000.4, 1_000), "just above the limit of 1 ms");
    }
}
