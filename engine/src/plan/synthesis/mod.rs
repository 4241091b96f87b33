//! `--synthesis-…`: a recorded workload with other lengths, as AIPerf's synthesizer makes it.
//!
//! What a prompt shares with others is the run of block ids at its start that appear at least twice
//! among the rows that are kept; the rest is its own. The shared part is stretched or shortened by
//! whole blocks, the rest by tokens, and its blocks get ids that nothing else has. Prefix trees may
//! be multiplied: each row then belongs to one of several, drawn as AIPerf 0.13 draws for the same
//! seed. Ids, lengths and draws are AIPerf's own, but for these, where it stops or contradicts
//! itself:
//!
//! * a shared last block that is cut short stays cut by as many tokens (AIPerf refuses the file);
//! * a row that shares nothing gets no block when prefixes are shortened (AIPerf adds a block's
//!   length without the block);
//! * a row beyond `--max-isl` after it grew is cut, its ids with it (AIPerf keeps the ids);
//! * with all of prefix, roots and prompt at 1, ids stay what they are (AIPerf numbers them anew);
//! * ids too large to calculate with are first numbered in order of appearance.
//!
//! Lengths are multiplied as doubles and rounded as Python does it. Nothing here is about time: the
//! speed-up is the schedule's.

use std::num::NonZero;

use onbeat_shared::trace::blocks::{BLOCK_IDS_MAX, BlockIds, Blocks, Numbering};
use onbeat_shared::trace::decimal::Ratio;
use onbeat_shared::trace::recorded::Content;
use onbeat_shared::trace::{Format, Trace};

use crate::plan::twister::Twister;
use crate::plan::{PlanError, PlanOptions, schedule};

/// How a workload is changed before it is planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Synthesis {
    /// Timestamps, and they alone, run this many times faster.
    pub speedup: Ratio,
    /// Shared prefixes are this many times as long.
    pub prefix: Factor,
    /// Rows are dealt to this many prefix trees.
    pub roots: NonZero<u32>,
    /// What a prompt does not share is this many times as long.
    pub prompt: Factor,
    /// Answers are this many times as long.
    pub output: Factor,
}

/// A multiplier of lengths: finite, and not below 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factor(f64);

/// Rows are shaped one after the other: ids that nothing else has come from one counter.
struct Shaper {
    synthesis: Synthesis,
    block_tokens: u64,
    longest: u64,
    shared: Shared,
    /// The largest id given out so far.
    last_id: u64,
}

/// Which ids more than one place has.
struct Shared {
    numbering: Numbering,
    /// For each number, whether it was seen, and whether it was seen again.
    seen: Vec<[bool; 2]>,
    /// Whether ids are replaced by their numbers.
    by_number: bool,
    /// The largest shared id, as it is called then; 0 when nothing is shared.
    largest: u64,
}

/// Ids of one row and its length.
type Shaped = (Vec<u64>, u64);

/// Changes the rows that `options` keep as they say; what a reader should know of it is returned.
///
/// # Errors
/// When the trace's format cannot be changed so, or a length or an id becomes too large.
pub fn synthesise(trace: &mut Trace, options: &PlanOptions) -> Result<Vec<String>, PlanError> {
    let synthesis = options.synthesis;
    refused(trace.source.format, &synthesis)?;
    if synthesis.is_nothing() {
        return Ok(Vec::new());
    }
    let rows = in_order(trace, options);
    let mut said = Vec::new();
    if synthesis.shapes_prompts() {
        if rows.iter().all(|&row| trace.records[row as usize].block_count == 0) {
            said.push(
                "--synthesis-prefix-… and --synthesis-prompt-len-multiplier change nothing: no \
                 row has hash_ids"
                    .to_owned(),
            );
        } else {
            shape(trace, options, &rows)?;
        }
    }
    for &row in &rows {
        let record = &mut trace.records[row as usize];
        record.output_tokens = record.output_tokens.map(|tokens| synthesis.output(tokens));
    }
    Ok(said)
}

/// The rows that are kept, session by session as these first appear, each in its own order.
fn in_order(trace: &Trace, options: &PlanOptions) -> Vec<u32> {
    let mut rows = schedule::inside(trace, options, &mut Default::default());
    let mut first = vec![u32::MAX; trace.sessions.len()];
    for &row in &rows {
        let first = &mut first[trace.records[row as usize].session.as_usize()];
        *first = row.min(*first);
    }
    rows.sort_by_key(|&row| {
        let record = &trace.records[row as usize];
        (first[record.session.as_usize()], record.turn)
    });
    rows
}

/// Gives the rows their new block ids and lengths.
fn shape(trace: &mut Trace, options: &PlanOptions, rows: &[u32]) -> Result<(), PlanError> {
    let too_large = |row: u64, what: &str| {
        PlanError::Unfit(format!(
            "line {row}: {what} with these --synthesis-… multipliers; smaller ones would fit"
        ))
    };
    let mut shaper = Shaper::new(trace, options, rows);
    let mut ids = BlockIds::default();
    let mut places = Vec::with_capacity(rows.len());
    for &row in rows {
        let record = &trace.records[row as usize];
        let shaped = match trace.recorded.content_of(row) {
            Content::Words => shaper.row(trace.blocks_of(record), record.input_tokens),
            _ => Some((Vec::new(), u64::from(record.input_tokens))),
        };
        let (own, tokens) =
            shaped.ok_or_else(|| too_large(record.row, "its block ids become too large"))?;
        let tokens = u32::try_from(tokens).ok().filter(|&tokens| tokens != u32::MAX);
        let tokens = tokens.ok_or_else(|| too_large(record.row, "its prompt becomes too long"))?;
        if ids.len() + own.len() > BLOCK_IDS_MAX {
            return Err(too_large(record.row, "the file has too many block ids"));
        }
        let first = ids.len() as u64;
        own.iter().for_each(|&id| ids.push(id));
        places.push((first, u32::try_from(own.len()).expect("bounded"), tokens));
    }
    let roots = options.synthesis.roots;
    if roots.get() > 1 {
        let counts = places.iter().map(|&(_, count, _)| count);
        ids = replanted(&ids, counts, roots, shaper.last_id, options.seed)
            .ok_or_else(|| PlanError::Unfit(TOO_MANY_ROOTS.to_owned()))?;
    }
    for record in &mut trace.records {
        (record.first_block, record.block_count) = (0, 0);
    }
    for (&row, (first, count, tokens)) in rows.iter().zip(places) {
        let record = &mut trace.records[row as usize];
        (record.first_block, record.block_count, record.input_tokens) = (first, count, tokens);
    }
    ids.shrink_to_fit();
    trace.blocks = ids;
    Ok(())
}

const TOO_MANY_ROOTS: &str = "--synthesis-prefix-root-multiplier makes block ids of more than 64 \
                              bits; a smaller one would fit";

/// The ids of rows with so many each, every row in one of several trees that share no id.
fn replanted(
    ids: &BlockIds,
    counts: impl Iterator<Item = u32>,
    roots: NonZero<u32>,
    last_id: u64,
    seed: u64,
) -> Option<BlockIds> {
    let mut draws = Twister::of_stream(seed, "dataset.synthesis.synthesizer");
    let mut planted = BlockIds::default();
    let mut first = 0;
    for count in counts.filter(|&count| count > 0) {
        let tree = draws.below(roots.get() as usize) as u64;
        let offset = tree.checked_mul(last_id.checked_add(1)?)?;
        for id in ids.slice(first, count).iter() {
            planted.push(id.checked_add(offset)?);
        }
        first += u64::from(count);
    }
    Some(planted)
}

/// Refuses what a format cannot be given.
fn refused(format: Format, synthesis: &Synthesis) -> Result<(), PlanError> {
    let shaping = [
        (synthesis.prefix != Factor::ONE, "--synthesis-prefix-len-multiplier"),
        (synthesis.roots.get() > 1, "--synthesis-prefix-root-multiplier"),
        (synthesis.prompt != Factor::ONE, "--synthesis-prompt-len-multiplier"),
    ];
    let given: Vec<&str> =
        shaping.iter().filter(|(given, _)| *given).map(|(_, name)| *name).collect();
    let lengths =
        matches!(format, Format::Bailian | Format::Mooncake | Format::AzureCsv | Format::BurstGpt);
    if lengths || synthesis.is_nothing() {
        return Ok(());
    }
    if synthesis.speedup != Ratio::ONE {
        return Err(PlanError::Unfit(format!(
            "--synthesis-speedup-ratio does not go with {format}; use --replay-speedup"
        )));
    }
    if !given.is_empty() {
        let why = match format {
            Format::RawPayload => AS_THEY_STAND,
            Format::Baseten => {
                "whose prompts are sent as recorded; --synthesis-output-len-multiplier, --max-isl \
                 and --max-osl can be"
            }
            _ => "but to mooncake_trace and bailian_trace; --max-isl and --max-osl can be",
        };
        let given = given.join(", ");
        return Err(PlanError::Unfit(format!("{given} cannot be applied to {format}, {why}")));
    }
    if format != Format::Baseten {
        let next = match format {
            Format::RawPayload => AS_THEY_STAND,
            _ => "but --max-osl can be",
        };
        return Err(PlanError::Unfit(format!(
            "--synthesis-output-len-multiplier cannot be applied to {format}, {next}"
        )));
    }
    Ok(())
}

/// Why nothing changes the lengths of whole bodies.
const AS_THEY_STAND: &str = "whose bodies are sent as they stand";

impl Synthesis {
    /// The one that changes nothing.
    pub const NONE: Self = Self {
        speedup: Ratio::ONE,
        prefix: Factor::ONE,
        roots: NonZero::<u32>::MIN,
        prompt: Factor::ONE,
        output: Factor::ONE,
    };

    /// Whether it changes nothing, times included.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::NONE
    }

    fn shapes_prompts(&self) -> bool {
        self.prefix != Factor::ONE || self.prompt != Factor::ONE || self.roots.get() > 1
    }

    /// An answer's length, at least 1.
    fn output(&self, tokens: u32) -> u32 {
        /// The top value means "none" in a log.
        const MOST: u64 = u32::MAX as u64 - 1;
        let tokens = self.output.times(u64::from(tokens), f64::round_ties_even);
        u32::try_from(tokens.clamp(1, MOST)).expect("clamped")
    }
}

impl Default for Synthesis {
    fn default() -> Self {
        Self::NONE
    }
}

impl Factor {
    /// The one that changes nothing.
    pub const ONE: Self = Self(1.0);

    /// Reads a multiplier.
    ///
    /// # Errors
    /// What would be right.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const MOST: f64 = 1e6;
        let value: f64 = text.parse().map_err(|_no_number| "give a number, like 1.5")?;
        let fits = (0.0..=MOST).contains(&value);
        fits.then_some(Self(value)).ok_or("give a number from 0 to 1000000")
    }

    /// Its value.
    #[must_use]
    pub const fn value(self) -> f64 {
        self.0
    }

    /// A length times this, made whole by `whole`.
    fn times(self, length: u64, whole: impl FnOnce(f64) -> f64) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "32 bits times a million, and never below 0"
        )]
        let product = whole(length as f64 * self.0) as u64;
        product
    }
}

impl Eq for Factor {}

impl Shaper {
    fn new(trace: &Trace, options: &PlanOptions, rows: &[u32]) -> Self {
        let synthesis = options.synthesis;
        let parts = synthesis.prefix_parts();
        let shared = Shared::of(trace, rows, parts, synthesis.roots);
        Self {
            synthesis,
            block_tokens: u64::from(trace.block_tokens),
            longest: u64::from(options.max_input_tokens.unwrap_or(u32::MAX)),
            last_id: (shared.largest + 1).saturating_mul(parts),
            shared,
        }
    }

    /// The next row's ids and length; `None` when an id would be too large.
    fn row(&mut self, ids: Blocks<'_>, input_tokens: u32) -> Option<Shaped> {
        let input = u64::from(input_tokens);
        if ids.is_empty() {
            return Some((Vec::new(), input));
        }
        let prefix: Vec<u64> = ids.iter().map_while(|id| self.shared.id(id)).collect();
        let whole = prefix.len() as u64 * self.block_tokens;
        // A shared block at the very end may be shorter than a block.
        let cut = whole.saturating_sub(input);
        let own = input.saturating_sub(whole);
        let mut shaped = self.prefix(&prefix)?;
        let ends_alike = shaped.len() >= prefix.len();
        let cut = if ends_alike { cut } else { 0 };
        let prefix_tokens = (shaped.len() as u64 * self.block_tokens).saturating_sub(cut);
        let own = self.synthesis.prompt.times(own, f64::floor);
        self.fresh(own.div_ceil(self.block_tokens), &mut shaped)?;
        if shaped.is_empty() {
            // Nothing of it is left: it stays as long as it was.
            return Some((shaped, input));
        }
        let tokens = prefix_tokens + own;
        if tokens > self.longest {
            let blocks = self.longest.div_ceil(self.block_tokens);
            shaped.truncate(usize::try_from(blocks).unwrap_or(usize::MAX));
        }
        Some((shaped, tokens.min(self.longest)))
    }

    /// The shared prefix, stretched or shortened.
    fn prefix(&mut self, prefix: &[u64]) -> Option<Vec<u64>> {
        let factor = self.synthesis.prefix;
        let blocks = prefix.len() as u64;
        if factor.value() > 1.0 {
            let parts = self.synthesis.prefix_parts();
            let part = |id: u64| (0..parts).map(move |part| Some(id.checked_mul(parts)? + part));
            let mut shaped: Vec<u64> = Vec::new();
            for id in prefix.iter().flat_map(|&id| part(id)) {
                shaped.push(id?);
            }
            let wanted = factor.times(blocks, f64::ceil);
            self.fresh(wanted.saturating_sub(shaped.len() as u64), &mut shaped)?;
            return Some(shaped);
        }
        let kept = match blocks {
            0 => 0,
            _ if factor == Factor::ONE => blocks,
            _ => factor.times(blocks, f64::floor).max(1),
        };
        Some(prefix.iter().copied().take(usize::try_from(kept).ok()?).collect())
    }

    /// Adds ids that nothing else has.
    fn fresh(&mut self, count: u64, ids: &mut Vec<u64>) -> Option<()> {
        if count > BLOCK_IDS_MAX as u64 {
            return None;
        }
        for _ in 0..count {
            self.last_id = self.last_id.checked_add(1)?;
            ids.push(self.last_id);
        }
        Some(())
    }
}

impl Synthesis {
    /// Into how many blocks a stretched one becomes.
    fn prefix_parts(&self) -> u64 {
        if self.prefix.value() > 1.0 { self.prefix.times(1, f64::floor) } else { 1 }
    }
}

impl Shared {
    fn of(trace: &Trace, rows: &[u32], parts: u64, roots: NonZero<u32>) -> Self {
        let mut numbering = Numbering::of(&trace.blocks);
        let mut seen: Vec<[bool; 2]> = Vec::new();
        let mut largest = 0;
        for &row in rows {
            for id in trace.blocks_of(&trace.records[row as usize]).iter() {
                let number = numbering.number_or_new(id) as usize;
                if seen.len() <= number {
                    seen.resize(number + 1, [false; 2]);
                }
                let [once, again] = seen[number];
                seen[number] = [true, once];
                if once && !again {
                    largest = id.max(largest);
                }
            }
        }
        // What the largest id could become: too much, and ids are their numbers instead.
        let stretched = (u128::from(largest) + 1) * u128::from(parts) + (1 << 31);
        let most = stretched * u128::from(roots.get());
        let by_number = i64::try_from(most).is_err();
        if by_number {
            let last = seen.iter().rposition(|&[_, again]| again);
            largest = last.map_or(0, |number| number as u64);
        }
        Self { numbering, seen, by_number, largest }
    }

    /// What a shared id is called; `None` when it is not shared.
    fn id(&self, id: u64) -> Option<u64> {
        let number = self.numbering.number(id)?;
        let [_, again] = *self.seen.get(number as usize)?;
        again.then(|| if self.by_number { u64::from(number) } else { id })
    }
}

#[cfg(test)]
mod tests;
