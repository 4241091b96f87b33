//! What makes a command fail: options as typed.

use clap::Args;
use onbeat_shared::metrics::gate::{Gate, Judged};

use crate::error::EngineError;

/// The exit code of a run that took place and failed a gate.
pub const GATE_FAILED: u8 = 3;

/// Gates.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Gates")]
pub struct GateFlags {
    /// Exit with 3 if this holds, for example 'ttft_ms.p99 > 800' or 'error_rate > 1%'; onbeat
    /// compare also takes changes: 'ttft_ms.p99 > +5%' of the base's value, 'error_rate > +0.01'.
    /// Numbers are those of `onbeat report --format json` by their names; one that a run lacks
    /// fails. May be given several times.
    #[arg(long, value_name = "CONDITION", value_parser = Gate::parse)]
    pub fail_on: Vec<Gate>,

    /// Judge a run by --fail-on although its schedule did not hold or its user stopped it;
    /// otherwise that alone fails it.
    #[arg(long, requires = "fail_on")]
    pub accept_not_held: bool,
}

impl GateFlags {
    /// Refuses conditions on changes, where there is nothing to have changed from.
    ///
    /// # Errors
    /// As wrong usage, with what to type instead.
    pub fn check_absolute(&self) -> Result<(), EngineError> {
        match self.fail_on.iter().find(|gate| gate.needs_base()) {
            None => Ok(()),
            Some(gate) => Err(EngineError::Usage(format!(
                "--fail-on '{}': a change needs a base; right would be the limit itself, without \
                 its sign, or onbeat compare BASE.beat NEW.beat",
                gate.typed()
            ))),
        }
    }

    /// Whether a schedule that did not hold is accepted.
    #[must_use]
    pub fn accepts_not_held(&self) -> bool {
        self.accept_not_held && !self.fail_on.is_empty()
    }
}

/// The exit code of what was judged.
#[must_use]
pub fn exit_code(judged: &[Judged]) -> u8 {
    if judged.iter().any(|one| one.failed) { GATE_FAILED } else { 0 }
}
