//! Generation parameters of a request, and those that a model is known to want.
//!
//! What is `None` is not in the body, and left to the server. Which models are known is
//! kv-cache-tester's choice; so are their values.

use serde_json::Value;

/// Generation parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Generation {
    /// 0 or more.
    pub temperature: Option<f64>,
    /// Above 0 and up to 1.
    pub top_p: Option<f64>,
    /// 1 or more, or -1.
    pub top_k: Option<i64>,
    /// Above 0.
    pub repetition_penalty: Option<f64>,
}

impl Generation {
    /// These, and where there is none that of the model, if its name says that it has one.
    #[must_use]
    pub fn for_model(self, model: &str) -> Self {
        if !model.to_lowercase().contains("qwen3-coder") {
            return self;
        }
        Self {
            temperature: self.temperature.or(Some(0.7)),
            top_p: self.top_p.or(Some(0.8)),
            top_k: self.top_k.or(Some(20)),
            repetition_penalty: self.repetition_penalty.or(Some(1.05)),
        }
    }

    /// The members of a body that say them, in kv-cache-tester's order.
    pub fn members(&self) -> impl Iterator<Item = (&'static str, Value)> {
        [
            ("temperature", self.temperature.map(Value::from)),
            ("top_p", self.top_p.map(Value::from)),
            ("top_k", self.top_k.map(Value::from)),
            ("repetition_penalty", self.repetition_penalty.map(Value::from)),
        ]
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(generation: Generation) -> String {
        let members: Vec<_> =
            generation.members().map(|(key, value)| format!("{key}:{value}")).collect();
        members.join(" ")
    }

    #[test]
    fn a_known_models_parameters_stand_in_for_what_is_not_given() {
        let none = Generation::default();
        let all = "temperature:0.7 top_p:0.8 top_k:20 repetition_penalty:1.05";
        for model in ["Qwen3-Coder-mock", "Qwen/Qwen3-Coder-480B-A35B-Instruct", "x/qwen3-CODER"] {
            assert_eq!(written(none.for_model(model)), all, "{model}");
        }
        for model in ["Qwen/Qwen3-0.6B", "qwen2.5-coder", "default", ""] {
            assert_eq!(written(none.for_model(model)), "", "{model}");
        }
        let own = Generation { temperature: Some(0.0), top_k: Some(-1), ..none };
        assert_eq!(written(own), "temperature:0.0 top_k:-1");
        let both = "temperature:0.0 top_p:0.8 top_k:-1 repetition_penalty:1.05";
        assert_eq!(written(own.for_model("qwen3-coder")), both);
    }
}
