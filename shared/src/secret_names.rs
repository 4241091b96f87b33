//! Names that say that what they name is a secret: a key, a password, who somebody is.
//!
//! Of members of a request's body, of headers and of a query alike. What has such a name is kept
//! out of the log, and decides who asks and not what is asked. Only names are looked at, so a
//! secret under another name is not known here.

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

/// Whether a name says that its value is a secret.
#[must_use]
pub fn is_secret(name: &str) -> bool {
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
    fn names_of_secrets_are_known_however_their_words_are_joined() {
        for name in ["api_key", "X-Api-Key", "accessToken", "Authorization", "Cookie", "PASSWORD"] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["X-Team", "stop_token_ids", "author", "temperature", "keyboard", ""] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
