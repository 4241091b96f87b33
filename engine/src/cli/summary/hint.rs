//! What to type when a server refuses a member of our bodies that is not its own.
//!
//! Servers say so in words of their own; those are looked at for the member's name and for the
//! complaint. Nothing is guessed where they name neither.

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

/// The option that helps, when `words` say that the server does not know a member.
pub(super) fn of_refusal(words: &str) -> Option<String> {
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
        ] {
            let hint = of_refusal(words);
            let right = hint.as_deref().and_then(|hint| hint.split_once("try "));
            assert_eq!(right.map(|(_, right)| right), option, "{words}");
        }
    }
}
