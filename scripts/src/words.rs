//! `cargo x words`: checks the word list against tokenizers, or derives one from them.
//!
//! The engine's promise that N words are N tokens stands on `engine/assets/words-4096.txt`. Whoever
//! has a model's `tokenizer.json` can test it: `cargo x words --check FILE…` fails when a word with
//! its space in front is not exactly one token, or when a token could reach from one word into the
//! next. `cargo x words --derive FILE… [--without LIST]` prints a list by the rule the embedded one
//! was made by: lower-case ASCII words of two to six letters that are one token in every file,
//! without those in LIST (one a line), the 4,096 shortest (the alphabet decides among equals),
//! sorted.
//!
//! Vocabularies of BPE models are read in both usual spellings of the space (U+0120 of byte-level
//! ones, U+2581 of SentencePiece's), and their merges are carried out, because an entry that no
//! merging reaches is no token. Unigram models are checked for the entry alone. Normalizers and
//! pre-tokenizers are not run: for such words the common ones change nothing. Nothing is
//! downloaded.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use serde::Deserialize;

/// Words in a list: twelve bits choose one.
const WORDS: usize = 4_096;
/// Letters of a word.
const LETTERS: std::ops::RangeInclusive<usize> = 2..=6;
/// Where the list is.
const LIST: &str = "engine/assets/words-4096.txt";
/// Bad words that a message spells out.
const TOLD: usize = 10;

/// Entry point: `--check FILE…` or `--derive FILE… [--without LIST]`.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), String> {
    let usage = "usage: cargo x words --check FILE… | --derive FILE… [--without LIST]";
    let (verb, rest) = arguments.split_first().ok_or(usage)?;
    let (files, without) = match rest.iter().position(|argument| argument == "--without") {
        Some(at) => (&rest[..at], Some(rest.get(at + 1).ok_or(usage)?)),
        None => (rest, None),
    };
    if files.is_empty() {
        return Err(usage.to_owned());
    }
    let models = files.iter().map(Model::read).collect::<Result<Vec<_>, _>>()?;
    match verb.as_str() {
        "--check" => {
            let list = read(&root.join(LIST))?;
            check(&list.lines().collect::<Vec<_>>(), files, &models)
        }
        "--derive" => {
            let without = without.map_or(Ok(String::new()), |file| read(Path::new(file)))?;
            let list = derive(&models, &without.lines().collect());
            for word in &list {
                println!("{word}");
            }
            match list.len() {
                WORDS => Ok(()),
                less => Err(format!("only {less} words are one token in every file")),
            }
        }
        _ => Err(usage.to_owned()),
    }
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Says of each file whether the list holds for it.
fn check(list: &[&str], files: &[String], models: &[Model]) -> Result<(), String> {
    if list.len() != WORDS || !list.is_sorted_by(|a, b| a < b) || !list.iter().all(|w| plain(w)) {
        return Err(format!("{LIST} is not {WORDS} different plain words, sorted"));
    }
    let mut failed = 0;
    for (file, model) in files.iter().zip(models) {
        let bad: Vec<&str> =
            list.iter().copied().filter(|word| !model.is_one_token(word)).collect();
        let joining = model.joining();
        println!(
            "{file}: {} entries, {} of {WORDS} words are one token{}{}",
            model.vocabulary.len(),
            WORDS - bad.len(),
            told(": not ", &bad),
            told("; tokens that reach into the next word: ", &joining),
        );
        failed += usize::from(!bad.is_empty() || !joining.is_empty());
    }
    if failed == 0 {
        return Ok(());
    }
    Err(format!("the list does not hold for {failed} of {} files", files.len()))
}

fn told(before: &str, words: &[&str]) -> String {
    if words.is_empty() {
        return String::new();
    }
    let rest = if words.len() > TOLD { ", …" } else { "" };
    format!("{before}{}{rest}", words[..words.len().min(TOLD)].join(", "))
}

/// The list the files give.
fn derive(models: &[Model], without: &HashSet<&str>) -> Vec<String> {
    let Some((first, others)) = models.split_first() else { return Vec::new() };
    let mut words: Vec<String> = first
        .vocabulary
        .iter()
        .filter_map(|entry| entry.strip_prefix(first.space))
        .filter(|word| plain(word) && !without.contains(word))
        .filter(|word| first.is_one_token(word))
        .filter(|word| others.iter().all(|model| model.is_one_token(word)))
        .map(str::to_owned)
        .collect();
    words.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    words.truncate(WORDS);
    words.sort();
    words
}

fn plain(word: &str) -> bool {
    LETTERS.contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// What a `tokenizer.json` says, as far as it matters here.
struct Model {
    /// How it spells a space.
    space: char,
    vocabulary: HashSet<String>,
    /// Rank of each merge; `None` for models without merges.
    ranks: Option<HashMap<(String, String), usize>>,
    /// Whole words are looked up before anything is merged.
    whole_first: bool,
}

#[derive(Deserialize)]
struct TokenizerFile {
    model: ModelPart,
}

#[derive(Deserialize)]
struct ModelPart {
    vocab: Entries,
    merges: Option<Vec<Merge>>,
    ignore_merges: Option<bool>,
}

/// BPE models list their entries by name, Unigram ones with their scores.
#[derive(Deserialize)]
#[serde(untagged)]
enum Entries {
    Named(HashMap<String, u64>),
    Scored(Vec<(String, f64)>),
}

/// Older files write a merge as one text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Merge {
    Text(String),
    Pair(String, String),
}

impl Model {
    fn read(file: &String) -> Result<Self, String> {
        let opened = File::open(file).map_err(|error| format!("{file}: {error}"))?;
        let parsed: TokenizerFile = serde_json::from_reader(BufReader::new(opened))
            .map_err(|error| format!("{file}: not a tokenizer.json: {error}"))?;
        Self::new(parsed).map_err(|words| format!("{file}: {words}"))
    }

    fn new(file: TokenizerFile) -> Result<Self, String> {
        let ModelPart { vocab, merges, ignore_merges } = file.model;
        let vocabulary: HashSet<String> = match vocab {
            Entries::Named(entries) => entries.into_keys().collect(),
            Entries::Scored(entries) => entries.into_iter().map(|(entry, _)| entry).collect(),
        };
        let spaces = ['\u{120}', '\u{2581}'].map(|space| {
            (vocabulary.iter().filter(|entry| entry.starts_with(space)).count(), space)
        });
        let (count, space) = spaces.into_iter().max().expect("two spellings");
        if count == 0 {
            return Err("no entry starts with a space (U+0120 or U+2581)".to_owned());
        }
        let ranks = merges.map(|merges| {
            let pair = |merge| match merge {
                Merge::Pair(left, right) => Some((left, right)),
                Merge::Text(text) => {
                    text.split_once(' ').map(|(left, right)| (left.to_owned(), right.to_owned()))
                }
            };
            merges.into_iter().filter_map(pair).zip(0..).collect()
        });
        Ok(Self { space, vocabulary, ranks, whole_first: ignore_merges == Some(true) })
    }

    /// Whether " word" is exactly one token.
    fn is_one_token(&self, word: &str) -> bool {
        let text = format!("{}{word}", self.space);
        if !self.vocabulary.contains(&text) {
            return false;
        }
        let Some(ranks) = self.ranks.as_ref().filter(|_| !self.whole_first) else { return true };
        let mut pieces: Vec<String> = text.chars().map(String::from).collect();
        while pieces.len() > 1 {
            let rank = |pair: &[String]| ranks.get(&(pair[0].clone(), pair[1].clone())).copied();
            let ranked =
                pieces.windows(2).enumerate().filter_map(|(at, pair)| Some((rank(pair)?, at)));
            let Some((_, at)) = ranked.min() else { return false };
            let right = pieces.remove(at + 1);
            pieces[at].push_str(&right);
        }
        true
    }

    /// Entries with a space behind a lower-case letter: merging could reach into the next word.
    fn joining(&self) -> Vec<&str> {
        let joins = |entry: &&str| {
            let bytes = entry.as_bytes();
            entry
                .match_indices(self.space)
                .any(|(at, _)| at > 0 && bytes[at - 1].is_ascii_lowercase())
        };
        let mut joining: Vec<&str> =
            self.vocabulary.iter().map(String::as_str).filter(joins).collect();
        joining.sort_unstable();
        joining
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(json: &str) -> Model {
        Model::new(serde_json::from_str(json).expect("a tokenizer")).expect("usable")
    }

    #[test]
    fn an_entry_is_a_token_only_when_merging_reaches_it() {
        let model = model(
            r#"{"model":{"vocab":{"\u0120":0,"a":1,"b":2,"ab":3,"\u0120ab":4,"\u0120a":5,"\u0120ba":6},
                "merges":["a b",["\u0120","ab"],"\u0120 a"]}}"#,
        );
        assert!(model.is_one_token("ab"));
        assert!(!model.is_one_token("ba"), "no merge makes it");
        assert!(!model.is_one_token("abab"), "no entry");
    }

    #[test]
    fn merges_come_in_the_order_of_their_rank() {
        // The space and `a` come first and leave ` a` and `b`, which nothing joins.
        let json = |ignore: bool| {
            format!(
                r#"{{"model":{{"vocab":{{"\u0120":0,"a":1,"b":2,"ab":3,"\u0120ab":4,"\u0120a":5}},
                "merges":["\u0120 a","a b","\u0120 ab"],"ignore_merges":{ignore}}}}}"#
            )
        };
        assert!(!model(&json(false)).is_one_token("ab"));
        assert!(model(&json(true)).is_one_token("ab"), "whole words are looked up first");
    }

    #[test]
    fn unigram_models_and_joining_entries_are_read() {
        let model = model(
            r#"{"model":{"vocab":[["\u2581the",-1.5],["s\u2581t",-2],["\u2581\u2581",-3]]}}"#,
        );
        assert!(model.is_one_token("the"));
        assert_eq!(model.joining(), ["s\u{2581}t"]);
    }

    #[test]
    fn a_list_is_the_shortest_common_words() {
        let one = model(
            r#"{"model":{"vocab":[["\u2581zoo",0],["\u2581an",0],["\u2581bad",0],["\u2581Big",0],["\u2581x",0]]}}"#,
        );
        let two = model(
            r#"{"model":{"vocab":[["\u2581an",0],["\u2581zoo",0],["\u2581bad",0],["\u2581the",0]]}}"#,
        );
        assert_eq!(derive(&[one, two], &HashSet::from(["bad"])), ["an", "zoo"]);
    }
}
