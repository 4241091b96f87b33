//! The list of cases: what `--bench` measures, and the small ones that show that it still works.
//!
//! Whole sizes are chosen so that all cases together take about half an hour. A name begins with
//! its group, so that a word on the command line chooses a group.

use super::case::{Case, Kind, Party, Traffic};
use super::schedule::Shape;

/// How large.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// How much smaller than whole.
    shrink: usize,
    tries: u32,
}

const WHOLE: Scale = Scale { shrink: 1, tries: 40 };
const TINY: Scale = Scale { shrink: 40, tries: 1 };

/// With fewer requests than this, the p99 of one turn rests on a handful of them, and the median of
/// five pairs still differs by a tenth from one run to the next.
const FEW: usize = 10_000;
/// Pairs of a case with few requests.
const PAIRS_OF_FEW: usize = 15;

/// Most requests a second at which a core that waits as it does by default finds time to sleep.
const HYBRID_MAX: f64 = 10_000.0;

/// Requests a second that another load generator and Onbeat are asked for: few, and many.
const PEER_RATES: &[f64] = &[100.0, 1_000.0];
/// How long such a schedule is.
const PEER_SECONDS: f64 = 10.0;

/// Memory of a sender that renders ahead: for the program, its plan and its log, and for two
/// seconds of what is sent, so that most of it is rendered while others are sent.
const AHEAD_BUDGET_MIB: u64 = 224;

/// What `--bench` measures, without what needs a base revision or a peer.
pub(crate) fn measured() -> Vec<Case> {
    let mut cases = Vec::new();
    for shape in [Shape::Constant, Shape::Poisson, Shape::Burst] {
        for (rate, count) in [(1_000.0, 2_500), (10_000.0, 20_000), (50_000.0, 100_000)] {
            let case = Case::lateness(shape, rate, count);
            let case = if count < FEW { Case { pairs: PAIRS_OF_FEW, ..case } } else { case };
            cases.push(case.clone());
            if shape != Shape::Burst && rate <= HYBRID_MAX {
                cases.push(case.paced("hybrid"));
            }
        }
    }
    cases.push(burst(WHOLE));
    cases.push(streams(WHOLE));
    // 100-byte bodies are the smallest that chat requests allow.
    for (input_tokens, start, seconds) in [(2, 30_000.0, 0.8), (6_500, 4_000.0, 0.8)] {
        cases.push(Case::highest(input_tokens, start, seconds, WHOLE.tries));
    }
    cases.push(Case::highest(209_000, 150.0, 1.5, WHOLE.tries));
    cases.push(open_streams(WHOLE));
    cases.extend(interference(WHOLE));
    cases.extend(drivers(WHOLE));
    cases.push(stall(WHOLE));
    cases.extend(render_ahead(WHOLE));
    cases
}

/// One small pair of each kind.
pub(crate) fn tiny() -> Vec<Case> {
    let mut cases = vec![
        Case::lateness(Shape::Constant, 200.0, 60),
        Case::lateness(Shape::Constant, 200.0, 60).paced("hybrid"),
        burst(TINY),
        streams(TINY),
        Case::highest(2, 200.0, 0.2, TINY.tries),
        open_streams(TINY),
        stall(TINY),
    ];
    cases.extend(interference(TINY).into_iter().take(1));
    cases.extend(drivers(TINY).into_iter().take(1));
    cases.extend(render_ahead(TINY).into_iter().take(1));
    for case in &mut cases {
        case.pairs = 1;
    }
    cases
}

/// The engine of another revision against this one's.
pub(crate) fn against_base() -> Vec<Case> {
    let parties = || [Party::base(), Party::engine("onbeat")];
    let mut cases = Vec::new();
    for (shape, rate, count) in [
        (Shape::Constant, 1_000.0, 3_000),
        (Shape::Constant, 10_000.0, 30_000),
        (Shape::Poisson, 10_000.0, 30_000),
    ] {
        let case = Case::lateness(shape, rate, count);
        let name = format!("base-{}", case.name);
        cases.push(case.between(&name, parties()));
    }
    cases.push(streams(WHOLE).between("base-streams-128", parties()));
    let rate = Case::highest(2, 30_000.0, 0.8, WHOLE.tries);
    let name = format!("base-{}", rate.name);
    cases.push(rate.between(&name, parties()));
    cases
}

/// Another load generator against Onbeat, on one schedule a rate.
pub(crate) fn against_peer(name: &str, rates: &[f64], count: Option<usize>) -> Vec<Case> {
    let rates = if rates.is_empty() { PEER_RATES } else { rates };
    let case = |&rate: &f64| {
        #[expect(clippy::cast_possible_truncation, reason = "a rate is far below 2^53")]
        #[expect(clippy::cast_sign_loss, reason = "a rate is positive")]
        let count = count.unwrap_or((rate * PEER_SECONDS) as usize);
        let parties = [Party::peer(name), Party::engine("onbeat")];
        let case = Case::lateness(Shape::Constant, rate, count);
        Case { pairs: 3, ..case }.between(&format!("peer-{name}-constant-{rate}"), parties)
    };
    rates.iter().map(case).collect()
}

fn burst(scale: Scale) -> Case {
    let count = 1_000 / scale.shrink;
    let case = Case::at_once(Kind::Burst, format!("burst-{count}"), count, 1);
    Case { connections: count, pairs: 9, ..case }
}

fn streams(scale: Scale) -> Case {
    let count = 10_000 / scale.shrink;
    let case = Case::at_once(Kind::Streams, "streams-128".to_owned(), count, 128);
    Case { connections: 64, ..case }
}

/// The same schedule with and without ten thousand streams that get one event a second each.
fn open_streams(scale: Scale) -> Case {
    let streams = 10_000 / scale.shrink;
    let traffic = Traffic {
        streams,
        openings_per_s: 4_000.0,
        events: 1,
        text: true,
        pushes_per_s: streams as f64,
    };
    let parties = [Party::engine("without"), Party::engine("with").amid(traffic)];
    Case::lateness(Shape::Constant, 1_000.0, 3_000 / scale.shrink)
        .between(&format!("open-streams-{streams}"), parties)
}

/// What else a run does must not show in its lateness.
fn interference(scale: Scale) -> Vec<Case> {
    let case = |name: &str, parties| {
        let case = Case::lateness(Shape::Constant, 1_000.0, 2_500 / scale.shrink);
        Case { pairs: PAIRS_OF_FEW, ..case }.between(&format!("interference-{name}"), parties)
    };
    // A million records a second, 128 in a read.
    let busy = |events, text| Traffic {
        streams: 64,
        openings_per_s: 1_000.0,
        events,
        text,
        pushes_per_s: 7_813.0 / scale.shrink as f64,
    };
    let engine = Party::engine;
    let with_log = || engine("with").amid(busy(128, true));
    let terminal = Party { on_terminal: true, ..engine("with") };
    // A quarter of it while the disk hangs: the log then loses nothing, and tells of every send.
    let quarter = |label| engine(label).amid(busy(32, true));
    let hanging = Party { disk_hangs: true, ..quarter("with") };
    let all = engine("without").with("--render", "all");
    let rendered = case("ahead", [all, engine("with").ahead_within(AHEAD_BUDGET_MIB)]);
    vec![
        // The same bytes are read either way; only what they say differs.
        case("log", [engine("without").amid(busy(128, false)), with_log()]),
        Case { pairs: 3, ..case("streams", [engine("without"), with_log()]) },
        case("progress", [engine("without").with("--ui", "none"), terminal]),
        // Sixty megabytes of text a second.
        Case { input_tokens: 12_000, own_prompts: true, ..rendered },
        case("disk", [quarter("without"), hanging]),
    ]
}

/// The two ways to drive sockets, so that the default is chosen by measuring.
fn drivers(scale: Scale) -> Vec<Case> {
    let parties = || {
        [
            Party::engine("epoll").with("--driver", "epoll"),
            Party::engine("io_uring").with("--driver", "io_uring"),
        ]
    };
    let lateness = |rate: f64, count: usize| {
        Case::lateness(Shape::Constant, rate, count / scale.shrink)
            .between(&format!("driver-lateness-{rate}"), parties())
    };
    vec![
        lateness(1_000.0, 3_000),
        lateness(10_000.0, 30_000),
        burst(scale).between("driver-burst-1000", parties()),
        streams(scale).between("driver-streams-128", parties()),
        Case { pairs: 1, ..Case::highest(2, 30_000.0, 0.8, scale.tries) }
            .between("driver-rate", parties()),
    ]
}

/// A process that is stopped for 20 ms.
fn stall(scale: Scale) -> Case {
    let case = Case::lateness(Shape::Constant, 1_000.0, 2_000 / scale.shrink.min(4));
    let case = Case { kind: Kind::Stall, pairs: 3, ..case };
    case.between("stall-20ms", [Party::floor(), Party::engine("onbeat")])
}

/// Prompts as long as Mooncake's and as an agent's, written while others are sent.
fn render_ahead(scale: Scale) -> Vec<Case> {
    let case = |name: &str, input_tokens: usize, rate: f64, count: usize| {
        let party = Party::engine("onbeat").ahead_within(AHEAD_BUDGET_MIB);
        let case = Case::lateness(Shape::Constant, rate, count / scale.shrink);
        let case =
            Case { kind: Kind::RenderAhead, input_tokens, own_prompts: true, pairs: 1, ..case };
        case.between(&format!("render-ahead-{name}"), [Party::floor(), party])
    };
    vec![case("mooncake", 12_000, 1_000.0, 10_000), case("agentic", 720_000, 20.0, 100)]
}
