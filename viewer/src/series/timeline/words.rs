//! What the timeline says of one request: under the pointer, and as a row of its table.

use onbeat_shared::{
    log::Outcome,
    metrics::{attribution, latency::Metric, lateness, tokens},
    run::Run,
    units::RunNanos,
};

use crate::fate::{Fate, end_words};
use crate::opened::OpenedRun;
use crate::quantity::{self, NO_DATA};
use crate::widgets::grid::GridColumn;

/// Instants are written as finely as a stretch of this length (ns) needs: to the tenth of a
/// millisecond.
const FINE: f64 = 1e8;

const fn number(heading: &'static str, width: f32, about: &'static str) -> GridColumn {
    GridColumn { heading, about, width, is_text: false }
}

const fn text(heading: &'static str, width: f32, about: &'static str) -> GridColumn {
    GridColumn { heading, about, width, is_text: true }
}

/// The columns of the table.
pub const COLUMNS: [GridColumn; 9] = [
    text("Lane", 150.0, "Its session or user"),
    number("No.", 76.0, "Its place in the plan"),
    number("Due", 92.0, "When the schedule wanted it to leave"),
    number("Sent", 92.0, "When it left"),
    number("First token", 92.0, "First token − sent"),
    number("Decode", 92.0, "Last token − first token"),
    number("Tokens out", 84.0, "Completion tokens"),
    number("Ended", 92.0, "When the exchange ended"),
    text("How", 150.0, "How it ended"),
];

fn instant(time: Option<RunNanos>) -> Option<String> {
    time.map(|time| quantity::instant(time.0 as f64, FINE))
}

/// One cell of a request's row.
#[must_use]
pub fn cell(opened: &OpenedRun, i: usize, column: usize) -> Option<String> {
    let run = &opened.run;
    let requests = &run.requests;
    let measured = |metric: Metric| metric.value_ns(run, i).map(quantity::measured);
    match column {
        0 => run.session_name(i).map(str::to_owned),
        1 => Some(quantity::count(i as u64)),
        2 => instant(requests.due(i)),
        3 => instant(requests.sent(i)),
        4 => measured(Metric::Ttft),
        5 => measured(Metric::Decode),
        6 => tokens::completion(run, i).map(quantity::count),
        7 => instant(requests.done(i)),
        _ => Some(end_words(run, i).to_owned()),
    }
}

/// What is said of a request under the pointer.
#[must_use]
pub fn describe(opened: &OpenedRun, i: usize) -> String {
    let run = &opened.run;
    let session = run.session_name(i).unwrap_or("a session without a name");
    let mut lines = vec![format!("{session}, turn {}: request {i}", run.plan[i].turn)];
    lines.push(times(run, i));
    if run.requests.was_sent(i) {
        lines.push(phases(run, i));
        lines.push(amounts(run, i));
    }
    if Fate::of(run, i) != Fate::Ok {
        lines.push(ending(run, i));
    }
    lines.join("\n")
}

fn times(run: &Run, i: usize) -> String {
    let requests = &run.requests;
    let due = instant(requests.due(i)).map(|due| format!("due {due}"));
    let Some(sent) = instant(requests.sent(i)) else {
        return due.unwrap_or_else(|| NO_DATA.to_owned());
    };
    let late = lateness::lateness_ns(run, i)
        .filter(|&late| late > 0)
        .map(|late| format!(", {} late", quantity::duration(late as f64)));
    let held = attribution::queue_ns(run, i)
        .filter(|&held| held > 0 && run.users.is_some())
        .map(|held| format!(", held back for {}", quantity::duration(held as f64)));
    format!(
        "{}sent {sent}{}{}",
        due.map(|due| format!("{due}, ")).unwrap_or_default(),
        held.unwrap_or_default(),
        late.unwrap_or_default()
    )
}

fn phases(run: &Run, i: usize) -> String {
    let measured = |metric: Metric| metric.value_ns(run, i).map(quantity::measured);
    let mut parts = Vec::new();
    match measured(Metric::Ttft) {
        Some(ttft) => parts.push(format!("first token after {ttft}")),
        None if run.requests.is_ok(i) => parts.push("an answer in one piece".to_owned()),
        None => parts.push("no token".to_owned()),
    }
    parts.extend(measured(Metric::Decode).map(|decode| format!("decoding for {decode}")));
    parts.extend(instant(run.requests.done(i)).map(|end| format!("ended {end}")));
    parts.join(", ")
}

fn amounts(run: &Run, i: usize) -> String {
    let count = |count: Option<u64>| count.map_or_else(|| NO_DATA.to_owned(), quantity::count);
    let cached = run.requests.cached_tokens(i);
    let cached = cached.map(|cached| format!(" ({} cached)", quantity::count(cached.into())));
    format!(
        "input {} tokens{}, output {}",
        count(tokens::prompt(run, i)),
        cached.unwrap_or_default(),
        count(tokens::completion(run, i))
    )
}

fn ending(run: &Run, i: usize) -> String {
    let status = run.requests.status(i).filter(|status| !(200..300).contains(status));
    let class = run.requests.class(i).filter(|class| class.outcome() != Outcome::NeverSent);
    let cause = class.map(|class| format!(", {}", class.name().replace('_', " ")));
    let status = status.map(|status| format!(", status {status}"));
    let text = run.error_text(i).map(|text| format!(": {}", onbeat_shared::foreign::shown(text)));
    format!(
        "{}{}{}{}",
        quantity::sentence(end_words(run, i)).trim_end_matches('.'),
        cause.unwrap_or_default(),
        status.unwrap_or_default(),
        text.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use onbeat_shared::log::{sample, sample_users};

    use super::*;

    #[test]
    fn every_request_can_be_told_of() {
        for bytes in [sample::log(7, 300), sample_users::log(3, 12)] {
            let run = Run::read(&bytes).expect("a readable log");
            let opened = OpenedRun::new(PathBuf::from("a.beat"), bytes.len() as u64, run);
            for i in 0..opened.run.requests.len() {
                let words = describe(&opened, i);
                assert!(words.contains(&format!("request {i}\n")), "{words}");
                let late = words.contains(" late");
                let lateness = lateness::lateness_ns(&opened.run, i);
                assert_eq!(late, lateness.is_some_and(|late| late > 0), "{words}");
                for column in 0..COLUMNS.len() {
                    assert_ne!(
                        cell(&opened, i, column),
                        Some(String::new()),
                        "{i}, column {column}"
                    );
                }
                let failed = Fate::of(&opened.run, i) == Fate::Failed;
                let class = opened.run.requests.class(i).map_or("", |class| class.name());
                assert!(!failed || words.contains(&class.replace('_', " ")), "{words}");
            }
        }
    }
}
