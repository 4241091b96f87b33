//! How wrong the wall clock may be, as the kernel knows it from whoever steers it.
//!
//! Machines that start at one instant agree on it as far as their clocks do; nothing else in a run
//! depends on the wall clock. `adjtimex` is asked without changing anything: whether the clock is
//! synchronised, and the largest error that its steerer (chrony, ntpd, timesyncd, PTP) admits. This
//! is one of the engine's named `unsafe` modules: nothing safe asks for it. It judges no clock that
//! the kernel does not keep.

use std::io;

use onbeat_shared::log::start::ClockState;

use crate::error::EngineError;

/// The error beyond which a start at an instant is refused unless the user says otherwise: 1 ms.
pub const MAX_ERROR_NS: u64 = 1_000_000;

/// How far the wall clock is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// If it is synchronised and wrong by at most so many nanoseconds.
    Within(u64),
    /// Whatever it says.
    Any,
}

/// What the kernel says now.
///
/// # Errors
/// When it does not let this process ask.
#[expect(unsafe_code, reason = "nothing safe asks for the clock's state")]
pub fn read() -> io::Result<ClockState> {
    // SAFETY: all fields are integers, for which zero is a value, and `modes` 0 changes nothing.
    let mut found: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one struct of the type's size, during the call.
    let state = unsafe { libc::adjtimex(&raw mut found) };
    if state < 0 {
        return Err(io::Error::last_os_error());
    }
    let synchronised = state != libc::TIME_ERROR && found.status & libc::STA_UNSYNC == 0;
    let ns = |us: libc::c_long| u64::try_from(us).unwrap_or(0).saturating_mul(1_000);
    Ok(ClockState {
        synchronised,
        max_error_ns: ns(found.maxerror),
        estimated_error_ns: ns(found.esterror),
    })
}

/// Refuses a clock that is not trusted that far.
///
/// # Errors
/// What is wrong with it, and what would help.
pub fn check(state: io::Result<ClockState>, trust: Trust) -> Result<(), EngineError> {
    let Trust::Within(limit_ns) = trust else { return Ok(()) };
    const HELP: &str = "run chronyd (or another client of NTP or PTP) until `chronyc waitsync` \
                        returns; --max-clock-error says how much error will do, and any starts \
                        all the same, where one machine sends all";
    let ms = |ns: u64| ns as f64 / 1e6;
    let words = match state {
        Err(error) => format!("whether this machine's clock is right is not known ({error})"),
        Ok(state) if !state.synchronised => {
            "this machine's clock is not synchronised (adjtimex)".to_owned()
        }
        Ok(state) if state.max_error_ns > limit_ns => format!(
            "this machine's clock may be wrong by {:.3} ms (adjtimex), and {:.3} ms is allowed",
            ms(state.max_error_ns),
            ms(limit_ns)
        ),
        Ok(_) => return Ok(()),
    };
    Err(EngineError::Usage(format!("--start-at: {words}: {HELP}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_how_wrong_the_clock_may_be() {
        // Some sandboxes do not let a process ask; what is said then is tested below.
        if let Ok(state) = read() {
            assert!(state.max_error_ns > 0 || state.synchronised, "{state:?}");
        }
    }

    #[test]
    fn a_clock_that_is_not_trusted_is_refused() {
        let state = |synchronised, max_error_ns| {
            Ok(ClockState { synchronised, max_error_ns, estimated_error_ns: 0 })
        };
        let within = Trust::Within(MAX_ERROR_NS);
        assert!(check(state(true, MAX_ERROR_NS), within).is_ok());
        let words = |state, trust| check(state, trust).expect_err("refused").to_string();
        let off = words(state(true, 2_500_000), within);
        assert!(off.contains("wrong by 2.500 ms") && off.contains("1.000 ms is allowed"), "{off}");
        assert!(words(state(false, 0), within).contains("is not synchronised"));
        let unknown = || Err(io::Error::from(io::ErrorKind::PermissionDenied));
        assert!(words(unknown(), within).contains("is not known"));
        for any in [state(false, u64::MAX), unknown()] {
            assert!(check(any, Trust::Any).is_ok());
        }
    }
}
