//! `--shard I/N`: one of several machines' part of a plan, so that all parts together are the plan.
//!
//! A session is never divided. Sessions are taken in the order of a hash of their names, which is
//! the same on every machine and in every version, and each goes to the shard with the fewest
//! tokens so far (the lowest number among equals): no shard has more than its share and one session
//! on top, and none is empty while another has two. The division is of the whole plan, made after
//! everything that is drawn or counted was drawn and counted of all of it: due times, copies,
//! cancellations, servers and ideal cache hits are those of the whole, and so are the numbers that
//! [`Plan::number`] gives. It knows no network and no other shard.

#[cfg(test)]
mod properties;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::fmt;

use onbeat_shared::counted::{agreeing, counted};
use onbeat_shared::log::plan_row::PlanRow;
use onbeat_shared::log::prefix_rows::PrefixRows;
use onbeat_shared::log::recorded_row::RecordedRow;
use onbeat_shared::trace::Trace;
use onbeat_shared::units::{CoreIndex, RequestIndex, SessionIndex};

use crate::limits::SHARDS_MAX;
use crate::plan::script::{Cue, Script, Scripts};
use crate::plan::{Plan, PlanError};

/// Which part of how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: u32,
    count: u32,
}

/// What a part of a plan knows of the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which part it is.
    pub shard: Shard,
    /// The number of each request in the whole plan, ascending; empty for users, who make their
    /// requests during the run.
    pub numbers: Vec<u32>,
    /// Requests (or templates) of the whole plan.
    pub planned: u32,
    /// A digest of the whole plan: equal for parts of one plan.
    pub digest: u64,
}

impl Shard {
    /// Part `index`, from 0, of `count`.
    ///
    /// # Errors
    /// When there is no such part: what would be right.
    pub fn new(index: u32, count: u32) -> Result<Self, String> {
        match count {
            0 => Err("there is no part of nothing; give I/N like 0/4".to_owned()),
            _ if count > SHARDS_MAX => Err(format!("at most {SHARDS_MAX} shards can share a run")),
            _ if index >= count => {
                Err(format!("shards count from 0: of {count} the last is {}/{count}", count - 1))
            }
            _ => Ok(Self { index, count }),
        }
    }

    /// Its number, from 0.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.index
    }

    /// How many there are.
    #[must_use]
    pub const fn count(self) -> u32 {
        self.count
    }

    /// This shard's part of a limit of the whole run: together all shards have no more and no less.
    #[must_use]
    pub fn share(self, all: u64) -> u64 {
        let (index, count) = (u64::from(self.index), u64::from(self.count));
        all / count + u64::from(index < all % count)
    }

    /// [`Self::share`] of a limit that every shard needs a part of.
    ///
    /// # Errors
    /// When there is not enough for all: `option` is what the user gave or could give.
    pub fn share_of(self, option: &str, all: u64) -> Result<u64, String> {
        if all >= u64::from(self.count) {
            return Ok(self.share(all));
        }
        Err(format!(
            "{option} {all} is for all {} shards together, and each needs some; give {} or more",
            self.count, self.count
        ))
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.index, self.count)
    }
}

impl Plan {
    /// The number of a request in the whole plan; its own where this is the whole plan.
    ///
    /// # Panics
    /// When the plan has no such request.
    #[must_use]
    pub fn number(&self, request: RequestIndex) -> RequestIndex {
        match &self.part {
            Some(part) if !part.numbers.is_empty() => {
                RequestIndex(part.numbers[request.as_usize()])
            }
            _ => request,
        }
    }

    /// One part of a whole schedule, with its requests and sessions numbered anew and for one core.
    ///
    /// # Errors
    /// When there are fewer sessions than shards and this one gets none.
    ///
    /// # Panics
    /// When the plan is of another trace, or a part already.
    pub fn shard(self, trace: &Trace, shard: Shard) -> Result<Self, PlanError> {
        assert!(self.part.is_none(), "only a whole plan is divided");
        let digest = self.digest();
        let shards = divide(&self.sessions, &self.tokens(trace), shard.count);
        let is_own = |session: SessionIndex| shards[session.as_usize()] == shard.index;
        let mut new = vec![u32::MAX; self.rows.len()];
        let mut numbers = Vec::new();
        for row in self.rows.iter().filter(|row| is_own(row.session)) {
            new[row.request.as_usize()] = u32::try_from(numbers.len()).expect("of 32 bits");
            numbers.push(row.request.0);
        }
        if numbers.is_empty() {
            return Err(PlanError::Unfit(nothing(shard, self.sessions.len())));
        }
        let renumbered = |request: RequestIndex| RequestIndex(new[request.as_usize()]);
        // Sessions are numbered by their first requests, so those that stay keep their order.
        let mut session_of = vec![u32::MAX; self.sessions.len()];
        let mut sessions = Vec::new();
        for (at, name) in (0_u32..).zip(self.sessions) {
            if is_own(SessionIndex(at)) {
                session_of[at as usize] = u32::try_from(sessions.len()).expect("of 32 bits");
                sessions.push(name);
            }
        }
        let own = |numbers: &[u32]| numbers.iter().map(|&number| number as usize).collect();
        let places: Vec<usize> = own(&numbers);
        let row = |&place: &usize| {
            let row = self.rows[place];
            PlanRow {
                request: renumbered(row.request),
                session: SessionIndex(session_of[row.session.as_usize()]),
                core: CoreIndex(0),
                after: row.after.map(renumbered),
                ..row
            }
        };
        let recorded = self.recorded.iter().filter(|row| new[row.request.as_usize()] != u32::MAX);
        let recorded = recorded.map(|row| RecordedRow { request: renumbered(row.request), ..*row });
        Ok(Self {
            rows: places.iter().map(row).collect(),
            record_of: places.iter().map(|&place| self.record_of[place]).collect(),
            copy_of: picked(&self.copy_of, &places),
            cancel_after: picked(&self.cancel_after, &places),
            recorded: recorded.collect(),
            sessions,
            part: Some(Part {
                shard,
                numbers,
                planned: u32::try_from(self.rows.len()).expect("numbered in 32 bits"),
                digest,
            }),
            ..self
        })
    }

    /// The whole table of templates as one shard's, whose users play the scripts of their own.
    #[must_use]
    pub fn shard_of_users(self, shard: Shard) -> Self {
        let planned = u32::try_from(self.rows.len()).expect("numbered in 32 bits");
        let part = Part { shard, numbers: Vec::new(), planned, digest: self.digest() };
        Self { part: Some(part), ..self }
    }

    /// Of what a log says of the prefixes of the whole plan, what belongs to this part: all
    /// stretches, so that those of all parts have one numbering, and the paths of its requests.
    #[must_use]
    pub fn own_prefixes(&self, mut whole: PrefixRows) -> PrefixRows {
        let Some(part) = self.part.as_ref().filter(|part| !part.numbers.is_empty()) else {
            return whole;
        };
        whole.paths.retain_mut(|path| match part.numbers.binary_search(&path.request.0) {
            Ok(own) => {
                path.request = RequestIndex(u32::try_from(own).expect("numbered in 32 bits"));
                true
            }
            Err(_) => false,
        });
        whole
    }

    /// How many of the first `count` requests of the whole plan are of this part.
    #[must_use]
    pub fn own_first(&self, count: u32) -> u32 {
        let Some(part) = &self.part else { return count };
        let own = part.numbers.partition_point(|&number| number < count);
        u32::try_from(own).expect("no more than there are")
    }

    /// Tokens of each session, prompts and answers, and one for each request: a session has some.
    fn tokens(&self, trace: &Trace) -> Vec<u64> {
        let mut tokens = vec![0_u64; self.sessions.len()];
        for (row, &record) in self.rows.iter().zip(&self.record_of) {
            let input = trace.records[record as usize].input_tokens;
            let output = row.max_tokens.unwrap_or(0);
            tokens[row.session.as_usize()] += u64::from(input) + u64::from(output) + 1;
        }
        tokens
    }

    /// A digest of everything that parts of one plan have in common.
    fn digest(&self) -> u64 {
        let mut hash = Hash::default();
        for row in &self.rows {
            let row = PlanRow { core: CoreIndex(0), body_bytes: None, ..*row };
            hash.add(&row.encode());
        }
        self.sessions.iter().for_each(|name| hash.add(name.as_bytes()));
        self.cancel_after
            .iter()
            .for_each(|after| hash.add(&after.unwrap_or(i64::MIN).to_le_bytes()));
        hash.end()
    }
}

impl Scripts {
    /// Leaves to this shard's users the conversations that are its own; those of one id stay
    /// together.
    ///
    /// # Errors
    /// When there are fewer ids than shards and this one gets none.
    ///
    /// # Panics
    /// When the scripts are of another trace.
    pub fn shard(&mut self, trace: &Trace, shard: Shard) -> Result<(), PlanError> {
        let agentic = trace.recorded.agentic.as_ref().expect("scripts are of conversations");
        let id = |place: usize| &agentic.conversations[place].id;
        let mut names: Vec<String> = Vec::new();
        let mut tokens: Vec<u64> = Vec::new();
        let mut known = HashMap::new();
        let mut name_of = vec![usize::MAX; self.scripts.len()];
        for (place, script) in self.scripts.iter().enumerate().filter(|(_, own)| own.in_pool) {
            let at = *known.entry(id(place)).or_insert_with(|| {
                names.push(id(place).clone());
                tokens.push(0);
                names.len() - 1
            });
            name_of[place] = at;
            tokens[at] += tokens_of(script);
        }
        let shards = divide(&names, &tokens, shard.count);
        for (place, script) in self.scripts.iter_mut().enumerate().filter(|(_, own)| own.in_pool) {
            script.in_pool = shards[name_of[place]] == shard.index;
            script.elsewhere = !script.in_pool;
        }
        let kept = self.scripts.iter().filter(|script| script.in_pool).count();
        if kept == 0 {
            return Err(PlanError::Unfit(nothing(shard, names.len())));
        }
        self.pool.elsewhere = self.pool.kept - u32::try_from(kept).expect("no more than before");
        self.pool.kept -= self.pool.elsewhere;
        Ok(())
    }
}

/// Tokens of a conversation as recorded, and one for each request.
fn tokens_of(script: &Script) -> u64 {
    let turns = script.parts.iter().flat_map(|part| &part.cues).filter_map(Cue::turn);
    turns.map(|turn| u64::from(turn.input_tokens) + u64::from(turn.output_tokens) + 1).sum()
}

/// The shard of each session.
fn divide(names: &[String], tokens: &[u64], shards: u32) -> Vec<u32> {
    let mut order: Vec<(u64, usize)> =
        names.iter().enumerate().map(|(at, name)| (Hash::of(name.as_bytes()), at)).collect();
    order.sort_unstable();
    let mut loads: BinaryHeap<Reverse<(u64, u32)>> =
        (0..shards).map(|shard| Reverse((0, shard))).collect();
    let mut of = vec![0; names.len()];
    for (_, at) in order {
        let Reverse((load, shard)) = loads.pop().expect("there is at least one shard");
        loads.push(Reverse((load + tokens[at], shard)));
        of[at] = shard;
    }
    of
}

/// The values at these places; all of an empty column.
fn picked<T: Copy>(column: &[T], places: &[usize]) -> Vec<T> {
    if column.is_empty() { Vec::new() } else { places.iter().map(|&at| column[at]).collect() }
}

/// Why a shard would send nothing.
fn nothing(shard: Shard, sessions: usize) -> String {
    let sessions = sessions as u64;
    format!(
        "shard {shard} has nothing to send: {} {} divided, each whole; use at most {}",
        counted(sessions, "session"),
        agreeing(sessions, "is", "are"),
        counted(sessions, "shard")
    )
}

/// FNV-1a of 64 bits, with a last step that spreads it: short, and the same for ever.
struct Hash(u64);

impl Default for Hash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    fn of(bytes: &[u8]) -> u64 {
        let mut hash = Self::default();
        hash.add(bytes);
        hash.end()
    }

    /// Takes bytes, and where they end.
    fn add(&mut self, bytes: &[u8]) {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes();
        for &byte in bytes.iter().chain(&length) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    const fn end(self) -> u64 {
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
