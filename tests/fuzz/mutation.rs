//! Damage to bytes: what hostile, broken and unlucky peers do to a well-formed input.
//!
//! Knows no grammar, but the bytes that most of the grammars here hang on. Inputs do not grow
//! without bound: what would be longer than [`BYTES_MAX`] is left as it is.

use onbeat_shared::dice::Dice;

/// Longest input that damage makes.
pub const BYTES_MAX: usize = 64 << 10;

/// Bytes that decide something in HTTP, SSE, JSON or CSV.
const DECISIVE: &[u8] = b"\r\n\0 :;,{}[]\"\\0159aAfF-+.eEu\t/<\x7f\x80\xff\xef\xbb\xbf=";

/// Words that do.
const WORDS: &[&[u8]] = &[
    b"\r\n\r\n",
    b"\n\n",
    b"\r",
    b"\r\n",
    b"0\r\n\r\n",
    b"data: ",
    b"data:",
    b"event: error\n",
    b"[DONE]",
    b"null",
    b"true",
    b"{}",
    b"[]",
    b"\"\"",
    b"\\u0000",
    b"\\ud83d",
    b"\\\\",
    b"1e999",
    b"-1",
    b"18446744073709551615",
    b"18446744073709551616",
    b"4294967295",
    b"9223372036854775807",
    b"ffffffffffffffff",
    b"\xef\xbb\xbf",
    b"\xc3\xa9",
    b"\xf0\x9f\x98\x80",
];

/// Numbers at the borders of their types, of which a few bytes are written.
const BORDERS: &[u64] = &[
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x7fff,
    0x8000,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    u64::MAX,
];

/// The numbers that belong to an input: always the same for the same bytes.
#[must_use]
pub fn dice_of(input: &[u8]) -> Dice {
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ input.len() as u64;
    for part in input.chunks(8) {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(0x9fb2_1c65_1e98_df25);
        hash ^= hash >> 32;
    }
    Dice(hash)
}

/// Damages `input` once or a few times.
pub fn damage(dice: &mut Dice, input: &mut Vec<u8>) {
    let times = 1 + dice.below(4) * dice.below(2);
    for _ in 0..times {
        once(dice, input);
    }
}

/// Puts a part of `other` in the place of a part of `input`.
pub fn splice(dice: &mut Dice, input: &mut Vec<u8>, other: &[u8]) {
    let taken = span(dice, other.len());
    let place = span(dice, input.len());
    if input.len() - place.len() + taken.len() <= BYTES_MAX {
        input.splice(place, other[taken].iter().copied());
    }
}

/// Cuts `bytes` at up to `most` places that are drawn.
#[must_use]
pub fn cuts(dice: &mut Dice, length: usize, most: usize) -> Vec<usize> {
    let mut places: Vec<usize> =
        (0..dice.place(most + 1)).map(|_| dice.place(length + 1)).collect();
    places.sort_unstable();
    places
}

fn once(dice: &mut Dice, input: &mut Vec<u8>) {
    let at = dice.place(input.len() + 1);
    match dice.below(10) {
        0 => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << dice.below(8);
            }
        }
        1 | 2 => {
            let byte = a_byte(dice);
            match input.get_mut(at) {
                Some(there) => *there = byte,
                None => input.push(byte),
            }
        }
        3 if input.len() < BYTES_MAX => input.insert(at, a_byte(dice)),
        4 => {
            let gone = span(dice, input.len());
            input.drain(gone);
        }
        5 => input.truncate(at),
        6 if input.len() < BYTES_MAX => {
            let word = WORDS[dice.place(WORDS.len())];
            input.splice(at..at, word.iter().copied());
        }
        7 => {
            let again = span(dice, input.len());
            if input.len() + again.len() <= BYTES_MAX {
                let copy = input[again].to_vec();
                input.splice(at..at, copy);
            }
        }
        8 => {
            let number = BORDERS[dice.place(BORDERS.len())];
            let bytes =
                if dice.below(2) == 0 { number.to_le_bytes() } else { number.to_be_bytes() };
            let width = [1, 2, 4, 8][dice.place(4)];
            let part = if dice.below(2) == 0 { &bytes[..width] } else { &bytes[8 - width..] };
            for (there, byte) in input[at..].iter_mut().zip(part) {
                *there = *byte;
            }
        }
        _ => {
            if let Some(byte) = input.get_mut(at) {
                *byte = byte.wrapping_add([1, 255][dice.place(2)]);
            }
        }
    }
}

fn a_byte(dice: &mut Dice) -> u8 {
    if dice.below(3) == 0 {
        dice.roll().to_le_bytes()[0]
    } else {
        DECISIVE[dice.place(DECISIVE.len())]
    }
}

/// A part of so many bytes; short ones are as likely as long ones.
fn span(dice: &mut Dice, length: usize) -> std::ops::Range<usize> {
    let start = dice.place(length + 1);
    let most = (length - start).min(1 << dice.below(12));
    start..start + dice.place(most + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_bounded_and_drawn_from_its_dice() {
        let mut dice = Dice(7);
        let mut input = Vec::new();
        let mut again = Vec::new();
        for _ in 0..20_000 {
            let mut copy = dice.clone();
            damage(&mut dice, &mut input);
            damage(&mut copy, &mut again);
            assert_eq!(input, again);
            assert!(input.len() <= BYTES_MAX + 32);
            let whole = input.clone();
            splice(&mut dice, &mut input, &whole);
            again.clone_from(&input);
        }
    }

    #[test]
    fn an_input_has_its_own_numbers() {
        assert_eq!(dice_of(b"abc").0, dice_of(b"abc").0);
        assert_ne!(dice_of(b"abc").0, dice_of(b"abd").0);
        assert_ne!(dice_of(b"abc").0, dice_of(b"abc\0").0);
    }
}
