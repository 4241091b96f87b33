//! The one integration binary: linked once, run once.

mod closing;
mod connecting;
mod determinism;
mod faults;
mod open_loop;
mod sim;
mod starting;
mod stopping;
mod tempers;
