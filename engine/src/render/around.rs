//! What stands before and behind the text of one request's body.
//!
//! Most of it is the same for many requests and is made once for each pair of output lengths
//! ([`Closings`]); what a row adds of its own (hints, members, a list of messages) is made for it
//! alone. A row that holds a whole body has nothing around it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use onbeat_shared::log::plan_row::PlanRow;
use onbeat_shared::trace::Trace;
use onbeat_shared::trace::record::Record;
use onbeat_shared::trace::recorded::Content;
use onbeat_shared::units::RequestIndex;

use crate::plan::Plan;
use crate::render::RenderOptions;
use crate::render::body::{
    Closing, Limits, Own, append_hints, append_mark, closing, limits, messages_opening, opening,
};
use crate::render::layout::requests;

/// What stands behind texts, for each pair of output lengths.
#[derive(Debug)]
pub(crate) struct Closings {
    of: BTreeMap<Limits, Closing>,
}

/// The bytes around one text.
#[derive(Debug, Default)]
pub(crate) struct Around {
    pub(crate) before: Vec<u8>,
    pub(crate) after: Vec<u8>,
    /// Whether `after` is what all requests of these output lengths have.
    pub(crate) shared: bool,
    /// The output lengths.
    pub(crate) limits: Limits,
}

impl Closings {
    /// Those of a plan's requests.
    pub(crate) fn of(plan: &Plan, trace: &Trace, options: &RenderOptions) -> Self {
        let mut of = BTreeMap::new();
        for (row, record) in requests(plan, trace) {
            let limits = limits(row, record);
            of.entry(limits).or_insert_with(|| closing(options, limits, Own::default()));
        }
        Self { of }
    }

    /// The one of a single row.
    pub(crate) fn of_row(row: &PlanRow, record: &Record, options: &RenderOptions) -> Self {
        let limits = limits(row, record);
        Self { of: BTreeMap::from([(limits, closing(options, limits, Own::default()))]) }
    }

    /// Each of them, with the lengths it is for.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Limits, Vec<u8>)> {
        self.of.iter().map(|(&limits, closing)| (limits, closing.joined()))
    }
}

impl Around {
    /// Becomes what stands around the text of a request.
    pub(crate) fn fill(
        &mut self,
        plan: &Plan,
        trace: &Trace,
        options: &RenderOptions,
        closings: &Closings,
        request: RequestIndex,
    ) {
        self.before.clear();
        self.after.clear();
        self.shared = false;
        let row = &plan.rows[request.as_usize()];
        let (place, copy) = (plan.record_of[request.as_usize()], plan.copy(request));
        self.limits = limits(row, &trace.records[place as usize]);
        let content = trace.recorded.content_of(place);
        let skipped = match content {
            Content::Body => return,
            Content::Messages => {
                let (opening, skipped) = messages_opening();
                self.before.extend_from_slice(opening);
                skipped
            }
            Content::Words | Content::Prompt => {
                self.before.extend_from_slice(opening(options.endpoint));
                append_mark(trace, options, place, copy, &mut self.before);
                0
            }
        };
        let members = trace.recorded.members_of(place);
        let closing = if members.is_empty() {
            Cow::Borrowed(&closings.of[&self.limits])
        } else {
            Cow::Owned(closing(options, self.limits, Own::read(members)))
        };
        self.after.extend_from_slice(&closing.before[skipped..]);
        let unhinted = self.after.len();
        append_hints(trace, options, place, copy, &mut self.after);
        self.shared = members.is_empty() && skipped == 0 && self.after.len() == unhinted;
        self.after.extend_from_slice(&closing.after);
    }

    /// Bytes of both.
    pub(crate) const fn bytes(&self) -> usize {
        self.before.len() + self.after.len()
    }
}
