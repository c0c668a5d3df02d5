//! FNV-1a, 64 bits: tells bytes apart, finds half writes; promises nothing against malice.

/// Where it usually begins.
pub const BASIS: u64 = 0xcbf2_9ce4_8422_2325;

pub fn fnv(basis: u64, bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(basis, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
