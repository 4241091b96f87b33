//! Fuzzing: whatever reads bytes that somebody else wrote, under bytes that nobody would write.
//!
//! A [`Subject`] makes inputs and judges them; [`TARGETS`] names all of them. [`runner::run`] gives
//! a subject inputs that are generated from the grammar it reads, taken from `corpus/TARGET/`, and
//! damaged ones of both, catches panics and makes what it found small. Everything follows from a
//! seed, so a finding is repeated by its number alone. The same code is a short test of every
//! change (`fuzzing.rs`) and a long run by command:
//!
//! ```text
//! cargo run --release -p tests --bin fuzz -- TARGET --runs N [--seed S] [--threads T]
//! ```
//!
//! There is no coverage feedback: what gets behind the first few checks does so because its
//! generator knows the grammar.

mod log;
pub mod memory;
pub mod mutation;
pub mod runner;
pub mod seeds;
mod traces;
mod wire;

use onbeat_shared::dice::Dice;

/// What is fuzzed: makes inputs and judges them. Each thread has one of its own.
pub trait Subject {
    /// Adds an input to `out`, which is empty: usually one that is well formed.
    fn generate(&mut self, dice: &mut Dice, out: &mut Vec<u8>);

    /// Damages an input.
    fn mutate(&mut self, dice: &mut Dice, input: &mut Vec<u8>) {
        mutation::damage(dice, input);
    }

    /// Runs what is fuzzed on one input. The same input must always be judged alike: what is drawn
    /// here is drawn from [`mutation::dice_of`] the input.
    ///
    /// # Errors
    /// What should not have been, for whoever has to mend it. A panic counts as well.
    fn judge(&mut self, input: &[u8]) -> Result<(), String>;
}

/// One thing to fuzz.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name on the command line and its folder in the corpus.
    pub name: &'static str,
    /// What is fuzzed and what must hold, in one line.
    pub about: &'static str,
    /// How many runs the test of every change makes: well below five seconds without optimisation.
    pub short_runs: u64,
    /// Makes the subject.
    pub make: fn() -> Box<dyn Subject>,
}

/// All of them.
pub const TARGETS: &[Target] = &[
    log::LOG,
    traces::TRACES,
    traces::COLUMNS,
    wire::ANSWER,
    wire::HEAD,
    wire::CHUNKED,
    wire::SSE,
    wire::DELTA,
    wire::HYPER,
    wire::EVENTSOURCE,
    wire::CAPS,
];

/// The target of this name.
#[must_use]
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
