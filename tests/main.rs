//! The one integration binary: linked once, run once.

mod determinism;
mod faults;
mod open_loop;
mod sim;
mod starting;
