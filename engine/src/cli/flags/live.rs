//! What is to be seen of a run while it goes: options as typed.

use std::net::{IpAddr, SocketAddr};

use clap::Args;
use serde::Serialize;

use super::number::whole;
use super::target::{TargetFlags, nanos, own_address, seconds, seconds_or_none};
use crate::error::EngineError;
use crate::live::{LiveOptions, ScrapeText, ScrapeUrl};

/// Our own numbers for others, and a server's for the log.
#[derive(Clone, Debug, Args, Serialize, schemars::JsonSchema)]
#[command(next_help_heading = "Live")]
pub struct LiveFlags {
    /// Serve the run's counters and histograms at http://127.0.0.1:PORT/metrics, in Prometheus'
    /// text format, until the command ends; 0 takes any port that is free, and says which.
    #[arg(long, value_name = "PORT", value_parser = whole::<u16>)]
    pub prometheus_port: Option<u16>,

    /// The address of this host that they are served at; others can read them if it is none of
    /// this host alone.
    #[arg(long, default_value = "127.0.0.1", value_name = "ADDRESS", requires = "prometheus_port")]
    #[arg(value_parser = own_address)]
    pub prometheus_address: IpAddr,

    /// Go on serving the final numbers for so many seconds after the summary, because who asks now
    /// and then would miss them: Prometheus asks every 15 s or every minute, as it is configured.
    /// Ctrl-C ends it, and the exit code stays that of the run.
    #[arg(long, default_value = "0", value_name = "SECONDS", requires = "prometheus_port")]
    #[arg(value_parser = seconds_or_none)]
    // It begins when the run is over, and says nothing about it.
    #[serde(skip)]
    pub prometheus_linger_seconds: f64,

    /// Ask a vLLM or SGLang server for its own numbers beside the run and put them into the log:
    /// the URL of its metrics (without a path: /metrics). The key and headers of requests go along
    /// only where scheme, host and port are those of a --url. Of the URL the log keeps no value of
    /// the query, and of the path only usual words like metrics; others become the word path in
    /// brackets.
    #[arg(long, value_name = "URL")]
    pub scrape: Vec<ScrapeText>,

    /// Time between two askings, in seconds.
    #[arg(long, default_value = "1", value_name = "SECONDS", value_parser = interval)]
    pub scrape_interval: f64,

    /// As --scrape, for these URLs and for the /metrics of each --url.
    #[arg(long, hide_short_help = true, value_name = "URL", num_args = 0..)]
    pub server_metrics: Option<Vec<ScrapeText>>,

    /// Do not ask for what --server-metrics names.
    #[arg(long, hide_short_help = true)]
    pub no_server_metrics: bool,
}

/// The shortest time between two askings.
const INTERVAL_MIN_S: f64 = 0.05;

fn interval(text: &str) -> Result<f64, String> {
    let seconds = seconds(text)?;
    if seconds < INTERVAL_MIN_S {
        return Err(format!("no server is asked more often than each {INTERVAL_MIN_S} s"));
    }
    Ok(seconds)
}

impl LiveFlags {
    /// The options as meant.
    ///
    /// # Errors
    /// When one of the URLs cannot be asked. Here, and not as they are typed: what the parser of
    /// options refuses it repeats, with every key.
    pub fn options(&self, target: &TargetFlags) -> Result<LiveOptions, EngineError> {
        let meant = |option: &'static str| {
            move |url: &ScrapeText| -> Result<ScrapeUrl, EngineError> {
                let wrong = |words: String| {
                    let words = words.strip_prefix("--scrape ").unwrap_or(&words);
                    EngineError::Usage(format!("{option} {url}: {words}"))
                };
                url.as_typed().parse().map_err(wrong)
            }
        };
        let scrape = self.scrape.iter().map(meant("--scrape"));
        let mut scrape = scrape.collect::<Result<Vec<_>, _>>()?;
        if let Some(named) = self.server_metrics.as_ref().filter(|_| !self.no_server_metrics) {
            let (first, more) = target.targets()?;
            let own = std::iter::once(&first).chain(&more).map(ScrapeUrl::of);
            scrape.extend(own);
            for url in named.iter().map(meant("--server-metrics")) {
                scrape.push(url?);
            }
        }
        let address = self.prometheus_address;
        Ok(LiveOptions {
            serve_at: self.prometheus_port.map(|port| SocketAddr::new(address, port)),
            scrape,
            scrape_interval_ns: nanos(self.scrape_interval),
        })
    }

    /// What the user should know about what was typed.
    #[must_use]
    pub fn warnings(&self) -> Option<String> {
        let nobody = self.scrape.is_empty() && self.server_metrics.is_none();
        let words = "--no-server-metrics changes nothing: the server's /metrics is read only with \
                     --scrape or --server-metrics";
        (self.no_server_metrics && nobody).then(|| words.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Only {
        #[command(flatten)]
        live: LiveFlags,
        #[command(flatten)]
        target: TargetFlags,
    }

    fn meant(line: &str) -> LiveOptions {
        let words = std::iter::once("onbeat").chain(line.split_whitespace());
        let only = Only::try_parse_from(words).expect("parses");
        only.live.options(&only.target).expect("meant")
    }

    fn asked(line: &str) -> Vec<String> {
        meant(line).scrape.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn numbers_are_served_on_this_host_alone_unless_it_is_said_otherwise() {
        assert_eq!(meant("").serve_at, None);
        let at = |text: &str| Some(text.parse().expect("literal"));
        assert_eq!(meant("--prometheus-port 9100").serve_at, at("127.0.0.1:9100"));
        let open = "--prometheus-port 9100 --prometheus-address ::";
        assert_eq!(meant(open).serve_at, at("[::]:9100"));
        let named = "--prometheus-port 9100 --prometheus-address LocalHost";
        assert_eq!(meant(named).serve_at, at("127.0.0.1:9100"));
    }

    #[test]
    fn what_is_no_address_and_what_has_no_port_is_refused_in_words() {
        let refused = |line: &str| {
            let words = std::iter::once("onbeat").chain(line.split_whitespace());
            Only::try_parse_from(words).expect_err(line).to_string()
        };
        for name in ["nohost", "10.0.0", "127.0.0.1:9100", "http://127.0.0.1"] {
            let words = refused(&format!("--prometheus-port 1 --prometheus-address {name}"));
            assert!(words.contains("give an IP address of this host, like 127.0.0.1"), "{words}");
        }
        for line in ["--prometheus-address ::1", "--prometheus-linger-seconds 20"] {
            assert!(refused(line).contains("--prometheus-port"), "{line}");
        }
        assert!(
            refused("--prometheus-port 1 --prometheus-linger-seconds=-1").contains("0 or more")
        );
    }

    #[test]
    fn who_is_asked_and_how_often() {
        let two = asked("--scrape h:1 --scrape h:2/v1/metrics");
        assert_eq!(two, ["http://h:1/metrics", "http://h:2/v1/metrics"]);
        assert_eq!(meant("--scrape-interval 0.25").scrape_interval_ns, 250_000_000);
        let own = "http://h:8000/metrics";
        assert_eq!(asked("--url h:8000/v1 --server-metrics"), [own]);
        assert_eq!(
            asked("--url h:8000 --server-metrics a:1 b:2/metrics"),
            [own, "http://a:1/metrics", "http://b:2/metrics"]
        );
        assert!(asked("--server-metrics a:1 --no-server-metrics").is_empty());
        assert!(interval("0.001").is_err_and(|words| words.contains("0.05 s")));
    }
}
