//! A text that must not be seen: keys and header values.
//!
//! The type has no `Display`, its `Debug` and its serialised form are `[secret]`, and its bytes are
//! overwritten when it is dropped. It does not keep the kernel from showing a command line.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// A text that prints as `[secret]`.
#[derive(Clone, PartialEq, Eq)]
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
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.fill(0);
        std::hint::black_box(&self.0);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_shows_nothing() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret:?} {:?}", Some(&secret)), "[secret] Some([secret])");
        assert_eq!(serde_json::to_string(&secret).expect("a string"), "\"[secret]\"");
        assert_eq!(secret.reveal(), b"hunter2");
    }
}
