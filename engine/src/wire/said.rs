//! The text of a document, as it stands there: for whoever wants what a server said, not only how
//! much.
//!
//! Follows [`super::delta`] member by member, but only the choice with index 0, and hands out the
//! insides of its strings with their escapes, which are known to be well formed. Answer text goes
//! before reasoning: an event that has both is one of the answer. Tool calls are no text.

use super::json::{Cursor, Malformed, Text};

/// A piece of text, between its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Said<'a> {
    pub(super) raw: &'a [u8],
    pub(super) reasoning: bool,
}

/// Hands out the pieces of text of a document that was [read](super::delta::read), in order.
pub(super) fn said<'a>(json: &'a [u8], piece: &mut impl FnMut(Said<'a>)) {
    for reasoning in [false, true] {
        let mut found = false;
        let mut choice = |text: Text<'a>| {
            if !text.is_empty() {
                found = true;
                piece(Said { raw: text.raw(), reasoning });
            }
        };
        // It was well formed when it was read.
        let _ = document(json, reasoning, &mut choice);
        if found {
            return;
        }
    }
}

fn document<'a>(
    json: &'a [u8],
    reasoning: bool,
    text: &mut impl FnMut(Text<'a>),
) -> Result<(), Malformed> {
    let mut cursor = Cursor::new(json);
    cursor.peek()?;
    // Of a member that stands there twice the last one counts, here as there.
    let mut choices: &[u8] = b"null";
    cursor.object(|cursor, key| {
        if key.name(&mut [0; 40]) != b"choices" {
            return cursor.skip();
        }
        choices = cursor.raw_value()?;
        Ok(())
    })?;
    if !choices.starts_with(b"[") {
        return Ok(());
    }
    Cursor::new(choices).array(|cursor| {
        if cursor.peek()? != b'{' {
            return cursor.skip();
        }
        // The index may stand behind the text.
        let choice = cursor.raw_value()?;
        if index(choice)? == 0 { self::choice(choice, reasoning, text) } else { Ok(()) }
    })
}

fn index(choice: &[u8]) -> Result<u64, Malformed> {
    let mut found = 0;
    Cursor::new(choice).object(|cursor, key| {
        if key.name(&mut [0; 40]) == b"index" {
            found = cursor.count_or_skip()?.unwrap_or(0);
            return Ok(());
        }
        cursor.skip()
    })?;
    Ok(found)
}

fn choice<'a>(
    choice: &'a [u8],
    reasoning: bool,
    text: &mut impl FnMut(Text<'a>),
) -> Result<(), Malformed> {
    let mut plain = None;
    Cursor::new(choice).object(|cursor, key| {
        match key.name(&mut [0; 40]) {
            b"delta" | b"message" if cursor.peek()? == b'{' => delta(cursor, reasoning, text)?,
            b"text" => plain = cursor.string_or_skip()?,
            _ => cursor.skip()?,
        }
        Ok(())
    })?;
    if let Some(said) = plain.filter(|_| !reasoning) {
        text(said);
    }
    Ok(())
}

fn delta<'a>(
    cursor: &mut Cursor<'a>,
    reasoning: bool,
    text: &mut impl FnMut(Text<'a>),
) -> Result<(), Malformed> {
    let mut content: &[u8] = b"null";
    let (mut refusal, mut thought) = (None, None);
    cursor.object(|cursor, key| {
        match key.name(&mut [0; 40]) {
            b"content" => content = cursor.raw_value()?,
            b"refusal" => refusal = cursor.string_or_skip()?,
            // Some servers send the same reasoning under both names: it is said once.
            b"reasoning_content" | b"reasoning" => {
                let said = cursor.string_or_skip()?;
                let length = |text: Option<Text<'_>>| text.map_or(0, |text| text.len());
                thought = if length(said) > length(thought) { said } else { thought };
            }
            _ => cursor.skip()?,
        }
        Ok(())
    })?;
    // Thinking that is a part of the content goes before what is beside it.
    let mut has_thought = false;
    let mut pass = |said: Text<'a>| {
        has_thought |= !said.is_empty();
        text(said);
    };
    let mut content = Cursor::new(content);
    match content.peek()? {
        b'[' => parts(&mut content, reasoning, &mut pass)?,
        b'"' if !reasoning => pass(content.string()?),
        _ => {}
    }
    let thought = thought.filter(|_| !has_thought);
    if let Some(said) = if reasoning { thought } else { refusal } {
        text(said);
    }
    Ok(())
}

/// The typed parts of a content that is a list, and of the thinking in it.
fn parts<'a>(
    cursor: &mut Cursor<'a>,
    reasoning: bool,
    text: &mut impl FnMut(Text<'a>),
) -> Result<(), Malformed> {
    cursor.array(|cursor| {
        if cursor.peek()? != b'{' {
            return cursor.skip();
        }
        cursor.object(|cursor, key| match key.name(&mut [0; 40]) {
            b"text" if !reasoning => string(cursor, text),
            b"thinking" if reasoning && cursor.peek()? == b'[' => cursor.array(|cursor| {
                if cursor.peek()? != b'{' {
                    return cursor.skip();
                }
                cursor.object(|cursor, key| match key.name(&mut [0; 40]) {
                    b"text" => string(cursor, text),
                    _ => cursor.skip(),
                })
            }),
            b"thinking" if reasoning => string(cursor, text),
            _ => cursor.skip(),
        })
    })
}

fn string<'a>(cursor: &mut Cursor<'a>, text: &mut impl FnMut(Text<'a>)) -> Result<(), Malformed> {
    if let Some(said) = cursor.string_or_skip()? {
        text(said);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(json: &str) -> Vec<(String, bool)> {
        let mut found = Vec::new();
        said(json.as_bytes(), &mut |piece| {
            let raw = String::from_utf8(piece.raw.to_vec()).expect("UTF-8");
            found.push((raw, piece.reasoning));
        });
        found
    }

    #[test]
    fn text_comes_as_it_stands() {
        let answer = |text: &str| vec![(text.to_owned(), false)];
        let thought = |text: &str| vec![(text.to_owned(), true)];
        let delta = |delta: &str| format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#);
        assert_eq!(pieces(&delta(r#"{"content":"a\n\u00e9"}"#)), answer(r"a\n\u00e9"));
        assert_eq!(pieces(r#"{"choices":[{"text":" tok"}]}"#), answer(" tok"));
        assert_eq!(pieces(r#"{"choices":[{"message":{"content":"x"}}],"usage":{}}"#), answer("x"));
        assert_eq!(pieces(&delta(r#"{"reasoning_content":"hm","content":null}"#)), thought("hm"));
        assert_eq!(pieces(&delta(r#"{"reasoning":"hm","reasoning_content":"hm"}"#)), thought("hm"));
        assert_eq!(pieces(&delta(r#"{"reasoning":"hm","content":"so"}"#)), answer("so"));
        assert_eq!(pieces(&delta(r#"{"refusal":"no"}"#)), answer("no"));
        let list = r#"{"content":[{"type":"text","text":"a"},{"text":"b"}]}"#;
        assert_eq!(pieces(&delta(list)), [answer("a"), answer("b")].concat());
        let list = r#"{"content":[{"type":"thinking","thinking":[{"text":"t"}]}]}"#;
        assert_eq!(pieces(&delta(list)), thought("t"));
    }

    #[test]
    fn of_members_that_stand_there_twice_the_last_is_said() {
        let once = |text: &str| vec![(text.to_owned(), false)];
        for (json, said) in [
            (r#"{"choices":[{"text":"d"}],"choices":null}"#, vec![]),
            (r#"{"choices":[{"text":"d"}],"choices":[{"text":"e"}]}"#, once("e")),
            (r#"{"choices":[{"text":"d","text":"e"}]}"#, once("e")),
            (r#"{"choices":[{"delta":{"content":"d","content":"e"}}]}"#, once("e")),
            (r#"{"choices":[{"delta":{"content":"d","content":null}}]}"#, vec![]),
            (r#"{"choices":[{"delta":{"refusal":"d","refusal":"e"}}]}"#, once("e")),
        ] {
            assert_eq!(pieces(json), said, "{json}");
        }
    }

    #[test]
    fn other_choices_and_tool_calls_are_none() {
        for json in [
            r#"{"choices":[{"delta":{"content":"b"},"index":1}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"x"}}]}}]}"#,
            r#"{"choices":[]}"#,
            r#"{"choices":[{"delta":{"content":""}}]}"#,
            r#"{"text":"x","delta":{"content":"x"}}"#,
        ] {
            assert_eq!(pieces(json), [], "{json}");
        }
    }
}
