//! `/v1/models`: where it is, and the names it lists.

use onbeat_shared::foreign::shown;
use serde::Deserialize;

use crate::net::ask::Reply;
use crate::render::Secret;
use crate::render::secret::scrubbed;

/// Names of a long list that are shown.
const SHOWN: usize = 5;
/// Longest name that is one: it goes into every request, and the longest in use are paths of files.
const NAME_BYTES_MAX: usize = 4_096;

#[derive(Deserialize)]
struct List {
    data: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    id: String,
}

/// The names in the answer to a question for the list: at least one. Blanks are no name, nor is
/// what is endless. A name that repeats one of `secrets` is none: it would stand in the log.
///
/// # Errors
/// Why there are none, in words.
pub(super) fn of(reply: &Reply, secrets: &[Secret]) -> Result<Vec<String>, String> {
    match reply.status {
        200 => {}
        status @ (401 | 403) => {
            return Err(format!(
                "/v1/models answers with status {status}: it wants a key, or another one \
                 (OPENAI_API_KEY or --api-key-file)"
            ));
        }
        status => return Err(format!("/v1/models answers with status {status}")),
    }
    let list: List = serde_json::from_slice(&reply.body).map_err(|error| {
        // What stands in the place of a list is the server's, and may be anything.
        let error = scrubbed(error.to_string(), secrets);
        format!("/v1/models is no list of models: {}", shown(&error))
    })?;
    if list.data.is_empty() {
        return Err("/v1/models lists no model".to_owned());
    }
    let is_name = |name: &String| !name.trim().is_empty() && name.len() <= NAME_BYTES_MAX;
    let names: Vec<_> = list.data.into_iter().map(|model| model.id).filter(is_name).collect();
    if names.is_empty() {
        return Err("/v1/models lists no model with a name that can be asked for".to_owned());
    }
    if names.iter().any(|name| scrubbed(name.clone(), secrets) != *name) {
        return Err("/v1/models lists a model whose name repeats a secret of ours".to_owned());
    }
    Ok(names)
}

/// The names as people read them.
pub(super) fn listed(names: &[String]) -> String {
    let first: Vec<_> = names.iter().take(SHOWN).map(|name| quoted(name)).collect();
    let more = names.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", first.join(", "))
}

/// A name that a server gave, in quotes.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", shown(name))
}

/// The list's path at a base URL whose requests go to `endpoint`.
pub(super) fn path(base_path: &str, endpoint: &str) -> String {
    let base = base_path.trim_end_matches('/');
    // A base URL may be the endpoint's own; the list is beside it.
    if !base.is_empty() && base == endpoint {
        let before = ["/chat/completions", "/completions"].iter();
        let before = before.filter_map(|rest| base.strip_suffix(rest)).next();
        return format!("{}/models", before.unwrap_or("/v1"));
    }
    let base = base.strip_suffix("/v1").unwrap_or(base);
    format!("{base}/v1/models")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_beside_the_endpoint() {
        for (base, endpoint, list) in [
            ("", "/v1/chat/completions", "/v1/models"),
            ("/v1", "/v1/completions", "/v1/models"),
            ("/openai/v1/", "/openai/v1/completions", "/openai/v1/models"),
            ("/base", "/base/v1/chat/completions", "/base/v1/models"),
            ("/x/v1/chat/completions", "/x/v1/chat/completions", "/x/v1/models"),
            ("/generate", "/generate", "/v1/models"),
        ] {
            assert_eq!(path(base, endpoint), list, "{base}");
        }
    }

    #[test]
    fn names_are_read_or_their_lack_is_told() {
        let reply = |status, body: &str| Reply { status, body: body.as_bytes().to_vec() };
        let two = r#"{"object":"list","data":[{"id":"a","object":"model"},{"id":"b"}]}"#;
        assert_eq!(of(&reply(200, two), &[]), Ok(vec!["a".to_owned(), "b".to_owned()]));
        assert!(of(&reply(404, two), &[]).is_err_and(|words| words.ends_with("status 404")));
        for status in [401, 403] {
            let words = of(&reply(status, r#"{"error":"Unauthorized"}"#), &[]).expect_err("no key");
            assert!(words.contains("OPENAI_API_KEY or --api-key-file"), "{words}");
        }
        assert!(
            of(&reply(200, r#"{"data":[]}"#), &[]).is_err_and(|words| words.contains("no model"))
        );
        assert!(of(&reply(200, "<html>"), &[]).is_err_and(|words| words.contains("no list")));
        for none in ["", " ", &"x".repeat(NAME_BYTES_MAX + 1)] {
            let listed =
                |more: &str| reply(200, &format!(r#"{{"data":[{{"id":"{none}"}}{more}]}}"#));
            let words = of(&listed(""), &[]).expect_err("no name");
            assert!(words.ends_with("with a name that can be asked for"), "{words}");
            assert_eq!(of(&listed(r#",{"id":"m"}"#), &[]), Ok(vec!["m".to_owned()]));
        }
        let many: Vec<String> = (0..7).map(|name| name.to_string()).collect();
        assert_eq!(listed(&many), r#""0", "1", "2", "3", "4" and 2 more"#);
        let hostile = listed(&[format!("a\r\n\u{1b}[2J{}", "x".repeat(5_000))]);
        assert!(hostile.starts_with(r#""a\r\n\u{1b}[2Jxx"#) && hostile.len() < 300, "{hostile}");
        let other = format!(r#"{{"data":[{{"id":{}}}]}}"#, "9".repeat(5_000));
        assert!(of(&reply(200, &other), &[]).is_err_and(|words| words.len() < 300));
    }
    #[test]
    fn a_secret_that_a_server_puts_into_its_list_is_not_repeated() {
        let secrets = [Secret::new("hunter2-hunter2")];
        for body in [
            r#"{"data":[{"id":"m"},{"id":"Bearer hunter2-hunter2"}]}"#,
            r#"{"data":[{"id":"cut off hunter2-h"}]}"#,
            r#"{"data":"hunter2-hunter2"}"#,
        ] {
            let reply = Reply { status: 200, body: body.as_bytes().to_vec() };
            let words = of(&reply, &secrets).expect_err(body);
            assert!(!words.contains("hunter2"), "{words}");
        }
    }
}
