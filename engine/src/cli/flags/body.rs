//! What requests look like: options as typed. Keys and header values are secrets from here on.

use std::num::NonZero;
use std::path::{Path, PathBuf};

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use onbeat_shared::foreign::shown_path;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

pub use crate::cli::flags::extra::ExtraFlag;
use crate::cli::flags::generation::GenerationFlags;
use crate::cli::flags::number::whole;
use crate::cli::flags::target::name_only;
use crate::error::EngineError;
use crate::limits::CORES_MAX;
use crate::render::{Context, Endpoint, RenderOptions, Secret, UrlText, When};

/// Longest file that is read for a key.
const KEY_FILE_BYTES_MAX: u64 = 64 << 10;

/// The requests.
#[derive(Clone, Debug, Args, Serialize, schemars::JsonSchema)]
#[command(next_help_heading = "Requests")]
pub struct BodyFlags {
    /// The model that is asked for (default: the first that the server lists at /v1/models, or
    /// `default` if it lists none).
    #[arg(long, short, visible_alias = "model-names", value_name = "NAME")]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub model: Option<String>,

    /// The kind of endpoint, which decides the body's shape (default: completions where prompts are
    /// recorded, else chat).
    #[arg(long, value_enum, value_name = "KIND")]
    pub endpoint_type: Option<EndpointFlag>,

    /// A path that replaces the endpoint's usual one.
    #[arg(long, visible_alias = "custom-endpoint", value_name = "PATH")]
    pub endpoint: Option<UrlText>,

    /// Ask for a streamed answer; it is so anyway.
    #[arg(long, overrides_with = "no_streaming")]
    pub streaming: bool,

    /// Ask for the answer in one piece: there are no token times then.
    #[arg(long, overrides_with = "streaming")]
    pub no_streaming: bool,

    /// Do not ask for token counts at the end of the stream, for servers that refuse it.
    #[arg(long)]
    pub no_include_usage: bool,

    /// Ask for token counts with every event of the stream, too: an event of several tokens then
    /// counts as so many.
    #[arg(long)]
    pub per_chunk_usage: bool,

    /// Say `max_tokens` instead of `max_completion_tokens` in chat bodies.
    #[arg(long)]
    pub use_legacy_max_tokens: bool,

    /// Add members to every body, as `key:value`, several parted by commas, or as a JSON object;
    /// may be repeated.
    #[arg(long, value_name = "KEY:VALUE", value_parser = extra)]
    pub extra_inputs: Vec<ExtraFlag>,

    /// Keep recorded block ids and block sizes out of bodies, for servers that refuse what they do
    /// not know.
    #[arg(long)]
    pub omit_kv_hints: bool,

    /// How the turns of a session follow from each other (default: each alone; in AIPerf's dialect
    /// of Mooncake's format, after the server's own answers).
    #[arg(long, value_enum, value_name = "MODE")]
    pub context_mode: Option<ContextFlag>,

    /// Add a header; may be repeated, and replaces a header of ours of the same name.
    #[arg(long, short = 'H', value_name = "NAME: VALUE", value_parser = header)]
    pub header: Vec<HeaderFlag>,

    /// The header that carries the session's name.
    #[arg(long, default_value = "X-Correlation-ID", value_name = "NAME")]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub session_header: String,

    /// The key sent as `Authorization: Bearer KEY`; the environment variable and --api-key-file
    /// keep it out of the list of processes.
    #[arg(long, env = "OPENAI_API_KEY", hide_env_values = true, value_name = "KEY")]
    pub api_key: Option<Secret>,

    /// A file whose only line is the key; it goes before the environment variable.
    #[arg(long, value_name = "FILE")]
    #[serde(serialize_with = "name_only")]
    pub api_key_file: Option<PathBuf>,

    /// What all generated text depends on.
    #[arg(long, visible_alias = "random-seed", default_value_t = 0, value_name = "NUMBER")]
    #[arg(value_parser = whole::<u64>)]
    pub seed: u64,

    /// When requests are rendered: before the first is sent, or during the run, ahead of sending.
    #[arg(long, value_enum, default_value_t, value_name = "WHEN")]
    pub render: WhenFlag,

    /// Most memory that a run may take, like 800MB or 4GiB: all of the process, from the trace to
    /// the last request; what the trace and its plan leave of it is for log buffers, prompts and
    /// rendered requests, a quarter of these for replies that later turns repeat. Too little is
    /// refused with what would do. Not counted is the log itself, of which the summary is made at
    /// the end. Without it, rendered requests may take half of what is free (at most 4GiB if they
    /// are rendered during the run), and a run takes more beside them: 64 MiB of log buffers for
    /// each core, and some hundred bytes for each request and 8 for each block id.
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub render_budget: Option<u64>,

    /// Threads that render requests before the first is sent; the bytes do not depend on it
    /// (default: one for each CPU).
    #[arg(long, value_name = "N", value_parser = whole::<NonZero<usize>>)]
    pub render_threads: Option<NonZero<usize>>,

    /// How the model chooses its words.
    #[command(flatten)]
    #[serde(flatten)]
    pub generation: GenerationFlags,
}

/// `--endpoint-type` as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EndpointFlag {
    /// /v1/chat/completions: the prompt is one user message.
    Chat,
    /// /v1/completions: the prompt is a string.
    Completions,
}

/// `--render` as typed.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum WhenFlag {
    /// All before the first is sent if they fit --render-budget, else ahead.
    #[default]
    Auto,
    /// All before the first is sent, or the run is refused.
    All,
    /// During the run, as far ahead as --render-budget reaches.
    Ahead,
}

/// `--context-mode` as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum ContextFlag {
    /// Each turn is what was recorded of it, and nothing else.
    MessageArrayWithResponses,
    /// A turn is added to the texts of the turns before it; what the server answers is not sent.
    DeltasWithResponses,
    /// A turn is added to the turns before it and the server's answers to them.
    DeltasWithoutResponses,
    /// Not defined further than its name, in AIPerf neither: refused.
    #[value(hide = true)]
    MessageArrayWithoutResponses,
}

/// One `--header` as typed.
#[derive(Clone, Debug, PartialEq, Eq, schemars::JsonSchema)]
#[schemars(with = "String")]
pub struct HeaderFlag {
    /// Before the colon.
    pub name: String,
    /// Behind it.
    pub value: Secret,
}

impl Serialize for HeaderFlag {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{}: {}", self.name, Secret::SHOWN))
    }
}

impl BodyFlags {
    /// How requests are written, as meant; whoever knows the servers and the run fills in
    /// `destinations` and `run_id`.
    ///
    /// # Errors
    /// When an option has no usable value.
    pub fn options(&self) -> Result<RenderOptions, EngineError> {
        if self.endpoint.as_ref().is_some_and(|path| path.as_sent().is_empty()) {
            return Err(EngineError::Usage("--endpoint is empty; give a path".to_owned()));
        }
        if self.header.iter().any(|header| header.name.is_empty()) {
            return Err(EngineError::Usage(
                "a --header has no name; give a name, a colon and a value, like `X-Team: search`"
                    .to_owned(),
            ));
        }
        if let Some(fault) = self.extra_inputs.iter().find_map(ExtraFlag::fault) {
            return Err(EngineError::Usage(format!("--extra-inputs: {fault}")));
        }
        let cpus = std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
        let most = NonZero::new(CORES_MAX).expect("some cores can send");
        let threads = self.render_threads.unwrap_or(cpus).min(most);
        let headers = self.header.iter().map(|header| (header.name.clone(), header.value.clone()));
        let default = RenderOptions::default();
        Ok(RenderOptions {
            endpoint: match self.endpoint_type {
                Some(EndpointFlag::Completions) => Endpoint::Completions,
                Some(EndpointFlag::Chat) | None => Endpoint::Chat,
            },
            endpoint_named: self.endpoint_type.is_some(),
            path: self.endpoint.clone(),
            model: self.model.clone().unwrap_or(default.model),
            streaming: !self.no_streaming,
            include_usage: !self.no_include_usage,
            legacy_max_tokens: self.use_legacy_max_tokens,
            generation: self.generation.meant(),
            extra: self.members(),
            omit_kv_hints: self.omit_kv_hints,
            context: self.context_mode.map(ContextFlag::meant).transpose()?,
            headers: headers.collect(),
            session_header: self.session_header.clone(),
            api_key: self.key()?,
            more_secrets: self.extra_inputs.iter().flat_map(ExtraFlag::secrets).collect(),
            seed: self.seed,
            when: match self.render {
                WhenFlag::Auto => When::Auto,
                WhenFlag::All => When::All,
                WhenFlag::Ahead => When::Ahead,
            },
            budget_bytes: self.render_budget,
            threads,
            ..default
        })
    }

    /// The key that is sent, if any is.
    fn key(&self) -> Result<Option<Secret>, EngineError> {
        let Some(file) = &self.api_key_file else {
            return Ok(self.api_key.clone().filter(|key| !key.reveal().is_empty()));
        };
        if self.key_was_typed() {
            return Err(EngineError::Usage(
                "--api-key and --api-key-file both give a key; leave one out".to_owned(),
            ));
        }
        key_in(file).map(Some)
    }

    /// Whether the key stands on the command line.
    fn key_was_typed(&self) -> bool {
        let from_environment = std::env::var("OPENAI_API_KEY").ok();
        self.api_key.as_ref().is_some_and(|key| {
            from_environment.is_none_or(|other| other.as_bytes() != key.reveal())
        })
    }

    /// The user's own members, and what asks for counts with every event.
    fn members(&self) -> Vec<(String, Value)> {
        let mut members: Vec<(String, Value)> =
            self.extra_inputs.iter().flat_map(|extra| extra.members().clone()).collect();
        if self.per_chunk_usage && !self.no_streaming && !self.no_include_usage {
            // Of a key that is given twice the last value counts.
            match members.iter_mut().rev().find(|(key, _)| key == "stream_options") {
                Some((_, Value::Object(own))) => {
                    own.entry("continuous_usage_stats").or_insert(true.into());
                }
                Some(_) => {}
                None => members.push((
                    "stream_options".to_owned(),
                    json!({"include_usage": true, "continuous_usage_stats": true}),
                )),
            }
        }
        members
    }

    /// What the user should know about what was typed.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let typed = self.key_was_typed();
        let words = "--api-key shows in the list of processes; OPENAI_API_KEY and \
                     --api-key-file do not";
        let usage = "--per-chunk-usage changes nothing beside --no-streaming or --no-include-usage";
        let in_vain = self.per_chunk_usage && (self.no_streaming || self.no_include_usage);
        let list = self.model.as_deref().is_some_and(|model| model.contains(','));
        let one = "--model is one name, comma and all: for several models make several runs";
        let told = [(typed, words), (in_vain, usage), (list, one)];
        told.iter().filter(|(given, _)| *given).map(|(_, words)| (*words).to_owned()).collect()
    }
}

impl ContextFlag {
    fn meant(self) -> Result<Context, EngineError> {
        match self {
            Self::MessageArrayWithResponses => Ok(Context::Alone),
            Self::DeltasWithResponses => Ok(Context::Turns),
            Self::DeltasWithoutResponses => Ok(Context::LiveAnswers),
            Self::MessageArrayWithoutResponses => Err(EngineError::Usage(
                "--context-mode message_array_without_responses is a name that AIPerf reserves and \
                 gives no meaning yet; deltas_without_responses puts the server's answers between \
                 the turns"
                    .to_owned(),
            )),
        }
    }
}

/// The key in a file of one line.
fn key_in(file: &Path) -> Result<Secret, EngineError> {
    let wrong = |words: &str| {
        EngineError::Usage(format!(
            "--api-key-file {}: {words}; right would be a file of one line, the key",
            shown_path(file)
        ))
    };
    // Looked at before it is opened: a pipe that nobody writes to would be waited for.
    let failed = |error| EngineError::io("read the key from", file, error);
    let meta = std::fs::metadata(file).map_err(failed)?;
    if !meta.is_file() || meta.len() > KEY_FILE_BYTES_MAX {
        return Err(wrong("it is no file, or too long for a key"));
    }
    // Whoever drops it overwrites it.
    let text = Secret::new(std::fs::read(file).map_err(failed)?);
    let key = text.reveal().trim_ascii();
    if key.is_empty() {
        return Err(wrong("it is empty"));
    }
    if key.iter().any(|byte| byte.is_ascii_control()) {
        return Err(wrong("it has more than one line, or a control character"));
    }
    Ok(Secret::new(key))
}

/// Takes any text: a message of clap's about a bad one would repeat it, and it may hold a key.
/// [`BodyFlags::options`] refuses what has no name.
#[expect(clippy::unnecessary_wraps, reason = "the shape clap wants")]
fn header(text: &str) -> Result<HeaderFlag, String> {
    let (name, value) = text.split_once(':').unwrap_or(("", text));
    Ok(HeaderFlag { name: name.trim().to_owned(), value: Secret::new(value.trim()) })
}

/// Takes any text, as [`header`] does; [`BodyFlags::options`] refuses what is malformed.
#[expect(clippy::unnecessary_wraps, reason = "the shape clap wants")]
fn extra(text: &str) -> Result<ExtraFlag, String> {
    Ok(ExtraFlag::new(text))
}

fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|last: char| last.is_ascii_alphabetic());
    let factor: Option<u64> = match &text[digits.len()..] {
        "" | "B" => Some(1),
        "kB" | "KB" => Some(1_000),
        "MB" | "M" => Some(1_000_000),
        "GB" | "G" => Some(1_000_000_000),
        "KiB" => Some(1 << 10),
        "MiB" => Some(1 << 20),
        "GiB" => Some(1 << 30),
        _ => None,
    };
    let bytes = factor.and_then(|factor| digits.trim().parse::<u64>().ok()?.checked_mul(factor));
    bytes.ok_or_else(|| "give a whole number of bytes, like 800MB or 4GiB".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Only {
        #[command(flatten)]
        flags: BodyFlags,
    }

    fn parse(words: &[&str]) -> Result<BodyFlags, String> {
        let words = std::iter::once(&"onbeat").chain(words);
        Only::try_parse_from(words).map(|only| only.flags).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_typed_is_meant() {
        let words = [
            "--model",
            "m",
            "--endpoint-type",
            "completions",
            "--no-streaming",
            "--streaming",
            "--no-include-usage",
            "-H",
            "X-A: b: c",
            "--random-seed",
            "7",
            "--render-budget",
            "4GiB",
            "--render",
            "ahead",
            "--render-threads",
            "3",
            "--endpoint",
            "/x",
        ];
        let options = parse(&words).expect("parses").options().expect("meant");
        assert_eq!((options.model.as_str(), options.endpoint), ("m", Endpoint::Completions));
        assert!(options.endpoint_named && !options.omit_kv_hints);
        assert!(options.streaming && !options.include_usage && !options.legacy_max_tokens);
        assert_eq!(options.headers, [("X-A".to_owned(), Secret::new("b: c"))]);
        assert_eq!((options.seed, options.budget_bytes), (7, Some(4 << 30)));
        assert_eq!(options.when, When::Ahead);
        assert_eq!((options.threads.get(), options.path), (3, Some(UrlText::new("/x"))));
        let none = parse(&["--no-streaming"]).expect("parses").options().expect("meant");
        assert!(!none.streaming);
    }

    #[test]
    fn extra_members_are_pairs_or_objects() {
        let words = [
            "--extra-inputs",
            "temperature:0.5",
            "--extra-inputs",
            "stop:END",
            "--extra-inputs",
            "{\"a\":{\"b\":[1]},\"c\":null}",
            "--omit-kv-hints",
        ];
        let options = parse(&words).expect("parses").options().expect("meant");
        let json: Vec<String> =
            options.extra.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(json, ["temperature=0.5", "stop=\"END\"", "a={\"b\":[1]}", "c=null"]);
        assert!(options.omit_kv_hints && !options.endpoint_named);
        for wrong in ["temperature", ":1", "{\"a\":", "[1]"] {
            let malformed = parse(&["--extra-inputs", wrong]).expect("judged later").options();
            assert_eq!(malformed.expect_err(wrong).exit_code(), 2);
        }
    }

    #[test]
    fn counts_with_every_event_are_asked_for_in_the_stream_s_options() {
        let extra = |words: &[&str]| {
            let words = [&["--per-chunk-usage"], words].concat();
            let flags = parse(&words).expect("parses");
            let extra = flags.options().expect("meant").extra;
            let json: Vec<String> =
                extra.iter().map(|(key, value)| format!("{key}={value}")).collect();
            (json.join(" "), flags.warnings())
        };
        let whole = "stream_options={\"include_usage\":true,\"continuous_usage_stats\":true}";
        assert_eq!(extra(&[]).0, whole);
        let own = ["--extra-inputs", "stream_options:{\"include_obfuscation\":false}"];
        assert!(extra(&own).0.ends_with("false,\"continuous_usage_stats\":true}"));
        for other in ["--no-streaming", "--no-include-usage"] {
            let (none, told) = extra(&[other]);
            assert!(none.is_empty() && told[0].contains("changes nothing beside"), "{told:?}");
        }
    }

    #[test]
    fn context_modes_are_aiperfs_and_the_one_without_meaning_is_refused() {
        let meant = |mode: &str| parse(&["--context-mode", mode]).expect("parses").options();
        for (mode, context) in [
            ("message_array_with_responses", Context::Alone),
            ("deltas_with_responses", Context::Turns),
            ("deltas_without_responses", Context::LiveAnswers),
        ] {
            assert_eq!(meant(mode).expect("meant").context, Some(context), "{mode}");
        }
        let words = meant("message_array_without_responses").expect_err("reserved").to_string();
        assert!(
            words.contains("reserves") && words.contains("deltas_without_responses"),
            "{words}"
        );
    }

    #[test]
    fn secrets_show_nowhere() {
        let flags = parse(&["--api-key", "hunter2", "-H", "X-Key: hunter2"]).expect("parses");
        let json = serde_json::to_string(&flags).expect("serialises");
        for text in [json, format!("{flags:?}"), format!("{:?}", flags.options())] {
            assert!(!text.contains("hunter2"), "{text}");
        }
        let nameless = parse(&["-H", "hunter2"]).expect("judged later").options();
        let error = nameless.expect_err("no colon").to_string();
        assert!(error.contains("a name, a colon and a value") && !error.contains("hunter2"));
        assert_eq!(flags.warnings().len(), 1);
    }

    #[test]
    fn a_key_can_come_from_a_file() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("key");
        let read = |text: &str, more: &[&str]| {
            std::fs::write(&file, text).expect("writable");
            let path = file.to_string_lossy().into_owned();
            let words = [&["--api-key-file", &path], more].concat();
            parse(&words).expect("judged later").options().map(|options| options.api_key)
        };
        assert_eq!(read("hunter2\n", &[]).expect("a key"), Some(Secret::new("hunter2")));
        let long = "hunter2".repeat(10_000);
        for (text, why) in
            [("", "empty"), (" \n", "empty"), ("hunter2\nhunter2", "one line"), (&long, "too long")]
        {
            let words = read(text, &[]).expect_err(why).to_string();
            assert!(words.contains(why) && !words.contains("hunter2"), "{words}");
        }
        let both = read("hunter2", &["--api-key", "typed"]).expect_err("two keys").to_string();
        assert!(both.contains("leave one out"), "{both}");
        std::fs::remove_file(&file).expect("it is there");
        let path = file.to_string_lossy().into_owned();
        let none = parse(&["--api-key-file", &path]).expect("judged later").options();
        assert!(none.expect_err("no file").to_string().contains("read the key from"));
    }

    #[test]
    fn sizes_are_whole_bytes() {
        for (text, size) in [("5", 5), ("5kB", 5_000), ("2MiB", 2 << 20), ("3GB", 3_000_000_000)] {
            assert_eq!(bytes(text), Ok(size), "{text}");
        }
        for text in ["", "-1", "1.5GB", "9999999999999GiB", "5 apples"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}
