//! What the page of one session shows: the session in detail, and its transcript.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use qd_sources::transcript::{Page, Part};
use serde::Deserialize;

use crate::error::Refusal;
use crate::limits::{MESSAGES, TRANSCRIPT_ENTRIES};
use crate::server::Server;
use crate::wire::SessionDetail;

/// How much of a driven session's conversation is wanted.
#[derive(Debug, Deserialize)]
pub struct Attaching {
    messages: Option<usize>,
}

/// By our id, the agent's own, or a beginning of either that is unique.
pub async fn session(
    State(server): State<Server>,
    Path(word): Path<String>,
    wanted: Result<Query<Attaching>, QueryRejection>,
) -> Result<Json<SessionDetail>, Refusal> {
    let Query(Attaching { messages }) = wanted.map_err(|_| Refusal::BadQuery)?;
    let detail = server.handle().detail(&word).await??.ok_or(Refusal::NoSuchSession)?;
    let mut detail = SessionDetail::from(*detail);
    if let Some(attached) = &mut detail.attached {
        let surplus = attached.messages.len().saturating_sub(messages.unwrap_or(MESSAGES));
        attached.messages.drain(..surplus);
    }
    Ok(Json(detail))
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
