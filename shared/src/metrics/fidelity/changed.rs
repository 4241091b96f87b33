//! Which options made the plan differ from what the trace recorded.
//!
//! A replay is held against its plan. Where an option changed gaps or lengths on purpose, the
//! plan's are not the trace's, and whoever reads the number is told by what. A log that does not
//! keep its configuration names none.

use serde_json::Value;

use crate::run::Run;

/// Options of the schedule that change the gaps between requests.
const GAPS: &[&str] = &[
    "replay_speedup",
    "synthesis_speedup_ratio",
    "max_idle_gap_cap_seconds",
    "trace_session_sample_ratio",
    "max_isl",
    "tile",
];
/// Those that change how long prompts are.
const INPUTS: &[&str] = &["synthesis_prefix_len_multiplier", "synthesis_prompt_len_multiplier"];
/// Those that change how long answers may be.
const OUTPUTS: &[&str] = &["max_osl", "synthesis_output_len_multiplier"];

/// The options that were given, by what they change, with their dashes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Gaps.
    pub gaps: Vec<String>,
    /// Lengths of prompts.
    pub inputs: Vec<String>,
    /// Lengths of answers.
    pub outputs: Vec<String>,
}

impl Changed {
    /// What the log's configuration says.
    pub(super) fn of(run: &Run) -> Self {
        let schedule = &run.manifest.config["schedule"];
        let given = |names: &[&str]| {
            let given = names.iter().filter(|&&name| is_given(&schedule[name]));
            given.map(|name| format!("--{}", name.replace('_', "-"))).collect()
        };
        Self { gaps: given(GAPS), inputs: given(INPUTS), outputs: given(OUTPUTS) }
    }
}

/// Options that nobody typed are null or not there.
fn is_given(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}

/// Behind a number that is the plan's and not the trace's: why it is so.
pub(super) fn words(options: &[String]) -> String {
    match options {
        [] => String::new(),
        _ => format!(" (as planned: {} changed what the trace has)", options.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Fidelity, rows};
    use super::*;
    use crate::log::sample;
    use crate::metrics::selection::Selection;

    #[test]
    fn what_the_plan_changed_is_not_said_to_be_recorded() {
        let mut sample = sample::sample(2, 200);
        sample.manifest.config = serde_json::json!({});
        let told = |sample: &sample::Sample| {
            let run = Run::read(&sample.bytes()).expect("a log");
            rows(&Fidelity::of(&Selection::new(&run, None))).map(|row| row.recorded)
        };
        let plain = told(&sample);
        assert!(plain.iter().all(|words| !words.contains("planned")), "{plain:?}");
        let schedule = serde_json::json!({
            "replay_speedup": "60", "max_osl": 12, "max_idle_gap_cap_seconds": "0.02",
            "tile": null, "synthesis_prompt_len_multiplier": null,
        });
        sample.manifest.config = serde_json::json!({ "schedule": schedule });
        let [gaps, inputs, outputs, cache] = told(&sample);
        let why = " (as planned: --replay-speedup, --max-idle-gap-cap-seconds changed what the \
                   trace has)";
        assert_eq!(gaps, format!("{}{why}", plain[0]));
        let why = " (as planned: --max-osl changed what the trace has)";
        assert_eq!(outputs, format!("{}{why}", plain[2]));
        assert_eq!((inputs, cache), (plain[1].clone(), plain[3].clone()));
    }

    #[test]
    fn every_option_that_changes_a_plan_is_one_that_there_is() {
        let schema = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/manifest.schema.json"));
        for name in [GAPS, INPUTS, OUTPUTS].concat() {
            assert!(schema.contains(&format!("\"{name}\"")), "{name}");
        }
    }
}
