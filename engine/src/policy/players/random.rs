//! Random conversations, users, waits, failures and back-offs against plain rules: every request is
//! played once and in order, nothing is ready before its time, nobody goes on without the
//! sub-agents that it waits for, and nobody is left at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use onbeat_shared::units::{RequestIndex, RunNanos, SessionIndex};

use super::tests::{DETACHED, agent, of, request};
use super::*;
use crate::plan::script::{Cue, From, ScriptOptions, Scripts};
use crate::policy::admission::Blocked;

/// A generator that is good enough for tests.
struct Draws(u64);

impl Draws {
    fn below(&mut self, count: u32) -> u32 {
        let Self(state) = self;
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        u32::try_from(*state >> 33).expect("31 bits") % count
    }
}

/// A list of requests and sub-agents, some of them empty.
fn list(draws: &mut Draws, depth: u32) -> Vec<String> {
    let mut t = 0;
    let entries = draws.below(7);
    (0..entries)
        .map(|_| {
            if depth > 0 && draws.below(3) == 0 {
                let more = if draws.below(4) == 0 { DETACHED } else { "" };
                return agent(more, &list(draws, depth - 1));
            }
            t += i64::from(draws.below(20));
            let tokens = if draws.below(25) == 0 { 900 } else { 64 };
            let more = match draws.below(3) {
                0 => String::new(),
                1 => format!(",\"think_time\":{}", draws.below(30)),
                _ => format!(",\"think_time\":{},\"api_time\":{}", draws.below(9), draws.below(9)),
            };
            request(t, tokens, &[1], &more)
        })
        .collect()
}

/// What is known of one player, by user and part.
#[derive(Clone, Copy, Default)]
struct Known {
    /// The next cue.
    cue: u32,
    start: i64,
    last: Option<(i64, i64)>,
    ended: bool,
}

/// The users that are watched, by their rules.
struct Watch {
    scripts: Arc<Scripts>,
    conversation_of: BTreeMap<u32, u32>,
    known: BTreeMap<(u32, u16), Known>,
    played: BTreeSet<(u32, u32)>,
    left: BTreeSet<u32>,
}

impl Watch {
    fn new(scripts: Arc<Scripts>) -> Self {
        Self {
            scripts,
            conversation_of: BTreeMap::new(),
            known: BTreeMap::new(),
            played: BTreeSet::new(),
            left: BTreeSet::new(),
        }
    }

    fn cues(&self, user: u32, part: u16) -> &[Cue] {
        let script = &self.scripts.scripts[self.conversation_of[&user] as usize];
        &script.parts[usize::from(part)].cues
    }

    fn hear(&mut self, event: Event) {
        let who = event.who();
        let key = (who.user, who.part);
        match event {
            Event::Started { cue, at, .. } => {
                let known = Known { cue, start: at.0, ..Known::default() };
                assert!(self.known.insert(key, known).is_none(), "a part starts once");
            }
            Event::Completed { .. } => {
                self.pass(key);
                assert_eq!(self.known[&key].cue as usize, self.cues(key.0, key.1).len());
                self.end(key);
            }
            Event::Truncated { .. } => {
                self.pass(key);
                let cue = self.cues(key.0, key.1)[self.known[&key].cue as usize];
                assert!(cue.turn().expect("a request").too_long);
                self.end(key);
            }
            Event::Limited { .. } | Event::Stopped { .. } => {}
            Event::Left { .. } => {
                let mut own = self.known.range((who.user, 0)..=(who.user, u16::MAX));
                assert!(own.all(|(_, known)| known.ended), "it leaves after its last sub-agent");
                assert!(self.left.insert(who.user), "a user leaves once");
            }
        }
    }

    fn end(&mut self, key: (u32, u16)) {
        let known = self.known.get_mut(&key).expect("it started");
        assert!(!known.ended, "a part ends once");
        known.ended = true;
    }

    /// Goes past sub-agents, which all have to have started, and to have ended if they are waited
    /// for.
    fn pass(&mut self, (user, part): (u32, u16)) {
        let mut cue = self.known[&(user, part)].cue as usize;
        while let Some(own) = self.cues(user, part).get(cue).filter(|own| own.turn().is_none()) {
            if let Cue::Agent { part, detached } = *own {
                let known = self.known.get(&(user, part)).expect("it has started");
                assert!(known.ended || detached, "nobody goes on before its sub-agents have ended");
            }
            cue += 1;
        }
        let known = self.known.get_mut(&(user, part)).expect("it started");
        known.cue = u32::try_from(cue).expect("few");
    }

    fn act(&mut self, act: &Act, now: i64) {
        let key = (act.who.user, act.who.part);
        self.pass(key);
        let known = self.known[&key];
        let turn = *self.cues(key.0, key.1)[known.cue as usize].turn().expect("a request");
        assert_eq!(turn, act.turn, "requests are played in order");
        let own_due = match (known.last, turn.wait.from) {
            (Some((_, end)), From::End) => end + turn.wait.ns,
            (Some((begin, end)), From::Start) => (begin + turn.wait.ns).max(end),
            (None, _) => known.start,
        };
        assert_eq!(act.own_due.0, own_due);
        assert!(act.due.0 >= own_due && now >= act.due.0, "nothing is ready before its time");
    }

    fn begin(&mut self, act: &Act, now: i64) {
        let key = (act.who.user, act.who.part);
        assert!(self.played.insert((key.0, act.turn.record)), "every request is played once");
        self.known.get_mut(&key).expect("it started").last = Some((now, now));
    }

    fn finish(&mut self, act: &Act, now: i64) {
        let known = self.known.get_mut(&(act.who.user, act.who.part)).expect("it started");
        known.last = known.last.map(|(begin, _)| (begin, now));
        known.cue += 1;
    }

    /// What a user has to have played once it has left: all up to what was too long.
    fn expected(&self, user: u32, part: u16, out: &mut BTreeSet<(u32, u32)>) {
        for cue in self.cues(user, part) {
            match cue {
                Cue::Request(turn) if turn.too_long => return,
                Cue::Request(turn) => assert!(out.insert((user, turn.record))),
                Cue::Agent { part, .. } => self.expected(user, *part, out),
                Cue::Nothing => {}
            }
        }
    }
}

/// Plays some users of a random trace to the end.
fn play(seed: u64) {
    let mut draws = Draws(seed);
    let conversations: Vec<_> =
        (0..6).map(|_| [list(&mut draws, 3), vec![request(0, 64, &[1], "")]].concat()).collect();
    let options = ScriptOptions {
        detach_async: true,
        max_context: 800,
        min_requests: 0,
        ..ScriptOptions::default()
    };
    let scripts = Arc::new(of(&conversations, &options));
    let sessions = Arc::new(AtomicU32::new(1_000));
    let mut players = Players::new(Arc::clone(&scripts), 2, seed, sessions);
    let mut watch = Watch::new(scripts);
    let mut flying: Vec<(i64, Act, RequestIndex)> = Vec::new();
    let (mut now, mut next_request) = (0_i64, 0_u32);
    let mut to_come = 1..=12_u32;
    loop {
        if let Some(user) = to_come.next().filter(|_| draws.below(2) == 0 || players.is_empty()) {
            let conversation = draws.below(6);
            watch.conversation_of.insert(user, conversation);
            let at = RunNanos(now + i64::from(draws.below(3)) * 1_000_000_000);
            let session = SessionIndex(user);
            let entrance = Entrance { user, session, conversation, cue: 0, at, copy: 0 };
            players.enter(entrance, RunNanos(now), &mut |event| watch.hear(event));
        }
        let ready = players.peek().map(|next| next.at.0);
        let ends = flying.iter().enumerate().map(|(place, (end, ..))| (*end, place)).min();
        match (ready, ends) {
            (None, None) => break,
            (Some(ready), ends) if ends.is_none_or(|(end, _)| ready <= end) => {
                now = now.max(ready);
                let mut emit = |event| watch.hear(event);
                let Some(act) = players.pop(RunNanos(now), &mut emit) else { continue };
                watch.act(&act, now);
                if draws.below(5) == 0 {
                    let blocked = Blocked { why: Why::Concurrency, turn_at: None };
                    let mut emit = |event| watch.hear(event);
                    let back = players.block(act.who.player, RunNanos(now), blocked, &mut emit);
                    assert!(back.0 > now);
                    continue;
                }
                let request = RequestIndex(next_request);
                next_request += 1;
                players.begun(act.who.player, request, RunNanos(now));
                watch.begin(&act, now);
                flying.push((now + i64::from(draws.below(20)) * 500_000_000, act, request));
            }
            (_, Some((end, place))) => {
                now = now.max(end);
                let (_, act, request) = flying.swap_remove(place);
                watch.finish(&act, now);
                let mut emit = |event| watch.hear(event);
                let well = draws.below(4) > 0;
                players.end(act.who.player, request, RunNanos(now), well, &mut emit);
            }
            (Some(_), None) => unreachable!("taken above"),
        }
    }
    assert!(players.is_empty() && players.users() == 0 && players.players() == 0);
    let mut expected = BTreeSet::new();
    for &user in watch.conversation_of.keys() {
        watch.expected(user, 0, &mut expected);
    }
    assert_eq!(watch.played, expected, "every request is played exactly once");
    assert_eq!(watch.left.len(), watch.conversation_of.len());
}

#[test]
fn any_conversation_in_any_order_of_ends_is_played_by_the_rules() {
    for seed in 0..200 {
        play(seed);
    }
}
