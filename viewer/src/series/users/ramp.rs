//! The ramp's decisions in words, and as signs in a plot.

use egui_plot::PlotPoint;
use onbeat_shared::log::{Assessment, RampReason};

use crate::opened::OpenedRun;
use crate::quantity::{self, counted};
use crate::series::picture::{Shape, Sign, seconds};
use crate::state::TimeRange;
use crate::theme::data_colour;

/// Signs next to each other across a view, at most.
const SIGNS: i64 = 120;

/// What a decision comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    /// Nobody was added, for no bad reason.
    Held,
    /// A limit of the ramp was exceeded.
    Exceeded,
    /// Users were added.
    Added,
}

pub(super) fn verdict(decision: &Assessment) -> Verdict {
    match decision.reason {
        _ if decision.added > 0 => Verdict::Added,
        RampReason::Ttft | RampReason::OutputRate => Verdict::Exceeded,
        _ => Verdict::Held,
    }
}

/// The decisions in a view; of several too close to each other the weightiest.
pub(super) fn in_view(opened: &OpenedRun, view: TimeRange) -> Vec<Assessment> {
    let all = opened.run.users.as_ref().map_or(&[][..], |users| &users.assessments);
    let mut inside: Vec<&Assessment> =
        all.iter().filter(|decision| view.contains(decision.time)).collect();
    inside.sort_by_key(|decision| decision.time);
    let step = (view.span() / SIGNS).max(1);
    inside
        .chunk_by(|a, b| a.time.0.div_euclid(step) == b.time.0.div_euclid(step))
        .filter_map(|near| near.iter().max_by_key(|decision| verdict(decision)))
        .map(|&&decision| decision)
        .collect()
}

/// A sign for each decision, at a height.
pub(super) fn signs(opened: &OpenedRun, decisions: &[Assessment], y: f64) -> Vec<Sign> {
    decisions
        .iter()
        .map(|decision| {
            let (shape, colour) = match verdict(decision) {
                Verdict::Added => (Shape::Up, data_colour::GREEN),
                Verdict::Exceeded => (Shape::Cross, data_colour::VERMILLION),
                Verdict::Held => (Shape::Dot, data_colour::GREY),
            };
            let at = PlotPoint::new(seconds(decision.time), y);
            Sign { at, shape, colour, words: words(opened, decision) }
        })
        .collect()
}

/// The decisions together, for people who do not see the signs.
pub(super) fn summary(decisions: &[Assessment]) -> String {
    let count = |wanted: Verdict| {
        decisions.iter().filter(|decision| verdict(decision) == wanted).count() as u64
    };
    format!(
        "Of {} of the ramp, {} added users and {} found a limit exceeded.",
        counted(decisions.len() as u64, "decision"),
        quantity::count(count(Verdict::Added)),
        quantity::count(count(Verdict::Exceeded)),
    )
}

/// A decision with what it saw.
fn words(opened: &OpenedRun, decision: &Assessment) -> String {
    let facts = opened.run.manifest.users.as_deref();
    let limit = facts.map(|facts| facts.max_ttft_ns).filter(|&limit| limit > 0);
    let ttft = decision.ttft_ns.map_or_else(
        || "no TTFT".to_owned(),
        |ttft| format!("TTFT {}", quantity::measured(ttft as f64)),
    );
    let of = limit.map(|limit| format!(" of {} allowed", quantity::duration(limit as f64)));
    let reason = decision.reason;
    let reason = format!("{}{}", reason.link(decision.added.into()), reason.words());
    let headroom = decision
        .headroom
        .map(|share| format!(", headroom {}", quantity::percent(f64::from(share))));
    format!(
        "Period {} ended: {}\n{}\n{ttft}{}{}\n{} present, {} in flight",
        decision.period,
        match decision.added {
            0 => "no user added".to_owned(),
            some => format!("{} added", counted(some.into(), "user")),
        },
        quantity::sentence(&reason),
        of.unwrap_or_default(),
        headroom.unwrap_or_default(),
        counted(decision.users.into(), "user"),
        counted(decision.in_flight.into(), "request"),
    )
}
