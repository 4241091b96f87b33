//! The table of requests, the details of one, and the filter that all panels obey.

use eframe::egui::{Key, Modifiers, ThemePreference, accesskit::Role};
use egui_kittest::{
    Node, SnapshotResults,
    kittest::{NodeT as _, Queryable as _},
};
use onbeat_shared::{
    log::{Class, sample, sample::Sample},
    metrics::{self, ReportOptions},
};
use onbeat_viewer::{
    fields::Field, filter::Filter, filter_line::FILTER_FIELD, panels, quantity,
    series::requests::RequestsChoices,
};

use crate::pictures::{THEMES, compare};
use crate::stage::{self, Play, beginning, label, plot, reads};

/// The usual run, on the Requests panel.
pub(crate) fn on_requests(mut play: Play) -> Play {
    let place = panels::named("Requests").expect("a panel");
    play.state_mut().app_mut().show_panel(place);
    play.run();
    play
}

fn play() -> Play {
    on_requests(stage::with(vec![stage::usual()]))
}

fn choices(play: &Play) -> &RequestsChoices {
    &play.state().choices().requests
}

pub(crate) fn type_filter(play: &mut Play, text: &str) {
    play.key_press_modifiers(Modifiers::COMMAND, Key::F);
    play.run();
    play.key_press_modifiers(Modifiers::COMMAND, Key::A);
    play.run();
    play.get_by_label(FILTER_FIELD).type_text(text);
    play.run();
}

fn table<'a>(play: &'a Play, name: &'a str) -> Node<'a> {
    play.get_by_role_and_label(Role::Table, name)
}

fn row_count(play: &Play, name: &str) -> usize {
    table(play, name).accesskit_node().data().row_count().expect("a count")
}

/// The labels of the rows in sight, of all tables, from the top.
fn rows(play: &Play, beginning: &str) -> Vec<String> {
    let rows = play.get_all_by_role(Role::Row).map(|row| label(&row));
    rows.filter(|row| row.starts_with(beginning)).collect()
}

#[test]
fn the_table_has_every_request_and_draws_the_rows_in_sight() {
    let play = play();
    assert_eq!(row_count(&play, "Requests"), 1_000);
    let rows = rows(&play, "No. ");
    assert!((15..40).contains(&rows.len()), "{} rows in sight", rows.len());
    let run = &play.state().run().run;
    for (i, row) in rows.iter().enumerate() {
        assert!(row.starts_with(&format!("No. {i}, ")), "{row}");
        let ttft = Field::Ttft.words(run, i);
        assert_eq!(row.contains("TTFT "), ttft.is_some(), "{row}");
        if let Some(ttft) = ttft {
            assert!(row.contains(&format!("TTFT {ttft}")), "{row}");
        }
    }
}

#[test]
fn headings_sort_the_slowest_first_and_then_the_other_way() {
    let mut play = play();
    let number = |play: &Play| {
        let first = rows(play, "No. ")[0].clone();
        let number = first[4..].split(',').next().expect("a number").to_owned();
        number.parse::<usize>().expect("a number")
    };
    let run = &play.state().run().run;
    let values: Vec<Option<f64>> = (0..1_000).map(|i| Field::Ttft.number(run, i)).collect();
    let by_value = |a: &usize, b: &usize| values[*a].partial_cmp(&values[*b]).expect("numbers");
    let known = || (0..1_000).filter(|&i| values[i].is_some());
    let (slowest, fastest) = (known().max_by(by_value), known().min_by(by_value));
    play.get_by_label("Sort by TTFT").click();
    play.run();
    assert_eq!(Some(number(&play)), slowest);
    play.get_by_label("Sort by TTFT, sorted from the largest").click();
    play.run();
    assert_eq!(Some(number(&play)), fastest, "those without a value are last");
}

#[test]
fn the_keyboard_reaches_every_row_and_the_sessions_others() {
    let mut play = play();
    for (key, chosen) in [
        (Key::ArrowDown, 0),
        (Key::ArrowDown, 1),
        (Key::End, 999),
        (Key::ArrowUp, 998),
        (Key::ArrowDown, 999),
        (Key::ArrowDown, 999),
        (Key::Home, 0),
        (Key::ArrowUp, 0),
    ] {
        play.key_press(key);
        play.run();
        assert_eq!(choices(&play).chosen, Some(chosen), "{key:?}");
        let row = format!("No. {chosen}, ");
        assert!(!rows(&play, &row).is_empty(), "request {chosen} is in sight");
    }
    assert!(!choices(&play).details);
    play.key_press(Key::PageDown);
    play.run();
    assert!(choices(&play).chosen > Some(10));
    play.key_press(Key::Enter);
    play.run();
    assert!(choices(&play).details);
    let chosen = choices(&play).chosen.expect("one");
    let run = &play.state().run().run;
    let session = run.plan[chosen as usize].session;
    let turn = run.plan[chosen as usize].turn;
    let other = |by: i64| {
        let place = |place: &u32| {
            let row = &run.plan[*place as usize];
            row.session == session && i64::from(row.turn) == i64::from(turn) + by
        };
        (0..1_000_u32).find(place)
    };
    let (key, expected) = match other(1) {
        Some(next) => (Key::N, next),
        None => (Key::P, other(-1).expect("sessions have several requests")),
    };
    play.key_press(key);
    play.run();
    assert_eq!(choices(&play).chosen, Some(expected));
    play.key_press(Key::Enter);
    play.run();
    assert!(!choices(&play).details);
    assert!(!play.state().choices().is_zoomed(), "the arrows were the table's");
}

#[test]
fn a_clicked_row_shows_its_waterfall_its_facts_its_session_and_neighbours() {
    let mut play = play();
    let row = rows(&play, "No. 3, ")[0].clone();
    play.get_by_label(&row).click();
    play.run();
    assert!(reads(&play, "Request 3"));
    let run = &play.state().run().run;
    let decode = quantity::measured(metrics::latency::decode_ns(run, 3).expect("data") as f64);
    beginning(&play, Role::ListItem, &format!("decode: {decode}, from "));
    beginning(&play, Role::ListItem, "late: ");
    let session = run.plan[3].session;
    let turns = run.plan.iter().filter(|row| row.session == session).count();
    assert_eq!(row_count(&play, "Turns of the session"), turns);
    assert!((2..=11).contains(&row_count(&play, "Neighbours")));
    for field in [Field::Itl, Field::E2e, Field::CachedShare, Field::Target] {
        let words = field.words(run, 3).unwrap_or_else(|| quantity::NO_DATA_CELL.to_owned());
        assert!(reads(&play, &words), "{field:?}: {words}");
    }
    play.get_by_label("Times of the request: From due").click();
    play.run();
    beginning(&play, Role::ListItem, "late: ");
    play.get_by_label("Close").click();
    play.run();
    assert!(!reads(&play, "Request 3"));
}

#[test]
fn a_request_that_failed_says_what_was_said() {
    let mut play = play();
    type_filter(&mut play, "class == http_429");
    let failed = {
        let run = &play.state().run().run;
        (0..1_000_u32).find(|&i| run.requests.class(i as usize) == Some(Class::Http429))
    };
    let failed = failed.expect("the sample has some");
    let row = rows(&play, &format!("No. {failed}, "))[0].clone();
    play.get_by_label(&row).click();
    play.run();
    assert!(reads(&play, "slow down"));
    beginning(&play, Role::ListItem, "answer: ");
}

#[test]
fn a_request_is_shown_even_when_the_filter_hides_it() {
    let mut play = play();
    type_filter(&mut play, "failed");
    let hidden = {
        let run = &play.state().run().run;
        (0..1_000_u32).find(|&i| run.requests.is_ok(i as usize)).expect("a success")
    };
    play.state_mut().choices_mut().requests.show(hidden);
    play.run();
    assert!(reads(&play, &format!("Request {hidden}")));
    assert!(reads(&play, "does not pass the filter: it is not in the table"));
}

#[test]
fn columns_are_chosen() {
    let mut play = play();
    assert!(play.query_by_label("Sort by Row").is_none());
    play.get_by_label("Columns").click();
    play.run();
    play.get_by_label("Row: line or row of the trace (row)").click();
    play.run();
    assert!(choices(&play).columns.contains(&Field::TraceRow));
    play.get_by_label("Sort by Row");
}

#[test]
fn every_number_speaks_of_what_passes_the_filter() {
    let mut play = stage::with(vec![stage::usual()]);
    type_filter(&mut play, "input > 200 and turn == 0");
    let filter = Filter::parse("input > 200 && turn == 0").expect("a filter");
    let run = &play.state().run().run;
    let passing: Vec<u32> = (0..1_000).filter(|&i| filter.matches(run, i as usize)).collect();
    assert!((1..1_000).contains(&passing.len()), "{}", passing.len());
    let words = format!("{} of 1,000 requests", quantity::count(passing.len() as u64));
    assert!(reads(&play, &words), "{words}");
    let options = ReportOptions { requests: Some(passing.into()), ..ReportOptions::default() };
    let report = metrics::report(run, &options);
    let median = quantity::measured(report.latency.ttft_ms.expect("data").p50 * 1e6);
    let found = label(&beginning(&play, Role::Group, "Time to first token: "));
    assert!(found.contains(&median), "{found} has not {median}");
    beginning(&play, Role::Group, "Verdict: The schedule held for these requests");
    let peak = report.throughput.peak_in_flight.expect("data");
    let flight = label(&plot(&play, "Requests in flight"));
    assert!(!flight.contains("no data") && peak > 0, "{flight}");
    play.get_by_label("Clear the filter of requests").click();
    play.run();
    assert_eq!(play.state().choices().filter, None);
    beginning(&play, Role::Group, "Verdict: The schedule held");
}

/// Nobody's schedule failed where there is no request.
#[test]
fn what_nothing_passes_has_no_verdict() {
    for panel in ["Overview", "Lateness"] {
        let mut play = stage::with(vec![stage::usual()]);
        play.state_mut().app_mut().show_panel(panels::named(panel).expect("a panel"));
        play.run();
        type_filter(&mut play, "ttft > 99min");
        beginning(&play, Role::Group, "Verdict: No request passes the filter");
        assert!(!reads(&play, "did not hold") && !reads(&play, "check the trace"), "{panel}");
        assert!(!reads(&play, "no data of no data"), "{panel}");
    }
}

#[test]
fn a_wrong_filter_says_where_and_leaves_the_last_one() {
    let mut play = play();
    type_filter(&mut play, "ttft > 20ms");
    let passing = row_count(&play, "Requests");
    type_filter(&mut play, "ttft > 20ms && tffft > 1");
    assert!(reads(&play, "No field is called `tffft`; did you mean ttft?"));
    assert!(reads(&play, "Until then: ttft > 20ms"));
    assert_eq!(row_count(&play, "Requests"), passing);
    assert!(passing < 1_000);
}

#[test]
fn the_table_goes_on_where_the_filter_was_left() {
    let mut play = play();
    for key in [Key::Escape, Key::Enter] {
        type_filter(&mut play, "failed");
        play.key_press(key);
        play.run();
        play.key_press(Key::Home);
        play.run();
        let first = {
            let run = &play.state().run().run;
            (0..1_000_u32).find(|&i| metrics::slo::failed(run, i as usize))
        };
        assert_eq!(choices(&play).chosen, first, "{key:?}");
    }
}

#[test]
fn names_are_completed_while_they_are_typed() {
    let mut play = play();
    type_filter(&mut play, "laten");
    play.key_press(Key::Tab);
    play.run();
    assert_eq!(play.state().choices().filter_text, "lateness");
    play.get_by_label(FILTER_FIELD).type_text(" > 0");
    play.run();
    assert_eq!(play.state().choices().filter.as_ref().expect("a filter").text(), "lateness > 0");
}

#[test]
fn an_empty_table_says_why_and_leads_out() {
    let mut play = play();
    type_filter(&mut play, "ttft > 90 min");
    assert!(reads(&play, "No request passes the filter."));
    play.get_by_label("Clear the filter").click();
    play.run();
    assert_eq!(row_count(&play, "Requests"), 1_000);
    let empty = on_requests(stage::with(vec![stage::opened(&Sample::new(), "nothing.beat")]));
    assert!(reads(&empty, "This run has no requests."));
}

#[test]
fn hostile_times_and_windows_of_any_size_are_drawn() {
    let mut sample = Sample::new();
    for (due, sent, end) in [(i64::MIN + 1, i64::MIN + 2, i64::MAX), (7, i64::MAX, 0)] {
        let request = sample.plan(due);
        sample.dispatch(request, due, sent);
        sample.chunks(request, &[sent, end, 0]);
        sample.done(request, end, Class::Ok);
    }
    for run in [stage::opened(&sample, "hostile.beat"), stage::usual()] {
        let mut play = on_requests(stage::with(vec![run]));
        for key in [Key::ArrowDown, Key::Enter, Key::ArrowDown, Key::N, Key::P] {
            play.key_press(key);
            play.run();
        }
        for size in [(480.0, 360.0), (700.0, 900.0), (1280.0, 720.0), (2560.0, 1440.0)] {
            play.set_size(size.into());
            play.run();
        }
    }
}

/// The Requests panel with the details of a request of a longer session.
fn with_details(theme: ThemePreference) -> Play {
    let play = crate::pictures::play(theme, &sample::log(7, 1_200));
    let mut play = on_requests(play);
    play.get_by_label("Sort by TTFT").click();
    play.run();
    for key in [Key::ArrowDown, Key::ArrowDown, Key::ArrowDown, Key::Enter] {
        play.key_press(key);
        play.run();
    }
    play
}

#[test]
fn the_table_and_its_details_look_as_they_did() {
    let mut results = SnapshotResults::new();
    for (theme, name) in THEMES {
        let mut play = with_details(theme);
        results.add(compare(&mut play, &format!("requests-{name}")));
    }
}

#[test]
fn filters_look_as_they_did() {
    let mut results = SnapshotResults::new();
    let light = ThemePreference::Light;
    let play = crate::pictures::play(light, &sample::log(7, 1_200));
    let mut play = on_requests(play);
    type_filter(&mut play, "ttft > 40ms && inptu > 8k");
    results.add(compare(&mut play, "requests-wrong-filter-light"));
    type_filter(&mut play, "ttft > 40ms && session == nobody");
    play.key_press(Key::Enter);
    play.run();
    results.add(compare(&mut play, "requests-empty-light"));
    type_filter(&mut play, "failed || lat");
    results.add(compare(&mut play, "requests-completion-light"));
}
