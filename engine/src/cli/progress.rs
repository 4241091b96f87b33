//! What a run shows while it goes: one line on stderr, and the user's wish to stop.
//!
//! On a terminal the line is redrawn ten times a second; with `--ui simple` a plain line comes
//! every few seconds, without control codes, for files and dumb terminals. It only reads counters.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use onbeat_shared::foreign::printable;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::quitting::Quitting;
use crate::conductor::Watch;
use crate::replayer::Stop;
use crate::replayer::counters::Snapshot;

/// A plain line comes this often, in nanoseconds of the run.
const SIMPLE_NS: i64 = 2_000_000_000;
/// How long is waited for a reader of stderr that stands still, and how long with a line that the
/// next one replaces.
const PATIENCE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
const NO_PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
/// A core that has nothing to send for longer than this is called idle.
const IDLE_NS: i64 = 1_000_000_000;

/// How progress is shown.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Ui {
    /// A redrawn line on a terminal, plain lines on a dumb one, nothing elsewhere.
    #[default]
    #[value(alias = "dashboard")]
    Auto,
    /// A plain line every two seconds, without control codes.
    Simple,
    /// Nothing.
    None,
}

/// The terminal's side of a run.
pub struct Terminal {
    bar: Option<ProgressBar>,
    simple: bool,
    next_line_ns: i64,
    interrupt: Arc<AtomicBool>,
    wanted: Stop,
    /// Whether the run itself has begun: only then is anything in flight.
    begun: bool,
    /// Ends the program where a stage of loading would have to be waited for.
    quitting: Option<Quitting>,
}

impl Terminal {
    /// Takes over SIGINT and SIGTERM: once means drain, twice means stop now; before the run has
    /// begun, either ends the program.
    #[must_use]
    pub fn new(ui: Ui) -> Self {
        let interrupt = Arc::new(AtomicBool::new(false));
        let quitting = Some(Quitting::on(&[SIGINT, SIGTERM]));
        for signal in [SIGINT, SIGTERM] {
            // Without a handler the signal ends the process, and the log is still readable.
            let _ = signal_hook::flag::register(signal, Arc::clone(&interrupt));
        }
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let watched = ui == Ui::Auto && std::io::stderr().is_terminal();
        let bar = (watched && !dumb).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{spinner} {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar
        });
        let simple = ui == Ui::Simple || (watched && dumb);
        let wanted = Stop::No;
        Self { bar, simple, next_line_ns: 0, interrupt, wanted, begun: false, quitting }
    }

    /// Whether the user has asked to stop, now or earlier. Says nothing.
    pub fn was_interrupted(&mut self) -> bool {
        if self.interrupt.swap(false, Ordering::Relaxed) {
            self.wanted = Stop::Now;
        }
        self.wanted != Stop::No
    }

    /// Takes the line away, so that the summary stands alone.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Watch for Terminal {
    fn say(&mut self, words: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| to_stderr(words, PATIENCE)),
            None => to_stderr(words, PATIENCE),
        }
    }

    fn look(&mut self, elapsed_ns: i64, planned: u64, counters: &Snapshot) {
        if let Some(bar) = &self.bar {
            bar.set_message(line(elapsed_ns, planned, counters));
            bar.tick();
        } else if self.simple && elapsed_ns >= self.next_line_ns {
            self.next_line_ns = elapsed_ns + SIMPLE_NS;
            to_stderr(&line(elapsed_ns, planned, counters), NO_PATIENCE);
        }
    }

    fn begin(&mut self) -> bool {
        self.begun = true;
        self.quitting.as_ref().is_none_or(Quitting::begin)
    }

    fn stop(&mut self) -> Stop {
        if self.interrupt.swap(false, Ordering::Relaxed) {
            self.wanted = match self.wanted {
                Stop::No => {
                    self.say(stopping(self.begun));
                    Stop::Drain
                }
                Stop::Drain | Stop::Now => Stop::Now,
            };
        }
        self.wanted
    }
}

/// A watch that shows nothing and never stops a run: for tests and other programs.
#[derive(Debug, Default)]
pub struct Quiet {
    /// What was said.
    pub said: Vec<String>,
}

impl Watch for Quiet {
    fn say(&mut self, words: &str) {
        self.said.push(words.to_owned());
    }

    fn look(&mut self, _elapsed_ns: i64, _planned: u64, _counters: &Snapshot) {}

    fn stop(&mut self) -> Stop {
        Stop::No
    }
}

/// What is said when the user asks to stop.
const fn stopping(begun: bool) -> &'static str {
    if begun {
        "stopping: nothing new is sent, what is in flight may finish; once more to stop now"
    } else {
        "stopping; the run has not begun"
    }
}

/// One look, in words.
fn line(elapsed_ns: i64, planned: u64, counters: &Snapshot) -> String {
    let elapsed = Duration::from_nanos(elapsed_ns.max(0).cast_unsigned());
    let mut line = format!(
        "{:>6.1}s  sent {}/{planned}  in flight {}  errors {}  lateness p99 {}",
        elapsed.as_secs_f64(),
        counters.sent,
        counters.in_flight(),
        counters.failed,
        counters.lateness_ns(0.99).map_or_else(|| "no data".to_owned(), short_time),
    );
    if let Some(due_ns) = counters.next_due_ns
        && due_ns - elapsed_ns > IDLE_NS
    {
        let wait = Duration::from_nanos((due_ns - elapsed_ns).cast_unsigned());
        line.push_str(&format!("  next send in {}", long_time(wait)));
    }
    if counters.lost_records > 0 {
        line.push_str(&format!("  LOST {} log records", counters.lost_records));
    }
    line
}

fn short_time(ns: f64) -> String {
    if ns < 1e3 {
        format!("{ns:.0} ns")
    } else if ns < 1e6 {
        format!("{:.1} us", ns / 1e3)
    } else if ns < 1e9 {
        format!("{:.1} ms", ns / 1e6)
    } else {
        format!("{:.1} s", ns / 1e9)
    }
}

fn long_time(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{:.0} s", time.as_secs_f64()),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
    }
}

/// A line on stderr, unless nobody reads it for so long: who waits for a reader that stands still
/// hears no signal and ends no run.
fn to_stderr(words: &str, patience: Timespec) {
    let stderr = std::io::stderr();
    let mut wanted = [PollFd::new(&stderr, PollFlags::OUT)];
    if matches!(poll(&mut wanted, Some(&patience)), Ok(0)) {
        return;
    }
    // Whoever closed stderr does not want to know.
    let _ = writeln!(&stderr, "{}", printable(words));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replayer::counters::Counters;

    #[test]
    fn before_the_run_a_stop_promises_nothing_of_requests_in_flight() {
        // Not `new`, which takes over the signals of the whole process.
        let mut terminal = Terminal {
            bar: None,
            simple: false,
            next_line_ns: 0,
            interrupt: Arc::default(),
            wanted: Stop::No,
            begun: false,
            quitting: None,
        };
        assert!(!terminal.begun && stopping(terminal.begun).contains("has not begun"));
        assert!(terminal.begin());
        assert!(stopping(terminal.begun).contains("in flight may finish"));
    }

    #[test]
    fn the_line_tells_where_the_run_is() {
        let counters = Counters::new();
        let looked = |counters: &Counters| Snapshot::of([counters]);
        assert_eq!(
            line(1_500_000_000, 9, &looked(&counters)),
            "   1.5s  sent 0/9  in flight 0  errors 0  lateness p99 no data"
        );
        counters.count_sent(2_000);
        counters.set_next_due(Some(32_400_000_000_000));
        assert_eq!(
            line(0, 2, &looked(&counters)),
            "   0.0s  sent 1/2  in flight 1  errors 0  lateness p99 2.0 us  next send in 9 h 0 min"
        );
    }
}
