//! What servers answered, kept for the turns that repeat it.
//!
//! A reply is kept as it stood in the JSON it came in, so that it can stand in the JSON of a later
//! request without being read again; what would not be well-formed there is put right on its way in
//! (control characters, bytes that are not UTF-8, surrogates without their other half, also where
//! two events share a character). Replies lie in pages of one size that are all made before zero
//! and used again; a reply that is longer than its room, or for which no page is left, is cut
//! between two characters, and that is told. Nothing here allocates after [`Replies::new`], and
//! what a page holds is not changed while anybody else has a share of it.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use onbeat_shared::units::RequestIndex;

/// Bytes of a page: a few hundred tokens, so that little of a short reply's room is unused and a
/// long one has few slices.
pub(crate) const PAGE_BYTES: usize = 1 << 10;

/// A page of a reply.
pub(crate) type Page = [u8; PAGE_BYTES];

/// Not a page.
const NONE: u32 = u32::MAX;
/// Free pages that are tried before none counts as free: the kernel may still read some.
const TRIES_MAX: usize = 16;
/// What stands for a character that cannot be known.
const UNKNOWN: &[u8] = "\u{fffd}".as_bytes();

/// The replies of one core's requests.
#[derive(Debug)]
pub(crate) struct Replies {
    pages: Vec<Arc<Page>>,
    /// For each page of a reply, the one behind it.
    next: Vec<u32>,
    /// Pages without a reply; the one given back longest ago is used first.
    free: VecDeque<u32>,
    /// By request.
    of: Vec<Reply>,
}

/// One reply.
#[derive(Clone, Copy, Debug)]
struct Reply {
    state: State,
    /// It ends before its end.
    cut: bool,
    /// Something of it was left out.
    partial: bool,
    /// The start of a character whose rest is in the next piece.
    pending: Pending,
    first: u32,
    last: u32,
    len: u32,
    /// Most bytes it may have.
    most: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing is kept of it.
    Absent,
    /// It is being written.
    Open,
    /// It is over and kept.
    Kept,
}

/// The longest is half of a pair of escapes.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    bytes: [u8; ESCAPE],
    len: u8,
}

/// Bytes of an escape with a code unit.
const ESCAPE: usize = 6;

impl Replies {
    /// For so many requests, with so many pages.
    pub(crate) fn new(requests: usize, pages: usize) -> Self {
        let pages = pages.min(NONE as usize);
        let none = Reply {
            state: State::Absent,
            cut: false,
            partial: false,
            pending: Pending::default(),
            first: NONE,
            last: NONE,
            len: 0,
            most: 0,
        };
        Self {
            pages: (0..pages).map(|_| Arc::new([0; PAGE_BYTES])).collect(),
            next: vec![NONE; pages],
            free: (0..NONE).take(pages).collect(),
            of: vec![none; requests],
        }
    }

    /// The reply to `request` is about to come, and at most `most` bytes of it are to be kept.
    pub(crate) fn begin(&mut self, request: RequestIndex, most: u32) {
        self.forget(request);
        let reply = &mut self.of[request.as_usize()];
        reply.most = most;
        (reply.cut, reply.partial) = (false, false);
        reply.state = State::Open;
    }

    /// Adds a piece: the inside of a JSON string, or a part of it that ends between two escapes.
    /// Its escapes are well formed and it has no bare quote; that is all that is asked of it.
    pub(crate) fn add(&mut self, request: RequestIndex, piece: &[u8]) {
        let reply = &self.of[request.as_usize()];
        if reply.state != State::Open || reply.cut {
            return;
        }
        if reply.pending.len == 0 && piece.iter().all(|&byte| is_plain(byte)) {
            self.put(request, piece);
        } else {
            self.add_checked(request, piece);
        }
    }

    /// The reply to `request` is over; it is kept if it is `whole`, else forgotten.
    pub(crate) fn end(&mut self, request: RequestIndex, whole: bool) {
        let reply = &mut self.of[request.as_usize()];
        if reply.state != State::Open {
            return;
        }
        if std::mem::take(&mut reply.pending).len > 0 {
            self.put_one(request, UNKNOWN);
        }
        let reply = &mut self.of[request.as_usize()];
        // A turn without a word in it is not said.
        if whole && reply.len > 0 {
            reply.state = State::Kept;
        } else {
            self.forget(request);
        }
    }

    /// Nobody needs the reply to `request` any more.
    pub(crate) fn forget(&mut self, request: RequestIndex) {
        let reply = &mut self.of[request.as_usize()];
        reply.state = State::Absent;
        reply.len = 0;
        reply.pending = Pending::default();
        let mut page = std::mem::replace(&mut reply.first, NONE);
        reply.last = NONE;
        while page != NONE {
            self.free.push_back(page);
            page = std::mem::replace(&mut self.next[page as usize], NONE);
        }
    }

    /// Bytes of the reply to `request`; `None` when there is none.
    pub(crate) fn len(&self, request: RequestIndex) -> Option<u32> {
        let reply = &self.of[request.as_usize()];
        (reply.state == State::Kept).then_some(reply.len)
    }

    /// The reply to `request` has something that is no text.
    pub(crate) fn leave_out(&mut self, request: RequestIndex) {
        let reply = &mut self.of[request.as_usize()];
        reply.partial |= reply.state == State::Open;
    }

    /// Whether something of the reply to `request` was left out.
    pub(crate) fn is_cut(&self, request: RequestIndex) -> bool {
        let reply = &self.of[request.as_usize()];
        reply.cut || reply.partial
    }

    /// The first page of the reply to `request`.
    pub(crate) fn first_page(&self, request: RequestIndex) -> u32 {
        self.of[request.as_usize()].first
    }

    /// A page, and the one behind it.
    pub(crate) fn page(&self, page: u32) -> (&Arc<Page>, u32) {
        (&self.pages[page as usize], self.next[page as usize])
    }

    /// [`Replies::add`] for a piece with something in it that needs a closer look.
    #[cold]
    fn add_checked(&mut self, request: RequestIndex, piece: &[u8]) {
        let mut rest = self.complete(request, piece);
        while let Some(&first) = rest.first() {
            let used = match first {
                b'\\' => self.escape(request, rest),
                0..b' ' => {
                    self.put_one(request, &escaped(first));
                    1
                }
                _ => {
                    let end = rest.iter().position(|&byte| byte == b'\\' || byte < b' ');
                    self.run(request, &rest[..end.unwrap_or(rest.len())], end.is_none())
                }
            };
            rest = &rest[used..];
        }
    }

    /// Adds the character that began in the piece before; what is behind its end.
    fn complete<'a>(&mut self, request: RequestIndex, piece: &'a [u8]) -> &'a [u8] {
        let pending = std::mem::take(&mut self.of[request.as_usize()].pending);
        let start = &pending.bytes[..usize::from(pending.len)];
        if start.is_empty() || piece.is_empty() {
            self.of[request.as_usize()].pending = pending;
            return piece;
        }
        let mut whole = [0; 2 * ESCAPE];
        whole[..start.len()].copy_from_slice(start);
        if start[0] == b'\\' {
            let is_low = code_unit(piece).is_some_and(|unit| LOW.contains(&unit));
            if !is_low {
                self.put_one(request, UNKNOWN);
                return piece;
            }
            whole[ESCAPE..].copy_from_slice(&piece[..ESCAPE]);
            self.put_one(request, &whole);
            return &piece[ESCAPE..];
        }
        for (used, &byte) in (1..).zip(piece.iter().take(3)) {
            let end = start.len() + used;
            whole[end - 1] = byte;
            match str::from_utf8(&whole[..end]) {
                Ok(_) => {
                    self.put_one(request, &whole[..end]);
                    return &piece[used..];
                }
                Err(error) if error.error_len().is_none() => {}
                Err(_) => {
                    self.put_one(request, UNKNOWN);
                    return &piece[used - 1..];
                }
            }
        }
        // The whole piece, and the character goes on.
        let mut longer = Pending::default();
        let len = (start.len() + piece.len()).min(ESCAPE);
        longer.bytes[..len].copy_from_slice(&whole[..len]);
        longer.len = u8::try_from(len).expect("six at most");
        self.of[request.as_usize()].pending = longer;
        &[]
    }

    /// Adds the escape that `rest` begins with; how many bytes that took.
    fn escape(&mut self, request: RequestIndex, rest: &[u8]) -> usize {
        let Some(unit) = code_unit(rest) else {
            let simple = &rest[..rest.len().min(2)];
            self.put_one(request, simple);
            return simple.len();
        };
        if HIGH.contains(&unit) {
            let behind = &rest[ESCAPE..];
            if behind.is_empty() {
                self.wait_for_rest(request, &rest[..ESCAPE]);
                return ESCAPE;
            }
            if code_unit(behind).is_some_and(|unit| LOW.contains(&unit)) {
                self.put_one(request, &rest[..2 * ESCAPE]);
                return 2 * ESCAPE;
            }
        }
        let alone = HIGH.contains(&unit) || LOW.contains(&unit);
        self.put_one(request, if alone { UNKNOWN } else { &rest[..ESCAPE] });
        ESCAPE
    }

    /// Adds text without escapes and control characters, up to the first bytes that are not UTF-8
    /// or with them; how many bytes that took. `ends`: it is the end of the piece.
    fn run(&mut self, request: RequestIndex, run: &[u8], ends: bool) -> usize {
        let error = match str::from_utf8(run) {
            Ok(_) => {
                self.put(request, run);
                return run.len();
            }
            Err(error) => error,
        };
        let valid = error.valid_up_to();
        self.put(request, &run[..valid]);
        match error.error_len() {
            None if ends => {
                self.wait_for_rest(request, &run[valid..]);
                run.len()
            }
            None => {
                self.put_one(request, UNKNOWN);
                run.len()
            }
            Some(bad) => {
                self.put_one(request, UNKNOWN);
                valid + bad
            }
        }
    }

    fn wait_for_rest(&mut self, request: RequestIndex, start: &[u8]) {
        let pending = &mut self.of[request.as_usize()].pending;
        pending.bytes[..start.len()].copy_from_slice(start);
        pending.len = u8::try_from(start.len()).expect("an escape, or less than a character");
    }

    /// Adds text that may be cut between any two of its characters, which are UTF-8.
    fn put(&mut self, request: RequestIndex, text: &[u8]) {
        let written = self.write(request, text);
        if written < text.len() {
            let end = (0..=written).rev().find(|&end| text[end] & 0xc0 != 0x80).unwrap_or(0);
            self.cut(request, written - end);
        }
    }

    /// Adds something that is whole or not there at all.
    fn put_one(&mut self, request: RequestIndex, bytes: &[u8]) {
        let written = self.write(request, bytes);
        if written < bytes.len() {
            self.cut(request, written);
        }
    }

    /// Leaves out what follows, and the last `back` bytes. Their page may stay behind, empty.
    fn cut(&mut self, request: RequestIndex, back: usize) {
        let reply = &mut self.of[request.as_usize()];
        reply.len -= u32::try_from(back).expect("less than was written");
        reply.cut = true;
        reply.pending = Pending::default();
    }

    /// Writes as much as there is room for; how much that was.
    fn write(&mut self, request: RequestIndex, bytes: &[u8]) -> usize {
        let mut written = 0;
        while written < bytes.len() {
            let reply = self.of[request.as_usize()];
            if reply.cut || reply.len == reply.most {
                break;
            }
            let at = reply.len as usize % PAGE_BYTES;
            if at == 0 && !self.grow(request) {
                break;
            }
            let reply = &mut self.of[request.as_usize()];
            let room = (PAGE_BYTES - at).min((reply.most - reply.len) as usize);
            let here = (bytes.len() - written).min(room);
            let page = Arc::get_mut(&mut self.pages[reply.last as usize]);
            let page = page.expect("nobody shares a reply before it is whole: see `grow`");
            page[at..at + here].copy_from_slice(&bytes[written..written + here]);
            reply.len += u32::try_from(here).expect("at most a page");
            written += here;
        }
        written
    }

    /// Gives a reply another page, if there is one.
    fn grow(&mut self, request: RequestIndex) -> bool {
        for _ in 0..self.free.len().min(TRIES_MAX) {
            let Some(page) = self.free.pop_front() else { return false };
            if Arc::get_mut(&mut self.pages[page as usize]).is_none() {
                self.free.push_back(page);
                continue;
            }
            let reply = &mut self.of[request.as_usize()];
            match std::mem::replace(&mut reply.last, page) {
                NONE => reply.first = page,
                last => self.next[last as usize] = page,
            }
            return true;
        }
        false
    }
}

/// The first and the second half of a pair of code units.
const HIGH: Range<u32> = 0xd800..0xdc00;
const LOW: Range<u32> = 0xdc00..0xe000;

/// Whether a byte is the same anywhere in a JSON string.
const fn is_plain(byte: u8) -> bool {
    byte >= b' ' && byte < 0x80 && byte != b'\\'
}

/// The escape of a control character.
const fn escaped(byte: u8) -> [u8; ESCAPE] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    [b'\\', b'u', b'0', b'0', HEX[(byte >> 4) as usize], HEX[(byte & 15) as usize]]
}

/// The code unit of the escape that `bytes` begin with, if it has one.
fn code_unit(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    let digits = str::from_utf8(digits).ok()?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

    use super::*;

    const ONE: RequestIndex = RequestIndex(0);

    fn text(replies: &Replies, request: RequestIndex) -> Option<Vec<u8>> {
        let mut left = replies.len(request)? as usize;
        let mut bytes = Vec::new();
        let mut page = replies.first_page(request);
        while left > 0 {
            let (here, next) = replies.page(page);
            bytes.extend_from_slice(&here[..left.min(PAGE_BYTES)]);
            left -= left.min(PAGE_BYTES);
            page = next;
        }
        Some(bytes)
    }

    /// What is kept of pieces when there is room for `most` bytes and so many pages; whether it was
    /// cut.
    fn kept(pieces: &[&[u8]], most: u32, pages: usize) -> (String, bool) {
        let mut replies = Replies::new(1, pages);
        replies.begin(ONE, most);
        for piece in pieces {
            replies.add(ONE, piece);
        }
        replies.end(ONE, true);
        let bytes = text(&replies, ONE).unwrap_or_default();
        (String::from_utf8(bytes).expect("UTF-8"), replies.is_cut(ONE))
    }

    fn whole(pieces: &[&str]) -> String {
        let bytes: Vec<&[u8]> = pieces.iter().map(|piece| piece.as_bytes()).collect();
        let (kept, cut) = kept(&bytes, u32::MAX, 8);
        assert!(!cut);
        let _: String = serde_json::from_str(&format!("\"{kept}\"")).expect("JSON");
        kept
    }

    #[test]
    fn pieces_stand_as_they_came() {
        assert_eq!(whole(&[" tok", " tok"]), " tok tok");
        assert_eq!(whole(&[r"a\n\u00e9", r"\t"]), r"a\n\u00e9\t");
        assert_eq!(whole(&["é", r"\\", r"\/", "\u{65e5}\u{672c}"]), "é\\\\\\/\u{65e5}\u{672c}");
        assert_eq!(whole(&[r"\ud83d\ude00"]), r"\ud83d\ude00");
        assert_eq!(whole(&["", "x", ""]), "x");
    }

    #[test]
    fn what_two_events_share_is_one_character() {
        assert_eq!(whole(&[r"a\ud83d", r"\ude00b"]), r"a\ud83d\ude00b");
        assert_eq!(whole(&[r"\ud83d", "", r"\ude00"]), r"\ud83d\ude00");
        let face = "\u{1f600}".as_bytes();
        for cut in 1..4 {
            let (start, rest) = face.split_at(cut);
            assert_eq!(kept(&[b"a", start, rest, b"b"], 99, 1).0, "a\u{1f600}b", "{cut}");
        }
        let bytes: Vec<&[u8]> = face.chunks(1).collect();
        assert_eq!(kept(&bytes, 99, 1).0, "\u{1f600}");
    }

    #[test]
    fn what_would_not_be_json_is_put_right() {
        for (pieces, expected) in [
            (&[r"\ud83d"][..], "\u{fffd}"),
            (&[r"\ud83d", "x"], "\u{fffd}x"),
            (&[r"\ud83dx"], "\u{fffd}x"),
            (&[r"\ud83d", r"\ud83d", r"\ude00"], "\u{fffd}\\ud83d\\ude00"),
            (&[r"\ude00\u0041"], "\u{fffd}\\u0041"),
            (&["a\nb\u{1}"], r"a\u000ab\u0001"),
        ] {
            assert_eq!(whole(pieces), expected, "{pieces:?}");
        }
        for (pieces, expected) in [
            (&[&b"a\xff\xfeb"[..]][..], "a\u{fffd}\u{fffd}b"),
            (&[b"\xf0\x9f", b"x"], "\u{fffd}x"),
            (&[b"\xf0\x9f\\n"], "\u{fffd}\\n"),
            (&[b"\xf0\x9f"], "\u{fffd}"),
        ] {
            assert_eq!(kept(pieces, 99, 1), (expected.to_owned(), false), "{pieces:?}");
        }
    }

    #[test]
    fn a_reply_is_cut_between_characters() {
        for (pieces, most, expected) in [
            (&["abcdef"][..], 4, "abcd"),
            (&["abé"], 3, "ab"),
            (&["\u{65e5}\u{672c}"], 5, "\u{65e5}"),
            (&["ab", r"\n", "c"], 3, "ab"),
            (&[r"a\ud83d\ude00", "b"], 12, "a"),
            (&["ab", "c", "d"], 2, "ab"),
            (&["é"], 1, ""),
        ] {
            let bytes: Vec<&[u8]> = pieces.iter().map(|piece| piece.as_bytes()).collect();
            assert_eq!(kept(&bytes, most, 1), (expected.to_owned(), true), "{pieces:?} {most}");
        }
        assert_eq!(kept(&[b"abcd"], 4, 1), ("abcd".to_owned(), false));
    }

    #[test]
    fn a_reply_without_a_page_left_is_cut_and_pages_are_used_again() {
        let long = "é".repeat(PAGE_BYTES);
        let (kept, cut) = kept(&[b"a", long.as_bytes()], u32::MAX, 1);
        assert!(cut && kept.len() == PAGE_BYTES - 1 && kept.ends_with('é'), "{}", kept.len());
        let mut replies = Replies::new(2, 2);
        let [first, second] = [0, 1].map(RequestIndex);
        replies.begin(first, u32::MAX);
        replies.add(first, &[b'a'; PAGE_BYTES + 1]);
        replies.end(first, true);
        replies.begin(second, u32::MAX);
        replies.add(second, b"b");
        replies.end(second, true);
        assert!(replies.is_cut(second) && replies.len(second).is_none());
        // The kernel still reads the first page.
        let lent = Arc::clone(replies.page(replies.first_page(first)).0);
        replies.forget(first);
        replies.begin(second, u32::MAX);
        replies.add(second, b"b");
        replies.end(second, true);
        assert_eq!(text(&replies, second), Some(b"b".to_vec()));
        assert_eq!((lent[0], replies.is_cut(second)), (b'a', false));
    }

    #[test]
    fn a_reply_that_failed_is_not_there() {
        let mut replies = Replies::new(1, 1);
        replies.begin(ONE, 9);
        replies.add(ONE, b"half");
        replies.end(ONE, false);
        assert_eq!((replies.len(ONE), replies.free.len()), (None, 1));
        replies.add(ONE, b"late");
        assert_eq!(replies.len(ONE), None);
    }

    proptest! {
        #[test]
        fn any_split_of_any_text_means_the_same(
            text in any::<String>(),
            ascii in any::<bool>(),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let json = serde_json::to_string(&text).expect("text");
            let mut inside = json[1..json.len() - 1].to_owned();
            if ascii {
                // As servers write it that escape everything beyond ASCII.
                inside = inside.chars().map(|letter| {
                    let mut units = [0; 2];
                    if letter.is_ascii() {
                        return letter.to_string();
                    }
                    let units = letter.encode_utf16(&mut units).iter();
                    units.map(|unit| format!("\\u{unit:04x}")).collect()
                }).collect();
            }
            // Events end between two escapes, wherever that is in a character.
            let mut ends = vec![0];
            let mut end = 0;
            while end < inside.len() {
                end += match inside.as_bytes()[end..] {
                    [b'\\', b'u', ..] => 6,
                    [b'\\', ..] => 2,
                    _ => 1,
                };
                ends.push(end);
            }
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| ends[cut.index(ends.len())]).collect();
            cuts.extend([0, inside.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> =
                cuts.windows(2).map(|ends| &inside.as_bytes()[ends[0]..ends[1]]).collect();
            let (kept, cut) = kept(&pieces, u32::MAX, 1 + 6 * text.len() / PAGE_BYTES);
            prop_assert!(!cut);
            let meant: String = serde_json::from_str(&format!("\"{kept}\"")).expect("JSON");
            prop_assert_eq!(meant, text);
        }

        #[test]
        fn any_bytes_become_text_within_their_room(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 0..9),
            most in 0_u32..60,
        ) {
            let clean = |piece: &Vec<u8>| -> Vec<u8> {
                piece.iter().copied().filter(|byte| !b"\"\\".contains(byte)).collect()
            };
            let pieces: Vec<Vec<u8>> = pieces.iter().map(clean).collect();
            let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            let (kept, _) = kept(&pieces, most, 1);
            prop_assert!(kept.len() <= most as usize);
            let json = format!("\"{kept}\"");
            prop_assert!(serde_json::from_str::<String>(&json).is_ok(), "{}", json);
        }
    }
}
