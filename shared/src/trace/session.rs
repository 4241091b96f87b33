//! What the sessions of a trace are called.
//!
//! A session is a conversation whose turns are sent one after the other. Which rows form one is the
//! format reader's business; here are only their names. Rows without any session get fresh names,
//! `session_000000` on, in file order, and those are computed when asked for instead of stored.

use crate::units::SessionIndex;

/// The names of all sessions of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionNames {
    /// This many sessions, each with a fresh name.
    Fresh(u32),
    /// Sessions the file names, in order of first appearance.
    Named(Vec<String>),
    /// Some of either kind, in order of first appearance.
    Mixed(Vec<Name>),
}

/// What one of several kinds of sessions is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// The file names it.
    Given(String),
    /// It has a fresh name with this number.
    Fresh(u32),
}

impl SessionNames {
    /// How many sessions there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Fresh(count) => *count as usize,
            Self::Named(names) => names.len(),
            Self::Mixed(names) => names.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name of one session.
    ///
    /// # Panics
    /// When the trace has no such session.
    #[must_use]
    pub fn name(&self, session: SessionIndex) -> String {
        assert!(session.as_usize() < self.len(), "a session of another trace");
        match self {
            Self::Fresh(_) => fresh(session.0),
            Self::Named(names) => names[session.as_usize()].clone(),
            Self::Mixed(names) => match &names[session.as_usize()] {
                Name::Given(name) => name.clone(),
                Name::Fresh(number) => fresh(*number),
            },
        }
    }

    /// Whether the file names a session, instead of its being one row without a name.
    #[must_use]
    pub fn is_given(&self, session: SessionIndex) -> bool {
        match self {
            Self::Fresh(_) => false,
            Self::Named(_) => true,
            Self::Mixed(names) => matches!(names[session.as_usize()], Name::Given(_)),
        }
    }
}

fn fresh(number: u32) -> String {
    format!("session_{number:06}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fresh_names_count_from_zero_in_six_digits() {
        let names = SessionNames::Fresh(1_000_001);
        assert_eq!(names.name(SessionIndex(0)), "session_000000");
        assert_eq!(names.name(SessionIndex(1_000_000)), "session_1000000");
    }

    #[test]
    fn kinds_may_be_mixed() {
        let names = SessionNames::Mixed(vec![Name::Given("a".to_owned()), Name::Fresh(0)]);
        let called = [0, 1].map(|session| names.name(SessionIndex(session)));
        assert_eq!(called, ["a", "session_000000"]);
        assert_eq!([0, 1].map(|session| names.is_given(SessionIndex(session))), [true, false]);
    }
}
