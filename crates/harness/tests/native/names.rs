//! The words of the stream in `spec/driven-names.md`, both ways.

use std::collections::BTreeSet;

use qd_harness::Harness;
use qd_harness::native::{
    CompletedReason, Payload, StatusKind, StreamErrorCode, StreamEvents, ToolStatus, UsageTold,
};
use qd_session::moment::Timestamp;
use serde::Serialize;

use crate::table;

/// Our names in the second column of a section.
fn named(heading: &str) -> BTreeSet<String> {
    let rows = table("driven-names.md", heading);
    let ours = |row: Vec<String>| row[1].split('`').next().unwrap_or_default().to_owned();
    rows.into_iter().map(ours).collect()
}

fn spelled(value: impl Serialize) -> String {
    let written = serde_json::to_value(value).expect("it is JSON");
    written.as_str().expect("it is a word").to_owned()
}

fn fields(value: &impl Serialize) -> BTreeSet<String> {
    let written = serde_json::to_value(value).expect("it is JSON");
    written.as_object().expect("it has fields").keys().cloned().collect()
}

// The compiler asks here about each new one; what it leads to is the next of its kind.

fn after_reason(reason: CompletedReason) -> Option<CompletedReason> {
    match reason {
        CompletedReason::Stop => Some(CompletedReason::Length),
        CompletedReason::Length => Some(CompletedReason::ToolError),
        CompletedReason::ToolError => Some(CompletedReason::UserAbort),
        CompletedReason::UserAbort => None,
    }
}

fn after_status(status: StatusKind) -> Option<StatusKind> {
    match status {
        StatusKind::Idle => Some(StatusKind::Processing),
        StatusKind::Processing => Some(StatusKind::Waiting),
        StatusKind::Waiting => Some(StatusKind::Aborted),
        StatusKind::Aborted => None,
    }
}

fn after_tool(status: ToolStatus) -> Option<ToolStatus> {
    match status {
        ToolStatus::Completed => Some(ToolStatus::Failed),
        ToolStatus::Failed => Some(ToolStatus::Canceled),
        ToolStatus::Canceled => None,
    }
}

fn after_code(code: StreamErrorCode) -> Option<StreamErrorCode> {
    match code {
        StreamErrorCode::ProviderError => Some(StreamErrorCode::StreamGap),
        StreamErrorCode::StreamGap => Some(StreamErrorCode::ProtocolError),
        StreamErrorCode::ProtocolError => Some(StreamErrorCode::ToolError),
        StreamErrorCode::ToolError => Some(StreamErrorCode::SessionAborted),
        StreamErrorCode::SessionAborted => None,
    }
}

fn all<T: Copy + Serialize>(first: T, after: fn(T) -> Option<T>) -> BTreeSet<String> {
    std::iter::successors(Some(first), |known| after(*known)).map(spelled).collect()
}

#[test]
fn words_of_the_stream_are_those_of_the_page() {
    let usage = UsageTold { input_tokens: 1, output_tokens: 1, reasoning_tokens: Some(1) };
    let mut words = all(CompletedReason::Stop, after_reason);
    words.extend(all(StatusKind::Idle, after_status));
    words.extend(all(ToolStatus::Completed, after_tool));
    words.extend(fields(&usage));
    assert_eq!(named("Stream event words"), words);
    let codes = all(StreamErrorCode::ProviderError, after_code);
    assert_eq!(named("Stream error codes"), codes);

    let provider = Some("anthropic".into());
    let mut events = StreamEvents::new(
        "sess_1".into(),
        Harness::Native,
        provider,
        "turn_1".into(),
        Timestamp(1),
    );
    let status = Payload::Status { state: StatusKind::Idle, detail: None };
    let mut event = events.emit(Timestamp(2), status).expect("the first");
    event.message_id = Some("m".into());
    event.parent_message_id = Some("p".into());
    assert_eq!(named("Stream event envelope"), fields(&event));
}
