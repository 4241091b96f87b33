//! Why a plan's requests cannot be rendered.

use std::fmt;

use crate::error::EngineError;

/// Where a trace says what cannot be rendered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The trace's name.
    pub file: String,
    /// Its 1-based line.
    pub row: u64,
    /// The member that says it.
    pub field: &'static str,
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, row, field } = self;
        write!(out, "{file}: line {row}: field {field:?}")
    }
}

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
    /// Members of the user's own that are decided elsewhere: each key, and what to do instead.
    Extra(Vec<(&'static str, &'static str)>),
    /// A turn repeats the turns before it, and the endpoint takes one prompt: the first one.
    TurnsToCompletions(Place),
    /// A session has turns that repeat others and turns that are whole: the first one that differs.
    MixedSession(Place),
    /// A turn repeats the server's reply to the one before it and does not wait for it.
    LiveUnordered(Place),
    /// Bodies that do not say which endpoint they are for: the first one.
    Unsettled(Place),
    /// Turns repeat the server's replies, and requests were to be rendered ahead.
    LiveAhead,
    /// As [`RenderError::OverBudget`], and requests cannot be rendered ahead because turns repeat
    /// others.
    TurnsOverBudget {
        /// Bytes they need.
        needed: u64,
        /// Bytes they may take.
        budget: u64,
        /// Whether the user named the budget (else it is half of the free memory).
        named: bool,
    },
    /// The texts of the conversations that users play need more memory than they may take.
    ScenesOverBudget {
        /// How many conversations.
        conversations: usize,
        /// Bytes they need.
        needed: u64,
        /// Bytes they may take.
        budget: u64,
        /// Whether the user named the budget (else it is half of the free memory).
        named: bool,
    },
    /// Users' requests were to be rendered ahead.
    ScenesAhead,
    /// Users' prompts repeat what the server replies, and the endpoint takes one prompt.
    RepliesToCompletions,
    /// Rows hold lists of messages, and the endpoint takes a prompt.
    MessagesToCompletions,
    /// A header that cannot be sent; the text names it and never repeats its value.
    Header(String),
    /// A recorded text cannot be read where it stood when the trace was read.
    Unreadable {
        /// The trace.
        file: String,
        /// Why.
        words: String,
    },
    /// A thread could not be started.
    Thread(String),
}

impl fmt::Display for RenderError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OverBudget { .. }
            | Self::WindowOverBudget { .. }
            | Self::TurnsOverBudget { .. }
            | Self::ScenesOverBudget { .. } => self.say_what_is_needed(out),
            Self::Prompt { file, row, tokens } => write!(
                out,
                "{file}: line {row}: field \"input_length\": found {tokens}; right would be at most {}",
                crate::limits::PROMPT_TOKENS_MAX
            ),
            Self::Extra(members) => {
                let say = |(key, instead): &(&str, &str)| {
                    format!("--extra-inputs {key}: is decided for every request; {instead}")
                };
                out.write_str(&members.iter().map(say).collect::<Vec<_>>().join("; "))
            }
            Self::Unsettled(place) => write!(
                out,
                "{place}: this body does not go where the others go: found neither messages nor a \
                 prompt, or another of the two than in the first row; right would be bodies of one \
                 kind, or --endpoint PATH to say where all of them go"
            ),
            Self::TurnsToCompletions(_)
            | Self::MixedSession(_)
            | Self::LiveUnordered(_)
            | Self::LiveAhead
            | Self::ScenesAhead
            | Self::RepliesToCompletions => self.say_why_turns_cannot_repeat(out),
            Self::MessagesToCompletions => out.write_str(
                "the trace holds lists of messages, which only the chat endpoint takes; leave out \
                 --endpoint-type completions",
            ),
            Self::Header(words) => out.write_str(words),
            Self::Unreadable { file, words } => write!(
                out,
                "{file}: a prompt cannot be read any more ({words}); leave the file alone until \
                 the run is over"
            ),
            Self::Thread(words) => write!(out, "could not start a rendering thread: {words}"),
        }
    }
}

impl RenderError {
    /// Of prompts that repeat what came before them: why they cannot; of anything else nothing.
    fn say_why_turns_cannot_repeat(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TurnsToCompletions(place) => write!(
                out,
                "{place}: this turn repeats the turns before it, and the completions endpoint \
                 takes one prompt; use --endpoint-type chat, or send each turn's own text alone \
                 with --context-mode message_array_with_responses"
            ),
            Self::MixedSession(place) => write!(
                out,
                "{place}: one session has turns that repeat those before them and turns that \
                 hold their own messages or payload; give it one kind, or send each turn alone \
                 with --context-mode message_array_with_responses"
            ),
            Self::LiveUnordered(place) => write!(
                out,
                "{place}: this turn repeats the server's reply to the turn before it and does \
                 not wait for it; leave out --open-loop-strict, or send each turn's own text alone \
                 with --context-mode message_array_with_responses"
            ),
            Self::LiveAhead => out.write_str(
                "turns that repeat others are put together from what was rendered before the \
                 first request: leave out --render ahead, or send each turn's own text alone with \
                 --context-mode message_array_with_responses",
            ),
            Self::ScenesAhead => out.write_str(
                "the prompts of users are put together from texts that are rendered before the \
                 first request: leave out --render ahead",
            ),
            Self::RepliesToCompletions => out.write_str(
                "prompts repeat what the server replies, and the completions endpoint takes one \
                 prompt; use --endpoint-type chat or --reply-mode recorded",
            ),
            _ => Ok(()),
        }
    }

    /// Of a budget that is too small: what would do; of anything else nothing.
    fn say_what_is_needed(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OverBudget { needed, budget, named } => write!(
                out,
                "to render all requests takes {needed} bytes and may take {budget} ({}); render them \
                 during the run (--render ahead), plan fewer (--request-count, \
                 --benchmark-duration, a window) or raise --render-budget",
                limit(*named)
            ),
            Self::WindowOverBudget { needed, budget, named } => write!(
                out,
                "rendering ahead needs {needed} bytes, so that the largest request of every core \
                 fits, and may take {budget} ({}); raise --render-budget to that, or send from \
                 fewer --cores",
                limit(*named)
            ),
            Self::TurnsOverBudget { needed, budget, named } => write!(
                out,
                "the rendered texts need {needed} bytes and may take {budget} ({}), and turns that \
                 repeat others need them all; plan fewer requests (--request-count, \
                 --benchmark-duration, a window) or raise --render-budget",
                limit(*named)
            ),
            Self::ScenesOverBudget { conversations, needed, budget, named } => write!(
                out,
                "the texts of {conversations} conversations need {needed} bytes and may take \
                 {budget} ({}); right would be --render-budget {needed}, or fewer conversations \
                 (--min-requests, --max-context, a folder with fewer files)",
                limit(*named)
            ),
            _ => Ok(()),
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
            RenderError::Extra(_)
            | RenderError::Unsettled(_)
            | RenderError::TurnsToCompletions(_)
            | RenderError::MixedSession(_)
            | RenderError::LiveUnordered(_)
            | RenderError::LiveAhead
            | RenderError::ScenesAhead
            | RenderError::RepliesToCompletions
            | RenderError::MessagesToCompletions => Self::Usage(error.to_string()),
            RenderError::Prompt { .. } | RenderError::Unreadable { .. } => {
                Self::Input(error.to_string())
            }
            RenderError::OverBudget { .. }
            | RenderError::WindowOverBudget { .. }
            | RenderError::TurnsOverBudget { .. }
            | RenderError::ScenesOverBudget { .. }
            | RenderError::Thread(_) => Self::Run(error.to_string()),
        }
    }
}
