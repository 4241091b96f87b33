//! Texts of what was scraped, put together from their parts.
//!
//! A part that a damaged log tells differently a second time changes nothing; a text of which a
//! part is missing is not known.

use std::collections::BTreeMap;

use super::record::TEXT_PART_BYTES;

/// Most texts, and most series, that are kept: a run's own are a few thousand at most, and a log
/// that claims more is none of ours.
pub(crate) const KNOWN_MAX: usize = 1 << 14;

/// Texts by their numbers, as far as they are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Texts(BTreeMap<u32, Parts>);

#[derive(Clone, Debug, Default)]
struct Parts {
    parts: u8,
    known: BTreeMap<u8, Vec<u8>>,
}

impl Texts {
    /// Takes a part.
    pub(crate) fn take(&mut self, number: u32, (part, parts): (u8, u8), bytes: &[u8]) {
        debug_assert!(bytes.len() <= TEXT_PART_BYTES, "a part is no longer than a record");
        if self.0.len() == KNOWN_MAX && !self.0.contains_key(&number) {
            return;
        }
        let text = self.0.entry(number).or_default();
        text.parts = parts;
        text.known.entry(part).or_insert_with(|| bytes.to_vec());
    }

    /// A text, if all of it is known.
    pub(crate) fn whole(&self, number: u32) -> Option<String> {
        self.0.get(&number)?.whole()
    }

    /// All texts that are known, by their numbers.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u32, String)> {
        self.0.iter().filter_map(|(&number, parts)| Some((number, parts.whole()?)))
    }
}

impl Parts {
    fn whole(&self) -> Option<String> {
        let parts = (0..self.parts).map(|part| self.known.get(&part));
        let known = parts.collect::<Option<Vec<_>>>()?;
        let bytes: Vec<u8> = known.into_iter().flatten().copied().collect();
        (self.parts > 0).then(|| String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_known_once_all_its_parts_are() {
        let mut texts = Texts::default();
        texts.take(7, (1, 2), b"b");
        assert_eq!(texts.whole(7), None);
        texts.take(7, (0, 2), b"a");
        texts.take(7, (1, 2), b"other");
        assert_eq!(texts.whole(7).as_deref(), Some("ab"));
        assert_eq!(texts.all().collect::<Vec<_>>(), [(7, "ab".to_owned())]);
        assert_eq!(texts.whole(8), None);
    }
}
