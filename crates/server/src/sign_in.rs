//! The routes by which a browser comes in and goes out.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::Json;
use axum::extract::{Path, State};
use axum::http::header::{COOKIE as COOKIES, ORIGIN, SET_COOKIE, USER_AGENT};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::auth::Scope;
use crate::browsers::{BrowserView, COOKIE, Trade};
use crate::error::Refusal;
use crate::limits::{COOKIE_LIVES_S, LINK_LIVES_S};
use crate::server::Server;
use crate::wire::{Link, LinkWanted, SignIn};

/// A link for a browser: what is behind its `#` is never sent anywhere by the browser itself.
pub async fn link(
    State(server): State<Server>,
    Json(wanted): Json<LinkWanted>,
) -> Result<Json<Link>, Refusal> {
    let scope = match wanted.scope.as_deref().map(Scope::named) {
        None => Scope::Operate,
        Some(Some(scope)) if scope > Scope::Ingest => scope,
        Some(_) => return Err(Refusal::Unreadable),
    };
    let code = server.browsers().link(scope, now_s()).map_err(|_| Refusal::NotKept)?;
    Ok(Json(Link { path: format!("/sign-in#{code}"), lives_s: LINK_LIVES_S }))
}

pub async fn sign_in(
    State(server): State<Server>,
    headers: HeaderMap,
    Json(SignIn { code }): Json<SignIn>,
) -> Result<Response, Refusal> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let traded = server.browsers().trade(&code, text(USER_AGENT), now_s());
    match traded.map_err(|_| Refusal::NotKept)? {
        Trade::Cookie(secret) => {
            let secure = if text(ORIGIN).starts_with("https://") { "; Secure" } else { "" };
            let cookie = format!(
                "{COOKIE}={secret}; Path=/; Max-Age={COOKIE_LIVES_S}; HttpOnly; SameSite=Strict{secure}"
            );
            Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, cookie)]).into_response())
        }
        Trade::Wrong => Err(Refusal::WrongCode),
        Trade::TooManyGuesses => Err(Refusal::TooManyGuesses),
    }
}

pub async fn sign_out(
    State(server): State<Server>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    if let Some(cookie) = cookie(&headers) {
        server.browsers().sign_out(cookie).map_err(|_| Refusal::NotKept)?;
    }
    let gone = format!("{COOKIE}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict");
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, gone)]).into_response())
}

pub async fn browsers(State(server): State<Server>) -> Json<Vec<BrowserView>> {
    Json(server.browsers().list())
}

pub async fn forget(
    State(server): State<Server>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    match server.browsers().forget(&id).map_err(|_| Refusal::NotKept)? {
        true => Ok(Json(json!({ "forgotten": true }))),
        false => Err(Refusal::NoSuchBrowser),
    }
}

/// The value of our cookie.
pub fn cookie(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(COOKIES).iter().filter_map(|value| value.to_str().ok());
    cookies
        .flat_map(|cookies| cookies.split(';'))
        .filter_map(|cookie| cookie.trim().split_once('='))
        .find_map(|(name, value)| (name == COOKIE).then_some(value))
}

pub fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
