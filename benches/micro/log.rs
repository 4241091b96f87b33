//! The run log: what a pacing core pays to append, the writer to seal, and a reader to read.

use benches::{Bencher, checksum, mix};
use onbeat_shared::log::{BlockBuffer, ChunkKind, Record, sample};
use onbeat_shared::run::Run;
use onbeat_shared::units::{CoreIndex, RequestIndex, RunNanos};

pub(crate) fn bench(bencher: &Bencher) {
    append(bencher);
    read(bencher);
}

/// Fills blocks as a core does, and seals them as the writer does.
fn append(bencher: &Bencher) {
    let records = bencher.pick(10_000_u32, 1_000_000);
    let mut block = BlockBuffer::new();
    bencher.measure("log_append", "record", records as usize, || {
        let mut hash = 0;
        let mut sequence = 0;
        block.clear();
        for number in 0..records {
            let record = Record::Chunk {
                request: RequestIndex(number / 128),
                time: RunNanos(i64::from(number) * 1_000),
                kind: ChunkKind::TEXT,
                tokens: 1,
                bytes: 5,
            };
            if block.push(&record).is_err() {
                hash = mix(hash, seal(&mut block, &mut sequence));
                block.push(&record).expect("a cleared block has room");
            }
        }
        mix(hash, seal(&mut block, &mut sequence))
    });
}

/// Seals and clears; the checksum is of the block's head, which holds the CRC of the rest.
fn seal(block: &mut BlockBuffer, sequence: &mut u32) -> u64 {
    let sealed = block.seal(CoreIndex(0), *sequence);
    let hash = checksum(&sealed[..64]);
    *sequence += 1;
    block.clear();
    hash
}

/// Decodes a whole log and joins its records to requests.
fn read(bencher: &Bencher) {
    if !bencher.wants("log_read") {
        return;
    }
    let bytes = sample::log(7, bencher.pick(200, 50_000));
    bencher.measure("log_read", "byte", bytes.len(), || {
        let run = Run::read(&bytes).expect("the sample is a whole log");
        (0..run.requests.len()).fold(0, |hash, i| mix(hash, run.requests.chunk_tokens(i)))
    });
}
