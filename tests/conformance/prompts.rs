//! What the prompts of a replay share: with each other the warm prefix, within a conversation what
//! its block ids say. (The tool's texts are of differences of sets; only its first prompts share.)

use serde_json::Value;

use crate::agree::Both;
use crate::found::Findings;
use crate::recorded::Arrival;

/// Words that two texts do not have in common by chance.
const FEW: usize = 8;

/// Every prompt begins with the warm prefix, and conversations differ right behind it; a prompt has
/// as many blocks in common with the one before it as their ids say.
pub(crate) fn share(both: &Both<'_>, found: &mut Findings) {
    let share = both.command.value("--warm-prefix-pct").and_then(|own| own.parse::<f64>().ok());
    let stats = &both.ours().tables.metadata["trace_stats"];
    let longest = stats["max_shared_prefix_tokens"].as_f64().unwrap_or(0.0);
    found.holds("the longest tools and system prompt to be told", longest > 0.0, longest);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as the tool does")]
    let warm = (longest * share.unwrap_or(0.5)) as usize;
    let plays = both.own();
    let mut begun: Vec<(&str, Vec<String>)> = Vec::new();
    for ((session, copy), arrivals) in &plays {
        let prompts: Vec<Vec<String>> = arrivals.iter().map(|arrival| words(arrival)).collect();
        let Some(first) = prompts.first() else { continue };
        for (other, words) in &begun {
            let what = format!("words in common of {session} (copy {copy}) and {other}");
            let common = common(first, words);
            let least = warm.min(first.len()).min(words.len());
            found.holds(format!("{warm} {what} (warm prefix)"), common >= least, common);
            let is_other = session.split(':').next() != other.split(':').next() || *copy > 0;
            let no_more = !is_other || common < least + FEW || common >= words.len();
            found.holds(format!("no more than {warm} {what}"), no_more, common);
        }
        within(both, session, &prompts, warm, found);
        begun.push((session, first.clone()));
    }
}

/// Within one play.
fn within(
    both: &Both<'_>,
    session: &str,
    prompts: &[Vec<String>],
    warm: usize,
    found: &mut Findings,
) {
    let ids = |entry: &Value| -> Vec<u64> {
        entry["hash_ids"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect()
    };
    // (An advanced user's begin within the list.)
    let rows = both.ours().tables.plays();
    let Some(rows) = rows.get(&(session, 0)) else { return };
    let list: Vec<Vec<u64>> = rows
        .iter()
        .filter_map(|row| Some(ids(both.lists[session].get(row.place.parse::<usize>().ok()?)?)))
        .collect();
    for (at, (pair, ids)) in prompts.windows(2).zip(list.windows(2)).enumerate() {
        let blocks = ids[0].iter().zip(&ids[1]).take_while(|(a, b)| a == b).count();
        let words = common(&pair[0], &pair[1]);
        let what = format!("{blocks} blocks in common of {session}'s prompts {at} and the next");
        found.holds(&what, words >= blocks * 64, format!("{words} words"));
        let part = blocks < ids[0].len().min(ids[1].len());
        let no_more = !part || words < ((blocks + 1) * 64).max(warm + FEW);
        found.holds(format!("no more than {what}"), no_more, format!("{words} words"));
    }
}

/// The words of a prompt, in order.
fn words(arrival: &Arrival) -> Vec<String> {
    let messages = arrival.body["messages"].as_array().into_iter().flatten();
    let texts = messages.filter_map(|message| message["content"].as_str());
    texts.flat_map(str::split_whitespace).map(str::to_owned).collect()
}

/// How many words two prompts begin with alike.
fn common(one: &[String], other: &[String]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}
