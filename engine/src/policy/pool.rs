//! Which conversation the next user plays.
//!
//! The order is kv-cache-tester's for the same seed: conversations by their ids, shuffled once. It
//! is gone round and round, and takes the first conversation whose id is free: of several with one
//! id, one is taken. With recycling, a conversation is free again once it has been played, and all
//! are when none is, so that there can be more users than conversations. One that is taken again is
//! a copy, which shares no cache with the one before.

use std::collections::HashMap;

use onbeat_shared::trace::Trace;
use serde::{Deserialize, Serialize};

use crate::plan::script::Scripts;
use crate::plan::twister::Twister;

/// A conversation for a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// Its place in the trace.
    pub conversation: u32,
    /// How often it was taken before.
    pub copy: u32,
}

/// The conversations that may be played.
#[derive(Clone, Debug)]
pub struct Pool {
    /// Conversations in the order they are taken.
    order: Vec<u32>,
    /// For each of them, the number of its id.
    ids: Vec<u32>,
    recycle: bool,
    state: PoolState,
}

/// What of a pool changes: enough to go on with another pool of the same trace, options and seed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolState {
    /// How many places of the order were looked at.
    next: u64,
    /// Which ids are free.
    free: Vec<bool>,
    /// How often each place of the order was taken.
    taken: Vec<u32>,
}

impl Pool {
    /// The conversations that scripts say may be played, all of them free.
    ///
    /// # Panics
    /// When the scripts are of another trace.
    #[must_use]
    pub fn new(scripts: &Scripts, trace: &Trace, seed: u64, recycle: bool) -> Self {
        let agentic = trace.recorded.agentic.as_ref();
        let id = |place: u32| {
            let agentic = agentic.expect("scripts are of conversations");
            agentic.conversations[place as usize].id.as_str()
        };
        let places = (0_u32..).zip(&scripts.scripts);
        let all = places.filter(|(_, script)| script.in_pool || script.elsewhere);
        let mut order: Vec<u32> = all.map(|(place, _)| place).collect();
        order.sort_by(|&a, &b| id(a).cmp(id(b)));
        Twister::new(seed).shuffle(&mut order);
        // Each shard takes its own in the order that all of them have in common.
        order.retain(|&place| scripts.scripts[place as usize].in_pool);
        let mut known: HashMap<&str, u32> = HashMap::new();
        let number = |&place: &u32| {
            let next = u32::try_from(known.len()).expect("no more ids than conversations");
            *known.entry(id(place)).or_insert(next)
        };
        let ids: Vec<u32> = order.iter().map(number).collect();
        let free = vec![true; known.len()];
        let state = PoolState { next: 0, free, taken: vec![0; order.len()] };
        Self { order, ids, recycle, state }
    }

    /// Whether there is nothing that could be played.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The next conversation; `None` when all are taken and none is taken twice.
    pub fn take(&mut self) -> Option<Pick> {
        if self.recycle && !self.state.free.contains(&true) {
            self.state.free.fill(true);
        }
        let count = self.order.len() as u64;
        for _ in 0..count {
            let at = usize::try_from(self.state.next % count).expect("a place in memory");
            self.state.next += 1;
            let is_free = &mut self.state.free[self.ids[at] as usize];
            if std::mem::replace(is_free, false) {
                let copy = self.state.taken[at];
                self.state.taken[at] += 1;
                return Some(Pick { conversation: self.order[at], copy });
            }
        }
        None
    }

    /// A conversation has been played: with recycling it is free again.
    pub fn played(&mut self, conversation: u32) {
        let Some(at) = self.order.iter().position(|&own| own == conversation) else { return };
        let is_free = &mut self.state.free[self.ids[at] as usize];
        *is_free = *is_free || self.recycle;
    }

    /// A conversation that was taken is not played after all: it is free again.
    pub fn give_back(&mut self, pick: Pick) {
        let Some(at) = self.order.iter().position(|&own| own == pick.conversation) else { return };
        self.state.free[self.ids[at] as usize] = true;
        self.state.taken[at] = self.state.taken[at].saturating_sub(1);
    }

    /// What of it changes.
    #[must_use]
    pub fn state(&self) -> PoolState {
        self.state.clone()
    }

    /// Goes on where another pool of the same trace, options and seed was.
    pub fn go_on(&mut self, state: &PoolState) {
        self.state = state.clone();
        // Of another trace it is of no use, and should still not be read beyond its end.
        self.state.free.resize(self.ids.iter().max().map_or(0, |&last| last as usize + 1), true);
        self.state.taken.resize(self.order.len(), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::script::{ScriptOptions, scripts};

    /// A trace of conversations with these ids.
    fn trace(ids: &[&str]) -> Trace {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (number, id) in ids.iter().enumerate() {
            let request = "{\"t\":0,\"in\":64,\"out\":1,\"hash_ids\":[1]}";
            let text = format!("{{\"id\":\"{id}\",\"models\":[],\"requests\":[{request}]}}");
            std::fs::write(folder.path().join(format!("{number:03}.json")), text).expect("written");
        }
        crate::trace::read(folder.path(), &crate::trace::TraceOptions::default()).expect("reads")
    }

    fn pool(trace: &Trace, seed: u64, recycle: bool) -> Pool {
        let scripts = scripts(trace, &ScriptOptions::default()).expect("played");
        Pool::new(&scripts, trace, seed, recycle)
    }

    fn name(trace: &Trace, pick: Pick) -> String {
        let agentic = trace.recorded.agentic.as_ref().expect("conversations");
        agentic.conversations[pick.conversation as usize].id.clone()
    }

    fn take_all(trace: &Trace, pool: &mut Pool, count: usize) -> Vec<String> {
        std::iter::from_fn(|| pool.take()).take(count).map(|pick| name(trace, pick)).collect()
    }

    /// The ids of kvct's `tr_small`, in the order of its folder turned round.
    const SMALL: [&str; 8] = [
        "trace_0613",
        "trace_0546",
        "trace_0538",
        "trace_0504",
        "trace_0460",
        "trace_0187",
        "trace_0103",
        "trace_0057",
    ];

    #[test]
    fn conversations_are_taken_in_the_tools_order() {
        let trace = trace(&SMALL);
        let orders = [
            (42, ["0460", "0504", "0546", "0613", "0187"], ["0538", "0057", "0103", "0504"]),
            (7, ["0546", "0613", "0187", "0504", "0057"], ["0460", "0103", "0538", "0613"]),
        ];
        for (seed, five, rest) in orders {
            let mut pool = pool(&trace, seed, false);
            let picks: Vec<Pick> = (0..5).filter_map(|_| pool.take()).collect();
            let names: Vec<String> = picks.iter().map(|&pick| name(&trace, pick)).collect();
            assert_eq!(names, five.map(|id| format!("trace_{id}")), "{seed}");
            // As the oracle does: the second is given back, and comes at the end.
            pool.give_back(picks[1]);
            let taken = take_all(&trace, &mut pool, 9);
            assert_eq!(taken, rest.map(|id| format!("trace_{id}")), "{seed}");
            assert_eq!(pool.take(), None);
        }
    }

    #[test]
    fn with_recycling_what_has_been_played_is_free_again() {
        let trace = trace(&["a", "b", "c", "d"]);
        for recycle in [false, true] {
            let mut pool = pool(&trace, 7, recycle);
            let first = pool.take().expect("free");
            let _second = pool.take().expect("free");
            pool.played(first.conversation);
            let third = pool.take().expect("free");
            let fourth = pool.take().expect("free");
            assert!(third.copy == 0 && fourth.copy == 0, "the order goes on");
            let fifth = pool.take();
            let again = Pick { conversation: first.conversation, copy: 1 };
            assert_eq!(fifth, recycle.then_some(again));
        }
    }

    #[test]
    fn conversations_are_taken_again_only_with_recycling_and_as_copies() {
        let trace = trace(&["a", "b", "c"]);
        let mut once = pool(&trace, 1, false);
        assert_eq!((take_all(&trace, &mut once, 9).len(), once.take()), (3, None));
        let mut again = pool(&trace, 1, true);
        let picks: Vec<Pick> = (0..9).filter_map(|_| again.take()).collect();
        let copies: Vec<u32> = picks.iter().map(|pick| pick.copy).collect();
        assert_eq!(copies, [0, 0, 0, 1, 1, 1, 2, 2, 2]);
        let conversations = |from: usize| -> Vec<u32> {
            picks[from..from + 3].iter().map(|pick| pick.conversation).collect()
        };
        assert_eq!(conversations(0), conversations(3));
        again.give_back(picks[8]);
        assert_eq!(again.take().map(|pick| pick.copy), Some(2), "it was not played");
    }

    #[test]
    fn of_one_id_one_conversation_is_taken() {
        let trace = trace(&["a", "b", "a"]);
        let mut pool = pool(&trace, 3, false);
        let mut names = take_all(&trace, &mut pool, 9);
        names.sort();
        assert_eq!(names, ["a", "b"]);
    }

    #[test]
    fn a_pool_goes_on_where_another_was() {
        let trace = trace(&SMALL);
        let mut first = pool(&trace, 5, true);
        let _ = take_all(&trace, &mut first, 11);
        let text = serde_json::to_string(&first.state()).expect("plain data");
        let mut second = pool(&trace, 5, true);
        second.go_on(&serde_json::from_str(&text).expect("what was written"));
        for _ in 0..20 {
            assert_eq!(first.take(), second.take());
        }
        second.go_on(&PoolState::default());
        assert!(second.take().is_some());
    }
}
