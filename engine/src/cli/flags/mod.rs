//! Every option, as typed: one clap struct per group, flattened into the subcommands that take it.
//!
//! Each option is documented here once, in one sentence with its unit and default; help, manual
//! page, completions and the flag reference come from that. A group's own functions turn what was
//! typed into the options a stage takes (`TraceOptions`, `PlanOptions`, `RenderOptions`), where
//! nothing can contradict anything else. Names are those of AIPerf and kv-cache-tester where they
//! have one.

pub mod body;
pub mod cancel;
pub mod peers;
pub mod run;
pub mod target;
pub mod timing;
pub mod trace;

use serde::{Serialize, Serializer};

/// A value kept with the text it was typed as, which is what a log shows of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typed<T> {
    /// As typed.
    pub text: String,
    /// As meant.
    pub value: T,
}

impl<T> Serialize for Typed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}
