//! Overview: is this measurement valid, and what came out of it?
//!
//! The verdict comes first, then six numbers, then how the load looked over time, how requests
//! ended, and what else a reader must know.

use eframe::egui::{self, Align, Layout, Pos2, RichText, Sense, Stroke, Ui, vec2};
use onbeat_shared::{
    log::{Class, Outcome},
    metrics::{Report, latency::Metric, quantile::Statistic, report::Outcomes},
    run::State,
};

use super::{Panel, Scene, fidelity, verdict, verdict::Held};
use crate::fate::{Fate, outcome_words};
use crate::opened::{OpenedRun, Stand};
use crate::quantity::{self, NO_DATA};
use crate::remarks::{self, Remark, Weight};
use crate::selection::Selection;
use crate::series::Ask;
use crate::theme::{self, GRID, GUTTER, Palette, ROW_HEIGHT, Type, data_colour};
use crate::widgets::{
    canvas::waiting_ui,
    card::{self, Headline},
    table::{Column, Table},
    time_plot,
};

/// The panel.
pub(super) const PANEL: Panel =
    Panel { name: "Overview", about: "Is it valid, what came out?", plots: PLOTS, draw };

const RATES: &str = "rates";
const FLIGHT: &str = "flight";
const PLOTS: &[&str] = &[RATES, FLIGHT, fidelity::ID];

/// Width of the column beside the plots.
const SIDE_WIDTH: f32 = 330.0;
/// Below this width the side column goes under the plots.
const TWO_COLUMNS: f32 = 820.0;
/// About what verdict and headline numbers take; for as long as they are not known.
const WAITING_HEIGHT: f32 = 150.0;
/// Height of a plot from which on it makes room for what else is below it.
const TALL: f32 = 170.0;
/// What the card with the two plots needs besides them.
const PLOT_CHROME: f32 = theme::CARD_CHROME + 2.0 * time_plot::HEADING + GUTTER;

fn draw(ui: &mut Ui, scene: &mut Scene<'_>) {
    ui.spacing_mut().item_spacing.y = GUTTER;
    let opened = scene.derived.subject();
    let known = scene.with_report(|report, fresh| {
        // Only the numbers are pale while newer ones are worked out; plots stay as usable as ever.
        ui.scope(|ui| {
            if !fresh {
                ui.disable();
            }
            verdict_ui(ui, report, &scene.choices.selection(), opened);
            card::row_ui(ui, &headlines(report));
        });
    });
    if known.is_none() {
        theme::card(Palette::of(ui)).show(ui, |ui| waiting_ui(ui, WAITING_HEIGHT));
    }
    let height = ui.available_height();
    if ui.available_width() < TWO_COLUMNS {
        plots_ui(ui, scene, 150.0);
        side_ui(ui, scene);
        fidelity::show(ui, scene);
        return;
    }
    let plots_width = ui.available_width() - SIDE_WIDTH - GUTTER;
    ui.horizontal_top(|ui| {
        ui.spacing_mut().item_spacing.x = GUTTER;
        ui.vertical(|ui| {
            ui.set_width(plots_width);
            ui.spacing_mut().item_spacing.y = GUTTER;
            let room = height - PLOT_CHROME;
            let with_fidelity = (room - GUTTER - fidelity::height(plots_width)) / 2.0;
            // Where the window is high enough everything is in sight; else the plots fill it.
            let plot = if with_fidelity >= TALL { with_fidelity } else { room / 2.0 };
            plots_ui(ui, scene, plot.clamp(110.0, 340.0));
            fidelity::show(ui, scene);
        });
        ui.vertical(|ui| {
            ui.set_width(SIDE_WIDTH);
            ui.spacing_mut().item_spacing.y = GUTTER;
            side_ui(ui, scene);
        });
    });
}

fn plots_ui(ui: &mut Ui, scene: &mut Scene<'_>, height: f32) {
    theme::card(Palette::of(ui)).show(ui, |ui| {
        ui.spacing_mut().item_spacing.y = 0.0;
        let columns = plot_columns(ui);
        let users = scene.derived.subject().run.users.is_some();
        let filter = scene.choices.filter.clone();
        let title = if users { "Requests sent" } else { "Offered and achieved rate" };
        let rates = Ask::Rates { view: scene.stretch_of(RATES), filter: filter.clone() };
        scene.time_plot_ui(ui, (RATES, title, height), &rates);
        ui.add_space(GUTTER);
        let flight = Ask::Flight { view: scene.stretch_of(FLIGHT), columns, filter };
        scene.time_plot_ui(ui, (FLIGHT, "Requests in flight", height), &flight);
    });
}

/// Pixel columns of a plot here, in steps, so that dragging the window's edge does not ask anew for
/// each point.
pub(super) fn plot_columns(ui: &Ui) -> usize {
    let pixels = (ui.available_width() - theme::AXIS_WIDTH) * ui.ctx().pixels_per_point();
    let steps = (1..=80_u8).find(|&steps| f32::from(steps) * 100.0 >= pixels).unwrap_or(80);
    usize::from(steps) * 100
}

fn side_ui(ui: &mut Ui, scene: &mut Scene<'_>) {
    let opened = scene.derived.subject();
    let run = &opened.run;
    scene.with_report(|report, _fresh| {
        outcomes_ui(ui, opened, report);
        volume_ui(ui, report);
        remarks_ui(ui, &remarks::remarks(run, report));
    });
}

/// The verdict, before anything else.
fn verdict_ui(ui: &mut Ui, report: &Report, selection: &Selection, opened: &OpenedRun) {
    let palette = Palette::of(ui);
    let verdict = verdict::Shown::of(report, selection, opened);
    let (colour, fill) = verdict.colours(palette);
    let verdict::Shown { held, headline, reasons } = verdict;
    let shown = theme::banner(fill, colour).show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.horizontal_top(|ui| {
            ui.spacing_mut().item_spacing.x = 3.0 * GRID;
            mark_ui(ui, held, colour, fill);
            ui.vertical(|ui| {
                ui.spacing_mut().item_spacing.y = 3.0;
                ui.horizontal_wrapped(|ui| {
                    ui.spacing_mut().item_spacing.x = 3.0 * GRID;
                    ui.label(RichText::new(&headline).font(Type::Heading.font()).color(colour));
                    if report.schedule.planned > 0 {
                        ui.label(RichText::new(schedule_words(report)).color(palette.text));
                    }
                });
                if held == Held::Yes {
                    ui.label(RichText::new(lateness_words(report)).color(palette.weak));
                }
                for reason in reasons {
                    ui.label(RichText::new(quantity::sentence(reason)).color(palette.text));
                }
            });
        });
    });
    let label = format!("Verdict: {headline}");
    shown
        .response
        .widget_info(|| egui::WidgetInfo::labeled(egui::Role::Group, true, label.clone()));
}

fn schedule_words(report: &Report) -> String {
    let schedule = &report.schedule;
    let rate = |rate: Option<f64>| rate.map_or_else(|| NO_DATA.to_owned(), quantity::number);
    if let Some(users) = &report.users {
        return format!(
            "{} sent for {} and {}, which decide when",
            quantity::counted(schedule.sent, "request"),
            quantity::counted(users.users, "user"),
            quantity::counted(users.agents, "sub-agent"),
        );
    }
    format!(
        "{} of {} sent, {} of {} requests/s achieved",
        quantity::count(schedule.sent),
        quantity::counted(schedule.planned, "request"),
        rate(schedule.achieved_rps),
        rate(schedule.offered_rps),
    )
}

fn lateness_words(report: &Report) -> String {
    match &report.schedule.lateness_outside_stalls_us {
        None => "No lateness could be measured outside host stalls.".to_owned(),
        Some(lateness) => format!(
            "Outside host stalls, 99 % of requests left within {} of their time, half within {}.",
            quantity::duration(lateness.p99 * 1e3),
            quantity::duration(lateness.p50 * 1e3),
        ),
    }
}

/// A tick, a cross or a dash in a disc, so that the verdict does not hang on its colour.
fn mark_ui(ui: &mut Ui, held: Held, colour: egui::Color32, on: egui::Color32) {
    let (rect, _) = ui.allocate_exact_size(vec2(24.0, 24.0), Sense::hover());
    let centre = rect.center();
    let painter = ui.painter();
    painter.circle_filled(centre, 11.0, colour);
    let stroke = Stroke::new(2.4, on);
    let at = |x: f32, y: f32| Pos2::new(centre.x + x, centre.y + y);
    match held {
        Held::Yes => {
            painter.line(vec![at(-5.0, 0.5), at(-1.5, 4.0), at(5.5, -4.0)], stroke);
        }
        Held::No => {
            painter.line_segment([at(-4.0, -4.0), at(4.0, 4.0)], stroke);
            painter.line_segment([at(-4.0, 4.0), at(4.0, -4.0)], stroke);
        }
        Held::Unknown | Held::Nothing => {
            painter.line_segment([at(-5.0, 0.0), at(5.0, 0.0)], stroke);
        }
    }
}

/// The six headline numbers.
fn headlines(report: &Report) -> Vec<Headline> {
    let latency = &report.latency;
    vec![
        of_durations("Time to first token", Metric::Ttft.formula(), latency.ttft_ms.as_ref()),
        of_durations("Time between tokens", Metric::Itl.formula(), latency.itl_ms.as_ref()),
        of_durations("End to end", Metric::E2e.formula(), latency.e2e_ms.as_ref()),
        output_rate(report),
        cache_hits(report),
        lateness(report),
    ]
}

fn of_durations(
    title: &'static str,
    definition: &'static str,
    statistic: Option<&Statistic>,
) -> Headline {
    let Some(found) = statistic else {
        return nothing(title, definition);
    };
    let words = |millis: f64| quantity::measured(millis * 1e6);
    Headline {
        title,
        which: "median",
        value: words(found.p50),
        more: pair("p95", &words(found.p95), "p99", &words(found.p99)),
        definition,
        has_data: true,
    }
}

/// Two values in one short line; a unit they share is written once.
fn pair(first: &str, a: &str, second: &str, b: &str) -> String {
    match (a.rsplit_once(' '), b.rsplit_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => {
            format!("{first} {number}   {second} {b}")
        }
        _ => format!("{first} {a}   {second} {b}"),
    }
}

fn nothing(title: &'static str, definition: &'static str) -> Headline {
    Headline {
        title,
        which: "",
        value: NO_DATA.to_owned(),
        more: String::new(),
        definition,
        has_data: false,
    }
}

fn output_rate(report: &Report) -> Headline {
    let title = "Output tokens";
    let definition = "Completion tokens of successful requests / time from the first sending to the \
                      last end. Per user: 1 / time between tokens.";
    let throughput = &report.throughput;
    let Some(rate) = throughput.output_tokens_per_s else {
        return nothing(title, definition);
    };
    let per_user = &throughput.output_tokens_per_s_per_user;
    Headline {
        title,
        which: "per second",
        value: quantity::number(rate),
        more: per_user.as_ref().map_or_else(String::new, |user| {
            format!("median user {}/s", quantity::number(user.p50))
        }),
        definition,
        has_data: true,
    }
}

fn cache_hits(report: &Report) -> Headline {
    let cache = &report.cache;
    let ideal = cache.ideal_hit_rate.map(quantity::percent);
    let reported = cache.reported_hit_rate.map(quantity::percent);
    Headline {
        title: "Cache hits",
        which: "reported",
        has_data: reported.is_some(),
        value: reported.unwrap_or_else(|| NO_DATA.to_owned()),
        more: ideal.map_or_else(|| "ideal: no data".to_owned(), |ideal| format!("ideal {ideal}")),
        definition: "Cached prompt tokens / prompt tokens as the server reports them; ideal: what \
                     an endless prefix cache would reach.",
    }
}

fn lateness(report: &Report) -> Headline {
    let title = "Send lateness";
    let definition = "Sent − the time the request was due and ready, of all requests.";
    let Some(found) = &report.schedule.lateness_us else {
        return nothing(title, definition);
    };
    let words = |micros: f64| quantity::measured(micros * 1e3);
    Headline {
        title,
        which: "p99",
        value: words(found.p99),
        more: pair("p50", &words(found.p50), "max", &words(found.max)),
        definition,
        has_data: true,
    }
}

/// How many ended in each way.
fn count_of(outcomes: &Outcomes, outcome: Outcome) -> u64 {
    match outcome {
        Outcome::Ok => outcomes.ok,
        Outcome::Incomplete => outcomes.incomplete,
        Outcome::HttpError => outcomes.http_error,
        Outcome::ConnectError => outcomes.connect_error,
        Outcome::Timeout => outcomes.timeout,
        Outcome::Disconnected => outcomes.disconnected,
        Outcome::ProtocolError => outcomes.protocol_error,
        Outcome::StreamError => outcomes.stream_error,
        Outcome::Cancelled => outcomes.cancelled,
        Outcome::NeverSent => outcomes.never_sent,
    }
}

/// Colours of failures, in turn: neighbours never share one.
const FAILURES: [usize; 3] = [data_colour::VERMILLION, data_colour::PURPLE, data_colour::ORANGE];

/// One way in which requests ended, or did not.
struct Ending {
    words: &'static str,
    count: u64,
    fate: Fate,
}

/// The ways that occurred. After a stop it is said of requests that never left that this is why.
fn endings(opened: &OpenedRun, report: &Report) -> Vec<Ending> {
    let outcomes = &report.outcomes;
    let stopped = opened.run.state == State::Interrupted;
    let of = |outcome: Outcome| {
        let words = match outcome {
            Outcome::NeverSent if stopped => "not sent before the stop",
            _ => outcome_words(outcome),
        };
        Ending { words, count: count_of(outcomes, outcome), fate: Fate::of_outcome(outcome) }
    };
    let (open, not_reached) = (report.notes.open, report.notes.not_reached);
    let known: u64 = Outcome::ALL.iter().map(|&outcome| count_of(outcomes, outcome)).sum();
    let others = report.schedule.planned.saturating_sub(known + open + not_reached);
    let [in_flight, unreached] = match opened.stand {
        Stand::Complete => ["in flight when the log ends", "not reached when the log ends"],
        Stand::Part(_) | Stand::Growing => ["in flight", "not reached yet"],
    };
    let unknown = [
        (in_flight, open, Fate::Open),
        (unreached, not_reached, Fate::Unsent),
        ("no end in the log", others, Fate::Open),
    ];
    let unknown = unknown.map(|(words, count, fate)| Ending { words, count, fate });
    Outcome::ALL.into_iter().map(of).chain(unknown).filter(|ending| ending.count > 0).collect()
}

/// The endings with their colours. What we cut off or never sent is no failure, and has none of
/// their colours.
fn outcome_rows(endings: &[Ending], palette: &Palette) -> Vec<(&'static str, u64, egui::Color32)> {
    let mut failures = FAILURES.into_iter().cycle();
    let mut colour = |fate: Fate| match fate {
        Fate::Ok => palette.data[data_colour::GREEN],
        Fate::Failed => palette.data[failures.next().unwrap_or(data_colour::VERMILLION)],
        Fate::Cut => palette.data[data_colour::BLUE],
        Fate::Open => palette.data[data_colour::GREY],
        Fate::Unsent => theme::faded(palette.data[data_colour::GREY], 0.45),
    };
    endings.iter().map(|ending| (ending.words, ending.count, colour(ending.fate))).collect()
}

fn outcomes_ui(ui: &mut Ui, opened: &OpenedRun, report: &Report) {
    let palette = Palette::of(ui);
    let (outcomes, planned) = (&report.outcomes, report.schedule.planned);
    let rows = outcome_rows(&endings(opened, report), palette);
    theme::card(palette).show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.spacing_mut().item_spacing.y = GRID;
        ui.label(RichText::new("How requests ended").font(Type::Title.font()));
        if rows.is_empty() {
            ui.label(RichText::new("No data: no request was planned here").color(palette.weak));
            return;
        }
        ui.add_space(GRID);
        bar_ui(ui, &rows);
        for &(words, count, colour) in &rows {
            let share = count as f64 / planned.max(1) as f64;
            outcome_row_ui(ui, words, count, share, colour);
        }
        let causes = causes(outcomes);
        if !causes.is_empty() {
            let words = format!("Causes: {causes}");
            ui.label(RichText::new(words).font(Type::Small.font()).color(palette.weak));
        }
    });
}

/// One bar, divided as the requests are.
fn bar_ui(ui: &mut Ui, rows: &[(&str, u64, egui::Color32)]) {
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), 10.0), Sense::hover());
    let total: u64 = rows.iter().map(|row| row.1).sum();
    let mut left = rect.left();
    for &(_, count, colour) in rows {
        // Even one of a million keeps a visible sliver.
        let share = count as f64 / total.max(1) as f64;
        #[expect(clippy::cast_possible_truncation, reason = "a width on screen")]
        let width = (share as f32 * rect.width()).max(3.0).min(rect.right() - left);
        let part = egui::Rect::from_min_size(egui::pos2(left, rect.top()), vec2(width, 10.0));
        ui.painter().rect_filled(part, 1.0, colour);
        left += width + 1.0;
    }
    let words: Vec<_> = rows
        .iter()
        .map(|(words, count, _)| format!("{} {words}", quantity::count(*count)))
        .collect();
    let label = format!("Outcomes: {}", words.join(", "));
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Image, true, label.clone()));
}

fn outcome_row_ui(ui: &mut Ui, words: &str, count: u64, share: f64, colour: egui::Color32) {
    let palette = Palette::of(ui);
    let size = vec2(ui.available_width(), ROW_HEIGHT);
    ui.allocate_ui_with_layout(size, Layout::left_to_right(Align::Center), |ui| {
        let (swatch, _) = ui.allocate_exact_size(vec2(10.0, 10.0), Sense::hover());
        ui.painter().rect_filled(swatch, 2.0, colour);
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            let slot = vec2(58.0, ROW_HEIGHT);
            ui.allocate_ui_with_layout(slot, Layout::right_to_left(Align::Center), |ui| {
                ui.set_min_width(slot.x);
                ui.label(RichText::new(quantity::percent(share)).color(palette.weak));
            });
            ui.label(RichText::new(quantity::count(count)).font(Type::Strong.font()));
            ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                ui.add(egui::Label::new(words).truncate());
            });
        });
    });
}

/// The finer causes of what did not end well.
fn causes(outcomes: &Outcomes) -> String {
    let ended = |name: &str| {
        let class = Class::ALL.iter().find(|class| class.name() == name);
        let fate = class.map(|class| Fate::of_outcome(class.outcome()));
        matches!(fate, Some(Fate::Failed | Fate::Cut))
    };
    let causes: Vec<_> = outcomes
        .by_class
        .iter()
        .filter(|&(name, &count)| ended(name) && count > 0)
        .map(|(name, &count)| format!("{} {}", name.replace('_', " "), quantity::count(count)))
        .collect();
    causes.join(", ")
}

/// How much there was of everything.
fn volume_ui(ui: &mut Ui, report: &Report) {
    let (tokens, throughput) = (&report.tokens, &report.throughput);
    let count = |count: Option<u64>| count.map_or_else(|| NO_DATA.to_owned(), quantity::count);
    let seconds = report.run.duration_s.map(|seconds| seconds * 1e9);
    let rows = [
        ("first sent to last end", quantity::measured_or_word(seconds)),
        ("most in flight", count(throughput.peak_in_flight)),
        ("input tokens", count(tokens.prompt)),
        ("of these cached", count(tokens.cached)),
        ("output tokens", count(tokens.completion)),
    ];
    theme::card(Palette::of(ui)).show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.spacing_mut().item_spacing.y = GRID;
        ui.label(RichText::new("Volume").font(Type::Title.font()));
        let columns = [Column::text("", 1.2), Column::number("")];
        let cell = |row: usize, column: usize| {
            let (name, value): &(&str, String) = &rows[row];
            if column == 0 { (*name).to_owned() } else { value.clone() }
        };
        Table {
            name: "Volume",
            columns: &columns,
            rows: rows.len(),
            cell: &cell,
            row_headings: true,
        }
        .show(ui);
    });
}

fn remarks_ui(ui: &mut Ui, remarks: &[Remark]) {
    let palette = Palette::of(ui);
    theme::card(palette).show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.spacing_mut().item_spacing.y = 1.5 * GRID;
        ui.label(RichText::new("What to know").font(Type::Title.font()));
        if remarks.is_empty() {
            ui.label(RichText::new("Nothing stands against these numbers.").color(palette.weak));
        }
        for remark in remarks {
            remark_ui(ui, remark);
        }
    });
}

fn remark_ui(ui: &mut Ui, remark: &Remark) {
    let palette = Palette::of(ui);
    ui.horizontal_top(|ui| {
        let (rect, _) = ui.allocate_exact_size(vec2(10.0, 18.0), Sense::hover());
        let centre = rect.center();
        match remark.weight {
            Weight::Serious => {
                let triangle = vec![
                    centre + vec2(0.0, -5.0),
                    centre + vec2(5.5, 4.5),
                    centre + vec2(-5.5, 4.5),
                ];
                let shape = egui::Shape::convex_polygon(triangle, palette.warn, Stroke::NONE);
                ui.painter().add(shape);
            }
            Weight::Note => {
                ui.painter().circle_filled(centre, 2.5, palette.weak);
            }
        }
        ui.add(egui::Label::new(&remark.words).wrap());
    });
}
