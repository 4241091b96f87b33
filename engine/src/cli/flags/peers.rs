//! Options of AIPerf's that change nothing here: as typed, and then not looked at again.
//!
//! They are taken so that a command that is documented, or lies in somebody's script, works after
//! its first word was changed; each that is given is told once, with the reason why it changes
//! nothing.

use std::path::Path;

use clap::Args;
use onbeat_shared::foreign::shown_path;
use serde::Serialize;

use super::number::whole;
use crate::prompt::{WORDS, unknown_words};

/// What AIPerf has and Onbeat does without.
#[derive(Clone, Debug, Default, Args, Serialize, schemars::JsonSchema)]
#[command(next_help_heading = "Taken from AIPerf's commands, without effect")]
pub struct PeerFlags {
    /// Prompts are made of exact words instead, which are one token each in all common
    /// vocabularies; of a local tokenizer.json it is told whether they are in it, too.
    #[arg(long, hide_short_help = true, value_name = "NAME|FILE")]
    pub tokenizer: Option<String>,

    /// As --tokenizer.
    #[arg(long, hide_short_help = true, value_name = "NAME")]
    pub tokenizer_revision: Option<String>,

    /// As --tokenizer.
    #[arg(long, hide_short_help = true)]
    pub tokenizer_trust_remote_code: bool,

    /// Token counts are the server's wherever it says them.
    #[arg(long, hide_short_help = true)]
    pub use_server_token_count: bool,

    /// There are no worker processes; see --cores.
    #[arg(long, hide_short_help = true, visible_alias = "max-workers", value_name = "N")]
    #[arg(value_parser = whole::<u32>)]
    pub workers_max: Option<u32>,

    /// Records are not processed during the run.
    #[arg(long, hide_short_help = true, visible_alias = "record-processors", value_name = "N")]
    #[arg(value_parser = whole::<u32>)]
    pub record_processor_service_count: Option<u32>,

    /// Prompts are made of words of Onbeat's own, the same for the same seed.
    #[arg(long, hide_short_help = true, value_name = "NAME")]
    pub prompt_corpus: Option<String>,

    /// Requests come in the trace's order.
    #[arg(long, hide_short_help = true, value_name = "STRATEGY")]
    pub dataset_sampling_strategy: Option<String>,

    /// Answers in flight are waited for anyway, each up to --request-timeout-seconds.
    #[arg(long, hide_short_help = true, value_name = "SECONDS", value_parser = patience)]
    pub benchmark_grace_period: Option<f64>,

    /// No GPU is asked for telemetry. A trace goes before it or behind another option: what follows
    /// it is its own.
    #[arg(long, hide_short_help = true, value_name = "URL", num_args = 0..)]
    pub gpu_telemetry: Option<Vec<String>>,

    /// As --gpu-telemetry.
    #[arg(long, hide_short_help = true)]
    pub no_gpu_telemetry: bool,

    /// The log has the stamps of every exchange anyway; `onbeat export` writes them.
    #[arg(long, hide_short_help = true)]
    pub export_http_trace: bool,

    /// A run writes one log (--output); `onbeat export --as aiperf` writes AIPerf's files.
    #[arg(long, hide_short_help = true, visible_alias = "profile-export-file")]
    #[arg(value_name = "NAME")]
    pub profile_export_prefix: Option<String>,

    /// The log has everything; `onbeat export` writes what is wanted of it.
    #[arg(long, hide_short_help = true, visible_alias = "profile-export-level")]
    #[arg(value_name = "LEVEL")]
    pub export_level: Option<String>,
}

impl PeerFlags {
    /// What the user should know about what was typed.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let words = "prompts are made of words that are one token each in all common vocabularies";
        let tokenizer = [
            (self.tokenizer_revision.is_some(), "--tokenizer-revision"),
            (self.tokenizer_trust_remote_code, "--tokenizer-trust-remote-code"),
        ];
        let tokenizer = tokenizer.map(|(given, name)| (given, name, words));
        let gpu = "no GPU is asked for telemetry";
        let others = [
            (
                self.prompt_corpus.is_some(),
                "--prompt-corpus",
                "prompts are made of words of Onbeat's own, the same for the same seed",
            ),
            (
                self.dataset_sampling_strategy.is_some(),
                "--dataset-sampling-strategy",
                "requests come in the trace's order",
            ),
            (
                self.benchmark_grace_period.is_some(),
                "--benchmark-grace-period",
                "answers in flight are waited for, each up to --request-timeout-seconds",
            ),
            (
                self.export_http_trace,
                "--export-http-trace",
                "the log has the stamps of every exchange; `onbeat export` writes them",
            ),
            (
                self.profile_export_prefix.is_some(),
                "--profile-export-prefix",
                "a run writes one log (--output); `onbeat export --as aiperf` writes AIPerf's files",
            ),
            (
                self.use_server_token_count,
                "--use-server-token-count",
                "token counts are the server's wherever it says them",
            ),
            (
                self.workers_max.is_some(),
                "--workers-max",
                "there are no worker processes; --cores says how many threads send",
            ),
            (
                self.record_processor_service_count.is_some(),
                "--record-processor-service-count",
                "records are not processed during the run",
            ),
            (self.gpu_telemetry.is_some(), "--gpu-telemetry", gpu),
            (self.no_gpu_telemetry, "--no-gpu-telemetry", gpu),
            (
                self.export_level.is_some(),
                "--export-level",
                "the log has everything; `onbeat export` writes what is wanted of it",
            ),
        ];
        let told = |(_, name, why): &(bool, &str, &str)| format!("{name} changes nothing: {why}");
        let all = tokenizer.iter().chain(&others);
        let named = self.tokenizer.iter().map(|name| instead_of(name));
        named.chain(all.filter(|(given, _, _)| *given).map(told)).collect()
    }
}

/// What is done instead of using a tokenizer, and whether that is as good.
fn instead_of(tokenizer: &str) -> String {
    let exact = "exact word prompts are used instead";
    let path = Path::new(tokenizer);
    if !path.is_file() {
        return format!(
            "--tokenizer changes nothing: {tokenizer:?} is no local file; {exact}, whose words are \
             one token each in all common vocabularies"
        );
    }
    let shown = shown_path(path);
    match unknown_words(path) {
        Ok(0) => format!(
            "--tokenizer changes nothing: {exact}, and all {WORDS} words are one token each in \
             {shown}"
        ),
        Ok(unknown) => format!(
            "--tokenizer changes nothing: {exact}, but {unknown} of the {WORDS} words are no token \
             in {shown}: prompts may be longer there than recorded"
        ),
        Err(why) => format!("--tokenizer changes nothing: {shown} {why}; {exact}"),
    }
}

/// A time to wait, which may have no end.
fn patience(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|&seconds: &f64| seconds >= 0.0);
    seconds.ok_or_else(|| "give 0 seconds or more, or inf".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Only {
        #[command(flatten)]
        flags: PeerFlags,
    }

    fn told(line: &str) -> Vec<String> {
        let words = std::iter::once("onbeat").chain(line.split_whitespace());
        Only::try_parse_from(words).expect("parses").flags.warnings()
    }

    #[test]
    fn each_option_that_is_given_is_told_with_its_reason() {
        assert!(told("").is_empty());
        let all = "--tokenizer gpt2 --tokenizer-revision main --tokenizer-trust-remote-code \
                   --use-server-token-count --max-workers 3 --record-processors 2 \
                   --gpu-telemetry --no-gpu-telemetry --export-level raw --prompt-corpus coding \
                   --dataset-sampling-strategy shuffle --benchmark-grace-period inf \
                   --export-http-trace --profile-export-prefix mine";
        let told = told(all);
        assert_eq!(told.len(), 14, "{told:?}");
        assert!(told.iter().all(|words| words.contains(" changes nothing: ")), "{told:?}");
        let words = "--tokenizer changes nothing: \"gpt2\" is no local file; exact word prompts";
        assert!(told[0].starts_with(words), "{told:?}");
        for wrong in ["-1", "long", "NaN"] {
            assert!(patience(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_local_tokenizer_is_asked_for_the_words() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let told = |text: &str| {
            let path = folder.path().join("tokenizer.json");
            std::fs::write(&path, text).expect("the folder is writable");
            instead_of(path.to_str().expect("a plain path"))
        };
        let few = told(r#"{"model":{"type":"BPE","vocab":{"a":0}}}"#);
        assert!(few.contains("but 4096 of the 4096 words are no token in"), "{few}");
        let other = told(r#"{"vocab":1}"#);
        assert!(other.contains("is no tokenizer.json") && other.contains("instead"), "{other}");
    }
}
