//! Texts that must not be seen: keys, header values, what a URL's query carries.
//!
//! A [`Secret`] has no `Display`, its `Debug` and its serialised form are `[secret]`, and its bytes
//! are overwritten when it is dropped. A [`UrlText`] shows itself without the values of its query.
//! [`cut_out`] takes secrets out of what a server says, in the spellings that a server may
//! give them. None of this keeps the kernel from showing a command line.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// A shorter secret is not looked for in a server's words.
const BYTES_MIN: usize = 4;
/// A shorter word of a secret is not looked for by itself: it may be the name of a scheme.
const WORD_BYTES_MIN: usize = 8;

/// A text that prints as `[secret]`.
#[derive(Clone, PartialEq, Eq, schemars::JsonSchema)]
#[schemars(with = "String")]
pub struct Secret(Vec<u8>);

impl Secret {
    /// What stands wherever a secret was cut out.
    pub const SHOWN: &'static str = "[secret]";

    /// Keeps a text.
    #[must_use]
    pub fn new(text: impl Into<Vec<u8>>) -> Self {
        Self(text.into())
    }

    /// The bytes themselves, for the wire only.
    #[must_use]
    pub fn reveal(&self) -> &[u8] {
        &self.0
    }

    /// The secret and what it looks like where a server quotes it in JSON or in a URL: all that
    /// [`cut_out`] is to look for.
    #[must_use]
    pub fn spellings(&self) -> Vec<Self> {
        let mut all = vec![self.clone()];
        if let Ok(text) = std::str::from_utf8(&self.0) {
            let json = serde_json::Value::from(text).to_string();
            let json = &json[1..json.len() - 1];
            let in_url = percent_encoded(text);
            for other in [json.to_owned(), json.replace('/', "\\/"), in_url] {
                let other = Self::new(other);
                if !all.contains(&other) {
                    all.push(other);
                }
            }
        }
        all
    }

    fn wipe(&mut self) {
        self.0.fill(0);
        // Nobody reads the zeroes, so without this they need not be written.
        std::hint::black_box(&self.0);
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.wipe();
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(Self::SHOWN)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(Self::SHOWN)
    }
}

impl FromStr for Secret {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self::new(text))
    }
}

/// A URL, or the path of one, as typed. What it shows of itself has `[secret]` for user information
/// and for every value of its query.
#[derive(Clone, PartialEq, Eq, schemars::JsonSchema)]
#[schemars(with = "String")]
pub struct UrlText(String);

impl UrlText {
    /// Keeps a text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the wire only.
    #[must_use]
    pub fn as_sent(&self) -> &str {
        &self.0
    }

    /// What it does not show, as far as a server could repeat it.
    pub fn secrets(&self) -> impl Iterator<Item = Secret> {
        let query = self.0.split_once(['?', '#']).map_or("", |(_, query)| query);
        let values = query.split(['?', '#', '&']).map(|part| name_and_value(part).1);
        values.filter(|value| !value.is_empty()).map(Secret::new)
    }
}

/// The name in a part of a query, with its `=`, and the value. What has no value to speak of is a
/// value itself: a key may end in `=`.
fn name_and_value(part: &str) -> (&str, &str) {
    let at = part.find('=').map_or(0, |at| at + 1);
    match part.split_at(at) {
        (name, value) if !value.trim_matches('=').is_empty() => (name, value),
        _ => ("", part),
    }
}

impl fmt::Display for UrlText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&without_secrets(&self.0))
    }
}

impl fmt::Debug for UrlText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}", without_secrets(&self.0))
    }
}

impl Serialize for UrlText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&without_secrets(&self.0))
    }
}

impl FromStr for UrlText {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self::new(text))
    }
}

/// A URL or a path as it may be shown: `[secret]` stands for user information and for every value
/// behind the path.
#[must_use]
pub fn without_secrets(url: &str) -> String {
    let (place, query) = match url.find(['?', '#']) {
        Some(at) => url.split_at(at),
        None => (url, ""),
    };
    let authority = place.find("//").map_or(0, |at| at + 2);
    // A path may hold an `@`; behind `//`, or where there is no path, it ends user information.
    let is_url = authority > 0 || !place.starts_with('/');
    let host = place[authority..].rfind('@').filter(|_| is_url).map(|at| authority + at);
    let mut shown = match host {
        Some(at) => format!("{}{}{}", &place[..authority], Secret::SHOWN, &place[at..]),
        None => place.to_owned(),
    };
    for part in query.split_inclusive(['?', '#', '&']) {
        let text = part.trim_end_matches(['?', '#', '&']);
        let (name, value) = name_and_value(text);
        shown.push_str(name);
        shown.push_str(if value.is_empty() { "" } else { Secret::SHOWN });
        shown.push_str(&part[text.len()..]);
    }
    shown
}

/// Overwrites every secret in `text` with stars, in place: a server may echo the headers it got, or
/// only the key behind `Bearer`. Allocates nothing.
pub fn cut_out(text: &mut [u8], secrets: &[Secret]) {
    let words = |secret| std::iter::once(secret).chain(words_of(secret));
    for secret in secrets.iter().map(Secret::reveal).flat_map(words) {
        // A shorter text would be found all over a message and says nothing to anybody.
        if secret.len() < BYTES_MIN {
            continue;
        }
        let mut from = 0;
        while let Some(at) = memchr::memmem::find(&text[from..], secret) {
            text[from + at..from + at + secret.len()].fill(b'*');
            from += at + secret.len();
        }
        // The text may have been cut in the middle of a secret.
        let longest = secret.len().min(text.len());
        if let Some(length) =
            (BYTES_MIN..=longest).rev().find(|&length| text.ends_with(&secret[..length]))
        {
            let start = text.len() - length;
            text[start..].fill(b'*');
        }
    }
}

/// Words that may repeat what a server said, without the secrets.
#[must_use]
pub fn scrubbed(words: String, secrets: &[Secret]) -> String {
    let mut bytes = words.into_bytes();
    cut_out(&mut bytes, secrets);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The long words of a header's value: a key behind its scheme, the cookies of a list.
fn words_of(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value
        .split(|byte| matches!(byte, b' ' | b'\t' | b',' | b';' | b'=' | b'"'))
        .filter(|word| word.len() >= WORD_BYTES_MIN)
}

/// The text as a URL's query carries it.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, secret: &str) -> String {
        scrubbed(text.to_owned(), &Secret::new(secret).spellings())
    }

    #[test]
    fn a_secret_shows_nothing() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret:?} {:?}", Some(&secret)), "[secret] Some([secret])");
        assert_eq!(serde_json::to_string(&secret).expect("a string"), "\"[secret]\"");
        assert_eq!(secret.reveal(), b"hunter2");
    }

    #[test]
    fn a_secret_is_overwritten_when_it_goes() {
        let mut secret = Secret::new("hunter2");
        secret.wipe();
        assert_eq!(secret.reveal(), [0; 7]);
        assert!(std::mem::needs_drop::<Secret>());
    }

    #[test]
    fn a_secret_is_cut_wherever_a_server_repeats_it() {
        assert_eq!(cut("key sk-12345 and sk-12345", "sk-12345"), "key ******** and ********");
        assert_eq!(cut("cut at sk-12", "sk-12345"), "cut at *****");
        assert_eq!(cut("sk-123", "sk-12345"), "******");
        assert_eq!(cut("abc", "abc"), "abc", "too short to look for");
        assert_eq!(cut("wrong key: sk-12345", "Bearer sk-12345"), "wrong key: ********");
        assert_eq!(cut("no session abcdefgh", "id=7; session=abcdefgh"), "no session ********");
        assert_eq!(cut("Bearer is missing", "Bearer sk-12345"), "Bearer is missing");
    }

    #[test]
    fn a_secret_is_cut_in_the_spellings_of_json_and_of_a_query() {
        for (secret, spelled) in [
            ("ab/cd+ef==", r"ab\/cd+ef=="),
            (r#"ab"cd\ef"#, r#"ab\"cd\\ef"#),
            ("ab/cd+ef==", "ab%2Fcd%2Bef%3D%3D"),
            ("a b/c", "a%20b%2Fc"),
            ("schlüssel", "schl%C3%BCssel"),
        ] {
            let said = cut(&format!("[{spelled}]"), secret);
            assert_eq!(said, format!("[{}]", "*".repeat(spelled.len())), "{secret}");
        }
        assert_eq!(Secret::new("plain-1.2_3~").spellings().len(), 1);
    }

    #[test]
    fn a_path_is_sent_whole_and_shown_without_values() {
        for (typed, shown) in [
            ("/v1/x", "/v1/x"),
            ("/v1/m@2/x", "/v1/m@2/x"),
            ("/x?key=hunter2", "/x?key=[secret]"),
            ("/x?key=hunter2&v=1&hunter2", "/x?key=[secret]&v=[secret]&[secret]"),
            ("/x?key=hunter2==", "/x?key=[secret]"),
            ("/x?hunter2==", "/x?[secret]"),
            ("/x?hunter2=", "/x?[secret]"),
            ("/x#hunter2", "/x#[secret]"),
            ("x?", "x?"),
            ("http://me:hunter2@host/x", "http://[secret]@host/x"),
            ("http://me:hunt/er2@host/x", "http://[secret]@host/x"),
            ("me:hunter2@host", "[secret]@host"),
        ] {
            let path = UrlText::new(typed);
            assert_eq!(path.as_sent(), typed);
            assert_eq!(path.to_string(), shown);
            assert_eq!(format!("{path:?}"), format!("{shown:?}"));
            assert_eq!(serde_json::to_string(&path).expect("a string"), format!("{shown:?}"));
        }
        let path = UrlText::new("/x?key=hunter2&v=&alone");
        let secrets: Vec<_> = path.secrets().collect();
        assert_eq!(secrets, ["hunter2", "v=", "alone"].map(Secret::new));
    }
}
