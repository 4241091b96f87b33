//! Which strings of a JSON document may differ without changing what was read out of it.
//!
//! A [`super::json::Cursor`] notes them on its way, so that [`super::pattern`] need not look for
//! them. Nothing is promised of long documents, which have no patterns.

/// The strings of a document that were counted or passed without being read, in order; those inside
/// of passed arrays and objects are not among them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strings {
    places: [Place; STRINGS_MAX],
    /// More than [`STRINGS_MAX`] when they could not all be noted.
    count: u16,
}

/// Where a string stands, without its quotes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    start: u16,
    end: u16,
    /// Its length was asked for.
    pub(super) is_counted: bool,
}

/// Most strings that are noted: twice what events have.
const STRINGS_MAX: usize = 12;

impl Strings {
    pub(super) const fn new() -> Self {
        Self { places: [Place { start: 0, end: 0, is_counted: false }; STRINGS_MAX], count: 0 }
    }

    /// All of them, unless there were too many.
    pub(super) fn places(&self) -> Option<&[Place]> {
        self.places.get(..usize::from(self.count))
    }

    /// Notes a string of `length` bytes that ends before `end`.
    #[inline]
    pub(super) fn note(&mut self, end: usize, length: usize, is_counted: bool) {
        let (start, end) = (u16::try_from(end - length), u16::try_from(end));
        match (self.places.get_mut(usize::from(self.count)), start, end) {
            (Some(place), Ok(start), Ok(end)) => {
                *place = Place { start, end, is_counted };
                self.count += 1;
            }
            _ => self.count = u16::MAX,
        }
    }
}

impl Place {
    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    pub(super) fn range(&self) -> std::ops::Range<usize> {
        self.start.into()..self.end.into()
    }
}
