//! The page's types are made from the server's document, and may not drift from it.
//!
//! `WIRE_UPDATE=1 cargo test -p qd-server --test wire` writes them anew.

use std::fmt::Write;
use std::path::Path;

use serde_json::{Map, Value};

#[test]
fn the_pages_types_are_those_of_the_server() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/src/wire.gen.ts");
    let made = typescript(qd_server::document());
    if std::env::var_os("WIRE_UPDATE").is_some() {
        std::fs::write(&path, &made).expect("written");
    }
    let known = std::fs::read_to_string(&path).expect("the page's types");
    assert!(
        known == made,
        "web/src/wire.gen.ts is not what the server says: WIRE_UPDATE=1 makes it"
    );
}

fn typescript(document: &Value) -> String {
    let mut text = "/** What the server says, as it spells it. Made from the server's own types by\n * `WIRE_UPDATE=1 cargo test -p qd-server --test wire`. */\n".to_owned();
    let schemas = document["components"]["schemas"].as_object().expect("schemas");
    for (name, schema) in schemas {
        text.push('\n');
        describe(&mut text, "", schema);
        match plain_object(schema) {
            Some(properties) => {
                write!(text, "export interface {name} ").expect("text");
                object(&mut text, schema, properties);
                text.push('\n');
            }
            None => writeln!(text, "export type {name} = {};", spelled(schema)).expect("text"),
        }
    }
    text
}

fn plain_object(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object)
}

fn object(text: &mut String, schema: &Value, properties: &Map<String, Value>) {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    text.push_str("{\n");
    for (name, property) in properties {
        describe(text, "  ", property);
        let mark = if required.contains(&name.as_str()) { "" } else { "?" };
        writeln!(text, "  {name}{mark}: {};", spelled(property)).expect("text");
    }
    text.push('}');
}

fn describe(text: &mut String, indent: &str, schema: &Value) {
    if let Some(words) = schema["description"].as_str() {
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        writeln!(text, "{indent}/** {words} */").expect("text");
    }
}

fn spelled(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        return reference.rsplit('/').next().expect("a name").to_owned();
    }
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().map(Value::to_string).collect::<Vec<_>>().join(" | ");
    }
    for (key, between) in [("oneOf", " | "), ("anyOf", " | "), ("allOf", " & ")] {
        if let Some(parts) = schema[key].as_array() {
            let parts = parts.iter().filter(|part| part["type"] != "null");
            return parts.map(spelled).collect::<Vec<_>>().join(between);
        }
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    };
    let kind = kinds.into_iter().find(|kind| *kind != "null").unwrap_or_default();
    match kind {
        "string" => "string".to_owned(),
        "integer" | "number" => "number".to_owned(),
        "boolean" => "boolean".to_owned(),
        "array" => format!("{}[]", bracketed(spelled(&schema["items"]))),
        "object" => match plain_object(schema) {
            Some(properties) => {
                let mut text = String::new();
                object(&mut text, schema, properties);
                text
            }
            None => match schema.get("additionalProperties") {
                Some(values @ Value::Object(_)) => format!("Record<string, {}>", spelled(values)),
                _ => "Record<string, unknown>".to_owned(),
            },
        },
        _ => "unknown".to_owned(),
    }
}

fn bracketed(kind: String) -> String {
    if kind.contains(' ') { format!("({kind})") } else { kind }
}
