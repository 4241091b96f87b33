//! The numbers: every metric of a finished run, as the summary and the exports ask for them.

use benches::{Bencher, checksum};
use onbeat_shared::log::sample;
use onbeat_shared::metrics::{ReportOptions, report};
use onbeat_shared::run::Run;

pub(crate) fn bench(bencher: &Bencher) {
    if !bencher.wants("metrics_report") {
        return;
    }
    let bytes = sample::log(7, bencher.pick(200, 50_000));
    let run = Run::read(&bytes).expect("the sample is a whole log");
    bencher.measure("metrics_report", "request", run.requests.len(), || {
        let report = report(&run, &ReportOptions::default());
        checksum(&serde_json::to_vec(&report).expect("a report is plain data"))
    });
}
