//! How long and how deep a JSON value is, without writing it down.
//!
//! An agent may give a tool anything; what is too long or too deep for the journal is told by this
//! before it is kept.

use serde_json::Value;

/// Whether it nests deeper than so many levels; a plain value is one.
pub fn is_deeper(value: &Value, than: usize) -> bool {
    let Some(left) = than.checked_sub(1) else { return true };
    match value {
        Value::Array(values) => values.iter().any(|value| is_deeper(value, left)),
        Value::Object(fields) => fields.values().any(|value| is_deeper(value, left)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// About as many bytes as it takes when it is written down.
pub fn spelled_len(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 20,
        // A control character takes six; what is nearly all of them is no text.
        Value::String(text) => {
            2 + text.len() + 5 * text.bytes().filter(u8::is_ascii_control).count()
        }
        Value::Array(values) => {
            2 + values.iter().map(|value| 1 + spelled_len(value)).sum::<usize>()
        }
        Value::Object(fields) => {
            2 + fields
                .iter()
                .map(|(name, value)| 4 + name.len() + spelled_len(value))
                .sum::<usize>()
        }
    }
}
