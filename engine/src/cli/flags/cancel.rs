//! Which requests are cancelled in the middle of their answers: options as typed.

use clap::Args;
use onbeat_shared::trace::decimal::Decimal;
use serde::Serialize;

use super::timing::seconds;
use crate::cli::flags::Typed;
use crate::plan::{Cancelling, PlanOptions, Share};

/// Cancellations.
#[derive(Clone, Debug, Default, Args, Serialize, schemars::JsonSchema)]
#[command(next_help_heading = "Cancellations")]
pub struct CancelFlags {
    /// Cancel this share of the requests, in percent, by hanging up on the server; --seed decides
    /// which, as it does in AIPerf (default: none).
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub request_cancellation_rate: Option<Typed<Option<Share>>>,

    /// How long after the last byte of such a request has left (default: 0, at once). An answer
    /// that ends before is an ordinary one.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    #[arg(requires = "request_cancellation_rate")]
    pub request_cancellation_delay: Option<Typed<i64>>,

    /// Cancel the requests whose recorded client gave up (request_canceled), after as long as it
    /// took then (duration_e2e_ms, divided by --replay-speedup).
    #[arg(long)]
    pub replay_cancellations: bool,
}

impl CancelFlags {
    /// The schedule's options with these among them.
    #[must_use]
    pub fn apply(&self, mut options: PlanOptions) -> PlanOptions {
        let delay_ns = self.request_cancellation_delay.as_ref().map_or(0, |typed| typed.value);
        let cancelling = |share: &Typed<Option<Share>>| Cancelling { share: share.value, delay_ns };
        options.cancelling = self.request_cancellation_rate.as_ref().map(cancelling);
        options.replay_cancellations = self.replay_cancellations;
        options
    }
}

fn percent(text: &str) -> Result<Typed<Option<Share>>, String> {
    let right = "give a share in percent, above 0 and at most 100, like 10";
    // One digit's check against words like `inf`; the share is that of the double, as in AIPerf.
    Decimal::parse(text).map_err(|error| format!("{error}; {right}"))?;
    let percent: f64 = text.parse().map_err(|_no_number| right.to_owned())?;
    let value = Share::of(percent / 100.0).map_err(|_outside| right.to_owned())?;
    Ok(Typed { text: text.to_owned(), value })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Only {
        #[command(flatten)]
        flags: CancelFlags,
    }

    fn options(line: &str) -> Result<PlanOptions, String> {
        let words = std::iter::once("onbeat").chain(line.split_whitespace());
        let only = Only::try_parse_from(words).map_err(|error| error.to_string())?;
        Ok(only.flags.apply(PlanOptions::default()))
    }

    #[test]
    fn shares_are_percentages_and_delays_need_one() {
        let meant = options("--request-cancellation-rate 25 --request-cancellation-delay 0.03");
        let cancelling =
            Cancelling { share: Share::of(0.25).expect("a share"), delay_ns: 30_000_000 };
        assert_eq!(meant.expect("meant").cancelling, Some(cancelling));
        let all = options("--request-cancellation-rate 100").expect("meant");
        assert_eq!(all.cancelling, Some(Cancelling { share: None, delay_ns: 0 }));
        assert!(options("--replay-cancellations").expect("meant").replay_cancellations);
        assert_eq!(options(""), Ok(PlanOptions::default()));
        for line in [
            "--request-cancellation-rate 0",
            "--request-cancellation-rate 101",
            "--request-cancellation-rate inf",
            "--request-cancellation-rate many",
            "--request-cancellation-delay 1",
            "--request-cancellation-rate 5 --request-cancellation-delay -1",
        ] {
            assert!(options(line).is_err(), "{line}");
        }
    }
}
