//! A short run of every fuzz target, the same on every machine; long runs are made by command.

use onbeat_shared::dice::Dice;
use tests::fuzz::runner::{self, Work};
use tests::fuzz::{Subject, TARGETS, Target, seeds};

const SHORT: Work =
    Work { seed: 20_261_130, first: 0, runs: 0, threads: 1, ns_max: None, findings_max: 1 };

#[test]
fn a_short_run_of_every_target_finds_nothing() {
    std::thread::scope(|scope| {
        for target in TARGETS {
            let run = || {
                let work = Work { runs: target.short_runs, ..SHORT };
                let report = runner::run(target, work);
                if let Some(finding) = report.findings.first() {
                    let small = finding.small.escape_ascii();
                    panic!("{} {}: {}\n{small}", target.name, finding.number, finding.words);
                }
                assert_eq!(report.executions, target.short_runs);
            };
            let thread = std::thread::Builder::new().name(target.name.to_owned());
            thread.spawn_scoped(scope, run).expect("a thread");
        }
    });
}

#[test]
fn every_input_of_the_corpus_is_good() {
    for target in TARGETS {
        for (place, input) in seeds::read(target.name).expect("readable").iter().enumerate() {
            let said = runner::judge_one(target, input);
            assert_eq!(said, None, "{}, file {place}", target.name);
        }
    }
}

/// Dislikes every `x` and panics at every `y`.
struct Picky;

impl Subject for Picky {
    fn generate(&mut self, dice: &mut Dice, out: &mut Vec<u8>) {
        out.extend((0..dice.below(40)).map(|_| b'a' + dice.below(23).to_le_bytes()[0]));
    }

    fn judge(&mut self, input: &[u8]) -> Result<(), String> {
        assert!(!input.contains(&b'y'), "a letter that nobody can stand");
        if input.contains(&b'x') { Err("an x".to_owned()) } else { Ok(()) }
    }
}

#[test]
fn what_is_wrong_is_found_made_small_and_repeated() {
    let target = Target { name: "picky", about: "", short_runs: 0, make: || Box::new(Picky) };
    let work = Work { runs: 3_000, findings_max: usize::MAX, ..SHORT };
    let report = runner::run(&target, work);
    assert_eq!(report.executions, 3_000);
    let has = |small: &[u8], words: &str| {
        let mut findings = report.findings.iter();
        findings.any(|found| found.small == small && found.words.contains(words))
    };
    assert!(has(b"x", "an x") && has(b"y", "a letter that nobody can stand"));
    let numbers: Vec<u64> = report.findings.iter().map(|finding| finding.number).collect();
    let threads = runner::run(&target, Work { threads: 3, ..work });
    assert!(threads.findings.iter().map(|finding| finding.number).eq(numbers.iter().copied()));
    let (first, last) = (&report.findings[0], numbers[numbers.len() - 1]);
    let again = runner::run(&target, Work { first: last, runs: 1, ..work });
    assert_eq!(again.findings.len(), 1);
    assert_eq!(runner::judge_one(&target, &first.small), Some(first.words.clone()));
}
