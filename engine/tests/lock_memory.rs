//! Memory is locked as far as the system allows, and the answer says how far. In a process of its
//! own, because what is locked stays locked.

use onbeat::conductor::host::{MemoryLock, lock_memory};

#[test]
fn the_answer_is_what_the_kernel_says() {
    let lock = lock_memory();
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let locked_kib: u64 = status
        .lines()
        .find_map(|line| line.strip_prefix("VmLck:"))
        .and_then(|rest| rest.trim().strip_suffix(" kB")?.trim().parse().ok())
        .expect("the kernel counts locked memory");
    match lock {
        MemoryLock::Whole | MemoryLock::AtStart => assert!(locked_kib > 0, "{status}"),
        MemoryLock::Refused(_) => assert_eq!(locked_kib, 0, "{status}"),
    }
    // Whatever was granted, memory can still be had.
    let more = vec![1_u8; 32 << 20];
    assert_eq!(more.iter().map(|&byte| u64::from(byte)).sum::<u64>(), 32 << 20);
}
