//! `spec/stream-events.md`, both ways.

use std::collections::BTreeSet;

use qd_harness::Harness;
use qd_harness::native::{
    AssistantMessage, Cause, CompletedReason, Failure, Payload, Piece, StatusKind, StopReason,
    StreamErrorCode, StreamEvent, StreamEvents, ToolStatus, Usage, UsageTold,
};
use qd_harness::usage::Tokens;
use qd_session::moment::Timestamp;
use serde_json::{Value, json};

use crate::table;

const ASKED: Timestamp = Timestamp(1_000);
const NOW: Timestamp = Timestamp(1_250);

fn events() -> StreamEvents {
    let provider = Some("anthropic".into());
    StreamEvents::new("sess_1".into(), Harness::Native, provider, "turn_7".into(), ASKED)
}

fn written(event: &StreamEvent) -> Value {
    serde_json::to_value(event).expect("an event is written")
}

/// Each type once, with all of its fields.
fn payloads() -> Vec<Payload> {
    let call = || ("c".into(), "Bash".into());
    let ((call_id, tool_name), (other_id, other_name)) = (call(), call());
    vec![
        Payload::TextDelta { text: "a".into(), role: "assistant" },
        Payload::ThinkingDelta { text: "a".into() },
        Payload::ToolCallDelta { call_id, tool_name, arguments_delta: "{".into() },
        Payload::ToolCallCompleted {
            call_id: other_id,
            tool_name: other_name,
            arguments: json!({"password": "hunter2", "n": 1}),
            output: "API_KEY=abc".into(),
            status: ToolStatus::Failed,
            error_message: Some("Bearer abcdef0123456789".into()),
        },
        Payload::ArtifactDelta {
            artifact_id: "a".into(),
            artifact_type: "file".into(),
            content_delta: "x".into(),
        },
        Payload::Metadata {
            model: "m".into(),
            latency_ms: 3,
            provider_request_id: Some("r".into()),
        },
        Payload::Status { state: StatusKind::Waiting, detail: Some("d".into()) },
        Payload::Completed { reason: CompletedReason::ToolError, usage: UsageTold::default() },
        Payload::Error {
            code: StreamErrorCode::StreamGap,
            message: "gap".into(),
            recoverable: true,
            details: Some(json!({})),
        },
    ]
}

#[test]
fn every_type_has_the_fields_of_its_row() {
    let rows = table("stream-events.md", "Types");
    let coded = payloads();
    assert_eq!(rows.len(), coded.len());
    for (row, payload) in rows.iter().zip(coded) {
        let is_last = payload.is_last();
        let event = written(&events().emit(NOW, payload).expect("the first"));
        let fields: BTreeSet<&str> =
            row[1].split(", ").map(|field| field.trim_end_matches('?')).collect();
        let coded: BTreeSet<&str> =
            event["payload"].as_object().expect("a payload").keys().map(String::as_str).collect();
        assert_eq!((event["type"].as_str(), coded), (Some(row[0].as_str()), fields));
        assert_eq!(is_last, row[2] == "last", "{row:?}");
    }
}

#[test]
fn an_envelope_says_whose_it_is() {
    let mut events = events();
    let first = events.take(NOW, &Piece::Text { text: "hi".into() });
    assert_eq!(
        written(&first[0]),
        json!({
            "schemaVersion": "1.0", "eventId": "evt_7_1", "sessionId": "sess_1",
            "harness": "native", "provider": "anthropic", "streamId": "turn_7", "seq": 1,
            "timestampMs": 1_250, "type": "text_delta",
            "payload": {"text": "hi", "role": "assistant"},
        })
    );
    let model = Piece::Metadata { model: Some("m".into()), request_id: Some("req_1".into()) };
    let second = written(&events.take(NOW, &model)[0]);
    assert_eq!((&second["seq"], &second["eventId"]), (&json!(2), &json!("evt_7_2")));
    let payload = json!({"model": "m", "latencyMs": 250, "providerRequestId": "req_1"});
    assert_eq!(second["payload"], payload);
}

fn part(text: &str) -> Piece {
    Piece::CallArguments { call: "c".into(), tool: "Bash".into(), part: text.into() }
}

fn end(reason: StopReason) -> Piece {
    let tokens = Tokens { input: 1, cache_read: 2, output: 3, ..Tokens::default() };
    let usage = Usage { tokens, reasoning: 0 };
    Piece::End { reason, message: AssistantMessage::default(), usage }
}

/// The events of each row of the table, by what the row calls the piece.
fn told(piece: &str) -> Vec<StreamEvent> {
    let mut events = events();
    let end_of = |reason: &str| {
        let reasons = StopReason::ALL.into_iter();
        let spelled = |known: &StopReason| match known {
            StopReason::Done => "done",
            StopReason::Calls => "calls",
            StopReason::Length => "length",
            StopReason::ContextFull => "context full",
            StopReason::Refused => "refused",
        };
        reasons.into_iter().find(|known| spelled(known) == reason).map(end)
    };
    let piece = match piece {
        "metadata" => Piece::Metadata { model: None, request_id: None },
        "text" => Piece::Text { text: "a".into() },
        "thinking" => Piece::Thinking { text: "a".into() },
        "the first part of a call" => part(""),
        "a part of a call within a field" => {
            events.take(NOW, &part(""));
            part("\"pass")
        }
        "a part of a call that ends a field" => {
            events.take(NOW, &part("{\"a\":"));
            part("1,")
        }
        "usage" => Piece::Usage(Usage::default()),
        "failed: passing" => Piece::Failed(Failure::of(Cause::Overloaded)),
        "failed: garbled" => Piece::Failed(Failure::of(Cause::Garbled)),
        "aborted by the operator" => return events.abort(NOW).into_iter().collect(),
        other => {
            let reason = other.strip_prefix("end: ").and_then(end_of);
            reason.unwrap_or_else(|| panic!("the test knows no piece {other}"))
        }
    };
    events.take(NOW, &piece)
}

#[test]
fn every_piece_gives_the_events_of_its_row() {
    let rows = table("stream-events.md", "From pieces of an answer");
    for row in &rows {
        let told = told(&row[0]);
        let names = told.iter().map(written).map(|event| {
            let detail =
                ["reason", "code"].iter().find_map(|field| event["payload"][field].as_str());
            let name = event["type"].as_str().expect("a type").to_owned();
            detail.map_or(name.clone(), |detail| format!("{name} {detail}"))
        });
        assert_eq!(names.collect::<Vec<String>>().join(", "), row[1], "{row:?}");
    }
    let ends = rows.iter().filter(|row| row[0].starts_with("end: ")).count();
    assert_eq!(ends, StopReason::ALL.len(), "every end has its row");
}

#[test]
fn nothing_comes_after_the_last() {
    for last in [end(StopReason::Done), Piece::Failed(Failure::of(Cause::Dropped))] {
        let mut events = events();
        assert_eq!(events.take(NOW, &last).len(), 1);
        assert_eq!(events.take(NOW, &Piece::Text { text: "late".into() }), []);
        assert_eq!(events.take(NOW, &last), []);
        assert_eq!(events.abort(NOW), None);
    }
}

#[test]
fn numbers_have_no_gaps_and_secrets_do_not_get_out() {
    let mut events = events();
    let mut all = Vec::new();
    for text in [
        "{\"comm",
        "and\":\"export A_KEY=sk-ant-api",
        "03-AAAAAAAAAAAAAAAAAAAA\",",
        "\"password\":\"hun",
        "ter2\"",
    ] {
        all.extend(events.take(NOW, &part(text)));
    }
    all.extend(events.take(NOW, &end(StopReason::Calls)));
    let numbers: Vec<u64> = all.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<u64>>());
    let shown: String = all.iter().map(|event| written(event).to_string()).collect();
    for secret in ["sk-ant", "AAAA", "hunter", "ter2"] {
        assert!(!shown.contains(secret), "{shown}");
    }
    let completed = written(all.last().expect("an event"));
    assert_eq!(completed["payload"]["usage"], json!({"inputTokens": 3, "outputTokens": 3}));
    let whole = payloads().into_iter().filter_map(events_of).collect::<String>();
    for secret in ["hunter2", "abc"] {
        assert!(!whole.contains(secret), "{whole}");
    }
}

fn events_of(payload: Payload) -> Option<String> {
    events().emit(NOW, payload).map(|event| written(&event).to_string())
}
