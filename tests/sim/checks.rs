//! What must hold of every exchange of a simulated run, whatever the network does.

use onbeat::policy::deadline::Limits;
use onbeat::wire::AnswerEnd;
use onbeat_shared::log::outcome::Class;
use onbeat_shared::units::RunNanos;

use super::cores::{CHORES_NS, Exchange, HANG_UP_NS};
use super::work::Ask;

/// From the passing of a limit to the end it leads to, at most: somebody looks, and the connection
/// is closed.
const SLACK_NS: i64 = CHORES_NS + HANG_UP_NS.cast_signed();

/// Nothing leaves before it is due or before its dependencies let it.
pub(super) fn not_early(ask: &Ask, now: RunNanos) {
    let request = ask.request;
    assert!(now >= ask.ready, "request {request:?} left at {now:?}, was ready at {:?}", ask.ready);
    assert!(ask.due.is_none_or(|due| now >= due), "request {request:?} left before it was due");
    assert!(ask.due.is_none_or(|due| ask.ready >= due), "request {request:?} was ready too early");
}

/// No answer is read of which a limit had passed long ago.
pub(super) fn read_in_time(limits: &Limits, exchange: &Exchange, now: RunNanos) {
    let sent = exchange.sent.expect("an answer's request has left");
    let (since, limit, name) = match exchange.latest {
        None => (sent, limits.first_byte_ns, "first byte"),
        Some(latest) => (latest, limits.idle_ns, "idle"),
    };
    let took_ns = now.0 - since.0;
    // A request that leaves again waits for its first byte once more, from the same stamp.
    let known = !exchange.resent || exchange.latest.is_some();
    let allowed = limit.is_none_or(|limit| !known || took_ns <= limit + SLACK_NS);
    assert!(allowed, "{:?} waited {took_ns} ns, limit: {name}", exchange.ask.request);
}

/// What has been read so far means what the server meant: its tokens, all of them and in order,
/// and nobody else's.
pub(super) fn content(exchange: &Exchange, ended: bool) {
    let truth = exchange.truth.as_ref().expect("the server has answered");
    let (tokens, text) = truth.content(exchange.read);
    let request = exchange.ask.request;
    assert_eq!(exchange.tokens, tokens, "{request:?}: content events of a {}", truth.kind);
    if tokens > 0 {
        let found = String::from_utf8_lossy(&exchange.text);
        assert_eq!(found, text, "{request:?}: text of a {}", truth.kind);
    }
    let read = exchange.read;
    assert!(ended || read < truth.ends.1, "{request:?}: a {} goes on after {read}", truth.kind);
    assert!(!ended || read >= truth.ends.0, "{request:?}: a {} ends at {read}", truth.kind);
}

/// An answer that its reader ended by itself.
pub(super) fn whole(exchange: &Exchange, end: &AnswerEnd) {
    let truth = exchange.truth.as_ref().expect("the server has answered");
    let request = exchange.ask.request;
    assert_eq!(end.class, truth.class, "{request:?}: a {}", truth.kind);
    let stray = exchange.read > truth.ends.1;
    assert!(
        !end.reusable || truth.reusable && !stray,
        "{request:?}: the connection of a {} is used again",
        truth.kind
    );
    assert!(end.response_bytes <= exchange.read as u64, "{request:?}: more bytes than came");
}

/// An answer whose connection was closed or reset before its reader had enough.
pub(super) fn cut(exchange: &Exchange, end: &AnswerEnd, reset: bool) {
    let Some(truth) = &exchange.truth else { return };
    let (request, read) = (exchange.ask.request, exchange.read);
    assert!(
        truth.allows_cut(read, reset, end.class),
        "{request:?}: a {} cut after {read} bytes (reset: {reset}) is called {:?}",
        truth.kind,
        end.class
    );
    assert!(!end.reusable, "{request:?}: a connection that is gone is used again");
}

/// An answer that keeps its own class although its time was up.
pub(super) fn settled(exchange: &Exchange) {
    let truth = exchange.truth.as_ref().expect("the server has answered");
    let (request, read) = (exchange.ask.request, exchange.read);
    let may_be = read >= truth.settled || truth.may_know_early;
    assert!(may_be, "{request:?}: a {} is not settled at {read}", truth.kind);
}

/// A request ends for the reason that is told, and no later than its limits let it.
pub(super) fn in_time(limits: &Limits, exchange: &Exchange, class: Class, now: RunNanos) {
    let request = exchange.ask.request;
    let begun = exchange.begun.or(exchange.sent).expect("it was begun with");
    let took_ns = now.0 - begun.0;
    if let Some(total_ns) = limits.total_ns {
        assert!(took_ns <= total_ns + SLACK_NS, "{request:?} took {took_ns} ns in all");
    }
    let at_least = |limit: Option<i64>, since: Option<RunNanos>| {
        let limit = limit.unwrap_or_else(|| panic!("{request:?}: no limit for {class:?}"));
        let since = since.unwrap_or_else(|| panic!("{request:?}: {class:?} before it began"));
        let took_ns = now.0 - since.0;
        assert!(took_ns >= limit, "{request:?}: {class:?} after {took_ns} ns");
    };
    match class {
        Class::ConnectTimeout => at_least(limits.connect_ns, Some(begun)),
        Class::FirstByteTimeout => at_least(limits.first_byte_ns, exchange.sent),
        Class::IdleTimeout => at_least(limits.idle_ns, exchange.latest),
        Class::TotalTimeout => at_least(limits.total_ns, Some(begun)),
        Class::CancelledByPlan => at_least(exchange.ask.cancel_after, exchange.sent),
        _ => {}
    }
}
