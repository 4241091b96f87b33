//! Where prompt text comes from: words of known length in tokens, drawn from block ids.
//!
//! Every text is a sequence of " word"s of a fixed list. Each such word is exactly one token in the
//! vocabularies the list was checked against (`cargo x words` repeats the check), so N tokens are N
//! words, joined by nothing, and a prompt has its exact length with no tokenizer at hand. The same
//! id gives the same text on every machine, in every version, on any number of threads. Literal
//! prompts of a trace do not pass through here.

pub mod blocks;
pub mod tokenizer;
pub mod vocabulary;

pub use crate::prompt::blocks::{TextKey, WORDS_PER_DRAW, scope};
pub use crate::prompt::tokenizer::unknown_words;
pub use crate::prompt::vocabulary::WORDS;
