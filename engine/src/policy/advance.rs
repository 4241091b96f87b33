//! Where in its conversation a user begins: `--advance-min` and `--advance-max`.
//!
//! The place is drawn from the seed and the user's name alone, with kv-cache-tester's own generator
//! and rules: entries of the conversation's list count, sub-agents among them; what is too long is
//! not begun with; a user never begins with a sub-agent, and one that would begin behind the last
//! request begins at the beginning.

use crate::plan::script::{Cue, Part, Script};
use crate::plan::twister::{Twister, stable_seed};
use crate::policy::options::Advance;

/// The first cue of the user's own part that user number `user` plays; 0 is the beginning.
#[must_use]
pub fn first_cue(script: &Script, advance: &Advance, seed: u64, user: u32) -> u32 {
    let Some(own) = script.parts.first().filter(|_| advance.max > 0.0) else { return 0 };
    let drawn = drawn(own, advance, seed, &format!("User-{user:03}"));
    let next = own.cues.iter().skip(drawn).position(|cue| cue.turn().is_some());
    let place = next.map_or(0, |next| drawn + next);
    u32::try_from(place).expect("no more cues than a script can number")
}

/// The place that is drawn, whatever is there.
fn drawn(own: &Part, advance: &Advance, seed: u64, name: &str) -> usize {
    let is_too_long =
        |place: usize| own.cues.get(place).and_then(Cue::turn).is_some_and(|turn| turn.too_long);
    let low = share_of(own.cues.len(), advance.min);
    let mut high = share_of(own.cues.len(), advance.max).min(own.cues.len().saturating_sub(1));
    while high > low && is_too_long(high) {
        high -= 1;
    }
    if is_too_long(low) {
        return 0;
    }
    if low >= high {
        return low;
    }
    Twister::new(seed ^ u64::from(stable_seed(name))).between(low, high)
}

/// A share of a length, in whole entries.
fn share_of(length: usize, share: f64) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it saturates, and the fraction is to be cut off"
    )]
    let entries = (length as f64 * share) as usize;
    entries
}

#[cfg(test)]
mod tests {
    use onbeat_shared::units::SessionIndex;

    use super::*;
    use crate::plan::script::{From, Turn, Wait};

    fn turn(input_tokens: u32, max_context: u32) -> Cue {
        Cue::Request(Turn {
            record: 0,
            wait: Wait { from: From::End, ns: 0 },
            too_long: input_tokens > max_context,
            input_tokens,
            output_tokens: 1,
            base: None,
            with_previous: 0,
            overlap: 0,
            has_blocks: false,
            bases: (0, 0),
        })
    }

    fn script(cues: Vec<Cue>) -> Script {
        let session = SessionIndex(0);
        let part = Part { parent: None, number: 0, cues, session, requests: 0 };
        Script { parts: vec![part], ..Script::default() }
    }

    /// Forty entries that grow by a thousand tokens, with two sub-agents at 15.
    fn forty(max_context: u32) -> Script {
        let cue = |place: u32| match place {
            15 | 16 => Cue::Agent { part: 1, detached: false },
            _ => turn(1_000 * (place + 1), max_context),
        };
        script((0..40).map(cue).collect())
    }

    /// What kv-cache-tester 94f6046 draws for a seed and a user, with these shares and context.
    const TOOL: [(u64, u32, [usize; 5], [u32; 5]); 8] = [
        (0, 1, [17, 17, 10, 38, 20], [17, 17, 10, 38, 20]),
        (0, 2, [17, 17, 11, 38, 20], [17, 17, 11, 38, 20]),
        (0, 3, [24, 12, 16, 36, 20], [24, 12, 17, 36, 20]),
        (0, 10, [20, 14, 17, 37, 20], [20, 14, 17, 37, 20]),
        (42, 1, [22, 12, 20, 36, 20], [22, 12, 20, 36, 20]),
        (42, 2, [22, 18, 20, 39, 20], [22, 18, 20, 39, 20]),
        (42, 3, [17, 17, 10, 38, 20], [17, 17, 10, 38, 20]),
        (42, 10, [15, 15, 6, 37, 20], [17, 17, 6, 37, 20]),
    ];

    #[test]
    fn users_begin_where_the_tool_lets_them_begin() {
        let shares = [(0.3, 0.6), (0.3, 0.6), (0.0, 0.5), (0.9, 1.0), (0.5, 0.5)];
        let contexts = [u32::MAX, 20_000, u32::MAX, u32::MAX, u32::MAX];
        for (seed, user, places, cues) in TOOL {
            for (at, ((min, max), context)) in shares.into_iter().zip(contexts).enumerate() {
                let advance = Advance { min, max, all_users: false };
                let script = forty(context);
                let name = format!("User-{user:03}");
                let place = drawn(&script.parts[0], &advance, seed, &name);
                assert_eq!(place, places[at], "{seed} {name} {min} {max}");
                assert_eq!(first_cue(&script, &advance, seed, user), cues[at], "{seed} {name}");
            }
        }
    }

    #[test]
    fn what_cannot_be_begun_with_is_not() {
        let at = |min, max| Advance { min, max, all_users: false };
        let script = forty(20_000);
        assert_eq!(first_cue(&script, &at(0.0, 0.0), 1, 1), 0, "nobody is advanced");
        assert_eq!(first_cue(&script, &at(0.9, 1.0), 1, 1), 0, "all of them are too long");
        let tail = vec![turn(1, 9), Cue::Agent { part: 1, detached: false }, Cue::Nothing];
        assert_eq!(first_cue(&self::script(tail), &at(0.5, 0.5), 1, 1), 0, "nothing follows");
        assert_eq!(first_cue(&self::script(Vec::new()), &at(0.5, 0.9), 1, 1), 0);
        assert_eq!(first_cue(&Script::default(), &at(0.5, 0.9), 1, 1), 0);
    }
}
