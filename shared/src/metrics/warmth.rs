//! Whether a server had prompts in its cache before the run sent them.
//!
//! An endless prefix cache that is empty at zero has of each prompt what was sent before it, and no
//! real one has more. Where a server reports more, it kept the rest from before: as a rule from an
//! earlier run of the same trace with the same seed, whose texts are the same. Its latencies are
//! then not those of the trace. It is no fault of the log and decides nothing; it is said.

use super::cache;
use super::latency::count;
use super::selection::Selection;
use crate::run::Run;

/// The share of prompt tokens above which it is said. Below lie what words have in common by
/// chance and what servers round up; a second run of the same trace lies far above it.
pub const SHARE_MIN: f64 = 0.05;

/// More cached tokens than an empty cache could have come to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// Cached / prompt tokens, as reported, of requests of which all of it is known.
    pub reported: f64,
    /// The share of the same that an endless cache could have had that was empty at zero.
    pub possible: f64,
}

impl Found {
    /// It as a warning.
    #[must_use]
    pub fn words(&self) -> String {
        format!(
            "the server had {:.1} % of the prompts' tokens cached, and an endless cache that was \
             empty at zero could have had {:.1} %: it knew these prompts before this run (from an \
             earlier one?), and its latencies are not those of the trace; restart it, flush its \
             cache, or choose another --seed",
            self.reported * 100.0,
            self.possible * 100.0
        )
    }
}

/// What the chosen requests show, if that is beyond [`SHARE_MIN`]. Requests that the warm-up has
/// sent before are left out, and what a chat template adds to a prompt may be cached.
#[must_use]
pub fn found(selection: &Selection<'_>) -> Option<Found> {
    let run = selection.run();
    if run.manifest.shard.is_some() {
        // Other machines sent parts of the same plan meanwhile.
        return None;
    }
    let warmed = run.manifest.warm_up.as_ref().map_or(0, |warm_up| warm_up.requests.len());
    let (mut cached, mut possible, mut beyond, mut prompts) = (0, 0, 0, 0);
    for i in selection.requests().filter(|&i| i >= warmed && run.requests.was_sent(i)) {
        let known = (run.requests.cached_tokens(i), cache::ideal(run, i));
        let (Some(was), Some((could, of))) = known else { continue };
        let (was, could, of) = (u64::from(was), u64::from(could), u64::from(of));
        let prompt = run.requests.prompt_tokens(i).map_or(of, u64::from).max(was);
        let could = could.saturating_add(prompt.saturating_sub(of));
        cached += was;
        possible += could.min(prompt);
        beyond += was.saturating_sub(could);
        prompts += prompt;
    }
    if prompts == 0 || count(beyond) / count(prompts) <= SHARE_MIN {
        return None;
    }
    let share = |tokens: u64| count(tokens) / count(prompts);
    Some(Found { reported: share(cached), possible: share(possible) })
}

/// What a comparison says where the run that came later had more cached of the same prompts.
#[must_use]
pub(super) fn between(base: &Run, new: &Run, paired: bool) -> Option<String> {
    let rate = |run: &Run| cache::HitRates::of(&Selection::new(run, None)).reported;
    let (first, second) = match base.started_unix_ns() <= new.started_unix_ns() {
        true => (base, new),
        false => (new, base),
    };
    let alike = first.manifest.targets == second.manifest.targets
        && first.manifest.seed == second.manifest.seed;
    let (before, after) = rate(first).zip(rate(second)).filter(|_| paired && alike)?;
    (after - before > SHARE_MIN).then(|| {
        format!(
            "the same server had {:.1} % of the same prompts cached in the earlier run and {:.1} % \
             in the later one: it may have kept them from the earlier one, and what differs may be \
             that; restart it or flush its cache between runs, or choose another --seed",
            before * 100.0,
            after * 100.0
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Class;
    use crate::log::sample::Sample;

    /// Requests of 100 tokens, of which an endless cache has 5: the prompt and the cached tokens
    /// that a server reports of each.
    fn sample(usage: &[(u32, u32)]) -> Sample {
        let mut sample = Sample::new();
        for (k, &(prompt, cached)) in usage.iter().enumerate() {
            let at = i64::try_from(k).expect("small") * 1_000_000;
            let request = sample.send(at);
            sample.plan[k].ideal_cached_tokens = Some(5);
            sample.usage(request, at + 10, [Some(prompt), Some(10), Some(cached)]);
            sample.done(request, at + 10, Class::Ok);
        }
        sample
    }

    fn run(sample: &Sample) -> Run {
        Run::read(&sample.bytes()).expect("a log")
    }

    fn of(usage: &[(u32, u32)]) -> Option<Found> {
        found(&Selection::new(&run(&sample(usage)), None))
    }

    #[test]
    fn a_server_that_knows_the_prompts_of_a_first_run_is_not_cold() {
        let second = of(&[(100, 96), (100, 96)]).expect("nobody sent them in this run");
        assert!((second.reported - 0.96).abs() < 1e-9 && (second.possible - 0.05).abs() < 1e-9);
        assert!(second.words().contains("had 96.0 % of the prompts' tokens cached"));
        // What a template adds, every prompt shares; a little is rounding; less is a small cache.
        for cold in [&[(120, 25), (120, 25)][..], &[(100, 10), (100, 10)], &[(100, 0)], &[]] {
            assert_eq!(of(cold), None, "{cold:?}");
        }
        // One prompt in two makes it known, whatever the other lacks.
        assert!(of(&[(100, 0), (100, 64)]).is_some());
    }

    #[test]
    fn two_runs_of_one_server_are_held_against_each_other() {
        let mut runs = [run(&sample(&[(100, 5)])), run(&sample(&[(100, 60)]))];
        let later = |runs: &[Run; 2]| between(&runs[0], &runs[1], true);
        runs[1].anchors.clear();
        runs[1].manifest.started_unix_ns += 1_000_000_000_000;
        let words = later(&runs).expect("the later one had more");
        assert!(words.contains("5.0 % of the same prompts cached in the earlier run and 60.0 %"));
        assert_eq!(between(&runs[0], &runs[1], false), None, "other prompts");
        let again = between(&runs[1], &runs[0], true);
        assert_eq!(again, Some(words), "whichever is the base");
        runs[1].manifest.seed += 1;
        assert_eq!(later(&runs), None, "other texts");
    }
}
