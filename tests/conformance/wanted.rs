//! Which checks the words after `cargo test` ask for: as much of the usual test programs' command
//! line as people type here.

/// The options that take a value of their own.
const WITH_VALUE: [&str; 5] = ["--test-threads", "--format", "--color", "--logfile", "-Z"];

/// What is asked for.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    /// Only names, nothing is run.
    pub(crate) list: bool,
    exact: bool,
    names: Vec<String>,
    skipped: Vec<String>,
}

impl Wanted {
    /// Reads the words; options that mean nothing here are passed over.
    pub(crate) fn of(words: impl IntoIterator<Item = String>) -> Self {
        let mut wanted = Self::default();
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--list" => wanted.list = true,
                "--exact" => wanted.exact = true,
                "--skip" => wanted.skipped.extend(words.next()),
                option if WITH_VALUE.contains(&option) => drop(words.next()),
                option if option.starts_with('-') => {}
                name => wanted.names.push(name.to_owned()),
            }
        }
        wanted
    }

    /// Whether a check of this name is to run.
    pub(crate) fn wants(&self, name: &str) -> bool {
        let matches = |part: &String| {
            if self.exact { name == part } else { name.contains(part.as_str()) }
        };
        (self.names.is_empty() || self.names.iter().any(matches))
            && !self.skipped.iter().any(matches)
    }
}
