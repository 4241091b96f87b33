//! A run as others may watch it: our numbers for who asks, and a server's own for the log.
//!
//! `--prometheus-port` serves counters and histograms of the run as it goes, in Prometheus' text
//! format; `--scrape` asks servers for theirs and puts them into the log. Neither touches a pacing
//! core: ours are added up from what the log's writer is given anyway, by its thread, and who asks
//! is answered by a thread of its own; servers are asked by threads that only hand over what came.
//! Everything is bounded: connections, heads, answers, series.

mod exposition;
mod figures;
mod histogram;
mod page;
mod recording;
mod scraper;
mod serving;
mod source;

use std::net::SocketAddr;

pub use self::figures::Figures;
pub use self::recording::Recording;
pub use self::scraper::Scraper;
pub use self::serving::{Listener, Serving};
pub use self::source::{ScrapeText, ScrapeUrl, Source, sources};

/// What of a run is to be seen while it goes, as meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveOptions {
    /// Where our own numbers are served; `None`: nowhere.
    pub serve_at: Option<SocketAddr>,
    /// Which servers are asked for theirs.
    pub scrape: Vec<ScrapeUrl>,
    /// How often, in nanoseconds.
    pub scrape_interval_ns: i64,
}

/// What a run does for those who watch it.
#[derive(Debug, Default)]
pub struct Onlookers {
    /// Our own numbers, served already.
    pub serving: Option<Serving>,
    /// Servers to be asked.
    pub sources: Vec<Source>,
    /// Nanoseconds between two askings of one.
    pub interval_ns: i64,
}
