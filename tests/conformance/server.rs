//! The servers of the checks: one that keeps every request it gets, one that follows a script.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tests::scripted::{Scripted, answer, request};

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Method, path and version.
    pub(crate) line: String,
    /// Names in lower case, and values.
    pub(crate) headers: Vec<(String, String)>,
    /// The body.
    pub(crate) body: String,
}

impl Seen {
    fn of(bytes: Vec<u8>) -> Self {
        let text = String::from_utf8(bytes).expect("a request in UTF-8");
        let (head, body) = text.split_once("\r\n\r\n").expect("a whole request");
        let mut lines = head.lines();
        let line = lines.next().unwrap_or_default().to_owned();
        Self { line, headers: headers(lines), body: body.to_owned() }
    }

    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        value_of(&self.headers, name)
    }

    /// The body as JSON whose keys have their order.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("a body is JSON")
    }
}

/// Header lines as names in lower case and values.
pub(crate) fn headers<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<(String, String)> {
    lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_lowercase(), value.trim().to_owned()))
        .collect()
}

/// The value of a header among some.
pub(crate) fn value_of<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

/// What a server does with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// It sends it, and waits for the next request.
    GoesOn,
    /// It sends the first half and no more.
    Holds,
    /// It sends the first half and hangs up.
    Drops,
}

/// A good server that keeps what it got, and answers as the captures' server did: ` tok` as often
/// as was asked for.
pub(crate) struct Recorder {
    server: Scripted,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Recorder {
    /// Starts it on loopback.
    pub(crate) fn start() -> Self {
        Self::holding(|_| false)
    }

    /// Starts one that begins its answers to requests that are `held`, and ends none of them.
    pub(crate) fn holding(held: impl Fn(&Seen) -> bool + Send + Sync + 'static) -> Self {
        Self::answering(move |seen| {
            let then = if held(seen) { Then::Holds } else { Then::GoesOn };
            (reply(&serde_json::from_str(&seen.body).unwrap_or_default()), then)
        })
    }

    /// Starts one that answers as it is told.
    pub(crate) fn answering(
        answers: impl Fn(&Seen) -> (Vec<u8>, Then) + Send + Sync + 'static,
    ) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let writing = Arc::clone(&seen);
        let server = Scripted::start(move |_, mut stream| {
            while let Some(bytes) = request(&mut stream) {
                let seen = Seen::of(bytes);
                writing.lock().expect("nobody panics with it").push(seen.clone());
                let (reply, then) = answers(&seen);
                if then == Then::GoesOn {
                    answer(&mut stream, &reply);
                    continue;
                }
                answer(&mut stream, &reply[..reply.len() / 2]);
                if then == Then::Holds {
                    // Until the client goes away.
                    let _ = stream.read(&mut [0]);
                }
                return;
            }
        });
        Self { server, seen }
    }

    /// Where it is.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.server.address)
    }

    /// What it has got so far, in the order of arrival.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.look(<[Seen]>::to_vec)
    }

    /// What a look at all that it has got so far gives.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&[Seen]) -> T) -> T {
        look(&self.seen.lock().expect("nobody panics with it"))
    }
}

/// A whole answer to a request's body.
pub(crate) fn reply(body: &Value) -> Vec<u8> {
    let asked = body["max_completion_tokens"].as_u64().or_else(|| body["max_tokens"].as_u64());
    reply_of(body, asked.unwrap_or(4).min(64))
}

/// A whole answer of so many tokens, none included.
pub(crate) fn reply_of(body: &Value, tokens: u64) -> Vec<u8> {
    let is_chat = body["messages"].is_array();
    let usage = json!({"prompt_tokens": 1, "completion_tokens": tokens});
    if body["stream"] != json!(true) {
        let text = " tok".repeat(usize::try_from(tokens).expect("few"));
        let choice = if is_chat {
            json!({"index": 0, "finish_reason": "length", "message": {"content": text}})
        } else {
            json!({"index": 0, "finish_reason": "length", "text": text})
        };
        return whole(
            "application/json",
            &json!({"choices": [choice], "usage": usage}).to_string(),
        );
    }
    let mut events = String::new();
    if tokens == 0 && is_chat {
        let choice = json!({"index": 0, "finish_reason": "length", "delta": {}});
        events += &format!("data: {}\n\n", json!({"choices": [choice]}));
    }
    for token in 1..=tokens {
        let finish = if token == tokens { json!("length") } else { Value::Null };
        let choice = if is_chat {
            json!({"index": 0, "finish_reason": finish, "delta": {"content": " tok"}})
        } else {
            json!({"index": 0, "finish_reason": finish, "text": " tok"})
        };
        events += &format!("data: {}\n\n", json!({"choices": [choice]}));
    }
    events += &format!("data: {}\n\n", json!({"choices": [], "usage": usage}));
    whole("text/event-stream", &(events + "data: [DONE]\n\n"))
}

/// A whole answer of this type.
pub(crate) fn whole(kind: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}")
        .into_bytes()
}

/// Why a case with a server script is skipped where there is no Python.
pub(crate) const NO_PYTHON: &str = "there is no python3 to play the server script";

/// `oddserver.py` with a script, until dropped.
pub(crate) struct Odd {
    child: Child,
    folder: tempfile::TempDir,
    port: u16,
}

impl Odd {
    /// Plays `script`; `None` where there is no Python.
    pub(crate) fn play(cases: &Path, script: &str) -> Option<Self> {
        Self::play_at(cases, script, "127.0.0.1")
    }

    /// Plays `script` at an address of this host.
    pub(crate) fn play_at(cases: &Path, script: &str, address: &str) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("script.srv");
        std::fs::write(&file, script).expect("the folder is writable");
        let mut child = Command::new("python3")
            .arg(cases.join("oddserver.py"))
            .arg(file)
            .args(["--host", address])
            .arg("--log")
            .arg(folder.path().join("server.jsonl"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut line = String::new();
        let stdout = child.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("it says where it listens");
        let port = line.trim().parse().expect("a port");
        Some(Self { child, folder, port })
    }

    /// Where it is.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Its port.
    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    /// The requests it has got so far: the number of its connection, and what came.
    pub(crate) fn seen(&self) -> Vec<(u64, Seen)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        self.log()
            .iter()
            .filter(|line| line["line"].is_string())
            .map(|line| {
                let headers = line["headers"].as_object().into_iter().flatten();
                let headers = headers.map(|(name, value)| (name.clone(), text(value))).collect();
                let seen = Seen { line: text(&line["line"]), headers, body: text(&line["body"]) };
                (line["conn"].as_u64().expect("a connection has a number"), seen)
            })
            .collect()
    }

    /// The lines of its log so far, whole ones only.
    pub(crate) fn log(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.log_file()).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    fn log_file(&self) -> PathBuf {
        self.folder.path().join("server.jsonl")
    }
}

impl Drop for Odd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
