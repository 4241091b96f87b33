//! The one integration binary: linked once, run once.

mod ahead;
mod closing;
mod connecting;
mod determinism;
mod encrypted;
mod faults;
mod live;
mod open_loop;
mod recorded;
mod sim;
mod starting;
mod stopping;
mod tempers;
