//! The numbers that a gate may be about: those of the JSON report, by its own schema.
//!
//! A number is named by its place in the report (`latency.ttft_ms.p99`) or by the end of that which
//! only one has (`ttft_ms.p99`); where several end alike, the one of the report's main sections is
//! meant. What is no number of a report is refused with what is near.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::log::Class;

/// The report's own description, from which the names are.
const SCHEMA: &str = include_str!("../../../report.schema.json");
/// Stands in a place for any name.
const ANY: &str = "*";
/// Sections whose numbers are meant where others have some of the same name.
const MAIN: [&str; 9] = [
    "latency",
    "schedule",
    "outcomes",
    "tokens",
    "throughput",
    "concurrency",
    "cache",
    "slo",
    "fidelity",
];
/// Numbers from 0 to 1: parts of a whole.
const SHARES: [&str; 19] = [
    "verdict.left_out.share",
    "outcomes.error_rate",
    "cache.ideal_hit_rate",
    "cache.ideal_set_overlap_rate",
    "cache.reported_hit_rate",
    "slo.met.*.share",
    "slo.goodput_share",
    "slo.effective_goodput_share",
    "fidelity.cache.ideal_hit_rate",
    "fidelity.cache.reported_hit_rate",
    "fidelity.cache.recorded_hit_rate",
    "users.cache.ideal_hit_rate",
    "users.cache.ideal_set_overlap_rate",
    "users.cache.reported_hit_rate",
    "users.slo.ttft_share",
    "users.slo.decode_share",
    "users.slo.goodput_share",
    "users.slo.effective_ttft_share",
    "users.slo.effective_goodput_share",
];
/// Shares of what was recorded.
const EXCESSES: [&str; 4] = [
    "fidelity.arrival_error",
    "fidelity.input_length_error",
    "fidelity.output_length_error",
    "fidelity.cache_error",
];
/// How many near names are told.
const NEAR_MAX: usize = 4;

/// One wrong letter in so many is a slip, up to the number below it.
const LETTERS_FOR_ONE: usize = 5;
const WRONG_LETTERS_MAX: usize = 3;

/// A number's place in the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    names: Vec<String>,
    /// The schema says that its values are whole.
    is_whole: bool,
}

impl Place {
    /// The place that a name means.
    ///
    /// # Errors
    /// In words, with what is near, if it means none or several.
    pub(super) fn of(name: &str) -> Result<Self, String> {
        let typed: Vec<&str> = name.split('.').collect();
        let known = known();
        let found: Vec<Self> = known.iter().filter_map(|place| place.named(&typed)).collect();
        let main = || found.iter().filter(|place| place.is_main());
        // Of a number and the part of a table that repeats it, the number.
        let least = main().map(|place| place.names.len()).min().unwrap_or(0);
        let main: Vec<&Self> = main().filter(|place| place.names.len() == least).collect();
        match (main.as_slice(), found.as_slice()) {
            ([one], _) => Ok((*one).clone()),
            // Elsewhere a bare word is too easily another number than the one that was meant.
            ([], [one]) if typed.len() > 1 => Ok(one.clone()),
            ([], [_, ..]) if typed.len() < 2 && near(&typed, &known).is_empty() => Err(format!(
                "{name:?} alone is too little; right would be its whole place: {}",
                places(found.iter())
            )),
            ([], [_, ..]) if typed.len() < 2 => Err(unknown(name, &typed, &known)),
            ([], []) => Err(unknown(name, &typed, &known)),
            ([], several) => Err(several_are(name, several.iter())),
            (several, _) => Err(several_are(name, several.iter().copied())),
        }
    }

    /// This place, if its end is what was typed; a name that stands for any is filled in.
    fn named(&self, typed: &[&str]) -> Option<Self> {
        let from = self.names.len().checked_sub(typed.len())?;
        let fits = |(own, typed): (&String, &&str)| own == typed || own == ANY;
        // Only what follows a name of our own may be any name.
        if self.names[from] == ANY || !self.names[from..].iter().zip(typed).all(fits) {
            return None;
        }
        let own = self.names[..from].iter().map(String::as_str);
        let names = own.chain(typed.iter().copied()).map(str::to_owned).collect();
        let place = Self { names, is_whole: self.is_whole };
        let is_known = |name: &str| Class::ALL.iter().any(|class| class.name() == name);
        let is_class = place.names.get(1).is_some_and(|name| name == "by_class");
        (!is_class || place.names.last().is_some_and(|name| is_known(name))).then_some(place)
    }

    pub(super) fn is_main(&self) -> bool {
        self.names.first().is_some_and(|section| MAIN.contains(&section.as_str()))
    }

    /// Its value in a report's JSON; `None` where the report has none. A cause that did not occur
    /// did so no times.
    pub(super) fn value(&self, report: &Value) -> Option<f64> {
        let value = report.pointer(&format!("/{}", self.names.join("/")));
        let absent = self.names.get(1).is_some_and(|name| name == "by_class").then_some(0.0);
        value.map_or(absent, Value::as_f64)
    }

    /// Whether it is a share of one, or of what was recorded, so that a limit may be given in per
    /// cent. Names in full decide: counts of errors are called as if they were shares.
    pub(super) fn is_share(&self) -> bool {
        self.is_excess() || self.is_in(&SHARES)
    }

    /// Whether it is a share of what was recorded, which may be more than all of that.
    pub(super) fn is_excess(&self) -> bool {
        self.is_in(&EXCESSES)
    }

    /// Whether its values are whole, as counts are.
    pub(super) const fn is_whole(&self) -> bool {
        self.is_whole
    }

    fn is_in(&self, places: &[&str]) -> bool {
        let fits = |place: &&str| {
            let names: Vec<&str> = place.split('.').collect();
            let same = |(own, name): (&String, &&str)| *name == ANY || own == name;
            names.len() == self.names.len() && self.names.iter().zip(&names).all(same)
        };
        places.iter().any(fits)
    }

    /// Its end: the number and its statistic, as a comparison calls it.
    pub(super) fn short(&self) -> String {
        self.names[1.min(self.names.len() - 1)..].join(".")
    }

    /// What follows its values, as its name says.
    pub(super) fn unit(&self) -> &'static str {
        let ends = [("_per_s", "/s"), ("_rps", "/s"), ("_ms", " ms"), ("_us", " us"), ("_s", " s")];
        let unit = |name: &String| ends.iter().find(|(end, _)| name.ends_with(end));
        let is_count = self.names.last().is_some_and(|name| name == "count");
        let found = self.names.iter().rev().take(2).find_map(unit).filter(|_| !is_count);
        found.map_or("", |(_, unit)| unit)
    }
}

fn several_are<'a>(name: &str, several: impl Iterator<Item = &'a Place>) -> String {
    let names = places(several);
    format!("several numbers are called {name:?}; right would be one of them, like {names}")
}

fn places<'a>(places: impl Iterator<Item = &'a Place>) -> String {
    places.take(NEAR_MAX).map(|place| place.names.join(".")).collect::<Vec<_>>().join(", ")
}

/// What people ask for of a distribution, before all else of it.
fn main_figures(names: Vec<String>) -> Vec<String> {
    let shown = ["p50", "p90", "p99", "mean", "max"];
    let is_shown = |one: &&String| shown.iter().any(|end| one.ends_with(&format!(".{end}")));
    let few: Vec<String> = names.iter().filter(is_shown).cloned().collect();
    if few.is_empty() { names } else { few }
}

/// Numbers whose names begin like what was typed, or have it in them.
fn near(typed: &[&str], known: &[Place]) -> Vec<String> {
    let (first, last) = (typed[0].to_lowercase(), typed[typed.len() - 1]);
    let like = |own: &String| own.starts_with(&first) || (first.len() > 3 && own.contains(&first));
    let is_near = |place: &&Place| {
        let end = typed.len() < 2 || place.names.last().is_some_and(|own| own == last);
        place.is_main() && !first.is_empty() && end && place.names.iter().skip(1).any(like)
    };
    main_figures(known.iter().filter(is_near).map(Place::short).collect())
}

/// Names that a few letters make of what was typed, the nearest ones first.
fn mistyped(name: &str, known: &[Place]) -> Vec<String> {
    let most = (name.chars().count() / LETTERS_FOR_ONE).clamp(1, WRONG_LETTERS_MAX);
    let near = |place: &Place| {
        let short = place.short();
        // Of texts of other lengths it need not be found out.
        let may_be = short.len().abs_diff(name.len()) <= most;
        may_be.then(|| (distance(name, &short), short)).filter(|&(by, _)| by <= most)
    };
    let mut found: Vec<_> = known.iter().filter(|it| it.is_main()).filter_map(near).collect();
    found.sort_by_key(|&(by, _)| by);
    found.into_iter().map(|(_, short)| short).collect()
}

/// How many letters are to be put in, left out or replaced to make one text of the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, letter) in one.chars().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], i + 1);
        for (j, own) in other.iter().enumerate() {
            let replaced = corner + usize::from(letter != *own);
            corner = row[j + 1];
            row[j + 1] = replaced.min(corner + 1).min(row[j] + 1);
        }
    }
    row[other.len()]
}

fn unknown(name: &str, typed: &[&str], known: &[Place]) -> String {
    let inside = |place: &&Place| {
        place.is_main() && place.names.windows(typed.len() + 1).any(|w| w[..typed.len()] == *typed)
    };
    let figures: Vec<String> = known.iter().filter(inside).map(Place::short).collect();
    if !figures.is_empty() {
        let few: Vec<_> = main_figures(figures).into_iter().take(NEAR_MAX + 1).collect();
        return format!("{name:?} is several numbers; right would be one, like {}", few.join(", "));
    }
    let near = Some(near(typed, known)).filter(|near| !near.is_empty());
    let near = near.unwrap_or_else(|| mistyped(name, known));
    let near: Vec<String> = near.into_iter().take(NEAR_MAX).collect();
    let near = if near.is_empty() {
        "right would be like ttft_ms.p99, e2e_ms.p90, error_rate or output_tokens_per_s".to_owned()
    } else {
        format!("near it are {}", near.join(", "))
    };
    format!(
        "no number of a report is called {name:?}; {near}; `onbeat report --format json` has all"
    )
}

/// The place of every number in a report.
fn known() -> Vec<Place> {
    let schema: Value = serde_json::from_str(SCHEMA).expect("the schema is JSON");
    let mut found = Vec::new();
    gather(&schema, &schema, &mut Vec::new(), &mut found);
    // Several ways of a schema may lead to one place.
    let mut seen = BTreeSet::new();
    found.retain(|place: &Place| seen.insert(place.names.clone()));
    found
}

fn gather(root: &Value, schema: &Value, at: &mut Vec<String>, found: &mut Vec<Place>) {
    let there =
        schema["$ref"].as_str().and_then(|place| root.pointer(place.trim_start_matches('#')));
    let schema = there.unwrap_or(schema);
    let kinds = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        kind => Vec::from_iter(kind.as_str()),
    };
    let is = |kind: &str| kinds.contains(&kind);
    if is("number") || is("integer") {
        found.push(Place { names: at.clone(), is_whole: !is("number") });
    }
    for choice in schema["anyOf"].as_array().into_iter().flatten() {
        gather(root, choice, at, found);
    }
    for way in ["anyOf", "oneOf", "allOf"] {
        for inner in schema[way].as_array().into_iter().flatten() {
            gather(root, inner, at, found);
        }
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        at.push(name.clone());
        gather(root, inner, at, found);
        at.pop();
    }
    if schema["additionalProperties"].is_object() {
        at.push(ANY.to_owned());
        gather(root, &schema["additionalProperties"], at, found);
        at.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> String {
        Place::of(name).expect(name).names.join(".")
    }

    #[test]
    fn a_number_is_named_by_its_place_or_by_the_end_of_it() {
        for (name, whole) in [
            ("ttft_ms.p99", "latency.ttft_ms.p99"),
            ("failures_as_infinite.ttft_ms.p99", "failures_as_infinite.ttft_ms.p99"),
            ("error_rate", "outcomes.error_rate"),
            ("reported_hit_rate", "cache.reported_hit_rate"),
            ("host_stalls.count", "schedule.host_stalls.count"),
            ("by_class.http_429", "outcomes.by_class.http_429"),
            ("met.ttft_ms.share", "slo.met.ttft_ms.share"),
            ("output_tokens_per_s", "throughput.output_tokens_per_s"),
            ("users.queue_ms.p90", "users.queue_ms.p90"),
            ("queue_ms.p90", "users.queue_ms.p90"),
            ("run.duration_s", "run.duration_s"),
        ] {
            assert_eq!(place(name), whole);
        }
    }

    #[test]
    fn what_is_no_number_is_refused_with_what_is_near() {
        for (name, words) in [
            ("ttft.p99", "near it are ttft_ms.p99"),
            ("ttft", "near it are ttft_ms.mean, ttft_ms.p50"),
            ("duration_s", "right would be its whole place: run.duration_s"),
            ("ttft_ms", "is several numbers; right would be one, like ttft_ms.mean, ttft_ms.p50"),
            ("p99", "several numbers are called \"p99\""),
            ("latencies", "right would be like ttft_ms.p99"),
            ("tfft_ms.p99", "near it are ttft_ms.p99"),
            ("eror_rate", "near it are error_rate"),
            ("prompt_token.mean", "near it are prompt_tokens.mean"),
            ("xutput_token_per_s", "near it are output_tokens_per_s"),
            ("by_class.no_such_class", "no number of a report"),
            ("http_429", "no number of a report"),
            ("", "no number of a report"),
            ("verdict.schedule_held", "no number of a report"),
        ] {
            let error = Place::of(name).expect_err(name);
            assert!(error.contains(words), "{name}: {error}");
        }
    }

    #[test]
    fn every_number_that_is_called_like_a_share_is_known_as_one_or_as_a_count() {
        let counts = ["http_error", "connect_error", "protocol_error", "stream_error"];
        let is_called = |name: &str| {
            ["rate", "share", "error"].iter().any(|end| {
                name.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('_'))
            })
        };
        let known = known();
        for place in &known {
            let last = place.names.last().map_or("", String::as_str);
            let is_share = is_called(last) && !counts.contains(&last);
            assert_eq!(place.is_share(), is_share, "{}", place.names.join("."));
        }
        for name in SHARES.iter().chain(&EXCESSES) {
            assert!(
                known.iter().any(|place| place.names.join(".") == *name),
                "{name} is in no report"
            );
        }
    }

    #[test]
    fn letters_apart_are_counted() {
        for (one, other, by) in
            [("", "", 0), ("abc", "abc", 0), ("abc", "ab", 1), ("axc", "abc", 1), ("ab", "ba", 2)]
        {
            assert_eq!((distance(one, other), distance(other, one)), (by, by), "{one} {other}");
        }
    }

    #[test]
    fn several_ways_to_one_place_are_one_place() {
        let known = known();
        let unique: BTreeSet<_> = known.iter().map(|place| place.names.clone()).collect();
        assert_eq!(unique.len(), known.len());
        let schema = serde_json::json!({"anyOf": [
            {"properties": {"p99": {"type": ["number", "null"]}}},
            {"properties": {"p99": {"anyOf": [{"type": "number"}, {"type": "null"}]}}},
        ]});
        let mut found = Vec::new();
        gather(&schema, &schema, &mut Vec::new(), &mut found);
        assert!(found.iter().all(|place| place.names == ["p99"]) && !found.is_empty());
    }

    #[test]
    fn what_became_of_gates_is_no_number_of_a_run() {
        assert!(SCHEMA.contains("\"gates\""), "it is in the report");
        assert!(known().iter().all(|place| place.names[0] != "gates"));
        let error = Place::of("gates.value").expect_err("no number");
        assert!(error.contains("no number of a report"), "{error}");
    }

    #[test]
    fn units_are_in_the_names() {
        let unit = |name: &str| Place::of(name).expect(name).unit();
        assert_eq!(unit("ttft_ms.p99"), " ms");
        assert_eq!(unit("lateness_us.max"), " us");
        assert_eq!(unit("requests_per_s"), "/s");
        assert_eq!(unit("ttft_ms.count"), "");
        assert!(Place::of("error_rate").expect("one").is_share());
        assert!(Place::of("met.ttft_ms.share").expect("one").is_share());
        assert!(!Place::of("requests_per_s").expect("one").is_share());
    }
}
