//! The keyboard: one table that the window obeys and the sheet under `?` shows.
//!
//! Keys work whenever no text is being edited. Panels have the number keys besides.

use eframe::egui::{Context, InputState, Key, Modifiers};

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Put the cursor into the path field.
    Open,
    /// Close the shown run.
    Close,
    /// Show the next open run.
    NextRun,
    /// Show the panel of this number, from zero.
    Panel(usize),
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

/// One line of the table.
pub struct Binding {
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

/// Every key but the panels' numbers.
pub const BINDINGS: &[Binding] = &[
    Binding {
        shown: "Ctrl+O",
        does: "type the path of a run to open",
        keys: &[(CTRL, Key::O, Action::Open)],
    },
    Binding { shown: "Ctrl+W", does: "close this run", keys: &[(CTRL, Key::W, Action::Close)] },
    Binding {
        shown: "Ctrl+Tab",
        does: "next open run",
        keys: &[(Modifiers::CTRL, Key::Tab, Action::NextRun)],
    },
    Binding {
        shown: "← and →",
        does: "earlier, later",
        keys: &[(NONE, Key::ArrowLeft, Action::Pan(-10)), (NONE, Key::ArrowRight, Action::Pan(10))],
    },
    Binding {
        shown: "+ and −",
        does: "zoom in, out (also ↑ and ↓)",
        keys: &[
            (NONE, Key::Plus, Action::Zoom(true)),
            (SHIFT, Key::Plus, Action::Zoom(true)),
            (NONE, Key::Equals, Action::Zoom(true)),
            (NONE, Key::Minus, Action::Zoom(false)),
            (NONE, Key::ArrowUp, Action::Zoom(true)),
            (NONE, Key::ArrowDown, Action::Zoom(false)),
        ],
    },
    Binding {
        shown: "F",
        does: "fit to the range, then to the whole run",
        keys: &[(NONE, Key::F, Action::Fit)],
    },
    Binding {
        shown: "Home",
        does: "show the whole run",
        keys: &[(NONE, Key::Home, Action::Whole)],
    },
    Binding {
        shown: ", and .",
        does: "move the cursor (with Shift: farther)",
        keys: &[
            (NONE, Key::Comma, Action::Cursor(-5)),
            (NONE, Key::Period, Action::Cursor(5)),
            (SHIFT, Key::Comma, Action::Cursor(-50)),
            (SHIFT, Key::Period, Action::Cursor(50)),
        ],
    },
    Binding {
        shown: "[ and ]",
        does: "start, end the range at the cursor",
        keys: &[
            (NONE, Key::OpenBracket, Action::RangeStart),
            (NONE, Key::CloseBracket, Action::RangeEnd),
        ],
    },
    Binding {
        shown: "Esc",
        does: "clear the range, then the zoom",
        keys: &[(NONE, Key::Escape, Action::Clear)],
    },
    Binding {
        shown: "T",
        does: "plots as tables, tables as plots",
        keys: &[(NONE, Key::T, Action::Tables)],
    },
    Binding {
        shown: "D",
        does: "system, light or dark colours",
        keys: &[(NONE, Key::D, Action::Theme)],
    },
    Binding {
        shown: "?",
        does: "this sheet",
        keys: &[
            (NONE, Key::Questionmark, Action::Sheet),
            (SHIFT, Key::Questionmark, Action::Sheet),
            (SHIFT, Key::Slash, Action::Sheet),
            (NONE, Key::F1, Action::Sheet),
        ],
    },
];

/// What the mouse does in time plots, for the sheet.
pub const MOUSE: &[(&str, &str)] = &[
    ("Drag", "choose a range: every number speaks of it"),
    ("Wheel", "zoom in and out"),
    ("Shift+drag", "move (also with the middle button)"),
    ("Double-click", "fit to the range, then to the whole run"),
    ("Drop a file", "open it"),
];

const DIGITS: [Key; 9] = [
    Key::Num1,
    Key::Num2,
    Key::Num3,
    Key::Num4,
    Key::Num5,
    Key::Num6,
    Key::Num7,
    Key::Num8,
    Key::Num9,
];

/// What this frame's keys ask for. While text is edited only keys with Ctrl count, and Esc leaves
/// the text alone.
#[must_use]
pub fn pressed(ctx: &Context) -> Vec<Action> {
    let typing = ctx.text_edit_focused();
    ctx.input_mut(|input| {
        let mut actions = Vec::new();
        for binding in BINDINGS {
            for &(modifiers, key, action) in binding.keys {
                let with_ctrl = modifiers.ctrl || modifiers.command;
                if (with_ctrl || !typing) && took(input, modifiers, key) {
                    actions.push(action);
                }
            }
        }
        if !typing {
            let panels = DIGITS.into_iter().enumerate();
            actions.extend(
                panels
                    .filter(|&(_, key)| took(input, NONE, key))
                    .map(|(place, _)| Action::Panel(place)),
            );
        }
        actions
    })
}

/// Takes a key press if it was made with exactly these modifiers.
fn took(input: &mut InputState, modifiers: Modifiers, key: Key) -> bool {
    input.modifiers.matches_exact(modifiers) && input.consume_key(modifiers, key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_means_two_things() {
        let all: Vec<_> = BINDINGS.iter().flat_map(|binding| binding.keys).collect();
        for (place, a) in all.iter().enumerate() {
            for b in &all[place + 1..] {
                assert!(a.0 != b.0 || a.1 != b.1, "{:?} twice", a.1);
            }
            assert!(!DIGITS.contains(&a.1), "{:?} belongs to the panels", a.1);
        }
    }
}
