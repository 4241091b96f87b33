//! Which ready request may leave: limits that hold over all cores at once, of atomics alone.
//!
//! Layer 1 bounds how many requests are under way (in prefill, in decode, in all); then the gate
//! that the ramp closes while first tokens are late; layer 2 are budgets of tokens a minute. A
//! request is let through by all of them or by none. Nothing here waits or allocates: whoever is
//! blocked backs off on its own (see [`super::players`]).
//!
//! Small requests may pass a large one for which a budget does not do yet. A request that was ready
//! for half a minute gets a *turn*: the budgets are kept for it until they do, so that nobody
//! starves; of several, the one that waits longest has it. A request dearer than a whole budget
//! leaves when that is full, and is paid for whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};

use onbeat_shared::units::{
    NANOS_PER_MILLI, NANOS_PER_SECOND, RequestIndex, RunNanos, SessionIndex,
};

use crate::limits::REQUESTS_MAX;

/// How much may be under way and be spent; 0 is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Requests under way.
    pub concurrent: u32,
    /// Requests under way that wait for their first token.
    pub prefill: u32,
    /// Requests under way that had their first token.
    pub decode: u32,
    /// Fresh input tokens a minute.
    pub input_per_minute: u64,
    /// Output tokens a minute.
    pub output_per_minute: u64,
}

/// What a request takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Input tokens that no cache has.
    pub fresh_input: u32,
    /// Output tokens it asks for.
    pub output: u32,
    /// Since when it is ready: by this it is known again when it comes back.
    pub due: RunNanos,
}

/// A request that may not leave now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// What blocks it.
    pub why: Why,
    /// When its budget will do: set for a request that waited so long that the budget is kept for
    /// it, which comes back at this time instead of backing off.
    pub turn_at: Option<RunNanos>,
}

/// What blocks a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Too many wait for their first token.
    Prefill,
    /// Too many had their first token.
    Decode,
    /// Too many are under way.
    Concurrency,
    /// First tokens are late.
    Ttft,
    /// The budget of input tokens.
    InputTokens,
    /// The budget of output tokens.
    OutputTokens,
}

/// The limits of a run and what counts against them, shared by all cores.
#[derive(Debug)]
pub struct Gates {
    limits: Limits,
    next_request: AtomicU32,
    next_session: Arc<AtomicU32>,
    /// Requests under way in the upper half, those of them that decode in the lower.
    under_way: AtomicU64,
    input: Bucket,
    output: Bucket,
    /// Who has the turn at the budgets, and until when: see [`Turn`].
    turn: AtomicU64,
    ttft_closed: AtomicBool,
    /// Requests dearer than a whole budget that left when it was full.
    dearer: AtomicU64,
}

/// A budget of tokens a minute: full at first, and full again a minute after it was empty.
#[derive(Debug)]
struct Bucket {
    /// 0: no limit.
    per_minute: u64,
    /// When it will be full (ns): what flows in until then is missing now.
    full_at: AtomicI64,
}

/// Who may use the budgets first, as one word of two times in milliseconds: since when that request
/// is ready, and until when the turn is kept for it. Two that are ready since one millisecond have
/// it together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Turn(u64);

/// A request that was ready for so long gets a turn: as long as the longest back-off.
const TURN_AFTER_NS: i64 = 30 * NANOS_PER_SECOND;
/// A turn lapses when it is not used so long after the budgets do.
const TURN_SLACK_MS: u32 = 1_000;
const MINUTE_NS: i64 = 60 * NANOS_PER_SECOND;
const ONE_UNDER_WAY: u64 = 1 << 32;

impl Gates {
    /// Open gates with full budgets; the first session that they number is `first_session`.
    #[must_use]
    pub fn new(limits: Limits, first_session: u32) -> Self {
        Self {
            limits,
            next_request: AtomicU32::new(0),
            next_session: Arc::new(AtomicU32::new(first_session)),
            under_way: AtomicU64::new(0),
            input: Bucket::new(limits.input_per_minute),
            output: Bucket::new(limits.output_per_minute),
            turn: AtomicU64::new(Turn::NOBODY.0),
            ttft_closed: AtomicBool::new(false),
            dearer: AtomicU64::new(0),
        }
    }

    /// Whether a request costs more than a whole budget.
    #[must_use]
    pub fn is_dearer(&self, cost: Cost) -> bool {
        let (input, output) = (u64::from(cost.fresh_input), u64::from(cost.output));
        self.input.is_dearer(input) || self.output.is_dearer(output)
    }

    /// The limits.
    #[must_use]
    pub const fn limits(&self) -> Limits {
        self.limits
    }

    /// Numbers a request: in order of leaving, without gaps.
    ///
    /// # Panics
    /// When a run has sent more requests than its log can number.
    pub fn number_request(&self) -> RequestIndex {
        let number = self.next_request.fetch_add(1, Ordering::Relaxed);
        assert!((number as usize) < REQUESTS_MAX, "a run numbers its requests in 32 bits");
        RequestIndex(number)
    }

    /// How many requests were numbered.
    #[must_use]
    pub fn requests(&self) -> u32 {
        self.next_request.load(Ordering::Relaxed)
    }

    /// Numbers a session.
    pub fn number_session(&self) -> SessionIndex {
        SessionIndex(self.next_session.fetch_add(1, Ordering::Relaxed))
    }

    /// Where players number the sessions of their sub-agents.
    #[must_use]
    pub fn sessions(&self) -> Arc<AtomicU32> {
        Arc::clone(&self.next_session)
    }

    /// Lets a request through, which then is under way and in its prefill; or says what blocks it,
    /// and takes nothing.
    ///
    /// # Errors
    /// What blocks it.
    pub fn admit(&self, cost: Cost, now: RunNanos) -> Result<(), Blocked> {
        let by = |why: Why| Blocked { why, turn_at: None };
        self.has_room(self.under_way.load(Ordering::Relaxed)).map_err(by)?;
        if self.ttft_closed.load(Ordering::Relaxed) {
            return Err(by(Why::Ttft));
        }
        self.enter().map_err(by)?;
        let paid = self.pay(cost, now);
        if paid.is_err() {
            self.under_way.fetch_sub(ONE_UNDER_WAY, Ordering::Relaxed);
        }
        paid
    }

    /// The first token of a request under way came: it decodes.
    pub fn first_token(&self) {
        self.under_way.fetch_add(1, Ordering::Relaxed);
    }

    /// A request under way ended; `had_first_token`: [`Gates::first_token`] was told of it.
    pub fn ended(&self, had_first_token: bool) {
        let gone = ONE_UNDER_WAY + u64::from(had_first_token);
        let before = self.under_way.fetch_sub(gone, Ordering::Relaxed);
        debug_assert!(before >= ONE_UNDER_WAY, "only what was admitted ends");
    }

    /// Closes the gate because first tokens are late, or opens it.
    pub fn close_for_ttft(&self, is_closed: bool) {
        self.ttft_closed.store(is_closed, Ordering::Relaxed);
    }

    /// Whether the gate is closed because first tokens are late.
    #[must_use]
    pub fn is_closed_for_ttft(&self) -> bool {
        self.ttft_closed.load(Ordering::Relaxed)
    }

    /// Requests under way.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        halves(self.under_way.load(Ordering::Relaxed)).0
    }

    /// Requests under way that had their first token.
    #[must_use]
    pub fn decoding(&self) -> u32 {
        halves(self.under_way.load(Ordering::Relaxed)).1
    }

    /// Requests dearer than a whole budget that left when it was full.
    #[must_use]
    pub fn dearer(&self) -> u64 {
        self.dearer.load(Ordering::Relaxed)
    }

    /// How full the budget of input tokens is, 0 to 1; `None` without one.
    #[must_use]
    pub fn input_share(&self, now: RunNanos) -> Option<f64> {
        self.input.share(now)
    }

    /// How full the budget of output tokens is, 0 to 1; `None` without one.
    #[must_use]
    pub fn output_share(&self, now: RunNanos) -> Option<f64> {
        self.output.share(now)
    }

    /// Whether one more may be under way.
    fn has_room(&self, under_way: u64) -> Result<(), Why> {
        let (in_flight, decoding) = halves(under_way);
        let is_full = |limit: u32, count: u32| limit > 0 && count >= limit;
        if is_full(self.limits.prefill, in_flight.saturating_sub(decoding)) {
            return Err(Why::Prefill);
        }
        if is_full(self.limits.decode, decoding) {
            return Err(Why::Decode);
        }
        if is_full(self.limits.concurrent, in_flight) {
            return Err(Why::Concurrency);
        }
        Ok(())
    }

    fn enter(&self) -> Result<(), Why> {
        let mut under_way = self.under_way.load(Ordering::Relaxed);
        loop {
            self.has_room(under_way)?;
            match self.under_way.compare_exchange_weak(
                under_way,
                under_way + ONE_UNDER_WAY,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Ok(()),
                Err(changed) => under_way = changed,
            }
        }
    }

    /// Takes what a request costs from both budgets, or nothing.
    fn pay(&self, cost: Cost, now: RunNanos) -> Result<(), Blocked> {
        let (input, output) = (u64::from(cost.fresh_input), u64::from(cost.output));
        let needs = [self.input.limits(input), self.output.limits(output)];
        if needs == [false, false] {
            return Ok(());
        }
        let held = Turn(self.turn.load(Ordering::Relaxed));
        let is_own = held.is_of(cost.due);
        let waits_long = now.0.saturating_sub(cost.due.0) >= TURN_AFTER_NS;
        let may_have_it = waits_long && held.is_behind(cost.due);
        if held.holds(now) && !is_own && !may_have_it {
            let why = if needs[0] { Why::InputTokens } else { Why::OutputTokens };
            return Err(Blocked { why, turn_at: None });
        }
        match self.take_both(input, output, now) {
            Ok(()) => {
                let dearer = self.input.is_dearer(input) || self.output.is_dearer(output);
                self.dearer.fetch_add(u64::from(dearer), Ordering::Relaxed);
                if is_own {
                    self.replace(held, Turn::NOBODY);
                }
                Ok(())
            }
            Err(why) => {
                let mut turn_at = None;
                if waits_long {
                    let enough = |bucket: &Bucket, tokens| bucket.look(tokens, now).err();
                    let at = enough(&self.input, input).max(enough(&self.output, output));
                    let at = at.unwrap_or(now);
                    turn_at = self.replace(held, Turn::of(cost.due, at)).then_some(at);
                }
                Err(Blocked { why, turn_at })
            }
        }
    }

    fn take_both(&self, input: u64, output: u64, now: RunNanos) -> Result<(), Why> {
        let taken_ns = self.input.take(input, now).ok_or(Why::InputTokens)?;
        if self.output.take(output, now).is_none() {
            self.input.give_back(taken_ns);
            return Err(Why::OutputTokens);
        }
        Ok(())
    }

    fn replace(&self, old: Turn, new: Turn) -> bool {
        let turn = &self.turn;
        turn.compare_exchange(old.0, new.0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// An instant in whole milliseconds: fifty days' worth.
fn millis(at: RunNanos) -> u32 {
    u32::try_from(at.0.max(0) / NANOS_PER_MILLI).unwrap_or(u32::MAX)
}

/// Requests under way, and those of them that decode.
#[expect(clippy::cast_possible_truncation, reason = "the two halves")]
const fn halves(under_way: u64) -> (u32, u32) {
    ((under_way >> 32) as u32, under_way as u32)
}

impl Bucket {
    const fn new(per_minute: u64) -> Self {
        Self { per_minute, full_at: AtomicI64::new(i64::MIN) }
    }

    /// Whether it has a say in so many tokens.
    const fn limits(&self, tokens: u64) -> bool {
        self.per_minute > 0 && tokens > 0
    }

    const fn is_dearer(&self, tokens: u64) -> bool {
        self.per_minute > 0 && tokens > self.per_minute
    }

    /// How long so many tokens take to flow in, rounded up.
    fn inflow_ns(&self, tokens: u64) -> i64 {
        let ns = u128::from(tokens) * u128::from(MINUTE_NS.unsigned_abs());
        i64::try_from(ns.div_ceil(u128::from(self.per_minute))).unwrap_or(i64::MAX)
    }

    /// When it is full after so many tokens were taken, if it is to be full at `full_at`; or since
    /// when there will be enough.
    fn after(&self, full_at: i64, tokens: u64, now: RunNanos) -> Result<i64, RunNanos> {
        let full_at = full_at.max(now.0);
        let after = full_at.saturating_add(self.inflow_ns(tokens));
        // A request dearer than all of it waits until it is full.
        let enough_at = if self.is_dearer(tokens) { full_at } else { after - MINUTE_NS };
        if enough_at <= now.0 { Ok(after) } else { Err(RunNanos(enough_at)) }
    }

    /// Whether there is enough; if not, since when there will be.
    fn look(&self, tokens: u64, now: RunNanos) -> Result<(), RunNanos> {
        if !self.limits(tokens) {
            return Ok(());
        }
        self.after(self.full_at.load(Ordering::Relaxed), tokens, now).map(|_after| ())
    }

    /// Takes tokens, if there are enough: how much later it is full now.
    fn take(&self, tokens: u64, now: RunNanos) -> Option<i64> {
        if !self.limits(tokens) {
            return Some(0);
        }
        let taken = self.full_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |full_at| {
            self.after(full_at, tokens, now).ok()
        });
        taken.ok().map(|_before| self.inflow_ns(tokens))
    }

    fn give_back(&self, taken_ns: i64) {
        self.full_at.fetch_sub(taken_ns, Ordering::Relaxed);
    }

    fn share(&self, now: RunNanos) -> Option<f64> {
        let missing_ns = self.full_at.load(Ordering::Relaxed).saturating_sub(now.0).max(0);
        let share = 1.0 - missing_ns as f64 / MINUTE_NS as f64;
        (self.per_minute > 0).then_some(share.max(0.0))
    }
}

impl Turn {
    const NOBODY: Self = Self(0);

    /// The turn of a request that is ready since `due`, whose budgets do at `at`.
    fn of(due: RunNanos, at: RunNanos) -> Self {
        let until_ms = millis(at).saturating_add(TURN_SLACK_MS).max(1);
        Self(u64::from(millis(due)) << 32 | u64::from(until_ms))
    }

    fn is_of(self, due: RunNanos) -> bool {
        self != Self::NOBODY && halves(self.0).0 == millis(due)
    }

    /// Whether whoever has it is ready for a shorter time than since `due`.
    fn is_behind(self, due: RunNanos) -> bool {
        halves(self.0).0 > millis(due)
    }

    /// Whether somebody has it at `now`.
    fn holds(self, now: RunNanos) -> bool {
        millis(now) < halves(self.0).1
    }
}

impl Why {
    /// Whether it is a limit of what is under way; else it is the gate or a budget.
    #[must_use]
    pub const fn is_layer_one(self) -> bool {
        matches!(self, Self::Prefill | Self::Decode | Self::Concurrency)
    }
}

#[cfg(test)]
mod tests;
