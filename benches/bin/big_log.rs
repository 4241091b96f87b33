//! Writes a made-up run log: `big_log OUT.beat [REQUESTS [EVENTS PER ANSWER]]`; without numbers one
//! of a million requests and thirty million content events.

use std::fs::File;
use std::io::{BufWriter, Error, Result};

use benches::big_log::{self, LARGE, Size};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or_else(|| Error::other("where should the log be written?"))?;
    let mut number = |usual: u32| match arguments.next() {
        Some(text) => text.parse().map_err(|_wrong| Error::other(format!("{text} is no number"))),
        None => Ok(usual),
    };
    let size = Size { requests: number(LARGE.requests)?, events: number(LARGE.events)? };
    let written = big_log::write(size, BufWriter::with_capacity(1 << 20, File::create(&path)?))?;
    println!("{path}: {written:?}");
    Ok(())
}
