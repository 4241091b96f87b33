//! A thousand runs against a simple server, each from one seed, in simulated time.
//!
//! The director, the players and the gates are the real ones; the server is a formula: first tokens
//! come later the more requests are in flight, and in one stretch of each run everything is slow.
//! After every assessment its decision is compared with what a second, naive account says, written
//! from the page alone; after every step, what must always hold is checked.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};

use onbeat_shared::dice::Dice;
use onbeat_shared::log::outcome::Class;
use onbeat_shared::log::users::{Assessment, RampReason};
use onbeat_shared::trace::Trace;
use onbeat_shared::units::{CoreIndex, RequestIndex, RunNanos};

use super::tests::{SECOND, agent, request, trace_of};
use super::{Direction, End, Order, UserOptions};
use crate::plan::script::{ScriptOptions, Scripts, scripts};
use crate::policy::admission::{Gates, Limits};
use crate::policy::heard::Heard;
use crate::policy::options::{Breaker, RampChoice, RampWay, TtftMetric};
use crate::policy::players::{Event, Player, Players};
use crate::policy::pool::Pool;

const SEEDS: u64 = 1_000;
const RUN_NS: i64 = 100 * SECOND;
const PERIOD_NS: i64 = 2 * SECOND;
const TICK_NS: i64 = 100_000_000;

/// Chances of the world's.
struct Random(Dice);

impl Random {
    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.0.roll() % (most - least + 1)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.0.roll().is_multiple_of(n)
    }
}

/// Conversations of one to nine requests, every third with sub-agents.
static WORKLOAD: LazyLock<(Trace, Arc<Scripts>)> = LazyLock::new(|| {
    let mut random = Random(Dice(1));
    let conversations: Vec<Vec<String>> = (0..24_u32)
        .map(|place| {
            let turns = u32::try_from(random.between(1, 9)).expect("few");
            let mut entries: Vec<String> =
                (0..turns).map(|turn| request(turn, 1, place + 5 * turn + 1, 20)).collect();
            if place % 3 == 0 {
                let nested = agent(&[request(0, 700, 2, 5)]);
                let two = agent(&[request(0, 500, 3, 5), nested, request(1, 500, 4, 5)]);
                entries.insert(1, two);
                entries.push(agent(&[request(0, 600, 3, 5)]));
            }
            entries
        })
        .collect();
    let trace = trace_of(&conversations);
    let scripts = Arc::new(scripts(&trace, &ScriptOptions::default()).expect("scripts"));
    (trace, scripts)
});

/// What the server does next to a request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Answer {
    at: RunNanos,
    number: u32,
    is_token: bool,
    core: usize,
    player: Player,
    user: u32,
    record: u32,
    sent: RunNanos,
    /// From the first token to the end; `None`: it fails without a token.
    decode_ns: Option<i64>,
}

struct Server {
    random: Random,
    base_ns: i64,
    capacity: i64,
    slow: (i64, i64),
    fails_one_in: u64,
    answers: BinaryHeap<Reverse<Answer>>,
}

impl Server {
    /// When the first token comes, at this many requests in flight.
    fn ttft_ns(&mut self, now: RunNanos, in_flight: i64) -> i64 {
        let over = (in_flight - self.capacity).max(0);
        let noise = i64::try_from(self.random.between(70, 130)).expect("few");
        let slow = if self.slow.0 <= now.0 && now.0 < self.slow.1 { 15 } else { 1 };
        self.base_ns * slow * noise / 100 * (self.capacity + 6 * over) / self.capacity
    }
}

/// What the page says of one period, from the simulation's own lists.
#[derive(Default)]
struct Account {
    ttfts: Vec<(i64, i64)>,
    sent: Vec<i64>,
    ended: Vec<i64>,
    agents_began: Vec<i64>,
    agents_ended: Vec<i64>,
    good: u32,
    exceeded: u32,
    required: u32,
    ramps: u32,
}

struct World {
    options: UserOptions,
    direction: Direction,
    gates: Arc<Gates>,
    cores: Vec<Players>,
    server: Server,
    heard: Vec<Heard>,
    account: Account,
    reasons: HashMap<RampReason, u32>,
    entered: u32,
    left: u32,
    added: u32,
    gate_closed: bool,
    /// What the page says of the TTFT gate after the last period.
    gate_wanted: bool,
    over: Option<End>,
    /// When users entered that have not sent anything.
    unheard: HashMap<u32, i64>,
    recovered: bool,
}

/// What one run is asked to do.
fn asked(seed: u64, random: &mut Random) -> UserOptions {
    let most = u32::try_from(random.between(4, 24)).expect("few");
    let start = u32::try_from(random.between(1, 4)).expect("few");
    let metric = match seed % 3 {
        0 => TtftMetric::Max,
        1 => TtftMetric::Avg,
        _ => TtftMetric::P95,
    };
    let way = if seed % 4 == 3 { RampWay::Rolling } else { RampWay::Documented };
    let limits = Limits {
        concurrent: if random.one_in(2) { most * 3 / 4 + 1 } else { 0 },
        ..Limits::default()
    };
    UserOptions {
        start_users: start,
        max_users: most,
        recycle: true,
        trace_seed: seed,
        duration_ns: Some(RUN_NS),
        ttft_gate: random.one_in(3),
        new_tokens_per_period: if random.one_in(4) { 1_500 } else { 0 },
        working_set_tokens: if random.one_in(4) { 30_000 } else { 0 },
        cache_age_ns: 20 * SECOND,
        breaker: Breaker { errors: 0, window_ns: 0 },
        limits,
        ramp: RampChoice {
            way,
            metric,
            max_ttft_ns: SECOND,
            period_ns: PERIOD_NS,
            ..RampChoice::default()
        },
        ..UserOptions::default()
    }
}

impl World {
    /// A run whose director is asked to do what `ask` makes of what the page is held against.
    fn new(seed: u64, ask: impl FnOnce(&mut UserOptions)) -> Self {
        let mut random = Random(Dice(seed));
        let options = asked(seed, &mut random);
        let mut told = options.clone();
        ask(&mut told);
        let (trace, scripts) = &*WORKLOAD;
        let gates = Arc::new(Gates::new(options.limits, 0));
        let pool = Pool::new(scripts, trace, seed, true);
        let cores = 1 + u16::try_from(seed % 3).expect("few");
        let direction =
            Direction::new(&told, trace, Arc::clone(scripts), pool, gates.sessions(), cores);
        let players = |_| Players::new(Arc::clone(scripts), 8, seed, gates.sessions());
        let slow = i64::try_from(random.between(10, 50)).expect("few") * SECOND;
        let server = Server {
            base_ns: i64::try_from(random.between(40, 600)).expect("few") * 1_000_000,
            capacity: i64::try_from(random.between(2, 12)).expect("few"),
            slow: (slow, slow + 20 * SECOND),
            fails_one_in: random.between(5, 60),
            answers: BinaryHeap::new(),
            random,
        };
        Self {
            cores: (0..cores).map(players).collect(),
            options,
            direction,
            gates,
            server,
            heard: Vec::new(),
            account: Account::default(),
            reasons: HashMap::new(),
            entered: 0,
            left: 0,
            added: 0,
            gate_closed: false,
            gate_wanted: false,
            over: None,
            unheard: HashMap::new(),
            recovered: false,
        }
    }

    fn run(&mut self) {
        let mut orders = Vec::new();
        self.direction.open(&mut orders);
        self.carry_out(RunNanos(0), &mut orders);
        let mut now = RunNanos(0);
        while self.over.is_none() {
            now.0 += TICK_NS;
            self.play_until(now);
            self.direction.step(now, self.heard.drain(..), &mut orders);
            self.carry_out(now, &mut orders);
            self.check(now);
        }
        assert_eq!((self.over, now.0), (Some(End::Duration), RUN_NS));
        // Back-offs grow to 37.5 seconds: whoever has bad luck asks twice at the longest.
        for (user, &since) in &self.unheard {
            assert!(now.0 - since < 76 * SECOND, "user {user} entered and was never let through");
        }
    }

    /// Everything that happens on cores and at the server, in order of time.
    fn play_until(&mut self, now: RunNanos) {
        loop {
            let answer = self.server.answers.peek().map(|&Reverse(answer)| answer.at);
            let places = 0..self.cores.len();
            let next = |core: usize| self.cores[core].peek().map(|next| (next.at, core));
            let player = places.filter_map(next).min();
            match (answer, player) {
                (Some(at), player) if at <= now && player.is_none_or(|(other, _)| at <= other) => {
                    self.answer();
                }
                (_, Some((at, core))) if at <= now => self.act(core, at),
                _ => return,
            }
        }
    }

    fn act(&mut self, core: usize, now: RunNanos) {
        let heard = &mut self.heard;
        let mut events = Vec::new();
        let act = self.cores[core].pop(now, &mut |event| events.push(event));
        if let Some(act) = act {
            let in_flight = i64::from(self.gates.in_flight());
            match self.gates.admit(act.cost(), now) {
                Err(blocked) => {
                    let emit = &mut |event| events.push(event);
                    self.cores[core].block(act.who.player, now, blocked, emit);
                }
                Ok(()) => {
                    let number = self.gates.number_request();
                    self.cores[core].begun(act.who.player, number, now);
                    let (user, record) = (act.who.user, act.turn.record);
                    heard.push(Heard::Sent { at: now, user, record });
                    self.unheard.remove(&user);
                    self.account.sent.push(now.0);
                    let fails = self.server.random.one_in(self.server.fails_one_in);
                    let decode = i64::try_from(self.server.random.between(50, 1_500));
                    let decode_ns = decode.expect("few") * 1_000_000;
                    self.server.answer(
                        now,
                        in_flight,
                        Answer {
                            at: now,
                            number: number.0,
                            is_token: !fails,
                            core,
                            player: act.who.player,
                            user,
                            record,
                            sent: now,
                            decode_ns: (!fails).then_some(decode_ns),
                        },
                    );
                }
            }
        }
        events.into_iter().for_each(|event| self.tell(event));
    }

    fn answer(&mut self) {
        let Some(Reverse(answer)) = self.server.answers.pop() else { return };
        let (at, number) = (answer.at, answer.number);
        if answer.is_token {
            let ttft_ns = at.0 - answer.sent.0;
            self.gates.first_token();
            self.heard.push(Heard::FirstToken { at, ttft_ns });
            self.account.ttfts.push((at.0, ttft_ns));
            let end = RunNanos(at.0 + answer.decode_ns.unwrap_or(0));
            self.server.answers.push(Reverse(Answer { at: end, is_token: false, ..answer }));
            return;
        }
        let class = if answer.decode_ns.is_some() { Class::Ok } else { Class::ConnectRefused };
        self.gates.ended(answer.decode_ns.is_some());
        self.account.ended.push(at.0);
        self.heard.push(Heard::Ended {
            at,
            user: answer.user,
            record: answer.record,
            class,
            tokens: 50,
            decode_ns: answer.decode_ns.unwrap_or(0),
            had_first_token: answer.decode_ns.is_some(),
        });
        let mut events = Vec::new();
        let request = RequestIndex(number);
        let emit = &mut |event| events.push(event);
        self.cores[answer.core].end(answer.player, request, at, class == Class::Ok, emit);
        events.into_iter().for_each(|event| self.tell(event));
    }

    /// What a core would tell the director.
    fn tell(&mut self, event: Event) {
        match event {
            Event::Started { who, at, parent: Some(_), .. } => {
                self.account.agents_began.push(at.0);
                self.heard.push(Heard::AgentEntered { at, user: who.user });
            }
            Event::Completed { who, at, .. } | Event::Truncated { who, at, .. } if who.part > 0 => {
                self.account.agents_ended.push(at.0);
                self.heard.push(Heard::AgentLeft { at, user: who.user });
            }
            Event::Left { who, at, cue, how } => {
                let conversation = who.conversation;
                self.left += 1;
                self.heard.push(Heard::Left { at, user: who.user, conversation, cue, how });
            }
            Event::Limited { at, backoff_ns, .. } => {
                self.heard.push(Heard::Limited { at, until: RunNanos(at.0 + backoff_ns) });
            }
            _ => {}
        }
    }

    fn carry_out(&mut self, now: RunNanos, orders: &mut Vec<Order>) {
        for order in orders.drain(..) {
            match order {
                Order::Enter(CoreIndex(core), entrance) => {
                    assert!(entrance.at > now || now.0 == 0, "a core has to see it before");
                    self.entered += 1;
                    self.unheard.insert(entrance.user, entrance.at.0);
                    let mut events = Vec::new();
                    let core = usize::from(core);
                    self.cores[core].enter(entrance, now, &mut |event| events.push(event));
                    events.into_iter().for_each(|event| self.tell(event));
                }
                Order::Note(noted) => self.judge(&noted),
                Order::Gate { closed } => {
                    assert_ne!(closed, self.gate_closed);
                    self.gate_closed = closed;
                    self.gates.close_for_ttft(closed);
                }
                Order::Say(_) => {}
                Order::Stop(end) => self.over = Some(end),
            }
        }
    }

    /// What holds after every step.
    fn check(&self, now: RunNanos) {
        let users = self.entered - self.left;
        assert!(users <= self.options.max_users, "{users} users at {now:?}");
        assert_eq!(self.gate_closed, self.gate_wanted, "closed after a late period only");
        let counts: Vec<usize> = self.cores.iter().map(Players::users).collect();
        assert_eq!(counts.iter().sum::<usize>(), users as usize, "who entered is played");
        let wanted = self.options.start_users.min(self.options.max_users) + self.added;
        assert!(users <= wanted);
        let budgets = self.options.new_tokens_per_period + self.options.working_set_tokens;
        if users < wanted && budgets == 0 && self.over.is_none() {
            let most = self.options.max_users;
            assert!(self.direction.present() >= most, "nobody stays away while there is room");
        }
    }

    /// Compares a decision with the page.
    fn judge(&mut self, noted: &Assessment) {
        let end = i64::from(noted.period) * PERIOD_NS;
        assert_eq!(noted.time.0, end, "periods are contiguous");
        *self.reasons.entry(noted.reason).or_default() += 1;
        // Users that have left and are not replaced yet keep their places.
        let wanted_before = self.options.start_users.min(self.options.max_users) + self.added;
        self.added += u32::from(noted.added);
        let in_flight = between(&self.account.sent, &self.account.ended, end);
        let agents = between(&self.account.agents_began, &self.account.agents_ended, end);
        let room = self.options.max_users.saturating_sub(wanted_before + agents);
        assert_eq!(noted.in_flight, in_flight);
        let period = self.account.metric(self.options.ramp.metric, end);
        let late = period.is_some_and(|ttft| ttft >= SECOND as f64);
        // The order comes after the note: the gate is still as it was.
        self.recovered |= self.gate_closed && !late;
        self.gate_wanted = self.options.ttft_gate && late;
        if self.options.ramp.way == RampWay::Rolling {
            assert!(noted.added == 0 || noted.headroom.is_some_and(|room| room >= 0.2));
            assert!(noted.added == 0 || noted.limited == 0);
            return;
        }
        assert!(
            (noted.ttft_ns.map_or(-1.0, |ttft| ttft as f64) - period.unwrap_or(-1.0)).abs() < 1.0
        );
        let was_in_cooldown = self.account.required > 0;
        let most = self.options.limits.concurrent;
        let open = self.account.decide(period, in_flight, most);
        self.recovered |= was_in_cooldown && noted.added > 0;
        match open {
            Err(reason) => assert_eq!((noted.added, noted.reason), (0, reason), "at {end}"),
            Ok(wanted) => match noted.reason {
                RampReason::MaxUsers => assert_eq!((noted.added, room), (0, 0)),
                RampReason::NewTokens | RampReason::WorkingSet => {
                    assert!(u32::from(noted.added) < wanted.min(room));
                }
                RampReason::Ramped | RampReason::Throttled => {
                    assert!(room > 0);
                    assert_eq!(u32::from(noted.added), wanted.min(room));
                }
                other => panic!("every gate is open, and {other:?}"),
            },
        }
    }
}

impl Server {
    fn answer(&mut self, now: RunNanos, in_flight: i64, answer: Answer) {
        let at = RunNanos(now.0 + self.ttft_ns(now, in_flight));
        self.answers.push(Reverse(Answer { at, ..answer }));
    }
}

impl Account {
    /// Of the period that ends here, in nanoseconds.
    fn metric(&self, metric: TtftMetric, end: i64) -> Option<f64> {
        let mut all: Vec<f64> = self
            .ttfts
            .iter()
            .filter(|(at, _)| end - PERIOD_NS < *at && *at <= end)
            .map(|&(_, ttft)| ttft as f64)
            .collect();
        all.sort_unstable_by(f64::total_cmp);
        let last = all.len().checked_sub(1)?;
        Some(match metric {
            TtftMetric::Max => all[last],
            TtftMetric::Avg => all.iter().sum::<f64>() / all.len() as f64,
            TtftMetric::P95 => {
                let (below, part) = (95 * last / 100, (95 * last % 100) as f64 / 100.0);
                all[below] + (all[(below + 1).min(last)] - all[below]) * part
            }
        })
    }

    /// The page's gates and rates, word by word.
    fn decide(&mut self, ttft: Option<f64>, in_flight: u32, most: u32) -> Result<u32, RampReason> {
        let Some(ttft) = ttft.map(f64::round) else { return Err(RampReason::NoData) };
        let limit = SECOND as f64;
        if ttft < limit {
            (self.good, self.exceeded) = (self.good + 1, 0);
        } else {
            (self.good, self.exceeded, self.ramps) = (0, self.exceeded + 1, 0);
            self.required = match self.exceeded {
                1 | 2 => 2,
                3..=9 => 3,
                _ => 5,
            };
            return Err(RampReason::Ttft);
        }
        if most > 0 && f64::from(in_flight) >= 0.75 * f64::from(most) {
            return Err(RampReason::InFlight);
        }
        if self.required > 0 && self.good < self.required {
            return Err(RampReason::Cooldown);
        }
        self.required = 0;
        if limit - ttft <= 0.2 * limit {
            return Err(RampReason::Headroom);
        }
        self.ramps += 1;
        let steps =
            (1..=6).filter(|steps| limit - ttft >= 0.15 * limit * f64::from(*steps)).count();
        Ok(if self.ramps <= 2 { 1 } else { 1 + u32::try_from(steps).expect("few") })
    }
}

/// How many had begun and not ended at this time.
fn between(began: &[i64], ended: &[i64], time: i64) -> u32 {
    let until = |times: &[i64]| times.partition_point(|&at| at <= time);
    u32::try_from(until(began) - until(ended)).expect("who ends has begun")
}

#[test]
fn a_thousand_runs_keep_to_the_page() {
    let mut reasons: HashMap<RampReason, u32> = HashMap::new();
    let (mut recovered, mut requests) = (0, 0);
    for seed in 0..SEEDS {
        let mut world = World::new(seed, |_| ());
        let run = catch_unwind(AssertUnwindSafe(|| world.run()));
        assert!(run.is_ok(), "seed {seed}");
        for (reason, count) in &world.reasons {
            *reasons.entry(*reason).or_default() += count;
        }
        recovered += u32::from(world.recovered);
        requests += world.gates.requests();
    }
    for reason in [
        RampReason::Ramped,
        RampReason::Throttled,
        RampReason::NoData,
        RampReason::Ttft,
        RampReason::InFlight,
        RampReason::Cooldown,
        RampReason::Headroom,
        RampReason::MaxUsers,
        RampReason::WorkingSet,
        RampReason::NewTokens,
        RampReason::Limited,
    ] {
        assert!(reasons.get(&reason).is_some_and(|&count| count > 20), "{reason:?}: {reasons:?}");
    }
    assert!(recovered > 300, "only {recovered} runs had something to recover from, and did");
    assert!(requests > 100_000, "only {requests} requests");
}

#[test]
fn a_director_that_keeps_to_something_else_is_found_out() {
    type Ask = fn(&mut UserOptions);
    let asks: [(&str, Ask); 6] = [
        ("a lower limit of TTFT", |options| options.ramp.max_ttft_ns -= SECOND / 20),
        ("no limit of requests in flight", |options| options.limits.concurrent = 0),
        ("one user more", |options| options.max_users += 1),
        ("longer periods", |options| options.ramp.period_ns += 1),
        ("another metric", |options| options.ramp.metric = TtftMetric::Max),
        ("nobody is replaced", |options| options.recycle = false),
    ];
    for (what, ask) in asks {
        let is_found_out = (0..40).any(|seed| {
            let mut world = World::new(seed, ask);
            catch_unwind(AssertUnwindSafe(|| world.run())).is_err()
        });
        assert!(is_found_out, "{what}");
    }
}
