//! hyper's client on a connection that lies in memory: one request, and whatever is answered.
//!
//! Polled by hand, without a runtime: nothing here ever waits, because every byte is there and
//! behind the last one is the end.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::client::conn::http1;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::{HeaderMap, Request, StatusCode};

use super::told::Behind;

/// What hyper made of an answer.
#[derive(Debug)]
pub(super) enum Seen {
    /// No final head, and why.
    Nothing(String),
    /// A head, the body as far as it was decoded, and what was wrong with its end.
    Answer { status: StatusCode, headers: HeaderMap, body: Vec<u8>, wrong: Option<String> },
}

/// Has hyper read `input`, cut at `cuts`.
pub(super) fn read(input: &[u8], cuts: &[usize], behind: Behind) -> Seen {
    let mut cx = Context::from_waker(Waker::noop());
    let peer = Peer { input: input.to_vec(), cuts: cuts.to_vec(), at: 0, written: false, behind };
    let mut builder = http1::Builder::new();
    builder.allow_obsolete_multiline_headers_in_responses(true);
    builder.max_headers(onbeat::limits::HEADERS_MAX);
    let mut handshake = std::pin::pin!(builder.handshake::<_, Nothing>(peer));
    let Poll::Ready(Ok((mut sender, mut connection))) = handshake.as_mut().poll(&mut cx) else {
        return Seen::Nothing("no connection".to_owned());
    };
    let request = Request::builder().header("host", "x").body(Nothing).expect("a request");
    let mut response = std::pin::pin!(sender.send_request(request));
    let mut running = true;
    let mut turn = |cx: &mut Context<'_>| {
        if running && Pin::new(&mut connection).poll(cx).is_ready() {
            running = false;
        }
    };
    let mut answer = None;
    for _ in 0..TURNS_MAX {
        turn(&mut cx);
        if let Poll::Ready(result) = response.as_mut().poll(&mut cx) {
            answer = Some(result);
            break;
        }
    }
    let (parts, mut incoming) = match answer {
        None => return Seen::Nothing("it never answered".to_owned()),
        Some(Err(error)) => return Seen::Nothing(words(&error)),
        Some(Ok(response)) => response.into_parts(),
    };
    let mut body = Vec::new();
    let mut wrong = Some("it never ended".to_owned());
    for _ in 0..TURNS_MAX {
        match Pin::new(&mut incoming).poll_frame(&mut cx) {
            Poll::Pending => turn(&mut cx),
            Poll::Ready(None) => {
                wrong = None;
                break;
            }
            Poll::Ready(Some(Err(error))) => {
                wrong = Some(words(&error));
                break;
            }
            Poll::Ready(Some(Ok(frame))) => add(frame, &mut body),
        }
    }
    let _: Incoming = incoming;
    Seen::Answer { status: parts.status, headers: parts.headers, body, wrong }
}

/// Far more turns than the bytes of any input can need.
const TURNS_MAX: usize = 1 << 18;

fn add(frame: Frame<Bytes>, body: &mut Vec<u8>) {
    if let Ok(data) = frame.into_data() {
        body.extend_from_slice(&data);
    }
}

/// The error and what is behind it.
fn words(error: &hyper::Error) -> String {
    let source = std::error::Error::source(error);
    source.map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

/// A body of a request that has none.
struct Nothing;

impl Body for Nothing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        true
    }
}

/// A server that takes a request and answers with bytes it was given.
struct Peer {
    input: Vec<u8>,
    /// Where the pieces end that reads return.
    cuts: Vec<usize>,
    at: usize,
    /// The request has been sent; nothing is answered before.
    written: bool,
    behind: Behind,
}

impl Read for Peer {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.written {
            return Poll::Pending;
        }
        let at = self.at;
        if at == self.input.len() && self.behind == Behind::Reset {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        let cut = self.cuts.iter().copied().find(|&cut| cut > at).unwrap_or(self.input.len());
        let end = cut.min(at + buffer.remaining());
        buffer.put_slice(&self.input[at..end]);
        self.at = end;
        Poll::Ready(Ok(()))
    }
}

impl Write for Peer {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.written = true;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
