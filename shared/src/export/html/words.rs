//! Foreign text and numbers inside a page: escaped, and as short as they may be.
//!
//! Names and messages come from traces and servers and may hold anything. In markup they go through
//! [`Shown`], in the data of the script through [`script_json`]; there is no third way into a page.

use std::fmt;

use serde::Serialize;

use crate::foreign;

/// A text as markup shows it: on one line, cut where it is long, without any character that markup
/// or a reader could take for more than text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown<'a>(pub(super) &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in foreign::shown(self.0).chars() {
            match letter {
                '&' => out.write_str("&amp;")?,
                '<' => out.write_str("&lt;")?,
                '>' => out.write_str("&gt;")?,
                '"' => out.write_str("&quot;")?,
                '\'' => out.write_str("&#39;")?,
                letter => fmt::Write::write_char(out, letter)?,
            }
        }
        Ok(())
    }
}

/// A value as JSON that cannot end the element it stands in.
///
/// # Errors
/// Never for values of JSON's own types.
pub(super) fn script_json(value: &impl Serialize) -> Result<String, fmt::Error> {
    let json = serde_json::to_string(value).map_err(|_error| fmt::Error)?;
    let mut out = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            letter => out.push(letter),
        }
    }
    Ok(out)
}

/// A coordinate or a value with at most this many decimals, and no zeros at its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Short(pub(super) f64, pub(super) usize);

impl fmt::Display for Short {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.*}", self.1, self.0);
        let text = if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.')
        } else {
            text.as_str()
        };
        out.write_str(if text == "-0" { "0" } else { text })
    }
}

/// A value rounded to six significant digits: more are not shown, and they make a page long.
pub(super) fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    format!("{value:.5e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_foreign_is_markup() {
        let hostile = "</script><img src=x onerror='a(\"b\")'>&amp;\n\u{202e}";
        let shown = Shown(hostile).to_string();
        assert!(!shown.contains(['<', '>', '"', '\'', '\n', '\u{202e}']), "{shown}");
        assert!(shown.starts_with("&lt;/script&gt;&lt;img"), "{shown}");
        let json = script_json(&[hostile]).expect("a text");
        assert!(!json.contains(['<', '>', '&', '\n']), "{json}");
        let back: [String; 1] = serde_json::from_str(&json).expect("JSON");
        assert_eq!(back[0], hostile);
    }

    #[test]
    fn numbers_are_as_short_as_they_may_be() {
        let short = |value: f64| Short(value, 2).to_string();
        assert_eq!([0.0, 1.0, 1.5, 1.239, -0.001, 100.0].map(short), {
            ["0", "1", "1.5", "1.24", "0", "100"].map(str::to_owned)
        });
        assert_eq!(rounded(1_795_962.123_4), 1_795_960.0);
        assert_eq!(rounded(0.123_456_789), 0.123_457);
        assert_eq!(rounded(0.0), 0.0);
    }
}
