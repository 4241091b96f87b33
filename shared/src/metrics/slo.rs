//! Goals.

/// Goals for a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Goals {
    /// The goals.
    pub goals: Vec<Goal>,
}

/// One limit on one number of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal;
