//! What stands before the records: the shards' plans woven into the whole one, and what goes with
//! it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Write;

use super::cursor::Entries;
use super::packing::Packing;
use super::survey::Survey;
use super::users::Renumbering;
use super::{MergeError, Source};
use crate::log::block::BlockKind;
use crate::log::{Item, Manifest, PathRow, PlanRow, RecordedRow, StretchRow};
use crate::units::{CoreIndex, RequestIndex, SessionIndex};

/// The numbers of one log's requests in the merged one.
#[derive(Debug)]
pub(super) enum Places {
    /// Planned ones, by their own number.
    Planned(Vec<u32>),
    /// Those that users made, and their users.
    Users(Renumbering),
}

impl Places {
    /// The new number of a request; `None`: the log has no such request.
    pub(super) fn request(&self, request: u32) -> Option<u32> {
        match self {
            Self::Planned(numbers) => numbers.get(request as usize).copied(),
            Self::Users(renumbering) => renumbering.requests.get(&request).copied(),
        }
    }
}

fn changed(name: &str) -> MergeError {
    MergeError::Apart(format!("{name}: its plan's rows are not in order, or changed meanwhile"))
}

/// Weaves the plans together, in the order of their numbers in the whole.
pub(super) fn planned(
    sources: &[&Source<'_>],
    logs: &mut [Survey],
    manifest: &Manifest,
    out: &mut dyn Write,
) -> Result<Vec<Places>, MergeError> {
    let mut numbers: Vec<Vec<u32>> =
        logs.iter_mut().map(|log| std::mem::take(&mut log.numbers)).collect();
    let pick = |item: &Item<'_>| match item {
        Item::Plan(rows) => Some(rows.iter().collect()),
        _ => None,
    };
    let mut plans: Vec<Entries<PlanRow>> =
        sources.iter().map(|source| Entries::of(source, pick)).collect::<Result<_, _>>()?;
    let firsts = numbers.iter().enumerate().filter_map(|(log, own)| Some((*own.first()?, log)));
    let mut heads: BinaryHeap<Reverse<(u32, usize)>> = firsts.map(Reverse).collect();
    let mut next = vec![0_usize; logs.len()];
    // Of each log, the new number of each session met so far; of each new session, its log.
    let mut sessions: Vec<Vec<u32>> = vec![Vec::new(); logs.len()];
    let mut owners: Vec<u32> = Vec::new();
    let mut packing = Packing::new(out, BlockKind::Plan);
    let mut new = 0_u32;
    while let Some(Reverse((_, log))) = heads.pop() {
        let wrong = || changed(&logs[log].name);
        let row = plans[log].next()?.ok_or_else(wrong)?;
        let own = next[log];
        if row.request.as_usize() != own || row.after.is_some_and(|after| after.as_usize() >= own) {
            return Err(wrong());
        }
        if row.session.as_usize() == sessions[log].len() {
            sessions[log].push(u32::try_from(owners.len()).expect("no more than requests"));
            owners.push(u32::try_from(log).expect("few logs"));
        }
        let session = *sessions[log].get(row.session.as_usize()).ok_or_else(wrong)?;
        let row = PlanRow {
            request: RequestIndex(new),
            session: SessionIndex(session),
            core: core_of(manifest, log, row.core),
            // Earlier requests have their new numbers already.
            after: row.after.map(|after| RequestIndex(numbers[log][after.as_usize()])),
            ..row
        };
        packing.push(&row.encode()).map_err(MergeError::Write)?;
        numbers[log][own] = new;
        new += 1;
        next[log] = own + 1;
        heads.extend(numbers[log].get(own + 1).map(|&number| Reverse((number, log))));
    }
    packing.end().map_err(MergeError::Write)?;
    names(sources, &owners, out)?;
    let places: Vec<Places> = numbers.into_iter().map(Places::Planned).collect();
    recorded(sources, &places, out)?;
    Ok(places)
}

/// A core's number in the merged log.
pub(super) fn core_of(manifest: &Manifest, log: usize, core: CoreIndex) -> CoreIndex {
    let hosts = manifest.merged.as_ref().map_or(&[][..], |merged| &merged.hosts);
    match hosts.get(log) {
        Some(host) if core != CoreIndex::CONDUCTOR => {
            CoreIndex(host.first_core.saturating_add(core.0))
        }
        _ => core,
    }
}

fn pick_names(item: &Item<'_>) -> Option<Vec<Vec<u8>>> {
    match item {
        Item::Sessions(names) => Some(names.iter().map(<[u8]>::to_vec).collect()),
        _ => None,
    }
}

fn put_name(packing: &mut Packing<'_>, name: &[u8]) -> Result<(), MergeError> {
    let bytes = u32::try_from(name.len()).expect("a block has 64 KiB").to_le_bytes();
    packing.push(&[&bytes[..], name].concat()).map_err(MergeError::Write)
}

/// The sessions' names, each from its log: their new order keeps every log's own.
fn names(sources: &[&Source<'_>], owners: &[u32], out: &mut dyn Write) -> Result<(), MergeError> {
    let mut names: Vec<Entries<Vec<u8>>> =
        sources.iter().map(|source| Entries::of(source, pick_names)).collect::<Result<_, _>>()?;
    let mut packing = Packing::new(out, BlockKind::Sessions);
    for &log in owners {
        let log = log as usize;
        let name = names[log].next()?.ok_or_else(|| changed(&sources[log].name))?;
        put_name(&mut packing, &name)?;
    }
    packing.end().map_err(MergeError::Write)
}

fn pick_recorded(item: &Item<'_>) -> Option<Vec<RecordedRow>> {
    match item {
        Item::Recorded(rows) => Some(rows.iter().collect()),
        _ => None,
    }
}

/// What the trace recorded of answers.
fn recorded(
    sources: &[&Source<'_>],
    places: &[Places],
    out: &mut dyn Write,
) -> Result<(), MergeError> {
    let mut packing = Packing::new(out, BlockKind::Recorded);
    for (source, places) in sources.iter().zip(places) {
        let mut rows = Entries::of(source, pick_recorded)?;
        while let Some(row) = rows.next()? {
            let Some(request) = places.request(row.request.0) else { continue };
            let row = RecordedRow { request: RequestIndex(request), ..row };
            packing.push(&row.encode()).map_err(MergeError::Write)?;
        }
    }
    packing.end().map_err(MergeError::Write)
}

/// The templates, which all shards of a user-driven run have in common, from the first log; and how
/// what users made is renumbered.
pub(super) fn templates(
    sources: &[&Source<'_>],
    logs: &mut [Survey],
    out: &mut dyn Write,
) -> Result<Vec<Places>, MergeError> {
    let first = sources[0];
    let pick = |item: &Item<'_>| match item {
        Item::Plan(rows) => Some(rows.iter().collect()),
        _ => None,
    };
    copied(first, BlockKind::Plan, pick, |row: PlanRow| row.encode().to_vec(), out)?;
    let mut names = Entries::of(first, pick_names)?;
    let mut packing = Packing::new(out, BlockKind::Sessions);
    while let Some(name) = names.next()? {
        put_name(&mut packing, &name)?;
    }
    packing.end().map_err(MergeError::Write)?;
    copied(
        first,
        BlockKind::Recorded,
        pick_recorded,
        |row: RecordedRow| row.encode().to_vec(),
        out,
    )?;
    let all = Renumbering::of(logs).map_err(MergeError::Apart)?;
    Ok(all.into_iter().map(Places::Users).collect())
}

/// Copies entries of one kind.
fn copied<T>(
    source: &Source<'_>,
    kind: BlockKind,
    pick: fn(&Item<'_>) -> Option<Vec<T>>,
    encode: impl Fn(T) -> Vec<u8>,
    out: &mut dyn Write,
) -> Result<(), MergeError> {
    let mut entries = Entries::of(source, pick)?;
    let mut packing = Packing::new(out, kind);
    while let Some(entry) = entries.next()? {
        packing.push(&encode(entry)).map_err(MergeError::Write)?;
    }
    packing.end().map_err(MergeError::Write)
}

/// Which prompts begin alike: the stretches that all have in common, and the paths of each.
pub(super) fn prefixes(
    sources: &[&Source<'_>],
    places: &[Places],
    manifest: &Manifest,
    out: &mut dyn Write,
) -> Result<(), MergeError> {
    let pick = |item: &Item<'_>| match item {
        Item::Stretches(rows) => Some(rows.iter().collect()),
        _ => None,
    };
    let encode = |row: StretchRow| row.encode().to_vec();
    copied(sources[0], BlockKind::Stretches, pick, encode, out)?;
    let pick = |item: &Item<'_>| match item {
        Item::Paths(rows) => Some(rows.iter().collect()),
        _ => None,
    };
    if manifest.users.is_some() {
        // They are of templates, which all have in common.
        return copied(
            sources[0],
            BlockKind::Paths,
            pick,
            |row: PathRow| row.encode().to_vec(),
            out,
        );
    }
    let mut packing = Packing::new(out, BlockKind::Paths);
    for (source, places) in sources.iter().zip(places) {
        let mut rows = Entries::of(source, pick)?;
        while let Some(row) = rows.next()? {
            let Some(request) = places.request(row.request.0) else { continue };
            let row = PathRow { request: RequestIndex(request), ..row };
            packing.push(&row.encode()).map_err(MergeError::Write)?;
        }
    }
    packing.end().map_err(MergeError::Write)
}
