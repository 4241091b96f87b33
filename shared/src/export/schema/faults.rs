//! What is wrong with a document, as a schema says it: for tests of what is written.
//!
//! As much of JSON Schema as our own schemas use. A rule that is not known here is a fault too, so
//! that a schema never says more than is checked.

use serde_json::{Map, Value};

/// The faults of a document, each with its place. Empty: it is what the schema says.
#[must_use]
pub fn faults(schema: &Value, document: &Value) -> Vec<String> {
    let mut found = Vec::new();
    Check { root: schema, found: &mut found }.all(schema, document, "it");
    found
}

struct Check<'a> {
    root: &'a Value,
    found: &'a mut Vec<String>,
}

impl Check<'_> {
    fn all(&mut self, schema: &Value, value: &Value, at: &str) {
        match schema {
            Value::Bool(true) => {}
            Value::Object(rules) => {
                for (rule, said) in rules {
                    if !self.holds(rules, (rule, said), value, at) {
                        self.found.push(format!("{at}: {value} against {rule} {said}"));
                    }
                }
            }
            other => self.found.push(format!("{at}: {other} is no schema that is known here")),
        }
    }

    /// Whether a rule holds; what it says of values inside is looked at as well.
    fn holds(
        &mut self,
        rules: &Map<String, Value>,
        (rule, said): (&str, &Value),
        value: &Value,
        at: &str,
    ) -> bool {
        let fields = || value.as_object().into_iter().flatten();
        match rule {
            "$schema" | "$defs" | "title" | "description" => true,
            "const" => value == said,
            "enum" => listed(said).any(|choice| choice == value),
            "type" if said.is_array() => listed(said).any(|name| has_type(value, name)),
            "type" => has_type(value, said),
            "minimum" => {
                value.as_f64().is_none_or(|value| said.as_f64().is_some_and(|least| value >= least))
            }
            "maximum" => {
                value.as_f64().is_none_or(|value| said.as_f64().is_some_and(|most| value <= most))
            }
            "$ref" => {
                let name = said.as_str().and_then(|name| name.strip_prefix('#'));
                let Some(schema) = name.and_then(|name| self.root.pointer(name)) else {
                    return false;
                };
                self.all(schema, value, at);
                true
            }
            "anyOf" | "oneOf" => listed(said).any(|choice| {
                let mut found = Vec::new();
                Check { root: self.root, found: &mut found }.all(choice, value, at);
                found.is_empty()
            }),
            "items" => {
                for (i, item) in listed(value).enumerate() {
                    self.all(said, item, &format!("{at}[{i}]"));
                }
                true
            }
            "prefixItems" => {
                for (i, (schema, item)) in listed(said).zip(listed(value)).enumerate() {
                    self.all(schema, item, &format!("{at}[{i}]"));
                }
                true
            }
            "minItems" => value
                .as_array()
                .is_none_or(|items| count(said).is_some_and(|least| items.len() >= least)),
            "maxItems" => value
                .as_array()
                .is_none_or(|items| count(said).is_some_and(|most| items.len() <= most)),
            "required" => value.as_object().is_none_or(|fields| {
                listed(said).all(|name| name.as_str().is_some_and(|name| fields.contains_key(name)))
            }),
            "properties" => {
                for (name, value) in fields() {
                    if let Some(schema) = said.get(name) {
                        self.all(schema, value, &format!("{at}.{name}"));
                    }
                }
                true
            }
            "additionalProperties" => {
                let known = rules.get("properties");
                let others =
                    fields().filter(|field| known.is_none_or(|known| known.get(field.0).is_none()));
                for (name, value) in others {
                    let at = format!("{at}.{name}");
                    match said {
                        Value::Bool(false) => self.found.push(format!("{at} is not declared")),
                        schema => self.all(schema, value, &at),
                    }
                }
                true
            }
            _ => false,
        }
    }
}

fn listed(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn count(said: &Value) -> Option<usize> {
    said.as_u64().and_then(|count| usize::try_from(count).ok())
}

fn has_type(value: &Value, name: &Value) -> bool {
    match name.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        Some("number") => value.is_number(),
        Some("integer") => value.is_u64() || value.is_i64(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_rule_has_its_fault() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": {"type": ["integer", "null"], "minimum": 0, "maximum": 9},
                "b": {"anyOf": [{"$ref": "#/$defs/two"}, {"type": "null"}]},
                "c": {"type": "array", "items": {"enum": ["x", "y"]}},
                "d": {"type": "object", "additionalProperties": {"const": 1}},
                "f": {"prefixItems": [{"type": "number"}], "minItems": 1, "maxItems": 2},
            },
            "required": ["a"],
            "additionalProperties": false,
            "$defs": {"two": {"type": "string"}},
        });
        let sound = json!({"a": 3, "b": "b", "c": ["x", "y"], "d": {"any": 1}, "f": [1, "x"]});
        assert_eq!(faults(&schema, &sound), Vec::<String>::new());
        assert_eq!(faults(&schema, &json!({"a": null, "b": null})), Vec::<String>::new());
        for wrong in [
            json!([]),
            json!({}),
            json!({"a": -1}),
            json!({"a": 10}),
            json!({"a": 0.5}),
            json!({"a": 1, "b": 1}),
            json!({"a": 1, "c": ["z"]}),
            json!({"a": 1, "d": {"any": 2}}),
            json!({"a": 1, "e": 1}),
            json!({"a": 1, "f": ["x"]}),
            json!({"a": 1, "f": []}),
            json!({"a": 1, "f": [1, 2, 3]}),
        ] {
            assert_eq!(faults(&schema, &wrong).len(), 1, "{wrong}");
        }
        assert_eq!(faults(&json!({"pattern": "a"}), &json!("b")).len(), 1, "an unknown rule");
        assert_eq!(faults(&json!({"$ref": "#/$defs/none"}), &json!("b")).len(), 1);
    }
}
