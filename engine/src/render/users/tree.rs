//! How the prompts of one conversation follow from each other: a tree of what each adds.
//!
//! A prompt is the prompt it goes on from, up to where it keeps it, and text of its own: its
//! *line*. A line hangs on the line that holds the last kept word, so that every line on the way
//! from the first one gives a piece that is not empty. Lines lie in an order in which a line is
//! followed by the one with most behind it: the way to any line is then a few runs of neighbours,
//! at most one for each halving of the conversation, however long it is.

use std::ops::Range;

use onbeat_shared::trace::Trace;
use onbeat_shared::trace::agentic::{Agentic, Kind, Parts};

use crate::plan::script::{Base, Cue, Script, Turn};
use crate::render::history::room;

/// Not a record.
pub(super) const NONE: u32 = u32::MAX;

/// What one record's prompt has beyond the one it goes on from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// Where its bytes start in its conversation's.
    pub(super) start: u64,
    /// The piece of memory that holds those.
    pub(super) chunk: u32,
    /// Tokens that stand before it: its first word is number `keep` of the prompt.
    pub(super) keep: u32,
    /// Tokens of the whole prompt.
    pub(super) input: u32,
    /// Up to which token its words are there; less than `input` where it is never sent itself.
    pub(super) until: u32,
    /// How many of its words are an assistant's message, as recorded.
    pub(super) said: u32,
    /// The record whose reply may stand in place of those words, in its own player's prompts.
    pub(super) asked: u32,
    /// Whether it starts with what was said to its base's prompt.
    pub(super) link: bool,
    /// Whether its own message is a tool's.
    pub(super) tool: bool,
    /// Whether its answer is to be streamed.
    pub(super) streamed: bool,
    /// Whether its request may be sent.
    pub(super) sent: bool,
    /// Whether it starts with what all users share.
    pub(super) warm: bool,
    /// Whether replies are needed no more once it has ended.
    pub(super) frees: bool,
    /// The record it hangs on.
    pub(super) parent: u32,
    /// The record that goes on from its whole prompt first.
    pub(super) heir: u32,
    /// Bytes of its text.
    pub(super) len: u32,
    /// Where in it the words behind the assistant's message start.
    pub(super) user_at: u32,
    /// Its first place among the checks: see [`super::text`].
    pub(super) first_check: u32,
    /// Its place in the order.
    pub(super) place: u32,
    /// The first place of its run.
    pub(super) run: u32,
    /// The last place up to which lines are joined with it: each goes on where the one before ends.
    pub(super) joined: u32,
    /// Most bytes of its reply that are kept; 0: nobody repeats it.
    pub(super) room: u32,
    /// The last record that may repeat its reply.
    pub(super) last_use: u32,
    /// Tokens that are asked for.
    pub(super) output: u32,
    /// What stands behind its prompt: a place among the closings.
    pub(super) closing: u32,
}

/// What lines depend on beside the conversation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Tokens that all users share.
    pub(super) warm_tokens: u32,
    /// Whether replies are repeated.
    pub(super) live: bool,
    /// Whether what tools answered is said by a tool.
    pub(super) tool_role: bool,
    /// Whether any answer is streamed.
    pub(super) streaming: bool,
    /// Whether those are that the trace has in one piece.
    pub(super) stream_all: bool,
}

/// A turn and the number of its part.
type Own = (usize, Turn);

/// The lines of one conversation while they are made.
struct Growing<'a> {
    lines: &'a mut [Line],
    first: u32,
    /// By record, from the first on.
    turns: Vec<Option<Own>>,
}

/// Makes the lines of a conversation, which are those of its records, and adds them to the order.
pub(super) fn grow(
    trace: &Trace,
    agentic: &Agentic,
    script: &Script,
    rules: &Rules,
    lines: &mut [Line],
    order: &mut Vec<u32>,
) {
    let Range { start, end } = script.records.clone();
    let mut turns = vec![None; (end - start) as usize];
    for (number, part) in script.parts.iter().enumerate() {
        for cue in &part.cues {
            if let Cue::Request(turn) = cue {
                turns[(turn.record - start) as usize] = Some((number, *turn));
            }
        }
    }
    let own = &mut lines[start as usize..end as usize];
    let mut growing = Growing { lines: own, first: start, turns };
    for record in start..end {
        growing.hang(record, agentic, rules);
    }
    growing.measure();
    if rules.live {
        growing.await_replies();
    }
    growing.arrange(order);
    debug_assert!(trace.records.len() >= end as usize, "a script is of its trace");
}

impl Growing<'_> {
    fn line(&mut self, record: u32) -> &mut Line {
        &mut self.lines[(record - self.first) as usize]
    }

    fn turn(&self, record: u32) -> Option<Own> {
        self.turns[(record - self.first) as usize]
    }

    fn records(&self) -> Range<u32> {
        self.first..self.first + u32::try_from(self.lines.len()).expect("records are u32")
    }

    /// The base of a turn, if both start with what all users share, or neither does.
    fn base(&self, turn: &Turn, rules: &Rules) -> Option<Base> {
        let base = turn.base?;
        let (_, other) = self.turn(base.record).filter(|_| base.record < turn.record)?;
        let alike = rules.warm_tokens == 0 || turn.has_blocks == other.has_blocks;
        let keep = base.keep.min(turn.input_tokens).min(other.input_tokens);
        let whole = base.whole && keep == other.input_tokens;
        (alike && keep > 0).then_some(Base { keep, whole, ..base })
    }

    /// Finds what a record's line goes on from.
    fn hang(&mut self, record: u32, agentic: &Agentic, rules: &Rules) {
        let Some((part, turn)) = self.turn(record) else { return };
        let call = &agentic.calls[record as usize];
        let base = self.base(&turn, rules);
        let keep = base.map_or(0, |base| base.keep);
        let mut parent = base.map_or(NONE, |base| base.record);
        while parent != NONE && keep <= self.line(parent).keep {
            parent = self.line(parent).parent;
        }
        let warm = if turn.has_blocks { rules.warm_tokens.min(turn.input_tokens) } else { 0 };
        let whole = base.filter(|base| base.whole);
        let more = turn.input_tokens - keep;
        // What all users share is one message: no reply stands in the middle of it, and none right
        // behind it, where it would keep a later use of the conversation from differing.
        let link = whole.filter(|_| more > 0 && (keep > warm || warm == 0));
        let (other, said) =
            link.and_then(|base| self.turn(base.record)).map_or((NONE, 0), |(other, said)| {
                (if other == part && rules.live { said.record } else { NONE }, said.output_tokens)
            });
        if let Some(base) = whole {
            let heir = &mut self.line(base.record).heir;
            *heir = record.min(*heir);
        }
        let tool = rules.tool_role && link.is_some() && call.input.has(Parts::TOOL_RESULT);
        let streamed = rules.streaming && (rules.stream_all || call.kind != Kind::Whole);
        *self.line(record) = Line {
            keep,
            input: turn.input_tokens,
            until: if turn.too_long { keep } else { turn.input_tokens },
            said: if said < more { said } else { 0 },
            asked: other,
            link: link.is_some(),
            tool,
            streamed,
            sent: !turn.too_long,
            warm: turn.has_blocks,
            parent,
            output: turn.output_tokens,
            ..Line::NONE
        };
    }

    /// Finds how much of each line is needed: a prompt that is too long to be sent may still be
    /// what another one goes on from.
    fn measure(&mut self) {
        for record in self.records().rev() {
            let line = *self.line(record);
            if line.parent != NONE && (line.sent || line.until > line.keep) {
                let until = &mut self.line(line.parent).until;
                *until = line.keep.max(*until);
            }
            if !line.sent && line.until == line.keep {
                self.line(record).asked = NONE;
            }
        }
    }

    /// Finds which replies are needed, and for how long.
    fn await_replies(&mut self) {
        let mut reach: Vec<u32> = self.records().collect();
        for record in self.records().rev() {
            let line = *self.line(record);
            let reached = reach[(record - self.first) as usize];
            if line.parent != NONE {
                let parent = &mut reach[(line.parent - self.first) as usize];
                *parent = reached.max(*parent);
            }
            if line.asked != NONE {
                let asked = self.line(line.asked);
                asked.room = room(Some(asked.output));
                asked.last_use = reached.max(asked.last_use);
            }
        }
        for record in self.records() {
            let line = *self.line(record);
            if line.room > 0 {
                self.line(line.last_use).frees = true;
            }
        }
    }

    /// Puts the lines in order: behind a line comes the one that has most behind it.
    fn arrange(&mut self, order: &mut Vec<u32>) {
        let first = self.first;
        let at = |record: u32| (record - first) as usize;
        let mut sizes = vec![1_u32; self.lines.len()];
        let mut heavy = vec![NONE; self.lines.len()];
        let mut children = vec![Vec::new(); self.lines.len()];
        let mut heads = Vec::new();
        for record in self.records().rev() {
            match self.lines[at(record)].parent {
                NONE => heads.push(record),
                parent => {
                    children[at(parent)].push(record);
                    sizes[at(parent)] += sizes[at(record)];
                    let heaviest = &mut heavy[at(parent)];
                    if *heaviest == NONE || sizes[at(*heaviest)] <= sizes[at(record)] {
                        *heaviest = record;
                    }
                }
            }
        }
        while let Some(head) = heads.pop() {
            let run = u32::try_from(order.len()).expect("no more than records");
            let mut record = head;
            while record != NONE {
                let place = u32::try_from(order.len()).expect("no more than records");
                let line = &mut self.lines[at(record)];
                (line.place, line.run, line.joined) = (place, run, place);
                order.push(record);
                let next = heavy[at(record)];
                heads.extend(children[at(record)].iter().filter(|&&child| child != next));
                record = next;
            }
            for place in (run as usize..order.len() - 1).rev() {
                let next = self.lines[at(order[place + 1])];
                let line = &mut self.lines[at(order[place])];
                if next.keep == line.until && line.ends_as_user() {
                    line.joined = next.joined;
                }
            }
        }
    }
}

impl Line {
    /// The line of a record that nobody plays.
    pub(super) const NONE: Self = Self {
        start: 0,
        chunk: 0,
        keep: 0,
        input: 0,
        until: 0,
        said: 0,
        asked: NONE,
        link: false,
        tool: false,
        streamed: false,
        sent: false,
        warm: false,
        frees: false,
        parent: NONE,
        heir: NONE,
        len: 0,
        user_at: 0,
        first_check: 0,
        place: 0,
        run: 0,
        joined: 0,
        room: 0,
        last_use: 0,
        output: 0,
        closing: 0,
    };

    /// How many words it has.
    pub(super) const fn words(&self) -> u32 {
        self.until - self.keep
    }

    /// Where in the prompt the assistant's message ends, as recorded.
    pub(super) const fn said_until(&self) -> u32 {
        self.keep + self.said
    }

    /// Whether the last of its words, as recorded, are a user's.
    pub(super) const fn ends_as_user(&self) -> bool {
        self.until > self.keep && self.until > self.said_until() || self.said == 0
    }

    /// How many of a prompt's tokens all users share.
    pub(super) const fn warm_tokens(&self, warm_tokens: u32) -> u32 {
        match self.warm {
            true if warm_tokens < self.input => warm_tokens,
            true => self.input,
            false => 0,
        }
    }
}
