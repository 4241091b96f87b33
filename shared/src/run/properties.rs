//! What must hold of a log that is read in pieces, wherever they are cut.

use std::ops::Range;

use proptest::prelude::*;
use proptest::sample::Index;

use super::{Reader, Run, State, Tail};
use crate::log::properties::{make_checksums_right, nothing_invented};
use crate::log::sample::Sample;
use crate::log::{Class, LogError, sample, sample_users};
use crate::units::RunNanos;

/// Feeds a log in pieces that end at these places, with a picture after each piece if `pictures`.
fn in_pieces(log: &[u8], mut ends: Vec<usize>, pictures: bool) -> Result<Run, LogError> {
    ends.sort_unstable();
    let mut reader = Reader::new();
    for end in ends {
        let offset = reader.offset();
        let taken = reader.feed(&log[offset..end.max(offset)])?;
        assert_eq!(reader.offset(), offset + taken);
        if pictures {
            let _run = reader.snapshot(Tail::Growing);
        }
    }
    let offset = reader.offset();
    reader.finish(&log[offset..])
}

/// Everything that a run says, the order of its segments aside.
fn assert_same(found: &Run, known: &Run) {
    assert_eq!(found.warnings, known.warnings);
    assert_eq!(found.manifest, known.manifest);
    assert_eq!(found.footer, known.footer);
    assert_eq!(found.plan, known.plan);
    assert_eq!(found.sessions, known.sessions);
    assert_eq!(found.users, known.users);
    assert_eq!(found.recorded, known.recorded);
    assert!(found.requests == known.requests, "the same columns");
    assert_eq!(found.stalls.all(), known.stalls.all());
    assert_eq!(found.connects, known.connects);
    assert_eq!(found.anchors, known.anchors);
    assert_eq!(found.losses, known.losses);
    assert_eq!((found.state, found.damaged_bytes), (known.state, known.damaged_bytes));
    assert_eq!(found.texts, known.texts);
    assert_eq!(found.chunks.len(), known.chunks.len());
    for i in 0..known.requests.len() {
        let rows = [found, known].map(|run| run.chunks.row(i).iter().collect::<Vec<_>>());
        assert_eq!(rows[0], rows[1], "request {i}");
    }
}

/// A log, whole, torn or damaged.
fn log() -> impl Strategy<Value = Vec<u8>> {
    let whole = prop_oneof![
        (0_u64..50, 0_u32..80).prop_map(|(seed, requests)| sample::log(seed, requests)),
        (0_u64..50, 1_u32..4).prop_map(|(seed, users)| sample_users::log(seed, users)),
    ];
    let changes = proptest::collection::vec((any::<Index>(), any::<u8>()), 0..4);
    (whole, changes, any::<Index>(), any::<bool>(), any::<bool>()).prop_map(
        |(mut log, changes, end, torn, right)| {
            for (place, byte) in changes {
                let at = place.index(log.len());
                log[at] ^= byte;
            }
            if right {
                make_checksums_right(&mut log);
            }
            if torn {
                log.truncate(end.index(log.len()));
            }
            log
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 96,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_log_in_pieces_gives_the_same_run(
        log in log(),
        ends in proptest::collection::vec(any::<Index>(), 0..40),
        pictures in any::<bool>(),
    ) {
        let ends = ends.iter().map(|end| end.index(log.len() + 1)).collect();
        match (in_pieces(&log, ends, pictures), Run::read(&log)) {
            (Ok(found), Ok(known)) => assert_same(&found, &known),
            (found, known) => assert_eq!(found.err(), known.err()),
        }
    }

    #[test]
    fn a_picture_of_a_part_says_nothing_that_the_whole_does_not(
        seed in 0_u64..50,
        by_users in any::<bool>(),
        end in any::<Index>(),
    ) {
        let log = if by_users { sample_users::log(seed, 3) } else { sample::log(seed, 60) };
        let whole = Run::read(&log).expect("a whole log");
        let end = end.index(log.len());
        let mut reader = Reader::new();
        let taken = reader.feed(&log[..end]).expect("a log");
        let Ok(part) = reader.snapshot(Tail::Growing) else { return Ok(()) };
        assert_eq!(part.state, State::Unfinished { cut_bytes: 0 });
        nothing_invented(&part, &whole, end);
        let torn = reader.snapshot(Tail::Torn).expect("as before");
        let cut_bytes = (end - taken) as u64;
        assert_eq!(torn.state, State::Unfinished { cut_bytes });
        assert_same(&torn, &Run::read(&log[..end]).expect("as before"));
    }
}

#[test]
fn one_byte_at_a_time_is_enough() {
    for log in [sample::log(3, 12), sample_users::log(3, 2)] {
        let ends = (0..=log.len()).collect();
        let run = in_pieces(&log, ends, false).expect("a log");
        assert_same(&run, &Run::read(&log).expect("a log"));
    }
}

#[test]
fn a_request_that_goes_on_after_its_end_keeps_its_events_together() {
    let mut sample = Sample::new();
    let early = sample.send(0);
    let (mut time, mut times) = (0, Vec::new());
    for round in 0..6 {
        time += 10;
        sample.chunks(early, &[time]);
        times.push(time);
        if round == 0 {
            sample.done(early, time, Class::Ok);
        }
        for _ in 0..40 {
            time += 10;
            let other = sample.send(time);
            sample.chunks(other, &[time + 1, time + 2, time + 3]);
            sample.done(other, time + 4, Class::Ok);
        }
    }
    let log = sample.bytes();
    for pieces in [1, 3, 50] {
        let ends = (1..pieces).map(|piece| log.len() * piece / pieces).collect();
        let run = in_pieces(&log, ends, true).expect("a log");
        assert_eq!(run.chunks.row(0).times(), times);
        assert_eq!(run.chunks.len(), 6 + 6 * 40 * 3);
        assert_eq!(run.requests.last_token(0), Some(RunNanos(time - 40 * 10)));
        for i in 1..run.requests.len() {
            let sent = run.requests.sent(i).expect("sent").0;
            assert_eq!(run.chunks.row(i).times(), [sent + 1, sent + 2, sent + 3], "request {i}");
        }
    }
}

/// What a run says of its requests.
fn said(run: &Run) -> String {
    let rows = (0..run.requests.len()).map(|i| run.chunks.row(i).iter().collect::<Vec<_>>());
    format!("{:?} {:?}", run.requests, rows.collect::<Vec<_>>())
}

#[test]
fn earlier_pictures_stay_as_they_were() {
    let log = sample::log(9, 200);
    let mut reader = Reader::new();
    let mut pictures = Vec::new();
    for end in (0..=log.len()).step_by(log.len() / 20) {
        let offset = reader.offset();
        reader.feed(&log[offset..end.max(offset)]).expect("a log");
        if let Ok(run) = reader.snapshot(Tail::Growing) {
            let said = said(&run);
            pictures.push((run, said));
        }
    }
    assert!(pictures.len() > 10);
    for (run, said) in &pictures {
        assert!(self::said(run) == *said, "a picture never changes");
    }
}

#[test]
fn what_comes_after_the_first_record_and_belongs_before_it_is_ignored_and_said() {
    let mut sample = Sample::new();
    sample.send(0);
    sample.closed = false;
    let mut log = sample.bytes();
    log.extend(crate::log::plan_blocks([sample.plan[0]]).flatten());
    let run = Run::read(&log).expect("a log");
    assert_eq!(run.warnings, ["1 block of the plan comes after the first record; ignored"]);
    assert_eq!(run.requests.len(), 1);
}

/// Cores write their blocks in any order: here those of later requests come first.
#[test]
fn blocks_of_user_driven_runs_may_come_in_any_order() {
    let log = sample_users::log(4, 3);
    let known = Run::read(&log).expect("a log");
    let mut blocks = records_blocks(&log);
    let (first, last) = (blocks[0].start, blocks[blocks.len() - 1].end);
    let core = |block: &Range<usize>| [log[block.start + 11], log[block.start + 10]];
    blocks.sort_by_key(|block| std::cmp::Reverse(core(block)));
    let mut turned = log[..first].to_vec();
    blocks.iter().for_each(|block| turned.extend_from_slice(&log[block.clone()]));
    turned.extend_from_slice(&log[last..]);
    let ends = (0..=turned.len()).step_by(100).collect();
    let run = in_pieces(&turned, ends, true).expect("a log");
    assert_eq!(run.warnings, known.warnings);
    assert!(run.requests == known.requests, "the same columns");
    assert_eq!(run.plan, known.plan);
    assert_eq!(run.users, known.users);
}

/// Where the blocks of records are, which lie side by side.
fn records_blocks(log: &[u8]) -> Vec<Range<usize>> {
    let mut blocks = Vec::new();
    let mut at = 64;
    while let Some(header) = log.get(at..at + 32) {
        let length = u32::from_le_bytes([header[20], header[21], header[22], header[23]]);
        let end = at + 32 + length as usize;
        if header[8] == 4 {
            blocks.push(at..end);
        }
        at = end;
    }
    blocks
}
