//! The edge to the network: addresses, sockets and the bytes lent to the driver.
//!
//! Reads go through monoio's driver; the write of a request that is due goes straight to the kernel
//! (a non-blocking `sendmsg`), because handing it to the ring would make it wait for the rest of
//! the run queue. Only what the kernel did not take at once goes through the driver. No decision is
//! made here: outcomes and retries belong to [`crate::replayer`].

pub mod ask;
pub mod lent;
pub mod reach;
pub mod shortage;
pub mod socket;
pub mod target;
pub mod tls;
pub mod way;
