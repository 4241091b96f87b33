//! Recorded prompts of generated conversations: as long as they say, and shared as their ids are.

use super::{
    Act, BLOCK, Cue, Entry, HashMap, Just, ReplyMode, Scenes, Scope, Scripts, Sent, Strategy,
    TestCaseError, Trace, act, agent, any, cases, common, conversation, out, prop, prop_assert,
    prop_assert_eq, proptest, read, request, scenes, scripted, supply, turns,
};
use super::{RequestIndex, Turn};

/// How a request follows from those before it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// The one before and more.
    Grow(u32),
    /// The one before again.
    Same,
    /// A part of an earlier one, and more.
    Back { to: u32, percent: u32, more: u32 },
    /// A sub-agent's requests begin or end here.
    Agent(bool),
}

/// Which ids a file writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ids {
    Floor,
    Ceiling,
    Three,
    None,
}

/// A conversation before it is written down.
#[derive(Clone, Debug)]
pub(super) struct Plot {
    pub(super) steps: Vec<(Step, Ids, u32)>,
    pub(super) global: bool,
    pub(super) prefix: u32,
}

pub(super) fn plots() -> impl Strategy<Value = Plot> {
    let step = prop_oneof();
    let ids = (0..20_u32).prop_map(|draw| match draw {
        0 => Ids::Three,
        1 => Ids::None,
        2 | 3 => Ids::Ceiling,
        _ => Ids::Floor,
    });
    let steps = prop::collection::vec((step, ids, 0..40_u32), 1..40);
    (steps, any::<bool>(), prop::sample::select(vec![0, 0, 5, 30, 200]))
        .prop_map(|(steps, global, prefix)| Plot { steps, global, prefix })
}

fn prop_oneof() -> impl Strategy<Value = Step> {
    let small = prop::sample::select(vec![0_u32, 1, 3, 7, 8, 9, 16, 50, 300]);
    let back = (0..40_u32, 0..=100_u32, small.clone()).prop_map(|(to, percent, more)| Step::Back {
        to,
        percent,
        more,
    });
    proptest::prop_oneof![
        6 => small.prop_map(Step::Grow),
        1 => Just(Step::Same),
        2 => back,
        1 => any::<bool>().prop_map(Step::Agent),
    ]
}

/// Writes requests down; ids are those of the tokens up to each block's end.
#[derive(Default)]
struct Writer {
    tokens: Vec<Vec<u64>>,
    fresh: u64,
    ids: HashMap<Vec<u64>, u64>,
}

impl Writer {
    fn next(&mut self, step: Step) -> Vec<u64> {
        let last = self.tokens.last().cloned().unwrap_or_default();
        let (mut tokens, more) = match step {
            Step::Grow(more) => (last, more),
            Step::Same | Step::Agent(_) => (last, 0),
            Step::Back { to, percent, more } => {
                let all = self.tokens.len().max(1);
                let mut from = self.tokens.get(to as usize % all).cloned().unwrap_or_default();
                from.truncate(from.len() * percent as usize / 100);
                (from, more)
            }
        };
        tokens.extend((0..u64::from(more)).map(|token| self.fresh + token));
        self.fresh += u64::from(more);
        tokens
    }

    fn write(&mut self, step: Step, ids: Ids, output: u32) -> String {
        let tokens = self.next(step);
        let full = tokens.len() / BLOCK as usize;
        let ends = (1..=full).map(|block| block * BLOCK as usize);
        let ends = ends.chain((ids == Ids::Ceiling).then_some(tokens.len()));
        let mut written: Vec<u64> = Vec::new();
        for end in ends.filter(|&end| end > 0) {
            let next = self.ids.len() as u64 + 1;
            written.push(*self.ids.entry(tokens[..end].to_vec()).or_insert(next));
        }
        written.dedup();
        match ids {
            Ids::Three => written.truncate(3),
            Ids::None => written.clear(),
            Ids::Floor | Ids::Ceiling => {}
        }
        let input = u32::try_from(tokens.len()).expect("few");
        self.tokens.push(tokens);
        let more = match output % 3 {
            0 => ",\"input_types\":[\"tool_result\"],\"type\":\"n\"",
            _ => "",
        };
        request(input, output, &written, more)
    }
}

impl Plot {
    pub(super) fn write(&self, id: &str) -> String {
        let mut writer = Writer::default();
        // Lists that are open, the conversation's first.
        let mut open: Vec<Vec<String>> = vec![Vec::new()];
        for &(step, ids, output) in &self.steps {
            match step {
                Step::Agent(true) if open.len() < 3 => open.push(Vec::new()),
                Step::Agent(_) => close(&mut open),
                _ => {
                    let text = writer.write(step, ids, output);
                    open.last_mut().expect("the conversation's").push(text);
                }
            }
        }
        while open.len() > 1 {
            close(&mut open);
        }
        let mut entries = open.remove(0);
        if !entries.iter().any(|entry| entry.starts_with("{\"t\"")) {
            entries.push(request(20, 3, &[], ""));
        }
        let scope = if self.global { "global" } else { "local" };
        conversation(id, scope, self.prefix, &entries)
    }

    /// Whether ids say all of what prompts share.
    fn is_told(&self) -> bool {
        self.steps.iter().all(|(_, ids, _)| matches!(ids, Ids::Floor | Ids::Ceiling))
    }
}

fn close(open: &mut Vec<Vec<String>>) {
    if open.len() > 1 {
        let entries = open.pop().expect("more than one");
        open.last_mut().expect("one is left").push(agent("a", &entries));
    }
}

/// What is sent for every record when all is as recorded.
fn bodies(trace: &Trace, scenes: &Scenes) -> Vec<Sent> {
    let body = |record: u32| {
        let mut body = Vec::new();
        scenes.append_body(record, &mut body);
        Sent::of_body(std::str::from_utf8(&body).expect("UTF-8"))
    };
    (0..).take(trace.records.len()).map(body).collect()
}

fn check_lengths(trace: &Trace, scripts: &Scripts, sent: &[Sent]) -> Result<(), TestCaseError> {
    let warm: Vec<&str> = sent.iter().map(Sent::words).max_by_key(Vec::len).unwrap_or_default();
    for (record, sent) in trace.records.iter().zip(sent) {
        prop_assert_eq!(sent.words().len(), record.input_tokens as usize);
        prop_assert_eq!(sent.messages[0].0.as_str(), "user");
        prop_assert!(sent.messages.last().is_some_and(|(role, _)| role != "assistant"));
        prop_assert!(sent.messages.windows(2).all(|pair| pair[0].0 != pair[1].0));
        let all =
            sent.messages.len() == 1 || sent.messages.iter().all(|(_, text)| !text.is_empty());
        prop_assert!(all, "only the only message may be empty");
        if record.block_count > 0 && warm.len() >= scripts.warm_tokens as usize {
            let shared = (scripts.warm_tokens.min(record.input_tokens)) as usize;
            let longest = trace.records.iter().max_by_key(|record| record.input_tokens);
            if longest.is_some_and(|record| record.block_count > 0) {
                prop_assert_eq!(&sent.words()[..shared], &warm[..shared]);
            }
        }
    }
    Ok(())
}

fn check_sharing(
    trace: &Trace,
    warm: u32,
    sent: &[Sent],
    is_told: bool,
) -> Result<(), TestCaseError> {
    for (one, own) in trace.records.iter().zip(sent) {
        let words = own.words();
        for (other, its) in trace.records.iter().zip(sent) {
            let blocks = trace.blocks_of(one).common_prefix(trace.blocks_of(other));
            let shared = common(&words, &its.words());
            let tokens = blocks * BLOCK as usize;
            let most = one.input_tokens.min(other.input_tokens) as usize;
            prop_assert!(shared >= tokens.min(most), "{shared} of {tokens}");
            let both = blocks < one.block_count.min(other.block_count) as usize;
            if is_told && both {
                // A word may be the same by chance.
                let end = (tokens + BLOCK as usize).max(warm as usize + BLOCK as usize);
                prop_assert!(shared < end + 2, "{shared} of {tokens}");
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn prompts_have_their_words_and_share_what_their_ids_do(
        plot in plots(), share in prop::sample::select(vec![0.0, 0.5, 1.0]),
    ) {
        let trace = read(&[plot.write("one")]);
        let scripts = scripted(&trace, share);
        let scenes = scenes(&trace, &scripts, ReplyMode::Recorded);
        let sent = bodies(&trace, &scenes);
        check_lengths(&trace, &scripts, &sent)?;
        check_sharing(&trace, scripts.warm_tokens, &sent, plot.is_told())?;
        let mut supply = supply(&scenes);
        for (number, (part, turn)) in (0..).zip(turns(&scripts, 0)) {
            let act: Act = act(&scripts, 0, part, turn, 0);
            supply.compose(RequestIndex(number), &act, 0);
            prop_assert!(!supply.begin(RequestIndex(number)));
            let shown = &sent[turn.record as usize];
            prop_assert_eq!(&out(&supply, RequestIndex(number)).messages, &shown.messages);
            supply.ended(RequestIndex(number), number % 2 == 0);
        }
    }

    #[test]
    fn other_conversations_share_what_their_scope_says(plot in plots(), global in any::<bool>()) {
        let plot = Plot { global, ..plot };
        let trace = read(&[plot.write("one"), plot.write("two")]);
        let scripts = scripted(&trace, 0.5);
        let scenes = scenes(&trace, &scripts, ReplyMode::Recorded);
        let sent = bodies(&trace, &scenes);
        let half = sent.len() / 2;
        let agentic = trace.recorded.agentic.as_ref().expect("conversations");
        let scope = agentic.conversations[0].scope;
        prop_assert_eq!(scope == Scope::Global, global);
        for (place, (one, other)) in sent[..half].iter().zip(&sent[half..]).enumerate() {
            let record = &trace.records[place];
            let warm = if record.block_count > 0 { scripts.warm_tokens } else { 0 };
            let shared = common(&one.words(), &other.words());
            if global {
                let tokens = record.input_tokens.min(record.block_count * BLOCK);
                if plot.is_told() {
                    prop_assert!(shared >= tokens as usize, "{shared} of {tokens}");
                }
            } else {
                prop_assert!(shared <= warm.min(record.input_tokens) as usize + 1);
            }
        }
    }
}

/// Requests of a linear conversation: each the one before, `more` tokens and what was said.
pub(super) fn line(inputs: &[(u32, u32)]) -> Vec<String> {
    inputs
        .iter()
        .map(|&(input, output)| {
            let ids: Vec<u64> = (1..=u64::from(input / BLOCK)).collect();
            request(input, output, &ids, "")
        })
        .collect()
}

#[test]
fn a_block_has_its_own_words_also_where_a_prompt_ended_in_the_middle_of_it() {
    let entries = line(&[(20, 5), (50, 5), (103, 9)]);
    let trace = read(&[conversation("one", "local", 0, &entries)]);
    let scripts = scripted(&trace, 0.0);
    let scenes = scenes(&trace, &scripts, ReplyMode::Recorded);
    let sent = bodies(&trace, &scenes);
    let mut expected = Vec::new();
    for id in 1..=12 {
        let key = crate::prompt::TextKey::block(0, crate::prompt::scope(0, 1), id);
        key.append(BLOCK as usize, &mut expected);
    }
    let expected = String::from_utf8(expected).expect("UTF-8");
    let expected: Vec<&str> = expected.split_whitespace().collect();
    for sent in &sent {
        let known = sent.words().len().min(96);
        assert_eq!(sent.words()[..known], expected[..known]);
    }
    let lengths = |sent: &Sent| {
        let words = |(_, text): &(String, String)| text.split_whitespace().count();
        sent.messages.iter().map(words).collect::<Vec<_>>()
    };
    let all: Vec<Vec<usize>> = sent.iter().map(lengths).collect();
    assert_eq!(all, [vec![20], vec![20, 5, 25], vec![20, 5, 25, 5, 48]]);
    // One slice holds all of it.
    let mut supply = supply(&scenes);
    let (part, turn): (u16, Turn) = turns(&scripts, 0)[2];
    supply.compose(RequestIndex(7), &act(&scripts, 0, part, turn, 0), 0);
    assert_eq!(supply.parts(RequestIndex(7)).len(), 4);
    let entries = &trace.recorded.agentic.as_ref().expect("one").conversations[0].entries;
    assert!(matches!(entries[..], [Entry::Request(0), _, _]));
    assert!(matches!(scripts.scripts[0].parts[0].cues[..], [Cue::Request(_), _, _]));
}
