//! Writes a filter in its one form: the same condition in the same words is the same text.
//!
//! What is written here parses to the same expression again.

use super::lexer::ends_word;
use super::parser::KEYWORDS;
use super::test::Test;
use super::{Expression, name};

/// The text of an expression.
pub(super) fn written(expression: &Expression) -> String {
    let mut out = String::new();
    write(expression, Binding::Loose, &mut out);
    out
}

/// How tightly what stands around an expression binds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    /// Nothing, or parentheses.
    Loose,
    /// `&&`.
    All,
    /// `!`.
    Not,
}

fn write(expression: &Expression, around: Binding, out: &mut String) {
    match expression {
        Expression::Any(parts) => joined(parts, " || ", around > Binding::Loose, Binding::All, out),
        Expression::All(parts) => joined(parts, " && ", around > Binding::All, Binding::Not, out),
        Expression::Not(part) => {
            out.push('!');
            // `!` before a comparison would read as if it were part of it.
            let bare = matches!(&**part, Expression::Not(_))
                || matches!(&**part, Expression::Test(Test::Flag(_) | Test::Has(_)));
            if bare {
                write(part, Binding::Not, out);
            } else {
                out.push('(');
                write(part, Binding::Loose, out);
                out.push(')');
            }
        }
        Expression::Test(test) => write_test(test, out),
    }
}

fn joined(parts: &[Expression], between: &str, enclosed: bool, inside: Binding, out: &mut String) {
    if enclosed {
        out.push('(');
    }
    for (place, part) in parts.iter().enumerate() {
        if place > 0 {
            out.push_str(between);
        }
        write(part, inside, out);
    }
    if enclosed {
        out.push(')');
    }
}

fn write_test(test: &Test, out: &mut String) {
    let text = match test {
        Test::Flag(field) => name(*field).to_owned(),
        Test::Has(field) => format!("has({})", name(*field)),
        Test::Missing(field) => format!("{} == missing", name(*field)),
        Test::Number(field, compare, amount) => {
            let unit = amount.unit.map_or("", |unit| unit.sign);
            format!("{} {} {}{unit}", name(*field), compare.sign(), amount.number)
        }
        Test::Text(field, how, wanted) => {
            format!("{} {} {}", name(*field), how.sign(), value(wanted))
        }
    };
    out.push_str(&text);
}

/// A text as it can stand in a filter: in quotes unless it is a plain word.
#[must_use]
pub fn value(text: &str) -> String {
    let keyword = KEYWORDS.iter().any(|keyword| keyword.eq_ignore_ascii_case(text));
    if !text.is_empty()
        && !keyword
        && !text.chars().any(|letter| ends_word(letter) || letter == '\\')
    {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
