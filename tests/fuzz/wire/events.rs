//! Event streams: split by the plainest means, and each event read by another parser.

use onbeat::wire::AnswerReader;
use onbeat_shared::dice::Dice;
use onbeat_shared::log::outcome::Class;

use super::super::Subject;
use super::answer::every_way;
use super::expected::{Expected, Name};
use super::grammar;
use super::plain_events::plain_events;
use super::told::{Behind, Told};

/// What goes before a body that only the end of the connection ends.
pub(super) const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";

/// Bodies of event streams.
pub(super) struct Events {
    reader: AnswerReader,
    whole: Told,
    cut: Told,
    answer: Vec<u8>,
}

impl Events {
    pub(super) fn new() -> Self {
        let (whole, cut) = (Told::default(), Told::default());
        Self { reader: AnswerReader::new(), whole, cut, answer: Vec::new() }
    }
}

impl Subject for Events {
    fn generate(&mut self, dice: &mut Dice, out: &mut Vec<u8>) {
        grammar::events(dice, out);
    }

    fn judge(&mut self, input: &[u8]) -> Result<(), String> {
        self.answer.clear();
        self.answer.extend_from_slice(HEAD);
        self.answer.extend_from_slice(input);
        let behind = every_way(&mut self.reader, &mut self.whole, &mut self.cut, &self.answer)?;
        if behind == Behind::Reset {
            // The event that only a clean end completes was lost.
            self.whole.read(&mut self.reader, true, &self.answer, [], Behind::Close);
        }
        let (expected, class) = read_body(input);
        expected.check(&self.whole)?;
        if expected.lenient || self.whole.class() == class {
            return Ok(());
        }
        Err(format!("{:?} instead of {class:?}: {expected:?}", self.whole.class()))
    }
}

/// What a body that calls itself an event stream should be told as, and its class.
pub(super) fn read_body(body: &[u8]) -> (Expected, Class) {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    const PACKED: [&[u8]; 2] = [b"\x1f\x8b", b"\x28\xb5\x2f\xfd"];
    let mut expected = Expected::default();
    let body = body.trim_ascii_start();
    if body.is_empty() {
        return (expected, Class::EmptyAnswer);
    }
    // A body is what its first ten bytes say.
    let start = &body[..body.len().min(10)];
    let behind = start.strip_prefix(MARK).unwrap_or(start).trim_ascii_start();
    // A body that ends within what one that is packed begins with is as little a text.
    let packed = PACKED.iter().any(|magic| magic.starts_with(start) || start.starts_with(magic));
    let undecided = packed || MARK.starts_with(start) || behind.is_empty() && start.len() < 10;
    match behind.first() {
        _ if undecided => expected.fail(Class::WrongContentType),
        Some(b'<') => expected.fail(Class::WrongContentType),
        Some(b'{' | b'[') => expected.whole(body.strip_prefix(MARK).unwrap_or(body)),
        _ => {
            for (name, data) in split(body) {
                expected.event(name, &data);
            }
        }
    }
    let class = expected.class();
    (expected, class)
}

/// All events by the plainest means.
pub(super) fn split(stream: &[u8]) -> Vec<(Name, Vec<u8>)> {
    let events = plain_events(stream).into_iter();
    events.map(|(name, data)| (Name::of(&name), data)).collect()
}
