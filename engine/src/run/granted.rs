//! What a run asks of the system before zero, and what it is granted: a driver, memory that stays.
//!
//! Each wish is granted as far as the system allows; what is not is said, and the run goes on.

use super::Wishes;
use crate::conductor::{Watch, host, memory_node};
use crate::error::EngineError;
use crate::replayer::driver::DriverKind;

/// How the sockets of so many cores are driven: as the user wants, or as the system lets.
///
/// # Errors
/// When what the user wants cannot be had.
pub(super) fn driver(
    wanted: Option<DriverKind>,
    cores: usize,
    watch: &mut dyn Watch,
) -> Result<DriverKind, EngineError> {
    if let Some(driver) = wanted {
        let refused = |source| EngineError::Io { action: "use the driver", path: None, source };
        driver.check(cores).map_err(refused)?;
        return Ok(driver);
    }
    let (driver, reason) = DriverKind::probe(cores);
    if let Some(reason) = reason {
        watch.say(&format!("{reason}; using epoll instead"));
    }
    Ok(driver)
}

/// Keeps what the requests need near the pacing cores, if that is wished; what came of it.
pub(super) fn memory_node(wishes: Wishes, cpus: &[u16], watch: &mut dyn Watch) -> Option<String> {
    let node = wishes.numa_local.then(|| memory_node::prefer(cpus))?;
    node.shortfall().iter().for_each(|words| watch.say(words));
    Some(node.name())
}

/// Keeps memory from being swapped out, if that is wished; what came of it.
pub(super) fn memory_lock(wishes: Wishes, watch: &mut dyn Watch) -> Option<String> {
    let lock = wishes.lock_memory.then(host::lock_memory)?;
    lock.shortfall().iter().for_each(|words| watch.say(words));
    Some(lock.name().to_owned())
}
