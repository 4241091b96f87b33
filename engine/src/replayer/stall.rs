//! Tells the host's jitter from ours: jumps of a core's own clock while it polls.
//!
//! A pacing core looks at the clock every fraction of a microsecond. If it jumps by more than the
//! threshold between two looks, and the core had nothing to do in between, the host took the core
//! away (hypervisor steal, preemption, an interrupt). If the core did work in between, only the
//! part of the gap in which the thread was not running counts. While the pacer sleeps a gap means
//! nothing until its alarm is overdue. Where the host's part cannot be told from ours the core
//! takes the blame: lateness of our own making must not pass for the host's. Everybody looks who
//! reads the clock anyway, so that a stall is known to within one task's work. Pure: times arrive
//! as arguments.

/// A jump of the clock longer than this is a stall.
pub const THRESHOLD_NS: i64 = 50_000;

/// How often the thread's CPU time is sampled while polling: it is a system call.
const BASELINE_NS: i64 = 1_000_000;

/// Watches one core.
#[derive(Debug)]
pub struct StallWatch {
    latest_ns: i64,
    /// The pacer sleeps, and from this instant on it should not.
    asleep_until_ns: Option<i64>,
    /// When the thread's CPU time was sampled last, and what it was.
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
        Self { latest_ns: now_ns, asleep_until_ns: None, base_ns: now_ns, base_cpu_ns: cpu_ns }
    }

    /// The core looks at the clock. `worked`: it did something since it last looked.
    pub fn look(
        &mut self,
        now_ns: i64,
        worked: bool,
        cpu_ns: impl FnOnce() -> i64,
    ) -> Option<Span> {
        let (start_ns, gap_ns) = match self.asleep_until_ns {
            // Whoever looks first after the alarm judges the waking, answers or pacer.
            Some(until_ns) if now_ns > until_ns => (until_ns, now_ns - until_ns),
            Some(_) => (now_ns, 0),
            None => (self.latest_ns, now_ns - self.latest_ns),
        };
        self.latest_ns = now_ns;
        if gap_ns <= THRESHOLD_NS {
            if now_ns - self.base_ns >= BASELINE_NS {
                self.sample(now_ns, cpu_ns());
            }
            return None;
        }
        let cpu_ns = cpu_ns();
        let own_ns = cpu_ns - self.base_cpu_ns;
        let length_ns = match self.asleep_until_ns.take() {
            // It is not known how much of our own time was after the alarm: it is all taken off.
            Some(_) => gap_ns - own_ns,
            None if worked => gap_ns.min(now_ns - self.base_ns - own_ns),
            None => gap_ns,
        };
        self.sample(now_ns, cpu_ns);
        (length_ns > THRESHOLD_NS).then_some(Span { start_ns, length_ns })
    }

    /// The pacer goes to sleep; from `until_ns` on it should be awake again.
    pub const fn sleeps(&mut self, now_ns: i64, until_ns: i64, cpu_ns: i64) {
        self.latest_ns = now_ns;
        self.asleep_until_ns = Some(until_ns);
        self.sample(now_ns, cpu_ns);
    }

    /// The pacer, if it is still asleep, should be awake from `until_ns` on already.
    pub fn hurries(&mut self, until_ns: i64) {
        if let Some(until) = &mut self.asleep_until_ns {
            *until = until_ns.min(*until);
        }
    }

    /// The pacer is awake, and the core has looked. Time it slept is not to be taken for time it
    /// was away.
    pub const fn wakes(&mut self, now_ns: i64, cpu_ns: i64) {
        self.latest_ns = now_ns;
        self.asleep_until_ns = None;
        self.sample(now_ns, cpu_ns);
    }

    const fn sample(&mut self, now_ns: i64, cpu_ns: i64) {
        (self.base_ns, self.base_cpu_ns) = (now_ns, cpu_ns);
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
    fn waking_late_is_a_stall_and_sleeping_is_none() {
        let mut watch = StallWatch::new(0, 0);
        watch.sleeps(0, 1_200_000, 0);
        assert_eq!(watch.look(1_150_000, false, || 0), None);
        watch.wakes(1_150_000, 0);
        watch.sleeps(1_150_000, 2_200_000, 0);
        let span = watch.look(2_900_000, false, || 0);
        assert_eq!(span, Some(Span { start_ns: 2_200_000, length_ns: 700_000 }));
        // Half a millisecond asleep before the alarm, and then some work.
        watch.sleeps(2_900_000, i64::MAX, 0);
        assert_eq!(watch.look(3_400_000, false, || 0), None);
        watch.wakes(3_400_000, 0);
        assert_eq!(watch.look(3_460_000, true, || 58_000), None);
    }

    #[test]
    fn a_late_wake_up_is_no_stall_as_far_as_answers_were_read_meanwhile() {
        let mut watch = StallWatch::new(0, 0);
        watch.sleeps(0, 1_200_000, 5_000);
        assert_eq!(watch.look(1_900_000, true, || 700_000), None);
        watch.sleeps(1_900_000, 3_200_000, 700_000);
        let span = watch.look(3_900_000, true, || 1_000_000);
        assert_eq!(span, Some(Span { start_ns: 3_200_000, length_ns: 400_000 }));
    }

    #[test]
    fn readers_that_look_keep_a_stall_in_its_place() {
        // The pacer sleeps until 10 ms and answers come in; the core is away from 12 to 15.
        let mut watch = StallWatch::new(0, 0);
        watch.sleeps(0, 10_000_000, 0);
        let mut cpu_ns = 0;
        let mut spans = Vec::new();
        let mut now_ns = 8_000_000;
        while now_ns < 17_000_000 {
            spans.extend(watch.look(now_ns, true, || cpu_ns));
            cpu_ns += 10_000;
            now_ns += if now_ns == 12_000_000 { 3_010_000 } else { 10_000 };
        }
        assert_eq!(spans, [Span { start_ns: 12_000_000, length_ns: 3_000_000 }]);
    }

    #[test]
    fn an_alarm_that_is_moved_is_judged_by_its_new_time() {
        let mut watch = StallWatch::new(0, 0);
        watch.hurries(5);
        watch.sleeps(0, 9_000_000, 0);
        watch.hurries(1_000_000);
        watch.hurries(2_000_000);
        let span = watch.look(1_600_000, false, || 0);
        assert_eq!(span, Some(Span { start_ns: 1_000_000, length_ns: 600_000 }));
    }
}
