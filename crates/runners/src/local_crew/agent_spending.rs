//! What a turn of an agent took, as far as the agent tells.

use qd_harness::driver::Spending;
use qd_session::logbook::Used;

#[derive(Debug, Default)]
pub struct Spent {
    turn: Used,
    /// Of the whole session so far, and when the turn began.
    micro_usd: u64,
    micro_usd_before: u64,
}

impl Spent {
    pub fn begin(&mut self) {
        self.turn = Used::default();
        self.micro_usd_before = self.micro_usd;
    }

    pub fn take(&mut self, spending: &Spending) {
        if let Some(tokens) = &spending.tokens {
            self.turn = Used {
                input_tokens: tokens.input,
                output_tokens: tokens.output,
                cache_read_tokens: tokens.cache_read,
                cache_written_tokens: tokens.cache_written(),
                micro_usd: 0,
            };
        }
        if let Some(usd) = spending.cost_usd {
            self.micro_usd = (usd * 1e6) as u64;
        }
    }

    pub fn end(&mut self) -> Used {
        let micro_usd = self.micro_usd.saturating_sub(self.micro_usd_before);
        Used { micro_usd, ..std::mem::take(&mut self.turn) }
    }
}
