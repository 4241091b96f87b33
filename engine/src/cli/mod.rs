//! The command line: what can be typed, and which function answers.
//!
//! Options are declared once, with clap, in `flags`; help, man page, completions and the flag
//! reference come from that declaration. Each subcommand has a file that turns arguments as typed
//! into values as meant and calls the library. Only this folder prints.

pub mod compare;
pub mod demo;
pub mod doctor;
pub mod export;
pub mod flags;
mod inputs;
pub mod inspect;
pub mod merge;
pub mod mock;
mod output;
pub mod plan;
pub mod progress;
mod quitting;
pub mod reference;
pub mod replay;
pub mod report;
pub mod results;
mod schema;
mod screen;
mod steps;
pub mod summary;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Arg, CommandFactory, FromArgMatches, Parser, Subcommand};
use onbeat_shared::foreign::printable;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use self::screen::Screen;
use crate::error::EngineError;

/// Replays recorded LLM inference traffic against an inference server, on time, and shows what
/// happened.
#[derive(Debug, Parser)]
#[command(name = "onbeat", version, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Replay a trace against a server: writes a run log and prints its summary.
    #[command(visible_alias = "profile")]
    Replay(Box<replay::Args>),
    /// Print what would be sent and when, without sending: JSON Lines on stdout.
    Plan(Box<plan::Args>),
    /// Tell what is in a trace: rows, span, rates, lengths, sessions, ideal cache hits, oddities.
    Inspect(Box<inspect::Args>),
    /// Summarise a run log, finished or not.
    Report(report::Args),
    /// Hold runs against one of them: what differs, by how much and how surely, with gates for CI.
    Compare(compare::Args),
    /// Write a run as a table of requests or chunks, or as the files of another tool.
    Export(export::Args),
    /// Join the logs of one run's shards, made on several machines, into one log.
    Merge(merge::Args),
    /// Check this machine for precision and say what would help, with the commands.
    Doctor(doctor::Args),
    /// Run a stand-in inference server with a scheduler and a prefix cache.
    Mock(Box<mock::Args>),
    /// Show the whole thing: mock server, bundled trace, replay and report in one command.
    Demo(demo::Args),
    /// Print shell completions.
    Completions {
        /// The shell they are for.
        shell: clap_complete::Shell,
    },
    /// Print the manual page.
    Man,
    /// Print a reference in Markdown.
    #[command(hide = true)]
    Reference {
        /// What it is about.
        subject: reference::Subject,
    },
}

/// The whole program, from the words that were typed, its own name first, to its exit code.
#[must_use]
pub fn start(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    // A limit on file sizes is then an error of the write that hits it, with a message, and not the
    // end of the process.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
    keep_memory_private();
    let typed = command().try_get_matches_from(report::goals_together(words));
    let cli = match typed.and_then(|mut typed| Cli::from_arg_matches_mut(&mut typed)) {
        Ok(cli) => cli,
        Err(told) => return told_by_parser(&told),
    };
    match run(cli) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            // A stderr that cannot be written to changes nothing about the exit code.
            let words = error.to_string();
            let _unread = writeln!(io::stderr(), "onbeat: {}", printable(&words));
            ExitCode::from(error.exit_code())
        }
    }
}

/// Prints what was asked for with `--help` or `--version`, or what is wrong with what was typed.
fn told_by_parser(told: &clap::Error) -> ExitCode {
    let printed = told.print().and_then(|()| io::stdout().flush());
    match printed {
        // Who asked for help and has none must not be told that all went well.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe && !told.use_stderr() => {
            let _unread = writeln!(io::stderr(), "onbeat: {}", printing(error));
            ExitCode::FAILURE
        }
        _ => ExitCode::from(u8::try_from(told.exit_code()).unwrap_or(2)),
    }
}

/// No dump of this process is written and no other of this user may look into it: its memory holds
/// keys and prompts.
fn keep_memory_private() {
    // A kernel without this can only do what it does anyway.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// What can be typed. A number below zero is a value of the option before it, so that whoever reads
/// the option refuses it in its own words: clap would take it for an option that nobody declared.
#[must_use]
pub fn command() -> clap::Command {
    let open = |option: Arg| {
        let has_value = option.get_action().takes_values() && !option.is_positional();
        if has_value { option.allow_negative_numbers(true) } else { option }
    };
    Cli::command().mut_subcommands(|command| command.mut_args(open))
}

/// Runs one command to its exit code.
///
/// # Errors
/// What the user has to know and do; the caller prints it and uses its exit code.
pub fn run(cli: Cli) -> Result<u8, EngineError> {
    let stdout = io::stdout().lock();
    let mut out: Box<dyn Write> = match stdout.is_terminal() {
        true => Box::new(Screen::new(stdout)),
        false => Box::new(stdout),
    };
    let code = match cli.command {
        Command::Replay(args) => replay::run(&args, &mut out),
        Command::Plan(args) => plan::run(&args, &mut out),
        Command::Inspect(args) => inspect::run(&args, &mut out),
        Command::Report(args) => report::run(&args, &mut out),
        Command::Compare(args) => compare::run(&args, &mut out),
        Command::Export(args) => export::run(&args, &mut out),
        Command::Merge(args) => merge::run(&args, &mut out),
        Command::Doctor(args) => doctor::run(&args, &mut out),
        Command::Mock(args) => mock::run(&args, &mut out),
        Command::Demo(args) => demo::run(&args, &mut out),
        Command::Completions { shell } => {
            write_out(&mut out, &reference::completions(shell, &Cli::command()))
        }
        Command::Man => write_out(&mut out, &reference::man(&Cli::command())),
        Command::Reference { subject } => {
            write_out(&mut out, reference::reference(subject, &Cli::command()).as_bytes())
        }
    }?;
    flush(&mut out)?;
    Ok(code)
}

fn write_out(out: &mut dyn Write, bytes: &[u8]) -> Result<u8, EngineError> {
    match out.write_all(bytes) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(printing(error)),
        // Whoever closed the pipe has read what it wanted.
        _ => Ok(0),
    }
}

fn flush(out: &mut dyn Write) -> Result<(), EngineError> {
    match out.flush() {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(printing(error)),
        _ => Ok(()),
    }
}

/// A failure to print, as an error of the command.
#[must_use]
pub fn printing(source: io::Error) -> EngineError {
    EngineError::Io { action: "print", path: None, source }
}

#[cfg(test)]
mod tests {
    use clap::error::ErrorKind;

    use super::*;

    #[test]
    fn no_dump_is_written_of_this_process() {
        keep_memory_private();
        let now = rustix::process::dumpable_behavior().expect("the kernel knows it");
        assert_eq!(now, DumpableBehavior::NotDumpable);
    }

    #[test]
    fn every_option_refuses_a_wrong_number_in_words() {
        // What the standard library says of a text that is no number.
        let jargon = ["non-zero type", "invalid digit", "invalid float", "empty string", "-- -1"];
        for sub in command().get_subcommands() {
            let valued = |option: &&Arg| option.get_action().takes_values();
            for name in sub.get_arguments().filter(valued).filter_map(Arg::get_long) {
                for value in ["-1", "0", "-0.5", "x", "99999999999999999999"] {
                    let words = ["onbeat", sub.get_name(), &format!("--{name}"), value];
                    let Err(error) = command().try_get_matches_from(words) else { continue };
                    let told = error.to_string();
                    assert_ne!(error.kind(), ErrorKind::UnknownArgument, "{words:?}: {told}");
                    for word in jargon {
                        assert!(!told.contains(word), "{words:?}: {told}");
                    }
                }
            }
        }
        let cap = ["onbeat", "replay", "t", "--inter-turn-delay-cap-seconds", "-1"];
        let told = command().try_get_matches_from(cap).expect_err("below 0").to_string();
        assert!(told.contains("give 0 seconds or more"), "{told}");
    }
}
