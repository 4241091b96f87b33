//! Joins the logs of one plan's shards into the log of the run that they are together.
//!
//! Two passes over each log. The first looks at all of it, so that what does not belong together is
//! refused, with the reason, before a byte is written; the second copies, with every number made
//! that of the whole: requests and sessions as in the whole plan, cores one machine after the
//! other. Times are not touched: each counts from its own machine's zero, which is the same named
//! instant by that machine's clock, and how wrong that clock may be is kept in
//! [`super::Merged::hosts`]. In memory are a few words for each request and never more than a
//! piece of each log. Damage among the records stays what it is, a loss that a reader is told of;
//! a plan that is damaged cannot be merged.

mod belonging;
mod cursor;
mod documents;
mod packing;
mod records;
mod scraped;
mod survey;
mod tables;
#[cfg(test)]
mod tests;
mod users;

use std::fmt;
use std::io::{self, Read, Write};

use self::packing::Packing;
use self::survey::Survey;
use super::header::{file_header_of, footer_block, manifest_block};
use super::{LogError, Manifest};

/// A log to be merged.
pub struct Source<'a> {
    /// What it is called in messages.
    pub name: String,
    /// Opens it at its first byte; called several times.
    pub open: Box<dyn Fn() -> io::Result<Box<dyn Read>> + 'a>,
}

/// Why logs cannot be merged.
#[derive(Debug)]
pub enum MergeError {
    /// One of them cannot be read: its name, and why.
    Read(String, io::Error),
    /// One of them is no log: its name, and why.
    Log(String, LogError),
    /// They do not belong together, or one of them cannot be merged: why, and what would be right.
    Apart(String),
    /// The merged log cannot be written.
    Write(io::Error),
}

/// What came of merging.
#[derive(Debug)]
pub struct Outcome {
    /// The merged log's manifest.
    pub manifest: Manifest,
    /// What whoever reads it should know, in words.
    pub warnings: Vec<String>,
}

/// Merges logs. With `allow_missing`, shards that are not there are left out and named.
///
/// # Errors
/// When they do not belong together, or cannot be read or written. Nothing has been written when it
/// is [`MergeError::Apart`] or [`MergeError::Log`], unless a log has changed meanwhile.
pub fn merge(
    sources: &[Source<'_>],
    allow_missing: bool,
    out: &mut dyn Write,
) -> Result<Outcome, MergeError> {
    let mut logs = Vec::with_capacity(sources.len());
    for source in sources {
        logs.push(Survey::of(source)?);
    }
    let missing = belonging::check(&logs, allow_missing)?;
    // By shard, whatever the order they were named in.
    let mut order: Vec<usize> = (0..logs.len()).collect();
    order.sort_by_key(|&at| logs[at].shard().map(|shard| shard.index));
    let sources: Vec<&Source<'_>> = order.iter().map(|&at| &sources[at]).collect();
    logs.sort_by_key(|log| log.shard().map(|shard| shard.index));
    let manifest = documents::manifest(&logs, missing)?;
    let mut warnings = belonging::warnings(&logs);
    let write = |out: &mut dyn Write, bytes: &[u8]| out.write_all(bytes).map_err(MergeError::Write);
    write(out, &file_header_of(&manifest))?;
    write(out, &manifest_block(&manifest))?;
    let mut places = match manifest.users {
        None => tables::planned(&sources, &mut logs, &manifest, out)?,
        Some(_) => tables::templates(&sources, &mut logs, out)?,
    };
    if logs.iter().any(|log| log.stretches != logs[0].stretches) {
        warnings
            .push("what the logs say of prompts that begin alike differs, and is left out".into());
    } else {
        tables::prefixes(&sources, &places, &manifest, out)?;
    }
    let (texts, told) = scraped::choose(&logs);
    warnings.extend(told);
    let mut conductor = Packing::records(out);
    for (at, source) in sources.iter().enumerate() {
        let part = records::Part::new(&logs[at], &manifest, at, &texts[at]);
        records::copy(source, &part, &mut places[at], &mut conductor)?;
    }
    users::assessments(&logs, &mut conductor).map_err(MergeError::Write)?;
    conductor.end().map_err(MergeError::Write)?;
    if let Some(footer) = documents::footer(&logs, &manifest) {
        write(out, &footer_block(&footer))?;
    }
    out.flush().map_err(MergeError::Write)?;
    Ok(Outcome { manifest, warnings })
}

impl fmt::Display for MergeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(name, error) => write!(out, "{name}: {error}"),
            Self::Log(name, error) => write!(out, "{name}: {error}"),
            Self::Apart(words) => out.write_str(words),
            Self::Write(error) => write!(out, "the merged log: {error}"),
        }
    }
}

impl std::error::Error for MergeError {}

impl fmt::Debug for Source<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Source").field("name", &self.name).finish_non_exhaustive()
    }
}
