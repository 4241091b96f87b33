//! Putting users' requests together must not allocate, and neither must hearing the replies: both
//! happen on a pacing core between two sends.
//!
//! A binary of its own, because it replaces the global allocator with one that counts.

mod counting;

use std::sync::Arc;

use onbeat::plan::script::Cue;
use onbeat::plan::{ScriptOptions, Scripts, scripts};
use onbeat::policy::options::ReplyMode;
use onbeat::policy::players::{Act, Player, Who};
use onbeat::render::RenderOptions;
use onbeat::render::supply::{Source, Supply};
use onbeat::render::users::{SceneOptions, Scenes};
use onbeat_shared::log::record::Usage;
use onbeat_shared::units::{CoreIndex, RequestIndex, RunNanos, SessionIndex};

use self::counting::allocations;

/// Requests of a conversation, each fifty tokens longer than the one before.
const REQUESTS: u32 = 60;
/// Users that play it side by side.
const USERS: u32 = 20;

/// What a part of a sequence of requests is; every tenth goes back to an earlier one.
fn conversation() -> String {
    let request = |number: u32| {
        let blocks = if number % 10 == 9 { number - 4 } else { number } * 6 + 6;
        let ids: Vec<u32> = (1..=blocks).collect();
        let input = blocks * 8 + 2;
        format!("{{\"t\":{number},\"in\":{input},\"out\":10,\"hash_ids\":{ids:?}}}")
    };
    let requests: Vec<String> = (0..REQUESTS).map(request).collect();
    format!(
        "{{\"id\":\"one\",\"models\":[],\"block_size\":8,\"tool_tokens\":64,\
         \"system_tokens\":0,\"requests\":[{}]}}",
        requests.join(",")
    )
}

fn supply() -> (Scripts, Supply) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("one.json");
    std::fs::write(&path, conversation()).expect("written");
    let trace = onbeat::trace::read(&path, &onbeat::trace::TraceOptions::default());
    let trace = trace.expect("reads");
    let found = scripts(&trace, &ScriptOptions::default()).expect("one conversation");
    let options = SceneOptions {
        reply: ReplyMode::Live,
        stream_all: true,
        tool_role: false,
        cores: 1,
        users: USERS as usize,
        players: USERS as usize,
    };
    let scenes = Scenes::new(&trace, &found, &RenderOptions::default(), options);
    let scenes = Arc::new(scenes.expect("it fits"));
    (found, Supply::of(&Source::Users(scenes), CoreIndex(0)))
}

fn act(scripts: &Scripts, cue: u32, user: u32, copy: u32) -> Act {
    let Cue::Request(turn) = scripts.scripts[0].parts[0].cues[cue as usize] else {
        panic!("a conversation of requests")
    };
    Act {
        who: Who {
            player: Player(user),
            seat: user,
            user: user + 1,
            session: SessionIndex(user + copy * USERS),
            conversation: 0,
            part: 0,
        },
        turn,
        due: RunNanos(0),
        own_due: RunNanos(0),
        at: RunNanos(0),
        after: None,
        copy,
        base_played: cue > 0,
        ideal_cached: 0,
        ideal_set: 0,
    }
}

/// Sends a request and hears its reply; how many bytes went out.
fn play(supply: &mut Supply, request: RequestIndex, act: &Act, words: u32) -> usize {
    supply.compose(request, act, 0);
    supply.begin(request);
    let sent = supply.parts(request).map(<[u8]>::len).sum();
    let shares = (0..supply.parts(request).len().min(9)).map(|part| supply.share(request, part));
    assert!(shares.map(|share| share.bytes().len()).sum::<usize>() <= sent);
    for _ in 0..words {
        supply.hear(request, b" word\\n\xc3\xa9", false);
    }
    let usage =
        Usage { prompt_tokens: 1, completion_tokens: words, cached_tokens: 0, reasoning_tokens: 0 };
    supply.reply_tokens(request, usage);
    supply.ended(request, words % 7 != 3);
    sent
}

#[test]
fn requests_are_put_together_and_replies_heard_without_allocating() {
    let (scripts, mut supply) = supply();
    let acts: Vec<Act> = (0..2)
        .flat_map(|copy| (0..REQUESTS).map(move |cue| (copy, cue)))
        .flat_map(|(copy, cue)| (0..USERS).map(move |user| (copy, cue, user)))
        .map(|(copy, cue, user)| act(&scripts, cue, user, copy))
        .collect();
    let before = allocations();
    let mut sent = 0;
    for (number, act) in (0..).zip(&acts) {
        // Numbers are those of all cores.
        let request = RequestIndex(number * 7);
        sent += play(&mut supply, request, act, number % 13);
    }
    for user in 0..USERS {
        supply.leave(Player(user));
    }
    assert_eq!(allocations() - before, 0);
    let replaced = supply.replaced().expect("users");
    assert!(replaced.kept > 1_000 && replaced.failed > 100, "{replaced:?}");
    assert!(sent > 10_000_000, "{sent}");
}
