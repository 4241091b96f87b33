//! What was run that is not the same in two runs: before anybody believes a difference.
//!
//! Facts of the manifests, and every option of the resolved configurations by its place there.
//! What the logs do not tell cannot be told.

use serde::Serialize;
use serde_json::Value;

use crate::log::Manifest;
use crate::run::Run;

/// Most differing options that are told one by one.
pub(super) const OPTIONS_MAX: usize = 40;

/// One thing that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Differs {
    /// What it is.
    pub what: String,
    /// In the base run; empty where it has none.
    pub base: String,
    /// In the new run.
    pub new: String,
}

/// What differs, facts first. Beyond `OPTIONS_MAX` options the rest is not told.
#[must_use]
pub fn setup(base: &Run, new: &Run) -> Vec<Differs> {
    let pairs = facts(base).into_iter().zip(facts(new));
    let differs = |(what, base, new): (String, String, String)| {
        (base != new).then_some(Differs { what, base, new })
    };
    let facts = pairs.filter_map(|((what, base), (_, new))| differs((what.to_owned(), base, new)));
    let mut options = Vec::new();
    gather("", &base.manifest.config, &new.manifest.config, &mut options);
    options.truncate(OPTIONS_MAX);
    facts.chain(options).collect()
}

fn facts(run: &Run) -> [(&'static str, String); 12] {
    let Manifest { trace, host, pacing, .. } = &run.manifest;
    let manifest = &run.manifest;
    [
        ("trace", trace.name.clone()),
        ("trace SHA-256", trace.sha256.chars().take(12).collect()),
        ("requests planned", run.plan.len().to_string()),
        ("mode", manifest.mode.clone()),
        ("model", manifest.model.clone()),
        ("targets", manifest.targets.join(", ")),
        ("endpoint", manifest.endpoint.clone()),
        ("host", host.hostname.clone()),
        ("cores", manifest.cores.len().to_string()),
        ("pacing", pacing.kind.clone()),
        ("driver", manifest.driver.clone()),
        ("Onbeat", manifest.onbeat_version.clone()),
    ]
}

/// Options that differ, depth first.
fn gather(path: &str, base: &Value, new: &Value, found: &mut Vec<Differs>) {
    if base == new {
        return;
    }
    let (Value::Object(one), Value::Object(other)) = (base, new) else {
        let shown = |value: &Value| match value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let what = format!("option {path}");
        found.push(Differs { what, base: shown(base), new: shown(new) });
        return;
    };
    let names = one.keys().chain(other.keys().filter(|name| !one.contains_key(*name)));
    for name in names {
        let at = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let of = |from: &serde_json::Map<String, Value>| from.get(name).cloned();
        let (one, other) = (of(one).unwrap_or_default(), of(other).unwrap_or_default());
        gather(&at, &one, &other, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::sample;

    #[test]
    fn facts_and_options_that_differ_are_told_and_no_others() {
        let mut sample = sample::sample(1, 5);
        sample.manifest.config = serde_json::json!({"requests": {"seed": 1, "model": "m"}});
        let base = Run::read(&sample.bytes()).expect("a log");
        assert!(setup(&base, &base).is_empty());
        sample.manifest.driver = "epoll".to_owned();
        sample.manifest.config = serde_json::json!({"requests": {"seed": 2, "model": "m"},
            "run": {"cores": [1, 2]}});
        let new = Run::read(&sample.bytes()).expect("a log");
        let found = setup(&base, &new);
        let told: Vec<_> = found.iter().map(|one| [&*one.what, &*one.base, &*one.new]).collect();
        assert_eq!(
            told,
            [
                ["driver", "io_uring", "epoll"],
                ["option requests.seed", "1", "2"],
                ["option run", "", "{\"cores\":[1,2]}"],
            ]
        );
    }
}
