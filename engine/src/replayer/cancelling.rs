//! Requests that the plan cancels: their time runs from their last byte on, and then their
//! connection is closed under them, plain or TLS alike.
//!
//! What had arrived is in the log; what arrives later is not looked at.

use onbeat_shared::log::outcome::Class;
use onbeat_shared::units::RunNanos;

use super::core::Core;
use super::slot::State;

impl Core {
    /// The request on slot `index` has left whole at `now`: if the plan cancels it, its time runs.
    pub(super) fn time_cancellation(&mut self, index: u32, now: RunNanos) {
        if self.plan.cancel_after.is_empty() {
            return;
        }
        let Some(exchange) = &self.slots[index as usize].exchange else { return };
        let request = exchange.request;
        if let Some(after_ns) = self.plan.cancel_after(request) {
            let at = self.cancellations.start(request, index, now, after_ns);
            self.wake_by(at.0.saturating_add(self.zero_ns));
        }
    }

    /// When the next request is to be cancelled.
    pub(super) fn next_cancellation(&self) -> Option<RunNanos> {
        self.cancellations.next()
    }

    /// Hangs up on the requests whose time is up.
    pub(super) fn cancel_due(&mut self, now: RunNanos) {
        while let Some((request, index)) = self.cancellations.pop(now) {
            let slot = &self.slots[index as usize];
            let carries = slot.exchange.as_ref().is_some_and(|it| it.request == request);
            // It may have been answered, or be on its way a second time.
            if carries && slot.state == State::Open {
                self.worked = true;
                self.doom(index, Class::CancelledByPlan);
            }
        }
    }
}
