//! Columns of ids → sessions, and which of two such columns says what belongs together.
//!
//! AIPerf's page: the column with the stronger sign of repeated sessions counts, and on a tie the
//! provided one. The sign is the number of rows whose value some other row has too, then the number
//! of such values. When nothing repeats in either, and for a row without a value, a row is a
//! session of its own with a fresh name.

use std::collections::HashMap;

use onbeat_shared::trace::record::Record;
use onbeat_shared::trace::session::{Name, SessionNames};
use onbeat_shared::units::SessionIndex;

/// The values of one id column.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    numbers: HashMap<Box<[u8]>, u32>,
    rows_of: Vec<u64>,
    /// For each row, the number of its value; [`NONE`] where it has none.
    rows: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Keys {
    /// Adds the next row's value.
    pub(crate) fn push(&mut self, value: Option<&[u8]>) {
        let Some(value) = value else {
            self.rows.push(NONE);
            return;
        };
        let number = if let Some(&number) = self.numbers.get(value) {
            number
        } else {
            let number = u32::try_from(self.rows_of.len()).expect("bounded by REQUESTS_MAX");
            self.numbers.insert(value.into(), number);
            self.rows_of.push(0);
            number
        };
        self.rows_of[number as usize] += 1;
        self.rows.push(number);
    }

    /// Rows whose value repeats, and how many such values there are.
    fn score(&self) -> (u64, u64) {
        let repeated = self.rows_of.iter().filter(|&&rows| rows > 1);
        repeated.fold((0, 0), |(rows, values), &more| (rows + more, values + 1))
    }

    /// Each row's session, and the sessions' names in order of their first row.
    pub(crate) fn sessions(self) -> (Vec<u32>, SessionNames) {
        let mut texts: Vec<String> = vec![String::new(); self.numbers.len()];
        for (text, number) in self.numbers {
            texts[number as usize] = String::from_utf8_lossy(&text).into_owned();
        }
        if !self.rows.contains(&NONE) {
            // Values were numbered in order of their first row.
            return (self.rows, SessionNames::Named(texts));
        }
        let mut sessions = Vec::with_capacity(self.rows.len());
        let mut session_of = vec![NONE; texts.len()];
        let mut names = Vec::new();
        let mut fresh = 0;
        for number in self.rows {
            let next = u32::try_from(names.len()).expect("bounded by REQUESTS_MAX");
            if number == NONE {
                names.push(Name::Fresh(fresh));
                fresh += 1;
                sessions.push(next);
                continue;
            }
            let session = &mut session_of[number as usize];
            if *session == NONE {
                *session = next;
                names.push(Name::Given(std::mem::take(&mut texts[number as usize])));
            }
            sessions.push(*session);
        }
        (sessions, SessionNames::Mixed(names))
    }
}

/// The column that counts; `None` when nothing repeats in either.
pub(crate) fn stronger(provided: Keys, poor_man: Keys) -> Option<Keys> {
    let (first, second) = (provided.score(), poor_man.score());
    if first.0 == 0 && second.0 == 0 {
        return None;
    }
    Some(if first >= second { provided } else { poor_man })
}

/// Writes into each record its session and its place in it: by time, then by place in the file.
pub(crate) fn place(records: &mut [Record], sessions: &[u32]) {
    let count = u32::try_from(records.len()).expect("bounded by REQUESTS_MAX");
    let mut order: Vec<u32> = (0..count).collect();
    order.sort_by_key(|&record| (sessions[record as usize], records[record as usize].at));
    let mut previous = None;
    let mut turn = 0;
    for record in order {
        let session = sessions[record as usize];
        turn = if previous == Some(session) { turn + 1 } else { 0 };
        previous = Some(session);
        let record = &mut records[record as usize];
        record.session = SessionIndex(session);
        record.turn = turn;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(values: &[Option<&str>]) -> Keys {
        let mut keys = Keys::default();
        values.iter().for_each(|value| keys.push(value.map(str::as_bytes)));
        keys
    }

    #[test]
    fn more_repeated_rows_win_then_more_values_then_the_provided_one() {
        let (a, b) = (Some("a"), Some("b"));
        for (provided, poor_man, expected) in [
            ([a, a, b, None], [a, a, a, b], Some([0, 0, 0, 1])),
            ([a, a, a, a], [a, a, b, b], Some([0, 0, 1, 1])),
            ([a, a, b, None], [None, b, b, a], Some([0, 0, 1, 2])),
            ([a, b, None, None], [None, None, a, b], None),
        ] {
            let rows = stronger(keys(&provided), keys(&poor_man)).map(|keys| keys.sessions().0);
            assert_eq!(rows, expected.map(|rows| rows.to_vec()), "{provided:?} {poor_man:?}");
        }
    }

    #[test]
    fn rows_without_a_value_have_fresh_names_of_their_own() {
        let (rows, names) = keys(&[None, Some("x"), None, Some("x"), Some("")]).sessions();
        assert_eq!(rows, [0, 1, 2, 1, 3]);
        let called: Vec<String> = (0..4).map(|at| names.name(SessionIndex(at))).collect();
        assert_eq!(called, ["session_000000", "x", "session_000001", ""]);
    }
}
