//! Properties of the format: what is written is what is read, and damage never becomes a fact.
//!
//! The damage tests are exhaustive over a small log: every cut and a flip of every byte.

use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};
use proptest::sample::Index;

use super::block::{BLOCK_HEADER_BYTES, BLOCK_RECORDS};
use super::header::FILE_HEADER_BYTES;
use super::properties_scraped::of_servers;
use super::properties_users::of_users;
use super::record::TEXT_PART_BYTES;
use super::{
    BlockBuffer, ChunkKind, Class, Decoder, DoneFlags, FinishReason, Footer, Item, Manifest,
    PLAN_ROW_BYTES, PlanRow, Record, TOGETHER_MAX, Together, Usage, file_header, manifest_block,
    plan_blocks, sample, session_blocks,
};
use crate::export::{self, Beside, Table, TextFormat};
use crate::metrics::ReportOptions;
use crate::metrics::slo::Goals;
use crate::run::{Run, State};
use crate::units::{CoreIndex, RequestIndex, RunNanos, SessionIndex};

pub(super) fn time() -> impl Strategy<Value = RunNanos> {
    any::<i64>().prop_map(RunNanos)
}

fn known_time() -> impl Strategy<Value = Option<RunNanos>> {
    // The smallest number is the format's "none".
    any::<Option<i64>>().prop_map(|time| time.filter(|&time| time != i64::MIN).map(RunNanos))
}

fn request() -> impl Strategy<Value = RequestIndex> {
    any::<u32>().prop_map(RequestIndex)
}

fn class() -> impl Strategy<Value = Class> {
    (0..Class::ALL.len()).prop_map(|at| Class::ALL[at])
}

fn sending() -> impl Strategy<Value = Record> {
    (request(), time(), time(), known_time(), any::<u16>(), any::<bool>()).prop_map(
        |(request, sent, ready, due, target, reused)| Record::Dispatch {
            request,
            sent,
            ready,
            due,
            target,
            reused,
        },
    )
}

fn ending() -> impl Strategy<Value = Record> {
    let status = any::<u16>().prop_map(|status| Some(status).filter(|&status| status != 0));
    let finish = (0_u8..6).prop_map(FinishReason::from_number);
    (request(), time(), class(), status, any::<u64>(), finish, any::<u8>()).prop_map(
        |(request, time, class, status, response_bytes, finish, flags)| Record::Done {
            request,
            time,
            class,
            status,
            response_bytes,
            finish,
            flags: DoneFlags(flags),
        },
    )
}

fn answering() -> impl Strategy<Value = Record> {
    let tokens = any::<[u32; 4]>();
    prop_oneof![
        (request(), time()).prop_map(|(request, time)| Record::FirstByte { request, time }),
        (request(), time()).prop_map(|(request, time)| Record::FirstEvent { request, time }),
        (request(), time(), any::<u64>(), any::<u32>()).prop_map(
            |(request, time, bytes, connection)| Record::SentEnd {
                request,
                time,
                bytes,
                connection
            }
        ),
        (request(), time(), any::<(u8, u32, u32)>()).prop_map(
            |(request, time, (kind, tokens, bytes))| Record::Chunk {
                request,
                time,
                kind: ChunkKind(kind),
                tokens,
                bytes
            }
        ),
        (request(), time(), any::<u8>(), proptest::collection::vec(any::<u8>(), 0..=TOGETHER_MAX))
            .prop_map(|(request, time, kind, sizes)| {
                let mut together = Together::default();
                for bytes in sizes {
                    assert!(together.add(ChunkKind(kind), 1, u32::from(bytes)), "it has room");
                }
                Record::Chunks { request, time, together }
            }),
        (request(), time(), tokens).prop_map(|(request, time, [a, b, c, d])| Record::Usage {
            request,
            time,
            usage: Usage {
                prompt_tokens: a,
                completion_tokens: b,
                cached_tokens: c,
                reasoning_tokens: d
            }
        }),
        (request(), any::<u16>(), 0..=TEXT_PART_BYTES, any::<[u8; TEXT_PART_BYTES]>()).prop_map(
            |(request, part, used, bytes)| Record::Text {
                request,
                part,
                used: u8::try_from(used).expect("at most 24"),
                bytes
            }
        ),
    ]
}

fn host() -> impl Strategy<Value = Record> {
    prop_oneof![
        (time(), any::<u64>()).prop_map(|(start, length_ns)| Record::Stall { start, length_ns }),
        (time(), any::<u64>()).prop_map(|(time, count)| Record::Lost { time, count }),
        (time(), any::<u64>(), any::<u64>()).prop_map(|(time, unix_ns, monotonic_ns)| {
            Record::Anchor { time, unix_ns, monotonic_ns }
        }),
        (any::<u32>(), time(), time(), any::<u16>(), class(), any::<u32>()).prop_map(
            |(connection, start, end, target, class, errno)| Record::Connect {
                connection,
                start,
                end,
                target,
                class,
                errno
            }
        ),
    ]
}

fn record() -> impl Strategy<Value = Record> {
    prop_oneof![sending(), ending(), answering(), host(), of_users(), of_servers()]
}

fn plan_row() -> impl Strategy<Value = PlanRow> {
    let count = || any::<Option<u32>>().prop_map(|n| n.filter(|&n| n != u32::MAX));
    let place = (any::<[u32; 4]>(), any::<[u16; 2]>(), any::<[u64; 2]>());
    (place, known_time(), known_time(), count(), [count(), count(), count(), count(), count()])
        .prop_map(
            |(
                ([request, session, turn, source], [core, target], [row, body_bytes]),
                due,
                think,
                after,
                tokens,
            )| {
                let [input_tokens, max_tokens, min_tokens, ideal_cached_tokens, ideal_set_tokens] =
                    tokens;
                PlanRow {
                    request: RequestIndex(request),
                    session: SessionIndex(session),
                    turn,
                    core: CoreIndex(core),
                    target,
                    row,
                    due,
                    after: after.map(RequestIndex),
                    source,
                    think_ns: think.map(|think| think.0),
                    input_tokens,
                    max_tokens,
                    min_tokens,
                    ideal_cached_tokens,
                    ideal_set_tokens,
                    blocks: turn,
                    body_bytes: std::num::NonZero::new(body_bytes),
                }
            },
        )
}

/// Everything a decoder yields from a log, in values that can be compared.
#[derive(Debug, Default)]
struct Contents {
    manifest: Option<Manifest>,
    plan: Vec<PlanRow>,
    sessions: Vec<Vec<u8>>,
    records: Vec<(CoreIndex, u32, Vec<Record>)>,
    footer: Option<Footer>,
    damaged: usize,
    torn: usize,
}

fn contents(bytes: &[u8]) -> Option<Contents> {
    let mut out = Contents::default();
    for item in Decoder::new(bytes).ok()? {
        match item {
            Item::Manifest(manifest) => out.manifest = Some(*manifest),
            Item::Plan(rows) => out.plan.extend(rows.iter()),
            Item::Sessions(names) => out.sessions.extend(names.iter().map(<[u8]>::to_vec)),
            Item::Records(block) => out.records.push((
                block.core,
                block.sequence,
                block.iter().map(|record| record.expect("a kind we wrote")).collect(),
            )),
            Item::Footer(footer) => out.footer = Some(*footer),
            Item::Recorded(_)
            | Item::Numbers(_)
            | Item::Stretches(_)
            | Item::Paths(_)
            | Item::Unknown { .. } => {}
            Item::DamagedHeader => out.damaged += 1,
            Item::Damaged { bytes, .. } => out.damaged += bytes,
            Item::TornTail { bytes, .. } => out.torn += bytes,
        }
    }
    Some(out)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_record_survives_the_round_trip(record in record()) {
        assert_eq!(Record::decode(&record.encode()), Some(record));
    }

    #[test]
    fn every_plan_row_survives_the_round_trip(row in plan_row()) {
        assert_eq!(PlanRow::decode(&row.encode()), row);
    }

    #[test]
    fn any_32_bytes_decode_without_a_panic(bytes in any::<[u8; 32]>()) {
        let _record = Record::decode(&bytes);
    }

    #[test]
    fn a_whole_log_survives_the_round_trip(
        rows in proptest::collection::vec(plan_row(), 0..900),
        names in proptest::collection::vec(".{0,40}", 0..50),
        records in proptest::collection::vec(record(), 0..2_200),
        core in any::<u16>(),
    ) {
        let manifest = sample::sample(1, 0).manifest;
        let mut log = file_header().to_vec();
        log.extend(manifest_block(&manifest));
        log.extend(plan_blocks(rows.iter().copied()).flatten());
        log.extend(session_blocks(&names).flatten());
        let mut block = BlockBuffer::new();
        for (sequence, part) in (0..).zip(records.chunks(BLOCK_RECORDS)) {
            block.clear();
            for record in part {
                block.push(record).expect("a part fits");
            }
            log.extend_from_slice(block.seal(CoreIndex(core), sequence));
        }
        let read = contents(&log).expect("a log");
        assert_eq!(read.manifest, Some(manifest));
        assert_eq!(read.plan, rows);
        let names: Vec<_> = names.into_iter().map(String::into_bytes).collect();
        assert_eq!(read.sessions, names);
        let found: Vec<Record> = read.records.into_iter().flat_map(|(_, _, part)| part).collect();
        assert_eq!(found, records);
        assert_eq!((read.damaged, read.torn), (0, 0));
    }

    #[test]
    fn any_bytes_read_without_a_panic(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..400),
        headed in prop_oneof![Just(false), Just(true)],
    ) {
        if headed {
            bytes.splice(0..0, file_header());
        }
        let _contents = contents(&bytes);
        let _run = Run::read(&bytes);
    }

    /// Checksums made right again, so that the changed numbers reach the code behind them.
    #[test]
    fn hostile_numbers_read_without_a_panic(
        changes in proptest::collection::vec((any::<Index>(), extreme(), 0_usize..9), 1..60),
    ) {
        let mut log = sample::log(3, 20);
        let places = payload_places(&log);
        for (place, bytes, length) in changes {
            let at = places[place.index(places.len())];
            let end = (at + length).min(log.len());
            log[at..end].copy_from_slice(&bytes[..end - at]);
        }
        make_checksums_right(&mut log);
        if let Ok(run) = Run::read(&log) {
            assert!(run.requests.len() <= log.len() / PLAN_ROW_BYTES);
            let slo = Goals::parse("ttft:1 itl:1 decode_tps:9 e2e:4").ok();
            let options = ReportOptions { slo, ..ReportOptions::default() };
            let _report = crate::metrics::report(&run, &options);
            let goals = Goals::default();
            for table in [Table::Requests, Table::Chunks] {
                let (beside, sink) = (Beside::goals(&goals), std::io::sink());
                export::write_text(&run, table, TextFormat::Csv, &beside, sink)
                    .expect("a sink takes everything");
            }
        }
    }
}

/// Eight bytes, often those of the largest and smallest numbers.
pub(super) fn extreme() -> impl Strategy<Value = [u8; 8]> {
    let fixed = [0, 1, u64::MAX, u64::MAX >> 1, 1 << 63, u64::from(u32::MAX)];
    prop_oneof![any::<[u8; 8]>(), (0..fixed.len()).prop_map(move |at| fixed[at].to_le_bytes())]
}

/// The places of all bytes of Plan, Sessions and Records payloads.
pub(super) fn payload_places(log: &[u8]) -> Vec<usize> {
    let mut places = Vec::new();
    let mut at = FILE_HEADER_BYTES;
    while let Some(header) = log.get(at..at + BLOCK_HEADER_BYTES) {
        let length = u32::from_le_bytes([header[20], header[21], header[22], header[23]]);
        let end = at + BLOCK_HEADER_BYTES + length as usize;
        if (2..=4).contains(&header[8]) {
            places.extend(at + BLOCK_HEADER_BYTES..end);
        }
        at = end;
    }
    places
}

/// Walks the blocks by their stated lengths and stores the checksums they would need.
pub(crate) fn make_checksums_right(log: &mut [u8]) {
    let mut at = FILE_HEADER_BYTES;
    while let Some(header) = log.get(at..at + BLOCK_HEADER_BYTES) {
        let length = u32::from_le_bytes([header[20], header[21], header[22], header[23]]);
        let end = at + BLOCK_HEADER_BYTES + length as usize;
        let Some(block) = log.get_mut(at..end) else { return };
        let checksum = super::block::block_checksum(block);
        block[28..32].copy_from_slice(&checksum.to_le_bytes());
        at = end;
    }
}

/// A log of a few kilobytes with every kind of block and several record blocks.
fn small_log() -> Vec<u8> {
    sample::log(11, 8)
}

#[test]
fn a_log_cut_at_any_byte_reads_as_a_prefix_of_itself() {
    let log = small_log();
    let whole = contents(&log).expect("a log");
    let run = Run::read(&log).expect("a run");
    for cut in 0..log.len() {
        let Some(part) = contents(&log[..cut]) else {
            assert!(cut < FILE_HEADER_BYTES, "only the file header is needed, cut at {cut}");
            continue;
        };
        assert_eq!(part.damaged, 0, "a cut is a torn tail, not damage, at {cut}");
        assert!(whole.plan.starts_with(&part.plan), "cut at {cut}");
        assert!(whole.sessions.starts_with(&part.sessions), "cut at {cut}");
        assert!(whole.records.starts_with(&part.records), "cut at {cut}");
        assert_eq!(part.footer, None, "cut at {cut}");
        if part.manifest.is_some() {
            let cut_run = Run::read(&log[..cut]).expect("the manifest is there");
            let State::Unfinished { cut_bytes } = cut_run.state else { panic!("at {cut}") };
            assert_eq!(cut_bytes, part.torn as u64);
            nothing_invented(&cut_run, &run, cut);
        }
    }
}

#[test]
fn a_flip_of_any_byte_costs_one_block_and_changes_no_number() {
    let log = small_log();
    let whole = contents(&log).expect("a log");
    assert!(whole.records.len() >= 4, "the sample must have blocks to lose");
    let run = Run::read(&log).expect("a run");
    for at in 0..log.len() {
        let mut flipped = log.clone();
        flipped[at] ^= 1 << (at % 8);
        let part = contents(&flipped).expect("blocks follow the header");
        let lost = whole.records.iter().filter(|block| !part.records.contains(block)).count();
        assert!(part.records.iter().all(|block| whole.records.contains(block)), "at {at}");
        assert!(lost <= 1, "{lost} blocks lost at {at}");
        assert!(part.damaged + part.torn > 0, "the flip at {at} went unnoticed");
        assert!(part.manifest.is_none() || part.manifest == whole.manifest, "at {at}");
        assert!(part.footer.is_none() || part.footer == whole.footer, "at {at}");
        assert!(part.plan.iter().all(|row| whole.plan.contains(row)), "at {at}");
        if let Ok(part) = Run::read(&flipped) {
            assert!(!part.warnings.is_empty(), "the flip at {at} went unsaid");
            nothing_invented(&part, &run, at);
        }
    }
}

/// Whatever the damaged run knows, the whole run knows the same.
pub(crate) fn nothing_invented(part: &Run, whole: &Run, at: usize) {
    let same = |found: Option<RunNanos>, known: Option<RunNanos>| {
        assert!(found.is_none() || found == known, "{found:?} for {known:?}, at {at}");
    };
    for i in 0..part.requests.len() {
        let (found, known) = (&part.requests, &whole.requests);
        same(found.sent(i), known.sent(i));
        same(found.sent_end(i), known.sent_end(i));
        same(found.first_byte(i), known.first_byte(i));
        same(found.done(i), known.done(i));
        assert!(found.class(i).is_none() || found.class(i) == known.class(i), "at {at}");
        let tokens = found.prompt_tokens(i);
        assert!(tokens.is_none() || tokens == known.prompt_tokens(i), "at {at}");
        let row = whole.chunks.row(i);
        let mut known = row.iter();
        for chunk in part.chunks.row(i).iter() {
            assert!(known.any(|other| other == chunk), "an invented chunk, at {at}");
        }
    }
}

#[test]
fn a_growing_file_is_resumed_at_the_torn_tail() {
    let log = small_log();
    let whole = contents(&log).expect("a log");
    for cut in [FILE_HEADER_BYTES, 900, log.len() / 2, log.len() - 1] {
        let mut decoder = Decoder::new(&log[..cut]).expect("a header");
        let before = decoder.by_ref().filter(|item| matches!(item, Item::Records(_))).count();
        let rest = Decoder::resume(&log, decoder.offset()).expect("the same header");
        let after = rest.filter(|item| matches!(item, Item::Records(_))).count();
        assert_eq!(before + after, whole.records.len(), "resumed after {cut} bytes");
    }
}

#[test]
fn unknown_blocks_and_records_are_counted_and_skipped() {
    let mut log = sample::log(5, 3);
    let mut later =
        super::block::sealed(super::block::BlockKind::Footer, CoreIndex::CONDUCTOR, 0, 1, b"{}");
    later[8] = 77;
    let checksum = super::block::block_checksum(&later);
    later[28..32].copy_from_slice(&checksum.to_le_bytes());
    log.extend_from_slice(&later);
    let mut record = Record::Lost { time: RunNanos(0), count: 0 }.encode();
    record[0] = 99;
    let kind = super::block::BlockKind::Records;
    log.extend(super::block::sealed(kind, CoreIndex(9), 0, 1, &record));
    let run = Run::read(&log).expect("a log");
    assert_eq!(
        run.warnings,
        [
            "1 block is of a kind that this version does not know",
            "1 record is of a kind that this version does not know"
        ]
    );
}

#[test]
fn events_that_share_a_record_read_as_if_each_had_its_own() {
    let core = CoreIndex(0);
    let logs = [false, true].map(|shared| {
        let mut sample = sample::Sample::new();
        for (lengths, start) in [(vec![5; 20], 100), (vec![7], 300), (vec![0, 255, 9], 400)] {
            let request = sample.send(start);
            let time = RunNanos(start + 50);
            let mut together = Together::default();
            for bytes in lengths {
                if shared && together.add(ChunkKind::TEXT, 1, bytes) {
                    continue;
                }
                if shared {
                    let full = std::mem::take(&mut together);
                    sample.push(core, Record::Chunks { request, time, together: full });
                    assert!(together.add(ChunkKind::TEXT, 1, bytes), "it is empty");
                    continue;
                }
                let kind = ChunkKind::TEXT;
                sample.push(core, Record::Chunk { request, time, kind, tokens: 1, bytes });
            }
            if !together.is_empty() {
                sample.push(core, Record::Chunks { request, time, together });
            }
            sample.done(request, start + 60, Class::Ok);
        }
        sample.bytes()
    });
    let [single, shared] = logs.each_ref().map(|log| Run::read(log).expect("a log"));
    assert!(logs[1].len() < logs[0].len());
    assert_eq!(shared.warnings, single.warnings);
    for i in 0..3 {
        let rows = [&single, &shared].map(|run| run.chunks.row(i).iter().collect::<Vec<_>>());
        assert_eq!(rows[0], rows[1], "request {i}");
        assert_eq!(shared.requests.chunk_tokens(i), single.requests.chunk_tokens(i));
        assert_eq!(shared.requests.second_token(i), single.requests.second_token(i));
    }
}
