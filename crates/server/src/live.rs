//! The board's data.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use qd_daemon::runtime::Archiving;
use serde_json::{Value, json};

use crate::acting::read;
use crate::error::Refusal;
use crate::server::Server;
use crate::wire::{About, ArchiveWanted, Archived, Summary, UnarchiveWanted};

/// Says that we are here, and nothing else: anybody may ask.
pub async fn healthz() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

pub async fn health(State(server): State<Server>) -> Result<Json<About>, Refusal> {
    Ok(Json(server.about().await?))
}

pub async fn sessions(State(server): State<Server>) -> Result<Response, Refusal> {
    server.caught_up().await?;
    let (list, _) = server.feed().list();
    Ok(([(CONTENT_TYPE, "application/json")], list).into_response())
}

pub async fn summary(State(server): State<Server>) -> Result<Json<Summary>, Refusal> {
    server.caught_up().await?;
    Ok(Json(server.feed().summary()))
}

pub async fn dismiss(
    State(server): State<Server>,
    Path(word): Path<String>,
) -> Result<Json<Value>, Refusal> {
    server.handle().dismiss(&word).await??;
    Ok(Json(json!({ "dismissed": true })))
}

pub async fn archive(
    State(server): State<Server>,
    wanted: Result<Json<ArchiveWanted>, JsonRejection>,
) -> Result<Json<Archived>, Refusal> {
    let wanted = match read(wanted)? {
        ArchiveWanted { sessions: Some(words), silent_for_ms: None } => Archiving::Named(words),
        ArchiveWanted { sessions: None, silent_for_ms: Some(ms) } => Archiving::SilentFor { ms },
        ArchiveWanted { .. } => return Err(Refusal::Unreadable),
    };
    Ok(Json(Archived { sessions: server.handle().archive(wanted).await?? }))
}

pub async fn unarchive(
    State(server): State<Server>,
    wanted: Result<Json<UnarchiveWanted>, JsonRejection>,
) -> Result<Json<Archived>, Refusal> {
    let UnarchiveWanted { sessions } = read(wanted)?;
    let sessions = server.handle().archive(Archiving::Undone(sessions)).await??;
    Ok(Json(Archived { sessions }))
}
