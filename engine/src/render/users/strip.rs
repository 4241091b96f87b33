//! What only one request has: the rest of its head, and the mark of a later use.
//!
//! A strip is filled when a request leaves, into room that was made before zero, and is used again
//! once its request has ended and nobody reads it any more. Only where the kernel holds on to one
//! after another is a new one made.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::plan::script::Part;
use crate::prompt::TextKey;
use crate::render::users::MARK_WORDS;
use crate::render::users::text::nth_word;
use crate::render::{RenderOptions, head};

/// The header that tells a router to keep a conversation where it is.
const SESSION_ID: &str = "X-Session-ID";
/// Room for a mark at the start of a strip.
const MARK_ROOM: usize = TextKey::room(MARK_WORDS as usize);
/// Most digits of a number.
const DIGITS: usize = 20;
/// Strips beside one for each player: those that the kernel has not let go.
const SPARE: usize = 64;
/// Strips that are tried before a new one is made.
const TRIES_MAX: usize = 8;

/// What heads are made of, and what players are called.
#[derive(Debug, Default)]
pub(super) struct HeadTexts {
    /// Up to the request's number.
    request: Vec<u8>,
    /// From there to the user's number; empty where its header carries something else.
    user: Vec<u8>,
    /// From what the player is called to the conversation's name; empty where nobody names it.
    session: Vec<u8>,
    /// By conversation: the place of its first part.
    first: Vec<u32>,
    /// By part.
    names: Vec<Name>,
    longest: usize,
}

/// What a router keeps together, and what stands behind the user's number.
type Name = (Box<[u8]>, Box<[u8]>);

/// Who a head is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addressee {
    pub(super) request: u32,
    pub(super) user: u32,
    pub(super) conversation: u32,
    pub(super) part: u16,
    pub(super) copy: u32,
}

/// Room for one request's own bytes.
#[derive(Debug)]
pub(crate) struct Strip {
    bytes: Box<[u8]>,
    /// Where the mark's words end, in bytes.
    marks: [u8; MARK_WORDS as usize + 1],
    end: usize,
}

/// The strips of one core.
#[derive(Debug)]
pub(super) struct Strips {
    all: Vec<Arc<Strip>>,
    free: VecDeque<u32>,
    room: usize,
}

impl HeadTexts {
    /// What the heads of requests have in common.
    pub(super) fn new(options: &RenderOptions) -> Self {
        let mut texts = Self { request: b"X-Request-ID: ".to_vec(), ..Self::default() };
        head::append_plain(&mut texts.request, &options.run_id);
        texts.request.push(b'-');
        if !options.session_header.eq_ignore_ascii_case(SESSION_ID) {
            texts.user = format!("\r\n{}: User-", options.session_header).into_bytes();
        }
        if !head::has_own(options, SESSION_ID) {
            texts.session = format!("\r\n{SESSION_ID}: ").into_bytes();
        }
        texts
    }

    /// Adds the parts of the next conversation; `agent` is what its file calls a sub-agent.
    pub(super) fn add<'a>(&mut self, id: &str, parts: &[Part], agent: impl Fn(&Part) -> &'a str) {
        let first = self.names.len();
        self.first.push(u32::try_from(first).expect("fewer parts than requests"));
        for part in parts {
            let (mut name, mut suffix) = (Vec::new(), Vec::new());
            if let Some(parent) = part.parent {
                let (of_parent, behind) = &self.names[first + usize::from(parent)];
                name.extend_from_slice(of_parent);
                suffix.extend_from_slice(behind);
                let number = format!("SA{}", part.number);
                suffix.push(b'-');
                suffix.extend_from_slice(number.as_bytes());
                name.push(b':');
                let agent = Some(agent(part)).filter(|agent| !agent.is_empty());
                head::append_plain(&mut name, agent.unwrap_or(&number));
            } else {
                head::append_plain(&mut name, id);
            }
            self.longest = self.longest.max(name.len() + suffix.len());
            self.names.push((name.into(), suffix.into()));
        }
    }

    /// Most bytes of what [`Strip::fill`] writes.
    fn room(&self) -> usize {
        let fixed = self.request.len() + self.user.len() + self.session.len() + self.longest;
        MARK_ROOM + fixed + 4 * DIGITS + 64
    }
}

impl Strips {
    /// For so many players.
    pub(super) fn new(heads: &HeadTexts, opening: &[u8], players: usize) -> Self {
        let room = heads.room() + opening.len();
        let count = players + SPARE;
        Self {
            all: (0..count).map(|_| Arc::new(Strip::new(room))).collect(),
            free: (0..u32::MAX).take(count).collect(),
            room,
        }
    }

    /// A strip that nobody reads.
    pub(super) fn take(&mut self) -> u32 {
        for _ in 0..self.free.len().min(TRIES_MAX) {
            let Some(number) = self.free.pop_front() else { break };
            if Arc::get_mut(&mut self.all[number as usize]).is_some() {
                return number;
            }
            self.free.push_back(number);
        }
        self.replace()
    }

    /// Makes a new strip, in the place of one that somebody still reads.
    #[cold]
    fn replace(&mut self) -> u32 {
        let strip = Arc::new(Strip::new(self.room));
        match self.free.pop_front() {
            Some(number) => {
                self.all[number as usize] = strip;
                number
            }
            None => {
                self.all.push(strip);
                u32::try_from(self.all.len() - 1).expect("as many as players, about")
            }
        }
    }

    pub(super) fn give_back(&mut self, number: u32) {
        self.free.push_back(number);
    }

    pub(super) fn get(&self, number: u32) -> &Arc<Strip> {
        &self.all[number as usize]
    }

    /// A strip that was [taken](Strips::take) and that nobody else has seen.
    pub(super) fn get_mut(&mut self, number: u32) -> &mut Strip {
        Arc::get_mut(&mut self.all[number as usize]).expect("nobody has seen it yet")
    }
}

impl Strip {
    fn new(room: usize) -> Self {
        Self { bytes: vec![0; room].into(), marks: [0; MARK_WORDS as usize + 1], end: 0 }
    }

    /// Writes the words of a mark.
    pub(super) fn mark(&mut self, key: TextKey) {
        let end = key.write(MARK_WORDS as usize, &mut self.bytes[..MARK_ROOM]);
        for (words, mark) in self.marks.iter_mut().enumerate() {
            let bytes = nth_word(&self.bytes[..end], words);
            *mark = u8::try_from(bytes).expect("eight words of seven bytes at most");
        }
    }

    /// The first words of the mark.
    pub(super) fn marked(&self, words: u32) -> usize {
        usize::from(self.marks[words as usize])
    }

    /// Writes what only one request's head has, and how its body begins.
    pub(super) fn fill(
        &mut self,
        texts: &HeadTexts,
        addressee: &Addressee,
        opening: &[u8],
        body_bytes: u64,
    ) {
        let part = texts.first[addressee.conversation as usize] as usize;
        let (name, suffix) = &texts.names[part + usize::from(addressee.part)];
        self.end = MARK_ROOM;
        self.put(&texts.request);
        self.number(u64::from(addressee.request), 1);
        if !texts.user.is_empty() {
            self.put(&texts.user);
            self.number(u64::from(addressee.user), 3);
            self.put(suffix);
        }
        if !texts.session.is_empty() {
            self.put(&texts.session);
            self.put(name);
            if addressee.copy > 0 {
                self.put(b"#");
                self.number(u64::from(addressee.copy) + 1, 1);
            }
        }
        self.put(b"\r\nContent-Length: ");
        self.number(body_bytes, 1);
        self.put(b"\r\n\r\n");
        self.put(opening);
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.end..self.end + bytes.len()].copy_from_slice(bytes);
        self.end += bytes.len();
    }

    /// Writes a number with at least so many digits.
    fn number(&mut self, number: u64, least: usize) {
        let mut digits = [b'0'; DIGITS];
        let mut first = DIGITS;
        let mut rest = number;
        while rest > 0 || DIGITS - first < least {
            first -= 1;
            digits[first] = b'0' + u8::try_from(rest % 10).expect("a digit");
            rest /= 10;
        }
        self.put(&digits[first..]);
    }

    /// What [`Strip::fill`] wrote.
    pub(crate) fn head(&self) -> &[u8] {
        &self.bytes[MARK_ROOM..self.end]
    }

    /// So many bytes of the mark.
    pub(crate) fn mark_bytes(&self, bytes: usize) -> &[u8] {
        &self.bytes[..bytes]
    }
}
