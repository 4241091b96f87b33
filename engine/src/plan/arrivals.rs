//! `--request-rate`: times for sessions that have none, or whose own are not wanted.
//!
//! Sessions start one after the other, in order of their first row in the file, the first at the
//! schedule's zero. The time between two starts is constant, or drawn as AIPerf draws it for the
//! same seed: from an exponential distribution (`poisson`) or a gamma distribution with a
//! smoothness. Within a session nothing moves: later turns keep their distance from its first one.
//!
//! Logarithms and exponentials are computed by a library of ours rather than the system's, so that
//! the times are the same on every machine.

use onbeat_shared::trace::Trace;
use onbeat_shared::trace::decimal::Ratio;
use onbeat_shared::units::NANOS_PER_SECOND;

use crate::plan::PlanError;
use crate::plan::schedule::Send;
use crate::plan::synthesis::Factor;
use crate::plan::twister::Twister;

/// When sessions start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrivals {
    /// Sessions a second, on average.
    pub rate: Ratio,
    /// How evenly.
    pub pattern: Pattern,
}

/// How evenly sessions arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Always the same time between two.
    Constant,
    /// An exponentially distributed time between two.
    Poisson,
    /// A gamma distributed time between two; below 1 it comes in bursts, above 1 evenly.
    Gamma(Factor),
}

/// The starts of sessions, in order.
struct Starts {
    arrivals: Arrivals,
    draws: Option<Twister>,
    count: u64,
    at_ns: i64,
}

/// Moves every session to its start; `sends` are in file order.
pub(crate) fn spread(
    trace: &Trace,
    sends: &mut [Send],
    arrivals: Arrivals,
    seed: u64,
) -> Result<(), PlanError> {
    let session = |send: &Send| trace.records[send.record as usize].session.as_usize();
    let mut first_ns = vec![i64::MAX; trace.sessions.len()];
    for send in sends.iter() {
        let first_ns = &mut first_ns[session(send)];
        *first_ns = send.due_ns.min(*first_ns);
    }
    let mut starts = Starts::new(arrivals, seed);
    let mut moved_ns: Vec<Option<i64>> = vec![None; trace.sessions.len()];
    for send in sends {
        let place = session(send);
        let beyond = || PlanError::DueOutOfRange(trace.records[send.record as usize].row);
        let moved_ns = match moved_ns[place] {
            Some(moved_ns) => moved_ns,
            None => {
                let start_ns = starts.next().ok_or_else(beyond)?;
                let by_ns = start_ns.checked_sub(first_ns[place]).ok_or_else(beyond)?;
                *moved_ns[place].insert(by_ns)
            }
        };
        send.due_ns = send.due_ns.checked_add(moved_ns).ok_or_else(beyond)?;
    }
    Ok(())
}

impl Starts {
    fn new(arrivals: Arrivals, seed: u64) -> Self {
        let stream = match arrivals.pattern {
            Pattern::Constant => None,
            Pattern::Poisson => Some("timing.request.poisson_interval"),
            Pattern::Gamma(_) => Some("timing.request.gamma_interval"),
        };
        let draws = stream.map(|stream| Twister::of_stream(seed, stream));
        Self { arrivals, draws, count: 0, at_ns: 0 }
    }

    /// The next start; `None` when it is beyond what a time can be.
    fn next(&mut self) -> Option<i64> {
        let count = self.count;
        self.count += 1;
        let Some(draws) = &mut self.draws else {
            let elapsed = i128::from(count) * i128::from(NANOS_PER_SECOND);
            return self.arrivals.rate.divide(elapsed);
        };
        let rate = self.arrivals.rate.numerator as f64 / self.arrivals.rate.denominator as f64;
        let gap_s = match self.arrivals.pattern {
            Pattern::Gamma(smoothness) => {
                let shape = smoothness.value();
                gamma(draws, shape) * (1.0 / (rate * shape))
            }
            _ => exponential(draws) / rate,
        };
        // The time before the first one is drawn too, as AIPerf does, and is the schedule's zero.
        if count > 0 {
            self.at_ns = self.at_ns.checked_add(nanos(gap_s)?)?;
        }
        Some(self.at_ns)
    }
}

/// Seconds as nanoseconds; `None` beyond 292 years.
fn nanos(seconds: f64) -> Option<i64> {
    let nanos = (seconds * NANOS_PER_SECOND as f64).round_ties_even();
    #[expect(clippy::cast_possible_truncation, reason = "checked to lie within")]
    (nanos < i64::MAX as f64).then_some(nanos as i64)
}

/// Python's `expovariate(1)`.
fn exponential(draws: &mut Twister) -> f64 {
    -libm::log(1.0 - draws.random())
}

/// Python's `gammavariate(shape, 1)`: Cheng's method above 1, Ahrens and Dieter's below.
fn gamma(draws: &mut Twister, shape: f64) -> f64 {
    if shape > 1.0 {
        let width = libm::sqrt(2.0 * shape - 1.0);
        let (middle, slope) = (shape - libm::log(4.0), shape + width);
        loop {
            let first = draws.random();
            if first <= 1e-7 || first >= 0.999_999_9 {
                continue;
            }
            let second = 1.0 - draws.random();
            let v = libm::log(first / (1.0 - first)) / width;
            let x = shape * libm::exp(v);
            let z = first * first * second;
            let r = middle + slope * v - x;
            if r + (1.0 + libm::log(4.5)) - 4.5 * z >= 0.0 || r >= libm::log(z) {
                return x;
            }
        }
    }
    if shape == 1.0 {
        return exponential(draws);
    }
    let e = std::f64::consts::E;
    loop {
        let p = (e + shape) / e * draws.random();
        let x = if p <= 1.0 {
            libm::pow(p, 1.0 / shape)
        } else {
            -libm::log(((e + shape) / e - p) / shape)
        };
        let second = draws.random();
        let limit = if p > 1.0 { libm::pow(x, shape - 1.0) } else { libm::exp(-x) };
        if second <= limit {
            return x;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(pattern: Pattern, seed: u64, count: usize) -> Vec<i64> {
        let rate = Ratio { numerator: 5, denominator: 2 };
        let mut starts = Starts::new(Arrivals { rate, pattern }, seed);
        (0..count).map(|_| starts.next().expect("within 292 years")).collect()
    }

    #[test]
    fn a_constant_rate_is_exact() {
        let mut starts = Starts::new(
            Arrivals { rate: Ratio { numerator: 3, denominator: 1 }, pattern: Pattern::Constant },
            0,
        );
        let times: Vec<i64> = (0..4).filter_map(|_| starts.next()).collect();
        assert_eq!(times, [0, 333_333_333, 666_666_667, 1_000_000_000]);
    }

    #[test]
    fn gaps_are_those_of_pythons_random() {
        // python3 -c "
        // import hashlib, random
        // r = random.Random(int.from_bytes(hashlib.sha256(b'42:'+NAME).digest()[:8], 'big'))
        // t = [r.expovariate(2.5) for _ in range(4)]   # or gammavariate(S, 1 / (2.5 * S))
        // print([round(1e9 * sum(t[1:i])) for i in range(1, 5)])"
        let near = |found: Vec<i64>, expected: [i64; 4]| {
            let close = found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 3);
            assert!(close, "{found:?} {expected:?}");
        };
        near(starts(Pattern::Poisson, 42, 4), POISSON);
        for (smoothness, expected) in [("0.5", BURSTY), ("1", SAME), ("4", SMOOTH)] {
            let smoothness = Factor::parse(smoothness).expect("a factor");
            near(starts(Pattern::Gamma(smoothness), 42, 4), expected);
        }
    }

    const POISSON: [i64; 4] = [0, 143_104_299, 330_609_264, 566_640_293];
    const BURSTY: [i64; 4] = [0, 106_658_461, 129_902_833, 131_502_275];
    const SAME: [i64; 4] = [0, 972_552_752, 1_608_294_286, 1_755_406_000];
    const SMOOTH: [i64; 4] = [0, 669_092_065, 963_871_550, 1_261_446_044];

    #[test]
    fn the_mean_gap_is_the_rates() {
        for pattern in [
            Pattern::Poisson,
            Pattern::Gamma(Factor::parse("0.3").expect("a factor")),
            Pattern::Gamma(Factor::parse("9").expect("a factor")),
        ] {
            let times = starts(pattern, 7, 20_001);
            assert!(times.is_sorted());
            let mean_s = times[20_000] as f64 / 20_000.0 / NANOS_PER_SECOND as f64;
            assert!((0.38..0.42).contains(&mean_s), "{pattern:?}: {mean_s}");
        }
    }
}
