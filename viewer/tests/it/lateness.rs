//! The Lateness panel: the verdict and its bar, who was late and why, and how it looks.

use eframe::egui::{Key, ThemePreference, accesskit::Role};
use egui_kittest::{SnapshotResults, kittest::Queryable as _};
use onbeat_shared::{
    log::sample::{self, Sample},
    metrics::{client_part::ClientShare, cores, lateness::lateness_ns},
};
use onbeat_viewer::{opened::OpenedRun, panels, quantity};

use crate::pictures;
use crate::stage::{self, Play, beginning, label, plot, reads};

fn show(run: OpenedRun) -> Play {
    let mut play = stage::with(vec![run]);
    let panel = panels::named("Lateness").expect("a panel");
    play.state_mut().app_mut().show_panel(panel);
    play.run();
    play
}

#[test]
fn the_verdict_stands_with_its_bar_and_the_six_numbers() {
    let play = show(stage::usual());
    let report = play.state().run().report();
    let verdict = label(&beginning(&play, Role::Group, "Verdict: The schedule held"));
    assert!(verdict.contains("The bar: 99 % of requests outside host stalls within 1 ms"));
    let late = report.schedule.lateness_us.as_ref().expect("some left");
    let card = label(&beginning(&play, Role::Group, "Lateness: median"));
    assert!(card.contains(&quantity::measured(late.p50 * 1e3)), "{card}");
    let run = &play.state().run().run;
    let ok = (0..run.requests.len()).filter(|&i| run.requests.is_ok(i));
    let client = ClientShare::of(run, ok);
    let card = label(&beginning(&play, Role::Group, "Client's part of TTFT: "));
    assert!(card.contains(&quantity::percent(client.p99.expect("known"))), "{card}");
    let stalls = label(&beginning(&play, Role::Group, "Host stalls: "));
    let all = run.stalls.all().len() as u64;
    assert!(stalls.contains(&quantity::count(all)), "{stalls}");
}

#[test]
fn a_schedule_that_did_not_hold_says_why() {
    let mut sample = Sample::new();
    for k in 0..200 {
        let due = k * 10_000_000;
        let request = sample.plan(due);
        sample.dispatch(request, due, due + 5_000_000);
    }
    let play = show(stage::opened(&sample, "late.beat"));
    beginning(&play, Role::Group, "Verdict: The schedule did not hold");
    for reason in &play.state().run().report().verdict.reasons {
        assert!(reads(&play, &quantity::sentence(reason)), "{reason}");
    }
    let beyond = label(&beginning(&play, Role::Group, "Beyond the bar: "));
    assert!(beyond.contains("200"), "{beyond}");
}

#[test]
fn plots_tell_the_latest_request_and_have_tables() {
    let mut play = show(stage::usual());
    let run = &play.state().run().run;
    let latest = (0..run.requests.len()).filter_map(|i| lateness_ns(run, i)).max();
    let words = quantity::measured(latest.expect("some left") as f64);
    assert!(label(&plot(&play, "Lateness over time")).contains(&words));
    assert!(label(&plot(&play, "Spread of lateness")).contains(&words));
    play.get_by_label("Spread of lateness: Percentiles").click();
    play.run();
    assert!(label(&plot(&play, "Spread of lateness")).contains(&words));
    play.key_press(Key::T);
    play.run();
    for heading in ["sent from", "longest stall", "share within"] {
        assert!(reads(&play, heading), "{heading}");
    }
}

#[test]
fn stalls_cores_ttft_and_clock_stand_beside() {
    let mut play = show(stage::opened(&sample::sample(5, 400), "hit.beat"));
    let run = &play.state().run().run;
    let longest = run.stalls.all().iter().map(|stall| stall.length_ns).max().expect("stalls");
    let hit = cores::stall_hits(run, 0..run.requests.len());
    assert!(hit.iter().any(|&hit| hit > 0));
    play.get_by_label("Order of stalls: Length").click();
    play.run();
    assert!(reads(&play, &quantity::measured(longest as f64)));
    for (tab, words) in [
        ("Beside: Cores", "stalled"),
        ("Beside: TTFT", "An upper bound: each part counts in full"),
        ("Beside: Clock", "spin: polls all the time"),
    ] {
        play.get_by_label(tab).click();
        play.run();
        assert!(reads(&play, words), "{tab}");
    }
}

#[test]
fn machines_of_a_merged_run_stand_beside() {
    let mut sample = sample::sample(5, 200);
    sample.merge(&[0, 1]);
    let mut play = show(stage::opened(&sample, "run.beat"));
    play.get_by_label("Beside: Hosts").click();
    play.run();
    for words in ["clock within", "0: node-0", "1: node-1"] {
        assert!(reads(&play, words), "{words}");
    }
    let alone = show(stage::usual());
    assert!(alone.query_by_label("Beside: Hosts").is_none());
}

#[test]
fn a_run_of_nothing_has_words() {
    let play = show(stage::opened(&Sample::new(), "nothing.beat"));
    assert!(label(&plot(&play, "Lateness over time")).contains("no data"));
    assert!(label(&beginning(&play, Role::Group, "Lateness: ")).contains("no data"));
    assert!(reads(&play, "No host stall"));
}

#[test]
fn it_looks_as_it_did() {
    let mut results = SnapshotResults::new();
    for (theme, name) in pictures::THEMES {
        let mut play = pictures::play(theme, &sample::log(5, 1_200));
        let panel = panels::named("Lateness").expect("a panel");
        play.state_mut().app_mut().show_panel(panel);
        play.run();
        results.add(pictures::compare(&mut play, &format!("lateness-{name}")));
    }
}

#[test]
fn its_other_views_look_as_they_did() {
    let bytes = sample::log(5, 1_200);
    let mut play = pictures::play(ThemePreference::Light, &bytes);
    let panel = panels::named("Lateness").expect("a panel");
    play.state_mut().app_mut().show_panel(panel);
    play.run();
    let mut results = SnapshotResults::new();
    for (choices, name) in [
        (["Spread of lateness: Percentiles", "Beside: TTFT"], "client"),
        (["Scale of lateness: Linear", "Beside: Cores"], "cores"),
        (["Spread of lateness: Histogram", "Beside: Clock"], "clock"),
    ] {
        for choice in choices {
            play.get_by_label(choice).click();
            play.run();
        }
        results.add(pictures::compare(&mut play, &format!("lateness-{name}-light")));
    }
}
