//! How much of a TTFT the client itself could have caused, at most.
//!
//! Three things on this side can make a first token late, as far as a log shows them: the request
//! left late (lateness), the kernel took its bytes slowly (send time), and its core lay in host
//! stalls while the answer could already have been there. Each is counted in full, although the
//! network may be to blame for a slow send, a stall delays a token only if that arrives during it,
//! and lateness lies before TTFT begins: the sum is an *upper bound*, and a request below it may
//! owe nothing of its TTFT to the client. Stalls during the send are part of the send and count
//! once. What a core needs between two looks at its sockets without a stall is in no stamp, and not
//! in here.

use super::latency::{count, nanos, send_ns, ttft_ns};
use super::lateness::lateness_ns;
use super::quantile::percentile;
use crate::run::Run;
use crate::units::RunNanos;

/// The share of a TTFT from which on the client may have made a difference that matters.
pub const NOTABLE_SHARE: f64 = 0.10;

/// What the client could have added to the first token's arrival, in its parts, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientPart {
    /// Sent − max(due, ready).
    pub late_ns: i64,
    /// Kernel accepted the last byte − sent, as far as that lies before the first token.
    pub send_ns: i64,
    /// Host stalls of its core from then to the first token.
    pub stalled_ns: i64,
}

impl ClientPart {
    /// Of request `i`, whatever its outcome; `None` if it never left, has no first token, or the
    /// log does not say when the kernel had accepted it.
    #[must_use]
    pub fn of(run: &Run, i: usize) -> Option<Self> {
        let requests = &run.requests;
        let ttft = ttft_ns(run, i)?.max(0);
        // A server that answers before it has read the whole request may make the send the longer.
        let send_ns = send_ns(run, i)?.clamp(0, ttft);
        let first_token = requests.first_token(i)?;
        let from = RunNanos(requests.sent(i)?.0.saturating_add(send_ns));
        let stalled = run.stalls.stalled_ns(requests.core(i)?, from, first_token);
        Some(Self {
            late_ns: lateness_ns(run, i)?.max(0),
            send_ns,
            stalled_ns: i64::try_from(stalled).unwrap_or(i64::MAX),
        })
    }

    /// All parts together.
    #[must_use]
    pub const fn sum_ns(&self) -> i64 {
        self.late_ns.saturating_add(self.send_ns).saturating_add(self.stalled_ns)
    }
}

/// What the client could have added, as a share of request `i`'s TTFT. Above one where a request
/// left later than its answer then took. `None` where [`ClientPart::of`] has none or TTFT is zero.
#[must_use]
pub fn client_share(run: &Run, i: usize) -> Option<f64> {
    share_and_part(run, i).map(|(share, _)| share)
}

fn share_and_part(run: &Run, i: usize) -> Option<(f64, ClientPart)> {
    let ttft = ttft_ns(run, i).filter(|&ttft| ttft > 0)?;
    let part = ClientPart::of(run, i)?;
    Some((nanos(part.sum_ns()) / nanos(ttft), part))
}

/// The client's share of TTFT over successful requests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClientShare {
    /// Successful requests of which it is known.
    pub requests: u64,
    /// Successful requests of which it is not.
    pub unknown: u64,
    /// Those with a share above [`NOTABLE_SHARE`].
    pub notable: u64,
    /// The share of half of them is not above this.
    pub p50: Option<f64>,
    /// That of 99 % of them.
    pub p99: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
    /// The largest sum of the parts, in nanoseconds.
    pub longest_ns: Option<i64>,
    /// The sums of all parts, each over all requests, in nanoseconds.
    pub parts_ns: [f64; 3],
}

impl ClientShare {
    /// Over these successful requests of a run.
    #[must_use]
    pub fn of(run: &Run, successful: impl IntoIterator<Item = usize>) -> Self {
        let mut all = Self::default();
        let mut shares = Vec::new();
        for i in successful {
            let Some((share, part)) = share_and_part(run, i) else {
                all.unknown += 1;
                continue;
            };
            shares.push(share);
            all.notable += u64::from(share > NOTABLE_SHARE);
            all.longest_ns = all.longest_ns.max(Some(part.sum_ns()));
            let parts = [part.late_ns, part.send_ns, part.stalled_ns];
            for (sum, part) in all.parts_ns.iter_mut().zip(parts) {
                *sum += nanos(part);
            }
        }
        shares.sort_unstable_by(f64::total_cmp);
        all.requests = shares.len() as u64;
        all.p50 = percentile(&shares, 0.50);
        all.p99 = percentile(&shares, 0.99);
        all.max = shares.last().copied();
        all
    }

    /// The share of the requests that have a notable one; `None` if it is known of none.
    #[must_use]
    pub fn notable_share(&self) -> Option<f64> {
        (self.requests > 0).then(|| count(self.notable) / count(self.requests))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::sample::{self, Sample};
    use crate::log::{Class, Record};
    use crate::units::{CoreIndex, RequestIndex};

    const US: i64 = 1_000;

    /// A request due at zero: when it left, when the kernel had it, and its first token, in µs.
    fn exchange(sample: &mut Sample, sent: i64, accepted: Option<i64>, first: i64) -> RequestIndex {
        let request = sample.plan(0);
        sample.dispatch(request, 0, sent * US);
        if let Some(accepted) = accepted {
            let (time, bytes, connection) = (RunNanos(accepted * US), 700, 0);
            sample.push(CoreIndex(0), Record::SentEnd { request, time, bytes, connection });
        }
        sample.chunks(request, &[first * US, (first + 10) * US]);
        sample.done(request, (first + 20) * US, Class::Ok);
        request
    }

    fn stall(sample: &mut Sample, core: u16, start: i64, length: u64) {
        let start = RunNanos(start * US);
        let length_ns = length * 1_000;
        sample.push(CoreIndex(core), Record::Stall { start, length_ns });
    }

    #[test]
    fn lateness_send_and_stalls_add_up_and_none_counts_twice() {
        let mut sample = Sample::new();
        exchange(&mut sample, 100, Some(150), 1_100);
        // During the send, across its end, during prefill, across the first token; another core's.
        stall(&mut sample, 0, 120, 10);
        stall(&mut sample, 0, 140, 60);
        stall(&mut sample, 0, 500, 70);
        stall(&mut sample, 0, 1_050, 200);
        stall(&mut sample, 1, 300, 400);
        let run = Run::read(&sample.bytes()).expect("a log");
        let part = ClientPart::of(&run, 0).expect("known");
        assert_eq!((part.late_ns, part.send_ns), (100 * US, 50 * US));
        assert_eq!(part.stalled_ns, (50 + 70 + 50) * US);
        assert_eq!(part.sum_ns(), 320 * US);
        assert_eq!(client_share(&run, 0), Some(0.32));
    }

    #[test]
    fn a_send_that_outlasts_the_first_token_is_cut_there() {
        let mut sample = Sample::new();
        exchange(&mut sample, 0, Some(5_000), 1_000);
        let run = Run::read(&sample.bytes()).expect("a log");
        assert_eq!(client_share(&run, 0), Some(1.0), "all of it, and no more");
    }

    #[test]
    fn what_is_not_known_is_counted_apart() {
        let mut sample = Sample::new();
        exchange(&mut sample, 0, Some(10), 1_000);
        exchange(&mut sample, 0, Some(300), 1_000);
        exchange(&mut sample, 0, None, 1_000);
        let run = Run::read(&sample.bytes()).expect("a log");
        assert_eq!(ClientPart::of(&run, 2), None);
        let all = ClientShare::of(&run, 0..3);
        assert_eq!((all.requests, all.unknown, all.notable), (2, 1, 1));
        assert_eq!((all.p50, all.max), (Some(0.155), Some(0.3)));
        assert_eq!(all.longest_ns, Some(300 * US));
        assert_eq!(all.parts_ns, [0.0, 310_000.0, 0.0]);
        assert_eq!(all.notable_share(), Some(0.5));
        let none = ClientShare::of(&run, []);
        assert_eq!((none.p50, none.p99, none.notable_share()), (None, None, None));
    }

    #[test]
    fn late_requests_can_owe_more_than_their_ttft() {
        let mut sample = Sample::new();
        exchange(&mut sample, 3_000, Some(3_000), 4_000);
        let run = Run::read(&sample.bytes()).expect("a log");
        assert_eq!(client_share(&run, 0), Some(3.0));
    }

    #[test]
    fn no_part_is_negative_and_each_bounds_what_it_is_part_of() {
        let run = Run::read(&sample::log(4, 500)).expect("a log");
        let mut known = 0;
        for i in 0..run.requests.len() {
            let Some(part) = ClientPart::of(&run, i) else { continue };
            known += 1;
            let ttft = ttft_ns(&run, i).expect("it has a part");
            assert!(part.late_ns >= 0 && part.send_ns >= 0 && part.stalled_ns >= 0);
            assert!(part.send_ns + part.stalled_ns <= ttft, "request {i}: {part:?} of {ttft}");
        }
        assert!(known > 400, "{known}");
    }
}
