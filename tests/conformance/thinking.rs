//! The decision on think times that are longer than the gap they fill: cut by default, and counted;
//! kept as kv-cache-tester does where that is asked for. None of the recorded runs has one, so the
//! tool's public traces are read.

use std::path::Path;

use onbeat::plan::script::{Cue, Script};
use onbeat::plan::{ScriptOptions, scripts};
use onbeat::trace::{TraceOptions, read};
use serde_json::Value;

use crate::Item;
use crate::found::{Findings, outcome};
use crate::played::is_agent;
use crate::product::{name, text};

const FOLDER: &str = "data/kv-cache-tester";
const NANOS: f64 = 1e9;
/// What decimal numbers lose as binary ones.
const NEAR_NS: f64 = 1_000.0;

/// One check for each public trace that lies in the folder itself.
pub(crate) fn items(folder: &Path) -> Vec<Item> {
    let files = crate::oracle::traces(&folder.join(FOLDER));
    let files: Vec<_> = files
        .into_iter()
        .filter(|file| name(file).starts_with("trace_") && text(file).ends_with(".json"))
        .collect();
    if files.is_empty() {
        crate::say(&format!("skipped: conformance: there are no traces in {FOLDER}"));
        return Vec::new();
    }
    vec![Item {
        name: "kvct/think-times".to_owned(),
        check: Box::new(move || {
            outcome(|found| {
                let cut: u64 = files.iter().map(|file| check(file, found)).sum();
                found.holds("think times that are cut", cut > 0, cut);
            })
        }),
    }]
}

/// How many think times of a trace are cut, which its waits are compared for.
fn check(file: &Path, found: &mut Findings) -> u64 {
    let json: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap_or_default())
        .unwrap_or_default();
    let own = json["requests"].as_array().into_iter().flatten().filter(|entry| !is_agent(entry));
    let own: Vec<&Value> = own.collect();
    let pairs = own.windows(2).filter_map(|pair| {
        let gap = pair[1]["t"].as_f64()? - pair[0]["t"].as_f64()?;
        Some((gap.max(0.0), pair[1]["think_time"].as_f64()))
    });
    let pairs: Vec<(f64, Option<f64>)> = pairs.collect();
    let long = pairs.iter().filter(|(gap, think)| think.is_some_and(|think| think > *gap)).count();
    let long = u64::try_from(long).expect("few");
    let trace = match read(file, &TraceOptions::default()) {
        Ok(trace) => trace,
        Err(error) => {
            found.wrong(error);
            return 0;
        }
    };
    for clamp_think in [true, false] {
        let most = ScriptOptions::default().max_delay_ns as f64;
        let max_context = u32::MAX;
        let options = ScriptOptions { clamp_think, max_context, ..ScriptOptions::default() };
        let scripts = match scripts(&trace, &options) {
            Ok(scripts) => scripts,
            Err(error) => {
                found.wrong(error);
                return 0;
            }
        };
        let what = format!("{} (think-time clamp: {clamp_think})", name(file));
        let right = |&(gap, think): &(f64, Option<f64>)| {
            let cut = |think: f64| if clamp_think { think.min(gap) } else { think };
            (think.map_or(gap, cut) * NANOS).min(most)
        };
        let right: Vec<f64> = pairs.iter().map(right).collect();
        let waits = waits(&scripts.scripts[0]);
        found.same(format!("waits of {what}"), &right.len(), &waits.len());
        for (at, (right, wait)) in right.iter().zip(&waits).enumerate() {
            let near = (right - wait).abs() < NEAR_NS;
            found.holds(format!("wait {at} of {what}, {right} ns"), near, wait);
        }
        // (Sub-agents of these traces have none.)
        let counted = if clamp_think { long } else { 0 };
        found.same(format!("think times cut of {what}"), &counted, &scripts.clamped);
    }
    long
}

/// What a conversation's own requests wait for, in nanoseconds, its first aside.
fn waits(script: &Script) -> Vec<f64> {
    let own = script.parts.first().map_or(&[][..], |part| &part.cues);
    let turns = own.iter().filter_map(Cue::turn);
    turns.skip(1).map(|turn| turn.wait.ns as f64).collect()
}
