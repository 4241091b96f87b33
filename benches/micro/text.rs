//! Prompt text: how fast one core makes words, block by block, as rendering does.

use benches::{Bencher, mix};
use onbeat::prompt::TextKey;

/// Words of a block in Mooncake's traces.
const WORDS: usize = 512;

pub(crate) fn bench(bencher: &Bencher) {
    if !bencher.wants("text") {
        return;
    }
    let blocks = bencher.pick(10_u64, 20_000);
    let room = TextKey::room(WORDS);
    let mut block = vec![0; room];
    let bytes = (0..blocks).map(|id| TextKey::block(7, 0, id).write(WORDS, &mut block)).sum();
    // One text behind the other, as they lie in an arena, which is larger than any cache.
    let mut arena = vec![0; bytes + room];
    // The checksum looks at each block's end alone: looking at every byte costs more than making
    // it, and a word's place depends on all before it.
    bencher.measure("text", "byte", bytes, || {
        let (mut hash, mut at) = (0, 0);
        for id in 0..blocks {
            at += TextKey::block(7, 0, id).write(WORDS, &mut arena[at..]);
            let end = arena[at - 8..at].try_into().expect("eight bytes");
            hash = mix(mix(hash, at as u64), u64::from_le_bytes(end));
        }
        hash
    });
}
