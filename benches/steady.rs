//! Which requests tell of the sender and not of its host.
//!
//! After the host took a core away, a sender that runs near its limit needs many times as long to
//! catch up: at nine tenths of what it can send, ten times. Requests of that time are late, and no
//! stall overlaps them. A search for the highest rate must not count them, or it finds how often
//! the host stalls. It must not excuse a sender that never catches up either: the time is bounded
//! by the stall's length, and ends with the first request that is in time again.

/// How many times a stall's length catching up may take.
const CATCHING_UP: i64 = 10;
/// A request that is no later than this was not waiting behind others.
pub const IN_TIME_NS: i64 = 50_000;

/// Lateness of the requests that no host stall and no catching up after one explains, sorted.
/// `requests` are due time and lateness, in order of due time; `stalls` are start and length in any
/// order; all in nanoseconds from one zero.
#[must_use]
pub fn steady(requests: &[(i64, i64)], stalls: &[(i64, i64)]) -> Vec<f64> {
    let mut stalls = stalls.to_vec();
    stalls.sort_unstable();
    let mut stalls = stalls.into_iter().peekable();
    let mut excused_until_ns = i64::MIN;
    let mut stall_end_ns = i64::MIN;
    let mut found = Vec::with_capacity(requests.len());
    for &(due_ns, late_ns) in requests {
        let sent_ns = due_ns.saturating_add(late_ns);
        while let Some((start_ns, length_ns)) = stalls.next_if(|&(start_ns, _)| start_ns < sent_ns)
        {
            stall_end_ns = start_ns.saturating_add(length_ns);
            let extra_ns = length_ns.saturating_mul(CATCHING_UP);
            excused_until_ns = excused_until_ns.max(stall_end_ns).saturating_add(extra_ns);
        }
        if due_ns >= stall_end_ns && late_ns <= IN_TIME_NS {
            excused_until_ns = excused_until_ns.min(due_ns);
        }
        if due_ns >= excused_until_ns {
            found.push(late_ns as f64);
        }
    }
    found.sort_by(f64::total_cmp);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// What a sender does that takes `cost_ns` for each of `count` requests due every `gap_ns`, and
    /// is stalled.
    fn sent(count: i64, gap_ns: i64, cost_ns: i64, stalls: &[(i64, i64)]) -> Vec<(i64, i64)> {
        let mut free_ns = 0;
        (0..count)
            .map(|number| {
                let due_ns = number * gap_ns;
                let mut at_ns = free_ns.max(due_ns);
                for &(start_ns, length_ns) in stalls {
                    if (start_ns..start_ns + length_ns).contains(&at_ns) {
                        at_ns = start_ns + length_ns;
                    }
                }
                free_ns = at_ns + cost_ns;
                (due_ns, at_ns - due_ns)
            })
            .collect()
    }

    fn worst(requests: &[(i64, i64)], stalls: &[(i64, i64)]) -> f64 {
        steady(requests, stalls).last().copied().unwrap_or(0.0)
    }

    #[test]
    fn catching_up_after_a_stall_is_not_the_senders() {
        let stalls = [(20 * MS, 3 * MS), (60 * MS, 2 * MS)];
        let requests = sent(10_000, 10_000, 9_000, &stalls);
        assert!(requests.iter().any(|request| request.1 > 2 * MS));
        assert!(worst(&requests, &stalls) <= IN_TIME_NS as f64);
        let counted = steady(&requests, &stalls).len();
        assert!((4_000..6_000).contains(&counted), "{counted} requests");
    }

    #[test]
    fn a_sender_that_cannot_keep_up_is_not_excused() {
        let stalls = [(20 * MS, MS / 10)];
        let requests = sent(10_000, 10_000, 11_000, &stalls);
        assert!(worst(&requests, &stalls) > 9.0 * MS as f64);
        assert!(steady(&requests, &stalls).len() > 9_000);
    }

    #[test]
    fn without_stalls_everything_counts() {
        let requests = sent(100, 10_000, 2_000, &[]);
        assert_eq!(steady(&requests, &[]).len(), 100);
        assert_eq!(steady(&[], &[(0, MS)]), [0.0; 0]);
    }
}
