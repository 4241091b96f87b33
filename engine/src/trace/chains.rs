//! Parent links → sessions, and an order inside each that puts no child before its parent.
//!
//! The rules, for any file: a row whose parent is not in the file starts a session of its own; a
//! chat id that appears twice means its last row when others name it as their parent; rows that
//! name each other in a circle form one session whose root is the circle's first row in the file. A
//! session is called after its root's chat id, so roots that share an id share the session. Inside
//! one, rows come by turn, then timestamp, then file order, as far as parents allow. Every row is
//! kept exactly once; what is broken is counted and told with its lines.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use onbeat_shared::trace::Warning;
use onbeat_shared::trace::record::Record;

use crate::trace::bailian::Link;

/// What the links of a file come to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Chains {
    /// Session and place in it, of each row.
    pub(crate) places: Vec<(u32, u32)>,
    /// Session names, in order of their first row.
    pub(crate) names: Vec<String>,
    /// Orphans, circles and repeated ids.
    pub(crate) warnings: Vec<Warning>,
}

/// A row in no particular circle, without parent.
const NONE: u32 = u32::MAX;
/// Lines that a warning spells out.
const LINES_TOLD: usize = 10;

/// Sorts rows into sessions.
pub(crate) fn resolve(links: &[Link], records: &[Record]) -> Chains {
    let mut last_row: HashMap<i128, u32> = HashMap::with_capacity(links.len());
    let (mut repeated, mut orphans) = (Vec::new(), Vec::new());
    for (row, link) in (0_u32..).zip(links) {
        if last_row.insert(link.chat, row).is_some() {
            repeated.push(row);
        }
    }
    let mut parents: Vec<u32> = (0_u32..)
        .zip(links)
        .map(|(row, link)| match link.parent {
            None => NONE,
            Some(parent) => last_row.get(&parent).copied().unwrap_or_else(|| {
                orphans.push(row);
                NONE
            }),
        })
        .collect();
    let circles = cut_circles(&mut parents);
    let roots = roots(&parents);
    let (session_of, names) = sessions(links, &roots);
    let turns = order(links, records, &parents, &session_of, names.len());
    let told = |rows: &[u32], what: &str, words: &str| {
        let lines: Vec<u64> = rows.iter().map(|&row| records[row as usize].row).collect();
        warning(&lines, what, words)
    };
    let warnings = [
        told(
            &orphans,
            "orphans",
            "parent_chat_id is not in the file; each starts a session of its own",
        ),
        told(
            &circles,
            "cycles",
            "parents name each other in a circle; the first row of each starts the session",
        ),
        told(
            &repeated,
            "duplicates",
            "chat_id is that of an earlier row; all are kept, and the last is the parent of those \
             that name it",
        ),
    ];
    Chains {
        places: session_of.into_iter().zip(turns).collect(),
        names,
        warnings: warnings.into_iter().flatten().collect(),
    }
}

/// Makes the first row of every circle a root; gives the rows of all circles, in file order.
fn cut_circles(parents: &mut [u32]) -> Vec<u32> {
    const FRESH: u32 = NONE;
    // The walk on which a row was first visited: meeting it again on the same walk is a circle.
    let mut walk_of = vec![FRESH; parents.len()];
    let mut circles = Vec::new();
    for start in 0..parents.len() {
        let walk = u32::try_from(start).expect("bounded by REQUESTS_MAX");
        let mut row = walk;
        while row != NONE && walk_of[row as usize] == FRESH {
            walk_of[row as usize] = walk;
            row = parents[row as usize];
        }
        if row == NONE || walk_of[row as usize] != walk {
            continue;
        }
        let from = circles.len();
        let entry = row;
        loop {
            circles.push(row);
            row = parents[row as usize];
            if row == entry {
                break;
            }
        }
        let first = circles[from..].iter().copied().min().expect("a circle has a row");
        parents[first as usize] = NONE;
    }
    circles.sort_unstable();
    circles
}

/// The root of every row; the parents have no circles.
fn roots(parents: &[u32]) -> Vec<u32> {
    let mut roots = vec![NONE; parents.len()];
    let mut path = Vec::new();
    for start in (0_u32..).take(parents.len()) {
        let mut row = start;
        let root = loop {
            if roots[row as usize] != NONE {
                break roots[row as usize];
            }
            path.push(row);
            match parents[row as usize] {
                NONE => break row,
                parent => row = parent,
            }
        };
        for row in path.drain(..) {
            roots[row as usize] = root;
        }
    }
    roots
}

/// Session of each row and the sessions' names, in order of first appearance.
fn sessions(links: &[Link], roots: &[u32]) -> (Vec<u32>, Vec<String>) {
    let mut numbers: HashMap<i128, u32> = HashMap::new();
    let mut names = Vec::new();
    let session_of = roots.iter().map(|&root| {
        let chat = links[root as usize].chat;
        *numbers.entry(chat).or_insert_with(|| {
            names.push(chat.to_string());
            u32::try_from(names.len() - 1).expect("bounded by REQUESTS_MAX")
        })
    });
    (session_of.collect(), names)
}

/// Place of each row in its session.
fn order(
    links: &[Link],
    records: &[Record],
    parents: &[u32],
    session_of: &[u32],
    sessions: usize,
) -> Vec<u32> {
    // Children of each row, as ranges of one list: a counting sort by parent.
    let mut first_child = vec![0_u32; parents.len() + 1];
    for &parent in parents.iter().filter(|&&parent| parent != NONE) {
        first_child[parent as usize + 1] += 1;
    }
    for row in 0..parents.len() {
        first_child[row + 1] += first_child[row];
    }
    let mut free = first_child.clone();
    let mut children = vec![0_u32; *first_child.last().unwrap_or(&0) as usize];
    for (row, &parent) in (0_u32..).zip(parents).filter(|(_, parent)| **parent != NONE) {
        children[free[parent as usize] as usize] = row;
        free[parent as usize] += 1;
    }
    // One queue for all sessions: a row waits in it from the moment its parent has its place.
    let key = |row: u32| {
        let place = row as usize;
        Reverse((session_of[place], links[place].turn, records[place].at, row))
    };
    let roots = (0_u32..).zip(parents).filter(|(_, parent)| **parent == NONE);
    let mut waiting: BinaryHeap<_> = roots.map(|(row, _)| key(row)).collect();
    let mut next = vec![0_u32; sessions];
    let mut turns = vec![0_u32; parents.len()];
    while let Some(Reverse((session, _, _, row))) = waiting.pop() {
        turns[row as usize] = next[session as usize];
        next[session as usize] += 1;
        let range = first_child[row as usize] as usize..first_child[row as usize + 1] as usize;
        waiting.extend(children[range].iter().map(|&child| key(child)));
    }
    turns
}

fn warning(lines: &[u64], what: &str, words: &str) -> Option<Warning> {
    let rows = lines.len() as u64;
    lines.first()?;
    let mut list: Vec<String> = lines.iter().take(LINES_TOLD).map(u64::to_string).collect();
    if lines.len() > LINES_TOLD {
        list.push("…".to_owned());
    }
    let (word, list) = (if rows == 1 { "line" } else { "lines" }, list.join(", "));
    Some(Warning { line: None, rows, words: format!("{what}: {rows} ({word} {list}): {words}") })
}

#[cfg(test)]
mod tests {
    use onbeat_shared::units::{SessionIndex, TraceNanos};
    use proptest::prelude::{prop, proptest};

    use super::*;

    /// (chat, parent, turn, timestamp) → the chats of each session in order, and the warnings.
    fn resolved(rows: &[(i128, i128, i128, i64)]) -> (Vec<(String, Vec<usize>)>, Vec<String>) {
        let links: Vec<Link> = rows
            .iter()
            .map(|&(chat, parent, turn, _)| Link {
                chat,
                parent: Some(parent).filter(|&parent| parent != -1),
                turn,
            })
            .collect();
        let records: Vec<Record> = (1..)
            .zip(rows)
            .map(|(row, &(_, _, _, at))| Record {
                row,
                at: TraceNanos(at),
                input_tokens: 1,
                output_tokens: None,
                session: SessionIndex(0),
                turn: 0,
                first_block: 0,
                block_count: 0,
            })
            .collect();
        let chains = resolve(&links, &records);
        let mut sessions: Vec<(String, Vec<usize>)> =
            chains.names.into_iter().map(|name| (name, vec![usize::MAX; rows.len()])).collect();
        for (row, &(session, turn)) in chains.places.iter().enumerate() {
            let place = &mut sessions[session as usize].1[turn as usize];
            assert_eq!(*place, usize::MAX, "no two rows share a place");
            *place = row + 1;
        }
        for (_, rows) in &mut sessions {
            rows.retain(|&row| row != usize::MAX);
        }
        (sessions, chains.warnings.into_iter().map(|warning| warning.words).collect())
    }

    #[test]
    fn chains_are_followed_to_their_root() {
        let (sessions, warnings) =
            resolved(&[(1, -1, 1, 0), (2, 1, 2, 5), (9, -1, 1, 6), (3, 2, 3, 7), (4, 1, 2, 8)]);
        assert_eq!(sessions, [("1".into(), vec![1, 2, 5, 4]), ("9".into(), vec![3])]);
        assert!(warnings.is_empty());
    }

    #[test]
    fn orphans_start_sessions_of_their_own() {
        let (sessions, warnings) = resolved(&[(10, 999, 2, 1), (11, 999, 3, 2), (1, -1, 1, 0)]);
        assert_eq!(sessions.len(), 3);
        assert!(warnings[0].starts_with("orphans: 2 (lines 1, 2)"), "{warnings:?}");
    }

    #[test]
    fn circles_are_cut_at_their_first_row() {
        let (sessions, warnings) =
            resolved(&[(2, 1, 1, 0), (1, 2, 1, 1), (3, 1, 1, 2), (7, 7, 1, 3)]);
        assert_eq!(sessions, [("2".into(), vec![1, 2, 3]), ("7".into(), vec![4])]);
        assert!(warnings[0].starts_with("cycles: 3 (lines 1, 2, 4)"), "{warnings:?}");
    }

    #[test]
    fn duplicates_are_kept_and_the_last_is_the_parent() {
        let (sessions, warnings) =
            resolved(&[(1, -1, 1, 0), (1, -1, 1, 1), (2, 1, 2, 2), (3, 2, 3, 3), (2, -1, 1, 4)]);
        // Row 4 names chat 2, whose last row is row 5, a root of its own.
        assert_eq!(sessions, [("1".into(), vec![1, 2, 3]), ("2".into(), vec![5, 4])]);
        assert!(warnings[0].starts_with("duplicates: 2 (lines 2, 5)"), "{warnings:?}");
    }

    #[test]
    fn a_child_never_comes_before_its_parent() {
        // The child has the smaller turn, the smaller timestamp and the earlier line.
        let (sessions, _) = resolved(&[(2, 1, 1, 0), (1, -1, 5, 9), (3, 2, 0, 0)]);
        assert_eq!(sessions, [("1".into(), vec![2, 1, 3])]);
    }

    #[test]
    fn a_very_long_chain_does_not_recurse() {
        let rows: Vec<(i128, i128, i128, i64)> =
            (0..50_000).map(|row| (row, row - 1, row, 0)).collect();
        let (sessions, _) = resolved(&rows);
        assert_eq!(sessions.len(), 1);
        assert_eq!(sessions[0].1.len(), 50_000);
    }

    proptest! {
        #[test]
        fn every_row_has_one_place_after_its_parent(
            rows in prop::collection::vec((0_i128..12, -1_i128..14, 0_i128..4, 0_i64..4), 0..40),
        ) {
            let (sessions, _) = resolved(&rows);
            let mut all: Vec<usize> = sessions.iter().flat_map(|(_, rows)| rows.clone()).collect();
            all.sort_unstable();
            assert_eq!(all, (1..=rows.len()).collect::<Vec<_>>());
            let parent = |row: usize| {
                let named = rows[row - 1].1;
                (1..=rows.len()).rev().find(|&row| named != -1 && rows[row - 1].0 == named)
            };
            let ancestors = |row: usize| {
                std::iter::successors(parent(row), |&row| parent(row)).take(rows.len())
            };
            let circle_start = |row: usize| {
                let circle: Vec<usize> = ancestors(row).collect();
                circle.iter().position(|&other| other == row)
                    .is_some_and(|end| circle[..=end].iter().min() == Some(&row))
            };
            for (_, order) in &sessions {
                for (place, &row) in order.iter().enumerate() {
                    let after = parent(row).is_none_or(|parent| order[..place].contains(&parent));
                    assert!(after || circle_start(row), "row {row} in {order:?}");
                }
            }
        }
    }
}
