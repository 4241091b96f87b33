//! The one integration binary: linked once, run once.

mod determinism;
mod faults;
mod no_alloc;
mod open_loop;
mod sim;

/// Remembers when the pacing cores allocate; see `no_alloc`.
#[global_allocator]
static ALLOCATOR: tests::alloc::Watching = tests::alloc::Watching;
