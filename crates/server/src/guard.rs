//! Who is let in. Every request passes here before any route sees it.
//!
//! [`judge`] is pure: what the request shows and what the route asks for in, a verdict out. A web
//! page that the operator happens to visit can reach a loopback port too, so a token alone is not
//! enough: the name it was reached by, and where it comes from, count as well.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN};
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tracing::{debug, info};

use crate::auth::{Scope, Tokens};
use crate::error::Refusal;
use crate::limits::{GUESS_WINDOW, GUESSES_MAX};
use crate::routes::{Need, need};

/// Writes carry it. A page of another site cannot send it without asking first.
pub const HEADER: &str = "x-quarterdeck";

/// Which door a request came through.
#[derive(Debug, Clone)]
pub enum Via {
    /// The socket, which only this user can open.
    Socket,
    Tcp(Arc<Port>),
}

/// What a port knows about who may come in.
#[derive(Debug)]
pub struct Port {
    pub tokens: Tokens,
    /// `127.0.0.1:47892` and the like: the names by which it is reached.
    pub names: Vec<String>,
    pub guesses: Mutex<Guesses>,
}

/// Wrong tokens within the present window.
#[derive(Debug)]
pub struct Guesses {
    since: Instant,
    count: u32,
}

impl Default for Guesses {
    fn default() -> Self {
        Self { since: Instant::now(), count: 0 }
    }
}

impl Guesses {
    fn too_many(&mut self, now: Instant) -> bool {
        if now.duration_since(self.since) >= GUESS_WINDOW {
            *self = Self { since: now, count: 0 };
        }
        self.count >= GUESSES_MAX
    }
}

/// Looks at a request, and answers it if it may not pass.
pub async fn guard(State(via): State<Via>, request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let matched = request.extensions().get::<MatchedPath>();
    let need = matched.and_then(|matched| need(&method, matched.as_str()));
    let response = match (&via, need) {
        (_, None) => Refusal::NoSuchRoute.into_response(),
        (Via::Socket, Some(_)) => next.run(request).await,
        (Via::Tcp(port), Some(need)) => match port.judge(&method, request.headers(), need) {
            Ok(()) => next.run(request).await,
            Err(refusal) => refusal.into_response(),
        },
    };
    let status = response.status().as_u16();
    if need == Some(Need::Scope(Scope::Ingest)) && status < 400 {
        debug!(%method, path, status, "request");
    } else {
        info!(%method, path, status, "request");
    }
    response
}

impl Port {
    fn judge(&self, method: &Method, headers: &HeaderMap, need: Need) -> Result<(), Refusal> {
        let now = Instant::now();
        let mut guesses = self.guesses.lock().unwrap_or_else(PoisonError::into_inner);
        let bearer = bearer(headers);
        let scope = match bearer {
            Some(_) if guesses.too_many(now) => return Err(Refusal::TooManyGuesses),
            Some(token) => self.tokens.scope_of(token),
            None => None,
        };
        if bearer.is_some() && scope.is_none() {
            guesses.count += 1;
        }
        drop(guesses);
        judge(&Shown::of(method, headers, bearer.is_some(), scope), &self.names, need)
    }
}

/// What a request shows of itself.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    pub writes: bool,
    pub host: Option<&'a str>,
    pub origin: Option<&'a str>,
    pub fetch_site: Option<&'a str>,
    pub content_type: Option<&'a str>,
    pub has_header: bool,
    pub has_token: bool,
    pub scope: Option<Scope>,
}

impl<'a> Shown<'a> {
    fn of(method: &Method, headers: &'a HeaderMap, has_token: bool, scope: Option<Scope>) -> Self {
        // What is not text is as suspicious as what is foreign.
        let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        Self {
            writes: method != Method::GET && method != Method::HEAD,
            host: text(HOST.as_str()),
            origin: text(ORIGIN.as_str()),
            fetch_site: text("sec-fetch-site"),
            content_type: text(CONTENT_TYPE.as_str()),
            has_header: headers.contains_key(HEADER),
            has_token,
            scope,
        }
    }
}

/// Whether it may pass, or the first reason why not.
pub fn judge(shown: &Shown<'_>, names: &[String], need: Need) -> Result<(), Refusal> {
    let ours = |host: &str| names.iter().any(|name| name.eq_ignore_ascii_case(host));
    if !shown.host.is_some_and(ours) {
        return Err(Refusal::ForeignHost);
    }
    let own_origin = |origin: &str| origin.strip_prefix("http://").is_some_and(ours);
    if shown.origin.is_some_and(|origin| !own_origin(origin)) {
        return Err(Refusal::ForeignOrigin);
    }
    // `none` is the address bar.
    if shown.fetch_site.is_some_and(|site| site != "same-origin" && site != "none") {
        return Err(Refusal::ForeignOrigin);
    }
    let Need::Scope(needed) = need else { return Ok(()) };
    match shown.scope {
        Some(scope) if scope >= needed => {}
        Some(_) => return Err(Refusal::WeakScope),
        None if shown.has_token => return Err(Refusal::WrongToken),
        None => return Err(Refusal::NoToken),
    }
    // Agents and their exporters report as they can.
    if shown.writes && needed > Scope::Ingest {
        if !shown.content_type.is_some_and(is_json) {
            return Err(Refusal::NotJson);
        }
        if !shown.has_header {
            return Err(Refusal::NoHeader);
        }
    }
    Ok(())
}

fn is_json(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (kind, token) = value.split_once(' ')?;
    kind.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPERATE: Need = Need::Scope(Scope::Operate);

    fn good() -> Shown<'static> {
        Shown {
            writes: true,
            host: Some("127.0.0.1:47892"),
            origin: Some("http://LOCALHOST:47892"),
            fetch_site: Some("same-origin"),
            content_type: Some("application/json; charset=utf-8"),
            has_header: true,
            has_token: true,
            scope: Some(Scope::Operate),
        }
    }

    #[track_caller]
    fn check(shown: Shown<'_>, need: Need, expected: Result<(), Refusal>) {
        let names = ["127.0.0.1:47892", "localhost:47892"].map(str::to_owned);
        assert_eq!(judge(&shown, &names, need), expected, "{shown:?}");
    }

    #[test]
    fn a_good_request_passes_and_each_flaw_is_named() {
        check(good(), OPERATE, Ok(()));
        check(Shown { host: None, ..good() }, OPERATE, Err(Refusal::ForeignHost));
        for host in ["127.0.0.1", "127.0.0.1:1", "evil.example:47892", "", "?"] {
            check(Shown { host: Some(host), ..good() }, OPERATE, Err(Refusal::ForeignHost));
        }
        for origin in ["null", "https://127.0.0.1:47892", "http://evil.example", "http://127.0.0.1"]
        {
            let shown = Shown { origin: Some(origin), ..good() };
            check(shown, OPERATE, Err(Refusal::ForeignOrigin));
            check(shown, Need::Nothing, Err(Refusal::ForeignOrigin));
        }
        for site in ["cross-site", "same-site", "?"] {
            let shown = Shown { fetch_site: Some(site), ..good() };
            check(shown, OPERATE, Err(Refusal::ForeignOrigin));
        }
        let none = Shown { has_token: false, scope: None, ..good() };
        check(none, OPERATE, Err(Refusal::NoToken));
        check(Shown { scope: None, ..good() }, OPERATE, Err(Refusal::WrongToken));
        for scope in [Scope::Ingest, Scope::Observe] {
            let shown = Shown { scope: Some(scope), ..good() };
            check(shown, OPERATE, Err(Refusal::WeakScope));
        }
        check(Shown { content_type: Some("text/plain"), ..good() }, OPERATE, Err(Refusal::NotJson));
        check(Shown { content_type: None, ..good() }, OPERATE, Err(Refusal::NotJson));
        check(Shown { has_header: false, ..good() }, OPERATE, Err(Refusal::NoHeader));
    }

    #[test]
    fn a_command_line_sends_neither_origin_nor_site() {
        let plain = Shown { origin: None, fetch_site: None, ..good() };
        check(plain, OPERATE, Ok(()));
        check(Shown { fetch_site: Some("none"), ..plain }, OPERATE, Ok(()));
    }

    #[test]
    fn reports_need_no_header_and_no_json() {
        let report = Shown {
            content_type: Some("application/x-protobuf"),
            has_header: false,
            scope: Some(Scope::Ingest),
            ..good()
        };
        check(report, Need::Scope(Scope::Ingest), Ok(()));
        check(report, Need::Nothing, Ok(()));
        check(
            Shown { writes: false, ..report },
            Need::Scope(Scope::Observe),
            Err(Refusal::WeakScope),
        );
    }

    #[test]
    fn guesses_are_forgotten_after_a_while() {
        let mut guesses = Guesses::default();
        let start = guesses.since;
        guesses.count = GUESSES_MAX;
        assert!(guesses.too_many(start));
        assert!(!guesses.too_many(start + GUESS_WINDOW));
    }
}
