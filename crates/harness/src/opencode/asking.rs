//! How OpenCode, and Kilo from 7 on, are made to ask before every call.
//!
//! Their own settings let most tools pass, and what passes there no rule of ours ever sees. Of all
//! rules for a tool the last one counts, and a word replaces whatever patterns the user has for it;
//! an agent's own rules come after those for all agents. What the user's settings deny is therefore
//! asked about, too.

use serde_json::{Map, Value, json};

/// The variables that say so, by the start of the product's own ones.
pub fn asking(product: Product) -> Vec<(&'static str, String)> {
    let rules = rules();
    let agents: Map<String, Value> = product
        .agents()
        .iter()
        .map(|agent| ((*agent).to_owned(), json!({ "permission": rules })))
        .collect();
    let (permission, content) = match product {
        Product::Opencode => ("OPENCODE_PERMISSION", "OPENCODE_CONFIG_CONTENT"),
        Product::Kilo => ("KILO_PERMISSION", "KILO_CONFIG_CONTENT"),
    };
    vec![(permission, rules.to_string()), (content, json!({ "agent": agents }).to_string())]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Product {
    Opencode,
    Kilo,
}

impl Product {
    /// The agent that a prompt goes to, and those that come with the product and may be started by
    /// it.
    fn agents(self) -> [&'static str; 3] {
        match self {
            Self::Opencode => ["build", "general", "explore"],
            Self::Kilo => ["code", "general", "explore"],
        }
    }
}

fn rules() -> Value {
    let ask = ASKED.iter().map(|tool| ((*tool).to_owned(), json!("ask")));
    let pass = HARMLESS.iter().map(|tool| ((*tool).to_owned(), json!("allow")));
    Value::Object(ask.chain(pass).collect())
}

/// Every tool, those of MCP servers among them; and by name those that a user may have a rule for.
const ASKED: [&str; 12] = [
    "*",
    "bash",
    "codesearch",
    "edit",
    "glob",
    "grep",
    "list",
    "read",
    "skill",
    "task",
    "webfetch",
    "websearch",
];

/// The agent's notes to itself.
const HARMLESS: [&str; 2] = ["todoread", "todowrite"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_asks_in_every_agent_but_for_notes() {
        for product in [Product::Opencode, Product::Kilo] {
            let said = asking(product);
            let [(_, permission), (_, content)] = said.as_slice() else { panic!("{said:?}") };
            let permission: Value = serde_json::from_str(permission).expect("JSON");
            let content: Value = serde_json::from_str(content).expect("JSON");
            for agent in product.agents() {
                assert_eq!(content["agent"][agent]["permission"], permission);
            }
            let told = permission.as_object().expect("rules");
            // Of two that fit the last one counts: the general one has to come first.
            assert_eq!(told.keys().next().map(String::as_str), Some("*"));
            let passes = told.iter().filter(|(_, effect)| **effect != "ask");
            assert_eq!(passes.map(|(tool, _)| tool).collect::<Vec<_>>(), HARMLESS.to_vec());
        }
    }
}
