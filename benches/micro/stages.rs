//! The stages before zero: reading a trace, scheduling it, writing its requests.

use std::io::Write as _;

use benches::{Bencher, checksum, mix};
use onbeat::plan::{self, PlanOptions};
use onbeat::render::{self, RenderOptions};
use onbeat::trace::{self, TraceOptions};

pub(crate) fn bench(bencher: &Bencher) {
    let names = ["trace_load", "plan_build", "render_chat"];
    if !names.iter().any(|name| bencher.wants(name)) {
        return;
    }
    let text = mooncake(bencher.pick(50, 5_000));
    let mut file = tempfile::NamedTempFile::new().expect("a file for the trace");
    file.write_all(text.as_bytes()).expect("room for the trace");

    let options = TraceOptions::default();
    bencher.measure(names[0], "byte", text.len(), || {
        let trace = trace::load(file.path(), &options).expect("the rows below are right");
        trace.records.iter().fold(0, |hash, record| mix(hash, u64::from(record.input_tokens)))
    });

    let trace = trace::load(file.path(), &options).expect("the rows below are right");
    let options = PlanOptions::default();
    bencher.measure(names[1], "request", trace.records.len(), || {
        let plan = plan::build(&trace, &options).expect("every row can be planned");
        plan.rows.iter().fold(0, |hash, row| mix(hash, checksum(&row.encode())))
    });

    let plan = plan::build(&trace, &options).expect("every row can be planned");
    let options = RenderOptions { run_id: "bench".to_owned(), ..RenderOptions::default() };
    let bodies = render::render(&plan, &trace, &options).expect("it fits any machine");
    let bytes: u64 = plan.rows.iter().map(|row| bodies.request_bytes(row.request)).sum();
    let bytes = usize::try_from(bytes).expect("it is in memory");
    bencher.measure(names[2], "byte", bytes, || {
        let bodies = render::render(&plan, &trace, &options).expect("it fits any machine");
        plan.rows.iter().fold(0, |hash, row| {
            let last = bodies.parts(row.request).last().map_or(0, checksum);
            mix(mix(hash, bodies.request_bytes(row.request)), last)
        })
    });
}

/// A Mooncake trace of `rows` rows in families that share their first four blocks of 512 tokens.
fn mooncake(rows: u64) -> String {
    let mut text = String::new();
    for row in 0..rows {
        let (family, blocks) = (row % 37, 5 + row % 11);
        let ids: Vec<String> = (0..blocks)
            .map(|block| if block < 4 { family * 4 + block } else { 1_000 + row * 16 + block })
            .map(|id| id.to_string())
            .collect();
        let input = blocks * 512 - row % 512;
        let (time, output, ids) = (row * 20, 50 + row % 300, ids.join(", "));
        text.push_str(&format!(
            r#"{{"timestamp": {time}, "input_length": {input}, "output_length": {output}, "#
        ));
        text.push_str(&format!("\"hash_ids\": [{ids}]}}\n"));
    }
    text
}
