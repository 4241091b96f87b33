//! Texts that must not be seen: keys, header values, what a URL's query carries.
//!
//! A [`Secret`] has no `Display`, its `Debug` and its serialised form are `[secret]`, and its bytes
//! are overwritten when it is dropped. A [`UrlText`] shows itself without the values of its query.
//! [`cut_out`] takes secrets out of what a server says, however it spells them (see the module
//! `spelling`). None of this keeps the kernel from showing a command line.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::spelling::{self, Room};
use crate::limits::ERROR_TEXT_BYTES_MAX;

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

    /// All that [`cut_out`] is to look for so that a server's words do not repeat the secret,
    /// however they spell it.
    #[must_use]
    pub fn spellings(&self) -> Vec<Self> {
        spelling::needles(&self.0)
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

/// Overwrites what `text` has of secrets with stars, in place, given their
/// [spellings](Secret::spellings). Takes no memory for texts as long as a log keeps them.
pub fn cut_out(text: &mut [u8], spellings: &[Secret]) {
    const LENGTH: usize = ERROR_TEXT_BYTES_MAX;
    if text.len() <= LENGTH {
        let (mut bytes, mut first, mut last) = ([0; LENGTH], [0; LENGTH], [0; LENGTH]);
        let room = Room { bytes: &mut bytes, first: &mut first, last: &mut last };
        spelling::cover(text, room, spellings);
    } else {
        let (mut bytes, mut first) = (vec![0; text.len()], vec![0; text.len()]);
        let mut last = first.clone();
        let room = Room { bytes: &mut bytes, first: &mut first, last: &mut last };
        spelling::cover(text, room, spellings);
    }
}

/// Words that may repeat what a server said, without the secrets.
#[must_use]
pub fn scrubbed(words: String, spellings: &[Secret]) -> String {
    let mut bytes = words.into_bytes();
    cut_out(&mut bytes, spellings);
    String::from_utf8_lossy(&bytes).into_owned()
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
