//! Whole answers, judged without a second opinion: what must hold for each, and that the way its
//! bytes arrive changes nothing.

use onbeat::wire::AnswerReader;
use onbeat_shared::dice::Dice;

use super::super::{Subject, mutation};
use super::grammar;
use super::told::{Behind, Told};

/// Whole answers.
pub(super) struct Answers {
    reader: AnswerReader,
    whole: Told,
    cut: Told,
}

impl Answers {
    pub(super) fn new() -> Self {
        Self { reader: AnswerReader::new(), whole: Told::default(), cut: Told::default() }
    }
}

impl Subject for Answers {
    fn generate(&mut self, dice: &mut Dice, out: &mut Vec<u8>) {
        grammar::answer(dice, out);
    }

    fn judge(&mut self, input: &[u8]) -> Result<(), String> {
        every_way(&mut self.reader, &mut self.whole, &mut self.cut, input).map(drop)
    }
}

/// Reads `input` whole, into `whole`, and in pieces; all must agree and each must be possible. How
/// the connection ended behind it.
///
/// The reader keeps from answer to answer what it can use again. So the whole is read by a new one,
/// and the pieces by one that has just read the same or nearly the same.
pub(super) fn every_way(
    reader: &mut AnswerReader,
    whole: &mut Told,
    cut: &mut Told,
    input: &[u8],
) -> Result<Behind, String> {
    let mut dice = mutation::dice_of(input);
    let behind = if dice.below(4) == 0 { Behind::Reset } else { Behind::Close };
    let streaming = dice.below(4) > 0;
    *reader = AnswerReader::new();
    whole.read(reader, streaming, input, [], behind);
    whole.check()?;
    cut.silent = dice.below(2) == 0;
    if dice.below(2) == 0 {
        let mut near = input.to_vec();
        mutation::damage(&mut dice, &mut near);
        cut.read(reader, streaming, &near, [], behind);
        cut.check()?;
    }
    if dice.below(32) == 0 {
        cut.read(reader, streaming, input, 1..input.len(), behind);
    } else {
        let cuts = mutation::cuts(&mut dice, input.len(), 6);
        cut.read(reader, streaming, input, cuts, behind);
    }
    if whole.agrees(cut) {
        return Ok(behind);
    }
    Err(format!("the way matters: whole {whole:?}, cut {cut:?}"))
}
