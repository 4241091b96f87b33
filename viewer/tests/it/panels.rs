//! What the panels say, read through the accessibility tree.

use eframe::egui::{Key, Modifiers, accesskit::Role};
use egui_kittest::kittest::{NodeT as _, Queryable as _};
use onbeat_shared::{
    log::{Class, sample, sample::Sample, sample_users},
    metrics::{self, ReportOptions, fidelity},
    units::RunNanos,
};
use onbeat_viewer::{quantity, state::TimeRange};

use crate::stage::{self, Play, beginning, label, plot, reads};

const MILLI: i64 = 1_000_000;

#[test]
fn the_overview_opens_with_the_verdict_and_six_numbers() {
    let play = stage::with(vec![stage::usual()]);
    let report = play.state().run().report();
    assert!(report.verdict.schedule_held);
    beginning(&play, Role::Group, "Verdict: The schedule held");
    let latency = &report.latency;
    for (title, statistic) in [
        ("Time to first token", latency.ttft_ms.as_ref()),
        ("Time between tokens", latency.itl_ms.as_ref()),
        ("End to end", latency.e2e_ms.as_ref()),
    ] {
        let found = label(&beginning(&play, Role::Group, &format!("{title}: median")));
        let median = quantity::measured(statistic.expect("data").p50 * 1e6);
        assert!(found.contains(&format!("median {median}. p95")), "{found}");
    }
    let rate = report.throughput.output_tokens_per_s.expect("data");
    let found = label(&beginning(&play, Role::Group, "Output tokens: "));
    assert!(found.contains(&quantity::number(rate)), "{found}");
    beginning(&play, Role::Group, "Cache hits: reported");
    beginning(&play, Role::Group, "Send lateness: p99");
    let bar = label(&beginning(&play, Role::Image, "Outcomes: "));
    assert!(bar.contains(&format!("{} successful", quantity::count(report.outcomes.ok))), "{bar}");
    for title in ["Offered and achieved rate", "Requests in flight"] {
        assert!(label(&plot(&play, title)).contains("at most"));
    }
}

/// Fidelity is the report's, of the chosen requests, as words and as a table.
#[test]
fn the_overview_says_how_faithful_the_replay_was() {
    let mut play = stage::with(vec![stage::usual()]);
    let whole = play.state().run().whole();
    let half = TimeRange::between(whole.start, RunNanos(whole.start.0 + whole.span() / 2));
    for range in [None, Some(half)] {
        range.map(|range| play.state_mut().choices_mut().choose(range));
        play.run();
        let selection = play.state().choices().selection();
        let report = play.state().run().report_of(&selection, &ReportOptions::default());
        for row in fidelity::rows(&report.fidelity) {
            let name = format!("Fidelity: {} error {}. ", row.name, row.error);
            let found = label(&beginning(&play, Role::Group, &name));
            assert!(found.ends_with(&row.meaning), "{found}");
        }
    }
    play.get_by_label("Fidelity: show as table").click();
    play.run();
    let selection = play.state().choices().selection();
    let report = play.state().run().report_of(&selection, &ReportOptions::default());
    for row in fidelity::rows(&report.fidelity) {
        assert!(reads(&play, &row.recorded) && reads(&play, &row.replayed), "{row:?}");
    }
}

/// A run that users drive was offered no rate, and nothing speaks of one.
#[test]
fn a_run_that_users_drive_shows_what_was_sent() {
    let play = stage::with(vec![stage::of_bytes(&sample_users::log(3, 8), "users.beat")]);
    let run = &play.state().run().run;
    let sent = quantity::counted(run.requests.len() as u64, "request");
    assert!(reads(&play, &format!("{sent} sent for 8 users and ")));
    assert!(label(&plot(&play, "Requests sent")).contains("offers none"));
    assert!(!reads(&play, "Offered"));
}

#[test]
fn everything_fits_a_small_laptop() {
    let mut play = stage::with(vec![stage::usual()]);
    for (key, lowest) in [(Key::Num1, "Requests in flight"), (Key::Num2, "Throughput")] {
        play.key_press(key);
        play.run();
        let bottom = plot(&play, lowest).rect().bottom();
        assert!((700.0..780.0).contains(&bottom), "{lowest} ends at {bottom}");
        for node in play.root().children_recursive() {
            let node = node.accesskit_node();
            let name = node.label().or(node.value()).unwrap_or_default();
            if let Some(rect) = node.raw_bounds() {
                assert!(rect.x1 <= 1280.5, "{name:?} sticks out to {}", rect.x1);
            }
        }
    }
}

#[test]
fn a_schedule_that_did_not_hold_says_why_first() {
    let mut sample = sample::sample(8, 200);
    // Every request leaves 20 ms after its time.
    for (_, record) in &mut sample.records {
        if let onbeat_shared::log::Record::Dispatch { sent, .. } = record {
            sent.0 += 20 * MILLI;
        }
    }
    let play = stage::with(vec![stage::opened(&sample, "late.beat")]);
    let report = play.state().run().report();
    assert!(!report.verdict.schedule_held);
    beginning(&play, Role::Group, "Verdict: The schedule did not hold");
    for reason in &report.verdict.reasons {
        assert!(reads(&play, &quantity::sentence(reason)), "{reason}");
    }
}

/// Two requests, of which none got an answer.
fn nothing_succeeded() -> Sample {
    let mut sample = Sample::new();
    for due in [0, 500 * MILLI] {
        let request = sample.send(due);
        sample.done(request, due + 100 * MILLI, Class::Http5xx);
    }
    sample
}

/// What was cut off or not sent because of a stop is neither called nor counted a failure.
#[test]
fn a_stop_makes_no_failures() {
    let mut sample = Sample::new();
    let answered = sample.send(0);
    sample.chunks(answered, &[20 * MILLI, 30 * MILLI]);
    sample.done(answered, 40 * MILLI, Class::Ok);
    let cut = sample.send(50 * MILLI);
    sample.done(cut, 90 * MILLI, Class::Interrupted);
    let unsent = sample.plan(900 * MILLI);
    sample.done(unsent, 90 * MILLI, Class::NotReached);
    sample.interrupted = true;
    let mut play = stage::with(vec![stage::opened(&sample, "stopped.beat")]);
    let bar = label(&beginning(&play, Role::Image, "Outcomes: "));
    assert!(bar.contains("1 cancelled") && bar.contains("1 not sent before the stop"), "{bar}");
    assert!(!reads(&play, "not reached"), "that is no cause of a failure");
    play.key_press(Key::Num2);
    play.run();
    assert!(!reads(&play, "crosses") && reads(&play, "1 cancelled"));
    play.get_by_label("Throughput: Requests").click();
    play.run();
    let summary = label(&plot(&play, "Throughput"));
    assert!(summary.contains("completed and cancelled"), "{summary}");
}

#[test]
fn no_data_is_a_word_and_never_zero() {
    let mut play = stage::with(vec![stage::opened(&nothing_succeeded(), "failed.beat")]);
    for title in ["Time to first token", "Time between tokens", "End to end"] {
        let found = label(&beginning(&play, Role::Group, &format!("{title}: ")));
        assert!(found.contains("no data"), "{found}");
        assert!(!found.contains('0'), "{found}");
    }
    play.key_press(Key::Num2);
    play.run();
    assert!(label(&plot(&play, "Time to first token")).contains("no data"));
    assert!(label(&plot(&play, "Throughput")).contains("no data"));
}

#[test]
fn a_run_of_nothing_can_be_looked_at() {
    let mut play = stage::with(vec![stage::opened(&Sample::new(), "nothing.beat")]);
    for key in [Key::Num1, Key::Num2, Key::T] {
        play.key_press(key);
        play.run();
    }
}

#[test]
fn times_at_the_ends_of_what_a_log_can_hold_are_drawn() {
    let mut sample = Sample::new();
    for (due, sent, end) in [
        (i64::MIN + 1, i64::MIN + 2, i64::MAX),
        (0, -5, i64::MAX - 1),
        (i64::MAX, i64::MIN + 9, i64::MIN + 8),
        (7, i64::MAX, 0),
    ] {
        let request = sample.plan(due);
        sample.dispatch(request, due, sent);
        sample.chunks(request, &[sent, end, 0]);
        sample.done(request, end, Class::Ok);
    }
    let mut play = stage::with(vec![stage::opened(&sample, "hostile.beat")]);
    for key in [Key::Num1, Key::Num2, Key::T, Key::Num1, Key::Plus, Key::ArrowRight, Key::F] {
        play.key_press(key);
        play.run();
    }
    for range in ["0..1", "-9e9..9e9", "..", "1e-9..2e-9"] {
        type_range(&mut play, range);
    }
    for key in [Key::Plus, Key::Num2, Key::Minus, Key::OpenBracket, Key::Home] {
        play.key_press(key);
        play.run();
    }
}

#[test]
fn panels_are_reached_by_click_and_by_number() {
    let mut play = stage::with(vec![stage::usual()]);
    play.get_by_label("Latency panel").click();
    play.run();
    plot(&play, "Time to first token");
    play.key_press(Key::Num1);
    play.run();
    plot(&play, "Requests in flight");
}

fn on_latency() -> Play {
    let mut play = stage::with(vec![stage::usual()]);
    play.key_press(Key::Num2);
    play.run();
    play
}

#[test]
fn the_latency_panel_switches_metric_origin_and_scale() {
    let mut play = on_latency();
    for (choice, title) in [
        ("Measured from: From due", "Time to first token, from due"),
        ("Latency: End to end", "End to end, from due"),
        ("Measured from: From sent", "End to end"),
        ("Scale: Log", "End to end"),
        ("Latency: Between tokens", "Time between tokens"),
    ] {
        play.get_by_label(choice).click();
        play.run();
        let summary = label(&plot(&play, title));
        assert!(summary.contains("requests between"), "{choice}: {summary}");
    }
    for choice in ["Throughput: Input", "Throughput: Requests", "Throughput: Output"] {
        play.get_by_label(choice).click();
        play.run();
        assert!(label(&plot(&play, "Throughput")).contains("at most"), "{choice}");
    }
}

#[test]
fn the_percentile_table_is_the_reports() {
    let mut play = on_latency();
    let expect = |play: &Play, p99: f64| {
        let words = quantity::measured(p99 * 1e6);
        assert!(play.get_all_by_value(&words).count() >= 1, "{words}");
    };
    let latency = play.state().run().report().latency.clone();
    expect(&play, latency.ttft_ms.expect("data").p99);
    expect(&play, latency.itl_ms.expect("data").p99);
    expect(&play, latency.e2e_ms.expect("data").p99);
    play.get_by_label("Measured from: From due").click();
    play.run();
    expect(&play, latency.ttft_from_due_ms.expect("data").p99);
    expect(&play, latency.e2e_from_due_ms.expect("data").p99);
}

fn type_range(play: &mut Play, text: &str) {
    play.get_by_label("Range in seconds").focus();
    play.run();
    play.get_by_label("Range in seconds").type_text(text);
    play.key_press(Key::Enter);
    play.run();
}

#[test]
fn a_range_outside_the_run_says_so_and_stays_typed() {
    let mut play = stage::with(vec![stage::usual()]);
    type_range(&mut play, "9000..9001");
    assert_eq!(play.state().choices().range(), None);
    assert!(reads(&play, "Nothing is there: the run goes from") && reads(&play, "9000..9001"));
}

#[test]
fn a_typed_range_changes_every_number() {
    let mut play = stage::with(vec![stage::usual()]);
    type_range(&mut play, "4..9.5");
    let range = (RunNanos(4_000 * MILLI), RunNanos(9_500 * MILLI));
    let chosen = play.state().choices().range().expect("a range");
    assert_eq!((chosen.start, chosen.end), range);
    let options = ReportOptions { range: Some(range), ..ReportOptions::default() };
    let report = metrics::report(&play.state().run().run, &options);
    let median = quantity::measured(report.latency.ttft_ms.expect("data").p50 * 1e6);
    let found = label(&beginning(&play, Role::Group, "Time to first token: "));
    assert!(found.contains(&median), "{found} has not {median}");
    beginning(&play, Role::Group, "Verdict: The schedule held in this range");
    assert!(reads(&play, "4.00 s to 9.50 s: 5.5 s"));
    let bar = label(&beginning(&play, Role::Image, "Outcomes: "));
    assert!(bar.contains(&format!("{} successful", report.outcomes.ok)), "{bar}");
    play.key_press(Key::Num2);
    play.run();
    let p99 = quantity::measured(report.latency.e2e_ms.expect("data").p99 * 1e6);
    assert!(play.get_all_by_value(&p99).count() >= 1, "{p99}");
    play.get_by_label("Whole run").click();
    play.run();
    assert_eq!(play.state().choices().range(), None);
}

#[test]
fn a_wrong_range_says_what_would_be_right() {
    let mut play = stage::with(vec![stage::usual()]);
    type_range(&mut play, "soon");
    assert!(reads(&play, "for example 12.5..20"));
    assert_eq!(play.state().choices().range(), None);
}

#[test]
fn every_plot_has_a_table_twin() {
    let mut play = stage::with(vec![stage::usual()]);
    for (key, titles) in [
        (Key::Num1, ["Offered and achieved rate", "Requests in flight"]),
        (Key::Num2, ["Time to first token", "Throughput"]),
    ] {
        play.key_press(key);
        play.run();
        for title in titles {
            play.get_by_label(&format!("{title}: show as table")).click();
            play.run();
            let table = play.get_by_role_and_label(Role::Table, title);
            let rows = table.accesskit_node().data().row_count().expect("a count");
            assert!((10..=400).contains(&rows), "{title}: {rows} rows");
            play.get_by_label(&format!("{title}: show as table")).click();
            play.run();
            plot(&play, title);
        }
        play.key_press(Key::T);
        play.run();
        for title in titles {
            play.get_by_role_and_label(Role::Table, title);
        }
        play.key_press(Key::T);
        play.run();
    }
}

#[test]
fn the_sheet_of_keys_opens_and_closes() {
    let mut play = stage::with(vec![stage::usual()]);
    play.key_press(Key::Questionmark);
    play.run();
    play.get_by_label("Keys and mouse, sheet");
    assert!(reads(&play, "choose a range: every number speaks of it"));
    play.key_press(Key::Escape);
    play.run();
    assert!(play.query_by_label("Keys and mouse, sheet").is_none());
    play.get_by_label("Keys and mouse").click();
    play.run();
    play.get_by_label("Keys and mouse, sheet");
}

#[test]
fn keys_do_not_act_while_a_path_is_typed() {
    let mut play = stage::with(vec![stage::usual()]);
    play.key_press_modifiers(Modifiers::COMMAND, Key::O);
    play.run();
    play.key_press(Key::Num2);
    play.key_press(Key::T);
    play.run();
    plot(&play, "Requests in flight");
}

#[test]
fn a_window_of_any_size_is_drawn() {
    let mut play = stage::with(vec![stage::usual()]);
    for size in [(480.0, 360.0), (700.0, 900.0), (1280.0, 720.0), (2560.0, 1440.0)] {
        play.set_size(size.into());
        for key in [Key::Num1, Key::Num2] {
            play.key_press(key);
            play.run();
        }
    }
}
