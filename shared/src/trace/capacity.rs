//! Ideal cache hits of a cache that holds only so many tokens: one pass for all sizes.
//!
//! The cache is one for the whole trace and forgets the block that was asked for longest ago, of a
//! prefix its end first, as servers do. A block is still there when fewer other blocks than the
//! cache holds were asked for since (its stack distance), and distances only grow along a prefix:
//! so the blocks a cache of one size has are found by bisection. Requests are asked in time order,
//! each at once and whole; requests under way, and tokens that answers add, are not modelled.

use serde::Serialize;

use crate::trace::Trace;
use crate::trace::cache::{ScopedCache, node_place};

/// What a cache of one size would find.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SizedCache {
    /// Tokens it holds.
    pub cache_tokens: u64,
    /// Tokens of prefixes it has / all prompt tokens.
    pub ideal_hit_rate: Option<f64>,
}

/// Caches of several sizes, asked with one request after the other.
#[derive(Debug)]
pub struct SizedCaches {
    block_tokens: u64,
    cache_tokens: Vec<u64>,
    hits: Vec<u64>,
    input: u64,
    stack: Stack,
}

impl SizedCaches {
    /// Empty caches that hold so many tokens each.
    #[must_use]
    pub fn new(trace: &Trace, cache_tokens: Vec<u64>) -> Self {
        Self {
            block_tokens: u64::from(trace.block_tokens).max(1),
            hits: vec![0; cache_tokens.len()],
            cache_tokens,
            input: 0,
            stack: Stack::default(),
        }
    }

    /// Asks all caches for the `record`th request. `path` are the nodes of its blocks, of which the
    /// first `known` were there before, as [`crate::trace::cache`] tells them.
    ///
    /// # Panics
    /// When the trace has no such record, or the path fewer nodes than are known.
    pub fn ask(&mut self, trace: &Trace, record: u32, path: &[u32], known: u32) {
        let tokens = u64::from(trace.records[record as usize].input_tokens);
        self.input += tokens;
        let scope = self.stack.scope(trace.scope_of(record) as usize);
        let (stack, block_tokens) = (&mut self.stack, self.block_tokens);
        for (hits, cache_tokens) in self.hits.iter_mut().zip(&self.cache_tokens) {
            let blocks = cache_tokens / block_tokens;
            let known = &path[..known as usize];
            let there = known.partition_point(|&node| stack.distance(scope, node) < blocks);
            *hits += (there as u64 * block_tokens).min(tokens);
        }
        // The start of a prefix is asked for last, so that its end is forgotten first.
        for &node in path.iter().rev() {
            stack.touch(scope, node);
        }
        stack.compact_if_sparse();
    }

    /// What each cache found, by size; sizes beyond the first that holds `all_tokens` are left out,
    /// unless they are `wanted`.
    #[must_use]
    pub fn rates(&self, all_tokens: u64, wanted: &[u64]) -> Vec<SizedCache> {
        let enough = self.cache_tokens.iter().copied().find(|&size| size >= all_tokens);
        let rate = |hits: u64| (self.input > 0).then(|| hits as f64 / self.input as f64);
        let sized = self.cache_tokens.iter().zip(&self.hits);
        sized
            .filter(|(size, _)| enough.is_none_or(|last| **size <= last) || wanted.contains(size))
            .map(|(&cache_tokens, &hits)| SizedCache { cache_tokens, ideal_hit_rate: rate(hits) })
            .collect()
    }
}

/// The hit rates of caches that hold so many tokens, for requests asked in `order`.
#[must_use]
pub fn hit_rates(trace: &Trace, order: &[usize], cache_tokens: &[u64]) -> Vec<SizedCache> {
    let mut sized = SizedCaches::new(trace, cache_tokens.to_vec());
    let mut cache = ScopedCache::new(trace);
    let mut path = Vec::new();
    for &place in order {
        let number = u32::try_from(place).expect("records are numbered in 32 bits");
        path.clear();
        let own = cache.cache_of(trace, number);
        let known = own.ask_path(trace, &trace.records[place], &mut path).prefix_blocks;
        sized.ask(trace, number, &path, known);
    }
    sized.rates(u64::MAX, &[])
}

/// Sizes 1, 2, 5, 10, … times ten thousand tokens, up to the first of at least `all_tokens`.
#[must_use]
pub fn ladder(all_tokens: u64) -> Vec<u64> {
    let mut sizes = Vec::new();
    let mut decade = 10_000_u64;
    loop {
        for factor in [1, 2, 5] {
            let size = decade.saturating_mul(factor);
            sizes.push(size);
            if size >= all_tokens {
                return sizes;
            }
        }
        decade = decade.saturating_mul(10);
    }
}

/// Which block was asked for when: instants are places in a row of bits, of which the newest one of
/// each block is set.
#[derive(Debug, Default)]
struct Stack {
    bits: Vec<u64>,
    /// Set bits in each run of [`WORDS`] words.
    runs: Vec<u32>,
    /// Set bits in each run of [`WORDS`] such runs.
    long_runs: Vec<u32>,
    next: u32,
    alive: u32,
    scopes: Vec<Times>,
}

/// For each node of one scope, when it was asked for.
#[derive(Clone, Debug, Default)]
struct Times {
    first: Vec<u32>,
    others: Vec<u32>,
}

const WORDS: usize = 64;
const NEVER: u32 = u32::MAX;

impl Times {
    fn of(&self, node: u32) -> u32 {
        let (is_first, place) = node_place(node);
        let times = if is_first { &self.first } else { &self.others };
        times.get(place).copied().unwrap_or(NEVER)
    }

    fn of_mut(&mut self, node: u32) -> &mut u32 {
        let (is_first, place) = node_place(node);
        let times = if is_first { &mut self.first } else { &mut self.others };
        if place >= times.len() {
            times.resize(place + 1, NEVER);
        }
        &mut times[place]
    }
}

impl Stack {
    fn scope(&mut self, scope: usize) -> usize {
        if scope >= self.scopes.len() {
            self.scopes.resize(scope + 1, Times::default());
        }
        scope
    }

    /// How many other blocks were asked for since this one was.
    fn distance(&self, scope: usize, node: u32) -> u64 {
        let time = self.scopes[scope].of(node);
        if time == NEVER { u64::MAX } else { self.set_after(time) }
    }

    fn set_after(&self, time: u32) -> u64 {
        let word = time as usize / 64;
        let mut count = u64::from((self.bits[word] >> (time % 64) >> 1).count_ones());
        let run = word / WORDS;
        let words = word + 1..((run + 1) * WORDS).min(self.bits.len());
        count += self.bits[words].iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        let long = run / WORDS;
        let runs = run + 1..((long + 1) * WORDS).min(self.runs.len());
        count += self.runs[runs].iter().map(|&set| u64::from(set)).sum::<u64>();
        let long_runs = self.long_runs.iter().skip(long + 1);
        count + long_runs.map(|&set| u64::from(set)).sum::<u64>()
    }

    fn touch(&mut self, scope: usize, node: u32) {
        let time = self.next;
        let old = std::mem::replace(self.scopes[scope].of_mut(node), time);
        if old == NEVER {
            self.alive += 1;
        } else {
            let word = old as usize / 64;
            self.bits[word] &= !(1 << (old % 64));
            self.runs[word / WORDS] -= 1;
            self.long_runs[word / WORDS / WORDS] -= 1;
        }
        self.set(time);
        self.next += 1;
    }

    fn set(&mut self, time: u32) {
        let word = time as usize / 64;
        if word >= self.bits.len() {
            self.bits.push(0);
            self.runs.resize(word / WORDS + 1, 0);
            self.long_runs.resize(word / WORDS / WORDS + 1, 0);
        }
        self.bits[word] |= 1 << (time % 64);
        self.runs[word / WORDS] += 1;
        self.long_runs[word / WORDS / WORDS] += 1;
    }

    /// Numbers the instants anew when most of them are of no block any more.
    fn compact_if_sparse(&mut self) {
        const WORTH_IT: u32 = 1 << 22;
        if self.next > WORTH_IT && self.next / 4 > self.alive {
            self.compact();
        }
    }

    fn compact(&mut self) {
        let ranks: Vec<u32> = self
            .bits
            .iter()
            .scan(0_u32, |sum, word| {
                let before = *sum;
                *sum += word.count_ones();
                Some(before)
            })
            .collect();
        for times in &mut self.scopes {
            for time in times.first.iter_mut().chain(&mut times.others) {
                if *time != NEVER {
                    let word = *time as usize / 64;
                    let below = self.bits[word] & ((1 << (*time % 64)) - 1);
                    *time = ranks[word] + below.count_ones();
                }
            }
        }
        (self.bits, self.runs, self.long_runs) = (Vec::new(), Vec::new(), Vec::new());
        self.next = self.alive;
        (0..self.alive).for_each(|time| self.set(time));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop, prop_assert_eq, proptest};

    use super::*;
    use crate::trace::cache::tests::trace;

    /// A list with the newest first, cut to so many blocks.
    fn by_hand(rows: &[Vec<u64>], blocks: usize) -> u64 {
        let mut list: Vec<Vec<u64>> = Vec::new();
        let mut hits = 0;
        for row in rows {
            let prefixes: Vec<Vec<u64>> = (1..=row.len()).map(|len| row[..len].to_vec()).collect();
            hits += prefixes.iter().take_while(|prefix| list.contains(prefix)).count() as u64;
            for prefix in prefixes.into_iter().rev() {
                list.retain(|other| *other != prefix);
                list.insert(0, prefix);
            }
            list.truncate(blocks);
        }
        hits
    }

    #[test]
    fn sizes_go_up_to_the_first_that_holds_all() {
        assert_eq!(ladder(0), [10_000]);
        assert_eq!(ladder(20_001), [10_000, 20_000, 50_000]);
        let trace = trace(&[(32, &[1, 2])], 16);
        let sizes = SizedCaches::new(&trace, vec![10_000, 20_000, 50_000, 70_000, 100_000])
            .rates(20_001, &[70_000]);
        let sizes: Vec<u64> = sizes.iter().map(|sized| sized.cache_tokens).collect();
        assert_eq!(sizes, [10_000, 20_000, 50_000, 70_000]);
    }

    #[test]
    fn instants_can_be_numbered_anew() {
        let mut stack = Stack::default();
        let scope = stack.scope(0);
        for node in [0, 1, 2, 0, 1, 0, 3] {
            stack.touch(scope, node);
        }
        let distances = |stack: &Stack| [0, 1, 2, 3].map(|node| stack.distance(scope, node));
        assert_eq!(distances(&stack), [1, 2, 3, 0]);
        stack.compact();
        assert_eq!((distances(&stack), stack.next), ([1, 2, 3, 0], 4));
    }

    proptest! {
        #[test]
        fn all_sizes_agree_with_a_list(
            rows in prop::collection::vec(prop::collection::vec(0_u64..4, 0..5), 1..20),
        ) {
            let lengths: Vec<u32> =
                rows.iter().map(|row| u32::try_from(row.len()).expect("few") * 16).collect();
            let given: Vec<(u32, &[u64])> =
                lengths.iter().zip(&rows).map(|(&len, row)| (len, row.as_slice())).collect();
            let trace = trace(&given, 16);
            let sizes: Vec<u64> = (0..12).map(|blocks| blocks * 16).collect();
            let input: u32 = lengths.iter().sum();
            let order: Vec<usize> = (0..rows.len()).collect();
            let found = hit_rates(&trace, &order, &sizes);
            for (blocks, found) in found.into_iter().enumerate() {
                let hits = by_hand(&rows, blocks) * 16;
                let expected = (input > 0).then(|| hits as f64 / f64::from(input));
                prop_assert_eq!(found.ideal_hit_rate, expected);
            }
        }
    }
}
