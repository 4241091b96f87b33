//! The micro benches, in one program: each stage alone, in memory, on made-up input.
//!
//! `cargo bench -p benches --bench micro` measures, with `-- sse` only those with that word,
//! `cargo x ci` runs them small so that they cannot rot. The whole program against a server is
//! another matter: these say which stage got slower, not how late requests leave.

mod chunks;
mod decimate;
mod load;
mod log;
mod report;
mod sse;
mod stages;
mod text;

use benches::Bencher;

fn main() {
    let bencher = Bencher::from_arguments(std::env::args().skip(1));
    text::bench(&bencher);
    load::bench(&bencher);
    stages::bench(&bencher);
    sse::bench(&bencher);
    chunks::bench(&bencher);
    log::bench(&bencher);
    report::bench(&bencher);
    decimate::bench(&bencher);
}
