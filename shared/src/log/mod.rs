//! Placeholder for the format specification.

pub mod outcome;
pub mod plan_row;
pub mod record;
