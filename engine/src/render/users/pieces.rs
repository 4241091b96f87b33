//! The slices of one request that is out, in the order in which they are sent.
//!
//! A long request is sent in several goes, and each begins where the one before ended: how far the
//! last one went is kept, so that its slices are not gone through once more each time.

use std::cell::RefCell;
use std::sync::Arc;

use onbeat_shared::units::RequestIndex;

use crate::render::replies::{PAGE_BYTES, Page};
use crate::render::users::stage::{Flight, Stage};
use crate::render::users::strip::Strip;
use crate::render::users::walk::{Bit, Spot, Walk};
use crate::render::users::{Place, Scenes};

/// One slice of a request, and what keeps it where it is.
#[derive(Clone, Copy, Debug)]
pub(in crate::render) enum Piece<'a> {
    /// Written before zero.
    Scene(&'a Arc<Scenes>, Place),
    /// The same in all requests.
    Fixed(&'static [u8]),
    /// Of a reply.
    Reply(&'a Arc<Page>, usize),
    /// The rest of the head, and how the body begins.
    Head(&'a Arc<Strip>),
    /// So many bytes of the mark.
    Mark(&'a Arc<Strip>, usize),
}

/// The pieces of a request.
#[derive(Clone, Debug)]
pub(in crate::render) struct Pieces<'a> {
    stage: &'a Stage,
    flight: &'a Flight,
    walk: Walk<'a>,
    at: At,
    /// Pieces that are still to come.
    left: usize,
}

/// How far into which request somebody was.
#[derive(Debug, Default)]
pub(super) struct Memo(RefCell<Option<Reached>>);

#[derive(Clone, Copy, Debug)]
struct Reached {
    request: RequestIndex,
    left: usize,
    at: At,
    spot: Spot,
}

/// Fewer pieces are passed again as fast as they are found.
const FAR: usize = 32;

/// Where in a request the next piece is.
#[derive(Clone, Copy, Debug)]
enum At {
    Start,
    Head,
    Prompt,
    Page { page: u32, left: usize },
    End,
}

impl<'a> Pieces<'a> {
    pub(super) const fn new(stage: &'a Stage, flight: &'a Flight, walk: Walk<'a>) -> Self {
        Self { stage, flight, walk, at: At::Start, left: flight.parts as usize }
    }

    /// Passes `skipped` pieces.
    fn pass(&mut self, skipped: usize) {
        if skipped < FAR {
            for _ in 0..skipped {
                self.next();
            }
            return;
        }
        let goal = self.left.saturating_sub(skipped);
        let mut memo = self.stage.memo.0.borrow_mut();
        if let Some(reached) = memo.filter(|reached| reached.request == self.flight.request)
            && (goal..self.left).contains(&reached.left)
        {
            (self.left, self.at) = (reached.left, reached.at);
            self.walk.go_to(&reached.spot);
        }
        while self.left > goal {
            if self.next().is_none() {
                return;
            }
        }
        let spot = *self.walk.spot();
        *memo = Some(Reached { request: self.flight.request, left: self.left, at: self.at, spot });
    }
}

impl Memo {
    /// What a number meant before, it may not mean any more.
    pub(super) fn forget(&mut self) {
        *self.0.get_mut() = None;
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        self.left = self.left.checked_sub(1)?;
        let (stage, flight) = (self.stage, self.flight);
        let line = &stage.scenes.lines[flight.record as usize];
        loop {
            match self.at {
                At::Start => {
                    self.at = At::Head;
                    return Some(Piece::Scene(&stage.scenes, flight.common));
                }
                At::Head => {
                    self.at = At::Prompt;
                    return Some(Piece::Head(stage.strips.get(flight.strip)));
                }
                At::Page { left: 0, .. } => self.at = At::Prompt,
                At::Page { page, left } => {
                    let (bytes, behind) = stage.replies.page(page);
                    let used = left.min(PAGE_BYTES);
                    self.at = At::Page { page: behind, left: left - used };
                    return Some(Piece::Reply(bytes, used));
                }
                At::Prompt => match self.walk.next() {
                    Some(Bit::Text { start, len }) => {
                        return Some(Piece::Scene(&stage.scenes, line.text(start, len)));
                    }
                    Some(Bit::Fixed(separator)) => {
                        return Some(Piece::Fixed(stage.scenes.separators.text(separator)));
                    }
                    Some(Bit::Mark(words)) => {
                        let strip = stage.strips.get(flight.strip);
                        return Some(Piece::Mark(strip, strip.marked(words)));
                    }
                    Some(Bit::Reply(slot)) => {
                        let slot = RequestIndex(slot);
                        let left = stage.replies.len(slot).unwrap_or(0) as usize;
                        self.at = At::Page { page: stage.replies.first_page(slot), left };
                    }
                    Some(Bit::Open) => {}
                    None => {
                        self.at = At::End;
                        let closing = stage.scenes.closings[line.closing as usize];
                        return Some(Piece::Scene(&stage.scenes, closing));
                    }
                },
                At::End => return None,
            }
        }
    }

    fn nth(&mut self, skipped: usize) -> Option<Piece<'a>> {
        self.pass(skipped);
        self.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Pieces<'_> {}

impl<'a> Piece<'a> {
    /// What it holds.
    pub(in crate::render) fn bytes(self) -> &'a [u8] {
        match self {
            Self::Scene(scenes, place) => scenes.bytes(place),
            Self::Fixed(bytes) => bytes,
            Self::Reply(page, used) => &page[..used],
            Self::Head(strip) => strip.head(),
            Self::Mark(strip, bytes) => strip.mark_bytes(bytes),
        }
    }
}
