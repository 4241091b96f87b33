//! Ideal hit rate against the size of the server's cache: one pass for all sizes.
//!
//! Requests are asked in the order in which they really left, each at once and whole, whatever
//! became of it. Every server has a cache of its own that forgets the block which was asked for
//! longest ago, of a prefix its end first. A block is still there when fewer other blocks than the
//! cache holds were asked for since: its stack distance. Blocks that were last asked for together
//! stand together in that order, and a path meets few such groups, so a request costs little more
//! than a walk over its stretches. The answer's tokens and requests under way are not modelled.

use std::collections::HashMap;

use crate::log::CacheSize;
use crate::run::Run;
use crate::run::prefixes::{Path, Prefixes, Stretch};

use super::latency::count;

/// Stretches that are looked at in all beyond which there is no curve, so that a trace of any
/// shape is answered in a bounded time.
const STEPS_MAX: u64 = 400_000_000;
/// Stretches of repeated conversations beyond which there is no curve: 128 MiB.
const REPEATED_MAX: usize = 32 * 1024 * 1024;
/// Sizes for each factor of ten.
const SIZES_PER_DECADE: f64 = 48.0;
/// Sizes beyond the first one that forgets nothing, itself included.
const SIZES_BEYOND: usize = 16;

/// Why there is no curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoCurve {
    /// The log does not say which prompts begin alike.
    NotInLog,
    /// No request that counts left with block ids.
    NoRequest,
    /// It would take too long or too much memory.
    TooLarge,
}

/// What caches of growing size would have had.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// By size, per server; the last one forgets nothing.
    pub sizes: Vec<CacheSize>,
    /// Requests that it is about.
    pub requests: u64,
    /// How many servers there were, each with a cache of its own.
    pub servers: usize,
    /// Tokens of one block.
    pub block_tokens: u32,
}

/// The size of a cache with some hit rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Capacity {
    /// About so many tokens.
    About(f64),
    /// Less than the smallest size, so many tokens.
    Below(u64),
    /// More than any size has.
    Above,
}

impl Curve {
    /// The curve of those requests for which `counts` holds; all others are asked for as well and
    /// fill the caches. `order` are the requests that left, by when they did.
    ///
    /// # Errors
    /// Why there is none.
    pub fn of(run: &Run, order: &[u32], counts: impl Fn(usize) -> bool) -> Result<Self, NoCurve> {
        let prefixes = run.prefixes.as_deref().ok_or(NoCurve::NotInLog)?;
        let block_tokens = run.manifest.trace.block_tokens.filter(|&tokens| tokens > 0);
        let block_tokens = block_tokens.ok_or(NoCurve::NotInLog)?;
        let users = run.manifest.users.as_ref();
        let warm = users.map_or(0, |facts| facts.prompts.warm_prefix_tokens) / block_tokens;
        let mut asked: Vec<Asked> = order
            .iter()
            .filter_map(|&i| Asked::of(run, prefixes, i as usize, counts(i as usize)))
            .collect();
        let steps: u64 = asked.iter().map(|asked| asked.steps(prefixes)).sum();
        if steps > STEPS_MAX {
            return Err(NoCurve::TooLarge);
        }
        // Stable: by server, and within one as they left.
        asked.sort_by_key(|asked| asked.target);
        let blocks: u64 = asked.iter().map(|asked| u64::from(asked.blocks(prefixes))).sum();
        let mut hits = Hits::new(sizes_up_to(most_blocks(prefixes, blocks, &asked, warm)));
        let mut servers = 0;
        for asked in asked.chunk_by(|a, b| a.target == b.target) {
            let mut cache = Cache::new(prefixes, asked.len(), warm);
            for asked in asked {
                cache.ask(asked, block_tokens, &mut hits)?;
            }
            servers += 1;
        }
        hits.curve(servers, block_tokens).ok_or(NoCurve::NoRequest)
    }

    /// The size of a cache that has this hit rate.
    #[must_use]
    pub fn capacity_at(&self, rate: f64) -> Capacity {
        capacity_at(&self.sizes, rate)
    }
}

/// The size at which a curve comes to a hit rate, between two sizes by the sizes' logarithms.
#[must_use]
pub fn capacity_at(sizes: &[CacheSize], rate: f64) -> Capacity {
    let after = sizes.partition_point(|size| size.ideal_hit_rate < rate);
    let Some(upper) = sizes.get(after) else { return Capacity::Above };
    let Some(lower) = after.checked_sub(1).map(|before| sizes[before]) else {
        return Capacity::Below(upper.cache_tokens);
    };
    let rise = upper.ideal_hit_rate - lower.ideal_hit_rate;
    let share = if rise > 0.0 { (rate - lower.ideal_hit_rate) / rise } else { 1.0 };
    let (from, to) = (count(lower.cache_tokens.max(1)).ln(), count(upper.cache_tokens).ln());
    Capacity::About((from + share * (to - from)).exp())
}

/// A request that left.
struct Asked {
    target: u16,
    path: Option<Path>,
    input: u32,
    counts: bool,
}

impl Asked {
    fn of(run: &Run, prefixes: &Prefixes, i: usize, counts: bool) -> Option<Self> {
        let path = run.path(i);
        let row = &run.plan[i];
        // Of a request without an ideal figure, or whose path is lost, nobody knows what it has in
        // common with others.
        let is_known = row.ideal_cached_tokens.is_some() && (path.is_some() || row.blocks == 0);
        let input = row.input_tokens.filter(|_| is_known)?;
        debug_assert!(path.is_none_or(|path| prefixes.stretches().len() > path.end as usize));
        let target = run.requests.target(i).unwrap_or(u16::MAX);
        Some(Self { target, path, input, counts })
    }

    fn last<'a>(&self, prefixes: &'a Prefixes) -> Option<&'a Stretch> {
        self.path.map(|path| &prefixes.stretches()[path.end as usize])
    }

    fn steps(&self, prefixes: &Prefixes) -> u64 {
        self.last(prefixes).map_or(1, |last| u64::from(last.place))
    }

    fn blocks(&self, prefixes: &Prefixes) -> u32 {
        self.last(prefixes).map_or(0, |last| last.end)
    }
}

/// No more different blocks than this are asked for.
fn most_blocks(prefixes: &Prefixes, asked_for: u64, asked: &[Asked], warm: u32) -> u64 {
    let copied = asked.iter().any(|asked| asked.path.is_some_and(|path| path.copy > 0));
    let servers = asked.chunk_by(|a, b| a.target == b.target).count() as u64;
    if copied || servers > 1 {
        return asked_for;
    }
    let all: u64 = prefixes.stretches().iter().map(|stretch| u64::from(stretch.blocks)).sum();
    asked_for.min(all + u64::from(warm))
}

/// Sizes in blocks, evenly spread over their logarithms, from one block to all.
fn sizes_up_to(blocks: u64) -> Vec<u64> {
    let blocks = blocks.max(1);
    let mut sizes = vec![1];
    for place in 1_u32.. {
        let size = 10_f64.powf(f64::from(place) / SIZES_PER_DECADE).round();
        if size >= count(blocks) {
            break;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a whole number below the number of blocks"
        )]
        sizes.push(size as u64);
    }
    sizes.push(blocks);
    sizes.dedup();
    sizes
}

/// The hits of caches of each size so far: between two of their places, sums of straight lines.
struct Hits {
    sizes: Vec<u64>,
    /// By how much the slope changes at each size.
    slopes: Vec<i128>,
    /// By how much the height at size zero changes there.
    heights: Vec<i128>,
    input: u64,
    requests: u64,
}

impl Hits {
    fn new(sizes: Vec<u64>) -> Self {
        let zero = vec![0; sizes.len() + 1];
        Self { sizes, slopes: zero.clone(), heights: zero, input: 0, requests: 0 }
    }

    /// So many blocks of so many tokens each, the first with `distance` others before it.
    fn add(&mut self, distance: u64, blocks: u64, tokens: u64) {
        if blocks == 0 || tokens == 0 {
            return;
        }
        let from = self.sizes.partition_point(|&size| size <= distance);
        let to = self.sizes.partition_point(|&size| size < distance + blocks);
        let (tokens, start) = (i128::from(tokens), i128::from(distance));
        self.slopes[from] += tokens;
        self.heights[from] -= tokens * start;
        self.slopes[to] -= tokens;
        self.heights[to] += tokens * (start + i128::from(blocks));
    }

    fn curve(self, servers: usize, block_tokens: u32) -> Option<Curve> {
        let (mut slope, mut height) = (0, 0);
        let input = count(self.input);
        let sizes = self.sizes.iter().zip(self.slopes.iter().zip(&self.heights));
        let sizes = sizes.map(|(&blocks, (&more, &higher))| {
            slope += more;
            height += higher;
            let hits = u64::try_from(slope * i128::from(blocks) + height).unwrap_or(0);
            CacheSize {
                cache_tokens: blocks.saturating_mul(u64::from(block_tokens)),
                ideal_hit_rate: count(hits) / input,
            }
        });
        let mut sizes: Vec<CacheSize> = sizes.collect();
        let most = sizes.last().map_or(0.0, |size| size.ideal_hit_rate);
        let enough = sizes.iter().position(|size| size.ideal_hit_rate >= most);
        sizes.truncate(enough.unwrap_or(0) + SIZES_BEYOND);
        let requests = self.requests;
        (self.input > 0).then_some(Curve { sizes, requests, servers, block_tokens })
    }
}

/// Never asked for, as a time.
const NEVER: u32 = u32::MAX;

/// What one server was asked for.
struct Cache<'a> {
    prefixes: &'a Prefixes,
    /// Blocks that all prompts share.
    warm: u32,
    now: u32,
    /// For each stretch of the first copy, and behind those for each of the other ones: when it was
    /// asked for last.
    times: Vec<u32>,
    /// Where in those a tree of another copy is: (root, copy) → place of its first stretch.
    copies: HashMap<(u32, u32), usize>,
    /// Where each tree ends.
    tree_ends: HashMap<u32, u32>,
    /// When the shared blocks were asked for last: (time, blocks up to here), the newest first.
    shared: Vec<(u32, u32)>,
    /// Of each request, how many of its blocks nobody has asked for since.
    alive: Sums,
    /// The groups of the path that is being looked at, its end first.
    groups: Vec<(u32, u32)>,
}

impl<'a> Cache<'a> {
    fn new(prefixes: &'a Prefixes, requests: usize, warm: u32) -> Self {
        Self {
            prefixes,
            warm,
            now: 0,
            times: vec![NEVER; prefixes.stretches().len()],
            copies: HashMap::new(),
            tree_ends: HashMap::new(),
            shared: Vec::new(),
            alive: Sums::new(requests),
            groups: Vec::new(),
        }
    }

    /// Asks for a request's blocks and counts what is there of them in caches of every size.
    fn ask(&mut self, asked: &Asked, block_tokens: u32, hits: &mut Hits) -> Result<(), NoCurve> {
        let input = u64::from(asked.input);
        if asked.counts {
            hits.input += input;
            hits.requests += 1;
        }
        let now = self.now;
        self.now += 1;
        let Some(path) = asked.path else { return Ok(()) };
        let base = self.base(path).ok_or(NoCurve::TooLarge)?;
        self.touch(path.end, base, now);
        let (block, mut depth) = (u64::from(block_tokens), 0_u64);
        let newer = |alive: &Sums, time: u32| alive.from(time as usize + 1);
        for &(time, blocks) in self.groups.iter().rev() {
            let blocks = u64::from(blocks);
            if time != NEVER && asked.counts {
                let distance = newer(&self.alive, time);
                // A prompt may end inside its last block, or before it.
                let whole = (input / block).saturating_sub(depth).min(blocks);
                hits.add(distance, whole, block);
                let rest = input.saturating_sub((depth + whole) * block).min(block);
                hits.add(distance + whole, (blocks - whole).min(1), rest);
            }
            depth += blocks;
        }
        for &(time, blocks) in &self.groups {
            if time != NEVER {
                self.alive.take(time as usize, u64::from(blocks));
            }
        }
        self.alive.put(now as usize, depth);
        Ok(())
    }

    /// Finds the groups of a path that were asked for together, and asks for them now.
    fn touch(&mut self, end: u32, base: usize, now: u32) {
        self.groups.clear();
        let stretches = self.prefixes.stretches();
        let root = stretches[end as usize].root;
        let mut next = Some(end);
        while let Some(number) = next {
            let stretch = &stretches[number as usize];
            if stretch.end <= self.warm {
                break;
            }
            let own = stretch.blocks.min(stretch.end - self.warm);
            let place = base + (number - root) as usize;
            let time = std::mem::replace(&mut self.times[place], now);
            push(&mut self.groups, time, own);
            next = stretch.follows();
        }
        let shared = self.warm.min(stretches[end as usize].end);
        self.touch_shared(shared, now);
    }

    /// The same for the first so many of the blocks that all share.
    fn touch_shared(&mut self, blocks: u32, now: u32) {
        if blocks == 0 {
            return;
        }
        let mut start = 0;
        let mut found = Vec::new();
        for &(time, end) in &self.shared {
            if start < blocks {
                found.push((time, end.min(blocks) - start));
                start = end.min(blocks);
            }
        }
        if start < blocks {
            found.push((NEVER, blocks - start));
        }
        for &(time, blocks) in found.iter().rev() {
            push(&mut self.groups, time, blocks);
        }
        self.shared.retain(|&(_, end)| end > blocks);
        self.shared.insert(0, (now, blocks));
    }

    /// Where the times of a path's tree begin; `None` if there are too many copies of trees.
    fn base(&mut self, path: Path) -> Option<usize> {
        let stretches = self.prefixes.stretches();
        let root = stretches[path.end as usize].root;
        if path.copy == 0 {
            return Some(root as usize);
        }
        if let Some(&base) = self.copies.get(&(root, path.copy)) {
            return Some(base);
        }
        let end = *self.tree_ends.entry(root).or_insert_with(|| {
            let after = stretches.partition_point(|stretch| stretch.root <= root);
            u32::try_from(after).unwrap_or(u32::MAX)
        });
        let base = self.times.len();
        let length = base + (end - root) as usize;
        if length > stretches.len() + REPEATED_MAX {
            return None;
        }
        self.times.resize(length, NEVER);
        self.copies.insert((root, path.copy), base);
        Some(base)
    }
}

/// Adds blocks to the last group if they were asked for together with it.
fn push(groups: &mut Vec<(u32, u32)>, time: u32, blocks: u32) {
    match groups.last_mut() {
        Some(last) if last.0 == time => last.1 += blocks,
        _ => groups.push((time, blocks)),
    }
}

/// Numbers in a row, and their sums (a Fenwick tree).
struct Sums {
    tree: Vec<u64>,
    whole: u64,
}

impl Sums {
    fn new(length: usize) -> Self {
        Self { tree: vec![0; length + 1], whole: 0 }
    }

    fn put(&mut self, at: usize, more: u64) {
        self.whole += more;
        self.each(at, |sum| *sum += more);
    }

    fn take(&mut self, at: usize, less: u64) {
        self.whole -= less;
        self.each(at, |sum| *sum -= less);
    }

    fn each(&mut self, at: usize, change: impl Fn(&mut u64)) {
        let mut place = at + 1;
        while let Some(sum) = self.tree.get_mut(place) {
            change(sum);
            place += place & place.wrapping_neg();
        }
    }

    /// The sum of all numbers from a place on.
    fn from(&self, at: usize) -> u64 {
        let (mut before, mut place) = (0, at);
        while place > 0 {
            before += self.tree[place];
            place &= place - 1;
        }
        self.whole - before
    }
}

#[cfg(test)]
mod tests;
