//! Responses added up.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::{Charge, Tokens};

/// Written as ccusage writes it, so that whoever reads that can read this.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sum {
    pub tokens: Tokens,
    pub dollars: f64,
    /// A part of the money is a guess: the price of a model was not known.
    pub is_estimate: bool,
    pub responses: u64,
}

impl Sum {
    pub fn add(&mut self, tokens: Tokens, charge: Charge) {
        self.tokens += tokens;
        self.dollars += charge.dollars;
        self.is_estimate |= charge.is_estimate;
        self.responses += 1;
    }
}

impl Serialize for Sum {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("inputTokens", &self.tokens.input)?;
        map.serialize_entry("outputTokens", &self.tokens.output)?;
        map.serialize_entry("cacheCreationTokens", &self.tokens.cache_written())?;
        map.serialize_entry("cacheReadTokens", &self.tokens.cache_read)?;
        map.serialize_entry("totalTokens", &self.tokens.total())?;
        map.serialize_entry("totalCost", &self.dollars)?;
        map.serialize_entry("isEstimate", &self.is_estimate)?;
        map.serialize_entry("responses", &self.responses)?;
        map.end()
    }
}
