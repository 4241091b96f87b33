//! Requests that repeat what their session has said: put together on the core that sends them.
//!
//! A turn's body is the texts of the turns before it, which were rendered once, the replies to
//! them, which the core has kept, and its own text: slices of all three, nothing copied. Its length
//! is known when it is due, so the head's last line is written then, into room that was made before
//! zero. A turn whose answer failed has no reply, and its text stands for itself.

use std::sync::Arc;

use onbeat_shared::units::{CoreIndex, RequestIndex};

use crate::render::history::{ASSISTANT, Histories, USER};
use crate::render::replies::{PAGE_BYTES, Page, Replies};
use crate::render::{Bodies, Part};

/// Room for the digits of a length and the empty line behind it.
const LENGTH_BYTES: usize = 24;
/// A request's parts before its own text: what its head has in common with others and of its own,
/// and how its body begins.
pub(crate) const PARTS_BEFORE: usize = 3;
/// Its parts behind it.
const PARTS_BEHIND: usize = 1;

/// The value of a request's `Content-Length`, and the end of its head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Length {
    text: [u8; LENGTH_BYTES],
    used: u8,
}

/// The bytes of one core's requests, and what they repeat.
#[derive(Debug)]
pub struct Live {
    bodies: Arc<Bodies>,
    replies: Replies,
    /// By request.
    composed: Vec<Composed>,
    /// For each request that repeats others.
    lengths: Vec<Arc<Length>>,
    /// For each request, how many are still to repeat it.
    repeats: Vec<u32>,
}

/// A request that was put together.
#[derive(Clone, Copy, Debug)]
struct Composed {
    /// Bytes of head and body; 0 before it is due.
    bytes: u64,
    parts: u32,
    /// Its place among the lengths.
    length: u32,
}

/// One slice of a request, and what keeps it where it is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Piece<'a> {
    /// Rendered before zero.
    Rendered(&'a Arc<Bodies>, Part),
    /// The same in all requests.
    Fixed(&'static [u8]),
    /// Of a reply.
    Reply(&'a Arc<Page>, usize),
    /// The end of a head.
    Length(&'a Arc<Length>),
}

/// The pieces of a request.
#[derive(Clone, Debug)]
pub(super) struct Pieces<'a> {
    live: &'a Live,
    request: RequestIndex,
    at: At,
    left: usize,
}

/// Where in a request the next piece is.
#[derive(Clone, Copy, Debug)]
enum At {
    /// A part of its own, before the texts of earlier turns.
    Start(usize),
    Length,
    Text {
        turn: usize,
        part: usize,
    },
    Assistant {
        turn: usize,
    },
    Page {
        turn: usize,
        page: u32,
        left: usize,
    },
    User {
        turn: usize,
    },
    /// A part of its own, from its own text on.
    Rest(usize),
}

impl Live {
    /// The share of `core`.
    pub(crate) fn new(bodies: &Arc<Bodies>, histories: &Histories, core: CoreIndex) -> Self {
        let requests = histories.requests();
        let mut composed = vec![Composed { bytes: 0, parts: 0, length: u32::MAX }; requests];
        let mut lengths = Vec::new();
        for request in histories.continued(core) {
            let length = u32::try_from(lengths.len()).expect("no more than requests");
            composed[request.as_usize()].length = length;
            lengths.push(Arc::new(Length { text: [0; LENGTH_BYTES], used: 0 }));
        }
        let all = (0..).map(RequestIndex).take(requests);
        Self {
            bodies: Arc::clone(bodies),
            replies: Replies::new(requests, histories.pages(core)),
            composed,
            lengths,
            repeats: all.map(|request| histories.repeats(request)).collect(),
        }
    }

    fn histories(&self) -> &Histories {
        self.bodies.histories.as_ref().expect("without them nothing is repeated")
    }

    /// Puts a request together, for it leaves now; whether its reply is wanted.
    pub(crate) fn begin(&mut self, request: RequestIndex) -> bool {
        // What is sent a second time is what was sent the first time.
        if self.composed[request.as_usize()].bytes == 0 {
            self.compose(request);
        }
        let room = self.histories().room(request);
        if room > 0 {
            self.replies.begin(request, room);
        }
        room > 0
    }

    fn compose(&mut self, request: RequestIndex) {
        let own = self.bodies.parts_of(request);
        let histories = self.histories();
        let before = histories.before(request);
        let mut parts = own.len();
        let mut bytes: u64 = own.iter().map(|part| u64::from(part.len)).sum();
        let mut length = None;
        if !before.is_empty() {
            let mut body = histories.bytes(request);
            parts += 1 + before.len();
            for &turn in before {
                parts += self.text(turn).len();
                if let Some(reply) = self.replies.len(turn) {
                    body += ASSISTANT.len() as u64 + u64::from(reply);
                    parts += 1 + (reply as usize).div_ceil(PAGE_BYTES);
                }
            }
            let line = Length::of(body);
            let head = u64::from(own[0].len) + u64::from(own[1].len) + u64::from(line.used);
            bytes = head + body;
            length = Some(line);
        }
        let composed = &mut self.composed[request.as_usize()];
        composed.bytes = bytes;
        composed.parts = u32::try_from(parts).expect("a slice has bytes, and all are counted");
        if let Some(length) = length {
            let line = Arc::get_mut(&mut self.lengths[composed.length as usize]);
            *line.expect("nobody has seen it yet") = length;
        }
    }

    /// Adds a piece of the reply to a request.
    pub(crate) fn hear(&mut self, request: RequestIndex, piece: &[u8]) {
        self.replies.add(request, piece);
    }

    /// The reply to a request has something that is not repeated.
    pub(crate) fn leave_out(&mut self, request: RequestIndex) {
        self.replies.leave_out(request);
    }

    /// Whether something of a request's reply was left out.
    pub(crate) fn is_cut(&self, request: RequestIndex) -> bool {
        self.replies.is_cut(request)
    }

    /// A request has ended, well or not, and is sent no more.
    pub(crate) fn end(&mut self, request: RequestIndex, well: bool) {
        self.replies.end(request, well);
        let Self { bodies, replies, repeats, .. } = self;
        let histories = bodies.histories.as_ref().expect("without them nothing is repeated");
        for &turn in histories.before(request) {
            let left = &mut repeats[turn.as_usize()];
            *left -= 1;
            if *left == 0 {
                replies.forget(turn);
            }
        }
    }

    /// Bytes of head and body together.
    pub(crate) fn request_bytes(&self, request: RequestIndex) -> u64 {
        self.composed[request.as_usize()].bytes
    }

    /// A request's pieces, once it [began](Live::begin).
    pub(super) fn pieces(&self, request: RequestIndex) -> Pieces<'_> {
        let left = self.composed[request.as_usize()].parts as usize;
        debug_assert!(left > 0, "a request is put together before it is sent");
        Pieces { live: self, request, at: At::Start(0), left }
    }

    /// The parts of a turn's text.
    fn text(&self, turn: RequestIndex) -> &[Part] {
        let parts = self.bodies.parts_of(turn);
        &parts[PARTS_BEFORE..parts.len() - PARTS_BEHIND]
    }
}

impl Length {
    fn of(body: u64) -> Self {
        let mut digits = [0; 20];
        let mut first = digits.len();
        let mut rest = body;
        loop {
            first -= 1;
            digits[first] = b'0' + u8::try_from(rest % 10).expect("a digit");
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        let (digits, end) = (&digits[first..], b"\r\n\r\n");
        let mut text = [0; LENGTH_BYTES];
        text[..digits.len()].copy_from_slice(digits);
        text[digits.len()..digits.len() + end.len()].copy_from_slice(end);
        let used = u8::try_from(digits.len() + end.len()).expect("24 at most");
        Self { text, used }
    }

    /// The digits, and the end of the head.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.text[..usize::from(self.used)]
    }
}

impl<'a> Piece<'a> {
    /// What it holds.
    pub(crate) fn bytes(self) -> &'a [u8] {
        match self {
            Self::Rendered(bodies, part) => bodies.bytes_of(part),
            Self::Fixed(bytes) => bytes,
            Self::Reply(page, used) => &page[..used],
            Self::Length(length) => length.bytes(),
        }
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        let live = self.live;
        let own = live.bodies.parts_of(self.request);
        let before = live.histories().before(self.request);
        loop {
            let (piece, behind) = match self.at {
                // Without a history the head is whole as it was rendered.
                At::Start(2) if !before.is_empty() => {
                    (Some(Piece::Rendered(&live.bodies, own[2])), At::Text { turn: 0, part: 0 })
                }
                At::Start(PARTS_BEFORE) => (None, At::Rest(PARTS_BEFORE)),
                At::Start(place) => {
                    let &part = own.get(place)?;
                    let behind = match place {
                        1 if !before.is_empty() => At::Length,
                        _ => At::Start(place + 1),
                    };
                    (Some(Piece::Rendered(&live.bodies, part)), behind)
                }
                At::Length => {
                    let length = live.composed[self.request.as_usize()].length;
                    (Some(Piece::Length(&live.lengths[length as usize])), At::Start(2))
                }
                At::Text { turn, part } => match live.text(before[turn]).get(part) {
                    Some(&text) => {
                        let piece = Piece::Rendered(&live.bodies, text);
                        (Some(piece), At::Text { turn, part: part + 1 })
                    }
                    None if live.replies.len(before[turn]).is_some() => {
                        (None, At::Assistant { turn })
                    }
                    None => (None, At::User { turn }),
                },
                At::Assistant { turn } => {
                    let left = live.replies.len(before[turn]).unwrap_or(0) as usize;
                    let page = live.replies.first_page(before[turn]);
                    (Some(Piece::Fixed(ASSISTANT)), At::Page { turn, page, left })
                }
                At::Page { turn, left: 0, .. } => (None, At::User { turn }),
                At::Page { turn, page, left } => {
                    let (bytes, behind) = live.replies.page(page);
                    let used = left.min(PAGE_BYTES);
                    let piece = Piece::Reply(bytes, used);
                    (Some(piece), At::Page { turn, page: behind, left: left - used })
                }
                At::User { turn } => {
                    let behind = if turn + 1 < before.len() {
                        At::Text { turn: turn + 1, part: 0 }
                    } else {
                        At::Rest(PARTS_BEFORE)
                    };
                    (Some(Piece::Fixed(USER)), behind)
                }
                At::Rest(place) => {
                    let &part = own.get(place)?;
                    (Some(Piece::Rendered(&live.bodies, part)), At::Rest(place + 1))
                }
            };
            self.at = behind;
            if piece.is_some() {
                self.left = self.left.saturating_sub(1);
                return piece;
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Pieces<'_> {}

#[cfg(test)]
mod tests {
    use onbeat_shared::trace::Trace;
    use onbeat_shared::units::SessionIndex;

    use super::*;
    use crate::limits::WRITE_PARTS_MAX;
    use crate::plan::{Plan, PlanMode, PlanOptions, build};
    use crate::render::supply::{Source, Supply};
    use crate::render::tests::{trace, with_prompts};
    use crate::render::{Context, Preview, RenderError, RenderOptions, When, prepare};

    /// A session of so many turns of two words each.
    fn session(turns: usize) -> Trace {
        one_session(trace(&vec![(2, vec![]); turns], 16))
    }

    /// The same rows as the turns of one session.
    fn one_session(mut trace: Trace) -> Trace {
        for (turn, record) in (0..).zip(&mut trace.records) {
            (record.session, record.turn) = (SessionIndex(0), turn);
        }
        trace
    }

    fn options(context: Context) -> RenderOptions {
        let budget_bytes = Some(64 << 20);
        RenderOptions { context: Some(context), budget_bytes, ..RenderOptions::default() }
    }

    fn supply(plan: &Plan, trace: &Trace, options: &RenderOptions) -> Supply {
        let prepared = prepare(Plan::clone(plan), trace.clone(), options.clone(), 1);
        Supply::of(&prepared.expect("it fits").source, CoreIndex(0))
    }

    /// Sends a request and ends it with a reply, or with a failure; its head and body.
    fn send(supply: &mut Supply, request: u32, reply: Option<&str>) -> (String, String) {
        let request = RequestIndex(request);
        let heard = supply.begin(request);
        let parts = supply.parts(request);
        assert_eq!(parts.len(), parts.clone().count());
        let bytes: Vec<u8> = parts.clone().flatten().copied().collect();
        let shared: Vec<u8> = (0..parts.len())
            .flat_map(|part| supply.share(request, part).bytes().to_vec())
            .collect();
        assert!(bytes == shared && supply.request_bytes(request) == bytes.len() as u64);
        assert!(supply.share(request, parts.len()).bytes().is_empty());
        if heard {
            supply.hear(request, reply.unwrap_or("half").as_bytes(), false);
        }
        supply.ended(request, reply.is_some());
        let text = String::from_utf8(bytes).expect("UTF-8");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
        assert!(head.ends_with(&format!("\r\nContent-Length: {}", body.len())), "{head}");
        (head.to_owned(), body.to_owned())
    }

    fn messages(body: &str) -> Vec<(String, String)> {
        let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
        let text = |value: &serde_json::Value| value.as_str().expect("a text").to_owned();
        let list = body["messages"].as_array().expect("a list");
        list.iter().map(|message| (text(&message["role"]), text(&message["content"]))).collect()
    }

    #[test]
    fn a_turn_repeats_what_was_said_before_it() {
        let trace = session(4);
        let plan = build(&trace, &PlanOptions::default()).expect("a plan");
        let mut supply = supply(&plan, &trace, &options(Context::LiveAnswers));
        let replies = [Some(r"one\n\u00e9"), None, Some(""), Some("not repeated")];
        let bodies: Vec<String> =
            (0..).zip(replies).map(|(turn, reply)| send(&mut supply, turn, reply).1).collect();
        let own: Vec<String> =
            bodies.iter().map(|body| messages(body).pop().expect("its own").1).collect();
        let user = |turn: usize| ("user".to_owned(), own[turn].clone());
        let said = ("assistant".to_owned(), "one\n\u{e9}".to_owned());
        assert_eq!(messages(&bodies[0]), [user(0)]);
        assert_eq!(messages(&bodies[1]), [user(0), said.clone(), user(1)]);
        // The second answer failed, and the third had no word in it.
        assert_eq!(messages(&bodies[2]), [user(0), said.clone(), user(1), user(2)]);
        assert_eq!(messages(&bodies[3]), [user(0), said, user(1), user(2), user(3)]);
        assert!(bodies[3].ends_with("\"stream_options\":{\"include_usage\":true}}"));
    }

    #[test]
    fn without_replies_the_length_is_known_before_and_with_them_a_plan_shows_null() {
        let trace = session(3);
        let plan = build(&trace, &PlanOptions::default()).expect("a plan");
        for (context, unknown) in [(Context::Turns, false), (Context::LiveAnswers, true)] {
            let options = options(context);
            let prepared = prepare(plan.clone(), trace.clone(), options.clone(), 1).expect("fits");
            let mut supply = Supply::of(&prepared.source, CoreIndex(0));
            let preview = Preview::new(&plan, &trace, &options).expect("turns in order");
            assert_eq!((preview.is_open(1), preview.is_open(2)), (false, unknown));
            for turn in 0..3 {
                let (_, body) = send(&mut supply, turn, Some("said"));
                let mut shown = Vec::new();
                preview.append(RequestIndex(turn), &mut shown);
                let shown = String::from_utf8(shown).expect("UTF-8");
                let known = context == Context::Turns || turn == 0;
                let planned = prepared.plan.rows[turn as usize].body_bytes;
                assert_eq!(planned.map(|bytes| bytes.get()), known.then_some(body.len() as u64));
                assert_eq!(shown.replace("\"content\":null", "\"content\":\"said\""), body);
                assert_eq!(shown.matches("null").count(), if known { 0 } else { turn as usize });
            }
        }
    }

    #[test]
    fn pages_of_replies_that_nobody_repeats_any_more_are_used_again() {
        let trace = session(40);
        let plan = build(&trace, &PlanOptions::default()).expect("a plan");
        // Room for thirty-eight replies of a page each.
        let small = RenderOptions { budget_bytes: Some(156_000), ..options(Context::LiveAnswers) };
        let mut supply = supply(&plan, &trace, &small);
        let long = "x".repeat(1_000);
        for turn in 0..39 {
            send(&mut supply, turn, Some(&long));
            assert_eq!(supply.is_cut(RequestIndex(turn)), turn == 38, "{turn}");
        }
        let (_, body) = send(&mut supply, 39, None);
        assert!(body.matches(&long).count() == 38, "all but the last: {}", body.len());
        let Supply::Live(live) = &mut supply else { panic!("replies are repeated") };
        live.replies.begin(RequestIndex(0), 38_912);
        live.replies.add(RequestIndex(0), "x".repeat(38_912).as_bytes());
        assert!(!live.replies.is_cut(RequestIndex(0)), "every page is free again");
    }

    #[test]
    fn texts_of_many_pieces_and_texts_with_a_mark_stand_by_themselves() {
        // Every other block is shared, so that pieces do not join.
        let ids = |turn: u64| (0..1_500).map(move |id| id + id % 2 * turn * 9_999);
        let many = trace(&(0..3).map(|turn| (1_500, ids(turn).collect())).collect::<Vec<_>>(), 1);
        let plain = with_prompts(trace(&[(1, vec![]), (1, vec![])], 16), &["Once", "More"]);
        for (trace, copies) in [(one_session(many), 1), (one_session(plain), 2)] {
            let plan = build(&trace, &PlanOptions { copies, ..PlanOptions::default() });
            let plan = plan.expect("a plan");
            let options = options(Context::LiveAnswers);
            let mut supply = supply(&plan, &trace, &options);
            let preview = Preview::new(&plan, &trace, &options).expect("turns in order");
            for request in (0..).take(plan.rows.len()) {
                let (_, body) = send(&mut supply, request, Some("said"));
                let mut shown = Vec::new();
                preview.append(RequestIndex(request), &mut shown);
                let shown = String::from_utf8(shown).expect("UTF-8");
                assert_eq!(shown.replace("\"content\":null", "\"content\":\"said\""), body);
            }
            if let Source::Whole(bodies) = prepare(plan, trace, options, 1).expect("it fits").source
            {
                assert!(bodies.part_count(RequestIndex(0)) <= WRITE_PARTS_MAX);
            }
        }
    }

    #[test]
    fn what_cannot_be_put_together_is_refused() {
        let trace = session(2);
        let strict = PlanOptions { mode: PlanMode::OpenLoopStrict, ..PlanOptions::default() };
        let strict = build(&trace, &strict).expect("a plan");
        let plan = build(&trace, &PlanOptions::default()).expect("a plan");
        let refused = |plan: &Plan, options: RenderOptions| {
            prepare(plan.clone(), trace.clone(), options, 1).err()
        };
        let live = options(Context::LiveAnswers);
        let unordered = refused(&strict, live.clone()).expect("it cannot wait").to_string();
        assert!(unordered.contains("line 2: field \"session_id\": this turn"), "{unordered}");
        assert_eq!(refused(&strict, options(Context::Turns)), None);
        let ahead = RenderOptions { when: When::Ahead, ..live.clone() };
        assert_eq!(refused(&plan, ahead), Some(RenderError::LiveAhead));
        let small = RenderOptions { budget_bytes: Some(100), ..live };
        let words = refused(&plan, small).expect("too small").to_string();
        assert!(words.contains("need them all") && words.contains("100"), "{words}");
    }

    #[test]
    fn a_length_ends_its_head() {
        for (body, text) in [(0, "0\r\n\r\n"), (1_234, "1234\r\n\r\n")] {
            assert_eq!(Length::of(body).bytes(), text.as_bytes());
        }
        assert_eq!(Length::of(u64::MAX).bytes().len(), LENGTH_BYTES);
    }
}
