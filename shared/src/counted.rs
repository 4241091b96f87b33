//! Counts as people read them: their thousands apart, and with a noun and a verb that agree.

/// A count with commas between its thousands.
#[must_use]
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count and its noun, which is given in the singular: `1 row`, `2,000 bodies`.
#[must_use]
pub fn counted(count: u64, noun: &str) -> String {
    let count_of = grouped(count);
    let stem = noun.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u']));
    match (count, stem) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{count_of} {stem}ies"),
        (_, None) => format!("{count_of} {noun}s"),
    }
}

/// The form of a word that agrees with a count.
#[must_use]
pub const fn agreeing<'a>(count: u64, one: &'a str, more: &'a str) -> &'a str {
    if count == 1 { one } else { more }
}

#[cfg(test)]
mod tests {
    use super::{agreeing, counted, grouped};

    #[test]
    fn nouns_and_verbs_agree_with_their_counts() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        for (count, noun, words) in [
            (0, "row", "0 rows"),
            (1, "row", "1 row"),
            (1, "body", "1 body"),
            (2, "body", "2 bodies"),
            (2, "key", "2 keys"),
            (21, "sub-agent", "21 sub-agents"),
            (1_000, "request", "1,000 requests"),
        ] {
            assert_eq!(counted(count, noun), words);
        }
        assert_eq!([0, 1, 2].map(|count| agreeing(count, "is", "are")), ["are", "is", "are"]);
    }
}
