//! What one document of an answer says, by the plainest means: a tree, walked in order.
//!
//! The rules are the ones that `onbeat::wire` states; nothing is shared with it but their words.

use onbeat_shared::log::outcome::FinishReason;
use onbeat_shared::log::record::{ChunkKind, UNKNOWN_TOKENS, Usage};

use super::tree::{self, NoTree, Tree};

/// One choice.
#[derive(Debug, Default)]
pub(super) struct Choice {
    pub(super) index: u64,
    pub(super) text: usize,
    pub(super) reasoning: usize,
    pub(super) tool: usize,
    pub(super) finish: Option<FinishReason>,
    /// Its reason says that nobody went on with it.
    pub(super) given_up: bool,
    /// Pieces of answer text that are not empty, and of reasoning.
    said: Vec<String>,
    thought: Vec<String>,
    /// What `text` says.
    plain: String,
}

/// A document.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) choices: Vec<Choice>,
    pub(super) usage: Option<Usage>,
    pub(super) is_error: bool,
    /// It has a member for choices.
    pub(super) has_choices: bool,
    /// A count is written in a way that the tree does not tell from another.
    pub(super) unsure: bool,
    /// Texts of the choice with index 0, and whether they are reasoning.
    pub(super) texts: Vec<(bool, String)>,
}

/// Reads a document, which must be an object.
pub(super) fn read(json: &[u8]) -> Result<Document, NoTree> {
    let tree = tree::read(json)?;
    if !tree.is_object() {
        return Err(NoTree::Malformed);
    }
    let mut document = Document::default();
    let (mut error, mut is_error) = (false, false);
    for (name, value) in tree.members() {
        match name.as_str() {
            "choices" => {
                document.has_choices = true;
                document.choices.clear();
                for element in value.elements().iter().filter(|element| element.is_object()) {
                    let choice = choice(element, &mut document);
                    document.choices.push(choice);
                }
            }
            "usage" => document.usage = usage(value, &mut document.unsure).or(document.usage),
            "error" => {
                error = match value {
                    Tree::Null | Tree::Bool(false) => false,
                    Tree::Text(text) => !text.is_empty(),
                    Tree::List(elements) => !elements.is_empty(),
                    _ => true,
                }
            }
            "object" => is_error = value.text() == "error",
            _ => {}
        }
    }
    document.is_error = error || is_error;
    let of_first = || document.choices.iter().filter(|choice| choice.index == 0);
    let said = of_first().flat_map(|choice| &choice.said).map(|text| (false, text.clone()));
    document.texts = said.collect();
    if document.texts.is_empty() {
        let of_first = document.choices.iter().filter(|choice| choice.index == 0);
        let thought = of_first.flat_map(|choice| &choice.thought);
        document.texts = thought.map(|text| (true, text.clone())).collect();
    }
    Ok(document)
}

impl Choice {
    pub(super) fn bytes(&self) -> usize {
        self.text + self.reasoning + self.tool
    }

    pub(super) fn kind(&self) -> ChunkKind {
        let mut kind = ChunkKind(0);
        for (bytes, bit) in [
            (self.text, ChunkKind::TEXT),
            (self.reasoning, ChunkKind::REASONING),
            (self.tool, ChunkKind::TOOL),
        ] {
            kind = if bytes > 0 { kind.with(bit) } else { kind };
        }
        kind
    }

    fn say(&mut self, text: &str) {
        if !text.is_empty() {
            self.said.push(text.to_owned());
        }
    }
}

fn choice(tree: &Tree, document: &mut Document) -> Choice {
    let mut choice = Choice::default();
    for (name, value) in tree.members() {
        match name.as_str() {
            "index" => choice.index = count(value, &mut document.unsure).unwrap_or(0),
            "delta" | "message" => delta(value, &mut choice),
            "text" => {
                choice.text = value.text().len();
                choice.plain = value.text().to_owned();
            }
            "finish_reason" => {
                choice.finish = match value.text() {
                    "" => None,
                    "stop" => Some(FinishReason::Stop),
                    "length" => Some(FinishReason::Length),
                    "tool_calls" | "function_call" => Some(FinishReason::ToolCalls),
                    "content_filter" => Some(FinishReason::ContentFilter),
                    _ => Some(FinishReason::Other),
                };
                choice.given_up = matches!(
                    value.text(),
                    "abort" | "aborted" | "error" | "cancelled" | "canceled" | "timeout"
                );
            }
            "usage" => document.usage = usage(value, &mut document.unsure).or(document.usage),
            _ => {}
        }
    }
    let plain = std::mem::take(&mut choice.plain);
    choice.say(&plain);
    choice
}

fn delta(tree: &Tree, choice: &mut Choice) {
    let (mut content, mut refusal, mut thought) = (&Tree::Null, "", "");
    let mut has_content = false;
    for (name, value) in tree.members() {
        match name.as_str() {
            "content" => (content, has_content) = (value, true),
            "reasoning_content" | "reasoning" => {
                thought = if value.text().len() > thought.len() { value.text() } else { thought };
            }
            "refusal" => refusal = value.text(),
            "tool_calls" => {
                for (name, value) in value.elements().iter().flat_map(Tree::members) {
                    if name == "function" {
                        choice.tool += function(value);
                    }
                }
            }
            "function_call" => choice.tool += function(value),
            _ => {}
        }
    }
    if has_content {
        choice.text = 0;
    }
    let parts = content.elements().iter().flat_map(Tree::members);
    let parts = parts.filter(|member| member.0 == "text").map(|member| member.1.text());
    for text in [content.text()].into_iter().chain(parts).chain([refusal]) {
        choice.text += text.len();
        choice.say(text);
    }
    let mut thoughts: Vec<&str> = thinking(content).filter(|text| !text.is_empty()).collect();
    if thoughts.is_empty() {
        thoughts.extend(Some(thought).filter(|text| !text.is_empty()));
    }
    let bytes = thoughts.iter().map(|text| text.len()).sum();
    choice.reasoning = if thinking(content).any(|text| !text.is_empty()) {
        bytes
    } else {
        choice.reasoning.max(bytes)
    };
    choice.thought.extend(thoughts.into_iter().map(str::to_owned));
}

/// The thoughts in a content that is a list.
fn thinking(content: &Tree) -> impl Iterator<Item = &str> {
    let parts = content.elements().iter().flat_map(Tree::members);
    parts.filter(|member| member.0 == "thinking").flat_map(|(_, value)| {
        let inner = value.elements().iter().flat_map(Tree::members);
        let inner = inner.filter(|member| member.0 == "text").map(|member| member.1.text());
        [value.text()].into_iter().chain(inner)
    })
}

fn function(tree: &Tree) -> usize {
    let counted = |name: &str| name == "name" || name == "arguments";
    let members = tree.members().iter().filter(|member| counted(&member.0));
    members.map(|member| member.1.text().len()).sum()
}

fn count(tree: &Tree, unsure: &mut bool) -> Option<u64> {
    match tree {
        Tree::Count(count) => Some(*count),
        Tree::Float => {
            *unsure = true;
            None
        }
        _ => None,
    }
}

/// Tokens; a count that does not fit is none.
fn tokens(tree: &Tree, unsure: &mut bool) -> Option<u32> {
    let count = count(tree, unsure).and_then(|count| u32::try_from(count).ok());
    count.filter(|&count| count != UNKNOWN_TOKENS)
}

fn usage(tree: &Tree, unsure: &mut bool) -> Option<Usage> {
    const CACHED: [&str; 5] = [
        "cache_read_input_tokens",
        "prompt_cache_hit_tokens",
        "cachedContentTokenCount",
        "cacheReadInputTokens",
        "cached_tokens",
    ];
    let (mut prompt, mut completion, mut reasoning) = (None, None, None);
    let (mut cached, mut rank) = (None, usize::MAX);
    for (name, value) in tree.members() {
        let mut inner = |wanted: &str| {
            let members = value.members().iter().filter(|member| member.0 == wanted);
            members.filter_map(|member| tokens(&member.1, unsure)).last()
        };
        match name.as_str() {
            "prompt_tokens_details" | "input_tokens_details" => {
                if let Some(found) = inner("cached_tokens") {
                    (cached, rank) = (Some(found), 0);
                }
            }
            "completion_tokens_details" | "output_tokens_details" => {
                reasoning = inner("reasoning_tokens").or(reasoning);
            }
            "prompt_tokens" => prompt = tokens(value, unsure).or(prompt),
            "completion_tokens" => completion = tokens(value, unsure).or(completion),
            "input_tokens" | "promptTokenCount" | "inputTokens" => {
                prompt = prompt.or(tokens(value, unsure));
            }
            "output_tokens" | "candidatesTokenCount" | "outputTokens" => {
                completion = completion.or(tokens(value, unsure));
            }
            "reasoning_tokens" => reasoning = reasoning.or(tokens(value, unsure)),
            _ => {
                let place = CACHED.iter().position(|known| known == name);
                if let Some(place) = place
                    && let Some(found) = tokens(value, unsure)
                    && place + 1 < rank
                {
                    (cached, rank) = (Some(found), place + 1);
                }
            }
        }
    }
    let known = [prompt, completion, cached, reasoning];
    let [prompt, completion, cached, reasoning] = known.map(|it| it.unwrap_or(UNKNOWN_TOKENS));
    known.iter().any(Option::is_some).then_some(Usage {
        prompt_tokens: prompt,
        completion_tokens: completion,
        cached_tokens: cached,
        reasoning_tokens: reasoning,
    })
}
