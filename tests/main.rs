//! The one integration binary: linked once, run once.

mod ahead;
mod cancelling;
mod clocks;
mod closing;
mod connecting;
mod determinism;
mod encrypted;
mod enduring;
mod exporting;
mod faults;
mod fuzzing;
mod live;
mod nasty;
mod open_loop;
mod readying;
mod recorded;
mod reusing;
mod rewritten;
mod simulating;
mod starting;
mod stopping;
mod tempers;
mod torturing;
mod truth;
mod users;
mod warm_up;
