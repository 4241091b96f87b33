//! Where requests go and how connections are made: options as typed.

use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZero;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::{Serialize, Serializer};

use crate::cli::flags::number::whole;
use crate::error::EngineError;
use crate::net::target::Target;
use crate::net::tls::TlsOptions;
use crate::net::way::WayOptions;
use crate::policy::deadline::Limits;
use crate::policy::reuse::Strategy;
use crate::readiness::{Look, Readiness};
use crate::render::UrlText;
use crate::replayer::driver::DriverKind;

/// The server and the way to it.
#[derive(Clone, Debug, Args, Serialize, schemars::JsonSchema)]
#[command(next_help_heading = "Server and connections")]
pub struct TargetFlags {
    /// Base URL of the server; the endpoint's path is added to it. Several, repeated or with commas
    /// between them, are taken by sessions in turn; each session stays with its own.
    #[arg(long, short, visible_aliases = ["api-endpoint", "base-url"], env = "ONBEAT_URL")]
    #[arg(hide_env_values = true, default_value = "http://localhost:8000", value_name = "URL")]
    #[arg(value_delimiter = ',')]
    pub url: Vec<UrlText>,

    /// How sessions choose among several URLs.
    #[arg(long, value_enum, default_value_t, value_name = "STRATEGY")]
    pub url_strategy: UrlStrategyFlag,

    /// Before the first request, wait up to this many seconds for each server to be ready (default:
    /// do not wait).
    #[arg(long, visible_alias = "ready-check-timeout-sec", default_value = "0")]
    #[arg(value_name = "SECONDS", value_parser = seconds_or_none)]
    pub wait_for_model_timeout: f64,

    /// What makes a server ready: that /v1/models lists the model, that it answers a request for
    /// one token, or both.
    #[arg(long, value_enum, default_value_t, value_name = "MODE")]
    #[arg(requires = "wait_for_model_timeout")]
    pub wait_for_model_mode: ReadyFlag,

    /// How long to wait between two looks at a server that is not ready.
    #[arg(long, default_value = "5", value_name = "SECONDS", value_parser = seconds)]
    #[arg(requires = "wait_for_model_timeout")]
    pub wait_for_model_interval: f64,

    /// Which connection is used again, and for whom.
    #[arg(long, value_enum, default_value_t, value_name = "STRATEGY", ignore_case = true)]
    pub connection_reuse_strategy: ReuseFlag,

    /// Connect to this Unix socket instead of the URL's host, which then only names the server.
    #[arg(long, value_name = "PATH")]
    #[serde(serialize_with = "name_only")]
    pub unix_socket: Option<PathBuf>,

    /// Addresses of this host that connections leave from, in turn, for more connections than one
    /// address has ports.
    #[arg(long = "local-address", value_name = "ADDRESS", value_delimiter = ',')]
    #[arg(value_parser = own_address)]
    pub local_addresses: Vec<IpAddr>,

    /// PEM file with certificates of authorities to trust besides those of the system, for https.
    #[arg(long, value_name = "FILE")]
    #[serde(serialize_with = "name_only")]
    pub cacert: Option<PathBuf>,

    /// PEM file with a certificate of ours and its chain, for servers that ask for one.
    #[arg(long, value_name = "FILE")]
    #[serde(serialize_with = "name_only")]
    pub cert: Option<PathBuf>,

    /// PEM file with the private key of --cert (default: it is in the same file).
    #[arg(long, value_name = "FILE", requires = "cert")]
    #[serde(serialize_with = "name_only")]
    pub key: Option<PathBuf>,

    /// Accept whatever certificate the server shows; the log and the summary say so.
    #[arg(long)]
    pub insecure: bool,

    /// Give up opening a connection, TLS handshake included, after this many seconds.
    #[arg(long, default_value = "10", value_name = "SECONDS", value_parser = seconds)]
    pub connect_timeout_seconds: f64,

    /// Give up a request whose answer has not begun, with a whole head, after this many seconds
    /// (default: no limit). vLLM and many others send the head of a stream at once, long before its
    /// first token: what limits the wait for that is --idle-timeout-seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub first_byte_timeout_seconds: Option<f64>,

    /// Give up a request whose answer pauses for this many seconds, between its head and the first
    /// token or anywhere later (default: no limit).
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub idle_timeout_seconds: Option<f64>,

    /// Give up a request that takes longer than this many seconds in all.
    #[arg(long, default_value = "21600", value_name = "SECONDS", value_parser = seconds)]
    pub request_timeout_seconds: f64,

    /// Connections to open before the first request, over all cores (default: as many as requests
    /// are likely to overlap).
    #[arg(long, value_name = "N", value_parser = whole::<usize>)]
    pub warm_connections: Option<usize>,

    /// Never hold more connections than this; requests without one wait and are late (default: no
    /// cap).
    #[arg(long, value_name = "N", value_parser = whole::<NonZero<usize>>)]
    pub max_connections: Option<NonZero<usize>>,

    /// Beside --request-rate or --fixed-schedule another name for --max-connections; alone it would
    /// be what sends requests, and is refused.
    #[arg(long, visible_alias = "max-concurrency", value_name = "N")]
    #[arg(value_parser = whole::<NonZero<usize>>, conflicts_with = "max_connections")]
    pub concurrency: Option<NonZero<usize>>,

    /// How sockets are driven. Both pace alike; bursts leave sooner on epoll.
    #[arg(long, value_enum, default_value_t, value_name = "DRIVER")]
    pub driver: DriverFlag,
}

/// `--driver` as typed.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum DriverFlag {
    /// io_uring where it is allowed, otherwise epoll, with a line that says why.
    Auto,
    /// io_uring or nothing.
    #[value(name = "io_uring")]
    IoUring,
    /// epoll.
    #[default]
    Epoll,
}

/// `--url-strategy` as typed.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum UrlStrategyFlag {
    /// One after the other.
    #[default]
    RoundRobin,
}

/// `--wait-for-model-mode` as typed.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ReadyFlag {
    /// It lists the model.
    Models,
    /// It answers a request for one token.
    #[default]
    Inference,
    /// Both.
    Both,
}

/// `--connection-reuse-strategy` as typed.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum ReuseFlag {
    /// Every connection serves whoever is next.
    #[default]
    Pooled,
    /// Each request has a connection of its own, opened ahead of it and closed after it.
    Never,
    /// The turns of a session share a connection, which is closed after the last, an error or a
    /// cancellation.
    StickyUserSessions,
}

impl TargetFlags {
    /// The servers as meant: the first, and the others.
    ///
    /// # Errors
    /// When a `--url` cannot be one.
    pub fn targets(&self) -> Result<(Target, Vec<Target>), EngineError> {
        let parse = |url: &UrlText| {
            Target::parse(url.as_sent()).map_err(|error| EngineError::Usage(error.to_string()))
        };
        // A comma in a password parts it, and the message about the one half would show it.
        let has_user = |url: &&UrlText| url.as_sent().contains('@');
        self.url.iter().filter(has_user).try_for_each(|url| parse(url).map(|_right| ()))?;
        let mut targets = self.url.iter().map(parse);
        let first = targets.next().expect("--url has a default")?;
        Ok((first, targets.collect::<Result<_, _>>()?))
    }

    /// What is asked of the servers before zero; the model, if `model_unknown`.
    #[must_use]
    pub fn readiness(&self, model_unknown: bool) -> Readiness {
        Readiness {
            timeout_ns: Some(nanos(self.wait_for_model_timeout)).filter(|&ns| ns > 0),
            interval_ns: nanos(self.wait_for_model_interval),
            look: match self.wait_for_model_mode {
                ReadyFlag::Models => Look::Models,
                ReadyFlag::Inference => Look::Inference,
                ReadyFlag::Both => Look::Both,
            },
            ask_model: model_unknown,
        }
    }

    /// Which connection is used again, as meant.
    #[must_use]
    pub const fn reuse(&self) -> Strategy {
        match self.connection_reuse_strategy {
            ReuseFlag::Pooled => Strategy::Pooled,
            ReuseFlag::Never => Strategy::Never,
            ReuseFlag::StickyUserSessions => Strategy::StickyUserSessions,
        }
    }

    /// How connections are made, as meant.
    #[must_use]
    pub fn way(&self) -> WayOptions {
        WayOptions {
            unix_socket: self.unix_socket.clone(),
            local_addresses: self.local_addresses.clone(),
            tls: TlsOptions {
                cacert: self.cacert.clone(),
                cert: self.cert.clone(),
                key: self.key.clone(),
                insecure: self.insecure,
            },
        }
    }

    /// The time limits as meant.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits {
            connect_ns: Some(nanos(self.connect_timeout_seconds)),
            first_byte_ns: self.first_byte_timeout_seconds.map(nanos),
            idle_ns: self.idle_timeout_seconds.map(nanos),
            total_ns: Some(nanos(self.request_timeout_seconds)),
        }
    }

    /// The most connections as meant; `is_scheduled` says whether a schedule or a rate was named.
    ///
    /// # Errors
    /// When nothing but a number of requests in flight is to decide when they are sent.
    pub fn connections(&self, is_scheduled: bool) -> Result<Option<usize>, EngineError> {
        match self.concurrency {
            Some(count) if !is_scheduled => Err(EngineError::Usage(format!(
                "--concurrency {count}: sending a request whenever fewer than {count} are in \
                 flight is no replay, because a trace has times of its own. Leave the option out \
                 to replay them, or give --request-rate to send at a rate; --max-connections \
                 {count} caps what is in flight"
            ))),
            cap => Ok(cap.or(self.max_connections).map(NonZero::get)),
        }
    }

    /// The driver as meant; `None` leaves the choice to the probe.
    #[must_use]
    pub const fn driver_kind(&self) -> Option<DriverKind> {
        self.driver.kind()
    }
}

impl DriverFlag {
    /// The driver as meant; `None` leaves the choice to the probe.
    #[must_use]
    pub const fn kind(self) -> Option<DriverKind> {
        match self {
            Self::Auto => None,
            Self::IoUring => Some(DriverKind::IoUring),
            Self::Epoll => Some(DriverKind::Epoll),
        }
    }
}

/// What the log keeps of a path: its name. The folders of this machine say nothing about a run.
pub(super) fn name_only<S: Serializer>(path: &Option<PathBuf>, out: S) -> Result<S::Ok, S::Error> {
    path.as_deref().and_then(Path::file_name).map(OsStr::to_string_lossy).serialize(out)
}

/// An address of this host. Names are not looked up, but for the one that every host has.
///
/// # Errors
/// What would be right.
pub(crate) fn own_address(text: &str) -> Result<IpAddr, String> {
    if text.eq_ignore_ascii_case("localhost") {
        return Ok(Ipv4Addr::LOCALHOST.into());
    }
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let right = "give an IP address of this host, like 127.0.0.1 or ::1; `ip address` lists them";
    bare.parse().map_err(|_no_address| right.to_owned())
}

/// A time limit in seconds: one the clock can tell from none, and far from the clock's end.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    const LEAST: f64 = 1e-9;
    between(text, LEAST).map_err(|value| match value {
        Some(value) => format!("{value} seconds is not a time limit; give more than 0"),
        None => "give seconds as a number, like 2.5".to_owned(),
    })
}

/// A time in seconds that may be none at all.
pub(crate) fn seconds_or_none(text: &str) -> Result<f64, String> {
    between(text, 0.0).map_err(|value| match value {
        Some(value) => format!("{value} seconds is no time; give 0 or more"),
        None => "give seconds as a number, like 2.5".to_owned(),
    })
}

/// The number in `text` if it is within bounds; the error is the number, if it is one.
fn between(text: &str, least: f64) -> Result<f64, Option<f64>> {
    /// A hundred years: nobody waits longer.
    const MOST: f64 = 100.0 * 365.25 * 86_400.0;
    let value = text.parse::<f64>().map_err(|_no_number| None)?;
    if (least..=MOST).contains(&value) { Ok(value) } else { Err(Some(value)) }
}

/// Seconds as nanoseconds.
#[expect(clippy::cast_possible_truncation, reason = "bounded to a hundred years when parsed")]
pub(crate) fn nanos(seconds: f64) -> i64 {
    (seconds * 1e9).round() as i64
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn a_limit_is_at_least_a_nanosecond() {
        for (text, ns) in [("2.5", 2_500_000_000), ("1e-9", 1), ("3155760000", 3_155_760_000 * NS)]
        {
            assert_eq!(seconds(text).map(nanos), Ok(ns), "{text}");
        }
        for text in ["0", "1e-12", "-1", "nan", "inf", "3155760001", "soon", ""] {
            assert!(seconds(text).is_err(), "{text}");
        }
        assert_eq!(seconds_or_none("0").map(nanos), Ok(0));
        assert!(seconds_or_none("-0.1").is_err());
    }

    const NS: i64 = 1_000_000_000;

    #[derive(Debug, Parser)]
    struct Only {
        #[command(flatten)]
        flags: TargetFlags,
    }

    fn flags(line: &str) -> Result<TargetFlags, String> {
        let words = std::iter::once("onbeat").chain(line.split_whitespace());
        Only::try_parse_from(words).map(|only| only.flags).map_err(|error| error.to_string())
    }

    #[test]
    fn several_servers_are_repeated_or_listed() {
        for line in ["--url a:1 --url b:2/v1 -u c:3", "--base-url a:1,b:2/v1,c:3"] {
            let (first, others) = flags(line).expect("options").targets().expect("URLs");
            let others: Vec<String> = others.iter().map(Target::to_string).collect();
            assert_eq!((first.to_string().as_str(), others.len()), ("http://a:1", 2), "{line}");
            assert_eq!(others, ["http://b:2/v1", "http://c:3"]);
        }
        assert!(flags("--url a:1 --url ftp://b").expect("options").targets().is_err());
        assert!(flags("--url-strategy round_robin").is_ok());
    }

    #[test]
    fn addresses_of_this_host_are_numbers() {
        let own = flags("--local-address 127.0.0.2,[::1] --local-address localhost");
        let own: Vec<String> =
            own.expect("options").local_addresses.iter().map(IpAddr::to_string).collect();
        assert_eq!(own, ["127.0.0.2", "::1", "127.0.0.1"]);
        for wrong in ["--local-address nohost", "--local-address=", "--local-address ::1,"] {
            let words = flags(wrong).expect_err(wrong);
            assert!(words.contains("give an IP address of this host"), "{words}");
        }
    }

    #[test]
    fn a_concurrency_caps_what_is_sent_and_decides_nothing_alone() {
        let meant = |line: &str, is_scheduled| {
            let cap = flags(line).expect("options").connections(is_scheduled);
            cap.map_err(|error| error.to_string())
        };
        assert_eq!(meant("--concurrency 8", true), Ok(Some(8)));
        assert_eq!(meant("--max-concurrency 8", true), Ok(Some(8)));
        assert_eq!(meant("--max-connections 8", false), Ok(Some(8)));
        assert_eq!(meant("", false), Ok(None));
        let words = meant("--concurrency 8", false).expect_err("no schedule");
        for part in ["no replay", "--request-rate", "--max-connections 8"] {
            assert!(words.contains(part), "{words}");
        }
        assert!(flags("--concurrency 8 --max-connections 9").is_err());
    }

    #[test]
    fn readiness_is_asked_for_by_its_time_limit() {
        let meant = flags("--wait-for-model-timeout 60 --wait-for-model-mode both");
        let readiness = meant.expect("options").readiness(true);
        assert_eq!((readiness.timeout_ns, readiness.interval_ns), (Some(60 * NS), 5 * NS));
        assert_eq!((readiness.look, readiness.ask_model), (Look::Both, true));
        assert_eq!(flags("").expect("options").readiness(false).timeout_ns, None);
        for line in ["--wait-for-model-mode models", "--wait-for-model-interval 2"] {
            assert!(flags(line).is_err_and(|words| words.contains("timeout")), "{line}");
        }
    }

    #[test]
    fn connections_are_pooled_unless_the_user_says_otherwise() {
        assert_eq!(flags("").expect("options").reuse(), Strategy::Pooled);
        for (name, strategy) in [
            ("never", Strategy::Never),
            ("sticky-user-sessions", Strategy::StickyUserSessions),
            ("Pooled", Strategy::Pooled),
        ] {
            let flags = flags(&format!("--connection-reuse-strategy {name}"));
            assert_eq!(flags.expect("options").reuse(), strategy);
        }
    }
}
