//! The parts of one exchange, for pictures: when its connection was opened for it, when it left,
//! when its tokens came, when it ended.
//!
//! Instants as the log has them, put so that they never run backwards; lengths are
//! [`super::latency`]'s and [`super::life`]'s.

use std::collections::HashMap;

use crate::run::Run;
use crate::units::{CoreIndex, RunNanos};

/// The instants at which one exchange changes its phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phases {
    /// When a connection began to be opened for it, if one was.
    pub connect: Option<RunNanos>,
    /// When it left.
    pub sent: RunNanos,
    /// When the kernel had accepted it; `sent` if that is not known.
    pub accepted: RunNanos,
    /// Its first content event.
    pub first_token: Option<RunNanos>,
    /// Its last content event.
    pub last_token: Option<RunNanos>,
    /// Its end; `None` while it is in flight.
    pub end: Option<RunNanos>,
}

/// When each connection began to be opened, by core and the core's own number of it.
#[derive(Clone, Debug, Default)]
pub struct Openings {
    starts: HashMap<(CoreIndex, u32), (RunNanos, RunNanos)>,
}

impl Openings {
    /// Those of a run.
    #[must_use]
    pub fn of(run: &Run) -> Self {
        let opened = run
            .connects
            .iter()
            .map(|connect| ((connect.core, connect.connection), (connect.start, connect.end)));
        Self { starts: opened.collect() }
    }
}

/// The phases of request `i`; `None` if it never left. A connection counts as opened for it if it
/// had carried no other and was not yet there when the request was to leave.
#[must_use]
pub fn phases(run: &Run, openings: &Openings, i: usize) -> Option<Phases> {
    let requests = &run.requests;
    let sent = requests.sent(i)?;
    let own = || {
        let key = (requests.core(i)?, requests.connection(i)?);
        let (start, end) = *openings.starts.get(&key)?;
        (end > requests.intended(i)? && start <= sent).then_some(start)
    };
    let first_token = requests.first_token(i);
    Some(Phases {
        connect: (requests.connection_reused(i) == Some(false)).then(own).flatten(),
        sent,
        accepted: requests.sent_end(i).unwrap_or(sent).max(sent),
        first_token,
        last_token: requests.last_token(i).max(first_token),
        end: requests.done(i).map(|done| done.max(sent)),
    })
}
