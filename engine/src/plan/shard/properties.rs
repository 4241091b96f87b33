//! All shards together are the whole plan, whatever the plan: properties over traces and options.

use std::num::NonZero;

use onbeat_shared::log::plan_row::PlanRow;
use onbeat_shared::trace::Trace;
use onbeat_shared::trace::decimal::Ratio;
use onbeat_shared::units::{CoreIndex, RequestIndex, SessionIndex};
use proptest::prelude::{Strategy, any, prop, prop_assert_eq, proptest};

use super::{Shard, divide};
use crate::plan::{
    Arrivals, Cancelling, Factor, Pattern, Plan, PlanMode, PlanOptions, Share, Synthesis, build,
    prefixes, synthesise,
};
use crate::render::{Bodies, Destination, Preview, RenderOptions, render};
use crate::trace::{TraceOptions, load};

/// A row: its time, session, prompt's blocks, answer's tokens.
type Row = (u32, u8, Vec<u8>, u8);

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let ids = prop::collection::vec(0_u8..9, 0..5);
    prop::collection::vec((0_u32..5_000, 0_u8..8, ids, 1_u8..20), 4..28)
}

/// A Mooncake trace; session 0 stands for rows that name none.
fn trace(rows: &[Row]) -> Trace {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.jsonl");
    let line = |(at, session, ids, output): &Row| {
        let session = match session {
            0 => String::new(),
            named => format!(",\"session_id\":\"s{named}\""),
        };
        let input = ids.len() * 512 + 7;
        let ids: Vec<u8> = ids.iter().copied().chain([100]).collect();
        format!(
            "{{\"timestamp\":{at},\"input_length\":{input},\"output_length\":{output},\
             \"hash_ids\":{ids:?}{session}}}\n"
        )
    };
    std::fs::write(&path, rows.iter().map(line).collect::<String>()).expect("room");
    load(&path, &TraceOptions::default()).expect("a trace")
}

fn options() -> impl Strategy<Value = PlanOptions> {
    let mode = prop::sample::select(vec![
        PlanMode::OpenLoop,
        PlanMode::OpenLoopStrict,
        PlanMode::ClosedLoop,
    ]);
    let factor = |text: &'static str| Factor::parse(text).expect("a factor");
    (mode, any::<[bool; 7]>(), 1_u32..4, 0_u64..50, 1_u16..4).prop_map(
        move |(
            mode,
            [sampled, drawn, capped, changed, cancelled, few, short],
            copies,
            seed,
            targets,
        )| {
            PlanOptions {
                mode,
                copies,
                seed,
                targets,
                speedup: Ratio { numerator: 3, denominator: 2 },
                sample: sampled.then(|| Share::of(0.7).expect("a share")).flatten(),
                arrivals: drawn.then_some(Arrivals {
                    rate: Ratio { numerator: 5, denominator: 1 },
                    pattern: Pattern::Gamma(factor("0.5")),
                }),
                ignore_times: drawn,
                idle_gap_cap_ns: capped.then_some(150_000_000),
                think_cap_ns: capped.then_some(90_000_000),
                synthesis: match changed {
                    true => Synthesis {
                        prefix: factor("1.5"),
                        prompt: factor("0.5"),
                        roots: NonZero::new(2).expect("two"),
                        ..Synthesis::NONE
                    },
                    false => Synthesis::NONE,
                },
                cancelling: cancelled
                    .then(|| Cancelling { share: Share::of(0.4).expect("a share"), delay_ns: 5 }),
                request_count: few.then_some(13),
                duration_ns: short.then_some(2_500_000_000),
                ..PlanOptions::default()
            }
        },
    )
}

/// The bytes of a request, head and body, and what a plan shows of its body.
fn bytes(bodies: &Bodies, preview: &Preview<'_>, request: RequestIndex) -> (Vec<u8>, Vec<u8>) {
    let mut shown = Vec::new();
    preview.append(request, &mut shown);
    (bodies.parts(request).flatten().copied().collect(), shown)
}

/// A row of a part with the numbers of the whole.
fn in_whole(part: &Plan, whole: &Plan, row: &PlanRow) -> PlanRow {
    let name = &part.sessions[row.session.as_usize()];
    let number = part.number(row.request);
    let session = whole.rows[number.as_usize()].session;
    assert_eq!(name, &whole.sessions[session.as_usize()]);
    let after = row.after.map(|after| part.number(after));
    PlanRow { request: number, session, after, core: CoreIndex(0), ..*row }
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(64))]

    #[test]
    fn all_shards_together_are_the_plan(
        rows in rows(),
        options in options(),
        count in 1_u32..6,
    ) {
        let mut trace = trace(&rows);
        if synthesise(&mut trace, &options).is_err() {
            return Ok(());
        }
        let Ok(whole) = build(&trace, &options) else { return Ok(()) };
        let text = RenderOptions {
            destinations: (0..3).map(|at| Destination::new(&format!("h:{at}"), "")).collect(),
            run_id: "r".to_owned(),
            ..RenderOptions::default()
        };
        let all = render(&whole, &trace, &text).expect("fits");
        let preview = Preview::new(&whole, &trace, &text).expect("turns in order");
        let own_prefixes = prefixes(&trace, &whole, None);
        let mut met = vec![0; whole.rows.len()];
        let mut paths = Vec::new();
        for index in 0..count {
            let shard = Shard::new(index, count).expect("a part");
            let Ok(part) = whole.clone().shard(&trace, shard) else {
                prop_assert_eq!(whole.sessions.len() < count as usize, true);
                continue;
            };
            let digest = part.part.as_ref().map(|part| part.digest);
            prop_assert_eq!(digest, Some(whole.digest()));
            let bodies = render(&part, &trace, &text).expect("fits");
            let shown = Preview::new(&part, &trace, &text).expect("turns in order");
            for (place, row) in (0_u32..).zip(&part.rows) {
                prop_assert_eq!(row.request, RequestIndex(place));
                let number = part.number(row.request);
                met[number.as_usize()] += 1;
                let expected = PlanRow { core: CoreIndex(0), ..whole.rows[number.as_usize()] };
                prop_assert_eq!(in_whole(&part, &whole, row), expected);
                prop_assert_eq!(part.copy(row.request), whole.copy(number));
                prop_assert_eq!(part.cancel_after(row.request), whole.cancel_after(number));
                let sent = bytes(&bodies, &shown, row.request);
                prop_assert_eq!(sent, bytes(&all, &preview, number));
            }
            let own = part.own_prefixes(own_prefixes.clone());
            prop_assert_eq!(&own.stretches, &own_prefixes.stretches);
            paths.extend(own.paths.into_iter().map(|mut path| {
                path.request = part.number(path.request);
                path
            }));
            let first = part.own_first(5);
            let expected = part.rows.iter().filter(|row| part.number(row.request).0 < 5).count();
            prop_assert_eq!(first as usize, expected);
        }
        prop_assert_eq!(met, vec![1; whole.rows.len()]);
        paths.sort_by_key(|path| path.request);
        prop_assert_eq!(paths, own_prefixes.paths);
    }

    #[test]
    fn sessions_are_balanced_by_tokens_and_none_goes_without(
        tokens in prop::collection::vec(1_u64..10_000, 1..200),
        shards in 1_u32..9,
    ) {
        let names: Vec<String> = (0..tokens.len()).map(|at| format!("session_{at:06}")).collect();
        let of = divide(&names, &tokens, shards);
        let mut loads = vec![0; shards as usize];
        for (&shard, tokens) in of.iter().zip(&tokens) {
            loads[shard as usize] += tokens;
        }
        let largest = tokens.iter().max().expect("some");
        let share = tokens.iter().sum::<u64>() / u64::from(shards);
        assert!(loads.iter().all(|load| *load <= share + largest), "{loads:?} of {share}");
        assert!(names.len() < loads.len() || loads.iter().all(|load| *load > 0), "{loads:?}");
    }

    #[test]
    fn a_limit_is_divided_with_its_remainder(all in 0_u64..1_000_000, count in 1_u32..50) {
        let shares: Vec<u64> = (0..count)
            .map(|index| Shard::new(index, count).expect("a part").share(all))
            .collect();
        prop_assert_eq!(shares.iter().sum::<u64>(), all);
        prop_assert_eq!(shares.iter().max().zip(shares.iter().min()).map(|(a, b)| a - b <= 1),
            Some(true));
        let last = Shard::new(count - 1, count).expect("a part");
        prop_assert_eq!(last.share_of("--x", all).is_ok(), all >= u64::from(count));
    }
}

#[test]
fn the_division_is_the_same_for_ever() {
    let names: Vec<String> = (0..12).map(|at| format!("session_{at:06}")).collect();
    let tokens = [900, 20, 350, 41, 77, 600, 5, 310, 48, 12, 230, 150];
    // As the first version divided them: logs of two versions must belong together.
    assert_eq!(divide(&names, &tokens, 3), [0, 1, 2, 0, 2, 1, 2, 2, 0, 0, 1, 2]);
}

#[test]
fn a_shard_without_sessions_says_how_many_there_can_be() {
    let rows: Vec<Row> = (0..4).map(|at| (at, 1, vec![1], 1)).collect();
    let trace = trace(&rows);
    let whole = build(&trace, &PlanOptions::default()).expect("a plan");
    let found: Vec<_> = (0..2)
        .map(|index| whole.clone().shard(&trace, Shard::new(index, 2).expect("a part")))
        .collect();
    let words = found.into_iter().find_map(Result::err).expect("one session for two");
    assert!(
        words.to_string().ends_with("1 session is divided, each whole; use at most 1 shard"),
        "{words}"
    );
    assert_eq!(SessionIndex(0), whole.rows[3].session);
}
