//! A core's part in a user-driven run: its users and their sub-agents, from entrance to exit.
//!
//! Which request leaves when is decided by [`Players`] and by the run's [`Gates`]; this file asks
//! them, gives a request its number as it leaves, writes down what happened and tells the director.
//! A request that the gates hold back is not queued anywhere: its user backs off and asks again.
//! Nothing here allocates once a core has begun, but for what more users need than were announced.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use onbeat_shared::log::outcome::Class;
use onbeat_shared::log::record::{Record, UNKNOWN_TOKENS, Usage};
use onbeat_shared::log::users::{LimitedBy, StepFlags, UserEvent};
use onbeat_shared::units::{CoreIndex, RequestIndex, RunNanos, SessionIndex};

use super::Stop;
use super::core::Core;
use super::cues::Cues;
use super::sink::Sink;
use super::slot::Exchange;
use crate::plan::script::{From, Scripts};
use crate::policy::admission::{Gates, Why};
use crate::policy::heard::Heard;
use crate::policy::players::{Act, Event, Players};
use crate::policy::session::Ready;
use crate::render::supply::Supply;

/// Users that ask one after the other before answers are read again.
const ASK_MAX: usize = 256;

/// What all cores of a user-driven run share.
#[derive(Debug)]
pub struct UserRun {
    /// What users play.
    pub scripts: Arc<Scripts>,
    /// What lets requests leave, over all cores.
    pub gates: Arc<Gates>,
    /// For each core, what passes between it and the director.
    pub cues: Vec<Arc<Cues>>,
    /// Most users on one core that its memory is made for.
    pub users_per_core: usize,
    /// Where users' back-offs begin.
    pub seed: u64,
    /// Nobody enters any more: a core whose users have left is done.
    pub over: AtomicBool,
    /// The run has lasted as long as it was to: what is in flight after the grace is cut off by
    /// that, and not by anybody's stop.
    pub expired: AtomicBool,
}

/// The users of one core.
#[derive(Debug)]
pub(super) struct Troupe {
    players: Players,
    run: Arc<UserRun>,
    cues: Arc<Cues>,
    in_flight: HashMap<RequestIndex, Flight>,
}

/// A request on its way, or waiting for its connection.
#[derive(Clone, Copy, Debug)]
struct Flight {
    act: Act,
    /// When it was let through.
    begun: RunNanos,
    /// When its first token came, and its latest.
    tokens_at: Option<(RunNanos, RunNanos)>,
    /// Content events.
    tokens: u32,
    /// What the server counted.
    usage: Option<Usage>,
}

impl Troupe {
    /// The share of `core`.
    pub(super) fn new(run: &Arc<UserRun>, core: CoreIndex) -> Self {
        let sessions = run.gates.sessions();
        let scripts = Arc::clone(&run.scripts);
        let players = Players::new(scripts, run.users_per_core, run.seed, sessions);
        // A map that is never more than half full finds room in its own and asks for no more.
        let in_flight = HashMap::with_capacity(2 * players.room());
        let cues = Arc::clone(&run.cues[usize::from(core.0)]);
        Self { players, run: Arc::clone(run), cues, in_flight }
    }

    /// When the next request may leave, if one is known.
    pub(super) fn next_at(&self) -> Option<RunNanos> {
        self.players.peek().map(|next| next.at)
    }

    /// The session of a request on its way; of one that has ended, any.
    pub(super) fn session_of(&self, request: RequestIndex) -> SessionIndex {
        self.in_flight.get(&request).map_or(SessionIndex(0), |flight| flight.act.who.session)
    }

    /// The server of a request on its way, of so many.
    pub(super) fn target_of(&self, request: RequestIndex, servers: usize) -> u16 {
        target(self.in_flight[&request].act.who.user, servers)
    }

    /// Content events of a request arrived, `more` of them, and its first token with them if it
    /// had none.
    pub(super) fn hear_tokens(&mut self, request: RequestIndex, time: RunNanos, more: u32) {
        let Some(flight) = self.in_flight.get_mut(&request) else { return };
        flight.tokens = flight.tokens.saturating_add(more);
        let first = flight.tokens_at.map(|(first, _)| first);
        flight.tokens_at = Some((first.unwrap_or(time), time));
        if first.is_none() {
            self.run.gates.first_token();
            self.cues.tell(Heard::FirstToken { at: time, ttft_ns: time.0 - flight.begun.0 });
        }
    }

    /// What the server counted of a request's tokens, if it said.
    pub(super) fn hear_usage(&mut self, request: RequestIndex, usage: Usage) {
        if let Some(flight) = self.in_flight.get_mut(&request) {
            flight.usage = Some(usage);
        }
    }

    /// Whether everything has been played that will be.
    fn is_done(&self) -> bool {
        self.in_flight.is_empty() && self.players.is_empty()
    }
}

impl Flight {
    /// Tokens of the answer, reasoning and all.
    fn answer_tokens(&self) -> u32 {
        let counted = self.usage.map(|usage| usage.completion_tokens);
        counted.filter(|&tokens| tokens != UNKNOWN_TOKENS).unwrap_or(self.tokens)
    }
}

impl Core {
    /// What cuts off requests that are still in flight at the end.
    pub(super) fn cut_by(&self, stop: Stop) -> Class {
        let expired =
            self.troupe.as_ref().is_some_and(|own| own.run.expired.load(Ordering::Acquire));
        if expired && stop != Stop::Now { Class::CutAtEnd } else { Class::Interrupted }
    }

    /// Lets those in whom the director has sent, and finds out whether nobody will come any more.
    pub(super) fn let_users_in(&mut self) {
        let now = self.now();
        let Self { troupe: Some(troupe), sink, supply, remaining, .. } = self else { return };
        let Troupe { players, run, cues, .. } = &mut **troupe;
        // Read first: whoever was sent before it was set is then seen.
        let over = run.over.load(Ordering::Acquire);
        while let Some(entrance) = cues.entrances.pop() {
            players
                .enter(entrance, now, &mut |event| note(&event, &run.scripts, sink, supply, cues));
        }
        if over && troupe.is_done() {
            *remaining = 0;
        }
    }

    /// The run ends: writes down who had not come to an end. They stay where they are, and nobody
    /// sends any more.
    pub(super) fn stop_users(&mut self) {
        let now = self.now();
        let Self { troupe: Some(troupe), sink, supply, .. } = self else { return };
        let Troupe { players, run, cues, .. } = &mut **troupe;
        players.stop(now, &mut |event| {
            // There may be more of them than there is room for.
            sink.wait_for_room();
            note(&event, &run.scripts, sink, supply, cues);
        });
    }

    /// The request that leaves now, if a user is ready, may send and may have a connection. When
    /// many are held back, the rest asks in the pacer's next turn, which comes at once.
    pub(super) fn next_act(&mut self, now: RunNanos) -> Option<Exchange> {
        for _ in 0..ASK_MAX {
            let next = self.troupe.as_ref()?.players.peek().filter(|next| next.at <= now)?;
            if self.assignment.max_connections.is_some() {
                let user = self.troupe.as_ref()?.players.user_of(next.player);
                if !self.may_connect_to(target(user, self.idle.len())) {
                    return None;
                }
            }
            // Asking for thousands takes a while, which is no host's doing.
            self.worked = true;
            let Self { troupe: Some(troupe), sink, supply, .. } = self else { return None };
            let Troupe { players, run, cues, .. } = &mut **troupe;
            let Some(act) =
                players.pop(now, &mut |event| note(&event, &run.scripts, sink, supply, cues))
            else {
                continue;
            };
            match run.gates.admit(act.cost(), now) {
                Ok(()) => return Some(self.begin_act(act, now)),
                Err(blocked) => {
                    let player = act.who.player;
                    players.block(player, now, blocked, &mut |event| {
                        note(&event, &run.scripts, sink, supply, cues)
                    });
                }
            }
        }
        None
    }

    /// Numbers a request that may leave, puts it together and writes down what it is.
    fn begin_act(&mut self, mut act: Act, now: RunNanos) -> Exchange {
        let servers = self.idle.len();
        let Self { troupe: Some(troupe), sink, supply, .. } = self else {
            unreachable!("acts are those of a troupe")
        };
        let is_dear = troupe.run.gates.is_dearer(act.cost());
        let request = troupe.run.gates.number_request();
        if request.0 == 0 {
            // Nobody has sent before it what all share.
            act.ideal_cached = 0;
        }
        troupe.players.begun(act.who.player, request, now);
        let target = target(act.who.user, servers);
        let composed = supply.compose(request, &act, target);
        let flight = Flight { act, begun: now, tokens_at: None, tokens: 0, usage: None };
        troupe.in_flight.insert(request, flight);
        let marks = [
            (act.turn.wait.from == From::Start, StepFlags::FROM_START),
            (act.base_played, StepFlags::BASE_PLAYED),
            (is_dear, StepFlags::OVER_BUDGET),
            (composed.reply_replaced, StepFlags::REPLY_REPLACED),
            (composed.streams, StepFlags::STREAMED),
        ];
        let marks = marks.into_iter().filter(|(is_set, _)| *is_set);
        sink.push(&Record::Step {
            request,
            template: act.turn.record,
            session: act.who.session,
            after: act.after,
            body_bytes: composed.body_bytes,
            ideal_cached: Some(act.ideal_cached),
            ideal_set: Some(act.ideal_set),
            flags: marks.fold(StepFlags::default(), |all, (_, mark)| all.with(mark)),
        });
        troupe.cues.tell(Heard::Sent { at: now, user: act.who.user, record: act.turn.record });
        Exchange {
            due: Some(act.due),
            streaming: Some(composed.streams),
            ..Exchange::new(Ready { at: act.at, request })
        }
    }

    /// A user's request has ended.
    pub(super) fn end_act(&mut self, request: RequestIndex, time: RunNanos, class: Class) {
        let Self { troupe: Some(troupe), sink, supply, released, .. } = self else { return };
        let Troupe { players, run, cues, in_flight } = &mut **troupe;
        let Some(flight) = in_flight.remove(&request) else { return };
        let well = class == Class::Ok;
        if let Some(usage) = flight.usage {
            supply.reply_tokens(request, usage);
        }
        supply.ended(request, well);
        run.gates.ended(flight.tokens_at.is_some());
        cues.tell(Heard::Ended {
            at: time,
            user: flight.act.who.user,
            record: flight.act.turn.record,
            class,
            tokens: flight.answer_tokens(),
            decode_ns: flight.tokens_at.map_or(0, |(first, last)| last.0 - first.0),
            had_first_token: flight.tokens_at.is_some(),
        });
        players.end(flight.act.who.player, request, time, well, &mut |event| {
            note(&event, &run.scripts, sink, supply, cues)
        });
        *released = true;
    }
}

/// The server of a user, of so many: users take them in turn and stay with theirs.
fn target(user: u32, servers: usize) -> u16 {
    let servers = u32::try_from(servers.max(1)).expect("a plan has u16 targets");
    u16::try_from(user.wrapping_sub(1) % servers).expect("below the number of targets")
}

/// Writes down what happened to a player, and tells the director what it wants to know.
fn note(event: &Event, scripts: &Scripts, sink: &mut Sink, supply: &mut Supply, cues: &Cues) {
    let (who, time, event) = match *event {
        Event::Started { who, at, parent, number, cue, copy } => {
            let part = &scripts.scripts[who.conversation as usize].parts[usize::from(who.part)];
            let copy = u16::try_from(copy).unwrap_or(u16::MAX);
            let event = UserEvent::Started { template: part.session, cue, copy };
            sink.push(&Record::User { session: who.session, time: at, event, parent, number });
            if parent.is_some() {
                cues.tell(Heard::AgentEntered { at, user: who.user });
            }
            return;
        }
        Event::Left { who, at, cue, how } => {
            let (user, conversation) = (who.user, who.conversation);
            cues.tell(Heard::Left { at, user, conversation, cue, how });
            return;
        }
        Event::Completed { who, at, done, total } => {
            (who, at, UserEvent::Completed { done, total })
        }
        Event::Truncated { who, at, done, total } => {
            (who, at, UserEvent::Truncated { done, total })
        }
        Event::Stopped { who, at, done, total } => (who, at, UserEvent::Stopped { done, total }),
        Event::Limited { who, at, why, backoff_ns } => {
            let until = RunNanos(at.0.saturating_add(backoff_ns));
            cues.tell(Heard::Limited { at, until });
            let backoff_ns = backoff_ns.max(0).cast_unsigned();
            (who, at, UserEvent::Limited { by: limited_by(why), backoff_ns })
        }
    };
    if !matches!(event, UserEvent::Limited { .. }) {
        supply.leave(who.player);
        if who.part > 0 {
            cues.tell(Heard::AgentLeft { at: time, user: who.user });
        }
    }
    sink.push(&Record::User { session: who.session, time, event, parent: None, number: 0 });
}

/// What blocked a request, as the log names it.
const fn limited_by(why: Why) -> LimitedBy {
    match why {
        Why::Prefill => LimitedBy::Prefill,
        Why::Decode => LimitedBy::Decode,
        Why::Concurrency => LimitedBy::Concurrency,
        Why::Ttft => LimitedBy::Ttft,
        Why::InputTokens => LimitedBy::InputBudget,
        Why::OutputTokens => LimitedBy::OutputBudget,
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::rc::Rc;
    use std::sync::atomic::{AtomicI64, AtomicU8};

    use super::super::counters::Counters;
    use super::super::driver::DriverKind;
    use super::super::sink::Exchange as Blocks;
    use super::super::transitions::{burst, job};
    use super::super::{Assignment, Shared};
    use super::*;
    use crate::clock::monotonic_ns;
    use crate::pacer::Alarm;
    use crate::plan::{ScriptOptions, scripts, templates};
    use crate::policy::admission::Limits;
    use crate::policy::options::ReplyMode;
    use crate::policy::players::Entrance;
    use crate::render::RenderOptions;
    use crate::render::supply::Source;
    use crate::render::users::{SceneOptions, Scenes};
    use crate::trace::{TraceOptions, read};

    const USERS: usize = 600;

    /// A core whose users play one request each, one at a time.
    fn crowd(listener: &TcpListener) -> (Assignment, Arc<Shared>, Arc<UserRun>) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let text = r#"{"models":[],"requests":[{"t":0,"in":64,"out":1,"hash_ids":[1]}]}"#;
        std::fs::write(folder.path().join("c.json"), text).expect("written");
        let trace = read(folder.path(), &TraceOptions::default()).expect("reads");
        let scripts = Arc::new(scripts(&trace, &ScriptOptions::default()).expect("played"));
        let scene = SceneOptions {
            reply: ReplyMode::Recorded,
            stream_all: false,
            tool_role: false,
            cores: 1,
            users: USERS,
            players: USERS,
        };
        let scenes = Scenes::new(&trace, &scripts, &RenderOptions::default(), scene);
        let limits = Limits { concurrent: 1, ..Limits::default() };
        let run = Arc::new(UserRun {
            gates: Arc::new(Gates::new(limits, 0)),
            cues: vec![Arc::new(Cues::default())],
            users_per_core: USERS,
            seed: 1,
            over: AtomicBool::new(false),
            expired: AtomicBool::new(false),
            scripts: Arc::clone(&scripts),
        });
        let (assignment, _planned) = job(listener, &burst(1));
        let shared = Shared {
            plan: Arc::new(templates(&trace, &scripts)),
            source: Source::Users(Arc::new(scenes.expect("they fit"))),
            users: Some(Arc::clone(&run)),
            zero_ns: AtomicI64::new(Shared::NO_ZERO),
            stop: AtomicU8::new(Stop::No as u8),
        };
        (assignment, Arc::new(shared), run)
    }

    #[test]
    fn a_crowd_that_is_held_back_asks_in_turns_and_is_no_stall_of_the_host() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port on loopback");
        let (assignment, shared, run) = crowd(&listener);
        let driven = DriverKind::Epoll.block_on(async move {
            let blocks = Arc::new(Blocks::new(CoreIndex(0), 4));
            let core = Core::new(
                assignment,
                Arc::clone(&shared.plan),
                Supply::of(&shared.source, CoreIndex(0)),
                Some(Box::new(Troupe::new(&run, CoreIndex(0)))),
                Arc::new(Counters::new()),
                Sink::new(blocks),
                Rc::new(Alarm::new().expect("a timer")),
            );
            let mut core = core.borrow_mut();
            core.start(monotonic_ns());
            for user in (1..).take(USERS) {
                let session = SessionIndex(user);
                let at = RunNanos(0);
                let entrance =
                    Entrance { user, session, conversation: 0, cue: 0, at, copy: user - 1 };
                run.cues[0].entrances.push(entrance).expect("room");
            }
            core.let_users_in();
            let now = core.now();
            assert!(core.next_act(now).is_some(), "the first may send");
            let mut waiting = Vec::new();
            for _ in 0..3 {
                core.worked = false;
                assert!(core.next_act(now).is_none() && core.worked);
                waiting.push(core.next_due().is_some_and(|due| due <= now));
            }
            assert_eq!(waiting, [true, true, false]);
        });
        driven.expect("the driver runs");
    }
}
