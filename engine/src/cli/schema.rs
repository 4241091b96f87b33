//! JSON Schemas of what this program writes for others: plans, manifests.
//!
//! Generated from declarations: of `shared`'s documents there, of the resolved configuration in
//! them from the options' own declarations here. `onbeat reference` prints them and `cargo x docs`
//! stores them. Nothing here is asked for during a run.

use onbeat_shared::export::schema::{of, of_manifest};
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::flags::body::BodyFlags;
use super::flags::cancel::CancelFlags;
use super::flags::live::LiveFlags;
use super::flags::run::RunFlags;
use super::flags::shard::{ShardFlags, StartFlags};
use super::flags::target::TargetFlags;
use super::flags::timing::TimingFlags;
use super::flags::trace::TraceFlags;
use super::flags::users::UserFlags;
use super::plan::Line;
use super::report::{GoalFlags, SliceFlags};

/// Sections of options that say where something is on the machine, and are in no log.
const FOLDERS: [(&str, &str); 4] = [
    ("trace", "input_file"),
    ("trace", "trace_directory"),
    ("run", "output"),
    ("run", "artifact_dir"),
];

/// The resolved configuration: options as they held, secrets and folders cut out.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only what its types say is asked for")]
struct Config {
    /// The trace.
    trace: TraceFlags,
    /// When requests are due.
    schedule: TimingFlags,
    /// Which requests are given up.
    cancellations: CancelFlags,
    /// Users of an agentic trace.
    users: UserFlags,
    /// The servers and the way to them.
    server: TargetFlags,
    /// The servers' addresses that were reached; a host may have several.
    addresses: Vec<String>,
    /// What requests say.
    requests: BodyFlags,
    /// Goals of a good request.
    goals: GoalFlags,
    /// Slices of the report.
    slices: SliceFlags,
    /// How the run is carried out.
    run: RunFlags,
    /// What is to be seen of it while it goes.
    live: LiveFlags,
    /// Several machines.
    machines: Machines,
}

/// Options of runs on several machines.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only what its types say is asked for")]
struct Machines {
    /// Which part of the plan.
    shard: ShardFlags,
    /// When its zero is.
    start: StartFlags,
}

/// The schema of a line of `onbeat plan`.
#[must_use]
pub(super) fn plan() -> Value {
    let mut schema = of::<Line<'static>>(
        "a line of onbeat plan",
        "One planned request; what is not known is null.",
    );
    schema["properties"]["body"] = json!({
        "description": "The body as it would be sent; only with --bodies. Null stands in it where \
                        a reply of the server would.",
    });
    schema
}

/// The schema of a run log's manifest, with that of the configuration in the place of any value.
#[must_use]
pub(super) fn manifest() -> Value {
    let mut schema = of_manifest().clone();
    let mut config = config();
    let definitions = config["$defs"].take();
    for (name, definition) in definitions.as_object().into_iter().flatten() {
        let mine = &mut schema["$defs"][name];
        assert!(mine.is_null() || mine == definition, "{name} is the name of two types");
        *mine = definition.clone();
    }
    let said = &mut schema["properties"]["config"];
    let description = said["description"].take();
    let mut rules = json!({
        "description": description,
        "anyOf": [{"$ref": "#/$defs/Config"}, {"type": "null"}],
    });
    std::mem::swap(said, &mut rules);
    if let Some(rules) = config.as_object_mut() {
        for of_a_document in ["$defs", "$schema", "title"] {
            rules.shift_remove(of_a_document);
        }
    }
    schema["$defs"]["Config"] = config;
    schema
}

/// The schema of the configuration, which is what the options are but for folders.
fn config() -> Value {
    let mut schema = of::<Config>(
        "the resolved configuration of a run",
        "Options as they held, secrets and folders cut out; null in a log that lost it.",
    );
    for (section, option) in FOLDERS {
        let reference = &schema["properties"][section]["$ref"];
        let path = reference.as_str().expect("a section is a type").trim_start_matches('#');
        let path = path.to_owned();
        let flags = schema.pointer_mut(&path).expect("it is defined");
        if let Some(properties) = flags["properties"].as_object_mut() {
            properties.shift_remove(option);
        }
        if let Some(required) = flags["required"].as_array_mut() {
            required.retain(|name| name != option);
        }
    }
    schema
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::Path;

    use clap::Parser;
    use onbeat_shared::export::schema::faults::faults;
    use onbeat_shared::log::sample;
    use onbeat_shared::run::Run;

    use super::super::{Cli, Command};
    use super::*;

    const TRACE: &str = "\
        {\"chat_id\":7,\"parent_chat_id\":-1,\"timestamp\":1.5,\"input_length\":20,\
        \"output_length\":4,\"turn\":1,\"hash_ids\":[3,18446744073709551615]}\n\
        {\"chat_id\":8,\"parent_chat_id\":7,\"timestamp\":2,\"input_length\":2,\
        \"output_length\":0,\"turn\":2}\n";

    fn typed(line: &str) -> Command {
        let words = ["onbeat"].into_iter().chain(line.split_whitespace());
        Cli::try_parse_from(words).expect(line).command
    }

    fn planned(path: &Path, options: &str) -> Vec<Value> {
        let line = format!("plan {} {options}", path.display());
        let Command::Plan(args) = typed(&line) else { panic!("{line}") };
        let mut out = Vec::new();
        super::super::plan::run(&args, &mut out).expect(&line);
        let text = String::from_utf8(out).expect("text");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    #[test]
    fn plans_are_what_their_schema_says() {
        let mut file = tempfile::Builder::new().suffix(".jsonl").tempfile().expect("a file");
        file.write_all(TRACE.as_bytes()).expect("written");
        let agents = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conversations");
        let mut lines = planned(&agents, "");
        for options in ["", "--bodies --model m", "--tile 2", "--request-cancellation-rate 50"] {
            lines.extend(planned(file.path(), options));
        }
        assert!(lines.len() > 20);
        let schema = plan();
        for line in &lines {
            assert_eq!(faults(&schema, line), Vec::<String>::new(), "{line}");
        }
        for name in ["copy", "cancel_after_ns", "also_after", "body"] {
            assert!(lines.iter().any(|line| line.get(name).is_some()), "no line has {name}");
        }
        let mut odd = lines[0].clone();
        odd["odd"] = Value::Null;
        assert_eq!(faults(&schema, &odd), ["it.odd is not declared"]);
    }

    #[test]
    fn configurations_are_what_their_schema_says() {
        let run = Run::read(&sample::log(2, 40)).expect("a log");
        let mut manifest_json = serde_json::to_value(&run.manifest).expect("JSON");
        let mut file = tempfile::Builder::new().suffix(".jsonl").tempfile().expect("a file");
        file.write_all(TRACE.as_bytes()).expect("written");
        let path = file.path().display();
        let manifest = manifest();
        for options in [
            "",
            "--url http://a:1 --url http://b:2/v1 --cacert c.pem --local-address 127.0.0.1",
            "--api-key secret --header X-A:b --extra-inputs n:1 --temperature 0.5 --endpoint /x",
            "--replay-speedup 2 --arrival-pattern poisson --request-rate 5 --cores 2 --seed 7",
            "--shard 1/3 --start-at +10m --max-clock-error any --goodput ttft:5",
            "--request-cancellation-rate 5 --slice-duration 2 --max-delay 3 --ttft-metric avg",
            "--prometheus-port 0 --scrape http://127.0.0.1:9 --custom-dataset-type mooncake_trace",
        ] {
            let line = format!("replay {path} {options}");
            let Command::Replay(args) = typed(&line) else { panic!("{line}") };
            let config = args.config().expect(&line).config;
            // As a replay writes it, once it has reached its servers.
            manifest_json["config"] = crate::net::reach::resolved(config, &[]);
            assert_eq!(faults(&manifest, &manifest_json), Vec::<String>::new(), "{line}");
        }
        manifest_json["config"]["run"]["output"] = "here".into();
        let told = faults(&manifest, &manifest_json).join("\n");
        assert!(told.contains("anyOf"), "what is not declared is found: {told}");
        manifest_json["config"] = Value::Null;
        assert_eq!(faults(&manifest, &manifest_json), Vec::<String>::new());
    }
}
