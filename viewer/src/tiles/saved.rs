//! Tiles as the settings keep them: panels by their name, so that the list of panels may change.
//!
//! Whatever is read becomes tiles that hold: anyone may have written it.

use serde::{Deserialize, Serialize};

use super::{Direction, MOST, Split, Tile, Tiles, bounded};
use crate::panels::{self, PANELS};

/// Tiles as they are written down: panels by their name, so that the list of panels may change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Saved {
    /// One panel.
    Panel(String),
    /// Two side by side.
    Columns(Box<SavedSplit>),
    /// Two, one above the other.
    Rows(Box<SavedSplit>),
}

/// Two saved sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedSplit {
    /// The first side's share.
    share: f32,
    /// Left or above.
    first: Saved,
    /// Right or below.
    second: Saved,
}

impl Default for Saved {
    fn default() -> Self {
        Self::Panel(PANELS[0].name.to_owned())
    }
}

impl Tiles {
    /// Tiles as they were written down. What names no panel, a panel a second time, or more than
    /// [`MOST`] is left out.
    #[must_use]
    pub fn restored(saved: &Saved) -> Self {
        let mut seen = Vec::new();
        let root = Tile::restored(saved, &mut seen).unwrap_or(Tile::Panel(0));
        Self { root, focus: 0 }
    }

    /// How to write them down. One tile alone is written as the first panel: a run that is opened
    /// anew begins with its verdict.
    #[must_use]
    pub fn saved(&self) -> Saved {
        match &self.root {
            Tile::Panel(_) => Saved::default(),
            root @ Tile::Split(_) => root.saved(),
        }
    }
}

impl Tile {
    fn restored(saved: &Saved, seen: &mut Vec<usize>) -> Option<Self> {
        let (direction, split) = match saved {
            Saved::Panel(name) => {
                let panel = panels::named(name)?;
                if seen.contains(&panel) || seen.len() >= MOST {
                    return None;
                }
                seen.push(panel);
                return Some(Self::Panel(panel));
            }
            Saved::Columns(split) => (Direction::Columns, split),
            Saved::Rows(split) => (Direction::Rows, split),
        };
        let first = Self::restored(&split.first, seen);
        let second = Self::restored(&split.second, seen);
        match (first, second) {
            (Some(first), Some(second)) => {
                let share = bounded(split.share);
                Some(Self::Split(Box::new(Split { direction, share, first, second })))
            }
            (first, second) => first.or(second),
        }
    }

    fn saved(&self) -> Saved {
        match self {
            Self::Panel(panel) => Saved::Panel(PANELS[*panel].name.to_owned()),
            Self::Split(split) => {
                let (first, second) = (split.first.saved(), split.second.saved());
                let sides = Box::new(SavedSplit { share: split.share, first, second });
                match split.direction {
                    Direction::Columns => Saved::Columns(sides),
                    Direction::Rows => Saved::Rows(sides),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_by_anyone_gives_tiles_that_hold() {
        let panel = |name: &str| Saved::Panel(name.to_owned());
        let pair = |first, second| {
            Saved::Columns(Box::new(SavedSplit { share: f32::INFINITY, first, second }))
        };
        let one = Tiles::restored(&pair(panel("Nonsense"), panel("latency")));
        assert_eq!(one.panels().len(), 1);
        let twice = Tiles::restored(&pair(panel("Latency"), panel("Latency")));
        assert_eq!(twice.panels().len(), 1);
        let none = Tiles::restored(&pair(panel(""), panel("?")));
        assert_eq!(none, Tiles::one(0));
        let mut deep = panel("Overview");
        for place in 0..50 {
            let name = PANELS[place % PANELS.len()].name;
            deep = pair(deep, panel(name));
        }
        let panels = Tiles::restored(&deep).panels();
        assert_eq!(panels.len(), MOST.min(PANELS.len()));
    }
}
