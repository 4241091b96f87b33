//! What a core tells the world while it runs: plain counters that anybody may read.
//!
//! Each core owns one set and is its only writer, so an update is a load and a store without a lock
//! prefix. Readers see each number a little late and never torn. Nothing is decided from them; the
//! log is the record.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Buckets of the live lateness histogram: four to each doubling, from one nanosecond up.
const BUCKETS: usize = 4 * 64;

/// One core's live numbers. Aligned so that two cores never share a cache line.
#[derive(Debug)]
#[repr(align(128))]
pub struct Counters {
    sent: AtomicU64,
    ended: AtomicU64,
    never_left: AtomicU64,
    failed: AtomicU64,
    foreign: AtomicU64,
    never_sent: AtomicU64,
    tokens: AtomicU64,
    opened: AtomicU64,
    lost_records: AtomicU64,
    next_due_ns: AtomicI64,
    lateness: [AtomicU64; BUCKETS],
}

/// A moment's sum over cores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Requests whose first byte has been handed to the kernel.
    pub sent: u64,
    /// Requests that ended, in any way, after having been sent or while connecting.
    pub ended: u64,
    /// Of those, the ones that never had a connection to leave on.
    pub never_left: u64,
    /// Of the ended, the ones that did not end well.
    pub failed: u64,
    /// Of the failed, the ones whose answer was not HTTP/1.
    pub foreign: u64,
    /// Requests that the end of the run left unsent.
    pub never_sent: u64,
    /// Content events so far.
    pub tokens: u64,
    /// Connections opened during the run, beyond those opened before zero.
    pub opened: u64,
    /// Log records that found no room.
    pub lost_records: u64,
    /// The earliest instant (ns of the run) at which any core has something to send.
    pub next_due_ns: Option<i64>,
    pub(crate) lateness: Vec<u64>,
}

impl Counters {
    /// All zero, nothing due.
    #[must_use]
    pub fn new() -> Self {
        Self {
            sent: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            never_left: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            foreign: AtomicU64::new(0),
            never_sent: AtomicU64::new(0),
            tokens: AtomicU64::new(0),
            opened: AtomicU64::new(0),
            lost_records: AtomicU64::new(0),
            next_due_ns: AtomicI64::new(i64::MAX),
            lateness: [const { AtomicU64::new(0) }; BUCKETS],
        }
    }

    /// A request left `lateness_ns` after it was ready.
    pub fn count_sent(&self, lateness_ns: i64) {
        add(&self.sent, 1);
        add(&self.lateness[bucket(lateness_ns)], 1);
    }

    /// A request ended. `left`: after it had been sent; `well`: as it should, be it cancelled.
    pub fn count_ended(&self, left: bool, well: bool) {
        add(&self.ended, 1);
        if !left {
            add(&self.never_left, 1);
        }
        if !well {
            add(&self.failed, 1);
        }
    }

    /// A request's answer was not HTTP/1.
    pub fn count_foreign(&self) {
        add(&self.foreign, 1);
    }

    /// A planned request will not be sent.
    pub fn count_never_sent(&self) {
        add(&self.never_sent, 1);
    }

    /// So many content events arrived.
    pub fn count_tokens(&self, events: u64) {
        add(&self.tokens, events);
    }

    /// A connection was opened during the run.
    pub fn count_opened(&self) {
        add(&self.opened, 1);
    }

    /// So many records found no room until now.
    pub fn set_lost(&self, records: u64) {
        self.lost_records.store(records, Ordering::Relaxed);
    }

    /// When this core sends next, as far as it knows.
    pub fn set_next_due(&self, due_ns: Option<i64>) {
        self.next_due_ns.store(due_ns.unwrap_or(i64::MAX), Ordering::Relaxed);
    }
}

impl Default for Counters {
    fn default() -> Self {
        Self::new()
    }
}

impl Snapshot {
    /// The sum over `cores`, as of now.
    #[must_use]
    pub fn of<'a>(cores: impl IntoIterator<Item = &'a Counters>) -> Self {
        let mut sum = Self { lateness: vec![0; BUCKETS], ..Self::default() };
        for core in cores {
            sum.sent += core.sent.load(Ordering::Relaxed);
            sum.ended += core.ended.load(Ordering::Relaxed);
            sum.never_left += core.never_left.load(Ordering::Relaxed);
            sum.failed += core.failed.load(Ordering::Relaxed);
            sum.foreign += core.foreign.load(Ordering::Relaxed);
            sum.never_sent += core.never_sent.load(Ordering::Relaxed);
            sum.tokens += core.tokens.load(Ordering::Relaxed);
            sum.opened += core.opened.load(Ordering::Relaxed);
            sum.lost_records += core.lost_records.load(Ordering::Relaxed);
            let due = Some(core.next_due_ns.load(Ordering::Relaxed)).filter(|&ns| ns != i64::MAX);
            sum.next_due_ns = match (sum.next_due_ns, due) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
            for (sum, bucket) in sum.lateness.iter_mut().zip(&core.lateness) {
                *sum += bucket.load(Ordering::Relaxed);
            }
        }
        sum
    }

    /// Requests whose answer has not ended. Those still connecting count once they are sent.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        // The counters are read one after the other while they change.
        self.sent.saturating_sub(self.ended.saturating_sub(self.never_left))
    }

    /// The lateness that `share` of all sends did not exceed, in nanoseconds, to within a fifth;
    /// `None` before the first send.
    #[must_use]
    pub fn lateness_ns(&self, share: f64) -> Option<f64> {
        let total: u64 = self.lateness.iter().sum();
        let mut seen = 0;
        for (index, &count) in self.lateness.iter().enumerate() {
            seen += count;
            // Counts stay far below 2^52, where f64 is exact.
            if count > 0 && seen as f64 >= share * total as f64 {
                return Some(bucket_top_ns(index));
            }
        }
        None
    }
}

fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

/// Four buckets to each doubling: the exponent and the two bits below the leading one.
fn bucket(lateness_ns: i64) -> usize {
    let value = lateness_ns.max(1).cast_unsigned();
    let exponent = value.ilog2();
    let below = if exponent >= 2 { (value >> (exponent - 2)) & 3 } else { 0 };
    (exponent * 4) as usize + usize::from(below.to_le_bytes()[0])
}

fn bucket_top_ns(index: usize) -> f64 {
    let exponent = (index / 4) as f64;
    let quarter = (index % 4) as f64;
    2f64.powf(exponent) * (1.25 + quarter / 4.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_quantiles_are_within_a_quarter_of_the_value() {
        let counters = Counters::new();
        assert_eq!(Snapshot::of([&counters]).lateness_ns(0.5), None);
        for value in [1_000, 2_000, 3_000, 4_000, 1_000_000] {
            counters.count_sent(value);
        }
        let snapshot = Snapshot::of([&counters]);
        let near = |share: f64, value: f64| {
            let found = snapshot.lateness_ns(share).expect("sends were counted");
            assert!((found / value - 1.0).abs() <= 0.26, "{found} is not near {value}");
        };
        near(0.2, 1_000.0);
        near(0.8, 4_000.0);
        near(1.0, 1_000_000.0);
    }

    #[test]
    fn a_request_that_never_left_does_not_hide_one_in_flight() {
        let counters = Counters::new();
        counters.count_sent(1);
        counters.count_ended(false, false);
        let snapshot = Snapshot::of([&counters]);
        assert_eq!((snapshot.in_flight(), snapshot.failed), (1, 1));
    }

    #[test]
    fn every_lateness_has_a_bucket() {
        for value in [i64::MIN, -1, 0, 1, 2, 3, 4, 7, i64::MAX] {
            assert!(bucket(value) < BUCKETS);
        }
    }

    #[test]
    fn a_sum_over_cores_keeps_the_earliest_due() {
        let cores = [Counters::new(), Counters::new()];
        cores[0].set_next_due(Some(9));
        cores[1].set_next_due(Some(4));
        cores[1].count_sent(1);
        cores[1].count_ended(true, false);
        let sum = Snapshot::of(&cores);
        assert_eq!((sum.next_due_ns, sum.sent, sum.failed, sum.in_flight()), (Some(4), 1, 1, 0));
    }
}
