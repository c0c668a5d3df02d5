//! How long things took: counted by the bounds they stay below.

/// Milliseconds. A file is read in a few, a model thinks for minutes, and the longest tool may run
/// for five of them unless it is told otherwise.
pub const BOUNDS_MS: [u64; 15] =
    [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    /// How many stay within each bound and not within the one before.
    within: [u64; BOUNDS_MS.len()],
    /// Those beyond the last bound, too.
    count: u64,
    sum_ms: u64,
}

impl Histogram {
    pub fn add(&mut self, ms: u64) {
        if let Some(nth) = BOUNDS_MS.iter().position(|bound| ms <= *bound) {
            self.within[nth] += 1;
        }
        self.count += 1;
        self.sum_ms = self.sum_ms.saturating_add(ms);
    }

    /// Each bound with the number of all that stay within it, the smallest first.
    pub fn cumulated(&self) -> impl Iterator<Item = (u64, u64)> {
        let sums = self.within.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        BOUNDS_MS.into_iter().zip(sums)
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn sum_ms(&self) -> u64 {
        self.sum_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_counts_within_its_bound_and_all_above() {
        let mut histogram = Histogram::default();
        for ms in [0, 5, 6, 300_000, 300_001, u64::MAX] {
            histogram.add(ms);
        }
        let counts: Vec<u64> = histogram.cumulated().map(|(_, count)| count).collect();
        assert_eq!(counts, [2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4]);
        assert_eq!((histogram.count(), histogram.sum_ms()), (6, u64::MAX));
    }
}
