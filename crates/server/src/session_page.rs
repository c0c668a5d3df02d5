//! What the page of one session shows: the session in detail, and its transcript.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use qd_broker::transcript::{Page, Part};
use serde::Deserialize;

use crate::error::Refusal;
use crate::limits::TRANSCRIPT_ENTRIES;
use crate::server::Server;
use crate::wire::SessionDetail;

/// By our id, the agent's own, or a beginning of either that is unique.
pub async fn session(
    State(server): State<Server>,
    Path(word): Path<String>,
) -> Result<Json<SessionDetail>, Refusal> {
    let detail = server.handle().detail(&word).await??;
    detail.map(|detail| Json((*detail).into())).ok_or(Refusal::NoSuchSession)
}

#[derive(Debug, Deserialize)]
pub struct Wanted {
    before: Option<String>,
    after: Option<String>,
    limit: Option<usize>,
}

/// The newest entries, those before a cursor, or those after one.
pub async fn transcript(
    State(server): State<Server>,
    Path(word): Path<String>,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Result<Json<Page>, Refusal> {
    let Query(wanted) = wanted.map_err(|_| Refusal::BadQuery)?;
    let part = match (wanted.before, wanted.after) {
        (None, None) => Part::Newest,
        (Some(cursor), None) => Part::Before(cursor),
        (None, Some(cursor)) => Part::After(cursor),
        (Some(_), Some(_)) => return Err(Refusal::BadQuery),
    };
    let limit = wanted.limit.unwrap_or(TRANSCRIPT_ENTRIES);
    Ok(Json(server.handle().transcript(&word, part, limit).await??))
}
