//! `GET /api/usage`: what sessions cost, as `qd usage` says it.

use axum::Json;
use axum::extract::{Query, State};
use qd_history::{Answer, By, NoAnswer, Question};
use serde::Deserialize;

use crate::error::Refusal;
use crate::server::Server;
use crate::wire::{UsageReport, UsageRow, UsageTrouble};

#[derive(Debug, Deserialize)]
pub struct UsageQuery {
    by: Option<String>,
    since: Option<String>,
    until: Option<String>,
}

pub async fn usage(
    State(server): State<Server>,
    Query(UsageQuery { by, since, until }): Query<UsageQuery>,
) -> Result<Json<UsageReport>, Refusal> {
    let by = match by.as_deref() {
        None => By::Day,
        Some(name) => By::named(name).ok_or(Refusal::Unreadable)?,
    };
    let Some(books) = server.books() else { return Ok(Json(UsageReport::default())) };
    match books.ask(Question { since, until, by }).await {
        Ok(answer) => Ok(Json(spelled(answer))),
        Err(NoAnswer::NoDay(_)) => Err(Refusal::Unreadable),
        Err(NoAnswer::Busy) => Err(Refusal::StillReading),
    }
}

fn spelled(Answer { report, prices_of, troubles }: Answer) -> UsageReport {
    let rows = report.rows.into_iter().map(|row| UsageRow {
        key: row.name,
        harness: row.session.as_ref().map(|session| session.harness),
        project: row.session.and_then(|session| session.project),
        totals: (&row.sum).into(),
    });
    let troubles = troubles.into_iter().map(|trouble| UsageTrouble {
        path: trouble.path.display().to_string(),
        what: trouble.what,
    });
    UsageReport {
        rows: rows.collect(),
        totals: (&report.totals).into(),
        prices_of: Some(prices_of),
        troubles: troubles.collect(),
    }
}
