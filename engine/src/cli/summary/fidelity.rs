//! How faithful the replay was, a line for each number.

use onbeat_shared::metrics::fidelity::rows;
use onbeat_shared::metrics::report::Report;

use super::page::Page;

/// Shows the numbers of fidelity; with `verbose` also what each means.
pub(super) fn fidelity(page: &mut Page, report: &Report, verbose: bool) {
    let mut label = "Fidelity";
    for row in rows(&report.fidelity) {
        let words = match (row.recorded.is_empty(), verbose) {
            (true, _) => format!("{} no data ({})", row.name, row.meaning),
            (false, false) => format!(
                "{} error {}: recorded {}; replayed {}",
                row.name, row.error, row.recorded, row.replayed
            ),
            (false, true) => format!(
                "{} error {}: recorded {}; replayed {}; {}",
                row.name, row.error, row.recorded, row.replayed, row.meaning
            ),
        };
        page.entry(label, &words);
        label = "";
    }
}
