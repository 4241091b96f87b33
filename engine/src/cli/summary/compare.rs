//! A comparison as text: what was run differently, what moved, and the figures with their
//! intervals.

use std::io::{self, Write};

use onbeat_shared::metrics::compare::{
    Against, CAUTION, Compared, Comparison, Differs, Side, without_interval,
};
use onbeat_shared::metrics::gate::percent;

use super::page::{Page, group};

/// Characters of a value of the setup that are shown.
const SETUP_CHARS: usize = 60;

/// Writes a comparison without its gates; with `verbose` every figure.
///
/// # Errors
/// If writing fails.
pub(in crate::cli) fn write(
    out: &mut dyn Write,
    comparison: &Comparison,
    verbose: bool,
) -> io::Result<()> {
    let mut page = Page::default();
    side(&mut page, "BASE", &comparison.base);
    for against in &comparison.runs {
        page.blank();
        side(&mut page, "NEW", &against.run);
        run(&mut page, against, verbose);
    }
    page.blank();
    page.paragraph(CAUTION);
    out.write_all(page.text.as_bytes())
}

fn side(page: &mut Page, label: &str, side: &Side) {
    let Side { name, id, trace, sent, ok, .. } = side;
    let (sent, ok) = (group(*sent), group(*ok));
    page.entry(label, &format!("{name}: run {id} of {trace}, {sent} sent, {ok} ok"));
    let left_out = side.left_out.words(side.schedule_held);
    if !side.schedule_held {
        page.entry(
            "",
            &format!(
                "its schedule did NOT hold{left_out}; its numbers are not those of the schedule:"
            ),
        );
    } else if !left_out.is_empty() {
        page.entry("", &format!("its schedule held{left_out}"));
    }
    for reason in &side.reasons {
        page.entry("", &format!("- {reason}"));
    }
    for words in &side.warnings {
        page.entry("Warning", words);
    }
}

fn run(page: &mut Page, against: &Against, verbose: bool) {
    let pairing = &against.pairing;
    let how = if pairing.paired { "paired by request" } else { "NOT paired" };
    page.entry("Requests", &format!("{how}: {}", pairing.why));
    for words in &against.warnings {
        page.entry("Warning", words);
    }
    let mut label = "Differently";
    for Differs { what, base, new } in &against.setup {
        page.entry(label, &format!("{what}: {} -> {}", cut(base), cut(new)));
        label = "";
    }
    page.blank();
    page.line(&format!(
        "{:<28}{:>10}{:>10}{:>11}{:>8}{:>25}",
        "", "base", "new", "change", "ratio", "95 % interval of change"
    ));
    for row in against.figures.iter().filter(|row| verbose || row.is_main) {
        figure(page, row);
    }
    let mut label = "No interval";
    let rows = against.figures.iter().filter(|row| verbose || row.is_main);
    for (labels, why) in without_interval(rows) {
        page.entry(label, &format!("of {labels}: {why}"));
        label = "";
    }
    page.blank();
    let is_main = |name: &str| {
        let named = |row: &Compared| row.is_main && row.name.starts_with(&format!("{name}."));
        verbose || against.figures.iter().any(named)
    };
    let mut label = "Ranks";
    for moved in against.moved.iter().filter(|moved| is_main(moved.name)) {
        let test = &moved.test;
        let p = if test.p_value < 1e-4 {
            "p < 0.0001".to_owned()
        } else {
            format!("p = {:.4}", test.p_value)
        };
        let how = test.test.replace('_', " ");
        let share = percent(test.larger_share);
        page.entry(
            label,
            &format!("{}: new is larger in {share} of pairs, {p} ({how})", { &moved.label }),
        );
        label = "";
    }
}

/// A value of the setup, or that there is none.
fn cut(value: &str) -> String {
    match value.chars().count() {
        0 => "(none)".to_owned(),
        count if count > SETUP_CHARS => {
            value.chars().take(SETUP_CHARS).chain("...".chars()).collect()
        }
        _ => value.to_owned(),
    }
}

fn figure(page: &mut Page, row: &Compared) {
    let none = || "no data".to_owned();
    let value = |value: Option<f64>| value.map_or_else(none, |value| row.shown(value));
    let change = row.difference.map_or_else(none, |by| row.change(by));
    let ratio = row.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}"));
    let interval = row.interval().unwrap_or_else(|| "-".to_owned());
    page.line(&format!(
        "{:<28}{:>10}{:>10}{change:>11}{ratio:>8}{interval:>25} {}",
        row.label,
        value(row.base),
        value(row.new),
        row.verdict.word(row.difference_interval)
    ));
}
