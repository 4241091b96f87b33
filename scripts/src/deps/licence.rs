//! Whether a package's licence expression can be met with licences we accept.
//!
//! Reads SPDX expressions as crates use them (`OR`, `AND`, `WITH`, brackets, and the old `/`). The
//! accepted licences are listed once, in `.deny.toml`, where `cargo deny` reads them too.

/// The `allow` list of `.deny.toml`'s `[licenses]` section.
pub(super) fn allowed_in(deny: &str) -> Result<Vec<String>, String> {
    let section = deny.split("[licenses]").nth(1).unwrap_or_default();
    let list = section.split("allow = [").nth(1).and_then(|rest| rest.split(']').next());
    let list = list.ok_or(".deny.toml has no `allow = [...]` under [licenses]")?;
    let without_comments =
        list.lines().map(|line| line.split('#').next().unwrap_or_default()).collect::<String>();
    Ok(without_comments.split('"').skip(1).step_by(2).map(str::to_owned).collect())
}

/// Whether some choice of the expression needs only `allowed` licences. An expression that cannot
/// be read is not allowed.
pub(super) fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut reader = Reader { words: &words, allowed };
    reader.any() == Some(true) && reader.words.is_empty()
}

/// Reads an expression from the left; every method returns `None` where it makes no sense.
struct Reader<'a> {
    words: &'a [&'a str],
    allowed: &'a [String],
}

impl Reader<'_> {
    /// `all OR all …`
    fn any(&mut self) -> Option<bool> {
        let mut met = self.all()?;
        while self.take("OR") {
            met |= self.all()?;
        }
        Some(met)
    }

    /// `one AND one …`
    fn all(&mut self) -> Option<bool> {
        let mut met = self.one()?;
        while self.take("AND") {
            met &= self.one()?;
        }
        Some(met)
    }

    /// `( any )`, `NAME` or `NAME WITH EXCEPTION`
    fn one(&mut self) -> Option<bool> {
        if self.take("(") {
            let met = self.any()?;
            return self.take(")").then_some(met);
        }
        let (name, rest) = self.words.split_first()?;
        self.words = rest;
        let mut name = (*name).to_owned();
        if self.take("WITH") {
            let (exception, rest) = self.words.split_first()?;
            self.words = rest;
            name = format!("{name} WITH {exception}");
        }
        Some(self.allowed.contains(&name))
    }

    fn take(&mut self, word: &str) -> bool {
        let taken = self.words.first() == Some(&word);
        if taken {
            self.words = &self.words[1..];
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_allowed_when_one_choice_is() {
        let allowed = ["MIT", "Zlib", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned).to_vec();
        let table = [
            ("MIT", true),
            ("GPL-3.0", false),
            ("GPL-3.0 OR MIT", true),
            ("GPL-3.0/MIT", true),
            ("MIT AND Zlib", true),
            ("MIT AND GPL-3.0", false),
            ("(GPL-3.0 OR MIT) AND Zlib", true),
            ("MIT OR GPL-3.0 AND GPL-2.0", true),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("Apache-2.0", false),
            ("", false),
            ("MIT OR", false),
            ("(MIT", false),
            ("MIT Zlib", false),
        ];
        for (expression, expected) in table {
            assert_eq!(is_allowed(expression, &allowed), expected, "`{expression}`");
        }
    }

    #[test]
    fn the_list_is_read_from_the_right_section() {
        let deny =
            "[bans]\nallow = [\"x\"]\n[licenses]\nallow = [\n  \"MIT\", # why\n  \"ISC\",\n]\n";
        assert_eq!(allowed_in(deny), Ok(vec!["MIT".to_owned(), "ISC".to_owned()]));
        assert!(allowed_in("[bans]\nallow = [\"x\"]\n").is_err());
    }
}
