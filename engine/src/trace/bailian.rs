//! Bailian JSON Lines: chats that name the chat they continue.
//!
//! `timestamp` in seconds, 16-token blocks, and `chat_id`, `parent_chat_id` (-1 or nothing: none),
//! `turn` (from 1). Every row is a whole prompt of its own; the parents only say which rows belong
//! to one session and in which order (see `chains`). `type` and unknown members are ignored.

use onbeat_shared::trace::recorded::Recorded;
use onbeat_shared::trace::session::SessionNames;
use onbeat_shared::trace::{Source, Trace};
use onbeat_shared::units::SessionIndex;

use crate::trace::chains;
use crate::trace::error::Fault;
use crate::trace::row::Name;
use crate::trace::rows::{RowReader, RowText};

/// Who a row is and whom it continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) chat: i128,
    pub(crate) parent: Option<i128>,
    pub(crate) turn: i128,
}

/// What a parent is when there is none.
const NO_PARENT: i128 = -1;
/// The turn of a row that does not say.
const FIRST_TURN: i128 = 1;

/// The link of one row.
pub(crate) fn link(text: RowText<'_>) -> Result<Link, Fault> {
    let chat = text.whole(Name::ChatId)?;
    let chat = chat.ok_or_else(|| text.wrong(Name::ChatId, "a whole number that names the row"))?;
    let parent = text.whole(Name::ParentChatId)?.filter(|&parent| parent != NO_PARENT);
    let turn = text.whole(Name::Turn)?.unwrap_or(FIRST_TURN);
    Ok(Link { chat, parent, turn })
}

/// The trace of all rows, with the sessions their links make.
pub(crate) fn finish(reader: RowReader, source: Source) -> Trace {
    let mut rows = reader.into_rows();
    let chains = chains::resolve(&rows.links, &rows.records);
    for (record, &(session, turn)) in rows.records.iter_mut().zip(&chains.places) {
        record.session = SessionIndex(session);
        record.turn = turn;
    }
    rows.warnings.extend(chains.warnings);
    Trace {
        source,
        records: rows.records,
        blocks: rows.blocks,
        block_tokens: rows.block_tokens,
        sessions: SessionNames::Named(chains.names),
        recorded: Recorded::default(),
        warnings: rows.warnings,
    }
}
