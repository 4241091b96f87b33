//! What a simulated core is to send: a plan's rows, or what users ask for.

use onbeat::policy::players::Entrance;
use onbeat_shared::log::outcome::Class;
use onbeat_shared::units::{RequestIndex, RunNanos, SessionIndex};

use super::outside::Outside;

/// A request that leaves now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub(super) request: RequestIndex,
    pub(super) session: SessionIndex,
    pub(super) target: u16,
    /// When it could leave.
    pub(super) ready: RunNanos,
    /// When it was due, if the schedule says.
    pub(super) due: Option<RunNanos>,
    pub(super) streaming: bool,
    /// How long after its last byte it is cancelled.
    pub(super) cancel_after: Option<i64>,
}

/// Where a core's requests come from, and who hears of their ends.
pub(super) trait Work {
    /// How many requests are to be cancelled.
    fn cancelled(&self) -> usize;

    /// When the next request may leave, if that is known.
    fn next_at(&self) -> Option<RunNanos>;

    /// Server and session of the request that may leave at `now`.
    fn next_place(&self, now: RunNanos) -> Option<(u16, SessionIndex)>;

    /// Takes that request, unless something holds it back.
    fn take(&mut self, core: usize, out: &mut Outside) -> Option<Ask>;

    /// Its first byte has left.
    fn left(&mut self, ask: &Ask, now: RunNanos);

    /// Content events of its answer came.
    fn tokens(&mut self, request: RequestIndex, now: RunNanos, more: usize);

    /// It has ended.
    fn ended(&mut self, core: usize, request: RequestIndex, class: Class, out: &mut Outside);

    /// The run was stopped and nothing is in flight: what never left gets its end.
    fn give_up(&mut self, core: usize, in_flight_at_stop: &[RequestIndex], out: &mut Outside);

    /// Whether nothing is left to be sent.
    fn is_over(&self) -> bool;

    /// A user comes.
    fn enter(&mut self, _core: usize, _entrance: Entrance, _out: &mut Outside) {
        unreachable!("a plan has no users")
    }
}
