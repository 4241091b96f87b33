//! Where each request of a conversation belongs: its session, its turn, its instant.
//!
//! The conversation and every sub-agent with entries is a session of its own. Requests of a
//! sub-agent count from its start, unless its first request's time is not smaller than that start:
//! then they count from where it counts from itself, as other tools write them. Block ids beyond a
//! prompt's length are left out and counted: an old release has three ids for eight tokens.

use onbeat_shared::trace::agentic::{Agentic, Conversation, Entry};
use onbeat_shared::units::{SessionIndex, TraceNanos};

use crate::trace::agentic::file::Found;

/// A sub-agent without a time.
pub(super) const NO_TIME: i64 = i64::MIN;

/// Places a conversation's requests and adds it to the file's.
pub(super) fn place(found: &mut Found, mut conversation: Conversation, block_tokens: u32) {
    let name = conversation.id.clone();
    conversation.session = session(&mut found.names, name.clone());
    let mut placing = Placing { found, next_row: 1, block_tokens };
    // The rows of a file's conversations go on from one to the next.
    placing.next_row += u64::from(conversation.records.start);
    placing.list(&conversation.entries, 0, conversation.session, &name);
    found.agentic.conversations.push(conversation);
}

fn session(names: &mut Vec<String>, name: String) -> SessionIndex {
    let session = u32::try_from(names.len()).expect("fewer sessions than list entries");
    names.push(name);
    SessionIndex(session)
}

struct Placing<'a> {
    found: &'a mut Found,
    next_row: u64,
    block_tokens: u32,
}

impl Placing<'_> {
    /// Places the entries of one list, whose times count from `from_ns`.
    fn list(&mut self, entries: &[Entry], from_ns: i64, session: SessionIndex, name: &str) {
        let (mut turn, mut sub_agents, mut last_ns) = (0, 0_u32, from_ns);
        for entry in entries {
            match *entry {
                Entry::Request(record) => {
                    let record = &mut self.found.records[record as usize];
                    record.at = TraceNanos(record.at.0.saturating_add(from_ns));
                    record.row = self.next_row;
                    (record.session, record.turn) = (session, turn);
                    let fitting = record.input_tokens.div_ceil(self.block_tokens);
                    self.found.odd.surplus_ids += u64::from(record.block_count > fitting);
                    record.block_count = record.block_count.min(fitting);
                    last_ns = record.at.0;
                    turn += 1;
                    self.next_row += 1;
                }
                Entry::Group(group) => {
                    let has_entries = !self.found.agentic.groups[group as usize].entries.is_empty();
                    sub_agents += u32::from(has_entries);
                    let name = format!("{name}-SA{sub_agents}");
                    self.group(group as usize, from_ns, last_ns, &name);
                }
            }
        }
    }

    fn group(&mut self, group: usize, from_ns: i64, last_ns: i64, name: &str) {
        let entries = std::mem::take(&mut self.found.agentic.groups[group].entries);
        let given_ns = self.found.agentic.groups[group].at.0;
        let first_ns = entries.iter().find_map(|entry| match *entry {
            Entry::Request(record) => Some(self.found.records[record as usize].at.0),
            Entry::Group(_) => None,
        });
        let absolute = given_ns > 0 && first_ns.is_some_and(|first_ns| first_ns >= given_ns);
        let at_ns = if given_ns == NO_TIME { last_ns } else { given_ns.saturating_add(from_ns) };
        self.found.odd.absolute_groups += u64::from(absolute);
        self.found.agentic.groups[group].at = TraceNanos(at_ns);
        if !entries.is_empty() {
            let session = session(&mut self.found.names, name.to_owned());
            self.found.agentic.groups[group].session = Some(session);
            self.list(&entries, if absolute { from_ns } else { at_ns }, session, name);
        }
        self.found.agentic.groups[group].entries = entries;
    }
}

/// Adds so much to every number of a file that others came before.
pub(super) fn shift(agentic: &mut Agentic, records: u32, groups: u32, sessions: u32, file: u32) {
    let list = |entries: &mut Vec<Entry>| {
        for entry in entries {
            match entry {
                Entry::Request(record) => *record += records,
                Entry::Group(group) => *group += groups,
            }
        }
    };
    for conversation in &mut agentic.conversations {
        list(&mut conversation.entries);
        conversation.records.start += records;
        conversation.records.end += records;
        conversation.session.0 += sessions;
        conversation.file = file;
    }
    for group in &mut agentic.groups {
        list(&mut group.entries);
        group.parent = group.parent.map(|parent| parent + groups);
        group.session = group.session.map(|session| SessionIndex(session.0 + sessions));
    }
    for call in &mut agentic.calls {
        call.group = call.group.map(|group| group + groups);
    }
}
