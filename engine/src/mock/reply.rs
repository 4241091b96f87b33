//! The bytes of answers, shaped like those of a vLLM server.
//!
//! A stream is chunked, one event a chunk; in a chat the first event has a role and no content, the
//! last token's event carries the finish reason, then comes the usage event if it was asked for,
//! and `[DONE]`. A plain answer is one JSON document. Words need no escaping; the model's name
//! does.

use std::fmt::Write as _;

use super::MockConfig;
use super::call::{Call, Kind, Refusal};
use super::model::Token;

/// The answer to one call while it is generated.
#[derive(Debug)]
pub(super) struct Reply {
    kind: Kind,
    stream: bool,
    include_usage: bool,
    continuous_usage: bool,
    finish: &'static str,
    keep_alive: bool,
    tokens_per_event: u32,
    /// An event up to its choices.
    opening: String,
    prompt_tokens: u32,
    cached_tokens: u32,
    tokens: u32,
    /// Text that waits for its event, or the whole text of a plain answer.
    text: String,
    text_tokens: u32,
    /// Bytes to be written.
    out: Vec<u8>,
    finished: bool,
}

impl Reply {
    /// An answer without tokens. The head of a stream is ready to be written.
    pub(super) fn new(call: &Call, config: &MockConfig, number: u64, keep_alive: bool) -> Self {
        let (id, object) = match (call.kind, call.stream) {
            (Kind::Chat, true) => ("chatcmpl", "chat.completion.chunk"),
            (Kind::Chat, false) => ("chatcmpl", "chat.completion"),
            (Kind::Completion, _) => ("cmpl", "text_completion"),
        };
        let created = crate::clock::unix_ns() / 1_000_000_000;
        let opening = format!(
            r#"{{"id":"{id}-{number:016x}","object":"{object}","created":{created},"model":{},"#,
            json_string(&config.model)
        );
        let mut reply = Self {
            kind: call.kind,
            stream: call.stream,
            include_usage: call.include_usage,
            continuous_usage: call.continuous_usage,
            finish: if call.stops_early { "stop" } else { "length" },
            keep_alive,
            tokens_per_event: config.tokens_per_event,
            opening,
            prompt_tokens: call.job.prompt.tokens(),
            cached_tokens: 0,
            tokens: 0,
            text: String::new(),
            text_tokens: 0,
            out: Vec::new(),
            finished: false,
        };
        if reply.stream {
            let connection = connection(keep_alive);
            reply.out.extend_from_slice(
                format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
                     transfer-encoding: chunked\r\n{connection}\r\n"
                )
                .as_bytes(),
            );
        }
        reply
    }

    /// A token was generated.
    pub(super) fn token(&mut self, token: &Token) {
        assert!(!self.finished, "a finished answer gets no tokens");
        if self.tokens == 0 {
            self.cached_tokens = token.cached_tokens;
            if self.stream && self.kind == Kind::Chat {
                self.event(r#""delta":{"role":"assistant","content":""}"#, None);
            }
        }
        self.tokens += 1;
        self.text_tokens += 1;
        self.text.push(' ');
        self.text.push_str(token.word.text());
        if self.stream {
            if token.last || self.text_tokens == self.tokens_per_event {
                let text = std::mem::take(&mut self.text);
                self.text_tokens = 0;
                let content = match self.kind {
                    Kind::Chat => format!(r#""delta":{{"content":"{text}"}}"#),
                    Kind::Completion => format!(r#""text":"{text}""#),
                };
                self.event(&content, token.last.then_some(self.finish));
            }
            if token.last {
                self.end_stream();
            }
        } else if token.last {
            self.plain();
        }
        self.finished |= token.last;
    }

    /// Bytes that are ready to be written; they are handed out once.
    pub(super) fn take_bytes(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Bytes that wait to be written.
    pub(super) fn unwritten(&self) -> usize {
        self.out.len()
    }

    /// Whether every byte of the answer is ready or was taken.
    pub(super) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Tokens so far.
    pub(super) fn tokens(&self) -> u32 {
        self.tokens
    }

    /// Cached prompt tokens; known with the first token.
    pub(super) fn cached_tokens(&self) -> u32 {
        self.cached_tokens
    }

    fn event(&mut self, content: &str, finish: Option<&str>) {
        let mut data = self.opening.clone();
        data.push_str(r#""choices":[{"index":0,"#);
        data.push_str(content);
        data.push_str(r#","logprobs":null,"finish_reason":"#);
        match finish {
            Some(finish) => drop(write!(data, "\"{finish}\"}}]")),
            None => data.push_str("null}]"),
        }
        if self.continuous_usage {
            data.push(',');
            data.push_str(&self.usage());
        }
        data.push('}');
        self.chunk(&data);
    }

    fn end_stream(&mut self) {
        if self.include_usage {
            let data = format!(r#"{}"choices":[],{}}}"#, self.opening, self.usage());
            self.chunk(&data);
        }
        self.chunk("[DONE]");
        self.out.extend_from_slice(b"0\r\n\r\n");
    }

    /// One event in one chunk.
    fn chunk(&mut self, data: &str) {
        let length = "data: ".len() + data.len() + "\n\n".len();
        self.out.reserve(length + 16);
        self.out.extend_from_slice(format!("{length:x}\r\ndata: ").as_bytes());
        self.out.extend_from_slice(data.as_bytes());
        self.out.extend_from_slice(b"\n\n\r\n");
    }

    fn plain(&mut self) {
        let content = match self.kind {
            Kind::Chat => {
                format!(r#""message":{{"role":"assistant","content":"{}"}}"#, self.text)
            }
            Kind::Completion => format!(r#""text":"{}""#, self.text),
        };
        let body = format!(
            r#"{}"choices":[{{"index":0,{content},"logprobs":null,"finish_reason":"{}"}}],{}}}"#,
            self.opening,
            self.finish,
            self.usage(),
        );
        self.out = document(200, "application/json", &body, self.keep_alive);
    }

    fn usage(&self) -> String {
        let (prompt, completion) = (self.prompt_tokens, self.tokens);
        format!(
            r#""usage":{{"prompt_tokens":{prompt},"total_tokens":{},"completion_tokens":{completion},"prompt_tokens_details":{{"cached_tokens":{}}}}}"#,
            u64::from(prompt) + u64::from(completion),
            self.cached_tokens,
        )
    }
}

/// An answer of one document.
pub(super) fn document(status: u16, kind: &str, body: &str, keep_alive: bool) -> Vec<u8> {
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        413 => "Content Too Large",
        431 => "Request Header Fields Too Large",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        _ => "Error",
    };
    let connection = connection(keep_alive);
    format!(
        "HTTP/1.1 {status} {reason}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\
         {connection}\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// An error, as an answer.
pub(super) fn refusal(refusal: &Refusal, keep_alive: bool) -> Vec<u8> {
    let kind = match refusal.status {
        404 => "NotFoundError",
        400..=499 => "BadRequestError",
        _ => "InternalServerError",
    };
    let body = format!(
        r#"{{"error":{{"message":{},"type":"{kind}","param":null,"code":{}}}}}"#,
        json_string(&refusal.message),
        refusal.status,
    );
    document(refusal.status, "application/json", &body, keep_alive)
}

/// The list of models.
pub(super) fn models(config: &MockConfig, keep_alive: bool) -> Vec<u8> {
    let body = format!(
        r#"{{"object":"list","data":[{{"id":{},"object":"model","created":0,"owned_by":"onbeat","max_model_len":{}}}]}}"#,
        json_string(&config.model),
        config.context_tokens,
    );
    document(200, "application/json", &body, keep_alive)
}

fn connection(keep_alive: bool) -> &'static str {
    if keep_alive { "" } else { "connection: close\r\n" }
}

fn json_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::super::model::JobId;
    use super::super::tokens::Word;
    use super::*;

    fn reply(kind: Kind, fields: &str, config: &MockConfig) -> String {
        let body = format!(r#"{{"prompt":"a b c","messages":[{{"content":"a b c"}}]{fields}}}"#);
        let call = Call::read(kind, body.as_bytes(), config).expect("good");
        let mut reply = Reply::new(&call, config, 7, true);
        for number in 0..3 {
            assert!(!reply.is_finished());
            reply.token(&Token {
                job: JobId(0),
                word: Word::pick(number),
                last: number == 2,
                cached_tokens: 1,
            });
        }
        assert!(reply.is_finished());
        String::from_utf8(reply.take_bytes()).expect("text")
    }

    /// The data of every event, the creation time cut out.
    fn events(answer: &str) -> Vec<String> {
        let data = answer.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| match (data.find(r#""created""#), data.find(r#""model""#)) {
            (Some(from), Some(to)) => data[..from].to_owned() + &data[to..],
            _ => data.to_owned(),
        })
        .collect()
    }

    #[test]
    fn a_chat_streams_role_words_usage_and_done() {
        let config = MockConfig { model: "m\"".into(), ..MockConfig::default() };
        let fields = r#","stream":true,"stream_options":{"include_usage":true}"#;
        let answer = reply(Kind::Chat, fields, &config);
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n0\r\n\r\n"));
        let start = r#"{"id":"chatcmpl-0000000000000007","object":"chat.completion.chunk","model":"m\"","choices":["#;
        let choice = |delta: &str, finish: &str| {
            format!(
                r#"{start}{{"index":0,"delta":{{{delta}}},"logprobs":null,"finish_reason":{finish}}}]}}"#
            )
        };
        let usage = r#"],"usage":{"prompt_tokens":3,"total_tokens":6,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":1}}}"#;
        assert_eq!(
            events(&answer),
            [
                choice(r#""role":"assistant","content":"""#, "null"),
                choice(r#""content":" able""#, "null"),
                choice(r#""content":" above""#, "null"),
                choice(r#""content":" after""#, "\"length\""),
                format!("{start}{usage}"),
                "[DONE]".to_owned(),
            ]
        );
    }

    #[test]
    fn tokens_may_share_events() {
        let config = MockConfig { tokens_per_event: 2, ..MockConfig::default() };
        let events = events(&reply(Kind::Completion, r#","stream":true"#, &config));
        assert_eq!(events.len(), 3);
        assert!(events[0].contains(r#""text":" able above""#), "{events:?}");
        assert!(events[1].contains(r#""text":" after","logprobs":null,"finish_reason":"length""#));
    }

    #[test]
    fn running_usage_is_in_every_event() {
        let fields = r#","stream":true,"stream_options":{"continuous_usage_stats":true}"#;
        let events = events(&reply(Kind::Completion, fields, &MockConfig::default()));
        let counts: Vec<bool> = (1..=3)
            .map(|count| events[count - 1].contains(&format!(r#""completion_tokens":{count}"#)))
            .collect();
        assert_eq!(counts, [true; 3]);
    }

    #[test]
    fn a_plain_answer_is_one_document() {
        for (kind, content) in
            [(Kind::Chat, "/choices/0/message/content"), (Kind::Completion, "/choices/0/text")]
        {
            let answer = reply(kind, "", &MockConfig::default());
            let (head, body) = answer.split_once("\r\n\r\n").expect("head and body");
            assert!(head.ends_with(&format!("content-length: {}", body.len())));
            let json: serde_json::Value = serde_json::from_str(body).expect("JSON");
            assert_eq!(json.pointer(content), Some(&" able above after".into()));
            assert_eq!(json.pointer("/usage/completion_tokens"), Some(&3.into()));
        }
    }
}
