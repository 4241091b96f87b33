//! The records of one log with the numbers of the merged one; what they say stays as it is.

use super::cursor::Cursor;
use super::packing::Packing;
use super::scraped::{self, Numbers};
use super::survey::Survey;
use super::tables::{Places, core_of};
use super::{MergeError, Source};
use crate::log::record::{RECORD_BYTES, Record};
use crate::log::{Item, Manifest};
use crate::units::{CoreIndex, RequestIndex};

/// A log among those that are merged.
pub(super) struct Part<'a> {
    manifest: &'a Manifest,
    place: usize,
    name: &'a str,
    /// Texts of servers that are taken from this log.
    texts: &'a Numbers,
}

impl<'a> Part<'a> {
    pub(super) fn new(
        log: &'a Survey,
        manifest: &'a Manifest,
        place: usize,
        texts: &'a Numbers,
    ) -> Self {
        Self { manifest, place, name: &log.name, texts }
    }
}

/// Copies the records; those of the conductor go to `conductor`, others are written at once.
pub(super) fn copy(
    source: &Source<'_>,
    part: &Part<'_>,
    places: &mut Places,
    conductor: &mut Packing<'_>,
) -> Result<(), MergeError> {
    debug_assert_eq!(source.name, part.name, "a log and what is known of it");
    let mut cursor = Cursor::open(source)?;
    let mut expected = 0_u32;
    let mut payload = Vec::new();
    loop {
        payload.clear();
        let found = cursor.next(|item| {
            let Item::Records(block) = item else { return None };
            let records = block.raw().filter_map(|bytes| renumbered(bytes, places, part.texts));
            records.for_each(|record| payload.extend_from_slice(&record));
            Some((block.core, block.sequence))
        })?;
        let Some(found) = found else { return Ok(()) };
        let Some((core, sequence)) = found else { continue };
        let written = if core == CoreIndex::CONDUCTOR {
            let lost = sequence.saturating_sub(expected);
            expected = sequence.saturating_add(1);
            let skipped = if lost > 0 { conductor.skip(lost) } else { Ok(()) };
            skipped.and_then(|()| {
                payload.chunks_exact(RECORD_BYTES).try_for_each(|record| conductor.push(record))
            })
        } else {
            conductor.block(core_of(part.manifest, part.place, core), sequence, &payload)
        };
        written.map_err(MergeError::Write)?;
    }
}

/// A record with its new numbers; `None` for one that is about a request or user that the log does
/// not have, that this version does not know, or that is put together anew.
fn renumbered(
    bytes: &[u8; RECORD_BYTES],
    places: &Places,
    texts: &Numbers,
) -> Option<[u8; RECORD_BYTES]> {
    let record = match Record::decode(bytes)? {
        Record::Assessment { .. } => return None,
        Record::Scraped(fact) => Record::Scraped(scraped::renumbered(fact, texts)?),
        Record::Stall { .. }
        | Record::Connect { .. }
        | Record::Lost { .. }
        | Record::Anchor { .. } => return Some(*bytes),
        Record::Step {
            request,
            template,
            session,
            after,
            body_bytes,
            ideal_cached,
            ideal_set,
            flags,
        } => {
            let Places::Users(users) = places else { return None };
            Record::Step {
                request: RequestIndex(places.request(request.0)?),
                template,
                session: users.session(session)?,
                after: after.and_then(|after| places.request(after.0)).map(RequestIndex),
                body_bytes,
                ideal_cached,
                ideal_set,
                flags,
            }
        }
        Record::User { session, time, event, parent, number } => {
            let Places::Users(users) = places else { return None };
            let parent = parent.map(|parent| users.session(parent).ok_or(())).transpose().ok()?;
            let number = if parent.is_none() { users.user(number) } else { number };
            Record::User { session: users.session(session)?, time, event, parent, number }
        }
        // The number stands at the same place in all others.
        _ => {
            let own = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
            let mut bytes = *bytes;
            bytes[4..8].copy_from_slice(&places.request(own)?.to_le_bytes());
            return Some(bytes);
        }
    };
    Some(record.encode())
}
