//! A server that repeats whatever it is told, in every place where a client could pick it up.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::json;

/// The server; its thread ends with the process.
pub(super) struct Parrot {
    pub(super) address: SocketAddr,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Parrot {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port on loopback");
        let address = listener.local_addr().expect("it is bound");
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let all = Arc::clone(&heard);
        let serve = move || {
            for stream in listener.incoming().flatten() {
                let all = Arc::clone(&all);
                let one = move || {
                    let mut stream = stream;
                    while let Some(request) = request(&mut stream) {
                        let number = {
                            let mut all = all.lock().expect("nobody panics with it");
                            all.push(request.clone());
                            all.len() - 1
                        };
                        if stream.write_all(&repeated(&request, number)).is_err() {
                            return;
                        }
                    }
                };
                let named = std::thread::Builder::new().name("parrot".to_owned());
                named.spawn(one).expect("a thread");
            }
        };
        std::thread::Builder::new().name("parrots".to_owned()).spawn(serve).expect("a thread");
        Self { address, heard }
    }

    /// Every request so far, heads and bodies.
    pub(super) fn heard(&self) -> Vec<String> {
        self.heard.lock().expect("nobody panics with it").clone()
    }
}

/// One whole request; `None` when there are no more.
fn request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 16_384];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
            let length: usize = length.and_then(|it| it.parse().ok()).unwrap_or(0);
            if body.len() >= length {
                return Some(text);
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend_from_slice(&buffer[..read]),
        }
    }
}

/// The answer to a request: another kind for each number.
fn repeated(request: &str, number: usize) -> Vec<u8> {
    let (head, body) = request.split_once("\r\n\r\n").unwrap_or((request, ""));
    let (line, headers) = head.split_once("\r\n").unwrap_or((head, ""));
    let place = line.split(' ').nth(1).unwrap_or_default();
    let secret = headers.lines().filter_map(|line| line.split_once(": ")).map(|(_, value)| value);
    let secret: Vec<&str> = secret.filter(|value| value.contains("CANARY")).collect();
    let one = secret.get(number % secret.len().max(1)).copied().unwrap_or_default();
    if place.contains("metrics") && number.is_multiple_of(2) {
        return format!("HTTP/1.1 200 OK\r\nContent-Length: {one}\r\n\r\n").into_bytes();
    }
    if place.contains("metrics") && number.is_multiple_of(3) {
        // Cut where what is shown of it ends.
        let page = "x".repeat(180) + one + "xxxxxxxxxxxxxxxxxxxxxx";
        return answered("200 OK", "text/plain", headers, &page);
    }
    if line.starts_with("GET ") {
        let list = json!({"data": [{"id": one, "object": "model"}], "at": place}).to_string();
        return answered("200 OK", "application/json", headers, &list);
    }
    let event = |value: serde_json::Value| format!("data: {value}\n\n");
    match number % 12 {
        0 => {
            let said = json!({"error": {"message": format!("bad key {one}, {place}")}});
            answered("401 Unauthorized", "application/json", headers, &said.to_string())
        }
        1 => answered("400 Bad Request", "text/plain", headers, &format!("no {body}")),
        2 => {
            let to = format!("Location: http://{one}@127.0.0.1:9/{one}?{one}\r\n{headers}");
            answered("307 Temporary Redirect", "text/plain", &to, one)
        }
        3 => {
            let said = event(json!({"error": {"message": format!("{one} {body}")}}));
            answered("200 OK", "text/event-stream", headers, &said)
        }
        4 => {
            let said = event(json!({"choices": [{"index": 0, "delta": {"content": body}}]}))
                + &event(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": one}]}))
                + "data: [DONE]\n\n";
            answered("200 OK", "text/event-stream", headers, &said)
        }
        5 => {
            let page = format!("<html><pre>{headers}</pre></html>");
            let delay = format!("Retry-After: {one}\r\n{headers}");
            answered("503 Service Unavailable", "text/html", &delay, &page)
        }
        6 => format!("{one}\r\n\r\n{head}").into_bytes(),
        7 => answered("400 Bad Request", "text/plain", headers, &one.to_lowercase()),
        8 => answered("400 Bad Request", "text/plain", headers, &base64(one)),
        9 => {
            let spelled = one.replace('/', "%2f").replace('+', "&#43;").replace('=', "\\u003d");
            answered("500 Internal Server Error", "text/html", headers, &spelled)
        }
        10 => {
            let delay = format!("Retry-After: {}{one}\r\n{headers}", "x".repeat(50));
            answered("429 Too Many Requests", "text/plain", &delay, "busy")
        }
        _ => answered(
            "422 Unprocessable",
            "application/json",
            headers,
            &json!({
                "detail": [{"type": "missing", "msg": one, "input": body}]
            })
            .to_string(),
        ),
    }
}

/// A text in Base64, behind what makes it begin anywhere.
fn base64(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let coded = |group: &[u8]| {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        [18, 12, 6, 0].map(|shift| char::from(LETTERS[(bits >> shift & 63) as usize]))
    };
    ["", "u:", "user:"].map(|user| [user, text].concat()).iter().fold(String::new(), |all, one| {
        all + " " + &one.as_bytes().chunks(3).flat_map(coded).collect::<String>()
    })
}

/// An answer with the request's own headers among its.
fn answered(status: &str, kind: &str, headers: &str, body: &str) -> Vec<u8> {
    let ours = ["host:", "content-", "connection:", "transfer-", "location:"];
    let location = headers.lines().find(|line| line.starts_with("Location: ")).unwrap_or("X: y");
    let echoed: String = headers
        .lines()
        .filter(|line| !ours.iter().any(|own| line.to_lowercase().starts_with(own)))
        .map(|line| format!("{line}\r\n"))
        .collect();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{location}\r\n{echoed}\
         \r\n{body}",
        body.len()
    )
    .into_bytes()
}
