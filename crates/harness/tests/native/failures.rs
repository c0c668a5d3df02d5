//! `spec/model-failures.md`, both ways.

use std::collections::BTreeSet;

use qd_harness::native::{Cause, Failure, Piece, Provider, ResponseHead};
use qd_session::machine::TroubleKind;
use qd_session::moment::Timestamp;

use crate::{pieces, stream, table};

const NOW: Timestamp = Timestamp(1_794_768_932_608);

#[test]
fn every_cause_is_in_the_table_and_nothing_else() {
    let trouble = |cause: Cause| match cause.trouble() {
        TroubleKind::Passing => "passing",
        TroubleKind::Auth => "auth",
        TroubleKind::UsageLimit => "usage_limit",
        TroubleKind::UnknownModel => "unknown_model",
        TroubleKind::ContextFull => "context_full",
        TroubleKind::Lasting => "lasting",
    };
    let written: Vec<Vec<String>> = table("model-failures.md", "Causes");
    let coded: Vec<Vec<String>> = Cause::ALL
        .iter()
        .map(|cause| [cause.name(), trouble(*cause), cause.words()].map(str::to_owned).to_vec())
        .collect();
    assert_eq!(written, coded);
}

fn response(row: &[String]) -> ResponseHead {
    let headers = row[2].split("; ").filter_map(|header| header.split_once(": "));
    ResponseHead {
        status: row[0].parse().expect("a status"),
        headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
    }
}

#[test]
fn every_response_has_the_cause_of_its_row() {
    for row in table("model-failures.md", "Responses") {
        let failure = Failure::of_response(NOW, &response(&row), row[1].as_bytes());
        let wait = failure.retry_after_ms.map(|wait| wait.to_string()).unwrap_or_default();
        assert_eq!((failure.cause.name(), wait), (row[3].as_str(), row[4].clone()), "{row:?}");
    }
}

fn failure_in(provider: Provider, text: &str) -> Failure {
    match pieces(provider, text.as_bytes()).pop() {
        Some(Piece::Failed(failure)) => failure,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn every_error_within_a_stream_has_the_cause_of_its_row() {
    for row in table("model-failures.md", "Within a stream") {
        let provider = Provider::ALL.into_iter().find(|known| known.name() == row[0]);
        let failure = failure_in(provider.expect("a provider"), &stream(&[&row[1]]));
        assert_eq!(failure.cause.name(), row[2], "{row:?}");
    }
}

#[test]
fn every_cause_has_a_case() {
    let column = |heading: &str, column: usize| -> BTreeSet<String> {
        let rows = table("model-failures.md", heading).into_iter();
        rows.map(|row| row[column].clone()).collect()
    };
    let mut cases = column("Responses", 3);
    cases.extend(column("Within a stream", 2));
    cases.extend(column("Besides", 0));
    let causes: BTreeSet<String> = Cause::ALL.iter().map(|cause| cause.name().into()).collect();
    assert_eq!(cases, causes);
}

#[test]
fn what_ends_without_its_end_is_dropped() {
    let start = r#"{"type":"message_start","message":{"model":"m"}}"#;
    let half = r#"{"choices":[{"delta":{"content":"hel"#;
    let whole = r#"{"choices":[{"delta":{"content":"hello"}}]}"#;
    for (provider, text) in [
        (Provider::Anthropic, String::new()),
        (Provider::Anthropic, stream(&[start])),
        (Provider::OpenAi, stream(&[whole])),
        (Provider::OpenAi, format!("{}data: {half}", stream(&[whole]))),
        (Provider::OpenAi, String::new()),
    ] {
        assert_eq!(failure_in(provider, &text).cause, Cause::Dropped, "{text}");
    }
}

#[test]
fn what_is_no_stream_is_shown() {
    for text in ["<html>\n<body>Sign in</body>", r#"{"choices":[{"message":{"content":"hi"}}]}"#] {
        let failure = failure_in(Provider::OpenAi, text);
        assert_eq!(failure.cause, Cause::NotAStream);
        assert!(failure.message().contains(&text[..6]), "{}", failure.message());
    }
}

#[test]
fn an_event_without_an_end_is_too_long() {
    let text = format!("data: {}", "x".repeat(9 << 20));
    assert_eq!(failure_in(Provider::OpenAi, &text).cause, Cause::TooLong);
    let many: String = (0..1_200).map(|index| {
        format!(r#"data: {{"type":"content_block_start","index":{index},"content_block":{{"type":"text"}}}}{}"#, "\n\n")
    }).collect();
    assert_eq!(failure_in(Provider::Anthropic, &many).cause, Cause::TooLong);
    let part = stream(&[&format!(
        r#"{{"choices":[{{"delta":{{"content":"{}"}}}}]}}"#,
        "x".repeat(4 << 20)
    )]);
    assert_eq!(failure_in(Provider::OpenAi, &part.repeat(5)).cause, Cause::TooLong);
}

#[test]
fn a_message_names_the_request_and_repeats_no_key() {
    let head = ResponseHead { status: 401, headers: vec![("request-id".into(), "req_7".into())] };
    let body =
        br#"{"error":{"message":"Incorrect API key provided: sk-proj-0123456789abcdefghij."}}"#;
    let trouble = Failure::of_response(NOW, &head, body).trouble();
    assert_eq!(trouble.trouble, TroubleKind::Auth);
    assert_eq!(
        &*trouble.message,
        "the provider does not accept the key: Incorrect API key provided: REDACTED. \
         (HTTP 401, request req_7)"
    );
}
