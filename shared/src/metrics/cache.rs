//! Prefix-cache hit rates: what was possible, and what the server says it did.
//!
//! All three are ratios of sums, never means of ratios. The ideal is an infinite cache that holds
//! every block already sent: the longest common prefix counts. The set overlap also counts blocks
//! found elsewhere, which no prefix cache can use; it is shown because other tools do. A server
//! that does not report cached tokens has no hit rate; that is not a rate of zero.

use super::latency::count;
use super::selection::Selection;
use super::tokens;
use crate::run::Run;

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
        let mut sums = Sums::default();
        for i in selection.requests().filter(|&i| run.requests.was_sent(i)) {
            sums.add(run, i);
        }
        sums.rates()
    }
}

/// Sums of tokens over requests that left, from which hit rates are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Requests.
    pub requests: u64,
    /// Prompt tokens, reported or recorded.
    pub input: u64,
    /// Ideal hits, and the input tokens that they are of.
    pub ideal: Ratio,
    /// The same for blocks in any place.
    pub set: Ratio,
    /// Reported hits, and the reported prompt tokens that they are of.
    pub reported: Ratio,
    /// Requests that report cached tokens.
    pub reporting: u64,
}

/// A part of a whole, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ratio {
    /// The part.
    pub part: u64,
    /// The whole.
    pub whole: u64,
}

impl Sums {
    /// Adds request `i`, which left.
    pub fn add(&mut self, run: &Run, i: usize) {
        let (row, requests) = (&run.plan[i], &run.requests);
        let cached = requests.cached_tokens(i);
        self.requests += 1;
        self.input = self.input.saturating_add(tokens::prompt(run, i).unwrap_or(0));
        let (could, of) = ideal(run, i).unzip();
        self.ideal.add(could, of);
        if !repeats_turns(run, i) {
            self.set.add(row.ideal_set_tokens, row.input_tokens);
        }
        self.reported.add(cached, requests.prompt_tokens(i));
        self.reporting += u64::from(cached.is_some());
    }

    /// These and others.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        let joined = |a: Ratio, b: Ratio| Ratio {
            part: a.part.saturating_add(b.part),
            whole: a.whole.saturating_add(b.whole),
        };
        Self {
            requests: self.requests + other.requests,
            input: self.input.saturating_add(other.input),
            ideal: joined(self.ideal, other.ideal),
            set: joined(self.set, other.set),
            reported: joined(self.reported, other.reported),
            reporting: self.reporting + other.reporting,
        }
    }

    /// The rates.
    #[must_use]
    pub fn rates(&self) -> HitRates {
        HitRates {
            ideal: self.ideal.value(),
            ideal_set_overlap: self.set.value(),
            reported: self.reported.value(),
            reporting: self.reporting,
        }
    }
}

/// Whether the prompt of request `i` repeats the earlier turns of its session, so that its recorded
/// length and blocks are those of its last part only.
#[must_use]
pub fn repeats_turns(run: &Run, i: usize) -> bool {
    run.manifest.repeats_turns && run.users.is_none() && run.plan[i].turn > 0
}

/// How many tokens of request `i`'s prompt an endless prefix cache has, and of how many. What a
/// prompt repeats of its session was sent or answered before, so all but the turn's own text could
/// be cached: of how many tokens is then the server's to count. `None` where it is not known.
#[must_use]
pub fn ideal(run: &Run, i: usize) -> Option<(u32, u32)> {
    let row = &run.plan[i];
    let own = row.input_tokens?;
    if repeats_turns(run, i) {
        let prompt = run.requests.prompt_tokens(i)?;
        return Some((prompt.saturating_sub(own), prompt));
    }
    Some((row.ideal_cached_tokens?, own))
}

/// Cached / prompt tokens of request `i`, as reported; `None` unless both are, and the prompt has
/// tokens.
#[must_use]
pub fn reported_share(run: &Run, i: usize) -> Option<f64> {
    let mut ratio = Ratio::default();
    ratio.add(run.requests.cached_tokens(i), run.requests.prompt_tokens(i));
    ratio.value()
}

impl Ratio {
    fn add(&mut self, part: Option<u32>, whole: Option<u32>) {
        if let (Some(part), Some(whole)) = (part, whole) {
            self.part += u64::from(part);
            self.whole += u64::from(whole);
        }
    }

    /// The share; `None` where there is nothing to be a part of.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        (self.whole > 0).then(|| count(self.part) / count(self.whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Class;
    use crate::log::sample::Sample;

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
    fn what_a_turn_repeats_of_its_session_could_be_cached() {
        let mut sample = Sample::new();
        for (k, (prompt, turn)) in [(100, 0), (250, 1), (400, 2)].into_iter().enumerate() {
            let request = sample.send(0);
            sample.usage(request, 10, [Some(prompt), Some(50), Some(0)]);
            sample.done(request, 10, Class::Ok);
            sample.plan[k].turn = turn;
            // Of turns whose prompts are not of their blocks alone the plan says nothing.
            sample.plan[k].ideal_cached_tokens = (turn == 0).then_some(0);
            sample.plan[k].ideal_set_tokens = Some(0);
        }
        let mut run = Run::read(&sample.bytes()).expect("a log");
        let ideal = |run: &Run| HitRates::of(&Selection::new(run, None)).ideal;
        assert_eq!(ideal(&run), Some(0.0), "of the first alone");
        run.manifest.repeats_turns = true;
        // 100 new tokens in each of three prompts of 750 in all.
        assert_eq!(ideal(&run), Some(0.6));
    }

    #[test]
    fn the_overall_rate_is_weighted() {
        // Case H15: 10 of 10 and 0 of 990.
        let rates = rates(&[[Some(10), Some(2), Some(10)], [Some(990), Some(2), Some(0)]]);
        assert_eq!(rates.reported, Some(0.01));
    }
}
