//! Durations of one request, each defined once.
//!
//! Every function takes a run and a request's place in the plan and gives `None` where a stamp is
//! missing. They do not look at the outcome: whoever makes a statistic keeps to successful requests
//! ([`crate::run::Requests::is_ok`]), so that a cut-off answer's first token can still be shown.
//! Times are nanoseconds; a time per token is a fraction of them.

use super::tokens;
use crate::run::Run;
use crate::units::RunNanos;

/// A duration of one request, by name: what tables, goals and the viewer choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metric {
    /// Time to first token.
    Ttft,
    /// Time to first token, from due.
    TtftFromDue,
    /// Time to the first token that is not reasoning.
    FirstOutputToken,
    /// Time from first to second content event.
    Ttst,
    /// Time between tokens.
    Itl,
    /// End to end per token.
    Ntpot,
    /// Time from first to last token.
    Decode,
    /// End to end.
    E2e,
    /// End to end, from due.
    E2eFromDue,
    /// Time until the kernel had accepted the request.
    Send,
    /// Time to the answer's first byte.
    FirstByte,
}

impl Metric {
    /// Every metric, in the order reports list them.
    pub const ALL: [Self; 11] = [
        Self::Ttft,
        Self::TtftFromDue,
        Self::FirstOutputToken,
        Self::Ttst,
        Self::Itl,
        Self::Ntpot,
        Self::Decode,
        Self::E2e,
        Self::E2eFromDue,
        Self::Send,
        Self::FirstByte,
    ];

    /// Its key in the report, unit included.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ttft => "ttft_ms",
            Self::TtftFromDue => "ttft_from_due_ms",
            Self::FirstOutputToken => "time_to_first_output_token_ms",
            Self::Ttst => "ttst_ms",
            Self::Itl => "itl_ms",
            Self::Ntpot => "ntpot_ms",
            Self::Decode => "decode_ms",
            Self::E2e => "e2e_ms",
            Self::E2eFromDue => "e2e_from_due_ms",
            Self::Send => "send_ms",
            Self::FirstByte => "first_byte_ms",
        }
    }

    /// Its name for people.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Ttft => "TTFT",
            Self::TtftFromDue => "TTFT from due",
            Self::FirstOutputToken => "first output token",
            Self::Ttst => "TTST",
            Self::Itl => "ITL",
            Self::Ntpot => "NTPOT",
            Self::Decode => "decode",
            Self::E2e => "e2e",
            Self::E2eFromDue => "e2e from due",
            Self::Send => "send",
            Self::FirstByte => "first byte",
        }
    }

    /// Its formula in one line.
    #[must_use]
    pub const fn formula(self) -> &'static str {
        match self {
            Self::Ttft => "first token - sent",
            Self::TtftFromDue => "first token - due",
            Self::FirstOutputToken => "first token that is not reasoning - sent",
            Self::Ttst => "second content event - first content event",
            Self::Itl => "(last token - first token) / (completion tokens - 1) (vllm bench: TPOT)",
            Self::Ntpot => "e2e / completion tokens",
            Self::Decode => "last token - first token",
            Self::E2e => "last token (end of an answer without content events) - sent",
            Self::E2eFromDue => "last token (end of an answer without content events) - due",
            Self::Send => "kernel accepted the last byte - sent",
            Self::FirstByte => "first byte of the answer - sent",
        }
    }

    /// Its value for request `i`, in nanoseconds.
    #[must_use]
    pub fn value_ns(self, run: &Run, i: usize) -> Option<f64> {
        let whole = match self {
            Self::Itl => return itl_ns(run, i),
            Self::Ntpot => return ntpot_ns(run, i),
            Self::Ttft => ttft_ns(run, i),
            Self::TtftFromDue => ttft_from_due_ns(run, i),
            Self::FirstOutputToken => first_output_token_ns(run, i),
            Self::Ttst => ttst_ns(run, i),
            Self::Decode => decode_ns(run, i),
            Self::E2e => e2e_ns(run, i),
            Self::E2eFromDue => e2e_from_due_ns(run, i),
            Self::Send => send_ns(run, i),
            Self::FirstByte => first_byte_ns(run, i),
        };
        whole.map(nanos)
    }
}

/// First token − sent.
#[must_use]
pub fn ttft_ns(run: &Run, i: usize) -> Option<i64> {
    span(run.requests.sent(i), run.requests.first_token(i))
}

/// First token − due.
#[must_use]
pub fn ttft_from_due_ns(run: &Run, i: usize) -> Option<i64> {
    span(run.requests.due(i), run.requests.first_token(i))
}

/// First token − max(due, ready): TTFT and the time the request waited for its sending. In a
/// user-driven run TTFT and the time that admission kept it back: (ready − due) + TTFT.
#[must_use]
pub fn effective_ttft_ns(run: &Run, i: usize) -> Option<i64> {
    let requests = &run.requests;
    if run.users.is_none() {
        return span(requests.intended(i), requests.first_token(i));
    }
    span(requests.due(i), requests.ready(i))?.checked_add(ttft_ns(run, i)?)
}

/// First token that is not reasoning − sent.
#[must_use]
pub fn first_output_token_ns(run: &Run, i: usize) -> Option<i64> {
    span(run.requests.sent(i), run.requests.first_output_token(i))
}

/// Second content event − first content event.
#[must_use]
pub fn ttst_ns(run: &Run, i: usize) -> Option<i64> {
    span(run.requests.first_token(i), run.requests.second_token(i))
}

/// (Last token − first token) / (completion tokens − 1). `None` below two tokens, and for an answer
/// that came as one content event: it has no gap to measure.
#[must_use]
pub fn itl_ns(run: &Run, i: usize) -> Option<f64> {
    run.requests.second_token(i)?;
    let tokens = tokens::completion(run, i).filter(|&tokens| tokens >= 2)?;
    Some(nanos(decode_ns(run, i)?) / count(tokens - 1))
}

/// Tokens per second that one user sees: 1 / ITL. `None` where ITL is zero or missing.
#[must_use]
pub fn tokens_per_s_per_user(run: &Run, i: usize) -> Option<f64> {
    itl_ns(run, i).filter(|&itl| itl > 0.0).map(|itl| 1e9 / itl)
}

/// End to end / completion tokens.
#[must_use]
pub fn ntpot_ns(run: &Run, i: usize) -> Option<f64> {
    let tokens = tokens::completion(run, i).filter(|&tokens| tokens >= 1)?;
    Some(nanos(e2e_ns(run, i)?) / count(tokens))
}

/// Last token − first token.
#[must_use]
pub fn decode_ns(run: &Run, i: usize) -> Option<i64> {
    span(run.requests.first_token(i), run.requests.last_token(i))
}

/// Last token − sent. A successful answer without content events, as every answer is that was not
/// streamed, brought its last token with its last byte.
#[must_use]
pub fn e2e_ns(run: &Run, i: usize) -> Option<i64> {
    span(run.requests.sent(i), answer_end(run, i))
}

/// The same from due.
#[must_use]
pub fn e2e_from_due_ns(run: &Run, i: usize) -> Option<i64> {
    span(run.requests.due(i), answer_end(run, i))
}

fn answer_end(run: &Run, i: usize) -> Option<RunNanos> {
    let requests = &run.requests;
    requests.last_token(i).or_else(|| requests.done(i).filter(|_| requests.is_ok(i)))
}

/// Kernel accepted the last byte − sent.
#[must_use]
pub fn send_ns(run: &Run, i: usize) -> Option<i64> {
    span(run.requests.sent(i), run.requests.sent_end(i))
}

/// First byte of the answer − sent.
#[must_use]
pub fn first_byte_ns(run: &Run, i: usize) -> Option<i64> {
    span(run.requests.sent(i), run.requests.first_byte(i))
}

/// The gaps between successive content events of request `i`, in nanoseconds: its share of the
/// inter-chunk latency.
pub fn chunk_gaps_ns(run: &Run, i: usize) -> impl Iterator<Item = i64> + '_ {
    run.chunks.row(i).times().windows(2).map(|pair| pair[1].saturating_sub(pair[0]))
}

/// `to` − `from`; `None` if either is missing or the difference leaves 64 bits.
pub(super) fn span(from: Option<RunNanos>, to: Option<RunNanos>) -> Option<i64> {
    to?.0.checked_sub(from?.0)
}

/// A duration as a number for statistics: exact up to 104 days.
#[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 ns, which is 104 days")]
pub(crate) const fn nanos(value: i64) -> f64 {
    value as f64
}

/// A count as a number for rates: exact up to 2^53.
#[expect(clippy::cast_precision_loss, reason = "exact up to 2^53")]
pub(crate) const fn count(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::sample::Sample;
    use crate::log::{ChunkKind, Class, Record};
    use crate::units::CoreIndex;

    const MS: i64 = 1_000_000;

    #[test]
    fn the_first_gap_is_no_token_gap() {
        // Case H01: text at 200 and 220 ms.
        let mut sample = Sample::new();
        let request = sample.send(0);
        sample.chunks(request, &[200 * MS, 220 * MS]);
        sample.done(request, 221 * MS, Class::Ok);
        let run = Run::read(&sample.bytes()).expect("a log");
        assert_eq!(itl_ns(&run, 0), Some(20e6));
        assert_eq!(chunk_gaps_ns(&run, 0).collect::<Vec<_>>(), [20 * MS]);
        assert_eq!(ttft_ns(&run, 0), Some(200 * MS));
        assert_eq!(ttst_ns(&run, 0), Some(20 * MS));
        assert_eq!(e2e_ns(&run, 0), Some(220 * MS));
        assert_eq!(ntpot_ns(&run, 0), Some(110e6));
        assert_eq!(tokens_per_s_per_user(&run, 0), Some(50.0));
    }

    #[test]
    fn usage_divides_the_decode_time_and_reasoning_is_no_output() {
        let mut sample = Sample::new();
        let request = sample.plan(10 * MS);
        sample.dispatch(request, 12 * MS, 15 * MS);
        let time = RunNanos(100 * MS);
        let kind = ChunkKind::REASONING;
        let core = CoreIndex(0);
        sample.push(core, Record::Chunk { request, time, kind, tokens: 1, bytes: 4 });
        sample.chunks(request, &[150 * MS, 200 * MS]);
        sample.usage(request, 201 * MS, [Some(9), Some(11), None]);
        sample.done(request, 201 * MS, Class::Ok);
        let run = Run::read(&sample.bytes()).expect("a log");
        assert_eq!(itl_ns(&run, 0), Some(10e6), "100 ms over ten gaps");
        assert_eq!(ttft_ns(&run, 0), Some(85 * MS));
        assert_eq!(ttft_from_due_ns(&run, 0), Some(90 * MS));
        assert_eq!(effective_ttft_ns(&run, 0), Some(88 * MS), "ready was later than due");
        assert_eq!(first_output_token_ns(&run, 0), Some(135 * MS));
    }

    #[test]
    fn one_event_has_no_gap_and_silence_has_no_latency() {
        let mut sample = Sample::new();
        let whole = sample.send(0);
        sample.chunks(whole, &[50 * MS]);
        sample.usage(whole, 50 * MS, [Some(9), Some(40), None]);
        sample.done(whole, 50 * MS, Class::Ok);
        let silent = sample.send(5);
        sample.done(silent, 60 * MS, Class::EmptyAnswer);
        // Case F14: a JSON answer, with usage and without a stream.
        let json = sample.send(10 * MS);
        sample.usage(json, 50 * MS, [Some(9), Some(40), None]);
        sample.done(json, 50 * MS, Class::Ok);
        let run = Run::read(&sample.bytes()).expect("a log");
        assert_eq!(itl_ns(&run, 0), None);
        assert_eq!(e2e_ns(&run, 0), Some(50 * MS));
        for metric in Metric::ALL {
            assert_eq!(metric.value_ns(&run, 1), None, "{}", metric.name());
        }
        assert_eq!((ttft_ns(&run, 2), itl_ns(&run, 2)), (None, None));
        assert_eq!((e2e_ns(&run, 2), ntpot_ns(&run, 2)), (Some(40 * MS), Some(1e6)));
    }
}
