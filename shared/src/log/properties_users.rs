//! Properties of the records about users: what is written is what is read, and damage never becomes
//! a fact. The damage tests are exhaustive over a small user-driven log, as those of other logs are
//! in [`super::properties`].

use proptest::prelude::{ProptestConfig, Strategy, any, prop_oneof, proptest};
use proptest::sample::Index;

use super::properties::{extreme, make_checksums_right, nothing_invented, payload_places, time};
use super::users::{ASSESSMENT_PART_BYTES, ASSESSMENT_PARTS};
use super::{Assessment, LimitedBy, RampReason, Record, StepFlags, UserEvent, sample_users};
use crate::export::{self, Beside, Table, TextFormat};
use crate::metrics::ReportOptions;
use crate::metrics::slo::Goals;
use crate::run::{Run, State};
use crate::units::{RequestIndex, SessionIndex};

fn known() -> impl Strategy<Value = Option<u32>> {
    // The largest number is the format's "none".
    any::<Option<u32>>().prop_map(|value| value.filter(|&value| value != u32::MAX))
}

fn step() -> impl Strategy<Value = Record> {
    (any::<[u32; 4]>(), known(), known(), known(), any::<u8>()).prop_map(
        |([request, template, session, body_bytes], after, ideal_cached, ideal_set, flags)| {
            Record::Step {
                request: RequestIndex(request),
                template,
                session: SessionIndex(session),
                after: after.map(RequestIndex),
                body_bytes,
                ideal_cached,
                ideal_set,
                flags: StepFlags(flags),
            }
        },
    )
}

fn event() -> impl Strategy<Value = UserEvent> {
    let two = any::<[u32; 2]>;
    prop_oneof![
        (two(), any::<u16>()).prop_map(|([template, cue], copy)| UserEvent::Started {
            template: SessionIndex(template),
            cue,
            copy
        }),
        two().prop_map(|[done, total]| UserEvent::Completed { done, total }),
        two().prop_map(|[done, total]| UserEvent::Truncated { done, total }),
        two().prop_map(|[done, total]| UserEvent::Stopped { done, total }),
        (0..LimitedBy::ALL.len(), any::<u64>())
            .prop_map(|(by, backoff_ns)| UserEvent::Limited { by: LimitedBy::ALL[by], backoff_ns }),
    ]
}

fn user() -> impl Strategy<Value = Record> {
    (any::<u32>(), time(), event(), known(), any::<u32>()).prop_map(
        |(session, time, event, parent, number)| Record::User {
            session: SessionIndex(session),
            time,
            event,
            parent: parent.map(SessionIndex),
            number,
        },
    )
}

fn part() -> impl Strategy<Value = Record> {
    (any::<u32>(), any::<u8>(), any::<[u8; ASSESSMENT_PART_BYTES]>())
        .prop_map(|(period, part, bytes)| Record::Assessment { period, part, bytes })
}

/// Any record about users.
pub(super) fn of_users() -> impl Strategy<Value = Record> {
    prop_oneof![step(), user(), part()]
}

fn assessment() -> impl Strategy<Value = Assessment> {
    let shares = proptest::array::uniform4(proptest::option::of(-1e9_f32..1e9));
    let ttft = any::<Option<i64>>().prop_map(|ttft| ttft.filter(|&ttft| ttft != i64::MIN));
    let counts = (any::<[u32; 4]>(), any::<[u16; 5]>(), any::<[u64; 2]>());
    (time(), ttft, counts, shares, 0..RampReason::ALL.len()).prop_map(
        |(time, ttft_ns, (words, halves, tokens), shares, reason)| Assessment {
            period: words[0],
            time,
            ttft_ns,
            users: words[1],
            in_flight: words[2],
            added: halves[0],
            reason: RampReason::ALL[reason],
            headroom: shares[0],
            good: halves[1],
            exceeded: halves[2],
            required: halves[3],
            ramps: halves[4],
            working_set_tokens: tokens[0],
            new_tokens: tokens[1],
            limited: words[3],
            input_budget: shares[1],
            output_budget: shares[2],
            output_rate: shares[3],
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_record_survives_the_round_trip(record in of_users()) {
        assert_eq!(Record::decode(&record.encode()), Some(record));
    }

    #[test]
    fn an_assessment_survives_its_parts(assessment in assessment()) {
        let mut parts = [[0; ASSESSMENT_PART_BYTES]; ASSESSMENT_PARTS];
        for record in assessment.records() {
            let Some(Record::Assessment { period, part, bytes }) = Record::decode(&record.encode())
            else { panic!("not a part") };
            assert_eq!(period, assessment.period);
            parts[usize::from(part)] = bytes;
        }
        assert_eq!(Assessment::from_parts(assessment.period, &parts), assessment);
    }

    /// Checksums made right again, so that the changed numbers reach the code behind them.
    #[test]
    fn hostile_numbers_read_without_a_panic(
        changes in proptest::collection::vec((any::<Index>(), extreme(), 0_usize..9), 1..60),
    ) {
        let mut log = sample_users::log(3, 3);
        let places = payload_places(&log);
        for (place, bytes, length) in changes {
            let at = places[place.index(places.len())];
            let end = (at + length).min(log.len());
            log[at..end].copy_from_slice(&bytes[..end - at]);
        }
        make_checksums_right(&mut log);
        if let Ok(run) = Run::read(&log) {
            assert!(run.requests.len() <= log.len() / super::RECORD_BYTES);
            let slo = Goals::parse("ttft:1 itl:1 decode_tps:9 e2e:4").ok();
            let options = ReportOptions { slo, ..ReportOptions::default() };
            let _report = crate::metrics::report(&run, &options);
            let goals = Goals::default();
            for table in [Table::Requests, Table::Chunks] {
                let (beside, sink) = (Beside::goals(&goals), std::io::sink());
                export::write_text(&run, table, TextFormat::Csv, &beside, sink)
                    .expect("a sink takes everything");
            }
        }
    }
}

#[test]
fn a_log_cut_at_any_byte_reads_as_a_prefix_of_itself() {
    let log = sample_users::log(11, 2);
    let run = Run::read(&log).expect("a run");
    for cut in 0..log.len() {
        let Ok(part) = Run::read(&log[..cut]) else { continue };
        let State::Unfinished { .. } = part.state else { panic!("at {cut}") };
        nothing_invented(&part, &run, cut);
        no_user_invented(&part, &run, cut);
        let _report = crate::metrics::report(&part, &ReportOptions::default());
    }
}

#[test]
fn a_flip_of_any_byte_changes_no_number_and_is_said() {
    let log = sample_users::log(11, 2);
    let run = Run::read(&log).expect("a run");
    for at in 0..log.len() {
        let mut flipped = log.clone();
        flipped[at] ^= 1 << (at % 8);
        let Ok(part) = Run::read(&flipped) else { continue };
        assert!(!part.warnings.is_empty(), "the flip at {at} went unsaid");
        assert!(part.users.is_some(), "the flip at {at} cost all users");
        nothing_invented(&part, &run, at);
        no_user_invented(&part, &run, at);
    }
}

#[test]
fn a_number_whose_user_never_began_is_no_loss_and_a_beginning_that_is_lost_is() {
    let begins = UserEvent::Started { template: SessionIndex(0), cue: 0, copy: 0 };
    let mut sample = sample_users::empty(1_000);
    sample_users::happens(&mut sample, 0, 0, begins);
    // Session 1 was to begin when the run ended.
    sample_users::happens(&mut sample, 2, 5, begins);
    let run = Run::read(&sample.bytes()).expect("a run");
    assert_eq!(run.warnings, Vec::<String>::new());
    let stopped = UserEvent::Stopped { done: 0, total: 1 };
    sample_users::happens(&mut sample, 1, 9, stopped);
    let run = Run::read(&sample.bytes()).expect("a run");
    assert_eq!(run.warnings, ["1 user has no record of the beginning; it was lost"]);
}

/// Whatever the damaged run knows of users and what they sent, the whole run knows the same.
fn no_user_invented(part: &Run, whole: &Run, at: usize) {
    let (Some(found), Some(known)) = (&part.users, &whole.users) else { return };
    for (user, other) in found.users.iter().zip(&known.users) {
        assert!(user.name.is_empty() || user.name == other.name, "at {at}");
        assert!(user.started.is_none() || user.started == other.started, "at {at}");
        assert!(user.left.is_none() || user.left == other.left, "at {at}");
        assert!(user.requests <= other.requests && user.limited <= other.limited, "at {at}");
    }
    assert!(found.assessments.iter().all(|one| known.assessments.contains(one)), "at {at}");
    assert!(found.limits.iter().all(|one| known.limits.contains(one)), "at {at}");
    for i in 0..part.requests.len() {
        let template = found.template(i);
        assert!(template.is_none() || template == known.template(i), "request {i}, at {at}");
        let (row, other) = (&part.plan[i], &whole.plan[i]);
        if row.row > 0 {
            assert_eq!(row.row, other.row, "request {i}, at {at}");
            assert_eq!(row.session, other.session, "request {i}, at {at}");
            assert_eq!(row.input_tokens, other.input_tokens, "request {i}, at {at}");
        }
    }
}

#[test]
fn older_versions_are_read_and_do_not_misread() {
    assert_eq!((super::FORMAT_VERSION, super::READABLE_FROM), (7, 2));
    let [plain, users] = [super::sample::log(1, 10), sample_users::log(1, 2)];
    assert_eq!([plain[8], plain[10]], [7, 2]);
    assert_eq!([users[8], users[10]], [7, 4], "templates are no requests to an older reader");
    // A log of version 3 says nothing of users.
    let mut older = plain;
    older[8] = 3;
    let checksum = crc32fast::hash(&older[..60]);
    older[60..64].copy_from_slice(&checksum.to_le_bytes());
    let run = Run::read(&older).expect("an older log");
    assert!(run.users.is_none());
    assert_eq!(run.requests.len(), 10);
    assert_eq!(run.warnings, Vec::<String>::new());
}
