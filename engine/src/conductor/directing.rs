//! A director's place in a run: its thread, its way to the cores, and its way to the log.
//!
//! What it notes and says goes through the conductor, which alone writes its stream of the log and
//! alone speaks to the user. Nothing is decided here.

use std::mem;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use onbeat_shared::counted::counted;
use onbeat_shared::log::users::Assessment;
use onbeat_shared::units::{CoreIndex, RunNanos};

use super::director::{Directed, Director, Stage};
use crate::clock::monotonic_ns;
use crate::error::EngineError;
use crate::policy::direction::state::DirectorState;
use crate::policy::direction::{Direction, End};
use crate::policy::heard::Heard;
use crate::policy::players::Entrance;
use crate::replayer::troupe::UserRun;
use crate::replayer::{Shared, Stop};

/// What a user-driven run has beside its templates.
#[derive(Debug)]
pub struct UserJob {
    /// What its cores share.
    pub run: Arc<UserRun>,
    /// Who starts when.
    pub direction: Direction,
}

/// Something a director wants to be written down or said.
#[derive(Debug)]
pub(super) enum News {
    Note(Box<Assessment>),
    Keep(Box<DirectorState>),
    Say(String),
}

/// Where a director leaves its news: a few in each assessment period. Neither who writes here nor
/// who reads is in a hurry.
#[derive(Debug, Default)]
struct Board(Mutex<Vec<News>>);

impl Board {
    fn put(&self, news: News) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(news);
    }

    fn take(&self) -> Vec<News> {
        mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A director at work.
#[derive(Debug)]
pub(super) struct Directing {
    director: Director,
    run: Arc<UserRun>,
    board: Arc<Board>,
}

impl Directing {
    /// Starts it: the first users are on their way to the cores before zero.
    pub(super) fn start(job: UserJob, shared: &Arc<Shared>) -> Result<Self, EngineError> {
        let UserJob { run, direction } = job;
        let board = Arc::new(Board::default());
        let house =
            House { run: Arc::clone(&run), shared: Arc::clone(shared), board: Arc::clone(&board) };
        Ok(Self { director: Director::start(direction, house)?, run, board })
    }

    /// What it has noted and said since anybody asked.
    pub(super) fn news(&self) -> Vec<News> {
        self.board.take()
    }

    /// Ends it, once all cores have ended; how it went, and its last news.
    pub(super) fn end(self) -> Result<(Directed, Vec<News>), EngineError> {
        let directed = self.director.end()?;
        let mut news = self.board.take();
        let lost: u64 = self.run.cues.iter().map(|cues| cues.lost()).sum();
        if lost > 0 {
            news.push(News::Say(format!(
                "the director was too slow for {} of the cores: what it decided from them may be \
                 wrong, and what the log says is not",
                counted(lost, "fact"),
            )));
        }
        Ok((directed, news))
    }
}

/// What a director can reach.
struct House {
    run: Arc<UserRun>,
    shared: Arc<Shared>,
    board: Arc<Board>,
}

impl Stage for House {
    fn cores(&self) -> u16 {
        u16::try_from(self.run.cues.len()).expect("cores are counted in u16")
    }

    fn now(&self) -> Option<RunNanos> {
        let zero_ns = self.shared.zero_ns.load(Ordering::Acquire);
        (zero_ns != Shared::NO_ZERO).then(|| RunNanos(monotonic_ns() - zero_ns))
    }

    fn send(&mut self, core: CoreIndex, entrance: Entrance) -> bool {
        self.run.cues[core.as_usize()].entrances.push(entrance).is_ok()
    }

    fn drain(&mut self, core: CoreIndex, heard: &mut Vec<Heard>) {
        heard.extend(std::iter::from_fn(|| self.run.cues[core.as_usize()].hear()));
    }

    fn close_gate(&mut self, closed: bool) {
        self.run.gates.close_for_ttft(closed);
    }

    fn note(&mut self, mut assessment: Assessment) {
        #[expect(clippy::cast_possible_truncation, reason = "a share needs no more than 24 bits")]
        let share = |share: Option<f64>| share.map(|share| share as f32);
        assessment.input_budget = share(self.run.gates.input_share(assessment.time));
        assessment.output_budget = share(self.run.gates.output_share(assessment.time));
        self.board.put(News::Note(Box::new(assessment)));
    }

    fn keep(&mut self, state: DirectorState) {
        self.board.put(News::Keep(Box::new(state)));
    }

    fn say(&mut self, words: String) {
        self.board.put(News::Say(words));
    }

    fn end(&mut self, end: End) {
        self.run.over.store(true, Ordering::Release);
        self.run.expired.store(end == End::Duration, Ordering::Release);
        match end {
            // Those who still play are sub-agents that nobody waits for.
            End::AllPlayed => {}
            End::Duration | End::Stopped => {
                self.shared.stop.fetch_max(Stop::Drain as u8, Ordering::Relaxed);
            }
            End::ConnectionErrors { .. } => {
                let why = end.given_up().unwrap_or_default();
                self.say(format!("the run is given up: {why}"));
                self.shared.stop.fetch_max(Stop::Drain as u8, Ordering::Relaxed);
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.shared.stop() != Stop::No
    }
}
