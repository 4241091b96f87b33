//! Tells the host's jitter from ours: jumps of a core's own clock while it polls.
//!
//! A pacing core looks at the clock every fraction of a microsecond. If it jumps by more than the
//! threshold between two looks, and the core had nothing to do in between, the host took the core
//! away (hypervisor steal, preemption, an interrupt). If the core did work in between, only the
//! part of the gap in which the thread was not running counts. Where the two cannot be told apart
//! the core takes the blame: lateness of our own making must not pass for the host's. Pure: times
//! arrive as arguments.

/// A jump of the clock longer than this is a stall.
pub const THRESHOLD_NS: i64 = 50_000;

/// How often the thread's CPU time is sampled while polling: it is a system call.
const BASELINE_NS: i64 = 1_000_000;

/// Watches one core.
#[derive(Debug)]
pub struct StallWatch {
    latest_ns: i64,
    base_ns: i64,
    base_cpu_ns: i64,
}

/// A stretch of time in which the core did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// When the core last looked before it.
    pub start_ns: i64,
    /// How long it was away.
    pub length_ns: i64,
}

impl StallWatch {
    /// Starts watching at `now_ns`, when the thread had used `cpu_ns` of CPU time.
    #[must_use]
    pub const fn new(now_ns: i64, cpu_ns: i64) -> Self {
        Self { latest_ns: now_ns, base_ns: now_ns, base_cpu_ns: cpu_ns }
    }

    /// The core looks at the clock. `worked`: it did something since it last looked.
    pub fn look(
        &mut self,
        now_ns: i64,
        worked: bool,
        cpu_ns: impl FnOnce() -> i64,
    ) -> Option<Span> {
        let start_ns = self.latest_ns;
        let gap_ns = now_ns - start_ns;
        self.latest_ns = now_ns;
        if gap_ns <= THRESHOLD_NS {
            if now_ns - self.base_ns >= BASELINE_NS {
                (self.base_ns, self.base_cpu_ns) = (now_ns, cpu_ns());
            }
            return None;
        }
        let cpu_ns = cpu_ns();
        let away_ns = (now_ns - self.base_ns) - (cpu_ns - self.base_cpu_ns);
        (self.base_ns, self.base_cpu_ns) = (now_ns, cpu_ns);
        let length_ns = if worked { away_ns.min(gap_ns) } else { gap_ns };
        (length_ns > THRESHOLD_NS).then_some(Span { start_ns, length_ns })
    }

    /// The core goes to sleep.
    pub const fn sleeps(&mut self, now_ns: i64, cpu_ns: i64) {
        (self.latest_ns, self.base_ns, self.base_cpu_ns) = (now_ns, now_ns, cpu_ns);
    }

    /// The core slept and wanted to wake at `wanted_ns`. Waking later than the margin that was kept
    /// for it is the host's doing, but for the time in which answers were read meanwhile: it is not
    /// known how much of that was after `wanted_ns`, so all of it is taken for ours.
    pub fn woke(
        &mut self,
        now_ns: i64,
        wanted_ns: i64,
        margin_ns: i64,
        cpu_ns: i64,
    ) -> Option<Span> {
        let own_ns = cpu_ns - self.base_cpu_ns;
        self.sleeps(now_ns, cpu_ns);
        let length_ns = now_ns - wanted_ns - margin_ns - own_ns;
        let start_ns = wanted_ns + margin_ns;
        (margin_ns > 0 && length_ns > THRESHOLD_NS).then_some(Span { start_ns, length_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_jump_is_a_stall_and_a_busy_one_only_as_far_as_the_thread_was_away() {
        let mut watch = StallWatch::new(0, 0);
        assert_eq!(watch.look(40_000, false, || 40_000), None);
        let span = watch.look(240_000, false, || 50_000);
        assert_eq!(span, Some(Span { start_ns: 40_000, length_ns: 200_000 }));
        // 300 µs of work, all of it on the CPU.
        assert_eq!(watch.look(540_000, true, || 350_000), None);
        // 300 µs, 100 of them away.
        let span = watch.look(840_000, true, || 550_000);
        assert_eq!(span, Some(Span { start_ns: 540_000, length_ns: 100_000 }));
    }

    #[test]
    fn waking_within_the_margin_is_no_stall() {
        let mut watch = StallWatch::new(0, 0);
        assert_eq!(watch.woke(1_150_000, 1_000_000, 200_000, 0), None);
        let span = watch.woke(2_900_000, 2_000_000, 200_000, 0);
        assert_eq!(span, Some(Span { start_ns: 2_200_000, length_ns: 700_000 }));
        assert_eq!(watch.woke(9_000_000, 8_000_000, 0, 0), None, "sleep mode keeps no margin");
    }

    #[test]
    fn a_late_wake_up_is_no_stall_as_far_as_answers_were_read_meanwhile() {
        let mut watch = StallWatch::new(0, 0);
        watch.sleeps(0, 5_000);
        assert_eq!(watch.woke(1_900_000, 1_000_000, 200_000, 700_000), None);
        watch.sleeps(1_900_000, 700_000);
        let span = watch.woke(3_900_000, 3_000_000, 200_000, 1_000_000);
        assert_eq!(span, Some(Span { start_ns: 3_200_000, length_ns: 400_000 }));
    }
}
