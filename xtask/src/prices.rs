//! Makes the bundled price table anew, from the list that LiteLLM keeps (MIT): the models that the
//! agents we know can be set to, at their vendors' own prices. What the list has dropped stays:
//! histories are full of models that nobody sells any more.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

/// `list` is LiteLLM's `model_prices_and_context_window.json`; `date` the day it is of.
pub fn refresh(list: &str, date: &str) -> Result<()> {
    let text = fs::read_to_string(list).with_context(|| format!("cannot read {list}"))?;
    let list: Map<String, Value> = serde_json::from_str(&text).context("the list is no JSON")?;
    let listed: Vec<(&str, Map<String, Value>)> =
        list.iter().filter_map(|(name, about)| priced(name, about)).collect();
    if listed.len() < MODELS_MIN {
        bail!("only {} models found: has the list another form now?", listed.len());
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/harness/prices.json");
    let before = fs::read_to_string(&path).context("cannot read the table")?;
    let before: Value = serde_json::from_str(&before).context("the table is no JSON")?;
    let mut models: BTreeMap<String, Map<String, Value>> =
        serde_json::from_value(before["models"].clone()).context("the table has another form")?;
    for (name, price) in listed {
        models.entry(name.to_owned()).or_default().extend(price);
    }
    fs::write(&path, spelled(date, &models)).context("cannot write the table")?;
    println!("{} models in {}", models.len(), path.display());
    Ok(())
}

/// One line for each model, so that a difference can be read.
fn spelled(date: &str, models: &BTreeMap<String, Map<String, Value>>) -> String {
    let lines: Vec<String> = models
        .iter()
        .map(|(name, price)| format!("    {}: {}", json!(name), json!(price)))
        .collect();
    format!("{{\n  \"date\": {},\n  \"models\": {{\n{}\n  }}\n}}\n", json!(date), lines.join(",\n"))
}

fn priced<'a>(name: &'a str, about: &Value) -> Option<(&'a str, Map<String, Value>)> {
    let vendor = about["litellm_provider"].as_str()?;
    let is_text = matches!(about["mode"].as_str()?, "chat" | "responses");
    let name = match vendor {
        "anthropic" | "openai" => name,
        "gemini" | "xai" | "deepseek" | "mistral" | "moonshot" => {
            name.strip_prefix(vendor)?.strip_prefix('/')?
        }
        _ => return None,
    };
    let is_plain = !name.contains('/') && !NOT_FOR_AGENTS.iter().any(|word| name.contains(word));
    if !is_text || !is_plain {
        return None;
    }
    let mut price = rates(about, "")?;
    let tier = TIERS.into_iter().find(|(ending, _)| {
        about.get(format!("input_cost_per_token{ending}")).is_some_and(Value::is_number)
    });
    if let Some((ending, above)) = tier
        && let Some(mut long) = rates(about, ending)
    {
        long.insert("above".to_owned(), json!(above));
        price.insert("long".to_owned(), Value::Object(long));
    }
    let fast = &about["provider_specific_entry"]["fast"];
    if fast.is_number() {
        price.insert("fast".to_owned(), fast.clone());
    }
    if let Some(window) = about["max_input_tokens"].as_u64() {
        price.insert("window".to_owned(), json!(window));
    }
    Some((name, price))
}

/// None where the model has no price.
fn rates(about: &Value, ending: &str) -> Option<Map<String, Value>> {
    let of = |what: &str| about.get(format!("{what}{ending}")).and_then(Value::as_f64);
    let input = of("input_cost_per_token").filter(|price| *price > 0.0)?;
    let output = of("output_cost_per_token")?;
    let hour = match ending {
        "" => about.get("cache_creation_input_token_cost_above_1hr").and_then(Value::as_f64),
        _ => None,
    };
    let all = [
        ("input", Some(input)),
        ("output", Some(output)),
        ("cache_write", of("cache_creation_input_token_cost")),
        ("cache_write_1h", hour),
        ("cache_read", of("cache_read_input_token_cost")),
    ];
    // The list has dollars a token; a million are easier to read.
    let million = |price: f64| json!((price * 1e12).round() / 1e6);
    Some(
        all.into_iter()
            .filter_map(|(name, price)| Some((name.to_owned(), million(price?))))
            .collect(),
    )
}

/// How the list spells prices for a long context.
const TIERS: [(&str, u64); 4] = [
    ("_above_128k_tokens", 128_000),
    ("_above_200k_tokens", 200_000),
    ("_above_256k_tokens", 256_000),
    ("_above_272k_tokens", 272_000),
];

const NOT_FOR_AGENTS: [&str; 9] =
    ["audio", "realtime", "image", "vision", "search", "transcribe", "tts", "ft:", "embedding"];

/// The first table had more than twice as many.
const MODELS_MIN: usize = 60;
