//! JSON Schemas of what programs read, generated from the types that are written.
//!
//! A key, its type and its meaning are said once, where the field is declared; `cargo x docs`
//! stores what comes of it, and a test holds real documents against it. An object has exactly the
//! keys that are declared, of this very version: one that is added appears here by itself. A number
//! that may be unknown may be null. This file changes only the form: links become plain words, and
//! numbers lose the names of Rust's types.

pub mod faults;

use std::sync::OnceLock;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::log::Manifest;
use crate::metrics::compare::{self, Comparison};
use crate::metrics::{Report, report};

/// The schema of `onbeat report --format json`.
#[must_use]
pub fn of_report() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let mut schema = of::<Report>(
            "onbeat report --format json",
            "Numbers of one run. Every number has its unit in its name; a number without data is \
             null, never 0.",
        );
        let version = &mut schema["properties"]["schema_version"];
        *version = json!({"const": report::SCHEMA_VERSION});
        schema
    })
}

/// The schema of `onbeat compare --format json`.
#[must_use]
pub fn of_comparison() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let mut schema = of::<Comparison>(
            "onbeat compare --format json",
            "What differs between runs. A figure without data is null, never 0.",
        );
        let version = &mut schema["properties"]["schema_version"];
        *version = json!({"const": compare::SCHEMA_VERSION});
        schema
    })
}

/// The schema of a run log's manifest: what a run was asked to do, and where.
#[must_use]
pub fn of_manifest() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        of::<Manifest>(
            "manifest of an onbeat run log",
            "What a run was asked to do, and where. Keys that say nothing of a run are not there.",
        )
    })
}

/// The schema of what a type writes.
#[must_use]
pub fn of<T: JsonSchema>(title: &str, description: &str) -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut generated = settings.into_generator().into_root_schema_for::<T>().to_value();
    plain(&mut generated);
    let mut schema = json!({
        "$schema": generated["$schema"].take(),
        "title": title,
        "description": description,
    });
    for (rule, said) in generated.as_object_mut().into_iter().flatten() {
        if schema.get(rule).is_none() {
            schema[rule] = said.take();
        }
    }
    schema
}

/// Says in a schema what is meant, in words for readers of JSON.
fn plain(schema: &mut Value) {
    match schema {
        Value::Object(rules) => {
            plain_rules(rules);
            for (rule, said) in rules {
                match said {
                    // What is in these are names, not rules.
                    Value::Object(named) if ["properties", "$defs"].contains(&rule.as_str()) => {
                        named.values_mut().for_each(plain);
                    }
                    said => plain(said),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(plain),
        _ => {}
    }
}

fn plain_rules(rules: &mut Map<String, Value>) {
    if let Some(Value::String(words)) = rules.get_mut("description") {
        *words = words.replace("[`", "`").replace("`]", "`").replace('\n', " ");
    }
    for of_rust in ["format", "default"] {
        rules.shift_remove(of_rust);
    }
    // A struct; what maps hold is said of their values.
    if rules.contains_key("properties") {
        rules.entry("additionalProperties").or_insert(Value::Bool(false));
    }
}

#[cfg(test)]
mod tests {
    use super::faults::faults;
    use super::*;
    use crate::log::sample::{self, Sample};
    use crate::log::sample_users;
    use crate::metrics::slo::Goals;
    use crate::metrics::{ReportOptions, report};
    use crate::run::Run;

    fn runs() -> Vec<Run> {
        let mut partly = sample::sample(4, 300);
        partly.closed = false;
        let samples = [
            sample::log(4, 300),
            partly.bytes(),
            Sample::new().bytes(),
            sample_users::log(4, 8),
            sample_users::empty(1_000_000).bytes(),
        ];
        samples.iter().map(|log| Run::read(log).expect("a log")).collect()
    }

    fn all_options() -> Vec<ReportOptions> {
        let slo = Some(Goals::parse("ttft:200 itl:12 decode_tps:20").expect("goals"));
        let goals = ReportOptions { slo, ..ReportOptions::default() };
        let sliced = ReportOptions { slice_ns: Some(500_000_000), ..goals.clone() };
        vec![ReportOptions::default(), goals, sliced]
    }

    #[test]
    fn reports_are_what_their_schema_says() {
        for run in runs() {
            for options in all_options() {
                let json = serde_json::to_value(report(&run, &options)).expect("JSON");
                assert_eq!(faults(of_report(), &json), Vec::<String>::new());
            }
        }
    }

    #[test]
    fn the_stored_schemas_are_those_of_the_types() {
        let report = include_str!("../../../report.schema.json");
        let comparison = include_str!("../../../compare.schema.json");
        for (stored, own) in [(report, of_report()), (comparison, of_comparison())] {
            let stored: Value = serde_json::from_str(stored).expect("JSON");
            assert!(stored == *own, "{} is stale: cargo x docs writes it", own["title"]);
        }
    }

    #[test]
    fn manifests_are_what_their_schema_says() {
        for run in runs() {
            let json = serde_json::to_value(&run.manifest).expect("JSON");
            assert_eq!(faults(of_manifest(), &json), Vec::<String>::new());
        }
        let bare = serde_json::to_value(Manifest::lost(3)).expect("JSON");
        assert_eq!(faults(of_manifest(), &bare), Vec::<String>::new());
    }

    #[test]
    fn what_is_not_declared_is_missing_or_of_another_type_is_found() {
        let run = Run::read(&sample::log(4, 300)).expect("a log");
        let sound = serde_json::to_value(report(&run, &ReportOptions::default())).expect("JSON");
        let edit = |path: &str, edit: &dyn Fn(&mut Map<String, Value>)| {
            let mut json = sound.clone();
            edit(json.pointer_mut(path).and_then(Value::as_object_mut).expect(path));
            faults(of_report(), &json)
        };
        for path in ["", "/run", "/run/host", "/latency/ttft_ms", "/notes", "/cache"] {
            let found = edit(path, &|fields| drop(fields.insert("odd".to_owned(), Value::Null)));
            let told = found.join("\n");
            // In a choice (a statistic or null) the choice as a whole is told.
            assert!(
                told.contains(".odd is not declared") || told.contains("anyOf"),
                "{path}: {told}"
            );
        }
        for (path, key) in [("", "verdict"), ("/latency", "ttft_ms"), ("/run/trace", "sha256")] {
            let found = edit(path, &|fields| drop(fields.shift_remove(key)));
            assert!(found.join("\n").contains("required"), "{path}/{key}: {found:?}");
        }
        for (path, key, value) in [
            ("", "schema_version", json!(999)),
            ("/schedule", "planned", json!(null)),
            ("/schedule", "planned", json!(-1)),
            ("/schedule", "planned", json!(1.5)),
            ("/cache", "reported_hit_rate", json!("0.5")),
            ("/outcomes/by_class", "ok", json!("many")),
        ] {
            let change = |fields: &mut Map<String, Value>| {
                assert!(fields.insert(key.to_owned(), value.clone()).is_some(), "{path}/{key}");
            };
            assert!(!edit(path, &change).is_empty(), "{path}/{key}: {value}");
        }
        let unknown = edit("/cache", &|fields| {
            fields.insert("reported_hit_rate".to_owned(), Value::Null);
        });
        assert_eq!(unknown, Vec::<String>::new(), "unknown is null");
    }

    #[test]
    fn every_key_says_what_it_means_in_plain_words() {
        fn silent(schema: &Value, at: &str, found: &mut Vec<String>) {
            for (name, value) in schema["properties"].as_object().into_iter().flatten() {
                let says = value.get("description").is_some() || value.get("const").is_some();
                if !says {
                    found.push(format!("{at}.{name}"));
                }
            }
            let defs = schema["$defs"].as_object();
            for (name, value) in defs.into_iter().flatten() {
                silent(value, name, found);
            }
        }
        for schema in [of_report(), of_manifest()] {
            let mut found = Vec::new();
            silent(schema, "", &mut found);
            assert_eq!(found, Vec::<String>::new());
            let text = schema.to_string();
            assert!(!text.contains("[`") && !text.contains("uint"), "{text}");
        }
    }
}
