//! What tells a damaged payload: FNV-1a, 64 bits.

/// The sum of all bytes so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checksum(pub u64);

impl Default for Checksum {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Checksum {
    pub fn of(bytes: &[u8]) -> Self {
        Self::default().and(bytes)
    }

    /// With these bytes behind.
    pub fn and(self, bytes: &[u8]) -> Self {
        let add = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        Self(bytes.iter().fold(self.0, add))
    }
}
