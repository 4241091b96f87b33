//! What stands beside the plots of lateness: host stalls one by one, each core's and each machine's
//! work, what of TTFT could be ours, and what the precision rests on.

use eframe::egui::{self, Align, Layout, RichText, ScrollArea, Ui, vec2};
use onbeat_shared::{
    import,
    metrics::{client_part::NOTABLE_SHARE, quantile::Statistic},
    units::CoreIndex,
};

use super::Scene;
use crate::quantity::{self, NO_DATA, NO_DATA_CELL};
use crate::series::lateness::{Beside, Figures, StallOrder, facts};
use crate::state::Choices;
use crate::theme::{self, GRID, Palette, Type};
use crate::widgets::{
    switch,
    table::{Column, Table},
};

/// Height of the line of switches.
const SWITCHES: f32 = 26.0;

/// The card with the tables.
pub(super) fn show(ui: &mut Ui, scene: &mut Scene<'_>, figures: Option<&Figures>, height: f32) {
    theme::card(Palette::of(ui)).show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.spacing_mut().item_spacing.y = GRID;
        let inner = height - theme::CARD_CHROME;
        ui.set_min_height(inner);
        let size = vec2(ui.available_width(), SWITCHES);
        ui.allocate_ui_with_layout(size, Layout::left_to_right(Align::Center), |ui| {
            let is_merged = scene.derived.subject().run.manifest.merged.is_some();
            let hosts =
                (Beside::Hosts, "Hosts", "What each machine did, and how right its clock is");
            let mut ways = vec![
                (Beside::Stalls, "Stalls", "Host stalls, and the requests that they hit"),
                (Beside::Cores, "Cores", "What each sending core did"),
                (Beside::Client, "TTFT", "What of TTFT this machine could have caused"),
                (Beside::Clock, "Clock", "What the precision of the sending rests on"),
            ];
            if is_merged {
                ways.insert(0, hosts);
            }
            switch::show(ui, "Beside", &mut scene.choices.lateness.beside, &ways);
        });
        let room = inner - SWITCHES - GRID;
        let Some(figures) = figures else {
            ui.label("…");
            return;
        };
        let foreign = import::measured_by(&scene.derived.subject().run);
        match (scene.choices.lateness.beside, foreign) {
            (Beside::Stalls, Some(tool)) => silent_ui(ui, tool, "when its host stalled"),
            (Beside::Cores, Some(tool)) => silent_ui(ui, tool, "which core sent what"),
            (Beside::Stalls, None) => stalls_ui(ui, scene.choices, figures, room),
            (Beside::Cores, None) => cores_ui(ui, figures, room),
            (Beside::Hosts, _) => hosts_ui(ui, figures, room),
            (Beside::Client, _) => scrolled(ui, room, |ui| client_ui(ui, figures)),
            (Beside::Clock, _) => {
                let run = &scene.derived.subject().run;
                let facts = scene.with_report(|report, _fresh| facts::facts(run, report));
                scrolled(ui, room, |ui| clock_ui(ui, &facts.unwrap_or_default()));
            }
        }
    });
}

/// What another tool's file does not tell.
fn silent_ui(ui: &mut Ui, tool: &str, of: &str) {
    let words = format!("No data: {tool}'s file does not say {of}.");
    ui.label(RichText::new(words).color(Palette::of(ui).weak));
}

/// What may be taller than the room for it.
fn scrolled(ui: &mut Ui, room: f32, draw: impl FnOnce(&mut Ui)) {
    ScrollArea::vertical().id_salt("beside").max_height(room.max(88.0)).show(ui, draw);
}

fn stalls_ui(ui: &mut Ui, choices: &mut Choices, figures: &Figures, room: f32) {
    let palette = Palette::of(ui);
    if figures.stalls.is_empty() {
        let words = "No host stall: no sending core's clock jumped while it polled.";
        ui.label(RichText::new(words).color(palette.weak));
        return;
    }
    let size = vec2(ui.available_width(), SWITCHES);
    ui.allocate_ui_with_layout(size, Layout::left_to_right(Align::Center), |ui| {
        ui.label(RichText::new("Order").font(Type::Small.font()).color(palette.weak));
        switch::show(
            ui,
            "Order of stalls",
            &mut choices.lateness.order,
            &[
                (StallOrder::Time, "Time", "As they happened"),
                (StallOrder::Length, "Length", "The longest first"),
                (StallOrder::Hit, "Hits", "Those that hit the most requests first"),
            ],
        );
    });
    let columns = [
        Column::number("start"),
        Column::number("core"),
        Column::number("length"),
        Column::number("requests hit"),
    ];
    let span = choices.whole().span() as f64 / 100.0;
    let cell = |row: usize, column: usize| {
        let stall = &figures.stalls[row];
        match column {
            0 => quantity::instant(stall.start.0 as f64, span),
            1 => stall.core.0.to_string(),
            2 => quantity::measured(stall.length_ns as f64),
            _ => quantity::count(u64::from(stall.hit)),
        }
    };
    Table {
        name: "Host stalls",
        columns: &columns,
        rows: figures.stalls.len(),
        cell: &cell,
        row_headings: false,
    }
    .show_scrolling(ui, (room - SWITCHES - GRID).max(88.0));
}

fn sized(heading: &str, weight: f32) -> Column {
    Column { weight, ..Column::number(heading) }
}

fn cores_ui(ui: &mut Ui, figures: &Figures, room: f32) {
    let columns = [
        sized("core", 0.8),
        sized("sent", 0.9),
        sized("p50", 1.2),
        sized("p99", 1.2),
        sized("max", 1.2),
        sized("stalls", 0.9),
        sized("stalled", 1.2),
    ];
    let late = |statistic: Option<&Statistic>, of: fn(&Statistic) -> f64| {
        statistic
            .map_or_else(|| NO_DATA_CELL.to_owned(), |found| quantity::measured(of(found) * 1e3))
    };
    let cell = |row: usize, column: usize| {
        let (core, work) = &figures.cores[row];
        let statistic = work.lateness_us.as_ref();
        match column {
            0 if *core == CoreIndex::CONDUCTOR => NO_DATA_CELL.to_owned(),
            0 => core.0.to_string(),
            1 => quantity::count(work.sent),
            2 => late(statistic, |found| found.p50),
            3 => late(statistic, |found| found.p99),
            4 => late(statistic, |found| found.max),
            5 => quantity::count(work.stalls),
            _ => quantity::duration(work.stalled_ns as f64),
        }
    };
    Table {
        name: "Cores",
        columns: &columns,
        rows: figures.cores.len(),
        cell: &cell,
        row_headings: true,
    }
    .show_scrolling(ui, room.max(88.0));
}

/// Lateness by machine, and how right its clock is.
fn hosts_ui(ui: &mut Ui, figures: &Figures, room: f32) {
    if figures.hosts.is_empty() {
        let words = "One machine sent all of this run: see the cores.";
        ui.label(RichText::new(words).color(Palette::of(ui).weak));
        return;
    }
    let columns = [
        Column::text("host", 1.5),
        sized("sent", 0.9),
        sized("p50", 1.1),
        sized("p99", 1.1),
        sized("max", 1.1),
        sized("stalls", 0.8),
        sized("clock within", 1.3),
    ];
    let late = |statistic: Option<&Statistic>, of: fn(&Statistic) -> f64| {
        statistic
            .map_or_else(|| NO_DATA_CELL.to_owned(), |found| quantity::measured(of(found) * 1e3))
    };
    let cell = |row: usize, column: usize| {
        let host = &figures.hosts[row];
        let statistic = host.lateness_us.as_ref();
        match column {
            0 => format!("{row}: {}", host.host),
            1 => quantity::count(host.sent),
            2 => late(statistic, |found| found.p50),
            3 => late(statistic, |found| found.p99),
            4 => late(statistic, |found| found.max),
            5 => quantity::count(host.host_stalls.count),
            _ => match (host.clock_synchronised, host.clock_max_error_ms) {
                (Some(true), Some(error)) => quantity::duration(error * 1e6),
                (Some(false), _) => "not in sync".to_owned(),
                _ => NO_DATA_CELL.to_owned(),
            },
        }
    };
    Table {
        name: "Hosts",
        columns: &columns,
        rows: figures.hosts.len(),
        cell: &cell,
        row_headings: true,
    }
    .show_scrolling(ui, room.max(88.0));
}

/// What of TTFT could be ours, in its parts and with its meaning.
fn client_ui(ui: &mut Ui, figures: &Figures) {
    let palette = Palette::of(ui);
    let client = &figures.client;
    let share = |share: Option<f64>| share.map_or_else(|| NO_DATA.to_owned(), quantity::percent);
    let mean = |sum: f64| match client.requests {
        0 => NO_DATA.to_owned(),
        requests => quantity::measured(sum / requests as f64),
    };
    let [late, send, stalled] = client.parts_ns;
    let notable = format!("above {}", quantity::percent(NOTABLE_SHARE));
    let longest = client.longest_ns.map(|longest| longest as f64);
    let mut rows: Vec<(&str, String)> = vec![
        ("share of TTFT, median", share(client.p50)),
        ("p99", share(client.p99)),
        ("largest", share(client.max)),
        (
            &notable,
            format!(
                "{} ({})",
                quantity::counted(client.notable, "request"),
                share(client.notable_share())
            ),
        ),
        ("longest, all parts", quantity::measured_or_word(longest)),
        ("lateness, mean", mean(late)),
        ("send, mean", mean(send)),
        ("stalls before the first token, mean", mean(stalled)),
    ];
    if client.unknown > 0 {
        rows.push(("not known", quantity::counted(client.unknown, "request")));
    }
    let columns = [Column::text("", 1.7), Column::number("")];
    let cell = |row: usize, column: usize| {
        if column == 0 { rows[row].0.to_owned() } else { rows[row].1.clone() }
    };
    Table {
        name: "Client's part of TTFT",
        columns: &columns,
        rows: rows.len(),
        cell: &cell,
        row_headings: true,
    }
    .show(ui);
    let words =
        "An upper bound: each part counts in full, whether or not it delayed the first token.";
    ui.add(
        egui::Label::new(RichText::new(words).font(Type::Small.font()).color(palette.weak)).wrap(),
    );
}

fn clock_ui(ui: &mut Ui, facts: &[facts::Fact]) {
    let columns = [Column::text("", 1.0), sized("", 1.5)];
    let cell = |row: usize, column: usize| {
        let (name, words) = &facts[row];
        if column == 0 { (*name).to_owned() } else { words.clone() }
    };
    Table {
        name: "Clock and pacing",
        columns: &columns,
        rows: facts.len(),
        cell: &cell,
        row_headings: true,
    }
    .show(ui);
}
