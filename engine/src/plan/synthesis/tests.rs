//! Synthesis as its callers see it: rows and multipliers in, rows out.

use onbeat_shared::trace::Source;
use onbeat_shared::trace::record::Record;
use onbeat_shared::trace::recorded::Recorded;
use onbeat_shared::trace::session::SessionNames;
use onbeat_shared::units::{SessionIndex, TraceNanos};
use proptest::prelude::{Strategy, prop, prop_assert, prop_assert_eq, proptest};

use super::*;

/// Input length, output length, block ids.
type Written = (u32, u32, Vec<u64>);

fn trace(block_tokens: u32, rows: &[Written]) -> Trace {
    let mut blocks = BlockIds::default();
    let mut records = Vec::new();
    for (place, (input_tokens, output_tokens, ids)) in (0_u32..).zip(rows) {
        let first_block = blocks.len() as u64;
        ids.iter().for_each(|&id| blocks.push(id));
        records.push(Record {
            row: u64::from(place) + 1,
            at: TraceNanos(i64::from(place) * 1_000_000),
            input_tokens: *input_tokens,
            output_tokens: Some(*output_tokens),
            session: SessionIndex(place),
            turn: 0,
            first_block,
            block_count: u32::try_from(ids.len()).expect("few"),
        });
    }
    let count = u32::try_from(rows.len()).expect("few");
    Trace {
        source: Source {
            name: "t.jsonl".to_owned(),
            sha256: String::new(),
            format: Format::Mooncake,
            rows: rows.len() as u64,
            bytes: 0,
        },
        records,
        blocks,
        block_tokens,
        sessions: SessionNames::Fresh(count),
        recorded: Recorded::default(),
        warnings: Vec::new(),
    }
}

fn written(trace: &Trace) -> Vec<Written> {
    let row = |record: &Record| {
        let ids = trace.blocks_of(record).iter().collect();
        (record.input_tokens, record.output_tokens.expect("all have one"), ids)
    };
    trace.records.iter().map(row).collect()
}

fn factor(text: &str) -> Factor {
    Factor::parse(text).expect("a factor")
}

/// `prefix roots prompt output`, as typed.
fn options(line: &str) -> PlanOptions {
    let mut words = line.split_whitespace();
    let mut next = || words.next().expect("four numbers");
    let synthesis = Synthesis {
        prefix: factor(next()),
        roots: next().parse().expect("a number of trees"),
        prompt: factor(next()),
        output: factor(next()),
        ..Synthesis::NONE
    };
    PlanOptions { synthesis, seed: 42, ..PlanOptions::default() }
}

fn synthesised(block_tokens: u32, rows: &[Written], options: &PlanOptions) -> Vec<Written> {
    let mut trace = trace(block_tokens, rows);
    synthesise(&mut trace, options).expect("it fits");
    written(&trace)
}

fn recorded() -> Vec<Written> {
    vec![
        (1300, 5, vec![10, 11, 12]),
        (1600, 3, vec![10, 11, 20, 21]),
        (700, 1, vec![10, 30]),
        (400, 9, vec![40]),
        (50, 7, vec![]),
    ]
}

#[test]
fn lengths_and_ids_are_those_of_aiperfs_synthesizer() {
    // Its `Synthesizer` 0.13.0 on the rows of `recorded`, blocks of 512, root seed 42.
    let ids = |lists: [&[u64]; 4]| lists.map(<[u64]>::to_vec);
    for (line, inputs, ids) in [
        (
            "2 1 1 1",
            [2324, 2624, 1212, 400],
            ids([&[20, 21, 22, 23, 25], &[20, 21, 22, 23, 26, 27], &[20, 21, 28], &[29]]),
        ),
        (
            "1.5 1 1 1",
            [1812, 2112, 1212, 400],
            ids([&[10, 11, 13, 14], &[10, 11, 15, 16, 17], &[10, 18, 19], &[20]]),
        ),
        (
            "1 1 2.5 1",
            [1714, 2464, 982, 1000],
            ids([&[10, 11, 13, 14], &[10, 11, 15, 16, 17], &[10, 18], &[19, 20]]),
        ),
        ("1 1 0 1", [1024, 1024, 512, 400], ids([&[10, 11], &[10, 11], &[10], &[]])),
    ] {
        let found = synthesised(512, &recorded(), &options(line));
        for (place, (input, ids)) in inputs.into_iter().zip(ids).enumerate() {
            assert_eq!(found[place], (input, recorded()[place].1, ids), "{line}");
        }
        assert_eq!(found[4], (50, 7, vec![]), "{line}");
    }
    let found = synthesised(512, &recorded(), &options("2.3 2 0.7 1.5"));
    let expected = [
        (2753, 8, vec![20, 21, 22, 23, 25, 26]),
        (2963, 4, vec![20, 21, 22, 23, 27, 28]),
        (1667, 2, vec![20, 21, 29, 30]),
        (280, 14, vec![31]),
        (50, 10, vec![]),
    ];
    assert_eq!(found, expected);
}

#[test]
fn trees_are_drawn_as_aiperf_draws_them() {
    let rows: Vec<Written> = (0..8).map(|_| (16, 1, vec![3])).collect();
    let trees = |seed| {
        let options = PlanOptions { seed, ..options("1 3 1 1") };
        let found = synthesised(16, &rows, &options);
        found.into_iter().map(|(_, _, ids)| ids[0]).collect::<Vec<_>>()
    };
    assert_eq!(trees(42), TREES_42);
    assert_eq!(trees(7), TREES_7);
}

const TREES_42: [u64; 8] = [3, 3, 3, 3, 13, 3, 13, 8];
const TREES_7: [u64; 8] = [3, 13, 3, 8, 13, 13, 8, 13];

#[test]
fn a_row_that_shares_nothing_keeps_its_length_when_prefixes_are_shortened() {
    let found = synthesised(512, &recorded(), &options("0.5 1 1 1"));
    let expected = [
        (788, 5, vec![10, 13]),
        (1088, 3, vec![10, 14, 15]),
        (700, 1, vec![10, 16]),
        // AIPerf: 912 tokens, with one block of 512.
        (400, 9, vec![17]),
        (50, 7, vec![]),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_shared_block_that_is_cut_short_stays_cut() {
    // AIPerf refuses both rows: 20 tokens are fewer than two shared blocks.
    let rows = [(20, 1, vec![1, 2]), (20, 1, vec![1, 2])];
    let twice = synthesised(16, &rows, &options("2 1 1 1"));
    assert_eq!(twice, [(52, 1, vec![2, 3, 4, 5]), (52, 1, vec![2, 3, 4, 5])]);
    let half = synthesised(16, &rows, &options("0.5 1 9 1"));
    assert_eq!(half, [(16, 1, vec![1]), (16, 1, vec![1])]);
}

#[test]
fn a_row_that_grows_beyond_max_isl_is_cut_and_one_that_was_beyond_is_left_out() {
    let rows = [(32, 1, vec![1, 2]), (48, 1, vec![1, 2, 3]), (200, 1, vec![1, 2])];
    let options = PlanOptions { max_input_tokens: Some(60), ..options("2 1 1 1") };
    let mut trace = trace(16, &rows);
    synthesise(&mut trace, &options).expect("it fits");
    // The third row shares no more: it is not among those that are kept.
    assert_eq!(written(&trace)[0], (60, 1, vec![2, 3, 4, 5]));
    assert_eq!(written(&trace)[1], (60, 1, vec![2, 3, 4, 5]));
    let plan = crate::plan::build(&trace, &options).expect("a plan");
    assert_eq!((plan.rows.len(), plan.left_out.too_long), (2, 1));
}

#[test]
fn ids_too_large_to_calculate_with_are_numbered() {
    let rows = [(32, 1, vec![u64::MAX, 5]), (32, 1, vec![u64::MAX, 6])];
    let found = synthesised(16, &rows, &options("2 1 1 1"));
    assert_eq!(found, [(48, 1, vec![0, 1, 3]), (48, 1, vec![0, 1, 4])]);
}

#[test]
fn rows_are_numbered_session_by_session_and_turn_by_turn() {
    // The first session's second turn stands before its first one, and behind another session.
    let mut trace = trace(16, &[(16, 1, vec![1]), (16, 1, vec![2]), (16, 1, vec![3])]);
    for (record, (session, turn)) in trace.records.iter_mut().zip([(0, 1), (1, 0), (0, 0)]) {
        (record.session, record.turn) = (SessionIndex(session), turn);
    }
    synthesise(&mut trace, &options("1 1 2 1")).expect("it fits");
    let ids: Vec<_> = written(&trace).into_iter().map(|(_, _, ids)| ids).collect();
    assert_eq!(ids, [vec![4, 5], vec![6, 7], vec![2, 3]]);
}

#[test]
fn copies_are_made_of_what_was_synthesised() {
    let options = PlanOptions { copies: 3, ..options("2 1 1 2") };
    let mut trace = trace(512, &recorded());
    synthesise(&mut trace, &options).expect("it fits");
    let plan = crate::plan::build(&trace, &options).expect("a plan");
    let mut inputs: Vec<_> = plan.rows.iter().map(|row| row.input_tokens).collect();
    inputs.sort_unstable();
    let expected = [50, 400, 1212, 2324, 2624].map(|tokens| [Some(tokens); 3]).concat();
    assert_eq!(inputs, expected);
    assert!(plan.rows.iter().all(|row| row.max_tokens.is_some_and(|tokens| tokens % 2 == 0)));
}

#[test]
fn formats_take_what_they_can_be_given() {
    let tried = |format, options: &PlanOptions| {
        let mut trace = trace(16, &[(16, 2, vec![1])]);
        trace.source.format = format;
        let words = synthesise(&mut trace, options).map_err(|error| error.to_string());
        words.map(|_| written(&trace))
    };
    let longer = tried(Format::Baseten, &options("1 1 1 2.5"));
    assert_eq!(longer, Ok(vec![(16, 5, vec![1])]));
    let faster = Synthesis { speedup: Ratio { numerator: 2, denominator: 1 }, ..Synthesis::NONE };
    let faster = PlanOptions { synthesis: faster, ..PlanOptions::default() };
    let words = tried(Format::Baseten, &faster).expect_err("refused");
    assert!(words.contains("--replay-speedup"), "{words}");
    let words = tried(Format::Baseten, &options("2 3 1 1")).expect_err("refused");
    assert!(words.contains("-prefix-len-multiplier, --synthesis-prefix-root"), "{words}");
    for shape in ["1 1 1 2", "2 1 1 1"] {
        let words = tried(Format::RawPayload, &options(shape)).expect_err("refused");
        assert!(words.contains("whose bodies are sent as they stand"), "{words}");
        assert!(!words.contains("--max-osl"), "{words}");
    }
    let words = tried(Format::RagPulse, &options("1 1 1 2")).expect_err("refused");
    assert!(words.ends_with("but --max-osl can be"), "{words}");
    assert!(tried(Format::Bailian, &faster).is_ok());
}

#[test]
fn lengths_round_as_python_rounds() {
    let half = options("1 1 1 0.5").synthesis;
    assert_eq!([1, 3, 5, 7].map(|tokens| half.output(tokens)), [1, 2, 2, 4]);
    assert_eq!(options("1 1 1 1000000").synthesis.output(u32::MAX - 1), u32::MAX - 1);
    for wrong in ["-1", "NaN", "inf", "1000001", "", "two"] {
        assert!(Factor::parse(wrong).is_err(), "{wrong}");
    }
}

/// Rows of a prefix tree, of blocks of four tokens: a path, and how much of the last block.
fn rows() -> impl Strategy<Value = Vec<Written>> {
    let row = (prop::collection::vec(0_u64..3, 1..6), 1_u32..=4, 1_u32..50).prop_map(
        |(path, last, output)| {
            let ids = path.iter().scan(0, |place, step| {
                *place = *place * 3 + step + 1;
                Some(*place)
            });
            let input = u32::try_from(path.len() - 1).expect("short") * 4 + last;
            (input, output, ids.collect())
        },
    );
    prop::collection::vec(row, 1..20)
}

proptest! {
    #[test]
    fn multipliers_of_one_change_nothing(rows in rows(), seed in 0_u64..9) {
        let options = PlanOptions { seed, ..options("1 1 1 1") };
        prop_assert_eq!(&synthesised(4, &rows, &options), &rows);
        let faster = Synthesis {
            speedup: Ratio { numerator: 3, denominator: 1 },
            ..options.synthesis
        };
        let faster = PlanOptions { synthesis: faster, ..options };
        prop_assert_eq!(&synthesised(4, &rows, &faster), &rows, "a speed-up is about time");
    }

    #[test]
    fn blocks_fit_their_prompts(
        rows in rows(), prefix in 0.0_f64..4.0, prompt in 0.0_f64..4.0, roots in 1_u32..4,
    ) {
        let options = options(&format!("{prefix} {roots} {prompt} 1"));
        for (input, _, ids) in synthesised(4, &rows, &options) {
            let before_last = 4 * u32::try_from(ids.len()).expect("few").saturating_sub(1);
            let last = input.checked_sub(before_last);
            let fits = ids.is_empty() || last.is_some_and(|last| (1..=4).contains(&last));
            prop_assert!(fits, "{input} tokens in {ids:?}");
        }
    }

    #[test]
    fn what_was_shared_is_shared_and_nothing_else(rows in rows(), prefix in 1_u32..4) {
        let shared = |rows: &[Written], a: usize, b: usize| {
            rows[a].2.iter().zip(&rows[b].2).take_while(|(a, b)| a == b).count()
        };
        let found = synthesised(4, &rows, &options(&format!("{prefix} 1 2 1")));
        for a in 0..rows.len() {
            for b in 0..a {
                let times = shared(&rows, a, b) * prefix as usize;
                prop_assert_eq!(shared(&found, a, b), times, "rows {} and {}", a, b);
            }
        }
    }
}
