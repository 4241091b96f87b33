//! `--screenshot`: pictures of the window as PNG files, made without a window.
//!
//! The same app is drawn on a screen that nobody sees ([`crate::headless`]), so a picture needs no
//! display server and is the same on every machine. It is taken once every run is open and every
//! question answered. A run that cannot be shown still gets its picture, which says why; the
//! command then fails, so that a script notices.

use std::path::{Path, PathBuf};

use eframe::egui::vec2;

use crate::app::{Start, ViewerApp};
use crate::arguments::{Arguments, PanelChoice};
use crate::headless::{self, Headless};
use crate::output::{file, png};
use crate::panels::PANELS;
use crate::tabs::Tab;

/// Takes the pictures that the command line asks for.
///
/// # Errors
/// What could not be shown or written, and why.
pub fn run(arguments: Arguments, out: &Path) -> Result<(), String> {
    let size = vec2(f32::from(arguments.size.width), f32::from(arguments.size.height));
    let scale = arguments.scale;
    headless::check_size(size, scale)?;
    let panels: Vec<(usize, PathBuf)> = match arguments.panel {
        Some(PanelChoice::All) => {
            (0..PANELS.len()).map(|place| (place, numbered(out, PANELS[place].name))).collect()
        }
        Some(PanelChoice::One(place)) => vec![(place, out.to_owned())],
        None => vec![(0, out.to_owned())],
    };
    let own = arguments.runs.clone();
    let start = Start::from_arguments(arguments);
    let mut screen = Headless::new(size, scale);
    let mut app = ViewerApp::new(screen.context(), start);
    let mut problems = Vec::new();
    for (panel, path) in panels {
        app.show_panel(panel);
        let ground = |ctx: &eframe::egui::Context| ctx.global_style().visuals.panel_fill;
        let picture = screen.picture(ground, &|| true, |ui| {
            app.show(ui);
            app.is_settled()
        });
        let Some(picture) = picture else { continue };
        let written = file::check(&path, &own)
            .and_then(|_there| file::write(&path, true, |file| png::write(&picture, file)));
        if let Err(problem) = written {
            problems.push(problem.to_string());
        }
    }
    problems.extend(unshown(&app));
    problems.extend(missed(&app));
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

/// What is wrong with runs that cannot be shown.
fn unshown(app: &ViewerApp) -> Vec<String> {
    let failed = app.tabs.all().iter().filter_map(|tab| match tab {
        Tab::Failed(problem) => Some(format!(
            "{}: {}. {} {}",
            problem.path.display(),
            problem.headline(),
            problem.found(),
            problem.remedy()
        )),
        _ => None,
    });
    failed.collect()
}

/// Runs in which a range that was asked for is not: their pictures are of all of it, and say so.
fn missed(app: &ViewerApp) -> Vec<String> {
    let without = app.tabs.all().iter().filter_map(|tab| match tab {
        Tab::Open(open) => open.missed(),
        Tab::Loading(_) | Tab::Failed(_) => None,
    });
    without.collect()
}

/// `out.png` with a panel's name: `out-latency.png`.
fn numbered(out: &Path, panel: &str) -> PathBuf {
    let mut name = out.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{}", panel.to_lowercase()));
    if let Some(extension) = out.extension() {
        name.push(".");
        name.push(extension);
    }
    out.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_panel_has_a_file_of_its_own() {
        let name = |out: &str| numbered(Path::new(out), "SLO");
        assert_eq!(name("a/out.png"), Path::new("a/out-slo.png"));
        assert_eq!(name("out"), Path::new("out-slo"));
    }
}
