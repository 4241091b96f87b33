//! How long a process has computed outside the kernel.
//!
//! The kernel counts it in ticks, so it is for what takes seconds. Unknown is `None`. This measures
//! nothing else of a process.

use rustix::param::clock_ticks_per_second;

/// Fields of a process's line between its name and its time outside the kernel.
const FIELDS_BETWEEN: usize = 11;

/// CPU time that this process's threads, also those that have ended, spent outside the kernel, in
/// nanoseconds.
#[must_use]
pub fn outside_kernel_ns() -> Option<i64> {
    outside_kernel_in(&std::fs::read_to_string("/proc/self/stat").ok()?, clock_ticks_per_second())
}

/// The same, from the words of the kernel.
fn outside_kernel_in(stat: &str, ticks_per_second: u64) -> Option<i64> {
    // A program's name may have blanks and brackets in it.
    let (_name, rest) = stat.rsplit_once(')')?;
    let ticks: u64 = rest.split_whitespace().nth(FIELDS_BETWEEN)?.parse().ok()?;
    let tick_ns = 1_000_000_000_u64.checked_div(ticks_per_second)?;
    i64::try_from(ticks.checked_mul(tick_ns)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_found_behind_any_name() {
        let stat = "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 361 52 0 0 20 0 1 0 9";
        assert_eq!(outside_kernel_in(stat, 100), Some(3_610_000_000));
        assert_eq!(outside_kernel_in("7 (a) S 1", 100), None);
        assert_eq!(outside_kernel_in(stat, 0), None);
    }

    #[test]
    fn the_own_process_has_some_and_it_grows() {
        let before = outside_kernel_ns().expect("this system has it");
        let mut word = 1_u64;
        while outside_kernel_ns() == Some(before) {
            word = std::hint::black_box(word.wrapping_mul(3));
        }
        assert!(outside_kernel_ns() > Some(before));
    }
}
