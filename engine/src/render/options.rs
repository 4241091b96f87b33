//! What the bytes of a request depend on besides the trace, as meant.
//!
//! Built by `cli/flags/body.rs` from what was typed; nothing downstream sees a flag again.

use std::fmt;
use std::num::NonZero;

use onbeat_shared::trace::Trace;
use onbeat_shared::trace::recorded::Content;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::render::error::Place;
use crate::render::{Generation, RenderError, Secret, UrlText};

/// Which of the OpenAI-compatible endpoints is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Endpoint {
    /// `/v1/chat/completions`: the prompt is one user message.
    Chat,
    /// `/v1/completions`: the prompt is a string.
    Completions,
}

/// When requests are rendered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// All before zero if they fit the budget, else ahead.
    #[default]
    Auto,
    /// All before zero, or the plan is refused.
    All,
    /// During the run, as far ahead as the budget reaches.
    Ahead,
}

/// How the turns of a session follow from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// Each turn is what was recorded of it, and nothing else.
    Alone,
    /// A turn is added to the texts of all turns before it; what the server answers is not sent.
    Turns,
    /// A turn is added to all turns before it and the server's own answers to them.
    LiveAnswers,
}

/// A server, as far as a request's head names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The value of the `Host` header: `host:port`, an IPv6 address in brackets.
    pub authority: String,
    /// The base URL's path, without a slash at its end.
    pub base_path: String,
}

impl Destination {
    /// The server at `authority` with a base URL's path.
    #[must_use]
    pub fn new(authority: &str, base_path: &str) -> Self {
        Self { authority: authority.to_owned(), base_path: base_path.to_owned() }
    }
}

/// How requests are written. Its `Debug` leaves out the members of the user's own.
#[derive(Clone)]
pub struct RenderOptions {
    /// The servers; a plan row's `target` is an index into it.
    pub destinations: Vec<Destination>,
    /// The endpoint, which decides the body's shape.
    pub endpoint: Endpoint,
    /// Whether the user named it; else the trace decides, see [`RenderOptions::for_trace`].
    pub endpoint_named: bool,
    /// A path that replaces the endpoint's usual one.
    pub path: Option<UrlText>,
    /// The model that is asked for.
    pub model: String,
    /// Whether the answer is to be streamed.
    pub streaming: bool,
    /// Whether a streamed answer is to end with its token counts.
    pub include_usage: bool,
    /// Whether chat bodies say `max_tokens` instead of `max_completion_tokens`.
    pub legacy_max_tokens: bool,
    /// Generation parameters; the user's own members replace them.
    pub generation: Generation,
    /// Members of the user's own that are added to every body.
    pub extra: Vec<(String, Value)>,
    /// Whether recorded block ids and block sizes are kept out of bodies.
    pub omit_kv_hints: bool,
    /// How the turns of a session follow from each other; `None`: as the trace's format has it.
    pub context: Option<Context>,
    /// Headers of the user's own; one of our names replaces ours.
    pub headers: Vec<(String, Secret)>,
    /// The header that carries the session's name.
    pub session_header: String,
    /// Sent as `Authorization: Bearer …`.
    pub api_key: Option<Secret>,
    /// What else is to be cut out of what servers say, besides key, headers and query.
    pub more_secrets: Vec<Secret>,
    /// Whether prompts are somebody's: recorded, and not words of ours.
    pub recorded_prompts: bool,
    /// What all generated text depends on.
    pub seed: u64,
    /// First half of every `X-Request-ID`.
    pub run_id: String,
    /// When requests are rendered.
    pub when: When,
    /// Most bytes that rendered requests, and what is held beside them, may take at a time; `None`:
    /// half of the memory that is free, for the requests.
    pub budget_bytes: Option<u64>,
    /// What is held beside them within `budget_bytes`: everything else of the process, where the
    /// budget is for all of it.
    pub held_bytes: u64,
    /// Threads that render; the bytes do not depend on it.
    pub threads: NonZero<usize>,
}

impl fmt::Debug for RenderOptions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.extra.iter().map(|(name, _)| name).collect();
        out.debug_struct("RenderOptions")
            .field("destinations", &self.destinations)
            .field("endpoint", &self.endpoint)
            .field("path", &self.path)
            .field("model", &self.model)
            .field("generation", &self.generation)
            .field("extra", &names)
            .field("context", &self.context)
            .field("headers", &self.headers)
            .field("seed", &self.seed)
            .field("run_id", &self.run_id)
            .field("when", &self.when)
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// The path it is found at.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::Completions => "/v1/completions",
        }
    }

    /// The name `--endpoint-type` knows it by.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Completions => "completions",
        }
    }
}

impl RenderOptions {
    /// The options for the requests of a trace: recorded prompts are completions, unless the user
    /// said otherwise. `min_tokens` is whether rows say it.
    ///
    /// # Errors
    /// When a member of the user's own is one that the rows or other options decide, a list of
    /// messages would go where a prompt belongs, or a turn needs what only the server can say.
    pub fn for_trace(mut self, trace: &Trace, min_tokens: bool) -> Result<Self, RenderError> {
        self.endpoint = self.endpoint_for(trace);
        let contents = &trace.recorded.contents;
        self.recorded_prompts = contents.iter().any(|&content| content != Content::Words);
        // Turns of AIPerf's dialect are what is new in them.
        let of_format = if trace.recorded.dialect { Context::LiveAnswers } else { Context::Alone };
        self.context.get_or_insert(of_format);
        self.check_turns(trace)?;
        let messages = trace.recorded.contents.contains(&Content::Messages);
        if messages && self.endpoint == Endpoint::Completions {
            return Err(RenderError::MessagesToCompletions);
        }
        if let Some(record) = trace.recorded.unsettled
            && self.path.is_none()
            && !self.endpoint_named
        {
            return Err(RenderError::Unsettled(place(trace, record, "messages")));
        }
        let rows = trace.recorded.prompts;
        let hints = rows && !self.omit_kv_hints;
        let decided = [
            ("prompt", "the trace has the prompts", true),
            ("messages", "the trace has the prompts", true),
            ("stream", "use --streaming or --no-streaming instead", true),
            ("min_tokens", "pass --no-force-min-tokens to send your value", rows && min_tokens),
            ("hash_ids", "pass --omit-kv-hints to send your value", hints),
            ("block_size", "pass --omit-kv-hints to send your value", hints),
        ];
        let own = |key: &str| self.extra.iter().any(|(own, _)| own == key);
        let twice = decided.into_iter().filter(|&(key, _, decided)| decided && own(key));
        let twice: Vec<_> = twice.map(|(key, instead, _)| (key, instead)).collect();
        if twice.is_empty() { Ok(self) } else { Err(RenderError::Extra(twice)) }
    }
}

impl RenderOptions {
    /// All that is cut out of what servers say, in every spelling that is looked for.
    #[must_use]
    pub fn secrets(&self) -> Vec<Secret> {
        let headers = self.headers.iter().map(|(_, value)| value);
        let typed = self.api_key.iter().chain(headers).chain(&self.more_secrets).cloned();
        let query = self.path.iter().flat_map(UrlText::secrets);
        typed.chain(query).flat_map(|secret| secret.spellings()).collect()
    }

    /// The endpoint that the requests of a trace are for: the named one, or the trace's own.
    #[must_use]
    pub fn endpoint_for(&self, trace: &Trace) -> Endpoint {
        let completions = trace.recorded.prompts || trace.recorded.completions;
        if completions && !self.endpoint_named { Endpoint::Completions } else { self.endpoint }
    }

    /// Refuses turns that could not be added to those before them.
    fn check_turns(&self, trace: &Trace) -> Result<(), RenderError> {
        if self.context == Some(Context::Alone) {
            return Ok(());
        }
        // For each session, whether its turns are only what is new in them.
        let mut met: Vec<Option<bool>> = vec![None; trace.sessions.len()];
        for (number, record) in (0..).zip(&trace.records) {
            let content = trace.recorded.content_of(number);
            let is_delta = matches!(content, Content::Words | Content::Prompt);
            match met[record.session.as_usize()].replace(is_delta) {
                Some(other) if other != is_delta => {
                    return Err(RenderError::MixedSession(place(trace, number, "session_id")));
                }
                Some(true) if self.endpoint == Endpoint::Completions => {
                    return Err(RenderError::TurnsToCompletions(place(
                        trace,
                        number,
                        "session_id",
                    )));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Where a trace has a record's member.
pub(crate) fn place(trace: &Trace, record: u32, field: &'static str) -> Place {
    let file = trace.recorded.files.get(trace.recorded.file_of(record) as usize);
    let file = file.map_or_else(|| trace.source.name.clone(), |file| file.name.clone());
    let row = trace.records.get(record as usize).map_or(0, |record| record.row);
    Place { file, row, field }
}

impl Default for RenderOptions {
    fn default() -> Self {
        Self {
            destinations: vec![Destination {
                authority: "localhost:8000".to_owned(),
                base_path: String::new(),
            }],
            endpoint: Endpoint::Chat,
            endpoint_named: false,
            path: None,
            model: "default".to_owned(),
            streaming: true,
            include_usage: true,
            legacy_max_tokens: false,
            generation: Generation::default(),
            extra: Vec::new(),
            omit_kv_hints: false,
            context: None,
            headers: Vec::new(),
            session_header: "X-Correlation-ID".to_owned(),
            api_key: None,
            more_secrets: Vec::new(),
            recorded_prompts: false,
            seed: 0,
            run_id: "plan".to_owned(),
            when: When::Auto,
            budget_bytes: None,
            held_bytes: 0,
            threads: NonZero::<usize>::MIN,
        }
    }
}
