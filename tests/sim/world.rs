//! One simulated run from its seed: cores, network, director, and the end.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use onbeat::policy::admission::Gates;
use onbeat::policy::direction::{Direction, End, Order};
use onbeat::policy::pool::Pool;
use onbeat::policy::reuse::{Reuse, Strategy};
use onbeat_shared::log::sample::Sample;
use onbeat_shared::log::{Manifest, UserFacts};
use onbeat_shared::units::{CoreIndex, RunNanos};

use super::Figures;
use super::cores::{Core, Orders};
use super::journal::Journal;
use super::outside::{Event, News, Outside};
use super::planned::Planned;
use super::random::Random;
use super::users::{Account, Cast};
use super::workloads;

/// How long a run of users goes on.
const USERS_NS: i64 = 900_000_000;
/// How often the director looks.
const LOOK_NS: i64 = 15_000_000;
/// Most events of a run: one that needs more goes round in circles.
const EVENTS_MAX: u64 = 1_000_000;

/// One run.
pub(super) struct World {
    cores: Vec<Core>,
    out: Outside,
    director: Option<Director>,
    interrupted: bool,
    events: u64,
}

struct Director {
    direction: Direction,
    gates: Arc<Gates>,
    account: Rc<RefCell<Account>>,
    max_users: u32,
    over: bool,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        if random.one_in(8) { Self::of_users(random) } else { Self::of_a_plan(random) }
    }

    fn of_a_plan(mut random: Random) -> Self {
        let cores = 1 + random.below(2);
        let cores = u16::try_from(cores).expect("few");
        let plan = Arc::new(workloads::plan(&mut random, cores));
        let max_connections =
            random.one_in(3).then(|| usize::try_from(1 + random.below(4)).expect("few"));
        let orders = Orders { limits: workloads::limits(&mut random), max_connections };
        let strategy = match random.below(5) {
            0 => Strategy::Never,
            1 => Strategy::StickyUserSessions,
            _ => Strategy::Pooled,
        };
        let mut manifest = manifest();
        manifest.planned = u32::try_from(plan.rows.len()).expect("few");
        let journal = Journal::new(&manifest, &plan.rows, &plan.sessions, usize::from(cores));
        let targets = plan.rows.iter().map(|row| usize::from(row.target) + 1).max().unwrap_or(1);
        let core = |number: u16| {
            let index = CoreIndex(number);
            let work = Planned::new(Arc::clone(&plan), index, max_connections.is_none());
            let reuse = Reuse::new(strategy, &plan.rows, index);
            Core::new(usize::from(number), orders, Box::new(work), reuse, targets)
        };
        let cores = (0..cores).map(core).collect();
        let mut out = Outside::new(random, journal);
        let stops = out.random.one_in(4);
        if stops {
            let now = out.random.one_in(2);
            let at = RunNanos(out.random.ns(150_000_000));
            out.at(at, Event { core: 0, slot: 0, link: 0, news: News::Stop { now } });
        }
        Self { cores, out, director: None, interrupted: false, events: 0 }
    }

    fn of_users(mut random: Random) -> Self {
        let cores = u16::try_from(1 + random.below(2)).expect("few");
        let (trace, scripts) = workloads::pool(&mut random);
        let options = workloads::users(&mut random, USERS_NS);
        let plan = onbeat::plan::templates(trace, scripts);
        let mut manifest = manifest();
        manifest.planned = u32::try_from(plan.rows.len()).expect("few");
        let period_ns = options.ramp.period_ns;
        manifest.users = Some(Box::new(UserFacts { period_ns, ..UserFacts::default() }));
        let journal = Journal::new(&manifest, &plan.rows, &plan.sessions, usize::from(cores));
        let gates = Arc::new(Gates::new(options.limits, 0));
        let pool = Pool::new(scripts, trace, options.trace_seed, options.recycle);
        let sessions = gates.sessions();
        let direction = Direction::new(&options, trace, Arc::clone(scripts), pool, sessions, cores);
        let account = Rc::new(RefCell::new(Account::default()));
        let orders = Orders { limits: workloads::limits(&mut random), max_connections: None };
        let seed = random.next();
        let core = |number: u16| {
            let work = Cast::new(scripts, &gates, &account, seed);
            let reuse = Reuse::new(Strategy::Pooled, &[], CoreIndex(number));
            Core::new(usize::from(number), orders, Box::new(work), reuse, 1)
        };
        let cores: Vec<Core> = (0..cores).map(core).collect();
        let max_users = options.max_users;
        let director = Director { direction, gates, account, max_users, over: false };
        let out = Outside::new(random, journal);
        Self { cores, out, director: Some(director), interrupted: false, events: 0 }
    }

    /// Runs until nothing is left to do, holds the log against memory, and counts.
    pub(super) fn run(mut self) -> Figures {
        if self.director.is_some() {
            let mut orders = Vec::new();
            let director = self.director.as_mut().expect("just seen");
            director.direction.open(&mut orders);
            self.carry_out(orders);
            self.look_later();
        }
        for core in &mut self.cores {
            core.fire(&mut self.out);
        }
        while let Some(event) = self.out.next() {
            self.events += 1;
            assert!(self.events < EVENTS_MAX, "the run goes on for ever");
            match event.news {
                News::Direct => self.direct(),
                News::Stop { .. } => self.stop(event),
                _ => self.cores[event.core].hear(event, &mut self.out),
            }
        }
        for core in &self.cores {
            assert!(core.is_over(), "something is left to do, and nothing will happen");
        }
        let bytes = self.out.journal.close(self.out.now, self.interrupted);
        self.out.journal.agrees(&bytes, self.interrupted);
        Figures::of(&self.out, self.events, &bytes)
    }

    fn stop(&mut self, event: Event) {
        if self.interrupted {
            return;
        }
        self.interrupted = true;
        for core in 0..self.cores.len() {
            self.cores[core].hear(Event { core, ..event }, &mut self.out);
            let delay = self.out.random.ns(50_000_000);
            self.out.after(delay, Event { core, slot: 0, link: 0, news: News::Drained });
        }
    }

    fn look_later(&mut self) {
        self.out.after(LOOK_NS, Event { core: 0, slot: 0, link: 0, news: News::Direct });
    }

    /// The director looks.
    fn direct(&mut self) {
        let Some(director) = &mut self.director else { return };
        let heard: Vec<_> = director.account.borrow_mut().heard.drain(..).collect();
        let mut orders = Vec::new();
        director.direction.step(self.out.now, heard, &mut orders);
        self.carry_out(orders);
        let Some(director) = &self.director else { return };
        let account = director.account.borrow();
        let playing = account.entered - account.gone;
        assert!(playing <= director.max_users, "{playing} users play");
        let over = director.over;
        drop(account);
        if !over {
            self.look_later();
        }
    }

    fn carry_out(&mut self, orders: Vec<Order>) {
        for order in orders {
            let Some(director) = &mut self.director else { return };
            match order {
                Order::Enter(core, entrance) => {
                    assert!(!director.over, "nobody comes to a run that is over");
                    let core = usize::from(core.0);
                    self.cores[core].work.enter(core, entrance, &mut self.out);
                    self.cores[core].fire(&mut self.out);
                }
                Order::Gate { closed } => director.gates.close_for_ttft(closed),
                Order::Note(_) | Order::Say(_) => {}
                Order::Stop(End::AllPlayed) => director.over = true,
                Order::Stop(_) => {
                    director.over = true;
                    let news = News::Stop { now: self.out.random.one_in(2) };
                    self.out.after(0, Event { core: 0, slot: 0, link: 0, news });
                }
            }
        }
    }
}

fn manifest() -> Manifest {
    Sample::new().manifest
}
