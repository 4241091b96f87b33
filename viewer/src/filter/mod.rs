//! The filter: a line of text that says which requests everything speaks of.
//!
//! ```text
//! ttft > 500ms && input > 8k && session == abc
//! failed || (e2e >= 1.5 min && !stalled)
//! error ~ "out of memory" || has(finish)
//! ```
//!
//! Comparisons of the facts in [`crate::fields`] with `==`, `!=`, `<`, `<=`, `>`, `>=`, and `~` for
//! "contains"; `&&` (`and`), `||` (`or`), `!` (`not`), parentheses. A comparison with a value that
//! the request does not have is false; `ttft == missing` asks for it, and `has(ttft)` for the
//! opposite. Lengths of time need a unit, shares may have one. Any text parses or is refused with
//! the place and what was expected there; long and deep ones are refused. Two filters are equal if
//! they are written the same after [`Filter::text`] has put them into their one form.

mod lexer;
mod parser;
mod printer;
#[cfg(test)]
mod properties;
mod suggest;
pub mod test;

use std::hash::{Hash, Hasher};

use onbeat_shared::run::Run;

use crate::fields::Field;
use test::Test;

pub use printer::value;
pub use suggest::{Completion, completions, is_boundary};

/// The longest filter, in bytes, as typed and in its one form.
pub const LONGEST: usize = 4_000;
/// How deep parentheses and negations may be nested.
pub const DEEPEST: usize = 64;

/// A condition on requests.
#[derive(Clone, Debug)]
pub struct Filter {
    expression: Expression,
    text: Box<str>,
}

/// A condition in its parts.
#[derive(Clone, Debug, PartialEq)]
enum Expression {
    /// At least one holds. Two or more, none of them one of these.
    Any(Vec<Expression>),
    /// All hold. Two or more, none of them one of these.
    All(Vec<Expression>),
    /// It does not hold.
    Not(Box<Expression>),
    /// One test.
    Test(Test),
}

/// Why a text is no filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    /// Where, in bytes from the start of the text; always between two letters.
    pub place: usize,
    /// How many bytes from there are wrong; zero at the text's end.
    pub length: usize,
    /// What was expected, what stands there, and what might be meant.
    pub words: String,
}

impl std::fmt::Display for FilterError {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "at {}: {}", self.place + 1, self.words)
    }
}

impl std::error::Error for FilterError {}

impl Filter {
    /// Reads a filter.
    ///
    /// # Errors
    /// If the text is none: the first place where it cannot go on, and what could stand there.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        let expression = parser::parse(text)?;
        let written = printer::written(&expression);
        // Its one form can be longer or deeper than what was typed, and must be a filter too.
        if written.len() > LONGEST {
            return Err(too_long());
        }
        if let Err(error) = parser::parse(&written) {
            return Err(FilterError { place: 0, length: text.len(), ..error });
        }
        Ok(Self { expression, text: written.into() })
    }

    /// The filter in its one form.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether request `i` passes.
    #[must_use]
    pub fn matches(&self, run: &Run, i: usize) -> bool {
        self.expression.holds(run, i)
    }
}

impl Expression {
    /// Recursion is at most [`DEEPEST`] deep.
    fn holds(&self, run: &Run, i: usize) -> bool {
        match self {
            Self::Any(parts) => parts.iter().any(|part| part.holds(run, i)),
            Self::All(parts) => parts.iter().all(|part| part.holds(run, i)),
            Self::Not(part) => !part.holds(run, i),
            Self::Test(test) => test.holds(run, i),
        }
    }
}

impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Filter {}

impl Hash for Filter {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

fn too_long() -> FilterError {
    let words = format!("a filter has at most {LONGEST} bytes");
    FilterError { place: 0, length: 0, words }
}

/// The name of a field as it is written in a filter.
const fn name(field: Field) -> &'static str {
    field.row().name
}
