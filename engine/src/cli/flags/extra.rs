//! `--extra-inputs` as typed: members for every body, some of which may be secrets.
//!
//! Bodies get every member as it was typed. The log and messages get those whose names say that
//! they are secret (keys, tokens, passwords and the like, at any depth) as `[secret]`. A name does
//! not always say it; a header, or `--api-key`, is the place for a secret.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::render::Secret;

/// One `--extra-inputs` as typed.
#[derive(Clone, PartialEq, Eq)]
pub struct ExtraFlag {
    members: Map<String, Value>,
    /// Why there are none.
    fault: Option<String>,
}

/// Ends of words in names of secrets.
const ENDS: [&str; 14] = [
    "key",
    "keys",
    "token",
    "secret",
    "secrets",
    "password",
    "passwords",
    "passwd",
    "passphrase",
    "pwd",
    "credential",
    "credentials",
    "cookie",
    "bearer",
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
    let pair = text.split_once(':').filter(|(key, _)| !key.is_empty());
    let (key, value) = pair.ok_or_else(|| format!("no key and value; {right}"))?;
    // What is no JSON is a text: `stop:END` needs no quotes.
    let value = serde_json::from_str(value).unwrap_or_else(|_no_json| value.into());
    Ok(Map::from_iter([(key.to_owned(), value)]))
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

fn cut(value: &Value) -> Value {
    match value {
        Value::Object(members) => Value::Object(without_secrets(members)),
        Value::Array(values) => values.iter().map(cut).collect(),
        plain => plain.clone(),
    }
}

/// Whether a name says that its value is a secret.
fn is_secret(name: &str) -> bool {
    let words = words_of(name);
    let secret = |(at, word): (usize, &String)| {
        // Ids of tokens are numbers of a vocabulary.
        let ids = words.get(at + 1).is_some_and(|next| next == "id" || next == "ids");
        let auth = word.starts_with("auth")
            && (!word.starts_with("author") || word.starts_with("authori"));
        auth || (!ids && ENDS.iter().any(|end| word.ends_with(end)))
    };
    words.iter().enumerate().any(secret)
}

/// The words of a name in lower case, however they are joined: `api_key`, `api-key`, `apiKey`.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before_low = false;
    for character in name.chars() {
        let begins = character.is_uppercase() && before_low;
        if !character.is_alphanumeric() || begins {
            words.push(String::new());
        }
        if character.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(character.to_lowercase());
        }
        before_low = character.is_lowercase();
    }
    words
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
