//! The `onbeat` binary: parse, run, exit code. Everything else is the library's.

use std::process::ExitCode;

use clap::Parser;
use onbeat::cli::{Cli, run};

#[expect(clippy::print_stderr, reason = "the one place that tells the user of a failure")]
fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("onbeat: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
