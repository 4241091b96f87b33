//! Filters against slow and obvious tests, and against texts that nobody meant.

use onbeat_shared::{
    log::{Class, sample, sample_users},
    metrics::{latency::Metric, slo, tokens},
    run::Run,
};

use super::{DEEPEST, Filter, FilterError, LONGEST, completions};
use crate::fields::{Field, Value};

fn run() -> Run {
    Run::read(&sample::log(5, 500)).expect("a readable log")
}

fn filter(text: &str) -> Filter {
    Filter::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str) -> FilterError {
    Filter::parse(text).expect_err(text)
}

/// A generator of numbers that look random.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % sides.max(1)
    }

    fn one_of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.roll(words.len())]
    }
}

#[test]
fn filters_pass_what_their_words_say() {
    let run = run();
    type Expected = fn(&Run, usize) -> bool;
    let cases: &[(&str, Expected)] = &[
        ("ttft > 40ms", |run, i| Metric::Ttft.value_ns(run, i).is_some_and(|ns| ns > 40e6)),
        ("ttft <= 0.04 s", |run, i| Metric::Ttft.value_ns(run, i).is_some_and(|ns| ns <= 40e6)),
        ("ttft == missing", |run, i| Metric::Ttft.value_ns(run, i).is_none()),
        ("has(ttft)", |run, i| Metric::Ttft.value_ns(run, i).is_some()),
        ("ttft != missing", |run, i| Metric::Ttft.value_ns(run, i).is_some()),
        ("!(ttft > 40ms)", |run, i| !Metric::Ttft.value_ns(run, i).is_some_and(|ns| ns > 40e6)),
        ("input > 0.2k and failed", |run, i| {
            tokens::prompt(run, i).is_some_and(|count| count > 200) && slo::failed(run, i)
        }),
        ("outcome == failed or turn == 1", |run, i| slo::failed(run, i) || run.plan[i].turn == 1),
        ("class == http_429", |run, i| run.requests.class(i) == Some(Class::Http429)),
        ("status >= 400 && status < 500", |run, i| {
            run.requests.status(i).is_some_and(|status| (400..500).contains(&status))
        }),
        ("error ~ \"SLOW down\"", |run, i| run.error_text(i) == Some("slow down")),
        ("session ~ 3", |run, i| run.session_name(i).is_some_and(|name| name.contains('3'))),
        ("sent > 3s and sent < 0.1 min", |run, i| {
            run.requests
                .sent(i)
                .is_some_and(|sent| sent.0 > 3_000_000_000 && sent.0 < 6_000_000_000)
        }),
        ("cached_share >= 50%", |run, i| {
            let both = run.requests.cached_tokens(i).zip(run.requests.prompt_tokens(i));
            both.is_some_and(|(cached, prompt)| prompt > 0 && 2 * cached >= prompt)
        }),
        ("ok && !reused || core = 1", |run, i| {
            run.requests.is_ok(i) && run.requests.connection_reused(i) != Some(true)
                || run.requests.core(i).is_some_and(|core| core.0 == 1)
        }),
    ];
    for (text, expected) in cases {
        let filter = filter(text);
        let mut passed = 0;
        for i in 0..run.requests.len() {
            assert_eq!(filter.matches(&run, i), expected(&run, i), "{text}: request {i}");
            passed += usize::from(filter.matches(&run, i));
        }
        // A test that everything or nothing passes would say little.
        assert!((1..run.requests.len()).contains(&passed), "{text}: {passed} pass");
    }
}

#[test]
fn users_and_their_traces_can_be_asked_for() {
    let run = Run::read(&sample_users::log(3, 6)).expect("a readable log");
    let first = filter("user == User-001");
    let passed = (0..run.requests.len()).filter(|&i| first.matches(&run, i)).count();
    assert!(passed > 0 && passed < run.requests.len());
    assert!((0..run.requests.len()).any(|i| filter("has(trace)").matches(&run, i)));
}

#[test]
fn a_filter_has_one_form() {
    for (typed, form) in [
        ("ttft>500ms&&input>8k&&session==abc", "ttft > 500ms && input > 8k && session == abc"),
        ("( (ttft > 1 s) )", "ttft > 1s"),
        ("a_b == 1 or x", ""),
        ("TPOT < 20 MS", ""),
        ("tpot < 20 ms", "itl < 20ms"),
        ("(ok || failed) && burst", "(ok || failed) && burst"),
        ("ok || (failed && burst)", "ok || failed && burst"),
        ("not not failed", "!!failed"),
        ("! ttft > 5ms", "!(ttft > 5ms)"),
        ("session == 'a b'", "session == \"a b\""),
        ("session == \"a \\\" \\\\ b\"", "session == \"a \\\" \\\\ b\""),
        ("error ~ missing", "error ~ \"missing\""),
        ("session == missing", "session == missing"),
        ("lateness > −1ms", "lateness > -1ms"),
        ("ttft ≥ 10µs", "ttft >= 10us"),
        ("ok & burst | failed", "ok && burst || failed"),
        ("outcome == TIMEOUT", "outcome == timeout"),
    ] {
        match Filter::parse(typed) {
            Ok(filter) => {
                assert_eq!(filter.text(), form);
                assert_eq!(Filter::parse(filter.text()).expect("its own form"), filter);
            }
            Err(error) => assert_eq!(form, "", "{typed}: {error}"),
        }
    }
}

#[test]
fn what_is_wrong_is_pointed_at_in_words() {
    for (text, place, words) in [
        ("", 0, "expected a field such as ttft, a word such as failed, ! or (, found nothing more"),
        ("tfft > 5ms", 0, "no field is called `tfft`; did you mean ttft?"),
        ("ttft > 500", 7, "a length of time needs its unit: ns, us, ms, s, min or h"),
        ("ttft > 500 ok", 7, "a length of time needs its unit: ns, us, ms, s, min or h"),
        ("ttft > 5kg", 7, "`kg` is no unit of ttft, such as 500ms or 1.5 s"),
        (
            "ttft > fast",
            7,
            "expected a number to compare ttft with, such as 500ms or 1.5 s, found \
                            `fast`",
        ),
        ("ttft", 4, "expected ==, !=, <, <=, > or >= after ttft, found nothing more"),
        ("ttft ~ 5", 5, "ttft is a number: compare it with ==, <, > and so on"),
        ("session < 5", 8, "session is text: compare it with ==, != or ~"),
        ("outcome == timout", 11, "outcome is never `timout`; did you mean timeout?"),
        ("(ok", 3, "expected &&, || or ), found nothing more"),
        ("ok)", 2, "expected && or ||, found `)`"),
        (
            "ok && ",
            6,
            "expected a field such as ttft, a word such as failed, ! or (, found \
                       nothing more",
        ),
        ("error ~ out of memory", 12, "expected && or ||, found `of`"),
        ("error ~ \"out", 8, "this quotation does not end: expected another \""),
        ("cached_share > 50", 15, "a share is at most 1, or 100%"),
        ("größe > 5", 0, "no field is called `größe`"),
        ("has(ttft", 8, "expected ), found nothing more"),
        ("ttft < missing", 5, "only == and != go with missing"),
    ] {
        let error = refused(text);
        assert_eq!((error.place, error.words.as_str()), (place, words), "{text}");
        assert!(text.is_char_boundary(error.place));
        assert!(text.is_char_boundary(error.place + error.length));
    }
}

/// A filter that could be meant.
fn meant(dice: &mut Dice, depth: usize) -> String {
    if depth > 0 && dice.roll(3) > 0 {
        let (a, b) = (meant(dice, depth - 1), meant(dice, depth - 1));
        return match dice.roll(5) {
            0 => format!("!{a}"),
            1 => format!("({a})"),
            2 => format!("not ({a} or {b})"),
            3 => format!("{a}&&{b}"),
            _ => format!("{a} || {b}"),
        };
    }
    let field = Field::ALL[dice.roll(Field::ALL.len())];
    let name = field.row().name;
    let sign = dice.one_of(&["==", "!=", "<", "<=", ">", ">=", "≥", "="]);
    let equal = dice.one_of(&["==", "!=", "~"]);
    match field.row().value {
        _ if dice.roll(6) == 0 => format!("has({name})"),
        _ if dice.roll(6) == 0 => format!("{name} == missing"),
        Value::Flag(_) => name.to_owned(),
        Value::Number(measure, _) => {
            let units = super::test::units(measure);
            let unit = if units.is_empty() { "" } else { units[dice.roll(units.len())].sign };
            let number = dice.one_of(&["0", "0.1", "7", "-3.25", "1_000", "0.000000123", "99"]);
            format!("{name} {sign} {number}{unit}")
        }
        Value::Word(_, words) => {
            let words = words();
            format!("{name} {equal} {}", words[dice.roll(words.len())])
        }
        Value::Text(_) => {
            let text =
                dice.one_of(&["abc", "\"a b\"", "'\\\\ \\' \"'", "missing", "\"\"", "ü-1:2/x"]);
            format!("{name} {equal} {text}")
        }
    }
}

#[test]
fn the_one_form_says_the_same_and_is_its_own() {
    let run = run();
    let mut dice = Dice(1);
    let mut accepted = 0;
    for _ in 0..2_000 {
        let text = meant(&mut dice, 4);
        let Ok(filter) = Filter::parse(&text) else {
            // A share above one without its sign is the one thing this makes that is refused.
            continue;
        };
        accepted += 1;
        let again = Filter::parse(filter.text()).expect("its own form");
        assert_eq!(again.text(), filter.text(), "{text}");
        assert_eq!(again.expression, filter.expression, "{text}");
        for _ in 0..5 {
            let i = dice.roll(run.requests.len());
            assert_eq!(again.matches(&run, i), filter.matches(&run, i), "{text}");
        }
    }
    assert!(accepted > 1_000, "{accepted} of them are filters");
}

#[test]
fn any_text_parses_or_is_refused() {
    const PIECES: &[&str] = &[
        "ttft",
        "session",
        "outcome",
        "failed",
        "ok",
        "has",
        "missing",
        "and",
        "or",
        "not",
        "==",
        "!=",
        "<",
        "<=",
        "~",
        "&&",
        "||",
        "!",
        "(",
        ")",
        "\"",
        "'",
        "\\",
        "5",
        "ms",
        "500ms",
        "8k",
        "%",
        " ",
        "\n",
        "\0",
        "é",
        "≥",
        "−",
        "\u{1F980}",
        "\u{202e}",
        "_",
        ".",
        "1e9",
        "inf",
        "nan",
        "=",
        "&",
    ];
    let mut dice = Dice(2);
    let mut accepted = 0;
    for _ in 0..20_000 {
        let pieces = dice.roll(14);
        let between = dice.one_of(&["", " "]);
        let text: Vec<_> = (0..pieces).map(|_| dice.one_of(PIECES)).collect();
        let text = text.join(between);
        match Filter::parse(&text) {
            Ok(filter) => {
                accepted += 1;
                assert_eq!(Filter::parse(filter.text()), Ok(filter));
            }
            Err(error) => {
                assert!(text.is_char_boundary(error.place), "{text:?}");
                assert!(text.is_char_boundary(error.place + error.length), "{text:?}");
                assert!(!error.words.contains(char::is_control), "{text:?}: {}", error.words);
            }
        }
        assert!(completions(&text, "t").len() <= 8);
        assert!(completions("outcome == ", &text).len() <= 8);
    }
    assert!(accepted > 50, "{accepted} of them are filters");
}

#[test]
fn deep_and_long_texts_are_refused() {
    let nested = |depth: usize| format!("{}ok{}", "(".repeat(depth), ")".repeat(depth));
    filter(&nested(DEEPEST));
    assert!(refused(&nested(DEEPEST + 1)).words.contains("deep"));
    let negated = |depth: usize| format!("{}ttft > 5ms", "!".repeat(depth));
    filter(&negated(DEEPEST - 1));
    assert!(refused(&negated(DEEPEST)).words.contains("deep"), "its one form has parentheses");
    assert!(refused(&"!".repeat(LONGEST)).words.contains("deep"));
    assert!(refused(&"(".repeat(LONGEST + 1)).words.contains("at most"));
    let long = vec!["ok"; LONGEST / 4].join("|");
    assert!(refused(&long).words.contains("at most"), "its one form is longer");
    assert!(refused(&format!("ttft > {}", "9".repeat(400))).words.contains("expected a number"));
}

#[test]
fn names_are_completed_as_they_are_typed() {
    let inserts = |before: &str, word: &str| -> Vec<&str> {
        completions(before, word).iter().map(|completion| completion.insert).collect()
    };
    assert_eq!(inserts("", "tt"), ["ttft", "ttft_due", "ttfo", "ttst", "ttfb"]);
    assert_eq!(inserts("ttft > 5ms && ", "TPO"), ["tpot"]);
    assert_eq!(inserts("ok && outcome == ", "ti"), ["timeout"]);
    assert_eq!(inserts("outcome==", "")[0], "ok");
    assert!(inserts("ttft > ", "5").is_empty());
    assert!(inserts("session == ", "t").is_empty(), "any text may stand here");
    assert!(inserts("", "").is_empty());
    assert!(inserts("!", "fail").contains(&"failed"));
}
