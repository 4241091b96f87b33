//! The plan as its callers see it: small traces and options in, rows out.

use std::collections::HashMap;

use onbeat_shared::trace::blocks::BlockIds;
use onbeat_shared::trace::decimal::{Decimal, Ratio};
use onbeat_shared::trace::record::Record;
use onbeat_shared::trace::recorded::Recorded;
use onbeat_shared::trace::session::SessionNames;
use onbeat_shared::trace::{Format, Source, Trace};
use onbeat_shared::units::{NANOS_PER_MILLI, SessionIndex, TraceNanos};
use proptest::prelude::{Strategy, prop, prop_assert, prop_assert_eq, proptest};

use super::{Arrivals, Pattern, Plan, PlanError, PlanMode, PlanOptions, Synthesis, build};

/// Rows of (timestamp in ms, session, turn), 100 tokens each.
fn trace(rows: &[(i64, u32, u32)]) -> Trace {
    let record = |(line, &(at_ms, session, turn))| Record {
        row: line,
        at: TraceNanos(at_ms * NANOS_PER_MILLI),
        input_tokens: 100,
        output_tokens: Some(4),
        session: SessionIndex(session),
        turn,
        first_block: 0,
        block_count: 0,
    };
    let sessions = rows.iter().map(|&(_, session, _)| session + 1).max().unwrap_or(0);
    Trace {
        source: Source {
            name: "t.jsonl".to_owned(),
            sha256: String::new(),
            format: Format::Bailian,
            rows: rows.len() as u64,
            bytes: 0,
        },
        records: (1..).zip(rows).map(record).collect(),
        blocks: BlockIds::default(),
        block_tokens: 16,
        sessions: SessionNames::Fresh(sessions),
        recorded: Recorded::default(),
        warnings: Vec::new(),
    }
}

/// Every row its own session.
fn single(at_ms: &[i64]) -> Trace {
    let rows: Vec<(i64, u32, u32)> =
        at_ms.iter().zip(0..).map(|(&at, session)| (at, session, 0)).collect();
    trace(&rows)
}

fn dues_ms(plan: &Plan) -> Vec<f64> {
    let due = |row: &onbeat_shared::log::plan_row::PlanRow| row.due.expect("open loop").0;
    plan.rows.iter().map(|row| due(row) as f64 / NANOS_PER_MILLI as f64).collect()
}

fn lines(plan: &Plan) -> Vec<u64> {
    plan.rows.iter().map(|row| row.row).collect()
}

fn speedup(text: &str) -> Ratio {
    Decimal::parse(text).and_then(Decimal::ratio).expect("a ratio")
}

fn built(trace: &Trace, options: &PlanOptions) -> Plan {
    build(trace, options).expect("a plan")
}

#[test]
fn the_earliest_row_is_the_zero_wherever_it_stands() {
    let plan = built(&single(&[900, 0, 400]), &PlanOptions::default());
    assert_eq!(lines(&plan), [2, 3, 1]);
    assert_eq!(dues_ms(&plan), [0.0, 400.0, 900.0]);
    assert_eq!(plan.record_of, [1, 2, 0]);
    assert_eq!(plan.sessions, ["session_000001", "session_000002", "session_000000"]);
}

#[test]
fn one_instant_keeps_file_order() {
    let plan = built(&single(&[1000; 6]), &PlanOptions::default());
    assert_eq!(lines(&plan), [1, 2, 3, 4, 5, 6]);
    assert_eq!(dues_ms(&plan), [0.0; 6]);
}

#[test]
fn a_window_is_inclusive_and_its_start_is_the_zero() {
    let options = PlanOptions {
        start_offset_ns: Some(500 * NANOS_PER_MILLI),
        end_offset_ns: Some(2000 * NANOS_PER_MILLI),
        speedup: speedup("2"),
        ..PlanOptions::default()
    };
    let plan = built(&single(&[0, 1000, 2000, 3000]), &options);
    assert_eq!(dues_ms(&plan), [250.0, 750.0]);
    assert_eq!((plan.left_out.before_start, plan.left_out.after_end), (1, 1));
    assert!(plan.warnings[0].contains("due 0.250 s after"), "{:?}", plan.warnings);
    let open = PlanOptions { start_offset_ns: None, ..options };
    assert_eq!(dues_ms(&built(&single(&[700, 1000, 3000]), &open)), [0.0, 150.0]);
}

#[test]
fn the_idle_gap_cap_is_wall_clock_after_the_speed_up() {
    let options = PlanOptions {
        speedup: speedup("10"),
        idle_gap_cap_ns: Some(5_000 * NANOS_PER_MILLI),
        ..PlanOptions::default()
    };
    let plan = built(&single(&[0, 1_000, 601_000, 602_000]), &options);
    assert_eq!(dues_ms(&plan), [0.0, 100.0, 5_100.0, 5_200.0]);
}

#[test]
fn duration_and_count_cut_the_schedule() {
    let trace = single(&[0, 1000, 2000, 3000]);
    let duration_ns = Some(2000 * NANOS_PER_MILLI);
    let plan = built(&trace, &PlanOptions { duration_ns, ..PlanOptions::default() });
    assert_eq!((plan.rows.len(), plan.left_out.beyond_duration), (2, 2));
    let request_count = Some(3);
    let plan = built(&trace, &PlanOptions { request_count, ..PlanOptions::default() });
    assert_eq!((plan.rows.len(), plan.left_out.beyond_count), (3, 1));
}

#[test]
fn nothing_left_says_why() {
    let options = PlanOptions { start_offset_ns: Some(i64::MAX), ..PlanOptions::default() };
    let words = build(&single(&[0, 1]), &options).expect_err("empty").to_string();
    assert!(words.contains("of the trace's 2 rows, 2 lie before"), "{words}");
}

#[test]
fn due_times_beyond_64_bits_are_refused_with_their_line() {
    let options = PlanOptions { speedup: speedup("0.000001"), ..PlanOptions::default() };
    let found = build(&single(&[0, 9_000_000_000_000]), &options).expect_err("too far");
    assert_eq!(found, PlanError::DueOutOfRange(2));
}

#[test]
fn turns_wait_for_the_previous_one_unless_strict() {
    // The second turn of session 0 has a smaller timestamp than the first.
    let trace = trace(&[(10, 0, 0), (5, 0, 1), (0, 1, 0), (7, 1, 1), (10, 2, 0)]);
    let plan = built(&trace, &PlanOptions::default());
    assert_eq!(lines(&plan), [3, 4, 1, 2, 5]);
    let after: Vec<Option<u32>> = plan.rows.iter().map(|row| row.after.map(|a| a.0)).collect();
    assert_eq!(after, [None, Some(0), None, Some(2), None]);
    assert_eq!(dues_ms(&plan), [0.0, 7.0, 10.0, 5.0, 10.0]);
    assert_eq!(plan.rows.iter().map(|row| row.turn).collect::<Vec<_>>(), [0, 1, 0, 1, 0]);

    let strict = PlanOptions { mode: PlanMode::OpenLoopStrict, ..PlanOptions::default() };
    let plan = built(&trace, &strict);
    assert_eq!(lines(&plan), [3, 2, 4, 1, 5]);
    assert!(plan.rows.iter().all(|row| row.after.is_none()));
    assert_eq!(plan.rows.iter().map(|row| row.turn).collect::<Vec<_>>(), [0, 1, 1, 0, 0]);
}

#[test]
fn in_the_closed_loop_turns_wait_for_the_end_and_the_recorded_think_time() {
    let mut trace = trace(&[(0, 0, 0), (5_000, 0, 1), (6_000, 0, 2), (100_000, 1, 0)]);
    let ms = |ms: i64| Some(ms * NANOS_PER_MILLI);
    trace.recorded.duration_ns = vec![ms(3_000), ms(2_000), None, None];
    let thinks = |options: &PlanOptions| {
        let plan = built(&trace, options);
        let due = |row: &onbeat_shared::log::plan_row::PlanRow| row.due.map(|due| due.0);
        let row = |row: &onbeat_shared::log::plan_row::PlanRow| (due(row), row.think_ns);
        plan.rows.iter().map(row).collect::<Vec<_>>()
    };
    let closed = PlanOptions { mode: PlanMode::ClosedLoop, ..PlanOptions::default() };
    let expected = [(Some(0), None), (None, ms(2_000)), (None, Some(0)), (ms(100_000), None)];
    assert_eq!(thinks(&closed), expected);
    let fast = PlanOptions {
        speedup: speedup("4"),
        think_cap_ns: ms(300),
        idle_gap_cap_ns: ms(2_500),
        ..closed
    };
    // Only the starts of sessions are moved together: 25 s after each other, capped to 2.5 s.
    let expected = [(Some(0), None), (None, ms(300)), (None, Some(0)), (ms(2_500), None)];
    assert_eq!(thinks(&fast), expected);
}

#[test]
fn rows_without_a_time_wait_their_delay_in_every_mode() {
    let mut trace = trace(&[(0, 0, 0), (150, 0, 1), (40, 1, 0)]);
    trace.recorded.delay_ns = vec![None, Some(150 * NANOS_PER_MILLI), None];
    for mode in [PlanMode::OpenLoop, PlanMode::OpenLoopStrict, PlanMode::ClosedLoop] {
        let options = PlanOptions { mode, speedup: speedup("2"), ..PlanOptions::default() };
        let plan = built(&trace, &options);
        assert_eq!(lines(&plan), [1, 3, 2]);
        let last = plan.rows[2];
        assert_eq!((last.due, last.after.map(|after| after.0)), (None, Some(0)), "{mode}");
        assert_eq!(last.think_ns, Some(75 * NANOS_PER_MILLI));
    }
    let window =
        PlanOptions { start_offset_ns: Some(50 * NANOS_PER_MILLI), ..PlanOptions::default() };
    let plan = built(&trace, &window);
    assert_eq!(dues_ms(&plan), [100.0], "whom it would wait for is left out");
}

#[test]
fn whole_sessions_are_sampled_and_counted() {
    let rows: Vec<(i64, u32, u32)> =
        (0..400).map(|row| (row, u32::try_from(row).expect("small") % 100, 0)).collect();
    let mut trace = trace(&rows);
    trace.sessions = SessionNames::Named((0..100).map(|name| format!("s{name}")).collect());
    let share = super::Share::of(0.3).expect("a share");
    let options = PlanOptions { sample: share, seed: 1, ..PlanOptions::default() };
    let plan = built(&trace, &options);
    assert_eq!(plan.rows.len(), plan.sessions.len() * 4, "sessions are whole");
    assert!((15..45).contains(&plan.sessions.len()), "{}", plan.sessions.len());
    assert_eq!(plan.left_out.not_sampled, 400 - plan.rows.len() as u64);
    assert_eq!(plan.rows, built(&trace, &options).rows);
    let other = built(&trace, &PlanOptions { seed: 2, ..options });
    assert_ne!(plan.sessions, other.sessions);
    let rare = super::Share::of(1e-9).expect("a share");
    let one = built(&trace, &PlanOptions { sample: rare, ..PlanOptions::default() });
    assert_eq!(one.sessions.len(), 1, "one session survives");
}

#[test]
fn recorded_prompts_pin_the_output_length() {
    let mut trace = single(&[0, 1, 2]);
    for (record, (input, output)) in trace.records.iter_mut().zip([(5, 1), (50, 40), (500, 9)]) {
        record.input_tokens = input;
        record.output_tokens = Some(output);
    }
    let options = PlanOptions {
        max_input_tokens: Some(50),
        max_output_tokens: Some(20),
        ..PlanOptions::default()
    };
    let lengths = |trace: &Trace, options: &PlanOptions| {
        let plan = built(trace, options);
        assert_eq!(plan.left_out.too_long, 1);
        plan.rows.iter().map(|row| (row.max_tokens, row.min_tokens)).collect::<Vec<_>>()
    };
    assert_eq!(lengths(&trace, &options), [(Some(1), None), (Some(20), None)]);
    trace.recorded.prompts = true;
    assert_eq!(lengths(&trace, &options), [(Some(1), Some(1)), (Some(20), Some(20))]);
    let free = PlanOptions { force_min_tokens: false, ..options };
    assert_eq!(lengths(&trace, &free), [(Some(1), None), (Some(20), None)]);
}

#[test]
fn sessions_share_servers_in_turn() {
    let options = PlanOptions { targets: 2, ..PlanOptions::default() };
    let plan = built(&trace(&[(0, 0, 0), (1, 1, 0), (2, 2, 0), (3, 0, 1)]), &options);
    assert_eq!(plan.rows.iter().map(|row| row.target).collect::<Vec<_>>(), [0, 1, 0, 0]);
}

#[test]
fn copies_keep_their_gaps_and_share_nothing() {
    let mut trace = trace(&[(0, 0, 0), (1_000, 1, 0), (1_200, 0, 1), (9_000, 2, 0)]);
    for (record, ids) in trace.records.iter_mut().zip([[1, 2], [1, 3], [1, 2], [1, 2]]) {
        record.first_block = trace.blocks.len() as u64;
        record.block_count = 2;
        ids.into_iter().for_each(|id| trace.blocks.push(id));
    }
    let one = built(&trace, &PlanOptions::default());
    let options = PlanOptions { copies: 3, seed: 9, ..PlanOptions::default() };
    let plan = built(&trace, &options);
    assert_eq!((plan.rows.len(), plan.copies, plan.sessions.len()), (12, 3, 9));
    for copy in 0..3 {
        let rows: Vec<_> = plan.rows.iter().filter(|row| plan.copy(row.request) == copy).collect();
        let due = |line: u64| {
            let row = rows.iter().find(|row| row.row == line).expect("planned");
            row.due.expect("open loop").0
        };
        // One round takes the span and a mean gap: 12 s. Gaps are as recorded, but for one turn.
        let round = 12_000 * NANOS_PER_MILLI;
        assert_eq!((due(2) - due(1)).rem_euclid(round), 1_000 * NANOS_PER_MILLI, "copy {copy}");
        assert_eq!(due(3) - due(1), 1_200 * NANOS_PER_MILLI, "a session is not torn");
        assert!((0..round).contains(&due(1)) && (0..round).contains(&due(4)));
        let hits: u32 = rows.iter().filter_map(|row| row.ideal_cached_tokens).sum();
        let expected: u32 = one.rows.iter().filter_map(|row| row.ideal_cached_tokens).sum();
        assert_eq!((hits, expected), (80, 80), "prefixes are shared inside a copy");
        let mut names: Vec<_> =
            rows.iter().map(|row| plan.sessions[row.session.as_usize()].as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let suffix = if copy == 0 { String::new() } else { format!("~{copy}") };
        let expected: Vec<String> = (0..3).map(|n| format!("session_00000{n}{suffix}")).collect();
        assert_eq!(names, expected);
    }
    let first: Vec<_> = plan.rows.iter().filter(|row| plan.copy(row.request) == 0).collect();
    assert!(first.iter().zip(&one.rows).all(|(a, b)| (a.row, a.due) == (b.row, b.due)));
    assert_eq!(plan.rows, built(&trace, &options).rows, "the seed decides");
}

#[test]
fn too_many_copies_are_refused_before_they_are_made() {
    let options = PlanOptions { copies: u32::MAX, ..PlanOptions::default() };
    let found = build(&single(&[0, 1]), &options).expect_err("too many");
    assert_eq!(found, PlanError::TooManyRequests(2 * u64::from(u32::MAX)));
}

fn traces() -> impl Strategy<Value = Trace> {
    prop::collection::vec((-50_i64..50, 0_u32..6), 1..60).prop_map(|rows| {
        let mut turns: HashMap<u32, u32> = HashMap::new();
        let rows: Vec<(i64, u32, u32)> = rows
            .into_iter()
            .map(|(at, session)| {
                let next = turns.entry(session).or_default();
                *next += 1;
                (at, session, *next - 1)
            })
            .collect();
        trace(&rows)
    })
}

proptest! {
    #[test]
    fn cores_change_nothing_but_the_core(trace in traces(), cores in 1_u16..9) {
        let one = built(&trace, &PlanOptions::default());
        let many = built(&trace, &PlanOptions { cores, ..PlanOptions::default() });
        let mut core_of: HashMap<u32, u16> = HashMap::new();
        for (a, b) in one.rows.iter().zip(&many.rows) {
            prop_assert!(b.core.0 < cores);
            prop_assert_eq!(*core_of.entry(b.session.0).or_insert(b.core.0), b.core.0);
            prop_assert_eq!(*a, onbeat_shared::log::plan_row::PlanRow { core: a.core, ..*b });
        }
        prop_assert_eq!(one.rows.len(), trace.records.len());
        prop_assert_eq!(one.sessions, many.sessions);
    }

    #[test]
    fn every_turn_comes_after_the_one_it_waits_for(trace in traces()) {
        let plan = built(&trace, &PlanOptions::default());
        let mut last: HashMap<u32, u32> = HashMap::new();
        let mut latest = i64::MIN;
        for (request, row) in plan.rows.iter().enumerate() {
            prop_assert_eq!(row.request.as_usize(), request);
            let before = last.insert(row.session.0, row.request.0);
            prop_assert_eq!(row.after.map(|after| after.0), before);
            // Due times rise, but for a turn that stands behind a later one of its session.
            let due = row.due.expect("open loop").0;
            prop_assert!(due >= latest || row.after.is_some());
            latest = latest.max(due);
        }
    }

    #[test]
    fn a_speed_up_is_exact(at in prop::collection::vec(0_i64..1_000_000, 1..20)) {
        let options = PlanOptions { speedup: speedup("0.75"), ..PlanOptions::default() };
        let plan = built(&single(&at), &options);
        let zero = at.iter().min().expect("at least one");
        for row in &plan.rows {
            let place = usize::try_from(row.row - 1).expect("small");
            let exact_times_3 = (at[place] - zero) * NANOS_PER_MILLI * 4;
            let error = (row.due.expect("open loop").0 * 3 - exact_times_3).abs();
            prop_assert!(error <= 1, "{error}");
        }
    }
}

fn at_rate(rate: &str) -> PlanOptions {
    let arrivals = Arrivals { rate: speedup(rate), pattern: Pattern::Constant };
    PlanOptions { arrivals: Some(arrivals), ..PlanOptions::default() }
}

fn words(trace: &Trace, options: &PlanOptions) -> String {
    match build(trace, options) {
        Err(error @ PlanError::Unfit(_)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn rows_without_times_need_a_rate() {
    let mut trace = trace(&[(0, 0, 0), (0, 1, 0), (0, 0, 1), (0, 2, 0)]);
    trace.recorded.untimed = true;
    trace.recorded.delay_ns = vec![Some(0), Some(0), Some(5), Some(0)];
    let untimed = build(&trace, &PlanOptions::default()).expect_err("no rate");
    assert_eq!(untimed, PlanError::Untimed("t.jsonl".to_owned(), 1));
    let plan = built(&trace, &at_rate("4"));
    assert_eq!(lines(&plan), [1, 3, 2, 4]);
    let dues: Vec<_> = plan.rows.iter().map(|row| row.due.map(|due| due.0)).collect();
    assert_eq!(dues, [Some(0), None, Some(250_000_000), Some(500_000_000)]);
    assert_eq!(plan.rows[1].think_ns, Some(5));
    let late = PlanOptions { start_offset_ns: Some(1), ..at_rate("4") };
    assert!(words(&trace, &late).contains("need timestamps"));
}

#[test]
fn times_are_given_up_only_when_told_so() {
    let trace = trace(&[(0, 0, 0), (1_000, 1, 0), (1_700, 0, 1), (9_000, 2, 0)]);
    assert!(words(&trace, &at_rate("4")).contains("--no-fixed-schedule"));
    let told = PlanOptions { ignore_times: true, ..at_rate("4") };
    let plan = built(&trace, &told);
    // Sessions come every quarter of a second, and inside one nothing moves.
    assert_eq!(lines(&plan), [1, 2, 4, 3]);
    assert_eq!(dues_ms(&plan), [0.0, 250.0, 500.0, 1_700.0]);
    let neither = PlanOptions { arrivals: None, ..told };
    assert!(words(&trace, &neither).contains("--request-rate"));
}

#[test]
fn a_synthesis_speed_up_leaves_delays_alone() {
    let mut trace = trace(&[(0, 0, 0), (100, 0, 1), (400, 1, 0)]);
    trace.recorded.delay_ns = vec![None, Some(100), None];
    let synthesis = Synthesis { speedup: speedup("4"), ..Synthesis::NONE };
    let plan = built(&trace, &PlanOptions { synthesis, ..PlanOptions::default() });
    assert_eq!(plan.rows[1].think_ns, Some(100));
    assert_eq!(plan.rows[2].due.map(|due| due.0), Some(100 * NANOS_PER_MILLI));
    let replayed = PlanOptions { speedup: speedup("4"), ..PlanOptions::default() };
    assert_eq!(built(&trace, &replayed).rows[1].think_ns, Some(25));
}
