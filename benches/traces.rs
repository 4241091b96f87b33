//! Traces that are made up for the benches, in Mooncake's format and with its proportions.
//!
//! The public conversation trace has 12,031 rows in an hour, 12,000 tokens of prompt on average in
//! blocks of 512, 60 of them in a row, bursts every three seconds and long runs of shared prefix.
//! This writes rows of that kind, the same bytes every time; whoever has the real file names it in
//! `ONBEAT_MOONCAKE_TRACE`.

use std::io::{self, Write};

/// Rows of the public conversation trace.
pub const CONVERSATION_ROWS: u64 = 12_031;
/// Families of requests that share a prefix.
const FAMILIES: u64 = 1_499;
/// Rows that are due together, every three seconds.
const BURST: u64 = 10;

/// Writes a trace of `rows` rows.
///
/// # Errors
/// When `out` refuses the bytes.
pub fn write_mooncake(rows: u64, out: &mut impl Write) -> io::Result<()> {
    let mut ids = String::new();
    for row in 0..rows {
        // SplitMix64's last step: digits that look drawn and are the same everywhere.
        let mut draw = (row + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        draw = (draw ^ (draw >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        draw ^= draw >> 27;
        // Half of the rows have up to 16 blocks, half up to 48: 24 on average, as there.
        let blocks = 1 + if draw & 1 == 0 { 8 + draw / 2 % 16 } else { 16 + draw / 2 % 32 };
        let (family, shared) = (draw / 64 % FAMILIES, 1 + draw / 8 % (blocks / 2).max(1));
        ids.clear();
        for block in 0..blocks {
            let id = match block {
                0 => 0,
                block if block < shared => 1 + family * 32 + block,
                block => 100_000 + row * 64 + block,
            };
            if block > 0 {
                ids.push_str(", ");
            }
            ids.push_str(&id.to_string());
        }
        let (input, output) = (blocks * 512 - draw / 128 % 512, 1 + draw / 1_024 % 700);
        let at_ms = row / BURST * 3_000;
        writeln!(
            out,
            "{{\"timestamp\": {at_ms}, \"input_length\": {input}, \"output_length\": {output}, \
             \"hash_ids\": [{ids}]}}"
        )?;
    }
    Ok(())
}

/// A trace as text; see [`write_mooncake`].
///
/// # Panics
/// Never: memory takes all bytes.
#[must_use]
pub fn mooncake(rows: u64) -> Vec<u8> {
    let mut text = Vec::new();
    write_mooncake(rows, &mut text).expect("a vector takes everything");
    text
}

#[cfg(test)]
mod tests {
    use onbeat::trace::{self, TraceOptions};

    use super::*;

    #[test]
    fn the_made_up_trace_is_read_and_has_the_proportions() {
        let mut file = tempfile::NamedTempFile::new().expect("a file for the trace");
        file.write_all(&mooncake(1_000)).expect("room for the trace");
        let trace = trace::load(file.path(), &TraceOptions::default()).expect("right rows");
        assert_eq!(trace.records.len(), 1_000);
        let tokens: u64 = trace.records.iter().map(|row| u64::from(row.input_tokens)).sum();
        assert!((8_000..16_000).contains(&(tokens / 1_000)), "{}", tokens / 1_000);
    }
}
