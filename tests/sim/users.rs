//! Users as a core's work: the real [`Players`] and [`Gates`], and a director who hears of them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use onbeat::plan::Scripts;
use onbeat::policy::admission::{Gates, Limits};
use onbeat::policy::heard::Heard;
use onbeat::policy::players::{Act, Entrance, Event, Players};
use onbeat_shared::log::outcome::Class;
use onbeat_shared::log::record::Record;
use onbeat_shared::log::{StepFlags, UserEvent};
use onbeat_shared::units::{RequestIndex, RunNanos, SessionIndex};

use super::outside::Outside;
use super::work::{Ask, Work};

/// What is on its way over all cores, counted without the gates.
#[derive(Debug, Default)]
pub(super) struct Account {
    in_flight: u32,
    before_token: u32,
    /// Fresh input tokens that were admitted, those of requests dearer than the budget apart.
    input: u64,
    /// For the director.
    pub(super) heard: Vec<Heard>,
    pub(super) entered: u32,
    pub(super) gone: u32,
}

struct Flight {
    act: Act,
    begun: RunNanos,
    tokens: Option<(RunNanos, RunNanos, u32)>,
}

/// The users of one core.
pub(super) struct Cast {
    players: Players,
    gates: Arc<Gates>,
    scripts: Arc<Scripts>,
    account: Rc<RefCell<Account>>,
    in_flight: HashMap<RequestIndex, Flight>,
    stopped: bool,
}

impl Cast {
    pub(super) fn new(
        scripts: &Arc<Scripts>,
        gates: &Arc<Gates>,
        account: &Rc<RefCell<Account>>,
        seed: u64,
    ) -> Self {
        Self {
            players: Players::new(Arc::clone(scripts), 8, seed, gates.sessions()),
            gates: Arc::clone(gates),
            scripts: Arc::clone(scripts),
            account: Rc::clone(account),
            in_flight: HashMap::new(),
            stopped: false,
        }
    }

    /// Writes down what happened to players, and tells the director.
    fn tell(&self, core: usize, events: Vec<Event>, out: &mut Outside) {
        for event in events {
            self.tell_one(core, &event, out);
        }
    }

    fn tell_one(&self, core: usize, event: &Event, out: &mut Outside) {
        let mut account = self.account.borrow_mut();
        let (who, at, event) = match *event {
            Event::Started { who, at, parent, number, cue, copy } => {
                let part = &self.scripts.scripts[who.conversation as usize];
                let template = part.parts[usize::from(who.part)].session;
                let copy = u16::try_from(copy).expect("few copies");
                let event = UserEvent::Started { template, cue, copy };
                let session = who.session;
                out.journal.push(core, &Record::User { session, time: at, event, parent, number });
                if parent.is_some() {
                    account.heard.push(Heard::AgentEntered { at, user: who.user });
                }
                return;
            }
            Event::Left { who, at, cue, how } => {
                let (user, conversation) = (who.user, who.conversation);
                account.gone += 1;
                account.heard.push(Heard::Left { at, user, conversation, cue, how });
                return;
            }
            Event::Limited { who: _, at, backoff_ns, .. } => {
                assert!(backoff_ns > 0, "whoever backs off comes later");
                account.heard.push(Heard::Limited { at, until: RunNanos(at.0 + backoff_ns) });
                return;
            }
            Event::Completed { who, at, done, total } => {
                (who, at, UserEvent::Completed { done, total })
            }
            Event::Truncated { who, at, done, total } => {
                (who, at, UserEvent::Truncated { done, total })
            }
            Event::Stopped { who, at, done, total } => {
                (who, at, UserEvent::Stopped { done, total })
            }
        };
        if who.part > 0 {
            account.heard.push(Heard::AgentLeft { at, user: who.user });
        }
        let session = who.session;
        let record = Record::User { session, time: at, event, parent: None, number: 0 };
        out.journal.push(core, &record);
    }

    /// The limits hold, by our own count.
    fn check_limits(&self, act: &Act, now: RunNanos) {
        let Limits { concurrent, prefill, input_per_minute, .. } = self.gates.limits();
        let mut account = self.account.borrow_mut();
        account.in_flight += 1;
        account.before_token += 1;
        let holds = |limit: u32, count: u32| limit == 0 || count <= limit;
        assert!(holds(concurrent, account.in_flight), "{} are under way", account.in_flight);
        assert!(holds(prefill, account.before_token), "{} in prefill", account.before_token);
        assert_eq!(self.gates.in_flight(), account.in_flight, "the gates count");
        if input_per_minute > 0 && !self.gates.is_dearer(act.cost()) {
            account.input += u64::from(act.cost().fresh_input);
            let seconds = u64::try_from(now.0 / 1_000_000_000 + 1).expect("after zero");
            let most = input_per_minute + input_per_minute * seconds / 60;
            assert!(account.input <= most, "{} tokens in {seconds} s", account.input);
        }
    }
}

impl Work for Cast {
    fn cancelled(&self) -> usize {
        0
    }

    fn next_at(&self) -> Option<RunNanos> {
        self.players.peek().map(|next| next.at)
    }

    fn next_place(&self, now: RunNanos) -> Option<(u16, SessionIndex)> {
        let next = self.players.peek().filter(|next| next.at <= now)?;
        // Users are spread over servers by their number; here there is one.
        let _user = self.players.user_of(next.player);
        Some((0, SessionIndex(0)))
    }

    fn take(&mut self, core: usize, out: &mut Outside) -> Option<Ask> {
        let now = out.now;
        let mut events = Vec::new();
        let act = self.players.pop(now, &mut |event| events.push(event));
        self.tell(core, events, out);
        let act = act?;
        let player = act.who.player;
        if let Err(blocked) = self.gates.admit(act.cost(), now) {
            let mut events = Vec::new();
            let again = self.players.block(player, now, blocked, &mut |event| events.push(event));
            assert!(again > now, "who is held back comes later");
            self.tell(core, events, out);
            return None;
        }
        self.check_limits(&act, now);
        let request = self.gates.number_request();
        self.players.begun(player, request, now);
        assert!(act.at >= act.due, "nobody asks before its time");
        let step = Record::Step {
            request,
            template: act.turn.record,
            session: act.who.session,
            after: act.after,
            body_bytes: 700,
            ideal_cached: Some(act.ideal_cached),
            ideal_set: Some(act.ideal_set),
            flags: StepFlags::default(),
        };
        out.journal.push(core, &step);
        let (user, record) = (act.who.user, act.turn.record);
        self.account.borrow_mut().heard.push(Heard::Sent { at: now, user, record });
        let (session, ready, due) = (act.who.session, act.at, Some(act.due));
        let known = self.in_flight.insert(request, Flight { act, begun: now, tokens: None });
        assert!(known.is_none(), "requests have numbers of their own");
        let streaming = !request.0.is_multiple_of(7);
        Some(Ask { request, session, target: 0, ready, due, streaming, cancel_after: None })
    }

    fn left(&mut self, _ask: &Ask, _now: RunNanos) {}

    fn tokens(&mut self, request: RequestIndex, now: RunNanos, more: usize) {
        let flight = self.in_flight.get_mut(&request).expect("only what is on its way has tokens");
        let more = u32::try_from(more).expect("few");
        match &mut flight.tokens {
            Some((_, last, count)) => (*last, *count) = (now, *count + more),
            None => {
                flight.tokens = Some((now, now, more));
                self.gates.first_token();
                let mut account = self.account.borrow_mut();
                account.before_token -= 1;
                let ttft_ns = now.0 - flight.begun.0;
                account.heard.push(Heard::FirstToken { at: now, ttft_ns });
            }
        }
    }

    fn ended(&mut self, core: usize, request: RequestIndex, class: Class, out: &mut Outside) {
        let Flight { act, tokens, .. } = self.in_flight.remove(&request).expect("it ends once");
        self.gates.ended(tokens.is_some());
        {
            let mut account = self.account.borrow_mut();
            account.in_flight -= 1;
            account.before_token -= u32::from(tokens.is_none());
            account.heard.push(Heard::Ended {
                at: out.now,
                user: act.who.user,
                record: act.turn.record,
                class,
                tokens: tokens.map_or(0, |(_, _, count)| count),
                decode_ns: tokens.map_or(0, |(first, last, _)| last.0 - first.0),
                had_first_token: tokens.is_some(),
            });
        }
        let mut events = Vec::new();
        let emit = &mut |event| events.push(event);
        self.players.end(act.who.player, request, out.now, class == Class::Ok, emit);
        self.tell(core, events, out);
    }

    fn give_up(&mut self, core: usize, _in_flight_at_stop: &[RequestIndex], out: &mut Outside) {
        if std::mem::replace(&mut self.stopped, true) {
            return;
        }
        let mut events = Vec::new();
        self.players.stop(out.now, &mut |event| events.push(event));
        self.tell(core, events, out);
    }

    fn is_over(&self) -> bool {
        self.in_flight.is_empty() && (self.stopped || self.players.is_empty())
    }

    fn enter(&mut self, core: usize, entrance: Entrance, out: &mut Outside) {
        assert!(!self.stopped, "nobody comes to a run that is over");
        self.account.borrow_mut().entered += 1;
        let mut events = Vec::new();
        self.players.enter(entrance, out.now, &mut |event| events.push(event));
        self.tell(core, events, out);
    }
}
