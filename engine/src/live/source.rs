//! A server that is asked for its own numbers: its URL, the way to it, and the question.
//!
//! What the requests carry to authenticate themselves goes along only where the URL is of the same
//! scheme, host and port as a server that the requests go to; a client certificate likewise.
//! Nothing of a URL that may be a secret is shown: what the log knows a source by has no value of
//! its query, and of its path only words that every server's metrics are found by.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::error::EngineError;
use crate::net::reach::{Reached, addresses, reach};
use crate::net::target::Target;
use crate::net::tls::{Client, TlsOptions};
use crate::net::way::{Peer, Way, WayOptions};
use crate::render::secret::scrubbed;
use crate::render::{Destination, RenderOptions, Secret, UrlText, head_of_question};

/// Most servers that are asked.
const SOURCES_MAX: usize = 16;
/// Where a URL without a path is asked.
const PATH: &str = "/metrics";
/// Parts of a path that are no secret: where servers and what is put before them have metrics.
const PLAIN: [&str; 12] = [
    "actuator",
    "api",
    "engine",
    "federate",
    "metrics",
    "prometheus",
    "server",
    "sglang",
    "v1",
    "v2",
    "vllm",
    "worker",
];
/// What stands for any other part: gateways take tokens there.
const HIDDEN: &str = "[path]";
/// A shorter part of a path is taken for a name where it is not about metrics.
const TOKEN_BYTES_MIN: usize = 16;
/// What may be answered.
const ACCEPT: &str = "text/plain;version=0.0.4,text/plain;q=0.5,*/*;q=0.1";

/// `--scrape` as typed. What it shows of itself has nothing in it that may be a secret.
#[derive(Clone, PartialEq, Eq, schemars::JsonSchema)]
#[schemars(with = "String")]
pub struct ScrapeText(UrlText);

/// The same, taken apart.
#[derive(Clone, PartialEq, Eq)]
pub struct ScrapeUrl {
    /// Without a path.
    target: Target,
    path: UrlText,
}

/// A server that is asked.
#[derive(Debug)]
pub struct Source {
    /// Its URL without secrets; of two that look alike without them the second has a number.
    pub(super) name: String,
    /// Scheme, host and port.
    origin: String,
    /// The whole request.
    pub(super) question: Vec<u8>,
    pub(super) way: Way,
    /// Cut out of everything that it says.
    pub(super) secrets: Vec<Secret>,
    /// Parts of its path, cut out of everything but the names of metrics, in which they are likely
    /// words and no secrets.
    pub(super) parts: Vec<Secret>,
}

impl ScrapeUrl {
    /// Where a server that requests go to has its numbers.
    #[must_use]
    pub fn of(target: &Target) -> Self {
        Self { target: without_path(target.clone()), path: UrlText::new(PATH) }
    }

    /// What of it no server's words may hold: values of its query, and parts of its path that are
    /// as long as tokens.
    pub fn secrets(&self) -> impl Iterator<Item = Secret> {
        let parts = self.hidden().filter(|part| part.len() >= TOKEN_BYTES_MIN);
        self.path.secrets().chain(parts.map(Secret::new))
    }

    /// Parts of its path that are not shown.
    fn hidden(&self) -> impl Iterator<Item = &str> {
        let path = self.path.as_sent().split('?').next().unwrap_or_default();
        path.split('/').filter(|part| !is_plain(part))
    }
}

impl ScrapeText {
    /// The text itself, to be taken apart only.
    #[must_use]
    pub fn as_typed(&self) -> &str {
        self.0.as_sent()
    }
}

impl FromStr for ScrapeText {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(UrlText::new(text)))
    }
}

impl fmt::Display for ScrapeText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.0.to_string();
        let (place, query) = shown.split_at(shown.find(['?', '#']).unwrap_or(shown.len()));
        let (origin, path) = place.split_at(path_at(place));
        write!(out, "{origin}{}{query}", shown_path(path))
    }
}

impl fmt::Debug for ScrapeText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl Serialize for ScrapeText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for ScrapeUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.split('#').next().unwrap_or_default();
        let (place, query) = text.split_at(text.find('?').unwrap_or(text.len()));
        let refused = |words: String| words.replace("--url", "--scrape");
        let whole = Target::parse(place).map_err(|error| {
            // What is said of a URL repeats it, and its path may hold a token; where there is an @
            // nothing is repeated.
            let alone = Target::parse(&place[..path_at(place)]).map(|_right| ());
            refused(match alone {
                _ if place.contains('@') => error.to_string(),
                Err(alone) => alone.to_string(),
                Ok(()) => "its path has a letter that no URL has; write that in per cent, like \
                           %20 for a space"
                    .to_owned(),
            })
        })?;
        let path = Some(whole.base_path()).filter(|path| !path.is_empty()).unwrap_or(PATH);
        let path = UrlText::new(format!("{path}{query}"));
        Ok(Self { target: without_path(whole), path })
    }
}

impl fmt::Display for ScrapeUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.path.to_string();
        let (path, query) = shown.split_at(shown.find('?').unwrap_or(shown.len()));
        write!(out, "{}{}{query}", origin(&self.target), shown_path(path))
    }
}

impl fmt::Debug for ScrapeUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// Where the path of a URL begins, with or without a scheme.
fn path_at(place: &str) -> usize {
    let scheme = place.find("://").filter(|&at| !place[..at].contains('/'));
    let authority = scheme.map_or(0, |at| at + 3);
    place[authority..].find('/').map_or(place.len(), |at| authority + at)
}

fn is_plain(part: &str) -> bool {
    part.is_empty() || PLAIN.iter().any(|plain| plain.eq_ignore_ascii_case(part))
}

/// A path without what may be a secret.
fn shown_path(path: &str) -> String {
    let shown = |part| if is_plain(part) { part } else { HIDDEN };
    path.split('/').map(shown).collect::<Vec<_>>().join("/")
}

/// The server alone.
fn without_path(target: Target) -> Target {
    Target::parse(&origin(&target)).unwrap_or(target)
}

/// Scheme, host and port.
fn origin(target: &Target) -> String {
    let whole = target.to_string();
    whole.strip_suffix(target.base_path()).unwrap_or(&whole).to_ascii_lowercase()
}

/// What is to be asked, each with the way to it; `reached` are the ways to `targets`.
///
/// # Errors
/// When a URL cannot be meant, or a header not be sent. Who does not answer now is asked all the
/// same, and that is said.
pub fn sources(
    urls: &[ScrapeUrl],
    targets: &[&Target],
    reached: &[Reached],
    way: &WayOptions,
    requests: &RenderOptions,
    say: &mut dyn FnMut(&str),
) -> Result<Vec<Source>, EngineError> {
    if urls.len() > SOURCES_MAX {
        let words = format!("--scrape: {} URLs; at most {SOURCES_MAX} are asked", urls.len());
        return Err(EngineError::Usage(words));
    }
    let mut sources: Vec<Source> = Vec::new();
    for url in urls {
        let own = targets.iter().position(|target| origin(target) == origin(&url.target));
        let known = own.and_then(|own| reached.get(own));
        let way = match known {
            Some(reached) => reached.way.clone(),
            None => way_to(&url.target, way, &requests.secrets(), say)?,
        };
        let mut source = Source::new(url, way, requests, known.is_some())?;
        if sources.iter().any(|known| known.is_asked_as(&source)) {
            continue;
        }
        let (plain, mut turn) = (source.name.clone(), 1);
        while sources.iter().any(|known| known.name == source.name) {
            turn += 1;
            source.name = format!("{plain}#{turn}");
        }
        sources.push(source);
    }
    Ok(sources)
}

/// The way to a server that is none of the run's.
fn way_to(
    target: &Target,
    way: &WayOptions,
    secrets: &[Secret],
    say: &mut dyn FnMut(&str),
) -> Result<Way, EngineError> {
    let tls = TlsOptions { cert: None, key: None, ..way.tls.clone() };
    let options = WayOptions { tls, ..WayOptions::default() };
    let of_scrape = |words: String| words.replace("--url", "--scrape");
    match reach(target, &options) {
        Ok(reached) => Ok(reached.way),
        Err(EngineError::Usage(words)) => Err(EngineError::Usage(of_scrape(words))),
        Err(error) => {
            let words = of_scrape(scrubbed(error.to_string(), secrets));
            say(&format!("--scrape: {words}; it is asked all the same"));
            let address = addresses(target)?.into_iter().next();
            let address = address.expect("a name that is known has an address");
            let mut way = Way::to(Peer::Tcp(address));
            if target.is_secure() {
                way.tls = Some(Client::new(target.host(), &options.tls)?);
            }
            Ok(way)
        }
    }
}

impl Source {
    fn new(
        url: &ScrapeUrl,
        way: Way,
        requests: &RenderOptions,
        same_origin: bool,
    ) -> Result<Self, EngineError> {
        let accept = ("Accept".to_owned(), Secret::new(ACCEPT));
        let own = requests.headers.iter().filter(|_| same_origin);
        let own = own.filter(|(name, _)| !name.eq_ignore_ascii_case("accept")).cloned();
        let options = RenderOptions {
            headers: own.chain([accept]).collect(),
            api_key: requests.api_key.clone().filter(|_| same_origin),
            ..RenderOptions::default()
        };
        let destination = Destination::new(&url.target.authority(), "");
        let head = head_of_question("GET", url.path.as_sent(), &destination, &options, None);
        let question = head.map_err(|error| EngineError::Usage(format!("--scrape: {error}")))?;
        let mut secrets = requests.secrets();
        secrets.extend(url.path.secrets().flat_map(|secret| secret.spellings()));
        let parts = url.hidden().flat_map(|part| Secret::new(part).spellings()).collect();
        let (name, origin) = (url.to_string(), origin(&url.target));
        Ok(Self { name, origin, question, way, secrets, parts })
    }

    /// Whether it is the same place, asked the same.
    fn is_asked_as(&self, other: &Self) -> bool {
        self.origin == other.origin && self.question == other.question
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> ScrapeUrl {
        text.parse().expect("a URL")
    }

    #[test]
    fn a_url_without_a_path_is_asked_at_metrics() {
        for (typed, meant) in [
            ("localhost:8000", "http://localhost:8000/metrics"),
            ("http://h:9/", "http://h:9/metrics"),
            ("h:9/v1/Metrics", "http://h:9/v1/Metrics"),
            ("HTTPS://h/metrics?key=hunter2", "https://h:443/metrics?key=[secret]"),
        ] {
            assert_eq!(url(typed).to_string(), meant, "{typed}");
        }
        let words = "h:99999/metrics".parse::<ScrapeUrl>().expect_err("no port");
        assert!(words.contains("--scrape"), "{words}");
        let words = "me:hunter2@h/metrics".parse::<ScrapeUrl>().expect_err("a password");
        assert!(!words.contains("hunter2"), "{words}");
    }

    #[test]
    fn a_token_in_a_path_is_sent_and_not_shown() {
        for (typed, meant) in [
            ("h:9/hunter2/metrics", "http://h:9/[path]/metrics"),
            ("http://h:9/hunter2", "http://h:9/[path]"),
            ("h:9//hunter2/v1/hunter2?k=hunter2", "http://h:9//[path]/v1/[path]?k=[secret]"),
            ("h:9/m@2/hunter2", "http://h:9/[path]/[path]"),
        ] {
            let found = url(typed);
            assert!(found.path.as_sent().contains("hunter2"), "{typed}");
            assert_eq!(found.to_string(), meant, "{typed}");
            assert_eq!(format!("{found:?}"), meant, "{typed}");
            let text: ScrapeText = typed.parse().expect("any text");
            assert_eq!(text.as_typed(), typed);
            let json = serde_json::to_string(&text).expect("a string");
            assert!(!json.contains("hunter2") && json.contains("[path]"), "{json}");
            assert!(!format!("{text:?}").contains("hunter2"), "{text:?}");
        }
        for wrong in ["h:99999/hunter2", "h/hunter2 x", "h:1:hunter2/x@y", "ftp://h/hunter2", ""] {
            let words = wrong.parse::<ScrapeUrl>().expect_err(wrong);
            assert!(!words.contains("hunter2"), "{wrong}: {words}");
        }
        let text: ScrapeText = "me:hunter2@h/metrics".parse().expect("any text");
        assert_eq!(text.to_string(), "[secret]@h/metrics");
    }

    #[test]
    fn sources_that_look_alike_are_told_apart_and_equal_ones_are_asked_once() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let at = listener.local_addr().expect("bound");
        let target = Target::parse(&at.to_string()).expect("a URL");
        let reached = [reach(&target, &WayOptions::default()).expect("it listens")];
        let paths = ["engine-0/metrics", "engine-1/metrics", "engine-0/metrics", "metrics"];
        let urls = paths.map(|path| url(&format!("{at}/{path}")));
        let (way, requests) = (WayOptions::default(), RenderOptions::default());
        let mut said = |_words: &str| {};
        let found = sources(&urls, &[&target], &reached, &way, &requests, &mut said);
        let names: Vec<_> = found.expect("meant").into_iter().map(|it| it.name).collect();
        let hidden = format!("http://{at}/[path]/metrics");
        assert_eq!(names, [hidden.clone(), hidden + "#2", format!("http://{at}/metrics")]);
    }

    fn question(scraped: &str, target: &str) -> String {
        let requests = RenderOptions {
            api_key: Some(Secret::new("hunter2-key")),
            headers: vec![("X-Team".to_owned(), Secret::new("search-team"))],
            ..RenderOptions::default()
        };
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let at = |text: &str| text.replace("PORT", &port.to_string());
        let target = Target::parse(&at(target)).expect("a URL");
        let way = WayOptions::default();
        let reached = [reach(&target, &way).expect("it listens")];
        let urls = [url(&at(scraped))];
        let mut said = |_words: &str| {};
        let found = sources(&urls, &[&target], &reached, &way, &requests, &mut said);
        let [source] = &found.expect("meant")[..] else { panic!("one") };
        String::from_utf8(source.question.clone()).expect("ASCII")
    }

    #[test]
    fn the_key_goes_only_where_requests_go() {
        let same = question("127.0.0.1:PORT/metrics", "http://127.0.0.1:PORT/v1");
        assert!(same.starts_with("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:"), "{same}");
        assert!(same.contains("Authorization: Bearer hunter2-key\r\n"), "{same}");
        assert!(same.contains("X-Team: search-team\r\n"), "{same}");
        assert!(same.contains("Accept: text/plain"), "{same}");
        for other in ["localhost:PORT/metrics", "127.0.0.1:1/metrics"] {
            let other = question(other, "http://127.0.0.1:PORT");
            assert!(!other.contains("hunter2") && !other.contains("search-team"), "{other}");
        }
    }
}
