//! A server that is asked for its own numbers: its URL, the way to it, and the question.
//!
//! What the requests carry to authenticate themselves goes along only where the URL is of the same
//! scheme, host and port as a server that the requests go to; a client certificate likewise.
//! Nothing of a URL that may be a secret is shown: what the log knows a source by is without it.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::error::EngineError;
use crate::net::reach::{Reached, addresses, reach};
use crate::net::target::Target;
use crate::net::tls::{Client, TlsOptions};
use crate::net::way::{Peer, Way, WayOptions};
use crate::render::{Destination, RenderOptions, Secret, UrlText, head_of_question};

/// Most servers that are asked.
const SOURCES_MAX: usize = 16;
/// Where a URL without a path is asked.
const PATH: &str = "/metrics";
/// What may be answered.
const ACCEPT: &str = "text/plain;version=0.0.4,text/plain;q=0.5,*/*;q=0.1";

/// `--scrape` as typed, taken apart.
#[derive(Clone, PartialEq, Eq, schemars::JsonSchema)]
#[schemars(with = "String")]
pub struct ScrapeUrl {
    target: Target,
    path: UrlText,
}

/// A server that is asked.
#[derive(Debug)]
pub struct Source {
    /// Its URL without secrets.
    pub(super) name: String,
    /// The whole request.
    pub(super) question: Vec<u8>,
    pub(super) way: Way,
    /// Cut out of everything that it says.
    pub(super) secrets: Vec<Secret>,
}

impl ScrapeUrl {
    /// Where a server that requests go to has its numbers.
    #[must_use]
    pub fn of(target: &Target) -> Self {
        Self { target: target.clone(), path: UrlText::new(PATH) }
    }
}

impl FromStr for ScrapeUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.split('#').next().unwrap_or_default();
        let (place, query) = text.split_at(text.find('?').unwrap_or(text.len()));
        let target = Target::parse(place);
        let target = target.map_err(|error| error.to_string().replace("--url", "--scrape"))?;
        let path = Some(target.base_path()).filter(|path| !path.is_empty()).unwrap_or(PATH);
        let path = UrlText::new(format!("{path}{query}"));
        Ok(Self { target, path })
    }
}

impl fmt::Display for ScrapeUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{}", origin(&self.target), self.path)
    }
}

impl fmt::Debug for ScrapeUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl Serialize for ScrapeUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
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
            None => way_to(&url.target, way, say)?,
        };
        let source = Source::new(url, way, requests, known.is_some())?;
        if sources.iter().all(|known| known.name != source.name) {
            sources.push(source);
        }
    }
    Ok(sources)
}

/// The way to a server that is none of the run's.
fn way_to(
    target: &Target,
    way: &WayOptions,
    say: &mut dyn FnMut(&str),
) -> Result<Way, EngineError> {
    let tls = TlsOptions { cert: None, key: None, ..way.tls.clone() };
    let options = WayOptions { tls, ..WayOptions::default() };
    let of_scrape = |words: String| words.replace("--url", "--scrape");
    match reach(target, &options) {
        Ok(reached) => Ok(reached.way),
        Err(EngineError::Usage(words)) => Err(EngineError::Usage(of_scrape(words))),
        Err(error) => {
            let words = of_scrape(error.to_string());
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
        Ok(Self { name: url.to_string(), question, way, secrets })
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
            ("h:9/a/metrics", "http://h:9/a/metrics"),
            ("HTTPS://h/m?key=hunter2", "https://h:443/m?key=[secret]"),
        ] {
            assert_eq!(url(typed).to_string(), meant, "{typed}");
        }
        let words = "h:99999/metrics".parse::<ScrapeUrl>().expect_err("no port");
        assert!(words.contains("--scrape"), "{words}");
        let words = "me:hunter2@h/metrics".parse::<ScrapeUrl>().expect_err("a password");
        assert!(!words.contains("hunter2"), "{words}");
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
