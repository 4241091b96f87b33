//! How many users were held back at once, by the limit that did it first.

use onbeat_shared::log::LimitedBy;

use super::stack::{Change, LAYERS, Stack};
use crate::opened::OpenedRun;
use crate::series::picture::Picture;
use crate::state::TimeRange;
use crate::theme::data_colour;

/// Each limit's name and colour, in the order of [`LimitedBy::ALL`].
const LIMITS: [(LimitedBy, &str, usize); LAYERS] = [
    (LimitedBy::Prefill, "prefill limit", data_colour::PURPLE),
    (LimitedBy::Decode, "decode limit", data_colour::GREEN),
    (LimitedBy::Concurrency, "concurrency limit", data_colour::BLUE),
    (LimitedBy::Ttft, "TTFT limit", data_colour::VERMILLION),
    (LimitedBy::InputBudget, "input tokens per minute", data_colour::ORANGE),
    (LimitedBy::OutputBudget, "output tokens per minute", data_colour::GREY),
];

/// A limit in words.
pub(super) fn limit_words(by: LimitedBy) -> &'static str {
    LIMITS.iter().find(|limit| limit.0 == by).map_or("a limit", |limit| limit.1)
}

/// The plot for a view.
pub(super) fn picture(opened: &OpenedRun, view: TimeRange) -> Picture {
    let waits = opened.timeline.waits(opened);
    let occurs = |by: LimitedBy| waits.iter().any(|wait| wait.by == by);
    let there: Vec<_> = LIMITS.into_iter().filter(|limit| occurs(limit.0)).collect();
    let mut steps = Vec::with_capacity(2 * waits.len());
    for wait in waits {
        let Some(layer) = there.iter().position(|limit| limit.0 == wait.by) else { continue };
        steps.push((wait.from, layer, 1.0_f32));
        steps.push((wait.to, layer, -1.0));
    }
    steps.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)));
    let mut changes: Vec<Change> = vec![(opened.whole().start, [0.0; LAYERS])];
    let mut now = [0.0_f32; LAYERS];
    for (time, layer, step) in steps {
        now[layer] += step;
        match changes.last_mut().filter(|last| last.0 >= time) {
            Some(last) => last.1 = now.map(|height| height.max(0.0)),
            None => changes.push((time, now.map(|height| height.max(0.0)))),
        }
    }
    let layers = there.iter().map(|&(_, name, colour)| (name, colour)).collect();
    let stack = Stack { layers, changes, unit: "users" };
    stack.picture(opened, view, "No limit held a user back in this run")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use onbeat_shared::{log::sample_users, run::Run};

    use super::*;

    #[test]
    fn every_limit_has_a_name_and_a_colour_of_its_own() {
        for (place, by) in LimitedBy::ALL.into_iter().enumerate() {
            assert_eq!(LIMITS[place].0, by);
            let others = LIMITS.iter().filter(|limit| limit.2 == LIMITS[place].2);
            assert_eq!(others.count(), 1, "{by:?}");
        }
    }

    /// At any instant as many are held back as waits that hold it.
    #[test]
    fn the_picture_counts_the_waits_that_hold_each_instant() {
        let bytes = sample_users::log(3, 12);
        let run = Run::read(&bytes).expect("a readable log");
        let opened = OpenedRun::new(PathBuf::from("a.beat"), bytes.len() as u64, run);
        let picture = picture(&opened, opened.whole());
        let waits = opened.timeline.waits(&opened);
        assert!(!waits.is_empty());
        for wait in waits {
            for line in &picture.lines {
                let right = waits.iter().filter(|other| {
                    limit_words(other.by) == line.name
                        && other.from <= wait.from
                        && wait.from < other.to
                });
                let found = line.readout.at(wait.from).expect("known");
                assert_eq!(found, right.count() as f64, "{} at {:?}", line.name, wait.from);
            }
        }
    }
}
