//! What became of gates, under a summary or a comparison.

use std::io::{self, Write};

use onbeat_shared::metrics::gate::Judged;

use super::page::{Page, plural};

/// Writes them, if there are any; `with_run` says which run each is about.
///
/// # Errors
/// If writing fails.
pub(in crate::cli) fn write(
    out: &mut dyn Write,
    judged: &[Judged],
    with_run: bool,
) -> io::Result<()> {
    let mut page = Page::default();
    show(&mut page, judged, with_run);
    out.write_all(page.text.as_bytes())
}

fn show(page: &mut Page, judged: &[Judged], with_run: bool) {
    if judged.is_empty() {
        return;
    }
    page.blank();
    let failed = judged.iter().filter(|one| one.failed).count() as u64;
    let verdict = match failed {
        0 => format!("PASSED: {}", plural(judged.len() as u64, "gate")),
        n => format!("FAILED: {} of {}", n, plural(judged.len() as u64, "gate")),
    };
    page.entry("GATES", &verdict);
    for one in judged {
        let word = if one.failed { "FAIL" } else { "pass" };
        let run = if with_run { format!("{}: ", one.run) } else { String::new() };
        page.entry("", &format!("{word} {run}{} - {}", one.gate, one.words));
    }
}
