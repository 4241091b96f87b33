//! What is asked of the servers before zero: whether they are ready, and what the model is called.
//!
//! Readiness is AIPerf's: a server is ready when `/v1/models` lists the model, when it answers a
//! request for one token with any status below 500, or both; looks repeat until it is or the time
//! is up. Without `--model` the first model that `/v1/models` lists is asked for. Nothing here is
//! part of the workload, and nothing is asked once a run has begun.

mod models;

use std::time::Duration;

use onbeat_shared::counted::counted;
use onbeat_shared::foreign::shown;
use serde_json::json;

use crate::clock::monotonic_ns;
use crate::conductor::Watch;
use crate::error::EngineError;
use crate::net::ask::{NoReply, Reply, ask};
use crate::net::reach::{addresses, reach};
use crate::net::target::Target;
use crate::net::way::{Way, WayOptions};
use crate::render::secret::scrubbed;
use crate::render::{Destination, Endpoint, RenderOptions, head_of_question, request_path};
use crate::replayer::Stop;

/// What is asked of the servers before zero, as meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// How long each server may take to become ready; `None`: it is not asked.
    pub timeout_ns: Option<i64>,
    /// The pause between two looks.
    pub interval_ns: i64,
    /// What makes it ready.
    pub look: Look,
    /// Whether the model's name is to be asked for.
    pub ask_model: bool,
}

/// What makes a server ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Look {
    /// `/v1/models` lists the model.
    Models,
    /// It answers a request for one token.
    #[default]
    Inference,
    /// Both, in this order.
    Both,
}

/// How long one answer may take at least.
const ANSWER_NS: i64 = 5_000_000_000;
/// How long an answer of the model may take at least: the first one may load it.
const INFERENCE_NS: i64 = 30_000_000_000;
/// How long a look may take however little time is left.
const LOOK_NS: i64 = 1_000_000_000;
/// How often the user is listened to between two looks.
const GLANCE: Duration = Duration::from_millis(50);
/// The prompt of a request for one token: AIPerf's.
const PROMPT: &str = "Lo";

/// Waits until every server is ready; returns at once if that is not wanted.
///
/// # Errors
/// When one is not ready in time, an option cannot be meant, or the user stops the run.
pub fn wait<'a>(
    readiness: &Readiness,
    targets: impl Iterator<Item = &'a Target>,
    way: &WayOptions,
    requests: &RenderOptions,
    watch: &mut dyn Watch,
) -> Result<(), EngineError> {
    let Some(timeout_ns) = readiness.timeout_ns else { return Ok(()) };
    for target in targets {
        let mut requests = requests.clone();
        let mut server =
            Server { target, way, requests: &mut requests, readiness, watch, odd: None };
        if readiness.ask_model || readiness.look != Look::Inference {
            server.wait_until(timeout_ns, Server::lists_model)?;
        }
        if readiness.look != Look::Models {
            server.wait_until(timeout_ns, Server::answers)?;
        }
        let odd = server.odd.take().map_or_else(String::new, |words| format!(": it {words}"));
        watch.say(&format!("{target} is ready{odd}"));
    }
    Ok(())
}

/// The name of the model, asked for along `way` to `target`; `None` when the user gave it or the
/// server does not say, which is told.
///
/// # Errors
/// When it could not be asked for something that is lacking here.
pub fn model(
    readiness: &Readiness,
    target: &Target,
    way: &Way,
    requests: &RenderOptions,
    watch: &mut dyn Watch,
) -> Result<Option<String>, EngineError> {
    if !readiness.ask_model {
        return Ok(None);
    }
    let question = question(target, requests, None).map_err(NoReply::from);
    let reply = question
        .and_then(|question| ask(way, &question, ANSWER_NS, &mut || watch.stop() == Stop::No));
    if let Some(ours) = reply.as_ref().err().and_then(NoReply::ours) {
        return Err(ours);
    }
    let secrets = requests.secrets();
    let found = reply.map_err(|none| none.words).and_then(|reply| models::of(&reply, &secrets));
    let found = found.map_err(|words| scrubbed(words, &secrets));
    match found {
        Ok(names) => {
            let Some(first) = names.first().cloned() else { return Ok(None) };
            let name = shown(&first);
            watch.say(&match names.len() {
                1 => format!("the model is {name}, the only one {target} has"),
                count => format!(
                    "the model is {name}, the first of {count} that {target} has ({}); --model \
                     names another",
                    models::listed(&names)
                ),
            });
            Ok(Some(first))
        }
        Err(words) => {
            watch.say(&format!(
                "{target} does not say which models it has ({words}); requests ask for {:?}, and \
                 --model names another",
                requests.model
            ));
            Ok(None)
        }
    }
}

/// A server that is waited for.
struct Server<'a> {
    target: &'a Target,
    way: &'a WayOptions,
    requests: &'a mut RenderOptions,
    readiness: &'a Readiness,
    watch: &'a mut dyn Watch,
    /// What it did that a server which is ready does, and a user would want to know.
    odd: Option<String>,
}

/// Why a server is not ready.
enum NotReady {
    /// It may be, later.
    Yet(String),
    /// It never will.
    Ever(EngineError),
}

impl Server<'_> {
    /// Looks until `ready` says so.
    fn wait_until(
        &mut self,
        timeout_ns: i64,
        ready: fn(&mut Self, i64) -> Result<(), NotReady>,
    ) -> Result<(), EngineError> {
        let until_ns = monotonic_ns().saturating_add(timeout_ns);
        let mut looks = 0_u32;
        loop {
            looks += 1;
            // The last look gets time to say what is wrong.
            let left_ns = until_ns.saturating_sub(monotonic_ns()).max(LOOK_NS);
            let words = match ready(self, left_ns) {
                Ok(()) => return Ok(()),
                Err(NotReady::Ever(error)) => return Err(error),
                Err(NotReady::Yet(words)) => words,
            };
            let left_ns = until_ns.saturating_sub(monotonic_ns());
            if left_ns <= 0 {
                let seconds = timeout_ns as f64 / 1e9;
                return Err(EngineError::Run(format!(
                    "{} was not ready within {seconds} s (--wait-for-model-timeout), at {}; at the \
                     last one: {words}",
                    self.target,
                    counted(looks.into(), "look")
                )));
            }
            self.watch.say(&format!(
                "waiting for {} to be ready: {words}; {:.0} s left",
                self.target,
                left_ns as f64 / 1e9
            ));
            self.pause(self.readiness.interval_ns.min(left_ns))?;
        }
    }

    fn pause(&mut self, pause_ns: i64) -> Result<(), EngineError> {
        let until_ns = monotonic_ns().saturating_add(pause_ns);
        loop {
            if self.watch.stop() != Stop::No {
                return Err(EngineError::Stopped);
            }
            let left_ns = until_ns.saturating_sub(monotonic_ns());
            if left_ns <= 0 {
                return Ok(());
            }
            let left = Duration::from_nanos(left_ns.unsigned_abs());
            #[expect(clippy::disallowed_methods, reason = "nothing is timed before zero")]
            std::thread::sleep(left.min(GLANCE));
        }
    }

    /// Whether `/v1/models` lists the model, or any if its name is not known.
    fn lists_model(&mut self, left_ns: i64) -> Result<(), NotReady> {
        let reply = self.ask(None, self.readiness.interval_ns.max(ANSWER_NS).min(left_ns))?;
        if reply.status == 404 {
            // A server without the list is as ready as one that answers.
            self.odd = Some("answered 404 when asked for /v1/models".to_owned());
            return Ok(());
        }
        let names = models::of(&reply, &self.requests.secrets()).map_err(NotReady::Yet)?;
        if self.readiness.ask_model {
            self.requests.model.clone_from(&names[0]);
            return Ok(());
        }
        match names.contains(&self.requests.model) {
            true => Ok(()),
            false => Err(NotReady::Yet(format!(
                "/v1/models lists {} and not {}",
                models::listed(&names),
                models::quoted(&self.requests.model)
            ))),
        }
    }

    /// Whether it answers a request for one token.
    fn answers(&mut self, left_ns: i64) -> Result<(), NotReady> {
        let body = match self.requests.endpoint {
            Endpoint::Completions => json!({ "prompt": PROMPT, "max_tokens": 1 }),
            _ => json!({
                "messages": [{ "role": "user", "content": PROMPT }],
                "max_tokens": 1,
            }),
        };
        let patience_ns = self.readiness.interval_ns.max(INFERENCE_NS).min(left_ns);
        let mut body = body;
        body["model"] = json!(self.requests.model);
        match self.ask(Some(&body.to_string()), patience_ns)? {
            // Whatever it minds about this request, it will say about the first real one as well.
            Reply { status, body } if status < 500 => {
                self.odd = odd(status, &body).or(self.odd.take());
                Ok(())
            }
            Reply { status, .. } => Err(NotReady::Yet(format!("it answers with status {status}"))),
        }
    }

    fn ask(&mut self, body: Option<&str>, patience_ns: i64) -> Result<Reply, NotReady> {
        let question = question(self.target, self.requests, body)
            .map_err(|words| NotReady::Ever(EngineError::Usage(words)))?;
        // A name that nobody knows yet may be known once the server is there.
        addresses(self.target).map_err(|error| match error {
            EngineError::Usage(words) => NotReady::Yet(words),
            other => NotReady::Ever(other),
        })?;
        let secrets = self.requests.secrets();
        let reached = reach(self.target, self.way).map_err(|error| match error {
            EngineError::Run(words) => NotReady::Yet(scrubbed(words, &secrets)),
            other => NotReady::Ever(other),
        })?;
        let watch = &mut *self.watch;
        let reply = ask(&reached.way, &question, patience_ns, &mut || watch.stop() == Stop::No);
        if self.watch.stop() != Stop::No {
            return Err(NotReady::Ever(EngineError::Stopped));
        }
        reply.map_err(|none| match none.ours() {
            Some(ours) => NotReady::Ever(ours),
            None => NotReady::Yet(scrubbed(none.words, &self.requests.secrets())),
        })
    }
}

/// What is odd about an answer to a request for one token; `None` when nothing is.
fn odd(status: u16, body: &[u8]) -> Option<String> {
    let html = body.trim_ascii_start().first() == Some(&b'<');
    match (status, html) {
        (200..=299, false) => None,
        (_, false) => Some(format!("answered {status}")),
        (_, true) => Some(format!("answered {status}, with a page of HTML")),
    }
}

/// A whole request: for the list of models, or with a `body` for an answer.
fn question(
    target: &Target,
    requests: &RenderOptions,
    body: Option<&str>,
) -> Result<Vec<u8>, String> {
    let destination = Destination::new(&target.authority(), target.base_path());
    let endpoint = request_path(target.base_path(), requests);
    let (method, path) = match body {
        Some(_) => ("POST", endpoint),
        None => ("GET", models::path(target.base_path(), &endpoint)),
    };
    let head = head_of_question(method, &path, &destination, requests, body.map(str::len));
    let mut question = head.map_err(|error| error.to_string())?;
    question.extend_from_slice(body.unwrap_or_default().as_bytes());
    Ok(question)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_ready_server_answered_is_told_unless_it_is_an_answer() {
        assert_eq!(odd(200, b"{\"choices\":[]}"), None);
        assert_eq!(odd(302, b"").as_deref(), Some("answered 302"));
        assert_eq!(odd(400, b"{\"error\":1}").as_deref(), Some("answered 400"));
        assert_eq!(
            odd(200, b"\n<!DOCTYPE html>").as_deref(),
            Some("answered 200, with a page of HTML")
        );
    }
}
