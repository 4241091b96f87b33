//! What is made of connections that could not be opened before zero: some may be lacking, all may
//! not, and who is to blame is said.

use onbeat_shared::counted::counted;

use super::Watch;
use crate::error::EngineError;
use crate::net::shortage::{Shortage, told};
use crate::replayer::CoreReady;

/// Some connections may fail; all of them may not.
pub(super) fn judge(ready: &CoreReady, watch: &mut dyn Watch) -> Result<(), EngineError> {
    // What is lacking here is told before what a server did.
    let ours = ready.failures.iter().find_map(|error| Some((Shortage::of(error)?, error)));
    let Some(first) = ours.map(|(_, error)| error).or(ready.failures.first()) else {
        return Ok(());
    };
    if ready.connections == 0 {
        if let Some((shortage, error)) = ours {
            return Err(shortage.error(error));
        }
        return Err(EngineError::Run(format!(
            "no connection could be opened: {first}. Is the server running, and is --url right?"
        )));
    }
    watch.say(&format!(
        "core {}: {} of {} could not be opened before the start ({}), and will be when needed",
        ready.core.0,
        ready.failures.len(),
        counted((ready.failures.len() + ready.connections) as u64, "connection"),
        told(first),
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io;

    use onbeat_shared::units::CoreIndex;
    use rustix::io::Errno;

    use super::CoreReady;
    use crate::cli::progress::Quiet;

    #[test]
    fn connections_that_find_nothing_here_before_zero_do_not_blame_the_server() {
        let judge = |connections: usize, failures: &[Errno]| {
            let failures = failures.iter().map(|&errno| io::Error::from(errno)).collect();
            let ready = CoreReady {
                core: CoreIndex(0),
                wake_error_ns: 0,
                connections,
                secured: 0,
                resumed: 0,
                failures,
                realtime: None,
            };
            let mut watch = Quiet::default();
            let judged = super::judge(&ready, &mut watch).map_err(|error| error.to_string());
            (judged, watch.said.concat())
        };
        let (none, _) = judge(0, &[Errno::CONNREFUSED, Errno::MFILE]);
        let none = none.expect_err("no connection is open");
        assert!(none.contains("sudo prlimit --nofile="), "{none}");
        assert!(!none.contains("Is the server running"), "{none}");
        let (some, said) = judge(3, &[Errno::NOBUFS]);
        assert_eq!(some, Ok(()));
        assert!(said.contains("1 of 4 connections") && said.contains("tcp_mem"), "{said}");
        let (refused, _) = judge(0, &[Errno::CONNREFUSED]);
        assert!(refused.is_err_and(|words| words.contains("Is the server running")));
    }
}
