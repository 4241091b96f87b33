//! What the server said of itself, beside what the requests tell: a row of two plots over time.

use eframe::egui::Ui;

use super::Scene;
use crate::series::Ask;
use crate::series::server::{Ask as ServerAsk, Plot};
use crate::theme::{self, GUTTER, Palette};
use crate::widgets::time_plot;

pub(super) const QUEUE: &str = "server-queue";
pub(super) const CACHE: &str = "server-cache";

/// Whether the run's log has anything of it.
pub(super) fn was_asked(scene: &Scene<'_>) -> bool {
    scene.derived.subject().run.servers.is_some()
}

/// Both plots in a row of this height, or under each other, each as high.
pub(super) fn row_ui(ui: &mut Ui, scene: &mut Scene<'_>, height: f32, is_narrow: bool) {
    let plot = height - theme::CARD_CHROME - time_plot::HEADING;
    if is_narrow {
        plot_ui(ui, scene, Plot::Queue, plot);
        plot_ui(ui, scene, Plot::Cache, plot);
        return;
    }
    let half = ((ui.available_width() - GUTTER) / 2.0).floor();
    ui.horizontal_top(|ui| {
        ui.spacing_mut().item_spacing.x = GUTTER;
        for shown in [Plot::Queue, Plot::Cache] {
            ui.vertical(|ui| {
                ui.set_width(half);
                plot_ui(ui, scene, shown, plot);
            });
        }
    });
}

fn plot_ui(ui: &mut Ui, scene: &mut Scene<'_>, plot: Plot, height: f32) {
    let (id, title) = match plot {
        Plot::Queue => (QUEUE, "Server: requests"),
        Plot::Cache => (CACHE, "Server: cache"),
    };
    theme::card(Palette::of(ui)).show(ui, |ui| {
        ui.set_width(ui.available_width());
        let view = scene.stretch_of(id);
        scene.time_plot_ui(ui, (id, title, height), &Ask::Server(ServerAsk { plot, view }));
    });
}
