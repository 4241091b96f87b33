//! Users by what they do, over time, with the ramp's decisions above them.

use onbeat_shared::{metrics::states::StatesAt, run::Left};

use super::stack::{Change, Stack};
use super::{NO_USERS, ramp};
use crate::opened::OpenedRun;
use crate::series::picture::Picture;
use crate::state::TimeRange;
use crate::theme::data_colour;

/// Height kept above the users for the ramp's decisions, as a share of theirs.
const LANE: f64 = 0.16;

/// The plot for a view.
pub(super) fn picture(opened: &OpenedRun, view: TimeRange) -> Picture {
    let changes = opened.people.changes(opened);
    let left = if is_truncated(opened) { "completed or truncated" } else { "completed" };
    let stack = Stack {
        layers: vec![
            ("active", data_colour::BLUE),
            ("idle", data_colour::GREEN),
            ("rate-limited", data_colour::ORANGE),
            (left, data_colour::GREY),
        ],
        changes: changes.iter().map(heights).collect(),
        unit: "users",
    };
    let mut picture = stack.picture(opened, view, NO_USERS);
    let decisions = ramp::in_view(opened, view);
    if !decisions.is_empty() {
        let highest = picture.bounds.1;
        picture.bounds.1 = highest * (1.0 + LANE);
        picture.signs = ramp::signs(opened, &decisions, highest * (1.0 + LANE / 2.0));
        picture.summary.push(' ');
        picture.summary.push_str(&ramp::summary(&decisions));
    }
    picture
}

/// Whether a user ended at the context limit.
fn is_truncated(opened: &OpenedRun) -> bool {
    let users = opened.run.users.as_ref().map_or(&[][..], |users| &users.users);
    users.iter().any(|user| user.left == Some(Left::Truncated))
}

fn heights(at: &StatesAt) -> Change {
    let states = at.states;
    let [active, idle, limited, left] =
        [states.active, states.idle, states.limited, at.left].map(|count| count as f32);
    (at.time, [active, idle, limited, left, 0.0, 0.0])
}
