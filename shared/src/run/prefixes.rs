//! Which prompts of a run begin alike, as far as its log says.
//!
//! Stretches of blocks form trees; a prompt is a stretch and all that it follows (see
//! [`crate::log::prefix_rows`]). Half a tree would promise hits or misses that nobody knows of, so
//! where any part is damaged or missing there is none. Sizes come from what the log holds, and
//! whoever walks from a stretch to what it follows comes to an end.

use crate::log::prefix_rows::{PathRow, PathRows, StretchRow, StretchRows};

/// Follows nothing, or ends nowhere.
const NONE: u32 = u32::MAX;

/// Stretches of blocks, and where prompts end in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prefixes {
    stretches: Vec<Stretch>,
    /// By request or template: the last stretch and the copy.
    paths: Vec<(u32, u32)>,
}

/// Blocks that the same prompts have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    follows: u32,
    /// The first one of its tree.
    pub root: u32,
    /// How many blocks it has.
    pub blocks: u32,
    /// How many blocks it and all before it have.
    pub end: u32,
    /// How many stretches it and all before it are.
    pub place: u32,
}

/// The blocks of one prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// The last of its stretches.
    pub end: u32,
    /// Which copy of the trace they are of, or which use of the conversation.
    pub copy: u32,
}

impl Stretch {
    /// The stretch before it.
    #[must_use]
    pub fn follows(&self) -> Option<u32> {
        Some(self.follows).filter(|&follows| follows != NONE)
    }
}

impl Prefixes {
    /// All stretches; each follows one before it, and those of a tree are neighbours.
    #[must_use]
    pub fn stretches(&self) -> &[Stretch] {
        &self.stretches
    }

    /// The blocks of a planned request, or of a template.
    pub(super) fn path(&self, row: usize) -> Option<Path> {
        let &(end, copy) = self.paths.get(row).filter(|path| path.0 != NONE)?;
        Some(Path { end, copy })
    }
}

/// Stretches and paths as they come.
#[derive(Clone, Debug, Default)]
pub(super) struct Collected {
    stretches: Vec<Stretch>,
    paths: Vec<PathRow>,
    broken: bool,
}

impl Collected {
    /// Takes stretches, which must be the next ones.
    pub(super) fn stretches(&mut self, rows: &StretchRows<'_>) {
        self.broken |= rows.first as usize != self.stretches.len();
        for row in rows.iter() {
            let stretch = if self.broken { None } else { self.next(row) };
            match stretch {
                Some(stretch) => self.stretches.push(stretch),
                None => self.broken = true,
            }
        }
    }

    /// Takes paths.
    pub(super) fn paths(&mut self, rows: &PathRows<'_>) {
        self.paths.extend(rows.iter());
    }

    fn next(&self, row: StretchRow) -> Option<Stretch> {
        let number = u32::try_from(self.stretches.len()).ok().filter(|&number| number != NONE)?;
        let StretchRow { follows, blocks } = row;
        let Some(follows) = follows else {
            let stretch = Stretch { follows: NONE, root: number, blocks, end: blocks, place: 1 };
            return (blocks > 0).then_some(stretch);
        };
        let (before, last) = (self.stretches.get(follows as usize)?, self.stretches.last()?);
        let end = before.end.checked_add(blocks)?;
        let (root, place) = (before.root, before.place + 1);
        let neighbours = root == last.root;
        (blocks > 0 && neighbours).then_some(Stretch { follows, root, blocks, end, place })
    }

    /// What there is of a run of so many planned requests or templates. `None`: the log says
    /// nothing, or not all of it can be read.
    pub(super) fn finish(&self, rows: usize) -> Option<Prefixes> {
        if self.broken || self.paths.is_empty() {
            return None;
        }
        let mut paths = vec![(NONE, 0); rows];
        for path in &self.paths {
            let place = paths.get_mut(path.request.as_usize())?;
            if path.end as usize >= self.stretches.len() || place.0 != NONE {
                return None;
            }
            *place = (path.end, path.copy);
        }
        Some(Prefixes { stretches: self.stretches.clone(), paths })
    }
}
