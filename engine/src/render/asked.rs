//! How many output tokens requests ask for once the user's own members and the rows' are merged in.
//!
//! A plan knows what the trace and the options about lengths say. What goes over the wire may be
//! another number: `--extra-inputs` and a row's `extra` replace members, and a row that holds a
//! whole body is not touched at all. The plan's rows are made to say what is sent, because that is
//! what its readers, the log and the report call planned. Which member counts is the endpoint's
//! business: chat prefers `max_completion_tokens` to `max_tokens`.

use onbeat_shared::trace::Trace;
use onbeat_shared::trace::recorded::{Content, Said, SaidLengths};

use crate::plan::Plan;
use crate::render::body::Limits;
use crate::render::{Endpoint, RenderOptions};

/// Makes the rows of a plan say the output lengths that their requests ask for. To be done once,
/// before anything is rendered.
pub fn settle_lengths(plan: &mut Plan, trace: &Trace, options: &RenderOptions) {
    let endpoint = options.endpoint_for(trace);
    let user = of_user(options);
    for (row, &place) in plan.rows.iter_mut().zip(&plan.record_of) {
        let own = trace.recorded.said_by(place);
        (row.max_tokens, row.min_tokens) = match trace.recorded.content_of(place) {
            Content::Body => said(endpoint, own),
            _ => merged(endpoint, options, (row.max_tokens, row.min_tokens), user, own),
        };
    }
}

/// The lengths that `--extra-inputs` say: of a key given twice, the last value.
fn of_user(options: &RenderOptions) -> SaidLengths {
    let last = |key: &str| {
        let value = options.extra.iter().rev().find(|(own, _)| own == key);
        Said::of(value.map(|(_, value)| value.to_string()).as_deref())
    };
    SaidLengths {
        max_completion_tokens: last("max_completion_tokens"),
        max_tokens: last("max_tokens"),
        min_tokens: last("min_tokens"),
    }
}

/// What a body of ours asks for: its members are ours, then the user's, then the row's own. A least
/// length of ours comes last of all (the user's own is refused where there is one).
fn merged(
    endpoint: Endpoint,
    options: &RenderOptions,
    (most, least): Limits,
    user: SaidLengths,
    own: SaidLengths,
) -> Limits {
    let ours = |is_key: bool| most.filter(|_| is_key).map_or(Said::Nothing, Said::Tokens);
    let modern = endpoint == Endpoint::Chat && !options.legacy_max_tokens;
    let members = SaidLengths {
        max_completion_tokens: own
            .max_completion_tokens
            .or(user.max_completion_tokens)
            .or(ours(modern)),
        max_tokens: own.max_tokens.or(user.max_tokens).or(ours(!modern)),
        min_tokens: own.min_tokens.or(user.min_tokens),
    };
    let (most, free) = said(endpoint, members);
    (most, least.or(free))
}

/// What a body with these members asks for.
fn said(endpoint: Endpoint, members: SaidLengths) -> Limits {
    let most = match endpoint {
        Endpoint::Chat => members.max_completion_tokens.tokens().or(members.max_tokens.tokens()),
        Endpoint::Completions => members.max_tokens.tokens(),
    };
    (most, members.min_tokens.tokens())
}

#[cfg(test)]
mod tests {
    use onbeat_shared::trace::recorded::Recorded;
    use serde_json::{Value, json};

    use super::*;
    use crate::render::tests::{planned, trace};

    /// What four rows say once they are settled: one that asks for 5 tokens, one for nothing, one
    /// with members of its own, one that is a whole body.
    fn settled(extra: &[(&str, Value)], endpoint: Endpoint) -> Vec<Limits> {
        let mut trace = trace(&[(1, vec![]), (1, vec![]), (1, vec![]), (1, vec![])], 16);
        for (record, tokens) in trace.records.iter_mut().zip([Some(5), None, Some(5), Some(5)]) {
            record.output_tokens = tokens;
        }
        let none = SaidLengths::default();
        let members = SaidLengths {
            max_completion_tokens: Said::Tokens(8),
            max_tokens: Said::Tokens(9),
            min_tokens: Said::Tokens(2),
        };
        let body = SaidLengths { max_tokens: Said::Tokens(11), ..none };
        let contents = vec![Content::Words, Content::Words, Content::Words, Content::Body];
        let said = vec![none, none, members, body];
        trace.recorded = Recorded { contents, said, dialect: true, ..Recorded::default() };
        let mut plan = planned(&trace);
        let extra = extra.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        let options =
            RenderOptions { extra, endpoint, endpoint_named: true, ..RenderOptions::default() };
        settle_lengths(&mut plan, &trace, &options);
        plan.rows.iter().map(|row| (row.max_tokens, row.min_tokens)).collect()
    }

    #[test]
    fn a_plan_says_what_is_sent() {
        let (chat, whole) = (Endpoint::Chat, Endpoint::Completions);
        let own: Limits = (Some(8), Some(2));
        let body: Limits = (Some(11), None);
        let plain = [(Some(5), None), (None, None), own, body];
        assert_eq!(settled(&[], chat), plain);
        let key = "max_completion_tokens";
        let more = [(Some(99), None), (Some(99), None), own, body];
        assert_eq!(settled(&[(key, json!(99))], chat), more);
        let old = [(Some(5), None), (Some(99), None), own, body];
        assert_eq!(settled(&[("max_tokens", json!(99))], chat), old, "the newer key counts");
        let none = [(None, None), (None, None), own, body];
        for value in [json!(null), json!("9"), json!(1.5), json!(-1)] {
            assert_eq!(settled(&[(key, value.clone())], chat), none, "{value}");
        }
        let least = [(Some(5), Some(3)), (None, Some(3)), own, body];
        assert_eq!(settled(&[("min_tokens", json!(3))], chat), least);
        let own: Limits = (Some(9), Some(2));
        let more = [(Some(99), None), (Some(99), None), own, body];
        assert_eq!(settled(&[("max_tokens", json!(7)), ("max_tokens", json!(99))], whole), more);
        let plain = [(Some(5), None), (None, None), own, body];
        assert_eq!(settled(&[(key, json!(99))], whole), plain, "a key that it does not know");
    }
}
