//! How the model chooses its words: options as typed. What is not given is left to the server.

use clap::Args;
use serde::Serialize;

use super::number::real;
use crate::render::Generation;

/// Generation parameters.
#[derive(Clone, Debug, Default, Args, Serialize, schemars::JsonSchema)]
#[command(next_help_heading = "Generation")]
pub struct GenerationFlags {
    /// The temperature that is asked for (default: the server's; 0.7 where an agentic trace is
    /// replayed against a Qwen3-Coder).
    #[arg(long, value_name = "NUMBER", value_parser = temperature)]
    pub temperature: Option<f64>,

    /// The share of likely tokens that is chosen from (default: the server's; 0.8 as for
    /// --temperature).
    #[arg(long, value_name = "SHARE", value_parser = top_p)]
    pub top_p: Option<f64>,

    /// How many of the likeliest tokens are chosen from; -1 is all (default: the server's; 20 as
    /// for --temperature).
    #[arg(long, value_name = "TOKENS", value_parser = top_k)]
    pub top_k: Option<i64>,

    /// How much less likely a token becomes that has been said (default: the server's; 1.05 as for
    /// --temperature).
    #[arg(long, value_name = "FACTOR", value_parser = penalty)]
    pub repetition_penalty: Option<f64>,
}

impl GenerationFlags {
    /// The parameters as meant.
    #[must_use]
    pub const fn meant(&self) -> Generation {
        Generation {
            temperature: self.temperature,
            top_p: self.top_p,
            top_k: self.top_k,
            repetition_penalty: self.repetition_penalty,
        }
    }
}

fn within(text: &str, right: &str, holds: impl FnOnce(f64) -> bool) -> Result<f64, String> {
    let number = real(text).ok().filter(|&number| holds(number));
    number.ok_or_else(|| right.to_owned())
}

fn temperature(text: &str) -> Result<f64, String> {
    within(text, "give a number, 0 or more, like 0.7", |number| number >= 0.0)
}

fn top_p(text: &str) -> Result<f64, String> {
    within(text, "give a share above 0 and up to 1, like 0.8", |number| {
        number > 0.0 && number <= 1.0
    })
}

fn penalty(text: &str) -> Result<f64, String> {
    within(text, "give a number above 0, like 1.05", |number| number > 0.0)
}

fn top_k(text: &str) -> Result<i64, String> {
    let number = text.parse().ok().filter(|&number: &i64| number == -1 || number > 0);
    number.ok_or_else(|| "give a whole number, 1 or more, or -1 for all".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_outside_their_ranges_are_refused_in_words() {
        assert_eq!((temperature("0"), temperature("1.5")), (Ok(0.0), Ok(1.5)));
        assert_eq!((top_p("1"), top_p("0.8")), (Ok(1.0), Ok(0.8)));
        assert_eq!((top_k("-1"), top_k("20")), (Ok(-1), Ok(20)));
        assert_eq!(penalty("1.05"), Ok(1.05));
        for wrong in ["-0.1", "nan", "inf", "hot", ""] {
            assert!(temperature(wrong).is_err_and(|words| words.contains("0 or more")), "{wrong}");
        }
        for wrong in ["0", "1.01", "-1", "x"] {
            assert!(top_p(wrong).is_err_and(|words| words.contains("up to 1")), "{wrong}");
        }
        for wrong in ["0", "-2", "1.5", "x"] {
            assert!(top_k(wrong).is_err_and(|words| words.contains("-1 for all")), "{wrong}");
        }
        for wrong in ["0", "-1", "x"] {
            assert!(penalty(wrong).is_err_and(|words| words.contains("above 0")), "{wrong}");
        }
    }
}
