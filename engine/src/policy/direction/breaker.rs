//! Whether the server is gone: connection errors in a row, and no success for a while.
//!
//! Only what fails before its first token and because of the connection counts: a stream that is
//! cut off, an error the server answers with and a time limit say that somebody is there. One
//! success and the count begins again.

use onbeat_shared::log::outcome::{Class, Outcome};
use onbeat_shared::units::RunNanos;

use crate::policy::options;

/// Counts of errors.
#[derive(Clone, Debug)]
pub(super) struct Breaker {
    limits: options::Breaker,
    errors: u32,
    last_success: Option<RunNanos>,
    tripped: Option<u32>,
}

impl Breaker {
    pub(super) const fn new(limits: options::Breaker) -> Self {
        Self { limits, errors: 0, last_success: None, tripped: None }
    }

    /// A request ended.
    pub(super) fn ended(&mut self, at: RunNanos, class: Class, had_first_token: bool) {
        if class == Class::Ok {
            self.errors = 0;
            self.last_success = Some(at);
        } else if is_of_connection(class) && !had_first_token {
            self.errors = self.errors.saturating_add(1);
            let lately = self
                .last_success
                .is_some_and(|last| at.0.saturating_sub(last.0) <= self.limits.window_ns);
            if self.limits.errors > 0 && self.errors >= self.limits.errors && !lately {
                self.tripped.get_or_insert(self.errors);
            }
        }
    }

    /// How many errors in a row ended the run, if they did.
    pub(super) const fn tripped(&self) -> Option<u32> {
        self.tripped
    }
}

const fn is_of_connection(class: Class) -> bool {
    matches!(class.outcome(), Outcome::ConnectError | Outcome::Disconnected)
        || matches!(class, Class::ConnectTimeout)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn tripped(errors: u32, ends: &[(i64, Class, bool)]) -> Option<u32> {
        let mut breaker = Breaker::new(options::Breaker { errors, window_ns: 30 * SECOND });
        for &(at, class, had_first_token) in ends {
            breaker.ended(RunNanos(at * SECOND), class, had_first_token);
        }
        breaker.tripped()
    }

    #[test]
    fn errors_in_a_row_trip_it_unless_something_succeeded_lately() {
        let refused = |at| (at, Class::ConnectRefused, false);
        let ok = |at| (at, Class::Ok, true);
        assert_eq!(tripped(3, &[refused(0), refused(1)]), None);
        assert_eq!(tripped(3, &[refused(0), refused(1), refused(1)]), Some(3));
        assert_eq!(tripped(0, &[refused(0), refused(1), refused(1)]), None, "0 is never");
        assert_eq!(tripped(2, &[refused(0), ok(1), refused(40)]), None, "the count began again");
        assert_eq!(tripped(2, &[ok(0), refused(1), refused(30)]), None, "30 s have not passed");
        assert_eq!(tripped(2, &[ok(0), refused(1), refused(30), refused(31)]), Some(3));
    }

    #[test]
    fn only_what_fails_before_its_first_token_for_its_connection_counts() {
        for (class, had_first_token, counts) in [
            (Class::ConnectTimeout, false, true),
            (Class::ResetBeforeAnswer, false, true),
            (Class::TruncatedBody, false, true),
            (Class::TlsClosed, false, true),
            (Class::ResetMidAnswer, true, false),
            (Class::Http5xx, false, false),
            (Class::IdleTimeout, false, false),
            (Class::ErrorEvent, false, false),
            (Class::Interrupted, false, false),
        ] {
            let wanted = counts.then_some(1);
            assert_eq!(tripped(1, &[(0, class, had_first_token)]), wanted, "{}", class.name());
        }
    }
}
