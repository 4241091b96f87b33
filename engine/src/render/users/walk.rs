//! Goes through a prompt from its first word to its last, in as few pieces as there can be.
//!
//! A prompt is the lines on the way to its own, each up to where the next one keeps it. A line that
//! starts with what the server said has the reply itself there, if its player has one that leaves
//! words for the user, else its recorded words; either way its words keep their places, so that a
//! prompt has all its words whatever the reply's length. A reply that a later prompt cuts in two
//! gives way to recorded words. Neighbours in memory are one piece.

use crate::render::users::stage::Kept;
use crate::render::users::text::{CHECK_WORDS, Separator, nth_word};
use crate::render::users::tree::{Line, NONE};
use crate::render::users::{MARK_WORDS, Scenes};

/// A piece of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bit {
    /// Bytes of the conversation's text.
    Text { start: u64, len: u64 },
    /// What stands between messages.
    Fixed(Separator),
    /// A kept reply.
    Reply(u32),
    /// A reply that is yet to come.
    Open,
    /// So many words that tell a later use of the conversation from the first.
    Mark(u32),
}

/// What stands for the server's replies.
#[derive(Clone, Copy, Debug)]
pub(super) enum Said {
    /// Recorded words.
    Recorded,
    /// What a player has heard: the oldest of its replies that was not passed yet.
    Kept(u32),
    /// A piece of its own.
    Open,
}

/// A piece of the present line; texts start where the line does.
#[derive(Clone, Copy, Debug)]
enum Short {
    Text {
        start: u32,
        len: u32,
    },
    /// Several lines.
    Lines,
    Fixed(Separator),
    Reply(u32),
    Open,
    Mark(u32),
}

/// Most pieces of a line: separators, a reply, and words cut in two, with a mark in either part.
const SHORTS_MAX: usize = 8;

/// A prompt's pieces.
#[derive(Clone, Debug)]
pub(super) struct Walk<'a> {
    scenes: &'a Scenes,
    /// What all players have heard.
    kept: &'a [Kept],
    spot: Spot,
}

/// How far it went, by itself: for who goes on later.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    said: Said,
    record: u32,
    /// How many runs are still to be passed, the present one among them.
    runs: u32,
    /// The last place of the present run.
    end: u32,
    /// The next place.
    place: u32,
    /// The first line behind the present run; nothing in the last one.
    behind: u32,
    /// Tokens of the prompt.
    input: u32,
    /// Where the mark belongs, as long as it is still to come.
    mark_at: Option<u32>,
    /// Whether the open message is the assistant's.
    assistant: bool,
    shorts: [Short; SHORTS_MAX],
    filled: u8,
    taken: u8,
    /// Where the present line starts, or the present lines, and how long those are.
    start: u64,
    len: u64,
    held: Option<Bit>,
}

impl<'a> Walk<'a> {
    /// The prompt of a record; a `marked` one is of a later use of its conversation.
    pub(super) fn new(
        scenes: &'a Scenes,
        kept: &'a [Kept],
        record: u32,
        said: Said,
        marked: bool,
    ) -> Self {
        let line = &scenes.lines[record as usize];
        let mut runs = 1;
        let mut last = line;
        while let Some(parent) = scenes.above(last) {
            last = parent;
            runs += 1;
        }
        let spot = Spot {
            said,
            record,
            runs,
            end: last.place,
            place: last.run,
            behind: NONE,
            input: line.input,
            mark_at: marked.then(|| line.warm_tokens(scenes.warm_tokens)),
            assistant: false,
            shorts: [Short::Open; SHORTS_MAX],
            filled: 0,
            taken: 0,
            start: 0,
            len: 0,
            held: None,
        };
        let mut walk = Self { scenes, kept, spot };
        walk.enter();
        walk
    }

    /// Enters the next run.
    fn enter(&mut self) {
        let mut last = &self.scenes.lines[self.spot.record as usize];
        self.spot.behind = NONE;
        for _ in 1..self.spot.runs {
            self.spot.behind = self.scenes.order[last.run as usize];
            last = self.scenes.above(last).expect("as many runs as were counted");
        }
        (self.spot.place, self.spot.end) = (last.run, last.place);
    }

    /// How far it went.
    pub(super) const fn spot(&self) -> &Spot {
        &self.spot
    }

    /// Goes on from where another walk through the same prompt was.
    pub(super) const fn go_to(&mut self, spot: &Spot) {
        self.spot = *spot;
    }

    fn raw(&mut self) -> Option<Bit> {
        while self.spot.taken == self.spot.filled {
            if self.spot.runs == 0 {
                return None;
            }
            (self.spot.filled, self.spot.taken) = (0, 0);
            self.fill();
        }
        self.spot.taken += 1;
        let base = self.spot.start;
        Some(match self.spot.shorts[usize::from(self.spot.taken - 1)] {
            Short::Text { start, len } => {
                Bit::Text { start: base + u64::from(start), len: len.into() }
            }
            Short::Lines => Bit::Text { start: base, len: self.spot.len },
            Short::Fixed(separator) => Bit::Fixed(separator),
            Short::Reply(slot) => Bit::Reply(slot),
            Short::Open => Bit::Open,
            Short::Mark(words) => Bit::Mark(words),
        })
    }

    fn push(&mut self, short: Short) {
        let is_empty = match short {
            Short::Text { len, .. } => len == 0,
            Short::Lines => self.spot.len == 0,
            Short::Fixed(separator) => self.scenes.separators.text(separator).is_empty(),
            Short::Reply(_) | Short::Open | Short::Mark(_) => false,
        };
        if !is_empty {
            self.spot.shorts[usize::from(self.spot.filled)] = short;
            self.spot.filled += 1;
        }
    }

    /// Adds the pieces of the next line, or of as many as have one piece.
    fn fill(&mut self) {
        let scenes = self.scenes;
        let line = scenes.line_at(self.spot.place);
        let end = self.spot.end;
        self.spot.start = line.start;
        let together = if self.spot.mark_at.is_some() {
            None
        } else {
            let joined = line.joined.min(end);
            self.quiet(joined).and_then(|last| self.whole(last))
        };
        let last = together.unwrap_or(self.spot.place);
        let (cut, closes) = self.cut(last);
        if together.is_some() {
            let behind = scenes.line_at(last);
            if self.spot.assistant && line.said == 0 && line.words() > 0 {
                self.push(Short::Fixed(Separator::User));
                self.spot.assistant = false;
            }
            self.spot.assistant &= line.words() == 0;
            self.spot.len = behind.start + u64::from(behind.len) - line.start;
            self.push(Short::Lines);
        } else {
            self.line(scenes.order[last as usize], cut, closes);
        }
        if last == end {
            self.spot.runs -= 1;
            if self.spot.runs > 0 {
                self.enter();
            }
        } else {
            self.spot.place = last + 1;
        }
    }

    /// Up to which token the line at a place of the present run is kept, and whether a user's words
    /// have to be the last of it: the prompt ends there, or the assistant is next.
    fn cut(&self, place: u32) -> (u32, bool) {
        let next = if place < self.spot.end {
            self.scenes.line_at(place + 1)
        } else if self.spot.behind != NONE {
            &self.scenes.lines[self.spot.behind as usize]
        } else {
            return (self.spot.input, true);
        };
        (next.keep, next.keep == self.spot.input || next.link)
    }

    /// The last of the joined lines from the present place to `last` that is kept whole.
    fn whole(&self, last: u32) -> Option<u32> {
        let line = self.scenes.line_at(last);
        if self.cut(last).0 == line.until && line.ends_as_user() {
            return Some(last);
        }
        last.checked_sub(1).filter(|&before| before >= self.spot.place)
    }

    /// The last of the lines from the present place to `last` before the first one that might have
    /// a reply.
    fn quiet(&mut self, last: u32) -> Option<u32> {
        let (order, kept) = (&self.scenes.order, self.kept);
        let record = order[self.spot.place as usize];
        match &mut self.spot.said {
            Said::Recorded => Some(last),
            Said::Open => None,
            Said::Kept(next) => {
                let asked = self.scenes.lines[record as usize].asked;
                while *next != NONE && asked != NONE && kept[*next as usize].record < asked {
                    *next = kept[*next as usize].next;
                }
                if *next == NONE {
                    return Some(last);
                }
                let heard = kept[*next as usize].record;
                // A line has a reply to a record before it.
                let places = &order[self.spot.place as usize..=last as usize];
                let before = places.partition_point(|&record| record <= heard);
                let before = u32::try_from(before).expect("no more than records");
                (before > 0).then(|| self.spot.place + before - 1)
            }
        }
    }

    /// The reply that stands in a line, and how many tokens it has.
    fn reply(&mut self, line: &Line) -> Option<(Short, u32)> {
        if line.asked == NONE {
            return None;
        }
        let kept = self.kept;
        match &mut self.spot.said {
            Said::Recorded => None,
            Said::Open => (line.said > 0).then_some((Short::Open, line.said)),
            Said::Kept(next) => {
                while *next != NONE && kept[*next as usize].record < line.asked {
                    *next = kept[*next as usize].next;
                }
                let slot = Some(*next).filter(|&slot| slot != NONE)?;
                let heard = &kept[slot as usize];
                let fits = heard.record == line.asked && heard.fits(line);
                fits.then_some((Short::Reply(slot), heard.tokens))
            }
        }
    }

    /// Adds the pieces of a line up to token `cut` of the prompt.
    fn line(&mut self, record: u32, cut: u32, closes: bool) {
        let line = &self.scenes.lines[record as usize];
        if cut <= line.keep {
            return;
        }
        let said_until = line.said_until();
        if let Some((reply, tokens)) = self.reply(line) {
            let user_from = line.keep + tokens;
            if cut > user_from || cut == user_from && !closes {
                self.separator_of_assistant(line);
                self.push(reply);
                self.spot.assistant = cut == user_from;
                if cut > user_from {
                    self.separator_of_user(line);
                    self.words(line, user_from, cut);
                }
                return;
            }
        }
        if line.said > 0 && !(closes && cut <= said_until) {
            self.separator_of_assistant(line);
            self.words(line, line.keep, cut.min(said_until));
            self.spot.assistant = cut <= said_until;
            if cut > said_until {
                self.separator_of_user(line);
                self.words(line, said_until, cut);
            }
            return;
        }
        if self.spot.assistant {
            self.push(Short::Fixed(Separator::User));
            self.spot.assistant = false;
        }
        self.words(line, line.keep, cut);
    }

    /// What stands before a reply: the line's own, where it has one.
    fn separator_of_assistant(&mut self, line: &Line) {
        let separator = Separator::Assistant;
        if line.said > 0 {
            let len = self.scenes.separators.len(separator);
            self.push(Short::Text { start: 0, len });
        } else {
            self.push(Short::Fixed(separator));
        }
    }

    /// What stands before the user's words: the line's own, where it has one.
    fn separator_of_user(&mut self, line: &Line) {
        let separator = Separator::before(line);
        let is_open = matches!(self.spot.said, Said::Open);
        if line.said > 0 && line.until > line.said_until() && !is_open {
            let len = self.scenes.separators.len(separator);
            self.push(Short::Text { start: line.user_at - len, len });
        } else {
            self.push(Short::Fixed(separator));
        }
    }

    /// Adds the words `from..until` of the prompt, which are a line's own, without what separates
    /// messages.
    fn words(&mut self, line: &Line, from: u32, until: u32) {
        let said_until = line.said_until();
        if line.said > 0 && from < said_until && said_until < until {
            self.plain(line, from, said_until);
            self.plain(line, said_until, until);
        } else {
            self.plain(line, from, until);
        }
    }

    /// [`Walk::words`] of one message, with the mark in its place.
    fn plain(&mut self, line: &Line, from: u32, until: u32) {
        match self.spot.mark_at {
            Some(mark_at) if until > mark_at => {
                let start = from.max(mark_at);
                let end = until.min(start.saturating_add(MARK_WORDS));
                self.spot.mark_at = None;
                self.slice(line, from, start);
                self.push(Short::Mark(end - start));
                self.slice(line, end, until);
            }
            _ => self.slice(line, from, until),
        }
    }

    fn slice(&mut self, line: &Line, from: u32, until: u32) {
        if from < until {
            let (start, end) = (self.start_of(line, from), self.end_of(line, until));
            self.push(Short::Text { start, len: end - start });
        }
    }

    /// Where in a line's bytes word `at` of the prompt starts.
    fn start_of(&self, line: &Line, at: u32) -> u32 {
        if at == line.said_until() {
            return line.user_at;
        }
        let check = at / CHECK_WORDS;
        let passed = check - line.keep / CHECK_WORDS;
        let (bytes, words) = if passed == 0 {
            (0, at - line.keep)
        } else {
            let first = (line.first_check + passed - 1) as usize;
            (self.scenes.checks[first], at - check * CHECK_WORDS)
        };
        let text = self.scenes.text_of(line);
        let behind = nth_word(&text[bytes as usize..], words as usize);
        bytes + u32::try_from(behind).expect("a line's length is one")
    }

    /// Where in a line's bytes word `at` of the prompt would start, but for what separates it from
    /// those before.
    fn end_of(&self, line: &Line, at: u32) -> u32 {
        if at == line.until {
            return line.len;
        }
        if line.said > 0 && at == line.said_until() {
            return line.user_at - self.scenes.separators.len(Separator::before(line));
        }
        self.start_of(line, at)
    }
}

impl Iterator for Walk<'_> {
    type Item = Bit;

    fn next(&mut self) -> Option<Bit> {
        let mut bit = self.spot.held.take().or_else(|| self.raw())?;
        while let Bit::Text { start, len } = bit {
            match self.raw() {
                Some(Bit::Text { start: next, len: more }) if next == start + len => {
                    bit = Bit::Text { start, len: len + more };
                }
                other => {
                    self.spot.held = other;
                    break;
                }
            }
        }
        Some(bit)
    }
}
