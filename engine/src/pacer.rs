//! Waiting on a core until an instant: the only code that is allowed to.
//!
//! monoio's own timers tick once a millisecond and round *up*, so they never pace anything here.
//! Two ways to wait remain, and a pacing loop combines them:
//!
//! * [`Alarm`] sleeps in the driver (ring or epoll) on a kernel timer. It costs no CPU and is late
//!   by the host's wake-up error, some 40-100 µs in a virtual machine; [`Alarm::calibrate`]
//!   measures it.
//! * [`Yielder`] gives every other task of the core one turn and comes back, so that a loop of
//!   turns polls the driver without ever parking. It costs the whole core and is late by under a
//!   microsecond when the host leaves the core alone.
//!
//! This module does not know what is waited for, and it never blocks the thread outside the driver.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use monoio::net::TcpStream;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::clock::monotonic_ns;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// A kernel timer that a task sleeps on inside the driver.
///
/// One task waits; any code of the core may move the alarm with [`Alarm::ring_at`].
pub struct Alarm {
    timer: OwnedFd,
    /// The same timer as something the driver can poll. monoio polls descriptors only through its
    /// socket types; a poll does not care that this is no socket, and nothing else is ever done
    /// with it.
    polled: TcpStream,
}

impl Alarm {
    /// A disarmed alarm. Must be called inside a running monoio runtime.
    ///
    /// # Errors
    /// When the system has no descriptor left or refuses the timer.
    pub fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let polled = TcpStream::from_std(std::net::TcpStream::from(timer.try_clone()?))?;
        Ok(Self { timer, polled })
    }

    /// Sleeps until the monotonic clock has reached `deadline_ns`; late by the wake-up error, never
    /// early. Returns at once when the deadline has passed.
    ///
    /// # Errors
    /// When the driver cannot poll the timer.
    pub async fn until(&self, deadline_ns: i64) -> io::Result<()> {
        while monotonic_ns() < deadline_ns {
            self.wait(deadline_ns).await?;
        }
        Ok(())
    }

    /// Arms the alarm for `deadline_ns` and sleeps until it rings, which is earlier when
    /// [`Alarm::ring_at`] moved it.
    ///
    /// # Errors
    /// When the driver cannot poll the timer.
    pub async fn wait(&self, deadline_ns: i64) -> io::Result<()> {
        self.ring_at(deadline_ns)?;
        loop {
            match self.polled.readable(false).await {
                // A signal that somebody handled: the driver looks by polling once.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                ready => ready?,
            }
            let mut expirations = [0; 8];
            match rustix::io::read(&self.timer, &mut expirations) {
                Ok(_) => return Ok(()),
                // The alarm was moved between the ring and this read.
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Moves the alarm. An instant in the past rings at once.
    ///
    /// # Errors
    /// When the system refuses the time.
    pub fn ring_at(&self, deadline_ns: i64) -> io::Result<()> {
        // Zero would disarm the timer.
        let deadline_ns = deadline_ns.max(1);
        let time = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec {
                tv_sec: deadline_ns / NANOS_PER_SECOND,
                tv_nsec: deadline_ns % NANOS_PER_SECOND,
            },
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &time)?;
        Ok(())
    }

    /// Measures how late this host wakes a sleeper: the 90th percentile of `samples` short sleeps.
    ///
    /// # Errors
    /// When the driver cannot poll the timer.
    pub async fn calibrate(&self, samples: usize) -> io::Result<i64> {
        /// Long enough that the core goes idle between two samples.
        const NAP_NS: i64 = 1_000_000;
        assert!(samples > 0, "a calibration needs a sample");
        let mut errors = Vec::with_capacity(samples);
        for _ in 0..samples {
            let deadline = monotonic_ns() + NAP_NS;
            self.until(deadline).await?;
            errors.push(monotonic_ns() - deadline);
        }
        errors.sort_unstable();
        Ok(errors[(samples * 9 / 10).min(samples - 1)])
    }
}

/// Lets a task give way to every other runnable task and be polled again without parking.
///
/// monoio 0.2.4 pushes a task that wakes itself to the *front* of its queue, which starves all
/// others. So the caller wakes a helper task, which goes to the back, and the helper wakes the
/// caller, which goes behind everything that was runnable. One caller per yielder.
pub struct Yielder {
    state: Rc<Bounce>,
}

#[derive(Default)]
struct Bounce {
    caller: RefCell<Option<Waker>>,
    helper: RefCell<Option<Waker>>,
    closed: Cell<bool>,
}

impl Yielder {
    /// A yielder with its helper task. Must be called inside a running monoio runtime.
    #[must_use]
    pub fn new() -> Self {
        let state = Rc::new(Bounce::default());
        let helper = Rc::clone(&state);
        monoio::spawn(poll_fn(move |context| {
            if helper.closed.get() {
                return Poll::Ready(());
            }
            let mut known = helper.helper.borrow_mut();
            if !known.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
                *known = Some(context.waker().clone());
            }
            if let Some(caller) = helper.caller.borrow_mut().take() {
                caller.wake();
            }
            Poll::Pending
        }));
        Self { state }
    }

    /// One turn for everybody else.
    pub fn turn(&self) -> impl Future<Output = ()> + use<'_> {
        Turn { state: &self.state, waiting: false }
    }
}

impl Default for Yielder {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Yielder {
    fn drop(&mut self) {
        self.state.closed.set(true);
        // A runtime that is torn down by a panic wakes nobody any more.
        if std::thread::panicking() {
            return;
        }
        if let Some(helper) = self.state.helper.borrow().as_ref() {
            helper.wake_by_ref();
        }
    }
}

struct Turn<'a> {
    state: &'a Bounce,
    waiting: bool,
}

impl Future for Turn<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.waiting && self.state.caller.borrow().is_none() {
            return Poll::Ready(());
        }
        self.waiting = true;
        *self.state.caller.borrow_mut() = Some(context.waker().clone());
        // Before its first turn the helper is still in the queue and will find the caller there.
        if let Some(helper) = self.state.helper.borrow().as_ref() {
            helper.wake_by_ref();
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_both_drivers(test: impl Fn() -> Pin<Box<dyn Future<Output = ()>>>) {
        monoio::RuntimeBuilder::<monoio::LegacyDriver>::new()
            .build()
            .expect("epoll is everywhere")
            .block_on(test());
        // Where io_uring is forbidden the engine falls back, so the test does as well.
        if let Ok(mut runtime) = monoio::RuntimeBuilder::<monoio::IoUringDriver>::new().build() {
            runtime.block_on(test());
        }
    }

    #[test]
    fn an_alarm_is_never_early() {
        on_both_drivers(|| {
            Box::pin(async {
                let alarm = Alarm::new().expect("a timer");
                for wait_ns in [0, 1, 50_000, 2_500_000] {
                    let deadline = monotonic_ns() + wait_ns;
                    alarm.until(deadline).await.expect("a poll");
                    assert!(monotonic_ns() >= deadline);
                }
            })
        });
    }

    #[test]
    fn an_alarm_can_be_moved_forward_while_a_task_sleeps() {
        on_both_drivers(|| {
            Box::pin(async {
                let alarm = Rc::new(Alarm::new().expect("a timer"));
                let far = monotonic_ns() + 3_600 * NANOS_PER_SECOND;
                let mover = Rc::clone(&alarm);
                monoio::spawn(async move {
                    mover.ring_at(monotonic_ns() + 1).expect("a time");
                });
                alarm.wait(far).await.expect("a poll");
                assert!(monotonic_ns() < far);
            })
        });
    }

    #[test]
    fn a_yielding_task_does_not_starve_the_others() {
        on_both_drivers(|| {
            Box::pin(async {
                let others = Rc::new(Cell::new(0));
                for _ in 0..3 {
                    let count = Rc::clone(&others);
                    monoio::spawn(async move {
                        let alarm = Alarm::new().expect("a timer");
                        alarm.until(monotonic_ns() + 100_000).await.expect("a poll");
                        count.set(count.get() + 1);
                    });
                }
                let seen = Rc::clone(&others);
                monoio::spawn(async move {
                    let yielder = Yielder::new();
                    while seen.get() < 3 {
                        yielder.turn().await;
                    }
                })
                .await;
                assert_eq!(others.get(), 3);
            })
        });
    }
}
