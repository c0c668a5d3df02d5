//! What agents report over HTTP: hooks as they are, and telemetry.
//!
//! Invariant: 200 means that the journal has it; anything else means that it was not taken. Hooks
//! that are refused are counted, because the scripts that post them keep it to themselves.

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use qd_daemon::runtime::{Delivered, Handle};
use qd_harness::abridge::{Abridged, Abridger, Bounds};
use qd_harness::waiting_hook::session_named;
use qd_harness::{Channel, Harness};
use qd_hook_wire::{Cut, FrameId, Mode};
use qd_sources::hook_intake::{Caller, Frame};
use serde::Deserialize;
use serde_json::json;

use crate::error::Refusal;
use crate::limits::HOOK_BYTES_MAX;
use crate::otlp::{self, Kind};
use crate::server::Server;

#[derive(Debug, Deserialize)]
pub struct HookQuery {
    harness: Option<String>,
}

/// Any agent's hook payload. Without `?harness=` it is Claude Code's, whose hooks can post by
/// themselves.
pub async fn hook(
    State(server): State<Server>,
    Query(query): Query<HookQuery>,
    body: Body,
) -> Result<Response, Refusal> {
    let harness = query.harness.as_deref().unwrap_or("claude_code");
    let harness = Harness::named(harness).ok_or(Refusal::UnknownHarness)?;
    let payload = whole_hook(body).await.inspect_err(|refusal| {
        server.hook_posts().refused(refusal);
    })?;
    match server.handle().deliver(frame(harness, payload)).await {
        // An empty object is what a hook answers that has nothing to say.
        Delivered::Taken => Ok(Json(json!({})).into_response()),
        Delivered::Refused => Err(Refusal::NotTaken),
    }
}

/// A body that is about a session: what is not would be kept for nobody.
async fn whole_hook(body: Body) -> Result<Abridged, Refusal> {
    let payload = abridged(body).await?;
    let is_named = session_named(&payload.text).is_some_and(|session| !session.is_empty());
    is_named.then_some(payload).ok_or(Refusal::BrokenHook)
}

/// What is kept of a body, made while it comes: no more than that is ever held.
async fn abridged(body: Body) -> Result<Abridged, Refusal> {
    let (mut abridger, mut len) = (Abridger::new(Bounds::TOLD), 0);
    let mut pieces = body.into_data_stream();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| Refusal::Unreadable)?;
        len += piece.len();
        if len > HOOK_BYTES_MAX {
            return Err(Refusal::TooLong);
        }
        abridger.feed(&piece);
    }
    Ok(abridger.finish())
}

/// The same as a forwarder would send, stamped here.
fn frame(harness: Harness, payload: Abridged) -> Frame {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.unwrap_or_default();
    Frame {
        mode: Mode::Send,
        id: FrameId::fresh(now),
        at_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
        seq: now.subsec_nanos() % 1_000_000,
        harness: harness.name().to_owned(),
        event: None,
        entry: None,
        agent: None,
        by: None,
        cut: payload.is_cut().then_some(Cut::Size),
        payload: payload.text,
        whole: None,
        // It has a token and no process that could be looked at.
        caller: Caller::Remote,
    }
}

pub async fn logs(
    State(server): State<Server>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Refusal> {
    telemetry(server.handle(), Kind::Logs, &headers, &body).await
}

pub async fn metrics(
    State(server): State<Server>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Refusal> {
    telemetry(server.handle(), Kind::Metrics, &headers, &body).await
}

pub async fn traces(
    State(server): State<Server>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Refusal> {
    telemetry(server.handle(), Kind::Traces, &headers, &body).await
}

/// Each resource in a body is one program's; programs we do not know are thanked and passed over.
async fn telemetry(
    handle: &Handle,
    kind: Kind,
    headers: &HeaderMap,
    bytes: &[u8],
) -> Result<Response, Refusal> {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let body = otlp::Body::read(kind, content_type, bytes).ok_or(Refusal::Unreadable)?;
    let answer = body.answer();
    for (service, payload) in body.resources() {
        let Some(harness) = Harness::of_service(&service) else { continue };
        match handle.signal(harness, Channel::Otel, payload).await {
            Delivered::Taken => {}
            Delivered::Refused => return Err(Refusal::NotTaken),
        }
    }
    Ok(otlp::response(answer))
}
