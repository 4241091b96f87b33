//! How long a request waits for the one before it: the page's formulas, in whole nanoseconds.
//!
//! Think-only: the recorded think time after the end. Original: the recorded gap after the start.
//! Api-scaled: a multiple of the server's recorded time and the think time after the start, so that
//! a multiple of 1 is the recorded pace. The last two never leave before the end. What lacks the
//! times its strategy needs is original. Then the longest delay counts, then the time scale.

use crate::plan::script::{From, ScriptOptions, Strategy, Wait};

/// What is recorded of a request and of the one before it in its part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recorded {
    /// From the start of the one before to its own, 0 or more.
    pub(super) gap_ns: i64,
    /// From the end of the answer before to its start.
    pub(super) think_ns: Option<i64>,
    /// What the server took for the one before.
    pub(super) api_ns: Option<i64>,
}

/// The wait, and whether a think time was cut for it.
pub(super) fn wait(recorded: Recorded, options: &ScriptOptions) -> (Wait, bool) {
    let Recorded { gap_ns, think_ns, api_ns } = recorded;
    let think_ns = think_ns.map(|think_ns| think_ns.max(0));
    let is_cut = options.clamp_think && think_ns.is_some_and(|think_ns| think_ns > gap_ns);
    let think_ns = if is_cut { Some(gap_ns) } else { think_ns };
    let original = (From::Start, gap_ns, false);
    let (from, ns, is_cut) = match (options.strategy, think_ns, api_ns) {
        (Strategy::ThinkOnly, Some(think_ns), _) => (From::End, think_ns, is_cut),
        (Strategy::ApiScaled, Some(think_ns), Some(api_ns)) => {
            let api_ns = options.api_time_scale.multiply(api_ns.max(0).into());
            (From::Start, api_ns.unwrap_or(i64::MAX).saturating_add(think_ns), is_cut)
        }
        _ => original,
    };
    let ns = ns.min(options.max_delay_ns);
    let ns = options.time_scale.multiply(ns.into()).unwrap_or(i64::MAX);
    (Wait { from, ns }, is_cut)
}

#[cfg(test)]
mod tests {
    use onbeat_shared::trace::decimal::Ratio;
    use onbeat_shared::units::NANOS_PER_SECOND as S;

    use super::*;

    const HALF: Ratio = Ratio { numerator: 1, denominator: 2 };
    const FIFTH: Ratio = Ratio { numerator: 1, denominator: 5 };
    const NEVER: Ratio = Ratio { numerator: 0, denominator: 1 };

    fn recorded(gap_s: i64, think_s: Option<i64>, api_s: Option<i64>) -> Recorded {
        let seconds = |s: Option<i64>| s.map(|s| s * S);
        Recorded { gap_ns: gap_s * S, think_ns: seconds(think_s), api_ns: seconds(api_s) }
    }

    /// What counts, from where and how many seconds, and whether it was cut.
    fn waits(strategy: Strategy, recorded: Recorded) -> (From, i64, bool) {
        let options = ScriptOptions { strategy, api_time_scale: FIFTH, ..ScriptOptions::default() };
        let (wait, is_cut) = wait(recorded, &options);
        (wait.from, wait.ns / S, is_cut)
    }

    #[test]
    fn each_strategy_is_the_formula_of_the_page() {
        let whole = recorded(30, Some(20), Some(10));
        assert_eq!(waits(Strategy::ThinkOnly, whole), (From::End, 20, false));
        assert_eq!(waits(Strategy::Original, whole), (From::Start, 30, false));
        assert_eq!(waits(Strategy::ApiScaled, whole), (From::Start, 22, false));
    }

    #[test]
    fn what_is_not_recorded_is_original() {
        let no_think = recorded(30, None, Some(10));
        let no_api = recorded(30, Some(20), None);
        for strategy in [Strategy::ThinkOnly, Strategy::Original, Strategy::ApiScaled] {
            assert_eq!(waits(strategy, no_think), (From::Start, 30, false), "{strategy:?}");
        }
        assert_eq!(waits(Strategy::ThinkOnly, no_api), (From::End, 20, false));
        assert_eq!(waits(Strategy::ApiScaled, no_api), (From::Start, 30, false));
    }

    #[test]
    fn a_think_time_longer_than_its_gap_is_cut_and_counted_where_it_counts() {
        let long = recorded(8, Some(41), Some(5));
        assert_eq!(waits(Strategy::ThinkOnly, long), (From::End, 8, true));
        assert_eq!(waits(Strategy::Original, long), (From::Start, 8, false));
        assert_eq!(waits(Strategy::ApiScaled, long), (From::Start, 9, true));
        let options = ScriptOptions { clamp_think: false, ..ScriptOptions::default() };
        let kept = (Wait { from: From::End, ns: 41 * S }, false);
        assert_eq!(wait(long, &options), kept);
    }

    #[test]
    fn the_longest_delay_comes_before_the_scale() {
        let long = recorded(200, Some(100), Some(0));
        let ns = |time_scale: Ratio| {
            wait(long, &ScriptOptions { time_scale, ..ScriptOptions::default() }).0.ns
        };
        assert_eq!(ns(HALF), 30 * S);
        assert_eq!(ns(Ratio { numerator: 3, denominator: 1 }), 180 * S);
        assert_eq!(ns(NEVER), 0);
        let odd = ScriptOptions { time_scale: HALF, ..ScriptOptions::default() };
        let nanos = Recorded { gap_ns: 9, think_ns: Some(5), api_ns: None };
        assert_eq!(wait(nanos, &odd).0.ns, 2, "half to even");
    }
}
