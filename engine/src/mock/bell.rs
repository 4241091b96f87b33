//! A task waits until another task of the same thread rings.
//!
//! A ring is remembered until it is heard, and several rings before that are heard as one.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// Something to wait for; for one waiter at a time.
#[derive(Debug, Default)]
pub(super) struct Bell {
    rung: Cell<bool>,
    waiter: RefCell<Option<Waker>>,
}

impl Bell {
    /// Wakes the waiter, now or when it comes.
    pub(super) fn ring(&self) {
        self.rung.set(true);
        if let Some(waker) = self.waiter.borrow_mut().take() {
            waker.wake();
        }
    }

    /// Waits for a ring.
    pub(super) async fn heard(&self) {
        poll_fn(|context| {
            if self.rung.replace(false) {
                return Poll::Ready(());
            }
            *self.waiter.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}
