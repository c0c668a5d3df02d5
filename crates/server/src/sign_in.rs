//! The routes by which a browser comes in and goes out.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Extension, Path, Query, State};
use axum::http::header::{CACHE_CONTROL, SET_COOKIE, USER_AGENT};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::time::sleep;
use tracing::warn;

use crate::acting::Caller;
use crate::auth::Scope;
use crate::browser_key::is_nonce;
use crate::browsers::{BrowserView, Trade};
use crate::error::Refusal;
use crate::limits::{EXPIRY_LOOK_EVERY, LINK_LIVES_S, SIGN_IN_FILE_LIVES};
use crate::server::Server;
use crate::sign_in_file::SignInFile;
use crate::wire::{Hello, HelloWanted, Link, LinkWanted, SignIn, SignedIn};

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
    let file = wanted.file.then(|| sign_in_file(&server, &code)).transpose()?;
    Ok(Json(Link { path: format!("/sign-in#{code}"), lives_s: LINK_LIVES_S, file }))
}

/// Writes the file that leads this machine's browser to the link. It goes with its code, and soon.
fn sign_in_file(server: &Server, code: &str) -> Result<String, Refusal> {
    let link = format!("http://127.0.0.1:{}/sign-in#{code}", server.port());
    let file = SignInFile::write(server.runtime_folder(), &link).map_err(|error| {
        warn!(%error, "a sign-in file cannot be written");
        Refusal::NotKept
    })?;
    let path = file.path().to_string_lossy().into_owned();
    server.browsers().attach(code, file);
    let (server, code) = (server.clone(), code.to_owned());
    tokio::spawn(async move {
        sleep(SIGN_IN_FILE_LIVES).await;
        server.browsers().detach(&code);
    });
    Ok(path)
}

pub async fn sign_in(
    State(server): State<Server>,
    headers: HeaderMap,
    Json(SignIn { code }): Json<SignIn>,
) -> Result<Response, Refusal> {
    let name = headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let traded = server.browsers().trade(&code, name, now_s());
    // The new one may have taken another's place.
    server.end_subscriptions();
    match traded.map_err(|_| Refusal::NotKept)? {
        Trade::Key { browser, key } => {
            let kept = [(CACHE_CONTROL, "no-store"), OLD_COOKIE_GONE];
            Ok((kept, Json(SignedIn { browser, key })).into_response())
        }
        Trade::Wrong => Err(Refusal::WrongCode),
        Trade::TooManyGuesses => Err(Refusal::TooManyGuesses),
    }
}

/// Earlier versions signed in by a cookie. It opens nothing any more; a browser need not keep it.
const OLD_COOKIE_GONE: (HeaderName, &str) =
    (SET_COOKIE, "quarterdeck=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict");

/// Who we are, for a browser that wants to know before it says anything.
pub async fn hello(
    State(server): State<Server>,
    wanted: Result<Query<HelloWanted>, QueryRejection>,
) -> Result<Response, Refusal> {
    let Query(HelloWanted { browser, host, nonce }) = wanted.map_err(|_| Refusal::BadQuery)?;
    if !server.names().is_page(&host) {
        return Err(Refusal::ForeignHost);
    }
    if !is_nonce(&nonce) {
        return Err(Refusal::BadQuery);
    }
    let greeting = server.browsers().greet(&browser, &host, &nonce, now_s());
    let (challenge, proof) = greeting.ok_or(Refusal::SignedOut)?;
    Ok(([(CACHE_CONTROL, "no-store")], Json(Hello { challenge, proof })).into_response())
}

pub async fn sign_out(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Refusal> {
    if let Some(lease) = caller.browser {
        forget_browser(&server, &lease.browser)?;
    }
    Ok((StatusCode::NO_CONTENT, [OLD_COOKIE_GONE]).into_response())
}

pub async fn browsers(State(server): State<Server>) -> Json<Vec<BrowserView>> {
    Json(server.browsers().list())
}

pub async fn forget(
    State(server): State<Server>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    match forget_browser(&server, &id)? {
        true => Ok(Json(json!({ "forgotten": true }))),
        false => Err(Refusal::NoSuchBrowser),
    }
}

/// Its leases end with it, and what it subscribed is dropped, also where the list cannot be written.
fn forget_browser(server: &Server, id: &str) -> Result<bool, Refusal> {
    let forgotten = server.browsers().forget(id);
    server.end_subscriptions();
    forgotten.map_err(|error| {
        warn!(%error, "a browser that was signed out comes back with the next start");
        Refusal::NotKept
    })
}

/// Signs browsers out that stayed away for too long.
pub async fn expire(server: &Server) {
    loop {
        if let Err(error) = server.browsers().expire(now_s()) {
            warn!(%error, "the list of browsers");
        }
        server.end_subscriptions();
        sleep(EXPIRY_LOOK_EVERY).await;
    }
}

pub fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
