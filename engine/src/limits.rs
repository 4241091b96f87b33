//! Every bound of the engine, with its reason. Nothing here is tunable by a user.
//!
//! A limit is where trouble stops being a surprise: queues are bounded, parsers stop at stated caps,
//! and a number that would overflow a format is refused at the edge.

/// Most requests in one plan: a request index is a `u32` and the top value means "none".
pub const REQUESTS_MAX: usize = u32::MAX as usize - 1;
/// Most slices in one vectored write. The kernel's own bound (`IOV_MAX`) is 1,024.
pub const WRITE_PARTS_MAX: usize = 1_000;
/// Most pacing cores: core numbers are `u16` in the log, and the conductor uses the top value.
pub const CORES_MAX: usize = 1_024;

const _: () = assert!(WRITE_PARTS_MAX <= 1_024);
const _: () = assert!(CORES_MAX < u16::MAX as usize);
