//! Event streams, against the crate `eventsource-stream`: the same events with the same data.
//!
//! The crate's events are held against the plainest splitter's, which in turn is what the engine is
//! judged by. Two differences are on purpose and taken away here: the engine counts an event whose
//! closing empty line is missing at a clean end, and an event whose data is empty (heartbeats are
//! events). The crate stops at bytes that are not UTF-8; there, only what came before is compared.
//! And it panics at a byte-order mark, as of 0.2.3, so it is not shown one at the start.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use eventsource_stream::EventStream;
use futures_core::Stream;
use onbeat_shared::dice::Dice;

use super::super::{Subject, mutation};
use super::events::{Events, split};
use super::expected::Name;

/// Bodies of event streams.
pub(super) struct AgainstEventsource {
    events: Events,
}

impl AgainstEventsource {
    pub(super) fn new() -> Self {
        Self { events: Events::new() }
    }
}

impl Subject for AgainstEventsource {
    fn generate(&mut self, dice: &mut Dice, out: &mut Vec<u8>) {
        self.events.generate(dice, out);
    }

    fn judge(&mut self, input: &[u8]) -> Result<(), String> {
        self.events.judge(input)?;
        // Whatever line the end cuts, and whatever event it leaves open, is closed.
        let closed = [input, b"\n\n"].concat();
        let mut dice = mutation::dice_of(input);
        let mut cuts = mutation::cuts(&mut dice, closed.len(), 4);
        let unmarked = closed.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&closed);
        if unmarked.starts_with(b"\xef\xbb\xbf") {
            return Ok(());
        }
        cuts.retain(|&cut| cut < unmarked.len());
        cuts.push(unmarked.len());
        let (theirs, whole) = read(unmarked, &cuts);
        let mut ours = split(&closed);
        ours.retain(|event| !event.1.is_empty());
        if !whole {
            ours.truncate(theirs.len());
        }
        if ours == theirs { Ok(()) } else { Err(format!("split {ours:?}, crate {theirs:?}")) }
    }
}

/// Name and data of each event.
type Named = Vec<(Name, Vec<u8>)>;

/// The crate's events, and whether it came to the end.
fn read(stream: &[u8], cuts: &[usize]) -> (Named, bool) {
    let mut cx = Context::from_waker(Waker::noop());
    let mut events = EventStream::new(Pieces { stream, cuts, at: 0 });
    let mut found = Vec::new();
    loop {
        match Pin::new(&mut events).poll_next(&mut cx) {
            Poll::Ready(Some(Ok(event))) if event.data.is_empty() => {}
            Poll::Ready(Some(Ok(event))) => {
                found.push((Name::of(event.event.as_bytes()), event.data.into_bytes()));
            }
            Poll::Ready(Some(Err(_))) => return (found, false),
            Poll::Ready(None) => return (found, true),
            Poll::Pending => unreachable!("every piece is there"),
        }
    }
}

/// The stream, piece by piece.
struct Pieces<'a> {
    stream: &'a [u8],
    cuts: &'a [usize],
    at: usize,
}

impl<'a> Stream for Pieces<'a> {
    type Item = Result<&'a [u8], Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some((&cut, behind)) = self.cuts.split_first() else { return Poll::Ready(None) };
        let piece = &self.stream[self.at..cut];
        (self.at, self.cuts) = (cut, behind);
        Poll::Ready(Some(Ok(piece)))
    }
}
