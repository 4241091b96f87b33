//! A few of the blows that `torture` deals by command, in the middle of a run.

use std::path::Path;

use tests::torture::{Blow, Fate, Rack};

#[test]
fn whatever_call_fails_the_program_ends_in_order_and_its_log_can_be_read() {
    let rack = match Rack::new(Path::new(env!("CARGO_BIN_EXE_torture"))) {
        Ok(rack) => rack,
        Err(why) => {
            #[expect(clippy::print_stderr, reason = "a test that is left out says so")]
            {
                eprintln!("left out: {why}");
            }
            return;
        }
    };
    let blows = [
        ("poll", "EINTR", 4, "epoll"),
        ("io_uring_enter", "EINTR", 40, "io_uring"),
        ("sendmsg", "ENOBUFS", 3, "epoll"),
        ("read", "EIO", 60, "io_uring"),
        ("write", "ENOSPC", 1, "epoll"),
        ("clone3", "EAGAIN", 2, "epoll"),
    ];
    for (call, errno, nth, driver) in blows {
        let fate = rack.strike(&Blow { call, errno, nth, driver });
        assert!(!matches!(fate, Fate::Broken(_)), "{call} {errno} {nth} {driver}: {fate:?}");
    }
}
