//! What a reader of the numbers must know, in words and in order of weight.
//!
//! Pure: a run and its report in, sentences out. Drawing them is the Overview panel's business.

use onbeat_shared::{
    metrics::Report,
    run::{End, Run, State},
};

use crate::quantity::{self, counted};

/// How much a remark matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Numbers are missing or wrong without it.
    Serious,
    /// Good to know.
    Note,
}

/// One remark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// How much it matters.
    pub weight: Weight,
    /// The sentence.
    pub words: String,
}

/// A log that is not complete: what stands above every panel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incomplete {
    /// What it is.
    pub headline: String,
    /// What that means for what is shown.
    pub words: String,
}

/// Whether and how the log falls short of a whole run.
#[must_use]
pub fn incomplete(run: &Run) -> Option<Incomplete> {
    let open = (0..run.requests.len()).filter(|&i| run.requests.end(i) == End::Open).count();
    let open = match open {
        0 => String::new(),
        some => format!(" {} in flight when it ends.", are(some as u64, "request")),
    };
    let damaged = match run.damaged_bytes {
        0 => String::new(),
        some => format!(" {} inside it are damaged and were left out.", quantity::bytes(some)),
    };
    match run.state {
        State::Unfinished { cut_bytes } => {
            let cut = match cut_bytes {
                0 => String::new(),
                some => format!(" Its last {} could not be read.", quantity::bytes(some)),
            };
            Some(Incomplete {
                headline: "This log is unfinished".to_owned(),
                words: format!(
                    "The run was killed, the file was cut, or it is still being written.{cut} \
                     Everything before is shown.{open}{damaged}"
                ),
            })
        }
        State::Interrupted => Some(Incomplete {
            headline: "This run was stopped by its user".to_owned(),
            words: format!("What had happened until then is shown.{open}{damaged}"),
        }),
        State::Finished if run.damaged_bytes > 0 => Some(Incomplete {
            headline: "Parts of this log are damaged".to_owned(),
            words: format!("What is whole is shown.{open}{damaged}"),
        }),
        State::Finished => None,
    }
}

/// Everything to know about these numbers. Empty if there is nothing.
#[must_use]
pub fn remarks(run: &Run, report: &Report) -> Vec<Remark> {
    let mut remarks: Vec<Remark> =
        run.warnings.iter().map(|words| serious(quantity::sentence(words))).collect();
    let stalls = &report.schedule.host_stalls;
    if let (1.., Some(longest)) = (stalls.count, stalls.max_ms) {
        remarks.push(note(format!(
            "The host stalled the sending cores {} ({} in all, {} at most). The verdict leaves out \
             requests hit by a stall.",
            times(stalls.count),
            quantity::duration(stalls.total_ms * 1e6),
            quantity::duration(longest * 1e6),
        )));
    }
    match report.tokens.source {
        Some("chunks") => remarks.push(serious(
            "The server reported no usage: output tokens are counted as content events.".to_owned(),
        )),
        Some("mixed") => remarks.push(note(
            "Some answers carry no usage: their output tokens are counted as content events."
                .to_owned(),
        )),
        _ => {}
    }
    if let Some(some @ 1..) = report.tokens.output_mismatch_requests {
        let have = if some == 1 { "answer has" } else { "answers have" };
        remarks.push(note(format!(
            "{} {have} another number of tokens than was planned.",
            quantity::count(some)
        )));
    }
    if report.outcomes.ok > 0 && report.cache.requests_reporting == 0 {
        remarks.push(note(
            "The server reported no cached tokens, so its hit rate is unknown.".to_owned(),
        ));
    }
    remarks.sort_by_key(|remark| remark.weight);
    remarks
}

fn serious(words: String) -> Remark {
    Remark { weight: Weight::Serious, words }
}

fn note(words: String) -> Remark {
    Remark { weight: Weight::Note, words }
}

fn are(count: u64, noun: &str) -> String {
    format!("{} {}", counted(count, noun), if count == 1 { "is" } else { "are" })
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        more => format!("{} times", quantity::count(more)),
    }
}
