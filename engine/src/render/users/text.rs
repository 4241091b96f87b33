//! The words of lines, written once: each conversation into one piece of memory, in tree order.
//!
//! A word's place in the prompt decides what it is: a word of what all users share, of the block
//! there, or, where no id reaches, of the block that a prompt which goes on from this one has
//! there; only where there is none, of a text of the record's own. So an id has the same words
//! wherever it stands, also where a prompt ended in the middle of it. What separates messages
//! stands between the words, so that joined lines are one slice. Every so many words a *check*
//! says where in the line they start, so that a line can be cut anywhere after a short look.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use onbeat_shared::trace::Trace;

use crate::prompt::{TextKey, WORDS_PER_DRAW, scope};
use crate::render::RenderError;
use crate::render::users::tree::{Line, NONE};

/// Words from one check to the next.
pub(super) const CHECK_WORDS: u32 = 256;

/// What stands between messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Separators {
    pub(super) assistant: &'static [u8],
    pub(super) user: &'static [u8],
    pub(super) tool: &'static [u8],
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Separator {
    Assistant,
    User,
    Tool,
}

/// What the words depend on beside the lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style<'a> {
    pub(super) trace: &'a Trace,
    pub(super) seed: u64,
    pub(super) warm_tokens: u32,
    pub(super) separators: &'static Separators,
}

/// The text of one conversation.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) bytes: Box<[u8]>,
    pub(super) checks: Vec<u32>,
    /// For each line, in tree order: its start, its length, where its user's words start, and its
    /// first check.
    pub(super) places: Vec<(u64, u32, u32, u32)>,
}

/// Writes the texts of conversations, given by the records of each in tree order, by so many
/// threads. Which thread wrote what leaves no trace.
pub(super) fn write(
    style: Style<'_>,
    lines: &[Line],
    conversations: &[&[u32]],
    threads: NonZero<usize>,
) -> Result<Vec<Written>, RenderError> {
    let next = AtomicUsize::new(0);
    let done: Vec<Mutex<Written>> = conversations.iter().map(|_| Mutex::default()).collect();
    let work = || {
        while let Some(place) =
            Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&place| place < done.len())
        {
            let written = conversation(style, lines, conversations[place]);
            *done[place].lock().unwrap_or_else(PoisonError::into_inner) = written;
        }
    };
    let helpers = threads.get().min(conversations.len()).saturating_sub(1);
    thread::scope(|scope| {
        for number in 0..helpers {
            let builder = thread::Builder::new().name(format!("render-{number}"));
            let started = builder.spawn_scoped(scope, work);
            started.map_err(|error| RenderError::Thread(error.to_string()))?;
        }
        work();
        Ok(())
    })?;
    let written = |slot: Mutex<Written>| slot.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(done.into_iter().map(written).collect())
}

fn conversation(style: Style<'_>, lines: &[Line], order: &[u32]) -> Written {
    let words: u64 = order.iter().map(|&record| u64::from(lines[record as usize].words())).sum();
    let room = crate::prompt::vocabulary::Vocabulary::shared().expected_bytes(words);
    let room = usize::try_from(room + room / 64).expect("it fits the budget, which fits memory");
    let mut author = Author {
        style,
        lines,
        scope: scope(0, order.first().map_or(0, |&record| style.trace.scope_of(record))),
        out: Vec::with_capacity(room + 64 * order.len()),
        written: Written::default(),
    };
    for &record in order {
        author.line(record);
    }
    author.written.bytes = author.out.into_boxed_slice();
    author.written
}

struct Author<'a> {
    style: Style<'a>,
    lines: &'a [Line],
    /// Where the conversation's ids hold.
    scope: u64,
    out: Vec<u8>,
    written: Written,
}

/// A text, how many of its words lie before some place, and where it ends.
struct Source {
    key: TextKey,
    skip: u32,
    until: u32,
}

impl Author<'_> {
    fn line(&mut self, record: u32) {
        let line = self.lines[record as usize];
        let short = |len: usize| u32::try_from(len).expect("bounded: see PROMPT_TOKENS_MAX");
        let (start, first_check) = (self.out.len(), short(self.written.checks.len()));
        let said_until = line.said_until().min(line.until);
        if line.words() > 0 && line.said > 0 {
            self.out.extend_from_slice(self.style.separators.assistant);
        }
        self.words(record, start, line.keep, said_until);
        if line.said > 0 && line.until > said_until {
            let separator = Separator::before(&line);
            self.out.extend_from_slice(self.style.separators.text(separator));
        }
        let user_at = short(self.out.len() - start);
        self.words(record, start, said_until, line.until);
        let len = short(self.out.len() - start);
        self.written.places.push((start as u64, len, user_at, first_check));
    }

    /// Writes the words `from..until` of a prompt, which are its line's own.
    fn words(&mut self, record: u32, start: usize, from: u32, until: u32) {
        let keep = self.lines[record as usize].keep;
        let mut holder = record;
        let mut at = from;
        while at < until {
            if at.is_multiple_of(CHECK_WORDS) && at > keep {
                let check = u32::try_from(self.out.len() - start).expect("bounded as its line");
                self.written.checks.push(check);
            }
            let source = self.source(record, at, &mut holder);
            let check = (at / CHECK_WORDS + 1).saturating_mul(CHECK_WORDS);
            let end = until.min(check).min(source.until);
            self.put(source.key, source.skip, end - at);
            at = end;
        }
    }

    /// Where the word at `at` of a record's prompt comes from. `holder` is the record whose ids
    /// reach there, as far as it was looked for.
    fn source(&self, record: u32, at: u32, holder: &mut u32) -> Source {
        let Style { trace, seed, warm_tokens, .. } = self.style;
        let line = &self.lines[record as usize];
        let warm = line.warm_tokens(warm_tokens);
        if at < warm {
            return Source { key: warm_key(seed), skip: at, until: warm };
        }
        let tokens = trace.block_tokens;
        let block = at / tokens;
        let count = |record: u32| trace.records[record as usize].block_count;
        while count(*holder) <= block {
            match self.lines[*holder as usize].heir {
                NONE => {
                    let (row, file) =
                        (trace.records[record as usize].row, trace.recorded.file_of(record));
                    let key = TextKey::tail(seed, scope(0, file), row);
                    let reached = count(record).saturating_mul(tokens);
                    return Source { key, skip: at - reached, until: u32::MAX };
                }
                heir => *holder = heir,
            }
        }
        let ids = trace.blocks_of(&trace.records[*holder as usize]);
        let key = TextKey::block(seed, self.scope, ids.id(block as usize));
        let until = (block + 1).saturating_mul(tokens);
        Source { key, skip: at - block * tokens, until }
    }

    /// Writes words of a text, behind the first `skip` of it.
    fn put(&mut self, key: TextKey, skip: u32, words: u32) {
        let (skip, words) = (skip as usize, words as usize);
        let (draws, drop) = (skip / WORDS_PER_DRAW, skip % WORDS_PER_DRAW);
        let start = self.out.len();
        key.beyond(draws).append(drop + words, &mut self.out);
        if drop > 0 {
            let rest = nth_word(&self.out[start..], drop);
            self.out.drain(start..start + rest);
        }
    }
}

/// The text that all users share.
pub(super) const fn warm_key(seed: u64) -> TextKey {
    TextKey::tail(seed, u64::MAX, 0)
}

/// Where word number `number` of a text starts; its end when it has fewer.
pub(super) fn nth_word(text: &[u8], number: usize) -> usize {
    memchr::memchr_iter(b' ', text).nth(number).unwrap_or(text.len())
}

/// How many checks a line has.
pub(super) const fn checks(line: &Line) -> u32 {
    if line.until > line.keep {
        (line.until - 1) / CHECK_WORDS - line.keep / CHECK_WORDS
    } else {
        0
    }
}

impl Separators {
    /// Of messages.
    pub(super) const CHAT: &Self = &Self {
        assistant: crate::render::history::ASSISTANT,
        user: crate::render::history::USER,
        tool: b"\"},{\"role\":\"tool\",\"tool_call_id\":\"call_0\",\"content\":\"",
    };
    /// Of a prompt in one piece.
    pub(super) const NONE: &Self = &Self { assistant: b"", user: b"", tool: b"" };

    /// One of them.
    pub(super) const fn text(&self, separator: Separator) -> &'static [u8] {
        match separator {
            Separator::Assistant => self.assistant,
            Separator::User => self.user,
            Separator::Tool => self.tool,
        }
    }

    /// Its bytes.
    pub(super) fn len(&self, separator: Separator) -> u32 {
        u32::try_from(self.text(separator).len()).expect("a line of text")
    }
}

impl Separator {
    /// What stands before a line's own message.
    pub(super) const fn before(line: &Line) -> Self {
        if line.tool { Self::Tool } else { Self::User }
    }
}
