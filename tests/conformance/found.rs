//! What a check found: nothing wrong, or a line for each thing that is, with what was expected.

use std::fmt::{Debug, Display};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How a check ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Everything was as it must be.
    Passed,
    /// It did not run here, and why.
    Ignored(String),
    /// What was expected and what was found, a line each.
    Failed(Vec<String>),
}

/// What is wrong, gathered: a check goes on after the first thing.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    wrong: Vec<String>,
    late: Vec<String>,
    skipped: Option<String>,
}

impl Findings {
    /// Two values that must be the same.
    pub(crate) fn same<T: PartialEq + Debug + ?Sized>(
        &mut self,
        what: impl Display,
        expected: &T,
        found: &T,
    ) {
        if expected != found {
            self.wrong.push(one_line(&format!("{what}: expected {expected:?}, found {found:?}")));
        }
    }

    /// A statement that must be true; `found` is what there was instead.
    pub(crate) fn holds(&mut self, what: impl Display, holds: bool, found: impl Display) {
        if !holds {
            self.wrong.push(one_line(&format!("expected {what}, found {found}")));
        }
    }

    /// Words that must be in a text, wherever it breaks its lines.
    pub(crate) fn says(&mut self, what: impl Display, text: &str, words: &[&str]) {
        let flat = flat(text);
        for word in words {
            if !flat.contains(word) {
                self.wrong.push(format!("{what}: expected the words {word:?}, found {flat:?}"));
            }
        }
    }

    /// Something that is wrong as it stands.
    pub(crate) fn wrong(&mut self, words: impl Display) {
        self.wrong.push(one_line(&words.to_string()));
    }

    /// Something that took too long, which may be this machine's doing.
    pub(crate) fn late(&mut self, words: impl Display) {
        self.late.push(one_line(&words.to_string()));
    }

    /// Whether nothing is wrong but the time that it took.
    pub(crate) fn only_late(&self) -> bool {
        self.wrong.is_empty() && !self.late.is_empty()
    }

    /// What a part of the check found.
    pub(crate) fn take(&mut self, part: Self) {
        self.wrong.extend(part.wrong);
        self.late.extend(part.late);
        self.skipped = self.skipped.take().or(part.skipped);
    }

    /// The check cannot be made here.
    pub(crate) fn skip(&mut self, why: impl Display) {
        self.skipped = Some(why.to_string());
    }

    fn outcome(mut self) -> Outcome {
        self.wrong.append(&mut self.late);
        match self.skipped {
            _ if !self.wrong.is_empty() => Outcome::Failed(self.wrong),
            Some(why) => Outcome::Ignored(why),
            None => Outcome::Passed,
        }
    }
}

/// What comes of a check that gathers findings.
pub(crate) fn outcome(check: impl FnOnce(&mut Findings)) -> Outcome {
    let mut found = Findings::default();
    check(&mut found);
    found.outcome()
}

/// The outcome of a check, a panic being a failure.
pub(crate) fn caught(check: &dyn Fn() -> Outcome) -> Outcome {
    catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|panic| {
        let words = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("something that is no text");
        Outcome::Failed(vec![one_line(&format!("expected an end, found a panic: {words}"))])
    })
}

/// A text with single spaces where it has line ends and indents.
pub(crate) fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn one_line(words: &str) -> String {
    words.replace('\n', " ")
}
