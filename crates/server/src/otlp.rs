//! OTLP over HTTP: protobuf or JSON in, JSON by program out.
//!
//! Handlers read JSON, so protobuf is turned into it here. JSON is passed on as it came: exporters
//! are lenient with it, and so are the handlers.

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Logs,
    Metrics,
    Traces,
}

impl Kind {
    fn list(self) -> &'static str {
        match self {
            Self::Logs => "resourceLogs",
            Self::Metrics => "resourceMetrics",
            Self::Traces => "resourceSpans",
        }
    }
}

/// A body, whatever it was written in.
#[derive(Debug)]
pub struct Body {
    kind: Kind,
    answer: Answer,
    json: Value,
}

/// An answer is written in what the question was written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Protobuf,
    Json,
}

impl Body {
    /// None if it is not what its content type says.
    pub fn read(kind: Kind, content_type: Option<&str>, bytes: &[u8]) -> Option<Self> {
        let is_json = content_type.is_some_and(|kind| kind.contains("json"));
        let (answer, json) = if is_json {
            (Answer::Json, serde_json::from_slice(bytes).ok()?)
        } else {
            (Answer::Protobuf, decoded(kind, bytes)?)
        };
        Some(Self { kind, answer, json })
    }

    pub fn answer(&self) -> Answer {
        self.answer
    }

    /// Each resource as a body of its own, with the name of the program that sent it.
    pub fn resources(mut self) -> Vec<(String, Vec<u8>)> {
        let list = self.kind.list();
        let Some(Value::Array(resources)) = self.json.get_mut(list).map(Value::take) else {
            return Vec::new();
        };
        let named = resources.into_iter().filter_map(|resource| {
            let service = service(&resource)?.to_owned();
            Some((service, json!({ list: [resource] }).to_string().into_bytes()))
        });
        named.collect()
    }
}

fn decoded(kind: Kind, bytes: &[u8]) -> Option<Value> {
    let json = match kind {
        Kind::Logs => serde_json::to_value(ExportLogsServiceRequest::decode(bytes).ok()?),
        Kind::Metrics => serde_json::to_value(ExportMetricsServiceRequest::decode(bytes).ok()?),
        Kind::Traces => serde_json::to_value(ExportTraceServiceRequest::decode(bytes).ok()?),
    };
    json.ok()
}

fn service(resource: &Value) -> Option<&str> {
    let attributes = resource.get("resource")?.get("attributes")?.as_array()?;
    let named = |attribute: &&Value| attribute.get("key") == Some(&json!("service.name"));
    attributes.iter().find(named)?.get("value")?.get("stringValue")?.as_str()
}

/// All of it was taken: an empty message.
pub fn response(answer: Answer) -> Response {
    match answer {
        Answer::Protobuf => ([(CONTENT_TYPE, "application/x-protobuf")], "").into_response(),
        Answer::Json => ([(CONTENT_TYPE, "application/json")], "{}").into_response(),
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
    use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
    use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
    use opentelemetry_proto::tonic::resource::v1::Resource;

    use super::*;

    fn attribute(key: &str, value: Any) -> KeyValue {
        let value = Some(AnyValue { value: Some(value) });
        KeyValue { key: key.to_owned(), value, ..KeyValue::default() }
    }

    #[test]
    fn protobuf_becomes_the_json_that_handlers_read() {
        let record = LogRecord {
            time_unix_nano: 1_794_768_932_608_000_000,
            attributes: vec![
                attribute("event.name", Any::StringValue("user_prompt".into())),
                attribute("prompt_length", Any::IntValue(12)),
            ],
            ..LogRecord::default()
        };
        let resource = Resource {
            attributes: vec![attribute("service.name", Any::StringValue("claude-code".into()))],
            ..Resource::default()
        };
        let scope_logs = vec![ScopeLogs { log_records: vec![record], ..ScopeLogs::default() }];
        let logs = ResourceLogs { resource: Some(resource), scope_logs, ..ResourceLogs::default() };
        let request = ExportLogsServiceRequest { resource_logs: vec![logs] };
        let body = Body::read(Kind::Logs, None, &request.encode_to_vec()).expect("protobuf");
        assert_eq!(body.answer(), Answer::Protobuf);
        let resources = body.resources();
        assert_eq!(resources[0].0, "claude-code");
        let json: Value = serde_json::from_slice(&resources[0].1).expect("JSON");
        let record = &json["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0];
        assert_eq!(record["timeUnixNano"], "1794768932608000000");
        assert_eq!(record["attributes"][0]["value"]["stringValue"], "user_prompt");
        assert_eq!(record["attributes"][1]["value"]["intValue"], "12");
    }

    #[test]
    fn json_is_taken_apart_by_program() {
        let of = |name: &str| {
            let attributes = json!([{"key": "service.name", "value": {"stringValue": name}}]);
            json!({"resource": {"attributes": attributes}, "scopeLogs": []})
        };
        let body = json!({"resourceLogs": [of("codex_exec"), {"scopeLogs": []}, of("other")]});
        let bytes = body.to_string();
        let read = Body::read(Kind::Logs, Some("application/json"), bytes.as_bytes());
        let services: Vec<String> =
            read.expect("JSON").resources().into_iter().map(|(service, _)| service).collect();
        assert_eq!(services, ["codex_exec", "other"]);
    }

    #[test]
    fn what_is_neither_is_refused() {
        assert!(Body::read(Kind::Logs, Some("application/json"), b"{").is_none());
        assert!(Body::read(Kind::Traces, None, b"\xff\xff").is_none());
        let empty = Body::read(Kind::Metrics, None, b"").expect("an empty message");
        assert!(empty.resources().is_empty());
    }
}
