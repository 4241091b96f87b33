//! Goals as lines in plots, that can be dragged.

use onbeat_shared::metrics::{
    Metric as Duration,
    goal::{Goal, GoalKind},
};

use crate::series::axes::Direction;
use crate::series::slo::limits;
use crate::state::{Choices, Metric, Origin};
use crate::theme::data_colour;
use crate::widgets::rule::Rule;

/// The goal on what the Latency panel shows.
#[must_use]
pub(in crate::panels) const fn on_latency(metric: Metric, origin: Origin) -> GoalKind {
    GoalKind::AtMost(match (metric, origin) {
        (Metric::Ttft, Origin::Sent) => Duration::Ttft,
        (Metric::Ttft, Origin::Due) => Duration::TtftFromDue,
        (Metric::Itl, _) => Duration::Itl,
        (Metric::EndToEnd, Origin::Sent) => Duration::E2e,
        (Metric::EndToEnd, Origin::Due) => Duration::E2eFromDue,
    })
}

/// The line of the goal of a kind; `None` if there is no such goal.
#[must_use]
pub(in crate::panels) fn of(
    choices: &Choices,
    kind: GoalKind,
    direction: Direction,
) -> Option<Rule> {
    let value = limits::plotted(kind, choices.goals.limit(kind)?);
    let name = format!("{} {}", kind.label(), limits::sign(kind));
    let rule = match direction {
        Direction::Horizontal => Rule::horizontal(name, value, data_colour::PURPLE),
        Direction::Vertical => Rule::vertical(name, value, data_colour::PURPLE),
    };
    Some(rule.draggable())
}

/// Moves the goal to where its line was moved, if it was.
pub(in crate::panels) fn take(choices: &mut Choices, kind: GoalKind, rules: &[Rule]) {
    let Some(rule) = rules.iter().find(|rule| rule.moved) else { return };
    let limit = limits::from_plotted(kind, rule.value);
    if limit > 0.0 && limit.is_finite() {
        choices.goals.set(Goal { kind, limit });
        choices.slo.forget_draft(kind);
    }
}
