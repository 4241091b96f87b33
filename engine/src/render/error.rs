//! Why a plan's requests cannot be rendered.

use std::fmt;

use crate::error::EngineError;

/// Requests that cannot be rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RenderError {
    /// All requests together need more memory than they may take.
    OverBudget {
        /// Bytes they need.
        needed: u64,
        /// Bytes they may take.
        budget: u64,
        /// Whether the user named the budget (else it is half of the free memory).
        named: bool,
    },
    /// A prompt is too long to be one.
    Prompt {
        /// The trace's name.
        file: String,
        /// 1-based line or row of the trace.
        row: u64,
        /// Its length in tokens.
        tokens: u32,
    },
    /// A header that cannot be sent; the text names it and never repeats its value.
    Header(String),
    /// A thread could not be started.
    Thread(String),
}

impl fmt::Display for RenderError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OverBudget { needed, budget, named } => write!(
                out,
                "the rendered requests need {needed} bytes and may take {budget} ({}); plan fewer \
                 (--request-count, --benchmark-duration, a window) or raise --render-budget",
                if *named { "--render-budget" } else { "half of the memory that is free" }
            ),
            Self::Prompt { file, row, tokens } => write!(
                out,
                "{file}: line {row}: field \"input_length\": found {tokens}; right would be at most {}",
                crate::limits::PROMPT_TOKENS_MAX
            ),
            Self::Header(words) => out.write_str(words),
            Self::Thread(words) => write!(out, "could not start a rendering thread: {words}"),
        }
    }
}

impl std::error::Error for RenderError {}

impl From<RenderError> for EngineError {
    fn from(error: RenderError) -> Self {
        match error {
            RenderError::Header(words) => Self::Usage(words),
            RenderError::Prompt { .. } => Self::Input(error.to_string()),
            RenderError::OverBudget { .. } | RenderError::Thread(_) => Self::Run(error.to_string()),
        }
    }
}
