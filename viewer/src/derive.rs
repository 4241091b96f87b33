//! Answers to "what is drawn here?", made on background threads and kept while they may be asked.
//!
//! A panel asks the same question every frame. The first time, the question goes to a worker; until
//! its answer is there the panel gets the previous answer of the same *slot* (an older zoom, say)
//! and is told that it is not fresh, so the picture never flickers and a frame never waits. A newer
//! question in a slot replaces one that has not been started. The last few answers of each slot are
//! kept, so that going back costs nothing.
//!
//! A subject that grows is renewed: answers about what it was a moment before stay on screen and
//! are still called fresh, since they would else flicker with each renewal; older ones are not.
//! What is being worked out is finished and shown, so that a subject that grows faster than it can
//! be looked at is still seen. This module does not know what a question means.

use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

/// Something that can be asked about a subject.
pub trait Question: Clone + Eq + Send + 'static {
    /// Where on screen the answer goes: questions of one slot replace each other.
    type Slot: Copy + Eq + Hash + Send + 'static;
    /// What the question is about.
    type Subject: Send + Sync + 'static;
    /// The answer.
    type Answer: Send + Sync + 'static;

    /// The question's slot.
    fn slot(&self) -> Self::Slot;
    /// Works the answer out.
    fn answer(&self, subject: &Self::Subject) -> Self::Answer;
}

/// How many answers of a slot are kept.
const KEPT: usize = 6;
/// Threads that work answers out.
const WORKERS: usize = 2;

/// Asks questions about one subject.
pub struct Derived<Q: Question> {
    desk: Arc<Desk<Q>>,
    subject: Arc<Q::Subject>,
    /// Questions are answered at once, on the asking thread; for tests that must not race.
    inline: bool,
}

struct Desk<Q: Question> {
    state: Mutex<State<Q>>,
    work: Condvar,
    wake: Box<dyn Fn() + Send + Sync>,
}

struct State<Q: Question> {
    subject: Arc<Q::Subject>,
    /// How often the subject was renewed.
    generation: u64,
    /// Earlier subjects: freeing one takes longer than a frame may, so a worker does it.
    old: Vec<Arc<Q::Subject>>,
    slots: HashMap<Q::Slot, Slot<Q>>,
    /// Slots with a question nobody has started on, oldest first.
    waiting: VecDeque<Q::Slot>,
    closed: bool,
}

struct Slot<Q: Question> {
    /// Newest last.
    answers: VecDeque<Given<Q>>,
    /// Asked and not started.
    wanted: Option<Q>,
    /// Started and not finished, and of which generation.
    running: Option<(Q, u64)>,
}

/// An answer that was given.
struct Given<Q: Question> {
    question: Q,
    generation: u64,
    answer: Arc<Q::Answer>,
}

impl<Q: Question> Default for Slot<Q> {
    fn default() -> Self {
        Self { answers: VecDeque::new(), wanted: None, running: None }
    }
}

/// What there is to show now.
pub struct Shown<A> {
    /// The answer, or the slot's previous one, or nothing yet.
    pub answer: Option<Arc<A>>,
    /// Whether it is the answer to this very question.
    pub fresh: bool,
}

impl<Q: Question> Derived<Q> {
    /// Starts workers for a subject; `wake` is called when an answer has arrived.
    #[must_use]
    pub fn new(subject: Arc<Q::Subject>, wake: impl Fn() + Send + Sync + 'static) -> Self {
        let desk = Arc::new(Desk::new(Arc::clone(&subject), Box::new(wake)));
        let mut started = 0;
        for number in 0..WORKERS {
            let desk = Arc::clone(&desk);
            let name = format!("onbeat-derive-{number}");
            if thread::Builder::new().name(name).spawn(move || desk.serve()).is_ok() {
                started += 1;
            }
        }
        // Where no thread can be had, a slow frame is better than none.
        Self { desk, subject, inline: started == 0 }
    }

    /// Answers every question at once, on the asking thread.
    #[must_use]
    pub fn inline(subject: Arc<Q::Subject>) -> Self {
        let desk = Arc::new(Desk::new(Arc::clone(&subject), Box::new(|| {})));
        Self { desk, subject, inline: true }
    }

    /// The subject.
    #[must_use]
    pub const fn subject(&self) -> &Arc<Q::Subject> {
        &self.subject
    }

    /// From now on questions are about a later state of the subject.
    pub fn renew(&mut self, subject: Arc<Q::Subject>) {
        let shown = std::mem::replace(&mut self.subject, Arc::clone(&subject));
        let mut state = self.desk.lock();
        state.subject = subject;
        state.generation += 1;
        if !self.inline {
            state.old.push(shown);
            self.desk.work.notify_one();
        }
        for slot in state.slots.values_mut() {
            let old = slot.answers.len().saturating_sub(1);
            slot.answers.drain(..old);
        }
    }

    /// Asks. Never waits for a worker.
    pub fn ask(&self, question: &Q) -> Shown<Q::Answer> {
        if let Some(answer) = self.desk.lookup(question) {
            return Shown { answer: Some(answer), fresh: true };
        }
        if self.inline {
            let answer = Arc::new(question.answer(&self.subject));
            let generation = self.desk.lock().generation;
            self.desk.keep(question.clone(), generation, Arc::clone(&answer));
            return Shown { answer: Some(answer), fresh: true };
        }
        self.desk.want(question)
    }

    /// Whether every question asked so far has its answer.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let state = self.desk.lock();
        state.slots.values().all(|slot| slot.wanted.is_none() && slot.running.is_none())
    }

    /// Whether something is shown in every place, be it an answer to an older question. The opening
    /// bench asks.
    #[must_use]
    pub fn is_filled(&self) -> bool {
        self.desk.lock().slots.values().all(|slot| !slot.answers.is_empty())
    }
}

impl<Q: Question> Drop for Derived<Q> {
    fn drop(&mut self) {
        self.desk.lock().closed = true;
        self.desk.work.notify_all();
    }
}

impl<Q: Question> Desk<Q> {
    fn new(subject: Arc<Q::Subject>, wake: Box<dyn Fn() + Send + Sync>) -> Self {
        let (slots, waiting) = (HashMap::new(), VecDeque::new());
        let old = Vec::new();
        let state = State { subject, generation: 0, old, slots, waiting, closed: false };
        Self { state: Mutex::new(state), work: Condvar::new(), wake }
    }

    /// The state is plain data that is whole at every unlock, so a poisoned lock is still good.
    fn lock(&self) -> MutexGuard<'_, State<Q>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lookup(&self, question: &Q) -> Option<Arc<Q::Answer>> {
        let mut state = self.lock();
        let generation = state.generation;
        let slot = state.slots.get_mut(&question.slot())?;
        let fits = |given: &Given<Q>| given.generation == generation && given.question == *question;
        let place = slot.answers.iter().position(fits)?;
        // Newest last, and what is being shown is new.
        let found = slot.answers.remove(place)?;
        let answer = Arc::clone(&found.answer);
        slot.answers.push_back(found);
        slot.wanted = None;
        Some(answer)
    }

    /// Notes the question and gives the slot's last answer meanwhile.
    fn want(&self, question: &Q) -> Shown<Q::Answer> {
        let mut state = self.lock();
        let generation = state.generation;
        let name = question.slot();
        let slot = state.slots.entry(name).or_default();
        let last = slot.answers.back();
        let fresh = last.is_some_and(|given| given.generation + 1 == generation);
        let answer = last.map(|given| Arc::clone(&given.answer));
        let runs = |running: &(Q, u64)| running.0 == *question && running.1 == generation;
        if slot.running.as_ref().is_some_and(runs) {
            slot.wanted = None;
        } else if slot.wanted.as_ref() != Some(question) {
            slot.wanted = Some(question.clone());
            if !state.waiting.contains(&name) {
                state.waiting.push_back(name);
            }
            self.work.notify_one();
        }
        Shown { answer, fresh }
    }

    fn keep(&self, question: Q, generation: u64, answer: Arc<Q::Answer>) {
        let mut state = self.lock();
        let slot = state.slots.entry(question.slot()).or_default();
        if slot.running.as_ref().is_some_and(|running| running.0 == question) {
            slot.running = None;
        }
        slot.answers.push_back(Given { question, generation, answer });
        while slot.answers.len() > KEPT {
            slot.answers.pop_front();
        }
    }

    /// A worker's life.
    fn serve(&self) {
        while let Some(Job { question, generation, subject }) = self.next() {
            let answer = Arc::new(question.answer(&subject));
            drop(subject);
            self.keep(question, generation, answer);
            // A slot that was skipped while this one ran may go now.
            self.work.notify_one();
            (self.wake)();
        }
    }

    /// The next question, once there is one; `None` when the subject was closed.
    fn next(&self) -> Option<Job<Q>> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            let old = std::mem::take(&mut state.old);
            if !old.is_empty() {
                drop(state);
                drop(old);
                state = self.lock();
                continue;
            }
            if let Some(question) = state.take() {
                let (generation, subject) = (state.generation, Arc::clone(&state.subject));
                return Some(Job { question, generation, subject });
            }
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A question, and what it is about.
struct Job<Q: Question> {
    question: Q,
    generation: u64,
    subject: Arc<Q::Subject>,
}

impl<Q: Question> State<Q> {
    /// The oldest waiting question of a slot that no other worker is busy with.
    fn take(&mut self) -> Option<Q> {
        for _ in 0..self.waiting.len() {
            let name = self.waiting.pop_front()?;
            let slot = self.slots.entry(name).or_default();
            if slot.running.is_some() {
                if slot.wanted.is_some() {
                    self.waiting.push_back(name);
                }
                continue;
            }
            if let Some(question) = slot.wanted.take() {
                slot.running = Some((question.clone(), self.generation));
                return Some(question);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[derive(Clone, PartialEq, Eq)]
    struct Square(u64);

    /// Numbers to add to each square, and a gate the worker waits at.
    struct Numbers {
        add: u64,
        gate: Mutex<mpsc::Receiver<()>>,
        seen: Mutex<Vec<u64>>,
    }

    impl Question for Square {
        type Slot = u8;
        type Subject = Numbers;
        type Answer = u64;

        fn slot(&self) -> u8 {
            0
        }

        fn answer(&self, numbers: &Numbers) -> u64 {
            let gate = numbers.gate.lock().expect("unpoisoned");
            // A test that is over opens no gate.
            let _ = gate.recv();
            numbers.seen.lock().expect("unpoisoned").push(self.0);
            self.0 * self.0 + numbers.add
        }
    }

    struct Bench {
        derived: Derived<Square>,
        open: mpsc::SyncSender<()>,
        woken: mpsc::Receiver<()>,
    }

    fn bench(add: u64) -> Bench {
        let (open, gate) = mpsc::sync_channel(100);
        let (wake, woken) = mpsc::sync_channel(100);
        let subject =
            Arc::new(Numbers { add, gate: Mutex::new(gate), seen: Mutex::new(Vec::new()) });
        let derived = Derived::new(subject, move || wake.send(()).expect("the test listens"));
        Bench { derived, open, woken }
    }

    impl Bench {
        fn ask(&self, number: u64) -> (Option<u64>, bool) {
            let shown = self.derived.ask(&Square(number));
            (shown.answer.map(|answer| *answer), shown.fresh)
        }

        fn finish_one(&self) {
            self.open.send(()).expect("the worker waits");
            self.woken.recv().expect("the worker wakes us");
        }
    }

    #[test]
    fn the_previous_answer_stands_until_the_new_one_is_there() {
        let bench = bench(1);
        assert_eq!(bench.ask(3), (None, false));
        bench.finish_one();
        assert_eq!(bench.ask(3), (Some(10), true));
        assert_eq!(bench.ask(4), (Some(10), false));
        bench.finish_one();
        assert_eq!(bench.ask(4), (Some(17), true));
        assert_eq!(bench.ask(3), (Some(10), true), "kept");
    }

    #[test]
    fn only_the_newest_question_of_a_slot_is_worked_out() {
        let bench = bench(0);
        bench.ask(1);
        // The worker has to be at the gate with 1 before the others pile up.
        while bench.derived.desk.lock().slots[&0].running.is_none() {
            thread::yield_now();
        }
        for number in 2..50 {
            bench.ask(number);
        }
        bench.finish_one();
        bench.finish_one();
        assert_eq!(bench.ask(49), (Some(2_401), true));
        assert!(bench.derived.is_idle());
        let seen = bench.derived.subject().seen.lock().expect("unpoisoned").clone();
        assert_eq!(seen, [1, 49]);
    }

    fn numbers(add: u64) -> (Arc<Numbers>, mpsc::SyncSender<()>) {
        let (open, gate) = mpsc::sync_channel(100);
        (Arc::new(Numbers { add, gate: Mutex::new(gate), seen: Mutex::new(Vec::new()) }), open)
    }

    #[test]
    fn after_a_renewal_the_last_answers_stand_until_there_are_new_ones() {
        let mut bench = bench(1);
        bench.ask(3);
        bench.finish_one();
        let (later, open) = numbers(2);
        bench.derived.renew(Arc::clone(&later));
        bench.open = open;
        assert_eq!(bench.ask(3), (Some(10), true), "a moment old");
        bench.derived.renew(later);
        assert_eq!(bench.ask(3), (Some(10), false), "older");
        bench.finish_one();
        assert!(matches!(bench.ask(3), (Some(11), _)), "worked out anew");
    }

    #[test]
    fn what_runs_while_the_subject_is_renewed_is_finished_and_shown() {
        let mut bench = bench(1);
        bench.ask(3);
        while bench.derived.desk.lock().slots[&0].running.is_none() {
            thread::yield_now();
        }
        let (later, open) = numbers(2);
        bench.derived.renew(later);
        assert_eq!(bench.ask(3), (None, false));
        bench.finish_one();
        assert_eq!(bench.ask(3), (Some(10), true), "about what it was a moment ago");
        bench.open = open;
        bench.finish_one();
        assert_eq!(bench.ask(3), (Some(11), true));
        assert!(bench.derived.is_idle());
    }

    #[test]
    fn inline_answers_are_there_at_once() {
        let (open, gate) = mpsc::sync_channel(1);
        open.send(()).expect("room");
        let subject = Numbers { add: 0, gate: Mutex::new(gate), seen: Mutex::new(Vec::new()) };
        let derived = Derived::inline(Arc::new(subject));
        let shown = derived.ask(&Square(5));
        assert_eq!((shown.answer.map(|answer| *answer), shown.fresh), (Some(25), true));
        assert!(derived.is_idle());
    }
}
