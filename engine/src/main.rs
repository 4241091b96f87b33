//! The `onbeat` binary: parse, run, exit code. Everything else is the library's.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use onbeat::cli::{Cli, run};

fn main() -> ExitCode {
    // A limit on file sizes is then an error of the write that hits it, with a message, and not the
    // end of the process.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
    match run(Cli::parse()) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            // A stderr that cannot be written to changes nothing about the exit code.
            let _unread = writeln!(std::io::stderr(), "onbeat: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
