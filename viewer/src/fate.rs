//! What became of a request, as far as pictures and words tell it apart.
//!
//! Five fates, each with its own shape and colour wherever requests are drawn one by one: a request
//! that we cut off, or that was never sent because the run was stopped, is no failure and is not
//! painted as one. The rule is the shared crate's ([`onbeat_shared::metrics::slo::failed`]).

use onbeat_shared::{
    log::Outcome,
    run::{End, Run},
};

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fate {
    /// A complete answer.
    Ok,
    /// It ended by itself without success.
    Failed,
    /// It was cancelled: by the plan, by the user, or by the run's end.
    Cut,
    /// In flight when the log ends, or lost with a part of the log.
    Open,
    /// It never left.
    Unsent,
}

impl Fate {
    /// Of request `i`.
    #[must_use]
    pub fn of(run: &Run, i: usize) -> Self {
        match run.requests.end(i) {
            End::Known(class) => Self::of_outcome(class.outcome()),
            End::Open | End::Lost => Self::Open,
            End::NeverSent | End::NotReached => Self::Unsent,
        }
    }

    /// Of an outcome.
    #[must_use]
    pub const fn of_outcome(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Ok => Self::Ok,
            Outcome::Cancelled => Self::Cut,
            Outcome::NeverSent => Self::Unsent,
            Outcome::Incomplete
            | Outcome::HttpError
            | Outcome::ConnectError
            | Outcome::Timeout
            | Outcome::Disconnected
            | Outcome::ProtocolError
            | Outcome::StreamError => Self::Failed,
        }
    }
}

/// An outcome in words.
#[must_use]
pub const fn outcome_words(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "successful",
        Outcome::Incomplete => "incomplete answer",
        Outcome::HttpError => "HTTP error",
        Outcome::ConnectError => "no connection",
        Outcome::Timeout => "timed out",
        Outcome::Disconnected => "disconnected",
        Outcome::ProtocolError => "protocol broken",
        Outcome::StreamError => "error in the stream",
        Outcome::Cancelled => "cancelled",
        Outcome::NeverSent => "never sent",
    }
}

/// How request `i` ended, in words.
#[must_use]
pub fn end_words(run: &Run, i: usize) -> &'static str {
    match run.requests.end(i) {
        End::Known(class) => outcome_words(class.outcome()),
        End::Open => "in flight when the log ends",
        End::NeverSent => outcome_words(Outcome::NeverSent),
        End::NotReached => "not reached when the log ends",
        End::Lost => "not known, as parts of the log are missing",
    }
}

#[cfg(test)]
mod tests {
    use onbeat_shared::{log::sample, metrics::slo};

    use super::*;

    #[test]
    fn failures_are_those_that_goals_count() {
        let whole = sample::log(7, 800);
        for bytes in [&whole[..], &whole[..whole.len() * 6 / 10]] {
            let run = Run::read(bytes).expect("a readable log");
            for i in 0..run.requests.len() {
                let fate = Fate::of(&run, i);
                assert_eq!(fate == Fate::Failed, slo::failed(&run, i), "request {i}");
                assert_eq!(fate == Fate::Ok, run.requests.is_ok(i));
                assert_eq!(fate == Fate::Unsent, !run.requests.was_sent(i), "request {i}");
            }
        }
    }
}
