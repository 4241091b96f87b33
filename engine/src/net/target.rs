//! Where requests go: a base URL taken apart once, and its addresses looked up before zero.
//!
//! Secrets in a URL (user information, query values) are refused here, at the edge, so that no
//! later stage can leak them. Nothing is looked up after the start barrier.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

use http::Uri;

/// A server's base URL, without secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    secure: bool,
    host: String,
    port: u16,
    base_path: String,
}

/// Why a URL cannot be a target. The text names the URL's part and the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetError(String);

impl fmt::Display for TargetError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for TargetError {}

impl Target {
    /// Takes a base URL apart; a missing scheme means `http`.
    ///
    /// # Errors
    /// When the text is no URL, its scheme is neither `http` nor `https`, its port is none, or it
    /// carries secrets.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let fail = |words: String| Err(TargetError(words));
        let has_scheme = text.contains("://");
        let whole = if has_scheme { text.to_owned() } else { format!("http://{text}") };
        let whole = whole.split('#').next().unwrap_or_default();
        let behind_scheme = whole.split_once("://").map_or(whole, |(_, rest)| rest);
        let (place, query) = behind_scheme
            .split_once('?')
            .map_or((behind_scheme, None), |(place, query)| (place, Some(query)));
        // The text may hold a password, so it is not repeated where there is an `@` or a query.
        let user = || {
            fail(
                "--url has user information (`user:password@`); give the key with \
                         --api-key or OPENAI_API_KEY instead"
                    .into(),
            )
        };
        if place.split('/').next().is_some_and(|authority| authority.contains('@')) {
            return user();
        }
        if query.is_some() {
            return fail(
                "--url has a query (`?…`), which a base URL cannot have; put the path of \
                         the endpoint into --endpoint"
                    .into(),
            );
        }
        // A password may hold what ends the place of a host.
        let odd = |words: String| if behind_scheme.contains('@') { user() } else { fail(words) };
        let text = text.split('#').next().unwrap_or_default();
        let Ok(uri) = whole.parse::<Uri>() else {
            return odd(format!(
                "--url {text:?} is not a URL; write it like http://localhost:8000"
            ));
        };
        let secure = match uri.scheme_str().map(str::to_ascii_lowercase).as_deref() {
            Some("http") => false,
            Some("https") => true,
            _ => {
                return fail(
                    "--url has a scheme other than http and https; use one of them".into(),
                );
            }
        };
        let Some(host) = uri.host().filter(|host| !host.is_empty()) else {
            return odd(format!("--url {text:?} names no host"));
        };
        let authority = uri.authority().map_or(host, |authority| authority.as_str());
        let port = match authority.strip_prefix(host) {
            Some("") => Some(usual_port(secure)),
            Some(rest) => rest.strip_prefix(':').and_then(port),
            None => None,
        };
        let Some(port) = port else {
            let found = authority.strip_prefix(host).unwrap_or(authority);
            return odd(format!(
                "--url {text:?} has {found:?} where its port would be; right would be a number \
                 from 1 to 65535, like {host}:8000, or nothing"
            ));
        };
        Ok(Self {
            secure,
            host: host.to_owned(),
            port,
            base_path: uri.path().trim_end_matches('/').to_owned(),
        })
    }

    /// Whether requests go over TLS.
    #[must_use]
    pub const fn is_secure(&self) -> bool {
        self.secure
    }

    /// The name or address of the server; an IPv6 address is in brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The value of the `Host` header: without the scheme's own port, as other clients write it.
    #[must_use]
    pub fn authority(&self) -> String {
        if self.port == usual_port(self.secure) {
            return self.host.clone();
        }
        format!("{}:{}", self.host, self.port)
    }

    /// The path every request path is joined to, without a slash at its end.
    #[must_use]
    pub fn base_path(&self) -> &str {
        &self.base_path
    }

    /// The addresses of the host, in the resolver's order. Blocks: call it before zero.
    ///
    /// # Errors
    /// When the name is unknown.
    pub fn resolve(&self) -> Result<Vec<SocketAddr>, TargetError> {
        let name = self.host.trim_start_matches('[').trim_end_matches(']');
        #[expect(clippy::disallowed_methods, reason = "the one lookup, before zero")]
        let found = (name, self.port).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
        match found {
            Ok(mut addresses) if !addresses.is_empty() => {
                // This host has two names for itself, and a hosts file often knows only one.
                if name.eq_ignore_ascii_case("localhost") {
                    for own in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
                        let own = SocketAddr::new(own, self.port);
                        if !addresses.contains(&own) {
                            addresses.push(own);
                        }
                    }
                }
                Ok(addresses)
            }
            Ok(_) => Err(TargetError(format!("the host {name:?} of --url has no address"))),
            Err(error) => Err(TargetError(format!(
                "the host {name:?} of --url could not be looked up ({error}); is it spelled right, \
                 and does `getent hosts {name}` know it here? An address works, too"
            ))),
        }
    }
}

/// The port of a URL that names none.
const fn usual_port(secure: bool) -> u16 {
    if secure { 443 } else { 80 }
}

/// A port as it stands in a URL: digits and nothing else, and one that can be connected to.
fn port(text: &str) -> Option<u16> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|&port| digits && port > 0)
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        write!(out, "{scheme}://{}:{}{}", self.host, self.port, self.base_path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match Target::parse(text) {
            Ok(target) => target.to_string(),
            Err(error) => format!("refused: {error}"),
        }
    }

    #[test]
    fn urls_are_taken_apart_once() {
        assert_eq!(shown("localhost:8000"), "http://localhost:8000");
        assert_eq!(shown("HTTP://127.0.0.1:80/v1/"), "http://127.0.0.1:80/v1");
        assert_eq!(shown("http://[::1]:9000"), "http://[::1]:9000");
        assert_eq!(shown("https://host/v1"), "https://host:443/v1");
        assert_eq!(shown("HTTPS://host:8443"), "https://host:8443");
        assert!(shown("ftp://host").contains("scheme"));
        assert!(shown("http://host/?key=1").contains("query"));
        assert!(shown("http:///x").contains("refused"));
    }

    #[test]
    fn a_host_header_has_no_port_where_the_scheme_says_it() {
        let header = |text: &str| Target::parse(text).expect("a URL").authority();
        assert_eq!(header("http://host/v1"), "host");
        assert_eq!(header("https://host:443"), "host");
        assert_eq!(header("http://[::1]:80"), "[::1]");
        assert_eq!(header("https://host:80"), "host:80");
        assert_eq!(header("http://host:443"), "host:443");
        assert_eq!(header("localhost:8000"), "localhost:8000");
    }

    #[test]
    fn a_port_that_is_none_is_refused_and_never_replaced() {
        for authority in ["127.0.0.1", "localhost", "[::1]", "host.example"] {
            for port in ["99999", "70000", "65536", "0", "00", "-1", "+80", "abc", "8000x", "80 "] {
                for start in ["", "http://", "https://"] {
                    let words = shown(&format!("{start}{authority}:{port}"));
                    assert!(words.starts_with("refused: --url"), "{authority}:{port}: {words}");
                    assert!(words.contains(port), "{authority}:{port}: {words}");
                }
            }
            let empty = shown(&format!("{authority}:/v1"));
            assert!(empty.starts_with("refused"), "{empty}");
        }
        let words = shown("http://127.0.0.1:99999/v1");
        assert!(words.contains("\":99999\"") && words.contains("from 1 to 65535"), "{words}");
        for wrong in [":abc", "[::1]8000", "[::1:8000", "::1:8000"] {
            assert!(shown(wrong).starts_with("refused"), "{wrong}: {}", shown(wrong));
        }
        assert_eq!(shown("http://[::1]:65535"), "http://[::1]:65535");
        assert_eq!(shown("http://[::1]/v1"), "http://[::1]:80/v1");
    }

    #[test]
    fn a_password_in_a_url_is_refused_and_not_repeated() {
        for url in [
            "http://me:hunter2@host:1",
            "me:hunter2@host",
            "http:/me:hunter2@host",
            "https://me:hun/hunter2@host",
            "https://me:#hunter2@host",
            "https://me:?hunter2@host",
            "https://me:hun hunter2@host",
            "http://host:80x/?key=hunter2",
            "http://host:80 /x?key=hunter2",
            "http://host:80x/#hunter2",
        ] {
            let words = shown(url);
            assert!(words.starts_with("refused: --url"), "{url}: {words}");
            assert!(!words.contains("hunter2"), "{url}: {words}");
        }
        assert!(shown("http://me:hunter2@host:1").contains("--api-key"));
        assert_eq!(shown("http://host/m@2#hunter2"), "http://host:80/m@2");
    }

    #[test]
    fn localhost_is_this_host_on_either_family() {
        let found = Target::parse("localhost:9000").expect("a URL").resolve().expect("known");
        for own in ["127.0.0.1:9000", "[::1]:9000"] {
            let own: SocketAddr = own.parse().expect("literal");
            assert_eq!(found.iter().filter(|&&address| address == own).count(), 1, "{found:?}");
        }
    }

    #[test]
    fn literal_addresses_resolve_without_a_resolver() {
        let target = Target::parse("http://[::1]:9000").expect("a URL");
        assert_eq!(target.resolve().expect("literal"), ["[::1]:9000".parse().expect("literal")]);
    }
}
