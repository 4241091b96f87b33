//! The replay bench's command line.

use std::io::{Error, Result};
use std::path::PathBuf;
use std::str::FromStr;

use super::case::Case;
use super::catalogue;

/// What was asked for.
#[derive(Debug, Default)]
pub(crate) struct Options {
    /// Measure, as opposed to showing that it works.
    pub(crate) is_real: bool,
    /// Pairs of every case.
    pub(crate) pairs: Option<usize>,
    /// Where lines are appended.
    pub(crate) json: Option<PathBuf>,
    /// The engine of the revision to compare with.
    pub(crate) base: Option<PathBuf>,
    peer: Option<String>,
    rates: Vec<f64>,
    count: Option<usize>,
    words: Vec<String>,
}

impl Options {
    pub(crate) fn parse(arguments: Vec<String>) -> Result<Self> {
        let mut options = Self::default();
        let (mut bench, mut test) = (false, false);
        let mut rest = arguments.into_iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--bench" => bench = true,
                "--test" => test = true,
                "--pairs" => options.pairs = Some(value(&argument, rest.next())?),
                "--json" => options.json = Some(value(&argument, rest.next())?),
                "--base" => options.base = Some(value(&argument, rest.next())?),
                "--peer" => options.peer = Some(value(&argument, rest.next())?),
                "--rate" => options.rates.push(value(&argument, rest.next())?),
                "--count" => options.count = Some(value(&argument, rest.next())?),
                // Cargo's test runner passes flags of its own.
                flag if flag.starts_with('-') => {}
                _ => options.words.push(argument),
            }
        }
        options.is_real = bench && !test;
        Ok(options)
    }

    /// The cases that were asked for.
    pub(crate) fn cases(&self) -> Vec<Case> {
        let mut cases = match (&self.peer, &self.base) {
            (Some(peer), _) => catalogue::against_peer(peer, &self.rates, self.count),
            (None, Some(_)) => catalogue::against_base(),
            (None, None) if self.is_real => catalogue::measured(),
            (None, None) => catalogue::tiny(),
        };
        let wanted = |name: &str| self.words.iter().any(|word| name.contains(word));
        cases.retain(|case| self.words.is_empty() || wanted(&case.name));
        cases
    }
}

fn value<T: FromStr>(name: &str, text: Option<String>) -> Result<T> {
    text.and_then(|text| text.parse().ok())
        .ok_or_else(|| Error::other(format!("{name} needs a value")))
}
