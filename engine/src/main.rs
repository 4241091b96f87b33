//! The `onbeat` binary. Everything is the library's, so that a test can be the program, too.

use std::process::ExitCode;

fn main() -> ExitCode {
    onbeat::cli::start(std::env::args_os())
}
