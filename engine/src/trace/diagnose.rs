//! Says in words why a line is not a row, for a person with the file open in an editor.
//!
//! Runs only after the parser refused a line, so it may take its time: it looks for the usual
//! mistakes in the order a reader would (an array instead of lines, a number no number can be, a
//! line that stops, a comma too many) and otherwise repeats what a second parser says.

use serde::de::IgnoredAny;

use crate::trace::error::Fault;
use crate::trace::row::{HASH_IDS, Name, NotAnObject};
use crate::trace::scan::{Members, shown};

/// What is wrong with `line`.
pub(crate) fn fault_of(line: &[u8], refused: &NotAnObject) -> Fault {
    let object = "one JSON object a line, like {\"timestamp\": 0, \"input_length\": 100, …}";
    if let Err(error) = std::str::from_utf8(line) {
        let byte = error.valid_up_to() + 1;
        return Fault::line(format!("bytes that are not UTF-8 at byte {byte}"), "UTF-8 text");
    }
    match line.first() {
        Some(b'[') => return Fault::line("an array (is the whole file one JSON array?)", object),
        Some(b'{') if line.len() == 1 => {
            return Fault::line("an object that goes on over several lines", object);
        }
        Some(b'{') => {}
        _ => return Fault::line(shown(line), object),
    }
    if let Some(fault) = bad_number(line) {
        return fault;
    }
    match serde_json::from_slice::<IgnoredAny>(line) {
        Err(error) if error.is_eof() => Fault::line(
            format!("an unexpected end of the line after {} bytes (is the file cut?)", line.len()),
            object,
        ),
        Err(error) => {
            let column = error.column();
            let rest = line.get(column.saturating_sub(1)..).unwrap_or_default();
            if error.to_string().starts_with("trailing characters") {
                let what = if rest.first() == Some(&b',') { "a comma" } else { "text" };
                return Fault::line(
                    format!("{what} after the object, at column {column}: {}", shown(rest)),
                    object,
                );
            }
            let before = line.get(..column.saturating_sub(1)).unwrap_or_default().trim_ascii_end();
            if before.last() == Some(&b',') && matches!(rest.first(), Some(b'}' | b']')) {
                let what =
                    format!("a comma before the bracket at column {column}: {}", shown(rest));
                return Fault::line(what, object);
            }
            let words = error.to_string();
            let words = words.split(" at line ").next().unwrap_or_default();
            Fault::line(format!("{words} at column {column}: {}", shown(rest)), object)
        }
        Ok(IgnoredAny) if refused.to_string().contains("Unicode") => Fault::line(
            "an escape between \\ud800 and \\udfff that is not one of a pair",
            "text that UTF-8 can hold",
        ),
        Ok(IgnoredAny) => Fault::line(format!("{refused}: {}", shown(line)), object),
    }
}

/// A member whose value is no number a computer can keep.
fn bad_number(line: &[u8]) -> Option<Fault> {
    Members::of(line).find_map(|member| {
        let name = Name::ALL.into_iter().find(|name| member.is_called(name.key()));
        let key = name.map(Name::key).or_else(|| member.is_called(HASH_IDS).then_some(HASH_IDS))?;
        let text = std::str::from_utf8(member.value).ok()?;
        let word = text.trim_start_matches(['-', '+']);
        let not_finite = ["nan", "inf", "infinity"].iter().any(|no| word.eq_ignore_ascii_case(no));
        let numeric = word.starts_with(|first: char| first.is_ascii_digit());
        let too_large = numeric && text.parse().is_ok_and(f64::is_infinite);
        (not_finite || too_large).then(|| Fault::field(key, shown(member.value), "a finite number"))
    })
}

#[cfg(test)]
mod tests {
    use onbeat_shared::trace::blocks::BlockIds;

    use super::*;
    use crate::trace::row::RowParser;

    fn fault(line: &str) -> String {
        let refused = RowParser::new().parse(line.as_bytes(), &mut BlockIds::default());
        fault_of(line.as_bytes(), &refused.expect_err("a bad line")).to_string()
    }

    #[test]
    fn the_usual_mistakes_are_named() {
        for (line, words) in [
            ("[{\"timestamp\":0},", "an array (is the whole file one JSON array?)"),
            ("{\"timestamp\":0},", "a comma after the object, at column 16"),
            ("{\"timestamp\":0} {}", "text after the object"),
            ("{\"timestamp\":0, \"hash_id", "an unexpected end of the line"),
            ("{\"timestamp\":0,}", "a comma before the bracket at column 16"),
            ("{\"timestamp\":NaN}", "field \"timestamp\": found NaN"),
            ("{\"timestamp\":-Infinity}", "field \"timestamp\": found -Infinity"),
            ("{\"timestamp\":1e999}", "field \"timestamp\": found 1e999"),
            ("{", "an object that goes on over several lines"),
            ("timestamp,input_length", "found timestamp,input_length; right would be one JSON"),
            ("{'timestamp':0}", "at column 2"),
            ("{\"timestamp\":0,\"text_input\":\"\\ud83d\"}", "that is not one of a pair"),
        ] {
            let found = fault(line);
            assert!(found.contains(words), "{line}: {found}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_named() {
        let line = b"{\"a\":\"\xff\"}";
        let refused = RowParser::new().parse(line, &mut BlockIds::default());
        let words = fault_of(line, &refused.expect_err("a bad line")).to_string();
        assert!(words.contains("not UTF-8 at byte 7"), "{words}");
    }
}
