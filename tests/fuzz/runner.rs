//! Runs a target: inputs by number, panics caught, what is found made small.
//!
//! The input of number `n` follows from the seed, `n` and the corpus, whatever the number of
//! threads. A finding is an input that its subject refuses to call good, that makes it panic, or
//! that takes a thread longer than [`SLOW_NS`] every time. This module prints and writes nothing.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, Once};

use onbeat::clock::{monotonic_ns, thread_cpu_ns};
use onbeat_shared::dice::Dice;

use super::{Subject, Target, mutation, seeds};

/// An input that takes longer is a finding.
pub const SLOW_NS: i64 = 1_000_000_000;
/// Numbers that a thread takes at a time.
const BATCH: u64 = 64;
/// Judgements that making one finding small may cost.
const SHRINKING_MAX: u32 = 20_000;

/// How much is to be run.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// Everything is drawn from it.
    pub seed: u64,
    /// The first input's number.
    pub first: u64,
    /// How many inputs.
    pub runs: u64,
    /// Threads, at least one.
    pub threads: usize,
    /// No new inputs after so long.
    pub ns_max: Option<i64>,
    /// No new inputs after so many findings.
    pub findings_max: usize,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Report {
    /// Inputs that were judged, each once.
    pub executions: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How long it took.
    pub elapsed_ns: i64,
    /// The slowest input's number and time.
    pub slowest: Option<(u64, i64)>,
    /// What was found, in order of its numbers.
    pub findings: Vec<Finding>,
}

/// An input that should have gone otherwise.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Its number, which repeats it with the same seed.
    pub number: u64,
    /// What is wrong, of the small input.
    pub words: String,
    /// The input.
    pub input: Vec<u8>,
    /// The smallest one found that something is wrong with.
    pub small: Vec<u8>,
}

/// Runs `target`.
///
/// # Panics
/// When the corpus cannot be read or no thread can be had.
#[must_use]
pub fn run(target: &Target, work: Work) -> Report {
    remember_panics();
    let corpus = seeds::read(target.name).expect("the corpus is readable");
    let start = monotonic_ns();
    let (next, full) = (AtomicU64::new(0), AtomicBool::new(false));
    let total = Mutex::new(Report::default());
    std::thread::scope(|scope| {
        for thread in 0..work.threads.max(1) {
            let work = || {
                let mut worker = Worker::new(target, &corpus, work.seed);
                loop {
                    let from = next.fetch_add(BATCH, Ordering::Relaxed);
                    let late = work.ns_max.is_some_and(|max| monotonic_ns() - start > max);
                    if from >= work.runs || late || full.load(Ordering::Relaxed) {
                        break;
                    }
                    for number in from..work.runs.min(from + BATCH) {
                        worker.run(work.first + number);
                    }
                    if worker.report.findings.len() >= work.findings_max {
                        full.store(true, Ordering::Relaxed);
                    }
                }
                total.lock().expect("nobody panics with it").add(worker.report);
            };
            let thread = std::thread::Builder::new().name(format!("fuzz-{thread}"));
            thread.spawn_scoped(scope, work).expect("a thread");
        }
    });
    let mut report = total.into_inner().expect("nobody panics with it");
    report.findings.sort_by_key(|finding| finding.number);
    report.elapsed_ns = monotonic_ns() - start;
    report
}

/// What is wrong with one input, if anything is.
#[must_use]
pub fn judge_one(target: &Target, input: &[u8]) -> Option<String> {
    remember_panics();
    judged(&mut (target.make)(), target, input)
}

impl Report {
    fn add(&mut self, other: Self) {
        self.executions += other.executions;
        self.bytes += other.bytes;
        self.findings.extend(other.findings);
        self.slowest = self.slowest.into_iter().chain(other.slowest).max_by_key(|slow| slow.1);
    }
}

/// One thread's part.
struct Worker<'a> {
    target: &'a Target,
    corpus: &'a [Vec<u8>],
    seed: u64,
    subject: Box<dyn Subject>,
    input: Vec<u8>,
    other: Vec<u8>,
    report: Report,
}

impl<'a> Worker<'a> {
    fn new(target: &'a Target, corpus: &'a [Vec<u8>], seed: u64) -> Self {
        let (input, other, report) = (Vec::new(), Vec::new(), Report::default());
        Self { target, corpus, seed, subject: (target.make)(), input, other, report }
    }

    fn run(&mut self, number: u64) {
        self.prepare(number);
        let start = monotonic_ns();
        let mut wrong = judged(&mut self.subject, self.target, &self.input);
        let mut took = monotonic_ns() - start;
        if wrong.is_none() && took > SLOW_NS {
            // On a busy machine every input can be slow: what counts then is its own work.
            took = (0..2).map(|_| self.cpu_ns()).fold(took, i64::min);
            wrong = (took > SLOW_NS).then(|| format!("it takes {} ms", took / 1_000_000));
        }
        self.report.executions += 1;
        self.report.bytes += self.input.len() as u64;
        if self.report.slowest.is_none_or(|slowest| slowest.1 < took) {
            self.report.slowest = Some((number, took));
        }
        if let Some(words) = wrong {
            let input = self.input.clone();
            let (small, words) = self.shrink(&input, words);
            self.report.findings.push(Finding { number, words, input, small });
        }
    }

    /// Makes the input of this number.
    fn prepare(&mut self, number: u64) {
        let mut dice = Dice(Dice(self.seed ^ number.wrapping_mul(0xA076_1D64_78BD_642F)).roll());
        draw(&mut *self.subject, self.corpus, &mut dice, &mut self.input);
        match dice.below(8) {
            0..=2 => {}
            7 => {
                draw(&mut *self.subject, self.corpus, &mut dice, &mut self.other);
                mutation::splice(&mut dice, &mut self.input, &self.other);
            }
            _ => self.subject.mutate(&mut dice, &mut self.input),
        }
    }

    /// What judging the input takes of this thread.
    fn cpu_ns(&mut self) -> i64 {
        let start = thread_cpu_ns();
        let _ = judged(&mut self.subject, self.target, &self.input);
        thread_cpu_ns() - start
    }

    /// The smallest input that can be had by leaving parts out, and what is wrong with it.
    fn shrink(&mut self, input: &[u8], words: String) -> (Vec<u8>, String) {
        let (mut small, mut words) = (input.to_vec(), words);
        let mut left = SHRINKING_MAX;
        let mut part = small.len().div_ceil(2);
        while part > 0 && left > 0 {
            let mut at = 0;
            let mut smaller = false;
            while at < small.len() && left > 0 {
                left -= 1;
                let end = small.len().min(at + part);
                let tried = [&small[..at], &small[end..]].concat();
                match judged(&mut self.subject, self.target, &tried) {
                    Some(said) => (small, words, smaller) = (tried, said, true),
                    None => at = end,
                }
            }
            if part > 1 || !smaller {
                part /= 2;
            }
        }
        (small, words)
    }
}

/// An input of the grammar, or one of the corpus.
fn draw(subject: &mut dyn Subject, corpus: &[Vec<u8>], dice: &mut Dice, out: &mut Vec<u8>) {
    out.clear();
    if !corpus.is_empty() && dice.below(4) == 0 {
        out.extend_from_slice(&corpus[dice.place(corpus.len())]);
    } else {
        subject.generate(dice, out);
    }
}

/// What is wrong with an input; a subject that panicked is made anew.
fn judged(subject: &mut Box<dyn Subject>, target: &Target, input: &[u8]) -> Option<String> {
    IS_JUDGING.set(true);
    let result = catch_unwind(AssertUnwindSafe(|| subject.judge(input)));
    IS_JUDGING.set(false);
    match result {
        Ok(result) => result.err(),
        Err(_) => {
            *subject = (target.make)();
            Some(LAST_PANIC.take())
        }
    }
}

thread_local! {
    /// A panic of this thread now is a finding, not an accident.
    static IS_JUDGING: Cell<bool> = const { Cell::new(false) };
    /// What the last such panic said, and where.
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Has panics of judged inputs kept instead of printed; all others are printed as before.
fn remember_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if IS_JUDGING.get() {
                LAST_PANIC.replace(info.to_string());
            } else {
                before(info);
            }
        }));
    });
}
