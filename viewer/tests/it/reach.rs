//! Everything that the mouse can press, the tabulator reaches, in every panel.

use std::collections::BTreeSet;

use eframe::egui::{Key, accesskit::Role};
use egui_kittest::kittest::NodeT as _;
use onbeat_shared::log::{sample, sample_users};
use onbeat_viewer::{opened::OpenedRun, panels::PANELS};

use crate::stage::{self, Play};

/// Presses of the tabulator after which it must have been everywhere.
const PRESSES: usize = 250;

/// What can be pressed, chosen, typed into or gone over with keys, by role and name.
fn controls(play: &Play) -> BTreeSet<String> {
    let can = |role| {
        matches!(
            role,
            Role::Button
                | Role::CheckBox
                | Role::RadioButton
                | Role::ComboBox
                | Role::TextInput
                | Role::Tab
                | Role::Link
                | Role::Grid
                | Role::ColumnHeader
                | Role::Slider
        )
    };
    let nodes = play.root().children_recursive();
    let shown = nodes.filter(|node| {
        let node = node.accesskit_node();
        can(node.role()) && !node.is_disabled() && !node.is_hidden()
    });
    shown.map(|node| named(&node)).collect()
}

fn named(node: &egui_kittest::Node<'_>) -> String {
    let node = node.accesskit_node();
    format!("{:?} {}", node.role(), node.label().or(node.value()).unwrap_or_default())
}

/// Those of the controls that the tabulator never comes to.
fn missed(play: &mut Play) -> BTreeSet<String> {
    let mut missed = controls(play);
    for _ in 0..PRESSES {
        if missed.is_empty() {
            break;
        }
        play.key_press(Key::Tab);
        play.step();
        let focused = play.root().children_recursive().find(egui_kittest::Node::is_focused);
        if let Some(focused) = focused {
            missed.remove(&named(&focused));
        }
    }
    missed
}

fn every_control_is_reached(make: fn() -> Vec<OpenedRun>) {
    for (place, panel) in PANELS.iter().enumerate() {
        let mut play = stage::with(make());
        play.state_mut().app_mut().show_panel(place);
        play.run();
        let missed = missed(&mut play);
        assert!(missed.is_empty(), "{}: never focused: {missed:#?}", panel.name);
    }
}

fn small() -> OpenedRun {
    stage::opened(&sample::sample(7, 60), "sample.beat")
}

#[test]
fn every_control_of_a_scheduled_run_is_reached() {
    every_control_is_reached(|| vec![small()]);
}

#[test]
fn every_control_of_a_run_with_users_beside_another_is_reached() {
    every_control_is_reached(|| {
        vec![small(), stage::of_bytes(&sample_users::log(3, 8), "users.beat")]
    });
}
