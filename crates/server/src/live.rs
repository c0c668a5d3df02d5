//! The board's data.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::error::Refusal;
use crate::server::Server;
use crate::wire::{About, Summary};

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
