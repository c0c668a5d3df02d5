//! OTLP log bodies as JSON: `resourceLogs`, `scopeLogs`, `logRecords`, `attributes`.
//!
//! Lenient at every level: exporters write numbers now as numbers, now as text, and a record that
//! is not what it should be loses itself, not its batch.

use qd_session::moment::Timestamp;
use serde_json::{Map, Value};

/// The records of a body, in its order. Metrics and traces have none. `None` if it is no body.
pub fn records(body: &Value) -> Option<Vec<Record<'_>>> {
    let resources = match body.as_object()?.get("resourceLogs") {
        Some(resources) => resources.as_array()?.as_slice(),
        None => &[],
    };
    let scopes = resources.iter().flat_map(|resource| list(resource, "scopeLogs"));
    let records = scopes.flat_map(|scope| list(scope, "logRecords"));
    Some(records.filter_map(Value::as_object).map(Record::exported).collect())
}

/// One log record with its attributes at hand.
#[derive(Debug)]
pub struct Record<'a> {
    time: Option<&'a Value>,
    attributes: Vec<(&'a str, &'a Value)>,
}

impl<'a> Record<'a> {
    /// A record whose attributes are an ordinary object, as clients write into files of their own.
    pub fn plain(attributes: &'a Map<String, Value>) -> Self {
        let attributes = attributes.iter().map(|(key, value)| (key.as_str(), value)).collect();
        Self { time: None, attributes }
    }

    fn exported(record: &'a Map<String, Value>) -> Self {
        let attributes = record.get("attributes").and_then(Value::as_array);
        let attribute = |attribute: &'a Value| {
            let value = attribute.get("value")?;
            let value = KINDS.iter().find_map(|kind| value.get(kind))?;
            Some((attribute.get("key")?.as_str()?, value))
        };
        Self {
            time: record.get("timeUnixNano"),
            attributes: attributes.into_iter().flatten().filter_map(attribute).collect(),
        }
    }

    /// When it says it happened; zero is how exporters write that they do not know.
    pub fn time(&self) -> Option<Timestamp> {
        let nanos = self.time.and_then(count_in).filter(|nanos| *nanos > 0)?;
        Some(Timestamp(nanos / 1_000_000))
    }

    pub fn text(&self, key: &str) -> Option<&'a str> {
        self.value(key)?.as_str()
    }

    /// A whole number, however it is written.
    pub fn count(&self, key: &str) -> Option<u64> {
        count_in(self.value(key)?)
    }

    pub fn flag(&self, key: &str) -> Option<bool> {
        self.value(key)?.as_bool()
    }

    fn value(&self, key: &str) -> Option<&'a Value> {
        self.attributes.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }
}

fn list<'a>(parent: &'a Value, name: &str) -> &'a [Value] {
    parent.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn count_in(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => text.parse().ok(),
        // A cast from a float stops at the ends of the range.
        Value::Number(number) => number
            .as_u64()
            .or_else(|| number.as_f64().filter(|real| *real >= 0.0).map(|real| real as u64)),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

const KINDS: [&str; 4] = ["stringValue", "intValue", "boolValue", "doubleValue"];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn body(records: Value) -> Value {
        json!({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]})
    }

    #[test]
    fn every_kind_of_value_is_read() {
        let body = body(json!([{"timeUnixNano": "1794768932608000000", "attributes": [
            {"key": "name", "value": {"stringValue": "api_request"}},
            {"key": "text", "value": {"stringValue": "12"}},
            {"key": "digits", "value": {"intValue": "13"}},
            {"key": "number", "value": {"intValue": 14}},
            {"key": "real", "value": {"doubleValue": 15.0}},
            {"key": "yes", "value": {"boolValue": true}},
        ]}]));
        let records = records(&body).expect("a body");
        let record = &records[0];
        assert_eq!(record.time(), Some(Timestamp(1_794_768_932_608)));
        assert_eq!(record.text("name"), Some("api_request"));
        let counts = ["text", "digits", "number", "real"].map(|key| record.count(key));
        assert_eq!(counts, [Some(12), Some(13), Some(14), Some(15)]);
        assert_eq!(record.flag("yes"), Some(true));
        assert_eq!(
            (record.text("yes"), record.count("name"), record.flag("no")),
            (None, None, None)
        );
    }

    #[test]
    fn a_broken_record_loses_itself_and_not_its_batch() {
        let body = body(json!([
            7,
            {"attributes": "none"},
            {"timeUnixNano": {}, "attributes": [7, {"key": 7, "value": {}}, {"key": "a"},
                {"key": "b", "value": 7}, {"key": "c", "value": {"stringValue": "kept"}}]},
        ]));
        let records = records(&body).expect("a body");
        let kept: Vec<_> = records.iter().map(|record| record.text("c")).collect();
        assert_eq!(kept, [None, Some("kept")]);
        assert!(records.iter().all(|record| record.time().is_none()));
    }

    #[test]
    fn what_is_no_body_is_none_and_metrics_are_empty() {
        for body in [json!(7), json!([]), json!(null), json!({"resourceLogs": 4})] {
            assert!(records(&body).is_none(), "{body}");
        }
        assert!(records(&json!({"resourceMetrics": []})).is_some_and(|records| records.is_empty()));
    }
}
