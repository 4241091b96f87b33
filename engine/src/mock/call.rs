//! What a request to generate asks for, out of its JSON body.
//!
//! Fields of the OpenAI dialect that change nothing here (temperature and the like) are accepted
//! and ignored. A prompt is a string, a list of token ids, or a list of one of those; a chat's
//! content is a string or a list of text parts. Tool calls and roles carry no tokens.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, SeqAccess, Visitor};

use super::MockConfig;
use super::model::Job;
use super::tokens::{Chain, mix, unit};

/// Which endpoint was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `/v1/completions`.
    Completion,
    /// `/v1/chat/completions`.
    Chat,
}

/// A request to generate, as meant.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) kind: Kind,
    pub(super) job: Job,
    pub(super) stream: bool,
    /// A stream ends with a usage event.
    pub(super) include_usage: bool,
    /// Every event of a stream carries usage.
    pub(super) continuous_usage: bool,
    /// The model stops by itself before the maximum.
    pub(super) stops_early: bool,
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) message: String,
}

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    #[serde(borrow)]
    prompt: Option<Text<'a>>,
    #[serde(borrow)]
    messages: Option<Vec<Message<'a>>>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    min_tokens: Option<u64>,
    ignore_eos: Option<bool>,
    n: Option<u64>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
    continuous_usage_stats: Option<bool>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Option<Text<'a>>,
}

/// Text in any of the forms a prompt or a message may have.
enum Text<'a> {
    Plain(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

/// An element of a list that stands for text.
enum Part<'a> {
    Plain(Cow<'a, str>),
    Token(u64),
    Tokens(Vec<u64>),
    /// An object without text: an image, say.
    Other,
}

impl Call {
    /// Reads the body of a request to `kind`.
    pub(super) fn read(kind: Kind, body: &[u8], config: &MockConfig) -> Result<Self, Refusal> {
        let fields: Fields<'_> = serde_json::from_slice(body)
            .map_err(|error| refuse(400, format!("the body is not what it should be: {error}")))?;
        if let Some(model) = fields.model.as_deref()
            && config.strict_model
            && model != config.model
        {
            return Err(refuse(404, format!("The model `{model}` does not exist.")));
        }
        if fields.n.unwrap_or(1) != 1 {
            return Err(refuse(400, "n: only 1 is supported".into()));
        }
        let prompt = prompt(kind, &fields, config)?;
        let options = fields.stream_options.as_ref();
        let (output_tokens, stops_early) = output_tokens(&fields, &prompt, config)?;
        Ok(Self {
            kind,
            job: Job { prompt, output_tokens },
            stream: fields.stream.unwrap_or(false),
            include_usage: options.and_then(|options| options.include_usage).unwrap_or(false),
            continuous_usage: options
                .and_then(|options| options.continuous_usage_stats)
                .unwrap_or(false),
            stops_early,
        })
    }
}

fn prompt(kind: Kind, fields: &Fields<'_>, config: &MockConfig) -> Result<Chain, Refusal> {
    let mut prompt = Chain::new(config.block_tokens);
    match kind {
        Kind::Completion => {
            let text =
                fields.prompt.as_ref().ok_or_else(|| refuse(400, "prompt: missing".into()))?;
            if let Text::Parts(parts) = text {
                let several = parts.len() > 1 && !parts.iter().all(Part::is_token);
                if several {
                    return Err(refuse(400, "prompt: only one prompt a request".into()));
                }
            }
            text.add_to(&mut prompt);
        }
        Kind::Chat => {
            let messages =
                fields.messages.as_ref().ok_or_else(|| refuse(400, "messages: missing".into()))?;
            for _ in 0..config.template_tokens {
                prompt.token(0);
            }
            for text in messages.iter().filter_map(|message| message.content.as_ref()) {
                text.add_to(&mut prompt);
            }
        }
    }
    if prompt.tokens() == 0 {
        return Err(refuse(400, "the prompt has no tokens".into()));
    }
    Ok(prompt)
}

/// How many tokens the answer gets, and whether that is fewer than it could have had.
fn output_tokens(
    fields: &Fields<'_>,
    prompt: &Chain,
    config: &MockConfig,
) -> Result<(u32, bool), Refusal> {
    let context = u64::from(config.context_tokens);
    let prompt_tokens = u64::from(prompt.tokens());
    let asked = fields.max_completion_tokens.or(fields.max_tokens);
    if asked == Some(0) {
        return Err(refuse(400, "max_tokens: at least 1".into()));
    }
    let room = context.saturating_sub(prompt_tokens);
    let max = asked.unwrap_or_else(|| u64::from(config.default_max_tokens).min(room));
    if max == 0 || prompt_tokens.saturating_add(max) > context {
        return Err(refuse(
            400,
            format!(
                "This model's maximum context length is {context} tokens. However, you requested \
                 {} tokens ({prompt_tokens} in the prompt, {max} in the completion).",
                prompt_tokens.saturating_add(max),
            ),
        ));
    }
    let max = u32::try_from(max).unwrap_or(u32::MAX);
    let (Some(mean), false) = (config.early_stop, fields.ignore_eos.unwrap_or(false)) else {
        return Ok((max, false));
    };
    // The same prompt stops at the same place: an exponential length, drawn from what was asked.
    let draw = unit(mix(mix(config.seed ^ 1) ^ prompt.state()));
    let length = (-mean * (1.0 - draw).ln()).ceil().clamp(1.0, f64::from(u32::MAX));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped above")]
    let length = length as u32;
    let min = u32::try_from(fields.min_tokens.unwrap_or(0)).unwrap_or(u32::MAX);
    let length = length.max(min).min(max);
    Ok((length, length < max))
}

fn refuse(status: u16, message: String) -> Refusal {
    Refusal { status, message }
}

impl Text<'_> {
    fn add_to(&self, chain: &mut Chain) {
        match self {
            Self::Plain(text) => chain.text(text),
            Self::Parts(parts) => {
                for part in parts {
                    match part {
                        Part::Plain(text) => chain.text(text),
                        Part::Token(id) => chain.token(mix(*id)),
                        Part::Tokens(ids) => ids.iter().for_each(|&id| chain.token(mix(id))),
                        Part::Other => {}
                    }
                }
            }
        }
    }
}

impl Part<'_> {
    fn is_token(&self) -> bool {
        matches!(self, Self::Token(_))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a string or a list")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text::Plain(Cow::Borrowed(text)))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text::Plain(Cow::Owned(text.to_owned())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Text<'de>, A::Error> {
                let mut parts = Vec::new();
                while let Some(part) = list.next_element()? {
                    parts.push(part);
                }
                Ok(Text::Parts(parts))
            }
        }
        from.deserialize_any(TextVisitor)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Part<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct PartVisitor;
        impl<'de> Visitor<'de> for PartVisitor {
            type Value = Part<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a string, a token id, a list of token ids, or a content part")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Part<'de>, E> {
                Ok(Part::Plain(Cow::Borrowed(text)))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Part<'de>, E> {
                Ok(Part::Plain(Cow::Owned(text.to_owned())))
            }

            fn visit_u64<E: de::Error>(self, id: u64) -> Result<Part<'de>, E> {
                Ok(Part::Token(id))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Part<'de>, A::Error> {
                let mut ids = Vec::new();
                while let Some(id) = list.next_element()? {
                    ids.push(id);
                }
                Ok(Part::Tokens(ids))
            }

            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Part<'de>, A::Error> {
                let mut part = Part::Other;
                while let Some(key) = map.next_key::<Cow<'de, str>>()? {
                    if key == "text" {
                        if let Some(Text::Plain(text)) = map.next_value()? {
                            part = Part::Plain(text);
                        }
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(part)
            }
        }
        from.deserialize_any(PartVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: Kind, body: &str, config: &MockConfig) -> Result<Call, Refusal> {
        Call::read(kind, body.as_bytes(), config)
    }

    fn tokens(kind: Kind, body: &str) -> u32 {
        read(kind, body, &MockConfig::default()).expect(body).job.prompt.tokens()
    }

    #[test]
    fn prompts_are_counted_in_every_form() {
        for (body, expected) in [
            (r#"{"prompt":" one two three"}"#, 3),
            (r#"{"prompt":"one\u0020two\n\"three\""}"#, 3),
            (r#"{"prompt":["one two"]}"#, 2),
            (r#"{"prompt":[7,8,9,10]}"#, 4),
            (r#"{"prompt":[[7,8]]}"#, 2),
        ] {
            assert_eq!(tokens(Kind::Completion, body), expected, "{body}");
        }
        for (body, expected) in [
            (r#"{"messages":[{"role":"user","content":"one two"}]}"#, 2),
            (
                r#"{"messages":[{"role":"system","content":" a b"},{"role":"user","content":"c"}]}"#,
                3,
            ),
            (r#"{"messages":[{"content":[{"type":"text","text":"a b"},{"type":"image"}]}]}"#, 2),
            (
                r#"{"messages":[{"role":"assistant","content":null,"tool_calls":[1]},{"content":"a"}]}"#,
                1,
            ),
        ] {
            assert_eq!(tokens(Kind::Chat, body), expected, "{body}");
        }
        let template = MockConfig { template_tokens: 5, ..MockConfig::default() };
        let chat = read(Kind::Chat, r#"{"messages":[{"content":"a"}]}"#, &template).expect("good");
        assert_eq!(chat.job.prompt.tokens(), 6);
    }

    #[test]
    fn lengths_follow_the_request() {
        let length = |fields: &str, config: &MockConfig| {
            let body = format!(r#"{{"prompt":"a b"{fields}}}"#);
            read(Kind::Completion, &body, config).map(|call| call.job.output_tokens)
        };
        let plain = MockConfig { context_tokens: 300, ..MockConfig::default() };
        assert_eq!(length("", &plain), Ok(128));
        assert_eq!(length(r#","max_tokens":7"#, &plain), Ok(7));
        assert_eq!(length(r#","max_tokens":7,"max_completion_tokens":9"#, &plain), Ok(9));
        assert_eq!(length(r#","max_tokens":298"#, &plain), Ok(298));
        let too_long = length(r#","max_tokens":299"#, &plain).expect_err("too long");
        assert_eq!(too_long.status, 400);
        assert!(too_long.message.contains("maximum context length is 300 tokens"), "{too_long:?}");
        assert!(length(r#","max_tokens":0"#, &plain).is_err());
        assert!(length(r#","max_tokens":-1"#, &plain).is_err());
        let early = MockConfig { early_stop: Some(20.0), ..plain };
        let drawn = length(r#","max_tokens":250"#, &early).expect("good");
        assert!(drawn < 250);
        assert_eq!(length(r#","max_tokens":250"#, &early), Ok(drawn));
        assert_eq!(length(r#","max_tokens":250,"min_tokens":240"#, &early), Ok(240));
        assert_eq!(length(r#","max_tokens":250,"ignore_eos":true"#, &early), Ok(250));
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        let strict = MockConfig { strict_model: true, ..MockConfig::default() };
        for (kind, body, status) in [
            (Kind::Completion, "{", 400),
            (Kind::Completion, "[]", 400),
            (Kind::Completion, r#"{"max_tokens":3}"#, 400),
            (Kind::Completion, r#"{"prompt":""}"#, 400),
            (Kind::Completion, r#"{"prompt":["a","b"]}"#, 400),
            (Kind::Completion, r#"{"prompt":"a","n":2}"#, 400),
            (Kind::Completion, r#"{"prompt":7}"#, 400),
            (Kind::Chat, r#"{"prompt":"a"}"#, 400),
            (Kind::Chat, r#"{"messages":[]}"#, 400),
            (Kind::Completion, r#"{"prompt":"a","model":"other"}"#, 404),
        ] {
            let refusal = read(kind, body, &strict).expect_err(body);
            assert_eq!(refusal.status, status, "{body}: {}", refusal.message);
        }
        let lenient = MockConfig::default();
        assert!(read(Kind::Completion, r#"{"prompt":"a","model":"other"}"#, &lenient).is_ok());
    }

    #[test]
    fn streams_are_asked_for() {
        let body = r#"{"prompt":"a","stream":true,"temperature":0,
            "stream_options":{"include_usage":true,"continuous_usage_stats":true}}"#;
        let call = read(Kind::Completion, body, &MockConfig::default()).expect("good");
        assert!(call.stream && call.include_usage && call.continuous_usage);
        let null = r#"{"prompt":"a","stream":null,"stream_options":null}"#;
        let call = read(Kind::Completion, null, &MockConfig::default()).expect("good");
        assert!(!call.stream && !call.include_usage && !call.continuous_usage);
    }
}
