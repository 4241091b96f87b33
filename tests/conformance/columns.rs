//! Cases of group D that need more than the shared checks: files of columns.

use crate::case::{Case, each_planned};
use crate::found::Findings;
use crate::product::{Planned, name};

/// D07: however pages and row groups are laid out, the rows are the same. (The file without
/// statistics has them in the opposite order, so that its origin is its last row.)
pub(crate) fn pages(case: &Case, found: &mut Findings) {
    let plans = each_planned(case, &[], found);
    let bodies = |plan: &Planned| -> Vec<String> {
        let mut bodies: Vec<_> = plan.rows.iter().map(|row| row.body().to_string()).collect();
        bodies.sort_unstable();
        bodies
    };
    let (times, rows) = (plans[0].due_ns(), bodies(&plans[0]));
    for (plan, file) in plans.iter().zip(&case.files) {
        found.same(format!("{}: due times", name(file)), &times, &plan.due_ns());
        found.same(format!("{}: bodies", name(file)), &rows, &bodies(plan));
    }
}

/// D13: names are compared as texts, an empty one is one, and whole numbers group as their texts.
pub(crate) fn session_ids(case: &Case, found: &mut Findings) {
    let plans = each_planned(case, &[], found);
    let groups = |plan: &Planned| -> Vec<usize> {
        let names = plan.sessions();
        let place = |name: &str| names.iter().position(|known| *known == name);
        plan.rows.iter().filter_map(|row| place(&row.session)).collect()
    };
    for (plan, file) in plans.iter().zip(&case.files) {
        found.same(format!("{}: grouping", name(file)), &groups(&plans[0]), &groups(plan));
        if name(file) == "strid.parquet" {
            let mut names = plan.sessions();
            names.sort_unstable();
            found.same("names", &vec!["", "07", "7"], &names);
        }
    }
}
