//! Whether the words that prompts are made of are one token each in a tokenizer of the user's.
//!
//! Only the vocabulary of a `tokenizer.json` is looked at, not its rules: a word with the space in
//! front of it that is an entry of the vocabulary is one token for every tokenizer that splits at
//! spaces, which those with such files do.

use std::collections::HashSet;
use std::path::Path;

use serde_json::Value;

use crate::prompt::vocabulary::Vocabulary;

/// How vocabularies write the space in front of a word: as byte-level pairs, as `SentencePiece`,
/// and as it is.
const SPACES: [char; 3] = ['\u{120}', '\u{2581}', ' '];

/// How many words of ours are no token in a `tokenizer.json`.
///
/// # Errors
/// Why it cannot be told, as what the file is or does.
pub fn unknown_words(path: &Path) -> Result<usize, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("cannot be read ({error})"))?;
    let no_file = |why: &str| format!("is no tokenizer.json ({why})");
    let file: Value =
        serde_json::from_slice(&bytes).map_err(|error| no_file(&error.to_string()))?;
    let model = file.get("model");
    let vocabulary = model.and_then(|model| model.get("vocab"));
    let vocabulary = vocabulary.ok_or_else(|| no_file("it has no model.vocab"))?;
    let entries = entries(vocabulary).ok_or_else(|| no_file("model.vocab is no vocabulary"))?;
    // A vocabulary of pieces writes the start of a word as the word itself.
    let pieces = model.and_then(|model| model.get("type")).is_some_and(|kind| kind == "WordPiece");
    let known = |word: &str| {
        let spaced = |space: char| entries.contains(format!("{space}{word}").as_str());
        SPACES.into_iter().any(spaced) || pieces && entries.contains(word)
    };
    Ok(Vocabulary::words().filter(|word| !known(word)).count())
}

/// The tokens of a vocabulary: names with their ids, or pairs of a name and its score.
fn entries(vocabulary: &Value) -> Option<HashSet<&str>> {
    match vocabulary {
        Value::Object(names) => Some(names.keys().map(String::as_str).collect()),
        Value::Array(pairs) => pairs.iter().map(|pair| pair.get(0)?.as_str()).collect(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown(text: &str) -> Result<usize, String> {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), text).expect("written");
        unknown_words(file.path())
    }

    #[test]
    fn words_are_found_however_the_space_is_written() {
        let all: Vec<&str> = Vocabulary::words().collect();
        let object = |space: &str, kind: &str, words: &[&str]| {
            let entries = words.iter().zip(0..).map(|(word, id)| format!("\"{space}{word}\":{id}"));
            let entries: Vec<_> = entries.collect();
            format!(r#"{{"model":{{"type":"{kind}","vocab":{{{}}}}}}}"#, entries.join(","))
        };
        assert_eq!(unknown(&object("\u{120}", "BPE", &all)), Ok(0));
        assert_eq!(unknown(&object("\u{2581}", "BPE", &all[7..])), Ok(7));
        assert_eq!(unknown(&object("", "WordPiece", &all)), Ok(0));
        assert_eq!(unknown(&object("", "BPE", &all)), Ok(all.len()));
        let pairs: Vec<_> = all.iter().map(|word| format!("[\"\u{2581}{word}\",-1.5]")).collect();
        let pairs = format!(r#"{{"model":{{"type":"Unigram","vocab":[{}]}}}}"#, pairs.join(","));
        assert_eq!(unknown(&pairs), Ok(0));
        for wrong in ["", "[]", "{}", r#"{"model":{"vocab":3}}"#, r#"{"model":{"vocab":[1]}}"#] {
            let told = unknown(wrong).expect_err("no tokenizer");
            assert!(told.starts_with("is no tokenizer.json ("), "{told}");
        }
        let folder = unknown_words(Path::new("/")).expect_err("a folder");
        assert!(folder.starts_with("cannot be read"), "{folder}");
    }
}
