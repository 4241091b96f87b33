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
    /// Rendering ahead, too, needs more memory than it may take: the largest request of every core
    /// has to fit.
    WindowOverBudget {
        /// Bytes it needs.
        needed: u64,
        /// Bytes it may take.
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
    /// A member of the user's own that is decided elsewhere.
    Extra {
        /// Its key.
        key: &'static str,
        /// What to do instead.
        instead: &'static str,
    },
    /// A turn continues the server's own answers: 1-based line of the first one.
    LiveAnswers(u64),
    /// Rows hold lists of messages, and the endpoint takes a prompt.
    MessagesToCompletions,
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
                "the rendered requests need {needed} bytes and may take {budget} ({}); render them \
                 during the run (--render ahead), plan fewer (--request-count, \
                 --benchmark-duration, a window) or raise --render-budget",
                limit(*named)
            ),
            Self::WindowOverBudget { needed, budget, named } => write!(
                out,
                "rendering ahead needs {needed} bytes, so that the largest request of every core \
                 fits, and may take {budget} ({}); raise --render-budget or send from fewer --cores",
                limit(*named)
            ),
            Self::Prompt { file, row, tokens } => write!(
                out,
                "{file}: line {row}: field \"input_length\": found {tokens}; right would be at most {}",
                crate::limits::PROMPT_TOKENS_MAX
            ),
            Self::Extra { key, instead } => {
                write!(out, "--extra-inputs {key}: is decided for every request; {instead}")
            }
            Self::LiveAnswers(row) => write!(
                out,
                "line {row}: this turn continues the server's own answers to the turns before it, \
                 which is not possible yet; --context-mode message_array_with_responses sends each \
                 turn's own text alone"
            ),
            Self::MessagesToCompletions => out.write_str(
                "the trace holds lists of messages, which only the chat endpoint takes; leave out \
                 --endpoint-type completions",
            ),
            Self::Header(words) => out.write_str(words),
            Self::Thread(words) => write!(out, "could not start a rendering thread: {words}"),
        }
    }
}

/// Where a budget comes from.
const fn limit(named: bool) -> &'static str {
    if named { "--render-budget" } else { "half of the memory that is free" }
}

impl std::error::Error for RenderError {}

impl From<RenderError> for EngineError {
    fn from(error: RenderError) -> Self {
        match error {
            RenderError::Header(words) => Self::Usage(words),
            RenderError::Extra { .. }
            | RenderError::LiveAnswers(_)
            | RenderError::MessagesToCompletions => Self::Usage(error.to_string()),
            RenderError::Prompt { .. } => Self::Input(error.to_string()),
            RenderError::OverBudget { .. }
            | RenderError::WindowOverBudget { .. }
            | RenderError::Thread(_) => Self::Run(error.to_string()),
        }
    }
}
