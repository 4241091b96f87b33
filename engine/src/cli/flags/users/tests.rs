//! The options of kv-cache-tester's page: each by its name, with its default and its range.

use clap::{CommandFactory, Parser};
use onbeat_shared::units::NANOS_PER_SECOND;

use super::*;

#[derive(Debug, Parser)]
struct Only {
    #[command(flatten)]
    users: UserFlags,
    #[command(flatten)]
    goals: GoalFlags,
}

fn parse(line: &str) -> Result<Only, String> {
    let words = std::iter::once("onbeat").chain(line.split_whitespace());
    Only::try_parse_from(words).map_err(|error| error.to_string())
}

fn options(line: &str) -> Result<UserOptions, String> {
    let only = parse(line)?;
    only.users.options(42, &only.goals).map_err(|error| error.to_string())
}

/// An option of the page, its default there, and another value; `None`: it has none.
type Documented = (&'static str, Option<&'static str>, Option<&'static str>);

/// The tables of the page, row by row, but for the options that all traces have.
const PAGE: [Documented; 29] = [
    ("--max-ttft", Some("2.0"), Some("0.5")),
    ("--ttft-metric", Some("p95"), Some("avg")),
    ("--min-output-tokens-per-req", None, Some("12.5")),
    ("--start-users", Some("1"), Some("5")),
    ("--max-users", Some("50"), Some("100")),
    ("--recycle", None, None),
    ("--max-new-tokens-per-period", Some("500000"), Some("1000000")),
    ("--max-working-set-tokens", Some("0"), Some("9000000")),
    ("--min-requests", Some("1"), Some("4")),
    ("--max-context", Some("128000"), Some("64000")),
    ("--max-delay", Some("60.0"), Some("7.5")),
    ("--time-scale", Some("1.0"), Some("0.5")),
    ("--timing-strategy", Some("think-only"), Some("api-scaled")),
    ("--api-time-scale", Some("1.0"), Some("0.2")),
    ("--test-duration", None, Some("300")),
    ("--assessment-period", Some("30"), Some("10")),
    ("--max-concurrent-requests", Some("50"), Some("20")),
    ("--max-prefill-concurrent", Some("0"), Some("3")),
    ("--max-decode-concurrent", Some("0"), Some("4")),
    ("--itpm-budget", Some("0"), Some("5000000000")),
    ("--otpm-budget", Some("0"), Some("10000")),
    ("--enable-request-rate-limiting", None, None),
    ("--warm-prefix-pct", Some("0.5"), Some("0")),
    ("--chunk-size", Some("64"), Some("16")),
    ("--skip-graphs", None, None),
    ("--advance-min", Some("0.0"), Some("0.3")),
    ("--advance-max", Some("0.0"), Some("0.6")),
    ("--advance-all-users", None, None),
    ("--trace-seed", None, Some("7")),
];

#[test]
fn every_option_of_the_page_has_its_default_and_takes_another_value() {
    let declared = Only::command();
    let mut all = String::new();
    for (name, default, other) in PAGE {
        let option = declared.get_arguments().find(|arg| arg.get_long() == Some(&name[2..]));
        let option = option.unwrap_or_else(|| panic!("{name} is not declared"));
        let found = option.get_default_values().first().and_then(|text| text.to_str());
        assert_eq!(found.filter(|_| option.get_action().takes_values()), default, "{name}");
        all += &format!(" {name} {}", other.unwrap_or_default());
    }
    let seconds = |seconds: i64| seconds * NANOS_PER_SECOND;
    let default = UserOptions { trace_seed: 42, prompt_seed: 42, ..UserOptions::default() };
    assert_eq!(options(""), Ok(default.clone()));
    let expected = UserOptions {
        script: ScriptOptions {
            strategy: Strategy::ApiScaled,
            max_delay_ns: 7_500_000_000,
            time_scale: Ratio { numerator: 1, denominator: 2 },
            api_time_scale: Ratio { numerator: 1, denominator: 5 },
            clamp_think: true,
            detach_async: false,
            max_context: 64_000,
            min_requests: 4,
            warm_prefix_share: 0.0,
        },
        start_users: 5,
        max_users: 100,
        recycle: true,
        advance: Advance { min: 0.3, max: 0.6, all_users: true },
        trace_seed: 7,
        duration_ns: Some(seconds(300)),
        limits: Limits {
            concurrent: 20,
            prefill: 3,
            decode: 4,
            input_per_minute: 5_000_000_000,
            output_per_minute: 10_000,
        },
        ttft_gate: true,
        ramp: RampChoice {
            max_ttft_ns: 500_000_000,
            metric: TtftMetric::Avg,
            min_output_tokens_per_request: Some(12.5),
            period_ns: seconds(10),
            ..RampChoice::default()
        },
        new_tokens_per_period: 1_000_000,
        working_set_tokens: 9_000_000,
        chunk_tokens: 16,
        graphs: false,
        ..default
    };
    assert_eq!(options(&all), Ok(expected));
}

#[test]
fn options_that_only_the_code_has_are_taken_and_ours_too() {
    let line = "--no-color --prompt-seed 9 --ttft-window 5 --rate-limit-backoff 30 --slo-ttft 1.5 \
                --slo-decode-tps 20 --fairness-window 60 --cache-max-age 300 \
                --max-consecutive-errors 0 --circuit-breaker-window 12.5 --ramp rolling \
                --reply-mode recorded --async-subagents detach --stream-all --tool-role \
                --no-clamp-think-time --resume results --timing-strategy original --time-scale 0 \
                --ttft-metric max";
    let default = UserOptions { trace_seed: 42, ..UserOptions::default() };
    let expected = UserOptions {
        script: ScriptOptions {
            strategy: Strategy::Original,
            time_scale: Ratio { numerator: 0, denominator: 1 },
            clamp_think: false,
            detach_async: true,
            ..default.script
        },
        prompt_seed: 9,
        ramp: RampChoice {
            way: RampWay::Rolling,
            window: 5,
            metric: TtftMetric::Max,
            ..default.ramp
        },
        cache_age_ns: 300 * NANOS_PER_SECOND,
        breaker: Breaker { errors: 0, window_ns: 12_500_000_000 },
        reply: ReplyMode::Recorded,
        stream_all: true,
        tool_role: true,
        slo: crate::policy::options::Slo { ttft_ns: 1_500_000_000, decode_tps: 20.0 },
        resume: Some("results".into()),
        ..default
    };
    assert_eq!(options(line), Ok(expected));
    let told = parse(line).expect("parses").users.warnings();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("--rate-limit-backoff changes nothing: "), "{told:?}");
    assert!(told[1].starts_with("--fairness-window changes nothing: "), "{told:?}");
    assert!(parse("").expect("parses").users.warnings().is_empty());
    let clamped = options("--no-clamp-think-time --clamp-think-time").expect("the last counts");
    assert!(clamped.script.clamp_think);
}

#[test]
fn what_cannot_be_meant_is_refused_with_what_would_be_right() {
    for (line, right) in [
        ("--advance-min 0.6 --advance-max 0.3", "within 0 to 1"),
        ("--advance-min 0.3", "--advance-max 0;"),
        ("--advance-max 1.5", "a share from 0 to 1"),
        ("--advance-min -0.1", "a share from 0 to 1"),
        ("--warm-prefix-pct 50", "a share from 0 to 1"),
        ("--warm-prefix-pct nan", "a share from 0 to 1"),
        ("--start-users 0", "1 or more"),
        ("--start-users 51", "raise --max-users"),
        ("--max-users 0", "1 or more"),
        ("--max-context 0", "1 or more"),
        ("--max-context 5000000000", "a smaller number"),
        ("--min-requests -1", "0 or more"),
        ("--max-ttft 0", "more than 0 seconds"),
        ("--max-ttft soon", "seconds, like 2.5"),
        ("--ttft-metric p99", "max, avg, p95"),
        ("--min-output-tokens-per-req 0", "above 0"),
        ("--max-delay -1", "0 seconds or more"),
        ("--time-scale -1", "0 or more"),
        ("--time-scale inf", "0 or more"),
        ("--api-time-scale x", "0 or more"),
        ("--timing-strategy fast", "think-only, original, api-scaled"),
        ("--test-duration 0", "more than 0 seconds"),
        ("--assessment-period 0", "more than 0 seconds"),
        ("--max-concurrent-requests -1", "0 or more"),
        ("--itpm-budget 1e6", "a whole number"),
        ("--chunk-size 0", "1 or more"),
        ("--ttft-window 0", "1 or more"),
        ("--ramp fast", "documented, rolling"),
        ("--reply-mode none", "live, recorded"),
        ("--async-subagents skip", "wait, detach"),
        ("--cache-max-age 0", "more than 0 seconds"),
        ("--circuit-breaker-window -1", "0 seconds or more"),
        ("--max-consecutive-errors -1", "0 or more"),
        ("--slo-ttft 0", "above zero"),
        ("--slo-decode-tps -1", "above zero"),
        ("--trace-seed -1", "0 or more"),
    ] {
        // As in `cli::command`, a number below zero is a value of the option before it.
        let line = line.replacen(" -", "=-", 1).replacen("=--", " --", 1);
        let error = options(&line).expect_err(&line);
        assert!(error.contains(right), "{line}: {error}");
    }
}

#[test]
fn what_was_typed_is_known_whatever_its_value() {
    let given = |line: &str| parse(line).expect("parses").users.given().to_vec();
    assert!(given("").is_empty());
    // A default that is typed is typed.
    let typed = given("--max-users 50 --recycle --slo-ttft 1");
    assert_eq!(typed, ["--max-users", "--recycle"]);
    let vain = parse("--api-time-scale 0.2 --ttft-window 3").expect("parses").users.warnings();
    assert!(vain[0].contains("--timing-strategy api-scaled"), "{vain:?}");
    assert!(vain[1].contains("--ramp rolling"), "{vain:?}");
    let meant = "--api-time-scale 0.2 --timing-strategy api-scaled";
    assert!(parse(meant).expect("parses").users.warnings().is_empty());
}

#[test]
fn a_log_shows_values_as_typed_and_no_folder() {
    let users = parse("--resume /home/me/run --max-ttft 2.50").expect("parses").users;
    let json = serde_json::to_value(&users).expect("serialises");
    assert_eq!((&json["max_ttft"], &json["max_users"]), (&"2.50".into(), &50.into()));
    assert!(!json.to_string().contains("/home/me"), "{json}");
}
