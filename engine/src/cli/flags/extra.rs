//! `--extra-inputs` as typed: members for every body, some of which may be secrets.
//!
//! Bodies get every member as it was typed. The log and messages get numbers, yes and no, and the
//! few words that parameters of an endpoint choose from, at any depth; every other text stands
//! there as `[text]`, since it may be a prompt or a key. A member whose name says that it is secret
//! (keys, tokens, passwords and the like) stands there as `[secret]`, whatever it is.

use std::fmt;

use onbeat_shared::secret_names::is_secret;
use serde::{Serialize, Serializer};
use serde_json::{Map, Number, Value};

use crate::render::Secret;

/// One `--extra-inputs` as typed.
#[derive(Clone, PartialEq, Eq, schemars::JsonSchema)]
#[schemars(with = "serde_json::Value")]
pub struct ExtraFlag {
    members: Map<String, Value>,
    /// Why there are none.
    fault: Option<String>,
}

/// What stands in the place of a text in the log.
const TEXT: &str = "[text]";

/// Texts that the log keeps: what endpoints let a parameter choose from. Anything else may be
/// anything.
const CHOICES: [&str; 24] = [
    "",
    "assistant",
    "auto",
    "base64",
    "default",
    "disabled",
    "enabled",
    "flex",
    "float",
    "function",
    "grammar",
    "high",
    "json",
    "json_object",
    "json_schema",
    "low",
    "medium",
    "minimal",
    "none",
    "priority",
    "regex",
    "required",
    "string",
    "text",
];

impl ExtraFlag {
    /// Takes any text: a message of clap's about a bad one would repeat it, and it may hold a key.
    /// [`Self::fault`] says what is wrong.
    #[must_use]
    pub fn new(text: &str) -> Self {
        match members(text) {
            Ok(members) => Self { members, fault: None },
            Err(fault) => Self { members: Map::new(), fault: Some(fault) },
        }
    }

    /// The members as they are sent.
    #[must_use]
    pub const fn members(&self) -> &Map<String, Value> {
        &self.members
    }

    /// What of them the log does not hold, for whoever must not repeat it.
    #[must_use]
    pub fn secrets(&self) -> Vec<Secret> {
        let mut found = Vec::new();
        texts(&self.members, &mut found);
        found
    }

    /// What is wrong with it and what would be right, without repeating it.
    #[must_use]
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }
}

impl Serialize for ExtraFlag {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        without_secrets(&self.members).serialize(serializer)
    }
}

impl fmt::Debug for ExtraFlag {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("ExtraFlag").field(&without_secrets(&self.members)).finish()
    }
}

fn members(text: &str) -> Result<Map<String, Value>, String> {
    let right = "give `key:value`, like `temperature:0.5`, or a JSON object";
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text)
            .map_err(|error| format!("no JSON object: {error}; {right}"));
    }
    let mut members = Map::new();
    for part in parts(text) {
        let pair = part.split_once(':').map(|(key, value)| (key.trim(), value.trim()));
        let pair = pair.filter(|(key, _)| !key.is_empty());
        let (key, value) = pair.ok_or_else(|| {
            let hint = if members.is_empty() {
                ""
            } else {
                "; commas part members, so a text with one stands in quotes: `stop:\"a,b\"`"
            };
            format!("no key and value; {right}{hint}")
        })?;
        members.insert(key.to_owned(), value_of(value));
    }
    Ok(members)
}

/// The members of a list, which commas part where they stand in no quotes and no brackets.
fn parts(text: &str) -> Vec<&str> {
    let (mut parts, mut from) = (Vec::new(), 0);
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => depth += 1,
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            b',' if !quoted && depth == 0 => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts
}

/// A value as AIPerf takes it: Python's words for nothing, yes and no, and numbers with a bare
/// point, besides JSON. What is none of these is a text: `stop:END` needs no quotes.
fn value_of(text: &str) -> Value {
    match text.to_ascii_lowercase().as_str() {
        "none" | "null" => return Value::Null,
        "true" => return Value::Bool(true),
        "false" => return Value::Bool(false),
        _ => {}
    }
    if let Ok(value) = serde_json::from_str(text) {
        return value;
    }
    // Not `007` or `+3`: an id stays one.
    let plain = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-');
    let number = text.bytes().all(plain) && text.contains('.');
    let number = if number { text.parse::<f64>().ok() } else { None };
    number.and_then(Number::from_f64).map_or_else(|| text.into(), Value::Number)
}

/// The members as a log may hold them.
fn without_secrets(members: &Map<String, Value>) -> Map<String, Value> {
    let member = |(name, value): (&String, &Value)| {
        let secret = is_secret(name) && !matches!(value, Value::Null | Value::Bool(_));
        let value = if secret { Secret::SHOWN.into() } else { cut(value) };
        (name.clone(), value)
    };
    members.iter().map(member).collect()
}

/// Adds the texts among the members that are shown nowhere, and the numbers that are secret.
fn texts(members: &Map<String, Value>, found: &mut Vec<Secret>) {
    for (name, value) in members {
        add_texts(value, is_secret(name), found);
    }
}

fn add_texts(value: &Value, secret: bool, found: &mut Vec<Secret>) {
    match value {
        Value::Object(members) if !secret => texts(members, found),
        Value::Object(members) => members.values().for_each(|it| add_texts(it, true, found)),
        Value::Array(values) => values.iter().for_each(|it| add_texts(it, secret, found)),
        Value::String(text) if secret || !CHOICES.contains(&text.as_str()) => {
            found.push(Secret::new(text.as_str()));
        }
        Value::Number(number) if secret => found.push(Secret::new(number.to_string())),
        _ => {}
    }
}

fn cut(value: &Value) -> Value {
    match value {
        Value::Object(members) => Value::Object(without_secrets(members)),
        Value::Array(values) => values.iter().map(cut).collect(),
        Value::String(text) if !CHOICES.contains(&text.as_str()) => TEXT.into(),
        plain => plain.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_whose_names_say_secret_are_cut_out_at_any_depth() {
        let flag = ExtraFlag::new(
            r#"{"api_key":"hunter2","a":[{"accessToken":"hunter2","b":{"pass":1,"PASSWORD":22}}],
                "X-Auth":{"user":"hunter2"},"temperature":0.5,"use_key":true}"#,
        );
        assert_eq!(flag.members()["api_key"], "hunter2", "what is sent");
        let json = serde_json::to_string(&flag).expect("serialises");
        let expected = [
            r#"{"api_key":"[secret]","a":[{"accessToken":"[secret]","#,
            r#""b":{"pass":1,"PASSWORD":"[secret]"}}],"#,
            r#""X-Auth":"[secret]","temperature":0.5,"use_key":true}"#,
        ];
        assert_eq!(json, expected.concat());
        assert!(!format!("{flag:?}").contains("hunter2"));
    }

    #[test]
    fn texts_are_kept_out_of_the_log_unless_they_are_choices() {
        let flag = ExtraFlag::new(
            r#"{"user":"hunter2","stop":["hunter2","auto"],"tool_choice":{"type":"function",
                "name":"hunter2"},"top_p":0.9,"reasoning_effort":"low","seed":null}"#,
        );
        let json = serde_json::to_string(&flag).expect("serialises");
        let expected = [
            r#"{"user":"[text]","stop":["[text]","auto"],"tool_choice":{"type":"function","#,
            r#""name":"[text]"},"top_p":0.9,"reasoning_effort":"low","seed":null}"#,
        ];
        assert_eq!(json, expected.concat());
    }

    #[test]
    fn texts_that_a_server_must_not_repeat_are_told() {
        let flag = ExtraFlag::new(
            r#"{"api_key":"a","x":[{"token":["b",7]}],"auth":{"user":"c","on":true},"user":"d",
                "type":"auto","top_k":9}"#,
        );
        let told = ["a", "b", "7", "c", "d"].map(Secret::new);
        assert_eq!(flag.secrets(), told);
    }

    #[test]
    fn names_of_secrets_are_told_from_those_of_tokens() {
        for secret in [
            "key",
            "apikey",
            "API_KEY",
            "apiKey",
            "hf_token",
            "authorization",
            "auth",
            "authToken",
            "client-secret",
            "db.password",
            "credentials",
        ] {
            assert!(is_secret(secret), "{secret}");
        }
        for plain in [
            "max_tokens",
            "max_completion_tokens",
            "stop_token_ids",
            "return_tokens_as_token_ids",
            "author",
            "temperature",
            "top_k",
            "model",
            "",
        ] {
            assert!(!is_secret(plain), "{plain}");
        }
    }

    #[test]
    fn members_are_parted_and_taken_as_aiperf_does() {
        let sent = |text: &str| {
            let flag = ExtraFlag::new(text);
            assert_eq!(flag.fault(), None, "{text}");
            Value::Object(flag.members().clone()).to_string()
        };
        assert_eq!(sent("a:1,b:2"), r#"{"a":1,"b":2}"#);
        assert_eq!(
            sent("a:none, b:True ,c:.5,d:1.,e:x"),
            r#"{"a":null,"b":true,"c":0.5,"d":1.0,"e":"x"}"#
        );
        assert_eq!(
            sent(r#"stop:["a","b"],n:{"x":[1,2]}"#),
            r#"{"stop":["a","b"],"n":{"x":[1,2]}}"#
        );
        assert_eq!(sent(r#"stop:"a,\"b","#.trim_end_matches(',')), r#"{"stop":"a,\"b"}"#);
        assert_eq!(sent("url:http://h:1/p"), r#"{"url":"http://h:1/p"}"#);
        assert_eq!(sent("t:1.2.3,u:-"), r#"{"t":"1.2.3","u":"-"}"#);
        assert_eq!(sent("t:-.5,u:007,v:+3"), r#"{"t":-0.5,"u":"007","v":"+3"}"#, "as typed");
        let fault = ExtraFlag::new("stop:a,b");
        assert!(fault.fault().is_some_and(|words| words.contains("stands in quotes")));
    }

    #[test]
    fn what_is_malformed_is_not_repeated() {
        for wrong in ["hunter2", ":hunter2", "{\"hunter2\":", "{\"key\":\"hunter2\"} x", "[1]"] {
            let flag = ExtraFlag::new(wrong);
            let fault = flag.fault().expect("malformed");
            assert!(fault.contains("a JSON object") && !fault.contains("hunter2"), "{fault}");
            assert!(flag.members().is_empty());
        }
        assert_eq!(ExtraFlag::new("stop:END").fault(), None);
    }
}
