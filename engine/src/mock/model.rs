//! The timing model: continuous batching with chunked prefill and a prefix cache.
//!
//! Pure: time and arrivals come as arguments, tokens go out through a callback. Time passes in
//! steps. A step computes one token for every sequence that decodes, and as much prefill, in order
//! of admission, as the step's token budget has left. Its length is
//!
//! ```text
//! step_ns + step_ns_per_sequence × running + uncached prompt tokens in the step ÷ prefill rate
//! ```
//!
//! times a seeded jitter. A sequence's first token comes at the end of the step that completes its
//! prefill. Sequences are admitted at the start of a step, first come first served, up to a
//! maximum; the prefix cache is asked then, and at least one prompt token is always computed. A
//! prompt's full blocks enter the cache when its prefill completes, its answer's when the answer
//! does.
//!
//! Steps follow each other by the model's clock, not by when the host found time to run it: a late
//! wake-up does not shift the next step. Only when a whole step was missed does the model start
//! over from the present, and counts a late step.

use std::collections::VecDeque;

use super::MockConfig;
use super::cache::PrefixCache;
use super::tokens::{Chain, Word, mix, unit};

/// Names a job of one model, in order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct JobId(pub(super) u64);

/// What is to be computed.
#[derive(Clone, Debug)]
pub(super) struct Job {
    /// The prompt; at least one token.
    pub(super) prompt: Chain,
    /// Tokens to generate; at least one.
    pub(super) output_tokens: u32,
}

/// A token that was generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) job: JobId,
    pub(super) word: Word,
    /// It is the job's last.
    pub(super) last: bool,
    /// Prompt tokens of the job that came from the cache.
    pub(super) cached_tokens: u32,
}

/// What the model has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) cache_query_tokens: u64,
    pub(super) cache_hit_tokens: u64,
    pub(super) generated_tokens: u64,
    pub(super) running_peak: usize,
    pub(super) waiting_peak: usize,
    pub(super) late_steps: u64,
}

/// The queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueueFull;

/// One engine of the mock.
#[derive(Debug)]
pub(super) struct Model {
    timing: Timing,
    waiting: VecDeque<Waiting>,
    running: Vec<Running>,
    cache: PrefixCache,
    /// End of the step that is being computed.
    step_end_ns: Option<i64>,
    /// Steps begun, for the jitter.
    steps: u64,
    jobs: u64,
    tally: Tally,
}

/// The settings, in the units they are used in.
#[derive(Debug)]
struct Timing {
    prefill_ns_per_token: f64,
    overhead_ns: i64,
    step_ns: i64,
    step_ns_per_sequence: i64,
    step_tokens: u32,
    jitter: f64,
    running_max: usize,
    waiting_max: usize,
    block_tokens: u32,
    seed: u64,
}

#[derive(Debug)]
struct Waiting {
    id: JobId,
    job: Job,
    /// When its overhead is over.
    ready_ns: i64,
}

#[derive(Debug)]
struct Running {
    id: JobId,
    chain: Chain,
    /// Picks the answer's words.
    key: u64,
    cached_tokens: u32,
    prefill_left: u32,
    /// Prefill tokens in the present step.
    prefill_now: u32,
    output_tokens: u32,
    generated: u32,
}

impl Model {
    /// An idle model with an empty cache.
    pub(super) fn new(config: &MockConfig) -> Self {
        let blocks = config.cache_tokens / u64::from(config.block_tokens);
        Self {
            timing: Timing {
                prefill_ns_per_token: 1e9 / config.prefill_tokens_per_s,
                overhead_ns: config.overhead_ns,
                step_ns: config.step_ns,
                step_ns_per_sequence: config.step_ns_per_sequence,
                step_tokens: config.step_tokens,
                jitter: config.jitter,
                running_max: config.running_max,
                waiting_max: config.waiting_max,
                block_tokens: config.block_tokens,
                seed: mix(config.seed),
            },
            waiting: VecDeque::new(),
            running: Vec::new(),
            cache: PrefixCache::new(usize::try_from(blocks).unwrap_or(usize::MAX)),
            step_end_ns: None,
            steps: 0,
            jobs: 0,
            tally: Tally::default(),
        }
    }

    /// A job arrives.
    pub(super) fn arrive(&mut self, now_ns: i64, job: Job) -> Result<JobId, QueueFull> {
        assert!(job.prompt.tokens() > 0, "a prompt has a token");
        assert!(job.output_tokens > 0, "an answer has a token");
        if self.waiting.len() >= self.timing.waiting_max {
            return Err(QueueFull);
        }
        let id = JobId(self.jobs);
        self.jobs += 1;
        let ready_ns = now_ns.saturating_add(self.timing.overhead_ns);
        self.waiting.push_back(Waiting { id, job, ready_ns });
        self.tally.waiting_peak = self.tally.waiting_peak.max(self.waiting.len());
        Ok(id)
    }

    /// Nobody wants the job any more. Its share of the present step is lost.
    pub(super) fn cancel(&mut self, id: JobId) {
        self.waiting.retain(|waiting| waiting.id != id);
        self.running.retain(|running| running.id != id);
    }

    /// Lets time pass up to `now_ns` and hands out the tokens that are due.
    pub(super) fn advance(&mut self, now_ns: i64, emit: &mut impl FnMut(Token)) {
        if let Some(end_ns) = self.step_end_ns {
            if end_ns > now_ns {
                return;
            }
            self.finish_step(emit);
            self.begin_step(end_ns, now_ns);
        } else if let Some(first) = self.waiting.front()
            && first.ready_ns <= now_ns
        {
            self.begin_step(first.ready_ns, now_ns);
        }
    }

    /// When something will happen without anything from outside.
    pub(super) fn next_ns(&self) -> Option<i64> {
        self.step_end_ns.or_else(|| self.waiting.front().map(|first| first.ready_ns))
    }

    /// Sequences that run and jobs that wait.
    pub(super) fn load(&self) -> (usize, usize) {
        (self.running.len(), self.waiting.len())
    }

    /// The share of the cache's blocks that running sequences have, one that several have counted
    /// for each, and at most 1; `None` without a cache.
    pub(super) fn cache_usage(&self) -> Option<f64> {
        let capacity = self.cache.capacity();
        let held: usize = self.running.iter().map(|sequence| sequence.chain.blocks().len()).sum();
        #[expect(clippy::cast_precision_loss, reason = "a share needs a few digits")]
        let share = held.min(capacity) as f64 / capacity as f64;
        (capacity > 0).then_some(share)
    }

    pub(super) fn tally(&self) -> Tally {
        self.tally
    }

    fn finish_step(&mut self, emit: &mut impl FnMut(Token)) {
        let Self { running, cache, tally, .. } = self;
        running.retain_mut(|sequence| {
            if sequence.prefill_left > 0 {
                sequence.prefill_left -= std::mem::take(&mut sequence.prefill_now);
                if sequence.prefill_left > 0 {
                    return true;
                }
                cache.insert(sequence.chain.blocks());
            }
            let word = Word::pick(mix(sequence.key ^ u64::from(sequence.generated)));
            sequence.chain.word(word);
            sequence.generated += 1;
            tally.generated_tokens += 1;
            let last = sequence.generated == sequence.output_tokens;
            if last {
                cache.insert(sequence.chain.blocks());
            }
            let (job, cached_tokens) = (sequence.id, sequence.cached_tokens);
            emit(Token { job, word, last, cached_tokens });
            !last
        });
    }

    /// Begins a step at `start_ns`, which may lie in the past.
    fn begin_step(&mut self, start_ns: i64, now_ns: i64) {
        self.admit(now_ns);
        self.step_end_ns = None;
        if self.running.is_empty() {
            return;
        }
        let decoding = self.running.iter().filter(|sequence| sequence.prefill_left == 0).count();
        let decoding = u32::try_from(decoding).unwrap_or(u32::MAX);
        let mut budget = self.timing.step_tokens.saturating_sub(decoding);
        let mut prefill = 0_u32;
        for sequence in &mut self.running {
            sequence.prefill_now = sequence.prefill_left.min(budget);
            budget -= sequence.prefill_now;
            prefill += sequence.prefill_now;
        }
        let length_ns = self.timing.step_length_ns(self.running.len(), prefill, self.steps);
        self.steps += 1;
        let mut end_ns = start_ns.saturating_add(length_ns);
        if end_ns <= now_ns {
            self.tally.late_steps += 1;
            end_ns = now_ns.saturating_add(length_ns);
        }
        self.step_end_ns = Some(end_ns);
    }

    fn admit(&mut self, now_ns: i64) {
        let block_tokens = self.timing.block_tokens;
        while self.running.len() < self.timing.running_max
            && self.waiting.front().is_some_and(|first| first.ready_ns <= now_ns)
        {
            let Some(Waiting { id, job, .. }) = self.waiting.pop_front() else { break };
            let prompt_tokens = job.prompt.tokens();
            let found = self.cache.use_prefix(job.prompt.blocks());
            // The last token is always computed, and only whole blocks come from the cache.
            let usable = (prompt_tokens - 1) / block_tokens;
            let cached = u32::try_from(found).unwrap_or(u32::MAX).min(usable) * block_tokens;
            self.tally.cache_query_tokens += u64::from(prompt_tokens);
            self.tally.cache_hit_tokens += u64::from(cached);
            self.running.push(Running {
                id,
                key: mix(self.timing.seed ^ job.prompt.state()),
                chain: job.prompt,
                cached_tokens: cached,
                prefill_left: prompt_tokens - cached,
                prefill_now: 0,
                output_tokens: job.output_tokens,
                generated: 0,
            });
        }
        self.tally.running_peak = self.tally.running_peak.max(self.running.len());
    }
}

impl Timing {
    /// The length of the step numbered `step`; at least a nanosecond, so that time passes.
    fn step_length_ns(&self, running: usize, prefill: u32, step: u64) -> i64 {
        let running = i64::try_from(running).unwrap_or(i64::MAX);
        let decode_ns =
            self.step_ns.saturating_add(self.step_ns_per_sequence.saturating_mul(running));
        #[expect(clippy::cast_precision_loss, reason = "a step is far below 2^53 ns")]
        let length_ns = decode_ns as f64 + self.prefill_ns_per_token * f64::from(prefill);
        let draw = 2.0 * unit(mix(self.seed ^ mix(step))) - 1.0;
        let length_ns = length_ns * (1.0 + self.jitter * draw);
        #[expect(clippy::cast_possible_truncation, reason = "clamped, and whole ns are enough")]
        let length_ns = length_ns.clamp(1.0, 1e18) as i64;
        length_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> MockConfig {
        MockConfig {
            prefill_tokens_per_s: 1e6, // 1 µs a token
            overhead_ns: 100,
            step_ns: 10_000,
            step_ns_per_sequence: 1_000,
            step_tokens: 100,
            running_max: 2,
            block_tokens: 4,
            cache_tokens: 1_000,
            ..MockConfig::default()
        }
    }

    fn job(words: &str, count: usize, output_tokens: u32) -> Job {
        let mut prompt = Chain::new(4);
        prompt.text(&words.repeat(count));
        Job { prompt, output_tokens }
    }

    /// Runs until idle; every token with its time.
    fn run(model: &mut Model) -> Vec<(i64, Token)> {
        let mut tokens = Vec::new();
        while let Some(at) = model.next_ns() {
            model.advance(at, &mut |token| tokens.push((at, token)));
        }
        tokens
    }

    #[test]
    fn a_lone_job_takes_its_prefill_and_a_step_a_token() {
        let mut model = Model::new(&config());
        model.arrive(0, job(" a", 30, 3)).expect("room");
        let tokens = run(&mut model);
        let times: Vec<i64> = tokens.iter().map(|token| token.0).collect();
        // 100 overhead + 10,000 + 1,000 + 30 tokens of 1,000; then 11,000 a token.
        assert_eq!(times, [41_100, 52_100, 63_100]);
        assert_eq!(
            tokens.iter().map(|token| token.1.last).collect::<Vec<_>>(),
            [false, false, true]
        );
        assert_eq!((model.load(), model.cache_usage()), ((0, 0), Some(0.0)));
        assert_eq!(model.next_ns(), None);
    }

    #[test]
    fn a_long_prefill_is_cut_by_the_budget_and_decoding_goes_on() {
        let mut model = Model::new(&config());
        model.arrive(0, job(" a", 10, 4)).expect("room");
        model.arrive(0, job(" b", 250, 1)).expect("room");
        let tokens = run(&mut model);
        let of = |job: u64| tokens.iter().filter(move |token| token.1.job == JobId(job));
        // The first step has 10 + 90 prompt tokens, the next ones 1 + 99 and 1 + 61.
        let steps = [112_100, 112_100 + 12_000 + 99_000, 112_100 + 24_000 + 160_000];
        assert_eq!(of(0).take(3).map(|token| token.0).collect::<Vec<_>>(), steps);
        assert_eq!(of(1).map(|token| token.0).collect::<Vec<_>>(), [steps[2]]);
    }

    #[test]
    fn a_full_house_makes_the_next_wait() {
        let mut model = Model::new(&config());
        for _ in 0..3 {
            model.arrive(0, job(" a", 5, 2)).expect("room");
        }
        let tokens = run(&mut model);
        let order: Vec<u64> = tokens.iter().map(|token| token.1.job.0).collect();
        assert_eq!(order, [0, 1, 0, 1, 2, 2]);
        assert_eq!(model.tally().running_peak, 2);
    }

    #[test]
    fn the_queue_is_bounded() {
        let mut model = Model::new(&MockConfig { waiting_max: 1, ..config() });
        model.arrive(0, job(" a", 1, 1)).expect("room");
        assert_eq!(model.arrive(0, job(" a", 1, 1)), Err(QueueFull));
    }

    #[test]
    fn a_repeated_prefix_is_cached_in_whole_blocks_but_its_last_token() {
        let mut model = Model::new(&config());
        let mut cached = Vec::new();
        for (words, count) in [(" a", 10), (" a", 10), (" a", 12), (" a", 13), (" b", 10)] {
            model.arrive(0, job(words, count, 1)).expect("room");
            let tokens = run(&mut model);
            cached.push(tokens[0].1.cached_tokens);
        }
        // 10 = two blocks and a rest; of 12 the third block is new; of 13 all three are known.
        assert_eq!(cached, [0, 8, 8, 12, 0]);
        model.arrive(0, job(" a", 12, 1)).expect("room");
        assert_eq!(run(&mut model)[0].1.cached_tokens, 8, "the last token is computed");
        let tally = model.tally();
        assert_eq!((tally.cache_query_tokens, tally.cache_hit_tokens), (67, 36));
    }

    #[test]
    fn an_answer_is_cached_for_the_next_turn() {
        let mut model = Model::new(&config());
        model.arrive(0, job(" a", 4, 5)).expect("room");
        let mut next = Chain::new(4);
        next.text(&" a".repeat(4));
        for (_, token) in run(&mut model) {
            next.word(token.word);
        }
        next.text(" more");
        model.arrive(0, Job { prompt: next, output_tokens: 1 }).expect("room");
        assert_eq!(run(&mut model)[0].1.cached_tokens, 8);
    }

    #[test]
    fn a_cancelled_job_says_nothing_and_frees_its_place() {
        let mut model = Model::new(&config());
        let first = model.arrive(0, job(" a", 5, 100)).expect("room");
        model.arrive(0, job(" b", 5, 2)).expect("room");
        let third = model.arrive(0, job(" c", 5, 2)).expect("room");
        model.advance(100, &mut |_| panic!("nothing is done yet"));
        model.cancel(first);
        model.cancel(third);
        let tokens = run(&mut model);
        assert_eq!(tokens.iter().map(|token| token.1.job.0).collect::<Vec<_>>(), [1, 1]);
    }

    #[test]
    fn a_late_host_does_not_shift_the_steps_until_one_was_missed() {
        let mut model = Model::new(&config());
        model.arrive(0, job(" a", 1, 5)).expect("room");
        model.advance(100, &mut |_| ());
        assert_eq!(model.next_ns(), Some(12_100));
        model.advance(12_100 + 5_000, &mut |_| ());
        assert_eq!((model.next_ns(), model.tally().late_steps), (Some(23_100), 0));
        model.advance(23_100 + 11_000, &mut |_| ());
        assert_eq!((model.next_ns(), model.tally().late_steps), (Some(45_100), 1));
    }

    #[test]
    fn the_seed_decides_words_and_jitter() {
        let told = |seed: u64| {
            let mut model = Model::new(&MockConfig { seed, jitter: 0.2, ..config() });
            model.arrive(0, job(" a", 5, 20)).expect("room");
            run(&mut model)
        };
        assert_eq!(told(1), told(1));
        assert_ne!(told(1), told(2));
        let times: Vec<i64> = told(1).iter().map(|token| token.0).collect();
        assert!(times.windows(2).all(|pair| (8_800..=13_200).contains(&(pair[1] - pair[0]))));
    }
}
