//! Reads a filter: pieces of text in, an expression or the first place that is wrong out.
//!
//! Recursive descent, at most [`DEEPEST`] deep: `||` binds loosest, then `&&`, then `!`.

use super::lexer::{Kind, Token, tokens};
use super::suggest::{nearest, nearest_field};
use super::test::{Amount, Compare, Match, Test, unit_named};
use super::{DEEPEST, Expression, FilterError, LONGEST, name, too_long};
use crate::fields::{Field, Measure, Value};

/// Words with a meaning of their own.
pub(super) const KEYWORDS: [&str; 5] = ["missing", "has", "and", "or", "not"];

/// What can stand where a condition begins.
const CONDITION: &str = "a field such as ttft, a word such as failed, ! or (";

/// Reads a whole text.
pub(super) fn parse(text: &str) -> Result<Expression, FilterError> {
    if text.len() > LONGEST {
        return Err(too_long());
    }
    let tokens = tokens(text)?;
    let mut parser = Parser { text, tokens, at: 0, depth: 0 };
    let expression = parser.any()?;
    if parser.at < parser.tokens.len() {
        return Err(parser.unexpected("&& or ||"));
    }
    Ok(expression)
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token<'a>>,
    at: usize,
    depth: usize,
}

type Parsed = Result<Expression, FilterError>;

impl<'a> Parser<'a> {
    fn any(&mut self) -> Parsed {
        let mut parts = vec![self.all()?];
        while self.takes("||", "or") {
            parts.push(self.all()?);
        }
        let flat = parts.into_iter().flat_map(|part| match part {
            Expression::Any(inner) => inner,
            other => vec![other],
        });
        Ok(one_or(flat.collect(), Expression::Any))
    }

    fn all(&mut self) -> Parsed {
        let mut parts = vec![self.negated()?];
        while self.takes("&&", "and") {
            parts.push(self.negated()?);
        }
        let flat = parts.into_iter().flat_map(|part| match part {
            Expression::All(inner) => inner,
            other => vec![other],
        });
        Ok(one_or(flat.collect(), Expression::All))
    }

    fn negated(&mut self) -> Parsed {
        if self.takes("!", "not") {
            self.deeper()?;
            let part = self.negated()?;
            self.depth -= 1;
            return Ok(Expression::Not(Box::new(part)));
        }
        if self.takes_sign("(") {
            self.deeper()?;
            let inside = self.any()?;
            if !self.takes_sign(")") {
                return Err(self.unexpected("&&, || or )"));
            }
            self.depth -= 1;
            return Ok(inside);
        }
        self.test().map(Expression::Test)
    }

    /// One level deeper; what was just taken is what goes too deep.
    fn deeper(&mut self) -> Result<(), FilterError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            self.at -= 1;
            let words = format!("nested more than {DEEPEST} deep");
            return Err(self.wrong(words));
        }
        Ok(())
    }

    fn test(&mut self) -> Result<Test, FilterError> {
        let Some(Kind::Word(word)) = self.kind() else {
            return Err(self.unexpected(CONDITION));
        };
        let word = *word;
        if word.eq_ignore_ascii_case("has") {
            self.at += 1;
            return self.has();
        }
        let field = self.field(word)?;
        if let Value::Flag(_) = field.row().value {
            return Ok(self.flag(field));
        }
        let Some(Kind::Sign(sign)) = self.kind() else {
            return Err(self.no_comparison(field));
        };
        let sign = *sign;
        let compare = Compare::ALL.iter().find(|(written, _)| *written == sign);
        match (compare, sign) {
            (None, "~") => self.contains(field),
            (None, _) => Err(self.no_comparison(field)),
            (Some(&(_, compare)), _) => self.compared(field, compare),
        }
    }

    fn field(&mut self, word: &str) -> Result<Field, FilterError> {
        if let Some(field) = Field::named(word) {
            self.at += 1;
            return Ok(field);
        }
        let meant = nearest_field(word)
            .map_or_else(String::new, |near| format!("; did you mean {}?", name(near)));
        let words = format!("no field is called {}{meant}", shown(word));
        Err(self.wrong(words))
    }

    fn has(&mut self) -> Result<Test, FilterError> {
        if !self.takes_sign("(") {
            return Err(self.unexpected("( as in has(ttft)"));
        }
        let Some(Kind::Word(word)) = self.kind() else {
            return Err(self.unexpected("a field as in has(ttft)"));
        };
        let word = *word;
        let field = self.field(word)?;
        if !self.takes_sign(")") {
            return Err(self.unexpected(")"));
        }
        Ok(Test::Has(field))
    }

    /// A yes-or-no fact, alone or as `stalled == missing`.
    fn flag(&mut self, field: Field) -> Test {
        let tokens = self.tokens.get(self.at..self.at + 2).unwrap_or_default();
        let compared = match tokens {
            [sign, word] if is_missing(&word.kind) => match sign.kind {
                Kind::Sign("==") => Some(Test::Missing(field)),
                Kind::Sign("!=") => Some(Test::Has(field)),
                _ => None,
            },
            _ => None,
        };
        self.at += if compared.is_some() { 2 } else { 0 };
        compared.unwrap_or(Test::Flag(field))
    }

    fn compared(&mut self, field: Field, compare: Compare) -> Result<Test, FilterError> {
        let after = self.tokens.get(self.at + 1);
        if after.is_some_and(|token| is_missing(&token.kind)) {
            let test = match compare {
                Compare::Equal => Test::Missing(field),
                Compare::Unequal => Test::Has(field),
                _ => return Err(self.wrong("only == and != go with missing".to_owned())),
            };
            self.at += 2;
            return Ok(test);
        }
        if let Value::Number(measure, _) = field.row().value {
            self.at += 1;
            return Ok(Test::Number(field, compare, self.amount(field, measure)?));
        }
        let how = match compare {
            Compare::Equal => Match::Is,
            Compare::Unequal => Match::Differs,
            _ => {
                let words = format!("{} is text: compare it with ==, != or ~", name(field));
                return Err(self.wrong(words));
            }
        };
        self.at += 1;
        let value = match field.row().value {
            Value::Word(_, words) => self.one_of(field, &words())?,
            _ => self.text_value(field)?,
        };
        Ok(Test::Text(field, how, value))
    }

    fn contains(&mut self, field: Field) -> Result<Test, FilterError> {
        if !matches!(field.row().value, Value::Text(_) | Value::Word(..)) {
            let words = format!("{} is a number: compare it with ==, <, > and so on", name(field));
            return Err(self.wrong(words));
        }
        self.at += 1;
        Ok(Test::Text(field, Match::Contains, self.text_value(field)?))
    }

    fn text_value(&mut self, field: Field) -> Result<Box<str>, FilterError> {
        let text: Box<str> = match self.kind() {
            Some(Kind::Word(word)) => (*word).into(),
            Some(Kind::Quoted(text)) => text.as_str().into(),
            _ => return Err(self.unexpected(&format!("a text to compare {} with", name(field)))),
        };
        self.at += 1;
        Ok(text)
    }

    /// One of a field's own words, in any case.
    fn one_of(&mut self, field: Field, words: &[&'static str]) -> Result<Box<str>, FilterError> {
        let at = self.at;
        let value = self.text_value(field)?;
        if let Some(word) = words.iter().find(|word| word.eq_ignore_ascii_case(&value)) {
            return Ok((*word).into());
        }
        self.at = at;
        let near = nearest(&value, words.iter().copied());
        let meant = near.map_or_else(
            || format!("; expected one of {}", listed(words)),
            |near| format!("; did you mean {near}?"),
        );
        let words = format!("{} is never {}{meant}", name(field), shown(&value));
        Err(self.wrong(words))
    }

    fn amount(&mut self, field: Field, measure: Measure) -> Result<Amount, FilterError> {
        let expected = format!("a number to compare {} with{}", name(field), example(measure));
        let Some(Kind::Word(word)) = self.kind() else {
            return Err(self.unexpected(&expected));
        };
        let word = *word;
        let digits = word.find(|letter| !is_of_number(letter)).unwrap_or(word.len());
        let (digits, unit) = word.split_at(digits);
        let number = number(digits).ok_or_else(|| self.unexpected(&expected))?;
        let unit = if unit.is_empty() { self.unit_apart(measure) } else { Some(unit) };
        let Some(unit) = unit else {
            self.check_bare(number, measure)?;
            self.at += 1;
            return Ok(Amount { number, unit: None });
        };
        let known = unit_named(measure, unit).ok_or_else(|| {
            let words =
                format!("{} is no unit of {}{}", shown(unit), name(field), example(measure));
            self.wrong(words)
        })?;
        let amount = Amount { number, unit: Some(known) };
        if !amount.value().is_finite() {
            return Err(self.wrong("this number is too large".to_owned()));
        }
        self.at += 1;
        Ok(amount)
    }

    /// A unit that stands apart from its number; it is taken then.
    fn unit_apart(&mut self, measure: Measure) -> Option<&'a str> {
        let Some(Kind::Word(word)) = self.tokens.get(self.at + 1).map(|token| &token.kind) else {
            return None;
        };
        let word = *word;
        unit_named(measure, word)?;
        self.at += 1;
        Some(word)
    }

    /// Whether a number may stand without a unit.
    fn check_bare(&self, number: f64, measure: Measure) -> Result<(), FilterError> {
        let words = match measure {
            Measure::Duration | Measure::Instant if number != 0.0 => {
                "a length of time needs its unit: ns, us, ms, s, min or h"
            }
            Measure::Share if number > 1.0 => "a share is at most 1, or 100%",
            _ => return Ok(()),
        };
        Err(self.wrong(words.to_owned()))
    }

    fn kind(&self) -> Option<&Kind<'a>> {
        self.tokens.get(self.at).map(|token| &token.kind)
    }

    fn takes_sign(&mut self, sign: &str) -> bool {
        let takes = matches!(self.kind(), Some(Kind::Sign(found)) if *found == sign);
        self.at += usize::from(takes);
        takes
    }

    /// Takes a sign, or the word that means the same.
    fn takes(&mut self, sign: &str, word: &str) -> bool {
        let is_word =
            matches!(self.kind(), Some(Kind::Word(found)) if found.eq_ignore_ascii_case(word));
        self.at += usize::from(is_word);
        is_word || self.takes_sign(sign)
    }

    fn no_comparison(&self, field: Field) -> FilterError {
        let signs = match field.row().value {
            Value::Number(..) => "==, !=, <, <=, > or >=",
            _ => "==, != or ~",
        };
        self.unexpected(&format!("{signs} after {}", name(field)))
    }

    /// Something else stands here than what was expected.
    fn unexpected(&self, expected: &str) -> FilterError {
        let found = match self.tokens.get(self.at) {
            None => "nothing more".to_owned(),
            Some(token) => shown(&self.text[token.place..token.place + token.length]),
        };
        self.wrong(format!("expected {expected}, found {found}"))
    }

    /// What stands here is wrong.
    fn wrong(&self, words: String) -> FilterError {
        let here = self.tokens.get(self.at);
        let (place, length) =
            here.map_or((self.text.len(), 0), |token| (token.place, token.length));
        FilterError { place, length, words }
    }
}

/// The only one of these, or all of them together.
fn one_or(mut parts: Vec<Expression>, together: fn(Vec<Expression>) -> Expression) -> Expression {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        Some(last) => {
            parts.push(last);
            together(parts)
        }
        None => together(parts),
    }
}

fn is_missing(kind: &Kind<'_>) -> bool {
    matches!(kind, Kind::Word(word) if word.eq_ignore_ascii_case("missing"))
}

const fn is_of_number(letter: char) -> bool {
    letter.is_ascii_digit() || matches!(letter, '.' | '-' | '+' | '−' | '_')
}

/// A number in plain digits; thousands may be parted by `_`. A comma is none of them: half the
/// world reads it as the other half reads the point.
fn number(digits: &str) -> Option<f64> {
    let plain: String = digits
        .chars()
        .filter(|&letter| letter != '_')
        .map(|letter| if letter == '−' { '-' } else { letter })
        .collect();
    plain.parse().ok().filter(|number: &f64| number.is_finite())
}

/// How numbers of a measure are written, by example.
const fn example(measure: Measure) -> &'static str {
    match measure {
        Measure::Duration => ", such as 500ms or 1.5 s",
        Measure::Instant => ", such as 12s or 1.5 min",
        Measure::Share => ", such as 50% or 0.5",
        Measure::Bytes => ", such as 64 KiB",
        Measure::Count => ", such as 800 or 8k",
        Measure::Label => ", without a unit",
        Measure::Speed => ", such as 40",
    }
}

/// A piece of text as it is quoted in a message: not too long, nothing in it that moves the pen.
fn shown(text: &str) -> String {
    const MOST: usize = 24;
    let mut short: String = text.chars().take(MOST).collect();
    if text.chars().nth(MOST).is_some() {
        short.push('…');
    }
    format!("`{}`", crate::fields::escaped(&short))
}

fn listed(words: &[&str]) -> String {
    const MOST: usize = 12;
    let some: Vec<_> = words.iter().take(MOST).copied().collect();
    let more = if words.len() > MOST { " …" } else { "" };
    format!("{}{more}", some.join(", "))
}
