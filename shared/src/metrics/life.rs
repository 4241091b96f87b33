//! The stretches that one request's life is made of, from due to end.
//!
//! Each begins at one stamp and ends at another; a stretch of which one end is missing is not
//! there, and one that would run backwards (the kernel may say that it accepted the last byte after
//! the answer has begun) has no length. They may touch but do not overlap, except that opening a
//! connection is part of being late.

use super::latency::span;
use super::phases::Openings;
use crate::run::{Run, Stall};
use crate::units::RunNanos;

/// What a request was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PhaseKind {
    /// Due, and not yet ready: its predecessor or admission kept it back.
    HeldBack,
    /// Ready and due, and not yet sent.
    Late,
    /// A connection was opened for it.
    Connect,
    /// Its bytes were on their way to the kernel.
    Send,
    /// Nothing of the answer had come.
    Wait,
    /// The answer had begun without content.
    Head,
    /// Content came.
    Decode,
    /// Content had ended, the exchange had not.
    Tail,
    /// The rest of an exchange without content.
    Answer,
}

impl PhaseKind {
    /// Its name for people.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::HeldBack => "held back",
            Self::Late => "late",
            Self::Connect => "connect",
            Self::Send => "send",
            Self::Wait => "wait",
            Self::Head => "to first token",
            Self::Decode => "decode",
            Self::Tail => "to end",
            Self::Answer => "answer",
        }
    }

    /// From which stamp to which.
    #[must_use]
    pub const fn formula(self) -> &'static str {
        match self {
            Self::HeldBack => "due to ready",
            Self::Late => "max(due, ready) to sent",
            Self::Connect => "opening the connection that carried it",
            Self::Send => "sent to last byte accepted by the kernel",
            Self::Wait => "last byte accepted to first byte of the answer",
            Self::Head => "first byte of the answer to first content event",
            Self::Decode => "first content event to last",
            Self::Tail => "last content event to the end of the exchange",
            Self::Answer => "last stamp before it to the end of the exchange",
        }
    }
}

/// One stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// What it was doing.
    pub kind: PhaseKind,
    /// From when.
    pub start: RunNanos,
    /// Until when; not before `start`.
    pub end: RunNanos,
}

impl Phase {
    /// How long it was, in nanoseconds; `None` if that leaves 64 bits.
    #[must_use]
    pub fn length_ns(&self) -> Option<i64> {
        span(Some(self.start), Some(self.end))
    }
}

/// The stretches of request `i`, by their start. Empty if nothing is known of it.
#[must_use]
pub fn phases(run: &Run, i: usize) -> Vec<Phase> {
    let requests = &run.requests;
    let mut phases = Vec::new();
    let mut add = |kind, start: Option<RunNanos>, end: Option<RunNanos>| {
        if let (Some(start), Some(end)) = (start, end) {
            phases.push(Phase { kind, start, end: end.max(start) });
        }
    };
    let (due, ready, sent) = (requests.due(i), requests.ready(i), requests.sent(i));
    add(PhaseKind::HeldBack, due.filter(|&due| ready.is_some_and(|ready| ready > due)), ready);
    add(PhaseKind::Late, requests.intended(i).filter(|_| sent.is_some()), sent);
    if let Some(connect) = Openings::of(run).waited_for(run, i) {
        add(PhaseKind::Connect, Some(connect.start), Some(connect.end));
    }
    let byte = requests.first_byte(i);
    let accepted = requests.sent_end(i).map(|end| byte.map_or(end, |byte| end.min(byte)));
    add(PhaseKind::Send, sent, accepted);
    add(PhaseKind::Wait, accepted.or(sent), byte);
    let before_token = byte.or(accepted).or(sent);
    let (first, last) = (requests.first_token(i), requests.last_token(i));
    add(PhaseKind::Head, before_token, first);
    add(PhaseKind::Decode, first, last);
    let done = requests.done(i);
    add(PhaseKind::Tail, last, done);
    add(PhaseKind::Answer, before_token.filter(|_| last.is_none()), done);
    phases.sort_by_key(|phase| phase.start);
    phases
}

/// The host stalls of request `i`'s core that lie in its life, from due to end.
#[must_use]
pub fn stalls(run: &Run, i: usize) -> &[Stall] {
    let requests = &run.requests;
    let from = requests.due(i).or(requests.ready(i)).or(requests.sent(i));
    let to = super::throughput::last_stamp(run, i);
    let (Some(core), Some(from), Some(to)) = (requests.core(i), from, to) else { return &[] };
    let stalls = run.stalls.of_core(core);
    let first = stalls.partition_point(|stall| stall.end() <= from);
    let after = stalls.partition_point(|stall| stall.start < to);
    &stalls[first..after.max(first)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::sample::{self, Sample};
    use crate::log::{Class, Record};
    use crate::units::CoreIndex;

    const MS: i64 = 1_000_000;

    fn told(run: &Run, i: usize) -> Vec<(PhaseKind, i64, i64)> {
        phases(run, i)
            .iter()
            .map(|phase| (phase.kind, phase.start.0 / MS, phase.end.0 / MS))
            .collect()
    }

    #[test]
    fn a_life_is_cut_at_its_stamps() {
        let mut sample = Sample::new();
        let request = sample.plan(10 * MS);
        sample.dispatch(request, 12 * MS, 15 * MS);
        let time = RunNanos(40 * MS);
        sample.push(CoreIndex(0), Record::FirstByte { request, time });
        sample.chunks(request, &[50 * MS, 90 * MS]);
        sample.done(request, 95 * MS, Class::Ok);
        let start = RunNanos(20 * MS);
        sample.push(CoreIndex(0), Record::Stall { start, length_ns: 300_000 });
        sample.push(CoreIndex(1), Record::Stall { start, length_ns: 300_000 });
        let run = Run::read(&sample.bytes()).expect("a log");
        assert_eq!(
            told(&run, 0),
            [
                (PhaseKind::HeldBack, 10, 12),
                (PhaseKind::Late, 12, 15),
                (PhaseKind::Wait, 15, 40),
                (PhaseKind::Head, 40, 50),
                (PhaseKind::Decode, 50, 90),
                (PhaseKind::Tail, 90, 95),
            ]
        );
        assert_eq!(stalls(&run, 0).len(), 1, "of its own core");
    }

    #[test]
    fn what_failed_or_never_left_has_what_there_was() {
        let mut sample = Sample::new();
        let failed = sample.send(5 * MS);
        sample.done(failed, 9 * MS, Class::Http5xx);
        sample.plan(20 * MS);
        let open = sample.send(30 * MS);
        let run = Run::read(&sample.bytes()).expect("a log");
        assert_eq!(told(&run, 0), [(PhaseKind::Late, 5, 5), (PhaseKind::Answer, 5, 9)]);
        assert_eq!(told(&run, 1), []);
        assert_eq!(told(&run, open.as_usize()), [(PhaseKind::Late, 30, 30)]);
    }

    #[test]
    fn the_connection_that_was_opened_for_it_is_found_among_others_of_its_number() {
        let mut sample = Sample::new();
        let request = sample.plan(10 * MS);
        sample.dispatch(request, 10 * MS, 15 * MS);
        let (time, bytes, connection) = (RunNanos(16 * MS), 700, 7);
        sample.push(CoreIndex(0), Record::SentEnd { request, time, bytes, connection });
        for (start, end, class) in [
            (1, 2, Class::Ok),
            (10, 11, Class::ConnectRefused),
            (12, 14, Class::Ok),
            (40, 41, Class::Ok),
        ] {
            let (start, end) = (RunNanos(start * MS), RunNanos(end * MS));
            let (target, errno) = (0, 0);
            let opening = Record::Connect { connection, start, end, target, class, errno };
            sample.push(CoreIndex(0), opening);
        }
        let run = Run::read(&sample.bytes()).expect("a log");
        let connects = told(&run, 0).into_iter().filter(|phase| phase.0 == PhaseKind::Connect);
        assert_eq!(connects.collect::<Vec<_>>(), [(PhaseKind::Connect, 12, 14)]);
    }

    #[test]
    fn stretches_never_run_backwards_and_lie_within_the_life() {
        for seed in 0..4 {
            let run = Run::read(&sample::log(seed, 300)).expect("a log");
            for i in 0..run.requests.len() {
                let phases = phases(&run, i);
                assert!(phases.is_sorted_by_key(|phase| phase.start));
                let chain = phases.iter().filter(|phase| phase.kind != PhaseKind::Connect);
                let chain: Vec<_> = chain.collect();
                assert!(chain.windows(2).all(|pair| pair[0].end <= pair[1].start), "request {i}");
                assert!(phases.iter().all(|phase| phase.length_ns() >= Some(0)));
                if run.requests.connection_reused(i) != Some(false) {
                    assert!(phases.iter().all(|phase| phase.kind != PhaseKind::Connect));
                }
            }
        }
    }
}
