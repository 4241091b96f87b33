//! Why a trace cannot be made into a schedule.

use std::fmt;

use crate::error::EngineError;

/// A schedule that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// The options leave no request: the numbers say which of them did.
    Nothing(String),
    /// A due time does not fit 64 bits of nanoseconds: 1-based line of the row.
    DueOutOfRange(u64),
    /// More requests than a log can number.
    TooManyRequests(u64),
    /// Rows have no times and no rate was given: the file, and the 1-based line of the first.
    Untimed(String, u64),
    /// Options that this trace cannot be planned with: what to give instead.
    Unfit(String),
}

impl fmt::Display for PlanError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing(why) => write!(out, "nothing to send: {why}"),
            Self::Untimed(name, row) => write!(
                out,
                "{name}: line {row}: field \"timestamp\": found nothing, nor in any other row; right would \
                 be a number, or the rate to send the rows at, like --request-rate 10"
            ),
            Self::Unfit(why) => out.write_str(why),
            Self::DueOutOfRange(row) => write!(
                out,
                "line {row}: with this --replay-speedup its request would be due more than 292 \
                 years from the schedule's zero"
            ),
            Self::TooManyRequests(count) => write!(
                out,
                "{count} requests are more than one run can number ({}); plan fewer with \
                 --request-count or a window",
                crate::limits::REQUESTS_MAX
            ),
        }
    }
}

impl std::error::Error for PlanError {}

impl From<PlanError> for EngineError {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Unfit(words) => Self::Usage(words),
            other => Self::Input(other.to_string()),
        }
    }
}
