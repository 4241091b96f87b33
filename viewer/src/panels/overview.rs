//! Overview: is this measurement valid, and what came out of it?
//!
//! The verdict comes first, then six numbers, then how the load looked over time, how requests
//! ended, and what else a reader must know.

use eframe::egui::{self, Align, Layout, Pos2, RichText, Sense, Stroke, Ui, vec2};
use onbeat_shared::{
    log::Outcome,
    metrics::{Report, latency::Metric, quantile::Statistic, report::Outcomes},
};

use super::{Panel, Scene};
use crate::quantity::{self, NO_DATA};
use crate::remarks::{self, Remark, Weight};
use crate::series::{Answer, Ask};
use crate::theme::{self, GRID, GUTTER, Palette, ROW_HEIGHT, Type, data_colour};
use crate::widgets::{
    card::{self, Headline},
    time_plot::TimePlot,
};

/// The panel.
pub(super) const PANEL: Panel =
    Panel { name: "Overview", about: "Is it valid, what came out?", plots: PLOTS, draw };

const RATES: &str = "rates";
const FLIGHT: &str = "flight";
const PLOTS: &[&str] = &[RATES, FLIGHT];

/// Width of the column beside the plots.
const SIDE_WIDTH: f32 = 330.0;
/// Below this width the side column goes under the plots.
const TWO_COLUMNS: f32 = 820.0;
/// What a plot card needs besides its plots: margins and two headings.
const PLOT_CHROME: f32 = 20.0 + 2.0 * 28.0 + GUTTER;

fn draw(ui: &mut Ui, scene: &mut Scene<'_>) {
    ui.spacing_mut().item_spacing.y = GUTTER;
    scene.with_report(|report, fresh| {
        if !fresh {
            ui.disable();
        }
        verdict_ui(ui, report, scene.choices.range().is_some());
        card::row_ui(ui, &headlines(report));
    });
    let height = ui.available_height();
    if ui.available_width() < TWO_COLUMNS {
        plots_ui(ui, scene, 150.0);
        side_ui(ui, scene);
        return;
    }
    let plots_width = ui.available_width() - SIDE_WIDTH - GUTTER;
    ui.horizontal_top(|ui| {
        ui.spacing_mut().item_spacing.x = GUTTER;
        ui.vertical(|ui| {
            ui.set_width(plots_width);
            plots_ui(ui, scene, ((height - PLOT_CHROME) / 2.0).clamp(110.0, 340.0));
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
        let view = scene.choices.view();
        let columns = plot_columns(ui);
        let rates = scene.derived.ask(&Ask::Rates { view });
        TimePlot {
            id: RATES,
            title: "Offered and achieved rate",
            height,
            picture: rates.answer.as_deref().and_then(Answer::picture),
            fresh: rates.fresh,
            describe: None,
            controls: None,
        }
        .show(ui, scene.choices);
        ui.add_space(GUTTER - GRID);
        let flight = scene.derived.ask(&Ask::Flight { view, columns });
        TimePlot {
            id: FLIGHT,
            title: "Requests in flight",
            height,
            picture: flight.answer.as_deref().and_then(Answer::picture),
            fresh: flight.fresh,
            describe: None,
            controls: None,
        }
        .show(ui, scene.choices);
    });
}

/// Pixel columns of a plot here, in steps, so that dragging the window's edge does not ask anew for
/// each point.
fn plot_columns(ui: &Ui) -> usize {
    let pixels = (ui.available_width() - theme::AXIS_WIDTH) * ui.ctx().pixels_per_point();
    let steps = (1..=80_u8).find(|&steps| f32::from(steps) * 100.0 >= pixels).unwrap_or(80);
    usize::from(steps) * 100
}

fn side_ui(ui: &mut Ui, scene: &mut Scene<'_>) {
    let run = &scene.derived.subject().run;
    scene.with_report(|report, _fresh| {
        outcomes_ui(ui, &report.outcomes, report.schedule.planned);
        remarks_ui(ui, &remarks::remarks(run, report));
    });
}

/// The verdict, before anything else.
fn verdict_ui(ui: &mut Ui, report: &Report, ranged: bool) {
    let palette = Palette::of(ui);
    let held = report.verdict.schedule_held;
    let (colour, fill) =
        if held { (palette.good, palette.good_soft) } else { (palette.bad, palette.bad_soft) };
    let headline = verdict_words(held, ranged);
    let shown = theme::banner(fill, colour).show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.horizontal_top(|ui| {
            ui.spacing_mut().item_spacing.x = 3.0 * GRID;
            mark_ui(ui, held, colour, fill);
            ui.vertical(|ui| {
                ui.spacing_mut().item_spacing.y = 3.0;
                ui.horizontal(|ui| {
                    ui.spacing_mut().item_spacing.x = 3.0 * GRID;
                    ui.label(RichText::new(&headline).font(Type::Heading.font()).color(colour));
                    ui.label(RichText::new(schedule_words(report)).color(palette.text));
                });
                if held {
                    ui.label(RichText::new(lateness_words(report)).color(palette.weak));
                }
                for reason in &report.verdict.reasons {
                    ui.label(RichText::new(reason).color(palette.text));
                }
            });
        });
    });
    let label = format!("Verdict: {headline}");
    shown
        .response
        .widget_info(|| egui::WidgetInfo::labeled(egui::Role::Group, true, label.clone()));
}

fn verdict_words(held: bool, ranged: bool) -> String {
    let verdict = if held { "The schedule held" } else { "The schedule did not hold" };
    if ranged { format!("{verdict} in this range") } else { verdict.to_owned() }
}

fn schedule_words(report: &Report) -> String {
    let schedule = &report.schedule;
    let rate = |rate: Option<f64>| rate.map_or_else(|| NO_DATA.to_owned(), quantity::number);
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

/// A tick or a cross in a disc, so that the verdict does not hang on its colour.
fn mark_ui(ui: &mut Ui, held: bool, colour: egui::Color32, on: egui::Color32) {
    let (rect, _) = ui.allocate_exact_size(vec2(24.0, 24.0), Sense::hover());
    let centre = rect.center();
    let painter = ui.painter();
    painter.circle_filled(centre, 11.0, colour);
    let stroke = Stroke::new(2.4, on);
    let at = |x: f32, y: f32| Pos2::new(centre.x + x, centre.y + y);
    if held {
        painter.line(vec![at(-5.0, 0.5), at(-1.5, 4.0), at(5.5, -4.0)], stroke);
    } else {
        painter.line_segment([at(-4.0, -4.0), at(4.0, 4.0)], stroke);
        painter.line_segment([at(-4.0, 4.0), at(4.0, -4.0)], stroke);
    }
}

/// The six headline numbers.
fn headlines(report: &Report) -> Vec<Headline> {
    let latency = &report.latency;
    vec![
        of_durations(
            "Time to first token",
            Metric::Ttft.formula(),
            latency.ttft_ms.as_ref(),
        ),
        of_durations(
            "Time between tokens",
            Metric::Itl.formula(),
            latency.itl_ms.as_ref(),
        ),
        of_durations(
            "End to end",
            Metric::E2e.formula(),
            latency.e2e_ms.as_ref(),
        ),
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
    let words = |millis: f64| quantity::duration(millis * 1e6);
    Headline {
        title,
        which: "median",
        value: words(found.p50),
        more: format!("p95 {}   p99 {}", words(found.p95), words(found.p99)),
        definition,
        has_data: true,
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
            format!("per user p50 {}   p5 {}", quantity::number(user.p50), quantity::number(user.p5))
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
        more: format!("ideal {}", ideal.unwrap_or_else(|| NO_DATA.to_owned())),
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
    let words = |micros: f64| quantity::duration(micros * 1e3);
    Headline {
        title,
        which: "p99",
        value: words(found.p99),
        more: format!("p50 {}   max {}", words(found.p50), words(found.max)),
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

const fn outcome_words(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "successful",
        Outcome::Incomplete => "incomplete answer",
        Outcome::HttpError => "HTTP error",
        Outcome::ConnectError => "no connection",
        Outcome::Timeout => "timed out",
        Outcome::Disconnected => "disconnected",
        Outcome::ProtocolError => "protocol broken",
        Outcome::StreamError => "error in the stream",
        Outcome::Cancelled => "cancelled",
        Outcome::NeverSent => "never sent",
    }
}

fn outcome_colour(palette: &Palette, outcome: Outcome) -> egui::Color32 {
    let place = match outcome {
        Outcome::Ok => data_colour::GREEN,
        Outcome::Incomplete | Outcome::Timeout => data_colour::ORANGE,
        Outcome::Cancelled | Outcome::NeverSent => data_colour::GREY,
        Outcome::ConnectError | Outcome::ProtocolError => data_colour::PURPLE,
        Outcome::HttpError | Outcome::Disconnected | Outcome::StreamError => {
            data_colour::VERMILLION
        }
    };
    palette.data[place]
}

fn outcomes_ui(ui: &mut Ui, outcomes: &Outcomes, planned: u64) {
    let palette = Palette::of(ui);
    let mut rows: Vec<(&str, u64, egui::Color32)> = Outcome::ALL
        .iter()
        .map(|&outcome| {
            let count = count_of(outcomes, outcome);
            (outcome_words(outcome), count, outcome_colour(palette, outcome))
        })
        .filter(|&(_, count, _)| count > 0)
        .collect();
    let known: u64 = rows.iter().map(|row| row.1).sum();
    if let Some(open @ 1..) = planned.checked_sub(known) {
        rows.push(("no end in the log", open, palette.data[data_colour::BLUE]));
    }
    theme::card(palette).show(ui, |ui| {
        ui.set_width(ui.available_width());
        ui.spacing_mut().item_spacing.y = GRID;
        ui.label(RichText::new("How requests ended").font(Type::Title.font()));
        if rows.is_empty() {
            ui.label(RichText::new("No data: no request was planned here").color(palette.weak));
            return;
        }
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
    let (rect, response) =
        ui.allocate_exact_size(vec2(ui.available_width(), 10.0), Sense::hover());
    let total: u64 = rows.iter().map(|row| row.1).sum();
    let mut left = rect.left();
    for &(_, count, colour) in rows {
        // Even one of a million keeps a visible sliver.
        let share = count as f64 / total.max(1) as f64;
        #[expect(clippy::cast_possible_truncation, reason = "a width on screen")]
        let width = (share as f32 * rect.width()).max(2.0).min(rect.right() - left);
        let part = egui::Rect::from_min_size(egui::pos2(left, rect.top()), vec2(width, 10.0));
        ui.painter().rect_filled(part, 0.0, colour);
        left += width;
    }
    let words: Vec<_> =
        rows.iter().map(|(words, count, _)| format!("{} {words}", quantity::count(*count))).collect();
    let label = format!("Outcomes: {}", words.join(", "));
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Image, true, label.clone()));
}

fn outcome_row_ui(ui: &mut Ui, words: &str, count: u64, share: f64, colour: egui::Color32) {
    let palette = Palette::of(ui);
    let size = vec2(ui.available_width(), ROW_HEIGHT);
    ui.allocate_ui_with_layout(size, Layout::left_to_right(Align::Center), |ui| {
        let (swatch, _) = ui.allocate_exact_size(vec2(10.0, 10.0), Sense::hover());
        ui.painter().rect_filled(swatch, 2.0, colour);
        ui.label(words);
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            ui.add_sized(vec2(64.0, ROW_HEIGHT), right_label(quantity::percent(share), palette.weak));
            ui.label(RichText::new(quantity::count(count)).font(Type::Strong.font()));
        });
    });
}

fn right_label(text: String, colour: egui::Color32) -> impl egui::Widget {
    move |ui: &mut Ui| {
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            ui.label(RichText::new(text).color(colour))
        })
        .inner
    }
}

/// The finer causes of what did not end well.
fn causes(outcomes: &Outcomes) -> String {
    let causes: Vec<_> = outcomes
        .by_class
        .iter()
        .filter(|&(name, &count)| name != "ok" && count > 0)
        .map(|(name, &count)| format!("{} {}", name.replace('_', " "), quantity::count(count)))
        .collect();
    causes.join(", ")
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
