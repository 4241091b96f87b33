//! Token counts as servers report them, in every spelling that is in use.
//!
//! A field that is absent, null, negative or no whole number is unknown, never zero. Where a server
//! spells the cached count in several ways, the more specific one wins: the details object of the
//! OpenAI dialect first, then the other providers' names in the order of [`CACHED_SPELLINGS`].

use onbeat_shared::log::record::{UNKNOWN_TOKENS, Usage};

use super::json::{Cursor, Malformed, Text};

/// Names of the cached prompt tokens beside the details objects, the strongest first.
const CACHED_SPELLINGS: [&[u8]; 5] = [
    b"cache_read_input_tokens",
    b"prompt_cache_hit_tokens",
    b"cachedContentTokenCount",
    b"cacheReadInputTokens",
    b"cached_tokens",
];

/// Reads the usage object here; `None` if it is no object or says nothing that we know.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Option<Usage>, Malformed> {
    if cursor.peek()? != b'{' {
        cursor.skip()?;
        return Ok(None);
    }
    let mut usage = NOTHING;
    // Rank of the spelling that `cached_tokens` came from: lower is stronger.
    let mut cached_rank = usize::MAX;
    cursor.object(|cursor, key| match key.name(&mut [0; 40]) {
        b"prompt_tokens" => set(&mut usage.prompt_tokens, cursor),
        b"completion_tokens" => set(&mut usage.completion_tokens, cursor),
        b"input_tokens" | b"promptTokenCount" | b"inputTokens" => {
            fill(&mut usage.prompt_tokens, cursor)
        }
        b"output_tokens" | b"candidatesTokenCount" | b"outputTokens" => {
            fill(&mut usage.completion_tokens, cursor)
        }
        b"prompt_tokens_details" | b"input_tokens_details" => {
            let cached = detail(cursor, b"cached_tokens")?;
            if cached != UNKNOWN_TOKENS {
                usage.cached_tokens = cached;
                cached_rank = 0;
            }
            Ok(())
        }
        b"completion_tokens_details" | b"output_tokens_details" => {
            let reasoning = detail(cursor, b"reasoning_tokens")?;
            if reasoning != UNKNOWN_TOKENS {
                usage.reasoning_tokens = reasoning;
            }
            Ok(())
        }
        b"reasoning_tokens" => fill(&mut usage.reasoning_tokens, cursor),
        name => {
            let Some(place) = CACHED_SPELLINGS.iter().position(|&known| known == name) else {
                return cursor.skip();
            };
            let cached = tokens(cursor)?;
            if cached != UNKNOWN_TOKENS && place + 1 < cached_rank {
                usage.cached_tokens = cached;
                cached_rank = place + 1;
            }
            Ok(())
        }
    })?;
    Ok(Some(usage).filter(|&usage| usage != NOTHING))
}

const NOTHING: Usage = Usage {
    prompt_tokens: UNKNOWN_TOKENS,
    completion_tokens: UNKNOWN_TOKENS,
    cached_tokens: UNKNOWN_TOKENS,
    reasoning_tokens: UNKNOWN_TOKENS,
};

/// The count called `wanted` in the details object here.
fn detail(cursor: &mut Cursor<'_>, wanted: &[u8]) -> Result<u32, Malformed> {
    let mut found = UNKNOWN_TOKENS;
    if cursor.peek()? != b'{' {
        cursor.skip()?;
        return Ok(found);
    }
    cursor.object(|cursor, key: Text<'_>| {
        if key.name(&mut [0; 40]) == wanted { set(&mut found, cursor) } else { cursor.skip() }
    })?;
    Ok(found)
}

fn set(slot: &mut u32, cursor: &mut Cursor<'_>) -> Result<(), Malformed> {
    let value = tokens(cursor)?;
    if value != UNKNOWN_TOKENS {
        *slot = value;
    }
    Ok(())
}

/// Like [`set`], for a spelling that gives way to the usual one.
fn fill(slot: &mut u32, cursor: &mut Cursor<'_>) -> Result<(), Malformed> {
    let value = tokens(cursor)?;
    if *slot == UNKNOWN_TOKENS {
        *slot = value;
    }
    Ok(())
}

fn tokens(cursor: &mut Cursor<'_>) -> Result<u32, Malformed> {
    let count = cursor.count_or_skip()?;
    Ok(count.and_then(|count| u32::try_from(count).ok()).unwrap_or(UNKNOWN_TOKENS))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO: u32 = UNKNOWN_TOKENS;

    fn four(json: &str) -> Option<[u32; 4]> {
        let usage = read(&mut Cursor::new(json.as_bytes())).expect("JSON")?;
        Some([
            usage.prompt_tokens,
            usage.completion_tokens,
            usage.cached_tokens,
            usage.reasoning_tokens,
        ])
    }

    #[test]
    fn every_spelling_is_known() {
        for (json, expected) in [
            (r#"{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}"#, [9, 2, NO, NO]),
            (r#"{"input_tokens":9,"output_tokens":2}"#, [9, 2, NO, NO]),
            (r#"{"prompt_tokens":9,"prompt_tokens_details":null}"#, [9, NO, NO, NO]),
            (r#"{"prompt_tokens":9,"prompt_tokens_details":{}}"#, [9, NO, NO, NO]),
            (r#"{"prompt_tokens_details":{"cached_tokens":0}}"#, [NO, NO, 0, NO]),
            (r#"{"input_tokens_details":{"a":[],"cached_tokens":6}}"#, [NO, NO, 6, NO]),
            (r#"{"cache_read_input_tokens":3}"#, [NO, NO, 3, NO]),
            (r#"{"prompt_cache_hit_tokens":3}"#, [NO, NO, 3, NO]),
            (r#"{"cachedContentTokenCount":3}"#, [NO, NO, 3, NO]),
            (r#"{"cacheReadInputTokens":3}"#, [NO, NO, 3, NO]),
            (r#"{"cached_tokens":3}"#, [NO, NO, 3, NO]),
            (r#"{"completion_tokens_details":{"reasoning_tokens":4}}"#, [NO, NO, NO, 4]),
            (r#"{"output_tokens_details":{"reasoning_tokens":4}}"#, [NO, NO, NO, 4]),
            (r#"{"prompt_to\u006bens":5}"#, [5, NO, NO, NO]),
        ] {
            assert_eq!(four(json), Some(expected), "{json}");
        }
    }

    #[test]
    fn the_details_win_in_any_order() {
        let details = r#""prompt_tokens_details":{"cached_tokens":6}"#;
        for json in [
            format!(r#"{{{details},"cached_tokens":1,"cache_read_input_tokens":2}}"#),
            format!(r#"{{"cached_tokens":1,"cache_read_input_tokens":2,{details}}}"#),
        ] {
            assert_eq!(four(&json), Some([NO, NO, 6, NO]), "{json}");
        }
        let two = r#"{"cached_tokens":1,"cache_read_input_tokens":2,"cacheReadInputTokens":3}"#;
        assert_eq!(four(two), Some([NO, NO, 2, NO]));
        assert_eq!(four(r#"{"input_tokens":1,"prompt_tokens":2}"#), Some([2, NO, NO, NO]));
        assert_eq!(four(r#"{"prompt_tokens":2,"input_tokens":1}"#), Some([2, NO, NO, NO]));
    }

    #[test]
    fn silence_is_not_zero() {
        for json in ["null", "{}", r#"{"total_tokens":3}"#, r#"{"prompt_tokens":-1}"#, "[]"] {
            assert_eq!(four(json), None, "{json}");
        }
    }
}
