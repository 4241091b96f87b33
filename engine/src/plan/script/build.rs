//! A trace's conversations made into scripts.
//!
//! Parts are numbered in document order, a parent before its sub-agents; a part has one cue for
//! each entry of the file's list, so that places in the list are places here.

use onbeat_shared::trace::Trace;
use onbeat_shared::trace::agentic::{Agentic, Conversation, Entry, Prefix};
use onbeat_shared::units::SessionIndex;

use crate::plan::PlanError;
use crate::plan::script::bases::{Tree, in_common};
use crate::plan::script::waits::{Recorded, wait};
use crate::plan::script::{Cue, From, Part, PoolFacts, Script, ScriptOptions, Scripts, Turn, Wait};

/// How a sub-agent that nobody waited for ended, by its file.
const DETACHED: &str = "async_launched";

/// All conversations as scripts, whether any may be played or not.
///
/// # Errors
/// When the trace is not agentic, or a conversation has more sub-agents than a script can number.
pub(crate) fn all(trace: &Trace, options: &ScriptOptions) -> Result<Scripts, PlanError> {
    let Some(agentic) = trace.recorded.agentic.as_ref() else {
        let words = "users play conversations, and this trace has none: it is a schedule of rows";
        return Err(PlanError::Unfit(words.to_owned()));
    };
    let mut writing = Writing { trace, agentic, options, tree: Tree::new(trace) };
    let mut found = Scripts { block_tokens: trace.block_tokens, ..Scripts::default() };
    let mut longest = 0;
    for conversation in &agentic.conversations {
        let mut script = writing.script(conversation)?;
        script.script.in_pool = found.pool.admit(&script.script, options);
        if script.script.in_pool {
            found.clamped += script.clamped;
            longest = longest.max(tokens(conversation.prefix));
        }
        found.scripts.push(script.script);
    }
    found.warm_tokens = warm(longest, options.warm_prefix_share);
    Ok(found)
}

fn tokens(prefix: Prefix) -> u64 {
    u64::from(prefix.tool_tokens.unwrap_or(0)) + u64::from(prefix.system_tokens.unwrap_or(0))
}

/// A share of the longest prefix, in whole tokens.
fn warm(longest: u64, share: f64) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it saturates, and the fraction is to be cut off"
    )]
    let tokens = (longest as f64 * share.clamp(0.0, 1.0)) as u32;
    tokens
}

impl PoolFacts {
    /// Counts a conversation, and says whether it may be played.
    fn admit(&mut self, script: &Script, options: &ScriptOptions) -> bool {
        self.conversations += 1;
        let own = script.parts.first().into_iter().flat_map(|part| &part.cues);
        let first = own.into_iter().find_map(Cue::turn);
        let requests = script.parts.first().map_or(0, |part| part.requests);
        let counted = if script.requests == 0 {
            &mut self.empty
        } else if first.is_some_and(|turn| turn.too_long) {
            &mut self.too_long
        } else if requests < options.min_requests {
            &mut self.too_few
        } else {
            &mut self.kept
        };
        *counted += 1;
        let is_kept = script.requests > 0 && !first.is_some_and(|turn| turn.too_long);
        is_kept && requests >= options.min_requests
    }
}

struct Writing<'a> {
    trace: &'a Trace,
    agentic: &'a Agentic,
    options: &'a ScriptOptions,
    tree: Tree<'a>,
}

/// One conversation while it is written.
#[derive(Default)]
struct Written {
    script: Script,
    clamped: u64,
}

impl Writing<'_> {
    fn script(&mut self, conversation: &Conversation) -> Result<Written, PlanError> {
        let mut written = Written::default();
        written.script.records = conversation.records.clone();
        self.tree.clear();
        let own = (None, 0, conversation.session);
        self.part(&mut written, own, &conversation.entries)?;
        // Bases are looked for in document order, which is the order of records.
        let mut bases = vec![(None, (0, 0)); conversation.records.len()];
        for (record, found) in conversation.records.clone().zip(&mut bases) {
            let first = written.script.bases.len();
            found.0 = self.tree.add(record, &mut written.script.bases);
            let count = written.script.bases.len() - first;
            let fits = |number: usize| u32::try_from(number).expect("few for each record");
            found.1 = (fits(first), fits(count));
        }
        let first = conversation.records.start;
        for part in &mut written.script.parts {
            for cue in &mut part.cues {
                if let Cue::Request(turn) = cue {
                    (turn.base, turn.bases) = bases[(turn.record - first) as usize];
                }
            }
        }
        written.script.requests = written.script.parts.iter().map(|part| part.requests).sum();
        written.script.width = width(&written.script.parts);
        Ok(written)
    }

    /// Writes a part and those inside it; returns its number.
    fn part(
        &self,
        written: &mut Written,
        (parent, number, session): (Option<u16>, u32, SessionIndex),
        entries: &[Entry],
    ) -> Result<u16, PlanError> {
        let place = u16::try_from(written.script.parts.len()).map_err(|_too_many| {
            let words = "a conversation has more than 65,535 sub-agents, which is more than a user \
                         can play";
            PlanError::Unfit(words.to_owned())
        })?;
        written.script.parts.push(Part { parent, number, cues: Vec::new(), session, requests: 0 });
        let mut cues = Vec::with_capacity(entries.len());
        let (mut last, mut requests, mut agents) = (None, 0, 0);
        for entry in entries {
            cues.push(match *entry {
                Entry::Request(record) => {
                    requests += 1;
                    let (turn, is_cut) = self.turn(record, last.replace(record));
                    written.clamped += u64::from(is_cut);
                    Cue::Request(turn)
                }
                Entry::Group(group) => {
                    let agentic = self.agentic;
                    let group = &agentic.groups[group as usize];
                    // As sessions are numbered: those that have entries.
                    agents += u32::from(!group.entries.is_empty());
                    match group.session.filter(|_| self.asks(&group.entries)) {
                        Some(session) => {
                            let own = (Some(place), agents, session);
                            let part = self.part(written, own, &group.entries)?;
                            let status = group.status.map(|status| agentic.word(status));
                            let detached = self.options.detach_async && status == Some(DETACHED);
                            Cue::Agent { part, detached }
                        }
                        None => Cue::Nothing,
                    }
                }
            });
        }
        let part = &mut written.script.parts[usize::from(place)];
        (part.cues, part.requests) = (cues, requests);
        Ok(place)
    }

    /// Whether there is a request in a list or in a list inside it.
    fn asks(&self, entries: &[Entry]) -> bool {
        entries.iter().any(|entry| match *entry {
            Entry::Request(_) => true,
            Entry::Group(group) => self.asks(&self.agentic.groups[group as usize].entries),
        })
    }

    /// A request after the one before it in its part, and whether its think time was cut.
    fn turn(&self, number: u32, last: Option<u32>) -> (Turn, bool) {
        let (trace, calls) = (self.trace, &self.agentic.calls);
        let record = &trace.records[number as usize];
        let before = last.map(|last| &trace.records[last as usize]);
        let (wait, is_cut) = match last.zip(before) {
            Some((last, before)) => {
                let recorded = Recorded {
                    gap_ns: record.at.0.saturating_sub(before.at.0).max(0),
                    think_ns: calls[number as usize].think_ns,
                    api_ns: calls[last as usize].api_ns,
                };
                wait(recorded, self.options)
            }
            None => (Wait { from: From::End, ns: 0 }, false),
        };
        let in_common = before.map(|before| in_common(trace, before, record));
        let (with_previous, overlap) = in_common.unwrap_or((0, 0));
        let turn = Turn {
            record: number,
            wait,
            too_long: record.input_tokens > self.options.max_context,
            input_tokens: record.input_tokens,
            output_tokens: record.output_tokens.unwrap_or(1).max(1),
            base: None,
            with_previous,
            overlap,
            has_blocks: record.block_count > 0,
            bases: (0, 0),
        };
        (turn, is_cut)
    }
}

/// Most players that a user of these parts can be at a time: itself, the most of its sub-agents
/// that start together, and all that nobody waits for: they may go on beside whatever comes later.
fn width(parts: &[Part]) -> u32 {
    // Of each part: itself and those it waits for, and those that nobody waits for.
    let mut widths = vec![(1_u32, 0_u32); parts.len()];
    // Sub-agents have higher numbers than their parents.
    for (place, part) in parts.iter().enumerate().rev() {
        let (mut together, mut most, mut beside) = (0_u32, 0_u32, 0_u32);
        for cue in &part.cues {
            match *cue {
                Cue::Agent { part, detached } => {
                    let (own, its) = widths[usize::from(part)];
                    beside = beside.saturating_add(its);
                    let sum = if detached { &mut beside } else { &mut together };
                    *sum = sum.saturating_add(own);
                    most = most.max(together);
                }
                Cue::Request(_) => together = 0,
                Cue::Nothing => {}
            }
        }
        widths[place] = (1_u32.saturating_add(most), beside);
    }
    widths.first().map_or(0, |&(own, beside)| own.saturating_add(beside))
}
