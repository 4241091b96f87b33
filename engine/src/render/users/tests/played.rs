//! Conversations as users play them: with replies of any length, failures, and uses again.

use super::odd::{line, plots};
use super::{
    Act, Arc, Just, Message, Player, Replaced, ReplyMode, RequestIndex, SceneOptions, Scenes,
    Scripts, Sent, Stage, Strategy, Supply, TestCaseError, Turn, UNKNOWN_TOKENS, act, answer,
    cases, common, conversation, options, out, prop, prop_assert, prop_assert_eq, proptest, read,
    rendered, request, scenes, scripted, supply, turns, usage,
};

/// What becomes of a request.
#[derive(Clone, Copy, Debug)]
enum End {
    /// As many tokens as recorded.
    Expected,
    /// So many tokens.
    Tokens(u32),
    /// After some tokens it fails.
    Failed(u32),
    /// With thoughts first.
    Thought(u32),
    /// A tool is called behind the text.
    Tool,
    /// The server does not say how many tokens: one for each event.
    Uncounted(u32),
}

fn ends() -> impl Strategy<Value = End> {
    let tokens = prop::sample::select(vec![0_u32, 1, 2, 5, 9, 40, 300, 2_000]);
    proptest::prop_oneof![
        6 => Just(End::Expected),
        2 => tokens.clone().prop_map(End::Tokens),
        1 => tokens.clone().prop_map(End::Failed),
        1 => tokens.clone().prop_map(End::Thought),
        1 => Just(End::Tool),
        1 => tokens.prop_map(End::Uncounted),
    ]
}

/// Plays a request, and gives what was sent and what was said, if the player keeps that.
fn play(supply: &mut Supply, number: u32, act: &Act, end: End) -> (Sent, Option<String>) {
    let request = RequestIndex(number);
    supply.compose(request, act, 0);
    let sent = out(supply, request);
    if number.is_multiple_of(5) {
        // Its connection had been closed: it goes out once more.
        supply.begin(request);
        supply.hear(request, b"lost", false);
    }
    let heard = supply.begin(request);
    let expected = act.turn.output_tokens;
    let (tokens, well) = match end {
        End::Expected | End::Tool => (expected, true),
        End::Tokens(tokens) | End::Thought(tokens) | End::Uncounted(tokens) => (tokens, true),
        End::Failed(tokens) => (tokens, false),
    };
    let text = answer(tokens);
    if matches!(end, End::Thought(_)) {
        supply.hear(request, b"I think", true);
    }
    if matches!(end, End::Uncounted(_)) {
        for (word, piece) in text.split_inclusive(' ').enumerate() {
            assert!(word < 2_000);
            supply.hear(request, piece.as_bytes(), false);
        }
    } else if tokens > 0 {
        supply.hear(request, text.as_bytes(), false);
    }
    match end {
        End::Thought(_) => supply.reply_tokens(request, usage(tokens + 3, 3)),
        End::Uncounted(_) => {}
        _ => supply.reply_tokens(request, usage(tokens, UNKNOWN_TOKENS)),
    }
    if matches!(end, End::Tool) {
        supply.leave_out(request);
    }
    let streamed = sent.body["stream"] == true;
    let known = streamed || !matches!(end, End::Uncounted(_));
    let fits = text.len() <= 16 * expected as usize + 1_024;
    let kept = heard && well && tokens > 0 && !matches!(end, End::Tool) && known && fits;
    supply.ended(request, well);
    (sent, kept.then_some(text))
}

/// A request that was played: its act, what was sent, and what was said.
struct Played {
    part: u16,
    turn: Turn,
    sent: Sent,
    said: Option<String>,
}

/// Plays a conversation from a cue on, its parts in turns, and checks every prompt.
fn play_all(
    supply: &mut Supply,
    scripts: &Scripts,
    conversation: u32,
    ends: &[End],
    (skipped, copy): (usize, u32),
) -> Result<Vec<Played>, TestCaseError> {
    let mut played: Vec<Played> = Vec::new();
    for (number, (part, turn)) in (0_u32..).zip(turns(scripts, conversation as usize)) {
        if part == 0 && (number as usize) < skipped {
            continue;
        }
        let act = act(scripts, conversation, part, turn, copy);
        let end = ends[number as usize % ends.len()];
        let (sent, said) = play(supply, number + 10_000 * conversation, &act, end);
        prop_assert_eq!(sent.words().len(), turn.input_tokens as usize, "{:?}", sent.roles());
        prop_assert!(sent.messages.last().is_some_and(|(role, _)| role != "assistant"));
        prop_assert!(sent.messages.windows(2).all(|pair| pair[0].0 != pair[1].0));
        check_base(&played, part, &turn, &sent)?;
        played.push(Played { part, turn, sent, said });
    }
    Ok(played)
}

/// A prompt that goes on from a whole one of its player repeats all of it, and what was said.
fn check_base(played: &[Played], part: u16, turn: &Turn, sent: &Sent) -> Result<(), TestCaseError> {
    let Some(base) = turn.base.filter(|base| base.whole) else { return Ok(()) };
    let Some(old) = played.iter().find(|old| old.turn.record == base.record) else {
        return Ok(());
    };
    if old.part != part || old.turn.has_blocks != turn.has_blocks {
        return Ok(());
    }
    let words = common(&old.sent.words(), &sent.words());
    prop_assert_eq!(words, old.turn.input_tokens as usize, "all of it is repeated");
    let said: Option<&Message> = sent.messages.get(old.sent.messages.len());
    let Some(text) = &old.said else { return Ok(()) };
    let tokens = u32::try_from(text.split_whitespace().count()).expect("few");
    let left = turn.input_tokens - old.turn.input_tokens;
    if tokens < left && old.turn.input_tokens > WARM.min(turn.input_tokens) {
        prop_assert_eq!(&sent.messages[..old.sent.messages.len()], &old.sent.messages[..]);
        prop_assert_eq!(said.map(|said| said.0.as_str()), Some("assistant"));
        prop_assert_eq!(said.map(|said| &said.1), Some(text));
    }
    Ok(())
}

/// No prefix is longer in these conversations.
const WARM: u32 = 200;

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn prompts_have_their_words_whatever_the_server_says(
        plot in plots(), ends in prop::collection::vec(ends(), 1..20), skipped in 0_usize..6,
        copy in 0_u32..3, share in prop::sample::select(vec![0.0, 0.5, 1.0]),
    ) {
        let trace = read(&[plot.write("one"), plot.write("two")]);
        let scripts = scripted(&trace, share);
        let scenes = scenes(&trace, &scripts, ReplyMode::Live);
        let mut supply = supply(&scenes);
        for conversation in [0, 1] {
            let played = play_all(&mut supply, &scripts, conversation, &ends, (skipped, copy))?;
            for part in 0..100 {
                supply.leave(Player(part));
            }
            let expected = ends.iter().all(|end| matches!(end, End::Expected));
            let replaced = supply.replaced().expect("users");
            prop_assert!(!expected || replaced.all() == replaced.too_long, "{replaced:?}");
            prop_assert!(played.len() <= scripts.scripts[0].requests as usize);
        }
        check_free(&supply);
    }

    #[test]
    fn a_conversation_used_again_shares_only_what_all_share(
        plot in plots(), copy in 1_u32..9, share in prop::sample::select(vec![0.0, 0.5]),
        reply in prop::sample::select(vec![ReplyMode::Live, ReplyMode::Recorded]),
    ) {
        let trace = read(&[plot.write("one")]);
        let scripts = scripted(&trace, share);
        let scenes = scenes(&trace, &scripts, reply);
        let ends = [End::Expected];
        let first = play_all(&mut supply(&scenes), &scripts, 0, &ends, (0, 0))?;
        let again = play_all(&mut supply(&scenes), &scripts, 0, &ends, (0, copy))?;
        for (first, again) in first.iter().zip(&again) {
            let shared = common(&first.sent.words(), &again.sent.words());
            let warm = if first.turn.has_blocks { scripts.warm_tokens } else { 0 };
            if plot.global {
                prop_assert_eq!(shared, first.turn.input_tokens as usize);
            } else {
                // A word may be the same by chance.
                prop_assert!(shared <= warm.min(first.turn.input_tokens) as usize + 1);
            }
            let name = format!("#{}\r\n", copy + 1);
            prop_assert!(again.sent.head.contains(&name), "{}", again.sent.head);
        }
    }
}

/// All room for replies is free again.
fn check_free(supply: &Supply) {
    let Supply::Users(stage) = supply else { panic!("users") };
    assert_eq!(stage.held(), (0, 0));
}

fn linear(inputs: &[(u32, u32)], reply: ReplyMode) -> (Scripts, Arc<Scenes>) {
    let trace = read(&[conversation("one", "local", 0, &line(inputs))]);
    let scripts = scripted(&trace, 0.0);
    let scenes = scenes(&trace, &scripts, reply);
    (scripts, scenes)
}

fn lengths(sent: &Sent) -> Vec<usize> {
    sent.messages.iter().map(|(_, text)| text.split_whitespace().count()).collect()
}

#[test]
fn the_users_words_make_up_for_what_a_reply_has_more_or_less() {
    let (scripts, scenes) = linear(&[(40, 10), (90, 10), (140, 10), (190, 10)], ReplyMode::Live);
    let mut supply = supply(&scenes);
    let turns = turns(&scripts, 0);
    let ends = [End::Tokens(3), End::Tokens(30), End::Expected, End::Expected];
    let mut all = Vec::new();
    for (number, (&(part, turn), end)) in (0..).zip(turns.iter().zip(ends)) {
        let act = act(&scripts, 0, part, turn, 0);
        all.push(lengths(&play(&mut supply, number, &act, end).0));
    }
    let last = vec![40, 3, 47, 30, 20, 10, 40];
    assert_eq!(all, [vec![40], last[..3].to_vec(), last[..5].to_vec(), last]);
    let replaced = supply.replaced().expect("users");
    // Nobody repeats the last one.
    assert_eq!(replaced, Replaced { kept: 3, ..Replaced::default() });
}

#[test]
fn what_cannot_be_repeated_gives_way_to_recorded_words_and_is_counted() {
    let inputs: Vec<(u32, u32)> = (1..=8).map(|turn| (turn * 50, 10)).collect();
    let (scripts, scenes) = linear(&inputs, ReplyMode::Live);
    let mut supply = supply(&scenes);
    let ends = [
        End::Failed(5),
        End::Tokens(0),
        End::Tool,
        End::Tokens(50),
        End::Thought(0),
        End::Uncounted(0),
        End::Expected,
        End::Expected,
    ];
    let mut last = Vec::new();
    for (number, (&(part, turn), end)) in (0..).zip(turns(&scripts, 0).iter().zip(ends)) {
        let act = act(&scripts, 0, part, turn, 0);
        let (sent, _) = play(&mut supply, number, &act, end);
        last = lengths(&sent);
    }
    assert_eq!(last, [50, 10, 40, 10, 40, 10, 40, 10, 40, 10, 40, 10, 40, 10, 40]);
    let expected =
        Replaced { failed: 1, empty: 3, partial: 1, too_long: 1, kept: 2, ..Replaced::default() };
    let replaced = supply.replaced().expect("users");
    assert_eq!((replaced, replaced.all()), (expected, 6));
}

#[test]
fn without_room_for_replies_recorded_words_stand_for_them() {
    let trace = read(&[conversation("one", "local", 0, &line(&[(40, 10), (90, 10), (140, 10)]))]);
    let scripts = scripted(&trace, 0.0);
    // A quarter of it is for replies: pages for two.
    let render = super::RenderOptions { budget_bytes: Some(9_000), ..rendered() };
    let options = SceneOptions { users: 9, players: 1, ..options(ReplyMode::Live) };
    let scenes = Arc::new(Scenes::new(&trace, &scripts, &render, options).expect("it fits"));
    assert_eq!(scenes.reserved_bytes(), 2_048);
    let mut supply = supply(&scenes);
    let turns = turns(&scripts, 0);
    // A word is longer than a page.
    let long = "x".repeat(1_100);
    for (number, &(part, turn)) in (0..).zip(&turns) {
        let request = RequestIndex(number);
        let mut act = act(&scripts, 0, part, turn, 0);
        act.who.player = Player(0);
        supply.compose(request, &act, 0);
        let sent = out(&supply, request);
        assert_eq!(sent.words().len(), turn.input_tokens as usize);
        assert_eq!(sent.messages.iter().any(|(_, text)| *text == long), number > 0);
        supply.begin(request);
        supply.hear(request, long.as_bytes(), false);
        supply.reply_tokens(request, usage(1, UNKNOWN_TOKENS));
        assert_eq!(supply.is_cut(request), number == 1);
        supply.ended(request, true);
    }
    let replaced = supply.replaced().expect("users");
    assert_eq!((replaced.kept, replaced.cut), (1, 1));
}

#[test]
fn replies_that_nobody_repeats_any_more_are_forgotten() {
    // The second half starts anew, so that the replies of the first are not needed.
    let mut entries = line(&[(40, 10), (90, 10), (140, 10)]);
    let ids = |count: u64| (101..=100 + count).collect::<Vec<_>>();
    entries.extend([request(48, 10, &ids(6), ""), request(96, 10, &ids(12), "")]);
    let trace = read(&[conversation("one", "local", 0, &entries)]);
    let scripts = scripted(&trace, 0.0);
    let scenes = scenes(&trace, &scripts, ReplyMode::Live);
    let mut supply = supply(&scenes);
    let kept = |supply: &Supply| {
        let Supply::Users(stage) = supply else { panic!("users") };
        stage.held().0
    };
    let mut all = Vec::new();
    for (number, &(part, turn)) in (0..).zip(&turns(&scripts, 0)) {
        play(&mut supply, number, &act(&scripts, 0, part, turn, 0), End::Expected);
        all.push(kept(&supply));
    }
    assert_eq!(all, [1, 2, 0, 1, 0]);
    check_free(&supply);
}

#[test]
fn a_request_that_is_not_out_has_no_bytes() {
    let (scripts, scenes) = linear(&[(40, 10), (90, 10)], ReplyMode::Live);
    let mut stage = Stage::new(&scenes);
    let (part, turn) = turns(&scripts, 0)[0];
    stage.compose(RequestIndex(3), &act(&scripts, 0, part, turn, 0), 0);
    assert!(stage.request_bytes(RequestIndex(3)) > 0);
    for request in [RequestIndex(3), RequestIndex(4)] {
        stage.ended(request, true);
        stage.hear(request, b"late", false);
        assert!(!stage.begin(request) && stage.pieces(request).is_none());
        assert_eq!(stage.request_bytes(request), 0);
    }
}

#[test]
fn a_long_conversation_is_sent_in_as_many_goes_as_it_takes() {
    let inputs: Vec<(u32, u32)> = (1..=120).map(|turn| (turn * 50, 10)).collect();
    let (scripts, scenes) = linear(&inputs, ReplyMode::Live);
    let mut supply = supply(&scenes);
    for (number, &(part, turn)) in (0..).zip(&turns(&scripts, 0)) {
        let act = act(&scripts, 0, part, turn, 0);
        let (sent, _) = play(&mut supply, number, &act, End::Expected);
        assert_eq!(sent.messages.len(), 2 * number as usize + 1);
    }
    let (part, turn) = turns(&scripts, 0)[119];
    let request = RequestIndex(1_000);
    // The player has heard all of it, and nothing of its last reply.
    supply.compose(request, &act(&scripts, 0, part, turn, 0), 0);
    assert_eq!(supply.parts(request).len(), 4, "all was forgotten with the last request");
}
