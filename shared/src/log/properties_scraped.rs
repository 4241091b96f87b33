//! Properties of what servers say of themselves in a log: any damage costs values, never makes one.

use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};
use proptest::sample::Index;

use super::properties::{extreme, make_checksums_right, payload_places, time};
use super::record::TEXT_PART_BYTES;
use super::{FORMAT_VERSION, IMPOSSIBLE_MAX, Record, Scraped, SeriesKind, sample};
use crate::export::{self, Beside, Table, TextFormat};
use crate::metrics::ReportOptions;
use crate::metrics::slo::Goals;
use crate::run::Run;

pub(super) fn of_servers() -> impl Strategy<Value = Record> {
    let text = (any::<(u32, u8, u8)>(), 0..=24_u8, any::<[u8; TEXT_PART_BYTES]>()).prop_map(
        |((number, part, parts), used, bytes)| Scraped::Text { number, part, parts, used, bytes },
    );
    let kind = prop_oneof![Just(SeriesKind::Gauge), Just(SeriesKind::Counter)];
    let number = any::<f64>().prop_filter("a number", |value| value.is_finite());
    let value = (any::<(u32, u64)>(), time(), kind, number).prop_map(
        |((series, within_ns), time, kind, value)| Scraped::Value {
            series,
            time,
            within_ns,
            kind,
            value,
        },
    );
    let numbers = (any::<(u32, u16, u16, u16)>(), 0..=IMPOSSIBLE_MAX);
    let asked = (numbers, time(), time(), any::<Option<u32>>()).prop_map(
        |(((source, status, values, left_out), impossible), start, end, failure)| Scraped::Asked {
            source,
            start,
            end,
            status: Some(status).filter(|&status| status != 0),
            values,
            left_out,
            impossible,
            failure,
        },
    );
    prop_oneof![text, value, asked].prop_map(Record::Scraped)
}

/// The values of a run, each with its series and time.
fn values(run: &Run) -> Vec<(String, i64, u64)> {
    let series = run.servers.iter().flat_map(|servers| &servers.series);
    let values = series.flat_map(|series| {
        let name = format!("{}{}", series.name, series.labels);
        series.points.iter().map(move |point| (name.clone(), point.time.0, point.value.to_bits()))
    });
    values.collect()
}

/// Whether each value of `part` is one of `whole`, whatever became of its name.
fn nothing_invented(part: &Run, whole: &[(String, i64, u64)], at: usize) {
    for (name, time, value) in values(part) {
        let known = whole.iter().any(|(known, known_time, known_value)| {
            (time, value) == (*known_time, *known_value)
                && (name == *known || name.starts_with("unknown_"))
        });
        assert!(known, "{name} = {value} at {time} was made up, at {at}");
    }
}

#[test]
fn a_cut_or_flipped_log_has_no_value_that_the_whole_one_lacks() {
    let log = sample::with_scrapes(sample::sample(5, 4)).bytes();
    let whole = values(&Run::read(&log).expect("a log"));
    assert_eq!(whole.len(), 6 * 8, "six series, eight answers");
    let mut lost = 0;
    for at in (0..log.len()).step_by(41) {
        if let Ok(cut) = Run::read(&log[..at]) {
            nothing_invented(&cut, &whole, at);
            lost += usize::from(values(&cut).len() < whole.len());
        }
        let mut flipped = log.clone();
        flipped[at] ^= 1 << (at % 8);
        if let Ok(flipped) = Run::read(&flipped) {
            nothing_invented(&flipped, &whole, at);
        }
    }
    assert!(lost > 0);
}

#[test]
fn a_reader_of_an_older_version_skips_them() {
    // What it does not know is a kind of record, which every version counts and skips.
    assert_eq!(FORMAT_VERSION, 7);
    let record = |fact| Record::Scraped(fact).encode()[0];
    let mut log = sample::scraped(5);
    let facts: Vec<u8> = log
        .records
        .iter()
        .filter_map(
            |(_, it)| if let Record::Scraped(fact) = *it { Some(record(fact)) } else { None },
        )
        .collect();
    assert!(facts.iter().all(|kind| (17..=19).contains(kind)));
    log.records.retain(|(_, record)| !matches!(record, Record::Scraped(_)));
    let without = Run::read(&log.bytes()).expect("a log");
    let with = Run::read(&sample::scraped(5).bytes()).expect("a log");
    assert_eq!(without.servers, None);
    assert_eq!(with.requests.len(), without.requests.len());
    for i in 0..with.requests.len() {
        assert_eq!(with.requests.done(i), without.requests.done(i));
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Checksums made right again, so that the changed numbers reach the code behind them.
    #[test]
    fn hostile_numbers_read_without_a_panic(
        changes in proptest::collection::vec((any::<Index>(), extreme(), 0_usize..9), 1..60),
    ) {
        let mut log = sample::with_scrapes(sample::sample(3, 20)).bytes();
        let places = payload_places(&log);
        for (place, bytes, length) in changes {
            let at = places[place.index(places.len())];
            let end = (at + length).min(log.len());
            log[at..end].copy_from_slice(&bytes[..end - at]);
        }
        make_checksums_right(&mut log);
        if let Ok(run) = Run::read(&log) {
            let _report = crate::metrics::report(&run, &ReportOptions::default());
            let goals = Goals::default();
            let (beside, sink) = (Beside::goals(&goals), std::io::sink());
            export::write_text(&run, Table::Scraped, TextFormat::JsonLines, &beside, sink)
                .expect("a sink takes everything");
        }
    }
}
