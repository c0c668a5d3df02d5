//! What a model's tokens cost.

use serde::{Deserialize, Serialize};

use super::{Speed, Tokens};

/// Dollars for a million tokens of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rates {
    pub input: f64,
    pub output: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
}

/// One model's line in the table.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Price {
    #[serde(flatten)]
    pub rates: Rates,
    /// For a request with a long context, all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long: Option<Long>,
    /// A fast answer costs so many times as much.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fast: Option<f64>,
    /// How many tokens fit into its context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Long {
    /// Tokens of context beyond which these rates hold.
    pub above: u64,
    #[serde(flatten)]
    pub rates: Rates,
}

/// What a response cost, in dollars.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Charge {
    pub dollars: f64,
    /// The model is in no table: its family's price was taken, or none.
    pub is_estimate: bool,
}

impl Price {
    pub fn of(&self, tokens: &Tokens, speed: Option<Speed>) -> f64 {
        let rates = match self.long {
            Some(long) if tokens.context() > long.above => long.rates,
            _ => self.rates,
        };
        let times = match speed {
            Some(Speed::Fast) => self.fast.unwrap_or(1.0),
            Some(Speed::Standard) | None => 1.0,
        };
        times * rates.of(tokens) / 1e6
    }
}

impl Rates {
    fn of(&self, tokens: &Tokens) -> f64 {
        // Where a vendor charges nothing extra for a cache, its tokens are input.
        let write = self.cache_write.unwrap_or(self.input);
        let write_1h = self.cache_write_1h.unwrap_or(write);
        let read = self.cache_read.unwrap_or(self.input);
        [
            (tokens.input, self.input),
            (tokens.output, self.output),
            (tokens.cache_write, write),
            (tokens.cache_write_1h, write_1h),
            (tokens.cache_read, read),
        ]
        .into_iter()
        .map(|(count, rate)| count as f64 * rate)
        .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICE: Price = Price {
        rates: Rates {
            input: 3.0,
            output: 15.0,
            cache_write: Some(3.75),
            cache_write_1h: Some(6.0),
            cache_read: Some(0.3),
        },
        long: Some(Long {
            above: 200_000,
            rates: Rates {
                input: 6.0,
                output: 22.5,
                cache_write: None,
                cache_write_1h: None,
                cache_read: Some(0.6),
            },
        }),
        fast: Some(6.0),
        window: Some(1_000_000),
    };

    const MILLION: u64 = 1_000_000;

    #[track_caller]
    fn check(tokens: Tokens, speed: Option<Speed>, dollars: f64) {
        let price = PRICE.of(&tokens, speed);
        assert!((price - dollars).abs() < 1e-9, "{price} for {tokens:?}");
    }

    #[test]
    fn each_kind_has_its_rate() {
        let none = Tokens::default();
        check(none, None, 0.0);
        check(Tokens { output: MILLION, ..none }, None, 15.0);
        check(Tokens { input: 100_000, ..none }, None, 0.3);
        check(Tokens { cache_write: 100_000, ..none }, None, 0.375);
        check(Tokens { cache_write_1h: 100_000, ..none }, None, 0.6);
        check(Tokens { cache_read: 100_000, ..none }, None, 0.03);
    }

    #[test]
    fn a_long_context_makes_all_of_the_request_dearer() {
        let context = Tokens { cache_read: 200_000, output: 100_000, ..Tokens::default() };
        check(context, None, 0.06 + 1.5);
        check(Tokens { cache_read: 200_001, ..context }, None, 0.120_000_6 + 2.25);
        check(Tokens { input: MILLION, ..Tokens::default() }, None, 6.0);
        // No rate of its own: as input.
        check(Tokens { cache_write_1h: MILLION, ..Tokens::default() }, None, 6.0);
    }

    #[test]
    fn a_fast_answer_costs_more() {
        let tokens = Tokens { output: MILLION, ..Tokens::default() };
        check(tokens, Some(Speed::Fast), 90.0);
        check(tokens, Some(Speed::Standard), 15.0);
    }
}
