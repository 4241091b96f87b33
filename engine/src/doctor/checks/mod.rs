//! Facts to findings: pure functions, one for each thing that matters, each with its bounds.
//!
//! A bound says where a run starts to suffer, not what is usual: a default kernel on a good server
//! is mostly "ok", and "problem" means that it will be seen in the numbers.

pub mod cpu;
pub mod measured;
pub mod process;
pub mod system;

use super::Finding;
use super::machine::{Counts, Facts};

/// What the facts say about pacing on `cpus`. With counters read again `after` a measurement,
/// interrupts and steal are those of that time; without, those since boot.
#[must_use]
pub fn of_facts(facts: &Facts, cpus: &[u16], after: Option<&Counts>) -> Vec<Finding> {
    vec![
        cpu::choice(facts, cpus),
        system::kernel(facts),
        system::virtual_machine(facts),
        system::steal(facts, cpus, after),
        system::quota(facts, cpus),
        cpu::governor(facts),
        cpu::isolation(facts, cpus),
        cpu::siblings(facts, cpus),
        cpu::interrupts(facts, cpus, after),
        cpu::nodes(facts, cpus),
        system::clock_source(facts),
        process::scheduler(facts),
        process::locked_memory(facts),
        process::open_files(facts),
        process::local_ports(facts),
        system::swap(facts),
    ]
}

/// `CPU 3` or `CPUs 2-3`.
fn named(cpus: &[u16]) -> String {
    let plural = if cpus.len() == 1 { "" } else { "s" };
    format!("CPU{plural} {}", super::parse::list_text(cpus))
}
