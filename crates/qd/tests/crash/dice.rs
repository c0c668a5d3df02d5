//! Seeded chance: a failure can be had again.

/// SplitMix64.
pub struct Dice(u64);

impl Dice {
    /// From `CRASH_SEED`, or another one each time; printed, for whoever wants the same again.
    pub fn cast() -> Self {
        let now = || crate::world::now().0 % 1_000_000;
        let seed = std::env::var("CRASH_SEED")
            .map_or_else(|_| now(), |seed| seed.parse().expect("a number"));
        println!("CRASH_SEED={seed}");
        Self(seed)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) % end as u64) as usize
    }

    pub fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            things.swap(last, self.below(last + 1));
        }
    }
}
