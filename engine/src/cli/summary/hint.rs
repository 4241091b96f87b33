//! What to type when a server refuses all that it is asked: a member of our bodies that it does not
//! know, a request without the right key, or one that it sends elsewhere.
//!
//! Servers speak of members in words of their own; those are looked at for the member's name and
//! for the complaint. Nothing is guessed where they name neither.

/// Members that not every server knows, and the option that leaves each out.
const MEMBERS: &[(&str, &str)] = &[
    ("hash_ids", "--omit-kv-hints"),
    ("block_size", "--omit-kv-hints"),
    ("min_tokens", "--no-force-min-tokens"),
    ("stream_options", "--no-include-usage"),
    ("max_completion_tokens", "--use-legacy-max-tokens"),
];

/// How servers say that they do not know a member, in lower case.
const COMPLAINTS: &[&str] = &[
    "unrecogni",
    "unknown",
    "unexpected",
    "unsupported",
    "not supported",
    "not permitted",
    "not allowed",
    "extra_forbidden",
];

/// What helps, when `words`, the status first, say why the server refused a request.
pub(super) fn of_refusal(words: &str) -> Option<String> {
    let has_status = |status: &str| {
        let rest = words.strip_prefix("HTTP ").and_then(|words| words.strip_prefix(status));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    };
    if ["401", "403"].into_iter().any(has_status) {
        return Some(
            "the server wants a key, or another one: OPENAI_API_KEY or --api-key-file".to_owned(),
        );
    }
    if ["301", "302", "303", "307", "308"].into_iter().any(has_status) {
        return Some("redirects are not followed: give --url the place it leads to".to_owned());
    }
    let lower = words.to_lowercase();
    let complains = COMPLAINTS.iter().any(|complaint| lower.contains(complaint));
    let (member, option) =
        MEMBERS.iter().find(|(member, _)| complains && lower.contains(member))?;
    Some(format!("the server does not take {member}: try {option}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_member_has_its_option_and_other_errors_have_none() {
        for (words, option) in [
            ("HTTP 400: Unrecognized request argument: hash_ids", Some("--omit-kv-hints")),
            ("Unsupported parameter(s): `block_size`", Some("--omit-kv-hints")),
            ("body.min_tokens: Extra inputs are not permitted", Some("--no-force-min-tokens")),
            ("unknown field stream_options", Some("--no-include-usage")),
            ("min_tokens must not be greater than max_tokens", None),
            ("HTTP 404: unknown model", None),
            ("HTTP 4010: unknown", None),
        ] {
            let hint = of_refusal(words);
            let right = hint.as_deref().and_then(|hint| hint.split_once("try "));
            assert_eq!(right.map(|(_, right)| right), option, "{words}");
        }
    }

    #[test]
    fn a_key_that_is_wanted_and_a_redirect_have_their_options() {
        for (words, hint) in [
            ("HTTP 401", "--api-key-file"),
            ("HTTP 403: not allowed to see hash_ids", "--api-key-file"),
            ("HTTP 308: redirect 308 to https://host/v1", "--url"),
        ] {
            let said = of_refusal(words).expect(words);
            assert!(said.contains(hint), "{said}");
        }
        assert_eq!(of_refusal("HTTP 304: redirect 304 without a Location"), None);
    }
}
