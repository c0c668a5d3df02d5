//! `GET /api/history`: sessions of the past, by time or by what was said in them.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::{Query, State};
use qd_broker::session_key::SessionKey;
use qd_broker::{Card, Past};
use qd_harness::Harness;
use qd_history::{Hit, SearchQuery};
use qd_session::moment::Timestamp;
use serde::Deserialize;
use tokio::task::spawn_blocking;

use crate::error::Refusal;
use crate::server::Server;
use crate::wire::{HistoryEntry, HistoryPage};

/// Sessions of one page of the history.
const HISTORY_PAGE_MAX: usize = 200;

/// Sessions of a page that nobody gave a size.
const PAGE: usize = 50;

#[derive(Debug, Deserialize)]
pub struct HistoryQuery {
    q: Option<String>,
    harness: Option<String>,
    project: Option<String>,
    before: Option<String>,
    limit: Option<usize>,
}

pub async fn history(
    State(server): State<Server>,
    Query(query): Query<HistoryQuery>,
) -> Result<Json<HistoryPage>, Refusal> {
    let harness = match query.harness.as_deref().filter(|name| !name.is_empty()) {
        Some(name) => Some(Harness::named(name).ok_or(Refusal::UnknownHarness)?),
        None => None,
    };
    let count_max = query.limit.unwrap_or(PAGE).clamp(1, HISTORY_PAGE_MAX);
    let project = query.project.filter(|project| !project.is_empty());
    match query.q.filter(|words| !words.trim().is_empty()) {
        Some(words) => said(&server, words, harness, project, count_max).await,
        None => {
            let before = match query.before.as_deref() {
                Some(text) => Some(Timestamp(text.parse().map_err(|_| Refusal::Unreadable)?)),
                None => None,
            };
            let wanted = Past { before, harness, project, count_max };
            let cards = server.handle().past(wanted).await?;
            let full = cards.len() == count_max;
            let last = cards.last().filter(|_| full).map(|card| card.last_signal.0.to_string());
            let sessions = cards.into_iter().map(|card| entry(card, None)).collect();
            Ok(Json(HistoryPage { sessions, before: last }))
        }
    }
}

/// Sessions in which these words were said, the best first. All that is found is one page.
async fn said(
    server: &Server,
    words: String,
    harness: Option<Harness>,
    project: Option<String>,
    hits_max: usize,
) -> Result<Json<HistoryPage>, Refusal> {
    let searcher = server.searcher().cloned().ok_or(Refusal::SearchIsOff)?;
    let harness = harness.map(|harness| harness.name().to_owned());
    let query = SearchQuery { words, harness, project, since_ms: None, hits_max };
    let found = spawn_blocking(move || searcher.find(&query)).await;
    let hits = found.map_err(|_| Refusal::Stopping)?.map_err(|error| {
        tracing::warn!(%error, "search");
        Refusal::NotKept
    })?;
    let mut known = BTreeSet::new();
    let hits: Vec<(SessionKey, Hit)> = hits
        .into_iter()
        .filter_map(|hit| {
            let harness = Harness::named(&hit.harness)?;
            Some((SessionKey { harness, session: hit.session.as_str().into() }, hit))
        })
        .filter(|(key, _)| known.insert(key.clone()))
        .collect();
    let keys = hits.iter().map(|(key, _)| key.clone()).collect();
    let cards = server.handle().cards_of(keys).await?;
    let entries = hits.into_iter().zip(cards).map(|((key, hit), card)| match card {
        Some(card) => entry(card, Some(hit.snippet)),
        None => HistoryEntry {
            session_id: key.session.to_string(),
            harness: key.harness,
            title: None,
            project: hit.project,
            started_at: Timestamp(hit.at_ms),
            ended_at: Timestamp(hit.at_ms),
            total_tokens: None,
            cost_usd: None,
            snippet: Some(hit.snippet),
        },
    });
    Ok(Json(HistoryPage { sessions: entries.collect(), before: None }))
}

fn entry(card: Card, snippet: Option<String>) -> HistoryEntry {
    let spent = card.usage.spent;
    HistoryEntry {
        session_id: card.session_id.to_string(),
        harness: card.harness,
        title: card.title,
        project: card.cwd,
        started_at: card.started_at,
        ended_at: card.last_signal,
        total_tokens: spent.map(|spent| spent.total_tokens),
        cost_usd: spent.map(|spent| spent.cost_usd),
        snippet,
    }
}
