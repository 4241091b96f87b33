//! Single documents: whole, and as an event of a stream that comes three times, so that the second
//! is read by the parser or by the pattern that the first left, whichever it is.

use onbeat::wire::AnswerReader;
use onbeat_shared::dice::Dice;
use onbeat_shared::log::outcome::Class;

use super::super::{Subject, mutation};
use super::events::{HEAD, read_body};
use super::expected::Expected;
use super::grammar;
use super::told::{Behind, Told};

/// Documents as servers send them.
pub(super) struct Documents {
    reader: AnswerReader,
    told: Told,
    answer: Vec<u8>,
}

impl Documents {
    pub(super) fn new() -> Self {
        Self { reader: AnswerReader::new(), told: Told::default(), answer: Vec::new() }
    }

    fn read(&mut self, head: &[u8], body: &[&[u8]], cut: bool) -> Result<(), String> {
        self.answer.clear();
        self.answer.extend_from_slice(head);
        for part in body {
            self.answer.extend_from_slice(part);
        }
        let cuts = cut.then(|| mutation::dice_of(&self.answer).place(self.answer.len()));
        self.told.read(&mut self.reader, true, &self.answer, cuts, Behind::Close);
        self.told.check()
    }
}

impl Subject for Documents {
    fn generate(&mut self, dice: &mut Dice, out: &mut Vec<u8>) {
        grammar::document(dice, out);
    }

    fn judge(&mut self, input: &[u8]) -> Result<(), String> {
        const JSON: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n";
        self.reader = AnswerReader::new();
        self.told.silent = false;
        if matches!(input.trim_ascii_start().first(), Some(b'{' | b'[')) {
            self.read(JSON, &[input], false)?;
            let mut expected = Expected::default();
            expected.whole(input.trim_ascii_start());
            agree(&expected, expected.class(), &self.told)?;
        }
        if input.contains(&b'\n') || input.contains(&b'\r') {
            return Ok(());
        }
        self.told.silent = !input.len().is_multiple_of(2);
        let event: [&[u8]; 3] = [b"data: ", input, b"\n\n"];
        let body = [event, event, event].concat();
        self.read(HEAD, &body, input.len().is_multiple_of(4))?;
        let (expected, class) = read_body(&body.concat());
        agree(&expected, class, &self.told)
    }
}

fn agree(expected: &Expected, class: Class, told: &Told) -> Result<(), String> {
    expected.check(told)?;
    if expected.lenient || told.class() == class {
        return Ok(());
    }
    Err(format!("{:?} instead of {class:?}: {expected:?}", told.class()))
}
