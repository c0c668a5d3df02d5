//! Tokens by kind.

use std::iter::Sum;
use std::ops::AddAssign;

/// The kinds are disjoint: what was read from a cache is not counted as input again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tokens {
    pub input: u64,
    pub output: u64,
    /// Written to a cache that lives five minutes, or as long as nobody says otherwise.
    pub cache_write: u64,
    /// Written to a cache that lives an hour; it costs more.
    pub cache_write_1h: u64,
    pub cache_read: u64,
}

impl Tokens {
    pub fn total(&self) -> u64 {
        self.context().saturating_add(self.output)
    }

    /// What the model had before it when it answered.
    pub fn context(&self) -> u64 {
        self.input.saturating_add(self.cache_written()).saturating_add(self.cache_read)
    }

    /// What came to it since then.
    pub(crate) fn less(&self, before: &Self) -> Self {
        Self {
            input: self.input.saturating_sub(before.input),
            output: self.output.saturating_sub(before.output),
            cache_write: self.cache_write.saturating_sub(before.cache_write),
            cache_write_1h: self.cache_write_1h.saturating_sub(before.cache_write_1h),
            cache_read: self.cache_read.saturating_sub(before.cache_read),
        }
    }

    pub fn cache_written(&self) -> u64 {
        self.cache_write.saturating_add(self.cache_write_1h)
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, more: Self) {
        self.input = self.input.saturating_add(more.input);
        self.output = self.output.saturating_add(more.output);
        self.cache_write = self.cache_write.saturating_add(more.cache_write);
        self.cache_write_1h = self.cache_write_1h.saturating_add(more.cache_write_1h);
        self.cache_read = self.cache_read.saturating_add(more.cache_read);
    }
}

impl Sum for Tokens {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |mut sum, part| {
            sum += part;
            sum
        })
    }
}
