//! The dated price table, and how a model finds its line in it.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Charge, Price, Response, Speed, Tokens};

/// Prices by model. The bundled one says of which day it is; the operator's own lines win.
#[derive(Debug, Clone, Deserialize)]
pub struct PriceTable {
    /// The day the table was made.
    pub date: String,
    models: BTreeMap<String, Price>,
}

/// How a model was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Found<'a> {
    Exactly(&'a Price),
    /// By the newest model of its family, which has this name.
    Family(&'a str, &'a Price),
}

impl PriceTable {
    /// The one that was current when this program was built.
    pub fn bundled() -> Self {
        serde_json::from_str(include_str!("../../prices.json"))
            .expect("our own table is well formed")
    }

    /// The operator's price of a model.
    pub fn set(&mut self, model: &str, price: Price) {
        self.models.insert(model.to_owned(), price);
    }

    /// None for a model nobody has heard of.
    pub fn find(&self, model: &str) -> Option<Found<'_>> {
        let price = |name: &str| self.models.get(name).map(Found::Exactly);
        let bare = bare(model);
        price(model)
            .or_else(|| price(bare))
            .or_else(|| price(undated(bare)))
            .or_else(|| self.family(undated(bare)))
    }

    /// What a response cost: as its client says, else by its model's price.
    pub fn charge(&self, response: &Response<'_>) -> Charge {
        match response.cost {
            Some(dollars) => Charge { dollars, is_estimate: false },
            None => self.charge_of(response.model.as_deref(), &response.tokens, response.speed),
        }
    }

    /// By the price of a model. Without a model nothing is charged: nobody answered.
    pub fn charge_of(&self, model: Option<&str>, tokens: &Tokens, speed: Option<Speed>) -> Charge {
        match model {
            Some(model) => Self::charge_by(self.find(model), tokens, speed),
            None => Charge::default(),
        }
    }

    /// By what was found for a model.
    pub fn charge_by(found: Option<Found<'_>>, tokens: &Tokens, speed: Option<Speed>) -> Charge {
        match found {
            Some(Found::Exactly(price)) => {
                Charge { dollars: price.of(tokens, speed), is_estimate: false }
            }
            Some(Found::Family(_, price)) => {
                Charge { dollars: price.of(tokens, speed), is_estimate: true }
            }
            None => Charge { dollars: 0.0, is_estimate: tokens.total() > 0 },
        }
    }

    /// How many tokens fit into a model's context.
    pub fn window(&self, model: &str) -> Option<u64> {
        match self.find(model)? {
            Found::Exactly(price) | Found::Family(_, price) => price.window,
        }
    }

    /// The newest model whose name begins as this one's does; at least two words must.
    fn family(&self, model: &str) -> Option<Found<'_>> {
        let mut begin = model;
        while begin.contains('-') {
            let relatives = self.models.iter().filter(|(name, _)| {
                let rest = name.strip_prefix(begin);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '.']))
            });
            if let Some((name, price)) = relatives.max_by(|a, b| by_version(a.0, b.0)) {
                return Some(Found::Family(name, price));
            }
            (begin, _) = begin.rsplit_once(['-', '.'])?;
        }
        None
    }
}

/// Without what a gateway puts before a name, and the client's mark of a large context.
fn bare(model: &str) -> &str {
    let name = model.rsplit('/').next().unwrap_or(model);
    let name = name.rsplit_once("anthropic.").map_or(name, |(_, name)| name);
    name.split(['[', '@', ':']).next().unwrap_or(name)
}

/// Without the day at the end of a name, or `-latest`.
fn undated(model: &str) -> &str {
    match model.rsplit_once('-') {
        Some((name, "latest")) => name,
        Some((name, day)) if day.len() == 8 && day.bytes().all(|byte| byte.is_ascii_digit()) => {
            name
        }
        _ => model,
    }
}

/// 4.10 comes after 4.9, and a dated name before the one without.
fn by_version(a: &str, b: &str) -> Ordering {
    let parts = |name: &str| -> Vec<Result<u64, String>> {
        let parts = undated(name).split(['-', '.']);
        parts.map(|part| part.parse().map_err(|_| part.to_owned())).collect()
    };
    // A number is greater than a word: `opus-5` is newer than `opus-preview`.
    let order = |parts: Vec<Result<u64, String>>| -> Vec<(bool, u64, String)> {
        let split = |part: Result<u64, String>| match part {
            Ok(number) => (true, number, String::new()),
            Err(word) => (false, 0, word),
        };
        parts.into_iter().map(split).collect()
    };
    order(parts(a)).cmp(&order(parts(b))).then_with(|| a.cmp(b).reverse())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(table: &PriceTable, model: &str) -> Option<String> {
        table.find(model).map(|found| match found {
            Found::Exactly(_) => "exactly".to_owned(),
            Found::Family(name, _) => name.to_owned(),
        })
    }

    #[test]
    fn the_bundled_table_knows_todays_models() {
        let table = PriceTable::bundled();
        for model in [
            "claude-opus-4-6",
            "claude-sonnet-4-6",
            "claude-haiku-4-5-20251001",
            "claude-opus-5-5",
            "claude-opus-5-5[1m]",
            "claude-opus-4-6-20991231",
            "us.anthropic.claude-opus-4-6",
            "anthropic/claude-opus-4-6",
            "gpt-5",
            "gemini-2.5-pro",
        ] {
            assert_eq!(named(&table, model).as_deref(), Some("exactly"), "{model}");
        }
    }

    #[test]
    fn an_unknown_model_gets_the_price_of_its_familys_newest() {
        let table = PriceTable::bundled();
        assert_eq!(named(&table, "claude-opus-9-9").as_deref(), Some("claude-opus-5-5"));
        assert_eq!(named(&table, "claude-haiku-9").as_deref(), Some("claude-haiku-5-5"));
        for stranger in ["llama", "my-model", "claude", "", "<synthetic>", "claude-weird-9"] {
            assert_eq!(named(&table, stranger), None, "{stranger}");
        }
    }

    #[test]
    fn what_is_not_known_is_marked() {
        let mut table = PriceTable::bundled();
        let tokens = Tokens { input: 1_000_000, ..Tokens::default() };
        let charge = |table: &PriceTable, model| table.charge_of(model, &tokens, None);
        let known = Charge { dollars: 5.0, is_estimate: false };
        assert_eq!(charge(&table, Some("claude-opus-4-6")), known);
        assert!(charge(&table, Some("claude-opus-9-9")).is_estimate);
        let nothing = Charge { dollars: 0.0, is_estimate: true };
        assert_eq!(charge(&table, Some("stranger")), nothing);
        assert_eq!(charge(&table, None), Charge::default());
        let Some(Found::Exactly(&price)) = table.find("claude-opus-4-6") else { panic!("known") };
        table.set("stranger", price);
        assert_eq!(charge(&table, Some("stranger")), known);
    }
}
