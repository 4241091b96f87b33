//! The facts of one request, by the names people type: what filters compare and tables show.
//!
//! One row here is a field of the filter and a column of the table of requests. Every number is
//! `onbeat_shared`'s; this file only names it, says what it measures and how it is written. A fact
//! that the log does not have is `None`, in the filter as in the table.

use onbeat_shared::{
    log::{Class, DoneFlags, FinishReason, Outcome},
    metrics::{attribution, cache, goal::Figure, latency, latency::Metric, lateness, slo, tokens},
    run::{End, Run},
    units::{NANOS_PER_MILLI, RunNanos},
};

use crate::quantity;

/// What a number counts, and so how it is written and which units it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// How many.
    Count,
    /// A number that names something.
    Label,
    /// A length of time (ns).
    Duration,
    /// An instant of the run (ns from the schedule's zero).
    Instant,
    /// A share of one.
    Share,
    /// Tokens per second.
    Speed,
    /// Bytes.
    Bytes,
}

/// How a field's value is found.
#[derive(Clone, Copy)]
pub enum Value {
    /// A number.
    Number(Measure, fn(&Run, usize) -> Option<f64>),
    /// One of a few words.
    Word(fn(&Run, usize) -> Option<&'static str>, fn() -> Vec<&'static str>),
    /// Any text.
    Text(for<'a> fn(&'a Run, usize) -> Option<&'a str>),
    /// Yes or no.
    Flag(fn(&Run, usize) -> Option<bool>),
}

/// What there is to know of a field.
pub struct Row {
    /// Its name in a filter.
    pub name: &'static str,
    /// Its other names.
    pub others: &'static [&'static str],
    /// Its heading in a table.
    pub heading: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    /// How its value is found.
    pub value: Value,
}

macro_rules! fields {
    ($($variant:ident $name:literal $others:tt $heading:literal $about:literal $value:expr;)*) => {
        /// A fact of one request.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(missing_docs, reason = "each row's own words say what it is")]
        pub enum Field {
            $($variant,)*
        }

        impl Field {
            /// Every field, in the order of the table's columns.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];
        }

        const ROWS: &[Row] = &[$(Row {
            name: $name,
            others: &$others,
            heading: $heading,
            about: $about,
            value: $value,
        }),*];
    };
}

use Measure::{Bytes, Count, Duration, Instant, Label, Share, Speed};
use Value::{Flag, Number, Text, Word};

fields! {
    Number "request" ["number", "no"] "No." "place in the plan"
        Number(Label, |_run, i| Some(i as f64));
    TraceRow "row" ["line"] "Row" "line or row of the trace"
        Number(Label, |run, i| Some(run.plan[i].row).filter(|&row| row > 0).map(|row| row as f64));
    Due "due" ["due_at"] "Due" "when the schedule wanted it to leave"
        Number(Instant, |run, i| instant(run.requests.due(i)));
    Ready "ready" ["ready_at"] "Ready" "when all it waits for allowed it"
        Number(Instant, |run, i| instant(run.requests.ready(i)));
    Sent "sent" ["sent_at", "time"] "Sent" "when it left"
        Number(Instant, |run, i| instant(run.requests.sent(i)));
    Done "done" ["done_at", "ended", "end"] "Ended" "when the exchange ended"
        Number(Instant, |run, i| instant(run.requests.done(i)));
    Lateness "lateness" ["late"] "Lateness" "sent − max(due, ready)"
        Number(Duration, |run, i| lateness::lateness_ns(run, i).map(|ns| ns as f64));
    Queue "queue" ["queue_ms", "held_back"] "Queue"
        "ready − due: what it waited for, or admission"
        Number(Duration, |run, i| attribution::queue_ns(run, i).map(|ns| ns as f64));
    AgentWait "agent_wait" ["agent_wait_ms"] "Agent wait" "waiting for sub-agents"
        Number(Duration, |run, i| attribution::agent_wait_ns(run, i).map(|ns| ns as f64));
    Session "session" ["session_id"] "Session" "name of its session"
        Text(|run, i| run.session_name(i));
    User "user" ["user_id"] "User" "the simulated user that sent it"
        Text(user);
    Trace "trace" ["trace_id"] "Trace" "what its user plays, by the trace's own name"
        Text(trace);
    Turn "turn" [] "Turn" "turn in its session, from zero"
        Number(Label, |run, i| Some(f64::from(run.plan[i].turn)));
    Input "input" ["prompt", "input_tokens", "prompt_tokens"] "Input" "prompt tokens"
        Number(Count, |run, i| tokens::prompt(run, i).map(|count| count as f64));
    Cached "cached" ["cached_tokens"] "Cached" "cached prompt tokens, as reported"
        Number(Count, |run, i| run.requests.cached_tokens(i).map(f64::from));
    CachedShare "cached_share" ["hit_rate", "hits"] "Cached share"
        "cached / prompt tokens, as reported"
        Number(Share, cache::reported_share);
    IdealCached "ideal_cached" ["ideal_cached_tokens"] "Ideal" "tokens an infinite cache would hold"
        Number(Count, |run, i| run.plan[i].ideal_cached_tokens.map(f64::from));
    Output "output" ["completion", "output_tokens", "completion_tokens"] "Output"
        "completion tokens"
        Number(Count, |run, i| tokens::completion(run, i).map(|count| count as f64));
    Reasoning "reasoning" ["reasoning_tokens"] "Reasoning" "reasoning tokens, as reported"
        Number(Count, |run, i| run.requests.reasoning_tokens(i).map(f64::from));
    Planned "planned" ["max_tokens", "planned_output"] "Planned" "output limit as sent"
        Number(Count, |run, i| run.plan[i].max_tokens.map(f64::from));
    Chunks "chunks" ["events"] "Chunks" "content events"
        Number(Count, |run, i| run.requests.was_sent(i).then(|| run.chunks.count(i) as f64));
    Ttft "ttft" ["time_to_first_token"] "TTFT" "first token − sent"
        Number(Duration, |run, i| Metric::Ttft.value_ns(run, i));
    TtftDue "ttft_due" ["ttft_from_due"] "TTFT from due" "first token − due"
        Number(Duration, |run, i| Metric::TtftFromDue.value_ns(run, i));
    EffectiveTtft "effective_ttft" [] "Eff. TTFT" "TTFT and what the request waited before it"
        Number(Duration, |run, i| latency::effective_ttft_ns(run, i).map(|ns| ns as f64));
    FirstOutput "ttfo" ["time_to_first_output_token", "first_output_token"]
        "First output" "first token that is not reasoning − sent"
        Number(Duration, |run, i| Metric::FirstOutputToken.value_ns(run, i));
    Ttst "ttst" ["time_to_second_token"] "TTST" "second content event − first"
        Number(Duration, |run, i| Metric::Ttst.value_ns(run, i));
    Itl "itl" ["tpot", "inter_token_latency"] "ITL" "mean time between tokens"
        Number(Duration, |run, i| Metric::Itl.value_ns(run, i));
    LongestGap "longest_gap" ["longest_icl", "max_icl"] "Longest gap" "between two content events"
        Number(Duration, |run, i| figure_ns(Figure::LongestGap, run, i));
    Ntpot "ntpot" [] "NTPOT" "end to end / completion tokens"
        Number(Duration, |run, i| Metric::Ntpot.value_ns(run, i));
    Decode "decode" ["decode_duration"] "Decode" "last token − first token"
        Number(Duration, |run, i| Metric::Decode.value_ns(run, i));
    Speed "speed" ["tokens_per_s", "tps"] "Tokens/s" "1 / ITL, tokens per second"
        Number(Speed, latency::tokens_per_s_per_user);
    E2e "e2e" ["request_latency", "e2el", "latency"] "End to end" "last token − sent"
        Number(Duration, |run, i| Metric::E2e.value_ns(run, i));
    E2eDue "e2e_due" ["e2e_from_due"] "E2E from due" "last token − due"
        Number(Duration, |run, i| Metric::E2eFromDue.value_ns(run, i));
    Send "send" ["http_req_sending"] "Send" "kernel accepted the last byte − sent"
        Number(Duration, |run, i| Metric::Send.value_ns(run, i));
    FirstByte "first_byte" ["ttfb"] "First byte" "first byte of the answer − sent"
        Number(Duration, |run, i| Metric::FirstByte.value_ns(run, i));
    Exchange "exchange" ["duration", "http_duration"] "Exchange" "end of the exchange − sent"
        Number(Duration, |run, i| figure_ns(Figure::Exchange, run, i));
    Outcome "outcome" [] "Outcome" "how it ended"
        Word(outcome, outcome_words);
    Class "class" ["cause"] "Cause" "the finer cause of how it ended"
        Word(|run, i| Some(run.requests.end(i).name()), class_words);
    Status "status" ["http_status", "http", "code"] "Status" "HTTP status"
        Number(Label, |run, i| run.requests.status(i).map(f64::from));
    Finish "finish" ["finish_reason"] "Finish" "why the model stopped"
        Word(|run, i| run.requests.finish(i).name(), finish_words);
    Error "error" ["error_text", "message"] "Error" "what the server or the system said"
        Text(|run, i| run.error_text(i));
    Core "core" [] "Core" "the core that sent it, or was to"
        Number(Label, |run, i| run.requests.core(i).map(|core| f64::from(core.0)));
    Connection "connection" ["conn"] "Conn." "its core's number of the connection"
        Number(Label, |run, i| run.requests.connection(i).map(f64::from));
    Reused "reused" ["connection_reused"] "Reused" "its connection had carried another request"
        Flag(|run, i| run.requests.connection_reused(i));
    Target "target" ["url"] "Target" "base URL of the server"
        Text(target);
    Stalled "stalled" ["in_stall"] "Stalled" "a host stall explains its lateness"
        Flag(lateness::in_stall);
    Burst "burst" ["in_burst"] "Burst" "shares its due instant with others of its core"
        Flag(|run, i| Some(run.requests.in_burst(i)));
    Resent "resent" [] "Resent" "sent once more on a fresh connection"
        Flag(|run, i| ended(run, i, DoneFlags::RESENT));
    Underrun "underrun" [] "Underrun" "its body was not rendered when it was due"
        Flag(|run, i| ended(run, i, DoneFlags::UNDERRUN));
    Ok "ok" ["successful", "success"] "OK" "a complete answer with success status"
        Flag(|run, i| Some(run.requests.is_ok(i)));
    Failed "failed" ["failure"] "Failed" "ended by itself without success"
        Flag(|run, i| Some(slo::failed(run, i)));
    Open "open" ["in_flight"] "Open" "in flight when the log ends"
        Flag(|run, i| Some(run.requests.end(i) == End::Open));
    Body "body" ["body_bytes"] "Body" "bytes of its body, if rendered before the start"
        Number(Bytes, |run, i| run.plan[i].body_bytes.map(|bytes| bytes.get() as f64));
    Answer "answer" ["response_bytes"] "Answer" "bytes of the answer, head included"
        Number(Bytes, |run, i| run.requests.response_bytes(i).map(|bytes| bytes as f64));
}

impl Field {
    /// What there is to know of it.
    #[must_use]
    pub const fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// The field of this name, in any case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let is = |other: &str| other.eq_ignore_ascii_case(name);
        let known = |field: &&Self| {
            let row = field.row();
            is(row.name) || row.others.iter().any(|&other| is(other))
        };
        Self::ALL.iter().find(known).copied()
    }

    /// Its value for request `i` if it is a number (nanoseconds, or a share of one).
    #[must_use]
    pub fn number(self, run: &Run, i: usize) -> Option<f64> {
        match self.row().value {
            Number(_, value) => value(run, i),
            _ => None,
        }
    }

    /// Its value for request `i` if it is words.
    #[must_use]
    pub fn text(self, run: &Run, i: usize) -> Option<&str> {
        match self.row().value {
            Word(value, _) => value(run, i),
            Text(value) => value(run, i),
            Number(..) | Flag(_) => None,
        }
    }

    /// Whether request `i` has it.
    #[must_use]
    pub fn is_known(self, run: &Run, i: usize) -> bool {
        match self.row().value {
            Number(_, value) => value(run, i).is_some(),
            Word(value, _) => value(run, i).is_some(),
            Text(value) => value(run, i).is_some(),
            Flag(value) => value(run, i).is_some(),
        }
    }

    /// Whether it is written from the left, as words are.
    #[must_use]
    pub const fn is_text(self) -> bool {
        matches!(self.row().value, Word(..) | Text(_) | Flag(_))
    }

    /// Its value for request `i` as it stands in a table; control characters are escaped.
    #[must_use]
    pub fn words(self, run: &Run, i: usize) -> Option<String> {
        Some(match self.row().value {
            Number(measure, value) => measure.words(value(run, i)?),
            Word(value, _) => value(run, i)?.replace('_', " "),
            Text(value) => escaped(value(run, i)?),
            Flag(value) => if value(run, i)? { "yes" } else { "no" }.to_owned(),
        })
    }

    /// Whether this run could have it at all: users only where users drive the run.
    #[must_use]
    pub const fn belongs_to(self, run: &Run) -> bool {
        match self {
            Self::User | Self::Trace | Self::AgentWait => run.users.is_some(),
            _ => true,
        }
    }
}

impl Measure {
    /// A value of this measure with its unit.
    #[must_use]
    pub fn words(self, value: f64) -> String {
        match self {
            Count => quantity::count(whole(value)),
            Label => format!("{value}"),
            Duration => quantity::measured(value),
            // Thousandths of a second tell neighbours apart.
            Instant => quantity::instant(value, NANOS_PER_MILLI as f64 * 100.0),
            Share => quantity::percent(value),
            Speed => quantity::number(value),
            Bytes => quantity::bytes(whole(value)),
        }
    }
}

/// A number that is not negative and has no fraction.
fn whole(value: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float-to-integer cast saturates, and these are counts"
    )]
    let whole = value as u64;
    whole
}

/// A text without anything that could move the pen: control characters, marks that turn the writing
/// direction and invisible ones are written out.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        let hidden = matches!(letter, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}' | '\u{FEFF}');
        if letter.is_control() || hidden {
            out.extend(letter.escape_default());
        } else {
            out.push(letter);
        }
    }
    out
}

fn instant(time: Option<RunNanos>) -> Option<f64> {
    time.map(|time| time.0 as f64)
}

/// A figure in milliseconds as nanoseconds.
fn figure_ns(figure: Figure, run: &Run, i: usize) -> Option<f64> {
    figure.value(run, i).map(|millis| millis * NANOS_PER_MILLI as f64)
}

fn ended(run: &Run, i: usize, flag: DoneFlags) -> Option<bool> {
    run.requests.class(i).map(|_class| run.requests.flags(i).has(flag))
}

fn user(run: &Run, i: usize) -> Option<&str> {
    let name = run.users.as_ref()?.root(run.plan[i].session)?.name.as_str();
    (!name.is_empty()).then_some(name)
}

fn trace(run: &Run, i: usize) -> Option<&str> {
    let users = run.users.as_ref()?;
    users.users.get(run.plan[i].session.as_usize())?.trace_id.as_deref()
}

fn target(run: &Run, i: usize) -> Option<&str> {
    let target = run.requests.target(i).unwrap_or(run.plan[i].target);
    run.manifest.targets.get(usize::from(target)).map(String::as_str)
}

fn outcome(run: &Run, i: usize) -> Option<&'static str> {
    run.requests.outcome(i).map(Outcome::name)
}

/// What an outcome may be; "failed" is every one that a request came to by itself without success.
fn outcome_words() -> Vec<&'static str> {
    Outcome::ALL.into_iter().map(Outcome::name).chain([FAILED]).collect()
}

/// The word for all outcomes that are failures.
pub const FAILED: &str = "failed";

fn class_words() -> Vec<&'static str> {
    Class::ALL.iter().map(|class| class.name()).chain(End::UNKNOWN).collect()
}

fn finish_words() -> Vec<&'static str> {
    (0..=5).filter_map(|number| FinishReason::from_number(number).name()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use onbeat_shared::log::{sample, sample_users};

    use super::*;

    #[test]
    fn no_name_means_two_fields_and_none_is_a_word_of_the_grammar() {
        let mut names = BTreeSet::new();
        for field in Field::ALL {
            let row = field.row();
            for name in [row.name].iter().chain(row.others) {
                assert!(names.insert(*name), "{name} twice");
                assert_eq!(Field::named(&name.to_uppercase()), Some(*field));
                assert!(!["has", "and", "or", "not", "missing"].contains(name));
            }
            assert!(!row.about.is_empty() && !row.heading.is_empty());
        }
    }

    #[test]
    fn numbers_are_those_of_the_metrics_and_words_are_written() {
        for bytes in [sample::log(3, 200), sample_users::log(3, 4)] {
            let run = Run::read(&bytes).expect("a readable log");
            for i in 0..run.requests.len() {
                for (field, metric) in [
                    (Field::Ttft, Metric::Ttft),
                    (Field::TtftDue, Metric::TtftFromDue),
                    (Field::Itl, Metric::Itl),
                    (Field::E2eDue, Metric::E2eFromDue),
                ] {
                    assert_eq!(field.number(&run, i), metric.value_ns(&run, i));
                }
                for &field in Field::ALL {
                    let words = field.words(&run, i);
                    assert_eq!(words.is_some(), field.is_known(&run, i), "{field:?}");
                    assert!(words.is_none_or(|words| !words.contains(char::is_control)));
                }
            }
        }
    }

    #[test]
    fn every_word_a_request_has_is_one_the_filter_takes() {
        let run = Run::read(&sample::log(3, 400)).expect("a readable log");
        for &field in Field::ALL {
            let Word(value, words) = field.row().value else { continue };
            let words = words();
            let found = (0..run.requests.len()).filter_map(|i| value(&run, i));
            for word in found {
                assert!(words.contains(&word), "{word} of {field:?}");
            }
        }
    }

    #[test]
    fn hostile_texts_cannot_move_the_pen() {
        assert_eq!(escaped("a\nb\t\u{1b}[31m\u{202e}c"), "a\\nb\\t\\u{1b}[31m\\u{202e}c");
        assert_eq!(escaped("größer – ok"), "größer – ok");
    }
}
