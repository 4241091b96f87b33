//! Options of AIPerf's that change nothing here: as typed, and then not looked at again.
//!
//! They are taken so that a command that is documented, or lies in somebody's script, works after
//! its first word was changed; each that is given is told once, with the reason why it changes
//! nothing.

use clap::Args;
use serde::Serialize;

/// What AIPerf has and Onbeat does without.
#[derive(Clone, Debug, Default, Args, Serialize)]
#[command(next_help_heading = "Taken from AIPerf's commands, without effect")]
pub struct PeerFlags {
    /// Prompts are made of words that are one token each in all common vocabularies.
    #[arg(long, hide_short_help = true, value_name = "NAME")]
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
    pub workers_max: Option<u32>,

    /// Records are not processed during the run.
    #[arg(long, hide_short_help = true, visible_alias = "record-processors", value_name = "N")]
    pub record_processor_service_count: Option<u32>,

    /// No GPU is asked for telemetry.
    #[arg(long, hide_short_help = true)]
    pub no_gpu_telemetry: bool,

    /// The server's /metrics is not read.
    #[arg(long, hide_short_help = true)]
    pub no_server_metrics: bool,

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
            (self.tokenizer.is_some(), "--tokenizer"),
            (self.tokenizer_revision.is_some(), "--tokenizer-revision"),
            (self.tokenizer_trust_remote_code, "--tokenizer-trust-remote-code"),
        ];
        let tokenizer = tokenizer.map(|(given, name)| (given, name, words));
        let others = [
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
            (self.no_gpu_telemetry, "--no-gpu-telemetry", "no GPU is asked for telemetry"),
            (self.no_server_metrics, "--no-server-metrics", "the server's /metrics is not read"),
            (
                self.export_level.is_some(),
                "--export-level",
                "the log has everything; `onbeat export` writes what is wanted of it",
            ),
        ];
        let told = |(_, name, why): &(bool, &str, &str)| format!("{name} changes nothing: {why}");
        let all = tokenizer.iter().chain(&others);
        all.filter(|(given, _, _)| *given).map(told).collect()
    }
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
                   --no-gpu-telemetry --no-server-metrics --export-level raw";
        let told = told(all);
        assert_eq!(told.len(), 9, "{told:?}");
        assert!(told[0].starts_with("--tokenizer changes nothing: prompts"), "{told:?}");
    }
}
