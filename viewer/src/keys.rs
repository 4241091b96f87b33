//! The keyboard: one table that the window obeys and the sheet under `?` shows.
//!
//! Keys work whenever no text is being edited. Panels have the keys of the number row besides. A
//! widget that wants some of the keys for itself while it has the focus (a table its arrows, say)
//! declares them in [`LOCAL`], so that they are on the sheet too, and takes them with
//! [`Local::take`].

use eframe::egui::{Context, Id, InputState, Key, Modifiers, Popup};

use crate::tiles::Direction;

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Choose a run to open.
    Open,
    /// The sheet that writes pictures, tables and pages.
    Export,
    /// Put the cursor into the filter.
    Find,
    /// Close the shown run.
    Close,
    /// Show the next open run, or the previous one.
    NextRun(bool),
    /// Show the panel of this number, from zero.
    Panel(usize),
    /// Split the tile with the focus.
    Split(Direction),
    /// Close the tile with the focus.
    CloseTile,
    /// Give the focus to the next tile, or the previous one.
    NextTile(bool),
    /// Make the tile with the focus larger or smaller, by hundredths of the page.
    Resize(Direction, i8),
    /// Show plots as tables, or tables as plots.
    Tables,
    /// Move the view by hundredths of its length.
    Pan(i8),
    /// Zoom in or out.
    Zoom(bool),
    /// Fit the view to the range, then to the run.
    Fit,
    /// Show the whole run.
    Whole,
    /// Move the cursor by thousandths of the view.
    Cursor(i8),
    /// Let the range start at the cursor.
    RangeStart,
    /// Let the range end at the cursor.
    RangeEnd,
    /// Clear one thing: the stroke, the range, the zoom.
    Clear,
    /// Next theme.
    Theme,
    /// The sheet of keys.
    Sheet,
}

/// Keys that belong together on the sheet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Runs and the window.
    Window,
    /// Time: range, view, cursor.
    Time,
    /// Panels side by side.
    Tiles,
}

/// One line of the table.
pub struct Binding {
    /// Where it stands on the sheet.
    pub section: Section,
    /// As written on the sheet.
    pub shown: &'static str,
    /// What it does, in words.
    pub does: &'static str,
    /// Keys and what they ask for.
    keys: &'static [(Modifiers, Key, Action)],
}

const NONE: Modifiers = Modifiers::NONE;
const CTRL: Modifiers = Modifiers::COMMAND;
const SHIFT: Modifiers = Modifiers::SHIFT;
const CTRL_SHIFT: Modifiers = Modifiers::CTRL.plus(Modifiers::SHIFT);

/// Every key but those of the panels.
pub const BINDINGS: &[Binding] = &[
    Binding {
        section: Section::Window,
        shown: "Ctrl+O",
        does: "open a run",
        keys: &[(CTRL, Key::O, Action::Open)],
    },
    Binding {
        section: Section::Window,
        shown: "Ctrl+E",
        does: "export a picture, a table or a page",
        keys: &[(CTRL, Key::E, Action::Export)],
    },
    Binding {
        section: Section::Window,
        shown: "Ctrl+F",
        does: "type which requests count",
        keys: &[(CTRL, Key::F, Action::Find)],
    },
    Binding {
        section: Section::Window,
        shown: "Ctrl+W",
        does: "close this run",
        keys: &[(CTRL, Key::W, Action::Close)],
    },
    Binding {
        section: Section::Window,
        shown: "Ctrl+Tab",
        does: "next run (with Shift: previous)",
        keys: &[
            (Modifiers::CTRL, Key::Tab, Action::NextRun(true)),
            (CTRL_SHIFT, Key::Tab, Action::NextRun(false)),
        ],
    },
    Binding {
        section: Section::Window,
        shown: "T",
        does: "plots as tables, tables as plots",
        keys: &[(NONE, Key::T, Action::Tables)],
    },
    Binding {
        section: Section::Window,
        shown: "D",
        does: "system, light or dark colours",
        keys: &[(NONE, Key::D, Action::Theme)],
    },
    Binding {
        section: Section::Window,
        shown: "?",
        does: "this sheet",
        keys: &[
            (NONE, Key::Questionmark, Action::Sheet),
            (SHIFT, Key::Questionmark, Action::Sheet),
            (SHIFT, Key::Slash, Action::Sheet),
            (NONE, Key::F1, Action::Sheet),
        ],
    },
    Binding {
        section: Section::Time,
        shown: "← and →",
        does: "earlier, later",
        keys: &[(NONE, Key::ArrowLeft, Action::Pan(-10)), (NONE, Key::ArrowRight, Action::Pan(10))],
    },
    Binding {
        section: Section::Time,
        shown: "↑ and ↓",
        does: "zoom in, out (also + and Shift −)",
        keys: &[
            (NONE, Key::ArrowUp, Action::Zoom(true)),
            (NONE, Key::ArrowDown, Action::Zoom(false)),
            (NONE, Key::Plus, Action::Zoom(true)),
            (SHIFT, Key::Plus, Action::Zoom(true)),
            (SHIFT, Key::Minus, Action::Zoom(false)),
        ],
    },
    Binding {
        section: Section::Time,
        shown: "F",
        does: "fit to the range, then to the run",
        keys: &[(NONE, Key::F, Action::Fit)],
    },
    Binding {
        section: Section::Time,
        shown: "Home",
        does: "show the whole run",
        keys: &[(NONE, Key::Home, Action::Whole)],
    },
    Binding {
        section: Section::Time,
        shown: ", and .",
        does: "move the cursor (Shift: farther)",
        keys: &[
            (NONE, Key::Comma, Action::Cursor(-5)),
            (NONE, Key::Period, Action::Cursor(5)),
            (SHIFT, Key::Comma, Action::Cursor(-50)),
            (SHIFT, Key::Period, Action::Cursor(50)),
        ],
    },
    Binding {
        section: Section::Time,
        shown: "[ and ]",
        does: "start, end the range at the cursor",
        keys: &[
            (NONE, Key::OpenBracket, Action::RangeStart),
            (NONE, Key::CloseBracket, Action::RangeEnd),
        ],
    },
    Binding {
        section: Section::Time,
        shown: "Esc",
        does: "clear the range, then the zoom",
        keys: &[(NONE, Key::Escape, Action::Clear)],
    },
    Binding {
        section: Section::Tiles,
        shown: "S",
        does: "split to the right (Shift: below)",
        keys: &[
            (NONE, Key::S, Action::Split(Direction::Columns)),
            (SHIFT, Key::S, Action::Split(Direction::Rows)),
        ],
    },
    Binding {
        section: Section::Tiles,
        shown: "X",
        does: "close this panel's tile",
        keys: &[(NONE, Key::X, Action::CloseTile)],
    },
    Binding {
        section: Section::Tiles,
        shown: "F6",
        does: "next tile (Shift: previous)",
        keys: &[(NONE, Key::F6, Action::NextTile(true)), (SHIFT, Key::F6, Action::NextTile(false))],
    },
    Binding {
        section: Section::Tiles,
        shown: "Shift arrows",
        does: "a narrower, wider, taller, lower tile",
        keys: &[
            (SHIFT, Key::ArrowLeft, Action::Resize(Direction::Columns, -5)),
            (SHIFT, Key::ArrowRight, Action::Resize(Direction::Columns, 5)),
            (SHIFT, Key::ArrowUp, Action::Resize(Direction::Rows, -5)),
            (SHIFT, Key::ArrowDown, Action::Resize(Direction::Rows, 5)),
        ],
    },
];

/// Keys that one widget takes while it has the focus.
pub struct Local {
    /// Where, as a heading of the sheet.
    pub place: &'static str,
    /// Keys as written on the sheet, and what they do.
    pub lines: &'static [(&'static str, &'static str)],
    /// The keys themselves.
    pub keys: &'static [(Modifiers, Key)],
}

/// Keys of the dialog that opens runs.
pub const DIALOG: Local = Local {
    place: "In the dialog under Ctrl+O",
    lines: &[
        ("↑ and ↓", "choose (also Page and Ctrl Home, End)"),
        ("Enter", "open, or go into the folder"),
        ("Ctrl+Space", "mark, to open several"),
        ("Backspace", "one folder up (also Alt ↑)"),
    ],
    keys: &[
        (NONE, Key::ArrowUp),
        (NONE, Key::ArrowDown),
        (NONE, Key::PageUp),
        (NONE, Key::PageDown),
        (CTRL, Key::Home),
        (CTRL, Key::End),
        (NONE, Key::Enter),
        (CTRL, Key::Space),
        (NONE, Key::Backspace),
        (Modifiers::ALT, Key::ArrowUp),
    ],
};

/// A plot that is not over time.
pub const XY_PLOT: Local = Local {
    place: "In a plot that is not over time, once it has the focus",
    lines: &[
        ("← → ↑ ↓", "move"),
        ("+ and −", "zoom in, out"),
        ("F or Home", "show all of it"),
        (", and .", "move its cursor (with Shift: farther)"),
    ],
    keys: &[
        (NONE, Key::ArrowLeft),
        (NONE, Key::ArrowRight),
        (NONE, Key::ArrowUp),
        (NONE, Key::ArrowDown),
        (NONE, Key::Plus),
        (SHIFT, Key::Plus),
        (NONE, Key::Equals),
        (NONE, Key::Minus),
        (NONE, Key::F),
        (NONE, Key::Home),
        (NONE, Key::Comma),
        (NONE, Key::Period),
        (SHIFT, Key::Comma),
        (SHIFT, Key::Period),
    ],
};

/// A line across a plot that can be moved.
pub const RULE: Local = Local {
    place: "On a line that can be moved, once it has the focus",
    lines: &[("← → ↑ ↓", "move it (with Shift: farther)")],
    keys: &[
        (NONE, Key::ArrowUp),
        (NONE, Key::ArrowRight),
        (NONE, Key::ArrowDown),
        (NONE, Key::ArrowLeft),
        (SHIFT, Key::ArrowUp),
        (SHIFT, Key::ArrowRight),
        (SHIFT, Key::ArrowDown),
        (SHIFT, Key::ArrowLeft),
    ],
};

/// The table of requests.
pub const REQUESTS: Local = Local {
    place: "In the table of requests, once it has the focus",
    lines: &[
        ("↑ and ↓", "choose another (also Page ↑ ↓, Home, End)"),
        ("Enter", "show, hide its details"),
        ("N and P", "next, previous of its session"),
    ],
    keys: &[
        (NONE, Key::ArrowUp),
        (NONE, Key::ArrowDown),
        (NONE, Key::PageUp),
        (NONE, Key::PageDown),
        (NONE, Key::Home),
        (NONE, Key::End),
        (NONE, Key::Enter),
        (NONE, Key::N),
        (NONE, Key::P),
    ],
};

/// Any other table whose rows can be gone over.
pub const TABLE: Local = Local {
    place: "In any other table, once it has the focus",
    lines: &[
        ("↑ and ↓", "go over its rows (also Page ↑ ↓, Home, End)"),
        ("Enter", "what a click on the row does"),
    ],
    keys: &[
        (NONE, Key::ArrowUp),
        (NONE, Key::ArrowDown),
        (NONE, Key::PageUp),
        (NONE, Key::PageDown),
        (NONE, Key::Home),
        (NONE, Key::End),
        (NONE, Key::Enter),
    ],
};

/// The timeline takes these wherever the focus is, unless the widget that has it wants them.
pub const TIMELINE: Local = Local {
    place: "In the timeline",
    lines: &[
        ("Page ↑ and ↓", "scroll its lanes (also Alt+wheel)"),
        ("Enter", "on a lane's name: its request at the cursor"),
    ],
    keys: &[(NONE, Key::PageUp), (NONE, Key::PageDown)],
};

/// Every widget that takes keys for itself.
pub const LOCAL: &[&Local] = &[&DIALOG, &XY_PLOT, &RULE, &REQUESTS, &TABLE, &TIMELINE];

/// The widget that wants keys for itself while it has the focus, and which.
#[derive(Clone, Copy)]
struct Claim {
    id: Id,
    keys: &'static [(Modifiers, Key)],
}

impl Local {
    /// While the widget has the focus, takes its keys of this frame: their places in the list, in
    /// that order. To be called in every frame in which the widget is drawn, so that the window
    /// leaves them to it. Those that are not `wanted` right now stay for others.
    pub fn take(&self, ctx: &Context, id: Id, wanted: impl Fn(usize) -> bool) -> Vec<usize> {
        if !ctx.memory(|memory| memory.has_focus(id)) {
            return Vec::new();
        }
        ctx.data_mut(|data| data.insert_temp(claim_id(), Claim { id, keys: self.keys }));
        ctx.input_mut(|input| {
            let keys = self.keys.iter().enumerate();
            keys.filter(|(place, (modifiers, key))| wanted(*place) && took(input, *modifiers, *key))
                .map(|(place, _)| place)
                .collect()
        })
    }
}

/// Whether the widget with the focus wants a key for itself.
pub(crate) fn is_claimed(ctx: &Context, modifiers: Modifiers, key: Key) -> bool {
    claimed(ctx).contains(&(modifiers, key))
}

/// The keys that the widget with the focus wants for itself.
fn claimed(ctx: &Context) -> &'static [(Modifiers, Key)] {
    let focused = ctx.memory(|memory| memory.focused());
    let claim: Option<Claim> = ctx.data(|data| data.get_temp(claim_id()));
    claim.filter(|claim| Some(claim.id) == focused).map_or(&[], |claim| claim.keys)
}

fn claim_id() -> Id {
    Id::unique("claimed keys")
}

/// What the mouse does in time plots, for the sheet.
pub const MOUSE: &[(&str, &str)] = &[
    ("Drag", "choose a range: every number speaks of it"),
    ("Wheel", "zoom in and out"),
    ("Shift+drag", "move (also with the middle button)"),
    ("Double-click", "fit to the range, then to the run"),
    ("Drop a file", "open it"),
];

/// The keys of the panels, as written and as pressed: the number row from 1 to =.
const PANEL_KEYS: [(&str, Modifiers, Key); 13] = [
    ("1", NONE, Key::Num1),
    ("2", NONE, Key::Num2),
    ("3", NONE, Key::Num3),
    ("4", NONE, Key::Num4),
    ("5", NONE, Key::Num5),
    ("6", NONE, Key::Num6),
    ("7", NONE, Key::Num7),
    ("8", NONE, Key::Num8),
    ("9", NONE, Key::Num9),
    ("0", NONE, Key::Num0),
    ("-", NONE, Key::Minus),
    ("=", NONE, Key::Equals),
    // Where = is Shift and another key.
    ("=", SHIFT, Key::Equals),
];

/// The key of the panel at a place; empty beyond the number row.
#[must_use]
pub fn panel_key(place: usize) -> &'static str {
    PANEL_KEYS[..12].get(place).map_or("", |key| key.0)
}

/// What this frame's keys ask for. While text is edited or a menu is open only keys with Ctrl
/// count, and Esc leaves the text alone; what the widget with the focus has claimed is its own.
#[must_use]
pub fn pressed(ctx: &Context) -> Vec<Action> {
    let typing = ctx.text_edit_focused() || Popup::is_any_open(ctx);
    let claimed = claimed(ctx);
    ctx.input_mut(|input| {
        let mut actions = Vec::new();
        let mut take = |modifiers: Modifiers, key, action| {
            let with_ctrl = modifiers.ctrl || modifiers.command;
            let ours = (with_ctrl || !typing) && !claimed.contains(&(modifiers, key));
            if ours && took(input, modifiers, key) {
                actions.push(action);
            }
        };
        for &(modifiers, key, action) in BINDINGS.iter().flat_map(|binding| binding.keys) {
            take(modifiers, key, action);
        }
        for (place, &(_, modifiers, key)) in PANEL_KEYS.iter().enumerate() {
            take(modifiers, key, Action::Panel(place.min(11)));
        }
        actions
    })
}

/// Takes a key press if it was made with exactly these modifiers.
pub(crate) fn took(input: &mut InputState, modifiers: Modifiers, key: Key) -> bool {
    input.modifiers.matches_exact(modifiers) && input.consume_key(modifiers, key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_means_two_things() {
        let all = BINDINGS.iter().flat_map(|binding| binding.keys);
        let all: Vec<_> = all
            .map(|&(modifiers, key, _)| (modifiers, key))
            .chain(PANEL_KEYS.iter().map(|&(_, modifiers, key)| (modifiers, key)))
            .collect();
        for (place, a) in all.iter().enumerate() {
            assert!(!all[place + 1..].contains(a), "{a:?} twice");
        }
        for local in LOCAL {
            for (place, a) in local.keys.iter().enumerate() {
                assert!(!local.keys[place + 1..].contains(a), "{a:?} twice in {}", local.place);
            }
        }
    }

    #[test]
    fn every_panel_has_a_key() {
        for (place, panel) in crate::panels::PANELS.iter().enumerate() {
            assert!(!panel_key(place).is_empty(), "{}", panel.name);
        }
        assert_eq!(panel_key(12), "");
    }
}
