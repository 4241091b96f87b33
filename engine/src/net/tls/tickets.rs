//! The server's tickets: what lets a later session resume an earlier one.
//!
//! A ticket of TLS 1.3 is used once, so every session needs one of its own: the first session
//! brings some, and each that resumes brings more. A session of TLS 1.2 may be resumed any number
//! of times. All cores share one store; who finds it in use goes without, so nobody ever waits.

use std::collections::VecDeque;
use std::sync::{Mutex, TryLockError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

/// Most tickets kept; the oldest go first. More connections are never opened at once.
const TICKETS_MAX: usize = 4_096;

/// The tickets of one server, the only one a run talks to.
#[derive(Debug, Default)]
pub(super) struct Tickets {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    tickets: VecDeque<Tls13ClientSessionValue>,
    session: Option<Tls12ClientSessionValue>,
    group: Option<NamedGroup>,
    seen: u64,
}

impl Tickets {
    /// Whether there is one.
    pub(super) fn any(&self) -> bool {
        self.with(|kept| kept.session.is_some() || !kept.tickets.is_empty()).unwrap_or(false)
    }

    /// How many have come so far; 0 while another core is at the store.
    pub(super) fn seen(&self) -> u64 {
        self.with(|kept| kept.seen).unwrap_or(0)
    }

    /// Does something with the store, unless another core is at it.
    fn with<T>(&self, action: impl FnOnce(&mut Kept) -> T) -> Option<T> {
        match self.kept.try_lock() {
            Ok(mut kept) => Some(action(&mut kept)),
            // Whoever panicked with it left a list that is whole.
            Err(TryLockError::Poisoned(kept)) => Some(action(&mut kept.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl ClientSessionStore for Tickets {
    fn set_kx_hint(&self, _server_name: ServerName<'static>, group: NamedGroup) {
        self.with(|kept| kept.group = Some(group));
    }

    fn kx_hint(&self, _server_name: &ServerName<'_>) -> Option<NamedGroup> {
        self.with(|kept| kept.group).flatten()
    }

    fn set_tls12_session(&self, _server_name: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.with(|kept| kept.session = Some(value));
    }

    fn tls12_session(&self, _server_name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.with(|kept| kept.session.clone()).flatten()
    }

    fn remove_tls12_session(&self, _server_name: &ServerName<'static>) {
        self.with(|kept| kept.session = None);
    }

    fn insert_tls13_ticket(
        &self,
        _server_name: ServerName<'static>,
        value: Tls13ClientSessionValue,
    ) {
        self.with(|kept| {
            if kept.tickets.len() == TICKETS_MAX {
                kept.tickets.pop_front();
            }
            kept.tickets.push_back(value);
            kept.seen += 1;
        });
    }

    fn take_tls13_ticket(
        &self,
        _server_name: &ServerName<'static>,
    ) -> Option<Tls13ClientSessionValue> {
        self.with(|kept| kept.tickets.pop_back()).flatten()
    }
}
