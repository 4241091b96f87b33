//! Hit rates of each session, sorted.

use std::{cmp::Ordering, collections::HashMap};

use onbeat_shared::{
    metrics::cache::{Ratio, Sums},
    run::Run,
};

use crate::opened::OpenedRun;
use crate::selection::Selection;
use crate::series::timeline::lanes::natural;

/// A column of the table of sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SessionColumn {
    /// The session's name.
    Session,
    /// Its requests.
    Requests,
    /// Their input tokens.
    #[default]
    Input,
    /// The ideal hit rate.
    Ideal,
    /// The reported one.
    Reported,
    /// By how much the reported one is higher.
    Difference,
}

impl SessionColumn {
    /// All, in order.
    pub const ALL: [Self; 6] =
        [Self::Session, Self::Requests, Self::Input, Self::Ideal, Self::Reported, Self::Difference];
}

/// By what sessions are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionSort {
    /// The column.
    pub column: SessionColumn,
    /// The largest first.
    pub descending: bool,
}

impl Default for SessionSort {
    fn default() -> Self {
        Self { column: SessionColumn::default(), descending: true }
    }
}

impl SessionSort {
    /// The order after a click on a column's heading.
    #[must_use]
    pub fn clicked(self, column: SessionColumn) -> Self {
        if self.column == column {
            return Self { descending: !self.descending, ..self };
        }
        // Names from a to z, the largest numbers first; of differences the server's misses first.
        let ascending = matches!(column, SessionColumn::Session | SessionColumn::Difference);
        Self { column, descending: !ascending }
    }
}

/// Hit rates of each session.
#[derive(Clone, Debug)]
pub struct Sessions {
    /// In the order that was asked for.
    pub rows: Vec<SessionRow>,
}

/// One session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// One of its requests.
    pub request: u32,
    /// How many of its requests count.
    pub requests: u32,
    input: u64,
    ideal: Ratio,
    reported: Ratio,
}

impl SessionRow {
    fn of(request: u32, sums: &Sums) -> Self {
        Self {
            request,
            requests: u32::try_from(sums.requests).unwrap_or(u32::MAX),
            input: sums.input,
            ideal: sums.ideal,
            reported: sums.reported,
        }
    }

    /// Input tokens.
    #[must_use]
    pub const fn input(&self) -> u64 {
        self.input
    }

    /// Share of its input that an endless cache would have had.
    #[must_use]
    pub fn ideal(&self) -> Option<f64> {
        self.ideal.value()
    }

    /// Share that the server says it had.
    #[must_use]
    pub fn reported(&self) -> Option<f64> {
        self.reported.value()
    }

    /// By how much the reported share is higher.
    #[must_use]
    pub fn difference(&self) -> Option<f64> {
        Some(self.reported()? - self.ideal()?)
    }

    /// Its name, if the log has one.
    #[must_use]
    pub fn name<'a>(&self, run: &'a Run) -> Option<&'a str> {
        run.session_name(self.request as usize)
    }

    fn number(&self, column: SessionColumn) -> Option<f64> {
        match column {
            SessionColumn::Session => None,
            SessionColumn::Requests => Some(f64::from(self.requests)),
            SessionColumn::Input => Some(self.input as f64),
            SessionColumn::Ideal => self.ideal(),
            SessionColumn::Reported => self.reported(),
            SessionColumn::Difference => self.difference(),
        }
    }
}

/// The sessions of the chosen requests that left, sorted; those without a number come last.
#[must_use]
pub fn sessions(opened: &OpenedRun, selection: &Selection, sort: SessionSort) -> Sessions {
    let run = &opened.run;
    let mut places: HashMap<u32, usize> = HashMap::new();
    let mut found: Vec<(u32, Sums)> = Vec::new();
    for &i in opened.chosen(selection).iter() {
        if run.requests.was_sent(i as usize) {
            let session = run.plan[i as usize].session.0;
            let place = *places.entry(session).or_insert(found.len());
            if place == found.len() {
                found.push((i, Sums::default()));
            }
            found[place].1.add(run, i as usize);
        }
    }
    let mut rows: Vec<_> = found.iter().map(|(i, sums)| SessionRow::of(*i, sums)).collect();
    rows.sort_by(|a, b| compared(run, a, b, sort));
    Sessions { rows }
}

fn compared(run: &Run, a: &SessionRow, b: &SessionRow, sort: SessionSort) -> Ordering {
    let directed = |order: Ordering| if sort.descending { order.reverse() } else { order };
    let order = if sort.column == SessionColumn::Session {
        let (a, b) = (a.name(run), b.name(run));
        let names = || natural(a.unwrap_or(""), b.unwrap_or(""));
        missing_last(a.is_some(), b.is_some()).unwrap_or_else(|| directed(names()))
    } else {
        let (a, b) = (a.number(sort.column), b.number(sort.column));
        let numbers = || a.unwrap_or(0.0).total_cmp(&b.unwrap_or(0.0));
        missing_last(a.is_some(), b.is_some()).unwrap_or_else(|| directed(numbers()))
    };
    // Sessions that are equal stand in the order of their first requests.
    order.then(a.request.cmp(&b.request))
}

/// The order of two of which not both have a value.
const fn missing_last(a: bool, b: bool) -> Option<Ordering> {
    match (a, b) {
        (true, true) => None,
        (true, false) => Some(Ordering::Less),
        (false, true) => Some(Ordering::Greater),
        (false, false) => Some(Ordering::Equal),
    }
}

#[cfg(test)]
mod tests {
    use onbeat_shared::{log::sample, units::SessionIndex};

    use super::super::opened;
    use super::*;

    #[test]
    fn every_session_is_there_once_and_sums_up_its_requests() {
        let opened = opened(&sample::sample(6, 300));
        let run = &opened.run;
        for column in SessionColumn::ALL {
            for descending in [false, true] {
                let sort = SessionSort { column, descending };
                let found = sessions(&opened, &Selection::default(), sort).rows;
                assert_eq!(found.len(), run.sessions.len());
                let requests: u32 = found.iter().map(|row| row.requests).sum();
                assert_eq!(requests as usize, opened.by_sent().len());
                if column != SessionColumn::Session {
                    let numbers: Vec<f64> =
                        found.iter().filter_map(|row| row.number(column)).collect();
                    let is_sorted = |a: &f64, b: &f64| if descending { a >= b } else { a <= b };
                    assert!(numbers.is_sorted_by(is_sorted), "{column:?} {descending}");
                    let known = found.iter().take_while(|row| row.number(column).is_some());
                    assert_eq!(known.count(), numbers.len(), "what is not known comes last");
                }
            }
        }
        let row = sessions(&opened, &Selection::default(), SessionSort::default()).rows[0];
        let session = run.plan[row.request as usize].session;
        let ideal: u32 = run
            .plan
            .iter()
            .filter(|plan| plan.session == session)
            .filter_map(|plan| plan.ideal_cached_tokens)
            .sum();
        assert_eq!(row.ideal.part, u64::from(ideal));
    }

    #[test]
    fn numbers_in_names_count_by_their_value() {
        let mut sample = sample::Sample::new();
        sample.sessions = ["s10", "s9", "s1"].map(str::to_owned).to_vec();
        for session in 0..3 {
            let request = sample.send(0);
            sample.plan[request.as_usize()].session = SessionIndex(session);
        }
        let opened = opened(&sample);
        let sort = SessionSort { column: SessionColumn::Session, descending: false };
        let rows = sessions(&opened, &Selection::default(), sort).rows;
        let names: Vec<_> = rows.iter().filter_map(|row| row.name(&opened.run)).collect();
        assert_eq!(names, ["s1", "s9", "s10"]);
    }

    #[test]
    fn a_second_click_turns_the_order_around() {
        let sort = SessionSort::default().clicked(SessionColumn::Session);
        assert!(!sort.descending);
        assert!(sort.clicked(SessionColumn::Session).descending);
        assert!(sort.clicked(SessionColumn::Ideal).descending);
    }
}
