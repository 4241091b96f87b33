//! `--trace-session-sample-ratio`: some of the sessions, the very ones that AIPerf keeps.
//!
//! Whole sessions are kept or left out, each by a draw of its own. The draws are those of AIPerf
//! 0.13 for the same seed, and so of CPython's `random`: sessions that the file names are drawn in
//! order of their first time and then their name; if none of them is kept, one is chosen; rows
//! without a session are drawn after them, in file order.

use std::cmp::Ordering;

use onbeat_shared::trace::Trace;
use onbeat_shared::units::SessionIndex;
use sha2::{Digest, Sha256};

/// What AIPerf derives this stream's seed from, beside the run's own.
const STREAM: &str = "dataset.loader.baseten_trace.session_sampling";

/// A share of the sessions above 0 and below 1, in draws of 53 bits: those below it are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share(u64);

impl Share {
    /// The share that is nearest to `ratio` as a double; `None` when it is all of them.
    ///
    /// # Errors
    /// When it is not above 0, or above 1.
    pub fn of(ratio: f64) -> Result<Option<Self>, &'static str> {
        if !(ratio > 0.0 && ratio <= 1.0) {
            return Err("not above 0 and at most 1");
        }
        // A draw is a whole number of 53 bits over 2^53: scaling by a power of two is exact.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 2^53")]
        let below = (ratio * (1_u64 << 53) as f64).ceil() as u64;
        Ok((ratio < 1.0).then_some(Self(below)))
    }
}

/// For each session of the trace, whether it is kept.
pub(crate) fn kept(trace: &Trace, share: Share, seed: u64) -> Vec<bool> {
    let digest = Sha256::digest(format!("{seed}:{STREAM}"));
    let mut draws = Twister::new(u64::from_be_bytes(digest[..8].try_into().expect("32 bytes")));
    let mut kept = vec![false; trace.sessions.len()];
    let named = named_in_order(trace);
    for &session in &named {
        kept[session as usize] = draws.draw() < share.0;
    }
    if !named.is_empty() && !named.iter().any(|&session| kept[session as usize]) {
        kept[named[draws.below(named.len())] as usize] = true;
    }
    for record in &trace.records {
        if !trace.sessions.is_given(record.session) {
            kept[record.session.as_usize()] = draws.draw() < share.0;
        }
    }
    kept
}

/// The sessions that the file names, by their first time and then by their name.
fn named_in_order(trace: &Trace) -> Vec<u32> {
    let mut first = vec![i64::MAX; trace.sessions.len()];
    for record in &trace.records {
        let first = &mut first[record.session.as_usize()];
        *first = record.at.0.min(*first);
    }
    let sessions = 0..u32::try_from(first.len()).expect("no more sessions than rows");
    let mut named: Vec<u32> =
        sessions.filter(|&session| trace.sessions.is_given(SessionIndex(session))).collect();
    let name = |session: u32| trace.session_name(SessionIndex(session));
    named.sort_by(|&a, &b| match first[a as usize].cmp(&first[b as usize]) {
        Ordering::Equal => name(a).cmp(&name(b)),
        order => order,
    });
    named
}

/// CPython's generator: MT19937 with 53-bit draws.
struct Twister {
    state: [u32; Self::WORDS],
    next: usize,
}

impl Twister {
    const WORDS: usize = 624;
    const MIDDLE: usize = 397;

    /// `random.Random(seed)`.
    fn new(seed: u64) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
        let halves = [seed as u32, (seed >> 32) as u32];
        let key = if halves[1] == 0 { &halves[..1] } else { &halves[..] };
        let mut state = [0_u32; Self::WORDS];
        state[0] = 19_650_218;
        for at in 1..Self::WORDS {
            state[at] = Self::mixed(&state, at, 1_812_433_253).wrapping_add(index(at));
        }
        let (mut at, mut place) = (1, 0);
        for _ in 0..Self::WORDS {
            let mixed = state[at] ^ Self::mixed(&state, at, 1_664_525);
            state[at] = mixed.wrapping_add(key[place]).wrapping_add(index(place));
            (at, place) = (Self::step(&mut state, at), (place + 1) % key.len());
        }
        for _ in 1..Self::WORDS {
            let mixed = state[at] ^ Self::mixed(&state, at, 1_566_083_941);
            state[at] = mixed.wrapping_sub(index(at));
            at = Self::step(&mut state, at);
        }
        state[0] = 0x8000_0000;
        Self { state, next: Self::WORDS }
    }

    /// The word before place `at`, folded onto itself and multiplied.
    fn mixed(state: &[u32; Self::WORDS], at: usize, factor: u32) -> u32 {
        let before = state[at - 1];
        (before ^ (before >> 30)).wrapping_mul(factor)
    }

    /// The next place: behind the last comes the second, and the first becomes the last.
    fn step(state: &mut [u32; Self::WORDS], at: usize) -> usize {
        if at + 1 < Self::WORDS {
            return at + 1;
        }
        state[0] = state[Self::WORDS - 1];
        1
    }

    fn word(&mut self) -> u32 {
        if self.next == Self::WORDS {
            for at in 0..Self::WORDS {
                let upper = self.state[at] & 0x8000_0000;
                let joined = upper | (self.state[(at + 1) % Self::WORDS] & 0x7fff_ffff);
                let odd = if joined & 1 == 1 { 0x9908_b0df } else { 0 };
                self.state[at] =
                    self.state[(at + Self::MIDDLE) % Self::WORDS] ^ (joined >> 1) ^ odd;
            }
            self.next = 0;
        }
        let mut word = self.state[self.next];
        self.next += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    /// `random()` times 2^53.
    fn draw(&mut self) -> u64 {
        let (high, low) = (self.word() >> 5, self.word() >> 6);
        u64::from(high) << 26 | u64::from(low)
    }

    /// `_randbelow(count)`, the place that `choice` takes.
    fn below(&mut self, count: usize) -> usize {
        let bits = usize::BITS - count.leading_zeros();
        loop {
            let place = (self.word() >> (u32::BITS - bits)) as usize;
            if place < count {
                return place;
            }
        }
    }
}

fn index(at: usize) -> u32 {
    u32::try_from(at).expect("below the number of words")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_those_of_cpython() {
        // python3 -c "import random; r = random.Random(S); print([r.random() for _ in range(2)])"
        let draws = |seed: u64| {
            let mut twister = Twister::new(seed);
            [twister.draw(), twister.draw()].map(|draw| draw as f64 / (1_u64 << 53) as f64)
        };
        assert_eq!(draws(42), [0.639_426_798_457_883_7, 0.025_010_755_222_666_936]);
        let wide = [0.877_735_582_668_534, 0.829_677_306_065_455_3];
        assert_eq!(draws(0xdead_beef_cafe_f00d), wide);
        let mut twister = Twister::new(7);
        let places: Vec<usize> = [1, 5, 100, 1_000].map(|count| twister.below(count)).to_vec();
        assert_eq!(places, [0, 1, 50, 666]);
    }

    #[test]
    fn a_share_is_above_nothing_and_at_most_all() {
        assert_eq!(Share::of(0.5), Ok(Some(Share(1 << 52))));
        assert_eq!(Share::of(1.0), Ok(None));
        for ratio in [0.0, -0.5, 1.000_000_1, f64::NAN, f64::INFINITY] {
            assert!(Share::of(ratio).is_err(), "{ratio}");
        }
    }
}
