//! Results of other tools: what their files do not tell is missing, and nothing is made up.

use eframe::egui::accesskit::Role;
use egui_kittest::kittest::Queryable as _;
use onbeat_shared::import::{self, Kind};
use onbeat_viewer::{
    opened::{OpenedRun, Stand},
    panels,
};

use crate::stage::{self, Play, beginning, label, reads};

/// Two requests as AIPerf lists them.
fn aiperf() -> OpenedRun {
    let record = |start: u64| {
        format!(
            "{{\"metadata\":{{\"credit_issued_ns\":{},\"request_start_ns\":{start},\
             \"request_end_ns\":{}}},\"metrics\":{{}}}}\n",
            start - 3_000_000,
            start + 40_000_000
        )
    };
    let text = record(1_000_000_000) + &record(1_200_000_000);
    let run = import::read(Kind::AiperfRecords, "records.jsonl", text.as_bytes(), &|_| true);
    let run = run.expect("two records");
    assert_eq!(import::measured_by(&run), Some("AIPerf"));
    OpenedRun::standing("records.jsonl".into(), 99, run, Stand::Complete)
}

fn shown(panel: &str) -> Play {
    let mut play = stage::with(vec![aiperf()]);
    play.state_mut().app_mut().show_panel(panels::named(panel).expect("a panel"));
    play.run();
    play
}

#[test]
fn the_verdict_is_that_there_is_none() {
    for panel in ["Overview", "Lateness"] {
        let play = shown(panel);
        beginning(&play, Role::Group, "Verdict: Nobody can tell how late it was");
        assert!(reads(&play, "its file does not say when requests were scheduled"));
        assert!(!reads(&play, "did not hold") && !reads(&play, "They left within"), "{panel}");
        assert!(!reads(&play, "1 core"), "nobody knows how many");
    }
}

#[test]
fn host_stalls_are_missing_not_none() {
    let mut play = shown("Lateness");
    let card = label(&beginning(&play, Role::Group, "Host stalls: "));
    assert!(card.contains("no data"), "{card}");
    let card = label(&beginning(&play, Role::Group, "Outside host stalls: "));
    assert!(card.contains("no data"), "{card}");
    assert!(reads(&play, "AIPerf's file does not say when its host stalled"));
    assert!(reads(&play, "host stalls not known"));
    play.get_by_label("Beside: Cores").click();
    play.run();
    assert!(reads(&play, "AIPerf's file does not say which core sent what"));
}

#[test]
fn users_are_unknown_not_none() {
    let play = shown("Users");
    assert!(reads(&play, "No data about users"));
    assert!(!reads(&play, "has no users"));
}
