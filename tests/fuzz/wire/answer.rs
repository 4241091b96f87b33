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
        every_way(&mut self.reader, &mut self.whole, &mut self.cut, input)
    }
}

/// Reads `input` whole, into `whole`, and in pieces; all must agree and each must be possible.
pub(super) fn every_way(
    reader: &mut AnswerReader,
    whole: &mut Told,
    cut: &mut Told,
    input: &[u8],
) -> Result<(), String> {
    let mut dice = mutation::dice_of(input);
    let behind = if dice.below(4) == 0 { Behind::Reset } else { Behind::Close };
    let streaming = dice.below(4) > 0;
    whole.read(reader, streaming, input, [], behind);
    whole.check()?;
    let way = dice.below(16);
    if way == 0 {
        cut.read(reader, streaming, input, 1..input.len(), behind);
    } else {
        let cuts = mutation::cuts(&mut dice, input.len(), 6);
        if way == 1 {
            // A reader that has read nothing before.
            cut.read(&mut AnswerReader::new(), streaming, input, cuts, behind);
        } else {
            cut.read(reader, streaming, input, cuts, behind);
        }
    }
    if whole.agrees(cut) {
        return Ok(());
    }
    Err(format!("the split matters: whole {whole:?}, cut {cut:?}"))
}
