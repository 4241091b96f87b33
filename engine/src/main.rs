//! The `onbeat` binary. Everything is the library's, so that a test can be the program, too.

use std::process::ExitCode;

#[global_allocator]
static MEMORY: onbeat::last_words::LastWords = onbeat::last_words::LastWords;

fn main() -> ExitCode {
    onbeat::cli::start(std::env::args_os())
}
