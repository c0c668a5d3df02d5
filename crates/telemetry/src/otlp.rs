//! Spans in the words of OTLP.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span as Told, Status};
use qd_session::moment::Timestamp;

use super::span::{Attribute, Span};

/// All of them in one request. They are ours, whoever did the work.
pub fn request(spans: &[Span]) -> ExportTraceServiceRequest {
    let version = env!("CARGO_PKG_VERSION");
    let attributes =
        vec![pair("service.name", &"quarterdeck".into()), pair("service.version", &version.into())];
    let scope = InstrumentationScope {
        name: "quarterdeck".to_owned(),
        version: version.to_owned(),
        ..InstrumentationScope::default()
    };
    let scope_spans = ScopeSpans {
        scope: Some(scope),
        spans: spans.iter().map(told).collect(),
        ..ScopeSpans::default()
    };
    let resource_spans = ResourceSpans {
        resource: Some(Resource { attributes, ..Resource::default() }),
        scope_spans: vec![scope_spans],
        ..ResourceSpans::default()
    };
    ExportTraceServiceRequest { resource_spans: vec![resource_spans] }
}

fn told(span: &Span) -> Told {
    let kind = match span.name {
        "llm" => SpanKind::Client,
        _ => SpanKind::Internal,
    };
    let status = match &span.failure {
        Some(code) => Status { code: StatusCode::Error.into(), message: code.to_string() },
        None => Status { code: StatusCode::Unset.into(), message: String::new() },
    };
    Told {
        trace_id: span.trace.to_vec(),
        span_id: span.id.to_vec(),
        parent_span_id: span.parent.map(|id| id.to_vec()).unwrap_or_default(),
        name: span.name.to_owned(),
        kind: kind.into(),
        start_time_unix_nano: nanos(span.started_at),
        end_time_unix_nano: nanos(span.ended_at),
        attributes: span.attributes.iter().map(|(name, value)| pair(name, value)).collect(),
        status: Some(status),
        ..Told::default()
    }
}

fn pair(name: &str, value: &Attribute) -> KeyValue {
    let value = match value {
        Attribute::Text(text) => Value::StringValue(text.to_string()),
        Attribute::Number(number) => Value::IntValue(i64::from(*number)),
    };
    let value = Some(AnyValue { value: Some(value) });
    KeyValue { key: name.to_owned(), value, ..KeyValue::default() }
}

fn nanos(at: Timestamp) -> u64 {
    at.0.saturating_mul(1_000_000)
}
