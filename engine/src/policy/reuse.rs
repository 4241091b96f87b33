//! Which connection is used again, and for whom: `--connection-reuse-strategy`.
//!
//! Pooled: whoever is next. Never: nobody, each request has a connection of its own. Sticky: the
//! next turn of the same session, until its last turn, an error or a cancellation ends it. In the
//! latter two requests want connections that nobody used, and those are opened ahead of them, so
//! that a request leaves when it is due and not a handshake later. Nothing here allocates after
//! [`Reuse::new`].

use onbeat_shared::log::plan_row::PlanRow;
use onbeat_shared::units::{CoreIndex, SessionIndex};

/// The rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// Every connection serves whoever is next.
    #[default]
    Pooled,
    /// A connection serves one request.
    Never,
    /// A connection serves one session.
    StickyUserSessions,
}

/// What becomes of a connection whose exchange has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It waits for whoever is next.
    ForAll,
    /// It waits for its session.
    ForSession,
    /// It is closed.
    Closed,
}

/// One core's view of who uses which connection again.
#[derive(Debug)]
pub struct Reuse {
    strategy: Strategy,
    /// For each session of the plan, what it has; empty unless sessions stick.
    sessions: Vec<Session>,
    /// How many requests to come want a connection that nobody used.
    to_come: usize,
}

/// What a session that sticks has.
#[derive(Clone, Copy, Debug, Default)]
struct Session {
    /// Requests that have not left.
    unsent: u32,
    begun: bool,
    /// The connection that waits for it.
    held: Option<u32>,
}

impl Reuse {
    /// For the requests of `core`.
    #[must_use]
    pub fn new(strategy: Strategy, rows: &[PlanRow], core: CoreIndex) -> Self {
        let own = || rows.iter().filter(|row| row.core == core);
        let mut sessions = Vec::new();
        if strategy == Strategy::StickyUserSessions {
            let last = rows.iter().map(|row| row.session.as_usize()).max();
            sessions.resize(last.map_or(0, |last| last + 1), Session::default());
            own().for_each(|row| sessions[row.session.as_usize()].unsent += 1);
        }
        let to_come = match strategy {
            Strategy::Pooled => 0,
            Strategy::Never => own().count(),
            Strategy::StickyUserSessions => sessions.iter().filter(|it| it.unsent > 0).count(),
        };
        Self { strategy, sessions, to_come }
    }

    /// Whether every connection serves whoever is next.
    #[must_use]
    pub fn is_pooled(&self) -> bool {
        self.strategy == Strategy::Pooled
    }

    /// Whether connections stay with their sessions.
    #[must_use]
    pub fn is_sticky(&self) -> bool {
        self.strategy == Strategy::StickyUserSessions
    }

    /// How many requests to come will want a connection that nobody used.
    #[must_use]
    pub const fn to_come(&self) -> usize {
        self.to_come
    }

    /// Whether a connection waits for `session`.
    #[must_use]
    pub fn holds(&self, session: SessionIndex) -> bool {
        self.sessions.get(session.as_usize()).is_some_and(|it| it.held.is_some())
    }

    /// A request of `session` leaves: the connection that waits for it, if one does.
    pub fn take(&mut self, session: SessionIndex) -> Option<u32> {
        match self.strategy {
            Strategy::Pooled => None,
            Strategy::Never => {
                self.to_come = self.to_come.saturating_sub(1);
                None
            }
            Strategy::StickyUserSessions => {
                let session = &mut self.sessions[session.as_usize()];
                session.unsent = session.unsent.saturating_sub(1);
                if !std::mem::replace(&mut session.begun, true) {
                    self.to_come = self.to_come.saturating_sub(1);
                }
                session.held.take()
            }
        }
    }

    /// What becomes of `connection`, which could serve again, after a request of `session`;
    /// `clean`: it ended without an error and was not cancelled.
    pub fn fate(&mut self, session: SessionIndex, connection: u32, clean: bool) -> Fate {
        match self.strategy {
            Strategy::Pooled => Fate::ForAll,
            Strategy::Never => Fate::Closed,
            Strategy::StickyUserSessions => {
                let session = &mut self.sessions[session.as_usize()];
                // Turns that did not wait for each other may each have one.
                if !clean || session.unsent == 0 || session.held.is_some() {
                    return Fate::Closed;
                }
                session.held = Some(connection);
                Fate::ForSession
            }
        }
    }

    /// The connection that waited for `session` is gone.
    pub fn lost(&mut self, session: SessionIndex) {
        if let Some(session) = self.sessions.get_mut(session.as_usize()) {
            session.held = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::session::tests::row;
    use super::*;

    /// Two sessions: three turns of the first, one of the second, and one of another core.
    fn rows() -> Vec<PlanRow> {
        let mut rows: Vec<PlanRow> = (0..5).map(|at| row(at, Some(0), None, 0)).collect();
        for (row, session) in rows.iter_mut().zip([0, 1, 0, 0, 2]) {
            row.session = SessionIndex(session);
        }
        rows[4].core = CoreIndex(1);
        rows
    }

    const FIRST: SessionIndex = SessionIndex(0);
    const SECOND: SessionIndex = SessionIndex(1);

    #[test]
    fn a_pool_serves_whoever_is_next() {
        let mut reuse = Reuse::new(Strategy::Pooled, &rows(), CoreIndex(0));
        assert_eq!((reuse.take(FIRST), reuse.to_come()), (None, 0));
        assert_eq!(reuse.fate(FIRST, 7, false), Fate::ForAll);
        assert!(reuse.is_pooled() && !reuse.holds(FIRST));
    }

    #[test]
    fn a_connection_that_is_never_used_again_is_closed() {
        let mut reuse = Reuse::new(Strategy::Never, &rows(), CoreIndex(0));
        assert_eq!(reuse.to_come(), 4);
        assert_eq!(reuse.take(FIRST), None);
        assert_eq!(reuse.fate(FIRST, 7, true), Fate::Closed);
        assert_eq!(reuse.to_come(), 3);
    }

    #[test]
    fn a_session_keeps_its_connection_until_its_last_turn() {
        let mut reuse = Reuse::new(Strategy::StickyUserSessions, &rows(), CoreIndex(0));
        assert_eq!(reuse.to_come(), 2, "the third session is another core's");
        assert_eq!(reuse.take(FIRST), None);
        assert_eq!((reuse.fate(FIRST, 7, true), reuse.to_come()), (Fate::ForSession, 1));
        assert!(reuse.holds(FIRST) && !reuse.holds(SECOND));
        assert_eq!(reuse.take(SECOND), None);
        assert_eq!(reuse.fate(SECOND, 8, true), Fate::Closed, "its only turn");
        assert_eq!(reuse.take(FIRST), Some(7));
        assert_eq!(reuse.fate(FIRST, 7, false), Fate::Closed, "an error");
        assert_eq!((reuse.take(FIRST), reuse.to_come()), (None, 0));
        assert_eq!(reuse.fate(FIRST, 9, true), Fate::Closed, "its last turn");
    }

    #[test]
    fn a_connection_that_is_gone_waits_for_nobody() {
        let mut reuse = Reuse::new(Strategy::StickyUserSessions, &rows(), CoreIndex(0));
        reuse.take(FIRST);
        reuse.take(FIRST);
        assert_eq!(reuse.fate(FIRST, 7, true), Fate::ForSession);
        assert_eq!(reuse.fate(FIRST, 8, true), Fate::Closed, "one is enough");
        reuse.lost(FIRST);
        assert_eq!(reuse.take(FIRST), None);
    }
}
