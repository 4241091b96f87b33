//! The `onbeat` binary: parse, run, exit code. Everything else is the library's.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use onbeat::cli::{Cli, run};

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            // A stderr that cannot be written to changes nothing about the exit code.
            let _unread = writeln!(std::io::stderr(), "onbeat: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
