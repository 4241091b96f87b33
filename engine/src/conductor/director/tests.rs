//! The director's thread with cores that are lists: everything ordered arrives, in order.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicI64;

use onbeat_shared::units::SessionIndex;

use super::*;
use crate::policy::direction::tests::{SECOND, direction, growing, options};
use crate::policy::options::UserOptions;
use crate::policy::players::How;

/// What cores and the log have got, and what cores say.
#[derive(Default)]
struct Scene {
    now: AtomicI64,
    is_stopped: AtomicBool,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// How many more users each core has room for.
    room: HashMap<u16, usize>,
    entered: Vec<(u16, Entrance)>,
    says: HashMap<u16, Vec<Heard>>,
    noted: Vec<Assessment>,
    kept: Vec<DirectorState>,
    ended: Option<End>,
}

struct Actors(Arc<Scene>);

const BEFORE_ZERO: i64 = i64::MIN;

impl Actors {
    fn seen<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        look(&mut self.0.seen.lock().expect("nobody panicked"))
    }
}

impl Stage for Actors {
    fn cores(&self) -> u16 {
        2
    }

    fn now(&self) -> Option<RunNanos> {
        Some(self.0.now.load(Ordering::Acquire)).filter(|&now| now != BEFORE_ZERO).map(RunNanos)
    }

    fn send(&mut self, core: CoreIndex, entrance: Entrance) -> bool {
        self.seen(|seen| {
            let room = seen.room.entry(core.0).or_insert(0);
            let Some(less) = room.checked_sub(1) else { return false };
            *room = less;
            seen.entered.push((core.0, entrance));
            true
        })
    }

    fn drain(&mut self, core: CoreIndex, heard: &mut Vec<Heard>) {
        self.seen(|seen| heard.append(seen.says.entry(core.0).or_default()));
    }

    fn close_gate(&mut self, _closed: bool) {}

    fn note(&mut self, assessment: Assessment) {
        self.seen(|seen| seen.noted.push(assessment));
    }

    fn keep(&mut self, state: DirectorState) {
        self.seen(|seen| seen.kept.push(state));
    }

    fn say(&mut self, _words: String) {}

    fn end(&mut self, end: End) {
        self.seen(|seen| seen.ended = Some(end));
    }

    fn is_stopped(&self) -> bool {
        self.0.is_stopped.load(Ordering::Acquire)
    }
}

impl Scene {
    fn begin(options: &UserOptions) -> (Arc<Self>, Director) {
        let scene = Arc::new(Self { now: AtomicI64::new(BEFORE_ZERO), ..Self::default() });
        let direction = direction(options, &growing(9), 2);
        let director = Director::start(direction, Actors(Arc::clone(&scene))).expect("a thread");
        (scene, director)
    }

    fn look<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        look(&mut self.seen.lock().expect("nobody panicked"))
    }

    /// Waits until something is so, however long that takes.
    fn until(&self, is_so: impl Fn(&Seen) -> bool) {
        while !self.look(|seen| is_so(seen)) {
            std::thread::yield_now();
        }
    }

    fn room(&self, core: u16, room: usize) {
        self.look(|seen| seen.room.insert(core, room));
    }
}

#[test]
fn users_enter_before_zero_as_far_as_cores_have_room_and_in_order() {
    let (scene, director) = Scene::begin(&UserOptions { start_users: 6, ..options() });
    scene.room(1, 2);
    scene.until(|seen| seen.entered.len() == 2);
    scene.room(0, 9);
    scene.until(|seen| seen.entered.len() == 5);
    scene.room(1, 9);
    scene.until(|seen| seen.entered.len() == 6);
    scene.look(|seen| {
        let of = |core: u16| {
            let own = seen.entered.iter().filter(move |(other, _)| *other == core);
            own.map(|(_, entrance)| entrance.user).collect::<Vec<_>>()
        };
        assert_eq!((of(0), of(1)), (vec![1, 3, 5], vec![2, 4, 6]));
        assert!(seen.entered.iter().all(|(_, entrance)| entrance.at == RunNanos(0)));
        let mut sessions: Vec<_> =
            seen.entered.iter().map(|(_, entrance)| entrance.session).collect();
        sessions.sort_unstable();
        assert_eq!(sessions, (0..6).map(SessionIndex).collect::<Vec<_>>());
    });
    let directed = director.end().expect("no panic");
    assert_eq!((directed.end, directed.state.playing.len()), (End::Stopped, 6));
}

#[test]
fn what_cores_say_is_assessed_and_noted_until_nobody_plays() {
    let (scene, director) = Scene::begin(&UserOptions { start_users: 2, ..options() });
    scene.room(0, 9);
    scene.room(1, 9);
    scene.now.store(SECOND, Ordering::Release);
    let token = Heard::FirstToken { at: RunNanos(SECOND), ttft_ns: SECOND };
    let left = |user, at| {
        let (at, conversation, cue) = (RunNanos(at), 0, 3);
        Heard::Left { at, user, conversation, cue, how: How::Completed }
    };
    scene.look(|seen| seen.says.insert(1, vec![token]));
    scene.until(|seen| seen.says[&1].is_empty());
    scene.now.store(11 * SECOND, Ordering::Release);
    scene.until(|seen| seen.entered.len() == 3);
    scene.look(|seen| {
        assert_eq!(
            (seen.noted.len(), seen.noted[0].ttft_ns, seen.noted[0].added),
            (1, Some(SECOND), 1)
        );
        seen.says.insert(0, vec![left(1, 11 * SECOND), left(3, 11 * SECOND)]);
        seen.says.insert(1, vec![left(2, 11 * SECOND)]);
    });
    scene.until(|seen| seen.ended == Some(End::AllPlayed));
    // At the start and behind the first assessment.
    scene.until(|seen| seen.kept.len() >= 2);
    scene.look(|seen| {
        let playing: Vec<usize> = seen.kept.iter().map(|state| state.playing.len()).collect();
        assert_eq!((playing[0], playing[1]), (2, 3));
    });
    let directed = director.end().expect("no panic");
    assert_eq!((directed.end, directed.state.playing.len()), (End::AllPlayed, 0));
    assert_eq!(directed.state.users_created, 3);
    scene.look(|seen| assert_eq!(seen.noted.last().map(|noted| noted.period), Some(2)));
}

#[test]
fn nobody_enters_once_somebody_has_stopped_the_run() {
    let (scene, director) =
        Scene::begin(&UserOptions { start_users: 2, recycle: true, ..options() });
    scene.room(0, 1);
    scene.until(|seen| seen.entered.len() == 1);
    scene.is_stopped.store(true, Ordering::Release);
    let directed = director.end().expect("no panic");
    scene.look(|seen| assert_eq!((seen.entered.len(), seen.ended), (1, None)));
    assert_eq!(directed.end, End::Stopped);
    let left: Vec<u32> = directed.state.playing.iter().map(|own| own.user).collect();
    assert_eq!(left, [1, 2], "whoever was to enter does in the run that goes on");
}
