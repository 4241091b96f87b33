//! Which panels are seen at once, and where: a page is one tile, or is split into two that may be
//! split again.
//!
//! Pure: each wish (split, close, show, resize) changes plain values, and places come from a
//! rectangle alone. A panel is in one tile at most, so showing it in another exchanges the two. One
//! tile has the focus: keys and the list of panels speak of it. How a tile looks is
//! [`crate::page`]'s business.

mod saved;

use eframe::egui::{Rect, pos2};

use crate::panels::PANELS;

pub use saved::Saved;

/// Tiles at once: more would be too small to read.
pub const MOST: usize = 4;
/// Between two tiles (points): room to take hold of the border.
pub const GAP: f32 = 12.0;
/// The smallest tile in which a panel is of use (points).
const SMALLEST: (f32, f32) = (300.0, 200.0);
/// How small a share of a split one side may have.
const SHARE_MIN: f32 = 0.2;

/// How a place is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Side by side.
    Columns,
    /// One above the other.
    Rows,
}

/// A ready-made arrangement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrangement {
    /// One panel.
    One,
    /// Two side by side.
    Columns,
    /// Two, one above the other.
    Rows,
    /// Two above two.
    Four,
}

#[derive(Clone, Debug, PartialEq)]
enum Tile {
    Panel(usize),
    Split(Box<Split>),
}

#[derive(Clone, Debug, PartialEq)]
struct Split {
    direction: Direction,
    /// The first side's share.
    share: f32,
    first: Tile,
    second: Tile,
}

/// The tiles of the page.
#[derive(Clone, Debug, PartialEq)]
pub struct Tiles {
    root: Tile,
    /// Which tile has the focus, in reading order.
    focus: usize,
}

/// A tile with its place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placed {
    /// The panel in it.
    pub panel: usize,
    /// Its place.
    pub rect: Rect,
}

/// A border that can be moved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Border {
    /// Which split it belongs to, in reading order.
    pub split: usize,
    /// How that is split.
    pub direction: Direction,
    /// The border's own place.
    pub rect: Rect,
    /// What is split.
    pub whole: Rect,
}

impl Tiles {
    /// One tile.
    #[must_use]
    pub fn one(panel: usize) -> Self {
        Self { root: Tile::Panel(panel.min(PANELS.len() - 1)), focus: 0 }
    }

    /// The panels, in reading order.
    #[must_use]
    pub fn panels(&self) -> Vec<usize> {
        let mut panels = Vec::with_capacity(MOST);
        self.root.collect(&mut panels);
        panels
    }

    /// How many tiles there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.root.leaves()
    }

    /// Never: there is always one.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// The place of the tile with the focus, in reading order.
    #[must_use]
    pub const fn focus(&self) -> usize {
        self.focus
    }

    /// The panel with the focus.
    #[must_use]
    pub fn panel(&self) -> usize {
        self.panels().get(self.focus).copied().unwrap_or(0)
    }

    /// Gives the focus to a tile.
    pub fn focus_on(&mut self, tile: usize) {
        self.focus = tile.min(self.len() - 1);
    }

    /// Gives the focus to the next tile, or the previous one.
    pub fn focus_next(&mut self, forward: bool) {
        let count = self.len();
        self.focus = (self.focus + if forward { 1 } else { count - 1 }) % count;
    }

    /// Shows a panel: where it is already, else in the tile with the focus.
    pub fn show(&mut self, panel: usize) {
        if panel >= PANELS.len() {
            return;
        }
        match self.panels().iter().position(|&shown| shown == panel) {
            Some(tile) => self.focus = tile,
            None => self.put(self.focus, panel),
        }
    }

    /// Shows a panel in this tile; if it is in another one, the two are exchanged.
    pub fn show_in(&mut self, tile: usize, panel: usize) {
        let panels = self.panels();
        let Some(&before) = panels.get(tile).filter(|_| panel < PANELS.len()) else { return };
        if let Some(other) = panels.iter().position(|&shown| shown == panel) {
            self.put(other, before);
        }
        self.put(tile, panel);
        self.focus = tile;
    }

    /// Splits the tile with the focus; the new one shows the next panel that is not seen yet and
    /// gets the focus. Says whether there was room for one more.
    pub fn split(&mut self, direction: Direction) -> bool {
        let panels = self.panels();
        let Some(next) = unseen(&panels, self.panel()) else { return false };
        if panels.len() >= MOST {
            return false;
        }
        let mut left = self.focus;
        if let Some(tile) = self.root.leaf_mut(&mut left) {
            let first = tile.clone();
            let second = Tile::Panel(next);
            *tile = Tile::Split(Box::new(Split { direction, share: 0.5, first, second }));
            self.focus += 1;
        }
        true
    }

    /// Closes a tile; its neighbour takes its place. The last one stays.
    pub fn close(&mut self, tile: usize) {
        let count = self.len();
        if count < 2 || tile >= count {
            return;
        }
        let mut left = tile;
        self.root.remove(&mut left);
        if self.focus > tile || self.focus >= self.len() {
            self.focus = self.focus.saturating_sub(1);
        }
    }

    /// Arranges the tiles anew: the panels that are seen stay, others join them.
    pub fn arrange(&mut self, arrangement: Arrangement) {
        let mut panels = self.panels();
        // The one with the focus is the one that matters.
        let focused = panels.remove(self.focus.min(panels.len() - 1));
        panels.insert(0, focused);
        while panels.len() < MOST {
            match unseen(&panels, focused) {
                Some(next) => panels.push(next),
                None => return,
            }
        }
        let leaf = |place: usize| Tile::Panel(panels[place]);
        let pair = |direction, first, second| {
            Tile::Split(Box::new(Split { direction, share: 0.5, first, second }))
        };
        self.root = match arrangement {
            Arrangement::One => leaf(0),
            Arrangement::Columns => pair(Direction::Columns, leaf(0), leaf(1)),
            Arrangement::Rows => pair(Direction::Rows, leaf(0), leaf(1)),
            Arrangement::Four => pair(
                Direction::Rows,
                pair(Direction::Columns, leaf(0), leaf(1)),
                pair(Direction::Columns, leaf(2), leaf(3)),
            ),
        };
        self.focus = 0;
    }

    /// Makes the tile with the focus wider or narrower, taller or lower, by `more` of what it
    /// shares with its neighbour.
    pub fn resize(&mut self, direction: Direction, more: f32) {
        let mut left = self.focus;
        self.root.resize(&mut left, direction, more);
    }

    /// Puts the border of a split where `share` of it is on its first side.
    pub fn set_share(&mut self, split: usize, share: f32) {
        let mut left = split;
        if let Some(split) = self.root.split_mut(&mut left) {
            split.share = bounded(share);
        }
    }

    /// Whether every tile is large enough in this place to be of use.
    #[must_use]
    pub fn fit(&self, area: Rect) -> bool {
        let (tiles, _) = self.places(area);
        let fits =
            |tile: &Placed| tile.rect.width() >= SMALLEST.0 && tile.rect.height() >= SMALLEST.1;
        tiles.len() == 1 || tiles.iter().all(fits)
    }

    /// Where each tile is, in reading order, and the borders between them.
    #[must_use]
    pub fn places(&self, area: Rect) -> (Vec<Placed>, Vec<Border>) {
        let (mut tiles, mut borders) = (Vec::with_capacity(MOST), Vec::with_capacity(MOST - 1));
        self.root.place(area, &mut tiles, &mut borders);
        (tiles, borders)
    }

    fn put(&mut self, tile: usize, panel: usize) {
        let mut left = tile;
        if let Some(tile) = self.root.leaf_mut(&mut left) {
            *tile = Tile::Panel(panel);
        }
    }
}

impl Tile {
    fn leaves(&self) -> usize {
        match self {
            Self::Panel(_) => 1,
            Self::Split(split) => split.first.leaves() + split.second.leaves(),
        }
    }

    fn collect(&self, panels: &mut Vec<usize>) {
        match self {
            Self::Panel(panel) => panels.push(*panel),
            Self::Split(split) => {
                split.first.collect(panels);
                split.second.collect(panels);
            }
        }
    }

    /// The leaf that `left` others come before.
    fn leaf_mut(&mut self, left: &mut usize) -> Option<&mut Self> {
        match self {
            Self::Panel(_) if *left == 0 => Some(self),
            Self::Panel(_) => {
                *left -= 1;
                None
            }
            Self::Split(split) => {
                let Split { first, second, .. } = &mut **split;
                first.leaf_mut(left).or_else(|| second.leaf_mut(left))
            }
        }
    }

    /// The split that `left` others come before.
    fn split_mut(&mut self, left: &mut usize) -> Option<&mut Split> {
        let Self::Split(split) = self else { return None };
        if *left == 0 {
            return Some(split);
        }
        *left -= 1;
        let Split { first, second, .. } = &mut **split;
        first.split_mut(left).or_else(|| second.split_mut(left))
    }

    /// Takes out the leaf that `left` others come before. Not for a leaf itself.
    fn remove(&mut self, left: &mut usize) {
        let Self::Split(split) = self else { return };
        let Split { first, second, .. } = &mut **split;
        let in_first = first.leaves();
        let (side, other) = if *left < in_first {
            (first, second)
        } else {
            *left -= in_first;
            (second, first)
        };
        if matches!(side, Self::Panel(_)) {
            *self = other.clone();
        } else {
            side.remove(left);
        }
    }

    /// Resizes the innermost split of this direction around a leaf. Says whether there was one.
    fn resize(&mut self, left: &mut usize, direction: Direction, more: f32) -> bool {
        let Self::Split(split) = self else { return false };
        let in_first = split.first.leaves();
        let on_first = *left < in_first;
        if !on_first {
            *left -= in_first;
        }
        let side = if on_first { &mut split.first } else { &mut split.second };
        if side.resize(left, direction, more) {
            return true;
        }
        if split.direction != direction {
            return false;
        }
        split.share = bounded(split.share + if on_first { more } else { -more });
        true
    }

    fn place(&self, area: Rect, tiles: &mut Vec<Placed>, borders: &mut Vec<Border>) {
        let split = match self {
            Self::Panel(panel) => return tiles.push(Placed { panel: *panel, rect: area }),
            Self::Split(split) => split,
        };
        let (first, border, second) = parts(area, split.direction, split.share);
        let number = borders.len();
        let direction = split.direction;
        borders.push(Border { split: number, direction, rect: border, whole: area });
        split.first.place(first, tiles, borders);
        split.second.place(second, tiles, borders);
    }
}

/// The first side, the gap and the second side of a place.
fn parts(area: Rect, direction: Direction, share: f32) -> (Rect, Rect, Rect) {
    let cut = |from: f32, length: f32| {
        let room = (length - GAP).max(0.0);
        let first = from + (room * share).round();
        (first, (first + GAP).min(from + length))
    };
    match direction {
        Direction::Columns => {
            let (a, b) = cut(area.left(), area.width());
            (
                Rect::from_min_max(area.min, pos2(a, area.bottom())),
                Rect::from_min_max(pos2(a, area.top()), pos2(b, area.bottom())),
                Rect::from_min_max(pos2(b, area.top()), area.max),
            )
        }
        Direction::Rows => {
            let (a, b) = cut(area.top(), area.height());
            (
                Rect::from_min_max(area.min, pos2(area.right(), a)),
                Rect::from_min_max(pos2(area.left(), a), pos2(area.right(), b)),
                Rect::from_min_max(pos2(area.left(), b), area.max),
            )
        }
    }
}

/// The next panel after this one that is not seen, beginning anew at the end.
fn unseen(seen: &[usize], after: usize) -> Option<usize> {
    let count = PANELS.len();
    (1..count).map(|step| (after + step) % count).find(|panel| !seen.contains(panel))
}

fn bounded(share: f32) -> f32 {
    if share.is_finite() { share.clamp(SHARE_MIN, 1.0 - SHARE_MIN) } else { 0.5 }
}

#[cfg(test)]
mod tests {
    use eframe::egui::vec2;

    use super::*;

    fn area() -> Rect {
        Rect::from_min_size(pos2(100.0, 50.0), vec2(1_100.0, 700.0))
    }

    /// Every rule that holds of any tiles.
    fn check(tiles: &Tiles) {
        let panels = tiles.panels();
        assert!((1..=MOST).contains(&panels.len()), "{panels:?}");
        assert!(tiles.focus() < panels.len());
        let mut once = panels.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), panels.len(), "a panel is in one tile at most: {panels:?}");
        let (places, borders) = tiles.places(area());
        assert_eq!(places.iter().map(|tile| tile.panel).collect::<Vec<_>>(), panels);
        assert_eq!(borders.len() + 1, places.len());
        let covered: f32 = places
            .iter()
            .map(|tile| tile.rect)
            .chain(borders.iter().map(|border| border.rect))
            .map(|rect| rect.area())
            .sum();
        assert!((covered - area().area()).abs() < 1.0, "tiles and borders fill the page");
        assert_eq!(
            borders.iter().map(|border| border.split).collect::<Vec<_>>(),
            (0..borders.len()).collect::<Vec<_>>()
        );
        if panels.len() > 1 {
            let again = Tiles::restored(&tiles.saved());
            assert_eq!(again.root, tiles.root, "what is written is read again");
        }
    }

    #[test]
    fn a_page_is_split_and_closed_again() {
        let mut tiles = Tiles::one(0);
        assert!(tiles.split(Direction::Columns));
        assert_eq!((tiles.len(), tiles.focus()), (2, 1));
        let new = tiles.panel();
        assert_ne!(new, 0);
        tiles.close(0);
        assert_eq!((tiles.panels(), tiles.focus()), (vec![new], 0));
        tiles.close(0);
        assert_eq!(tiles.len(), 1, "the last one stays");
    }

    #[test]
    fn showing_goes_to_the_panel_and_choosing_in_a_tile_exchanges() {
        let mut tiles = Tiles::one(0);
        tiles.split(Direction::Columns);
        let second = tiles.panel();
        tiles.show(0);
        assert_eq!(tiles.focus(), 0);
        tiles.show_in(0, second);
        assert_eq!((tiles.panels(), tiles.focus()), (vec![second, 0], 0));
        tiles.show(usize::MAX);
        tiles.show_in(7, 0);
        tiles.show_in(0, usize::MAX);
        assert_eq!(tiles.panels(), [second, 0]);
    }

    #[test]
    fn borders_move_within_bounds() {
        let mut tiles = Tiles::one(0);
        tiles.split(Direction::Columns);
        let width = |tiles: &Tiles, tile: usize| tiles.places(area()).0[tile].rect.width();
        let before = width(&tiles, 1);
        tiles.resize(Direction::Columns, 0.1);
        assert!(width(&tiles, 1) > before, "the second tile has the focus and grew");
        tiles.resize(Direction::Rows, 0.1);
        tiles.set_share(0, 99.0);
        assert!(width(&tiles, 1) > 100.0);
        tiles.set_share(0, f32::NAN);
        assert!((width(&tiles, 0) - width(&tiles, 1)).abs() < 2.0);
        tiles.set_share(5, 0.3);
        check(&tiles);
    }

    #[test]
    fn small_windows_are_known() {
        let mut tiles = Tiles::one(0);
        let small = Rect::from_min_size(pos2(0.0, 0.0), vec2(320.0, 240.0));
        assert!(tiles.fit(small), "one tile has what there is");
        tiles.split(Direction::Columns);
        assert!(tiles.fit(area()) && !tiles.fit(small));
    }

    /// A thousand random wishes break no rule.
    #[test]
    fn any_wishes_leave_tiles_that_hold() {
        let mut tiles = Tiles::one(0);
        let mut state = 0x9E37_79B9_u32;
        let mut next = |below: usize| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state as usize % below
        };
        for _ in 0..1_000 {
            match next(8) {
                0 => drop(tiles.split(Direction::Columns)),
                1 => drop(tiles.split(Direction::Rows)),
                2 => tiles.close(next(5)),
                3 => tiles.show(next(14)),
                4 => tiles.show_in(next(5), next(14)),
                5 => tiles.focus_next(next(2) == 0),
                6 => tiles.resize(Direction::Columns, next(9) as f32 / 10.0 - 0.4),
                _ => tiles.arrange(
                    [Arrangement::One, Arrangement::Columns, Arrangement::Rows, Arrangement::Four]
                        [next(4)],
                ),
            }
            check(&tiles);
        }
    }
}
