//! Prefix-cache hit rates: what was possible, and what the server says it did.
//!
//! All three are ratios of sums, never means of ratios. The ideal is an infinite cache that holds
//! every block already sent: the longest common prefix counts. The set overlap also counts blocks
//! found elsewhere, which no prefix cache can use; it is shown because other tools do. A server
//! that does not report cached tokens has no hit rate; that is not a rate of zero.

use super::latency::count;
use super::selection::Selection;

/// The hit rates of the chosen requests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HitRates {
    /// Σ ideal cached tokens / Σ input tokens, over sent requests that have block ids.
    pub ideal: Option<f64>,
    /// The same for blocks already sent in any place.
    pub ideal_set_overlap: Option<f64>,
    /// Σ cached / Σ prompt, over requests that report both.
    pub reported: Option<f64>,
    /// Requests that report cached tokens.
    pub reporting: u64,
}

impl HitRates {
    /// The hit rates of the chosen requests.
    #[must_use]
    pub fn of(selection: &Selection<'_>) -> Self {
        let run = selection.run();
        let requests = &run.requests;
        let (mut ideal, mut set, mut reported) = (Ratio::new(), Ratio::new(), Ratio::new());
        let mut reporting = 0;
        for i in selection.requests().filter(|&i| requests.was_sent(i)) {
            let row = &run.plan[i];
            ideal.add(row.ideal_cached_tokens, row.input_tokens);
            set.add(row.ideal_set_tokens, row.input_tokens);
            reported.add(requests.cached_tokens(i), requests.prompt_tokens(i));
            reporting += u64::from(requests.cached_tokens(i).is_some());
        }
        Self {
            ideal: ideal.value(),
            ideal_set_overlap: set.value(),
            reported: reported.value(),
            reporting,
        }
    }
}

struct Ratio {
    part: u64,
    whole: u64,
}

impl Ratio {
    const fn new() -> Self {
        Self { part: 0, whole: 0 }
    }

    fn add(&mut self, part: Option<u32>, whole: Option<u32>) {
        if let (Some(part), Some(whole)) = (part, whole) {
            self.part += u64::from(part);
            self.whole += u64::from(whole);
        }
    }

    fn value(&self) -> Option<f64> {
        (self.whole > 0).then(|| count(self.part) / count(self.whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Class;
    use crate::log::sample::Sample;
    use crate::run::Run;

    fn rates(answers: &[[Option<u32>; 3]]) -> HitRates {
        let mut sample = Sample::new();
        for usage in answers {
            let request = sample.send(0);
            sample.chunks(request, &[5, 9]);
            sample.usage(request, 10, *usage);
            sample.done(request, 10, Class::Ok);
        }
        let run = Run::read(&sample.bytes()).expect("a log");
        HitRates::of(&Selection::new(&run, None))
    }

    #[test]
    fn absent_is_not_zero() {
        // Case H12.
        let silent = rates(&[[Some(9), Some(2), None]]);
        assert_eq!((silent.reported, silent.reporting), (None, 0));
        let zero = rates(&[[Some(9), Some(2), Some(0)]]);
        assert_eq!((zero.reported, zero.reporting), (Some(0.0), 1));
        let six = rates(&[[Some(9), Some(2), Some(6)]]);
        assert!((six.reported.expect("reported") - 0.667).abs() < 0.001);
        assert_eq!(six.ideal, None, "no block ids");
    }

    #[test]
    fn the_overall_rate_is_weighted() {
        // Case H15: 10 of 10 and 0 of 990.
        let rates = rates(&[[Some(10), Some(2), Some(10)], [Some(990), Some(2), Some(0)]]);
        assert_eq!(rates.reported, Some(0.01));
    }
}
