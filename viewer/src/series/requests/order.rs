//! The order of the rows: stable, requests without a value last, whichever way it goes.

use std::collections::HashMap;
use std::sync::Arc;

use onbeat_shared::run::Run;

use super::Sort;
use crate::fields::{Field, Value};
use crate::opened::OpenedRun;
use crate::selection::Selection;
use crate::series::timeline::lanes::natural;

/// The selection's requests, sorted. Those that do not differ in the field keep the plan's order,
/// and so do those that have no value; these come last.
#[must_use]
pub fn rows(opened: &OpenedRun, selection: &Selection, sort: Sort) -> Arc<[u32]> {
    let chosen = opened.chosen(selection);
    if sort.field == Field::Number {
        return if sort.descending { chosen.iter().rev().copied().collect() } else { chosen };
    }
    let run = &opened.run;
    let (mut known, missing) = match sort.field.row().value {
        Value::Number(_, value) => parted(&chosen, |i| value(run, i)),
        Value::Flag(value) => {
            parted(&chosen, |i| value(run, i).map(|yes| f64::from(u8::from(yes))))
        }
        Value::Word(..) | Value::Text(_) => {
            let ranks = ranks(run, &chosen, sort.field);
            parted(&chosen, |i| ranks.get(sort.field.text(run, i)?).copied())
        }
    };
    known.sort_unstable_by(|a, b| {
        let by_value = a.0.total_cmp(&b.0);
        let by_value = if sort.descending { by_value.reverse() } else { by_value };
        by_value.then(a.1.cmp(&b.1))
    });
    known.into_iter().map(|(_, request)| request).chain(missing).collect()
}

/// Requests with their values, and those that have none.
fn parted(chosen: &[u32], value: impl Fn(usize) -> Option<f64>) -> (Vec<(f64, u32)>, Vec<u32>) {
    let (mut known, mut missing) = (Vec::with_capacity(chosen.len()), Vec::new());
    for &request in chosen {
        match value(request as usize) {
            Some(value) => known.push((value, request)),
            None => missing.push(request),
        }
    }
    (known, missing)
}

/// The place of each text among all the different ones.
fn ranks<'a>(run: &'a Run, chosen: &[u32], field: Field) -> HashMap<&'a str, f64> {
    let texts = chosen.iter().filter_map(|&request| field.text(run, request as usize));
    let mut ranks: HashMap<&str, f64> = texts.map(|text| (text, 0.0)).collect();
    let mut sorted: Vec<&str> = ranks.keys().copied().collect();
    sorted.sort_unstable_by(|a, b| natural(a, b));
    for (place, text) in sorted.into_iter().enumerate() {
        ranks.insert(text, place as f64);
    }
    ranks
}

#[cfg(test)]
mod tests {
    use std::{cmp::Ordering, path::PathBuf};

    use onbeat_shared::log::{sample, sample_users};

    use super::*;
    use crate::filter::Filter;

    fn opened(bytes: &[u8]) -> OpenedRun {
        let run = Run::read(bytes).expect("a readable log");
        OpenedRun::new(PathBuf::from("sample.beat"), 0, run)
    }

    #[test]
    fn every_column_sorts_stably_with_the_missing_last() {
        for bytes in [sample::log(6, 250), sample_users::log(2, 5)] {
            let opened = opened(&bytes);
            let run = &opened.run;
            let filter = Filter::parse("turn > 0 || failed").expect("a filter");
            for filter in [None, Some(Arc::new(filter))] {
                let selection = Selection { range: None, filter };
                let chosen = opened.chosen(&selection);
                for &field in Field::ALL {
                    for descending in [false, true] {
                        let rows = rows(&opened, &selection, Sort { field, descending });
                        let mut back = rows.to_vec();
                        back.sort_unstable();
                        assert_eq!(*back, *chosen, "{field:?}: each of them once");
                        let is_known = |&request: &u32| field.is_known(run, request as usize);
                        assert!(rows.is_sorted_by_key(|request| !is_known(request)), "{field:?}");
                        let known = rows.iter().filter(|&request| is_known(request)).count();
                        for pair in rows[..known].windows(2) {
                            check(run, field, descending, pair);
                        }
                        assert!(field == Field::Number || rows[known..].is_sorted());
                    }
                }
            }
        }
    }

    fn check(run: &Run, field: Field, descending: bool, pair: &[u32]) {
        let (a, b) = (pair[0] as usize, pair[1] as usize);
        let order = match (field.number(run, a), field.number(run, b)) {
            (Some(a), Some(b)) => a.total_cmp(&b),
            _ => match (field.text(run, a), field.text(run, b)) {
                (Some(a), Some(b)) => natural(a, b),
                _ => Ordering::Equal,
            },
        };
        let order = if descending { order.reverse() } else { order };
        assert_ne!(order, Ordering::Greater, "{field:?}: {a} and {b}");
        if order == Ordering::Equal && field.number(run, a).is_some() {
            assert!(a < b, "{field:?}: {a} and {b} keep their order");
        }
    }
}
